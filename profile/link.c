/* Ties events together: which host event lies inside which, and which call asked for which work of the
 * device. Everything is sorted by start. */
#include "base/sort.h"
#include "profile/columns.h"
#include "profile/sequence.h"
#include "profile/trace.h"

#include <stdlib.h>
#include <string.h>

/* Recordings in whole microseconds let an event end one later than what it lies in. */
enum { DEEPEST = 1024, ROUNDING = 1000 };

/* Innermost event around [start, end] on a chain of open ones, or BZ_NONE. Events that are over for
 * good (they end before start) leave the chain. */
static uint32_t around(const bz_events *e, const uint32_t *parent, uint32_t *innermost, int64_t start, int64_t end)
{
    while (*innermost != BZ_NONE && e->end[*innermost] <= start && !(e->end[*innermost] == start && end == start))
        *innermost = parent[*innermost];
    uint32_t i = *innermost;
    int steps = 0; /* events that cross instead of nesting could make a long chain of this */
    while (i != BZ_NONE && e->end[i] + ROUNDING < end)
        i = ++steps < DEEPEST ? parent[i] : BZ_NONE;
    return i;
}

/* Operators of a recording in whole microseconds: both ends are up to two of them too early, and what begins where another one begins or ends lies in
 * it or stands beside it. Names tell: what lies in the other one elsewhere, where times leave no doubt, does so here; else what stands behind it
 * elsewhere does, and what elsewhere lies in the same as the other one, without anything else around it: a ReLU behind a product that takes a microsecond. */
enum { INSIDE = 1, BEHIND = 2 };
/* In place of an outer name, or with it: what surely is the next one around. */
static const uint32_t BESIDE = (uint32_t)1 << 31;
typedef struct {
    const bz_events *e;
    bool whole;
    /* Names of an operator, or BESIDE, and of one that surely lies in it, or behind it: which of the two. */
    bz_map pairs;
} nesting;

static uint32_t pair_of(const nesting *n, uint32_t outer, size_t inner)
{
    const uint32_t key[] = {outer, n->e->name[inner]};
    return bz_map_get(&n->pairs, key, sizeof key);
}

/* Of what lies in an operator, or in none, and stands beside others there. */
static uint32_t beside(const nesting *n, uint32_t around)
{
    return around == BZ_NONE ? BESIDE : n->e->name[around] | BESIDE;
}

static void note_pair(nesting *n, uint32_t outer, size_t inner, uint32_t what, bz_arena *arena)
{
    const uint32_t key[] = {outer, n->e->name[inner]}, known = pair_of(n, outer, inner);
    if (known == BZ_MAP_NONE)
        bz_map_add(&n->pairs, bz_arena_dup(arena, key, sizeof key), sizeof key, what);
    else if (known == BEHIND && what == INSIDE)
        bz_map_set(&n->pairs, key, sizeof key, what);
}

static void note_pairs(nesting *n, uint32_t n_lanes, bz_arena *arena)
{
    const bz_events *e = n->e;
    BZ_FREED uint32_t *open = bz_alloc((size_t)n_lanes + 1, sizeof *open), *parent = bz_alloc(e->n + 1, sizeof *parent);
    memset(open, 0xff, n_lanes * sizeof *open);
    for (size_t i = 0; i < e->n; i++) {
        uint32_t *top = &open[e->lane[i]];
        bool apart = true; /* from what was there before: it does not lie in that, or only where both ends are early */
        for (; *top != BZ_NONE && e->end[*top] <= e->start[i]; *top = parent[*top])
            if (e->start[i] - e->end[*top] >= 2 * ROUNDING)
                note_pair(n, e->name[*top], i, BEHIND, arena);
            else
                apart &= e->end[*top] < e->start[i];
        parent[i] = *top;
        if (*top != BZ_NONE && e->start[i] > e->start[*top])
            note_pair(n, e->name[*top], i, INSIDE, arena);
        if (apart && (*top == BZ_NONE || e->start[i] > e->start[*top]))
            note_pair(n, beside(n, *top), i, INSIDE, arena);
        *top = (uint32_t)i;
    }
}

static nesting nesting_of(const bz_events *op, uint32_t n_lanes, bz_arena *arena)
{
    nesting n = {.e = op, .whole = op->n > 0};
    for (size_t i = 0; i < op->n && n.whole; i++)
        n.whole = op->start[i] % ROUNDING == 0 && op->end[i] % ROUNDING == 0;
    if (n.whole)
        note_pairs(&n, n_lanes, arena);
    return n;
}

