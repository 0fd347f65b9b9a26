/* Names of kernels: short ones that keep what tells kernels apart, and what they do. */
#include "profile/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static void short_names(void **state)
{
    (void)state;
    static const char *const NAMES[][2] = {
        {"volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"},
        {"CUDA graph 5", "CUDA graph 5"},
        {"", ""},
        {":", ":"},
        {"add(float*, int)", "add"},
        {"void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int, float const*)",
         "max_pool_forward_nchw"},
        {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>(float*)",
         "softmax_warp_forward"},
        {"void <unnamed>::softmax_warp_forward<float, (int)6, (bool)0>(T2 *, const T1 *)", "softmax_warp_forward"},
        {"at::cuda::(anonymous namespace)::spin_kernel(long)", "spin_kernel"},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, at::detail::Array<char*, 3> "
         ">(int, at::native::AddFunctor<float>, at::detail::Array<char*, 3>)",
         "vectorized_elementwise_kernel<AddFunctor>"},
        {"void at::native::vectorized_elementwise_kernel<(int)4, at::native::AUnaryFunctor<long, long, bool, "
         "at::native::<unnamed>::CompareEqFunctor<long>>, std::array<char *, (unsigned long)2>>(int, T2, T3)",
         "vectorized_elementwise_kernel<CompareEqFunctor>"},
        {"void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase "
         "&)::[lambda() (instance 3)]::operator ()() const>(int)",
         "unrolled_elementwise_kernel<direct_copy_kernel_cuda>"},
        {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>, "
         "unsigned "
         "int, float, 4> >(at::native::ReduceOp<float>)",
         "reduce_kernel<MeanOps>"},
        {"void mxnet::op::mxnet_op::mxnet_generic_kernel<mxnet::op::mxnet_op::op_with_req<mxnet::op::mshadow_op::relu, "
         "1>, float*, float*>(int, float*, float*)",
         "mxnet_generic_kernel<relu>"},
        {"void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_f16_128x128_32x5_nn_align8>(Params)",
         "Kernel2<cutlass_80_tensorop_s16816gemm_f16_128x128_32x5_nn_align8>"},
        {"void reduce_kernel<4, 5>(int)", "reduce_kernel"},
        {"void (", "void "},
        {"<<<<(((", "<<<<((("},
        {">>>>))", ">>>>))"},
        {"(anonymous namespace)::", "(anonymous namespace)::"},
    };
    bz_trace *t = bz_trace_new();
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        uint32_t name = bz_trace_text(t, NAMES[i][0]);
        assert_string_equal(bz_string(t, bz_trace_short_name(t, name)), NAMES[i][1]);
    }
    bz_trace_free(t);
}

static void groups(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bz_kernel_does does;
        const char *maker;
    } KERNELS[] = {
        {"triton_poi_fused_add_relu_0", BZ_KERNEL_ELEMENTWISE, "Triton"},
        {"triton_red_fused_native_layer_norm_3", BZ_KERNEL_NORM, "Triton"},
        {"triton_per_fused__softmax_7", BZ_KERNEL_SOFTMAX, "Triton"},
        {"triton_tem_fused_mm_1", BZ_KERNEL_PRODUCT, "Triton"},
        {"void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>(Params)",
         BZ_KERNEL_PRODUCT, "CUTLASS"},
        {"cutlass_80_simt_sgemm_128x64_8x5_nt_align1", BZ_KERNEL_PRODUCT, "CUTLASS"},
        {"void cublasLt::splitKreduce_kernel<32, 16, int>(cublasLt::cublasSplitKParams<float>)", BZ_KERNEL_PRODUCT_PART,
         "cuBLASLt"},
        {"nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT", BZ_KERNEL_PRODUCT, "cuBLASLt"},
        {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >(Params)",
         BZ_KERNEL_ATTENTION, "FlashAttention"},
        {"fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)", BZ_KERNEL_ATTENTION, "xFormers"},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
         BZ_KERNEL_ATTENTION, "cuDNN"},
        {"ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)", BZ_KERNEL_COMMUNICATION, "NCCL"},
        {"Cijk_Ailk_Bljk_HB_MT128x128x32_MI32x32x8x1_SE_1LDSB0", BZ_KERNEL_PRODUCT, "ROCm (rocBLAS, hipBLASLt)"},
        {"miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_edc_stride1", BZ_KERNEL_CONV, "ROCm (MIOpen)"},
        {"void ck::kernel_gemm_xdl_cshuffle_v1<ck::GridwiseGemm>(Args)", BZ_KERNEL_PRODUCT, "ROCm (Composable Kernel)"},
        {"void cudnn::detail::dgrad_engine<float, 512, 6, 5>(int)", BZ_KERNEL_CONV_BACKWARD, "cuDNN"},
        {"void op_generic_tensor_kernel<2, float>(cudnnTensorStruct, cudnn::reduced_divisor)", BZ_KERNEL_ELEMENTWISE,
         "cuDNN"},
        {"sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc", BZ_KERNEL_CONV, "cuDNN"},
        {"void at::native::(anonymous namespace)::adaptive_average_pool<float>(float const*)", BZ_KERNEL_POOL,
         "PyTorch"},
        {"my_kernel", BZ_KERNEL_OTHER, NULL},
    };
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
        const char *maker = bz_kernel_maker(KERNELS[i].name);
        if (bz_kernel_group(KERNELS[i].name) != KERNELS[i].does)
            fail_msg("%s: %s", KERNELS[i].name, bz_kernel_does_name(bz_kernel_group(KERNELS[i].name)));
        if (!maker != !KERNELS[i].maker || (maker && strcmp(maker, KERNELS[i].maker) != 0))
            fail_msg("%s: by %s", KERNELS[i].name, maker ? maker : "nobody");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_names), cmocka_unit_test(groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
