/* The rule of predictions, on machines whose times are known functions of their data sheets. */
#include "predict/evaluate.h"
#include "predict/learned.h"
#include "predict/predictor.h"
#include "runtime/gpus.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MACHINES = 5, PROBLEMS = 60 };

/* Machine m has twice the rate of the one before it; libraries reach a share of its roofline that depends on the shape, and
 * alike on all. */
static void make(bz_samples *s, char text[][128])
{
    *s = (bz_samples){.machines = MACHINES, .n = PROBLEMS};
    s->machine = BZ_NEW(&s->arena, bz_machine, MACHINES);
    s->text = bz_alloc(PROBLEMS, sizeof *s->text);
    s->shape = bz_alloc(PROBLEMS, sizeof *s->shape);
    s->log = bz_alloc(PROBLEMS * MACHINES, sizeof *s->log);
    for (int m = 0; m < MACHINES; m++)
        s->machine[m] = (bz_machine){.name = "machine",
                                     .gpu = true,
                                     .f32 = 1e12 * pow(2, m),
                                     .vouched = 1,
                                     .clock = 1e9,
                                     .multiprocessors = 10,
                                     .bandwidth = 1e11 * pow(2, m),
                                     .generation = 1,
                                     .floor = 5e-6};
    for (int i = 0; i < PROBLEMS; i++) {
        bz_problem p;
        int channels = 8 << i % 5, size = 7 << i / 5 % 4, batch = 1 << i / 20;
        snprintf(text[i], 128, "conv x=%dx%dx%dx%d w=%dx%dx3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
                 batch, channels, size, size, channels, channels);
        assert_int_equal(bz_problem_parse(text[i], &p, NULL), 0);
        bz_shape_of(&p, &s->shape[i]);
        s->text[i] = text[i];
        bz_map_add(&s->map, text[i], strlen(text[i]), (uint32_t)i);
        for (int m = 0; m < MACHINES; m++)
            s->log[i * MACHINES + m] =
                log(bz_shape_roofline(&s->shape[i], &s->machine[m], 5e-6, 1)) + 0.2 * sin(s->shape[i].x[1]) + 0.5;
    }
}

/* What all machines have in common is told exactly of the one that was left out. */
static void a_machine_like_the_others(void **state)
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
        for (int i = 0; i < PROBLEMS; i++) {
            bz_predicted_time is = bz_predict(a, s.text[i], &s.shape[i]);
            assert_int_equal(is.by, BZ_PREDICTED_NEIGHBOURS);
            assert_true(fabs(log(is.seconds) - bz_samples_log(&s, i, d)) < 1e-6);
        }
        bz_aim_free(a);
        bz_predictor_free(p);
    }
    bz_samples_free(&s);
}

/* Times of these machines follow their peak alone, which the rule does not know: their bandwidths have no order. `way`: what is chosen where so many tell. */
static void scaled_by_peak(const char *way, bool validated, int machines)
{
    static char text[PROBLEMS][128];
    static const double BANDWIDTH[MACHINES] = {3e11, 4e10, 5e11, 2e10, 9e10};
    bz_samples s;
    bool use[MACHINES] = {false};
    make(&s, text);
    for (int m = 0; m < MACHINES; m++) {
        s.machine[m].bandwidth = BANDWIDTH[m];
        use[m] = m < machines;
        for (int i = 0; i < PROBLEMS; i++)
            s.log[i * MACHINES + m] = 25 + 0.1 * i - log(s.machine[m].f32);
    }
    bz_predictor *p = bz_predictor_new(&s, use, NULL, NULL);
    bz_choice choice = bz_predictor_choice(p, true, s.shape[0].kind);
    assert_string_equal(bz_way_name(choice.way), way);
    assert_int_equal(choice.validated, validated);
    bz_machine to = s.machine[1];
    to.f32 = 7e12;
    to.bandwidth = 6e11;
    bz_aim *a = bz_predictor_aim(p, &to, NULL, -1, NULL);
    bool all = true;
    for (int i = 0; i < PROBLEMS; i++) {
        bz_predicted_time is = bz_predict(a, s.text[i], &s.shape[i]);
        assert_int_equal(is.by, choice.way ? BZ_PREDICTED_SCALED : BZ_PREDICTED_NEIGHBOURS);
        all &= fabs(log(is.seconds) - 25 - 0.1 * i + log(7e12)) < 1e-6;
    }
    assert_int_equal(all, choice.way != 0);
    assert_int_equal(bz_predict(a, NULL, &s.shape[0]).by, BZ_PREDICTED_LEARNED); /* there is no record to scale from */
    bz_aim_free(a);
    bz_predictor_free(p);
    bz_samples_free(&s);
}

/* Another way takes the rule's place where it is surely nearer on five machines, and nowhere else. */
static void a_way_is_chosen(void **state)
{
    static char text[PROBLEMS][128];
    bz_samples s;
    (void)state;
    scaled_by_peak("peak", true, 5);
    scaled_by_peak("rule", false, 4);
    make(&s, text);
    bz_predictor *p = bz_predictor_new(&s, NULL, NULL, NULL);
    bz_choice choice = bz_predictor_choice(p, true, s.shape[0].kind);
    assert_int_equal(choice.way, 0);
    assert_true(choice.validated);
    assert_false(bz_predictor_choice(p, false, s.shape[0].kind).validated);
    const char *const names[] = {"machine"};
    assert_int_equal(bz_predictor_only(p, true, names, 1, NULL), 0);
    bz_predictor_free(p);
    bz_samples_free(&s);
}

