/* A stand-in for what training calls of cuDNN: gradients, and normalization by the statistics of a batch. Calls are
 * recorded, and computed by their definition in the host's memory, from what the descriptors say. */
#include "tests/standin/record.h"
#include "tests/standin/tensors.h"

#include "runtime/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

standin_desc *standin_desc_of(const void *object)
{
    static standin_desc all[MOST];
    static int n;
    for (int i = 0; i < n; i++)
        if (all[i].of == object)
            return &all[i];
    n = n == MOST ? 0 : n;
    all[n] = (standin_desc){.of = object};
    return &all[n++];
}

void standin_desc_tensor(const void *object, cudnnDataType_t type, int n, const int *dims, const int *strides)
{
    standin_desc *d = standin_desc_of(object);
    d->type = type;
    d->n = n;
    memcpy(d->dim, dims, (size_t)n * sizeof *dims);
    memcpy(d->stride, strides, (size_t)n * sizeof *strides);
}

void standin_desc_filter(const void *object, cudnnDataType_t type, cudnnTensorFormat_t format, int n, const int *dims)
{
    int stride[8], step = format == CUDNN_TENSOR_NHWC ? dims[1] : 1;
    stride[1] = 1;
    for (int i = n; i-- > 2; step *= dims[i])
        stride[i] = step;
    if (format != CUDNN_TENSOR_NHWC) {
        stride[1] = step;
        step *= dims[1];
    }
    stride[0] = step;
    standin_desc_tensor(object, type, n, dims, stride);
}

static bz_dtype dtype_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_HALF ? BZ_F16 : type == CUDNN_DATA_BFLOAT16 ? BZ_BF16 : BZ_F32;
}

static int64_t where(const standin_desc *d, const int *at)
{
    int64_t v = 0;
    for (int i = 0; i < d->n; i++)
        v += (int64_t)(d->dim[i] == 1 ? 0 : at[i]) * d->stride[i];
    return v;
}

static double get(const standin_desc *d, const void *data, const int *at)
{
    float v;
    bz_dtype t = dtype_of(d->type);
    bz_values_decode(t, (const char *)data + where(d, at) * bz_dtype_bits(t) / 8, &v, 1);
    return (double)v;
}

static void put(const standin_desc *d, void *data, const int *at, double value)
{
    float v = (float)value;
    bz_dtype t = dtype_of(d->type);
    bz_values_encode(t, &v, (char *)data + where(d, at) * bz_dtype_bits(t) / 8, 1);
}

/* The next element in plain order; false behind the last. */
static bool next(const standin_desc *d, int *at)
{
    for (int i = d->n; i--; at[i] = 0)
        if (++at[i] < d->dim[i])
            return true;
    return false;
}

static bool next_in(int n, const int *dim, int *at)
{
    for (int i = n; i--; at[i] = 0)
        if (++at[i] < dim[i])
            return true;
    return false;
}

static double scalar(const void *p)
{
    float f;
    memcpy(&f, p, sizeof f);
    return (double)f;
}

/* Where element k of the window that gave y stands in x; false where that is padding. */
static bool under(const standin_desc *geometry, const standin_desc *x, const int *y, const int *k, int *out)
{
    bool inside = true;
    for (int i = 0; i + 2 < x->n; i++) {
        out[2 + i] = y[2 + i] * geometry->step[i] + k[i] * geometry->dilation[i] - geometry->pad[i];
        inside &= out[2 + i] >= 0 && out[2 + i] < x->dim[2 + i];
    }
    return inside;
}

static void note(const char *name, const void *alpha, const void *beta, const void *out_desc, const void *out)
{
    standin_record("%s alpha=%g beta=%g -> %s:%s", name, scalar(alpha), scalar(beta), standin_name(out_desc),
                   standin_name(out));
    standin_computed = true;
}

/* Of each product of the forward pass what it adds to the gradient of x (dx) or of w (dw), one of which is NULL. */
static void add_products(const standin_desc *c, const standin_desc *x, const standin_desc *w, const standin_desc *y,
                         const void *xv, const void *wv, const void *dy, double *dx, double *dw)
{
    int at[8] = {0}, from[8], weight[8], k[8];
    do {
        memset(k, 0, sizeof k);
        do {
            if (!under(c, x, at, k, from))
                continue;
            for (int i = 0; i < w->dim[1]; i++) {
                from[0] = at[0];
                from[1] = at[1] / (w->dim[0] / c->group) * w->dim[1] + i;
                weight[0] = at[1];
                weight[1] = i;
                memcpy(weight + 2, k, (size_t)(w->n - 2) * sizeof *k);
                if (dx)
                    dx[where(x, from)] += get(y, dy, at) * get(w, wv, weight);
                else
                    dw[where(w, weight)] += get(y, dy, at) * get(x, xv, from);
            }
        } while (next_in(w->n - 2, w->dim + 2, k));
    } while (next(y, at));
}

