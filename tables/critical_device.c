/* Streams of devices as chains, their launches, and who waits for whom. */
#include "base/sort.h"
#include "tables/constants.h"
#include "tables/critical.h"

#include <stdlib.h>
#include <string.h>

/* CUPTI's kinds of synchronization. */
enum { EVENT_SYNC = 1, STREAM_WAIT_EVENT, STREAM_SYNC, CONTEXT_SYNC };

typedef struct device_chain {
    critical *c;
    uint32_t *last;              /* [lanes] 1 + the end of the work before on that stream; 0: none */
    size_t *started;             /* [lanes] how much work of its queue has started … */
    int64_t *last_started;       /* … and when the last one did */
    uint32_t *lane, *lanes_from; /* lanes by device; [devices + 1] where those of each begin */
    bz_map records;              /* correlation of a call that records an event -> the call */
    bz_map awaited;              /* work of a device -> the work that it waits for */
} device_chain;

static uint32_t event_of(const critical *c, bz_event_kind kind, size_t i)
{
    return c->first[kind == BZ_EVENT_KERNEL ? 2 : kind == BZ_EVENT_COPY ? 3 : 4] + (uint32_t)i;
}

static uint32_t lane_of(const critical *c, uint32_t event)
{
    size_t i;
    const bz_events *e = &c->m->t->event[critical_kind(c, event, &i)];
    return e->lane[i];
}

static uint32_t cause_of(const critical *c, uint32_t event)
{
    size_t i;
    bz_event_kind kind = critical_kind(c, event, &i);
    return tables_cause(c->m, kind, i);
}

/* When the host asked for work whose launch is on record. */
static int64_t launch_time(const critical *c, uint32_t event)
{
    size_t i;
    bz_event_kind kind = critical_kind(c, event, &i);
    return c->m->t->event[BZ_EVENT_API].start[c->m->t->event[kind].cause[i]];
}

static int by_launch(const void *a, const void *b, void *context)
{
    const uint32_t *p = a, *q = b;
    return BZ_THEN(BZ_ORDER(launch_time(context, *p), launch_time(context, *q)), BZ_ORDER(*p, *q));
}

/* Mostly work starts in the order in which it was launched. */
static void sort_launches(critical *c, uint32_t *event, size_t n)
{
    size_t i = 1;
    while (i < n && by_launch(&event[i - 1], &event[i], c) < 0)
        i++;
    if (i < n)
        qsort_r(event, n, sizeof *event, by_launch, c);
}

/* Of all work of the recording, as the length of the queue does not begin with the range that is looked at. */
static void find_launches(critical *c)
{
    const bz_trace *t = c->m->t;
    bz_tables all = *c->m;
    all.from = INT64_MIN;
    all.to = INT64_MAX;
    c->launch_first = bz_zeroed((size_t)t->n_lanes + 2, sizeof *c->launch_first);
    for (int pass = 0; pass < 2; pass++) {
        for (work w = {0}; tables_next(&all, &w);) {
            if (tables_launch(&all, &w) == BZ_NONE)
                continue;
            if (!pass)
                c->launch_first[w.lane + 2]++;
            else
                c->launch[c->launch_first[w.lane + 1]++] = event_of(c, w.kind, w.i);
        }
        if (pass)
            break;
        for (uint32_t lane = 2; lane < t->n_lanes + 2; lane++)
            c->launch_first[lane] += c->launch_first[lane - 1];
        c->launch = bz_alloc(c->launch_first[t->n_lanes + 1] + 1, sizeof *c->launch);
    }
    for (uint32_t lane = 0; lane < t->n_lanes; lane++)
        sort_launches(c, c->launch + c->launch_first[lane], c->launch_first[lane + 1] - c->launch_first[lane]);
}

/* How much was launched onto the stream by that time: the index of the first launch behind it. */
static size_t launched_by(const critical *c, uint32_t lane, int64_t at)
{
    size_t low = c->launch_first[lane], high = c->launch_first[lane + 1];
    BZ_FIND_FIRST(low, high, mid, launch_time(c, c->launch[mid]) <= at);
    return low;
}

/* The last event that was launched onto the stream by that time, or CRITICAL_NONE. */
static uint32_t launched_before(const critical *c, uint32_t lane, int64_t at)
{
    size_t i = launched_by(c, lane, at);
    return i > c->launch_first[lane] ? c->launch[i - 1] : CRITICAL_NONE;
}

/* The first event that a thread launches onto the stream from then on, or CRITICAL_NONE. */
static uint32_t launched_after(const critical *c, uint32_t lane, uint32_t thread, int64_t at)
{
    enum { MOST = 4096 }; /* launches of other threads in between */
    const uint32_t *of = c->m->t->event[BZ_EVENT_API].lane;
    size_t i = launched_by(c, lane, at), end = c->launch_first[lane + 1];
    for (int k = 0; i < end && k < MOST; i++, k++)
        if (of[cause_of(c, c->launch[i])] == thread)
            return c->launch[i];
    return CRITICAL_NONE;
}