/* Shapes that were left out everywhere are told by those around them; a record of one's own is taken as it is. */
static void shapes_between_shapes(void **state)
{
    (void)state;
    static char text[PROBLEMS][128];
    bool known[PROBLEMS];
    bz_samples s;
    double worst = 0;
    make(&s, text);
    for (int i = 0; i < PROBLEMS; i++)
        known[i] = i % 6;
    bz_predictor *p = bz_predictor_new(&s, NULL, known, NULL);
    bz_aim *a = bz_predictor_aim(p, &s.machine[2], &s, 2, known);
    for (int i = 0; i < PROBLEMS; i++) {
        bz_predicted_time is = bz_predict(a, s.text[i], &s.shape[i]);
        double off = fabs(log(is.seconds) - bz_samples_log(&s, i, 2));
        if (known[i]) {
            assert_int_equal(is.by, BZ_PREDICTED_RECORD);
            assert_true(off < 1e-12);
        } else {
            assert_int_equal(is.by, BZ_PREDICTED_LEARNED);
            worst = fmax(worst, off);
        }
    }
    assert_true(worst < 0.15);
    bz_aim_free(a);
    bz_predictor_free(p);
    bz_samples_free(&s);
}

/* What was learned is the same when it was written and read, to the digits that are written. */
static void written_and_read(void **state)
{
    (void)state;
    static char text[PROBLEMS][128];
    bz_samples s;
    bz_buf out = {0};
    bz_error err;
    bz_predictor *again;
    make(&s, text);
    bz_predictor *p = bz_predictor_new(&s, NULL, NULL, NULL);
    bz_predictor_write(p, &out);
    assert_int_equal(bz_predictor_read(out.data, "set", &again, &err), 0);
    bz_machine to = s.machine[2];
    to.generation = 2;
    bz_aim *a = bz_predictor_aim(p, &to, NULL, -1, NULL), *b = bz_predictor_aim(again, &to, NULL, -1, NULL);
    for (int i = 0; i < PROBLEMS; i++)
        assert_true(fabs(log(bz_predict(a, NULL, &s.shape[i]).seconds / bz_predict(b, NULL, &s.shape[i]).seconds)) <
                    1e-3);
    bz_aim_free(a);
    bz_aim_free(b);
    bz_predictor_free(again);
    for (size_t cut = 0; cut < out.len; cut += 97) { /* no part of it is a set */
        char *part = bz_alloc(out.len + 1, 1);
        memcpy(part, out.data, cut);
        part[cut] = 0;
        if (bz_predictor_read(part, "set", &again, &err) == 0)
            bz_predictor_free(again);
        free(part);
    }
    bz_buf_free(&out);
    bz_predictor_free(p);
    bz_samples_free(&s);
}

/* Intervals grow away from the shapes and machines that are known, and shrink near records of one's own. */
static void unsure_far_away(void **state)
{
    (void)state;
    static char text[PROBLEMS][128];
    bool known[PROBLEMS];
    bz_samples s;
    bz_problem far_problem;
    bz_shape far_shape;
    make(&s, text);
    for (int i = 0; i < PROBLEMS; i++)
        known[i] = i % 6;
    assert_int_equal(bz_problem_parse("conv x=1x3000x300x300 w=9x3000x11x11 stride=4x4 pad=0x0x0x0 dilation=1x1 "
                                      "group=1 dtype=f32",
                                      &far_problem, NULL),
                     0);
    bz_shape_of(&far_problem, &far_shape);
    bz_predictor *p = bz_predictor_new(&s, NULL, known, NULL);
    bz_machine other = s.machine[2], later = s.machine[2];
    other.f32 *= 1.5, later.generation = 5;
    bz_aim *own = bz_predictor_aim(p, &s.machine[2], &s, 2, known), *none = bz_predictor_aim(p, &other, NULL, -1, NULL),
           *newer = bz_predictor_aim(p, &later, NULL, -1, NULL);
    double at = bz_predict(own, NULL, &s.shape[0]).spread, without = bz_predict(none, NULL, &s.shape[0]).spread;
    assert_true(at <= without);
    assert_true(bz_predict(own, NULL, &far_shape).spread > 1.5 * at);
    assert_true(bz_predict(none, NULL, &far_shape).spread > without);
    assert_true(bz_predict(newer, NULL, &s.shape[0]).spread > 1.2 * without);
    assert_true(bz_predict(own, text[1], &s.shape[1]).spread == 0);
    bz_aim_free(own);
    bz_aim_free(none);
    bz_aim_free(newer);
    bz_predictor_free(p);
    bz_samples_free(&s);
}

static void what_ships(void **state)
{
    (void)state;
    bz_predictor *p = bz_predictor_shipped();
    assert_non_null(p);
    /* kinds are found by their names, however many others there are */
    static const char *const MET[] = {
        "conv x=1x64x56x56 w=64x64x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
        "gemm m=1 n=1000 k=1024 batch=1 transa=0 transb=1 post=bias dtype=f32",
        "binary fn=add a=1x64x56x56 b=1x64x56x56 dtype=f32", "binary fn=add a=1x64x56x56 b=1x64x1x1 dtype=f32"};
    static const char *const NOT_MET[] = {"layernorm x=8x768 axis=1 dtype=f32"};
    for (size_t i = 0; i < sizeof MET / sizeof *MET + sizeof NOT_MET / sizeof *NOT_MET; i++) {
        bool met = i < sizeof MET / sizeof *MET;
        bz_problem problem;
        bz_shape shape;
        bz_error err;
        if (bz_problem_parse(met ? MET[i] : NOT_MET[i - sizeof MET / sizeof *MET], &problem, &err))
            fail_msg("%s", err.text);
        bz_shape_of(&problem, &shape);
        assert_int_equal(bz_predictor_met(p, &shape), met);
    }
    bz_predictor_free(p);
}

