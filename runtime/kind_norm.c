/* Kinds that bring values to a scale that depends on their neighbours: normalizations and softmax. */
#include "runtime/kind.h"

#include <string.h>

static void add_parameters(const bz_problem *p, bz_operand_list *l, bz_role first, bz_role second, int64_t n)
{
    bz_operand_add(l, first, bz_parameter_dtype(p), 1, &n);
    bz_operand_add(l, second, bz_parameter_dtype(p), 1, &n);
}

/* Of layernorm, rmsnorm, softmax and logsoftmax, whose members are the same. */
static int check_axis(const bz_problem *p, bz_error *err)
{
    return p->softmax.axis >= bz_extent_rank(p->softmax.x) ? bz_problem_refuse(p, "x has no such axis", err) : 0;
}

static double epsilon(const bz_reference *r)
{
    return r->epsilon > 0 ? (double)r->epsilon : 1e-5; /* ONNX's default */
}

/* Mean and variance of n values. */
static void moments(const float *v, int64_t n, double *mean, double *variance)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += v[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += ((double)v[i] - *mean) * ((double)v[i] - *mean);
    *variance = squares / (double)n;
}

/* (x - mean) / √variance · scale + shift, with the parameters of that number; not all kinds have a shift. */
static bz_expected normalized(const bz_reference *r, double mean, double variance, int64_t parameter)
{
    const float *scales = bz_reference_values(r, BZ_ROLE_SCALE), *shifts = bz_reference_values(r, BZ_ROLE_SHIFT);
    double scale = scales[parameter], shift = shifts ? (double)shifts[parameter] : 0;
    double v = ((double)r->value[0][r->index] - mean) / sqrt(variance + epsilon(r)) * scale;
    return (bz_expected){v + shift, fabs(v) + fabs(shift) + fabs(scale)};
}

/* By the mean and variance of the n values around it. */
static bz_expected normalized_in(const bz_reference *r, int64_t n, int64_t parameter)
{
    double mean, variance;
    moments(r->value[0] + r->index / n * n, n, &mean, &variance);
    return normalized(r, mean, variance, parameter);
}

/* ---- batchnorm ------------------------------------------------------------------------------ */

static void batchnorm_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    const int64_t *x = p->batchnorm.x;
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, x);
    add_parameters(p, l, BZ_ROLE_MEAN, BZ_ROLE_VARIANCE, x[1]);
    add_parameters(p, l, BZ_ROLE_SCALE, BZ_ROLE_SHIFT, x[1]);
    memcpy(y, x, sizeof(bz_extent));
}

static int check_batchnorm(const bz_problem *p, bz_error *err)
{
    return bz_extent_rank(p->batchnorm.x) < 2 ? bz_problem_refuse(p, "x has at least batch and channels", err) : 0;
}

static bz_expected batchnorm_at(bz_reference *r)
{
    int64_t c = r->y[1];
    return normalized(r, bz_reference_values(r, BZ_ROLE_MEAN)[c], bz_reference_values(r, BZ_ROLE_VARIANCE)[c], c);
}

/* ---- layernorm, rmsnorm --------------------------------------------------------------------- */

static int64_t row_of(const bz_problem *p)
{
    return bz_extent_count(p->layernorm.x + p->layernorm.axis);
}

static double row_cost(const bz_problem *p)
{
    return 2 * (double)row_of(p);
}

static void layernorm_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->layernorm.x);
    add_parameters(p, l, BZ_ROLE_SCALE, BZ_ROLE_SHIFT, row_of(p));
    memcpy(y, p->layernorm.x, sizeof(bz_extent));
}

static bz_expected layernorm_at(bz_reference *r)
{
    int64_t n = row_of(r->problem);
    return normalized_in(r, n, r->index % n);
}

static void rmsnorm_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->rmsnorm.x);
    bz_operand_add(l, BZ_ROLE_SCALE, bz_parameter_dtype(p), 1, (int64_t[]){row_of(p)});
    memcpy(y, p->rmsnorm.x, sizeof(bz_extent));
}

