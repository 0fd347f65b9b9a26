/* Layers become problems: kinds with their traps, what cannot be lowered, and what a source may not do. */
#include "generator/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DIMS(...) ((const bz_dim[]){__VA_ARGS__})
#define TENSOR(r, ...)                                                                                                 \
    {                                                                                                                  \
        .kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = (r), .dims = DIMS(__VA_ARGS__)                                \
    }
#define NUMBERS(s, ...)                                                                                                \
    {                                                                                                                  \
        .name = (s), .v = (const int64_t[]){__VA_ARGS__}, .n = sizeof((int64_t[]){__VA_ARGS__}) / 8                    \
    }

static const bz_node NODE = {.name = "", .op = "", .domain = ""};
static const bool ALL[12] = {false, true, true, true, true, true, true, true, true, true, true, true};

static bz_layer a_layer(const char *kind, const bz_type *in, int n_in, const bz_type *out, const bz_param *params,
                        int n)
{
    return (bz_layer){.name = "layer",
                      .node = &NODE,
                      .kind = kind,
                      .class = BZ_COMPUTE,
                      .n_in = n_in,
                      .n_out = 1,
                      .in = in,
                      .out = out,
                      .in_constant = ALL,
                      .params = params,
                      .n_params = n,
                      .key = kind,
                      .bytes = 1000,
                      .priced = true};
}

static void expect(const bz_layer *layer, bz_dtype dtype, int alternative, int step, const char *text)
{
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(layer, dtype, &arena, &low);
    assert_true(low.n > alternative);
    assert_true(low.alternative[alternative].n > step);
    assert_string_equal(low.alternative[alternative].text[step], text);
    bz_arena_free(&arena);
}

static void expect_count(const bz_layer *layer, int n)
{
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(layer, BZ_UNDEFINED, &arena, &low);
    assert_int_equal(low.n, n);
    bz_arena_free(&arena);
}

static void test_conv(void **state)
{
    (void)state;
    const bz_type in[] = {TENSOR(4, 1, 8, 9, 9), TENSOR(4, 16, 4, 3, 3), TENSOR(1, 16)},
                  out[] = {TENSOR(4, 1, 16, 4, 8)};
    const bz_param params[] = {NUMBERS("stride", 2, 1), NUMBERS("pad", 1, 2, 0, 1), NUMBERS("dilation", 2, 2),
                               NUMBERS("group", 2)};
    const bz_type fit[] = {TENSOR(4, 1, 16, 3, 8)};
    bz_layer l = a_layer("conv", in, 3, fit, params, 4);
    static const char *const SHAPE = "conv x=1x8x9x9 w=16x4x3x3 stride=2x1 pad=1x2x0x1 dilation=2x2 group=2";
    char text[200];
    snprintf(text, sizeof text, "%s post=bias dtype=f32", SHAPE);
    expect(&l, BZ_UNDEFINED, 0, 0, text);
    snprintf(text, sizeof text, "%s dtype=f32", SHAPE);
    expect(&l, BZ_UNDEFINED, 1, 0, text);
    expect(&l, BZ_UNDEFINED, 1, 1, "binary fn=add a=1x16x3x8 b=1x16x1x1 dtype=f32");
    /* what one end is padded by more than the other, by itself */
    expect(&l, BZ_UNDEFINED, 2, 0, "pad x=1x8x9x9 pad=1x1x0x0 dtype=f32");
    expect(&l, BZ_UNDEFINED, 2, 1,
           "conv x=1x8x10x10 w=16x4x3x3 stride=2x1 pad=0x1x0x1 dilation=2x2 group=2 post=bias dtype=f32");
    expect(&l, BZ_F16, 2, 0, "pad x=1x8x9x9 pad=1x1x0x0 dtype=f16");
    expect(&l, BZ_F8E4M3, 2, 0, "pad x=1x8x9x9 pad=1x1x0x0 dtype=f8e4m3");
    expect(&l, BZ_U8, 1, 0, "pad x=1x8x9x9 pad=1x1x0x0 dtype=u8");
    snprintf(text, sizeof text, "%s post=bias dtype=bf16", SHAPE);
    expect(&l, BZ_BF16, 0, 0, text);
    snprintf(text, sizeof text, "%s post=bias dtype=u8:i8:u8", SHAPE);
    expect(&l, BZ_U8, 0, 0, text);
    /* a geometry that does not give the layer's result is refused, never priced as something else */
    bz_arena arena = {0};
    bz_lowering low;
    l = a_layer("conv", in, 3, out, params, 4);
    l.macs = 1;
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_int_equal(low.n, 0);
    assert_non_null(low.why);
    bz_arena_free(&arena);
}

