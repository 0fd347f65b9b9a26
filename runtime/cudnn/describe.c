/* Tensors, types and functions as cuDNN has them. */
#include "runtime/cudnn/cudnn.h"

bool cudnn_dtype(bz_dtype t, cudnnDataType_t *out)
{
    static const struct {
        bz_dtype own;
        cudnnDataType_t cudnn;
    } TYPES[] = {
        {BZ_F32, CUDNN_DATA_FLOAT},       {BZ_F64, CUDNN_DATA_DOUBLE},      {BZ_F16, CUDNN_DATA_HALF},
        {BZ_I8, CUDNN_DATA_INT8},         {BZ_BF16, CUDNN_DATA_BFLOAT16},   {BZ_U8, CUDNN_DATA_UINT8},
        {BZ_I32, CUDNN_DATA_INT32},       {BZ_I64, CUDNN_DATA_INT64},       {BZ_BOOL, CUDNN_DATA_BOOLEAN},
        {BZ_F8E4M3, CUDNN_DATA_FP8_E4M3}, {BZ_F8E5M2, CUDNN_DATA_FP8_E5M2}, {BZ_F4E2M1, CUDNN_DATA_FP4_E2M1},
    };
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (TYPES[i].own == t) {
            *out = TYPES[i].cudnn;
            return true;
        }
    return false;
}

cudnnDataType_t cudnn_compute(const call *c)
{
    bz_dtype t = c->problem->dtype;
    return t == BZ_F64          ? CUDNN_DATA_DOUBLE
           : bz_dtype_is_int(t) ? CUDNN_DATA_INT32
           : c->half_sums       ? CUDNN_DATA_HALF
                                : CUDNN_DATA_FLOAT;
}

int cudnn_find(const call *c, bz_role role)
{
    for (int i = 0; i < c->n_operands; i++)
        if (c->operand[i].role == role)
            return i;
    return -1;
}

tensor cudnn_tensor(const call *c, int operand)
{
    tensor t = {.operand = operand};
    if (operand < 0)
        return t;
    const bz_operand *o = &c->operand[operand];
    t.layout = c->nhwc && o->rank >= 3 ? bz_cuda_channels_last(o) : bz_cuda_plain(o);
    if (c->x32) {
        t.layout = bz_cuda_channels_last(o); /* of each block */
        t.layout.split = 1, t.layout.split_size = CUDNN_X32, t.layout.split_stride = 1;
        t.layout.stride[1] = o->count / o->dim[0] / o->dim[1] * CUDNN_X32;
        for (int d = 2; d < o->rank; d++)
            t.layout.stride[d] = t.layout.stride[d] / o->dim[1] * CUDNN_X32;
    }
    return t;
}

/* Strides of the ones that are added: as if they were innermost and the tensor dense. Channels last, that is
 * still outside of the channels. */
cudnnStatus_t cudnn_set(tensor *t, int rank, const int64_t *dim, const int64_t *stride)
{
    cudnnDataType_t type;
    int dims[CUDNN_MAX_RANK], strides[CUDNN_MAX_RANK], n = rank < 4 ? 4 : rank;
    if (rank > CUDNN_MAX_RANK || !cudnn_dtype(t->layout.dtype, &type))
        return CUDNN_STATUS_NOT_SUPPORTED;
    int innermost = rank == 3 && stride[1] == 1 && dim[1] <= INT32_MAX ? (int)dim[1] : 1;
    for (int i = 0; i < n; i++) {
        if (i < rank && (dim[i] > INT32_MAX || stride[i] > INT32_MAX))
            return CUDNN_STATUS_NOT_SUPPORTED;
        dims[i] = i < rank ? (int)dim[i] : 1;
        strides[i] = i < rank ? (int)stride[i] : innermost;
    }
    if (!t->desc)
        TRY(cudnnCreateTensorDescriptor(&t->desc));
    if (t->layout.split_size)
        return cudnnSetTensorNdDescriptorEx(t->desc, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x32, n, dims);
    return cudnnSetTensorNdDescriptor(t->desc, type, n, dims, strides);
}

cudnnStatus_t cudnn_set_whole(const call *c, tensor *t)
{
    return cudnn_set(t, c->operand[t->operand].rank, c->operand[t->operand].dim, t->layout.stride);
}

cudnnStatus_t cudnn_set_channels(tensor *t, int rank, int64_t n)
{
    int64_t dim[BZ_PROBLEM_RANK], stride[BZ_PROBLEM_RANK];
    for (int i = 0; i < rank; i++) {
        dim[i] = i == 1 ? n : 1;
        stride[i] = i == 0 ? n : 1;
    }
    return cudnn_set(t, rank, dim, stride);
}

const void *cudnn_scalar(const call *c, const scalar *v)
{
    return c->problem->dtype == BZ_F64 ? (const void *)&v->d : (const void *)&v->f;
}

