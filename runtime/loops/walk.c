/* Loops of our own over row-major tensors: what moves data, and functions of one or two values with any broadcast.
 * Dimensions that all operands walk through as one are made one, so that rows are long; a row is a kernel's work. Integers
 * of more than eight bits, f64 and functions that have no kernel are computed in double precision, a block at a time. */
#include "runtime/loops/elements.h"
#include "runtime/loops/kernels.h"
#include "runtime/loops/loops.h"
#include "runtime/loops/scalar.h"

#include <string.h>

typedef struct walk {
    bz_replay_loop l; /* with as few dimensions as there can be */
    void *const *operand;
    const bz_dtype *dtype;
    bz_scalar f;
    const bz_kernels *kernels;
    int64_t rows, n, pieces; /* n: of the last dimension, which is worked off in `pieces` */
} walk;

/* Elements along the last dimension: where they begin in the operands and in the result, and how many. A copy's result is
 * operand 1; all others are written one behind the other. */
typedef struct span {
    int64_t at[3], y, n, stride[3];
} span;

static void copy_span(const walk *w, const span *s)
{
    bz_dtype from = w->dtype[0], to = w->dtype[1];
    int64_t sx = s->stride[0], sy = s->stride[1], size = bz_dtype_bits(from) / 8;
    const char *x = (const char *)w->operand[0] + s->at[0] * size;
    char *y = (char *)w->operand[1] + s->at[1] * size;
    if (from != to)
        bz_elements_convert(w->kernels, from, w->operand[0], s->at[0], sx, to, w->operand[1], s->at[1], sy, s->n);
    else if (sx == 1 && sy == 1)
        memcpy(y, x, (size_t)(s->n * size));
    else if (sx == 0 && sy == 1)
        bz_elements_repeat(x, y, s->n, size);
    else
        bz_elements_copy(x, sx, y, sy, s->n, size);
}

enum { FLOATS = 1024 };

/* Elements i to i + n of an operand as f32: where they lie, or widened into `room`. *step tells whether there is but one.
 * NULL where they neither lie one behind the other nor are one, or do not fit in f32. */
static const float *floats_of(const walk *w, const span *s, int k, int64_t i, int64_t n, float *room, int64_t *step)
{
    bz_dtype t = w->dtype[k];
    const char *from = (const char *)w->operand[k] + (s->at[k] + i * s->stride[k]) * bz_dtype_bits(t) / 8;
    *step = s->stride[k];
    if ((*step != 0 && *step != 1) || !bz_kernels_take(t))
        return NULL;
    if (t == BZ_F32)
        return (const float *)(const void *)from;
    w->kernels->widen(t, from, room, *step ? n : 1);
    return room;
}

/* Elements that a kernel takes at once: a whole span where nothing is widened. */
static int64_t most_at_once(const walk *w, const span *s, int n)
{
    bool wide = true;
    for (int k = 0; k < n; k++)
        wide = wide && w->dtype[k] == BZ_F32;
    return wide ? s->n : FLOATS;
}

/* False where no kernel does it. */
static bool binary_floats(const walk *w, const span *s)
{
    float a[FLOATS], b[FLOATS], y[FLOATS];
    int64_t most = most_at_once(w, s, 3), sa, sb;
    bz_dtype t = w->dtype[2];
    bool compares = bz_fn_is_comparison(w->f.fn) || bz_dtype_is_float(t);
    if (!compares || !bz_kernels_take(t))
        return false;
    for (int64_t i = 0; i < s->n; i += most) {
        int64_t n = s->n - i < most ? s->n - i : most;
        const float *u = floats_of(w, s, 0, i, n, a, &sa), *v = floats_of(w, s, 1, i, n, b, &sb);
        float *to = t == BZ_F32 ? (float *)w->operand[2] + s->y + i : y;
        if (!u || !v || !w->kernels->binary(w->f.fn, u, sa, v, sb, to, n))
            return false;
        if (t != BZ_F32)
            w->kernels->narrow(t, to, (char *)w->operand[2] + (s->y + i) * bz_dtype_bits(t) / 8, n);
    }
    return true;
}

