/* libbenanza: how fast a neural network could run on a machine, for C programs. It is 'benanza analyze' as a function:
 * examples/bound.c shows all of it.
 *
 *     cc bound.c $(pkg-config --cflags --libs benanza)
 *
 * Functions that fail return NULL and fill the error, which may be NULL. Nothing is printed, measured or written. Several threads
 * may work at once, each with a database handle of its own. Within a SONAME names are added, and none changes its meaning. */
#ifndef BENANZA_BENANZA_H
#define BENANZA_BENANZA_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct benanza_db benanza_db;
typedef struct benanza_analysis benanza_analysis;

typedef struct benanza_error {
    int status;     /* what benanza would exit with: 1 failed, 2 wrong request, 3 bad input */
    char text[600]; /* a sentence: what, where, and what to do */
} benanza_error;

/* The database in this folder; NULL: the one that benanza uses, $BENANZA_DB or its usual place. It is only read. */
benanza_db *benanza_open(const char *folder, benanza_error *error);
void benanza_close(benanza_db *db); /* after its analyses are freed; NULL is fine */

/* What is asked. A zeroed member is left to benanza. */
typedef struct benanza_request {
    const char *model;     /* an ONNX file; must be named */
    const char *system;    /* whose records count: "epyc-9xx5"; NULL: the only one in the database */
    const char *recording; /* of a program that ran the model: it is held against the bound; NULL: none */
    const char *dtype;     /* compute in this type: "bf16"; NULL: in the model's own */
    int64_t batch;         /* 0: as the model has it */
    int threads;           /* 0: one */
    bool fuse, cold;       /* groups of layers as one call, too; operands are in memory and not in the caches */
} benanza_request;

benanza_analysis *benanza_analyze(benanza_db *db, const benanza_request *request, benanza_error *error);
void benanza_free(benanza_analysis *analysis); /* NULL is fine */

/* A number by its name; NAN where it is not known. Times are seconds.
 *   "sequential", "parallel"   the bound as written: one layer after the other; independent ones at once
 *   "fused"                    the same with groups of layers as one call
 *   "hardware"                 what the peaks of the hardware allow (modelled)
 *   "goal"                     the lowest of these that libraries reach; NAN where too little is priced to say so
 *   "priced_macs"              the share of the multiplications that has a price, 0 to 1
 *   "layers", "unpriced"       how many; where some are unpriced, times are lower ends
 *   "measured", "speedup"      the recording's latency; measured / goal */
double benanza_number(const benanza_analysis *analysis, const char *name);

/* All of it as 'benanza analyze' prints it, for people; and as JSON (docs/formats.md). They live as long as the analysis. */
const char *benanza_text(benanza_analysis *analysis);
const char *benanza_json(benanza_analysis *analysis);

#ifdef __cplusplus
}
#endif

#endif
