/* Graphs: names become numbers, nodes get into topological order. */
#include "onnx/build.h"

#include "graph/graph.h"

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

static void add_slice(slices *list, slice item)
{
    if (list->n == list->cap) {
        list->cap = list->cap * 2 + 64;
        list->at = bz_realloc(list->at, list->cap, sizeof *list->at);
    }
    list->at[list->n++] = item;
}

/* A new value in this scope. Returns BZ_NO_VALUE when the name is taken. */
static bz_value_id define(builder *b, scope *s, slice name, const char *text)
{
    uint32_t id = (uint32_t)b->model->n_values;
    if (bz_map_add(&s->names, name.data, name.size, id) != id)
        return BZ_NO_VALUE;
    add_slice(&s->defined, name);
    return new_value(b, text ? text : decode_text(b, name));
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

/* Nodes mostly read results and initializers in the order in which these stand there: is it the one behind
 * the one that was read last? */
static bz_value_id guess(scope *s, slice name)
{
    for (int k = 0; k < 2; k++) {
        size_t next = (size_t)s->next[k];
        if (next < s->defined.n && s->defined.at[next].size == name.size &&
            !memcmp(s->defined.at[next].data, name.data, name.size))
            return s->first + s->next[k]++;
    }
    return BZ_NO_VALUE;
}

/* Looks a name up from the inside out; every scope that is passed on the way captures the value. */
static bz_value_id resolve(builder *b, scope *s, slice name)
{
    bz_value_id guessed = guess(s, name);
    if (guessed != BZ_NO_VALUE)
        return guessed;
    scope *found = s;
    uint32_t id = BZ_MAP_NONE;
    for (; found; found = found->outer)
        if ((id = bz_map_get(&found->names, name.data, name.size)) != BZ_MAP_NONE)
            break;
    if (id == BZ_MAP_NONE)
        return BZ_NO_VALUE;
    for (scope *inner = s; inner != found; inner = inner->outer)
        capture(b, inner, (bz_value_id)id);
    if (found == s) {
        int32_t at = (bz_value_id)id - s->first;
        bool result = (bz_value_id)id >= s->results;
        s->next[result] = result && at < s->next[1] ? s->next[1] : at + 1;
    }
    return (bz_value_id)id;
}

/* ---- the parts of a graph -------------------------------------------------------------------- */

typedef enum { NO_PART, NAME, NODES, INITIALIZERS, SPARSE, INPUTS, OUTPUTS, VALUES, N_PARTS } part;

/* Where the repeated fields of a GraphProto or FunctionProto lie, in the order of the file. */
typedef struct {
    slices of[N_PARTS];
    slice name;
} parts;

/* By field. */
enum { N_FIELDS = 16, F_NAME = 1, F_DOMAIN = 10, F_OVERLOAD = 13 };
static const uint8_t GRAPH_PART[N_FIELDS] =
    {[1] = NODES, [2] = NAME, [5] = INITIALIZERS, [11] = INPUTS, [12] = OUTPUTS, [13] = VALUES, [15] = SPARSE},
                     FUNCTION_PART[N_FIELDS] = {[F_NAME] = NAME, [4] = INPUTS, [5] = OUTPUTS, [7] = NODES};

static int find_parts(builder *b, slice m, const uint8_t part_of[N_FIELDS], parts *p)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    int more;
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (f.type != 2 || f.number >= N_FIELDS || !part_of[f.number])
            continue;
        slice item = {f.data, (size_t)f.size};
        if (part_of[f.number] == NAME)
            p->name = item;
        else
            add_slice(&p->of[part_of[f.number]], item);
    }
    return more;
}

static void free_scope(scope *s)
{
    bz_map_free(&s->names);
    free(s->reads.at);
    free(s->attrs.at);
    free(s->defined.at);
}

static void free_parts(parts *p)
{
    for (int k = 0; k < N_PARTS; k++)
        free(p->of[k].at);
}

/* ---- what a graph declares ----------------------------------------------------------------- */

/* ValueInfoProto */
static int split_value(builder *b, slice m, slice *name, slice *type)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    int more;
    *name = *type = (slice){0};
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (f.number == 1 && f.type == 2)
            *name = (slice){f.data, (size_t)f.size};
        else if (f.number == 2 && f.type == 2)
            *type = (slice){f.data, (size_t)f.size};
    }
    return more;
}

static int define_input(builder *b, scope *s, slice name, slice type, bz_value_id *id)
{
    if (!name.size)
        return bz_fail(b->err, BZ_BAD_INPUT, "a graph input has no name");
    const char *text = decode_text(b, name);
    *id = define(b, s, name, text);
    if (*id == BZ_NO_VALUE)
        return bz_fail(b->err, BZ_BAD_INPUT, "two graph inputs are named '%s'", text);
    const bz_type *declared;
    if (!type.data)
        return 0;
    if (decode_type(b, type, &declared))
        return bz_fail_in(b->err, "input '%s'", text);
    b->model->values[*id].declared = declared;
    return 0;
}

