/* Backward passes. In `packed` the data is row-major and weights lie as the implementation likes: what uses them is then
 * other packed calls, or the optimizer's step, which takes elements in any order. */
#include "runtime/onednn/lower.h"

/* The usual beginning: one alternative of one stage, and attributes. */
static dnnl_status_t begin(lowering *l, stage **st)
{
    int64_t y[DNN_MAX_RANK];
    int rank = dnn_shape(l, dnn_result(l), y);
    *st = &dnn_add_alternative(l, "", "", 1)->stages[0];
    return dnn_attributes(l, *st, false, rank, y, 1);
}

static dnnl_status_t make_data(dnn_impls *out, dnnl_alg_kind_t alg, const dnn_md *md, const dnn_window *window)
{
    return dnn_convolution_data(out, alg, md[0], md[1], md[2], window);
}

dnnl_status_t dnn_lower_conv_data(lowering *l)
{
    int64_t dy[DNN_MAX_RANK], dims[DNN_MAX_RANK], strides[DNN_MAX_RANK];
    int rank = dnn_shape(l, 0, dy), w_rank = dnn_conv_weights(l->p, dims, strides), dx = dnn_result(l);
    dnn_window window = dnn_conv_window(l->p);
    dnn_md md[3];
    stage *st;
    TRY(dnn_data(l, dx, rank, l->p->conv.x, true, &md[0]));
    TRY(dnn_weights(l, 1, true, w_rank, dims, strides, &md[1]));
    TRY(dnn_data(l, 0, rank, dy, true, &md[2]));
    TRY(begin(l, &st));
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_DST, 0);
    dnn_bind(st, DNNL_ARG_WEIGHTS, 1, w_rank, dims, strides);
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_SRC, dx);
    return dnn_by_both(st, make_data, md, &window);
}

static dnnl_status_t make_weights(dnn_impls *out, dnnl_alg_kind_t alg, const dnn_md *md, const dnn_window *window)
{
    return dnn_convolution_weights(out, alg, md[0], md[1], md[2], md[3], window);
}

dnnl_status_t dnn_lower_conv_weights(lowering *l)
{
    int64_t dy[DNN_MAX_RANK], dims[DNN_MAX_RANK], strides[DNN_MAX_RANK];
    int rank = dnn_shape(l, 1, dy), w_rank = dnn_conv_weights(l->p, dims, strides), dw = dnn_result(l);
    dnn_window window = dnn_conv_window(l->p);
    dnn_md md[4];
    stage *st;
    TRY(dnn_data(l, 0, rank, l->p->conv.x, true, &md[0]));
    TRY(dnn_weights(l, 0, true, w_rank, dims, strides, &md[1]));
    TRY(dnn_weights(l, dw, true, w_rank, dims, strides, &md[2]));
    TRY(dnn_data(l, 1, rank, dy, true, &md[3]));
    TRY(begin(l, &st));
    dnn_bind_whole(l, st, DNNL_ARG_SRC, 0);
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_DST, 1);
    dnn_bind(st, DNNL_ARG_DIFF_WEIGHTS, dw, w_rank, dims, strides);
    return dnn_by_both(st, make_weights, md, &window);
}

/* Which element of a window was the largest lies as the library keeps it: a number in the window for each result. */
dnnl_status_t dnn_lower_pool_grad(lowering *l)
{
    int64_t dy[DNN_MAX_RANK];
    int rank = dnn_shape(l, 0, dy), index = dnn_find(l, BZ_ROLE_INDEX), dx = dnn_result(l);
    dnn_md from, to;
    stage *st;
    TRY(dnn_data(l, dx, rank, l->p->pool.x, false, &to));
    TRY(dnn_data(l, 0, rank, dy, false, &from));
    TRY(begin(l, &st));
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_DST, 0);
    if (index >= 0)
        dnn_bind_whole(l, st, DNNL_ARG_WORKSPACE, index);
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_SRC, dx);
    dnn_window window = dnn_pool_window(l->p);
    return dnn_pooling_grad(&st->impls, dnn_pool_algorithm(l->p), to, from, &window);
}

/* Scale and statistics come in, the gradients of scale and shift go out. */
static void bind_parameters(const lowering *l, stage *st)
{
    static const struct {
        bz_role role;
        bool result;
        int arg;
    } PARAMETERS[] = {{BZ_ROLE_MEAN, false, DNNL_ARG_MEAN},
                      {BZ_ROLE_VARIANCE, false, DNNL_ARG_VARIANCE},
                      {BZ_ROLE_SCALE, false, DNNL_ARG_SCALE},
                      {BZ_ROLE_SCALE, true, DNNL_ARG_DIFF_SCALE},
                      {BZ_ROLE_SHIFT, true, DNNL_ARG_DIFF_SHIFT}};
    for (size_t k = 0; k < sizeof PARAMETERS / sizeof *PARAMETERS; k++)
        for (int i = 0; i < l->s->job->n_operands; i++)
            if (l->s->job->operand[i].role == PARAMETERS[k].role &&
                l->s->job->operand[i].result == PARAMETERS[k].result)
                dnn_bind_whole(l, st, PARAMETERS[k].arg, i);
}

