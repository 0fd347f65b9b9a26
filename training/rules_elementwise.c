/* Derivatives of what works element by element. */
#include "training/build.h"

#include <math.h>
#include <string.h>

/* Functions of one value, of operand 0: one layer each, as libraries have one call. */
static int unary(grad *g)
{
    static const char *const REAL[] = {"alpha", "beta", "gamma", "lambd", "bias", "min", "max"};
    build *b = g->b;
    for (size_t i = 0; i < sizeof REAL / sizeof *REAL; i++)
        if (isnan(grad_param_real(g, REAL[i], 0)))
            return grad_fail(g, "its %s is computed by the model: there is no derivative for that", REAL[i]);
    const char *dx =
        grad_node(b, "own:EltwiseGrad", grad_dy(g, 0), g->s->row->uses_y ? grad_y(g, 0) : grad_x(g, 0), NULL);
    GRAD_TEXT(b, "function", g->l->kind);
    GRAD_TEXT(b, "uses", g->s->row->uses_y ? "y" : "x");
    if (bz_layer_param(g->l, "approximate"))
        GRAD_TEXT(b, "approximate", grad_param_text(g, "approximate", ""));
    for (size_t i = 0; i < sizeof REAL / sizeof *REAL; i++)
        if (bz_layer_param(g->l, REAL[i]))
            GRAD_REAL(b, REAL[i], grad_param_real(g, REAL[i], 0));
    return grad_give(g, 0, dx);
}

static int same(grad *g)
{
    return grad_give(g, 0, grad_dy(g, 0));
}

static int negated(grad *g)
{
    return grad_give(g, 0, grad_node(g->b, "Neg", grad_dy(g, 0), NULL));
}

static int cast(grad *g)
{
    return grad_give(g, 0, grad_cast(g->b, grad_dy(g, 0), grad_type(g, 0)->dtype));
}

/* Gives operand k what has the result's shape. */
static void give_reduced(grad *g, int k, const char *value)
{
    grad_give(g, k, grad_reduce(g->b, value, &g->l->out[0], grad_type(g, k)));
}

/* Frameworks have one layer for a product and its bias, and sum up the gradient of the bias behind those of the product. */
static bool is_bias(const grad *g, int k)
{
    const build *b = g->b;
    const step *product = g->s - 1;
    return g->l->n_in == 2 && grad_type(g, k)->rank == 1 && b->trained[grad_id(b, g->l->node->in[k])] &&
           g->s > b->steps && !strcmp(product->layer->kind, "matmul") &&
           product->layer->node->out[0] == g->l->node->in[1 - k];
}

void sum_late(build *b)
{
    grad g = {b, b->late, b->late->layer};
    b->layer = g.l->name;
    b->late = NULL;
    for (int k = 0; k < 2; k++)
        if (is_bias(&g, k))
            give_reduced(&g, k, grad_dy(&g, 0));
    grad_added(b);
}

static int sum(grad *g)
{
    double share = !strcmp(g->l->node->op, "Mean") ? 1.0 / g->l->n_in : 1;
    const char *dy = grad_scaled(g->b, grad_dy(g, 0), g->l->out[0].dtype, share);
    for (int k = 0; k < g->l->n_in; k++)
        if (grad_wants(g, k) && is_bias(g, k))
            g->b->late = g->s;
        else if (grad_wants(g, k))
            give_reduced(g, k, dy);
    return 0;
}

static int sub(grad *g)
{
    if (grad_wants(g, 0))
        give_reduced(g, 0, grad_dy(g, 0));
    if (grad_wants(g, 1)) /* summed first: the smaller is negated */
        grad_give(g, 1, grad_node(g->b, "Neg", grad_reduce(g->b, grad_dy(g, 0), &g->l->out[0], grad_type(g, 1)), NULL));
    return 0;
}

static int mul(grad *g)
{
    for (int k = 0; k < 2; k++)
        if (grad_wants(g, k))
            give_reduced(g, k, grad_node(g->b, "Mul", grad_dy(g, 0), grad_x(g, 1 - k), NULL));
    return 0;
}

