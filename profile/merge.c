/* Aligns a library's log with a timeline that has the same library's calls: each timeline call gets the
 * parameters of its log call, and the log's rows go. The two may stem from two runs of the program with
 * different numbers of iterations: the log, whose parameters show what repeats, is continued by its own last
 * iteration for as long as the timeline goes on. A timeline without the library's calls: tie.c. */
#include "profile/columns.h"
#include "profile/trace.h"

/* The executing calls of one library, of logs or of timelines, in order of time. */
typedef struct {
    uint32_t *row;
    uint64_t *name;
    size_t n;
    size_t period; /* calls per iteration, 0 where nothing repeats */
    uint32_t iterations;
} sequence;

static bool same_library(uint32_t a, uint32_t b)
{
    if (a == BZ_LIBRARY_CUBLASLT)
        a = BZ_LIBRARY_CUBLAS; /* Nsight has one table for both */
    if (b == BZ_LIBRARY_CUBLASLT)
        b = BZ_LIBRARY_CUBLAS;
    return a == b;
}

static void find_iterations(const bz_trace *t, sequence *s, bool parameters, bz_arena *arena)
{
    uint64_t *symbol = BZ_NEW(arena, uint64_t, s->n);
    for (size_t i = 0; i < s->n; i++)
        symbol[i] = s->name[i] << 32 | (parameters ? t->event[BZ_EVENT_CALL].detail[s->row[i]] : 0);
    uint32_t *first;
    s->iterations = bz_find_period(symbol, s->n, NULL, &first, arena);
    s->period = s->iterations ? first[s->iterations] - first[s->iterations - 1] : 0;
}

/* `known`, of a log: names that the timeline has, too. Others are of calls that a library made inside of another, or
 * that only the logged run made. */
static sequence collect(const bz_trace *t, bz_library library, bool log, const bool *known, bz_arena *arena)
{
    const bz_events *e = &t->event[BZ_EVENT_CALL];
    sequence s = {.row = BZ_NEW(arena, uint32_t, e->n), .name = BZ_NEW(arena, uint64_t, e->n)};
    for (size_t i = 0; i < e->n; i++)
        if (same_library(e->library[i], library) && e->flags[i] & BZ_CALL_EXECUTES &&
            t->source[t->lane[e->lane[i]].source].log == log && (!known || known[e->name[i]])) {
            s.row[s.n] = (uint32_t)i;
            s.name[s.n++] = e->name[i];
        }
    find_iterations(t, &s, log, arena);
    return s;
}

/* A log whose calls do not repeat, of a program whose timeline does, is mostly of its first iteration, in which it tries
 * what is fastest. Its end counts, if that occurs twice: so long is an iteration. 0: it does not. */
static size_t repeated_end(const bz_trace *t, const sequence *log, const sequence *line)
{
    const uint32_t *detail = t->event[BZ_EVENT_CALL].detail;
    for (size_t p = 1; p <= log->n / 2; p++) {
        bool same = line->n % p == 0;
        for (size_t i = log->n - p; i < log->n && same; i++)
            same = log->name[i] == log->name[i - p] && detail[log->row[i]] == detail[log->row[i - p]];
        for (size_t i = 0; i < line->n && same; i++)
            same = line->name[i] == log->name[log->n - p + i % p];
        if (same)
            return p;
    }
    return 0;
}

static void copy_call(bz_trace *t, uint32_t from, uint32_t to)
{
    bz_events *e = &t->event[BZ_EVENT_CALL];
    e->detail[to] = e->detail[from];
    e->operands[to] = e->operands[from];
    e->variant[to] = e->variant[from];
    e->flags[to] |= BZ_CALL_LOGGED | (e->flags[from] & BZ_CALL_FAILED);
}

/* Call number i of the log continued by its last iteration. */
static size_t continued(const sequence *log, size_t i)
{
    return i < log->n ? i : log->n - log->period + (i - log->n) % log->period;
}

/* Pairs the calls in order. Where they differ, the nearest place where both agree again is taken; what is
 * skipped stays without a partner. Returns the number of pairs. */
