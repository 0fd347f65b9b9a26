/* Every reader on small texts of its format: what it makes of them, and what it says of broken ones. */
#include "profile/reader.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static bz_trace *read_text(const char *text)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    bz_stream *in = bz_stream_memory(text, strlen(text));
    if (bz_profile_read_stream(t, in, NULL, &err))
        fail_msg("%s", err.text);
    bz_stream_close(in);
    return t;
}

static bool covers(const bz_trace *t, bz_coverage_level level, const char *part)
{
    for (uint32_t i = 0; i < t->n_coverage; i++)
        if (t->coverage[i].level == level && strstr(bz_string(t, t->coverage[i].text), part))
            return true;
    return false;
}

static const char *fact(const bz_trace *t, const char *key)
{
    for (uint32_t i = 0; i < t->n_facts; i++)
        if (!strcmp(bz_string(t, t->fact[i].key), key))
            return bz_string(t, t->fact[i].value);
    return "";
}

#define CUDNN_TAIL(thread)                                                                                             \
    "i! Time: 2019-09-29T01:25:41.125542 (0d+0h+0m+16s since start)\n"                                                 \
    "i! Process=24402; Thread=" thread "; GPU=0; Handle=0x7f74d07e8900; StreamId=0x7f74f40024d0.\n\n\n"

static void cudnn_nested_descriptors(void **state)
{
    (void)state;
    bz_trace *t =
        read_text("\nI! CuDNN (v7603) function cudnnConvolutionForward() called:\n"
                  "i!     handle: type=cudnnHandle_t; streamId=0x7f74f40024d0;\n"
                  "i!     alpha: type=CUDNN_DATA_FLOAT; val=1.000000;\n"
                  "i!     xDesc: type=cudnnTensorDescriptor_t:\n"
                  "i!         dataType: type=cudnnDataType_t; val=CUDNN_DATA_FLOAT (0);\n"
                  "i!         dimA: type=int; val=[1,3,230,230];\n"
                  "i!     xData: location=dev; addr=0x7f753ec00000;\n"
                  "i!     algo: type=cudnnConvolutionFwdAlgo_t; val=CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM "
                  "(1);\n" CUDNN_TAIL("24489") "I! CuDNN (v7603) function cudnnSetTensor4dDescriptor() called:\n"
                                               "i!     n: type=int; val=1;\n" CUDNN_TAIL("24490"));
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    assert_int_equal(c->n, 2);
    assert_string_equal(bz_string(t, c->name[0]), "cudnnConvolutionForward");
    assert_string_equal(bz_string(t, c->detail[0]),
                        "alpha=1.000000 xDesc.dataType=CUDNN_DATA_FLOAT xDesc.dimA=[1,3,230,230] "
                        "algo=CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM");
    assert_string_equal(bz_string(t, c->operands[0]), "handle=0x7f74f40024d0 xData=0x7f753ec00000");
    assert_string_equal(bz_string(t, c->variant[0]), "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM");
    assert_int_equal(c->flags[0], BZ_CALL_EXECUTES | BZ_CALL_LOGGED | BZ_CALL_UNTIMED);
    assert_int_equal(c->flags[1], BZ_CALL_LOGGED | BZ_CALL_UNTIMED);
    assert_int_equal(c->start[0], INT64_C(1569720341125542000));
    assert_int_equal(t->lane[c->lane[1]].thread, 24490);
    assert_string_equal(fact(t, "cudnn"), "7.6.3");
    bz_trace_free(t);
}

static void cudnn_returns_and_messages_are_no_calls(void **state)
{
    (void)state;
    bz_trace *t =
        read_text("I! CuDNN (v91900 56) function cudnnBackendExecute() called:\n"
                  "i!     handle: type=cudnnHandle_t; streamId=(nil) (defaultStream);\n" CUDNN_TAIL(
                      "5") "I! CuDNN (v91900 56) function cudnnBackendExecute() called:\n"
                           "i!     status: type=cudnnStatus_t; val=CUDNN_STATUS_EXECUTION_FAILED (5000);\n" CUDNN_TAIL(
                               "5") "E! CuDNN (v91900 56) function cudnnBackendExecute() called:\n"
                                    "e!     Info: Traceback contains 1 message(s)\n"
                                    "e!         Error: CUDNN_STATUS_EXECUTION_FAILED; Reason: something\n"
                                    "e! Time: 2026-11-21T01:45:57.495883 (0d+0h+0m+0s since start)\n"
                                    "e! Process=1; Thread=5; GPU=NULL; Handle=NULL; StreamId=NULL.\n");
    assert_int_equal(t->event[BZ_EVENT_CALL].n, 1);
    assert_int_equal(t->event[BZ_EVENT_CALL].flags[0],
                     BZ_CALL_EXECUTES | BZ_CALL_LOGGED | BZ_CALL_UNTIMED | BZ_CALL_FAILED);
    assert_string_equal(fact(t, "cudnn"), "9.19.0");
    assert_true(covers(t, BZ_COVERAGE_NOTE, "1 warnings or errors"));
    bz_trace_free(t);
}

static void cudnn_cut_off(void **state)
{
    (void)state;
    bz_trace *t = read_text("I! CuDNN (v7603) function cudnnAddTensor() called:\n" CUDNN_TAIL(
        "1") "I! CuDNN (v7603) function cudnnAddTensor() called:\ni!     alpha: type=CUDNN_DATA_FL");
    assert_int_equal(t->event[BZ_EVENT_CALL].n, 1);
    assert_true(t->source[0].truncated);
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "ends in the middle of cudnnAddTensor"));
    bz_trace_free(t);
    t = read_text("I! CuDNN (v7603) function cudnnAddTensor() called:\n" CUDNN_TAIL("1") "I! CuDNN (v76");
    assert_true(t->source[0].truncated);
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "the last line has no end"));
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "the recording is cut off: 1 event of it was read (library call: 1)"));
    bz_trace_free(t);
}

/* Two threads, line by line. */
static void cublas_mixed_threads(void **state)
{
    (void)state;
#define HEAD                                                                                                           \
    "I! cuBLAS (v10.1) function cublasStatus_t cublasSgemmEx(cublasContext*, cublasOperation_t, int, const float*) "   \
    "called:\n"
#define TAIL(thread, handle)                                                                                           \
    "i! Time: 2019-09-29T02:38:51 elapsed from start 0.216667 minutes or 13.000000 seconds\n"                          \
    "i!Process=8655; Thread=" thread "; GPU=0; Handle=POINTER (IN HEX:0x" handle                                       \
    "); StreamId=POINTER (IN HEX:0x(nil)); MathMode=CUBLAS_DEFAULT_MATH\n"                                             \
    "i! COMPILED WITH: GNU GCC/G++ / 4.1.2\n"
    bz_trace *t =
        read_text(HEAD HEAD "i!  handle: type=cublasHandle_t; val=POINTER (IN HEX:0x0xaa)\n"
                            "i!  handle: type=cublasHandle_t; val=POINTER (IN HEX:0x0xbb)\n"
                            "i!  transa: type=cublasOperation_t; val=CUBLAS_OP_T(1)\n"
                            "i!  m: type=int; val=4096\n"
                            "i!  transa: type=cublasOperation_t; val=CUBLAS_OP_N(0)\n"
                            "i!  A: type=float; val=POINTER (IN HEX:0x0x7f)\n"
                            "i!  m: type=int; val=17\n"
                            "i!  A: type=float; val=POINTER (IN HEX:0x0x8f)\n" TAIL("2", "0xbb") TAIL("1", "0xaa"));
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    assert_int_equal(c->n, 2);
    for (size_t i = 0; i < 2; i++) {
        int64_t thread = t->lane[c->lane[i]].thread;
        assert_string_equal(bz_string(t, c->detail[i]),
                            thread == 1 ? "transa=CUBLAS_OP_T m=4096" : "transa=CUBLAS_OP_N m=17");
        assert_string_equal(bz_string(t, c->operands[i]), thread == 1 ? "handle=0xaa A=0x7f" : "handle=0xbb A=0x8f");
        assert_string_equal(bz_string(t, c->variant[i]), "CUBLAS_DEFAULT_MATH");
    }
    assert_true(covers(t, BZ_COVERAGE_NOTE, "mixed"));
    bz_trace_free(t);
}

