/* What the page shows, as JSON for its script: the same analysis, in rows that are small. */
#include "report/html.h"
#include "report/parts.h"

#include <math.h>
#include <stdlib.h>

static void key_array(bz_json *j, const char *key)
{
    bz_json_key(j, key);
    bz_json_array(j);
}

static void key_object(bz_json *j, const char *key)
{
    bz_json_key(j, key);
    bz_json_object(j);
}

/* ---- the bound ------------------------------------------------------------------------------ */

static void put_layer(const bz_bound *b, const bz_bound_layer *l, bool path, bz_json *j)
{
    const bz_layer_price *p = &l->price;
    bool priced = p->alternative != NULL;
    bz_json_object(j);
    bz_json_key_int(j, "i", l->node);
    bz_json_key_str(j, "name", l->layer->name);
    bz_json_key_str(j, "kind", l->layer->kind);
    bz_json_key_num(j, "s", priced ? p->seconds * l->times : NAN);
    if (priced) {
        bz_json_key_num(j, "low", l->price.low * l->times);
        bz_json_key_num(j, "high", l->price.high * l->times);
    }
    if (l->times != 1)
        bz_json_key_num(j, "times", l->times);
    bz_json_key_str(j, "prov", priced ? bz_record_provenance_name(p->provenance) : "unpriced");
    bz_json_key_str(j, "variant", l->variant);
    if (isfinite(l->runner_up)) {
        bz_json_key_num(j, "second", l->runner_up * l->times);
        bz_json_key_str(j, "second_variant", l->runner_up_variant);
    }
    if (isfinite(l->hardware)) {
        bz_json_key_num(j, "hw", l->hardware * l->times);
        bz_json_key_bool(j, "memory", l->memory);
    }
    bz_json_key_int(j, "flops", l->layer->flops);
    bz_json_key_num(j, "bytes", bz_peaks_bytes(l->layer, NULL, b->dtype));
    bz_json_key_str(j, "key", l->layer->key);
    if (p->noisy)
        bz_json_key_bool(j, "noisy", true);
    if (l->floor)
        bz_json_key_bool(j, "floor", true);
    if (path)
        bz_json_key_bool(j, "path", true);
    if (!priced)
        bz_json_key_str(j, "why", p->why);
    key_array(j, "problems");
    for (int i = 0; priced && i < p->alternative->n; i++)
        bz_json_str(j, p->alternative->text[i]);
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_layers(const bz_bound *b, bz_json *j)
{
    bool *path = bz_zeroed((size_t)b->dag->n + 1, sizeof *path);
    for (int i = 0; i < b->path.n; i++)
        path[b->path.node[i]] = true;
    key_array(j, "layers");
    for (int i = 0; i < b->n; i++)
        put_layer(b, &b->layer[i], path[b->layer[i].node], j);
    bz_json_array_end(j);
    free(path);
}

static void put_peaks(const bz_peaks *p, bz_json *j)
{
    key_object(j, "peaks");
    bz_json_key_str(j, "why", p->why);
    bz_json_key_str(j, "source", p->why ? NULL : p->source);
    key_array(j, "flops");
    for (int i = 0; i < p->n_flops; i++) {
        bz_json_object(j);
        bz_json_key_str(j, "dtype", bz_dtype_name(p->flops[i].dtype));
        bz_json_key_num(j, "rate", p->flops[i].rate);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    key_array(j, "bandwidth");
    for (int i = 0; i < p->n_bandwidth; i++) {
        bz_json_object(j);
        bz_json_key_num(j, "bytes", p->bandwidth[i].bytes);
        bz_json_key_num(j, "rate", p->bandwidth[i].rate);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_coverage(const bz_coverage_sum *c, bz_json *j)
{
    key_object(j, "coverage");
    const struct {
        const char *key;
        double value;
    } members[] = {{"layers", c->layers},
                   {"free", c->free},
                   {"measured", c->measured},
                   {"imported", c->imported},
                   {"modelled", c->modelled},
                   {"unpriced", c->unpriced},
                   {"noisy", c->noisy},
                   {"floor", c->floor},
                   {"branches", c->branches},
                   {"loops", c->loops},
                   {"loops_open", c->loops_open},
                   {"macs", c->macs},
                   {"macs_measured", c->macs_measured},
                   {"macs_imported", c->macs_imported},
                   {"macs_modelled", c->macs_modelled},
                   {"macs_unpriced", c->macs_unpriced}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        bz_json_key_num(j, members[i].key, members[i].value);
    bz_json_object_end(j);
}

static void put_schedules(const bz_bound *b, bz_json *j)
{
    key_array(j, "streams");
    for (int i = 0; i < b->streams.n; i++) {
        bz_json_object(j);
        bz_json_key_int(j, "k", b->streams.at[i].k);
        bz_json_key_num(j, "s", b->streams.at[i].seconds);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    key_array(j, "modules");
    for (int i = 0; i < b->n_modules; i++) {
        const bz_bound_module *m = &b->module[i];
        if (m->within >= 0)
            continue;
        bz_json_object(j);
        bz_json_key_str(j, "from", b->layers->layer[m->module->begin].name);
        bz_json_key_str(j, "to", b->layers->layer[m->module->end - 1].name);
        bz_json_key_int(j, "layers", m->cost.nodes);
        bz_json_key_int(j, "width", m->module->width);
        bz_json_key_num(j, "sequential", m->cost.sequential);
        bz_json_key_num(j, "parallel", m->cost.parallel);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

static void put_fused(const bz_bound *b, bz_json *j)
{
    const bz_bound_fused *f = &b->fused;
    key_object(j, "fused");
    bz_json_key_num(j, "sequential", f->sequential);
    bz_json_key_num(j, "parallel", f->parallel);
    bz_json_key_num(j, "hardware", f->hardware);
    bz_json_key_int(j, "unpriced", f->unpriced);
    bz_json_key_int(j, "covered", f->covered);
    bz_json_key_int(j, "missing", f->missing);
    bz_json_key_int(j, "modelled", f->modelled);
    key_array(j, "groups");
    for (int g = 0; g < f->n; g++) {
        bz_json_object(j);
        bz_json_key_str(j, "pattern", f->group[g].pattern);
        bz_json_key_num(j, "s", f->group[g].price.seconds);
        bz_json_key_str(j, "prov", bz_record_provenance_name(f->group[g].price.provenance));
        key_array(j, "layers");
        for (int i = 0; i < f->group[g].n; i++)
            bz_json_int(j, f->group[g].layer[i]);
        bz_json_array_end(j);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_bound(const bz_bound *b, bz_json *j)
{
    bz_json_key_str(j, "model", b->model);
    bz_json_key_str(j, "system", b->system);
    bz_json_key_str(j, "details", b->facts->text);
    bz_json_key_int(j, "batch", b->layers->batch);
    bz_json_key_int(j, "threads", b->setting.threads);
    bz_json_key_str(j, "cache", bz_record_cache_name(b->setting.cache));
    bz_json_key_str(j, "clock", b->setting.clock);
    bz_json_key_str(j, "dtype", b->dtype ? bz_dtype_name(b->dtype) : NULL);
    bz_json_key_int(j, "benchmarks", b->benchmarks);
    bz_json_key_int(j, "problems", b->problems);
    bz_json_key_int(j, "known", b->known);
    bz_json_key_int(j, "nodes", b->dag->n);
    bz_json_key_num(j, "sequential", b->sequential);
    bz_json_key_num(j, "parallel", b->path.seconds);
    bz_json_key_num(j, "hardware", b->hardware);
    bz_json_key_num(j, "launch", b->launch);
    bz_json_key_int(j, "above_roofline", b->above_roofline);
    put_coverage(&b->coverage, j);
    report_goal_json(b, j);
    put_peaks(b->peaks, j);
    put_schedules(b, j);
    if (b->fused.wanted)
        put_fused(b, j);
    put_layers(b, j);
}

/* ---- the questions -------------------------------------------------------------------------- */

static void put_fusion(const bz_fusion *f, bz_json *j)
{
    key_object(j, "fusion");
    bz_json_key_num(j, "sequential", f->sequential);
    bz_json_key_num(j, "parallel", f->parallel);
    key_array(j, "rows");
    for (int i = 0; i < f->n; i++) {
        const bz_fusion_row *r = &f->row[i];
        bz_json_object(j);
        bz_json_key_str(j, "pattern", r->pattern);
        bz_json_key_int(j, "places", r->places);
        bz_json_key_int(j, "covered", r->covered);
        bz_json_key_num(j, "fused", r->fused < 0 ? NAN : (double)r->fused);
        bz_json_key_num(j, "written", r->written);
        bz_json_key_num(j, "together", r->together);
        bz_json_key_num(j, "gain", r->gain);
        bz_json_key_num(j, "alone", r->alone);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_unit_row(const bz_bound *b, const bz_unit_row *r, bz_json *j)
{
    bz_json_object(j);
    bz_json_key_str(j, "layer", r->layer >= 0 && r->layer < b->n ? b->layer[r->layer].layer->name : NULL);
    bz_json_key_str(j, "call", r->call);
    bz_json_key_bool(j, "used", r->used);
    bz_json_key_bool(j, "could", r->could);
    bz_json_key_str(j, "evidence", r->evidence);
    bz_json_key_str(j, "why", r->why);
    bz_json_key_num(j, "s", r->seconds);
    bz_json_key_num(j, "best", r->best);
    bz_json_key_str(j, "best_way", r->best_way);
    bz_json_object_end(j);
}

static void put_units(const bz_bound *b, const bz_units *u, bz_json *j)
{
    key_object(j, "units");
    bz_json_key_str(j, "unit", u->unit);
    bz_json_key_int(j, "used", u->used);
    bz_json_key_int(j, "could", u->could);
    key_array(j, "ways");
    for (int i = 0; i < u->n_ways; i++) {
        const bz_unit_way *w = &u->way[i];
        bz_json_object(j);
        bz_json_key_str(j, "name", w->name);
        bz_json_key_num(j, "sequential", w->sequential);
        bz_json_key_num(j, "parallel", w->parallel);
        bz_json_key_num(j, "conversions", w->conversions);
        bz_json_key_num(j, "gain", w->gain);
        bz_json_key_int(j, "layers", w->layers);
        bz_json_key_int(j, "unknown", w->unknown);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    key_array(j, "rows");
    for (int i = 0; i < u->n; i++)
        put_unit_row(b, &u->row[i], j);
    bz_json_array_end(j);
    bz_json_object_end(j);
}

/* ---- against a profile ---------------------------------------------------------------------- */

static void put_regret(const bz_regret *r, bz_json *j)
{
    key_object(j, "algorithms");
    bz_json_key_num(j, "calls", r->calls);
    bz_json_key_num(j, "known", r->known);
    bz_json_key_num(j, "used", r->used);
    bz_json_key_num(j, "best", r->best);
    bz_json_key_num(j, "chosen", r->chosen);
    bz_json_key_num(j, "loss", r->loss);
    bz_json_key_num(j, "faster", r->faster);
    key_array(j, "rows");
    for (int i = 0; i < r->n; i++) {
        const bz_regret_row *row = &r->row[i];
        bz_json_object(j);
        bz_json_key_str(j, "problem", row->problem);
        bz_json_key_str(j, "variant", row->variant);
        bz_json_key_int(j, "padded", row->padded);
        bz_json_key_num(j, "calls", row->calls);
        bz_json_key_num(j, "seen", row->seen);
        bz_json_key_num(j, "used", row->used);
        bz_json_key_num(j, "best", row->best);
        bz_json_key_num(j, "chosen", row->chosen);
        bz_json_key_str(j, "best_variant", row->best_variant);
        bz_json_key_str(j, "chosen_variant", row->chosen_variant);
        bz_json_key_num(j, "loss", row->loss);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_aligned(const bz_bound *b, const bz_aligned *r, bz_json *j)
{
    bz_json_object(j);
    bz_json_key_str(j, "kind", bz_aligned_name(r->kind));
    bz_json_key_bool(j, "moved", r->moved);
    key_array(j, "layers");
    for (int i = 0; i < r->n_layers; i++)
        if (r->layer[i] >= 0 && r->layer[i] < b->n)
            bz_json_str(j, b->layer[r->layer[i]].layer->name);
    bz_json_array_end(j);
    bz_json_key_str(j, "call", r->call);
    bz_json_key_str(j, "problem", r->problem);
    bz_json_key_str(j, "variant", r->variant);
    bz_json_key_str(j, "where", r->where);
    key_array(j, "changes");
    for (int i = 0; i < r->n_changes; i++) {
        bz_json_array(j);
        bz_json_str(j, r->change[i].parameter);
        bz_json_str(j, r->change[i].expected);
        bz_json_str(j, r->change[i].found);
        bz_json_array_end(j);
    }
    bz_json_array_end(j);
    bz_json_key_num(j, "s", r->seconds);
    bz_json_key_num(j, "bound", r->bound);
    bz_json_object_end(j);
}

static void put_alignment(const bz_bound *b, const bz_alignment *a, bz_json *j)
{
    key_object(j, "alignment");
    bz_json_key_bool(j, "timeline", a->timeline);
    bz_json_key_int(j, "expected", a->expected);
    bz_json_key_int(j, "made", a->made);
    bz_json_key_int(j, "moved", a->moved);
    bz_json_key_num(j, "asked", a->asked);
    key_object(j, "count");
    for (int k = 0; k < BZ_ALIGNED_KINDS; k++)
        bz_json_key_int(j, bz_aligned_name((bz_aligned_kind)k), a->count[k]);
    bz_json_object_end(j);
    key_array(j, "causes");
    for (int i = 0; i < a->n_causes; i++) {
        const bz_cause *c = &a->cause[i];
        bz_json_object(j);
        bz_json_key_str(j, "name", c->name);
        bz_json_key_bool(j, "busy", c->busy);
        bz_json_key_num(j, "count", c->count);
        bz_json_key_num(j, "s", c->seconds);
        bz_json_key_str(j, "example", c->example);
        bz_json_key_str(j, "where", c->where);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    key_array(j, "rows");
    for (int i = 0; i < a->n; i++)
        put_aligned(b, &a->row[i], j);
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_waterfall(const bz_waterfall *w, bz_json *j)
{
    key_object(j, "waterfall");
    bz_json_key_num(j, "from", w->from);
    bz_json_key_num(j, "to", w->to);
    key_array(j, "steps");
    for (int i = 0; i < w->n; i++) {
        bz_json_object(j);
        bz_json_key_str(j, "name", w->step[i].name);
        bz_json_key_num(j, "s", w->step[i].seconds);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    key_array(j, "joint");
    for (int i = 0; i < 1 << BZ_WAYS; i++)
        bz_json_num(j, w->joint[i]);
    bz_json_array_end(j);
    bz_json_object_end(j);
}

/* An event is [start, length, name, depth], times in nanoseconds. */
static void put_timeline(const bz_timeline *t, bz_json *j)
{
    int i = 0;
    key_object(j, "timeline");
    bz_json_key_int(j, "length", t->length);
    bz_json_key_int(j, "left_out", t->left_out);
    key_array(j, "names");
    for (int k = 0; k < t->n_names; k++)
        bz_json_str(j, t->name[k]);
    bz_json_array_end(j);
    key_array(j, "rows");
    for (int r = 0; r < t->n_rows; r++) {
        bz_json_object(j);
        bz_json_key_str(j, "name", t->row[r].name);
        bz_json_key_str(j, "kind", bz_event_kind_name(t->row[r].kind));
        bz_json_key_int(j, "depth", t->row[r].depth);
        key_array(j, "events");
        for (; i < t->n && t->event[i].row == r; i++) {
            bz_json_array(j);
            bz_json_int(j, t->event[i].start);
            bz_json_int(j, t->event[i].length);
            bz_json_int(j, t->event[i].name);
            bz_json_int(j, t->event[i].depth);
            bz_json_array_end(j);
        }
        bz_json_array_end(j);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_ladder(const bz_bound *b, const bz_ladder *l, bz_json *j)
{
    bz_json_object(j);
    bz_json_key_str(j, "profile", l->profile);
    bz_json_key_str(j, "framework", l->framework);
    report_ladder_json(l, j);
    key_array(j, "warnings");
    for (int i = 0; i < l->n_warnings; i++)
        bz_json_str(j, l->warning[i]);
    bz_json_array_end(j);
    if (l->waterfall)
        put_waterfall(l->waterfall, j);
    if (l->regret)
        put_regret(l->regret, j);
    if (l->alignment)
        put_alignment(b, l->alignment, j);
    if (l->units)
        put_units(b, l->units, j);
    if (l->timeline)
        put_timeline(l->timeline, j);
    report_advice_json(l, j);
    bz_json_object_end(j);
}

static void put_recordings(const bz_findings *r, bz_json *j)
{
    report_recordings_json(r, j);
    key_array(j, "recorded"); /* the ladder of each: its timeline and advice */
    for (int i = 0; i < r->n_recordings; i++)
        put_ladder(&r->recording[i].analysis->bound, r->recording[i].analysis->ladder, j);
    bz_json_array_end(j);
}

void bz_html_data(const bz_findings *r, bz_buf *out)
{
    const bz_analysis *a = r->analysis;
    const bz_evaluation *e = r->evaluation;
    int n = r->n;
    bz_json j = bz_json_to(out, false);
    bz_json_object(&j);
    bz_json_key_str(&j, "version", BENANZA_VERSION);
    if (e) {
        bz_json_key(&j, "evaluation");
        bz_report_evaluation_json(a, e, &j);
    }
    put_recordings(r, &j);
    key_array(&j, "analyses");
    for (int i = 0; i < n; i++) {
        bz_json_object(&j);
        put_bound(&a[i].bound, &j);
        if (a[i].fusion)
            put_fusion(a[i].fusion, &j);
        if (a[i].units)
            put_units(&a[i].bound, a[i].units, &j);
        key_array(&j, "ladders");
        for (int k = 0; k < a[i].n_ladders; k++)
            put_ladder(&a[i].bound, &a[i].ladder[k], &j);
        bz_json_array_end(&j);
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    bz_json_object_end(&j);
}
