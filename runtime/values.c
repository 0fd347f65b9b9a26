/* Values: conversion to and from the data types, seeded normal numbers. */
#include "runtime/kind.h"

#include <math.h>
#include <string.h>

static uint16_t bf16_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if ((bits & 0x7fffffffU) > 0x7f800000U)
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1)) >> 16);
}

static float bf16_to(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Round to nearest even by letting the float adder do it: what remains has f16's ten bits. */
static uint16_t f16_of(float v)
{
    uint32_t bits, sign;
    memcpy(&bits, &v, sizeof bits);
    sign = bits >> 16 & 0x8000U;
    bits &= 0x7fffffffU;
    if (bits > 0x7f800000U)
        return (uint16_t)(sign | 0x7e00U);
    if (bits >= 0x477ff000U) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00U);
    if (bits < 0x38800000U) { /* below 2^-14: denormal in f16 */
        float a;
        memcpy(&a, &bits, sizeof a);
        a += 0.5f;
        memcpy(&bits, &a, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000U));
    }
    bits += 0xfffU + (bits >> 13 & 1);
    return (uint16_t)(sign | (bits - 0x38000000U) >> 13);
}

static float f16_to(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000U) << 16, rest = h & 0x7fffU;
    float v;
    if (rest < 0x400U) {
        v = (float)rest * 0x1p-24f;
        return sign ? -v : v;
    }
    uint32_t bits = sign | (rest >= 0x7c00U ? 0x7f800000U | (rest & 0x3ffU) << 13 : (rest << 13) + 0x38000000U);
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The types of eight bits and of four, by bits of the mantissa, bias and largest value; what is larger saturates. Step by step
 * numbers are consecutive codes, denormal ones too. `fnuz` types have no infinity, and the code of -0 is their NaN. */
typedef struct f8 {
    int mantissa, bias;
    double most;
    bool fnuz;
} f8;

static const f8 E4M3 = {3, 7, 448, false}, E5M2 = {2, 15, 57344, false};
static const f8 E2M1 = {1, 1, 6, false};
static const f8 E4M3_FNUZ = {3, 8, 240, true}, E5M2_FNUZ = {2, 16, 57344, true};

static uint8_t f8_of(const f8 *t, float v)
{
    uint8_t sign = signbit(v) ? 0x80 : 0;
    double a = fabs((double)v);
    int exponent;
    if (a != a)
        return t->fnuz ? 0x80 : sign | 0x7f;
    a = a > t->most ? t->most : a;
    frexp(a, &exponent);
    exponent = a == 0 || exponent - 1 < 1 - t->bias ? 1 - t->bias : exponent - 1; /* of the leading bit */
    int steps = (int)nearbyint(ldexp(a, t->mantissa - exponent));
    uint8_t code = (uint8_t)(((exponent + t->bias - 1) << t->mantissa) + steps);
    return t->fnuz && !code ? 0 : sign | code;
}

static float f8_to(const f8 *t, uint8_t code)
{
    int rest = code & 0x7f, exponent = rest >> t->mantissa, steps = rest & ((1 << t->mantissa) - 1);
    double v = ldexp(steps + (exponent ? 1 << t->mantissa : 0), (exponent ? exponent : 1) - t->bias - t->mantissa);
    if (t->fnuz && code == 0x80)
        return NAN;
    if (v > t->most) /* E4M3 has no infinity */
        v = t->mantissa == 2 && !steps ? INFINITY : NAN;
    return (float)(code & 0x80 ? -v : v);
}

/* Numbers of four bits lie in pairs, the first in the lower half of its byte. */
static void f4_encode(const float *from, uint8_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        unsigned code = f8_of(&E2M1, from[i]), half = (code >> 4 & 8) | (code & 7);
        to[i / 2] = (uint8_t)(i % 2 ? to[i / 2] | half << 4 : half);
    }
}

static void f4_decode(const uint8_t *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int half = from[i / 2] >> (i % 2 ? 4 : 0) & 15;
        to[i] = f8_to(&E2M1, (uint8_t)((half & 8) << 4 | (half & 7)));
    }
}

static double saturate(double v, double low, double high)
{
    v = nearbyint(v);
    return v < low ? low : v > high ? high : v == v ? v : 0;
}

