/* The parts of an alignment. For explain/ and analysis/.
 *
 *   align_atoms.c     layers and calls as atoms: the smallest pieces of work that either may have alone
 *   align_rules.c     what names of kernels, calls and operators mean
 *   align_sequence.c  two sequences of atoms beside each other
 *   align_names.c     layers by the nodes that a recording names
 *   align_back.c      operators that are the gradient of a recurrent one
 *   align_steps.c     what an iteration did, step by step
 *   rebuild_operators.c  layers by operators and their shapes
 *   likeness.c        what a recording multiplies, pools …, and what a model does, as two sequences
 *   foreign.c         is the recording of this model at all?
 *   align_time.c      who an iteration's time belongs to
 *   align_faster.c    calls that were faster than the bound
 *   align.c           all together, with align_functions.c, align_several.c and align_rows.c: align_making.h */
#ifndef BZ_EXPLAIN_ALIGN_H
#define BZ_EXPLAIN_ALIGN_H

#include "explain/explain.h"

/* ---- atoms ---------------------------------------------------------------------------------- */

/* A call with post-operations has several atoms, and so has a layer with a bias: layers that one call did
 * and calls that one layer needed are then atoms in another grouping, and nothing special. */
enum { BZ_ALIGN_ALSO = 6, BZ_ALIGN_ATOMS = 16 };
typedef struct bz_align_atom {
    uint32_t kind; /* "conv", "relu", "bias": number of a word */
    uint32_t id;   /* kind and all parameters; 0: the parameters are not known */
    uint32_t near; /* kind and weights; 0: has none */
    uint32_t own; /* of a layer: its kind in the model; an operator of which only the name is known may do it by that */
    uint32_t
        sort; /* of two that are told, the one never stands for the other: the largest, and the mean, of a window */
    uint32_t also[BZ_ALIGN_ALSO]; /* of a layer: ids that do the same another way; ends with the first 0 */
    bool post;                    /* comes behind another in one call */
    bool optional;                /* missing or in excess it is no deviation: a bias may be folded away */
    int owner;                    /* layer, or step */
    int node;                     /* the layer that a recording says this is, plus one; 0: it says nothing */
} bz_align_atom;

/* Numbers for words and signatures, from 1 on. */
typedef struct bz_align_words {
    bz_map map;
    bz_arena *arena;
    bz_buf text;
    uint32_t n, bias, batchnorm; /* the two: numbers of these words */
} bz_align_words;

void bz_align_words_begin(bz_align_words *w, bz_arena *arena);
void bz_align_words_end(bz_align_words *w);
uint32_t bz_align_word(bz_align_words *w, const char *s);
bool bz_align_knows(const bz_align_words *w, const char *s); /* whether it was asked for before */

/* Atoms of a problem, at most BZ_ALIGN_ATOMS; how many. */
int bz_align_problem_atoms(bz_align_words *w, const bz_problem *p, bz_align_atom *out);
/* Atoms of a layer; the atom of a call, kernel or operator of which only the name is known. */
int bz_align_layer_atoms(bz_align_words *w, const bz_bound_layer *l, bz_align_atom *out);
/* The atom of the one call that a group of layers can be; false where it takes several, or the call does several things. */
bool bz_align_group_atom(bz_align_words *w, const bz_lowering *low, bz_align_atom *out);
bz_align_atom bz_align_named_atom(bz_align_words *w, const char *kind);
/* The products by which a framework computes a recurrent layer itself, in sorts; how many, at most BZ_ALIGN_PARTS. The first sort is that of the states,
 * one product for each step and direction, without which the others say nothing. 0: the layer is not recurrent. */
enum { BZ_ALIGN_PARTS = 7 };
typedef struct bz_align_part {
    uint32_t id;
    int64_t least, most; /* products of the sort that the layer has */
    bool instead;        /* only where there is none of the sort before */
} bz_align_part;
int bz_align_recurrent_parts(bz_align_words *w, const bz_bound_layer *l, bz_align_part *out);
/* An operator by the kinds of the layers that it does, with blanks between, and what its shapes tell: "inputs=[[1,3,224,224],[64,3,7,7],[64],…" and the
 * like. */
int bz_align_operator_atoms(bz_align_words *w, const char *kind, const char *detail, bz_align_atom *out);

/* The parameters in which the problem differs from the alternative of the layer that is closest to it. */
int bz_align_changes(const bz_bound_layer *l, const bz_problem *found, bz_arena *arena, const bz_change **out);

