/* Loops along an axis: each lane of a tensor, all elements that differ in their number along the axis alone, is read in double precision and becomes
 * a lane of the result. Neighbouring lanes are read together, so that of each line of the cache all is used. */
#include "runtime/loops/elements.h"
#include "runtime/loops/loops.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOGETHER = 16 }; /* lanes: their f32 fill a line of the cache */

typedef struct lane {
    const bz_replay_loop *l;
    double *x, *y;
    int64_t n, m;       /* elements of x and of y */
    const double *taps; /* [m][length][2]; NULL: there are none */
    void *room;         /* for two numbers for each of y */
} lane;

/* The first of the largest; the last, where alpha says so. */
static void argmax(const lane *a)
{
    bool last = a->l->alpha != 0;
    int64_t best = 0;
    for (int64_t i = 1; i < a->n; i++)
        best = a->x[i] > a->x[best] || (last && a->x[i] == a->x[best]) ? i : best;
    a->y[0] = (double)best;
}

static void argmin(const lane *a)
{
    for (int64_t i = 0; i < a->n; i++)
        a->x[i] = -a->x[i];
    argmax(a);
}

static void hardmax(const lane *a)
{
    argmax(a);
    int64_t best = (int64_t)a->y[0];
    for (int64_t i = 0; i < a->m; i++)
        a->y[i] = i == best;
}

/* Sums, or products, of the elements up to each; without itself where alpha says so, from the end where beta does. */
static void cumulate(const lane *a, bool product)
{
    bool exclusive = a->l->alpha != 0, reverse = a->l->beta != 0;
    double all = product;
    for (int64_t k = 0; k < a->n; k++) {
        int64_t i = reverse ? a->n - 1 - k : k;
        double before = all;
        all = product ? all * a->x[i] : all + a->x[i];
        a->y[i] = exclusive ? before : all;
    }
}

static void cumsum(const lane *a)
{
    cumulate(a, false);
}

static void cumprod(const lane *a)
{
    cumulate(a, true);
}

static double log_of_sum(const lane *a)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < a->n; i++)
        most = fmax(most, a->x[i]);
    for (int64_t i = 0; i < a->n && isfinite(most); i++)
        sum += exp(a->x[i] - most);
    return isfinite(most) ? most + log(sum) : most;
}

/* One number for the lane: `start`, made `next` by each element v. */
#define REDUCTION(name, start, next, result)                                                                           \
    static void name(const lane *a)                                                                                    \
    {                                                                                                                  \
        double s = start;                                                                                              \
        for (int64_t i = 0; i < a->n; i++) {                                                                           \
            double v = a->x[i];                                                                                        \
            s = next;                                                                                                  \
        }                                                                                                              \
        a->y[0] = result;                                                                                              \
    }
REDUCTION(sum, 0, s + v, s)
REDUCTION(mean, 0, s + v, s / (double)a->n)
REDUCTION(product, 1, s *v, s)
REDUCTION(largest, -INFINITY, v > s || v != v ? v : s, s)
REDUCTION(smallest, INFINITY, v < s || v != v ? v : s, s)
REDUCTION(magnitudes, 0, s + fabs(v), s)
REDUCTION(length, 0, s + v * v, sqrt(s))
REDUCTION(squares, 0, s + v * v, s)
REDUCTION(logarithm, 0, s + v, log(s))

static void logsumexp(const lane *a)
{
    a->y[0] = log_of_sum(a);
}

static void logsoftmax(const lane *a)
{
    double all = log_of_sum(a);
    for (int64_t i = 0; i < a->n; i++)
        a->y[i] = a->x[i] - all;
}

/* An element: what it is worth, and its number. */
typedef struct candidate {
    double worth, number;
} candidate;

/* It is larger, or as large and earlier. */
static bool comes_before(candidate a, candidate b)
{
    return a.worth > b.worth || (a.worth == b.worth && a.number < b.number);
}