static void write_all(const standin_desc *d, void *to, const double *sum, double alpha)
{
    int at[8] = {0};
    do
        put(d, to, at, alpha * sum[where(d, at)]);
    while (next(d, at));
}

static int64_t span_of(const standin_desc *d)
{
    int64_t v = 1;
    for (int i = 0; i < d->n; i++)
        v += (int64_t)(d->dim[i] - 1) * d->stride[i];
    return v;
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void *alpha, const cudnnFilterDescriptor_t wd,
                                           const void *w, const cudnnTensorDescriptor_t dyd, const void *dy,
                                           const cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdDataAlgo_t algo,
                                           void *space, size_t size, const void *beta,
                                           const cudnnTensorDescriptor_t dxd, void *dx)
{
    const standin_desc *out = standin_desc_of(dxd);
    double *sum = calloc((size_t)span_of(out), sizeof *sum);
    (void)h;
    standin_record("cudnnConvolutionBackwardData %s:%s %s:%s %s algo=%d workspace=%s,%zu", standin_name(wd),
                   standin_name(w), standin_name(dyd), standin_name(dy), standin_name(c), (int)algo,
                   standin_name(size ? space : NULL), size);
    note("   ", alpha, beta, dxd, dx);
    add_products(standin_desc_of(c), out, standin_desc_of(wd), standin_desc_of(dyd), NULL, w, dy, sum, NULL);
    write_all(out, dx, sum, scalar(alpha));
    free(sum);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t dy,
                                                            const cudnnConvolutionDescriptor_t c,
                                                            const cudnnFilterDescriptor_t dw, const int wanted, int *n,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *perf)
{
    standin_record("cudnnGetConvolutionBackwardFilterAlgorithm_v7 %s %s %s %s %s wanted=%d", standin_name(h),
                   standin_name(x), standin_name(dy), standin_name(c), standin_name(dw), wanted);
    *n = 1;
    perf[0] = (cudnnConvolutionBwdFilterAlgoPerf_t){
        .algo = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, .status = CUDNN_STATUS_SUCCESS, .mathType = CUDNN_TENSOR_OP_MATH};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t c,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algo, size_t *size)
{
    standin_record("cudnnGetConvolutionBackwardFilterWorkspaceSize %s %s %s %s %s algo=%d", standin_name(h),
                   standin_name(x), standin_name(dy), standin_name(c), standin_name(dw), (int)algo);
    *size = 1024;
    return algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t xd,
                                             const void *x, const cudnnTensorDescriptor_t dyd, const void *dy,
                                             const cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdFilterAlgo_t algo,
                                             void *space, size_t size, const void *beta,
                                             const cudnnFilterDescriptor_t dwd, void *dw)
{
    const standin_desc *out = standin_desc_of(dwd);
    double *sum = calloc((size_t)span_of(out), sizeof *sum);
    (void)h;
    standin_record("cudnnConvolutionBackwardFilter %s:%s %s:%s %s algo=%d workspace=%s,%zu", standin_name(xd),
                   standin_name(x), standin_name(dyd), standin_name(dy), standin_name(c), (int)algo,
                   standin_name(size ? space : NULL), size);
    note("   ", alpha, beta, dwd, dw);
    add_products(standin_desc_of(c), standin_desc_of(xd), out, standin_desc_of(dyd), x, NULL, dy, NULL, sum);
    write_all(out, dw, sum, scalar(alpha));
    free(sum);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t dyd,
                                           const void *dy, const void *beta, const cudnnTensorDescriptor_t dbd,
                                           void *db)
{
    const standin_desc *in = standin_desc_of(dyd), *out = standin_desc_of(dbd);
    double *sum = calloc((size_t)span_of(out), sizeof *sum);
    int at[8] = {0};
    (void)h;
    standin_record("cudnnConvolutionBackwardBias %s:%s", standin_name(dyd), standin_name(dy));
    note("   ", alpha, beta, dbd, db);
    do
        sum[where(out, at)] += get(in, dy, at);
    while (next(in, at));
    write_all(out, db, sum, scalar(alpha));
    free(sum);
    return CUDNN_STATUS_SUCCESS;
}

