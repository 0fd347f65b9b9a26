/* When the host waits: for a device, and one thread for another. */
#include "base/sort.h"
#include "whatif/build.h"
#include "whatif/constants.h"

/* Calls that return when the device is done. Freeing memory waits for it too, which no name says. */
int bz_build_waiting(const char *api)
{
    return bz_name_matches_any("DeviceSynchronize CtxSynchronize ThreadSynchronize StreamSynchronize EventSynchronize "
                               "^cudaFree ^cuMemFree",
                               api) &&
           !bz_name_matches_any("FreeAsync FreeArray", api);
}

/* The last task of a stream that was launched before the call and was done when it returned: a later one was not waited for.
 * Tasks of a lane are neighbours, launched and ended in their order. */
static uint32_t waited_for(const bz_flow *f, uint32_t lane, int64_t called, int64_t returned)
{
    uint32_t low = f->lane[lane].first, end = f->lane[lane].last + 1, high = end;
    /* the first that was not launched, or not done */
    BZ_FIND_FIRST(low, high, middle,
                  bz_build_launched(f, middle) < called && bz_build_end(&f->task[middle]) <= returned);
    return low == f->lane[lane].first ? BZ_NONE : low - 1;
}

/* What a call is said to wait for: a stream, a lane of the flow (BZ_NONE: not said, or all; NO_LANE: one that has no work in
 * this iteration), and of that what was launched before `at`. */
enum { NO_LANE = BZ_FLOW_LANES };
typedef struct {
    uint32_t lane;
    int64_t at;
} said_wait;

/* [api rows] */
static said_wait *said_waits(const bz_build *b)
{
    const bz_trace *t = b->trace;
    const bz_events *sync = &t->event[BZ_EVENT_SYNC];
    size_t n = t->event[BZ_EVENT_API].n;
    said_wait *said = bz_alloc(n + 1, sizeof *said);
    for (size_t i = 0; i < n; i++)
        said[i] = (said_wait){BZ_NONE, INT64_MAX};
    for (size_t i = 0; i < sync->n; i++) {
        const bz_lane *l = &t->lane[sync->lane[i]];
        said_wait *w = sync->cause[i] < n ? &said[sync->cause[i]] : NULL;
        if (!w)
            continue;
        if (bz_build_event(b, i, &w->lane, &w->at))
            w->lane = w->lane == BZ_NONE ? NO_LANE : w->lane;
        else if (l->device && l->stream >= 0) /* -1: no stream, but the device */
            w->lane = b->lane_of[sync->lane[i]] == BZ_NONE ? NO_LANE : b->lane_of[sync->lane[i]];
    }
    return said;
}

/* The call waited until `end` for what was launched before `launched`; what it took behind that is its own. */
static void wait_for(bz_build *b, uint32_t task, uint32_t lane, int64_t launched, int64_t end, int64_t *done)
{
    bz_flow *f = b->flow;
    uint32_t from = waited_for(f, lane, launched, bz_flow_sum(end, CLOCKS_DIFFER));
    if (from == BZ_NONE)
        return;
    int64_t over = bz_build_end(&f->task[from]), lag = end < over ? end - over : 0;
    bz_flow_depend(f, from, task, BZ_DEPENDS_SYNC, lag);
    f->counts.edges[BZ_DEPENDS_SYNC]++;
    *done = over + lag > *done ? over + lag : *done;
}

static bool one_process(const bz_build *b, uint32_t lane, uint32_t other)
{
    const bz_flow_lane *p = &b->flow->lane[lane], *q = &b->flow->lane[other];
    const bz_lane *x = &b->trace->lane[p->lane], *y = &b->trace->lane[q->lane];
    return x->source == y->source && (!x->process || !y->process || x->process == y->process);
}

