/* What processors differ by beside their rates: algorithms that some have, and functions that are arithmetic. */
#include "predict/evaluate.h"
#include "predict/predictor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MACHINES = 3, SIZES = 8, SORTS = 3, PROBLEMS = SIZES * SORTS };

static const char *const SORT[SORTS] = {
    "conv x=1x%dx14x14 w=%dx%dx3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
    "conv x=1x%dx14x14 w=%dx%dx1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32",
    "conv x=1x%dx14x14 w=%dx%dx3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32"};

/* Two processors with AVX-512, the last one without. All reach the same share of their rooflines, but those with it do convolutions of 3 by 3 without steps
 * in half the time, by another algorithm. */
static void make(bz_samples *s, char text[][128])
{
    *s = (bz_samples){.machines = MACHINES, .n = PROBLEMS};
    s->machine = BZ_NEW(&s->arena, bz_machine, MACHINES);
    s->text = bz_alloc(PROBLEMS, sizeof *s->text);
    s->shape = bz_alloc(PROBLEMS, sizeof *s->shape);
    s->log = bz_alloc(PROBLEMS * MACHINES, sizeof *s->log);
    s->direct = bz_alloc(PROBLEMS * MACHINES, sizeof *s->direct);
    for (int m = 0; m < MACHINES; m++)
        s->machine[m] = (bz_machine){.name = "machine",
                                     .f32 = 1e11 * (m + 1),
                                     .vouched = 1,
                                     .clock = 1e9,
                                     .multiprocessors = 1,
                                     .bandwidth = 2e10,
                                     .generation = m < 2 ? 2 : 1,
                                     .launch = 1e-7,
                                     .floor = 1e-7};
    for (int i = 0; i < PROBLEMS; i++) {
        bz_problem p;
        int channels = 16 * (1 + i / SORTS);
        snprintf(text[i], 128, SORT[i % SORTS], channels, channels, channels); /* NOLINT: rows of a table above */
        assert_int_equal(bz_problem_parse(text[i], &p, NULL), 0);
        bz_shape_of(&p, &s->shape[i]);
        assert_int_equal(s->shape[i].transformable, i % SORTS == 0);
        s->text[i] = text[i];
        bz_map_add(&s->map, text[i], strlen(text[i]), (uint32_t)i);
        for (int m = 0; m < MACHINES; m++) {
            double is = log(bz_shape_roofline(&s->shape[i], &s->machine[m], 1e-7, 1)) + 0.3;
            s->direct[i * MACHINES + m] = is;
            s->log[i * MACHINES + m] = is - (m < 2 && i % SORTS == 0 ? log(2) : 0);
        }
    }
}

/* Each processor from the other two: one without the algorithm by what theirs take without it, one with it by the other that has it. */
static void algorithms_that_some_have(void **state)
{
    (void)state;
    static char text[PROBLEMS][128];
    bz_samples s;
    make(&s, text);
    for (int d = 0; d < MACHINES; d++) {
        bool use[MACHINES];
        for (int m = 0; m < MACHINES; m++)
            use[m] = m != d;
        bz_predictor *p = bz_predictor_new(&s, use, NULL, NULL);
        bz_aim *a = bz_predictor_aim(p, &s.machine[d], NULL, -1, NULL);
        assert_int_equal(bz_aim_beyond(a), d == 2 ? -1 : 0);
        for (int i = 0; i < PROBLEMS; i++) {
            double off = fabs(log(bz_predict(a, s.text[i], &s.shape[i]).seconds) - bz_samples_log(&s, i, d));
            assert_true(
                off < (d == 2 ? 1e-6 : 0.25)); /* the third machine's ridge is a guess where its records do not count */
        }
        bz_predictor_forget(p); /* what was learned keeps both apart, too */
        bz_aim *learned = bz_predictor_aim(p, &s.machine[d], NULL, -1, NULL);
        for (int i = 0; i < PROBLEMS; i++) {
            double off = fabs(log(bz_predict(learned, NULL, &s.shape[i]).seconds) - bz_samples_log(&s, i, d));
            assert_true(off < 0.25);
        }
        bz_aim_free(learned);
        bz_aim_free(a);
        bz_predictor_free(p);
    }
    bz_samples_free(&s);
}

static bz_shape shape_of(const char *text)
{
    bz_problem p;
    bz_shape s;
    assert_int_equal(bz_problem_parse(text, &p, NULL), 0);
    bz_shape_of(&p, &s);
    return s;
}

/* A series is arithmetic: a processor of twice the rate does it in half the time, though its memory is the same. */
static void functions_that_are_arithmetic(void **state)
{
    (void)state;
    bz_machine slow = {.f32 = 1e11, .vouched = 1, .clock = 1e9, .bandwidth = 1e11}, fast = slow;
    fast.f32 *= 2;
    static const char *const SERIES[] = {"activation fn=erf x=1x128x768 dtype=f32",
                                         "softmax x=12x128x128 axis=2 dtype=f32"},
                             *const MOVED[] = {"activation fn=relu x=1x128x768 dtype=f32",
                                               "binary fn=add a=1x128x768 b=1x128x768 dtype=f32"};
    for (int i = 0; i < 2; i++) {
        bz_shape s = shape_of(SERIES[i]), m = shape_of(MOVED[i]);
        assert_true(bz_shape_roofline(&s, &slow, 0, 1) > 1.7 * bz_shape_roofline(&s, &fast, 0, 1));
        assert_true(bz_shape_roofline(&m, &slow, 0, 1) == bz_shape_roofline(&m, &fast, 0, 1));
    }
    assert_int_not_equal(shape_of(SERIES[0]).kind, shape_of(MOVED[0]).kind);
    assert_string_equal(bz_shape_kind_name(shape_of(SERIES[0]).kind), "activation-series");
}

