/* The figures of a trace's iterations, and of a trace without any. */
#include "base/sort.h"
#include "profile/constants.h"
#include "profile/trace.h"

#include <stdlib.h>

const bz_quantity bz_quantities[BZ_QUANTITIES] = {
    {"latency", "latency", offsetof(bz_iteration_stats, latency), false, BZ_EVENT_KINDS},
    {"device busy", "device_busy", offsetof(bz_iteration_stats, device_busy), false, BZ_EVENT_KERNEL},
    {"kernels, summed", "kernel_time", offsetof(bz_iteration_stats, kernel_time), false, BZ_EVENT_KERNEL},
    {"copies, summed", "copy_time", offsetof(bz_iteration_stats, copy_time), false, BZ_EVENT_KERNEL},
    {"library calls", "library", offsetof(bz_iteration_stats, library), false, BZ_EVENT_CALL},
    {"operators", "operators", offsetof(bz_iteration_stats, operators), false, BZ_EVENT_OP},
    {"launch calls", "launch", offsetof(bz_iteration_stats, launch), false, BZ_EVENT_KERNEL},
    {"waiting calls", "sync", offsetof(bz_iteration_stats, sync), false, BZ_EVENT_KERNEL},
    {"idle", "gap", offsetof(bz_iteration_stats, gap), false, BZ_EVENT_KINDS},
    {"kernels", "kernels", offsetof(bz_iteration_stats, kernels), true, BZ_EVENT_KERNEL},
    {"copies", "copies", offsetof(bz_iteration_stats, copies), true, BZ_EVENT_KERNEL},
    {"calls", "calls", offsetof(bz_iteration_stats, calls), true, BZ_EVENT_CALL},
    {"launches", "launches", offsetof(bz_iteration_stats, launches), true, BZ_EVENT_KERNEL},
    {"waits", "syncs", offsetof(bz_iteration_stats, syncs), true, BZ_EVENT_KERNEL},
};

int64_t bz_quantity_of(const bz_iteration_stats *s, int q)
{
    return *(const int64_t *)(const void *)((const char *)s + bz_quantities[q].offset);
}

uint32_t bz_quantity_run(const bz_trace *t, int q)
{
    size_t offset = bz_quantities[q].offset;
    return offset == offsetof(bz_iteration_stats, latency)   ? bz_trace_level(t, BZ_FIGURE_LATENCY)
           : offset == offsetof(bz_iteration_stats, library) ? bz_trace_level(t, BZ_FIGURE_LIBRARY)
           : t->n_levels                                     ? t->own_level
                                                             : BZ_NONE;
}

/* The device's own view: where the host does not wait, its iterations are as long as asking takes, not as the work. A step lasts from the
 * end of the one before. */
static void measure_steps(const bz_trace *t, double *values, bz_summary *s)
{
    size_t n = 0;
    uint32_t behind = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        int64_t end = s->each[i].device_end, before = i ? s->each[i - 1].device_end : INT64_MIN;
        if (!bz_iteration_is_steady(t, i) || end == INT64_MIN)
            continue;
        behind += end > t->iteration[i].end;
        if (before != INT64_MIN && end > before)
            values[n++] = (double)(end - before);
    }
    s->behind = 2 * behind > s->steady;
    s->device_step = bz_quantiles_of(values, n);
}

void bz_summary_make(const bz_trace *t, bz_arena *arena, bz_summary *s)
{
    double *values = BZ_NEW(arena, double, t->n_iterations);
    *s = (bz_summary){.each = BZ_NEW(arena, bz_iteration_stats, t->n_iterations)};
    s->steady = bz_steady_iterations(t);
    for (uint32_t i = 0; i < t->n_iterations; i++)
        bz_iteration_measure(t, i, &s->each[i]);
    for (int q = 0; q < BZ_QUANTITIES; q++) {
        size_t n = 0;
        for (uint32_t i = 0; i < t->n_iterations; i++)
            if (bz_iteration_is_steady(t, i))
                values[n++] = (double)bz_quantity_of(&s->each[i], q);
        s->of[q] = bz_quantiles_of(values, n);
    }
    for (int q = 0; q < BZ_QUANTITIES; q++) {
        double *figures;
        if (bz_quantity_run(t, q) == (t->n_levels ? t->own_level : BZ_NONE))
            continue;
        size_t n = bz_trace_figures(t, q ? BZ_FIGURE_LIBRARY : BZ_FIGURE_LATENCY, arena, &figures);
        s->of[q] = bz_quantiles_of(figures, n);
    }
    measure_steps(t, values, s);
}

