/* Functions of one and of two numbers, by their names: those that problems have, and those that only loops do. */
#include "runtime/loops/scalar.h"
#include "runtime/loops/loops.h"

#include <math.h>
#include <string.h>

static double not_of(double v)
{
    return v == 0;
}

static double negative(double v)
{
    return -v;
}

static double reciprocal(double v)
{
    return 1 / v;
}

static double is_nan(double v)
{
    return isnan(v);
}

/* Those that problems do not have. */
static const struct {
    const char *name;
    double (*of)(double v);
} UNARY[] = {
    {"not", not_of},   {"neg", negative}, {"reciprocal", reciprocal},
    {"isnan", is_nan}, {"tan", tan},      {"asin", asin},
    {"acos", acos},    {"atan", atan},    {"sinh", sinh},
    {"cosh", cosh},    {"asinh", asinh},  {"acosh", acosh},
    {"atanh", atanh},
};

/* Infinities: above, where alpha is not 0; below, where beta is not 0. */
static double is_infinite(double v, double alpha, double beta)
{
    return isinf(v) && (v > 0 ? alpha : beta) != 0;
}

static double shrunk(double v, double alpha, double beta)
{
    return v < -alpha ? v + beta : v > alpha ? v - beta : 0;
}

static double above_threshold(double v, double alpha, double beta)
{
    (void)beta;
    return v > alpha ? v : 0;
}

static const struct {
    const char *name;
    double (*of)(double v, double alpha, double beta);
} PARAMETRIC[] = {{"isinf", is_infinite}, {"shrink", shrunk}, {"thresholdedrelu", above_threshold}};

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

/* With the sign of b, as of integers; fmod has that of a. */
static double modulo(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static double sloped(double a, double b)
{
    return a < 0 ? a * b : a;
}

/* Bits of whole numbers that double precision holds. */
#define BITS(name, expression)                                                                                         \
    static double name(double a, double b)                                                                             \
    {                                                                                                                  \
        int64_t x = fabs(a) < 0x1p63 ? (int64_t)a : 0, y = fabs(b) < 0x1p63 ? (int64_t)b : 0;                          \
        return (double)(expression);                                                                                   \
    }
BITS(bits_and, x &y)
BITS(bits_or, x | y)
BITS(bits_xor, x ^ y)
BITS(shifted_left, y >= 0 && y < 64 ? (int64_t)((uint64_t)x << y) : 0)
BITS(shifted_right, y >= 0 && y < 64 ? (int64_t)((uint64_t)x >> y) : 0)

static const struct {
    const char *name;
    double (*of)(double a, double b);
} BINARY[] = {
    {"pow", power},     {"and", and_of},      {"or", or_of},          {"xor", xor_of},
    {"mod", modulo},    {"fmod", fmod},       {"prelu", sloped},      {"bitand", bits_and},
    {"bitor", bits_or}, {"bitxor", bits_xor}, {"left", shifted_left}, {"right", shifted_right},
};

bz_scalar bz_scalar_of(const bz_replay_loop *l)
{
    const char *name = l->function && !l->fn ? l->function : "";
    bz_scalar f = {.alpha = (double)l->alpha, .beta = (double)l->beta};
    for (size_t i = 0; l->kind == BZ_LOOP_UNARY && i < sizeof UNARY / sizeof *UNARY; i++)
        if (!strcmp(UNARY[i].name, name))
            f.one = UNARY[i].of;
    for (size_t i = 0; l->kind == BZ_LOOP_UNARY && i < sizeof PARAMETRIC / sizeof *PARAMETRIC; i++)
        if (!strcmp(PARAMETRIC[i].name, name))
            f.with = PARAMETRIC[i].of;
    for (size_t i = 0; l->kind == BZ_LOOP_BINARY && i < sizeof BINARY / sizeof *BINARY; i++)
        if (!strcmp(BINARY[i].name, name))
            f.two = BINARY[i].of;
    if (!f.one && !f.two && !f.with)
        f.fn = l->fn ? l->fn : bz_fn_find(name, strlen(name));
    return f;
}

bool bz_loop_knows(const bz_replay_loop *l)
{
    bz_scalar f = bz_scalar_of(l);
    if (l->kind == BZ_LOOP_UNARY)
        return f.one || f.with || (f.fn && bz_fn_is_activation(f.fn));
    if (l->kind == BZ_LOOP_BINARY)
        return f.two || (f.fn && (bz_fn_is_binary(f.fn) || bz_fn_is_comparison(f.fn)));
    if (l->kind == BZ_LOOP_SCATTER)
        return !l->function || bz_fn_is_binary(f.fn);
    return l->kind != BZ_LOOP_LANES || bz_lanes_know(l);
}

void bz_scalar_one(const bz_scalar *f, double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = f->one    ? f->one(v[i])
               : f->with ? f->with(v[i], f->alpha, f->beta)
                         : bz_fn_value(f->fn, v[i], f->alpha, f->beta);
}

void bz_scalar_two(const bz_scalar *f, const double *a, const double *b, double *y, int64_t n)
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
