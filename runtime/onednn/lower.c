/* Lowering: a problem of each kind becomes primitives. A row in KINDS says in which layouts a kind comes,
 * and which function describes it; here is also what those functions share. */
#include "runtime/onednn/lower.h"

#include "base/arena.h"

#include <string.h>

const char *bz_onednn_impl_name(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}

int dnn_find(const lowering *l, bz_role role)
{
    for (int i = 0; i < l->s->job->n_operands; i++)
        if (l->s->job->operand[i].role == role)
            return i;
    return -1;
}

int dnn_result(const lowering *l)
{
    return l->s->job->n_operands - 1;
}

void dnn_bind(stage *st, int arg, int operand, int rank, const int64_t *dims, const int64_t *strides)
{
    argument *a = &st->args[st->n_args++];
    *a = (argument){.arg = arg, .operand = operand, .rank = rank};
    memcpy(a->dims, dims, (size_t)rank * sizeof *dims);
    if (strides)
        memcpy(a->strides, strides, (size_t)rank * sizeof *strides);
    else
        dnn_row_major(rank, dims, a->strides);
}

int dnn_shape(const lowering *l, int operand, int64_t *dims)
{
    const bz_operand *o = &l->s->job->operand[operand];
    int image = l->image && o->rank == 3;
    memcpy(dims, o->dim, (size_t)o->rank * sizeof *dims);
    if (image)
        dims[3] = dims[2], dims[2] = 1;
    return o->rank + image;
}

