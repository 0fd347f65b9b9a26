/* Written-out functions, recognized by their values. */
#include "generator/written.h"

#include "generator/lower.h"

#include <math.h>
#include <string.h>

/* x is a few rows; a reduction goes over a row. Constants of a row's shape are weights: their values do
 * not matter, so that some are made up. */
enum { ROWS = 6, COLUMNS = 8, MAX_VALUES = 64, MAX_WEIGHTS = 2, MAX_SCALARS = 16, MAX_GROUPS = 1 << 10 };

typedef struct {
    bz_lowered *lowered;
    const bz_layers *layers; /* its */
    const bz_type *x;
    int axis; /* of reductions; -1: none yet */
    bz_value_id id[MAX_VALUES];
    double value[MAX_VALUES][COLUMNS];
    int n;
    bz_value_id weight[MAX_WEIGHTS];
    int n_weights;
    double scalar[MAX_SCALARS];
    int n_scalars;
} evaluation;

static double the_same(double x)
{
    return x;
}

static double reciprocal(double x)
{
    return 1 / x;
}

/* Kinds that are no activation by themselves, or stand among constants. */
static const struct {
    const char *kind;
    double (*f)(double x);
} UNARY[] = {
    {"erf", erf},          {"sqrt", sqrt},        {"reciprocal", reciprocal}, {"identity", the_same},
    {"reshape", the_same}, {"squeeze", the_same}, {"unsqueeze", the_same},
};

static bool binary(const char *kind, double a, double b, double *y)
{
    bz_fn fn = bz_fn_find(kind, strlen(kind));
    if (!strcmp(kind, "pow"))
        *y = pow(a, b);
    else if (bz_fn_is_binary(fn))
        *y = bz_fn_binary(fn, a, b);
    else
        return false;
    return true;
}

static bool tensor_scalar(const bz_layers *layers, const bz_tensor *t, double *out)
{
    bz_error err;
    int64_t i;
    if (t->n != 1)
        return false;
    if (bz_dtype_is_float(t->dtype))
        return !bz_tensor_reals(layers->model, t, out, &err);
    if (bz_tensor_ints(layers->model, t, &i, &err))
        return false;
    *out = (double)i;
    return true;
}

static bool attribute_scalar(const bz_layers *layers, const bz_node *node, double *out)
{
    const bz_attr *value = bz_node_attr(node, "value"), *real = bz_node_attr(node, "value_float"),
                  *whole = bz_node_attr(node, "value_int");
    if (value && value->kind == BZ_ATTR_TENSOR)
        return tensor_scalar(layers, value->tensor, out);
    *out = real && real->kind == BZ_ATTR_FLOAT   ? (double)real->f
           : whole && whole->kind == BZ_ATTR_INT ? (double)whole->i
                                                 : NAN;
    return !isnan(*out);
}

/* The layer before that one which makes the value; NULL. */
static const bz_layer *maker_of(const bz_layers *layers, bz_value_id v, int before)
{
    while (before-- > 0)
        if (layers->layer[before].n_out && layers->layer[before].node->out[0] == v)
            return &layers->layer[before];
    return NULL;
}

static bool scalar_at(const bz_layers *layers, bz_value_id v, int before, int depth, double *out)
{
    double a, b;
    if (v < 0 || bz_type_elements(&layers->types[v]) != 1 || depth > 8)
        return false;
    if (layers->model->values[v].init)
        return tensor_scalar(layers, layers->model->values[v].init, out);
    const bz_layer *l = maker_of(layers, v, before);
    if (l && !strcmp(l->node->op, "Constant"))
        return attribute_scalar(layers, l->node, out);
    before = l ? (int)(l - layers->layer) : 0;
    if (!l || !l->n_in || !scalar_at(layers, l->node->in[0], before, depth + 1, &a))
        return false;
    *out = a;
    if (!strcmp(l->kind, "cast"))
        return l->out[0].dtype == BZ_F32 || l->out[0].dtype == BZ_F64;
    for (size_t i = 0; i < sizeof UNARY / sizeof *UNARY; i++)
        if (!strcmp(l->kind, UNARY[i].kind)) {
            *out = UNARY[i].f(a);
            return true;
        }
    return l->n_in == 2 && scalar_at(layers, l->node->in[1], before, depth + 1, &b) && binary(l->kind, a, b, out);
}

