/* What streams did, and what each piece of work waited for: its launch, the stream, an event of another stream. */
#include "base/sort.h"
#include "whatif/build.h"
#include "whatif/constants.h"

#include <stdlib.h>

typedef struct {
    int64_t start, end;
    uint32_t lane, row;
    uint8_t kind;
} work;

BZ_SORTS(by_lane_and_start, work,
         BZ_THEN(BZ_ORDER(p->lane, q->lane),
                 BZ_THEN(BZ_ORDER(p->start, q->start),
                         BZ_THEN(BZ_ORDER(p->end, q->end),
                                 BZ_THEN(BZ_ORDER(p->kind, q->kind), BZ_ORDER(p->row, q->row))))));

/* Kernels that exchange data with other devices occupy a stream, and are communication all the same. */
static bz_task_kind kind_of(const bz_trace *t, bz_event_kind kind, size_t row)
{
    if (kind != BZ_EVENT_KERNEL)
        return BZ_TASK_COPY;
    return bz_kernel_of(t, row)->does == BZ_KERNEL_COMMUNICATION ? BZ_TASK_COMMUNICATION : BZ_TASK_KERNEL;
}

static void append(bz_build *b, const work *w, int64_t *end)
{
    bz_flow *f = b->flow;
    const bz_events *e = &b->trace->event[w->kind];
    int64_t start = w->start > *end ? w->start : *end, stop = w->end > start ? w->end : start;
    f->counts.overlapping += start > w->start;
    *end = stop;
    uint32_t task = bz_build_task(b, kind_of(b->trace, (bz_event_kind)w->kind, w->row), (bz_event_kind)w->kind, w->row,
                                  start, stop);
    b->of_event[w->kind - BZ_EVENT_KERNEL][w->row] = task;
    uint32_t cause = e->cause[w->row], launch = cause == BZ_NONE ? BZ_NONE : b->of_api[cause];
    bz_task *t = &f->task[task];
    f->counts.collapsed |= !strncmp(t->name, "CUDA graph ", 11);
    t->call = e->call && e->call[w->row] < b->trace->event[BZ_EVENT_CALL].n
                  ? (uint32_t)bz_call_outermost(b->trace, e->call[w->row])
                  : BZ_NONE;
    if (launch == BZ_NONE) {
        f->counts.unlaunched++;
        return;
    }
    int64_t lag = t->at - f->task[launch].at;
    f->counts.early += lag < 0;
    bz_flow_depend(f, launch, task, BZ_DEPENDS_LAUNCH, lag);
    f->counts.edges[BZ_DEPENDS_LAUNCH]++;
}

static work *collect(bz_build *b, size_t *n)
{
    const bz_trace *t = b->trace;
    size_t cap = 0;
    for (int k = BZ_EVENT_KERNEL; k <= BZ_EVENT_MEMSET; k++)
        cap += t->event[k].n;
    work *list = bz_alloc(cap + 1, sizeof *list);
    *n = 0;
    for (int k = BZ_EVENT_KERNEL; k <= BZ_EVENT_MEMSET; k++) {
        const bz_events *e = &t->event[k];
        for (size_t i = 0; i < e->n; i++)
            if (bz_build_member(b, (bz_event_kind)k, i)) {
                b->flow->counts.backwards += e->end[i] < e->start[i];
                list[(*n)++] = (work){e->start[i], e->end[i] < e->start[i] ? e->start[i] : e->end[i], e->lane[i],
                                      (uint32_t)i, (uint8_t)k};
            }
    }
    bz_sort_groups(list, *n, sizeof *list, offsetof(work, lane), t->n_lanes);
    bz_sort(list, *n, sizeof *list, by_lane_and_start);
    return list;
}

/* The launch of work that waits for that and its stream alone; BZ_NONE. */
static uint32_t only_launch(const bz_flow *f, uint32_t task)
{
    const bz_task *t = &f->task[task];
    bool only = f->lane[t->lane].device && t->in != BZ_NONE && f->edge[t->in].kind == BZ_DEPENDS_LAUNCH;
    return only ? f->edge[t->in].from : BZ_NONE;
}

/* From the start of a launch to its work at the least; -1 where there is none. A device's clock may be late by more than a launch takes: then
 * every kernel seems to come to a stream that is still busy. No work reached the device sooner than this. */
static int64_t least_lag(const bz_flow *f)
{
    int64_t least = -1;
    for (uint32_t i = 0; i < f->n; i++) {
        if (only_launch(f, i) == BZ_NONE)
            continue;
        int64_t lag = f->edge[f->task[i].in].lag; /* it is what lay between them still */
        least = lag >= 0 && (least < 0 || lag < least) ? lag : least;
    }
    return least;
}

/* Medians of the two latencies that nothing else hides: from a launch to its kernel on an idle stream, and between two
 * kernels of a stream that has more to do. Where no kernel came to an idle stream, the one that waited least tells most. */