/* False where it is no choice among f32 by a row of conditions. */
static bool select_floats(const walk *w, const span *s)
{
    bool steps = s->stride[1] >= 0 && s->stride[1] <= 1 && s->stride[2] >= 0 && s->stride[2] <= 1;
    if (s->stride[0] != 1 || !steps || w->dtype[1] != BZ_F32 || w->dtype[2] != BZ_F32 || w->dtype[3] != BZ_F32)
        return false;
    w->kernels->select((const uint8_t *)w->operand[0] + s->at[0], (const float *)w->operand[1] + s->at[1], s->stride[1],
                       (const float *)w->operand[2] + s->at[2], s->stride[2], (float *)w->operand[3] + s->y, s->n);
    return true;
}

static void binary_span(const walk *w, const span *s)
{
    double a[BZ_ELEMENTS_BLOCK], b[BZ_ELEMENTS_BLOCK];
    if (binary_floats(w, s))
        return;
    for (int64_t i = 0; i < s->n; i += BZ_ELEMENTS_BLOCK) {
        int64_t n = s->n - i < BZ_ELEMENTS_BLOCK ? s->n - i : BZ_ELEMENTS_BLOCK;
        bz_elements_read(w->dtype[0], w->operand[0], s->at[0] + i * s->stride[0], s->stride[0], n, a);
        bz_elements_read(w->dtype[1], w->operand[1], s->at[1] + i * s->stride[1], s->stride[1], n, b);
        bz_scalar_two(&w->f, a, b, a, n);
        bz_elements_write(w->dtype[2], w->operand[2], s->y + i, 1, n, a);
    }
}

static void select_span(const walk *w, const span *s)
{
    const uint8_t *c = (const uint8_t *)w->operand[0] + s->at[0];
    int64_t size = bz_dtype_bits(w->dtype[3]) / 8;
    if (select_floats(w, s))
        return;
    for (int64_t i = 0; i < s->n; i++) {
        int k = c[i * s->stride[0]] ? 1 : 2;
        int64_t from = s->at[k] + i * s->stride[k];
        if (w->dtype[k] == w->dtype[3])
            memcpy((char *)w->operand[3] + (s->y + i) * size, (const char *)w->operand[k] + from * size, (size_t)size);
        else
            bz_element_store(w->dtype[3], w->operand[3], s->y + i, bz_element_load(w->dtype[k], w->operand[k], from));
    }
}

/* False where no kernel does it. */
static bool unary_floats(const walk *w, const span *s)
{
    float x[FLOATS];
    int64_t most = most_at_once(w, s, 2), step;
    const span in = {.at = {s->y}, .stride = {1}};
    bz_dtype t = w->dtype[1];
    if (!bz_dtype_is_float(t) || !bz_kernels_take(t))
        return false;
    for (int64_t i = 0; i < s->n; i += most) {
        int64_t n = s->n - i < most ? s->n - i : most;
        const float *v = floats_of(w, &in, 0, i, n, x, &step);
        float *to = t == BZ_F32 ? (float *)w->operand[1] + s->y + i : x;
        if (!v || !w->kernels->unary(w->f.fn, (float)w->f.alpha, (float)w->f.beta, v, to, n))
            return false;
        if (t != BZ_F32)
            w->kernels->narrow(t, to, (char *)w->operand[1] + (s->y + i) * bz_dtype_bits(t) / 8, n);
    }
    return true;
}

static void unary_span(const walk *w, const span *s)
{
    double v[BZ_ELEMENTS_BLOCK];
    if (unary_floats(w, s))
        return;
    for (int64_t i = 0; i < s->n; i += BZ_ELEMENTS_BLOCK) {
        int64_t n = s->n - i < BZ_ELEMENTS_BLOCK ? s->n - i : BZ_ELEMENTS_BLOCK;
        bz_elements_read(w->dtype[0], w->operand[0], s->y + i, 1, n, v);
        bz_scalar_one(&w->f, v, n);
        bz_elements_write(w->dtype[1], w->operand[1], s->y + i, 1, n, v);
    }
}

static void read_indices(const walk *w, int k, int64_t at, int64_t stride, int64_t n, int64_t *index)
{
    double number[BZ_ELEMENTS_BLOCK];
    if (w->dtype[k] == BZ_I64) {
        for (int64_t i = 0; i < n; i++)
            index[i] = ((const int64_t *)w->operand[k])[at + i * stride];
        return;
    }
    bz_elements_read(w->dtype[k], w->operand[k], at, stride, n, number);
    for (int64_t i = 0; i < n; i++)
        index[i] = (int64_t)number[i];
}

