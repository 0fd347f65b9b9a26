/* Functions of one value that exporters write out as several layers: a framework has one layer for them. It keeps the operand of GELU and SiLU
 * alone, and so does their gradient here. Of a normalization of layers it keeps mean and deviation, which no layer of the written form makes: that
 * one is a single layer here, too. */
#include "training/build.h"

#include <string.h>

static const char LAYERNORM[] = "layernorm", RMSNORM[] = "rmsnorm", GROUPNORM[] = "groupnorm", VARIANCE[] = "variance";
static const struct {
    const char *pattern, *function;
} FUNCTIONS[] = {{"gelu", "gelu"},   {"silu", "swish"},      {LAYERNORM, LAYERNORM},
                 {RMSNORM, RMSNORM}, {GROUPNORM, GROUPNORM}, {VARIANCE, VARIANCE}};

/* As PyTorch exports `x.var()`. No library has a call for it, so it is no pattern of calls. */
static const char VARIANCES[] = "[variance]\nm* = ReduceMean(x)\nd = Sub(x, m)\nq = Mul(d, d)\nv = ReduceMean(q)\n";

static const char *function_of(const char *pattern)
{
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (!strcmp(FUNCTIONS[i].pattern, pattern))
            return FUNCTIONS[i].function;
    return NULL;
}

/* What a value that is computed again in between is. */
static bz_value_id known_as(const bz_match *m, bz_value_id v)
{
    for (int i = 1; i < BZ_STANDS && m->stands && v >= 0 && m->stands[v] != v; i++)
        v = m->stands[v];
    return v;
}

static bool makes(const bz_layer *layer, const bz_match *m, bz_value_id v)
{
    v = known_as(m, v);
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < layer[m->layer[i]].n_out; k++)
            if (layer[m->layer[i]].node->out[k] == v)
                return true;
    return false;
}

/* The one value that comes from outside and is no number; BZ_NO_VALUE where there are several. */
static bz_value_id operand_of(const build *b, const bz_match *m)
{
    bz_value_id x = BZ_NO_VALUE;
    for (int i = 0; i < m->n; i++) {
        const bz_layer *l = &b->from->layer[m->layer[i]];
        for (int k = 0; k < l->n_in; k++) {
            bz_value_id v = l->node->in[k];
            if (v < 0 || makes(b->from->layer, m, v))
                continue;
            bool number = l->in_constant[k] && bz_type_elements(&l->in[k]) == 1 && !b->needs[grad_id(b, v)];
            if (!number && x >= 0 && x != v)
                return BZ_NO_VALUE;
            x = number ? x : v;
        }
    }
    return x;
}

static bool by_tanh(const build *b, const bz_match *m)
{
    for (int i = 0; i < m->n; i++)
        if (!strcmp(b->from->layer[m->layer[i]].node->op, "Tanh"))
            return true;
    return false;
}

/* Means are over all axes from one on. */
static bool is_mean(const bz_layer *l, written *w)
{
    const bz_param *axes = bz_layer_param(l, "axes");
    int rank = l->in[0].rank, n = axes ? axes->n : 0;
    bool last = n > 0 && n < rank && l->out[0].rank == rank;
    for (int i = 0; i < n && last; i++)
        last = axes->v[i] == rank - n + i;
    bool same = w->axis < 0 || w->axis == rank - n;
    w->axis = rank - n;
    return last && same;
}

static bool is_along(const build *b, const written *w, bz_value_id v)
{
    const bz_type *x = &b->from->types[w->x], *t = v < 0 ? NULL : &b->from->types[v];
    bool fits = t && t->rank == x->rank - w->axis;
    for (int i = 0; fits && i < t->rank; i++)
        fits = t->dims[i] == x->dims[w->axis + i];
    return fits;
}

/* What the layers read besides one another and x: an exponent of 2, what keeps the root from zero, the 1 that is divided by it, scale and shift. The
 * first layer reads x. */
static bool find_norm(build *b, const bz_match *m, const char *function, written *w)
{
    *w = (written){.function = function,
                   .x = known_as(m, b->from->layer[m->layer[0]].node->in[0]),
                   .scale = BZ_NO_VALUE,
                   .shift = BZ_NO_VALUE,
                   .axis = -1,
                   .epsilon = -1};
    for (int i = 0; i < m->n; i++) {
        const bz_layer *l = &b->from->layer[m->layer[i]];
        grad g = {b, NULL, l};
        bool mean = !strcmp(l->kind, "reducemean"), add = !strcmp(l->kind, "add");
        if (mean && !is_mean(l, w))
            return false;
        for (int k = 0; k < l->n_in && !mean; k++) {
            bz_value_id v = l->node->in[k];
            double number;
            if (v < 0 || known_as(m, v) == w->x || makes(b->from->layer, m, v))
                continue;
            bool known = !b->needs[grad_id(b, v)] && grad_number(&g, k, &number);
            if (known && add)
                w->epsilon = number;
            else if (!known && (add || !strcmp(l->kind, "mul")))
                *(add ? &w->shift : &w->scale) = v;
            else if (!known || number != (strcmp(l->kind, "div") != 0 ? 2 : 1))
                return false;
        }
    }
    return w->epsilon >= 0 && is_along(b, w, w->scale) && (function == RMSNORM || is_along(b, w, w->shift));
}

