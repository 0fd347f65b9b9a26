/* Numbers of a trace: per iteration, per name, per gap. */
#include "base/sort.h"
#include "profile/columns.h"
#include "profile/trace.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t start, end;
} interval;

BZ_SORTS(by_start, interval, BZ_ORDER(p->start, q->start));

/* How long at least one of them lasts; `behind`: how much of that lies behind `limit`. */
static int64_t union_of(interval *v, size_t n, int64_t limit, int64_t *behind)
{
    *behind = 0;
    if (!n)
        return 0;
    size_t sorted = 1;
    while (sorted < n && v[sorted - 1].start <= v[sorted].start)
        sorted++;
    if (sorted < n)
        qsort(v, n, sizeof *v, by_start);
    int64_t sum = 0, end = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        if (v[i].end <= end)
            continue;
        int64_t from = v[i].start > end ? v[i].start : end;
        end = v[i].end;
        sum += end - from;
        if (end > limit)
            *behind += end - (from > limit ? from : limit);
    }
    return sum;
}

/* How many iterations have begun by then. */
static uint32_t begun(const bz_trace *t, int64_t at)
{
    uint32_t low = 0, high = t->n_iterations;
    BZ_FIND_FIRST(low, high, mid, t->iteration[mid].start <= at);
    return low;
}

/* The last iteration that began by then, if it is not over. */
void bz_cursor_move(bz_cursor *c, const bz_trace *t, int64_t at)
{
    uint32_t next = begun(t, at);
    const bz_iteration *it = t->iteration;
    *c = (bz_cursor){.from = next ? it[next - 1].start : INT64_MIN,
                     .to = next < t->n_iterations ? it[next].start : INT64_MAX,
                     .iteration = BZ_NONE};
    if (next && at < it[next - 1].end) {
        c->to = it[next - 1].end < c->to ? it[next - 1].end : c->to;
        c->iteration = next - 1;
    } else if (next) {
        c->from = it[next - 1].end;
    }
    c->steady = bz_iteration_is_steady(t, c->iteration);
}

/* When the next one begins, if this one is not over then: what is asked for from there on is of others. */
static int64_t over_at(const bz_trace *t, uint32_t iteration)
{
    const bz_iteration *it = &t->iteration[iteration];
    return iteration + 1 < t->n_iterations && it[1].start < it->end ? it[1].start : it->end;
}

uint32_t bz_event_iteration(const bz_trace *t, bz_event_kind kind, size_t i)
{
    uint32_t *near = &t->private->near;
    int64_t at = bz_asked_at(t, &t->event[kind], i);
    if (*near < t->n_iterations && t->iteration[*near].start <= at && at < over_at(t, *near)) /* as the last event */
        return *near;
    bz_cursor c;
    bz_cursor_move(&c, t, at);
    if (c.iteration != BZ_NONE)
        *near = c.iteration;
    return c.iteration;
}

int64_t bz_iteration_begin(const bz_trace *t, uint32_t iteration)
{
    const bz_iteration *it = &t->iteration[iteration];
    if (!iteration || t->origin != BZ_ITERATION_DETECTED)
        return it->start;
    int64_t before = it[-1].end;
    return before > it->start && before < it->end ? before : it->start;
}

int64_t bz_iteration_latency(const bz_trace *t, uint32_t iteration)
{
    return t->iteration[iteration].end - bz_iteration_begin(t, iteration);
}

void bz_trace_find_lag(bz_trace *t)
{
    enum { ITERATIONS = 64 }; /* no queue is longer; and a file that lies must not make every look one at all events */
    int64_t late = 0, early = 0;
    size_t before = 0;
    for (int k = BZ_EVENT_KERNEL; k <= BZ_EVENT_SYNC; k++) {
        const bz_events *e = &t->event[k];
        const bz_asked asked = bz_asked_of(t, e);
        for (size_t i = 0; i < e->n; i++) {
            int64_t after = e->start[i] - bz_asked_when(&asked, i);
            late = after > late ? after : late;
            early = -after > early ? -after : early;
            before += after < 0;
        }
    }
    if (before)
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                       "%zu kernels, copies and waits of a device are stamped before their launch, by %.3g us at most: "
                       "its clock differs from the host's. They count for the iteration that launched them",
                       before, (double)early / 1e3);
    if (!t->n_iterations)
        return;
    int64_t each = (t->iteration[t->n_iterations - 1].end - t->iteration[0].start) / t->n_iterations + 1;
    int64_t most = each < INT64_MAX / ITERATIONS ? each * ITERATIONS : INT64_MAX / 4;
    t->private->early = early < most ? early : most;
    if (t->origin != BZ_ITERATION_DETECTED) /* those end with their work */
        t->private->lag = late < most ? late : most;
}