/* Where tuples of operand k lead, from an element of it on, at most a block of them; -1: out of their extents. */
static void places_of(const walk *w, int k, int64_t at, int64_t stride, int64_t n, int64_t *place)
{
    int64_t index[BZ_ELEMENTS_BLOCK];
    for (int j = 0; j < w->l.length; j++) {
        int64_t extent = w->l.extent[j], step = w->l.step[j];
        read_indices(w, k, at + j, stride, n, index);
        for (int64_t i = 0; i < n; i++) {
            int64_t own = index[i] + (index[i] < 0 ? extent : 0), before = j ? place[i] : 0;
            place[i] = (uint64_t)own >= (uint64_t)extent || before < 0 ? -1 : before + own * step;
        }
    }
}

/* As the compiler copies a number of bytes that it knows. */
static void copy_one(char *y, const char *x, int64_t size)
{
    if (size == 4)
        memcpy(y, x, 4);
    else if (size == 8)
        memcpy(y, x, 8);
    else
        memcpy(y, x, (size_t)size);
}

/* n elements, each at a place of its own from where it is on. */
static void gather_each(const char *x, int64_t from, int64_t stride, const int64_t *place, char *y, int64_t n,
                        int64_t size)
{
#define EACH(type)                                                                                                     \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((type *)(void *)y)[i] = place[i] < 0 ? 0 : ((const type *)(const void *)x)[from + i * stride + place[i]];     \
    break
    switch (size) {
    case 1:
        EACH(uint8_t);
    case 2:
        EACH(uint16_t);
    case 4:
        EACH(uint32_t);
    default:
        EACH(uint64_t);
    }
#undef EACH
}

/* n elements from number `from` on, all at one place. */
static void gather_run(const walk *w, int64_t from, int64_t stride, int64_t y, int64_t n)
{
    int64_t size = bz_dtype_bits(w->dtype[2]) / 8;
    const char *x = (const char *)w->operand[0] + from * size;
    char *to = (char *)w->operand[2] + y * size;
    if (w->dtype[0] != w->dtype[2])
        bz_elements_convert(w->kernels, w->dtype[0], w->operand[0], from, stride, w->dtype[2], w->operand[2], y, 1, n);
    else if (stride == 1)
        memcpy(to, x, (size_t)(n * size));
    else
        bz_elements_copy(x, stride, to, 1, n, size);
}

static void gather_span(const walk *w, const span *s)
{
    int64_t place[BZ_ELEMENTS_BLOCK], run = s->stride[1] ? 1 : s->n, size = bz_dtype_bits(w->dtype[2]) / 8, n;
    for (int64_t i = 0; i < s->n; i += n * run) {
        char *y = (char *)w->operand[2] + (s->y + i) * size;
        int64_t from = s->at[0] + i * s->stride[0];
        n = run > 1 ? 1 : s->n - i < BZ_ELEMENTS_BLOCK ? s->n - i : BZ_ELEMENTS_BLOCK;
        places_of(w, 1, s->at[1] + i * s->stride[1], s->stride[1], n, place);
        if (run == 1 && w->dtype[0] == w->dtype[2]) {
            gather_each(w->operand[0], from, s->stride[0], place, y, n, size);
            continue;
        }
        for (int64_t k = 0; k < n; k++) {
            if (place[k] < 0)
                memset(y + k * size, 0, (size_t)(run * size));
            else
                gather_run(w, from + k * s->stride[0] + place[k], s->stride[0], s->y + i + k, run);
        }
    }
}

