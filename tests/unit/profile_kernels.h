/* Names of kernels as recordings and programs' sources have them: what each does, who made it, the matrix unit that it runs on. The
 * rules in profile/kernels.c are held against these. */
#ifndef BZ_TEST_PROFILE_KERNELS_H
#define BZ_TEST_PROFILE_KERNELS_H

#define KERNEL(DOES, MAKER, UNIT, NAME)                                                                                \
    {                                                                                                                  \
        BZ_KERNEL_##DOES, MAKER, UNIT, NAME                                                                            \
    }

static const struct {
    bz_kernel_does does;
    const char *maker, *unit, *name;
} KERNELS[] = {
    /* cuDNN 7 to 9 */
    KERNEL(CONV, "cuDNN", NULL,
           "void cudnn::detail::implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>(int, "
           "int, int, float const*, int, float*, float*, kernel_conv_params)"),
    KERNEL(CONV, "cuDNN", NULL,
           "void cudnn::detail::explicit_convolve_sgemm<float, int, 128, 5, 5, 3, 3, 3, 0, true>(int, int, int, float "
           "const*)"),
    KERNEL(CONV, "cuDNN", NULL, "void precomputed_convolve_sgemm<float, 1024, 5, 5, 4, 3, 3, 1, false>(int, int, int)"),
    KERNEL(CONV, "cuDNN", NULL, "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1"),
    KERNEL(CONV, "cuDNN", NULL, "_5x_cudnn_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1"),
    KERNEL(CONV, "cuDNN", NULL, "cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1"),
    KERNEL(CONV, "cuDNN", "Tensor Cores", "volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f_exp_small_nhwc2nchw_tn_v1"),
    KERNEL(CONV, "cuDNN", "Tensor Cores", "turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_interior_nhwc_tn_v1"),
    KERNEL(CONV, "cuDNN", NULL, "volta_int8x4_icudnn_int8x4_128x128_relu_small_nn_v1"),
    KERNEL(CONV, "cuDNN", "Tensor Cores",
           "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_"
           "warpsize2x2x1_g1_tensor16x8x8_alignc4_execute_kernel_cudnn"),
    KERNEL(CONV, "cuDNN", "Tensor Cores",
           "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x64x32_stage3_warpsize4x1x1_g1_"
           "tensor16x8x16_execute_kernel__5x_cudnn"),
    KERNEL(CONV, "cuDNN", NULL,
           "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8_stage3_warpsize1x2x1_g1_ffma_"
           "aligna4_alignc4_execute_kernel__5x_cudnn"),
    KERNEL(CONV_BACKWARD, "cuDNN", "Tensor Cores",
           "sm90_xmma_dgrad_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x64x32_warpgroupsize1x1x1_g1_"
           "execute_segment_k_on_kernel__5x_cudnn"),
    KERNEL(CONV_BACKWARD, "cuDNN", "Tensor Cores",
           "sm80_xmma_wgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage3_"
           "warpsize2x2x1_g1_tensor16x8x16_execute_kernel__5x_cudnn"),
    KERNEL(CONV, "cuDNN", "Tensor Cores",
           "void "
           "cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64_16x10_nhwc_align4>(cutlass_"
           "tensorop_s1688fprop_optimized_tf32_64x64_16x10_nhwc_align4::Params)"),
    KERNEL(CONV, "cuDNN", "Tensor Cores",
           "void "
           "cutlass_cudnn_infer::Kernel<cutlass_tensorop_f16_s16816fprop_optimized_f16_128x64_32x5_nhwc_align8>("
           "cutlass_tensorop_f16_s16816fprop_optimized_f16_128x64_32x5_nhwc_align8::Params)"),
    KERNEL(CONV, "cuDNN", NULL,
           "cudnn_generated_fort_native_sm80_convFwd_pointwise_pointwise_pointwise_knob_3_kernel0_0"),
    KERNEL(ATTENTION, "cuDNN", "Tensor Cores",
           "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_6_128x64x64_4x1x1_cga1x1x1_kernel0_0"),
    KERNEL(ATTENTION, "cuDNN", "Tensor Cores",
           "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_128x64x128_4x1x1_kernel0_0"),
    KERNEL(CONV, "cuDNN", NULL, "void conv2d_c1_k1_nchw_hw_packed_kernel<float, float, 3, 3>(cudnnTensorStruct)"),
    KERNEL(CONV_DEPTHWISE, "cuDNN", NULL,
           "void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, false, false, 0, 0, int, float, float, float, "
           "float, float, float>(cudnn::cnn::GroupedDirectFpropParams)"),
    KERNEL(CONV_BACKWARD, "cuDNN", NULL,
           "void cudnn::cnn::wgrad2d_grouped_direct_kernel<false, true, int, float, float, "
           "float>(cudnn::cnn::GroupedDirectWgradParams)"),
    KERNEL(CONV_BACKWARD, "cuDNN", NULL,
           "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int, int, float const*)"),
    KERNEL(CONV_PART, "cuDNN", NULL,
           "void cudnn::winograd_nonfused::winogradForwardData4x4<float, "
           "float>(cudnn::winograd_nonfused::WinogradDataParams<float, float>)"),
    KERNEL(CONV_PART, "cuDNN", NULL,
           "void cudnn::winograd_nonfused::winogradForwardFilter4x4<float, "
           "float>(cudnn::winograd_nonfused::WinogradFilterParams<float, float>)"),
    KERNEL(CONV, "cuDNN", NULL,
           "void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, "
           "float>(cudnn::winograd_nonfused::WinogradOutputParams<float, float>)"),
    KERNEL(CONV_PART, "cuDNN", NULL,
           "void cudnn::winograd::generateWinogradTilesKernel<0, float, "
           "float>(cudnn::winograd::GenerateWinogradTilesParams<float, float>)"),
    KERNEL(CONV_PART, "cuDNN", NULL, "void fft2d_r2c_32x32<float, false, 1u, true>(float2*, float const*, int)"),
    KERNEL(CONV, "cuDNN", NULL,
           "void fft2d_c2r_32x32<float, true, false, 0u, false, false>(float*, float2 const*, int)"),
    KERNEL(CONV_PART, "cuDNN", NULL,
           "void im2col4d_kernel<float, int>(im2col4d_params, cudnnConvolutionStruct, cudnnTensor4dStruct, float "
           "const*, float*, int)"),
    KERNEL(CONV_PART, "cuDNN", NULL,
           "void cask_cudnn::computeOffsetsKernel<false, false>(cask_cudnn::ComputeOffsetsParams)"),
    KERNEL(CONV_PART, "cuDNN", NULL, "void flip_filter<float, float>(float*, float const*, int, int, int, int)"),
    KERNEL(NORM, "cuDNN", NULL,
           "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(cudnnTensorStruct, float "
           "const*)"),
    KERNEL(NORM, "cuDNN", NULL,
           "void cudnn::detail::bn_fw_inf_1C11_kernel_NCHW<__half, float, true, 1>(float, float, cudnnTensorStruct, "
           "__half const*)"),
    KERNEL(
        NORM, "cuDNN", NULL,
        "void cudnn::bn_bw_1C11_singleread<float, 512, true, 1, 2, 0>(float, float, float, float, cudnnTensorStruct)"),
    KERNEL(NORM, "cuDNN", NULL,
           "void cudnn::detail::lrnForward_evenC<5, float, float>(cudnn::detail::LrnForwardParams<float, float>)"),
    KERNEL(POOL, "cuDNN", NULL,
           "void cudnn::detail::pooling_fw_4d_kernel<float, float, cudnn::detail::maxpooling_func<float, "
           "(cudnnNanPropagation_t)0>, 0, false>(cudnnTensorStruct, float const*)"),
    KERNEL(SOFTMAX, "cuDNN", NULL,
           "void cudnn::detail::softmax_fw_kernel_resident<2, float, float, 256, 1, 0, 0, 32, 0>(cudnnTensorStruct, "
           "float const*)"),
    KERNEL(SOFTMAX, "cuDNN", NULL,
           "void softmax_fw_channel_4d_kernel<float, float, 256, 1, 1>(cudnnTensorStruct, float const*)"),
    KERNEL(LAYOUT, "cuDNN", NULL,
           "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, "
           "(cudnnKernelDataType_t)2>(cudnn::ops::nchw2nhwc_params_t<float>, float const*, float*)"),
    KERNEL(LAYOUT, "cuDNN", NULL,
           "void cudnn::engines_precompiled::nhwcToNchwKernel<__half, __half, float, true, false, "
           "(cudnnKernelDataType_t)0>(cudnn::engines_precompiled::nhwc2nchw_params_t<float>)"),
    KERNEL(ELEMENTWISE, "cuDNN", NULL,
           "void op_generic_tensor_kernel<2, float, float, float, 256, (cudnnGenericOp_t)8, (cudnnNanPropagation_t)1, "
           "1>(cudnnTensorStruct, float*)"),
    KERNEL(ELEMENTWISE, "cuDNN", NULL, "void cudnn::ops::scalePackedTensor_kernel<float, float>(long, float*, float)"),
    KERNEL(RNN, "cuDNN", NULL, "void LSTM_elementWise_fp<float, float, float>(int, int, int, int, cudnnRNNBiasMode_t)"),
    KERNEL(RNN, "cuDNN", "Tensor Cores",
           "void RNN_blockPersist_fp_LSTM_wmma<__half, __half, float, 512, 1, 16>(PersistentFpParams)"),
    /* cuBLAS, cuBLASLt */
    KERNEL(PRODUCT, "cuBLAS", NULL, "volta_sgemm_128x64_nn"),
    KERNEL(PRODUCT, "cuBLAS", NULL, "ampere_sgemm_32x32_sliced1x4_tn"),
    KERNEL(PRODUCT, "cuBLAS", NULL, "maxwell_sgemm_128x128_raggedMn_nn"),
    KERNEL(PRODUCT, "cuBLAS", "Tensor Cores", "volta_fp16_s884gemm_fp16_256x128_ldg8_f2f_nn"),
    KERNEL(PRODUCT, "cuBLAS", "Tensor Cores", "turing_h1688gemm_128x128_ldg8_nn"),
    KERNEL(PRODUCT, "cuBLAS", "Tensor Cores", "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn"),
    KERNEL(PRODUCT, "cuBLAS", "Tensor Cores", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"),
    KERNEL(PRODUCT, "cuBLAS", "Tensor Cores",
           "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_bias_f32_execute_segment_k_"
           "off_kernel__5x_cublas"),
    KERNEL(PRODUCT, "cuBLAS", NULL,
           "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_"
           "split_k_kernel__5x_cublas"),
    KERNEL(PRODUCT, "cuBLAS", NULL,
           "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, cublasGemvTensorStridedBatched<float const>>(int)"),
    KERNEL(PRODUCT, "cuBLAS", NULL,
           "void gemmk1_kernel<int, float, 256, 5, false, false, false, false, cublasGemvTensorStridedBatched<float "
           "const>>(int)"),
    KERNEL(PRODUCT_PART, "cuBLASLt", NULL,
           "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, true, "
           "false>(cublasLt::cublasSplitKParams<float>)"),
    KERNEL(PRODUCT_PART, "cuBLAS", NULL,
           "void splitKreduce_kernel<float, float, float, float>(cublasSplitKParams<float>, float const*)"),
    KERNEL(PRODUCT_PART, "cuBLAS", NULL,
           "void reduce_1Block_kernel<float, 128, 7, cublasGemvTensorStridedBatched<float>>(float const*, float, int)"),
    KERNEL(VECTOR_PRODUCT, "cuBLAS", NULL,
           "void gemv2T_kernel_val<int, int, float, float, float, 128, 16, 4, 4, false, "
           "cublasGemvParams<cublasGemvTensorStridedBatched<float const>>>(float)"),
    KERNEL(VECTOR_PRODUCT, "cuBLAS", NULL,
           "void gemvNSP_kernel<float, float, float, float, 1, 32, 4, 1024, "
           "cublasGemvParams<cublasGemvTensorStridedBatched<float const>>>(float)"),
    KERNEL(VECTOR_PRODUCT, "cuBLAS", NULL,
           "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __half, __half, __half, float, "
           "false, true, false, false, 7, false, cublasGemvParamsEx<int>>(float)"),
    KERNEL(VECTOR_PRODUCT, "cuBLAS", NULL,
           "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const>, "
           "cublasGemvTensorStridedBatched<float>>>(float)"),
    KERNEL(PRODUCT, "cuBLASLt", "Tensor Cores", "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT"),
    KERNEL(PRODUCT, "cuBLASLt", "Tensor Cores", "nvjet_tst_192x16_64x8_2x2_2cta_h_bz_TNT"),
    KERNEL(PRODUCT, "cuBLASLt", "Tensor Cores", "nvjet_sm100_tst_64x32_64x16_2x1_2cta_v_bz_TNN"),
    KERNEL(PRODUCT, "cuBLASLt", "Tensor Cores", "nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN"),
    KERNEL(ELEMENTWISE, "cuBLASLt", NULL,
           "void epilogue::impl::globalKernel<float, float, float, true, true>(int, int, long, float*, "
           "cublasLtEpilogue_t, int, float*, long)"),
    /* CUTLASS */
    KERNEL(PRODUCT, "CUTLASS", "Tensor Cores",
           "void "
           "cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>(cutlass_80_wmma_"
           "tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8::Params)"),
    KERNEL(PRODUCT, "CUTLASS", "Tensor Cores",
           "void "
           "cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_32x3_nt_align4>(cutlass_80_tensorop_s1688gemm_"
           "128x128_32x3_nt_align4::Params)"),
    KERNEL(PRODUCT, "CUTLASS", NULL,
           "void "
           "cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>(cutlass_80_simt_sgemm_128x64_8x5_nt_align1::"
           "Params)"),
    KERNEL(PRODUCT, "CUTLASS", "Tensor Cores",
           "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x128x64_2x1x1_0_tnn_align8_"
           "warpspecialized_cooperative_epi_tma"),
    KERNEL(CONV, "CUTLASS", NULL,
           "void cutlass::Kernel<cutlass::conv::kernel::ImplicitGemmConvolution<Mma, Epilogue>>(Params)"),
    /* Triton */
    KERNEL(ELEMENTWISE, "Triton", NULL, "triton_poi_fused_add_relu_0"),
    KERNEL(ELEMENTWISE, "Triton", NULL, "triton_poi_fused__native_batch_norm_legit_functional_relu_3"),
    KERNEL(POOL, "Triton", NULL, "triton_poi_fused_max_pool2d_with_indices_5"),
    KERNEL(MOVE, "Triton", NULL, "triton_poi_fused_cat_12"),
    KERNEL(GATHER, "Triton", NULL, "triton_poi_fused_embedding_0"),
    KERNEL(NORM, "Triton", NULL, "triton_red_fused_native_layer_norm_16"),
    KERNEL(NORM, "Triton", NULL, "triton_per_fused_add_native_layer_norm_native_layer_norm_backward_7"),
    KERNEL(NORM, "Triton", NULL, "triton_red_fused__fused_rms_norm__to_copy_add_mul_select_unsqueeze_1"),
    KERNEL(NORM, "Triton", NULL, "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0"),
    KERNEL(NORM, "Triton", NULL, "triton_red_fused__native_batch_norm_legit_functional_2"),
    KERNEL(SOFTMAX, "Triton", NULL, "triton_per_fused__softmax_7"),
    KERNEL(SOFTMAX, "Triton", NULL, "triton_red_fused_convert_element_type_div_exp_prepare_softmax_online_sub_0"),
    KERNEL(SOFTMAX, "Triton", NULL, "triton_red_fused__log_softmax__to_copy_21"),
    KERNEL(LOSS, "Triton", NULL, "triton_per_fused_nll_loss_forward_4"),
    KERNEL(REDUCE, "Triton", NULL, "triton_red_fused_linalg_vector_norm_0"),
    KERNEL(REDUCE, "Triton", NULL, "triton_red_fused_convolution_backward_4"),
    KERNEL(PRODUCT, "Triton", NULL, "triton_tem_fused_addmm_1"),
    KERNEL(PRODUCT, "Triton", NULL, "triton_mm"),
    KERNEL(CONV, "Triton", NULL, "triton_tem_fused_convolution_0"),
    KERNEL(ATTENTION, "Triton", NULL, "triton_tem_fused_flex_attention_0"),
    KERNEL(SORT, "Triton", NULL, "triton_spl_fused_cumsum_0"),
    KERNEL(ELEMENTWISE, "Triton", NULL, "triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10"),
    KERNEL(REDUCE, "Triton", NULL, "triton_red_fused_add_all_reduce_mul_sum_view_3"),
    /* experts: tokens are sorted by them, multiplied, and put together again */
    KERNEL(SORT, NULL, NULL,
           "void moe::dev::routing::routingIndicesOffsetsKernel<moe::dev::routing::KernelParams<float> >()"),
    KERNEL(PRODUCT, NULL, "Tensor Cores",
           "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_tma_clmp_swiGlu_dynBatch_sm100f"),
    KERNEL(GATHER, "CUTLASS", NULL,
           "void moe::dev::finalize::finalizeKernelVecLoad<moe::dev::finalize::KernelParams<cutlass::bfloat16_t, "
           "cutlass::bfloat16_t, 4, true> >(moe::dev::finalize::KernelParams<cutlass::bfloat16_t, cutlass::bfloat16_t, "
           "4, true>)"),
    KERNEL(SORT, NULL, NULL, "_combined_routing_compute"),
    KERNEL(SORT, NULL, NULL, "_sum_bitmatrix_rows"),
    KERNEL(ATTENTION, NULL, "Tensor Cores",
           "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext"),
    KERNEL(ATTENTION, NULL, NULL, "sage_fwd"),
    KERNEL(GATHER, NULL, NULL, "store_kvcache"),
    KERNEL(NORM, NULL, NULL, "groupnorm_kernel_dispatch_down"),
    KERNEL(ELEMENTWISE, "Triton", NULL, "triton_unk_fused_add_3"),
    /* attention */
    KERNEL(ATTENTION, "FlashAttention", "Tensor Cores",
           "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
           "cutlass::half_t>, false, true, false, false, true, true, false>(pytorch_flash::Flash_fwd_params)"),
    KERNEL(ATTENTION, "FlashAttention", "Tensor Cores",
           "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, "
           "cutlass::bfloat16_t>, false, false, false, false, true, true, false>(flash::Flash_fwd_params)"),
    KERNEL(ATTENTION, "FlashAttention", NULL,
           "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, "
           "cutlass::bfloat16_t>, 4, 1, true>(flash::Flash_fwd_params)"),
    KERNEL(ATTENTION, "FlashAttention", "Tensor Cores",
           "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2, false, "
           "false, cutlass::half_t>>(Flash_bwd_params)"),
    KERNEL(ATTENTION, "FlashAttention", NULL,
           "void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2, false, false, "
           "cutlass::half_t>>(Flash_bwd_params)"),
    KERNEL(ATTENTION, "FlashAttention", "Tensor Cores",
           "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, "
           "cute::tuple<int>>>>>(Params)"),
    KERNEL(ATTENTION, "xFormers", "Tensor Cores",
           "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t, "
           "cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)"),
    KERNEL(ATTENTION, "xFormers", "Tensor Cores",
           "fmha_cutlassB_f16_aligned_64x64_k64_sm70(PyTorchMemEffAttention::AttentionBackwardKernel<cutlass::half_t>::"
           "Params)"),
    KERNEL(ATTENTION, "xFormers", NULL,
           "fmha_cutlassF_f32_aligned_64x64_rf_sm75(PyTorchMemEffAttention::AttentionKernel<float, "
           "cutlass::arch::Sm75, true, 64, 64, 64, true, true>::Params)"),
    KERNEL(ATTENTION, "FlashInfer", NULL,
           "void flashinfer::BatchPrefillWithPagedKVCacheKernel<(flashinfer::MaskMode)1, "
           "flashinfer::KernelTraits>(Params)"),
    KERNEL(NORM, "FlashInfer", NULL,
           "void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, unsigned int)"),
    KERNEL(ELEMENTWISE, "FlashInfer", NULL,
           "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<false, 128u, 8u, 16u, __nv_bfloat16, "
           "long>(__nv_bfloat16*)"),
    KERNEL(SORT, "FlashInfer", NULL,
           "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, float, int>(float*)"),
    KERNEL(ATTENTION, NULL, "Tensor Cores", "fmha_v2_flash_attention_fp16_64_64_S_80_sm86_kernel_wmma_nl"),
    /* communication */
    KERNEL(COMMUNICATION, "NCCL", NULL, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
    KERNEL(COMMUNICATION, "NCCL", NULL, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"),
    KERNEL(COMMUNICATION, "NCCL", NULL,
           "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"),
    KERNEL(COMMUNICATION, "RCCL", NULL, "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>) [clone .kd]"),
    KERNEL(COMMUNICATION, "vLLM", NULL,
           "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals)"),
    /* ROCm */
    KERNEL(PRODUCT, "ROCm (rocBLAS, hipBLASLt)", "Matrix Cores",
           "Cijk_Ailk_Bljk_HHS_BH_MT128x128x16_MI16x16x16x1_SN_1LDSB0_APM1_ABV0_ACED0_AF0EM1_AF1EM1_AMAS3"),
    KERNEL(PRODUCT, "ROCm (rocBLAS, hipBLASLt)", NULL,
           "Cijk_Ailk_Bljk_SB_MT16x16x16_SE_AF0EM1_AMAS2_ASEM1_BL0_DTL0_EPS0_FL0_GRVW2_GSU1_ISA000_K1_KLS"),
    KERNEL(PRODUCT, "ROCm (rocBLAS, hipBLASLt)", NULL,
           "Custom_Cijk_Ailk_Bljk_F8NH_HHS_BH_Bias_AS_SAB_SAV_shortname0_gfx942"),
    KERNEL(CONV, "ROCm (MIOpen)", "Matrix Cores",
           "igemm_fwd_gtcx3_nhwc_fp16_bx0_ex0_bt128x128x32_wt32x32x8_ws1x1_wr2x2_ta1x8x2x1_1x4x1x64_tb1x8x2x1_1x4x1x64_"
           "gkgs"),
    KERNEL(CONV_BACKWARD, "ROCm (MIOpen)", "Matrix Cores",
           "igemm_wrw_gtcx3_nhwc_fp16_bx0_ex0_bt128x128x32_wt32x32x8_ws1x1_wr2x2"),
    KERNEL(CONV, "ROCm (MIOpen)", NULL, "miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_edc_stride1"),
    KERNEL(CONV, "ROCm (MIOpen)", NULL, "miopenSp3AsmConvFury_v2_4_1_gfx11_fp16_f2x3_stride1"),
    KERNEL(CONV, "ROCm (MIOpen)", NULL, "miopenGcnAsmConv1x1U"),
    KERNEL(CONV, "ROCm (MIOpen)", NULL, "naive_conv_nonpacked_fwd_nchw_float_double_float_miopen"),
    KERNEL(CONV_PART, NULL, NULL, "Im2d2Col"),
    KERNEL(NORM, "ROCm (MIOpen)", NULL, "MIOpenBatchNormFwdInferSpatialEst"),
    KERNEL(POOL, "ROCm (MIOpen)", NULL, "mloPoolingForwardMaxNCHW"),
    KERNEL(ELEMENTWISE, NULL, NULL, "SubTensorOpWithScalar1d"),
    KERNEL(LAYOUT, NULL, NULL, "batched_transpose_32x32_half"),
    KERNEL(CONV, "ROCm (Composable Kernel)", "Matrix Cores",
           "void ck::kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffle<ck::GridwiseGemmMultipleD_xdl_cshuffle>(Args)"),
    KERNEL(PRODUCT, "ROCm (Composable Kernel)", "Matrix Cores",
           "void ck::kernel_gemm_xdl_cshuffle_v1<ck::GridwiseGemm_xdl_cshuffle_v1>(Args)"),
    KERNEL(ATTENTION, "ROCm (Composable Kernel)", "Matrix Cores",
           "void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync>>(Kargs)"),
    KERNEL(
        PRODUCT, "ROCm (Composable Kernel)", "Matrix Cores",
        "void ck_tile::kentry<1, ck_tile::BatchedGemmKernel<ck_tile::GemmSpatiallyLocalTilePartitioner<8, 4>, "
        "ck_tile::GemmPipelineAgBgCrCompV3<ck_tile::UniversalGemmPipelineProblem<_Float16, _Float16, float>>>>(Args)"),
    KERNEL(MOVE, "ROCm", NULL, "__amd_rocclr_copyBuffer"),
    KERNEL(MOVE, "ROCm", NULL, "__amd_rocclr_fillBufferAligned"),
    /* Ascend */
    KERNEL(LAYOUT, NULL, NULL, "aclnnMm_TransData_TransData"),
    KERNEL(LAYOUT, NULL, NULL, "aclnnMm_CastAiCore_Cast"),
    KERNEL(PRODUCT, NULL, NULL, "aclnnMm_MatMulCommon_MatMulV2"),
    KERNEL(MOVE, NULL, NULL, "aclnnMm_MatMulCommon_MemSet"),
    KERNEL(ELEMENTWISE, NULL, NULL, "aclnnAddcmul_AddcmulAiCore_Addcmul"),
    KERNEL(CONV_BACKWARD, NULL, NULL, "Conv2DBackpropFilter6"),
    KERNEL(REDUCE, NULL, NULL, "aclnnReduceSum_ReduceSumOpAiCore_ReduceSum"),
    /* MXNet, Caffe2, ONNX Runtime, TensorFlow, XLA */
    KERNEL(
        ELEMENTWISE, "MXNet", NULL,
        "void mxnet::op::mxnet_op::mxnet_generic_kernel<mxnet::op::mxnet_op::op_with_req<mxnet::op::mshadow_op::relu, "
        "1>, float*, float*>(int, float*, float*)"),
    KERNEL(PAD, "MXNet", NULL,
           "void mshadow::cuda::image_2d_pad_constant_kernel<8, float>(mshadow::Tensor<mshadow::gpu, 4, float>, "
           "mshadow::Tensor<mshadow::gpu, 4, float>, int, int, float)"),
    KERNEL(NORM, "MXNet", NULL,
           "void mxnet::op::batchnorm::cuda::BatchNormalizationUpdateOutputInferenceKernel<float, float, "
           "mxnet::op::batchnorm::cuda::DeviceTensor<float, 1>>(int)"),
    KERNEL(SOFTMAX, "MXNet", NULL,
           "void mxnet::op::mxnet_op::softmax_compute_kernel<7, mxnet::op::mxnet_op::softmax_fwd, false, float, 2, "
           "float, float>(float*, float*, int, int)"),
    KERNEL(RANDOM, "MXNet", NULL,
           "void mxnet::op::mxnet_op::mxnet_generic_kernel<mxnet::op::SampleUniformKernel<mshadow::gpu>, "
           "mxnet::common::random::RandGenerator<mshadow::gpu, float>, int>(int)"),
    KERNEL(NORM, "MXNet", NULL,
           "void mshadow::cuda::MapPlanKernel<mshadow::sv::saveto, 8, "
           "mshadow::expr::Plan<mshadow::expr::MakeTensorExp<mshadow::expr::ChannelPoolingExp<mshadow::red::sum>, "
           "float>, float>>(int)"),
    KERNEL(POOL, "Caffe2", NULL,
           "void caffe2::(anonymous namespace)::MaxPool2DForwardNCHWCUDAKernel<float>(int, int, int, int, int, int, "
           "int, int, int, int, float const*, float*)"),
    KERNEL(ELEMENTWISE, "Caffe2", NULL,
           "void caffe2::(anonymous namespace)::ReluCUDAKernel<float>(int, float const*, float*)"),
    KERNEL(NORM, "Caffe2", NULL,
           "void caffe2::math::(anonymous namespace)::AffineChannelNCHWCUDAKernel<float>(int, int, int, float const*)"),
    KERNEL(ELEMENTWISE, "ONNX Runtime", NULL,
           "void onnxruntime::cuda::_UnaryElementWise<float, float, onnxruntime::cuda::OP_Relu<float>, 256, 4>(float "
           "const*, float*, onnxruntime::cuda::OP_Relu<float>, int)"),
    KERNEL(NORM, "ONNX Runtime", NULL,
           "void onnxruntime::contrib::cuda::SkipLayerNormKernelSmall<__half, 192, 4, false>(int, __half const*)"),
    KERNEL(MOVE, "ONNX Runtime", NULL,
           "void onnxruntime::cuda::_SliceKernel<false, 4, int>(onnxruntime::cuda::TArray<long, 8>)"),
    KERNEL(GATHER, "ONNX Runtime", NULL,
           "void onnxruntime::cuda::_GatherKernel<float>(long, long, onnxruntime::cuda::fast_divmod)"),
    KERNEL(LAYOUT, "ONNX Runtime", NULL,
           "void "
           "onnxruntime::cuda::Transpose4DKernelParallelizeMultipleElementsPerThreadInInnermostDim<4u>(onnxruntime::"
           "cuda::TArray<long, 8>)"),
    KERNEL(LAYOUT, "TensorFlow", NULL,
           "void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned int, 1024, 1024, 2, "
           "false>(unsigned int const*)"),
    KERNEL(ELEMENTWISE, "TensorFlow", NULL,
           "void "
           "Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::TensorMap<Eigen::"
           "Tensor<float, 1, 1, int>>>>, int>(int)"),
    KERNEL(ELEMENTWISE, NULL, NULL, "loop_multiply_fusion_3"),
    KERNEL(PRODUCT, NULL, NULL, "gemm_fusion_dot_12"),
    /* PyTorch */
    KERNEL(POOL, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int, float const*, long, long, "
           "long, int, int)"),
    KERNEL(POOL, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::adaptive_average_pool<float>(float const*, float*, int, int, int, "
           "int, long, long, long)"),
    KERNEL(NORM, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float "
           "const*, float const*, float const*, float*, float*, float*)"),
    KERNEL(NORM, "PyTorch", NULL,
           "void at::native::batch_norm_transform_input_kernel<float, float, float, true, "
           "int>(at::GenericPackedTensorAccessor<float const, 3ul>)"),
    KERNEL(NORM, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>(long, float, float const*, float*, "
           "float*)"),
    KERNEL(SOFTMAX, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous "
           "namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)"),
    KERNEL(SOFTMAX, NULL, NULL,
           "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*, float "
           "const*, int, int, int, bool const*, int, bool)"),
    KERNEL(ELEMENTWISE, "PyTorch", NULL,
           "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
           "at::detail::Array<char*, 3>>(int, at::native::CUDAFunctor_add<float>)"),
    KERNEL(MOVE, "PyTorch", NULL,
           "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, "
           "1>>(int, at::native::FillFunctor<float>)"),
    KERNEL(LAYOUT, "PyTorch", NULL,
           "void at::native::elementwise_kernel<128, 2, "
           "at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#"
           "3}>>(int)"),
    KERNEL(LAYOUT, "PyTorch", NULL,
           "void "
           "at::native::unrolled_elementwise_kernel<at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{"
           "lambda(float)#1}>(int)"),
    KERNEL(MOVE, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<at::native::(anonymous "
           "namespace)::OpaqueType<4u>, unsigned int, 1, 128, 1, 16, 4>(char*)"),
    KERNEL(
        GATHER, "PyTorch", NULL,
        "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"),
    KERNEL(GATHER, "PyTorch", NULL,
           "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>(long)"),
    KERNEL(REDUCE, "PyTorch", NULL,
           "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, "
           "float, float>, unsigned int, float, 4, 4>>(at::native::ReduceOp<float>)"),
    KERNEL(RANDOM, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, "
           "bool>(at::cuda::detail::TensorInfo<float, unsigned int>)"),
    KERNEL(SORT, "PyTorch", NULL,
           "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(at::cuda::detail::TensorInfo<float "
           "const, unsigned int>)"),
    KERNEL(
        SORT, "PyTorch", NULL,
        "void "
        "at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<long>>(long*)"),
    KERNEL(OPTIMIZER, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
           "namespace)::TensorListMetadata<4>, at::native::FusedAdamMathFunctor<float, 4>>(int)"),
    KERNEL(LOSS, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, "
           "float*)"),
    KERNEL(
        RESIZE, "PyTorch", NULL,
        "void at::native::(anonymous namespace)::upsample_bilinear2d_out_frame<float, float>(int, float, float, bool)"),
    KERNEL(CONV_DEPTHWISE, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, "
           "int>(at::GenericPackedTensorAccessor<float const, 4ul>)"),
    KERNEL(PAD, "PyTorch", NULL,
           "void at::native::(anonymous namespace)::reflection_pad2d_out_kernel<float>(float const*, float*, long, "
           "long, int, int)"),
    KERNEL(PRODUCT, "PyTorch", "Tensor Cores",
           "void at::native::tinygemm_m16n8k16_chunk_kernel<at::native::ALayout_RM<(at::native::KReductionType)0>, "
           "at::native::BLayout_TC_int4>(void const*)"),
    /* TensorRT */
    KERNEL(CONV, "TensorRT", "Tensor Cores",
           "sm75_xmma_fprop_implicit_gemm_indexed_wo_smem_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x32x64_stage1_"
           "warpsize4x1x1_g1_tensor16x8x8_alignc8_execute_kernel_trt"),
    KERNEL(CONV, "TensorRT", "Tensor Cores", "trt_turing_h1688cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1"),
    KERNEL(PRODUCT, "TensorRT", "Tensor Cores", "trt_ampere_h16816gemm_128x64_ldg8_nn_v1"),
    KERNEL(PRODUCT, "TensorRT", "Tensor Cores",
           "sm89_xmma_gemm_e4m3e4m3_e4m3f32_f32_tn_n_tilesize64x64x64_stage4_warpsize2x2x1_tensor16x8x32_bias_f32_"
           "execute_kernel_trt"),
    KERNEL(POOL, "TensorRT", NULL, "sm50_xmma_pooling_coalescedC_NHWC_kMAX_2_False_execute_kernel_trt"),
    KERNEL(CONV, "TensorRT", NULL, "sm80_trt_conv_act_pool_v3_tile_rows_8_tile_cols_120_execute_kernel_trt"),
    KERNEL(PRODUCT, "TensorRT", NULL, "__myl_FcCast_myl2_3"),
    KERNEL(ELEMENTWISE, "TensorRT", NULL, "__myl_SiluMul_myl0_5"),
    KERNEL(SOFTMAX, "TensorRT", NULL, "__myl_MaxrSubExpSumDivMul_0x1f"),
    KERNEL(NORM, "TensorRT", NULL, "__myl_MeaSubMulMeaAddSqrDivMulMulAdd_myl0_2"),
    KERNEL(MOVE, "TensorRT", NULL, "__myl_Move_myl3_0"),
    KERNEL(LAYOUT, "TensorRT", NULL,
           "void genericReformat::copyPackedKernel<float, __half, true, false, "
           "genericReformat::IdentityCoordMapper<4>, 4>(unsigned int)"),
    KERNEL(ELEMENTWISE, NULL, NULL, "generatedNativePointwise"),
    /* DeepSpeed, vLLM and other servers */
    KERNEL(SOFTMAX, NULL, NULL,
           "void attn_softmax_v2<__half, 2>(__half*, __half*, __half*, float, bool, bool, bool, bool, int)"),
    KERNEL(NORM, NULL, NULL, "void fused_residual_ln_layer_norm<__half, 4, 8, 256>(__half*)"),
    KERNEL(ELEMENTWISE, NULL, NULL, "void fused_bias_gelu<__half>(__half*, __half const*, int, int)"),
    KERNEL(LAYOUT, NULL, NULL, "void transform4d_0213<__half>(__half*, __half const*, int, int, int, int, int)"),
    KERNEL(ELEMENTWISE, "vLLM", NULL,
           "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>(c10::BFloat16*, "
           "c10::BFloat16 const*, int)"),
    KERNEL(ELEMENTWISE, "vLLM", NULL,
           "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, "
           "c10::BFloat16 const*, int)"),
    KERNEL(NORM, "vLLM", NULL,
           "void vllm::rms_norm_kernel<c10::BFloat16, 8, 2, true>(c10::BFloat16*, c10::BFloat16 const*, long)"),
    KERNEL(NORM, "vLLM", NULL,
           "std::enable_if<(((8) > (0))) && vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
           "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)"),
    KERNEL(GATHER, "vLLM", NULL,
           "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, "
           "(vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*)"),
    KERNEL(ATTENTION, "vLLM", NULL,
           "void vllm::paged_attention_v2_kernel<unsigned short, unsigned short, 128, 16, 128, "
           "(vllm::Fp8KVCacheDataType)0, false, 512>(float*)"),
    KERNEL(QUANTIZE, "vLLM", NULL,
           "void vllm::dynamic_scaled_int8_quant_kernel<c10::BFloat16, float>(c10::BFloat16 const*)"),
    KERNEL(
        SORT, "vLLM", NULL,
        "void vllm::moe::topkGating<8, 128, 4, 16, 32, int, __nv_bfloat16, (vllm::moe::ScoringFunc)0>(float const*)"),
    KERNEL(SORT, NULL, NULL,
           "void moe_align_block_size_kernel<int>(int const*, int*, int*, int*, int, int, int, unsigned long)"),
    KERNEL(PRODUCT, NULL, NULL, "fused_moe_kernel"),
    KERNEL(PRODUCT, NULL, "Tensor Cores",
           "void marlin::Marlin<(long)1125899906909960, 256, 1, 8, 8, 4, -1, false>(int4 const*)"),
    KERNEL(PRODUCT, "vLLM", NULL,
           "void cutlass::Kernel2<vllm::enable_sm80_to_sm89<cutlass::gemm::kernel::DefaultGemmWithVisitor>>(Params)"),
    KERNEL(PRODUCT, "DeepGEMM", "Tensor Cores",
           "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u, 1u, 64u, 128u, 128u>(float*)"),
    KERNEL(ATTENTION, NULL, NULL, "kernel_unified_attention_2d"),
    KERNEL(PRODUCT, NULL, NULL, "void mul_mat_q<(ggml_type)8, 80, 8, false>(char const*, char const*)"),
    KERNEL(VECTOR_PRODUCT, NULL, NULL, "void mul_mat_vec_q<(ggml_type)12, 1>(void const*, void const*, float*)"),
    KERNEL(SOFTMAX, NULL, NULL, "void soft_max_f32<true, 1024, 1024, float>(float const*, float const*, float*)"),
    KERNEL(ELEMENTWISE, NULL, NULL, "void rope_neox<true, false, float>(float const*, float*)"),
    KERNEL(OTHER, NULL, NULL, "my_kernel(float*, int)"),
};

#endif
