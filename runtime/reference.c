/* Results by definition, one element at a time in double precision: slow, obvious, and asked for
 * only where a sample of elements is checked. */
#include "runtime/values.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double epsilon(const bz_reference *r)
{
    return r->epsilon > 0 ? (double)r->epsilon : 1e-5; /* ONNX's default */
}

/* The first operand of the role. */
static int find(const bz_reference *r, bz_role role)
{
    for (int i = 0; i < r->n_operands; i++)
        if (r->operand[i].role == role)
            return i;
    return -1;
}

static const float *values(const bz_reference *r, bz_role role)
{
    int i = find(r, role);
    return i < 0 ? NULL : r->value[i];
}

static const bz_operand *result(const bz_reference *r)
{
    return &r->operand[r->n_operands - 1];
}

/* index → coordinates */
static void unravel(int64_t index, const int64_t *dim, int rank, int64_t *at)
{
    for (int i = rank; i--; index /= dim[i])
        at[i] = index % dim[i];
}

/* coordinates → index; dimensions of 1 are broadcast */
static int64_t ravel(const int64_t *at, const int64_t *dim, int rank)
{
    int64_t index = 0;
    for (int i = 0; i < rank; i++)
        index = index * dim[i] + (dim[i] == 1 ? 0 : at[i]);
    return index;
}

static void accumulate(bz_expected *e, double term)
{
    e->value += term;
    e->magnitude += fabs(term);
}

/* Calls for every offset of a window of n dimensions: k counts through them in row-major order. */
static int64_t window_count(const int64_t *kernel, int n)
{
    int64_t count = 1;
    for (int i = 0; i < n; i++)
        count *= kernel[i];
    return count;
}

/* ---- products ------------------------------------------------------------------------------- */

static bz_expected conv_at(const bz_reference *r, const int64_t *y)
{
    const bz_problem *p = r->problem;
    const int64_t *x = p->conv.x, *w = p->conv.w;
    const float *xv = values(r, BZ_ROLE_X), *wv = values(r, BZ_ROLE_W);
    int n = bz_extent_rank(x) - 2;
    int64_t window = window_count(w + 2, n), first = y[1] / (w[0] / p->conv.group) * w[1];
    bz_expected e = {0};
    for (int64_t k = 0; k < window; k++) {
        int64_t at[BZ_PROBLEM_SPATIAL], from = 0;
        bool inside = true;
        unravel(k, w + 2, n, at);
        for (int i = 0; i < n; i++) {
            int64_t pos = y[2 + i] * p->conv.stride[i] + at[i] * p->conv.dilation[i] - p->conv.pad[i];
            inside &= pos >= 0 && pos < x[2 + i];
            from = from * x[2 + i] + pos;
        }
        int64_t plane = window_count(x + 2, n);
        for (int64_t c = 0; inside && c < w[1]; c++)
            accumulate(&e, (double)xv[(y[0] * x[1] + first + c) * plane + from] * wv[(y[1] * w[1] + c) * window + k]);
    }
    return e;
}

/* y = x · stride + k · dilation − pad, solved for x */
static bz_expected deconv_at(const bz_reference *r, const int64_t *y)
{
    const bz_problem *p = r->problem;
    const int64_t *x = p->conv.x, *w = p->conv.w;
    const float *xv = values(r, BZ_ROLE_X), *wv = values(r, BZ_ROLE_W);
    int n = bz_extent_rank(x) - 2;
    int64_t window = window_count(w + 2, n), plane = window_count(x + 2, n);
    int64_t inputs = x[1] / p->conv.group, group = y[1] / w[1], out = y[1] % w[1];
    bz_expected e = {0};
    for (int64_t k = 0; k < window; k++) {
        int64_t at[BZ_PROBLEM_SPATIAL], from = 0;
        bool inside = true;
        unravel(k, w + 2, n, at);
        for (int i = 0; i < n; i++) {
            int64_t pos = y[2 + i] + p->conv.pad[i] - at[i] * p->conv.dilation[i];
            inside &= pos >= 0 && pos % p->conv.stride[i] == 0 && pos / p->conv.stride[i] < x[2 + i];
            from = from * x[2 + i] + pos / p->conv.stride[i];
        }
        for (int64_t c = group * inputs; inside && c < (group + 1) * inputs; c++)
            accumulate(&e, (double)xv[(y[0] * x[1] + c) * plane + from] * wv[(c * w[1] + out) * window + k]);
    }
    return e;
}

