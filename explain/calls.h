/* Calls of the libraries as problems. For explain/ and advice/.
 *
 *   calls.c          the table, and how parameters are read
 *   calls_cudnn.c, calls_onednn.c, calls_blas.c   a function for each call that makes a problem */
#ifndef BZ_EXPLAIN_CALLS_H
#define BZ_EXPLAIN_CALLS_H

#include "explain/explain.h"

/* "[1,3,224,224]" -> numbers; how many, or 0 where they are too many or no sizes. */
int call_list(const bz_trace *t, size_t call, const char *name, int64_t *v, int most);
bool call_int(const bz_trace *t, size_t call, const char *name, int64_t *v); /* from 0 on */
bool call_real(const bz_trace *t, size_t call, const char *name, double *v);
bool call_dtype(const bz_trace *t, size_t call, const char *name, bz_dtype *out);

/* Elements that the reorder moves, from its "problem"; -1 where the log has no shape. */
int64_t call_elements(const bz_trace *t, size_t call);

/* Padding at the end. The sizes only tell how far the windows reach: where the padding of the beginning gives the same size, it is that. */
int64_t call_pad_end(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad);

/* The convolution with the padding inside that a program put around its input itself; how much it is, or 0. */
int call_unpad(const bz_problem *from, bz_problem *to);

typedef bool call_reader(const bz_trace *t, size_t call, bz_problem *p);
call_reader call_cudnn_conv, call_cudnn_conv_bias, call_cudnn_pool, call_cudnn_activation, call_cudnn_batchnorm,
    call_cudnn_softmax, call_cudnn_lrn, call_cudnn_add, call_cudnn_op;
call_reader call_onednn_conv, call_onednn_inner_product, call_onednn_matmul, call_onednn_pool, call_onednn_batchnorm,
    call_onednn_layernorm, call_onednn_eltwise, call_onednn_binary, call_onednn_sum, call_onednn_softmax,
    call_onednn_concat;
call_reader call_blas_gemm, call_blas_gemv;

#endif
