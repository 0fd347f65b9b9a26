/* Where something else had the processor: stretches between two events that took far longer in one iteration than in most of those that did
 * the same. What a neighbour takes is nothing that the program loses: that time is taken out of the recording. */
#include "base/sort.h"
#include "profile/constants.h"
#include "profile/sequence.h"

#include <string.h>

typedef struct event {
    int64_t start, end;
    uint32_t name;
} event;

/* What is taken out of an iteration. */
typedef struct piece {
    int64_t from, length, before; /* before: of the pieces before it */
} piece;

/* An iteration that does the same as the typical one. */
typedef struct member {
    const event *first; /* as many as the typical one has */
    int64_t begin, end, next;
    piece *cut; /* ascending */
    size_t n_cuts;
} member;

typedef struct disturbed {
    bz_trace *t;
    bz_arena arena;
    event *event; /* of the thread that does most */
    size_t n, each;
    member *member;
    uint32_t n_members;
    const event *example; /* where most is taken out; NULL: before the first one */
    int64_t took, usual;
} disturbed;

static uint32_t busiest_lane(disturbed *d)
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_OP, BZ_EVENT_CALL};
    const bz_trace *t = d->t;
    size_t *count = BZ_NEW(&d->arena, size_t, t->n_lanes + 1);
    uint32_t most = 0;
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++)
        for (size_t i = 0; i < t->event[KINDS[k]].n; i++) {
            uint32_t lane = t->event[KINDS[k]].lane[i];
            most = ++count[lane] > count[most] ? lane : most;
        }
    d->n = t->n_lanes ? count[most] : 0;
    return most;
}

/* Operators and calls that lie in no other one, in their order. */
static void gather(disturbed *d)
{
    uint32_t lane = busiest_lane(d);
    const bool *is_long = bz_long_names(d->t, SHORTEST_OPERATOR, &d->arena);
    const bz_events *op = &d->t->event[BZ_EVENT_OP], *call = &d->t->event[BZ_EVENT_CALL];
    d->event = BZ_NEW(&d->arena, event, d->n + 1);
    size_t all = d->n, i = 0, k = 0;
    d->n = 0;
    for (int64_t end = INT64_MIN; all;) {
        bool first = i < op->n && (k == call->n || op->start[i] <= call->start[k]);
        const bz_events *e = first ? op : call;
        size_t row = first ? i++ : k++;
        if (e->lane[row] != lane)
            continue;
        all--;
        if (!is_long[e->name[row]] || e->start[row] < end)
            continue;
        end = e->end[row];
        d->event[d->n++] = (event){e->start[row], end, e->name[row]};
    }
}

static size_t event_from(const disturbed *d, int64_t time)
{
    size_t low = 0, high = d->n;
    BZ_FIND_FIRST(low, high, middle, d->event[middle].start < time);
    return low;
}

static bool alike(const event *a, const event *b, size_t n)
{
    size_t i = 0;
    while (i < n && a[i].name == b[i].name)
        i++;
    return i == n;
}

static void find_members(disturbed *d)
{
    const bz_trace *t = d->t;
    uint32_t typical = bz_typical_iteration(t);
    if (typical == BZ_NONE)
        return;
    d->member = BZ_NEW(&d->arena, member, t->n_iterations);
    size_t from = event_from(d, bz_iteration_begin(t, typical));
    d->each = event_from(d, t->iteration[typical].end) - from;
    for (uint32_t i = 0; i < t->n_iterations && d->each; i++) {
        member m = {.begin = bz_iteration_begin(t, i),
                    .end = t->iteration[i].end,
                    .next = i + 1 < t->n_iterations ? t->iteration[i + 1].start : INT64_MAX};
        size_t at = event_from(d, m.begin);
        m.first = d->event + at;
        if (!bz_iteration_is_steady(t, i) || m.next < m.end || event_from(d, m.end) - at != d->each ||
            !alike(m.first, d->event + from, d->each))
            continue;
        d->member[d->n_members++] = m;
    }
}

/* Stretch k lies behind the begin of event k - 1, until that of event k. */
static int64_t begin_of(const disturbed *d, const member *m, size_t k)
{
    return k == 0 ? m->begin : k <= d->each ? m->first[k - 1].start : m->end;
}