static uint32_t *device_lanes(const device_chain *d, uint32_t device, uint32_t *n)
{
    *n = d->lanes_from[device + 1] - d->lanes_from[device];
    return d->lane + d->lanes_from[device];
}

/* The stream of that number with launches, of the device of a lane. */
static uint32_t stream_lane(const device_chain *d, uint32_t of, int64_t stream)
{
    const critical *c = d->c;
    uint32_t n, *lane = device_lanes(d, c->m->device[of], &n), found = BZ_NONE;
    for (uint32_t k = 0; k < n; k++)
        if (c->m->t->lane[lane[k]].stream == stream &&
            (found == BZ_NONE || c->launch_first[lane[k] + 1] > c->launch_first[lane[k]]))
            found = lane[k];
    return found;
}

/* The work before the event that a wait is for was recorded: 1 + its number; 0: not told. */
static uint32_t awaited_work(const device_chain *d, size_t sync)
{
    const critical *c = d->c;
    const bz_events *s = &c->m->t->event[BZ_EVENT_SYNC], *api = &c->m->t->event[BZ_EVENT_API];
    if (!s->waited_record[sync] || !s->waited_stream[sync])
        return 0;
    uint32_t lane = stream_lane(d, s->lane[sync], (int64_t)s->waited_stream[sync] - 1);
    uint32_t record = bz_map_get(&d->records, &s->waited_record[sync], sizeof(uint32_t));
    if (lane == BZ_NONE || record == BZ_MAP_NONE)
        return 0;
    uint32_t event = launched_before(c, lane, api->start[record]);
    return event == CRITICAL_NONE ? 0 : event + 1;
}

static void wait_for_streams(device_chain *d, size_t sync, uint32_t call)
{
    enum { MOST = 64 };
    critical *c = d->c;
    const bz_events *s = &c->m->t->event[BZ_EVENT_SYNC];
    uint32_t n, *lane = device_lanes(d, c->m->device[s->lane[sync]], &n);
    for (uint32_t k = 0; k < n && k < MOST; k++)
        if (d->last[lane[k]] &&
            (s->value[sync] == CONTEXT_SYNC || c->m->t->lane[lane[k]].stream == c->m->t->lane[s->lane[sync]].stream))
            critical_add(c, 2 * call + 1, d->last[lane[k]] - 1);
}

static void add_wait(device_chain *d, size_t sync)
{
    critical *c = d->c;
    const bz_events *s = &c->m->t->event[BZ_EVENT_SYNC], *api = &c->m->t->event[BZ_EVENT_API];
    uint32_t cause = tables_cause(c->m, BZ_EVENT_SYNC, sync);
    if (cause == BZ_NONE || c->m->device[s->lane[sync]] == BZ_NONE)
        return;
    uint32_t call = c->first[1] + cause;
    if (s->value[sync] == STREAM_SYNC || s->value[sync] == CONTEXT_SYNC) {
        if (c->present[call])
            wait_for_streams(d, sync, call);
        return;
    }
    uint32_t source = awaited_work(d, sync);
    if (!source)
        return;
    if (s->value[sync] == EVENT_SYNC) {
        if (c->present[call] && c->present[source - 1])
            critical_add(c, 2 * call + 1, 2 * (source - 1) + 1);
        return;
    }
    uint32_t lane = stream_lane(d, s->lane[sync], c->m->t->lane[s->lane[sync]].stream);
    uint32_t waits = lane == BZ_NONE ? CRITICAL_NONE : launched_after(c, lane, api->lane[cause], api->start[cause]);
    if (waits != CRITICAL_NONE && lane_of(c, source - 1) != lane)
        bz_map_set(&d->awaited, bz_arena_dup(c->m->arena, &waits, sizeof waits), sizeof waits, source - 1);
}

/* Was the stream empty when this was launched, and nothing else launched until it started? Then its launch is what it waited
 * for. `before`: how much of the queue had started. */
static bool waited_for_launch(const device_chain *d, const work *w, size_t before, int64_t launch, uint32_t awaited)
{
    const critical *c = d->c;
    size_t first = c->launch_first[w->lane];
    return launched_by(c, w->lane, launch) - first == before + 1 &&
           launched_by(c, w->lane, w->start) - first == before + 1 && (!before || d->last_started[w->lane] < launch) &&
           (!d->last[w->lane] || critical_time(c, d->last[w->lane] - 1) < launch) &&
           (awaited == CRITICAL_NONE || critical_time(c, 2 * awaited + 1) < launch);
}

static bool is_queued(const critical *c, const work *w, uint32_t event, int64_t launch)
{
    for (size_t i = launched_by(c, w->lane, launch);
         i-- > c->launch_first[w->lane] && launch_time(c, c->launch[i]) == launch;)
        if (c->launch[i] == event)
            return true;
    return false;
}

