/* A night for programs. */
#include "fleet/fleet.h"

#include "base/member.h"

static const bz_member COUNTS[] = {
    BZ_FIELDS(bz_night_result, wanted, left, moved, shards, done, running, waiting, died, failed, attempts, records),
    BZ_MEMBER_AS(bz_night_result, bad_records, "failed_records"),
    BZ_FIELDS(bz_night_result, faster, slower, same, undecided, estimate, seconds),
};

static void put_result(bz_json *j, const bz_night_result *x)
{
    bz_json_key_str(j, "name", x->planned->name);
    bz_json_key_str(j, "planned", x->planned->system);
    bz_json_key_str(j, "system", x->system);
    bz_json_key_str(j, "before", x->before);
    bz_json_key_str(j, "note", x->planned->note);
    bz_members_json(BZ_MEMBERS(COUNTS), x, j);
}

static const bz_member BEFORE[] = {BZ_SPAN_MEMBERS(bz_change_row, before, variant_before)};
static const bz_member AFTER[] = {BZ_SPAN_MEMBERS(bz_change_row, after, variant_after)};
static const bz_member SIDES[] = {BZ_MEMBER_WHOLE("before", BEFORE), BZ_MEMBER_WHOLE("after", AFTER)};

static void put_change(bz_json *j, const bz_change_row *c, double tolerance)
{
    bz_json_key_str(j, "kind", c->kind);
    bz_json_key_str(j, "model", c->model);
    bz_json_key_str(j, "layer", c->what);
    bz_json_key_num(j, "times", c->times);
    if (c->model) {
        bz_json_key_int(j, "layers", c->layers);
        bz_json_key_int(j, "of", c->of);
    }
    bz_json_key_str(j, "verdict", bz_verdict_name(c->verdict));
    bz_json_key_bool(j, "regression", bz_change_regressed(c, tolerance));
    bz_members_json(BZ_MEMBERS(SIDES), c, j);
}

static const bz_member DEVIATION[] = {
    BZ_FIELDS(bz_deviation, kind, node, what, seconds, peers, throttled),
};
static const bz_member FAILURE[] = {
    BZ_FIELDS(bz_failure, kind, what, reason),
};

static void put_troubles(bz_json *j, const bz_fleet_report *r)
{
    bz_members_rows("deviations", BZ_MEMBERS(DEVIATION), r->deviation, sizeof *r->deviation, r->n_deviations, j);
    bz_members_rows("failures", BZ_MEMBERS(FAILURE), r->failure, sizeof *r->failure, r->n_failures, j);
    bz_json_key_strs(j, "warnings", r->warning.item, r->warning.n);
}

void bz_fleet_report_json(const bz_fleet_report *r, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, 3, "fleet-report", 1);
    bz_json_key_str(&j, "night", r->night->id);
    BZ_PUT(&j, bz_fleet_report, r, tolerance, regressions, left);
    BZ_JSON_EACH (&j, "systems", i, r->night->n_systems)
        put_result(&j, &r->result[i]);
    BZ_JSON_EACH (&j, "changes", i, r->n_changes)
        put_change(&j, &r->change[i], r->tolerance);
    put_troubles(&j, r);
    bz_json_document_end(&j);
}
