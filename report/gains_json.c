/* What could be gained, for programs: docs/formats.md tells what the members mean. */
#include "report/parts.h"

static void put_fusion(const bz_fusion *f, bz_json *j)
{
    bz_json_key(j, "fusion");
    bz_json_object(j);
    bz_json_key_num(j, "sequential", f->sequential);
    bz_json_key_num(j, "parallel", f->parallel);
    bz_json_key(j, "patterns");
    bz_json_array(j);
    for (int i = 0; i < f->n; i++) {
        const bz_fusion_row *r = &f->row[i];
        bz_json_object(j);
        bz_json_key_str(j, "pattern", r->pattern);
        bz_json_key_int(j, "places", r->places);
        bz_json_key_int(j, "covered", r->covered);
        bz_json_key_int(j, "modelled", r->modelled);
        bz_json_key_int(j, "missing", r->missing);
        bz_json_key_int(j, "refused", r->refused);
        bz_json_key_int(j, "failed", r->failed);
        bz_json_key_str(j, "why", r->why);
        bz_json_key(j, "fused");
        if (r->fused < 0)
            bz_json_null(j);
        else
            bz_json_int(j, r->fused);
        bz_json_key_num(j, "written", r->written);
        bz_json_key_num(j, "together", r->together);
        bz_json_key_num(j, "gain", r->gain);
        bz_json_key_num(j, "alone", r->alone);
        bz_json_key_num(j, "alone_parallel", r->alone_parallel);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_way(const bz_unit_way *w, bz_json *j)
{
    bz_json_object(j);
    bz_json_key_str(j, "name", w->name);
    bz_json_key_bool(j, "layout", w->layout);
    bz_json_key_bool(j, "calibrated", w->calibrated);
    bz_json_key_num(j, "sequential", w->sequential);
    bz_json_key_num(j, "parallel", w->parallel);
    bz_json_key_num(j, "fused", w->fused);
    bz_json_key_num(j, "fused_parallel", w->fused_parallel);
    bz_json_key_num(j, "gain", w->gain);
    bz_json_key_int(j, "layers", w->layers);
    bz_json_key_int(j, "unknown", w->unknown);
    bz_json_key_num(j, "conversions", w->conversions);
    bz_json_key_int(j, "converted", w->converted);
    bz_json_key_int(j, "modelled", w->modelled);
    bz_json_key_int(j, "open", w->open);
    bz_json_object_end(j);
}

static void put_units(const bz_bound *b, const bz_units *u, bool ways, bz_json *j)
{
    bz_json_key(j, "units");
    bz_json_object(j);
    bz_json_key_str(j, "unit", u->unit);
    bz_json_key_int(j, "used", u->used);
    bz_json_key_int(j, "could", u->could);
    bz_json_key(j, "rows");
    bz_json_array(j);
    for (int i = 0; i < u->n; i++) {
        const bz_unit_row *r = &u->row[i];
        bz_json_object(j);
        bz_json_key_str(j, "layer", r->layer < 0 ? NULL : b->layer[r->layer].layer->name);
        if (r->call)
            bz_json_key_str(j, "call", r->call);
        bz_json_key_bool(j, "used", r->used);
        bz_json_key_bool(j, "could", r->could);
        bz_json_key_str(j, "evidence", r->evidence);
        bz_json_key_str(j, "why", r->why);
        bz_json_key_num(j, "seconds", r->seconds);
        bz_json_key_num(j, "best", r->best);
        bz_json_key_str(j, "best_way", r->best_way);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    if (ways) {
        bz_json_key(j, "ways");
        bz_json_array(j);
        for (int i = 0; i < u->n_ways; i++)
            put_way(&u->way[i], j);
        bz_json_array_end(j);
    }
    bz_json_object_end(j);
}

void report_gains_json(const bz_analysis *a, bz_json *j)
{
    if (a->fusion)
        put_fusion(a->fusion, j);
    if (a->units)
        put_units(&a->bound, a->units, true, j);
}

static void put_waterfall(const bz_waterfall *w, bz_json *j)
{
    static const char *const NAMES[BZ_WAYS] = {"framework", "algorithms", "fusion", "precision", "parallel"};
    bz_json_key(j, "waterfall");
    bz_json_object(j);
    bz_json_key_num(j, "from", w->from);
    bz_json_key_num(j, "to", w->to);
    bz_json_key(j, "steps");
    bz_json_array(j);
    for (int i = 0; i < w->n; i++) {
        bz_json_object(j);
        bz_json_key_str(j, "name", w->step[i].name);
        bz_json_key_num(j, "seconds", w->step[i].seconds);
        if (w->step[i].seconds < 0)
            bz_json_key_bool(j, "contradiction", true);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_key(j, "joint");
    bz_json_array(j);
    for (int ways = 0; ways < 1 << BZ_WAYS; ways++) {
        bz_json_object(j);
        bz_json_key(j, "ways");
        bz_json_array(j);
        for (int k = 0; k < BZ_WAYS; k++)
            if (ways >> k & 1)
                bz_json_str(j, NAMES[k]);
        bz_json_array_end(j);
        bz_json_key_num(j, "seconds", w->joint[ways]);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

/* What the program does already: null where nothing tells. */
static void put_states(const bz_ladder *l, bz_json *j)
{
    bz_json_key(j, "states");
    bz_json_array(j);
    for (int i = 0; i < l->n_states; i++) {
        const bz_state *s = &l->state[i];
        bz_json_object(j);
        bz_json_key_str(j, "id", s->id);
        bz_json_key_str(j, "what", s->what);
        if (s->known)
            bz_json_key_bool(j, "holds", s->holds);
        else
            bz_json_key_str(j, "holds", NULL);
        bz_json_key_str(j, "evidence", s->evidence);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

static void put_answers(const bz_ladder *l, bz_json *j)
{
    bz_json_key(j, "answers");
    bz_json_array(j);
    for (int i = 0; i < l->n_answers; i++) {
        const bz_answer *a = &l->answer[i];
        bz_json_object(j);
        bz_json_key_str(j, "item", a->item);
        bz_json_key_num(j, "seconds", a->seconds);
        bz_json_key_str(j, "advice", a->advice);
        bz_json_key_str(j, "why", a->why);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

void report_advice_json(const bz_ladder *l, bz_json *j)
{
    bz_json_key(j, "advice");
    bz_json_array(j);
    for (int i = 0; i < l->n_advices; i++) {
        const bz_advice *a = &l->advice[i];
        bz_json_object(j);
        bz_json_key_str(j, "id", a->id);
        bz_json_key_str(j, "what", a->what);
        bz_json_key_str(j, "evidence", a->evidence);
        bz_json_key_str(j, "step", a->step);
        bz_json_key_num(j, "gain", a->gain);
        bz_json_key_num(j, "low", a->low);
        bz_json_key_num(j, "high", a->high);
        bz_json_key_bool(j, "predicted", a->predicted);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    put_answers(l, j);
    put_states(l, j);
}

void report_steps_json(const bz_bound *b, const bz_ladder *l, bz_json *j)
{
    bz_json_key_str(j, "framework", l->framework);
    if (l->units)
        put_units(b, l->units, false, j);
    if (l->waterfall)
        put_waterfall(l->waterfall, j);
    report_advice_json(l, j);
}
