/* Loops of problems that only training has. Work is cut into parts that threads share: rows, channels, blocks of elements.
 * Elements are f32 while they are worked on: where they lie, or widened into the thread's room. */
#include "runtime/kind.h"
#include "runtime/loops/kernels.h"
#include "runtime/loops/loops.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, COLUMNS = 512, ROOMS = 4 };

typedef void part_function(bz_training *t, int64_t part, int thread);

struct bz_training {
    const bz_job *job;
    const bz_problem *problem;
    const bz_kernels *kernels;
    const bz_training_kernels *own;
    part_function *one;
    void (*begin)(bz_training *t); /* before the parts, */
    void (*end)(bz_training *t);   /* and behind them; NULL: nothing */
    int64_t parts, length;         /* length: elements of a row */
    int y;                         /* the result */
    float epsilon;
    float *room; /* [threads][ROOMS][length] */
    float *sums; /* [threads][2 · n_sums]: of a normalization's scale and shift; partial losses */
    int64_t n_sums;
    bz_norm norm;
    bz_update update;
    uint32_t seed; /* dropout: another one each time */
    const bz_plain *plain;
    int copy;
};

/* ---- operands ------------------------------------------------------------------------------- */

static int operand_of(const bz_training *t, bz_role role, bool result)
{
    for (int i = 0; i < t->job->n_operands; i++)
        if (t->job->operand[i].role == role && t->job->operand[i].result == result)
            return i;
    return -1;
}

/* In f32, as parameters are; NULL where there is none. */
static float *parameter(const bz_training *t, bz_role role, bool result)
{
    int i = operand_of(t, role, result);
    return i < 0 ? NULL : bz_plain_at(t->plain, i, t->copy);
}

static float *room_of(const bz_training *t, int thread, int number)
{
    return t->room + ((int64_t)thread * ROOMS + number) * t->length;
}

static const float *from(const bz_training *t, int operand, int64_t at, int64_t n, int thread, int room)
{
    return bz_row_from(t->plain, operand, t->copy, at, n, room_of(t, thread, room));
}

static float *to(const bz_training *t, int operand, int64_t at, int thread, int room)
{
    return bz_row_to(t->plain, operand, t->copy, at, room_of(t, thread, room));
}

static void done(const bz_training *t, int operand, int64_t at, int64_t n, const float *row)
{
    bz_row_done(t->plain, operand, t->copy, at, n, row);
}

static int64_t pieces(int64_t all, int64_t length)
{
    return (all + length - 1) / length;
}

static int64_t block_of(const bz_training *t, int64_t part, int64_t *at)
{
    int64_t all = t->job->operand[t->y].count;
    *at = part * BLOCK;
    return all - *at < BLOCK ? all - *at : BLOCK;
}

static void open_blocks(bz_training *t)
{
    t->length = BLOCK;
    t->parts = pieces(t->job->operand[t->y].count, BLOCK);
}

/* ---- functions, dropout --------------------------------------------------------------------- */

static void slope_block(bz_training *t, int64_t part, int thread)
{
    const bz_problem *p = t->problem;
    int64_t at, n = block_of(t, part, &at);
    const float *x = from(t, 0, at, n, thread, 0), *dy = from(t, 1, at, n, thread, 1);
    float *dx = to(t, t->y, at, thread, 2), alpha = p->activation.alpha, beta = p->activation.beta;
    if (!t->own->slope(p->activation.fn, p->activation.of_y, alpha, beta, x, dy, dx, n))
        for (int64_t i = 0; i < n; i++) /* powers */
            dx[i] = dy[i] * (float)bz_fn_slope(p->activation.fn, (double)x[i], (double)alpha, (double)beta);
    done(t, t->y, at, n, dx);
}

static void dropout_block(bz_training *t, int64_t part, int thread)
{
    const bz_problem *p = t->problem;
    int64_t at, n = block_of(t, part, &at);
    double ratio = (double)p->dropout.ratio;
    uint8_t mask[BLOCK], *kept = mask;
    int given = operand_of(t, BZ_ROLE_MASK, p->kind == BZ_PROBLEM_DROPOUT);
    const float *x = from(t, 0, at, n, thread, 0);
    float *y = to(t, t->y, at, thread, 1);
    if (given >= 0)
        kept = (uint8_t *)bz_plain_at(t->plain, given, t->copy) + at;
    if (p->kind == BZ_PROBLEM_DROPOUT)
        t->own->chance((uint32_t)(ratio * 0x1p32), t->seed, at, kept, n);
    t->own->mask(x, kept, (float)(1 / (1 - ratio)), y, n);
    done(t, t->y, at, n, y);
}