static int define_inputs(builder *b, scope *s, const parts *p, bz_graph *g, bool functions)
{
    g->inputs = BZ_NEW(b->arena, bz_value_id, p->of[INPUTS].n);
    for (size_t i = 0; i < p->of[INPUTS].n; i++) {
        slice name = p->of[INPUTS].at[i], type = {0};
        if ((!functions && split_value(b, p->of[INPUTS].at[i], &name, &type)) ||
            define_input(b, s, name, type, &g->inputs[i]))
            return -1;
    }
    g->n_inputs = (int)p->of[INPUTS].n;
    return 0;
}

static int define_initializer(builder *b, scope *s, bz_tensor *t)
{
    slice name = {(const uint8_t *)t->name, strlen(t->name)};
    if (!name.size)
        return bz_fail(b->err, BZ_BAD_INPUT, "an initializer has no name");
    bz_value_id id = define(b, s, name, t->name);
    if (id == BZ_NO_VALUE) /* before IR version 4 initializers were listed as inputs, too */
        id = (bz_value_id)bz_map_get(&s->names, name.data, name.size);
    if (b->model->values[id].init)
        return bz_fail(b->err, BZ_BAD_INPUT, "two initializers are named '%s'", t->name);
    b->model->values[id].init = t;
    return 0;
}

static int define_initializers(builder *b, scope *s, const parts *p, bz_graph *g)
{
    bz_tensor *t = BZ_NEW(b->arena, bz_tensor, p->of[INITIALIZERS].n + p->of[SPARSE].n);
    for (size_t i = 0; i < p->of[INITIALIZERS].n; i++, t++)
        if (decode_tensor(b, p->of[INITIALIZERS].at[i], t) || define_initializer(b, s, t))
            return -1;
    for (size_t i = 0; i < p->of[SPARSE].n; i++, t++)
        if (decode_sparse(b, p->of[SPARSE].at[i], t) || define_initializer(b, s, t))
            return -1;
    int n = g->n_inputs;
    g->n_inputs = 0;
    for (int i = 0; i < n; i++)
        if (!b->model->values[g->inputs[i]].init)
            g->inputs[g->n_inputs++] = g->inputs[i];
    return 0;
}

static int declare_types(builder *b, scope *s, const slices *infos)
{
    for (size_t i = 0; i < infos->n; i++) {
        slice name, type;
        if (split_value(b, infos->at[i], &name, &type))
            return -1;
        uint32_t id = name.size && type.data ? bz_map_get(&s->names, name.data, name.size) : BZ_MAP_NONE;
        if (id == BZ_MAP_NONE || b->model->values[id].declared)
            continue;
        const bz_type *declared;
        if (decode_type(b, type, &declared))
            return bz_fail_in(b->err, "value '%s'", b->model->values[id].name);
        b->model->values[id].declared = declared;
    }
    return 0;
}

/* ---- nodes --------------------------------------------------------------------------------- */

enum { N_INPUT = 1, N_OUTPUT = 2, N_NAME = 3, N_OP = 4, N_ATTRIBUTE = 5, N_DOMAIN = 7, N_OVERLOAD = 8 };

static int opset_of(const builder *b, const char *domain)
{
    for (int i = 0; i < b->n_opsets; i++)
        if (!strcmp(b->opsets[i].domain, domain))
            return b->opsets[i].version;
    return 0;
}

/* "domain\0name\0overload": what calls and functions find one another by. */
static void function_key(const char *domain, const char *name, slice overload, bz_buf *key)
{
    bz_buf_put(key, domain, strlen(domain) + 1);
    bz_buf_put(key, name, strlen(name) + 1);
    bz_buf_put(key, overload.data, overload.size);
}

static int find_function(const builder *b, const bz_node *node, slice overload)
{
    if (!b->model->file->n_functions)
        return -1;
    bz_buf key = {0};
    function_key(node->domain, node->op, overload, &key);
    uint32_t k = bz_map_get(&b->model->file->function_names, key.data, key.len);
    bz_buf_free(&key);
    return k == BZ_MAP_NONE ? -1 : (int)k;
}

static int define_result(builder *b, scope *s, slice name, const bz_node *node, bz_value_id *id)
{
    *id = name.size ? define(b, s, name, NULL) : BZ_NO_VALUE;
    if (name.size && *id == BZ_NO_VALUE)
        return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) makes '%s', which is made elsewhere already", node->name,
                       node->op, decode_text(b, name));
    return 0;
}

