/* Derivatives of normalizations. Some run in another form when they are trained: they keep what the gradient needs. */
#include "training/build.h"

#include <string.h>

static int batchnorm_forward(grad *g)
{
    build *b = g->b;
    const bz_node *node = g->l->node;
    const char *in[5], *out[5];
    if (node->n_in < 5)
        return grad_fail(g, "it has %d operands, not 5", node->n_in);
    for (int k = 0; k < 5; k++)
        in[k] = grad_x(g, k);
    out[0] = grad_y(g, 0);
    for (int k = 1; k < 3; k++) {
        bz_value_id v = grad_id(b, node->in[k + 2]);
        bool named = k < node->n_out && node->out[k] >= 0;
        out[k] = named ? grad_y(g, k) : grad_fresh(b, bz_arena_printf(b->arena, "%s/next", in[k + 2]));
        if (!b->updated[v])
            b->updated[v] = out[k];
    }
    out[3] = grad_keep(g, 0, "mean");
    out[4] = grad_keep(g, 1, "deviation");
    grad_layer(g, "BatchNormInternal", "com.microsoft", in, 5, out, 5);
    for (int i = 0; i < node->n_attrs; i++)
        if (bz_has_word("epsilon momentum", node->attrs[i].name))
            bz_draft_attr(&b->draft, b->from->model, &node->attrs[i], NULL);
    return 0;
}

static int batchnorm(grad *g)
{
    const char *out[3], *in[] = {grad_dy(g, 0), grad_x(g, 0), grad_x(g, 1), g->s->kept[0], g->s->kept[1]};
    grad_nodes(g->b, "ms:BatchNormalizationGrad", in, 5, out, 3);
    return grad_give_results(g, out, 3);
}

static bool is_rms(const grad *g)
{
    return strstr(g->l->kind, "rmsnorm") != NULL; /* also with a sum in front */
}

/* Mean and inverse deviation are results of the layer, for who asks. */
static int layernorm_forward(grad *g)
{
    const bz_node *node = g->l->node;
    const char *extra[2];
    int n = 0, wanted = is_rms(g) ? 2 : 3;
    bool newer = !*node->domain && !strcmp(node->op, "RMSNormalization"); /* has no such result: the older name has */
    for (int k = 1; k < wanted; k++) {
        if (k < node->n_out && node->out[k] >= 0)
            g->s->kept[k - 1] = grad_y(g, k);
        else if (k >= node->n_out)
            extra[n++] = grad_keep(g, k - 1, k == 1 && wanted == 3 ? "mean" : "deviation");
        else
            return grad_fail(g, "its results leave out one in the middle");
    }
    return newer ? grad_copy(g, "SimplifiedLayerNormalization", "com.microsoft", extra, n)
                 : grad_copy(g, node->op, node->domain, extra, n);
}

/* Of x, and of the operand `scale` and the one behind it. Returns how many. */
static int norm_grads(grad *g, const char *x, int scale, const char **out)
{
    const char *in[] = {grad_dy(g, 0), x, grad_x(g, scale), g->s->kept[0], g->s->kept[1]};
    int n = !is_rms(g) && grad_has(g, scale + 1) ? 3 : 2;
    grad_nodes(g->b, is_rms(g) ? "ms:SimplifiedLayerNormalizationGrad" : "ms:LayerNormalizationGrad", in,
               is_rms(g) ? 4 : 5, out, n);
    GRAD_INT(g->b, "axis", grad_param_int(g, "axis", -1));
    return n;
}

static int layernorm(grad *g)
{
    const char *out[3];
    return grad_give_results(g, out, norm_grads(g, grad_x(g, 0), 1, out));
}

/* Result k under its own name, or kept under another. */
static const char *named(grad *g, int k, int slot, const char *what)
{
    bool has = k < g->l->node->n_out && g->l->node->out[k] >= 0;
    return g->s->kept[slot] = has ? grad_y(g, k) : grad_keep(g, slot, what);
}

/* The sum and its normalization as two layers. */
static int skipnorm_forward(grad *g)
{
    build *b = g->b;
    int bias = is_rms(g) ? 3 : 4, n = 2;
    const char *in[3] = {grad_x(g, 0), grad_x(g, 1), grad_x(g, 2)}, *sum = named(g, 3, 2, "sum"), *out[3];
    bz_draft_node(&b->draft, "Sum", "", sum, (const char *[]){in[0], in[1], grad_has(g, bias) ? grad_x(g, bias) : ""},
                  grad_has(g, bias) ? 3 : 2, &sum, 1);
    bz_buf_putc(&b->phases, (char)b->phase);
    in[0] = sum, in[1] = in[2];
    if (!is_rms(g) && grad_has(g, 3))
        in[n++] = grad_x(g, 3);
    out[0] = grad_y(g, 0);
    for (int k = is_rms(g); k < 2; k++)
        out[1 + k - is_rms(g)] = named(g, 1 + k, k - is_rms(g), k ? "deviation" : "mean");
    grad_layer(g, is_rms(g) ? "SimplifiedLayerNormalization" : "LayerNormalization", "com.microsoft", in, n, out,
               is_rms(g) ? 2 : 3);
    grad_copy_attrs(g, "");
    return 0;
}

