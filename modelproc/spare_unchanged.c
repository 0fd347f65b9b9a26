/* Layers that give back a value that is there before they run: what they do to it changes nothing. A row of GIVES says when, by kind.
 *
 * The results are the same numbers, but for what runtimes do not keep either: -0 + 0 is 0, and nothing is promised of what is no number. ONNX Runtime
 * leaves out x + 0, x - 0, x * 1, x / 1 and casts there and back; XLA simplifies limits that values keep by themselves, steps that undo
 * each other, and parts that are put together again. */
#include "modelproc/spare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE_OPERANDS = 64 }; /* that are looked at before a limit, to know that values keep it by themselves */

/* What result k of a layer is; BZ_NO_VALUE where it is a value of its own. */
typedef bz_value_id gives(const spare_search *s, const bz_layer *l, int k);

bz_value_id spare_operand(const spare_search *s, const bz_layer *l, int k)
{
    return k < l->n_in && l->node->in[k] >= 0 ? s->same[l->node->in[k]] : BZ_NO_VALUE;
}

static bool same_type(const bz_type *a, const bz_type *b)
{
    return a->kind == BZ_TYPE_TENSOR && b->kind == BZ_TYPE_TENSOR && a->dtype == b->dtype && a->rank >= 0 &&
           a->rank == b->rank && (!a->rank || !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims));
}

/* Operand j, if result k has its type. */
static bz_value_id whole_operand(const spare_search *s, const bz_layer *l, int j, int k)
{
    return j < l->n_in && same_type(&l->in[j], &l->out[k]) ? spare_operand(s, l, j) : BZ_NO_VALUE;
}

/* The layer that makes operand k, if it is of that kind; NULL. */
static const bz_layer *maker(const spare_search *s, const bz_layer *l, int k, const char *kind)
{
    bz_value_id v = spare_operand(s, l, k);
    const bz_layer *by = v >= 0 && s->maker[v] ? &s->l->layer[s->maker[v] - 1] : NULL;
    return by && !strcmp(by->kind, kind) ? by : NULL;
}

bool spare_number(const spare_search *s, const bz_layer *l, int k, double *number)
{
    double x[SPARE_FEW];
    int64_t i[SPARE_FEW];
    bz_error err;
    if (k >= l->n_in || !l->in_constant[k])
        return false;
    const bz_tensor *t = s->l->model->values[l->node->in[k]].init;
    const bz_layer *by = t ? NULL : maker(s, l, k, "constant");
    const bz_attr *a = by ? bz_node_attr(by->node, "value") : NULL;
    t = a && a->kind == BZ_ATTR_TENSOR ? a->tensor : t;
    if (!t || t->n < 1 || t->n > SPARE_FEW)
        return false;
    bool real = bz_dtype_is_float(t->dtype);
    if (real ? bz_tensor_reals(s->l->model, t, x, &err) : bz_tensor_ints(s->l->model, t, i, &err))
        return false;
    for (int64_t n = 0; n < t->n; n++) {
        x[n] = real ? x[n] : (double)i[n];
        if (x[n] < x[0] || x[n] > x[0] || isnan(x[n]))
            return false;
    }
    *number = x[0];
    return true;
}

typedef struct {
    double low, high;
    bool whole; /* numbers without a fraction */
} range;

static const range ANY = {-INFINITY, INFINITY, false};

/* What kinds make of whatever they read. */
static const struct {
    const char *kinds;
    range range;
} MAKES[] = {
    {"sigmoid softmax hardsigmoid", {0, 1, false}},
    {"tanh erf sin cos", {-1, 1, false}},
    {"sign", {-1, 1, true}},
    {"exp sqrt softplus reducel1 reducel2 reducesumsquare", {0, INFINITY, false}},
};

