/* Derivatives of layers with weights or windows: convolution, pooling, softmax, attention, recurrent layers. Some run in another form
 * when they are trained: they keep what the gradient needs. */
#include "training/build.h"

#include <string.h>

static void window_attrs(grad *g, const int64_t *kernel)
{
    static const char *const NAME[][2] = {{"strides", "stride"}, {"pads", "pad"}, {"dilations", "dilation"}};
    int n;
    GRAD_INTS(g->b, "kernel_shape", kernel, grad_type(g, 0)->rank - 2);
    for (int i = 0; i < 3; i++) {
        const int64_t *v = grad_param(g, NAME[i][1], &n);
        if (v)
            GRAD_INTS(g->b, NAME[i][0], v, n);
    }
}

static void conv_attrs(grad *g)
{
    window_attrs(g, grad_type(g, 1)->dims + 2);
    GRAD_INT(g->b, "group", grad_param_int(g, "group", 1));
}

static void bias(grad *g)
{
    int64_t axes[BZ_MAX_RANK] = {0};
    for (int i = 2; i < g->l->out[0].rank; i++)
        axes[i - 1] = i;
    if (grad_wants(g, 2))
        grad_give(g, 2, grad_sum_axes(g->b, grad_dy(g, 0), axes, g->l->out[0].rank - 1, false));
}

/* A transposed convolution is the data gradient of a convolution, so its own is that convolution. */
static int conv(grad *g)
{
    build *b = g->b;
    const bz_type *x = grad_type(g, 0);
    const char *dy = grad_dy(g, 0);
    bool transposed = !strcmp(g->l->node->op, "ConvTranspose");
    if (grad_wants(g, 0)) {
        const char *dx = grad_node(b, transposed ? "Conv" : "own:ConvData", dy, grad_x(g, 1), NULL);
        conv_attrs(g);
        if (!transposed)
            GRAD_INTS(b, "input_shape", x->dims, x->rank);
        grad_give(g, 0, dx);
    }
    if (grad_wants(g, 1)) {
        const char *data = grad_x(g, 0);
        const char *dw = grad_node(b, "own:ConvWeights", transposed ? dy : data, transposed ? data : dy, NULL);
        conv_attrs(g);
        grad_give(g, 1, dw);
    }
    bias(g);
    return 0;
}

/* Where each largest element was: from operator set 8 on the node can tell. */
static int maxpool_forward(grad *g)
{
    const bz_node *node = g->l->node;
    if (g->b->opset < 8 || (node->n_out > 1 && node->out[1] >= 0)) {
        g->s->kept[0] = node->n_out > 1 ? grad_y(g, 1) : NULL;
        return grad_copy(g, node->op, node->domain, NULL, 0);
    }
    const char *indices = grad_keep(g, 0, "Indices");
    return grad_copy(g, node->op, node->domain, &indices, 1);
}

/* The window of a pool, and the shape that was pooled. */
static void pool_attrs(grad *g, bool count_pad)
{
    const bz_type *x = grad_type(g, 0);
    int n;
    const int64_t *kernel = grad_param(g, "kernel", &n);
    window_attrs(g, kernel ? kernel : x->dims + 2);
    const bz_attr *ceil_mode = bz_node_attr(g->l->node, "ceil_mode");
    if (ceil_mode && ceil_mode->kind == BZ_ATTR_INT)
        GRAD_INT(g->b, "ceil_mode", ceil_mode->i);
    if (count_pad)
        GRAD_INT(g->b, "count_include_pad", 1);
    GRAD_INTS(g->b, "input_shape", x->dims, x->rank);
}

static int pool(grad *g)
{
    build *b = g->b;
    bool most = strstr(g->l->node->op, "Max") != NULL;
    const char *dx;
    if (!most)
        dx = grad_node(b, "own:AveragePoolGrad", grad_dy(g, 0), NULL);
    else if (g->s->kept[0])
        dx = grad_node(b, "own:MaxPoolGrad", grad_dy(g, 0), g->s->kept[0], NULL);
    else
        dx = grad_node(b, "own:MaxPoolGrad", grad_dy(g, 0), "", grad_x(g, 0), NULL);
    pool_attrs(g, grad_param_int(g, "count_pad", 0));
    return grad_give(g, 0, dx);
}

/* x to the power of p - 1, with its sign or as a magnitude. */
static const char *power_below(grad *g, const char *x, int64_t p)
{
    return p == 2 ? x : grad_node(g->b, "Pow", x, grad_scalar(g->b, grad_type(g, 0)->dtype, (double)(p - 1)), NULL);
}

