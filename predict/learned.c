/* Kernel ridge regression with a Matérn kernel (3/2): smooth, but not so smooth that a step from one algorithm to the next rings
 * through all shapes. Of many problems the few hundred are kept that tell most of the others (a Cholesky factorization that takes
 * the point of largest remaining variance next), and their weights are fitted to all. */
#include "predict/learned.h"

#include "predict/constants.h"

#include <math.h>
#include <string.h>

double bz_learned_alike(const bz_shape *a, const bz_shape *b)
{
    double d = 0;
    for (int i = 0; i < a->n; i++)
        d += (a->x[i] - b->x[i]) * (a->x[i] - b->x[i]);
    double r = sqrt(3 * d) / LENGTH;
    return (1 + r) * exp(-r);
}

static double kernel(const bz_learned *l, const bz_shape *a, const bz_shape *b)
{
    return bz_learned_alike(a, b) + l->constant;
}

typedef double lanes __attribute__((vector_size(32), aligned(8), may_alias));
enum { LANES = 4, STRIDE = (POINTS + 2 * LANES - 1) / (2 * LANES) * 2 * LANES };

BZ_WIDE static double dot(const double *a, const double *b, int n)
{
    enum { CHAINS = 4 }; /* additions that wait for nothing */
    lanes sum[CHAINS] = {{0}};
    int i = 0;
    for (; i + CHAINS * LANES <= n; i += CHAINS * LANES)
        for (int c = 0; c < CHAINS; c++)
            sum[c] += *(const lanes *)(a + i + c * LANES) * *(const lanes *)(b + i + c * LANES);
    lanes all = sum[0] + sum[1] + (sum[2] + sum[3]);
    double rest = 0;
    for (; i < n; i++)
        rest += a[i] * b[i];
    return all[0] + all[1] + (all[2] + all[3]) + rest;
}

bool bz_cholesky(double *a, int n)
{
    for (int j = 0; j < n; j++) {
        double *row = a + (size_t)j * (size_t)n;
        for (int i = 0; i < j; i++)
            row[i] = (row[i] - dot(row, a + (size_t)i * (size_t)n, i)) / a[(size_t)i * (size_t)n + (size_t)i];
        double left = row[j] - dot(row, row, j);
        if (!(left > 0))
            return false;
        row[j] = sqrt(left);
    }
    return true;
}

void bz_cholesky_solve(const double *f, int n, double *b)
{
    for (int i = 0; i < n; i++)
        b[i] = (b[i] - dot(f + (size_t)i * (size_t)n, b, i)) / f[(size_t)i * (size_t)n + (size_t)i];
    for (int i = n - 1; i >= 0; i--) {
        const double *row = f + (size_t)i * (size_t)n;
        b[i] /= row[i];
        for (int k = 0; k < i; k++)
            b[k] -= row[k] * b[i];
    }
}

/* Picks points, and leaves in k[i * STRIDE + p] the kernel of shape i and point p. */
static int pick(const bz_learned *l, const bz_shape *const *shape, int n, double *k, int *point)
{
    BZ_FREED double *left = bz_alloc((size_t)n, sizeof *left), *g = bz_alloc((size_t)n * POINTS, sizeof *g);
    int m = 0;
    for (int i = 0; i < n; i++)
        left[i] = 1 + l->constant;
    for (; m < POINTS && m < n; m++) {
        int best = 0;
        for (int i = 1; i < n; i++)
            best = left[i] > left[best] ? i : best;
        if (left[best] < TOLD)
            break;
        point[m] = best;
        double pivot = sqrt(left[best]);
        const double *row = g + (size_t)best * POINTS;
        for (int i = 0; i < n; i++) {
            double *at = g + (size_t)i * POINTS,
                   is = k[(size_t)i * STRIDE + (size_t)m] = kernel(l, shape[i], shape[best]);
            at[m] = (is - dot(at, row, m)) / pivot;
            left[i] -= at[m] * at[m];
        }
        left[best] = 0;
    }
    return m;
}

