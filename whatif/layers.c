/* Which task of a processor's recording did which layers of the model, and what was done between tasks. The alignment says which call
 * or operator did a layer. Layers that none did lie between the two tasks around them; that time, less what the framework takes between any
 * two calls, is shared by them in the ratio of the bytes that they move, since what a framework does itself is what moves bytes. */
#include "base/sort.h"
#include "whatif/constants.h"
#include "whatif/ways.h"

#include <math.h>
#include <stdlib.h>

bool bz_layer_is_reorder(const bz_task *t)
{
    return t->kind == BZ_TASK_CALL && t->event_kind == BZ_EVENT_CALL && t->event != BZ_NONE &&
           !strcmp(t->name, "reorder");
}

double bz_layer_hidden(const bz_layer_map *map, const bz_layer_place *place, double *seconds)
{
    const bz_picks *picks = bz_way_own_picks(map->asked->model, BZ_UNDEFINED);
    const bz_pick *pick = picks ? &picks->free[place->layer[0]] : NULL;
    const bz_layer *l = bz_way_layer(map->asked, place, 0)->layer;
    const bz_task *t = place->task == BZ_NONE ? NULL : &map->flow->task[place->task];
    *seconds = 0;
    if (!t || t->event_kind != BZ_EVENT_OP || !bz_name_matches("mkldnn_convolution", t->name) || !pick || !l->n_in ||
        !(pick->seconds > 0) || !pick->variant || strstr(pick->variant, "gemm") || !l->n_out)
        return 0;
    *seconds = 1e-9 * (double)place->time - pick->seconds * map->asked->busy;
    return pick->weights + pick->data + bz_peaks_bytes(l, &l->out[0], BZ_UNDEFINED);
}

/* In seconds; nearest in size is the operator whose input and result are, half of its data in the mean. How much of the memory will be handed out anew, once
 * other tensors are left out, nobody knows: between none, as the machine was measured, and as much as now. */
static double hidden_reorder(const bz_layer_map *map, double bytes, double machine)
{
    double nearest = INFINITY, time = 0;
    for (int i = 0; i < map->n && map->asked->side; i++) {
        const bz_layer *l = bz_way_layer(map->asked, &map->place[i], 0)->layer;
        double seconds,
            own = bz_layer_hidden(map, &map->place[i], &seconds),
            result = l->n_out ? bz_peaks_bytes(l, &l->out[0], BZ_UNDEFINED) : 0,
            far = own > 0 ? fabs(log((bz_peaks_bytes(l, &l->in[0], BZ_UNDEFINED) + result) / 2 / bytes)) : INFINITY;
        if (far < nearest) {
            nearest = far;
            time = seconds * bytes / own;
        }
    }
    if (map->asked->side == 1)
        return map->keeps_memory && machine > 0 ? machine : (machine + fmax(machine, time)) / 2;
    return fmax(machine, time);
}

int64_t bz_layer_reorder(const bz_layer_map *map, double bytes)
{
    double nearest = INFINITY, time = 0,
           machine = bz_peaks_reorder(map->asked->model->bound->peaks, bytes / sizeof(float), BZ_F32);
    for (uint32_t i = 0; i < map->n_tasks; i++) {
        if (!bz_layer_is_reorder(&map->flow->task[i]))
            continue;
        double own = bz_call_bytes(bz_call_of(map->asked->trace, map->flow->task[i].event));
        double far = own > 0 ? fabs(log(own / bytes)) : INFINITY;
        if (far < nearest) {
            nearest = far;
            time = (double)map->flow->task[i].was * bytes / own;
        }
    }
    if (!isfinite(nearest))
        return bz_layer_ns(hidden_reorder(map, bytes, machine));
    bool kept = map->asked->side == 0 || (map->asked->side == 1 && map->keeps_memory);
    return bz_layer_ns(kept && machine > 0 ? fmin(machine, 1e-9 * time) : 1e-9 * time);
}

