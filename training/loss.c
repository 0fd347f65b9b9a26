/* The loss of a model that has none: of classes where the result scores them, else the mean of the squared distance. */
#include "training/build.h"

#include <string.h>

static step *maker_of(build *b, bz_value_id v)
{
    for (int i = b->n_steps - 1; i >= 0; i--)
        for (int k = 0; k < b->steps[i].layer->n_out; k++)
            if (grad_id(b, b->steps[i].layer->node->out[k]) == v)
                return &b->steps[i];
    return NULL;
}

/* Whether a table of so many rows is looked up by the model's inputs: the scores of a language model are over its words. */
static bool is_vocabulary(const build *b, int64_t n)
{
    for (int i = 0; i < b->n_steps; i++) {
        const bz_layer *l = b->steps[i].layer;
        if (!strcmp(l->kind, "gather") && l->in[0].kind == BZ_TYPE_TENSOR && l->in[0].rank == 2 &&
            l->in[0].dims[0] == n)
            return true;
    }
    return false;
}

static bool scores_classes(const build *b, const bz_type *t, bz_loss wanted)
{
    if (wanted != BZ_LOSS_AUTO)
        return wanted == BZ_LOSS_CLASSES && t->rank >= 2;
    return t->rank == 2 ? t->dims[1] > 1 : t->rank == 3 ? is_vocabulary(b, t->dims[2]) : t->rank == 4 && t->dims[1] > 1;
}

/* A loss takes scores, not their softmax: frameworks compute both at once. */
static bz_value_id before_softmax(build *b, bz_value_id v)
{
    const step *s = maker_of(b, v);
    return s && bz_has_word("Softmax LogSoftmax", s->layer->node->op) ? grad_id(b, s->layer->node->in[0]) : v;
}

static const char *targets(build *b, bz_dtype dtype, int rank, const int64_t *dims)
{
    const char *name = grad_fresh(b, "targets");
    bz_draft_input(&b->draft, name, dtype, rank, dims);
    return name;
}

/* The gradient of the loss itself: 1, or what keeps small gradients from vanishing in a narrow type. */
static double seed(const build *b)
{
    return b->options->dtype == BZ_F16 ? BZ_LOSS_SCALE : 1;
}

static void classes(build *b, bz_value_id v, const bz_type *t)
{
    int64_t dims[BZ_MAX_RANK] = {t->dims[0]};
    const char *scores = grad_name(b, v), *out[2];
    bz_type flat = *t;
    int64_t rows[2] = {t->rank == 3 ? t->dims[0] * t->dims[1] : 0, t->rank == 3 ? t->dims[2] : 0};
    bool narrow = grad_narrow(b, t->dtype) != t->dtype, words = t->rank == 3;
    if (narrow)
        scores = grad_cast(b, scores, BZ_F32);
    if (words) { /* [batch, words, vocabulary]: each word counts as a sample */
        flat.rank = 2;
        flat.dims = rows;
        dims[0] = rows[0];
        scores = grad_reshape(b, scores, &flat);
    }
    for (int i = 2; i < flat.rank; i++)
        dims[i - 1] = flat.dims[i];
    const char *in[2] = {scores, targets(b, BZ_I64, flat.rank - 1, dims)};
    bool old = b->opset < 12;
    grad_nodes(b, old ? "ms:SoftmaxCrossEntropyLossInternal" : "SoftmaxCrossEntropyLoss", in, 2, out, 2);
    b->loss = out[0];
    b->phase = BZ_TRAIN_BACKWARD;
    const char *dx = grad_node(b, old ? "ms:SoftmaxCrossEntropyLossInternalGrad" : "ms:SoftmaxCrossEntropyLossGrad",
                               grad_scalar(b, t->dtype, seed(b)), out[1], in[1], NULL);
    if (words)
        dx = grad_reshape(b, dx, t);
    b->grad[v] = narrow ? grad_cast(b, dx, b->options->dtype) : dx;
}

static void squares(build *b, bz_value_id v, const bz_type *t)
{
    int64_t n = bz_type_elements(t), axes[BZ_MAX_RANK];
    bool narrow = grad_narrow(b, t->dtype) != t->dtype;
    const char *y = narrow ? grad_cast(b, grad_name(b, v), BZ_F32) : grad_name(b, v);
    const char *difference = grad_node(b, "Sub", y, targets(b, t->dtype, t->rank, t->dims), NULL);
    const char *square = grad_node(b, "Mul", difference, difference, NULL);
    for (int i = 0; i < t->rank; i++)
        axes[i] = i;
    const char *sum = t->rank ? grad_sum_axes(b, square, axes, t->rank, false) : square;
    b->loss = grad_scaled(b, sum, t->dtype, n > 0 ? 1.0 / (double)n : 1);
    b->phase = BZ_TRAIN_BACKWARD;
    const char *dx = grad_scaled(b, difference, t->dtype, n > 0 ? 2 * seed(b) / (double)n : 1);
    b->grad[v] = narrow ? grad_cast(b, dx, b->options->dtype) : dx;
}

/* The result that is trained: the loss if there is one, else the first result of reals that weights reach. */
static bz_value_id trained_result(build *b)
{
    const bz_graph *g = b->from->model->graph;
    bz_value_id first = BZ_NO_VALUE;
    for (int i = 0; i < g->n_outputs; i++) {
        bz_value_id v = grad_id(b, g->outputs[i]);
        if (v < 0 || !b->needs[v])
            continue;
        const step *s = maker_of(b, v);
        if (s && bz_has_word("crossentropy nllloss", s->layer->kind)) /* a model that ends in its own loss keeps it */
            return v;
        if (first < 0)
            first = v;
    }
    return first;
}

int loss_build(build *b)
{
    bz_value_id v = trained_result(b);
    if (v < 0)
        return bz_fail(b->err, BZ_INCOMPLETE,
                       "no result of the model depends on its weights by operators that have a derivative");
    const bz_type *t = &b->from->types[v];
    if (t->kind != BZ_TYPE_TENSOR || !bz_type_is_static(t))
        return bz_fail(b->err, BZ_INCOMPLETE, "the shape of the result to be trained depends on data");
    b->loss_type = t->dtype;
    b->layer = "loss";
    b->phase = BZ_TRAIN_LOSS;
    b->wide = true;
    if (t->rank == 0) {
        b->loss = grad_name(b, v);
        b->grad[v] = grad_scalar(b, t->dtype, seed(b));
        b->wide = false;
        return 0;
    }
    if (scores_classes(b, t, b->options->loss)) {
        v = before_softmax(b, v);
        classes(b, v, &b->from->types[v]);
    } else {
        squares(b, v, t);
    }
    b->wide = false;
    return 0;
}