static void cublaslt_one_line(void **state)
{
    (void)state;
    bz_trace *t = read_text("[2024-05-01 10:00:00][cublasLt][4711][Api][cublasLtMatmul] A=0X7F10 Adesc=[type=R_16F "
                            "rows=64 cols=32 ld=64] alpha=1\n"
                            "[2024-05-01 10:00:00][cublasLt][4711][Trace][cublasLtMatmul] nothing\n");
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    assert_int_equal(c->n, 1);
    assert_int_equal(c->library[0], BZ_LIBRARY_CUBLASLT);
    assert_string_equal(bz_string(t, c->detail[0]), "Adesc=[type=R_16F_rows=64_cols=32_ld=64] alpha=1");
    bz_trace_free(t);
}

static void onednn_dialects(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "dnnl_verbose,exec,cpu,convolution,jit:avx2,forward_inference,src_f32::blocked:abcd:f0 "
        "wei_f32::blocked:ABcd8b8a:f0,,alg:convolution_direct,mb1_ic3,0.5\n",
        "onednn_verbose,info,prim_template:timestamp,operation,engine,primitive,implementation,prop_kind,memory_"
        "descriptors,attributes,auxiliary,problem_desc,exec_time\n"
        "onednn_verbose,1000.25,exec,cpu,convolution,jit:avx2,forward_inference,src_f32::blocked:abcd:f0 "
        "wei_f32::blocked:ABcd8b8a:f0,,alg:convolution_direct,mb1_ic3,0.5\n",
        "onednn_verbose,info,oneDNN v3.4.0 (commit abc)\n"
        "onednn_verbose,v1,primitive,info,template:operation,engine,primitive,implementation,prop_kind,memory_"
        "descriptors,attributes,auxiliary,problem_desc,exec_time\n"
        "onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx2,forward_inference,src_f32::blocked:abcd:f0 "
        "wei_f32::blocked:ABcd8b8a:f0,,alg:convolution_direct,mb1_ic3,0.5\n",
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        bz_trace *t = read_text(TEXTS[i]);
        const bz_events *c = &t->event[BZ_EVENT_CALL];
        assert_int_equal(c->n, 1);
        assert_string_equal(bz_string(t, c->name[0]), "convolution");
        assert_string_equal(bz_string(t, c->variant[0]), "jit:avx2");
        assert_string_equal(bz_string(t, c->detail[0]),
                            "engine=cpu prop=forward_inference src=f32::blocked:abcd:f0 wei=f32::blocked:ABcd8b8a:f0 "
                            "aux=alg:convolution_direct problem=mb1_ic3");
        assert_int_equal(c->end[0] - c->start[0], 500000);
        if (i == 1)
            assert_int_equal(c->start[0], 1000250000);
        if (i == 2)
            assert_string_equal(fact(t, "onednn"), "3.4.0");
        bz_trace_free(t);
    }
}

/* From 3.3 on the stamp stands before the part of the library, and not where the template has it; from 3.6 on types have
 * a colon before them. Lines that say why something was not done are none of what was done. */
static void onednn_stamps_of_3(void **state)
{
    (void)state;
    bz_trace *t = read_text(
        "onednn_verbose,v1,info,oneDNN v3.7.1 (commit abc)\n"
        "onednn_verbose,v1,primitive,info,template:timestamp,operation,engine,primitive,implementation,prop_kind,"
        "memory_"
        "descriptors,attributes,auxiliary,problem_desc,exec_time\n"
        "onednn_verbose,v1,graph,info,template:timestamp,operation,engine,partition_id,partition_kind,op_names,exec_"
        "time\n"
        "onednn_verbose,v1,1000.25,primitive,create:dispatch,matmul,cpu,matmul,gemm:jit,undef,src:f32:a:any:any::f0,,,"
        "2x3:3x4,unsupported datatype,cpu/gemm.cpp:88\n"
        "onednn_verbose,v1,1000.5,primitive,create:cache_miss,cpu,softmax,jit:avx2,backward_data,"
        "src:f32::blocked:ab::f0 dst:f32::blocked:ab::f0 diff_dst:f8_e5m2::blocked:ab::f0,,alg:softmax_accurate "
        "axis:1,2x8,0.25\n"
        "onednn_verbose,v1,1001,primitive,exec,cpu,softmax,jit:avx2,backward_data,src:f32::blocked:ab::f0 "
        "dst:f32::blocked:ab::f0 diff_dst:f8_e5m2::blocked:ab::f0,,alg:softmax_accurate axis:1,2x8,0.5\n");
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    assert_int_equal(c->n, 2);
    assert_string_equal(bz_string(t, c->name[0]), "create softmax");
    assert_int_equal(c->start[0], 1000500000);
    assert_string_equal(bz_string(t, c->name[1]), "softmax");
    assert_int_equal(c->start[1], 1001000000);
    assert_int_equal(c->end[1] - c->start[1], 500000);
    assert_string_equal(bz_string(t, c->detail[1]),
                        "engine=cpu prop=backward_data src=f32::blocked:ab::f0 dst=f32::blocked:ab::f0 "
                        "diff_dst=f8_e5m2::blocked:ab::f0 aux=alg:softmax_accurate;axis:1 problem=2x8");
    bz_trace_free(t);
}

/* A name may have more than one word. */
static void onednn_names_of_tensors(void **state)
{
    (void)state;
    bz_trace *t =
        read_text("onednn_verbose,exec,cpu,rnn,brgemm,backward,src_layer_f32::blocked:abc:f0 "
                  "wei_iter_undef::undef::f0 diff_src_layer_f8_e4m3:p:blocked:abc:f0,,alg:vanilla_rnn,l1t2,1\n");
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    assert_int_equal(c->n, 1);
    assert_string_equal(bz_string(t, c->detail[0]),
                        "engine=cpu prop=backward src_layer=f32::blocked:abc:f0 wei_iter=undef::undef::f0 "
                        "diff_src_layer=f8_e4m3:p:blocked:abc:f0 aux=alg:vanilla_rnn problem=l1t2");
    bz_trace_free(t);
}

static void onednn_cut_off(void **state)
{
    (void)state;
    bz_trace *t =
        read_text("hello\ndnnl_verbose,exec,cpu,reorder,jit:uni,undef,a,b,c,1x2,0.5\ndnnl_verbose,exec,cpu,convol");
    assert_int_equal(t->event[BZ_EVENT_CALL].n, 1);
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "1 line was"));
    bz_trace_free(t);
}

