/* The sequence in which iterations are looked for: of all events of a kind, those that the program's own steps are made of. */
#include "base/sort.h"
#include "profile/constants.h"
#include "profile/sequence.h"

#include <stdlib.h>

/* Threads of one process are one lane here; streams are one for each device of a process. The lane, by its first, that has most
 * rows; BZ_NONE: there are no rows. `first` [n_lanes]: that stands for each lane. `only`: it has all rows. */
static uint32_t busiest(const bz_trace *t, bz_event_kind kind, uint32_t *first, bool *only)
{
    const bz_events *e = &t->event[kind];
    size_t most = 0, several = 0, *count = bz_alloc(t->n_lanes + 1, sizeof *count);
    int64_t(*key)[3] = bz_alloc(t->n_lanes + 1, sizeof *key);
    uint32_t best = BZ_NONE;
    BZ_SCOPED(bz_map) lanes = {0};
    for (uint32_t i = 0; i < t->n_lanes; i++) {
        const bz_lane *l = &t->lane[i];
        key[i][0] = l->source;
        key[i][1] = l->process;
        key[i][2] = l->device ? l->device_id : -1;
        first[i] = bz_map_add(&lanes, key[i], sizeof key[i], i);
        count[i] = 0;
        if (l->kinds & 1u << kind) {
            several += best != first[i];
            best = first[i];
        }
    }
    *only = several == 1 && kind == BZ_EVENT_KERNEL; /* which stay where they were read */
    for (size_t i = 0; i < e->n && !*only; i++) {
        uint32_t lane = first[e->lane[i]];
        if (++count[lane] > most) {
            most = count[lane];
            best = lane;
        }
    }
    *only |= most == e->n;
    free(key);
    free(count);
    return best;
}

static bool wanted(const bz_trace *t, bz_event_kind kind, size_t i, bool timeline)
{
    const bz_events *e = &t->event[kind];
    if (kind == BZ_EVENT_CALL)
        return bz_call_works(t, i) && !(timeline && bz_of_log(t, e->lane[i]));
    if (kind == BZ_EVENT_OP)
        return e->op[i] == BZ_NONE;
    return true;
}

static int by_host_start(const void *a, const void *b, void *context)
{
    const uint32_t *p = a, *q = b;
    return BZ_THEN(BZ_ORDER(bz_sequence_asked(context, *p), bz_sequence_asked(context, *q)), BZ_ORDER(*p, *q));
}

/* Streams overlap; launches do not. */
static void sort_by_host(bz_sequence *s)
{
    size_t i = 0;
    for (int64_t before = INT64_MIN, at; i < s->n && (at = bz_sequence_start(s, i)) >= before; i++)
        before = at;
    if (i < s->n)
        qsort_r(s->row, s->n, sizeof *s->row, by_host_start, s);
}

bool *bz_long_names(const bz_trace *t, int64_t shortest, bz_arena *arena)
{
    static const bz_event_kind KINDS[] = {BZ_EVENT_OP, BZ_EVENT_CALL};
    uint32_t n = bz_strings(t);
    size_t *longer = BZ_NEW(arena, size_t, n), *count = BZ_NEW(arena, size_t, n);
    bool *is_long = BZ_NEW(arena, bool, n);
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        const bz_events *e = &t->event[KINDS[k]];
        for (size_t i = 0; i < e->n; i++) {
            longer[e->name[i]] += e->end[i] - e->start[i] >= shortest;
            count[e->name[i]]++;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        is_long[i] = 2 * longer[i] > count[i];
    return is_long;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    for (uint32_t rest; b; a = b, b = rest)
        rest = a % b;
    return a;
}

/* Where each layer of a network is one operator nothing else may be long, and what tells a pass from the next is short in a small network: the
 * layer behind them, a product of 4 µs, or the function that the last layer lacks. Of such names those stay that are there a whole number of times in
 * a pass, as the layers are: both counts have the number of passes as a divisor, and few times a pass. */
static void keep_regular(const bz_trace *t, const bz_sequence *s, bool *is_long, bz_arena *arena)
{
    const uint32_t *name = s->event->name, n = bz_strings(t);
    uint32_t *count = BZ_NEW(arena, uint32_t, n), only = n;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t own = name[s->row[i]];
        count[own]++;
        if (is_long[own] && only != n && only != own)
            return;
        only = is_long[own] ? own : only;
    }
    const bool *shorter = only != n ? bz_long_names(t, SHORTEST_IN_TURN, arena) : NULL;
    for (uint32_t i = 0; i < n && shorter; i++)
        is_long[i] |=
            shorter[i] && count[i] > 1 && TIMES_IN_A_PASS * (uint64_t)common_divisor(count[only], count[i]) >= count[i];
}