static bz_expected dot(const float *a, int64_t step_a, const float *b, int64_t step_b, int64_t n)
{
    bz_expected e = {0};
    for (int64_t i = 0; i < n; i++)
        accumulate(&e, (double)a[i * step_a] * b[i * step_b]);
    return e;
}

static bz_expected gemm_at(const bz_reference *r, const int64_t *y)
{
    int64_t m = r->problem->gemm.m, n = r->problem->gemm.n, k = r->problem->gemm.k;
    bool ta = r->problem->gemm.transa, tb = r->problem->gemm.transb;
    const float *a = values(r, BZ_ROLE_X) + y[0] * m * k, *b = values(r, BZ_ROLE_B) + y[0] * k * n;
    return dot(a + (ta ? y[1] : y[1] * k), ta ? m : 1, b + (tb ? y[2] * k : y[2]), tb ? 1 : n, k);
}

static bz_expected gemv_at(const bz_reference *r, const int64_t *y)
{
    int64_t m = r->problem->gemv.m, k = r->problem->gemv.k;
    bool trans = r->problem->gemv.trans;
    return dot(values(r, BZ_ROLE_W) + (trans ? y[0] : y[0] * k), trans ? m : 1, values(r, BZ_ROLE_X), 1, k);
}

static bz_expected matmul_at(const bz_reference *r, const int64_t *y)
{
    const int64_t *a = r->problem->matmul.a, *b = r->problem->matmul.b;
    int n = bz_extent_rank(a);
    int64_t k = a[n - 1], at_a = ravel(y, a, n - 2) * a[n - 2] + y[n - 2], at_b = ravel(y, b, n - 2) * k;
    return dot(values(r, BZ_ROLE_X) + at_a * k, 1, values(r, BZ_ROLE_B) + at_b * b[n - 1] + y[n - 1], b[n - 1], k);
}

/* The score of one key for the query at `q`. */
static double score_at(const bz_reference *r, const float *q, const float *k, const int64_t *y, int64_t key)
{
    const bz_problem *p = r->problem;
    int64_t size = p->attention.q[3];
    const float *mask = values(r, BZ_ROLE_MASK);
    double score = dot(q, 1, k + key * size, 1, size).value / sqrt((double)size);
    return mask ? score + mask[ravel((int64_t[]){y[0], y[1], y[2], key}, p->attention.mask, 4)] : score;
}

static bz_expected attention_at(const bz_reference *r, const int64_t *y)
{
    const bz_problem *p = r->problem;
    const int64_t *q = p->attention.q, *k = p->attention.k, *v = p->attention.v;
    int64_t head = y[0] * k[1] + y[1] / (q[1] / k[1]), seen = p->attention.causal ? y[2] + 1 : k[2];
    const float *query = values(r, BZ_ROLE_X) + ((y[0] * q[1] + y[1]) * q[2] + y[2]) * q[3];
    const float *key = values(r, BZ_ROLE_B) + head * k[2] * k[3], *value = values(r, BZ_ROLE_V) + head * v[2] * v[3];
    double most = -INFINITY, sum = 0;
    bz_expected e = {0};
    for (int64_t i = 0; i < seen; i++)
        most = fmax(most, score_at(r, query, key, y, i));
    for (int64_t i = 0; i < seen; i++) {
        double weight = exp(score_at(r, query, key, y, i) - most);
        sum += weight;
        accumulate(&e, weight * value[i * v[3] + y[3]]);
    }
    return (bz_expected){e.value / sum, e.magnitude / sum};
}

/* ---- windows and rows ----------------------------------------------------------------------- */

