/* Equal key = same layer: an attribute that changes the work is in the key. Each attribute of the tables of operators is set to other
 * values; where the operator takes them, one must give another key or other results, unless OF_NO_WORK says why none does. */
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

static const char *const OF_NO_WORK =
    /* numbers that the same operations compute with, and what is compared with */
    "ImageScaler.scale Affine.alpha ai.onnx.ml.Binarizer.threshold com.microsoft.RelativePositionBias.max_distance "
    "com.microsoft.NGramHashMapping.pad_id com.microsoft.VarlenNGramHashMapping.pad_id "
    "com.microsoft.NGramRepeatBlock.ngram_size com.microsoft.Tokenizer.mark com.microsoft.Tokenizer.mincharnum "
    "com.microsoft.MatMulBnb4.quant_type BatchNormalization.epsilon ArgMax.select_last_index "
    "com.microsoft.MurmurHash3.seed "
    "com.microsoft.QLinearAveragePool.count_include_pad Constant.value_string RegexFullMatch.pattern "
    "com.microsoft.Tokenizer.pad_value "
    "finn.custom_op.general.MultiThreshold.out_dtype ai.onnx.ml.CategoryMapper.cats_int64s "
    "ai.onnx.ml.LabelEncoder.values_int64s "
    "ai.onnx.ml.LinearClassifier.classlabels_ints ai.onnx.ml.OneHotEncoder.cats_int64s "
    "ai.onnx.ml.ZipMap.classlabels_ints qonnx.custom_op.general.Quant.signed qonnx.custom_op.general.Quant.narrow "
    "org.openvinotoolkit.FakeQuantize.levels com.microsoft.Scale.scale_down "
    /* which results are whole: the file says how large they are */
    "com.microsoft.YieldOp.full_shape_outputs "
    /* said by shapes, too */
    "LSTM.hidden_size GRU.hidden_size com.microsoft.LSTMTraining.hidden_size com.microsoft.LSTMGrad.hidden_size "
    "com.microsoft.GRUTraining.hidden_size com.microsoft.GRUGrad.hidden_size benanza.training.RNNTraining.hidden_size "
    "benanza.training.RNNGrad.hidden_size "
    "com.microsoft.MatMulBnb4.transB com.microsoft.PagedAttention.kv_cache_layout "
    "com.microsoft.BiasSoftmax.is_inner_broadcast "
    "com.microsoft.CausalConvWithState.state_window "
    "com.microsoft.CausalConvWithState.channels_last ai.onnx.ml.SVMClassifier.vectors_per_class "
    "ai.onnx.ml.SVMRegressor.n_supports "
    /* along which dimension numbers have a scale: one pass, whichever it is */
    "DequantizeLinear.axis com.microsoft.QuantizeBFP.block_dim com.microsoft.GatherBlockQuantized.quantize_axis "
    "com.amd.quark.MXQuantizeDequantize.axis "
    /* a dropout that is none, a type that has no other value */
    "Dropout.is_test trt.TRT_MXFP8DynamicQuantize.output_dtype";

