/* Gradients of layers: what ONNX Runtime's training graphs name in com.microsoft, and operators of our own (benanza.training)
 * where one of theirs does what libraries do in several calls, or where they have none. `dy` is the gradient of a
 * layer's result; the first result is mostly the gradient of its operand x. */
#include "modelproc/geometry.h"
#include "modelproc/microsoft.h"

#define OWN "benanza.training"

/* Result k is like operand (arg >> 4k) & 15. */
static int like_shape(call *c)
{
    for (int k = 0; k < c->node->n_out; k++) {
        const bz_type *t = need_any(c, (int)(c->op->arg >> 4 * k & 15));
        if (c->node->out[k] < 0)
            continue;
        set_type(c, k, t);
    }
    return 0;
}

/* As much of the attributes of the forward layer as its key says. */
static void note_attributes(call *c, const char *const *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bz_attr *a = bz_node_attr(c->node, name[i]);
        if (a && a->kind == BZ_ATTR_FLOAT)
            param_real(c, name[i], (double)a->f);
        else if (a && a->kind == BZ_ATTR_INT)
            param_int(c, name[i], a->i);
        else if (a && a->kind == BZ_ATTR_INTS && a->n <= BZ_MAX_RANK)
            param_ints(c, name[i], a->ints, a->n);
        else if (a && a->kind == BZ_ATTR_STRING)
            param_text(c, name[i], a->s.data);
    }
}
#define NOTE(c, ...)                                                                                                   \
    note_attributes(c, (const char *const[]){__VA_ARGS__},                                                             \
                    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static int axis_shape(call *c, bool flat)
{
    const bz_type *x = need_any(c, 1);
    int axis = 0;
    if (x->rank && fix_axis(c, attr_int(c, "axis", flat ? 1 : -1), x->rank, &axis))
        return -1;
    param_int(c, flat && axis != x->rank - 1 ? "from" : "axis", axis);
    return like_shape(c);
}

/* ONNX Runtime's names: which function's gradient, and of what it is computed. */
static const struct {
    const char *op, *function, *uses, *parameter;
    double otherwise;
} FUNCTIONS[] = {
    {"ReluGrad", "relu", "y", NULL, 0},
    {"SigmoidGrad", "sigmoid", "y", NULL, 0},
    {"TanhGrad", "tanh", "y", NULL, 0},
    {"LeakyReluGrad", "leakyrelu", "y", "alpha", 0.01},
    {"EluGrad", "elu", "y", "alpha", 1},
    {"GeluGrad", "gelu", "x", NULL, 0},
    {"FastGeluGrad", "fastgelu", "x", NULL, 0},
    {"QuickGeluGrad", "quickgelu", "x", "alpha", 1.702},
    {"BiasGeluGrad_dX", "gelu", "x", NULL, 0},
    {"BiasFastGeluGrad_dX", "fastgelu", "x", NULL, 0},
    {"HardSigmoidGrad", "hardsigmoid", "y", NULL, 0},
};

/* EltwiseGrad says all by attributes: function is the forward layer's kind, uses is x or y. */
static int eltwise_shape(call *c)
{
    const bz_type *dy = need_any(c, 0), *x = need_any(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    int rank;
    if (broadcast(c, dy, x, &rank, dims))
        return -1;
    bool own = !strcmp(c->node->op, "EltwiseGrad");
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS && !own; i++)
        if (!strcmp(FUNCTIONS[i].op, c->node->op)) {
            param_text(c, "function", FUNCTIONS[i].function);
            param_text(c, "uses", FUNCTIONS[i].uses);
            if (FUNCTIONS[i].parameter)
                param_real(c, FUNCTIONS[i].parameter, attr_float(c, FUNCTIONS[i].parameter, FUNCTIONS[i].otherwise));
        }
    if (own) {
        param_text(c, "function", attr_text(c, "function", "?"));
        param_text(c, "uses", attr_text(c, "uses", "x"));
        NOTE(c, "approximate", "alpha", "beta", "gamma", "lambd", "bias", "min", "max");
    }
    return set_out(c, 0, dy->dtype, rank, dims);
}

static int norm_shape(call *c)
{
    NOTE(c, "num_groups", "size", "alpha", "beta", "p");
    return like_shape(c);
}

static int layernorm_shape(call *c)
{
    return axis_shape(c, false);
}

static int softmax_shape(call *c)
{
    return axis_shape(c, c->op->arg & 256);
}

/* Operands of BatchNormalization; mean and inverse deviation of the batch are further results. */
static int batchnorm_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *scale = need(c, 1, 1);
    set_type(c, 0, x);
    for (int k = 1; k < c->node->n_out; k++)
        set_type(c, k, k < 5 && in_type(c, k < 3 ? k + 2 : k) ? in_type(c, k < 3 ? k + 2 : k) : scale);
    param_int(c, "training", 1);
    return 0;
}

