/* Half precision by records: what a convolution on matrix units brings along for its host. */
#include "explain_trace.h"
#include "whatif/whatif.h"

#include "perfdb_test.h"
#include "whatif_ask.h"

static const char SYSTEM[] = "there@cudnn1", DETAILS[] = "{\"device\":\"gpu\"}",
                  CONV[] = "conv x=1x8x8x8 w=8x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=";

static int64_t newer = 1700000000;

static void store(bz_perfdb *db, const char *dtype, const char *layout, const char *math, double seconds)
{
    char problem[160];
    snprintf(problem, sizeof problem, "%s%s", CONV, dtype);
    bz_record r = bz_record_blank();
    r.system = SYSTEM;
    r.problem = problem;
    r.variant = (bz_variant){"cudnn", "gemm", layout, math};
    r.setting = (bz_setting){1, BZ_CACHE_HOT, ""};
    r.median = r.q25 = r.q75 = r.min = r.max = r.low = r.high = seconds;
    r.n = r.iterations = 10;
    r.timing = BZ_TIMING_WALL;
    r.date = newer++;
    assert_ok(bz_perfdb_put(db, &r, 1, NULL, &err));
}

/* Launches of an iteration with one convolution, in 16 bits. */
static uint32_t launches(const bz_whatif_records *records, const bz_trace *t, const char *text, bz_arena *arena)
{
    bz_flow f = {.main = 0, .launch_cost = 10000};
    bz_whatif_asked asked;
    bz_flow_add_lane(&f, "cpu", false, false);
    bz_flow_add_lane(&f, "gpu", true, false);
    uint32_t launch = bz_flow_add(&f, BZ_TASK_HOST, "launch", 0, 10000, 0),
             kernel = bz_flow_add(&f, BZ_TASK_KERNEL, "conv", 1, 40000, 0), n = 0;
    f.task[kernel].call = 0;
    bz_flow_depend(&f, launch, kernel, BZ_DEPENDS_LAUNCH, 10000);
    assert_ok(bz_whatif_parse(text, arena, &asked, &err));
    asked.side = 1;
    asked.trace = t;
    asked.records = records;
    assert_true((asked.err = &err, asked.row->apply(&f, &asked)) > 0);
    assert_int_equal(f.task[kernel].duration, 10000); /* as the records stand */
    for (uint32_t i = 0; i < f.n; i++)
        n += f.task[i].kind == BZ_TASK_HOST;
    bz_flow_free(&f);
    return n;
}