/* Each element of the result is one of an operand's. */
static const char
    TAKES[] = "transpose slice split concat maxpool globalmaxpool gather expand tile max min where reducemax reducemin",
    WHOLES[] = "floor ceil round",
    SUMS[] = "add sum mul mean avgpool globalavgpool reducesum reducemean"; /* of what is not negative, neither */

static range range_of(const spare_search *s, bz_value_id v, int *budget);

/* What holds of all elements of all operands. Each takes one of the budget: concatenations may have many, and read each other. */
static range range_of_operands(const spare_search *s, const bz_layer *l, int *budget)
{
    bool all = bz_has_word("concat max min where add sum mul mean", l->kind);
    range r = {INFINITY, -INFINITY, true};
    for (int k = !strcmp(l->kind, "where"); k < l->n_in && (all || !k); k++) {
        double number;
        if (--*budget < 0)
            return ANY;
        range o = spare_number(s, l, k, &number) ? (range){number, number, floor(number) >= number}
                                                 : range_of(s, spare_operand(s, l, k), budget);
        r = (range){fmin(r.low, o.low), fmax(r.high, o.high), r.whole && o.whole};
    }
    return r.low <= r.high ? r : ANY;
}

static double limit(const bz_layer *l, const char *name, double otherwise)
{
    const bz_param *p = bz_layer_param(l, name);
    char *end = NULL;
    double number = p && p->text ? strtod(p->text, &end) : otherwise;
    return p && (!end || end == p->text || *end) ? NAN : number;
}

/* What a Relu or a Clip cuts off. NaN: a limit is not known. */
static range limits_of(const bz_layer *l)
{
    if (!strcmp(l->kind, "relu"))
        return (range){0, INFINITY, false};
    return (range){limit(l, "min", -INFINITY), limit(l, "max", INFINITY), false};
}

static range range_of(const spare_search *s, bz_value_id v, int *budget)
{
    const bz_layer *l = v >= 0 && s->maker[v] ? &s->l->layer[s->maker[v] - 1] : NULL;
    if (!l || spare_kind_of(s, l)->product)
        return ANY;
    for (size_t i = 0; i < sizeof MAKES / sizeof *MAKES; i++)
        if (bz_has_word(MAKES[i].kinds, l->kind))
            return MAKES[i].range;
    if (spare_kind_of(s, l)->limits) {
        range r = range_of_operands(s, l, budget), cut = limits_of(l);
        bool known = cut.low <= cut.high;
        return known ? (range){fmin(fmax(r.low, cut.low), cut.high), fmin(fmax(r.high, cut.low), cut.high), false}
                     : ANY;
    }
    if (!strcmp(l->kind, "abs"))
        return (range){0, INFINITY, range_of_operands(s, l, budget).whole};
    if (bz_has_word(WHOLES, l->kind))
        return (range){-INFINITY, INFINITY, true};
    if (bz_has_word(SUMS, l->kind))
        return range_of_operands(s, l, budget).low >= 0 ? (range){0, INFINITY, false} : ANY;
    return l->class == BZ_VIEW || bz_has_word(TAKES, l->kind) ? range_of_operands(s, l, budget) : ANY;
}

static range range_of_operand(const spare_search *s, const bz_layer *l)
{
    int budget = RANGE_OPERANDS;
    return range_of(s, spare_operand(s, l, 0), &budget);
}

/* x + 0; with zeros of another shape than x's it may be an expansion. */
static bz_value_id by_neutral(const spare_search *s, const bz_layer *l, int k)
{
    static const struct {
        const char *kind;
        double number;
        bool commutes;
    } NEUTRAL[] = {{"add", 0, true},  {"sub", 0, false}, {"mul", 1, true}, {"div", 1, false},
                   {"pow", 1, false}, {"or", 0, true},   {"and", 1, true}, {"xor", 0, true}};
    double number;
    for (size_t i = 0; i < sizeof NEUTRAL / sizeof *NEUTRAL; i++)
        for (int j = 0; j < 1 + NEUTRAL[i].commutes && !strcmp(l->kind, NEUTRAL[i].kind); j++)
            if (spare_number(s, l, 1 - j, &number) && number >= NEUTRAL[i].number && number <= NEUTRAL[i].number)
                return whole_operand(s, l, j, k);
    return BZ_NO_VALUE;
}

