/* Which iterations of a trace count, and which one stands for all. Nobody else decides that. */
#include "profile/trace.h"

#include <stdlib.h>

bool bz_iteration_is_steady(const bz_trace *t, uint32_t iteration)
{
    return iteration < t->n_iterations && !t->iteration[iteration].warm_up;
}

bool bz_event_is_steady(const bz_trace *t, bz_event_kind kind, size_t i)
{
    return bz_iteration_is_steady(t, bz_event_iteration(t, kind, i));
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

static int by_latency(const void *a, const void *b)
{
    const timed *x = a, *y = b;
    if (x->latency != y->latency)
        return x->latency < y->latency ? -1 : 1;
    return x->iteration < y->iteration ? -1 : 1;
}

uint32_t bz_typical_iteration(const bz_trace *t)
{
    timed *list = bz_alloc((size_t)t->n_iterations + 1, sizeof *list);
    size_t n = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        if (bz_iteration_is_steady(t, i))
            list[n++] = (timed){bz_iteration_latency(t, i), i};
    if (n)
        qsort(list, n, sizeof *list, by_latency);
    uint32_t typical = n ? list[(n - 1) / 2].iteration : BZ_NONE;
    free(list);
    return typical;
}