/* Elsewhere the operator stands in something that is around the other one, with nothing between. */
static bool stands_beside(const nesting *n, uint32_t other, size_t i)
{
    for (int steps = 0; other != BZ_NONE && steps < DEEPEST; steps++) {
        other = n->e->op[other];
        if (pair_of(n, beside(n, other), i) == INSIDE)
            return true;
    }
    return false;
}

static bool lies_in(const nesting *n, uint32_t outer, size_t i)
{
    const bz_events *e = n->e;
    bool within = e->start[i] < e->end[outer], empty = e->start[i] == e->end[i];
    if (within && !(empty && e->start[i] == e->start[outer]))
        return true;
    if (e->start[i] - e->end[outer] >= 2 * ROUNDING)
        return false;
    uint32_t pair = pair_of(n, e->name[outer], i);
    if (pair == BZ_MAP_NONE && stands_beside(n, outer, i))
        pair = BEHIND;
    return pair == INSIDE || (pair != BEHIND && (within || (empty && e->start[i] == e->end[outer])));
}

/* The innermost operator around operator i, which is the innermost one from then on; but one of no length beside the one that is open. */
static uint32_t around_operator(const nesting *n, uint32_t *innermost, size_t i)
{
    const bz_events *e = n->e;
    uint32_t found;
    int steps = 0;
    if (!n->whole) {
        found = around(e, e->op, innermost, e->start[i], e->end[i]);
        *innermost = (uint32_t)i;
        return found;
    }
    while (*innermost != BZ_NONE && e->end[*innermost] <= e->start[i] && !lies_in(n, *innermost, i))
        *innermost = e->op[*innermost];
    for (found = *innermost; found != BZ_NONE && (!lies_in(n, found, i) || e->end[found] + 2 * ROUNDING < e->end[i]);)
        found = ++steps < DEEPEST ? e->op[found] : BZ_NONE;
    if (found == *innermost || e->start[i] < e->end[i])
        *innermost = (uint32_t)i;
    return found;
}

/* Where there are no operators, or no calls, no event lies in one: a single column says so for all kinds; in a summary, none does. */
static void share_absent(bz_trace *t)
{
    bool ops = t->event[BZ_EVENT_OP].n, calls = t->event[BZ_EVENT_CALL].n;
    size_t n = 0;
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        n = t->event[k].n > n ? t->event[k].n : n;
    if (ops && calls)
        return;
    uint32_t *none = t->summary ? NULL : bz_arena_take(&t->arena, n * sizeof *none);
    if (none)
        memset(none, 0xff, n * sizeof *none);
    for (int k = 0; k < BZ_EVENT_KINDS; k++) {
        bz_events *e = &t->event[k];
        e->op = ops || !e->op ? e->op : none;
        e->call = calls || !e->call ? e->call : none;
    }
}

/* A summary lacks what no event lies in. */
static void set(uint32_t *column, size_t i, uint32_t link)
{
    if (column)
        column[i] = link;
}

static void link_host(bz_trace *t)
{
    bz_events *op = &t->event[BZ_EVENT_OP], *call = &t->event[BZ_EVENT_CALL], *api = &t->event[BZ_EVENT_API];
    if (!op->n && !call->n)
        return;
    BZ_SCOPED(bz_arena) arena = {0};
    nesting nested = nesting_of(op, t->n_lanes, &arena);
    BZ_FREED uint32_t *open_op = bz_alloc(t->n_lanes + 1, sizeof *open_op),
                      *open_call = bz_alloc(t->n_lanes + 1, sizeof *open_call);
    memset(open_op, 0xff, t->n_lanes * sizeof *open_op);
    memset(open_call, 0xff, t->n_lanes * sizeof *open_call);
    size_t i = 0, j = 0, k = 0;
    while (i < op->n || j < call->n || k < api->n) {
        int64_t a = i < op->n ? op->start[i] : INT64_MAX, b = j < call->n ? call->start[j] : INT64_MAX,
                c = k < api->n ? api->start[k] : INT64_MAX;
        if (i < op->n && a <= b && a <= c) {
            uint32_t *open = &open_op[op->lane[i]];
            op->op[i] = around_operator(&nested, open, i);
            i++;
        } else if (j < call->n && b <= c) {
            uint32_t lane = call->lane[j], *open = &open_call[lane];
            set(call->op, j, around(op, op->op, &open_op[lane], call->start[j], call->end[j]));
            call->call[j] = around(call, call->call, open, call->start[j], call->end[j]);
            if (call->flags[j] & BZ_CALL_UNTIMED)
                call->call[j] = BZ_NONE; /* the same tick is no nesting */
            if (call->call[j] != BZ_NONE)
                call->flags[j] |= BZ_CALL_NESTED;
            *open = (uint32_t)j++;
        } else {
            uint32_t lane = api->lane[k];
            set(api->op, k, around(op, op->op, &open_op[lane], api->start[k], api->end[k]));
            set(api->call, k, around(call, call->call, &open_call[lane], api->start[k], api->end[k]));
            k++;
        }
    }
    bz_map_free(&nested.pairs);
}

