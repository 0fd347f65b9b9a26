/* Problem texts: what is printed reads back, whatever the problem; what is wrong is refused. */
#include "runtime/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state = 1;

static int64_t below(int64_t n)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

static bool coin(void)
{
    return below(2);
}

static void put_extent(bz_buf *b, const char *name, int rank)
{
    bz_buf_printf(b, " %s=", name);
    for (int i = 0; i < rank; i++)
        bz_buf_printf(b, "%s%d", i ? "x" : "", (int)below(9) + 1);
}

static void put_each(bz_buf *b, const char *name, int n, int least, int most)
{
    bz_buf_printf(b, " %s=", name);
    for (int i = 0; i < n; i++)
        bz_buf_printf(b, "%s%d", i ? "x" : "", least + (int)below(most - least + 1));
}

static void put_conv(bz_buf *b)
{
    int n = 1 + (int)below(3), g = 1 + (int)below(3), in = 1 + (int)below(4), out = 1 + (int)below(4);
    bz_buf_printf(b, "conv x=2x%d", g * in);
    for (int i = 0; i < n; i++)
        bz_buf_printf(b, "x%d", 20 + (int)below(9));
    bz_buf_printf(b, " w=%dx%d", g * out, in);
    for (int i = 0; i < n; i++)
        bz_buf_printf(b, "x%d", 1 + (int)below(5));
    if (coin())
        put_each(b, "stride", n, 1, 3);
    if (coin())
        put_each(b, "pad", 2 * n, 0, 2);
    if (coin())
        put_each(b, "dilation", n, 1, 3);
    bz_buf_printf(b, " group=%d", g);
}

static void put_attention(bz_buf *b)
{
    int heads = 1 + (int)below(3), shared = 1 + (int)below(3), rows = 1 + (int)below(9), keys = 1 + (int)below(9);
    bool causal = coin();
    keys = causal ? rows : keys;
    bz_buf_printf(b, "attention v=2x%dx%dx3 k=2x%dx%dx8 q=2x%dx%dx8", heads, keys, heads, keys, heads * shared, rows);
    if (coin())
        bz_buf_printf(b, " mask=%dx1x%dx%d", coin() ? 2 : 1, coin() ? rows : 1, keys);
    bz_buf_printf(b, " causal=%d", causal);
}

static void put_random(bz_buf *b)
{
    switch (below(9)) {
    case 8:
        put_attention(b);
        break;
    case 0:
        bz_buf_printf(b, "gemm n=%d m=%d k=%d", (int)below(100) + 1, (int)below(100) + 1, (int)below(100) + 1);
        if (coin())
            bz_buf_printf(b, " batch=%d transb=1", (int)below(9) + 1);
        break;
    case 1:
        bz_buf_puts(b, "activation fn=clip");
        put_extent(b, "x", 1 + (int)below(8));
        bz_buf_printf(b, " alpha=%.9g beta=%.9g", (double)below(1000) / -7, (double)below(1000) / 3);
        break;
    case 2:
        bz_buf_puts(b, "softmax axis=0");
        put_extent(b, "x", 1 + (int)below(8));
        break;
    case 3:
        bz_buf_printf(b, "transpose x=%dx%dx%d perm=2x0x1", (int)below(9) + 1, (int)below(9) + 1, (int)below(9) + 1);
        break;
    case 4:
        bz_buf_printf(b, "lstm seq=%d batch=2 input=3 hidden=4 dir=%s", (int)below(9) + 1,
                      coin() ? "reverse" : "bidirectional");
        break;
    default:
        put_conv(b);
        if (coin())
            bz_buf_puts(b, " post=bias");
        break;
    }
    static const char *const TYPES[] = {"f32", "bf16", "f16", "u8:i8:i32", "i8:i8:f32"};
    bz_buf_printf(b, " dtype=%s", TYPES[below(5)]);
}

