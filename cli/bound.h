/* The sequential bound of a model as written: sums and how they come about. Private to cli/bound*.c. */
#ifndef BZ_CLI_BOUND_H
#define BZ_CLI_BOUND_H

#include "cli/planning.h"

typedef struct bound_layer {
    const bz_layer *layer;
    bz_layer_price price;
    double times; /* how often it runs: trips of the loops around it */
} bound_layer;

/* Sums; unpriced layers add nothing to `seconds`. */
typedef struct bound_total {
    double seconds, launch, macs, macs_measured;
    int layers, free, measured, imported, modelled, unpriced, noisy, missing;
    int branches, loops, loops_open; /* If by their cheaper branch; loops; those of unknown length among them */
} bound_total;

typedef struct bound {
    const char *model;
    bound_layer *layer; /* those that cost something or are unpriced */
    int n, cap;
    bound_total total;
} bound;

void bound_of(const char *model, const bz_layers *layers, const bz_plan *plan, const bz_prices *prices, bound *b);
void bound_free(bound *b);

typedef struct bound_head {
    const char *system;
    bz_setting setting;
    int benchmarks;      /* run for this: records made */
    int problems, known; /* that the models need; of which the database had all */
} bound_head;

void bound_text(const bound *b, const bound_head *head, bz_buf *out);
void bound_json(const bound *b, int n, const bound_head *head, bz_buf *out);
void bound_csv(const bound *b, int n, bz_buf *out);

#endif
