/* What an iteration is made of: names of values, nodes, constants, and the small things that many derivatives need. */
#include "training/build.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int grad_fail(const grad *g, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return bz_fail(g->b->err, BZ_INCOMPLETE, "layer '%s' (%s): %s", g->l->name, g->l->node->op, text);
}

const char *grad_fresh(build *b, const char *wanted)
{
    const char *name = bz_arena_str(b->arena, wanted);
    for (int k = 2; bz_map_get(&b->names, name, strlen(name)) != BZ_MAP_NONE; k++)
        name = bz_arena_printf(b->arena, "%s.%d", wanted, k);
    bz_map_add(&b->names, name, strlen(name), 0);
    return name;
}

bz_value_id grad_id(const build *b, bz_value_id v)
{
    while (v >= 0 && b->same[v] != v)
        v = b->same[v];
    return v;
}

const char *grad_name(build *b, bz_value_id v)
{
    v = grad_id(b, v);
    if (v < 0)
        return "";
    if (!b->name[v])
        b->name[v] = grad_fresh(b, b->from->model->values[v].name);
    return b->name[v];
}

/* Operand k, or the weight that it is the transpose of. */
static bz_value_id operand(const grad *g, int k)
{
    bz_value_id v = k < g->l->n_in ? grad_id(g->b, g->l->node->in[k]) : BZ_NO_VALUE;
    return v >= 0 && g->b->turned[v] >= 0 ? g->b->turned[v] : v;
}

const char *grad_x(grad *g, int k)
{
    return grad_name(g->b, operand(g, k));
}

const char *grad_last(grad *g, int k)
{
    return grad_has(g, k) ? grad_x(g, k) : NULL;
}

const char *grad_y(grad *g, int k)
{
    return k < g->l->n_out ? grad_name(g->b, g->l->node->out[k]) : "";
}

const char *grad_dy(grad *g, int k)
{
    bz_value_id v = k < g->l->n_out ? grad_id(g->b, g->l->node->out[k]) : BZ_NO_VALUE;
    return v < 0 ? NULL : g->b->grad[v];
}

bool grad_wants(grad *g, int k)
{
    return grad_has(g, k) && g->b->needs[grad_id(g->b, g->l->node->in[k])];
}

void grad_add(build *b, bz_value_id v, const char *value)
{
    BZ_ARENA_ADD(b->arena, b->given, b->n_given) = (given){v, value};
}

void grad_added(build *b)
{
    for (int i = 0; i < b->n_given; i++) {
        const char **sum = &b->grad[b->given[i].to];
        *sum = *sum ? grad_node(b, "Add", *sum, b->given[i].value, NULL) : b->given[i].value;
    }
    b->n_given = 0;
}

int grad_give(grad *g, int k, const char *value)
{
    grad_add(g->b, operand(g, k), value);
    return 0;
}

int grad_give_results(grad *g, const char **out, int n_out)
{
    for (int k = 0; k < n_out; k++)
        if (grad_wants(g, k))
            grad_give(g, k, out[k]);
    return 0;
}

const char *grad_keep(grad *g, int slot, const char *what)
{
    return g->s->kept[slot] = grad_fresh(g->b, bz_arena_printf(g->b->arena, "%s/%s", g->b->layer, what));
}

static const char *split_domain(const char **op)
{
    if (!strncmp(*op, "ms:", 3))
        return *op += 3, "com.microsoft";
    if (!strncmp(*op, "own:", 4))
        return *op += 4, "benanza.training";
    if (!strncmp(*op, "train:", 6))
        return *op += 6, "ai.onnx.preview.training";
    return "";
}

void grad_nodes(build *b, const char *op, const char *const *in, int n_in, const char **out, int n_out)
{
    const char *domain = split_domain(&op);
    const char *name = bz_arena_printf(b->arena, "%s/%s", b->layer, op);
    for (int k = 0; k < n_out; k++)
        out[k] = grad_fresh(b, k ? bz_arena_printf(b->arena, "%s_%d", name, k) : name);
    bz_draft_node(&b->draft, op, domain, name, in, n_in, out, n_out);
    bz_buf_putc(&b->phases, (char)b->phase);
}

const char *grad_node(build *b, const char *op, ...)
{
    const char *in[GRAD_OPERANDS], *out;
    int n = 0;
    va_list args;
    va_start(args, op);
    for (const char *x; n < GRAD_OPERANDS && (x = va_arg(args, const char *)); n++)
        in[n] = x;
    va_end(args);
    grad_nodes(b, op, in, n, &out, 1);
    return out;
}

/* A layer that is computed again has another name. */
void grad_layer(const grad *g, const char *op, const char *domain, const char *const *in, int n_in,
                const char *const *out, int n_out)
{
    const char *name = g->l->node->name;
    name = g->b->again && *name ? bz_arena_printf(g->b->arena, "%s/again", name) : name;
    bz_draft_node(&g->b->draft, op, domain, name, in, n_in, out, n_out);
    bz_buf_putc(&g->b->phases, (char)g->b->phase);
}