static void print_again(const char *text, bz_buf *out)
{
    bz_problem p;
    bz_error err;
    if (bz_problem_parse(text, &p, &err))
        fail_msg("%s: %s", text, err.text);
    bz_buf_clear(out);
    bz_problem_print(&p, out);
}

static void test_round_trip(void **unused)
{
    (void)unused;
    bz_buf given = {0}, once = {0}, twice = {0};
    for (int i = 0; i < 20000; i++) {
        bz_buf_clear(&given);
        put_random(&given);
        print_again(bz_buf_text(&given), &once);
        print_again(bz_buf_text(&once), &twice);
        assert_string_equal(bz_buf_text(&once), bz_buf_text(&twice));
    }
    bz_buf_free(&given);
    bz_buf_free(&once);
    bz_buf_free(&twice);
}

static void test_canonical(void **unused)
{
    (void)unused;
    static const struct {
        const char *given, *canonical;
    } CASES[] = {
        {"conv dtype=f32 w=64x3x7x7 x=1x3x224x224 pad=3x3x3x3 stride=2x2",
         "conv x=1x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x3x3 dilation=1x1 group=1 dtype=f32"},
        {"conv x=1x4x8 w=4x1x3 group=4 post=bias,add,relu dtype=s8:s8:s32",
         "conv x=1x4x8 w=4x1x3 stride=1 pad=0x0 dilation=1 group=4 post=bias,add,relu dtype=i8:i8:i32"},
        {"gemm m=1 n=1000 k=2048 transb=1 dtype=f32", "gemm m=1 n=1000 k=2048 batch=1 transa=0 transb=1 dtype=f32"},
        {"activation fn=leaky x=1x2 dtype=f32", "activation fn=leaky x=1x2 alpha=0.01 dtype=f32"},
        {"gemm m=1 n=2 k=3 post=clip dtype=bf16:bf16:bf16",
         "gemm m=1 n=2 k=3 batch=1 transa=0 transb=0 post=clip:0:6 dtype=bf16"},
        {"reorder x=1x2x3x4 to=nhwc dtype=f32", "reorder x=1x2x3x4 from=plain to=nhwc dtype=f32"},
        {"pad pad=0x0x1x1 x=1x2x3x4 dtype=f16", "pad x=1x2x3x4 pad=0x0x1x1 dtype=f16"},
        {"transpose x=2x3 perm=1x0 dtype=u8", "transpose x=2x3 perm=1x0 dtype=u8"},
        {"transpose x=2x3 perm=1x0", "transpose x=2x3 perm=1x0 dtype=f32"}, /* as tables print keys */
        {"attention k=1x2x7x8 q=1x4x5x8 v=1x2x7x3 causal=0 dtype=f16",
         "attention q=1x4x5x8 k=1x2x7x8 v=1x2x7x3 dtype=f16"},
        {"attention causal=1 mask=1x1x5x5 q=2x4x5x8 k=2x4x5x8 v=2x4x5x8 dtype=bf16",
         "attention q=2x4x5x8 k=2x4x5x8 v=2x4x5x8 mask=1x1x5x5 causal=1 dtype=bf16"},
        {"attention softcap=30 q=2x4x5x8 k=2x4x5x8 v=2x4x5x8 dtype=bf16",
         "attention q=2x4x5x8 k=2x4x5x8 v=2x4x5x8 softcap=30 dtype=bf16"},
        {"attention window=4 causal=1 q=2x4x5x8 k=2x4x5x8 v=2x4x5x8 dtype=bf16",
         "attention q=2x4x5x8 k=2x4x5x8 v=2x4x5x8 causal=1 window=4 dtype=bf16"},
    };
    bz_buf out = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        print_again(CASES[i].given, &out);
        assert_string_equal(bz_buf_text(&out), CASES[i].canonical);
    }
    bz_buf_free(&out);
}

