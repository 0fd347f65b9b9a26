/* Operators that early ONNX had as experiments and took back in version 1.5. WinML, Caffe2 and CNTK wrote them: the first Tiny YOLO begins with an
 * ImageScaler. Those that fill tensors stand with their successor, in ops_constant.c. */
#include "modelproc/rule.h"

/* x * scale + bias, the one number or one for each channel. */
static int shape_scaler(call *c)
{
    const bz_type *x = need_any(c, 0);
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
    return set_out(c, 0, x->dtype, 4, dims);
}

static const op ROWS[] = {
    {"Affine", NULL, "affine", BZ_COMPUTE, rule_same, .flops = 2, .flags = OP_RANKLESS, .labels = "x"},
    {"ImageScaler", NULL, "imagescaler", BZ_COMPUTE, shape_scaler, .flops = 2, .flags = OP_KEEPS, .labels = "x"},
    {"ParametricSoftplus", NULL, "parametricsoftplus", BZ_COMPUTE, rule_same, .flops = 5, .flags = OP_RANKLESS,
     .labels = "x"},
    {"Scale", NULL, "scale", BZ_COMPUTE, rule_same, .flops = 1, .flags = OP_RANKLESS, .labels = "x"},
    {"ScaledTanh", NULL, "scaledtanh", BZ_COMPUTE, rule_same, .flops = 3, .flags = OP_RANKLESS, .labels = "x"},
    {"Crop", NULL, "crop", BZ_MEMORY, shape_crop, .flags = OP_KEEPS, .labels = "x > y"},
};

const op_table ops_removed = OP_TABLE(ROWS);
