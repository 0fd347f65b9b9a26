/* Which dimension of an input is its batch: the one whose name says so, the second one of what a recurrent layer takes step by step, else the first. */
#include "modelproc/infer.h"

#include <string.h>
#include <strings.h>

/* As the file declares it: a size that was given in the meantime has no name any more. */
static const char *name_at(const infer *inf, bz_value_id input, int axis)
{
    const bz_type *t = inf->model->values[input].declared;
    if (!t || t->kind != BZ_TYPE_TENSOR || axis >= t->rank || !bz_is_symbol(t->dims[axis]))
        return NULL;
    int64_t k = t->dims[axis] - INT64_MIN;
    return k < inf->model->n_symbols ? inf->model->symbols[k] : NULL;
}

/* "batch", "image_batch_size", "bs"; not "batch_size * heads", which is computed, nor "N", which may be a number of anything. */
static bool names_batch(const char *name)
{
    static const char *const SHORT[] = {"b", "bs", "bsz"};
    for (size_t i = 0; i < sizeof SHORT / sizeof *SHORT; i++)
        if (name && !strcasecmp(name, SHORT[i]))
            return true;
    return name && strcasestr(name, "batch") && !strpbrk(name, "*/+ ");
}

/* ONNX's recurrent layers want [steps, batch, size], and states as [directions, batch, size], unless their layout says otherwise. */
static bool goes_by_steps(const infer *inf, bz_value_id input)
{
    static const int PLACES[] = {0, 5, 6};
    const bz_graph *g = inf->model->graph;
    for (int i = 0; i < g->n_nodes; i++) {
        const bz_node *n = &g->nodes[i];
        if (*n->domain || (strcmp(n->op, "LSTM") != 0 && strcmp(n->op, "GRU") != 0 && strcmp(n->op, "RNN") != 0))
            continue;
        const bz_attr *layout = bz_node_attr(n, "layout");
        for (size_t k = 0; k < sizeof PLACES / sizeof *PLACES; k++)
            if (PLACES[k] < n->n_in && n->in[PLACES[k]] == input)
                return !layout || layout->kind != BZ_ATTR_INT || !layout->i;
    }
    return false;
}

/* Whether the name of an input's first dimension is that of another dimension elsewhere: positions have the length of the text, which is no batch. */
static bool is_size_of_another(const infer *inf, const char *name)
{
    const bz_graph *g = inf->model->graph;
    for (int k = 0; name && k < g->n_inputs; k++)
        for (int d = 1; d < inf->types[g->inputs[k]].rank; d++) {
            const char *has = name_at(inf, g->inputs[k], d);
            if (has && !strcmp(has, name))
                return true;
        }
    return false;
}

static int first_axis(const infer *inf, bz_value_id input)
{
    return inf->types[input].rank > 1 && goes_by_steps(inf, input) ? 1 : 0;
}

void batch_find(infer *inf)
{
    const bz_graph *g = inf->model->graph;
    inf->batch_input = BZ_NO_VALUE;
    for (int k = 0; k < g->n_inputs && !inf->batch_named; k++) {
        const bz_type *t = &inf->types[g->inputs[k]];
        if (t->kind != BZ_TYPE_TENSOR || t->rank < 1)
            continue;
        if (inf->batch_input == BZ_NO_VALUE) {
            inf->batch_input = g->inputs[k];
            inf->batch_axis = first_axis(inf, g->inputs[k]);
        }
        for (int d = 0; d < t->rank && !inf->batch_named; d++) {
            if (!names_batch(name_at(inf, g->inputs[k], d)))
                continue;
            inf->batch_input = g->inputs[k];
            inf->batch_axis = d;
            inf->batch_named = true;
        }
    }
    if (inf->batch_input != BZ_NO_VALUE)
        inf->written_batch = inf->types[inf->batch_input].dims[inf->batch_axis];
}

const char *batch_name(const infer *inf)
{
    return inf->batch_input == BZ_NO_VALUE ? NULL : name_at(inf, inf->batch_input, inf->batch_axis);
}

bool batch_is_at(const infer *inf, bz_value_id input, int axis)
{
    const bz_type *t = &inf->types[input];
    const char *name = name_at(inf, input, axis);
    if (input == inf->batch_input && axis == inf->batch_axis)
        return true;
    if (!names_batch(name) && (axis != first_axis(inf, input) || (inf->batch_named && inf->batch_axis > 0)))
        return false;
    if (!bz_is_symbol(t->dims[axis]))
        return t->dims[axis] == inf->written_batch;
    return names_batch(name) || !is_size_of_another(inf, name);
}
