/* Lowering: a problem of each kind becomes primitives. A row in KINDS says in which layouts a kind comes,
 * and which function describes it. */
#include "runtime/onednn/onednn.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        dnnl_status_t status_ = (call);                                                                                \
        if (status_ != dnnl_success)                                                                                   \
            return status_;                                                                                            \
    } while (0)

const char *bz_onednn_impl_name(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}

typedef enum { PLAIN, PACKED, NHWC, ANY } layout;

typedef struct lowering {
    session *s;
    const bz_problem *p;
    layout layout;
    dnnl_fpmath_mode_t math;
    const char *why; /* a reason of our own; NULL: the library's status */
} lowering;

/* ---- arguments ------------------------------------------------------------------------------ */

static int find(const lowering *l, bz_role role)
{
    for (int i = 0; i < l->s->job->n_operands; i++)
        if (l->s->job->operand[i].role == role)
            return i;
    return -1;
}

static int result(const lowering *l)
{
    return l->s->job->n_operands - 1;
}

static void row_major(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = 1;
    for (int i = rank; i--; step *= dims[i])
        strides[i] = step;
}

/* Binds an operand, seen in these dimensions; strides NULL: row-major. */
static void bind(stage *st, int arg, int operand, int rank, const int64_t *dims, const int64_t *strides)
{
    argument *a = &st->args[st->n_args++];
    *a = (argument){.arg = arg, .operand = operand, .rank = rank};
    memcpy(a->dims, dims, (size_t)rank * sizeof *dims);
    if (strides)
        memcpy(a->strides, strides, (size_t)rank * sizeof *strides);
    else
        row_major(rank, dims, a->strides);
}

/* The same in the operand's own dimensions. */
static void bind_whole(const lowering *l, stage *st, int arg, int operand)
{
    const bz_operand *o = &l->s->job->operand[operand];
    bind(st, arg, operand, o->rank, o->dim, NULL);
}

static void channels_last(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = dims[1];
    strides[1] = 1;
    for (int i = rank - 1; i >= 2; step *= dims[i--])
        strides[i] = step;
    strides[0] = step;
}