float bz_round_to(bz_dtype t, double v)
{
    switch (t) {
    case BZ_BF16:
        return bf16_to(bf16_of((float)v));
    case BZ_F16:
        return f16_to(f16_of((float)v));
    case BZ_F8E4M3:
        return f8_to(&E4M3, f8_of(&E4M3, (float)v));
    case BZ_F8E5M2:
        return f8_to(&E5M2, f8_of(&E5M2, (float)v));
    case BZ_F8E4M3FNUZ:
        return f8_to(&E4M3_FNUZ, f8_of(&E4M3_FNUZ, (float)v));
    case BZ_F8E5M2FNUZ:
        return f8_to(&E5M2_FNUZ, f8_of(&E5M2_FNUZ, (float)v));
    case BZ_F4E2M1:
        return f8_to(&E2M1, f8_of(&E2M1, (float)v));
    case BZ_I8:
        return (float)saturate(v, -128, 127);
    case BZ_U8:
        return (float)saturate(v, 0, 255);
    case BZ_I16:
        return (float)saturate(v, -32768, 32767);
    case BZ_I32:
        return (float)saturate(v, -0x1p31, 0x1p31 - 128); /* the largest that float and int share */
    case BZ_I64:
        return (float)saturate(v, -0x1p62, 0x1p62);
    case BZ_BOOL:
        return v != 0;
    default:
        return (float)v;
    }
}

#define EACH(type, expression)                                                                                         \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((type *)to)[i] = (type)(expression);                                                                          \
    break

void bz_values_encode(bz_dtype t, const float *from, void *to, int64_t n)
{
    switch (t) {
    case BZ_F32:
        memcpy(to, from, (size_t)n * sizeof *from);
        break;
    case BZ_F64:
        EACH(double, from[i]);
    case BZ_BF16:
        EACH(uint16_t, bf16_of(from[i]));
    case BZ_F16:
        EACH(uint16_t, f16_of(from[i]));
    case BZ_F8E4M3:
        EACH(uint8_t, f8_of(&E4M3, from[i]));
    case BZ_F8E5M2:
        EACH(uint8_t, f8_of(&E5M2, from[i]));
    case BZ_F8E4M3FNUZ:
        EACH(uint8_t, f8_of(&E4M3_FNUZ, from[i]));
    case BZ_F8E5M2FNUZ:
        EACH(uint8_t, f8_of(&E5M2_FNUZ, from[i]));
    case BZ_F4E2M1:
        f4_encode(from, to, n);
        break;
    case BZ_I8:
        EACH(int8_t, saturate(from[i], -128, 127));
    case BZ_U8:
        EACH(uint8_t, saturate(from[i], 0, 255));
    case BZ_I16:
        EACH(int16_t, saturate(from[i], -32768, 32767));
    case BZ_I32:
        EACH(int32_t, saturate(from[i], -0x1p31, 0x1p31 - 128));
    case BZ_I64:
        EACH(int64_t, saturate(from[i], -0x1p62, 0x1p62));
    case BZ_BOOL:
        EACH(uint8_t, from[i] != 0);
    default:
        memset(to, 0, (size_t)n * (size_t)bz_dtype_bits(t) / 8);
    }
}

#undef EACH
#define EACH(type, expression)                                                                                         \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        type v = ((const type *)from)[i];                                                                              \
        to[i] = (float)(expression);                                                                                   \
    }                                                                                                                  \
    break

void bz_values_decode(bz_dtype t, const void *from, float *to, int64_t n)
{
    switch (t) {
    case BZ_F32:
        memcpy(to, from, (size_t)n * sizeof *to);
        break;
    case BZ_F64:
        EACH(double, v);
    case BZ_BF16:
        EACH(uint16_t, bf16_to(v));
    case BZ_F16:
        EACH(uint16_t, f16_to(v));
    case BZ_F8E4M3:
        EACH(uint8_t, f8_to(&E4M3, v));
    case BZ_F8E5M2:
        EACH(uint8_t, f8_to(&E5M2, v));
    case BZ_F8E4M3FNUZ:
        EACH(uint8_t, f8_to(&E4M3_FNUZ, v));
    case BZ_F8E5M2FNUZ:
        EACH(uint8_t, f8_to(&E5M2_FNUZ, v));
    case BZ_F4E2M1:
        f4_decode(from, to, n);
        break;
    case BZ_I8:
        EACH(int8_t, v);
    case BZ_U8:
        EACH(uint8_t, v);
    case BZ_I16:
        EACH(int16_t, v);
    case BZ_I32:
        EACH(int32_t, v);
    case BZ_I64:
        EACH(int64_t, v);
    case BZ_BOOL:
        EACH(uint8_t, v);
    default:
        memset(to, 0, (size_t)n * sizeof *to);
    }
}

