/* Derivatives of functions of one value: a row each. */
#include "runtime/kind.h"

#define PI 3.14159265358979323846

/* d/dx ½ x (1 + tanh(u)), u = √(2/π) (x + 0.044715 x³) */
static double gelu_tanh_slope(double x)
{
    double u = sqrt(2 / PI) * (x + 0.044715 * x * x * x), t = tanh(u);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / PI) * (1 + 3 * 0.044715 * x * x);
}

/* d/dx x tanh(softplus(x)) */
static double mish_slope(double x)
{
    double t = tanh(x > 30 ? x : log1p(exp(x)));
    return t + x * (1 - t * t) * bz_sigmoid(x);
}

/* clang-format off */
#define SLOPE(name, value) static double name(double x, double alpha, double beta) { (void)x, (void)alpha, (void)beta; return value; }
SLOPE(relu, x > 0)
SLOPE(leaky, x > 0 ? 1 : alpha)
SLOPE(elu, x > 0 ? 1 : alpha * exp(x))
SLOPE(elu_of_y, x > 0 ? 1 : x + alpha)
SLOPE(clip, x > alpha && x < beta)
SLOPE(sigmoid_slope, bz_sigmoid(x) * (1 - bz_sigmoid(x)))
SLOPE(sigmoid_of_y, x * (1 - x))
SLOPE(tanh_slope, 1 - tanh(x) * tanh(x))
SLOPE(tanh_of_y, 1 - x * x)
SLOPE(gelu_erf, 0.5 * (1 + erf(x / sqrt(2))) + x * exp(-0.5 * x * x) / sqrt(2 * PI))
SLOPE(gelu_tanh, gelu_tanh_slope(x))
SLOPE(swish, bz_sigmoid(alpha * x) * (1 + alpha * x * (1 - bz_sigmoid(alpha * x))))
SLOPE(hardswish, x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6)
SLOPE(hardsigmoid, alpha * x + beta > 0 && alpha * x + beta < 1 ? alpha : 0)
SLOPE(mish, mish_slope(x))
SLOPE(softplus, bz_sigmoid(x))
SLOPE(exp_slope, exp(x))
SLOPE(same, x)
SLOPE(log_slope, 1 / x)
SLOPE(sqrt_slope, 0.5 / sqrt(x))
SLOPE(sqrt_of_y, 0.5 / x)
SLOPE(abs_slope, (x > 0) - (x < 0))
SLOPE(square, 2 * x)
SLOPE(erf_slope, 2 / sqrt(PI) * exp(-x * x))
SLOPE(softsign, 1 / ((1 + fabs(x)) * (1 + fabs(x))))
SLOPE(sin_slope, cos(x))
SLOPE(cos_slope, -sin(x))
SLOPE(linear, alpha)
SLOPE(power, alpha * beta * pow(x, beta - 1))

static const struct {
    double (*of_x)(double x, double alpha, double beta);
    double (*of_y)(double y, double alpha, double beta); /* NULL: two places have the same value, but other slopes */
} SLOPES[BZ_FN_N] = {
    [BZ_FN_RELU] = {relu, relu},
    [BZ_FN_LEAKY] = {leaky, leaky}, /* for a slope that is not negative */
    [BZ_FN_ELU] = {elu, elu_of_y},
    [BZ_FN_CLIP] = {clip, clip},
    [BZ_FN_SIGMOID] = {sigmoid_slope, sigmoid_of_y},
    [BZ_FN_TANH] = {tanh_slope, tanh_of_y},
    [BZ_FN_GELU_ERF] = {gelu_erf, NULL},
    [BZ_FN_GELU_TANH] = {gelu_tanh, NULL},
    [BZ_FN_SWISH] = {swish, NULL},
    [BZ_FN_HARDSWISH] = {hardswish, NULL},
    [BZ_FN_HARDSIGMOID] = {hardsigmoid, NULL},
    [BZ_FN_MISH] = {mish, NULL},
    [BZ_FN_SOFTPLUS] = {softplus, NULL},
    [BZ_FN_EXP] = {exp_slope, same},
    [BZ_FN_LOG] = {log_slope, NULL},
    [BZ_FN_SQRT] = {sqrt_slope, sqrt_of_y},
    [BZ_FN_ABS] = {abs_slope, NULL},
    [BZ_FN_SQUARE] = {square, NULL},
    [BZ_FN_ERF] = {erf_slope, NULL},
    [BZ_FN_SOFTSIGN] = {softsign, NULL},
    [BZ_FN_SIN] = {sin_slope, NULL},
    [BZ_FN_COS] = {cos_slope, NULL},
    [BZ_FN_LINEAR] = {linear, NULL},
    [BZ_FN_POW] = {power, NULL},
};
/* clang-format on */

bool bz_fn_has_slope(bz_fn fn)
{
    return fn < BZ_FN_N && SLOPES[fn].of_x;
}

bool bz_fn_inverts(bz_fn fn)
{
    return fn < BZ_FN_N && SLOPES[fn].of_y;
}

double bz_fn_slope(bz_fn fn, double x, double alpha, double beta)
{
    return bz_fn_has_slope(fn) ? SLOPES[fn].of_x(x, alpha, beta) : 0;
}

double bz_fn_slope_of_y(bz_fn fn, double y, double alpha, double beta)
{
    return bz_fn_inverts(fn) ? SLOPES[fn].of_y(y, alpha, beta) : 0;
}