/* A function as an activation; false where cuDNN has none that computes the same: a clipped ReLU has 0 as its lower bound. */
static bool activation_of(bz_fn fn, float alpha, float beta, cudnnActivationMode_t *mode, double *coefficient)
{
    static const struct {
        bz_fn fn;
        cudnnActivationMode_t mode;
    } MODES[] = {
        {BZ_FN_RELU, CUDNN_ACTIVATION_RELU},         {BZ_FN_SIGMOID, CUDNN_ACTIVATION_SIGMOID},
        {BZ_FN_TANH, CUDNN_ACTIVATION_TANH},         {BZ_FN_ELU, CUDNN_ACTIVATION_ELU},
        {BZ_FN_CLIP, CUDNN_ACTIVATION_CLIPPED_RELU}, {BZ_FN_SWISH, CUDNN_ACTIVATION_SWISH},
    };
    if (fn == BZ_FN_CLIP && alpha != 0)
        return false;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++)
        if (MODES[i].fn == fn) {
            *mode = MODES[i].mode;
            *coefficient = fn == BZ_FN_CLIP ? (double)beta : fn == BZ_FN_ELU || fn == BZ_FN_SWISH ? (double)alpha : 0;
            return true;
        }
    return false;
}

cudnnStatus_t cudnn_make_activation(cudnnActivationDescriptor_t *out, bz_fn fn, float alpha, float beta)
{
    cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
    double coefficient = 0;
    if (fn && !activation_of(fn, alpha, beta, &mode, &coefficient))
        return CUDNN_STATUS_NOT_SUPPORTED;
    TRY(cudnnCreateActivationDescriptor(out));
    TRY(cudnnSetActivationDescriptor(*out, mode, CUDNN_NOT_PROPAGATE_NAN, coefficient));
    return mode == CUDNN_ACTIVATION_SWISH ? cudnnSetActivationDescriptorSwishBeta(*out, coefficient)
                                          : CUDNN_STATUS_SUCCESS;
}

/* The bias is brought to the type of the result, which cudnnAddTensor wants. */
int cudnn_describe_posts(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    int rank = c->operand[c->n_operands - 1].rank, others = 0;
    for (int i = 0; p->post[i].fn; i++) {
        const bz_post *post = &p->post[i];
        cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
        if (post->fn == BZ_FN_BIAS) {
            c->bias = (tensor){.operand = cudnn_find(c, BZ_ROLE_BIAS)};
            c->bias.layout = bz_cuda_plain(&c->operand[c->bias.operand]);
            c->bias.layout.dtype = p->dtype_y;
            status = cudnn_set_channels(&c->bias, rank, c->operand[c->bias.operand].count);
        } else if (post->fn == BZ_FN_ADD && !others++) {
            c->other = cudnn_tensor(c, cudnn_find(c, BZ_ROLE_OTHER));
            status = cudnn_set_whole(c, &c->other);
        } else if (post->fn == BZ_FN_LINEAR && post->beta == 0) {
            continue; /* by cudnnScaleTensor, in place */
        } else if (bz_fn_is_binary(post->fn)) {
            return bz_fail(why, BZ_INCOMPLETE, "cuDNN has no call for the post-operation %s", bz_fn_name(post->fn));
        } else {
            status = cudnn_make_activation(&c->activation[i], post->fn, post->alpha, post->beta);
        }
        if (status == CUDNN_STATUS_NOT_SUPPORTED)
            return bz_fail(why, BZ_INCOMPLETE, "cuDNN has no activation %s with these parameters",
                           bz_fn_name(post->fn));
        if (status != CUDNN_STATUS_SUCCESS)
            return bz_cudnn_failed(why, "describing a post-operation", status);
    }
    return 0;
}

cudnnStatus_t cudnn_run_posts(call *c)
{
    const void *one = cudnn_scalar(c, &c->one), *zero = cudnn_scalar(c, &c->zero);
    for (int i = 0; c->problem->post[i].fn; i++) {
        bz_fn fn = c->problem->post[i].fn;
        if (fn == BZ_FN_BIAS)
            TRY(cudnnAddTensor(c->handle, one, c->bias.desc, c->bias.data, one, c->y.desc, c->y.data));
        else if (fn == BZ_FN_LINEAR)
            TRY(cudnnScaleTensor(
                c->handle, c->y.desc, c->y.data,
                cudnn_scalar(c, &(scalar){c->problem->post[i].alpha, (double)c->problem->post[i].alpha})));
        else if (fn == BZ_FN_ADD)
            TRY(cudnnAddTensor(c->handle, one, c->other.desc, c->other.data, one, c->y.desc, c->y.data));
        else
            TRY(cudnnActivationForward(c->handle, c->activation[i], one, c->y.desc, c->y.data, zero, c->y.desc,
                                       c->y.data));
    }
    return CUDNN_STATUS_SUCCESS;
}
