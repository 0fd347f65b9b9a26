/* Ties the log of cuDNN or cuBLAS to the timeline of the same run where that shows launches and kernels, but not the
 * library's own calls, as CUPTI does: each logged call takes its place among the launches of its thread, so that what
 * lies inside of it becomes its own.
 *
 * cuDNN's log has microseconds and the thread's number: what its thread launches between an entry and the next is the
 * call's, as far as the kernels' names go along: a framework launches kernels of its own in between. Its clock is the
 * wall's in the time zone of the program, which no one recorded: the offset under which most calls launch
 * something soon is taken: within a millisecond, or later where a busy machine lets all launches wait. cuBLAS's log has
 * whole seconds, and threads by another number: there only the order tells. */
#include "base/sort.h"
#include "profile/columns.h"
#include "profile/trace.h"

#include <string.h>

enum { ZONES = 4 * 14 }; /* quarters of an hour */
static const int64_t SECOND = 1000000000, ZONE = 900 * SECOND, SOON = 1000000, LATE = 100000000;

/* Launches that a call of cuBLAS's can have asked for, one after the other. */
typedef struct {
    size_t first, n;
    int64_t at;
} group;

/* The launches of one thread, in order: api row, and whose kernel it is by its name. */
typedef struct {
    uint32_t *api;
    uint8_t *owner, *product; /* bz_kernel_owner, bz_product */
    size_t n;
    group *group;
    size_t n_groups;
    bool used; /* a thread of the log has it */
} launches;

typedef struct {
    bz_trace *t;
    uint32_t library;
    launches *lane;     /* per lane */
    uint32_t *timeline; /* per lane of a log: the timeline's lane of the same thread, or BZ_NONE */
    int64_t offset;     /* to add to the log's clock */
    size_t working, tied, kernels;
} tying;

static bool logged_by(const tying *k, size_t call)
{
    const bz_events *e = &k->t->event[BZ_EVENT_CALL];
    return e->library[call] == k->library && k->t->source[k->t->lane[e->lane[call]].source].log;
}

static void collect_launches(tying *k, bz_arena *arena)
{
    const bz_events *api = &k->t->event[BZ_EVENT_API], *kernel = &k->t->event[BZ_EVENT_KERNEL];
    BZ_FREED uint32_t *launched = bz_alloc(api->n + 1, sizeof *launched);
    memset(launched, 0xff, api->n * sizeof *launched);
    for (size_t i = 0; i < kernel->n; i++) /* what a graph launches was asked for when it was made */
        if (kernel->cause[i] != BZ_NONE && !kernel->graph[i])
            launched[kernel->cause[i]] = (uint32_t)i;
    k->lane = BZ_NEW(arena, launches, k->t->n_lanes + 1);
    for (size_t i = 0; i < api->n; i++)
        k->lane[api->lane[i]].n += launched[i] != BZ_NONE;
    for (uint32_t i = 0; i < k->t->n_lanes; i++) {
        k->lane[i].api = BZ_NEW(arena, uint32_t, k->lane[i].n);
        k->lane[i].owner = BZ_NEW(arena, uint8_t, k->lane[i].n);
        k->lane[i].product = BZ_NEW(arena, uint8_t, k->lane[i].n);
        k->lane[i].n = 0;
    }
    for (size_t i = 0; i < api->n; i++)
        if (launched[i] != BZ_NONE) {
            launches *l = &k->lane[api->lane[i]];
            const bz_kernel *name = bz_kernel_of(k->t, launched[i]);
            l->owner[l->n] = (uint8_t)name->owner;
            l->product[l->n] = (uint8_t)name->product;
            l->api[l->n++] = (uint32_t)i;
        }
}

/* False: none is the same. */
static bool match_threads(tying *k, bz_arena *arena)
{
    const bz_trace *t = k->t;
    bool any = false;
    k->timeline = BZ_NEW(arena, uint32_t, t->n_lanes + 1);
    for (uint32_t i = 0; i < t->n_lanes; i++) {
        k->timeline[i] = BZ_NONE;
        for (uint32_t s = 0; s < t->n_sources && t->source[t->lane[i].source].log && !t->lane[i].device; s++) {
            uint32_t j = bz_trace_known_thread(t, s, t->lane[i].process, t->lane[i].thread);
            if (j != BZ_NONE && k->lane[j].n) {
                k->timeline[i] = j;
                any = true;
            }
        }
    }
    return any;
}

/* First launch of the thread at or after a time. */
static size_t launch_from(const tying *k, const launches *l, int64_t at)
{
    const int64_t *start = k->t->event[BZ_EVENT_API].start;
    size_t low = 0, high = l->n;
    BZ_FIND_FIRST(low, high, mid, start[l->api[mid]] < at);
    return low;
}

