/* Values and steps of a plan in the making: what all that is bound is made of. */
#include "replay/bind.h"

#include <math.h>
#include <string.h>

int bind_no(binder *b, const char *why)
{
    return b->err.code ? -1 : bz_fail(&b->err, BZ_INCOMPLETE, "%s (%s): %s", b->l->name, b->l->kind, why);
}

int bind_done(const binder *b)
{
    return b->err.code ? -1 : 0;
}

int bind_named(binder *b, const char *name, bz_dtype dtype, int rank, const int64_t *dims)
{
    bz_replay_plan *p = b->plan;
    if (rank > BZ_PROBLEM_RANK || rank < 0)
        return bind_no(b, "it has too many dimensions");
    if (b->err.code)
        return -1;
    BZ_ARENA_ROOM(b->arena, p->value, p->n_values);
    BZ_ARENA_ROOM(b->arena, p->source, p->n_values);
    bz_replay_value *v = &p->value[p->n_values];
    *v = (bz_replay_value){.name = name, .dtype = dtype, .given = dtype, .rank = rank ? rank : 1, .dim = {1}};
    for (int i = 0; i < rank; i++) /* a scalar has no dims at all */
        v->dim[i] = dims[i];
    p->source[p->n_values] = (bz_replay_source){0};
    return p->n_values++;
}

int bind_new(binder *b, bz_dtype dtype, int rank, const int64_t *dims)
{
    return bind_named(b, "", dtype, rank, dims);
}

int bind_operand(binder *b, const bz_operand *o)
{
    return bind_new(b, o->dtype, o->rank, o->dim);
}

int bind_like(binder *b, int value, bz_dtype dtype)
{
    const bz_replay_value v = *bind_at(b, value);
    return bind_new(b, dtype, v.rank, v.dim);
}

const bz_replay_value *bind_at(const binder *b, int value)
{
    static const bz_replay_value NONE = {.rank = 1, .dim = {1}};
    return value < 0 ? &NONE : &b->plan->value[value];
}

/* A value of the model's. Constants stay in their own type until a call takes them: what is folded into weights would
 * be rounded twice. */
static int add_value(binder *b, bz_value_id id)
{
    const bz_type *t = &b->layers->types[id];
    const char *name = b->layers->model->values[id].name;
    int64_t n = bz_type_elements(t);
    if (t->kind != BZ_TYPE_TENSOR || n < 0)
        return bz_fail(&b->err, BZ_INCOMPLETE, "'%s' is no tensor of a known size", name);
    if (t->rank > BZ_PROBLEM_RANK || n == 0 || bz_dtype_bits(t->dtype) < 8)
        return bz_fail(&b->err, BZ_INCOMPLETE, "'%s' is empty, of a type without bytes, or has more than %d dimensions",
                       name, BZ_PROBLEM_RANK);
    bool constant = b->once || b->layers->model->values[id].init;
    int k = bind_named(b, name, constant || !b->dtype || !bz_dtype_is_float(t->dtype) ? t->dtype : b->dtype, t->rank,
                       t->dims);
    b->plan->value[k].given = t->dtype;
    b->number[id] = k;
    return k;
}

bool bind_is_wanted(const binder *b, bz_value_id v)
{
    const bz_graph *g = b->layers->model->graph;
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == v)
            return true;
    for (int i = 0; i < b->layers->n; i++)
        for (int k = 0; k < b->layers->layer[i].n_in; k++)
            if (b->layers->layer[i].node->in[k] == v)
                return true;
    return false;
}

int bind_result(binder *b, int k)
{
    bz_value_id v = b->l->node->out[k];
    if (v < 0)
        return bind_no(b, "its result has no name");
    if (b->err.code)
        return -1;
    return b->number[v] >= 0 ? b->number[v] : add_value(b, v);
}

bz_replay_step *bind_step(binder *b, bz_step_kind kind, const int *in, int n_in, int out)
{
    bz_replay_plan *p = b->plan;
    BZ_ARENA_ROOM(b->arena, p->step, p->n_steps);
    bz_replay_step *s = &p->step[p->n_steps++];
    *s = (bz_replay_step){
        .name = b->name,
        .layer = b->once ? -1 : b->unit,
        .kind = kind,
        .once = b->once,
        .in = n_in ? bz_arena_dup(b->arena, in, (size_t)n_in * sizeof *in) : NULL,
        .n_in = n_in,
        .out = out,
        .backend = "",
        .algorithm = "",
        .layout = "",
        .math = "",
    };
    return s;
}

/* What a model without weights gets: numbers that keep the size of what flows through it. */
void bind_seed(const binder *b, bz_value_id id, bz_replay_value *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dim[i];
    v->source = BZ_VALUE_SEEDED;
    v->scale = v->rank > 1 ? (float)sqrt(2 * (double)v->dim[0] / (double)n) : 0.1f;
    for (int i = 0; i < b->layers->n; i++) {
        const bz_layer *l = &b->layers->layer[i];
        for (int k = 0; k < l->n_in; k++) {
            if (l->node->in[k] != id)
                continue;
            bool norm = bz_layer_has(l, BZ_LAYER_NORMALIZATION);
            v->positive |= norm && k == 4;
            v->offset = norm && (k == 1 || k == 4) ? 1.0f : v->offset;
            if (!strcmp(l->kind, "matmul") && v->rank > 1) /* its rows are what is summed up */
                v->scale = (float)sqrt(1 / (double)v->dim[v->rank - 2]);
        }
    }
}

