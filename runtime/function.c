/* Functions of one or two values: a row each. */
#include "runtime/problem.h"

#include <math.h>
#include <string.h>

enum { POST = 1, ACTIVATION = 2, BINARY = 4, REDUCTION = 8 };

static const struct {
    const char *name;
    int parameters, where;
} FUNCTIONS[BZ_FN_N] = {
    [BZ_FN_NONE] = {"none", 0, 0},
    [BZ_FN_BIAS] = {"bias", 0, POST},
    [BZ_FN_ADD] = {"add", 0, POST | BINARY},
    [BZ_FN_SUB] = {"sub", 0, POST | BINARY},
    [BZ_FN_MUL] = {"mul", 0, POST | BINARY},
    [BZ_FN_DIV] = {"div", 0, BINARY},
    [BZ_FN_MAX] = {"max", 0, POST | BINARY | REDUCTION},
    [BZ_FN_MIN] = {"min", 0, POST | BINARY | REDUCTION},
    [BZ_FN_EQ] = {"eq", 0, BINARY},
    [BZ_FN_NE] = {"ne", 0, BINARY},
    [BZ_FN_GT] = {"gt", 0, BINARY},
    [BZ_FN_GE] = {"ge", 0, BINARY},
    [BZ_FN_LT] = {"lt", 0, BINARY},
    [BZ_FN_LE] = {"le", 0, BINARY},
    [BZ_FN_RELU] = {"relu", 0, POST | ACTIVATION},
    [BZ_FN_LEAKY] = {"leaky", 1, POST | ACTIVATION},
    [BZ_FN_ELU] = {"elu", 1, POST | ACTIVATION},
    [BZ_FN_CLIP] = {"clip", 2, POST | ACTIVATION},
    [BZ_FN_SIGMOID] = {"sigmoid", 0, POST | ACTIVATION},
    [BZ_FN_TANH] = {"tanh", 0, POST | ACTIVATION},
    [BZ_FN_GELU_ERF] = {"gelu_erf", 0, POST | ACTIVATION},
    [BZ_FN_GELU_TANH] = {"gelu_tanh", 0, POST | ACTIVATION},
    [BZ_FN_SWISH] = {"swish", 1, POST | ACTIVATION},
    [BZ_FN_HARDSWISH] = {"hardswish", 0, POST | ACTIVATION},
    [BZ_FN_HARDSIGMOID] = {"hardsigmoid", 2, POST | ACTIVATION},
    [BZ_FN_MISH] = {"mish", 0, POST | ACTIVATION},
    [BZ_FN_SOFTPLUS] = {"softplus", 0, POST | ACTIVATION},
    [BZ_FN_EXP] = {"exp", 0, POST | ACTIVATION},
    [BZ_FN_LOG] = {"log", 0, POST | ACTIVATION},
    [BZ_FN_SQRT] = {"sqrt", 0, ACTIVATION},
    [BZ_FN_ABS] = {"abs", 0, POST | ACTIVATION},
    [BZ_FN_SQUARE] = {"square", 0, POST | ACTIVATION},
    [BZ_FN_ROUND] = {"round", 0, ACTIVATION},
    [BZ_FN_FLOOR] = {"floor", 0, ACTIVATION},
    [BZ_FN_CEIL] = {"ceil", 0, ACTIVATION},
    [BZ_FN_SIGN] = {"sign", 0, ACTIVATION},
    [BZ_FN_ERF] = {"erf", 0, ACTIVATION},
    [BZ_FN_LINEAR] = {"linear", 2, POST | ACTIVATION},
    [BZ_FN_POW] = {"pow", 2, ACTIVATION},
    [BZ_FN_SUM] = {"sum", 0, REDUCTION},
    [BZ_FN_MEAN] = {"mean", 0, REDUCTION},
    [BZ_FN_PROD] = {"prod", 0, REDUCTION},
    [BZ_FN_L1] = {"l1", 0, REDUCTION},
    [BZ_FN_L2] = {"l2", 0, REDUCTION},
    [BZ_FN_SUMSQUARE] = {"sumsquare", 0, REDUCTION},
};

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

bool bz_algorithm_is_reference(const char *algorithm)
{
    for (const char *at = algorithm; at && (at = strstr(at, "ref")); at++)
        if ((at == algorithm || strchr("_ ", at[-1])) && (!at[3] || strchr(":_ ", at[3])))
            return true;
    return false;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
    return x > 30 ? x : log1p(exp(x));
}

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

double bz_fn_value(bz_fn fn, double x, double alpha, double beta)
{
    const double pi = 3.14159265358979323846;
    switch (fn) {
    case BZ_FN_RELU:
        return x > 0 ? x : 0;
    case BZ_FN_LEAKY:
        return x > 0 ? x : alpha * x;
    case BZ_FN_ELU:
        return x > 0 ? x : alpha * expm1(x);
    case BZ_FN_CLIP:
        return clip(x, alpha, beta);
    case BZ_FN_SIGMOID:
        return sigmoid(x);
    case BZ_FN_TANH:
        return tanh(x);
    case BZ_FN_GELU_ERF:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case BZ_FN_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
    case BZ_FN_SWISH:
        return x * sigmoid(alpha * x);
    case BZ_FN_HARDSWISH:
        return x * clip(x + 3, 0, 6) / 6;
    case BZ_FN_HARDSIGMOID:
        return clip(alpha * x + beta, 0, 1);
    case BZ_FN_MISH:
        return x * tanh(softplus(x));
    case BZ_FN_SOFTPLUS:
        return softplus(x);
    case BZ_FN_EXP:
        return exp(x);
    case BZ_FN_LOG:
        return log(x);
    case BZ_FN_SQRT:
        return sqrt(x);
    case BZ_FN_ABS:
        return fabs(x);
    case BZ_FN_SQUARE:
        return x * x;
    case BZ_FN_ROUND:
        return nearbyint(x);
    case BZ_FN_FLOOR:
        return floor(x);
    case BZ_FN_CEIL:
        return ceil(x);
    case BZ_FN_SIGN:
        return (x > 0) - (x < 0);
    case BZ_FN_ERF:
        return erf(x);
    case BZ_FN_LINEAR:
        return alpha * x + beta;
    case BZ_FN_POW:
        return alpha * pow(x, beta);
    default:
        return x;
    }
}

double bz_fn_binary(bz_fn fn, double a, double b)
{
    switch (fn) {
    case BZ_FN_BIAS:
    case BZ_FN_ADD:
        return a + b;
    case BZ_FN_SUB:
        return a - b;
    case BZ_FN_MUL:
        return a * b;
    case BZ_FN_DIV:
        return a / b;
    case BZ_FN_MAX:
        return a > b ? a : b;
    case BZ_FN_MIN:
        return a < b ? a : b;
    case BZ_FN_EQ:
        return a == b;
    case BZ_FN_NE:
        return a != b;
    case BZ_FN_GT:
        return a > b;
    case BZ_FN_GE:
        return a >= b;
    case BZ_FN_LT:
        return a < b;
    case BZ_FN_LE:
        return a <= b;
    default:
        return a;
    }
}
