/* Functions of one, two and several tensors, element by element. */
#include "generator/lower.h"

#include "generator/constants.h"

#include <float.h>

static int activation(lowering *l, const bz_type *x, bz_fn fn, float alpha, float beta)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_ACTIVATION);
    p->activation.fn = fn;
    p->activation.alpha = alpha;
    p->activation.beta = beta;
    return lower_extent(x, 0, p->activation.x) ? lower_no(l, "it has too many dimensions") : 0;
}

static int lower_unary(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bz_fn fn = (bz_fn)l->arg;
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

static int lower_clip(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    float low = -FLT_MAX, high = FLT_MAX;
    bool lower = lower_real(l, "min", &low), upper = lower_real(l, "max", &high);
    if (!x || (bz_layer_param(l->layer, "min") && !lower) || (bz_layer_param(l->layer, "max") && !upper))
        return lower_no(l, "its limits are operands; libraries take numbers");
    if (low == 0 && high == 0) /* a problem takes two zeros for the usual parameters */
        return lower_no(l, "its limits are degenerate");
    bool relu = lower && !upper && low == 0;
    return activation(l, x, relu ? BZ_FN_RELU : BZ_FN_CLIP, low, high) || lower_done(l) ? -1 : 0;
}

/* Scaled elu is elu and a line; with beta the operand is divided first. Both are one call: a product with a
 * number, functions behind it. */
static int lower_scaled_elu(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    float alpha = 1, gamma = 1;
    lower_real(l, "alpha", &alpha);
    lower_real(l, "gamma", &gamma);
    bz_problem *p = lower_step(l, BZ_PROBLEM_BINARY);
    p->binary.fn = (bz_fn)l->arg;
    if (!x || alpha == 0 || gamma == 0 || lower_extent(x, 0, p->binary.a))
        return lower_no(l, "its parameters are degenerate");
    for (int i = 0; p->binary.a[i]; i++)
        p->binary.b[i] = 1;
    lower_post(p, BZ_FN_ELU, l->arg == BZ_FN_DIV ? 1 : alpha, 0);
    lower_post(p, BZ_FN_LINEAR, l->arg == BZ_FN_DIV ? alpha : gamma, 0);
    return lower_done(l);
}

/* A power whose exponent is a number. */
static int lower_pow(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    float exponent;
    if (!x || !lower_real(l, "exponent", &exponent))
        return lower_no(l, "its exponents are an operand; libraries take a number");
    bz_fn fn = exponent == 2 ? BZ_FN_SQUARE : exponent == 0.5f ? BZ_FN_SQRT : BZ_FN_POW;
    return activation(l, x, fn, 1, exponent) || lower_done(l) ? -1 : 0;
}

static int lower_gelu(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bool by_tanh = !strcmp(lower_word(l, "approximate", "none"), "tanh");
    return !x || activation(l, x, by_tanh ? BZ_FN_GELU_TANH : BZ_FN_GELU_ERF, 0, 0) || lower_done(l) ? -1 : 0;
}

static int lower_prelu(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *slope = lower_in(l, 1);
    if (!x || !slope || x->rank < 2 || (bz_type_elements(slope) != 1 && bz_type_elements(slope) != x->dims[1]))
        return lower_no(l, "its slope is not by channel");
    bz_problem *p = lower_step(l, BZ_PROBLEM_PRELU);
    return lower_extent(x, 0, p->prelu.x) || lower_done(l) ? -1 : 0;
}

/* The function of b and a that gives what fn gives of a and b. */
static bz_fn mirrored(bz_fn fn)
{
    static const bz_fn FUNCTIONS[][2] = {{BZ_FN_ADD, BZ_FN_ADD}, {BZ_FN_MUL, BZ_FN_MUL}, {BZ_FN_MAX, BZ_FN_MAX},
                                         {BZ_FN_MIN, BZ_FN_MIN}, {BZ_FN_EQ, BZ_FN_EQ},   {BZ_FN_NE, BZ_FN_NE},
                                         {BZ_FN_GT, BZ_FN_LT},   {BZ_FN_GE, BZ_FN_LE},   {BZ_FN_LT, BZ_FN_GT},
                                         {BZ_FN_LE, BZ_FN_GE}};
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (FUNCTIONS[i][0] == fn)
            return FUNCTIONS[i][1];
    return BZ_FN_NONE;
}

/* Shapes of one rank. The operand with more elements comes first where the order does not matter:
 * libraries broadcast the second. */
static int binary(lowering *l, bz_fn fn, const bz_type *a, const bz_type *b)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_BINARY);
    int rank = a->rank > b->rank ? a->rank : b->rank;
    bz_fn other_way = mirrored(fn);
    if (other_way && bz_type_elements(b) > bz_type_elements(a)) {
        const bz_type *other = a;
        a = b;
        b = other;
        fn = other_way;
    }
    p->binary.fn = fn;
    if (lower_extent(a, rank, p->binary.a) || lower_extent(b, rank, p->binary.b))
        return lower_no(l, "it has too many dimensions");
    return 0;
}