/* Branchless inside, and whole blocks of one length, so that a compiler uses vectors also where it will not for a loop of any length
 * (gcc's -O2): 0.3 ns a number instead of 1.1. */
#define COUNT_NAN(type, magnitude, infinity)                                                                           \
    {                                                                                                                  \
        enum { SOME = 4096 };                                                                                          \
        const type *v = from, *end = v + n;                                                                            \
        type bad = 0;                                                                                                  \
        for (; !bad && end - v >= SOME; v += SOME)                                                                     \
            for (int i = 0; i < SOME; i++)                                                                             \
                bad |= (type)((v[i] & (magnitude)) > (infinity));                                                      \
        for (; v < end; v++)                                                                                           \
            bad |= (type)((*v & (magnitude)) > (infinity));                                                            \
        return !bad;                                                                                                   \
    }

bool bz_values_are_numbers(bz_dtype t, const void *from, int64_t n)
{
    switch (t) {
    case BZ_F32:
        COUNT_NAN(uint32_t, 0x7fffffff, 0x7f800000);
    case BZ_F64:
        COUNT_NAN(uint64_t, INT64_MAX, UINT64_C(0x7ff0000000000000));
    case BZ_BF16:
        COUNT_NAN(uint16_t, 0x7fff, 0x7f80);
    case BZ_F16:
        COUNT_NAN(uint16_t, 0x7fff, 0x7c00);
    case BZ_F8E4M3:
        COUNT_NAN(uint8_t, 0x7f, 0x7e); /* it has no infinity */
    case BZ_F8E5M2:
        COUNT_NAN(uint8_t, 0x7f, 0x7c);
    default:
        return true;
    }
}

/* A block of normal numbers is made once and repeated: its length is a prime, so that no two rows of a
 * tensor line up with it. Making each number anew would cost more time than measuring. */
enum { BLOCK = 65521 };

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

static const float *normal_block(void)
{
    static float block[BLOCK];
    static bool made;
    uint64_t state = 2020;
    for (int i = 0; !made && i < BLOCK; i++)
        do /* Box and Muller; values too near to 0 are drawn again */
            block[i] = (float)(sqrt(-2 * log(1 - uniform(&state))) * cos(6.283185307179586 * uniform(&state)));
        while (fabsf(block[i]) < 1e-3f);
    made = true;
    return block;
}

/* How a normal number becomes one that fits the operand. */
typedef struct shape {
    double scale, offset;
    bool positive;
} shape;

static shape shape_of(const bz_problem *p, const bz_operand *o)
{
    if (bz_dtype_is_int(o->dtype))
        return (shape){20, 0, o->dtype == BZ_U8};
    if (bz_dtype_is_int(p->dtype) && o->role == BZ_ROLE_BIAS && !bz_problem_has(p, BZ_TRAIT_RECURRENT))
        return (shape){100, 0, false};
    if (p->kind == BZ_PROBLEM_REORDER && bz_dtype_is_int(p->dtype_y))
        return (shape){20, 0, p->dtype_y == BZ_U8};
    switch (o->role) {
    case BZ_ROLE_VARIANCE:
    case BZ_ROLE_N:
        return (shape){1, 0.5, true};
    case BZ_ROLE_W:
    case BZ_ROLE_R:
        if (bz_problem_has(p, BZ_TRAIT_RECURRENT))
            return (shape){1 / sqrt((double)(p->rnn.input + p->rnn.hidden)), 0, false};
        break;
    case BZ_ROLE_X:
        if (p->kind == BZ_PROBLEM_REDUCE && p->reduce.fn == BZ_FN_PROD)
            return (shape){0.01, 1, false};
        for (int i = 0; p->post[i].fn; i++)
            if (p->post[i].fn == BZ_FN_LOG)
                return (shape){1, 0.25, true};
        if (p->kind == BZ_PROBLEM_ACTIVATION || p->kind == BZ_PROBLEM_ACTIVATION_GRAD)
            return (shape){
                1, 0, p->activation.fn == BZ_FN_LOG || p->activation.fn == BZ_FN_SQRT || p->activation.fn == BZ_FN_POW};
        break;
    case BZ_ROLE_LOGSUM: /* about what it is where scores are normal numbers */
        return (shape){0.1, log((double)p->attention.k[2]) + 0.5, false};
    case BZ_ROLE_B:
        if (p->kind == BZ_PROBLEM_BINARY && p->binary.fn == BZ_FN_DIV)
            return (shape){1, 0.25, true};
        break;
    default:
        break;
    }
    return (shape){1, 0, false};
}

