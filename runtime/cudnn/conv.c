/* Convolutions and their gradients: that by the data is a transposed convolution of dy.
 *
 * cuDNN pads both ends of a dimension alike. Where the model does not, the windows may still lie as they would with the
 * padding of the begin on both sides: then nothing differs. Else these calls refuse: graphs take such padding, and the
 * lowering offers a pad and a convolution of what it makes, two problems with a price each. */
#include "runtime/cudnn/cudnn.h"

#include <stdio.h>

enum { MOST = 8 }; /* algorithms */
static const struct {
    int n;
    const char *name[MOST];
} ALGORITHMS[] = {
    [CUDNN_CONV_FORWARD] = {8,
                            {"implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
                             "winograd", "winograd_nonfused"}},
    [CUDNN_CONV_DATA] = {6, {"algo_0", "algo_1", "fft", "fft_tiling", "winograd", "winograd_nonfused"}},
    [CUDNN_CONV_WEIGHTS] = {7, {"algo_0", "algo_1", "fft", "algo_3", "winograd", "winograd_nonfused", "fft_tiling"}},
};

cudnn_conv cudnn_conv_of(const call *c)
{
    bz_problem_kind kind = c->problem->kind;
    return kind == BZ_PROBLEM_CONV_WEIGHTS                           ? CUDNN_CONV_WEIGHTS
           : kind == BZ_PROBLEM_CONV || kind == BZ_PROBLEM_CONV_NORM ? CUDNN_CONV_FORWARD
                                                                     : CUDNN_CONV_DATA;
}

/* Types of 16 bits and less run with and without tensor cores: numbers from n on are with. Other types have
 * one math mode for all. */
static bool has_both(const call *c)
{
    return bz_dtype_bits(c->problem->dtype) <= 16;
}

const char *cudnn_conv_algorithm(const call *c, int i, char *out, size_t size)
{
    cudnn_conv way = cudnn_conv_of(c);
    if (c->x32) /* no other reads it */
        return i ? NULL : "implicit_precomp_gemm+tensor+x32";
    int n = ALGORITHMS[way].n;
    if (i >= (has_both(c) ? 2 * n : n))
        return NULL;
    bool steps = c->problem->post[0].fn && !c->fused;
    snprintf(out, size, "%s%s%s", ALGORITHMS[way].name[i % n], i >= n ? "+tensor" : "",
             c->fused ? "+fused"
             : steps  ? "+steps"
                      : "");
    return out;
}
static int number_of(const call *c, int algo, cudnnMathType_t math)
{
    bool units = has_both(c) && math != CUDNN_FMA_MATH && math != CUDNN_DEFAULT_MATH;
    return algo + (units ? ALGORITHMS[cudnn_conv_of(c)].n : 0);
}

/* The first that the library names and does not refuse. The types of its answers differ by name only. */
#define CHOICE(what, perf_type, ask, from, to, result)                                                                 \
    int cudnn_##what##_choice(call *c)                                                                                 \
    {                                                                                                                  \
        perf_type perf[MOST * 2];                                                                                      \
        int found = 0, most = 2 * ALGORITHMS[cudnn_conv_of(c)].n;                                                      \
        if (c->x32) /* no program gets it unasked */                                                                   \
            return -1;                                                                                                 \
        if (ask(c->handle, from, to, c->conv, result, most, &found, perf) != CUDNN_STATUS_SUCCESS)                     \
            return -1;                                                                                                 \
        for (int i = 0; i < found; i++)                                                                                \
            if (perf[i].status == CUDNN_STATUS_SUCCESS)                                                                \
                return number_of(c, (int)perf[i].algo, perf[i].mathType);                                              \
        return -1;                                                                                                     \
    }
CHOICE(conv, cudnnConvolutionFwdAlgoPerf_t, cudnnGetConvolutionForwardAlgorithm_v7, c->x.desc, c->filter, c->y.desc)
CHOICE(deconv, cudnnConvolutionBwdDataAlgoPerf_t, cudnnGetConvolutionBackwardDataAlgorithm_v7, c->filter, c->x.desc,
       c->y.desc)
CHOICE(weights, cudnnConvolutionBwdFilterAlgoPerf_t, cudnnGetConvolutionBackwardFilterAlgorithm_v7, c->x.desc,
       c->b.desc, c->filter)

static cudnnStatus_t set_filter(call *c, int operand)
{
    const bz_operand *w = &c->operand[operand];
    cudnnDataType_t type;
    int dims[CUDNN_MAX_RANK], n = w->rank < 4 ? 4 : w->rank;
    if (!cudnn_dtype(w->dtype, &type))
        return CUDNN_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < n; i++)
        dims[i] = i < w->rank ? (int)w->dim[i] : 1;
    TRY(cudnnCreateFilterDescriptor(&c->filter));
    if (c->x32)
        return cudnnSetFilterNdDescriptor(c->filter, CUDNN_DATA_INT8x32, CUDNN_TENSOR_NCHW_VECT_C, n, dims);
    return cudnnSetFilterNdDescriptor(c->filter, type, c->nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, n, dims);
}

