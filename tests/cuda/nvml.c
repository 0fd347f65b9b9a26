/* What NVML says of the device's clock, with a stand-in for it. */
#include "runtime/cuda/cuda.h"
#include "tests/standin/record.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A process opens the device with every problem that it measures; NVML begins once. */
static void begins_once(void **state)
{
    (void)state;
    int (*begun)(void) = NULL;
    for (int i = 0; i < 3; i++) {
        bz_cuda c;
        assert_int_equal(bz_cuda_open(&c, &(bz_run_setting){0}, NULL), 0);
        assert_non_null(c.nvml);
        assert_int_equal(bz_nvml_clock(c.nvml), 1410000000);
        bz_cuda_close(&c);
    }
    void *symbol = dlsym(dlopen("libnvidia-ml.so.1", RTLD_NOW), "standin_nvml_begun");
    memcpy(&begun, &symbol, sizeof symbol);
    assert_int_equal(begun(), 1);
}

/* By the name that drivers have for it today. An idle device, or one whose clock a user has set, is not throttled. */
static void tells_why_it_is_slow(void **state)
{
    static const struct {
        const char *reasons;
        bool throttled;
    } CASES[] = {{"0", false}, {"0x1", false}, {"0x2", false}, {"0x4", true}, {"0x20", true}, {"0x40", true}};
    bz_nvml *n = bz_nvml_open(0);
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        setenv("STANDIN_NVML", CASES[i].reasons, 1);
        assert_int_equal(bz_nvml_throttled(n), CASES[i].throttled);
    }
}

static void describes(void **state)
{
    bz_device d = {0};
    (void)state;
    bz_nvml_describe(bz_nvml_open(0), &d);
    assert_int_equal(d.clock, 1980000000);
    assert_int_equal(d.memory_clock, 2619000000);
    assert_string_equal(d.driver, "580.159.04");
}

static void holds_a_clock(void **state)
{
    static const struct {
        const char *status, *says;
    } REFUSED[] = {{"2", "no clock of 990 MHz"}, {"3", "cannot be held"}, {"4", "root's rights"}, {"99", "error 99"}};
    const bz_nvml *n = bz_nvml_open(0);
    bz_error err;
    (void)state;
    assert_int_equal(bz_cuda_lock(990e6, &err), 0);
    assert_int_equal(bz_nvml_clock(n), 990000000);
    assert_int_equal(bz_cuda_lock(0, &err), 0);
    assert_int_equal(bz_nvml_clock(n), 1410000000);
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        setenv("STANDIN_NVML_LOCK", REFUSED[i].status, 1);
        assert_int_equal(bz_cuda_lock(990e6, &err), -1);
        assert_non_null(strstr(err.text, REFUSED[i].says));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_once),
        cmocka_unit_test(tells_why_it_is_slow),
        cmocka_unit_test(describes),
        cmocka_unit_test(holds_a_clock),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    standin_reset();
    bz_buf_free(&standin_text);
    return bad;
}