/* [events of the kind]: the task. */
static uint32_t *tasks_of(const bz_layer_map *map, bz_event_kind kind)
{
    size_t n = map->asked->trace->event[kind].n;
    uint32_t *of = BZ_NEW_NONE(map->asked->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < map->flow->n; i++)
        if (map->flow->task[i].event_kind == kind && map->flow->task[i].event < n &&
            map->flow->task[i].kind == BZ_TASK_CALL)
            of[map->flow->task[i].event] = i;
    return of;
}

/* Likewise of operators. A layer is the outermost one that is known, aten::conv2d, and the task the one in it that does the work,
 * aten::mkldnn_convolution: the longest task within an operator that is none itself stands for it. */
static uint32_t *tasks_of_operators(const bz_layer_map *map)
{
    const bz_flow *flow = map->flow;
    const bz_events *op = &map->asked->trace->event[BZ_EVENT_OP];
    uint32_t *of = tasks_of(map, BZ_EVENT_OP), *within = BZ_NEW_NONE(map->asked->arena, uint32_t, op->n + 1);
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *task = &flow->task[i];
        if (task->event_kind != BZ_EVENT_OP || task->event >= op->n || of[task->event] != i)
            continue;
        for (uint32_t o = op->op[task->event]; o < op->n; o = op->op[o])
            if (within[o] == BZ_NONE || flow->task[within[o]].duration < task->duration)
                within[o] = i;
    }
    for (size_t o = 0; o < op->n; o++)
        of[o] = of[o] == BZ_NONE ? within[o] : of[o];
    return of;
}

/* The tasks of these operators, as far as they are some. */
static uint32_t *tasks_among(const bz_whatif_asked *asked, const uint32_t *of_op, const uint32_t *list, int n,
                             uint32_t *found)
{
    uint32_t *task = BZ_NEW(asked->arena, uint32_t, n + 1);
    for (int i = 0; i < n; i++)
        if (list[i] < asked->trace->event[BZ_EVENT_OP].n && of_op[list[i]] != BZ_NONE)
            task[(*found)++] = of_op[list[i]];
    return task;
}

static void add_places(bz_layer_map *map)
{
    const bz_whatif_asked *asked = map->asked;
    const bz_alignment *a = asked->model->alignment;
    const bz_trace *t = asked->trace;
    uint32_t *call = tasks_of(map, BZ_EVENT_CALL), *op = tasks_of_operators(map);
    uint32_t last = BZ_NONE;
    map->place = BZ_NEW(asked->arena, bz_layer_place, a->n + 1);
    map->works = BZ_NEW(asked->arena, bool, map->flow->n + 1);
    map->n_tasks = map->flow->n;
    for (int i = 0; i < a->n; i++) {
        const bz_aligned *row = &a->row[i];
        uint32_t task = row->at < t->event[BZ_EVENT_CALL].n ? call[row->at]
                        : row->op < t->event[BZ_EVENT_OP].n ? op[row->op]
                                                            : BZ_NONE;
        if (!row->n_layers || (row->kind != BZ_ALIGNED_MISSING && row->kind != BZ_ALIGNED_SPARED && task == BZ_NONE))
            continue;
        map->place[map->n++] = (bz_layer_place){row->layer, row->n_layers, row, task, last, 0, 1};
        if (task != BZ_NONE) {
            last = task;
            map->works[task] = true;
        }
    }
    map->constant = tasks_among(asked, op, a->constant, a->n_constants, &map->n_constants);
    map->normalized = tasks_among(asked, op, a->normalized, a->n_normalized, &map->n_normalized);
}

static bool works(const bz_layer_map *map, uint32_t task)
{
    return task < map->n_tasks && map->works[task]; /* inserted ones are behind them */
}

static int64_t above_call(const bz_layer_map *map, const bz_task *t)
{
    return t->gap > map->call[1] ? t->gap - map->call[1] : 0;
}

/* Time between tasks from this one on to the next that does layers, above what any call has behind it. */
static int64_t between(const bz_layer_map *map, uint32_t behind)
{
    int64_t sum = 0;
    for (uint32_t i = behind; i != BZ_NONE && (i == behind || !works(map, i)); i = map->flow->task[i].next)
        sum = bz_flow_sum(sum, above_call(map, &map->flow->task[i]));
    return sum;
}