static void another_seed(bz_training *t)
{
    t->seed = t->seed * 747796405U + 2891336453U;
}

/* ---- normalizations ------------------------------------------------------------------------- */

/* A channel: its planes lie apart. Once for the mean, once for the variance, once for the result. */
static void batchnorm_channel(bz_training *t, int64_t c, int thread)
{
    bz_norm_part part = bz_norm_with_statistic(&t->norm, c);
    double sum = 0, squares = 0, n = (double)part.blocks * (double)part.length;
    for (int64_t b = 0; b < part.blocks; b++)
        sum += bz_kernels_sum(t->kernels, BZ_FN_SUM, from(t, 0, part.start + b * part.step, part.length, thread, 0),
                              part.length);
    float mean = (float)(sum / n);
    for (int64_t b = 0; b < part.blocks; b++)
        squares += bz_kernels_squares(t->kernels, from(t, 0, part.start + b * part.step, part.length, thread, 0), mean,
                                      part.length);
    float by = parameter(t, BZ_ROLE_SCALE, false)[c] / (float)sqrt(squares / n + (double)t->epsilon);
    parameter(t, BZ_ROLE_MEAN, true)[c] = mean;
    parameter(t, BZ_ROLE_VARIANCE, true)[c] = (float)(squares / n);
    for (int64_t b = 0; b < part.blocks; b++) {
        int64_t at = part.start + b * part.step;
        float *y = to(t, t->y, at, thread, 1);
        t->kernels->unary(BZ_FN_LINEAR, by, parameter(t, BZ_ROLE_SHIFT, false)[c] - mean * by,
                          from(t, 0, at, part.length, thread, 0), y, part.length);
        done(t, t->y, at, part.length, y);
    }
}

/* Σ g and Σ g x̂ of n elements, added to `sum`. */
static void add_sums(const bz_training *t, const float *x, float mean, float factor, const float *dy,
                     const float *scale, int64_t n, double sum[2])
{
    float some[2];
    for (int64_t i = 0; i < n; i += BLOCK) {
        t->own->norm_sums(x + i, mean, factor, dy + i, scale ? scale + i : NULL, n - i < BLOCK ? n - i : BLOCK, some);
        sum[0] += (double)some[0], sum[1] += (double)some[1];
    }
}

static float factor_of(const bz_training *t, int64_t statistic)
{
    return (float)(1 / sqrt((double)parameter(t, BZ_ROLE_VARIANCE, false)[statistic] + (double)t->epsilon));
}

static float mean_of(const bz_training *t, int64_t statistic)
{
    const float *mean = parameter(t, BZ_ROLE_MEAN, false);
    return mean ? mean[statistic] : 0;
}

static void batchnorm_grad_channel(bz_training *t, int64_t c, int thread)
{
    bz_norm_part part = bz_norm_with_statistic(&t->norm, c);
    double sum[2] = {0}, n = (double)part.blocks * (double)part.length;
    float mean = mean_of(t, c), factor = factor_of(t, c), scale = parameter(t, BZ_ROLE_SCALE, false)[c];
    for (int64_t b = 0; b < part.blocks; b++) {
        int64_t at = part.start + b * part.step;
        add_sums(t, from(t, 0, at, part.length, thread, 0), mean, factor, from(t, 1, at, part.length, thread, 1), NULL,
                 part.length, sum);
    }
    parameter(t, BZ_ROLE_SCALE, true)[c] = (float)sum[1];
    parameter(t, BZ_ROLE_SHIFT, true)[c] = (float)sum[0];
    float plain = (float)(sum[0] / n) * scale, along = (float)(sum[1] / n) * scale;
    for (int64_t b = 0; b < part.blocks; b++) {
        int64_t at = part.start + b * part.step;
        float *dx = to(t, t->y, at, thread, 2);
        t->own->norm_grad(from(t, 0, at, part.length, thread, 0), mean, factor, from(t, 1, at, part.length, thread, 1),
                          NULL, scale, plain, along, dx, part.length);
        done(t, t->y, at, part.length, dx);
    }
}

