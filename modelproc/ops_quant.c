/* Quantized numbers: to them, from them, and products of them. */
#include "modelproc/geometry.h"
#include "modelproc/rule.h"

/* How scales are spread: one for all, one for each index of an axis, or one for each block of it. */
static int note_scale(call *c, const bz_type *x, const bz_type *scale)
{
    bool one = scale->rank == 0 || (scale->rank == 1 && scale->dims[0] == 1);
    int64_t block = attr_int(c, "block_size", 0);
    if (block < 0)
        return call_fail(c, "block_size is %lld", (long long)block);
    if (one && !block)
        return 0;
    int axis;
    if (x->rank == 0 || fix_axis(c, attr_int(c, "axis", 1), x->rank, &axis))
        return x->rank == 0 ? call_fail(c, "a scalar has no axis to spread its scales over") : -1;
    if (scale->rank == 1 && !block && !dims_fit(scale->dims[0], x->dims[axis]))
        return call_fail(c, "it has %lld scales for %lld indices of axis %d", (long long)scale->dims[0],
                         (long long)x->dims[axis], axis);
    if (block && scale->rank != x->rank)
        return call_fail(c, "scales of blocks need as many dimensions as the data");
    param_int(c, "axis", axis);
    if (block || scale->rank > 1)
        param_int(c, "block", block);
    return 0;
}

static int quantize_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *scale = need_any(c, 1), *zero = in_type(c, 2);
    bz_dtype to;
    if (attr_dtype(c, "output_dtype", 0, &to))
        return -1;
    if (zero && zero->dtype) {
        if (to && to != zero->dtype)
            return call_fail(c, "output_dtype says %s, its zero point is %s", bz_dtype_name(to),
                             bz_dtype_name(zero->dtype));
        to = zero->dtype;
    }
    to = to ? to : BZ_U8;
    param_text(c, "to", bz_dtype_name(to));
    set_out(c, 0, to, x->rank, x->dims);
    return note_scale(c, x, scale);
}

/* Before output_dtype (and in com.microsoft) the scale's type is the result's. */
static int dequantize_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *scale = need_any(c, 1);
    bz_dtype to;
    if (attr_dtype(c, "output_dtype", 0, &to) || same_dtype(c, x, in_type(c, 2)))
        return -1;
    set_out(c, 0, to ? to : scale->dtype ? scale->dtype : BZ_F32, x->rank, x->dims);
    return note_scale(c, x, scale);
}

static int dynamic_quantize_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    set_out(c, 0, BZ_U8, x->rank, x->dims);
    set_out(c, 1, BZ_F32, 0, NULL);
    param_text(c, "to", "u8");
    return set_out(c, 2, BZ_U8, 0, NULL);
}

/* arg: the operand with the weights. Where scales stand before it, operand 7 has the result's type; else that is i32. */
enum { Y_ZERO = 7 };

static bz_dtype result_of(const call *c, const bz_type *x)
{
    const bz_type *zero = in_type(c, Y_ZERO);
    return c->op->arg == 1 ? BZ_I32 : zero ? zero->dtype : x->dtype;
}

static int integer_conv_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *w = need_any(c, (int)c->op->arg);
    bz_dim dims[BZ_MAX_RANK];
    if (conv_shape(c, x, w, dims))
        return -1;
    param_text(c, "weights", bz_dtype_name(w->dtype));
    param_text(c, "to", bz_dtype_name(result_of(c, x)));
    return set_out(c, 0, result_of(c, x), x->rank, dims);
}

static int integer_matmul_shape(call *c)
{
    const bz_type *a = need_any(c, 0), *b = need_any(c, (int)c->op->arg);
    bz_dim dims[BZ_MAX_RANK];
    int rank;
    if (matmul_shape(c, a, b, &rank, dims))
        return -1;
    param_text(c, "weights", bz_dtype_name(b->dtype));
    param_text(c, "to", bz_dtype_name(result_of(c, a)));
    return set_out(c, 0, result_of(c, a), rank, dims);
}

static void conv_cost(call *c)
{
    c->macs = conv_macs(&c->in[c->op->arg], &c->out[0]);
}

/* Quantization whose results stay floats of x's type, as tools write it that train with it: the scales are operand 1, spread as numpy does.
 * Of thresholds, which are counted, it has one for each step. */
static int fake_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *scale = in_type(c, 1);
    bz_dim last = last_dim(scale, 1);
    if (c->op->cost && !bz_is_symbol(last))
        param_int(c, "steps", last);
    else if (elements(scale) > 1)
        param_int(c, "scales", elements(scale));
    if (bz_node_attr(c->node, "block_size"))
        param_int(c, "block", attr_int(c, "block_size", 0));
    return set_out(c, 0, x->dtype, x->rank, x->dims);
}

static void cost_steps(call *c)
{
    c->flops = count_mul(2, count_mul(elements(&c->out[0]), last_dim(in_type(c, 1), 1)));
}

/* TensorRT's: numbers of 8 bits, which its files call u8. */
static int fp8_quantize_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *scale = need_any(c, 1);
    param_text(c, "to", bz_dtype_name(BZ_F8E4M3));
    set_out(c, 0, BZ_U8, x->rank, x->dims);
    return note_scale(c, x, scale);
}

