/* Layers that a compiler leaves out, and no result changes: what nothing reads, what another layer makes as well, what changes nothing,
 * what another layer takes along, what puts weights into another order, and transposes that the calls around them take along. */
#include "modelproc/spare.h"

#include <string.h>

enum { ALIKE = 64 }; /* layers of one text that are compared */

const char *bz_spare_name(bz_spare s)
{
    static const char *const NAMES[] = {NULL, "unread", "repeated", "transpose", "unchanged", "folded", "arranged"};
    return NAMES[s];
}
const spare_kind *spare_kind_of(const spare_search *s, const bz_layer *l)
{
    const char *kind = l->kind;
    spare_kind *k = &s->kinds[((uintptr_t)kind * 0x9E3779B97F4A7C15u >> 48) % SPARE_KINDS];
    if (k->kind != kind)
        *k = (spare_kind){.kind = kind,
                          .product = bz_has_word("conv deconv gemm matmul", kind),
                          .scales = bz_has_word("mul div neg batchnorm", kind),
                          .shifts = bz_has_word("add sum sub batchnorm", kind),
                          .limits = bz_has_word("relu clip", kind),
                          .turns = !strcmp(kind, "transpose"),
                          .pads = !strcmp(kind, "pad"),
                          .once = bz_layer_has(l, BZ_LAYER_UPDATE | BZ_LAYER_RANDOM),
                          .order = spare_order_of(l),
                          .gives = spare_rule_of(kind)};
    return k;
}

/* What only layers that need not run read is not needed, either: of two transposes that cancel, the first. */
static bz_spare why_unread(const spare_search *s, const bz_layer *layer)
{
    return !s->same ? BZ_UNREAD : !strcmp(layer->kind, "transpose") ? BZ_TURNED : BZ_UNCHANGED;
}

/* Looks at layers that run; once what is the same is known, at what they read then. */
static void find_unread(spare_search *s)
{
    const bz_graph *g = s->l->model->graph;
    bool *read = BZ_NEW(&s->work, bool, s->l->model->n_values);
    bz_value_id v;
    for (int k = 0; k < g->n_outputs; k++)
        if (g->outputs[k] >= 0)
            read[s->same ? s->same[g->outputs[k]] : g->outputs[k]] = true;
    for (int i = s->l->n; i-- > 0;) {
        const bz_layer *layer = &s->l->layer[i];
        bool wanted = !layer->n_out;
        for (int k = 0; k < layer->n_out; k++)
            wanted |= layer->node->out[k] >= 0 && read[layer->node->out[k]];
        if (!s->why[i] && !wanted && !bz_layer_has(layer, BZ_LAYER_UPDATE))
            s->why[i] = why_unread(s, layer);
        for (int k = 0; !s->why[i] && (v = bz_node_reads(layer->node, k)) != BZ_READS_END; k++)
            if (v >= 0)
                read[s->same ? s->same[v] : v] = true;
    }
}

/* Few elements, and the same ones. */
static bool same_tensor(const bz_model *model, const bz_tensor *t, const bz_tensor *u)
{
    double x[SPARE_FEW], y[SPARE_FEW];
    int64_t i[SPARE_FEW], j[SPARE_FEW];
    bz_error err;
    if (t == u)
        return true;
    if (t->dtype != u->dtype || t->n != u->n || t->n > SPARE_FEW || t->rank != u->rank ||
        memcmp(t->dims, u->dims, (size_t)t->rank * sizeof *t->dims) != 0)
        return false;
    if (bz_dtype_is_float(t->dtype))
        return !bz_tensor_reals(model, t, x, &err) && !bz_tensor_reals(model, u, y, &err) &&
               !memcmp(x, y, (size_t)t->n * sizeof *x);
    return !bz_tensor_ints(model, t, i, &err) && !bz_tensor_ints(model, u, j, &err) &&
           !memcmp(i, j, (size_t)t->n * sizeof *i);
}

