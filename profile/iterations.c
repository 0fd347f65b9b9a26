/* Iterations: marked by the program, named by a range, or found in the repeating sequence of calls. */
#include "profile/columns.h"
#include "profile/constants.h"
#include "profile/trace.h"

#include <stdlib.h>
#include <string.h>

/* Ranges that are known to mark iterations, best first. A '#' at the end: a number follows. */
static const struct {
    const char *name;
    bz_iteration_origin origin;
} MARKS[] = {
    {"benanza_iteration", BZ_ITERATION_MARKED},
    {"ProfilerStep#", BZ_ITERATION_RANGE}, /* PyTorch's schedule */
    {"model_run", BZ_ITERATION_RANGE},     /* ONNX Runtime */
};

/* The calls (or kernels, or operators) in which repetition is looked for, in the order of the host. */
typedef struct {
    bz_event_kind kind;
    const bz_events *event, *api;
    uint32_t *row;
    uint64_t *symbol;
    size_t n;
} sequence;

/* When an event happened on the host: work of a device when it was launched, where that is known. */
static int64_t host_start(const sequence *s, uint32_t row)
{
    const bz_events *e = s->event;
    return e->cause && e->cause[row] != BZ_NONE ? s->api->start[e->cause[row]] : e->start[row];
}

static int64_t start_of(const sequence *s, size_t i)
{
    return host_start(s, s->row[i]);
}

static int64_t end_of(const sequence *s, size_t i)
{
    const bz_events *e = s->event;
    uint32_t row = s->row[i];
    return e->cause && e->cause[row] != BZ_NONE ? s->api->end[e->cause[row]] : e->end[row];
}

static uint64_t symbol_of(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t h = a * 0x9e3779b97f4a7c15u ^ b * 0xc2b2ae3d27d4eb4fu ^ c * 0x165667b19e3779f9u;
    return h ^ h >> 31;
}

static bool of_log(const bz_trace *t, uint32_t lane)
{
    return t->source[t->lane[lane].source].log;
}

/* Does any file tell more than order and parameters? */
static bool has_timeline(const bz_trace *t)
{
    for (uint32_t i = 0; i < t->n_sources; i++)
        if (!t->source[i].log && t->source[i].events)
            return true;
    return false;
}

/* The process that has most rows of the kind: a trace may hold several. False where there is none. */
static bool busiest(const bz_trace *t, bz_event_kind kind, uint32_t *source, int64_t *process)
{
    const bz_events *e = &t->event[kind];
    size_t most = 0, *count = bz_alloc(t->n_lanes + 1, sizeof *count);
    int64_t(*key)[2] = bz_alloc(t->n_lanes + 1, sizeof *key);
    uint32_t *first = bz_alloc(t->n_lanes + 1, sizeof *first); /* lane that counts for all of the same process */
    bz_map processes = {0};
    for (uint32_t i = 0; i < t->n_lanes; i++) {
        key[i][0] = t->lane[i].source;
        key[i][1] = t->lane[i].process;
        first[i] = bz_map_add(&processes, key[i], sizeof key[i], i);
        count[i] = 0;
    }
    for (size_t i = 0; i < e->n; i++) {
        uint32_t lane = first[e->lane[i]];
        if (++count[lane] > most) {
            most = count[lane];
            *source = t->lane[lane].source;
            *process = t->lane[lane].process;
        }
    }
    bz_map_free(&processes);
    free(first);
    free(key);
    free(count);
    return most > 0;
}

static bool wanted(const bz_trace *t, bz_event_kind kind, size_t i, bool timeline)
{
    const bz_events *e = &t->event[kind];
    if (kind == BZ_EVENT_CALL)
        return bz_call_works(t, i) && !(timeline && of_log(t, e->lane[i]));
    if (kind == BZ_EVENT_OP)
        return e->op[i] == BZ_NONE;
    return true;
}

static int by_host_start(const void *a, const void *b)
{
    const int64_t *p = a, *q = b;
    return p[0] < q[0] ? -1 : p[0] > q[0] ? 1 : p[1] < q[1] ? -1 : p[1] > q[1];
}