/* Where the padding of the begin will do for both ends, it is given so. */
static void test_even_padding(void **state)
{
    (void)state;
    const bz_type in[] = {TENSOR(4, 1, 2, 6, 6), TENSOR(4, 2, 2, 3, 3)}, out[] = {TENSOR(4, 1, 2, 3, 3)};
    const bz_param even[] = {NUMBERS("stride", 2, 2), NUMBERS("pad", 1, 1, 0, 0), NUMBERS("dilation", 1, 1)},
                   uneven[] = {NUMBERS("stride", 2, 2), NUMBERS("pad", 0, 0, 1, 1), NUMBERS("dilation", 1, 1)};
    bz_layer l = a_layer("conv", in, 2, out, even, 3);
    expect_count(&l, 1);
    l = a_layer("conv", in, 2, out, uneven, 3);
    expect_count(&l, 2);
    bz_problem p;
    bz_error err;
    static const struct {
        const char *text;
        bool even;
    } CASES[] = {
        {"conv x=1x2x6x6 w=2x2x3x3 stride=2x2 pad=1x1x0x0 dtype=f32", true},
        {"conv x=1x2x6x6 w=2x2x3x3 stride=2x2 pad=0x0x1x1 dtype=f32", false},
        {"conv x=1x2x6x6 w=2x2x3x3 stride=2x2 pad=1x0x0x1 dtype=f32", false},
        {"conv x=1x2x1 w=2x2x2 pad=0x1 dtype=f32", false},
        {"pool mode=max x=1x2x7x7 kernel=3x3 stride=2x2 pad=0x0x1x1 dtype=f32", true},
        {"pool mode=max x=1x2x8x8 kernel=3x3 stride=2x2 pad=0x0x1x1 dtype=f32", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_int_equal(bz_problem_parse(CASES[i].text, &p, &err), 0);
        assert_int_equal(bz_problem_pads_evenly(&p), CASES[i].even);
    }
}

/* A dropout that trains is a call on a device; a copy stands in elsewhere. */
static void test_dropout(void **state)
{
    (void)state;
    const bz_type x[] = {TENSOR(2, 3, 4)};
    bz_layer l = a_layer("dropout", x, 1, x, NULL, 0);
    expect(&l, BZ_F16, 0, 0, "dropout x=3x4 dtype=f16");
    expect(&l, BZ_UNDEFINED, 1, 0, "copy read=952 write=48 dtype=u8");
}

static void test_softmax_of_old(void **state)
{
    (void)state;
    const bz_type x[] = {TENSOR(4, 2, 3, 4, 5)};
    const bz_param from[] = {NUMBERS("from", 2)}, axis[] = {NUMBERS("axis", 2)};
    bz_layer old = a_layer("softmax", x, 1, x, from, 1), new = a_layer("softmax", x, 1, x, axis, 1);
    expect(&old, BZ_UNDEFINED, 0, 0, "softmax x=6x20 axis=1 dtype=f32");
    expect(&new, BZ_UNDEFINED, 0, 0, "softmax x=2x3x4x5 axis=2 dtype=f32");
}

/* Padding is a class that does not count; what is no class (-100, as PyTorch has it) leaves all as they are. */
static void test_ignored_labels(void **state)
{
    bz_type in[] = {TENSOR(2, 4, 10), TENSOR(1, 4)}, out[] = {{.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 0}};
    bz_param padding[] = {NUMBERS("ignore", 0)}, none[] = {NUMBERS("ignore", -100)};
    (void)state;
    in[1].dtype = BZ_I64;
    bz_layer l = a_layer("crossentropy", in, 2, out, padding, 1);
    expect(&l, BZ_UNDEFINED, 0, 0, "softmax_loss x=4x10 reduction=mean ignore=0 dtype=f32:i64:f32");
    l.params = none;
    expect(&l, BZ_UNDEFINED, 0, 0, "softmax_loss x=4x10 reduction=mean dtype=f32:i64:f32");
}

static void test_products(void **state)
{
    (void)state;
    const bz_type in[] = {TENSOR(2, 1, 64), TENSOR(2, 10, 64), TENSOR(1, 10)}, out[] = {TENSOR(2, 1, 10)};
    const bz_param params[] = {NUMBERS("transa", 0), NUMBERS("transb", 1)};
    bz_layer l = a_layer("gemm", in, 3, out, params, 2);
    expect(&l, BZ_UNDEFINED, 0, 0, "gemm m=1 n=10 k=64 batch=1 transa=0 transb=1 post=bias dtype=f32");
    expect(&l, BZ_UNDEFINED, 2, 0, "gemv m=10 k=64 trans=0 post=bias dtype=f32");
    const bz_type ab[] = {TENSOR(4, 1, 12, 128, 64), TENSOR(4, 1, 12, 64, 128)}, y[] = {TENSOR(4, 1, 12, 128, 128)};
    static const bool NONE[2] = {false, false};
    l = a_layer("matmul", ab, 2, y, NULL, 0);
    l.in_constant = NONE;
    expect(&l, BZ_UNDEFINED, 0, 0, "matmul a=12x128x64 b=12x64x128 constant=0 dtype=f32");
}

/* Weights of 4 bits: a product by what they stand for, and for few tokens what reading them takes. */
static void test_narrow_products(void **state)
{
    (void)state;
    const bz_type few[] = {TENSOR(3, 2, 2, 64), TENSOR(2, 96, 64), {0}, {0}, {0}, TENSOR(1, 96)},
                  y[] = {TENSOR(3, 2, 2, 96)};
    bz_layer l = a_layer("matmulnbits", few, 6, y, NULL, 0);
    l.macs = 4 * 96 * 64;
    expect(&l, BZ_UNDEFINED, 0, 0, "gemm m=4 n=96 k=64 batch=1 transa=0 transb=1 post=bias dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 0, "copy read=0 write=1000 dtype=u8");
    expect_count(&l, 2);
    const bz_type many[] = {TENSOR(3, 1, 5, 64), TENSOR(2, 96, 64)}, z[] = {TENSOR(3, 1, 5, 96)};
    l = a_layer("matmulnbits", many, 2, z, NULL, 0);
    l.macs = 5 * 96 * 64;
    expect_count(&l, 1);
    l.kind = "matmulnbitsmlp";
    expect_count(&l, 0);
}

/* Experts: all tokens by each of the k that one token has. Weights lie either way round, gates are among the first ones' columns or
 * weights of their own, and few tokens read those of a few bits. */
static void test_experts(void **state)
{
    (void)state;
    enum { TOKENS = 10, K = 2, H = 16, I = 24 };
    const bz_type none = {.kind = BZ_TYPE_NONE}, x = TENSOR(3, 2, 5, H), router = TENSOR(2, 10, 4);
    const bz_type tall[] = {x, router, TENSOR(3, 4, H, I), TENSOR(2, 4, I), TENSOR(3, 4, I, H), none},
                  turned[] = {x, router, TENSOR(3, 4, I, H), none, TENSOR(3, 4, H, I), none, TENSOR(3, 4, I, H)},
                  gates[] = {x, router, TENSOR(3, 4, 2 * I, H), none, TENSOR(3, 4, H, I), none},
                  packed[] = {TENSOR(2, 1, H),   TENSOR(2, 1, 4), TENSOR(3, 4, I, H), TENSOR(2, 4, I), none,
                              TENSOR(3, 4, H, I)},
                  y[] = {TENSOR(3, 2, 5, H)}, token[] = {TENSOR(2, 1, H)};
    const bz_param silu[] = {NUMBERS("k", K), {.name = "activation", .text = "silu"}},
                   gelu[] = {NUMBERS("k", 1), {.name = "activation", .text = "gelu"}},
                   swiglu[] = {NUMBERS("k", K), {.name = "activation", .text = "swiglu"}};
    bz_layer l = a_layer("moe", tall, 6, y, silu, 2);
    l.macs = (int64_t)TOKENS * K * 2 * H * I;
    expect_count(&l, 3);
    expect(&l, BZ_F16, 0, 0, "matmul a=2x10x16 b=2x16x24 constant=1 dtype=f16");
    expect(&l, BZ_F16, 0, 1, "activation fn=swish x=20x24 alpha=1 dtype=f16");
    expect(&l, BZ_F16, 0, 2, "matmul a=2x10x24 b=2x24x16 constant=1 dtype=f16");
    expect(&l, BZ_F16, 1, 0, "matmul a=2x10x16 b=2x16x24 constant=1 post=swish:1 dtype=f16");
    expect(&l, BZ_F16, 2, 0, "grouped n=24 k=16 transb=0 sizes=10x10 dtype=f16");
    l = a_layer("moe", turned, 7, y, silu, 2);
    l.macs = (int64_t)TOKENS * K * 3 * H * I;
    expect(&l, BZ_UNDEFINED, 0, 2, "matmul a=2x10x16 b=2x16x24 constant=1 transb=1 dtype=f32");
    expect(&l, BZ_UNDEFINED, 0, 3, "binary fn=mul a=20x24 b=20x24 dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 1, "matmul a=2x10x16 b=2x16x24 constant=1 transb=1 post=mul dtype=f32");
    expect(&l, BZ_UNDEFINED, 2, 4, "grouped n=16 k=24 transb=1 sizes=10x10 dtype=f32");
    l = a_layer("moe", gates, 6, y, swiglu, 2);
    l.macs = (int64_t)TOKENS * K * 3 * H * I;
    expect_count(&l, 3);
    expect(&l, BZ_UNDEFINED, 0, 0, "matmul a=2x10x16 b=2x16x48 constant=1 transb=1 dtype=f32");
    expect(&l, BZ_UNDEFINED, 0, 2, "binary fn=mul a=20x24 b=20x24 dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 1, "matmul a=2x10x24 b=2x24x16 constant=1 transb=1 dtype=f32");
    l.macs++;
    expect_count(&l, 0);
    l = a_layer("qmoe", packed, 6, token, gelu, 2);
    l.macs = 2 * H * I;
    expect_count(&l, 3);
    expect(&l, BZ_BF16, 0, 0, "gemm m=1 n=24 k=16 batch=1 transa=0 transb=1 dtype=bf16");
    expect(&l, BZ_BF16, 1, 0, "gemm m=1 n=24 k=16 batch=1 transa=0 transb=1 post=gelu_tanh dtype=bf16");
    expect(&l, BZ_BF16, 2, 0, "copy read=468 write=32 dtype=u8");
}

/* What a layer takes along is part of the call: functions, sums, layouts, turned operands. */
static void test_fused_products(void **state)
{
    (void)state;
    const bz_type in[] = {TENSOR(4, 1, 8, 9, 9), TENSOR(4, 16, 8, 1, 1), TENSOR(1, 16), TENSOR(4, 1, 16, 9, 9)},
                  out[] = {TENSOR(4, 1, 16, 9, 9)}, last[] = {TENSOR(4, 1, 9, 9, 8), TENSOR(4, 16, 1, 1, 8)},
                  last_out[] = {TENSOR(4, 1, 9, 9, 16)};
    const bz_param params[] = {NUMBERS("stride", 1, 1),
                               NUMBERS("pad", 0, 0, 0, 0),
                               NUMBERS("dilation", 1, 1),
                               NUMBERS("group", 1),
                               {.name = "activation", .text = "Tanh"},
                               {.name = "layout", .text = "nhwc"}};
    bz_layer l = a_layer("conv", in, 4, out, params, 5);
    expect(&l, BZ_UNDEFINED, 0, 0,
           "conv x=1x8x9x9 w=16x8x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 post=bias,add,tanh dtype=f32");
    l = a_layer("conv", last, 2, last_out, params, 6);
    expect(&l, BZ_UNDEFINED, 0, 0,
           "conv x=1x8x9x9 w=16x8x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 post=tanh dtype=f32");
    const bz_type ab[] = {TENSOR(2, 64, 4), TENSOR(2, 10, 64)}, y[] = {TENSOR(2, 4, 10)};
    const bz_param trans[] = {NUMBERS("trans", 1, 1), {.name = "activation", .text = "Relu"}};
    l = a_layer("matmul", ab, 2, y, trans, 2);
    expect(&l, BZ_UNDEFINED, 0, 0, "gemm m=4 n=10 k=64 batch=1 transa=1 transb=1 post=relu dtype=f32");
    const bz_type small[] = {TENSOR(4, 1, 1, 3, 3), TENSOR(4, 1, 2, 3, 3)}, made[] = {TENSOR(4, 1, 2, 10, 8)};
    const bz_param wide[] = {NUMBERS("stride", 3, 2), NUMBERS("pad", 0, 0, 0, 0), NUMBERS("dilation", 1, 1),
                             NUMBERS("group", 1), NUMBERS("extra", 0, 0)};
    l = a_layer("deconv", small, 2, made, wide, 5);
    expect(&l, BZ_UNDEFINED, 0, 0,
           "deconv x=1x1x3x3 w=1x2x3x3 stride=3x2 pad=0x0x0x0 dilation=1x1 outpad=1x1 group=1 dtype=f32");
}

static void test_attention(void **state)
{
    (void)state;
    const bz_type in[] = {TENSOR(3, 2, 8, 32), TENSOR(2, 32, 96), TENSOR(1, 96)}, out[] = {TENSOR(3, 2, 8, 32)};
    const bz_param params[] = {NUMBERS("heads", 4), NUMBERS("kv", 12), NUMBERS("qk", 32), NUMBERS("v", 32)};
    bz_layer l = a_layer("attention", in, 3, out, params, 4);
    l.macs = 2 * 8 * 32 * 96 + 2 * 8 * 12 * 64;
    expect(&l, BZ_UNDEFINED, 0, 0, "gemm m=16 n=96 k=32 batch=1 transa=0 transb=0 post=bias dtype=f32");
    expect(&l, BZ_UNDEFINED, 0, 1, "matmul a=8x8x8 b=8x8x12 constant=0 dtype=f32");
    expect(&l, BZ_UNDEFINED, 0, 2, "softmax x=8x8x12 axis=2 dtype=f32");
    expect(&l, BZ_UNDEFINED, 0, 3, "matmul a=8x8x12 b=8x12x8 constant=0 dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 0, "gemm m=16 n=96 k=32 batch=1 transa=0 transb=0 post=bias dtype=f32");
    expect(&l, BZ_F16, 1, 1, "attention q=2x4x8x8 k=2x4x12x8 v=2x4x12x8 dtype=f16");
    expect(&l, BZ_F8E4M3, 2, 0, "gemm m=16 n=96 k=32 batch=1 transa=0 transb=0 post=bias dtype=f8e4m3:f8e4m3:f16");
    expect(&l, BZ_F8E4M3, 2, 1, "attention q=2x4x8x8 k=2x4x12x8 v=2x4x12x8 dtype=f8e4m3");
    /* heads that share keys and values are rows of one product */
    const bz_type q[] = {TENSOR(4, 2, 8, 5, 16), TENSOR(4, 2, 2, 7, 16), TENSOR(4, 2, 2, 7, 16)},
                  y[] = {TENSOR(4, 2, 8, 5, 16)};
    l = a_layer("attention", q, 3, y, NULL, 0);
    l.macs = 2 * 8 * 5 * 7 * 32;
    expect(&l, BZ_UNDEFINED, 0, 0, "matmul a=4x20x16 b=4x16x7 constant=0 dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x2x7x16 v=2x2x7x16 dtype=f32");
    expect(&l, BZ_F8E4M3, 1, 0,
           "attention q=2x8x5x16 k=2x2x7x16 v=2x2x7x16 dtype=f16"); /* no fallback: either may be */
    expect(&l, BZ_F8E4M3, 2, 0, "attention q=2x8x5x16 k=2x2x7x16 v=2x2x7x16 dtype=f8e4m3");
    l.macs++; /* something else than the products that it names */
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_int_equal(low.n, 0);
    assert_non_null(low.why);
    bz_arena_free(&arena);
}

/* Gradients of attention: seven calls, or one where the queries see all keys, or as many as there are of them. */
static void test_attention_grad(void **state)
{
    (void)state;
    const bz_type in[] = {TENSOR(4, 2, 8, 5, 16),
                          TENSOR(4, 2, 2, 7, 16),
                          TENSOR(4, 2, 2, 7, 16),
                          {.kind = BZ_TYPE_NONE},
                          TENSOR(4, 2, 8, 5, 16)},
                  out[] = {TENSOR(4, 2, 8, 5, 16), TENSOR(4, 2, 2, 7, 16), TENSOR(4, 2, 2, 7, 16)};
    const bz_param causal[] = {NUMBERS("causal", 1)};
    bz_layer l = a_layer("attention_grad", in, 5, out, NULL, 0);
    expect(&l, BZ_UNDEFINED, 0, 0, "matmul a=4x20x16 b=4x16x7 constant=0 dtype=f32");
    expect(&l, BZ_BF16, 1, 0, "attention_grad q=2x8x5x16 k=2x2x7x16 v=2x2x7x16 dtype=bf16");
    l = a_layer("attention_grad", in, 5, out, causal, 1);
    expect_count(&l, 1);
}

/* Training of recurrent layers: a call that keeps what the backward one needs; and that one, or, where no library has it, its
 * products step by step. */
static void test_recurrent_training(void **state)
{
    (void)state;
    const bz_type in[] = {TENSOR(3, 7, 5, 20), TENSOR(3, 2, 96, 20), TENSOR(3, 2, 96, 24), TENSOR(2, 2, 192)},
                  out[] = {TENSOR(4, 7, 2, 5, 24)}, dx[] = {TENSOR(3, 7, 5, 20)};
    const bz_type gru[] = {TENSOR(3, 7, 5, 20), TENSOR(3, 1, 72, 20), TENSOR(3, 1, 72, 24), TENSOR(2, 1, 144)};
    const bz_param both[] = {{.name = "direction", .text = "bidirectional"}},
                   back[] = {{.name = "direction", .text = "reverse"}, NUMBERS("linear_before_reset", 1)};
    bz_layer l = a_layer("lstm_training", in, 4, out, both, 1);
    expect_count(&l, 2);
    expect(&l, BZ_UNDEFINED, 1, 0, "matmul a=35x20 b=20x96 constant=0 dtype=f32"); /* by products: all steps at once, */
    expect(&l, BZ_UNDEFINED, 1, 7, "matmul a=5x24 b=24x96 constant=0 dtype=f32");  /* then one after the other */
    expect(&l, BZ_UNDEFINED, 1, 8, "activation fn=sigmoid x=35x72 dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 9, "activation fn=tanh x=35x48 dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 12, "binary fn=mul a=35x24 b=35x24 dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 27, "binary fn=add a=35x24 b=35x24 dtype=f32"); /* of the other direction */
    expect(&l, BZ_UNDEFINED, 0, 0, "lstm seq=7 batch=5 input=20 hidden=24 dir=bidirectional training=1 dtype=f32");
    l = a_layer("lstm_grad", in, 4, dx, both, 1);
    expect(&l, BZ_UNDEFINED, 0, 0, "lstm_grad seq=7 batch=5 input=20 hidden=24 dir=bidirectional dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 0, "matmul a=5x96 b=96x24 constant=0 dtype=f32");
    l = a_layer("gru_grad", gru, 4, dx, back, 2);
    expect(&l, BZ_UNDEFINED, 0, 0, "gru_grad seq=7 batch=5 input=20 hidden=24 dir=reverse lbr=1 dtype=f32");
    const bz_type rnn[] = {TENSOR(3, 7, 5, 20), TENSOR(3, 1, 24, 20), TENSOR(3, 1, 24, 24), TENSOR(2, 1, 48)};
    const bz_param of_relu[] = {{.name = "activations", .text = "relu"}};
    l = a_layer("rnn_training", rnn, 4, out, of_relu, 1);
    expect(&l, BZ_UNDEFINED, 0, 0, "rnn seq=7 batch=5 input=20 hidden=24 dir=forward fn=relu training=1 dtype=f32");
    l = a_layer("rnn_grad", rnn, 4, dx, of_relu, 1);
    expect(&l, BZ_UNDEFINED, 0, 0, "rnn_grad seq=7 batch=5 input=20 hidden=24 dir=forward fn=relu dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 7, "activation_grad fn=relu x=35x24 of_y=1 dtype=f32");
    l = a_layer("gru_grad", gru, 4, dx, back, 2);
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_true(low.n == 2 && !low.alternative[0].fallback &&
                !low.alternative[1].fallback); /* either may be the faster one */
    const bz_type longer[] = {TENSOR(3, 100, 5, 20), gru[1], gru[2], gru[3]};
    l = a_layer("gru_grad", longer, 4, dx, back, 2);
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_true(low.n == 2 && low.alternative[1].fallback); /* too many steps: all at once, which no program does */
    bz_arena_free(&arena);
}

/* Products of 8-bit floats between layers in f16; and in f16 themselves where nothing else runs. */
static void test_f8(void **state)
{
    (void)state;
    const bz_type in[] = {TENSOR(2, 4, 8), TENSOR(2, 8, 6), TENSOR(1, 6)}, out[] = {TENSOR(2, 4, 6)};
    const bz_param params[] = {NUMBERS("transa", 0), NUMBERS("transb", 0)};
    bz_layer l = a_layer("gemm", in, 3, out, params, 2);
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(&l, BZ_F8E4M3, &arena, &low);
    static const char *const TEXTS[] = {
        "gemm m=4 n=6 k=8 batch=1 transa=0 transb=0 post=bias dtype=f8e4m3:f8e4m3:f16",
        "gemm m=4 n=6 k=8 batch=1 transa=0 transb=0 dtype=f8e4m3:f8e4m3:f16",
        "gemm m=4 n=6 k=8 batch=1 transa=0 transb=0 post=bias dtype=f16",
        "gemm m=4 n=6 k=8 batch=1 transa=0 transb=0 dtype=f16",
    };
    assert_int_equal(low.n, 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(low.alternative[i].text[0], TEXTS[i]);
        assert_int_equal(low.alternative[i].fallback, i >= 2);
    }
    assert_string_equal(low.alternative[1].text[1], "binary fn=add a=4x6 b=1x6 dtype=f16");
    bz_lower(&l, BZ_F4E2M1, &arena, &low); /* of 8 numbers no block is made */
    assert_string_equal(low.alternative[0].text[0], TEXTS[2]);
    const bz_type deep[] = {TENSOR(2, 1, 32), TENSOR(2, 32, 6)}, row[] = {TENSOR(2, 1, 6)};
    l = a_layer("gemm", deep, 2, row, params, 2);
    expect(&l, BZ_F4E2M1, 0, 0, "gemm m=1 n=6 k=32 batch=1 transa=0 transb=0 dtype=f4e2m1:f4e2m1:f16");
    expect(&l, BZ_F4E2M1, 1, 0, "gemm m=1 n=6 k=32 batch=1 transa=0 transb=0 dtype=f16");
    l = a_layer("relu", in, 1, in, NULL, 0);
    bz_lower(&l, BZ_F8E4M3, &arena, &low);
    assert_int_equal(low.n, 1);
    assert_string_equal(low.alternative[0].text[0], "activation fn=relu x=4x8 dtype=f16");
    bz_arena_free(&arena);
}

/* Masks, and which keys a query sees. */
static void test_masks(void **state)
{
    (void)state;
    const bz_type in[] = {TENSOR(4, 2, 8, 5, 16), TENSOR(4, 2, 8, 5, 16), TENSOR(4, 2, 8, 5, 16), TENSOR(2, 5, 5)},
                  far[] = {TENSOR(4, 2, 8, 5, 16), TENSOR(4, 2, 8, 7, 16), TENSOR(4, 2, 8, 7, 16), TENSOR(2, 5, 5)},
                  y[] = {TENSOR(4, 2, 8, 5, 16)};
    const bz_param causal[] = {NUMBERS("causal", 1)},
                   capped[] = {{.name = "softcap", .text = "50"}, NUMBERS("causal", 1)},
                   grouped[] = {NUMBERS("heads", 8), NUMBERS("kv_heads", 2), NUMBERS("kv", 5), NUMBERS("qk", 128),
                                NUMBERS("v", 128)};
    bz_layer l = a_layer("attention", in, 4, y, NULL, 0);
    l.macs = 2 * 8 * 5 * 5 * 32;
    expect(&l, BZ_BF16, 1, 0, "attention q=2x8x5x16 k=2x8x5x16 v=2x8x5x16 mask=1x1x5x5 dtype=bf16");
    l = a_layer("attention", in, 3, y, causal, 1);
    l.macs = 2 * 8 * 5 * 5 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x8x5x16 v=2x8x5x16 causal=1 dtype=f32");
    l = a_layer("attention", in, 3, y, capped, 1);
    l.macs = 2 * 8 * 5 * 5 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x8x5x16 v=2x8x5x16 softcap=50 dtype=f32");
    l = a_layer("attention", in, 4, y, capped, 1); /* caps what the mask hides, too: no call does */
    l.macs = 2 * 8 * 5 * 5 * 32;
    expect_count(&l, 1);
    l = a_layer("attention", in, 3, y, capped, 2);
    l.macs = 2 * 8 * 5 * 5 * 32;
    expect_count(&l, 1);
    l = a_layer("attention", far, 3, y, causal, 1); /* the queries' place among the keys is open */
    l.macs = 2 * 8 * 5 * 7 * 32;
    expect_count(&l, 1);
    l = a_layer("attention", far, 4, y, NULL, 0); /* a mask that does not fit is left out, as in the steps */
    l.macs = 2 * 8 * 5 * 7 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x8x7x16 v=2x8x7x16 dtype=f32");
    static const bz_dim SCORES[] = {2, 8, 5, 5};
    for (int which = 0; which < 81; which++) { /* every dimension of the mask may be 1, or the scores' own */
        bz_dim dims[4];
        bool fits = true;
        for (int i = 0, rest = which; i < 4; i++, rest /= 3) {
            dims[i] = rest % 3 == 0 ? 1 : SCORES[i] + rest % 3 - 1;
            fits &= rest % 3 < 2;
        }
        const bz_type masked[] = {
            in[0], in[1], in[2], {.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 4, .dims = dims}};
        char mask[60] = "", text[200];
        if (fits)
            snprintf(mask, sizeof mask, " mask=%dx%dx%dx%d", (int)dims[0], (int)dims[1], (int)dims[2], (int)dims[3]);
        snprintf(text, sizeof text, "attention q=2x8x5x16 k=2x8x5x16 v=2x8x5x16%s dtype=f32", mask);
        l = a_layer("attention", masked, 4, y, NULL, 0);
        l.macs = 2 * 8 * 5 * 5 * 32;
        expect(&l, BZ_UNDEFINED, 1, 0, text);
    }
    const bz_type flat[] = {TENSOR(3, 2, 5, 128), TENSOR(3, 2, 5, 32), TENSOR(3, 2, 5, 32)},
                  one[] = {TENSOR(3, 2, 1, 128), TENSOR(3, 2, 1, 32), TENSOR(3, 2, 1, 32)},
                  out[] = {TENSOR(3, 2, 5, 128)}, out_one[] = {TENSOR(3, 2, 1, 128)};
    l = a_layer("attention", flat, 3, out, grouped, 5);
    l.macs = 2 * 8 * 5 * 5 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x2x5x16 v=2x2x5x16 causal=1 dtype=f32");
    l = a_layer("attention", one, 3, out_one, grouped, 5); /* behind a past: a single query sees all */
    l.macs = 2 * 8 * 1 * 5 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x1x16 k=2x2x5x16 v=2x2x5x16 dtype=f32");
    /* a window of three: of all keys where every query has one, of its own where there is a single query */
    const bz_param sliding[] = {NUMBERS("heads", 8), NUMBERS("kv", 3),       NUMBERS("qk", 128),
                                NUMBERS("v", 128),   NUMBERS("kv_heads", 2), NUMBERS("keys", 5)};
    l = a_layer("attention", flat, 3, out, sliding, 6);
    l.macs = 2 * 8 * 5 * 3 * 32;
    expect(&l, BZ_UNDEFINED, 0, 0, "matmul a=4x20x16 b=4x16x3 constant=0 dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x2x5x16 v=2x2x5x16 causal=1 window=3 dtype=f32");
    l = a_layer("attention", one, 3, out_one, sliding, 6);
    l.macs = 2 * 8 * 1 * 3 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x1x16 k=2x2x3x16 v=2x2x3x16 dtype=f32");
    const bz_param both[] = {NUMBERS("heads", 8),
                             NUMBERS("kv", 3),
                             NUMBERS("qk", 128),
                             NUMBERS("v", 128),
                             NUMBERS("kv_heads", 2),
                             NUMBERS("keys", 5),
                             {.name = "softcap", .text = "30"}};
    l = a_layer("attention", flat, 3, out, both, 7);
    l.macs = 2 * 8 * 5 * 3 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x2x5x16 v=2x2x5x16 causal=1 window=3 softcap=30 dtype=f32");
    bz_type sunk[12] = {flat[0], flat[1], flat[2]}, biased[11] = {flat[0], flat[1], flat[2]};
    sunk[11] = (bz_type)TENSOR(1, 8); /* the score of each head that has no value */
    l = a_layer("attention", sunk, 12, out, grouped, 5);
    l.macs = 2 * 8 * 5 * 5 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x2x5x16 v=2x2x5x16 causal=1 sink=1 dtype=f32");
    biased[10] =
        (bz_type)TENSOR(4, 1, 8, 5, 5); /* what is added to the scores of grouped queries is their eleventh operand */
    l = a_layer("attention", biased, 11, out, grouped, 5);
    l.macs = 2 * 8 * 5 * 5 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x2x5x16 v=2x2x5x16 mask=1x8x5x5 causal=1 dtype=f32");
    /* behind a past of four keys */
    const bz_param behind[] = {NUMBERS("heads", 8), NUMBERS("kv", 9), NUMBERS("qk", 128), NUMBERS("v", 128),
                               NUMBERS("kv_heads", 2)},
                   slid[] = {NUMBERS("heads", 8), NUMBERS("kv", 3),       NUMBERS("qk", 128),
                             NUMBERS("v", 128),   NUMBERS("kv_heads", 2), NUMBERS("keys", 9)};
    l = a_layer("attention", flat, 3, out, behind, 5);
    l.macs = 2 * 8 * 5 * 9 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x2x9x16 v=2x2x9x16 causal=1 dtype=f32");
    l = a_layer("attention", flat, 3, out, slid, 6);
    l.macs = 2 * 8 * 5 * 3 * 32;
    expect(&l, BZ_UNDEFINED, 1, 0, "attention q=2x8x5x16 k=2x2x9x16 v=2x2x9x16 causal=1 window=3 dtype=f32");
}

static void expect_equation(const char *equation, const bz_type *in, int n_in, const bz_type *out, int step,
                            const char *text)
{
    const bz_param params[] = {{.name = "equation", .text = equation}};
    static const bool NONE[3] = {false, false, false};
    bz_layer l = a_layer("einsum", in, n_in, out, params, 1);
    l.in_constant = NONE;
    l.macs = 1;
    if (text) {
        expect(&l, BZ_UNDEFINED, 0, step, text);
        return;
    }
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_int_equal(low.n, 0);
    bz_arena_free(&arena);
}

static void test_equations(void **state)
{
    (void)state;
    const bz_type heads[] = {TENSOR(4, 2, 3, 4, 5), TENSOR(4, 2, 3, 6, 5)}, scores[] = {TENSOR(4, 2, 3, 4, 6)};
    const bz_type ab[] = {TENSOR(2, 4, 5), TENSOR(2, 5, 6)}, y[] = {TENSOR(2, 4, 6)}, swapped[] = {TENSOR(2, 5, 4)},
                  row[] = {TENSOR(1, 4)}, square[] = {TENSOR(2, 4, 4)};
    expect_equation("bhqd,bhkd->bhqk", heads, 2, scores, 0, "matmul a=6x4x5 b=6x5x6 constant=0 dtype=f32");
    expect_equation("...qd, ...kd -> ...qk", heads, 2, scores, 0, "matmul a=6x4x5 b=6x5x6 constant=0 dtype=f32");
    expect_equation("ij,jk->ik", ab, 2, y, 0, "matmul a=4x5 b=5x6 constant=0 dtype=f32");
    expect_equation("ij->ji", ab, 1, swapped, 0, "transpose x=4x5 perm=1x0 dtype=f32");
    expect_equation("ij->i", ab, 1, row, 0, "reduce fn=sum x=4x5 y=4x1 dtype=f32");
    const bz_type chain[] = {TENSOR(2, 3, 90), TENSOR(2, 90, 80), TENSOR(2, 80, 2)}, end[] = {TENSOR(2, 3, 2)};
    expect_equation("ij,jk,kl->il", chain, 3, end, 0, "matmul a=90x80 b=80x2 constant=0 dtype=f32");
    expect_equation("ij,jk,kl->il", chain, 3, end, 1, "matmul a=3x90 b=90x2 constant=0 dtype=f32");
    expect_equation("ii->i", square, 1, row, 0, NULL);
    expect_equation("ij,ij", ab, 2, y, 0, NULL);
    expect_equation("i.j.k.l.m.n.o,->", ab, 2, y, 0, NULL);
    expect_equation("...->...", ab, 1, y, 0, "transpose x=4x5 perm=0x1 dtype=f32");
}

static void test_functions(void **state)
{
    (void)state;
    const bz_type ab[] = {TENSOR(2, 1, 4), TENSOR(2, 3, 4)}, y[] = {TENSOR(2, 3, 4)};
    const bz_param square[] = {{.name = "exponent", .text = "2"}}, cube[] = {{.name = "exponent", .text = "3"}},
                   high[] = {{.name = "max", .text = "1"}}, low[] = {{.name = "min", .text = "0"}},
                   alpha[] = {{.name = "alpha", .text = "2"}};
    bz_layer l = a_layer("greater", ab, 2, y, NULL, 0); /* the smaller one is broadcast, and so comes second */
    expect(&l, BZ_UNDEFINED, 0, 0, "binary fn=lt a=3x4 b=1x4 dtype=f32:f32:u8");
    l = a_layer("pow", y, 1, y, square, 1);
    expect(&l, BZ_UNDEFINED, 0, 0, "activation fn=square x=3x4 dtype=f32");
    l = a_layer("pow", y, 1, y, cube, 1);
    expect(&l, BZ_UNDEFINED, 0, 0, "activation fn=pow x=3x4 alpha=1 beta=3 dtype=f32");
    l = a_layer("clip", y, 1, y, high, 1);
    expect(&l, BZ_UNDEFINED, 0, 0, "activation fn=clip x=3x4 alpha=-3.4028235e+38 beta=1 dtype=f32");
    l = a_layer("clip", y, 1, y, low, 1);
    expect(&l, BZ_UNDEFINED, 0, 0, "activation fn=relu x=3x4 dtype=f32");
    l = a_layer("celu", y, 1, y, alpha, 1);
    expect(&l, BZ_UNDEFINED, 0, 0, "binary fn=div a=3x4 b=1x1 post=elu:1,linear:2:0 dtype=f32");
    l = a_layer("lstm", (const bz_type[]){TENSOR(3, 5, 2, 8)}, 1, (const bz_type[]){TENSOR(4, 5, 1, 2, 16)},
                (const bz_param[]){NUMBERS("hidden", 16), {.name = "activations", .text = "sigmoid,tanh,tanh"}}, 2);
    expect(&l, BZ_U8, 0, 0, "lstm seq=5 batch=2 input=8 hidden=16 dir=forward dtype=u8:i8:u8");
    expect(&l, BZ_UNDEFINED, 1, 5, "matmul a=2x16 b=16x64 constant=1 dtype=f32");
}

/* Of sequences with lengths of their own the shortest bounds from below; unknown lengths bound nothing. */
static void test_lengths(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_lowering low;
    const bz_type in[] = {TENSOR(3, 5, 2, 8)}, out[] = {TENSOR(4, 5, 1, 2, 16)};
    bz_param params[] = {NUMBERS("hidden", 16), {.name = "activations", .text = "tanh"}, NUMBERS("lengths", 4, 3)};
    bz_layer l = a_layer("rnn", in, 1, out, params, 3);
    expect(&l, BZ_UNDEFINED, 0, 0, "rnn seq=3 batch=2 input=8 hidden=16 dir=forward fn=tanh dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 0, "matmul a=6x8 b=8x16 constant=1 dtype=f32");
    expect(&l, BZ_UNDEFINED, 1, 4, "activation fn=tanh x=6x16 dtype=f32");
    l.macs = 1;
    params[2] = (bz_param){.name = "lengths", .text = "data"};
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_int_equal(low.n, 0);
    assert_non_null(strstr(low.why, "depends on data"));
    params[2] = (bz_param)NUMBERS("lengths", 0, 3);
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_int_equal(low.n, 0);
    bz_arena_free(&arena);
}

static void test_never_zero(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_lowering low;
    const bz_type x[] = {TENSOR(2, 2, 3)};
    bz_layer l = a_layer("isnan", x, 1, x, NULL, 0); /* no library: a copy stands in */
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_int_equal(low.n, 1);
    assert_true(low.alternative[0].modelled);
    /* of a layer's bytes only floating-point ones change with the type that the user wants */
    const bz_type choice[] = {{.kind = BZ_TYPE_TENSOR, .dtype = BZ_BOOL, .rank = 2, .dims = DIMS(2, 3)}, x[0], x[0]};
    l = a_layer("compress", choice, 3, x, NULL, 0);
    expect(&l, BZ_UNDEFINED, 0, 0, "copy read=976 write=24 dtype=u8");
    expect(&l, BZ_BF16, 0, 0, "copy read=488 write=12 dtype=u8");
    /* where our loops run it, devices have a copy */
    l = a_layer("where", choice, 3, x, NULL, 0);
    expect(&l, BZ_UNDEFINED, 0, 0, "where c=2x3 a=2x3 b=2x3 dtype=f32");
    expect(&l, BZ_BF16, 1, 0, "copy read=488 write=12 dtype=u8");
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_true(low.n == 2 && !low.alternative[0].fallback && low.alternative[1].fallback);
    l = a_layer("einsum", x, 1, x, NULL, 0); /* arithmetic that nothing stands in for */
    l.macs = 100;
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_true(!low.n && !low.free && low.why);
    l.priced = false;
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_true(!low.n && !low.free && low.why);
    l.class = BZ_VIEW;
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_true(low.free);
    bz_arena_free(&arena);
}

/* Names come from strangers: they stay inside their comment. The same plan gives the same bytes. */
static void test_hostile_source(void **state)
{
    (void)state;
    const bz_type x[] = {TENSOR(2, 2, 3)};
    bz_layer l = a_layer("relu", x, 1, x, NULL, 0);
    l.name = "*/ int main(void) { system(\"rm\"); } /*\n#include \"x\" \\";
    bz_layers layers = {.layer = &l, .n = 1};
    bz_buf text[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        bz_plan *plan = bz_plan_new(&(bz_plan_options){0});
        const bz_plan_layer *item;
        bz_plan_add(plan, &layers, "../*/evil\n.onnx");
        assert_int_equal(bz_plan_layers(plan, &item), 1);
        assert_true(strspn(item->file, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(item->file));
        bz_generate_source(plan, item, &text[i]);
        bz_plan_free(plan);
    }
    const char *end = strstr(bz_buf_text(&text[0]), "*/"),
               *include = strstr(bz_buf_text(&text[0]), "#include \"runtime");
    assert_non_null(end);
    assert_non_null(include);
    assert_ptr_equal(end + 3, include); /* the first comment ends where it should */
    assert_null(strstr(include, "evil"));
    assert_string_equal(bz_buf_text(&text[0]), bz_buf_text(&text[1]));
    bz_buf_free(&text[0]);
    bz_buf_free(&text[1]);
}

/* Gradients by the shapes of their operands and results. */
static void test_training(void **unused)
{
    (void)unused;
    const bz_type image = TENSOR(4, 2, 8, 6, 6), small = TENSOR(4, 2, 16, 3, 3), weights = TENSOR(4, 16, 8, 3, 3);
    const bz_type rows = TENSOR(3, 2, 5, 8), scale = TENSOR(1, 8), rate = TENSOR(0, 0);
    const bz_param window[] = {NUMBERS("stride", 2, 2),
                               NUMBERS("pad", 1, 1, 1, 1),
                               NUMBERS("dilation", 1, 1),
                               {.name = "group", .v = (const int64_t[]){1}, .n = 1}};
    const bz_param pooling[] = {NUMBERS("kernel", 2, 2), NUMBERS("stride", 2, 2), NUMBERS("pad", 0, 0, 0, 0),
                                NUMBERS("dilation", 1, 1)};
    const bz_type pooled = TENSOR(4, 2, 8, 3, 3);
    bz_layer l = a_layer("conv_data", (bz_type[]){small, weights}, 2, &image, window, 4);
    expect(&l, BZ_UNDEFINED, 0, 0,
           "conv_data x=2x8x6x6 w=16x8x3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32");
    expect(&l, BZ_BF16, 0, 0, "conv_data x=2x8x6x6 w=16x8x3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 group=1 dtype=bf16");
    l = a_layer("conv_weights", (bz_type[]){image, small}, 2, &weights, window, 4);
    expect(&l, BZ_UNDEFINED, 0, 0,
           "conv_weights x=2x8x6x6 w=16x8x3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32");
    l = a_layer("maxpool_grad", (bz_type[]){pooled}, 1, &image, pooling, 4);
    expect(&l, BZ_UNDEFINED, 0, 0,
           "pool_grad mode=max x=2x8x6x6 kernel=2x2 stride=2x2 pad=0x0x0x0 dilation=1x1 dtype=f32");
    l = a_layer("layernorm_grad", (bz_type[]){rows, rows, scale}, 3, &rows, NULL, 0);
    expect(&l, BZ_UNDEFINED, 0, 0, "layernorm_grad x=2x5x8 axis=2 dtype=f32");
    l = a_layer("softmax_grad", (bz_type[]){rows, rows}, 2, &rows, NULL, 0);
    expect(&l, BZ_UNDEFINED, 0, 0, "softmax_grad x=2x5x8 axis=2 dtype=f32");
    const bz_type one = TENSOR(3, 1, 4, 6), many = TENSOR(2, 3, 5);
    l = a_layer("adam", (bz_type[]){rate, rate, one, many, one, many, one, many, one, many}, 10, &one, NULL, 0);
    expect(&l, BZ_UNDEFINED, 0, 0, "update rule=adam x=39 dtype=f32");
    l = a_layer("adam", (bz_type[]){rate, rate, one}, 3, &one, NULL, 0);
    expect(&l, BZ_UNDEFINED, 0, 0, "copy read=904 write=96 dtype=u8");
}

/* The derivative of a layer's function, with the numbers that the layer has, of its result where the function can be turned round. */
static void test_derivatives(void **unused)
{
    (void)unused;
    static const struct {
        const char *kind, *alpha, *beta, *expected; /* of a clip its limits */
        bool inverts;
    } ROWS[] = {
        {"relu", NULL, NULL, "relu", true},
        {"leakyrelu", "0.3", NULL, "leaky alpha=0.3", true},
        {"leakyrelu", "0", NULL, "relu", true},
        {"elu", "0.7", NULL, "elu alpha=0.7", true},
        {"clip", "-1", "6", "clip alpha=-1 beta=6", true},
        {"clip", NULL, "6", "clip alpha=-1e+30 beta=6", true},
        {"clip", "0", NULL, "clip alpha=0 beta=1e+30", true},
        {"sigmoid", NULL, NULL, "sigmoid", true},
        {"tanh", NULL, NULL, "tanh", true},
        {"gelu", NULL, NULL, "gelu_erf", false},
        {"gelu", "tanh", NULL, "gelu_tanh", false},
        {"fastgelu", NULL, NULL, "gelu_tanh", false},
        {"quickgelu", "1.702", NULL, "swish alpha=1.702", false},
        {"hardsigmoid", "0.2", "0.5", "hardsigmoid alpha=0.2 beta=0.5", false},
        {"exp", NULL, NULL, "exp", true},
        {"log", NULL, NULL, "log", false},
        {"sqrt", NULL, NULL, "sqrt", true},
        {"abs", NULL, NULL, "abs", false},
    };
    const bz_type rows = TENSOR(3, 2, 5, 8);
    for (size_t i = 0; i < 2 * (sizeof ROWS / sizeof *ROWS); i++) {
        const char *kind = ROWS[i / 2].kind, *name = !strcmp(kind, "clip")   ? "min"
                                                     : !strcmp(kind, "gelu") ? "approximate"
                                                                             : "alpha";
        bz_param given[4] = {{.name = "function", .text = kind}, {.name = "uses", .text = i % 2 ? "y" : "x"}};
        int n = 2;
        if (ROWS[i / 2].alpha)
            given[n++] = (bz_param){.name = name, .text = ROWS[i / 2].alpha};
        if (ROWS[i / 2].beta)
            given[n++] = (bz_param){.name = *name == 'm' ? "max" : "beta", .text = ROWS[i / 2].beta};
        bz_layer l = a_layer("eltwise_grad", (bz_type[]){rows, rows}, 2, &rows, given, n);
        char text[200];
        size_t function = strcspn(ROWS[i / 2].expected, " ");
        snprintf(text, sizeof text, "activation_grad fn=%.*s x=2x5x8%s%s dtype=f32", (int)function,
                 ROWS[i / 2].expected, i % 2 && ROWS[i / 2].inverts ? " of_y=1" : "", ROWS[i / 2].expected + function);
        expect(&l, BZ_UNDEFINED, 0, 0, text);
    }
}

/* Of two operands the types are those of a product; 64 quantized parts are a concat, 65 are none. */
static void test_borders(void **state)
{
    (void)state;
    const bz_type terms[] = {TENSOR(3, 2, 4, 8), TENSOR(3, 2, 8, 6)}, sum[] = {TENSOR(3, 2, 4, 6)};
    const bz_param equation[] = {{.name = "equation", .text = "abc,acd->abd"}};
    bz_layer l = a_layer("einsum", terms, 2, sum, equation, 1);
    expect(&l, BZ_F8E4M3, 0, 0, "matmul a=2x4x8 b=2x8x6 constant=1 dtype=f8e4m3:f8e4m3:f16");

    bz_type in[2 + 3 * 65];
    bool constant[2 + 3 * 65] = {false};
    const bz_type pair = TENSOR(1, 2); /* its dimensions live as long */
    for (int i = 0; i < 2 + 3 * 65; i++)
        in[i] = pair;
    const bz_param axis[] = {NUMBERS("axis", 0)};
    const bz_type joined[] = {TENSOR(1, 128)};
    l = a_layer("qconcat", in, 2 + 3 * 64, joined, axis, 1);
    l.in_constant = constant;
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_true(low.n && !strncmp(low.alternative[0].text[0], "concat ", 7));
    l.n_in += 3;
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_true(!low.n || strncmp(low.alternative[0].text[0], "concat ", 7) != 0);
    bz_arena_free(&arena);
}

/* Weights of u8 that are constant become i8 before the program runs; others nobody multiplies by. */
static void test_unsigned_weights(void **state)
{
    (void)state;
    bz_type in[] = {TENSOR(2, 4, 8), TENSOR(2, 8, 6)};
    const bz_type out[] = {TENSOR(2, 4, 6)};
    const bz_param params[] = {NUMBERS("transa", 0), NUMBERS("transb", 0)};
    static const bool NEITHER[2] = {false, false};
    in[0].dtype = in[1].dtype = BZ_U8;
    bz_layer l = a_layer("gemm", in, 2, out, params, 2);
    expect(&l, BZ_UNDEFINED, 0, 0, "gemm m=4 n=6 k=8 batch=1 transa=0 transb=0 dtype=u8:i8:f32");
    l.in_constant = NEITHER;
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(&l, BZ_UNDEFINED, &arena, &low);
    assert_true(!low.n || strncmp(low.alternative[0].text[0], "gemm ", 5) != 0);
    bz_arena_free(&arena);
}

/* [batch, channels, space], of one to three dimensions in space: layouts with the channels last are of these. */
static void test_space(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool space;
    } CASES[] = {
        {"softmax x=8 axis=0 dtype=f32", false},          {"softmax x=8x8 axis=0 dtype=f32", false},
        {"softmax x=8x8x4 axis=0 dtype=f32", true},       {"softmax x=8x8x4x4 axis=0 dtype=f32", true},
        {"softmax x=8x8x4x4x4 axis=0 dtype=f32", true},   {"softmax x=8x8x4x4x4x2 axis=0 dtype=f32", false},
        {"conv x=1x8x9 w=8x8x3 dtype=f32", true},         {"conv x=1x8x9x9 w=8x8x3x3 dtype=f32", true},
        {"conv x=1x8x9x9x9 w=8x8x3x3x3 dtype=f32", true}, {"matmul a=4x8 b=8x4 dtype=f32", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_problem p;
        bz_error err;
        if (bz_problem_parse(CASES[i].text, &p, &err))
            fail_msg("%s", err.text);
        if (plan_has_space(&p) != CASES[i].space)
            fail_msg("%s", CASES[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_softmax_of_old),
        cmocka_unit_test(test_ignored_labels),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_narrow_products),
        cmocka_unit_test(test_fused_products),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_grad),
        cmocka_unit_test(test_recurrent_training),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_even_padding),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_f8),
        cmocka_unit_test(test_equations),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_never_zero),
        cmocka_unit_test(test_hostile_source),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_unsigned_weights),
        cmocka_unit_test(test_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
