/* Functions of one or two values: a row each. */
#include "runtime/kind.h"

#include <string.h>

enum { POST = 1, ACTIVATION = 2, BINARY = 4, REDUCTION = 8 };
#define PI 3.14159265358979323846

static double softplus(double x)
{
    return x > 30 ? x : log1p(exp(x));
}

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* clang-format off */
#define ONE(name, value) static double name(double x, double alpha, double beta) { (void)alpha, (void)beta; return value; }
#define TWO(name, value) static double name(double a, double b) { return value; }
ONE(relu_of, x > 0 ? x : 0)
ONE(leaky_of, x > 0 ? x : alpha * x)
ONE(elu_of, x > 0 ? x : alpha * expm1(x))
ONE(clip_of, clip(x, alpha, beta))
ONE(sigmoid_of, bz_sigmoid(x))
ONE(tanh_of, tanh(x))
ONE(gelu_erf_of, 0.5 * x * (1 + erf(x / sqrt(2))))
ONE(gelu_tanh_of, 0.5 * x * (1 + tanh(sqrt(2 / PI) * (x + 0.044715 * x * x * x))))
ONE(swish_of, x * bz_sigmoid(alpha * x))
ONE(hardswish_of, x * clip(x + 3, 0, 6) / 6)
ONE(hardsigmoid_of, clip(alpha * x + beta, 0, 1))
ONE(mish_of, x * tanh(softplus(x)))
ONE(softplus_of, softplus(x))
ONE(exp_of, exp(x))
ONE(log_of, log(x))
ONE(sqrt_of, sqrt(x))
ONE(abs_of, fabs(x))
ONE(square_of, x * x)
ONE(round_of, nearbyint(x))
ONE(floor_of, floor(x))
ONE(ceil_of, ceil(x))
ONE(sign_of, (x > 0) - (x < 0))
ONE(erf_of, erf(x))
ONE(softsign_of, x / (1 + fabs(x)))
ONE(sin_of, sin(x))
ONE(cos_of, cos(x))
ONE(linear_of, alpha * x + beta)
ONE(pow_of, alpha * pow(x, beta))
TWO(add_of, a + b)
TWO(sub_of, a - b)
TWO(mul_of, a * b)
TWO(div_of, a / b)
TWO(max_of, a > b ? a : b)
TWO(min_of, a < b ? a : b)
TWO(eq_of, a == b)
TWO(ne_of, a != b)
TWO(gt_of, a > b)
TWO(ge_of, a >= b)
TWO(lt_of, a < b)
TWO(le_of, a <= b)

static const struct {
    const char *name;
    int parameters, where;
    float usual[2]; /* parameters where none are given: ONNX's defaults */
    double (*one)(double x, double alpha, double beta);
    double (*two)(double a, double b);
} FUNCTIONS[BZ_FN_N] = {
    [BZ_FN_NONE] = {"none", .where = 0},
    [BZ_FN_BIAS] = {"bias", 0, POST, .two = add_of},
    [BZ_FN_ADD] = {"add", 0, POST | BINARY, .two = add_of},
    [BZ_FN_KEEP] = {"keep", .where = POST},
    [BZ_FN_SUB] = {"sub", 0, POST | BINARY, .two = sub_of},
    [BZ_FN_MUL] = {"mul", 0, POST | BINARY, .two = mul_of},
    [BZ_FN_DIV] = {"div", 0, BINARY, .two = div_of},
    [BZ_FN_MAX] = {"max", 0, POST | BINARY | REDUCTION, .two = max_of},
    [BZ_FN_MIN] = {"min", 0, POST | BINARY | REDUCTION, .two = min_of},
    [BZ_FN_EQ] = {"eq", 0, BINARY, .two = eq_of},
    [BZ_FN_NE] = {"ne", 0, BINARY, .two = ne_of},
    [BZ_FN_GT] = {"gt", 0, BINARY, .two = gt_of},
    [BZ_FN_GE] = {"ge", 0, BINARY, .two = ge_of},
    [BZ_FN_LT] = {"lt", 0, BINARY, .two = lt_of},
    [BZ_FN_LE] = {"le", 0, BINARY, .two = le_of},
    [BZ_FN_RELU] = {"relu", 0, POST | ACTIVATION, .one = relu_of},
    [BZ_FN_LEAKY] = {"leaky", 1, POST | ACTIVATION, {0.01f, 0}, .one = leaky_of},
    [BZ_FN_ELU] = {"elu", 1, POST | ACTIVATION, {1, 0}, .one = elu_of},
    [BZ_FN_CLIP] = {"clip", 2, POST | ACTIVATION, {0, 6}, .one = clip_of},
    [BZ_FN_SIGMOID] = {"sigmoid", 0, POST | ACTIVATION, .one = sigmoid_of},
    [BZ_FN_TANH] = {"tanh", 0, POST | ACTIVATION, .one = tanh_of},
    [BZ_FN_GELU_ERF] = {"gelu_erf", 0, POST | ACTIVATION, .one = gelu_erf_of},
    [BZ_FN_GELU_TANH] = {"gelu_tanh", 0, POST | ACTIVATION, .one = gelu_tanh_of},
    [BZ_FN_SWISH] = {"swish", 1, POST | ACTIVATION, {1, 0}, .one = swish_of},
    [BZ_FN_HARDSWISH] = {"hardswish", 0, POST | ACTIVATION, .one = hardswish_of},
    [BZ_FN_HARDSIGMOID] = {"hardsigmoid", 2, POST | ACTIVATION, {0.2f, 0.5f}, .one = hardsigmoid_of},
    [BZ_FN_MISH] = {"mish", 0, POST | ACTIVATION, .one = mish_of},
    [BZ_FN_SOFTPLUS] = {"softplus", 0, POST | ACTIVATION, .one = softplus_of},
    [BZ_FN_EXP] = {"exp", 0, POST | ACTIVATION, .one = exp_of},
    [BZ_FN_LOG] = {"log", 0, POST | ACTIVATION, .one = log_of},
    [BZ_FN_SQRT] = {"sqrt", 0, ACTIVATION, .one = sqrt_of},
    [BZ_FN_ABS] = {"abs", 0, POST | ACTIVATION, .one = abs_of},
    [BZ_FN_SQUARE] = {"square", 0, POST | ACTIVATION, .one = square_of},
    [BZ_FN_ROUND] = {"round", 0, ACTIVATION, .one = round_of},
    [BZ_FN_FLOOR] = {"floor", 0, ACTIVATION, .one = floor_of},
    [BZ_FN_CEIL] = {"ceil", 0, ACTIVATION, .one = ceil_of},
    [BZ_FN_SIGN] = {"sign", 0, ACTIVATION, .one = sign_of},
    [BZ_FN_ERF] = {"erf", 0, ACTIVATION, .one = erf_of},
    [BZ_FN_SOFTSIGN] = {"softsign", 0, ACTIVATION, .one = softsign_of},
    [BZ_FN_SIN] = {"sin", 0, ACTIVATION, .one = sin_of},
    [BZ_FN_COS] = {"cos", 0, ACTIVATION, .one = cos_of},
    [BZ_FN_LINEAR] = {"linear", 2, POST | ACTIVATION, {1, 0}, .one = linear_of},
    [BZ_FN_POW] = {"pow", 2, ACTIVATION, {1, 2}, .one = pow_of},
    [BZ_FN_SUM] = {"sum", .where = REDUCTION},
    [BZ_FN_MEAN] = {"mean", .where = REDUCTION},
    [BZ_FN_PROD] = {"prod", .where = REDUCTION},
    [BZ_FN_L1] = {"l1", .where = REDUCTION},
    [BZ_FN_L2] = {"l2", .where = REDUCTION},
    [BZ_FN_SUMSQUARE] = {"sumsquare", .where = REDUCTION},
};
/* clang-format on */