static int loss_shape(call *c)
{
    param_text(c, "reduction", attr_text(c, "reduction", "mean"));
    if (bz_node_attr(c->node, "ignore_index"))
        param_int(c, "ignore", attr_int(c, "ignore_index", 0));
    return like_shape(c);
}

/* The operand's shape as attribute input_shape says it; false where it is not there. */
static int input_shape(call *c, bz_dtype dtype, bz_type *x)
{
    int n;
    const int64_t *dims = attr_ints(c, "input_shape", &n);
    if (!dims)
        return 1;
    *x = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = dtype, .rank = n, .dims = dims};
    return c->failed ? -1 : bz_dims_check(dims, n, c->err);
}

static int fits_result(call *c, const bz_type *dy, int rank, const bz_dim *dims)
{
    for (int i = 0; i < rank; i++)
        if (dy->rank != rank || !dims_fit(dy->dims[i], dims[i]))
            return call_fail(c, "the gradient has not the shape of the forward layer's result");
    return 0;
}

static int conv_data_shape(call *c)
{
    const bz_type *dy = need_any(c, 0), *w = need_any(c, 1);
    bz_type x;
    bz_dim dims[BZ_MAX_RANK];
    same_dtype(c, dy, w);
    int given = input_shape(c, dy->dtype, &x);
    if (given)
        return given < 0 ? -1 : call_fail(c, "input_shape is missing");
    if (conv_shape(c, &x, w, dims) || fits_result(c, dy, x.rank, dims))
        return -1;
    c->macs = conv_macs(w, dy);
    return set_type(c, 0, &x);
}

static int conv_weights_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *dy = need(c, 1, x->rank);
    bz_dim dims[BZ_MAX_RANK], kernel[BZ_MAX_RANK];
    int n;
    const int64_t *k = attr_ints(c, "kernel_shape", &n);
    int64_t group = attr_int(c, "group", 1);
    same_dtype(c, x, dy);
    if (!k || n != x->rank - 2 || group < 1)
        return call_fail(c, "kernel_shape does not fit %d dimensions", x->rank);
    kernel[0] = dy->dims[1];
    kernel[1] = dim_div(c, x->dims[1], group);
    memcpy(kernel + 2, k, (size_t)n * sizeof *k);
    bz_type w = {.kind = BZ_TYPE_TENSOR, .dtype = x->dtype, .rank = x->rank, .dims = kernel};
    if (c->failed || bz_dims_check(kernel, w.rank, c->err) || conv_shape(c, x, &w, dims) ||
        fits_result(c, dy, x->rank, dims))
        return -1;
    c->macs = conv_macs(&w, dy);
    return set_out(c, 0, x->dtype, w.rank, kernel);
}

/* ONNX Runtime's: dY, X, W; data, weights and bias at once. */
static int conv_grad_shape(call *c)
{
    const bz_type *dy = need_any(c, 0), *x = need(c, 1, dy->rank), *w = need(c, 2, dy->rank);
    bz_dim dims[BZ_MAX_RANK];
    if (conv_shape(c, x, w, dims) || fits_result(c, dy, x->rank, dims))
        return -1;
    set_type(c, 0, x);
    set_type(c, 1, w);
    set_out(c, 2, w->dtype, 1, &w->dims[0]);
    for (int k = 0; k < 2 && k < c->node->n_out; k++)
        c->macs = c->node->out[k] >= 0 ? count_add(c->macs, conv_macs(w, dy)) : c->macs;
    return 0;
}

