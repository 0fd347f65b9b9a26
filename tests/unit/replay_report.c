/* What a replay says about its plan. */
#include "replay/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <math.h>

#include <cmocka.h>

/* The choice counted on one conversion of 1 µs. The program, made ready, has three of 90 µs in sequence: no other number is told. */
static void test_conversions(void **state)
{
    (void)state;
    bz_replay_action action[] = {
        {.step = 0, .kind = BZ_REPLAY_CONVERT, .seconds = 3e-5, .hot = 2e-5, .flushed = 4e-5},
        {.step = 0, .kind = BZ_REPLAY_CALL, .seconds = 1e-3, .hot = 1e-3, .flushed = 1e-3},
        {.step = 0, .kind = BZ_REPLAY_COPY, .seconds = 1e-5, .hot = NAN, .flushed = NAN},
        {.step = -1, .kind = BZ_REPLAY_CONVERT, .seconds = 5e-5, .hot = 4e-5, .flushed = 6e-5},
    };
    bz_replay_result result = {.action = action, .n = 4, .median = 2e-3, .low = 2e-3, .high = 2e-3, .min = 2e-3};
    bz_replay_plan plan = {.model = "m.onnx", .system = "", .conversions = 1e-6, .n_conversions = 2};
    const bz_replay_report planned = {.plan = &plan}, run = {.plan = &plan, .result = &result};
    bz_buf out = {0};
    bz_replay_print(&planned, &out);
    assert_non_null(strstr(bz_buf_text(&out), "; 2 conversions between layouts foreseen, 1.00 µs: '--time-limit 0' "
                                              "builds the program and counts\n"));
    bz_buf_clear(&out);
    bz_replay_print_json(&planned, &out);
    assert_null(strstr(bz_buf_text(&out), "conversions\""));
    assert_non_null(strstr(bz_buf_text(&out), "\"foreseen\": 2"));
    bz_buf_clear(&out);
    bz_replay_print(&run, &out);
    const char *told = strstr(bz_buf_text(&out), "conversion");
    assert_non_null(strstr(bz_buf_text(&out), ", 3 conversions 90.0 µs,"));
    assert_ptr_equal(told - 2, strstr(bz_buf_text(&out), "3 conversions 90.0 µs,"));
    bz_buf_clear(&out);
    bz_replay_print_json(&run, &out);
    assert_non_null(strstr(bz_buf_text(&out), "\"n_conversions\": 3"));
    bz_buf_free(&out);
}

/* Run once: conversions are counted, and no time is told of what nobody measured. */
static void test_once(void **state)
{
    (void)state;
    bz_replay_action action[] = {
        {.step = 0, .kind = BZ_REPLAY_CALL, .seconds = NAN, .hot = NAN, .flushed = NAN},
        {.step = 0, .kind = BZ_REPLAY_CONVERT, .seconds = NAN, .hot = NAN, .flushed = NAN},
        {.step = -1, .kind = BZ_REPLAY_COPY, .seconds = NAN, .hot = NAN, .flushed = NAN},
    };
    bz_replay_result result = {.action = action, .n = 3, .median = NAN, .low = NAN, .high = NAN, .min = NAN};
    bz_replay_plan plan = {.model = "m.onnx", .system = "", .seconds = 4e-3};
    const bz_replay_report run = {.plan = &plan, .result = &result};
    bz_buf out = {0};
    bz_replay_print(&run, &out);
    assert_non_null(strstr(bz_buf_text(&out), "built: 1 call, 2 conversions, 0 loops of our own\n"));
    assert_null(strstr(bz_buf_text(&out), "in sequence"));
    bz_buf_clear(&out);
    bz_replay_print_json(&run, &out);
    assert_non_null(strstr(bz_buf_text(&out), "\"n_conversions\": 2,"));
    assert_non_null(strstr(bz_buf_text(&out), "\"calls\": null,"));
    assert_non_null(strstr(bz_buf_text(&out), "\"conversions\": null,"));
    bz_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conversions), cmocka_unit_test(test_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
