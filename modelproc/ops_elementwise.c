/* Element-wise operators: unary, binary with broadcasting, variadic, comparison, selection, casts. */
#include "modelproc/eval.h"
#include "modelproc/rule.h"

#include <math.h>

static double to_precision(bz_dtype t, double v)
{
    return t == BZ_F32 ? (double)(float)v : v; /* floor(size * scale) depends on it */
}

static int eval_unary(call *c)
{
    const data *x = in_data(c, 0);
    values v;
    if (!x || c->in[0].kind != BZ_TYPE_TENSOR || (x->r && !c->op->real) || (x->i && !c->op->integer) ||
        !eval_room(c, 0, x->r != NULL, x->n, &v))
        return 0;
    for (int64_t k = 0; k < v.n; k++) {
        if (x->r)
            v.r[k] = to_precision(c->in[0].dtype, c->op->real(x->r[k]));
        else
            v.i[k] = bz_is_symbol(x->i[k]) ? new_symbol(c) : c->op->integer(x->i[k]);
    }
    return 0;
}

typedef enum { ADD = 1, SUB, MUL, DIV, POW, MOD, MIN, MAX, AND, OR, XOR, EQUAL, LESS, MORE, AT_MOST, AT_LEAST } binary;

static bool is_comparison(binary f)
{
    return f >= EQUAL;
}

/* Powers of shapes are small; everything else is not worth following. */
static bz_dim int_power(call *c, bz_dim a, bz_dim b)
{
    if (b < 0 || b > 62)
        return new_symbol(c);
    bz_dim p = 1;
    for (; b > 0; b--)
        p = dim_mul(c, p, a);
    return p;
}

/* Of a NaN and a number none of the three is so. */
static bool holds(binary comparison, bool less, bool equal, bool greater)
{
    bool with_equal = comparison == EQUAL || comparison == AT_MOST || comparison == AT_LEAST;
    return (with_equal && equal) || ((comparison == LESS || comparison == AT_MOST) && less) ||
           ((comparison == MORE || comparison == AT_LEAST) && greater);
}

static bz_dim int_binary(call *c, binary f, bz_dim a, bz_dim b)
{
    bool known = !bz_is_symbol(a) && !bz_is_symbol(b);
    switch (f) {
    case ADD:
        return dim_add(c, a, b);
    case SUB:
        return dim_sub(c, a, b);
    case MUL:
        return dim_mul(c, a, b);
    case DIV:
        return b == 0 ? new_symbol(c) : known ? a / b : dim_div(c, a, b);
    default:
        break;
    }
    if (!known)
        return f == EQUAL && a == b ? 1 : new_symbol(c);
    if (is_comparison(f))
        return holds(f, a<b, a == b, a> b);
    switch (f) {
    case POW:
        return int_power(c, a, b);
    case MOD:
        if (b == 0)
            return new_symbol(c);
        return attr_int(c, "fmod", 0) || a % b == 0 || (a < 0) == (b < 0) ? a % b : a % b + b;
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case AND:
        return a & b;
    case OR:
        return a | b;
    case XOR:
        return a ^ b;
    default:
        return new_symbol(c);
    }
}

static double real_binary(binary f, double a, double b)
{
    switch (f) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case DIV:
        return a / b;
    case POW:
        return pow(a, b);
    case MOD:
        return fmod(a, b);
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    default:
        return NAN;
    }
}

/* Result 0 = f(operand j, operand k), broadcast. */
static int eval_pair(call *c, const data *a, const bz_type *ta, const data *b, const bz_type *tb)
{
    binary f = (binary)c->op->arg;
    values v;
    bool real = a->r != NULL;
    if (!f || real != (b->r != NULL) || !eval_fits(ta, &c->out[0]) || !eval_fits(tb, &c->out[0]) ||
        (real && f >= AND && f <= XOR) || !eval_room(c, 0, real && !is_comparison(f), bz_type_elements(&c->out[0]), &v))
        return 0;
    for (int64_t k = 0; k < v.n; k++) {
        int64_t at_a = eval_broadcast_at(ta, &c->out[0], k), at_b = eval_broadcast_at(tb, &c->out[0], k);
        if (!real)
            v.i[k] = int_binary(c, f, a->i[at_a], b->i[at_b]);
        else if (is_comparison(f))
            v.i[k] = holds(f, a->r[at_a]<b->r[at_b], a->r[at_a] == b->r[at_b], a->r[at_a]> b->r[at_b]);
        else
            v.r[k] = to_precision(ta->dtype, real_binary(f, a->r[at_a], b->r[at_b]));
    }
    return 0;
}