/* Shapes that fit whatever the attribute says. */
static const op_case SQUARE[] = {
    {"Concat", 13, "f32:3x3 f32:3x3", "axis=i:0", "f32:6x3", -1},
    {"com.microsoft.ConcatTraining", 1, "f32:3x3 f32:3x3", "axis=i:0", "f32:6x3 i64:2", -1},
    {"com.microsoft.SplitTraining", 1, "f32:4x4 i64=2,2", "axis=i:0", "f32:2x4 f32:2x4", -1},
    {"ReduceMax", 13, "f32:3x3", "axes=I:0", "f32:1x3", -1},
    {"Gemm", 13, "f32:4x4 f32:4x4", "transA=i:0 transB=i:0", "f32:4x4", -1},
    {MS "FusedMatMul", 1, "f32:4x4x4 f32:4x4x4", "transA=i:0 transB=i:0 transBatchA=i:0 transBatchB=i:0", "f32:4x4x4",
     -1},
    {MS "TransposeMatMul", 1, "f32:4x4 f32:4x4", "transA=i:0 transB=i:0", "f32:4x4", -1},
    {MS "FusedGemm", 1, "f32:4x4 f32:4x4", "transA=i:0 transB=i:0", "f32:4x4", -1},
    {MS "QGemm", 1, "u8:4x4 f32: u8: i8:4x4 f32: i8:", "transA=i:0 transB=i:0", "f32:4x4", -1},
    {MS "QLinearConv", 1, "u8:1x3x3x3 f32: u8: i8:3x3x3x3 f32: i8: f32: u8:", "channels_last=i:0 group=i:1",
     "u8:1x3x1x1", -1},
    {MS "QLinearConcat", 1, "f32: u8: u8:3x3 f32: u8: u8:3x3 f32: u8:", "axis=i:0", "u8:6x3", -1},
    {MS "UnfoldTensor", 1, "f32:9x9", "dim=i:0 size=i:3 step=i:2", "f32:4x9x3", -1},
    {MS "QOrderedMatMul", 1, "i8:4x4 f32: i8:4x4 f32: f32: f32:4", "order_A=i:1 order_B=i:1 order_Y=i:1", "i8:4x4", -1},
    {MS "QuantizeWithOrder", 1, "f16:32x32 f32:", "order_input=i:1 order_output=i:2", "i8:32x32", -1},
    {MS "DequantizeWithOrder", 1, "i8:32x32 f32:", "order_input=i:2 order_output=i:1 to=i:10", "f16:32x32", -1},
    {MS "NhwcConv", 1, "f16:1x5x5x5 f16:5x3x3x5", "pads=I:1,1,1,1 strides=I:1,1 dilations=I:1,1", "f16:1x5x5x5", -1},
    {MS "MultiHeadAttention", 1, "f32:2x8x32 f32:2x8x32 f32:2x8x32", "num_heads=i:4 unidirectional=i:0", "f32:2x8x32",
     -1},
    {MS "Attention", 1, "f32:2x8x32 f32:32x96 f32:96", "num_heads=i:4 unidirectional=i:0 do_rotary=i:0", "f32:2x8x32",
     -1},
    {MS "GroupQueryAttention", 1, "f16:2x8x64 f16:2x8x64 f16:2x8x64 - - i32:2 i32:=8",
     "num_heads=i:8 kv_num_heads=i:8 local_window_size=i:-1 do_rotary=i:0", "f16:2x8x64 f16:2x8x8x8 f16:2x8x8x8", -1},
    {"Attention", 23, "f32:2x4x6x8 f32:2x4x6x8 f32:2x4x6x8", "is_causal=i:0", "f32:2x4x6x8", -1},
    {"Trilu", 14, "f32:3x3", "upper=i:1", "f32:3x3", -1},
    {"Trilu", 14, "f32:3x3", "", "f32:3x3", -1},
    {"CumSum", 14, "f32:3x3 i64:=0", "", "f32:3x3", -1},
    {"Gemm", 13, "f32:4x4 f32:4x4", "", "f32:4x4", -1},
    {"Gemm", 13, "f32:4x4 f32:4x4 f32:4", "", "f32:4x4", -1},
    {"AveragePool", 19, "f32:1x3x5x5", "kernel_shape=I:3,3 pads=I:1,1,1,1 strides=I:2,2", "f32:1x3x3x3", -1},
    {"DepthToSpace", 13, "f32:1x4x3x3", "blocksize=i:2", "f32:1x1x6x6", -1},
    {"LeakyRelu", 16, "f32:3", "", "f32:3", -1},
    {"Elu", 6, "f32:3", "", "f32:3", -1},
    {"Celu", 12, "f32:3", "", "f32:3", -1},
    {"Selu", 6, "f32:3", "", "f32:3", -1},
    {"HardSigmoid", 6, "f32:3", "", "f32:3", -1},
    {"Shrink", 9, "f32:3", "", "f32:3", -1},
    {"ThresholdedRelu", 10, "f32:3", "", "f32:3", -1},
    {"Softmax", 13, "f32:3x4", "", "f32:3x4", -1},
    {"LogSoftmax", 13, "f32:3x4", "", "f32:3x4", -1},
    {"Hardmax", 13, "f32:3x4", "", "f32:3x4", -1},
    {"TopK", 11, "f32:3x4 i64=2", "", "f32:3x2 i64:3x2", -1},
    {"Gather", 13, "f32:3x4 i64:2", "", "f32:2x4", -1},
    {"GatherElements", 13, "f32:3x3 i64:3x3", "", "f32:3x3", -1},
    {"Flatten", 13, "f32:2x3x4", "", "f32:2x12", -1},
    {"Split", 13, "f32:4x4", "", "f32:2x4 f32:2x4", -1},
    {"ReverseSequence", 10, "f32:3x3 i64:3", "", "f32:3x3", -1},
    {"ScatterElements", 16, "f32:3x3 i64:3x3 f32:3x3", "", "f32:3x3", -1},
    {"ArgMax", 13, "f32:3x4", "", "i64:1x4", -1},
    {"Mod", 13, "i32:3 i32:3", "", "i32:3", -1},
    {"QuantizeLinear", 13, "f32:3x4 f32:4", "", "u8:3x4", -1},
    {"DequantizeLinear", 13, "u8:3x4 f32:4", "", "f32:3x4", -1},
    {MS "GatherGrad", 1, "i64=10,4 i64:3 f32:3x4", "", "f32:10x4", -1},
    {MS "GatherNDGrad", 1, "i64=10,4 i64:3x1 f32:3x4", "", "f32:10x4", -1},
    {MS "GatherNDGrad", 1, "i64=3,4 i64:3x1 f32:3", "batch_dims=i:1", "f32:3x4", -1},
    {MS "RotaryEmbedding", 1, "f32:2x8x64 i64:2x8 f32:50x4 f32:50x4", "interleaved=i:1", "f32:2x8x64", -1},
    {MS "QuickGelu", 1, "f32:3", "", "f32:3", -1},
    {MS "Trilu", 1, "f32:3x3", "upper=i:1", "f32:3x3", -1},
    {"Softmax", 13, "f32:3x3", "axis=i:0", "f32:3x3", -1},
    {"CumSum", 14, "f32:3x3 i64:=0", "exclusive=i:0 reverse=i:0", "f32:3x3", -1},
    {"LpNormalization", 22, "f32:3x3", "axis=i:0 p=i:2", "f32:3x3", -1},
    {"GatherElements", 13, "f32:3x3 i64:3x3", "axis=i:0", "f32:3x3", -1},
    {"ScatterElements", 16, "f32:3x3 i64:3x3 f32:3x3", "axis=i:0", "f32:3x3", -1},
    {"ReverseSequence", 10, "f32:3x3 i64:3", "time_axis=i:0 batch_axis=i:1", "f32:3x3", -1},
    {"AveragePool", 19, "f32:1x3x5x5", "kernel_shape=I:3,3 pads=I:1,1,1,1 count_include_pad=i:0 ceil_mode=i:0",
     "f32:1x3x5x5", -1},
    {"LpPool", 18, "f32:1x3x5x5", "kernel_shape=I:3,3 p=i:2", "f32:1x3x3x3", -1},
    {"GRU", 22, "f32:1x3x4 f32:1x15x4 f32:1x15x5", "linear_before_reset=i:0 layout=i:0", "f32:1x1x3x5", -1},
    {MS "GRUTraining", 1, "f32:5x2x8 f32:1x48x8 f32:1x48x16", "hidden_size=i:16 linear_before_reset=i:0",
     "f32:5x1x2x16 f32:1x2x16 f32:5x1x2x48", -1},
    {MS "GRUGrad", 1, "f32:5x2x8 f32:1x48x8 f32:1x48x16 - - f32:5x1x2x16 f32:5x1x2x48 f32:5x1x2x16 -",
     "hidden_size=i:16 linear_before_reset=i:0", "f32:5x2x8 f32:1x48x8 f32:1x48x16 f32:1x96", -1},
    {"Resize", 13, "f32:1x1x4x4 - - i64=1,1,8,8", "exclude_outside=i:0", "f32:1x1x8x8", -1},
    {"GridSample", 20, "f32:2x3x4x5 f32:2x7x8x2", "align_corners=i:0", "f32:2x3x7x8", -1},
};