static void test_conversions(void **state)
{
    static const event EVENTS[] = {{BZ_EVENT_CALL,
                                    "convolution|src=f32::blocked:abcd:f0 wei=f32::blocked:abcd:f0 "
                                    "dst=f32::blocked:abcd:f0 problem=mb1_ic8oc8_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1",
                                    10, 50}};
    bz_trace *t = trace_of(EVENTS, 1);
    bz_perfdb *db;
    bz_arena arena = {0};
    bz_whatif_records r = {.name = "records of there", .setting = {1, BZ_CACHE_HOT, ""}};
    assert_ok(bz_perfdb_open(&db, *state, &(bz_perfdb_options){0}, &err));
    assert_ok(bz_perfdb_put_system(db, SYSTEM, DETAILS, 1700000000, &err));
    r.db = db;
    store(db, "f32", "plain", "default", 40e-6);
    store(db, "f16", "plain", "default", 10e-6);
    store(db, "f16", "plain", "tensor", 20e-6);
    assert_ok(bz_perfdb_known(db, "there", &r.system, &err));
    assert_int_equal(launches(&r, t, "half-precision", &arena), 1); /* its best does not use them */
    store(db, "f16", "plain", "default", 30e-6);
    store(db, "f16", "plain", "tensor", 10e-6);
    assert_int_equal(launches(&r, t, "half-precision", &arena), 2);
    assert_int_equal(launches(&r, t, "half-precision:conversions=0", &arena), 1);
    store(db, "f16", "nhwc", "tensor", 10e-6);
    store(db, "f16", "plain", "tensor", 15e-6);
    assert_int_equal(launches(&r, t, "half-precision", &arena), 1); /* tensors lie as it wants them */
    bz_perfdb_close(db);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* Where products are in 16 bits already, so are the kernels around them whose names do not say so. */
static void test_done(void **state)
{
    static const event EVENTS[] = {{BZ_EVENT_KERNEL, "volta_h884gemm_64x64_ldg8_nn", 10, 300},
                                   {BZ_EVENT_KERNEL, "volta_sgemm_128x64_nn", 300, 400},
                                   {BZ_EVENT_KERNEL, "mxnet_generic_kernel", 400, 800}};
    (void)state;
    for (int low = 0; low < 2; low++) {
        bz_trace *t = trace_of(&EVENTS[low ? 0 : 1], low ? 3 : 2);
        bz_arena arena = {0};
        bz_whatif w;
        assert_int_equal(whatif_ask(t, 0, "half-precision", &arena, &w).changed, low ? 0 : 2);
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
}

/* How many kernels a change changes, what those of an iteration take then, and why it does not apply. */
static int changed(const char *gpu, const char *kernel, const char *how, double *ms, char *why, size_t size)
{
    const event EVENTS[] = {{BZ_EVENT_KERNEL, kernel, 10, 810}, {BZ_EVENT_KERNEL, "relu", 810, 1000}};
    bz_trace *t = trace_of(EVENTS, 2);
    bz_arena arena = {0};
    bz_flow flow;
    bz_whatif_asked asked;
    if (gpu)
        bz_trace_fact(t, "gpu", gpu);
    assert_ok(bz_flow_make(t, 0, &flow, &err) || bz_whatif_parse(how, &arena, &asked, &err));
    asked.side = 1;
    asked.trace = t;
    asked.arena = &arena;
    int n = (asked.err = &err, asked.row->apply(&flow, &asked));
    *ms = 0;
    for (uint32_t i = 0; i < flow.n; i++)
        *ms += flow.task[i].kind == BZ_TASK_KERNEL ? 1e-6 * (double)flow.task[i].duration : 0;
    snprintf(why, size, "%s", asked.because ? asked.because : "");
    bz_flow_free(&flow);
    bz_trace_free(t);
    bz_arena_free(&arena);
    return n;
}

/* Products of f32 by what the data sheet says of TF32: an A100 does 156 for 19.5, a 3090 as much as in f32, a V100 has none. */
static void test_tf32(void **state)
{
    static const char PLAIN[] = "ampere_sgemm_128x64_nn",
                      DONE[] = "cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4",
                      LOW[] = "volta_h884gemm_64x64_ldg8_nn";
    char why[200];
    double ms;
    (void)state;
    assert_int_equal(changed("NVIDIA A100-SXM4-40GB", PLAIN, "tf32", &ms, why, sizeof why), 1);
    assert_true(fabs(ms - 0.39) < 1e-6);
    assert_int_equal(changed("NVIDIA GeForce RTX 3090", PLAIN, "tf32", &ms, why, sizeof why), 1);
    assert_true(fabs(ms - 0.99) < 1e-6);
    assert_int_equal(changed("Tesla V100-SXM2-16GB", PLAIN, "tf32", &ms, why, sizeof why), 0);
    assert_non_null(strstr(why, "has no TF32"));
    assert_int_equal(changed(NULL, PLAIN, "tf32", &ms, why, sizeof why), 0);
    assert_non_null(strstr(why, "no data sheet"));
    assert_int_equal(changed(NULL, PLAIN, "tf32:compute=2", &ms, why, sizeof why), 1);
    assert_true(fabs(ms - 0.59) < 1e-6);
    assert_int_equal(changed("NVIDIA A100-SXM4-40GB", DONE, "tf32", &ms, why, sizeof why), 0);
    assert_non_null(strstr(why, "already"));
    assert_int_equal(changed("NVIDIA A100-SXM4-40GB", LOW, "tf32", &ms, why, sizeof why), 0);
    /* of TF32 to 16 bits there is still something to gain */
    assert_int_equal(changed("NVIDIA A100-SXM4-40GB", DONE, "half-precision", &ms, why, sizeof why), 2);
}

/* Products by what the data sheet says of 16 bits: an A100 does 312 for 19.5 in f32, of which 0.3 are likely; from TF32 less. No sheet: a third. */
static void test_half(void **state)
{
    static const char PLAIN[] = "ampere_sgemm_128x64_nn",
                      TF32[] = "cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4";
    char why[200];
    double ms, relu = 0.19 / 2;
    (void)state;
    assert_int_equal(changed("NVIDIA A100-SXM4-40GB", PLAIN, "half-precision", &ms, why, sizeof why), 2);
    assert_true(fabs(ms - relu - 0.8 / (0.3 * 16)) < 1e-6);
    assert_int_equal(changed("NVIDIA A100-SXM4-40GB", TF32, "half-precision", &ms, why, sizeof why), 2);
    assert_true(fabs(ms - relu - 0.8 / (0.3 * 16 / (0.5 * 8))) < 1e-6);
    assert_int_equal(changed("NVIDIA A100-SXM4-40GB", TF32, "half-precision:compute=2", &ms, why, sizeof why), 2);
    assert_true(fabs(ms - relu - 0.4) < 1e-6);
    assert_int_equal(changed(NULL, PLAIN, "half-precision", &ms, why, sizeof why), 2);
    assert_true(fabs(ms - relu - 0.8 / 3) < 1e-6);
}

/* 16 bits come instead of TF32, and not on top of it. */
static void test_once(void **state)
{
    static const event EVENTS[] = {{BZ_EVENT_KERNEL, "ampere_sgemm_128x64_nn", 10, 810}};
    static const char *const CHANGES[2][2] = {{"half-precision:compute=3", "tf32:compute=2"},
                                              {"tf32:compute=2", "half-precision:compute=3"}};
    static const char *const WHY[2] = {"compute in 16 bits by a change before it", "compute in TF32 by"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        bz_trace *t = trace_of(EVENTS, 1);
        bz_arena arena = {0};
        bz_flow flow;
        bz_whatif w;
        bz_whatif_asked asked[2];
        assert_ok(bz_flow_make(t, 0, &flow, &err) || bz_whatif_begin(&flow, &arena, &w, &err) ||
                  bz_whatif_parse(CHANGES[k][0], &arena, &asked[0], &err) ||
                  bz_whatif_parse(CHANGES[k][1], &arena, &asked[1], &err) ||
                  bz_whatif_predict(asked, 1, &arena, &w, NULL, NULL, &err) ||
                  bz_whatif_predict(asked, 2, &arena, &w, NULL, NULL, &err));
        assert_int_equal(w.prediction[0].time, w.prediction[1].time);
        assert_non_null(w.prediction[1].because);
        assert_non_null(strstr(w.prediction[1].because, WHY[k]));
        bz_flow_free(&flow);
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_done), cmocka_unit_test(test_tf32),
                                       cmocka_unit_test(test_half), cmocka_unit_test(test_once),
                                       cmocka_unit_test_setup_teardown(test_conversions, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
