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
    bool once;   /* steps that are added are of constants */
    bool unmade; /* why binding failed: an operand is the result of a layer that nothing computes */
    bool sized;  /* how large the result is depends on data */
    int unit;    /* whose steps are added */
    const char *name;
} binder;

/* The plan's number of a model's value; constants are made where they are first wanted. -1 with a sentence. */
int bind_value(binder *b, bz_value_id v, bz_error *err);
int bind_new_value(binder *b, const char *name, bz_dtype dtype, int rank, const int64_t *dims); /* -1: too many dims */
int bind_result(binder *b, const bz_layer *l, int k, bz_error *err); /* of the layer's output k */
bz_replay_step *bind_step(binder *b, bz_step_kind kind, const int *in, int n_in, int out);
/* A loop over these values of the plan's as a step; refused where it would leave one of them. */
int bind_loop(binder *b, const bz_layer *l, const bz_replay_loop *loop, const int *in, int n_in, int out,
              bz_error *err);
int bind_no(const bz_layer *l, bz_error *err, const char *why);

/* loops.c: by loops of the runtime's and views. Fails where there is none for the layer. */
int bind_loops(binder *b, const bz_layer *l, bz_error *err);
bool bind_has_loop(const bz_layer *l); /* of its kind: whether it computes this layer, bind_loops tells */
int bind_constant(binder *b, const bz_layer *l, bz_value_id v, bz_error *err);

/* A loop over the layer's operands that these numbers name, into its output k. */
int bind_emit(binder *b, const bz_layer *l, const int *operand, int n, int k, const bz_replay_loop *loop,
              bz_error *err);
int bind_cast(binder *b, const bz_layer *l, bz_error *err); /* the first operand as the result */
int bind_unary(binder *b, const bz_layer *l, bz_error *err);

void bind_row_major(const bz_type *t, int64_t *stride);
int bind_over(const bz_type *t, bz_replay_loop *loop); /* a loop over the tensor's shape; -1: too many dimensions */

int bind_grid(binder *b, const bz_layer *l, const bz_problem *p,
              bz_error *err); /* loops_index.c: a call that samples where a grid says */

/* loops_training.c: an operand of a narrow type made f32: the new value's number, or -1 with a sentence; rows of the table of loops. */
int bind_widened(binder *b, const bz_layer *l, int operand, bz_error *err);
int bind_slice_grad(binder *b, const bz_layer *l, bz_error *err);
int bind_resize_grad(binder *b, const bz_layer *l, bz_error *err);
int bind_scale(binder *b, const bz_layer *l, bz_error *err);
int bind_finite(binder *b, const bz_layer *l, bz_error *err);
int bind_sum(binder *b, const bz_layer *l, int of, int64_t n,
             bz_error *err); /* of n elements in f32: a new value, by a call */
int bind_trilu(binder *b, const bz_layer *l, bz_error *err);

/* loops_index.c: the extent that operand k of a layer indexes, 0 where it is no index; where indices say, and along an axis: rows of the table of loops. */
int64_t bind_indexed_extent(const bz_layer *l, int k);
int bind_gather(binder *b, const bz_layer *l, bz_error *err);
int bind_gathernd(binder *b, const bz_layer *l, bz_error *err);
int bind_gatherelements(binder *b, const bz_layer *l, bz_error *err);
int bind_scatternd(binder *b, const bz_layer *l, bz_error *err);
int bind_scatterelements(binder *b, const bz_layer *l, bz_error *err);
int bind_unpool(binder *b, const bz_layer *l, bz_error *err);
int bind_onehot(binder *b, const bz_layer *l, bz_error *err);
int bind_argmax(binder *b, const bz_layer *l, bz_error *err);
int bind_lanes(binder *b, const bz_layer *l, bz_error *err);
int bind_topk(binder *b, const bz_layer *l, bz_error *err);
int bind_reversal(binder *b, const bz_layer *l, bz_error *err);
int bind_tile(binder *b, const bz_layer *l, bz_error *err);

/* loops_resize.c: rows of the table of loops; padding by what the operand has, its begins and then its ends; whether a library's call resizes by the
 * layer's rule: -1 with a sentence where it does not. */
int bind_resize(binder *b, const bz_layer *l, bz_error *err);
int bind_pad_by_rule(binder *b, const bz_layer *l, const int64_t *pad, bz_error *err);
int bind_resize_as_libraries(binder *b, const bz_layer *l, bz_error *err);

/* loops_functions.c: functions with parameters, and layers that are several functions; rows of the table of loops. */
int bind_clip(binder *b, const bz_layer *l, bz_error *err);
int bind_parametric(binder *b, const bz_layer *l, bz_error *err);
int bind_complement(binder *b, const bz_layer *l, bz_error *err);
int bind_reduction(binder *b, const bz_layer *l, bz_error *err);
int bind_likelihood(binder *b, const bz_layer *l, bz_error *err);
int bind_eye(binder *b, const bz_layer *l, bz_error *err);
int bind_sized_by_data(binder *b, const bz_layer *l, bz_error *err); /* fails, and says why */

/* calls.c: by the calls of an alternative. Fails where it cannot be told what the operands are; what was added to the
 * plan then is to be taken back by the caller. */
int bind_call_layer(binder *b, const bz_layer *l, const bz_alternative *a, bz_error *err);
int bind_call_group(binder *b, const bz_plan_place *place, const bz_alternative *a, bz_error *err);

/* A call as a step, between steps that change types where its operands and results need that. Results but the last are `more`. */
bz_replay_step *bind_call(binder *b, const bz_problem *p, const int *in, int n_in, const int *more, int n_more,
                          int out);

float bind_real(const bz_layer *l, const char *name, float otherwise); /* an attribute */

int bind_numbers(binder *b, bz_dtype dtype, int rank, const int64_t *dims,
                 const double *number); /* a stored constant; -1: too many dims */

/* equation.c: an einsum by one call. */
int bind_einsum(binder *b, const bz_layer *l, const bz_problem *p, bz_error *err);

/* recurrent.c: recurrent layers, forward in training form and backward. */
int bind_recurrent_training(binder *b, const bz_layer *l, const bz_problem *p, bz_error *err);

/* training.c: calls that only training has; values that stay from one iteration to the next. */
bool bind_is_training(const bz_problem *p);
int bind_training(binder *b, const bz_layer *l, const bz_alternative *a, bz_error *err);
bool bind_kept(const bz_training *t, bz_value_id v);
void bind_first(const binder *b, bz_value_id v, double rate, bz_replay_value *value, bz_replay_source *source);
int bind_next(binder *b, bz_error *err);
void bind_seed(const binder *b, bz_value_id id, bz_replay_value *v); /* of a model without weights */

bool bind_is_wanted(const binder *b, bz_value_id v); /* by a layer, or as an output */

/* choose.c: seconds of a call without a record, good for comparing ways alone; a variant for each call; the variant taken, into the steps. */
double replay_guess(const bz_problem *p);
bool replay_runs_here(const bz_problem *p); /* whether any backend of the processor is asked for its kind */
int replay_choose(bz_replay_plan *p, const bz_replay_input *in, bz_error *err);
void replay_take(bz_replay_plan *p);

#endif
