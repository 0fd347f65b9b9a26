/* Kinds that only training has: gradients of softmax, the loss, the optimizer's step. */
#include "runtime/kind.h"

#include <string.h>

static void softmax_grad_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->softmax.x); /* what the softmax gave */
    bz_operand_add_shape(l, BZ_ROLE_DY, p->dtype, p->softmax.x);
    memcpy(y, p->softmax.x, sizeof(bz_extent));
}

/* softmax: y (dy - Σ y dy); its logarithm: dy - e^y Σ dy */
static bz_expected softmax_grad_at(bz_reference *r)
{
    const int64_t *x = r->problem->softmax.x, axis = r->problem->softmax.axis;
    int64_t step = bz_extent_count(x + axis + 1), n = x[axis], first = r->index - r->index / step % n * step;
    bool log_of = r->problem->kind == BZ_PROBLEM_LOGSOFTMAX_GRAD;
    bz_expected sum = {0};
    for (int64_t i = 0; i < n; i++) {
        double y = r->value[0][first + i * step], dy = r->value[1][first + i * step];
        bz_expected_add(&sum, log_of ? dy : y * dy);
    }
    double y = r->value[0][r->index], dy = r->value[1][r->index], by = log_of ? exp(y) : fabs(y);
    double v = log_of ? dy - exp(y) * sum.value : y * (dy - sum.value);
    return (bz_expected){.value = v, .magnitude = fabs(v) + by * sum.magnitude + fabs(dy) * (log_of ? 1 : by)};
}

static double softmax_grad_cost(const bz_problem *p)
{
    return 2 * (double)p->softmax.x[p->softmax.axis];
}

static const char *const REDUCTIONS[] = {"mean", "sum", "none", NULL};

/* The shape of the labels: x without its classes, dimension 1. */
static int label_shape(const bz_problem *p, int64_t *shape)
{
    int rank = bz_extent_rank(p->softmax_loss.x), n = 0;
    for (int i = 0; i < rank; i++)
        if (i != 1)
            shape[n++] = p->softmax_loss.x[i];
    return n;
}

static void loss_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_extent labels = {0};
    int n = label_shape(p, labels);
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->softmax_loss.x);
    bz_operand_add(l, BZ_ROLE_INDEX, p->dtype_w, n, labels);
    bz_operand_add_result(l, BZ_ROLE_MASK, p->dtype_y, bz_extent_rank(p->softmax_loss.x), p->softmax_loss.x, -1);
    y[0] = 1;
    if (p->softmax_loss.reduction == BZ_LOSS_NONE)
        memcpy(y, labels, sizeof labels);
}

static int check_loss(const bz_problem *p, bz_error *err)
{
    if (bz_extent_rank(p->softmax_loss.x) < 2 || p->softmax_loss.x[1] > BZ_NO_CLASS ||
        p->softmax_loss.ignore > BZ_NO_CLASS)
        return bz_problem_refuse(p, "x has a batch and not too many classes", err);
    if (p->dtype_w != BZ_I64 && p->dtype_w != BZ_I32)
        return bz_problem_refuse(p, "its labels are i64 or i32: dtype=f32:i64:f32", err);
    return 0;
}

static double loss_index(const bz_problem *p, int64_t at, uint64_t random)
{
    (void)at;
    return (double)(random % (uint64_t)p->softmax_loss.x[1]);
}

/* Where the classes of label i begin. */
static int64_t classes_of(const bz_problem *p, int64_t i, int64_t *step)
{
    *step = bz_extent_count(p->softmax_loss.x + 2);
    return i / *step * *step * p->softmax_loss.x[1] + i % *step;
}

/* The logarithm of the sum of exponentials over the classes that begin there. */
static double log_sum(const float *x, int64_t step, int64_t n)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, x[i * step]);
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i * step] - most);
    return most + log(sum);
}

/* Labels of the class that is ignored count for nothing: neither in a sum nor in what a mean divides by. */
static bool counts(const bz_problem *p, float label)
{
    return (int64_t)label != p->softmax_loss.ignore;
}

/* What the sum over labels is divided by. */
static double divisor(const bz_problem *p, const float *label, int64_t n)
{
    double by = 0;
    if (p->softmax_loss.reduction != BZ_LOSS_MEAN)
        return 1;
    for (int64_t i = 0; i < n; i++)
        by += counts(p, label[i]);
    return by;
}

