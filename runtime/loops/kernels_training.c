/* Kernels of training for one instruction set: compiled with -DBZ_ISA=… and that set's options. */
#include "runtime/loops/kernels_math.h"

static inline float gelu_tanh_slope(float x)
{
    float t = tanh_of(0.79788456f * (x + 0.044715f * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * 0.79788456f * (1.0f + 0.134145f * x * x);
}

static inline float swish_slope(float x, float alpha)
{
    float s = sigmoid_of(alpha * x);
    return s * (1.0f + alpha * x * (1.0f - s));
}

static inline float mish_slope(float x)
{
    float e = exp_of(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f), t = n / (n + 2.0f);
    return t + x * (1.0f - t * t) * sigmoid_of(x);
}

static inline float inside(float x, float low, float high, float value)
{
    value = x > low ? value : 0.0f;
    return x < high ? value : 0.0f;
}

#define EACH(value)                                                                                                    \
    {                                                                                                                  \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                            \
        {                                                                                                              \
            float v = x[i];                                                                                            \
            (void)v;                                                                                                   \
            dx[i] = dy[i] * (value);                                                                                   \
        }                                                                                                              \
        return true;                                                                                                   \
    }

/* Of the function's result, where that is cheaper, or all that is left. */
static bool slope_of_y(bz_fn fn, float alpha, const float *x, const float *dy, float *dx, int64_t n)
{
    switch (fn) {
    case BZ_FN_ELU:
        EACH(v > 0.0f ? 1.0f : v + alpha)
    case BZ_FN_SIGMOID:
        EACH(v * (1.0f - v))
    case BZ_FN_TANH:
        EACH(1.0f - v * v)
    case BZ_FN_EXP:
        EACH(v)
    case BZ_FN_SQRT:
        EACH(0.5f / v)
    default:
        return false;
    }
}

static bool slope(bz_fn fn, bool of_y, float alpha, float beta, const float *x, const float *dy, float *dx, int64_t n)
{
    if (of_y && fn != BZ_FN_RELU && fn != BZ_FN_LEAKY && fn != BZ_FN_CLIP)
        return slope_of_y(fn, alpha, x, dy, dx, n);
    switch (fn) {
    case BZ_FN_RELU:
        EACH(v > 0.0f ? 1.0f : 0.0f)
    case BZ_FN_LEAKY:
        EACH(v > 0.0f ? 1.0f : alpha)
    case BZ_FN_ELU:
        EACH(v > 0.0f ? 1.0f : alpha * exp_of(v))
    case BZ_FN_CLIP:
        EACH(inside(v, alpha, beta, 1.0f))
    case BZ_FN_SIGMOID:
        EACH(sigmoid_of(v) * (1.0f - sigmoid_of(v)))
    case BZ_FN_TANH:
        EACH(1.0f - tanh_of(v) * tanh_of(v))
    case BZ_FN_GELU_ERF:
        EACH(0.5f * (1.0f + erf_of(v * 0.70710678f)) + v * exp_of(-0.5f * v * v) * 0.39894228f)
    case BZ_FN_GELU_TANH:
        EACH(gelu_tanh_slope(v))
    case BZ_FN_SWISH:
        EACH(swish_slope(v, alpha))
    case BZ_FN_HARDSWISH:
        EACH(v <= -3.0f ? 0.0f : v >= 3.0f ? 1.0f : (2.0f * v + 3.0f) / 6.0f)
    case BZ_FN_HARDSIGMOID:
        EACH(inside(alpha * v + beta, 0.0f, 1.0f, alpha))
    case BZ_FN_MISH:
        EACH(mish_slope(v))
    case BZ_FN_SOFTPLUS:
        EACH(sigmoid_of(v))
    case BZ_FN_EXP:
        EACH(exp_of(v))
    case BZ_FN_LOG:
        EACH(1.0f / v)
    case BZ_FN_SQRT:
        EACH(0.5f / sqrtf(v))
    case BZ_FN_ABS:
        EACH((v > 0.0f ? 1.0f : 0.0f) - (v < 0.0f ? 1.0f : 0.0f))
    case BZ_FN_SQUARE:
        EACH(2.0f * v)
    case BZ_FN_ERF:
        EACH(1.12837917f * exp_of(-v * v))
    case BZ_FN_SOFTSIGN:
        EACH(1.0f / ((1.0f + fabsf(v)) * (1.0f + fabsf(v))))
    case BZ_FN_SIN:
        if (is_far(x, n))
            EACH(cosf(v))
        EACH(sine_of(v, 1))
    case BZ_FN_COS:
        if (is_far(x, n))
            EACH(-sinf(v))
        EACH(sine_of(v, 2))
    case BZ_FN_LINEAR:
        EACH(alpha)
    default:
        return false;
    }
}

static float dot(const float *a, const float *b, int64_t n)
{
    float s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

static void norm_sums(const float *x, float mean, float factor, const float *dy, const float *scale, int64_t n,
                      float sum[2])
{
    float s = 0, t = 0;
    if (scale) {
#pragma omp simd reduction(+ : s, t)
        for (int64_t i = 0; i < n; i++) {
            s += dy[i] * scale[i];
            t += dy[i] * scale[i] * (x[i] - mean);
        }
    } else {
#pragma omp simd reduction(+ : s, t)
        for (int64_t i = 0; i < n; i++) {
            s += dy[i];
            t += dy[i] * (x[i] - mean);
        }
    }
    sum[0] = s, sum[1] = t * factor;
}

static void norm_grad(const float *x, float mean, float factor, const float *dy, const float *scale, float by,
                      float plain, float along, float *dx, int64_t n)
{
    float slope_x = -along * factor * factor, less = plain * factor;
    if (scale) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * scale[i] * factor + (x[i] - mean) * slope_x - less;
        return;
    }
    by *= factor;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] * by + (x[i] - mean) * slope_x - less;
}

static void norm_add(const float *x, float mean, float factor, const float *dy, float *dscale, float *dshift, int64_t n)
{
    if (!dshift) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dscale[i] += dy[i] * (x[i] - mean) * factor;
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        dscale[i] += dy[i] * (x[i] - mean) * factor;
        dshift[i] += dy[i];
    }
}

