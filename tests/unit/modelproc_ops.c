/* Operators one by one: a model of one node (or two in a chain) is written in memory and its result
 * types are held against what the operator's specification says. The table covers what the ONNX
 * package's own test models leave out: operator sets 18 to 23, com.microsoft, ai.onnx.ml. */
#include "modelproc/modelproc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modelproc_ops_model.h"

#include "modelproc_gradient_cases.h"
#include "modelproc_limits_cases.h"

/* What must be refused with a sentence, and must not crash. */
static const op_case hostile[] = {
    {"LSTM", 14, "f32:5x2x8 f32:1x64x8 f32:1x60x16", "hidden_size=i:16", "!do not fit a hidden size", -1},
    {"LSTM", 14, "f32:5x2x8 f32:1x64x8 f32:1x64x16", "direction=s:sideways", "!is none of forward", -1},
    {"GRU", 14, "f32:5x2x8 f32:1x48x9 f32:1x48x16", "", "!inputs of size", -1},
    {"QuantizeLinear", 21, "f32:4x6 f32:6", "axis=i:9", "!outside", -1},
    {"QuantizeLinear", 21, "f32:4x6 f32: i8:", "output_dtype=i:2", "!output_dtype", -1},
    {"DequantizeLinear", 23, "i8:4 f32:", "output_dtype=i:999", "!no data type", -1},
    {"Resize", 13, "f32:1x1x4x4 - f32=1,1,-2,2", "", "!scale", -1},
    {"Resize", 13, "f32:1x1x4x4 - f32=1,1,1e30,2", "", "!memory", -1},
    {"Resize", 13, "f32:1x1x4x4 - f32=1,1", "", "!2 scales for 4", -1},
    {"Resize", 18, "f32:1x1x4x4 - - i64=2,-5", "axes=I:2,3", "!negative", -1},
    {"Resize", 13, "f32:1x1x4x4", "", "!neither sizes nor scales", -1},
    {"RoiAlign", 16, "f32:2x8x16x16 f32:5x4 i64:5", "output_height=i:-7", "!output_height", -1},
    {"GridSample", 20, "f32:2x3x4x5 f32:2x7x8x3", "", "!grid", -1},
    {"AffineGrid", 20, "f32:2x2x3 i64=2,3,-5,6", "", "!negative", -1},
    {"Col2Im", 18, "f32:1x5x5 i64=5,5 i64=0,5", "", "!positive", -1},
    {"Col2Im", 18, "f32:1x7x5 i64=5,5 i64=1,5", "", "!multiple", -1},
    {"MaxUnpool", 11, "f32:1x1x2x2 i64:1x1x2x2", "kernel_shape=I:2,2 pads=I:9,9,9,9", "!nothing remains", -1},
    {"MaxUnpool", 11, "f32:1x1x2x2 i64:1x1x2x2", "kernel_shape=I:2,2 strides=I:9223372036854775807,2", "f32:1x1x?x4",
     -1},
    {"MaxUnpool", 11, "f32:1x1x2x2 i64:1x1x2", "kernel_shape=I:2,2", "!", -1},
    {"MaxUnpool", 11, "f32:1x1x2x2", "kernel_shape=I:2,2", "!", -1},
    {"MaxUnpool", 11, "f32:1x1 i64:1x1", "kernel_shape=I:2,2", "!batch of images", -1},
    {"DFT", 20, "f32:1x10x2 - i64:=2", "", "!real and imaginary", -1},
    {"DFT", 20, "f32:1x10x2 i64:=-4", "", "!samples", -1},
    {"STFT", 17, "f32:1x8x1 i64:=0 - i64:=4", "", "!apart", -1},
    {"STFT", 17, "f32:1x8x1 i64:=2 - i64:=40", "", "!in a signal", -1},
    {"HannWindow", 17, "i64:=-3", "", "!window", -1},
    {"MelWeightMatrix", 17, "i64:=8 i64:=-2 i64: f32: f32:", "", "!sizes are negative", -1},
    {"MelWeightMatrix", 17, "i64: i64:=-2 i64: f32: f32:", "", "!sizes are negative", -1},
    {"MelWeightMatrix", 17, "i64:=-1 i64:=16 i64: f32: f32:", "", "!sizes are negative", -1},
    {"MelWeightMatrix", 17, "i64:=-1 i64: i64: f32: f32:", "", "!sizes are negative", -1},
    {"Range", 11, "i64:=1 i64:=5 i64:=0", "", "!step is 0", -1},
    {"Range", 11, "i64:=-9000000000000000000 i64:=9000000000000000000 i64:=1", "", "!memory", -1},
    {"Range", 11, "f32:=0 f32:=1e20 f32:=1", "", "!memory", -1},
    {"SequenceConstruct", 11, "f32:2 i64:2", "", "!different types", -1},
    {"SplitToSequence", 11, "f32:7x4 i64=2,6", "", "!add up", -1},
    {"SplitToSequence", 11, "f32:7x4 i64:=0", "", "!pieces of 0", -1},
    {"SplitToSequence", 11, "f32:7x4 i64:=3 > SequenceAt i64:=3", "", "!outside of a sequence of 3", -1},
    {"SplitToSequence", 11, "f32:1000000000000x4 i64:=1 > SequenceAt i64:=3", "", "f32:1x4", 0},
    {"ConcatFromSequence", 11, "f32:2x3", "axis=i:0", "!must be a sequence", -1},
    {"RandomNormal", 22, "", "shape=I:-2,3", "!dimension 0 is -2", -1},
    {"RandomNormal", 22, "", "shape=I:4000000000,4000000000,4000000000", "!memory", -1},
    {"SoftmaxCrossEntropyLoss", 13, "f32:2x5x6 i64:2x7", "", "!differ", -1},
    {"TfIdfVectorizer", 9, "i64:2x12", "ngram_indexes=I:-1", "!ngram_indexes", -1},
    {TRAIN "Adam", 1, "f32: i64: f32:2 f32:2 f32:2", "", "!groups", -1},
    {MS "Attention", 1, "f32:2x8x32 f32:32x96 f32:96", "num_heads=i:0", "!num_heads", -1},
    {MS "Attention", 1, "f32:2x8x32 f32:31x96 f32:96", "num_heads=i:4", "!weights for 31", -1},
    {MS "Attention", 1, "f32:2x8x32 f32:32x97 f32:97", "num_heads=i:4", "!split in three", -1},
    {MS "GroupQueryAttention", 1, "f16:2x8x64 f16:2x8x16 f16:2x8x16", "num_heads=i:8 kv_num_heads=i:3", "!heads", -1},
    {MS "GroupQueryAttention", 1, "f16:2x8x64", "num_heads=i:2 kv_num_heads=i:-9223372036854775808", "!kv_num_heads",
     -1},
    {MS "MatMulNBits", 1, "f16:2x3x65 u8:16x2x16 f16:32", "K=i:64 N=i:16", "!its operand ends in 65", -1},
    {MS "FusedMatMul", 1, "f32:3x4 f32:3x5", "transA=i:0", "!", -1},
    {MS "MoE", 1, "f32:6x16 f32:6x5 f32:4x64x16 - f32:4x16x64", "k=i:2", "!experts", -1},
    {MS "BiasSplitGelu", 1, "f16:2x8x63 f16:63", "", "!halved", -1},
    {MS "GatherND", 1, "f32:2x3x4 i64:5x4", "", "!indexes 4 of 3 dimensions", -1},
    {MS "Pad", 1, "f32:2x3 i64=0,-9,2,3", "", "!nothing remains", -1},
    {ML "LabelEncoder", 2, "string:2x3", "keys_strings=S:a,b", "!no values", -1},
    {ML "LinearRegressor", 1, "f32:5x4x3", "", "!samples, features", -1},
    {ML "TreeEnsembleRegressor", 1, "f32:5x4", "n_targets=i:-2", "!targets", -1},
};

