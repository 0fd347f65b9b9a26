/* The original tool's results: what its names mean, and the files that it published. */
#include "tests/unit/perfdb_test.h"

#include "perfdb/gbench.h"

#define CONV_PATH                                                                                                      \
    "/input[0]:1/input[1]:64/input[2]:56/input[3]:56/filter_count:64/filter_height:3/filter_width:3/pad_height:1/"     \
    "pad_width:1/stride_height:1/stride_width:1/dilation_height:1/dilation_width:1/group:1/batch_size:1/"              \
    "conv_fwd_type:1/conv_bwd_type:0/manual_time"
#define CONV_TEXT "conv x=1x64x56x56 w=64x64x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1"
#define X_PATH    "/input[0]:1/input[1]:512/input[2]:28/input[3]:28/input[4]:-1/batch_size:1/manual_time"

static void test_names(void **state)
{
    (void)state;
    const struct {
        const char *name, *problem, *algorithm, *math; /* algorithm NULL: an error, `problem` its text */
    } cases[] = {
        {"LAYER_CUDNN_CONV_FWD_0_FLOAT32__BatchSize_1__1<CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD>" CONV_PATH,
         CONV_TEXT " dtype=f32", "cudnn algo 6 WINOGRAD", "default"},
        {"LAYER_CUDNN_CONV_FWD_4_TENSORCOREHALF__BatchSize_1__1<CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM>" CONV_PATH,
         CONV_TEXT " dtype=f16", "cudnn algo 0 IMPLICIT_GEMM", "tensor"},
        {"LAYER_CUDNN_CONV_BIAS_ACTIVATION_FWD_0_FLOAT32__BatchSize_1__1<CUDNN_CONVOLUTION_FWD_ALGO_GEMM, "
         "CUDNN_ACTIVATION_RELU>" CONV_PATH,
         CONV_TEXT " post=bias,relu dtype=f32", "cudnn algo 2 GEMM", "default"},
        {"LAYER_CUDNN_CONV_BIAS_ACTIVATION_FWD_0_FLOAT32__BatchSize_1__1<CUDNN_CONVOLUTION_FWD_ALGO_GEMM, "
         "CUDNN_ACTIVATION_IDENTITY>" CONV_PATH,
         CONV_TEXT " post=bias dtype=f32", "cudnn algo 2 GEMM", "default"},
        {"LAYER_CUDNN_CONV_BIAS_ACTIVATION_FWD_0_FLOAT32__BatchSize_1__1<CUDNN_CONVOLUTION_FWD_ALGO_GEMM, "
         "CUDNN_ACTIVATION_CLIPPED_RELU>" CONV_PATH,
         CONV_TEXT " post=bias,clip:0:? dtype=f32", "cudnn algo 2 GEMM", "default"},
        {"LAYER_CUDNN_ACTIVATION_FWD_FLOAT32__BatchSize_1__1<CUDNN_ACTIVATION_RELU>" X_PATH,
         "activation fn=relu x=1x512x28x28 dtype=f32", "cudnnActivationForward", "default"},
        {"LAYER_CUDNN_ACTIVATION_FWD_FLOAT32__BatchSize_1__1<CUDNN_ACTIVATION_CLIPPED_RELU>" X_PATH,
         "activation fn=clip x=1x512x28x28 alpha=0 beta=? dtype=f32", "cudnnActivationForward", "default"},
        {"LAYER_CUDNN_BATCHNORM_FWD_INFERENCE_FLOAT32__BatchSize_1__1<CUDNN_BATCHNORM_PER_ACTIVATION>" X_PATH,
         "batchnorm_each x=1x512x28x28 dtype=f32", "cudnnBatchNormalizationForwardInference", "default"},
        {"LAYER_CUDNN_BATCHNORM_FWD_TRAINING_FLOAT32__BatchSize_1__1<CUDNN_BATCHNORM_PER_ACTIVATION>" X_PATH,
         "batchnorm_each_training x=1x512x28x28 dtype=f32", "cudnnBatchNormalizationForwardTraining", "default"},
        {"LAYER_CUDNN_OP_TENSOR_ADD_FWD_FLOAT32__BatchSize_1__1" X_PATH,
         "binary fn=add a=1x512x28x28 b=1x512x28x28 dtype=f32", "cudnnOpTensor", "default"},
        {"LAYER_CUDNN_ADD_TENSOR_FLOAT32__BatchSize_1__1/input[0]:1/input[1]:256/input[2]:14/input[3]:14/bias[0]:1/"
         "bias[1]:256/bias[2]:1/bias[3]:1/batch_size:1/manual_time",
         "expand x=1x256x1x1 y=1x256x14x14 dtype=f32", "cudnnAddTensor", "default"},
        {"LAYER_CUDNN_POOLING_FWD_FLOAT32__BatchSize_1__1<CUDNN_POOLING_MAX_DETERMINISTIC>/input[0]:1/input[1]:64/"
         "input[2]:112/input[3]:112/filter_height:3/filter_width:3/pad_height:1/pad_width:1/stride_height:2/"
         "stride_width:2/batch_size:1/manual_time",
         "pool mode=max x=1x64x112x112 kernel=3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 dtype=f32",
         "cudnnPoolingForward MAX_DETERMINISTIC", "default"},
        {"LAYER_CUBLAS_GEMV_FWD_FLOAT32__BatchSize_1__1/input[0]:1000/input[1]:2048/input[2]:1/manual_time",
         "gemm m=1 n=1000 k=2048 batch=1 transa=0 transb=0 post=bias dtype=f32", "cublas gemv", "default"},
        {"BM_something/8", "no benchmark of the original tool", NULL, NULL},
        {"LAYER_CUDNN_RNN_FWD_FLOAT32__BatchSize_1__1" X_PATH, "no rule for the call", NULL, NULL},
        {"LAYER_CUBLAS_GEMM_FWD_FLOAT32__BatchSize_32__14/input[0]:32/input[1]:1000/input[2]:2048/input[3]:0/"
         "input[4]:1/"
         "input[5]:1/input[6]:1/input[7]:-1/batch_size:32/manual_time",
         "gemm m=1000 n=32 k=2048 batch=1 transa=1 transb=0 post=bias dtype=f32", "cublas gemm", "default"},
        {"LAYER_CUDNN_OP_TENSOR_MUL_FWD_FLOAT32__BatchSize_1__1" X_PATH,
         "binary fn=mul a=1x512x28x28 b=1x512x28x28 dtype=f32", "cudnnOpTensor", "default"},
        {"LAYER_CUDNN_BATCHNORM_FWD_INFERENCE_FLOAT32__BatchSize_1__1<CUDNN_BATCHNORM_SPATIAL_PERSISTENT>" X_PATH,
         "batchnorm x=1x512x28x28 dtype=f32", "cudnnBatchNormalizationForwardInference SPATIAL_PERSISTENT", "default"},
        {"LAYER_CUDNN_DROPOUT_FWD_FLOAT32__BatchSize_1__1/input[0]:1/input[1]:4096/input[2]:-1/input[3]:-1/"
         "batch_size:1/"
         "manual_time",
         "dropout x=1x4096x1x1 dtype=f32", "cudnnDropoutForward", "default"},
        {"LAYER_CUDNN_SOFTMAX_FWD_FLOAT32__BatchSize_1__1<CUDNN_SOFTMAX_MODE_INSTANCE>/input[0]:1/input[1]:1000/"
         "input[2]:-1/input[3]:-1/batch_size:1/manual_time",
         "softmax x=1x1000 axis=1 dtype=f32", "cudnnSoftmaxForward INSTANCE", "default"},
        {"LAYER_CUDNN_SOFTMAX_FWD_FLOAT32__BatchSize_1__1<CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL>" X_PATH,
         "softmax x=1x512x28x28 axis=1 dtype=f32", "cudnnSoftmaxForward FAST CHANNEL", "default"},
        {"LAYER_CUDNN_SOFTMAX_FWD_FLOAT32__BatchSize_1__1<CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL>" X_PATH,
         "is no softmax", NULL, NULL},
        {"LAYER_CUDNN_CONV_FWD_0_FLOAT32__BatchSize_1__1<CUDNN_CONVOLUTION_FWD_ALGO_NEW>" CONV_PATH,
         "no convolution algorithm 'NEW'", NULL, NULL},
        {"LAYER_CUDNN_CONV_FWD_0_FLOAT32__BatchSize_1__1<CUDNN_CONVOLUTION_FWD_ALGO_FFT>" X_PATH, "no 'filter_count'",
         NULL, NULL},
        {"LAYER_CUDNN_OP_TENSOR_ADD_FWD_FLOAT32__BatchSize_1__1/input[0]:99999999999999999999/input[1]:1",
         "out of range", NULL, NULL},
        {"LAYER_CUDNN_ACTIVATION_FWD_FLOAT32__BatchSize_1__1<<<" X_PATH, "a mode in the name", NULL, NULL},
    };
    bz_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bz_record r = {0};
        int rc = bz_gbench_name(cases[i].name, &arena, &r, &err);
        if (!cases[i].algorithm) {
            if (!rc || !strstr(err.text, cases[i].problem))
                fail_msg("%s: '%s'", cases[i].name, rc ? err.text : r.problem);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_string_equal(r.problem, cases[i].problem);
        assert_string_equal(r.variant.algorithm, cases[i].algorithm);
        assert_string_equal(r.variant.math, cases[i].math);
    }
    bz_record r = {0};
    assert_ok(bz_gbench_name(cases[0].name, &arena, &r, &err));
    assert_true(r.flops == 2.0 * 56 * 56 * 64 * 64 * 9);
    bz_arena_free(&arena);
}

