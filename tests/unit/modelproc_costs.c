/* What layers cost, by definition: operations are counted in the formula that an operator computes for each element; operators that are one
 * layer under two names cost the same. */
#include "modelproc/modelproc.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modelproc_ops_model.h"

static const bz_layer *infer(inferred *s, const char *op, int opset, const char *in, const char *attrs, const char *out)
{
    const op_case c = {op, opset, in, attrs, out, -1};
    if (!infer_case(s, &c, false))
        fail_msg("%s(%s): %s", op, in, s->err.text);
    return last_layer(s);
}

/* Signs of arithmetic and names of functions; sum(…) adds each element to one of fewer. Numbers and letters alone are none. */
static int operations_in(const char *formula)
{
    int n = 0;
    for (const char *at = formula; *at; at++) {
        n += strchr("+-*/<>=", *at) != NULL;
        if (isalpha((unsigned char)*at) && isalpha((unsigned char)at[1])) {
            n++;
            while (isalpha((unsigned char)at[1]))
                at++;
        }
    }
    return n;
}

static const struct {
    const char *op;
    int opset;
    const char *in, *attrs, *out, *formula;
    int64_t elements;
} FORMULAS[] = {
    {"Relu", 14, "f32:3x5", "", "f32:3x5", "max(x, 0)", 15},
    {"Sigmoid", 13, "f32:3x5", "", "f32:3x5", "1 / (1 + exp(0 - x))", 15},
    {"Tanh", 13, "f32:3x5", "", "f32:3x5", "tanh(x)", 15},
    {"Softplus", 1, "f32:3x5", "", "f32:3x5", "log(1 + exp(x))", 15},
    {"Softsign", 1, "f32:3x5", "", "f32:3x5", "x / (1 + abs(x))", 15},
    {"HardSwish", 14, "f32:3x5", "", "f32:3x5", "x * clip(x / 6 + 0.5)", 15},
    {"Mish", 18, "f32:3x5", "", "f32:3x5", "x * tanh(log(1 + exp(x)))", 15},
    {"LeakyRelu", 16, "f32:3x5", "", "f32:3x5", "max(x, a * x)", 15},
    {"Elu", 6, "f32:3x5", "", "f32:3x5", "max(x, a * (exp(x) - 1))", 15},
    {"Celu", 12, "f32:3x5", "", "f32:3x5", "max(x, a * (exp(x / a) - 1))", 15},
    {"Selu", 6, "f32:3x5", "", "f32:3x5", "c * max(x, a * (exp(x) - 1))", 15},
    {"HardSigmoid", 6, "f32:3x5", "", "f32:3x5", "max(0, min(1, a * x + b))", 15},
    {"ThresholdedRelu", 10, "f32:3x5", "", "f32:3x5", "x > a", 15},
    {"Swish", 24, "f32:3x5", "", "f32:3x5", "x / (1 + exp(0 - a * x))", 15},
    {"Gelu", 20, "f32:3x5", "", "f32:3x5", "x * h * (1 + erf(x / s))", 15},
    {MS "Gelu", 1, "f32:3x5", "", "f32:3x5", "x * h * (1 + erf(x / s))", 15},
    {MS "FastGelu", 1, "f32:3x5", "", "f32:3x5", "x * h * (1 + tanh(c * (x + d * x * x)))", 15},
    {MS "BiasGelu", 1, "f32:3x5 f32:5", "", "f32:3x5", "(x + b) * h * (1 + erf(x / s))", 15},
    {"Clip", 13, "f32:3x5 f32:=0 f32:=6", "", "f32:3x5", "min(max(x, 0), 6)", 15},
    {"PRelu", 16, "f32:3x5 f32:5", "", "f32:3x5", "max(x, a * x)", 15},
    {"SwiGLU", 28, "f32:3x5 f32:3x5", "", "f32:3x5", "b * x / (1 + exp(0 - a * x))", 15},
    {"Add", 14, "f32:3x5 f32:3x5", "", "f32:3x5", "a + b", 15},
    {"Mul", 14, "f32:3x5 f32:5", "", "f32:3x5", "a * b", 15},
    {"Sub", 14, "f32:5 f32:3x5", "", "f32:3x5", "a - b", 15},
    {"Less", 13, "f32:3x5 f32:3x5", "", "bool:3x5", "a < b", 15},
    {"Sum", 13, "f32:3x5 f32:3x5 f32:5", "", "f32:3x5", "a + b + c", 15},
    {"Max", 13, "f32:3x5 f32:3x5 f32:3x5", "", "f32:3x5", "max(max(a, b), c)", 15},
    {"Max", 13, "f32:3x5 f32:3x5", "", "f32:3x5", "max(a, b)", 15},
    {"Sqrt", 13, "f32:3x5", "", "f32:3x5", "sqrt(x)", 15},
    {"Exp", 13, "f32:3x5", "", "f32:3x5", "exp(x)", 15},
    {"Erf", 13, "f32:3x5", "", "f32:3x5", "erf(x)", 15},
    {"Neg", 13, "f32:3x5", "", "f32:3x5", "0 - x", 15},
    {"Where", 16, "bool:3x5 f32:3x5 f32:3x5", "", "f32:3x5", "choose(c, a, b)", 15},
    {"Identity", 16, "f32:3x5", "", "f32:3x5", "", 15},
    {"Transpose", 13, "f32:3x5", "", "f32:5x3", "", 15},
    {"QuantizeLinear", 13, "f32:3x5 f32:", "", "u8:3x5", "round(x / s) + z", 15},
    {"DequantizeLinear", 13, "u8:3x5 f32:", "", "f32:3x5", "(x - z) * s", 15},
    {MS "DequantizeLinear", 1, "u8:3x5 f32:", "", "f32:3x5", "(x - z) * s", 15},
    {"BatchNormalization", 9, "f32:3x5 f32:5 f32:5 f32:5 f32:5", "", "f32:3x5", "a * x + b", 15},
    {"LayerNormalization", 17, "f32:3x5 f32:5 f32:5", "", "f32:3x5", "sum(x), d: x - m, sum(d * d), d / s * a + b", 15},
    {"RMSNormalization", 23, "f32:3x5 f32:5", "", "f32:3x5", "sum(x * x), x / s * a", 15},
    {MS "SkipLayerNormalization", 1, "f32:1x3x5 f32:1x3x5 f32:5 f32:5", "", "f32:1x3x5",
     "x: y + z, sum(x), d: x - m, sum(d * d), d / s * a + b", 15},
    {MS "SkipSimplifiedLayerNormalization", 1, "f32:1x3x5 f32:1x3x5 f32:5", "", "f32:1x3x5",
     "x: y + z, sum(x * x), x / s * a", 15},
    {MS "FusedConv", 1, "f32:1x2x6x1 f32:3x2x2x1 f32:3 f32:1x3x5x1", "", "f32:1x3x5x1",
     "a * b + a * b + a * b + a * b + 0 + c + z", 15},
    {"ReduceSum", 13, "f32:3x5 i64=1", "", "f32:3x1", "sum(x)", 15},
    {"ReduceMax", 20, "f32:3x5 i64=1", "", "f32:3x1", "max(x)", 15},
    {"ReduceSumSquare", 18, "f32:3x5 i64=1", "", "f32:3x1", "sum(x * x)", 15},
    {"ReduceL1", 18, "f32:3x5 i64=1", "", "f32:3x1", "sum(abs(x))", 15},
    {"CumSum", 14, "f32:3x5 i64:=1", "", "f32:3x5", "s + x", 15},
    {"ArgMax", 13, "f32:3x5", "axis=i:1", "i64:3x1", "x > m", 15},
    {"GlobalAveragePool", 1, "f32:1x3x5", "", "f32:1x3x1", "sum(x)", 15},
    {"AveragePool", 19, "f32:1x3x6", "kernel_shape=I:2 strides=I:1", "f32:1x3x5", "sum(x) + y", 15},
    {"Gemm", 13, "f32:3x7 f32:7x5 f32:5", "", "f32:3x5",
     "a * b + a * b + a * b + a * b + a * b + a * b + a * b + 0 + c", 15},
    {"Conv", 11, "f32:1x2x6 f32:3x2x2 f32:3", "", "f32:1x3x5", "a * b + a * b + a * b + a * b + 0 + c", 15},
    {"Conv", 11, "f32:1x2x6 f32:3x2x2", "", "f32:1x3x5", "a * b + a * b + a * b + a * b + 0", 15},
};

