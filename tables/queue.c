/* From the host's launch to the device's start: how much work waits in the queue of each stream, and how long launches take. */
#include "base/sort.h"
#include "tables/constants.h"
#include "tables/parts.h"

#include <math.h>
#include <stdlib.h>

/* Of one stream: when work was launched and when it started, both ascending. Work whose launch is not on record, and work
 * that comes many at once (a graph), is left out, as in HTA. */
typedef struct queue {
    const bz_tables *m;
    uint32_t *event; /* [n] by start: number of the kernel, behind all kernels of the copy, behind these of the fill */
    int64_t *launch; /* [n]; NULL: they started in the order of their launches */
    size_t n;
} queue;

static bz_event_kind kind_at(const queue *q, size_t k, size_t *i)
{
    bz_event_kind kind = BZ_EVENT_KERNEL;
    for (*i = q->event[k]; *i >= q->m->t->event[kind].n; kind++)
        *i -= q->m->t->event[kind].n;
    return kind;
}

static int64_t start_at(const queue *q, size_t k)
{
    size_t i;
    bz_event_kind kind = kind_at(q, k, &i);
    return q->m->t->event[kind].start[i];
}

static int64_t launch_at(const queue *q, size_t k)
{
    size_t i;
    if (q->launch)
        return q->launch[k];
    bz_event_kind kind = kind_at(q, k, &i);
    return tables_asked(q->m, kind, i);
}

static void sort_launches(queue *q)
{
    size_t k = 1;
    while (k < q->n && launch_at(q, k - 1) <= launch_at(q, k))
        k++;
    if (k >= q->n)
        return;
    int64_t *at = bz_alloc(q->n, sizeof *at);
    for (k = 0; k < q->n; k++)
        at[k] = launch_at(q, k);
    bz_sort_times(at, q->n);
    q->launch = at;
}

/* [lanes], for free_queues. */
static queue *queues(bz_tables *m)
{
    const bz_trace *t = m->t;
    queue *q = BZ_NEW(m->arena, queue, (size_t)t->n_lanes + 1);
    uint32_t first[3] = {0, (uint32_t)t->event[BZ_EVENT_KERNEL].n};
    first[2] = first[1] + (uint32_t)t->event[BZ_EVENT_COPY].n;
    for (work w = {0}; tables_next(m, &w);)
        if (tables_launch(m, &w) != BZ_NONE) {
            queue *of = &q[w.lane];
            BZ_ADD(of->event, of->n) = first[w.kind - BZ_EVENT_KERNEL] + (uint32_t)w.i;
        }
    for (uint32_t lane = 0; lane < t->n_lanes; lane++) {
        q[lane].m = m;
        sort_launches(&q[lane]);
    }
    return q;
}

static void free_queues(queue *q, uint32_t lanes)
{
    for (uint32_t lane = 0; lane < lanes; lane++) {
        free(q[lane].event);
        free(q[lane].launch);
    }
}

/* One step through both lists: the length behind the next launch or start, and when that is. */
typedef struct walk {
    size_t i, j;
    int64_t at, length;
} walk;

static bool step(const queue *q, walk *w)
{
    bool launch = w->i < q->n, start = w->j < q->n;
    if (!launch && !start)
        return false;
    launch =
        launch && (!start || launch_at(q, w->i) <= start_at(q, w->j)); /* clocks that differ: launches may come last */
    w->at = launch ? launch_at(q, w->i) : start_at(q, w->j);
    w->i += launch;
    w->j += !launch;
    w->length += launch ? 1 : -1;
    return true;
}

/* How often the queue had which length: [*n] counts from `least` on, which the caller frees. */
static uint64_t *count_lengths(const queue *q, int64_t *least, size_t *n)
{
    int64_t low = 0, high = 0;
    for (walk w = {0}; step(q, &w);) {
        low = w.length < low ? w.length : low;
        high = w.length > high ? w.length : high;
    }
    uint64_t *count = bz_zeroed((size_t)(high - low) + 1, sizeof *count);
    for (walk w = {0}; step(q, &w);)
        count[w.length - low]++;
    *least = low;
    *n = (size_t)(high - low) + 1;
    return count;
}

/* The mean over the time from the first change to the last one. */
static double mean_length(const queue *q)
{
    double weighted = 0;
    int64_t before = 0, first = 0;
    bool any = false;
    walk w = {0};
    for (int64_t last = 0; step(q, &w); last = w.length) {
        first = any ? first : w.at;
        weighted += any ? (double)last * (double)(w.at - before) : 0;
        before = w.at;
        any = true;
    }
    return before > first ? weighted / (double)(before - first) : NAN;
}

