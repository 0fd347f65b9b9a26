/* Problems whose results are made row by row: normalizations, softmax, reductions, casts, padding. */
#include "runtime/loops/parts.h"

#include <math.h>
#include <string.h>

enum { RESULTS = 16 }; /* that are worked off together */

/* In training the statistics of a row are results, too. */
static float keep_statistics(const bz_parts *t, int64_t row, float mean, double variance)
{
    if (t->statistics) {
        float *means = parameter(t, BZ_ROLE_MEAN, true);
        if (means)
            means[row] = mean;
        parameter(t, BZ_ROLE_VARIANCE, true)[row] = (float)variance;
    }
    return (float)(1 / sqrt(variance + (double)t->epsilon));
}

/* Returns 1 over the root of the variance of a row's n values, and their mean. */
static float spread_of(const bz_parts *t, int64_t row, const float *x, int64_t n, float *mean)
{
    *mean = (float)(bz_kernels_sum(t->kernels, BZ_FN_SUM, x, n) / (double)n);
    return keep_statistics(t, row, *mean, bz_kernels_squares(t->kernels, x, *mean, n) / (double)n);
}

static void layernorm_row(bz_parts *t, int64_t row, int thread)
{
    int64_t n = t->length;
    const float *x = from(t, 0, row * n, n, thread, 0), *scale = parameter(t, BZ_ROLE_SCALE, false);
    float *y = to(t, t->y, row * n, thread, 0), mean = 0, factor;
    if (t->problem->kind == BZ_PROBLEM_RMSNORM)
        factor = keep_statistics(t, row, 0, bz_kernels_sum(t->kernels, BZ_FN_SUMSQUARE, x, n) / (double)n);
    else
        factor = spread_of(t, row, x, n, &mean);
    t->kernels->normalize(x, mean, factor, scale, parameter(t, BZ_ROLE_SHIFT, false), y, n);
    done(t, t->y, row * n, n, y);
}

/* A row is a group of channels, each of which has a scale and a shift. */
static void groupnorm_row(bz_parts *t, int64_t row, int thread)
{
    const bz_problem *p = t->problem;
    int64_t n = t->length, channels = p->groupnorm.x[1] / p->groupnorm.group, plane = n / channels;
    int64_t first = row % p->groupnorm.group * channels;
    const float *x = from(t, 0, row * n, n, thread, 0), *scale = parameter(t, BZ_ROLE_SCALE, false),
                *shift = parameter(t, BZ_ROLE_SHIFT, false);
    float *y = to(t, t->y, row * n, thread, 0), mean, factor = spread_of(t, row, x, n, &mean);
    for (int64_t c = 0; c < channels; c++) {
        float by = factor * scale[first + c];
        t->kernels->unary(BZ_FN_LINEAR, by, shift[first + c] - mean * by, x + c * plane, y + c * plane, plane);
    }
    done(t, t->y, row * n, n, y);
}

static void lpnorm_row(bz_parts *t, int64_t row, int thread)
{
    int64_t n = t->length, p = t->problem->lpnorm.p;
    const float *x = from(t, 0, row * n, n, thread, 0);
    float *y = to(t, t->y, row * n, thread, 0);
    double sum = bz_kernels_sum(t->kernels, p == 1 ? BZ_FN_L1 : BZ_FN_SUMSQUARE, x, n);
    t->kernels->unary(BZ_FN_LINEAR, (float)(1 / (p == 1 ? sum : sqrt(sum))), 0, x, y, n);
    done(t, t->y, row * n, n, y);
}

/* What batch normalization does to a channel: a factor, and what is added. */
static float channel_factor(const bz_parts *t, int64_t c, float *plus)
{
    float by = parameter(t, BZ_ROLE_SCALE, false)[c] / sqrtf(parameter(t, BZ_ROLE_VARIANCE, false)[c] + t->epsilon);
    *plus = parameter(t, BZ_ROLE_SHIFT, false)[c] - parameter(t, BZ_ROLE_MEAN, false)[c] * by;
    return by;
}

static void find_factors(bz_parts *t)
{
    for (int64_t c = 0; c < t->n_sums; c++)
        t->sums[c] = channel_factor(t, c, &t->sums[t->n_sums + c]);
}

