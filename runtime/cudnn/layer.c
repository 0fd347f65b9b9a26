/* Pooling, normalization, softmax, LRN, activations, dropout; and gradients of those. */
#include "runtime/cudnn/cudnn.h"

#include <stdio.h>

/* x, dy where there is one, and y in these dimensions; without them in their own. */
static int describe_in(call *c, int rank, const int64_t *dim, const int64_t *stride, bz_error *why)
{
    tensor *const all[] = {&c->x, &c->b, &c->y};
    const int operand[] = {cudnn_find(c, BZ_ROLE_X), cudnn_find(c, BZ_ROLE_DY), c->n_operands - 1};
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    for (int i = 0; i < 3 && status == CUDNN_STATUS_SUCCESS; i++) {
        if (operand[i] < 0)
            continue;
        *all[i] = cudnn_tensor(c, operand[i]);
        status = rank ? cudnn_set(all[i], rank, dim, stride) : cudnn_set_whole(c, all[i]);
    }
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing x and y", status);
}

/* As they are, which is all that most kinds need. */
int cudnn_describe_both(call *c, bz_error *why)
{
    return describe_in(c, 0, NULL, NULL, why);
}

int cudnn_describe_pool(call *c, bz_error *why)
{
    static const cudnnPoolingMode_t MODES[] = {
        [BZ_POOL_MAX] = CUDNN_POOLING_MAX,
        [BZ_POOL_AVG] = CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
        [BZ_POOL_AVG_PAD] = CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
    };
    const bz_problem *p = c->problem;
    int n = bz_extent_rank(p->pool.x) - 2, window[3] = {1, 1, 1}, pads[3] = {0}, strides[3] = {1, 1, 1};
    for (int i = 0; i < n; i++) {
        if (p->pool.dilation[i] != 1)
            return bz_fail(why, BZ_INCOMPLETE, "cuDNN has no dilated pooling");
        window[i] = (int)p->pool.kernel[i];
        pads[i] = (int)p->pool.pad[i];
        strides[i] = (int)p->pool.stride[i];
    }
    if (p->pool.mode == BZ_POOL_MAX && (p->pool.training || p->kind == BZ_PROBLEM_POOL_GRAD))
        return bz_fail(why, BZ_INCOMPLETE,
                       "calls of cuDNN look for the largest of a window again, and tell nobody which");
    if (!bz_problem_pads_evenly(p))
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN pads both ends alike, and the windows would not lie as they should");
    if (cudnn_describe_both(c, why))
        return -1;
    cudnnStatus_t status = cudnnCreatePoolingDescriptor(&c->pooling);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnSetPoolingNdDescriptor(c->pooling, MODES[p->pool.mode], CUDNN_NOT_PROPAGATE_NAN, n < 2 ? 2 : n,
                                             window, pads, strides);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the pooling", status);
}

cudnnStatus_t cudnn_run_pool(call *c)
{
    return cudnnPoolingForward(c->handle, c->pooling, cudnn_scalar(c, &c->one), c->x.desc, c->x.data,
                               cudnn_scalar(c, &c->zero), c->y.desc, c->y.data);
}

/* The share of a window's gradient that each of its elements gets does not depend on x and y, for which the call asks. */
cudnnStatus_t cudnn_run_pool_grad(call *c)
{
    return cudnnPoolingBackward(c->handle, c->pooling, cudnn_scalar(c, &c->one), c->b.desc, c->b.data, c->b.desc,
                                c->b.data, c->y.desc, c->y.data, cudnn_scalar(c, &c->zero), c->y.desc, c->y.data);
}

/* Parameters and what comes of them; one descriptor is for all of them. Where training keeps the variance, it lies as its root
 * inverted. */
int cudnn_describe_batchnorm(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    bool inference = p->kind == BZ_PROBLEM_BATCHNORM && !p->batchnorm.training;
    const struct {
        tensor *t;
        bz_role role;
        bool result;
    } PARAMETERS[] = {
        {&c->scale, BZ_ROLE_SCALE, false},  {&c->shift, BZ_ROLE_SHIFT, false},
        {&c->mean, BZ_ROLE_MEAN, false},    {&c->variance, BZ_ROLE_VARIANCE, false},
        {&c->mean, BZ_ROLE_MEAN, true},     {&c->variance, BZ_ROLE_VARIANCE, true},
        {&c->more[0], BZ_ROLE_SCALE, true}, {&c->more[1], BZ_ROLE_SHIFT, true},
    };
    if (cudnn_describe_both(c, why))
        return -1;
    for (size_t i = 0; i < sizeof PARAMETERS / sizeof *PARAMETERS; i++)
        for (int k = 0; k < c->n_operands; k++)
            if (c->operand[k].role == PARAMETERS[i].role && c->operand[k].result == PARAMETERS[i].result)
                *PARAMETERS[i].t = (tensor){.operand = k, .layout = bz_cuda_plain(&c->operand[k])};
    if (!inference)
        c->variance.layout.root = (float)c->epsilon;
    cudnnStatus_t status =
        cudnn_set_channels(&c->scale, c->operand[c->x.operand].rank, c->operand[c->scale.operand].count);
    if (status != CUDNN_STATUS_SUCCESS)
        return bz_cudnn_failed(why, "describing the parameters", status);
    return cudnn_describe_posts(c, why);
}