static bz_expected loss_of(const bz_reference *r, int64_t label)
{
    const bz_problem *p = r->problem;
    if (!counts(p, r->value[1][label]))
        return (bz_expected){0};
    int64_t step, from = classes_of(p, label, &step);
    double v = log_sum(r->value[0] + from, step, p->softmax_loss.x[1]);
    double x = r->value[0][from + (int64_t)r->value[1][label] * step];
    return (bz_expected){.value = v - x, .magnitude = fabs(v) + fabs(x)};
}

static bz_expected loss_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    int64_t labels = r->operand[1].count, step;
    if (bz_reference_role(r) == BZ_ROLE_MASK) {
        step = bz_extent_count(p->softmax_loss.x + 2);
        int64_t label = r->index / (step * p->softmax_loss.x[1]) * step + r->index % step;
        double v = r->value[0][r->index],
               sum = log_sum(r->value[0] + classes_of(p, label, &step), step, p->softmax_loss.x[1]);
        return (bz_expected){.value = v - sum, .magnitude = fabs(v) + fabs(sum)};
    }
    if (p->softmax_loss.reduction == BZ_LOSS_NONE)
        return loss_of(r, r->index);
    bz_expected all = {0};
    for (int64_t i = 0; i < labels; i++) {
        bz_expected e = loss_of(r, i);
        all.value += e.value, all.magnitude += e.magnitude;
    }
    double by = divisor(p, r->value[1], labels);
    return (bz_expected){.value = all.value / by, .magnitude = all.magnitude / by};
}

static double loss_flops(const bz_problem *p, const bz_operand *list, double y)
{
    (void)p, (void)y;
    return 5 * (double)list[0].count;
}

static double loss_cost(const bz_problem *p)
{
    return p->softmax_loss.reduction == BZ_LOSS_NONE ? 2 * (double)p->softmax_loss.x[1]
                                                     : 2 * (double)bz_extent_count(p->softmax_loss.x);
}

static void loss_grad_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_extent labels = {0};
    int n = label_shape(p, labels);
    bool each = p->softmax_loss.reduction == BZ_LOSS_NONE;
    bz_operand_add(l, BZ_ROLE_DY, p->dtype, each ? n : 1, each ? labels : (int64_t[]){1});
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->softmax_loss.x); /* logarithms of the softmax */
    bz_operand_add(l, BZ_ROLE_INDEX, p->dtype_w, n, labels);
    memcpy(y, p->softmax_loss.x, sizeof(bz_extent));
}

/* (e^x - 1 where it is the label's class) dy / number of labels that count */
static bz_expected loss_grad_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    int64_t step = bz_extent_count(p->softmax_loss.x + 2), c = r->index / step % p->softmax_loss.x[1];
    int64_t label = r->index / (step * p->softmax_loss.x[1]) * step + r->index % step;
    double dy = r->value[0][p->softmax_loss.reduction == BZ_LOSS_NONE ? label : 0];
    if (!counts(p, r->value[2][label]))
        return (bz_expected){0};
    double by = divisor(p, r->value[2], r->operand[2].count);
    double e = exp((double)r->value[1][r->index]), one = (int64_t)r->value[2][label] == c;
    return (bz_expected){.value = (e - one) * dy / by, .magnitude = (e + one) * fabs(dy) / by};
}

static const char *const RULES[] = {"sgd", "momentum", "adam", "adamw", NULL};

static void update_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    const int64_t *x = p->update.x;
    int rank = bz_extent_rank(x), states = p->update.rule == BZ_RULE_SGD        ? 0
                                           : p->update.rule == BZ_RULE_MOMENTUM ? 1
                                                                                : 2;
    static const bz_role STATE[] = {BZ_ROLE_M, BZ_ROLE_N};
    bz_operand_add(l, BZ_ROLE_X, p->dtype, rank, x);
    bz_operand_add(l, BZ_ROLE_DY, p->dtype_w, rank, x);
    for (int i = 0; i < states; i++)
        bz_operand_add(l, STATE[i], p->dtype, rank, x);
    bz_operand_add(l, BZ_ROLE_RATE, BZ_F32, 1, (int64_t[]){1});
    if (states == 2)
        bz_operand_add(l, BZ_ROLE_STEP, BZ_I64, 1, (int64_t[]){1});
    for (int i = 0; i < states; i++)
        bz_operand_add_result(l, STATE[i], p->dtype, rank, x, 2 + i);
    memcpy(y, x, sizeof(bz_extent));
}

static int check_update(const bz_problem *p, bz_error *err)
{
    bool averages = p->update.rule >= BZ_RULE_ADAM;
    if (p->update.alpha < 0 || p->update.beta < 0 || (averages && (p->update.alpha >= 1 || p->update.beta >= 1)))
        return bz_problem_refuse(p, "alpha and beta are at least 0, and averages take less than 1", err);
    return p->dtype_y != p->dtype ? bz_problem_refuse(p, "weights stay in their type", err) : 0;
}