/* A bias behind a transposed convolution: what was computed stays so. */
cudnnStatus_t cudnnAddTensor(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t ad, const void *a,
                             const void *beta, const cudnnTensorDescriptor_t cd, void *c)
{
    const standin_desc *in = standin_desc_of(ad), *out = standin_desc_of(cd);
    int at[8] = {0};
    standin_record("cudnnAddTensor %s alpha=%g %s:%s beta=%g -> %s:%s", standin_name(h), scalar(alpha),
                   standin_name(ad), standin_name(a), scalar(beta), standin_name(cd), standin_name(c));
    do
        put(out, c, at, scalar(alpha) * get(in, a, at) + scalar(beta) * get(out, c, at));
    while (standin_computed && next(out, at));
    return CUDNN_STATUS_SUCCESS;
}

/* The average passes a share of dy on to each element of its window that is none of the padding. */
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t h, const cudnnPoolingDescriptor_t p, const void *alpha,
                                   const cudnnTensorDescriptor_t yd, const void *y, const cudnnTensorDescriptor_t dyd,
                                   const void *dy, const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                   const cudnnTensorDescriptor_t dxd, void *dx)
{
    const standin_desc *pool = standin_desc_of(p), *in = standin_desc_of(dyd), *out = standin_desc_of(dxd);
    double *sum = calloc((size_t)span_of(out), sizeof *sum);
    int at[8] = {0}, k[8], to[8], n = in->n - 2;
    (void)h;
    standin_record("cudnnPoolingBackward %s y=%s:%s dy=%s:%s x=%s:%s", standin_name(p), standin_name(yd),
                   standin_name(y), standin_name(dyd), standin_name(dy), standin_name(xd), standin_name(x));
    note("   ", alpha, beta, dxd, dx);
    do {
        int inside = 0, all = 0;
        memset(k, 0, sizeof k);
        do {
            inside += under(pool, out, at, k, to);
            all++;
        } while (next_in(n, pool->window, k));
        int by = pool->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? all : inside;
        memset(k, 0, sizeof k);
        do {
            to[0] = at[0];
            to[1] = at[1];
            if (under(pool, out, at, k, to))
                sum[where(out, to)] += get(in, dy, at) / by;
        } while (next_in(n, pool->window, k));
    } while (next(in, at));
    write_all(out, dx, sum, scalar(alpha));
    free(sum);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t h, cudnnActivationDescriptor_t a, const void *alpha,
                                      const cudnnTensorDescriptor_t yd, const void *y,
                                      const cudnnTensorDescriptor_t dyd, const void *dy,
                                      const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                      const cudnnTensorDescriptor_t dxd, void *dx)
{
    const standin_desc *in = standin_desc_of(yd), *diff = standin_desc_of(dyd), *out = standin_desc_of(dxd);
    int at[8] = {0};
    (void)h;
    standin_record("cudnnActivationBackward %s y=%s:%s dy=%s:%s x=%s:%s", standin_name(a), standin_name(yd),
                   standin_name(y), standin_name(dyd), standin_name(dy), standin_name(xd), standin_name(x));
    note("   ", alpha, beta, dxd, dx);
    do {
        double v = get(in, y, at), slope = v > 0;
        switch (standin_desc_of(a)->mode) {
        case CUDNN_ACTIVATION_SIGMOID:
            slope = v * (1 - v);
            break;
        case CUDNN_ACTIVATION_TANH:
            slope = 1 - v * v;
            break;
        default:
            break;
        }
        put(out, dx, at, scalar(alpha) * slope * get(diff, dy, at));
    } while (next(out, at));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t h, cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode,
                                   const void *alpha, const cudnnTensorDescriptor_t yd, const void *y,
                                   const cudnnTensorDescriptor_t dyd, const void *dy, const void *beta,
                                   const cudnnTensorDescriptor_t dxd, void *dx)
{
    const standin_desc *in = standin_desc_of(yd), *diff = standin_desc_of(dyd), *out = standin_desc_of(dxd);
    bool log = algo == CUDNN_SOFTMAX_LOG;
    int at[8] = {0}, of[8];
    (void)h;
    standin_record("cudnnSoftmaxBackward algo=%d mode=%d y=%s:%s dy=%s:%s", (int)algo, (int)mode, standin_name(yd),
                   standin_name(y), standin_name(dyd), standin_name(dy));
    note("   ", alpha, beta, dxd, dx);
    do {
        double sum = 0, own = get(in, y, at);
        memcpy(of, at, sizeof of);
        for (of[1] = 0; of[1] < in->dim[1]; of[1]++)
            sum += get(diff, dy, of) * (log ? 1 : get(in, y, of));
        put(out, dx, at, scalar(alpha) * (log ? get(diff, dy, at) - exp(own) * sum : own * (get(diff, dy, at) - sum)));
    } while (next(out, at));
    return CUDNN_STATUS_SUCCESS;
}