/* Names with another number for each argument; with one left out, or below its least value or above 2^30, they are none. `least` has a letter for each
 * argument: 1, 0, or - where a number below 0 is a dimension that is not there, which reads 1; . where the call does not ask. */
static void test_every_argument(void **state)
{
    (void)state;
    static const struct {
        const char *call, *arguments, *least, *problem;
        double flops;
    } CASES[] = {
        {"CUDNN_CONV_FWD_0_FLOAT64",
         "<CUDNN_CONVOLUTION_FWD_ALGO_FFT>/input[0]:2/input[1]:12/input[2]:31/input[3]:41/filter_count:8/"
         "filter_height:3/filter_width:5/pad_height:1/pad_width:2/stride_height:3/stride_width:2/dilation_height:4/"
         "dilation_width:6/group:4",
         "11111110011111", "conv x=2x12x31x41 w=8x3x3x5 stride=3x2 pad=1x2x1x2 dilation=4x6 group=4 dtype=f64",
         2.0 * 2 * 8 * 9 * 11 * 3 * 15},
        {"CUDNN_CONV_FWD_0_FLOAT16",
         "<CUDNN_CONVOLUTION_FWD_ALGO_FFT>/input[0]:1/input[1]:1/input[2]:5/input[3]:5/filter_count:1/filter_height:3/"
         "filter_width:3/pad_height:0/pad_width:0/stride_height:1/stride_width:1/dilation_height:2/dilation_width:2/"
         "group:1",
         "11111110011111", "conv x=1x1x5x5 w=1x1x3x3 stride=1x1 pad=0x0x0x0 dilation=2x2 group=1 dtype=f16", 2.0 * 9},
        {"CUDNN_POOLING_FWD_FLOAT32",
         "<CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING>/input[0]:2/input[1]:3/input[2]:4/input[3]:5/filter_height:6/"
         "filter_width:9/pad_height:1/pad_width:2/stride_height:7/stride_width:8",
         "1111110011", "pool mode=avg x=2x3x4x5 kernel=6x9 stride=7x8 pad=1x2x1x2 dilation=1x1 dtype=f32", NAN},
        {"CUDNN_ACTIVATION_FWD_FLOAT32", "<CUDNN_ACTIVATION_ELU>/input[0]:2/input[1]:3/input[2]:4/input[3]:5", "1111",
         "activation fn=elu x=2x3x4x5 alpha=? dtype=f32", NAN},
        {"CUDNN_BATCHNORM_FWD_TRAINING_FLOAT32",
         "<CUDNN_BATCHNORM_SPATIAL>/input[0]:2/input[1]:3/input[2]:4/input[3]:5", "1111",
         "batchnorm_training x=2x3x4x5 dtype=f32", NAN},
        {"CUDNN_OP_TENSOR_MUL_FWD_FLOAT32", "/input[0]:2/input[1]:3/input[2]:4/input[3]:5", "1111",
         "binary fn=mul a=2x3x4x5 b=2x3x4x5 dtype=f32", NAN},
        {"CUDNN_ADD_TENSOR_FLOAT32",
         "/input[0]:2/input[1]:3/input[2]:4/input[3]:5/bias[0]:6/bias[1]:7/bias[2]:8/bias[3]:9", "11111111",
         "expand x=6x7x8x9 y=2x3x4x5 dtype=f32", NAN},
        {"CUDNN_DROPOUT_FWD_FLOAT32", "/input[0]:2/input[1]:3/input[2]:4/input[3]:5", "11--",
         "dropout x=2x3x4x5 dtype=f32", NAN},
        {"CUDNN_SOFTMAX_FWD_FLOAT32",
         "<CUDNN_SOFTMAX_MODE_CHANNEL, CUDNN_SOFTMAX_ACCURATE>/input[0]:2/input[1]:3/input[2]:4/input[3]:5", "11--",
         "softmax x=2x3x4x5 axis=1 dtype=f32", NAN},
        {"CUDNN_SOFTMAX_FWD_FLOAT32", "<CUDNN_SOFTMAX_MODE_INSTANCE>/input[0]:2/input[1]:3/input[2]:4/input[3]:5",
         "11--", "softmax x=2x60 axis=1 dtype=f32", NAN},
        {"CUDNN_DROPOUT_FWD_FLOAT32", "/input[0]:2/input[1]:3/input[2]:-1/input[3]:5", "11--",
         "dropout x=2x3x1x5 dtype=f32", NAN},
        {"CUDNN_SOFTMAX_FWD_FLOAT32", "<CUDNN_SOFTMAX_MODE_INSTANCE>/input[0]:2/input[1]:3/input[2]:4/input[3]:-1",
         "11--", "softmax x=2x12 axis=1 dtype=f32", NAN},
        {"CUBLAS_GEMV_FWD_FLOAT32", "/input[0]:2/input[1]:3/input[2]:1", "11.",
         "gemm m=1 n=2 k=3 batch=1 transa=0 transb=0 post=bias dtype=f32", 12},
        {"CUBLAS_GEMM_FWD_FLOAT32", "/input[0]:2/input[1]:3/input[2]:4/input[3]:1/input[4]:0/input[5]:1/input[6]:0",
         "11100.0", "gemm m=3 n=2 k=4 batch=1 transa=0 transb=1 dtype=f32", 48},
    };
    bz_arena arena = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *mode = CASES[i].arguments, *first = strchr(mode, '/'), *least = CASES[i].least;
        for (const char *at = first; at; at = strchr(at + 1, '/'), least++) {
            static const long VALUES[] = {-2, -1, 0, 1, 1 << 30, (1 << 30) + 1};
            int length = (int)strcspn(at + 1, ":"), whole = (int)strcspn(at + 1, "/");
            for (size_t k = 0; k < 2 + sizeof VALUES / sizeof *VALUES && *least != '.';
                 k++) { /* as it is, without, with another number */
                bz_record r = {0};
                const char *with = k == 0   ? bz_arena_printf(&arena, "%.*s", whole + 1, at)
                                   : k == 1 ? ""
                                            : bz_arena_printf(&arena, "%.*s:%ld", length + 1, at, VALUES[k - 2]);
                const char *name = bz_arena_printf(&arena, "LAYER_%s__BatchSize_1__1%.*s%s%s/manual_time",
                                                   CASES[i].call, (int)(at - mode), mode, with, at + 1 + whole);
                err.text[0] = 0;
                int rc = bz_gbench_name(name, &arena, &r, &err);
                if (k == 0) {
                    assert_int_equal(rc, 0);
                    assert_string_equal(r.problem, CASES[i].problem);
                    assert_true(isnan(CASES[i].flops) ? isnan(r.flops) : r.flops == CASES[i].flops);
                } else if (k == 1) {
                    assert_true(rc &&
                                strstr(err.text, bz_arena_printf(&arena, "the name has no '%.*s'", length, at + 1)));
                } else {
                    long v = VALUES[k - 2];
                    bool bad = v > 1 << 30 || v < (*least == '-' ? -1 : *least - '0');
                    if (!!strstr(err.text, "is out of range") != bad ||
                        (*least == '-' && !v && !strstr(err.text, "a dimension is 0")) || (bad && !rc))
                        fail_msg("%s: '%s'", name, err.text);
                }
            }
        }
        assert_int_equal(*least, 0);
    }
    static const struct {
        const char *from, *to, *why; /* of the first case */
    } WRONG[] = {{"input[2]:31", "input[2]:6", "the filter is larger"},
                 {"input[3]:41", "input[3]:20", "the filter is larger"},
                 {"input[1]:12", "input[1]:13", "do not divide"},
                 {"group:4", "group:x", "is no number"},
                 {"group:4", "group:", "is no number"},
                 {"<CUDNN_CONVOLUTION_FWD_ALGO_FFT>", "<CUDNN_CONVOLUTION_FWD_ALGO_>", "a mode in the name"}};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        bz_record r = {0};
        const char *was = CASES[0].arguments, *at = strstr(was, WRONG[i].from);
        assert_fails(bz_gbench_name(bz_arena_printf(&arena, "LAYER_%s__BatchSize_1__1%.*s%s%s", CASES[0].call,
                                                    (int)(at - was), was, WRONG[i].to, at + strlen(WRONG[i].from)),
                                    &arena, &r, &err),
                     BZ_BAD_INPUT, WRONG[i].why);
    }
    bz_arena_free(&arena);
}

