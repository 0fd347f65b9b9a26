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
    const bz_type *x = need(c, 0, -1), *scale = need(c, 1, -1), *zero = in_type(c, 2);
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
    const bz_type *x = need(c, 0, -1), *scale = need(c, 1, -1);
    bz_dtype to;
    if (attr_dtype(c, "output_dtype", 0, &to) || same_dtype(c, x, in_type(c, 2)))
        return -1;
    set_out(c, 0, to ? to : scale->dtype ? scale->dtype : BZ_F32, x->rank, x->dims);
    return note_scale(c, x, scale);
}

static int dynamic_quantize_shape(call *c)
{
    const bz_type *x = need(c, 0, -1);
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
    const bz_type *x = need(c, 0, -1), *w = need(c, (int)c->op->arg, -1);
    bz_dim dims[BZ_MAX_RANK];
    if (conv_shape(c, x, w, dims))
        return -1;
    param_text(c, "weights", bz_dtype_name(w->dtype));
    param_text(c, "to", bz_dtype_name(result_of(c, x)));
    return set_out(c, 0, result_of(c, x), x->rank, dims);
}

static int integer_matmul_shape(call *c)
{
    const bz_type *a = need(c, 0, -1), *b = need(c, (int)c->op->arg, -1);
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
};
const op_table ops_quant = OP_TABLE(ROWS);
