/* dnn: oneDNN's C interface as this folder needs it, the same over versions 2 and 3. Version 2 describes
 * an operation in a struct and iterates over implementations; version 3 makes the first primitive
 * descriptor at once and steps on from it. Here both are one call that collects them all.
 *
 * Memory descriptors belong to a heap and go with it. A NULL descriptor means: not there. */
#ifndef BZ_DNN_H
#define BZ_DNN_H

#include "base/dtype.h"

#include <dnnl.h>
#include <dnnl_debug.h>
#include <stdbool.h>
#include <stdint.h>

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t dnn_md;
#else
typedef dnnl_memory_desc_t *dnn_md;
#endif

typedef struct dnn_heap {
    dnn_md *md;
    int n;
} dnn_heap;

enum { DNN_MAX_RANK = 8, DNN_MAX_IMPLS = 40 };

/* What an operation is asked for with, and its implementations. */
typedef struct dnn_impls {
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr; /* NULL: the usual ones */
    bool training;              /* asked for as training is */
    dnnl_primitive_desc_t pd[DNN_MAX_IMPLS];
    int n;
} dnn_impls;

/* Where a convolution or pooling looks, for each dimension of space. */
typedef struct dnn_window {
    const int64_t *stride, *kernel, *begin, *end; /* kernel: of a pooling */
    dnnl_dims_t skip;                             /* elements between two that are looked at */
} dnn_window;

/* Of n dimensions; `dilation` counts from 1, `pad` has all begins, then all ends. */
dnn_window dnn_window_of(int n, const int64_t *stride, const int64_t *kernel, const int64_t *dilation,
                         const int64_t *pad);

/* What a backward pass takes as its hint: the library's first pick of the forward pass. NULL where there is none. */
const_dnnl_primitive_desc_t dnn_hint(const dnn_impls *forward);

dnnl_prop_kind_t dnn_prop(const dnn_impls *impls);

bool dnn_dtype(bz_dtype t, dnnl_data_type_t *out);

/* ---- memory descriptors --------------------------------------------------------------------- */

void dnn_row_major(int rank, const int64_t *dims, int64_t *strides);

/* Strides NULL: row-major. */
dnnl_status_t dnn_md_strided(dnn_heap *h, int rank, const int64_t *dims, dnnl_data_type_t type, const int64_t *strides,
                             dnn_md *out);
dnnl_status_t dnn_md_tagged(dnn_heap *h, int rank, const int64_t *dims, dnnl_data_type_t type, dnnl_format_tag_t tag,
                            dnn_md *out);
/* The same bytes with more or fewer dimensions of 1. */
dnnl_status_t dnn_md_reshaped(dnn_heap *h, dnn_md md, int rank, const int64_t *dims, dnn_md *out);
/* What the primitive wants for an argument; NULL where it has no such argument. */
dnn_md dnn_md_of(dnn_heap *h, const_dnnl_primitive_desc_t pd, int arg);
dnnl_data_type_t dnn_md_type(dnn_md md);
/* Where it has no blocks: elements from one to the next of each dimension. NULL: it has. */
const int64_t *dnn_md_strides(dnn_md md);
void dnn_heap_free(dnn_heap *h);

/* ---- attributes ----------------------------------------------------------------------------- */

/* Adds an element-wise function to post-operations. */
dnnl_status_t dnn_post_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha, float beta);
dnnl_status_t dnn_post_sum(dnnl_post_ops_t ops);
dnnl_status_t dnn_post_binary(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, dnn_md other);

/* Results are to be multiplied by `scale`. Version 3 takes the factor as an argument of the execution and
 * applies it before the bias: *arg is that argument, or 0. */
dnnl_status_t dnn_attr_scale(dnnl_primitive_attr_t attr, float scale, int *arg);
bool dnn_bias_is_unscaled(void); /* the bias must come scaled already */

bool dnn_math(const char *name, dnnl_fpmath_mode_t *mode); /* "default", "bf16", … */

