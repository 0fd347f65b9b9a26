/* Kernels for one instruction set: compiled with -DBZ_ISA=… and that set's options. */
#include "runtime/loops/kernels_math.h"

#include "runtime/values.h"

#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

/* A power by squares where the exponent is a small integer, as most are. */
static void pow_row(float alpha, float beta, const float *x, float *y, int64_t n)
{
    bool whole = beta == rintf(beta) && fabsf(beta) < 16.0f;
    unsigned k = whole ? (unsigned)fabsf(beta) : 0;
    for (int64_t i = 0; !whole && i < n; i++)
        y[i] = alpha * powf(x[i], beta);
    if (!whole)
        return;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float v = x[i], p = k & 1 ? v : 1.0f;
        v *= v, p *= k & 2 ? v : 1.0f;
        v *= v, p *= k & 4 ? v : 1.0f;
        v *= v, p *= k & 8 ? v : 1.0f;
        y[i] = alpha * (beta < 0 ? 1.0f / p : p);
    }
}

#define EACH(value)                                                                                                    \
    {                                                                                                                  \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                            \
        {                                                                                                              \
            float v = x[i];                                                                                            \
            y[i] = value;                                                                                              \
        }                                                                                                              \
        return true;                                                                                                   \
    }

static bool unary(bz_fn fn, float alpha, float beta, const float *x, float *y, int64_t n)
{
    switch (fn) {
    case BZ_FN_RELU:
        EACH(v > 0.0f ? v : 0.0f)
    case BZ_FN_LEAKY:
        EACH(v > 0.0f ? v : alpha * v)
    case BZ_FN_ELU:
        EACH(v > 0.0f ? v : alpha * (exp_of(v) - 1.0f))
    case BZ_FN_CLIP:
        EACH(clip_of(v, alpha, beta))
    case BZ_FN_SIGMOID:
        EACH(sigmoid_of(v))
    case BZ_FN_TANH:
        EACH(tanh_of(v))
    case BZ_FN_ERF:
        EACH(erf_of(v))
    case BZ_FN_GELU_ERF:
        EACH(0.5f * v * (1.0f + erf_of(v * 0.70710678f)))
    case BZ_FN_GELU_TANH:
        EACH(0.5f * v * (1.0f + tanh_of(0.79788456f * (v + 0.044715f * v * v * v))))
    case BZ_FN_SWISH:
        EACH(v * sigmoid_of(alpha * v))
    case BZ_FN_HARDSWISH:
        EACH(v * clip_of(v + 3.0f, 0.0f, 6.0f) / 6.0f)
    case BZ_FN_HARDSIGMOID:
        EACH(clip_of(alpha * v + beta, 0.0f, 1.0f))
    case BZ_FN_MISH:
        EACH(mish_of(v))
    case BZ_FN_SOFTPLUS:
        EACH(softplus_of(v))
    case BZ_FN_EXP:
        EACH(exp_of(v))
    case BZ_FN_LOG:
        EACH(log_of(v))
    case BZ_FN_SQRT:
        EACH(sqrtf(v))
    case BZ_FN_ABS:
        EACH(fabsf(v))
    case BZ_FN_SQUARE:
        EACH(v * v)
    case BZ_FN_ROUND:
        EACH(rintf(v))
    case BZ_FN_FLOOR:
        EACH(floorf(v))
    case BZ_FN_CEIL:
        EACH(ceilf(v))
    case BZ_FN_SIGN:
        EACH((v > 0.0f ? 1.0f : 0.0f) - (v < 0.0f ? 1.0f : 0.0f))
    case BZ_FN_SOFTSIGN:
        EACH(v / (1.0f + fabsf(v)))
    case BZ_FN_SIN:
        if (is_far(x, n))
            EACH(sinf(v))
        EACH(sine_of(v, 0))
    case BZ_FN_COS:
        if (is_far(x, n))
            EACH(cosf(v))
        EACH(sine_of(v, 1))
    case BZ_FN_LINEAR:
        EACH(alpha * v + beta)
    case BZ_FN_POW:
        pow_row(alpha, beta, x, y, n);
        return true;
    default:
        return false;
    }
}

#undef EACH
#define ROW(value, j, k)                                                                                               \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                                \
    {                                                                                                                  \
        float u = a[j], v = b[k];                                                                                      \
        y[i] = value;                                                                                                  \
    }