/* A heap of candidates whose last one, in that order, is at the top. Puts one where the top was. */
static void sink(candidate *heap, int64_t n, candidate c)
{
    int64_t at = 0;
    for (int64_t child = 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && comes_before(heap[child], heap[child + 1]);
        if (comes_before(heap[child], c))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = c;
}

/* Numbers of the m largest in order, or of the smallest, where alpha is below 0. */
static void topk(const lane *a)
{
    candidate *heap = a->room;
    double sign = a->l->alpha < 0 ? -1 : 1;
    int64_t m = a->m < a->n ? a->m : a->n, n = 0;
    for (; n < m; n++) { /* one more: it rises to where it belongs */
        const candidate c = {sign * a->x[n], (double)n};
        int64_t at = n;
        for (; at > 0 && comes_before(heap[(at - 1) / 2], c); at = (at - 1) / 2)
            heap[at] = heap[(at - 1) / 2];
        heap[at] = c;
    }
    for (int64_t i = m; i < a->n && m; i++)
        if (sign * a->x[i] > heap[0].worth)
            sink(heap, m, (candidate){sign * a->x[i], (double)i});
    while (n) {
        a->y[--n] = heap[0].number;
        sink(heap, n, heap[n]);
    }
}

/* y[j] = Σ weight · x[number] over the taps of j. */
static void taps(const lane *a)
{
    const double *t = a->taps;
    int n = a->l->length;
    for (int64_t j = 0; j < a->m; j++) {
        double sum = 0;
        for (int k = 0; k < n; k++, t += 2)
            sum += t[1] * a->x[(int64_t)t[0]];
        a->y[j] = sum;
    }
}

/* x[0] elements turned round, and the others as they are: their numbers. */
static void reversal(const lane *a)
{
    int64_t n = (int64_t)a->x[0];
    for (int64_t i = 0; i < a->m; i++)
        a->y[i] = (double)(i < n ? n - 1 - i : i);
}

/* What of a matrix of extent[0] columns lies on its diagonal number x[0] and above it, or below, where alpha is below 0. */
static void triangle(const lane *a)
{
    int64_t columns = a->l->extent[0];
    for (int64_t i = 0; i < a->m; i++) {
        int64_t row = i / columns;
        double off = (double)(i - row * columns - row) - a->x[0];
        a->y[i] = a->l->alpha < 0 ? off <= 0 : off >= 0;
    }
}

static const struct {
    const char *name;
    void (*run)(const lane *a);
} LANES[] = {
    {"argmax", argmax},
    {"argmin", argmin},
    {"hardmax", hardmax},
    {"cumsum", cumsum},
    {"cumprod", cumprod},
    {"reducesum", sum},
    {"reducemean", mean},
    {"reduceprod", product},
    {"reducemax", largest},
    {"reducemin", smallest},
    {"reducel1", magnitudes},
    {"reducel2", length},
    {"reducesumsquare", squares},
    {"reducelogsum", logarithm},
    {"reducelogsumexp", logsumexp},
    {"logsoftmax", logsoftmax},
    {"topk", topk},
    {"taps", taps},
    {"reversal", reversal},
    {"triangle", triangle},
};

static int find_lane(const bz_replay_loop *l)
{
    for (size_t i = 0; i < sizeof LANES / sizeof *LANES; i++)
        if (l->function && !strcmp(LANES[i].name, l->function))
            return (int)i;
    return -1;
}

bool bz_lanes_know(const bz_replay_loop *loop)
{
    return find_lane(loop) >= 0;
}

typedef struct lanes {
    const bz_replay_loop *l;
    void *const *operand;
    const bz_dtype *dtype;
    int n, function;
    int64_t tiles; /* of TOGETHER lanes, in each outer one */
} lanes;

/* `wide` neighbouring lanes of `n` elements, from element `at` on, into rows of the room or back. */
static void pass_lanes(const lanes *w, int k, int64_t at, int64_t n, int64_t wide, double *room, bool reads)
{
    double some[TOGETHER];
    int64_t inner = w->l->dim[2];
    for (int64_t i = 0; i < n && inner == 1; i += BZ_ELEMENTS_BLOCK) {
        int64_t most = n - i < BZ_ELEMENTS_BLOCK ? n - i : BZ_ELEMENTS_BLOCK;
        if (reads)
            bz_elements_read(w->dtype[k], w->operand[k], at + i, 1, most, room + i);
        else
            bz_elements_write(w->dtype[k], w->operand[k], at + i, 1, most, room + i);
    }
    for (int64_t i = 0; i < n && inner > 1; i++, at += inner) {
        if (reads)
            bz_elements_read(w->dtype[k], w->operand[k], at, 1, wide, some);
        for (int64_t j = 0; j < wide; j++)
            *(reads ? &room[j * n + i] : &some[j]) = reads ? some[j] : room[j * n + i];
        if (!reads)
            bz_elements_write(w->dtype[k], w->operand[k], at, 1, wide, some);
    }
}

static void run_tiles(void *of, int64_t first, int64_t end, int thread)
{
    const lanes *w = of;
    int64_t n = w->l->dim[1], inner = w->l->dim[2], m = w->l->dim[3], most = inner == 1 ? 1 : TOGETHER;
    double *x = bz_alloc((size_t)((n + m) * most + 2 * m) + 1, sizeof *x), *y = x + n * most;
    lane a = {.l = w->l, .n = n, .m = m, .taps = w->n > 2 ? w->operand[1] : NULL, .room = y + m * most};
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        int64_t outer = i / w->tiles, from = i % w->tiles * TOGETHER, wide = inner - from < most ? inner - from : most;
        pass_lanes(w, 0, outer * n * inner + from, n, wide, x, true);
        for (int64_t j = 0; j < wide; j++) {
            a.x = x + j * n, a.y = y + j * m;
            LANES[w->function].run(&a);
        }
        pass_lanes(w, w->n - 1, outer * m * inner + from, m, wide, y, false);
    }
    free(x);
}

void bz_lanes_run(const bz_replay_loop *loop, void *const *operand, const bz_dtype *dtype, int n, int threads)
{
    lanes w = {loop, operand, dtype, n, find_lane(loop), (loop->dim[2] + TOGETHER - 1) / TOGETHER};
    int64_t all = loop->dim[0] * loop->dim[2] * (loop->dim[1] > loop->dim[3] ? loop->dim[1] : loop->dim[3]);
    bz_share_out(run_tiles, &w, loop->dim[0] * w.tiles, all, threads);
}