static bz_expected update_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    double w = r->value[0][r->index], g = r->value[1][r->index], decay = p->update.decay;
    double alpha = p->update.alpha, beta = p->update.beta, rate = *bz_reference_values(r, BZ_ROLE_RATE);
    if (p->update.rule != BZ_RULE_ADAMW)
        g += decay * w;
    else
        w -= rate * decay * w;
    if (p->update.rule == BZ_RULE_SGD)
        return (bz_expected){.value = w - rate * g, .magnitude = fabs(w) + fabs(g)};
    double m = r->value[2][r->index];
    if (p->update.rule == BZ_RULE_MOMENTUM) {
        m = alpha * m + g;
        double step = p->update.nesterov ? g + alpha * m : m, v = w - rate * step;
        return (bz_expected){.value = bz_reference_role(r) == BZ_ROLE_M ? m : v,
                             .magnitude = fabs(w) + fabs(g) + fabs(m)};
    }
    double n = r->value[3][r->index], steps = *bz_reference_values(r, BZ_ROLE_STEP);
    double eps = r->epsilon > 0 ? (double)r->epsilon : 1e-8;
    m = alpha * m + (1 - alpha) * g;
    n = beta * n + (1 - beta) * g * g;
    double away = rate * m / (1 - pow(alpha, steps)) / (sqrt(n / (1 - pow(beta, steps))) + eps);
    double v = bz_reference_role(r) == BZ_ROLE_M ? m : bz_reference_role(r) == BZ_ROLE_N ? n : w - away;
    return (bz_expected){.value = v, .magnitude = fabs(v) + fabs(m) + fabs(away)};
}

static double update_flops(const bz_problem *p, const bz_operand *list, double y)
{
    static const double EACH[] = {2, 4, 12, 14};
    (void)list;
    return (EACH[p->update.rule] + (p->update.decay != 0 ? 2 : 0)) * y;
}

/* clang-format off */
#define SOFTMAX_GRAD(text) { \
    .name = (text), .field = "softmax", .traits = BZ_TRAIT_GRADIENT, .operands = softmax_grad_operands, \
    .check = bz_problem_check_axis, .each = 4, .at = softmax_grad_at, .cost = softmax_grad_cost, .member = { \
    BZ_REQUIRED("x", EXTENT, softmax.x), BZ_REQUIRED("axis", INT, softmax.axis)}}

const bz_kind bz_kind_softmax_grad = SOFTMAX_GRAD("softmax_grad");
const bz_kind bz_kind_logsoftmax_grad = SOFTMAX_GRAD("logsoftmax_grad");

const bz_kind bz_kind_softmax_loss = {.name = "softmax_loss", .operands = loss_operands, .check = check_loss,
    .flops = loss_flops, .at = loss_at, .cost = loss_cost, .index = loss_index, .member = {
    BZ_REQUIRED("x", EXTENT, softmax_loss.x), BZ_NAMED("reduction", softmax_loss.reduction, REDUCTIONS, "BZ_LOSS_"),
    BZ_OPTIONAL("ignore", INT, softmax_loss.ignore, BZ_NO_CLASS)}};

const bz_kind bz_kind_softmax_loss_grad = {.name = "softmax_loss_grad", .field = "softmax_loss", .traits = BZ_TRAIT_GRADIENT,
    .operands = loss_grad_operands, .check = check_loss, .each = 4, .at = loss_grad_at, .index = loss_index, .member = {
    BZ_REQUIRED("x", EXTENT, softmax_loss.x), BZ_NAMED("reduction", softmax_loss.reduction, REDUCTIONS, "BZ_LOSS_"),
    BZ_OPTIONAL("ignore", INT, softmax_loss.ignore, BZ_NO_CLASS)}};

const bz_kind bz_kind_update = {.name = "update", .operands = update_operands, .check = check_update, .flops = update_flops,
    .at = update_at, .member = {
    BZ_NAMED("rule", update.rule, RULES, "BZ_RULE_"), BZ_REQUIRED("x", EXTENT, update.x),
    BZ_OPTIONAL("alpha", REAL, update.alpha, 0.9), BZ_OPTIONAL("beta", REAL, update.beta, 0.999),
    BZ_OPTIONAL("decay", REAL, update.decay, 0), BZ_OPTIONAL("nesterov", FLAG, update.nesterov, 0)}};
/* clang-format on */
