/* Gradients of normalizations. With x̂ = (x - mean) / √(variance + ε) and g = dy · scale:
 *
 *   of x       (g - mean(g) - x̂ mean(g x̂)) / √(variance + ε), means over the elements that share a mean;
 *              an rmsnorm has no mean to subtract, nor the middle term
 *   of scale   Σ dy x̂ over the elements that share a scale
 *   of shift   Σ dy
 */
#include "runtime/kind.h"

#include <string.h>

static bool is_rms(const bz_problem *p)
{
    return p->kind == BZ_PROBLEM_RMSNORM_GRAD;
}

static void norm_grad_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_norm n = bz_norm_of(p);
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, n.x);
    bz_operand_add_shape(l, BZ_ROLE_DY, p->dtype, n.x);
    bz_norm_add_statistics(p, l, false);
    bz_operand_add(l, BZ_ROLE_SCALE, bz_parameter_dtype(p), 1, &n.parameters)->constant = false;
    bz_operand_add_result(l, BZ_ROLE_SCALE, bz_parameter_dtype(p), 1, &n.parameters, -1);
    if (!is_rms(p))
        bz_operand_add_result(l, BZ_ROLE_SHIFT, bz_parameter_dtype(p), 1, &n.parameters, -1);
    memcpy(y, n.x, sizeof(bz_extent));
}

static int check_norm_grad(const bz_problem *p, bz_error *err)
{
    int rank = bz_extent_rank(p->batchnorm.x);
    if (p->kind == BZ_PROBLEM_BATCHNORM_GRAD)
        return rank < 2 ? bz_problem_refuse(p, "x has at least batch and channels", err) : 0;
    if (p->kind != BZ_PROBLEM_GROUPNORM_GRAD)
        return p->layernorm.axis >= rank ? bz_problem_refuse(p, "x has no such axis", err) : 0;
    if (rank < 3 || p->groupnorm.group < 1 || p->groupnorm.x[1] % p->groupnorm.group)
        return bz_problem_refuse(p, "x has batch, channels, space, and the group divides the channels", err);
    return 0;
}

/* What a reference needs of one element. */
typedef struct element {
    double normal, dy, factor, scale; /* x̂, dy, 1 / √(variance + ε) */
} element;

static element element_at(const bz_reference *r, const bz_norm *n, int64_t index)
{
    const float *mean = bz_reference_values(r, BZ_ROLE_MEAN), *variance = bz_reference_values(r, BZ_ROLE_VARIANCE);
    int64_t s = bz_norm_statistic(n, index);
    element e = {.dy = r->value[1][index], .factor = 1 / sqrt((double)variance[s] + bz_norm_epsilon(r))};
    e.normal = ((double)r->value[0][index] - (mean ? (double)mean[s] : 0)) * e.factor;
    e.scale = bz_reference_values(r, BZ_ROLE_SCALE)[bz_norm_parameter(n, index)];
    return e;
}

static bz_expected parameter_at(const bz_reference *r, const bz_norm *n, bool shift)
{
    bz_norm_part part = bz_norm_with_parameter(n, r->index);
    bz_expected sum = {0};
    for (int64_t b = 0; b < part.blocks; b++)
        for (int64_t i = 0; i < part.length; i++) {
            element e = element_at(r, n, part.start + b * part.step + i);
            bz_expected_add(&sum, shift ? e.dy : e.dy * e.normal);
        }
    return sum;
}

static bz_expected norm_grad_at(bz_reference *r)
{
    bz_norm n = bz_norm_of(r->problem);
    bz_role role = bz_reference_role(r);
    if (role == BZ_ROLE_SCALE || role == BZ_ROLE_SHIFT)
        return parameter_at(r, &n, role == BZ_ROLE_SHIFT);
    bz_norm_part part = bz_norm_with_statistic(&n, bz_norm_statistic(&n, r->index));
    element own = element_at(r, &n, r->index);
    double plain = 0, along = 0, count = (double)part.blocks * (double)part.length;
    for (int64_t b = 0; b < part.blocks; b++)
        for (int64_t i = 0; i < part.length; i++) {
            element e = element_at(r, &n, part.start + b * part.step + i);
            plain += e.dy * e.scale / count;
            along += e.dy * e.scale * e.normal / count;
        }
    plain = is_rms(r->problem) ? 0 : plain;
    double v = own.dy * own.scale - plain - own.normal * along;
    double size = fabs(own.dy * own.scale) + fabs(plain) + fabs(own.normal * along) + fabs(own.scale);
    return (bz_expected){.value = v * own.factor, .magnitude = size * own.factor};
}

static double norm_grad_cost(const bz_problem *p)
{
    bz_norm n = bz_norm_of(p);
    double all = (double)bz_extent_count(n.x);
    return 4 * fmax(all / (double)n.statistics, all / (double)n.parameters);
}

/* clang-format off */
#define NORM_GRAD(text, member_of, ...) { \
    .name = (text), .field = (member_of), .traits = BZ_TRAIT_NORMALIZATION | BZ_TRAIT_GRADIENT, \
    .operands = norm_grad_operands, .check = check_norm_grad, .each = 12, .at = norm_grad_at, .cost = norm_grad_cost, \
    .member = {__VA_ARGS__}}

const bz_kind bz_kind_batchnorm_grad = NORM_GRAD("batchnorm_grad", "batchnorm", BZ_REQUIRED("x", EXTENT, batchnorm.x));
const bz_kind bz_kind_layernorm_grad = NORM_GRAD("layernorm_grad", "layernorm", BZ_REQUIRED("x", EXTENT, layernorm.x),
    BZ_REQUIRED("axis", INT, layernorm.axis));
const bz_kind bz_kind_rmsnorm_grad = NORM_GRAD("rmsnorm_grad", "rmsnorm", BZ_REQUIRED("x", EXTENT, rmsnorm.x),
    BZ_REQUIRED("axis", INT, rmsnorm.axis));
const bz_kind bz_kind_groupnorm_grad = NORM_GRAD("groupnorm_grad", "groupnorm", BZ_REQUIRED("x", EXTENT, groupnorm.x),
    BZ_REQUIRED("group", INT, groupnorm.group));
/* clang-format on */
