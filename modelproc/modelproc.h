/* modelproc: a model -> its layers, with shapes, keys and costs; unique layers over many models;
 * the graph of who waits for whom; fusion patterns.
 *
 *   bz_layers_infer     every node's output shapes and types, values of small integer tensors, and
 *                       from these the layers
 *   bz_unique_add       the same layer only once, over many models
 *   bz_totals_make      what a model costs as a whole
 *   bz_dag_build        predecessors, parallel modules
 *   bz_patterns_*       which layers could run as one
 *   bz_spares_find      which need not run
 *   bz_groupnorm_find   whether some are a group normalization
 *   bz_dot_*            the graph as a picture
 *
 * What is made for a model lives as long as its bz_layers and is freed with it; the bz_model must
 * outlive both. */
#ifndef BZ_MODELPROC_H
#define BZ_MODELPROC_H

#include "graph/graph.h"
#include "onnx/onnx.h"

/* ---- layers -------------------------------------------------------------------------------- */

typedef enum {
    BZ_COMPUTE,  /* does arithmetic */
    BZ_MEMORY,   /* moves bytes */
    BZ_VIEW,     /* free: the same bytes under another shape */
    BZ_CONSTANT, /* does not depend on the model's inputs: folded away before anything runs */
} bz_class;

const char *bz_class_name(bz_class c);

/* A parameter that is part of what a layer does: numbers, or a word (text not NULL). */
typedef struct bz_param {
    const char *name, *text;
    const int64_t *v;
    int n;
} bz_param;

typedef struct bz_layer bz_layer;

/* A graph that runs inside a layer: branch of If, body of Loop or Scan, local function. */
typedef struct bz_body {
    const char *name;
    bz_layer *layers;
    int n;
    int64_t trips;                       /* how often it runs; 0: the other branch is taken for sure */
    bool trips_known;                    /* else trips is --trips, or 1 */
    const bz_value_id *inputs, *outputs; /* of a local function: those of its body; NULL otherwise */
} bz_body;

struct bz_layer {
    int index;        /* in its graph, topological */
    const char *name; /* the node's, or OP_INDEX */
    const bz_node *node;
    const char *kind; /* "conv", "gemm", … */
    bz_class class;
    int n_in, n_out;
    const bz_type *in, *out; /* [n_in], [n_out]; kind BZ_TYPE_NONE where an operand was left out */
    const bool *in_constant; /* [n_in]: an initializer, or computed from nothing else */
    const bool *in_setting;  /* [n_in]: how to compute and not what: scales, zero points, axes */
    const bz_param *params;
    int n_params;
    const char *key;
    bz_hash hash;
    int64_t macs, flops;  /* per run; bodies counted: cheaper branch, trips × body */
    int64_t params_count; /* weights: elements of constant operands */
    int64_t bytes;        /* read and written at least */
    bool priced;          /* false when a dimension depends on data: macs, flops and bytes are then 0 */
    bool opaque;          /* what it does inside is not known, whatever its shapes: never priced */
    bool multiplies;      /* where it is not priced, as a dimension depends on data: it does, nobody knows how often */
    const bz_body *bodies;
    int n_bodies;
};

const bz_param *bz_layer_param(const bz_layer *layer, const char *name);          /* NULL where absent */
int64_t bz_layer_int(const bz_layer *layer, const char *name, int64_t otherwise); /* of one number */

/* What kinds of layers have in common; layer.c has the table. */
typedef enum {
    BZ_LAYER_CONVOLUTION = 1,
    BZ_LAYER_POOL = 2,
    BZ_LAYER_NORMALIZATION = 4, /* operands: x, scale, shift, mean, variance */
    BZ_LAYER_CONVOLUTION_GRADIENT = 8,
    BZ_LAYER_UPDATE = 16, /* an optimizer's step: its results lie where its operands did */
    BZ_LAYER_RANDOM = 32, /* the same operands give another result each time */
    BZ_LAYER_WINDOW = BZ_LAYER_CONVOLUTION | BZ_LAYER_POOL,
} bz_layer_trait;
bool bz_layer_has(const bz_layer *layer, unsigned traits); /* one of them */
/* Its kind as steps of frameworks tell kinds apart: "conv1d" of a convolution along one axis, which they may leave as it is. */
const char *bz_layer_step_kind(const bz_layer *layer);

