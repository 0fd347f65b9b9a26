/* Kinds that bring values to a scale that depends on their neighbours: normalizations and softmax. */
#include "runtime/kind.h"

#include <string.h>

static void add_parameters(const bz_problem *p, bz_operand_list *l, bz_role first, bz_role second, int64_t n)
{
    bz_operand_add(l, first, bz_parameter_dtype(p), 1, &n);
    bz_operand_add(l, second, bz_parameter_dtype(p), 1, &n);
}

/* Of layernorm, rmsnorm, softmax and logsoftmax, whose members are the same. */
int bz_problem_check_axis(const bz_problem *p, bz_error *err)
{
    return p->softmax.axis >= bz_extent_rank(p->softmax.x) ? bz_problem_refuse(p, "x has no such axis", err) : 0;
}

double bz_norm_epsilon(const bz_reference *r)
{
    return r->epsilon > 0 ? (double)r->epsilon : 1e-5; /* ONNX's default */
}

bz_norm bz_norm_of(const bz_problem *p)
{
    bz_norm n = {.x = p->batchnorm.x, .plane = 1};
    int64_t all = bz_extent_count(n.x);
    n.by_channel = p->kind == BZ_PROBLEM_BATCHNORM || p->kind == BZ_PROBLEM_BATCHNORM_GRAD ||
                   p->kind == BZ_PROBLEM_GROUPNORM || p->kind == BZ_PROBLEM_GROUPNORM_GRAD;
    if (n.by_channel)
        n.plane = bz_extent_count(n.x + 2);
    if (p->kind == BZ_PROBLEM_BATCHNORM || p->kind == BZ_PROBLEM_BATCHNORM_GRAD) {
        n.statistics = n.parameters = n.x[1];
        return n;
    }
    n.row = n.by_channel ? bz_extent_count(n.x + 1) / p->groupnorm.group : bz_extent_count(n.x + p->layernorm.axis);
    n.statistics = all / n.row;
    n.parameters = n.by_channel ? n.x[1] : n.row;
    return n;
}

int64_t bz_norm_statistic(const bz_norm *n, int64_t index)
{
    return n->row ? index / n->row : index / n->plane % n->x[1];
}

int64_t bz_norm_parameter(const bz_norm *n, int64_t index)
{
    return n->by_channel ? index / n->plane % n->x[1] : index % n->row;
}

static bz_norm_part channel(const bz_norm *n, int64_t c)
{
    return (bz_norm_part){c * n->plane, n->x[0], n->x[1] * n->plane, n->plane};
}

bz_norm_part bz_norm_with_statistic(const bz_norm *n, int64_t statistic)
{
    return n->row ? (bz_norm_part){statistic * n->row, 1, 0, n->row} : channel(n, statistic);
}

bz_norm_part bz_norm_with_parameter(const bz_norm *n, int64_t parameter)
{
    return n->by_channel ? channel(n, parameter) : (bz_norm_part){parameter, n->statistics, n->row, 1};
}

/* An rmsnorm has no mean; its variance is the mean square. */
void bz_norm_add_statistics(const bz_problem *p, bz_operand_list *l, bool results)
{
    bz_norm n = bz_norm_of(p);
    bool rms = p->kind == BZ_PROBLEM_RMSNORM || p->kind == BZ_PROBLEM_RMSNORM_GRAD;
    for (int i = rms; i < 2; i++) {
        bz_role role = i ? BZ_ROLE_VARIANCE : BZ_ROLE_MEAN;
        if (results)
            bz_operand_add_result(l, role, bz_parameter_dtype(p), 1, &n.statistics, -1);
        else
            bz_operand_add(l, role, bz_parameter_dtype(p), 1, &n.statistics)->constant = false;
    }
}

/* Mean and variance of the elements that share them. */
static void moments(const bz_reference *r, const bz_norm_part *part, double *mean, double *variance)
{
    double sum = 0, squares = 0, n = (double)part->blocks * (double)part->length;
    for (int64_t b = 0; b < part->blocks; b++)
        for (int64_t i = 0; i < part->length; i++)
            sum += r->value[0][part->start + b * part->step + i];
    *mean = sum / n;
    for (int64_t b = 0; b < part->blocks; b++)
        for (int64_t i = 0; i < part->length; i++) {
            double off = (double)r->value[0][part->start + b * part->step + i] - *mean;
            squares += off * off;
        }
    *variance = squares / n;
}

