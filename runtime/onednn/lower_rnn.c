/* Recurrent layers, forward and backward. What the forward pass keeps for the backward one is the library's own: it has no values
 * that anybody could fill in, so a benchmark of the backward pass runs the forward one first, outside of what is measured. */
#include "runtime/onednn/lower.h"

#include <string.h>

/* Where a role's descriptor goes, and what the library calls the argument. Only the backward pass has gradients. */
typedef struct row {
    bz_role role;
    size_t at;
    int arg;
    bool layers; /* takes a dimension for the layers, of which there is one */
} row;

#define AT(member) offsetof(dnn_states, member)

static const row FORWARD[] = {
    {BZ_ROLE_X, AT(x), DNNL_ARG_SRC_LAYER, false},
    {BZ_ROLE_H, AT(h), DNNL_ARG_SRC_ITER, true},
    {BZ_ROLE_C, AT(c), DNNL_ARG_SRC_ITER_C, true},
    {BZ_ROLE_W, AT(w), DNNL_ARG_WEIGHTS_LAYER, true},
    {BZ_ROLE_R, AT(r), DNNL_ARG_WEIGHTS_ITER, true},
    {BZ_ROLE_PEEPHOLE, AT(peephole), DNNL_ARG_WEIGHTS_PEEPHOLE, true},
    {BZ_ROLE_BIAS, AT(bias), DNNL_ARG_BIAS, true},
    {BZ_ROLE_Y, AT(y), DNNL_ARG_DST_LAYER, false},
    {BZ_ROLE_LAST, AT(last), DNNL_ARG_DST_ITER, true},
    {BZ_ROLE_LAST_C, AT(last_c), DNNL_ARG_DST_ITER_C, true},
    {0},
};

/* The same for a backward pass, where what the forward pass gave has another role. */
static const row OPERANDS[] = {
    {BZ_ROLE_X, AT(x), DNNL_ARG_SRC_LAYER, false},           {BZ_ROLE_H, AT(h), DNNL_ARG_SRC_ITER, true},
    {BZ_ROLE_C, AT(c), DNNL_ARG_SRC_ITER_C, true},           {BZ_ROLE_W, AT(w), DNNL_ARG_WEIGHTS_LAYER, true},
    {BZ_ROLE_R, AT(r), DNNL_ARG_WEIGHTS_ITER, true},         {BZ_ROLE_BIAS, AT(bias), DNNL_ARG_BIAS, true},
    {BZ_ROLE_O, AT(y), DNNL_ARG_DST_LAYER, false},           {BZ_ROLE_LAST, AT(last), DNNL_ARG_DST_ITER, true},
    {BZ_ROLE_LAST_C, AT(last_c), DNNL_ARG_DST_ITER_C, true}, {0},
};

static const row GRADIENTS[] = {
    {BZ_ROLE_DY, AT(y), DNNL_ARG_DIFF_DST_LAYER, false},
    {BZ_ROLE_DH, AT(last), DNNL_ARG_DIFF_DST_ITER, true},
    {BZ_ROLE_DC, AT(last_c), DNNL_ARG_DIFF_DST_ITER_C, true},
    {0},
};

static const row RESULTS[] = {
    {BZ_ROLE_Y, AT(x), DNNL_ARG_DIFF_SRC_LAYER, false},
    {BZ_ROLE_H, AT(h), DNNL_ARG_DIFF_SRC_ITER, true},
    {BZ_ROLE_C, AT(c), DNNL_ARG_DIFF_SRC_ITER_C, true},
    {BZ_ROLE_W, AT(w), DNNL_ARG_DIFF_WEIGHTS_LAYER, true},
    {BZ_ROLE_R, AT(r), DNNL_ARG_DIFF_WEIGHTS_ITER, true},
    {BZ_ROLE_BIAS, AT(bias), DNNL_ARG_DIFF_BIAS, true},
    {0},
};

/* The first operand of this role among the results, or among the others; of a forward pass any. */
static int operand_of(const lowering *l, bz_role role, bool result)
{
    bool gradient = bz_problem_has(l->p, BZ_TRAIT_GRADIENT);
    for (int i = 0; i < l->s->job->n_operands; i++)
        if (l->s->job->operand[i].role == role && (!gradient || l->s->job->operand[i].result == result))
            return i;
    return -1;
}

