/* Real recordings: counts, iterations, algorithms, times. They lie outside of the tree; without them the tests are
 * skipped. */
#include "profile/profile.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static const char *shared(const char *name, char out[512])
{
    const char *root = getenv("BENANZA_SHARED");
    snprintf(out, 512, "%s/%s", root && *root ? root : BENANZA_SOURCE "/../shared/data", name);
    if (access(out, R_OK)) {
        print_message("skipped: %s is not here\n", out);
        skip();
    }
    return out;
}

static bz_trace *load_three(const char *name, const char *log, const char *second_log)
{
    char path[3][512];
    bz_error err;
    const char *names[] = {name, log, second_log};
    for (int i = 0; i < 3 && names[i]; i++)
        shared(names[i], path[i]); /* does not come back where it skips */
    bz_trace *t = bz_trace_new();
    for (int i = 0; i < 3 && names[i]; i++)
        if (bz_profile_read(t, path[i], &err))
            fail_msg("%s", err.text);
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static bz_trace *load(const char *name, const char *log)
{
    return load_three(name, log, NULL);
}

static bool covers(const bz_trace *t, const char *part)
{
    for (uint32_t i = 0; i < t->n_coverage; i++)
        if (strstr(bz_string(t, t->coverage[i].text), part))
            return true;
    return false;
}

static void iterations_and_kernels(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t iterations;
        int64_t kernels; /* per steady iteration */
    } FILES[] = {
        {"caffe2/24_b1", 10, 94},
        {"caffe2/2_b1", 10, 41},
        {"mxnet/17_b1", 10, 288},
        {"mxnet/17_b16", 10, 340},
        {"mxnet/24_b1", 10, 139},
        {"mxnet/27_b1", 10, 89},
        {"mxnet/2_b1", 10, 53},
        {"mxnet/4_b1", 10, 337},
        {"mxnet/6_b1", 10, 918},
        {"onnxruntime/24_b1", 10, 90},
        /* recorded with one timed iteration: every kernel that has a partner has exactly one */
        {"mxnet_tcu/17_b1", 2, 312},
    };
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        char name[128];
        snprintf(name, sizeof name, "v100/nsys/%s.sqlite.gz", FILES[i].name);
        bz_trace *t = load(name, NULL);
        if (t->n_iterations != FILES[i].iterations)
            fail_msg("%s: %u iterations", name, t->n_iterations);
        assert_int_equal(t->origin, BZ_ITERATION_DETECTED);
        for (uint32_t k = 0; k < t->n_iterations; k++) {
            bz_iteration_stats s;
            assert_int_equal(t->iteration[k].warm_up, k == 0);
            bz_iteration_measure(t, k, &s);
            if (k && s.kernels != FILES[i].kernels)
                fail_msg("%s: iteration %u has %lld kernels", name, k, (long long)s.kernels);
            assert_true(s.device_busy <= s.latency && s.device_busy <= s.kernel_time + s.copy_time + s.latency);
        }
        bz_trace_free(t);
    }
}

/* The published figures are the time of all kernels of the file over its ten iterations, set-up included and
 * streams not overlapped. A steady iteration keeps the device busy for less. (Of MobileNet-v2 there is a figure, 1.667 ms,
 * but no recording: 24 is SqueezeNet.) */
static void kernel_time(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double ms, busy;
    } FILES[] = {{"mxnet/2_b1", 1.003, 0.829}, {"mxnet/17_b1", 3.777, 3.73}, {"mxnet/27_b1", 3.341, 3.26}};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        char name[128];
        snprintf(name, sizeof name, "v100/nsys/%s.sqlite.gz", FILES[i].name);
        bz_trace *t = load(name, NULL);
        double sum = (double)bz_trace_kernel_time(t) / 1e6 / t->n_iterations;
        if (sum < FILES[i].ms * 0.99 || sum > FILES[i].ms * 1.01)
            fail_msg("%s: %.3f ms of kernels per iteration", name, sum);
        for (uint32_t k = 1; k < t->n_iterations; k++) {
            bz_iteration_stats steady;
            bz_iteration_measure(t, k, &steady);
            if ((double)steady.device_busy / 1e6 < FILES[i].busy * 0.96 ||
                (double)steady.device_busy / 1e6 > FILES[i].busy * 1.04)
                fail_msg("%s: iteration %u keeps the device busy for %.3f ms", name, k,
                         (double)steady.device_busy / 1e6);
        }
        bz_trace_free(t);
    }
}

