/* Events: streams that wait for what other streams had to do when an event was recorded. */
#include "base/sort.h"
#include "whatif/build.h"
#include "whatif/constants.h"

#include <stdlib.h>

/* When the host launched it; where that is not on record, when it started. */
int64_t bz_build_launched(const bz_flow *f, uint32_t task)
{
    uint32_t launch = bz_flow_launch_of(f, task);
    return launch == BZ_NONE ? f->task[task].at : f->task[launch].at;
}

/* The first task of a lane that was launched at `at` or later; its tasks are neighbours, and launched in their order. */
static uint32_t launched_after(const bz_flow *f, uint32_t lane, int64_t at)
{
    uint32_t low = f->lane[lane].first, last = f->lane[lane].last, high = last;
    if (low == BZ_NONE || bz_build_launched(f, last) < at)
        return BZ_NONE;
    BZ_FIND_FIRST(low, high, middle, bz_build_launched(f, middle) < at);
    return low;
}

/* The last one that was launched before. */
static uint32_t launched_before(const bz_flow *f, uint32_t lane, int64_t at)
{
    uint32_t after = launched_after(f, lane, at);
    return after == BZ_NONE ? f->lane[lane].last : f->task[after].prev;
}

BZ_SORTS(by_correlation, bz_build_record,
         BZ_THEN(BZ_ORDER(p->source, q->source),
                 BZ_THEN(BZ_ORDER(p->correlation, q->correlation), BZ_ORDER(p->api, q->api))));

static uint32_t source_of(const bz_trace *t, bz_event_kind kind, size_t row)
{
    return t->lane[t->event[kind].lane[row]].source;
}

void bz_build_records(bz_build *b)
{
    const bz_trace *t = b->trace;
    const bz_events *sync = &t->event[BZ_EVENT_SYNC], *api = &t->event[BZ_EVENT_API];
    size_t told = 0;
    while (told < sync->n && !sync->waited_record[told])
        told++;
    if (told == sync->n)
        return;
    b->record = bz_alloc(api->n + 1, sizeof *b->record);
    for (size_t i = 0; i < api->n; i++)
        if (api->correlation[i] && bz_name_matches("EventRecord", bz_string(t, api->name[i])))
            b->record[b->n_records++] =
                (bz_build_record){source_of(t, BZ_EVENT_API, i), api->correlation[i], (uint32_t)i};
    BZ_QSORT(b->record, b->n_records, by_correlation);
}

static const bz_build_record *find_record(const bz_build *b, uint32_t source, uint32_t correlation)
{
    const bz_build_record *r = b->record;
    size_t low = 0, high = b->n_records;
    BZ_FIND_FIRST(low, high, k, r[k].source < source || (r[k].source == source && r[k].correlation < correlation));
    r += low;
    return low < b->n_records && r->source == source && r->correlation == correlation ? r : NULL;
}

/* The stream of that number on the device of the waiting one. */
static uint32_t stream_beside(const bz_build *b, const bz_lane *of, int64_t stream)
{
    for (uint32_t l = 0; l < b->flow->n_lanes; l++) {
        const bz_flow_lane *lane = &b->flow->lane[l];
        const bz_lane *it = lane->device ? &b->trace->lane[lane->lane] : NULL;
        if (it && it->stream == stream && it->source == of->source && it->device_id == of->device_id)
            return l;
    }
    return BZ_NONE;
}

bool bz_build_event(const bz_build *b, size_t sync, uint32_t *lane, int64_t *at)
{
    const bz_trace *t = b->trace;
    const bz_events *s = &t->event[BZ_EVENT_SYNC];
    const bz_build_record *r = b->n_records && s->waited_record[sync] && s->waited_stream[sync]
                                   ? find_record(b, source_of(t, BZ_EVENT_SYNC, sync), s->waited_record[sync])
                                   : NULL;
    if (!r)
        return false;
    *lane = stream_beside(b, &t->lane[s->lane[sync]], (int64_t)s->waited_stream[sync] - 1);
    *at = t->event[BZ_EVENT_API].start[r->api] - b->span.start;
    return true;
}

static void wait_for(bz_build *b, uint32_t to, uint32_t lane, int64_t at)
{
    bz_flow *f = b->flow;
    uint32_t from = launched_before(f, lane, at);
    if (from == BZ_NONE || bz_build_end(&f->task[from]) > bz_flow_sum(f->task[to].at, CLOCK_ROUNDS))
        return;
    bz_flow_depend(f, from, to, BZ_DEPENDS_STREAM, 0);
    f->counts.edges[BZ_DEPENDS_STREAM]++;
}

/* Where the recording tells who recorded the event, a stream waits for what that one had been given by then. Else it waits
 * for whatever other streams had been given when it was told to wait, and had done before it went on. */
void bz_build_events(bz_build *b)
{
    const bz_trace *t = b->trace;
    const bz_flow *f = b->flow;
    const bz_events *sync = &t->event[BZ_EVENT_SYNC], *api = &t->event[BZ_EVENT_API];
    for (size_t i = 0; i < sync->n; i++) {
        uint32_t cause = sync->cause[i], other;
        int64_t recorded;
        if (cause >= api->n || b->of_api[cause] == BZ_NONE || !t->lane[sync->lane[i]].device ||
            !bz_name_matches("StreamWaitEvent", bz_string(t, api->name[cause])))
            continue;
        uint32_t lane = b->lane_of[sync->lane[i]];
        int64_t at = f->task[b->of_api[cause]].at;
        uint32_t to = lane == BZ_NONE ? BZ_NONE : launched_after(f, lane, at);
        if (to == BZ_NONE)
            continue;
        if (bz_build_event(b, i, &other, &recorded)) {
            if (other != BZ_NONE && other != lane)
                wait_for(b, to, other, recorded);
            continue;
        }
        for (uint32_t l = 0; l < f->n_lanes; l++)
            if (l != lane && f->lane[l].device)
                wait_for(b, to, l, at);
    }
}
