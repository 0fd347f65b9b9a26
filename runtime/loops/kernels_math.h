/* Functions of f32 without branches, for loops that become vectors; and names with the instruction set in them. Private to
 * kernels*.c. */
#ifndef BZ_KERNELS_MATH_H
#define BZ_KERNELS_MATH_H

#include "runtime/loops/kernels.h"

#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define TEXT_(a)    #a
#define TEXT(a)     TEXT_(a)

/* Functions that become vectors.
 * Polynomials as in Cephes (S. Moshier), without branches: about one unit in the last place of f32. */

static inline uint32_t bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* x = n ln 2 + r. n comes out of the adder: added to 1.5 · 2^23, a number's last bits are its integer part. 2^n is
 * multiplied in two halves, since n itself may be out of the range of exponents. */
static inline float exp_of(float x)
{
    const float whole = 12582912.0f;
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float t = x * 1.44269504f + whole, n = t - whole;
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t k = (int32_t)(bits_of(t) - bits_of(whole)), half = k >> 1;
    return p * float_of((uint32_t)(half + 127) << 23) * float_of((uint32_t)(k - half + 127) << 23);
}

static inline float log_of(float x)
{
    float y = x < 1.17549435e-38f ? x * 16777216.0f : x; /* denormal numbers have no exponent of their own */
    uint32_t bits = bits_of(y);
    float e = (float)((int32_t)(bits >> 23) - 127) - (x < 1.17549435e-38f ? 24.0f : 0.0f);
    float m = float_of((bits & 0x7fffffU) | 0x3f800000U);
    bool big = m > 1.41421356f;
    e = big ? e + 1.0f : e;
    m = (big ? m * 0.5f : m) - 1.0f;
    float z = m * m, p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p = p * m * z - e * 2.12194440e-4f - 0.5f * z + m + e * 0.693359375f;
    p = x == 0.0f ? -INFINITY : p;
    p = x == INFINITY ? INFINITY : p;
    return x < 0.0f || x != x ? NAN : p;
}

static inline float sigmoid_of(float x)
{
    return 1.0f / (1.0f + exp_of(-x));
}

static inline float tanh_of(float x)
{
    float a = fabsf(x), z = x * x, p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    p = p * z * x + x;
    float far = 1.0f - 2.0f / (exp_of(2.0f * a) + 1.0f);
    return a < 0.625f ? p : copysignf(far, x);
}

/* Near 0 by its own polynomial; from 1 on by Abramowitz and Stegun 7.1.26, which is off by less than 1.5e-7. */
static inline float erf_of(float x)
{
    float a = fabsf(x), z = x * x, p = 7.853861353153693e-5f;
    p = p * z - 8.010193625184903e-4f;
    p = p * z + 5.188327685732524e-3f;
    p = p * z - 2.685381193529856e-2f;
    p = p * z + 1.128358514861418e-1f;
    p = p * z - 3.761262582423300e-1f;
    p = (p * z + 1.128379165726710f) * x;
    float t = 1.0f / (1.0f + 0.3275911f * a), q = 1.061405429f;
    q = q * t - 1.453152027f;
    q = q * t + 1.421413741f;
    q = q * t - 0.284496736f;
    q = q * t + 0.254829592f;
    float far = 1.0f - q * t * exp_of(-z);
    return a < 1.0f ? p : copysignf(far, x);
}

static inline float softplus_of(float x)
{
    return (x > 0.0f ? x : 0.0f) + log_of(1.0f + exp_of(-fabsf(x)));
}

/* tanh(softplus(x)) is a ratio of polynomials in e^x; beyond 20 it is 1. */
static inline float mish_of(float x)
{
    float e = exp_of(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
}

/* sin(x + quarter · π/2). x = n · π/2 + r in double precision, which leaves r exact for f32 as long as n has some 30 bits. */
static inline float sine_of(float x, uint32_t quarter)
{
    const double whole = 6755399441055744.0; /* 1.5 · 2^52, as in exp_of */
    double t = (double)x * 0.63661977236758134 + whole, n = t - whole;
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    uint32_t k = (uint32_t)bits + quarter;
    float r = (float)((double)x - n * 1.5707963267948966), z = r * r, s = -1.9515295891e-4f, c = 2.443315711809948e-5f;
    s = s * z + 8.3321608736e-3f;
    s = s * z - 1.6666654611e-1f;
    s = s * z * r + r;
    c = c * z - 1.388731625493765e-3f;
    c = c * z + 4.166664568298827e-2f;
    c = c * z * z - 0.5f * z + 1.0f;
    float v = k & 1 ? c : s;
    return k & 2 ? -v : v;
}

/* Arguments so far from 0 that sine_of has no digits left are the C library's. */
static inline bool is_far(const float *x, int64_t n)
{
    bool far = false;
#pragma omp simd reduction(| : far)
    for (int64_t i = 0; i < n; i++)
        far |= !(fabsf(x[i]) < 1e9f);
    return far;
}

static inline float clip_of(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

#endif
