/* What the full name of a kernel tells: one table for all that today's programs run. A row is an attribute, its value, and the
 * patterns of names that have it, as for bz_name_matches and with blanks between them. Of each attribute the first row that
 * matches counts; a new sort of kernels is a row, or a word in one. */
#include "profile/trace.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    bz_kernel_limit limit;
    const char *layer; /* that a kernel of the group does by itself, where no row says more */
} DOES[BZ_KERNEL_DOES] = {
    [BZ_KERNEL_OTHER] = {"other", BZ_LIMIT_UNKNOWN, NULL},
    [BZ_KERNEL_CONV] = {"convolution", BZ_LIMIT_COMPUTE, "conv"},
    [BZ_KERNEL_CONV_BACKWARD] = {"convolution, backward", BZ_LIMIT_COMPUTE, "conv"}, /* or a transposed one */
    [BZ_KERNEL_CONV_PART] = {"convolution, preparation", BZ_LIMIT_MEMORY, "conv"},
    [BZ_KERNEL_CONV_DEPTHWISE] = {"depthwise convolution", BZ_LIMIT_MEMORY, "conv"},
    [BZ_KERNEL_PRODUCT] = {"matrix product", BZ_LIMIT_COMPUTE, "product"},
    [BZ_KERNEL_PRODUCT_PART] = {"matrix product, sum of parts", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_VECTOR_PRODUCT] = {"matrix times vector", BZ_LIMIT_MEMORY, "product"},
    [BZ_KERNEL_ATTENTION] = {"attention", BZ_LIMIT_COMPUTE, "attention"},
    [BZ_KERNEL_RNN] = {"recurrent", BZ_LIMIT_COMPUTE, NULL},
    [BZ_KERNEL_NORM] = {"normalization", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_SOFTMAX] = {"softmax", BZ_LIMIT_MEMORY, "softmax"},
    [BZ_KERNEL_POOL] = {"pooling", BZ_LIMIT_MEMORY, "pool"},
    [BZ_KERNEL_ELEMENTWISE] = {"element-wise", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_REDUCE] = {"reduction", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_LAYOUT] = {"layout and type", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_PAD] = {"padding", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_MOVE] = {"copy, concat, fill", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_GATHER] = {"gather and scatter", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_SORT] = {"sort and scan", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_RANDOM] = {"random numbers", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_RESIZE] = {"resize", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_LOSS] = {"loss", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_OPTIMIZER] = {"optimizer", BZ_LIMIT_MEMORY, "update"},
    [BZ_KERNEL_QUANTIZE] = {"quantization", BZ_LIMIT_MEMORY, NULL},
    [BZ_KERNEL_COMMUNICATION] = {"communication", BZ_LIMIT_NETWORK, NULL},
};

static const char *const LIMITS[] = {"unknown", "compute", "memory", "network"};

typedef enum { GROUP, MAKER, UNIT, TYPE, ALGORITHM, BEGINS, LAYER, ATTRIBUTES } attribute;

typedef struct rule {
    attribute of;
    int value; /* group: bz_kernel_does; maker: bz_kernel_owner; begins: bz_kernel_part; layer: bz_cause_kind, or none */
    const char *text; /* maker, unit, type, algorithm, layer */
    const char *names;
} rule;

