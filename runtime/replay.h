/* replay: a whole model, one call after the other. What a generated replay program links to.
 *
 * The program is tables, and a function with a line for each step:
 *
 *     static const bz_replay_value values[] = {
 *         {.name = "input", .dtype = BZ_F32, .rank = 4, .dim = {1, 3, 224, 224}, .source = BZ_VALUE_INPUT},
 *         …
 *     };
 *     static const bz_replay_step steps[] = {
 *         {.name = "conv1", .kind = BZ_STEP_CALL, .problem = &problem_0, .backend = "onednn",
 *          .algorithm = "brgconv:avx512_core", .layout = "any", .math = "default", .in = (const int[]){0, 1}, .n_in = 2,
 *          .out = 2},
 *         …
 *     };
 *     static int forward(bz_replay *r)
 *     {
 *         return bz_replay_step_run(r, 0) || // conv1
 *                …;
 *     }
 *
 * A step is a library call (a variant of a problem, as in a record), a view (another shape of the same bytes), or
 * one of the loops in loops/walk.c, which are our own. Libraries say when they are made
 * ready how they want their operands to lie. Where a tensor lies in another way it is converted, once for all who
 * want it so; each conversion is timed by itself. Constants are brought into their layout ahead of time. All that lives
 * between two steps shares one piece of memory, by liveness.
 *
 * Calls run where their backends do: on the processor, or on a device, and then in one stream or in several. There,
 * steps are queued up; one waits for another of another stream only where it reads what that made. Our loops stay the
 * processor's: in the stream's order their operands are copied to the host and the result back. The whole can be
 * captured as a graph, and launched as one.
 *
 * An iteration of training changes its weights: those are kept values, and the last thing that a run does is to bring the
 * new ones where the old ones lay, unless a call has made them there. So the next run goes on from there. */
#ifndef BZ_REPLAY_H
#define BZ_REPLAY_H

#include "runtime/problem.h"

/* ---- what generated files say --------------------------------------------------------------- */

typedef enum {
    BZ_VALUE_COMPUTED,
    BZ_VALUE_INPUT,  /* seeded, or from a file */
    BZ_VALUE_STORED, /* weights as the model has them */
    BZ_VALUE_SEEDED, /* weights that the model file left out */
    BZ_VALUE_KEPT,   /* of training: begins as stored (at >= 0) or seeded, and stays from one run to the next */
} bz_value_source;

typedef struct bz_replay_value {
    const char *name;
    bz_dtype dtype; /* in which it is computed */
    int rank;
    bz_extent dim; /* a scalar's is {1} */
    bz_value_source source;
    bz_dtype given; /* in which an input or stored weights come, and an output goes */
    int64_t at;     /* stored: byte of the weights file; kept: -1 where it is seeded */
    int next;       /* kept: 1 + the value that it is in the next run; 0: it never changes */
    float scale;    /* seeded: normal numbers times this; 0: all `offset` */
    float offset;   /* added to it */
    bool positive;  /* their magnitude */
    int64_t below;  /* integers: uniform below this; 0: all 1 */
    int output;     /* 1 + its number among the model's outputs; 0: it is none */
} bz_replay_value;

/* The value behind `last` (-1: the first) in the order in which the model has its inputs, or its outputs; -1: there is none. */
static inline int bz_replay_next_end(const bz_replay_value *value, int n, bool inputs, int last)
{
    int next = -1, done = inputs || last < 0 ? 0 : value[last].output;
    for (int i = inputs ? last + 1 : 0; i < n; i++) {
        if (inputs && value[i].source == BZ_VALUE_INPUT)
            return i;
        if (!inputs && value[i].output > done && (next < 0 || value[i].output < value[next].output))
            next = i;
    }
    return next;
}

/* What constant weights and biases take along before anything runs, in the order given. */
typedef enum {
    BZ_FOLD_BATCHNORM, /* value: scale, shift, mean, variance; epsilon */
    BZ_FOLD_ADD,       /* to the bias: factor · value */
    BZ_FOLD_MUL,       /* of weights and bias by value, by channel */
    BZ_FOLD_DIV,
    BZ_FOLD_WEIGHTS, /* weights · factor */
    BZ_FOLD_BIAS,    /* bias · factor */
} bz_fold_kind;