/* The kind of the next event of the three; -1: there is none. */
static int next_work(const bz_trace *t, const uint32_t at[3])
{
    int next = -1;
    for (int k = 0; k < 3; k++) {
        const bz_events *e = &t->event[BZ_EVENT_KERNEL + k];
        if (at[k] < e->n && (next < 0 || e->start[at[k]] < t->event[BZ_EVENT_KERNEL + next].start[at[next]]))
            next = k;
    }
    return next;
}

/* Kind k has the next event: up to when it has those behind it, too; `time` at the latest. Of events that begin together the first kind's is
 * the first. */
static int64_t next_of_others(const bz_trace *t, const uint32_t at[3], int k, int64_t time)
{
    for (int other = 0; other < 3; other++) {
        const bz_events *e = &t->event[BZ_EVENT_KERNEL + other];
        if (other != k && at[other] < e->n && e->start[at[other]] + (other > k) < time)
            time = e->start[at[other]] + (other > k);
    }
    return time;
}

/* Adds the next events up to the step behind, but for those that begin at `time` or later. */
static void add_work(const bz_trace *t, bz_busy *b, int64_t time)
{
    for (int n = 0, k; n < BZ_BUSY_STEP && (k = next_work(t, b->at)) >= 0;) {
        const bz_events *e = &t->event[BZ_EVENT_KERNEL + k];
        int64_t limit = next_of_others(t, b->at, k, time), until = b->until, sum = b->sum;
        uint32_t i = b->at[k], first = i;
        for (; n < BZ_BUSY_STEP && i < e->n && e->start[i] < limit; n++, i++) {
            int64_t start = e->start[i] > until ? e->start[i] : until, end = e->end[i];
            sum += end > start ? end - start : 0;
            until = end > until ? end : until;
        }
        b->at[k] = i;
        b->until = until;
        b->sum = sum;
        if (i == first)
            return;
    }
}

void bz_trace_find_busy(bz_trace *t)
{
    struct bz_trace_private *p = t->private;
    bz_busy b = {.until = INT64_MIN};
    p->n_busy = 0;
    for (int k; (k = next_work(t, b.at)) >= 0; add_work(t, &b, INT64_MAX)) {
        b.start = t->event[BZ_EVENT_KERNEL + k].start[b.at[k]];
        BZ_ADD(p->busy, p->n_busy) = b;
    }
}

/* How long some device worked before that time, whoever asked for it. */
static int64_t busy_before(const bz_trace *t, int64_t time)
{
    const struct bz_trace_private *p = t->private;
    size_t low = 0, high = p->n_busy;
    BZ_FIND_FIRST(low, high, mid, p->busy[mid].start < time);
    if (!low)
        return 0;
    bz_busy b = p->busy[low - 1];
    add_work(t, &b, time);
    return b.sum - (b.until > time ? b.until - time : 0);
}

/* Counts the work of devices that belongs to the iteration, sums it up, and widens the span of it. */
static int64_t gather_work(const bz_trace *t, bz_event_kind kind, uint32_t iteration, int64_t *n, bz_iteration_stats *s)
{
    const bz_events *e = &t->event[kind];
    const bz_iteration *it = &t->iteration[iteration];
    int64_t sum = 0, from = it->start, to = over_at(t, iteration), until = it->end + t->private->lag,
            early = t->private->early;
    *n = 0;
    const bz_asked asked = bz_asked_of(t, e);
    for (size_t i = bz_events_from(e, from < INT64_MIN + early ? INT64_MIN : from - early);
         i < e->n && e->start[i] < until; i++) {
        int64_t at = bz_asked_when(&asked, i);
        if (at < from || at >= to)
            continue;
        ++*n;
        s->device_begin = s->device_end == INT64_MIN || e->start[i] < s->device_begin ? e->start[i] : s->device_begin;
        s->device_end = e->end[i] > s->device_end ? e->end[i] : s->device_end;
        bz_time_add(&sum, e->end[i] - e->start[i]);
    }
    return sum;
}

