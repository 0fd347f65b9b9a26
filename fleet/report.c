/* What a night brought: nodes that deviate, and what became faster or slower. */
#include "base/sort.h"
#include "fleet/fleet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct node_time {
    const char *node;
    double seconds;
} node_time;

BZ_SORTS(by_time, node_time, BZ_THEN(BZ_ORDER(p->seconds, q->seconds), strcmp(p->node, q->node)));

/* A node counts once, by its best run: what is slow there now and then was other people's work. */
static int best_of_nodes(const bz_attempt *attempt, int n, int yardstick, node_time *out)
{
    int nodes = 0;
    for (int i = 0; i < n; i++) {
        double t = attempt[i].yardstick[yardstick];
        int k = 0;
        if (isnan(t))
            continue;
        while (k < nodes && strcmp(out[k].node, attempt[i].node) != 0)
            k++;
        if (k == nodes)
            out[nodes++] = (node_time){attempt[i].node, t};
        else if (t < out[k].seconds)
            out[k].seconds = t;
    }
    BZ_QSORT(out, nodes, by_time);
    return nodes;
}

static bz_deviation *add_deviation(bz_arena *arena, bz_fleet_report *out, const char *kind, const char *node,
                                   const char *what)
{
    BZ_ARENA_ROOM(arena, out->deviation, out->n_deviations);
    bz_deviation *d = &out->deviation[out->n_deviations++];
    *d = (bz_deviation){.kind = kind, .node = node, .what = what, .seconds = NAN, .peers = NAN};
    return d;
}

static void add_throttled(const char *kind, const bz_attempt *attempt, int n, bz_arena *arena, bz_fleet_report *out)
{
    int first = out->n_deviations;
    for (int i = 0; i < n; i++) {
        int k = first;
        if (!attempt[i].throttled)
            continue;
        while (k < out->n_deviations && strcmp(out->deviation[k].node, attempt[i].node) != 0)
            k++;
        bz_deviation *is =
            k < out->n_deviations ? &out->deviation[k] : add_deviation(arena, out, kind, attempt[i].node, "throttled");
        is->throttled += attempt[i].throttled;
        is->records += attempt[i].records;
    }
}

void bz_deviations_add(const char *kind, const bz_attempt *attempt, int n, double least, bz_arena *arena,
                       bz_fleet_report *out)
{
    BZ_FREED node_time *time = bz_alloc((size_t)n + 1, sizeof *time);
    for (int y = 0; y < BZ_YARDSTICKS; y++) {
        int nodes = best_of_nodes(attempt, n, y, time);
        if (nodes < 2)
            continue;
        double peers = time[(nodes - 1) / 2].seconds; /* of two, the faster one */
        for (int i = 0; i < nodes; i++)
            if (time[i].seconds > peers * (1 + least)) {
                bz_deviation *is = add_deviation(arena, out, kind, time[i].node, bz_yardsticks[y].problem);
                is->seconds = time[i].seconds;
                is->peers = peers;
            }
    }
    add_throttled(kind, attempt, n, arena, out);
}

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
BZ_SORTS(worst_first, bz_change_row,
         BZ_THEN(BZ_THEN(!p->model - !q->model, BZ_ORDER(ratio(q), ratio(p))),
                 BZ_THEN(strcmp(p->kind, q->kind), p->model ? strcmp(p->model, q->model) : strcmp(p->what, q->what))));

void bz_changes_sort(bz_fleet_report *out)
{
    BZ_QSORT(out->change, out->n_changes, worst_first);
}

static void add_change(bz_arena *arena, bz_fleet_report *out, const bz_change_row *row)
{
    BZ_ARENA_ADD(arena, out->change, out->n_changes) = *row;
    out->regressions += bz_change_regressed(row, out->tolerance);
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

void bz_changes_add(const char *kind, const bz_side *before, const bz_side *after, const bz_plan *plan,
                    const bz_setting *setting, bz_arena *arena, bz_fleet_report *out, bz_night_result *counts)
{
    const bz_plan_layer *layer;
    const char *const *model;
    bz_compare c;
    int n = bz_plan_layers(plan, &layer), n_models = bz_plan_models(plan, &model);
    bz_compare_layers(before, after, plan, setting, arena, &c);
    bz_change_row *models = BZ_NEW(arena, bz_change_row, n_models);
    const bz_compare_row **row_of = BZ_NEW(arena, const bz_compare_row *, n);
    for (int i = 0; i < c.n; i++)
        row_of[c.row[i].layer] = &c.row[i];
    for (int m = 0; m < n_models; m++)
        models[m] = (bz_change_row){.kind = kind, .model = model[m], .times = 1};
    for (int i = 0; i < n; i++)
        if (!layer[i].lowering.free && !layer[i].pattern)
            add_to_models(&layer[i], row_of[i], models);
    for (int m = 0; m < n_models; m++) {
        if (!models[m].layers)
            continue;
        models[m].verdict = bz_verdict_of(&models[m].before, &models[m].after);
        add_change(arena, out, &models[m]);
    }
    for (int i = 0; i < c.n; i++) {
        const bz_compare_row *r = &c.row[i];
        if (r->verdict == BZ_FASTER || r->verdict == BZ_SLOWER)
            add_change(arena, out,
                       &(bz_change_row){.kind = kind,
                                        .what = r->what,
                                        .times = r->times,
                                        .before = r->a,
                                        .after = r->b,
                                        .variant_before = r->variant_a,
                                        .variant_after = r->variant_b,
                                        .verdict = r->verdict});
    }
    counts->same = c.count[BZ_SAME];
    counts->faster = c.count[BZ_FASTER];
    counts->slower = c.count[BZ_SLOWER];
    counts->undecided = c.count[BZ_UNDECIDED];
}