/* (x - mean) / √variance · scale + shift, with the parameters of that number; not all kinds have a shift. */
static bz_expected normalized(const bz_reference *r, double mean, double variance, int64_t parameter)
{
    const float *scales = bz_reference_values(r, BZ_ROLE_SCALE), *shifts = bz_reference_values(r, BZ_ROLE_SHIFT);
    double scale = scales[parameter], shift = shifts ? (double)shifts[parameter] : 0;
    double v = ((double)r->value[0][r->index] - mean) / sqrt(variance + bz_norm_epsilon(r)) * scale;
    return (bz_expected){.value = v + shift, .magnitude = fabs(v) + fabs(shift) + fabs(scale)};
}

/* By the statistics of x; or these themselves. */
static bz_expected normalized_by_itself(bz_reference *r)
{
    bz_norm n = bz_norm_of(r->problem);
    bz_role role = bz_reference_role(r);
    bool statistic = role == BZ_ROLE_MEAN || role == BZ_ROLE_VARIANCE;
    bool rms = r->problem->kind == BZ_PROBLEM_RMSNORM;
    bz_norm_part part = bz_norm_with_statistic(&n, statistic ? r->index : bz_norm_statistic(&n, r->index));
    double mean, variance;
    moments(r, &part, &mean, &variance);
    variance = rms ? variance + mean * mean : variance;
    if (role == BZ_ROLE_MEAN)
        return (bz_expected){.value = mean, .magnitude = 1};
    if (role == BZ_ROLE_VARIANCE)
        return (bz_expected){.value = variance, .magnitude = 1 + variance};
    return normalized(r, rms ? 0 : mean, variance, bz_norm_parameter(&n, r->index));
}

static void batchnorm_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    const int64_t *x = p->batchnorm.x;
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, x);
    if (!p->batchnorm.training)
        add_parameters(p, l, BZ_ROLE_MEAN, BZ_ROLE_VARIANCE, x[1]);
    add_parameters(p, l, BZ_ROLE_SCALE, BZ_ROLE_SHIFT, x[1]);
    if (p->batchnorm.training)
        bz_norm_add_statistics(p, l, true);
    memcpy(y, x, sizeof(bz_extent));
}

static int check_batchnorm(const bz_problem *p, bz_error *err)
{
    if (p->batchnorm.training && p->post[0].fn)
        return bz_problem_refuse(p, "in training it takes no post-operations", err);
    return bz_extent_rank(p->batchnorm.x) < 2 ? bz_problem_refuse(p, "x has at least batch and channels", err) : 0;
}

static bz_expected batchnorm_at(bz_reference *r)
{
    int64_t c = r->y[1];
    if (r->problem->batchnorm.training)
        return normalized_by_itself(r);
    return normalized(r, bz_reference_values(r, BZ_ROLE_MEAN)[c], bz_reference_values(r, BZ_ROLE_VARIANCE)[c], c);
}

static int64_t row_of(const bz_problem *p)
{
    return bz_extent_count(p->layernorm.x + p->layernorm.axis);
}

static double batchnorm_cost(const bz_problem *p)
{
    bz_norm n = bz_norm_of(p);
    return p->batchnorm.training ? 2 * (double)n.x[0] * (double)n.plane : 10;
}

static double row_cost(const bz_problem *p)
{
    return 2 * (double)row_of(p);
}

static void layernorm_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->layernorm.x);
    add_parameters(p, l, BZ_ROLE_SCALE, BZ_ROLE_SHIFT, row_of(p));
    if (p->layernorm.training)
        bz_norm_add_statistics(p, l, true);
    memcpy(y, p->layernorm.x, sizeof(bz_extent));
}

static void rmsnorm_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->rmsnorm.x);
    bz_operand_add(l, BZ_ROLE_SCALE, bz_parameter_dtype(p), 1, (int64_t[]){row_of(p)});
    if (p->rmsnorm.training)
        bz_norm_add_statistics(p, l, true);
    memcpy(y, p->rmsnorm.x, sizeof(bz_extent));
}

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
    return (bz_expected){.value = v, .magnitude = fabs(v)};
}

static double lpnorm_cost(const bz_problem *p)
{
    return (double)last_of(p);
}

static void groupnorm_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->groupnorm.x);
    add_parameters(p, l, BZ_ROLE_SCALE, BZ_ROLE_SHIFT, p->groupnorm.x[1]);
    if (p->groupnorm.training)
        bz_norm_add_statistics(p, l, true);
    memcpy(y, p->groupnorm.x, sizeof(bz_extent));
}

