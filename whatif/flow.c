/* The graph and the primitives that change it. */
#include "whatif/whatif.h"

#include "base/sort.h"
#include "whatif/constants.h"

#include <stdlib.h>

static const char *const KIND_NAMES[BZ_TASK_KINDS] = {"host", "call",          "kernel", "copy",
                                                      "sync", "communication", "load",   "end"};
static const char *const PHASE_NAMES[BZ_PHASES] = {"none", "forward", "backward", "update"};
static const char *const DEPENDS_NAMES[BZ_DEPENDENCIES] = {"host", "stream", "launch", "sync", "communication"};

const char *bz_task_kind_name(bz_task_kind kind)
{
    return KIND_NAMES[kind];
}

const char *bz_phase_name(bz_phase phase)
{
    return PHASE_NAMES[phase];
}

const char *bz_depends_name(bz_depends kind)
{
    return DEPENDS_NAMES[kind];
}

static int64_t length(int64_t duration)
{
    return duration < 0 ? 0 : duration > BZ_FLOW_LONGEST ? BZ_FLOW_LONGEST : duration;
}

uint32_t bz_flow_add_lane(bz_flow *flow, const char *name, bool device, bool channel)
{
    BZ_ADD(flow->lane, flow->n_lanes) = (bz_flow_lane){.name = bz_arena_str(&flow->arena, name),
                                                       .first = BZ_NONE,
                                                       .last = BZ_NONE,
                                                       .lane = BZ_NONE,
                                                       .device = device,
                                                       .channel = channel};
    return flow->n_lanes - 1;
}

uint32_t bz_flow_add_layer(bz_flow *flow, const char *name)
{
    BZ_ADD(flow->layer, flow->n_layers) = name;
    return flow->n_layers - 1;
}

uint32_t bz_flow_find_lane(const bz_flow *flow, const char *name)
{
    for (uint32_t i = 0; i < flow->n_lanes; i++)
        if (!strcmp(flow->lane[i].name, name))
            return i;
    return BZ_NONE;
}

/* Puts a task into the list of its lane: behind `after`, or first. */
static void link_task(bz_flow *flow, uint32_t task, uint32_t lane, uint32_t after)
{
    bz_task *t = &flow->task[task];
    bz_flow_lane *l = &flow->lane[lane];
    t->lane = lane;
    t->prev = t->next = BZ_NONE;
    if (l->channel)
        return;
    t->prev = after;
    t->next = after == BZ_NONE ? l->first : flow->task[after].next;
    if (t->prev == BZ_NONE)
        l->first = task;
    else
        flow->task[t->prev].next = task;
    if (t->next == BZ_NONE)
        l->last = task;
    else
        flow->task[t->next].prev = task;
}

static void unlink_task(bz_flow *flow, uint32_t task)
{
    bz_task *t = &flow->task[task];
    bz_flow_lane *l = &flow->lane[t->lane];
    if (l->channel)
        return;
    if (t->prev == BZ_NONE)
        l->first = t->next;
    else
        flow->task[t->prev].next = t->next;
    if (t->next == BZ_NONE)
        l->last = t->prev;
    else
        flow->task[t->next].prev = t->prev;
    t->prev = t->next = BZ_NONE;
}

static uint32_t new_task(bz_flow *flow, bz_task_kind kind, const char *name, int64_t duration, int64_t gap)
{
    BZ_ADD(flow->task, flow->n) = (bz_task){.name = name,
                                            .duration = length(duration),
                                            .was = length(duration),
                                            .gap = length(gap),
                                            .at = -1,
                                            .in = BZ_NONE,
                                            .out = BZ_NONE,
                                            .event = BZ_NONE,
                                            .call = BZ_NONE,
                                            .layer = BZ_NONE,
                                            .kind = (uint8_t)kind};
    return flow->n - 1;
}

uint32_t bz_flow_add(bz_flow *flow, bz_task_kind kind, const char *name, uint32_t lane, int64_t duration, int64_t gap)
{
    uint32_t task = new_task(flow, kind, *name ? bz_arena_str(&flow->arena, name) : "", duration, gap);
    link_task(flow, task, lane, flow->lane[lane].last);
    return task;
}

uint32_t bz_flow_insert(bz_flow *flow, bz_task_kind kind, const char *name, uint32_t like, bz_insert where,
                        int64_t duration, int64_t gap)
{
    uint32_t task = new_task(flow, kind, bz_arena_str(&flow->arena, name), duration, gap);
    const bz_task *t = &flow->task[like];
    flow->task[task].layer = t->layer;
    flow->task[task].phase = t->phase;
    link_task(flow, task, t->lane, where == BZ_BEFORE ? t->prev : like);
    return task;
}

void bz_flow_launch(bz_flow *flow, const char *name, uint32_t behind, uint32_t task)
{
    if (behind == BZ_NONE)
        return;
    uint32_t call = bz_flow_insert(flow, BZ_TASK_HOST, name, behind, BZ_BEHIND, flow->launch_cost, flow->launch_gap);
    bz_flow_depend(flow, call, task, BZ_DEPENDS_LAUNCH, flow->launch_lag);
}