/* Sums over all elements of a channel: of dy, or of x where there is none; and of its products with (x - mean) · root. */
static void sums_of(const standin_desc *x, const void *xv, const standin_desc *dy, const void *dyv, int channel,
                    double mean, double root, double *plain, double *along, int *n)
{
    int at[8] = {0};
    *plain = *along = 0;
    *n = 0;
    do {
        if (at[1] != channel)
            continue;
        double v = (get(x, xv, at) - mean) * root, g = dyv ? get(dy, dyv, at) : v;
        *plain += g;
        *along += g * v;
        ++*n;
    } while (next(x, at));
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(cudnnHandle_t h, cudnnBatchNormMode_t mode, const void *alpha,
                                                     const void *beta, const cudnnTensorDescriptor_t xd, const void *x,
                                                     const cudnnTensorDescriptor_t yd, void *y,
                                                     const cudnnTensorDescriptor_t bd, const void *scale,
                                                     const void *shift, double factor, void *running_mean,
                                                     void *running_variance, double epsilon, void *mean, void *root)
{
    const standin_desc *in = standin_desc_of(xd), *out = standin_desc_of(yd), *channels = standin_desc_of(bd);
    int at[8] = {0};
    (void)h;
    standin_record("cudnnBatchNormalizationForwardTraining mode=%d %s:%s %s scale=%s shift=%s factor=%g running=%s,%s "
                   "epsilon=%g mean=%s root=%s",
                   (int)mode, standin_name(xd), standin_name(x), standin_name(bd), standin_name(scale),
                   standin_name(shift), factor, standin_name(running_mean), standin_name(running_variance), epsilon,
                   standin_name(mean), standin_name(root));
    note("   ", alpha, beta, yd, y);
    for (int c = 0; c < in->dim[1]; c++) {
        double plain, along, moment;
        int n, of[8] = {0, c};
        sums_of(in, x, NULL, NULL, c, 0, 1, &plain, &along, &n);
        moment = plain / n;
        sums_of(in, x, NULL, NULL, c, moment, 1, &plain, &along, &n);
        put(channels, mean, of, moment);
        put(channels, root, of, 1 / sqrt(along / n + epsilon));
    }
    do
        put(out, y, at,
            (get(in, x, at) - get(channels, mean, at)) * get(channels, root, at) * get(channels, scale, at) +
                get(channels, shift, at));
    while (next(in, at));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationBackward(cudnnHandle_t h, cudnnBatchNormMode_t mode, const void *alpha,
                                              const void *beta, const void *alpha_parameters,
                                              const void *beta_parameters, const cudnnTensorDescriptor_t xd,
                                              const void *x, const cudnnTensorDescriptor_t dyd, const void *dy,
                                              const cudnnTensorDescriptor_t dxd, void *dx,
                                              const cudnnTensorDescriptor_t bd, const void *scale, void *dscale,
                                              void *dshift, double epsilon, const void *mean, const void *root)
{
    const standin_desc *in = standin_desc_of(xd), *diff = standin_desc_of(dyd), *out = standin_desc_of(dxd);
    const standin_desc *channels = standin_desc_of(bd);
    (void)h;
    standin_record("cudnnBatchNormalizationBackward mode=%d %s:%s dy=%s:%s %s scale=%s epsilon=%g mean=%s root=%s",
                   (int)mode, standin_name(xd), standin_name(x), standin_name(dyd), standin_name(dy), standin_name(bd),
                   standin_name(scale), epsilon, standin_name(mean), standin_name(root));
    note("    parameters", alpha_parameters, beta_parameters, dscale, dshift);
    note("   ", alpha, beta, dxd, dx);
    for (int c = 0; c < in->dim[1]; c++) {
        double plain, along;
        int n, at[8] = {0}, of[8] = {0, c};
        double middle = get(channels, mean, of), r = get(channels, root, of);
        sums_of(in, x, diff, dy, c, middle, r, &plain, &along, &n);
        put(channels, dscale, of, along);
        put(channels, dshift, of, plain);
        do
            if (at[1] == c)
                put(out, dx, at,
                    scalar(alpha) * get(channels, scale, of) * r *
                        (get(diff, dy, at) - plain / n - (get(in, x, at) - middle) * r * along / n));
        while (next(in, at));
    }
    return CUDNN_STATUS_SUCCESS;
}
