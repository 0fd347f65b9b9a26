/* The C face of the Google Benchmark shim. Private to runtime/.
 *
 * What is taken from the library is its decision how many iterations one sample needs, and its loop.
 * A sample is one run of a benchmark whose body does all its iterations in one go
 * (State::KeepRunningBatch) and reports its own time (SetIterationTime): so the same loop serves the
 * wall clock here and events on a GPU. Repetitions, interleaving and the decision to stop are ours:
 * the library would run a fixed number of repetitions, whether or not the median has settled. */
#ifndef BZ_GBENCH_H
#define BZ_GBENCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Does n iterations; returns the seconds they took, or a negative number to give up. */
typedef double bz_gbench_body(void *context, int64_t n);

/* Takes one sample. With *iterations = 0 the library finds how many are needed to fill `min_time`
 * seconds and says so there; else that many are done. Returns seconds per iteration, negative where the
 * body gave up. */
double bz_gbench_sample(bz_gbench_body *body, void *context, double min_time, int64_t *iterations);

#ifdef __cplusplus
}
#endif
#endif