/* Files that tell order and parameters alone have no place in time. */
static bool in_time(const bz_trace *t, const bz_events *e, size_t i)
{
    return !t->source[t->lane[e->lane[i]].source].log && e->end[i] >= e->start[i];
}

bool bz_trace_span(const bz_trace *t, bz_iteration *span)
{
    *span = (bz_iteration){.start = INT64_MAX, .end = INT64_MIN};
    for (int k = 0; k < BZ_EVENT_KINDS; k++) {
        const bz_events *e = &t->event[k];
        for (size_t i = 0; i < e->n; i++) {
            if (!in_time(t, e, i))
                continue;
            span->start = e->start[i] < span->start ? e->start[i] : span->start;
            span->end = e->end[i] > span->end ? e->end[i] : span->end;
        }
    }
    return span->start < span->end;
}

bool bz_trace_whole(const bz_trace *t, bz_iteration *span, bz_trace *whole)
{
    if (!bz_trace_span(t, span))
        return false;
    *whole = *t;
    whole->iteration = span;
    whole->n_iterations = 1;
    return true;
}

typedef struct {
    int64_t start, end;
    uint32_t cause; /* api event, or BZ_NONE */
    uint32_t lane;
} work;

BZ_SORTS(by_start, work, BZ_THEN(BZ_ORDER(p->start, q->start), BZ_ORDER(p->end, q->end)));

/* All work of devices that overlaps the span, whoever asked for it: a device that works for another iteration is not idle. */
static work *work_within(const bz_trace *t, const bz_iteration *span, size_t *n)
{
    size_t all = t->event[BZ_EVENT_KERNEL].n + t->event[BZ_EVENT_COPY].n + t->event[BZ_EVENT_MEMSET].n;
    work *w = bz_alloc(all + 1, sizeof *w);
    *n = 0;
    for (int k = BZ_EVENT_KERNEL; k <= BZ_EVENT_MEMSET; k++) {
        const bz_events *e = &t->event[k];
        for (size_t i = 0; i < e->n && e->start[i] < span->end; i++) /* sorted by start */
            if (e->end[i] > span->start)
                w[(*n)++] = (work){e->start[i], e->end[i], e->cause ? e->cause[i] : BZ_NONE, e->lane[i]};
    }
    qsort(w, *n, sizeof *w, by_start);
    return w;
}

/* [lanes] when the first work of a stream on record began. */
static int64_t *first_starts(const bz_trace *t)
{
    int64_t *first = bz_alloc(t->n_lanes, sizeof *first);
    for (uint32_t lane = 0; lane < t->n_lanes; lane++)
        first[lane] = INT64_MAX;
    for (int k = BZ_EVENT_KERNEL; k <= BZ_EVENT_MEMSET; k++)
        for (size_t i = 0; i < t->event[k].n; i++) {
            int64_t *of = &first[t->event[k].lane[i]];
            *of = t->event[k].start[i] < *of ? t->event[k].start[i] : *of;
        }
    return first;
}