/* A row with a scale for each element. */
static void layernorm_grad_row(bz_training *t, int64_t row, int thread)
{
    int64_t n = t->norm.row;
    bool rms = t->problem->kind == BZ_PROBLEM_RMSNORM_GRAD;
    float mean = mean_of(t, row), factor = factor_of(t, row), *scales = t->sums + thread * 2 * t->n_sums;
    const float *x = from(t, 0, row * n, n, thread, 0), *dy = from(t, 1, row * n, n, thread, 1),
                *scale = parameter(t, BZ_ROLE_SCALE, false);
    float *dx = to(t, t->y, row * n, thread, 2);
    double sum[2] = {0};
    add_sums(t, x, mean, factor, dy, scale, n, sum);
    t->own->norm_add(x, mean, factor, dy, scales, rms ? NULL : scales + t->n_sums, n);
    t->own->norm_grad(x, mean, factor, dy, scale, 1, rms ? 0 : (float)(sum[0] / (double)n), (float)(sum[1] / (double)n),
                      dx, n);
    done(t, t->y, row * n, n, dx);
}

/* A group of channels, each with a scale. */
static void groupnorm_grad_row(bz_training *t, int64_t row, int thread)
{
    int64_t n = t->norm.row, plane = t->norm.plane, channels = n / plane, first = row * channels % t->norm.parameters;
    float mean = mean_of(t, row), factor = factor_of(t, row), *scales = t->sums + thread * 2 * t->n_sums;
    const float *x = from(t, 0, row * n, n, thread, 0), *dy = from(t, 1, row * n, n, thread, 1),
                *scale = parameter(t, BZ_ROLE_SCALE, false) + first;
    float *dx = to(t, t->y, row * n, thread, 2);
    double plain = 0, along = 0;
    for (int64_t c = 0; c < channels; c++) {
        double sum[2] = {0};
        add_sums(t, x + c * plane, mean, factor, dy + c * plane, NULL, plane, sum);
        scales[first + c] += (float)sum[1];
        scales[t->n_sums + first + c] += (float)sum[0];
        plain += sum[0] * (double)scale[c] / (double)n;
        along += sum[1] * (double)scale[c] / (double)n;
    }
    for (int64_t c = 0; c < channels; c++)
        t->own->norm_grad(x + c * plane, mean, factor, dy + c * plane, NULL, scale[c], (float)plain, (float)along,
                          dx + c * plane, plane);
    done(t, t->y, row * n, n, dx);
}

static void clear_sums(bz_training *t)
{
    memset(t->sums, 0, (size_t)t->job->setting->threads * 2 * (size_t)t->n_sums * sizeof *t->sums);
}

static void add_up_scales(bz_training *t)
{
    float *into[2] = {parameter(t, BZ_ROLE_SCALE, true), parameter(t, BZ_ROLE_SHIFT, true)};
    for (int k = 0; k < 2 && into[k]; k++) {
        memcpy(into[k], t->sums + k * t->n_sums, (size_t)t->n_sums * sizeof *t->sums);
        for (int i = 1; i < t->job->setting->threads; i++)
            t->kernels->binary(BZ_FN_ADD, into[k], 1, t->sums + (2 * i + k) * t->n_sums, 1, into[k], t->n_sums);
    }
}

static void open_norm(bz_training *t)
{
    bool training = t->problem->kind == BZ_PROBLEM_BATCHNORM,
         channels = training || t->problem->kind == BZ_PROBLEM_BATCHNORM_GRAD;
    t->norm = bz_norm_of(t->problem);
    t->parts = t->norm.statistics;
    t->length = channels ? t->norm.plane : t->norm.row;
    t->n_sums = channels ? 0 : t->norm.parameters;
    if (training && !t->problem->batchnorm.training)
        t->one = NULL;
}

/* ---- softmax -------------------------------------------------------------------------------- */