static dnnl_format_tag_t blocked(int rank)
{
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    bool wide = (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
    switch (rank) {
    case 3:
        return wide ? dnnl_nCw16c : dnnl_nCw8c;
    case 4:
        return wide ? dnnl_nChw16c : dnnl_nChw8c;
    default:
        return wide ? dnnl_nCdhw16c : dnnl_nCdhw8c;
    }
}

/* Data in the layout asked for. `free_choice`: the primitive accepts "any"; others take blocks of
 * channels, which is what convolutions around them choose. */
static dnnl_status_t data(lowering *l, int operand, int rank, const int64_t *dims, bool free_choice, dnn_md *md)
{
    dnnl_data_type_t type;
    int64_t strides[DNN_MAX_RANK];
    if (!dnn_dtype(l->s->job->operand[operand].dtype, &type)) {
        l->why = "oneDNN has no such data type";
        return dnnl_unimplemented;
    }
    if (l->layout == NHWC && rank > 2) {
        channels_last(rank, dims, strides);
        return dnn_md_strided(&l->s->heap, rank, dims, type, strides, md);
    }
    if (l->layout == ANY && free_choice)
        return dnn_md_tagged(&l->s->heap, rank, dims, type, dnnl_format_tag_any, md);
    if (l->layout == ANY && rank >= 3 && rank <= 5)
        return dnn_md_tagged(&l->s->heap, rank, dims, type, blocked(rank), md);
    return dnn_md_strided(&l->s->heap, rank, dims, type, NULL, md);
}

/* An operand that stays as it is whatever the layout. */
static dnnl_status_t fixed(lowering *l, int operand, int rank, const int64_t *dims, const int64_t *strides, dnn_md *md)
{
    dnnl_data_type_t type;
    if (!dnn_dtype(l->s->job->operand[operand].dtype, &type)) {
        l->why = "oneDNN has no such data type";
        return dnnl_unimplemented;
    }
    return dnn_md_strided(&l->s->heap, rank, dims, type, strides, md);
}

/* Weights: as the model has them where all is plain, else packed as the implementation likes. */
static dnnl_status_t weights(lowering *l, int operand, bool constant, int rank, const int64_t *dims,
                             const int64_t *strides, dnn_md *md)
{
    dnnl_data_type_t type;
    if (!dnn_dtype(l->s->job->operand[operand].dtype, &type)) {
        l->why = "oneDNN has no such data type";
        return dnnl_unimplemented;
    }
    if (l->layout == ANY || (constant && l->layout != PLAIN))
        return dnn_md_tagged(&l->s->heap, rank, dims, type, dnnl_format_tag_any, md);
    return dnn_md_strided(&l->s->heap, rank, dims, type, strides, md);
}

/* ---- functions ------------------------------------------------------------------------------ */

/* What a function is in oneDNN: one algorithm or two in a row. */
typedef struct function {
    int n;
    struct {
        dnnl_alg_kind_t alg;
        float alpha, beta;
    } step[2];
} function;

static function function_of(bz_fn fn, float alpha, float beta)
{
#define ONE(alg, a, b) ((function){1, {{alg, a, b}}})
    switch (fn) {
    case BZ_FN_RELU:
        return ONE(dnnl_eltwise_relu, 0, 0);
    case BZ_FN_LEAKY:
        return ONE(dnnl_eltwise_relu, alpha, 0);
    case BZ_FN_ELU:
        return ONE(dnnl_eltwise_elu, alpha, 0);
    case BZ_FN_CLIP:
        return ONE(dnnl_eltwise_clip, alpha, beta);
    case BZ_FN_SIGMOID:
        return ONE(dnnl_eltwise_logistic, 0, 0);
    case BZ_FN_TANH:
        return ONE(dnnl_eltwise_tanh, 0, 0);
    case BZ_FN_GELU_ERF:
        return ONE(dnnl_eltwise_gelu_erf, 0, 0);
    case BZ_FN_GELU_TANH:
        return ONE(dnnl_eltwise_gelu_tanh, 0, 0);
    case BZ_FN_SWISH:
        return ONE(dnnl_eltwise_swish, alpha, 0);
    case BZ_FN_MISH:
        return ONE(dnnl_eltwise_mish, 0, 0);
    case BZ_FN_EXP:
        return ONE(dnnl_eltwise_exp, 0, 0);
    case BZ_FN_LOG:
        return ONE(dnnl_eltwise_log, 0, 0);
    case BZ_FN_SQRT:
        return ONE(dnnl_eltwise_sqrt, 0, 0);
    case BZ_FN_ABS:
        return ONE(dnnl_eltwise_abs, 0, 0);
    case BZ_FN_SQUARE:
        return ONE(dnnl_eltwise_square, 0, 0);
    case BZ_FN_ROUND:
        return ONE(dnnl_eltwise_round, 0, 0);
    case BZ_FN_LINEAR:
        return ONE(dnnl_eltwise_linear, alpha, beta);
    case BZ_FN_POW:
        return ONE(dnnl_eltwise_pow, alpha, beta);
#if DNNL_VERSION_MAJOR >= 3
    case BZ_FN_SOFTPLUS:
        return ONE(dnnl_eltwise_soft_relu, 1, 0);
    case BZ_FN_HARDSWISH:
        return ONE(dnnl_eltwise_hardswish, 1.0f / 6, 0.5f);
    case BZ_FN_HARDSIGMOID:
        return ONE(dnnl_eltwise_hardsigmoid, alpha, beta);
#else
    case BZ_FN_SOFTPLUS:
        return ONE(dnnl_eltwise_soft_relu, 0, 0);
    case BZ_FN_HARDSWISH:
        return ONE(dnnl_eltwise_hardswish, 0, 0);
    case BZ_FN_HARDSIGMOID: /* not in version 2: a line, clipped */
        return (function){2, {{dnnl_eltwise_linear, alpha, beta}, {dnnl_eltwise_clip, 0, 1}}};
#endif
    default:
        return (function){0};
    }
#undef ONE
}

static dnnl_alg_kind_t binary_of(bz_fn fn)
{
    switch (fn) {
    case BZ_FN_ADD:
        return dnnl_binary_add;
    case BZ_FN_SUB:
        return dnnl_binary_sub;
    case BZ_FN_MUL:
        return dnnl_binary_mul;
    case BZ_FN_DIV:
        return dnnl_binary_div;
    case BZ_FN_MAX:
        return dnnl_binary_max;
    case BZ_FN_MIN:
        return dnnl_binary_min;
    default:
        return dnnl_alg_kind_undef;
    }
}

/* ---- attributes ----------------------------------------------------------------------------- */

/* The post-operations of the problem, bias left out. With `sum` the first add goes to the memory of the
 * result. The other tensor of an operation is seen in the dimensions of the result. */
static dnnl_status_t add_posts(lowering *l, stage *st, dnnl_post_ops_t ops, bool sum, int rank, const int64_t *y)
{
    for (int i = 0, at = 0; l->p->post[i].fn; i++) {
        const bz_post *post = &l->p->post[i];
        if (post->fn == BZ_FN_BIAS)
            continue;
        if (!bz_fn_is_binary(post->fn)) {
            function f = function_of(post->fn, post->alpha, post->beta);
            if (!f.n) {
                l->why = "oneDNN has no such function";
                return dnnl_unimplemented;
            }
            for (int k = 0; k < f.n; k++, at++)
                TRY(dnn_post_eltwise(ops, f.step[k].alg, f.step[k].alpha, f.step[k].beta));
            continue;
        }
        int other = 0;
        while (l->s->job->operand[other].role != BZ_ROLE_OTHER || l->s->job->operand[other].post != i)
            other++;
        if (sum && post->fn == BZ_FN_ADD) {
            sum = false;
            TRY(dnn_post_sum(ops));
        } else {
            dnn_md md;
            TRY(data(l, other, rank, y, true, &md));
            TRY(dnn_post_binary(ops, binary_of(post->fn), md));
            bind(st, DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1, other, rank, y, NULL);
        }
        at++;
    }
    return dnnl_success;
}

/* Attributes for the stage; whoever makes them destroys them. */
static dnnl_status_t attributes(lowering *l, stage *st, bool sum, int rank, const int64_t *y, double scale,
                                dnnl_primitive_attr_t *attr)
{
    dnnl_post_ops_t ops = NULL;
    int scale_arg = 0;
    TRY(dnnl_primitive_attr_create(attr));
    dnnl_status_t status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success)
        status = add_posts(l, st, ops, sum, rank, y);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(*attr, ops);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_fpmath_mode(*attr, l->math);
    if (status == dnnl_success)
        status = dnn_attr_scale(*attr, (float)scale, &scale_arg);
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (scale_arg)
        bind(st, scale_arg, SCALE, 1, (int64_t[]){1}, NULL);
    if (status != dnnl_success) {
        dnnl_primitive_attr_destroy(*attr);
        *attr = NULL;
    }
    return status;
}

