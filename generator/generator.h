/* generator: layers -> problems -> C sources.
 *
 *   bz_lower            what one layer costs, as alternatives made of problems
 *   bz_lower_group      what a group of layers costs that a fusion pattern found
 *   bz_plan_*           the same for whole models: unique layers, unique problems
 *   bz_plan_skip        leaves out what a database has
 *   bz_generate         writes a folder of benchmarks
 *   bz_prices_*         what the database says that a lowered layer costs
 *
 * One lowering serves all: what is benchmarked is what later prices the layer.
 *
 * A layer has *alternatives*: a convolution with a bias is one call, or a convolution and an
 * addition. An alternative is a list of problems that run one after the other; it costs what they
 * cost together, and the layer costs what its cheapest alternative does. An alternative is priced
 * by *measured* problems, or, where no library call computes the layer, *modelled*: a copy of as
 * many bytes stands in. What can be neither stays unpriced and says why. It is never zero.
 *
 * Nothing here knows a library: which variants there are is found out when the benchmarks run. */
#ifndef BZ_GENERATOR_H
#define BZ_GENERATOR_H

#include "modelproc/modelproc.h"
#include "perfdb/perfdb.h"
#include "runtime/backends.h"
#include "runtime/problem.h"

/* ---- lowering ------------------------------------------------------------------------------- */

/* What becomes of a layer of a group: a call of its own, or how the call before it takes it along. */
typedef enum {
    BZ_TAKEN_CALL,
    BZ_TAKEN_VIEW,
    BZ_TAKEN_POST,      /* a post-operation of the call; its other operand is the layer's `other` */
    BZ_TAKEN_BATCHNORM, /* into weights and bias */
    BZ_TAKEN_BIAS,
    BZ_TAKEN_WEIGHTS,
    BZ_TAKEN_WRITTEN, /* part of a function or normalization of `x` that is written out, a call of its own */
    BZ_TAKEN_SEVERAL, /* the same in several calls */
    BZ_TAKEN_VECTOR,  /* a bias that is not constant */
} bz_taking;

typedef struct bz_taken {
    bz_taking how;
    int call, calls;             /* of the alternative; calls: of a layer's own */
    int other;                   /* operand of the layer; -1: none */
    bz_value_id x, scale, shift; /* written */
    float epsilon;
} bz_taken;

typedef struct bz_alternative {
    bool modelled; /* a copy stands in for the layer */
    bool fallback; /* counts only where no other alternative can run */
    int n;
    const bz_problem *problem; /* [n], normalized */
    const char *const *text;   /* [n], canonical */
    const int *number;         /* [n], of the plan's problems; NULL: no plan lowered it */
    const bz_taken *
        taken; /* of a group: by layer of the place where it was met first; NULL where nobody can bind its calls to them */
} bz_alternative;

/* Exactly one of the three holds: alternatives; free (views, constants, empty tensors: nothing runs); or
 * neither, and `why` is a sentence. Beside alternatives `why` may say what else is not offered, as where a copy
 * stands in. Layers with bodies are free themselves: lower the bodies. */
typedef struct bz_lowering {
    bz_alternative *alternative;
    int n;
    bool free;
    const char *why;
} bz_lowering;

/* `dtype` replaces the type of floating-point layers; BZ_UNDEFINED leaves it as the model has it.
 * BZ_U8 and BZ_I8 stand for quantized products (inputs and results of that, i8 weights), BZ_F8E4M3 and BZ_F4E2M1 for products of 8-bit and 4-bit
 * floats between layers in f16. The result lives in the arena. */
void bz_lower(const bz_layer *layer, bz_dtype dtype, bz_arena *arena, bz_lowering *out);

/* What the layers of a model's main graph are lowered to, each once, when it is first asked for. Lives in the arena. */
typedef struct bz_lowered bz_lowered;
bz_lowered *bz_lowered_new(const bz_layers *layers, bz_dtype dtype, bz_arena *arena);