/* y = (Σ |x|^p)^(1/p) over a window: dx = |x|^(p-1) · Σ dy / y^(p-1) over the windows that x is in. */
static int lppool(grad *g)
{
    build *b = g->b;
    int64_t p = grad_param_int(g, "p", 2), elements = 1;
    int n;
    const int64_t *kernel = grad_param(g, "kernel", &n);
    const char *x = grad_x(g, 0), *sign = p == 2 ? NULL : grad_node(b, "Sign", x, NULL), *dy = grad_dy(g, 0);
    const char *slope = p == 2 ? x : p == 1 ? sign : power_below(g, grad_node(b, "Abs", x, NULL), p);
    slope = p > 2 ? grad_node(b, "Mul", sign, slope, NULL) : slope;
    dy = p == 1 ? dy : grad_node(b, "Div", dy, power_below(g, grad_y(g, 0), p), NULL);
    if (kernel) {
        dy = grad_node(b, "own:AveragePoolGrad", dy, NULL);
        pool_attrs(g, true);
        for (int i = 0; i < n; i++)
            elements *= kernel[i];
        dy = grad_scaled(b, dy, grad_type(g, 0)->dtype, (double)elements);
    }
    return grad_give(g, 0, grad_node(b, "Mul", slope, dy, NULL));
}

static int resize(grad *g)
{
    static const char *const NAME[][2] = {
        {"mode", "mode"}, {"coordinate_transformation_mode", "coordinates"}, {"nearest_mode", "round"}};
    const bz_type *x = grad_type(g, 0);
    if (!strcmp(grad_param_text(g, "coordinates", ""), "tf_crop_and_resize") || bz_layer_param(g->l, "antialias"))
        return grad_fail(g, "it crops or filters: there is no derivative for that");
    const char *dx = grad_node(g->b, "own:ResizeGrad", grad_dy(g, 0), NULL);
    for (int i = 0; i < 3; i++)
        if (bz_layer_param(g->l, NAME[i][1]))
            GRAD_TEXT(g->b, NAME[i][0], grad_param_text(g, NAME[i][1], ""));
    GRAD_INTS(g->b, "input_shape", x->dims, x->rank);
    return grad_give(g, 0, dx);
}

static int softmax(grad *g)
{
    bool flat = bz_layer_param(g->l, "from") != NULL, logarithm = !strcmp(g->l->node->op, "LogSoftmax");
    const char *op = logarithm ? (flat ? "ms:LogSoftmaxGrad" : "ms:LogSoftmaxGrad_13")
                               : (flat ? "ms:SoftmaxGrad" : "ms:SoftmaxGrad_13");
    const char *dx = grad_node(g->b, op, grad_dy(g, 0), grad_y(g, 0), NULL);
    GRAD_INT(g->b, "axis", grad_param_int(g, flat ? "from" : "axis", -1));
    return grad_give(g, 0, dx);
}

/* Whether it drops nothing, whatever its mode: PyTorch writes dropout=0 so. */
static bool drops_nothing(const grad *g)
{
    double ratio;
    return g->b->opset >= 12 && grad_has(g, 1) && grad_number(g, 1, &ratio) && ratio == 0;
}

/* Before operator set 12 the node cannot say that it is trained: it stays what it is then, nothing. */
static int dropout_forward(grad *g)
{
    build *b = g->b;
    const bz_node *node = g->l->node;
    if (b->opset < 12)
        return grad_copy(g, node->op, node->domain, NULL, 0);
    if (drops_nothing(g)) {
        const char *x = grad_x(g, 0), *y = grad_y(g, 0);
        grad_layer(g, "Identity", "", &x, 1, &y, 1);
        return 0;
    }
    static const char YES = 1;
    const char *mode = grad_fresh(b, bz_arena_printf(b->arena, "%s/training", b->layer));
    bz_draft_tensor(&b->draft, mode, BZ_BOOL, 0, NULL, &YES, 1);
    const char *in[3] = {grad_x(g, 0), grad_has(g, 1) ? grad_x(g, 1) : "", mode}, *out[2] = {grad_y(g, 0)};
    out[1] = node->n_out > 1 && node->out[1] >= 0 ? g->s->kept[0] = grad_y(g, 1) : grad_keep(g, 0, "mask");
    grad_layer(g, "Dropout", "", in, 3, out, 2);
    return 0;
}

static int dropout(grad *g)
{
    const char *dy = grad_dy(g, 0);
    if (g->b->opset >= 12 && !drops_nothing(g))
        dy = grad_node(g->b, "ms:DropoutGrad", dy, g->s->kept[0], grad_last(g, 1), NULL);
    return grad_give(g, 0, dy);
}