static int lower_binary(lowering *l)
{
    const bz_type *a = lower_in(l, 0), *b = lower_in(l, 1);
    bz_dim dims[BZ_PROBLEM_RANK];
    bz_type placed;
    if (!a || !b)
        return lower_no(l, "its operands are no tensors");
    int64_t axis = lower_int(l, "axis", -1);
    if (axis >= 0 && a->rank <= BZ_PROBLEM_RANK && axis <= a->rank - b->rank) { /* the old way to broadcast */
        for (int i = 0; i < a->rank; i++)
            dims[i] = i < axis || i >= axis + b->rank ? 1 : b->dims[i - axis];
        placed = *b;
        placed.rank = a->rank;
        placed.dims = dims;
        b = &placed;
    }
    return binary(l, (bz_fn)l->arg, a, b) || lower_done(l) ? -1 : 0;
}

/* The scales do not matter to the time. */
static int lower_qbinary(lowering *l)
{
    const bz_type *a = lower_in(l, 0), *b = lower_in(l, 3);
    if (!a || !b || a->dtype != b->dtype)
        return lower_no(l, "its operands are no tensors of one type");
    return binary(l, (bz_fn)l->arg, a, b) || lower_done(l) ? -1 : 0;
}

/* The result is a byte for each element. */
static int lower_compare(lowering *l)
{
    const bz_type *a = lower_in(l, 0), *b = lower_in(l, 1);
    if (!a || !b || binary(l, (bz_fn)l->arg, a, b))
        return lower_no(l, "its operands do not fit a benchmark");
    l->step[l->n_steps - 1].dtype_y = BZ_U8;
    return lower_done(l);
}

/* x = 0 */
static int lower_not(lowering *l)
{
    static const bz_dim ONE[] = {1};
    const bz_type *x = lower_in(l, 0), zero = {.kind = BZ_TYPE_TENSOR, .rank = 1, .dims = ONE};
    if (!x || binary(l, BZ_FN_EQ, x, &zero))
        return lower_no(l, "it has too many dimensions");
    return lower_done(l);
}

/* One operand after the other; the mean divides at the end. */
static int lower_variadic(lowering *l)
{
    const bz_type *a = lower_in(l, 0), *y = &l->layer->out[0];
    int n = l->layer->n_in;
    bz_fn fn = l->arg == BZ_FN_MEAN ? BZ_FN_ADD : (bz_fn)l->arg;
    if (!a || n < 2)
        return lower_no(l, "it has one operand: there is nothing to compute");
    if (n > MOST_OPERANDS)
        return lower_no(l, "it has more operands than a benchmark");
    for (int k = 1; k < n; k++) {
        const bz_type *b = lower_in(l, k);
        if (!b || binary(l, fn, k == 1 ? a : y, b))
            return lower_no(l, "its operands do not fit a benchmark");
    }
    if (l->arg == BZ_FN_MEAN && activation(l, y, BZ_FN_LINEAR, 1.0f / (float)n, 0))
        return -1;
    return lower_done(l);
}

/* The sum and the function in one call, and in two. Without a bias the function is all. */
static int lower_bias_function(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *b = lower_in(l, 1);
    if (!x)
        return lower_no(l, "its operand is no tensor");
    for (int fused = b != NULL; fused >= 0; fused--) {
        if (b && binary(l, BZ_FN_ADD, x, b))
            return lower_no(l, "its operands do not fit a benchmark");
        if (fused)
            lower_post(&l->step[l->n_steps - 1], (bz_fn)l->arg, 0, 0);
        else if (activation(l, x, (bz_fn)l->arg, 0, 0))
            return -1;
        if (lower_done(l))
            return -1;
    }
    return 0;
}

/* x + bias + skip */
static int lower_bias_add(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *b = lower_in(l, 1), *skip = lower_in(l, 2);
    if (!x || !b || !skip || bz_type_elements(skip) != bz_type_elements(x) || binary(l, BZ_FN_ADD, x, b))
        return lower_no(l, "its operands do not fit a benchmark");
    lower_post(&l->step[l->n_steps - 1], BZ_FN_ADD, 0, 0);
    return lower_done(l);
}