/* a[STRIDE * STRIDE] += the sum over these rows of k'k, below the diagonal and a little above. */
BZ_WIDE static void add_products(const double *k, const int *row, int rows, int m, double *a)
{
    for (int p = 0; p < m; p += LANES)
        for (int q = 0; q < p + LANES; q += 2 * LANES) {
            lanes sum[LANES][2] = {{{0}}};
            for (int i = 0; i < rows; i++) {
                const double *at = k + (size_t)row[i] * STRIDE;
                const lanes low = *(const lanes *)(at + q), high = *(const lanes *)(at + q + LANES);
                for (int r = 0; r < LANES; r++) {
                    sum[r][0] += at[p + r] * low;
                    sum[r][1] += at[p + r] * high;
                }
            }
            for (int r = 0; r < LANES; r++) {
                lanes *to = (lanes *)(a + (p + r) * STRIDE + q);
                to[0] += sum[r][0];
                to[1] += sum[r][1];
            }
        }
}

/* The normal equations of rows i that have a value y[i * stride]: K'K + noise K. */
static void normal(const double *k, const int *point, int n, int m, const double *y, int stride, double noise,
                   double *a)
{
    enum { NEAR = 64 }; /* rows that the second-level cache holds */
    BZ_FREED double *sum = bz_zeroed(STRIDE * STRIDE, sizeof *sum);
    int row[NEAR], taken = 0;
    for (int i = 0; i < n; i++) {
        if (!isnan(y[(size_t)i * (size_t)stride]))
            row[taken++] = i;
        if (taken == NEAR || (taken && i == n - 1)) {
            add_products(k, row, taken, m, sum);
            taken = 0;
        }
    }
    for (int p = 0; p < m; p++)
        memcpy(a + (size_t)p * (size_t)m, sum + (size_t)p * STRIDE, (size_t)(p + 1) * sizeof *a);
    double scale = 0;
    for (int p = 0; p < m; p++)
        scale = fmax(scale, a[(size_t)p * (size_t)m + (size_t)p]);
    for (int p = 0; p < m; p++) {
        for (int q = 0; q <= p; q++)
            a[(size_t)p * (size_t)m + (size_t)q] += noise * k[(size_t)point[p] * STRIDE + (size_t)q];
        a[(size_t)p * (size_t)m + (size_t)p] += 1e-10 * (scale + 1);
    }
}

static bool same_rows(const double *y, int n, int machines, int a, int b)
{
    for (int i = 0; i < n; i++)
        if (isnan(y[i * machines + a]) != isnan(y[i * machines + b]))
            return false;
    return true;
}

static double mean_of(const double *y, int n, int machines, int j, int *count)
{
    double sum = 0;
    *count = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(y[i * machines + j]))
            sum += y[i * machines + j], ++*count;
    return *count ? sum / *count : 0;
}

/* Weights of the points for rows i with a value y[i * stride] - mean - common[i]. `a` has the factor. */
static void solve(const double *a, const double *k, int n, int m, const double *y, int stride, double mean,
                  const double *common, double *b)
{
    memset(b, 0, (size_t)m * sizeof *b);
    for (int i = 0; i < n; i++) {
        double v = y[(size_t)i * (size_t)stride] - mean - (common ? common[i] : 0);
        for (int p = 0; p < m && !isnan(v); p++)
            b[p] += k[(size_t)i * STRIDE + (size_t)p] * v;
    }
    bz_cholesky_solve(a, m, b);
}

/* What machines have in common at each shape, smoothed: weights in b[m], values in common[n]. */
static void learn_common(const bz_learned *l, const double *k, const int *point, int n, const double *y, double noise,
                         double *a, double *b, double *common)
{
    int m = l->n;
    for (int i = 0; i < n; i++) {
        double sum = 0;
        int count = 0;
        for (int j = 0; j < l->machines; j++)
            if (!isnan(y[i * l->machines + j]))
                sum += y[i * l->machines + j] - l->mean[j], count++;
        common[i] = count ? sum / count : NAN;
    }
    normal(k, point, n, m, common, 1, noise, a);
    if (bz_cholesky(a, m))
        solve(a, k, n, m, common, 1, 0, NULL, b);
    else
        memset(b, 0, (size_t)m * sizeof *b);
    for (int i = 0; i < n; i++) {
        common[i] = 0;
        for (int p = 0; p < m; p++)
            common[i] += k[(size_t)i * STRIDE + (size_t)p] * b[p];
    }
}