/* Of training there is a faster mode, which f16 may overflow in. */
const char *cudnn_batchnorm_algorithm(const call *c, int i, char *out, size_t size)
{
    static const char *const NAMES[] = {"batchnorm_spatial", "batchnorm_spatial_persistent"};
    const bz_problem *p = c->problem;
    if (i >= (p->kind == BZ_PROBLEM_BATCHNORM && !p->batchnorm.training ? 1 : 2))
        return NULL;
    snprintf(out, size, "%s", NAMES[i]);
    return out;
}

int cudnn_batchnorm_choice(call *c)
{
    (void)c;
    return 0;
}

cudnnStatus_t cudnn_run_batchnorm(call *c)
{
    cudnnBatchNormMode_t mode = c->algorithm ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT : CUDNN_BATCHNORM_SPATIAL;
    const void *one = cudnn_scalar(c, &c->one), *zero = cudnn_scalar(c, &c->zero);
    if (c->problem->kind == BZ_PROBLEM_BATCHNORM_GRAD)
        return cudnnBatchNormalizationBackward(
            c->handle, mode, one, zero, one, zero, c->x.desc, c->x.data, c->b.desc, c->b.data, c->y.desc, c->y.data,
            c->scale.desc, c->scale.data, c->more[0].data, c->more[1].data, c->epsilon, c->mean.data, c->variance.data);
    if (c->problem->batchnorm.training) /* running averages are not asked for */
        return cudnnBatchNormalizationForwardTraining(c->handle, mode, one, zero, c->x.desc, c->x.data, c->y.desc,
                                                      c->y.data, c->scale.desc, c->scale.data, c->shift.data, 1, NULL,
                                                      NULL, c->epsilon, c->mean.data, c->variance.data);
    TRY(cudnnBatchNormalizationForwardInference(c->handle, mode, one, zero, c->x.desc, c->x.data, c->y.desc, c->y.data,
                                                c->scale.desc, c->scale.data, c->shift.data, c->mean.data,
                                                c->variance.data, c->epsilon));
    return cudnn_run_posts(c);
}

/* Over one axis: what stands before it is the batch, what stands behind it is space. */
int cudnn_describe_softmax(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    const bz_operand *x = &c->operand[0];
    int axis = (int)p->softmax.axis;
    if (c->nhwc && axis == 1)
        return cudnn_describe_both(c, why);
    if (c->nhwc)
        return bz_fail(why, BZ_INCOMPLETE, "channels last, softmax goes over the channels only");
    int64_t dim[4] = {1, x->dim[axis], 1, 1}, stride[4] = {0, 0, 1, 1};
    for (int i = 0; i < x->rank; i++)
        dim[i < axis ? 0 : 2] *= i == axis ? 1 : x->dim[i];
    stride[1] = dim[2];
    stride[0] = dim[1] * dim[2];
    return describe_in(c, 4, dim, stride, why);
}

/* Without subtracting the maximum first (`fast`) it is another function where exponents overflow. */
cudnnStatus_t cudnn_run_softmax(call *c)
{
    bool log = c->problem->kind == BZ_PROBLEM_LOGSOFTMAX;
    return cudnnSoftmaxForward(c->handle, log ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                               cudnn_scalar(c, &c->one), c->x.desc, c->x.data, cudnn_scalar(c, &c->zero), c->y.desc,
                               c->y.data);
}

cudnnStatus_t cudnn_run_softmax_grad(call *c)
{
    bool log = c->problem->kind == BZ_PROBLEM_LOGSOFTMAX_GRAD;
    return cudnnSoftmaxBackward(c->handle, log ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                cudnn_scalar(c, &c->one), c->x.desc, c->x.data, c->b.desc, c->b.data,
                                cudnn_scalar(c, &c->zero), c->y.desc, c->y.data);
}

/* cuDNN divides alpha by the size, as ONNX does. */
int cudnn_describe_lrn(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    if (p->lrn.size > CUDNN_LRN_MAX_N || (double)p->lrn.bias < CUDNN_LRN_MIN_K ||
        (double)p->lrn.beta < CUDNN_LRN_MIN_BETA)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's LRN goes over at most %d channels, with a bias and beta above 0",
                       CUDNN_LRN_MAX_N);
    if (cudnn_describe_both(c, why))
        return -1;
    cudnnStatus_t status = cudnnCreateLRNDescriptor(&c->lrn);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnSetLRNDescriptor(c->lrn, (unsigned)p->lrn.size, (double)p->lrn.alpha, (double)p->lrn.beta,
                                       (double)p->lrn.bias);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the LRN", status);
}

