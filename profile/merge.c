/* Aligns a library's log with a timeline that has the same library's calls: each timeline call gets the
 * parameters of its log call, and the log's rows go. The two may stem from two runs of the program with
 * different numbers of iterations: the log, whose parameters show what repeats, is continued by its own last
 * iteration for as long as the timeline goes on. */
#include "profile/columns.h"
#include "profile/trace.h"

#include <stdlib.h>
#include <string.h>

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

static sequence collect(const bz_trace *t, bz_library library, bool log, bz_arena *arena)
{
    const bz_events *e = &t->event[BZ_EVENT_CALL];
    sequence s = {.row = BZ_NEW(arena, uint32_t, e->n), .name = BZ_NEW(arena, uint64_t, e->n)};
    for (size_t i = 0; i < e->n; i++)
        if (same_library(e->library[i], library) && e->flags[i] & BZ_CALL_EXECUTES &&
            t->source[t->lane[e->lane[i]].source].log == log) {
            s.row[s.n] = (uint32_t)i;
            s.name[s.n++] = e->name[i];
        }
    if (!log)
        return s;
    uint64_t *symbol = BZ_NEW(arena, uint64_t, s.n);
    for (size_t i = 0; i < s.n; i++)
        symbol[i] = s.name[i] << 32 | e->detail[s.row[i]];
    uint32_t *first;
    s.iterations = bz_find_period(symbol, s.n, NULL, NULL, &first, arena);
    s.period = s.iterations ? first[s.iterations] - first[s.iterations - 1] : 0;
    return s;
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

void bz_trace_merge_logs(bz_trace *t)
{
    static const bz_library LIBRARIES[] = {BZ_LIBRARY_CUDNN, BZ_LIBRARY_CUBLAS, BZ_LIBRARY_ONEDNN};
    bz_events *e = &t->event[BZ_EVENT_CALL];
    bool any_timeline = false;
    for (uint32_t i = 0; i < t->n_sources; i++)
        any_timeline |= !t->source[i].log;
    for (size_t k = 0; k < sizeof LIBRARIES / sizeof *LIBRARIES; k++) {
        bool timeline;
        const char *name = bz_library_name(LIBRARIES[k]);
        if (!both(t, LIBRARIES[k], &timeline))
            continue;
        if (!timeline) {
            if (any_timeline)
                bz_trace_cover(
                    t, BZ_NONE, BZ_COVERAGE_MISSING,
                    "the timeline has no %s call: the log's calls stand on their own clock and are not tied to kernels",
                    name);
            continue;
        }
        bz_arena arena = {0};
        sequence log = collect(t, LIBRARIES[k], true, &arena), line = collect(t, LIBRARIES[k], false, &arena);
        if (!line.n || !log.n) {
            bz_arena_free(&arena);
            continue;
        }
        size_t pairs = align(t, &log, &line);
        bz_trace_cover(
            t, BZ_NONE, pairs == line.n ? BZ_COVERAGE_NOTE : BZ_COVERAGE_MISSING,
            "%zu of %zu %s calls of the timeline got their parameters from the log (%zu calls in %u iterations there)",
            pairs, line.n, name, log.n, log.iterations);
        bz_arena_free(&arena);
        bool *keep = bz_alloc(e->n + 1, sizeof *keep);
        for (size_t i = 0; i < e->n; i++)
            keep[i] = !(same_library(e->library[i], LIBRARIES[k]) && t->source[t->lane[e->lane[i]].source].log);
        bz_events_filter(e, BZ_EVENT_CALL, keep);
        free(keep);
    }
}
