/* Ranges of a program without numbers in their names. */
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { US = 1000 };

static void put(bz_trace *t, bz_event_kind kind, int64_t start, int64_t end, const char *name, uint32_t lane)
{
    bz_trace_add(t, kind, start * US, end * US, bz_trace_text(t, name), lane);
}

/* `steps` of `layers` equal layers of three operators, and a range around each step, or one around all of the time or a part of it. */
static bz_trace *recorded(int steps, int layers, const char *each, const char *all, int percent)
{
    static const char *const OPERATORS[] = {"aten::linear", "aten::gelu", "aten::layer_norm"};
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "a", "PyTorch trace"), lane = bz_trace_thread(t, source, 1, 1);
    int64_t now = 1000;
    t->source[source].events = 1;
    for (int s = 0; s < steps; s++) {
        int64_t begin = now;
        for (int l = 0; l < layers; l++)
            for (int k = 0; k < 3; k++, now += 55)
                put(t, BZ_EVENT_OP, now, now + 50, OPERATORS[k], lane);
        if (each)
            put(t, BZ_EVENT_RANGE, begin - 3, now - 3, each, lane);
    }
    if (all)
        put(t, BZ_EVENT_RANGE, 900, 900 + (now - 900) * percent / 100, all, lane);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    return t;
}

static uint32_t found(int steps, int layers, const char *each, const char *all)
{
    bz_trace *t = recorded(steps, layers, each, all, 100);
    uint32_t n = t->n_iterations;
    bz_trace_free(t);
    return n;
}

static void ranges_that_come_again_are_steps(void **state)
{
    (void)state;
    assert_int_equal(found(4, 5, "train_step", NULL), 4);
    assert_int_equal(found(4, 5, "Forward", "main_loop"), 4);
    assert_int_equal(found(4, 5, "attention step", NULL), 20); /* a part of one */
    assert_int_equal(found(4, 5, "work", NULL), 20);
}

static void one_range_is_a_pass(void **state)
{
    (void)state;
    bz_trace *t = recorded(1, 6, NULL, "model_inference", 100);
    assert_int_equal(t->n_iterations, 1);
    assert_int_equal(t->origin, BZ_ITERATION_RANGE);
    assert_null(bz_trace_lacks(t, BZ_LACKS_ITERATIONS_OPEN));
    bz_trace_free(t);
    assert_int_equal(found(1, 6, NULL, "inference loop"), 6);
    assert_int_equal(found(1, 6, NULL, "profile"), 6);
}

/* What was found before stays, whole. */
static void a_range_around_a_part_is_none(void **state)
{
    (void)state;
    bz_trace *before = recorded(1, 30, NULL, NULL, 0), *t = recorded(1, 30, NULL, "model_inference", 50);
    assert_int_equal(before->n_iterations, 30);
    assert_int_equal(t->n_iterations, 30);
    assert_memory_equal(t->iteration, before->iteration, 30 * sizeof *t->iteration);
    assert_non_null(bz_trace_lacks(t, BZ_LACKS_ITERATIONS_OPEN));
    bz_trace_free(t);
    bz_trace_free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges_that_come_again_are_steps),
                                       cmocka_unit_test(one_range_is_a_pass),
                                       cmocka_unit_test(a_range_around_a_part_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
