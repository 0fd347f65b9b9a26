/* predict_trees: benanza with another regression over problems in its place, for tests/bench/predict_trees.py.
 *
 * WAY=trees: gradient-boosted trees, least squares; DEPTH and ROUNDS say how large. WAY=both: the mean of these and what ships. WAY=ridge: a line over
 * the logarithms. WAY=kernel: what ships. The linker puts these functions before those of predict/learned.c (--wrap), so all else is the same:
 * residuals of the roofline, neighbours, batches, intervals. */
#include "base/map.h"
#include "predict/learned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* RATE and LAMBDA are usual ones; LEAST records are what a leaf rests on. */
enum { BINS = 64, DEEPEST = 8, LEAVES = 1 << DEEPEST, LEAST = 4 };
static const double RATE = 0.1, LAMBDA = 1, RIDGE = 1;

typedef struct tree {
    int8_t axis[LEAVES]; /* node 1 is the root, 2i and 2i+1 follow node i; -1: all go left */
    double above[LEAVES], leaf[LEAVES];
} tree;

typedef struct model {
    int axes, depth, rounds;
    tree *tree;                      /* [rounds] */
    double line[BZ_SHAPE + 1], mean; /* line: of WAY=ridge, for x[i], and what is there without */
} model;

/* What stands in for one bz_learned: of all machines alike, and of each what it differs by. */
typedef struct stand_in {
    const double *weight; /* whose it is */
    int machines;
    model *common, *own;
} stand_in;

static bz_map places; /* by address; what a later one at the same address has is another */
static stand_in *place;

void __real_bz_learned_fit(const bz_shape *const *shape, const double *y, int n, int machines, const double *mean,
                           double constant, double noise, bz_arena *arena, bz_learned *out);
void __wrap_bz_learned_fit(const bz_shape *const *shape, const double *y, int n, int machines, const double *mean,
                           double constant, double noise, bz_arena *arena, bz_learned *out);
void __real_bz_learned_at(const bz_learned *l, const bz_shape *s, double *out);
void __wrap_bz_learned_at(const bz_learned *l, const bz_shape *s, double *out);

static bool is_way(const char *name)
{
    const char *way = getenv("WAY");
    return way && !strcmp(way, name);
}

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* cut[axis][0 … BINS - 2]: where an axis is parted, by ranks. */
static void cuts(const bz_shape *const *shape, int n, int axes, double cut[BZ_SHAPE][BINS])
{
    double *x = bz_alloc((size_t)n, sizeof *x);
    for (int a = 0; a < axes; a++) {
        int different = 0;
        for (int i = 0; i < n; i++)
            x[i] = shape[i]->x[a];
        qsort(x, (size_t)n, sizeof *x, compare);
        for (int i = 0; i < n; i++)
            if (!i || x[i] > x[different - 1])
                x[different++] = x[i];
        for (int b = 0; b < BINS - 1; b++) {
            size_t at = (size_t)(b + 1) * (size_t)different / BINS;
            if (different < BINS)
                at = (size_t)(b + 1 < different ? b + 1 : different - 1);
            cut[a][b] = at ? (x[at - 1] + x[at]) / 2 : INFINITY;
        }
    }
    free(x);
}

static int bin_of(const double *cut, double x)
{
    int b = 0;
    while (b < BINS - 1 && x > cut[b])
        b++;
    return b;
}

typedef struct histogram {
    double sum[BZ_SHAPE][BINS];
    int count[BZ_SHAPE][BINS];
} histogram;

static void split(const histogram *h, int axes, double cut[BZ_SHAPE][BINS], tree *t, int node)
{
    double best = 1e-12;
    t->axis[node] = -1;
    for (int a = 0; a < axes; a++) {
        double sum = 0, left = 0;
        int count = 0, in = 0;
        for (int b = 0; b < BINS; b++)
            sum += h->sum[a][b], count += h->count[a][b];
        for (int b = 0; b < BINS - 1; b++) {
            left += h->sum[a][b], in += h->count[a][b];
            if (in < LEAST || count - in < LEAST)
                continue;
            double right = sum - left;
            double gain =
                left * left / (in + LAMBDA) + right * right / (count - in + LAMBDA) - sum * sum / (count + LAMBDA);
            if (gain > best)
                best = gain, t->axis[node] = (int8_t)a, t->above[node] = cut[a][b];
        }
    }
}

static int below(const tree *t, int node, const bz_shape *s)
{
    return 2 * node + (t->axis[node] >= 0 && s->x[t->axis[node]] > t->above[node]);
}

static double in_tree(const tree *t, int depth, const bz_shape *s)
{
    int node = 1;
    for (int d = 0; d < depth; d++)
        node = below(t, node, s);
    return t->leaf[node - (1 << depth)];
}

static void grow(tree *t, int axes, int depth, const bz_shape *const *shape, const uint8_t *bin,
                 double cut[BZ_SHAPE][BINS], double *left, int n)
{
    int *node = bz_alloc((size_t)n, sizeof *node), count[LEAVES] = {0};
    double sum[LEAVES] = {0};
    for (int i = 0; i < n; i++)
        node[i] = 1;
    for (int d = 0; d < depth; d++) {
        histogram *h = bz_zeroed((size_t)1 << d, sizeof *h);
        for (int i = 0; i < n; i++)
            for (int a = 0; a < axes; a++) {
                histogram *of = &h[node[i] - (1 << d)];
                of->sum[a][bin[i * BZ_SHAPE + a]] += left[i];
                of->count[a][bin[i * BZ_SHAPE + a]]++;
            }
        for (int k = 0; k < 1 << d; k++)
            split(&h[k], axes, cut, t, (1 << d) + k);
        for (int i = 0; i < n; i++)
            node[i] = below(t, node[i], shape[i]);
        free(h);
    }
    for (int i = 0; i < n; i++)
        sum[node[i] - (1 << depth)] += left[i], count[node[i] - (1 << depth)]++;
    for (int k = 0; k < 1 << depth; k++)
        t->leaf[k] = RATE * sum[k] / (count[k] + LAMBDA);
    for (int i = 0; i < n; i++)
        left[i] -= t->leaf[node[i] - (1 << depth)];
    free(node);
}

