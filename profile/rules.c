/* What names mean: library functions, CUDA API functions, kernel names. Rules are rows; the first
 * that matches counts. */
#include "profile/trace.h"

#include <string.h>

typedef struct {
    const char *pattern;
    int meaning;
} rule;

bool bz_name_matches(const char *pattern, const char *name)
{
    bool start = *pattern == '^';
    size_t n = strlen(pattern += start), m = strlen(name);
    bool end = n && pattern[n - 1] == '$';
    n -= end;
    if (end)
        return start ? m == n && !memcmp(name, pattern, n) : m >= n && !memcmp(name + m - n, pattern, n);
    return start ? !strncmp(name, pattern, n) : strstr(name, pattern) != NULL;
}

static int lookup(const rule *rules, size_t n, const char *name, int otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (bz_name_matches(rules[i].pattern, name))
            return rules[i].meaning;
    return otherwise;
}
#define LOOKUP(rules, name, otherwise) lookup(rules, sizeof(rules) / sizeof *(rules), name, otherwise)

/* cuDNN and cuBLAS functions that enqueue work. Everything about descriptors, handles, heuristics and
 * sizes does not; cudnnFind…Algorithm and cudnnGet… run or ask for trials, not for the layer. */
static const rule EXECUTES[] = {
    {"^cudnnCreate", 0},
    {"^cudnnDestroy", 0},
    {"^cudnnSet", 0},
    {"^cudnnGet", 0},
    {"^cudnnFind", 0},
    {"^cudnnQuery", 0},
    {"^cudnnDerive", 0},
    {"^cudnnInit", 0},
    {"^cudnnCopyAlgorithm", 0},
    {"^cudnnSave", 0},
    {"^cudnnRestore", 0},
    {"^cudnnBackendExecute", 1},
    {"^cudnnBackend", 0},
    {"^cudnnDropoutGet", 0},
    {"^cudnnBuild", 0},
    {"^cudnnMake", 0},
    {"^cudnnGraph", 0},
    {"^cudnnTransform", 1},
    {"^cudnnReorder", 1},
    {"^cudnnAddTensor", 1},
    {"^cudnnScaleTensor", 1},
    {"^cudnnOpTensor", 1},
    {"^cudnnReduceTensor", 1},
    {"^cudnnFusedOpsExecute", 1},
    {"^cudnnNormalization", 1},
    {"^cudnnIm2Col", 1},
    {"^cudnnCTCLoss", 1},
    {"^cudnnSpatialTf", 1},
    {"^cudnnMultiHeadAttn", 1},
    {"^cudnnRNN", 1},
    {"^cudnn", -1}, /* Forward, Backward: below */
    {"^cublasLtMatmulAlgo", 0},
    {"^cublasLtMatmulDesc", 0},
    {"^cublasLtMatmulPreference", 0},
    {"^cublasLtMatmul", 1},
    {"^cublasLtMatrixTransform", -2},
    {"^cublasLt", 0},
    {"^cublasCreate", 0},
    {"^cublasDestroy", 0},
    {"^cublasGet", 0},
    {"^cublasSet", 0},
    {"^cublasLogger", 0},
    {"^cublasXt", 1},
    {"^cublas", 1},
};

bool bz_call_executes(const char *function)
{
    int meaning = LOOKUP(EXECUTES, function, 0);
    if (meaning == -1)
        return (strstr(function, "Forward") || strstr(function, "Backward")) && !strstr(function, "Size") &&
               !strstr(function, "Descriptor");
    if (meaning == -2)
        return !strstr(function, "Desc");
    return meaning > 0;
}

/* cuDNN functions that may launch a product of matrices. */
static const rule MULTIPLIES[] = {
    {"Convolution", 1}, {"RNN", 1}, {"Attn", 1}, {"^cudnnBackend", 1}, {"^cudnnFusedOps", 1}, {"^cudnnFind", 1},
};