/* Views and the like. Where nothing else is left they stay. */
static void leave_views(const bz_trace *t, bz_sequence *s, bz_arena *arena)
{
    bool *is_long = bz_long_names(t, SHORTEST_OPERATOR, arena);
    keep_regular(t, s, is_long, arena);
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        kept += is_long[s->event->name[s->row[i]]];
    if (8 * kept <= s->n)
        return;
    for (size_t i = 0, k = 0; i < s->n; i++)
        if (is_long[s->event->name[s->row[i]]])
            s->row[k++] = s->row[i];
    s->n = kept;
}

/* How long `thread` was in an operator, or in a launch, before each of its own, and in all: ascending and apart from one another. */
typedef struct {
    int64_t *start, *end, *before;
    size_t n;
} busy_time;

static int64_t time_until(const busy_time *b, int64_t at)
{
    size_t low = 0, high = b->n;
    BZ_FIND_FIRST(low, high, middle, b->start[middle] < at);
    if (!low)
        return 0;
    return b->before[low - 1] + (b->end[low - 1] < at ? b->end[low - 1] : at) - b->start[low - 1];
}

/* The thread of the host: of an operator, or of what launched a kernel. */
static uint32_t thread_of(const bz_sequence *s, size_t i)
{
    uint32_t row = s->row[i], cause = s->cause ? s->cause[row] : BZ_NONE;
    return cause != BZ_NONE ? s->api->lane[cause] : s->event->lane[row];
}

/* What the thread is in, one behind the other. */
static void add_busy(busy_time *b, int64_t start, int64_t end)
{
    if (b->n && start < b->end[b->n - 1])
        start = b->end[b->n - 1];
    if (start >= end)
        return;
    b->before[b->n] = b->n ? b->before[b->n - 1] + b->end[b->n - 1] - b->start[b->n - 1] : 0;
    b->start[b->n] = start;
    b->end[b->n++] = end;
}

/* Threads whose operators run while the one that does most is in operators of its own load data, or are twins of it: what they do comes at any
 * time, and is no part of the sequence. The way back runs on another thread as well, while the first one only waits. Likewise of threads that
 * launch kernels on streams of their own while that one launches, copies or waits. Marks lanes; false: there is but one thread. */
static bool leave_threads_beside(const bz_trace *t, const bz_sequence *s, bool *beside, uint32_t *busiest_thread)
{
    uint32_t most = thread_of(s, 0);
    size_t alone = 1; /* of one thread from the first on */
    while (alone < s->n && thread_of(s, alone) == most)
        alone++;
    if (alone == s->n)
        return false;
    BZ_FREED int64_t *all = bz_zeroed(t->n_lanes, sizeof *all), *both = bz_zeroed(t->n_lanes, sizeof *both);
    bool launches = s->kind == BZ_EVENT_KERNEL;
    const int percent = s->kind == BZ_EVENT_CALL ? CALLS_BESIDE : BESIDE;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t lane = thread_of(s, i);
        bz_time_add(&all[lane], bz_sequence_end(s, i) - bz_sequence_start(s, i));
        most = all[lane] > all[most] ? lane : most;
    }
    size_t n = launches ? s->api->n : s->n;
    busy_time b = {bz_alloc(n, sizeof *b.start), bz_alloc(n, sizeof *b.end), bz_alloc(n, sizeof *b.before), 0};
    for (size_t i = 0; i < n; i++)
        if ((launches ? s->api->lane[i] : thread_of(s, i)) == most)
            add_busy(&b, launches ? s->api->start[i] : bz_sequence_start(s, i),
                     launches ? s->api->end[i] : bz_sequence_end(s, i));
    bool *streams =
        bz_zeroed(t->n_lanes, sizeof *streams); /* of that thread: others that launch there share its work */
    for (size_t i = 0; i < s->n && launches; i++)
        streams[s->event->lane[s->row[i]]] |= thread_of(s, i) == most;
    for (size_t i = 0; i < s->n; i++)
        if (thread_of(s, i) != most && !streams[s->event->lane[s->row[i]]])
            bz_time_add(&both[thread_of(s, i)],
                        time_until(&b, bz_sequence_end(s, i)) - time_until(&b, bz_sequence_start(s, i)));
    for (uint32_t i = 0; i < t->n_lanes; i++)
        beside[i] = i != most && both[i] / percent >= all[i] / 100 + 1;
    *busiest_thread = most;
    free(streams);
    free(b.start);
    free(b.end);
    free(b.before);
    return true;
}