/* A window with holes is not transformed: it takes longer than one of as many products without. */
static void windows_with_holes(void **state)
{
    (void)state;
    static const char *const TEXT[] = {
        "conv x=1x512x100x100 w=512x512x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
        "conv x=1x512x100x100 w=512x512x3x3 stride=1x1 pad=2x2x2x2 dilation=2x2 group=1 dtype=f32",
        "conv x=1x256x50x50 w=256x256x3x3 stride=1x1 pad=5x5x5x5 dilation=5x5 group=1 dtype=f32",
        "conv x=1x256x50x50 w=256x256x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32"};
    static char *const GPU[] = {"v100", "t4", "p100", "rtx-6000"};
    bz_predictor *p = bz_predictor_shipped();
    for (size_t g = 0; g < sizeof GPU / sizeof *GPU; g++) {
        bz_arena arena = {0};
        bz_machine m;
        bz_error err;
        double seconds[4];
        assert_int_equal(bz_machine_named(GPU[g], &arena, &m, &err), 0);
        bz_aim *a = bz_predictor_aim(p, &m, NULL, -1, NULL);
        for (int i = 0; i < 4; i++) {
            bz_problem problem;
            bz_shape shape;
            assert_int_equal(bz_problem_parse(TEXT[i], &problem, &err), 0);
            bz_shape_of(&problem, &shape);
            seconds[i] = bz_predict(a, TEXT[i], &shape).seconds;
        }
        assert_true(seconds[1] > 1.15 * seconds[0]);
        assert_true(seconds[2] > 1.15 * seconds[3]);
        bz_aim_free(a);
        bz_arena_free(&arena);
    }
    bz_predictor_free(p);
}

static void weights_of_neighbours(void **state)
{
    (void)state;
    static char text[PROBLEMS][128];
    bz_samples s;
    bool use[MACHINES] = {true, true, true, true, true};
    double weight[MACHINES], near, far;
    make(&s, text);
    for (int m = 0; m < MACHINES; m++)
        s.machine[m].generation = m;
    bz_machine to = s.machine[1];
    bz_kinship k = {1, 1, 0.02};
    near = bz_neighbours(s.machine, use, MACHINES, &to, &k, NULL, weight);
    double sum = 0;
    for (int m = 0; m < MACHINES; m++)
        sum += weight[m];
    assert_true(fabs(sum - 1) < 1e-9);
    assert_true(weight[1] > 0.9);
    to.generation = 9;
    far = bz_neighbours(s.machine, use, MACHINES, &to, &k, NULL, weight);
    assert_true(far > near);
    assert_true(weight[MACHINES - 1] > 0.7); /* it goes as the newest that is known, not as the mean of all */
    memset(use, 0, sizeof use);
    assert_true(isinf(bz_neighbours(s.machine, use, MACHINES, &to, &k, NULL, weight)));
    bz_samples_free(&s);
}

static void equations_are_solved(void **state)
{
    (void)state;
    enum { N = 12 };
    double a[N * N], f[N * N], x[N], b[N];
    srand(1);
    for (int i = 0; i < N; i++) {
        x[i] = rand() / (double)RAND_MAX;
        for (int j = 0; j < N; j++)
            f[i * N + j] = rand() / (double)RAND_MAX;
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i * N + j] = i == j;
            for (int k = 0; k < N; k++)
                a[i * N + j] += f[i * N + k] * f[j * N + k];
        }
    for (int i = 0; i < N; i++) {
        b[i] = 0;
        for (int j = 0; j < N; j++)
            b[i] += a[i * N + j] * x[j];
    }
    assert_true(bz_cholesky(a, N));
    bz_cholesky_solve(a, N, b);
    for (int i = 0; i < N; i++)
        assert_true(fabs(b[i] - x[i]) < 1e-9);
    double none[] = {0, 0, 0, 0};
    assert_false(bz_cholesky(none, 2));
}

/* The dearest first; then not its neighbours, but what it tells nothing of. */
static void first_what_tells_most(void **state)
{
    (void)state;
    static char text[PROBLEMS][128];
    const bz_shape *shape[PROBLEMS];
    double cost[PROBLEMS];
    int order[PROBLEMS];
    bool seen[PROBLEMS] = {0};
    bz_samples s;
    make(&s, text);
    for (int i = 0; i < PROBLEMS; i++) {
        shape[i] = &s.shape[i];
        cost[i] = i == 17 ? 100 : 1;
    }
    assert_int_equal(bz_most_informative(shape, cost, NULL, PROBLEMS, 10, 0, order), 10);
    assert_int_equal(order[0], 17);
    assert_true(bz_learned_alike(shape[order[1]], shape[17]) < 0.5);
    assert_int_equal(bz_most_informative(shape, cost, NULL, PROBLEMS, PROBLEMS + 5, 0, order), PROBLEMS);
    for (int i = 0; i < PROBLEMS; i++) {
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
    }
    /* within a budget: what does not fit is passed over, and what tells as much in half the time comes first */
    double seconds[PROBLEMS], sum = 0;
    for (int i = 0; i < PROBLEMS; i++)
        seconds[i] = i == 17 ? 100 : i % 2 ? 2 : 1;
    int n = bz_most_informative(shape, cost, seconds, PROBLEMS, PROBLEMS, 12, order);
    for (int i = 0; i < n; i++)
        sum += seconds[order[i]], assert_int_not_equal(order[i], 17);
    assert_true(n > 6 && sum > 11 && sum <= 12);
    assert_int_equal(bz_most_informative(shape, cost, seconds, PROBLEMS, 3, 12, order), 3);
    bz_samples_free(&s);
}

static void machines_by_name(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_machine m;
    bz_error err;
    assert_int_equal(bz_machine_named("t4", &arena, &m, &err), 0);
    assert_true(m.gpu && fabs(m.vouched * m.clock - 585e6) < 1 && fabs(m.bandwidth - 0.88 * 320e9) < 1);
    assert_int_equal(m.capability, 75);
    /* a T4 holds more than its base clock of 585 MHz and less than its 1590; a 2080 Ti has the power for all that it is sold with */
    assert_true(fabs(bz_machine_held(&m, 1.3) - 1.3 * 585 / 1590) < 1e-9);
    assert_int_equal(bz_machine_named("rtx-2080-ti", &arena, &m, &err), 0);
    assert_true(bz_machine_held(&m, 1.3) == 1 && bz_machine_held(&m, 1) < 0.9);
    assert_int_equal(bz_machine_named("no-such-gpu", &arena, &m, &err), -1);
    assert_int_equal(err.code, BZ_USAGE);
    bz_arena_free(&arena);
}

