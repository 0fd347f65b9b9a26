/* Loops of the softmax's gradient, and of the cross entropy with its own. */
#include "runtime/loops/parts.h"

#include <math.h>

static void softmax_grad_row(bz_parts *t, int64_t row, int thread)
{
    int64_t n = t->length;
    bool log_of = t->problem->kind == BZ_PROBLEM_LOGSOFTMAX_GRAD;
    const float *y = from(t, 0, row * n, n, thread, 0), *dy = from(t, 1, row * n, n, thread, 1);
    float *dx = to(t, t->y, row * n, thread, 2);
    double sum = log_of ? bz_kernels_sum(t->kernels, BZ_FN_SUM, dy, n) : 0;
    for (int64_t i = 0; i < n && !log_of; i += BLOCK)
        sum += (double)t->own->dot(y + i, dy + i, n - i < BLOCK ? n - i : BLOCK);
    float all = (float)sum;
    (log_of ? t->own->logsoftmax_grad : t->own->softmax_grad)(y, dy, &all, false, dx, n);
    done(t, t->y, row * n, n, dx);
}

/* Along an axis that is not the last: some columns side by side. */
static void softmax_grad_columns(bz_parts *t, int64_t part, int thread)
{
    const int64_t *x = t->problem->softmax.x, axis = t->problem->softmax.axis, inner = t->inner;
    int64_t in_row = pieces(inner, COLUMNS), at = part % in_row * COLUMNS;
    int64_t n = inner - at < COLUMNS ? inner - at : COLUMNS;
    bool log_of = t->problem->kind == BZ_PROBLEM_LOGSOFTMAX_GRAD;
    float sum[COLUMNS] = {0};
    at += part / in_row * x[axis] * inner;
    for (int64_t i = 0; i < x[axis]; i++) {
        const float *y = from(t, 0, at + i * inner, n, thread, 0), *dy = from(t, 1, at + i * inner, n, thread, 1);
        if (log_of)
            t->kernels->reduce_into(BZ_FN_SUM, dy, sum, n);
        else
            t->own->add_product(y, dy, sum, n);
    }
    for (int64_t i = 0; i < x[axis]; i++) {
        const float *y = from(t, 0, at + i * inner, n, thread, 0), *dy = from(t, 1, at + i * inner, n, thread, 1);
        float *dx = to(t, t->y, at + i * inner, thread, 2);
        (log_of ? t->own->logsoftmax_grad : t->own->softmax_grad)(y, dy, sum, true, dx, n);
        done(t, t->y, at + i * inner, n, dx);
    }
}

static void open_softmax_grad(bz_parts *t)
{
    open_axis(t, t->problem->softmax.x, t->problem->softmax.axis, softmax_grad_row, softmax_grad_columns);
}

/* Labels from one on as classes; -1 for what counts for nothing: a label that is no class, or the one that is ignored. */
static void read_classes(const bz_parts *t, int operand, int64_t label, int64_t n, int32_t *class)
{
    const void *labels = bz_plain_at(t->plain, operand, t->copy);
    int64_t classes = t->problem->softmax_loss.x[1], ignore = t->problem->softmax_loss.ignore;
    for (int64_t i = 0; i < n; i++) {
        int64_t c = label_of(t, labels, label + i);
        class[i] = c >= 0 && c < classes && c != ignore ? (int32_t)c : -1;
    }
}

/* What a label's loss is multiplied by. */
static void find_share(bz_parts *t)
{
    int labels = operand_of(t, BZ_ROLE_INDEX, false);
    int64_t all = t->job->operand[labels].count, counted = 0;
    int32_t class[COLUMNS];
    for (int64_t at = 0; at < all; at += COLUMNS) {
        int64_t n = all - at < COLUMNS ? all - at : COLUMNS;
        read_classes(t, labels, at, n, class);
        for (int64_t i = 0; i < n; i++)
            counted += class[i] >= 0;
    }
    t->share = t->problem->softmax_loss.reduction == BZ_LOSS_MEAN ? 1 / (double)counted : 1;
}

/* Losses of n labels from one on. */
static void take_losses(bz_parts *t, int thread, int64_t label, const float *loss, int64_t n)
{
    double sum = 0;
    float *each = t->problem->softmax_loss.reduction == BZ_LOSS_NONE ? parameter(t, BZ_ROLE_Y, true) + label : NULL;
    for (int64_t i = 0; i < n; i++)
        if (each)
            each[i] = loss[i];
        else
            sum += (double)loss[i];
    t->sums[2 * thread] += (float)sum;
}

/* The classes of one label, one behind the other. */
static void loss_row(bz_parts *t, int64_t row, int thread)
{
    int64_t n = t->length;
    int32_t class;
    const float *x = from(t, 0, row * n, n, thread, 0);
    float *y = to(t, 2, row * n, thread, 1), most = t->kernels->reduce(BZ_FN_MAX, x, n);
    double sum = bz_kernels_exponentials(t->kernels, x, most, NULL, n);
    t->kernels->unary(BZ_FN_LINEAR, 1, -most - logf((float)sum), x, y, n);
    read_classes(t, 1, row, 1, &class);
    take_losses(t, thread, row, &(float){class >= 0 ? -y[class] : 0}, 1);
    done(t, 2, row * n, n, y);
}