/* An alternative, empty; it belongs to the session. */
static alternative *add_alternative(lowering *l, const char *prefix, const char *suffix, int n_stages)
{
    session *s = l->s;
    alternative *a = bz_alloc(1, sizeof *a);
    memset(a, 0, sizeof *a);
    a->prefix = prefix;
    a->suffix = suffix;
    a->n_stages = n_stages;
    s->alternatives = bz_realloc(s->alternatives, (size_t)s->n_alternatives + 1, sizeof(alternative *));
    return s->alternatives[s->n_alternatives++] = a;
}

static bool has_residual(const lowering *l)
{
    for (int i = 0; l->p->post[i].fn; i++)
        if (l->p->post[i].fn == BZ_FN_ADD)
            return true;
    return false;
}

/* ---- products ------------------------------------------------------------------------------- */

/* Weights as oneDNN wants to see them: with the group as a dimension of its own, outputs first. */
static int conv_weights(const bz_problem *p, int64_t *dims, int64_t *strides)
{
    bool transposed = p->kind == BZ_PROBLEM_DECONV;
    const int64_t *w = p->conv.w, g = p->conv.group;
    int rank = bz_extent_rank(w), at = g > 1;
    int64_t window = bz_extent_count(w + 2), out = transposed ? w[1] : w[0] / g, in = transposed ? w[0] / g : w[1];
    dims[0] = g;
    strides[0] = out * in * window;
    dims[at] = out;
    strides[at] = transposed ? window : in * window;
    dims[at + 1] = in;
    strides[at + 1] = transposed ? out * window : window;
    row_major(rank - 2, w + 2, strides + at + 2);
    memcpy(dims + at + 2, w + 2, (size_t)(rank - 2) * sizeof *dims);
    return rank + at;
}

static dnnl_status_t conv(lowering *l, bool sum)
{
    const bz_problem *p = l->p;
    const bz_operand *y = &l->s->job->operand[result(l)];
    int64_t dims[DNN_MAX_RANK], strides[DNN_MAX_RANK], end[BZ_PROBLEM_SPATIAL];
    int rank = y->rank, n = rank - 2, w_rank = conv_weights(p, dims, strides), bias = find(l, BZ_ROLE_BIAS);
    dnn_md x_md, w_md, b_md = NULL, y_md;
    dnnl_primitive_attr_t attr;
    alternative *a = add_alternative(l, "", sum ? " +sum" : "", 1);
    stage *st = &a->stages[0];
    a->in_place = sum;
    /* the end pad of a deconvolution is less by what is added to its output */
    for (int i = 0; i < n; i++)
        end[i] = p->conv.pad[n + i] - (p->kind == BZ_PROBLEM_DECONV ? p->conv.outpad[i] : 0);
    TRY(data(l, 0, rank, p->conv.x, true, &x_md));
    TRY(weights(l, 1, true, w_rank, dims, strides, &w_md));
    if (bias >= 0)
        TRY(fixed(l, bias, 1, &y->dim[1], NULL, &b_md));
    TRY(data(l, result(l), rank, y->dim, true, &y_md));
    bind_whole(l, st, DNNL_ARG_SRC, 0);
    bind(st, DNNL_ARG_WEIGHTS, 1, w_rank, dims, strides);
    if (bias >= 0)
        bind_whole(l, st, DNNL_ARG_BIAS, bias);
    bind_whole(l, st, DNNL_ARG_DST, result(l));
    TRY(attributes(l, st, sum, rank, y->dim, bz_problem_scale(p), &attr));
    bool transposed = p->kind == BZ_PROBLEM_DECONV;
    const dnnl_alg_kind_t direct[] = {dnnl_convolution_direct, dnnl_convolution_winograd};
    const dnnl_alg_kind_t inverse[] = {dnnl_deconvolution_direct, dnnl_deconvolution_winograd};
    dnnl_status_t first = dnnl_success;
    for (int i = 0; i < 2; i++) {
        dnn_impls more = {0};
        dnnl_status_t status =
            dnn_convolution(&more, l->s->engine, transposed, transposed ? inverse[i] : direct[i], x_md, w_md, b_md,
                            y_md, p->conv.stride, p->conv.dilation, p->conv.pad, end, attr);
        first = i ? first : status;
        for (int k = 0; k < more.n; k++)
            if (st->impls.n < DNN_MAX_IMPLS)
                st->impls.pd[st->impls.n++] = more.pd[k];
            else
                dnnl_primitive_desc_destroy(more.pd[k]);
    }
    dnn_impls heuristic = {0};
    if (!transposed && dnn_convolution(&heuristic, l->s->engine, false, dnnl_convolution_auto, x_md, w_md, b_md, y_md,
                                       p->conv.stride, p->conv.dilation, p->conv.pad, end, attr) == dnnl_success)
        snprintf(a->favourite, sizeof a->favourite, "%s", bz_onednn_impl_name(heuristic.pd[0]));
    dnn_impls_free(&heuristic);
    dnnl_primitive_attr_destroy(attr);
    return st->impls.n ? dnnl_success : first;
}

static dnnl_status_t lower_conv(lowering *l)
{
    dnnl_status_t status = conv(l, false);
    if (!has_residual(l))
        return status;
    dnnl_status_t other = conv(l, true);
    return status == dnnl_success ? status : other;
}