/* Describes and binds what the rows name. */
static dnnl_status_t take(lowering *l, stage *st, const row *rows, bool result, dnn_states *out)
{
    for (; rows->arg; rows++) {
        int operand = operand_of(l, rows->role, result), add = rows->layers;
        dnn_md *md = (dnn_md *)(void *)((char *)out + rows->at);
        if (operand < 0)
            continue;
        const bz_operand *o = &l->s->job->operand[operand];
        int64_t dims[DNN_MAX_RANK] = {1};
        memcpy(dims + add, o->dim, (size_t)o->rank * sizeof *dims);
        if (!result && (rows->role == BZ_ROLE_W || rows->role == BZ_ROLE_R))
            TRY(dnn_weights(l, operand, true, o->rank + add, dims, NULL, md));
        else
            TRY(dnn_fixed(l, operand, o->rank + add, dims, NULL, md));
        dnn_bind(st, rows->arg, operand, o->rank + add, dims, NULL);
    }
    return dnnl_success;
}

static dnn_layer layer_of(const bz_problem *p)
{
    static const dnnl_rnn_direction_t DIRECTIONS[] = {dnnl_unidirectional_left2right, dnnl_unidirectional_right2left,
                                                      dnnl_bidirectional_concat};
    return (dnn_layer){
        .cell = bz_problem_is_lstm(p)   ? DNN_LSTM
                : !bz_problem_is_gru(p) ? DNN_RNN
                : p->rnn.lbr            ? DNN_LBR_GRU
                                        : DNN_GRU,
        .activation = p->rnn.fn == BZ_FN_RELU      ? dnnl_eltwise_relu
                      : p->rnn.fn == BZ_FN_SIGMOID ? dnnl_eltwise_logistic
                                                   : dnnl_eltwise_tanh,
        .direction = DIRECTIONS[p->rnn.dir],
    };
}

static void bind_kept(const lowering *l, stage *st)
{
    int kept = dnn_find(l, BZ_ROLE_KEPT);
    if (kept >= 0)
        dnn_bind_whole(l, st, DNNL_ARG_WORKSPACE, kept);
}

dnnl_status_t dnn_lower_rnn(lowering *l)
{
    const bz_problem *p = l->p;
    dnn_layer layer = layer_of(p);
    dnn_states md = {0};
    stage *st = &dnn_add_alternative(l, "", "", 1)->stages[0];
    TRY(take(l, st, FORWARD, false, &md));
    bind_kept(l, st);
    TRY(dnn_attributes(l, st, false, 0, NULL, 1));
    if (bz_dtype_is_int(p->dtype)) {
        bz_rnn_scale s = bz_problem_rnn_scale(p);
        const float weights = (float)s.weights;
        TRY(dnnl_primitive_attr_set_rnn_data_qparams(st->impls.attr, (float)s.data, (float)s.shift));
        TRY(dnnl_primitive_attr_set_rnn_weights_qparams(st->impls.attr, 1, 0, &weights));
    }
    st->impls.training |= p->rnn.training;
    return dnn_rnn(&st->impls, &layer, &md);
}

dnnl_status_t dnn_lower_rnn_grad(lowering *l)
{
    dnn_layer layer = layer_of(l->p);
    dnn_states md = {0}, forward = {0}, grad = {0};
    alternative *a = dnn_add_alternative(l, "", "", 1);
    stage *st = &a->stages[0];
    if (l->p->dtype != BZ_F32) {
        l->why =
            "oneDNN gives gradients of recurrent layers in f32, of bf16 too: this problem has them in its own type";
        return dnnl_unimplemented;
    }
    a->adds = true;
    a->first.impls.training = true;
    TRY(take(l, &a->first, OPERANDS, false, &forward));
    bind_kept(l, &a->first);
    TRY(dnn_attributes(l, &a->first, false, 0, NULL, 1));
    TRY(dnn_rnn(&a->first.impls, &layer, &forward));
    TRY(take(l, st, OPERANDS, false, &md));
    bind_kept(l, st);
    TRY(take(l, st, GRADIENTS, false, &grad));
    TRY(take(l, st, RESULTS, true, &grad));
    TRY(dnn_attributes(l, st, false, 0, NULL, 1));
    return dnn_rnn_grad(&st->impls, &layer, &md, &grad, dnn_hint(&a->first.impls));
}