/* Places between the same two tasks: [from, end). */
static int same_time(const bz_layer_map *map, int from)
{
    int end = from;
    while (end < map->n && map->place[end].task == BZ_NONE && map->place[end].behind == map->place[from].behind)
        end++;
    return end;
}

/* The time behind each call. The first quarter is that of calls which follow each other at once, as a reorder and its convolution do; behind
 * others the framework does layers of its own. */
static void find_call(bz_layer_map *map)
{
    const bz_flow *flow = map->flow;
    int64_t *gap = BZ_NEW(map->asked->arena, int64_t, flow->n + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < flow->n; i++)
        if (flow->task[i].kind == BZ_TASK_CALL && flow->task[i].next != BZ_NONE &&
            flow->task[flow->task[i].next].kind == BZ_TASK_CALL)
            gap[n++] = flow->task[i].gap;
    if (!n)
        return;
    bz_sort_times(gap, n);
    map->call[0] = gap[0];
    map->call[1] = gap[(n - 1) / 4];
    map->call[2] = gap[(n - 1) / 2];
}

/* What a byte costs in the time between two tasks that layers of a kind lie in. */
typedef struct {
    const char *kind;
    double rate;
} kind_rate;

BZ_SORTS(by_kind_and_rate, kind_rate, BZ_THEN(strcmp(p->kind, q->kind), BZ_ORDER(p->rate, q->rate)));

/* The median of the kind's; the list is sorted. */
static double rate_of(const kind_rate *list, size_t n, const char *kind)
{
    size_t from = 0, end = n, to, behind = n;
    BZ_FIND_FIRST(from, end, at, strcmp(list[at].kind, kind) < 0)
    to = from;
    BZ_FIND_FIRST(to, behind, at, !strcmp(list[at].kind, kind))
    return from < to ? list[from + (to - from - 1) / 2].rate : 0;
}

static const bz_layer *first_of(const bz_layer_map *map, const bz_layer_place *place)
{
    return bz_way_layer(map->asked, place, 0)->layer;
}

/* Times between tasks of which layers are known: [from, end) of the map's places; *from is behind the last one found. */
static bool next_between(const bz_layer_map *map, int *from, int *end)
{
    while (*from < map->n && (map->place[*from].task != BZ_NONE || map->place[*from].behind == BZ_NONE))
        ++*from;
    *end = *from < map->n ? same_time(map, *from) : *from;
    return *from < map->n;
}

/* A framework may take many times as long for a byte of one kind as of another, as PyTorch for pools: kinds that lie together are told apart by what they
 * take where they lie with others. */
static kind_rate *find_rates(const bz_layer_map *map, size_t *n)
{
    kind_rate *list = BZ_NEW(map->asked->arena, kind_rate, map->n + 1);
    *n = 0;
    for (int i = 0, end; next_between(map, &i, &end); i = end) {
        double bytes = 0, work = (double)between(map, map->place[i].behind);
        for (int k = i; k < end; k++)
            bytes += bz_peaks_bytes(first_of(map, &map->place[k]), NULL, BZ_UNDEFINED);
        for (int k = i; k < end && bytes > 0; k++)
            list[(*n)++] = (kind_rate){first_of(map, &map->place[k])->kind, work / bytes};
    }
    BZ_QSORT(list, *n, by_kind_and_rate);
    return list;
}

static void share_time(bz_layer_map *map)
{
    size_t n;
    const kind_rate *rates = find_rates(map, &n);
    double *cost = BZ_NEW(map->asked->arena, double, map->n + 1);
    for (int i = 0; i < map->n; i++)
        if (map->place[i].task != BZ_NONE)
            map->place[i].time = map->flow->task[map->place[i].task].duration;
    for (int i = 0, end; next_between(map, &i, &end); i = end) {
        double work = (double)between(map, map->place[i].behind), sum = 0;
        for (int k = i; k < end; k++)
            sum += cost[k] = bz_peaks_bytes(first_of(map, &map->place[k]), NULL, BZ_UNDEFINED) *
                             rate_of(rates, n, first_of(map, &map->place[k])->kind);
        for (int k = i; k < end; k++)
            map->place[k].time = (int64_t)(sum > 0 ? work * cost[k] / sum : work / (end - i));
    }
}