static void test_refused(void **unused)
{
    (void)unused;
    static const char *const WRONG[] = {
        "",
        "conv",
        "conv x=5 w=5 stride=1x1x1x1x1x1x1x1 pad=1x1x1x1x1x1x1x1x1x1x1x1 dtype=f32", /* lists of no length */
        "konv x=1 dtype=f32",
        "conv x=5 w=5 stride=1x1x1x1x1x1x1x1 pad=1x1x1x1x1x1x1x1x1x1x1x1 dtype=f32", /* lists of no length */
        "pad x=5 pad=1x1x1x1x1x1x1x1x1x1 dtype=f32",
        "pad x=1x2x3x4x5x6 pad=1x1x1x1x1x1x1x1 dtype=f32",
        "pad x=2x3 dtype=f32",
        "pad x=1x2x3x4 dtype=f32", /* nothing is padded */
        "pad x=1x2x3x4 pad=1x0 dtype=f32",
        "conv x=1x3x8x8 w=4x3x3x3 dtype=f33",
        "conv x=1x3x8x8 w=4x2x3x3 dtype=f32",
        "conv x=1x3x8x8 w=4x3x9x9 dtype=f32",
        "conv x=1x3x8x8 w=4x3x3x3 pad=1x1 dtype=f32",
        "conv x=1x3x8x8 w=4x3x3x3 stride=0x1 x=1x3x8x8 dtype=f32",
        "conv x=1x3x8x8 w=4x3x3x3 group=2 dtype=f32",
        "conv x=1x3x8x8x w=4x3x3x3 dtype=f32",
        "conv x=1x3x8x8 w=4x3x3x3 post=relu,bias dtype=f32",
        "conv x=1x3x8x8 w=4x3x3x3 post=relu:1 dtype=f32",
        "gemm m=1 n=2 k=3 post=bias,keep dtype=f32",
        "gemm m=1 n=2 k=3 post=keep,add dtype=f32",
        "gemm m=1 n=2 k=3 post=keep,relu,keep,relu dtype=f32",
        "gemm m=1 n=2 k=3 post=keep,relu dtype=i8",
        "gemm m=1 n=2 k=3 post=keep,relu dtype=f8e4m3",
        "conv x=1x3x8x8 w=4x3x3x3 colour=blue dtype=f32",
        "conv x=1x3x1099511627776x8 w=4x3x3x3 dtype=f32",
        "gemm m=1099511627776 n=1 k=1 dtype=f32",
        "gemm m=-1 n=1 k=1 dtype=f32",
        "attention q=1x2x9x4 k=1x2x9x4 v=1x2x9x4 lengths=4x4 dtype=f16",
        "attention q=2x2x9x4 k=2x2x9x4 v=2x2x9x4 lengths=9 dtype=f16",
        "attention q=1x2x9x4 k=1x2x9x4 v=1x2x9x4 lengths=-1x10 dtype=f16",
        "attention q=1x2x5x4 k=1x2x9x4 v=1x2x9x4 lengths=5 dtype=f16",
        "attention q=1x2x9x4 k=1x2x9x4 v=1x2x9x4 mask=1x1x1x9 lengths=9 dtype=f16",
        "gemm m=1 n=1 k=6 sparse=1 dtype=f16",
        "gemm m=1 n=1 k=24 transb=1 dtype=f4e2m1:f4e2m1:f16",
        "gemm m=1 n=1 k=32 transb=1 dtype=f4e2m1",
        "gemm m=1 n=1 k=32 transb=1 dtype=f16:f4e2m1:f16",
        "matmul a=4x32 b=32x4 dtype=f4e2m1:f4e2m1:f16",
        "gemm m=0x10 n=1 k=1 dtype=f32",
        "matmul a=16777216x1 b=1x16777216 dtype=f32 constant=2",
        "matmul a=1099511627776x1x1 b=1x1x1099511627776 dtype=f32",
        "softmax x=2x2 axis=2 dtype=f32",
        "activation fn=clip x=2 alpha=nan dtype=f32",
        "activation fn=clip x=2 alpha=1e99 dtype=f32",
        "activation fn=bias x=2 dtype=f32",
        "activation fn=relu x=1x1x1x1x1x1x1x1x1 dtype=f32",
        "transpose x=2x3 perm=0x0 dtype=f32",
        "transpose x=2x3 perm=0x2 dtype=f32",
        "concat y=1x5 axis=1 sizes=2x2 dtype=f32",
        "reduce fn=relu x=2x2 y=2x1 dtype=f32",
        "pool mode=max x=1x1x4x4 kernel=2x2 post=relu dtype=f32",
        "lstm seq=1 batch=1 input=1 hidden=16777216 dtype=f32",
        "attention q=1x4x5x8 k=1x2x7x8 dtype=f16",
        "attention q=1x4x5x8 k=1x3x7x8 v=1x3x7x8 dtype=f16",
        "attention q=1x4x5x8 k=1x2x7x9 v=1x2x7x8 dtype=f16",
        "attention q=4x5x8 k=4x7x8 v=4x7x8 dtype=f16",
        "attention q=1x4x7x8 k=1x2x5x8 v=1x2x5x8 causal=1 dtype=f16",
        "attention q=1x4x5x8 k=1x2x7x8 v=1x2x7x8 mask=1x1x5x6 dtype=f16",
        "attention q=1x4x5x8 k=1x2x5x8 v=1x2x5x8 window=3 dtype=f16",
        "attention q=1x4x5x8 k=1x2x5x8 v=1x2x5x8 softcap=-1 dtype=f16",
        "attention_grad q=1x4x5x8 k=1x4x5x8 v=1x4x5x8 softcap=3 dtype=f16",
        "attention q=1x4x5x8 k=1x2x5x8 v=1x2x5x8 causal=1 window=5 dtype=f16",
        "attention q=1x4x5x8 k=1x2x5x8 v=1x2x5x8 causal=1 window=-1 dtype=f16",
        "attention_grad q=1x4x5x8 k=1x4x5x8 v=1x4x5x8 causal=1 window=3 dtype=f16",
        "attention q=1x4x5x8 k=1x2x7x8 v=1x2x7x8 mask=5x7 dtype=f16",
        "attention q=1x4x5x8 k=1x2x7x8 v=1x2x7x8 mask= dtype=f16",
        "attention q=1x1x16777216x1 k=1x1x16777216x1 v=1x1x16777216x1 dtype=f16",
        "attention q=1x4x5x8 k=1x2x7x8 v=1x2x7x8 post=relu dtype=f16",
    };
    bz_problem p;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        bz_error err = {0};
        if (!bz_problem_parse(WRONG[i], &p, &err))
            fail_msg("accepted: %s", WRONG[i]);
        assert_int_equal(err.code, BZ_BAD_INPUT);
        assert_non_null(strstr(err.text, "problem"));
    }
}