/* Without input_shape, as ONNX Runtime writes it, the file says what its result is. */
static int pool_grad_shape(call *c)
{
    const bz_type *dy = need_any(c, 0);
    bz_type x;
    bz_dim dims[BZ_MAX_RANK];
    int given = input_shape(c, dy->dtype, &x);
    if (given < 0)
        return -1;
    if (given)
        return set_unknown(c, 0, dy->dtype);
    if (pool_shape(c, &x, dims) || fits_result(c, dy, x.rank, dims))
        return -1;
    if (!strcmp(c->op->kind, "averagepool_grad"))
        param_int(c, "count_pad", attr_int(c, "count_include_pad", 0) != 0);
    return set_type(c, 0, &x);
}

/* The result has the shape that operand arg holds. */
static int scatter_shape(call *c)
{
    int64_t n = 0;
    int from = (int)c->op->arg & 15, grad = (int)c->op->arg >> 4;
    need(c, from, 1);
    const bz_type *dy = need_any(c, grad);
    const int64_t *dims = in_ints(c, from, &n);
    int axis = 0;
    bool known = dims && n <= BZ_MAX_RANK;
    if (!strncmp(c->op->kind, "gather", 6) && strcmp(c->op->kind, "gathernd_grad") != 0) {
        if (known && fix_axis(c, attr_int(c, "axis", 0), (int)n, &axis))
            return -1;
        param_int(c, "axis", known ? axis : attr_int(c, "axis", 0));
    } else if (!strncmp(c->op->kind, "gather", 6)) {
        param_int(c, "batch_dims", attr_int(c, "batch_dims", 0));
    }
    if (!known)
        return set_unknown(c, 0, dy->dtype);
    if (c->failed || bz_dims_check(dims, (int)n, c->err))
        return -1;
    return set_out(c, 0, dy->dtype, (int)n, dims);
}

/* Where the slice lay: starts, axes and steps, as far as they are known. */
static int slice_grad_shape(call *c)
{
    static const char *const NAME[] = {[2] = "starts", [4] = "axes", [5] = "steps"};
    int64_t n;
    for (int k = 2; k < 6; k++) {
        const int64_t *v = NAME[k] ? in_ints(c, k, &n) : NULL;
        if (v && n <= BZ_MAX_RANK)
            param_ints(c, NAME[k], v, (int)n);
    }
    return scatter_shape(c);
}

/* ResizeGrad and PadGrad: the attributes of the forward layer, and its operand's shape. */
static int placed_shape(call *c)
{
    const bz_type *dy = need_any(c, 0);
    bz_type x;
    int given = input_shape(c, dy->dtype, &x);
    if (given)
        return given < 0 ? -1 : call_fail(c, "input_shape is missing");
    if (x.rank != dy->rank)
        return call_fail(c, "input_shape has %d dimensions, the gradient has %d", x.rank, dy->rank);
    NOTE(c, "mode", "coordinate_transformation_mode", "nearest_mode", "pads");
    return set_type(c, 0, &x);
}

/* Operands are dy and those of the forward layer, results their gradients. */
static int whole_shape(call *c)
{
    NOTE(c, "mode", "padding_mode", "align_corners", "sampling_ratio", "coordinate_transformation_mode", "strides",
         "pads", "dilations", "group", "offset_group");
    for (int k = 0; k < c->node->n_out; k++)
        if (in_type(c, k + 1))
            set_type(c, k, in_type(c, k + 1));
    need_any(c, 0);
    return 0;
}

/* Bilinear: each of the pixels around a point takes a product and a sum, for the gradient of the image. */
static void sampled_grad_cost(call *c)
{
    int64_t pixels = 1, ratio = attr_int(c, "sampling_ratio", 1);
    bool nearest = strstr(attr_text(c, "mode", ""), "nearest") != NULL;
    ratio = ratio > 0 && ratio < 1 << 16 ? ratio : 1;
    for (int i = 2; i < c->in[0].rank && !nearest; i++)
        pixels = count_mul(pixels, 2);
    c->flops = count_mul(elements(&c->in[0]), count_mul(2 * pixels, c->op->arg ? count_mul(ratio, ratio) : 1));
}

