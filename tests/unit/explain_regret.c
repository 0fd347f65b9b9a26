/* Calls of profiles as problems, and what other variants would have saved. */
#include "explain/explain.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CUDNN(dims, w, pad, stride)                                                                                    \
    "alpha=1.000000 xDesc.dataType=CUDNN_DATA_FLOAT xDesc.nbDims=4 xDesc.dimA=" dims " wDesc.dimA=" w                  \
    " convDesc.padA=" pad " convDesc.strideA=" stride " convDesc.dilationA=[1,1] convDesc.groupCount=1"
#define ONEDNN "src=f32::blocked:acdb:f0 wei=f32::blocked:Acdb16a:f0 bia=undef::undef::f0 dst=f32::blocked:acdb:f0 "

static size_t add_call(bz_trace *t, const char *name, const char *detail, const char *variant, int64_t start,
                       int64_t end)
{
    uint32_t source = t->n_sources ? 0 : bz_trace_source(t, "made up", "test");
    size_t c = bz_trace_add(t, BZ_EVENT_CALL, start, end, bz_trace_text(t, name), bz_trace_thread(t, source, 1, 1));
    t->event[BZ_EVENT_CALL].detail[c] = bz_trace_text(t, detail);
    t->event[BZ_EVENT_CALL].variant[c] = bz_trace_text(t, variant);
    t->event[BZ_EVENT_CALL].flags[c] = BZ_CALL_EXECUTES;
    return c;
}

