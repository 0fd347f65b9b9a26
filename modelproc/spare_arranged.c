/* Layers that put a trained weight's elements elsewhere, or those of its gradient. An update works by element: a program that keeps the weight as
 * its readers want it needs neither. Exporters write such layers around recurrent ones, whose gates ONNX has in another order than frameworks. */
#include "modelproc/spare.h"

#include <string.h>

enum { PARTS = 32 }; /* slices of one value that are compared with each other; an LSTM's weight has four */

/* A layer that reads a value, and the one before it that does: a number into `reader`, or 0. */
typedef struct {
    int layer, before;
} reader;

typedef enum { UNKNOWN, ONCE, TWICE } places; /* at most so many want one element */

typedef struct {
    spare_search *s;
    bool *weight;         /* [values]: elements of weights and nothing else */
    bool *gradient;       /* [values]: everything that reads it brings it to an update */
    bool *read;           /* [values] */
    places *wanted;       /* [values] */
    reader *reader;       /* but for updates and layers that need not run */
    int n_readers, *last; /* [values]: a number into `reader`, or 0 */
} search;

static bool moves(const bz_layer *l)
{
    return bz_has_word("slice split concat transpose slice_grad", l->kind);
}

/* Works on each element alone, wherever that lies: weights are made narrow, and gradients wide. */
static bool passes(const bz_layer *l)
{
    return (l->class == BZ_VIEW && l->n_out == 1) || bz_has_word("cast scale", l->kind);
}

static bool is_step(const bz_layer *l)
{
    return bz_layer_has(l, BZ_LAYER_UPDATE);
}

static bz_value_id operand(const search *f, const bz_layer *l, int k)
{
    return k < l->n_in && l->in_constant[k] ? BZ_NO_VALUE : spare_operand(f->s, l, k);
}

static void find_readers(search *f)
{
    bz_value_id v;
    BZ_ARENA_ADD(&f->s->work, f->reader, f->n_readers) = (reader){-1, 0};
    for (int i = 0; i < f->s->l->n; i++) {
        const bz_layer *l = &f->s->l->layer[i];
        if (f->s->why[i] || is_step(l))
            continue;
        for (int k = 0; (v = bz_node_reads(l->node, k)) != BZ_READS_END; k++) {
            if (v < 0)
                continue;
            int *last = &f->last[f->s->same[v]];
            BZ_ARENA_ADD(&f->s->work, f->reader, f->n_readers) = (reader){i, *last};
            *last = f->n_readers - 1;
        }
    }
}

/* Operand k of a layer as one number for each axis. */
static bool numbers(const search *f, const bz_layer *l, int k, int rank, int64_t *v)
{
    const bz_tensor *t = k < l->n_in && l->node->in[k] >= 0 ? f->s->l->model->values[l->node->in[k]].init : NULL;
    return t && t->n == rank && !bz_tensor_ints(f->s->l->model, t, v, NULL);
}

/* Where a slice of a value, or the gradient of one, begins along each axis of that; false where something is left out between. */
static bool starts_of(const search *f, const bz_layer *l, int rank, int64_t *start)
{
    const bz_param *from = bz_layer_param(l, "start"), *step = bz_layer_param(l, "step");
    int64_t axis[BZ_MAX_RANK], by[BZ_MAX_RANK];
    bool gradient = !strcmp(l->kind, "slice_grad");
    if (gradient && (!numbers(f, l, 2, rank, start) || !numbers(f, l, 4, rank, axis) || !numbers(f, l, 5, rank, by)))
        return false;
    if (!gradient && (strcmp(l->kind, "slice") != 0 || !from || !step || from->n != rank || step->n != rank))
        return false;
    for (int k = 0; k < rank; k++) {
        start[k] = gradient ? start[k] : from->v[k];
        if ((gradient ? by[k] : step->v[k]) != 1 || (gradient && axis[k] != k) || bz_is_symbol(start[k]))
            return false;
    }
    return true;
}

/* Two slices of one value, or gradients of such, have no element in common. */
static bool apart(const search *f, const bz_layer *a, const bz_layer *b)
{
    int64_t x[BZ_MAX_RANK], y[BZ_MAX_RANK];
    const bz_type *s = !strcmp(a->kind, "slice") ? &a->out[0] : &a->in[0],
                  *t = !strcmp(b->kind, "slice") ? &b->out[0] : &b->in[0];
    if (s->rank < 0 || s->rank > BZ_MAX_RANK || s->rank != t->rank || !starts_of(f, a, s->rank, x) ||
        !starts_of(f, b, t->rank, y))
        return false;
    for (int k = 0; k < s->rank; k++)
        if (x[k] + s->dims[k] <= y[k] || y[k] + t->dims[k] <= x[k])
            return true;
    return false;
}

static bool parts_are_apart(const search *f, bz_value_id v)
{
    int n = 0;
    for (int i = f->last[v]; i; i = f->reader[i].before)
        if (++n > PARTS)
            return false;
    for (int i = f->last[v]; i; i = f->reader[i].before)
        for (int j = f->reader[i].before; j; j = f->reader[j].before)
            if (!apart(f, &f->s->l->layer[f->reader[i].layer], &f->s->l->layer[f->reader[j].layer]))
                return false;
    return true;
}

/* No element of the value is wanted at two places. Each of its readers asks. */
static bool wanted_once(const search *f, bz_value_id v)
{
    if (f->wanted[v] == UNKNOWN)
        f->wanted[v] = parts_are_apart(f, v) ? ONCE : TWICE;
    return f->wanted[v] == ONCE;
}

