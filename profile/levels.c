/* A program run three times, each time recorded more deeply: nothing but its own marks, library calls, everything.
 * Recording slows down what lies above it; so each figure is taken from the run in which it is the deepest one, and the
 * difference between the runs is what recording costs. */

#include "profile/trace.h"

#include <signal.h>
#include <string.h>

enum { ALONE, CALLS, EVERYTHING, LEVELS };
static const char *const NAMES[LEVELS] = {"program alone", "with calls", "with everything"};

static int run_level(bz_trace *t, char *const argv[], const bz_capture_options *o, int *status, bz_error *err)
{
    if (bz_profile_capture(t, argv, o, status, err) ||
        bz_trace_finish(t, &(bz_finish_options){.iterations = o->iterations, .recorded = true}, err))
        return -1;
    if (*status == 128 + SIGINT || *status == 128 + SIGTERM ||
        *status == 128 + SIGHUP) /* no reason to start it again */
        return bz_fail(err, BZ_FAILED, "%s was stopped: levels want three whole runs of it", argv[0]);
    return 0;
}

static uint32_t copy_stack(bz_trace *t, const bz_trace *from, uint32_t stack)
{
    enum { FRAMES_MAX = 256 };
    uint32_t copy[FRAMES_MAX];
    const uint32_t *frames = NULL;
    int n = bz_stack(from, stack, &frames);
    n = n < FRAMES_MAX ? n : FRAMES_MAX;
    for (int i = 0; i < n; i++)
        copy[i] = bz_trace_text(t, bz_string(from, frames[i]));
    return bz_trace_stack(t, copy, n);
}

static bool alike(const bz_trace *t, size_t i, const bz_trace *from, size_t k)
{
    const bz_events *to = &t->event[BZ_EVENT_CALL], *e = &from->event[BZ_EVENT_CALL];
    return !strcmp(bz_string(t, to->name[i]), bz_string(from, e->name[k])) &&
           !strcmp(bz_string(t, to->detail[i]), bz_string(from, e->detail[k]));
}

/* The same program makes the same calls: back-traces go over by function, parameters and order. Whether making a primitive
 * is worth a record depends on how long it took, so that here and there one run has a call that the other has not: the
 * nearest place where both agree again is taken. */
static size_t copy_stacks(bz_trace *t, const bz_trace *from)
{
    enum { LOOK_AHEAD = 32 };
    bz_events *to = &t->event[BZ_EVENT_CALL];
    const bz_events *e = &from->event[BZ_EVENT_CALL];
    size_t copied = 0;
    for (size_t i = 0, k = 0; i < to->n && k < e->n; i++, k++) {
        size_t step = 0, skip = 0;
        bool found = false;
        while (!found && step < LOOK_AHEAD) {
            found = i + skip < to->n && k + step - skip < e->n && alike(t, i + skip, from, k + step - skip);
            if (!found && skip++ == step) {
                step++;
                skip = 0;
            }
        }
        if (!found)
            continue;
        i += skip;
        k += step - skip;
        to->stack[i] = copy_stack(t, from, e->stack[k]);
        copied++;
    }
    return copied;
}

/* On a device the run with everything is a timeline of its own; on a processor it differs by its back-traces only. */
static bool has_device(const bz_trace *t)
{
    return t->event[BZ_EVENT_API].n || t->event[BZ_EVENT_KERNEL].n || t->event[BZ_EVENT_COPY].n;
}

static void keep_level(bz_level *l, const bz_trace *run, const char *name, bz_trace *t)
{
    *l = (bz_level){.name = bz_trace_text(t, name),
                    .wall = run->private->wall,
                    .iteration = BZ_NEW(&t->arena, bz_level_iteration, run->n_iterations),
                    .n_iterations = run->n_iterations};
    for (uint32_t i = 0; i < run->n_iterations; i++) {
        bz_iteration_stats s;
        bz_iteration_measure(run, i, &s);
        l->iteration[i] = (bz_level_iteration){s.latency, s.library, run->iteration[i].warm_up};
    }
}

static void cover_levels(bz_trace *t)
{
    const bz_level *alone = &t->level[ALONE], *own = &t->level[t->own_level];
    const char *name = bz_string(t, t->level[bz_trace_level(t, BZ_FIGURE_LATENCY)].name);
    if (!alone->n_iterations)
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                       "the program alone tells its whole time only, because it marks no iteration: latency is that of "
                       "the run %s, and has in it what recording costs. Mark iterations: benanza.iteration() in "
                       "Python, benanza_iteration_begin() and …_end() in C, or NVTX",
                       name);
    else if (alone->n_iterations != own->n_iterations)
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                       "the program alone made %u iterations, and %u %s: the runs did not do the same",
                       alone->n_iterations, own->n_iterations, bz_string(t, own->name));
}

/* Makes one of the runs the trace, and keeps of all what the trace takes from them. */
static void join(bz_trace *t, bz_trace *const run[LEVELS])
{
    uint32_t own = has_device(run[EVERYTHING]) ? EVERYTHING : CALLS;
    bz_trace empty = *t;
    *t = *run[own];
    *run[own] = empty;
    if (own == CALLS) {
        size_t copied = copy_stacks(t, run[EVERYTHING]), n = t->event[BZ_EVENT_CALL].n;
        if (copied < n)
            bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_MISSING,
                           "%zu of %zu calls have no back-trace: the runs did not make the same calls", n - copied, n);
    }
    t->level = BZ_NEW(&t->arena, bz_level, LEVELS);
    t->n_levels = LEVELS;
    t->own_level = own;
    for (uint32_t i = 0; i < LEVELS; i++)
        keep_level(&t->level[i], i == own ? t : run[i], NAMES[i], t);
    cover_levels(t);
}

int bz_profile_levels(bz_trace *t, char *const argv[], const bz_capture_options *options, int *exit_status,
                      bz_error *err)
{
    bz_capture_options o[LEVELS] = {*options, *options, *options};
    bz_trace *run[LEVELS];
    int rc = 0, status[LEVELS] = {0};
    o[ALONE].marks_only = o[CALLS].host_only = o[EVERYTHING].backtrace = true;
    o[ALONE].memory = o[ALONE].backtrace = o[ALONE].logs = o[ALONE].nsys = o[CALLS].backtrace = o[CALLS].nsys = false;
    for (int i = 0; i < LEVELS; i++)
        run[i] = bz_trace_new();
    /* the deepest first: it is the one that may be refused, and the first run pays for cold files */
    for (int i = LEVELS; i-- > 0 && !rc;) {
        rc = run_level(run[i], argv, &o[i], &status[i], err);
        *exit_status = status[i];
    }
    if (!rc) {
        join(t, run);
        *exit_status = status[t->own_level];
    }
    for (int i = 0; i < LEVELS; i++)
        bz_trace_free(run[i]);
    return rc;
}