bool written_scalar(const bz_layers *layers, bz_value_id v, int before, double *out)
{
    return scalar_at(layers, v, before, 0, out);
}

static double *add_value(evaluation *e, bz_value_id id)
{
    if (e->n == MAX_VALUES)
        return NULL;
    e->id[e->n] = id;
    return e->value[e->n++];
}

/* A constant: one number, or weights. */
static double *add_constant(evaluation *e, bz_value_id id, int before)
{
    double v, *row = add_value(e, id);
    if (!row)
        return NULL;
    if (written_scalar(e->layers, id, before, &v)) {
        for (int i = 0; i < COLUMNS; i++)
            row[i] = v;
        if (e->n_scalars < MAX_SCALARS)
            e->scalar[e->n_scalars++] = v;
        return row;
    }
    if (bz_type_elements(&e->layers->types[id]) <= 1 || e->n_weights == MAX_WEIGHTS)
        return NULL;
    e->weight[e->n_weights++] = id;
    for (int i = 0; i < COLUMNS; i++)
        row[i] = 0.5 + 0.37 * e->n_weights + 0.11 * (i * i % 7);
    return row;
}

static const double *operand(evaluation *e, const bz_layer *l, int k)
{
    bz_value_id v = k < l->n_in ? l->node->in[k] : BZ_NO_VALUE;
    for (int i = 0; i < e->n && v >= 0; i++)
        if (e->id[i] == v)
            return e->value[i];
    return v >= 0 && l->in_constant[k] ? add_constant(e, v, l->index) : NULL;
}

/* The mean over all dimensions from one on, which stay as 1: all reductions over the same. */
static bool mean(evaluation *e, const bz_layer *l, const double *a, double *y)
{
    const bz_param *axes = bz_layer_param(l, "axes");
    int rank = e->x->rank;
    if (!axes || axes->n < 1 || axes->n >= rank || l->out[0].rank != rank ||
        bz_type_elements(&l->in[0]) != bz_type_elements(e->x))
        return false;
    for (int i = 0; i < axes->n; i++)
        if (axes->v[i] != rank - axes->n + i)
            return false;
    if (e->axis >= 0 && e->axis != rank - axes->n)
        return false;
    e->axis = rank - axes->n;
    double sum = 0;
    for (int i = 0; i < COLUMNS; i++)
        sum += a[i];
    for (int i = 0; i < COLUMNS; i++)
        y[i] = sum / COLUMNS;
    return true;
}

static bool unary(evaluation *e, const bz_layer *l, const double *a, double *y)
{
    for (size_t i = 0; i < sizeof UNARY / sizeof *UNARY; i++)
        if (!strcmp(l->kind, UNARY[i].kind)) {
            for (int c = 0; c < COLUMNS; c++)
                y[c] = UNARY[i].f(a[c]);
            return l->class != BZ_VIEW;
        }
    const bz_lowering *low = lowered_as_is(e->lowered, l->index);
    if (!low->n || low->alternative[0].n != 1 || low->alternative[0].problem->kind != BZ_PROBLEM_ACTIVATION)
        return false;
    const bz_problem *p = low->alternative[0].problem;
    for (int c = 0; c < COLUMNS; c++)
        y[c] = bz_fn_value(p->activation.fn, a[c], (double)p->activation.alpha, (double)p->activation.beta);
    return true;
}

/* Whether a value is as large as x, or as what a reduction leaves of it: nothing else is broadcast. */
static bool has_shape(const evaluation *e, const bz_type *t)
{
    if (t->rank != e->x->rank)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] != e->x->dims[i] && (e->axis < 0 || i < e->axis || t->dims[i] != 1))
            return false;
    return true;
}