static void chrome_of_pytorch(void **state)
{
    (void)state;
    bz_trace *t =
        read_text("{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":1,\"name\":\"\"},{\"id\":0,\"name\":\"NVIDIA "
                  "A100\"}],\"traceEvents\":["
                  "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::conv2d\",\"pid\":5,\"tid\":6,\"ts\":"
                  "1695835542515301.125,\"dur\":104.5,"
                  "\"args\":{\"External id\":2,\"Input Dims\":[[1, 3, 224],[ ]],\"Input type\":[\"float\",\"\"]}},"
                  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":5,\"tid\":6,\"ts\":"
                  "1695835542515310,\"dur\":5,\"args\":{\"correlation\":9}},"
                  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void "
                  "at::native::add<float>(int)\",\"pid\":0,\"tid\":7,\"ts\":1695835542515320,\"dur\":71,"
                  "\"args\":{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":9,\"grid\":[864,2,1],\"block\":["
                  "256,1,1],\"registers per thread\":47}},"
                  "{\"ph\":\"s\",\"id\":9,\"pid\":5,\"tid\":6,\"ts\":1,\"cat\":\"ac2g\",\"name\":\"ac2g\"},"
                  "{\"ph\":\"C\",\"pid\":5,\"ts\":1,\"name\":\"memory\"}],\"traceName\":\"x\"}");
    bz_error err;
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    const bz_events *op = &t->event[BZ_EVENT_OP], *k = &t->event[BZ_EVENT_KERNEL];
    assert_int_equal(op->n, 1);
    assert_int_equal(op->start[0], INT64_C(1695835542515301125));
    assert_int_equal(op->end[0] - op->start[0], 104500);
    assert_string_equal(bz_string(t, op->detail[0]), "inputs=[[1,3,224],[]] types=[float,]");
    assert_int_equal(k->n, 1);
    assert_string_equal(bz_string(t, k->short_name[0]), "add");
    const bz_launched *launched = bz_kernel_launched(t, 0);
    assert_int_equal(launched->grid[0], 864);
    assert_int_equal(launched->grid[1], 2);
    assert_int_equal(launched->block[0], 256);
    assert_int_equal(launched->registers, 47);
    assert_int_equal(k->cause[0], 0);
    assert_int_equal(k->op[0], 0);
    assert_string_equal(fact(t, "gpu"), "NVIDIA A100");
    assert_true(covers(t, BZ_COVERAGE_NOTE, "1 events of phase 'C'"));
    assert_string_equal(bz_string(t, t->source[0].format), "PyTorch trace");
    bz_trace_free(t);
}

static void chrome_of_pytorch_without_kineto(void **state)
{
    (void)state;
    bz_trace *t = read_text("[{\"name\": \"aten::conv2d\", \"ph\": \"X\", \"ts\": 511, \"dur\": 9443, \"tid\": 1, "
                            "\"pid\": \"CPU functions\", \"args\": {}}]");
    assert_int_equal(t->event[BZ_EVENT_OP].n, 1);
    assert_string_equal(bz_string(t, t->source[0].format), "PyTorch trace");
    bz_trace_free(t);
}

static void chrome_of_onnx_runtime(void **state)
{
    (void)state;
    bz_trace *t = read_text(
        "[{\"cat\":\"Session\",\"pid\":1,\"tid\":2,\"dur\":900,\"ts\":10,\"ph\":\"X\",\"name\":\"model_run\",\"args\":{"
        "}},\n"
        "{\"cat\":\"Node\",\"pid\":1,\"tid\":2,\"dur\":1,\"ts\":11,\"ph\":\"X\",\"name\":\"conv1_fence_before\","
        "\"args\":{\"op_name\":\"Conv\"}},\n"
        "{\"cat\":\"Node\",\"pid\":1,\"tid\":2,\"dur\":100,\"ts\":20,\"ph\":\"X\",\"name\":\"conv1_kernel_time\","
        "\"args\":{\"op_name\":\"Conv\",\"provider\":\"CPUExecutionProvider\",\"node_index\":\"3\"}}]");
    bz_error err;
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    const bz_events *op = &t->event[BZ_EVENT_OP];
    assert_int_equal(op->n, 1);
    assert_string_equal(bz_string(t, op->name[0]), "Conv");
    assert_string_equal(bz_string(t, op->detail[0]), "provider=CPUExecutionProvider node=3 name=conv1_kernel_time");
    assert_int_equal(t->n_iterations, 1);
    assert_int_equal(t->origin, BZ_ITERATION_RANGE);
    bz_trace_free(t);
}

/* ONNX Runtime tells its threads with every node: nothing where one thread does all, else each worker. */
static void chrome_tells_threads(void **state)
{
    static const struct {
        const char *stats, *threads;
    } CASES[] = {
        {"\"\"", "1"},
        {"{\"main_thread\":{\"core\":0},\"sub_threads\":{\"14\":{\"num_run\":1},\"15\":{\"num_run\":1}}}", "3"},
        {"{\"main_thread\":{\"core\":0}}", "1"}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "[{\"cat\":\"Node\",\"pid\":1,\"tid\":2,\"dur\":100,\"ts\":20,\"ph\":\"X\",\"name\":\"n\","
                 "\"args\":{\"thread_scheduling_stats\":%s,\"op_name\":\"Conv\"}}]",
                 CASES[i].stats);
        bz_trace *t = read_text(text);
        assert_int_equal(t->n_facts, 1);
        assert_string_equal(bz_string(t, t->fact[0].key), "threads");
        assert_string_equal(bz_string(t, t->fact[0].value), CASES[i].threads);
        assert_string_equal(bz_string(t, t->event[BZ_EVENT_OP].name[0]), "Conv");
        bz_trace_free(t);
    }
}

static void chrome_of_others(void **state)
{
    (void)state;
    bz_trace *t = read_text(
        "[{\"ph\":\"B\",\"name\":\"outer "
        "\\u00e9\",\"pid\":1,\"tid\":\"main\",\"ts\":1},{\"ph\":\"B\",\"name\":\"inner\",\"pid\":1,\"tid\":\"main\","
        "\"ts\":2},"
        "{\"ph\":\"E\",\"pid\":1,\"tid\":\"main\",\"ts\":5},{\"ph\":\"E\",\"pid\":1,\"tid\":\"main\",\"ts\":9},"
        "{\"ph\":\"B\",\"name\":\"open\",\"pid\":1,\"tid\":2,\"ts\":5},{\"ph\":\"X\",\"name\":\"no time\",\"pid\":1}]");
    const bz_events *r = &t->event[BZ_EVENT_RANGE];
    assert_int_equal(r->n, 2);
    assert_string_equal(bz_string(t, r->name[0]), "inner");
    assert_int_equal(r->end[0] - r->start[0], 3000);
    assert_string_equal(bz_string(t, r->name[1]), "outer \xc3\xa9");
    assert_string_equal(bz_string(t, t->lane[r->lane[0]].name), "main");
    assert_true(covers(t, BZ_COVERAGE_NOTE, "1 ranges begin and never end"));
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "1 events carry no time"));
    bz_trace_free(t);
}

