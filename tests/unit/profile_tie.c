/* Logs beside a timeline that shows launches and kernels, but none of the library's calls, as CUPTI records it: each
 * kernel must find the call that asked for it. */
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static const int64_t SECOND = 1000000000, BEGIN = INT64_C(1700000000123456789);

typedef struct {
    bz_trace *t;
    uint32_t host, stream, cudnn, cublas;
    int64_t zone; /* of the logs' clocks */
    uint32_t correlation;
} run;

static run begin(int64_t zone, int64_t process)
{
    run r = {.t = bz_trace_new(), .zone = zone};
    uint32_t timeline = bz_trace_source(r.t, "timeline", "capture"), cudnn = bz_trace_source(r.t, "a", "cuDNN log"),
             cublas = bz_trace_source(r.t, "b", "cuBLAS log");
    r.t->source[cudnn].log = r.t->source[cublas].log = true;
    r.host = bz_trace_thread(r.t, timeline, process, 71);
    r.stream = bz_trace_stream(r.t, timeline, process, 0, 1, 7);
    r.cudnn = bz_trace_thread(r.t, cudnn, 70, 71);
    r.cublas = bz_trace_thread(r.t, cublas, 70, INT64_C(139715869128448)); /* as pthread_self tells */
    return r;
}

static void log_call(run *r, bz_library library, int64_t at, const char *name, const char *detail)
{
    bool cudnn = library == BZ_LIBRARY_CUDNN;
    int64_t tick = cudnn ? 1000 : SECOND;
    at = (at + r->zone) / tick * tick;
    bz_events *call = &r->t->event[BZ_EVENT_CALL];
    size_t i = bz_trace_add(r->t, BZ_EVENT_CALL, at, at, bz_trace_text(r->t, name), cudnn ? r->cudnn : r->cublas);
    bool executes = strstr(name, "Forward") || strstr(name, "gemm");
    call->library[i] = library;
    call->detail[i] = bz_trace_text(r->t, detail);
    call->flags[i] = BZ_CALL_LOGGED | BZ_CALL_UNTIMED | (executes ? BZ_CALL_EXECUTES : 0u);
}

static void launch(run *r, int64_t at, const char *kernel)
{
    bz_events *api = &r->t->event[BZ_EVENT_API], *k = &r->t->event[BZ_EVENT_KERNEL];
    size_t i = bz_trace_add(r->t, BZ_EVENT_API, at, at + 4000, bz_trace_text(r->t, "cudaLaunchKernel"), r->host);
    api->correlation[i] = ++r->correlation;
    i = bz_trace_add(r->t, BZ_EVENT_KERNEL, at + 9000, at + 10000, bz_trace_text(r->t, kernel), r->stream);
    k->correlation[i] = r->correlation;
}

/* convolution (two kernels), a framework's own, pooling, a product in two kernels, a setter */
static void iteration(run *r, int i)
{
    char detail[64];
    int64_t at = BEGIN + i * 300 * SECOND / 1000;
    snprintf(detail, sizeof detail, "iteration=%d", i);
    log_call(r, BZ_LIBRARY_CUDNN, at, "cudnnSetTensor4dDescriptor", "");
    log_call(r, BZ_LIBRARY_CUDNN, at + 2000, "cudnnConvolutionForward", detail);
    launch(r, at + 5000, "void cudnn::winograd::generateWinogradTilesKernel<0, float, float>(int)");
    launch(r, at + 15000, "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1");
    launch(r, at + 25000, "void at::native::vectorized_elementwise_kernel<4>(int)");
    log_call(r, BZ_LIBRARY_CUDNN, at + 32000, "cudnnPoolingForward", detail);
    launch(r, at + 35000, "void cudnn::detail::pooling_fw_4d_kernel<float>(int)");
    log_call(r, BZ_LIBRARY_CUBLAS, at + 45000, "cublasSgemm_v2", detail);
    launch(r, at + 50000, "volta_sgemm_32x32_sliced1x4_nn");
    launch(r, at + 60000, "void splitKreduce_kernel<float, float, float>(int)");
    launch(r, at + 70000, "my_own_kernel");
}

static void finish(run *r)
{
    bz_error err;
    if (bz_trace_finish(r->t, NULL, &err))
        fail_msg("%s", err.text);
}

static bool covers(const bz_trace *t, const char *part)
{
    for (uint32_t i = 0; i < t->n_coverage; i++)
        if (strstr(bz_string(t, t->coverage[i].text), part))
            return true;
    return false;
}

/* The function that a kernel is tied to, "" none. Its parameters are those of its own iteration. */
static const char *function_of(const bz_trace *t, size_t kernel, int expected)
{
    const bz_events *k = &t->event[BZ_EVENT_KERNEL], *call = &t->event[BZ_EVENT_CALL];
    uint32_t c = k->call[kernel];
    char value[16], wanted[16];
    if (c == BZ_NONE)
        return "";
    snprintf(wanted, sizeof wanted, "%d", expected);
    assert_true(bz_call_parameter(t, c, "iteration", value, sizeof value));
    assert_string_equal(value, wanted);
    assert_true(call->start[c] <= k->start[kernel]);
    return bz_string(t, call->name[c]);
}

