/* From an inference model to an iteration: forward, loss, backward from the last layer to the first, update. */
#include "training/build.h"

#include <stdlib.h>
#include <string.h>

/* The graph that a layer surely is, once: a function's, or the branch that is taken. NULL: it is none. */
static const bz_body *only_body(const bz_layer *l, const bz_value_id **outputs)
{
    const bz_body *taken = NULL;
    for (int k = 0; k < l->n_bodies && !strcmp(l->kind, "if"); k++)
        if (l->bodies[k].trips && l->bodies[k].trips_known)
            taken = &l->bodies[k];
    if (taken) {
        *outputs = bz_node_attr(l->node, taken->name)->graph->outputs;
        return taken;
    }
    *outputs = l->n_bodies == 1 ? l->bodies[0].outputs : NULL;
    return *outputs ? &l->bodies[0] : NULL;
}

/* Calls of the model's own functions, and branches that are surely taken, give way to what they do. */
static void flatten(build *b, const bz_layer *layers, int n)
{
    for (int i = 0; i < n; i++) {
        const bz_layer *l = &layers[i];
        const bz_value_id *outputs;
        const bz_body *body = only_body(l, &outputs);
        if (!body) {
            BZ_ARENA_ADD(b->arena, b->steps, b->n_steps) = (step){.layer = l, .row = derivative_find(l->node)};
            continue;
        }
        for (int k = 0; k < l->n_in && body->inputs; k++)
            if (body->inputs[k] >= 0)
                b->same[body->inputs[k]] = l->node->in[k];
        flatten(b, body->layers, body->n);
        for (int k = 0; k < l->n_out; k++)
            if (l->node->out[k] >= 0)
                b->same[l->node->out[k]] = outputs[k];
    }
}

/* What makes reals out of other things makes them in the model's type: it is made narrow behind that. */
static void narrow_result(grad *g, bz_value_id v)
{
    build *b = g->b;
    if (!b->options->dtype || b->from->types[v].dtype != BZ_F32)
        return;
    b->name[v] = grad_cast(b, b->name[v], b->options->dtype);
}

static bool makes_reals(const bz_layer *l)
{
    for (int k = 0; k < l->n_in; k++)
        if (l->node->in[k] >= 0 && l->in[k].dtype == BZ_F32 && strcmp(l->node->op, "Cast") != 0)
            return false;
    return true;
}

int forward_put(build *b, step *s)
{
    grad g = {b, s, s->layer};
    const bz_node *node = s->layer->node;
    bool differentiated = !strcmp(node->op, "BatchNormalization") || !strcmp(node->op, "Dropout");
    b->layer = s->layer->name;
    bz_value_id made = node->n_out == 1 ? grad_id(b, node->out[0]) : BZ_NO_VALUE;
    if (made >= 0 && (b->turned[made] >= 0 || (b->trained[made] && !strcmp(node->op, "Constant"))))
        return 0;
    for (int k = 0; k < node->n_in; k++)
        differentiated |= grad_wants(&g, k);
    if (s->layer->n_bodies)
        return grad_fail(&g, "it runs a graph of its own: there is no derivative for that");
    const written *w = written_at(b, s->layer);
    if (w && written_is_norm(w)) {
        if (w->last)
            written_forward(&g, w);
        return 0;
    }
    int rc = differentiated && s->row && s->row->forward ? s->row->forward(&g)
                                                         : grad_copy(&g, node->op, node->domain, NULL, 0);
    for (int k = 0; k < node->n_out && !rc && makes_reals(s->layer); k++)
        if (node->out[k] >= 0)
            narrow_result(&g, grad_id(b, node->out[k]));
    return rc;
}

static int put_backward(build *b, step *s)
{
    grad g = {b, s, s->layer};
    bool reached = false, wanted = false;
    for (int k = 0; k < s->layer->n_out; k++)
        reached |= grad_dy(&g, k) != NULL;
    for (int k = 0; s->slices && k < s->slices->n; k++)
        reached |= grad_dy(&(grad){b, NULL, s->slices->of[k]->layer}, 0) != NULL;
    for (int k = 0; k < s->layer->n_in; k++)
        wanted |= grad_wants(&g, k);
    if (!reached || !wanted || (s->row && !s->row->back))
        return 0;
    if (!s->row)
        return grad_fail(&g, "the operator has no derivative here: benanza layers --train needs one for every layer "
                             "between a weight and the loss");
    for (int k = 0; k < s->layer->n_in + s->layer->n_out; k++) {
        const bz_type *t = k < s->layer->n_in ? &s->layer->in[k] : &s->layer->out[k - s->layer->n_in];
        if (t->kind != BZ_TYPE_NONE && (t->kind != BZ_TYPE_TENSOR || !bz_type_is_static(t)))
            return grad_fail(&g, "its shapes depend on data: there is no derivative for that");
    }
    b->layer = s->layer->name;
    const written *w = written_at(b, s->layer);
    int rc = w ? 0 : s->row->back(&g);
    if (w && w->last)
        written_back(&g, w);
    grad_added(b);
    return rc;
}