/* Spans with an id cross others of their thread, and may end on another one. */
static void chrome_spans_by_id(void **state)
{
    (void)state;
    bz_trace *t =
        read_text("[{\"ph\":\"b\",\"cat\":\"q\",\"name\":\"request\",\"id\":\"0x1\",\"pid\":1,\"tid\":1,\"ts\":1},"
                  "{\"ph\":\"b\",\"cat\":\"q\",\"name\":\"request\",\"id\":\"0x2\",\"pid\":1,\"tid\":1,\"ts\":2},"
                  "{\"ph\":\"n\",\"cat\":\"q\",\"name\":\"token\",\"id\":\"0x1\",\"pid\":1,\"tid\":1,\"ts\":3},"
                  "{\"ph\":\"e\",\"cat\":\"q\",\"name\":\"request\",\"id\":\"0x1\",\"pid\":1,\"tid\":2,\"ts\":5},"
                  "{\"ph\":\"e\",\"cat\":\"q\",\"id\":\"0x2\",\"pid\":1,\"tid\":1,\"ts\":9},"
                  "{\"ph\":\"b\",\"name\":\"local\",\"id2\":{\"local\":\"7\"},\"pid\":1,\"tid\":1,\"ts\":10},"
                  "{\"ph\":\"e\",\"name\":\"local\",\"id2\":{\"local\":\"7\"},\"pid\":1,\"tid\":1,\"ts\":12}]");
    bz_error err;
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    static const int64_t TIMES[][2] = {{1000, 5000}, {2000, 9000}, {3000, 3000}, {10000, 12000}};
    const bz_events *e = &t->event[BZ_EVENT_RANGE];
    assert_int_equal(e->n, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(e->start[i], TIMES[i][0]);
        assert_int_equal(e->end[i], TIMES[i][1]);
        assert_int_equal(t->lane[e->lane[i]].thread, 1);
    }
    bz_trace_free(t);
}

/* One event a line, without an array around them: the last line may lack its end. */
static void chrome_lines(void **state)
{
    (void)state;
    static const char LINES[] =
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}\n"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":1,\"tid\":1,\"ts\":4,\"dur\":2}\n"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::relu\",\"pid\":1,\"tid\":1,\"ts\":7,\"dur\":1}";
    bz_trace *t = read_text(LINES);
    assert_int_equal(t->event[BZ_EVENT_OP].n, 3);
    assert_string_equal(bz_string(t, t->event[BZ_EVENT_OP].name[2]), "aten::relu");
    assert_false(t->source[0].truncated);
    bz_trace_free(t);
    char cut[sizeof LINES];
    snprintf(cut, sizeof cut, "%.*s", (int)sizeof LINES - 20, LINES);
    t = read_text(cut);
    assert_int_equal(t->event[BZ_EVENT_OP].n, 2);
    assert_true(t->source[0].truncated);
    bz_trace_free(t);
}

/* Of Meta's accelerator, as HTA takes them: work and copies have one category. */
static void chrome_of_mtia(void **state)
{
    (void)state;
    bz_trace *t = read_text(
        "{\"schemaVersion\":1,\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"fc-dtype_Float\",\"pid\":9,\"tid\":4,\"ts\":1,\"dur\":1,"
        "\"args\":{\"correlation\":7,\"stream\":1}},"
        "{\"ph\":\"X\",\"cat\":\"mtia_runtime\",\"name\":\"runFunction - job_prep_and_submit_for_execution\",\"pid\":1,"
        "\"tid\":1,\"ts\":0,\"dur\":1,\"args\":{\"correlation\":7}},"
        "{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"dma_request\",\"pid\":9,\"tid\":801,\"ts\":3,\"dur\":1}]"
        "}");
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 1);
    assert_int_equal(t->event[BZ_EVENT_COPY].n, 1);
    assert_int_equal(bz_api_of(t, 0), BZ_API_LAUNCHES);
    bz_trace_free(t);
}

/* Of a device whose categories nobody knows, as PyTorch's profiler writes them: what a call or an operator asked for, and lies on no thread of the
 * host, is the device's work, whether it comes before or behind what tells so. Else it stays a range, and of what lies elsewhere the coverage tells. */
static void chrome_of_any_device(void **state)
{
#define EVENT(cat, name, pid, tid, ts, args)                                                                           \
    ",{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #ts           \
    ",\"dur\":1,\"args\":{" args "}}"
    (void)state;
    bz_trace *t = read_text("{\"schemaVersion\":1,\"traceEvents\":[{}" EVENT(
        "zpu_work", "gemm", 0, 3, 10, "\"External id\":5,\"correlation\":7,\"stream\":3")
                                EVENT("zpu_work", "Memcpy HtoD", 0, 4, 20, "\"External id\":5")
                                    EVENT("cpu_op", "aten::mm", 90, 90, 1, "\"External id\":5")
                                        EVENT("zpu_runtime", "zpuLaunch", 90, 91, 2, "\"correlation\":7")
                                            EVENT("zpu_op", "prepare", 90, 90, 3, "\"External id\":5")
                                                EVENT("zpu_work", "other", 0, 3, 30, "\"correlation\":8") "]}");
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 1);
    assert_int_equal(t->event[BZ_EVENT_COPY].n, 1);
    assert_int_equal(t->event[BZ_EVENT_RANGE].n, 2);
    const bz_events *k = &t->event[BZ_EVENT_KERNEL];
    assert_true(t->lane[k->lane[0]].device && t->lane[k->lane[0]].stream == 3 && k->correlation[0] == 7);
    assert_int_equal(t->n_coverage, 1);
    assert_non_null(strstr(bz_string(t, t->coverage[0].text), "1 events are of categories that are not known"));
    bz_trace_free(t);
    /* a trace of another program tells nothing by such numbers */
    t = read_text("[{}" EVENT("work", "a", 0, 3, 10, "\"correlation\":7")
                      EVENT("cuda_run", "b", 1, 1, 1, "\"correlation\":7") "]");
    assert_int_equal(t->event[BZ_EVENT_RANGE].n, 2);
    bz_trace_free(t);
#undef EVENT
}

/* "kernel", a zero and more is no kernel. */
static void chrome_names_with_a_zero(void **state)
{
    (void)state;
    bz_trace *t =
        read_text("{\"schemaVersion\":1,\"traceEvents\":["
                  "{\"ph\":\"X\",\"cat\":\"kernel\\u0000x\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},"
                  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":3,\"dur\":1}]}");
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 1);
    assert_int_equal(t->event[BZ_EVENT_RANGE].n, 1);
    bz_trace_free(t);
}

static void chrome_cut_off(void **state)
{
    (void)state;
    bz_trace *t = read_text(
        "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2},{\"ph\":\"X\",\"na");
    assert_int_equal(t->event[BZ_EVENT_RANGE].n, 1);
    assert_true(t->source[0].truncated);
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "cut off"));
    bz_trace_free(t);
    t = read_text("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,"
                  "\"tid\":1,\"ts\":1,\"dur\":2}], \"traceName\": \"x");
    assert_true(t->source[0].truncated); /* nothing but facts is missing, and nobody can know that */
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "ends behind its events"));
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "all kernels among it"));
    bz_trace_free(t);
    t = read_text("{\"schemaVersion\": 1, \"traceEvents\"");
    assert_int_equal(t->event[BZ_EVENT_RANGE].n, 0);
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "cut off"));
    bz_trace_free(t);
    bz_buf deep = {0};
    bz_buf_puts(&deep, "{\"traceEvents\":[{\"ph\":\"X\",\"args\":");
    for (int i = 0; i < 100000; i++)
        bz_buf_putc(&deep, '[');
    t = read_text(deep.data);
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "nested too deeply"));
    bz_trace_free(t);
    bz_buf_free(&deep);
}

static char *database(const char *sql)
{
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    return strdup(path);
}

static bz_trace *read_database(const char *sql)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    char *path = database(sql);
    if (bz_profile_read(t, path, &err))
        fail_msg("%s", err.text);
    unlink(path);
    free(path);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    return t;
}

