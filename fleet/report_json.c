/* A night for programs. */
#include "fleet/fleet.h"

static void put_result(bz_json *j, const bz_night_result *x)
{
    bz_json_object(j);
    bz_json_key_str(j, "name", x->planned->name);
    bz_json_key_str(j, "planned", x->planned->system);
    bz_json_key_str(j, "system", x->system);
    bz_json_key_str(j, "before", x->before);
    bz_json_key_str(j, "note", x->planned->note);
    const struct {
        const char *name;
        int n;
    } counts[] = {
        {"wanted", x->wanted}, {"left", x->left},         {"moved", x->moved},     {"shards", x->shards},
        {"done", x->done},     {"running", x->running},   {"waiting", x->waiting}, {"died", x->died},
        {"failed", x->failed}, {"attempts", x->attempts}, {"records", x->records}, {"failed_records", x->bad_records},
        {"faster", x->faster}, {"slower", x->slower},     {"same", x->same},       {"undecided", x->undecided},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        bz_json_key_int(j, counts[i].name, counts[i].n);
    bz_json_key_num(j, "estimate", x->estimate);
    bz_json_key_num(j, "seconds", x->seconds);
    bz_json_object_end(j);
}

static void put_change(bz_json *j, const bz_change_row *c, double tolerance)
{
    bz_json_object(j);
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
    bz_span_json(&c->before, "before", c->variant_before, j);
    bz_span_json(&c->after, "after", c->variant_after, j);
    bz_json_object_end(j);
}

static void put_troubles(bz_json *j, const bz_fleet_report *r)
{
    bz_json_key(j, "deviations");
    bz_json_array(j);
    for (int i = 0; i < r->n_deviations; i++) {
        const bz_deviation *d = &r->deviation[i];
        bz_json_object(j);
        bz_json_key_str(j, "kind", d->kind);
        bz_json_key_str(j, "node", d->node);
        bz_json_key_str(j, "what", d->what);
        bz_json_key_num(j, "seconds", d->seconds);
        bz_json_key_num(j, "peers", d->peers);
        bz_json_key_int(j, "throttled", d->throttled);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_key(j, "failures");
    bz_json_array(j);
    for (int i = 0; i < r->n_failures; i++) {
        bz_json_object(j);
        bz_json_key_str(j, "kind", r->failure[i].kind);
        bz_json_key_str(j, "what", r->failure[i].what);
        bz_json_key_str(j, "reason", r->failure[i].reason);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_key(j, "warnings");
    bz_json_array(j);
    for (int i = 0; i < r->warning.n; i++)
        bz_json_str(j, r->warning.item[i]);
    bz_json_array_end(j);
}

void bz_fleet_report_json(const bz_fleet_report *r, bz_buf *out)
{
    bz_json j = bz_json_to(out, true);
    j.flat = 3;
    bz_json_document(&j, "fleet-report", 1);
    bz_json_key_str(&j, "night", r->night->id);
    bz_json_key_num(&j, "tolerance", r->tolerance);
    bz_json_key_int(&j, "regressions", r->regressions);
    bz_json_key_int(&j, "left", r->left);
    bz_json_key(&j, "systems");
    bz_json_array(&j);
    for (int i = 0; i < r->night->n_systems; i++)
        put_result(&j, &r->result[i]);
    bz_json_array_end(&j);
    bz_json_key(&j, "changes");
    bz_json_array(&j);
    for (int i = 0; i < r->n_changes; i++)
        put_change(&j, &r->change[i], r->tolerance);
    bz_json_array_end(&j);
    put_troubles(&j, r);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
}