/* Out of the event, where it ends within the stretch and is as long as what is taken out; else out of what follows. */
static void cut(disturbed *d, member *m, size_t k, int64_t excess)
{
    const event *e = k ? &m->first[k - 1] : NULL;
    int64_t end = begin_of(d, m, k + 1);
    if (e && e->end < end && e->end - e->start >= excess)
        end = e->end;
    const piece *last = m->n_cuts ? &m->cut[m->n_cuts - 1] : NULL;
    int64_t before = last ? last->before + last->length : 0;
    BZ_ARENA_ADD(&d->arena, m->cut, m->n_cuts) = (piece){end - excess, excess, before};
}

static void find_cuts(disturbed *d)
{
    int64_t *took = BZ_NEW(&d->arena, int64_t, d->n_members), *sorted = BZ_NEW(&d->arena, int64_t, d->n_members);
    for (size_t k = 0; k <= d->each; k++) {
        int64_t longest = 0;
        for (uint32_t i = 0; i < d->n_members; i++) {
            took[i] = begin_of(d, &d->member[i], k + 1) - begin_of(d, &d->member[i], k);
            longest = took[i] > longest ? took[i] : longest;
        }
        if (longest < DISTURBED_LEAST)
            continue;
        memcpy(sorted, took, d->n_members * sizeof *sorted);
        int64_t usual = bz_median(sorted, d->n_members);
        for (uint32_t i = 0; i < d->n_members; i++) {
            if (took[i] < 2 * usual || took[i] - usual < DISTURBED_LEAST)
                continue;
            cut(d, &d->member[i], k, took[i] - usual);
            if (took[i] - usual <= d->took - d->usual)
                continue;
            d->example = k ? &d->member[i].first[k - 1] : NULL;
            d->took = took[i];
            d->usual = usual;
        }
    }
}

/* What is taken out before that time. */
static int64_t taken_before(const member *m, int64_t time)
{
    size_t low = 0, high = m->n_cuts;
    BZ_FIND_FIRST(low, high, middle, m->cut[middle].from < time);
    const piece *last = low ? &m->cut[low - 1] : NULL;
    return !last ? 0 : last->before + (time - last->from < last->length ? time - last->from : last->length);
}

static int64_t moved(const disturbed *d, int64_t time)
{
    uint32_t low = 0, high = d->n_members;
    BZ_FIND_FIRST(low, high, middle, d->member[middle].begin <= time);
    const member *m = low ? &d->member[low - 1] : NULL;
    return m && time < m->next ? time - taken_before(m, time) : time;
}

static void move_all(const disturbed *d)
{
    for (int k = 0; k < BZ_EVENT_KINDS; k++) {
        bz_events *e = &d->t->event[k];
        for (size_t i = 0; i < e->n; i++) {
            e->start[i] = moved(d, e->start[i]);
            e->end[i] = moved(d, e->end[i]);
        }
    }
    for (uint32_t i = 0; i < d->t->n_iterations; i++)
        d->t->iteration[i].end = moved(d, d->t->iteration[i].end);
}

static void tell(disturbed *d, int64_t before)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_members; i++)
        n += d->member[i].n_cuts > 0;
    bz_unit_text now, then, took, usual;
    bz_units_time(now, 1e-9 * (double)bz_iteration_latency(d->t, bz_typical_iteration(d->t)));
    bz_units_time(then, 1e-9 * (double)before);
    bz_units_time(took, 1e-9 * (double)d->took);
    bz_units_time(usual, 1e-9 * (double)d->usual);
    bz_trace_lack(d->t, BZ_NONE, BZ_COVERAGE_NOTE, BZ_LACKS_UNDISTURBED,
                  "disturbed: in %u of %u iterations something took far longer than in most (%s: %s instead of %s), as "
                  "where another program has the processor. Without that the typical iteration takes %s, with it %s",
                  n, d->n_members, d->example ? bz_string(d->t, d->example->name) : "before the first operator", took,
                  usual, now, then);
}

bool bz_trace_leave_disturbed(bz_trace *t)
{
    bool device = t->event[BZ_EVENT_KERNEL].n || t->event[BZ_EVENT_COPY].n || t->event[BZ_EVENT_MEMSET].n, any = false;
    disturbed d = {.t = t};
    if (device || t->n_levels || !bz_trace_has_lengths(t) || bz_steady_iterations(t) < DISTURBED_OF)
        return false;
    gather(&d);
    find_members(&d);
    if (d.n_members >= DISTURBED_OF)
        find_cuts(&d);
    for (uint32_t i = 0; i < d.n_members; i++)
        any |= d.member[i].n_cuts > 0;
    int64_t before = any ? bz_iteration_latency(t, bz_typical_iteration(t)) : 0;
    if (any) {
        move_all(&d);
        tell(&d, before);
    }
    bz_arena_free(&d.arena);
    return any;
}
