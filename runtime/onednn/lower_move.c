/* Moving data. */
#include "runtime/onednn/lower.h"

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
