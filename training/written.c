/* Functions of one value that exporters write out as several layers: a framework has one layer for them. It keeps the operand of GELU and SiLU
 * alone, and so does their gradient here. Of a normalization of layers it keeps mean and deviation, which no layer of the written form makes: that
 * one is a single layer here, too. */
#include "training/build.h"

#include <string.h>

static const char LAYERNORM[] = "layernorm", RMSNORM[] = "rmsnorm", GROUPNORM[] = "groupnorm";
static const struct {
    const char *pattern, *function;
} FUNCTIONS[] = {
    {"gelu", "gelu"}, {"silu", "swish"}, {LAYERNORM, LAYERNORM}, {RMSNORM, RMSNORM}, {GROUPNORM, GROUPNORM}};

static const char *function_of(const char *pattern)
{
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (!strcmp(FUNCTIONS[i].pattern, pattern))
            return FUNCTIONS[i].function;
    return NULL;
}

static bool makes(const bz_layer *layer, const bz_match *m, bz_value_id v)
{
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
                   .x = b->from->layer[m->layer[0]].node->in[0],
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
            if (v < 0 || v == w->x || makes(b->from->layer, m, v))
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

static bool find_function(build *b, const bz_match *m, const char *function, written *w)
{
    if (function == LAYERNORM || function == RMSNORM)
        return find_norm(b, m, function, w);
    if (function == GROUPNORM)
        return find_groupnorm(b, m, w);
    *w = (written){.function = function, .x = operand_of(b, m), .by_tanh = by_tanh(b, m)};
    return w->x >= 0;
}

int written_find(build *b)
{
    bz_patterns *patterns;
    const bz_match *match;
    if (bz_patterns_load(NULL, &patterns, b->err))
        return -1;
    int n = bz_patterns_find(patterns, (bz_layers *)b->from, NULL, &match);
    b->written = BZ_NEW(b->arena, written, b->from->n);
    for (int i = 0; i < n; i++) {
        const char *function = function_of(match[i].pattern);
        bool taken = false;
        for (int k = 0; k < match[i].n; k++)
            taken |= b->written[match[i].layer[k]].function != NULL;
        written w;
        bool is = function && !taken && find_function(b, &match[i], function, &w);
        for (int k = 0; k < match[i].n && is; k++) {
            w.last = k == match[i].n - 1;
            b->written[match[i].layer[k]] = w;
        }
    }
    bz_patterns_free(patterns);
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
    const char *dx = grad_node(b, "own:EltwiseGrad", grad_dy(g, 0), grad_name(b, grad_id(b, w->x)), NULL);
    GRAD_TEXT(b, "function", w->function);
    GRAD_TEXT(b, "uses", "x");
    if (w->by_tanh)
        GRAD_TEXT(b, "approximate", "tanh");
    give(b, w->x, dx);
}
