/* Whether the machine is quiet enough to measure, and waiting until it is. Private to runtime/. */
#ifndef BZ_QUIET_H
#define BZ_QUIET_H

#include "base/load.h"

/* Seconds that a fixed piece of work takes now: the best of three. An interruption of one of them does not count; a slower
 * clock does, and so does somebody else on the same core. */
double bz_yardstick(void);

typedef struct bz_quiet {
    double limit;     /* seconds to wait before one problem; twice that in all */
    double waited;    /* in all, so far */
    double yardstick; /* the best known, in seconds; 0: none yet */
    int threads;
    bz_load before;                                    /* the last look */
    void (*tell)(void *context, const char *sentence); /* called when waiting begins; may be NULL */
    void *context;
} bz_quiet;

/* A limit below 0 stands for the default, 30 s, or what $BENANZA_WAIT says. Takes a few yardsticks. */
void bz_quiet_begin(bz_quiet *q, double limit, double yardstick, int threads);

/* One look, without waiting: whether the machine is busy. */
bool bz_quiet_look(bz_quiet *q, char why[160]);

/* Waits until the machine is quiet, within the limits. True where it still is not; `why` says what was seen. */
bool bz_quiet_wait(bz_quiet *q, char why[160]);

#endif
