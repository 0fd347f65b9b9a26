/* From the host's launch to the device's start: how much work waits in the queue of each stream, and how long launches take. */
#include "base/sort.h"
#include "tables/constants.h"
#include "tables/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of one stream: when work was launched and when it started, both ascending. Work whose launch is not on record, and work
 * that comes many at once (a graph), is left out, as in HTA. */
typedef struct queue {
    int64_t *launch, *start;
    size_t n;
} queue;

/* Whether a call launches is asked once of each name. */
static bool launched(bz_tables *m, uint8_t *known, const work *w)
{
    uint32_t cause = tables_cause(m, w->kind, w->i);
    if (cause == BZ_NONE)
        return false;
    uint32_t name = m->t->event[BZ_EVENT_API].name[cause];
    if (!known[name])
        known[name] = tables_launches(bz_string(m->t, name)) ? 2 : 1;
    return known[name] == 2;
}

/* [lanes] and two blocks of times that all lie in; the caller frees the blocks. */
static queue *queues(bz_tables *m, int64_t *block[2])
{
    const bz_trace *t = m->t;
    queue *q = BZ_NEW(m->arena, queue, (size_t)t->n_lanes + 1);
    uint8_t *known = bz_zeroed((size_t)bz_strings(t) + 1, 1);
    size_t all = 0;
    for (work w = {0}; tables_next(m, &w);)
        if (launched(m, known, &w)) {
            q[w.lane].n++;
            all++;
        }
    block[0] = bz_alloc(all + 1, sizeof *block[0]);
    block[1] = bz_alloc(all + 1, sizeof *block[1]);
    size_t at = 0;
    for (uint32_t lane = 0; lane < t->n_lanes; lane++) {
        q[lane].launch = block[0] + at;
        q[lane].start = block[1] + at;
        at += q[lane].n;
        q[lane].n = 0;
    }
    for (work w = {0}; tables_next(m, &w);)
        if (launched(m, known, &w)) {
            queue *of = &q[w.lane];
            of->launch[of->n] = tables_asked(m, w.kind, w.i);
            of->start[of->n++] = w.start;
        }
    for (uint32_t lane = 0; lane < t->n_lanes; lane++)
        if (q[lane].n)
            bz_sort_times(q[lane].launch, q[lane].n);
    free(known);
    return q;
}

/* One step through both lists: the length behind the next launch or start, and when that is. */
typedef struct walk {
    size_t i, j;
    int64_t at, length;
} walk;

static bool step(const queue *q, walk *w)
{
    if (w->j == q->n)
        return false;
    bool launch = w->i < q->n && q->launch[w->i] <= q->start[w->j];
    w->at = launch ? q->launch[w->i++] : q->start[w->j++];
    w->length += launch ? 1 : -1;
    return true;
}

void fill_queue(bz_tables *m, bz_sheet *s)
{
    int64_t *block[2];
    const queue *q = queues(m, block);
    for (uint32_t lane = 0; lane < m->t->n_lanes; lane++) {
        double *length = bz_alloc(2 * q[lane].n + 1, sizeof *length), weighted = 0;
        size_t n = 0;
        int64_t before = 0, first = 0;
        walk w = {0};
        for (int64_t last = 0; step(&q[lane], &w); last = w.length) {
            first = n ? first : w.at;
            weighted += n ? (double)last * (double)(w.at - before) : 0;
            before = w.at;
            length[n++] = (double)w.length;
        }
        if (n) {
            figures f = figures_of(length, n);
            BZ_SHEET_ADD(s, BZ_TEXT(tables_device(m, m->device[lane])), BZ_TEXT(tables_stream(m, lane)),
                         BZ_NUMBER(f.count), BZ_NUMBER(f.mean), BZ_NUMBER(f.deviation), BZ_NUMBER(f.min),
                         BZ_NUMBER(f.quarter), BZ_NUMBER(f.median), BZ_NUMBER(f.three_quarters), BZ_NUMBER(f.max),
                         BZ_NUMBER(before > first ? weighted / (double)(before - first) : NAN));
        }
        free(length);
    }
    free(block[0]);
    free(block[1]);
    bz_sheet_sort(s, 2);
}

/* Mean and greatest length in equal parts of the time from the first launch to the last start. */
void fill_queue_series(bz_tables *m, bz_sheet *s)
{
    enum { PARTS = 100, ROWS = 4000 };
    int64_t *block[2], first = INT64_MAX, last = INT64_MIN;
    const queue *q = queues(m, block);
    uint32_t streams = 0;
    for (uint32_t lane = 0; lane < m->t->n_lanes; lane++) {
        walk w = {0};
        if (!step(&q[lane], &w))
            continue;
        streams++;
        first = w.at < first ? w.at : first;
        last = q[lane].start[q[lane].n - 1] > last ? q[lane].start[q[lane].n - 1] : last;
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
    free(block[0]);
    free(block[1]);
}

/* ---- launches ------------------------------------------------------------------------------- */

typedef struct launch_sums {
    int64_t call, work, brief, slow, late;
} launch_sums;

/* By the call that launches, of the work whose launch is on record. */
void fill_launches(bz_tables *m, bz_sheet *s)
{
    const bz_events *api = &m->t->event[BZ_EVENT_API];
    launch_sums *of = bz_zeroed((size_t)bz_strings(m->t) + 1, sizeof *of);
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
    free(of);
    bz_sheet_sort(s, 1);
}