/* The same for the layers of a match: how few calls they can be. Steps after a call are taken along by it
 * where it can (functions, residuals), or go into its weights and bias before anything runs (constants by
 * channel, batch normalization); functions that are written out in many layers are found out by their
 * values. What no call takes along is a call of its own. No alternatives, and `why`, where all that does
 * not save a single call. Parameters of functions are those of the layers, exactly. */
void bz_lower_group(bz_lowered *lowered, const bz_match *match, bz_arena *arena, bz_lowering *out);

/* How the operands and the result of an einsum lie in its call: the axis of the layer's tensor that comes first, second, … there. Batch, rows and
 * columns of a product; what stays of a reduction, where the second operand is none. False for three operands and more. */
typedef struct bz_einsum_order {
    int axis[3][BZ_PROBLEM_RANK]; /* of operand 0, of operand 1, of the result */
} bz_einsum_order;
bool bz_lower_einsum_order(const bz_layer *layer, bz_einsum_order *out);

/* A constant's only element; false where it has several or is not to be had. `before` is a layer that stands
 * behind the one that computes it. */
bool bz_lower_scalar(const bz_layers *layers, bz_value_id v, int before, double *out);

/* ---- plans ---------------------------------------------------------------------------------- */

enum { BZ_PLAN_NAMES = 8 };

/* What to lower to, and how to run it. Lists are subsets of what would be taken without them. */
typedef struct bz_plan_options {
    bz_dtype dtype; /* BZ_I8: BZ_U8 for processors, which multiply that by i8; GPUs multiply i8 by i8 */
    const char *backend[BZ_PLAN_NAMES], *layout[BZ_PLAN_NAMES]; /* none: all; of backends those on the processor */
    const char *math[BZ_PLAN_NAMES];                            /* for f32, besides "default" */
    int n_backends, n_layouts, n_maths;
    const bz_patterns *patterns; /* the groups of layers that they find are planned too; NULL: none */
} bz_plan_options;

/* By the names that people give: of a data type ("s8" too; NULL: the model's own); of backends, layouts or math modes, which come behind those that
 * are there. */
typedef enum { BZ_PLAN_BACKENDS, BZ_PLAN_LAYOUTS, BZ_PLAN_MATHS } bz_plan_list;
int bz_plan_dtype(const char *name, bz_dtype *out, bz_error *err);
int bz_plan_option(bz_plan_options *o, bz_plan_list which, const char *const *given, int n_given, bz_error *err);
const char *
bz_plan_device(const bz_plan_options *o); /* the backend with a device of its own; NULL: all on the processor */

/* Backend, layout and math mode. `wanted` is false where the database has it. */
typedef struct bz_plan_family {
    const char *backend, *layout, *math;
    bool wanted;
} bz_plan_family;

enum { BZ_PLAN_FAMILIES = 24 };

typedef struct bz_plan_problem {
    const bz_problem *problem;
    const char *text;
    bz_plan_family family[BZ_PLAN_FAMILIES];
    int n_families;
    int layer; /* of the plan: the first that needs it, whose file holds it */
} bz_plan_problem;

/* A unique layer, a unique group of layers, or a problem that was given by its text. */
typedef struct bz_plan_layer {
    const bz_layer *layer; /* the first one met; of a group the one that makes its result; NULL: bz_plan_add_text */
    const char *pattern;   /* that found the group; NULL for a layer */
    const char *key;       /* the layer's; of a group the keys of its layers; else the problem's text */
    bz_lowering lowering;
    char file[64]; /* "conv_1f2e3d4c5b6a7988": kind and hash, safe as file and C name */
    int64_t count; /* in all models, bodies too */
    bz_uses uses;
    const char *first_name; /* of the first layer, as the model has it: not escaped */
    const int *problem;     /* [n_problems]: into the plan's problems, each once */
    int n_problems;
} bz_plan_layer;

/* Where a group is in a model: numbers of layers of its main graph, ascending. The last one makes the
 * result and everything else is used inside only, so that any choice of groups that share no layer leaves
 * a graph without cycles. */