/* ResNet-50: 27, 10 and 16 convolutions by algorithm, from the log and from the kernels; 53 pads. */
static void algorithms(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM",
                                        "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM",
                                        "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD"};
    static const int EXPECTED[] = {27, 10, 16};
    bz_trace *t = load("v100/nsys/mxnet/17_b1.sqlite.gz", "v100/cudnn_log/mxnet/17_b1.log.gz");
    const bz_events *call = &t->event[BZ_EVENT_CALL], *kernel = &t->event[BZ_EVENT_KERNEL];
    assert_true(covers(t, "870 of 870 cudnn calls of the timeline got their parameters"));
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        int logged[3] = {0}, ran[3] = {0}, pads = 0;
        for (size_t c = 0; c < call->n; c++)
            for (int a = 0; a < 3; a++)
                if (bz_event_iteration(t, BZ_EVENT_CALL, c) == i && call->flags[c] & BZ_CALL_LOGGED &&
                    !strcmp(bz_string(t, call->variant[c]), NAMES[a]))
                    logged[a]++;
        for (size_t k = 0; k < kernel->n; k++) {
            if (bz_event_iteration(t, BZ_EVENT_KERNEL, k) != i)
                continue;
            const char *name = bz_string(t, kernel->short_name[k]), *algorithm = bz_kernel_of(t, k)->algorithm;
            pads += !strcmp(name, "image_2d_pad_constant_kernel");
            for (int a = 0; algorithm && a < 3; a++)
                if (!strcmp(algorithm, NAMES[a])) {
                    ran[a]++;
                    /* and each kernel belongs to the call that asked for it */
                    assert_int_not_equal(kernel->call[k], BZ_NONE);
                    assert_string_equal(bz_string(t, call->variant[kernel->call[k]]), algorithm);
                }
        }
        assert_int_equal(pads, 53);
        for (int a = 0; a < 3; a++) {
            assert_int_equal(logged[a], EXPECTED[a]);
            assert_int_equal(ran[a], EXPECTED[a]);
        }
    }
    /* a convolution by its parameters */
    char value[64];
    size_t c = 0;
    while (c < call->n &&
           !(call->flags[c] & BZ_CALL_LOGGED && !strcmp(bz_string(t, call->name[c]), "cudnnConvolutionForward")))
        c++;
    assert_true(c < call->n);
    assert_true(bz_call_parameter(t, c, "wDesc.dimA", value, sizeof value));
    assert_string_equal(value, "[64,3,7,7]");
    bz_trace_free(t);
}

static void logs_and_timelines(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"mxnet/2_b1",  "mxnet/4_b1",  "mxnet/6_b1",  "mxnet/24_b1",
                                        "mxnet/27_b1", "caffe2/2_b1", "caffe2/24_b1"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char nsys[128], log[128];
        snprintf(nsys, sizeof nsys, "v100/nsys/%s.sqlite.gz", NAMES[i]);
        snprintf(log, sizeof log, "v100/cudnn_log/%s.log.gz", NAMES[i]);
        bz_trace *t = load(nsys, log);
        const bz_events *call = &t->event[BZ_EVENT_CALL];
        size_t executing = 0, logged = 0;
        for (size_t c = 0; c < call->n; c++)
            if (call->library[c] == BZ_LIBRARY_CUDNN && call->flags[c] & BZ_CALL_EXECUTES) {
                executing++;
                logged += (call->flags[c] & BZ_CALL_LOGGED) != 0;
                /* what the log says is what the kernels say */
                if (call->flags[c] & BZ_CALL_LOGGED && !strcmp(bz_string(t, call->name[c]), "cudnnConvolutionForward"))
                    assert_int_not_equal(call->variant[c], 0);
            }
        assert_true(executing > 0);
        assert_int_equal(logged, executing);
        bz_trace_free(t);
    }
}