uint32_t bz_flow_insert_launched(bz_flow *flow, bz_task_kind kind, const char *name, uint32_t after, int64_t duration)
{
    uint32_t task = bz_flow_insert(flow, kind, name, after, BZ_BEHIND, duration, flow->task[after].gap);
    bz_flow_launch(flow, "launch", bz_flow_launch_of(flow, after), task);
    return task;
}

uint32_t bz_flow_depend(bz_flow *flow, uint32_t from, uint32_t to, bz_depends kind, int64_t lag)
{
    if (from == to)
        return BZ_NONE;
    uint32_t e = flow->n_edges;
    int64_t bounded = lag > BZ_FLOW_LONGEST ? BZ_FLOW_LONGEST : lag < -BZ_FLOW_LONGEST ? -BZ_FLOW_LONGEST : lag;
    BZ_ADD(flow->edge, flow->n_edges) = (bz_flow_edge){.from = from,
                                                       .to = to,
                                                       .next_out = flow->task[from].out,
                                                       .next_in = flow->task[to].in,
                                                       .lag = bounded,
                                                       .kind = (uint8_t)kind};
    flow->task[from].out = flow->task[to].in = e;
    return e;
}

/* Takes an edge out of the list that begins at *head. */
static void drop(bz_flow *flow, uint32_t *head, uint32_t edge, bool in)
{
    for (uint32_t *at = head; *at != BZ_NONE; at = in ? &flow->edge[*at].next_in : &flow->edge[*at].next_out)
        if (*at == edge) {
            *at = in ? flow->edge[edge].next_in : flow->edge[edge].next_out;
            return;
        }
}

void bz_flow_depend_as(bz_flow *flow, uint32_t from, uint32_t to, bz_depends kind, int64_t lag, bool wraps)
{
    uint32_t e = bz_flow_depend(flow, from, to, kind, lag);
    if (e != BZ_NONE)
        flow->edge[e].wraps = wraps;
}

/* Whoever waited for the task waits for what it waited for: parents times children. */
static void bridge(bz_flow *flow, uint32_t task)
{
    uint32_t prev = flow->task[task].prev, next = flow->task[task].next;
    for (uint32_t i = flow->task[task].in; i != BZ_NONE; i = flow->edge[i].next_in) {
        const bz_flow_edge in = flow->edge[i];
        bool launch = in.kind == BZ_DEPENDS_LAUNCH;
        for (uint32_t o = flow->task[task].out; o != BZ_NONE; o = flow->edge[o].next_out)
            if (launch || flow->edge[o].kind != BZ_DEPENDS_LAUNCH)
                bz_flow_depend_as(flow, in.from, flow->edge[o].to, (bz_depends)in.kind, in.lag,
                                  in.wraps || flow->edge[o].wraps);
        if (next != BZ_NONE && !launch)
            bz_flow_depend_as(flow, in.from, next, (bz_depends)in.kind, in.lag, in.wraps);
    }
    for (uint32_t o = flow->task[task].out; o != BZ_NONE && prev != BZ_NONE; o = flow->edge[o].next_out) {
        const bz_flow_edge out = flow->edge[o];
        if (out.kind != BZ_DEPENDS_LAUNCH)
            bz_flow_depend_as(flow, prev, out.to, (bz_depends)out.kind, out.lag, out.wraps);
    }
}

static void cut_edges(bz_flow *flow, uint32_t task)
{
    for (uint32_t in = flow->task[task].in; in != BZ_NONE; in = flow->edge[in].next_in)
        drop(flow, &flow->task[flow->edge[in].from].out, in, false);
    for (uint32_t out = flow->task[task].out; out != BZ_NONE; out = flow->edge[out].next_out)
        drop(flow, &flow->task[flow->edge[out].to].in, out, true);
    flow->task[task].in = flow->task[task].out = BZ_NONE;
}

static uint64_t degree(const bz_flow *flow, uint32_t edge, bool in)
{
    uint64_t n = 1;
    for (; edge != BZ_NONE; edge = in ? flow->edge[edge].next_in : flow->edge[edge].next_out)
        n++;
    return n;
}

/* A task with many on both sides is not bridged, which would be an edge for each pair: it stays, takes no time, and is on no
 * thread or stream. */
static void make_passage(bz_flow *flow, uint32_t task)
{
    uint32_t lane = bz_flow_find_lane(flow, "passages"), prev = flow->task[task].prev, next = flow->task[task].next;
    if (lane == BZ_NONE)
        lane = bz_flow_add_lane(flow, "passages", false, true);
    unlink_task(flow, task);
    link_task(flow, task, lane, BZ_NONE);
    if (prev != BZ_NONE)
        bz_flow_depend(flow, prev, task, BZ_DEPENDS_HOST, 0);
    if (next != BZ_NONE)
        bz_flow_depend(flow, task, next, BZ_DEPENDS_HOST, 0);
    flow->task[task].duration = flow->task[task].was = flow->task[task].gap = 0;
    flow->task[task].kind = BZ_TASK_END;
}

