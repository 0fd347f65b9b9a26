/* Problems whose results are made row by row: normalizations, softmax, reductions, casts, padding. A row is f32 while it is
 * worked on: where it lies, or widened into the thread's room. */
#include "runtime/loops/kernels.h"
#include "runtime/loops/loops.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 4096, /* f32 added up at once */
    COLUMNS = 512,
    RESULTS = 16, /* that are worked off together */
};

typedef void row_function(bz_rows *r, int64_t row, float *room);

struct bz_rows {
    const bz_job *job;
    const bz_kernels *kernels;
    row_function *one;
    int64_t n, length; /* rows; elements of x in each, as far as they lie one behind the other */
    int64_t inner;     /* softmax, batchnorm, prelu: elements behind the axis; others 1 */
    float epsilon;
    bool statistics;
    float *room; /* [threads][2 · length]; NULL where all is f32 */
    float *by;   /* batchnorm, planes of one element: [channels] factors, [channels] what is added; by each run anew */
    const bz_plain *plain;
    int copy;
    /* reduce: dimensions of x that are kept and those that are not, neighbours made one */
    int n_kept, n_gone;
    int64_t kept[BZ_PROBLEM_RANK], kept_step[BZ_PROBLEM_RANK], gone[BZ_PROBLEM_RANK], gone_step[BZ_PROBLEM_RANK];
    int64_t count,
        pieces; /* of values for each result; of a row of results, results in a piece, or rows in a part of a pad */
    bool last_kept;
    /* pad: x and y without the dimensions that nothing is added to at the end; in elements */
    int rank;
    int64_t x[BZ_PROBLEM_RANK], y[BZ_PROBLEM_RANK], before[BZ_PROBLEM_RANK];
};

static const float *row_in(const bz_rows *r, int operand, int64_t at, int64_t n, float *room)
{
    return bz_row_from(r->plain, operand, r->copy, at, n, room);
}

/* Where to write a row of the result; row_done brings it there. */
static float *row_out(const bz_rows *r, int64_t at, float *room)
{
    return bz_row_to(r->plain, r->job->n_operands - 1, r->copy, at, room);
}

static void row_done(const bz_rows *r, int64_t at, const float *row, int64_t n)
{
    bz_row_done(r->plain, r->job->n_operands - 1, r->copy, at, n, row);
}

/* The first operand of the role; NULL where there is none. Parameters are f32. */
static float *parameter(const bz_rows *r, bz_role role)
{
    for (int i = 0; i < r->job->n_operands; i++)
        if (r->job->operand[i].role == role)
            return bz_plain_at(r->plain, i, r->copy);
    return NULL;
}

/* In training the statistics of a row are results, too. */
static float keep_statistics(const bz_rows *r, int64_t row, float mean, double variance)
{
    if (r->statistics) {
        float *means = parameter(r, BZ_ROLE_MEAN);
        if (means)
            means[row] = mean;
        parameter(r, BZ_ROLE_VARIANCE)[row] = (float)variance;
    }
    return (float)(1 / sqrt(variance + (double)r->epsilon));
}

/* Returns 1 over the root of the variance of a row's n values, and their mean. */
static float spread_of(const bz_rows *r, int64_t row, const float *x, int64_t n, float *mean)
{
    *mean = (float)(bz_kernels_sum(r->kernels, BZ_FN_SUM, x, n) / (double)n);
    return keep_statistics(r, row, *mean, bz_kernels_squares(r->kernels, x, *mean, n) / (double)n);
}

static void layernorm_row(bz_rows *r, int64_t row, float *room)
{
    int64_t n = r->length;
    const float *x = row_in(r, 0, row * n, n, room), *scale = parameter(r, BZ_ROLE_SCALE);
    float *y = row_out(r, row * n, room), mean = 0, factor;
    if (r->job->problem->kind == BZ_PROBLEM_RMSNORM)
        factor = keep_statistics(r, row, 0, bz_kernels_sum(r->kernels, BZ_FN_SUMSQUARE, x, n) / (double)n);
    else
        factor = spread_of(r, row, x, n, &mean);
    r->kernels->normalize(x, mean, factor, scale, parameter(r, BZ_ROLE_SHIFT), y, n);
    row_done(r, row * n, y, n);
}