/* Of all operands with elements; each once. */
static bool reads_weights(const search *f, const bz_layer *l)
{
    int n = 0;
    for (int k = 0; k < l->n_in; k++) {
        bz_value_id v = operand(f, l, k);
        if (v < 0)
            continue;
        if (!f->weight[v] || !wanted_once(f, v))
            return false;
        n++;
    }
    return n > 0;
}

static void find_weights(search *f)
{
    const bz_model *model = f->s->l->model;
    for (int i = 0; i < f->s->l->n; i++) {
        const bz_layer *l = &f->s->l->layer[i];
        for (int k = 2; k < l->n_in && is_step(l); k++)
            if (l->node->in[k] >= 0 && !f->s->maker[l->node->in[k]])
                f->weight[l->node->in[k]] = true;
    }
    for (int k = 0; k < model->graph->n_outputs; k++) /* somebody wants it as it is written */
        if (model->graph->outputs[k] >= 0)
            f->weight[f->s->same[model->graph->outputs[k]]] = false;
    for (int i = 0; i < f->s->l->n; i++) {
        const bz_layer *l = &f->s->l->layer[i];
        bool moved = moves(l);
        if (f->s->why[i] || (!moved && !passes(l)) || !reads_weights(f, l))
            continue;
        for (int k = 0; k < l->n_out; k++)
            if (l->node->out[k] >= 0)
                f->weight[l->node->out[k]] = true;
        f->s->why[i] = moved ? BZ_ARRANGED : f->s->why[i];
    }
}

/* The gradients of slices that a value is the sum of; how many, or -1 where it is none or has too many. */
static int summands(const search *f, bz_value_id v, const bz_layer **of)
{
    bz_value_id left[PARTS] = {v};
    int n = 0, n_left = 1;
    while (n_left) {
        v = left[--n_left];
        const bz_layer *l = v >= 0 && f->s->maker[v] ? &f->s->l->layer[f->s->maker[v] - 1] : NULL;
        if (l && !strcmp(l->kind, "slice_grad") && n < PARTS) {
            of[n++] = l;
        } else if (l && !strcmp(l->kind, "add") && l->n_in == 2 && n_left + 2 <= PARTS) {
            left[n_left++] = operand(f, l, 0);
            left[n_left++] = operand(f, l, 1);
        } else {
            return -1;
        }
    }
    return n;
}

/* A sum of gradients of slices that lie apart: each stands in its place. */
static bool puts_together(const search *f, const bz_layer *l)
{
    const bz_layer *of[PARTS];
    int n = strcmp(l->kind, "add") != 0 ? -1 : summands(f, f->s->same[l->node->out[0]], of);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (!apart(f, of[i], of[j]))
                return false;
    return n > 0;
}

/* Each of its results that is read is a gradient on its way to an update, and it puts no operand at two places. */
static bool brings_gradients(const search *f, const bz_layer *l)
{
    bool any = false;
    for (int k = 0; k < l->n_out; k++) {
        bz_value_id v = l->node->out[k];
        if (v < 0 || !f->read[v])
            continue;
        if (!f->gradient[v])
            return false;
        any = true;
    }
    for (int k = 0; k < l->n_in; k++)
        for (int j = 0; j < k; j++)
            if (operand(f, l, k) >= 0 && operand(f, l, k) == operand(f, l, j))
                return false;
    return any;
}

static void read_by(search *f, const bz_layer *l, bool gradients)
{
    bz_value_id v;
    for (int k = 0; (v = bz_node_reads(l->node, k)) != BZ_READS_END; k++) {
        if (v < 0)
            continue;
        v = f->s->same[v];
        f->gradient[v] = gradients && (!f->read[v] || f->gradient[v]);
        f->read[v] = true;
    }
}

/* From the updates to where gradients are made. That all are numbers is asked of them wherever they lie. */
static void find_gradients(search *f)
{
    const bz_graph *g = f->s->l->model->graph;
    for (int k = 0; k < g->n_outputs; k++)
        if (g->outputs[k] >= 0)
            f->read[f->s->same[g->outputs[k]]] = true;
    for (int i = f->s->l->n; i-- > 0;) {
        const bz_layer *l = &f->s->l->layer[i];
        if (f->s->why[i] || !strcmp(l->kind, "isallfinite"))
            continue;
        bool moved = moves(l) || !strcmp(l->kind, "add"), brings = (moved || passes(l)) && brings_gradients(f, l);
        if (brings && !strcmp(l->kind, "add"))
            brings = puts_together(f, l);
        if (brings && moved)
            f->s->why[i] = BZ_ARRANGED;
        read_by(f, l, brings || is_step(l));
    }
}

void spare_find_arranged(spare_search *s)
{
    int n = s->l->model->n_values;
    search f = {.s = s};
    bool trains = false;
    for (int i = 0; i < s->l->n && !trains; i++)
        trains = is_step(&s->l->layer[i]);
    if (!trains)
        return;
    f.weight = BZ_NEW(&s->work, bool, n);
    f.gradient = BZ_NEW(&s->work, bool, n);
    f.read = BZ_NEW(&s->work, bool, n);
    f.last = BZ_NEW(&s->work, int, n);
    f.wanted = BZ_NEW(&s->work, places, n);
    find_readers(&f);
    find_weights(&f);
    find_gradients(&f);
}