static size_t facts_that_are(const bz_trace *t, const char *key, const char *value)
{
    size_t n = 0;
    for (uint32_t i = 0; i < t->n_facts; i++)
        n += !strcmp(bz_string(t, t->fact[i].key), key) && !strcmp(bz_string(t, t->fact[i].value), value);
    return n;
}

/* One process' tables of rocprofv3, and three steps of two kernels, a copy and a range of roctx. */
static void put_rocpd(bz_buf *sql, const char *ending, int pid)
{
    static const char *const TABLES[] = {
        "string (id INTEGER PRIMARY KEY, guid TEXT, string TEXT)",
        "info_process (id INTEGER PRIMARY KEY, pid INTEGER, command TEXT)",
        "info_thread (id INTEGER PRIMARY KEY, tid INTEGER)",
        "info_agent (id INTEGER PRIMARY KEY, type TEXT, type_index INTEGER, name TEXT, product_name TEXT)",
        "info_kernel_symbol (id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT)",
        "event (id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER, extdata TEXT)",
        "region (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, 'end' INTEGER, name_id INTEGER, "
        "event_id INTEGER)",
        "kernel_dispatch (id INTEGER PRIMARY KEY, pid INTEGER, agent_id INTEGER, kernel_id INTEGER, queue_id INTEGER, "
        "stream_id INTEGER, start INTEGER, 'end' INTEGER, group_segment_size INTEGER, workgroup_size_x INTEGER, "
        "workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER, grid_size_y INTEGER, "
        "grid_size_z INTEGER, event_id INTEGER)",
        "memory_copy (id INTEGER PRIMARY KEY, pid INTEGER, start INTEGER, 'end' INTEGER, name_id INTEGER, dst_agent_id "
        "INTEGER, size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id INTEGER)"};
    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES; i++) {
        int n = (int)strcspn(TABLES[i], " ");
        bz_buf_printf(sql, "CREATE TABLE rocpd_%.*s%s%s;", n, TABLES[i], ending, TABLES[i] + n);
    }
    bz_buf_printf(sql,
                  "INSERT INTO rocpd_string%s VALUES (1, '', 'HIP_RUNTIME_API_EXT'), (2, '', 'hipLaunchKernel'), "
                  "(3, '', 'MARKER_CORE_RANGE_API'), (4, '', 'roctxThreadRangeA'), (5, '', 'KERNEL_DISPATCH'), (6, '', "
                  "'MEMORY_COPY_HOST_TO_DEVICE'), (7, '', 'hipMemcpyAsync');"
                  "INSERT INTO rocpd_info_process%s VALUES (11, %d, './train --steps 3');"
                  "INSERT INTO rocpd_info_thread%s VALUES (21, 77);"
                  "INSERT INTO rocpd_info_agent%s VALUES (0, 'CPU', 0, 'EPYC', ''), (4, 'GPU', 1, 'gfx942', 'AMD "
                  "Instinct MI300X');"
                  "INSERT INTO rocpd_info_kernel_symbol%s VALUES (31, 'x.kd', 'Cijk_Ailk_Bljk_HHS_BH_MI16x16x16');",
                  ending, ending, pid, ending, ending, ending);
    for (int step = 0, id = 1; step < 3; step++) {
        int at = 1000000 * (step + 1);
        bz_buf_printf(sql, "INSERT INTO rocpd_event%s VALUES (%d, 3, %d, '{\"message\": \"step %d\"}');", ending, id,
                      id, step);
        bz_buf_printf(sql, "INSERT INTO rocpd_region%s VALUES (%d, 11, 21, %d, %d, 4, %d);", ending, id, at - 1000,
                      at + 90000, id);
        id++;
        for (int k = 0; k < 3; k++, id++) {
            int launch = at + 10000 * k, call = id;
            bz_buf_printf(sql,
                          "INSERT INTO rocpd_event%s VALUES (%d, 1, %d, '{}'), (%d, 5, %d, '{}');"
                          "INSERT INTO rocpd_region%s VALUES (%d, 11, 21, %d, %d, %d, %d);",
                          ending, id, 100 + call, id + 1000, 100 + call, ending, id, launch, launch + 4000, k ? 2 : 7,
                          id);
            if (k)
                bz_buf_printf(sql,
                              "INSERT INTO rocpd_kernel_dispatch%s VALUES (%d, 11, 4, 31, 16, 2, %d, %d, 512, 256, 1, "
                              "1, 77824, 2, 1, %d);",
                              ending, id, launch + 6000, launch + 13000, id + 1000);
            else
                bz_buf_printf(sql, "INSERT INTO rocpd_memory_copy%s VALUES (%d, 11, %d, %d, 6, 4, 4096, 0, 2, %d);",
                              ending, id, launch + 6000, launch + 7000, id + 1000);
        }
    }
}

static void databases_of_rocprofv3(void **state)
{
    (void)state;
    BZ_SCOPED(bz_buf) sql = {0};
    put_rocpd(&sql, "_00003fdc_92cb", 4711);
    bz_trace *t = read_database(sql.data);
    const bz_events *kernel = &t->event[BZ_EVENT_KERNEL], *copy = &t->event[BZ_EVENT_COPY];
    assert_string_equal(bz_string(t, t->source[0].format), "rocprofv3");
    assert_int_equal(kernel->n, 6);
    assert_int_equal(t->event[BZ_EVENT_API].n, 9);
    assert_int_equal(copy->n, 3);
    assert_string_equal(bz_string(t, kernel->name[0]), "Cijk_Ailk_Bljk_HHS_BH_MI16x16x16");
    assert_int_equal(bz_kernel_launched(t, 0)->grid[0], 304);
    assert_int_equal(bz_kernel_launched(t, 0)->grid[1], 2);
    assert_int_equal(t->lane[kernel->lane[0]].device_id, 1);
    assert_int_equal(t->lane[kernel->lane[0]].process, 4711);
    assert_int_equal(t->event[BZ_EVENT_API].start[kernel->cause[5]], 3020000);
    assert_int_equal(copy->value[0], 1);
    assert_int_equal(copy->bytes[0], 4096);
    assert_int_equal(t->n_iterations, 3);
    assert_int_equal(t->origin, BZ_ITERATION_RANGE);
    assert_int_equal(facts_that_are(t, "gpu", "AMD Instinct MI300X"), 1);
    assert_int_equal(facts_that_are(t, "program", "./train --steps 3"), 1);
    bz_trace_free(t);
    put_rocpd(&sql, "_00003fdd_11aa", 4712); /* two processes, merged */
    t = read_database(sql.data);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 12);
    bz_trace_free(t);
}

static long step_that_fails, steps;

static int fail_once(void *unused)
{
    (void)unused;
    return ++steps == step_that_fails;
}

/* SQLite calls this for each file that is opened. */
static int watch(sqlite3 *db, const char **message, const void *unused)
{
    (void)message, (void)unused;
    sqlite3_progress_handler(db, 1, fail_once, NULL);
    return SQLITE_OK;
}

/* Whatever step of SQLite's fails while a file is read: the file is refused with a sentence, or what is missing is told, or
 * nothing is missing. A table or column is never taken for one that the file does not have. */
