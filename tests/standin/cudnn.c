/* A stand-in for cuDNN's interface without graphs: calls recorded, nothing computed. What training calls: cudnn_grad.c. */
#include "tests/standin/record.h"
#include "tests/standin/tensors.h"

#include <cudnn.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_NAME(names, i) ((unsigned)(i) < sizeof(names) / sizeof *(names) ? (names)[i] : "?")

static const char *const TYPES[] = {"float", "double",  "half",    "int8",     "int32", "int8x4",
                                    "uint8", "uint8x4", "int8x32", "bfloat16", "int64", "boolean"};
static const char *const MATH[] = {"default", "tensor_op", "tensor_op_allow_conversion", "fma"};
static const char *const FORMATS[] = {"nchw", "nhwc", "nchw_vect_c"};

#define OBJECT(type, sort)                                                                                             \
    cudnnStatus_t cudnnCreate##type##Descriptor(cudnn##type##Descriptor_t *out)                                        \
    {                                                                                                                  \
        *out = standin_new(sort);                                                                                      \
        return CUDNN_STATUS_SUCCESS;                                                                                   \
    }                                                                                                                  \
    cudnnStatus_t cudnnDestroy##type##Descriptor(cudnn##type##Descriptor_t desc)                                       \
    {                                                                                                                  \
        (void)desc;                                                                                                    \
        return CUDNN_STATUS_SUCCESS;                                                                                   \
    }

OBJECT(Tensor, "tensor")
OBJECT(Filter, "filter")
OBJECT(Convolution, "convolution")
OBJECT(Activation, "activation")
OBJECT(Pooling, "pooling")
OBJECT(LRN, "lrn")
OBJECT(OpTensor, "op")
OBJECT(ReduceTensor, "reduce")
OBJECT(RNN, "rnn")
OBJECT(RNNData, "rnndata")
OBJECT(Dropout, "dropout")

/* Alpha and beta are read as floats; tests that run f64 know that. */
static double scalar(const void *p)
{
    float f;
    memcpy(&f, p, sizeof f);
    return (double)f;
}

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_NOT_SUPPORTED ? "not supported" : "an error of the stand-in";
}

void cudnnGetLastErrorString(char *message, size_t size)
{
    snprintf(message, size, "%s", standin_ill ? "it is ill\nand says so at length" : "");
}