static int described(const char *text, bz_machine *out, bz_error *err)
{
    char path[] = "/tmp/benanza-described.XXXXXX";
    bz_arena arena = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !close(fd));
    int rc = bz_machine_named(path, &arena, out, err);
    unlink(path);
    bz_arena_free(&arena);
    return rc;
}

static const char *const WORK[] = {
    "conv x=8x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x3x3 dilation=1x1 group=1 dtype=f32",
    "conv x=8x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x3x3 dilation=1x1 group=1 dtype=f16",
    "conv x=8x256x14x14 w=256x256x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
    "conv x=8x256x14x14 w=256x256x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f16",
    "conv x=1x512x7x7 w=512x512x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
    "conv x=8x96x56x56 w=96x1x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=96 dtype=f32",
    "conv x=8x96x56x56 w=96x1x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=96 dtype=f16",
    "gemm m=8 n=1000 k=2048 batch=1 transa=0 transb=1 post=bias dtype=f32",
    "gemm m=1 n=4096 k=25088 batch=1 transa=0 transb=1 post=bias dtype=f32",
    "softmax x=8x1000 axis=1 dtype=f32",
    "binary fn=add a=8x256x56x56 b=8x256x56x56 dtype=f32"};
enum { WORKS = sizeof WORK / sizeof *WORK };

static bz_shape shape_of(const char *text)
{
    bz_error err;
    bz_problem problem;
    bz_shape shape;
    assert_int_equal(bz_problem_parse(text, &problem, &err), 0);
    bz_shape_of(&problem, &shape);
    return shape;
}

static bz_predicted_time time_on(const bz_predictor *p, const bz_machine *m, const char *text)
{
    bz_shape shape = shape_of(text);
    bz_aim *a = bz_predictor_aim(p, m, NULL, -1, NULL);
    bz_predicted_time is = bz_predict(a, text, &shape);
    bz_aim_free(a);
    assert_true(isfinite(is.seconds) && is.seconds > 0 && isfinite(is.spread) && is.spread > 0);
    return is;
}

/* Where nothing else changes nothing takes longer on a machine that has more of something: more multiprocessors at the same clock, a higher
 * clock, more bandwidth; also far beyond all machines that are known. */
static void more_of_a_machine(void **state)
{
    (void)state;
    static const int CAPABILITY[] = {37, 52, 61, 70, 75, 80, 90, 100};
    bz_predictor *p = bz_predictor_shipped();
    for (size_t c = 0; c < sizeof CAPABILITY / sizeof *CAPABILITY; c++)
        for (size_t i = 0; i < WORKS; i++)
            for (int more = 0; more < 3; more++) {
                double before = INFINITY;
                for (double times = 0.25; times <= 16; times *= 2) {
                    char text[256];
                    bz_machine m;
                    bz_error err;
                    double sms = 40 * (more == 0 ? times : 1), clock = 1500 * (more == 1 ? times : 1);
                    snprintf(text, sizeof text,
                             "multiprocessors %g\nclock %g\nbase %g\nf32 %g\nf16 %g\nbandwidth %g\ncapability %g\n",
                             sms, clock, 0.7 * clock, 128e-6 * sms * clock, 1024e-6 * sms * clock,
                             300 * (more == 2 ? times : 1), CAPABILITY[c] / 10.0);
                    assert_int_equal(described(text, &m, &err), 0);
                    double is = time_on(p, &m, WORK[i]).seconds;
                    assert_true(is > 1e-8 && is <= before * (1 + 1e-12) && is < 1);
                    before = is;
                }
            }
    bz_predictor_free(p);
}

/* Each GPU of the data sheets, whose records nobody has: twice its bandwidth, or twice its units, takes no longer; and one newer than Turing says
 * that it is beyond what was learned, with wider intervals than a V100 but where all is launch. */
static void gpus_of_the_data_sheets(void **state)
{
    (void)state;
    bz_predictor *p = bz_predictor_shipped();
    bz_arena arena = {0};
    bz_gpu row;
    bz_error err;
    bz_machine v100;
    int newer = 0;
    assert_int_equal(bz_machine_named("v100", &arena, &v100, &err), 0);
    for (int g = 0; bz_gpu_row(g, &row); g++) {
        bz_machine m, wide, large;
        assert_int_equal(bz_machine_named(row.slug, &arena, &m, &err), 0);
        wide = large = m;
        wide.bandwidth *= 2;
        large.multiprocessors *= 2, large.f32 *= 2, large.f16 *= 2, large.i8 *= 2;
        bz_aim *a = bz_predictor_aim(p, &m, NULL, -1, NULL);
        assert_int_equal(bz_aim_beyond(a), m.capability > 75);
        bz_aim_free(a);
        newer += m.capability > 75;
        for (size_t i = 0; i < WORKS; i++) {
            bz_predicted_time is = time_on(p, &m, WORK[i]);
            bz_shape shape = shape_of(WORK[i]);
            assert_true(is.seconds > 1e-7 && is.seconds < 1 && is.seconds >= bz_shape_least(&shape, &m));
            assert_true(time_on(p, &wide, WORK[i]).seconds <= is.seconds);
            assert_true(time_on(p, &large, WORK[i]).seconds <= is.seconds);
            bool launch = is.seconds < 1.2 * bz_floor_told(p->machine, p->use, p->machines, &m, NULL);
            assert_true(m.capability <= 75 || launch || is.spread > time_on(p, &v100, WORK[i]).spread);
        }
    }
    assert_true(newer > 20);
    bz_arena_free(&arena);
    bz_predictor_free(p);
}