static void failures_of_sqlite_are_told(void **state)
{
    (void)state;
    char *path = database(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (1, 'k'), (2, 'm');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, "
        "streamId "
        "INTEGER, correlationId INTEGER, demangledName INTEGER, shortName INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 1, 7, 5, 1, 1), (30, 40, 0, 1, 7, 6, 2, 2);"
        "CREATE TABLE TARGET_INFO_GPU (name TEXT); INSERT INTO TARGET_INFO_GPU VALUES ('a GPU');"
        "CREATE TABLE BENANZA_FACTS (key TEXT, value TEXT); INSERT INTO BENANZA_FACTS VALUES ('cpu', 'some');");
    int refused = 0, told = 0, whole = 0;
    assert_int_equal(sqlite3_auto_extension((void (*)(void))watch), SQLITE_OK);
    step_that_fails = -10;
    do {
        bz_error err = {0};
        bz_trace *t = bz_trace_new();
        step_that_fails += 11;
        steps = 0;
        if (bz_profile_read(t, path, &err)) {
            assert_non_null(strstr(err.text, "cannot be read: "));
            refused++;
        } else if (t->source[0].truncated) {
            told += covers(t, BZ_COVERAGE_BROKEN, "is damaged (interrupted)");
        } else {
            assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 2);
            assert_string_equal(bz_string(t, t->event[BZ_EVENT_KERNEL].name[1]), "m");
            assert_int_equal(t->event[BZ_EVENT_KERNEL].correlation[1], 6);
            assert_int_equal(facts_that_are(t, "gpu", "a GPU") + facts_that_are(t, "cpu", "some"), 2);
            whole++;
        }
        bz_trace_free(t);
    } while (steps >= step_that_fails);
    sqlite3_cancel_auto_extension((void (*)(void))watch);
    assert_true(refused > 100 && told > 0 && whole >= 1);
    unlink(path);
    free(path);
}

/* What the host is called is not carried on: neither what Nsight Systems wrote around the events, nor what recordings of
 * ours once had. Words that contain the name are other words. */
static void hosts_are_not_named(void **state)
{
    (void)state;
    bz_trace *t = read_database(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (1, 'at node7');"
        "CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);"
        "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'node7');"
        "CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);"
        "INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:COMMAND', 'python3'), ('PROCESS_0:ARGUMENT_0', '--on=node7'),"
        " ('PROCESS_0:ARGUMENT_1', 'node77 node7-a anode7 node7');"
        "CREATE TABLE DIAGNOSTIC_EVENT (severity INTEGER, text TEXT);"
        "INSERT INTO DIAGNOSTIC_EVENT VALUES (2, 'no counters ' || char(10) || 'on node7.');"
        "CREATE TABLE BENANZA_FACTS (key TEXT, value TEXT);"
        "INSERT INTO BENANZA_FACTS VALUES ('host', 'node7, Linux 6.1.0'), ('host', 'node7'), ('cpu', 'some');");
    assert_int_equal(facts_that_are(t, "program", "python3 --on=HOST node77 node7-a anode7 HOST"), 1);
    assert_int_equal(facts_that_are(t, "operating system", "Linux 6.1.0"), 1);
    assert_int_equal(facts_that_are(t, "cpu", "some"), 1);
    assert_int_equal(t->n_facts, 3);
    bool said = false;
    for (uint32_t i = 0; i < t->n_coverage; i++)
        said |= strstr(bz_string(t, t->coverage[i].text), "said: no counters on HOST.") != NULL;
    assert_true(said);
    /* and a string that nothing refers to is not saved */
    bz_error err;
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    assert_int_equal(bz_trace_save(t, path, &err), 0);
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM StringIds", -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(s, 0), 1); /* the empty one */
    sqlite3_finalize(s);
    sqlite3_close(db);
    unlink(path);
    bz_trace_free(t);
}

/* A recording keeps the name of what an analysis asks for. An older one has only the sentence, which is read all the same. */
static void lacks_keep_their_names(void **state)
{
    (void)state;
    bz_error err;
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    bz_trace *t = bz_trace_new();
    for (int i = BZ_LACKS_OTHER + 1; i < BZ_LACKS; i++) {
        assert_int_equal(bz_lack_of(bz_lack_name((bz_lack)i)), i);
        bz_trace_lack(t, BZ_NONE, BZ_COVERAGE_NOTE, (bz_lack)i, "lacks %s", bz_lack_name((bz_lack)i));
    }
    assert_int_equal(bz_trace_save(t, path, &err), 0);
    for (int older = 0; older < 2; older++) {
        bz_trace *u = bz_trace_new();
        assert_int_equal(bz_profile_read(u, path, &err), 0);
        assert_true(covers(u, BZ_COVERAGE_NOTE, "lacks quiet"));
        if (older)
            assert_null(bz_trace_lacks(u, BZ_LACKS_QUIET));
        else
            assert_string_equal(bz_trace_lacks(u, BZ_LACKS_QUIET), "lacks quiet");
        bz_trace_free(u);
        sqlite3 *db;
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        sqlite3_exec(db, "ALTER TABLE BENANZA_COVERAGE DROP COLUMN lack", NULL, NULL, NULL);
        sqlite3_close(db);
    }
    unlink(path);
    bz_trace_free(t);
}

static void nsys_versions_and_gaps(void **state)
{
    (void)state;
    bz_trace *t = read_database(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (7, 'k'), (99, "
        "'cudaLaunchKernel_v7000');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL_V2 (start INTEGER, end INTEGER, deviceId INT, contextId INT, streamId "
        "INT, globalPid INT,"
        " correlationId INT, demangledName INT, shortName INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL_V2 VALUES (100, 200, 0, 1, 7, 5 << 24, 3, 7, 7), (300, 200, 0, 1, 7, 5 "
        "<< 24, 4, 8, 7);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INT, correlationId INT, "
        "nameId INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 60, (5 << 24) + 9, 3, 99), (50, 60, (6 << 24) + 9, 4, 99);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, bytes INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INT, contextId INT, "
        "streamId INT, globalPid INT, graphId INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (400, 900, 0, 1, 7, 5 << 24, 12);");
    const bz_events *k = &t->event[BZ_EVENT_KERNEL];
    assert_int_equal(k->n, 3);
    assert_int_equal(k->cause[0], 0);
    assert_int_equal(k->cause[1], BZ_NONE); /* the same number in another process */
    assert_int_equal(k->end[1], 300);       /* an end before its start */
    assert_string_equal(bz_string(t, k->name[2]), "CUDA graph 12");
    assert_int_equal(k->graph[2], 12);
    assert_true(covers(t, BZ_COVERAGE_MISSING, "CUDA graphs were recorded as one row each"));
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "1 names are not in StringIds"));
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "1 events have a length below 0: they were repaired"));
    bz_trace_free(t);
}

/* Exchanges between processes are ranges of their thread, beside those that the program named. */
static void nsys_exchanges(void **state)
{
    (void)state;
    bz_trace *t = read_database(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (7, 'MPI_Send'), "
        "(8, "
        "'MPI_Allreduce');"
        "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INT, globalTid INT, text TEXT);"
        "INSERT INTO NVTX_EVENTS VALUES (10, 900, 59, (5 << 24) + 9, 'solve');"
        "CREATE TABLE MPI_P2P_EVENTS (start INTEGER, end INTEGER, globalTid INT, textId INT, commHandle INT, tag INT, "
        "remoteRank INT, size INT, requestHandle INT);"
        "INSERT INTO MPI_P2P_EVENTS VALUES (100, 200, (5 << 24) + 9, 7, 1, 0, 1, 4096, NULL);"
        "CREATE TABLE MPI_COLLECTIVES_EVENTS (start INTEGER, end INTEGER, globalTid INT, textId INT, commHandle INT, "
        "rootRank INT, size INT, recvSize INT);"
        "INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (300, 800, (5 << 24) + 9, 8, 1, NULL, 4096, 4096);");
    static const char *const NAMES[] = {"solve", "MPI_Send", "MPI_Allreduce"};
    const bz_events *e = &t->event[BZ_EVENT_RANGE];
    assert_int_equal(e->n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(bz_string(t, e->name[i]), NAMES[i]);
        assert_int_equal(e->lane[i], e->lane[0]);
    }
    assert_int_equal(e->end[2] - e->start[2], 500);
    bz_trace_free(t);
}