/* ---- sequences ------------------------------------------------------------------------------ */

/* to[j] is the atom of `a` that b[j] stands for, or -1; ascending. What is least in sum of the costs below;
 * sequences of more than `cells` pairs are cut where a signature occurs once in each, and windows of that
 * size slide over what is left. */
enum { BZ_ALIGN_CELLS = 1 << 20 };
void bz_align_sequences(const bz_align_words *w, const bz_align_atom *a, int n, const bz_align_atom *b, int m,
                        int cells, int *to);
int bz_align_pair_cost(const bz_align_words *w, const bz_align_atom *a,
                       const bz_align_atom *b); /* < 0: can't stand for it */
int bz_align_gap_cost(const bz_align_atom *a);
bool bz_align_same(const bz_align_atom *a, const bz_align_atom *b); /* by signature */

/* ---- rules ---------------------------------------------------------------------------------- */

/* Either a kind of layer that a thing of this name does, or a cause of time; neither: nothing is known. */
typedef struct bz_align_rule {
    const char *kind;
    bz_cause_kind cause;
} bz_align_rule;
bz_align_rule bz_align_call_rule(const char *name);
bz_align_rule bz_align_operator_rule(const char *name);
/* Rows of views: of an operator that makes one, and of a kind of layer that can be one; -1: it is none. */
enum { BZ_ALIGN_VIEWS = 3 };
int bz_align_view_row(const char *name);
int bz_align_view_of(const char *kind);
bz_cause_kind bz_align_api_cause(const char *name); /* what a call of CUDA's keeps the device waiting for */

/* ---- names ---------------------------------------------------------------------------------- */

typedef struct bz_align_names {
    const bz_bound *bound;
    const bz_layer **layer; /* those of the main graph, then those of bodies that run once */
    int n;
    bz_map node, tensor; /* name -> layer, by its node and by what it makes */
    bool read;           /* all; that waits for the first recorded name: most recordings have none */
} bz_align_names;

typedef struct bz_align_name {
    int layer;  /* of the names'; -1: none that is known */
    bool exact; /* the operator is that node; else one that was made of it and of nodes before it */
} bz_align_name;

void bz_align_names_end(bz_align_names *names);
bz_align_name bz_align_name_of(bz_align_names *names, const char *detail); /* names may be NULL */
/* Atoms of an operator as they are without names, n of them; with names the first is the node, or where it was made of
 * several, what these do behind the first one is added. Returns how many. */
int bz_align_name_atoms(const bz_align_names *names, bz_align_words *w, bz_align_name name, const char *kind,
                        bz_align_atom *atom, int n);

/* ---- steps ---------------------------------------------------------------------------------- */

typedef enum { BZ_ALIGN_CALL, BZ_ALIGN_KERNEL, BZ_ALIGN_OPERATOR } bz_align_step_kind;

/* A call, a kernel that no call asked for, or, where neither was recorded, an operator. */
typedef struct bz_align_step {
    bz_align_step_kind kind;
    size_t at; /* the event */
    int64_t start;
    int64_t time;              /* nanoseconds that are its own, filled by bz_align_time */
    const bz_problem *problem; /* and its text; NULL where it is not known */
    const char *text;
    bz_cause_kind cause;     /* what no layer asks for, by name */
    bz_cause_kind otherwise; /* the same, if no layer is found that it did */
    const char *name;        /* for people */
    bz_align_name node;      /* that the recording names */
    uint32_t stack;
    bool asked;   /* a layer asks for it */
    int first, n; /* its atoms */
} bz_align_step;

typedef struct bz_align_steps {
    const bz_trace *trace;
    bz_align_names *names; /* NULL: there is no model */
    uint32_t iteration;    /* BZ_NONE: the whole trace is one */
    int64_t begin, end;
    bool timeline, device, operators; /* device: time is the device's; operators: steps are operators */
    bz_align_step *step;
    int n;
    bz_align_atom *atom;
    int n_atoms;
    uint32_t *of_call;   /* [calls]: step + 1 */
    uint32_t *of_kernel; /* [kernels]: likewise */
    uint32_t *of_op;     /* [operators]: likewise, where steps are */
    /* [operators]: the first of those that are one gradient together, at which the step is; BZ_NONE: part of none. NULL: there is none */
    uint32_t *whole;
    uint32_t *gradient; /* [operators]: of such a first one the operator whose gradient they are */
} bz_align_steps;

