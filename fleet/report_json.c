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
    BZ_JSON(j, BZ_TELL("name", x->planned->name), BZ_TELL("planned", x->planned->system), BZ_TELL("system", x->system),
            BZ_TELL("before", x->before), BZ_TELL("note", x->planned->note));
    bz_members_json(BZ_MEMBERS(COUNTS), x, j);
}

static const bz_member BEFORE[] = {BZ_SPAN_MEMBERS(bz_change_row, before, variant_before)};
static const bz_member AFTER[] = {BZ_SPAN_MEMBERS(bz_change_row, after, variant_after)};
static const bz_member SIDES[] = {BZ_MEMBER_WHOLE("before", BEFORE), BZ_MEMBER_WHOLE("after", AFTER)};

static void put_change(bz_json *j, const bz_change_row *c, double tolerance)
{
    BZ_JSON(j, BZ_TELL("kind", c->kind), BZ_TELL("model", c->model), BZ_TELL("layer", c->what),
            BZ_TELL("times", c->times));
    if (c->model) {
        BZ_JSON(j, BZ_TELL("layers", c->layers), BZ_TELL("of", c->of));
    }
    BZ_JSON(j, BZ_TELL("verdict", bz_verdict_name(c->verdict)),
            BZ_TELL("regression", bz_change_regressed(c, tolerance)));
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