static bz_expected rmsnorm_at(bz_reference *r)
{
    int64_t n = row_of(r->problem);
    double mean, variance;
    moments(r->value[0] + r->index / n * n, n, &mean, &variance);
    return normalized(r, 0, variance + mean * mean, r->index % n);
}

/* ---- lpnorm --------------------------------------------------------------------------------- */

static int64_t last_of(const bz_problem *p)
{
    return p->lpnorm.x[bz_extent_rank(p->lpnorm.x) - 1];
}

static int check_lpnorm(const bz_problem *p, bz_error *err)
{
    return p->lpnorm.p < 1 || p->lpnorm.p > 2 ? bz_problem_refuse(p, "p is 1 or 2", err) : 0;
}

static bz_expected lpnorm_at(bz_reference *r)
{
    int64_t n = last_of(r->problem);
    const float *row = r->value[0] + r->index / n * n;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += r->problem->lpnorm.p == 1 ? fabs((double)row[i]) : (double)row[i] * (double)row[i];
    double v = (double)r->value[0][r->index] / (r->problem->lpnorm.p == 1 ? sum : sqrt(sum));
    return (bz_expected){v, fabs(v)};
}

static double lpnorm_cost(const bz_problem *p)
{
    return (double)last_of(p);
}

/* ---- groupnorm ------------------------------------------------------------------------------ */

static int64_t group_of(const bz_problem *p)
{
    return bz_extent_count(p->groupnorm.x + 1) / p->groupnorm.group;
}

static void groupnorm_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->groupnorm.x);
    add_parameters(p, l, BZ_ROLE_SCALE, BZ_ROLE_SHIFT, p->groupnorm.x[1]);
    memcpy(y, p->groupnorm.x, sizeof(bz_extent));
}

static int check_groupnorm(const bz_problem *p, bz_error *err)
{
    if (bz_extent_rank(p->groupnorm.x) < 3 || p->groupnorm.group < 1 || p->groupnorm.x[1] % p->groupnorm.group)
        return bz_problem_refuse(p, "x has batch, channels, space, and the group divides the channels", err);
    return 0;
}

static bz_expected groupnorm_at(bz_reference *r)
{
    return normalized_in(r, group_of(r->problem), r->y[1]);
}

static double groupnorm_cost(const bz_problem *p)
{
    return 2 * (double)group_of(p);
}

/* ---- softmax -------------------------------------------------------------------------------- */

static bz_expected softmax_at(bz_reference *r)
{
    const int64_t *x = r->problem->softmax.x;
    int axis = (int)r->problem->softmax.axis;
    int64_t step = bz_extent_count(x + axis + 1), n = x[axis];
    const float *row = bz_reference_values(r, BZ_ROLE_X) + r->index / (step * n) * step * n + r->index % step;
    double most = -INFINITY, sum = 0, own = row[r->index / step % n * step];
    for (int64_t i = 0; i < n; i++)
        most = row[i * step] > most ? row[i * step] : most;
    for (int64_t i = 0; i < n; i++)
        sum += exp(row[i * step] - most);
    if (r->problem->kind == BZ_PROBLEM_LOGSOFTMAX)
        return (bz_expected){own - most - log(sum), fabs(own) + fabs(most) + 1};
    return (bz_expected){exp(own - most) / sum, exp(own - most) / sum};
}

static double softmax_cost(const bz_problem *p)
{
    return 10 * (double)p->softmax.x[p->softmax.axis];
}

/* ---- lrn ------------------------------------------------------------------------------------ */

static int check_lrn(const bz_problem *p, bz_error *err)
{
    if (bz_extent_rank(p->lrn.x) < 3 || p->lrn.size < 1)
        return bz_problem_refuse(p, "x has batch, channels, space; size is at least 1", err);
    return 0;
}