/* A row is a group of channels, each of which has a scale and a shift. */
static void groupnorm_row(bz_rows *r, int64_t row, float *room)
{
    const bz_problem *p = r->job->problem;
    int64_t n = r->length, channels = p->groupnorm.x[1] / p->groupnorm.group, plane = n / channels;
    int64_t first = row % p->groupnorm.group * channels;
    const float *x = row_in(r, 0, row * n, n, room), *scale = parameter(r, BZ_ROLE_SCALE),
                *shift = parameter(r, BZ_ROLE_SHIFT);
    float *y = row_out(r, row * n, room), mean, factor = spread_of(r, row, x, n, &mean);
    for (int64_t c = 0; c < channels; c++) {
        float by = factor * scale[first + c];
        r->kernels->unary(BZ_FN_LINEAR, by, shift[first + c] - mean * by, x + c * plane, y + c * plane, plane);
    }
    row_done(r, row * n, y, n);
}

static void lpnorm_row(bz_rows *r, int64_t row, float *room)
{
    int64_t n = r->length, p = r->job->problem->lpnorm.p;
    const float *x = row_in(r, 0, row * n, n, room);
    float *y = row_out(r, row * n, room);
    double sum = bz_kernels_sum(r->kernels, p == 1 ? BZ_FN_L1 : BZ_FN_SUMSQUARE, x, n);
    r->kernels->unary(BZ_FN_LINEAR, (float)(1 / (p == 1 ? sum : sqrt(sum))), 0, x, y, n);
    row_done(r, row * n, y, n);
}

/* What batch normalization does to a channel: a factor, and what is added. */
static float channel_factor(const bz_rows *r, int64_t c, float *plus)
{
    float by = parameter(r, BZ_ROLE_SCALE)[c] / sqrtf(parameter(r, BZ_ROLE_VARIANCE)[c] + r->epsilon);
    *plus = parameter(r, BZ_ROLE_SHIFT)[c] - parameter(r, BZ_ROLE_MEAN)[c] * by;
    return by;
}

/* A row is a channel's plane; where planes have one element, all channels of one of the batch. */
static void batchnorm_row(bz_rows *r, int64_t row, float *room)
{
    int64_t n = r->length;
    const float *x = row_in(r, 0, row * n, n, room);
    float *y = row_out(r, row * n, room), plus;
    if (r->by) {
        r->kernels->normalize(x, 0, 1, r->by, r->by + n, y, n);
    } else {
        float by = channel_factor(r, row % r->job->problem->batchnorm.x[1], &plus);
        r->kernels->unary(BZ_FN_LINEAR, by, plus, x, y, n);
    }
    row_done(r, row * n, y, n);
}

static void prelu_row(bz_rows *r, int64_t row, float *room)
{
    int64_t n = r->length, channels = r->job->problem->prelu.x[1];
    const float *x = row_in(r, 0, row * n, n, room);
    float *y = row_out(r, row * n, room), one;
    if (r->inner == 1)
        r->kernels->slope(x, row_in(r, 1, 0, channels, room + n), y, n);
    else
        r->kernels->unary(BZ_FN_LEAKY, *row_in(r, 1, row % channels, 1, &one), 0, x, y, n);
    row_done(r, row * n, y, n);
}

static void softmax_row(bz_rows *r, int64_t row, float *room)
{
    int64_t n = r->length;
    bool log_of = r->job->problem->kind == BZ_PROBLEM_LOGSOFTMAX;
    const float *x = row_in(r, 0, row * n, n, room);
    float *y = row_out(r, row * n, room), most = r->kernels->reduce(BZ_FN_MAX, x, n);
    double sum = bz_kernels_exponentials(r->kernels, x, most, log_of ? NULL : y, n);
    if (log_of)
        r->kernels->unary(BZ_FN_LINEAR, 1, -most - (float)log(sum), x, y, n);
    else
        r->kernels->unary(BZ_FN_LINEAR, (float)(1 / sum), 0, y, y, n);
    row_done(r, row * n, y, n);
}