/* A product of matrices. Where the second is constant and all is two-dimensional, the library has two
 * primitives for it, matmul and inner product, with different implementations. */
typedef struct product {
    int rank, a, b; /* operands */
    int64_t a_dims[DNN_MAX_RANK], a_strides[DNN_MAX_RANK], b_dims[DNN_MAX_RANK], b_strides[DNN_MAX_RANK];
    int64_t y_dims[DNN_MAX_RANK];
    bool constant;
} product;

static dnnl_status_t product_by(lowering *l, const product *m, bool inner, bool sum)
{
    int bias = find(l, BZ_ROLE_BIAS), r = m->rank;
    int64_t b_dims[DNN_MAX_RANK], b_strides[DNN_MAX_RANK], bias_dims[DNN_MAX_RANK];
    memcpy(b_dims, m->b_dims, sizeof b_dims);
    memcpy(b_strides, m->b_strides, sizeof b_strides);
    for (int i = 0; i < 2 && inner; i++) { /* inner product wants outputs first */
        b_dims[i] = m->b_dims[1 - i];
        b_strides[i] = m->b_strides[1 - i];
    }
    for (int i = 0; i < r; i++)
        bias_dims[i] = i == r - 1 ? m->y_dims[i] : 1;
    dnn_md a_md, b_md, bias_md = NULL, y_md;
    dnnl_primitive_attr_t attr;
    const char *suffix = sum ? " +sum" : "";
    alternative *alt = add_alternative(l, inner ? "inner_product " : m->constant ? "matmul " : "", suffix, 1);
    stage *st = &alt->stages[0];
    alt->in_place = sum;
    if (l->layout == ANY)
        TRY(data(l, m->a, r, m->a_dims, true, &a_md));
    else
        TRY(fixed(l, m->a, r, m->a_dims, m->a_strides, &a_md));
    TRY(weights(l, m->b, m->constant, r, b_dims, b_strides, &b_md));
    if (bias >= 0 && inner)
        TRY(fixed(l, bias, 1, &m->y_dims[r - 1], NULL, &bias_md));
    else if (bias >= 0)
        TRY(fixed(l, bias, r, bias_dims, NULL, &bias_md));
    TRY(data(l, result(l), r, m->y_dims, true, &y_md));
    bind(st, DNNL_ARG_SRC, m->a, r, m->a_dims, m->a_strides);
    bind(st, DNNL_ARG_WEIGHTS, m->b, r, b_dims, b_strides);
    if (bias >= 0)
        bind(st, DNNL_ARG_BIAS, bias, inner ? 1 : r, inner ? &m->y_dims[r - 1] : bias_dims, NULL);
    bind(st, DNNL_ARG_DST, result(l), r, m->y_dims, NULL);
    TRY(attributes(l, st, sum, r, m->y_dims, bz_problem_scale(l->p), &attr));
    dnnl_status_t status = inner ? dnn_inner_product(&st->impls, l->s->engine, a_md, b_md, bias_md, y_md, attr)
                                 : dnn_matmul(&st->impls, l->s->engine, a_md, b_md, bias_md, y_md, attr);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

static dnnl_status_t lower_product(lowering *l, const product *m)
{
    dnnl_status_t status = product_by(l, m, false, false), other = status;
    bool inner = m->rank == 2 && m->constant && m->a_strides[1] == 1;
    if (inner)
        other = product_by(l, m, true, false);
    status = status == dnnl_success ? status : other;
    if (has_residual(l)) {
        other = product_by(l, m, false, true);
        status = status == dnnl_success ? status : other;
        if (inner)
            product_by(l, m, true, true);
    }
    return status;
}

/* A batch of one is no batch: matmul is faster without that dimension. */
static dnnl_status_t lower_gemm(lowering *l)
{
    int64_t b = l->p->gemm.batch, m = l->p->gemm.m, n = l->p->gemm.n, k = l->p->gemm.k;
    bool ta = l->p->gemm.transa, tb = l->p->gemm.transb;
    int skip = b == 1;
    product all = {
        .rank = 3,
        .a = 0,
        .b = 1,
        .constant = true,
        .a_dims = {b, m, k},
        .a_strides = {m * k, ta ? 1 : k, ta ? m : 1},
        .b_dims = {b, k, n},
        .b_strides = {k * n, tb ? 1 : n, tb ? k : 1},
        .y_dims = {b, m, n},
    };
    product used = all;
    used.rank = 3 - skip;
    for (int i = 0; i < used.rank; i++) {
        used.a_dims[i] = all.a_dims[i + skip];
        used.a_strides[i] = all.a_strides[i + skip];
        used.b_dims[i] = all.b_dims[i + skip];
        used.b_strides[i] = all.b_strides[i + skip];
        used.y_dims[i] = all.y_dims[i + skip];
    }
    return lower_product(l, &used);
}

/* y = A x as a product of a row and a matrix: yᵀ = xᵀ Aᵀ. */
static dnnl_status_t lower_gemv(lowering *l)
{
    int64_t m = l->p->gemv.m, k = l->p->gemv.k;
    bool t = l->p->gemv.trans;
    return lower_product(l, &(product){
                                .rank = 2,
                                .a = 0,
                                .b = 1,
                                .constant = true,
                                .a_dims = {1, k},
                                .a_strides = {k, 1},
                                .b_dims = {k, m},
                                .b_strides = {t ? m : 1, t ? 1 : k},
                                .y_dims = {1, m},
                            });
}

static dnnl_status_t lower_matmul(lowering *l)
{
    const bz_operand *y = &l->s->job->operand[result(l)];
    product m = {.rank = y->rank, .a = 0, .b = 1, .constant = l->p->matmul.constant};
    memcpy(m.a_dims, l->p->matmul.a, (size_t)y->rank * sizeof *m.a_dims);
    memcpy(m.b_dims, l->p->matmul.b, (size_t)y->rank * sizeof *m.b_dims);
    memcpy(m.y_dims, y->dim, (size_t)y->rank * sizeof *m.y_dims);
    row_major(y->rank, m.a_dims, m.a_strides);
    row_major(y->rank, m.b_dims, m.b_strides);
    return lower_product(l, &m);
}

/* ---- windows, norms, functions -------------------------------------------------------------- */

/* The usual beginning: one alternative of one stage, x and y in the layout, attributes. */
typedef struct simple {
    stage *st;
    dnn_md x, y;
    int rank;
    const int64_t *x_dims, *y_dims;
    dnnl_primitive_attr_t attr;
} simple;

static dnnl_status_t begin(lowering *l, simple *s)
{
    const bz_operand *x = &l->s->job->operand[0], *y = &l->s->job->operand[result(l)];
    s->st = &add_alternative(l, "", "", 1)->stages[0];
    s->rank = y->rank;
    s->x_dims = x->dim;
    s->y_dims = y->dim;
    TRY(data(l, 0, x->rank, x->dim, false, &s->x));
    TRY(data(l, result(l), y->rank, y->dim, false, &s->y));
    bind_whole(l, s->st, DNNL_ARG_SRC, 0);
    bind_whole(l, s->st, DNNL_ARG_DST, result(l));
    return attributes(l, s->st, false, y->rank, y->dim, bz_problem_scale(l->p), &s->attr);
}

static dnnl_status_t end(simple *s, dnnl_status_t status)
{
    dnnl_primitive_attr_destroy(s->attr);
    return status;
}

static dnnl_status_t lower_pool(lowering *l)
{
    static const dnnl_alg_kind_t algs[] = {dnnl_pooling_max, dnnl_pooling_avg_exclude_padding,
                                           dnnl_pooling_avg_include_padding};
    const bz_problem *p = l->p;
    simple s;
    TRY(begin(l, &s));
    return end(&s, dnn_pooling(&s.st->impls, l->s->engine, algs[p->pool.mode], s.x, s.y, p->pool.stride, p->pool.kernel,
                               p->pool.dilation, p->pool.pad, p->pool.pad + s.rank - 2, s.attr));
}

static void bind_norm(const lowering *l, stage *st)
{
    static const struct {
        bz_role role;
        int arg;
    } PARAMETERS[] = {{BZ_ROLE_MEAN, DNNL_ARG_MEAN},
                      {BZ_ROLE_VARIANCE, DNNL_ARG_VARIANCE},
                      {BZ_ROLE_SCALE, DNNL_ARG_SCALE},
                      {BZ_ROLE_SHIFT, DNNL_ARG_SHIFT}};
    for (int i = 0; i < 4; i++)
        if (find(l, PARAMETERS[i].role) >= 0)
            bind_whole(l, st, PARAMETERS[i].arg, find(l, PARAMETERS[i].role));
}

#define EPSILON 1e-5f

static dnnl_status_t lower_batchnorm(lowering *l)
{
    simple s;
    TRY(begin(l, &s));
    bind_norm(l, s.st);
    unsigned flags = dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift;
    return end(&s, dnn_batchnorm(&s.st->impls, l->s->engine, s.x, EPSILON, flags, s.attr));
}

/* The primitive normalizes the last dimension: all before the axis become one, all from it on another. */
static dnnl_status_t lower_layernorm(lowering *l)
{
    const bz_operand *y = &l->s->job->operand[result(l)];
    int64_t n = bz_extent_count(l->p->layernorm.x + l->p->layernorm.axis), dims[2] = {y->count / n, n};
    stage *st = &add_alternative(l, "", "", 1)->stages[0];
    dnn_md x;
    dnnl_primitive_attr_t attr;
    TRY(fixed(l, 0, 2, dims, NULL, &x));
    bind(st, DNNL_ARG_SRC, 0, 2, dims, NULL);
    bind(st, DNNL_ARG_DST, result(l), 2, dims, NULL);
    bind_norm(l, st);
    TRY(attributes(l, st, false, 2, dims, 1, &attr));
    dnnl_status_t status = dnn_layernorm(&st->impls, l->s->engine, x, EPSILON, dnnl_use_scale | dnnl_use_shift, attr);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

/* Without a primitive of its own: a batch normalization in which each group is a channel and takes its
 * own statistics, then scale and shift by channel. */
static dnnl_status_t groupnorm_in_two(lowering *l)
{
    const bz_operand *y = &l->s->job->operand[result(l)];
    int64_t groups = l->p->groupnorm.x[0] * l->p->groupnorm.group, seen[3] = {1, groups, y->count / groups};
    int64_t channel[DNN_MAX_RANK];
    int scale = find(l, BZ_ROLE_SCALE), shift = find(l, BZ_ROLE_SHIFT);
    alternative *a = add_alternative(l, "", "", 2);
    stage *norm = &a->stages[0], *affine = &a->stages[1];
    dnn_md x, t, scale_md, shift_md;
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    for (int i = 0; i < y->rank; i++)
        channel[i] = i == 1 ? y->dim[1] : 1;
    TRY(fixed(l, 0, 3, seen, NULL, &x));
    bind(norm, DNNL_ARG_SRC, 0, 3, seen, NULL);
    bind(norm, DNNL_ARG_DST, TEMPORARY, 3, seen, NULL);
    TRY(attributes(l, norm, false, 3, seen, 1, &attr));
    dnnl_status_t status = dnn_batchnorm(&norm->impls, l->s->engine, x, EPSILON, 0, attr);
    dnnl_primitive_attr_destroy(attr);
    TRY(status);
    TRY(fixed(l, result(l), y->rank, y->dim, NULL, &t));
    TRY(fixed(l, scale, y->rank, channel, NULL, &scale_md));
    TRY(fixed(l, shift, y->rank, channel, NULL, &shift_md));
    bind(affine, DNNL_ARG_SRC_0, TEMPORARY, y->rank, y->dim, NULL);
    bind(affine, DNNL_ARG_SRC_1, scale, y->rank, channel, NULL);
    bind(affine, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, shift, y->rank, channel, NULL);
    bind_whole(l, affine, DNNL_ARG_DST, result(l));
    TRY(attributes(l, affine, false, y->rank, y->dim, 1, &attr));
    status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success) {
        status = dnn_post_binary(ops, dnnl_binary_add, shift_md);
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(attr, ops);
        dnnl_post_ops_destroy(ops);
    }
    if (status == dnnl_success)
        status = dnn_binary(&affine->impls, l->s->engine, dnnl_binary_mul, t, scale_md, t, attr);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

static dnnl_status_t lower_groupnorm(lowering *l)
{
    simple s;
    TRY(begin(l, &s));
    bind_norm(l, s.st);
    unsigned flags = dnnl_use_scale | dnnl_use_shift;
    dnnl_status_t status =
        end(&s, dnn_groupnorm(&s.st->impls, l->s->engine, s.x, l->p->groupnorm.group, EPSILON, flags, s.attr));
    return status == dnnl_unimplemented && l->layout == PLAIN ? groupnorm_in_two(l) : status;
}

static dnnl_status_t lower_softmax(lowering *l)
{
    simple s;
    TRY(begin(l, &s));
    dnnl_alg_kind_t alg = l->p->kind == BZ_PROBLEM_SOFTMAX ? dnnl_softmax_accurate : dnnl_softmax_log;
    return end(&s, dnn_softmax(&s.st->impls, l->s->engine, alg, s.x, s.y, (int)l->p->softmax.axis, s.attr));
}

static dnnl_status_t lower_lrn(lowering *l)
{
    simple s;
    TRY(begin(l, &s));
    return end(&s, dnn_lrn(&s.st->impls, l->s->engine, s.x, l->p->lrn.size, l->p->lrn.alpha, l->p->lrn.beta,
                           l->p->lrn.bias, s.attr));
}

static dnnl_status_t lower_activation(lowering *l)
{
    function f = function_of(l->p->activation.fn, l->p->activation.alpha, l->p->activation.beta);
    simple s;
    if (f.n == 0) {
        l->why = "oneDNN has no such function";
        return dnnl_unimplemented;
    }
    TRY(begin(l, &s));
    dnnl_status_t status =
        dnn_eltwise(&s.st->impls, l->s->engine, f.step[0].alg, s.x, f.step[0].alpha, f.step[0].beta, s.attr);
    if (f.n == 2 && status == dnnl_success) { /* the second works in place */
        alternative *a = l->s->alternatives[l->s->n_alternatives - 1];
        stage *st = &a->stages[a->n_stages++];
        bind_whole(l, st, DNNL_ARG_SRC, result(l));
        bind_whole(l, st, DNNL_ARG_DST, result(l));
        status = dnn_eltwise(&st->impls, l->s->engine, f.step[1].alg, s.y, f.step[1].alpha, f.step[1].beta, s.attr);
    }
    return end(&s, status);
}

static dnnl_status_t lower_prelu(lowering *l)
{
    int64_t dims[DNN_MAX_RANK];
    dnn_md slope;
    simple s;
    TRY(begin(l, &s));
    for (int i = 0; i < s.rank; i++)
        dims[i] = i == 1 ? s.y_dims[1] : 1;
    dnnl_status_t status = fixed(l, 1, s.rank, dims, NULL, &slope);
    bind(s.st, DNNL_ARG_WEIGHTS, 1, s.rank, dims, NULL);
    if (status == dnnl_success)
        status = dnn_prelu(&s.st->impls, l->s->engine, s.x, slope, s.attr);
    return end(&s, status);
}

static dnnl_status_t lower_binary(lowering *l)
{
    dnn_md b;
    simple s;
    TRY(begin(l, &s));
    const bz_operand *o = &l->s->job->operand[1];
    bool whole = bz_extent_count(l->p->binary.b) == l->s->job->operand[result(l)].count;
    dnnl_status_t status = whole ? data(l, 1, o->rank, o->dim, false, &b) : fixed(l, 1, o->rank, o->dim, NULL, &b);
    bind_whole(l, s.st, DNNL_ARG_SRC_1, 1);
    if (status == dnnl_success)
        status = dnn_binary(&s.st->impls, l->s->engine, binary_of(l->p->binary.fn), s.x, b, s.y, s.attr);
    return end(&s, status);
}

static dnnl_status_t lower_reduce(lowering *l)
{
    dnnl_alg_kind_t alg;
    float power = 0;
    simple s;
    switch (l->p->reduce.fn) {
    case BZ_FN_MEAN:
        alg = dnnl_reduction_mean;
        break;
    case BZ_FN_MAX:
        alg = dnnl_reduction_max;
        break;
    case BZ_FN_MIN:
        alg = dnnl_reduction_min;
        break;
    case BZ_FN_PROD:
        alg = dnnl_reduction_mul;
        break;
    case BZ_FN_L1:
    case BZ_FN_SUMSQUARE:
        alg = dnnl_reduction_norm_lp_power_p_sum;
        power = l->p->reduce.fn == BZ_FN_L1 ? 1 : 2;
        break;
    case BZ_FN_L2:
        alg = dnnl_reduction_norm_lp_sum;
        power = 2;
        break;
    default:
        alg = dnnl_reduction_sum;
    }
    TRY(begin(l, &s));
    return end(&s, dnn_reduction(&s.st->impls, l->s->engine, alg, s.x, s.y, power, s.attr));
}

/* oneDNN samples at half pixels. Copying each pixel a whole number of times is the same in any convention. */
static dnnl_status_t lower_resample(lowering *l)
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
    return end(&s, dnn_resampling(&s.st->impls, l->s->engine,
                                  nearest ? dnnl_resampling_nearest : dnnl_resampling_linear, s.x, s.y, s.attr));
}

/* ---- moving data ---------------------------------------------------------------------------- */

static dnnl_status_t lower_concat(lowering *l)
{
    dnn_md x[BZ_PROBLEM_PARTS];
    int n = result(l);
    simple s;
    TRY(begin(l, &s));
    s.st->n_args = 0;
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < n && status == dnnl_success; i++) {
        const bz_operand *o = &l->s->job->operand[i];
        status = data(l, i, o->rank, o->dim, false, &x[i]);
        bind_whole(l, s.st, DNNL_ARG_MULTIPLE_SRC + i, i);
    }
    bind_whole(l, s.st, DNNL_ARG_DST, result(l));
    if (status == dnnl_success)
        status = dnn_concat(&s.st->impls, l->s->engine, s.y, n, (int)l->p->concat.axis, x, s.attr);
    return end(&s, status);
}

