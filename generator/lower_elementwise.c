/* Functions of one, two and several tensors, element by element. */
#include "generator/lower.h"

static int activation(lowering *l, const bz_type *x, bz_fn fn, float alpha, float beta)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_ACTIVATION);
    p->activation.fn = fn;
    p->activation.alpha = alpha;
    p->activation.beta = beta;
    return lower_extent(x, 0, p->activation.x) ? lower_no(l, "it has too many dimensions") : 0;
}

int lower_unary(lowering *l, int arg)
{
    const bz_type *x = lower_in(l, 0);
    bz_fn fn = (bz_fn)arg;
    float alpha = 0, beta = 0;
    if (!x)
        return lower_no(l, "its operand is no tensor");
    bool given = lower_real(l, "alpha", &alpha);
    given |= lower_real(l, "beta", &beta);
    if (fn == BZ_FN_LINEAR) /* -x */
        alpha = -1;
    if (fn == BZ_FN_POW) /* 1 / x */
        alpha = 1, beta = -1;
    if (given && alpha == 0 && beta == 0) { /* a problem takes two zeros for the usual parameters */
        if (fn != BZ_FN_LEAKY && fn != BZ_FN_ELU)
            return lower_no(l, "its parameters are degenerate");
        fn = BZ_FN_RELU;
    }
    return activation(l, x, fn, alpha, beta) || lower_done(l) ? -1 : 0;
}

int lower_clip(lowering *l, int arg)
{
    const bz_type *x = lower_in(l, 0);
    float low = 0, high = 0;
    bool lower = lower_real(l, "min", &low), upper = lower_real(l, "max", &high);
    (void)arg;
    if (!x || !lower || (!upper && low != 0) || (upper && low == 0 && high == 0))
        return lower_no(l, "its limits are not known");
    return activation(l, x, upper ? BZ_FN_CLIP : BZ_FN_RELU, low, high) || lower_done(l) ? -1 : 0;
}

int lower_gelu(lowering *l, int arg)
{
    const bz_type *x = lower_in(l, 0);
    bool by_tanh = !strcmp(lower_word(l, "approximate", "none"), "tanh");
    (void)arg;
    return !x || activation(l, x, by_tanh ? BZ_FN_GELU_TANH : BZ_FN_GELU_ERF, 0, 0) || lower_done(l) ? -1 : 0;
}

int lower_prelu(lowering *l, int arg)
{
    const bz_type *x = lower_in(l, 0), *slope = lower_in(l, 1);
    (void)arg;
    if (!x || !slope || x->rank < 2 || (bz_type_elements(slope) != 1 && bz_type_elements(slope) != x->dims[1]))
        return lower_no(l, "its slope is not by channel");
    bz_problem *p = lower_step(l, BZ_PROBLEM_PRELU);
    return lower_extent(x, 0, p->prelu.x) || lower_done(l) ? -1 : 0;
}

/* Shapes of one rank. The operand with more elements comes first where the order does not matter:
 * libraries broadcast the second. */
static int binary(lowering *l, bz_fn fn, const bz_type *a, const bz_type *b)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_BINARY);
    int rank = a->rank > b->rank ? a->rank : b->rank;
    bool either = fn == BZ_FN_ADD || fn == BZ_FN_MUL || fn == BZ_FN_MAX || fn == BZ_FN_MIN;
    if (either && bz_type_elements(b) > bz_type_elements(a)) {
        const bz_type *other = a;
        a = b;
        b = other;
    }
    p->binary.fn = fn;
    if (lower_extent(a, rank, p->binary.a) || lower_extent(b, rank, p->binary.b))
        return lower_no(l, "it has too many dimensions");
    return 0;
}

int lower_binary(lowering *l, int arg)
{
    const bz_type *a = lower_in(l, 0), *b = lower_in(l, 1);
    bz_dim dims[BZ_PROBLEM_RANK];
    bz_type placed;
    if (!a || !b)
        return lower_no(l, "its operands are no tensors");
    int64_t axis = lower_int(l, "axis", -1);
    if (axis >= 0 && a->rank <= BZ_PROBLEM_RANK && axis + b->rank <= a->rank) { /* the old way to broadcast */
        for (int i = 0; i < a->rank; i++)
            dims[i] = i < axis || i >= axis + b->rank ? 1 : b->dims[i - axis];
        placed = *b;
        placed.rank = a->rank;
        placed.dims = dims;
        b = &placed;
    }
    return binary(l, (bz_fn)arg, a, b) || lower_done(l) ? -1 : 0;
}

/* One operand after the other; the mean divides at the end. */
int lower_variadic(lowering *l, int arg)
{
    const bz_type *a = lower_in(l, 0), *y = &l->layer->out[0];
    int n = l->layer->n_in;
    bz_fn fn = arg == BZ_FN_MEAN ? BZ_FN_ADD : (bz_fn)arg;
    if (!a || n < 2 || n > 64)
        return lower_no(l, "it has too few or too many operands");
    for (int k = 1; k < n; k++) {
        const bz_type *b = lower_in(l, k);
        if (!b || binary(l, fn, k == 1 ? a : y, b))
            return lower_no(l, "its operands do not fit a benchmark");
    }
    if (arg == BZ_FN_MEAN && activation(l, y, BZ_FN_LINEAR, 1.0f / (float)n, 0))
        return -1;
    return lower_done(l);
}

int lower_bias_function(lowering *l, int arg)
{
    const bz_type *x = lower_in(l, 0), *b = lower_in(l, 1);
    if (!x || (b && binary(l, BZ_FN_ADD, x, b)))
        return lower_no(l, "its operands do not fit a benchmark");
    return activation(l, x, (bz_fn)arg, 0, 0) || lower_done(l) ? -1 : 0;
}