/* Some versions count the shift among the inputs, though nothing is computed from it: any tensor of its size will do. The others refuse it. */
static dnnl_status_t bind_counted_shift(const lowering *l, stage *st)
{
    int wanted = 0, bound = 0;
    TRY(dnnl_primitive_desc_query(st->impls.pd[0], dnnl_query_num_of_inputs_s32, 0, &wanted));
    for (int i = 0; i < st->n_args; i++)
        bound += st->args[i].arg != DNNL_ARG_DIFF_SRC && st->args[i].arg != DNNL_ARG_DIFF_SCALE &&
                 st->args[i].arg != DNNL_ARG_DIFF_SHIFT;
    if (wanted > bound)
        dnn_bind_whole(l, st, DNNL_ARG_SHIFT, dnn_find(l, BZ_ROLE_SCALE));
    return dnnl_success;
}

dnnl_status_t dnn_lower_batchnorm_grad(lowering *l)
{
    int64_t x[DNN_MAX_RANK];
    int rank = dnn_shape(l, 0, x);
    dnn_md md;
    stage *st;
    TRY(dnn_data(l, 0, rank, x, false, &md));
    TRY(begin(l, &st));
    dnn_bind_whole(l, st, DNNL_ARG_SRC, 0);
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_DST, 1);
    bind_parameters(l, st);
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_SRC, dnn_result(l));
    TRY(dnn_batchnorm_grad(&st->impls, md, dnn_epsilon(l), dnnl_use_scale | dnnl_use_shift));
    return bind_counted_shift(l, st);
}

/* As the forward pass: all before the axis is one dimension, all from it on another. */
dnnl_status_t dnn_lower_layernorm_grad(lowering *l)
{
    const bz_operand *x = &l->s->job->operand[0];
    int64_t n = bz_extent_count(l->p->layernorm.x + l->p->layernorm.axis), dims[2] = {x->count / n, n};
    dnn_md md;
    stage *st;
    TRY(dnn_fixed(l, 0, 2, dims, NULL, &md));
    TRY(begin(l, &st));
    dnn_bind(st, DNNL_ARG_SRC, 0, 2, dims, NULL);
    dnn_bind(st, DNNL_ARG_DIFF_DST, 1, 2, dims, NULL);
    bind_parameters(l, st);
    dnn_bind(st, DNNL_ARG_DIFF_SRC, dnn_result(l), 2, dims, NULL);
    TRY(dnn_layernorm_grad(&st->impls, md, dnn_epsilon(l), dnnl_use_scale | dnnl_use_shift));
    return bind_counted_shift(l, st);
}

/* The algorithm that takes what the function gave; undefined where the library has none. */
static dnnl_alg_kind_t of_result(dnnl_alg_kind_t alg)
{
    static const dnnl_alg_kind_t BY_RESULT[][2] = {
        {dnnl_eltwise_relu, dnnl_eltwise_relu_use_dst_for_bwd},
        {dnnl_eltwise_tanh, dnnl_eltwise_tanh_use_dst_for_bwd},
        {dnnl_eltwise_elu, dnnl_eltwise_elu_use_dst_for_bwd},
        {dnnl_eltwise_sqrt, dnnl_eltwise_sqrt_use_dst_for_bwd},
        {dnnl_eltwise_logistic, dnnl_eltwise_logistic_use_dst_for_bwd},
        {dnnl_eltwise_exp, dnnl_eltwise_exp_use_dst_for_bwd},
    };
    for (size_t i = 0; i < sizeof BY_RESULT / sizeof *BY_RESULT; i++)
        if (BY_RESULT[i][0] == alg)
            return BY_RESULT[i][1];
    return dnnl_alg_kind_undef;
}

dnnl_status_t dnn_lower_activation_grad(lowering *l)
{
    const bz_problem *p = l->p;
    const bz_operand *x = &l->s->job->operand[0];
    function f = dnn_function_of(p->activation.fn, p->activation.alpha, p->activation.beta);
    dnnl_alg_kind_t alg = p->activation.of_y && f.n ? of_result(f.step[0].alg) : f.step[0].alg;
    dnn_md md;
    stage *st;
    if (f.n != 1 || alg == dnnl_alg_kind_undef) {
        l->why = "oneDNN has no derivative of this function";
        return dnnl_unimplemented;
    }
    TRY(dnn_data(l, 0, x->rank, x->dim, false, &md));
    TRY(begin(l, &st));
    dnn_bind_whole(l, st, p->activation.of_y ? DNNL_ARG_DST : DNNL_ARG_SRC, 0);
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_DST, 1);
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_SRC, dnn_result(l));
    return dnn_eltwise_grad(&st->impls, alg, md, f.step[0].alpha, f.step[0].beta);
}

dnnl_status_t dnn_lower_softmax_grad(lowering *l)
{
    const bz_operand *y = &l->s->job->operand[0];
    dnnl_alg_kind_t alg = l->p->kind == BZ_PROBLEM_SOFTMAX_GRAD ? dnnl_softmax_accurate : dnnl_softmax_log;
    dnn_md md;
    stage *st;
    TRY(dnn_data(l, 0, y->rank, y->dim, false, &md));
    TRY(begin(l, &st));
    dnn_bind_whole(l, st, DNNL_ARG_DST, 0);
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_DST, 1);
    dnn_bind_whole(l, st, DNNL_ARG_DIFF_SRC, dnn_result(l));
    return dnn_softmax_grad(&st->impls, alg, md, (int)l->p->softmax.axis);
}