static bool is_same_call(const bz_events *e, uint32_t a, uint32_t b)
{
    return e->name[a] == e->name[b] && (!e->detail || e->detail[a] == e->detail[b]);
}

/* Whether a thread's library calls, these rows, repeat by themselves, as passes of its own do: not so the share of a pass that a thread of a pool
 * happens to get. Judged behind the first quarter, which may be a warm-up. */
static bool repeats_alone(const bz_events *e, const uint32_t *row, size_t n)
{
    size_t tried = 0;
    for (size_t at = n / 2 + 1; at < n && tried < PERIODS_TRIED; at++) {
        size_t period = at - n / 2, from = n / 4, same = 0, kinds = 0;
        if (!is_same_call(e, row[at], row[n / 2]))
            continue;
        for (size_t i = from; i + period < n; i++)
            same += is_same_call(e, row[i], row[i + period]);
        for (size_t i = n / 2; i < at; i++)
            kinds += !is_same_call(e, row[i], row[n / 2]);
        if (kinds && 100 * same >= REPEATS_ALONE * (n - period - from))
            return true;
        tried++;
    }
    return false;
}

/* Calls of threads that share a pass belong together, and so to the sequence. */
static bool all_repeat_alone(const bz_trace *t, const bz_sequence *s, const bool *beside, uint32_t most)
{
    BZ_FREED size_t *end = bz_zeroed(t->n_lanes + 1, sizeof *end); /* of each thread's rows, which lie together */
    BZ_FREED uint32_t *row = bz_alloc(s->n, sizeof *row);
    for (size_t i = 0; i < s->n; i++)
        end[thread_of(s, i) + 1]++;
    for (uint32_t i = 0; i < t->n_lanes; i++)
        end[i + 1] += end[i];
    for (size_t i = 0; i < s->n; i++)
        row[end[thread_of(s, i)]++] = s->row[i];
    bool all = true, any = false;
    for (uint32_t i = 0; i < t->n_lanes && all; i++) {
        size_t begin = i ? end[i - 1] : 0;
        any |= beside[i];
        all = (i != most && !beside[i]) || repeats_alone(s->event, row + begin, end[i] - begin);
    }
    return all && any;
}

static void leave_others(const bz_trace *t, bz_sequence *s, bz_arena *arena)
{
    bool *beside = BZ_NEW(arena, bool, t->n_lanes);
    uint32_t most = 0;
    bool several = s->n && leave_threads_beside(t, s, beside, &most);
    size_t k = 0;
    if (s->kind == BZ_EVENT_CALL)
        several = several && all_repeat_alone(t, s, beside, most);
    for (size_t i = 0; i < s->n && several; i++)
        if (!beside[thread_of(s, i)])
            s->row[k++] = s->row[i];
    s->n = several ? k : s->n;
    s->left_out = several && s->kind != BZ_EVENT_KERNEL ? beside : NULL;
    for (uint32_t i = 0; i < t->n_lanes && several && s->kind != BZ_EVENT_OP; i++)
        s->beside += beside[i];
}

bz_sequence bz_sequence_collect(const bz_trace *t, bz_event_kind kind, bz_arena *arena)
{
    const bz_events *e = &t->event[kind];
    bz_sequence s = {.kind = kind, .event = e, .api = &t->event[BZ_EVENT_API], .cause = bz_causes(t, e)};
    bool timeline = bz_has_timeline(t), only;
    uint32_t *first = BZ_NEW(arena, uint32_t, t->n_lanes), lane = busiest(t, kind, first, &only);
    s.row = t->private->n_spare >= e->n ? t->private->spare : bz_arena_take(arena, e->n * sizeof *s.row);
    bool all = kind == BZ_EVENT_KERNEL; /* each is wanted */
    for (; s.n < e->n && all && only; s.n++)
        s.row[s.n] = (uint32_t)s.n;
    for (size_t i = s.n; i < e->n; i++)
        if (first[e->lane[i]] == lane && (all || wanted(t, kind, i, timeline)))
            s.row[s.n++] = (uint32_t)i;
    if (kind == BZ_EVENT_KERNEL)
        sort_by_host(&s);
    if (kind != BZ_EVENT_KERNEL || s.cause)
        leave_others(t, &s, arena);
    if (kind == BZ_EVENT_OP)
        leave_views(t, &s, arena);
    return s;
}