static const bz_operand *result(const char *text, bz_operand *list)
{
    bz_problem p;
    bz_error err;
    assert_int_equal(bz_problem_parse(text, &p, &err), 0);
    return &list[bz_problem_operands(&p, list) - 1];
}

static void test_results(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        bz_extent y;
    } CASES[] = {
        {"conv x=1x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x3x3 dtype=f32", {1, 64, 112, 112}},
        {"conv x=1x3x10x10 w=8x3x3x3 pad=0x1x2x3 dilation=2x1 dtype=f32", {1, 8, 8, 12}},
        {"deconv x=1x8x7x7 w=8x6x3x3 stride=2x2 pad=1x1x1x1 outpad=1x1 dtype=f32", {1, 6, 14, 14}},
        {"gemm m=2 n=3 k=4 batch=5 dtype=f32", {5, 2, 3}},
        {"matmul a=1x3x4x5 b=2x1x5x6 dtype=f32", {2, 3, 4, 6}},
        {"pool mode=max x=1x64x112x112 kernel=3x3 stride=2x2 pad=1x1x1x1 dtype=f32", {1, 64, 56, 56}},
        {"transpose x=2x3x4 perm=2x0x1 dtype=f32", {4, 2, 3}},
        {"binary fn=add a=2x1x4 b=1x3x4 dtype=f32", {2, 3, 4}},
        {"lstm seq=5 batch=2 input=3 hidden=7 dir=bidirectional dtype=f32", {5, 2, 14}},
    };
    bz_operand list[BZ_PROBLEM_OPERANDS];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const bz_operand *y = result(CASES[i].text, list);
        assert_int_equal(y->rank, bz_extent_rank(CASES[i].y));
        for (int k = 0; k < y->rank; k++)
            assert_int_equal(y->dim[k], CASES[i].y[k]);
    }
}