#define EACH(value)                                                                                                    \
    {                                                                                                                  \
        if (sa && sb)                                                                                                  \
            ROW(value, i, i)                                                                                           \
        else if (sa)                                                                                                   \
            ROW(value, i, 0)                                                                                           \
        else                                                                                                           \
            ROW(value, 0, i *sb)                                                                                       \
        return true;                                                                                                   \
    }

static bool binary(bz_fn fn, const float *a, int64_t sa, const float *b, int64_t sb, float *y, int64_t n)
{
    switch (fn) {
    case BZ_FN_ADD:
        EACH(u + v)
    case BZ_FN_SUB:
        EACH(u - v)
    case BZ_FN_MUL:
        EACH(u * v)
    case BZ_FN_DIV:
        EACH(u / v)
    case BZ_FN_MAX:
        EACH(u > v ? u : v)
    case BZ_FN_MIN:
        EACH(u < v ? u : v)
    case BZ_FN_EQ:
        EACH(u == v ? 1.0f : 0.0f)
    case BZ_FN_NE:
        EACH(u != v ? 1.0f : 0.0f)
    case BZ_FN_GT:
        EACH(u > v ? 1.0f : 0.0f)
    case BZ_FN_GE:
        EACH(u >= v ? 1.0f : 0.0f)
    case BZ_FN_LT:
        EACH(u < v ? 1.0f : 0.0f)
    case BZ_FN_LE:
        EACH(u <= v ? 1.0f : 0.0f)
    default:
        return false;
    }
}

static void select_row(const uint8_t *c, const float *a, int64_t sa, const float *b, int64_t sb, float *y, int64_t n)
{
    if (sa && sb)
        ROW(c[i] ? u : v, i, i)
    else if (sa)
        ROW(c[i] ? u : v, i, 0)
    else
        ROW(c[i] ? u : v, 0, i * sb)
}

typedef float row16 __attribute__((vector_size(64), aligned(4), may_alias));

/* Four rows of sixteen side by side: an addition waits four cycles for the one before, and a core can begin one or two in each. What is left at
 * the end is filled up with `empty`, which changes no result. `join` of two rows, `value` of v, a row of x. */
#define LANES(v, from)                                                                                                 \
    __builtin_shufflevector(v, v, from, 1 ^ (from), 2 ^ (from), 3 ^ (from), 4 ^ (from), 5 ^ (from), 6 ^ (from),        \
                            7 ^ (from), 8 ^ (from), 9 ^ (from), 10 ^ (from), 11 ^ (from), 12 ^ (from), 13 ^ (from),    \
                            14 ^ (from), 15 ^ (from))
#define TAKE(sum, at, join, value)                                                                                     \
    {                                                                                                                  \
        row16 v = *(const row16 *)(const void *)(at);                                                                  \
        sum = join(sum, value);                                                                                        \
    }
#define REDUCE(empty, join, first, value)                                                                              \
    {                                                                                                                  \
        row16 s0 = (row16){0} + (first), s1 = s0, s2 = s0, s3 = s0;                                                    \
        int64_t i = 0;                                                                                                 \
        for (; i + 64 <= n; i += 64) {                                                                                 \
            TAKE(s0, x + i, join, value)                                                                               \
            TAKE(s1, x + i + 16, join, value)                                                                          \
            TAKE(s2, x + i + 32, join, value)                                                                          \
            TAKE(s3, x + i + 48, join, value)                                                                          \
        }                                                                                                              \
        for (; i + 16 <= n; i += 16)                                                                                   \
            TAKE(s0, x + i, join, value)                                                                               \
        if (i < n) {                                                                                                   \
            float rest[16];                                                                                            \
            _Pragma("omp simd") for (int k = 0; k < 16; k++) rest[k] = k < n - i ? x[i + k] : (empty);                 \
            TAKE(s1, rest, join, value)                                                                                \
        }                                                                                                              \
        s0 = join(join(s0, s1), join(s2, s3));                                                                         \
        s0 = join(s0, LANES(s0, 8));                                                                                   \
        s0 = join(s0, LANES(s0, 4));                                                                                   \
        s0 = join(s0, LANES(s0, 2));                                                                                   \
        s0 = join(s0, LANES(s0, 1));                                                                                   \
        return s0[0];                                                                                                  \
    }
typedef int32_t mask16 __attribute__((vector_size(64)));
#define CHOOSE(mask, a, b) ((row16)(((mask) & (mask16)(a)) | (~(mask) & (mask16)(b))))
#define PLUS(a, b)         ((a) + (b))
#define TIMES(a, b)        ((a) * (b))
#define MOST(a, b)         CHOOSE((b) > (a), b, a)
#define LEAST(a, b)        CHOOSE((b) < (a), b, a)