static bz_expected pool_at(const bz_reference *r, const int64_t *y)
{
    const bz_problem *p = r->problem;
    const int64_t *x = p->pool.x;
    const float *xv = values(r, BZ_ROLE_X);
    int n = bz_extent_rank(x) - 2;
    int64_t window = window_count(p->pool.kernel, n), plane = window_count(x + 2, n), inside_count = 0;
    double most = -INFINITY;
    bz_expected e = {0};
    for (int64_t k = 0; k < window; k++) {
        int64_t at[BZ_PROBLEM_SPATIAL], from = 0;
        bool inside = true;
        unravel(k, p->pool.kernel, n, at);
        for (int i = 0; i < n; i++) {
            int64_t pos = y[2 + i] * p->pool.stride[i] + at[i] * p->pool.dilation[i] - p->pool.pad[i];
            inside &= pos >= 0 && pos < x[2 + i];
            from = from * x[2 + i] + pos;
        }
        if (!inside)
            continue;
        double v = xv[(y[0] * x[1] + y[1]) * plane + from];
        most = v > most ? v : most;
        inside_count++;
        accumulate(&e, v);
    }
    if (p->pool.mode == BZ_POOL_MAX)
        return (bz_expected){most, fabs(most)};
    double by = p->pool.mode == BZ_POOL_AVG ? (double)(inside_count ? inside_count : 1) : (double)window;
    return (bz_expected){e.value / by, e.magnitude / by};
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

static bz_expected normalized(double x, double mean, double variance, double scale, double shift)
{
    double v = (x - mean) / sqrt(variance) * scale;
    return (bz_expected){v + shift, fabs(v) + fabs(shift) + fabs(scale)};
}

static bz_expected norm_at(const bz_reference *r, int64_t index, const int64_t *y)
{
    const bz_problem *p = r->problem;
    const float *x = values(r, BZ_ROLE_X), *scale = values(r, BZ_ROLE_SCALE), *shift = values(r, BZ_ROLE_SHIFT);
    double mean, variance;
    if (p->kind == BZ_PROBLEM_BATCHNORM)
        return normalized(x[index], values(r, BZ_ROLE_MEAN)[y[1]], values(r, BZ_ROLE_VARIANCE)[y[1]] + epsilon(r),
                          scale[y[1]], shift[y[1]]);
    if (p->kind == BZ_PROBLEM_RMSNORM) {
        int64_t n = bz_extent_count(p->rmsnorm.x + p->rmsnorm.axis);
        moments(x + index / n * n, n, &mean, &variance);
        return normalized(x[index], 0, variance + mean * mean + epsilon(r), scale[index % n], 0);
    }
    if (p->kind == BZ_PROBLEM_LAYERNORM) {
        int64_t n = bz_extent_count(p->layernorm.x + p->layernorm.axis), i = index % n;
        moments(x + index / n * n, n, &mean, &variance);
        return normalized(x[index], mean, variance + epsilon(r), scale[i], shift[i]);
    }
    int64_t n = bz_extent_count(p->groupnorm.x + 1) / p->groupnorm.group;
    moments(x + index / n * n, n, &mean, &variance);
    return normalized(x[index], mean, variance + epsilon(r), scale[y[1]], shift[y[1]]);
}

static bz_expected softmax_at(const bz_reference *r, int64_t index)
{
    const int64_t *x = r->problem->softmax.x;
    int axis = (int)r->problem->softmax.axis;
    int64_t step = bz_extent_count(x + axis + 1), n = x[axis];
    const float *row = values(r, BZ_ROLE_X) + index / (step * n) * step * n + index % step;
    double most = -INFINITY, sum = 0, own = row[index / step % n * step];
    for (int64_t i = 0; i < n; i++)
        most = row[i * step] > most ? row[i * step] : most;
    for (int64_t i = 0; i < n; i++)
        sum += exp(row[i * step] - most);
    if (r->problem->kind == BZ_PROBLEM_LOGSOFTMAX)
        return (bz_expected){own - most - log(sum), fabs(own) + fabs(most) + 1};
    return (bz_expected){exp(own - most) / sum, exp(own - most) / sum};
}

static bz_expected lrn_at(const bz_reference *r, int64_t index, const int64_t *y)
{
    const bz_problem *p = r->problem;
    const float *x = values(r, BZ_ROLE_X);
    int64_t plane = bz_extent_count(p->lrn.x + 2), before = (p->lrn.size - 1) / 2, after = p->lrn.size / 2;
    double sum = 0;
    for (int64_t c = y[1] - before; c <= y[1] + after; c++)
        if (c >= 0 && c < p->lrn.x[1])
            sum += pow(x[index + (c - y[1]) * plane], 2);
    double v = x[index] * pow(p->lrn.bias + (double)p->lrn.alpha / (double)p->lrn.size * sum, -(double)p->lrn.beta);
    return (bz_expected){v, fabs(v)};
}

static bz_expected reduce_at(const bz_reference *r, const int64_t *y)
{
    const bz_problem *p = r->problem;
    const float *x = values(r, BZ_ROLE_X);
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
        unravel(k, over, rank, at);
        for (int i = 0; i < rank; i++)
            at[i] = over[i] == 1 ? y[i] : at[i];
        double v = x[ravel(at, p->reduce.x, rank)];
        product *= v;
        most = v > most ? v : most;
        least = v < least ? v : least;
        accumulate(&e, fn == BZ_FN_L1 ? fabs(v) : fn == BZ_FN_L2 || fn == BZ_FN_SUMSQUARE ? v * v : v);
    }
    if (fn == BZ_FN_MEAN)
        return (bz_expected){e.value / (double)count, e.magnitude / (double)count};
    if (fn == BZ_FN_L2)
        return (bz_expected){sqrt(e.value), sqrt(e.value)};
    if (fn == BZ_FN_PROD) /* each factor adds a rounding error */
        return (bz_expected){product, fabs(product) * (1 + 0.01 * (double)count)};
    if (fn == BZ_FN_MAX || fn == BZ_FN_MIN)
        return (bz_expected){fn == BZ_FN_MAX ? most : least, 1};
    return e;
}