/* Adds a count, at least 0. The counts of a model that lies may sum up to more than there is: they stay there. */
static inline void bz_count_add(int64_t *sum, int64_t count)
{
    if (__builtin_add_overflow(*sum, count, sum))
        *sum = INT64_MAX;
}

/* ---- inference ----------------------------------------------------------------------------- */

typedef struct bz_bind {
    const char *name;  /* a dimension's name; "INPUT:AXIS"; or an input's name */
    const char *value; /* "8"; for an input "1x3x224x224" */
} bz_bind;

typedef struct bz_infer_options {
    int64_t batch; /* 0: as the file says */
    const bz_bind *binds;
    int n_binds;
    int64_t trips;        /* of loops whose trip count the file does not tell; 0: once */
    bool ignore_declared; /* do not fill gaps from shapes that the file declares */
    bool open_inputs;     /* leave dynamic dimensions of inputs open instead of failing */
    bool as_written;      /* fail where the graph contains its batch as a number, and `batch` is another */
    bool without_keys;    /* shapes and costs alone: keys are empty, params_count is 0 */
    /* Where sizes stand if not in --dim and --batch: said behind each sentence that names one of these. NULL: nowhere else */
    const char *sizes_in;
} bz_infer_options;

/* What a layer of an iteration of training is for. */
typedef enum { BZ_TRAIN_FORWARD, BZ_TRAIN_LOSS, BZ_TRAIN_BACKWARD, BZ_TRAIN_UPDATE, BZ_TRAIN_PHASES } bz_train_phase;
const char *bz_train_phase_name(bz_train_phase p); /* "forward" */

typedef struct bz_layers {
    bz_model *model;
    const char *name; /* what reports call it: its path, and behind that the sizes of a sweep */
    bz_layer *layer;  /* of the main graph */
    int n;
    const bz_type *types;      /* [model->n_values] */
    const bool *constant;      /* [model->n_values] */
    const bz_value_id *source; /* [model->n_values]: what an operand of a function is in its caller; else itself */
    const char **warnings;
    int n_warnings;
    int64_t batch;                      /* of the inputs (batch.c), if results have it; 0: there is none */
    const bz_train_phase *phase;        /* [n] of an iteration of training (room training); NULL: the model is none */
    const struct bz_training *training; /* likewise */
    int64_t trained;                    /* elements of the weights that it changes: they are inputs; 0 likewise */
    bz_arena arena;
} bz_layers;

/* Fails with a sentence that names the node, or the dimension that must be bound and the option
 * that binds it. On failure *layers is NULL. */
int bz_layers_infer(bz_model *model, const bz_infer_options *options, bz_layers **layers, bz_error *err);
void bz_layers_free(bz_layers *layers);
/* Whether one of these layers is opaque, or one inside of them. */
bool bz_layers_opaque(const bz_layer *layer, int n);

/* Binds by their texts, "N=8". */
int bz_binds_parse(const char *const *dims, int n, bz_arena *arena, const bz_bind **binds, bz_error *err);
/* "N=1,8,64" and others like it are a sweep: how many points it has, all combinations counted; 0: more than `most`. */
int bz_binds_points(const char *const *dims, int n, int most);
/* The values of one of them, the last bind's first. `name` gets what distinguishes it: ", N=8". */
void bz_binds_choose(const bz_bind *list, int n, int number, bz_arena *arena, bz_bind *point, bz_buf *name);

/* Loads and infers all, and adds them to those that are there; a zeroed one is empty. What was loaded is freed with
 * bz_models_free, also after a failure. */
typedef struct bz_models {
    bz_model **model;
    bz_layers **layers;
    const char **name; /* what reports call it */
    int n;
    bz_arena arena; /* of the names */
} bz_models;

int bz_models_load(const char *const *path, int n, const bz_infer_options *options, bz_models *m, bz_error *err);
void bz_models_free(bz_models *m);

/* "1x3x224x224"; "scalar"; "?" for an unknown rank; "seq(...)". Appends. */
void bz_type_text(const bz_model *model, const bz_type *type, bz_buf *out);