static const rule RULES[] = {
    /* ---- groups. Triton, as PyTorch's compiler names what it makes: the word behind triton_ says the sort, the others the
     * operators that it is a part of, or stands beside, as attention or a collective */
    {GROUP, BZ_KERNEL_ATTENTION, NULL, "triton_tem_*attention"},
    /* Ascend's: the call of aclnn, and behind it the operator */
    {GROUP, BZ_KERNEL_LAYOUT, NULL, "_TransData$ aclnn*_Cast$ aclnn*_Transpose$"},
    {GROUP, BZ_KERNEL_MOVE, NULL, "aclnn*_MemSet$ aclnn*_ZerosLike$ aclnn*_OnesLike$ aclnn*_TensorMove$"},
    {GROUP, BZ_KERNEL_CONV_BACKWARD, NULL, "^Conv2DBackprop ^Conv3DBackprop"},
    {GROUP, BZ_KERNEL_CONV, NULL, "^Conv2D ^Conv3D aclnnConvolution"},
    {GROUP, BZ_KERNEL_ELEMENTWISE, NULL,
     "aclnn*_Mul$ aclnn*_Add$ aclnn*_Sub$ aclnn*_RealDiv$ aclnn*_Axpy$ aclnn*_Addcmul$ aclnn*_Addcdiv$ aclnn*_Sqrt$ "
     "aclnn*_Relu"},
    {GROUP, BZ_KERNEL_CONV, NULL, "triton_tem_fused_convolution triton_tem_*_convolution"},
    {GROUP, BZ_KERNEL_PRODUCT, NULL, "triton_tem_ triton_mm triton_bmm"},
    {GROUP, BZ_KERNEL_POOL, NULL, "triton_poi_*max_pool triton_poi_*avg_pool"},
    {GROUP, BZ_KERNEL_MOVE, NULL, "triton_poi_fused_cat_ triton_poi_fused_clone_"},
    {GROUP, BZ_KERNEL_GATHER, NULL, "triton_poi_fused_embedding"},
    {GROUP, BZ_KERNEL_ELEMENTWISE, NULL, "triton_poi_ triton_for_"},
    {GROUP, BZ_KERNEL_SORT, NULL, "triton_spl_"}, /* scans */
    {GROUP, BZ_KERNEL_SOFTMAX, NULL, "triton_*softmax"},
    {GROUP, BZ_KERNEL_LOSS, NULL, "triton_*nll_loss"},
    {GROUP, BZ_KERNEL_NORM, NULL,
     "triton_*layer_norm triton_*rms_norm triton_*batch_norm triton_*group_norm triton_*mean*rsqrt"},
    {GROUP, BZ_KERNEL_REDUCE, NULL, "triton_red_ triton_per_"},

    /* Communication: NCCL, RCCL, NVSHMEM, and what servers of language models bring along */
    {GROUP, BZ_KERNEL_COMMUNICATION, NULL,
     "nccl rccl nvshmem deep_ep:: cross_device_reduce AllReduce all_reduce allreduce AllGather all_gather "
     "ReduceScatter reduce_scatter"},
    {GROUP, BZ_KERNEL_GATHER, NULL,
     "reshape_and_cache store_kv finalizeKernel"},                       /* of keys and values; of what experts made */
    {GROUP, BZ_KERNEL_SORT, NULL, "routingIndices _routing _bitmatrix"}, /* of tokens to experts */
    {GROUP, BZ_KERNEL_SOFTMAX, NULL, "attn_softmax"},
    /* FlashAttention, xFormers, cuDNN, TensorRT, vLLM, FlashInfer, Composable Kernel */
    {GROUP, BZ_KERNEL_NORM, NULL, "flashinfer::norm::"},
    {GROUP, BZ_KERNEL_SORT, NULL, "flashinfer::sampling::"},
    {GROUP, BZ_KERNEL_ELEMENTWISE, NULL, "flashinfer::*Rotary flashinfer::activation"},
    {GROUP, BZ_KERNEL_ATTENTION, NULL,
     "flash_fwd flash_bwd flash:: flash_attn flash_attention flashinfer:: FlashAttn FlashAttention fmha FMHA Fmha sdpa "
     "MemEffAttention AttentionKernel attention_kernel paged_attention unified_attention multihead_attention "
     "flex_attention _attn_fwd _attn_bwd attn_ PagedKVCache sage_fwd"},
    {GROUP, BZ_KERNEL_RNN, NULL, "RNN_block RNNcell elemWiseRNN LSTM_ lstm_cell GRU_ gru_cell persistRNN"},

    {GROUP, BZ_KERNEL_NORM, NULL, "layer_norm rms_norm batch_norm group_norm"},

    /* TensorRT's compiler: the first letters of its operators one behind the other */
    {GROUP, BZ_KERNEL_PRODUCT, NULL, "__myl_*Fc"},
    {GROUP, BZ_KERNEL_SOFTMAX, NULL, "__myl_*ExpSum"},
    {GROUP, BZ_KERNEL_NORM, NULL, "__myl_*Mea*Sqr"},
    {GROUP, BZ_KERNEL_MOVE, NULL, "__myl_Move __myl_Conc __myl_Repl"},
    {GROUP, BZ_KERNEL_ELEMENTWISE, NULL, "__myl_"},

    /* convolutions: cuDNN, CUTLASS in it, TensorRT, MIOpen, Composable Kernel, frameworks */
    {GROUP, BZ_KERNEL_CONV_DEPTHWISE, NULL, "epthwise conv2d_grouped_direct causal_conv1d"},
    {GROUP, BZ_KERNEL_CONV_BACKWARD, NULL,
     "dgrad Dgrad winogradWgrad wgrad Wgrad conv_bwd igemm_bwd igemm_wrw onvolutionBackward convolution_backward "
     "conv2d_grad"},
    {GROUP, BZ_KERNEL_CONV_PART, NULL,
     "OffsetsKernel compute_gemm_pointers kern_precompute_indices generateWinogradTiles winogradForwardData "
     "winogradForwardFilter"},
    {GROUP, BZ_KERNEL_CONV, NULL, "winogradForwardOutput"},
    {GROUP, BZ_KERNEL_CONV_PART, NULL, "flip_filter fft2d_r2c fft1d_r2c"},
    {GROUP, BZ_KERNEL_CONV, NULL, "fft2d_c2r fft1d_c2r"},
    {GROUP, BZ_KERNEL_CONV_PART, NULL, "gcgemm cgemm_32x32 im2col Im2Col Im2d2Col Im3d2Col vol2col"},
    {GROUP, BZ_KERNEL_CONV, NULL, "inograd fprop convolve"},
    {GROUP, BZ_KERNEL_CONV_BACKWARD, NULL, "stridedB"}, /* of cuDNN's kernels: gradients of data */
    {GROUP, BZ_KERNEL_CONV, NULL,
     "scudnn hcudnn icudnn 884cudnn 1688cudnn 16816cudnn 8816cudnn 16832cudnn cutlass::conv conv2d_c1_k1 conv_fwd "
     "convFwd igemm_fwd first_layer_fwd gridwise_convolution convolution_forward onvolutionForward AsmConv MIOpenConv "
     "naive_conv ImplicitGemm _conv_act"},

    /* products: cuBLAS, cuBLASLt, CUTLASS, rocBLAS (Cijk: Tensile), Composable Kernel, CUTE, Marlin, ggml */
    {GROUP, BZ_KERNEL_PRODUCT_PART, NULL, "splitKreduce splitk_reduce reduce_1Block Cijk_S_GA Cijk_*PostGSU"},
    {GROUP, BZ_KERNEL_VECTOR_PRODUCT, NULL, "gemv dot_kernel mul_mat_vec"},
    {GROUP, BZ_KERNEL_QUANTIZE, NULL, "dequant"}, /* even what a product needs */
    {GROUP, BZ_KERNEL_PRODUCT, NULL,
     "Cijk_ nvjet_ ^bmm_ gemm Gemm GEMM matmul MatMul mul_mat fused_moe Marlin marlin machete cutlass"},

    /* what moves data */
    {GROUP, BZ_KERNEL_NORM, NULL,
     "NormalizeKernel Normalization LayerNorm RMSNorm GroupNorm BatchNorm InstanceNorm RowwiseMoments "
     "ComputeFusedParams GammaBeta AffineChannel ChannelPooling bn_fw_ bn_bw_ bnorm lrnForward LRN layernorm rmsnorm "
     "groupnorm Rmsnorm Layernorm"},
    {GROUP, BZ_KERNEL_SOFTMAX, NULL, "oftmax oftMax soft_max"},
    {GROUP, BZ_KERNEL_LOSS, NULL, "nll_loss ClassNLLCriterion cross_entropy CrossEntropy ctc_loss"},
    {GROUP, BZ_KERNEL_POOL, NULL,
     "axPool max_pool avg_pool pool_max pool_sum pool_avg pooling Pooling AveragePool average_pool adaptive_average"},
    {GROUP, BZ_KERNEL_RESIZE, NULL, "upsample Upsample Resize interpolate"},
    {GROUP, BZ_KERNEL_PAD, NULL,
     "pad_constant_kernel pad_edge_kernel constant_pad reflection_pad replication_pad AddPadding cuPad _PadKernel"},
    /* beside the update: gradients are set to zero, and how long they are is asked */
    {GROUP, BZ_KERNEL_MOVE, NULL, "multi_tensor_apply*ZeroFunctor"},
    {GROUP, BZ_KERNEL_REDUCE, NULL, "multi_tensor_apply*NormFunctor"},
    {GROUP, BZ_KERNEL_OPTIMIZER, NULL, "multi_tensor_apply adam Adam sgd_ lamb_"},
    {GROUP, BZ_KERNEL_QUANTIZE, NULL, "uantiz quant_"},
    {GROUP, BZ_KERNEL_RANDOM, NULL,
     "ropout distribution_ curand rand_generator philox Philox SampleUniform SampleNormal"},
    {GROUP, BZ_KERNEL_SORT, NULL,
     "RadixSort radixSort bitonicSort MergeSort DeviceScan tensor_kernel_scan topk TopK top_k argsort moe_align "
     "DeviceSelect searchsorted"},
    {GROUP, BZ_KERNEL_ELEMENTWISE, NULL, "rotary Rotary rope_"},
    {GROUP, BZ_KERNEL_GATHER, NULL,
     "mbedding gather Gather scatter Scatter index_ indexSelect check_indices get_rows krn_partial"}, /* the last: gradients */
    {GROUP, BZ_KERNEL_LAYOUT, NULL,
     "nchwTo nhwcTo NCHW2 NHWC2 ToNhwc ToNchw ranspose ermut Reformat ShuffleInTensor SwapDimension tensorTransform "
     "transform_0 transform4d Typecast float_to_ _to_float _copy_kernel_cuda"}, /* the last: PyTorch's copies to another type */
    {GROUP, BZ_KERNEL_MOVE, NULL,
     "CatArray oncat SliceExp Slice slice_forward Expand copyBuffer fillBuffer FillFunctor FillFrom set_to_int "
     "set_zero fill::functor ClearTensor memset memcpy Memcpy Memset split_with_sizes cpy_ copy_async roll_cuda "
     "flip_cuda"},
    {GROUP, BZ_KERNEL_REDUCE, NULL, "educe argmax ArgMax nrm2 asum bias_diff"},
    {GROUP, BZ_KERNEL_ELEMENTWISE, NULL,
     "and_mul elementwise lementWise Elementwise ltwise op_generic_tensor_kernel op_tensor_kernel OpTensor "
     "TensorOpWith TensorGeneric TensorLite add_tensor scalePackedTensor epilogue:: broadcast bin_bcast unary_op "
     "mshadow:: mxnet_generic_kernel EigenMetaKernel _GPU_DT_ activation Relu relu Gelu gelu silu Silu sigmoid axpy "
     "scal_kernel "
     "cuScale Bias bias caffe2::math ointwise triton_ wrapped_ loop_*fusion ^fusion"},

    /* ---- makers. A framework's own comes before the library that it is built with, but after what it took from another project */
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "RCCL", "rccl nccl*.kd"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "NCCL", "nccl"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "NVSHMEM", "nvshmem"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "FlashInfer", "flashinfer"},
    {MAKER, BZ_KERNEL_OF_LIBRARY, "cuDNN", "cudnn_generated"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "FlashAttention", "flash_fwd flash_bwd flash:: flash_attn"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "xFormers", "fmha_cutlass MemEffAttention"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "Triton", "triton_"},
    {MAKER, BZ_KERNEL_OF_LIBRARY, "ROCm (rocBLAS, hipBLASLt)", "Cijk_ rocblas"},
    {MAKER, BZ_KERNEL_OF_LIBRARY, "ROCm (Composable Kernel)", "ck:: ck_tile _ZN2ck"},
    {MAKER, BZ_KERNEL_OF_LIBRARY, "ROCm (MIOpen)",
     "iopen MIOpen igemm_fwd igemm_bwd igemm_wrw gridwise_convolution ^mlo"},
    {MAKER, BZ_KERNEL_OF_LIBRARY, "ROCm", "rocclr rocprim hipcub"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "vLLM", "vllm::"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "SGLang", "sglang:: sgl_"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "DeepGEMM", "deep_gemm::"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "TensorRT-LLM", "tensorrt_llm"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "ONNX Runtime", "onnxruntime::"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "TensorFlow", "tensorflow:: Eigen::"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "Caffe2", "caffe2::"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "MXNet", "mxnet mshadow::"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "Paddle", "phi::"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "PyTorch", "at::native at_cuda_detail c10:: at::cuda"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "TensorRT", "^trt_ _trt$ nvinfer genericReformat __myl_"},
    {MAKER, BZ_KERNEL_OF_LIBRARY, "cuBLASLt", "cublasLt nvjet_"},
    {MAKER, BZ_KERNEL_OF_LIBRARY, "cuBLAS", "cublas"},
    {MAKER, BZ_KERNEL_OF_LIBRARY, "cuDNN",
     "cudnn fprop dgrad wgrad convolve inograd fft1d_ fft2d_ flip_filter im2col4d conv2d_grouped conv2d_c1_k1 "
     "op_generic_tensor_kernel op_tensor_kernel RNN_blockPersist elemWiseRNN LSTM_elementWise GRU_elementWise bn_fw_ "
     "bn_bw_ pooling_fw lrnForward_ softmax_fw_kernel"},
    {MAKER, BZ_KERNEL_OF_LIBRARY, "CUTLASS", "cutlass"},
    {MAKER, BZ_KERNEL_OF_LIBRARY, "cuBLAS",
     "xmma_gemm splitKreduce sgemm gemmSN gemv2 gemvx gemvN gemmk1 884gemm 1688gemm 16816gemm"},
    {MAKER, BZ_KERNEL_OF_ANYONE, "CUB", "cub::"},
    {MAKER, BZ_KERNEL_OF_FRAMEWORK, "Thrust", "thrust::"},

    /* ---- matrix units. Volta, Turing: volta_fp16_s884cudnn, turing_h1688gemm; Ampere: ampere_bf16_s16816gemm,
     * cutlass_80_tensorop_s1688; Hopper: sm90_xmma_gemm_…_gmma, nvjet; cuDNN's and TensorRT's xmma names a unit but where it says
     * ffma. volta_scudnn_ and _sgemm_ are plain arithmetic. AMD's: MI is Tensile's word for matrix instructions. */
    {UNIT, 0, NULL,
     "ffma simt _fp32_fp32_fp32_ sm50_ sm60_ sm61_ flash_*combine flash_*convert_dq flash_*dot_do_o fmha*_f32_*_sm70 "
     "fmha*_f32_*_sm75 fmha*_bf16_*_sm70 fmha*_bf16_*_sm75"},
    {UNIT, 0, "Tensor Cores",
     "_h884 _s884 _i884 _h1688 _s1688 _h16816 _s16816 _i8816 _i16832 _i8832 tensorop tensor16x8x hmma imma xmma gmma "
     "wgmma wmma nvjet_ m16n8k16 deep_gemm:: marlin Marlin pytorch_flash:: flash_fwd flash_bwd flash:: "
     "fmha_cutlass*_sm70 fmha_cutlass*_sm75 fmha_cutlass*_sm80 fmhaSm ^bmm_*_sm100"},
    {UNIT, 0, "Matrix Cores",
     "Cijk_*_MI16x Cijk_*_MI32x Cijk_*_MI4x xdl mfma igemm_*_gtc ck_tile*Fmha ck_tile*GemmKernel aiter::fmha_"},

    /* ---- types. CUTLASS's s1688 multiplies in TF32 unless it says f16; nvjet says its operands, its sums and its results by a letter each: h is
     * f16, t bf16, q f8. Tensile's Cijk says operands, results and sums: B is bf16, H f16, S f32. */
    {TYPE, 0, "tf32", "tf32"},
    {TYPE, 0, "f64", "dgemm _d884 f64f64 Cijk_*_DB_"},
    {TYPE, 0, "f8", "e4m3 e5m2 E4m3 fp8 float8 nvjet*_qq Cijk_*_F8"},
    {TYPE, 0, "i8", "_i884 _i8816 _i8832 _i16832 imma int8 Cijk_*_I8 Cijk_*_4xi8"},
    {TYPE, 0, "bf16",
     "bf16 BFloat16 Bfloat16 bfloat16 DF16b nvjet*_ts Cijk_*_BBS_ Cijk_*_BSS_ Cijk_*_B_BS_ Cijk_*_B_SS_"},
    {TYPE, 0, "f16",
     "_Float16 DF16_ h884 s884 h1688 h16816 s16816 hgemm f16f16 fp16_s _fp16_ Fp16 _f16 _half half_ __half Half "
     "_hcudnn_ nvjet*_hs "
     "nvjet*_hh "
     "Cijk_*_HHS_ "
     "Cijk_*_HSS_ Cijk_*_H_HS_ Cijk_*_H_SS_ Cijk_*_HB_"},
    /* what was never written for f32: of which type of 16 bits the name may not say */
    {TYPE, 0, "f16", "pytorch_flash:: flash_fwd flash_bwd flash:: ck_tile*Fmha marlin Marlin"},
    {TYPE, 0, "f32", "Cijk_*_SB_ Cijk_*_S_B_"},
    {TYPE, 0, "tf32", "_s1688"},

    /* ---- algorithms of cuDNN, Volta to Hopper. Winograd comes first: its kernels carry scudnn in their names as well. Backward
     * passes have algorithms of their own, and what prepares the filter for the next kernel tells none. */
    {ALGORITHM, 0, NULL, "dgrad wgrad"},
    {ALGORITHM, 0, "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD", "winograd3x3Kernel"},
    {ALGORITHM, 0, NULL, "generateWinogradTilesKernel"},
    {ALGORITHM, 0, "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED",
     "winogradForwardData winogradForwardFilter winogradForwardOutput winograd_nonfused"},
    {ALGORITHM, 0, "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD", "_winograd_"},
    {ALGORITHM, 0, "CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING", "fft2d_r2c_16x16 fft2d_r2c_32x32"},
    {ALGORITHM, 0, "CUDNN_CONVOLUTION_FWD_ALGO_FFT", "fft2d_r2c"},
    {ALGORITHM, 0, "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM", "implicit_convolve_ conv2d_c1_k1"},
    {ALGORITHM, 0, "CUDNN_CONVOLUTION_FWD_ALGO_GEMM", "explicit_convolve_ im2col4d"},
    {ALGORITHM, 0, "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM",
     "precomputed_convolve_ _scudnn_ _s884cudnn_ _h884cudnn_ _s1688cudnn_ _h1688cudnn_ _fprop_implicit_gemm_ _hcudnn_"},

    /* ---- what a convolution of several kernels begins with */
    {BEGINS, BZ_KERNEL_UNFOLDS, NULL, "im2col Im2Col Im2d2Col"},
    {BEGINS, BZ_KERNEL_TRANSFORMS, NULL, "winogradForward fft1d_r2c fft2d_r2c"},

    /* ---- layers that a kernel does which no library call asked for; and what it does that no layer asks for */
    {LAYER, BZ_CAUSE_INPUT_PADDED, NULL, "pad_constant_kernel constant_pad"},
    {LAYER, BZ_CAUSE_EDGES_REPEATED, NULL, "pad_edge_kernel"},
    {LAYER, 0, "pad", "reflection_pad replication_pad"},
    {LAYER, BZ_CAUSE_LAYOUT_CHANGED, NULL, "nchwToNhwc nhwcToNchw NCHW2NHWC NHWC2NCHW"},
    {LAYER, BZ_CAUSE_FILLED, NULL, "set_to_int FillFunctor"},
    {LAYER, 0, "conv_weights", "wgrad Wgrad BackwardFilter bwd_filter igemm_wrw"},
    {LAYER, 0, "conv_data", "dgrad Dgrad BackwardData bwd_data igemm_bwd stridedB"},
    {LAYER, 0, "batchnorm_grad", "bn_bw_ batch_norm_backward"},
    {LAYER, 0, "layernorm_grad", "layer_norm_grad layer_norm_backward"},
    {LAYER, 0, "pool_grad", "pool*_backward pooling_bw"},
    {LAYER, 0, "softmax_grad", "oftmax*ackward"},
    {LAYER, 0, "activation_grad", "threshold_kernel _backward_kernel BackwardCUDAKernel"},
    {LAYER, 0, "relu", "OP_Relu"},
    {LAYER, BZ_CAUSE_CONVERTED, NULL, "Typecast"},
    {LAYER, 0, "concat", "SliceExp"}, /* mshadow writes each input into a slice of the result */
    {LAYER, 0, "batchnorm", "BatchNormalization batch_norm bn_fw_inf"},
    {LAYER, 0, "layernorm", "layer_norm LayerNorm"},
    {LAYER, 0, "rmsnorm", "rms_norm RMSNorm"},
    {LAYER, 0, "groupnorm", "group_norm GroupNorm"},
    {LAYER, 0, "leaky", "leaky_relu LeakyRelu"},
    {LAYER, 0, "relu", "mshadow_op::relu ReluCUDAKernel ReluFunctor"},
    {LAYER, 0, "swish", "silu_kernel SiluFunctor"},
    {LAYER, 0, "hardswish", "hardswish"},
    {LAYER, 0, "hardsigmoid", "hardsigmoid"},
    {LAYER, 0, "clip", "clamp"},
    {LAYER, 0, "sigmoid", "mshadow_op::sigmoid sigmoid"},
    {LAYER, 0, "tanh", "tanh"},
    {LAYER, 0, "gelu_erf", "GeluCUDAKernel"},
    {LAYER, 0, "bias", "binary_broadcast_kernel<*mshadow_op::plus"},
    {LAYER, 0, "add", "mshadow_op::plus"},
    {LAYER, 0, "mul", "mshadow_op::mul"},
    {LAYER, 0, "add", "CUDAFunctor_add AddFunctor OP_Add"},
    {LAYER, 0, "mul", "MulFunctor OP_Mul"},
    {LAYER, 0, "sub", "SubFunctor"},
    {LAYER, 0, "div", "DivFunctor"},
    {LAYER, 0, "maxpool", "axPool max_pool pool_max pooling_fw*maxpooling"},
    {LAYER, 0, "avgpool", "avg_pool average_pool AveragePool pool_avg pool_sum pooling_fw*averpooling"},
    {LAYER, 0, "pool", "pooling_fw"},
    {LAYER, 0, "logsoftmax", "LogSoftMaxForward"},
    {LAYER, 0, "softmax", "oftmax"},
    {LAYER, 0, "concat", "oncat CatArrayBatchedCopy"},
    {LAYER, 0, "lrn", "lrnForward ChannelPooling"},
    {LAYER, 0, "transpose", "ranspose"},
    {LAYER, 0, "gather", "mbeddingGather gather indexSelect"},
    {LAYER, 0, "where", "where_kernel masked_fill_kernel"},
    {LAYER, 0, "reduce", "MeanOps sum_functor ReduceMean ReduceSum"},
    {LAYER, 0, "bias", "(cudnnGenericOp_t)0 BiasNHWCKernel BiasNCHWKernel"},
    {LAYER, 0, "relu", "(cudnnGenericOp_t)8 EigenMetaKernel*scalar_max_op Relu_GPU_DT"},
    {LAYER, 0, "add", "EigenMetaKernel*scalar_sum_op AddV2_GPU_DT"},
    {LAYER, 0, "mul", "EigenMetaKernel*scalar_product_op Mul_GPU_DT"},
    {LAYER, 0, "sub", "EigenMetaKernel*scalar_difference_op Sub_GPU_DT"},
};