static int add_initializer(binder *b, bz_value_id id, const bz_tensor *t)
{
    int k = add_value(b, id);
    if (k < 0)
        return -1;
    bz_replay_value *v = &b->plan->value[k];
    v->source = BZ_VALUE_STORED;
    b->plan->source[k].tensor = t;
    bool away = bz_tensor_is_away(b->layers->model, t), empty = away || (t->values && t->values->n == 0);
    b->plan->away = away ? t->external : b->plan->away;
    if (empty && bz_dtype_is_float(t->dtype))
        bind_seed(b, id, v);
    else if (empty) {
        v->source = BZ_VALUE_SEEDED;
        v->below = 0, v->offset = 0;
    }
    return k;
}

/* What a failed attempt added goes away again. */
void bind_take_back(binder *b, bind_mark at)
{
    for (int i = 0; i < b->layers->model->n_values; i++)
        if (b->number[i] >= at.n_values)
            b->number[i] = -1;
    b->plan->n_steps = at.n_steps;
    b->plan->n_values = at.n_values;
    b->err.code = BZ_OK;
}

/* What no loop computes is a call, whose definition computes it once, before anything runs. */
static int make_constant(binder *b, const bz_layer *l)
{
    const bind_mark before = {b->plan->n_steps, b->plan->n_values};
    bz_lowering low;
    bz_layer layer = *l;
    if (!bind_constant(b, l))
        return 0;
    bind_take_back(b, before);
    layer.class = BZ_COMPUTE;
    bz_lower(&layer, BZ_UNDEFINED, b->arena, &low);
    return low.n ? bind_call_layer(b, &layer, &low.alternative[0]) : bind_no(b, "no call and no loop computes it");
}

int bind_value(binder *b, bz_value_id v)
{
    const bz_tensor *init = v >= 0 ? b->layers->model->values[v].init : NULL;
    if (b->err.code)
        return -1;
    if (v < 0)
        return bz_fail(&b->err, BZ_INCOMPLETE, "an operand was left out");
    if (b->number[v] >= 0)
        return b->number[v];
    if (init)
        return add_initializer(b, v, init);
    const bz_layer *l = b->producer[v];
    b->unmade = !l || l->class != BZ_CONSTANT;
    if (b->unmade)
        return bz_fail(&b->err, BZ_INCOMPLETE, "'%s' is read before it is made", b->layers->model->values[v].name);
    const bool once = b->once;
    const char *const name = b->name;
    const bz_layer *const reader = b->l;
    b->once = true, b->name = l->name, b->l = l;
    int rc = make_constant(b, l);
    if (!rc && b->number[v] < 0)
        rc = bind_no(b, "it does not make this constant");
    b->once = once, b->name = name, b->l = reader;
    return rc ? -1 : b->number[v];
}

int bind_in(binder *b, int k)
{
    return bind_value(b, b->l->node->in[k]);
}

/* Integers that index a table stay inside of it. */
static int64_t least_table(const binder *b, bz_value_id id, int depth)
{
    int64_t least = 0;
    for (int i = 0; i < b->layers->n && depth < 8; i++) {
        const bz_layer *l = &b->layers->layer[i];
        for (int k = 0; k < l->n_in; k++) {
            if (l->node->in[k] != id)
                continue;
            int64_t n = bind_indexed_extent(l, k);
            if (!n && l->n_out && (l->class == BZ_VIEW || !strcmp(l->kind, "cast")))
                n = least_table(b, l->node->out[0], depth + 1);
            least = n > 0 && (!least || n < least) ? n : least;
        }
    }
    return least;
}

int bind_add_inputs(binder *b, double rate)
{
    const bz_graph *g = b->layers->model->graph;
    for (int i = 0; i < g->n_inputs; i++) {
        if (b->layers->model->values[g->inputs[i]].init || !bind_is_wanted(b, g->inputs[i]))
            continue;
        int k = add_value(b, g->inputs[i]);
        if (k < 0)
            return -1;
        bz_replay_value *v = &b->plan->value[k];
        if (bind_kept(b->layers->training, g->inputs[i])) {
            bind_first(b, g->inputs[i], rate, v, &b->plan->source[k]);
            continue;
        }
        v->source = BZ_VALUE_INPUT;
        v->scale = 1;
        v->below = bz_dtype_is_float(v->dtype) ? 0 : least_table(b, g->inputs[i], 0);
        v->offset = bz_dtype_is_float(v->dtype) ? 0.0f : 1.0f;
    }
    return 0;
}

/* Whether nobody has made the value, though a layer is there to do so while the model runs. */
bool bind_waits(const binder *b, bz_value_id v)
{
    return v >= 0 && b->number[v] < 0 && b->producer[v] && b->producer[v]->class != BZ_CONSTANT;
}

int bind_add_outputs(binder *b, bool gradients)
{
    const bz_training *t = b->layers->training;
    const bz_graph *g = b->layers->model->graph;
    for (int i = 0; i < g->n_outputs; i++) {
        if (b->plan->n_left && bind_waits(b, g->outputs[i]))
            continue;
        int k = bind_value(b, g->outputs[i]);
        if (k < 0)
            return -1;
        if (!b->plan->value[k].output || b->plan->value[k].output > g->n_outputs)
            b->plan->value[k].output = i + 1;
    }
    for (int i = 0; t && gradients && i < t->n_weights; i++) {
        int k = t->weight[i].gradient < 0 ? -1 : b->number[t->weight[i].gradient];
        if (k >= 0 && !b->plan->value[k].output)
            b->plan->value[k].output = g->n_outputs + i + 1;
    }
    return 0;
}
