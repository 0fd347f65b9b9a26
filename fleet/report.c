/* What a night brought: nodes that deviate, and what became faster or slower. */
#include "base/sort.h"
#include "fleet/fleet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- nodes ---------------------------------------------------------------------------------- */

typedef struct node_time {
    const char *node;
    double seconds;
} node_time;

BZ_SORTS(by_time, node_time, BZ_THEN(BZ_ORDER(p->seconds, q->seconds), strcmp(p->node, q->node)));

/* A node counts once, by its best run: what is slow there now and then was other people's work. */
static int best_of_nodes(const bz_attempt *const *attempt, int n, int yardstick, node_time *out)
{
    int nodes = 0;
    for (int i = 0; i < n; i++) {
        double t = attempt[i]->yardstick[yardstick];
        int k = 0;
        if (isnan(t))
            continue;
        while (k < nodes && strcmp(out[k].node, attempt[i]->node) != 0)
            k++;
        if (k == nodes)
            out[nodes++] = (node_time){attempt[i]->node, t};
        else if (t < out[k].seconds)
            out[k].seconds = t;
    }
    if (nodes)
        qsort(out, (size_t)nodes, sizeof *out, by_time);
    return nodes;
}

static void add_throttled(const char *kind, const bz_attempt *const *attempt, int n, bz_deviation *list, int *n_out)
{
    int first = *n_out;
    for (int i = 0; i < n; i++) {
        int k = first;
        if (!attempt[i]->throttled)
            continue;
        while (k < *n_out && strcmp(list[k].node, attempt[i]->node) != 0)
            k++;
        if (k == *n_out)
            list[(*n_out)++] = (bz_deviation){
                .kind = kind, .node = attempt[i]->node, .what = "throttled", .seconds = NAN, .peers = NAN};
        list[k].throttled += attempt[i]->throttled;
        list[k].records += attempt[i]->records;
    }
}

void bz_deviations_make(const char *kind, const bz_attempt *const *attempt, int n, double least, bz_arena *arena,
                        bz_deviation **out, int *n_out)
{
    node_time *time = bz_alloc((size_t)n + 1, sizeof *time);
    bz_deviation *list = BZ_NEW(arena, bz_deviation, n * (BZ_YARDSTICKS + 1));
    *n_out = 0;
    for (int y = 0; y < BZ_YARDSTICKS; y++) {
        int nodes = best_of_nodes(attempt, n, y, time);
        if (nodes < 2)
            continue;
        double peers = time[(nodes - 1) / 2].seconds; /* of two, the faster one */
        for (int i = 0; i < nodes; i++)
            if (time[i].seconds > peers * (1 + least))
                list[(*n_out)++] = (bz_deviation){.kind = kind,
                                                  .node = time[i].node,
                                                  .what = bz_yardsticks[y].problem,
                                                  .seconds = time[i].seconds,
                                                  .peers = peers};
    }
    add_throttled(kind, attempt, n, list, n_out);
    *out = list;
    free(time);
}

/* ---- changes -------------------------------------------------------------------------------- */

static double ratio(const bz_change_row *r)
{
    return r->after.seconds / r->before.seconds;
}

bool bz_change_regressed(const bz_change_row *row, double tolerance)
{
    return row->verdict == BZ_SLOWER && ratio(row) > 1 + tolerance;
}

bool bz_change_improved(const bz_change_row *row, double tolerance)
{
    return row->verdict == BZ_FASTER && ratio(row) < 1 / (1 + tolerance);
}

/* Models before layers; then what became slower first. */
static int worst_first(const void *x, const void *y)
{
    const bz_change_row *a = x, *b = y;
    if (!a->model != !b->model)
        return a->model ? -1 : 1;
    double s = ratio(a), t = ratio(b);
    int order = s > t ? -1 : s < t ? 1 : strcmp(a->kind, b->kind);
    return order ? order : a->model ? strcmp(a->model, b->model) : strcmp(a->what, b->what);
}

static void add_span(bz_span *to, const bz_span *s, double times)
{
    to->seconds += s->seconds * times;
    to->low += s->low * times;
    to->high += s->high * times;
    to->guessed |= s->guessed;
}

/* A layer's share of the bounds of the models that use it. */
static void add_to_models(const bz_plan_layer *layer, const bz_compare_row *row, bz_change_row *models)
{
    for (int m = 0; m < layer->uses.n; m++) {
        bz_change_row *r = &models[layer->uses.model[m]];
        r->of++;
        if (!row)
            continue;
        r->layers++;
        add_span(&r->before, &row->a, (double)layer->uses.times[m]);
        add_span(&r->after, &row->b, (double)layer->uses.times[m]);
    }
}

void bz_changes_make(const char *kind, const bz_side *before, const bz_side *after, const bz_plan *plan,
                     const bz_setting *setting, bz_arena *arena, bz_change_row **out, int *n_out,
                     bz_night_result *counts)
{
    const bz_plan_layer *layer;
    const char *const *model;
    bz_compare c;
    int n = bz_plan_layers(plan, &layer), n_models = bz_plan_models(plan, &model);
    bz_compare_layers(before, after, plan, setting, arena, &c);
    bz_change_row *list = BZ_NEW(arena, bz_change_row, n_models + c.n);
    const bz_compare_row **row_of = BZ_NEW(arena, const bz_compare_row *, n);
    for (int i = 0; i < c.n; i++)
        row_of[c.row[i].layer] = &c.row[i];
    for (int m = 0; m < n_models; m++)
        list[m] = (bz_change_row){.kind = kind, .model = model[m], .times = 1};
    for (int i = 0; i < n; i++)
        if (!layer[i].lowering.free && !layer[i].pattern)
            add_to_models(&layer[i], row_of[i], list);
    int kept = 0;
    for (int m = 0; m < n_models; m++) {
        if (!list[m].layers)
            continue;
        list[m].verdict = bz_verdict_of(&list[m].before, &list[m].after);
        list[kept++] = list[m];
    }
    int rows = kept;
    for (int i = 0; i < c.n; i++) {
        const bz_compare_row *r = &c.row[i];
        if (r->verdict == BZ_FASTER || r->verdict == BZ_SLOWER)
            list[rows++] = (bz_change_row){.kind = kind,
                                           .what = r->what,
                                           .times = r->times,
                                           .before = r->a,
                                           .after = r->b,
                                           .variant_before = r->variant_a,
                                           .variant_after = r->variant_b,
                                           .verdict = r->verdict};
    }
    counts->same = c.count[BZ_SAME];
    counts->faster = c.count[BZ_FASTER];
    counts->slower = c.count[BZ_SLOWER];
    counts->undecided = c.count[BZ_UNDECIDED];
    if (rows)
        qsort(list, (size_t)rows, sizeof *list, worst_first);
    *out = list;
    *n_out = rows;
}
