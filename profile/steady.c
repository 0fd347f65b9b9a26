/* Which iterations of a trace count, which one stands for all, and what a library call took. Nobody else decides that. */
#include "base/sort.h"
#include "profile/constants.h"
#include "profile/trace.h"

#include <stdlib.h>

bool bz_iteration_is_steady(const bz_trace *t, uint32_t iteration)
{
    return iteration < t->n_iterations && !t->iteration[iteration].warm_up &&
           t->iteration[iteration].phase != BZ_STEP_PREFILL;
}

bool bz_event_is_steady(const bz_trace *t, bz_event_kind kind, size_t i)
{
    return bz_iteration_is_steady(t, bz_event_iteration(t, kind, i));
}

bool bz_event_counts(const bz_trace *t, bz_event_kind kind, size_t i)
{
    return !t->n_iterations || bz_event_is_steady(t, kind, i);
}

uint32_t bz_steady_iterations(const bz_trace *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        n += bz_iteration_is_steady(t, i);
    return n;
}

typedef struct timed {
    int64_t latency;
    uint32_t iteration;
} timed;

BZ_SORTS(by_latency, timed, BZ_THEN(BZ_ORDER(p->latency, q->latency), BZ_ORDER(p->iteration, q->iteration)));

uint32_t bz_typical_iteration(const bz_trace *t)
{
    BZ_FREED timed *list = bz_alloc((size_t)t->n_iterations + 1, sizeof *list);
    size_t n = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        if (bz_iteration_is_steady(t, i))
            list[n++] = (timed){bz_iteration_latency(t, i), i};
    BZ_QSORT(list, n, by_latency);
    return n ? list[(n - 1) / 2].iteration : BZ_NONE;
}

bool bz_launch_loads(int64_t call, int64_t usual, int64_t queued)
{
    return call >= LOADS && call / LOADS_OF >= usual && queued <= call / 2; /* else it waited for room in the queue */
}

bool bz_call_works(const bz_trace *t, size_t call)
{
    return (t->event[BZ_EVENT_CALL].flags[call] & (BZ_CALL_EXECUTES | BZ_CALL_NESTED)) == BZ_CALL_EXECUTES;
}

/* A file that lies may have calls around each other in a circle. */
size_t bz_call_outermost(const bz_trace *t, size_t call)
{
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    for (size_t steps = 0; c->call[call] < c->n && steps < c->n; steps++)
        call = c->call[call];
    return call;
}

double *bz_call_seconds(const bz_trace *t, bz_arena *arena)
{
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    bool device = t->event[BZ_EVENT_KERNEL].n > 0;
    double *seconds = BZ_NEW(arena, double, c->n);
    for (size_t i = 0; i < c->n && !device; i++)
        if (!(c->flags[i] & BZ_CALL_NESTED))
            seconds[i] = 1e-9 * (double)(c->end[i] - c->start[i]);
    for (int kind = BZ_EVENT_KERNEL; kind <= BZ_EVENT_MEMSET && device; kind++) {
        const bz_events *e = &t->event[kind];
        for (size_t i = 0; i < e->n; i++)
            if (e->call && e->call[i] < c->n)
                seconds[e->call[i]] += 1e-9 * (double)(e->end[i] - e->start[i]);
    }
    for (size_t i = c->n; device && i--;) /* the call around another one began before it */
        if (c->call[i] < i) {
            seconds[c->call[i]] += seconds[i];
            seconds[i] = 0;
        }
    return seconds;
}
