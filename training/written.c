/* Functions of one value that exporters write out as several layers (GELU, SiLU): a framework has one layer for them, and keeps the operand alone. So
 * has their gradient here. */
#include "training/build.h"

#include <string.h>

static const struct {
    const char *pattern, *function;
} FUNCTIONS[] = {{"gelu", "gelu"}, {"silu", "swish"}};

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

int written_find(build *b)
{
    bz_patterns *patterns;
    const bz_match *match;
    if (bz_patterns_load(NULL, &patterns, b->err))
        return -1;
    int n = bz_patterns_find(patterns, (bz_layers *)b->from, &match);
    b->written = BZ_NEW(b->arena, written, b->from->n);
    for (int i = 0; i < n; i++) {
        const char *function = function_of(match[i].pattern);
        bool taken = false;
        for (int k = 0; k < match[i].n; k++)
            taken |= b->written[match[i].layer[k]].function != NULL;
        bz_value_id x = function && !taken ? operand_of(b, &match[i]) : BZ_NO_VALUE;
        for (int k = 0; k < match[i].n && x >= 0; k++)
            b->written[match[i].layer[k]] =
                (written){.function = function, .x = x, .last = k == match[i].n - 1, .by_tanh = by_tanh(b, &match[i])};
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

void written_back(grad *g, const written *w)
{
    build *b = g->b;
    bz_value_id x = grad_id(b, w->x);
    const char *dx = grad_node(b, "own:EltwiseGrad", grad_dy(g, 0), grad_name(b, x), NULL);
    GRAD_TEXT(b, "function", w->function);
    GRAD_TEXT(b, "uses", "x");
    if (w->by_tanh)
        GRAD_TEXT(b, "approximate", "tanh");
    b->grad[x] = b->grad[x] ? grad_node(b, "Add", b->grad[x], dx, NULL) : dx;
}