/* ---- operations: each collects all implementations, the library's favourite first -------------- */

dnnl_status_t dnn_convolution(dnn_impls *out, bool transposed, dnnl_alg_kind_t alg, dnn_md x, dnn_md w, dnn_md bias,
                              dnn_md y, const dnn_window *window);
dnnl_status_t dnn_inner_product(dnn_impls *out, dnn_md x, dnn_md w, dnn_md bias, dnn_md y);
dnnl_status_t dnn_matmul(dnn_impls *out, dnn_md a, dnn_md b, dnn_md bias, dnn_md y);
dnnl_status_t dnn_pooling(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, const dnn_window *window);
dnnl_status_t dnn_batchnorm(dnn_impls *out, dnn_md x, float epsilon, unsigned flags);
dnnl_status_t dnn_layernorm(dnn_impls *out, dnn_md x, float epsilon, unsigned flags);
/* Not there before 3.3: dnnl_unimplemented. */
dnnl_status_t dnn_groupnorm(dnn_impls *out, dnn_md x, int64_t groups, float epsilon, unsigned flags);
dnnl_status_t dnn_softmax(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, int axis);
dnnl_status_t dnn_lrn(dnn_impls *out, dnn_md x, int64_t size, float alpha, float beta, float k);
dnnl_status_t dnn_eltwise(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, float alpha, float beta);
dnnl_status_t dnn_prelu(dnn_impls *out, dnn_md x, dnn_md slope);
dnnl_status_t dnn_binary(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md a, dnn_md b, dnn_md y);
dnnl_status_t dnn_reduction(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y, float p);
dnnl_status_t dnn_resampling(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md y);
dnnl_status_t dnn_concat(dnn_impls *out, dnn_md y, int n, int axis, const dnn_md *x);
dnnl_status_t dnn_reorder(dnn_impls *out, dnn_md x, dnn_md y);

typedef enum { DNN_LSTM, DNN_GRU, DNN_LBR_GRU, DNN_RNN } dnn_cell;
typedef struct dnn_layer {
    dnn_cell cell;
    dnnl_alg_kind_t activation;
    dnnl_rnn_direction_t direction;
} dnn_layer;
/* Tensors of a recurrent layer, or their gradients. */
typedef struct dnn_states {
    dnn_md x, h, c, w, r, peephole, bias, y, last, last_c;
} dnn_states;
dnnl_status_t dnn_rnn(dnn_impls *out, const dnn_layer *layer, const dnn_states *s);
/* `hint` as dnn_hint gives it of the forward pass. Gradients of weights and bias are added to what their memory holds. */
dnnl_status_t dnn_rnn_grad(dnn_impls *out, const dnn_layer *layer, const dnn_states *s, const dnn_states *grad,
                           const_dnnl_primitive_desc_t hint);

/* Backward passes. Each describes the forward pass of training first, which the library wants as a hint. */
dnnl_status_t dnn_convolution_data(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md dx, dnn_md w, dnn_md dy,
                                   const dnn_window *window);
/* `hint_w` are weights in the type of x: dw may have another. */
dnnl_status_t dnn_convolution_weights(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, dnn_md hint_w, dnn_md dw,
                                      dnn_md dy, const dnn_window *window);
dnnl_status_t dnn_pooling_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md dx, dnn_md dy, const dnn_window *window);
dnnl_status_t dnn_batchnorm_grad(dnn_impls *out, dnn_md x, float epsilon, unsigned flags);
dnnl_status_t dnn_layernorm_grad(dnn_impls *out, dnn_md x, float epsilon, unsigned flags);
dnnl_status_t dnn_eltwise_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md x, float alpha, float beta);
dnnl_status_t dnn_softmax_grad(dnn_impls *out, dnnl_alg_kind_t alg, dnn_md y, int axis);

void dnn_impls_free(dnn_impls *impls);

#endif
