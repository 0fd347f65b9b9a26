/* Kinds that take tensors and give one of a like shape: windows, normalizations, functions, concat. */
#include "runtime/onednn/lower.h"

/* The usual beginning: one alternative of one stage, x and y in the layout, attributes. */
typedef struct simple {
    stage *st;
    dnn_md x, y;
    int rank;
    int64_t y_dims[DNN_MAX_RANK];
} simple;

static dnnl_status_t begin(lowering *l, simple *s)
{
    int64_t x_dims[DNN_MAX_RANK];
    int x_rank = dnn_shape(l, 0, x_dims);
    s->st = &dnn_add_alternative(l, "", "", 1)->stages[0];
    s->rank = dnn_shape(l, dnn_result(l), s->y_dims);
    TRY(dnn_data(l, 0, x_rank, x_dims, false, &s->x));
    TRY(dnn_data(l, dnn_result(l), s->rank, s->y_dims, false, &s->y));
    dnn_bind_whole(l, s->st, DNNL_ARG_SRC, 0);
    dnn_bind_whole(l, s->st, DNNL_ARG_DST, dnn_result(l));
    return dnn_attributes(l, s->st, false, s->rank, s->y_dims, bz_problem_scale(l->p));
}

dnnl_alg_kind_t dnn_pool_algorithm(const bz_problem *p)
{
    static const dnnl_alg_kind_t algs[] = {dnnl_pooling_max, dnnl_pooling_avg_exclude_padding,
                                           dnnl_pooling_avg_include_padding};
    return algs[p->pool.mode];
}

dnn_window dnn_pool_window(const bz_problem *p)
{
    return dnn_window_of(bz_extent_rank(p->pool.x) - 2, p->pool.stride, p->pool.kernel, p->pool.dilation, p->pool.pad);
}

dnnl_status_t dnn_lower_pool(lowering *l)
{
    const bz_problem *p = l->p;
    simple s;
    TRY(begin(l, &s));
    if (p->pool.training) {
        s.st->impls.training = true;
        dnn_bind_whole(l, s.st, DNNL_ARG_WORKSPACE, dnn_find(l, BZ_ROLE_INDEX));
    }
    dnn_window window = dnn_pool_window(p);
    return dnn_pooling(&s.st->impls, dnn_pool_algorithm(p), s.x, s.y, &window);
}

/* `groups`: in so many each image has its statistics; 0: they are one list. */
static void bind_norm(const lowering *l, stage *st, int64_t groups)
{
    static const struct {
        bz_role role;
        int arg;
    } PARAMETERS[] = {{BZ_ROLE_MEAN, DNNL_ARG_MEAN},
                      {BZ_ROLE_VARIANCE, DNNL_ARG_VARIANCE},
                      {BZ_ROLE_SCALE, DNNL_ARG_SCALE},
                      {BZ_ROLE_SHIFT, DNNL_ARG_SHIFT}};
    for (int i = 0; i < 4; i++) {
        int operand = dnn_find(l, PARAMETERS[i].role);
        if (operand >= 0 && groups && i < 2)
            dnn_bind(st, PARAMETERS[i].arg, operand, 2, (int64_t[]){l->s->job->operand[operand].count / groups, groups},
                     NULL);
        else if (operand >= 0)
            dnn_bind_whole(l, st, PARAMETERS[i].arg, operand);
    }
}

float dnn_epsilon(const lowering *l)
{
    return l->s->job->epsilon > 0 ? l->s->job->epsilon : 1e-5f;
}

dnnl_status_t dnn_lower_batchnorm(lowering *l)
{
    simple s;
    TRY(begin(l, &s));
    bind_norm(l, s.st, 0);
    unsigned flags = (l->p->batchnorm.training ? 0U : dnnl_use_global_stats) | dnnl_use_scale | dnnl_use_shift;
    s.st->impls.training |= l->p->batchnorm.training;
    return dnn_batchnorm(&s.st->impls, s.x, dnn_epsilon(l), flags);
}

/* The primitive normalizes the last dimension: all before the axis become one, all from it on another. */
dnnl_status_t dnn_lower_layernorm(lowering *l)
{
    const bz_operand *y = &l->s->job->operand[dnn_result(l)];
    int64_t n = bz_extent_count(l->p->layernorm.x + l->p->layernorm.axis), dims[2] = {y->count / n, n};
    stage *st = &dnn_add_alternative(l, "", "", 1)->stages[0];
    dnn_md x;
    TRY(dnn_fixed(l, 0, 2, dims, NULL, &x));
    dnn_bind(st, DNNL_ARG_SRC, 0, 2, dims, NULL);
    dnn_bind(st, DNNL_ARG_DST, dnn_result(l), 2, dims, NULL);
    bind_norm(l, st, 0);
    st->impls.training |= l->p->layernorm.training;
    TRY(dnn_attributes(l, st, false, 2, dims, 1));
    return dnn_layernorm(&st->impls, x, dnn_epsilon(l), dnnl_use_scale | dnnl_use_shift);
}

