/* Optimizers and gradients (ai.onnx.preview.training). */
#include "modelproc/microsoft.h"

/* Behind rate and step come n tensors to optimize, then their gradients, then the states; results
 * are the new tensors, then the new states. arg: how many groups of operands. */
static int optimizer_shape(call *c)
{
    int groups = (int)c->op->arg, operands = c->node->n_in - 2;
    if (operands <= 0 || operands % groups)
        return call_fail(c, "%d tensors can't be %d groups", operands, groups);
    int n = operands / groups;
    if (c->node->n_out > n * (groups - 1))
        return call_fail(c, "it has %d results for %d tensors", c->node->n_out, n);
    for (int k = 0; k < c->node->n_out; k++) {
        int group = k / n; /* tensors, then states: gradients have no result */
        set_type(c, k, need_any(c, 2 + (group ? group + 1 : 0) * n + k % n));
    }
    if (!strcmp(c->node->op, "Momentum"))
        param_text(c, "mode", attr_text(c, "mode", "standard"));
    return 0;
}

static void optimizer_cost(call *c)
{
    int n = (c->node->n_in - 2) / (int)c->op->arg;
    for (int k = 0; k < n; k++)
        c->flops = count_add(c->flops, count_mul(elements(&c->in[2 + k]), 4 * (c->op->arg - 1)));
}

/* Sequences of tensors: weights (operand arg), gradients, states. Whether it did anything, then the new weights and states. */
static int sequences_shape(call *c)
{
    set_out(c, 0, BZ_BOOL, 1, (bz_dim[]){1});
    for (int k = 1; k < c->node->n_out; k++) {
        const bz_type *t = in_type(c, (int)c->op->arg + (k > 1 ? k : 0));
        if (!t)
            return call_fail(c, "operand %d is missing", (int)c->op->arg + (k > 1 ? k : 0));
        set_type(c, k, t);
    }
    return 0;
}

/* One result for each name in xs, which are its first operands. */
static int gradient_shape(call *c)
{
    for (int k = 0; k < c->node->n_out; k++) {
        const bz_type *t = in_type(c, k);
        if (!t)
            return call_fail(c, "operand %d is missing", k);
        set_type(c, k, t);
    }
    return 0;
}

#define TRAINING "ai.onnx.preview.training"
#define OWN      "benanza.training" /* the same operands */
static const op ROWS[] = {
    {"Adagrad", TRAINING, "adagrad", BZ_COMPUTE, optimizer_shape, .cost = optimizer_cost, .labels = "- - x...",
     .arg = 3},
    {"Momentum", TRAINING, "momentum", BZ_COMPUTE, optimizer_shape, .cost = optimizer_cost, .labels = "- - x...",
     .arg = 3},
    {"Adam", TRAINING, "adam", BZ_COMPUTE, optimizer_shape, .cost = optimizer_cost, .labels = "- - x...", .arg = 4},
    {"SGD", OWN, "sgd", BZ_COMPUTE, optimizer_shape, .cost = optimizer_cost, .labels = "- - x...", .arg = 2},
    {"AdamW", OWN, "adamw", BZ_COMPUTE, optimizer_shape, .cost = optimizer_cost, .labels = "- - x...", .arg = 4},
    {"SGDOptimizerV2", MICROSOFT, "sgd", BZ_COMPUTE, sequences_shape, .flags = OP_RANKLESS, .labels = "- x - -",
     .arg = 1},
    {"AdamWOptimizer", MICROSOFT, "adamw", BZ_COMPUTE, sequences_shape, .flags = OP_RANKLESS, .labels = "- - x - - - -",
     .arg = 2},
    {"Gradient", TRAINING, "gradient", BZ_COMPUTE, gradient_shape, .labels = "x..."},
};
const op_table ops_training = OP_TABLE(ROWS);