static void operations_are_those_of_the_formula(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof FORMULAS / sizeof *FORMULAS; i++) {
        inferred s;
        const bz_layer *l =
            infer(&s, FORMULAS[i].op, FORMULAS[i].opset, FORMULAS[i].in, FORMULAS[i].attrs, FORMULAS[i].out);
        int64_t flops = operations_in(FORMULAS[i].formula) * FORMULAS[i].elements;
        if (l->flops != flops) {
            print_error("%s(%s): %lld operations, not %lld\n", FORMULAS[i].op, FORMULAS[i].in, (long long)l->flops,
                        (long long)flops);
            wrong++;
        }
        end_case(&s);
    }
    assert_int_equal(wrong, 0);
}

static void one_layer_costs_the_same_under_two_names(void **state)
{
    (void)state;
    static const struct {
        const char *one;
        int opset;
        const char *other;
        int other_opset;
        const char *in, *attrs, *out;
    } ROWS[] = {
        {"LayerNormalization", 17, MS "LayerNormalization", 1, "f32:2x3x4 f32:4 f32:4", "", "f32:2x3x4"},
        {"RMSNormalization", 23, MS "SimplifiedLayerNormalization", 1, "f32:2x3x4 f32:4", "", "f32:2x3x4"},
        {"RMSNormalization", 23, "SimplifiedLayerNormalization", 17, "f32:2x3x4 f32:4", "", "f32:2x3x4"},
        {"Gelu", 20, MS "Gelu", 1, "f32:2x3x4", "", "f32:2x3x4"},
        {"QuantizeLinear", 13, MS "QuantizeLinear", 1, "f32:2x3 f32:", "", "u8:2x3"},
        {"DequantizeLinear", 13, MS "DequantizeLinear", 1, "u8:2x3 f32:", "", "f32:2x3"},
        {"GridSample", 20, "GridSample", 16, "f32:2x3x8x8 f32:2x5x6x2", "", "f32:2x3x5x6"},
        {"GridSample", 20, MS "GridSample", 1, "f32:2x3x8x8 f32:2x5x6x2", "", "f32:2x3x5x6"},
        {"Gemm", 13, MS "FusedGemm", 1, "f32:3x4 f32:4x5 f32:5", "", "f32:3x5"},
        {"Gemm", 13, MS "FusedGemm", 1, "f32:3x4 f32:4x5", "beta=f:2", "f32:3x5"},
        {"Gemm", 13, MS "FusedGemm", 1, "f32:4x3 f32:4x5 f32:3x1", "transA=i:1 alpha=f:2 beta=f:0.5", "f32:3x5"},
        {"Conv", 11, MS "FusedConv", 1, "f32:1x3x8x8 f32:4x3x3x3 f32:4", "", "f32:1x4x6x6"},
        {"Conv", 11, NCHWC "Conv", 1, "f32:1x16x8x8 f32:32x16x3x3 f32:32", "", "f32:1x32x6x6"},
        {"MaxPool", 12, NCHWC "MaxPool", 1, "f32:1x16x8x8", "kernel_shape=I:3,3", "f32:1x16x6x6"},
        {"AveragePool", 11, NCHWC "AveragePool", 1, "f32:1x16x8x8", "kernel_shape=I:3,3", "f32:1x16x6x6"},
        {"GlobalAveragePool", 1, NCHWC "GlobalAveragePool", 1, "f32:1x16x8x8", "", "f32:1x16x1x1"},
        {"Trilu", 14, MS "Trilu", 1, "f32:2x3x3", "", "f32:2x3x3"},
        {"GatherND", 13, MS "GatherND", 1, "f32:2x3x4 i64:5x2", "", "f32:5x4"},
        {"MatMul", 13, MS "FusedMatMul", 1, "f32:2x3x4 f32:2x4x5", "", "f32:2x3x5"},
        {"MatMulInteger", 10, MS "MatMulInteger16", 1, "i16:3x4 i16:4x5", "", "i32:3x5"},
        {"Inverse", 17, MS "Inverse", 1, "f32:2x4x4", "", "f32:2x4x4"},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        inferred s, t;
        const bz_layer *a = infer(&s, ROWS[i].one, ROWS[i].opset, ROWS[i].in, ROWS[i].attrs, ROWS[i].out),
                       *b = infer(&t, ROWS[i].other, ROWS[i].other_opset, ROWS[i].in, ROWS[i].attrs, ROWS[i].out);
        if (strcmp(a->key, b->key) != 0 || a->macs != b->macs || a->flops != b->flops || a->bytes != b->bytes) {
            print_error("%s: %lld products, %lld operations, %lld bytes; %s: %lld, %lld, %lld\n", a->key,
                        (long long)a->macs, (long long)a->flops, (long long)a->bytes, b->key, (long long)b->macs,
                        (long long)b->flops, (long long)b->bytes);
            wrong++;
        }
        end_case(&s);
        end_case(&t);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operations_are_those_of_the_formula),
                                       cmocka_unit_test(one_layer_costs_the_same_under_two_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