static void scatter_span(const walk *w, const span *s)
{
    int64_t place[BZ_ELEMENTS_BLOCK], run = s->stride[0] ? 1 : s->n, size = bz_dtype_bits(w->dtype[2]) / 8, n;
    bool bytes = w->dtype[1] == w->dtype[2] && !w->f.fn,
         sums = w->f.fn == BZ_FN_ADD && w->dtype[1] == BZ_F32 && w->dtype[2] == BZ_F32;
    for (int64_t i = 0; i < s->n; i += n * run) {
        n = run > 1 ? 1 : s->n - i < BZ_ELEMENTS_BLOCK ? s->n - i : BZ_ELEMENTS_BLOCK;
        places_of(w, 0, s->at[0] + i * s->stride[0], s->stride[0], n, place);
        for (int64_t k = 0; k < n * run; k++) {
            int64_t own = place[run > 1 ? 0 : k], to = s->at[2] + (i + k) * s->stride[2] + own,
                    from = s->at[1] + (i + k) * s->stride[1];
            if (own < 0)
                continue;
            if (sums) {
                ((float *)w->operand[2])[to] += ((const float *)w->operand[1])[from];
                continue;
            }
            if (bytes) {
                copy_one((char *)w->operand[2] + to * size, (const char *)w->operand[1] + from * size, size);
                continue;
            }
            double v = bz_element_load(w->dtype[1], w->operand[1], from);
            v = w->f.fn ? bz_fn_binary(w->f.fn, bz_element_load(w->dtype[2], w->operand[2], to), v) : v;
            bz_element_store(w->dtype[2], w->operand[2], to, v);
        }
    }
}

enum { PIECE = 16384 };

/* Dimensions of 1 go; neighbours that every operand walks through as if they were one become one. */
static void merge(bz_replay_loop *l)
{
    int rank = 0;
    for (int i = 0; i < l->rank; i++) {
        bool joins = rank > 0;
        if (l->dim[i] == 1)
            continue;
        for (int k = 0; k < 3 && joins; k++)
            joins = l->stride[k][rank - 1] == l->stride[k][i] * l->dim[i];
        rank += !joins;
        l->dim[rank - 1] = joins ? l->dim[rank - 1] * l->dim[i] : l->dim[i];
        for (int k = 0; k < 3; k++)
            l->stride[k][rank - 1] = l->stride[k][i];
    }
    if (!rank)
        l->dim[0] = 1;
    l->rank = rank ? rank : 1;
}

/* Where the row begins, and its number in each dimension. */
static void place_row(const bz_replay_loop *l, int64_t row, int64_t at[3], int64_t *number)
{
    at[0] = l->from, at[1] = l->to, at[2] = 0;
    for (int i = l->rank - 1; i-- > 0; row /= l->dim[i]) {
        number[i] = row % l->dim[i];
        for (int k = 0; k < 3; k++)
            at[k] += number[i] * l->stride[k][i];
    }
}

static void next_row(const bz_replay_loop *l, int64_t at[3], int64_t *number)
{
    for (int i = l->rank - 1; i-- > 0;) {
        for (int k = 0; k < 3; k++)
            at[k] += l->stride[k][i];
        if (++number[i] < l->dim[i])
            return;
        for (int k = 0; k < 3; k++)
            at[k] -= l->dim[i] * l->stride[k][i];
        number[i] = 0;
    }
}

static void run_span(const walk *w, const span *s)
{
    switch (w->l.kind) {
    case BZ_LOOP_COPY:
        copy_span(w, s);
        break;
    case BZ_LOOP_BINARY:
        binary_span(w, s);
        break;
    case BZ_LOOP_SELECT:
        select_span(w, s);
        break;
    case BZ_LOOP_GATHER:
        gather_span(w, s);
        break;
    case BZ_LOOP_SCATTER:
        scatter_span(w, s);
        break;
    default:
        unary_span(w, s);
    }
}

/* Some of rows · pieces. */
static void run_pieces(void *of, int64_t first, int64_t end, int thread)
{
    const walk *w = of;
    (void)thread;
    int64_t at[3], number[BZ_PROBLEM_RANK], row = first / w->pieces, piece = first % w->pieces;
    span s;
    for (int k = 0; k < 3; k++)
        s.stride[k] = w->l.stride[k][w->l.rank - 1];
    place_row(&w->l, row, at, number);
    for (int64_t i = first; i < end; i++) {
        int64_t begin = piece * PIECE;
        s.n = w->pieces == 1 ? w->n : w->n - begin < PIECE ? w->n - begin : PIECE;
        s.y = row * w->n + begin;
        for (int k = 0; k < 3; k++)
            s.at[k] = at[k] + begin * s.stride[k];
        run_span(w, &s);
        if (++piece == w->pieces) {
            piece = 0, row++;
            next_row(&w->l, at, number);
        }
    }
}