/* max(x, x); of Where the choices. */
static bz_value_id of_equals(const spare_search *s, const bz_layer *l, int k)
{
    int first = !strcmp(l->kind, "where");
    for (int j = first + 1; j < l->n_in; j++)
        if (spare_operand(s, l, j) != spare_operand(s, l, first))
            return BZ_NO_VALUE;
    return whole_operand(s, l, first, k);
}

/* -(-x) */
static bz_value_id of_inverse(const spare_search *s, const bz_layer *l, int k)
{
    const bz_layer *by = maker(s, l, 0, l->kind);
    (void)k;
    return by ? spare_operand(s, by, 0) : BZ_NO_VALUE;
}

/* Two transposes that together leave every axis where it was. */
static bz_value_id turned_back(const spare_search *s, const bz_layer *l, int k)
{
    const bz_layer *by = maker(s, l, 0, "transpose");
    const bz_param *second = bz_layer_param(l, "perm"), *first = by ? bz_layer_param(by, "perm") : NULL;
    (void)k;
    if (!first || !second || first->n != second->n || !l->priced)
        return BZ_NO_VALUE;
    for (int i = 0; i < first->n; i++)
        if (first->v[second->v[i]] != i)
            return BZ_NO_VALUE;
    return spare_operand(s, by, 0);
}

/* To a type that holds every number of the first, and back. */
static bz_value_id cast_back(const spare_search *s, const bz_layer *l, int k)
{
    static const struct {
        bz_dtype narrow;
        const char *wide;
    } HOLDS[] = {{BZ_F16, "f32 f64"},
                 {BZ_BF16, "f32 f64"},
                 {BZ_F32, "f64"},
                 {BZ_I8, "i16 i32 i64 f16 bf16 f32 f64"},
                 {BZ_U8, "i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64"},
                 {BZ_I16, "i32 i64 f32 f64"},
                 {BZ_U16, "i32 u32 i64 u64 f32 f64"},
                 {BZ_I32, "i64 f64"},
                 {BZ_U32, "i64 u64 f64"},
                 {BZ_BOOL, "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64"}};
    const bz_layer *by = maker(s, l, 0, "cast");
    if (!by || !same_type(&by->in[0], &l->out[k]))
        return BZ_NO_VALUE;
    for (size_t i = 0; i < sizeof HOLDS / sizeof *HOLDS; i++)
        if (HOLDS[i].narrow == l->out[k].dtype && bz_has_word(HOLDS[i].wide, bz_dtype_name(by->out[0].dtype)))
            return spare_operand(s, by, 0);
    return BZ_NO_VALUE;
}

static bz_value_id of_whole(const spare_search *s, const bz_layer *l, int k)
{
    return range_of_operand(s, l).whole ? whole_operand(s, l, 0, k) : BZ_NO_VALUE;
}

static bz_value_id of_positive(const spare_search *s, const bz_layer *l, int k)
{
    return range_of_operand(s, l).low >= 0 ? whole_operand(s, l, 0, k) : BZ_NO_VALUE;
}

static bz_value_id within_limits(const spare_search *s, const bz_layer *l, int k)
{
    range r = range_of_operand(s, l), limits = limits_of(l);
    return r.low >= limits.low && r.high <= limits.high ? whole_operand(s, l, 0, k) : BZ_NO_VALUE;
}

static bool is_all(const bz_param *p, int64_t number)
{
    for (int i = 0; p && i < p->n; i++)
        if (p->v[i] != number)
            return false;
    return p;
}