static int put_input(build *b, bz_value_id v, const char *name, bool narrow)
{
    const bz_type *t = &b->from->types[v];
    if (t->kind != BZ_TYPE_TENSOR || !bz_type_is_static(t) || t->rank < 0)
        return bz_fail(b->err, BZ_INCOMPLETE, "input '%s' is no tensor of known shape: it cannot be trained with",
                       name);
    bz_draft_input(&b->draft, name, narrow ? grad_narrow(b, t->dtype) : t->dtype, t->rank, t->dims);
    return 0;
}

static int put_constant(build *b, bz_value_id v, const char *name)
{
    const bz_tensor *t = b->from->model->values[v].init;
    int bits = bz_dtype_bits(t->dtype);
    enum { KEEP = 1 << 16 };
    size_t size = (size_t)t->n * (size_t)(bits < 8 ? 0 : bits) / 8;
    if (!t->values && size <= KEEP && bits >= 8) {
        void *data = bz_arena_alloc(b->arena, size + 1);
        if (!bz_tensor_bytes(b->from->model, t, data, NULL)) {
            bz_draft_tensor(&b->draft, name, t->dtype, t->rank, t->dims, data, size);
            return 0;
        }
    }
    return put_input(b, v, name, false); /* its values do not matter, or are not to be had */
}

/* Everything that nodes read and none of them makes. They stand in front: the order of the names is that of the file. */
static int put_sources(build *b)
{
    const bz_model *m = b->from->model;
    const bz_graph *g = m->graph;
    for (int i = 0; i < g->n_inputs; i++)
        if (put_input(b, g->inputs[i], grad_name(b, g->inputs[i]), true))
            return -1;
    b->phase = BZ_TRAIN_FORWARD;
    b->layer = "weights";
    for (int i = 0; i < b->n_order; i++) {
        bz_value_id v = b->order[i];
        b->master[v] = grad_name(b, v);
        if (put_input(b, v, b->master[v], false))
            return -1;
        if (b->options->dtype && b->from->types[v].dtype == BZ_F32)
            b->name[v] = grad_cast(b, b->master[v], b->options->dtype);
    }
    for (int v = 0; v < m->n_values; v++) {
        if (!m->values[v].init || b->trained[v] || grad_id(b, v) != v)
            continue;
        const char *name = grad_name(b, v);
        b->master[v] = name;
        if (b->state[v] ? put_input(b, v, name, true) : put_constant(b, v, name))
            return -1;
        if (b->options->dtype && !b->state[v] && m->values[v].init->dtype == BZ_F32)
            b->name[v] = grad_cast(b, name, b->options->dtype);
    }
    return 0;
}

static void put_results(build *b)
{
    bz_draft_output(&b->draft, b->loss, b->loss_type, 0, NULL);
    for (int v = 0; v < b->from->model->n_values; v++)
        if (b->state[v] && b->updated[v]) {
            const bz_type *t = &b->from->types[v];
            bz_draft_output(&b->draft, b->updated[v], grad_narrow(b, t->dtype), t->rank, t->dims);
        }
}

static bool is_training(const bz_layer *l)
{
    const char *kind = strrchr(l->kind, '_');
    return (kind && !strcmp(kind, "_grad")) || !strcmp(l->node->domain, "benanza.training") ||
           !strcmp(l->node->domain, "ai.onnx.preview.training");
}