/* Along an axis that is not the last: some columns side by side, once for the largest, once for the sum, once for the
 * result. A row is what stands before the axis, and a piece of what stands behind it. */
static void softmax_columns(bz_rows *r, int64_t row, float *room)
{
    float most[COLUMNS], sum[COLUMNS], wide[COLUMNS], value[COLUMNS];
    int64_t from = row % r->pieces * COLUMNS, n = r->inner - from < COLUMNS ? r->inner - from : COLUMNS;
    int64_t at = row / r->pieces * r->length * r->inner + from;
    const bz_kernels *k = r->kernels;
    bool log_of = r->job->problem->kind == BZ_PROBLEM_LOGSOFTMAX;
    (void)room;
    for (int64_t i = 0; i < n; i++)
        most[i] = -INFINITY, sum[i] = 0;
    for (int64_t i = 0; i < r->length; i++)
        k->reduce_into(BZ_FN_MAX, row_in(r, 0, at + i * r->inner, n, wide), most, n);
    for (int64_t i = 0; i < r->length; i++) {
        k->binary(BZ_FN_SUB, row_in(r, 0, at + i * r->inner, n, wide), 1, most, 1, value, n);
        k->unary(BZ_FN_EXP, 0, 0, value, value, n);
        k->reduce_into(BZ_FN_SUM, value, sum, n);
    }
    k->unary(log_of ? BZ_FN_LOG : BZ_FN_POW, 1, -1, sum, sum, n);
    for (int64_t i = 0; i < r->length; i++) {
        float *y = row_out(r, at + i * r->inner, value);
        k->binary(BZ_FN_SUB, row_in(r, 0, at + i * r->inner, n, wide), 1, most, 1, y, n);
        if (!log_of)
            k->unary(BZ_FN_EXP, 0, 0, y, y, n);
        k->binary(log_of ? BZ_FN_SUB : BZ_FN_MUL, y, 1, sum, 1, y, n);
        row_done(r, at + i * r->inner, y, n);
    }
}

/* Dimensions of x, outermost first; what is kept and what is not, each with its step in x. */
static void split_dimensions(bz_rows *r, const bz_problem *p)
{
    int rank = bz_extent_rank(p->reduce.x), before = -1;
    int64_t step = bz_extent_count(p->reduce.x);
    r->count = 1;
    for (int i = 0; i < rank; i++) {
        int64_t dim = p->reduce.x[i];
        step /= dim;
        if (dim == 1)
            continue;
        bool keeps = p->reduce.y[i] != 1, joins = before == (int)keeps;
        int *n = keeps ? &r->n_kept : &r->n_gone;
        int64_t *dims = keeps ? r->kept : r->gone, *steps = keeps ? r->kept_step : r->gone_step;
        dims[*n - joins] = joins ? dims[*n - joins] * dim : dim;
        steps[*n - joins] = step;
        *n += !joins;
        r->count *= keeps ? 1 : dim;
        before = keeps;
    }
    r->last_kept = before == 1;
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

static void finish_reduction(const bz_rows *r, float *y, int64_t n)
{
    bz_fn fn = r->job->problem->reduce.fn;
    if (fn == BZ_FN_MEAN)
        r->kernels->unary(BZ_FN_LINEAR, (float)(1 / (double)r->count), 0, y, y, n);
    else if (fn == BZ_FN_L2)
        r->kernels->unary(BZ_FN_SQRT, 0, 0, y, y, n);
}

/* Some results, each of rows of neighbours. Their first rows are read before their second ones, as they lie in memory. */
static void reduce_rows(bz_rows *r, int64_t block, float *room)
{
    bz_fn fn = r->job->problem->reduce.fn;
    double sum[RESULTS];
    float own[RESULTS];
    int64_t from[RESULTS];
    int64_t first = block * r->pieces, results = r->job->operand[r->job->n_operands - 1].count,
            n = results - first < r->pieces ? results - first : r->pieces;
    for (int64_t i = 0; i < n; i++) {
        sum[i] = fn == BZ_FN_MAX ? -INFINITY : fn == BZ_FN_MIN ? INFINITY : fn == BZ_FN_PROD;
        from[i] = offset_of(first + i, r->kept, r->kept_step, r->n_kept);
    }
    for (int64_t k = 0; k < r->count / r->length; k++) {
        int64_t at = offset_of(k, r->gone, r->gone_step, r->n_gone - 1);
        for (int64_t i = 0; i < n; i++) {
            const float *x = row_in(r, 0, from[i] + at, r->length, room);
            double v = is_sum(fn) ? bz_kernels_sum(r->kernels, fn, x, r->length)
                                  : (double)r->kernels->reduce(fn, x, r->length);
            sum[i] = is_sum(fn)                          ? sum[i] + v
                     : fn == BZ_FN_PROD                  ? sum[i] * v
                     : (fn == BZ_FN_MAX) == (v > sum[i]) ? v
                                                         : sum[i];
        }
    }
    float *y = row_out(r, first, own);
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)sum[i];
    finish_reduction(r, y, n); /* of each by itself it took as long as a row of 100 values */
    row_done(r, first, y, n);
}

