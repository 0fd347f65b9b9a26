/* The search for layers that need not run, step by step. Private to modelproc/. */
#ifndef BZ_SPARE_H
#define BZ_SPARE_H

#include "modelproc/op.h"

typedef struct {
    bz_layers *l;
    bz_spare *why;     /* [l->n] */
    bz_value_id *same; /* [values]: the first value that holds the same */
    int *maker;        /* [values]: number + 1 of the layer that makes it */
    bz_arena work;
} spare_search;

/* Elements of constants that are compared by value: axes, sizes, scales. */
enum { SPARE_FEW = 64 };

/* ---- spare_unchanged.c ------------------------------------------------------------------------- */

/* Whether all results of a layer are values that are there before it runs: BZ_RUNS, or why; result[k] of SPARE_FEW is then what result k is. */
bz_spare spare_unchanged(const spare_search *s, const bz_layer *layer, bz_value_id *result);

/* The number that all elements of operand k are, a constant of few; false where they differ or nobody knows. */
bool spare_number(const spare_search *s, const bz_layer *l, int k, double *number);

/* ---- spare_folded.c ---------------------------------------------------------------------------- */

void spare_find_folded(spare_search *s);

/* ---- spare_turned.c ---------------------------------------------------------------------------- */

void spare_find_turned(spare_search *s);

#endif
