/* Operators that early ONNX had as experiments and took back in version 1.5. WinML, Caffe2 and CNTK wrote them: the first Tiny YOLO begins with an
 * ImageScaler. */
#include "modelproc/rule.h"

/* x * scale + bias, the one number or one for each channel. */
static int shape_scaler(call *c)
{
    const bz_type *x = need(c, 0, -1);
    int n = attr_length(c, "bias");
    if (n && x->rank > 1 && !dims_fit(x->dims[1], n))
        return call_fail(c, "it has %d biases for %lld channels", n, (long long)x->dims[1]);
    return rule_same(c);
}

/* border: left, top, right, bottom; with scale, height and width, that much from left and top on. */
static int shape_crop(call *c)
{
    const bz_type *x = need(c, 0, 4);
    int n, sizes;
    const int64_t *border = attr_ints(c, "border", &n), *scale = attr_ints(c, "scale", &sizes);
    if (n != 4 || (sizes && sizes != 2))
        return call_fail(c, "border has %d numbers of 4, scale has %d of 2", n, sizes);
    bz_dim dims[4] = {x->dims[0], x->dims[1], x->dims[2], x->dims[3]};
    for (int i = 0; i < 2; i++) {
        bz_dim before = border[1 - i], after = border[3 - i], is = x->dims[2 + i];
        if (before < 0 || after < 0 || (sizes && scale[i] < 1))
            return call_fail(c, "border or scale is negative");
        bz_dim left = dim_sub(c, dim_sub(c, is, before), after);
        dims[2 + i] = sizes ? scale[i] : left;
        if (!bz_is_symbol(is) && (sizes ? before > is || scale[i] > is - before : left < 1))
            return call_fail(c, "nothing is left of dimension %d, which has %lld", 2 + i, (long long)is);
    }
    param_ints(c, "border", border, 4);
    set_out(c, 0, x->dtype, 4, dims);
    return 0;
}

/* The shape is `shape`, or that of operand 0, or stands in it; extra_shape follows. */
static int shape_fill(call *c)
{
    int n, extra;
    int64_t listed;
    const int64_t *shape = attr_ints(c, "shape", &n), *more = attr_ints(c, "extra_shape", &extra);
    bool in_values = c->node->n_in && attr_int(c, "input_as_shape", 0);
    const bz_type *x = c->node->n_in ? need(c, 0, in_values ? 1 : -1) : NULL;
    bz_dtype t;
    if (attr_dtype(c, "dtype", BZ_F32, &t))
        return -1;
    if (in_values) {
        shape = in_ints(c, 0, &listed);
        n = shape ? (int)(listed < BZ_MAX_RANK ? listed : BZ_MAX_RANK) : 0;
    } else if (x) {
        shape = x->dims;
        n = x->rank;
    }
    if (in_values && !shape) {
        set_unknown(c, 0, t);
        return 0;
    }
    if (n + extra > BZ_MAX_RANK)
        return call_fail(c, "it asks for %d dimensions", n + extra);
    bz_dim dims[BZ_MAX_RANK];
    for (int i = 0; i < n + extra; i++) {
        dims[i] = i < n ? shape[i] : more[i - n];
        if (!bz_is_symbol(dims[i]) && dims[i] < 0)
            return call_fail(c, "it asks for the negative dimension %lld", (long long)dims[i]);
    }
    set_out(c, 0, t, n + extra, dims);
    return 0;
}

static const op ROWS[] = {
    {"Affine", NULL, "affine", BZ_COMPUTE, rule_same, .flops = 2, .flags = OP_RANKLESS, .labels = "x"},
    {"ImageScaler", NULL, "imagescaler", BZ_COMPUTE, shape_scaler, .flops = 2, .flags = OP_KEEPS, .labels = "x"},
    {"ParametricSoftplus", NULL, "parametricsoftplus", BZ_COMPUTE, rule_same, .flops = 5, .flags = OP_RANKLESS,
     .labels = "x"},
    {"Scale", NULL, "scale", BZ_COMPUTE, rule_same, .flops = 1, .flags = OP_RANKLESS, .labels = "x"},
    {"ScaledTanh", NULL, "scaledtanh", BZ_COMPUTE, rule_same, .flops = 3, .flags = OP_RANKLESS, .labels = "x"},
    {"Crop", NULL, "crop", BZ_MEMORY, shape_crop, .flags = OP_KEEPS, .labels = "x > y"},
    {"ConstantFill", NULL, "fill", BZ_MEMORY, shape_fill, .labels = "- > y"},
    {"GivenTensorFill", NULL, "fill", BZ_MEMORY, shape_fill, .labels = "- > y"},
};

const op_table ops_removed = OP_TABLE(ROWS);
