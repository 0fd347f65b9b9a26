/* A problem as numbers, by formulas over its sizes; the least time and the roofline, by how they grow; more items, by the text of the problem. */
#include "chance.h"
#include "predict/predict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROUNDS = 200 };

static bz_problem problem_of(const char *text)
{
    bz_problem p;
    bz_error err;
    if (bz_problem_parse(text, &p, &err) || bz_problem_normalize(&p, &err))
        fail_msg("%s: %s", text, err.text);
    return p;
}

static int draw(int least, unsigned more)
{
    return least + (int)chance(more);
}

static void is_near(double is, double must, const char *what, const char *text)
{
    if (fabs(is - must) > 1e-9 * (1 + fabs(must)))
        fail_msg("%s of %s is %.12g, not %.12g", what, text, is, must);
}

static double ln(double v)
{
    return v > 1 ? log(v) : 0;
}

/* Convolutions of two dimensions; numbers have as many bytes as their type. */
static void of_convolutions(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int bytes;
    } TYPES[] = {{"f32", 4}, {"f16", 2}, {"bf16", 2}, {"f64", 8}};
    for (int round = 0; round < ROUNDS; round++) {
        int group = chance(3) ? 1 : draw(1, 4), n = draw(1, 8), in = group * draw(1, 40), out = group * draw(1, 40),
            kernel = chance(2) ? 3 : draw(1, 4), stride = draw(1, 2), dilation = draw(1, 2), wide = draw(1, 2);
        int size = draw(12, 30), reach = (kernel - 1) * dilation + 1, y = (size - reach) / stride + 1,
            z = (size - (kernel - 1) * wide - 1) / stride + 1, type = (int)chance(4), post = (int)chance(2);
        char text[256];
        bz_shape s;
        snprintf(text, sizeof text,
                 "conv x=%dx%dx%dx%d w=%dx%dx%dx%d stride=%dx%d pad=0x0x0x0 dilation=%dx%d group=%d%s dtype=%s", n, in,
                 size, size, out, in / group, kernel, kernel, stride, stride, dilation, wide, group,
                 post ? " post=relu" : "", TYPES[type].name);
        bz_problem p = problem_of(text);
        bz_shape_of(&p, &s);
        double results = (double)n * out * y * z, products = results * (in / group) * kernel * kernel;
        double reads = (double)n * in * size * size + (double)out * (in / group) * kernel * kernel;
        is_near(s.flops, 2 * products + post * results, "flops", text);
        is_near(s.bytes, TYPES[type].bytes * (reads + results), "bytes", text);
        is_near(s.blocks, fmax(1, ceil(results / (64 * 64))), "blocks", text);
        is_near(s.depth, (double)(in / group) * kernel * kernel, "depth", text);
        is_near(s.items, n, "items", text);
        double x[] = {ln(n),          ln(in / group), ln(out),     ln((double)y * z),    1.5 * ln(kernel * kernel),
                      2 * ln(stride), ln(group),      ln(s.flops), kernel > 1 ? 0 : 1.5, type ? 2 : 0};
        assert_int_equal(s.n, sizeof x / sizeof *x);
        for (int i = 0; i < s.n; i++) {
            is_near(s.x[i], x[i], "a number", text);
            is_near(s.grows[i], i == 0 || i == 7, "growth", text);
        }
        bool small = kernel == 3 && stride == 1 && group == 1;
        assert_int_equal(s.size, 7);
        assert_int_equal(s.kind, BZ_PROBLEM_CONV + (post ? BZ_SHAPE_FUSED : 0));
        assert_true(s.product && !s.series);
        assert_int_equal(s.transformable, small && dilation == 1 && wide == 1);
        assert_int_equal(s.holes, small && (dilation > 1 || wide > 1));
        assert_int_equal(s.uneven, in / group % 8 || out / group % 8);
    }
}

static void of_products(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int m = draw(2, 300), n = draw(2, 300), k = draw(2, 300), matmul = (int)chance(2);
        char text[256];
        bz_shape s;
        snprintf(text, sizeof text,
                 matmul ? "matmul a=%dx%d b=%dx%d constant=0 dtype=f32"
                        : "gemm m=%d n=%d k=%d batch=1 transa=0 transb=0 dtype=f32",
                 m, matmul ? k : n, k, n);
        bz_problem p = problem_of(text);
        bz_shape_of(&p, &s);
        is_near(s.flops, 2. * m * n * k, "flops", text);
        is_near(s.bytes, 4. * (m * k + k * n + m * n), "bytes", text);
        is_near(s.blocks, ceil(m / 64.) * ceil(n / 64.), "blocks", text);
        double x[] = {ln(m), ln(k), ln(n), 0};
        assert_int_equal(s.n, 4);
        for (int i = 0; i < s.n; i++)
            is_near(s.x[i], x[i], "a number", text);
    }
}