void fill_queue(bz_tables *m, bz_sheet *s)
{
    int64_t least;
    queue *q = queues(m);
    for (uint32_t lane = 0; lane < m->t->n_lanes; lane++) {
        size_t n;
        if (!q[lane].n)
            continue;
        BZ_FREED uint64_t *count = count_lengths(&q[lane], &least, &n);
        figures f = figures_of_counts(count, n, least);
        BZ_SHEET_ADD(s, BZ_TEXT(tables_device(m, m->device[lane])), BZ_TEXT(tables_stream(m, lane)), BZ_NUMBER(f.count),
                     BZ_NUMBER(f.mean), BZ_NUMBER(f.deviation), BZ_NUMBER(f.min), BZ_NUMBER(f.quarter),
                     BZ_NUMBER(f.median), BZ_NUMBER(f.three_quarters), BZ_NUMBER(f.max),
                     BZ_NUMBER(mean_length(&q[lane])));
    }
    free_queues(q, m->t->n_lanes);
    bz_sheet_sort(s, 2);
}

/* Mean and greatest length in equal parts of the time from the first launch to the last start. */
void fill_queue_series(bz_tables *m, bz_sheet *s)
{
    enum { PARTS = 100, ROWS = 4000 };
    int64_t first = INT64_MAX, last = INT64_MIN;
    queue *q = queues(m);
    uint32_t streams = 0;
    for (uint32_t lane = 0; lane < m->t->n_lanes; lane++) {
        walk w = {0};
        if (!step(&q[lane], &w))
            continue;
        streams++;
        first = w.at < first ? w.at : first;
        int64_t end = start_at(&q[lane], q[lane].n - 1);
        last = end > last ? end : last;
    }
    int parts = streams ? (int)(ROWS / streams) : 0;
    parts = parts > PARTS ? PARTS : parts < 1 ? 1 : parts;
    double width = streams && last > first ? (double)(last - first) / parts : 1;
    for (uint32_t lane = 0; lane < m->t->n_lanes; lane++) {
        double mean[PARTS] = {0}, most[PARTS] = {0}, from = 0, length = 0;
        if (!q[lane].n)
            continue;
        walk w = {0};
        for (bool more = true; more;) {
            more = step(&q[lane], &w);
            double to = more ? (double)(w.at - first) : width * parts;
            for (int p = (int)(from / width); p < parts && width * p < to; p++) {
                double low = width * p > from ? width * p : from, high = width * (p + 1) < to ? width * (p + 1) : to;
                mean[p] += high > low ? length * (high - low) / width : 0;
                most[p] = length > most[p] ? length : most[p];
            }
            from = to;
            length = (double)w.length;
        }
        for (int p = 0; p < parts; p++)
            BZ_SHEET_ADD(s, BZ_TEXT(tables_device(m, m->device[lane])), BZ_TEXT(tables_stream(m, lane)),
                         BZ_NUMBER(width * p / 1e9), BZ_NUMBER(mean[p]), BZ_NUMBER(most[p]));
    }
    free_queues(q, m->t->n_lanes);
}

typedef struct launch_sums {
    int64_t call, work, brief, slow, late;
} launch_sums;

/* By the call that launches, of the work whose launch is on record. */
void fill_launches(bz_tables *m, bz_sheet *s)
{
    const bz_events *api = &m->t->event[BZ_EVENT_API];
    BZ_FREED launch_sums *of = bz_zeroed((size_t)bz_strings(m->t) + 1, sizeof *of);
    groups g;
    uint32_t n;
    groups_begin(&g, m->arena);
    for (work w = {0}; tables_next(m, &w);) {
        uint32_t cause = tables_cause(m, w.kind, w.i);
        if (cause == BZ_NONE)
            continue;
        launch_sums *l = &of[api->name[cause]];
        int64_t call = api->end[cause] - api->start[cause], work_time = w.end - w.start;
        int64_t delay = w.start > api->end[cause] ? w.start - api->end[cause] : 0;
        l->call += call;
        l->work += work_time;
        l->brief += call <= SLOW_CALL && work_time < call;
        l->slow += call > SLOW_CALL;
        l->late += delay > LONG_DELAY;
        groups_add(&g, api->name[cause], (double)delay);
    }
    const figures *f = groups_end(&g, &n);
    for (uint32_t i = 0; i < n; i++) {
        const launch_sums *l = &of[f[i].key];
        BZ_SHEET_ADD(s, BZ_TEXT(bz_string(m->t, (uint32_t)f[i].key)), BZ_NUMBER(f[i].count),
                     BZ_NUMBER(tables_seconds(l->call)), BZ_NUMBER(tables_seconds(l->work)), BZ_NUMBER(f[i].mean / 1e9),
                     BZ_NUMBER(f[i].median / 1e9), BZ_NUMBER(f[i].three_quarters / 1e9), BZ_NUMBER(f[i].max / 1e9),
                     BZ_NUMBER(l->brief), BZ_NUMBER(l->slow), BZ_NUMBER(l->late));
    }
    bz_sheet_sort(s, 1);
}
