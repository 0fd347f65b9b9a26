/* Memory of an iteration by liveness: layers run in their order, a result is there from its layer to the last one that reads it.
 * Where frameworks differ it is what PyTorch does on a processor, which tests/bench/training_memory.py measures. */
#include "training/build.h"

#include <string.h>

typedef struct {
    const bz_training *t;
    bz_value_id *root; /* [n_values] whose memory it lies in */
    bz_held *held;     /* [n_values] of a root: what it is for */
    int *last;         /* [n_values] of a root: the layer behind which it is free; INT32_MAX: never */
    bool *there;
    char *times; /* [n_values] a value is kept so often; 0: once */
} liveness;

/* Results that are kept several times over. PyTorch's dropout multiplies by a tensor of numbers where ONNX's mask has a byte for each. It computes recurrent layers step by step. Of LSTM it keeps for each step the cell and its
 * tanh, the state and, again, all states in one tensor. Of GRU it keeps the three gates, copies of two operands that are then
 * multiplied in place, and the new state's tanh. */
static const struct {
    const char *kind;
    int result, times;
} KEPT[] = {{"dropout", 1, 4},
            {"lstm_training", 0, 2},
            {"lstm_training", 3, 2},
            {"gru_training", 0, 2},
            {"gru_training", 2, 2}};

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

static bool is_recurrent_gradient(const bz_layer *l)
{
    return bz_has_word("lstm_grad gru_grad rnn_grad", l->kind) && l->n_in > 8 && l->in[1].rank == 3 &&
           l->in[1].dims[0] > 0;
}

/* A gradient that nobody else holds takes the next one that is added to it. */
static bool adds_in_place(const liveness *m, const bz_layer *l, int i)
{
    if (m->t->layers->phase[i] != BZ_TRAIN_BACKWARD || strcmp(l->kind, "add") != 0)
        return false;
    bz_value_id first = root_of(m, l->node->in[0]);
    return m->last[first] == i && bz_type_elements(&l->in[0]) == bz_type_elements(&l->out[0]);
}

/* PyTorch keeps what was pooled for the backward pass, though only its shape is read there. */
static void keep_pooled(liveness *m, const bz_layer *l)
{
    bz_value_id x = root_of(m, l->node->in[0]);
    for (int k = 0; k < l->n_out; k++)
        if (l->node->out[k] >= 0 && m->last[x] < m->last[root_of(m, l->node->out[k])])
            m->last[x] = m->last[root_of(m, l->node->out[k])];
}

static void note_readings(liveness *m, int layer)
{
    const bz_layer *l = &m->t->layers->layer[layer];
    for (int k = 0; k < l->n_in; k++)
        if (l->node->in[k] >= 0 && m->last[root_of(m, l->node->in[k])] < layer)
            m->last[root_of(m, l->node->in[k])] = layer;
}

/* A normalization of groups that the file writes out, with scale and shift behind it, is one layer in frameworks: that keeps its operand, and
 * computes again what the scale is multiplied by. */
static void forget_normalized(liveness *m)
{
    const bz_layers *l = m->t->layers;
    for (int i = 0; i < l->n && l->phase[i] == BZ_TRAIN_FORWARD; i++) {
        const bz_node *node = l->layer[i].node;
        if (!strcmp(l->layer[i].kind, "instancenorm") && node->n_out && node->out[0] >= 0)
            m->there[root_of(m, node->out[0])] = true;
        for (int k = 0; k < 2 && !strcmp(l->layer[i].kind, "mul") && node->in[0] >= 0 && node->in[1] >= 0; k++)
            if (m->there[root_of(m, node->in[k])] && m->t->held[root_of(m, node->in[!k])] == BZ_HELD_WEIGHT)
                m->last[root_of(m, node->in[k])] = i;
    }
    for (int i = 0; i < l->n && l->phase[i] == BZ_TRAIN_FORWARD; i++) /* where others read it, too */
        note_readings(m, i);
    memset(m->there, 0, (size_t)l->model->n_values * sizeof *m->there);
}