/* Without its parameters, whose types say nothing about what it does; what stands behind them stays: " [clone .kd]". */
static void head_of(const char *name, char *out, size_t size)
{
    size_t n = bz_kernel_head(name);
    const char *rest = strrchr(name + n, ')');
    snprintf(out, size, "%.*s%s", (int)(n < size ? n : size - 1), name, rest ? rest + 1 : "");
}

static const rule *find(attribute of, const bz_paired_name *name)
{
    static const rule NONE = {ATTRIBUTES, 0, NULL, NULL};
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (RULES[i].of == of && bz_paired_name_matches_any(RULES[i].names, name))
            return &RULES[i];
    return &NONE;
}

/* Products of matrices and vectors as cuBLAS computes them: not those within a convolution, nor a framework's. */
static bz_product product_of(const bz_kernel *k)
{
    if (k->owner == BZ_KERNEL_OF_FRAMEWORK)
        return BZ_PRODUCT_NONE;
    return k->does == BZ_KERNEL_PRODUCT || k->does == BZ_KERNEL_VECTOR_PRODUCT ? BZ_PRODUCT
           : k->does == BZ_KERNEL_PRODUCT_PART                                 ? BZ_PRODUCT_REST
                                                                               : BZ_PRODUCT_NONE;
}

static bool computes(bz_kernel_does does)
{
    return does >= BZ_KERNEL_CONV && does <= BZ_KERNEL_RNN;
}