/* Operations instead of multiplications: by hand 4 for two complex numbers, 16 for four; of eight, 22 for real ones, 56 for complex ones. */
static const op_case transforms[] = {
    {"DFT", 17, "f32:3x2x2", "axis=i:1", "f32:3x2x2", 3 * 4},
    {"DFT", 17, "f32:3x4x2", "axis=i:1", "f32:3x4x2", 3 * 16},
    {"DFT", 17, "f32:3x8x2", "axis=i:1", "f32:3x8x2", 3 * 56},
    {"DFT", 17, "f32:3x8x1", "axis=i:1 onesided=i:1", "f32:3x5x2", 3 * 22},
    {"DFT", 17, "f32:3x1x2", "axis=i:1", "f32:3x1x2", 0},
    {"STFT", 17, "f32:1x128x1 i64:=8 - i64:=8", "", "f32:1x16x5x2", 16 * 22},
    {"STFT", 17, "f32:1x128x2 i64:=8 - i64:=8", "onesided=i:0", "f32:1x16x8x2", 16 * 56},
    {MS "Rfft", 1, "f32:2x3x8", "signal_ndim=i:1", "f32:2x3x5x2", 6 * 22},
    {MS "Irfft", 1, "f32:2x3x5x2", "signal_ndim=i:1", "f32:2x3x8", 6 * 22},
};

