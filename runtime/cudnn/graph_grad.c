/* Graphs of poolings and normalizations, with what training keeps of them, and of gradients. */
#include "runtime/cudnn/graph.h"

/* The first operand with this role that is a result, or none; -1. */
static int find(const call *c, bz_role role, bool result)
{
    for (int i = 0; i < c->n_operands; i++)
        if (c->operand[i].role == role && c->operand[i].result == result)
            return i;
    return -1;
}

void cudnn_build_weights(call *c)
{
    int x = graph_operand_add(c, 0, 4, ONES_BEHIND), dy = graph_operand_add(c, 1, 4, ONES_BEHIND);
    c->graph->y = graph_operand_add(c, 2, 4, ONES_BEHIND);
    graph_conv_add(c, x, dy, c->graph->y);
}

void cudnn_build_pool(call *c)
{
    int from = graph_operand_add(c, 0, 4, ONES_BEHIND), index = cudnn_find(c, BZ_ROLE_INDEX);
    if (index >= 0)
        index = graph_operand_add(c, index, 4, ONES_BEHIND);
    c->graph->y = graph_operand_add(c, c->n_operands - 1, 4, ONES_BEHIND);
    (c->problem->kind == BZ_PROBLEM_POOL ? graph_pool_add : graph_pool_grad_add)(c, from, index, c->graph->y);
}

int cudnn_check_pool(call *c, bz_error *why)
{
    int n = bz_extent_rank(c->problem->pool.x) - 2; /* the gradient has the same members */
    for (int i = 0; i < n; i++)
        if (c->problem->pool.dilation[i] != 1)
            return bz_fail(why, BZ_INCOMPLETE, "cuDNN has no dilated pooling");
    return 0;
}

void cudnn_build_slope(call *c)
{
    const bz_problem *p = c->problem;
    int x = graph_operand_add(c, 0, 4, ROWS), dy = graph_operand_add(c, 1, 4, ROWS);
    c->graph->y = graph_operand_add(c, 2, 4, ROWS);
    graph_slope_add(c, p->activation.fn, p->activation.alpha, p->activation.beta, x, dy, c->graph->y);
}

/* A ReLU's slope is the same whether x is asked or y. */
int cudnn_check_slope(call *c, bz_error *why)
{
    bz_fn fn = c->problem->activation.fn;
    if (c->problem->activation.of_y && fn != BZ_FN_RELU && fn != BZ_FN_LEAKY && fn != BZ_FN_CLIP)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's graphs tell the slope of %s from x", bz_fn_name(fn));
    return 0;
}

/* Values along some of the four dimensions; -1 where the problem has no such operand. */
static int add_values(call *c, int operand, const int64_t *dim)
{
    if (operand < 0)
        return -1;
    bz_cuda_layout layout = bz_cuda_plain(&c->operand[operand]);
    int64_t stride[4] = {dim[1], 1, dim[1], dim[1]};
    if (c->operand[operand].role == BZ_ROLE_VARIANCE)
        layout.root = (float)c->epsilon;
    return graph_tensor_add(c, operand, &layout, 4, dim, stride);
}

/* Tensors as [batch, channels, rows, columns]: those of a batchnorm as they are; of others what stands before the axis is the
 * batch, and the rest is normalized as one row of channels. */
typedef struct extents {
    int64_t x[4], step[4], statistic[4], parameter[4];
} extents;

static extents extents_of(const call *c, bool batch)
{
    const bz_operand *x = &c->operand[0];
    if (!batch) {
        int64_t row = bz_extent_count(x->dim + c->problem->layernorm.axis); /* all have the same members */
        return (extents){{x->count / row, row, 1, 1}, {row, 1, row, row}, {x->count / row, 1, 1, 1}, {1, row, 1, 1}};
    }
    int64_t channels = x->dim[1], inner = x->count / x->dim[0] / channels;
    extents e = {{x->dim[0], channels, 1, inner}, {0}, {1, channels, 1, 1}, {1, channels, 1, 1}};
    e.step[0] = channels * inner;
    e.step[1] = c->nhwc ? 1 : inner;
    e.step[3] = c->nhwc ? channels : 1;
    e.step[2] = inner * e.step[3];
    return e;
}

static int add_data(call *c, int operand, const extents *e)
{
    if (operand < 0)
        return -1;
    tensor t = cudnn_tensor(c, operand);
    return graph_tensor_add(c, operand, &t.layout, 4, e->x, e->step);
}

void cudnn_build_norm(call *c)
{
    bz_problem_kind kind = c->problem->kind;
    bool gradient = bz_problem_has(c->problem, BZ_TRAIT_GRADIENT);
    bool batch = kind == BZ_PROBLEM_BATCHNORM || kind == BZ_PROBLEM_BATCHNORM_GRAD;
    bool rms = kind == BZ_PROBLEM_RMSNORM || kind == BZ_PROBLEM_RMSNORM_GRAD;
    cudnnBackendNormMode_t mode = batch ? CUDNN_BATCH_NORM : rms ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM;
    extents e = extents_of(c, batch);
    graph_norm t = {.epsilon = -1};
    t.x = add_data(c, 0, &e);
    t.dy = add_data(c, find(c, BZ_ROLE_DY, false), &e);
    t.mean = add_values(c, find(c, BZ_ROLE_MEAN, !gradient), e.statistic);
    t.root = add_values(c, find(c, BZ_ROLE_VARIANCE, !gradient), e.statistic);
    t.scale = add_values(c, find(c, BZ_ROLE_SCALE, false), e.parameter);
    t.shift = add_values(c, find(c, BZ_ROLE_SHIFT, gradient), e.parameter);
    t.dscale = add_values(c, find(c, BZ_ROLE_SCALE, true), e.parameter);
    t.y = c->graph->y = add_data(c, c->n_operands - 1, &e);
    if (gradient) {
        graph_norm_grad_add(c, mode, &t);
        return;
    }
    t.epsilon = c->graph->epsilon = graph_number_add(c, 1e-5f, 4);
    graph_norm_add(c, mode, &t);
}

int cudnn_check_norm(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    bool batch = p->kind == BZ_PROBLEM_BATCHNORM || p->kind == BZ_PROBLEM_BATCHNORM_GRAD;
    if (c->nhwc && !batch)
        return bz_fail(why, BZ_INCOMPLETE, "rows have no channels (layout plain)");
    if (p->kind == BZ_PROBLEM_BATCHNORM && !p->batchnorm.training)
        return bz_fail(why, BZ_INCOMPLETE, "a batchnorm for inference is one call");
    return 0;
}