const lower_row lower_elementwise_rows[] = {
    {"relu", lower_unary, BZ_FN_RELU, .types = FLOATS | BYTES | WORDS},
    {"leakyrelu", lower_unary, BZ_FN_LEAKY, .types = FLOATS | BYTES},
    {"qleakyrelu", lower_unary, BZ_FN_LEAKY, .types = BYTES},
    {"elu", lower_unary, BZ_FN_ELU, .types = FLOATS},
    {"sigmoid", lower_unary, BZ_FN_SIGMOID, .types = FLOATS},
    {"tanh", lower_unary, BZ_FN_TANH, .types = FLOATS},
    {"swish", lower_unary, BZ_FN_SWISH, .types = FLOATS},
    {"quickgelu", lower_unary, BZ_FN_SWISH, .types = FLOATS},
    {"hardswish", lower_unary, BZ_FN_HARDSWISH, .types = FLOATS},
    {"hardsigmoid", lower_unary, BZ_FN_HARDSIGMOID, .types = FLOATS},
    {"mish", lower_unary, BZ_FN_MISH, .types = FLOATS},
    {"softplus", lower_unary, BZ_FN_SOFTPLUS, .types = FLOATS},
    {"exp", lower_unary, BZ_FN_EXP, .types = FLOATS},
    {"log", lower_unary, BZ_FN_LOG, .types = FLOATS},
    {"sqrt", lower_unary, BZ_FN_SQRT, .types = FLOATS},
    {"abs", lower_unary, BZ_FN_ABS, .types = FLOATS},
    {"round", lower_unary, BZ_FN_ROUND, .types = FLOATS},
    {"neg", lower_unary, BZ_FN_LINEAR, .types = FLOATS},
    {"erf", lower_unary, BZ_FN_ERF, .ours = FLOATS},
    {"floor", lower_unary, BZ_FN_FLOOR, .ours = FLOATS},
    {"ceil", lower_unary, BZ_FN_CEIL, .ours = FLOATS},
    {"softsign", lower_unary, BZ_FN_SOFTSIGN, .ours = FLOATS},
    {"sign", lower_unary, BZ_FN_SIGN, .ours = FLOATS},
    {"sin", lower_unary, BZ_FN_SIN, .ours = FLOATS},
    {"cos", lower_unary, BZ_FN_COS, .ours = FLOATS},
    {"reciprocal", lower_unary, BZ_FN_POW, .types = FLOATS},
    {"selu", lower_scaled_elu, BZ_FN_MUL, .types = FLOATS},
    {"celu", lower_scaled_elu, BZ_FN_DIV, .types = FLOATS},
    {"pow", lower_pow, .types = FLOATS},
    {"clip", lower_clip, BZ_FN_CLIP, .types = FLOATS},
    {"gelu", lower_gelu, BZ_FN_GELU_ERF, .types = FLOATS},
    {"prelu", lower_prelu, .types = FLOATS},
    {"fastgelu", lower_bias_function, BZ_FN_GELU_TANH, .types = FLOATS},
    {"biasgelu", lower_bias_function, BZ_FN_GELU_ERF, .types = FLOATS},
    {"biasadd", lower_bias_add, .types = FLOATS},
    {"add", lower_binary, BZ_FN_ADD, .types = FLOATS | BYTES, .ours = NUMBERS},
    {"sub", lower_binary, BZ_FN_SUB, .types = FLOATS | BYTES, .ours = NUMBERS},
    {"mul", lower_binary, BZ_FN_MUL, .types = FLOATS | BYTES, .ours = NUMBERS},
    {"div", lower_binary, BZ_FN_DIV, .types = FLOATS, .ours = NUMBERS},
    {"qadd", lower_qbinary, BZ_FN_ADD, .types = BYTES},
    {"qmul", lower_qbinary, BZ_FN_MUL, .types = BYTES},
    {"max", lower_variadic, BZ_FN_MAX, .types = FLOATS | BYTES, .ours = NUMBERS},
    {"min", lower_variadic, BZ_FN_MIN, .types = FLOATS | BYTES, .ours = NUMBERS},
    {"sum", lower_variadic, BZ_FN_ADD, .types = FLOATS},
    {"mean", lower_variadic, BZ_FN_MEAN, .types = FLOATS},
    {"equal", lower_compare, BZ_FN_EQ, .types = FLOATS | BYTES | BOOLS, .ours = NUMBERS},
    {"greater", lower_compare, BZ_FN_GT, .types = FLOATS | BYTES, .ours = NUMBERS},
    {"greaterequal", lower_compare, BZ_FN_GE, .types = FLOATS | BYTES, .ours = NUMBERS},
    {"less", lower_compare, BZ_FN_LT, .types = FLOATS | BYTES, .ours = NUMBERS},
    {"lessequal", lower_compare, BZ_FN_LE, .types = FLOATS | BYTES, .ours = NUMBERS},
    {"and", lower_compare, BZ_FN_MIN, .types = BOOLS},
    {"or", lower_compare, BZ_FN_MAX, .types = BOOLS},
    {"xor", lower_compare, BZ_FN_NE, .types = BOOLS},
    {"not", lower_not, .types = BOOLS},
    {0},
};

/* Lines and powers have their parameters from the layer. */
bz_fn lower_function_named(const char *kind)
{
    for (const lower_row *row = lower_elementwise_rows; row->kind; row++)
        if (!strcmp(row->kind, kind) && row->arg != BZ_FN_LINEAR && row->arg != BZ_FN_POW)
            return bz_fn_has_slope((bz_fn)row->arg) ? (bz_fn)row->arg : BZ_FN_NONE;
    return BZ_FN_NONE;
}
