/* What reorders took in a program, by their size: found in traces made by hand. */
#include "advice/predict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DATA "src=f32::blocked:abcd:f0 dst=f32::blocked:aBcd16b:f0 "

typedef struct call {
    const char *name, *detail;
    int64_t us;
    uint32_t flags;
} call;

/* Iterations of these calls, of which the first is slow and so a warm-up. */
static bz_trace *trace_of(const call *calls, int n)
{
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), host = bz_trace_thread(t, source, 1, 1);
    for (int64_t i = 0; i < 8; i++) {
        int64_t at = i * 100000000, slow = i ? 1 : 10, start = at + 1000;
        for (int k = 0; k < n; k++) {
            int64_t end = start + 1000 * slow * calls[k].us;
            size_t e = bz_trace_add(t, BZ_EVENT_CALL, start, end, bz_trace_text(t, calls[k].name), host);
            t->event[BZ_EVENT_CALL].flags[e] = calls[k].flags;
            t->event[BZ_EVENT_CALL].detail[e] = bz_trace_text(t, calls[k].detail);
            start = end + 1000;
        }
        bz_trace_add(t, BZ_EVENT_RANGE, at, start, bz_trace_text(t, "benanza_iteration"), host);
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t->n_iterations, 8);
    assert_true(t->iteration[0].warm_up && !t->iteration[1].warm_up);
    return t;
}

/* Only reorders that ran, in steady iterations, with a size that can be read; weights apart, by their format alone. */
static void test_find(void **state)
{
    static const call CALLS[] = {
        {"reorder", DATA "problem=1x16x8x8", 30, BZ_CALL_EXECUTES},
        {"reorder", "src=bf16::blocked:abcd:f0 dst=f32::blocked:aBcd16b:f0 problem=1x16x8x8", 20, BZ_CALL_EXECUTES},
        {"reorder", "src=f32::blocked:abcd:f0 dst=f32::blocked:ABcd16b16a:f0 problem=16x16x3x3", 40, BZ_CALL_EXECUTES},
        {"reorder", "src=f32::blocked:abcd:f0 dst=f32::blocked:aBcd16b:fA problem=1x16x4x4", 10, BZ_CALL_EXECUTES},
        {"reorder", DATA "problem=1x16x8x8", 50, 0},
        {"reorder", DATA "problem=1x16x8x8:1", 50, BZ_CALL_EXECUTES},
        {"reorder", DATA, 50, BZ_CALL_EXECUTES},
        {"convolution", DATA "problem=1x16x8x8", 60, BZ_CALL_EXECUTES},
    };
    bz_arena arena = {0};
    predict_reorders r;
    (void)state;
    bz_trace *t = trace_of(CALLS, sizeof CALLS / sizeof *CALLS);
    predict_reorders_find(t, &arena, &r);
    static const double BYTES[] = {16 * 16 * 4, 1024 * 2, 1024 * 4}, TOOK[] = {10e-6, 20e-6, 30e-6};
    assert_int_equal(r.n[0], 3 * 7);
    assert_int_equal(r.n[1], 7);
    for (int i = 0; i < 3 * 7; i++)
        assert_true(r.list[0][i].bytes == BYTES[i / 7] && fabs(r.list[0][i].seconds - TOOK[i / 7]) < 1e-12);
    for (int i = 0; i < 7; i++)
        assert_true(r.list[1][i].bytes == 16 * 16 * 9 * 4 && fabs(r.list[1][i].seconds - 40e-6) < 1e-12);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* The median rate of those that are off by half at most; where none is that near, of the nearest. */
static void test_time(void **state)
{
    predict_reorder data[] = {{1000, 30e-6}, {1000, 1e-6}, {1000, 2e-6}, {1400, 5 * 1.4e-6}, {1600, 1}, {8000, 80e-6}};
    predict_reorder weights[] = {{500, 1e-6}};
    predict_reorders r = {.list = {data, weights}, .n = {6, 1}};
    bz_arena arena = {0};
    (void)state;
    /* 1, 2, 5 and 30 ns a byte: between the two in the middle */
    assert_true(fabs(predict_reorder_time(&r, false, 1000, &arena) - 3.5e-6) < 1e-12);
    /* the four and the one of 1600 bytes: 5 in the middle */
    assert_true(fabs(predict_reorder_time(&r, false, 1200, &arena) - 6e-6) < 1e-12);
    assert_true(fabs(predict_reorder_time(&r, false, 16000, &arena) - 160e-6) < 1e-12);
    assert_true(fabs(predict_reorder_time(&r, false, 5, &arena) - 5 * 2e-9) < 1e-15);
    assert_true(fabs(predict_reorder_time(&r, true, 1000, &arena) - 2e-6) < 1e-12);
    assert_true(predict_reorder_time(&r, false, 0, &arena) == 0);
    r.n[1] = 0;
    assert_true(predict_reorder_time(&r, true, 1000, &arena) == 0);
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find), cmocka_unit_test(test_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