static void softmax_grad_row(bz_training *t, int64_t row, int thread)
{
    int64_t n = t->length;
    bool log_of = t->problem->kind == BZ_PROBLEM_LOGSOFTMAX_GRAD;
    const float *y = from(t, 0, row * n, n, thread, 0), *dy = from(t, 1, row * n, n, thread, 1);
    float *dx = to(t, t->y, row * n, thread, 2);
    double sum = log_of ? bz_kernels_sum(t->kernels, BZ_FN_SUM, dy, n) : 0;
    for (int64_t i = 0; i < n && !log_of; i += BLOCK)
        sum += (double)t->own->dot(y + i, dy + i, n - i < BLOCK ? n - i : BLOCK);
    (log_of ? t->own->logsoftmax_grad : t->own->softmax_grad)(y, dy, (float)sum, dx, n);
    done(t, t->y, row * n, n, dx);
}

/* Along an axis that is not the last: some columns side by side. */
static void softmax_grad_columns(bz_training *t, int64_t part, int thread)
{
    const int64_t *x = t->problem->softmax.x, axis = t->problem->softmax.axis;
    int64_t inner = bz_extent_count(x + axis + 1), in_row = pieces(inner, COLUMNS), at = part % in_row * COLUMNS;
    int64_t n = inner - at < COLUMNS ? inner - at : COLUMNS;
    bool log_of = t->problem->kind == BZ_PROBLEM_LOGSOFTMAX_GRAD;
    float sum[COLUMNS] = {0}, value[COLUMNS];
    at += part / in_row * x[axis] * inner;
    for (int64_t i = 0; i < x[axis]; i++) {
        const float *y = from(t, 0, at + i * inner, n, thread, 0), *dy = from(t, 1, at + i * inner, n, thread, 1);
        if (!log_of)
            t->kernels->binary(BZ_FN_MUL, y, 1, dy, 1, value, n);
        t->kernels->reduce_into(BZ_FN_SUM, log_of ? dy : value, sum, n);
    }
    for (int64_t i = 0; i < x[axis]; i++) {
        const float *y = from(t, 0, at + i * inner, n, thread, 0), *dy = from(t, 1, at + i * inner, n, thread, 1);
        float *dx = to(t, t->y, at + i * inner, thread, 2);
        if (log_of) {
            t->kernels->unary(BZ_FN_EXP, 0, 0, y, value, n);
            t->kernels->binary(BZ_FN_MUL, value, 1, sum, 1, value, n);
            t->kernels->binary(BZ_FN_SUB, dy, 1, value, 1, dx, n);
        } else {
            t->kernels->binary(BZ_FN_SUB, dy, 1, sum, 1, value, n);
            t->kernels->binary(BZ_FN_MUL, y, 1, value, 1, dx, n);
        }
        done(t, t->y, at + i * inner, n, dx);
    }
}

/* Parts along an axis: rows where it is the last, else some columns of it. */
static void open_axis(bz_training *t, const int64_t *x, int64_t axis, part_function *row, part_function *columns)
{
    int64_t inner = bz_extent_count(x + axis + 1);
    t->length = inner == 1 ? x[axis] : COLUMNS;
    t->parts = bz_extent_count(x) / x[axis] / inner * (inner == 1 ? 1 : pieces(inner, COLUMNS));
    t->one = inner == 1 ? row : columns;
}

static void open_softmax_grad(bz_training *t)
{
    open_axis(t, t->problem->softmax.x, t->problem->softmax.axis, softmax_grad_row, softmax_grad_columns);
}

/* ---- loss ----------------------------------------------------------------------------------- */

static int64_t label_at(const bz_training *t, int operand, int64_t i)
{
    const void *labels = bz_plain_at(t->plain, operand, t->copy);
    return t->problem->dtype_w == BZ_I32 ? ((const int32_t *)labels)[i] : ((const int64_t *)labels)[i];
}

static void take_loss(bz_training *t, int thread, int64_t label, float loss)
{
    if (t->problem->softmax_loss.reduction == BZ_LOSS_NONE)
        parameter(t, BZ_ROLE_Y, true)[label] = loss;
    else
        t->sums[2 * thread] += loss;
}

/* The classes of one label, one behind the other. */
static void loss_row(bz_training *t, int64_t row, int thread)
{
    int64_t n = t->length, class = label_at(t, 1, row);
    const float *x = from(t, 0, row * n, n, thread, 0);
    float *y = to(t, 2, row * n, thread, 1), most = t->kernels->reduce(BZ_FN_MAX, x, n);
    double sum = bz_kernels_exponentials(t->kernels, x, most, NULL, n);
    t->kernels->unary(BZ_FN_LINEAR, 1, -most - (float)log(sum), x, y, n);
    take_loss(t, thread, row, class >= 0 && class < n ? -y[class] : 0); /* what is no class adds nothing */
    done(t, 2, row * n, n, y);
}