/* A row is a channel's plane; where planes have one element, all channels of one of the batch. */
static void batchnorm_row(bz_parts *t, int64_t row, int thread)
{
    int64_t n = t->length;
    const float *x = from(t, 0, row * n, n, thread, 0);
    float *y = to(t, t->y, row * n, thread, 0), plus;
    if (t->inner == 1) {
        t->kernels->normalize(x, 0, 1, t->sums, t->sums + n, y, n);
    } else {
        float by = channel_factor(t, row % t->problem->batchnorm.x[1], &plus);
        t->kernels->unary(BZ_FN_LINEAR, by, plus, x, y, n);
    }
    done(t, t->y, row * n, n, y);
}

static void prelu_row(bz_parts *t, int64_t row, int thread)
{
    int64_t n = t->length, channels = t->problem->prelu.x[1];
    const float *x = from(t, 0, row * n, n, thread, 0);
    float *y = to(t, t->y, row * n, thread, 0);
    if (t->inner == 1)
        t->kernels->slope(x, from(t, 1, 0, channels, thread, 1), y, n);
    else
        t->kernels->unary(BZ_FN_LEAKY, *from(t, 1, row % channels, 1, thread, 1), 0, x, y, n);
    done(t, t->y, row * n, n, y);
}

static void softmax_row(bz_parts *t, int64_t row, int thread)
{
    int64_t n = t->length;
    bool log_of = t->problem->kind == BZ_PROBLEM_LOGSOFTMAX;
    const float *x = from(t, 0, row * n, n, thread, 0);
    float *y = to(t, t->y, row * n, thread, 0), most = t->kernels->reduce(BZ_FN_MAX, x, n);
    double sum = bz_kernels_exponentials(t->kernels, x, most, log_of ? NULL : y, n);
    if (log_of)
        t->kernels->unary(BZ_FN_LINEAR, 1, -most - (float)log(sum), x, y, n);
    else
        t->kernels->unary(BZ_FN_LINEAR, (float)(1 / sum), 0, y, y, n);
    done(t, t->y, row * n, n, y);
}

/* Along an axis that is not the last: some columns side by side, once for the largest, once for the sum, once for the
 * result. A row is what stands before the axis, and a piece of what stands behind it. */
static void softmax_columns(bz_parts *t, int64_t row, int thread)
{
    const int64_t *x = t->problem->softmax.x, extent = x[t->problem->softmax.axis], inner = t->inner;
    float most[COLUMNS], sum[COLUMNS], value[COLUMNS];
    int64_t in_row = pieces(inner, COLUMNS), column = row % in_row * COLUMNS;
    int64_t n = inner - column < COLUMNS ? inner - column : COLUMNS, at = row / in_row * extent * inner + column;
    const bz_kernels *k = t->kernels;
    bool log_of = t->problem->kind == BZ_PROBLEM_LOGSOFTMAX;
    for (int64_t i = 0; i < n; i++)
        most[i] = -INFINITY, sum[i] = 0;
    for (int64_t i = 0; i < extent; i++)
        k->reduce_into(BZ_FN_MAX, from(t, 0, at + i * inner, n, thread, 0), most, n);
    for (int64_t i = 0; i < extent; i++) {
        k->binary(BZ_FN_SUB, from(t, 0, at + i * inner, n, thread, 0), 1, most, 1, value, n);
        k->unary(BZ_FN_EXP, 0, 0, value, value, n);
        k->reduce_into(BZ_FN_SUM, value, sum, n);
    }
    k->unary(log_of ? BZ_FN_LOG : BZ_FN_POW, 1, -1, sum, sum, n);
    for (int64_t i = 0; i < extent; i++) {
        float *y = to(t, t->y, at + i * inner, thread, 1);
        k->binary(BZ_FN_SUB, from(t, 0, at + i * inner, n, thread, 0), 1, most, 1, y, n);
        if (!log_of)
            k->unary(BZ_FN_EXP, 0, 0, y, y, n);
        k->binary(log_of ? BZ_FN_SUB : BZ_FN_MUL, y, 1, sum, 1, y, n);
        done(t, t->y, at + i * inner, n, y);
    }
}

