/* What each value of an iteration is for, as far as its memory is concerned. */
#include "training/build.h"

#include <string.h>

static bz_held made_by(const bz_training *t, int layer, const bool *kept, bz_value_id v)
{
    if (t->layers->phase[layer] == BZ_TRAIN_FORWARD && kept[v])
        return BZ_HELD_ACTIVATION;
    return BZ_HELD_REST;
}

bool held_pools(const bz_node *node)
{
    return bz_has_word("MaxPool AveragePool", node->op) && node->n_in > 0;
}

void held_find(bz_training *t)
{
    const bz_graph *g = t->model->graph;
    int n = t->model->n_values;
    bz_held *held = BZ_NEW(&t->arena, bz_held, n + 1);
    bool *kept = BZ_NEW(&t->arena, bool, n + 1);
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++)
            if ((t->layers->phase[i] == BZ_TRAIN_BACKWARD || held_pools(&g->nodes[i])) && g->nodes[i].in[k] >= 0)
                kept[g->nodes[i].in[k]] = true;
    for (int i = 0; i < g->n_nodes; i++) {
        const bz_node *node = &g->nodes[i];
        const bool last = t->layers->phase[i] == BZ_TRAIN_UPDATE;
        const bool update = last && node->n_in > 2 && strcmp(node->op, "IsAllFinite") != 0; /* rate, step, weights … */
        for (int k = 0; k < node->n_in; k++) /* inputs of an update that are no weights: its states */
            if (update && node->in[k] >= 0 && k >= 2 && held[node->in[k]] != BZ_HELD_GRADIENT)
                held[node->in[k]] = BZ_HELD_STATE;
        for (int k = 0; k < node->n_out; k++)
            if (node->out[k] >= 0)
                held[node->out[k]] = update ? BZ_HELD_STATE
                                     : last ? BZ_HELD_GRADIENT /* made wide, the scale taken off */
                                            : made_by(t, i, kept, node->out[k]);
    }
    for (int i = 0; i < g->n_nodes; i++) /* of recurrent layers, in ONNX's order of gates */
        for (int k = 1; bz_has_word("LSTMGrad GRUGrad RNNGrad", g->nodes[i].op) && k < g->nodes[i].n_out && k < 4; k++)
            if (g->nodes[i].out[k] >= 0)
                held[g->nodes[i].out[k]] = BZ_HELD_GRADIENT;
    for (int i = 0; i < t->n_weights; i++) {
        const bz_weight *w = &t->weight[i];
        held[w->value] = BZ_HELD_WEIGHT;
        if (w->updated >= 0)
            held[w->updated] = BZ_HELD_WEIGHT;
        if (w->gradient >= 0)
            held[w->gradient] = BZ_HELD_GRADIENT;
    }
    for (int v = 0; v < n; v++)
        if (t->next && t->next[v] >= 0 && held[v] == BZ_HELD_INPUT) /* running means */
            held[v] = held[t->next[v]] = BZ_HELD_WEIGHT;
    t->held = held;
}

void bz_training_costs(const bz_training *t, bz_phase_cost out[BZ_TRAIN_PHASES])
{
    for (int p = 0; p < BZ_TRAIN_PHASES; p++)
        out[p] = (bz_phase_cost){.phase = bz_train_phase_name((bz_train_phase)p)};
    for (int i = 0; i < t->layers->n; i++) {
        const bz_layer *l = &t->layers->layer[i];
        bz_phase_cost *c = &out[t->layers->phase[i]];
        c->layers++;
        bz_count_add(&c->macs, l->macs);
        bz_count_add(&c->flops, l->flops);
        bz_count_add(&c->bytes, l->bytes);
    }
}