/* Of a product of each step of a recurrent layer, as of that of each image of a convolution. */
static void find_shares(bz_layer_map *map)
{
    int64_t *sum = BZ_NEW(map->asked->arena, int64_t, map->asked->model->bound->n + 1);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < map->n; i++) {
            bz_layer_place *place = &map->place[i];
            int64_t *all = &sum[place->layer[0]];
            if (place->row->kind != BZ_ALIGNED_SPLIT)
                continue;
            if (!round)
                *all = bz_flow_sum(*all, place->time);
            else if (*all > 0)
                place->share = (double)place->time / (double)*all;
        }
}

static const bz_regret_row *find_record(const bz_whatif_asked *asked, const bz_aligned *row)
{
    const bz_regret *r = asked->model->regret;
    for (int i = 0; r && row && row->problem && i < r->n; i++)
        if (r->row[i].used > 0 && r->row[i].seen > 0 && !strcmp(r->row[i].problem, row->problem) &&
            !strcmp(r->row[i].variant, row->variant ? row->variant : ""))
            return &r->row[i];
    return NULL;
}

/* Records that were given up early price no regret, but they are of the variant that the program uses: the library's pick tells them. */
static double record_of(const bz_whatif_asked *asked, const bz_layer_place *place)
{
    const bz_whatif_model *m = asked->model;
    const bz_regret_row *row = find_record(asked, place->row);
    if (row)
        return row->used;
    for (int i = 0; i < m->n_picks && place->n == 1 && place->row->variant; i++) {
        const bz_pick *pick = &m->picks[i].free[place->layer[0]];
        if (!m->picks[i].dtype && pick->seconds > 0 && pick->variant &&
            bz_variant_used(place->row->variant, pick->variant))
            return pick->seconds;
    }
    return NAN;
}

double bz_layer_slower(const bz_layer_map *map, const bz_layer_place *place)
{
    double record = place->task == BZ_NONE ? NAN : record_of(map->asked, place);
    return record > 0 ? 1e-9 * (double)place->time / record : map->slower;
}

static void find_slower(bz_layer_map *map)
{
    double seen = 0, used = 0;
    for (int i = 0; i < map->n; i++) {
        double record = map->place[i].task == BZ_NONE ? NAN : record_of(map->asked, &map->place[i]);
        if (record > 0) {
            seen += 1e-9 * (double)map->place[i].time;
            used += record;
        }
    }
    map->slower = used > 0 ? seen / used : map->asked->busy;
}

/* Where others used the machine some iterations are much slower than others, all that they do alike. Records are made while nobody does: in such an
 * iteration, what they say takes as much longer. */
static double find_busy(const bz_trace *t, const bz_flow *flow, bz_arena *arena)
{
    uint32_t n;
    const int64_t *v = bz_whatif_steady(t, arena, &n);
    if (!n || flow->iteration >= t->n_iterations)
        return 1;
    int64_t quick = v[(n - 1) / 4];
    return quick > 0 ? fmax(1, (double)bz_iteration_latency(t, flow->iteration) / (double)quick) : 1;
}

/* All weights, and what the largest layer moves: a framework takes the memory of one layer's data for the next. */
static double bytes_between(const bz_layers *layers)
{
    double weights = 0, most = 0;
    for (int i = 0; i < layers->n; i++) {
        const bz_layer *l = &layers->layer[i];
        for (int k = 0; k < l->n_in; k++)
            weights += l->in_constant[k] ? bz_peaks_bytes(l, &l->in[k], BZ_UNDEFINED) : 0;
        most = fmax(most, bz_peaks_bytes(l, NULL, BZ_UNDEFINED));
    }
    return weights + most;
}