void bz_kernel_read(const char *full, bz_kernel *out)
{
    char text[4096];
    head_of(full, text, sizeof text);
    const bz_paired_name head = bz_name_paired(text), whole = bz_name_paired(full);
    const rule *maker = find(MAKER, &head), *layer = find(LAYER, &whole), *unit;
    if (maker->of == ATTRIBUTES)
        maker = find(MAKER, &whole);
    *out = (bz_kernel){.does = (bz_kernel_does)find(GROUP, &head)->value, .maker = maker->text};
    bool product = computes(out->does);
    unit = product || !out->does ? find(UNIT, &head) : NULL;
    out->unit = unit ? unit->text : NULL;
    /* libraries name what they multiply with; Triton and others name a kernel as the function that a person wrote */
    out->tells_unit = unit && (unit->of == UNIT || (maker->of == MAKER && maker->value == BZ_KERNEL_OF_LIBRARY));
    out->type = find(TYPE, &whole)->text;
    if (product && out->tells_unit && !out->unit && !out->type) /* plain arithmetic tells other types, and no f32 */
        out->type = "f32";
    out->owner = out->maker ? (bz_kernel_owner)maker->value : product ? BZ_KERNEL_OF_LIBRARY : BZ_KERNEL_OF_ANYONE;
    out->algorithm = find(ALGORITHM, &whole)->text;
    out->begins = (bz_kernel_part)find(BEGINS, &whole)->value;
    out->product = product_of(out);
    out->layer = layer->of == ATTRIBUTES ? DOES[out->does].layer : layer->text;
    out->cause = (bz_cause_kind)layer->value;
}

const bz_kernel *bz_kernel_named(const bz_trace *t, uint32_t name)
{
    struct bz_trace_private *p = t->private;
    if (name >= p->cap_kernels) {
        uint32_t cap = p->n_strings > name ? p->n_strings : name + 1;
        p->kernels = bz_arena_grow(&p->read_arena, p->kernels, p->cap_kernels, cap, sizeof(bz_kernel *));
        p->cap_kernels = cap;
    }
    if (!p->kernels[name]) {
        p->kernels[name] = BZ_NEW(&p->read_arena, bz_kernel, 1);
        bz_kernel_read(bz_string(t, name), p->kernels[name]);
    }
    return p->kernels[name];
}

const bz_kernel *bz_kernel_of(const bz_trace *t, size_t kernel)
{
    return bz_kernel_named(t, t->event[BZ_EVENT_KERNEL].name[kernel]);
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
