/* Memory of an iteration by liveness: layers run in their order, a result is there from its layer to the last one that reads it. */
#include "training/training.h"

#include <string.h>

typedef struct {
    const bz_training *t;
    bz_value_id *root; /* [n_values] whose memory it lies in */
    int *last;         /* [n_values] of a root: the layer behind which it is free; INT32_MAX: never */
    bool *there;
} liveness;

static bz_value_id root_of(const liveness *m, bz_value_id v)
{
    while (m->root[v] != v)
        v = m->root[v];
    return v;
}

/* Frameworks with strides cut and split without a copy. */
static bool is_view(const bz_layer *l)
{
    return l->class == BZ_VIEW || bz_has_word("slice split identity expand", l->kind);
}

/* A gradient that nobody else holds takes the next one that is added to it. */
static bool adds_in_place(const liveness *m, const bz_layer *l, int i)
{
    if (m->t->layers->phase[i] != BZ_TRAIN_BACKWARD || strcmp(l->kind, "add") != 0)
        return false;
    bz_value_id first = root_of(m, l->node->in[0]);
    return m->last[first] == i && bz_type_elements(&l->in[0]) == bz_type_elements(&l->out[0]);
}

static void find_last(liveness *m)
{
    const bz_layers *l = m->t->layers;
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < l->layer[i].n_in; k++) {
            bz_value_id v = l->layer[i].node->in[k];
            if (v >= 0 && m->last[root_of(m, v)] < i)
                m->last[root_of(m, v)] = i;
        }
    for (int k = 0; k < l->model->graph->n_outputs; k++)
        if (l->model->graph->outputs[k] >= 0)
            m->last[root_of(m, l->model->graph->outputs[k])] = INT32_MAX;
}

/* New weights and states take the place of the old. */
static void replace_in_place(liveness *m, const bz_layer *l)
{
    const bz_node *node = l->node;
    if (!strcmp(node->op, "BatchNormInternal")) {
        for (int k = 1; k < 3 && k < l->n_out; k++)
            if (node->out[k] >= 0 && node->in[k + 2] >= 0)
                m->root[node->out[k]] = root_of(m, node->in[k + 2]);
        return;
    }
    for (int k = 0; k < l->n_out; k++) /* weights, gradients, states: results leave the gradients out */
        for (int j = 2; j < l->n_in; j++) {
            bz_held held = node->in[j] >= 0 ? m->t->held[node->in[j]] : BZ_HELD_REST;
            if (node->out[k] >= 0 && held != BZ_HELD_GRADIENT && held != BZ_HELD_REST &&
                m->root[node->out[k]] == node->out[k] && !m->there[node->in[j]] &&
                bz_type_elements(&l->in[j]) == bz_type_elements(&l->out[k])) {
                m->root[node->out[k]] = root_of(m, node->in[j]);
                m->there[node->in[j]] = true; /* taken */
                break;
            }
        }
}

static void find_roots(liveness *m)
{
    const bz_layers *l = m->t->layers;
    for (int i = 0; i < l->n; i++) {
        const bz_layer *layer = &l->layer[i];
        if (layer->n_in && layer->node->in[0] >= 0 && is_view(layer))
            for (int k = 0; k < layer->n_out; k++)
                if (layer->node->out[k] >= 0)
                    m->root[layer->node->out[k]] = root_of(m, layer->node->in[0]);
        if (l->phase[i] == BZ_TRAIN_UPDATE || !strcmp(layer->node->op, "BatchNormInternal"))
            replace_in_place(m, layer);
    }
    memset(m->there, 0, (size_t)l->model->n_values * sizeof *m->there);
    find_last(m);
    for (int i = 0; i < l->n; i++)
        if (adds_in_place(m, &l->layer[i], i)) {
            bz_value_id from = root_of(m, l->layer[i].node->in[0]), to = l->layer[i].node->out[0];
            m->root[to] = from;
            m->last[from] = m->last[to];
        }
}

static int64_t bytes_of(const liveness *m, bz_value_id v)
{
    int64_t n = bz_type_bytes(&m->t->layers->types[v]);
    return n > 0 ? n : 0;
}

static void take(liveness *m, bz_value_id v, int64_t *held)
{
    if (m->there[v])
        return;
    m->there[v] = true;
    bz_count_add(&held[m->t->held[v]], bytes_of(m, v));
}

static void look(const int64_t *held, bz_train_phase phase, int layer, bz_memory *out)
{
    int64_t sum = 0;
    for (int c = 0; c < BZ_HELD_CLASSES; c++) {
        bz_count_add(&sum, held[c]);
        if (held[c] > out->most[c])
            out->most[c] = held[c];
    }
    if (sum > out->phase_peak[phase])
        out->phase_peak[phase] = sum;
    if (sum <= out->peak)
        return;
    out->peak = sum;
    out->peak_layer = layer;
    memcpy(out->at_peak, held, sizeof out->at_peak);
}

static void run(liveness *m, bz_memory *out)
{
    const bz_layers *l = m->t->layers;
    int64_t held[BZ_HELD_CLASSES] = {0};
    for (int k = 0; k < l->model->graph->n_inputs; k++) {
        bz_value_id v = root_of(m, l->model->graph->inputs[k]);
        m->last[v] = INT32_MAX;
        take(m, v, held);
    }
    for (int i = 0; i < l->n; i++) {
        const bz_layer *layer = &l->layer[i];
        for (int k = 0; k < layer->n_out; k++)
            if (layer->node->out[k] >= 0)
                take(m, root_of(m, layer->node->out[k]), held);
        look(held, l->phase[i], i, out);
        for (int k = 0; k < layer->n_in + layer->n_out; k++) {
            bz_value_id v = k < layer->n_in ? layer->node->in[k] : layer->node->out[k - layer->n_in];
            bz_value_id r = v >= 0 ? root_of(m, v) : v;
            if (r < 0 || !m->there[r] || m->last[r] > i)
                continue;
            m->there[r] = false;
            held[m->t->held[r]] -= bytes_of(m, r);
        }
        if (l->phase[i] == BZ_TRAIN_FORWARD)
            out->kept = held[BZ_HELD_ACTIVATION];
    }
}

const char *bz_held_name(bz_held h)
{
    static const char *const NAMES[] = {"inputs", "weights", "gradients", "optimizer", "activations", "rest"};
    return NAMES[h];
}

void bz_memory_predict(const bz_training *t, bz_memory *out)
{
    bz_arena arena = {0};
    int n = t->model->n_values > 0 ? t->model->n_values : 0;
    liveness m = {.t = t};
    m.root = BZ_NEW(&arena, bz_value_id, (size_t)n + 1);
    m.last = BZ_NEW(&arena, int, (size_t)n + 1);
    m.there = BZ_NEW(&arena, bool, (size_t)n + 1);
    for (int v = 0; v < n; v++) {
        m.root[v] = v;
        m.last[v] = -1;
    }
    *out = (bz_memory){.peak_layer = -1};
    find_roots(&m);
    run(&m, out);
    bz_arena_free(&arena);
}