/* Row numbers of api events by (scope, correlation). Mostly there is one scope, and the numbers ascend with the
 * rows; else they have been handed out one after the other, and are the index. Else open addressing. */
typedef struct {
    const bz_events *api;
    const uint64_t *scope; /* per lane */
    uint32_t *slot;        /* NULL: the numbers ascend with the rows */
    size_t mask;
    bool dense;
    uint32_t first, span; /* dense: correlations first … first + span - 1 */
} join;

static size_t mix(uint64_t scope, uint32_t correlation)
{
    uint64_t h = (scope * 0x9e3779b97f4a7c15u) ^ (correlation * 0xc2b2ae3d27d4eb4fu);
    return (size_t)(h ^ h >> 29);
}

/* The row of a number among those that ascend, from `near` on, or before it; BZ_NONE: none has it. */
static uint32_t search(const bz_events *api, uint32_t correlation, uint32_t *near)
{
    const uint32_t *number = api->correlation, last = (uint32_t)api->n - 1;
    uint32_t low = *near, high = low, step = 1;
    for (; number[high] < correlation && high < last; step *= 2) {
        low = high + 1;
        high = last - high > step ? high + step : last;
    }
    for (; number[low] > correlation && low > 0; step *= 2) {
        high = low - 1;
        low = low > step ? low - step : 0;
    }
    BZ_FIND_FIRST(low, high, middle, number[middle] < correlation);
    *near = low;
    return number[low] == correlation ? low : BZ_NONE;
}

/* Where numbers ascend: the row behind the one that was found last mostly has the next one. */
static void find_ascending(const bz_events *api, bz_events *e)
{
    uint32_t near = 0;
    for (size_t i = 0; i < e->n; i++) {
        uint32_t correlation = e->correlation[i];
        if (near + 1 < api->n && api->correlation[near + 1] == correlation)
            e->cause[i] = ++near;
        else
            e->cause[i] = correlation && api->n ? search(api, correlation, &near) : BZ_NONE;
    }
}

/* NULL: no such number among the api events. */
static uint32_t *find(const join *j, uint64_t scope, uint32_t correlation)
{
    if (j->dense)
        return correlation - j->first < j->span ? &j->slot[correlation - j->first] : NULL;
    for (size_t at = mix(scope, correlation);; at++) {
        uint32_t *s = &j->slot[at & j->mask];
        if (*s == BZ_NONE || (j->api->correlation[*s] == correlation && j->scope[j->api->lane[*s]] == scope))
            return s;
    }
}

static join join_api(const bz_trace *t, const uint64_t *scope)
{
    const bz_events *api = &t->event[BZ_EVENT_API];
    join j = {.api = api, .scope = scope, .dense = true};
    uint32_t low = UINT32_MAX, high = 0;
    size_t ascending = 0;
    for (uint32_t i = 1; i < t->n_lanes; i++)
        j.dense = j.dense && scope[i] == scope[0];
    for (; ascending < api->n && j.dense && api->correlation[ascending] > high; ascending++)
        high = api->correlation[ascending];
    if (ascending == api->n)
        return j;
    for (size_t i = 0; i < api->n; i++)
        if (api->correlation[i]) {
            low = api->correlation[i] < low ? api->correlation[i] : low;
            high = api->correlation[i] > high ? api->correlation[i] : high;
        }
    j.first = low;
    j.span = high >= low ? high - low + 1 : 0;
    j.dense = j.dense && j.span <= api->n * 4;
    size_t cap = 16;
    while (cap < api->n * 2)
        cap *= 2;
    j.mask = cap - 1;
    cap = j.dense ? j.span : cap;
    j.slot = bz_alloc(cap, sizeof *j.slot);
    memset(j.slot, 0xff, cap * sizeof *j.slot);
    for (size_t i = 0; i < api->n; i++)
        if (api->correlation[i]) {
            uint32_t *s = find(&j, scope[api->lane[i]], api->correlation[i]);
            if (*s == BZ_NONE)
                *s = (uint32_t)i;
        }
    return j;
}