/* Kernels that lie inside of a library's call, and those of them whose call has its parameters: all of which there is a
 * log (of two files there is none of cuBLAS). Kernels that the framework launches by itself belong to no call. */
static void kernels_have_the_parameters_of_their_calls(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool cublas;                  /* there is a log of it, too */
        size_t kernels, belong, with; /* all; to a library's call; that has parameters */
    } FILES[] = {
        {"mxnet/2_b1", true, 546, 250, 250},     {"mxnet/4_b1", false, 3486, 1650, 1640},
        {"mxnet/6_b1", false, 9786, 1930, 1930}, {"mxnet/17_b1", true, 3073, 1140, 1140},
        {"mxnet/24_b1", false, 1442, 660, 660},  {"mxnet/27_b1", false, 922, 480, 440},
        {"caffe2/2_b1", true, 413, 290, 290},    {"caffe2/24_b1", true, 940, 640, 640},
    };
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        char nsys[128], cudnn[128], cublas[128];
        snprintf(nsys, sizeof nsys, "v100/nsys/%s.sqlite.gz", FILES[i].name);
        snprintf(cudnn, sizeof cudnn, "v100/cudnn_log/%s.log.gz", FILES[i].name);
        snprintf(cublas, sizeof cublas, "v100/cublas_log/%s.log.gz", FILES[i].name);
        bz_trace *t = load_three(nsys, cudnn, FILES[i].cublas ? cublas : NULL);
        const bz_events *call = &t->event[BZ_EVENT_CALL], *k = &t->event[BZ_EVENT_KERNEL];
        size_t belong = 0, with = 0;
        for (size_t n = 0; n < k->n; n++) {
            belong += k->call[n] != BZ_NONE;
            with += k->call[n] != BZ_NONE && *bz_string(t, call->detail[k->call[n]]);
        }
        if (k->n != FILES[i].kernels || belong != FILES[i].belong || with != FILES[i].with)
            fail_msg("%s: of %zu kernels %zu belong to a call, %zu with parameters", FILES[i].name, k->n, belong, with);
        bz_trace_free(t);
    }
}

/* The logs hold two iterations, with all that cuDNN tried in the first: ninety per cent of the products. Those of the
 * timeline are the dense layers'. */
static void products_of_an_iteration(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int n;
        const char *m[3], *k[3];
    } FILES[] = {
        {"mxnet/2_b1", 3, {"4096", "4096", "1000"}, {"9216", "4096", "4096"}},
        {"mxnet/17_b1", 1, {"1000"}, {"2048"}},
    };
    for (size_t f = 0; f < sizeof FILES / sizeof *FILES; f++) {
        char nsys[128], cublas[128], value[32];
        snprintf(nsys, sizeof nsys, "v100/nsys/%s.sqlite.gz", FILES[f].name);
        snprintf(cublas, sizeof cublas, "v100/cublas_log/%s.log.gz", FILES[f].name);
        bz_trace *t = load(nsys, cublas);
        const bz_events *call = &t->event[BZ_EVENT_CALL];
        int n = 0;
        for (size_t i = 0; i < call->n; i++) {
            if (call->library[i] != BZ_LIBRARY_CUBLAS || !(call->flags[i] & BZ_CALL_EXECUTES))
                continue;
            assert_true(bz_call_parameter(t, i, "m", value, sizeof value));
            assert_string_equal(value, FILES[f].m[n % FILES[f].n]);
            assert_true(bz_call_parameter(t, i, "k", value, sizeof value));
            assert_string_equal(value, FILES[f].k[n % FILES[f].n]);
            n++;
        }
        assert_int_equal(n, 10 * FILES[f].n);
        bz_trace_free(t);
    }
}