/* Some labels side by side, as those of pixels lie. */
static void loss_columns(bz_parts *t, int64_t part, int thread)
{
    const int64_t *x = t->problem->softmax_loss.x;
    int64_t inner = bz_extent_count(x + 2), in_row = pieces(inner, COLUMNS), column = part % in_row * COLUMNS;
    int64_t n = inner - column < COLUMNS ? inner - column : COLUMNS, batch = part / in_row;
    int64_t at = batch * x[1] * inner + column;
    int64_t label = batch * inner + column;
    int32_t class[COLUMNS];
    float most[COLUMNS], sum[COLUMNS] = {0}, value[COLUMNS], loss[COLUMNS] = {0};
    read_classes(t, 1, label, n, class);
    for (int64_t i = 0; i < n; i++)
        most[i] = -INFINITY;
    for (int64_t c = 0; c < x[1]; c++)
        t->kernels->reduce_into(BZ_FN_MAX, from(t, 0, at + c * inner, n, thread, 0), most, n);
    for (int64_t c = 0; c < x[1]; c++) {
        t->kernels->binary(BZ_FN_SUB, from(t, 0, at + c * inner, n, thread, 0), 1, most, 1, value, n);
        t->kernels->unary(BZ_FN_EXP, 0, 0, value, value, n);
        t->kernels->reduce_into(BZ_FN_SUM, value, sum, n);
    }
    t->kernels->unary(BZ_FN_LOG, 0, 0, sum, sum, n);
    t->kernels->binary(BZ_FN_ADD, sum, 1, most, 1, sum, n);
    for (int32_t c = 0; c < x[1]; c++) {
        float *y = to(t, 2, at + c * inner, thread, 1);
        t->kernels->binary(BZ_FN_SUB, from(t, 0, at + c * inner, n, thread, 0), 1, sum, 1, y, n);
        t->own->loss(class, c, y, loss, n);
        done(t, 2, at + c * inner, n, y);
    }
    take_losses(t, thread, label, loss, n);
}

static void finish_loss(bz_parts *t)
{
    double sum = 0;
    if (t->problem->softmax_loss.reduction == BZ_LOSS_NONE)
        return;
    for (int i = 0; i < t->job->setting->threads; i++)
        sum += (double)t->sums[2 * i];
    find_share(t);
    *parameter(t, BZ_ROLE_Y, true) = (float)(sum * t->share);
}

static void open_loss(bz_parts *t)
{
    open_axis(t, t->problem->softmax_loss.x, 1, loss_row, loss_columns);
    t->n_sums = 1;
}

/* A batch entry: e^x dy / labels, then less by that share where the label is; 0 where the label does not count. */
static void loss_grad_entry(bz_parts *t, int64_t batch, int thread)
{
    const bz_problem *p = t->problem;
    const int64_t *x = p->softmax_loss.x, inner = bz_extent_count(x + 2);
    int64_t n = t->length, at = batch * n;
    bool each = p->softmax_loss.reduction == BZ_LOSS_NONE;
    const float *dy = from(t, 0, each ? batch * inner : 0, each ? inner : 1, thread, 0);
    const float *logarithms = from(t, 1, at, n, thread, 1);
    float *dx = to(t, t->y, at, thread, 2), one = each ? 1 : *dy * (float)t->share;
    t->kernels->unary(BZ_FN_EXP, 0, 0, logarithms, dx, n);
    if (each)
        for (int64_t c = 0; c < x[1]; c++)
            t->kernels->binary(BZ_FN_MUL, dx + c * inner, 1, dy, 1, dx + c * inner, inner);
    else
        t->kernels->unary(BZ_FN_LINEAR, one, 0, dx, dx, n);
    for (int64_t i = 0; i < inner; i++) {
        int32_t c;
        read_classes(t, 2, batch * inner + i, 1, &c);
        if (c >= 0)
            dx[c * inner + i] -= each ? dy[i] : one;
        else
            for (int64_t k = 0; k < x[1]; k++)
                dx[k * inner + i] = 0;
    }
    done(t, t->y, at, n, dx);
}

static void open_loss_grad(bz_parts *t)
{
    t->parts = t->problem->softmax_loss.x[0];
    t->length = bz_extent_count(t->problem->softmax_loss.x + 1);
}

const bz_part_kind bz_part_losses[] = {
    {BZ_PROBLEM_SOFTMAX_GRAD, PART_DATA, open_softmax_grad, softmax_grad_row, NULL, NULL},
    {BZ_PROBLEM_LOGSOFTMAX_GRAD, PART_DATA, open_softmax_grad, softmax_grad_row, NULL, NULL},
    {BZ_PROBLEM_SOFTMAX_LOSS, PART_DATA, open_loss, loss_row, clear_sums, finish_loss},
    {BZ_PROBLEM_SOFTMAX_LOSS_GRAD, PART_DATA, open_loss_grad, loss_grad_entry, find_share, NULL},
    {.kind = BZ_PROBLEM_NONE},
};
