/* From layers to steps. Private to replay/. */
#ifndef BZ_REPLAY_BIND_H
#define BZ_REPLAY_BIND_H

#include "replay/replay.h"
#include "training/training.h"

typedef struct binder {
    bz_replay_plan *plan;
    const bz_layers *layers;
    bz_dtype dtype; /* of floating-point values; BZ_UNDEFINED: as the model has them */
    bz_arena *arena;
    int *number; /* of the model's values: among the plan's; -1: not met yet */
    const bz_layer **producer;
    const bz_layer *l; /* that is being bound */
    bz_error
        err; /* why it cannot be, a code other than 0: from then on nothing is bound, and all that is asked for is -1 */
    bool once;   /* steps that are added are of constants */
    bool unmade; /* why binding failed: an operand is the result of a layer that nothing computes */
    bool sized;  /* how large the result is depends on data */
    int unit;    /* whose steps are added */
    const char *name;
} binder;

int bind_no(binder *b, const char *why); /* -1: the layer cannot be bound, unless that was known already */
int bind_done(const binder *b);          /* -1 where it cannot be */

/* Numbers of the plan's values. The model's: constants are made where they are first wanted. */
int bind_value(binder *b, bz_value_id v);
int bind_in(binder *b, int k);     /* of the layer's operand k */
int bind_result(binder *b, int k); /* of the layer's output k */
int bind_named(binder *b, const char *name, bz_dtype dtype, int rank, const int64_t *dims);
int bind_new(binder *b, bz_dtype dtype, int rank, const int64_t *dims);
int bind_operand(binder *b, const bz_operand *o);    /* one of a call's, of its own */
int bind_like(binder *b, int value, bz_dtype dtype); /* of this value's shape */
const bz_replay_value *bind_at(const binder *b,
                               int value); /* what has this number; of -1 a scalar that is not to be used */

/* What a failed attempt added goes away again. */
typedef struct bind_mark {
    int n_steps, n_values;
} bind_mark;
void bind_take_back(binder *b, bind_mark at);
int bind_add_inputs(binder *b, double rate);
int bind_add_outputs(binder *b, bool gradients);
/* Nobody has made it, though a layer is there to do so while the model runs. */
bool bind_waits(const binder *b, bz_value_id v);

bz_replay_step *bind_step(binder *b, bz_step_kind kind, const int *in, int n_in, int out);
/* A loop over these values of the plan's as a step; refused where it would leave one of them. */
int bind_loop(binder *b, const bz_replay_loop *loop, const int *in, int n_in, int out);
/* A loop over the layer's operands that these numbers name, into its output k. */
int bind_emit(binder *b, const int *operand, int n, int k, const bz_replay_loop *loop);

void bind_row_major(const bz_type *t, int64_t *stride);
int bind_over(const bz_type *t, bz_replay_loop *loop); /* a loop over the tensor's shape; -1: too many dimensions */

/* A way to bind layers of a kind: rows of the table of loops. */
typedef int bind_function(binder *b, const bz_layer *l);

/* loops.c: by loops of the runtime's and views. Fails where there is none for the layer. */
bind_function bind_loops, bind_constant;
bool bind_has_loop(const bz_layer *l); /* of its kind: whether it computes this layer, bind_loops tells */
bind_function bind_cast, bind_unary;   /* cast: the first operand as the result */

/* loops_training.c: an operand of a narrow type made f32: the new value's number. */
int bind_widened(binder *b, int operand);
int bind_sum(binder *b, int of, int64_t n); /* of n elements in f32: a new value, by a call */
bind_function bind_slice_grad, bind_resize_grad, bind_scale, bind_finite, bind_trilu;

/* loops_index.c: where indices say, and along an axis; the extent that operand k of a layer indexes, 0 where it is no index; a call that samples
 * where a grid says. */
bind_function bind_gather, bind_gathernd, bind_gatherelements, bind_scatternd, bind_scatterelements, bind_unpool,
    bind_onehot, bind_argmax, bind_lanes, bind_topk, bind_reversal, bind_tile;
int64_t bind_indexed_extent(const bz_layer *l, int k);
int bind_grid(binder *b, const bz_layer *l, const bz_problem *p);

/* loops_resize.c: padding by what the operand has, its begins and then its ends; whether a library's call resizes by the layer's rule. */
bind_function bind_resize, bind_resize_as_libraries;
int bind_pad_by_rule(binder *b, const bz_layer *l, const int64_t *pad);

/* loops_functions.c: functions with parameters, and layers that are several functions. What is sized by data fails, and says why. */
bind_function bind_clip, bind_parametric, bind_complement, bind_reduction, bind_likelihood, bind_eye,
    bind_sized_by_data;

/* calls.c: by the calls of an alternative. Fails where it cannot be told what the operands are; what was added to the
 * plan then is to be taken back by the caller. */
int bind_call_layer(binder *b, const bz_layer *l, const bz_alternative *a);
int bind_call_group(binder *b, const bz_plan_place *place, const bz_alternative *a);

/* A call as a step, between steps that change types where its operands and results need that. Results but the last are `more`. */
bz_replay_step *bind_call(binder *b, const bz_problem *p, const int *in, int n_in, const int *more, int n_more,
                          int out);

float bind_real(const bz_layer *l, const char *name, float otherwise); /* an attribute */

int bind_numbers(binder *b, bz_dtype dtype, int rank, const int64_t *dims,
                 const double *number); /* a stored constant */

/* equation.c: an einsum by one call. */
int bind_einsum(binder *b, const bz_layer *l, const bz_problem *p);

/* recurrent.c: recurrent layers, forward in training form and backward. */
int bind_recurrent_training(binder *b, const bz_layer *l, const bz_problem *p);

/* training.c: calls that only training has; values that stay from one iteration to the next. */
bool bind_is_training(const bz_problem *p);
int bind_training(binder *b, const bz_layer *l, const bz_alternative *a);
bool bind_kept(const bz_training *t, bz_value_id v);
void bind_first(const binder *b, bz_value_id v, double rate, bz_replay_value *value, bz_replay_source *source);
int bind_next(binder *b);
void bind_seed(const binder *b, bz_value_id id, bz_replay_value *v); /* of a model without weights */

bool bind_is_wanted(const binder *b, bz_value_id v); /* by a layer, or as an output */

/* choose.c: seconds of a call without a record, good for comparing ways alone; a variant for each call; the variant taken, into the steps. */
double replay_guess(const bz_problem *p);
bool replay_runs_here(const bz_problem *p); /* whether any backend of the processor is asked for its kind */
int replay_choose(bz_replay_plan *p, const bz_replay_input *in, bz_error *err);
void replay_take(bz_replay_plan *p);

#endif