/* Numbers that no machine has are refused by the line, keys that lack by their names; the least and the most that is taken is still a time. */
static void odd_machines(void **state)
{
    (void)state;
    static const char *const NEEDED[] = {"multiprocessors", "clock", "bandwidth", "f32"},
                             *const ODD[] = {"0", "-4", "nan", "inf", "1e30", "", "many", "4 5"},
                             *const FAR[] = {"2e-6", "9e11"};
    bz_predictor *p = bz_predictor_shipped();
    bz_machine m;
    bz_error err;
    for (size_t k = 0; k < 4; k++) {
        char others[128] = "";
        for (size_t i = 0; i < 4; i++)
            if (i != k)
                snprintf(others + strlen(others), sizeof others - strlen(others), "%s 20\n", NEEDED[i]);
        assert_int_equal(described(others, &m, &err), -1);
        assert_non_null(strstr(err.text, NEEDED[k]));
        for (size_t o = 0; o < sizeof ODD / sizeof *ODD; o++) {
            char text[200];
            snprintf(text, sizeof text, "%s%s %s\n", others, NEEDED[k], ODD[o]);
            assert_int_equal(described(text, &m, &err), -1);
            assert_int_equal(err.code, BZ_BAD_INPUT);
            assert_non_null(strstr(err.text, ":4:"));
        }
        for (size_t f = 0; f < 2; f++) {
            char text[200];
            snprintf(text, sizeof text, "%s%s %s\n", others, NEEDED[k], FAR[f]);
            assert_int_equal(described(text, &m, &err), 0);
            for (size_t i = 0; i < WORKS; i++)
                time_on(p, &m, WORK[i]);
        }
    }
    bz_predictor_free(p);
}

/* Two cores with two units of 512 bits at 2.5 GHz: 2 · 2 · 16 · 2 · 2.5e9 operations a second. */
static void a_described_processor(void **state)
{
    (void)state;
    bz_machine m;
    bz_error err;
    assert_int_equal(described("threads 2\nclock 2500\nvector 512\nunits 2\nbandwidth 20\nlaunch 0.2\n"
                               "cache 48 400\ncache 2048 100\n",
                               &m, &err),
                     0);
    assert_true(!m.gpu && fabs(m.f32 / 320e9 - 1) < 1e-9 && fabs(m.launch - 0.2e-6) < 1e-12);
    assert_true(m.generation > 1.5);
    assert_true(fabs(bz_machine_bandwidth(&m, 1000) - 400e9) < 1 && fabs(bz_machine_bandwidth(&m, 1e9) - 20e9) < 1);
    assert_true(fabs(bz_machine_bandwidth(&m, 48 * 1024 * sqrt(2048 / 48.0)) / 200e9 - 1) < 1e-9); /* between both */
    assert_int_equal(described("threads 1\nf32 0.1\nbandwidth 20\nisa AVX2\n", &m, &err), 0);
    assert_true(m.generation == 1 && bz_machine_bandwidth(&m, 1000) == m.bandwidth);
    static const char *const WRONG[] = {"threads 1\nclock 2500\nbandwidth 20\n",
                                        "threads 1\nf32 0.1\n",
                                        "threads 1\nf32 0.1\nbandwidth 20\nmultiprocessors 4\n",
                                        "threads 1\nf32 0.1\nbandwidth 20\ncache 2048 100\ncache 48 400\n",
                                        "threads 1\nf32 0.1\nbandwidth 20\ncache 48\n",
                                        "multiprocessors 4\nclock 1000\nf32 5\nbandwidth 20\nvector 512\n"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        assert_int_equal(described(WRONG[i], &m, &err), -1);
        assert_int_equal(err.code, BZ_BAD_INPUT);
    }
}

/* Of two processors alike but for their caches one tells the other's times, and a set that was written knows the caches. */
static void processors_by_their_caches(void **state)
{
    (void)state;
    static char text[PROBLEMS][128];
    bz_samples s;
    bz_buf out = {0};
    bz_error err;
    bz_predictor *again;
    make(&s, text);
    for (int m = 0; m < MACHINES; m++) {
        s.machine[m].gpu = false;
        s.machine[m].launch = 5e-6;
        s.machine[m].caches = 2;
        s.machine[m].cache[0] = (struct bz_cache_rate){1e5, 1e12 / (m + 1)};
        s.machine[m].cache[1] = (struct bz_cache_rate){1e7, s.machine[m].bandwidth};
        for (int i = 0; i < PROBLEMS; i++)
            s.log[i * MACHINES + m] = log(bz_shape_roofline(&s.shape[i], &s.machine[m], 5e-6, 1)) + 0.3;
    }
    bool use[MACHINES] = {true};
    bz_predictor *p = bz_predictor_new(&s, use, NULL, NULL), *all = bz_predictor_new(&s, NULL, NULL, NULL);
    bz_predictor_write(all, &out);
    assert_int_equal(bz_predictor_read(out.data, "set", &again, &err), 0);
    bz_aim *a = bz_predictor_aim(p, &s.machine[3], NULL, -1, NULL);
    bz_aim *b = bz_predictor_aim(again, &s.machine[3], NULL, -1, NULL);
    for (int i = 0; i < PROBLEMS; i++) {
        double is = bz_samples_log(&s, i, 3);
        assert_true(fabs(log(bz_predict(a, text[i], &s.shape[i]).seconds) - is) < 1e-6);
        assert_true(fabs(log(bz_predict(b, text[i], &s.shape[i]).seconds) - is) < 0.02);
    }
    bz_aim_free(a);
    bz_aim_free(b);
    bz_predictor_free(p);
    bz_predictor_free(all);
    bz_predictor_free(again);
    bz_buf_free(&out);
    bz_samples_free(&s);
}

/* A machine without the memory for large batches: what libraries make of a shape there goes on from its small ones, and as it does on the
 * machines that have both. */
