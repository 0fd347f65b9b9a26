/* One iteration of a recording as a flow. */
#include "whatif/build.h"
#include "base/sort.h"
#include "whatif/constants.h"

#include <stdio.h>
#include <stdlib.h>

int64_t bz_build_median(int64_t *values, size_t n)
{
    if (!n)
        return 0;
    bz_sort_times(values, n);
    return values[(n - 1) / 2];
}

bool bz_build_member(const bz_build *b, bz_event_kind kind, size_t row)
{
    const bz_flow *f = b->flow;
    return f->iteration == BZ_NONE || bz_event_iteration(b->trace, kind, row) == f->iteration;
}

static uint32_t lane_of(bz_build *b, uint32_t trace_lane)
{
    const bz_lane *l = &b->trace->lane[trace_lane];
    bz_stream_text stream;
    char name[96];
    if (b->lane_of[trace_lane] != BZ_NONE)
        return b->lane_of[trace_lane];
    if (l->device && l->device_id)
        snprintf(name, sizeof name, "device %lld %s", (long long)l->device_id, bz_stream_name(l, stream));
    else if (l->device)
        snprintf(name, sizeof name, "%s", bz_stream_name(l, stream));
    else
        snprintf(name, sizeof name, "thread %lld", (long long)l->thread);
    uint32_t lane = bz_flow_add_lane(b->flow, name, l->device, false);
    b->flow->lane[lane].lane = trace_lane;
    return b->lane_of[trace_lane] = lane;
}

/* At the end of its lane; its gap is set once the next one is known. */
uint32_t bz_build_task(bz_build *b, bz_task_kind kind, bz_event_kind event_kind, size_t row, int64_t start, int64_t end)
{
    bz_flow *f = b->flow;
    const bz_events *e = &b->trace->event[event_kind];
    uint32_t lane = lane_of(b, e->lane[row]);
    uint32_t task = bz_flow_add(f, kind, "", lane, end - start, 0);
    bz_task *t = &f->task[task];
    t->name = bz_string(b->trace, e->short_name && e->short_name[row] ? e->short_name[row] : e->name[row]);
    if (!*t->name)
        t->name = bz_event_kind_name(event_kind);
    t->at = start - b->span.start;
    t->event = (uint32_t)row;
    t->event_kind = (uint8_t)event_kind;
    t->bytes = e->bytes ? e->bytes[row] : 0;
    f->counts.tasks[kind]++;
    return task;
}

/* The end of the iteration, where the program did something behind its last call. */
static void mark_end(bz_build *b, int64_t last)
{
    bz_flow *f = b->flow;
    int64_t end = b->span.end - b->span.start;
    if (f->main == BZ_NONE || last >= end)
        return;
    uint32_t before = f->lane[f->main].last;
    f->task[before].gap = end - bz_build_end(&f->task[before]);
    uint32_t mark = bz_flow_add(f, BZ_TASK_END, "end of the iteration", f->main, 0, 0);
    f->task[mark].at = b->arrived[mark] = end;
    f->counts.tasks[BZ_TASK_END]++;
}

/* A neighbour that takes about as long: of two kinds of iterations in turn, three of one kind behind one another say nothing. */
static bool alike(const bz_trace *t, uint32_t i, uint32_t neighbour)
{
    if (!bz_iteration_is_steady(t, neighbour))
        return false;
    double a = (double)bz_iteration_latency(t, i), b = (double)bz_iteration_latency(t, neighbour);
    return a >= ALIKE * b && b >= ALIKE * a;
}

/* From the start of the iteration to that of the next, on the host; 0 where no neighbour tells. */
static int64_t find_period(const bz_trace *t, uint32_t i)
{
    if (alike(t, i, i + 1))
        return t->iteration[i + 1].start - t->iteration[i].start;
    return i && alike(t, i, i - 1) ? t->iteration[i].start - t->iteration[i - 1].start : 0;
}

/* What the busiest lane needs: of a thread all from its first call to the end of its last, of a stream its work. A lane that
 * needs more than a step does not keep its pace. */
static int64_t busiest_lane(const bz_build *b)
{
    const bz_flow *f = b->flow;
    int64_t most = 0;
    for (uint32_t l = 0; l < f->n_lanes; l++) {
        const bz_flow_lane *lane = &f->lane[l];
        int64_t need = 0;
        if (!lane->device && lane->first != BZ_NONE)
            need = bz_build_end(&f->task[lane->last]) - b->arrived[lane->first];
        for (uint32_t i = lane->first; lane->device && i != BZ_NONE; i = f->task[i].next)
            need = bz_flow_sum(need, f->task[i].duration);
        most = need > most ? need : most;
    }
    return most;
}

/* What the simulation is held against, and whether iterations run into each other: the device works still when the host is
 * at the next one. Then a step is what counts. Iterations that a person marked follow each other on the host; of those that
 * were found the end is that of their work, and a step lies between two ends. */
