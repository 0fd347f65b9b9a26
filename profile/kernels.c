/* What kernels do and who made them, by their full names: one table for all that today's programs run. Rules are rows; the first
 * that matches counts. Patterns are as for bz_name_matches. A new sort of kernels is a row. */
#include "profile/trace.h"

#include <string.h>

static const struct {
    const char *name;
    bz_kernel_limit limit;
} DOES[BZ_KERNEL_DOES] = {
    [BZ_KERNEL_OTHER] = {"other", BZ_LIMIT_UNKNOWN},
    [BZ_KERNEL_CONV] = {"convolution", BZ_LIMIT_COMPUTE},
    [BZ_KERNEL_CONV_BACKWARD] = {"convolution, backward", BZ_LIMIT_COMPUTE},
    [BZ_KERNEL_CONV_PART] = {"convolution, preparation", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_CONV_DEPTHWISE] = {"depthwise convolution", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_PRODUCT] = {"matrix product", BZ_LIMIT_COMPUTE},
    [BZ_KERNEL_PRODUCT_PART] = {"matrix product, sum of parts", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_VECTOR_PRODUCT] = {"matrix times vector", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_ATTENTION] = {"attention", BZ_LIMIT_COMPUTE},
    [BZ_KERNEL_RNN] = {"recurrent", BZ_LIMIT_COMPUTE},
    [BZ_KERNEL_NORM] = {"normalization", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_SOFTMAX] = {"softmax", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_POOL] = {"pooling", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_ELEMENTWISE] = {"element-wise", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_REDUCE] = {"reduction", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_LAYOUT] = {"layout and type", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_PAD] = {"padding", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_MOVE] = {"copy, concat, fill", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_GATHER] = {"gather and scatter", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_SORT] = {"sort and scan", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_RANDOM] = {"random numbers", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_RESIZE] = {"resize", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_LOSS] = {"loss", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_OPTIMIZER] = {"optimizer", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_QUANTIZE] = {"quantization", BZ_LIMIT_MEMORY},
    [BZ_KERNEL_COMMUNICATION] = {"communication", BZ_LIMIT_NETWORK},
};

static const char *const LIMITS[] = {"unknown", "compute", "memory", "network"};

typedef struct {
    const char *pattern;
    int meaning;
} rule;