static void batches_that_do_not_fit(void **state)
{
    (void)state;
    enum { SIZES = 4, BATCHES = 8 };
    bz_samples s = {.machines = 3};
    double truth[SIZES * BATCHES];
    s.machine = BZ_NEW(&s.arena, bz_machine, 3);
    s.text = bz_alloc(SIZES * BATCHES, sizeof *s.text);
    s.shape = bz_alloc(SIZES * BATCHES, sizeof *s.shape);
    s.log = bz_alloc(SIZES * BATCHES * 3, sizeof *s.log);
    s.family = bz_alloc(SIZES * BATCHES, sizeof *s.family);
    s.next = bz_alloc(SIZES * BATCHES, sizeof *s.next);
    s.items = bz_alloc(SIZES * BATCHES, sizeof *s.items);
    for (int m = 0; m < 3; m++) /* the target is like machine 1, which has small batches alone */
        s.machine[m] = (bz_machine){.name = "machine",
                                    .gpu = true,
                                    .f32 = 1e12,
                                    .vouched = 1,
                                    .clock = 1e9,
                                    .multiprocessors = 10,
                                    .bandwidth = 1e11,
                                    .generation = m == 0 ? 0 : 3,
                                    .floor = 5e-6};
    for (; s.n < SIZES * BATCHES; s.n++) {
        bz_problem p;
        int size = 7 << s.n / BATCHES, batch = 1 << s.n % BATCHES;
        s.text[s.n] = bz_arena_printf(&s.arena,
                                      "conv x=%dx64x%dx%d w=64x64x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 "
                                      "dtype=f32",
                                      batch, size, size);
        assert_int_equal(bz_problem_parse(s.text[s.n], &p, NULL), 0);
        assert_true(bz_problem_items(&p) == batch);
        bz_shape_of(&p, &s.shape[s.n]);
        bz_samples_join(&s, s.n, &p);
        assert_int_equal(s.family[s.n], s.n / BATCHES * BATCHES);
        double roofline = log(bz_shape_roofline(&s.shape[s.n], &s.machine[0], 5e-6, 1));
        double with_batch = 0.3 * sin(s.n % BATCHES), apart = s.n / BATCHES % 2 ? 0.5 : -0.5;
        s.log[s.n * 3] = roofline + with_batch;
        truth[s.n] = roofline + with_batch + apart;
        s.log[s.n * 3 + 1] = batch <= 8 ? truth[s.n] : NAN;
        s.log[s.n * 3 + 2] = NAN;
        bz_map_add(&s.map, s.text[s.n], strlen(s.text[s.n]), (uint32_t)s.n);
    }
    bool use[] = {true, true, false};
    bz_predictor *p = bz_predictor_new(&s, use, NULL, NULL);
    for (int i = 0; i < s.n; i++) {
        bool fits = s.items[i] <= 8;
        double told = bz_predictor_batches(p, use, s.family[i], s.items[i], i, 1);
        double is = truth[i] - bz_predictor_roofline(p, &s.shape[i], &s.machine[1], 5e-6);
        assert_true(fits || fabs(told - is) < 1e-9);
        assert_true(isnan(bz_predictor_batches(p, use, s.family[i], s.items[i], i, 2)));
    }
    bz_aim *a = bz_predictor_aim(p, &s.machine[2], NULL, -1, NULL);
    assert_int_equal(bz_predict(a, s.text[BATCHES - 1], &s.shape[BATCHES - 1]).by, BZ_PREDICTED_BATCHES);
    assert_int_equal(bz_predict(a, s.text[1], &s.shape[1]).by, BZ_PREDICTED_NEIGHBOURS);
    bz_aim_free(a);
    bz_predictor_free(p);
    bz_samples_free(&s);
}

/* How unsure a problem is by itself where every second one of a machine is measured, and those differ from their neighbours by so much up or down. */
static double alone_of(double off)
{
    static char text[PROBLEMS][128];
    bz_samples s;
    bool measured[PROBLEMS];
    make(&s, text);
    for (int i = 0; i < PROBLEMS; i++) {
        measured[i] = i % 2;
        s.log[i * MACHINES + 2] += i * 37 % 11 < 5 ? off : -off;
    }
    bz_predictor *p = bz_predictor_new(&s, NULL, NULL, NULL);
    bz_aim *a = bz_predictor_aim(p, &s.machine[2], &s, 2, measured),
           *none = bz_predictor_aim(p, &s.machine[2], NULL, -1, NULL);
    double is = bz_predict(a, s.text[0], &s.shape[0]).alone;
    assert_true(bz_predict(a, s.text[1], &s.shape[1]).alone == 0);
    assert_true(bz_predict(none, s.text[0], &s.shape[0]).alone == 0);
    bz_aim_free(a);
    bz_aim_free(none);
    bz_predictor_free(p);
    bz_samples_free(&s);
    return is * BZ_NINE_OF_TEN / 1.64;
}

/* Records that others tell badly say so: by a standard deviation of about what they differ by. */
static void off_by_themselves(void **state)
{
    (void)state;
    double none = alone_of(0), some = alone_of(0.1), more = alone_of(0.3);
    assert_true(none < 0.01 && some > 0.08 && some < 0.25 && fabs(more / some - 3) < 0.3);
}

/* By how much a shape far from all others changes where so many problems of a machine are measured, which all take twice what its neighbours tell; as a
 * share of that. */
static double believed(int records)
{
    static char text[PROBLEMS][128];
    bz_samples s;
    bool measured[PROBLEMS];
    make(&s, text);
    for (int i = 0; i < PROBLEMS; i++) {
        measured[i] = i < records;
        s.log[i * MACHINES + 2] += log(2);
    }
    bool use[MACHINES] = {true, true, false, true, true};
    bz_predictor *p = bz_predictor_new(&s, use, NULL, NULL);
    bz_aim *a = bz_predictor_aim(p, &s.machine[2], &s, 2, measured),
           *none = bz_predictor_aim(p, &s.machine[2], NULL, -1, NULL);
    bz_shape far =
        shape_of("conv x=1x3000x300x300 w=9x3000x11x11 stride=4x4 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32");
    double shift = log(bz_predict(a, NULL, &far).seconds / bz_predict(none, NULL, &far).seconds) / log(2);
    bz_aim_free(a);
    bz_aim_free(none);
    bz_predictor_free(p);
    bz_samples_free(&s);
    return shift;
}