void dnn_bind_whole(const lowering *l, stage *st, int arg, int operand)
{
    int64_t dims[DNN_MAX_RANK];
    int rank = dnn_shape(l, operand, dims);
    dnn_bind(st, arg, operand, rank, dims, NULL);
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

static dnnl_status_t dtype_of(lowering *l, int operand, dnnl_data_type_t *type)
{
    if (dnn_dtype(l->s->job->operand[operand].dtype, type))
        return dnnl_success;
    l->why = "oneDNN has no such data type";
    return dnnl_unimplemented;
}

dnnl_status_t dnn_data(lowering *l, int operand, int rank, const int64_t *dims, bool free_choice, dnn_md *md)
{
    dnnl_data_type_t type;
    int64_t strides[DNN_MAX_RANK];
    TRY(dtype_of(l, operand, &type));
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

dnnl_status_t dnn_fixed(lowering *l, int operand, int rank, const int64_t *dims, const int64_t *strides, dnn_md *md)
{
    dnnl_data_type_t type;
    TRY(dtype_of(l, operand, &type));
    return dnn_md_strided(&l->s->heap, rank, dims, type, strides, md);
}

dnnl_status_t dnn_weights(lowering *l, int operand, bool constant, int rank, const int64_t *dims,
                          const int64_t *strides, dnn_md *md)
{
    dnnl_data_type_t type;
    TRY(dtype_of(l, operand, &type));
    if (l->layout == ANY || (constant && l->layout != PLAIN))
        return dnn_md_tagged(&l->s->heap, rank, dims, type, dnnl_format_tag_any, md);
    return dnn_md_strided(&l->s->heap, rank, dims, type, strides, md);
}

/* What oneDNN calls a function of one value, and which parameters it has: those of the problem, or its own. */
static const struct {
    dnnl_alg_kind_t alg;
    enum { OWN, ALPHA, BOTH } given;
    float alpha, beta;
} ELTWISE[BZ_FN_N] = {
    [BZ_FN_RELU] = {dnnl_eltwise_relu, OWN, 0, 0},
    [BZ_FN_LEAKY] = {dnnl_eltwise_relu, ALPHA, 0, 0},
    [BZ_FN_ELU] = {dnnl_eltwise_elu, ALPHA, 0, 0},
    [BZ_FN_CLIP] = {dnnl_eltwise_clip, BOTH, 0, 0},
    [BZ_FN_SIGMOID] = {dnnl_eltwise_logistic, OWN, 0, 0},
    [BZ_FN_TANH] = {dnnl_eltwise_tanh, OWN, 0, 0},
    [BZ_FN_GELU_ERF] = {dnnl_eltwise_gelu_erf, OWN, 0, 0},
    [BZ_FN_GELU_TANH] = {dnnl_eltwise_gelu_tanh, OWN, 0, 0},
    [BZ_FN_SWISH] = {dnnl_eltwise_swish, ALPHA, 0, 0},
    [BZ_FN_MISH] = {dnnl_eltwise_mish, OWN, 0, 0},
    [BZ_FN_EXP] = {dnnl_eltwise_exp, OWN, 0, 0},
    [BZ_FN_LOG] = {dnnl_eltwise_log, OWN, 0, 0},
    [BZ_FN_SQRT] = {dnnl_eltwise_sqrt, OWN, 0, 0},
    [BZ_FN_ABS] = {dnnl_eltwise_abs, OWN, 0, 0},
    [BZ_FN_SQUARE] = {dnnl_eltwise_square, OWN, 0, 0},
    [BZ_FN_ROUND] = {dnnl_eltwise_round, OWN, 0, 0},
    [BZ_FN_LINEAR] = {dnnl_eltwise_linear, BOTH, 0, 0},
    [BZ_FN_POW] = {dnnl_eltwise_pow, BOTH, 0, 0},
#if DNNL_VERSION_MAJOR >= 3
    [BZ_FN_SOFTPLUS] = {dnnl_eltwise_soft_relu, OWN, 1, 0},
    [BZ_FN_HARDSWISH] = {dnnl_eltwise_hardswish, OWN, 1.0f / 6, 0.5f},
    [BZ_FN_HARDSIGMOID] = {dnnl_eltwise_hardsigmoid, BOTH, 0, 0},
#else
    [BZ_FN_SOFTPLUS] = {dnnl_eltwise_soft_relu, OWN, 0, 0},
    [BZ_FN_HARDSWISH] = {dnnl_eltwise_hardswish, OWN, 0, 0},
    [BZ_FN_HARDSIGMOID] = {dnnl_eltwise_linear, BOTH, 0, 0}, /* not in version 2: a line, clipped */
#endif
};

function dnn_function_of(bz_fn fn, float alpha, float beta)
{
    function f = {.n = fn < BZ_FN_N && ELTWISE[fn].alg != dnnl_alg_kind_undef};
    if (f.n) {
        f.step[0].alg = ELTWISE[fn].alg;
        f.step[0].alpha = ELTWISE[fn].given == OWN ? ELTWISE[fn].alpha : alpha;
        f.step[0].beta = ELTWISE[fn].given == BOTH ? beta : ELTWISE[fn].beta;
    }
#if DNNL_VERSION_MAJOR < 3
    if (fn == BZ_FN_HARDSIGMOID)
        f = (function){2, {f.step[0], {dnnl_eltwise_clip, 0, 1}}};
#endif
    return f;
}

dnnl_alg_kind_t dnn_binary_of(bz_fn fn)
{
    static const dnnl_alg_kind_t BINARY[BZ_FN_N] = {
        [BZ_FN_ADD] = dnnl_binary_add, [BZ_FN_SUB] = dnnl_binary_sub, [BZ_FN_MUL] = dnnl_binary_mul,
        [BZ_FN_DIV] = dnnl_binary_div, [BZ_FN_MAX] = dnnl_binary_max, [BZ_FN_MIN] = dnnl_binary_min,
        [BZ_FN_EQ] = dnnl_binary_eq,   [BZ_FN_NE] = dnnl_binary_ne,   [BZ_FN_GT] = dnnl_binary_gt,
        [BZ_FN_GE] = dnnl_binary_ge,   [BZ_FN_LT] = dnnl_binary_lt,   [BZ_FN_LE] = dnnl_binary_le,
    };
    return fn < BZ_FN_N ? BINARY[fn] : dnnl_alg_kind_undef;
}

/* The post-operations of the problem, bias left out. With `sum` the first add goes to the memory of the
 * result. The other tensor of an operation is seen in the dimensions of the result. */
static dnnl_status_t add_posts(lowering *l, stage *st, dnnl_post_ops_t ops, bool sum, int rank, const int64_t *y)
{
    for (int i = 0, at = 0; l->p->post[i].fn; i++) {
        const bz_post *post = &l->p->post[i];
        if (post->fn == BZ_FN_BIAS)
            continue;
        if (!bz_fn_is_binary(post->fn)) {
            function f = dnn_function_of(post->fn, post->alpha, post->beta);
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
            TRY(dnn_data(l, other, rank, y, true, &md));
            TRY(dnn_post_binary(ops, dnn_binary_of(post->fn), md));
            dnn_bind(st, DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1, other, rank, y, NULL);
        }
        at++;
    }
    return dnnl_success;
}

dnnl_status_t dnn_attributes(lowering *l, stage *st, bool sum, int rank, const int64_t *y, double scale)
{
    dnnl_primitive_attr_t *attr = &st->impls.attr;
    dnnl_post_ops_t ops = NULL;
    int scale_arg = 0;
    TRY(dnnl_primitive_attr_create(attr));
    dnnl_status_t status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success)
        status = add_posts(l, st, ops, sum, rank, y);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(*attr, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    TRY(status);
    TRY(dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user));
    TRY(dnnl_primitive_attr_set_fpmath_mode(*attr, l->math));
    TRY(dnn_attr_scale(*attr, (float)scale, &scale_arg));
    if (scale_arg)
        dnn_bind(st, scale_arg, SCALE, 1, (int64_t[]){1}, NULL);
    return dnnl_success;
}

alternative *dnn_add_alternative(lowering *l, const char *prefix, const char *suffix, int n_stages)
{
    session *s = l->s;
    alternative *a = bz_alloc(1, sizeof *a);
    memset(a, 0, sizeof *a);
    a->prefix = prefix;
    a->suffix = suffix;
    a->n_stages = n_stages;
    for (int i = 0; i < MAX_STAGES; i++)
        a->stages[i].impls = (dnn_impls){.engine = s->engine, .training = s->training};
    a->first.impls = a->stages[0].impls;
    s->alternatives = bz_realloc(s->alternatives, (size_t)s->n_alternatives + 1, sizeof(alternative *));
    return s->alternatives[s->n_alternatives++] = a;
}

bool dnn_has_residual(const lowering *l)
{
    for (int i = 0; l->p->post[i].fn; i++)
        if (l->p->post[i].fn == BZ_FN_ADD)
            return true;
    return false;
}

enum {
    IN_PLAIN = 1,
    IN_PACKED = 2,
    IN_NHWC = 4,
    IN_ANY = 8,
    SPACE = 16, /* nhwc and any need channels and space */
    IMAGE = 32, /* one dimension of space is seen as an image's two */
};

static const struct {
    dnnl_status_t (*lower)(lowering *l);
    int layouts;
} KINDS[BZ_PROBLEM_N_KINDS] = {
    [BZ_PROBLEM_CONV] = {dnn_lower_conv, IN_PLAIN | IN_PACKED | IN_NHWC | IN_ANY | IMAGE},
    [BZ_PROBLEM_DECONV] = {dnn_lower_conv, IN_PLAIN | IN_PACKED | IN_NHWC | IN_ANY | IMAGE},
    [BZ_PROBLEM_GEMM] = {dnn_lower_gemm, IN_PLAIN | IN_PACKED | IN_ANY},
    [BZ_PROBLEM_MATMUL] = {dnn_lower_matmul, IN_PLAIN | IN_PACKED | IN_ANY},
    [BZ_PROBLEM_GEMV] = {dnn_lower_gemv, IN_PLAIN | IN_PACKED | IN_ANY},
    [BZ_PROBLEM_POOL] = {dnn_lower_pool, IN_PLAIN | IN_NHWC | IN_ANY | SPACE | IMAGE},
    [BZ_PROBLEM_BATCHNORM] = {dnn_lower_batchnorm, IN_PLAIN | IN_NHWC | IN_ANY | SPACE | IMAGE},
    [BZ_PROBLEM_LAYERNORM] = {dnn_lower_layernorm, IN_PLAIN},
    [BZ_PROBLEM_GROUPNORM] = {dnn_lower_groupnorm, IN_PLAIN | IN_NHWC | SPACE},
    [BZ_PROBLEM_SOFTMAX] = {dnn_lower_softmax, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_LOGSOFTMAX] = {dnn_lower_softmax, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_LRN] = {dnn_lower_lrn, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_ACTIVATION] = {dnn_lower_activation, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_PRELU] = {dnn_lower_prelu, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_BINARY] = {dnn_lower_binary, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_REDUCE] = {dnn_lower_reduce, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_RESAMPLE] = {dnn_lower_resample, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_CONCAT] = {dnn_lower_concat, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_TRANSPOSE] = {dnn_lower_transpose, IN_PLAIN},
    [BZ_PROBLEM_REORDER] = {dnn_lower_reorder, IN_PLAIN},
    [BZ_PROBLEM_LSTM] = {dnn_lower_rnn, IN_PLAIN | IN_PACKED},
    [BZ_PROBLEM_GRU] = {dnn_lower_rnn, IN_PLAIN | IN_PACKED},
    [BZ_PROBLEM_RNN] = {dnn_lower_rnn, IN_PLAIN | IN_PACKED},
    [BZ_PROBLEM_LSTM_GRAD] = {dnn_lower_rnn_grad, IN_PACKED},
    [BZ_PROBLEM_GRU_GRAD] = {dnn_lower_rnn_grad, IN_PACKED},
    [BZ_PROBLEM_RNN_GRAD] = {dnn_lower_rnn_grad, IN_PACKED},
    [BZ_PROBLEM_CONV_DATA] = {dnn_lower_conv_data, IN_PLAIN | IN_PACKED | IN_NHWC | IN_ANY | IMAGE},
    [BZ_PROBLEM_CONV_WEIGHTS] = {dnn_lower_conv_weights, IN_PLAIN | IN_PACKED | IN_NHWC | IN_ANY | IMAGE},
    [BZ_PROBLEM_POOL_GRAD] = {dnn_lower_pool_grad, IN_PLAIN | IN_NHWC | IN_ANY | SPACE | IMAGE},
    [BZ_PROBLEM_BATCHNORM_GRAD] = {dnn_lower_batchnorm_grad, IN_PLAIN | IN_NHWC | IN_ANY | SPACE | IMAGE},
    [BZ_PROBLEM_LAYERNORM_GRAD] = {dnn_lower_layernorm_grad, IN_PLAIN},
    [BZ_PROBLEM_ACTIVATION_GRAD] = {dnn_lower_activation_grad, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_SOFTMAX_GRAD] = {dnn_lower_softmax_grad, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
    [BZ_PROBLEM_LOGSOFTMAX_GRAD] = {dnn_lower_softmax_grad, IN_PLAIN | IN_NHWC | IN_ANY | SPACE},
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

/* Puts a number before n others. */
static void put_before(int64_t *v, int n, int64_t first)
{
    memmove(v + 1, v, (size_t)n * sizeof *v);
    *v = first;
}

/* One dimension of space is seen as images of height 1: frameworks ask so, and what oneDNN has for depthwise convolutions (ten times as
 * fast as what it has for all) and for batch normalization knows images only. */
static bool see_as_image(const session *s, bz_problem *p)
{
    enum { N = 1, END = 1 };
    bool pool = p->kind == BZ_PROBLEM_POOL || p->kind == BZ_PROBLEM_POOL_GRAD;
    if (!(KINDS[p->kind].layouts & IMAGE) || s->job->operand[0].rank != 3)
        return false;
    if (p->kind == BZ_PROBLEM_BATCHNORM || p->kind == BZ_PROBLEM_BATCHNORM_GRAD)
        return true; /* no size of space is a parameter */
    put_before((pool ? p->pool.x : p->conv.x) + 2, N + END, 1);
    put_before(pool ? p->pool.kernel : p->conv.w + 2, pool ? N : N + END, 1);
    put_before(pool ? p->pool.stride : p->conv.stride, N, 1);
    put_before(pool ? p->pool.dilation : p->conv.dilation, N, 1);
    int64_t *pad = pool ? p->pool.pad : p->conv.pad;
    put_before(pad + N, N, 0);
    put_before(pad, 2 * N + 1, 0);
    if (!pool)
        put_before(p->conv.outpad, N, 0);
    return true;
}

int bz_onednn_lower(session *s, const char *layout_name, const char *math, bz_error *why)
{
    bz_problem seen = *s->job->problem;
    lowering l = {.s = s, .p = &seen, .image = see_as_image(s, &seen)};
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
    const char *other = status == dnnl_unimplemented ? "oneDNN has no implementation of it for this processor"
                                                     : dnnl_status2str(status);
    return bz_fail(why, status == dnnl_out_of_memory ? BZ_FAILED : BZ_INCOMPLETE, "%s", l.why ? l.why : other);
}