/* Of a recurrent layer's batch only the first and the last row are given gradients: the reference then computes two rows and not
 * all of them. */
static void clear_rows(const bz_operand *o, float *out)
{
    int64_t batch = o->dim[1], width = o->dim[2];
    for (int64_t i = 0; i < o->dim[0]; i++)
        for (int64_t row = 1; row < batch - 1; row++)
            memset(out + (i * batch + row) * width, 0, (size_t)width * sizeof *out);
}

/* Two of each four along the depth, other ones in the next column. */
static void clear_pairs(const bz_problem *p, int64_t count, float *out)
{
    int64_t n = p->gemm.n, k = p->gemm.k;
    for (int64_t i = 0; i < count; i++) {
        int64_t deep = p->gemm.transb ? i % k : i / n % k, column = p->gemm.transb ? i / k % n : i % n;
        if ((deep + column) % 4 / 2)
            out[i] = 0;
    }
}

void bz_values_fill(const bz_problem *p, const bz_operand *o, int index, float *out)
{
    shape s = shape_of(p, o);
    uint64_t seed = (uint64_t)index + 1;
    if (o->role == BZ_ROLE_INDEX) {
        for (int64_t i = 0; i < o->count; i++)
            out[i] = (float)bz_kinds[p->kind]->index(p, i, next_random(&seed));
        return;
    }
    if (o->role == BZ_ROLE_RATE || o->role == BZ_ROLE_STEP) {
        for (int64_t i = 0; i < o->count; i++)
            out[i] = o->role == BZ_ROLE_RATE ? bz_round_to(o->dtype, 1e-3) : 10;
        return;
    }
    int at = (int)(next_random(&seed) % BLOCK);
    const float *normal = normal_block();
    bool whole = bz_dtype_is_int(o->dtype),
         even = whole && bz_problem_has(p, BZ_TRAIT_PRODUCT) && (o->role == BZ_ROLE_W || o->role == BZ_ROLE_B),
         plain = o->dtype == BZ_F32 && s.scale == 1 && s.offset == 0 && !s.positive;
    for (int64_t i = 0; i < o->count && i < BLOCK; i++, at = at + 1 < BLOCK ? at + 1 : 0) {
        double v = (s.positive ? fabs((double)normal[at]) : (double)normal[at]) * s.scale + s.offset;
        if (whole) /* far enough from the ends that pairs of 8-bit products fit in 16 bits */
            v = v > 63 ? 63 : v < -64 ? -64 : fabs(v) < 1 ? (v < 0 ? -1 : 1) : v;
        if (even) /* oneDNN halves signed weights where the processor has no dot product of bytes: odd ones lose a bit */
            v = copysign(2 * ceil(fabs(v) / 2), v);
        double least = o->dtype == BZ_F8E4M3 ? 0x1p-6 : o->dtype == BZ_F4E2M1 ? 0.5 : 0;
        if (fabs(v) < least) /* below are zero and, of eight bits, denormals; 4 bits have one */
            v = copysign(least, v);
        out[i] = plain ? normal[at] : o->dtype == BZ_BOOL ? v > 0 : bz_round_to(o->dtype, v);
    }
    for (int64_t i = BLOCK; i < o->count; i += BLOCK)
        memcpy(out + i, out, (size_t)(o->count - i < BLOCK ? o->count - i : BLOCK) * sizeof *out);
    if (bz_problem_has(p, BZ_TRAIT_RECURRENT) &&
        (o->role == BZ_ROLE_DY || o->role == BZ_ROLE_DH || o->role == BZ_ROLE_DC))
        clear_rows(o, out);
    if (p->kind == BZ_PROBLEM_GEMM && p->gemm.sparse && o->role == BZ_ROLE_B)
        clear_pairs(p, o->count, out);
}
