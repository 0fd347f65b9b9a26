/* Graphs: names become numbers, nodes get into topological order. */
#include "onnx/build.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_VALUES = 1 << 28 };

/* ---- values and names ---------------------------------------------------------------------- */

static bz_value_id new_value(builder *b, const char *name)
{
    bz_model *m = b->model;
    if (m->n_values == m->file->values_cap) {
        int cap = m->file->values_cap ? m->file->values_cap * 2 : 256;
        m->values = bz_realloc(m->values, (size_t)cap, sizeof *m->values);
        m->file->values_cap = cap;
    }
    m->values[m->n_values] = (bz_value){.name = name};
    return m->n_values++;
}

/* A new value in this scope. Returns BZ_NO_VALUE when the name is taken. */
static bz_value_id define(builder *b, scope *s, const char *name)
{
    uint32_t id = (uint32_t)b->model->n_values;
    if (bz_map_add(&s->names, name, strlen(name), id) != id)
        return BZ_NO_VALUE;
    return new_value(b, name);
}

static void capture(builder *b, scope *s, bz_value_id id)
{
    for (int i = s->n_captures - 1; i >= 0 && i >= s->n_captures - 16; i--)
        if (s->captures[i] == id)
            return;
    if (s->n_captures == s->captures_cap) {
        int cap = s->captures_cap ? s->captures_cap * 2 : 8;
        s->captures = bz_arena_grow(b->arena, s->captures, (size_t)s->n_captures, (size_t)cap, sizeof *s->captures);
        s->captures_cap = cap;
    }
    s->captures[s->n_captures++] = id;
}

/* Looks a name up from the inside out; every scope that is passed on the way captures the value. */
static bz_value_id resolve(builder *b, scope *s, const char *name)
{
    size_t n = strlen(name);
    scope *found = s;
    uint32_t id = BZ_MAP_NONE;
    for (; found; found = found->outer)
        if ((id = bz_map_get(&found->names, name, n)) != BZ_MAP_NONE)
            break;
    if (id == BZ_MAP_NONE)
        return BZ_NO_VALUE;
    for (scope *inner = s; inner != found; inner = inner->outer)
        capture(b, inner, (bz_value_id)id);
    return (bz_value_id)id;
}

/* ---- what a graph declares ----------------------------------------------------------------- */

static int define_input(builder *b, scope *s, const char *name, const Onnx__TypeProto *type, bz_value_id *id)
{
    if (!*name)
        return bz_fail(b->err, BZ_BAD_INPUT, "a graph input has no name");
    *id = define(b, s, name);
    if (*id == BZ_NO_VALUE)
        return bz_fail(b->err, BZ_BAD_INPUT, "two graph inputs are named '%s'", name);
    if (type) {
        const bz_type *t = convert_type(b, type);
        if (!t)
            return bz_fail_in(b->err, "input '%s'", name);
        b->model->values[*id].declared = t;
    }
    return 0;
}

static int define_initializer(builder *b, scope *s, bz_tensor *t)
{
    if (!*t->name)
        return bz_fail(b->err, BZ_BAD_INPUT, "an initializer has no name");
    bz_value_id id = define(b, s, t->name);
    if (id == BZ_NO_VALUE) /* before IR version 4 initializers were listed as inputs, too */
        id = (bz_value_id)bz_map_get(&s->names, t->name, strlen(t->name));
    if (b->model->values[id].init)
        return bz_fail(b->err, BZ_BAD_INPUT, "two initializers are named '%s'", t->name);
    b->model->values[id].init = t;
    return 0;
}

static int define_initializers(builder *b, scope *s, const Onnx__GraphProto *p)
{
    bz_tensor *t = BZ_NEW(b->arena, bz_tensor, p->n_initializer + p->n_sparse_initializer);
    for (size_t i = 0; i < p->n_initializer; i++, t++)
        if (convert_tensor(b, p->initializer[i], t) || define_initializer(b, s, t))
            return -1;
    for (size_t i = 0; i < p->n_sparse_initializer; i++, t++)
        if (convert_sparse(b, p->sparse_initializer[i], t) || define_initializer(b, s, t))
            return -1;
    return 0;
}

