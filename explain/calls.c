/* Library calls as problems: a row for each call that is known, with what reads its parameters. */
#include "explain/calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int bz_call_list(const bz_trace *t, size_t call, const char *name, int64_t *v, int most)
{
    char text[256];
    const char *p = text;
    int n = 0;
    if (!bz_call_parameter(t, call, name, text, sizeof text) || *p++ != '[')
        return 0;
    while (*p && *p != ']') {
        char *end;
        long long x = strtoll(p, &end, 10);
        if (end == p || x < 0 || x > INT32_MAX || n == most)
            return 0;
        v[n++] = x;
        p = *end == ',' ? end + 1 : end;
    }
    return n;
}

bool bz_call_int(const bz_trace *t, size_t call, const char *name, int64_t *v)
{
    char text[64], *end;
    if (!bz_call_parameter(t, call, name, text, sizeof text))
        return false;
    *v = strtoll(text, &end, 10);
    return end != text && !*end && *v >= 0 && *v <= INT32_MAX;
}

bool bz_call_real(const bz_trace *t, size_t call, const char *name, double *v)
{
    char text[64], *end;
    if (!bz_call_parameter(t, call, name, text, sizeof text))
        return false;
    *v = strtod(text, &end);
    return end != text && !*end && isfinite(*v);
}

int64_t bz_call_elements(const bz_trace *t, size_t call)
{
    char text[128];
    int64_t n = 1;
    if (!bz_call_parameter(t, call, "problem", text, sizeof text))
        return -1;
    for (const char *p = text; *p;) {
        char *end;
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(n, strtoll(p, &end, 10), &n))
            return -1;
        p = *end == 'x' ? end + 1 : end;
    }
    return n;
}

bool bz_call_dtype(const bz_trace *t, size_t call, const char *name, bz_dtype *out)
{
    static const struct {
        const char *begins;
        bz_dtype dtype;
    } NAMES[] = {{"CUDNN_DATA_FLOAT", BZ_F32},
                 {"CUDNN_DATA_HALF", BZ_F16},
                 {"CUDNN_DATA_BFLOAT16", BZ_BF16},
                 {"CUDNN_DATA_DOUBLE", BZ_F64},
                 {"CUDNN_DATA_INT8", BZ_I8},
                 {"CUDA_R_32F", BZ_F32},
                 {"CUDA_R_16F", BZ_F16},
                 {"CUDA_R_16BF", BZ_BF16},
                 {"CUDA_R_64F", BZ_F64},
                 {"CUDA_R_8I", BZ_I8},
                 {"f32:", BZ_F32},
                 {"f16:", BZ_F16},
                 {"bf16:", BZ_BF16},
                 {"u8:", BZ_U8},
                 {"s8:", BZ_I8},
                 {"s32:", BZ_I32}};
    char text[128];
    if (!bz_call_parameter(t, call, name, text, sizeof text))
        return false;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!strncmp(text, NAMES[i].begins, strlen(NAMES[i].begins))) {
            *out = NAMES[i].dtype;
            return true;
        }
    return false;
}

int64_t bz_call_pad_end(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad)
{
    int64_t window = (kernel - 1) * dilation + 1, reached = (out - 1) * stride + window - in - pad;
    if (reached < 0)
        reached = 0;
    bool same = pad >= reached && stride > 0 && (in + 2 * pad - window) / stride + 1 == out;
    return same ? pad : reached;
}

/* A framework may pad the input by itself and convolve what it padded: the problem with that padding
 * inside, by half the kernel, has the same result. */
int bz_call_unpad(const bz_problem *from, bz_problem *to)
{
    int spatial = bz_extent_rank(from->conv.x) - 2, most = 0;
    bz_error err;
    if (from->kind != BZ_PROBLEM_CONV)
        return 0;
    *to = *from;
    for (int a = 0; a < spatial; a++) {
        int64_t pad = (from->conv.w[2 + a] - 1) * from->conv.dilation[a] / 2;
        if (from->conv.pad[a] || from->conv.pad[spatial + a] || from->conv.x[2 + a] <= 2 * pad)
            return 0;
        to->conv.x[2 + a] -= 2 * pad;
        to->conv.pad[a] = to->conv.pad[spatial + a] = pad;
        most = pad > most ? (int)pad : most;
    }
    return bz_problem_normalize(to, &err) ? 0 : most;
}

static const struct {
    const char *call; /* the name; "_v2" behind it makes no difference */
    bz_call_reader *read;
} CALLS[] = {
    {"cudnnConvolutionForward", bz_call_cudnn_conv},
    {"cudnnConvolutionBiasActivationForward", bz_call_cudnn_conv_bias},
    {"cudnnPoolingForward", bz_call_cudnn_pool},
    {"cudnnActivationForward", bz_call_cudnn_activation},
    {"cudnnBatchNormalizationForwardInference", bz_call_cudnn_batchnorm},
    {"cudnnSoftmaxForward", bz_call_cudnn_softmax},
    {"cudnnLRNCrossChannelForward", bz_call_cudnn_lrn},
    {"cudnnAddTensor", bz_call_cudnn_add},
    {"cudnnOpTensor", bz_call_cudnn_op},
    {"convolution", bz_call_onednn_conv},
    {"inner_product", bz_call_onednn_inner_product},
    {"matmul", bz_call_onednn_matmul},
    {"pooling", bz_call_onednn_pool},
    {"batch_normalization", bz_call_onednn_batchnorm},
    {"layer_normalization", bz_call_onednn_layernorm},
    {"eltwise", bz_call_onednn_eltwise},
    {"binary", bz_call_onednn_binary},
    {"sum", bz_call_onednn_sum},
    {"softmax", bz_call_onednn_softmax},
    {"concat", bz_call_onednn_concat},
    {"sgemm", bz_call_blas_gemm},
    {"dgemm", bz_call_blas_gemm},
    {"cblas_sgemm", bz_call_blas_gemm},
    {"cblas_dgemm", bz_call_blas_gemm},
    {"cublasSgemm", bz_call_blas_gemm},
    {"cublasDgemm", bz_call_blas_gemm},
    {"cublasHgemm", bz_call_blas_gemm},
    {"cublasSgemmEx", bz_call_blas_gemm},
    {"cublasGemmEx", bz_call_blas_gemm},
    {"cublasSgemmStridedBatched", bz_call_blas_gemm},
    {"cublasHgemmStridedBatched", bz_call_blas_gemm},
    {"cublasGemmStridedBatchedEx", bz_call_blas_gemm},
    {"sgemv", bz_call_blas_gemv},
    {"dgemv", bz_call_blas_gemv},
    {"cblas_sgemv", bz_call_blas_gemv},
    {"cblas_dgemv", bz_call_blas_gemv},
    {"cublasSgemv", bz_call_blas_gemv},
};

bool bz_call_problem(const bz_trace *trace, size_t call, bz_problem *out)
{
    const char *name = bz_string(trace, trace->event[BZ_EVENT_CALL].name[call]);
    size_t n = strlen(name);
    bz_error err;
    if (n > 3 && !strcmp(name + n - 3, "_v2"))
        n -= 3;
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (strlen(CALLS[i].call) == n && !memcmp(name, CALLS[i].call, n)) {
            *out = (bz_problem){0};
            return CALLS[i].read(trace, call, out) && !bz_problem_normalize(out, &err);
        }
    return false;
}