static void no_kernels(void **state)
{
    (void)state;
    bz_trace *t = load("v100/nsys/onnxruntime/25_b1.sqlite.gz", NULL);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 0);
    assert_int_equal(t->event[BZ_EVENT_API].n, 210);
    assert_true(covers(t, "no kernel was recorded"));
    bz_trace_free(t);
}

/* Rows of every table as SQLite counts them. */
static void counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n[BZ_EVENT_KINDS]; /* range, op, call, api, kernel, copy, memset, sync, overhead */
    } FILES[] = {
        {"v100/nsys/mxnet/17_b1.sqlite.gz", {0, 0, 930, 6340, 3073, 312, 8, 533, 5}},
        {"v100/nsys/caffe2/2_b1.sqlite.gz", {0, 0, 284, 1807, 413, 81, 38, 594, 5}},
        {"nsys/h100_2gpu_1s.sqlite.gz", {16782, 0, 0, 5796, 3442, 904, 22, 244, 198}},
        {"nsys/mock.sqlite.gz", {0, 0, 0, 9, 2, 1, 0, 1, 31}},
        {"kineto/resnet50_profiler_api_num_workers_0.json.gz", {3, 33384, 0, 10920, 9564, 12, 439, 0, 0}},
        {"kineto/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz",
         {11, 359, 0, 361, 79, 16, 3, 41, 0}},
        {"kineto/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz",
         {11, 359, 0, 331, 79, 16, 3, 41, 0}},
        {"kineto/critical_path/cuda_event_sync/event_sync_trace.json.gz", {4, 10, 0, 12, 4, 1, 0, 4, 0}},
        {"kineto/critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz", {3, 6, 0, 39, 3, 0, 3, 5, 0}},
        {"kineto/critical_path/end_to_end/simple_add/output/overlaid_critical_path_trace.json.gz",
         {11, 359, 0, 331, 79, 16, 3, 41, 0}},
        {"kineto/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", {14, 4, 0, 0, 0, 0, 0, 0, 0}},
        {"v100/cudnn_log/mxnet/17_b1.log.gz", {0, 0, 1939, 0, 0, 0, 0, 0, 0}},
        {"v100/cudnn_log/mxnet_tcu/17_b1.log.gz", {0, 0, 2943, 0, 0, 0, 0, 0, 0}},
        {"v100/cublas_log/caffe2/2_b1.log.gz", {0, 0, 55, 0, 0, 0, 0, 0, 0}},
        {"v100/cublas_log/mxnet/17_b1.log.gz", {0, 0, 1270, 0, 0, 0, 0, 0, 0}},
        {"nvidia_logs/cublas_13.1_nogpu.log", {0, 0, 1, 0, 0, 0, 0, 0, 0}},
        {"nvidia_logs/cudnn_9.19_descriptors_nogpu.log", {0, 0, 28, 0, 0, 0, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        bz_trace *t = load(FILES[i].name, NULL);
        for (int k = 0; k < BZ_EVENT_KINDS; k++)
            if (t->event[k].n != FILES[i].n[k])
                fail_msg("%s: %zu %s events", FILES[i].name, t->event[k].n, bz_event_kind_name((bz_event_kind)k));
        bz_trace_free(t);
    }
}

/* PyTorch: every kernel that has a launch lies under the operator that launched it. */
static void operators(void **state)
{
    (void)state;
    bz_trace *t = load("kineto/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz", NULL);
    const bz_events *k = &t->event[BZ_EVENT_KERNEL], *api = &t->event[BZ_EVENT_API], *op = &t->event[BZ_EVENT_OP];
    size_t under = 0;
    for (size_t i = 0; i < k->n; i++) {
        assert_int_not_equal(k->cause[i], BZ_NONE);
        assert_int_equal(api->correlation[k->cause[i]], k->correlation[i]);
        assert_true(k->start[i] >= api->start[k->cause[i]]);
        if (k->op[i] != BZ_NONE) {
            under++;
            assert_true(op->start[k->op[i]] <= api->start[k->cause[i]] && op->end[k->op[i]] >= api->end[k->cause[i]]);
        }
    }
    assert_true(under > k->n / 2);
    bz_trace_free(t);
}

/* What a summary does not read, it does not tell. */
static void summaries(void **state)
{
    (void)state;
    static const char *const FILES[] = {"v100/nsys/mxnet/17_b1.sqlite.gz", "v100/nsys/onnxruntime/24_b1.sqlite.gz",
                                        "nsys/h100_2gpu_1s.sqlite.gz",
                                        "kineto/resnet50_profiler_api_num_workers_0.json.gz"};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        bz_trace *all = load(FILES[i], NULL), *t = bz_trace_new();
        bz_buf text[2] = {{0}, {0}}, json[2] = {{0}, {0}};
        char path[512];
        bz_error err;
        t->summary = true;
        if (bz_profile_read(t, shared(FILES[i], path), &err) || bz_trace_finish(t, NULL, &err))
            fail_msg("%s", err.text);
        bz_trace_print(all, 1000, &text[0]);
        bz_trace_print(t, 1000, &text[1]);
        bz_trace_json(all, 1000, &json[0]);
        bz_trace_json(t, 1000, &json[1]);
        assert_string_equal(bz_buf_text(&text[0]), bz_buf_text(&text[1]));
        assert_string_equal(bz_buf_text(&json[0]), bz_buf_text(&json[1]));
        for (int k = 0; k < 2; k++) {
            bz_buf_free(&text[k]);
            bz_buf_free(&json[k]);
        }
        bz_trace_free(t);
        bz_trace_free(all);
    }
}