/* Here the last number is 1 where nothing moves. */
static const op_case wholes[] = {
    {"Transpose", 13, "f32:1x1x12x64", "perm=I:0,2,1,3", "f32:1x12x1x64", 1},
    {"Transpose", 13, "f32:2x1x12x64", "perm=I:0,2,1,3", "f32:2x12x1x64", 1},
    {"Transpose", 13, "f32:2x1x12x64", "perm=I:1,2,0,3", "f32:1x12x2x64", 0},
    {"Transpose", 13, "f32:1x7x1", "", "f32:1x7x1", 1},
    {"Transpose", 13, "f32:7x2", "", "f32:2x7", 0},
    {"Expand", 13, "f32:2x3 i64=1,2,1", "", "f32:1x2x3", 1},
    {"Expand", 13, "f32:2x1 i64=2,3", "", "f32:2x3", 0},
    {"Tile", 13, "f32:2x3 i64=1,1", "", "f32:2x3", 1},
    {"Tile", 13, "f32:2x3 i64=1,2", "", "f32:2x6", 0},
    {"Slice", 13, "f32:2x3 i64=0 i64=99 i64=1", "", "f32:2x3", 1},
    {"Slice", 13, "f32:2x3 i64=-1 i64=-9 i64=1 i64=-1", "", "f32:2x3", 0},
    {"Slice", 13, "f32:2x1 i64=-1 i64=-9 i64=1 i64=-1", "", "f32:2x1", 1},
    {"Slice", 13, "f32:2x3 i64=1 i64=9 i64=1", "", "f32:2x2", 0},
    {"Concat", 13, "f32:2x3", "axis=i:0", "f32:2x3", 1},
    {"Concat", 13, "f32:2x3 f32:2x0", "axis=i:1", "f32:2x3", 1},
    {"Concat", 13, "f32:2x0 f32:2x3", "axis=i:1", "f32:2x3", 0}, /* it is not operand 0 */
    {"Split", 13, "f32:4x3 i64=4", "axis=i:0", "f32:4x3", 1},
    {"Split", 13, "f32:4x3 i64=1,3", "axis=i:0", "f32:1x3 f32:3x3", 0},
    {"Cast", 13, "f32:4x3", "to=i:1", "f32:4x3", 1},
    {"Cast", 13, "i32:4x3", "to=i:1", "f32:4x3", 0},
    {"CastLike", 15, "f32:4x3 f32:7", "", "f32:4x3", 1},
    {"Max", 13, "f32:4x3", "", "f32:4x3", 1},
    {"Clip", 13, "f32:4x3", "", "f32:4x3", 1},
    {"Clip", 13, "f32:4x3 - f32:", "", "f32:4x3", 0},
    {"Sum", 13, "f32:4x3 f32:4x3", "", "f32:4x3", 0},
    {"ReduceMean", 13, "f32:1x4x1", "axes=I:0,2 keepdims=i:0", "f32:4", 1},
    {"ReduceMean", 13, "f32:1x4x2", "axes=I:2", "f32:1x4x1", 0},
    {"ReduceL1", 13, "f32:1x4x1", "axes=I:0", "f32:1x4x1", 0}, /* a negative number becomes positive */
    {"ReduceSum", 13, "f32:4x3", "noop_with_empty_axes=i:1", "f32:4x3", 1},
};

typedef enum { OF_MACS, OF_FLOPS, OF_VIEW } number;

static int64_t number_of(const bz_layer *l, number which)
{
    return which == OF_MACS ? l->macs : which == OF_FLOPS ? l->flops : l->class == BZ_VIEW;
}