static void add_idle(bz_idle *out, bz_idle_reason reason, int64_t from, int64_t to)
{
    if (to <= from)
        return;
    out->of[reason].time += to - from;
    out->of[reason].count++;
    if (to - from > out->of[reason].longest)
        out->of[reason].longest = to - from;
    out->idle += to - from;
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* By how much a device's clock is late of the host's: what lies between the start of a launch and its work at the least, above what that
 * launch takes, or a launch in the median. What is later still is a device that lies far behind, and no clock. */
static int64_t clock_late(const bz_trace *t)
{
    const bz_events *kernel = &t->event[BZ_EVENT_KERNEL], *api = &t->event[BZ_EVENT_API];
    int64_t least = INT64_MAX, own = 0, *launch = bz_alloc(kernel->n + 1, sizeof *launch);
    size_t n = 0;
    for (size_t i = 0; i < kernel->n; i++) {
        uint32_t cause = kernel->cause ? kernel->cause[i] : BZ_NONE;
        int64_t after = cause < api->n ? kernel->start[i] - api->start[cause] : -1;
        if (after < 0)
            continue;
        launch[n] = api->end[cause] - api->start[cause];
        own = after < least ? launch[n] : own;
        least = after < least ? after : least;
        n++;
    }
    bz_sort_times(launch, n);
    int64_t usual = n ? launch[(n - 1) / 2] : 0, late = n ? least - (own > usual ? own : usual) : 0;
    free(launch);
    return late >= CLOCK_LATE && late <= CLOCK_LATE_MOST ? late : 0;
}

/* [from, start of `w`): nothing runs. The first work of a stream on record that begins long after its launch waits for work from before: a server's
 * trace of a single step holds the launches of that step, and lacks what the device still did. */
static bz_idle_reason split_gap(const bz_trace *t, int64_t from, const work *w, bool first, bz_idle *out)
{
    const bz_events *api = &t->event[BZ_EVENT_API];
    const int64_t to = w->start;
    const uint32_t cause = w->cause;
    if (cause >= api->n) {
        add_idle(out, BZ_IDLE_UNKNOWN, from, to);
        return BZ_IDLE_UNKNOWN;
    }
    int64_t asked = api->start[cause] + out->late, returned = api->end[cause] + out->late;
    if (returned <= from) {
        add_idle(out, BZ_IDLE_QUEUED, from, to);
        return BZ_IDLE_QUEUED;
    }
    add_idle(out, BZ_IDLE_HOST, from, clamp(asked, from, to));
    add_idle(out, BZ_IDLE_LAUNCH, clamp(asked, from, to), clamp(returned, from, to));
    bool waits = first && to - clamp(returned, from, to) > CLOCK_LATE_MOST;
    add_idle(out, waits ? BZ_IDLE_UNKNOWN : BZ_IDLE_SUBMITTED, clamp(returned, from, to), to);
    out->before += waits ? to - clamp(returned, from, to) : 0;
    return BZ_IDLE_HOST;
}

/* The number of gaps before queued work, which go into `queued` where that is not NULL. */
static size_t find_idle(const bz_trace *t, const bz_iteration *span, bz_idle *out, bz_gap **queued)
{
    size_t n, found = 0;
    BZ_FREED work *w = work_within(t, span, &n);
    BZ_FREED int64_t *first = first_starts(t);
    int64_t at = span->start;
    *out = (bz_idle){.late = clock_late(t)};
    if (queued)
        *queued = bz_alloc(n + 1, sizeof **queued);
    for (size_t i = 0; i < n; i++) {
        if (w[i].start > at && split_gap(t, at, &w[i], w[i].start == first[w[i].lane], out) == BZ_IDLE_QUEUED && queued)
            (*queued)[found++] = (bz_gap){at, w[i].start};
        at = w[i].end > at ? w[i].end : at;
    }
    add_idle(out, BZ_IDLE_END, at, span->end);
    out->busy = span->end - span->start - out->idle;
    return found;
}

void bz_trace_idle(const bz_trace *t, const bz_iteration *span, bz_idle *out)
{
    find_idle(t, span, out, NULL);
}

size_t bz_trace_queued(const bz_trace *t, const bz_iteration *span, bz_gap **gaps)
{
    bz_idle idle;
    return find_idle(t, span, &idle, gaps);
}

const char *bz_idle_name(bz_idle_reason reason)
{
    static const char *const NAMES[BZ_IDLE_REASONS] = {
        [BZ_IDLE_HOST] = "the host had not asked for more",
        [BZ_IDLE_LAUNCH] = "the host was in the launch call",
        [BZ_IDLE_SUBMITTED] = "launched, on its way to the device",
        [BZ_IDLE_QUEUED] = "queued on the device",
        [BZ_IDLE_UNKNOWN] = "not known: no launch on record, or nothing of what ran before",
        [BZ_IDLE_END] = "behind the last work",
    };
    return NAMES[reason];
}
