/* Graphs: names become numbers, nodes get into topological order. */
#include "onnx/build.h"

#include "graph/graph.h"

#include <string.h>

enum { MAX_DEPTH = 64, MAX_VALUES = 1 << 28 };

static bz_value_id new_value(builder *b, const char *name)
{
    bz_model *m = b->model;
    BZ_ROOM(m->values, m->n_values);
    m->values[m->n_values] = (bz_value){.name = name};
    return m->n_values++;
}

/* A new value in this scope. Returns BZ_NO_VALUE when the name is taken. */
static bz_value_id define(builder *b, scope *s, const char *name)
{
    uint32_t id = (uint32_t)b->model->n_values;
    return bz_map_add(&s->names, name, strlen(name), id) == id ? new_value(b, name) : BZ_NO_VALUE;
}

static void capture(builder *b, scope *s, bz_value_id id)
{
    for (int i = s->n_captures - 1; i >= 0 && i >= s->n_captures - 16; i--)
        if (s->captures[i] == id)
            return;
    BZ_ARENA_ADD(b->arena, s->captures, s->n_captures) = id;
}

/* Nodes mostly read results and initializers in the order in which these stand there: is it the one behind
 * the one that was read last? */
static bz_value_id guess(const builder *b, scope *s, const char *name)
{
    for (int k = 0; k < 2; k++)
        if (s->next[k] < s->names.n && !strcmp(b->model->values[s->first + (bz_value_id)s->next[k]].name, name))
            return s->first + (bz_value_id)s->next[k]++;
    return BZ_NO_VALUE;
}

/* Looks a name up from the inside out; every scope that is passed on the way captures the value. */
static bz_value_id resolve(builder *b, scope *s, const char *name)
{
    bz_value_id guessed = guess(b, s, name);
    if (guessed != BZ_NO_VALUE)
        return guessed;
    scope *found = s;
    uint32_t id = BZ_MAP_NONE;
    size_t length = strlen(name);
    for (; found; found = found->outer)
        if ((id = bz_map_get(&found->names, name, length)) != BZ_MAP_NONE)
            break;
    if (id == BZ_MAP_NONE)
        return BZ_NO_VALUE;
    for (scope *inner = s; inner != found; inner = inner->outer)
        capture(b, inner, (bz_value_id)id);
    if (found == s) {
        uint32_t at = id - (uint32_t)s->first;
        bool result = (bz_value_id)id >= s->results;
        s->next[result] = result && at < s->next[1] ? s->next[1] : at + 1;
    }
    return (bz_value_id)id;
}

static int define_input(builder *b, scope *s, const char *name, const Onnx__TypeProto *type, bz_value_id *id)
{
    const bz_type *declared;
    if (!*name)
        return bz_fail(b->err, BZ_BAD_INPUT, "a graph input has no name");
    *id = define(b, s, name);
    if (*id == BZ_NO_VALUE)
        return bz_fail(b->err, BZ_BAD_INPUT, "two graph inputs are named '%s'", name);
    if (!type)
        return 0;
    if (decode_type(b, type, &declared))
        return bz_fail_in(b->err, "input '%s'", name);
    b->model->values[*id].declared = declared;
    return 0;
}

static int define_inputs(builder *b, scope *s, const Onnx__GraphProto *p, bz_graph *g)
{
    g->inputs = BZ_NEW(b->arena, bz_value_id, p->n_input);
    g->n_inputs = (int)p->n_input;
    for (size_t i = 0; i < p->n_input; i++)
        if (define_input(b, s, text_of(p->input[i]->name), p->input[i]->type, &g->inputs[i]))
            return -1;
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

static int define_initializers(builder *b, scope *s, const Onnx__GraphProto *p, bz_graph *g)
{
    bz_tensor *t = BZ_NEW(b->arena, bz_tensor, p->n_initializer + p->n_sparse_initializer);
    for (size_t i = 0; i < p->n_initializer; i++, t++)
        if (decode_tensor(b, p->initializer[i], t) || define_initializer(b, s, t))
            return -1;
    for (size_t i = 0; i < p->n_sparse_initializer; i++, t++)
        if (decode_sparse(b, p->sparse_initializer[i], t) || define_initializer(b, s, t))
            return -1;
    int n = g->n_inputs;
    g->n_inputs = 0;
    for (int i = 0; i < n; i++)
        if (!b->model->values[g->inputs[i]].init)
            g->inputs[g->n_inputs++] = g->inputs[i];
    return 0;
}

static int declare_types(builder *b, scope *s, size_t n, Onnx__ValueInfoProto *const *infos)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = text_of(infos[i]->name);
        uint32_t id = *name && infos[i]->type ? bz_map_get(&s->names, name, strlen(name)) : BZ_MAP_NONE;
        if (id == BZ_MAP_NONE || b->model->values[id].declared)
            continue;
        const bz_type *declared;
        if (decode_type(b, infos[i]->type, &declared))
            return bz_fail_in(b->err, "value '%s'", name);
        b->model->values[id].declared = declared;
    }
    return 0;
}

