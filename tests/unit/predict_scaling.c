/* Wave scaling and occupancies: the published equations, by numbers worked out by hand from them. */
#include "predict/predict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool is_near(double a, double b, double within)
{
    return fabs(a - b) <= within * fabs(b);
}

static void gamma_follows_the_ridge(void **state)
{
    (void)state;
    static const double AT[][2] = {{0, 1}, {4.545, 0.75}, {9.09, 0.5}, {18.18, 0.25}, {90.9, 0.05}};
    for (size_t i = 0; i < sizeof AT / sizeof *AT; i++)
        assert_true(is_near(bz_wave_gamma(AT[i][0], 9.09), AT[i][1], 1e-9));
}

/* An RTX 2070 with 4 blocks a multiprocessor to a V100 with 8. */
static const bz_wave_machine FROM = {383, 1410, 144}, TO = {739, 1312, 640};

static void many_waves(void **state)
{
    (void)state;
    static const double AT[][2] = {{1, 0.51827}, {0.75, 0.42833}, {0.5, 0.35401}, {0, 0.24181}};
    for (size_t i = 0; i < sizeof AT / sizeof *AT; i++)
        assert_true(is_near(bz_wave_scale(&FROM, &TO, AT[i][0]), AT[i][1], 3e-5));
}

static void scaling_to_itself_is_one(void **state)
{
    (void)state;
    for (double gamma = 0; gamma <= 1; gamma += 0.1)
        assert_true(is_near(bz_wave_scale(&FROM, &FROM, gamma), 1, 1e-12));
}

static void blocks_of_kernels(void **state)
{
    (void)state;
    static const int CHIP[] = {61, 60, 70, 75, 80, 90};
    static const struct {
        bz_launch launch;
        int blocks[6];
    } AT[] = {{{256, 32, 0, 0}, {8, 8, 8, 4, 8, 8}},      {{128, 64, 8192, 0}, {8, 8, 8, 8, 8, 8}},
              {{512, 128, 0, 0}, {1, 1, 1, 1, 1, 1}},     {{1024, 40, 0, 0}, {1, 1, 1, 1, 1, 1}},
              {{64, 255, 0, 0}, {4, 4, 4, 4, 4, 4}},      {{96, 37, 3000, 0}, {16, 16, 16, 10, 16, 16}},
              {{32, 16, 0, 0}, {32, 32, 32, 16, 32, 32}}, {{256, 96, 20000, 0}, {2, 2, 2, 2, 2, 2}}};
    for (size_t i = 0; i < sizeof AT / sizeof *AT; i++)
        for (int c = 0; c < 6; c++) {
            bz_occupancy_limits limits;
            assert_true(bz_occupancy_limits_of(CHIP[c], &limits));
            assert_int_equal(bz_occupancy(&limits, &AT[i].launch), AT[i].blocks[c]);
        }
}

/* More of anything never lets more blocks in, and what cannot be launched is 0. */
static void occupancy_falls(void **state)
{
    (void)state;
    static const int CHIP[] = {30, 37, 52, 60, 61, 70, 75, 80, 86, 89, 90, 100, 120};
    for (size_t c = 0; c < sizeof CHIP / sizeof *CHIP; c++) {
        bz_occupancy_limits l;
        assert_true(bz_occupancy_limits_of(CHIP[c], &l));
        for (int threads = 1; threads <= 1024; threads += 31)
            for (int registers = 1; registers <= 255; registers += 7)
                for (int shared = 0; shared <= 49152; shared += 3071) {
                    int n = bz_occupancy(&l, &(bz_launch){threads, registers, shared, 0});
                    assert_true(n >= bz_occupancy(&l, &(bz_launch){threads, registers + 1, shared, 0}));
                    assert_true(n >= bz_occupancy(&l, &(bz_launch){threads, registers, shared, 1}));
                    assert_true(n * ((threads + 31) / 32) * 32 <= l.threads);
                    assert_true((int64_t)n * shared <= l.shared);
                }
        assert_int_equal(bz_occupancy(&l, &(bz_launch){1025, 16, 0, 0}), 0);
        assert_int_equal(bz_occupancy(&l, &(bz_launch){256, 16, 49153, 0}), 0);
        assert_int_equal(bz_occupancy(&l, &(bz_launch){1024, 255, 0, 0}), 0);
    }
    bz_occupancy_limits none;
    assert_false(bz_occupancy_limits_of(20, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gamma_follows_the_ridge), cmocka_unit_test(many_waves),
                                       cmocka_unit_test(scaling_to_itself_is_one), cmocka_unit_test(blocks_of_kernels),
                                       cmocka_unit_test(occupancy_falls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