static bool check_case(const op_case *c, number which)
{
    bz_buf found = {0};
    inferred m;
    int64_t macs = -1;
    bool fine;
    if (!infer_case(&m, c, false)) {
        bz_buf_printf(&found, "!%s", m.err.text);
        fine = *c->out == '!' && strstr(m.err.text, c->out + 1);
    } else {
        const bz_layer *last = last_layer(&m);
        for (int k = 0; k < last->n_out; k++) {
            bz_buf_puts(&found, k ? " " : "");
            if (last->out[k].kind == BZ_TYPE_TENSOR)
                bz_buf_printf(&found, "%s:", bz_dtype_name(last->out[k].dtype));
            bz_type_text(NULL, &last->out[k], &found);
        }
        macs = number_of(last, which);
        fine = !strcmp(bz_buf_text(&found), c->out) && (c->macs < 0 || c->macs == macs);
        if (strstr(c->out, "!"))
            fine = false;
    }
    if (!fine)
        print_error("%s-%d(%s) {%s}\n    wanted %s, %lld MACs\n    found  %s, %lld MACs\n", c->op, c->opset, c->in,
                    c->attrs ? c->attrs : "", c->out, (long long)c->macs, bz_buf_text(&found), (long long)macs);
    end_case(&m);
    bz_buf_free(&found);
    return fine;
}

static void check_all(const op_case *cases, size_t n)
{
    int wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += !check_case(&cases[i], cases == transforms ? OF_FLOPS : cases == wholes ? OF_VIEW : OF_MACS);
    assert_int_equal(wrong, 0);
}

#define CHECK(table)                                                                                                   \
    static void test_##table(void **state)                                                                             \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check_all((table), sizeof(table) / sizeof *(table));                                                           \
    }
CHECK(standard)
CHECK(microsoft)
CHECK(classical)
CHECK(hostile)
CHECK(limits)
CHECK(gradients)
CHECK(transforms)
CHECK(wholes)

/* Range(start, limit, step) is start, start + step, … as long as these lie before the limit. */
static void ranges_are_counted(void **state)
{
    (void)state;
    static const char *const TYPES[] = {"i64", "i32", "f32"};
    int wrong = 0;
    for (int start = -4; start <= 4; start += 2)
        for (int limit = -5; limit <= 5; limit++)
            for (int step = -4; step <= 4; step += step == -1 ? 2 : 1)
                for (int type = 0; type < 3; type++) {
                    double by = type == 2 ? .25 * step : step;
                    const char *t = TYPES[type];
                    char in[96], out[32], in_two[96];
                    int n = 0;
                    while (by > 0 ? start + n * by < limit : start + n * by > limit)
                        n++;
                    snprintf(in, sizeof in, "%s:=%d %s:=%d %s:=%g", t, start, t, limit, t, by);
                    snprintf(in_two, sizeof in_two, "%s:=%d %s:=%d", t, start, t, limit);
                    snprintf(out, sizeof out, "%s:%d", t, n);
                    wrong += !check_case(&(op_case){"Range", 11, in, "", out, -1}, OF_MACS);
                    wrong += !check_case(&(op_case){MS "Range", 1, in, "", out, -1}, OF_MACS);
                    if (by == 1) /* what is left out */
                        wrong += !check_case(&(op_case){MS "Range", 1, in_two, "", out, -1}, OF_MACS);
                }
    static const op_case OTHERS[] = {
        {"Range", 11, "i64:=2 i64:=9 i64:=3 > ConstantOfShape", "", "f32:2x5x8", -1},
        {"Range", 11, "i64:=7 i64:=0 i64:=-2 > ConstantOfShape", "", "f32:7x5x3x1", -1},
        {"Range", 11, "i64:=2 i64:=2 i64:=1 > ConstantOfShape", "", "f32:scalar", -1},
        {"Range", 11, "i64: i64:=9 i64:=3", "", "i64:?", -1},
        {"Range", 11, "i64:=2 i64: i64:=3", "", "i64:?", -1},
        {"Range", 11, "i64:=2 i64:=9 i64:", "", "i64:?", -1},
        {MS "Range", 1, "i64:=2 i64:=9 i64:", "", "i64:?", -1},
    };
    assert_int_equal(wrong, 0);
    check_all(OTHERS, sizeof OTHERS / sizeof *OTHERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_counted), cmocka_unit_test(test_standard),   cmocka_unit_test(test_microsoft),
        cmocka_unit_test(test_classical),     cmocka_unit_test(test_hostile),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_gradients),     cmocka_unit_test(test_transforms), cmocka_unit_test(test_wholes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
