/* An alignment in the making. For explain/align*.c.
 *
 *   align.c            asks, pairs, and the order of what is looked for
 *   align_rows.c       what becomes a row
 *   align_functions.c  functions that the model writes out in several layers
 *   align_several.c    layers that several steps did, and steps that did several layers */
#ifndef BZ_EXPLAIN_ALIGN_MAKING_H
#define BZ_EXPLAIN_ALIGN_MAKING_H

#include "explain/align.h"

/* A layer, each time that it runs. */
typedef struct bz_align_ask {
    int layer, first, n;      /* of the bound; its atoms */
    int steps;                /* that did something of it */
    bool by_parts;            /* a recurrent layer that the framework computed by products */
    const bz_match *function; /* that the model writes out in this layer and others; NULL */
    int next;                 /* another one of the same signature that is missing, or -1 */
} bz_align_ask;

/* A function that the model writes out in several layers, as gelu by erf, and that a program may compute by one call. */
typedef struct bz_align_function {
    const bz_match *match;
    bz_align_atom atom; /* of the one call */
} bz_align_function;

typedef struct bz_align_making {
    const bz_bound *bound;
    const bz_trace *trace;
    bz_arena *arena;
    bz_alignment *out;
    bz_align_words words;
    bz_align_names names;
    bz_align_steps steps;
    bz_align_ask *ask;
    int *named; /* [layers of the main graph, then the names' others]: ask, or -1 */
    int n_asks;
    bool *spared;        /* [n_asks]: no step did it, and none had to */
    bz_align_atom *atom; /* of all asks */
    int n_atoms;
    int *to;                     /* [steps.n_atoms]: atom of `atom`, or -1 */
    int *from;                   /* [n_atoms]: the other way round */
    bool *moved;                 /* [steps.n] */
    bz_align_function *function; /* those of the model, the ones of more layers first */
    int n_functions;
    const bz_match **written; /* [steps.n]: several layers that this step did, by their numbers in the model; or NULL */
} bz_align_making;

/* Of the main graph, and not of a body. */
bool bz_align_is_of_graph(const bz_align_making *m, const bz_bound_layer *l);
/* The ask of each layer of the main graph, and of those besides that have names; or -1. */
int *bz_align_asks_by_layer(const bz_align_making *m);
bool bz_align_touched(const bz_align_making *m, const bz_align_step *step); /* it did something of a layer */

/* Before steps are taken: their words are known then. */
void bz_align_functions_list(bz_align_making *m);
/* Where steps are of a function's kind its layers are one: the last has the function's atom, and the others none that anything stands for. */
void bz_align_functions_fold(bz_align_making *m);
/* What stands for the last layer of a function did all of them. */
void bz_align_functions_find(bz_align_making *m);

/* One layer may be several equal calls: a product for each image or group of a convolution, or kernels of one kind whose sizes are not known. */
void bz_align_find_repeated(bz_align_making *m, int begin, int end, int way);
/* Recurrent layers that the framework computed step by step, in many products. Of the states' products layers of one size have equally many. */
void bz_align_find_recurrent(bz_align_making *m);
/* Normalizations that the program writes out in several operators, where the model has one layer. */
void bz_align_find_written(bz_align_making *m);
/* One operator, or one kernel, for several layers of its kind: nothing tells where the one ends, and the next begins. */
void bz_align_find_stacked(bz_align_making *m);

/* Layers that no step did, and that need not run. */
void bz_align_find_spared(bz_align_making *m);
/* A row for each step and each layer that is left; between[i]: nothing is told of what stands before step i. */
void bz_align_put_rows(bz_align_making *m, bool *between);
void bz_align_finish_rows(bz_align_making *m);
/* Which kinds of layers nothing did, as words for a person; NULL: there are none. */
const char *bz_align_missing_kinds(const bz_align_making *m);

#endif