/* One processor alone teaches f32 and nothing else, and leaves nothing out. */
static void what_nobody_has_met(void **state)
{
    (void)state;
    static char text[PROBLEMS][128];
    bz_samples s;
    make(&s, text);
    bool use[MACHINES] = {true};
    bz_predictor *p = bz_predictor_new(&s, use, NULL, NULL);
    assert_true(bz_predictor_met_type(p, BZ_F32));
    assert_false(bz_predictor_met_type(p, BZ_BF16));
    bz_aim *a = bz_predictor_aim(p, &s.machine[1], NULL, -1, NULL);
    bz_shape other = shape_of("conv x=1x16x14x14 w=16x16x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=bf16");
    assert_true(bz_predict(a, NULL, &other).spread > 1.4 && bz_predict(a, NULL, &s.shape[0]).spread < 0.5);
    bz_aim_free(a);
    bz_predictor_free(p);
    int problem[] = {0, 1, 2}, times[] = {1, 1, 1};
    bz_workload work[] = {{.name = "a", .batch = 1, .n = 3, .problem = problem, .times = times},
                          {.name = "a", .batch = 2, .n = 3, .problem = problem, .times = times}};
    assert_null(bz_judge_missing(&s, work, 2, BZ_LEAVE_SYSTEM));
    assert_null(bz_judge_missing(&s, work, 2, BZ_LEAVE_BATCH));
    assert_non_null(bz_judge_missing(&s, work, 2, BZ_LEAVE_NETWORK));
    assert_non_null(bz_judge_missing(&s, work, 2, BZ_LEAVE_BOTH));
    s.machines = 1; /* as if of each row the first machine alone were there */
    assert_non_null(bz_judge_missing(&s, work, 2, BZ_LEAVE_SYSTEM));
    assert_non_null(bz_judge_missing(&s, work, 1, BZ_LEAVE_BATCH));
    s.machines = MACHINES;
    /* both batches run the same problems: nothing is left out with one of them */
    bz_arena arena = {0};
    bz_judgement judgement;
    bz_judge(&s, work, 2, BZ_LEAVE_BATCH, (bz_few){0}, NULL, &arena, &judgement);
    assert_non_null(judgement.missing);
    bz_arena_free(&arena);
    bz_samples_free(&s);
}

/* Something is left out where as much as predicts it stays: of networks or batches one more, of systems one more of the sort and 20 records of
 * this one, of both three networks. */
static void what_can_be_left_out(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"a", "b", "c", "d"};
    double log[2 * 2 * PROBLEMS];
    for (int networks = 1; networks <= 4; networks++)
        for (int batches = 1; batches <= 3; batches++) {
            bz_samples none = {.log = log};
            bz_workload work[12];
            int n = 0;
            for (int b = 0; b < batches; b++)
                for (int k = 0; k < networks; k++)
                    work[n++] = (bz_workload){.name = NAMES[k], .batch = 1 << b};
            const char *why = bz_judge_missing(&none, work, n, BZ_LEAVE_NETWORK);
            assert_true(networks > 1 ? !why : strstr(why, "one network") != NULL);
            why = bz_judge_missing(&none, work, n, BZ_LEAVE_BATCH);
            assert_true(batches > 1 ? !why : strstr(why, "one batch") != NULL);
            for (int machines = 1; machines <= 2; machines++)
                for (int records = 19; records <= 20; records++)
                    for (int others = 0; others <= 1; others++)
                        for (int gpu = 0; gpu < 2; gpu++) {
                            bz_machine machine[2] = {{.gpu = gpu > 0}, {.gpu = false}};
                            bz_samples s = {.n = 20, .machine = machine, .machines = machines, .log = log};
                            for (int i = 0; i < s.n; i++)
                                for (int m = 0; m < machines; m++)
                                    log[i * machines + m] = i < (m ? others : records) ? -9 : NAN;
                            bool can = machines == 2 && records == 20 && others && !gpu;
                            assert_int_equal(!bz_judge_missing(&s, work, n, BZ_LEAVE_SYSTEM), can);
                            assert_int_equal(!bz_judge_missing(&s, work, n, BZ_LEAVE_TRAINED), can);
                            assert_int_equal(!bz_judge_missing(&s, work, n, BZ_LEAVE_BOTH), can && networks >= 3);
                        }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(algorithms_that_some_have),
                                       cmocka_unit_test(functions_that_are_arithmetic),
                                       cmocka_unit_test(what_nobody_has_met), cmocka_unit_test(what_can_be_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
