/* Normalizations and softmax. */
#include "modelproc/rule.h"

/* Scale, bias, mean and variance have one element per channel. */
static int check_channels(call *c, const bz_type *x, int from, int to)
{
    if (x->rank < 2)
        return 0;
    for (int k = from; k <= to; k++) {
        if (!in_type(c, k))
            continue;
        const bz_type *t = need(c, k, 1);
        if (!bz_is_symbol(t->dims[0]) && !bz_is_symbol(x->dims[1]) && t->dims[0] != x->dims[1])
            return call_fail(c, "operand %d has %lld elements for %lld channels", k, (long long)t->dims[0],
                             (long long)x->dims[1]);
    }
    return 0;
}

static int shape_batchnorm(call *c)
{
    const bz_type *x = need_any(c, 0);
    if (check_channels(c, x, 1, 4))
        return -1;
    bz_dim channels = x->rank > 1 ? x->dims[1] : 1;
    set_out(c, 0, x->dtype, x->rank, x->dims);
    for (int k = 1; k < c->node->n_out; k++) {
        const bz_type *like = in_type(c, k < 3 ? k + 2 : k); /* running mean and variance follow their operands */
        set_out(c, k, like ? like->dtype : x->dtype, 1, &channels);
    }
    bool training = c->node->opset >= 14 ? attr_int(c, "training_mode", 0) != 0 : c->node->n_out > 1;
    if (training)
        param_int(c, "training", 1);
    return 0;
}

static int shape_instancenorm(call *c)
{
    const bz_type *x = need_any(c, 0);
    if (check_channels(c, x, 1, 2))
        return -1;
    return set_out(c, 0, x->dtype, x->rank, x->dims);
}

static int shape_groupnorm(call *c)
{
    const bz_type *x = need_any(c, 0);
    param_int(c, "groups", attr_int(c, "num_groups", 1));
    return set_out(c, 0, x->dtype, x->rank, x->dims);
}

/* Further results are the mean and the inverse deviation: 1 in every dimension from `axis` on. */
static int shape_layernorm(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axis;
    if (fix_axis(c, attr_int(c, "axis", -1), x->rank, &axis))
        return -1;
    int64_t stash = attr_int(c, "stash_type", BZ_F32);
    bz_dim *dims = new_dims(c, x->rank);
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < axis ? x->dims[i] : 1;
    param_int(c, "axis", axis);
    set_out(c, 0, x->dtype, x->rank, x->dims);
    for (int k = 1; k < c->node->n_out; k++)
        set_out(c, k, stash > 0 && stash < BZ_N_DTYPES ? (bz_dtype)stash : BZ_F32, x->rank, dims);
    return 0;
}

static int shape_rmsnorm(call *c)
{
    const bz_type *x = need_any(c, 0), *scale = need_any(c, 1);
    int axis;
    if (fix_axis(c, attr_int(c, "axis", -1), x->rank, &axis))
        return -1;
    param_int(c, "axis", axis);
    return set_out(c, 0, scale->dtype ? scale->dtype : x->dtype, x->rank, x->dims);
}

static int shape_lrn(call *c)
{
    param_int(c, "size", attr_int(c, "size", 1));
    return rule_same(c);
}

static void cost_lrn(call *c)
{
    int64_t size = attr_int(c, "size", 1);
    c->flops = size > 0 && size < 1 << 20 ? count_mul(elements(&c->out[0]), 2 * size + 3) : 0;
}

static int shape_lpnorm(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axis;
    if (fix_axis(c, attr_int(c, "axis", -1), x->rank, &axis))
        return -1;
    param_int(c, "axis", axis);
    param_int(c, "p", attr_int(c, "p", 2));
    return rule_same(c);
}

static int shape_mvn(call *c)
{
    static const int64_t DEFAULT[] = {0, 2, 3};
    int n;
    const int64_t *axes = attr_ints(c, "axes", &n);
    need_any(c, 0);
    param_ints(c, "axes", axes ? axes : DEFAULT, axes ? n : 3);
    return rule_same(c);
}

/* Before operator set 13 everything from `axis` on was one dimension: another computation, and it
 * says so in the key. A scalar is its own axis. */
static int shape_softmax(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axis = 0;
    bool flat = c->node->opset < 13;
    if (x->rank && fix_axis(c, attr_int(c, "axis", flat ? 1 : -1), x->rank, &axis))
        return -1;
    param_int(c, flat && axis != x->rank - 1 ? "from" : "axis", axis);
    return rule_same(c);
}

static const op ROWS[] = {
    {"BatchNormalization", NULL, "batchnorm", BZ_COMPUTE, shape_batchnorm, .flops = 2, .flags = OP_KEEPS,
     .labels = "x scale b mean var"},
    {"InstanceNormalization", NULL, "instancenorm", BZ_COMPUTE, shape_instancenorm, .flops = 7, .flags = OP_KEEPS,
     .labels = "x scale b"},
    {"GroupNormalization", NULL, "groupnorm", BZ_COMPUTE, shape_groupnorm, .flops = 7, .labels = "x scale b"},
    {"GroupNormalization", "benanza.training", "groupnorm", BZ_COMPUTE, shape_groupnorm, .flops = 7,
     .labels = "x scale b"}, /* in operator sets that have none */
    {"LayerNormalization", NULL, "layernorm", BZ_COMPUTE, shape_layernorm, .flops = 7, .flags = OP_KEEPS,
     .labels = "x scale b"},
    {"RMSNormalization", NULL, "rmsnorm", BZ_COMPUTE, shape_rmsnorm, .flops = 4, .labels = "x scale"},
    {"LRN", NULL, "lrn", BZ_COMPUTE, shape_lrn, .cost = cost_lrn, .flags = OP_RANKLESS, .labels = "x"},
    {"LpNormalization", NULL, "lpnorm", BZ_COMPUTE, shape_lpnorm, .flops = 3, .flags = OP_KEEPS, .labels = "x"},
    {"MeanVarianceNormalization", NULL, "mvn", BZ_COMPUTE, shape_mvn, .flops = 6, .flags = OP_KEEPS, .labels = "x"},
    {"Softmax", NULL, "softmax", BZ_COMPUTE, shape_softmax, .flops = 4, .flags = OP_KEEPS, .labels = "x"},
    {"LogSoftmax", NULL, "logsoftmax", BZ_COMPUTE, shape_softmax, .flops = 5, .flags = OP_KEEPS, .labels = "x"},
    {"Hardmax", NULL, "hardmax", BZ_COMPUTE, shape_softmax, .flops = 1, .flags = OP_KEEPS, .labels = "x"},
};

const op_table ops_norm = OP_TABLE(ROWS);