void bz_align_steps_take(bz_align_steps *s, const bz_trace *trace, bz_align_names *names, bz_align_words *w,
                         bz_arena *arena);
void bz_align_steps_free(bz_align_steps *s);
/* Finds what is the gradient of a recurrent operator: `whole` and `gradient`. */
void bz_align_find_back(bz_align_steps *s, bz_arena *arena);
bool bz_align_in(const bz_align_steps *s, bz_event_kind kind, size_t event); /* belongs to the iteration */

/* ---- operators ------------------------------------------------------------------------------ */

/* As bz_rebuild, by the shapes of the framework's operators. */
void bz_rebuild_operators(const bz_trace *trace, bz_arena *arena, bz_rebuilt *out);

/* ---- likeness ------------------------------------------------------------------------------- */

typedef enum {
    BZ_WORK_CONV,
    BZ_WORK_PRODUCT,
    BZ_WORK_POOL,
    BZ_WORK_SOFTMAX,
    BZ_WORK_RECURRENT,
    BZ_WORK_SORTS,
    BZ_WORK_CONV_OR_PRODUCT =
        BZ_WORK_SORTS /* a symbol alone: a layer that counts as a convolution, and may run as either */
} bz_align_sort;

/* The heavy work of a model or of an iteration, in its order, freed by who asked for it. */
typedef struct bz_align_work {
    unsigned char *symbol;             /* [n]: bz_align_sort */
    bool *again;                       /* [n]: the same, with the same parameters, as the one before it */
    const char *last;                  /* the parameters of the last one; NULL: not known */
    int n, told, count[BZ_WORK_SORTS]; /* told: how many with parameters */
    int backward; /* steps of a recording besides, that belong to the way back of training, or to an optimizer */
    const char *backward_name; /* of the first one */
    int unknown;               /* kernels of a recording whose names tell nothing */
    int depthwise, winograd;   /* convolutions of single channels; by an algorithm for wide kernels of stride 1 */
    bool by_layer;             /* told by PyTorch's operators: each layer is one, and nothing is fused */
    int relu;
} bz_align_work;

void bz_align_work_take(const bz_trace *t, bz_arena *arena, bz_align_work *s); /* of its typical iteration */
void bz_align_work_add(bz_align_work *s, const bz_layer *layer);
void bz_align_work_free(bz_align_work *s);
/* What is again what came before it counts once from here on: a product for each image or head is one layer's, as are equal products in a row. Nothing
 * changes where the recording tells few parameters. */
void bz_align_work_fold(bz_align_work *model, bz_align_work *ran);
/* A convolution is one: no product of what runs by layers stands for it. */
void bz_align_work_convs(bz_align_work *s);
/* Without what another work has none of: the log of one library does not tell what others did. */
void bz_align_work_leave_out(bz_align_work *s, const bz_align_work *other);
int bz_align_work_common(const bz_align_work *a, const bz_align_work *b); /* length of the longest common subsequence */
/* "recorded / in the model: convolutions 53 / 53, pools 2 / 2; all in the model's order" */
const char *bz_align_work_evidence(const bz_align_work *model, const bz_align_work *ran, int alike, bz_arena *arena);

/* ---- is it of this model? ------------------------------------------------------------------- */

/* What tells that a recording is of another network, of other sizes, or of a training; NULL where nothing does. `batch_open`:
 * nothing tells its batch either. */
const char *bz_align_foreign(const bz_bound *bound, const bz_trace *trace, bz_arena *arena, bool *batch_open);

/* Frameworks compute convolutions with kernels of one element by BLAS, where that spares reorders, and small and transposed ones by code
 * of their own (PyTorch does all three). A log of oneDNN, and nothing beside it, lacks those. */
bool bz_align_unlogged(const bz_layer *l);
bool bz_align_onednn_alone(const bz_trace *trace);

/* ---- time ----------------------------------------------------------------------------------- */

/* Assigns every nanosecond of the iteration: to a step, or to a cause where no layer asked for it.
 * between[i]: layers that nothing recorded did stand before step i; as many as steps, and one more. */
void bz_align_time(bz_align_steps *s, const bool *between, const char *layers, bz_arena *arena, bz_alignment *out);

/* ---- faster --------------------------------------------------------------------------------- */

/* Fills what is faster, by the rows of the alignment. */
void bz_align_faster(const bz_bound *bound, bz_arena *arena, bz_alignment *out);

#endif