static bool compute(evaluation *e, const bz_layer *l)
{
    const double *a = operand(e, l, 0), *b = l->n_in > 1 ? operand(e, l, 1) : NULL;
    double *y = a && l->n_out ? add_value(e, l->node->out[0]) : NULL;
    if (!y)
        return false;
    if (!strcmp(l->kind, "reducemean"))
        return mean(e, l, a, y);
    if (l->n_in == 2 && b && (bz_fn_is_binary(bz_fn_find(l->kind, strlen(l->kind))) || !strcmp(l->kind, "pow"))) {
        for (int c = 0; c < COLUMNS; c++)
            if (bz_layer_param(l, "axis") || !binary(l->kind, a[c], b[c], &y[c]))
                return false;
    } else if (!unary(e, l, a, y)) {
        return false;
    }
    return has_shape(e, &l->out[0]);
}

typedef struct {
    double x[ROWS][COLUMNS], y[ROWS][COLUMNS];
    evaluation e; /* of the last row: weights and scalars are the same in all */
} table;

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * (1 + fabs(b)); /* constants are rounded, and sometimes to few digits */
}

static bool is_function(const table *t, bz_fn fn, double alpha, double beta)
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            if (!near(t->y[r][c], bz_fn_value(fn, t->x[r][c], alpha, beta)))
                return false;
    return true;
}

static bool find_activation(const table *t, written *out)
{
    static const bz_post KNOWN[] = {
        {BZ_FN_GELU_ERF, 0, 0}, {BZ_FN_GELU_TANH, 0, 0},
        {BZ_FN_SWISH, 1, 0},    {BZ_FN_HARDSWISH, 0, 0},
        {BZ_FN_MISH, 0, 0},     {BZ_FN_RELU, 0, 0},
        {BZ_FN_CLIP, 0, 6},     {BZ_FN_SIGMOID, 0, 0},
        {BZ_FN_TANH, 0, 0},     {BZ_FN_SOFTPLUS, 0, 0},
        {BZ_FN_ELU, 1, 0},      {BZ_FN_HARDSIGMOID, 1.0f / 6, 0.5f},
        {BZ_FN_ABS, 0, 0},      {BZ_FN_HARDSIGMOID, 0.2f, 0.5f},
        {BZ_FN_SQUARE, 0, 0},
    };
    static const bz_fn BY_SCALAR[] = {BZ_FN_SWISH, BZ_FN_LEAKY, BZ_FN_ELU};
    out->kind = WRITTEN_ACTIVATION;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (is_function(t, KNOWN[i].fn, (double)KNOWN[i].alpha, (double)KNOWN[i].beta)) {
            out->fn = KNOWN[i].fn, out->alpha = KNOWN[i].alpha, out->beta = KNOWN[i].beta;
            return true;
        }
    for (int s = 0; s < t->e.n_scalars; s++)
        for (size_t i = 0; i < sizeof BY_SCALAR / sizeof *BY_SCALAR; i++)
            if ((float)t->e.scalar[s] != 0 && is_function(t, BY_SCALAR[i], t->e.scalar[s], 0)) {
                out->fn = BY_SCALAR[i], out->alpha = (float)t->e.scalar[s], out->beta = 0;
                return true;
            }
    return false;
}

static const double *weight(const table *t, int k)
{
    for (int i = 0; i < t->e.n; i++)
        if (t->e.id[i] == t->e.weight[k])
            return t->e.value[i];
    return NULL;
}

/* (x - centre) / sqrt(mean of its square + added), scaled and shifted. */
static bool is_norm(const table *t, bool centred, double added, const double *scale, const double *shift)
{
    for (int r = 0; r < ROWS; r++) {
        double centre = 0, square = 0;
        for (int c = 0; c < COLUMNS; c++)
            centre += centred ? t->x[r][c] / COLUMNS : 0;
        for (int c = 0; c < COLUMNS; c++)
            square += (t->x[r][c] - centre) * (t->x[r][c] - centre) / COLUMNS;
        for (int c = 0; c < COLUMNS; c++)
            if (!near(t->y[r][c], (t->x[r][c] - centre) / sqrt(square + added) * scale[c] + (shift ? shift[c] : 0)))
                return false;
    }
    return true;
}

/* Weights lie along the dimensions that are normalized, and nowhere else. */
static bool weights_fit(const evaluation *e)
{
    for (int k = 0; k < e->n_weights; k++) {
        const bz_type *w = &e->layers->types[e->weight[k]];
        int n = e->x->rank - e->axis;
        if (w->rank != n)
            return false;
        for (int i = 0; i < n; i++)
            if (w->dims[i] != e->x->dims[e->axis + i])
                return false;
    }
    return true;
}