static int opset_of(const builder *b, const char *domain)
{
    for (int i = 0; i < b->n_opsets; i++)
        if (!strcmp(b->opsets[i].domain, domain))
            return b->opsets[i].version;
    return 0;
}

/* "domain\0name\0overload": what calls and functions find one another by. */
static void function_key(const char *domain, const char *name, const char *overload, bz_buf *key)
{
    bz_buf_put(key, domain, strlen(domain) + 1);
    bz_buf_put(key, name, strlen(name) + 1);
    bz_buf_puts(key, overload);
}

static int find_function(const builder *b, const bz_node *node, const char *overload)
{
    if (!b->model->file->function_names.n)
        return -1;
    BZ_SCOPED(bz_buf) key = {0};
    function_key(node->domain, node->op, overload, &key);
    uint32_t k = bz_map_get(&b->model->file->function_names, key.data, key.len);
    return k == BZ_MAP_NONE ? -1 : (int)k;
}

/* Who a node is, how much of everything it has, and what it makes. */
static int name_node(builder *b, scope *s, const Onnx__NodeProto *p, bz_node *node)
{
    *node = (bz_node){.name = text_of(p->name), .op = text_of(p->op_type), .domain = domain_of(p->domain)};
    if (!*node->op)
        return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' has no operator type", node->name);
    if (p->n_input > INT16_MAX || p->n_output > INT16_MAX || p->n_attribute > INT16_MAX)
        return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) has more than %d operands or attributes", node->name,
                       node->op, INT16_MAX);
    node->opset = opset_of(b, node->domain);
    node->function = find_function(b, node, text_of(p->overload));
    bz_value_id *ids = bz_arena_take(b->arena, (p->n_input + p->n_output) * sizeof *ids);
    node->in = ids; /* filled in by link_node(), as the attributes are */
    node->n_in = (int)p->n_input;
    node->attrs = bz_arena_take(b->arena, p->n_attribute * sizeof *node->attrs);
    node->out = ids += p->n_input;
    node->n_out = (int)p->n_output;
    for (size_t i = 0; i < p->n_output; i++) {
        const char *name = p->output[i];
        ids[i] = *name ? define(b, s, name) : BZ_NO_VALUE;
        if (*name && ids[i] == BZ_NO_VALUE)
            return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) makes '%s', which is made elsewhere already",
                           node->name, node->op, name);
    }
    return 0;
}

/* When all names are known: what it reads, and its attributes. */
static int link_node(builder *b, scope *s, const Onnx__NodeProto *p, bz_node *node)
{
    bz_value_id *in = (bz_value_id *)node->in;
    for (size_t k = 0; k < p->n_input; k++) {
        const char *name = p->input[k];
        in[k] = *name ? resolve(b, s, name) : BZ_NO_VALUE;
        if (*name && in[k] == BZ_NO_VALUE)
            return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) reads '%s', which nothing makes", node->name, node->op,
                           name);
    }
    bz_attr *attrs = (bz_attr *)node->attrs;
    for (size_t k = 0; k < p->n_attribute; k++) {
        int result = decode_attr(b, s, p->attribute[k], &attrs[node->n_attrs]);
        if (result < 0) /* deep down the way there would be longer than the reason */
            return b->depth > 3 ? -1 : bz_fail_in(b->err, "node '%s' (%s)", node->name, node->op);
        node->n_attrs += result == 0;
    }
    return 0;
}

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

/* Results are numbered in the file's order: does every node read only what stands before it? */
static bool is_sorted(const bz_graph *g, bz_value_id first, bz_value_id last)
{
    bz_value_id v, made = first;
    for (int i = 0; i < g->n_nodes; i++) {
        const bz_node *node = &g->nodes[i];
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] >= made && node->in[k] < last)
                return false;
        for (int k = node->n_in; (v = bz_node_reads(node, k)) != BZ_READS_END; k++)
            if (v >= made && v < last)
                return false;
        for (int k = 0; k < node->n_out; k++)
            made += node->out[k] >= 0;
    }
    return true;
}

/* The results of the nodes are values first .. last - 1. A graph that is ordered already keeps its order. */
static int sort_nodes(builder *b, bz_graph *g, bz_value_id first, bz_value_id last)
{
    if (is_sorted(g, first, last))
        return 0;
    BZ_SCOPED(bz_arena) work = {0};
    bz_value_id v;
    int n = g->n_nodes, edges = 0, *begin = BZ_NEW(&work, int, n + 1), *order = BZ_NEW(&work, int, n);
    int *producer = BZ_NEW(&work, int, last - first);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < g->nodes[i].n_out; k++)
            if (g->nodes[i].out[k] >= 0)
                producer[g->nodes[i].out[k] - first] = i;
        for (int k = 0; (v = bz_node_reads(&g->nodes[i], k)) != BZ_READS_END; k++)
            edges += v >= first && v < last;
    }
    int *pred = BZ_NEW(&work, int, edges);
    for (int i = edges = 0; i < n; begin[++i] = edges)
        for (int k = 0; (v = bz_node_reads(&g->nodes[i], k)) != BZ_READS_END; k++)
            if (v >= first && v < last)
                pred[edges++] = producer[v - first];
    int circle = bz_dag_order(n, begin, pred, order);
    bz_node *sorted = BZ_NEW(b->arena, bz_node, n);
    for (int i = 0; i < n && circle < 0; i++)
        sorted[i] = g->nodes[order[i]];
    if (circle >= 0)
        return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) needs its own result: the graph has a cycle",
                       g->nodes[circle].name, g->nodes[circle].op);
    g->nodes = sorted;
    return 0;
}

