/* Which dimension of an input is its batch: the one whose name says so, the second one of what a recurrent layer takes step by step, else the first. */
#include "modelproc/infer.h"

#include <string.h>
#include <strings.h>

/* The symbol that the file declares there, -1: none. A size that was given in the meantime has no name any more. */
static int64_t symbol_at(const infer *inf, bz_value_id input, int axis)
{
    const bz_type *t = inf->model->values[input].declared;
    if (!t || t->kind != BZ_TYPE_TENSOR || axis >= t->rank || !bz_is_symbol(t->dims[axis]))
        return -1;
    int64_t k = t->dims[axis] - INT64_MIN;
    return k < inf->model->n_symbols ? k : -1;
}

static const char *name_at(const infer *inf, bz_value_id input, int axis)
{
    int64_t k = symbol_at(inf, input, axis);
    return k < 0 ? NULL : inf->model->symbols[k];
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
static void find_steps(infer *inf)
{
    static const int PLACES[] = {0, 5, 6};
    const bz_graph *g = inf->model->graph;
    for (int i = 0; i < g->n_nodes; i++) {
        const bz_node *n = &g->nodes[i];
        if (*n->domain || (strcmp(n->op, "LSTM") != 0 && strcmp(n->op, "GRU") != 0 && strcmp(n->op, "RNN") != 0))
            continue;
        const bz_attr *layout = bz_node_attr(n, "layout");
        if (layout && layout->kind == BZ_ATTR_INT && layout->i)
            continue;
        for (size_t k = 0; k < sizeof PLACES / sizeof *PLACES; k++)
            if (PLACES[k] < n->n_in && n->in[PLACES[k]] != BZ_NO_VALUE)
                inf->by_steps[n->in[PLACES[k]]] = true;
    }
}

/* Names of dimensions that are not the first of an input: positions have the length of the text, which is no batch. */
static void find_lengths(infer *inf)
{
    const bz_graph *g = inf->model->graph;
    for (int k = 0; k < g->n_inputs; k++)
        for (int d = 1; d < inf->types[g->inputs[k]].rank; d++) {
            int64_t symbol = symbol_at(inf, g->inputs[k], d);
            if (symbol >= 0)
                inf->lengths[symbol] = true;
        }
}

static int first_axis(const infer *inf, bz_value_id input)
{
    return inf->types[input].rank > 1 && inf->by_steps[input] ? 1 : 0;
}

void batch_find(infer *inf)
{
    const bz_graph *g = inf->model->graph;
    inf->batch_input = BZ_NO_VALUE;
    inf->by_steps = BZ_NEW(inf->arena, bool, inf->model->n_values + 1);
    inf->lengths = BZ_NEW(inf->arena, bool, inf->model->n_symbols + 1);
    find_steps(inf);
    find_lengths(inf);
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
    int64_t symbol = symbol_at(inf, input, axis);
    bool named = symbol >= 0 && names_batch(inf->model->symbols[symbol]);
    if (input == inf->batch_input && axis == inf->batch_axis)
        return true;
    if (!named && (axis != first_axis(inf, input) || (inf->batch_named && inf->batch_axis > 0)))
        return false;
    if (!bz_is_symbol(t->dims[axis]))
        return t->dims[axis] == inf->written_batch;
    return named || symbol < 0 || !inf->lengths[symbol];
}