static int where(bz_fn fn)
{
    return fn < BZ_FN_N ? FUNCTIONS[fn].where : 0;
}

const char *bz_fn_name(bz_fn fn)
{
    return fn < BZ_FN_N ? FUNCTIONS[fn].name : "?";
}

bz_fn bz_fn_find(const char *name, size_t n)
{
    for (bz_fn fn = BZ_FN_NONE + 1; fn < BZ_FN_N; fn++)
        if (strlen(FUNCTIONS[fn].name) == n && !memcmp(FUNCTIONS[fn].name, name, n))
            return fn;
    return BZ_FN_NONE;
}

int bz_fn_parameters(bz_fn fn)
{
    return fn < BZ_FN_N ? FUNCTIONS[fn].parameters : 0;
}

bool bz_fn_is_post(bz_fn fn)
{
    return where(fn) & POST;
}

bool bz_fn_is_activation(bz_fn fn)
{
    return where(fn) & ACTIVATION;
}

bool bz_fn_is_binary(bz_fn fn)
{
    return where(fn) & BINARY;
}

bool bz_fn_is_reduction(bz_fn fn)
{
    return where(fn) & REDUCTION;
}

bool bz_fn_is_comparison(bz_fn fn)
{
    return fn >= BZ_FN_EQ && fn <= BZ_FN_LE;
}

bool bz_algorithm_is_reference(const char *problem, const char *algorithm)
{
    static const char *const RECURRENT[] = {"lstm", "gru", "rnn"};
    for (int i = 0; i < 3; i++)
        if (!strncmp(problem, RECURRENT[i], strlen(RECURRENT[i])))
            return false;
    for (const char *at = algorithm; at && (at = strstr(at, "ref")); at++)
        if ((at == algorithm || strchr("_ ", at[-1])) && (!at[3] || strchr(":_ ", at[3])))
            return true;
    return false;
}

double bz_fn_value(bz_fn fn, double x, double alpha, double beta)
{
    return fn < BZ_FN_N && FUNCTIONS[fn].one ? FUNCTIONS[fn].one(x, alpha, beta) : x;
}

double bz_fn_binary(bz_fn fn, double a, double b)
{
    return fn < BZ_FN_N && FUNCTIONS[fn].two ? FUNCTIONS[fn].two(a, b) : a;
}

void bz_fn_normalize(bz_fn fn, float *alpha, float *beta)
{
    int n = bz_fn_parameters(fn);
    if (*alpha == 0 && *beta == 0 && n)
        *alpha = FUNCTIONS[fn].usual[0], *beta = FUNCTIONS[fn].usual[1];
    *alpha = n < 1 ? 0 : *alpha;
    *beta = n < 2 ? 0 : *beta;
}