/* Some labels side by side, as those of pixels lie. */
static void loss_columns(bz_training *t, int64_t part, int thread)
{
    const int64_t *x = t->problem->softmax_loss.x;
    int64_t inner = bz_extent_count(x + 2), in_row = pieces(inner, COLUMNS), column = part % in_row * COLUMNS;
    int64_t n = inner - column < COLUMNS ? inner - column : COLUMNS, batch = part / in_row;
    int64_t at = batch * x[1] * inner + column;
    float most[COLUMNS], sum[COLUMNS] = {0}, value[COLUMNS];
    for (int64_t i = 0; i < n; i++) {
        most[i] = -INFINITY;
        take_loss(t, thread, batch * inner + column + i, 0); /* of what is no class */
    }
    for (int64_t c = 0; c < x[1]; c++)
        t->kernels->reduce_into(BZ_FN_MAX, from(t, 0, at + c * inner, n, thread, 0), most, n);
    for (int64_t c = 0; c < x[1]; c++) {
        t->kernels->binary(BZ_FN_SUB, from(t, 0, at + c * inner, n, thread, 0), 1, most, 1, value, n);
        t->kernels->unary(BZ_FN_EXP, 0, 0, value, value, n);
        t->kernels->reduce_into(BZ_FN_SUM, value, sum, n);
    }
    t->kernels->unary(BZ_FN_LOG, 0, 0, sum, sum, n);
    t->kernels->binary(BZ_FN_ADD, sum, 1, most, 1, sum, n);
    for (int64_t c = 0; c < x[1]; c++) {
        float *y = to(t, 2, at + c * inner, thread, 1);
        t->kernels->binary(BZ_FN_SUB, from(t, 0, at + c * inner, n, thread, 0), 1, sum, 1, y, n);
        for (int64_t i = 0; i < n; i++)
            if (label_at(t, 1, batch * inner + column + i) == c)
                take_loss(t, thread, batch * inner + column + i, -y[i]);
        done(t, 2, at + c * inner, n, y);
    }
}

static void finish_loss(bz_training *t)
{
    double sum = 0, by = t->problem->softmax_loss.reduction == BZ_LOSS_MEAN ? (double)t->job->operand[1].count : 1;
    if (t->problem->softmax_loss.reduction == BZ_LOSS_NONE)
        return;
    for (int i = 0; i < t->job->setting->threads; i++)
        sum += (double)t->sums[2 * i];
    *parameter(t, BZ_ROLE_Y, true) = (float)(sum / by);
}

static void open_loss(bz_training *t)
{
    open_axis(t, t->problem->softmax_loss.x, 1, loss_row, loss_columns);
    t->n_sums = 1;
}

/* A batch entry: e^x dy / labels, then less by that share where the label is. */
static void loss_grad_entry(bz_training *t, int64_t batch, int thread)
{
    const bz_problem *p = t->problem;
    const int64_t *x = p->softmax_loss.x, inner = bz_extent_count(x + 2);
    int64_t labels = t->job->operand[2].count, n = t->length, at = batch * n;
    bool each = p->softmax_loss.reduction == BZ_LOSS_NONE;
    float by = p->softmax_loss.reduction == BZ_LOSS_MEAN ? 1 / (float)labels : 1;
    const float *dy = from(t, 0, each ? batch * inner : 0, each ? inner : 1, thread, 0);
    const float *logarithms = from(t, 1, at, n, thread, 1);
    float *dx = to(t, t->y, at, thread, 2), one = each ? 1 : *dy * by;
    t->kernels->unary(BZ_FN_EXP, 0, 0, logarithms, dx, n);
    if (each)
        for (int64_t c = 0; c < x[1]; c++)
            t->kernels->binary(BZ_FN_MUL, dx + c * inner, 1, dy, 1, dx + c * inner, inner);
    else
        t->kernels->unary(BZ_FN_LINEAR, one, 0, dx, dx, n);
    for (int64_t i = 0; i < inner; i++) {
        int64_t c = label_at(t, 2, batch * inner + i);
        if (c >= 0 && c < x[1])
            dx[c * inner + i] -= each ? dy[i] : one;
    }
    done(t, t->y, at, n, dx);
}