void grad_copy_attrs(grad *g, const char *without)
{
    for (int i = 0; i < g->l->node->n_attrs; i++)
        if (strcmp(g->l->node->attrs[i].name, without) != 0)
            bz_draft_attr(&g->b->draft, g->b->from->model, &g->l->node->attrs[i], NULL);
}

void grad_copy_attr(grad *g, const char *name)
{
    const bz_attr *a = bz_node_attr(g->l->node, name);
    if (a)
        bz_draft_attr(&g->b->draft, g->b->from->model, a, NULL);
}

int grad_copy(grad *g, const char *op, const char *domain, const char *const *extra, int n_extra)
{
    build *b = g->b;
    const bz_node *node = g->l->node;
    const char **in = BZ_NEW(b->arena, const char *, node->n_in + 1),
               **out = BZ_NEW(b->arena, const char *, node->n_out + n_extra + 1);
    for (int k = 0; k < node->n_in; k++)
        in[k] = grad_x(g, k);
    for (int k = 0; k < node->n_out; k++)
        out[k] = grad_y(g, k);
    for (int k = 0; k < n_extra; k++)
        out[node->n_out + k] = extra[k];
    grad_layer(g, op, domain, in, node->n_in, out, node->n_out + n_extra);
    for (int i = 0; i < node->n_attrs; i++)
        if (bz_draft_attr(&b->draft, b->from->model, &node->attrs[i], b->err))
            return bz_fail_in(b->err, "layer '%s' (%s)", g->l->name, node->op);
    return 0;
}

/* The constant of these bytes; NULL where it is to be made, under *name. */
static const char *known_constant(build *b, const char *kind, const void *data, size_t size, const char **name)
{
    BZ_SCOPED(bz_buf) key = {0};
    bz_buf_puts(&key, kind);
    bz_buf_put(&key, data, size);
    const char *kept = bz_arena_dup(b->arena, bz_buf_text(&key), key.len + 1); /* the table does not copy it */
    uint32_t k = bz_map_add(&b->constants, kept, key.len, (uint32_t)b->n_constants);
    if ((int)k < b->n_constants)
        return b->constant_name[k];
    BZ_ARENA_ROOM(b->arena, b->constant_name, b->n_constants);
    *name = b->constant_name[b->n_constants++] = grad_fresh(b, bz_arena_printf(b->arena, "constant_%d", (int)k));
    return NULL;
}

const char *grad_ints(build *b, const int64_t *v, int n)
{
    const char *name, *known = known_constant(b, "i", v, (size_t)n * sizeof *v, &name);
    if (known)
        return known;
    bz_draft_ints(&b->draft, name, v, n);
    return name;
}

/* The upper half of a single-precision number, rounded to even. */
static uint16_t to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Normal numbers of half precision; smaller ones are 0, larger ones the largest. */
static uint16_t to_f16(double d)
{
    enum { LARGEST = 0x7bff, NO_NUMBER = 0x7e00 };
    int e;
    double m = frexp(fabs(d), &e);
    unsigned sign = signbit(d) ? 0x8000 : 0;
    if (isnan(d))
        return (uint16_t)(sign | NO_NUMBER);
    if (isinf(d) || e > 16)
        return (uint16_t)(sign | LARGEST);
    if (d == 0 || e < -13)
        return (uint16_t)sign;
    unsigned bits = (unsigned)(e + 14) * 1024 + (unsigned)nearbyint((m * 2 - 1) * 1024);
    return (uint16_t)(sign | (bits < LARGEST ? bits : LARGEST));
}

bz_dtype grad_narrow(const build *b, bz_dtype t)
{
    return t == BZ_F32 && b->options->dtype ? b->options->dtype : t;
}

/* The type that work is done in. */
static bz_dtype narrowed(const build *b, bz_dtype t)
{
    return b->wide ? t : grad_narrow(b, t);
}

const char *grad_scalar(build *b, bz_dtype dtype, double v)
{
    dtype = narrowed(b, dtype);
    char kind[16];
    float f = (float)v;
    uint16_t half = dtype == BZ_BF16 ? to_bf16(f) : to_f16(v);
    const void *data = dtype == BZ_F64 ? (const void *)&v : dtype == BZ_F32 ? (const void *)&f : (const void *)&half;
    snprintf(kind, sizeof kind, "r%d", (int)dtype);
    const char *name, *known = known_constant(b, kind, &v, sizeof v, &name);
    if (known)
        return known;
    bz_draft_tensor(&b->draft, name, dtype, 0, NULL, data, (size_t)bz_dtype_bits(dtype) / 8);
    return name;
}

