/* Loops of our own over row-major tensors: what moves data and no library call does, functions that no library has, and
 * integers. Dimensions that all operands walk through as one are made one, so that rows are long; rows of f32 that are
 * copied, chosen from or joined by the usual operations run in loops that a compiler makes vectors of. All else is
 * computed in double precision, a block at a time. */
#include "runtime/replay_open.h"
#include "runtime/values.h"

#include <math.h>
#include <string.h>

/* ---- elements ------------------------------------------------------------------------------- */

enum { BLOCK = 256 };

/* n <= BLOCK elements from number `at` on, `stride` apart. */
static void read_block(bz_dtype t, const void *from, int64_t at, int64_t stride, int64_t n, double *out)
{
#define EACH(type)                                                                                                     \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        out[i] = (double)((const type *)from)[at + i * stride];                                                        \
    break
    float some[BLOCK];
    int64_t size = bz_dtype_bits(t) / 8;
    switch (t) {
    case BZ_F32:
        EACH(float);
    case BZ_F64:
        EACH(double);
    case BZ_I64:
        EACH(int64_t);
    case BZ_I32:
        EACH(int32_t);
    case BZ_I16:
        EACH(int16_t);
    case BZ_I8:
        EACH(int8_t);
    case BZ_U8:
    case BZ_BOOL:
        EACH(uint8_t);
    default:
        if (stride == 1)
            bz_values_decode(t, (const char *)from + at * size, some, n);
        for (int64_t i = 0; i < n && stride != 1; i++)
            bz_values_decode(t, (const char *)from + (at + i * stride) * size, &some[i], 1);
        for (int64_t i = 0; i < n; i++)
            out[i] = (double)some[i];
    }
#undef EACH
}

static int64_t whole(double v)
{
    return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : v == v ? (int64_t)v : 0;
}

/* Integers lose their fraction, as ONNX's Cast has it. */
static void write_block(bz_dtype t, void *to, int64_t at, int64_t stride, int64_t n, const double *v)
{
#define EACH(type, value)                                                                                              \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((type *)to)[at + i * stride] = (type)(value);                                                                 \
    break
    float some[BLOCK];
    int64_t size = bz_dtype_bits(t) / 8;
    switch (t) {
    case BZ_F32:
        EACH(float, v[i]);
    case BZ_F64:
        EACH(double, v[i]);
    case BZ_I64:
        EACH(int64_t, whole(v[i]));
    case BZ_BOOL:
        EACH(uint8_t, v[i] != 0);
    default:
        for (int64_t i = 0; i < n; i++)
            some[i] = (float)(bz_dtype_is_int(t) ? trunc(v[i]) : v[i]);
        if (stride == 1)
            bz_values_encode(t, some, (char *)to + at * size, n);
        for (int64_t i = 0; i < n && stride != 1; i++)
            bz_values_encode(t, &some[i], (char *)to + (at + i * stride) * size, 1);
    }
#undef EACH
}

static double load(bz_dtype t, const void *from, int64_t i)
{
    double v;
    read_block(t, from, i, 1, 1, &v);
    return v;
}
static void store(bz_dtype t, void *to, int64_t i, double v)
{
    write_block(t, to, i, 1, 1, &v);
}

/* ---- functions ------------------------------------------------------------------------------ */

static double not_of(double v)
{
    return v == 0;
}

static double sign_of(double v)
{
    return (v > 0) - (v < 0);
}

static double negative(double v)
{
    return -v;
}

static double reciprocal(double v)
{
    return 1 / v;
}

/* Those that problems do not have. */
static const struct {
    const char *name;
    double (*of)(double v);
} UNARY[] = {
    {"erf", erf},         {"not", not_of}, {"sign", sign_of}, {"neg", negative}, {"reciprocal", reciprocal},
    {"sin", sin},         {"cos", cos},    {"tan", tan},      {"asin", asin},    {"acos", acos},
    {"atan", atan},       {"sinh", sinh},  {"cosh", cosh},    {"floor", floor},  {"ceil", ceil},
    {"round", nearbyint},
};

static double power(double a, double b)
{
    return pow(a, b);
}

static double and_of(double a, double b)
{
    return a != 0 && b != 0;
}

static double or_of(double a, double b)
{
    return a != 0 || b != 0;
}

static double xor_of(double a, double b)
{
    return (a != 0) != (b != 0);
}