/* Without a primitive of its own: a batch normalization in which each group is a channel and takes its
 * own statistics, then scale and shift by channel. */
static dnnl_status_t groupnorm_in_two(lowering *l)
{
    const bz_operand *y = &l->s->job->operand[dnn_result(l)];
    int64_t groups = l->p->groupnorm.x[0] * l->p->groupnorm.group, seen[3] = {1, groups, y->count / groups};
    int64_t channel[DNN_MAX_RANK];
    int scale = dnn_find(l, BZ_ROLE_SCALE), shift = dnn_find(l, BZ_ROLE_SHIFT);
    alternative *a = dnn_add_alternative(l, "", "", 2);
    stage *norm = &a->stages[0], *affine = &a->stages[1];
    dnn_md x, t, scale_md, shift_md;
    dnnl_post_ops_t ops;
    for (int i = 0; i < y->rank; i++)
        channel[i] = i == 1 ? y->dim[1] : 1;
    TRY(dnn_fixed(l, 0, 3, seen, NULL, &x));
    dnn_bind(norm, DNNL_ARG_SRC, 0, 3, seen, NULL);
    dnn_bind(norm, DNNL_ARG_DST, TEMPORARY, 3, seen, NULL);
    TRY(dnn_attributes(l, norm, false, 3, seen, 1));
    TRY(dnn_batchnorm(&norm->impls, x, dnn_epsilon(l), 0));
    TRY(dnn_fixed(l, dnn_result(l), y->rank, y->dim, NULL, &t));
    TRY(dnn_fixed(l, scale, y->rank, channel, NULL, &scale_md));
    TRY(dnn_fixed(l, shift, y->rank, channel, NULL, &shift_md));
    dnn_bind(affine, DNNL_ARG_SRC_0, TEMPORARY, y->rank, y->dim, NULL);
    dnn_bind(affine, DNNL_ARG_SRC_1, scale, y->rank, channel, NULL);
    dnn_bind(affine, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, shift, y->rank, channel, NULL);
    dnn_bind_whole(l, affine, DNNL_ARG_DST, dnn_result(l));
    TRY(dnn_attributes(l, affine, false, y->rank, y->dim, 1));
    TRY(dnnl_post_ops_create(&ops));
    dnnl_status_t status = dnn_post_binary(ops, dnnl_binary_add, shift_md);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(affine->impls.attr, ops);
    dnnl_post_ops_destroy(ops);
    return status == dnnl_success ? dnn_binary(&affine->impls, dnnl_binary_mul, t, scale_md, t) : status;
}

dnnl_status_t dnn_lower_groupnorm(lowering *l)
{
    simple s;
    TRY(begin(l, &s));
    bind_norm(l, s.st, l->p->groupnorm.group);
    unsigned flags = dnnl_use_scale | dnnl_use_shift;
    s.st->impls.training |= l->p->groupnorm.training;
    dnnl_status_t status = dnn_groupnorm(&s.st->impls, s.x, l->p->groupnorm.group, dnn_epsilon(l), flags);
    return status == dnnl_unimplemented && l->layout == PLAIN && !l->p->groupnorm.training ? groupnorm_in_two(l)
                                                                                           : status;
}

dnnl_status_t dnn_lower_softmax(lowering *l)
{
    simple s;
    TRY(begin(l, &s));
    dnnl_alg_kind_t alg = l->p->kind == BZ_PROBLEM_SOFTMAX ? dnnl_softmax_accurate : dnnl_softmax_log;
    return dnn_softmax(&s.st->impls, alg, s.x, s.y, (int)l->p->softmax.axis);
}

dnnl_status_t dnn_lower_lrn(lowering *l)
{
    simple s;
    TRY(begin(l, &s));
    return dnn_lrn(&s.st->impls, s.x, l->p->lrn.size, l->p->lrn.alpha, l->p->lrn.beta, l->p->lrn.bias);
}