/* TensorRT's: each block gets a scale of its own, which is result 1. */
static int block_quantize_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    bool fp4 = c->op->arg != 0;
    bz_dim dims[BZ_MAX_RANK];
    int64_t block = attr_int(c, "block_size", 0);
    int axis;
    if (x->rank == 0 || block < 1)
        return call_fail(c, "its blocks have %lld numbers", (long long)block);
    if (fix_axis(c, attr_int(c, "axis", -1), x->rank, &axis))
        return -1;
    copy_dims(dims, x);
    dims[axis] = dim_div(c, dim_add(c, dims[axis], block - 1), block);
    param_text(c, "to", bz_dtype_name(fp4 ? BZ_F4E2M1 : BZ_F8E4M3));
    param_int(c, "axis", axis);
    param_int(c, "block", block);
    set_out(c, 0, fp4 ? BZ_F4E2M1 : BZ_F8E4M3, x->rank, x->dims);
    return set_out(c, 1, fp4 ? BZ_F8E4M3 : BZ_U8, x->rank, dims);
}

#define QUARK    "com.amd.quark"
#define VITIS    "com.vai.quantize"
#define TENSORRT "trt"

#define FAKE(op, domain, kind, n)                                                                                      \
    {                                                                                                                  \
        op, domain, kind, BZ_COMPUTE, fake_shape, .flops = n, .labels = "x - - - - -"                                  \
    }

static const op ROWS[] = {
    {"QuantizeLinear", NULL, "quantize", BZ_COMPUTE, quantize_shape, .flops = 3, .labels = "x - -"},
    {"DequantizeLinear", NULL, "dequantize", BZ_COMPUTE, dequantize_shape, .flops = 2, .labels = "x - -"},
    {"DynamicQuantizeLinear", NULL, "dynamicquantize", BZ_COMPUTE, dynamic_quantize_shape, .flops = 5, .labels = "x"},
    {"QLinearConv", NULL, "qconv", BZ_COMPUTE, integer_conv_shape, .cost = conv_cost, .labels = "x - - w - - - - b",
     .arg = 3},
    {"ConvInteger", NULL, "conv", BZ_COMPUTE, integer_conv_shape, .cost = conv_cost, .labels = "x w", .arg = 1},
    {"QLinearMatMul", NULL, "qmatmul", BZ_COMPUTE, integer_matmul_shape, .cost = cost_matmul, .labels = "a - - b",
     .arg = 3},
    {"MatMulInteger", NULL, "matmul", BZ_COMPUTE, integer_matmul_shape, .cost = cost_matmul, .labels = "a b", .arg = 1},
    {"QuantizeLinear", "com.microsoft", "quantize", BZ_COMPUTE, quantize_shape, .flops = 3, .labels = "x - -"},
    {"DequantizeLinear", "com.microsoft", "dequantize", BZ_COMPUTE, dequantize_shape, .flops = 2, .labels = "x - -"},
    {"MatMulInteger16", "com.microsoft", "matmul", BZ_COMPUTE, integer_matmul_shape, .cost = cost_matmul, .arg = 1,
     .labels = "a b"},

    /* of Brevitas, FINN, hls4ml: quantize and back */
    FAKE("Quant", QONNX, "fakequantize", 7),
    FAKE("IntQuant", QONNX, "fakequantize", 7),
    FAKE("FloatQuant", QONNX, "floatquantize", 9),
    FAKE("BipolarQuant", QONNX, "bipolarquantize", 2),
    FAKE("Trunc", QONNX, "truncquantize", 4),
    {"MultiThreshold", QONNX, "multithreshold", BZ_COMPUTE, fake_shape, .cost = cost_steps, .labels = "x -"},
    /* of OpenVINO */
    FAKE("FakeQuantize", "org.openvinotoolkit", "fakequantize", 7),
    /* of AMD: Quark, and what it was before */
    FAKE("BFPQuantizeDequantize", QUARK, "blockquantize", 7),
    FAKE("MXQuantizeDequantize", QUARK, "blockquantize", 7),
    FAKE("BFPFixNeuron", VITIS, "blockquantize", 7),
    FAKE("MXFixNeuron", VITIS, "blockquantize", 7),
    {"ExtendedQuantizeLinear", QUARK, "quantize", BZ_COMPUTE, quantize_shape, .flops = 3, .labels = "x - -"},
    {"ExtendedDequantizeLinear", QUARK, "dequantize", BZ_COMPUTE, dequantize_shape, .flops = 2, .labels = "x - -"},
    {"VitisQuantizeLinear", VITIS, "quantize", BZ_COMPUTE, quantize_shape, .flops = 3, .labels = "x - -"},
    {"VitisDequantizeLinear", VITIS, "dequantize", BZ_COMPUTE, dequantize_shape, .flops = 2, .labels = "x - -"},
    /* of TensorRT, as NVIDIA's Model Optimizer writes them */
    {"TRT_FP8QuantizeLinear", TENSORRT, "fp8quantize", BZ_COMPUTE, fp8_quantize_shape, .flops = 3, .labels = "x - -"},
    {"TRT_FP8DequantizeLinear", TENSORRT, "fp8dequantize", BZ_COMPUTE, dequantize_shape, .flops = 2, .labels = "x - -"},
    {"TRT_MXFP8DynamicQuantize", TENSORRT, "dynamicquantize", BZ_COMPUTE, block_quantize_shape, .flops = 5,
     .labels = "x"},
    {"TRT_MXFP8DequantizeLinear", TENSORRT, "dequantize", BZ_COMPUTE, dequantize_shape, .flops = 2, .labels = "x - -"},
    {"TRT_FP4DynamicQuantize", TENSORRT, "dynamicquantize", BZ_COMPUTE, block_quantize_shape, .flops = 5,
     .labels = "x -", .arg = 1},
    FAKE("TRT_FP4QDQ", TENSORRT, "blockquantize", 7),
};
const op_table ops_quant = OP_TABLE(ROWS);