/* Dimensions of x, outermost first; what is kept and what is not, each with its step in x. */
static void split_dimensions(bz_parts *t)
{
    const bz_problem *p = t->problem;
    int rank = bz_extent_rank(p->reduce.x), before = -1;
    int64_t step = bz_extent_count(p->reduce.x);
    t->count = 1;
    for (int i = 0; i < rank; i++) {
        int64_t dim = p->reduce.x[i];
        step /= dim;
        if (dim == 1)
            continue;
        bool keeps = p->reduce.y[i] != 1, joins = before == (int)keeps;
        int *n = keeps ? &t->n_kept : &t->n_gone;
        int64_t *dims = keeps ? t->kept : t->gone, *steps = keeps ? t->kept_step : t->gone_step;
        dims[*n - joins] = joins ? dims[*n - joins] * dim : dim;
        steps[*n - joins] = step;
        *n += !joins;
        t->count *= keeps ? 1 : dim;
        before = keeps;
    }
    t->last_kept = before == 1;
}

/* Where combination number i of all but the last `skip` dimensions begins. */
static int64_t offset_of(int64_t i, const int64_t *dim, const int64_t *step, int n)
{
    int64_t at = 0;
    for (; n-- > 0; i /= dim[n])
        at += i % dim[n] * step[n];
    return at;
}

static bool is_sum(bz_fn fn)
{
    return fn != BZ_FN_MAX && fn != BZ_FN_MIN && fn != BZ_FN_PROD;
}

static void finish_reduction(const bz_parts *t, float *y, int64_t n)
{
    bz_fn fn = t->problem->reduce.fn;
    if (fn == BZ_FN_MEAN)
        t->kernels->unary(BZ_FN_LINEAR, (float)(1 / (double)t->count), 0, y, y, n);
    else if (fn == BZ_FN_L2)
        t->kernels->unary(BZ_FN_SQRT, 0, 0, y, y, n);
}

/* Some results, each of rows of neighbours. Their first rows are read before their second ones, as they lie in memory. */
static void reduce_rows(bz_parts *t, int64_t block, int thread)
{
    bz_fn fn = t->problem->reduce.fn;
    double sum[RESULTS];
    float own[RESULTS], *room = room_of(t, thread, 0);
    int64_t start[RESULTS];
    int64_t first = block * t->pieces, results = t->job->operand[t->y].count,
            n = results - first < t->pieces ? results - first : t->pieces;
    for (int64_t i = 0; i < n; i++) {
        sum[i] = fn == BZ_FN_MAX ? -INFINITY : fn == BZ_FN_MIN ? INFINITY : fn == BZ_FN_PROD;
        start[i] = offset_of(first + i, t->kept, t->kept_step, t->n_kept);
    }
    for (int64_t k = 0; k < t->count / t->length; k++) {
        int64_t at = offset_of(k, t->gone, t->gone_step, t->n_gone - 1);
        for (int64_t i = 0; i < n; i++) {
            const float *x = bz_row_from(t->plain, 0, t->copy, start[i] + at, t->length, room);
            double v = is_sum(fn) ? bz_kernels_sum(t->kernels, fn, x, t->length)
                                  : (double)t->kernels->reduce(fn, x, t->length);
            sum[i] = is_sum(fn)                          ? sum[i] + v
                     : fn == BZ_FN_PROD                  ? sum[i] * v
                     : (fn == BZ_FN_MAX) == (v > sum[i]) ? v
                                                         : sum[i];
        }
    }
    float *y = bz_row_to(t->plain, t->y, t->copy, first, own);
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)sum[i];
    finish_reduction(t, y, n); /* of each by itself it took as long as a row of 100 values */
    done(t, t->y, first, n, y);
}

