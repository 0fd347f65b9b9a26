/* What the lowerings of all kinds share. Private to lower*.c. */
#ifndef BZ_ONEDNN_LOWER_H
#define BZ_ONEDNN_LOWER_H

#include "runtime/onednn/onednn.h"

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        dnnl_status_t status_ = (call);                                                                                \
        if (status_ != dnnl_success)                                                                                   \
            return status_;                                                                                            \
    } while (0)

typedef enum { PLAIN, PACKED, NHWC, ANY } layout;

typedef struct lowering {
    session *s;
    const bz_problem *p;
    bool image; /* one dimension of space is seen as two, the first of them 1: by p, and by dnn_shape */
    layout layout;
    dnnl_fpmath_mode_t math;
    const char *why; /* a reason of our own; NULL: the library's status */
} lowering;

/* ---- operands: index by role (-1 for none), of the result ----------------------------------- */

int dnn_find(const lowering *l, bz_role role);
int dnn_result(const lowering *l);

/* Binds an operand, seen in these dimensions; strides NULL: row-major. */
void dnn_bind(stage *st, int arg, int operand, int rank, const int64_t *dims, const int64_t *strides);
/* The dimensions that an operand is seen in: its own, or an image's. Returns their number. */
int dnn_shape(const lowering *l, int operand, int64_t *dims);
/* Binds an operand in these. */
void dnn_bind_whole(const lowering *l, stage *st, int arg, int operand);

/* ---- descriptors ---------------------------------------------------------------------------- */

/* Data in the layout asked for. `free_choice`: the primitive accepts "any"; others take blocks of
 * channels, which is what convolutions around them choose. */
dnnl_status_t dnn_data(lowering *l, int operand, int rank, const int64_t *dims, bool free_choice, dnn_md *md);
/* An operand that stays as it is whatever the layout. */
dnnl_status_t dnn_fixed(lowering *l, int operand, int rank, const int64_t *dims, const int64_t *strides, dnn_md *md);
/* Weights: as the model has them where all is plain, else packed as the implementation likes. */
dnnl_status_t dnn_weights(lowering *l, int operand, bool constant, int rank, const int64_t *dims,
                          const int64_t *strides, dnn_md *md);

/* ---- functions and attributes --------------------------------------------------------------- */

/* What a function is in oneDNN: one algorithm or two in a row. */
typedef struct function {
    int n;
    struct {
        dnnl_alg_kind_t alg;
        float alpha, beta;
    } step[2];
} function;

function dnn_function_of(bz_fn fn, float alpha, float beta);
dnnl_alg_kind_t dnn_binary_of(bz_fn fn);

/* Gives the stage its attributes: post-operations, bias left out. With `sum` the first add goes to the memory of the result, y. */
dnnl_status_t dnn_attributes(lowering *l, stage *st, bool sum, int rank, const int64_t *y, double scale);
bool dnn_has_residual(const lowering *l);

/* An alternative, empty; it belongs to the session. */
alternative *dnn_add_alternative(lowering *l, const char *prefix, const char *suffix, int n_stages);

/* Weights of a convolution as oneDNN wants to see them: with the group as a dimension of its own, outputs first. Returns the
 * rank. */
int dnn_conv_weights(const bz_problem *p, int64_t *dims, int64_t *strides);
/* A convolution by the direct algorithm and by Winograd's, as far as the library has them, into one stage. */
typedef dnnl_status_t dnn_by_algorithm(dnn_impls *out, dnnl_alg_kind_t alg, const dnn_md *md, const dnn_window *window);
dnnl_status_t dnn_by_both(stage *st, dnn_by_algorithm *make, const dnn_md *md, const dnn_window *window);
dnn_window dnn_conv_window(const bz_problem *p);
dnn_window dnn_pool_window(const bz_problem *p);
dnnl_alg_kind_t dnn_pool_algorithm(const bz_problem *p);
float dnn_epsilon(const lowering *l);

/* ---- kinds ---------------------------------------------------------------------------------- */

typedef dnnl_status_t dnn_lower(lowering *l);
dnn_lower dnn_lower_conv, dnn_lower_gemm, dnn_lower_gemv, dnn_lower_matmul, dnn_lower_pool, dnn_lower_batchnorm,
    dnn_lower_layernorm, dnn_lower_groupnorm, dnn_lower_softmax, dnn_lower_lrn, dnn_lower_activation, dnn_lower_prelu,
    dnn_lower_binary, dnn_lower_reduce, dnn_lower_resample, dnn_lower_concat, dnn_lower_transpose, dnn_lower_reorder,
    dnn_lower_rnn, dnn_lower_rnn_grad, dnn_lower_conv_data, dnn_lower_conv_weights, dnn_lower_pool_grad,
    dnn_lower_batchnorm_grad, dnn_lower_layernorm_grad, dnn_lower_activation_grad, dnn_lower_softmax_grad;

#endif