static const rule RULES[] = {
    /* communication: NCCL, RCCL, NVSHMEM, and what servers of language models bring along */
    {"nccl", BZ_KERNEL_COMMUNICATION},
    {"rccl", BZ_KERNEL_COMMUNICATION},
    {"nvshmem", BZ_KERNEL_COMMUNICATION},
    {"deep_ep::", BZ_KERNEL_COMMUNICATION},
    {"cross_device_reduce", BZ_KERNEL_COMMUNICATION},
    {"AllReduce", BZ_KERNEL_COMMUNICATION},
    {"all_reduce", BZ_KERNEL_COMMUNICATION},
    {"allreduce", BZ_KERNEL_COMMUNICATION},
    {"AllGather", BZ_KERNEL_COMMUNICATION},
    {"ReduceScatter", BZ_KERNEL_COMMUNICATION},

    /* attention: FlashAttention, xFormers, cuDNN, TensorRT, vLLM, FlashInfer, Composable Kernel */
    {"flash_fwd", BZ_KERNEL_ATTENTION},
    {"flash_bwd", BZ_KERNEL_ATTENTION},
    {"flash::", BZ_KERNEL_ATTENTION},
    {"flash_attn", BZ_KERNEL_ATTENTION},
    {"flash_attention", BZ_KERNEL_ATTENTION},
    {"flashinfer::", BZ_KERNEL_ATTENTION},
    {"FlashAttn", BZ_KERNEL_ATTENTION},
    {"fmha", BZ_KERNEL_ATTENTION},
    {"FMHA", BZ_KERNEL_ATTENTION},
    {"Fmha", BZ_KERNEL_ATTENTION},
    {"sdpa", BZ_KERNEL_ATTENTION},
    {"MemEffAttention", BZ_KERNEL_ATTENTION},
    {"AttentionKernel", BZ_KERNEL_ATTENTION},
    {"attention_kernel", BZ_KERNEL_ATTENTION},
    {"paged_attention", BZ_KERNEL_ATTENTION},
    {"multihead_attention", BZ_KERNEL_ATTENTION},
    {"_attn_fwd", BZ_KERNEL_ATTENTION},
    {"_attn_bwd", BZ_KERNEL_ATTENTION},
    {"attn_", BZ_KERNEL_ATTENTION},
    {"PagedKVCache", BZ_KERNEL_ATTENTION},
    {"reshape_and_cache", BZ_KERNEL_GATHER}, /* of keys and values */

    /* recurrent */
    {"RNN_block", BZ_KERNEL_RNN},
    {"RNNcell", BZ_KERNEL_RNN},
    {"elemWiseRNN", BZ_KERNEL_RNN},
    {"LSTM_", BZ_KERNEL_RNN},
    {"lstm_cell", BZ_KERNEL_RNN},
    {"GRU_", BZ_KERNEL_RNN},
    {"gru_cell", BZ_KERNEL_RNN},
    {"persistRNN", BZ_KERNEL_RNN},

    /* Triton, as PyTorch's compiler names what it makes: the word behind triton_ says the sort */
    {"triton_poi_", BZ_KERNEL_ELEMENTWISE},
    {"triton_red_fused__softmax", BZ_KERNEL_SOFTMAX},
    {"triton_per_fused__softmax", BZ_KERNEL_SOFTMAX},
    {"layer_norm", BZ_KERNEL_NORM},
    {"rms_norm", BZ_KERNEL_NORM},
    {"batch_norm", BZ_KERNEL_NORM},
    {"group_norm", BZ_KERNEL_NORM},
    {"triton_tem_fused_convolution", BZ_KERNEL_CONV},
    {"triton_tem_", BZ_KERNEL_PRODUCT},
    {"triton_mm", BZ_KERNEL_PRODUCT},
    {"triton_red_", BZ_KERNEL_REDUCE},
    {"triton_per_", BZ_KERNEL_REDUCE},

    /* convolutions: cuDNN, CUTLASS in it, TensorRT, MIOpen, Composable Kernel, frameworks */
    {"epthwise", BZ_KERNEL_CONV_DEPTHWISE},
    {"conv2d_grouped_direct", BZ_KERNEL_CONV_DEPTHWISE},
    {"dgrad", BZ_KERNEL_CONV_BACKWARD},
    {"winogradWgrad", BZ_KERNEL_CONV_BACKWARD},
    {"wgrad", BZ_KERNEL_CONV_BACKWARD},
    {"conv_bwd", BZ_KERNEL_CONV_BACKWARD},
    {"igemm_bwd", BZ_KERNEL_CONV_BACKWARD},
    {"igemm_wrw", BZ_KERNEL_CONV_BACKWARD},
    {"OffsetsKernel", BZ_KERNEL_CONV_PART},
    {"compute_gemm_pointers", BZ_KERNEL_CONV_PART},
    {"generateWinogradTiles", BZ_KERNEL_CONV_PART},
    {"winogradForwardData", BZ_KERNEL_CONV_PART},
    {"winogradForwardFilter", BZ_KERNEL_CONV_PART},
    {"winogradForwardOutput", BZ_KERNEL_CONV},
    {"flip_filter", BZ_KERNEL_CONV_PART},
    {"fft2d_r2c", BZ_KERNEL_CONV_PART},
    {"fft1d_r2c", BZ_KERNEL_CONV_PART},
    {"fft2d_c2r", BZ_KERNEL_CONV},
    {"fft1d_c2r", BZ_KERNEL_CONV},
    {"gcgemm", BZ_KERNEL_CONV_PART},
    {"cgemm_32x32", BZ_KERNEL_CONV_PART},
    {"im2col", BZ_KERNEL_CONV_PART},
    {"Im2Col", BZ_KERNEL_CONV_PART},
    {"inograd", BZ_KERNEL_CONV},
    {"fprop", BZ_KERNEL_CONV},
    {"convolve", BZ_KERNEL_CONV},
    {"stridedB", BZ_KERNEL_CONV_BACKWARD}, /* of cuDNN's kernels: gradients of data */
    {"scudnn", BZ_KERNEL_CONV},
    {"hcudnn", BZ_KERNEL_CONV},
    {"icudnn", BZ_KERNEL_CONV},
    {"884cudnn", BZ_KERNEL_CONV},
    {"1688cudnn", BZ_KERNEL_CONV},
    {"16816cudnn", BZ_KERNEL_CONV},
    {"8816cudnn", BZ_KERNEL_CONV},
    {"cutlass::conv", BZ_KERNEL_CONV},
    {"conv2d_c1_k1", BZ_KERNEL_CONV},
    {"conv_fwd", BZ_KERNEL_CONV},
    {"igemm_fwd", BZ_KERNEL_CONV},
    {"gridwise_convolution", BZ_KERNEL_CONV},
    {"AsmConv", BZ_KERNEL_CONV},
    {"MIOpenConv", BZ_KERNEL_CONV},
    {"naive_conv", BZ_KERNEL_CONV},
    {"ImplicitGemm", BZ_KERNEL_CONV},

    /* products: cuBLAS, cuBLASLt, CUTLASS, rocBLAS (Cijk: Tensile), Composable Kernel, CUTE, Marlin */
    {"splitKreduce", BZ_KERNEL_PRODUCT_PART},
    {"splitk_reduce", BZ_KERNEL_PRODUCT_PART},
    {"reduce_1Block", BZ_KERNEL_PRODUCT_PART},
    {"Cijk_S_GA", BZ_KERNEL_PRODUCT_PART},
    {"gemv", BZ_KERNEL_VECTOR_PRODUCT},
    {"dot_kernel", BZ_KERNEL_VECTOR_PRODUCT},
    {"Cijk_", BZ_KERNEL_PRODUCT},
    {"nvjet_", BZ_KERNEL_PRODUCT},
    {"gemm", BZ_KERNEL_PRODUCT},
    {"Gemm", BZ_KERNEL_PRODUCT},
    {"GEMM", BZ_KERNEL_PRODUCT},
    {"matmul", BZ_KERNEL_PRODUCT},
    {"Marlin", BZ_KERNEL_PRODUCT},
    {"marlin", BZ_KERNEL_PRODUCT},
    {"cutlass", BZ_KERNEL_PRODUCT},

    /* what moves data */
    {"NormalizeKernel", BZ_KERNEL_NORM},
    {"Normalization", BZ_KERNEL_NORM},
    {"LayerNorm", BZ_KERNEL_NORM},
    {"RMSNorm", BZ_KERNEL_NORM},
    {"GroupNorm", BZ_KERNEL_NORM},
    {"BatchNorm", BZ_KERNEL_NORM},
    {"RowwiseMoments", BZ_KERNEL_NORM},
    {"GammaBeta", BZ_KERNEL_NORM},
    {"bn_fw_", BZ_KERNEL_NORM},
    {"bn_bw_", BZ_KERNEL_NORM},
    {"bnorm", BZ_KERNEL_NORM},
    {"lrnForward", BZ_KERNEL_NORM},
    {"LRN", BZ_KERNEL_NORM},
    {"oftmax", BZ_KERNEL_SOFTMAX},
    {"oftMax", BZ_KERNEL_SOFTMAX},
    {"nll_loss", BZ_KERNEL_LOSS},
    {"ClassNLLCriterion", BZ_KERNEL_LOSS},
    {"cross_entropy", BZ_KERNEL_LOSS},
    {"ctc_loss", BZ_KERNEL_LOSS},
    {"axPool", BZ_KERNEL_POOL},
    {"max_pool", BZ_KERNEL_POOL},
    {"avg_pool", BZ_KERNEL_POOL},
    {"pool_max", BZ_KERNEL_POOL},
    {"pool_sum", BZ_KERNEL_POOL},
    {"pooling", BZ_KERNEL_POOL},
    {"Pooling", BZ_KERNEL_POOL},
    {"AveragePool", BZ_KERNEL_POOL},
    {"average_pool", BZ_KERNEL_POOL},
    {"adaptive_average", BZ_KERNEL_POOL},
    {"upsample", BZ_KERNEL_RESIZE},
    {"Resize", BZ_KERNEL_RESIZE},
    {"interpolate", BZ_KERNEL_RESIZE},
    {"pad_constant_kernel", BZ_KERNEL_PAD},
    {"pad_edge_kernel", BZ_KERNEL_PAD},
    {"constant_pad", BZ_KERNEL_PAD},
    {"reflection_pad", BZ_KERNEL_PAD},
    {"replication_pad", BZ_KERNEL_PAD},
    {"multi_tensor_apply", BZ_KERNEL_OPTIMIZER},
    {"adam", BZ_KERNEL_OPTIMIZER},
    {"Adam", BZ_KERNEL_OPTIMIZER},
    {"sgd_", BZ_KERNEL_OPTIMIZER},
    {"lamb_", BZ_KERNEL_OPTIMIZER},
    {"uantiz", BZ_KERNEL_QUANTIZE},
    {"quant_", BZ_KERNEL_QUANTIZE},
    {"ropout", BZ_KERNEL_RANDOM},
    {"distribution_", BZ_KERNEL_RANDOM},
    {"curand", BZ_KERNEL_RANDOM},
    {"rand_generator", BZ_KERNEL_RANDOM},
    {"philox", BZ_KERNEL_RANDOM},
    {"RadixSort", BZ_KERNEL_SORT},
    {"radixSort", BZ_KERNEL_SORT},
    {"bitonicSort", BZ_KERNEL_SORT},
    {"MergeSort", BZ_KERNEL_SORT},
    {"DeviceScan", BZ_KERNEL_SORT},
    {"tensor_kernel_scan", BZ_KERNEL_SORT},
    {"topk", BZ_KERNEL_SORT},
    {"TopK", BZ_KERNEL_SORT},
    {"DeviceSelect", BZ_KERNEL_SORT},
    {"mbedding", BZ_KERNEL_GATHER},
    {"gather", BZ_KERNEL_GATHER},
    {"Gather", BZ_KERNEL_GATHER},
    {"scatter", BZ_KERNEL_GATHER},
    {"Scatter", BZ_KERNEL_GATHER},
    {"index_", BZ_KERNEL_GATHER},
    {"indexSelect", BZ_KERNEL_GATHER},
    {"krn_partial", BZ_KERNEL_GATHER}, /* gradients of embeddings */
    {"nchwToNhwc", BZ_KERNEL_LAYOUT},
    {"nhwcToNchw", BZ_KERNEL_LAYOUT},
    {"NCHW2NHWC", BZ_KERNEL_LAYOUT},
    {"NHWC2NCHW", BZ_KERNEL_LAYOUT},
    {"ToNhwc", BZ_KERNEL_LAYOUT},
    {"ToNchw", BZ_KERNEL_LAYOUT},
    {"ranspose", BZ_KERNEL_LAYOUT},
    {"ermute", BZ_KERNEL_LAYOUT},
    {"Reformat", BZ_KERNEL_LAYOUT},
    {"ShuffleInTensor", BZ_KERNEL_LAYOUT},
    {"SwapDimension", BZ_KERNEL_LAYOUT},
    {"Typecast", BZ_KERNEL_LAYOUT},
    {"float_to_", BZ_KERNEL_LAYOUT},
    {"_to_float", BZ_KERNEL_LAYOUT},
    {"_copy_kernel_cuda", BZ_KERNEL_LAYOUT}, /* PyTorch's copies to another type */
    {"direct_copy_kernel", BZ_KERNEL_MOVE},
    {"CatArray", BZ_KERNEL_MOVE},
    {"oncat", BZ_KERNEL_MOVE},
    {"SliceExp", BZ_KERNEL_MOVE},
    {"copyBuffer", BZ_KERNEL_MOVE},
    {"fillBuffer", BZ_KERNEL_MOVE},
    {"FillFunctor", BZ_KERNEL_MOVE},
    {"set_to_int", BZ_KERNEL_MOVE},
    {"set_zero", BZ_KERNEL_MOVE},
    {"fill::functor", BZ_KERNEL_MOVE},
    {"ClearTensor", BZ_KERNEL_MOVE},
    {"memset", BZ_KERNEL_MOVE},
    {"memcpy", BZ_KERNEL_MOVE},
    {"reduce_kernel", BZ_KERNEL_REDUCE},
    {"educe", BZ_KERNEL_REDUCE},
    {"argmax", BZ_KERNEL_REDUCE},
    {"rotary", BZ_KERNEL_ELEMENTWISE},
    {"and_mul", BZ_KERNEL_ELEMENTWISE},
    {"elementwise", BZ_KERNEL_ELEMENTWISE},
    {"ElementWise", BZ_KERNEL_ELEMENTWISE},
    {"Elementwise", BZ_KERNEL_ELEMENTWISE},
    {"lementWise", BZ_KERNEL_ELEMENTWISE},
    {"op_generic_tensor_kernel", BZ_KERNEL_ELEMENTWISE},
    {"OpTensor", BZ_KERNEL_ELEMENTWISE},
    {"scalePackedTensor", BZ_KERNEL_ELEMENTWISE},
    {"epilogue::", BZ_KERNEL_ELEMENTWISE},
    {"broadcast", BZ_KERNEL_ELEMENTWISE},
    {"mshadow::", BZ_KERNEL_ELEMENTWISE},
    {"mxnet_generic_kernel", BZ_KERNEL_ELEMENTWISE},
    {"EigenMetaKernel", BZ_KERNEL_ELEMENTWISE},
    {"activation", BZ_KERNEL_ELEMENTWISE},
    {"Relu", BZ_KERNEL_ELEMENTWISE},
    {"relu", BZ_KERNEL_ELEMENTWISE},
    {"Gelu", BZ_KERNEL_ELEMENTWISE},
    {"sigmoid", BZ_KERNEL_ELEMENTWISE},
    {"Bias", BZ_KERNEL_ELEMENTWISE},
    {"bias", BZ_KERNEL_ELEMENTWISE},
    {"caffe2::math", BZ_KERNEL_ELEMENTWISE},
    {"ointwise", BZ_KERNEL_ELEMENTWISE},
    {"triton_", BZ_KERNEL_ELEMENTWISE},
};