static void measure(bz_build *b, int64_t last)
{
    bz_flow *f = b->flow;
    const bz_trace *t = b->trace;
    int64_t length = b->span.end - b->span.start, most = last > length ? last : length;
    f->measured = f->period = most;
    if (f->iteration == BZ_NONE)
        return;
    bool found = t->origin == BZ_ITERATION_DETECTED;
    int64_t period = find_period(t, f->iteration), offset = bz_iteration_begin(t, f->iteration) - b->span.start;
    int64_t step = found ? bz_iteration_latency(t, f->iteration) : period;
    /* a host that steps faster or slower than the device fills the queue or empties it: no step is what the recording took */
    bool steady =
        period > 0 && period >= busiest_lane(b) && (double)llabs(period - step) <= BZ_WHATIF_WARN * (double)step;
    f->overlaps = steady && (found ? offset > 0 : last > length);
    f->period = period > 0 ? period : most;
    f->offset = f->overlaps ? 0 : offset;
    f->measured = f->overlaps ? step : most - offset;
}

/* How long after its last task a lane does its first of the next iteration. */
static void wrap_lanes(const bz_build *b)
{
    bz_flow *f = b->flow;
    for (uint32_t l = 0; l < f->n_lanes; l++) {
        bz_flow_lane *lane = &f->lane[l];
        if (lane->first == BZ_NONE)
            continue;
        const bz_task *first = &f->task[lane->first], *last = &f->task[lane->last];
        int64_t wrap = lane->device ? f->stream_gap : b->arrived[lane->first] + f->period - bz_build_end(last);
        for (uint32_t e = first->in; e != BZ_NONE && !lane->device; e = f->edge[e].next_in)
            if (f->edge[e].kind == BZ_DEPENDS_HOST)
                wrap = 0; /* it begins when it is told to */
        lane->wrap = wrap > 0 ? wrap : 0;
    }
}

static void find_costs(bz_flow *f)
{
    BZ_FREED int64_t *cost = bz_alloc((size_t)f->n_edges + 1, sizeof *cost),
                     *gap = bz_alloc((size_t)f->n_edges + 1, sizeof *gap);
    size_t n = 0;
    for (uint32_t e = 0; e < f->n_edges; e++)
        if (f->edge[e].kind == BZ_DEPENDS_LAUNCH && f->task[f->edge[e].to].kind == BZ_TASK_KERNEL) {
            cost[n] = f->task[f->edge[e].from].duration;
            gap[n++] = f->task[f->edge[e].from].gap;
        }
    f->launch_cost = bz_build_median(cost, n);
    f->launch_gap = bz_build_median(gap, n);
}

static bool find_span(bz_build *b)
{
    const bz_trace *t = b->trace;
    if (b->flow->iteration != BZ_NONE && b->flow->iteration < t->n_iterations) {
        b->span = t->iteration[b->flow->iteration];
        return true;
    }
    b->flow->iteration = BZ_NONE;
    return bz_trace_span(t, &b->span);
}

/* Does anything take time? A recording of the runtime's calls alone is one of the host. */
static bool has_lengths(const bz_trace *t)
{
    const bz_events *api = &t->event[BZ_EVENT_API];
    for (size_t i = 0; i < api->n; i++)
        if (api->end[i] > api->start[i])
            return true;
    return bz_trace_has_lengths(t);
}

int bz_flow_make(const bz_trace *trace, uint32_t iteration, bz_flow *out, bz_error *err)
{
    *out = (bz_flow){.trace = trace, .iteration = iteration, .main = BZ_NONE};
    bz_build b = {.trace = trace, .flow = out, .idle_lag = -1};
    size_t events = 0;
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        events += trace->event[k].n;
    if (!events)
        return bz_fail(
            err, BZ_BAD_INPUT,
            "the recording is empty: it has no call, no kernel and no operator, so that there is no iteration");
    if (!has_lengths(trace) || !find_span(&b))
        return bz_fail(err, BZ_BAD_INPUT,
                       "the recording tells in which order calls were made, but not how long they took: record the "
                       "program with 'benanza profile', Nsight Systems or PyTorch's profiler");
    b.of_api = bz_none(trace->event[BZ_EVENT_API].n + 1, sizeof *b.of_api);
    b.lane_of = bz_none((size_t)trace->n_lanes + 1, sizeof *b.lane_of);
    for (int k = 0; k < 3; k++)
        b.of_event[k] = bz_none(trace->event[BZ_EVENT_KERNEL + k].n + 1, sizeof *b.of_event[k]);
    bz_build_records(&b);
    bz_build_host(&b);
    bz_build_device(&b);
    find_costs(out);
    b.arrived = bz_alloc((size_t)out->n + 1, sizeof *b.arrived); /* mark_end adds one */
    for (uint32_t i = 0; i < out->n; i++)
        b.arrived[i] = out->task[i].at;
    bz_build_waits(&b);
    bz_build_phases(&b); /* looks for tasks of a lane beside each other, where the mark of the end is not */
    int64_t last = 0;
    for (uint32_t i = 0; i < out->n; i++)
        last = bz_build_end(&out->task[i]) > last ? bz_build_end(&out->task[i]) : last;
    mark_end(&b, last);
    measure(&b, last);
    wrap_lanes(&b);
    for (int k = 0; k < 3; k++)
        free(b.of_event[k]);
    free(b.arrived);
    free(b.record);
    free(b.of_api);
    free(b.lane_of);
    if (out->n && out->measured > 0)
        return 0;
    bz_flow_free(out);
    return bz_fail(err, BZ_BAD_INPUT,
                   "nothing in this iteration of the recording takes time, no call, kernel or operator: no graph can "
                   "be made of it. Ranges that "
                   "a program marks are no work: record operators, too (PyTorch: activities=[ProfilerActivity.CPU])");
}
