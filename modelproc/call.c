/* What operator rules work with: operands, attributes, results, parameters. */
#include "modelproc/infer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int call_fail(call *c, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    if (c->failed)
        return -1;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return bz_fail(c->err, BZ_BAD_INPUT, "node '%s' (%s): %s", c->node->name, c->node->op, text);
}

/* 0 where operand k is a tensor of that rank (-1: of any). */
static int check_tensor(call *c, int k, int rank)
{
    const bz_type *t = in_type(c, k);
    if (!t)
        return call_fail(c, "operand %d is missing", k);
    if (t->kind != BZ_TYPE_TENSOR || t->rank < 0)
        return call_fail(c, "operand %d must be a tensor of known rank", k);
    if (rank >= 0 && t->rank != rank)
        return call_fail(c, "operand %d must have %d dimensions, not %d", k, rank, t->rank);
    return 0;
}

const bz_type *need(call *c, int k, int rank)
{
    if (!check_tensor(c, k, rank))
        return &c->in[k];
    c->failed = true;
    bz_type *any = BZ_NEW(c->arena, bz_type, 1);
    bz_dim *ones = new_dims(c, BZ_MAX_RANK);
    for (int i = 0; i < BZ_MAX_RANK; i++)
        ones[i] = 1;
    *any = (bz_type){.kind = BZ_TYPE_TENSOR, .rank = rank < 0 ? 0 : rank, .dims = ones};
    if (k < c->node->n_in)
        c->in[k] = *any;
    return any;
}

int same_dtype(call *c, const bz_type *a, const bz_type *b)
{
    if (!a || !b || a->dtype == b->dtype || !a->dtype || !b->dtype)
        return 0;
    call_fail(c, "its operands have different types: %s and %s", bz_dtype_name(a->dtype), bz_dtype_name(b->dtype));
    c->failed = true;
    return -1;
}

/* Tensors are read when first asked for, and only small ones. Numbers below the range of
 * symbols (exporters write "from the very start" as INT64_MIN) are lifted to its edge. */
static const data *read_tensor(call *c, const bz_tensor *t)
{
    bool real = bz_dtype_is_float(t->dtype);
    if (t->n > (real ? MAX_REALS : MAX_INTS))
        return &NO_DATA;
    data *d = BZ_NEW(c->arena, data, 1);
    d->n = t->n;
    if (real) {
        double *r = BZ_NEW(c->arena, double, t->n);
        d->r = r;
        return bz_tensor_reals(c->inf->model, t, r, NULL) ? &NO_DATA : d;
    }
    int64_t *v = BZ_NEW(c->arena, int64_t, t->n);
    if (bz_tensor_ints(c->inf->model, t, v, NULL))
        return &NO_DATA;
    for (int64_t k = 0; k < t->n; k++)
        v[k] = bz_is_symbol(v[k]) ? BZ_SYMBOL_END : v[k];
    d->i = v;
    return d;
}

/* Constants mostly share a few tensors. */
const data *tensor_data(call *c, const bz_tensor *t)
{
    tensor_values *known = &c->inf->tensors[((uintptr_t)t / sizeof *t) % N_TENSORS];
    if (known->tensor != t)
        *known = (tensor_values){t, read_tensor(c, t)};
    return known->values == &NO_DATA ? NULL : known->values;
}

/* A tensor without elements holds no secrets, whoever makes it. */
static const data *empty_data(const bz_type *t)
{
    static const int64_t NO_INTS[1];
    static const double NO_REALS[1];
    static const data INTS = {.i = NO_INTS}, REALS = {.r = NO_REALS};
    return bz_type_elements(t) != 0 ? NULL : bz_dtype_is_float(t->dtype) ? &REALS : &INTS;
}

const data *value_data(call *c, bz_value_id v)
{
    if (v < 0)
        return NULL;
    const bz_tensor *init = c->inf->model->values[v].init;
    if (!c->inf->values[v] && init)
        c->inf->values[v] = read_tensor(c, init);
    const data *d = c->inf->values[v];
    return d == &NO_DATA ? NULL : d ? d : empty_data(&c->inf->types[v]);
}

const data *in_data(call *c, int k)
{
    return k < c->node->n_in ? value_data(c, c->node->in[k]) : NULL;
}

const int64_t *in_ints(call *c, int k, int64_t *n)
{
    const data *d = in_data(c, k);
    *n = d && d->i ? d->n : 0;
    return d ? d->i : NULL;
}

const bz_type *value_type(const call *c, bz_value_id v)
{
    static const bz_type NONE = {.rank = -1};
    return v < 0 ? &NONE : &c->inf->types[v];
}

bz_model *call_model(const call *c)
{
    return c->inf->model;
}

int64_t call_trips(const call *c)
{
    return c->inf->options->trips;
}

int64_t attr_int(const call *c, const char *name, int64_t otherwise)
{
    const bz_attr *a = bz_node_attr(c->node, name);
    return a && a->kind == BZ_ATTR_INT ? a->i : otherwise;
}