/* How many of some working calls launch a kernel of a library's within `soon` after they are entered. */
static size_t calls_that_launch(const tying *k, int64_t offset, int64_t soon)
{
    enum { ENOUGH = 2000 };
    const bz_events *call = &k->t->event[BZ_EVENT_CALL], *api = &k->t->event[BZ_EVENT_API];
    size_t seen = 0, launch = 0;
    for (size_t i = 0; i < call->n && seen < ENOUGH; i++) {
        if (!logged_by(k, i) || !(call->flags[i] & BZ_CALL_EXECUTES) || k->timeline[call->lane[i]] == BZ_NONE)
            continue;
        const launches *l = &k->lane[k->timeline[call->lane[i]]];
        size_t at = launch_from(k, l, call->start[i] + offset);
        seen++;
        launch += at < l->n && api->start[l->api[at]] - call->start[i] - offset < soon &&
                  l->owner[at] == BZ_KERNEL_OF_LIBRARY;
    }
    return launch;
}

/* False where under no time zone anything fits: the log is of another run. */
static bool find_offset(tying *k)
{
    size_t best = 0;
    for (int64_t soon = SOON; soon <= LATE && !best; soon *= 10)
        for (int64_t zone = 0; zone <= ZONES; zone++)
            for (int64_t sign = 1; sign >= (zone ? -1 : 1); sign -= 2) {
                size_t n = calls_that_launch(k, sign * zone * ZONE, soon);
                if (n > best) {
                    best = n;
                    k->offset = sign * zone * ZONE;
                }
            }
    return best > 0;
}

/* Launches `from` to `to` belong to one entry of the log: how many of them are the function's. Those up to the last whose
 * name is a library's are, unless a framework's comes before it, or cuBLAS's in a function that multiplies no matrices.
 * A name that tells nothing is taken for the library's where it comes first. */
static size_t own_launches(const launches *l, size_t from, size_t to, const char *function)
{
    bool products = bz_call_multiplies(function);
    size_t n = 0;
    for (size_t i = from; i < to && l->owner[i] != BZ_KERNEL_OF_FRAMEWORK; i++) {
        if (l->product[i] != BZ_PRODUCT_NONE && !products)
            break;
        if (l->owner[i] == BZ_KERNEL_OF_LIBRARY)
            n = i - from + 1;
    }
    return n ? n : bz_call_executes(function) && to > from && l->owner[from] == BZ_KERNEL_OF_ANYONE;
}

/* From its entry, or its first launch where that is all that is known, to the end of its last launch. */
static void place(tying *k, size_t row, uint32_t lane, int64_t start, size_t first, size_t n)
{
    bz_events *call = &k->t->event[BZ_EVENT_CALL];
    const launches *l = &k->lane[lane];
    call->lane[row] = lane;
    call->start[row] = call->end[row] = start;
    if (!n)
        return;
    call->end[row] = k->t->event[BZ_EVENT_API].end[l->api[first + n - 1]];
    call->flags[row] &= ~(uint32_t)BZ_CALL_UNTIMED;
    k->tied += (call->flags[row] & BZ_CALL_EXECUTES) != 0;
    k->kernels += n;
}

static bool tie_by_time(tying *k, bz_arena *arena)
{
    bz_events *call = &k->t->event[BZ_EVENT_CALL];
    if (!match_threads(k, arena) || !find_offset(k))
        return false;
    /* from the last to the first, so that the next entry of each thread is known */
    BZ_FREED int64_t *next = bz_alloc(k->t->n_lanes + 1, sizeof *next);
    for (uint32_t i = 0; i < k->t->n_lanes; i++)
        next[i] = INT64_MAX;
    for (size_t i = call->n; i-- > 0;) {
        if (!logged_by(k, i))
            continue;
        uint32_t lane = k->timeline[call->lane[i]];
        k->working += (call->flags[i] & BZ_CALL_EXECUTES) != 0;
        if (lane == BZ_NONE)
            continue;
        const launches *l = &k->lane[lane];
        int64_t at = call->start[i] + k->offset;
        size_t from = launch_from(k, l, at), to = launch_from(k, l, next[lane]);
        next[lane] = at;
        place(k, i, lane, at, from, own_launches(l, from, to, bz_string(k->t, call->name[i])));
    }
    return true;
}

/* Launches inside of calls that have been placed are taken: calls of cuDNN's launch products of matrices, too. */
static void mark_taken(tying *k)
{
    const bz_events *call = &k->t->event[BZ_EVENT_CALL];
    const int64_t *start = k->t->event[BZ_EVENT_API].start;
    for (size_t i = 0; i < call->n; i++) {
        launches *l = &k->lane[call->lane[i]];
        for (size_t j = launch_from(k, l, call->start[i]); j < l->n && start[l->api[j]] < call->end[i]; j++)
            l->product[j] = BZ_PRODUCT_NONE;
    }
}

static void collect_groups(tying *k, launches *l, bz_arena *arena)
{
    const int64_t *start = k->t->event[BZ_EVENT_API].start;
    l->group = BZ_NEW(arena, group, l->n);
    for (size_t i = 0; i < l->n; i++) {
        group *last = l->n_groups ? &l->group[l->n_groups - 1] : NULL;
        if (l->product[i] == BZ_PRODUCT)
            l->group[l->n_groups++] = (group){.first = i, .n = 1, .at = start[l->api[i]]};
        else if (l->product[i] == BZ_PRODUCT_REST && last && last->first + last->n == i)
            last->n++;
    }
}