/* The first element by its type, the others as its bytes, twice as many each time. */
static void fill(const bz_replay_loop *l, void *const *operand, const bz_dtype *dtype, int64_t count, int n)
{
    double v = n > 1 ? bz_element_load(dtype[0], operand[0], 0) : l->value;
    char *y = operand[n - 1];
    size_t size = (size_t)bz_dtype_bits(dtype[n - 1]) / 8, all = (size_t)count * size;
    if (count > 0)
        bz_element_store(dtype[n - 1], y, 0, v);
    for (size_t done = size, more; done < all; done += more) {
        more = done < all - done ? done : all - done;
        memcpy(y + done, y, more);
    }
}

/* A copy whose source and result run fastest along different dimensions: planes of these two, tile by tile. */
typedef struct planes {
    bz_replay_loop l; /* of the others */
    const char *x;
    char *y;
    int64_t rows, columns, ldx, ldy, n, bands; /* n planes, each in so many bands of rows */
    int size;
    const bz_kernels *kernels;
} planes;

enum { BAND = 64 };

static bool as_planes(const walk *w, planes *p)
{
    const bz_replay_loop *l = &w->l;
    int last = l->rank - 1, row = -1;
    if (l->kind != BZ_LOOP_COPY || w->dtype[0] != w->dtype[1] || l->stride[0][last] == 1 || l->stride[1][last] != 1)
        return false;
    for (int i = 0; i < last; i++)
        row = l->stride[0][i] == 1 && l->dim[i] > 1 ? i : row;
    int size = bz_dtype_bits(w->dtype[0]) / 8;
    if (row < 0 || l->dim[row] < 4 || l->dim[last] < 4)
        return false;
    *p = (planes){.l = *l, .x = w->operand[0], .y = w->operand[1], .n = 1, .size = size, .kernels = w->kernels};
    p->rows = l->dim[row], p->columns = l->dim[last], p->ldx = l->stride[0][last], p->ldy = l->stride[1][row];
    p->bands = (p->rows + BAND - 1) / BAND;
    p->l.dim[row] = p->l.dim[last] = 1;
    for (int i = 0; i < l->rank; i++)
        p->n *= p->l.dim[i];
    return true;
}

static void run_bands(void *of, int64_t first, int64_t end, int thread)
{
    const planes *p = of;
    int64_t at[3], number[BZ_PROBLEM_RANK];
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        int64_t r = i % p->bands * BAND, m = p->rows - r < BAND ? p->rows - r : BAND;
        place_row(&p->l, i / p->bands, at, number);
        p->kernels->transpose(p->x + (at[0] + r) * p->size, p->ldx, p->y + (at[1] + r * p->ldy) * p->size, p->ldy, m,
                              p->columns, p->size);
    }
}

int bz_loop_run(const bz_replay_loop *l, void *const *operand, const bz_dtype *dtype, const int64_t *count, int n,
                int threads)
{
    walk w = {.l = *l, .operand = operand, .dtype = dtype, .f = bz_scalar_of(l), .rows = 1};
    planes p;
    w.kernels = bz_kernels_best();
    if (!bz_loop_knows(l))
        return -1;
    if (l->kind == BZ_LOOP_FILL) {
        fill(l, operand, dtype, count[n - 1], n);
        return 0;
    }
    if (l->kind == BZ_LOOP_LANES) {
        bz_lanes_run(l, operand, dtype, n, threads);
        return 0;
    }
    merge(&w.l);
    if (as_planes(&w, &p)) {
        bz_share_out(run_bands, &p, p.n * p.bands, p.n * p.rows * p.columns, threads);
        return 0;
    }
    for (int i = 0; i < w.l.rank - 1; i++)
        w.rows *= w.l.dim[i];
    w.n = w.l.dim[w.l.rank - 1];
    w.pieces = (w.n + PIECE - 1) / PIECE;
    bz_share_out(run_pieces, &w, w.rows * w.pieces, w.rows * w.n,
                 l->kind == BZ_LOOP_SCATTER ? 1 : threads); /* places may be the same: the last one counts */
    return 0;
}