static int eval_binary(call *c)
{
    const data *a = in_data(c, 0), *b = a ? in_data(c, 1) : NULL;
    if (!a || !b || bz_node_attr(c->node, "axis"))
        return 0;
    return eval_pair(c, a, &c->in[0], b, &c->in[1]);
}

static int eval_variadic(call *c)
{
    const data *all = in_data(c, 0);
    bz_type t = c->in[0];
    for (int k = 1; k < c->node->n_in && all; k++) {
        const data *next = in_data(c, k);
        if (!next)
            return 0;
        c->out_data[0] = NULL;
        bz_type out = c->out[0];
        bz_dim dims[BZ_MAX_RANK];
        int rank;
        if (broadcast(c, &t, &c->in[k], &rank, dims))
            return -1;
        set_out(c, 0, t.dtype, rank, dims);
        if (bz_type_elements(&c->out[0]) >= 0)
            eval_pair(c, all, &t, next, &c->in[k]);
        t = c->out[0];
        all = c->out_data[0];
        c->out[0] = out;
    }
    c->out_data[0] = all;
    return 0;
}

static int eval_where(call *c)
{
    const data *cond = in_data(c, 0), *a = cond ? in_data(c, 1) : NULL, *b = a ? in_data(c, 2) : NULL;
    values v;
    if (!b || !cond->i || (a->r != NULL) != (b->r != NULL) || !eval_fits(&c->in[0], &c->out[0]) ||
        !eval_fits(&c->in[1], &c->out[0]) || !eval_fits(&c->in[2], &c->out[0]) ||
        !eval_room(c, 0, a->r != NULL, bz_type_elements(&c->out[0]), &v))
        return 0;
    for (int64_t k = 0; k < v.n; k++) {
        int64_t yes = cond->i[eval_broadcast_at(&c->in[0], &c->out[0], k)];
        int64_t at_a = eval_broadcast_at(&c->in[1], &c->out[0], k), at_b = eval_broadcast_at(&c->in[2], &c->out[0], k);
        if (v.r && !bz_is_symbol(yes))
            v.r[k] = yes ? a->r[at_a] : b->r[at_b];
        else if (v.r)
            v.r[k] = NAN;
        else
            v.i[k] = bz_is_symbol(yes) ? a->i[at_a] == b->i[at_b] ? a->i[at_a] : new_symbol(c)
                     : yes ? a->i[at_a]
                                       : b->i[at_b];
    }
    return 0;
}

static int eval_cast(call *c)
{
    const data *x = in_data(c, 0);
    bz_dtype to = c->out[0].dtype;
    bool real = bz_dtype_is_float(to);
    values v;
    if (!x || c->in[0].kind != BZ_TYPE_TENSOR || (!real && !bz_dtype_is_int(to) && to != BZ_BOOL) ||
        !eval_room(c, 0, real, x->n, &v))
        return 0;
    for (int64_t k = 0; k < v.n; k++) {
        if (real && x->i && bz_is_symbol(x->i[k])) { /* a symbol has no place among reals */
            c->out_data[0] = NULL;
            return 0;
        }
        double d = x->r ? x->r[k] : (double)x->i[k];
        bool fits = d > -4e18 && d < 4e18;
        if (real)
            v.r[k] = to_precision(to, d);
        else if (to == BZ_BOOL && !(x->i && bz_is_symbol(x->i[k])))
            v.i[k] = d != 0;
        else
            v.i[k] = x->i ? x->i[k] : fits ? (int64_t)d : new_symbol(c);
    }
    return 0;
}

static int64_t i_neg(int64_t a)
{
    return -a;
}

static int64_t i_abs(int64_t a)
{
    return a < 0 ? -a : a;
}

static int64_t i_sign(int64_t a)
{
    return (a > 0) - (a < 0);
}

static int64_t i_not(int64_t a)
{
    return !a;
}