bool bz_call_multiplies(const char *function)
{
    return LOOKUP(MULTIPLIES, function, 0) > 0;
}

static const rule LIBRARIES[] = {
    {"^cudnn", BZ_LIBRARY_CUDNN},
    {"^cublasLt", BZ_LIBRARY_CUBLASLT},
    {"^cublas", BZ_LIBRARY_CUBLAS},
};

bz_library bz_library_of(const char *function)
{
    return (bz_library)LOOKUP(LIBRARIES, function, BZ_LIBRARY_OTHER);
}

/* nsys appends a version to names: cudaLaunchKernel_v7000. */
static const rule APIS[] = {
    {"LaunchKernel", 1},     {"LaunchCooperative", 1}, {"LaunchHostFunc", 1},    {"GraphLaunch", 1},
    {"^cudaLaunch", 1},      {"^cuLaunch", 1},         {"DeviceSynchronize", 2}, {"StreamSynchronize", 2},
    {"EventSynchronize", 2}, {"CtxSynchronize", 2},    {"ThreadSynchronize", 2},
};

bool bz_api_launches(const char *function)
{
    return LOOKUP(APIS, function, 0) == 1;
}

bool bz_api_waits(const char *function)
{
    return LOOKUP(APIS, function, 0) == 2;
}

enum { IMPLICIT_GEMM, PRECOMP_GEMM, GEMM, DIRECT, FFT, FFT_TILING, WINOGRAD, WINOGRAD_NONFUSED, NO_ALGORITHM };
static const char *const ALGORITHMS[] = {
    "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM", "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM",
    "CUDNN_CONVOLUTION_FWD_ALGO_GEMM",          "CUDNN_CONVOLUTION_FWD_ALGO_DIRECT",
    "CUDNN_CONVOLUTION_FWD_ALGO_FFT",           "CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING",
    "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD",      "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED",
};

/* Kernel names of cuDNN, Volta to Hopper. Winograd comes first: its kernels carry scudnn in their
 * names as well. Backward passes (dgrad, wgrad) have algorithms of their own and are left out. */
static const rule KERNELS[] = {
    {"dgrad", NO_ALGORITHM},
    {"wgrad", NO_ALGORITHM},
    {"winograd3x3Kernel", WINOGRAD},
    {"generateWinogradTilesKernel", NO_ALGORITHM}, /* prepares the filter for the next kernel */
    {"winogradForwardData", WINOGRAD_NONFUSED},
    {"winogradForwardFilter", WINOGRAD_NONFUSED},
    {"winogradForwardOutput", WINOGRAD_NONFUSED},
    {"winograd_nonfused", WINOGRAD_NONFUSED},
    {"_winograd_", WINOGRAD},
    {"fft2d_r2c_16x16", FFT_TILING},
    {"fft2d_r2c_32x32", FFT_TILING},
    {"fft2d_r2c", FFT},
    {"implicit_convolve_", IMPLICIT_GEMM},
    {"conv2d_c1_k1", IMPLICIT_GEMM},
    {"explicit_convolve_", GEMM},
    {"im2col4d", GEMM},
    {"precomputed_convolve_", PRECOMP_GEMM},
    {"_scudnn_", PRECOMP_GEMM},
    {"_s884cudnn_", PRECOMP_GEMM},
    {"_h884cudnn_", PRECOMP_GEMM},
    {"_s1688cudnn_", PRECOMP_GEMM},
    {"_h1688cudnn_", PRECOMP_GEMM},
    {"_fprop_implicit_gemm_", PRECOMP_GEMM},
    {"_hcudnn_", PRECOMP_GEMM},
};

const char *bz_kernel_algorithm(const char *kernel_name)
{
    int a = LOOKUP(KERNELS, kernel_name, NO_ALGORITHM);
    return a == NO_ALGORITHM ? NULL : ALGORITHMS[a];
}

