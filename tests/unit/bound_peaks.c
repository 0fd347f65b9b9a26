/* Peaks, and ticks of the clock that bounds are counted in. */
#include "bound/bound.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_ticks(void **state)
{
    (void)state;
    for (int t = 0; t < 10000; t++) {
        double x = 1e-9 * t * 199999, y = bz_tick(x);
        assert_true(fabs(x - y) <= ldexp(1, -45) && y == bz_tick(y));
    }
    assert_true(isnan(bz_tick(NAN)) && bz_tick(0) == 0);
}

static bz_peaks peaks_of(const char *measured, bz_arena *arena)
{
    bz_peaks peaks;
    const char *details =
        bz_arena_printf(arena, "{\"measured\":{\"threads\":1,\"flops\":{\"f32\":1e11},%s}}", measured);
    bz_peaks_read(bz_system_facts_read(details, arena), &(bz_setting){1, BZ_CACHE_HOT, ""}, arena, &peaks);
    assert_null(peaks.why);
    return peaks;
}

/* A small buffer that seems slower than a larger one was measured in a slow phase: who moves 4 MB at a rate moves 64 kB of them
 * at that rate. Concats of that size were "faster than the hardware" then. */
static void test_slow_phase(void **state)
{
    (void)state;
    bz_arena arena = {0};
#define BUFFER(bytes, read) "{\"bytes\":" #bytes ",\"read\":" #read ",\"copy\":1e9,\"copy_cold\":1e9}"
    bz_peaks steady =
        peaks_of("\"bandwidth\":[" BUFFER(8192, 9e10) "," BUFFER(65536, 8e10) "," BUFFER(4194304, 4e10) "]", &arena);
    assert_true(bz_peaks_traffic(&steady, 65536) == 65536 / 8e10 &&
                bz_peaks_traffic(&steady, 4194304) == 4194304 / 4e10);
    assert_false(steady.busy);
    bz_peaks slow = peaks_of(
        "\"busy\":true,\"bandwidth\":[" BUFFER(8192, 9e10) "," BUFFER(65536, 1e10) "," BUFFER(4194304, 4e10) "]",
        &arena);
    assert_true(slow.busy && bz_peaks_traffic(&slow, 65536) == 65536 / 4e10);
    assert_true(bz_peaks_traffic(&slow, 8192) == 8192 / 9e10 && bz_peaks_traffic(&slow, 1e9) == 1e9 / 4e10);
    bz_arena_free(&arena);
}

/* A record's interval and 2.5 % for the peaks: within them nothing is contradicted. */
static void test_contradiction(void **state)
{
    (void)state;
    const bz_alternative way = {0};
    bz_bound_layer l = {.hardware = 1, .price = {.seconds = 0.99, .low = 0.98, .high = 1, .alternative = &way}};
    assert_false(bz_bound_contradicts(&l));
    l.price.seconds = 0.95, l.price.high = 0.98;
    assert_false(bz_bound_contradicts(&l));
    l.price.high = 0.97;
    assert_true(bz_bound_contradicts(&l));
    l.price.alternative = NULL;
    assert_false(bz_bound_contradicts(&l));
    l = (bz_bound_layer){.hardware = NAN, .price = {.seconds = 0.5, .high = 0.6, .alternative = &way}};
    assert_false(bz_bound_contradicts(&l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_slow_phase),
        cmocka_unit_test(test_contradiction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