static void every_kernel_finds_its_call(void **state)
{
    (void)state;
    static const char *const CALLS[] = {"cudnnConvolutionForward", "cudnnConvolutionForward", "", "cudnnPoolingForward",
                                        "cublasSgemm_v2",          "cublasSgemm_v2",          ""};
    /* UTC, Tokyo, Nepal, Hawaii */
    static const int64_t ZONES[] = {0, 9 * 3600, 5 * 3600 + 45 * 60, -10 * 3600};
    for (size_t z = 0; z < sizeof ZONES / sizeof *ZONES; z++) {
        run r = begin(ZONES[z] * SECOND, 70);
        for (int i = 0; i < 20; i++)
            iteration(&r, i);
        finish(&r);
        assert_int_equal(r.t->event[BZ_EVENT_KERNEL].n, 140);
        for (size_t k = 0; k < 140; k++)
            assert_string_equal(function_of(r.t, k, (int)k / 7), CALLS[k % 7]);
        assert_true(covers(r.t, "40 of 40 cudnn calls of the log were tied to their launches by thread and time: 60"));
        assert_true(covers(r.t, "20 of 20 cublas calls of the log were tied to their launches by order: 40"));
        bz_trace_free(r.t);
    }
}

/* Another program had the processor between each entry of the log and its launch. */
static void a_busy_machine_is_waited_for(void **state)
{
    (void)state;
    run r = begin((5 * 3600 + 45 * 60) * SECOND, 70);
    for (int i = 0; i < 4; i++) {
        char detail[64];
        int64_t at = BEGIN + i * 300 * SECOND / 1000;
        snprintf(detail, sizeof detail, "iteration=%d", i);
        log_call(&r, BZ_LIBRARY_CUDNN, at, "cudnnConvolutionForward", detail);
        launch(&r, at + 25000000, "void cudnn::winograd::generateWinogradTilesKernel<0, float, float>(int)");
    }
    finish(&r);
    for (size_t k = 0; k < 4; k++)
        assert_string_equal(function_of(r.t, k, (int)k), "cudnnConvolutionForward");
    bz_trace_free(r.t);
}

/* Two threads of the log and two of the timeline, whose numbers differ: by what they launch. */
static void threads_are_told_apart(void **state)
{
    (void)state;
    run r = begin(0, 70);
    run other = r;
    other.host = bz_trace_thread(r.t, 0, 70, 72);
    other.cublas = bz_trace_thread(r.t, 2, 70, INT64_C(139715869999999));
    for (int i = 0; i < 30; i++) {
        char detail[32];
        snprintf(detail, sizeof detail, "iteration=%d", i);
        run *at = i % 3 ? &r : &other;
        log_call(at, BZ_LIBRARY_CUBLAS, BEGIN + i * SECOND / 4, "cublasSgemm_v2", detail);
        launch(at, BEGIN + i * SECOND / 4 + 10000, "volta_sgemm_32x32_sliced1x4_nn");
        other.correlation = r.correlation = at->correlation;
    }
    finish(&r);
    for (size_t k = 0; k < 30; k++)
        assert_string_equal(function_of(r.t, k, (int)k), "cublasSgemm_v2");
    bz_trace_free(r.t);
}

/* One product too many in one second: what lies in it stays without, what lies elsewhere does not. */
static void what_cannot_be_told_is_counted(void **state)
{
    (void)state;
    run r = begin(0, 70);
    for (int i = 0; i < 20; i++)
        iteration(&r, i);
    launch(&r, BEGIN + 200 * SECOND / 1000, "volta_sgemm_128x64_nn");
    finish(&r);
    const bz_events *k = &r.t->event[BZ_EVENT_KERNEL], *call = &r.t->event[BZ_EVENT_CALL];
    size_t tied = 0;
    for (size_t i = 0; i < k->n; i++)
        tied += k->call[i] != BZ_NONE && call->library[k->call[i]] == BZ_LIBRARY_CUBLAS;
    assert_int_equal(tied, 2 * 17); /* three of the twenty are in the first second */
    assert_true(covers(r.t, "17 of 20 cublas calls"));
    bz_trace_free(r.t);
}

/* cuBLAS makes calls of cuBLASLt: the launch is of the outer one, and the inner ones are counted. */
static void no_launch_has_two_calls(void **state)
{
    (void)state;
    run r = begin(0, 70);
    for (int i = 0; i < 5; i++) {
        iteration(&r, i);
        log_call(&r, BZ_LIBRARY_CUBLASLT, BEGIN + i * 300 * SECOND / 1000 + 46000, "cublasLtMatmul_gemm", "");
    }
    finish(&r);
    assert_true(covers(r.t, "5 of 5 cublas calls of the log were tied"));
    assert_true(covers(r.t, "the timeline has no cublaslt call, and no launch that fits the log: its 5 calls"));
    bz_trace_free(r.t);
}

