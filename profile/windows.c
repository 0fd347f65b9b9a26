/* From where its work is cut into iterations, when each of them begins and ends: with its inputs, before its first launch, until
 * the last of its work is done. */
#include "base/sort.h"
#include "profile/columns.h"
#include "profile/sequence.h"

static bool same_process(const bz_trace *t, uint32_t lane, uint32_t other)
{
    const bz_lane *a = &t->lane[lane], *b = &t->lane[other];
    return a->source == b->source && (a->process == b->process || !a->process || !b->process);
}

/* Between two iterations the host does things that are no library calls: launches of the framework's own
 * kernels, waiting, copying. The longest pause among them separates the iterations. Returns how many launches
 * come between that pause and `to`, the first call of the next iteration. */
static uint32_t launches_before(const bz_trace *t, uint32_t lane, int64_t from, int64_t to)
{
    const bz_events *api = &t->event[BZ_EVENT_API];
    uint32_t count = 0, best = 0;
    int64_t next = to, longest = 0;
    for (size_t i = bz_events_from(api, to); i-- > 0 && api->start[i] >= from;) {
        if (!same_process(t, api->lane[i], lane))
            continue;
        int64_t pause = next - api->end[i];
        if (pause > longest) {
            longest = pause;
            best = count;
        }
        count += bz_api_of(t, i) == BZ_API_LAUNCHES;
        next = api->start[i] < next ? api->start[i] : next;
    }
    return best;
}

/* How many launches lie in [from, to), and when the first one after `skip` of them starts (to, where there is none). */
static uint32_t launches_between(const bz_trace *t, uint32_t lane, int64_t from, int64_t to, uint32_t skip,
                                 int64_t *behind)
{
    const bz_events *api = &t->event[BZ_EVENT_API];
    uint32_t count = 0;
    *behind = to;
    for (size_t i = bz_events_from(api, from); i < api->n && api->start[i] < to; i++)
        if (same_process(t, api->lane[i], lane) && bz_api_of(t, i) == BZ_API_LAUNCHES && count++ == skip)
            *behind = api->start[i];
    return count;
}

/* Start of the launch that stands `launches` before `to`. */
static int64_t start_of_launch(const bz_trace *t, uint32_t lane, int64_t from, int64_t to, uint32_t launches)
{
    const bz_events *api = &t->event[BZ_EVENT_API];
    int64_t start = to;
    for (size_t i = bz_events_from(api, to); launches && i-- > 0 && api->start[i] >= from;)
        if (same_process(t, api->lane[i], lane) && bz_api_of(t, i) == BZ_API_LAUNCHES) {
            start = api->start[i];
            launches--;
        }
    return start;
}

int64_t bz_median(int64_t *v, size_t n)
{
    bz_sort_times(v, n);
    return n ? v[n / 2] : 0;
}

/* Last end among what belongs to [start, limit): host events that start in it, but for those of threads beside, and device work launched in it. */
static int64_t last_end(const bz_trace *t, const bool *left_out, int64_t start, int64_t limit, int64_t at_least)
{
    static const bz_event_kind HOST[] = {BZ_EVENT_CALL, BZ_EVENT_API, BZ_EVENT_OP};
    static const bz_event_kind DEVICE[] = {BZ_EVENT_KERNEL, BZ_EVENT_COPY, BZ_EVENT_MEMSET};
    int64_t end = at_least;
    bool logs = false, timeline = bz_has_timeline(t);
    for (uint32_t i = 0; i < t->n_sources && timeline; i++)
        logs |= t->source[i].log;
    for (size_t k = 0; k < 3; k++) {
        const bz_events *e = &t->event[HOST[k]];
        for (size_t i = bz_events_from(e, start); i < e->n && e->start[i] < limit; i++)
            if (e->end[i] + (e->end[i] == e->start[i]) > end && !(logs && bz_of_log(t, e->lane[i])) &&
                !(left_out && left_out[e->lane[i]]))
                end = e->end[i] + (e->end[i] == e->start[i]); /* of no length, but it belongs to it */
    }
    for (size_t k = 0; k < 3; k++) {
        const bz_events *e = &t->event[DEVICE[k]];
        for (size_t i = bz_events_from(e, start); i < e->n; i++) {
            int64_t at = bz_asked_at(t, e, i);
            if (at >= start && at < limit && e->end[i] > end)
                end = e->end[i];
            if (e->start[i] > limit && at >= limit)
                break;
        }
    }
    return end;
}

/* When the host asked for each copy to the device, ascending. */
typedef struct {
    int64_t *at;
    size_t n;
} inputs;

enum { TO_DEVICE = 1, TO_HOST = 2 }; /* directions, as CUPTI numbers them */

static inputs find_inputs(const bz_trace *t, uint32_t lane, bz_arena *arena)
{
    const bz_events *e = &t->event[BZ_EVENT_COPY];
    inputs in = {BZ_NEW(arena, int64_t, e->n + 1), 0};
    for (size_t i = 0; i < e->n; i++)
        if (e->value[i] == TO_DEVICE && same_process(t, e->lane[i], lane))
            in.at[in.n++] = bz_asked_at(t, e, i);
    bz_sort_times(in.at, in.n);
    return in;
}