static double lrn_flops(const bz_problem *p, const bz_operand *list, double y)
{
    (void)list;
    return y * (2 * (double)p->lrn.size + 3);
}

static bz_expected lrn_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    const float *x = bz_reference_values(r, BZ_ROLE_X);
    int64_t plane = bz_extent_count(p->lrn.x + 2), before = (p->lrn.size - 1) / 2, after = p->lrn.size / 2;
    double sum = 0;
    for (int64_t c = y[1] - before; c <= y[1] + after; c++)
        if (c >= 0 && c < p->lrn.x[1])
            sum += pow(x[r->index + (c - y[1]) * plane], 2);
    double v = x[r->index] * pow(p->lrn.bias + (double)p->lrn.alpha / (double)p->lrn.size * sum, -(double)p->lrn.beta);
    return (bz_expected){v, fabs(v)};
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* clang-format off */
const bz_kind bz_kind_batchnorm = {.name = "batchnorm", .traits = BZ_TRAIT_NORMALIZATION | BZ_TRAIT_POST,
    .operands = batchnorm_operands, .check = check_batchnorm, .each = 2, .at = batchnorm_at, .member = {
    BZ_REQUIRED("x", EXTENT, batchnorm.x)}};

const bz_kind bz_kind_layernorm = {.name = "layernorm", .traits = BZ_TRAIT_NORMALIZATION,
    .operands = layernorm_operands, .check = check_axis, .each = 8, .at = layernorm_at, .cost = row_cost, .member = {
    BZ_REQUIRED("x", EXTENT, layernorm.x), BZ_REQUIRED("axis", INT, layernorm.axis)}};

const bz_kind bz_kind_rmsnorm = {.name = "rmsnorm", .traits = BZ_TRAIT_NORMALIZATION, .operands = rmsnorm_operands,
    .check = check_axis, .each = 4, .at = rmsnorm_at, .cost = row_cost, .member = {
    BZ_REQUIRED("x", EXTENT, rmsnorm.x), BZ_REQUIRED("axis", INT, rmsnorm.axis)}};

const bz_kind bz_kind_lpnorm = {.name = "lpnorm", .check = check_lpnorm, .each = 3, .at = lpnorm_at, .cost = lpnorm_cost,
    .member = {
    BZ_REQUIRED("x", EXTENT, lpnorm.x), BZ_USUAL("p", INT, lpnorm.p, 2)}};

const bz_kind bz_kind_groupnorm = {.name = "groupnorm", .traits = BZ_TRAIT_NORMALIZATION | BZ_TRAIT_ROUNDED_BETWEEN,
    .operands = groupnorm_operands, .check = check_groupnorm, .each = 8, .at = groupnorm_at, .cost = groupnorm_cost, .member = {
    BZ_REQUIRED("x", EXTENT, groupnorm.x), BZ_REQUIRED("group", INT, groupnorm.group)}};

const bz_kind bz_kind_softmax = {.name = "softmax", .check = check_axis, .each = 5, .at = softmax_at,
    .cost = softmax_cost, .member = {
    BZ_REQUIRED("x", EXTENT, softmax.x), BZ_REQUIRED("axis", INT, softmax.axis)}};

const bz_kind bz_kind_logsoftmax = {.name = "logsoftmax", .check = check_axis, .each = 5, .at = softmax_at,
    .cost = softmax_cost, .member = {
    BZ_REQUIRED("x", EXTENT, logsoftmax.x), BZ_REQUIRED("axis", INT, logsoftmax.axis)}};

const bz_kind bz_kind_lrn = {.name = "lrn", .check = check_lrn, .flops = lrn_flops, .at = lrn_at, .member = {
    BZ_REQUIRED("x", EXTENT, lrn.x), BZ_REQUIRED("size", INT, lrn.size), BZ_USUAL("alpha", REAL, lrn.alpha, 1e-4),
    BZ_USUAL("beta", REAL, lrn.beta, 0.75), BZ_USUAL("bias", REAL, lrn.bias, 1)}};
/* clang-format on */
