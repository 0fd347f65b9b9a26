/* Which constants of an inference model are weights, and which operators have a derivative. */
#include "training/build.h"

#include <string.h>

static const derivative_table *const TABLES[] = {&derivatives_elementwise, &derivatives_shape, &derivatives_product,
                                                 &derivatives_layer,       &derivatives_norm,  &derivatives_sample};
enum { N_TABLES = sizeof TABLES / sizeof *TABLES };

const derivative *derivative_find(const bz_node *node)
{
    for (int t = 0; t < N_TABLES; t++)
        for (int i = 0; i < TABLES[t]->n; i++) {
            const derivative *d = &TABLES[t]->row[i];
            if (bz_has_word(d->ops, node->op) && !strcmp(d->domain ? d->domain : "", node->domain))
                return d;
        }
    return NULL;
}

/* Operands that are weights also where an exporter wrote all of them as the results of Constant nodes. */
static const struct {
    const char *ops;
    int first, last;
} WEIGHTS[] = {
    {"Conv ConvTranspose Gemm BatchNormalization LayerNormalization InstanceNormalization GroupNormalization", 1, 2},
    {"MatMul RMSNormalization PRelu", 1, 1},
    {"LSTM GRU RNN", 1, 3},
    {"Gather", 0, 0},
};

static bool is_weight_operand(const bz_node *node, int k)
{
    for (size_t i = 0; i < sizeof WEIGHTS / sizeof *WEIGHTS; i++)
        if (bz_has_word(WEIGHTS[i].ops, node->op) && k >= WEIGHTS[i].first && k <= WEIGHTS[i].last)
            return true;
    return false;
}

static bool is_real(bz_dtype t)
{
    return t == BZ_F32 || t == BZ_F16 || t == BZ_BF16 || t == BZ_F64;
}

/* [1, 1, n, n]: what a mask over pairs of positions looks like. */
static bool is_mask(const bz_tensor *t)
{
    int r = t->rank;
    return r >= 2 && t->dims[r - 1] == t->dims[r - 2] && t->dims[r - 1] * t->dims[r - 2] == t->n;
}

static bool elementwise(const char *op)
{
    return bz_has_word("Add Sub Mul Div Where Pow Max Min", op);
}

/* Operators whose constants are numbers of the model's design: limits, angles, windows, regions, weights of classes. */
static const char DESIGNED[] = "Pow Where Resize RotaryEmbedding SoftmaxCrossEntropyLoss "
                               "NegativeLogLikelihoodLoss STFT RoiAlign";

/* A number by itself (a factor, a limit) is no weight, but the slope of a PRelu is one. */
static bool is_trained(const bz_layer *l, int k, const bz_tensor *init)
{
    const char *op = l->node->op;
    if (is_weight_operand(l->node, k))
        return true;
    if (!init || l->in_setting[k] || init->n < 2 || bz_has_word(DESIGNED, op))
        return false;
    return !(elementwise(op) && is_mask(init));
}

static void take(build *b, bz_value_id v)
{
    if (b->trained[v])
        return;
    b->trained[v] = 1;
    b->needs[v] = 1;
    b->order[b->n_order++] = v;
}

/* A view of a weight is that weight: the scale of channels with dimensions of 1 beside them. */
static void look_through_view(build *b, const bz_layer *l, bz_value_id *viewed)
{
    bool view = bz_has_word("Unsqueeze Squeeze Reshape Flatten Identity", l->node->op) && l->n_out == 1;
    bz_value_id x = view && l->n_in ? grad_id(b, l->node->in[0]) : BZ_NO_VALUE;
    if (x >= 0 && l->node->out[0] >= 0 && (b->from->model->values[x].init || viewed[x] != x))
        viewed[grad_id(b, l->node->out[0])] = viewed[x];
}

static void look_at_operands(build *b, const step *s, const char *constant, const bz_value_id *viewed)
{
    const bz_layer *l = s->layer;
    bool batchnorm = !strcmp(l->node->op, "BatchNormalization");
    for (int k = 0; k < l->n_in; k++) {
        bz_value_id v = grad_id(b, l->node->in[k]);
        v = v < 0 ? v : viewed[v];
        if (v < 0 || l->in[k].kind != BZ_TYPE_TENSOR || !is_real(l->in[k].dtype))
            continue;
        const bz_tensor *init = b->from->model->values[v].init;
        if (!init && !constant[v])
            continue;
        if (batchnorm && k > 2)
            b->state[v] = 1;
        else if (is_trained(l, k, init))
            take(b, v);
    }
}

static bool is_turned_weight(const build *b, const bz_layer *l)
{
    const bz_param *perm = bz_layer_param(l, "perm");
    return !strcmp(l->node->op, "Transpose") && l->n_in == 1 && l->n_out == 1 && l->in[0].rank == 2 && perm &&
           perm->n == 2 && perm->v[0] == 1 && b->trained[grad_id(b, l->node->in[0])];
}

/* Transposes of weights that nothing but products read, as their second operand. */
static void find_turned(build *b)
{
    const bz_graph *graph = b->from->model->graph;
    for (int i = 0; i < b->n_steps; i++)
        if (is_turned_weight(b, b->steps[i].layer))
            b->turned[grad_id(b, b->steps[i].layer->node->out[0])] = grad_id(b, b->steps[i].layer->node->in[0]);
    for (int i = 0; i < b->n_steps; i++) {
        const bz_node *node = b->steps[i].layer->node;
        bool product = !strcmp(node->op, "MatMul") && !*node->domain;
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] >= 0 && (!product || k != 1))
                b->turned[grad_id(b, node->in[k])] = BZ_NO_VALUE;
    }
    for (int k = 0; k < graph->n_outputs; k++)
        if (graph->outputs[k] >= 0)
            b->turned[grad_id(b, graph->outputs[k])] = BZ_NO_VALUE;
}

int weights_find(build *b)
{
    int n = b->from->model->n_values;
    char *constant = BZ_NEW(b->arena, char, n + 1); /* made by a Constant node */
    bz_value_id *viewed = BZ_NEW(b->arena, bz_value_id, n + 1);
    b->order = BZ_NEW(b->arena, bz_value_id, n + 1);
    for (int v = 0; v < n; v++)
        viewed[v] = v;
    for (int i = 0; i < b->n_steps; i++)
        look_through_view(b, b->steps[i].layer, viewed);
    for (int i = 0; i < b->n_steps; i++)
        look_at_operands(b, &b->steps[i], constant, viewed);
    bool none = !b->n_order;
    for (int i = 0; i < b->n_steps && none; i++)
        if (!strcmp(b->steps[i].layer->node->op, "Constant") && b->steps[i].layer->n_out == 1)
            constant[grad_id(b, b->steps[i].layer->node->out[0])] = 1;
    for (int i = 0; i < b->n_steps && none; i++)
        look_at_operands(b, &b->steps[i], constant, viewed);
    find_turned(b);
    for (int i = 0; i < b->n_steps; i++) {
        const step *s = &b->steps[i];
        bool needs = false;
        for (int k = 0; k < s->layer->n_in; k++) {
            bz_value_id v = grad_id(b, s->layer->node->in[k]);
            needs |= v >= 0 && b->needs[v];
        }
        for (int k = 0; k < s->layer->n_out && needs && (!s->row || s->row->back); k++) {
            bz_value_id v = grad_id(b, s->layer->node->out[k]);
            if (v >= 0 && is_real(s->layer->out[k].dtype))
                b->needs[v] = 1;
        }
    }
    return b->n_order ? 0 : bz_fail(b->err, BZ_INCOMPLETE, "the model has no weights: nothing is to be trained");
}
