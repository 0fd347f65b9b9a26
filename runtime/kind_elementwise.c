/* Kinds that compute each element of the result from elements of their inputs: functions, choices, reductions. */
#include "runtime/kind.h"

#include <string.h>

static int check_activation(const bz_problem *p, bz_error *err)
{
    return bz_fn_is_activation(p->activation.fn) ? 0 : bz_problem_refuse(p, "fn is no activation", err);
}

static bz_expected activation_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    double x = r->value[0][r->index], v = bz_fn_value(p->activation.fn, x, p->activation.alpha, p->activation.beta);
    return (bz_expected){.value = v, .magnitude = fabs(v) + fabs(x)};
}

static void prelu_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->prelu.x);
    bz_operand_add(l, BZ_ROLE_SLOPE, p->dtype_w, 1, &p->prelu.x[1]);
    memcpy(y, p->prelu.x, sizeof(bz_extent));
}

static int check_prelu(const bz_problem *p, bz_error *err)
{
    return bz_extent_rank(p->prelu.x) < 2 ? bz_problem_refuse(p, "x has at least batch and channels", err) : 0;
}

static bz_expected prelu_at(bz_reference *r)
{
    double v = r->value[0][r->index];
    return (bz_expected){.value = v > 0 ? v : v * (double)bz_reference_values(r, BZ_ROLE_SLOPE)[r->y[1]],
                         .magnitude = fabs(v)};
}

static double kept(const bz_problem *p)
{
    return 1 / (1 - (double)p->dropout.ratio);
}

static void dropout_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->dropout.x);
    if (p->dropout.training)
        bz_operand_add_result(l, BZ_ROLE_MASK, BZ_BOOL, bz_extent_rank(p->dropout.x), p->dropout.x, -1);
    memcpy(y, p->dropout.x, sizeof(bz_extent));
}

static int check_dropout(const bz_problem *p, bz_error *err)
{
    bool share = p->dropout.ratio > 0 && p->dropout.ratio < 1;
    return share ? 0 : bz_problem_refuse(p, "the ratio lies between 0 and 1", err);
}

static bz_expected dropout_at(bz_reference *r)
{
    double v = bz_reference_role(r) == BZ_ROLE_MASK ? 1 : kept(r->problem) * (double)r->value[0][r->index];
    return (bz_expected){.value = v, .magnitude = fabs(v)};
}

static void dropout_grad_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_DY, p->dtype, p->dropout.x);
    bz_operand_add_shape(l, BZ_ROLE_MASK, BZ_BOOL, p->dropout.x);
    memcpy(y, p->dropout.x, sizeof(bz_extent));
}

static bz_expected dropout_grad_at(bz_reference *r)
{
    double v = r->value[1][r->index] != 0 ? kept(r->problem) * (double)r->value[0][r->index] : 0;
    return (bz_expected){.value = v, .magnitude = fabs(v)};
}

static void activation_grad_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->activation.x);
    bz_operand_add_shape(l, BZ_ROLE_DY, p->dtype_w, p->activation.x);
    memcpy(y, p->activation.x, sizeof(bz_extent));
}

static int check_activation_grad(const bz_problem *p, bz_error *err)
{
    if (!bz_fn_has_slope(p->activation.fn))
        return bz_problem_refuse(p, "fn is no activation with a derivative", err);
    if (p->activation.of_y && !bz_fn_inverts(p->activation.fn))
        return bz_problem_refuse(p, "fn's derivative cannot be told from its result", err);
    return 0;
}

static bz_expected activation_grad_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    double x = r->value[0][r->index], dy = r->value[1][r->index], alpha = p->activation.alpha,
           beta = p->activation.beta;
    double v = dy * (p->activation.of_y ? bz_fn_slope_of_y(p->activation.fn, x, alpha, beta)
                                        : bz_fn_slope(p->activation.fn, x, alpha, beta));
    return (bz_expected){.value = v, .magnitude = fabs(v) + fabs(dy)};
}