static bz_machine machine_of(double rate, double bandwidth, double kept, bool gpu)
{
    return (bz_machine){.name = "m",
                        .gpu = gpu,
                        .f32 = rate,
                        .f16 = 4 * rate,
                        .i8 = 8 * rate,
                        .bandwidth = bandwidth,
                        .kept = kept,
                        .vouched = 0.9,
                        .clock = 1e9,
                        .multiprocessors = 20,
                        .generation = 7,
                        .capability = gpu ? 61 : 0};
}

/* Twice the machine takes half the time; more work, a slower memory and a longer floor take more; nothing is possible below the least. */
static void times(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        static const char *const TYPES[] = {"f32", "f16", "i8"};
        static const double FASTER[] = {1, 4, 8};
        int m = draw(2, 300), n = draw(2, 300), k = draw(2, 300), type = (int)chance(3);
        double rate = 1e12 * draw(1, 9), bandwidth = 1e11 * draw(1, 9), kept = chance(2) ? 0 : 1e4 * draw(1, 9);
        bool gpu = chance(2);
        bz_machine one = machine_of(rate, bandwidth, kept, gpu), two = machine_of(2 * rate, 2 * bandwidth, kept, gpu),
                   slow = machine_of(rate, bandwidth / 2, kept, gpu);
        char text[160];
        bz_shape s;
        snprintf(text, sizeof text, "gemm m=%d n=%d k=%d batch=1 transa=0 transb=0 dtype=%s", m, n, k, TYPES[type]);
        bz_problem p = problem_of(text);
        bz_shape_of(&p, &s);
        double t = bz_shape_roofline(&s, &one, 0, 1), least = bz_shape_least(&s, &one);
        is_near(bz_shape_roofline(&s, &two, 0, 1) * 2e9, t * 1e9, "half the time", text);
        is_near(bz_shape_roofline(&s, &one, 1e-5, 1) - t, 1e-5, "the floor", text);
        assert_true(bz_shape_roofline(&s, &slow, 0, 1) > t);
        is_near(least * 1e9, gpu ? fmax(s.flops / (rate * FASTER[type]), (s.bytes - kept) / bandwidth) * 1e9 : 0,
                "the least", text);
        assert_true(t >= least && bz_shape_possible(&s, &one, least) &&
                    (!gpu || least == 0 || !bz_shape_possible(&s, &one, least / 1000)));
    }
}

/* A conv of 3 items has 6 where it is batched twice: all sizes that count items do so, and no other. */
static void more_items(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "conv x=%dx8x9x9 w=4x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
        "pool mode=max x=%dx8x9x9 kernel=3x3 stride=2x2 pad=0x0x0x0 dilation=1x1 dtype=f32",
        "gemm m=%d n=7 k=9 batch=1 transa=0 transb=0 dtype=f32",
        "gemm m=5 n=7 k=9 batch=%d transa=0 transb=0 dtype=f32",
        "matmul a=%dx5x6 b=1x6x7 constant=0 dtype=f32",
        "matmul a=%dx5x6 b=%dx6x7 constant=0 dtype=f32",
        "softmax x=%dx10 axis=1 dtype=f32",
        "layernorm x=%dx7x64 axis=2 dtype=f32",
        "batchnorm x=%dx8x5x5 dtype=f32",
        "activation fn=relu x=%dx8x5 dtype=f32",
        "binary fn=add a=%dx8x5 b=%dx8x5 dtype=f32",
        "binary fn=add a=%dx8x5 b=1x8x5 dtype=f32",
        "concat y=%dx9x4 axis=1 sizes=4x5 dtype=f32"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        for (int n = 2; n < 5; n++)
            for (int times_by = 2; times_by < 5; times_by++) {
                char before[160], after[160];
                bz_buf is = {0}, must = {0};
                bz_problem p, batched;
                snprintf(before, sizeof before, TEXTS[i], n, n);
                snprintf(after, sizeof after, TEXTS[i], n * times_by, n * times_by);
                p = problem_of(before);
                is_near(bz_problem_items(&p), n, "items", before);
                if (!bz_problem_batched(&p, times_by, &batched))
                    fail_msg("%s cannot have more items", before);
                bz_problem_print(&batched, &is);
                p = problem_of(after);
                bz_problem_print(&p, &must);
                assert_string_equal(bz_buf_text(&is), bz_buf_text(&must));
                assert_true(bz_problem_batched(&p, 1. / times_by, &batched));
                assert_false(bz_problem_batched(&batched, 1. / (2 * n + 1), &batched));
                bz_buf_free(&is);
                bz_buf_free(&must);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_convolutions), cmocka_unit_test(of_products),
                                       cmocka_unit_test(times), cmocka_unit_test(more_items)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