/* One spatial dimension becomes two, the second of which has nothing to do. */
static cudnnStatus_t set_conv(call *c)
{
    const bz_problem *p = c->problem; /* conv, deconv and gradients have the same members */
    int n = bz_extent_rank(p->conv.x) - 2, pads[3] = {0}, strides[3] = {1, 1, 1}, dilations[3] = {1, 1, 1};
    for (int i = 0; i < n; i++) {
        pads[i] = (int)p->conv.pad[i];
        strides[i] = (int)p->conv.stride[i];
        dilations[i] = (int)p->conv.dilation[i];
    }
    TRY(cudnnCreateConvolutionDescriptor(&c->conv));
    TRY(cudnnSetConvolutionNdDescriptor(c->conv, n < 2 ? 2 : n, pads, strides, dilations, CUDNN_CROSS_CORRELATION,
                                        cudnn_compute(c)));
    TRY(cudnnSetConvolutionGroupCount(c->conv, (int)p->conv.group));
    return cudnnSetConvolutionMathType(c->conv, c->math);
}

static int is_expressible(const call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    cudnnDataType_t type;
    if (!cudnn_dtype(p->dtype, &type) || !cudnn_dtype(p->dtype_w, &type) || !cudnn_dtype(p->dtype_y, &type))
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN has no such data type");
    if (bz_dtype_is_float(p->dtype) && bz_dtype_bits(p->dtype) < 16)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN convolves 8-bit floats in graphs only");
    if (p->dtype == BZ_U8)
        return bz_fail(why, BZ_INCOMPLETE, "the calls of cuDNN convolve signed bytes only");
    if (bz_dtype_is_int(p->dtype) && bz_problem_has(p, BZ_TRAIT_GRADIENT))
        return bz_fail(why, BZ_INCOMPLETE, "integers have no gradients");
    if (c->x32 &&
        (c->operand[1].rank != 4 || p->conv.w[0] % CUDNN_X32 || p->conv.w[1] % CUDNN_X32 || p->dtype_y != BZ_I8))
        return bz_fail(why, BZ_INCOMPLETE,
                       "cuDNN convolves bytes in blocks of 32 channels in two dimensions, into bytes");
    if (bz_dtype_is_int(p->dtype) && !c->x32 && (!c->nhwc || p->conv.w[0] % 4 || p->conv.x[1] % 4))
        return bz_fail(why, BZ_INCOMPLETE, "the calls of cuDNN convolve bytes channels last, four channels at once");
    if (bz_dtype_is_int(p->dtype) && p->post[0].fn)
        return bz_fail(why, BZ_INCOMPLETE, "post-operations would come behind the scale of the bytes");
    return 0;
}

static int describe(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    int n = bz_extent_rank(p->conv.x) - 2, last = c->n_operands - 1;
    bool weights = p->kind == BZ_PROBLEM_CONV_WEIGHTS;
    if (is_expressible(c, why))
        return -1;
    for (int i = 0; i < n && p->kind == BZ_PROBLEM_DECONV; i++)
        if (p->conv.pad[i] != p->conv.pad[n + i])
            return bz_fail(why, BZ_INCOMPLETE, "cuDNN cuts both ends of a transposed convolution alike");
    if (p->kind != BZ_PROBLEM_DECONV && !bz_problem_pads_evenly(p))
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN pads both ends alike%s",
                       p->kind == BZ_PROBLEM_CONV ? ": for it this is a pad and a convolution" : "");
    c->factor = (scalar){(float)bz_problem_scale(p), 1};
    c->x = cudnn_tensor(c, 0);
    *(weights ? &c->b : &c->w) = cudnn_tensor(c, 1);
    c->y = cudnn_tensor(c, last);
    cudnnStatus_t status = cudnn_set_whole(c, &c->x);
    if (status == CUDNN_STATUS_SUCCESS)
        status = set_filter(c, weights ? last : 1);
    status = status ? status : set_conv(c);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn_set_whole(c, weights ? &c->b : &c->y);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the convolution", status);
}

int cudnn_describe_conv(call *c, bz_error *why)
{
    return describe(c, why) || cudnn_describe_posts(c, why) ? -1 : 0;
}

/* bias, perhaps a residual, perhaps ReLU: what cudnnConvolutionBiasActivationForward computes. */
int cudnn_describe_conv_fused(call *c, bz_error *why)
{
    const bz_post *post = c->problem->post;
    int i = 0;
    if (post[i].fn != BZ_FN_BIAS)
        return bz_fail(why, BZ_INCOMPLETE, "the fused call of cuDNN has a bias");
    i++;
    i += post[i].fn == BZ_FN_ADD;
    bz_fn fn = post[i].fn;
    if (fn && (fn != BZ_FN_RELU || post[i + 1].fn))
        return bz_fail(why, BZ_INCOMPLETE, "the fused call of cuDNN ends with ReLU or nothing");
    c->fused = true;
    if (describe(c, why) || cudnn_describe_posts(c, why))
        return -1;
    if (c->activation[i])
        cudnnDestroyActivationDescriptor(c->activation[i]);
    c->activation[i] = NULL;
    cudnnStatus_t status = cudnn_make_activation(&c->activation[0], fn, 0, 0);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the activation", status);
}

