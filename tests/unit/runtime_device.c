/* Devices: looked at in a child process, described in one line. */
#include "runtime/backend.h"
#include "tests/unit/device_lines.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

static int good_device(bz_device *out, bz_error *err)
{
    (void)err;
    *out = (bz_device){.slug = "h200", .stack = "cuda13.0", .name = "NVIDIA H200", .major = 9, .event_pair = 1e-6};
    out->memory = getpid(); /* says which process this was */
    return 0;
}

static int no_device(bz_device *out, bz_error *err)
{
    (void)out;
    return bz_fail(err, BZ_FAILED, "there is none");
}

static int crashing_device(bz_device *out, bz_error *err)
{
    (void)out, (void)err;
    _exit(3);
}

/* How fast it is, as a driver or a profiler may answer it. */
static enum { GOOD, CRASHES, HANGS } manner;

static void measured_rates(bz_device *out)
{
    out->copied = 4e12;
    if (manner == CRASHES)
        abort();
    while (manner == HANGS)
        pause();
    out->kernel_gap = 1e-6;
}

static int hanging_device(bz_device *out, bz_error *err)
{
    (void)out, (void)err;
    while (pause()) /* for ever */
        ;
    return 0;
}

/* What the device is stands, and what was measured until then. */
static void stands_where_measuring_it_fails(void **state)
{
    (void)state;
    const bz_backend backend = {.name = "good", .device = good_device, .rates = measured_rates},
                     hangs = {.name = "mute", .device = hanging_device};
    bz_device d;
    bz_error err = {0};
    for (manner = GOOD; manner <= HANGS; manner++) {
        assert_int_equal(bz_device_find_within(&backend, manner == HANGS ? 3 : 30, &d, &err), 0);
        assert_string_equal(d.slug, "h200");
        assert_true(d.copied > 3e12);
        assert_true(manner == GOOD ? d.kernel_gap > 0 : !(d.kernel_gap > 0));
    }
    assert_int_equal(bz_device_find_within(&hangs, 0.2, &d, &err), -1);
    assert_string_equal(err.text, "mute: the process that looked at the device hung");
}

static void a_child_looks(void **state)
{
    (void)state;
    const bz_backend backend = {.name = "good", .device = good_device};
    bz_device d;
    bz_error err = {0};
    assert_int_equal(bz_device_find(&backend, &d, &err), 0);
    assert_string_equal(d.slug, "h200");
    assert_int_equal(d.major, 9);
    assert_true(d.memory != getpid());
}

static void what_is_not_there_is_said(void **state)
{
    (void)state;
    const bz_backend none = {.name = "none", .device = no_device}, crash = {.name = "crash", .device = crashing_device},
                     cpu = {.name = "cpu"};
    bz_device d;
    bz_error err = {0};
    assert_int_equal(bz_device_find(&none, &d, &err), -1);
    assert_int_equal(err.code, BZ_FAILED);
    assert_string_equal(err.text, "none: there is none");
    assert_int_equal(bz_device_find(&crash, &d, &err), -1);
    assert_non_null(strstr(err.text, "ended without an answer"));
    assert_int_equal(bz_device_find(&cpu, &d, &err), -1);
    assert_non_null(strstr(err.text, "runs on the processor"));
}

static void a_line_describes(void **state)
{
    (void)state;
    bz_device d = {.slug = "h200",
                   .stack = "cuda13.0",
                   .name = "NVIDIA \"H200\"",
                   .major = 9,
                   .minor = 1,
                   .multiprocessors = 132,
                   .memory = 141000000000,
                   .bandwidth = 4.8e12,
                   .copied = 4.1e12,
                   .event_pair = NAN};
    bz_buf out = {0};
    bz_device_json(&d, &out);
    cJSON *j = cJSON_Parse(bz_buf_text(&out));
    assert_non_null(j);
    assert_string_equal(cJSON_GetObjectItem(j, "record")->valuestring, "system");
    assert_string_equal(cJSON_GetObjectItem(j, "name")->valuestring, "NVIDIA \"H200\"");
    assert_string_equal(cJSON_GetObjectItem(j, "capability")->valuestring, "9.1");
    assert_int_equal(cJSON_GetObjectItem(j, "multiprocessors")->valueint, 132);
    assert_true(cJSON_GetObjectItem(j, "copy_bandwidth")->valuedouble > 4.0e12);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(j, "event_pair")));
    cJSON_Delete(j);
    bz_buf_clear(&out);
    bz_device_print(&d, &out);
    assert_non_null(strstr(bz_buf_text(&out), "compute capability 9.1, 132 multiprocessors"));
    assert_non_null(strstr(bz_buf_text(&out), "4.80 TB/s by its data sheet, 4.10 TB/s by a copy"));
    assert_null(strstr(bz_buf_text(&out), "event pair"));
    d.copied = NAN;
    bz_buf_clear(&out);
    bz_device_print(&d, &out);
    assert_null(strstr(bz_buf_text(&out), "copy"));
    bz_buf_free(&out);
}

static void lines_that_others_read(void **state)
{
    (void)state;
    for (int i = 0; i < N_DEVICE_LINES; i++) {
        bz_device d = {.stack = "cudnn9.1",
                       .major = DEVICE_LINES[i].major,
                       .minor = DEVICE_LINES[i].minor,
                       .l2 = DEVICE_LINES[i].l2,
                       .clock = DEVICE_LINES[i].clock,
                       .copied = NAN,
                       .event_pair = NAN};
        bz_buf out = {0};
        strcpy(d.slug, DEVICE_LINES[i].slug);
        strcpy(d.name, DEVICE_LINES[i].name);
        bz_device_json(&d, &out);
        assert_string_equal(bz_buf_text(&out), DEVICE_LINES[i].line);
        bz_buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_looks),
                                       cmocka_unit_test(stands_where_measuring_it_fails),
                                       cmocka_unit_test(what_is_not_there_is_said), cmocka_unit_test(a_line_describes),
                                       cmocka_unit_test(lines_that_others_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
