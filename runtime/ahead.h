/* ahead: processes that build what the next problems need (compiled plans) while one is measured. A device is measured by one
 * process alone; building needs only processors. What is built goes through the folder setting->plans. Private to runtime/. */
#ifndef BZ_AHEAD_H
#define BZ_AHEAD_H

#include "runtime/pending.h"

enum { BZ_AHEAD_MOST = 16 };

/* Begins as zeros. */
typedef struct bz_ahead {
    int n; /* builders, one for each processor that measuring leaves free */
    pid_t builder[BZ_AHEAD_MOST];
    struct bz_ahead_shared *shared; /* whose each family is, in the order of the problems */
    const bz_pending *pending;
    int n_families;
    double limit; /* seconds for which one problem is waited for */
} bz_ahead;

/* Starts the builders, where the options name a folder and a backend has something to build. The first problem is left to whoever
 * measures. */
void bz_ahead_begin(bz_ahead *a, const bz_pending *pending, const bz_run_options *options);

/* Takes a problem for measuring: waits for the builders that have begun with its families, while they live and for as long as a
 * variant may hang. No builder begins with it any more. */
void bz_ahead_take(bz_ahead *a, int item);

void bz_ahead_end(bz_ahead *a);

#endif