static void add_work(device_chain *d, const work *w)
{
    critical *c = d->c;
    uint32_t event = event_of(c, w->kind, w->i), cause = tables_cause(c->m, w->kind, w->i), start = 2 * event;
    const bz_events *api = &c->m->t->event[BZ_EVENT_API];
    int64_t launch = cause != BZ_NONE ? api->start[cause] : 0;
    bool queued = cause != BZ_NONE && is_queued(c, w, event, launch);
    bool launched = cause != BZ_NONE && c->present[c->first[1] + cause];
    if (tables_in(c->m, w->kind, w->i) && (launched || !api->n)) {
        uint32_t awaited = bz_map_get(&d->awaited, &event, sizeof event), *last = &d->last[w->lane];
        awaited = awaited == BZ_MAP_NONE || !c->present[awaited] ? CRITICAL_NONE : awaited;
        if (awaited != CRITICAL_NONE)
            critical_add(c, start, 2 * awaited + 1);
        c->present[event] = true;
        c->before[start + 1] = start + 1;
        if (queued && launched && waited_for_launch(d, w, d->started[w->lane], launch, awaited))
            c->before[start] = 2 * (c->first[1] + cause) + 1;
        else if (*last && w->start - critical_time(c, *last - 1) < LONGEST_DELAY &&
                 (awaited == CRITICAL_NONE || critical_time(c, 2 * awaited + 1) < critical_time(c, *last - 1)))
            c->before[start] = *last;
        *last = start + 2;
    }
    if (queued) {
        d->started[w->lane]++;
        d->last_started[w->lane] = w->start;
    }
}

typedef struct wait {
    int64_t end;
    uint32_t sync;
} wait;

BZ_SORTS(by_end, wait, BZ_THEN(BZ_ORDER(p->end, q->end), BZ_ORDER(p->sync, q->sync)));

static wait *waits_by_end(const critical *c, size_t *n)
{
    const bz_events *s = &c->m->t->event[BZ_EVENT_SYNC];
    wait *list = bz_alloc(s->n + 1, sizeof *list);
    *n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (tables_in(c->m, BZ_EVENT_SYNC, i) || s->value[i] == STREAM_WAIT_EVENT)
            list[(*n)++] = (wait){s->end[i], (uint32_t)i};
    BZ_QSORT(list, *n, by_end);
    return list;
}

/* Calls that record an event, where some wait tells which one it is for. */
static void find_records(device_chain *d)
{
    const bz_trace *t = d->c->m->t;
    const bz_events *s = &t->event[BZ_EVENT_SYNC], *api = &t->event[BZ_EVENT_API];
    size_t i = 0;
    while (i < s->n && !s->waited_record[i])
        i++;
    if (i == s->n)
        return;
    for (i = 0; i < api->n; i++)
        if (api->correlation[i] && strstr(bz_string(t, api->name[i]), "EventRecord"))
            bz_map_add(&d->records, &api->correlation[i], sizeof(uint32_t), (uint32_t)i);
}

static void begin(device_chain *d)
{
    const bz_tables *m = d->c->m;
    uint32_t lanes = m->t->n_lanes, *at = bz_zeroed((size_t)m->n_devices + 2, sizeof *at);
    d->last = bz_zeroed((size_t)lanes + 1, sizeof *d->last);
    d->started = bz_zeroed((size_t)lanes + 1, sizeof *d->started);
    d->last_started = bz_zeroed((size_t)lanes + 1, sizeof *d->last_started);
    d->lane = bz_alloc((size_t)lanes + 1, sizeof *d->lane);
    d->lanes_from = bz_zeroed((size_t)m->n_devices + 2, sizeof *d->lanes_from);
    for (uint32_t i = 0; i < lanes; i++)
        if (m->device[i] != BZ_NONE)
            d->lanes_from[m->device[i] + 1]++;
    for (uint32_t k = 0; k < m->n_devices; k++) {
        d->lanes_from[k + 1] += d->lanes_from[k];
        at[k] = d->lanes_from[k];
    }
    for (uint32_t i = 0; i < lanes; i++)
        if (m->device[i] != BZ_NONE)
            d->lane[at[m->device[i]]++] = i;
    free(at);
}

void critical_chain_device(critical *c)
{
    device_chain d = {.c = c};
    bz_tables all = *c->m;
    size_t n, next = 0;
    all.from = INT64_MIN; /* the queue does not begin with the range that is looked at */
    all.to = INT64_MAX;
    begin(&d);
    find_launches(c);
    find_records(&d);
    BZ_FREED wait *list = waits_by_end(c, &n);
    for (work w = {0}; tables_next(&all, &w);) {
        for (; next < n && list[next].end <= w.start; next++)
            add_wait(&d, list[next].sync);
        add_work(&d, &w);
    }
    for (; next < n; next++)
        add_wait(&d, list[next].sync);
    free(d.last);
    free(d.started);
    free(d.last_started);
    free(d.lane);
    free(d.lanes_from);
    bz_map_free(&d.records);
    bz_map_free(&d.awaited);
}