/* A turn of pairs by an angle is turned back by its negative. */
static int rotary(grad *g)
{
    build *b = g->b;
    const char *back = grad_node(b, "Neg", grad_x(g, 2), NULL);
    if (grad_wants(g, 1) || grad_wants(g, 2))
        return grad_fail(g, "its angles are to be trained: there is no derivative for that");
    grad_give(g, 0, grad_node(b, "RotaryEmbedding", grad_dy(g, 0), grad_x(g, 1), back, grad_last(g, 3), NULL));
    grad_copy_attrs(g, "");
    return 0;
}

/* The operand that is added to the scores; com.microsoft has it sixth. */
static int mask_of(const grad *g)
{
    return *g->l->node->domain ? 5 : 3;
}

static void attention_attrs(grad *g)
{
    const bz_attr *heads = bz_node_attr(g->l->node, "num_heads"), *causal = bz_node_attr(g->l->node, "unidirectional");
    static const char *const NAME[] = {"is_causal", "scale", "softcap", "q_num_heads", "kv_num_heads"};
    for (int i = 0; i < 5; i++)
        grad_copy_attr(g, NAME[i]);
    if (heads && heads->kind == BZ_ATTR_INT) {
        GRAD_INT(g->b, "q_num_heads", heads->i);
        GRAD_INT(g->b, "kv_num_heads", heads->i);
    }
    if (causal && causal->kind == BZ_ATTR_INT)
        GRAD_INT(g->b, "is_causal", causal->i);
}

static int attention_forward(grad *g)
{
    const bz_node *node = g->l->node;
    const char *in[4] = {grad_x(g, 0), grad_x(g, 1), grad_x(g, 2), grad_x(g, mask_of(g))}, *out[2] = {grad_y(g, 0)};
    for (int k = 3; k < node->n_in; k++)
        if (k != mask_of(g) && grad_has(g, k))
            return grad_fail(g, "operand %d (a cache, or a bias of its own) has no derivative", k);
    for (int k = 1; k < node->n_out; k++)
        if (node->out[k] >= 0)
            return grad_fail(g, "result %d (a cache) has no derivative", k);
    if (grad_type(g, 0)->rank != grad_type(g, 1)->rank || grad_type(g, 0)->rank > 4)
        return grad_fail(g, "packed operands have no derivative");
    out[1] = grad_keep(g, 0, "statistics");
    grad_layer(g, "AttentionTraining", "benanza.training", in, *in[3] ? 4 : 3, out, 2);
    attention_attrs(g);
    return 0;
}

static int attention(grad *g)
{
    const char *in[] = {grad_x(g, 0),  grad_x(g, 1), grad_x(g, 2), grad_x(g, mask_of(g)),
                        grad_dy(g, 0), grad_y(g, 0), g->s->kept[0]};
    const char *out[3];
    if (grad_wants(g, mask_of(g)))
        return grad_fail(g, "its mask is to be trained: there is no derivative for that");
    grad_nodes(g->b, "own:AttentionGrad", in, 7, out, 3);
    attention_attrs(g);
    return grad_give_results(g, out, 3);
}

static void give_loss(grad *g, const char *op, const char *x)
{
    const char *dx = grad_node(g->b, op, grad_dy(g, 0), x, grad_x(g, 1), grad_last(g, 2), NULL);
    grad_copy_attr(g, "reduction");
    grad_copy_attr(g, "ignore_index");
    grad_give(g, 0, dx);
}

/* The logarithms of the softmax are kept, whether the model asks for them or not. */
static int loss_forward(grad *g)
{
    const bz_node *node = g->l->node;
    if (node->n_out > 1) {
        g->s->kept[0] = grad_y(g, 1);
        return node->out[1] < 0 ? grad_fail(g, "its second result has no name") : grad_copy(g, node->op, "", NULL, 0);
    }
    const char *logarithms = grad_keep(g, 0, "logarithms");
    return grad_copy(g, node->op, "", &logarithms, 1);
}

static int loss(grad *g)
{
    if (!grad_dy(g, 0) || (g->l->n_out > 1 && grad_dy(g, 1)))
        return grad_fail(g, "its second result, the logarithms, has no derivative");
    give_loss(g, "ms:SoftmaxCrossEntropyLossGrad", g->s->kept[0]);
    return 0;
}

/* Of logarithms, which a layer of its own made. */
static int nll(grad *g)
{
    give_loss(g, "own:NegativeLogLikelihoodLossGrad", grad_x(g, 0));
    return 0;
}

enum { STATES, CELLS, GATES };

static bool is_lstm(const grad *g)
{
    return !strcmp(g->l->kind, "lstm");
}

static bool is_simple(const grad *g)
{
    return !strcmp(g->l->kind, "rnn");
}