static int define_outputs(builder *b, scope *s, const Onnx__NodeProto *p, bz_node *node)
{
    bz_value_id *out = BZ_NEW(b->arena, bz_value_id, p->n_output);
    for (size_t i = 0; i < p->n_output; i++) {
        out[i] = BZ_NO_VALUE;
        if (*p->output[i] && (out[i] = define(b, s, p->output[i])) == BZ_NO_VALUE)
            return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) makes '%s', which is made elsewhere already",
                           node->name, node->op, p->output[i]);
    }
    node->out = out;
    node->n_out = (int)p->n_output;
    return 0;
}

static int declare_types(builder *b, scope *s, Onnx__ValueInfoProto **infos, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!infos[i]->name || !infos[i]->type)
            continue;
        uint32_t id = bz_map_get(&s->names, infos[i]->name, strlen(infos[i]->name));
        if (id == BZ_MAP_NONE || b->model->values[id].declared)
            continue;
        const bz_type *t = convert_type(b, infos[i]->type);
        if (!t)
            return bz_fail_in(b->err, "value '%s'", infos[i]->name);
        b->model->values[id].declared = t;
    }
    return 0;
}

/* ---- nodes --------------------------------------------------------------------------------- */

static int opset_of(const builder *b, const char *domain)
{
    for (int i = 0; i < b->n_opsets; i++)
        if (!strcmp(b->opsets[i].domain, domain))
            return b->opsets[i].version;
    return 0;
}

static int find_function(const builder *b, const bz_node *node, const Onnx__NodeProto *p)
{
    if (!b->model->file->n_functions)
        return -1;
    enum { NODE_OVERLOAD = 8 }; /* newer than our schema */
    size_t n = 0;
    const uint8_t *overload = unknown_field(&p->base, NODE_OVERLOAD, 0, &n);
    bz_buf key = {0};
    bz_buf_put(&key, node->domain, strlen(node->domain) + 1);
    bz_buf_put(&key, node->op, strlen(node->op) + 1);
    if (overload)
        bz_buf_put(&key, overload, n);
    uint32_t k = bz_map_get(&b->model->file->function_names, key.data, key.len);
    bz_buf_free(&key);
    return k == BZ_MAP_NONE ? -1 : (int)k;
}

static int build_attrs(builder *b, scope *s, const Onnx__NodeProto *p, bz_node *node)
{
    bz_attr *attrs = BZ_NEW(b->arena, bz_attr, p->n_attribute);
    for (size_t i = 0; i < p->n_attribute; i++) {
        int result = convert_attr(b, s, p->attribute[i], &attrs[node->n_attrs]);
        if (result < 0)
            return bz_fail_in(b->err, "node '%s' (%s)", node->name, node->op);
        if (result == 0)
            node->n_attrs++;
        else
            attrs[node->n_attrs] = (bz_attr){0};
    }
    node->attrs = attrs;
    return 0;
}

static int build_inputs(builder *b, scope *s, const Onnx__NodeProto *p, bz_node *node)
{
    bz_value_id *in = BZ_NEW(b->arena, bz_value_id, p->n_input);
    for (size_t i = 0; i < p->n_input; i++) {
        in[i] = BZ_NO_VALUE;
        if (*p->input[i] && (in[i] = resolve(b, s, p->input[i])) == BZ_NO_VALUE)
            return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) reads '%s', which nothing makes", node->name, node->op,
                           p->input[i]);
    }
    node->in = in;
    node->n_in = (int)p->n_input;
    return 0;
}

static int name_node(builder *b, scope *s, const Onnx__NodeProto *p, bz_node *node)
{
    node->name = p->name ? p->name : "";
    node->op = p->op_type ? p->op_type : "";
    node->domain = p->domain && strcmp(p->domain, "ai.onnx") != 0 ? p->domain : "";
    if (!*node->op)
        return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' has no operator type", node->name);
    if (p->n_input > INT16_MAX || p->n_output > INT16_MAX || p->n_attribute > INT16_MAX)
        return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) has more than %d operands or attributes", node->name,
                       node->op, INT16_MAX);
    node->opset = opset_of(b, node->domain);
    node->function = find_function(b, node, p);
    return define_outputs(b, s, p, node);
}

/* ---- topological order --------------------------------------------------------------------- */

