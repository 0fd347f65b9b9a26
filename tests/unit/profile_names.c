/* Names of kernels: short ones that keep what tells kernels apart, and what they do. */
#include "profile/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

#include "tests/unit/profile_kernels.h"

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
        {"void ck_tile::kentry<2, ck_tile::FmhaFwdKernel<ck_tile::Pipeline<float> > >(int)", "kentry<FmhaFwdKernel>"},
        /* as the linker knows them */
        {"_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassIDF16bEEEEEvT_",
         "kentry<Rmsnorm2dFwd>"},
        {"_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8EEEvPT0_PT_", "add_rmsnorm_quant_kernel"},
        {"_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_7_",
         "kernel_grouped_conv_fwd_xdl_cshuffle_v3"},
        {"_ZN7ck_tile6kentryILi1EDF16bS0_", "kentry"},
        {"_ZN99short", "_ZN99short"},
        {"_ZN", "_ZN"},
        {"_ZN999999999999999999999x", "_ZN999999999999999999999x"},
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

static bool same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static void kernels(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
        bz_kernel k;
        bz_kernel_read(KERNELS[i].name, &k);
        if (k.does == KERNELS[i].does && same(k.maker, KERNELS[i].maker) && same(k.unit, KERNELS[i].unit))
            continue;
        print_error("%.100s: %s, by %s, on %s\n", KERNELS[i].name, bz_kernel_does_name(k.does),
                    k.maker ? k.maker : "nobody", k.unit ? k.unit : "no unit");
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Names of an H200's recordings, of cuDNN 7 and of PyTorch's element-wise kernels. */
static void types_of_kernels(void **state)
{
    static const char *const TYPES[][2] = {
        {"volta_sgemm_128x64_nn", "f32"},
        {"void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>(int)", "f32"},
        {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4", "f32"},
        {"void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>(Params)", "f32"},
        {"sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize128x128x32_warpgroupsize1x1x1_execute", "tf32"},
        {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x4_nt_align4>(Params)", "tf32"},
        {"turing_fp16_s1688cudnn_fp16_256x128_ldg8_relu_f2f_exp_interior_nhwc_tn_v1", "f16"},
        {"volta_h884gemm_64x64_ldg8_nn", "f16"},
        {"void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_128x256_64x3_nn_align2>(Params)", "f16"},
        {"nvjet_sm90_hsh_96x128_64x7_2x1_v_bz_bias_TNN", "f16"},
        {"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "bf16"},
        {"ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x6_tn", "bf16"},
        {"turing_int8_i8816cudnn_int8_256x64_ldg16_relu_singleBuffer_small_nt_v1", "i8"},
        {"void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, cutlass::bfloat16_t>>(Params)",
         "bf16"},
        {"void pytorch_flash::flash_fwd_splitkv_combine_kernel<Traits, 4, 1>(Flash_fwd_params)", "f16"},
        {"void gemv_kernel<__nv_bfloat16, __nv_bfloat16, float>(int)", "bf16"},
        {"fmha_v2_flash_attention_fp16_64_64_S_80_sm86_kernel_wmma_nl", "f16"},
        {"igemm_fwd_gtcx3_nhwc_fp16_bx0_ex0_bt128x128x32_wt32x32x8_ws1x1", "f16"},
        {"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext", "f8"},
        {"fmhaSm100aKernel_QkvBfloat16OBfloat16H128PagedKvCausalP32VarSeqQ128Kv128StaticContext", "bf16"},
        {"void marlin::Marlin<1125899906909960, 256, 1, 8, 8, 4, -1, false>(int4 const*)", "f16"},
        {"volta_dgemm_64x64_nt", "f64"},
        {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN_LDSB1", "bf16"},
        {"Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x128_MI16x16x1_SN_LDSB1", "bf16"},
        {"Cijk_Ailk_Bljk_HHS_BH_MT128x128x16_MI16x16x16x1_SN_1LDSB0_APM1_ABV0", "f16"},
        {"Cijk_Ailk_Bljk_SB_MT16x16x16_SE_AF0EM1_AMAS2_ASEM1_BL0_DTL0_EPS0", "f32"},
        {"Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT64x64x32_MI32x32x1_SN", "f32"},
        {"Custom_Cijk_Ailk_Bljk_F8NH_HHS_BH_Bias_AS_SAB_SAV_shortname0_gfx942", "f8"},
        {"void cudnn::engines_precompiled::nchwToNhwcKernel<__half, __half, float, false, true>(Params)", "f16"},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>(int)", "bf16"},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)", NULL},
        {"sm90_xmma_fprop_of_a_type_that_is_not_told", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        bz_kernel k;
        bz_kernel_read(TYPES[i][0], &k);
        if (!same(k.type, TYPES[i][1]))
            fail_msg("%s: %s", TYPES[i][0], k.type ? k.type : "no type");
    }
}

/* A name that does not tell whether its kernel runs on a matrix unit is no sign that it does not, nor of 32 bits. */
static void silent_kernels(void **state)
{
    static const struct {
        const char *name, *unit, *type;
        bool tells;
    } CASES[] = {
        {"_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", NULL, "bf16", false},
        {"attn_fwd", NULL, NULL, false},
        {"triton_tem_fused_mm_0", NULL, NULL, false},
        {"volta_sgemm_128x64_nn", NULL, "f32", true},
        {"void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>(Params)", NULL, "f32", true},
        {"volta_h884gemm_64x64_ldg8_nn", "Tensor Cores", "f16", true},
        {"_ZN7ck_tile6kentryILi2ENS_13FmhaFwdKernelINS_8PipelineIDF16bEEEEEvT_", "Matrix Cores", "bf16", true},
        {"aiter::fmha_fwd_hd128_bf16_rtz", "Matrix Cores", "bf16", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_kernel k;
        bz_kernel_read(CASES[i].name, &k);
        if (k.tells_unit != CASES[i].tells || !same(k.unit, CASES[i].unit) || !same(k.type, CASES[i].type))
            fail_msg("%s: %s, %s", CASES[i].name, k.unit ? k.unit : "no unit", k.type ? k.type : "no type");
    }
}

/* A name is read once, and stays what it was when more names come. */
static void kept(void **state)
{
    (void)state;
    bz_trace *t = bz_trace_new();
    uint32_t first = bz_trace_text(t, "volta_sgemm_128x64_nn");
    const bz_kernel *k = bz_kernel_named(t, first);
    assert_int_equal(k->product, BZ_PRODUCT);
    assert_int_equal(k->owner, BZ_KERNEL_OF_LIBRARY);
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        assert_int_equal(bz_kernel_named(t, bz_trace_text(t, KERNELS[i].name))->does, KERNELS[i].does);
    assert_ptr_equal(bz_kernel_named(t, first), k);
    bz_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_names), cmocka_unit_test(kernels),
                                       cmocka_unit_test(types_of_kernels), cmocka_unit_test(silent_kernels),
                                       cmocka_unit_test(kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