/* Who a node is, how much of everything it has, and what it makes. */
static int name_node(builder *b, scope *s, slice m, bz_node *node)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    enum { FEW = 8 };
    slice overload = {0}, results[FEW];
    size_t n_in = s->reads.n, n_out = 0, n_attrs = s->attrs.n;
    int more;
    node->name = node->op = node->domain = "";
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        slice bytes = {f.data, (size_t)f.size};
        if (f.type != 2)
            continue;
        if (f.number == N_INPUT)
            add_slice(&s->reads, bytes);
        else if (f.number == N_ATTRIBUTE)
            add_slice(&s->attrs, bytes);
        else if (f.number == N_OUTPUT && n_out++ < FEW)
            results[n_out - 1] = bytes;
        else if (f.number == N_NAME)
            node->name = decode_text(b, bytes);
        else if (f.number == N_OP)
            node->op = decode_word(b, bytes);
        else if (f.number == N_DOMAIN)
            node->domain = is_text(bytes, "ai.onnx") ? "" : decode_word(b, bytes);
        else if (f.number == N_OVERLOAD)
            overload = bytes;
    }
    if (more < 0)
        return -1;
    n_in = s->reads.n - n_in;
    n_attrs = s->attrs.n - n_attrs;
    if (!*node->op)
        return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' has no operator type", node->name);
    if (n_in > INT16_MAX || n_out > INT16_MAX || n_attrs > INT16_MAX)
        return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) has more than %d operands or attributes", node->name,
                       node->op, INT16_MAX);
    node->opset = opset_of(b, node->domain);
    node->function = find_function(b, node, overload);
    bz_value_id *ids = bz_arena_take(b->arena, (n_in + n_out) * sizeof *ids); /* filled in below, and by link_node() */
    node->in = ids;
    node->n_in = (int)n_in;
    node->attrs = bz_arena_take(b->arena, n_attrs * sizeof *node->attrs);
    node->n_attrs = (int)n_attrs;
    node->out = ids += n_in;
    for (size_t i = 0; i < n_out && n_out <= FEW; i++)
        if (define_result(b, s, results[i], node, &ids[i]))
            return -1;
    for (r = read_message(b, m); n_out > FEW && wire_next(&r, &f, b->err) > 0;)
        if (f.number == N_OUTPUT && f.type == 2 && define_result(b, s, (slice){f.data, (size_t)f.size}, node, ids++))
            return -1;
    node->n_out = (int)n_out;
    return 0;
}

/* When all names are known: what it reads, and its attributes, which are the next ones in the lists. */
static int link_node(builder *b, scope *s, size_t *read, size_t *attr, bz_node *node)
{
    bz_value_id *in = (bz_value_id *)node->in;
    for (int k = 0; k < node->n_in; k++) {
        slice name = s->reads.at[(*read)++];
        in[k] = name.size ? resolve(b, s, name) : BZ_NO_VALUE;
        if (name.size && in[k] == BZ_NO_VALUE)
            return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) reads '%s', which nothing makes", node->name, node->op,
                           decode_text(b, name));
    }
    bz_attr *attrs = (bz_attr *)node->attrs;
    int n_attrs = node->n_attrs;
    node->n_attrs = 0;
    for (int k = 0; k < n_attrs; k++) {
        int result = decode_attr(b, s, s->attrs.at[(*attr)++], &attrs[node->n_attrs]);
        if (result < 0) /* deep down the way there would be longer than the reason */
            return b->depth > 3 ? -1 : bz_fail_in(b->err, "node '%s' (%s)", node->name, node->op);
        node->n_attrs += result == 0;
    }
    return 0;
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
    bz_arena work = {0};
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
    bz_arena_free(&work);
    if (circle >= 0)
        return bz_fail(b->err, BZ_BAD_INPUT, "node '%s' (%s) needs its own result: the graph has a cycle",
                       g->nodes[circle].name, g->nodes[circle].op);
    g->nodes = sorted;
    return 0;
}

/* ---- graphs -------------------------------------------------------------------------------- */

static int build_nodes(builder *b, scope *s, bz_graph *g, const parts *p)
{
    if (p->of[NODES].n > INT32_MAX / 4 || b->model->n_values > MAX_VALUES)
        return bz_fail(b->err, BZ_BAD_INPUT, "the model has too many nodes");
    s->results = b->model->n_values;
    s->next[1] = s->results - s->first;
    g->nodes = BZ_NEW(b->arena, bz_node, p->of[NODES].n);
    g->n_nodes = (int)p->of[NODES].n;
    for (int i = 0; i < g->n_nodes; i++)
        if (name_node(b, s, p->of[NODES].at[i], &g->nodes[i]))
            return -1;
    return 0;
}

/* Names are all defined by now, so nodes may stand in any order. */
static int link_nodes(builder *b, scope *s, bz_graph *g)
{
    size_t read = 0, attr = 0;
    bz_value_id last = b->model->n_values; /* bodies bring more */
    for (int i = 0; i < g->n_nodes; i++)
        if (link_node(b, s, &read, &attr, &g->nodes[i]))
            return -1;
    return sort_nodes(b, g, s->results, last);
}

