/* New weights from their gradients: one node for each, or one for all. */
#include "training/build.h"

#include <string.h>

static const struct {
    const char *name, *op, *state[BZ_OPTIMIZER_STATES];
    int states;
} OPTIMIZERS[] = {
    [BZ_SGD] = {"sgd", "own:SGD", {NULL}, 0},
    [BZ_MOMENTUM] = {"momentum", "train:Momentum", {"velocity"}, 1},
    [BZ_ADAM] = {"adam", "train:Adam", {"first", "second"}, 2},
    [BZ_ADAMW] = {"adamw", "own:AdamW", {"first", "second"}, 2},
};

int bz_optimizer_states(bz_optimizer o)
{
    return OPTIMIZERS[o].states;
}

int bz_optimizer_parse(const char *name, bz_optimizer *o)
{
    for (int i = 0; i < BZ_OPTIMIZERS; i++)
        if (!strcmp(OPTIMIZERS[i].name, name)) {
            *o = (bz_optimizer)i;
            return 0;
        }
    return -1;
}

/* What papers and frameworks take where nobody says otherwise. */
static void put_settings(build *b)
{
    bz_optimizer o = b->options->optimizer;
    if (o == BZ_SGD)
        return;
    GRAD_REAL(b, "alpha", 0.9);
    GRAD_REAL(b, "beta", o == BZ_MOMENTUM ? 1 : 0.999);
    if (o != BZ_MOMENTUM)
        GRAD_REAL(b, "epsilon", 1e-8);
    GRAD_REAL(b, "norm_coefficient", 0);
    if (o == BZ_MOMENTUM)
        GRAD_TEXT(b, "mode", "standard");
    if (o == BZ_ADAMW)
        GRAD_REAL(b, "weight_decay", 0.01);
}

/* Groups of tensors: weights, gradients, states; results are new weights and new states. */
static void put_step(build *b, const char *const *rates, const bz_value_id *v, int n)
{
    int groups = 2 + OPTIMIZERS[b->options->optimizer].states;
    const char **in = BZ_NEW(b->arena, const char *, 2 + groups * n), **out = BZ_NEW(b->arena, const char *, groups *n);
    in[0] = rates[0];
    in[1] = rates[1];
    for (int i = 0; i < n; i++) {
        const bz_type *t = &b->from->types[v[i]];
        in[2 + i] = b->master[v[i]];
        in[2 + n + i] = b->grad[v[i]];
        for (int s = 2; s < groups; s++) {
            const char *state = OPTIMIZERS[b->options->optimizer].state[s - 2];
            in[2 + s * n + i] = grad_fresh(b, bz_arena_printf(b->arena, "%s/%s", in[2 + i], state));
            bz_draft_input(&b->draft, in[2 + s * n + i], t->dtype, t->rank, t->dims);
        }
    }
    grad_nodes(b, OPTIMIZERS[b->options->optimizer].op, in, 2 + groups * n, out, (groups - 1) * n);
    put_settings(b);
    for (int i = 0; i < n; i++) {
        const bz_type *t = &b->from->types[v[i]];
        b->updated[v[i]] = out[i];
        for (int s = 0; s < groups - 1; s++)
            bz_draft_output(&b->draft, out[s * n + i], t->dtype, t->rank, t->dims);
    }
}

/* Gradients in a narrow type must be numbers, all of them, before any weight changes. */
static void check_narrow(build *b, const bz_value_id *v, int n)
{
    const char **in = BZ_NEW(b->arena, const char *, n + 1), *all;
    for (int i = 0; i < n; i++)
        in[i] = b->grad[v[i]];
    grad_nodes(b, "ms:IsAllFinite", in, n, &all, 1);
}

/* They lose their factor, and become as wide as the weights. */
static void widen(build *b, bz_value_id v)
{
    const char *scale = grad_scalar(b, BZ_F32, b->options->dtype == BZ_F16 ? 1.0 / BZ_LOSS_SCALE : 1);
    b->grad[v] = grad_node(b, "ms:MixedPrecisionScale", scale, b->grad[v], NULL);
    GRAD_INT(b, "to", BZ_F32);
}

void update_build(build *b)
{
    const char *rates[2] = {grad_fresh(b, "rate"), grad_fresh(b, "step")};
    bz_value_id *reached = BZ_NEW(b->arena, bz_value_id, b->n_order + 1);
    int n = 0;
    b->phase = BZ_TRAIN_UPDATE;
    b->layer = "update";
    b->wide = true;
    b->rate = rates[0], b->step = rates[1];
    bz_draft_input(&b->draft, rates[0], BZ_F32, 0, NULL);
    bz_draft_input(&b->draft, rates[1], BZ_I64, 0, NULL);
    for (int i = 0; i < b->n_order; i++)
        if (b->grad[b->order[i]])
            reached[n++] = b->order[i];
    if (b->options->dtype)
        check_narrow(b, reached, n);
    for (int i = 0; i < n; i++) {
        b->layer = bz_arena_printf(b->arena, "update/%s", b->master[reached[i]]);
        if (b->options->dtype)
            widen(b, reached[i]);
        if (!b->options->fused)
            put_step(b, rates, &reached[i], 1);
    }
    b->layer = "update";
    if (b->options->fused && n)
        put_step(b, rates, reached, n);
}