static void open_loss_grad(bz_training *t)
{
    t->parts = t->problem->softmax_loss.x[0];
    t->length = bz_extent_count(t->problem->softmax_loss.x + 1);
}

/* ---- gradients of a gather ------------------------------------------------------------------ */

/* Some columns of all rows: no two threads add to one place. */
static void scatter_columns(bz_training *t, int64_t part, int thread)
{
    const int64_t *x = t->problem->gather.x, axis = t->problem->gather.axis, n = t->problem->gather.n;
    int64_t inner = bz_extent_count(x + axis + 1), in_row = pieces(inner, t->length), at = part % in_row * t->length;
    int64_t width = inner - at < t->length ? inner - at : t->length, outer = part / in_row;
    float *y = (float *)bz_plain_at(t->plain, t->y, t->copy) + outer * x[axis] * inner + at;
    for (int64_t i = 0; i < x[axis]; i++)
        memset(y + i * inner, 0, (size_t)width * sizeof *y);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = label_at(t, 1, i);
        row += row < 0 ? x[axis] : 0;
        if (row < 0 || row >= x[axis])
            continue;
        const float *dy = from(t, 0, (outer * n + i) * inner + at, width, thread, 0);
        t->kernels->binary(BZ_FN_ADD, y + row * inner, 1, dy, 1, y + row * inner, width);
    }
}

static void open_scatter(bz_training *t)
{
    const int64_t *x = t->problem->gather.x, axis = t->problem->gather.axis;
    int64_t inner = bz_extent_count(x + axis + 1), outer = bz_extent_count(x) / inner / x[axis];
    int64_t share = pieces(inner, t->job->setting->threads);
    t->length = outer > 1 || t->job->setting->threads < 2 ? inner : share < 16 ? 16 : share;
    t->parts = outer * pieces(inner, t->length);
    if (t->problem->dtype_y != BZ_F32)
        t->one = NULL;
}

/* ---- the optimizer's step ------------------------------------------------------------------- */

static void begin_update(bz_training *t)
{
    const bz_problem *p = t->problem;
    int step = operand_of(t, BZ_ROLE_STEP, false);
    t->update = (bz_update){.rule = p->update.rule,
                            .alpha = p->update.alpha,
                            .beta = p->update.beta,
                            .decay = p->update.decay,
                            .nesterov = p->update.nesterov,
                            .epsilon = t->epsilon,
                            .rate = *parameter(t, BZ_ROLE_RATE, false)};
    if (step < 0)
        return;
    double number = (double)*(int64_t *)bz_plain_at(t->plain, step, t->copy);
    t->update.correct_m = (float)(1 / (1 - pow((double)p->update.alpha, number)));
    t->update.correct_v = (float)(1 / (1 - pow((double)p->update.beta, number)));
}

/* A state may lie elsewhere than its result where a replay could not give both one place. */
static float *state_of(const bz_training *t, bz_role role, int64_t at, int64_t n)
{
    int in = operand_of(t, role, false), out = role == BZ_ROLE_X ? t->y : operand_of(t, role, true);
    if (in < 0)
        return NULL;
    float *x = bz_plain_at(t->plain, in, t->copy), *y = bz_plain_at(t->plain, out, t->copy);
    if (x != y)
        memcpy(y + at, x + at, (size_t)n * sizeof *y);
    return y + at;
}

static void update_block(bz_training *t, int64_t part, int thread)
{
    int64_t at, n = block_of(t, part, &at);
    float *w = state_of(t, BZ_ROLE_X, at, n), *m = state_of(t, BZ_ROLE_M, at, n), *v = state_of(t, BZ_ROLE_N, at, n);
    t->own->update(&t->update, w, from(t, 1, at, n, thread, 0), m, v, n);
}

static void open_update(bz_training *t)
{
    open_blocks(t);
    t->epsilon = t->job->epsilon > 0 ? t->job->epsilon : 1e-8f;
    if (t->problem->dtype != BZ_F32)
        t->one = NULL;
}

/* ---- all ------------------------------------------------------------------------------------ */