static const struct {
    const char *name;
    double (*of)(double a, double b);
} BINARY[] = {{"pow", power}, {"and", and_of}, {"or", or_of}, {"xor", xor_of}};

typedef struct function {
    double (*one)(double);
    double (*two)(double, double);
    bz_fn fn;
    double alpha, beta;
} function;

static function function_of(const bz_replay_loop *l)
{
    const char *name = l->function ? l->function : "";
    function f = {.alpha = (double)l->alpha, .beta = (double)l->beta};
    for (size_t i = 0; l->kind == BZ_LOOP_UNARY && i < sizeof UNARY / sizeof *UNARY; i++)
        if (!strcmp(UNARY[i].name, name))
            f.one = UNARY[i].of;
    for (size_t i = 0; l->kind == BZ_LOOP_BINARY && i < sizeof BINARY / sizeof *BINARY; i++)
        if (!strcmp(BINARY[i].name, name))
            f.two = BINARY[i].of;
    if (!f.one && !f.two)
        f.fn = bz_fn_find(name, strlen(name));
    return f;
}

bool bz_loop_knows(const bz_replay_loop *l)
{
    function f = function_of(l);
    if (l->kind == BZ_LOOP_UNARY)
        return f.one || (f.fn && bz_fn_is_activation(f.fn));
    if (l->kind == BZ_LOOP_BINARY)
        return f.two || (f.fn && (bz_fn_is_binary(f.fn) || bz_fn_is_comparison(f.fn)));
    return true;
}

/* y = f(x), in place. */
static void apply_one(const function *f, double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = f->one ? f->one(v[i]) : bz_fn_value(f->fn, v[i], f->alpha, f->beta);
}

static void apply_two(const function *f, const double *a, const double *b, double *y, int64_t n)
{
#define EACH(value)                                                                                                    \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        y[i] = value;                                                                                                  \
    break
    switch (f->fn) {
    case BZ_FN_ADD:
        EACH(a[i] + b[i]);
    case BZ_FN_SUB:
        EACH(a[i] - b[i]);
    case BZ_FN_MUL:
        EACH(a[i] * b[i]);
    case BZ_FN_DIV:
        EACH(a[i] / b[i]);
    default:
        EACH(f->two ? f->two(a[i], b[i]) : bz_fn_binary(f->fn, a[i], b[i]));
    }
#undef EACH
}

/* ---- spans ---------------------------------------------------------------------------------- */

typedef struct walk {
    bz_replay_loop l; /* with as few dimensions as there can be */
    void *const *operand;
    const bz_dtype *dtype;
    function f;
    int64_t rows, n, pieces; /* n: of the last dimension, which is worked off in `pieces` */
} walk;

/* Elements along the last dimension: where they begin in the operands and in the result, and how many. A copy's result is
 * operand 1; all others are written one behind the other. */
typedef struct span {
    int64_t at[3], y, n, stride[3];
} span;

static void copy_elements(const char *x, int64_t sx, char *y, int64_t sy, int64_t n, int64_t size)
{
#define EACH(size)                                                                                                     \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        memcpy(y + i * sy * (size), x + i * sx * (size), size);                                                        \
    break
    switch (size) {
    case 1:
        EACH(1);
    case 2:
        EACH(2);
    case 4:
        EACH(4);
    default:
        EACH(8);
    }
#undef EACH
}

static void convert_elements(bz_dtype from, const void *x, int64_t at_x, int64_t sx, bz_dtype to, void *y, int64_t at_y,
                             int64_t sy, int64_t n)
{
    double block[BLOCK];
    if (from == BZ_F32 && bz_dtype_is_float(to) && sx == 1 && sy == 1) {
        bz_values_encode(to, (const float *)x + at_x, (char *)y + at_y * bz_dtype_bits(to) / 8, n);
        return;
    }
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t k = n - i < BLOCK ? n - i : BLOCK;
        read_block(from, x, at_x + i * sx, sx, k, block);
        write_block(to, y, at_y + i * sy, sy, k, block);
    }
}

static void copy_span(const walk *w, const span *s)
{
    bz_dtype from = w->dtype[0], to = w->dtype[1];
    int64_t sx = s->stride[0], sy = s->stride[1], size = bz_dtype_bits(from) / 8;
    const char *x = (const char *)w->operand[0] + s->at[0] * size;
    char *y = (char *)w->operand[1] + s->at[1] * size;
    if (from != to)
        convert_elements(from, w->operand[0], s->at[0], sx, to, w->operand[1], s->at[1], sy, s->n);
    else if (sx == 1 && sy == 1)
        memcpy(y, x, (size_t)(s->n * size));
    else
        copy_elements(x, sx, y, sy, s->n, size);
}