enum { MAX_ATTRIBUTES = 1000 };

typedef struct {
    char name[96]; /* "Conv.group" */
    bool tried, told;
} attribute;

static attribute attributes[MAX_ATTRIBUTES];
static int n_attributes;

static attribute *find(const char *name)
{
    for (int i = 0; i < n_attributes; i++)
        if (!strcmp(attributes[i].name, name))
            return &attributes[i];
    assert_true(n_attributes < MAX_ATTRIBUTES);
    snprintf(attributes[n_attributes].name, sizeof attributes->name, "%s", name);
    return &attributes[n_attributes++];
}

/* Keys and results of all layers; nothing where the model is refused. */
static bool describe(const op_case *c, const char *attrs, bz_buf *out)
{
    op_case other = *c;
    other.attrs = attrs;
    inferred m;
    bool fine = infer_case(&m, &other, false);
    for (int i = 0; fine && i < m.layers->n; i++) {
        const bz_layer *l = &m.layers->layer[i];
        bz_buf_printf(out, "%s ->", l->key);
        for (int k = 0; k < l->n_out; k++) {
            bz_buf_printf(out, " %s:", bz_dtype_name(l->out[k].dtype));
            bz_type_text(NULL, &l->out[k], out);
        }
    }
    end_case(&m);
    return fine;
}