static int skipnorm(grad *g)
{
    build *b = g->b;
    int bias = is_rms(g) ? 3 : 4;
    const char *out[3], *sum = grad_dy(g, 3);
    if (grad_dy(g, 0)) {
        int n = norm_grads(g, g->s->kept[2], 2, out);
        for (int k = 1; k < n; k++)
            if (grad_wants(g, k + 1))
                grad_give(g, k + 1, out[k]);
        sum = sum ? grad_node(b, "Add", out[0], sum, NULL) : out[0];
    }
    for (int k = 0; k < g->l->n_in; k++)
        if (grad_wants(g, k) && (k < 2 || k == bias))
            grad_give(g, k, grad_reduce(b, sum, grad_type(g, 0), grad_type(g, k)));
    return 0;
}

static int groupnorm(grad *g)
{
    const char *out[3], *in[] = {grad_dy(g, 0), grad_x(g, 0), grad_x(g, 1)};
    grad_nodes(g->b, "own:GroupNormalizationGrad", in, 3, out, 3);
    GRAD_INT(g->b, "num_groups", grad_param_int(g, "groups", grad_type(g, 0)->dims[1]));
    grad_copy_attr(g, "epsilon");
    return grad_give_results(g, out, 3);
}

static int lrn(grad *g)
{
    static const char *const NAME[] = {"size", "alpha", "beta", "bias"};
    const char *dx = grad_node(g->b, "own:LRNGrad", grad_dy(g, 0), grad_x(g, 0), grad_y(g, 0), NULL);
    for (int i = 0; i < 4; i++)
        grad_copy_attr(g, NAME[i]);
    return grad_give(g, 0, dx);
}

/* y = x / n, n the sum of magnitudes or the root of the squares: dx = (dy - slope · Σ dy y) / n. */
static int lpnorm(grad *g)
{
    build *b = g->b;
    bool squares = grad_param_int(g, "p", 2) == 2;
    int64_t axis = grad_param_int(g, "axis", -1);
    const char *size = grad_node(b, squares ? "Mul" : "Abs", grad_x(g, 0), squares ? grad_x(g, 0) : NULL, NULL);
    size = grad_sum_axes(b, size, &axis, 1, true);
    if (squares)
        size = grad_node(b, "Sqrt", size, NULL);
    const char *along = grad_sum_axes(b, grad_node(b, "Mul", grad_dy(g, 0), grad_y(g, 0), NULL), &axis, 1, true);
    const char *slope = squares ? grad_y(g, 0) : grad_node(b, "Sign", grad_x(g, 0), NULL);
    const char *rest = grad_node(b, "Sub", grad_dy(g, 0), grad_node(b, "Mul", slope, along, NULL), NULL);
    return grad_give(g, 0, grad_node(b, "Div", rest, size, NULL));
}

static const char *mean_of(grad *g, const char *x, const int64_t *axes, int n)
{
    double share = 1;
    for (int i = 0; i < n; i++)
        share /= (double)grad_type(g, 0)->dims[axes[i]];
    return grad_scaled(g->b, grad_sum_axes(g->b, x, axes, n, true), grad_type(g, 0)->dtype, share);
}

/* y = (x - m) / s, both of x over some axes: dx = (dy - mean dy - y · mean (dy y)) / s. */
static int mvn(grad *g)
{
    build *b = g->b;
    int n;
    const int64_t *axes = grad_param(g, "axes", &n);
    int64_t own[BZ_MAX_RANK];
    for (int i = 0; i < n; i++)
        own[i] = axes[i] < 0 ? axes[i] + grad_type(g, 0)->rank : axes[i];
    const char *mean = mean_of(g, grad_x(g, 0), own, n), *dy = grad_dy(g, 0);
    const char *square = mean_of(g, grad_node(b, "Mul", grad_x(g, 0), grad_x(g, 0), NULL), own, n);
    const char *deviation =
        grad_node(b, "Sqrt", grad_node(b, "Sub", square, grad_node(b, "Mul", mean, mean, NULL), NULL), NULL);
    const char *along = mean_of(g, grad_node(b, "Mul", dy, grad_y(g, 0), NULL), own, n);
    const char *rest = grad_node(b, "Sub", grad_node(b, "Sub", dy, mean_of(g, dy, own, n), NULL),
                                 grad_node(b, "Mul", grad_y(g, 0), along, NULL), NULL);
    return grad_give(g, 0, grad_node(b, "Div", rest, deviation, NULL));
}

#define MS "com.microsoft"
static const derivative ROWS[] = {
    {.ops = "BatchNormalization", .back = batchnorm, .forward = batchnorm_forward},
    {.ops = "LayerNormalization RMSNormalization SimplifiedLayerNormalization",
     .back = layernorm,
     .forward = layernorm_forward},
    {.ops = "LayerNormalization SimplifiedLayerNormalization",
     .domain = MS,
     .back = layernorm,
     .forward = layernorm_forward},
    {.ops = "SkipLayerNormalization SkipSimplifiedLayerNormalization",
     .domain = MS,
     .back = skipnorm,
     .forward = skipnorm_forward},
    {.ops = "InstanceNormalization GroupNormalization", .back = groupnorm},
    {.ops = "LRN", .back = lrn},
    {.ops = "LpNormalization", .back = lpnorm},
    {.ops = "MeanVarianceNormalization", .back = mvn},
};
const derivative_table derivatives_norm = DERIVATIVES(ROWS);