/* Elements of a tensor; -1 when a dimension is a symbol or the rank unknown. */
int64_t bz_type_elements(const bz_type *type);
/* A product's operand as numpy's matmul sees it: `batch` moves dimension 0 behind those of the batch, `last` then swaps the last two. */
bz_type bz_type_turned(bz_arena *arena, const bz_type *t, bool batch, bool last);
int64_t bz_type_bytes(const bz_type *type); /* -1 likewise */
bool bz_type_is_static(const bz_type *type);

/* ---- unique layers ------------------------------------------------------------------------- */

/* Models that use something, by their numbers, ascending; how often each does. */
typedef struct bz_uses {
    int n, *model;  /* [n] */
    int64_t *times; /* [n] */
} bz_uses;

/* Models come one after the other, so the last one is the one to count on. */
void bz_uses_add(bz_uses *u, bz_arena *arena, int model);

typedef struct bz_unique_layer {
    const bz_layer *layer; /* the first one met */
    const bz_model *model;
    int64_t count; /* over all models, bodies included by trips 1 */
    bz_uses uses;  /* numbers of models as given to bz_unique_add */
} bz_unique_layer;

typedef struct bz_unique {
    bz_unique_layer *item; /* in the order first met */
    int n;
    int64_t n_layers; /* all layers added */
    bz_map map;
    bz_arena arena;
} bz_unique;

/* A zeroed bz_unique is an empty one. Adds the layers that `take` accepts (NULL: all), those in
 * bodies too. `layers` must outlive the bz_unique. */
void bz_unique_add(bz_unique *u, const bz_layers *layers, int model, bool (*take)(const bz_layer *));
void bz_unique_free(bz_unique *u);

/* For `take`: whether a layer depends on the model's inputs. */
bool bz_layer_is_not_constant(const bz_layer *layer);

/* A model as a whole. The counts go through bodies; what it costs is that of the main graph. */
typedef struct bz_totals {
    int layers, inside, unique, per_class[4]; /* inside: in bodies of loops and branches */
    int open;    /* have results whose shape nobody knows: it depends on the input's values, or on unknown operators */
    int unknown; /* layers of these */
    int loops_open; /* loops that count once, as nothing tells how often they run */
    int branches;   /* If by their cheaper branch */
    int64_t macs, flops, bytes;
    int64_t params; /* elements of weights, shared ones once */
} bz_totals;

void bz_totals_make(const bz_layers *layers, bool fold, bz_totals *out); /* `fold`: constants are no layers */

/* A step of a language model that keeps keys and values: how many tokens it takes. */
typedef struct bz_token_step {
    int64_t sequences, tokens; /* tokens of each sequence */
    int64_t past;              /* length of the caches before it */
} bz_token_step;

bool bz_layers_step(const bz_layers *layers, bz_token_step *out); /* false where the model is none */

/* ---- graph --------------------------------------------------------------------------------- */

/* Who waits for whom among the layers of the main graph, which are topologically ordered, and its parallel modules. Constants
 * are there before anything runs: nobody waits for them. Lives in layers->arena. */
const bz_dag *bz_dag_build(bz_layers *layers);

/* ---- fusion patterns ----------------------------------------------------------------------- */

typedef struct bz_patterns bz_patterns;

/* Why a layer of the main graph need not run, and no result changes: nothing reads what it makes; a layer before it makes the same of the same;
 * the calls around a transpose read or write in the other order; it gives back a value that is there already, or only such layers read it;
 * its constants are part of those of a layer before or behind it; it puts elsewhere what a trained weight may keep there. */
typedef enum { BZ_RUNS, BZ_UNREAD, BZ_REPEATED, BZ_TURNED, BZ_UNCHANGED, BZ_FOLDED, BZ_ARRANGED } bz_spare;
const char *bz_spare_name(
    bz_spare s); /* "unread", "repeated", "transpose", "unchanged", "folded", "arranged"; NULL of one that runs */

/* One place where a pattern fits. `layer` are all layers inside, topologically; the last one makes
 * the result, everything else is used inside only. */
typedef struct bz_match {
    const char *pattern;
    const int *layer;
    int n;
    bool shared;    /* something that is made inside is read elsewhere, too: it must be written */
    bz_spare spare; /* of bz_spares_find */
    const bz_value_id
        *stands; /* not NULL: layers that need not run lie in between; bz_spares has what their results stand for */
} bz_match;