double attr_float(const call *c, const char *name, double otherwise)
{
    const bz_attr *a = bz_node_attr(c->node, name);
    return a && a->kind == BZ_ATTR_FLOAT ? (double)a->f : otherwise;
}

const char *attr_text(const call *c, const char *name, const char *otherwise)
{
    const bz_attr *a = bz_node_attr(c->node, name);
    return a && a->kind == BZ_ATTR_STRING ? a->s.data : otherwise;
}

const int64_t *attr_ints(const call *c, const char *name, int *n)
{
    const bz_attr *a = bz_node_attr(c->node, name);
    *n = a && a->kind == BZ_ATTR_INTS ? a->n : 0;
    return *n ? a->ints : NULL;
}

int fix_axis(call *c, int64_t axis, int rank, int *fixed)
{
    if (axis < -rank || axis >= rank)
        return call_fail(c, "axis %lld is outside of %d dimensions", (long long)axis, rank);
    *fixed = (int)(axis < 0 ? axis + rank : axis);
    return 0;
}

int axes_of(call *c, int k, const char *attr, int rank, int *axes)
{
    int n_attr = 0;
    int64_t n = 0;
    const int64_t *v;
    if (k >= 0 && in_type(c, k)) {
        v = in_ints(c, k, &n);
        if (!v)
            return -2;
    } else {
        v = attr_ints(c, attr, &n_attr);
        n = n_attr;
    }
    if (n > BZ_MAX_RANK)
        return call_fail(c, "it has more axes than dimensions");
    uint64_t seen = 0;
    for (int64_t a = 0; a < n; a++) {
        if (bz_is_symbol(v[a]))
            return -2;
        if (fix_axis(c, v[a], rank, &axes[a]))
            return -1;
        if (seen >> axes[a] & 1)
            return call_fail(c, "axis %d is named twice", axes[a]);
        seen |= (uint64_t)1 << axes[a];
    }
    return (int)n;
}

bz_dim *new_dims(call *c, int rank)
{
    return BZ_NEW(c->arena, bz_dim, rank);
}

int set_type(call *c, int k, const bz_type *t)
{
    if (k < c->node->n_out && t)
        c->out[k] = *t;
    return 0;
}

int set_out(call *c, int k, bz_dtype dtype, int rank, const bz_dim *dims)
{
    const bz_dim *copy = bz_arena_dup(c->arena, dims, (size_t)rank * sizeof *dims);
    return set_type(c, k, &(bz_type){.kind = BZ_TYPE_TENSOR, .dtype = dtype, .rank = rank, .dims = copy});
}

int set_unknown(call *c, int k, bz_dtype dtype)
{
    return set_type(c, k, &(bz_type){.kind = BZ_TYPE_TENSOR, .dtype = dtype, .rank = -1});
}

void set_ints(call *c, int k, const int64_t *v, int64_t n)
{
    if (k >= c->node->n_out || n > MAX_INTS)
        return;
    data *d = BZ_NEW(c->arena, data, 1);
    d->n = n;
    d->i = bz_arena_dup(c->arena, v, (size_t)n * sizeof *v);
    c->out_data[k] = d;
}

void set_reals(call *c, int k, const double *v, int64_t n)
{
    if (k >= c->node->n_out || n > MAX_REALS)
        return;
    data *d = BZ_NEW(c->arena, data, 1);
    d->n = n;
    d->r = bz_arena_dup(c->arena, v, (size_t)n * sizeof *v);
    c->out_data[k] = d;
}

bz_dim new_symbol(call *c)
{
    return bz_model_symbol(c->inf->model);
}

void view_if_whole(call *c)
{
    const bz_type *x = in_type(c, 0);
    int64_t n = x ? bz_type_elements(x) : -1;
    c->view = n > 0 && c->node->n_out == 1 && c->out[0].dtype == x->dtype && bz_type_elements(&c->out[0]) == n;
}

int rule_same(call *c)
{
    const bz_type *t = in_type(c, 0);
    if (!t)
        return call_fail(c, "operand 0 is missing");
    for (int k = 0; k < c->node->n_out; k++)
        set_type(c, k, t);
    return 0;
}

int rule_none(call *c)
{
    for (int k = 0; k < c->node->n_out; k++)
        set_unknown(c, k, BZ_UNDEFINED);
    return 0;
}

bz_dim dim_add(call *c, bz_dim a, bz_dim b)
{
    if (a == 0 || b == 0)
        return a == 0 ? b : a;
    bz_dim sum;
    return bz_is_symbol(a) || bz_is_symbol(b) || __builtin_add_overflow(a, b, &sum) || bz_is_symbol(sum) ? new_symbol(c)
                                                                                                         : sum;
}

bz_dim dim_sub(call *c, bz_dim a, bz_dim b)
{
    if (b == 0 || a == b)
        return b == 0 ? a : 0;
    bz_dim difference;
    return bz_is_symbol(a) || bz_is_symbol(b) || __builtin_sub_overflow(a, b, &difference) || bz_is_symbol(difference)
               ? new_symbol(c)
               : difference;
}

