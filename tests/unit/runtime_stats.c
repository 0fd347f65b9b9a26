/* Statistics against brute force, and data types against the hardware's own rounding. */
#include "runtime/runtime.h"
#include "runtime/values.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* P(at least r of n samples lie below the median), by counting all 2^n outcomes. */
static double coverage(int n, int r)
{
    int64_t inside = 0;
    for (int64_t outcome = 0; outcome < (int64_t)1 << n; outcome++) {
        int below = __builtin_popcountll((unsigned long long)outcome);
        /* the median lies between the r-th smallest and the r-th largest */
        inside += below >= r && n - below >= r;
    }
    return (double)inside / (double)((int64_t)1 << n);
}

/* What moves is marked: a wide middle, a median that is not settled, few samples far apart. */
static void test_noisy(void **state)
{
    (void)state;
    bz_stats s = {.n = 40, .median = 1, .q25 = 0.99, .q75 = 1.01, .min = 0.9, .max = 3, .low = 0.995, .high = 1.005};
    assert_false(bz_stats_noisy(&s)); /* outliers do not matter */
    s.q75 = 1.02;
    assert_true(bz_stats_noisy(&s));
    s.q75 = 1.01, s.high = 1.03;
    assert_true(bz_stats_noisy(&s));
    double close[] = {1, 1.01, 1.02}, apart[] = {1, 1.01, 1.05};
    s = bz_stats_of(close, 3);
    assert_false(bz_stats_noisy(&s));
    s = bz_stats_of(apart, 3);
    assert_true(bz_stats_noisy(&s));
}

static void test_interval(void **unused)
{
    (void)unused;
    for (int n = 1; n <= 20; n++) {
        double samples[20];
        for (int i = 0; i < n; i++)
            samples[i] = (i * 7) % n + 1; /* 1 … n in some order, as 7 divides none of them but 7 and 14 */
        if (n % 7 == 0)
            for (int i = 0; i < n; i++)
                samples[i] = n - i;
        bz_stats s = bz_stats_of(samples, n);
        int best = 0;
        for (int r = 1; r <= n / 2; r++)
            if (coverage(n, r) >= 0.95)
                best = r;
        if (!best) {
            assert_true(isinf(s.low) && isinf(s.high));
            assert_true(n < 6);
            continue;
        }
        assert_true(s.low == best);
        assert_true(s.high == n + 1 - best);
    }
}

static void test_interval_holds(void **unused)
{
    (void)unused;
    uint64_t state = 42;
    int hits = 0, trials = 4000;
    for (int t = 0; t < trials; t++) {
        double samples[25];
        for (int i = 0; i < 25; i++) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            double u = (double)(state >> 11) * 0x1p-53;
            samples[i] = 1 + u * u * u * u; /* far from normal; its median is 1 + 1/16 */
        }
        bz_stats s = bz_stats_of(samples, 25);
        hits += s.low <= 1.0625 && 1.0625 <= s.high;
    }
    assert_true(hits >= 0.95 * trials - 45); /* three standard errors; the exact coverage is 95.7 % */
}

static void test_quantiles(void **unused)
{
    (void)unused;
    double samples[] = {5, 1, 4, 2, 3};
    bz_stats s = bz_stats_of(samples, 5);
    assert_true(s.median == 3 && s.q25 == 2 && s.q75 == 4 && s.min == 1 && s.max == 5);
    double two[] = {2, 1};
    assert_true(bz_stats_of(two, 2).median == 1.5);
    double one[] = {7};
    s = bz_stats_of(one, 1);
    assert_true(s.median == 7 && s.q25 == 7 && isinf(bz_stats_uncertainty(&s)));
}

static void test_noise(void **unused)
{
    (void)unused;
    double quiet[40], loud[40];
    for (int i = 0; i < 40; i++) {
        quiet[i] = 1 + 0.0001 * i;
        loud[i] = 1 + 0.01 * i;
    }
    bz_stats q = bz_stats_of(quiet, 40), l = bz_stats_of(loud, 40);
    assert_true(bz_stats_spread(&q) < BZ_NOISY_SPREAD);
    assert_true(bz_stats_spread(&l) > BZ_NOISY_SPREAD);
    assert_true(bz_stats_uncertainty(&q) < 0.005);
    assert_true(bz_stats_uncertainty(&l) > 0.005);
}

/* Encoding and decoding are inverse for all values that a 16-bit type has. */
static void test_half_types(void **unused)
{
    (void)unused;
    const bz_dtype types[] = {BZ_F16, BZ_BF16};
    for (int t = 0; t < 2; t++)
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint16_t given = (uint16_t)bits, back;
            float value;
            bz_values_decode(types[t], &given, &value, 1);
            if (isnan(value))
                continue;
            bz_values_encode(types[t], &value, &back, 1);
            assert_int_equal(given, back);
            assert_true(bz_round_to(types[t], (double)value) == value);
        }
    assert_true(bz_round_to(BZ_F16, 1 + 0x1p-11) == 1);                    /* a tie goes to even */
    assert_true(bz_round_to(BZ_F16, 1 + 3 * 0x1p-11) == 1 + 2 * 0x1p-10f); /* … and up to it */
    assert_true(bz_round_to(BZ_BF16, 1 + 0x1p-8) == 1);
    assert_true(isinf(bz_round_to(BZ_F16, 65520)));
    assert_true(bz_round_to(BZ_F16, 65519) == 65504);