static float reduce(bz_fn fn, const float *x, int64_t n)
{
    switch (fn) {
    case BZ_FN_L1:
        REDUCE(0, PLUS, 0, (row16)((mask16)v & INT32_MAX))
    case BZ_FN_L2:
    case BZ_FN_SUMSQUARE:
        REDUCE(0, PLUS, 0, v * v)
    case BZ_FN_PROD:
        REDUCE(1, TIMES, 1, v)
    case BZ_FN_MAX:
        REDUCE(-INFINITY, MOST, -INFINITY, v)
    case BZ_FN_MIN:
        REDUCE(INFINITY, LEAST, INFINITY, v)
    default:
        REDUCE(0, PLUS, 0, v)
    }
}

#undef EACH
#define EACH(step)                                                                                                     \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                                \
    {                                                                                                                  \
        float v = x[i], s = y[i];                                                                                      \
        y[i] = step;                                                                                                   \
    }                                                                                                                  \
    break

static void reduce_into(bz_fn fn, const float *x, float *y, int64_t n)
{
    switch (fn) {
    case BZ_FN_L1:
        EACH(s + fabsf(v));
    case BZ_FN_L2:
    case BZ_FN_SUMSQUARE:
        EACH(s + v * v);
    case BZ_FN_PROD:
        EACH(s * v);
    case BZ_FN_MAX:
        EACH(v > s ? v : s);
    case BZ_FN_MIN:
        EACH(v < s ? v : s);
    default:
        EACH(s + v);
    }
}

static float deviation(const float *x, float mean, int64_t n)
{
    REDUCE(mean, PLUS, 0, (v - mean) * (v - mean))
}

#define NORMALIZE(value)                                                                                               \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                                \
    {                                                                                                                  \
        float v = (x[i] - mean) * factor;                                                                              \
        y[i] = value;                                                                                                  \
    }

static void normalize(const float *x, float mean, float factor, const float *scale, const float *shift, float *y,
                      int64_t n)
{
    if (scale && shift)
        NORMALIZE(v * scale[i] + shift[i])
    else if (scale)
        NORMALIZE(v * scale[i])
    else
        NORMALIZE(v)
}

static float exp_minus(const float *x, float most, float *y, int64_t n)
{
    float s = 0;
    if (!y) {
#pragma omp simd reduction(+ : s)
        for (int64_t i = 0; i < n; i++)
            s += exp_of(x[i] - most);
        return s;
    }
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; i++) {
        float v = exp_of(x[i] - most);
        y[i] = v;
        s += v;
    }
    return s;
}

static void slope_row(const float *x, const float *slope, float *y, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] > 0.0f ? x[i] : slope[i] * x[i];
}

typedef float row8 __attribute__((vector_size(32), aligned(4), may_alias));

#define PAIR(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, (i) + 8, j, (j) + 8, k, (k) + 8, l, (l) + 8)