static bool same_attr(const bz_model *model, const bz_attr *a, const bz_attr *b)
{
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || a->n != b->n)
        return false;
    switch (a->kind) {
    case BZ_ATTR_FLOAT:
        return a->f == b->f;
    case BZ_ATTR_INT:
        return a->i == b->i;
    case BZ_ATTR_STRING:
        return a->s.len == b->s.len && !memcmp(a->s.data, b->s.data, a->s.len);
    case BZ_ATTR_FLOATS:
        return !a->n || !memcmp(a->floats, b->floats, (size_t)a->n * sizeof *a->floats);
    case BZ_ATTR_INTS:
        return !a->n || !memcmp(a->ints, b->ints, (size_t)a->n * sizeof *a->ints);
    case BZ_ATTR_TENSOR:
        return same_tensor(model, a->tensor, b->tensor);
    default: /* graphs, types: nobody writes them twice */
        return false;
    }
}

static bool same_attrs(const bz_model *model, const bz_node *a, const bz_node *b)
{
    if (a->n_attrs != b->n_attrs)
        return false;
    for (int i = 0; i < a->n_attrs; i++)
        if (!same_attr(model, &a->attrs[i], &b->attrs[i]))
            return false;
    return true;
}

/* Weights are the same where they are one value. A model without its weights has placeholders that all look alike. */
static bool same_constant(const spare_search *s, bz_value_id a, bz_value_id b)
{
    const bz_value *values = s->l->model->values;
    if (a == b)
        return true;
    if (bz_type_elements(&s->l->types[a]) > SPARE_FEW)
        return false;
    return s->same[a] == s->same[b] ||
           (values[a].init && values[b].init && same_tensor(s->l->model, values[a].init, values[b].init));
}

static bool same_operand(const spare_search *s, const bz_layer *a, const bz_layer *b, int k)
{
    bz_value_id v = a->node->in[k], w = b->node->in[k];
    if (v < 0 || w < 0 || a->in_constant[k] != b->in_constant[k])
        return v == w;
    return a->in_constant[k] ? same_constant(s, v, w) : s->same[v] == s->same[w];
}

/* A tensor as it lies: the key has its shape, however that was computed. */
static bool is_view(const bz_layer *l)
{
    return l->class == BZ_VIEW && l->n_in && l->n_out && l->in[0].kind == BZ_TYPE_TENSOR &&
           l->out[0].kind == BZ_TYPE_TENSOR;
}

static bool same_layer(const spare_search *s, const bz_layer *a, const bz_layer *b)
{
    if (is_view(a) && is_view(b) && !strcmp(a->node->op, b->node->op))
        return a->out[0].dtype == b->out[0].dtype && same_operand(s, a, b, 0);
    if (strcmp(a->node->op, b->node->op) != 0 || strcmp(a->node->domain, b->node->domain) != 0 || a->n_in != b->n_in ||
        a->n_out != b->n_out || !same_attrs(s->l->model, a->node, b->node))
        return false;
    for (int k = 0; k < a->n_in; k++)
        if (!same_operand(s, a, b, k))
            return false;
    for (int k = 0; k < a->n_out; k++)
        if ((a->node->out[k] < 0) != (b->node->out[k] < 0))
            return false;
    return true;
}

/* Its key, and what it reads. */
static void put_work(const spare_search *s, const bz_layer *layer, bz_buf *text)
{
    bz_buf_clear(text);
    bz_buf_puts(text, layer->key);
    for (int k = 0; k < layer->n_in; k++)
        if (layer->node->in[k] >= 0 && !layer->in_constant[k])
            bz_buf_printf(text, " %d", s->same[layer->node->in[k]]);
}

/* Layers by their work. */
typedef struct {
    bz_map first; /* text of the work -> the layer that had it last */
    int *before;  /* [layers]: the one that had the same text before it, or -1 */
    bz_buf text;
} by_work;