/* Products with the samples for the weights, and with the weights for the samples. */
static void deform_grad_cost(call *c)
{
    c->macs = count_mul(2, conv_macs(&c->in[2], &c->in[0]));
}

/* Operands q, k, v, mask, dy, y, statistics. Scores once more, and four products: of their gradient and those of q, k, v. */
static int attention_grad_shape(call *c)
{
    bz_type *out = c->out;
    if (attention_shape(c))
        return -1;
    const bz_type *dy = need(c, 4, out[0].rank);
    if (fits_result(c, dy, out[0].rank, out[0].dims))
        return -1;
    for (int k = 0; k < c->node->n_out; k++)
        set_type(c, k, k < 4 ? &c->in[k] : &(bz_type){.rank = -1});
    return 0;
}

static void attention_grad_cost(call *c)
{
    int64_t size = 0, v_size = 0, scores = attention_scores(c, &size, &v_size);
    c->macs = count_add(count_mul(scores, count_mul(3, size)), count_mul(scores, count_mul(2, v_size)));
    c->flops = count_mul(scores, 7);
}

/* LSTMGrad: X, W, R, lengths, H0, C0, all states, all cells, gates, and gradients of the results. GRUGrad and RNNGrad have B behind R. */
static int rnn_grad_shape(call *c)
{
    const bz_type *x = need(c, 0, 3), *w = need(c, 1, 3), *r = need(c, 2, 3);
    bz_dim bias[2] = {w->dims[0], dim_mul(c, 2, w->dims[1])};
    bz_dim state[3] = {w->dims[0], x->dims[1], r->dims[2]}, peephole[2] = {w->dims[0], dim_mul(c, 3, r->dims[2])};
    for (int k = 0; k < 3; k++)
        set_type(c, k, &c->in[k]);
    set_out(c, 3, x->dtype, 2, bias);
    set_out(c, 4, x->dtype, 3, state);
    set_out(c, 5, x->dtype, 3, state);
    set_out(c, 6, x->dtype, 2, peephole);
    param_int(c, "hidden", r->dims[2]);
    param_text(c, "direction", attr_text(c, "direction", "forward"));
    if (c->op->arg == 3)
        param_int(c, "linear_before_reset", attr_int(c, "linear_before_reset", 0) != 0);
    if (c->op->arg == 1)
        param_text(c, "activations", attr_text(c, "function", "tanh"));
    int64_t rows = count_mul(count_mul(x->dims[0], x->dims[1]), count_mul(w->dims[0], w->dims[1]));
    c->macs = count_mul(2, count_mul(rows, count_add(x->dims[2], r->dims[2])));
    c->flops = count_mul(rows, 4);
    return 0;
}

static int accumulate_shape(call *c) /* V2: whether it did, and the sum */
{
    const bz_type *sum = need_any(c, 0);
    int at = (int)c->op->arg;
    if (at)
        set_out(c, 0, BZ_BOOL, 1, (bz_dim[]){1});
    set_type(c, at, sum);
    return 0;
}

static int finite_shape(call *c)
{
    return set_out(c, 0, c->op->arg ? BZ_F32 : BZ_BOOL, c->op->arg ? 0 : 1, (bz_dim[]){1});
}

/* All operands are read. */
static void all_cost(call *c)
{
    for (int k = 0; k < c->node->n_in; k++)
        c->flops = count_add(c->flops, in_type(c, k) ? elements(&c->in[k]) : 0);
}

/* Operand 0 scales the others, each of which may change its type on the way. */
static int scaled_shape(call *c)
{
    bz_dtype to;
    if (attr_dtype(c, "to", BZ_UNDEFINED, &to))
        return -1;
    for (int k = 0; k < c->node->n_out; k++) {
        const bz_type *x = need_any(c, k + 1);
        set_out(c, k, to ? to : x->dtype, x->rank, x->dims);
    }
    return 0;
}