/* Correlation numbers are unique within a process of a file. Files that do not tell the process of
 * device work have one space for all. */
static uint64_t *scopes(const bz_trace *t)
{
    BZ_FREED bool *shared = bz_alloc(t->n_sources + 1, sizeof *shared);
    memset(shared, 0, t->n_sources + 1);
    for (uint32_t i = 0; i < t->n_lanes; i++)
        if (t->lane[i].device && !t->lane[i].process)
            shared[t->lane[i].source] = true;
    uint64_t *scope = bz_alloc(t->n_lanes + 1, sizeof *scope);
    for (uint32_t i = 0; i < t->n_lanes; i++)
        scope[i] = (uint64_t)t->lane[i].source << 48 |
                   (shared[t->lane[i].source] ? 0 : (uint64_t)t->lane[i].process & 0xffffffffffff);
    return scope;
}

static const bz_event_kind DEVICE_KINDS[] = {BZ_EVENT_KERNEL, BZ_EVENT_COPY, BZ_EVENT_MEMSET, BZ_EVENT_SYNC};
enum { N_DEVICE_KINDS = sizeof DEVICE_KINDS / sizeof *DEVICE_KINDS };

void bz_trace_find_causes(bz_trace *t)
{
    BZ_FREED uint64_t *scope = scopes(t);
    join j = join_api(t, scope);
    for (size_t k = 0; k < N_DEVICE_KINDS; k++) {
        bz_events *e = &t->event[DEVICE_KINDS[k]];
        if (!j.slot)
            find_ascending(j.api, e);
        for (size_t i = 0; i < e->n && j.slot; i++) {
            const uint32_t *s = e->correlation[i] ? find(&j, scope[e->lane[i]], e->correlation[i]) : NULL;
            e->cause[i] = s ? *s : BZ_NONE;
        }
    }
    free(j.slot);
}

enum { BEGINS_CAPTURE = 1, ENDS_CAPTURE, LAUNCHES };

static int of_capture(const char *call)
{
    return bz_name_matches("StreamBeginCapture", call) ? BEGINS_CAPTURE
           : bz_name_matches("StreamEndCapture", call) ? ENDS_CAPTURE
           : bz_name_matches("LaunchKernel", call)     ? LAUNCHES
                                                       : 0;
}

/* The tables of a file end together, but for the work that is under way then; what is captured for a graph does not run. Where many launches come behind the last kernel that is
 * there, or many kernels that nothing launched behind the last call, a table was cut off. */
static void find_early_end(bz_trace *t)
{
    enum { UNDER_WAY = 10 }; /* so many, and a tenth of all */
    const bz_events *api = &t->event[BZ_EVENT_API], *kernel = &t->event[BZ_EVENT_KERNEL];
    int64_t worked = INT64_MIN, called = INT64_MIN; /* until then */
    size_t undone = 0, unasked = 0, most = kernel->n / 10 + UNDER_WAY;
    int64_t captures = 0; /* that are under way */
    int does = 0;
    bz_name_answers calls = {.ask = of_capture};
    uint32_t source = api->n ? t->lane[api->lane[0]].source : 0;
    if (!kernel->n || !api->n || t->source[source].truncated)
        return;
    /* no event ends later than the latest one: mostly so little begins behind the last rows that it need not be looked for */
    if (api->n - bz_events_from(api, kernel->end[kernel->n - 1]) <= most &&
        kernel->n - bz_events_from(kernel, api->end[api->n - 1]) <= most)
        return;
    for (size_t i = 0; i < kernel->n; i++)
        worked = kernel->end[i] > worked ? kernel->end[i] : worked;
    for (size_t i = 0; i < api->n; i++)
        called = api->end[i] > called ? api->end[i] : called;
    for (size_t i = 0; i < api->n; i++) {
        if (!i || api->name[i] != api->name[i - 1]) /* launches come in rows */
            does = bz_name_answer(&calls, bz_string(t, api->name[i]));
        captures += (does == BEGINS_CAPTURE) - (does == ENDS_CAPTURE);
        undone += api->start[i] >= worked && captures <= 0 && does == LAUNCHES;
    }
    for (size_t i = bz_events_from(kernel, called); i < kernel->n; i++)
        unasked += kernel->cause[i] == BZ_NONE;
    if (undone <= most && unasked <= most)
        return;
    t->source[source].truncated = true;
    bz_trace_cover(t, source, BZ_COVERAGE_BROKEN,
                   undone > most
                       ? "the file is cut off: it has %zu launches behind its last kernel, so that what the "
                         "device did then is not known"
                       : "the file is cut off: it has %zu kernels behind its last call, so that what the host did "
                         "then is not known",
                   undone > most ? undone : unasked);
}