/* da = dy / b, db = -dy · y / b */
static int div_back(grad *g)
{
    const char *da = grad_node(g->b, "Div", grad_dy(g, 0), grad_x(g, 1), NULL);
    if (grad_wants(g, 0))
        give_reduced(g, 0, da);
    if (grad_wants(g, 1))
        give_reduced(g, 1, grad_node(g->b, "Neg", grad_node(g->b, "Mul", da, grad_y(g, 0), NULL), NULL));
    return 0;
}

/* da = dy · b · a^(b - 1), db = dy · y · log a */
static int power(grad *g)
{
    build *b = g->b;
    double exponent = grad_param_real(g, "exponent", NAN);
    bz_dtype t = g->l->out[0].dtype;
    if (grad_wants(g, 1) && !isnan(exponent))
        return grad_fail(g, "its exponent is a number, and is to be trained");
    if (grad_wants(g, 0)) {
        const char *slope;
        if (exponent == 2)
            slope = grad_x(g, 0);
        else if (!isnan(exponent))
            slope = grad_node(b, "Pow", grad_x(g, 0), grad_scalar(b, t, exponent - 1), NULL);
        else
            slope =
                grad_node(b, "Pow", grad_x(g, 0), grad_node(b, "Sub", grad_x(g, 1), grad_scalar(b, t, 1), NULL), NULL);
        const char *factor =
            isnan(exponent) ? grad_node(b, "Mul", slope, grad_x(g, 1), NULL) : grad_scaled(b, slope, t, exponent);
        give_reduced(g, 0, grad_node(b, "Mul", grad_dy(g, 0), factor, NULL));
    }
    if (grad_wants(g, 1)) {
        const char *slope = grad_node(b, "Mul", grad_y(g, 0), grad_node(b, "Log", grad_x(g, 0), NULL), NULL);
        give_reduced(g, 1, grad_node(b, "Mul", grad_dy(g, 0), slope, NULL));
    }
    return 0;
}

/* The operand that the result is equal to has the gradient; of equal ones, each. */
static int extreme(grad *g)
{
    build *b = g->b;
    for (int k = 0; k < g->l->n_in; k++)
        if (grad_wants(g, k)) {
            const char *is = grad_cast(b, grad_node(b, "Equal", grad_x(g, k), grad_y(g, 0), NULL), g->l->out[0].dtype);
            give_reduced(g, k, grad_node(b, "Mul", grad_dy(g, 0), is, NULL));
        }
    return 0;
}

static int where(grad *g)
{
    build *b = g->b;
    const char *zero = grad_scalar(b, g->l->out[0].dtype, 0);
    if (grad_wants(g, 1))
        give_reduced(g, 1, grad_node(b, "Where", grad_x(g, 0), grad_dy(g, 0), zero, NULL));
    if (grad_wants(g, 2))
        give_reduced(g, 2, grad_node(b, "Where", grad_x(g, 0), zero, grad_dy(g, 0), NULL));
    return 0;
}

/* x > 0 ? dy : slope · dy, and dy · min(x, 0) for the slope. */
static int prelu(grad *g)
{
    build *b = g->b;
    bz_dtype t = g->l->out[0].dtype;
    const char *zero = grad_scalar(b, t, 0);
    if (grad_wants(g, 0)) {
        const char *positive = grad_node(b, "Greater", grad_x(g, 0), zero, NULL);
        const char *below = grad_node(b, "Mul", grad_dy(g, 0), grad_x(g, 1), NULL);
        grad_give(g, 0, grad_node(b, "Where", positive, grad_dy(g, 0), below, NULL));
    }
    if (grad_wants(g, 1)) {
        const char *negative = grad_node(b, "Sub", grad_x(g, 0), grad_node(b, "Relu", grad_x(g, 0), NULL), NULL);
        give_reduced(g, 1, grad_node(b, "Mul", grad_dy(g, 0), negative, NULL));
    }
    return 0;
}

