/* A model as a whole: how many layers, of which classes, and what they cost together. */
#include "modelproc/modelproc.h"

#include <stdlib.h>
#include <string.h>

bool bz_layer_is_not_constant(const bz_layer *layer)
{
    return layer->class != BZ_CONSTANT;
}

static bool listed(bool fold, const bz_layer *layer)
{
    return !fold || bz_layer_is_not_constant(layer);
}

static bool has_open_result(const bz_layer *layer)
{
    for (int k = 0; k < layer->n_out; k++)
        if (layer->out[k].kind == BZ_TYPE_TENSOR && !bz_type_is_static(&layer->out[k]))
            return true;
    return false;
}

/* By value: whether a folded layer makes it, and whether it was seen. */
typedef struct {
    bool *made, *seen;
} weights;

/* A constant that stands in the file: an initializer, or a node that says nothing else. */
static bool is_source(const bz_layer *layer)
{
    return strncmp(layer->node->op, "Constant", strlen("Constant")) == 0; /* or ConstantOfShape */
}

static void find_made(const bz_layer *layers, int n, weights *w)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < layers[i].n_out && !bz_layer_is_not_constant(&layers[i]) && !is_source(&layers[i]); k++)
            if (layers[i].node->out[k] >= 0)
                w->made[layers[i].node->out[k]] = true;
        for (int b = 0; b < layers[i].n_bodies; b++)
            find_made(layers[i].bodies[b].layers, layers[i].bodies[b].n, w);
    }
}

static bool makes_seen(const bz_layer *layer, const weights *w)
{
    for (int k = 0; k < layer->n_out; k++)
        if (layer->node->out[k] >= 0 && w->seen[layer->node->out[k]])
            return true;
    return false;
}

/* Weights are the constants that layers compute with, wherever the file keeps them, also behind layers that are folded.
 * Shapes, indices and masks are none, nor are single numbers, nor scales of quantized weights. Shared ones count once. What a
 * function is given counts where it computes with it. */
static void count_weights(const bz_layers *l, const bz_layer *layer, weights *w, int64_t *sum)
{
    if (layer->node->function >= 0 && layer->n_bodies)
        return;
    for (int k = 0; k < layer->n_in; k++) {
        const bz_type *t = &layer->in[k];
        bz_value_id v = layer->node->in[k] < 0 ? BZ_NO_VALUE : l->source[layer->node->in[k]];
        if (v < 0 || !layer->in_constant[k] || layer->in_setting[k] || w->seen[v])
            continue;
        bool number = bz_dtype_is_float(t->dtype) || (bz_dtype_is_int(t->dtype) && bz_dtype_bits(t->dtype) <= 8) ||
                      (t->dtype == BZ_I32 && layer->class == BZ_COMPUTE) ||
                      (k == 0 && !strcmp(layer->kind, "dequantize")); /* biases of 32 bits, weights of 16 */
        w->seen[v] = true;
        if (!w->made[v] && number && t->kind == BZ_TYPE_TENSOR && t->rank > 0 && bz_type_elements(t) > 0)
            bz_count_add(sum, bz_type_elements(t));
    }
}

/* What a sum over bodies takes for granted. */
static void count_guesses(const bz_layer *layer, bz_totals *t)
{
    bool open = false;
    for (int b = 0; b < layer->n_bodies; b++)
        open |= !layer->bodies[b].trips_known;
    if (open)
        (strcmp(layer->kind, "if") ? t->loops_open++ : t->branches++);
}

/* From the last layer to the first: what is folded counts where something behind it uses it. */
static void count_layers(const bz_layers *l, bool fold, const bz_layer *layers, int n, weights *w, bz_totals *t)
{
    for (int i = n; i-- > 0;) {
        const bz_layer *layer = &layers[i];
        t->layers += listed(fold, layer);
        t->per_class[layer->class]++;
        t->open += has_open_result(layer);
        t->unknown += !strcmp(layer->kind, "unknown");
        count_guesses(layer, t);
        for (int b = 0; b < layer->n_bodies; b++)
            count_layers(l, fold, layer->bodies[b].layers, layer->bodies[b].n, w, t);
        if (bz_layer_is_not_constant(layer) || (!is_source(layer) && makes_seen(layer, w)))
            count_weights(l, layer, w, &t->params);
    }
}

void bz_totals_make(const bz_layers *l, bool fold, bz_totals *out)
{
    bz_totals t = {0};
    BZ_SCOPED(bz_unique) u = {0};
    bz_unique_add(&u, l, 0, fold ? bz_layer_is_not_constant : NULL);
    t.unique = u.n;
    size_t values = (size_t)l->model->n_values + 1;
    weights w = {bz_zeroed(values, sizeof *w.made), bz_zeroed(values, sizeof *w.seen)};
    find_made(l->layer, l->n, &w);
    count_layers(l, fold, l->layer, l->n, &w, &t);
    free(w.seen);
    free(w.made);
    bz_count_add(&t.params, l->trained);
    t.inside = t.layers;
    for (int i = 0; i < l->n; i++) {
        const bz_layer *layer = &l->layer[i];
        t.inside -= listed(fold, layer);
        bz_count_add(&t.macs, layer->macs);
        bz_count_add(&t.flops, layer->flops);
        bz_count_add(&t.bytes, layer->bytes);
    }
    *out = t;
}