typedef struct bz_plan_place {
    const int *layer;
    int n;
    int group;      /* of the plan's layers; -1: it is one layer that need not run, */
    bz_spare spare; /* and why */
    bool shared;    /* as bz_match has it */
    bool past;      /* layers that need not run lie in between */
} bz_plan_place;

typedef struct bz_plan bz_plan;

/* A plan keeps pointers into the layers added: they must outlive it; the patterns need not outlive the
 * last bz_plan_add. Groups are looked for in main graphs only, not in bodies. */
bz_plan *bz_plan_new(const bz_plan_options *options);
void bz_plan_add(bz_plan *plan, bz_layers *layers, const char *name); /* `name` of the model; copied */
bz_plan *bz_plan_of(const bz_plan_options *o, bz_layers *const *layers, const char *const *path, int n); /* of all */
/* The same for layers that are one problem each: *problem[i], normalized, is what layer i of them is. */
void bz_plan_add_problems(bz_plan *plan, const bz_layers *layers, const bz_problem *const *problem, const char *name);
/* A benchmark that belongs to no layer, as a copy or a product of some size: a problem by its text. -1 where it cannot be
 * read, or no backend takes it. */
int bz_plan_add_text(bz_plan *plan, const char *text, bz_error *err);
void bz_plan_free(bz_plan *plan);
bz_plan *bz_plan_keep(bz_plan *plan, bz_arena *arena); /* frees it with the arena */

/* Whether there is a backend for each call of the alternative, on what the plan is for. */
bool bz_plan_offers(const bz_plan *plan, const bz_alternative *a);

int bz_plan_layers(const bz_plan *plan, const bz_plan_layer **layer); /* and groups */
int bz_plan_problems(const bz_plan *plan, const bz_plan_problem **problem);
/* Whether its options let this backend compute the problem in this layout (NULL: in any). Bytes have no layout. */
bool bz_plan_allows(const bz_plan *plan, const bz_problem *p, const char *backend, const char *layout);
/* And of records, by their mode of f32, too. */
bool bz_plan_options_take(const bz_plan_options *o, const bz_record *r);
const bz_plan_options *bz_plan_asked(const bz_plan *plan); /* its options */
int bz_plan_measurable(const bz_plan *plan); /* problems with a family: some are computed by none of the backends */
int bz_plan_models(const bz_plan *plan, const char *const **name);
const bz_plan_problem *bz_plan_find_problem(const bz_plan *plan, const char *text); /* NULL: it has none such */
int bz_plan_places(const bz_plan *plan, int model, const bz_plan_place **place);    /* refused groups too */
bz_lowered *bz_plan_lowered(const bz_plan *plan, int model); /* NULL where the plan has no patterns */

/* The planned layer that a layer of an added model became; NULL for views and constants. */
const bz_plan_layer *bz_plan_find(const bz_plan *plan, const bz_layer *layer);

/* Marks the families that the database has whole for this system and setting, failed ones included, as
 * not wanted. Returns 0, or -1 with *err filled. */
int bz_plan_skip(bz_plan *plan, bz_perfdb *db, const bz_system *system, const bz_setting *setting,
                 const bz_remeasure *again, bz_error *err);

/* From now on is wanted what `wanted` says: of a problem and a family of it, by their numbers in the plan. */
void bz_plan_choose(bz_plan *plan, bool (*wanted)(void *user, int problem, int family), void *user);

/* How many problems there are with a family that is wanted; *families (may be NULL) counts those. */
int bz_plan_wanted(const bz_plan *plan, int *families);

/* ---- sources -------------------------------------------------------------------------------- */

/* Writes what is wanted into `folder`, which is made if need be: a C file per layer and group,
 * benchmarks.c,
 * CMakeLists.txt, manifest.json. What an earlier generation wrote is removed first: the folder's file .benanza lists it with
 * hashes. The same plan gives the same bytes. Fails where the folder holds other things without that list, or where a file on
 * it was changed since. */
