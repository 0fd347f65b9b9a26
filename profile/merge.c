/* Aligns a library's log with a timeline that has the same library's calls: each timeline call gets the
 * parameters of its log call, and the log's rows go. The two may stem from two runs of the program with
 * different numbers of iterations; so iterations are found in both, and aligned one by one: warm-up with
 * warm-up, the others with the last one that the log has. */
#include "profile/columns.h"
#include "profile/trace.h"

#include <stdlib.h>
#include <string.h>

/* The executing calls of one library, of logs or of timelines, in order of time. */
typedef struct {
    uint32_t *row;
    uint64_t *name;
    size_t n;
    uint32_t *first, n_iterations; /* first[n_iterations] ends the last one */
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
        if (same_library(e->library[i], library) && e->flags[i] & BZ_CALL_EXECUTES && t->source[t->lane[e->lane[i]].source].log == log) {
            s.row[s.n] = (uint32_t)i;
            s.name[s.n++] = e->name[i];
        }
    s.n_iterations = bz_find_period(s.name, NULL, s.n, &s.first, arena);
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

/* Pairs two runs of calls in order. Where they differ, the nearest place where both agree again is taken;
 * what is skipped stays without a partner. Returns the number of pairs. */
static size_t align(bz_trace *t, const sequence *log, size_t a, size_t a_end, const sequence *line, size_t b, size_t b_end)
{
    enum { LOOK_AHEAD = 128 };
    size_t pairs = 0;
    while (a < a_end && b < b_end) {
        if (log->name[a] == line->name[b]) {
            copy_call(t, log->row[a++], line->row[b++]);
            pairs++;
            continue;
        }
        size_t step = 1, i = 0;
        bool found = false;
        for (; step <= LOOK_AHEAD && !found; step++)
            for (i = 0; i <= step && !found; i++)
                found = a + i < a_end && b + step - i < b_end && log->name[a + i] == line->name[b + step - i];
        if (!found)
            break;
        step--; /* both loops went one too far */
        i--;
        a += i;
        b += step - i;
    }
    return pairs;
}

static size_t align_all(bz_trace *t, const sequence *log, const sequence *line)
{
    if (log->n == line->n || !log->n_iterations || !line->n_iterations)
        return align(t, log, 0, log->n, line, 0, line->n);
    size_t pairs = 0;
    for (uint32_t i = 0; i < line->n_iterations; i++) {
        uint32_t k = i < log->n_iterations ? i : log->n_iterations - 1;
        pairs += align(t, log, log->first[k], log->first[k + 1], line, line->first[i], line->first[i + 1]);
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
                bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_MISSING,
                               "the timeline has no %s call: the log's calls stand on their own clock and are not tied to kernels", name);
            continue;
        }
        bz_arena arena = {0};
        sequence log = collect(t, LIBRARIES[k], true, &arena), line = collect(t, LIBRARIES[k], false, &arena);
        size_t pairs = align_all(t, &log, &line);
        bz_trace_cover(t, BZ_NONE, pairs == line.n ? BZ_COVERAGE_NOTE : BZ_COVERAGE_MISSING,
                       "%zu of %zu %s calls of the timeline got their parameters from the log (%zu calls in %u iterations there)", pairs, line.n, name,
                       log.n, log.n_iterations);
        bz_arena_free(&arena);
        bool *keep = bz_alloc(e->n + 1, sizeof *keep);
        for (size_t i = 0; i < e->n; i++)
            keep[i] = !(same_library(e->library[i], LIBRARIES[k]) && t->source[t->lane[e->lane[i]].source].log);
        bz_events_filter(e, BZ_EVENT_CALL, keep);
        free(keep);
    }
}