void bz_flow_remove(bz_flow *flow, uint32_t task, bool keep_gap)
{
    bz_task *t = &flow->task[task];
    if (t->removed)
        return;
    if (degree(flow, t->in, true) * degree(flow, t->out, false) > BRIDGE) {
        make_passage(flow, task);
        return;
    }
    bridge(flow, task);
    cut_edges(flow, task);
    t = &flow->task[task];
    int64_t stays = bz_flow_sum(t->late, keep_gap ? t->gap : 0); /* nobody knows that the lane was late for this one */
    if (t->prev != BZ_NONE && stays)
        flow->task[t->prev].gap = length(bz_flow_sum(flow->task[t->prev].gap, stays));
    int64_t before = bz_flow_sum(t->not_before, stays);
    if (t->next != BZ_NONE && t->prev == BZ_NONE && before > flow->task[t->next].not_before)
        flow->task[t->next].not_before = before; /* what the lane did before its first task it does still */
    unlink_task(flow, task);
    t->removed = true;
}

bool bz_flow_launches(const bz_flow *flow, uint32_t task)
{
    for (uint32_t e = flow->task[task].out; e != BZ_NONE; e = flow->edge[e].next_out)
        if (flow->edge[e].kind == BZ_DEPENDS_LAUNCH)
            return true;
    return false;
}

uint32_t bz_flow_launch_of(const bz_flow *flow, uint32_t task)
{
    for (uint32_t in = flow->task[task].in; in != BZ_NONE; in = flow->edge[in].next_in)
        if (flow->edge[in].kind == BZ_DEPENDS_LAUNCH)
            return flow->edge[in].from;
    return BZ_NONE;
}

void bz_flow_remove_launched(bz_flow *flow, uint32_t task, bool keep_gap)
{
    uint32_t launch = bz_flow_launch_of(flow, task), others = 0;
    for (uint32_t out = launch == BZ_NONE ? BZ_NONE : flow->task[launch].out; out != BZ_NONE;
         out = flow->edge[out].next_out)
        others += flow->edge[out].kind == BZ_DEPENDS_LAUNCH && flow->edge[out].to != task;
    bz_flow_remove(flow, task, false);
    if (launch != BZ_NONE && !others)
        bz_flow_remove(flow, launch, keep_gap);
}

static int by_time(const void *a, const void *b, void *context)
{
    const bz_flow *f = *(const bz_flow *const *)context;
    uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;
    return BZ_THEN(BZ_ORDER(f->task[p].at, f->task[q].at), BZ_ORDER(p, q));
}

void bz_flow_in_time(const bz_flow *flow, uint32_t *task, uint32_t n)
{
    if (n)
        qsort_r(task, n, sizeof *task, by_time, &flow);
}

void bz_flow_move_to(bz_flow *flow, uint32_t task, uint32_t lane)
{
    unlink_task(flow, task);
    link_task(flow, task, lane, flow->lane[lane].last);
}

void bz_flow_set(bz_flow *flow, uint32_t task, int64_t duration)
{
    flow->task[task].duration = length(duration);
}

void bz_flow_scale(bz_flow *flow, uint32_t task, double factor)
{
    double d = (double)flow->task[task].duration * factor;
    bz_flow_set(flow, task, d > (double)BZ_FLOW_LONGEST ? BZ_FLOW_LONGEST : d > 0 ? (int64_t)(d + 0.5) : 0);
}

/* The memory of an earlier copy, or more, with what is copied. Room is for as many as BZ_ADD has made some for. */
static void *refill(void *array, uint32_t had, const void *from, uint32_t n, size_t size)
{
    size_t room = 4;
    while (room < n)
        room *= 2;
    if (!array || had <= room / 2) {
        free(array);
        array = bz_alloc(room, size);
    }
    if (n)
        memcpy(array, from, n * size);
    return array;
}

void bz_flow_copy(const bz_flow *flow, bz_flow *out)
{
    bz_flow old = *out;
    bz_arena_free(&old.arena);
    *out = *flow;
    out->arena = (bz_arena){0};
    out->task = refill(old.task, old.n, flow->task, flow->n, sizeof *out->task);
    out->edge = refill(old.edge, old.n_edges, flow->edge, flow->n_edges, sizeof *out->edge);
    out->lane = refill(old.lane, old.n_lanes, flow->lane, flow->n_lanes, sizeof *out->lane);
    out->layer = refill(old.layer, old.n_layers, flow->layer, flow->n_layers, sizeof *out->layer);
}

void bz_flow_free(bz_flow *flow)
{
    free(flow->task);
    free(flow->edge);
    free(flow->lane);
    free(flow->layer);
    bz_arena_free(&flow->arena);
    *flow = (bz_flow){0};
}