int bz_generate(const bz_plan *plan, const char *folder, bz_error *err);

/* What other generated folders are made with: a folder that is new, empty or an earlier generation's; a file in it; its
 * weights, open to be written; text of a stranger's inside a comment. */
#define BZ_GENERATED_WEIGHTS "weights.bin"
int bz_generate_weights(const char *folder, bz_error *err); /* a descriptor, or -1 */
int bz_generate_folder(const char *folder, bz_error *err);
int bz_generate_file(const char *folder, const char *name, const bz_buf *text, bz_error *err);
void bz_generate_comment(bz_buf *out, const char *s);

/* One file's text, appended. Text from models cannot end the comment it stands in. */
void bz_generate_source(const bz_plan *plan, const bz_plan_layer *layer, bz_buf *out);

/* ---- prices --------------------------------------------------------------------------------- */

/* A problem's cheapest variant that ran well, of all backends; `record` NULL where there is none. */
typedef struct bz_problem_price {
    const bz_record *record; /* of an implementation by the definition only where nothing else ran well */
    const bz_record *second; /* the next best variant that ran well, or NULL */
    int n_records;           /* that the database has in this setting, failed ones included */
    const char *complaint;   /* of the first that failed, where none ran well */
    bool predicted;          /* `record` is no record: nobody has measured it, somebody predicted it */
} bz_problem_price;

typedef struct bz_layer_price {
    double seconds;                    /* NAN where unpriced */
    double low, high;                  /* where `seconds` lies by its records' intervals; of one without: 2.5 % off */
    double launch;                     /* cost of starting its calls, not part of `seconds` */
    const bz_alternative *alternative; /* the cheapest; NULL where unpriced or free */
    bz_record_provenance provenance;
    bool noisy;     /* a record in it is marked: noisy, throttled or busy */
    bool reference; /* a record in it is of an implementation by the definition: nothing else can run */
    bool
        predicted; /* a time in it was predicted; one of records alone counts instead wherever there is one, however dear */
    const char *why; /* where unpriced */
    int missing;     /* problems without any record, over all alternatives */
    bool
        refused; /* unpriced, and nothing to measure: no backend has such calls, or all said that they do not support them */
} bz_layer_price;

/* Prices are looked up once per problem of the plan. Lives in the arena. */
typedef struct bz_prices bz_prices;
int bz_prices_load(const bz_plan *plan, bz_perfdb *db, const bz_system *system, const bz_setting *setting,
                   bz_arena *arena, bz_prices **out, bz_error *err);

/* What counts of the same records: of problems whose data have space only those in this layout (NULL: all), those that
 * were given up as hopeless among them; and for f32 those in this math mode too (NULL: as the plan has it). One
 * look-up serves all views: out[n]. */
typedef struct bz_prices_view {
    const char *layout, *math;
} bz_prices_view;
int bz_prices_load_views(const bz_plan *plan, bz_perfdb *db, const bz_system *system, const bz_setting *setting,
                         const bz_prices_view *view, int n, bz_arena *arena, bz_prices **out, bz_error *err);
/* Asks for the times of problems that have none: `predict` fills *out, whose strings live as long as the prices, or returns false. */
void bz_prices_predict(bz_prices *prices, bool (*predict)(void *user, int problem, bz_record *out), void *user,
                       bz_arena *arena);
const bz_problem_price *bz_prices_problem(const bz_prices *prices, int problem);
/* Of a call of an alternative, which may have been lowered again: its problems are of the plan. */
const bz_problem_price *bz_prices_call(const bz_prices *prices, const bz_alternative *a, int i);
/* All records of a problem; false where it is none of the plan: then ask the database. */
bool bz_prices_records(const bz_prices *prices, const char *text, const bz_record **records, size_t *n);
/* The price of a layer or a group. */
void bz_prices_layer(const bz_prices *prices, const bz_plan_layer *layer, bz_layer_price *out);

#endif