/* ---- moving --------------------------------------------------------------------------------- */

/* Where in x the coordinate y falls. Nearest rounds halves up, as oneDNN does. */
static double source(const bz_problem *p, int i, int64_t y)
{
    double nx = (double)p->resample.x[i], ny = (double)p->resample.y[i];
    if (p->resample.coord == BZ_COORD_ASYMMETRIC)
        return (double)y * nx / ny;
    if (p->resample.coord == BZ_COORD_ALIGN_CORNERS)
        return ny > 1 ? (double)y * (nx - 1) / (ny - 1) : 0;
    return ((double)y + 0.5) * nx / ny - 0.5;
}

static int64_t clamp(int64_t v, int64_t n)
{
    return v < 0 ? 0 : v >= n ? n - 1 : v;
}

static bz_expected resample_at(const bz_reference *r, const int64_t *y)
{
    const bz_problem *p = r->problem;
    const float *x = values(r, BZ_ROLE_X);
    int rank = bz_extent_rank(p->resample.x);
    bool nearest = p->resample.mode == BZ_RESAMPLE_NEAREST;
    bz_expected e = {0};
    for (int corner = 0; corner < (nearest ? 1 : 1 << (rank - 2)); corner++) {
        int64_t at[BZ_PROBLEM_RANK] = {y[0], y[1]};
        double weight = 1;
        for (int i = 2; i < rank; i++) {
            double s = source(p, i, y[i]);
            int64_t low = (int64_t)floor(s);
            bool up = corner >> (i - 2) & 1;
            if (nearest)
                low = (int64_t)(p->resample.coord == BZ_COORD_ASYMMETRIC ? floor(s) : round(s));
            else
                weight *= up ? s - (double)low : 1 - (s - (double)low);
            at[i] = clamp(low + up, p->resample.x[i]);
        }
        accumulate(&e, weight * x[ravel(at, p->resample.x, rank)]);
    }
    return e;
}

/* Outside of x there are zeros. */
static double padded_at(const bz_reference *r, const int64_t *y)
{
    const int64_t *x = r->problem->pad.x;
    int64_t at[BZ_PROBLEM_RANK];
    int rank = result(r)->rank;
    for (int d = 0; d < rank; d++) {
        at[d] = y[d] - (d < 2 ? 0 : r->problem->pad.pad[d - 2]);
        if (at[d] < 0 || at[d] >= x[d])
            return 0;
    }
    return r->value[0][ravel(at, x, rank)];
}

static double sliced_at(const bz_reference *r, const int64_t *y)
{
    const bz_problem *p = r->problem;
    int64_t index = 0;
    for (int d = 0; p->slice.x[d]; d++)
        index = index * p->slice.x[d] + p->slice.start[d] + y[d] * p->slice.step[d];
    return r->value[0][index];
}

static double gathered_at(const bz_reference *r, const int64_t *y)
{
    const bz_problem *p = r->problem;
    int64_t index = 0;
    for (int d = 0; p->gather.x[d]; d++)
        index = index * p->gather.x[d] + (d == p->gather.axis ? (int64_t)r->value[1][y[d]] : y[d]);
    return r->value[0][index];
}