/* Windows of one element, each behind the other. */
static bz_value_id by_window_of_one(const spare_search *s, const bz_layer *l, int k)
{
    bool one = is_all(bz_layer_param(l, "kernel"), 1) && is_all(bz_layer_param(l, "stride"), 1) &&
               is_all(bz_layer_param(l, "pad"), 0);
    return one && !k ? whole_operand(s, l, 0, 0) : BZ_NO_VALUE;
}

/* These change the shape or nothing. */
static bz_value_id of_its_shape(const spare_search *s, const bz_layer *l, int k)
{
    return whole_operand(s, l, 0, k);
}

/* All parts of a Split, in their order. */
static bz_value_id put_together(const spare_search *s, const bz_layer *l, int k)
{
    const bz_layer *by = maker(s, l, 0, "split");
    if (!by || by->n_out != l->n_in || bz_layer_int(by, "axis", 0) != bz_layer_int(l, "axis", 0) ||
        !same_type(&by->in[0], &l->out[k]))
        return BZ_NO_VALUE;
    for (int j = 0; j < l->n_in; j++)
        if (spare_operand(s, l, j) != by->node->out[j])
            return BZ_NO_VALUE;
    return spare_operand(s, by, 0);
}

/* What a Concat has put together, at the same places. */
static bz_value_id taken_apart(const spare_search *s, const bz_layer *l, int k)
{
    const bz_layer *by = maker(s, l, 0, "concat");
    if (!by || by->n_in != l->n_out || bz_layer_int(by, "axis", 0) != bz_layer_int(l, "axis", 0))
        return BZ_NO_VALUE;
    for (int j = 0; j < l->n_out; j++)
        if (!same_type(&by->in[j], &l->out[j]))
            return BZ_NO_VALUE;
    return spare_operand(s, by, k);
}

static const struct {
    const char *kinds;
    gives *rule;
    bz_spare why;
} GIVES[] = {
    {"transpose", turned_back, BZ_TURNED},
    {"add sub mul div pow and or xor", by_neutral, BZ_UNCHANGED},
    {"max min and or mean where", of_equals, BZ_UNCHANGED},
    {"neg not bitwisenot", of_inverse, BZ_UNCHANGED},
    {"cast", cast_back, BZ_UNCHANGED},
    {WHOLES, of_whole, BZ_UNCHANGED},
    {"abs leakyrelu elu celu prelu", of_positive, BZ_UNCHANGED},
    {"relu clip", within_limits, BZ_UNCHANGED},
    {"maxpool avgpool", by_window_of_one, BZ_UNCHANGED},
    {"globalmaxpool globalavgpool depthtospace spacetodepth", of_its_shape, BZ_UNCHANGED},
    {"concat", put_together, BZ_UNCHANGED},
    {"split", taken_apart, BZ_UNCHANGED},
};

enum { RULES = sizeof GIVES / sizeof *GIVES };

int spare_rule_of(const char *kind)
{
    int i = 0;
    while (i < RULES && !bz_has_word(GIVES[i].kinds, kind))
        i++;
    return i;
}

bz_spare spare_unchanged(const spare_search *s, const bz_layer *l, bz_value_id *result)
{
    if (!l->n_in || !l->n_out || l->n_out > SPARE_FEW || l->class == BZ_CONSTANT)
        return BZ_RUNS;
    if (l->class == BZ_VIEW) {
        result[0] = l->n_out == 1 ? whole_operand(s, l, 0, 0) : BZ_NO_VALUE;
        return result[0] >= 0 ? BZ_UNCHANGED : BZ_RUNS;
    }
    int first = spare_kind_of(s, l)->gives;
    for (int i = first; i < RULES; i++) {
        int k = 0;
        if (i > first && !bz_has_word(GIVES[i].kinds, l->kind))
            continue;
        while (k < l->n_out && (l->node->out[k] < 0 || (result[k] = GIVES[i].rule(s, l, k)) >= 0))
            k++;
        if (k == l->n_out)
            return GIVES[i].why;
    }
    return BZ_RUNS;
}
