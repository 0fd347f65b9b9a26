/* Calls of the libraries as data. Private to profile/.
 *
 *   calls.c          the tables, and how parameters are read
 *   calls_cudnn.c, calls_onednn.c, calls_blas.c   a function for each call that makes a problem */
#ifndef BZ_PROFILE_CALLS_H
#define BZ_PROFILE_CALLS_H

#include "profile/trace.h"

/* "[1,3,224,224]" -> numbers; how many, or 0 where they are too many or no sizes. */
int bz_call_list(const bz_trace *t, size_t call, const char *name, int64_t *v, int most);
bool bz_call_int(const bz_trace *t, size_t call, const char *name, int64_t *v); /* from 0 on */
bool bz_call_real(const bz_trace *t, size_t call, const char *name, double *v);
bool bz_call_dtype(const bz_trace *t, size_t call, const char *name, bz_dtype *out);

/* Padding at the end. The sizes only tell how far the windows reach: where the padding of the beginning gives the same size, it is that. */
int64_t bz_call_pad_end(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad);

typedef bool bz_call_reader(const bz_trace *t, size_t call, bz_problem *p);
bz_call_reader bz_call_cudnn_conv, bz_call_cudnn_conv_bias, bz_call_cudnn_pool, bz_call_cudnn_activation,
    bz_call_cudnn_batchnorm, bz_call_cudnn_softmax, bz_call_cudnn_lrn, bz_call_cudnn_add, bz_call_cudnn_op;
bz_call_reader bz_call_onednn_conv, bz_call_onednn_inner_product, bz_call_onednn_matmul, bz_call_onednn_pool,
    bz_call_onednn_batchnorm, bz_call_onednn_layernorm, bz_call_onednn_eltwise, bz_call_onednn_binary,
    bz_call_onednn_sum, bz_call_onednn_softmax, bz_call_onednn_concat;
bz_call_reader bz_call_blas_gemm, bz_call_blas_gemv;

#endif