/* Only replays have several. */
static void tell_handle(cudnnHandle_t handle)
{
    if (strcmp(standin_name(handle), "cudnn1") != 0)
        standin_record("by %s:", standin_name(handle));
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = standin_new("cudnn");
    standin_record("cudnnCreate %s", standin_name(*handle));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    standin_record("cudnnDestroy %s", standin_name(handle));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    standin_record("cudnnSetStream %s %s", standin_name(handle), standin_name(stream));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t t, cudnnDataType_t type, int n, const int *dims,
                                         const int *strides)
{
    standin_record("cudnnSetTensorNdDescriptor %s %s dims=%s strides=%s", standin_name(t), ARRAY_NAME(TYPES, type),
                   standin_ints(n, dims), standin_ints(n, strides));
    standin_desc_tensor(t, type, n, dims, strides);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t t, cudnnTensorFormat_t format, cudnnDataType_t type,
                                           int n, const int *dims)
{
    standin_record("cudnnSetTensorNdDescriptorEx %s %s %s dims=%s", standin_name(t), ARRAY_NAME(FORMATS, format),
                   ARRAY_NAME(TYPES, type), standin_ints(n, dims));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t c, cudnnReorderType_t type)
{
    standin_record("cudnnSetConvolutionReorderType %s %d", standin_name(c), (int)type);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnReorderFilterAndBias(cudnnHandle_t h, const cudnnFilterDescriptor_t f, cudnnReorderType_t type,
                                        const void *w, void *reordered, int with_bias, const void *bias,
                                        void *reordered_bias)
{
    standin_record("cudnnReorderFilterAndBias %s %s type=%d %s -> %s bias=%d %s -> %s", standin_name(h),
                   standin_name(f), (int)type, standin_name(w), standin_name(reordered), with_bias, standin_name(bias),
                   standin_name(reordered_bias));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t f, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int n, const int *dims)
{
    standin_record("cudnnSetFilterNdDescriptor %s %s %s dims=%s", standin_name(f), ARRAY_NAME(TYPES, type),
                   ARRAY_NAME(FORMATS, format), standin_ints(n, dims));
    standin_desc_filter(f, type, format, n, dims);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t c, int n, const int *pad, const int *stride,
                                              const int *dilation, cudnnConvolutionMode_t mode, cudnnDataType_t compute)
{
    standin_record("cudnnSetConvolutionNdDescriptor %s pad=%s stride=%s dilation=%s %s compute=%s", standin_name(c),
                   standin_ints(n, pad), standin_ints(n, stride), standin_ints(n, dilation),
                   mode == CUDNN_CROSS_CORRELATION ? "cross_correlation" : "convolution", ARRAY_NAME(TYPES, compute));
    standin_desc *d = standin_desc_of(c);
    memcpy(d->pad, pad, (size_t)n * sizeof *pad);
    memcpy(d->step, stride, (size_t)n * sizeof *stride);
    memcpy(d->dilation, dilation, (size_t)n * sizeof *dilation);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t c, int n)
{
    standin_record("cudnnSetConvolutionGroupCount %s %d", standin_name(c), n);
    standin_desc_of(c)->group = n;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t math)
{
    standin_record("cudnnSetConvolutionMathType %s %s", standin_name(c), ARRAY_NAME(MATH, math));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t a, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double coefficient)
{
    static const char *const MODES[] = {"sigmoid", "relu", "tanh", "clipped_relu", "elu", "identity", "swish"};
    standin_record("cudnnSetActivationDescriptor %s %s nan=%d coefficient=%g", standin_name(a), ARRAY_NAME(MODES, mode),
                   (int)nan, coefficient);
    standin_desc_of(a)->mode = (int)mode;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t a, double beta)
{
    standin_record("cudnnSetActivationDescriptorSwishBeta %s %g", standin_name(a), beta);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t p, const cudnnPoolingMode_t mode,
                                          const cudnnNanPropagation_t nan, int n, const int *window, const int *pad,
                                          const int *stride)
{
    static const char *const MODES[] = {"max", "average_include", "average_exclude", "max_deterministic"};
    standin_record("cudnnSetPoolingNdDescriptor %s %s nan=%d window=%s pad=%s stride=%s", standin_name(p),
                   ARRAY_NAME(MODES, mode), (int)nan, standin_ints(n, window), standin_ints(n, pad),
                   standin_ints(n, stride));
    standin_desc *d = standin_desc_of(p);
    d->mode = (int)mode;
    for (int i = 0; i < n; i++) {
        d->window[i] = window[i];
        d->pad[i] = pad[i];
        d->step[i] = stride[i];
        d->dilation[i] = 1;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t l, unsigned n, double alpha, double beta, double k)
{
    standin_record("cudnnSetLRNDescriptor %s n=%u alpha=%g beta=%g k=%g", standin_name(l), n, alpha, beta, k);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t o, cudnnOpTensorOp_t op, cudnnDataType_t compute,
                                         cudnnNanPropagation_t nan)
{
    static const char *const OPS[] = {"add", "mul", "min", "max", "sqrt", "not"};
    standin_record("cudnnSetOpTensorDescriptor %s %s compute=%s nan=%d", standin_name(o), ARRAY_NAME(OPS, op),
                   ARRAY_NAME(TYPES, compute), (int)nan);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t r, cudnnReduceTensorOp_t op,
                                             cudnnDataType_t compute, cudnnNanPropagation_t nan,
                                             cudnnReduceTensorIndices_t indices, cudnnIndicesType_t type)
{
    static const char *const OPS[] = {"add", "mul", "min", "max", "amax", "avg", "norm1", "norm2", "mul_no_zeros"};
    standin_record("cudnnSetReduceTensorDescriptor %s %s compute=%s nan=%d indices=%d,%d", standin_name(r),
                   ARRAY_NAME(OPS, op), ARRAY_NAME(TYPES, compute), (int)nan, (int)indices, (int)type);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, const int wanted, int *n,
                                                     cudnnConvolutionFwdAlgoPerf_t *perf)
{
    standin_record("cudnnGetConvolutionForwardAlgorithm_v7 %s %s %s %s %s wanted=%d", standin_name(h), standin_name(x),
                   standin_name(w), standin_name(c), standin_name(y), wanted);
    *n = 1;
    perf[0] = (cudnnConvolutionFwdAlgoPerf_t){.algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                              .status = CUDNN_STATUS_SUCCESS,
                                              .mathType = CUDNN_TENSOR_OP_MATH};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t h, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t dy,
                                                          const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t dx, const int wanted, int *n,
                                                          cudnnConvolutionBwdDataAlgoPerf_t *perf)
{
    standin_record("cudnnGetConvolutionBackwardDataAlgorithm_v7 %s %s %s %s %s wanted=%d", standin_name(h),
                   standin_name(w), standin_name(dy), standin_name(c), standin_name(dx), wanted);
    *n = 1;
    perf[0] = (cudnnConvolutionBwdDataAlgoPerf_t){
        .algo = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, .status = CUDNN_STATUS_SUCCESS, .mathType = CUDNN_TENSOR_OP_MATH};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t c,
                                                      const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
                                                      size_t *size)
{
    standin_record("cudnnGetConvolutionForwardWorkspaceSize %s %s %s %s %s algo=%d", standin_name(h), standin_name(x),
                   standin_name(w), standin_name(c), standin_name(y), (int)algo);
    *size = algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ? 4096 : 0;
    return algo == CUDNN_CONVOLUTION_FWD_ALGO_DIRECT ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t h, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t c,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algo, size_t *size)
{
    standin_record("cudnnGetConvolutionBackwardDataWorkspaceSize %s %s %s %s %s algo=%d", standin_name(h),
                   standin_name(w), standin_name(dy), standin_name(c), standin_name(dx), (int)algo);
    *size = 2048;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t h, const cudnnReduceTensorDescriptor_t r,
                                             const cudnnTensorDescriptor_t a, const cudnnTensorDescriptor_t c,
                                             size_t *size)
{
    standin_record("cudnnGetReductionWorkspaceSize %s %s %s %s", standin_name(h), standin_name(r), standin_name(a),
                   standin_name(c));
    *size = 512;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t xd,
                                      const void *x, const cudnnFilterDescriptor_t wd, const void *w,
                                      const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algo, void *space,
                                      size_t size, const void *beta, const cudnnTensorDescriptor_t yd, void *y)
{
    tell_handle(h);
    standin_record("cudnnConvolutionForward alpha=%g %s:%s %s:%s %s algo=%d", scalar(alpha), standin_name(xd),
                   standin_name(x), standin_name(wd), standin_name(w), standin_name(c), (int)algo);
    standin_record("    workspace=%s,%zu beta=%g -> %s:%s", standin_name(size ? space : NULL), size, scalar(beta),
                   standin_name(yd), standin_name(y));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnConvolutionBiasActivationForward(cudnnHandle_t h, const void *alpha1, const cudnnTensorDescriptor_t xd,
                                      const void *x, const cudnnFilterDescriptor_t wd, const void *w,
                                      const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algo, void *space,
                                      size_t size, const void *alpha2, const cudnnTensorDescriptor_t zd, const void *z,
                                      const cudnnTensorDescriptor_t bd, const void *b,
                                      const cudnnActivationDescriptor_t a, const cudnnTensorDescriptor_t yd, void *y)
{
    tell_handle(h);
    standin_record("cudnnConvolutionBiasActivationForward alpha1=%g %s:%s %s:%s %s algo=%d", scalar(alpha1),
                   standin_name(xd), standin_name(x), standin_name(wd), standin_name(w), standin_name(c), (int)algo);
    standin_record("    workspace=%s,%zu alpha2=%g z=%s:%s bias=%s:%s %s -> %s:%s", standin_name(size ? space : NULL),
                   size, scalar(alpha2), standin_name(zd), standin_name(z), standin_name(bd), standin_name(b),
                   standin_name(a), standin_name(yd), standin_name(y));
    return CUDNN_STATUS_SUCCESS;
}

/* Most calls are alpha, a descriptor of their own, x, beta, y. */
static cudnnStatus_t simple(const char *name, const void *own, const void *alpha, const void *xd, const void *x,
                            const void *beta, const void *yd, const void *y)
{
    standin_record("%s %s alpha=%g %s:%s beta=%g -> %s:%s", name, standin_name(own), scalar(alpha), standin_name(xd),
                   standin_name(x), scalar(beta), standin_name(yd), standin_name(y));
    standin_computed = false;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t h, const cudnnPoolingDescriptor_t p, const void *alpha,
                                  const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                  const cudnnTensorDescriptor_t yd, void *y)
{
    tell_handle(h);
    return simple("cudnnPoolingForward", p, alpha, xd, x, beta, yd, y);
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t h, cudnnActivationDescriptor_t a, const void *alpha,
                                     const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                     const cudnnTensorDescriptor_t yd, void *y)
{
    tell_handle(h);
    return simple("cudnnActivationForward", a, alpha, xd, x, beta, yd, y);
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t xd, const void *x,
                                   const void *beta, const cudnnTensorDescriptor_t yd, void *y)
{
    return simple("cudnnTransformTensor", h, alpha, xd, x, beta, yd, y);
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t h, const cudnnTensorDescriptor_t yd, void *y, const void *alpha)
{
    tell_handle(h);
    standin_record("cudnnScaleTensor %s %s alpha=%g", standin_name(yd), standin_name(y), scalar(alpha));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t h, cudnnLRNDescriptor_t l, cudnnLRNMode_t mode,
                                          const void *alpha, const cudnnTensorDescriptor_t xd, const void *x,
                                          const void *beta, const cudnnTensorDescriptor_t yd, void *y)
{
    (void)h, (void)mode;
    return simple("cudnnLRNCrossChannelForward", l, alpha, xd, x, beta, yd, y);
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t h, cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode,
                                  const void *alpha, const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                  const cudnnTensorDescriptor_t yd, void *y)
{
    static const char *const ALGOS[] = {"cudnnSoftmaxForward fast", "cudnnSoftmaxForward accurate",
                                        "cudnnSoftmaxForward log"};
    standin_record("cudnnSoftmaxForward mode=%s", mode == CUDNN_SOFTMAX_MODE_CHANNEL ? "channel" : "instance");
    return simple(ARRAY_NAME(ALGOS, algo), h, alpha, xd, x, beta, yd, y);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t h, cudnnBatchNormMode_t mode, const void *alpha,
                                                      const void *beta, const cudnnTensorDescriptor_t xd, const void *x,
                                                      const cudnnTensorDescriptor_t yd, void *y,
                                                      const cudnnTensorDescriptor_t bd, const void *scale,
                                                      const void *shift, const void *mean, const void *variance,
                                                      double epsilon)
{
    tell_handle(h);
    standin_record("cudnnBatchNormalizationForwardInference mode=%d alpha=%g beta=%g %s:%s -> %s:%s", (int)mode,
                   scalar(alpha), scalar(beta), standin_name(xd), standin_name(x), standin_name(yd), standin_name(y));
    standin_record("    %s scale=%s shift=%s mean=%s variance=%s epsilon=%g", standin_name(bd), standin_name(scale),
                   standin_name(shift), standin_name(mean), standin_name(variance), epsilon);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnOpTensor(cudnnHandle_t h, const cudnnOpTensorDescriptor_t o, const void *alpha1,
                            const cudnnTensorDescriptor_t ad, const void *a, const void *alpha2,
                            const cudnnTensorDescriptor_t bd, const void *b, const void *beta,
                            const cudnnTensorDescriptor_t cd, void *c)
{
    tell_handle(h);
    standin_record("cudnnOpTensor %s %g*%s:%s %g*%s:%s beta=%g -> %s:%s", standin_name(o), scalar(alpha1),
                   standin_name(ad), standin_name(a), scalar(alpha2), standin_name(bd), standin_name(b), scalar(beta),
                   standin_name(cd), standin_name(c));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnReduceTensor(cudnnHandle_t h, const cudnnReduceTensorDescriptor_t r, void *indices,
                                size_t indices_size, void *space, size_t size, const void *alpha,
                                const cudnnTensorDescriptor_t ad, const void *a, const void *beta,
                                const cudnnTensorDescriptor_t cd, void *c)
{
    tell_handle(h);
    standin_record("cudnnReduceTensor indices=%s,%zu workspace=%s,%zu", standin_name(indices), indices_size,
                   standin_name(space), size);
    return simple("cudnnReduceTensor", r, alpha, ad, a, beta, cd, c);
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t d, cudnnHandle_t h, float dropout, void *states,
                                        size_t size, unsigned long long seed)
{
    standin_record("cudnnSetDropoutDescriptor %s %s dropout=%g states=%s,%zu seed=%llu", standin_name(d),
                   standin_name(h), (double)dropout, standin_name(states), size, seed);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t h, size_t *size)
{
    standin_record("cudnnDropoutGetStatesSize %s", standin_name(h));
    *size = 8192;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x, size_t *size)
{
    standin_record("cudnnDropoutGetReserveSpaceSize %s", standin_name(x));
    *size = 128;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutForward(cudnnHandle_t h, const cudnnDropoutDescriptor_t d, const cudnnTensorDescriptor_t xd,
                                  const void *x, const cudnnTensorDescriptor_t yd, void *y, void *reserve, size_t size)
{
    standin_record("cudnnDropoutForward %s %s %s:%s -> %s:%s reserve=%s,%zu", standin_name(h), standin_name(d),
                   standin_name(xd), standin_name(x), standin_name(yd), standin_name(y), standin_name(reserve), size);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t r, cudnnRNNAlgo_t algo, cudnnRNNMode_t cell,
                                       cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t compute,
                                       cudnnMathType_t math, int32_t n_input, int32_t n_hidden, int32_t n_projection,
                                       int32_t layers, cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
    static const char *const CELLS[] = {"relu", "tanh", "lstm", "gru"};
    static const char *const BIASES[] = {"none", "input", "both", "recurrent"};
    standin_record("cudnnSetRNNDescriptor_v8 %s algo=%d cell=%s bias=%s direction=%d input=%d %s compute=%s math=%s",
                   standin_name(r), (int)algo, ARRAY_NAME(CELLS, cell), ARRAY_NAME(BIASES, bias), (int)direction,
                   (int)input, ARRAY_NAME(TYPES, type), ARRAY_NAME(TYPES, compute), ARRAY_NAME(MATH, math));
    standin_record("    inputs=%d hidden=%d projection=%d layers=%d %s flags=%u", n_input, n_hidden, n_projection,
                   layers, standin_name(dropout), flags);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t d, cudnnDataType_t type, cudnnRNNDataLayout_t layout,
                                        int seq, int batch, int width, const int *lengths, void *fill)
{
    standin_record("cudnnSetRNNDataDescriptor %s %s layout=%d seq=%d batch=%d width=%d lengths=%s fill=%s",
                   standin_name(d), ARRAY_NAME(TYPES, type), (int)layout, seq, batch, width,
                   standin_ints(batch, lengths), standin_name(fill));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t h, cudnnRNNDescriptor_t r, int batch)
{
    standin_record("cudnnBuildRNNDynamic %s %s batch=%d", standin_name(h), standin_name(r), batch);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t h, cudnnRNNDescriptor_t r, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x, size_t *work, size_t *reserve)
{
    standin_record("cudnnGetRNNTempSpaceSizes %s %s mode=%d %s", standin_name(h), standin_name(r), (int)mode,
                   standin_name(x));
    *work = 1024;
    *reserve = mode == CUDNN_FWD_MODE_TRAINING ? 512 : 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t h, cudnnRNNDescriptor_t r, size_t *size)
{
    standin_record("cudnnGetRNNWeightSpaceSize %s %s", standin_name(h), standin_name(r));
    *size = 1 << 16;
    return CUDNN_STATUS_SUCCESS;
}

/* Each matrix has 2 KiB of its own in the weights, the bias behind 1.5 of them. */
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t h, cudnnRNNDescriptor_t r, int32_t layer, size_t size,
                                      const void *weights, int32_t matrix, cudnnTensorDescriptor_t md, void **m,
                                      cudnnTensorDescriptor_t bd, void **b)
{
    (void)h, (void)md, (void)bd;
    standin_record("cudnnGetRNNWeightParams %s layer=%d weights=%s,%zu matrix=%d", standin_name(r), layer,
                   standin_name(weights), size, matrix);
    *m = (char *)weights + (layer * 8 + matrix) * 2048;
    *b = (char *)*m + 1536;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t h, cudnnRNNDescriptor_t r, cudnnForwardMode_t mode, const int32_t *lengths,
                              cudnnRNNDataDescriptor_t xd, const void *x, cudnnRNNDataDescriptor_t yd, void *y,
                              cudnnTensorDescriptor_t hd, const void *hx, void *hy, cudnnTensorDescriptor_t cd,
                              const void *cx, void *cy, size_t weights_size, const void *weights, size_t size,
                              void *space, size_t reserve_size, void *reserve)
{
    tell_handle(h);
    standin_record("cudnnRNNForward %s mode=%d lengths=%s %s:%s -> %s:%s", standin_name(r), (int)mode,
                   standin_name(lengths), standin_name(xd), standin_name(x), standin_name(yd), standin_name(y));
    standin_record("    h=%s:%s,%s", standin_name(hd), standin_name(hx), standin_name(hy));
    standin_record("    c=%s:%s,%s weights=%s,%zu", standin_name(cd), standin_name(cx), standin_name(cy),
                   standin_name(weights), weights_size);
    standin_record("    workspace=%s,%zu reserve=%s,%zu", standin_name(space), size, standin_name(reserve),
                   reserve_size);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t h, cudnnRNNDescriptor_t r, const int32_t *lengths,
                                      cudnnRNNDataDescriptor_t yd, const void *y, const void *dy,
                                      cudnnRNNDataDescriptor_t xd, void *dx, cudnnTensorDescriptor_t hd, const void *hx,
                                      const void *dhy, void *dhx, cudnnTensorDescriptor_t cd, const void *cx,
                                      const void *dcy, void *dcx, size_t weights_size, const void *weights, size_t size,
                                      void *space, size_t reserve_size, void *reserve)
{
    tell_handle(h);
    standin_record("cudnnRNNBackwardData_v8 %s lengths=%s %s:%s dy=%s -> %s:%s", standin_name(r), standin_name(lengths),
                   standin_name(yd), standin_name(y), standin_name(dy), standin_name(xd), standin_name(dx));
    standin_record("    h=%s:%s dhy=%s -> %s", standin_name(hd), standin_name(hx), standin_name(dhy),
                   standin_name(dhx));
    standin_record("    c=%s:%s dcy=%s -> %s weights=%s,%zu", standin_name(cd), standin_name(cx), standin_name(dcy),
                   standin_name(dcx), standin_name(weights), weights_size);
    standin_record("    workspace=%s,%zu reserve=%s,%zu", standin_name(space), size, standin_name(reserve),
                   reserve_size);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t h, cudnnRNNDescriptor_t r, cudnnWgradMode_t mode,
                                         const int32_t *lengths, cudnnRNNDataDescriptor_t xd, const void *x,
                                         cudnnTensorDescriptor_t hd, const void *hx, cudnnRNNDataDescriptor_t yd,
                                         const void *y, size_t weights_size, void *gradients, size_t size, void *space,
                                         size_t reserve_size, void *reserve)
{
    tell_handle(h);
    standin_record("cudnnRNNBackwardWeights_v8 %s mode=%d lengths=%s %s:%s %s:%s %s:%s -> %s,%zu", standin_name(r),
                   (int)mode, standin_name(lengths), standin_name(xd), standin_name(x), standin_name(hd),
                   standin_name(hx), standin_name(yd), standin_name(y), standin_name(gradients), weights_size);
    standin_record("    workspace=%s,%zu reserve=%s,%zu", standin_name(space), size, standin_name(reserve),
                   reserve_size);
    return CUDNN_STATUS_SUCCESS;
}