/* The steps of PyTorch's schedule, which its older traces tell as operators. */
static void steps_are_iterations(void **state)
{
    (void)state;
    static const int64_t TOOK[] = {159174, 150790, 141346, 160963, 148485, 167712}; /* microseconds, by jq */
    bz_trace *t = load("kineto/resnet50_profiler_api_num_workers_0.json.gz", NULL);
    assert_int_equal(t->n_iterations, 6);
    assert_int_equal(t->origin, BZ_ITERATION_RANGE);
    for (uint32_t i = 0; i < 6; i++) {
        bz_iteration_stats s;
        bz_iteration_measure(t, i, &s);
        assert_int_equal(s.latency, TOOK[i] * 1000);
        /* in the first ran 708 that were launched before the recording began */
        assert_int_equal(s.kernels, i ? 1476 : 1476 + 708);
    }
    bz_trace_free(t);
}

/* The names of the hosts that others recorded on are not in what we write. */
static void hosts_are_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *file, *host;
    } FILES[] = {{"nsys/h100_2gpu_1s.sqlite.gz", "modal"}, {"nsys/mock.sqlite.gz", "DESKTOP-KBEMEQS"}};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        bz_error err;
        bz_buf written = {0};
        char path[] = "/tmp/benanza-test-XXXXXX", block[1 << 16];
        close(mkstemp(path));
        bz_trace *t = load(FILES[i].file, NULL);
        assert_int_equal(bz_trace_save(t, path, &err), 0);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        for (size_t n; (n = fread(block, 1, sizeof block, f));)
            bz_buf_put(&written, block, n);
        fclose(f);
        unlink(path);
        assert_true(written.len > 4096);
        assert_null(memmem(written.data, written.len, FILES[i].host, strlen(FILES[i].host)));
        bz_buf_free(&written);
        bz_trace_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iterations_and_kernels),
        cmocka_unit_test(kernel_time),
        cmocka_unit_test(algorithms),
        cmocka_unit_test(logs_and_timelines),
        cmocka_unit_test(kernels_have_the_parameters_of_their_calls),
        cmocka_unit_test(products_of_an_iteration),
        cmocka_unit_test(no_kernels),
        cmocka_unit_test(counts),
        cmocka_unit_test(operators),
        cmocka_unit_test(summaries),
        cmocka_unit_test(steps_are_iterations),
        cmocka_unit_test(hosts_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