/* A framework's own comes before the library that it is built with, but after what it took from another project. */
static const struct {
    const char *pattern, *maker;
} MAKERS[] = {
    {"rccl", "RCCL"},
    {"nccl", "NCCL"},
    {"nvshmem", "NVSHMEM"},
    {"flashinfer", "FlashInfer"},
    {"flash_fwd", "FlashAttention"},
    {"flash_bwd", "FlashAttention"},
    {"flash::", "FlashAttention"},
    {"flash_attn", "FlashAttention"},
    {"fmha_cutlass", "xFormers"},
    {"MemEffAttention", "xFormers"},
    {"triton_", "Triton"},
    {"^Cijk_", "ROCm (rocBLAS, hipBLASLt)"},
    {"ck::", "ROCm (Composable Kernel)"},
    {"ck_tile::", "ROCm (Composable Kernel)"},
    {"iopen", "ROCm (MIOpen)"},
    {"MIOpen", "ROCm (MIOpen)"},
    {"igemm_fwd", "ROCm (MIOpen)"},
    {"igemm_bwd", "ROCm (MIOpen)"},
    {"igemm_wrw", "ROCm (MIOpen)"},
    {"rocclr", "ROCm"},
    {"rocprim", "ROCm"},
    {"hipcub", "ROCm"},
    {"vllm::", "vLLM"},
    {"tensorrt_llm", "TensorRT-LLM"},
    {"onnxruntime::", "ONNX Runtime"},
    {"tensorflow::", "TensorFlow"},
    {"Eigen::", "TensorFlow"},
    {"caffe2::", "Caffe2"},
    {"mxnet", "MXNet"},
    {"mshadow::", "MXNet"},
    {"phi::", "Paddle"},
    {"^trt_", "TensorRT"},
    {"nvinfer", "TensorRT"},
    {"genericReformat", "TensorRT"},
    {"__myl_", "TensorRT"},
    {"cublasLt", "cuBLASLt"},
    {"nvjet_", "cuBLASLt"},
    {"cublas", "cuBLAS"},
    {"cudnn", "cuDNN"},
    {"fprop", "cuDNN"},
    {"dgrad", "cuDNN"},
    {"wgrad", "cuDNN"},
    {"convolve", "cuDNN"},
    {"inograd", "cuDNN"},
    {"fft1d_", "cuDNN"},
    {"fft2d_", "cuDNN"},
    {"flip_filter", "cuDNN"},
    {"im2col4d", "cuDNN"},
    {"op_generic_tensor_kernel", "cuDNN"},
    {"bn_fw_", "cuDNN"},
    {"bn_bw_", "cuDNN"},
    {"pooling_fw", "cuDNN"},
    {"lrnForward_", "cuDNN"},
    {"cutlass", "CUTLASS"},
    {"xmma_gemm", "cuBLAS"},
    {"splitKreduce", "cuBLAS"},
    {"sgemm", "cuBLAS"},
    {"gemmSN", "cuBLAS"},
    {"gemv2", "cuBLAS"},
    {"gemvx", "cuBLAS"},
    {"gemvN", "cuBLAS"},
    {"gemmk1", "cuBLAS"},
    {"884gemm", "cuBLAS"},
    {"1688gemm", "cuBLAS"},
    {"16816gemm", "cuBLAS"},
    {"at::native", "PyTorch"},
    {"at_cuda_detail", "PyTorch"},
    {"c10::", "PyTorch"},
    {"at::cuda", "PyTorch"},
    {"cub::", "CUB"},
    {"thrust::", "Thrust"},
};

/* Without the types of its parameters: they say nothing about what it does. */
static void head_of(const char *name, char *out, size_t size)
{
    size_t n = bz_kernel_head(name);
    n = n < size ? n : size - 1;
    memcpy(out, name, n);
    out[n] = 0;
}

bz_kernel_does bz_kernel_group(const char *full)
{
    char name[4096];
    head_of(full, name, sizeof name);
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (bz_name_matches(RULES[i].pattern, name))
            return (bz_kernel_does)RULES[i].meaning;
    return BZ_KERNEL_OTHER;
}

const char *bz_kernel_maker(const char *full)
{
    char name[4096];
    head_of(full, name, sizeof name);
    for (size_t i = 0; i < sizeof MAKERS / sizeof *MAKERS; i++)
        if (bz_name_matches(MAKERS[i].pattern, name))
            return MAKERS[i].maker;
    return NULL;
}

const char *bz_kernel_does_name(bz_kernel_does does)
{
    return DOES[does].name;
}

bz_kernel_limit bz_kernel_limit_of(bz_kernel_does does)
{
    return DOES[does].limit;
}

const char *bz_kernel_limit_name(bz_kernel_limit limit)
{
    return LIMITS[limit];
}