/* The same rows where SQLite's own library reads them, and where the pages are read: a column of real numbers is none that an
 * export has. Times that are none (NaN, which SQLite keeps as NULL) cost their events and no others. */
static void nsys_times_that_are_none(void **state)
{
    (void)state;
    static const char *const TYPES[] = {"INTEGER", "REAL"};
    for (int k = 0; k < 2; k++) {
        char sql[900];
        snprintf(
            sql, sizeof sql,
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (7, 'k');"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start %s, end %s, deviceId INT, contextId INT, streamId INT, "
            "globalPid INT, correlationId INT, demangledName INT, shortName INT);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1200, 0, 1, 7, 0, 3, 7, 7), "
            "(9e999 - 9e999, 1300, 0, 1, 7, 0, 4, 7, 7), (1400, 1350, 0, 1, 7, 0, 5, 7, 7), "
            "(1500, 1499, 0, 1, 7, 0, 6, 7, 7), (1600, 9e999 - 9e999, 0, 1, 7, 0, 7, 7, 7), "
            "(1700, 1800, 0, 1, 7, 0, 8, 7, 7);",
            TYPES[k], TYPES[k]);
        bz_trace *t = read_database(sql);
        const bz_events *e = &t->event[BZ_EVENT_KERNEL];
        assert_int_equal(e->n, 5);
        assert_int_equal(e->start[0], 1000);
        assert_int_equal(e->end[1], 1400);
        assert_int_equal(e->end[4], 1800);
        assert_true(covers(t, BZ_COVERAGE_BROKEN, "1 events carry no time and were left out"));
        assert_true(covers(t, BZ_COVERAGE_BROKEN, "2 events have a length below 0: they were repaired"));
        assert_true(covers(t, BZ_COVERAGE_NOTE, "1 ranges have no end"));
        bz_trace_free(t);
    }
}

/* Without one of the columns that name a stream, the others still keep devices apart. */
static void nsys_columns_of_streams_are_missing(void **state)
{
    (void)state;
    static const char *const COLUMN[] = {"deviceId", "contextId", "streamId", "globalPid"};
    static const uint32_t LANES[] = {3, 4, 4, 4}; /* the first two rows differ by their device alone */
    for (int missing = 0; missing < 4; missing++) {
        bz_buf sql = {0};
        bz_buf_puts(&sql, "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES "
                          "(7, 'k'); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, "
                          "demangledName INT, shortName INT, correlationId INT");
        for (int c = 0; c < 4; c++)
            if (c != missing)
                bz_buf_printf(&sql, ", %s INT", COLUMN[c]);
        bz_buf_puts(&sql, ");");
        static const long long ROW[4][4] = {
            {0, 1, 7, 5 << 24}, {1, 1, 7, 5 << 24}, {0, 1, 8, 6 << 24}, {1, 2, 8, 6 << 24}};
        for (int r = 0; r < 4; r++) {
            bz_buf_printf(&sql, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%d, %d, 7, 7, %d", r * 10, r * 10 + 5,
                          r);
            for (int c = 0; c < 4; c++)
                if (c != missing)
                    bz_buf_printf(&sql, ", %lld", ROW[r][c]);
            bz_buf_puts(&sql, ");");
        }
        bz_trace *t = read_database(bz_buf_text(&sql));
        char said[64];
        snprintf(said, sizeof said, "has no column %s", COLUMN[missing]);
        assert_true(covers(t, BZ_COVERAGE_MISSING, said));
        assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 4);
        assert_int_equal(t->n_lanes, LANES[missing]);
        bz_trace_free(t);
        bz_buf_free(&sql);
    }
}

static void nsys_views_are_not_trusted(void **state)
{
    (void)state;
    bz_trace *t = read_database("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
                                "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(start) AS (SELECT 1 UNION "
                                "ALL SELECT start + 1 FROM r) SELECT start FROM r;"
                                "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER);");
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 0);
    assert_true(covers(t, BZ_COVERAGE_MISSING, "CUPTI_ACTIVITY_KIND_RUNTIME has no column nameId"));
    assert_true(covers(t, BZ_COVERAGE_MISSING, "the file holds no event"));
    bz_trace_free(t);
}

/* A file that ends early: tables in front of the cut are read, the others are named. */
static void nsys_cut_off(void **state)
{
    (void)state;
    char *path = database("PRAGMA page_size = 512; CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
                          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, demangledName INT);"
                          "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, nameId INT);"
                          "INSERT INTO StringIds VALUES (1, 'k'), (2, 'cudaLaunchKernel');"
                          "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 500) INSERT INTO "
                          "CUPTI_ACTIVITY_KIND_KERNEL "
                          "SELECT i * 10, i * 10 + 5, 1 FROM s;"
                          "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 500) INSERT INTO "
                          "CUPTI_ACTIVITY_KIND_RUNTIME "
                          "SELECT i * 10, i * 10 + 5, 2 FROM s");
    struct stat st;
    bz_error err;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size * 3 / 4), 0);
    char beside[64];
    snprintf(beside, sizeof beside, "%s-wal", path);
    FILE *f = fopen(beside, "w");
    fputs("x", f);
    fclose(f);
    bz_trace *t = bz_trace_new();
    assert_int_equal(bz_profile_read(t, path, &err), 0);
    unlink(beside);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 500);
    assert_in_range(t->event[BZ_EVENT_API].n, 100, 499);
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "the file is cut off"));
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "table CUPTI_ACTIVITY_KIND_RUNTIME is damaged"));
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "a write-ahead log lies beside the file"));
    assert_true(t->source[0].truncated);
    bz_trace_free(t);
    /* without the list of tables nothing can be told */
    assert_int_equal(truncate(path, 300), 0);
    t = bz_trace_new();
    assert_int_equal(bz_profile_read(t, path, &err), -1);
    assert_non_null(strstr(err.text, "cut off"));
    bz_trace_free(t);
    unlink(path);
    free(path);
}