/* What an RNN computes in all its directions; of the others, and where libraries have no such RNN, NULL for what is not usual. */
static const char *function_of(const grad *g)
{
    static const char *const SIMPLE[] = {"tanh", "relu", "sigmoid"};
    const char *all = grad_param_text(g, "activations", "");
    for (size_t i = 0; i < (is_simple(g) ? 3 : 1); i++) {
        const char *one = is_simple(g) ? SIMPLE[i] : is_lstm(g) ? "sigmoid,tanh,tanh" : "sigmoid,tanh";
        size_t n = strlen(one);
        if (!strncmp(all, one, n) && (!all[n] || (all[n] == ',' && !strcmp(all + n + 1, one))))
            return one;
    }
    return NULL;
}

static int rnn_forward(grad *g)
{
    const bz_node *node = g->l->node;
    bool lstm = is_lstm(g);
    int n_in = node->n_in < 8 ? node->n_in : 8, n_out = lstm ? 5 : 3;
    const char *in[8], *out[5];
    if (!strcmp(grad_param_text(g, "layout", "tbi"), "bti") || !function_of(g) || bz_node_attr(node, "clip") ||
        grad_has(g, 7) || grad_param_int(g, "input_forget", 0))
        return grad_fail(g, "there is a derivative for time first, usual activations, and no clip or peepholes");
    for (int k = 0; k < n_in; k++)
        in[k] = grad_x(g, k);
    for (int k = 0; k < n_out; k++)
        out[k] = k < node->n_out && k < n_out - (lstm ? 2 : 1) && node->out[k] >= 0 ? grad_y(g, k) : "";
    if (!*out[0])
        out[0] = grad_keep(g, STATES, "states");
    g->s->kept[STATES] = out[0];
    if (lstm)
        out[3] = grad_keep(g, CELLS, "cells");
    out[n_out - 1] = grad_keep(g, GATES, "gates");
    grad_layer(g, bz_arena_printf(g->b->arena, "%sTraining", node->op),
               is_simple(g) ? "benanza.training" : "com.microsoft", in, n_in, out, n_out);
    grad_copy_attrs(g, "layout");
    return 0;
}

static int rnn(grad *g)
{
    const char *in[12], *out[6];
    static const int OPERAND[] = {0, 1, 2, 3, 5, 6}; /* of results: x, w, r, b, h0, c0 */
    bool lstm = is_lstm(g);
    int n = 0, n_out = lstm ? 6 : 5;
    for (int k = 0; k < 3; k++)
        in[n++] = grad_x(g, k);
    if (!lstm)
        in[n++] = grad_x(g, 3);
    for (int k = 4; k < (lstm ? 7 : 6); k++)
        in[n++] = grad_x(g, k);
    in[n++] = g->s->kept[STATES];
    if (lstm)
        in[n++] = g->s->kept[CELLS];
    in[n++] = g->s->kept[GATES];
    for (int k = 0; k < (lstm ? 3 : 2); k++)
        in[n++] = grad_dy(g, k) ? grad_dy(g, k) : "";
    grad_nodes(g->b, lstm ? "ms:LSTMGrad" : is_simple(g) ? "own:RNNGrad" : "ms:GRUGrad", in, n, out, n_out);
    grad_copy_attrs(g, "layout");
    if (is_simple(g))
        GRAD_TEXT(g->b, "function", function_of(g));
    for (int k = 0; k < n_out; k++)
        if (grad_wants(g, OPERAND[k]))
            grad_give(g, OPERAND[k], out[k]);
    return 0;
}

#define MS "com.microsoft"
static const derivative ROWS[] = {
    {.ops = "Conv ConvTranspose", .back = conv},
    {.ops = "MaxPool", .back = pool, .forward = maxpool_forward},
    {.ops = "AveragePool GlobalAveragePool GlobalMaxPool", .back = pool},
    {.ops = "LpPool GlobalLpPool", .back = lppool},
    {.ops = "Resize Upsample", .back = resize},
    {.ops = "RotaryEmbedding", .back = rotary},
    {.ops = "Softmax LogSoftmax", .back = softmax},
    {.ops = "Dropout", .back = dropout, .forward = dropout_forward},
    {.ops = "Attention", .back = attention, .forward = attention_forward},
    {.ops = "MultiHeadAttention", .domain = MS, .back = attention, .forward = attention_forward},
    {.ops = "SoftmaxCrossEntropyLoss", .back = loss, .forward = loss_forward},
    {.ops = "NegativeLogLikelihoodLoss", .back = nll},
    {.ops = "LSTM GRU RNN", .back = rnn, .forward = rnn_forward},
};
const derivative_table derivatives_layer = DERIVATIVES(ROWS);