/* A reorder from x as it lies to y as it shall lie, both seen in the dimensions of x. */
static dnnl_status_t reorder(lowering *l, dnn_md x, dnn_md y, const int64_t *y_strides, float scale)
{
    const bz_operand *o = &l->s->job->operand[0];
    stage *st = &l->s->alternatives[l->s->n_alternatives - 1]->stages[0];
    dnnl_primitive_attr_t attr;
    bind_whole(l, st, DNNL_ARG_FROM, 0);
    bind(st, DNNL_ARG_TO, result(l), o->rank, o->dim, y_strides);
    TRY(attributes(l, st, false, o->rank, o->dim, (double)scale, &attr));
    dnnl_status_t status = dnn_reorder(&st->impls, l->s->engine, x, y, attr);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

static dnnl_status_t lower_transpose(lowering *l)
{
    const bz_operand *o = &l->s->job->operand[0], *y = &l->s->job->operand[result(l)];
    int64_t plain[DNN_MAX_RANK], strides[DNN_MAX_RANK];
    dnn_md from, to;
    row_major(y->rank, y->dim, plain);
    for (int i = 0; i < y->rank; i++)
        strides[l->p->transpose.perm[i]] = plain[i];
    add_alternative(l, "", "", 1);
    TRY(fixed(l, 0, o->rank, o->dim, NULL, &from));
    TRY(fixed(l, result(l), o->rank, o->dim, strides, &to));
    return reorder(l, from, to, strides, 1);
}

static dnnl_status_t lower_reorder(lowering *l)
{
    static const layout LAYOUTS[] = {PLAIN, NHWC, ANY};
    const bz_operand *o = &l->s->job->operand[0];
    dnn_md from, to;
    add_alternative(l, "", "", 1);
    l->layout = LAYOUTS[l->p->reorder.from];
    TRY(data(l, 0, o->rank, o->dim, false, &from));
    l->layout = LAYOUTS[l->p->reorder.to];
    TRY(data(l, result(l), o->rank, o->dim, false, &to));
    return reorder(l, from, to, NULL, l->p->reorder.scale);
}

/* ---- recurrent networks --------------------------------------------------------------------- */

static dnnl_status_t lower_rnn(lowering *l)
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
                {BZ_ROLE_Y, DNNL_ARG_DST_LAYER, false}};
    enum { N = sizeof ARGS / sizeof *ARGS };
    const bz_problem *p = l->p;
    dnn_md md[N] = {NULL};
    dnnl_primitive_attr_t attr;
    stage *st = &add_alternative(l, "", "", 1)->stages[0];
    if (bz_dtype_is_int(p->dtype)) {
        l->why = "recurrent networks in integers are not lowered";
        return dnnl_unimplemented;
    }
    for (int i = 0; i < N; i++) {
        int operand = find(l, ARGS[i].role), add = ARGS[i].layer;
        if (operand < 0)
            continue;
        const bz_operand *o = &l->s->job->operand[operand];
        int64_t dims[DNN_MAX_RANK] = {1};
        memcpy(dims + add, o->dim, (size_t)o->rank * sizeof *dims);
        bool matrix = ARGS[i].role == BZ_ROLE_W || ARGS[i].role == BZ_ROLE_R;
        if (matrix)
            TRY(weights(l, operand, true, o->rank + add, dims, NULL, &md[i]));
        else
            TRY(fixed(l, operand, o->rank + add, dims, NULL, &md[i]));
        bind(st, ARGS[i].arg, operand, o->rank + add, dims, NULL);
    }
    dnn_cell cell = p->kind == BZ_PROBLEM_LSTM  ? DNN_LSTM
                    : p->kind == BZ_PROBLEM_RNN ? DNN_RNN
                    : p->rnn.lbr                ? DNN_LBR_GRU
                                                : DNN_GRU;
    dnnl_alg_kind_t activation = p->rnn.fn == BZ_FN_RELU ? dnnl_eltwise_relu : dnnl_eltwise_tanh;
    TRY(attributes(l, st, false, 0, NULL, 1, &attr));
    dnnl_status_t status = dnn_rnn(&st->impls, l->s->engine, cell, activation, DIRECTIONS[p->rnn.dir], md[0], md[1],
                                   md[2], md[3], md[4], md[5], md[6], attr);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------ */