static size_t align(bz_trace *t, const sequence *log, const sequence *line)
{
    enum { LOOK_AHEAD = 128 };
    if (line->iterations && !log->iterations) {
        size_t p = repeated_end(t, log, line);
        for (size_t i = 0; i < line->n && p; i++)
            copy_call(t, log->row[log->n - p + i % p], line->row[i]);
        return p ? line->n : 0;
    }
    size_t pairs = 0, a = 0, b = 0, end = log->period ? SIZE_MAX / 2 : log->n;
    while (a < end && b < line->n) {
        bool found = false;
        for (size_t step = 0; step <= LOOK_AHEAD && !found; step++)
            for (size_t i = 0; i <= step && !found; i++)
                if (a + i < end && b + step - i < line->n &&
                    log->name[continued(log, a + i)] == line->name[b + step - i]) {
                    found = true;
                    a += i;
                    b += step - i;
                }
        if (!found)
            break;
        copy_call(t, log->row[continued(log, a++)], line->row[b++]);
        pairs++;
    }
    return pairs;
}

/* Has any timeline calls of this library, and any log? */
static bool both(const bz_trace *t, bz_library library, bool *timeline)
{
    const bz_events *e = &t->event[BZ_EVENT_CALL];
    bool log = false;
    *timeline = false;
    for (size_t i = 0; i < e->n && !(log && *timeline); i++)
        if (same_library(e->library[i], library)) {
            if (t->source[t->lane[e->lane[i]].source].log)
                log = true;
            else
                *timeline = true;
        }
    return log;
}

/* Both have calls of the library: the timeline's get the log's parameters, and the log's go. */
static void merge(bz_trace *t, bz_library library)
{
    bz_events *e = &t->event[BZ_EVENT_CALL];
    BZ_SCOPED(bz_arena) arena = {0};
    sequence line = collect(t, library, false, NULL, &arena);
    bool *known = BZ_NEW(&arena, bool, bz_strings(t));
    for (size_t i = 0; i < line.n; i++)
        known[line.name[i]] = true;
    sequence log = collect(t, library, true, known, &arena);
    if (line.n && log.n) {
        size_t pairs = align(t, &log, &line);
        bz_trace_cover(
            t, BZ_NONE, pairs == line.n ? BZ_COVERAGE_NOTE : BZ_COVERAGE_MISSING,
            "%zu of %zu %s calls of the timeline got their parameters from the log (%zu calls in %u iterations there)",
            pairs, line.n, bz_library_name(library), log.n, log.iterations);
        bool *keep = BZ_NEW(&arena, bool, e->n);
        for (size_t i = 0; i < e->n; i++)
            keep[i] = !(same_library(e->library[i], library) && t->source[t->lane[e->lane[i]].source].log);
        bz_events_filter(e, BZ_EVENT_CALL, keep);
    }
}

/* The timeline has no call of the library. */
static void tie(bz_trace *t, bz_library library)
{
    const bz_events *e = &t->event[BZ_EVENT_CALL];
    bool any_timeline = false;
    size_t working = 0;
    for (uint32_t i = 0; i < t->n_sources; i++)
        any_timeline |= !t->source[i].log;
    for (size_t i = 0; i < e->n; i++)
        working += e->library[i] == library && e->flags[i] & BZ_CALL_EXECUTES;
    if (any_timeline && working && !bz_trace_tie_log(t, library))
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_MISSING,
                       "the timeline has no %s call, and no launch that fits the log: its %zu calls stand on their own "
                       "clock and are not tied to kernels",
                       bz_library_name(library), working);
}

void bz_trace_merge_logs(bz_trace *t)
{
    static const bz_library LIBRARIES[] = {BZ_LIBRARY_CUDNN, BZ_LIBRARY_CUBLAS, BZ_LIBRARY_ONEDNN};
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES; i++) {
        bool timeline;
        if (!both(t, LIBRARIES[i], &timeline))
            continue;
        if (timeline)
            merge(t, LIBRARIES[i]);
        else
            tie(t, LIBRARIES[i]);
        if (!timeline && LIBRARIES[i] == BZ_LIBRARY_CUBLAS)
            tie(t, BZ_LIBRARY_CUBLASLT); /* after the calls that may have made it */
    }
}
