/* Moving data, and recurrent networks. */
#include "runtime/onednn/lower.h"

#include <string.h>

/* A reorder from x as it lies to y as it shall lie, both seen in the dimensions of x. */
static dnnl_status_t reorder(lowering *l, dnn_md x, dnn_md y, const int64_t *y_strides, float scale)
{
    const bz_operand *o = &l->s->job->operand[0];
    stage *st = &l->s->alternatives[l->s->n_alternatives - 1]->stages[0];
    dnn_bind_whole(l, st, DNNL_ARG_FROM, 0);
    dnn_bind(st, DNNL_ARG_TO, dnn_result(l), o->rank, o->dim, y_strides);
    TRY(dnn_attributes(l, st, false, o->rank, o->dim, (double)scale));
    return dnn_reorder(&st->impls, x, y);
}

dnnl_status_t dnn_lower_transpose(lowering *l)
{
    const bz_operand *o = &l->s->job->operand[0], *y = &l->s->job->operand[dnn_result(l)];
    int64_t plain[DNN_MAX_RANK], strides[DNN_MAX_RANK];
    dnn_md from, to;
    dnn_row_major(y->rank, y->dim, plain);
    for (int i = 0; i < y->rank; i++)
        strides[l->p->transpose.perm[i]] = plain[i];
    dnn_add_alternative(l, "", "", 1);
    TRY(dnn_fixed(l, 0, o->rank, o->dim, NULL, &from));
    TRY(dnn_fixed(l, dnn_result(l), o->rank, o->dim, strides, &to));
    return reorder(l, from, to, strides, 1);
}

dnnl_status_t dnn_lower_reorder(lowering *l)
{
    static const layout LAYOUTS[] = {PLAIN, NHWC, ANY};
    const bz_operand *o = &l->s->job->operand[0];
    dnn_md from, to;
    dnn_add_alternative(l, "", "", 1);
    l->layout = LAYOUTS[l->p->reorder.from];
    TRY(dnn_data(l, 0, o->rank, o->dim, false, &from));
    l->layout = LAYOUTS[l->p->reorder.to];
    TRY(dnn_data(l, dnn_result(l), o->rank, o->dim, false, &to));
    return reorder(l, from, to, NULL, l->p->reorder.scale);
}

dnnl_status_t dnn_lower_rnn(lowering *l)
{
    static const dnnl_rnn_direction_t DIRECTIONS[] = {dnnl_unidirectional_left2right, dnnl_unidirectional_right2left,
                                                      dnnl_bidirectional_concat};
    static const struct {
        bz_role role;
        int arg;
        bool layer; /* takes a dimension for the layers, of which there is one */
    } ARGS[] = {{BZ_ROLE_X, DNNL_ARG_SRC_LAYER, false},   {BZ_ROLE_H, DNNL_ARG_SRC_ITER, true},
                {BZ_ROLE_C, DNNL_ARG_SRC_ITER_C, true},   {BZ_ROLE_W, DNNL_ARG_WEIGHTS_LAYER, true},
                {BZ_ROLE_R, DNNL_ARG_WEIGHTS_ITER, true}, {BZ_ROLE_BIAS, DNNL_ARG_BIAS, true},
                {BZ_ROLE_Y, DNNL_ARG_DST_LAYER, false},   {BZ_ROLE_PEEPHOLE, DNNL_ARG_WEIGHTS_PEEPHOLE, true}};
    enum { N = sizeof ARGS / sizeof *ARGS };
    const bz_problem *p = l->p;
    dnn_md md[N] = {NULL};
    stage *st = &dnn_add_alternative(l, "", "", 1)->stages[0];
    for (int i = 0; i < N; i++) {
        int operand = dnn_find(l, ARGS[i].role), add = ARGS[i].layer;
        if (operand < 0)
            continue;
        const bz_operand *o = &l->s->job->operand[operand];
        int64_t dims[DNN_MAX_RANK] = {1};
        memcpy(dims + add, o->dim, (size_t)o->rank * sizeof *dims);
        bool matrix = ARGS[i].role == BZ_ROLE_W || ARGS[i].role == BZ_ROLE_R;
        if (matrix)
            TRY(dnn_weights(l, operand, true, o->rank + add, dims, NULL, &md[i]));
        else
            TRY(dnn_fixed(l, operand, o->rank + add, dims, NULL, &md[i]));
        dnn_bind(st, ARGS[i].arg, operand, o->rank + add, dims, NULL);
    }
    dnn_cell cell = p->kind == BZ_PROBLEM_LSTM  ? DNN_LSTM
                    : p->kind == BZ_PROBLEM_RNN ? DNN_RNN
                    : p->rnn.lbr                ? DNN_LBR_GRU
                                                : DNN_GRU;
    dnnl_alg_kind_t activation = p->rnn.fn == BZ_FN_RELU      ? dnnl_eltwise_relu
                                 : p->rnn.fn == BZ_FN_SIGMOID ? dnnl_eltwise_logistic
                                                              : dnnl_eltwise_tanh;
    TRY(dnn_attributes(l, st, false, 0, NULL, 1));
    if (bz_dtype_is_int(p->dtype)) {
        bz_rnn_scale s = bz_problem_rnn_scale(p);
        const float weights = (float)s.weights;
        TRY(dnnl_primitive_attr_set_rnn_data_qparams(st->impls.attr, (float)s.data, (float)s.shift));
        TRY(dnnl_primitive_attr_set_rnn_weights_qparams(st->impls.attr, 1, 0, &weights));
    }
    return dnn_rnn(&st->impls, cell, activation, DIRECTIONS[p->rnn.dir], md[0], md[1], md[2], md[3], md[4], md[7],
                   md[5], md[6]);
}
