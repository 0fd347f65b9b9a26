/* Records as durations; private to the room. */
#ifndef BZ_WHATIF_RECORDS_H
#define BZ_WHATIF_RECORDS_H

#include "whatif/transformations.h"

/* Seconds of a problem by the records: of a variant (both may be NULL), and of the best one; NAN unknown. */
int bz_whatif_price(const bz_whatif_asked *asked, const bz_problem *problem, const char *variant, double *used,
                    double *best);

/* The same on another system of the database. */
int bz_whatif_price_on(const bz_whatif_asked *asked, const bz_system *system, const bz_problem *problem,
                       const char *variant, double *used, double *best);

/* [BZ_TASK_KINDS]: the shortest task of each kind that takes time; 0: there is none. */
void bz_whatif_shortest(const bz_flow *flow, int64_t *shortest);
/* What a task takes above so many ns changes by a factor. */
void bz_whatif_grow(bz_flow *flow, uint32_t task, double factor, double above);

/* Every library call takes its best record; how many have one. 0, and why, where none has. */
int bz_whatif_scale_to_best(bz_flow *flow, bz_whatif_asked *asked);

bool bz_whatif_works(const bz_flow *flow, uint32_t task); /* a kernel or a call of the processor, of a library call */

/* Library calls that have work in the flow and whose problem is known, each with a factor; 0: nothing is known. */
typedef struct bz_call_factors {
    double *factor; /* [calls of the trace] */
    int calls;
    bz_tally scaled; /* those with a factor */
} bz_call_factors;
typedef struct bz_priced_call {
    size_t call; /* row of the trace */
    const bz_problem *problem;
    int64_t time;
} bz_priced_call;
typedef int bz_call_factor(void *user, const bz_priced_call *call, double *factor);
int bz_whatif_factors(const bz_flow *flow, const bz_whatif_asked *asked, bz_call_factor *of, void *user,
                      bz_call_factors *out);
/* factor[calls of the trace]: their tasks' durations; 0: they stay. */
void bz_whatif_scale_calls(bz_flow *flow, const bz_whatif_asked *asked, const double *factor);

#endif