/* Writes value number `which` that an attribute "i:3", "f:0.5", "I:1,2" or "s:mean" may have besides; false: there are no more. */
static bool other_value(const char *value, int which, bz_buf *out)
{
    static const char *const TEXTS[] = {
        "forward",   "reverse",    "bidirectional", "relu",          "gelu",   "silu",       "swiglu",     "identity",
        "none",      "tanh",       "add",           "mul",           "max",    "min",        "sum",        "mean",
        "linear",    "cubic",      "nearest",       "zeros",         "border", "reflection", "constant",   "reflect",
        "edge",      "wrap",       "avg",           "DCR",           "CRD",    "SAME_UPPER", "SAME_LOWER", "VALID",
        "NOTSET",    "euclidean",  "sqeuclidean",   "gated_delta",   "delta",  "gated",      "RGB",        "BGR",
        "Grayscale", "asymmetric", "half_pixel",    "align_corners", "floor",  "ceil"};
    static const int INTS[] = {0, 1, 2, 3, 6, 10, -1};
    switch (*value) {
    case 'i':
        if (which < 7)
            bz_buf_printf(out, "i:%d", INTS[which]);
        return which < 7;
    case 'f':
        if (which < 2)
            bz_buf_printf(out, "f:%g", strtod(value + 2, NULL) * (which + 2) + .25);
        return which < 2;
    case 'I': /* all one more, or the last */
        bz_buf_puts(out, "I:");
        for (const char *at = value + 2, *end; *at; at = *end ? end + 1 : end) {
            end = at + strcspn(at, ",");
            bz_buf_printf(out, "%lld%s", atoll(at) + (!which || !*end), *end ? "," : "");
        }
        return which < 2;
    case 's':
        if (which < (int)(sizeof TEXTS / sizeof *TEXTS))
            bz_buf_printf(out, "s:%s", TEXTS[which]);
        return which < (int)(sizeof TEXTS / sizeof *TEXTS);
    default:
        return false;
    }
}

