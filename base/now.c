/* Apart from progress.c, so that benchmarks link nothing of terminals. */
#include "base/progress.h"

#include <time.h>

double bz_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