typedef struct bz_replay_fold {
    bz_fold_kind kind;
    int value[4];
    float factor; /* batchnorm: epsilon */
} bz_replay_fold;

typedef enum { BZ_STEP_CALL, BZ_STEP_VIEW, BZ_STEP_LOOP } bz_step_kind;

enum { BZ_REPLAY_STREAMS = 8 };

typedef enum {
    BZ_LOOP_COPY,   /* result[to + Σ i·stride[1]] = x[from + Σ i·stride[0]] */
    BZ_LOOP_FILL,   /* the whole result = value; or, where there is an operand, its first element */
    BZ_LOOP_GATHER, /* result[i] = x[Σ i·stride[0] + place]: where indices say, see below */
    BZ_LOOP_SELECT, /* result[i] = c ? a : b, each by its strides */
    BZ_LOOP_UNARY,  /* result = function(x) */
    BZ_LOOP_BINARY, /* result[i] = function(a, b), each by its strides */
    BZ_LOOP_SCATTER, /* result[Σ i·stride[2] + place] = updates[to + Σ i·stride[1]], or a function of that and what is there */
    BZ_LOOP_LANES, /* result[o, ·, n] = function(x[o, ·, n]), along an axis; dim: outer, extent of the axis, inner, its extent in the result */
} bz_loop_kind;

typedef struct bz_replay_loop {
    bz_loop_kind kind;
    bz_fn fn; /* the function, where it is a problem's; else it is looked up by its name */
    const char *function;
    float alpha, beta;
    double value;
    int rank;
    /* place = Σ step[j] · k[j], where the tuple k has so many numbers, which lie one behind the other in the indices, from Σ i·stride[1] on (of a scatter:
     * stride[0]); below 0 a number counts from the end of extent[j]. A tuple that leaves its extents leaves zeros, or scatters nothing: it would be an
     * error of the model's. */
    int length;
    int64_t dim[BZ_PROBLEM_RANK], stride[3][BZ_PROBLEM_RANK], from, to; /* in elements */
    int64_t extent[BZ_PROBLEM_RANK], step[BZ_PROBLEM_RANK];
} bz_replay_loop;

typedef struct bz_replay_step {
    const char *name; /* of the layers */
    int layer;        /* of the plan */
    bz_step_kind kind;
    bool once;     /* of constants: before anything runs */
    const int *in; /* [n_in]: a call's in the order of its operands, -1 where it is left out: 0, of a scale 1 */
    int n_in, out;
    const int *more; /* [n_more]: further results of a call, in the order of its operands; `out` is the last one */
    int n_more;
    int stream; /* of the device that it is queued up in */
    const bz_problem *problem;
    const char *backend, *algorithm, *layout, *math; /* algorithm "": the library's own choice */
    float epsilon;
    const bz_replay_fold *fold;
    int n_folds;
    const bz_replay_loop *loop;
} bz_replay_step;

typedef struct bz_replay bz_replay;

typedef struct bz_replay_model {
    const char *name;
    const char *weights; /* file beside the sources */
    const bz_replay_value *value;
    int n_values;
    const bz_replay_step *step;
    int n_steps;
    int (*forward)(bz_replay *r);
    int loss; /* 1 + the value that --steps prints after each run; 0: it is no training */
} bz_replay_model;

/* What brings the step's operands into the formats that it wants, then the step. -1 where a library refuses. */
int bz_replay_step_run(bz_replay *r, int step);

/* What every generated replay does: --help tells. Returns an exit status (bz_code). */
int bz_replay_main(int argc, char **argv, const bz_replay_model *model);
/* Many models: the first argument is the number of one, or a range such as 3-40, whose models run in turns. It ends after BZ_REPLAY_PATIENCE
 * seconds without a turn. */
enum { BZ_REPLAY_PATIENCE = 600 };
int bz_replay_main_of(int argc, char **argv, const bz_replay_model *const *models, int n);

#endif