static void test_cost(void **unused)
{
    (void)unused;
    bz_problem p;
    bz_error err;
    assert_int_equal(bz_problem_parse("conv x=1x3x224x224 w=64x3x7x7 stride=2x2 pad=3x3x3x3 dtype=f32", &p, &err), 0);
    assert_true(bz_problem_flops(&p) == 2.0 * 118013952);
    assert_true(bz_problem_bytes(&p) == 4.0 * (3 * 224 * 224 + 64 * 3 * 7 * 7 + 64 * 112 * 112));
    assert_int_equal(bz_problem_parse("gemm m=4 n=5 k=6 post=bias dtype=u8:i8:i32", &p, &err), 0);
    assert_true(bz_problem_flops(&p) == 2.0 * 4 * 5 * 6 + 20);
    assert_true(bz_problem_bytes(&p) == 24 + 30 + 4 * 5 + 4 * 20);
    assert_int_equal(bz_problem_parse("copy read=100 write=28 dtype=u8", &p, &err), 0);
    assert_true(bz_problem_bytes(&p) == 128);
}

static void test_c(void **unused)
{
    (void)unused;
    bz_problem p;
    bz_error err;
    bz_buf out = {0};
    const char *text = "conv x=1x3x8x8 w=4x3x3x3 pad=1x1x1x1 post=bias,clip:0:6 dtype=bf16:bf16:f32";
    assert_int_equal(bz_problem_parse(text, &p, &err), 0);
    bz_problem_print_c(&p, 4, &out);
    assert_string_equal(bz_buf_text(&out),
                        "    .kind = BZ_PROBLEM_CONV,\n"
                        "    .conv = {\n"
                        "        .x = {1, 3, 8, 8},\n"
                        "        .w = {4, 3, 3, 3},\n"
                        "        .stride = {1, 1},\n"
                        "        .pad = {1, 1, 1, 1},\n"
                        "        .dilation = {1, 1},\n"
                        "        .group = 1,\n"
                        "    },\n"
                        "    .post = {{.fn = BZ_FN_BIAS}, {.fn = BZ_FN_CLIP, .alpha = 0.0f, .beta = 6.0f}},\n"
                        "    .dtype = BZ_BF16, .dtype_w = BZ_BF16, .dtype_y = BZ_F32,\n");
    bz_buf_free(&out);
}

/* oneDNN names its recurrent layers "ref" on processors without its newest code, where they multiply by its own gemm. */
static void test_reference(void **unused)
{
    (void)unused;
    assert_true(bz_algorithm_is_reference("conv x=1x2x3x4", "ref:any"));
    assert_true(bz_algorithm_is_reference("layernorm", "lnorm_ref:any"));
    assert_true(bz_algorithm_is_reference("attention q=1x2x3x4", "gemm:jit + ref"));
    assert_false(bz_algorithm_is_reference("conv", "prefer:any"));
    assert_false(bz_algorithm_is_reference("lstm seq=5 batch=1 input=8 hidden=8 dir=forward dtype=f32", "ref"));
    assert_false(bz_algorithm_is_reference("gru_grad", "ref:any"));
    assert_false(bz_algorithm_is_reference("rnn seq=5", "ref:any"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_round_trip), cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_results),    cmocka_unit_test(test_cost),
        cmocka_unit_test(test_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