/* By an instance normalization whose scale is 1 and whose shift is 0. */
static bool find_groupnorm(build *b, const bz_match *m, written *w)
{
    bz_groupnorm g;
    if (!bz_groupnorm_find(b->from, m->layer, m->n, &g))
        return false;
    grad norm = {b, NULL, g.norm};
    *w = (written){.function = GROUPNORM,
                   .x = g.x,
                   .scale = g.scale,
                   .shift = g.shift,
                   .groups = g.groups,
                   .epsilon = grad_param_real(&norm, "epsilon", 1e-5)};
    return grad_is_all(&norm, 1, 1) && grad_is_all(&norm, 2, 0);
}

/* Mean, difference, square, mean: d = x - mean(x) sums to zero, so the mean passes on no gradient. */
static bool find_variance(build *b, const bz_match *m, written *w)
{
    const bz_layer *mean = &b->from->layer[m->layer[0]], *last = &b->from->layer[m->layer[3]];
    const bz_param *axes = bz_layer_param(mean, "axes"), *same = bz_layer_param(last, "axes");
    int64_t x = bz_type_elements(&mean->in[0]), y = bz_type_elements(&mean->out[0]);
    bool fits = axes && same && same->n == axes->n && mean->out[0].rank == mean->in[0].rank && x > 0 && y > 0;
    for (int k = 0; fits && k < axes->n; k++)
        fits = axes->v[k] == same->v[k];
    *w = (written){.function = VARIANCE,
                   .x = mean->node->in[0],
                   .difference = b->from->layer[m->layer[1]].node->out[0],
                   .mean = mean->node->out[0],
                   .factor = 2 * (double)y / (double)x};
    return fits;
}

static bool find_function(build *b, const bz_match *m, const char *function, written *w)
{
    if (function == VARIANCE)
        return find_variance(b, m, w);
    if (function == LAYERNORM || function == RMSNORM)
        return find_norm(b, m, function, w);
    if (function == GROUPNORM)
        return find_groupnorm(b, m, w);
    *w = (written){.function = function, .x = operand_of(b, m), .by_tanh = by_tanh(b, m)};
    return w->x >= 0;
}

/* What is computed again of a function is none of its own: the layers of the match stand for it. */
static void take_repeated(build *b, const bz_spares *spares, const bz_match *m, const written *w)
{
    bz_value_id y = b->from->layer[m->layer[m->n - 1]].node->out[0];
    for (int i = m->layer[0]; i < b->from->n && m->stands; i++) {
        bz_value_id v = spares->why[i] == BZ_REPEATED ? b->from->layer[i].node->out[0] : BZ_NO_VALUE;
        if (v >= 0 && known_as(m, v) != y && makes(b->from->layer, m, v))
            b->written[i] = *w;
    }
}

static void find_all(build *b, const bz_patterns *patterns, const bz_spares *spares)
{
    const bz_match *match;
    int n = bz_patterns_find(patterns, (bz_layers *)b->from, spares, &match);
    for (int i = 0; i < n; i++) {
        const char *function = function_of(match[i].pattern);
        bool taken = false;
        for (int k = 0; k < match[i].n; k++)
            taken |= b->written[match[i].layer[k]].function != NULL;
        written w;
        bool is = function && !taken && find_function(b, &match[i], function, &w);
        if (!is)
            continue;
        take_repeated(b, spares, &match[i], &w);
        for (int k = function == VARIANCE; k < match[i].n;
             k++) { /* a mean that others read has a gradient of its own */
            w.last = k == match[i].n - 1;
            b->written[match[i].layer[k]] = w;
        }
    }
}

/* Of the layers that need not run only those that repeat another one are looked past: folding and turning change numbers that are trained. */
static bz_spares repeated(build *b)
{
    bz_spares all;
    bz_spares_find((bz_layers *)b->from, &all);
    if (!all.why)
        return all;
    bz_value_id *stands = BZ_NEW(b->arena, bz_value_id, b->from->model->n_values);
    bz_spare *why = BZ_NEW(b->arena, bz_spare, b->from->n);
    for (int v = 0; v < b->from->model->n_values; v++)
        stands[v] = v;
    for (int i = 0; i < b->from->n; i++) {
        const bz_node *node = b->from->layer[i].node;
        bz_value_id v = all.why[i] == BZ_REPEATED && node->n_out == 1 ? node->out[0] : BZ_NO_VALUE;
        if (v < 0)
            continue;
        why[i] = BZ_REPEATED;
        stands[v] = all.stands[v];
    }
    return (bz_spares){.why = why, .stands = stands};
}