bz_dim dim_mul(call *c, bz_dim a, bz_dim b)
{
    if (a == 1 || b == 1)
        return a == 1 ? b : a;
    if (a == 0 || b == 0)
        return 0;
    bz_dim product;
    return bz_is_symbol(a) || bz_is_symbol(b) || __builtin_mul_overflow(a, b, &product) || bz_is_symbol(product)
               ? new_symbol(c)
               : product;
}

bz_dim dim_div(call *c, bz_dim a, bz_dim b)
{
    if (b == 1 || a == 0)
        return a;
    if (a == b)
        return 1;
    if (bz_is_symbol(a) || bz_is_symbol(b))
        return new_symbol(c);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int dim_product(call *c, const bz_dim *dims, int from, int to, bz_dim *product)
{
    int64_t known = 1;
    bz_dim symbol = 0;
    int n_symbols = 0;
    for (int i = from; i < to; i++) {
        if (bz_is_symbol(dims[i])) {
            symbol = dims[i];
            n_symbols++;
        } else if (__builtin_mul_overflow(known, dims[i], &known) || known > INT64_MAX / 64) {
            return call_fail(c, "a shape has more elements than any memory could hold");
        }
    }
    *product = n_symbols == 0 || known == 0 ? known : n_symbols == 1 && known == 1 ? symbol : new_symbol(c);
    return 0;
}

int broadcast(call *c, const bz_type *a, const bz_type *b, int *rank, bz_dim *dims)
{
    int n = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < n; i++) {
        int at_a = i - (n - a->rank), at_b = i - (n - b->rank);
        bz_dim x = at_a >= 0 ? a->dims[at_a] : 1, y = at_b >= 0 ? b->dims[at_b] : 1;
        if (x == y || y == 1)
            dims[i] = x;
        else if (x == 1)
            dims[i] = y;
        else if (bz_is_symbol(x) || bz_is_symbol(y))
            dims[i] = bz_is_symbol(x) ? y : x; /* a symbol must be 1 or the other number */
        else
            return call_fail(c, "shapes do not fit: dimension %d is %lld and %lld", i, (long long)x, (long long)y);
    }
    *rank = n;
    return 0;
}

bz_type type_join(call *c, const bz_type *a, const bz_type *b)
{
    bz_type t = *a;
    if (a->kind == BZ_TYPE_NONE || b->kind == BZ_TYPE_NONE)
        return a->kind == BZ_TYPE_NONE ? *b : *a;
    if (a->kind != b->kind && a->kind == BZ_TYPE_OPTIONAL && a->elem) /* empty at first, filled on the way */
        return type_join(c, a->elem, b);
    if (a->kind != b->kind && b->kind == BZ_TYPE_OPTIONAL && b->elem)
        return type_join(c, a, b->elem);
    if (a->kind != b->kind)
        return (bz_type){.rank = -1};
    if (!t.dtype)
        t.dtype = b->dtype;
    if (a->elem && b->elem) {
        bz_type *elem = BZ_NEW(c->arena, bz_type, 1);
        *elem = type_join(c, a->elem, b->elem);
        t.elem = elem;
    }
    if (a->rank != b->rank) {
        t.rank = -1;
        t.dims = NULL;
        return t;
    }
    bz_dim *dims = new_dims(c, a->rank > 0 ? a->rank : 0);
    for (int i = 0; i < a->rank; i++)
        dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : new_symbol(c);
    t.dims = dims;
    return t;
}

static bz_param *new_param(call *c, const char *name)
{
    if (c->n_params == MAX_PARAMS)
        return NULL;
    bz_param *p = &c->params[c->n_params++];
    *p = (bz_param){.name = name};
    return p;
}

void param_ints(call *c, const char *name, const int64_t *v, int n)
{
    bz_param *p = new_param(c, name);
    if (!p)
        return;
    p->v = bz_arena_dup(c->arena, v, (size_t)n * sizeof *v);
    p->n = n;
}

void param_int(call *c, const char *name, int64_t v)
{
    param_ints(c, name, &v, 1);
}

void param_axes(call *c, const char *name, const int *v, int n)
{
    int64_t wide[BZ_MAX_RANK];
    for (int i = 0; i < n; i++)
        wide[i] = v[i];
    param_ints(c, name, wide, n);
}

static void param_shared_text(call *c, const char *name, const char *text)
{
    bz_param *p = new_param(c, name);
    if (p)
        p->text = text;
}

void param_text(call *c, const char *name, const char *text)
{
    param_shared_text(c, name, bz_arena_str(c->arena, text));
}

/* The shortest text is found by trial, which takes long; a model has few such numbers, each in many
 * places: the last ones are remembered. */
void param_real(call *c, const char *name, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    real_text *known = &c->inf->reals[(bits ^ bits >> 52 ^ bits >> 29) % N_REALS];
    if (!known->text || known->bits != bits) {
        char text[32];
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, v);
            if ((float)strtod(text, NULL) == (float)v)
                break;
        }
        *known = (real_text){bits, bz_arena_str(c->arena, text)};
    }
    param_shared_text(c, name, known->text);
}