/* Eight rows of eight, in registers: pairs of elements, pairs of pairs, halves. */
static inline void transpose_8x8(const float *x, int64_t ldx, float *y, int64_t ldy)
{
    row8 a[8], t[8];
    for (int i = 0; i < 8; i++)
        a[i] = *(const row8 *)(const void *)(x + i * ldx);
    for (int i = 0; i < 8; i += 2) {
        t[i] = PAIR(a[i], a[i + 1], 0, 1, 4, 5);
        t[i + 1] = PAIR(a[i], a[i + 1], 2, 3, 6, 7);
    }
    for (int i = 0; i < 8; i += 4) {
        a[i] = __builtin_shufflevector(t[i], t[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        a[i + 1] = __builtin_shufflevector(t[i], t[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        a[i + 2] = __builtin_shufflevector(t[i + 1], t[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        a[i + 3] = __builtin_shufflevector(t[i + 1], t[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int i = 0; i < 4; i++) {
        *(row8 *)(void *)(y + i * ldy) = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(row8 *)(void *)(y + (i + 4) * ldy) = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/* What is no whole block, and elements that are not of four bytes. */
static void transpose_rest(const char *x, int64_t ldx, char *y, int64_t ldy, int64_t rows, int64_t columns, int size)
{
#define EACH_SIZE(size)                                                                                                \
    for (int64_t r = 0; r < rows; r++)                                                                                 \
        for (int64_t c = 0; c < columns; c++)                                                                          \
            memcpy(y + (r * ldy + c) * (size), x + (c * ldx + r) * (size), size);                                      \
    break
    switch (size) {
    case 1:
        EACH_SIZE(1);
    case 2:
        EACH_SIZE(2);
    case 4:
        EACH_SIZE(4);
    default:
        EACH_SIZE(8);
    }
#undef EACH_SIZE
}

/* Tile by tile, each in blocks of eight by eight. A plane that no cache of a core's own holds is gone through along the source's lines, so that each
 * is read whole before the next: a third to a half of the time. In the caches the result's lines are better, by a tenth. */
static void transpose(const void *from, int64_t ldx, void *to, int64_t ldy, int64_t rows, int64_t columns, int size)
{
    enum { TILE = 16, NEAR = 1 << 20 };
    bool far = ldx * columns * size > NEAR;
    const char *x = from;
    char *y = to;
    for (int64_t r = 0; r < rows; r += TILE)
        for (int64_t c = 0; c < columns; c += TILE) {
            int64_t m = rows - r < TILE ? rows - r : TILE, n = columns - c < TILE ? columns - c : TILE;
            const float *tile = (const float *)(const void *)(x + (c * ldx + r) * size);
            float *out = (float *)(void *)(y + (r * ldy + c) * size);
            if (size != 4 || m % 8 || n % 8)
                transpose_rest((const char *)tile, ldx, (char *)out, ldy, m, n, size);
            else
                for (int64_t a = 0; a < (far ? n : m); a += 8)
                    for (int64_t b = 0; b < (far ? m : n); b += 8)
                        transpose_8x8(tile + (far ? a : b) * ldx + (far ? b : a), ldx,
                                      out + (far ? b : a) * ldy + (far ? a : b), ldy);
        }
}

static int64_t f16_to_f32(const uint16_t *h, float *to, int64_t n)
{
    int64_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(h + i))));
#else
    (void)h, (void)to, (void)n;
#endif
    return i;
}

static int64_t f32_to_f16(const float *from, uint16_t *h, int64_t n)
{
    int64_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(h + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
#else
    (void)from, (void)h, (void)n;
#endif
    return i;
}

static bool widen(bz_dtype t, const void *from, float *to, int64_t n)
{
    const uint16_t *h = from;
    int64_t done;
    switch (t) {
    case BZ_BF16:
        for (int64_t i = 0; i < n; i++)
            to[i] = float_of((uint32_t)h[i] << 16);
        return true;
    case BZ_F16:
        done = f16_to_f32(h, to, n);
        bz_values_decode(t, h + done, to + done, n - done);
        return true;
    case BZ_U8:
    case BZ_BOOL:
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)((const uint8_t *)from)[i];
        return true;
    case BZ_I8:
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)((const int8_t *)from)[i];
        return true;
    default:
        return false;
    }
}

static bool narrow(bz_dtype t, const float *from, void *to, int64_t n)
{
    uint16_t *h = to;
    int64_t done;
    switch (t) {
    case BZ_BF16:
        for (int64_t i = 0; i < n; i++) {
            uint32_t bits = bits_of(from[i]);
            h[i] = (uint16_t)(from[i] != from[i] ? 0x7fc0U : (bits + 0x7fffU + (bits >> 16 & 1)) >> 16);
        }
        return true;
    case BZ_F16:
        done = f32_to_f16(from, h, n);
        bz_values_encode(t, from + done, h + done, n - done);
        return true;
    case BZ_U8:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)to)[i] = (uint8_t)(int32_t)clip_of(from[i] == from[i] ? from[i] : 0.0f, 0.0f, 255.0f);
        return true;
    case BZ_I8:
        for (int64_t i = 0; i < n; i++)
            ((int8_t *)to)[i] = (int8_t)(int32_t)clip_of(from[i] == from[i] ? from[i] : 0.0f, -128.0f, 127.0f);
        return true;
    case BZ_BOOL:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)to)[i] = from[i] != 0.0f;
        return true;
    default:
        return false;
    }
}

extern const bz_training_kernels JOIN(bz_training_kernels_, BZ_ISA);
extern const bz_kernels JOIN(bz_kernels_, BZ_ISA);
const bz_kernels JOIN(bz_kernels_, BZ_ISA) = {
    .name = TEXT(BZ_ISA),
    .unary = unary,
    .binary = binary,
    .select = select_row,
    .reduce = reduce,
    .reduce_into = reduce_into,
    .deviation = deviation,
    .normalize = normalize,
    .exp_minus = exp_minus,
    .slope = slope_row,
    .transpose = transpose,
    .widen = widen,
    .narrow = narrow,
    .training = &JOIN(bz_training_kernels_, BZ_ISA),
};