static void find_last(liveness *m)
{
    const bz_layers *l = m->t->layers;
    for (int i = 0; i < l->n; i++)
        note_readings(m, i);
    forget_normalized(m);
    for (int i = 0; i < l->n; i++)
        if (l->phase[i] == BZ_TRAIN_FORWARD && held_pools(l->layer[i].node) && l->layer[i].node->in[0] >= 0)
            keep_pooled(m, &l->layer[i]);
    for (int i = 0; i < m->t->n_weights; i++) /* they are given back when the next iteration begins */
        if (m->t->weight[i].gradient >= 0)
            m->last[root_of(m, m->t->weight[i].gradient)] = l->n - 1;
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

/* Exporters order the gates of recurrent weights as ONNX has them: frameworks do not, and have no second copy. */
static bool orders_weights(const liveness *m, const bz_layer *l, int i)
{
    if (m->t->layers->phase[i] != BZ_TRAIN_FORWARD || strcmp(l->kind, "concat") != 0)
        return false;
    for (int k = 0; k < l->n_in; k++)
        if (l->node->in[k] < 0 || m->t->held[root_of(m, l->node->in[k])] != BZ_HELD_WEIGHT)
            return false;
    return true;
}

/* So their gradients are not cut into gates and put back: they stay where the recurrent layer left them. */
static bool orders_gradients(const liveness *m, const bz_layer *l, int i)
{
    if (m->t->layers->phase[i] != BZ_TRAIN_BACKWARD || l->n_in < 2 || l->node->in[0] < 0 || l->node->in[1] < 0)
        return false;
    bz_value_id first = root_of(m, l->node->in[0]);
    return m->t->held[first] == BZ_HELD_GRADIENT &&
           (!strcmp(l->kind, "slice_grad") || (!strcmp(l->kind, "add") && root_of(m, l->node->in[1]) == first));
}

static void find_roots(liveness *m)
{
    const bz_layers *l = m->t->layers;
    for (int i = 0; i < l->n; i++) {
        const bz_layer *layer = &l->layer[i];
        if (layer->n_in && layer->node->in[0] >= 0 &&
            (is_view(layer) || orders_weights(m, layer, i) || orders_gradients(m, layer, i)))
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
    for (int i = 1; i < m->times[v] && n > 0; i++)
        bz_count_add(&n, bz_type_bytes(&m->t->layers->types[v]));
    return n > 0 ? n : 0;
}

static void find_times(liveness *m)
{
    const bz_layers *l = m->t->layers;
    for (int i = 0; i < l->n; i++)
        for (size_t k = 0; k < sizeof KEPT / sizeof *KEPT; k++)
            if (!strcmp(l->layer[i].kind, KEPT[k].kind) && KEPT[k].result < l->layer[i].n_out &&
                l->layer[i].node->out[KEPT[k].result] >= 0)
                m->times[l->layer[i].node->out[KEPT[k].result]] = (char)KEPT[k].times;
}

/* Adam's step of one weight. */
static bool updates_one(const bz_layer *l)
{
    enum { RATE_STEP_WEIGHT_GRADIENT_STATES = 6 };
    return bz_has_word("adam adamw", l->kind) && l->n_in == RATE_STEP_WEIGHT_GRADIENT_STATES &&
           bz_type_bytes(&l->in[2]) > 0;
}

/* Convolutions want blocks of channels next to each other: while one runs, each operand and its result lie there once more. Fewer channels
 * than a block has are taken as they lie. Gradients of weights of a filter that has more rows than the image are computed by products, for which
 * oneDNN takes four times the weights. A recurrent layer multiplies its operand of all steps before the first step, one direction after
 * the other; going back, the gradients of its gates are there for all steps of a direction. Adam divides by a tensor that it makes in two steps, each
 * a tensor of the weight's size, and keeps the one of the weight before until that is done. */
static int64_t bytes_inside(const bz_layer *l, const bz_layer *before)
{
    enum { BLOCK = 8 };
    int64_t sum = 0;
    if (updates_one(l)) {
        sum = updates_one(before) ? bz_type_bytes(&before->in[2]) : 0;
        bz_count_add(&sum, bz_type_bytes(&l->in[2]));
        bz_count_add(&sum, bz_type_bytes(&l->in[2]));
        return sum;
    }
    bool back = is_recurrent_gradient(l);
    if (back || (bz_has_word("lstm_training gru_training rnn_training", l->kind) && l->in[1].rank == 3 &&
                 l->in[1].dims[0] > 0)) {
        int64_t gates = bz_type_bytes(back ? &l->in[!strcmp(l->kind, "lstm_grad") ? 8 : 7] : &l->out[l->n_out - 1]);
        return gates > 0 ? gates / l->in[1].dims[0] : 0;
    }
    if (!bz_has_word("conv conv_data conv_weights", l->kind))
        return 0;
    if (!strcmp(l->kind, "conv_weights") && l->in[0].rank == 4 && l->out[0].rank == 4 &&
        l->in[0].dims[2] < l->out[0].dims[2])
        for (int k = 0; k < 4 && bz_type_bytes(&l->out[0]) > 0; k++)
            bz_count_add(&sum, bz_type_bytes(&l->out[0]));
    for (int k = 0; k < l->n_in + l->n_out; k++) {
        const bz_type *t = k < l->n_in ? &l->in[k] : &l->out[k - l->n_in];
        bool blocked = t->kind == BZ_TYPE_TENSOR && t->rank > 2 && t->dims[0] >= 1 && t->dims[1] >= BLOCK;
        int64_t n = blocked ? bz_type_bytes(t) : 0;
        bz_count_add(&sum, n > 0 ? n : 0);
    }
    return sum;
}

static void take(liveness *m, bz_value_id v, int64_t *held)
{
    if (m->there[v])
        return;
    m->there[v] = true;
    bz_count_add(&held[m->held[v]], bytes_of(m, v));
}

static void drop(liveness *m, bz_value_id v, int layer, int64_t *held)
{
    bz_value_id r = v >= 0 ? root_of(m, v) : v;
    if (r < 0 || !m->there[r] || m->last[r] > layer)
        return;
    m->there[r] = false;
    held[m->held[r]] -= bytes_of(m, r);
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

/* Recurrent layers go back step by step, one direction after the other: what a step kept is free behind it. So results, which are whole behind
 * the last step of a direction, lie beside what the other one kept. */
static void go_back(liveness *m, const bz_layer *l, int layer, int64_t *held, int64_t *left)
{
    int64_t before[BZ_HELD_CLASSES], directions = l->in[1].dims[0];
    memcpy(before, held, sizeof before);
    for (int k = 0; k < l->n_in; k++)
        drop(m, l->node->in[k], layer, held);
    for (int c = 0; c < BZ_HELD_CLASSES; c++) {
        left[c] = (before[c] - held[c]) / directions * (directions - 1);
        held[c] += left[c];
    }
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
        int64_t left[BZ_HELD_CLASSES] = {0};
        if (is_recurrent_gradient(layer)) {
            look(held, l->phase[i], i, out);
            go_back(m, layer, i, held, left);
        }
        for (int k = 0; k < layer->n_out; k++)
            if (layer->node->out[k] >= 0)
                take(m, root_of(m, layer->node->out[k]), held);
        int64_t rest = held[BZ_HELD_REST];
        bz_count_add(&held[BZ_HELD_REST], bytes_inside(layer, i ? layer - 1 : layer));
        look(held, l->phase[i], i, out);
        held[BZ_HELD_REST] = rest;
        for (int c = 0; c < BZ_HELD_CLASSES; c++)
            held[c] -= left[c];
        for (int k = 0; k < layer->n_in + layer->n_out; k++)
            drop(m, k < layer->n_in ? layer->node->in[k] : layer->node->out[k - layer->n_in], i, held);
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
    BZ_SCOPED(bz_arena) arena = {0};
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
    m.times = BZ_NEW(&arena, char, (size_t)n + 1);
    find_roots(&m);
    m.held = bz_arena_dup(&arena, t->held, (size_t)n * sizeof *t->held);
    for (int i = 0; i < t->n_weights; i++) { /* a sum of several lies where the first of them does */
        bz_value_id g = t->weight[i].gradient >= 0 ? root_of(&m, t->weight[i].gradient) : BZ_NO_VALUE;
        if (g >= 0 && m.held[g] == BZ_HELD_REST)
            m.held[g] = BZ_HELD_GRADIENT;
    }
    find_times(&m);
    run(&m, out);
}