static double written(const bz_layer *l)
{
    double sum = 0;
    for (int k = 0; k < l->n_out; k++)
        sum += bz_peaks_bytes(l, &l->out[k], BZ_UNDEFINED);
    return sum;
}

double bz_whatif_anew(const bz_trace *t, double *pages, double *spared)
{
    double taken = fmin(bz_trace_anew(t, pages), 1);
    *spared = taken * (1 + ANEW_ROBS * (1 - taken));
    return taken;
}

/* Layers write their results, and reorders as much as they read. */
static double find_anew(const bz_layer_map *map)
{
    const bz_trace *t = map->asked->trace;
    const bz_layers *layers = map->asked->model->bound->layers;
    double pages, spared, sum = 0;
    bz_whatif_anew(t, &pages, &spared);
    for (int i = 0; i < layers->n; i++)
        sum += written(&layers->layer[i]);
    for (uint32_t i = 0; i < map->flow->n; i++)
        sum += bz_layer_is_reorder(&map->flow->task[i]) ? bz_call_bytes(bz_call_of(t, map->flow->task[i].event)) : 0;
    return sum > 0 ? spared * (double)map->flow->measured / sum : 0;
}

int64_t bz_layer_anew(const bz_layer_map *map, const bz_layer_place *place)
{
    double bytes = 0;
    for (int k = 0; k < place->n; k++)
        bytes += written(bz_way_layer(map->asked, place, k)->layer);
    return (int64_t)fmin(map->anew * bytes, (double)place->time);
}

bool bz_layer_map_make(bz_flow *flow, bz_whatif_asked *asked, bz_layer_map *out)
{
    const bz_whatif_model *m = asked->model;
    asked->busy = find_busy(asked->trace, flow, asked->arena);
    *out = (bz_layer_map){.flow = flow, .asked = asked, .slower = 1};
    for (uint32_t i = 0; i < flow->n_lanes; i++)
        if (flow->lane[i].device && flow->lane[i].first != BZ_NONE) {
            bz_whatif_because(asked, "it is for recordings of a processor, and a device has worked here");
            return false;
        }
    if (!m || !m->bound->n || !m->alignment || !m->alignment->timeline) {
        bz_whatif_because(asked, "it needs the model: 'benanza analyze MODEL --profile RECORDING' asks with it");
        return false;
    }
    asked->between = bytes_between(m->bound->layers);
    add_places(out);
    find_call(out);
    share_time(out);
    find_shares(out);
    find_slower(out);
    out->anew = find_anew(out);
    if (!out->n)
        bz_whatif_because(asked, "no task of the recording did a layer of the model");
    return out->n > 0;
}

/* Each of the times between tasks loses its share. */
static void shrink(const bz_layer_map *map, uint32_t behind, int64_t less)
{
    double all = (double)between(map, behind),
           left = all > 0 ? fmax(0, 1 - (double)less / all) : 1; /* above 1: it grows */
    for (uint32_t i = behind; i != BZ_NONE && (i == behind || !works(map, i)); i = map->flow->task[i].next)
        map->flow->task[i].gap -= (int64_t)((double)above_call(map, &map->flow->task[i]) * (1 - left));
}

void bz_layer_set(const bz_layer_map *map, const bz_layer_place *place, int64_t time)
{
    if (place->task != BZ_NONE)
        bz_flow_set(map->flow, place->task, time);
    else if (place->behind != BZ_NONE)
        shrink(map, place->behind, place->time - time);
}

void bz_layer_call(const bz_layer_map *map, bz_layer_place *place, int64_t time, int64_t gap)
{
    if (place->task != BZ_NONE) {
        bz_flow_set(map->flow, place->task, time);
        return;
    }
    uint32_t at = place->behind; /* where there is none, before the first */
    bz_insert where = at == BZ_NONE ? BZ_BEFORE : BZ_BEHIND;
    for (int i = 0; i < map->n && at == BZ_NONE; i++)
        at = map->place[i].task;
    if (at != BZ_NONE)
        place->task = bz_flow_insert(map->flow, BZ_TASK_CALL, first_of(map, place)->name, at, where, time, gap);
}
