/* bricks: models cut into short sequences of layers that run by themselves, each unique one once over many models.
 *
 *   bz_bricks_add     cuts a model
 *   bz_bricks_save    a unique sequence as an ONNX file without the model's names and weights
 *   bz_bricks_build   what a model takes, from what its sequences take
 *   bz_bricks_path    the same where branches run at once: the longest path
 *
 * A sequence has at most G layers, and each behind the first reads what one before it makes and, but for constants, nothing from
 * outside: so a sum of two branches begins a sequence. Where the next G layers are no such sequence, the first of them is one by itself, and
 * the next G are tried. Every layer that depends on the model's inputs lies in exactly one.
 *
 * A sequence by itself takes longer than it adds to a model: it is started, and its data is brought in and out. bz_bricks_join makes one sequence of
 * two that follow each other, a joint: what the two take longer is the price of the cut between them. bz_bricks_price_cuts draws a line through these
 * prices, by the bytes that are read over the cut. For a side without a convolution half of the bytes count: runtimes keep rows there. */
#ifndef BZ_BRICKS_H
#define BZ_BRICKS_H

#include "modelproc/modelproc.h"

typedef struct bz_brick {
    const char *key; /* keys of its layers, and which operands come from which of them */
    bz_hash hash;
    const bz_layers *layers; /* of the first model that has it */
    const int *layer;        /* [n], of the main graph */
    int n;
    int64_t count;  /* over all models */
    int models;     /* that have it */
    int last;       /* of these; private */
    bool bodies;    /* a layer runs a graph of its own */
    double seconds; /* NAN: nobody measured it */
} bz_brick;

typedef struct bz_brick_model {
    const bz_layers *layers;
    const char *name;
    const int *brick;  /* [n]: unique sequences in the model's order */
    const int *at;     /* [n]: the place of each one's first layer among the layers that are cut */
    const double *cut; /* [n]: bytes over the cut before it; NAN where it reads nothing of what others make */
    int n, covered;    /* covered: layers in them */
    const int *first,
        *read;       /* [covered + 1]: the places of layers that the layer at a place reads are read[first[i]] … */
    const char *key; /* of all layers, as if they were one sequence */
    double measured; /* seconds of the whole; NAN */
} bz_brick_model;

/* Two sequences that follow each other, and the one of both: numbers of bricks. */
typedef struct bz_brick_joint {
    int first, second, both;
    double bytes; /* that the second reads of the first */
} bz_brick_joint;

typedef struct bz_bricks {
    int most;     /* layers of a sequence: G */
    bool fusions; /* begin one at each layer that multiplies matrices: runtimes fuse what stands behind */
    bool overlap; /* all sequences of up to so many layers, not those alone that cover each layer once */
    bool weights; /* files keep all constants, not those alone that say how to compute */
    bz_brick *brick;
    int n;
    bz_brick_model *model;
    int n_models;
    bz_brick_joint *joint;
    int n_joints;
    bz_map map;
    bz_arena arena;
} bz_bricks;

/* A zeroed one with `most` set is empty. `layers` must outlive it; `name` is copied. */
void bz_bricks_add(bz_bricks *b, const bz_layers *layers, const char *name);
/* Once, behind all models: up to so many joints, of small cuts and of large ones. A joint that is no sequence of the models has count 0. */
void bz_bricks_join(bz_bricks *b, int most);
void bz_bricks_free(bz_bricks *b);

/* The file's bytes. BZ_INCOMPLETE where the sequence cannot be a file: the reason. */
int bz_bricks_save(const bz_bricks *b, int brick, bz_buf *out, bz_error *err);

/* What cutting adds: seconds for each cut and for each byte that is read over it. */
typedef struct bz_brick_cuts {
    double each, byte, spread; /* spread: half of the joints are farther from the line */
    int n;                     /* joints whose times are known; 0: nothing is taken off */
} bz_brick_cuts;

/* How a runtime runs sequences: `each` seconds for each besides; those that begin with a layer of a kind take `factor` times as long; what cutting
 * adds is taken off. */
typedef struct bz_brick_rules {
    double each;
    bz_brick_cuts cuts;
    struct {
        const char *kind;
        double factor;
    } kind[8];
    int n_kinds;
} bz_brick_rules;

/* Seconds of a model: the sum over its sequences; where they overlap over those that cover it cheapest. NAN where no cover was measured
 * whole. `rules` may be NULL. */
double bz_bricks_build(const bz_bricks *b, int model, const bz_brick_rules *rules);
double bz_bricks_path(const bz_bricks *b, int model, const bz_brick_rules *rules);
/* By the times of the joints; fewer than two tell nothing. */
void bz_bricks_price_cuts(const bz_bricks *b, bz_brick_cuts *out);
/* Seconds by which the joint's two sequences take longer than one; NAN. */
double bz_bricks_price_joint(const bz_bricks *b, const bz_brick_joint *j);
/* Measuring all unique sequences and joints once. NAN where something was not measured. */
double bz_bricks_cost(const bz_bricks *b);

/* What a record of it has as its problem: "sequence KEY", by a hash where that is too long. */
const char *bz_brick_problem(const char *key, bz_arena *arena);

/* Of the sequences that either model has the share that both have. */
double bz_bricks_alike(const bz_bricks *b, int one, int other);

#endif