/* How long the host was in some call, or operator, of the iteration. */
static int64_t gather_host(const bz_trace *t, bz_event_kind kind, uint32_t iteration, int64_t *n)
{
    const bz_events *e = &t->event[kind];
    BZ_FREED interval *v = NULL;
    size_t kept = 0;
    int64_t to = over_at(t, iteration);
    for (size_t i = bz_events_from(e, t->iteration[iteration].start); i < e->n && e->start[i] < to; i++) {
        if (kind == BZ_EVENT_CALL && !(e->flags[i] & BZ_CALL_EXECUTES))
            continue;
        if (kind == BZ_EVENT_OP && bz_is_mark(bz_string(t, e->name[i])))
            continue; /* around all operators, and what lies between them is idle */
        BZ_ADD(v, kept) = (interval){e->start[i], e->end[i]};
    }
    *n = (int64_t)kept;
    int64_t behind, all = union_of(v, kept, t->iteration[iteration].end, &behind);
    return all - behind; /* calls of threads beside may outlast the iteration */
}

void bz_iteration_measure(const bz_trace *t, uint32_t iteration, bz_iteration_stats *s)
{
    *s = (bz_iteration_stats){0};
    if (iteration >= t->n_iterations)
        return;
    const bz_iteration *it = &t->iteration[iteration];
    int64_t begin = bz_iteration_begin(t, iteration), others;
    s->latency = it->end - begin;
    s->device_begin = s->device_end = INT64_MIN;
    s->kernel_time = gather_work(t, BZ_EVENT_KERNEL, iteration, &s->kernels, s);
    s->copy_time = gather_work(t, BZ_EVENT_COPY, iteration, &s->copies, s);
    gather_work(t, BZ_EVENT_MEMSET, iteration, &others, s);
    s->device_busy = it->end > begin ? busy_before(t, it->end) - busy_before(t, begin) : 0;
    bool device = s->device_end != INT64_MIN || s->device_busy > 0;
    s->library = gather_host(t, BZ_EVENT_CALL, iteration, &s->calls);
    s->operators = gather_host(t, BZ_EVENT_OP, iteration, &others);
    const bz_events *api = &t->event[BZ_EVENT_API];
    for (size_t i = bz_events_from(api, it->start); i < api->n && api->start[i] < over_at(t, iteration); i++) {
        bz_api does = bz_api_of(t, i);
        if (does == BZ_API_LAUNCHES) {
            s->launches++;
            bz_time_add(&s->launch, api->end[i] - api->start[i]);
        } else if (does == BZ_API_WAITS) {
            s->syncs++;
            bz_time_add(&s->sync, api->end[i] - api->start[i]);
        }
    }
    s->gap = s->latency - (device ? s->device_busy : s->calls ? s->library : s->operators);
}

/* Between the marks of an iteration a device that is behind the host works for the iteration before. The only one on record has none before
 * it: the device would seem to be idle. Where it takes longer than the host, its own step is the iteration, by when it worked. */
void bz_trace_end_with_work(bz_trace *t)
{
    struct bz_trace_private *p = t->private;
    bz_iteration_stats s;
    bz_unit_text marked;
    if (t->n_iterations != 1 || t->origin == BZ_ITERATION_DETECTED || p->ran_decides)
        return;
    bz_iteration *it = t->iteration;
    bz_iteration_measure(t, 0, &s);
    int64_t begin = s.device_begin > it->start ? s.device_begin : it->start;
    if (s.device_end <= it->end || s.device_end - begin <= s.latency)
        return;
    bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                   "the only iteration is marked on the host, which was done with it in %s and did not wait for the "
                   "device: it is the device's own step, from its first work to its last, and what the host does "
                   "meanwhile is for later ones",
                   bz_units_time(marked, 1e-9 * (double)s.latency));
    p->marked_start = it->start;
    p->marked_end = it->end;
    p->ran_decides = true;
    it->start = begin;
    it->end = s.device_end;
}

int64_t bz_trace_kernel_time(const bz_trace *t)
{
    const bz_events *k = &t->event[BZ_EVENT_KERNEL];
    int64_t sum = 0;
    for (size_t i = 0; i < k->n; i++)
        bz_time_add(&sum, k->end[i] - k->start[i]);
    return sum;
}