enum { IN_PLAIN = 1, IN_PACKED = 2, IN_NHWC = 4, IN_ANY = 8, SPACE = 16 /* nhwc and any need channels and space */ };

static const struct {
    dnnl_status_t (*lower)(lowering *l);
    int layouts;
} KINDS[BZ_PROBLEM_N_KINDS] = {
    [BZ_PROBLEM_CONV] = {lower_conv, IN_PLAIN | IN_PACKED | IN_NHWC | IN_ANY},
    [BZ_PROBLEM_DECONV] = {lower_conv, IN_PLAIN | IN_PACKED | IN_NHWC | IN_ANY},
    [BZ_PROBLEM_GEMM] = {lower_gemm, IN_PLAIN | IN_PACKED | IN_ANY},
    [BZ_PROBLEM_MATMUL] = {lower_matmul, IN_PLAIN | IN_PACKED | IN_ANY},
    [BZ_PROBLEM_GEMV] = {lower_gemv, IN_PLAIN | IN_PACKED | IN_ANY},
    [BZ_PROBLEM_POOL] = {lower_pool, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_BATCHNORM] = {lower_batchnorm, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_LAYERNORM] = {lower_layernorm, IN_PLAIN},
    [BZ_PROBLEM_GROUPNORM] = {lower_groupnorm, IN_PLAIN | IN_NHWC | SPACE},
    [BZ_PROBLEM_SOFTMAX] = {lower_softmax, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_LOGSOFTMAX] = {lower_softmax, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_LRN] = {lower_lrn, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_ACTIVATION] = {lower_activation, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_PRELU] = {lower_prelu, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_BINARY] = {lower_binary, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_REDUCE] = {lower_reduce, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_RESAMPLE] = {lower_resample, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_CONCAT] = {lower_concat, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_TRANSPOSE] = {lower_transpose, IN_PLAIN},
    [BZ_PROBLEM_REORDER] = {lower_reorder, IN_PLAIN},
    [BZ_PROBLEM_LSTM] = {lower_rnn, IN_PLAIN | IN_PACKED},
    [BZ_PROBLEM_GRU] = {lower_rnn, IN_PLAIN | IN_PACKED},
    [BZ_PROBLEM_RNN] = {lower_rnn, IN_PLAIN | IN_PACKED},
};