/* Who made a kernel, by its name. Rules of frameworks come first: their kernels may be named after the library that they replace. */
static const rule OWNERS[] = {
    {"at::native", BZ_KERNEL_OF_FRAMEWORK},
    {"at_cuda_detail", BZ_KERNEL_OF_FRAMEWORK},
    {"c10::", BZ_KERNEL_OF_FRAMEWORK},
    {"caffe2::", BZ_KERNEL_OF_FRAMEWORK},
    {"mxnet", BZ_KERNEL_OF_FRAMEWORK},
    {"mshadow::", BZ_KERNEL_OF_FRAMEWORK},
    {"onnxruntime::", BZ_KERNEL_OF_FRAMEWORK},
    {"tensorflow::", BZ_KERNEL_OF_FRAMEWORK},
    {"Eigen::", BZ_KERNEL_OF_FRAMEWORK},
    {"phi::", BZ_KERNEL_OF_FRAMEWORK},
    {"^triton_", BZ_KERNEL_OF_FRAMEWORK},
    {"thrust::", BZ_KERNEL_OF_FRAMEWORK},
    {"cudnn", BZ_KERNEL_OF_LIBRARY},
    {"cublas", BZ_KERNEL_OF_LIBRARY},
    {"cutlass", BZ_KERNEL_OF_LIBRARY},
    {"xmma_", BZ_KERNEL_OF_LIBRARY},
    {"nvjet_", BZ_KERNEL_OF_LIBRARY}, /* cuBLAS from Hopper on */
    {"inograd", BZ_KERNEL_OF_LIBRARY},
    {"implicit_convolve_", BZ_KERNEL_OF_LIBRARY},
    {"explicit_convolve_", BZ_KERNEL_OF_LIBRARY},
    {"precomputed_convolve_", BZ_KERNEL_OF_LIBRARY},
    {"im2col4d", BZ_KERNEL_OF_LIBRARY},
    {"conv2d_", BZ_KERNEL_OF_LIBRARY},
    {"fft1d_", BZ_KERNEL_OF_LIBRARY},
    {"fft2d_", BZ_KERNEL_OF_LIBRARY},
    {"flip_filter", BZ_KERNEL_OF_LIBRARY},
    {"dgrad", BZ_KERNEL_OF_LIBRARY},
    {"wgrad", BZ_KERNEL_OF_LIBRARY},
    {"op_generic_tensor_kernel", BZ_KERNEL_OF_LIBRARY},
    {"lrnForward_", BZ_KERNEL_OF_LIBRARY},
    {"softmax_fw_kernel", BZ_KERNEL_OF_LIBRARY},
    {"gemm", BZ_KERNEL_OF_LIBRARY},
    {"gemv", BZ_KERNEL_OF_LIBRARY},
    {"splitKreduce", BZ_KERNEL_OF_LIBRARY},
};

bz_kernel_owner bz_kernel_owner_of(const char *kernel_name)
{
    return (bz_kernel_owner)LOOKUP(OWNERS, kernel_name, BZ_KERNEL_OF_ANYONE);
}

/* Products of matrices and vectors as cuBLAS computes them, and what it launches behind some of them. */
static const rule PRODUCTS[] = {
    {"compute_gemm_pointers", BZ_PRODUCT_NONE},
    {"splitKreduce", BZ_PRODUCT_REST},
    {"reduce_1Block", BZ_PRODUCT_REST},
    {"dot_kernel", BZ_PRODUCT},
    {"nvjet_", BZ_PRODUCT},
    {"gemm", BZ_PRODUCT},
    {"gemv", BZ_PRODUCT},
    {"cutlass", BZ_PRODUCT},
};

bz_product bz_kernel_product(const char *kernel_name)
{
    if (bz_kernel_owner_of(kernel_name) == BZ_KERNEL_OF_FRAMEWORK || strstr(kernel_name, "cudnn") ||
        strstr(kernel_name, "convolve"))
        return BZ_PRODUCT_NONE;
    return (bz_product)LOOKUP(PRODUCTS, kernel_name, BZ_PRODUCT_NONE);
}
