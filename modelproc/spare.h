/* The search for layers that need not run, step by step. Private to modelproc/. */
#ifndef BZ_SPARE_H
#define BZ_SPARE_H

#include "modelproc/op.h"

/* What layers of a kind may be to the search: words are compared once for each kind. */
typedef struct {
    const char *kind;
    bool product, scales, shifts, limits, turns, pads;
    bool once; /* repeated, it may make something else */
    int order; /* how its axes may lie, by spare_turned.c */
    int gives; /* row of a rule in spare_unchanged.c, or how many there are */
} spare_kind;

enum { SPARE_KINDS = 128 };

typedef struct {
    bz_layers *l;
    bz_spare *why;     /* [l->n] */
    bz_value_id *same; /* [values]: the first value that holds the same */
    int *maker;        /* [values]: number + 1 of the layer that makes it */
    spare_kind *kinds; /* [SPARE_KINDS] */
    bz_arena work;
} spare_search;

const spare_kind *spare_kind_of(const spare_search *s, const bz_layer *l);
/* The value that operand k is the same as; BZ_NO_VALUE where the layer has none. */
bz_value_id spare_operand(const spare_search *s, const bz_layer *l, int k);

/* Elements of constants that are compared by value: axes, sizes, scales. */
enum { SPARE_FEW = 64 };

/* ---- spare_unchanged.c ------------------------------------------------------------------------- */

int spare_rule_of(const char *kind);
/* Whether all results of a layer are values that are there before it runs: BZ_RUNS, or why; result[k] of SPARE_FEW is then what result k is. */
bz_spare spare_unchanged(const spare_search *s, const bz_layer *layer, bz_value_id *result);

/* The number that all elements of operand k are, a constant of few; false where they differ or nobody knows. */
bool spare_number(const spare_search *s, const bz_layer *l, int k, double *number);

/* ---- spare_arranged.c -------------------------------------------------------------------------- */

void spare_find_arranged(spare_search *s);

/* ---- spare_folded.c ---------------------------------------------------------------------------- */

void spare_find_folded(spare_search *s);

/* ---- spare_turned.c ---------------------------------------------------------------------------- */

int spare_order_of(const bz_layer *l);
void spare_find_turned(spare_search *all);

#endif