const char *grad_reshape_dims(build *b, const char *x, const int64_t *dims, int n)
{
    return grad_node(b, "Reshape", x, grad_ints(b, dims, n), NULL);
}

const char *grad_reshape(build *b, const char *x, const bz_type *to)
{
    return grad_reshape_dims(b, x, to->dims, to->rank);
}

const char *grad_cast(build *b, const char *x, bz_dtype to)
{
    const char *y = grad_node(b, "Cast", x, NULL);
    GRAD_INT(b, "to", (int64_t)narrowed(b, to));
    return y;
}

const char *grad_scaled(build *b, const char *x, bz_dtype dtype, double factor)
{
    return factor == 1 ? x : grad_node(b, "Mul", x, grad_scalar(b, dtype, factor), NULL);
}

const char *grad_sum_axes(build *b, const char *x, const int64_t *axes, int n, bool keep)
{
    const char *y;
    if (b->opset >= 13) {
        y = grad_node(b, "ReduceSum", x, grad_ints(b, axes, n), NULL);
    } else {
        y = grad_node(b, "ReduceSum", x, NULL);
        GRAD_INTS(b, "axes", axes, n);
    }
    GRAD_INT(b, "keepdims", keep);
    return y;
}

const char *grad_transpose(build *b, const char *x, const int64_t *perm, int n)
{
    const char *y = grad_node(b, "Transpose", x, NULL);
    GRAD_INTS(b, "perm", perm, n);
    return y;
}

const char *grad_reduce(build *b, const char *x, const bz_type *from, const bz_type *to)
{
    int64_t axes[BZ_MAX_RANK];
    int n = 0, lead = from->rank - to->rank, inner = 0;
    for (int i = 0; i < from->rank; i++)
        if (i < lead || (to->dims[i - lead] == 1 && from->dims[i] != 1)) {
            axes[n++] = i;
            inner += i >= lead;
        }
    if (!n)
        return x;
    x = grad_sum_axes(b, x, axes, n, inner > 0);
    return inner && lead ? grad_reshape(b, x, to) : x;
}

const char *grad_zeros(build *b, const bz_type *like)
{
    return grad_node(b, "Expand", grad_scalar(b, like->dtype, 0), grad_ints(b, like->dims, like->rank), NULL);
}

const int64_t *grad_param(const grad *g, const char *name, int *n)
{
    const bz_param *p = bz_layer_param(g->l, name);
    *n = p && !p->text ? p->n : 0;
    return *n ? p->v : NULL;
}

int64_t grad_param_int(const grad *g, const char *name, int64_t otherwise)
{
    int n;
    const int64_t *v = grad_param(g, name, &n);
    return n == 1 ? v[0] : otherwise;
}

double grad_param_real(const grad *g, const char *name, double otherwise)
{
    const bz_param *p = bz_layer_param(g->l, name);
    char *end = NULL;
    double v = p && p->text ? strtod(p->text, &end) : otherwise;
    return end && *end ? NAN : v;
}

/* The only element of a constant operand. */
/* An operand of which the file has the value; NULL. */
static const bz_tensor *constant_of(const grad *g, int k)
{
    const build *b = g->b;
    bz_value_id v = grad_id(b, g->l->node->in[k]);
    const bz_tensor *t = b->from->model->values[v].init;
    for (int i = 0; i < b->n_steps && !t; i++) {
        const bz_node *node = b->steps[i].layer->node;
        const bz_attr *a = !strcmp(node->op, "Constant") && node->n_out == 1 && grad_id(b, node->out[0]) == v
                               ? bz_node_attr(node, "value")
                               : NULL;
        t = a && a->kind == BZ_ATTR_TENSOR ? a->tensor : NULL;
    }
    return t;
}

bool grad_number(const grad *g, int k, double *out)
{
    const bz_tensor *t = constant_of(g, k);
    bz_error ignored;
    return t && t->n == 1 && !bz_tensor_reals(g->b->from->model, t, out, &ignored);
}

bool grad_is_all(const grad *g, int k, double number)
{
    enum { MOST = 1 << 16 };
    const bz_tensor *t = g->b->needs[grad_id(g->b, g->l->node->in[k])] ? NULL : constant_of(g, k);
    bz_error ignored;
    if (!t || t->n < 1 || t->n > MOST || !bz_dtype_is_float(t->dtype))
        return false;
    BZ_FREED double *value = bz_alloc((size_t)t->n, sizeof *value);
    bool all = !bz_tensor_reals(g->b->from->model, t, value, &ignored);
    for (int64_t i = 0; i < t->n && all; i++)
        all = !(value[i] < number) && !(value[i] > number);
    return all;
}

const char *grad_param_text(const grad *g, const char *name, const char *otherwise)
{
    const bz_param *p = bz_layer_param(g->l, name);
    return p && p->text ? p->text : otherwise;
}