static void try_attribute(const op_case *c, const char *word, size_t length, const char *as_is)
{
    char name[96];
    size_t n = strcspn(word, "=");
    snprintf(name, sizeof name, "%s.%.*s", c->op, (int)n, word);
    attribute *a = find(name);
    bz_buf value = {0}, attrs = {0}, found = {0};
    for (int which = 0; !a->told; which++) {
        bz_buf_clear(&value);
        bz_buf_clear(&attrs);
        bz_buf_clear(&found);
        if (!other_value(word + n + 1, which, &value))
            break;
        if (strlen(bz_buf_text(&value)) == length - n - 1 && !memcmp(value.data, word + n + 1, value.len))
            continue; /* the one that it has */
        bz_buf_put(&attrs, c->attrs, (size_t)(word - c->attrs) + n + 1);
        bz_buf_puts(&attrs, bz_buf_text(&value));
        bz_buf_puts(&attrs, word + length);
        if (!describe(c, bz_buf_text(&attrs), &found))
            continue;
        a->tried = true;
        a->told |= strcmp(bz_buf_text(&found), as_is) != 0;
    }
    bz_buf_free(&value);
    bz_buf_free(&attrs);
    bz_buf_free(&found);
}

static void try_case(const op_case *c)
{
    bz_buf as_is = {0};
    if (c->attrs && *c->attrs && describe(c, c->attrs, &as_is))
        for (const char *word = c->attrs; *word; word += strcspn(word, " "), word += *word == ' ')
            try_attribute(c, word, strcspn(word, " "), bz_buf_text(&as_is));
    bz_buf_free(&as_is);
}

static const struct {
    const op_case *c;
    size_t n;
} TABLES[] = {{standard, sizeof standard / sizeof *standard},
              {microsoft, sizeof microsoft / sizeof *microsoft},
              {classical, sizeof classical / sizeof *classical},
              {gradients, sizeof gradients / sizeof *gradients},
              {SQUARE, sizeof SQUARE / sizeof *SQUARE}};