/* `left` has what is to be told, and afterwards what is not. */
static void boost(model *m, const bz_shape *const *shape, double *left, int n)
{
    double cut[BZ_SHAPE][BINS];
    uint8_t *bin = bz_zeroed((size_t)n * BZ_SHAPE, 1);
    m->depth = number("DEPTH", 6) < DEEPEST ? number("DEPTH", 6) : DEEPEST;
    m->rounds = number("ROUNDS", 100);
    m->tree = bz_zeroed((size_t)m->rounds, sizeof *m->tree);
    cuts(shape, n, m->axes, cut);
    for (int i = 0; i < n; i++)
        for (int a = 0; a < m->axes; a++)
            bin[i * BZ_SHAPE + a] = (uint8_t)bin_of(cut[a], shape[i]->x[a]);
    for (int r = 0; r < m->rounds; r++)
        grow(&m->tree[r], m->axes, m->depth, shape, bin, cut, left, n);
    free(bin);
}

static void draw_line(model *m, const bz_shape *const *shape, double *left, int n)
{
    enum { N = BZ_SHAPE + 1 };
    double a[N * N] = {0};
    int width = m->axes + 1;
    for (int i = 0; i < n; i++)
        for (int p = 0; p < width; p++) {
            double xp = p < m->axes ? shape[i]->x[p] : 1;
            m->line[p] += xp * left[i];
            for (int q = 0; q < width; q++)
                a[p * width + q] += xp * (q < m->axes ? shape[i]->x[q] : 1);
        }
    for (int p = 0; p < width; p++)
        a[p * width + p] += RIDGE;
    if (bz_cholesky(a, width))
        bz_cholesky_solve(a, width, m->line);
}

static double told(const model *m, const bz_shape *s)
{
    double sum = m->mean + m->line[m->axes];
    for (int a = 0; a < m->axes; a++)
        sum += m->line[a] * s->x[a];
    for (int r = 0; r < m->rounds; r++)
        sum += in_tree(&m->tree[r], m->depth, s);
    return sum;
}

/* Of the rows that have a value. */
static void fit(model *m, const bz_shape *const *shape, const double *y, int n, double mean)
{
    const bz_shape **of = bz_alloc((size_t)n + 1, sizeof *of);
    double *left = bz_alloc((size_t)n + 1, sizeof *left);
    int rows = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(y[i]))
            of[rows] = shape[i], left[rows++] = y[i] - mean;
    *m = (model){.axes = n ? shape[0]->n : 0, .mean = mean};
    if (rows && !is_way("ridge"))
        boost(m, of, left, rows);
    else if (rows)
        draw_line(m, of, left, rows);
    free(of);
    free(left);
}

static void forget(stand_in *is)
{
    for (int j = 0; is->own && j < is->machines; j++)
        free(is->own[j].tree);
    if (is->common)
        free(is->common->tree);
    free(is->own);
    free(is->common);
}

static stand_in *place_of(const bz_learned *l, bool make)
{
    uint32_t at = bz_map_get(&places, &l, sizeof(const bz_learned *));
    if (at == BZ_MAP_NONE && !make)
        return NULL;
    if (at == BZ_MAP_NONE) {
        at = places.n;
        const bz_learned **key = bz_alloc(1, sizeof *key);
        *key = l;
        bz_map_add(&places, key, sizeof *key, at);
        BZ_ROOM(place, at);
        place[at] = (stand_in){0};
    }
    return &place[at];
}

void __wrap_bz_learned_fit(const bz_shape *const *shape, const double *y, int n, int machines, const double *mean,
                           double constant, double noise, bz_arena *arena, bz_learned *out)
{
    __real_bz_learned_fit(shape, y, n, machines, mean, constant, noise, arena, out);
    if (is_way("kernel") || !n)
        return;
    stand_in *is = place_of(out, true);
    double *common = bz_zeroed((size_t)n, sizeof *common), *column = bz_alloc((size_t)n, sizeof *column);
    forget(is);
    *is = (stand_in){out->weight, machines, bz_zeroed(1, sizeof *is->common),
                     bz_zeroed((size_t)machines, sizeof *is->own)};
    if (machines > 1) {
        for (int i = 0; i < n; i++) {
            int count = 0;
            for (int j = 0; j < machines; j++)
                if (!isnan(y[i * machines + j]))
                    common[i] += y[i * machines + j] - out->mean[j], count++;
            common[i] = count ? common[i] / count : NAN;
        }
        fit(is->common, shape, common, n, 0);
        for (int i = 0; i < n; i++)
            common[i] = told(is->common, shape[i]);
    }
    for (int j = 0; j < machines; j++) {
        for (int i = 0; i < n; i++)
            column[i] = y[i * machines + j] - common[i];
        fit(&is->own[j], shape, column, n, out->mean[j]);
    }
    free(common);
    free(column);
}

void __wrap_bz_learned_at(const bz_learned *l, const bz_shape *s, double *out)
{
    const stand_in *is = place_of(l, false);
    bool other = is && l->n && is->weight == l->weight;
    if (!other || is_way("both"))
        __real_bz_learned_at(l, s, out);
    for (int j = 0; other && j < is->machines; j++) {
        double at = told(is->common, s) + told(&is->own[j], s);
        out[j] = is_way("both") ? (out[j] + at) / 2 : at;
    }
}