dnnl_status_t dnn_lower_activation(lowering *l)
{
    function f = dnn_function_of(l->p->activation.fn, l->p->activation.alpha, l->p->activation.beta);
    simple s;
    if (f.n == 0) {
        l->why = "oneDNN has no such function";
        return dnnl_unimplemented;
    }
    TRY(begin(l, &s));
    dnnl_status_t status = dnn_eltwise(&s.st->impls, f.step[0].alg, s.x, f.step[0].alpha, f.step[0].beta);
    if (f.n == 2 && status == dnnl_success) { /* the second works in place */
        alternative *a = l->s->alternatives[l->s->n_alternatives - 1];
        stage *st = &a->stages[a->n_stages++];
        dnn_bind_whole(l, st, DNNL_ARG_SRC, dnn_result(l));
        dnn_bind_whole(l, st, DNNL_ARG_DST, dnn_result(l));
        TRY(dnnl_primitive_attr_clone(&st->impls.attr, s.st->impls.attr));
        status = dnn_eltwise(&st->impls, f.step[1].alg, s.y, f.step[1].alpha, f.step[1].beta);
    }
    return status;
}

dnnl_status_t dnn_lower_prelu(lowering *l)
{
    int64_t dims[DNN_MAX_RANK];
    dnn_md slope;
    simple s;
    TRY(begin(l, &s));
    for (int i = 0; i < s.rank; i++)
        dims[i] = i == 1 ? s.y_dims[1] : 1;
    TRY(dnn_fixed(l, 1, s.rank, dims, NULL, &slope));
    dnn_bind(s.st, DNNL_ARG_WEIGHTS, 1, s.rank, dims, NULL);
    return dnn_prelu(&s.st->impls, s.x, slope);
}

dnnl_status_t dnn_lower_binary(lowering *l)
{
    dnn_md b;
    simple s;
    TRY(begin(l, &s));
    const bz_operand *o = &l->s->job->operand[1];
    bool whole = bz_extent_count(l->p->binary.b) == l->s->job->operand[dnn_result(l)].count;
    TRY(whole ? dnn_data(l, 1, o->rank, o->dim, false, &b) : dnn_fixed(l, 1, o->rank, o->dim, NULL, &b));
    dnn_bind_whole(l, s.st, DNNL_ARG_SRC_1, 1);
    return dnn_binary(&s.st->impls, dnn_binary_of(l->p->binary.fn), s.x, b, s.y);
}

dnnl_status_t dnn_lower_reduce(lowering *l)
{
    static const struct {
        dnnl_alg_kind_t alg;
        float power;
    } REDUCTIONS[BZ_FN_N] = {
        [BZ_FN_SUM] = {dnnl_reduction_sum, 0},
        [BZ_FN_MEAN] = {dnnl_reduction_mean, 0},
        [BZ_FN_MAX] = {dnnl_reduction_max, 0},
        [BZ_FN_MIN] = {dnnl_reduction_min, 0},
        [BZ_FN_PROD] = {dnnl_reduction_mul, 0},
        [BZ_FN_L1] = {dnnl_reduction_norm_lp_power_p_sum, 1},
        [BZ_FN_SUMSQUARE] = {dnnl_reduction_norm_lp_power_p_sum, 2},
        [BZ_FN_L2] = {dnnl_reduction_norm_lp_sum, 2},
    };
    bz_fn fn = l->p->reduce.fn;
    simple s;
    TRY(begin(l, &s));
    return dnn_reduction(&s.st->impls, REDUCTIONS[fn].alg, s.x, s.y, REDUCTIONS[fn].power);
}

/* oneDNN samples at half pixels. Copying each pixel a whole number of times is the same in any convention. */
dnnl_status_t dnn_lower_resample(lowering *l)
{
    const bz_problem *p = l->p;
    bool nearest = p->resample.mode == BZ_RESAMPLE_NEAREST, whole = true;
    for (int i = 2; p->resample.x[i]; i++)
        whole &= p->resample.y[i] % p->resample.x[i] == 0;
    simple s;
    if (p->resample.coord != BZ_COORD_HALF_PIXEL && !(nearest && whole && p->resample.coord == BZ_COORD_ASYMMETRIC)) {
        l->why = "oneDNN samples at half pixels only";
        return dnnl_unimplemented;
    }
    TRY(begin(l, &s));
    return dnn_resampling(&s.st->impls, nearest ? dnnl_resampling_nearest : dnnl_resampling_linear, s.x, s.y);
}

dnnl_status_t dnn_lower_concat(lowering *l)
{
    dnn_md x[BZ_PROBLEM_PARTS];
    int n = dnn_result(l);
    simple s;
    TRY(begin(l, &s));
    s.st->n_args = 0;
    for (int i = 0; i < n; i++) {
        const bz_operand *o = &l->s->job->operand[i];
        TRY(dnn_data(l, i, o->rank, o->dim, false, &x[i]));
        dnn_bind_whole(l, s.st, DNNL_ARG_MULTIPLE_SRC + i, i);
    }
    dnn_bind_whole(l, s.st, DNNL_ARG_DST, dnn_result(l));
    return dnn_concat(&s.st->impls, s.y, n, (int)l->p->concat.axis, x);
}