bz_value_id bz_node_reads(const bz_node *node, int k)
{
    if (k < node->n_in)
        return node->in[k];
    k -= node->n_in;
    for (int i = 0; i < node->n_attrs; i++) {
        const bz_attr *a = &node->attrs[i];
        int n = a->kind == BZ_ATTR_GRAPH ? 1 : a->kind == BZ_ATTR_GRAPHS ? a->n : 0;
        for (int g = 0; g < n; g++) {
            const bz_graph *body = a->kind == BZ_ATTR_GRAPH ? a->graph : a->graphs[g];
            if (k < body->n_captures)
                return body->captures[k];
            k -= body->n_captures;
        }
    }
    return BZ_READS_END;
}

/* Depth-first from each node in the file's order, with an own stack: a hostile chain must not
 * overflow ours. A graph that is ordered already keeps its order. */
typedef struct {
    const bz_node *nodes;
    const int32_t *producer; /* of value first + i, or -1 */
    bz_value_id first, last;
    int32_t *stack, *next_input; /* next_input[node]: how many of its inputs were looked at */
    uint8_t *state;              /* 0 new, 1 on the stack, 2 placed */
} sorter;

static bool is_sorted(const sorter *s, int n)
{
    bz_value_id v;
    for (int i = 0; i < n; i++)
        for (int k = 0; (v = bz_node_reads(&s->nodes[i], k)) != BZ_READS_END; k++)
            if (v >= s->first && v < s->last && s->producer[v - s->first] >= i)
                return false;
    return true;
}

/* Appends `root` and all it needs to order[]; returns the new length, or -1 on a cycle. */
static int place(sorter *s, int root, bz_node *order, int n)
{
    int depth = 0;
    if (s->state[root])
        return n;
    s->stack[depth++] = root;
    s->state[root] = 1;
    while (depth) {
        int i = s->stack[depth - 1];
        bz_value_id v = bz_node_reads(&s->nodes[i], s->next_input[i]++);
        if (v == BZ_READS_END) {
            order[n++] = s->nodes[i];
            s->state[i] = 2;
            depth--;
        } else if (v >= s->first && v < s->last && s->producer[v - s->first] >= 0) {
            int p = s->producer[v - s->first];
            if (s->state[p] == 1)
                return -1;
            if (s->state[p] == 0) {
                s->state[p] = 1;
                s->stack[depth++] = p;
            }
        }
    }
    return n;
}

static int sort_nodes(builder *b, bz_graph *g, bz_value_id first)
{
    size_t n = (size_t)g->n_nodes, n_values = (size_t)(b->model->n_values - first);
    int32_t *producer = bz_alloc(n_values, sizeof *producer);
    memset(producer, 0xff, n_values * sizeof *producer);
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_out; k++)
            if (g->nodes[i].out[k] >= 0)
                producer[g->nodes[i].out[k] - first] = i;
    sorter s = {.nodes = g->nodes, .producer = producer, .first = first, .last = b->model->n_values};
    int failed = 0;
    if (!is_sorted(&s, g->n_nodes)) {
        s.stack = BZ_NEW(b->arena, int32_t, n);
        s.next_input = BZ_NEW(b->arena, int32_t, n);
        s.state = BZ_NEW(b->arena, uint8_t, n);
        bz_node *order = BZ_NEW(b->arena, bz_node, n);
        int placed = 0;
        for (int i = 0; i < g->n_nodes && placed >= 0; i++) {
            placed = place(&s, i, order, placed);
            if (placed < 0)
                failed = bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) needs its own result: the graph has a cycle",
                                 g->nodes[i].name, g->nodes[i].op);
        }
        g->nodes = order;
    }
    free(producer);
    return failed;
}

/* ---- graphs -------------------------------------------------------------------------------- */

static int build_nodes(builder *b, scope *s, bz_graph *g, Onnx__NodeProto **p, size_t n)
{
    if (n > INT32_MAX / 4 || b->model->n_values > MAX_VALUES)
        return bz_fail(b->err, BZ_BAD_INPUT, "the model has too many nodes");
    g->nodes = BZ_NEW(b->arena, bz_node, n);
    g->n_nodes = (int)n;
    for (size_t i = 0; i < n; i++)
        if (name_node(b, s, p[i], &g->nodes[i]))
            return -1;
    return 0;
}