/* Neighbouring results, each a column of values. Sums start anew after some: f32 holds few of equal size. */
static void reduce_columns(bz_rows *r, int64_t row, float *room)
{
    enum { FEW = 256 };
    float total[COLUMNS], part[COLUMNS], wide[COLUMNS];
    bz_fn fn = r->job->problem->reduce.fn;
    int64_t width = r->kept[r->n_kept - 1], from = row % r->pieces * COLUMNS,
            n = width - from < COLUMNS ? width - from : COLUMNS;
    int64_t at = from + offset_of(row / r->pieces, r->kept, r->kept_step, r->n_kept - 1);
    float first = fn == BZ_FN_MAX ? -INFINITY : fn == BZ_FN_MIN ? INFINITY : fn == BZ_FN_PROD;
    (void)room;
    for (int64_t i = 0; i < n; i++)
        total[i] = part[i] = first;
    for (int64_t k = 0; k < r->count; k++) {
        const float *x = row_in(r, 0, at + offset_of(k, r->gone, r->gone_step, r->n_gone), n, wide);
        r->kernels->reduce_into(fn, x, part, n);
        if (!is_sum(fn) || (k % FEW != FEW - 1 && k != r->count - 1))
            continue;
        r->kernels->binary(BZ_FN_ADD, total, 1, part, 1, total, n);
        memset(part, 0, sizeof part);
    }
    float *sum = is_sum(fn) ? total : part;
    int64_t to = row / r->pieces * width + from;
    finish_reduction(r, sum, n);
    float *y = row_out(r, to, sum);
    if (y != sum)
        memcpy(y, sum, (size_t)n * sizeof *y);
    row_done(r, to, sum, n);
}

/* A cast, with a factor where numbers are quantized: integers are rounded. */
static void reorder_row(bz_rows *r, int64_t row, float *room)
{
    const bz_problem *p = r->job->problem;
    int64_t at = row * BLOCK, all = bz_extent_count(p->reorder.x), n = all - at < BLOCK ? all - at : BLOCK;
    const float *x = row_in(r, 0, at, n, room);
    float *y = row_out(r, at, room + BLOCK);
    r->kernels->unary(BZ_FN_LINEAR, p->reorder.scale, 0, x, y, n);
    if (bz_dtype_is_int(p->dtype_y))
        r->kernels->unary(BZ_FN_ROUND, 0, 0, y, y, n);
    row_done(r, at, y, n);
}

/* A row, or all rows of the last two dimensions: zeros up to each row of x, and behind the last one. */
static void pad_rows(bz_rows *r, int64_t part, float *room)
{
    int last = r->rank - 1, outer = last - (r->pieces > 1), size = bz_dtype_bits(r->job->problem->dtype) / 8;
    int64_t taken = outer < last ? r->x[outer] : 1, skipped = outer < last ? r->before[outer] : 0;
    int64_t from = 0, step = taken * r->x[last], number = part, n = r->x[last] * size, width = r->y[last] * size;
    bool inside = true;
    char *y = (char *)bz_plain_at(r->plain, 1, r->copy) + part * r->pieces * width, *zero = y;
    (void)room;
    for (int i = outer - 1; i >= 0; step *= r->x[i], number /= r->y[i--]) {
        int64_t at = number % r->y[i] - r->before[i];
        inside &= at >= 0 && at < r->x[i];
        from += at * step;
    }
    for (int64_t i = 0; i < taken && inside; i++) {
        char *to = y + (skipped + i) * width + r->before[last] * size;
        memset(zero, 0, (size_t)(to - zero));
        memcpy(to, (const char *)bz_plain_at(r->plain, 0, r->copy) + from * size + i * n, (size_t)n);
        zero = to + n;
    }
    memset(zero, 0, (size_t)(y + r->pieces * width - zero));
}