bz_quantiles bz_quantiles_of(double *values, size_t n)
{
    bz_quantiles q = {.n = (int64_t)n};
    if (!n)
        return q;
    bz_sort_numbers(values, n);
    for (size_t i = 0; i < n; i++)
        q.mean += values[i] / (double)n;
    q.min = values[0];
    q.max = values[n - 1];
    q.p50 = bz_quantile(values, n, 0.5);
    q.p90 = bz_quantile(values, n, 0.9);
    q.p99 = bz_quantile(values, n, 0.99);
    return q;
}

static int64_t figure_of(const bz_level_iteration *i, bz_figure figure)
{
    return figure == BZ_FIGURE_LATENCY ? i->latency : i->library;
}

uint32_t bz_trace_level(const bz_trace *t, bz_figure figure)
{
    for (uint32_t k = 0; k < t->n_levels && k < t->own_level; k++)
        for (uint32_t i = 0; i < t->level[k].n_iterations; i++)
            if (!t->level[k].iteration[i].warm_up && figure_of(&t->level[k].iteration[i], figure) > 0)
                return k;
    return t->n_levels ? t->own_level : BZ_NONE;
}

size_t bz_level_figures(const bz_level *l, bz_figure figure, bz_arena *arena, double **values)
{
    size_t n = 0;
    *values = BZ_NEW(arena, double, l->n_iterations);
    for (uint32_t i = 0; i < l->n_iterations; i++)
        if (!l->iteration[i].warm_up)
            (*values)[n++] = (double)figure_of(&l->iteration[i], figure);
    return n;
}

size_t bz_trace_figures(const bz_trace *t, bz_figure figure, bz_arena *arena, double **values)
{
    uint32_t k = bz_trace_level(t, figure);
    size_t n = 0;
    if (k != BZ_NONE && k != t->own_level)
        return bz_level_figures(&t->level[k], figure, arena, values);
    *values = BZ_NEW(arena, double, t->n_iterations);
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        bz_iteration_stats s;
        if (!bz_iteration_is_steady(t, i))
            continue;
        bz_iteration_measure(t, i, &s);
        (*values)[n++] = (double)(figure == BZ_FIGURE_LATENCY ? s.latency : s.library);
    }
    return n;
}

/* Events of warm-up and outside of iterations do not count, library calls that do no work neither. */
static inline bool counts(const bz_trace *t, bz_event_kind kind, const bz_asked *asked, size_t i, bz_cursor *c)
{
    if (kind == BZ_EVENT_CALL && !(t->event[kind].flags[i] & BZ_CALL_EXECUTES))
        return false;
    bz_cursor_to(c, t, bz_asked_when(asked, i));
    return !t->n_iterations || c->steady;
}

static inline uint32_t shown(const bz_trace *t, bz_event_kind kind, size_t i)
{
    uint32_t name = t->event[kind].name[i];
    return kind == BZ_EVENT_KERNEL ? bz_kernel_shown(t, name) : name;
}

/* Rows for pairs of strings. Most pairs are the last one that began with the same string. */
typedef struct {
    bz_map ids;
    struct {
        uint32_t second, id;
    } * last; /* [n_strings] by the first string */
    bz_arena *arena;
    bz_top *row;
    size_t n;
} tops;

static tops tops_new(const bz_trace *t, bz_arena *arena)
{
    tops p = {.last = bz_alloc(bz_strings(t), sizeof *p.last), .arena = arena};
    memset(p.last, 0xff, bz_strings(t) * sizeof *p.last);
    return p;
}

static void tops_find(tops *p, uint32_t name, uint32_t beside)
{
    uint32_t pair[2] = {name, beside}, id = bz_map_get(&p->ids, pair, sizeof pair);
    if (id == BZ_MAP_NONE) {
        id = bz_map_add(&p->ids, bz_arena_dup(p->arena, pair, sizeof pair), sizeof pair, (uint32_t)p->n);
        BZ_ARENA_ADD(p->arena, p->row, p->n) = (bz_top){.name = name, .beside = beside};
    }
    p->last[name].second = beside;
    p->last[name].id = id;
}

static inline void tops_add(tops *p, uint32_t name, uint32_t beside, int64_t time)
{
    if (p->last[name].second != beside)
        tops_find(p, name, beside);
    bz_top *row = &p->row[p->last[name].id];
    row->count++;
    bz_time_add(&row->time, time);
}