static void binary_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->binary.a);
    bz_operand_add_shape(l, BZ_ROLE_B, p->dtype_w, p->binary.b);
    bz_extent_broadcast(p->binary.a, p->binary.b, y);
}

static int check_binary(const bz_problem *p, bz_error *err)
{
    if (!bz_fn_is_binary(p->binary.fn) || bz_extent_rank(p->binary.a) != bz_extent_rank(p->binary.b) ||
        !bz_extent_broadcasts(p->binary.a, p->binary.b, 0))
        return bz_problem_refuse(p, "fn takes two values, a and b have the same number of dimensions and fit", err);
    return 0;
}

static bz_expected binary_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    int rank = bz_extent_rank(p->binary.a);
    double a = r->value[0][bz_ravel(y, p->binary.a, rank)], b = r->value[1][bz_ravel(y, p->binary.b, rank)];
    double v = bz_fn_binary(p->binary.fn, a, b);
    return (bz_expected){.value = v, .magnitude = fabs(v) + fabs(a) + fabs(b)};
}

static void where_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_extent both = {0};
    bz_operand_add_shape(l, BZ_ROLE_MASK, BZ_BOOL, p->where.c);
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->where.a);
    bz_operand_add_shape(l, BZ_ROLE_B, p->dtype_w, p->where.b);
    bz_extent_broadcast(p->where.a, p->where.b, both);
    bz_extent_broadcast(both, p->where.c, y);
}

static int check_where(const bz_problem *p, bz_error *err)
{
    const int64_t *a = p->where.a, *b = p->where.b, *c = p->where.c;
    int n = bz_extent_rank(c);
    if (bz_extent_rank(a) != n || bz_extent_rank(b) != n || !bz_extent_broadcasts(a, b, 0) ||
        !bz_extent_broadcasts(a, c, 0) || !bz_extent_broadcasts(b, c, 0))
        return bz_problem_refuse(p, "c, a and b have the same number of dimensions and fit", err);
    return 0;
}

static bz_expected where_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    int rank = bz_extent_rank(p->where.c);
    double v = r->value[0][bz_ravel(y, p->where.c, rank)] != 0 ? r->value[1][bz_ravel(y, p->where.a, rank)]
                                                               : r->value[2][bz_ravel(y, p->where.b, rank)];
    return (bz_expected){.value = v, .magnitude = fabs(v)};
}

static int check_reduce(const bz_problem *p, bz_error *err)
{
    int n = bz_extent_rank(p->reduce.x);
    if (!bz_fn_is_reduction(p->reduce.fn) || n != bz_extent_rank(p->reduce.y))
        return bz_problem_refuse(p, "fn reduces, and x and y have the same number of dimensions", err);
    for (int i = 0; i < n; i++)
        if (p->reduce.y[i] != p->reduce.x[i] && p->reduce.y[i] != 1)
            return bz_problem_refuse(p, "a dimension of y is 1 or that of x", err);
    return 0;
}

double bz_flops_each_input(const bz_problem *p, const bz_operand *list, double y)
{
    (void)p, (void)y;
    return (double)list[0].count;
}

static bz_expected reduce_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    const float *x = bz_reference_values(r, BZ_ROLE_X);
    int rank = bz_extent_rank(p->reduce.x);
    bz_fn fn = p->reduce.fn;
    bz_extent over = {0};
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= over[i] = p->reduce.y[i] == 1 ? p->reduce.x[i] : 1;
    bz_expected e = {0};
    double product = 1, most = -INFINITY, least = INFINITY;
    for (int64_t k = 0; k < count; k++) {
        int64_t at[BZ_PROBLEM_RANK];
        bz_unravel(k, over, rank, at);
        for (int i = 0; i < rank; i++)
            at[i] = over[i] == 1 ? r->y[i] : at[i];
        double v = x[bz_ravel(at, p->reduce.x, rank)];
        product *= v;
        most = v > most ? v : most;
        least = v < least ? v : least;
        bz_expected_add(&e, fn == BZ_FN_L1 ? fabs(v) : fn == BZ_FN_L2 || fn == BZ_FN_SUMSQUARE ? v * v : v);
    }
    if (fn == BZ_FN_MEAN)
        return (bz_expected){.value = e.value / (double)count, .magnitude = e.magnitude / (double)count};
    if (fn == BZ_FN_L2)
        return (bz_expected){.value = sqrt(e.value), .magnitude = sqrt(e.value)};
    if (fn == BZ_FN_PROD) /* each factor adds a rounding error */
        return (bz_expected){.value = product, .magnitude = fabs(product) * (1 + 0.01 * (double)count)};
    if (fn == BZ_FN_MAX || fn == BZ_FN_MIN)
        return (bz_expected){.value = fn == BZ_FN_MAX ? most : least, .magnitude = 1};
    return e;
}