/* What the specifications (ONNX's, ONNX Runtime's) say that an attribute is where it is left out. */
static const struct {
    const char *op, *attrs;
} DEFAULTS[] = {
    {"ArgMax", "axis=i:0 keepdims=i:1 select_last_index=i:0"},
    {"Attention", "is_causal=i:0 softcap=f:0"},
    {"AveragePool", "ceil_mode=i:0 count_include_pad=i:0 auto_pad=s:NOTSET"},
    {"BatchNormalization", "training_mode=i:0 epsilon=f:0.00001"},
    {"Celu", "alpha=f:1"},
    {"Conv", "group=i:1 auto_pad=s:NOTSET"},
    {"ConvTranspose", "group=i:1 auto_pad=s:NOTSET"},
    {"CumSum", "exclusive=i:0 reverse=i:0"},
    {"DepthToSpace", "mode=s:DCR"},
    {"DFT", "inverse=i:0 onesided=i:0"},
    {"Elu", "alpha=f:1"},
    {"Flatten", "axis=i:1"},
    {"Gather", "axis=i:0"},
    {"GatherElements", "axis=i:0"},
    {"GatherND", "batch_dims=i:0"},
    {"Gelu", "approximate=s:none"},
    {"Gemm", "transA=i:0 transB=i:0 alpha=f:1 beta=f:1"},
    {"GridSample", "align_corners=i:0 mode=s:linear padding_mode=s:zeros"},
    {"GRU", "linear_before_reset=i:0 layout=i:0 direction=s:forward"},
    {"HardSigmoid", "alpha=f:0.2 beta=f:0.5"},
    {"Hardmax", "axis=i:-1"},
    {"InstanceNormalization", "epsilon=f:0.00001"},
    {"LayerNormalization", "axis=i:-1"},
    {"LeakyRelu", "alpha=f:0.01"},
    {"LogSoftmax", "axis=i:-1"},
    {"LpNormalization", "axis=i:-1 p=i:2"},
    {"LpPool", "p=i:2 ceil_mode=i:0"},
    {"GlobalLpPool", "p=i:2"},
    {"LSTM", "layout=i:0 direction=s:forward input_forget=i:0"},
    {"MaxPool", "ceil_mode=i:0 storage_order=i:0 auto_pad=s:NOTSET"},
    {"Mod", "fmod=i:0"},
    {"Multinomial", "sample_size=i:1"},
    {"OneHot", "axis=i:-1"},
    {"Pad", "mode=s:constant"},
    {"QuantizeLinear", "axis=i:1 block_size=i:0"},
    {"DequantizeLinear", "axis=i:1 block_size=i:0"},
    {"ReduceSum", "keepdims=i:1 noop_with_empty_axes=i:0"},
    {"ReduceMax", "keepdims=i:1"},
    {"Resize", "mode=s:nearest antialias=i:0 exclude_outside=i:0 coordinate_transformation_mode=s:half_pixel"},
    {"ReverseSequence", "batch_axis=i:1 time_axis=i:0"},
    {"RMSNormalization", "axis=i:-1"},
    {"RNN", "layout=i:0 direction=s:forward"},
    {"RoiAlign", "mode=s:avg output_height=i:1 output_width=i:1 sampling_ratio=i:0"},
    {"ScatterElements", "axis=i:0 reduction=s:none"},
    {"ScatterND", "reduction=s:none"},
    {"Selu", "alpha=f:1.67326319217681884765625 gamma=f:1.05070102214813232421875"},
    {"Shrink", "bias=f:0 lambd=f:0.5"},
    {"Softmax", "axis=i:-1"},
    {"SoftmaxCrossEntropyLoss", "reduction=s:mean"},
    {"NegativeLogLikelihoodLoss", "reduction=s:mean"},
    {"Split", "axis=i:0"},
    {"SplitToSequence", "axis=i:0 keepdims=i:1"},
    {"STFT", "onesided=i:1"},
    {"Swish", "alpha=f:1"},
    {"ThresholdedRelu", "alpha=f:1"},
    {"TopK", "axis=i:-1 largest=i:1 sorted=i:1"},
    {"Trilu", "upper=i:1"},
    {"AffineGrid", "align_corners=i:0"},
    {"DeformConv", "offset_group=i:1 group=i:1"},
    {"ImageDecoder", "pixel_format=s:RGB"},
    {MS "Attention", "unidirectional=i:0 do_rotary=i:0"},
    {MS "CDist", "metric=s:sqeuclidean"},
    {MS "DynamicQuantizeLSTM", "direction=s:forward"},
    {MS "GatherBlockQuantized", "bits=i:4 block_size=i:128 gather_axis=i:0"},
    {MS "LinearAttention", "update_rule=s:gated_delta"},
    {MS "MoE", "activation_type=s:relu"},
    {MS "QMoE", "activation_type=s:relu expert_weight_bits=i:4"},
    {MS "PagedAttention", "do_rotary=i:0 local_window_size=i:-1"},
    {MS "SparseAttention", "do_rotary=i:0"},
    {MS "DecoderMaskedSelfAttention", "do_rotary=i:0"},
    {MS "QAttention", "unidirectional=i:0 do_rotary=i:0"},
    {MS "CausalConvWithState", "dilation=i:1 activation=s:none"},
    {MS "FusedMatMul", "transA=i:0 transB=i:0 transBatchA=i:0 transBatchB=i:0 alpha=f:1"},
    {MS "FusedGemm", "transA=i:0 transB=i:0"},
    {MS "QGemm", "transA=i:0 transB=i:0"},
    {MS "GroupQueryAttention", "do_rotary=i:0 local_window_size=i:-1"},
    {MS "MatMulNBits", "bits=i:4"},
    {MS "MatMulBnb4", "transB=i:1"},
    {MS "MultiHeadAttention", "unidirectional=i:0"},
    {MS "QuickGelu", "alpha=f:1.702"},
    {MS "QLinearConv", "channels_last=i:0 group=i:1"},
    {MS "QLinearAveragePool", "channels_last=i:0 count_include_pad=i:0"},
    {MS "QLinearGlobalAveragePool", "channels_last=i:0"},
    {MS "QLinearReduceMean", "keepdims=i:1"},
    {MS "QuantizeBFP", "block_dim=i:-1"},
    {MS "RotaryEmbedding", "interleaved=i:0"},
    {MS "Trilu", "upper=i:1"},
    {MS "UnfoldTensor", "dim=i:-1 step=i:1"},
    {MS "MurmurHash3", "positive=i:1 seed=i:0"},
    {MS "GatherGrad", "axis=i:0"},
    {MS "GatherNDGrad", "batch_dims=i:0"},
    {ML "Binarizer", "threshold=f:0"},
};