static int64_t rows_of(int64_t all, int64_t length)
{
    return (all + length - 1) / length;
}

static void open_softmax(bz_rows *r, const bz_problem *p)
{
    r->inner = bz_extent_count(p->softmax.x + p->softmax.axis + 1);
    r->length = p->softmax.x[p->softmax.axis];
    r->n = bz_extent_count(p->softmax.x) / r->length / r->inner;
    if (r->inner > 1) {
        r->pieces = rows_of(r->inner, COLUMNS);
        r->n *= r->pieces;
        r->one = softmax_columns;
    }
}

static void open_norm(bz_rows *r, const bz_problem *p)
{
    r->length = p->kind == BZ_PROBLEM_GROUPNORM ? bz_extent_count(p->groupnorm.x + 1) / p->groupnorm.group
                                                : bz_extent_count(p->layernorm.x + p->layernorm.axis);
    r->n = bz_extent_count(p->layernorm.x) / r->length;
    r->statistics = p->kind == BZ_PROBLEM_GROUPNORM ? p->groupnorm.training : p->layernorm.training;
}

static void open_lpnorm(bz_rows *r, const bz_problem *p)
{
    r->length = p->lpnorm.x[bz_extent_rank(p->lpnorm.x) - 1];
    r->n = bz_extent_count(p->lpnorm.x) / r->length;
}

static void open_channels(bz_rows *r, const bz_problem *p)
{
    r->inner = bz_extent_count(p->batchnorm.x + 2);
    r->length = r->inner == 1 ? p->batchnorm.x[1] : r->inner;
    r->n = bz_extent_count(p->batchnorm.x) / r->length;
    if (p->kind == BZ_PROBLEM_BATCHNORM && p->batchnorm.training)
        r->one = NULL; /* training.c */
}

static void open_reduce(bz_rows *r, const bz_problem *p)
{
    split_dimensions(r, p);
    int64_t results = bz_extent_count(p->reduce.y);
    if (r->last_kept) {
        int64_t width = r->kept[r->n_kept - 1];
        r->pieces = rows_of(width, COLUMNS);
        r->n = results / width * r->pieces;
        r->length = COLUMNS;
        r->one = reduce_columns;
    } else {
        r->length = r->n_gone ? r->gone[r->n_gone - 1] : 1;
        int64_t share = results / (4 * r->job->setting->threads); /* each thread has some pieces */
        r->pieces = share < 1 ? 1 : share < RESULTS ? share : RESULTS;
        r->n = rows_of(results, r->pieces);
    }
}

static void open_reorder(bz_rows *r, const bz_problem *p)
{
    r->length = BLOCK;
    r->n = rows_of(bz_extent_count(p->reorder.x), BLOCK);
    if (p->reorder.from != BZ_LAYOUT_PLAIN || p->reorder.to != BZ_LAYOUT_PLAIN)
        r->one = NULL;
}

static void open_pad(bz_rows *r, const bz_problem *p)
{
    int n = bz_extent_rank(p->pad.x);
    int64_t behind = 1;
    r->rank = n;
    for (int i = n; i-- > 0;) {
        int64_t begin = i < 2 ? 0 : p->pad.pad[i - 2], end = i < 2 ? 0 : p->pad.pad[n - 2 + i - 2];
        if (!begin && !end && i == r->rank - 1 && i > 0) { /* a row may as well hold all of it */
            behind *= p->pad.x[i];
            r->rank--;
            continue;
        }
        r->x[i] = p->pad.x[i] * behind, r->before[i] = begin * behind;
        r->y[i] = (p->pad.x[i] + begin + end) * behind;
        behind = 1;
    }
    r->length = r->y[r->rank - 1];
    r->n = r->pieces = 1;
    for (int i = 0; i < r->rank - 2; i++)
        r->n *= r->y[i];
    int threads = r->job->setting->threads;
    if (r->rank > 1) /* few planes are shared out by rows */
        *(threads > 1 && r->n < 4 * threads ? &r->n : &r->pieces) *= r->y[r->rank - 2];
}

