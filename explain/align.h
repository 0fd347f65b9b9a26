/* The parts of an alignment. For explain/ and analysis/.
 *
 *   align_atoms.c     layers and calls as atoms: the smallest pieces of work that either may have alone
 *   align_rules.c     what names of kernels, calls and operators mean
 *   align_sequence.c  two sequences of atoms beside each other
 *   align_names.c     layers by the nodes that a recording names
 *   align_steps.c     what an iteration did, step by step
 *   align_time.c      who an iteration's time belongs to
 *   align_faster.c    calls that were faster than the bound
 *   align.c           all together */
#ifndef BZ_EXPLAIN_ALIGN_H
#define BZ_EXPLAIN_ALIGN_H

#include "explain/explain.h"

/* ---- atoms ---------------------------------------------------------------------------------- */

/* A call with post-operations has several atoms, and so has a layer with a bias: layers that one call did
 * and calls that one layer needed are then atoms in another grouping, and nothing special. */
enum { ALIGN_ALSO = 6, ALIGN_ATOMS = 16 };
typedef struct align_atom {
    uint32_t kind;             /* "conv", "relu", "bias": number of a word */
    uint32_t id;               /* kind and all parameters; 0: the parameters are not known */
    uint32_t near;             /* kind and weights; 0: has none */
    uint32_t also[ALIGN_ALSO]; /* of a layer: ids that do the same another way; ends with the first 0 */
    bool optional;             /* missing or in excess it is no deviation: a bias may be folded away */
    int owner;                 /* layer, or step */
    int node; /* the layer of the main graph that a recording says this is, plus one; 0: it says nothing */
} align_atom;

/* Numbers for words and signatures, from 1 on. */
typedef struct align_words {
    bz_map map;
    bz_arena *arena;
    bz_buf text;
    uint32_t n, bias, batchnorm; /* the two: numbers of these words */
} align_words;

void align_words_begin(align_words *w, bz_arena *arena);
void align_words_end(align_words *w);
uint32_t align_word(align_words *w, const char *s);

/* Atoms of a problem, at most ALIGN_ATOMS; how many. */
int align_problem_atoms(align_words *w, const bz_problem *p, align_atom *out);
/* Atoms of a layer; the atom of a call, kernel or operator of which only the name is known. */
int align_layer_atoms(align_words *w, const bz_bound_layer *l, align_atom *out);
align_atom align_named_atom(align_words *w, const char *kind);
/* An operator by its name and what its shapes tell: "inputs=[[1,3,224,224],[64,3,7,7],[64],…" and the like. */
int align_operator_atoms(align_words *w, const char *kind, const char *detail, align_atom *out);

/* The parameters in which the problem differs from the alternative of the layer that is closest to it. */
int align_changes(const bz_bound_layer *l, const bz_problem *found, bz_arena *arena, const bz_change **out);

/* ---- sequences ------------------------------------------------------------------------------ */

/* to[j] is the atom of `a` that b[j] stands for, or -1; ascending. What is least in sum of the costs below;
 * sequences of more than `cells` pairs are cut where a signature occurs once in each, and windows of that
 * size slide over what is left. */
enum { ALIGN_CELLS = 1 << 20 };
void align_sequences(const align_words *w, const align_atom *a, int n, const align_atom *b, int m, int cells, int *to);
int align_pair_cost(const align_words *w, const align_atom *a, const align_atom *b); /* < 0: can't stand for it */
int align_gap_cost(const align_atom *a);
bool align_same(const align_atom *a, const align_atom *b); /* by signature */

/* ---- rules ---------------------------------------------------------------------------------- */

/* Either a kind of layer that a thing of this name does, or a cause of time; both NULL: nothing is known. */
typedef struct align_rule {
    const char *kind, *cause;
} align_rule;
align_rule align_kernel_rule(const char *name);
align_rule align_call_rule(const char *name);
align_rule align_operator_rule(const char *name);
const char *align_api_cause(const char *name); /* what a call of CUDA's keeps the device waiting for */
const char *align_cause_name(const char *id);  /* "input-padded" -> "inputs padded by kernels of the framework" */

/* ---- names ---------------------------------------------------------------------------------- */

typedef struct align_names {
    const bz_bound *bound;
    bz_map node, tensor; /* name -> layer of the main graph, by its node and by what it makes */
    bool read;           /* both; that waits for the first recorded name: most recordings have none */
} align_names;

typedef struct align_name {
    int layer;  /* -1: none that is known */
    bool exact; /* the operator is that node; else one that was made of it and of nodes before it */
} align_name;

void align_names_end(align_names *names);
align_name align_name_of(align_names *names, const char *detail); /* names may be NULL */
/* Atoms of an operator as they are without names, n of them; with names the first is the node, or where it was made of
 * several, what these do behind the first one is added. Returns how many. */
int align_name_atoms(const align_names *names, align_words *w, align_name name, const char *kind, align_atom *atom,
                     int n);

/* ---- steps ---------------------------------------------------------------------------------- */

typedef enum { ALIGN_CALL, ALIGN_KERNEL, ALIGN_OPERATOR } align_step_kind;

/* A call, a kernel that no call asked for, or, where neither was recorded, an operator. */
typedef struct align_step {
    align_step_kind kind;
    size_t at; /* the event */
    int64_t start;
    int64_t time;              /* nanoseconds that are its own, filled by align_time */
    const bz_problem *problem; /* and its text; NULL where it is not known */
    const char *text;
    const char *cause; /* what no layer asks for, by name: the id; NULL */
    const char *name;  /* for people */
    align_name node;   /* that the recording names */
    uint32_t stack;
    bool asked;   /* a layer asks for it */
    int first, n; /* its atoms */
} align_step;

typedef struct align_steps {
    const bz_trace *trace;
    align_names *names; /* NULL: there is no model */
    uint32_t iteration; /* BZ_NONE: the whole trace is one */
    int64_t begin, end;
    bool timeline, device, operators; /* device: time is the device's; operators: steps are operators */
    align_step *step;
    int n, cap;
    align_atom *atom;
    int n_atoms, cap_atoms;
    uint32_t *of_call;   /* [calls]: step + 1 */
    uint32_t *of_kernel; /* [kernels]: likewise */
    uint32_t *of_op;     /* [operators]: likewise, where steps are */
} align_steps;

void align_steps_take(align_steps *s, const bz_trace *trace, align_names *names, align_words *w, bz_arena *arena);
void align_steps_free(align_steps *s);
bool align_in(const align_steps *s, bz_event_kind kind, size_t event); /* belongs to the iteration */

/* ---- time ----------------------------------------------------------------------------------- */

/* Assigns every nanosecond of the iteration: to a step, or to a cause where no layer asked for it.
 * between[i]: layers that nothing recorded did stand before step i; as many as steps, and one more. */
void align_time(align_steps *s, const bool *between, const char *layers, bz_arena *arena, bz_alignment *out);

/* ---- faster --------------------------------------------------------------------------------- */

/* Fills what is faster, by the rows of the alignment. */
void align_faster(const bz_bound *bound, bz_arena *arena, bz_alignment *out);

#endif