static void find_latencies(bz_build *b)
{
    bz_flow *f = b->flow;
    BZ_FREED int64_t *lag = bz_alloc((size_t)f->n + 1, sizeof *lag), *gap = bz_alloc((size_t)f->n + 1, sizeof *gap);
    size_t n_lags = 0, n_gaps = 0;
    int64_t least = least_lag(f);
    for (uint32_t i = 0; i < f->n; i++) {
        const bz_task *t = &f->task[i];
        uint32_t launch = only_launch(f, i);
        if (launch == BZ_NONE || t->prev == BZ_NONE)
            continue;
        const bz_task *l = &f->task[launch];
        int64_t busy = bz_build_end(&f->task[t->prev]), arrives = l->at + least, returns = bz_build_end(l);
        if (busy <= arrives)
            lag[n_lags++] = t->at - l->at;
        else if (busy > (arrives > returns ? arrives : returns) + NOTICED)
            gap[n_gaps++] = t->at - busy;
    }
    b->idle_lag = n_lags ? bz_build_median(lag, n_lags) : least;
    f->stream_gap = bz_build_median(gap, n_gaps);
    f->launch_lag = b->idle_lag;
}

/* A task starts when the last of what it waits for lets it. Each gets its usual latency, or less where the task began
 * earlier; what then lacks to the start is the last one's where that is short, or as long as the launch took, and else the task's own: so the unchanged
 * graph starts each task when it did. */
static void attribute(bz_build *b, uint32_t i, int64_t before)
{
    bz_flow *f = b->flow;
    bz_task *t = &f->task[i];
    int64_t latest = INT64_MIN, *owner = NULL, base = 0, most = 0;
    for (uint32_t e = t->in; e != BZ_NONE; e = f->edge[e].next_in) {
        const bz_task *from = &f->task[f->edge[e].from];
        bool launch = f->edge[e].kind == BZ_DEPENDS_LAUNCH;
        int64_t at = launch ? from->at : bz_build_end(from), usual = launch ? b->idle_lag : 0;
        int64_t lag = usual < 0 || t->at - at < usual ? t->at - at : usual;
        f->edge[e].lag = lag;
        if (at + lag >= latest) {
            latest = at + lag;
            owner = &f->edge[e].lag;
            base = at;
            most = launch ? from->duration : 0;
        }
    }
    if (t->prev != BZ_NONE) {
        bz_task *p = &f->task[t->prev];
        int64_t free = t->at - bz_build_end(p);
        p->gap = free < f->stream_gap ? free : f->stream_gap;
        if (bz_build_end(p) + p->gap > latest || !owner) {
            latest = bz_build_end(p) + p->gap;
            owner = &p->gap;
            base = bz_build_end(p);
            most = 0;
        }
    }
    if (t->prev == BZ_NONE && (!owner || (before > latest && before <= t->at + CLOCK_ROUNDS))) {
        t->not_before = t->at > 0 ? t->at : 0; /* the stream had other work until then, or nothing tells */
        return;
    }
    most = t->at - latest > NOTICED ? most : t->at - base;
    *owner = most > *owner ? most < t->at - base ? most : t->at - base : *owner;
    t->late = t->at - base - *owner;
    f->counts.unexplained = bz_flow_sum(f->counts.unexplained, t->late);
}

/* [trace lanes]: end of the last work of other iterations that had begun on the lane before `from`, on the flow's clock. */
static int64_t *work_before(const bz_build *b)
{
    const bz_trace *t = b->trace;
    int64_t *before = bz_alloc((size_t)t->n_lanes + 1, sizeof *before);
    for (uint32_t l = 0; l < t->n_lanes; l++)
        before[l] = INT64_MIN;
    for (int k = BZ_EVENT_KERNEL; k <= BZ_EVENT_MEMSET; k++) {
        const bz_events *e = &t->event[k];
        for (size_t i = 0; i < e->n; i++) {
            uint32_t lane = b->lane_of[e->lane[i]], first = lane == BZ_NONE ? BZ_NONE : b->flow->lane[lane].first;
            if (first == BZ_NONE || b->of_event[k - BZ_EVENT_KERNEL][i] != BZ_NONE)
                continue;
            int64_t start = e->start[i] - b->span.start, end = e->end[i] - b->span.start;
            if (start <= b->flow->task[first].at && end > before[e->lane[i]])
                before[e->lane[i]] = end;
        }
    }
    return before;
}

void bz_build_device(bz_build *b)
{
    bz_flow *f = b->flow;
    size_t n;
    BZ_FREED work *list = collect(b, &n);
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        if (i && list[i].lane != list[i - 1].lane)
            end = INT64_MIN;
        append(b, &list[i], &end);
    }
    bz_build_events(b);
    find_latencies(b);
    BZ_FREED int64_t *before = work_before(b);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->lane[f->task[i].lane].device)
            attribute(b, i, before[f->lane[f->task[i].lane].lane]);
}