/* Streams overlap; launches do not. */
static void sort_by_host(sequence *s)
{
    size_t i = 1;
    while (i < s->n && start_of(s, i - 1) <= start_of(s, i))
        i++;
    if (i >= s->n)
        return;
    int64_t(*order)[2] = bz_alloc(s->n, sizeof *order);
    for (i = 0; i < s->n; i++) {
        order[i][0] = start_of(s, i);
        order[i][1] = s->row[i];
    }
    qsort(order, s->n, sizeof *order, by_host_start);
    for (i = 0; i < s->n; i++)
        s->row[i] = (uint32_t)order[i][1];
    free(order);
}

static sequence collect(const bz_trace *t, bz_event_kind kind, bz_arena *arena)
{
    const bz_events *e = &t->event[kind];
    sequence s = {.kind = kind, .event = e, .api = &t->event[BZ_EVENT_API]};
    uint32_t source = 0;
    int64_t process = 0;
    if (!busiest(t, kind, &source, &process))
        return s;
    bool timeline = has_timeline(t);
    s.row = BZ_NEW(arena, uint32_t, e->n);
    for (size_t i = 0; i < e->n; i++) {
        const bz_lane *l = &t->lane[e->lane[i]];
        if (l->source == source && l->process == process && wanted(t, kind, i, timeline))
            s.row[s.n++] = (uint32_t)i;
    }
    if (kind == BZ_EVENT_KERNEL)
        sort_by_host(&s);
    s.symbol = BZ_NEW(arena, uint64_t, s.n);
    /* parameters tell calls apart, but only where every call has them */
    bool detailed = e->detail != NULL && kind == BZ_EVENT_CALL;
    for (size_t k = 0; k < s.n && detailed; k++)
        detailed = e->detail[s.row[k]] != 0;
    for (size_t k = 0; k < s.n; k++) {
        size_t i = s.row[k];
        uint64_t grid = kind == BZ_EVENT_KERNEL ? symbol_of(e->grid[3 * i], e->grid[3 * i + 1], e->grid[3 * i + 2]) : 0;
        s.symbol[k] = symbol_of(e->name[i], detailed ? e->detail[i] : 0, grid);
    }
    return s;
}

static void add_iteration(bz_trace *t, int64_t start, int64_t end)
{
    if (!(t->n_iterations & (t->n_iterations - 1)))
        t->iteration = bz_realloc(t->iteration, t->n_iterations ? t->n_iterations * 2 : 1, sizeof *t->iteration);
    t->iteration[t->n_iterations++] = (bz_iteration){start, end, false};
}

/* ---- from ranges ---- */

static bool named(const char *range, const char *mark)
{
    size_t n = strlen(mark);
    return n && mark[n - 1] == '#' ? !strncmp(range, mark, n) : !strcmp(range, mark);
}

static bool from_events(bz_trace *t, bz_event_kind kind, const char *mark)
{
    const bz_events *e = &t->event[kind];
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < e->n; i++)
        if (e->end[i] > e->start[i] && e->start[i] >= last && named(bz_string(t, e->name[i]), mark)) {
            add_iteration(t, e->start[i], e->end[i]);
            last = e->end[i];
        }
    return t->n_iterations > 0;
}

/* Old PyTorch tells what a person named as it tells its operators, its schedule's steps among them. */
static bool from_ranges(bz_trace *t, const char *mark)
{
    return from_events(t, BZ_EVENT_RANGE, mark) || from_events(t, BZ_EVENT_OP, mark);
}

/* ---- found ---- */

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
        count += bz_api_launches(bz_string(t, api->name[i]));
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
        if (same_process(t, api->lane[i], lane) && bz_api_launches(bz_string(t, api->name[i])) && count++ == skip)
            *behind = api->start[i];
    return count;
}

/* Start of the launch that stands `launches` before `to`. */
static int64_t start_of_launch(const bz_trace *t, uint32_t lane, int64_t from, int64_t to, uint32_t launches)
{
    const bz_events *api = &t->event[BZ_EVENT_API];
    int64_t start = to;
    for (size_t i = bz_events_from(api, to); launches && i-- > 0 && api->start[i] >= from;)
        if (same_process(t, api->lane[i], lane) && bz_api_launches(bz_string(t, api->name[i]))) {
            start = api->start[i];
            launches--;
        }
    return start;
}