static int draft_all(build *b)
{
    flatten(b, b->from->layer, b->from->n);
    for (int i = 0; i < b->n_steps; i++)
        if (is_training(b->steps[i].layer))
            return bz_fail(
                b->err, BZ_USAGE,
                "layer '%s' (%s) is one of training: the model is an iteration already, and needs no --train",
                b->steps[i].layer->name, b->steps[i].layer->node->op);
    if (b->opset < 7)
        return bz_fail(b->err, BZ_INCOMPLETE,
                       "the model's operator set %d is too old to be trained: convert it to 7 or later", b->opset);
    if (weights_find(b) || written_find(b) || put_sources(b))
        return -1;
    slices_find(b);
    checkpoint_cut(b);
    b->phase = BZ_TRAIN_FORWARD;
    for (int i = 0; i < b->n_steps; i++)
        if (forward_put(b, &b->steps[i]))
            return -1;
    if (loss_build(b))
        return -1;
    b->phase = BZ_TRAIN_BACKWARD;
    for (int i = b->n_steps - 1; i >= 0; i--) {
        bool ends_part = i + 1 < b->n_steps && b->steps[i].part != b->steps[i + 1].part;
        if ((ends_part && checkpoint_again(b, i)) || put_backward(b, &b->steps[i]))
            return -1;
        if (b->late && b->late != &b->steps[i])
            sum_late(b);
    }
    for (int i = 0; i < b->n_order; i++)
        b->weight_grad[b->order[i]] = b->grad[b->order[i]];
    update_build(b);
    put_results(b);
    bz_draft_opset(&b->draft, "", b->opset);
    bz_draft_opset(&b->draft, "com.microsoft", 1);
    bz_draft_opset(&b->draft, "ai.onnx.preview.training", 1);
    bz_draft_opset(&b->draft, "benanza.training", 1);
    return 0;
}

static bz_value_id value_by_name(const bz_map *ids, const char *name)
{
    uint32_t v = name ? bz_map_get(ids, name, strlen(name)) : BZ_MAP_NONE;
    return v == BZ_MAP_NONE ? BZ_NO_VALUE : (bz_value_id)v;
}

static void note_weights(build *b, const bz_map *ids, bz_training *t)
{
    bz_weight *w = BZ_NEW(&t->arena, bz_weight, b->n_order);
    for (int i = 0; i < b->n_order; i++) {
        bz_value_id v = b->order[i];
        w[i] = (bz_weight){.name = bz_arena_str(&t->arena, b->master[v]),
                           .value = value_by_name(ids, b->master[v]),
                           .gradient = value_by_name(ids, b->weight_grad[v]),
                           .updated = value_by_name(ids, b->updated[v]),
                           .elements = bz_type_elements(&b->from->types[v])};
        w[i].type = t->layers->types[w[i].value];
        bz_count_add(&t->layers->trained, w[i].elements > 0 ? w[i].elements : 0);
    }
    t->weight = w;
    t->n_weights = b->n_order;
}

/* The update's operands are rate, step, weights, gradients, states; its results new weights, new states. */
static void note_states(const build *b, const bz_training *t, bz_value_id *next)
{
    int groups = 2 + bz_optimizer_states(b->options->optimizer);
    for (int i = 0; i < t->layers->n; i++) {
        const bz_node *node = t->layers->layer[i].node;
        if (t->layers->phase[i] != BZ_TRAIN_UPDATE || node->n_in < 2 || node->in[0] != t->rate)
            continue;
        int n = (node->n_in - 2) / groups;
        for (int k = 0; k < n * (groups - 1); k++)
            next[node->in[2 + k + (k < n ? 0 : n)]] = node->out[k];
    }
}

/* What inputs begin as, and what they are in the next iteration. */
static void note_inputs(build *b, const bz_map *ids, bz_training *t)
{
    const bz_model *from = b->from->model;
    const bz_tensor **first = BZ_NEW(&t->arena, const bz_tensor *, t->model->n_values + 1);
    bz_value_id *next = BZ_NEW(&t->arena, bz_value_id, t->model->n_values + 1);
    t->rate = value_by_name(ids, b->rate);
    t->step = value_by_name(ids, b->step);
    for (int v = 0; v < t->model->n_values; v++)
        next[v] = BZ_NO_VALUE;
    for (int v = 0; v < from->n_values; v++) {
        bz_value_id id = value_by_name(ids, b->master[v]);
        if (id < 0 || t->model->values[id].init)
            continue;
        first[id] = from->values[v].init;
        next[id] = value_by_name(ids, b->updated[v]);
    }
    note_states(b, t, next);
    t->from = from;
    t->first = first;
    t->next = next;
}

