/* The sequential bound of a model, as written and fused: sums and how they come about. Private to cli/bound*.c. */
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

/* A group that stands for layers in the fused bound. */
typedef struct bound_group {
    const char *pattern;
    const bz_layer *graph;
    const int *layer; /* [n], numbers in the graph */
    int n;
    bz_layer_price price;
} bound_group;

typedef struct bound_fused {
    bool wanted;
    double seconds;
    bound_group *group;   /* those taken */
    int n, covered;       /* layers that they stand for */
    int modelled;         /* of those taken */
    int unpriced;         /* layers that no group covers, either */
    int refused, missing; /* places that cannot be fewer calls, or have no record */
} bound_fused;

typedef struct bound {
    const char *model;
    bound_layer *layer; /* those that cost something or are unpriced */
    int n, cap;
    double *seconds;       /* of each layer of the main graph; NAN where unpriced */
    const bz_layer *graph; /* the main one */
    bound_total total;
    bound_fused fused;
} bound;

void bound_of(const char *model, const bz_layers *layers, const bz_plan *plan, const bz_prices *prices, bound *b);
/* After bound_of: the plan has groups. `model` is its number in the plan. */
void bound_fuse(bound *b, int model, const bz_layers *layers, const bz_plan *plan, const bz_prices *prices);
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