static void put_file(const char *folder, const char *name, const char *text, char path[256])
{
    snprintf(path, 256, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

/* A report goes through nsys, for which a script stands in here. */
static void nsys_reports(void **state)
{
    (void)state;
    char folder[] = "/tmp/benanza-test-XXXXXX", nsys[256], report[256];
    assert_non_null(mkdtemp(folder));
    put_file(folder, "it's a run.nsys-rep", "not documented", report);
    char *old = strdup(getenv("PATH")),
         *path = database("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
                          "INSERT INTO StringIds VALUES (1, 'k');"
                          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, name INT);"
                          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 1)");
    bz_error err;
    setenv("PATH", folder, 1);
    bz_trace *t = bz_trace_new();
    assert_int_equal(bz_profile_read(t, report, &err), -1);
    assert_non_null(strstr(err.text, "nsys is not installed here"));
    assert_non_null(strstr(err.text, "nsys export --type=sqlite -o profile.sqlite '/tmp/"));
    assert_non_null(strstr(err.text, "/it'\\''s a run.nsys-rep', and"));
    bz_trace_free(t);
    setenv("BENANZA_TEST_EXPORT", path, 1);
    put_file(folder, "nsys",
             "#!/bin/sh\n[ \"$1 $2 $3\" = 'export --type=sqlite -o' ] && [ -f \"$5\" ] && exec /bin/cp "
             "\"$BENANZA_TEST_EXPORT\" \"$4\"\nexit 3\n",
             nsys);
    t = bz_trace_new();
    if (bz_profile_read(t, report, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 1);
    assert_int_equal(t->n_sources, 1);
    assert_string_equal(bz_string(t, t->source[0].path), report); /* not the export, which is gone */
    assert_string_equal(bz_string(t, t->source[0].format), "Nsight Systems");
    bz_trace_free(t);
    put_file(folder, "nsys", "#!/bin/sh\nexit 3\n", nsys);
    t = bz_trace_new();
    assert_int_equal(bz_profile_read(t, report, &err), -1);
    assert_non_null(strstr(err.text, "nsys export failed"));
    bz_trace_free(t);
    setenv("PATH", old, 1);
    unlink(nsys);
    unlink(report);
    unlink(path);
    rmdir(folder);
    free(path);
    free(old);
}

static void nothing_that_is_known(void **state)
{
    (void)state;
    bz_error err;
    static const char *const TEXTS[] = {"", "hello", "{\"a\": 1}", "\x1f\x8b\x08garbage", "SQLite format 3"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        bz_trace *t = bz_trace_new();
        bz_stream *in = bz_stream_memory(TEXTS[i], strlen(TEXTS[i]));
        assert_int_equal(bz_profile_read_stream(t, in, NULL, &err), -1);
        assert_int_equal(err.code, BZ_BAD_INPUT);
        bz_stream_close(in);
        bz_trace_free(t);
    }
}

/* An address that no process has: the system says EIO. An end would be an empty file, "did the program end early?". */
static void what_the_system_cannot_read(void **state)
{
    (void)state;
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    assert_int_equal(bz_profile_read(t, "/proc/self/mem", &err), -1);
    assert_string_equal(err.text, "/proc/self/mem: cannot be read: Input/output error");
    bz_trace_free(t);
}

static void gzip_that_is_cut_off(void **state)
{
    (void)state;
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    gzFile z = gzopen(path, "wb");
    gzputs(z, "{\"traceEvents\":[");
    for (int i = 0; i < 5000; i++)
        gzprintf(z, "{\"ph\":\"X\",\"name\":\"%d\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1},",
                 (int)((unsigned)i * 2654435761u >> 1), i);
    gzclose(z);
    assert_int_equal(truncate(path, 20000), 0);
    bz_error err;
    bz_trace *t = bz_trace_new();
    assert_int_equal(bz_profile_read(t, path, &err), 0);
    assert_true(t->event[BZ_EVENT_RANGE].n > 100);
    assert_true(t->event[BZ_EVENT_RANGE].n < 5000);
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "damaged or cut off"));
    bz_trace_free(t);
    unlink(path);
}

/* Nothing but its end tells how long a text is: a window must not grow along with it. */
static void chrome_text_without_end(void **state)
{
    (void)state;
    enum { MB = 1 << 20, LENGTH = 140 };
    char path[] = "/tmp/benanza-test-XXXXXX", *part = malloc(MB);
    FILE *f = fdopen(mkstemp(path), "w");
    memset(part, 'a', MB);
    fputs("{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2},{\"name\":\"", f);
    for (int i = 0; i < LENGTH; i++)
        fwrite(part, MB, 1, f);
    fputs("\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":9,\"dur\":2}]}", f);
    fclose(f);
    free(part);
    bz_error err;
    bz_trace *t = bz_trace_new();
    assert_int_equal(bz_profile_read(t, path, &err), 0);
    assert_int_equal(t->event[BZ_EVENT_RANGE].n, 1);
    assert_true(t->source[0].truncated);
    assert_true(covers(t, BZ_COVERAGE_BROKEN, "a single text of more than 64 MB begins at byte 77"));
    bz_trace_free(t);
    unlink(path);
}

static void numbers_and_dates(void **state)
{
    (void)state;
    assert_int_equal(bz_text_nanoseconds("1212075548353.304", 17, 1000), INT64_C(1212075548353304));
    assert_int_equal(bz_text_nanoseconds("0.123", 5, 1000000), 123000);
    assert_int_equal(bz_text_nanoseconds("-1.5", 4, 1000), -1500);
    assert_int_equal(bz_text_nanoseconds("1e3", 3, 1000), 1000000);
    assert_int_equal(bz_text_nanoseconds("99999999999999999999", 20, 1000), 0);
    assert_int_equal(bz_text_date("1970-01-02T00:00:01.5", 21), INT64_C(86401500000000));
    assert_int_equal(bz_text_date("junk", 4), 0);
    for (int64_t second = 0; second < INT64_C(7000000000);
         second += 1234567) { /* until 2191, all months and leap days */
        char text[64];
        time_t t = second;
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.25", gmtime(&t));
        assert_int_equal(bz_text_date(text, strlen(text)), second * 1000000000 + 250000000);
    }
    assert_int_equal(bz_text_date("2019-09-29T01:02:8888888888", 27), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cudnn_nested_descriptors),
        cmocka_unit_test(cudnn_returns_and_messages_are_no_calls),
        cmocka_unit_test(cudnn_cut_off),
        cmocka_unit_test(cublas_mixed_threads),
        cmocka_unit_test(cublaslt_one_line),
        cmocka_unit_test(onednn_dialects),
        cmocka_unit_test(onednn_cut_off),
        cmocka_unit_test(onednn_stamps_of_3),
        cmocka_unit_test(onednn_names_of_tensors),
        cmocka_unit_test(chrome_of_pytorch),
        cmocka_unit_test(chrome_of_pytorch_without_kineto),
        cmocka_unit_test(chrome_of_onnx_runtime),
        cmocka_unit_test(chrome_tells_threads),
        cmocka_unit_test(chrome_of_others),
        cmocka_unit_test(chrome_spans_by_id),
        cmocka_unit_test(chrome_lines),
        cmocka_unit_test(chrome_of_mtia),
        cmocka_unit_test(chrome_of_any_device),
        cmocka_unit_test(chrome_names_with_a_zero),
        cmocka_unit_test(chrome_cut_off),
        cmocka_unit_test(chrome_text_without_end),
        cmocka_unit_test(lacks_keep_their_names),
        cmocka_unit_test(nsys_versions_and_gaps),
        cmocka_unit_test(nsys_exchanges),
        cmocka_unit_test(nsys_times_that_are_none),
        cmocka_unit_test(nsys_columns_of_streams_are_missing),
        cmocka_unit_test(hosts_are_not_named),
        cmocka_unit_test(databases_of_rocprofv3),
        cmocka_unit_test(failures_of_sqlite_are_told),
        cmocka_unit_test(nsys_views_are_not_trusted),
        cmocka_unit_test(nsys_cut_off),
        cmocka_unit_test(nsys_reports),
        cmocka_unit_test(nothing_that_is_known),
        cmocka_unit_test(gzip_that_is_cut_off),
        cmocka_unit_test(what_the_system_cannot_read),
        cmocka_unit_test(numbers_and_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