/* Neighbouring results, each a column of values. Sums start anew after some: f32 holds few of equal size. */
static void reduce_columns(bz_parts *t, int64_t row, int thread)
{
    enum { FEW = 256 };
    float total[COLUMNS], part[COLUMNS];
    bz_fn fn = t->problem->reduce.fn;
    int64_t width = t->kept[t->n_kept - 1], column = row % t->pieces * COLUMNS,
            n = width - column < COLUMNS ? width - column : COLUMNS;
    int64_t at = column + offset_of(row / t->pieces, t->kept, t->kept_step, t->n_kept - 1);
    float first = fn == BZ_FN_MAX ? -INFINITY : fn == BZ_FN_MIN ? INFINITY : fn == BZ_FN_PROD;
    (void)thread;
    for (int64_t i = 0; i < n; i++)
        total[i] = part[i] = first;
    for (int64_t k = 0; k < t->count; k++) {
        const float *x = from(t, 0, at + offset_of(k, t->gone, t->gone_step, t->n_gone), n, thread, 0);
        t->kernels->reduce_into(fn, x, part, n);
        if (!is_sum(fn) || (k % FEW != FEW - 1 && k != t->count - 1))
            continue;
        t->kernels->binary(BZ_FN_ADD, total, 1, part, 1, total, n);
        memset(part, 0, sizeof part);
    }
    float *sum = is_sum(fn) ? total : part;
    int64_t place = row / t->pieces * width + column;
    finish_reduction(t, sum, n);
    float *y = bz_row_to(t->plain, t->y, t->copy, place, sum);
    if (y != sum)
        memcpy(y, sum, (size_t)n * sizeof *y);
    done(t, t->y, place, n, sum);
}

/* A cast, with a factor where numbers are quantized: integers are rounded. */
static void reorder_row(bz_parts *t, int64_t row, int thread)
{
    const bz_problem *p = t->problem;
    int64_t at, n = block_of(t, row, &at);
    const float *x = from(t, 0, at, n, thread, 0);
    float *y = to(t, t->y, at, thread, 1);
    t->kernels->unary(BZ_FN_LINEAR, p->reorder.scale, 0, x, y, n);
    if (bz_dtype_is_int(p->dtype_y))
        t->kernels->unary(BZ_FN_ROUND, 0, 0, y, y, n);
    done(t, t->y, at, n, y);
}

/* A row, or all rows of the last two dimensions: zeros up to each row of x, and behind the last one. */
static void pad_rows(bz_parts *t, int64_t part, int thread)
{
    int last = t->rank - 1, outer = last - (t->pieces > 1), size = bz_dtype_bits(t->problem->dtype) / 8;
    int64_t taken = outer < last ? t->x[outer] : 1, skipped = outer < last ? t->before[outer] : 0;
    int64_t begin = 0, step = taken * t->x[last], number = part, n = t->x[last] * size, width = t->padded[last] * size;
    bool inside = true;
    char *y = (char *)bz_plain_at(t->plain, 1, t->copy) + part * t->pieces * width, *zero = y;
    (void)thread;
    for (int i = outer - 1; i >= 0; step *= t->x[i], number /= t->padded[i--]) {
        int64_t at = number % t->padded[i] - t->before[i];
        inside &= at >= 0 && at < t->x[i];
        begin += at * step;
    }
    for (int64_t i = 0; i < taken && inside; i++) {
        char *into = y + (skipped + i) * width + t->before[last] * size;
        memset(zero, 0, (size_t)(into - zero));
        memcpy(into, (const char *)bz_plain_at(t->plain, 0, t->copy) + begin * size + i * n, (size_t)n);
        zero = into + n;
    }
    memset(zero, 0, (size_t)(y + t->pieces * width - zero));
}

static void open_softmax(bz_parts *t)
{
    open_axis(t, t->problem->softmax.x, t->problem->softmax.axis, softmax_row, softmax_columns);
}

static void open_norm(bz_parts *t)
{
    t->norm = bz_norm_of(t->problem);
    t->length = t->norm.row;
    t->parts = t->norm.statistics;
    t->statistics = operand_of(t, BZ_ROLE_VARIANCE, true) >= 0;
}

static void open_lpnorm(bz_parts *t)
{
    const int64_t *x = t->problem->lpnorm.x;
    t->length = x[bz_extent_rank(x) - 1];
    t->parts = bz_extent_count(x) / t->length;
}