static double r_neg(double a)
{
    return -a;
}

static double r_reciprocal(double a)
{
    return 1 / a;
}

/* Before operator set 7 the second operand was laid over the first at `axis`, and only if asked. */
static int old_binary(call *c, const bz_type *a, const bz_type *b, bz_dtype result)
{
    if (!attr_int(c, "broadcast", 0) && a->rank != b->rank)
        return call_fail(c, "shapes do not fit: %d and %d dimensions without broadcast", a->rank, b->rank);
    if (b->rank > a->rank)
        return call_fail(c, "the second operand has more dimensions than the first");
    if (bz_node_attr(c->node, "axis"))
        param_int(c, "axis", attr_int(c, "axis", 0));
    return set_out(c, 0, result, a->rank, a->dims);
}

static int binary_shape(call *c, bz_dtype result, bool match)
{
    const bz_type *a = need_any(c, 0), *b = need_any(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    int rank;
    if (match && same_dtype(c, a, b))
        return -1;
    bz_dtype dtype = result ? result : a->dtype ? a->dtype : b->dtype;
    if (c->node->opset < 7 && !*c->node->domain)
        return old_binary(c, a, b, dtype);
    if (broadcast(c, a, b, &rank, dims))
        return -1;
    return set_out(c, 0, dtype, rank, dims);
}

static int shape_binary(call *c)
{
    return binary_shape(c, BZ_UNDEFINED, true);
}

static int shape_power(call *c) /* exponent and base may differ in type */
{
    const data *exponent = in_data(c, 1);
    if (exponent && exponent->n == 1 && (exponent->r || !bz_is_symbol(exponent->i[0])))
        param_real(c, "exponent", exponent->r ? exponent->r[0] : (double)exponent->i[0]);
    return binary_shape(c, BZ_UNDEFINED, false);
}

static int shape_compare(call *c)
{
    return binary_shape(c, BZ_BOOL, true);
}

static int shape_shift(call *c)
{
    param_text(c, "direction", attr_text(c, "direction", "LEFT"));
    return binary_shape(c, BZ_UNDEFINED, true);
}

static int shape_variadic(call *c)
{
    const bz_type *first = need_any(c, 0);
    bz_type all = *first;
    bz_dim dims[BZ_MAX_RANK];
    for (int k = 1; k < c->node->n_in; k++) {
        const bz_type *t = need_any(c, k);
        if (same_dtype(c, first, t) || broadcast(c, &all, t, &all.rank, dims))
            return -1;
        all.dims = bz_arena_dup(c->arena, dims, (size_t)all.rank * sizeof *dims);
    }
    set_out(c, 0, all.dtype, all.rank, all.dims);
    if (c->node->n_in == 1)
        view_if_whole(c);
    return 0;
}

static void cost_variadic(call *c)
{
    c->flops = count_mul(elements(&c->out[0]), c->node->n_in - 1);
}

static int shape_where(call *c)
{
    const bz_type *cond = need_any(c, 0), *a = need_any(c, 1), *b = need_any(c, 2);
    bz_dim dims[BZ_MAX_RANK], all[BZ_MAX_RANK];
    bz_type t = {.kind = BZ_TYPE_TENSOR, .dims = dims};
    int rank;
    if (same_dtype(c, a, b) || broadcast(c, cond, a, &t.rank, dims) || broadcast(c, &t, b, &rank, all))
        return -1;
    if (cond->dtype && cond->dtype != BZ_BOOL)
        return call_fail(c, "its condition is %s, not bool", bz_dtype_name(cond->dtype));
    return set_out(c, 0, a->dtype ? a->dtype : b->dtype, rank, all);
}

static int shape_prelu(call *c)
{
    const bz_type *x = need_any(c, 0), *slope = need_any(c, 1);
    same_dtype(c, x, slope);
    return set_out(c, 0, x->dtype, x->rank, x->dims);
}

/* As x, but of another type. */
static int set_as(call *c, const bz_type *x, bz_dtype dtype)
{
    if (!x)
        return call_fail(c, "operand 0 is missing");
    bz_type t = *x;
    t.dtype = dtype;
    return set_type(c, 0, &t);
}

static int shape_bool(call *c)
{
    return set_as(c, in_type(c, 0), BZ_BOOL);
}

/* The parameters of activations, and what they are when the node does not say. */
static const struct {
    const char *op, *name;
    double otherwise;
} ACTIVATION[] = {
    {"LeakyRelu", "alpha", 0.01},
    {"Elu", "alpha", 1},
    {"Celu", "alpha", 1},
    {"Selu", "alpha", 1.67326319217681884765625},
    {"Selu", "gamma", 1.05070102214813232421875},
    {"HardSigmoid", "alpha", 0.2},
    {"HardSigmoid", "beta", 0.5},
    {"ThresholdedRelu", "alpha", 1},
    {"Shrink", "lambd", 0.5},
    {"Shrink", "bias", 0},
    {"Swish", "alpha", 1},
};

static int shape_activation(call *c)
{
    for (size_t i = 0; i < sizeof ACTIVATION / sizeof *ACTIVATION; i++)
        if (!strcmp(ACTIVATION[i].op, c->node->op))
            param_real(c, ACTIVATION[i].name, attr_float(c, ACTIVATION[i].name, ACTIVATION[i].otherwise));
    return rule_same(c);
}

static int shape_gelu(call *c)
{
    param_text(c, "approximate", attr_text(c, "approximate", "none"));
    return rule_same(c);
}

/* Limits are attributes before operator set 11, then operands; an open side is not named. */
static void clip_limit(call *c, const char *name, int k)
{
    const bz_attr *a = bz_node_attr(c->node, name);
    const data *d = in_data(c, k);
    if (a && a->kind == BZ_ATTR_FLOAT)
        param_real(c, name, (double)a->f);
    else if (d && d->n == 1)
        param_real(c, name, d->r ? d->r[0] : (double)d->i[0]);
    else if (in_type(c, k))
        param_text(c, name, "?");
}

static int shape_clip(call *c)
{
    clip_limit(c, "min", 1);
    clip_limit(c, "max", 2);
    if (rule_same(c))
        return -1;
    if (!c->n_params)
        view_if_whole(c);
    return 0;
}

static int cast_to(call *c, bz_dtype to)
{
    const bz_type *x = in_type(c, 0);
    if (!x)
        return set_as(c, x, to);
    if (to <= BZ_UNDEFINED || to >= BZ_N_DTYPES)
        return call_fail(c, "it casts to a type that does not exist");
    param_text(c, "from", bz_dtype_name(x->dtype));
    param_text(c, "to", bz_dtype_name(to));
    set_as(c, x, to);
    view_if_whole(c);
    return 0;
}

/* Operator set 1 wrote the type as a word. */
static bz_dtype dtype_of_word(const char *word)
{
    static const struct {
        const char *word;
        bz_dtype dtype;
    } WORDS[] = {
        {"FLOAT", BZ_F32},  {"UINT8", BZ_U8},   {"INT8", BZ_I8},       {"UINT16", BZ_U16}, {"INT16", BZ_I16},
        {"INT32", BZ_I32},  {"INT64", BZ_I64},  {"STRING", BZ_STRING}, {"BOOL", BZ_BOOL},  {"FLOAT16", BZ_F16},
        {"DOUBLE", BZ_F64}, {"UINT32", BZ_U32}, {"UINT64", BZ_U64},
    };
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strcmp(word, WORDS[i].word))
            return WORDS[i].dtype;
    return BZ_UNDEFINED;
}