/* One record may be off by itself: half of what it says, or little more, is believed of all others. */
static void of_few_records_less(void **state)
{
    (void)state;
    assert_true(believed(1) > 0.4 && believed(1) < 0.75);
    assert_true(believed(3) > believed(1));
    assert_true(believed(40) > 0.95);
}

/* Arithmetic of half precision, without a floor, on a machine whose memory is next to nothing. */
static double half_time(int capability, const char *channels, const char *window, const char *dtype)
{
    bz_machine m = {.gpu = true,
                    .f32 = 1e12,
                    .f16 = 8e12,
                    .vouched = 1,
                    .clock = 1e9,
                    .multiprocessors = 1,
                    .bandwidth = 1e18,
                    .capability = capability};
    char text[160];
    bz_problem p;
    bz_shape s;
    snprintf(text, sizeof text, "conv x=4x%sx64x64 w=64x%sx%s stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 dtype=%s",
             channels, channels, window, dtype);
    assert_int_equal(bz_problem_parse(text, &p, NULL), 0);
    bz_shape_of(&p, &s);
    return bz_shape_roofline(&s, &m, 0, 1) / s.flops;
}

/* Tensor cores want channels by eights, until Ampere's libraries, and transform nothing. */
static void what_tensor_cores_do_not(void **state)
{
    (void)state;
    double full = half_time(75, "64", "1x1", "f16"), f32 = half_time(75, "64", "1x1", "f32");
    assert_true(full < f32 / 2);
    assert_true(fabs(half_time(75, "3", "7x7", "f16") / f32 - 1) < 1e-3);
    assert_true(fabs(half_time(86, "3", "7x7", "f16") / full - 1) < 1e-3);
    assert_true(fabs(half_time(75, "64", "3x3", "f16") / full - 2.25) < 1e-3);
    assert_true(fabs(half_time(75, "64", "3x3", "f32") / f32 - 1) < 1e-3);
    assert_true(half_time(60, "3", "3x3", "f16") < f32 / 7); /* no tensor cores, but pairs of halves */
}

/* A type goes at its own rate. One without a unit goes as f32 does, and f64 where nobody told its rate takes twice as long. */
static void rates_of_types(void **state)
{
    (void)state;
    static const struct {
        const char *dtype;
        double f64, bf16, slower;
    } CASES[] = {{"f64", 0.25e12, 0, 4}, {"f64", 0, 0, 2}, {"bf16", 0, 0, 1}, {"bf16", 0, 8e12, 0.125}};
    bz_arena arena = {0};
    bz_machine t4, a100;
    bz_error err;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_machine m = {
            .gpu = true, .f32 = 1e12, .f64 = CASES[i].f64, .f16 = 8e12, .bf16 = CASES[i].bf16, .capability = 60};
        bz_shape s, f32;
        char text[64];
        bz_problem p;
        snprintf(text, sizeof text, "gemm m=256 n=256 k=256 batch=1 transa=0 transb=1 dtype=%s", CASES[i].dtype);
        assert_int_equal(bz_problem_parse(text, &p, NULL), 0);
        bz_shape_of(&p, &s);
        f32 = s, f32.dtype = BZ_F32;
        m.vouched = 1, m.clock = 1e9, m.multiprocessors = 1, m.bandwidth = 1e18;
        double is = bz_shape_roofline(&s, &m, 0, 1) / bz_shape_roofline(&f32, &m, 0, 1);
        assert_true(fabs(is / CASES[i].slower - 1) < 1e-3);
    }
    assert_int_equal(bz_machine_named("t4", &arena, &t4, &err), 0);
    assert_int_equal(bz_machine_named("a100-40", &arena, &a100, &err), 0);
    assert_true(t4.bf16 == 0 && t4.f64 < t4.f32 / 30 && a100.bf16 == a100.f16 && a100.memory == 40e9);
    bz_arena_free(&arena);
}

/* Batches far beyond all that are known take longer by their items alone. */
static void more_items_than_known(void **state)
{
    (void)state;
    static const char *const KIND[] = {"conv", "activation fn=relu"},
                             *const REST[] = {"w=64x64x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
                                              "dtype=f32"};
    bz_predictor *p = bz_predictor_shipped();
    bz_arena arena = {0};
    bz_machine m;
    bz_error err;
    assert_int_equal(bz_machine_named("p100", &arena, &m, &err), 0);
    for (size_t i = 0; i < 2; i++) {
        double each = 0;
        for (int items = 8192; items <= 1 << 17; items *= 4) {
            char text[160];
            snprintf(text, sizeof text, "%s x=%dx64x224x224 %s", KIND[i], items, REST[i]);
            double is = time_on(p, &m, text).seconds / items;
            assert_true(each == 0 || fabs(is / each - 1) < 0.02);
            each = is;
        }
    }
    bz_arena_free(&arena);
    bz_predictor_free(p);
}

/* A processor's records tell nothing of a GPU, and the other way round. */
static void of_the_other_sort(void **state)
{
    (void)state;
    static char text[PROBLEMS][128];
    static const char *const CPU[] = {"cpu"}, *const GPU[] = {"machine"};
    bz_samples s;
    bz_error err;
    make(&s, text);
    s.machine[4].gpu = false, s.machine[4].name = "cpu";
    bz_predictor *p = bz_predictor_new(&s, NULL, NULL, NULL);
    assert_int_equal(bz_predictor_only(p, true, CPU, 1, &err), -1);
    assert_non_null(strstr(err.text, "a processor tells nothing of GPUs"));
    assert_int_equal(bz_predictor_only(p, false, GPU, 1, &err), -1);
    assert_non_null(strstr(err.text, "a GPU tells nothing of processors"));
    assert_int_equal(bz_predictor_only(p, true, GPU, 1, &err), 0);
    bz_predictor_free(p);
    bz_samples_free(&s);
}