static void device_waits(bz_build *b)
{
    bz_flow *f = b->flow;
    const bz_trace *t = b->trace;
    BZ_FREED said_wait *said = said_waits(b);
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->task[i].kind != BZ_TASK_SYNC)
            continue;
        int64_t end = bz_build_end(&f->task[i]), done = f->task[i].at;
        uint32_t row = f->task[i].event, stream = said[row].lane, prev = f->task[i].prev;
        int64_t launched = said[row].at < b->arrived[i] ? said[row].at : b->arrived[i];
        bool copy = !bz_build_waiting(bz_string(t, t->event[BZ_EVENT_API].name[row]));
        if (copy && prev != BZ_NONE) /* the second half of a call that copies: its own copy */
            for (uint32_t e = f->task[prev].out; e != BZ_NONE; e = f->edge[e].next_out)
                if (f->edge[e].kind == BZ_DEPENDS_LAUNCH)
                    stream = f->task[f->edge[e].to].lane;
        for (uint32_t l = 0; l < f->n_lanes; l++)
            if (f->lane[l].device && (stream == BZ_NONE ? one_process(b, f->task[i].lane, l) : stream == l))
                wait_for(b, i, l, launched, end, &done);
        /* the rest of the wait appears again when it is simulated */
        f->task[i].at = done < end ? done : end;
        f->task[i].duration = f->task[i].was = end - f->task[i].at;
    }
}

/* A pause of thread A in which thread B has a burst that begins and ends in it, and covers most of it: A handed over and
 * waited. PyTorch's backward pass runs so on a thread of its own. `from` is A's task before the pause. */
static void hand_over(const bz_build *b, uint32_t from, uint32_t first, uint32_t last)
{
    bz_flow *f = b->flow;
    bz_task *a = &f->task[from];
    uint32_t to = a->next;
    int64_t back = b->arrived[to] - bz_build_end(&f->task[last]), there = b->arrived[first] - bz_build_end(a);
    bz_flow_depend(f, from, first, BZ_DEPENDS_HOST, there);
    bz_flow_depend(f, last, to, BZ_DEPENDS_HOST, back);
    a->gap = 0;
    f->task[last].gap = f->task[last].next == BZ_NONE ? f->task[last].gap : 0;
    if (f->task[first].prev == BZ_NONE)
        f->task[first].not_before = 0;
    else
        f->task[f->task[first].prev].gap = 0;
    f->counts.edges[BZ_DEPENDS_HOST] += 2;
    f->counts.handovers++;
}

/* The first task of a host lane that begins at `at` or later: tasks of a lane are neighbours. */
static uint32_t first_from(const bz_build *b, uint32_t lane, int64_t at)
{
    const bz_flow *f = b->flow;
    uint32_t low = f->lane[lane].first, high = f->lane[lane].last + 1, end = high;
    BZ_FIND_FIRST(low, high, middle, b->arrived[middle] < at);
    return low == end ? BZ_NONE : low;
}

static bool burst_in(const bz_build *b, uint32_t lane, int64_t from, int64_t to, uint32_t *first, uint32_t *last)
{
    const bz_flow *f = b->flow;
    *first = first_from(b, lane, from);
    if (*first == BZ_NONE || bz_build_end(&f->task[*first]) > to)
        return false;
    uint32_t behind = first_from(b, lane, to);
    *last = behind == BZ_NONE ? f->lane[lane].last : f->task[behind].prev;
    if (*last == BZ_NONE) /* a first task that takes no time begins where the pause ends */
        return false;
    const bz_task *p = f->task[*first].prev == BZ_NONE ? NULL : &f->task[f->task[*first].prev];
    int64_t covered = bz_build_end(&f->task[*last]) - b->arrived[*first];
    return bz_build_end(&f->task[*last]) <= to && (!p || bz_build_end(p) <= from) &&
           (double)covered > HANDOVER_COVERS * (double)(to - from);
}

static void hand_overs(const bz_build *b)
{
    bz_flow *f = b->flow;
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t lane = f->task[i].lane, next = f->task[i].next;
        if (f->lane[lane].device || next == BZ_NONE)
            continue;
        int64_t from = bz_build_end(&f->task[i]), to = b->arrived[next];
        if (to - from < HANDOVER)
            continue;
        for (uint32_t l = 0; l < f->n_lanes; l++) {
            uint32_t first, last;
            if (l != lane && !f->lane[l].device && f->lane[l].first != BZ_NONE && one_process(b, lane, l) &&
                burst_in(b, l, from, to, &first, &last)) {
                hand_over(b, i, first, last);
                break;
            }
        }
    }
}

void bz_build_waits(bz_build *b)
{
    device_waits(b);
    hand_overs(b);
}