/* Pairs calls and groups in order where there are as many of both, at fitting times: the log cuts its seconds off. */
static size_t pair_all(tying *k, const uint32_t *row, size_t rows, uint32_t lane, size_t b, size_t groups,
                       int64_t offset, bool tie)
{
    const int64_t *start = k->t->event[BZ_EVENT_CALL].start;
    const group *g = k->lane[lane].group + b;
    if (rows != groups)
        return 0;
    for (size_t i = 0; i < rows; i++) {
        int64_t late = g[i].at - start[row[i]] - offset;
        if (late < 0 || late > SECOND + LATE)
            return 0;
    }
    for (size_t i = 0; tie && i < rows; i++)
        place(k, row[i], lane, g[i].at, g[i].first, g[i].n);
    return rows;
}

/* As many as fit: all together, else second by second. Returns how many; `tie` does it. */
static size_t pair(tying *k, const uint32_t *row, size_t rows, uint32_t lane, int64_t offset, bool tie)
{
    const int64_t *start = k->t->event[BZ_EVENT_CALL].start;
    const group *g = k->lane[lane].group;
    size_t groups = k->lane[lane].n_groups, seconds = 0, pairs = pair_all(k, row, rows, lane, 0, groups, offset, tie);
    for (size_t a = 0, b = 0; !pairs && a < rows;) {
        int64_t begin = start[row[a]] + offset;
        size_t a0 = a, b0;
        while (a < rows && start[row[a]] + offset < begin + SECOND)
            a++;
        while (b < groups && g[b].at < begin)
            b++;
        for (b0 = b; b < groups && g[b].at < begin + SECOND;)
            b++;
        seconds += pair_all(k, row + a0, a - a0, lane, b0, b - b0, offset, tie);
    }
    return pairs ? pairs : seconds;
}

/* Gives one thread of the log the thread of the timeline with which most calls pair. */
static void tie_thread(tying *k, const uint32_t *row, size_t rows)
{
    enum { CANDIDATES = 64 };
    const bz_trace *t = k->t;
    int64_t process = t->lane[t->event[BZ_EVENT_CALL].lane[row[0]]].process, offset = 0;
    size_t best = 0;
    uint32_t chosen = BZ_NONE;
    for (uint32_t j = 0, tried = 0; j < t->n_lanes && tried < CANDIDATES; j++) {
        const launches *l = &k->lane[j];
        if (l->used || !l->n_groups || t->lane[j].process != process)
            continue;
        tried++;
        for (int64_t zone = -ZONES; zone <= ZONES; zone++) {
            size_t pairs = pair(k, row, rows, j, zone * ZONE, false);
            if (pairs > best) {
                best = pairs;
                offset = zone * ZONE;
                chosen = j;
            }
        }
    }
    if (best) {
        pair(k, row, rows, chosen, offset, true);
        k->lane[chosen].used = true;
    }
}

static bool tie_by_order(tying *k, bz_arena *arena)
{
    const bz_events *call = &k->t->event[BZ_EVENT_CALL];
    uint32_t n = k->t->n_lanes, *row = BZ_NEW(arena, uint32_t, call->n);
    size_t *first = BZ_NEW(arena, size_t, n + 2); /* of each thread of the log: row[first[i]] … row[first[i + 1] - 1] */
    mark_taken(k);
    for (uint32_t i = 0; i < n; i++)
        collect_groups(k, &k->lane[i], arena);
    for (size_t i = 0; i < call->n; i++)
        first[call->lane[i] + 2] += logged_by(k, i) && call->flags[i] & BZ_CALL_EXECUTES;
    for (uint32_t i = 2; i <= n; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < call->n; i++)
        if (logged_by(k, i) && call->flags[i] & BZ_CALL_EXECUTES)
            row[first[call->lane[i] + 1]++] = (uint32_t)i;
    k->working = first[n];
    for (uint32_t i = 0; i < n; i++)
        if (first[i + 1] > first[i])
            tie_thread(k, row + first[i], first[i + 1] - first[i]);
    return k->tied > 0;
}

bool bz_trace_tie_log(bz_trace *t, bz_library library)
{
    static const char *const HOW[] = {"thread and time", "order"};
    BZ_SCOPED(bz_arena) arena = {0};
    tying k = {.t = t, .library = library};
    bool order = library != BZ_LIBRARY_CUDNN;
    bz_trace_find_causes(t);
    collect_launches(&k, &arena);
    bool tied = order ? tie_by_order(&k, &arena) : tie_by_time(&k, &arena);
    if (!tied)
        return false;
    bz_trace_cover(t, BZ_NONE, k.tied == k.working ? BZ_COVERAGE_NOTE : BZ_COVERAGE_MISSING,
                   "%zu of %zu %s calls of the log were tied to their launches by %s: %zu kernels have the parameters "
                   "of their call",
                   k.tied, k.working, bz_library_name(library), HOW[order], k.kernels);
    bz_events_sort(&t->event[BZ_EVENT_CALL], BZ_EVENT_CALL, NULL);
    return true;
}