#ifdef __FLT16_MANT_DIG__ /* the compiler has the type */
    __extension__ typedef _Float16 half;
    for (int i = -100000; i < 100000; i++) {
        float v = (float)i * 0.7313f;
        assert_true(bz_round_to(BZ_F16, (double)v) == (float)(half)v);
    }
#endif
}

/* All 16 values of four bits, in pairs; half of a step goes to the even one. */
static void test_four_bits(void **unused)
{
    (void)unused;
    const float all[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    const double given[] = {0.25, 0.26, 1.25, 1.75, 2.5, 3.5, 5, 1e9}, rounded[] = {0, 0.5, 1, 2, 2, 4, 4, 6};
    uint8_t codes[8];
    float back[16];
    bz_values_encode(BZ_F4E2M1, all, codes, 16);
    for (int i = 0; i < 8; i++)
        assert_int_equal(codes[i], 2 * i | (2 * i + 1) << 4);
    bz_values_decode(BZ_F4E2M1, codes, back, 16);
    assert_memory_equal(back, all, sizeof all);
    for (int i = 0; i < 8; i++)
        assert_true((double)bz_round_to(BZ_F4E2M1, -given[i]) == -rounded[i]);
}

/* Of eight bits each value is the nearest that there is, the even one of two; what is too large saturates. */
static void test_eight_bits(void **unused)
{
    (void)unused;
    const bz_dtype types[] = {BZ_F8E4M3, BZ_F8E5M2, BZ_F8E4M3FNUZ, BZ_F8E5M2FNUZ};
    const float most[] = {448, 57344, 240, 57344};
    for (int t = 0; t < 4; t++) {
        float all[256];
        uint8_t codes[256], back;
        for (int i = 0; i < 256; i++)
            codes[i] = (uint8_t)i;
        bz_values_decode(types[t], codes, all, 256);
        for (int i = 0; i < 256; i++) {
            bz_values_encode(types[t], &all[i], &back, 1);
            assert_true(isnan(all[i]) || isinf(all[i]) || back == i);
        }
        for (int i = -60000; i < 60000; i += 7)
            for (float scale = 1; scale > 1e-6f; scale *= 0.037f) {
                float v = (float)i * scale, r = bz_round_to(types[t], (double)v);
                bz_values_encode(types[t], &v, &back, 1);
                if (fabsf(v) > most[t]) {
                    assert_true(fabsf(r) == most[t]);
                    continue;
                }
                for (int k = 0; k < 256; k++) {
                    float other = isfinite(all[k]) ? fabsf(all[k] - v) : INFINITY;
                    assert_true(fabsf(r - v) < other || (fabsf(r - v) == other && (all[k] == r || !(back & 1))));
                }
            }
        assert_true(bz_round_to(types[t], 1e9) == most[t] && isnan(bz_round_to(types[t], NAN)));
    }
    assert_true(bz_round_to(BZ_F8E4M3, 0x1p-9) == 0x1p-9f && bz_round_to(BZ_F8E4M3, 0x1p-10) == 0);
    assert_true(bz_round_to(BZ_F8E4M3, 17) == 16 && bz_round_to(BZ_F8E4M3, 19) == 20);
}

static void test_integers(void **unused)
{
    (void)unused;
    assert_true(bz_round_to(BZ_I8, 200) == 127 && bz_round_to(BZ_I8, -200) == -128);
    assert_true(bz_round_to(BZ_U8, -3) == 0 && bz_round_to(BZ_U8, 255.4) == 255);
    assert_true(bz_round_to(BZ_I8, 2.5) == 2 && bz_round_to(BZ_I8, 3.5) == 4);
}

/* Inputs: the same every time, no zero, no denormal, normal in mean and variance. */
static void test_inputs(void **unused)
{
    (void)unused;
    bz_problem p;
    bz_error err;
    bz_operand list[BZ_PROBLEM_OPERANDS];
    const char *const texts[] = {"activation fn=relu x=200000 dtype=f32", "activation fn=relu x=200000 dtype=f16",
                                 "activation fn=relu x=200000 dtype=i8", "activation fn=log x=200000 dtype=f32"};
    for (int t = 0; t < 4; t++) {
        assert_int_equal(bz_problem_parse(texts[t], &p, &err), 0);
        bz_problem_operands(&p, list);
        float *a = malloc(200000 * sizeof *a), *b = malloc(200000 * sizeof *b);
        assert_true(a && b);
        bz_values_fill(&p, &list[0], 0, a);
        bz_values_fill(&p, &list[0], 0, b);
        assert_memory_equal(a, b, 200000 * sizeof *a);
        double sum = 0, squares = 0;
        for (int i = 0; i < 200000; i++) {
            assert_true(isnormal(a[i]));
            assert_true(t != 3 || a[i] > 0);
            sum += a[i];
            squares += (double)a[i] * a[i];
        }
        if (t == 0) {
            assert_true(fabs(sum / 200000) < 0.02);
            assert_true(fabs(squares / 200000 - 1) < 0.03);
        }
        free(a);
        free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noisy),     cmocka_unit_test(test_interval),   cmocka_unit_test(test_interval_holds),
        cmocka_unit_test(test_quantiles), cmocka_unit_test(test_noise),      cmocka_unit_test(test_half_types),
        cmocka_unit_test(test_integers),  cmocka_unit_test(test_eight_bits), cmocka_unit_test(test_four_bits),
        cmocka_unit_test(test_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
