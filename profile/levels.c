/* A program run three times, each time with deeper recording: nothing but its own marks, library calls, back-traces.
 * Recording slows down what lies above it; so each number is taken from the run in which it is the deepest one, and the
 * difference between the runs is what recording costs. */
#include "profile/profile.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double wall;    /* seconds, start of the program to its end */
    double latency; /* median of the steady iterations in seconds; 0 where none is known */
} level;

static double median_latency(const bz_trace *t)
{
    double *v = bz_alloc(t->n_iterations + 1, sizeof *v);
    size_t n = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        if (!t->iteration[i].warm_up)
            v[n++] = (double)(t->iteration[i].end - t->iteration[i].start) / 1e9;
    double median = bz_quantiles_of(v, n).p50;
    free(v);
    return median;
}

static int run_level(bz_trace *t, char *const argv[], bz_capture_options options, int *status, level *l, bz_error *err)
{
    double begin = bz_now();
    if (bz_profile_capture(t, argv, &options, status, err) ||
        bz_trace_finish(t, &(bz_finish_options){.iterations = options.iterations}, err))
        return -1;
    if (*status == 128 + SIGINT || *status == 128 + SIGTERM ||
        *status == 128 + SIGHUP) /* no reason to start it again */
        return bz_fail(err, BZ_FAILED, "%s was stopped: levels want three whole runs of it", argv[0]);
    l->wall = bz_now() - begin;
    l->latency = median_latency(t);
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

/* The same program makes the same calls: back-traces go over by function and order. */
static size_t copy_stacks(bz_trace *t, const bz_trace *from)
{
    enum { LOOK_AHEAD = 32 };
    bz_events *to = &t->event[BZ_EVENT_CALL];
    const bz_events *e = &from->event[BZ_EVENT_CALL];
    size_t copied = 0;
    for (size_t i = 0, k = 0; i < to->n && k < e->n; i++) {
        size_t at = k;
        while (at < e->n && at < k + LOOK_AHEAD && strcmp(bz_string(t, to->name[i]), bz_string(from, e->name[at])) != 0)
            at++;
        if (at == e->n || at == k + LOOK_AHEAD)
            continue;
        to->stack[i] = copy_stack(t, from, e->stack[at]);
        copied++;
        k = at + 1;
    }
    return copied;
}

static void tell(bz_trace *t, const char *key, const level *l, const level *alone)
{
    bz_unit_text wall, latency;
    char text[160];
    int n = snprintf(text, sizeof text, "%s in all", bz_units_time(wall, l->wall));
    if (l != alone)
        n += snprintf(text + n, sizeof text - (size_t)n, " (%+.1f %%)", (l->wall / alone->wall - 1) * 100);
    if (l->latency > 0)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %s an iteration", bz_units_time(latency, l->latency));
    if (l != alone && l->latency > 0 && alone->latency > 0)
        snprintf(text + n, sizeof text - (size_t)n, " (%+.1f %%)", (l->latency / alone->latency - 1) * 100);
    bz_trace_fact(t, key, text);
}

int bz_profile_levels(bz_trace *t, char *const argv[], const bz_capture_options *options, int *exit_status,
                      bz_error *err)
{
    level levels[3];
    bz_capture_options marks = *options, calls = *options, stacks = *options;
    marks.marks_only = true;
    marks.backtrace = calls.backtrace = marks.logs = false;
    stacks.backtrace = true;
    bz_trace *shallow = bz_trace_new(), *deep = bz_trace_new();
    int rc = -1, other;
    if (run_level(shallow, argv, marks, &other, &levels[0], err) ||
        run_level(t, argv, calls, exit_status, &levels[1], err) ||
        run_level(deep, argv, stacks, &other, &levels[2], err))
        goto out;
    size_t copied = copy_stacks(t, deep), n = t->event[BZ_EVENT_CALL].n;
    if (copied < n)
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_MISSING,
                       "%zu of %zu calls have no back-trace: the runs did not make the same calls", n - copied, n);
    if (levels[0].latency <= 0)
        bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_NOTE,
                       "the program alone tells no latency, only its whole time: mark its iterations");
    tell(t, "program alone", &levels[0], &levels[0]);
    tell(t, "with calls", &levels[1], &levels[0]);
    tell(t, "with stacks", &levels[2], &levels[0]);
    rc = 0;
out:
    bz_trace_free(shallow);
    bz_trace_free(deep);
    return rc;
}
