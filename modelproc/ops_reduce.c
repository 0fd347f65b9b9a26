/* Reductions over axes. */
#include "modelproc/eval.h"

/* Which axes go, as a bit set; false where their list is not known. */
static int reduced_axes(call *c, const bz_type *x, uint64_t *gone)
{
    int axes[BZ_MAX_RANK], n = axes_of(c, 1, "axes", x->rank, axes);
    if (n < 0)
        return n;
    *gone = 0;
    for (int i = 0; i < n; i++)
        *gone |= (uint64_t)1 << axes[i];
    if (n == 0 && !attr_int(c, "noop_with_empty_axes", 0))
        *gone = UINT64_MAX;
    return 0;
}

static int shape_reduce(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    uint64_t gone;
    bool keep = attr_int(c, "keepdims", 1) != 0;
    int known = reduced_axes(c, x, &gone), rank = 0, list[BZ_MAX_RANK], n = 0;
    if (known == -1)
        return -1;
    if (known == -2 && !keep)
        return set_unknown(c, 0, x->dtype);
    for (int i = 0; i < x->rank; i++) {
        bool goes = known == 0 && gone >> i & 1;
        if (goes)
            list[n++] = i;
        if (!goes || keep)
            dims[rank++] = known ? new_symbol(c) : goes ? 1 : x->dims[i];
    }
    if (known)
        param_text(c, "axes", "?"); /* another layer than one that reduces along none */
    else
        param_axes(c, "axes", list, n);
    param_int(c, "keep", keep);
    set_out(c, 0, x->dtype, rank, dims);
    if (bz_has_word("reducemax reducemean reducemin reduceprod reducesum", c->op->kind)) /* of one element it is that */
        view_if_whole(c);
    return 0;
}

typedef enum { SUM = 1, PROD, MAX, MIN } reduction;

static bz_dim int_step(call *c, reduction f, bz_dim a, bz_dim b)
{
    bool known = !bz_is_symbol(a) && !bz_is_symbol(b);
    switch (f) {
    case SUM:
        return dim_add(c, a, b);
    case PROD:
        return dim_mul(c, a, b);
    case MAX:
        return known ? (a > b ? a : b) : new_symbol(c);
    case MIN:
        return known ? (a < b ? a : b) : new_symbol(c);
    default:
        return new_symbol(c);
    }
}

static double real_step(reduction f, double a, double b)
{
    return f == SUM ? a + b : f == PROD ? a * b : f == MAX ? (a > b ? a : b) : a < b ? a : b;
}

/* The result that element k of the operand is folded into. */
static int64_t reduced_at(const bz_type *t, uint64_t gone, int64_t k)
{
    int64_t at = 0, step = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        if (!(gone >> d & 1)) {
            at += k % t->dims[d] * step;
            step *= t->dims[d];
        }
        k /= t->dims[d];
    }
    return at;
}

/* Products and extremes of shapes and of sizes that are scaled. */
static int eval_reduce(call *c)
{
    const data *x = in_data(c, 0);
    reduction f = (reduction)c->op->arg;
    uint64_t gone;
    values v;
    if (!x || !x->n || reduced_axes(c, &c->in[0], &gone) ||
        !eval_room(c, 0, x->r != NULL, bz_type_elements(&c->out[0]), &v) || !v.n)
        return 0;
    bool started[4096] = {0};
    for (int64_t k = 0; k < x->n; k++) {
        int64_t at = reduced_at(&c->in[0], gone, k);
        if (v.i)
            v.i[at] = started[at] ? int_step(c, f, v.i[at], x->i[k]) : x->i[k];
        else
            v.r[at] = started[at] ? real_step(f, v.r[at], x->r[k]) : x->r[k];
        started[at] = true;
    }
    return 0;
}

static int shape_arg(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    int axis, rank = 0;
    bool keep = attr_int(c, "keepdims", 1) != 0;
    if (fix_axis(c, attr_int(c, "axis", 0), x->rank, &axis))
        return -1;
    for (int i = 0; i < x->rank; i++)
        if (i != axis || keep)
            dims[rank++] = i == axis ? 1 : x->dims[i];
    param_int(c, "axis", axis);
    param_int(c, "keep", keep);
    return set_out(c, 0, BZ_I64, rank, dims);
}

static int shape_cumsum(call *c)
{
    const bz_type *x = need_any(c, 0);
    int64_t n;
    const int64_t *axis = in_ints(c, 1, &n);
    int fixed;
    if (axis && n == 1 && !bz_is_symbol(*axis)) {
        if (fix_axis(c, *axis, x->rank, &fixed))
            return -1;
        param_int(c, "axis", fixed);
    }
    param_int(c, "exclusive", attr_int(c, "exclusive", 0) != 0);
    param_int(c, "reverse", attr_int(c, "reverse", 0) != 0);
    return set_out(c, 0, x->dtype, x->rank, x->dims);
}

static int eval_cumsum(call *c)
{
    const data *x = in_data(c, 0);
    values v;
    if (!x || !x->i || c->in[0].rank != 1 || attr_int(c, "exclusive", 0) || attr_int(c, "reverse", 0) ||
        !eval_room(c, 0, false, x->n, &v))
        return 0;
    for (int64_t k = 0; k < v.n; k++)
        v.i[k] = k ? dim_add(c, v.i[k - 1], x->i[k]) : x->i[k];
    return 0;
}

#define REDUCE(op, kind, n, f)                                                                                         \
    {                                                                                                                  \
        op, NULL, kind, BZ_COMPUTE, shape_reduce, (f) ? eval_reduce : NULL, NULL, n, OP_KEEPS, "x -", f, NULL, NULL    \
    }

static const op ROWS[] = {
    REDUCE("ReduceL1", "reducel1", 2, 0),
    REDUCE("ReduceL2", "reducel2", 2, 0),
    REDUCE("ReduceLogSum", "reducelogsum", 1, 0),
    REDUCE("ReduceLogSumExp", "reducelogsumexp", 2, 0),
    REDUCE("ReduceMax", "reducemax", 1, MAX),
    REDUCE("ReduceMean", "reducemean", 1, 0),
    REDUCE("ReduceMin", "reducemin", 1, MIN),
    REDUCE("ReduceProd", "reduceprod", 1, PROD),
    REDUCE("ReduceSum", "reducesum", 1, SUM),
    REDUCE("ReduceSumSquare", "reducesumsquare", 2, 0),
    {"ReduceSumTraining", "com.microsoft", "reducesum", BZ_COMPUTE, shape_reduce, .flops = 1, .flags = OP_KEEPS,
     .labels = "x -"},
    {"ArgMax", NULL, "argmax", BZ_COMPUTE, shape_arg, .flops = 1, .labels = "x"},
    {"ArgMin", NULL, "argmin", BZ_COMPUTE, shape_arg, .flops = 1, .labels = "x"},
    {"CumSum", NULL, "cumsum", BZ_COMPUTE, shape_cumsum, .eval = eval_cumsum, .flops = 1, .flags = OP_KEEPS,
     .labels = "x -"},
    {"CumProd", NULL, "cumprod", BZ_COMPUTE, shape_cumsum, .flops = 1, .flags = OP_KEEPS, .labels = "x -"},
};

const op_table ops_reduce = OP_TABLE(ROWS);