static double chosen_at(const bz_reference *r, const int64_t *y)
{
    const bz_problem *p = r->problem;
    int rank = result(r)->rank;
    return r->value[0][ravel(y, p->where.c, rank)] != 0 ? r->value[1][ravel(y, p->where.a, rank)]
                                                        : r->value[2][ravel(y, p->where.b, rank)];
}

static double moved_at(const bz_reference *r, int64_t index, int64_t *y)
{
    const bz_problem *p = r->problem;
    int64_t at[BZ_PROBLEM_RANK];
    int rank = result(r)->rank, i = 0;
    if (p->kind == BZ_PROBLEM_TRANSPOSE) {
        for (int d = 0; d < rank; d++)
            at[p->transpose.perm[d]] = y[d];
        return r->value[0][ravel(at, p->transpose.x, rank)];
    }
    if (p->kind == BZ_PROBLEM_PAD)
        return padded_at(r, y);
    if (p->kind == BZ_PROBLEM_SLICE)
        return sliced_at(r, y);
    if (p->kind == BZ_PROBLEM_EXPAND)
        return r->value[0][ravel(y, p->expand.x, rank)];
    if (p->kind == BZ_PROBLEM_GATHER)
        return gathered_at(r, y);
    if (p->kind == BZ_PROBLEM_WHERE)
        return chosen_at(r, y);
    if (p->kind == BZ_PROBLEM_CONCAT) {
        for (; y[p->concat.axis] >= p->concat.sizes[i]; i++)
            y[p->concat.axis] -= p->concat.sizes[i];
        const int64_t *dim = r->operand[i].dim;
        index = 0; /* an input may be 1 long along the axis: this is no broadcast */
        for (int d = 0; d < rank; d++)
            index = index * dim[d] + y[d];
        return r->value[i][index];
    }
    return r->value[0][index] * (double)p->reorder.scale;
}

/* ---- recurrent networks --------------------------------------------------------------------- */

