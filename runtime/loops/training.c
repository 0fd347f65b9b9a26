/* Loops of problems that only training has. */
#include "runtime/loops/parts.h"

#include <math.h>
#include <string.h>

static void slope_block(bz_parts *t, int64_t part, int thread)
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

static void dropout_block(bz_parts *t, int64_t part, int thread)
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

static void another_seed(bz_parts *t)
{
    t->seed = t->seed * 747796405U + 2891336453U;
}

/* A channel: its planes lie apart. Once for the mean, once for the variance, once for the result. */
static void batchnorm_channel(bz_parts *t, int64_t c, int thread)
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
static void add_sums(const bz_parts *t, const float *x, float mean, float factor, const float *dy, const float *scale,
                     int64_t n, double sum[2])
{
    float some[2];
    for (int64_t i = 0; i < n; i += BLOCK) {
        t->own->norm_sums(x + i, mean, factor, dy + i, scale ? scale + i : NULL, n - i < BLOCK ? n - i : BLOCK, some);
        sum[0] += (double)some[0], sum[1] += (double)some[1];
    }
}

static float factor_of(const bz_parts *t, int64_t statistic)
{
    return (float)(1 / sqrt((double)parameter(t, BZ_ROLE_VARIANCE, false)[statistic] + (double)t->epsilon));
}

static float mean_of(const bz_parts *t, int64_t statistic)
{
    const float *mean = parameter(t, BZ_ROLE_MEAN, false);
    return mean ? mean[statistic] : 0;
}

static void batchnorm_grad_channel(bz_parts *t, int64_t c, int thread)
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
static void layernorm_grad_row(bz_parts *t, int64_t row, int thread)
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
static void groupnorm_grad_row(bz_parts *t, int64_t row, int thread)
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

static void add_up_scales(bz_parts *t)
{
    float *into[2] = {parameter(t, BZ_ROLE_SCALE, true), parameter(t, BZ_ROLE_SHIFT, true)};
    for (int k = 0; k < 2 && into[k]; k++) {
        memcpy(into[k], t->sums + k * t->n_sums, (size_t)t->n_sums * sizeof *t->sums);
        for (int i = 1; i < t->job->setting->threads; i++)
            t->kernels->binary(BZ_FN_ADD, into[k], 1, t->sums + (2 * i + k) * t->n_sums, 1, into[k], t->n_sums);
    }
}

static void open_norm(bz_parts *t)
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

/* Some columns of all rows: no two threads add to one place. */
static void scatter_columns(bz_parts *t, int64_t part, int thread)
{
    const int64_t *x = t->problem->gather.x, axis = t->problem->gather.axis, n = t->problem->gather.n;
    int64_t inner = bz_extent_count(x + axis + 1), in_row = pieces(inner, t->length), at = part % in_row * t->length;
    int64_t width = inner - at < t->length ? inner - at : t->length, outer = part / in_row;
    float *y = (float *)bz_plain_at(t->plain, t->y, t->copy) + outer * x[axis] * inner + at;
    for (int64_t i = 0; i < x[axis]; i++)
        memset(y + i * inner, 0, (size_t)width * sizeof *y);
    const void *rows = bz_plain_at(t->plain, 1, t->copy);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = label_of(t, rows, i);
        row += row < 0 ? x[axis] : 0;
        if (row < 0 || row >= x[axis])
            continue;
        const float *dy = from(t, 0, (outer * n + i) * inner + at, width, thread, 0);
        t->kernels->binary(BZ_FN_ADD, y + row * inner, 1, dy, 1, y + row * inner, width);
    }
}

static void open_scatter(bz_parts *t)
{
    const int64_t *x = t->problem->gather.x, axis = t->problem->gather.axis;
    int64_t inner = bz_extent_count(x + axis + 1), outer = bz_extent_count(x) / inner / x[axis];
    int64_t share = pieces(inner, t->job->setting->threads);
    t->length = outer > 1 || t->job->setting->threads < 2 ? inner : share < 16 ? 16 : share;
    t->parts = outer * pieces(inner, t->length);
    if (t->problem->dtype_y != BZ_F32)
        t->one = NULL;
}

static void begin_update(bz_parts *t)
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
static float *state_of(const bz_parts *t, bz_role role, int64_t at, int64_t n)
{
    int in = operand_of(t, role, false), out = role == BZ_ROLE_X ? t->y : operand_of(t, role, true);
    if (in < 0)
        return NULL;
    float *x = bz_plain_at(t->plain, in, t->copy), *y = bz_plain_at(t->plain, out, t->copy);
    if (x != y)
        memcpy(y + at, x + at, (size_t)n * sizeof *y);
    return y + at;
}

static void update_block(bz_parts *t, int64_t part, int thread)
{
    int64_t at, n = block_of(t, part, &at);
    float *w = state_of(t, BZ_ROLE_X, at, n), *m = state_of(t, BZ_ROLE_M, at, n), *v = state_of(t, BZ_ROLE_N, at, n);
    t->own->update(&t->update, w, from(t, 1, at, n, thread, 0), m, v, n);
}

static void open_update(bz_parts *t)
{
    open_blocks(t);
    t->epsilon = t->job->epsilon > 0 ? t->job->epsilon : 1e-8f;
    if (t->problem->dtype != BZ_F32)
        t->one = NULL;
}

const bz_part_kind bz_part_training[] = {
    {BZ_PROBLEM_ACTIVATION_GRAD, PART_DATA, open_blocks, slope_block, NULL, NULL},
    {BZ_PROBLEM_DROPOUT, PART_DATA, open_blocks, dropout_block, another_seed, NULL},
    {BZ_PROBLEM_DROPOUT_GRAD, PART_DATA, open_blocks, dropout_block, NULL, NULL},
    {BZ_PROBLEM_BATCHNORM, PART_DATA, open_norm, batchnorm_channel, NULL, NULL},
    {BZ_PROBLEM_BATCHNORM_GRAD, PART_DATA, open_norm, batchnorm_grad_channel, NULL, NULL},
    {BZ_PROBLEM_LAYERNORM_GRAD, PART_DATA, open_norm, layernorm_grad_row, clear_sums, add_up_scales},
    {BZ_PROBLEM_RMSNORM_GRAD, PART_DATA, open_norm, layernorm_grad_row, clear_sums, add_up_scales},
    {BZ_PROBLEM_GROUPNORM_GRAD, PART_DATA, open_norm, groupnorm_grad_row, clear_sums, add_up_scales},
    {BZ_PROBLEM_SCATTER_ADD, PART_DATA, open_scatter, scatter_columns, NULL, NULL},
    {BZ_PROBLEM_UPDATE, PART_DATA, open_update, update_block, begin_update, NULL},
    {.kind = BZ_PROBLEM_NONE},
};
