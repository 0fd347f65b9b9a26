/* Takes memory as a training run does, in sizes that a test knows: weights, then iterations of three passes. With a number: a block of so many
 * bytes in each iteration, and nothing else. */
#include "profile/marker/benanza.h"

#include <stdlib.h>
#include <unistd.h>

enum { WEIGHTS = 100000, STATE = 50000, KEPT = 30000, GRADIENT = 20000, PASSING = 10000, PEAK = 70000, ITERATIONS = 6 };

/* What no machine has; volatile, so that no compiler sees it. */
static volatile size_t too_much = (size_t)1 << 62;

/* The sum lives on, so that no compiler leaves a block out. */
static volatile unsigned char sum;

static void *take(size_t bytes)
{
    void *block = NULL;
    if (posix_memalign(&block, 64, bytes))
        abort();
    *(volatile unsigned char *)block = 1;
    sum += *(volatile unsigned char *)block;
    return block;
}

/* A block that is written and given back in every iteration: above 32 MB the C library takes it from the system each time. */
static int take_anew(size_t bytes)
{
    for (int i = 0; i < 3 * ITERATIONS; i++) {
        benanza_iteration_begin();
        char *block = malloc(bytes);
        if (!block)
            abort();
        for (size_t at = 0; at < bytes; at += 512)
            ((volatile char *)block)[at] = 1;
        free(block);
        benanza_iteration_end();
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return take_anew((size_t)atol(argv[1]));
    void *weights = take(WEIGHTS), *state = NULL, *gradient = NULL;
    benanza_fact("batch", "3");
    for (int i = 0; i < ITERATIONS; i++) {
        benanza_iteration_begin();
        free(gradient);
        benanza_range_begin("forward");
        void *kept = take(KEPT), *again = take(KEPT);
        free(take(PASSING));
        usleep(2000);
        benanza_range_end();
        benanza_range_begin("backward");
        gradient = aligned_alloc(64, GRADIENT / 64 * 64);
        free(again);
        if (realloc(kept, too_much))
            abort(); /* a block that cannot grow stays */
        free(take(PEAK));
        free(kept);
        usleep(2000);
        benanza_range_end();
        benanza_range_begin("update");
        if (!state)
            state = take(STATE);
        free(take(PASSING));
        usleep(1000);
        benanza_range_end();
        benanza_iteration_end();
    }
    free(gradient);
    free(state);
    free(weights);
    return 0;
}