/* Names are all defined by now, so nodes may stand in any order. */
static int link_nodes(builder *b, scope *s, bz_graph *g, Onnx__NodeProto **p)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (build_inputs(b, s, p[i], &g->nodes[i]) || build_attrs(b, s, p[i], &g->nodes[i]))
            return -1;
    return sort_nodes(b, g, s->first);
}

static int link_outputs(builder *b, scope *s, bz_graph *g, const char *const *names, size_t n)
{
    g->outputs = BZ_NEW(b->arena, bz_value_id, n);
    g->n_outputs = (int)n;
    for (size_t i = 0; i < n; i++) {
        g->outputs[i] = *names[i] ? resolve(b, s, names[i]) : BZ_NO_VALUE;
        if (g->outputs[i] == BZ_NO_VALUE && *names[i])
            return bz_fail(b->err, BZ_BAD_INPUT, "graph output '%s' is made by nothing", names[i]);
    }
    return 0;
}

static int fill_graph(builder *b, scope *s, bz_graph *g, const Onnx__GraphProto *p)
{
    g->name = p->name ? p->name : "";
    g->inputs = BZ_NEW(b->arena, bz_value_id, p->n_input);
    for (size_t i = 0; i < p->n_input; i++)
        if (define_input(b, s, p->input[i]->name ? p->input[i]->name : "", p->input[i]->type, &g->inputs[i]))
            return -1;
    if (define_initializers(b, s, p))
        return -1;
    for (size_t i = 0; i < p->n_input; i++)
        if (!b->model->values[g->inputs[i]].init)
            g->inputs[g->n_inputs++] = g->inputs[i];
    const char **names = BZ_NEW(b->arena, const char *, p->n_output);
    for (size_t i = 0; i < p->n_output; i++)
        names[i] = p->output[i]->name ? p->output[i]->name : "";
    return build_nodes(b, s, g, p->node, p->n_node) || declare_types(b, s, p->value_info, p->n_value_info) ||
                   declare_types(b, s, p->output, p->n_output) || link_nodes(b, s, g, p->node) ||
                   link_outputs(b, s, g, names, p->n_output)
               ? -1
               : 0;
}

bz_graph *build_graph(builder *b, scope *outer, const Onnx__GraphProto *p)
{
    if (b->depth >= MAX_DEPTH) {
        bz_fail(b->err, BZ_BAD_INPUT, "graphs are nested more than %d deep", MAX_DEPTH);
        return NULL;
    }
    b->depth++;
    bz_graph *g = BZ_NEW(b->arena, bz_graph, 1);
    scope s = {.outer = outer, .first = b->model->n_values};
    int failed = fill_graph(b, &s, g, p);
    g->captures = s.captures;
    g->n_captures = s.n_captures;
    bz_map_free(&s.names);
    b->depth--;
    return failed ? NULL : g;
}

static int fill_function(builder *b, scope *s, bz_graph *g, const function_proto *f)
{
    g->name = f->name ? f->name : "";
    g->inputs = BZ_NEW(b->arena, bz_value_id, f->n_input);
    g->n_inputs = (int)f->n_input;
    for (size_t i = 0; i < f->n_input; i++)
        if (define_input(b, s, f->input[i], NULL, &g->inputs[i]))
            return -1;
    return build_nodes(b, s, g, f->node, f->n_node) || link_nodes(b, s, g, f->node) ||
                   link_outputs(b, s, g, (const char *const *)f->output, f->n_output)
               ? -1
               : 0;
}

int bz_model_inline(bz_model *model, const bz_node *call, bz_graph **body, bz_error *err)
{
    const function_proto *f = model->file->functions[call->function];
    builder b = {.model = model, .arena = &model->arena, .err = err, .call = call, .function = f};
    b.opsets = convert_opsets(&b, f->opset_import, f->n_opset_import);
    b.n_opsets = (int)f->n_opset_import;
    bz_graph *g = BZ_NEW(b.arena, bz_graph, 1);
    scope s = {.first = model->n_values};
    int failed = fill_function(&b, &s, g, f);
    bz_map_free(&s.names);
    *body = failed ? NULL : g;
    return failed ? bz_fail_in(err, "function '%s'", call->op) : 0;
}