static int shape_cast(call *c)
{
    int64_t to = attr_int(c, "to", BZ_UNDEFINED);
    if (!to)
        to = dtype_of_word(attr_text(c, "to", ""));
    return cast_to(c, to < 0 || to >= BZ_N_DTYPES ? BZ_UNDEFINED : (bz_dtype)to);
}

static int shape_cast_like(call *c)
{
    const bz_type *like = in_type(c, 1);
    return like && like->dtype ? cast_to(c, like->dtype) : set_as(c, &c->in[0], BZ_UNDEFINED);
}

/* The same bits under another type: nothing is moved. */
static int shape_bit_cast(call *c)
{
    int64_t to = attr_int(c, "to", BZ_UNDEFINED);
    const bz_type *x = in_type(c, 0);
    if (to <= 0 || to >= BZ_N_DTYPES)
        return call_fail(c, "attribute to is %lld, which is no data type", (long long)to);
    if (x && x->dtype && bz_dtype_bits(x->dtype) != bz_dtype_bits((bz_dtype)to))
        return call_fail(c, "%s and %s have not the same number of bits", bz_dtype_name(x->dtype),
                         bz_dtype_name((bz_dtype)to));
    return cast_to(c, (bz_dtype)to);
}

/* swish(a) times b, both of one shape. */
static int shape_swiglu(call *c)
{
    const bz_type *a = need_any(c, 0), *b = need(c, 1, a->rank);
    same_dtype(c, a, b);
    for (int i = 0; i < a->rank; i++)
        if (!dims_fit(a->dims[i], b->dims[i]))
            return call_fail(c, "its operands differ in dimension %d: %lld and %lld", i, (long long)a->dims[i],
                             (long long)b->dims[i]);
    param_real(c, "alpha", attr_float(c, "alpha", 1));
    return set_type(c, 0, a);
}

