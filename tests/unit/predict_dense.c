/* The network of dense layers, on times that are a known function of shapes and machines. */
#include "predict/dense.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MACHINES = 4, PROBLEMS = 400, POOLS = 10 };

/* Convolutions take more than their roofline by what depends on channels and on the bandwidth; a few pools stand behind them. */
static double factor(const bz_shape *s, const bz_machine *m)
{
    return 0.5 * sin(s->x[1]) + 0.3 * log(m->bandwidth / 1e11);
}

static void make(bz_samples *s)
{
    *s = (bz_samples){.machines = MACHINES, .n = PROBLEMS + POOLS};
    s->machine = BZ_NEW(&s->arena, bz_machine, MACHINES);
    s->shape = bz_alloc((size_t)s->n, sizeof *s->shape);
    s->log = bz_alloc((size_t)s->n * MACHINES, sizeof *s->log);
    for (int m = 0; m < MACHINES; m++)
        s->machine[m] = (bz_machine){.gpu = true,
                                     .f32 = 1e12 * pow(2, m),
                                     .vouched = 1,
                                     .clock = 1e9,
                                     .multiprocessors = 10,
                                     .bandwidth = 1e11 * pow(1.5, m),
                                     .floor = 5e-6};
    for (int i = 0; i < s->n; i++) {
        char text[128];
        bz_problem p;
        int channels = 16 + i * 7 % 97 * 4, size = 7 << i % 4;
        snprintf(text, sizeof text,
                 i < PROBLEMS ? "conv x=1x%dx%dx%d w=64x%dx1x1 dtype=f32"
                              : "pool mode=max x=1x%dx%dx%d kernel=2x2 dtype=f32",
                 channels, size, size, channels);
        assert_int_equal(bz_problem_parse(text, &p, NULL), 0);
        bz_shape_of(&p, &s->shape[i]);
        for (int m = 0; m < MACHINES; m++)
            s->log[i * MACHINES + m] =
                log(bz_shape_roofline(&s->shape[i], &s->machine[m], 5e-6, 1)) + factor(&s->shape[i], &s->machine[m]);
    }
}

/* Every fifth problem is not known. Without a network their times would be off by 0.4 (the mean of what they differ from their roofline by). */
static void what_it_never_saw(void **state)
{
    (void)state;
    bz_samples s;
    bool known[PROBLEMS + POOLS];
    double off = 0;
    int n = 0;
    make(&s);
    for (int i = 0; i < s.n; i++)
        known[i] = i % 5 != 0;
    bz_dense *d = bz_dense_new(&s, NULL, known, 1), *again = bz_dense_new(&s, NULL, known, 1);
    for (int i = 0; i < s.n; i++)
        for (int m = 0; m < MACHINES; m++) {
            double is = bz_samples_log(&s, i, m), told = bz_dense_log(d, &s.shape[i], &s.machine[m], 5e-6);
            assert_true(told == bz_dense_log(again, &s.shape[i], &s.machine[m], 5e-6));
            if (i >= PROBLEMS) /* too few to learn from */
                assert_true(fabs(told - (is - factor(&s.shape[i], &s.machine[m]))) < 1e-9);
            else if (!known[i])
                off += fabs(told - is), n++;
        }
    assert_true(off / n < 0.05);
    bz_dense_free(d);
    bz_dense_free(again);
    bz_samples_free(&s);
}

/* A machine that teaches nothing changes nothing. */
static void of_machines_in_use(void **state)
{
    (void)state;
    bz_samples s;
    bool use[MACHINES] = {true, true, true};
    make(&s);
    bz_dense *d = bz_dense_new(&s, use, NULL, 1);
    for (int i = 0; i < s.n; i++)
        s.log[i * MACHINES + MACHINES - 1] += 1;
    bz_dense *again = bz_dense_new(&s, use, NULL, 1);
    assert_true(bz_dense_log(d, &s.shape[3], &s.machine[3], 5e-6) ==
                bz_dense_log(again, &s.shape[3], &s.machine[3], 5e-6));
    bz_dense_free(d);
    bz_dense_free(again);
    bz_samples_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_it_never_saw), cmocka_unit_test(of_machines_in_use)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