static int by_value(const void *a, const void *b)
{
    const int64_t *p = a, *q = b;
    return *p < *q ? -1 : *p > *q;
}

static int64_t median(int64_t *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return n ? v[n / 2] : 0;
}

/* Last end among what belongs to [start, limit): host events that start in it, device work launched in it. */
static int64_t last_end(const bz_trace *t, int64_t start, int64_t limit, int64_t at_least)
{
    static const bz_event_kind HOST[] = {BZ_EVENT_CALL, BZ_EVENT_API, BZ_EVENT_OP};
    static const bz_event_kind DEVICE[] = {BZ_EVENT_KERNEL, BZ_EVENT_COPY, BZ_EVENT_MEMSET};
    int64_t end = at_least;
    bool timeline = has_timeline(t);
    for (size_t k = 0; k < 3; k++) {
        const bz_events *e = &t->event[HOST[k]];
        for (size_t i = bz_events_from(e, start); i < e->n && e->start[i] < limit; i++)
            if (e->end[i] > end && !(timeline && of_log(t, e->lane[i])))
                end = e->end[i];
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

/* ---- copies of inputs ---- */

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
    qsort(in.at, in.n, sizeof *in.at, by_value);
    return in;
}

/* Index of the first input that was asked for at `time` or later. */
static size_t inputs_from(const inputs *in, int64_t time)
{
    size_t low = 0, high = in->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (in->at[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
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
        if (!for_copy && bz_api_waits(bz_string(t, api->name[i])) && same_process(t, api->lane[i], lane))
            first = inputs_from(in, api->end[i]);
    }
    return first;
}

/* Lets iterations begin with their inputs. In front of the first one lie the weights, too: it has as many inputs as others. */
static void begin_with_inputs(const bz_trace *t, const sequence *s, const uint32_t *first, uint32_t n, int64_t *start,
                              bz_arena *arena)
{
    uint32_t lane = t->event[s->kind].lane[s->row[0]];
    inputs in = find_inputs(t, lane, arena);
    int64_t *count = BZ_NEW(arena, int64_t, n);
    size_t n_counts = 0;
    for (uint32_t i = n; in.n && i-- > 0;) {
        size_t to = inputs_from(&in, start[i]), from = to;
        if (first[i]) {
            from = first_input(t, lane, &in, end_of(s, first[i] - 1), start[i]);
            count[n_counts++] = from < to ? (int64_t)(to - from) : 0;
        } else if (n_counts) {
            size_t usual = (size_t)median(count, n_counts);
            from = usual < to ? to - usual : 0;
        }
        if (from < to)
            start[i] = in.at[from];
    }
}

static void windows(bz_trace *t, const sequence *s, const uint32_t *first, uint32_t n, bz_arena *arena)
{
    uint32_t lane = t->event[s->kind].lane[s->row[0]];
    int64_t *votes = BZ_NEW(arena, int64_t, n), *tails = BZ_NEW(arena, int64_t, n),
            *start = BZ_NEW(arena, int64_t, n + 1);
    size_t n_votes = 0, n_tails = 0;
    for (uint32_t i = 1; i < n; i++)
        if (first[i])
            votes[n_votes++] = launches_before(t, lane, end_of(s, first[i] - 1), start_of(s, first[i]));
    uint32_t launches = (uint32_t)median(votes, n_votes);
    for (uint32_t i = 0; i < n; i++) {
        int64_t from = first[i] ? end_of(s, first[i] - 1) : INT64_MIN;
        start[i] = start_of_launch(t, lane, from, start_of(s, first[i]), launches);
    }
    begin_with_inputs(t, s, first, n, start, arena);
    /* what comes behind the last call of the last iteration: as much as behind the others */
    int64_t last = end_of(s, first[n] - 1), behind;
    n_votes = 0;
    for (uint32_t i = 0; i + 1 < n; i++) {
        int64_t from = end_of(s, first[i + 1] - 1);
        tails[n_tails++] = start[i + 1] - from;
        votes[n_votes++] = launches_between(t, lane, from, start[i + 1], 0, &behind);
    }
    int64_t tail = median(tails, n_tails);
    launches_between(t, lane, last, last + (tail > 0 ? tail : 0), (uint32_t)median(votes, n_votes), &behind);
    start[n] = behind;
    if (start[n] <= last)
        start[n] = last + 1;
    for (uint32_t i = 0; i < n; i++)
        add_iteration(t, start[i], last_end(t, start[i], start[i + 1], start[i]));
}

/* How long nothing was going on before each event. */
static int64_t *pauses(const void *context, bz_arena *arena)
{
    const sequence *s = context;
    int64_t *gap = BZ_NEW(arena, int64_t, s->n), end = end_of(s, 0);
    gap[0] = 0;
    for (size_t i = 1; i < s->n; i++) {
        int64_t start = start_of(s, i), stop = end_of(s, i);
        gap[i] = start > end ? start - end : 0;
        end = stop > end ? stop : end;
    }
    return gap;
}

static bool detect(bz_trace *t, bz_event_kind kind)
{
    bz_arena arena = {0};
    sequence s = collect(t, kind, &arena);
    bool found = false;
    if (s.n >= 4) {
        uint32_t *first, n = bz_find_period(s.symbol, s.n, pauses, &s, &first, &arena);
        found = n >= 2;
        if (found)
            windows(t, &s, first, n, &arena);
    }
    bz_arena_free(&arena);
    return found;
}

/* A first iteration that took longer than the typical one is warm-up, and those after it that took longer still; where nothing
 * has a duration (a log), the first is. */
static void tell_warm_up(bz_trace *t)
{
    uint32_t n = t->n_iterations;
    if (n < 2)
        return;
    int64_t *latency = bz_alloc(n, sizeof *latency);
    for (uint32_t i = 0; i < n; i++)
        latency[i] = bz_iteration_latency(t, i);
    int64_t typical = median(latency + 1, n - 1);
    free(latency);
    for (uint32_t i = 0; i + 1 < n; i++) {
        int64_t took = bz_iteration_latency(t, i);
        if ((double)took < (double)typical * (i ? NEXT_IS_WARM_UP : FIRST_IS_WARM_UP) && (has_timeline(t) || i))
            break;
        t->iteration[i].warm_up = true;
    }
}

/* Other iterations than those which the runs of bz_profile_levels were measured by. */
static void forget_levels(bz_trace *t)
{
    for (uint32_t k = 0; k < t->n_levels; k++)
        t->level[k].n_iterations = 0;
    if (t->n_levels)
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_MISSING,
                       "the runs of the program were recorded with other iterations: latency is that of the run %s. "
                       "Name the range when recording: benanza profile --levels --iterations NAME",
                       bz_string(t, t->level[t->own_level].name));
}

void bz_trace_find_iterations(bz_trace *t, const char *range_name)
{
    if (t->n_iterations && !range_name) {                  /* a file of ours brought them along */
        t->iteration[t->n_iterations - 1].warm_up = false; /* warm-up of what? */
        return;
    }
    t->n_iterations = 0;
    if (range_name) {
        t->origin = BZ_ITERATION_RANGE;
        forget_levels(t);
        if (!from_ranges(t, range_name))
            bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_MISSING,
                           "no range and no operator is named %.200s: no iteration is known", range_name);
        tell_warm_up(t);
        return;
    }
    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++)
        if (from_ranges(t, MARKS[i].name)) {
            t->origin = MARKS[i].origin;
            tell_warm_up(t);
            return;
        }
    t->origin = BZ_ITERATION_DETECTED;
    static const bz_event_kind KINDS[] = {BZ_EVENT_CALL, BZ_EVENT_KERNEL, BZ_EVENT_OP};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (detect(t, KINDS[i])) {
            tell_warm_up(t);
            return;
        }
    bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                   "no iteration was found: mark them with benanza_iteration_begin and benanza_iteration_end, or name "
                   "a range with --iterations");
}