static int parse_layout(const char *name, layout *out)
{
    static const char *const NAMES[] = {"plain", "packed", "nhwc", "any"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, NAMES[i])) {
            *out = (layout)i;
            return 0;
        }
    return -1;
}

/* Whether the layout is one of its own for this problem. */
static const char *refuse_layout(const session *s, layout wanted)
{
    const bz_problem *p = s->job->problem;
    int offered = KINDS[p->kind].layouts, rank = s->job->operand[s->job->n_operands - 1].rank;
    if (!KINDS[p->kind].lower)
        return "oneDNN has no primitive for it";
    if (!(offered & 1 << wanted))
        return "this layout makes no difference to this kind of problem";
    if (offered & SPACE && (wanted == NHWC || wanted == ANY) && (rank < 3 || rank > 5))
        return "this layout needs a batch, channels and space";
    if (p->kind == BZ_PROBLEM_MATMUL && wanted == PACKED && !p->matmul.constant)
        return "neither matrix is constant: there is nothing to pack";
    return NULL;
}

int bz_onednn_lower(session *s, const char *layout_name, const char *math, bz_error *why)
{
    lowering l = {.s = s, .p = s->job->problem};
    if (parse_layout(layout_name, &l.layout))
        return bz_fail(why, BZ_INCOMPLETE, "oneDNN has no layout '%s'", layout_name);
    if (!dnn_math(math, &l.math))
        return bz_fail(why, BZ_INCOMPLETE, "oneDNN %d has no math mode '%s'", DNNL_VERSION_MAJOR, math);
    const char *refusal = refuse_layout(s, l.layout);
    if (refusal)
        return bz_fail(why, BZ_INCOMPLETE, "%s", refusal);
    if (l.math != dnnl_fpmath_mode_strict && l.p->dtype != BZ_F32)
        return bz_fail(why, BZ_INCOMPLETE, "math modes are for f32");
    dnnl_status_t status = KINDS[l.p->kind].lower(&l);
    if (status == dnnl_success)
        return 0;
    return bz_fail(why, status == dnnl_out_of_memory ? BZ_FAILED : BZ_INCOMPLETE, "%s",
                   l.why ? l.why : dnnl_status2str(status));
}