static const struct {
    void (*open)(bz_rows *r, const bz_problem *p);
    row_function *one;
    bz_problem_kind kind;
    bool bytes; /* moves bytes of any type */
} KINDS[] = {
    {open_softmax, softmax_row, BZ_PROBLEM_SOFTMAX, false},
    {open_softmax, softmax_row, BZ_PROBLEM_LOGSOFTMAX, false},
    {open_norm, layernorm_row, BZ_PROBLEM_LAYERNORM, false},
    {open_norm, layernorm_row, BZ_PROBLEM_RMSNORM, false},
    {open_lpnorm, lpnorm_row, BZ_PROBLEM_LPNORM, false},
    {open_norm, groupnorm_row, BZ_PROBLEM_GROUPNORM, false},
    {open_channels, batchnorm_row, BZ_PROBLEM_BATCHNORM, false},
    {open_channels, prelu_row, BZ_PROBLEM_PRELU, false},
    {open_reduce, reduce_rows, BZ_PROBLEM_REDUCE, false},
    {open_reorder, reorder_row, BZ_PROBLEM_REORDER, false},
    {open_pad, pad_rows, BZ_PROBLEM_PAD, true},
};

/* Rows of some types need room beside their f32. */
static bool takes_types(const bz_job *job, bool casts, bool *room)
{
    *room = false;
    for (int i = 0; i < job->n_operands; i++) {
        bz_dtype t = job->operand[i].dtype;
        *room |= t != BZ_F32;
        if (!bz_kernels_take(t) || (!casts && !bz_dtype_is_float(t)))
            return false;
    }
    return true;
}

bz_rows *bz_rows_open(const bz_job *job)
{
    bz_rows r = {.job = job, .kernels = bz_kernels_best(), .inner = 1, .pieces = 1};
    bool room = false, bytes = false;
    r.epsilon = job->epsilon > 0 ? job->epsilon : 1e-5f;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (KINDS[i].kind == job->problem->kind) {
            r.one = KINDS[i].one, bytes = KINDS[i].bytes;
            KINDS[i].open(&r, job->problem);
        }
    if (!r.one || (!bytes && !takes_types(job, job->problem->kind == BZ_PROBLEM_REORDER, &room)) ||
        !bz_posts_known(job->problem))
        return NULL;
    if (room)
        r.room = bz_alloc((size_t)job->setting->threads * (size_t)r.length, 2 * sizeof *r.room);
    if (job->problem->kind == BZ_PROBLEM_BATCHNORM && r.inner == 1)
        r.by = bz_alloc((size_t)r.length, 2 * sizeof *r.by);
    return memcpy(bz_alloc(1, sizeof r), &r, sizeof r);
}

static void run_rows(void *of, int64_t first, int64_t end, int thread)
{
    bz_rows *r = of;
    float *room = r->room ? r->room + 2 * thread * r->length : NULL;
    for (int64_t i = first; i < end; i++)
        r->one(r, i, room);
}

void bz_rows_run(bz_rows *r, const bz_plain *plain, int copy)
{
    r->plain = plain, r->copy = copy;
    for (int64_t c = 0; r->by && c < r->length; c++)
        r->by[c] = channel_factor(r, c, &r->by[r->length + c]);
    bz_share_out(run_rows, r, r->n, r->job->operand[0].count, r->job->setting->threads);
    if (r->job->problem->post[0].fn)
        bz_posts_run(plain, copy);
}

void bz_rows_close(bz_rows *r)
{
    if (r) {
        free(r->by);
        free(r->room);
    }
    free(r);
}
