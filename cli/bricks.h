/* Sequences of layers as benchmarks of our own. Private to cli/. */
#ifndef BZ_CLI_BRICKS_H
#define BZ_CLI_BRICKS_H

#include "base/sheet.h"
#include "bricks/bricks.h"
#include "cli/planning.h"

typedef struct bricks_records {
    bz_job *job;
    planning p;
    const char *time_limit, *remeasure;
    bool no_run;
    bz_list prices; /* "SYSTEM=DOLLARS" for an hour */
    /* results */
    int measured, failed;
    double *hot; /* [b->n]: seconds of a sequence's calls, each by itself with its operands in the caches; NAN */
} bricks_records;

/* Fills in what sequences and models take as replays, by records of the database; what it lacks is run first, each stored at once.
 * why[b->n]: reasons of sequences that have no time. */
int bricks_replay(bricks_records *r, bz_bricks *b, bz_layers *const *models, const char **why, bz_error *err);

/* A table of what each model takes on each system that has records of it or its sequences; of the system named alone, where one is. */
int bricks_advise(bricks_records *r, bz_bricks *b, const bz_brick_rules *rules, const bz_sheet **out, bz_error *err);

#endif