/* Names are all defined before the first is looked up, so nodes may stand in any order. */
static int build_nodes(builder *b, scope *s, bz_graph *g, size_t n, Onnx__NodeProto *const *nodes)
{
    if (n > INT32_MAX / 4 || b->model->n_values > MAX_VALUES)
        return bz_fail(b->err, BZ_BAD_INPUT, "the model has too many nodes");
    s->results = b->model->n_values;
    s->next[1] = (uint32_t)(s->results - s->first);
    g->nodes = bz_arena_take(b->arena, n * sizeof *g->nodes);
    g->n_nodes = (int)n;
    for (size_t i = 0; i < n; i++)
        if (name_node(b, s, nodes[i], &g->nodes[i]))
            return -1;
    return 0;
}

static int link_nodes(builder *b, scope *s, bz_graph *g, Onnx__NodeProto *const *nodes)
{
    bz_value_id last = b->model->n_values; /* bodies bring more */
    for (int i = 0; i < g->n_nodes; i++)
        if (link_node(b, s, nodes[i], &g->nodes[i]))
            return -1;
    return sort_nodes(b, g, s->results, last);
}

static int link_output(builder *b, scope *s, const char *name, bz_value_id *id)
{
    *id = *name ? resolve(b, s, name) : BZ_NO_VALUE;
    if (*id == BZ_NO_VALUE && *name)
        return bz_fail(b->err, BZ_BAD_INPUT, "graph output '%s' is made by nothing", name);
    return 0;
}

static int link_outputs(builder *b, scope *s, const Onnx__GraphProto *p, bz_graph *g)
{
    g->outputs = BZ_NEW(b->arena, bz_value_id, p->n_output);
    g->n_outputs = (int)p->n_output;
    for (size_t i = 0; i < p->n_output; i++)
        if (link_output(b, s, text_of(p->output[i]->name), &g->outputs[i]))
            return -1;
    return 0;
}

static int fill_graph(builder *b, scope *s, bz_graph *g, const Onnx__GraphProto *p)
{
    g->name = text_of(p->name);
    bz_map_reserve(&s->names, (uint32_t)(p->n_input + p->n_initializer + p->n_sparse_initializer + p->n_node));
    return define_inputs(b, s, p, g) || define_initializers(b, s, p, g) || build_nodes(b, s, g, p->n_node, p->node) ||
                   declare_types(b, s, p->n_value_info, p->value_info) || declare_types(b, s, p->n_output, p->output) ||
                   link_nodes(b, s, g, p->node) || link_outputs(b, s, p, g)
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

static int fill_function(builder *b, scope *s, bz_graph *g, const Onnx__FunctionProto *p)
{
    g->name = text_of(p->name);
    g->inputs = BZ_NEW(b->arena, bz_value_id, p->n_input);
    g->outputs = BZ_NEW(b->arena, bz_value_id, p->n_output);
    for (g->n_inputs = 0; (size_t)g->n_inputs < p->n_input; g->n_inputs++)
        if (define_input(b, s, p->input[g->n_inputs], NULL, &g->inputs[g->n_inputs]))
            return -1;
    if (build_nodes(b, s, g, p->n_node, p->node) || link_nodes(b, s, g, p->node))
        return -1;
    for (g->n_outputs = 0; (size_t)g->n_outputs < p->n_output; g->n_outputs++)
        if (link_output(b, s, p->output[g->n_outputs], &g->outputs[g->n_outputs]))
            return -1;
    return 0;
}

int bz_model_inline(bz_model *model, const bz_node *call, bz_graph **body, bz_error *err)
{
    const Onnx__FunctionProto *f = model->file->proto->functions[call->function];
    builder b = {.model = model, .arena = &model->arena, .err = err, .call = call, .function = f};
    bz_graph *g = BZ_NEW(b.arena, bz_graph, 1);
    scope s = {.first = model->n_values};
    decode_opsets(&b, f->n_opset_import, f->opset_import);
    int failed = fill_function(&b, &s, g, f);
    bz_map_free(&s.names);
    *body = failed ? NULL : g;
    return failed ? bz_fail_in(err, "function '%s'", call->op) : 0;
}

int add_function(builder *b, const Onnx__FunctionProto *p, uint32_t index)
{
    const char *name = text_of(p->name), *domain = domain_of(p->domain);
    BZ_SCOPED(bz_buf) key = {0};
    function_key(domain, name, text_of(p->overload), &key);
    const char *kept = bz_arena_dup(b->arena, key.data, key.len);
    uint32_t k = bz_map_add(&b->model->file->function_names, kept, key.len, index);
    if (k != index)
        return bz_fail(b->err, BZ_BAD_INPUT, "two functions are named '%s' (domain '%s')", name, domain);
    return 0;
}