cudnnStatus_t cudnn_run_lrn(call *c)
{
    return cudnnLRNCrossChannelForward(c->handle, c->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, cudnn_scalar(c, &c->one),
                                       c->x.desc, c->x.data, cudnn_scalar(c, &c->zero), c->y.desc, c->y.data);
}

/* Element by element: dimensions beyond five are one. */
static int describe_flat(call *c, bz_error *why)
{
    if (c->operand[0].rank <= 5)
        return cudnn_describe_both(c, why);
    int64_t dim[4] = {1, 1, 1, c->operand[0].count}, stride[4] = {dim[3], dim[3], dim[3], 1};
    return describe_in(c, 4, dim, stride, why);
}

int cudnn_describe_activation(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    cudnnStatus_t status =
        cudnn_make_activation(&c->activation[0], p->activation.fn, p->activation.alpha, p->activation.beta);
    if (status == CUDNN_STATUS_NOT_SUPPORTED)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN has no activation %s with these parameters",
                       bz_fn_name(p->activation.fn));
    if (status != CUDNN_STATUS_SUCCESS)
        return bz_cudnn_failed(why, "describing the activation", status);
    return describe_flat(c, why);
}

cudnnStatus_t cudnn_run_activation(call *c)
{
    return cudnnActivationForward(c->handle, c->activation[0], cudnn_scalar(c, &c->one), c->x.desc, c->x.data,
                                  cudnn_scalar(c, &c->zero), c->y.desc, c->y.data);
}

/* The call has x and y; a problem has one of them. ReLUs tell their slope from either, sigmoid and tanh from y alone; of the
 * others nobody says which of the two it reads. */
int cudnn_describe_activation_grad(call *c, bz_error *why)
{
    bz_fn fn = c->problem->activation.fn;
    bool of_y = fn == BZ_FN_SIGMOID || fn == BZ_FN_TANH;
    if (!of_y && fn != BZ_FN_RELU && fn != BZ_FN_CLIP)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's call for the gradient of %s reads both x and y", bz_fn_name(fn));
    if (of_y && !c->problem->activation.of_y)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN tells the slope of %s from its result", bz_fn_name(fn));
    return cudnn_describe_activation(c, why);
}

cudnnStatus_t cudnn_run_activation_grad(call *c)
{
    return cudnnActivationBackward(c->handle, c->activation[0], cudnn_scalar(c, &c->one), c->x.desc, c->x.data,
                                   c->b.desc, c->b.data, c->x.desc, c->x.data, cudnn_scalar(c, &c->zero), c->y.desc,
                                   c->y.data);
}

int cudnn_describe_dropout(call *c, bz_error *why)
{
    if (c->problem->dtype_y != c->problem->dtype)
        return bz_fail(why, BZ_INCOMPLETE, "dropout changes no data type");
    if (c->problem->dropout.training)
        return bz_fail(why, BZ_INCOMPLETE, "which elements it keeps lies in a reserve of cuDNN's own");
    if (describe_flat(c, why))
        return -1;
    cudnnStatus_t status = cudnnCreateDropoutDescriptor(&c->dropout);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "describing the dropout", status);
}

/* Filling the states with random numbers is done once per program. */
int cudnn_prepare_dropout(call *c, session *s, bz_error *err)
{
    size_t size = 0;
    (void)s;
    cudnnStatus_t status = cudnnDropoutGetStatesSize(c->handle, &size);
    status = status ? status : cudnnDropoutGetReserveSpaceSize(c->x.desc, &c->reserve_size);
    if (status != CUDNN_STATUS_SUCCESS)
        return bz_cudnn_failed(err, "asking what dropout needs", status);
    if (bz_cuda_alloc(size, &c->states, err) || bz_cuda_alloc(c->reserve_size, &c->reserve, err))
        return -1;
    status = cudnnSetDropoutDescriptor(c->dropout, c->handle, c->problem->dropout.ratio, c->states, size, 2020);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(err, "making random numbers", status);
}

cudnnStatus_t cudnn_run_dropout(call *c)
{
    return cudnnDropoutForward(c->handle, c->dropout, c->x.desc, c->x.data, c->y.desc, c->y.data, c->reserve,
                               c->reserve_size);
}

void cudnn_release_dropout(call *c)
{
    if (c->dropout)
        cudnnDestroyDropoutDescriptor(c->dropout);
    bz_cuda_free(c->states);
    bz_cuda_free(c->reserve);
}
