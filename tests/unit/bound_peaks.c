/* Ticks of the clock that bounds are counted in. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
