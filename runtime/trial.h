/* trial: one problem in the child. measure.c sets it up and checks its variants, sample.c measures them. Private to
 * runtime/. */
#ifndef BZ_TRIAL_H
#define BZ_TRIAL_H

#include "runtime/counters.h"
#include "runtime/measure.h"
#include "runtime/values.h"

enum { BZ_TRIAL_SESSIONS = 8, BZ_TRIAL_RESULTS = 8 };

typedef struct bz_trial_session {
    const bz_backend *backend;
    void *of;
} bz_trial_session;

/* A result, and the elements of it that are checked. */
typedef struct bz_trial_result {
    int operand, n;
    int64_t *position;
    bz_expected *expected;
} bz_trial_result;

typedef struct bz_trial {
    const bz_measure_task *task;
    const bz_problem *problem;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    float *value[BZ_PROBLEM_OPERANDS];
    bz_job job;
    bz_trial_session sessions[BZ_TRIAL_SESSIONS];
    int n_sessions;
    bz_variant_list variants;
    bz_trial_result result[BZ_TRIAL_RESULTS]; /* the one that all kinds have comes last */
    int n_results;
    float *whole;        /* room for any of these; NULL: none was read yet */
    int next_copy, cold; /* of the operands: which the next call takes, and how many from there on are in no cache */
    bz_counters counters;
    double yardstick[2], measured_at; /* at the beginning, and the last one with its time */
} bz_trial;

/* Gives a record to the parent. */
void bz_trial_emit(const bz_trial *t, const bz_outcome *r);

/* From now on a crash or a hang is this variant's. */
void bz_trial_blame(const bz_trial *t, const bz_variant *v, const char *stage);

int bz_trial_family_size(const bz_trial *t, const bz_variant *v); /* variants of v's family */

/* Whether the variant (or with algorithm "" the family) ended already: in an earlier child, or in an
 * earlier run. */
bool bz_trial_finished(const bz_trial *t, const char *backend, const char *algorithm, const char *layout,
                       const char *math);

/* Prepares a variant, runs it once, checks. Returns -1 where that ends its life; the record says why. */
int bz_trial_try(bz_trial *t, bz_variant *v, bz_outcome *record);

void bz_trial_run(bz_trial *t); /* all variants */

#endif