static void softmax_grad(const float *y, const float *dy, const float *sum, bool each, float *dx, int64_t n)
{
    float all = *sum;
    if (each)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] = y[i] * (dy[i] - sum[i]);
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] = y[i] * (dy[i] - all);
}

static void logsoftmax_grad(const float *y, const float *dy, const float *sum, bool each, float *dx, int64_t n)
{
    float all = *sum;
    if (each)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] - exp_of(y[i]) * sum[i];
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] - exp_of(y[i]) * all;
}

static void add_product(const float *a, const float *b, float *sum, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] += a[i] * b[i];
}

static void mask_row(const float *x, const uint8_t *mask, float factor, float *y, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = mask[i] ? factor * x[i] : 0.0f;
}

/* A number for each element by mixing its place and the seed (the end of MurmurHash3): any order, any number of threads,
 * the same elements. */
static void chance(uint32_t drop, uint32_t seed, int64_t at, uint8_t *mask, int64_t n)
{
    uint32_t first = (uint32_t)at, high = (uint32_t)((uint64_t)at >> 32) * 0x9e3779b9U ^ seed;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        uint32_t h = (first + (uint32_t)i) * 0x9e3779b9U ^ high;
        h = (h ^ h >> 16) * 0x85ebca6bU;
        h = (h ^ h >> 13) * 0xc2b2ae35U;
        mask[i] = (h ^ h >> 16) >= drop;
    }
}

static void adam(const bz_update *u, float *w, const float *g, float *m, float *v, int64_t n)
{
    float a = u->alpha, b = u->beta, rate = u->rate * u->correct_m, cv = u->correct_v;
    float apart = u->rule == BZ_RULE_ADAMW ? 1.0f - u->rate * u->decay : 1.0f;
    float within = u->rule == BZ_RULE_ADAMW ? 0.0f : u->decay;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] + within * w[i];
        m[i] = a * m[i] + (1.0f - a) * d;
        v[i] = b * v[i] + (1.0f - b) * d * d;
        w[i] = apart * w[i] - rate * m[i] / (sqrtf(v[i] * cv) + u->epsilon);
    }
}

static void loss_of(const int32_t *label, int32_t class, const float *y, float *loss, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        loss[i] = label[i] == class ? -y[i] : loss[i];
}

static void update(const bz_update *u, float *w, const float *g, float *m, float *v, int64_t n)
{
    float rate = u->rate, decay = u->decay, a = u->alpha;
    if (u->rule == BZ_RULE_ADAM || u->rule == BZ_RULE_ADAMW) {
        adam(u, w, g, m, v, n);
    } else if (u->rule == BZ_RULE_SGD) {
        float keep = 1.0f - rate * decay;
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            w[i] = keep * w[i] - rate * g[i];
    } else if (u->nesterov) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            float d = g[i] + decay * w[i];
            m[i] = a * m[i] + d;
            w[i] -= rate * (d + a * m[i]);
        }
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            m[i] = a * m[i] + g[i] + decay * w[i];
            w[i] -= rate * m[i];
        }
    }
}

extern const bz_training_kernels JOIN(bz_training_kernels_, BZ_ISA);
const bz_training_kernels JOIN(bz_training_kernels_, BZ_ISA) = {
    .slope = slope,
    .dot = dot,
    .norm_sums = norm_sums,
    .norm_grad = norm_grad,
    .norm_add = norm_add,
    .softmax_grad = softmax_grad,
    .logsoftmax_grad = logsoftmax_grad,
    .add_product = add_product,
    .loss = loss_of,
    .mask = mask_row,
    .chance = chance,
    .update = update,
};