/* swish(a) · b */
static int swiglu(grad *g)
{
    build *b = g->b;
    double alpha = grad_param_real(g, "alpha", 1);
    const char *s = grad_node(b, "Sigmoid", grad_scaled(b, grad_x(g, 0), g->l->out[0].dtype, alpha), NULL);
    if (grad_wants(g, 1))
        grad_give(g, 1, grad_node(b, "Mul", grad_dy(g, 0), grad_node(b, "Mul", grad_x(g, 0), s, NULL), NULL));
    if (grad_wants(g, 0)) {
        const char *da =
            grad_node(b, "own:EltwiseGrad", grad_node(b, "Mul", grad_dy(g, 0), grad_x(g, 1), NULL), grad_x(g, 0), NULL);
        GRAD_TEXT(b, "function", "swish");
        GRAD_TEXT(b, "uses", "x");
        GRAD_REAL(b, "alpha", alpha);
        grad_give(g, 0, da);
    }
    return 0;
}

/* com.microsoft's x + bias, and then a function of one value. */
static int biased(grad *g)
{
    build *b = g->b;
    if (!grad_has(g, 1))
        return unary(g);
    const char *x = grad_node(b, "Add", grad_x(g, 0), grad_x(g, 1), NULL);
    const char *dx = grad_node(b, "own:EltwiseGrad", grad_dy(g, 0), x, NULL);
    GRAD_TEXT(b, "function", !strcmp(g->l->kind, "biasgelu") ? "gelu" : g->l->kind);
    GRAD_TEXT(b, "uses", "x");
    for (int k = 0; k < 2; k++)
        if (grad_wants(g, k))
            give_reduced(g, k, dx);
    return 0;
}

/* The running sum backwards; of a running product, that of dy · y, by x. */
static int cumulated(grad *g)
{
    bool product = !strcmp(g->l->kind, "cumprod");
    const char *dy = product ? grad_node(g->b, "Mul", grad_dy(g, 0), grad_y(g, 0), NULL) : grad_dy(g, 0);
    const char *dx = grad_node(g->b, "CumSum", dy, grad_x(g, 1), NULL);
    GRAD_INT(g->b, "exclusive", grad_param_int(g, "exclusive", 0));
    GRAD_INT(g->b, "reverse", !grad_param_int(g, "reverse", 0));
    return grad_give(g, 0, product ? grad_node(g->b, "Div", dx, grad_x(g, 0), NULL) : dx);
}

#define MS "com.microsoft"
/* What a framework keeps decides: the result of relu, sigmoid, tanh, exp; the operand of gelu, hardswish. */
static const derivative ROWS[] = {
    {.ops = "Abs Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Log Sin Sinh Tan Softplus Softsign HardSwish "
            "Mish LeakyRelu Elu Celu Selu HardSigmoid ThresholdedRelu Shrink Swish Gelu Clip",
     .back = unary},
    {.ops = "Exp Reciprocal Sqrt Relu Sigmoid Tanh", .back = unary, .uses_y = true},
    {.ops = "Gelu QuickGelu", .domain = MS, .back = unary},
    {.ops = "FastGelu BiasGelu", .domain = MS, .back = biased},
    {.ops = "Neg", .back = negated},
    {.ops = "Identity", .back = same},
    {.ops = "Cast CastLike", .back = cast},
    {.ops = "Add Sum Mean", .back = sum},
    {.ops = "Sub", .back = sub},
    {.ops = "Mul", .back = mul},
    {.ops = "Div", .back = div_back},
    {.ops = "Pow", .back = power},
    {.ops = "Max Min", .back = extreme},
    {.ops = "Where", .back = where},
    {.ops = "PRelu", .back = prelu},
    {.ops = "SwiGLU", .back = swiglu},
    {.ops = "CumSum CumProd", .back = cumulated},
    {.ops = "Ceil Floor Round Sign Not And Or Xor Equal Less Greater LessOrEqual GreaterOrEqual IsNaN IsInf "
            "ArgMax ArgMin Shape Size NonZero OneHot Range ConstantOfShape Constant EyeLike RandomNormal "
            "RandomUniform RandomNormalLike RandomUniformLike Bernoulli BitShift BitwiseAnd BitwiseOr BitwiseXor "
            "BitwiseNot Hardmax Multinomial NonMaxSuppression HannWindow HammingWindow BlackmanWindow MelWeightMatrix "
            "OptionalHasElement SequenceLength"}, /* none */
};
const derivative_table derivatives_elementwise = DERIVATIVES(ROWS);
