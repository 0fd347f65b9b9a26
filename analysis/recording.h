/* The parts of what a recording tells by itself. Private to analysis/.
 *
 *   recording.c         the answer, the facts, all together
 *   recording_sheets.c  the tables: a new one is a function there and a row in its list
 *   recognize.c         which model it may be
 */
#ifndef BZ_ANALYSIS_RECORDING_H
#define BZ_ANALYSIS_RECORDING_H

#include "analysis/analysis.h"

typedef struct recording_making {
    const bz_trace *trace;   /* with its iterations; where it has none, all of it as one */
    const bz_iteration *one; /* the typical one; NULL: nothing has a time */
    bz_idle idle;            /* of `one`; of devices */
    double steady;           /* how many iterations figures are divided by */
    bz_arena *arena;
    const bz_alignment *alignment; /* of no layers: who had the host while no device worked */
    bool few_rows; /* steps of a language model: of so few sequences that its products mostly read weights */
    double kernel_time, limit_time[BZ_LIMIT_NETWORK + 1]; /* seconds per iteration */
    double unit_time, silent_time,
        product_time; /* of kernels on a matrix unit; whose names do not tell; of all that could be products */
    const char *unit;
    const bz_rank_profile *rank; /* [n_ranks] recordings of one program; at least this one */
    int n_ranks;
    bz_recording *out;
} recording_making;

/* What kernels of a group are limited by, in this recording. */
bz_kernel_limit recording_limit(const recording_making *m, bz_kernel_does does);

/* Fills the sheets. */
void recording_sheets(recording_making *m);

/* Which of the candidates fit the typical iteration. Returns how many of them do; they come first in `fit`, which has all. */
int recording_recognize(const bz_trace *trace, const bz_rebuilt *rebuilt, const bz_candidate *candidate, int n,
                        bz_arena *arena, bz_fit *fit);

#endif
