/* Loops of our own over row-major tensors: what moves data and no library call does, functions that no library has, and
 * integers. They are to be right. */
#include "runtime/replay_open.h"

#include <math.h>
#include <string.h>

/* ---- elements ------------------------------------------------------------------------------- */

/* bf16 and f16 pass through runtime/values.c in blocks; here one at a time will do. */
#include "runtime/values.h"

static double load(bz_dtype t, const void *from, int64_t i)
{
    float v;
    switch (t) {
    case BZ_F32:
        return (double)((const float *)from)[i];
    case BZ_F64:
        return ((const double *)from)[i];
    case BZ_I64:
        return (double)((const int64_t *)from)[i];
    case BZ_I32:
        return ((const int32_t *)from)[i];
    case BZ_I16:
        return ((const int16_t *)from)[i];
    case BZ_I8:
        return ((const int8_t *)from)[i];
    case BZ_U8:
    case BZ_BOOL:
        return ((const uint8_t *)from)[i];
    default:
        bz_values_decode(t, (const char *)from + i * bz_dtype_bits(t) / 8, &v, 1);
        return (double)v;
    }
}

/* Integers lose their fraction, as ONNX's Cast has it. */
static void store(bz_dtype t, void *to, int64_t i, double v)
{
    float f = (float)v;
    switch (t) {
    case BZ_F32:
        ((float *)to)[i] = f;
        break;
    case BZ_F64:
        ((double *)to)[i] = v;
        break;
    case BZ_I64:
        ((int64_t *)to)[i] = v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : v == v ? (int64_t)v : 0;
        break;
    case BZ_BOOL:
        ((uint8_t *)to)[i] = v != 0;
        break;
    default:
        if (bz_dtype_is_int(t))
            f = (float)trunc(v);
        bz_values_encode(t, &f, (char *)to + i * bz_dtype_bits(t) / 8, 1);
    }
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

/* ---- walking -------------------------------------------------------------------------------- */

/* A loop over rows of the last dimension; `at` are the places of a row's first elements. */
typedef struct walk {
    const bz_replay_loop *l;
    void *const *operand;
    const bz_dtype *dtype;
    function f;
    int64_t rows, n; /* n: of the last dimension */
} walk;

static void place_row(const walk *w, int64_t row, int64_t at[3])
{
    const bz_replay_loop *l = w->l;
    at[0] = l->from, at[1] = l->kind == BZ_LOOP_COPY ? l->to : 0, at[2] = 0;
    for (int i = l->rank - 1; i-- > 0; row /= l->dim[i])
        for (int k = 0; k < 3; k++)
            at[k] += row % l->dim[i] * l->stride[k][i];
}

static void copy_row(const walk *w, const int64_t *at)
{
    int last = w->l->rank - 1;
    int64_t sx = w->l->stride[0][last], sy = w->l->stride[1][last], n = w->n;
    bz_dtype from = w->dtype[0], to = w->dtype[1];
    int64_t size = bz_dtype_bits(from) / 8;
    const char *x = (const char *)w->operand[0] + at[0] * size;
    char *y = (char *)w->operand[1];
    if (from != to) {
        for (int64_t i = 0; i < n; i++)
            store(to, y, at[1] + i * sy, load(from, w->operand[0], at[0] + i * sx));
        return;
    }
    y += at[1] * size;
    if (sx == 1 && sy == 1)
        memcpy(y, x, (size_t)(n * size));
    else if (size == 4)
        for (int64_t i = 0; i < n; i++)
            memcpy(y + i * sy * 4, x + i * sx * 4, 4);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(y + i * sy * size, x + i * sx * size, (size_t)size);
}

static double apply_two(const function *f, double a, double b)
{
    return f->two ? f->two(a, b) : bz_fn_binary(f->fn, a, b);
}

/* The usual operations on f32, so that a compiler can make something of them. */
static bool f32_row(const walk *w, const int64_t *at, float *y)
{
    int last = w->l->rank - 1;
    int64_t sa = w->l->stride[0][last], sb = w->l->stride[1][last];
    const float *a = (const float *)w->operand[0] + at[0], *b = (const float *)w->operand[1] + at[1];
    if (w->dtype[0] != BZ_F32 || w->dtype[1] != BZ_F32 || w->dtype[2] != BZ_F32)
        return false;
#define EACH(op)                                                                                                       \
    for (int64_t i = 0; i < w->n; i++)                                                                                 \
        y[i] = a[i * sa] op b[i * sb];                                                                                 \
    return true
    switch (w->f.fn) {
    case BZ_FN_ADD:
        EACH(+);
    case BZ_FN_SUB:
        EACH(-);
    case BZ_FN_MUL:
        EACH(*);
    case BZ_FN_DIV:
        EACH(/);
    default:
        return false;
    }
#undef EACH
}

static void binary_row(const walk *w, const int64_t *at, int64_t row)
{
    int last = w->l->rank - 1;
    int64_t sa = w->l->stride[0][last], sb = w->l->stride[1][last], y = row * w->n;
    if (w->f.fn && w->dtype[2] == BZ_F32 && f32_row(w, at, (float *)w->operand[2] + y))
        return;
    for (int64_t i = 0; i < w->n; i++) {
        double v = apply_two(&w->f, load(w->dtype[0], w->operand[0], at[0] + i * sa),
                             load(w->dtype[1], w->operand[1], at[1] + i * sb));
        store(w->dtype[2], w->operand[2], y + i, v);
    }
}

static void select_row(const walk *w, const int64_t *at, int64_t row)
{
    int last = w->l->rank - 1;
    int64_t size = bz_dtype_bits(w->dtype[3]) / 8;
    const uint8_t *c = w->operand[0];
    char *y = (char *)w->operand[3] + row * w->n * size;
    for (int64_t i = 0; i < w->n; i++) {
        int k = c[at[0] + i * w->l->stride[0][last]] ? 1 : 2;
        int64_t from = at[k] + i * w->l->stride[k][last];
        if (w->dtype[k] == w->dtype[3])
            memcpy(y + i * size, (const char *)w->operand[k] + from * size, (size_t)size);
        else
            store(w->dtype[3], w->operand[3], row * w->n + i, load(w->dtype[k], w->operand[k], from));
    }
}

static void unary_row(const walk *w, const int64_t *at)
{
    for (int64_t i = 0; i < w->n; i++) {
        double v = load(w->dtype[0], w->operand[0], at[0] + i);
        store(w->dtype[1], w->operand[1], at[0] + i,
              w->f.one ? w->f.one(v) : bz_fn_value(w->f.fn, v, w->f.alpha, w->f.beta));
    }
}

static void run_row(const walk *w, int64_t row)
{
    int64_t at[3];
    place_row(w, row, at);
    switch (w->l->kind) {
    case BZ_LOOP_COPY:
        copy_row(w, at);
        break;
    case BZ_LOOP_BINARY:
        binary_row(w, at, row);
        break;
    case BZ_LOOP_SELECT:
        select_row(w, at, row);
        break;
    default:
        unary_row(w, at);
    }
}

static void run_rows(const walk *w, int threads)
{
    if (threads <= 1 || w->rows < 2 || w->rows * w->n < 4096) {
        for (int64_t row = 0; row < w->rows; row++)
            run_row(w, row);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static)
#endif
    for (int64_t row = 0; row < w->rows; row++)
        run_row(w, row);
}

/* ---- the other loops ------------------------------------------------------------------------ */

static void fill(const bz_replay_loop *l, void *const *operand, const bz_dtype *dtype, int64_t count, int n)
{
    double v = n > 1 ? load(dtype[0], operand[0], 0) : l->value;
    for (int64_t i = 0; i < count; i++)
        store(dtype[n - 1], operand[n - 1], i, v);
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
                for (int64_t e = 0; e < inner; e++)
                    store(dtype[2], y, e, load(dtype[0], row, e));
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
    walk w = {.l = l, .operand = operand, .dtype = dtype, .f = function_of(l), .rows = 1, .n = 1};
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
    for (int i = 0; i < l->rank - 1; i++)
        w.rows *= l->dim[i];
    w.n = l->rank ? l->dim[l->rank - 1] : 1;
    run_rows(&w, threads);
    return 0;
}