static int link_outputs(builder *b, scope *s, bz_graph *g, const parts *p, bool functions)
{
    g->outputs = BZ_NEW(b->arena, bz_value_id, p->of[OUTPUTS].n);
    g->n_outputs = (int)p->of[OUTPUTS].n;
    for (size_t i = 0; i < p->of[OUTPUTS].n; i++) {
        slice name = p->of[OUTPUTS].at[i], type;
        if (!functions && split_value(b, p->of[OUTPUTS].at[i], &name, &type))
            return -1;
        g->outputs[i] = name.size ? resolve(b, s, name) : BZ_NO_VALUE;
        if (g->outputs[i] == BZ_NO_VALUE && name.size)
            return bz_fail(b->err, BZ_BAD_INPUT, "graph output '%s' is made by nothing", decode_text(b, name));
    }
    return 0;
}

static int fill_graph(builder *b, scope *s, bz_graph *g, slice m)
{
    parts p = {0};
    int failed = find_parts(b, m, GRAPH_PART, &p);
    g->name = decode_text(b, p.name);
    bz_map_reserve(&s->names, (uint32_t)(p.of[INPUTS].n + p.of[INITIALIZERS].n + p.of[SPARSE].n + p.of[NODES].n));
    failed = failed || define_inputs(b, s, &p, g, false) || define_initializers(b, s, &p, g) ||
             build_nodes(b, s, g, &p) || declare_types(b, s, &p.of[VALUES]) || declare_types(b, s, &p.of[OUTPUTS]) ||
             link_nodes(b, s, g) || link_outputs(b, s, g, &p, false);
    free_parts(&p);
    return failed ? -1 : 0;
}

bz_graph *build_graph(builder *b, scope *outer, slice m)
{
    if (b->depth >= MAX_DEPTH) {
        bz_fail(b->err, BZ_BAD_INPUT, "graphs are nested more than %d deep", MAX_DEPTH);
        return NULL;
    }
    b->depth++;
    bz_graph *g = BZ_NEW(b->arena, bz_graph, 1);
    scope s = {.outer = outer, .first = b->model->n_values};
    int failed = fill_graph(b, &s, g, m);
    g->captures = s.captures;
    g->n_captures = s.n_captures;
    free_scope(&s);
    b->depth--;
    return failed ? NULL : g;
}

static int fill_function(builder *b, scope *s, bz_graph *g, slice m)
{
    parts p = {0};
    int failed = find_parts(b, m, FUNCTION_PART, &p);
    g->name = decode_text(b, p.name);
    failed = failed || define_inputs(b, s, &p, g, true) || build_nodes(b, s, g, &p) || link_nodes(b, s, g) ||
             link_outputs(b, s, g, &p, true);
    free_parts(&p);
    return failed ? -1 : 0;
}

int bz_model_inline(bz_model *model, const bz_node *call, bz_graph **body, bz_error *err)
{
    enum { F_OPSETS = 9 };
    slice f = model->file->functions[call->function];
    builder b = {.model = model, .arena = &model->arena, .err = err, .call = call, .function = f};
    bz_graph *g = BZ_NEW(b.arena, bz_graph, 1);
    scope s = {.first = model->n_values};
    int failed = decode_opsets(&b, f, F_OPSETS) || fill_function(&b, &s, g, f);
    free_scope(&s);
    *body = failed ? NULL : g;
    return failed ? bz_fail_in(err, "function '%s'", call->op) : 0;
}

int add_function(builder *b, slice m)
{
    bz_model_file *file = b->model->file;
    wire_reader r = read_message(b, m);
    wire_field f;
    slice name = {0}, domain = {0}, overload = {0};
    int more;
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        slice bytes = {f.data, (size_t)f.size};
        if (f.type == 2 && f.number == F_NAME)
            name = bytes;
        else if (f.type == 2 && f.number == F_DOMAIN)
            domain = bytes;
        else if (f.type == 2 && f.number == F_OVERLOAD)
            overload = bytes;
    }
    if (more < 0)
        return -1;
    const char *name_text = decode_word(b, name),
               *domain_text = is_text(domain, "ai.onnx") ? "" : decode_word(b, domain);
    bz_buf key = {0};
    function_key(domain_text, name_text, overload, &key);
    const char *kept = bz_arena_dup(b->arena, key.data, key.len);
    uint32_t k = bz_map_add(&file->function_names, kept, key.len, (uint32_t)file->n_functions);
    bz_buf_free(&key);
    if (k != (uint32_t)file->n_functions)
        return bz_fail(b->err, BZ_BAD_INPUT, "two functions are named '%s' (domain '%s')", name_text, domain_text);
    file->functions[file->n_functions++] = m;
    return 0;
}
