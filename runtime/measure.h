/* What happens in the child process: one problem, all its variants. Private to runtime/. */
#ifndef BZ_MEASURE_H
#define BZ_MEASURE_H

#include "runtime/backend.h"

/* The page that parent and child share: what the child is at, so that a crash or a hang can be
 * blamed on somebody. */
typedef struct bz_blame {
    char backend[16], algorithm[160], layout[16], math[16];
    int variants;         /* that its family has */
    char stage[32];       /* "preparing" … */
    volatile double beat; /* when the child last showed a sign of life, by bz_now() */
} bz_blame;

typedef struct bz_measure_task {
    const bz_family *families;
    int n;
    const bz_run_options *options; /* all values filled in */
    const bz_outcome *finished;    /* variants that ended already, in an earlier child */
    int n_finished;
    bz_blame *blame;
    int pipe; /* records go there, each a whole bz_outcome */
} bz_measure_task;

/* Runs the task to its end. Whatever can go wrong ends up in records. */
void bz_measure(const bz_measure_task *task);

double bz_last_level_cache(void); /* bytes */

/* The first that a child does whose output is its parent's: it ends with the parent, by the signals' own ways, and leaves no core behind. */
void bz_child_begin(pid_t parent);

/* Begins the program anew with addresses that are the same every time, where it has not been done. */
void bz_fix_addresses(char **argv);

/* A record for a variant, or with algorithm "" for a family. */
bz_outcome bz_outcome_of(const bz_problem *p, const char *backend, const char *algorithm, const char *layout,
                         const char *math);

#endif
