/* Real recordings: the unchanged graph of every iteration takes what was measured. They lie outside of the tree; without them
 * the tests are skipped. */
#include "whatif/whatif.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static const char *const RECORDINGS[] = {
    "kineto/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz",
    "kineto/critical_path/cuda_event_sync/event_sync_trace.json.gz",
    "kineto/critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz",
    "kineto/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz",
    "kineto/resnet50_profiler_api_num_workers_0.json.gz",
    "nsys/h100_2gpu_1s.sqlite.gz",
    "nsys/mock.sqlite.gz",
    "v100/nsys/caffe2/24_b1.sqlite.gz",
    "v100/nsys/caffe2/2_b1.sqlite.gz",
    "v100/nsys/mxnet/17_b1.sqlite.gz",
    "v100/nsys/mxnet/17_b16.sqlite.gz",
    "v100/nsys/mxnet/24_b1.sqlite.gz",
    "v100/nsys/mxnet/27_b1.sqlite.gz",
    "v100/nsys/mxnet/2_b1.sqlite.gz",
    "v100/nsys/mxnet/4_b1.sqlite.gz",
    "v100/nsys/mxnet/6_b1.sqlite.gz",
    "v100/nsys/mxnet_tcu/17_b1.sqlite.gz",
    "v100/nsys/onnxruntime/24_b1.sqlite.gz",
    "v100/nsys/onnxruntime/25_b1.sqlite.gz",
};
enum { N_RECORDINGS = sizeof RECORDINGS / sizeof *RECORDINGS, MOST = 4096 };

static bz_trace *load(const char *name)
{
    char path[512];
    bz_error err;
    const char *root = getenv("BENANZA_SHARED");
    snprintf(path, sizeof path, "%s/%s", root && *root ? root : BENANZA_SOURCE "/../shared/data", name);
    if (access(path, R_OK)) {
        print_message("skipped: %s is not here\n", path);
        skip();
    }
    bz_trace *t = bz_trace_new();
    if (bz_profile_read(t, path, &err) || bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static double error_of(const bz_trace *t, uint32_t iteration, const char *name)
{
    bz_flow flow;
    bz_arena arena = {0};
    bz_error err;
    int64_t time = 0;
    if (bz_flow_make(t, iteration, &flow, &err) || bz_flow_time(&flow, &arena, NULL, &time, &err))
        fail_msg("%s: iteration %u: %s", name, iteration, err.text);
    double error = fabs((double)(time - flow.measured)) / (double)flow.measured;
    if (error > 0.03)
        print_message("%s: iteration %u of %u: measured %lld ns, simulated %lld ns, %.1f %%, %s\n", name, iteration,
                      t->n_iterations, (long long)flow.measured, (long long)time, 100 * error,
                      flow.overlaps ? "overlaps" : "alone");
    bz_flow_free(&flow);
    bz_arena_free(&arena);
    return error;
}

static int by_value(const void *a, const void *b)
{
    const double *p = a, *q = b;
    return *p < *q ? -1 : *p > *q;
}

static void identity(void **state)
{
    (void)state;
    static double error[MOST];
    size_t n = 0;
    for (size_t r = 0; r < N_RECORDINGS; r++) {
        bz_trace *t = load(RECORDINGS[r]);
        if (!t->n_iterations)
            error[n++] = error_of(t, BZ_NONE, RECORDINGS[r]);
        for (uint32_t i = 0; i < t->n_iterations && n < MOST; i++)
            error[n++] = error_of(t, i, RECORDINGS[r]);
        bz_trace_free(t);
    }
    qsort(error, n, sizeof *error, by_value);
    print_message("%zu iterations: median %.3f %%, worst %.3f %%\n", n, 100 * error[n / 2], 100 * error[n - 1]);
    assert_true(error[n / 2] <= 0.01);
    assert_true(error[n - 1] <= 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(identity)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