#define GOOD(time, extra)                                                                                              \
    "{\"name\": \"LAYER_CUDNN_CONV_FWD_0_FLOAT32__BatchSize_1__1<CUDNN_CONVOLUTION_FWD_ALGO_FFT>" CONV_PATH "\", "     \
    "\"iterations\": 10, \"real_time\": " time ", \"time_unit\": \"us\", \"workspace_bytes\": 4096.0, "                \
    "\"convolution_algorithm\": 4.0, \"advised_convolution_algorithm\": 4.0, " extra "}"
#define COUNT(kernel, call, metric, value)                                                                             \
    "\"kernel_metric:" kernel "/current_iter:" call "/metric:" metric "\": " value
#define V100 "\"gpu_name:Tesla V100-SXM2-16GB\": 1e18, \"cudnn_version:7.6.3\": 1e18, \"host_name:secret\": 1"

/* Repetitions become one record; errors stay errors; a row of another GPU stays out. */
static void test_file(void **state)
{
    static const char *const TEXT[] = {
        "{\n  \"context\": {\"date\": \"2019-09-30 09:14:11\", \"caches\": [{\"type\": \"Data\"}]},\n  \"benchmarks\": "
        "[\n",
        "{\"name\": \"LAYER_CUDNN_CONV_FWD_0_FLOAT32__BatchSize_1__1<CUDNN_CONVOLUTION_FWD_ALGO_DIRECT>" CONV_PATH
        "\", "
        "\"error_occurred\": true, \"error_message\": \"because of CUDNN_STATUS_NOT_SUPPORTED\", \"iterations\": 1, "
        "\"real_time\": 0.0, \"time_unit\": \"ns\"},\n",
        GOOD("30.0", V100) ",\n",
        GOOD("10.0", V100) ",\n",
        GOOD("20.0", V100) ",\n",
        GOOD("1.0", "\"gpu_name:Tesla K80\": 1") ",\n",
        GOOD("9999.0",
             V100 ", \"cupti_enabled\": 1.0, \"cupti_num_iters\": 2.0, " COUNT(
                 "f<4>(float*)", "0", "flop_count_sp",
                 "30") ", " COUNT("f<4>(float*)", "1", "flop_count_sp",
                                  "30") ", " COUNT("g", "0", "flop_count_sp",
                                                   "10") ", " COUNT("g", "1", "flop_count_sp",
                                                                    "10") ", " COUNT("g", "0", "dram_read_bytes",
                                                                                     "6") ", " COUNT("g", "0",
                                                                                                     "ecc \\\" }",
                                                                                                     "8") ", "
                                                                                                          "\"kernel_"
                                                                                                          "metric:g\": "
                                                                                                          "5, "
                                                                                                          "\"kernel_"
                                                                                                          "metric:g/"
                                                                                                          "metric:\": "
                                                                                                          "7") ",\n",
        "{\"name\": \"LAYER_CUDNN_ACTIVATION_FWD_FLOAT32__BatchSize_1__1<CUDNN_ACTIVATION_RELU>" X_PATH "\", "
        "\"real_time\": 5, \"cupti_enabled\": 1.0, " COUNT("g", "0", "flop_count_sp", "10") "},\n",
        GOOD("1.0", V100 ", \"run_type\": \"aggregate\"") ",\n",
        "{\"name\": \"LAYER_CUDNN_ACTIVATION_FWD_FLOAT32__BatchSize_1__1<CUDNN_ACTIVATION_RELU>" X_PATH "\", "
        "\"error_occurred\": true, \"error_message\": \"device memory allocation failed\"},\n",
        "{\"name\": \"LAYER_NOBODY_KNOWS\", \"cupti_enabled\": 1.0},\n",
        "{\"real_time\": 3}\n  ]\n}\n",
    };
    const char *path = below(state, "original.json");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < sizeof TEXT / sizeof *TEXT; i++)
        fputs(TEXT[i], f);
    fclose(f);
    bz_perfdb *db = open_new(state, "db");
    bz_perfdb_import_report report;
    assert_ok(bz_perfdb_import(db, path, NULL, &report, &err));
    assert_int_equal(report.lines, 10);
    assert_int_equal(report.bad,
                     4); /* of another system; without a name; counted where there is no time, or by nobody's */
    assert_int_equal(report.uncounted, 1);
    assert_int_equal(report.counted, 1);
    assert_int_equal(report.count.added, 3);
    assert_int_equal(report.count.replaced, 1);
    assert_int_equal(warnings_with("another system"), 1);

    const bz_system *s;
    bz_arena arena = {0};
    bz_record *list;
    size_t n;
    assert_ok(bz_perfdb_system(db, "v100", &s, &err));
    assert_string_equal(s->name, "v100@cudnn7.6.3");
    assert_null(strstr(s->details, "secret"));
    assert_ok(bz_perfdb_variants(db, s, CONV_TEXT " dtype=f32", &arena, &list, &n, &err));
    assert_int_equal(n, 2);
    const bz_record *ok = &list[list[0].status != BZ_RECORD_OK], *no = &list[list[0].status == BZ_RECORD_OK];
    assert_true(fabs(ok->median - 20e-6) < 1e-12 && fabs(ok->min - 10e-6) < 1e-12 && fabs(ok->q75 - 25e-6) < 1e-12);
    assert_true(ok->n == 3 && ok->iterations == 30 && ok->workspace == 4096 && ok->chosen && ok->noisy);
    assert_true(ok->provenance == BZ_PROVENANCE_IMPORTED && ok->timing == BZ_TIMING_EVENT_PAIR && isnan(ok->low));
    assert_int_equal(ok->date, 1569834851);
    bz_counts counts;
    assert_true(bz_record_counts(ok, &counts));
    assert_true(counts.flops == 40 && counts.dram_read == 3 && isnan(counts.dram_write));
    assert_string_equal(
        ok->meta,
        "{\"benchmark\":\"LAYER_CUDNN_CONV_FWD_0_FLOAT32__BatchSize_1__1\\u003cCUDNN_CONVOLUTION_FWD_ALGO_FFT\\u003e\","
        "\"counted\":{\"flops\":40,\"dram_read\":3,\"ecc \\\" }\":4}}");
    assert_false(bz_record_counts(no, &counts));
    assert_true(no->status == BZ_RECORD_UNSUPPORTED && isnan(no->median));
    assert_string_equal(no->reason, "because of CUDNN_STATUS_NOT_SUPPORTED");
    assert_ok(bz_perfdb_variants(db, s, "activation fn=relu x=1x512x28x28 dtype=f32", &arena, &list, &n, &err));
    assert_true(n == 1 && list[0].status == BZ_RECORD_FAILED);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