/* clang-format off */
const bz_kind bz_kind_activation = {.name = "activation", .check = check_activation, .each = 1, .at = activation_at, .member = {
    BZ_REQUIRED("fn", FN, activation.fn), BZ_REQUIRED("x", EXTENT, activation.x),
    BZ_OPTIONAL("alpha", REAL, activation.alpha, 0), BZ_OPTIONAL("beta", REAL, activation.beta, 0)}};

const bz_kind bz_kind_prelu = {.name = "prelu", .operands = prelu_operands, .check = check_prelu, .each = 2,
    .at = prelu_at, .member = {
    BZ_REQUIRED("x", EXTENT, prelu.x)}};

const bz_kind bz_kind_dropout = {.name = "dropout", .operands = dropout_operands, .check = check_dropout, .each = 2,
    .at = dropout_at, .member = {
    BZ_REQUIRED("x", EXTENT, dropout.x), BZ_OPTIONAL("ratio", REAL, dropout.ratio, 0.5),
    BZ_OPTIONAL("training", FLAG, dropout.training, 0)}};

const bz_kind bz_kind_dropout_grad = {.name = "dropout_grad", .field = "dropout", .traits = BZ_TRAIT_GRADIENT,
    .operands = dropout_grad_operands, .check = check_dropout, .each = 2, .at = dropout_grad_at, .member = {
    BZ_REQUIRED("x", EXTENT, dropout.x), BZ_OPTIONAL("ratio", REAL, dropout.ratio, 0.5)}};

const bz_kind bz_kind_activation_grad = {.name = "activation_grad", .field = "activation", .traits = BZ_TRAIT_GRADIENT,
    .operands = activation_grad_operands, .check = check_activation_grad, .each = 3, .at = activation_grad_at, .member = {
    BZ_REQUIRED("fn", FN, activation.fn), BZ_REQUIRED("x", EXTENT, activation.x),
    BZ_OPTIONAL("of_y", FLAG, activation.of_y, 0),
    BZ_OPTIONAL("alpha", REAL, activation.alpha, 0), BZ_OPTIONAL("beta", REAL, activation.beta, 0)}};

const bz_kind bz_kind_binary = {.name = "binary", .traits = BZ_TRAIT_POST, .operands = binary_operands,
    .check = check_binary, .each = 1, .at = binary_at, .member = {
    BZ_REQUIRED("fn", FN, binary.fn), BZ_REQUIRED("a", EXTENT, binary.a), BZ_REQUIRED("b", EXTENT, binary.b)}};

const bz_kind bz_kind_where = {.name = "where", .traits = BZ_TRAIT_MOVE, .operands = where_operands,
    .check = check_where, .each = 1, .at = where_at, .member = {
    BZ_REQUIRED("c", EXTENT, where.c), BZ_REQUIRED("a", EXTENT, where.a), BZ_REQUIRED("b", EXTENT, where.b)}};

const bz_kind bz_kind_reduce = {.name = "reduce", .traits = BZ_TRAIT_POST, .check = check_reduce,
    .flops = bz_flops_each_input, .at = reduce_at, .member = {
    BZ_REQUIRED("fn", FN, reduce.fn), BZ_REQUIRED("x", EXTENT, reduce.x), BZ_REQUIRED("y", EXTENT, reduce.y)}};
/* clang-format on */