/* y[i] = an expression of u = a[i] and v = b[i], where of each operand the elements lie one behind the other or there is but
 * one: loops that a compiler makes vectors of. Other strides get the last one. */
#define ROW_F32(value, j, k)                                                                                           \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        float u = a[j], v = b[k];                                                                                      \
        y[i] = value;                                                                                                  \
    }
#define EACH_F32(value)                                                                                                \
    if (sa == 1 && sb == 1)                                                                                            \
        ROW_F32(value, i, i)                                                                                           \
    else if (sa == 1 && sb == 0)                                                                                       \
        ROW_F32(value, i, 0)                                                                                           \
    else if (sa == 0 && sb == 1)                                                                                       \
        ROW_F32(value, 0, i)                                                                                           \
    else                                                                                                               \
        ROW_F32(value, i *sa, i *sb)                                                                                   \
    return true

static bool all_f32(const bz_dtype *t, int n)
{
    for (int i = 0; i < n; i++)
        if (t[i] != BZ_F32)
            return false;
    return true;
}

/* False where it is no usual operation on f32. */
static bool binary_f32(const walk *w, const span *s)
{
    int64_t sa = s->stride[0], sb = s->stride[1], n = s->n;
    const float *a = (const float *)w->operand[0] + s->at[0], *b = (const float *)w->operand[1] + s->at[1];
    float *restrict y = (float *)w->operand[2] + s->y;
    if (!all_f32(w->dtype, 3))
        return false;
    switch (w->f.fn) {
    case BZ_FN_ADD:
        EACH_F32(u + v);
    case BZ_FN_SUB:
        EACH_F32(u - v);
    case BZ_FN_MUL:
        EACH_F32(u * v);
    case BZ_FN_DIV:
        EACH_F32(u / v);
    default:
        return false;
    }
}

/* False where it is no choice among f32 by a row of conditions. */
static bool select_f32(const walk *w, const span *s)
{
    int64_t sa = s->stride[1], sb = s->stride[2], n = s->n;
    const uint8_t *c = (const uint8_t *)w->operand[0] + s->at[0];
    const float *a = (const float *)w->operand[1] + s->at[1], *b = (const float *)w->operand[2] + s->at[2];
    float *restrict y = (float *)w->operand[3] + s->y;
    if (s->stride[0] != 1 || !all_f32(w->dtype + 1, 3))
        return false;
    EACH_F32(c[i] ? u : v);
}

static void binary_span(const walk *w, const span *s)
{
    double a[BLOCK], b[BLOCK];
    if (binary_f32(w, s))
        return;
    for (int64_t i = 0; i < s->n; i += BLOCK) {
        int64_t n = s->n - i < BLOCK ? s->n - i : BLOCK;
        read_block(w->dtype[0], w->operand[0], s->at[0] + i * s->stride[0], s->stride[0], n, a);
        read_block(w->dtype[1], w->operand[1], s->at[1] + i * s->stride[1], s->stride[1], n, b);
        apply_two(&w->f, a, b, a, n);
        write_block(w->dtype[2], w->operand[2], s->y + i, 1, n, a);
    }
}

static void select_span(const walk *w, const span *s)
{
    const uint8_t *c = (const uint8_t *)w->operand[0] + s->at[0];
    int64_t size = bz_dtype_bits(w->dtype[3]) / 8;
    if (select_f32(w, s))
        return;
    for (int64_t i = 0; i < s->n; i++) {
        int k = c[i * s->stride[0]] ? 1 : 2;
        int64_t from = s->at[k] + i * s->stride[k];
        if (w->dtype[k] == w->dtype[3])
            memcpy((char *)w->operand[3] + (s->y + i) * size, (const char *)w->operand[k] + from * size, (size_t)size);
        else
            store(w->dtype[3], w->operand[3], s->y + i, load(w->dtype[k], w->operand[k], from));
    }
}

static void unary_span(const walk *w, const span *s)
{
    double v[BLOCK];
    for (int64_t i = 0; i < s->n; i += BLOCK) {
        int64_t n = s->n - i < BLOCK ? s->n - i : BLOCK;
        read_block(w->dtype[0], w->operand[0], s->y + i, 1, n, v);
        apply_one(&w->f, v, n);
        write_block(w->dtype[1], w->operand[1], s->y + i, 1, n, v);
    }
}