int written_find(build *b)
{
    bz_patterns *patterns, *variances = NULL;
    if (bz_patterns_load(NULL, &patterns, b->err) || bz_patterns_parse(VARIANCES, "variances", &variances, b->err))
        return -1;
    bz_spares spares = repeated(b);
    b->written = BZ_NEW(b->arena, written, b->from->n);
    find_all(b, patterns, &spares);
    find_all(b, variances, NULL);
    bz_patterns_free(patterns);
    bz_patterns_free(variances);
    return 0;
}

const written *written_at(const build *b, const bz_layer *l)
{
    bool main_graph = l >= b->from->layer && l < b->from->layer + b->from->n;
    const written *w = main_graph ? &b->written[l - b->from->layer] : NULL;
    return w && w->function ? w : NULL;
}

bool written_is_norm(const written *w)
{
    return w->function == LAYERNORM || w->function == RMSNORM || w->function == GROUPNORM;
}

/* The values by channel that the file has with dimensions of 1 beside them. */
static const char *by_channel(build *b, bz_value_id v)
{
    int64_t channels = bz_type_elements(&b->from->types[v]);
    return grad_reshape_dims(b, grad_name(b, v), &channels, 1);
}

static void groupnorm_forward(grad *g, const written *w)
{
    build *b = g->b;
    const char *out[] = {grad_y(g, 0)}, *in[] = {grad_name(b, w->x), by_channel(b, w->scale), by_channel(b, w->shift)};
    grad_layer(g, "GroupNormalization", b->opset < 21 ? "benanza.training" : "", in, 3, out, 1);
    GRAD_INT(b, "num_groups", w->groups);
    GRAD_REAL(b, "epsilon", w->epsilon);
}

void written_forward(grad *g, const written *w)
{
    build *b = g->b;
    if (w->function == GROUPNORM) {
        groupnorm_forward(g, w);
        return;
    }
    bool rms = w->function == RMSNORM;
    const char *in[] = {grad_name(b, w->x), grad_name(b, w->scale), rms ? NULL : grad_name(b, w->shift)}, *out[3];
    int n = 1 + !rms;
    out[0] = grad_y(g, 0);
    if (!rms)
        out[1] = grad_keep(g, 0, "mean");
    out[n] = grad_keep(g, n - 1, "deviation");
    n++;
    grad_layer(g, rms ? "SimplifiedLayerNormalization" : "LayerNormalization",
               rms || b->opset < 17 ? "com.microsoft" : "", in, n, out, n);
    GRAD_INT(b, "axis", w->axis);
    GRAD_REAL(b, "epsilon", w->epsilon);
}

static void give(build *b, bz_value_id v, const char *value)
{
    v = grad_id(b, v);
    if (b->needs[v])
        grad_add(b, v, value);
}

static void give_by_channel(build *b, bz_value_id v, const char *value)
{
    give(b, v, grad_reshape(b, value, &b->from->types[v]));
}

static void groupnorm_back(grad *g, const written *w)
{
    build *b = g->b;
    const char *out[3], *in[] = {grad_dy(g, 0), grad_name(b, w->x), by_channel(b, w->scale)};
    grad_nodes(b, "own:GroupNormalizationGrad", in, 3, out, 3);
    GRAD_INT(b, "num_groups", w->groups);
    GRAD_REAL(b, "epsilon", w->epsilon);
    give(b, w->x, out[0]);
    give_by_channel(b, w->scale, out[1]);
    give_by_channel(b, w->shift, out[2]);
}

void written_back(grad *g, const written *w)
{
    build *b = g->b;
    if (w->function == GROUPNORM) {
        groupnorm_back(g, w);
        return;
    }
    if (written_is_norm(w)) {
        bool rms = w->function == RMSNORM;
        const char *out[3],
            *in[] = {grad_dy(g, 0), grad_name(b, w->x), grad_name(b, w->scale), g->s->kept[0], g->s->kept[1]};
        grad_nodes(b, rms ? "ms:SimplifiedLayerNormalizationGrad" : "ms:LayerNormalizationGrad", in, rms ? 4 : 5, out,
                   rms ? 2 : 3);
        GRAD_INT(b, "axis", w->axis);
        give(b, w->x, out[0]);
        give(b, w->scale, out[1]);
        if (!rms)
            give(b, w->shift, out[2]);
        return;
    }
    if (w->function == VARIANCE) {
        const bz_type *mean = &b->from->types[w->mean];
        const char *dv = grad_scaled(b, grad_reshape(b, grad_dy(g, 0), mean), mean->dtype, w->factor);
        give(b, w->x, grad_node(b, "Mul", grad_name(b, w->difference), dv, NULL));
        return;
    }
    const char *dx = grad_node(b, "own:EltwiseGrad", grad_dy(g, 0), grad_name(b, grad_id(b, w->x)), NULL);
    GRAD_TEXT(b, "function", w->function);
    GRAD_TEXT(b, "uses", "x");
    if (w->by_tanh)
        GRAD_TEXT(b, "approximate", "tanh");
    give(b, w->x, dx);
}