static void open_channels(bz_parts *t)
{
    const int64_t *x = t->problem->batchnorm.x;
    t->inner = bz_extent_count(x + 2);
    t->length = t->inner == 1 ? x[1] : t->inner;
    t->parts = bz_extent_count(x) / t->length;
}

static void open_batchnorm(bz_parts *t)
{
    open_channels(t);
    t->n_sums = t->inner == 1 ? t->length : 0;
    if (t->problem->batchnorm.training)
        t->one = NULL; /* training.c */
}

static void open_reduce(bz_parts *t)
{
    split_dimensions(t);
    int64_t results = bz_extent_count(t->problem->reduce.y);
    if (t->last_kept) {
        int64_t width = t->kept[t->n_kept - 1];
        t->pieces = pieces(width, COLUMNS);
        t->parts = results / width * t->pieces;
        t->length = COLUMNS;
        t->one = reduce_columns;
    } else {
        t->length = t->n_gone ? t->gone[t->n_gone - 1] : 1;
        int64_t share = results / (4 * t->job->setting->threads); /* each thread has some pieces */
        t->pieces = share < 1 ? 1 : share < RESULTS ? share : RESULTS;
        t->parts = pieces(results, t->pieces);
    }
}

static void open_reorder(bz_parts *t)
{
    open_blocks(t);
    if (t->problem->reorder.from != BZ_LAYOUT_PLAIN || t->problem->reorder.to != BZ_LAYOUT_PLAIN)
        t->one = NULL;
}

static void open_pad(bz_parts *t)
{
    const bz_problem *p = t->problem;
    int n = bz_extent_rank(p->pad.x);
    int64_t behind = 1;
    t->rank = n;
    for (int i = n; i-- > 0;) {
        int64_t begin = i < 2 ? 0 : p->pad.pad[i - 2], end = i < 2 ? 0 : p->pad.pad[n - 2 + i - 2];
        if (!begin && !end && i == t->rank - 1 && i > 0) { /* a row may as well hold all of it */
            behind *= p->pad.x[i];
            t->rank--;
            continue;
        }
        t->x[i] = p->pad.x[i] * behind, t->before[i] = begin * behind;
        t->padded[i] = (p->pad.x[i] + begin + end) * behind;
        behind = 1;
    }
    t->length = t->padded[t->rank - 1];
    t->parts = t->pieces = 1;
    for (int i = 0; i < t->rank - 2; i++)
        t->parts *= t->padded[i];
    int threads = t->job->setting->threads;
    if (t->rank > 1) /* few planes are shared out by rows */
        *(threads > 1 && t->parts < 4 * threads ? &t->parts : &t->pieces) *= t->padded[t->rank - 2];
}

const bz_part_kind bz_part_rows[] = {
    {BZ_PROBLEM_SOFTMAX, PART_FLOATS, open_softmax, softmax_row, NULL, NULL},
    {BZ_PROBLEM_LOGSOFTMAX, PART_FLOATS, open_softmax, softmax_row, NULL, NULL},
    {BZ_PROBLEM_LAYERNORM, PART_FLOATS, open_norm, layernorm_row, NULL, NULL},
    {BZ_PROBLEM_RMSNORM, PART_FLOATS, open_norm, layernorm_row, NULL, NULL},
    {BZ_PROBLEM_LPNORM, PART_FLOATS, open_lpnorm, lpnorm_row, NULL, NULL},
    {BZ_PROBLEM_GROUPNORM, PART_FLOATS, open_norm, groupnorm_row, NULL, NULL},
    {BZ_PROBLEM_BATCHNORM, PART_FLOATS, open_batchnorm, batchnorm_row, find_factors, NULL},
    {BZ_PROBLEM_PRELU, PART_FLOATS, open_channels, prelu_row, NULL, NULL},
    {BZ_PROBLEM_REDUCE, PART_FLOATS, open_reduce, reduce_rows, NULL, NULL},
    {BZ_PROBLEM_REORDER, PART_CASTS, open_reorder, reorder_row, NULL, NULL},
    {BZ_PROBLEM_PAD, PART_BYTES, open_pad, pad_rows, NULL, NULL},
    {.kind = BZ_PROBLEM_NONE},
};