BZ_SORTS(by_time, bz_top,
         BZ_THEN(BZ_THEN(BZ_ORDER(q->time, p->time), BZ_ORDER(q->count, p->count)),
                 BZ_THEN(BZ_ORDER(p->name, q->name), BZ_ORDER(p->beside, q->beside))));

static size_t tops_end(tops *p, bz_top **rows)
{
    bz_map_free(&p->ids);
    free(p->last);
    BZ_QSORT(p->row, p->n, by_time);
    *rows = p->row;
    return p->n;
}

/* Events by name, and what lies idle between one and the next; NULL: not asked for. */
static void add_events(const bz_trace *t, bz_event_kind kind, tops *event, tops *gap)
{
    const bz_events *e = &t->event[kind];
    uint32_t before = BZ_NONE, last_iteration = BZ_NONE;
    bz_cursor cursor = {0};
    const bz_asked asked = bz_asked_of(t, e);
    int64_t end = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (!counts(t, kind, &asked, i, &cursor))
            continue;
        uint32_t iteration = cursor.iteration, name = shown(t, kind, i);
        if (event)
            tops_add(event, name, e->variant ? e->variant[i] : 0, e->end[i] - e->start[i]);
        if (!gap)
            continue;
        if (before != BZ_NONE && iteration == last_iteration && e->start[i] > end)
            tops_add(gap, before, name, e->start[i] - end);
        if (iteration != last_iteration || before == BZ_NONE || e->end[i] > end) {
            end = e->end[i];
            before = name;
        }
        last_iteration = iteration;
    }
}

/* PyTorch 1.8 records marks of iterations as operators. */
static size_t leave_marks(const bz_trace *t, bz_event_kind kind, bz_top *top, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (kind != BZ_EVENT_OP || !bz_is_mark(bz_string(t, top[i].name)))
            top[left++] = top[i];
    return left;
}

size_t bz_trace_top(const bz_trace *t, bz_arena *arena, bz_event_kind kind, bz_top **top)
{
    tops found = tops_new(t, arena);
    add_events(t, kind, &found, NULL);
    size_t n = tops_end(&found, top);
    return leave_marks(t, kind, *top, n);
}

static bz_event_kind kind_of_gaps(const bz_trace *t)
{
    return t->event[BZ_EVENT_KERNEL].n ? BZ_EVENT_KERNEL : t->event[BZ_EVENT_CALL].n ? BZ_EVENT_CALL : BZ_EVENT_OP;
}

size_t bz_trace_gaps(const bz_trace *t, bz_arena *arena, bz_top **gaps)
{
    tops found = tops_new(t, arena);
    add_events(t, kind_of_gaps(t), NULL, &found);
    return tops_end(&found, gaps);
}

bz_tops bz_trace_tops(const bz_trace *t, bz_arena *arena)
{
    bz_tops both = {.kind = kind_of_gaps(t)};
    tops event = tops_new(t, arena), gap = tops_new(t, arena);
    add_events(t, both.kind, &event, &gap);
    both.n_events = tops_end(&event, &both.event);
    both.n_events = leave_marks(t, both.kind, both.event, both.n_events);
    both.n_gaps = tops_end(&gap, &both.gap);
    return both;
}

size_t bz_trace_callers(const bz_trace *t, bz_arena *arena, bz_top **callers)
{
    const bz_events *call = &t->event[BZ_EVENT_CALL];
    tops found = tops_new(t, arena);
    BZ_FREED uint32_t *of = bz_alloc(bz_stacks(t) + 1, sizeof *of);
    for (uint32_t i = 0; i < bz_stacks(t); i++)
        of[i] = bz_stack_caller(t, i);
    for (size_t i = 0; i < call->n; i++)
        if (call->stack[i] && bz_event_counts(t, BZ_EVENT_CALL, i))
            tops_add(&found, of[call->stack[i]], call->name[i], call->end[i] - call->start[i]);
    return tops_end(&found, callers);
}

const char *bz_copy_direction(uint32_t kind)
{
    static const char *const NAMES[] = {NULL,
                                        "host to device",
                                        "device to host",
                                        "host to array",
                                        "array to host",
                                        "array to array",
                                        "array to device",
                                        "device to array",
                                        "on the device",
                                        "on the host",
                                        "device to device"};
    return kind < sizeof NAMES / sizeof *NAMES && NAMES[kind] ? NAMES[kind] : "direction not recorded";
}