static const struct {
    bz_problem_kind kind;
    void (*open)(bz_training *t);
    part_function *one;
    void (*begin)(bz_training *t), (*end)(bz_training *t);
} KINDS[] = {
    {BZ_PROBLEM_ACTIVATION_GRAD, open_blocks, slope_block, NULL, NULL},
    {BZ_PROBLEM_DROPOUT, open_blocks, dropout_block, another_seed, NULL},
    {BZ_PROBLEM_DROPOUT_GRAD, open_blocks, dropout_block, NULL, NULL},
    {BZ_PROBLEM_BATCHNORM, open_norm, batchnorm_channel, NULL, NULL},
    {BZ_PROBLEM_BATCHNORM_GRAD, open_norm, batchnorm_grad_channel, NULL, NULL},
    {BZ_PROBLEM_LAYERNORM_GRAD, open_norm, layernorm_grad_row, clear_sums, add_up_scales},
    {BZ_PROBLEM_RMSNORM_GRAD, open_norm, layernorm_grad_row, clear_sums, add_up_scales},
    {BZ_PROBLEM_GROUPNORM_GRAD, open_norm, groupnorm_grad_row, clear_sums, add_up_scales},
    {BZ_PROBLEM_SOFTMAX_GRAD, open_softmax_grad, softmax_grad_row, NULL, NULL},
    {BZ_PROBLEM_LOGSOFTMAX_GRAD, open_softmax_grad, softmax_grad_row, NULL, NULL},
    {BZ_PROBLEM_SOFTMAX_LOSS, open_loss, loss_row, clear_sums, finish_loss},
    {BZ_PROBLEM_SOFTMAX_LOSS_GRAD, open_loss_grad, loss_grad_entry, NULL, NULL},
    {BZ_PROBLEM_SCATTER_ADD, open_scatter, scatter_columns, NULL, NULL},
    {BZ_PROBLEM_UPDATE, open_update, update_block, begin_update, NULL},
};

/* Data in types that are widened to f32; indices and masks as their kinds have them. */
static bool takes_types(const bz_job *job)
{
    for (int i = 0; i < job->n_operands; i++) {
        const bz_operand *o = &job->operand[i];
        bool data = o->role != BZ_ROLE_INDEX && o->role != BZ_ROLE_STEP && o->role != BZ_ROLE_MASK;
        if (data && !(bz_dtype_is_float(o->dtype) && bz_kernels_take(o->dtype)))
            return false;
    }
    return true;
}

bz_training *bz_training_open(const bz_job *job, const char **why)
{
    bz_training t = {.job = job, .problem = job->problem, .kernels = bz_kernels_best(), .y = job->n_operands - 1};
    t.own = t.kernels->training;
    t.epsilon = job->epsilon > 0 ? job->epsilon : 1e-5f;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (KINDS[i].kind == job->problem->kind) {
            t.one = KINDS[i].one, t.begin = KINDS[i].begin, t.end = KINDS[i].end;
            KINDS[i].open(&t);
        }
    if (!t.one)
        return NULL;
    if (!takes_types(job) || (job->problem->kind == BZ_PROBLEM_SOFTMAX_LOSS && job->problem->dtype_y != BZ_F32)) {
        *why = "our loops of training take floating-point numbers of 16 and 32 bits";
        return NULL;
    }
    size_t threads = (size_t)job->setting->threads;
    t.room = bz_alloc(threads * ROOMS * (size_t)t.length, sizeof *t.room);
    if (t.n_sums)
        t.sums = bz_alloc(threads * 2 * (size_t)t.n_sums, sizeof *t.sums);
    return memcpy(bz_alloc(1, sizeof t), &t, sizeof t);
}

static void run_parts(void *of, int64_t first, int64_t end, int thread)
{
    bz_training *t = of;
    for (int64_t i = first; i < end; i++)
        t->one(t, i, thread);
}

void bz_training_run(bz_training *t, const bz_plain *plain, int copy)
{
    t->plain = plain, t->copy = copy;
    if (t->begin)
        t->begin(t);
    bz_share_out(run_parts, t, t->parts, t->job->operand[0].count, t->job->setting->threads);
    if (t->end)
        t->end(t);
}

void bz_training_close(bz_training *t)
{
    if (t) {
        free(t->room);
        free(t->sums);
    }
    free(t);
}