BZ_ENDS(end_file, bz_buf_free)

static int read_back(build *b, bz_training *t)
{
    bz_buf *file = BZ_NEW(&t->arena, bz_buf, 1);
    int64_t ir = b->from->model->ir_version;
    bz_draft_end(&b->draft, ir > 3 ? ir : 3, "training", file);
    bz_arena_keep(&t->arena, file, end_file);
    t->file = file;
    if (bz_model_parse(file->data, file->len, bz_arena_str(&t->arena, b->from->name), &t->model, b->err) ||
        bz_layers_infer(t->model, &(bz_infer_options){0}, &t->layers, b->err))
        return bz_fail_in(b->err, "the iteration of training");
    bz_train_phase *phase = BZ_NEW(&t->layers->arena, bz_train_phase, t->layers->n);
    for (int i = 0; i < t->layers->n && i < (int)b->phases.len; i++)
        phase[i] = (bz_train_phase)b->phases.data[i];
    t->layers->phase = phase;
    t->layers->training = t;
    t->layers->name = b->from->name;
    t->layers->batch = b->from->batch;
    return 0;
}

static void finish(build *b, bz_training *t)
{
    BZ_SCOPED(bz_map) ids = {0};
    for (int v = 0; v < t->model->n_values; v++)
        bz_map_add(&ids, t->model->values[v].name, strlen(t->model->values[v].name), (uint32_t)v);
    note_weights(b, &ids, t);
    note_inputs(b, &ids, t);
    t->loss = value_by_name(&ids, b->loss);
    held_find(t);
}

static build *new_build(const bz_layers *from, const bz_training_options *options, bz_arena *arena, bz_error *err)
{
    int n = from->model->n_values + 1;
    build *b = BZ_NEW(arena, build, 1);
    *b = (build){.from = from, .options = options, .arena = arena, .err = err, .opset = from->model->opset};
    b->same = BZ_NEW(arena, bz_value_id, n);
    b->name = BZ_NEW(arena, const char *, n);
    b->grad = BZ_NEW(arena, const char *, n);
    b->weight_grad = BZ_NEW(arena, const char *, n);
    b->updated = BZ_NEW(arena, const char *, n);
    b->master = BZ_NEW(arena, const char *, n);
    b->needs = BZ_NEW(arena, char, n);
    b->trained = BZ_NEW(arena, char, n);
    b->state = BZ_NEW(arena, char, n);
    b->turned = BZ_NEW(arena, bz_value_id, n);
    for (int v = 0; v < n; v++) {
        b->same[v] = v;
        b->turned[v] = BZ_NO_VALUE;
    }
    return b;
}

int bz_training_derive(const bz_layers *forward, const bz_training_options *options, bz_training **training,
                       bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_training *t = bz_alloc(1, sizeof *t);
    *t = (bz_training){.loss = BZ_NO_VALUE, .rate = BZ_NO_VALUE, .step = BZ_NO_VALUE};
    build *b = new_build(forward, options, &arena, err);
    int rc = draft_all(b) || read_back(b, t);
    if (!rc)
        finish(b, t);
    else
        bz_fail_in(err, "%s", forward->name);
    bz_draft_free(&b->draft);
    bz_map_free(&b->names);
    bz_map_free(&b->constants);
    bz_buf_free(&b->phases);
    if (rc) {
        bz_training_free(t);
        t = NULL;
    }
    *training = t;
    return rc ? -1 : 0;
}

void bz_training_free(bz_training *t)
{
    if (!t)
        return;
    bz_layers_free(t->layers);
    bz_model_free(t->model);
    bz_arena_free(&t->arena);
    free(t);
}

/* Without its model and layers, which belong to somebody else. */
static void release(void *training)
{
    bz_training *t = training;
    bz_arena_free(&t->arena);
    free(t);
}

BZ_ENDS(end_model, bz_model_free)

int bz_training_replace(bz_models *m, int i, const bz_training_options *options, bz_error *err)
{
    bz_training *t;
    if (bz_training_derive(m->layers[i], options, &t, err))
        return -1;
    bz_layers_free(m->layers[i]);
    bz_arena_keep(&m->arena, m->model[i], end_model); /* the first values of weights */
    m->layers[i] = t->layers;
    m->model[i] = t->model;
    m->layers[i]->name = m->name[i];
    bz_arena_keep(&m->arena, t, release);
    return 0;
}