static double gate(const bz_reference *r, const float *w, const double *x, const float *xf, int64_t n, int gate,
                   int gates, int64_t j)
{
    int64_t h = r->problem->rnn.hidden;
    bz_rnn_scale s = bz_problem_rnn_scale(r->problem);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (x ? x[i] : ((double)xf[i] - s.shift) / s.data) * w[(i * gates + gate) * h + j];
    return sum / s.weights;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* One step: state (and cell) of the row from x. `scratch` has room for 2 · hidden. */
static void rnn_step(const bz_reference *r, int d, const float *x, double *state, double *cell, double *scratch)
{
    const bz_problem *p = r->problem;
    int gates = p->kind == BZ_PROBLEM_LSTM ? 4 : p->kind == BZ_PROBLEM_GRU ? 3 : 1;
    bool lbr = p->kind == BZ_PROBLEM_GRU && p->rnn.lbr;
    int64_t h = p->rnn.hidden, in = p->rnn.input;
    const float *w = values(r, BZ_ROLE_W) + d * in * gates * h, *u = values(r, BZ_ROLE_R) + d * h * gates * h;
    const float *bias = values(r, BZ_ROLE_BIAS) + d * (gates + lbr) * h;
    const float *peephole = values(r, BZ_ROLE_PEEPHOLE);
    double *next = scratch, *reset = scratch + h;
#define SUM(g, j)   (gate(r, w, NULL, x, in, g, gates, j) + bias[(g)*h + (j)])
#define OF(g, j, s) gate(r, u, s, NULL, h, g, gates, j)
#define SEEN(k, j)  (peephole ? peephole[(d * 3 + (k)) * h + (j)] * cell[j] : 0)
    for (int64_t j = 0; p->kind == BZ_PROBLEM_GRU && !lbr && j < h; j++)
        reset[j] = state[j] * sigmoid(SUM(1, j) + OF(1, j, state));
    for (int64_t j = 0; j < h; j++) {
        if (p->kind == BZ_PROBLEM_LSTM) {
            cell[j] = sigmoid(SUM(1, j) + OF(1, j, state) + SEEN(1, j)) * cell[j] +
                      sigmoid(SUM(0, j) + OF(0, j, state) + SEEN(0, j)) * tanh(SUM(2, j) + OF(2, j, state));
            next[j] = sigmoid(SUM(3, j) + OF(3, j, state) + SEEN(2, j)) * tanh(cell[j]);
        } else if (p->kind == BZ_PROBLEM_GRU) {
            double keep = sigmoid(SUM(0, j) + OF(0, j, state));
            double fresh =
                lbr ? sigmoid(SUM(1, j) + OF(1, j, state)) * (OF(2, j, state) + bias[3 * h + j]) : OF(2, j, reset);
            next[j] = keep * state[j] + (1 - keep) * tanh(SUM(2, j) + fresh);
        } else {
            next[j] = bz_fn_value(p->rnn.fn, SUM(0, j) + OF(0, j, state), 0, 0);
        }
    }
#undef SUM
#undef OF
#undef SEEN
    memcpy(state, next, (size_t)h * sizeof *state);
}

static bz_expected rnn_at(bz_reference *r, const int64_t *y)
{
    const bz_problem *p = r->problem;
    int64_t h = p->rnn.hidden, seq = p->rnn.seq, batch = p->rnn.batch;
    int d = (int)(y[2] / h);
    bz_rnn_scale s = bz_problem_rnn_scale(p);
    if (!r->sequence || r->row != y[1] || r->direction != d) {
        double *memory = bz_alloc((size_t)h, 4 * sizeof *memory);
        const float *first = values(r, BZ_ROLE_H) + (d * batch + y[1]) * h;
        const float *cell = p->kind == BZ_PROBLEM_LSTM ? values(r, BZ_ROLE_C) + (d * batch + y[1]) * h : NULL;
        for (int64_t j = 0; j < h; j++) {
            memory[j] = (first[j] - s.shift) / s.data;
            memory[h + j] = cell ? (double)cell[j] : 0;
        }
        free(r->sequence);
        r->sequence = bz_alloc((size_t)(seq * h), sizeof *r->sequence);
        bool backwards = p->rnn.dir == BZ_REVERSE || d == 1;
        for (int64_t i = 0; i < seq; i++) {
            int64_t t = backwards ? seq - 1 - i : i;
            rnn_step(r, d, values(r, BZ_ROLE_X) + (t * batch + y[1]) * p->rnn.input, memory, memory + h,
                     memory + 2 * h);
            for (int64_t j = 0; j < h; j++) {
                double v = memory[j] * s.data + s.shift;
                if (bz_dtype_is_int(p->dtype))
                    memory[j] = ((v = (double)bz_round_to(p->dtype, v)) - s.shift) / s.data;
                r->sequence[t * h + j] = bz_dtype_is_int(p->dtype_y) ? v : memory[j];
            }
        }
        free(memory);
        r->row = y[1];
        r->direction = d;
    }
    return (bz_expected){r->sequence[y[0] * h + y[2] % h], 1};
}

/* ---- all ------------------------------------------------------------------------------------ */

static bz_expected plain_at(bz_reference *r, int64_t index, int64_t *y)
{
    const bz_problem *p = r->problem;
    int rank = result(r)->rank;
    double v;
    switch (p->kind) {
    case BZ_PROBLEM_CONV:
        return conv_at(r, y);
    case BZ_PROBLEM_DECONV:
        return deconv_at(r, y);
    case BZ_PROBLEM_GEMM:
        return gemm_at(r, y);
    case BZ_PROBLEM_MATMUL:
        return matmul_at(r, y);
    case BZ_PROBLEM_GEMV:
        return gemv_at(r, y);
    case BZ_PROBLEM_ATTENTION:
        return attention_at(r, y);
    case BZ_PROBLEM_POOL:
        return pool_at(r, y);
    case BZ_PROBLEM_BATCHNORM:
    case BZ_PROBLEM_LAYERNORM:
    case BZ_PROBLEM_RMSNORM:
    case BZ_PROBLEM_GROUPNORM:
        return norm_at(r, index, y);
    case BZ_PROBLEM_SOFTMAX:
    case BZ_PROBLEM_LOGSOFTMAX:
        return softmax_at(r, index);
    case BZ_PROBLEM_LRN:
        return lrn_at(r, index, y);
    case BZ_PROBLEM_ACTIVATION: {
        double x = r->value[0][index];
        v = bz_fn_value(p->activation.fn, x, p->activation.alpha, p->activation.beta);
        return (bz_expected){v, fabs(v) + fabs(x)};
    }
    case BZ_PROBLEM_PRELU:
        v = r->value[0][index];
        return (bz_expected){v > 0 ? v : v * values(r, BZ_ROLE_SLOPE)[y[1]], fabs(v)};
    case BZ_PROBLEM_DROPOUT:
        v = 2 * (double)r->value[0][index];
        return (bz_expected){v, fabs(v)};
    case BZ_PROBLEM_BINARY: {
        double a = r->value[0][ravel(y, p->binary.a, rank)], b = r->value[1][ravel(y, p->binary.b, rank)];
        v = bz_fn_binary(p->binary.fn, a, b);
        return (bz_expected){v, fabs(v) + fabs(a) + fabs(b)};
    }
    case BZ_PROBLEM_REDUCE:
        return reduce_at(r, y);
    case BZ_PROBLEM_RESAMPLE:
        return resample_at(r, y);
    case BZ_PROBLEM_LSTM:
    case BZ_PROBLEM_GRU:
    case BZ_PROBLEM_RNN:
        return rnn_at(r, y);
    default:
        v = moved_at(r, index, y);
        return (bz_expected){v, fabs(v)};
    }
}

/* The bias belongs to the product: it is scaled with it. */
static void apply_post(bz_reference *r, int64_t index, const int64_t *y, bz_expected *e)
{
    const bz_problem *p = r->problem;
    int rank = result(r)->rank;
    double scale = bz_problem_scale(p);
    if (p->post[0].fn == BZ_FN_BIAS)
        accumulate(
            e, values(r, BZ_ROLE_BIAS)[y[p->kind == BZ_PROBLEM_CONV || p->kind == BZ_PROBLEM_DECONV ? 1 : rank - 1]]);
    e->value *= scale;
    e->magnitude *= scale;
    for (int i = p->post[0].fn == BZ_FN_BIAS; p->post[i].fn; i++) {
        const bz_post *post = &p->post[i];
        if (!bz_fn_is_binary(post->fn)) {
            e->value = bz_fn_value(post->fn, e->value, post->alpha, post->beta);
            if (post->fn == BZ_FN_LOG)
                e->magnitude = 1 + fabs(e->value);
            else if (post->fn == BZ_FN_EXP)
                e->magnitude = e->value * (1 + e->magnitude);
            else if (post->fn == BZ_FN_SQUARE)
                e->magnitude *= e->magnitude;
            else if (post->fn == BZ_FN_LINEAR)
                e->magnitude = e->magnitude * fabs((double)post->alpha) + fabs((double)post->beta);
            continue;
        }
        int other = 0;
        while (r->operand[other].role != BZ_ROLE_OTHER || r->operand[other].post != i)
            other++;
        double v = r->value[other][index];
        e->value = bz_fn_binary(post->fn, e->value, v);
        e->magnitude = post->fn == BZ_FN_MUL ? e->magnitude * fabs(v) : e->magnitude + fabs(v);
    }
}

bz_reference bz_reference_of(const bz_problem *p, int n_operands, const bz_operand *operand, const float *const *value)
{
    return (bz_reference){.problem = p, .n_operands = n_operands, .operand = operand, .value = value, .row = -1};
}

bz_expected bz_reference_at(bz_reference *r, int64_t index)
{
    int64_t y[BZ_PROBLEM_RANK] = {0}, moved[BZ_PROBLEM_RANK];
    unravel(index, result(r)->dim, result(r)->rank, y);
    memcpy(moved, y, sizeof moved); /* a concat counts its own coordinates down */
    bz_expected e = plain_at(r, index, moved);
    apply_post(r, index, y, &e);
    if (!bz_dtype_is_float(result(r)->dtype))
        e.value = (double)bz_round_to(result(r)->dtype, e.value);
    return e;
}

void bz_reference_free(bz_reference *r)
{
    free(r->sequence);
    r->sequence = NULL;
}

bool bz_reference_exists(const bz_problem *p)
{
    return p->kind != BZ_PROBLEM_COPY;
}

double bz_reference_cost(const bz_problem *p, const bz_operand *operand)
{
    switch (p->kind) {
    case BZ_PROBLEM_CONV:
        return (double)bz_extent_count(p->conv.w + 1);
    case BZ_PROBLEM_DECONV:
        return (double)bz_extent_count(p->deconv.w) / (double)p->deconv.w[1];
    case BZ_PROBLEM_GEMM:
        return (double)p->gemm.k;
    case BZ_PROBLEM_GEMV:
        return (double)p->gemv.k;
    case BZ_PROBLEM_MATMUL:
        return (double)p->matmul.a[bz_extent_rank(p->matmul.a) - 1];
    case BZ_PROBLEM_ATTENTION:
        return 2 * (double)p->attention.k[2] * (double)(p->attention.k[3] + 10);
    case BZ_PROBLEM_POOL:
        return (double)window_count(p->pool.kernel, bz_extent_rank(p->pool.x) - 2);
    case BZ_PROBLEM_LAYERNORM:
    case BZ_PROBLEM_RMSNORM:
        return 2 * (double)bz_extent_count(p->layernorm.x + p->layernorm.axis);
    case BZ_PROBLEM_GROUPNORM:
        return 2 * (double)bz_extent_count(p->groupnorm.x + 1) / (double)p->groupnorm.group;
    case BZ_PROBLEM_SOFTMAX:
    case BZ_PROBLEM_LOGSOFTMAX:
        return 10 * (double)p->softmax.x[p->softmax.axis];
    case BZ_PROBLEM_REDUCE:
        return (double)operand[0].count * (double)bz_extent_rank(p->reduce.y) / (double)bz_extent_count(p->reduce.y);
    case BZ_PROBLEM_LRN:
        return 5 * (double)p->lrn.size;
    default:
        return 10;
    }
}

/* Two roundings to the result's type (some libraries round before the last step too), plus what the sum may be off: libraries sum in single precision
 * in any order, and Winograd's transforms cost about three more bits. */
double bz_tolerance(const bz_problem *p, bz_expected e, const char *math)
{
    double unit = p->dtype_y == BZ_F8E5M2   ? 0x1p-2
                  : p->dtype_y == BZ_F8E4M3 ? 0x1p-3
                  : p->dtype_y == BZ_BF16   ? 0x1p-7
                  : p->dtype_y == BZ_F16    ? 0x1p-9
                                            : 0x1p-22;
    double sum = p->dtype == BZ_F64 && p->dtype_y == BZ_F64 ? 1e-12 : 3e-5;
    if (p->kind == BZ_PROBLEM_BINARY && bz_fn_is_comparison(p->binary.fn))
        return 0.5; /* it holds or it does not */
    if (bz_dtype_is_int(p->dtype) && p->kind >= BZ_PROBLEM_LSTM && p->kind <= BZ_PROBLEM_RNN)
        return bz_dtype_is_int(p->dtype_y) ? 3.01 : 3.01 / 127; /* a step passes its rounding on to the next */
    if (bz_dtype_is_int(p->dtype_y))
        return p->dtype_y == BZ_I32 && bz_dtype_is_int(p->dtype) ? fabs(e.value) * 0x1p-22 + 0.5 : 1.01;
    if (!strcmp(math, "bf16"))
        sum = 0x1p-8;
    else if (!strcmp(math, "f16") || !strcmp(math, "tf32"))
        sum = 0x1p-10;
    /* states of a recurrent network are rounded at every step, gates are computed in the data's type */
    if (p->kind >= BZ_PROBLEM_LSTM && p->kind <= BZ_PROBLEM_RNN)
        sum = p->dtype == BZ_F32 ? 1e-4 : 0.05;
    /* functions are approximated by polynomials; in f16 sums are f16 too */
    if (p->dtype == BZ_F16)
        sum = 0x1p-9;
    /* tensor cores add products of eight bits with less than the bits of f32 */
    if (p->dtype == BZ_F8E4M3 || p->dtype == BZ_F8E5M2)
        sum = p->kind != BZ_PROBLEM_ATTENTION ? 0x1p-10
              : p->dtype == BZ_F8E4M3         ? 0x1p-4
                                              : 0x1p-3; /* weights are rounded */
    /* done in two calls, what is between them is rounded before scale and shift, or before the sum, which may
     * cancel it */
    bool between = p->kind == BZ_PROBLEM_GROUPNORM || p->kind == BZ_PROBLEM_ATTENTION;
    double rounded = between ? e.magnitude : fabs(e.value);
    return unit * rounded + sum * e.magnitude + 1e-7;
}

double bz_off(const bz_problem *p, bz_expected e, double got, const char *math)
{
    bool dropped = p->kind == BZ_PROBLEM_DROPOUT && got == 0;
    return dropped ? 0 : fabs(got - e.value) / bz_tolerance(p, e, math);
}

/* Six standard deviations, of which one is half the root of n: once in 500 million results that are right. */
bool bz_is_chance(int64_t dropped, int64_t n)
{
    return fabs(2 * (double)dropped - (double)n) <= 6 * sqrt((double)n);
}
