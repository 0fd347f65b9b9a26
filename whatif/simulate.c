/* When each task of a flow starts: earliest start, in the order of time. */
#include "whatif/whatif.h"

#include "whatif/constants.h"

#include <stdlib.h>

/* What may start next: tasks by the time at which all that they wait for is done; behind them, for each channel on which
 * tasks wait, the time at which it is free: number n + lane. Equal times go by number, so a channel decides when all that
 * is ready by then is known. */
typedef struct {
    int64_t time;
    uint32_t id;
} entry;

typedef struct {
    uint32_t *task;
    uint32_t n;
    int64_t free;
    uint32_t busy_with;
    bool asked; /* an entry of the channel is among those that come next */
} channel;

typedef struct {
    const bz_flow *flow;
    entry *heap;
    uint32_t n_heap;
    uint32_t *waits; /* [n]: for how many tasks still */
    int64_t *start;  /* [n]: at the earliest, by what is done */
    uint32_t *because;
    channel *channels; /* [n_lanes] */
    uint32_t left, done, last;
    int64_t end; /* of `last`, the task that ends last of those that are done */
} simulator;

static bool before(entry a, entry b)
{
    return a.time != b.time ? a.time < b.time : a.id < b.id;
}

static void push(simulator *s, int64_t time, uint32_t id)
{
    entry e = {time, id};
    uint32_t i = s->n_heap++;
    for (; i && before(e, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
}

static entry pop(simulator *s)
{
    entry top = s->heap[0], last = s->heap[--s->n_heap];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < s->n_heap; i = child) {
        child += child + 1 < s->n_heap && before(s->heap[child + 1], s->heap[child]);
        if (!before(s->heap[child], last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return top;
}

/* A kernel may begin before its launch returns: the distance is from the launch's start, and follows its length. */
static int64_t launched_after(const bz_task *launch, int64_t lag)
{
    if (launch->duration == launch->was || lag <= 0)
        return lag;
    if (lag >= launch->was)
        return bz_flow_sum(lag, launch->duration - launch->was);
    return (int64_t)((double)lag * (double)launch->duration / (double)launch->was);
}

/* All that it waits for is done. */
static void make_ready(simulator *s, uint32_t task)
{
    s->start[task] = bz_flow_sum(s->start[task], s->flow->task[task].late);
    push(s, s->start[task], task);
}

static void reach(simulator *s, uint32_t task, int64_t time, uint32_t from)
{
    if (time > s->start[task] || (time == s->start[task] && s->because[task] == BZ_NONE)) {
        s->start[task] = time;
        s->because[task] = from;
    }
    if (!--s->waits[task])
        make_ready(s, task);
}

static void run_task(simulator *s, uint32_t id)
{
    const bz_task *t = &s->flow->task[id];
    int64_t end = bz_flow_sum(s->start[id], t->duration), behind = bz_flow_sum(end, t->gap);
    s->done++;
    if (s->last == BZ_NONE || end > s->end || (end == s->end && id < s->last)) {
        s->last = id;
        s->end = end;
    }
    for (uint32_t e = t->out; e != BZ_NONE; e = s->flow->edge[e].next_out) {
        const bz_flow_edge *edge = &s->flow->edge[e];
        if (edge->wraps)
            continue;
        int64_t time = edge->kind == BZ_DEPENDS_LAUNCH ? bz_flow_sum(s->start[id], launched_after(t, edge->lag))
                                                       : bz_flow_sum(end, edge->lag);
        if (s->flow->literal)
            time = bz_flow_sum(behind, edge->kind == BZ_DEPENDS_LAUNCH ? edge->lag - t->was : edge->lag);
        reach(s, edge->to, time, id);
    }
    if (t->next != BZ_NONE)
        reach(s, t->next, behind, id);
}

static uint32_t first_come(const simulator *s, const channel *c)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < c->n; i++) {
        uint32_t x = c->task[i], y = c->task[best];
        int32_t p = s->flow->task[x].priority, q = s->flow->task[y].priority;
        if (p != q ? p > q : s->start[x] != s->start[y] ? s->start[x] < s->start[y] : x < y)
            best = i;
    }
    return best;
}

static void serve(simulator *s, uint32_t lane, int64_t time)
{
    channel *c = &s->channels[lane];
    c->asked = false;
    uint32_t best = first_come(s, c), task = c->task[best];
    memmove(&c->task[best], &c->task[best + 1], (--c->n - best) * sizeof *c->task);
    if (time > s->start[task]) {
        s->start[task] = time;
        s->because[task] = c->busy_with;
    }
    const bz_task *t = &s->flow->task[task];
    c->free = bz_flow_sum(bz_flow_sum(s->start[task], t->duration), t->gap);
    c->busy_with = task;
    run_task(s, task);
    if (c->n) {
        c->asked = true;
        push(s, c->free, s->flow->n + lane);
    }
}

static void queue_up(simulator *s, uint32_t lane, uint32_t task)
{
    channel *c = &s->channels[lane];
    BZ_ADD(c->task, c->n) = task;
    if (!c->asked) {
        c->asked = true;
        push(s, c->free > s->start[task] ? c->free : s->start[task], s->flow->n + lane);
    }
}

static void begin(simulator *s)
{
    for (uint32_t i = 0; i < s->flow->n; i++) {
        const bz_task *t = &s->flow->task[i];
        s->because[i] = BZ_NONE;
        s->start[i] = t->removed ? -1 : t->not_before;
        if (t->removed)
            continue;
        s->left++;
        for (uint32_t e = t->in; e != BZ_NONE; e = s->flow->edge[e].next_in)
            s->waits[i] += !s->flow->edge[e].wraps;
        s->waits[i] += t->prev != BZ_NONE;
        if (!s->waits[i])
            make_ready(s, i);
    }
}

static int circle(const simulator *s, bz_error *err)
{
    for (uint32_t i = 0; i < s->flow->n; i++)
        if (!s->flow->task[i].removed && s->waits[i])
            return bz_fail(err, BZ_BAD_INPUT,
                           "tasks wait for each other in a circle, one of them is '%.100s': the recording's times "
                           "contradict each other, or a dependency was added against the order",
                           s->flow->task[i].name);
    return bz_fail(err, BZ_BAD_INPUT, "tasks wait for each other in a circle");
}

int bz_flow_simulate(const bz_flow *flow, bz_arena *arena, bz_simulated *out, bz_error *err)
{
    simulator s = {.flow = flow, .last = BZ_NONE};
    *out = (bz_simulated){.start = bz_arena_take(arena, flow->n * sizeof(int64_t)),
                          .because = bz_arena_take(arena, flow->n * sizeof(uint32_t))};
    s.start = out->start;
    s.because = out->because;
    s.heap = bz_alloc((size_t)flow->n + flow->n_lanes + 1, sizeof *s.heap);
    s.waits = bz_zeroed((size_t)flow->n + 1, sizeof *s.waits);
    s.channels = bz_zeroed((size_t)flow->n_lanes + 1, sizeof *s.channels);
    for (uint32_t i = 0; i < flow->n_lanes; i++)
        s.channels[i].busy_with = BZ_NONE;
    begin(&s);
    while (s.n_heap) {
        entry e = pop(&s);
        if (e.id >= flow->n)
            serve(&s, e.id - flow->n, e.time);
        else if (flow->lane[flow->task[e.id].lane].channel)
            queue_up(&s, flow->task[e.id].lane, e.id);
        else
            run_task(&s, e.id);
    }
    out->last = s.last;
    out->total = s.last == BZ_NONE ? 0 : s.end - flow->offset;
    int failed = s.done < s.left ? circle(&s, err) : 0;
    for (uint32_t i = 0; i < flow->n_lanes; i++)
        free(s.channels[i].task);
    free(s.channels);
    free(s.waits);
    free(s.heap);
    return failed;
}

/* CHAIN copies in one flow: task i of copy c is c * n + i. */
static void chain(const bz_flow *flow, bz_flow *out)
{
    uint32_t n = flow->n;
    *out = *flow;
    out->arena = (bz_arena){0};
    out->n = CHAIN * n;
    out->task = bz_alloc((size_t)CHAIN * n + 1, sizeof *out->task);
    out->n_edges = 0;
    out->edge = NULL;
    out->lane = bz_alloc(flow->n_lanes + 1, sizeof *out->lane);
    out->layer = NULL;
    if (flow->n_lanes)
        memcpy(out->lane, flow->lane, flow->n_lanes * sizeof *out->lane);
    for (uint32_t c = 0; c < CHAIN; c++)
        for (uint32_t i = 0; i < n; i++) {
            bz_task *t = &out->task[c * n + i];
            *t = flow->task[i];
            t->prev = t->prev == BZ_NONE ? BZ_NONE : t->prev + c * n;
            t->next = t->next == BZ_NONE ? BZ_NONE : t->next + c * n;
            t->in = t->out = BZ_NONE;
            t->not_before = c ? 0 : t->not_before;
        }
    for (uint32_t c = 0; c < CHAIN; c++)
        for (uint32_t e = 0; e < flow->n_edges; e++) {
            const bz_flow_edge *edge = &flow->edge[e];
            uint32_t to = edge->to + (c + edge->wraps) * n;
            if (!flow->task[edge->from].removed && !flow->task[edge->to].removed && to < out->n)
                bz_flow_depend(out, edge->from + c * n, to, (bz_depends)edge->kind, edge->lag);
        }
    for (uint32_t l = 0; l < flow->n_lanes; l++)
        for (uint32_t c = 1; c < CHAIN && flow->lane[l].first != BZ_NONE; c++) {
            uint32_t last = flow->lane[l].last + (c - 1) * n, first = flow->lane[l].first + c * n;
            out->task[last].next = first;
            out->task[last].gap = flow->lane[l].wrap;
            out->task[first].prev = last;
        }
}

/* Edges of removed tasks are in no list, but in the array: those are skipped by their ends. An edge whose ends both live may
 * have been dropped nowhere else. */
int bz_flow_steady(const bz_flow *flow, int64_t *step, bz_error *err)
{
    bz_flow chained;
    bz_simulated s;
    BZ_SCOPED(bz_arena) arena = {0};
    int64_t end[CHAIN] = {0};
    if (flow->n > BZ_NONE / CHAIN - 1 || flow->n_edges > BZ_NONE / CHAIN - 1)
        return bz_fail(err, BZ_FAILED, "the iteration has too many tasks for three of them: %u", flow->n);
    chain(flow, &chained);
    int failed = bz_flow_simulate(&chained, &arena, &s, err);
    for (uint32_t i = 0; i < chained.n && !failed; i++) {
        int64_t *e = &end[i / flow->n], at = bz_flow_sum(s.start[i], chained.task[i].duration);
        if (!chained.task[i].removed && at > *e)
            *e = at;
    }
    *step = end[CHAIN - 1] - end[CHAIN - 2];
    bz_flow_free(&chained);
    return failed;
}

int bz_flow_time(const bz_flow *flow, bz_arena *arena, bz_simulated *one, int64_t *time, bz_error *err)
{
    bz_simulated s;
    if (bz_flow_simulate(flow, arena, &s, err))
        return -1;
    if (one)
        *one = s;
    *time = s.total;
    return flow->overlaps ? bz_flow_steady(flow, time, err) : 0;
}