static void another_run_is_not_mixed_in(void **state)
{
    (void)state;
    run r = begin(0, 80);
    for (int i = 0; i < 5; i++)
        iteration(&r, i);
    finish(&r);
    for (size_t k = 0; k < r.t->event[BZ_EVENT_KERNEL].n; k++)
        assert_int_equal(r.t->event[BZ_EVENT_KERNEL].call[k], BZ_NONE);
    assert_true(covers(r.t, "the timeline has no cudnn call"));
    bz_trace_free(r.t);
}

static bz_trace *load(const char *name)
{
    const char *root = getenv("BENANZA_SHARED");
    char path[512];
    bz_error err;
    snprintf(path, sizeof path, "%s/v100/nsys/%s.sqlite.gz", root && *root ? root : BENANZA_SOURCE "/../shared/data",
             name);
    if (access(path, R_OK)) {
        print_message("skipped: %s is not here\n", path);
        skip();
    }
    bz_trace *t = bz_trace_new();
    if (bz_profile_read(t, path, &err))
        fail_msg("%s", err.text);
    return t;
}

static void to_log(bz_trace *t, bz_library library)
{
    bz_events *call = &t->event[BZ_EVENT_CALL];
    bool cudnn = library == BZ_LIBRARY_CUDNN;
    uint32_t source = bz_trace_source(t, "log", "log");
    int64_t tick = cudnn ? 1000 : SECOND;
    t->source[source].log = true;
    for (size_t i = 0; i < call->n; i++)
        if (call->library[i] == library) {
            bz_lane l = t->lane[call->lane[i]];
            call->start[i] = call->end[i] = (call->start[i] + 7200 * SECOND) / tick * tick;
            call->lane[i] = bz_trace_thread(t, source, l.process, l.thread + (cudnn ? 0 : INT64_C(140000000000000)));
            call->flags[i] |= BZ_CALL_UNTIMED | BZ_CALL_LOGGED;
        }
}

/* The n-th launch's call, as its number among the executing calls of the library, which tying does not change. */
static size_t numbers(const bz_trace *t, bz_library library, int64_t **out)
{
    const bz_events *k = &t->event[BZ_EVENT_KERNEL], *call = &t->event[BZ_EVENT_CALL];
    int64_t *number = calloc(call->n + 1, sizeof *number), n = 0;
    for (size_t i = 0; i < call->n; i++)
        number[i] = call->library[i] == library && call->flags[i] & BZ_CALL_EXECUTES ? n++ : -1;
    *out = calloc(k->n + 1, sizeof **out);
    for (size_t i = 0; i < k->n; i++)
        (*out)[i] = k->call[i] == BZ_NONE ? -1 : number[k->call[i]];
    free(number);
    return k->n;
}

static void as_recorded(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t kernels[2]; /* that Nsight Systems shows inside of a call of cuDNN's, of cuBLAS's */
    } FILES[] = {
        {"mxnet/17_b1", {1130, 10}},     {"mxnet/17_b16", {1650, 10}}, {"mxnet/2_b1", {210, 40}},
        {"mxnet/4_b1", {1640, 10}},      {"mxnet/6_b1", {1930, 0}},    {"mxnet/24_b1", {660, 0}},
        {"mxnet/27_b1", {440, 40}},      {"caffe2/2_b1", {230, 60}},   {"caffe2/24_b1", {640, 0}},
        {"onnxruntime/24_b1", {560, 0}},
    };
    static const bz_library LIBRARIES[] = {BZ_LIBRARY_CUDNN, BZ_LIBRARY_CUBLAS};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        bz_trace *truth = load(FILES[i].name), *t = load(FILES[i].name);
        bz_error err;
        to_log(t, BZ_LIBRARY_CUDNN);
        to_log(t, BZ_LIBRARY_CUBLAS);
        if (bz_trace_finish(truth, NULL, &err) || bz_trace_finish(t, NULL, &err))
            fail_msg("%s", err.text);
        for (size_t l = 0; l < 2; l++) {
            int64_t *a, *b;
            size_t n = numbers(truth, LIBRARIES[l], &a), belong = 0;
            assert_int_equal(numbers(t, LIBRARIES[l], &b), n);
            for (size_t k = 0; k < n; k++) {
                belong += a[k] >= 0;
                if (a[k] != b[k])
                    fail_msg("%s: kernel %zu is of %s call %lld, not of %lld", FILES[i].name, k,
                             bz_library_name(LIBRARIES[l]), (long long)a[k], (long long)b[k]);
            }
            assert_int_equal(belong, FILES[i].kernels[l]);
            free(a);
            free(b);
        }
        bz_trace_free(truth);
        bz_trace_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_finds_its_call),    cmocka_unit_test(threads_are_told_apart),
        cmocka_unit_test(what_cannot_be_told_is_counted), cmocka_unit_test(no_launch_has_two_calls),
        cmocka_unit_test(another_run_is_not_mixed_in),    cmocka_unit_test(as_recorded),
        cmocka_unit_test(a_busy_machine_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