/* A call that is all launch is as unsure as launches differ, however sure the rest is; and not where somebody told its time. */
static void floors_that_differ(void **state)
{
    (void)state;
    static char text[PROBLEMS][128];
    static const double CLOCKS[MACHINES] = {8000, 9000, 11000, 12000, 14000};
    bz_samples s;
    make(&s, text);
    for (int m = 0; m < MACHINES; m++)
        s.machine[m].floor = CLOCKS[m] / s.machine[m].clock;
    bz_predictor *p = bz_predictor_new(&s, NULL, NULL, NULL);
    bz_machine to = s.machine[2], told = to;
    to.f32 *= 1e6, to.bandwidth *= 1e6, to.name = "new";
    told = to, told.launch = 11e-6;
    bz_aim *a = bz_predictor_aim(p, &to, NULL, -1, NULL), *b = bz_predictor_aim(p, &told, NULL, -1, NULL);
    double differ = 0.219 * sqrt(1.2) * 1.64; /* of one more draw: those of CLOCKS have a deviation of 0.219 */
    double is = BZ_NINE_OF_TEN * bz_predict(a, NULL, &s.shape[0]).spread;
    assert_true(is > 0.9 * differ && is < 1.4 * differ);
    assert_true(bz_predict(b, NULL, &s.shape[0]).spread < 0.7 * is / BZ_NINE_OF_TEN);
    bz_aim_free(a), bz_aim_free(b);
    bz_predictor_free(p);
    bz_samples_free(&s);
}

/* Where a convolution has fewer tiles than multiprocessors more of them, and tensor cores, do not help; a higher clock does, and more tiles need all. */
static void fewer_tiles_than_multiprocessors(void **state)
{
    (void)state;
    static const char
        *const SMALL = "conv x=1x512x7x7 w=512x512x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
               *const HALF = "conv x=1x512x7x7 w=512x512x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f16",
               *const LARGE = "conv x=64x512x28x28 w=512x512x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32";
    bz_machine one = {.gpu = true,
                      .f32 = 15e12,
                      .f16 = 120e12,
                      .vouched = 1,
                      .clock = 1.5e9,
                      .multiprocessors = 80,
                      .bandwidth = 1e15,
                      .capability = 70},
               two = one, fast = one;
    two.f32 *= 2, two.f16 *= 2, two.multiprocessors *= 2;
    fast.f32 *= 2, fast.f16 *= 2, fast.clock *= 2;
    const bz_shape small = shape_of(SMALL), half = shape_of(HALF), large = shape_of(LARGE);
    double is = bz_shape_roofline(&small, &one, 0, 1);
    assert_true(bz_shape_roofline(&small, &two, 0, 1) > 0.95 * is);
    assert_true(bz_shape_roofline(&half, &one, 0, 1) > 0.9 * is);
    assert_true(fabs(bz_shape_roofline(&small, &fast, 0, 1) / is - 0.5) < 0.01);
    assert_true(bz_shape_roofline(&large, &two, 0, 1) < 0.55 * bz_shape_roofline(&large, &one, 0, 1));
}

/* Who knows what an empty call takes says so: data sheets do not tell it. */
static void a_launch_that_is_known(void **state)
{
    (void)state;
    static const char SHEET[] = "multiprocessors 40\nclock 1500\nf32 8\nbandwidth 300\ncapability 7.5\n",
                      RELU[] = "activation fn=relu x=1x64x7x7 dtype=f32";
    bz_predictor *p = bz_predictor_shipped();
    bz_machine m, told;
    bz_error err;
    char text[160];
    snprintf(text, sizeof text, "%slaunch 20\n", SHEET);
    assert_int_equal(described(SHEET, &m, &err), 0);
    assert_int_equal(described(text, &told, &err), 0);
    assert_true(fabs(told.launch - 20e-6) < 1e-12 && m.launch == 0);
    assert_true(time_on(p, &told, RELU).seconds > 2 * time_on(p, &m, RELU).seconds);
    bz_predictor_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_machine_like_the_others),
                                       cmocka_unit_test(a_way_is_chosen),
                                       cmocka_unit_test(shapes_between_shapes),
                                       cmocka_unit_test(weights_of_neighbours),
                                       cmocka_unit_test(windows_with_holes),
                                       cmocka_unit_test(written_and_read),
                                       cmocka_unit_test(unsure_far_away),
                                       cmocka_unit_test(what_ships),
                                       cmocka_unit_test(equations_are_solved),
                                       cmocka_unit_test(first_what_tells_most),
                                       cmocka_unit_test(machines_by_name),
                                       cmocka_unit_test(a_described_processor),
                                       cmocka_unit_test(more_of_a_machine),
                                       cmocka_unit_test(gpus_of_the_data_sheets),
                                       cmocka_unit_test(odd_machines),
                                       cmocka_unit_test(processors_by_their_caches),
                                       cmocka_unit_test(batches_that_do_not_fit),
                                       cmocka_unit_test(off_by_themselves),
                                       cmocka_unit_test(of_few_records_less),
                                       cmocka_unit_test(what_tensor_cores_do_not),
                                       cmocka_unit_test(rates_of_types),
                                       cmocka_unit_test(more_items_than_known),
                                       cmocka_unit_test(of_the_other_sort),
                                       cmocka_unit_test(floors_that_differ),
                                       cmocka_unit_test(fewer_tiles_than_multiprocessors),
                                       cmocka_unit_test(a_launch_that_is_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