/* What the framework makes of the model's results, their gradients, lies outside of the graph. */
static int yield_shape(call *c)
{
    int n = 0, n_none;
    const int64_t *none = attr_ints(c, "non_differentiable_outputs", &n_none);
    for (int k = 0; k < c->node->n_in && n < c->node->n_out; k++) {
        int i = 0;
        while (i < n_none && none[i] != k)
            i++;
        if (i == n_none)
            set_type(c, n++, need_any(c, k));
    }
    return 0;
}

/* The axes over which the gradients of two operands are summed that were broadcast, by their shapes. */
static int broadcast_axes_shape(call *c)
{
    int64_t n[2], axes[2][BZ_MAX_RANK], found[2] = {0, 0};
    const int64_t *dims[2] = {in_ints(c, 0, &n[0]), in_ints(c, 1, &n[1])};
    bool known = dims[0] && dims[1] && n[0] <= BZ_MAX_RANK && n[1] <= BZ_MAX_RANK;
    int64_t rank = known ? n[0] > n[1] ? n[0] : n[1] : 0;
    for (int64_t i = rank - 1; i >= 0; i--) {
        int64_t d[2];
        for (int k = 0; k < 2; k++)
            d[k] = i < rank - n[k] ? 1 : dims[k][i - (rank - n[k])];
        known = known && (d[0] == d[1] || (!bz_is_symbol(d[0]) && !bz_is_symbol(d[1])));
        for (int k = 0; k < 2; k++)
            if (i < rank - n[k] || (d[k] == 1 && d[1 - k] != 1))
                axes[k][found[k]++] = i;
    }
    for (int k = 0; k < 2; k++) {
        set_out(c, k, BZ_I64, 1, (bz_dim[]){known ? found[k] : new_symbol(c)});
        if (known && k < c->node->n_out)
            set_ints(c, k, axes[k], found[k]);
    }
    return 0;
}

/* Sequences without what fills them up: tokens in one list, and back. */
static int unpad_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *at = need(c, 1, 1);
    bz_dim dims[BZ_MAX_RANK];
    if (x->rank < 2)
        return call_fail(c, "its input has %d dimensions: batch and sequence are needed", x->rank);
    copy_dims(dims, x);
    dims[1] = at->dims[0];
    set_out(c, 0, x->dtype, x->rank - 1, dims + 1);
    set_out(c, 1, BZ_I64, 1, (bz_dim[]){2});
    if (c->node->n_out > 1)
        set_ints(c, 1, x->dims, 2);
    return 0;
}

static int pad_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK + 1];
    int64_t n;
    const int64_t *two = in_ints(c, 2, &n);
    if (x->rank < 1 || x->rank >= BZ_MAX_RANK || (two && n != 2))
        return call_fail(c, "it has no list of tokens, or no two sizes for it");
    copy_dims(dims + 1, x);
    for (int i = 0; i < 2; i++)
        dims[i] = two ? two[i] : new_symbol(c);
    return set_out(c, 0, x->dtype, x->rank + 1, dims);
}

#define ELTWISE(op)                                                                                                    \
    {                                                                                                                  \
        op, MICROSOFT, "eltwise_grad", BZ_COMPUTE, eltwise_shape, NULL, NULL, 3, 0, "dy x", 0, NULL, NULL              \
    }