static cudnnStatus_t find_workspace(call *c)
{
    switch (cudnn_conv_of(c)) {
    case CUDNN_CONV_FORWARD:
        return cudnnGetConvolutionForwardWorkspaceSize(c->handle, c->x.desc, c->filter, c->conv, c->y.desc,
                                                       (cudnnConvolutionFwdAlgo_t)c->algorithm, &c->workspace);
    case CUDNN_CONV_DATA:
        return cudnnGetConvolutionBackwardDataWorkspaceSize(c->handle, c->filter, c->x.desc, c->conv, c->y.desc,
                                                            (cudnnConvolutionBwdDataAlgo_t)c->algorithm, &c->workspace);
    default:
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(c->handle, c->x.desc, c->b.desc, c->conv, c->filter,
                                                              (cudnnConvolutionBwdFilterAlgo_t)c->algorithm,
                                                              &c->workspace);
    }
}

/* Once, ahead of time: else each call would reorder the filter. */
static int reorder(call *c, bz_error *err)
{
    if (!c->reordered && bz_cuda_alloc((size_t)c->operand[1].count, &c->reordered, err))
        return -1;
    cudnnStatus_t status =
        cudnnReorderFilterAndBias(c->handle, c->filter, CUDNN_DEFAULT_REORDER, c->w.data, c->reordered, 0, NULL, NULL);
    status = status ? status : cudnnSetConvolutionReorderType(c->conv, CUDNN_NO_REORDER);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(err, "reordering the filter", status);
}

int cudnn_prepare_conv(call *c, session *s, bz_error *err)
{
    int n = ALGORITHMS[cudnn_conv_of(c)].n;
    (void)s;
    if (cudnn_conv_of(c) == CUDNN_CONV_FORWARD && c->problem->dtype_y == BZ_I32)
        /* cuDNN 9.19 takes it, and writes -2³¹ everywhere */
        return bz_fail(err, BZ_INCOMPLETE, "cuDNN's convolution calls have no result of 32-bit integers");
    if (c->x32)
        c->algorithm = n + CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    if (has_both(c))
        c->math = c->algorithm >= n ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;
    c->algorithm %= n;
    cudnnStatus_t status = cudnnSetConvolutionMathType(c->conv, c->math);
    if (status != CUDNN_STATUS_SUCCESS)
        return bz_cudnn_failed(err, "setting the math type", status);
    status = find_workspace(c);
    if (status != CUDNN_STATUS_SUCCESS)
        return bz_cudnn_failed(err, "asking for the workspace", status);
    return c->x32 ? reorder(c, err) : 0;
}

cudnnStatus_t cudnn_run_conv(call *c)
{
    const void *one = cudnn_scalar(c, &c->factor), *zero = cudnn_scalar(c, &c->zero);
    cudnnConvolutionFwdAlgo_t algo = (cudnnConvolutionFwdAlgo_t)c->algorithm;
    if (!c->fused) {
        const void *w = c->reordered ? c->reordered : c->w.data;
        TRY(cudnnConvolutionForward(c->handle, one, c->x.desc, c->x.data, c->filter, w, c->conv, algo,
                                    c->cuda->workspace, c->workspace, zero, c->y.desc, c->y.data));
        return cudnn_run_posts(c);
    }
    const tensor *z = c->other.desc ? &c->other : &c->y;
    const void *residual = cudnn_scalar(c, c->other.desc ? &c->one : &c->zero);
    return cudnnConvolutionBiasActivationForward(c->handle, one, c->x.desc, c->x.data, c->filter, c->w.data, c->conv,
                                                 algo, c->cuda->workspace, c->workspace, residual, z->desc, z->data,
                                                 c->bias.desc, c->bias.data, c->activation[0], c->y.desc, c->y.data);
}

cudnnStatus_t cudnn_run_deconv(call *c)
{
    TRY(cudnnConvolutionBackwardData(c->handle, cudnn_scalar(c, &c->factor), c->filter, c->w.data, c->x.desc, c->x.data,
                                     c->conv, (cudnnConvolutionBwdDataAlgo_t)c->algorithm, c->cuda->workspace,
                                     c->workspace, cudnn_scalar(c, &c->zero), c->y.desc, c->y.data));
    return cudnn_run_posts(c);
}

cudnnStatus_t cudnn_run_weights(call *c)
{
    return cudnnConvolutionBackwardFilter(c->handle, cudnn_scalar(c, &c->factor), c->x.desc, c->x.data, c->b.desc,
                                          c->b.data, c->conv, (cudnnConvolutionBwdFilterAlgo_t)c->algorithm,
                                          c->cuda->workspace, c->workspace, cudnn_scalar(c, &c->zero), c->filter,
                                          c->y.data);
}
