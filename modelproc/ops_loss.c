/* Losses: scores [n, classes, d...] against targets [n, d...]. */
#include "modelproc/rule.h"

static int loss_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *target = need_any(c, 1);
    if (x->rank < 2 || target->rank != x->rank - 1)
        return call_fail(c, "scores of %d dimensions need targets of one less, not %d", x->rank, target->rank);
    const bz_type *weight = in_type(c, 2);
    if (weight && (weight->rank != 1 || !dims_fit(weight->dims[0], x->dims[1])))
        return call_fail(c, "it wants one weight for each of %lld classes", (long long)x->dims[1]);
    bz_dim *dims = new_dims(c, target->rank);
    for (int i = 0; i < target->rank; i++) {
        bz_dim d = x->dims[i ? i + 1 : 0];
        if (!dims_fit(d, target->dims[i]))
            return call_fail(c, "scores and targets differ in dimension %d of the targets", i);
        dims[i] = dim_same(d, target->dims[i]);
    }
    const char *reduction = attr_text(c, "reduction", "mean");
    bool none = !strcmp(reduction, "none");
    if (!none && strcmp(reduction, "mean") != 0 && strcmp(reduction, "sum") != 0)
        return call_fail(c, "reduction '%s' is none of none, sum, mean", reduction);
    set_out(c, 0, x->dtype, none ? target->rank : 0, dims);
    set_out(c, 1, x->dtype, x->rank, x->dims); /* log-probabilities of the cross entropy */
    param_text(c, "reduction", reduction);
    if (bz_node_attr(c->node, "ignore_index"))
        param_int(c, "ignore", attr_int(c, "ignore_index", 0));
    return 0;
}

/* One selected score for each target: negated, weighted, added. */
static void nll_cost(call *c)
{
    c->flops = count_mul(3, elements(&c->in[1]));
}

static const op ROWS[] = {
    {"NegativeLogLikelihoodLoss", NULL, "nllloss", BZ_COMPUTE, loss_shape, .cost = nll_cost, .flags = OP_KEEPS,
     .labels = "x target weight"},
    {"SoftmaxCrossEntropyLoss", NULL, "crossentropy", BZ_COMPUTE, loss_shape, .flops = 5, .flags = OP_KEEPS,
     .labels = "x target weight"},
    {"SoftmaxCrossEntropyLossInternal", "com.microsoft", "crossentropy", BZ_COMPUTE, loss_shape, .flops = 5,
     .flags = OP_KEEPS, .labels = "x target weight -"},
};
const op_table ops_loss = OP_TABLE(ROWS);