static const op ROWS[] = {
    {"EltwiseGrad", OWN, "eltwise_grad", BZ_COMPUTE, eltwise_shape, .flops = 3, .labels = "dy x"},
    ELTWISE("ReluGrad"),
    ELTWISE("SigmoidGrad"),
    ELTWISE("TanhGrad"),
    ELTWISE("LeakyReluGrad"),
    ELTWISE("EluGrad"),
    ELTWISE("GeluGrad"),
    ELTWISE("FastGeluGrad"),
    ELTWISE("QuickGeluGrad"),
    ELTWISE("BiasGeluGrad_dX"),
    ELTWISE("BiasFastGeluGrad_dX"),
    ELTWISE("HardSigmoidGrad"),

    {"SoftmaxGrad", MICROSOFT, "softmax_grad", BZ_COMPUTE, softmax_shape, .flops = 4, .labels = "dy y", .arg = 256},
    {"SoftmaxGrad_13", MICROSOFT, "softmax_grad", BZ_COMPUTE, softmax_shape, .flops = 4, .labels = "dy y"},
    {"LogSoftmaxGrad", MICROSOFT, "logsoftmax_grad", BZ_COMPUTE, softmax_shape, .flops = 4, .labels = "dy y",
     .arg = 256},
    {"LogSoftmaxGrad_13", MICROSOFT, "logsoftmax_grad", BZ_COMPUTE, softmax_shape, .flops = 4, .labels = "dy y"},
    {"LayerNormalizationGrad", MICROSOFT, "layernorm_grad", BZ_COMPUTE, layernorm_shape, .flops = 11,
     .labels = "dy x scale - -", .arg = 0x221},
    {"InvertibleLayerNormalizationGrad", MICROSOFT, "layernorm_grad", BZ_COMPUTE, layernorm_shape, .flops = 11,
     .labels = "dy y scale - -", .arg = 0x321},
    {"SimplifiedLayerNormalizationGrad", MICROSOFT, "rmsnorm_grad", BZ_COMPUTE, layernorm_shape, .flops = 8,
     .labels = "dy x scale -", .arg = 0x21},
    {"GroupNormalizationGrad", OWN, "groupnorm_grad", BZ_COMPUTE, norm_shape, .flops = 12, .labels = "dy x scale",
     .arg = 0x221},
    {"LRNGrad", OWN, "lrn_grad", BZ_COMPUTE, norm_shape, .flops = 12, .labels = "dy x y"},
    {"BatchNormInternal", MICROSOFT, "batchnorm", BZ_COMPUTE, batchnorm_shape, .flops = 7,
     .labels = "x scale b mean var"},
    {"BatchNormalizationGrad", MICROSOFT, "batchnorm_grad", BZ_COMPUTE, norm_shape, .flops = 10,
     .labels = "dy x scale - -", .arg = 0x221},
    {"SoftmaxCrossEntropyLossGrad", MICROSOFT, "crossentropy_grad", BZ_COMPUTE, loss_shape, .flops = 3,
     .labels = "- logp target weight", .arg = 1},
    {"SoftmaxCrossEntropyLossInternalGrad", MICROSOFT, "crossentropy_grad", BZ_COMPUTE, loss_shape, .flops = 3,
     .labels = "- logp target weight -", .arg = 1},
    {"NegativeLogLikelihoodLossGrad", OWN, "nllloss_grad", BZ_COMPUTE, loss_shape, .flops = 1,
     .labels = "- x target weight", .arg = 1},

    {"ConvData", OWN, "conv_data", BZ_COMPUTE, conv_data_shape, .labels = "dy w > x"},
    {"ConvWeights", OWN, "conv_weights", BZ_COMPUTE, conv_weights_shape, .labels = "x dy > w"},
    {"ConvGrad", MICROSOFT, "conv_grad", BZ_COMPUTE, conv_grad_shape, .labels = "dy x w > dx dw db"},
    {"MaxPoolGrad", OWN, "maxpool_grad", BZ_COMPUTE, pool_grad_shape, .flops = 1, .labels = "dy indices x > dx"},
    {"MaxPoolGrad", MICROSOFT, "maxpool_grad", BZ_COMPUTE, pool_grad_shape, .flops = 1, .labels = "dy indices > dx"},
    {"AveragePoolGrad", OWN, "averagepool_grad", BZ_COMPUTE, pool_grad_shape, .flops = 1, .labels = "dy > dx"},
    {"AveragePoolGrad", MICROSOFT, "averagepool_grad", BZ_COMPUTE, pool_grad_shape, .flops = 1, .labels = "dy > dx"},

    {"GatherGrad", MICROSOFT, "gather_grad", BZ_COMPUTE, scatter_shape, .flops = 1, .labels = "- ids dy > dx",
     .arg = 0x20},
    {"GatherElementsGrad", MICROSOFT, "gatherelements_grad", BZ_COMPUTE, scatter_shape, .flops = 1,
     .labels = "dy - ids > dx", .arg = 0x01},
    {"GatherNDGrad", MICROSOFT, "gathernd_grad", BZ_COMPUTE, scatter_shape, .flops = 1, .labels = "- ids dy > dx",
     .arg = 0x20},
    {"SliceGrad", MICROSOFT, "slice_grad", BZ_MEMORY, slice_grad_shape, .labels = "dy - - - - - > dx", .arg = 0x01},
    {"DropoutGrad", MICROSOFT, "dropout_grad", BZ_COMPUTE, like_shape, .flops = 2, .labels = "dy mask"},
    {"ResizeGrad", OWN, "resize_grad", BZ_COMPUTE, placed_shape, .flops = 8, .labels = "dy > dx"},
    {"PadGrad", OWN, "pad_grad", BZ_COMPUTE, placed_shape, .flops = 1, .labels = "dy > dx"},

    {"GridSampleGrad", OWN, "gridsample_grad", BZ_COMPUTE, whole_shape, .cost = sampled_grad_cost,
     .labels = "dy x grid"},
    {"RoiAlignGrad", OWN, "roialign_grad", BZ_COMPUTE, whole_shape, .cost = sampled_grad_cost, .labels = "dy x rois -",
     .arg = 1},
    {"DeformConvGrad", OWN, "deformconv_grad", BZ_COMPUTE, whole_shape, .cost = deform_grad_cost,
     .labels = "dy x w offset b mask"},

    {"AttentionTraining", OWN, "attention_training", BZ_COMPUTE, attention_shape, .cost = attention_cost,
     .labels = "q k v mask > y statistics", .arg = 1},
    {"AttentionGrad", OWN, "attention_grad", BZ_COMPUTE, attention_grad_shape, .cost = attention_grad_cost,
     .labels = "q k v mask dy - -", .arg = 1},
    {"LSTMGrad", MICROSOFT, "lstm_grad", BZ_COMPUTE, rnn_grad_shape, .labels = "x w r", .arg = 4},
    {"GRUGrad", MICROSOFT, "gru_grad", BZ_COMPUTE, rnn_grad_shape, .labels = "x w r b", .arg = 3},
    {"RNNGrad", OWN, "rnn_grad", BZ_COMPUTE, rnn_grad_shape, .labels = "x w r b", .arg = 1},

    {"InPlaceAccumulator", MICROSOFT, "accumulate", BZ_COMPUTE, accumulate_shape, .flops = 1, .labels = "sum x -"},
    {"InPlaceAccumulatorV2", MICROSOFT, "accumulate", BZ_COMPUTE, accumulate_shape, .flops = 1, .labels = "sum x -",
     .arg = 1},
    {"ZeroGradient", MICROSOFT, "zero_gradient", BZ_MEMORY, like_shape, .labels = "x -"},
    {"IsAllFinite", MICROSOFT, "isallfinite", BZ_COMPUTE, finite_shape, .cost = all_cost, .labels = "x..."},
    {"ReduceAllL2", MICROSOFT, "reducealll2", BZ_COMPUTE, finite_shape, .cost = all_cost, .labels = "x...", .arg = 1},
    {"YieldOp", MICROSOFT, "yield", BZ_VIEW, yield_shape, .labels = "x... > dx..."},
    {"BroadcastGradientArgs", MICROSOFT, "broadcast_axes", BZ_VIEW, broadcast_axes_shape, .labels = "x - > y..."},
    {"Scale", MICROSOFT, "scale", BZ_COMPUTE, like_shape, .flops = 1, .labels = "x -"},
    {"PassThrough", MICROSOFT, "identity", BZ_VIEW, rule_same, .labels = "x..."},
    {"FlattenAndUnpad", MICROSOFT, "unpad", BZ_MEMORY, unpad_shape, .labels = "x ids"},
    {"PadAndUnflatten", MICROSOFT, "unflatten", BZ_MEMORY, pad_shape, .labels = "x ids - > y"},
    {"MixedPrecisionScale", MICROSOFT, "scale", BZ_COMPUTE, scaled_shape, .cost = all_cost, .labels = "- x..."},
};
const op_table ops_gradient = OP_TABLE(ROWS);