/* A GPU that nobody knows keeps its letters and digits; a file without a result names no system; and what is no such file. */
static void test_odd_files(void **state)
{
#define RELU          "\"name\": \"LAYER_CUDNN_ACTIVATION_FWD_FLOAT32__BatchSize_1__1<CUDNN_ACTIVATION_RELU>" X_PATH "\""
#define FILE_OF(rows) "{\"context\": {\"date\": \"2019-09-30 09:14:11\"}, \"benchmarks\": [" rows "]}"
    static const struct {
        const char *text, *system, *error; /* the system, or why there is none */
        size_t bad;
    } CASES[] = {
        {FILE_OF("{" RELU ", \"real_time\": 5, \"gpu_name:G@AZ[ `az{ /09:_\": 1, \"cudnn_version:8\": 1}"),
         "g-az---az---09--@cudnn8", NULL, 0},
        {FILE_OF("{" RELU ", \"real_time\": 5, \"gpu_name:Odd\": 1}, {" RELU ", \"real_time\": 0}, {" RELU "}"), "odd",
         NULL, 2},
        {FILE_OF("{" RELU ", \"error_occurred\": true}"), NULL, "no benchmark in it worked", 0},
        {FILE_OF("{" RELU ", \"real_time\": 5},, {}"), NULL, "not JSON behind benchmark 1", 0},
        {FILE_OF("{" RELU ", \"real_time\": 5}, {" RELU ", oops}"), NULL, "not JSON behind benchmark 1", 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_perfdb_import_report report;
        bz_arena arena = {0};
        bz_perfdb *db = open_new(state, bz_arena_printf(&arena, "db%zu", i));
        const char *path = below(state, "odd.json");
        const bz_system *s;
        FILE *f = fopen(path, "w");
        assert_true(f && fputs(CASES[i].text, f) >= 0 && !fclose(f));
        if (CASES[i].error) {
            assert_fails(bz_perfdb_import(db, path, NULL, &report, &err), BZ_BAD_INPUT, CASES[i].error);
        } else {
            assert_ok(bz_perfdb_import(db, path, NULL, &report, &err));
            assert_int_equal(report.bad, CASES[i].bad);
            assert_ok(bz_perfdb_system(db, CASES[i].system, &s, &err));
            assert_non_null(s);
        }
        bz_perfdb_close(db);
        bz_arena_free(&arena);
    }
}

static const char *published(const char *name)
{
    static bz_arena paths;
    const char *shared = getenv("BENANZA_SHARED");
    const char *path = shared ? bz_arena_printf(&paths, "%s/published_db/%s", shared, name)
                              : bz_arena_printf(&paths, BENANZA_SOURCE "/../shared/data/published_db/%s", name);
    return access(path, R_OK) ? NULL : path;
}

/* The published results of seven GPUs: 1495 rows a file, of which 160 names come three times. */
static void test_published(void **state)
{
    const struct {
        const char *file, *system;
        size_t ok; /* distinct problems and variants that worked */
    } files[] = {
        {"Tesla_K80.1.json.gz", "k80@cudnn7.6.3", 333},
        {"Tesla_M60.1.json.gz", "m60@cudnn7.6.3", 331},
        {"TITAN_Xp.1.json.gz", "titan-xp@cudnn7.6.3", 321},
        {"TITAN_V.1.json.gz", "titan-v@cudnn7.6.3", 333},
        {"Tesla_T4.1.json.gz", "t4@cudnn7.6.3", 321},
        {"Quadro_RTX_6000.1.json.gz", "rtx6000@cudnn7.6.3", 321},
        {"7.5.1.10.resnet50.Tesla_V100-SXM2-16GB.1.json.gz", "v100@cudnn7.5.1", 333},
        {"Tesla_V100-SXM2-16GB.1.json.gz", "v100@cudnn7.6.3", 333},
    };
    if (!published(files[0].file)) {
        print_message("test_published skipped: no published_db under BENANZA_SHARED\n");
        skip();
    }
    bz_perfdb *db = open_new(state, "db");
    bz_arena arena = {0};
    bz_perfdb_import_report r;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_ok(bz_perfdb_import(db, published(files[i].file), NULL, &r, &err));
        assert_true(r.lines == 1495 && r.bad == 0 && r.records == 1171 && r.count.added == 1171);
        assert_ok(bz_perfdb_import(db, published(files[i].file), NULL, &r, &err));
        assert_int_equal(r.count.kept, 1171);
        const bz_system *s;
        assert_ok(bz_perfdb_system(db, files[i].system, &s, &err));
        assert_non_null(s);
        assert_null(strstr(s->details, "host"));
    }
    /* counters go to the records that have times, and stay when those are imported again */
    for (int again = 0; again < 2; again++) {
        assert_ok(bz_perfdb_import(db, published("Tesla_V100-SXM2-16GB.1.cupti.json.gz"), NULL, &r, &err));
        assert_true(r.lines == 55 && r.bad == 0 && r.counted == 55 && r.count.added == 0);
        assert_int_equal(r.count.replaced, again ? 0 : 51); /* four additions are one call */
        assert_ok(bz_perfdb_import(db, published("Tesla_V100-SXM2-16GB.1.json.gz"), NULL, &r, &err));
        assert_int_equal(r.count.kept, 1171);
    }

    /* the newest stack of two, and its fastest ReLU: the launch floor that it carries */
    const bz_system *v100;
    bz_record *list;
    size_t n;
    assert_ok(bz_perfdb_system(db, "v100", &v100, &err));
    assert_string_equal(v100->name, "v100@cudnn7.6.3");
    assert_ok(bz_perfdb_variants(db, v100, "activation fn=relu x=1x512x28x28 dtype=f32", &arena, &list, &n, &err));
    assert_int_equal(n, 1); /* the clipped one is another problem */
    assert_true(list[0].median > 7.9e-6 && list[0].median < 1e-5);
    bz_counts counts;
    assert_true(bz_record_counts(&list[0], &counts) && counts.flops == 2.0 * 512 * 28 * 28 && isnan(counts.dram_read));
    assert_int_equal(list[0].timing, BZ_TIMING_EVENT_PAIR);
    assert_ok(bz_perfdb_variants(db, v100, CONV_TEXT " dtype=f32", &arena, &list, &n, &err));
    assert_int_equal(n, 8); /* all algorithms, those that cannot included */
    size_t ok = 0;
    double best = 1;
    const char *fastest = "";
    for (size_t i = 0; i < n; i++)
        if (list[i].status == BZ_RECORD_OK && ++ok && list[i].median < best) {
            best = list[i].median;
            fastest = list[i].variant.algorithm;
        }
    assert_int_equal(ok, 7);
    assert_string_equal(fastest, "cudnn algo 6 WINOGRAD");
    assert_clean(db);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_names), TEST(test_every_argument), TEST(test_file),
                                       TEST(test_odd_files), TEST(test_published)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    return failed;
}