/* Likewise of what a case leaves to its default. */
static void try_defaults(const op_case *c, const char *defaults)
{
    for (const char *word = defaults; *word; word += strcspn(word, " "), word += *word == ' ') {
        bz_buf attrs = {0}, as_is = {0};
        char name[64];
        size_t length = strcspn(word, " ");
        snprintf(name, sizeof name, "%.*s=", (int)strcspn(word, "="), word);
        bz_buf_printf(&attrs, "%s%s%.*s", c->attrs ? c->attrs : "", c->attrs && *c->attrs ? " " : "", (int)length,
                      word);
        op_case said = *c;
        said.attrs = bz_buf_text(&attrs);
        if ((!c->attrs || !strstr(c->attrs, name)) && describe(&said, said.attrs, &as_is))
            try_attribute(&said, said.attrs + attrs.len - length, length, bz_buf_text(&as_is));
        bz_buf_free(&attrs);
        bz_buf_free(&as_is);
    }
}

static void attributes_are_in_keys(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t t = 0; t < sizeof TABLES / sizeof *TABLES; t++)
        for (size_t i = 0; i < TABLES[t].n; i++)
            try_case(&TABLES[t].c[i]);
    for (size_t d = 0; d < sizeof DEFAULTS / sizeof *DEFAULTS; d++)
        for (size_t t = 0; t < sizeof TABLES / sizeof *TABLES; t++)
            for (size_t i = 0; i < TABLES[t].n; i++)
                if (!strcmp(TABLES[t].c[i].op, DEFAULTS[d].op))
                    try_defaults(&TABLES[t].c[i], DEFAULTS[d].attrs);
    for (int i = 0; i < n_attributes; i++) {
        const attribute *a = &attributes[i];
        bool excused = bz_has_word(OF_NO_WORK, a->name);
        if (a->tried && a->told == excused) {
            print_error("%s: %s\n", a->name,
                        excused ? "it is in the key: it needs no reason" : "no value gives another key");
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* Each case, with each default that it does not set, says the same. */
static int check_defaults(const op_case *c, const char *defaults)
{
    char copy[256], *save = NULL;
    bz_buf as_is = {0}, attrs = {0}, found = {0};
    int wrong = 0;
    snprintf(copy, sizeof copy, "%s", defaults);
    bool fine = describe(c, c->attrs, &as_is);
    for (char *word = strtok_r(copy, " ", &save); fine && word; word = strtok_r(NULL, " ", &save)) {
        char name[64];
        snprintf(name, sizeof name, "%.*s=", (int)strcspn(word, "="), word);
        if (c->attrs && strstr(c->attrs, name))
            continue;
        bz_buf_clear(&attrs);
        bz_buf_clear(&found);
        bz_buf_printf(&attrs, "%s%s%s", c->attrs ? c->attrs : "", c->attrs && *c->attrs ? " " : "", word);
        if (!describe(c, bz_buf_text(&attrs), &found) || strcmp(bz_buf_text(&found), bz_buf_text(&as_is)) != 0) {
            print_error("%s-%d(%s) {%s}: %s, not %s\n", c->op, c->opset, c->in, bz_buf_text(&attrs),
                        bz_buf_text(&found), bz_buf_text(&as_is));
            wrong++;
        }
    }
    bz_buf_free(&as_is);
    bz_buf_free(&attrs);
    bz_buf_free(&found);
    return wrong;
}

static void what_is_left_out_is_the_default(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t d = 0; d < sizeof DEFAULTS / sizeof *DEFAULTS; d++)
        for (size_t t = 0; t < sizeof TABLES / sizeof *TABLES; t++)
            for (size_t i = 0; i < TABLES[t].n; i++)
                if (!strcmp(TABLES[t].c[i].op, DEFAULTS[d].op))
                    wrong += check_defaults(&TABLES[t].c[i], DEFAULTS[d].attrs);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(attributes_are_in_keys),
                                       cmocka_unit_test(what_is_left_out_is_the_default)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
