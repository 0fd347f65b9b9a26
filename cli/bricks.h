/* Sequences of layers as benchmarks of our own. Private to cli/. */
#ifndef BZ_CLI_BRICKS_H
#define BZ_CLI_BRICKS_H

#include "bricks/bricks.h"
#include "cli/planning.h"

typedef struct bricks_records {
    planning p;
    const char *time_limit, *remeasure;
    bool no_run;
    /* results */
    int measured, failed;
    double *hot; /* [b->n]: seconds of a sequence's calls, each by itself with its operands in the caches; NAN */
} bricks_records;

/* Fills in what sequences and models take as replays, by records of the database; what it lacks is run first, each stored at once.
 * why[b->n]: reasons of sequences that have no time. */
int bricks_replay(bricks_records *r, bz_bricks *b, bz_layers *const *models, const char **why, bz_arena *arena,
                  bz_error *err);

/* "sequence KEY", or by a hash where that is too long for a record. */
const char *bricks_problem(const char *key, bz_arena *arena);

#endif