/* What records of the one machine are off by without themselves: (y - f) / (1 - h), h being what a record weighs in its own prediction. Of
 * many records a hundred tell it. `a` has the factor, b the weights. */
static void judge_alone(const double *a, const double *k, const double *b, int n, const double *y, bz_learned *out)
{
    int m = out->n, apart = (n + SAMPLE - 1) / SAMPLE;
    BZ_FREED double *of = bz_alloc((size_t)m, sizeof *of);
    for (int i = 0; i < n; i += apart) {
        const double *row = k + (size_t)i * STRIDE;
        double off = y[i] - out->mean[0], weighs = 0;
        memcpy(of, row, (size_t)m * sizeof *of);
        bz_cholesky_solve(a, m, of);
        for (int p = 0; p < m; p++)
            off -= row[p] * b[p], weighs += row[p] * of[p];
        off /= fmax(1 - weighs, 1e-3);
        if (!isnan(off))
            out->squares += off * off, out->judged++;
    }
}

/* First what machines have in common, then by what each differs from that: where a machine was never asked, it is like the others. */
void bz_learned_fit(const bz_shape *const *shape, const double *y, int n, int machines, const double *mean,
                    double constant, double noise, bz_arena *arena, bz_learned *out)
{
    *out = (bz_learned){.machines = machines,
                        .mean = BZ_NEW(arena, double, machines),
                        .trained = BZ_NEW(arena, int, machines),
                        .constant = constant};
    if (!n)
        return;
    BZ_FREED double *k = bz_zeroed((size_t)n * STRIDE, sizeof *k), *common = bz_zeroed((size_t)n, sizeof *common);
    BZ_FREED int *point = bz_alloc(POINTS, sizeof *point);
    int m = out->n = pick(out, shape, n, k, point), factored = -1;
    BZ_FREED double *a = bz_alloc((size_t)m * (size_t)m, sizeof *a), *b = bz_alloc((size_t)m, sizeof *b),
                    *shared = bz_zeroed((size_t)m, sizeof *shared);
    out->point = BZ_NEW(arena, const bz_shape *, m);
    out->weight = BZ_NEW(arena, double, (size_t)m *(size_t)machines);
    for (int p = 0; p < m; p++)
        out->point[p] = bz_arena_dup(arena, shape[point[p]], sizeof *shape[0]);
    for (int j = 0; j < machines; j++) {
        double own = mean_of(y, n, machines, j, &out->trained[j]);
        out->mean[j] = mean ? mean[j] : own;
    }
    if (machines > 1)
        learn_common(out, k, point, n, y, noise, a, shared, common);
    for (int j = 0; j < machines; j++) {
        if (!out->trained[j])
            continue;
        if (factored < 0 || !same_rows(y, n, machines, factored, j)) {
            normal(k, point, n, m, y + j, machines, noise, a);
            factored = bz_cholesky(a, m) ? j : -1;
        }
        memset(b, 0, (size_t)m * sizeof *b);
        if (factored >= 0)
            solve(a, k, n, m, y + j, machines, out->mean[j], common, b);
        if (factored >= 0 && machines == 1)
            judge_alone(a, k, b, n, y, out);
        for (int p = 0; p < m; p++)
            out->weight[p * machines + j] = shared[p] + b[p];
    }
}

void bz_learned_at(const bz_learned *l, const bz_shape *s, double *out)
{
    memcpy(out, l->mean, (size_t)l->machines * sizeof *out);
    for (int p = 0; p < l->n; p++) {
        double k = kernel(l, s, l->point[p]);
        for (int j = 0; j < l->machines; j++)
            out[j] += k * l->weight[p * l->machines + j];
    }
}

double bz_learned_nearest(const bz_learned *l, const bz_shape *s)
{
    double most = 0;
    for (int p = 0; p < l->n; p++)
        most = fmax(most, bz_learned_alike(s, l->point[p]));
    return most;
}
