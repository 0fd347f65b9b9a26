#include "cli/analysis.h"
#include "cli/unit_ways.h"

#include <stdlib.h>

/* What could be measured for the analyses from `first` on, where that leaves something unpriced. */
static void count_lacking(analyses *a, int first, const bz_plan *plan, const bz_prices *prices)
{
    const bz_plan_problem *problem;
    bool incomplete = false;
    int unrecorded = 0;
    a->lacking = a->unoffered = 0;
    for (int i = first; i < a->n; i++) {
        const bz_bound *b = &a->item[i].bound;
        incomplete |= b->coverage.unpriced > 0 || b->fused.missing > 0 || b->fused.failed > 0;
        for (int k = 0; k < b->n; k++)
            unrecorded += !b->layer[k].price.alternative && b->layer[k].price.missing > 0;
    }
    for (int i = 0, n = bz_plan_problems(plan, &problem); i < n && incomplete; i++)
        a->lacking += problem[i].n_families > 0 && !bz_prices_problem(prices, i)->n_records;
    a->unoffered = a->lacking ? 0 : unrecorded;
    a->incomplete |= incomplete;
}

int analyses_add(analyses *a, const bz_list *paths, const loaded_models *m, const bz_plan *plan, const planning *p,
                 bz_perfdb *db, const bz_system *system, bz_error *err)
{
    bz_prices *prices;
    bz_setting setting;
    bz_dtype dtype;
    bz_peaks *peaks = BZ_NEW(&a->arena, bz_peaks, 1);
    unit_ways ways = {0};
    int rc = 0, first = a->n;
    if (planning_setting(p, &setting, err) || planning_dtype(p, &dtype, err) ||
        (a->bound_only ? bz_prices_load(plan, db, system, &setting, &a->arena, &prices, err)
                       : unit_ways_prices(&ways, plan, db, system, &setting, &a->arena, &prices, err)) ||
        (!a->rebuilt && !a->bound_only &&
         unit_ways_find(&ways, p, paths, m, plan, db, system, &setting, &a->arena, err)))
        rc = -1;
    if (!rc) {
        bz_peaks_read(system->details, &setting, &a->arena, peaks);
        a->prices = prices;
    }
    while (a->n + m->n > a->cap) {
        a->cap = a->cap ? 2 * a->cap : 16;
        a->item = bz_realloc(a->item, (size_t)a->cap, sizeof *a->item);
    }
    for (int i = 0; i < m->n && !rc; i++) {
        bz_analysis *item = &a->item[a->n++];
        bz_units *units = BZ_NEW(&a->arena, bz_units, 1);
        bz_bound_input in = {.model = paths->item[i],
                             .system = system->name,
                             .details = system->details ? system->details : "",
                             .setting = setting,
                             .dtype = dtype,
                             .layers = m->layers[i],
                             .plan = plan,
                             .number = i,
                             .fused = (p->fuse || p->patterns) && !a->rebuilt,
                             .rebuilt = a->rebuilt,
                             .prices = prices,
                             .peaks = peaks};
        *item = (bz_analysis){0};
        bz_bound_make(&in, &a->arena, &item->bound);
        if (a->bound_only)
            continue;
        item->units = units;
        rc = unit_ways_units(&ways, &in, &item->bound, db, system, &a->arena, units, err);
    }
    if (!rc)
        count_lacking(a, first, plan, prices);
    unit_ways_free(&ways);
    return rc;
}

void analysis_answer(bz_analysis *item, bz_trace *const *trace, bz_arena *arena)
{
    if (item->bound.fused.wanted) {
        bz_fusion *fusion = BZ_NEW(arena, bz_fusion, 1);
        bz_fusion_make(&item->bound, item->ladder, item->n_ladders, arena, fusion);
        item->fusion = fusion;
    }
    for (int k = 0; k < item->n_ladders; k++) {
        bz_ladder *l = &item->ladder[k];
        bz_units *units = BZ_NEW(arena, bz_units, 1);
        bz_waterfall *waterfall = BZ_NEW(arena, bz_waterfall, 1);
        bz_units_look(&item->bound, trace[k], l->alignment, item->units, arena, units);
        l->units = units;
        bz_waterfall_make(&item->bound, l, item->units, waterfall);
        l->waterfall = waterfall;
        bz_advice_make(item, l, trace[k], arena);
    }
}

static int draw(const bz_analysis *a, const analysis_output *o, bz_error *err)
{
    bz_buf dot = {0}, svg = {0};
    bz_report_dot(a, &dot);
    int failed = o->dot ? bz_output(o->dot, &dot, err) : 0;
    if (!failed && o->svg)
        failed = bz_graphviz_svg(bz_buf_text(&dot), &svg, err) || bz_output(o->svg, &svg, err);
    bz_buf_free(&dot);
    bz_buf_free(&svg);
    return failed;
}

static int write_page(const bz_findings *r, const char *path, bz_error *err)
{
    bz_buf page = {0};
    bz_report_html(r, &page);
    int failed = bz_output(path, &page, err);
    bz_buf_free(&page);
    return failed;
}

static void put_text(const bz_findings *r, bz_buf *out)
{
    const bz_evaluation *e = r->evaluation;
    if (e) {
        bz_report_sweep(r->analysis, r->n, out);
        bz_report_evaluation_text(r->analysis, e, out);
    }
    for (int i = 0; i < r->n; i++) {
        bz_buf_puts(out, i || e ? "\n" : "");
        bz_report_text(&r->analysis[i], out);
    }
    for (int i = 0; i < r->n_recordings; i++) {
        bz_buf_puts(out, i || r->n || e ? "\n" : "");
        bz_report_recording_text(&r->recording[i], out);
    }
}

int analyses_print(analyses *a, const analysis_output *o, bz_buf *out, bz_error *err)
{
    bz_evaluation evaluation, *e = a->n > 1 || o->models ? &evaluation : NULL;
    const bz_findings found = {a->item, a->n, e, a->recording, a->n_recordings};
    if ((o->dot || o->svg) && a->n != 1)
        return bz_fail(err, BZ_USAGE, "--dot and --svg draw one model on one system, not %d", a->n);
    if ((o->dot || o->svg) && a->item->bound.rebuilt)
        return bz_fail(err, BZ_USAGE, "--dot and --svg draw a model's graph: name a model");
    if ((o->csv || o->models) && !a->n)
        return bz_fail(err, BZ_USAGE, "--csv has a row per layer, and there is no model: name one, or take --json");
    if (e)
        bz_evaluation_make(a->item, a->n, &a->arena, e);
    if (((o->dot || o->svg) && draw(a->item, o, err)) || (o->html && write_page(&found, o->html, err)))
        return -1;
    if (o->json)
        bz_report_json(&found, out);
    else if (o->csv && o->models)
        bz_report_evaluation_csv(a->item, e, out);
    else if (o->csv)
        bz_report_csv(a->item, a->n, out);
    else
        put_text(&found, out);
    return 0;
}

void analyses_free(analyses *a)
{
    free(a->item);
    bz_arena_free(&a->arena);
}
