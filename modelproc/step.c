/* Whether a model is a step of a language model, and how many tokens it is. */
#include "modelproc/modelproc.h"

#include <string.h>

/* "past_key_values.0.key", "cache_k_0": what goes on from step to step. */
static bool is_cache(const char *name, const bz_type *t)
{
    return t->kind == BZ_TYPE_TENSOR && t->rank >= 4 && (strcasestr(name, "past") || strcasestr(name, "cache"));
}

/* Token numbers [sequences, tokens] come in first; caches are [..., length, width]. */
bool bz_layers_step(const bz_layers *l, bz_token_step *out)
{
    const bz_graph *g = l->model ? l->model->graph : NULL;
    const bz_type *ids = g && g->n_inputs ? &l->types[g->inputs[0]] : NULL;
    if (!ids || ids->kind != BZ_TYPE_TENSOR || ids->rank != 2 || !bz_dtype_is_int(ids->dtype) ||
        bz_type_elements(ids) < 1)
        return false;
    for (int k = 1; k < g->n_inputs; k++) {
        const bz_type *t = &l->types[g->inputs[k]];
        if (!is_cache(l->model->values[g->inputs[k]].name, t) || bz_is_symbol(t->dims[t->rank - 2]))
            continue;
        *out = (bz_token_step){ids->dims[0], ids->dims[1], t->dims[t->rank - 2]};
        return true;
    }
    return false;
}