static int check_groupnorm(const bz_problem *p, bz_error *err)
{
    if (bz_extent_rank(p->groupnorm.x) < 3 || p->groupnorm.group < 1 || p->groupnorm.x[1] % p->groupnorm.group)
        return bz_problem_refuse(p, "x has batch, channels, space, and the group divides the channels", err);
    return 0;
}

static double groupnorm_cost(const bz_problem *p)
{
    int64_t group = bz_extent_count(p->groupnorm.x + 1) / p->groupnorm.group;
    return 2 * (double)group;
}

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
        return (bz_expected){.value = own - most - log(sum), .magnitude = fabs(own) + fabs(most) + 1};
    return (bz_expected){.value = exp(own - most) / sum, .magnitude = exp(own - most) / sum};
}

static double softmax_cost(const bz_problem *p)
{
    return 10 * (double)p->softmax.x[p->softmax.axis];
}

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
    return (bz_expected){.value = v, .magnitude = fabs(v)};
}

/* clang-format off */
const bz_kind bz_kind_batchnorm = {.name = "batchnorm", .traits = BZ_TRAIT_NORMALIZATION | BZ_TRAIT_POST,
    .operands = batchnorm_operands, .check = check_batchnorm, .each = 2, .at = batchnorm_at, .cost = batchnorm_cost, .member = {
    BZ_REQUIRED("x", EXTENT, batchnorm.x), BZ_OPTIONAL("training", FLAG, batchnorm.training, 0)}};

const bz_kind bz_kind_layernorm = {.name = "layernorm", .traits = BZ_TRAIT_NORMALIZATION,
    .operands = layernorm_operands, .check = bz_problem_check_axis, .each = 8, .at = normalized_by_itself, .cost = row_cost, .member = {
    BZ_REQUIRED("x", EXTENT, layernorm.x), BZ_REQUIRED("axis", INT, layernorm.axis),
    BZ_OPTIONAL("training", FLAG, layernorm.training, 0)}};

const bz_kind bz_kind_rmsnorm = {.name = "rmsnorm", .traits = BZ_TRAIT_NORMALIZATION, .operands = rmsnorm_operands,
    .check = bz_problem_check_axis, .each = 4, .at = normalized_by_itself, .cost = row_cost, .member = {
    BZ_REQUIRED("x", EXTENT, rmsnorm.x), BZ_REQUIRED("axis", INT, rmsnorm.axis),
    BZ_OPTIONAL("training", FLAG, rmsnorm.training, 0)}};

const bz_kind bz_kind_lpnorm = {.name = "lpnorm", .check = check_lpnorm, .each = 3, .at = lpnorm_at, .cost = lpnorm_cost,
    .member = {
    BZ_REQUIRED("x", EXTENT, lpnorm.x), BZ_USUAL("p", INT, lpnorm.p, 2)}};

const bz_kind bz_kind_groupnorm = {.name = "groupnorm", .traits = BZ_TRAIT_NORMALIZATION | BZ_TRAIT_ROUNDED_BETWEEN,
    .operands = groupnorm_operands, .check = check_groupnorm, .each = 8, .at = normalized_by_itself, .cost = groupnorm_cost, .member = {
    BZ_REQUIRED("x", EXTENT, groupnorm.x), BZ_REQUIRED("group", INT, groupnorm.group),
    BZ_OPTIONAL("training", FLAG, groupnorm.training, 0)}};

const bz_kind bz_kind_softmax = {.name = "softmax", .check = bz_problem_check_axis, .each = 5, .at = softmax_at,
    .cost = softmax_cost, .member = {
    BZ_REQUIRED("x", EXTENT, softmax.x), BZ_REQUIRED("axis", INT, softmax.axis)}};

const bz_kind bz_kind_logsoftmax = {.name = "logsoftmax", .check = bz_problem_check_axis, .each = 5, .at = softmax_at,
    .cost = softmax_cost, .member = {
    BZ_REQUIRED("x", EXTENT, logsoftmax.x), BZ_REQUIRED("axis", INT, logsoftmax.axis)}};

const bz_kind bz_kind_lrn = {.name = "lrn", .check = check_lrn, .flops = lrn_flops, .at = lrn_at, .member = {
    BZ_REQUIRED("x", EXTENT, lrn.x), BZ_REQUIRED("size", INT, lrn.size), BZ_USUAL("alpha", REAL, lrn.alpha, 1e-4),
    BZ_USUAL("beta", REAL, lrn.beta, 0.75), BZ_USUAL("bias", REAL, lrn.bias, 1)}};
/* clang-format on */