/* ---- walking -------------------------------------------------------------------------------- */

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
    at[0] = l->from, at[1] = l->kind == BZ_LOOP_COPY ? l->to : 0, at[2] = 0;
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
    default:
        unary_span(w, s);
    }
}

/* Some of rows · pieces. */
static void run_pieces(const walk *w, int64_t first, int64_t end)
{
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

static void run_walk(const walk *w, int threads)
{
    int64_t n = w->rows * w->pieces;
    if (threads <= 1 || w->rows * w->n < PIECE) {
        run_pieces(w, 0, n);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static)
#endif
    for (int t = 0; t < threads; t++)
        run_pieces(w, n * t / threads, n * (t + 1) / threads);
}

/* ---- the other loops ------------------------------------------------------------------------ */

/* The first element by its type, the others as its bytes, twice as many each time. */
static void fill(const bz_replay_loop *l, void *const *operand, const bz_dtype *dtype, int64_t count, int n)
{
    double v = n > 1 ? load(dtype[0], operand[0], 0) : l->value;
    char *y = operand[n - 1];
    size_t size = (size_t)bz_dtype_bits(dtype[n - 1]) / 8, all = (size_t)count * size;
    if (count > 0)
        store(dtype[n - 1], y, 0, v);
    for (size_t done = size, more; done < all; done += more) {
        more = done < all - done ? done : all - done;
        memcpy(y + done, y, more);
    }
}

/* An index out of range leaves zeros: it would be an error of the model's. */
static void gather(const bz_replay_loop *l, void *const *operand, const bz_dtype *dtype)
{
    int64_t outer = l->dim[0], extent = l->dim[1], indices = l->dim[2], inner = l->dim[3];
    size_t from_size = (size_t)bz_dtype_bits(dtype[0]) / 8, size = (size_t)bz_dtype_bits(dtype[2]) / 8;
    const char *x = operand[0];
    char *y = operand[2];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < indices; i++, y += (size_t)inner * size) {
            int64_t k = (int64_t)load(dtype[1], operand[1], i);
            k += k < 0 ? extent : 0;
            const char *row = x + (size_t)((o * extent + k) * inner) * from_size;
            if (k < 0 || k >= extent)
                memset(y, 0, (size_t)inner * size);
            else if (dtype[0] == dtype[2])
                memcpy(y, row, (size_t)inner * size);
            else
                convert_elements(dtype[0], row, 0, 1, dtype[2], y, 0, 1, inner);
        }
}

/* Operands are the indices and the updates; what is not hit stays. A tuple that leaves the result is left out. */
static void scatter(const bz_replay_loop *l, void *const *operand, const bz_dtype *dtype)
{
    int64_t length = l->dim[1], n = l->dim[2];
    for (int64_t t = 0; t < l->dim[0]; t++) {
        int64_t to = 0;
        bool inside = true;
        for (int64_t j = 0; j < length; j++) {
            int64_t k = (int64_t)load(dtype[0], operand[0], t * length + j), extent = l->dim[3 + j];
            k += k < 0 ? extent : 0;
            inside &= k >= 0 && k < extent;
            to += k * l->stride[0][j];
        }
        for (int64_t i = 0; i < n && inside; i++)
            store(dtype[2], operand[2], to + i, load(dtype[1], operand[1], t * n + i));
    }
}

int bz_loop_run(const bz_replay_loop *l, void *const *operand, const bz_dtype *dtype, const int64_t *count, int n,
                int threads)
{
    walk w = {.l = *l, .operand = operand, .dtype = dtype, .f = function_of(l), .rows = 1};
    if (!bz_loop_knows(l))
        return -1;
    if (l->kind == BZ_LOOP_FILL) {
        fill(l, operand, dtype, count[n - 1], n);
        return 0;
    }
    if (l->kind == BZ_LOOP_GATHER) {
        gather(l, operand, dtype);
        return 0;
    }
    if (l->kind == BZ_LOOP_SCATTER) {
        scatter(l, operand, dtype);
        return 0;
    }
    merge(&w.l);
    for (int i = 0; i < w.l.rank - 1; i++)
        w.rows *= w.l.dim[i];
    w.n = w.l.dim[w.l.rank - 1];
    w.pieces = (w.n + PIECE - 1) / PIECE;
    run_walk(&w, threads);
    return 0;
}