/* Index of the first input that was asked for at `time` or later. */
static size_t inputs_from(const inputs *in, int64_t time)
{
    size_t low = 0, high = in->n;
    BZ_FIND_FIRST(low, high, middle, in->at[middle] < time);
    return low;
}

/* The last kernel and the last copy of a result that were asked for in [from, to): when, and when the device was done. */
static void last_work(const bz_trace *t, uint32_t lane, int64_t from, int64_t to, int64_t *at, int64_t *done)
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_KERNEL, BZ_EVENT_COPY};
    for (size_t k = 0; k < 2; k++) {
        const bz_events *e = &t->event[KINDS[k]];
        for (size_t i = bz_events_from(e, from); i < e->n; i++) {
            int64_t asked = bz_asked_at(t, e, i);
            if (e->start[i] > to && asked >= to)
                break;
            if (asked >= to || !same_process(t, e->lane[i], lane) ||
                (KINDS[k] == BZ_EVENT_COPY && e->value[i] != TO_HOST))
                continue;
            *at = asked > *at ? asked : *at;
            *done = e->end[i] > *done ? e->end[i] : *done;
        }
    }
}

/* An iteration's inputs are copied before its first launch, at `to`. They are the copies to the device behind the last
 * kernel, the last result and the last wait of the iteration before. A wait for a copy, as a program does it whose memory is
 * pageable, is no such wait: when that copy was asked for, the device had nothing else to do. Returns the first input. */
static size_t first_input(const bz_trace *t, uint32_t lane, const inputs *in, int64_t from, int64_t to)
{
    const bz_events *api = &t->event[BZ_EVENT_API];
    int64_t behind = from, done = from;
    last_work(t, lane, from, to, &behind, &done);
    size_t first = inputs_from(in, behind);
    for (size_t i = bz_events_from(api, behind); i < api->n && api->start[i] < to; i++) {
        bool for_copy = first < in->n && in->at[first] < api->start[i] && in->at[first] >= done;
        if (!for_copy && bz_api_of(t, i) == BZ_API_WAITS && same_process(t, api->lane[i], lane))
            first = inputs_from(in, api->end[i]);
    }
    return first;
}

/* Lets iterations begin with their inputs. In front of the first one lie the weights, too: it has as many inputs as others. */
static void begin_with_inputs(const bz_trace *t, const bz_sequence *s, const uint32_t *first, uint32_t n,
                              int64_t *start, bz_arena *arena)
{
    uint32_t lane = t->event[s->kind].lane[s->row[0]];
    inputs in = find_inputs(t, lane, arena);
    int64_t *count = BZ_NEW(arena, int64_t, n);
    size_t n_counts = 0;
    for (uint32_t i = n; in.n && i-- > 0;) {
        size_t to = inputs_from(&in, start[i]), from = to;
        if (first[i]) {
            from = first_input(t, lane, &in, bz_sequence_end(s, first[i] - 1), start[i]);
            count[n_counts++] = from < to ? (int64_t)(to - from) : 0;
        } else if (n_counts) {
            size_t usual = (size_t)bz_median(count, n_counts);
            from = usual < to ? to - usual : 0;
        }
        if (from < to)
            start[i] = in.at[from];
    }
}

void bz_sequence_windows(bz_trace *t, const bz_sequence *s, const uint32_t *first, uint32_t n, bz_arena *arena)
{
    uint32_t lane = t->event[s->kind].lane[s->row[0]];
    int64_t *votes = BZ_NEW(arena, int64_t, n), *tails = BZ_NEW(arena, int64_t, n),
            *start = BZ_NEW(arena, int64_t, n + 1);
    size_t n_votes = 0, n_tails = 0;
    for (uint32_t i = 1; i < n; i++)
        if (first[i])
            votes[n_votes++] =
                launches_before(t, lane, bz_sequence_end(s, first[i] - 1), bz_sequence_start(s, first[i]));
    uint32_t launches = (uint32_t)bz_median(votes, n_votes);
    for (uint32_t i = 0; i < n; i++) {
        int64_t from = first[i] ? bz_sequence_end(s, first[i] - 1) : INT64_MIN;
        start[i] = start_of_launch(t, lane, from, bz_sequence_start(s, first[i]), launches);
    }
    begin_with_inputs(t, s, first, n, start, arena);
    /* what comes behind the last call of the last iteration: as much as behind the others */
    int64_t last = bz_sequence_end(s, first[n] - 1), behind;
    n_votes = 0;
    for (uint32_t i = 0; i + 1 < n; i++) {
        int64_t from = bz_sequence_end(s, first[i + 1] - 1);
        tails[n_tails++] = start[i + 1] - from;
        votes[n_votes++] = launches_between(t, lane, from, start[i + 1], 0, &behind);
    }
    int64_t tail = bz_median(tails, n_tails);
    launches_between(t, lane, last, last + (tail > 0 ? tail : 0), (uint32_t)bz_median(votes, n_votes), &behind);
    start[n] = behind;
    if (start[n] <= last)
        start[n] = last + 1;
    for (uint32_t i = 0; i < n; i++)
        bz_trace_add_iteration(t, start[i], last_end(t, s->left_out, start[i], start[i + 1], start[i]));
}