/* The layer before it that does the same to the same; -1, and it is listed itself. */
static int find_twin(spare_search *s, by_work *w, const bz_layer *layer)
{
    put_work(s, layer, &w->text);
    uint32_t found = bz_map_get(&w->first, w->text.data, w->text.len);
    int twin = w->before[layer->index] = found == BZ_MAP_NONE ? -1 : (int)found;
    for (int k = 0; twin >= 0 && !same_layer(s, layer, &s->l->layer[twin]); k++)
        twin = k < ALIKE ? w->before[twin] : -1;
    if (twin < 0)
        bz_map_set(&w->first, bz_arena_strn(&s->work, w->text.data, w->text.len), w->text.len, (uint32_t)layer->index);
    return twin;
}

/* Of constants only numbers that the file holds are compared. */
static bool may_repeat(const spare_search *s, const bz_layer *l)
{
    bool constant = l->class == BZ_CONSTANT;
    return !l->n_bodies && !l->opaque && !l->n_in == constant && !spare_kind_of(s, l)->once;
}

static void find_repeated(spare_search *s)
{
    by_work w = {.before = BZ_NEW(&s->work, int, s->l->n)};
    s->same = BZ_NEW(&s->work, bz_value_id, s->l->model->n_values);
    s->maker = BZ_NEW(&s->work, int, s->l->model->n_values);
    for (int v = 0; v < s->l->model->n_values; v++)
        s->same[v] = v;
    for (int i = 0; i < s->l->n; i++) {
        const bz_layer *layer = &s->l->layer[i];
        bz_value_id given[SPARE_FEW];
        bz_spare unchanged = s->why[i] ? BZ_RUNS : spare_unchanged(s, layer, given);
        int twin = s->why[i] || unchanged || !may_repeat(s, layer) ? -1 : find_twin(s, &w, layer);
        for (int k = 0; k < layer->n_out; k++) {
            bz_value_id v = layer->node->out[k];
            if (v < 0)
                continue;
            s->maker[v] = i + 1;
            s->same[v] = unchanged ? given[k] : twin >= 0 ? s->same[s->l->layer[twin].node->out[k]] : v;
        }
        s->why[i] = unchanged ? unchanged : twin >= 0 ? BZ_REPEATED : s->why[i];
    }
    bz_map_free(&w.first);
    bz_buf_free(&w.text);
}

/* What the result of a layer stands for that changes its operand and need not run: that operand. */
static void stand_for(const spare_search *s, const bz_layer *l, bz_value_id *stands)
{
    bz_value_id x = l->n_in ? l->node->in[l->n_in > 1 && l->in_constant[0]] : BZ_NO_VALUE;
    if ((s->why[l->index] == BZ_FOLDED || s->why[l->index] == BZ_TURNED) && x >= 0 &&
        stands[l->node->out[0]] == l->node->out[0])
        stands[l->node->out[0]] = s->same[x];
}

void bz_spares_find(bz_layers *l, bz_spares *out)
{
    spare_search s = {.l = l};
    *out = (bz_spares){0};
    if (!l->model || !l->model->graph->n_outputs)
        return;
    bz_value_id *stands = BZ_NEW(&l->arena, bz_value_id, l->model->n_values);
    bz_match *list = NULL;
    s.kinds = BZ_NEW(&s.work, spare_kind, SPARE_KINDS);
    out->why = s.why = BZ_NEW(&l->arena, bz_spare, l->n);
    out->stands = stands;
    find_unread(&s);
    find_repeated(&s);
    find_unread(&s);
    spare_find_arranged(&s);
    spare_find_folded(&s);
    spare_find_turned(&s);
    memcpy(stands, s.same, (size_t)l->model->n_values * sizeof *stands);
    for (int i = 0; i < l->n; i++) {
        bool runs = l->layer[i].n_bodies || l->layer[i].class == BZ_COMPUTE || l->layer[i].class == BZ_MEMORY;
        if (s.why[i])
            stand_for(&s, &l->layer[i], stands);
        if (!s.why[i] || !runs)
            continue;
        BZ_ARENA_ROOM(&l->arena, list, out->n);
        list[out->n++] = (bz_match){.pattern = bz_spare_name(s.why[i]),
                                    .layer = bz_arena_dup(&l->arena, &i, sizeof i),
                                    .n = 1,
                                    .spare = s.why[i]};
    }
    bz_arena_free(&s.work);
    out->match = list;
}