static bool find_norm(const table *t, written *out)
{
    if (!t->e.n_weights || !weights_fit(&t->e))
        return false;
    const double *a = weight(t, 0), *b = t->e.n_weights > 1 ? weight(t, 1) : NULL;
    out->axis = t->e.axis;
    for (int s = 0; s < t->e.n_scalars; s++) {
        double added = t->e.scalar[s];
        if (!(added >= 0))
            continue;
        out->added = (float)added;
        out->kind = b ? WRITTEN_LAYERNORM : WRITTEN_RMSNORM;
        bool turned = b && is_norm(t, true, added, b, a);
        out->scale = t->e.weight[turned];
        out->shift = b ? t->e.weight[!turned] : BZ_NO_VALUE;
        if (turned || is_norm(t, b != NULL, added, a, b))
            return true;
    }
    return false;
}

/* Are all elements of a constant this number? */
static bool is_all(const bz_layers *layers, bz_value_id v, int before, double number)
{
    const bz_tensor *t = v < 0 ? NULL : layers->model->values[v].init;
    const bz_layer *l = v < 0 || t ? NULL : maker_of(layers, v, before);
    const bz_attr *a = l ? bz_node_attr(l->node, "value") : NULL;
    double value[MAX_GROUPS];
    bz_error err;
    if (a && a->kind == BZ_ATTR_TENSOR)
        t = a->tensor;
    if (!t || t->n < 1 || t->n > MAX_GROUPS || !bz_dtype_is_float(t->dtype) ||
        bz_tensor_reals(layers->model, t, value, &err))
        return false;
    for (int64_t i = 0; i < t->n; i++)
        if (value[i] != number)
            return false;
    return true;
}

/* A group normalization by an instance normalization whose scale is 1 and whose shift is 0; the real ones, for each channel, are constants behind it. */
static bool find_groupnorm(const bz_layers *layers, const int *layer, int n, bz_value_id x, written *out)
{
    bz_groupnorm g;
    if (!bz_groupnorm_find(layers, layer, n, &g) || g.x != x || !layers->constant[g.scale] ||
        !layers->constant[g.shift] || !is_all(layers, g.norm->node->in[1], g.norm->index, 1) ||
        !is_all(layers, g.norm->node->in[2], g.norm->index, 0))
        return false;
    const bz_attr *epsilon = bz_node_attr(g.norm->node, "epsilon");
    out->kind = WRITTEN_GROUPNORM;
    out->axis = (int)g.groups;
    out->added = epsilon ? epsilon->f : 1e-5f;
    out->scale = g.scale;
    out->shift = g.shift;
    return true;
}

bool written_identify(bz_lowered *lowered, const int *layer, int n, bz_value_id x, written *out)
{
    const bz_layers *layers = lowered->layers;
    table t;
    const bz_type *type = &layers->types[x];
    *out = (written){0};
    if (type->kind != BZ_TYPE_TENSOR || type->rank <= 0 || !bz_dtype_is_float(type->dtype))
        return false;
    if (find_groupnorm(layers, layer, n, x, out))
        return true;
    for (int r = 0; r < ROWS; r++) {
        t.e = (evaluation){.lowered = lowered, .layers = layers, .x = type, .axis = -1};
        double *row = add_value(&t.e, x);
        for (int c = 0; c < COLUMNS; c++)
            row[c] = t.x[r][c] = -6 + 12.0 * (r + c * ROWS) / (ROWS * COLUMNS - 1);
        for (int i = 0; i < n; i++)
            if (!compute(&t.e, &layers->layer[layer[i]]))
                return false;
        memcpy(t.y[r], t.e.value[t.e.n - 1], sizeof t.y[r]);
    }
    if (bz_type_elements(&layers->layer[layer[n - 1]].out[0]) != bz_type_elements(type))
        return false;
    return t.e.axis < 0 ? !t.e.n_weights && find_activation(&t, out) : find_norm(&t, out);
}

bool bz_lower_scalar(const bz_layers *layers, bz_value_id v, int before, double *out)
{
    return written_scalar(layers, v, before, out);
}