static void link_device(bz_trace *t)
{
    const bz_events *api = &t->event[BZ_EVENT_API];
    bool ops = t->event[BZ_EVENT_OP].n, calls = t->event[BZ_EVENT_CALL].n;
    for (size_t k = 0; k < N_DEVICE_KINDS && t->summary; k++) /* which needs correlations no more */
        t->event[DEVICE_KINDS[k]].cause = t->event[DEVICE_KINDS[k]].correlation;
    bz_trace_find_causes(t);
    for (size_t k = 0; k < N_DEVICE_KINDS; k++) {
        bz_events *e = &t->event[DEVICE_KINDS[k]];
        size_t orphans = 0;
        for (size_t i = 0; i < e->n; i++) {
            uint32_t cause = e->cause[i];
            orphans += cause == BZ_NONE;
            if (e->call && calls)
                e->call[i] = cause == BZ_NONE ? BZ_NONE : api->call[cause];
            if (e->op && ops)
                e->op[i] = cause == BZ_NONE ? BZ_NONE : api->op[cause];
        }
        if (orphans && DEVICE_KINDS[k] == BZ_EVENT_KERNEL && api->n)
            bz_trace_cover(
                t, BZ_NONE, BZ_COVERAGE_NOTE,
                "%zu of %zu kernels have no launch on record: calls before the recording began, or dropped records",
                orphans, e->n);
    }
    find_early_end(t);
}

/* Kernels are put in the order in which the host asked for them. Where many launches are not on record, those kernels stand where they ran instead, and the two orders
 * agree only as long as the host does not run ahead: a queue of 16 is more than what a recording usually leaves between a launch and its kernel.
 * Then all stand where they ran. */
void bz_trace_find_order(bz_trace *t)
{
    enum { LEAST_SHARE = 10, QUEUE = 16 }; /* a tenth of the kernels; kernels of the mean distance */
    const bz_events *kernel = &t->event[BZ_EVENT_KERNEL], *api = &t->event[BZ_EVENT_API];
    size_t n = 0;
    t->private->ran_decides = false;
    for (size_t i = 0; i < kernel->n; i++)
        n += kernel->cause[i] != BZ_NONE;
    if (!n || n > kernel->n - kernel->n / LEAST_SHARE || kernel->n - n < LEAST_SHARE)
        return;
    int64_t *ahead = bz_alloc(n, sizeof *ahead),
            each = (kernel->start[kernel->n - 1] - kernel->start[0]) / (int64_t)kernel->n;
    n = 0;
    for (size_t i = 0; i < kernel->n; i++)
        if (kernel->cause[i] != BZ_NONE)
            ahead[n++] = kernel->start[i] - api->start[kernel->cause[i]];
    t->private->ahead = bz_median(ahead, n);
    t->private->ran_decides = t->private->ahead / QUEUE > each;
    free(ahead);
}

int64_t bz_trace_ahead(const bz_trace *t)
{
    return t && t->private->ran_decides && t->n_iterations ? t->private->ahead : 0;
}

/* A convolution whose algorithm was not logged: its kernels tell. */
static void infer_variants(bz_trace *t)
{
    bz_events *call = &t->event[BZ_EVENT_CALL];
    const bz_events *kernel = &t->event[BZ_EVENT_KERNEL];
    for (size_t i = 0; call->n && i < kernel->n; i++) {
        uint32_t c = kernel->call[i];
        if (c == BZ_NONE || call->variant[c] || call->library[c] != BZ_LIBRARY_CUDNN ||
            !bz_name_matches("Convolution", bz_string(t, call->name[c])))
            continue;
        const char *algorithm = bz_kernel_of(t, i)->algorithm;
        if (algorithm) {
            call->variant[c] = bz_trace_text(t, algorithm);
            call->flags[c] |= BZ_CALL_INFERRED;
        }
    }
}

/* A summary needs numbers of calls no more, but for those that waits name. */
static void spare_correlations(bz_trace *t)
{
    const bz_events *api = &t->event[BZ_EVENT_API], *sync = &t->event[BZ_EVENT_SYNC];
    size_t i = 0;
    while (i < sync->n && !sync->waited_record[i])
        i++;
    if (i == sync->n) {
        t->private->spare = api->correlation;
        t->private->n_spare = api->n;
    }
}

void bz_trace_link(bz_trace *t)
{
    share_absent(t);
    link_host(t);
    link_device(t);
    infer_variants(t);
    if (t->summary)
        spare_correlations(t);
}
