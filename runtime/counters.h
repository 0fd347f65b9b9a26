/* CPU counters through perf_event, and signs that the clock went down. Private to runtime/. */
#ifndef BZ_COUNTERS_H
#define BZ_COUNTERS_H

#include "runtime/runtime.h"
#include <stdbool.h>

typedef struct bz_counters {
    int fd[BZ_N_COUNTERS]; /* -1: this machine has not got it */
} bz_counters;

/* Opens what there is, for this process and the threads that it will start. */
void bz_counters_open(bz_counters *c);
void bz_counters_start(bz_counters *c);
/* Stops, and divides what was counted by `calls`. NaN for what is not counted. */
void bz_counters_stop(bz_counters *c, double calls, double *value);
void bz_counters_close(bz_counters *c);

/* "ok", or one sentence why there are none. True where the machine has them, and this user may not read them. */
bool bz_counters_explain(char out[160]);

/* Seconds that a fixed chain of dependent instructions takes now: cycles over frequency. */
double bz_clock_probe(void);

/* How often the processor throttled since it was started, as the kernel counts it; -1 where it does not. */
int64_t bz_throttle_count(void);

#endif