#define UNARY(op, kind, n, f, g)                                                                                       \
    {                                                                                                                  \
        op, NULL, kind, BZ_COMPUTE, rule_same, eval_unary, NULL, n, OP_RANKLESS, "x", 0, f, g                          \
    }
#define ACTIVATION_ROW(op, kind, n, shape)                                                                             \
    {                                                                                                                  \
        op, NULL, kind, BZ_COMPUTE, shape, NULL, NULL, n, OP_RANKLESS, "x", 0, NULL, NULL                              \
    }
#define BINARY(op, kind, shape, f)                                                                                     \
    {                                                                                                                  \
        op, NULL, kind, BZ_COMPUTE, shape, eval_binary, NULL, 1, (shape) == shape_compare ? 0 : OP_KEEPS, "a b", f,    \
            NULL, NULL                                                                                                 \
    }
#define VARIADIC(op, kind, f)                                                                                          \
    {                                                                                                                  \
        op, NULL, kind, BZ_COMPUTE, shape_variadic, (f) ? eval_variadic : NULL, cost_variadic, 0, OP_KEEPS, "x...", f, \
            NULL, NULL                                                                                                 \
    }

static const op ROWS[] = {
    UNARY("Abs", "abs", 1, fabs, i_abs),
    UNARY("Acos", "acos", 1, acos, NULL),
    UNARY("Acosh", "acosh", 1, acosh, NULL),
    UNARY("Asin", "asin", 1, asin, NULL),
    UNARY("Asinh", "asinh", 1, asinh, NULL),
    UNARY("Atan", "atan", 1, atan, NULL),
    UNARY("Atanh", "atanh", 1, atanh, NULL),
    UNARY("BitwiseNot", "bitwisenot", 1, NULL, NULL),
    UNARY("Ceil", "ceil", 1, ceil, NULL),
    UNARY("Cos", "cos", 1, cos, NULL),
    UNARY("Cosh", "cosh", 1, cosh, NULL),
    UNARY("Erf", "erf", 1, erf, NULL),
    UNARY("Exp", "exp", 1, exp, NULL),
    UNARY("Floor", "floor", 1, floor, NULL),
    UNARY("Log", "log", 1, log, NULL),
    UNARY("Neg", "neg", 1, r_neg, i_neg),
    UNARY("Not", "not", 1, NULL, i_not),
    UNARY("Reciprocal", "reciprocal", 1, r_reciprocal, NULL),
    UNARY("Round", "round", 1, nearbyint, NULL),
    UNARY("Sign", "sign", 1, NULL, i_sign),
    UNARY("Sin", "sin", 1, sin, NULL),
    UNARY("Sinh", "sinh", 1, sinh, NULL),
    UNARY("Sqrt", "sqrt", 1, sqrt, NULL),
    UNARY("Tan", "tan", 1, tan, NULL),

    ACTIVATION_ROW("Relu", "relu", 1, rule_same),
    ACTIVATION_ROW("Sigmoid", "sigmoid", 4, rule_same),
    ACTIVATION_ROW("Tanh", "tanh", 1, rule_same),
    ACTIVATION_ROW("Softplus", "softplus", 3, rule_same),
    ACTIVATION_ROW("Softsign", "softsign", 3, rule_same),
    ACTIVATION_ROW("HardSwish", "hardswish", 4, rule_same),
    ACTIVATION_ROW("Mish", "mish", 5, rule_same),
    ACTIVATION_ROW("LeakyRelu", "leakyrelu", 2, shape_activation),
    ACTIVATION_ROW("Elu", "elu", 4, shape_activation),
    ACTIVATION_ROW("Celu", "celu", 5, shape_activation),
    ACTIVATION_ROW("Selu", "selu", 5, shape_activation),
    ACTIVATION_ROW("HardSigmoid", "hardsigmoid", 4, shape_activation),
    ACTIVATION_ROW("ThresholdedRelu", "thresholdedrelu", 1, shape_activation),
    ACTIVATION_ROW("Shrink", "shrink", 2, shape_activation),
    ACTIVATION_ROW("Swish", "swish", 5, shape_activation),
    ACTIVATION_ROW("Gelu", "gelu", 5, shape_gelu),
    {"Gelu", "com.microsoft", "gelu", BZ_COMPUTE, shape_gelu, NULL, NULL, 5, 0, "x", 0, NULL, NULL},
    {"Clip", NULL, "clip", BZ_COMPUTE, shape_clip, NULL, NULL, 2, OP_RANKLESS, "x - -", 0, NULL, NULL},
    {"PRelu", NULL, "prelu", BZ_COMPUTE, shape_prelu, NULL, NULL, 2, OP_KEEPS, "x slope", 0, NULL, NULL},
    {"IsInf", NULL, "isinf", BZ_COMPUTE, shape_bool, NULL, NULL, 1, OP_RANKLESS, "x", 0, NULL, NULL},
    {"IsNaN", NULL, "isnan", BZ_COMPUTE, shape_bool, NULL, NULL, 1, OP_RANKLESS, "x", 0, NULL, NULL},

    BINARY("Add", "add", shape_binary, ADD),
    BINARY("Sub", "sub", shape_binary, SUB),
    BINARY("Mul", "mul", shape_binary, MUL),
    BINARY("Div", "div", shape_binary, DIV),
    BINARY("Pow", "pow", shape_power, POW),
    BINARY("Mod", "mod", shape_binary, MOD),
    BINARY("And", "and", shape_compare, AND),
    BINARY("Or", "or", shape_compare, OR),
    BINARY("Xor", "xor", shape_compare, XOR),
    BINARY("Equal", "equal", shape_compare, EQUAL),
    BINARY("Less", "less", shape_compare, LESS),
    BINARY("Greater", "greater", shape_compare, MORE),
    BINARY("LessOrEqual", "lessequal", shape_compare, AT_MOST),
    BINARY("GreaterOrEqual", "greaterequal", shape_compare, AT_LEAST),
    BINARY("BitShift", "bitshift", shape_shift, 0),
    BINARY("BitwiseAnd", "bitwiseand", shape_binary, AND),
    BINARY("BitwiseOr", "bitwiseor", shape_binary, OR),
    BINARY("BitwiseXor", "bitwisexor", shape_binary, XOR),

    VARIADIC("Max", "max", MAX),
    VARIADIC("Min", "min", MIN),
    VARIADIC("Sum", "sum", ADD),
    VARIADIC("Mean", "mean", 0),

    {"Where", NULL, "where", BZ_COMPUTE, shape_where, eval_where, NULL, 1, OP_KEEPS_LAST, "cond a b", 0, NULL, NULL},
    {"Cast", NULL, "cast", BZ_MEMORY, shape_cast, eval_cast, NULL, 0, OP_RANKLESS, "x", 0, NULL, NULL},
    {"BitCast", NULL, "bitcast", BZ_VIEW, shape_bit_cast, NULL, NULL, 0, OP_RANKLESS, "x", 0, NULL, NULL},
    {"SwiGLU", NULL, "swiglu", BZ_COMPUTE, shape_swiglu, NULL, NULL, 6, OP_KEEPS, "a b", 0, NULL, NULL},
    {"CastLike", NULL, "cast", BZ_MEMORY, shape_cast_like, eval_cast, NULL, 0, OP_RANKLESS, "x -", 0, NULL, NULL},
};

const op_table ops_elementwise = OP_TABLE(ROWS);