static void test_problems(void **state)
{
    static const struct {
        const char *call, *detail, *problem; /* problem NULL: none */
    } CASES[] = {
        {"cudnnConvolutionForward", CUDNN("[1,3,230,230]", "[64,3,7,7]", "[0,0]", "[2,2]"),
         "conv x=1x3x230x230 w=64x3x7x7 stride=2x2 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32"},
        {"cudnnConvolutionBiasActivationForward",
         CUDNN("[1,8,9,9]", "[4,8,3,3]", "[1,1]", "[1,1]") " activationDesc.mode=CUDNN_ACTIVATION_RELU",
         "conv x=1x8x9x9 w=4x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 post=bias,relu dtype=f32"},
        {"cudnnConvolutionBiasActivationForward",
         CUDNN("[1,8,9,9]", "[4,8,3,3]", "[1,1]", "[1,1]") " activationDesc.mode=CUDNN_ACTIVATION_TANH", NULL},
        {"cudnnConvolutionForward", CUDNN("[1,3,230,230]", "[64,3,7,7]", "[0]", "[2,2]"), NULL},
        {"cudnnConvolutionForward", CUDNN("[1,3,230,230,-1]", "[64,3,7,7]", "[0,0]", "[2,2]"), NULL},
        {"cudnnAddTensor", CUDNN("[1,3,230,230]", "[64,3,7,7]", "[0,0]", "[2,2]"), NULL},
        {"cudnnAddTensor",
         "biasDesc.dataType=CUDNN_DATA_FLOAT biasDesc.dimA=[1,64,1,1] srcDestDesc.dataType=CUDNN_DATA_FLOAT "
         "srcDestDesc.dimA=[1,64,56,56]",
         "binary fn=add a=1x64x56x56 b=1x64x1x1 dtype=f32"},
        {"cudnnOpTensor",
         "opTensorDesc.opTensorOp=CUDNN_OP_TENSOR_MUL aDesc.dataType=CUDNN_DATA_HALF aDesc.dimA=[1,4,2,2] "
         "bDesc.dimA=[1,4,2,2]",
         "binary fn=mul a=1x4x2x2 b=1x4x2x2 dtype=f16"},
        {"cudnnOpTensor", "opTensorDesc.opTensorOp=CUDNN_OP_TENSOR_NOT aDesc.dimA=[1,4,2,2]", NULL},
        {"cudnnPoolingForward",
         "poolingDesc.mode=CUDNN_POOLING_MAX poolingDesc.windowDimA=[3,3] poolingDesc.paddingA=[0,0] "
         "poolingDesc.strideA=[2,2] srcDesc.dataType=CUDNN_DATA_FLOAT srcDesc.dimA=[1,64,111,111] "
         "destDesc.dimA=[1,64,55,55]",
         "pool mode=max x=1x64x111x111 kernel=3x3 stride=2x2 pad=0x0x0x0 dilation=1x1 dtype=f32"},
        {"cudnnPoolingForward", "poolingDesc.mode=CUDNN_POOLING_MIN srcDesc.dimA=[1,64,111,111]", NULL},
        {"cudnnActivationForward",
         "activationDesc.coef=6.0 activationDesc.mode=CUDNN_ACTIVATION_CLIPPED_RELU srcDesc.dataType=CUDNN_DATA_HALF "
         "srcDesc.dimA=[1,64,2,2]",
         "activation fn=clip x=1x64x2x2 alpha=0 beta=6 dtype=f16"},
        {"cudnnBatchNormalizationForwardInference",
         "mode=CUDNN_BATCHNORM_SPATIAL xDesc.dataType=CUDNN_DATA_FLOAT xDesc.dimA=[1,64,2,2]",
         "batchnorm x=1x64x2x2 dtype=f32"},
        {"cudnnSoftmaxForward",
         "algorithm=CUDNN_SOFTMAX_LOG mode=CUDNN_SOFTMAX_MODE_INSTANCE srcDesc.dataType=CUDNN_DATA_FLOAT "
         "srcDesc.dimA=[1,1000,1,1]",
         "logsoftmax x=1x1000x1x1 axis=1 dtype=f32"},
        {"cudnnSoftmaxForward",
         "mode=CUDNN_SOFTMAX_MODE_INSTANCE srcDesc.dataType=CUDNN_DATA_FLOAT srcDesc.dimA=[1,1000,2,1]", NULL},
        {"cudnnLRNCrossChannelForward",
         "normDesc.lrnAlpha=0.5 normDesc.lrnBeta=0.75 normDesc.lrnK=1.0 normDesc.lrnN=5 "
         "xDesc.dataType=CUDNN_DATA_FLOAT xDesc.dimA=[1,96,5,5]",
         "lrn x=1x96x5x5 size=5 alpha=0.5 beta=0.75 bias=1 dtype=f32"},
        {"sgemm", "transa=N transb=N m=3136 n=64 k=48 lda=3136 ldb=64 ldc=3136",
         "gemm m=64 n=3136 k=48 batch=1 transa=0 transb=0 dtype=f32"},
        {"sgemm", "transa=T transb=N m=10 n=4 k=48 lda=48 ldb=48 ldc=10",
         "gemm m=4 n=10 k=48 batch=1 transa=0 transb=1 dtype=f32"},
        {"cblas_dgemm", "order=row transa=N transb=T m=4 n=10 k=48 lda=48 ldb=48 ldc=10",
         "gemm m=4 n=10 k=48 batch=1 transa=0 transb=1 dtype=f64"},
        {"sgemm", "transa=N transb=N m=0 n=64 k=48", NULL},
        {"cublasSgemm_v2", "transa=CUBLAS_OP_T transb=CUBLAS_OP_N m=4096 n=1 k=9216 lda=9216 ldb=9216 ldc=4096",
         "gemm m=1 n=4096 k=9216 batch=1 transa=0 transb=1 dtype=f32"},
        {"cublasSgemmStridedBatched", "transa=CUBLAS_OP_N transb=CUBLAS_OP_N m=3136 n=64 k=32 batchSize=36",
         "gemm m=64 n=3136 k=32 batch=36 transa=0 transb=0 dtype=f32"},
        {"cublasGemmEx", "transa=CUBLAS_OP_N transb=CUBLAS_OP_N m=8 n=4 k=32 Atype=CUDA_R_16F",
         "gemm m=4 n=8 k=32 batch=1 transa=0 transb=0 dtype=f16"},
        {"sgemv", "trans=T m=48 n=10 lda=48", "gemv m=10 k=48 trans=0 dtype=f32"},
        {"cblas_sgemv", "order=row trans=N m=48 n=10 lda=10", "gemv m=48 k=10 trans=0 dtype=f32"},
        {"matmul",
         "src=bf16::blocked:abc:f0 wei=bf16::blocked:abc:f0 dst=bf16::blocked:abc:f0 "
         "problem=3x4x32:3x32x16:3x4x16",
         "matmul a=3x4x32 b=3x32x16 constant=0 dtype=bf16"},
        {"matmul", ONEDNN "problem=3x4x32:", NULL},
        {"pooling_v2",
         "src=f32::blocked:abcd:f0 dst=f32:: aux=alg:pooling_avg_include_padding "
         "problem=mb1ic16_ih15oh8kh3sh2dh0ph1_iw15ow8kw3sw2dw0pw1",
         "pool mode=avg_pad x=1x16x15x15 kernel=3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 dtype=f32"},
        {"batch_normalization", "data=f32::blocked:aBcd16b:f0 problem=mb1ic16ih32iw32",
         "batchnorm x=1x16x32x32 dtype=f32"},
        {"layer_normalization", "src=f32::blocked:abc:f0 dst=f32:: problem=1x7x64",
         "layernorm x=1x7x64 axis=2 dtype=f32"},
        {"eltwise", "data=f32:: aux=alg:eltwise_relu;alpha:0;beta:0 problem=1x16x32x32",
         "activation fn=relu x=1x16x32x32 dtype=f32"},
        {"eltwise", "src=f32:: aux=alg:eltwise_relu;alpha:0.1;beta:0 problem=1x16",
         "activation fn=leaky x=1x16 alpha=0.1 dtype=f32"},
        {"eltwise", "src=f32:: aux=alg:eltwise_clip problem=1x16", NULL},
        {"binary", "src=f32:: src1=f32:: dst=f32:: aux=alg:binary_mul problem=2x8x4x4:2x8x1x1",
         "binary fn=mul a=2x8x4x4 b=2x8x1x1 dtype=f32"},
        {"sum", "src=f32:: src=f32:: dst=f32:: problem=2x8", "binary fn=add a=2x8 b=2x8 dtype=f32"},
        {"sum", "engine=cpu src=f32:: src1=f32:: dst=f32:: problem=2x8:2x8", "binary fn=add a=2x8 b=2x8 dtype=f32"},
        {"softmax_v2", "src=f32:: dst=f32:: aux=alg:softmax_accurate;axis:1 problem=2x8x3",
         "softmax x=2x8x3 axis=1 dtype=f32"},
        {"concat", "src=f32:: dst=f32:: problem=1x64x8x8:1x32x8x8", "concat y=1x96x8x8 axis=1 sizes=64x32 dtype=f32"},
        {"concat", "src=f32:: dst=f32:: problem=1x64x8x8:1x32x8x9", NULL},
        {"convolution", ONEDNN "problem=mb1_ic3oc64_ih224oh112kh7sh2dh0ph3_iw224ow112kw7sw2dw0pw3",
         "conv x=1x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x3x3 dilation=1x1 group=1 dtype=f32"},
        {"convolution", ONEDNN "problem=mb1_g32ic64oc64_ih56oh56kh3sh1dh1ph2_iw56ow56kw3sw1dw1pw2",
         "conv x=1x64x56x56 w=64x2x3x3 stride=1x1 pad=2x2x2x2 dilation=2x2 group=32 dtype=f32"},
        {"convolution",
         "src=f32:: wei=f32:: bia=f32::blocked:a:f0 dst=f32:: attr=attr-post-ops:eltwise_relu "
         "problem=mb2_ic8oc8_iw10ow10kw3sw1dw0pw1",
         "conv x=2x8x10 w=8x8x3 stride=1 pad=1x1 dilation=1 group=1 post=bias,relu dtype=f32"},
        {"convolution", ONEDNN "problem=mb1_ic3oc8_ih11oh6kh4sh2dh0ph1_iw11ow5kw3sw2dw0pw0",
         "conv x=1x3x11x11 w=8x3x4x3 stride=2x2 pad=1x0x2x0 dilation=1x1 group=1 dtype=f32"},
        {"convolution", ONEDNN "attr=attr-post-ops:eltwise_relu+sum problem=mb1_ic3oc64_iw10ow10kw3sw1dw0pw1",
         "conv x=1x3x10 w=64x3x3 stride=1 pad=1x1 dilation=1 group=1 post=relu,add dtype=f32"},
        {"convolution",
         ONEDNN "attr=attr-scratchpad:user;attr-post-ops:sum+eltwise_clip:0:6 problem=mb1_ic3oc64_iw10ow10kw3sw1dw0pw1",
         "conv x=1x3x10 w=64x3x3 stride=1 pad=1x1 dilation=1 group=1 post=add,clip:0:6 dtype=f32"},
        {"convolution",
         ONEDNN "attr=attr-post-ops:eltwise_relu+binary_add:f32:2 problem=mb1_ic3oc64_iw10ow10kw3sw1dw0pw1", NULL},
        {"convolution", ONEDNN "problem=mb1_ic3oc64_ih-4oh112kh7sh2dh0ph3", NULL},
        {"convolution", "prop=backward_data " ONEDNN "problem=mb1_ic3oc8_ih11oh6kh4sh2dh0ph1_iw11ow5kw3sw2dw0pw0",
         "conv_data x=1x3x11x11 w=8x3x4x3 stride=2x2 pad=1x0x2x0 dilation=1x1 group=1 dtype=f32"},
        {"convolution",
         "prop=backward_weights src=f32:: wei=f32:: bia=f32::blocked:a:f0 dst=f32:: "
         "problem=mb2_ic8oc8_iw10ow10kw3sw1dw0pw1",
         "conv_weights x=2x8x10 w=8x8x3 stride=1 pad=1x1 dilation=1 group=1 dtype=f32"},
        {"batch_normalization", "prop=backward data=f32::blocked:aBcd16b:f0 problem=mb1ic16ih32iw32", NULL},
        {"inner_product", "prop=backward_data " ONEDNN "problem=mb4ic48oc10", NULL},
        {"inner_product", ONEDNN "problem=mb4ic48oc10", "gemm m=4 n=10 k=48 batch=1 transa=0 transb=1 dtype=f32"},
        {"inner_product", ONEDNN "problem=mb1ic256ih6iw6oc4096",
         "gemm m=1 n=4096 k=9216 batch=1 transa=0 transb=1 dtype=f32"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_trace *t = bz_trace_new();
        const bz_call *call = bz_call_of(t, add_call(t, CASES[i].call, CASES[i].detail, "", 0, 1));
        if (!call->text != !CASES[i].problem)
            fail_msg("%s %s: is %s problem", CASES[i].call, CASES[i].detail, call->text ? "a" : "no");
        if (call->text)
            assert_string_equal(call->text, CASES[i].problem);
        assert_ptr_equal(bz_call_of(t, add_call(t, CASES[i].call, CASES[i].detail, "other", 5, 9)), call);
        bz_trace_free(t);
    }
}

static bz_record record_of(const char *problem, const char *algorithm, double seconds, bool chosen)
{
    bz_record r = bz_record_blank();
    r.system = "v100@cudnn7.6.3";
    r.problem = problem;
    r.variant = (bz_variant){"cudnn", algorithm, "plain", "default"};
    r.setting = (bz_setting){1, BZ_CACHE_HOT, ""};
    r.median = seconds;
    r.n = 3;
    r.iterations = 30;
    r.chosen = chosen;
    r.date = 1000;
    return r;
}

static void put(bz_perfdb *db, const char *problem, const char *algorithm, double seconds, bool chosen)
{
    bz_error err = {0};
    bz_record r = record_of(problem, algorithm, seconds, chosen);
    if (bz_perfdb_put(db, &r, 1, NULL, &err))
        fail_msg("%s", err.text);
}

/* Two convolutions in each of four iterations: one by the second best algorithm, one that the program padded by
 * itself and that the profile shows faster than any record. */
static bz_trace *trace_of(void)
{
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
    for (int64_t i = 0; i < 4; i++) {
        int64_t at = i * 1000000;
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + 500000, bz_trace_text(t, "benanza_iteration"), lane);
        add_call(t, "cudnnConvolutionForward", CUDNN("[1,8,9,9]", "[4,8,1,1]", "[0,0]", "[1,1]"),
                 "CUDNN_CONVOLUTION_FWD_ALGO_GEMM", at + 1000, at + 101000);
        add_call(t, "cudnnConvolutionForward", CUDNN("[1,8,11,11]", "[4,8,3,3]", "[0,0]", "[1,1]"),
                 "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD", at + 201000, at + 211000);
        add_call(t, "cudnnConvolutionForward", CUDNN("[1,8,50,50]", "[4,8,3,3]", "[0,0]", "[1,1]"),
                 "CUDNN_CONVOLUTION_FWD_ALGO_FFT", at + 301000, at + 311000);
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static void test_regret(void **state)
{
    char folder[] = "/tmp/benanza-test-XXXXXX", command[64];
    const char *plain = "conv x=1x8x9x9 w=4x8x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32";
    const char *padded = "conv x=1x8x9x9 w=4x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32";
    bz_perfdb *db;
    bz_error err = {0};
    bz_arena arena = {0};
    bz_regret r;
    const bz_system *system_;
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(bz_perfdb_open(&db, folder, &(bz_perfdb_options){0}, &err), 0);
    put(db, plain, "cudnn algo 2 GEMM", 90e-6, false);
    put(db, plain, "cudnn algo 0 IMPLICIT_GEMM", 95e-6, true);
    put(db, plain, "cudnn algo 4 FFT", 60e-6, false);
    put(db, padded, "cudnn algo 6 WINOGRAD", 30e-6, true);
    put(db, padded, "cudnn algo 7 WINOGRAD_NONFUSED", 40e-6, false);
    assert_int_equal(bz_perfdb_system(db, "v100", &system_, &err), 0);
    bz_trace *t = trace_of();
    assert_int_equal(bz_regret_make(t, db, system_, &(bz_setting){1, BZ_CACHE_HOT, ""}, &arena, &r, &err), 0);
    assert_int_equal(r.n, 3);
    assert_true(r.calls == 3 && r.known == 2);
    assert_string_equal(r.row[0].problem, plain);
    assert_string_equal(r.row[0].best_variant, "cudnn algo 4 FFT");
    assert_string_equal(r.row[0].chosen_variant, "cudnn algo 0 IMPLICIT_GEMM");
    assert_true(r.row[0].loss == bz_tick(90e-6) - bz_tick(60e-6) && r.row[0].seen == bz_tick(100e-6));
    assert_true(r.loss == r.row[0].loss && r.used - r.best == r.loss);
    assert_true(r.chosen == bz_tick(95e-6) + bz_tick(30e-6));
    for (int i = 1; i < 3; i++) {
        bool known = isfinite(r.row[i].used);
        assert_true(r.row[i].padded == (known ? 1 : 0) && r.row[i].loss == 0);
        assert_true(!known || !strcmp(r.row[i].problem, padded));
    }
    assert_true(r.faster == bz_tick(30e-6) - bz_tick(10e-6));
    bz_trace_free(t);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* What was given up, is noisy or a single sample does not price what was used; and no more is lost than a call took. */
static void test_no_measurement(void **state)
{
    static const char FFT[] = "conv x=1x8x50x50 w=4x8x3x3 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32";
    static const struct {
        bz_record_status status;
        bool noisy;
        int64_t n;
        double seconds, used, loss; /* of the variant that took 10 µs in the profile, where the best takes 8 */
    } CASES[] = {
        {BZ_RECORD_DROPPED, false, 3, 336e-6, NAN, 0},  {BZ_RECORD_FAILED, false, 3, 9e-6, NAN, 0},
        {BZ_RECORD_OK, true, 3, 336e-6, NAN, 0},        {BZ_RECORD_OK, false, 1, 336e-6, NAN, 0},
        {BZ_RECORD_OK, false, 3, 336e-6, 336e-6, 2e-6}, {BZ_RECORD_OK, false, 3, 9e-6, 9e-6, 1e-6},
        {BZ_RECORD_OK, false, 3, 7e-6, 7e-6, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char folder[] = "/tmp/benanza-test-XXXXXX", command[64];
        bz_perfdb *db;
        bz_error err = {0};
        bz_arena arena = {0};
        bz_regret r;
        const bz_system *system_;
        bz_record used = record_of(FFT, "cudnn algo 4 FFT", CASES[i].seconds, true);
        used.status = CASES[i].status, used.noisy = CASES[i].noisy, used.n = CASES[i].n;
        used.reason = used.status == BZ_RECORD_OK ? "" : "slower than twice the best";
        assert_non_null(mkdtemp(folder));
        assert_int_equal(bz_perfdb_open(&db, folder, &(bz_perfdb_options){0}, &err), 0);
        put(db, FFT, "cudnn algo 6 WINOGRAD", 8e-6, false);
        assert_int_equal(bz_perfdb_put(db, &used, 1, NULL, &err), 0);
        assert_int_equal(bz_perfdb_system(db, "v100", &system_, &err), 0);
        bz_trace *t = trace_of();
        assert_int_equal(bz_regret_make(t, db, system_, &(bz_setting){1, BZ_CACHE_HOT, ""}, &arena, &r, &err), 0);
        const bz_regret_row *row = &r.row[0];
        for (int k = 0; k < r.n; k++)
            row = !strcmp(r.row[k].problem, FFT) ? &r.row[k] : row;
        assert_true(isnan(CASES[i].used) ? isnan(row->used) && isnan(row->chosen)
                                         : row->used == bz_tick(CASES[i].used));
        assert_true(fabs(row->loss - CASES[i].loss) < 1e-12 && row->loss <= row->calls * row->seen &&
                    r.loss == row->loss);
        bz_trace_free(t);
        bz_perfdb_close(db);
        bz_arena_free(&arena);
        snprintf(command, sizeof command, "rm -rf %s", folder);
        assert_int_equal(system(command), 0);
    }
}

/* Where no library call is on record the framework tells how it asks: PyTorch does as for training. */
static void test_asked_as(void **state)
{
    (void)state;
    static const struct {
        const char *format;
        bool training;
    } FORMATS[] = {{"PyTorch trace", true}, {"ONNX Runtime profile", false}};
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        bz_trace *t = bz_trace_new();
        bz_arena arena = {0};
        bz_error err = {0};
        bz_regret r;
        uint32_t source = bz_trace_source(t, "made up", FORMATS[i].format), host = bz_trace_thread(t, source, 1, 1);
        bz_trace_add(t, BZ_EVENT_OP, 0, 1000, bz_trace_text(t, "aten::conv2d"), host);
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        assert_int_equal(bz_regret_make(t, NULL, NULL, &(bz_setting){1, BZ_CACHE_HOT, ""}, &arena, &r, &err), 0);
        assert_int_equal(r.training, FORMATS[i].training);
        bz_arena_free(&arena);
        bz_trace_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_problems), cmocka_unit_test(test_regret),
                                       cmocka_unit_test(test_no_measurement), cmocka_unit_test(test_asked_as)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
