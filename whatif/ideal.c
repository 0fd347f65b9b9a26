/* Every layer at its bound. With the model of a processor's recording the graph becomes what the bound is of: each layer once, at the price that the
 * bound has for it, whoever did it before. What is left besides is the framework's own time. Without the model library calls take their best
 * record. */
#include "whatif/constants.h"
#include "whatif/layers.h"
#include "whatif/records.h"

#include <math.h>

/* What no layer asks for: kernels that pad or convert, reorders of a processor's library. */
static bool extra(const bz_whatif_asked *asked, const bz_task *t)
{
    const bz_kernel *k = t->kind == BZ_TASK_KERNEL ? bz_whatif_kernel(asked, t) : NULL;
    return k ? k->cause != BZ_CAUSE_NONE : bz_layer_is_reorder(t);
}

static void drop_framework(bz_flow *flow, bz_whatif_asked *asked)
{
    int64_t late = 0;
    for (uint32_t i = 0; i < flow->n; i++) {
        bz_task *t = &flow->task[i];
        late = bz_flow_sum(late, t->removed ? 0 : t->late);
        t->gap = 0;
        t->not_before = t->late = 0;
        if (t->kind == BZ_TASK_HOST || t->kind == BZ_TASK_SYNC || t->kind == BZ_TASK_LOAD)
            bz_flow_set(flow, i, 0);
    }
    for (uint32_t e = 0; e < flow->n_edges; e++)
        flow->edge[e].lag = 0;
    flow->offset = 0;
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the recording",
                     "the host, its launches and all latencies take no time%s",
                     late ? bz_arena_printf(asked->arena, ", nor %s before work of the device that nothing explains",
                                            BZ_SAY_NS(late))
                          : "");
}

/* [bound->n]: seconds of each layer in the bound that the program is held against; a group's first layer has the group's. NAN: none. */
static double *prices(const bz_whatif_asked *asked)
{
    const bz_bound *b = asked->model->bound;
    double *price = BZ_NEW(asked->arena, double, b->n + 1);
    for (int i = 0; i < b->n; i++)
        price[i] = b->layer[i].price.alternative ? b->layer[i].price.seconds * b->layer[i].times : NAN;
    int *group = BZ_NEW(asked->arena, int, b->dag->n + 1);
    for (int g = 0; b->fused.wanted && g < b->fused.n; g++)
        for (int k = 0; k < b->fused.group[g].n; k++)
            group[b->fused.group[g].layer[k]] = g + 1;
    for (int i = 0; i < b->n; i++) {
        int g = group[b->layer[i].node] - 1;
        if (g >= 0)
            price[i] = b->layer[i].node == b->fused.group[g].layer[0] ? b->fused.group[g].price.seconds : 0;
    }
    return price;
}

/* How many layers these are. Places without a price stay: *unpriced. */
static int set_places(bz_layer_map *map, bz_tally *priced, int *unpriced)
{
    int layers = 0;
    double *price = prices(map->asked);
    for (int i = 0; i < map->n; i++) {
        bz_layer_place *place = &map->place[i];
        double seconds = 0;
        for (int k = 0; k < place->n; k++) {
            seconds += price[place->layer[k]];
            layers++;
            if (isfinite(price[place->layer[k]]))
                price[place->layer[k]] = 0; /* several calls did it: once */
        }
        if (!isfinite(seconds)) {
            ++*unpriced;
            continue;
        }
        int64_t after = bz_layer_ns(seconds);
        bz_tally_add(priced, place->time, after);
        if (place->task == BZ_NONE)
            bz_layer_set(map, place, 0);
        bz_layer_call(map, place, after, 0);
    }
    return layers;
}

/* Share of the bound in layers that no task did: operators that consist of others are none. Without them less than the bound would be left. */
static double unplaced(const bz_layer_map *map)
{
    double *price = prices(map->asked), sum[2] = {0, 0};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < map->asked->model->bound->n; i++)
            sum[round] += isfinite(price[i]) ? price[i] : 0;
        for (int i = 0; i < map->n; i++)
            for (int k = 0; k < map->place[i].n; k++)
                price[map->place[i].layer[k]] = 0;
    }
    return sum[0] > 0 ? sum[1] / sum[0] : 0;
}

static int by_model(bz_flow *flow, bz_whatif_asked *asked, bz_layer_map *map, bool framework)
{
    bz_tally priced = {0};
    int unpriced = 0, removed = 0;
    if (unplaced(map) > UNPLACED_MOST)
        return bz_whatif_because(asked, "the recording tells no call or operator of its own for some layers");
    int layers = set_places(map, &priced, &unpriced);
    if (unpriced == map->n)
        return bz_whatif_because(asked, "no layer of the model has a price");
    for (uint32_t i = 0; i < map->n_tasks; i++)
        if (!flow->task[i].removed && flow->task[i].kind == BZ_TASK_CALL && !map->works[i]) {
            bz_flow_remove(flow, i, framework);
            removed++;
        }
    bz_whatif_assume(
        asked, BZ_ASSUMED_MEASURED, asked->model->bound->system,
        "%d layers at the price that the bound has for them: %s become %s; %d calls that no layer asks for go", layers,
        BZ_SAY_TALLY(priced), removed);
    if (unpriced)
        bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, "the recording", "%d without a price take what they took",
                         unpriced);
    if (!framework)
        drop_framework(flow, asked);
    return layers;
}

static int by_calls(bz_flow *flow, bz_whatif_asked *asked, bool framework)
{
    int removed = 0, priced;
    if (!asked->records)
        return bz_whatif_without_records(asked);
    if ((priced = bz_whatif_scale_to_best(flow, asked)) <= 0)
        return priced;
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed && extra(asked, &flow->task[i])) {
            bz_flow_remove_launched(flow, i, framework);
            removed++;
        }
    if (removed)
        bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "names of kernels and calls",
                         "%d kernels or calls that no layer asks for go", removed);
    if (!framework)
        drop_framework(flow, asked);
    return priced + removed;
}

int bz_whatif_ideal(bz_flow *flow, bz_whatif_asked *asked)
{
    bz_layer_map map;
    bool framework = bz_whatif_number(asked, "framework") != 0;
    if (asked->model && bz_layer_map_make(flow, asked, &map))
        return by_model(flow, asked, &map, framework);
    return by_calls(flow, asked, framework);
}

static double simulate(bz_whatif *w, const char *change, bz_arena *arena)
{
    bz_whatif_asked asked;
    bz_error none;
    if (bz_whatif_parse(change, arena, &asked, &none) || bz_whatif_predict(&asked, 1, arena, w, NULL, NULL, &none) ||
        !w->prediction[w->n - 1].changed)
        return NAN;
    return bz_tick(1e-9 * (double)w->prediction[w->n - 1].time);
}

void bz_whatif_ladder(const bz_trace *trace, const bz_whatif_model *model, double *with, double *without)
{
    BZ_SCOPED(bz_arena) arena = {0};
    BZ_SCOPED(bz_flow) flow = {0};
    bz_whatif w;
    bz_error none;
    uint32_t typical = bz_typical_iteration(trace);
    *with = *without = NAN;
    if (bz_bound_goal(model->bound).enough && typical != BZ_NONE && !bz_flow_make(trace, typical, &flow, &none) &&
        !bz_whatif_begin(&flow, &arena, &w, &none) && w.error <= BZ_WHATIF_REFUSE) {
        w.model = model; /* and no records: without the model's layers there is nothing to say */
        *with = simulate(&w, "ideal", &arena);
        *without = simulate(&w, "ideal:framework=0", &arena);
    }
}