/* Layers of the main graph that a compiler leaves out. */
typedef struct bz_spares {
    const bz_match *match; /* [n]: one layer each, by layer, with why as the pattern */
    int n;
    const bz_spare *why; /* [layers]: of all, also of views; NULL where the graph is none */
    const bz_value_id *
        stands; /* [values]: the value that the result of such a layer stands for, which may stand for another; else itself */
} bz_spares;

enum { BZ_STANDS = 8 }; /* such layers in a row that a pattern looks past */

extern const char bz_patterns_text[]; /* the table that comes with the program: patterns.txt */

/* Parses a table (see patterns.txt for the language) and adds its patterns to *patterns, which is
 * made when it is NULL. Later tables may use what earlier ones define. `name` is for messages. On
 * failure *patterns is freed and NULL. */
int bz_patterns_parse(const char *text, const char *name, bz_patterns **patterns, bz_error *err);
/* The built-in ones and, behind them, those of the user's file (path may be NULL). */
int bz_patterns_load(const char *path, bz_patterns **patterns, bz_error *err);
void bz_patterns_free(bz_patterns *patterns);

/* All places where any of the patterns fits, by pattern and then by layer; they may overlap. With `past`, also those between whose layers
 * lie some that need not run. Lives in layers->arena. */
int bz_patterns_find(const bz_patterns *patterns, bz_layers *layers, const bz_spares *past, const bz_match **matches);

/* A product takes a stride for each axis, a convolution takes images with the channels last, and what works by element takes any order,
 * so that two transposes around it cancel. Lives in layers->arena. */
void bz_spares_find(bz_layers *layers, bz_spares *out);

/* A group normalization as exporters write it out: a view brings each group of channels together as one, which is normalized by `norm`; another
 * view brings them back, and the real channels are scaled and shifted. Whether norm's own scale is 1 and its own shift 0 is the caller's to ask. */
typedef struct bz_groupnorm {
    const bz_layer *norm;
    bz_value_id x, scale, shift;
    int64_t groups;
} bz_groupnorm;
bool bz_groupnorm_find(const bz_layers *layers, const int *layer, int n, bz_groupnorm *out);

/* ---- products of several operands ----------------------------------------------------------- */

enum { BZ_EINSUM_TERMS = 8 };

/* A letter of an equation as a bit; '.' stands for all dimensions of "...", digits may stand for each of them. 0: it is none. */
uint64_t bz_einsum_letter(char letter);

typedef struct bz_einsum_pair {
    uint64_t a, b, y; /* letters of two operands and of their product */
} bz_einsum_pair;

/* The products of two that make a product of n <= BZ_EINSUM_TERMS with the fewest MACs, which are returned: n - 1 pairs, in an order in which
 * they can run. A product sums over the letters that neither a later one nor the result has. `size` has one for each bit. */
int64_t bz_einsum_pairs(const uint64_t *term, int n, uint64_t result, const int64_t *size, bz_einsum_pair *pair);

/* ---- picture ------------------------------------------------------------------------------- */

/* What to draw besides: a path in red, first layer to last, and a line of text per layer (or NULL). */
typedef struct bz_dot_marks {
    const int *path;
    int n;
    const char *const *note; /* [layers->n], or NULL */
} bz_dot_marks;

/* The main graph in the DOT language, parallel modules as clusters. `marks` may be NULL. */
void bz_dot_layers(const bz_layers *layers, const bz_dag *dag, const bz_dot_marks *marks, bz_buf *out);

/* A stretch of layers that is drawn as one node, for graphs too big for one picture. */
typedef struct bz_dot_piece {
    int begin, end;          /* layers begin .. end - 1; one layer is drawn as itself */
    const char *label, *url; /* of several: what it says, and where its link leads (NULL: nowhere) */
} bz_dot_piece;

/* The pieces, which lie in order and without gaps, in one graph; `id` (letters and digits) begins the
 * ids of its elements in SVG. `place` is room for [layers->n] numbers. */
void bz_dot_pieces(const bz_layers *layers, const bz_dag *dag, const bz_dot_marks *marks, const bz_dot_piece *piece,
                   int n, const char *id, int *place, bz_buf *out);

#endif
