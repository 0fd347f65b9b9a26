/* Names, scopes, order, attributes: what a loaded graph promises. */
#include "writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Takes `graph` over. The bytes must outlive the model. */
static bz_model *load(bz_buf graph, bz_buf *bytes)
{
    *bytes = a_model(8, 17, graph);
    bz_model *m;
    bz_error err = {0};
    if (bz_model_parse(bytes->data, bytes->len, "test", &m, &err))
        fail_msg("%s", err.text);
    return m;
}

static void bytes_fail(bz_buf bytes, const char *why)
{
    bz_model *m;
    bz_error err = {0};
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "test", &m, &err), -1);
    assert_null(m);
    assert_int_equal(err.code, BZ_BAD_INPUT);
    assert_ptr_equal(strstr(err.text, "test: "), err.text);
    if (!strstr(err.text, why))
        fail_msg("'%s' does not say '%s'", err.text, why);
    bz_buf_free(&bytes);
}

static void load_fails(bz_buf graph, const char *why)
{
    bytes_fail(a_model(8, 17, graph), why);
}

static const char *name_of(const bz_model *m, bz_value_id v)
{
    return v < 0 ? "_" : m->values[v].name;
}

typedef struct {
    const char *name, *in, *out;
} spec;

/* Without an input "x" the first value is a node's result. */
static bz_buf graph_of_some(const spec *nodes, int n, bool input)
{
    bz_buf graph = {0};
    if (input)
        put_message(&graph, GRAPH_INPUT, a_value("x", BZ_F32, "1"));
    for (int i = 0; i < n; i++)
        put_message(&graph, GRAPH_NODE, a_node("Op", nodes[i].name, nodes[i].in, nodes[i].out));
    return graph;
}

static bz_buf graph_of(const spec *nodes, int n)
{
    return graph_of_some(nodes, n, true);
}

static void order_is(const spec *nodes, int n, const char *expected)
{
    bz_buf bytes, order = {0};
    bz_model *m = load(graph_of(nodes, n), &bytes);
    assert_int_equal(m->graph->n_nodes, n);
    for (int i = 0; i < n; i++)
        bz_buf_puts(&order, m->graph->nodes[i].name);
    assert_string_equal(bz_buf_text(&order), expected);
    bz_buf_free(&order);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void ordered_graphs_keep_their_order(void **state)
{
    (void)state;
    static const spec CHAIN[] = {{"a", "x", "1"}, {"b", "x", "2"}, {"c", "1", "3"}, {"d", "2 3", "4"}};
    order_is(CHAIN, 4, "abcd");
}

static void unordered_graphs_are_sorted(void **state)
{
    (void)state;
    static const spec BACKWARDS[] = {{"a", "2", "y"}, {"b", "1", "2"}, {"c", "x", "1"}};
    static const spec DIAMOND[] = {{"d", "l r", "y"}, {"r", "t", "r"}, {"l", "t", "l"}, {"t", "x", "t"}};
    static const spec TWICE[] = {{"b", "1 1 _ 1", "y"}, {"a", "x", "1"}};
    order_is(BACKWARDS, 3, "cba");
    order_is(DIAMOND, 4, "tlrd");
    order_is(TWICE, 2, "ab");
}

/* Every permutation of a graph comes out in an order in which nothing is used before it is made. */
static void sorted_means_sorted(void **state)
{
    (void)state;
    enum { N = 60 };
    uint32_t seed = 3;
    for (int round = 0; round < 50; round++) {
        char text[N][3][40];
        spec nodes[N];
        int at[N];
        for (int i = 0; i < N; i++)
            at[i] = i;
        for (int i = N - 1; i > 0; i--) {
            seed = seed * 1664525 + 1013904223;
            int k = (int)((seed >> 8) % (uint32_t)(i + 1)), swap = at[i];
            at[i] = at[k];
            at[k] = swap;
        }
        for (int i = 0; i < N; i++) { /* node i reads two earlier ones */
            seed = seed * 1664525 + 1013904223;
            uint32_t a = (seed >> 8) % (uint32_t)(i + 1), b = (seed >> 20) % (uint32_t)(i + 1);
            snprintf(text[at[i]][0], 40, "n%d", i);
            snprintf(text[at[i]][1], 40, i ? "v%u v%u" : round % 2 ? "x" : "", a ? a - 1 : 0, b ? b - 1 : 0);
            snprintf(text[at[i]][2], 40, "v%d", i);
        }
        for (int i = 0; i < N; i++)
            nodes[i] = (spec){text[i][0], text[i][1], text[i][2]};
        bz_buf bytes;
        bz_model *m = load(graph_of_some(nodes, N, round % 2), &bytes);
        bool *made = calloc((size_t)m->n_values, sizeof *made);
        for (int i = 0; i < m->graph->n_inputs; i++)
            made[m->graph->inputs[i]] = true;
        for (int i = 0; i < N; i++) {
            for (int k = 0; k < m->graph->nodes[i].n_in; k++)
                assert_true(made[m->graph->nodes[i].in[k]]);
            made[m->graph->nodes[i].out[0]] = true;
        }
        free(made);
        bz_model_free(m);
        bz_buf_free(&bytes);
    }
}

static void cycles_are_refused(void **state)
{
    (void)state;
    static const spec SELF[] = {{"a", "1", "1"}};
    static const spec PAIR[] = {{"a", "2", "1"}, {"b", "1 x", "2"}};
    static const spec BEHIND[] = {{"a", "x 3", "1"}, {"b", "1", "2"}, {"c", "2", "3"}, {"d", "3", "y"}};
    load_fails(graph_of(SELF, 1), "node 'a' (Op) needs its own result: the graph has a cycle");
    load_fails(graph_of(PAIR, 2), "the graph has a cycle");
    load_fails(graph_of(BEHIND, 4), "the graph has a cycle");
}

/* A hundred thousand nodes, the last one first: must not need a deep stack. */
static void long_chains_are_sorted(void **state)
{
    (void)state;
    enum { N = 100000 };
    bz_buf graph = {0}, bytes;
    put_message(&graph, GRAPH_INPUT, a_value("0", BZ_F32, "1"));
    for (int i = N; i > 0; i--) {
        char in[16], out[16];
        snprintf(in, sizeof in, "%d", i - 1);
        snprintf(out, sizeof out, "%d", i);
        put_message(&graph, GRAPH_NODE, a_node("Op", out, in, out));
    }
    bz_model *m = load(graph, &bytes);
    assert_int_equal(m->graph->n_nodes, N);
    assert_string_equal(m->graph->nodes[0].name, "1");
    assert_string_equal(m->graph->nodes[N - 1].name, "100000");
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void names_are_resolved(void **state)
{
    (void)state;
    bz_buf graph = {0}, bytes;
    put_message(&graph, GRAPH_INPUT, a_value("x", BZ_F32, "2xNx"));
    put_message(&graph, GRAPH_INIT, a_raw_tensor("w", BZ_F32, "1", "\0\0\0\0", 4));
    put_message(&graph, GRAPH_NODE, a_node("Clip", "", "x _ w", "y _"));
    put_message(&graph, GRAPH_OUTPUT, a_value("y", BZ_F32, "2xNx"));
    put_message(&graph, GRAPH_VALUE, a_value("nobody", BZ_F32, "1"));
    bz_model *m = load(graph, &bytes);
    const bz_node *node = m->graph->nodes;
    assert_int_equal(m->graph->n_nodes, 1);
    assert_string_equal(node->name, "");
    assert_string_equal(node->op, "Clip");
    assert_string_equal(node->domain, "");
    assert_int_equal(node->opset, 17);
    assert_int_equal(node->function, -1);
    assert_int_equal(node->n_in, 3);
    assert_string_equal(name_of(m, node->in[0]), "x");
    assert_int_equal(node->in[1], BZ_NO_VALUE);
    assert_string_equal(name_of(m, node->in[2]), "w");
    assert_int_equal(node->n_out, 2);
    assert_int_equal(node->out[1], BZ_NO_VALUE);
    assert_int_equal(m->graph->n_inputs, 1);
    assert_int_equal(m->graph->n_outputs, 1);
    assert_int_equal(m->graph->outputs[0], node->out[0]);
    const bz_type *in = m->values[m->graph->inputs[0]].declared, *out = m->values[node->out[0]].declared;
    assert_int_equal(in->kind, BZ_TYPE_TENSOR);
    assert_int_equal(in->dtype, BZ_F32);
    assert_int_equal(in->rank, 2);
    assert_int_equal(in->dims[0], 2);
    assert_true(bz_is_symbol(in->dims[1]));
    assert_true(in->dims[1] == out->dims[1]); /* N is N everywhere */
    char text[64];
    assert_string_equal(bz_symbol_text(m, in->dims[1], text), "N");
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void duplicate_names_are_refused(void **state)
{
    (void)state;
    static const spec TWICE[] = {{"a", "x", "1"}, {"b", "x", "1"}};
    static const spec SAME[] = {{"a", "x", "1 1"}};
    static const spec INPUT[] = {{"a", "x", "x"}};
    load_fails(graph_of(TWICE, 2), "node 'b' (Op) makes '1', which is made elsewhere already");
    load_fails(graph_of(SAME, 1), "makes '1', which is made elsewhere already");
    load_fails(graph_of(INPUT, 1), "makes 'x', which is made elsewhere already");
    bz_buf inputs = {0}, initializers = {0}, both = {0}, made = {0};
    put_message(&inputs, GRAPH_INPUT, a_value("x", BZ_F32, "1"));
    put_message(&inputs, GRAPH_INPUT, a_value("x", BZ_F32, "1"));
    load_fails(inputs, "two graph inputs are named 'x'");
    put_message(&initializers, GRAPH_INIT, a_tensor("w", BZ_F32, "0"));
    put_message(&initializers, GRAPH_INIT, a_tensor("w", BZ_F32, "0"));
    load_fails(initializers, "two initializers are named 'w'");
    bz_buf sparse = {0};
    put_message(&sparse, 1, a_tensor("w", BZ_F32, "0"));
    put_message(&both, GRAPH_INIT, a_tensor("w", BZ_F32, "0"));
    put_message(&both, GRAPH_SPARSE, sparse);
    load_fails(both, "two initializers are named 'w'");
    put_message(&made, GRAPH_INIT, a_tensor("w", BZ_F32, "0"));
    put_message(&made, GRAPH_NODE, a_node("Op", "a", "", "w"));
    load_fails(made, "makes 'w', which is made elsewhere already");
}

static void missing_names_are_refused(void **state)
{
    (void)state;
    static const spec READS[] = {{"a", "x nowhere", "1"}};
    load_fails(graph_of(READS, 1), "node 'a' (Op) reads 'nowhere', which nothing makes");
    bz_buf output = {0}, input = {0}, op = {0}, initializer = {0};
    put_message(&output, GRAPH_OUTPUT, a_value("y", BZ_F32, "1"));
    load_fails(output, "graph output 'y' is made by nothing");
    put_message(&input, GRAPH_INPUT, a_value("", BZ_F32, "1"));
    load_fails(input, "a graph input has no name");
    put_message(&op, GRAPH_NODE, a_node("", "a", "", "1"));
    load_fails(op, "node 'a' has no operator type");
    put_message(&initializer, GRAPH_INIT, a_tensor("", BZ_F32, "0"));
    load_fails(initializer, "an initializer has no name");
}

/* Before IR version 4 every initializer was listed as an input, too. */
static void old_initializers_are_no_inputs(void **state)
{
    (void)state;
    bz_buf graph = {0};
    put_message(&graph, GRAPH_INPUT, a_value("w1", BZ_F32, "2"));
    put_message(&graph, GRAPH_INPUT, a_value("x", BZ_F32, "2"));
    put_message(&graph, GRAPH_INPUT, a_value("w2", BZ_F32, "2"));
    put_message(&graph, GRAPH_INIT, a_raw_tensor("w2", BZ_F32, "2", "\0\0\0\0\0\0\0\0", 8));
    put_message(&graph, GRAPH_INIT, a_raw_tensor("w1", BZ_F32, "2", "\0\0\0\0\0\0\0\0", 8));
    put_message(&graph, GRAPH_NODE, a_node("Sum", "s", "x w1 w2", "y"));
    bz_buf bytes = a_model(3, 8, graph);
    bz_model *m;
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "test", &m, NULL), 0);
    assert_int_equal(m->ir_version, 3);
    assert_int_equal(m->graph->n_inputs, 1);
    assert_string_equal(name_of(m, m->graph->inputs[0]), "x");
    for (int k = 1; k < 3; k++)
        assert_non_null(m->values[m->graph->nodes[0].in[k]].init);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void sparse_initializers_are_initializers(void **state)
{
    (void)state;
    bz_buf graph = {0}, sparse = {0}, bytes;
    put_message(&sparse, 1, a_tensor("w", BZ_F16, "0"));
    put_dims(&sparse, 3, "1000x1000");
    put_message(&graph, GRAPH_SPARSE, sparse);
    put_message(&graph, GRAPH_NODE, a_node("Identity", "", "w", "y"));
    bz_model *m = load(graph, &bytes);
    const bz_tensor *w = m->values[m->graph->nodes[0].in[0]].init;
    assert_non_null(w);
    assert_int_equal(w->dtype, BZ_F16);
    assert_int_equal(w->rank, 2);
    assert_int_equal(w->n, 1000000);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void dimensions(void **state)
{
    (void)state;
    bz_buf graph = {0}, negative = {0}, large = {0}, bytes, many = {0};
    put_message(&graph, GRAPH_INPUT, a_value("x", BZ_F32, "281474976710656x-1x0"));
    bz_model *m = load(graph, &bytes);
    const bz_type *t = m->values[m->graph->inputs[0]].declared;
    assert_true(t->dims[0] == BZ_MAX_DIM);
    assert_true(bz_is_symbol(t->dims[1])); /* -1 is how many write "unknown" */
    assert_int_equal(t->dims[2], 0);
    bz_model_free(m);
    bz_buf_free(&bytes);
    put_message(&negative, GRAPH_INPUT, a_value("x", BZ_F32, "-2"));
    load_fails(negative, "input 'x': a dimension is negative (-2)");
    put_message(&large, GRAPH_INPUT, a_value("x", BZ_F32, "9223372036854775807"));
    load_fails(large, "input 'x': a dimension is impossibly large (9223372036854775807)");
    bz_buf product = {0};
    put_message(&product, GRAPH_INPUT, a_value("x", BZ_F32, "1099511627776xNx1099511627776"));
    load_fails(product, "input 'x': its shape has more elements than any memory could hold");
    bz_buf dims = {0};
    for (int i = 0; i <= BZ_MAX_RANK; i++)
        bz_buf_puts(&dims, i ? "x1" : "1");
    put_message(&many, GRAPH_INPUT, a_value("x", BZ_F32, bz_buf_text(&dims)));
    bz_buf_free(&dims);
    load_fails(many, "a shape has 65 dimensions");
}

static bz_buf wrap(uint32_t outer, uint32_t inner, bz_buf type)
{
    bz_buf middle = {0}, out = {0};
    put_message(&middle, inner, type);
    put_message(&out, outer, middle);
    return out;
}

static void types_nest(void **state)
{
    (void)state;
    enum { SEQUENCE = 4, MAP = 5, OPTIONAL = 9 };
    bz_buf graph = {0}, value = {0}, map = {0}, type = {0}, bytes;
    put_int(&map, 1, BZ_STRING);
    put_message(&map, 2, wrap(OPTIONAL, 1, a_type(BZ_F32, "3")));
    put_message(&type, MAP, map);
    put_text(&value, 1, "x");
    put_message(&value, 2, wrap(SEQUENCE, 1, type));
    put_message(&graph, GRAPH_INPUT, value);
    bz_model *m = load(graph, &bytes);
    const bz_type *t = m->values[0].declared;
    assert_int_equal(t->kind, BZ_TYPE_SEQUENCE);
    assert_int_equal(t->elem->kind, BZ_TYPE_MAP);
    assert_int_equal(t->elem->dtype, BZ_STRING);
    assert_int_equal(t->elem->elem->kind, BZ_TYPE_OPTIONAL);
    assert_int_equal(t->elem->elem->elem->kind, BZ_TYPE_TENSOR);
    assert_int_equal(t->elem->elem->elem->dims[0], 3);
    bz_model_free(m);
    bz_buf_free(&bytes);
    bz_buf deep = a_type(BZ_F32, "1"), bad = {0}, deep_value = {0};
    for (int i = 0; i < 5000; i++)
        deep = wrap(SEQUENCE, 1, deep);
    put_text(&deep_value, 1, "x");
    put_message(&deep_value, 2, deep);
    put_message(&bad, GRAPH_INPUT, deep_value);
    load_fails(bad, "nested more than");
}

static bz_buf with_body(const char *op, const char *name, const char *in, const char *out, const char *attr,
                        bz_buf body)
{
    bz_buf node = a_node(op, name, in, out), a = an_attr(attr, 5);
    put_message(&a, ATTR_G, body);
    put_message(&node, NODE_ATTR, a);
    return node;
}

static bz_buf a_body(const char *in, const char *out)
{
    bz_buf body = {0};
    put_message(&body, GRAPH_NODE, a_node("Op", "inner", in, out));
    put_message(&body, GRAPH_OUTPUT, a_value(out, BZ_F32, ""));
    return body;
}

static void bodies_capture_outer_values(void **state)
{
    (void)state;
    bz_buf graph = {0}, middle = {0}, bytes;
    put_message(&graph, GRAPH_INPUT, a_value("x", BZ_F32, "1"));
    put_message(&graph, GRAPH_INPUT, a_value("unused", BZ_F32, "1"));
    put_message(&middle, GRAPH_INPUT, a_value("own", BZ_F32, "1"));
    put_message(&middle, GRAPH_NODE, with_body("If", "second", "own", "r", "then_branch", a_body("x own late", "s")));
    /* the body stands before the node that makes what it captures */
    put_message(&graph, GRAPH_NODE, with_body("Loop", "first", "x", "q", "body", middle));
    put_message(&graph, GRAPH_NODE, a_node("Op", "maker", "x", "late"));
    bz_model *m = load(graph, &bytes);
    const bz_graph *g = m->graph;
    assert_string_equal(g->nodes[0].name, "maker"); /* a capture is a dependence */
    assert_string_equal(g->nodes[1].name, "first");
    assert_int_equal(g->n_captures, 0);
    const bz_graph *body = bz_node_attr(&g->nodes[1], "body")->graph;
    assert_int_equal(body->n_captures, 2);
    assert_string_equal(name_of(m, body->captures[0]), "x");
    assert_string_equal(name_of(m, body->captures[1]), "late");
    assert_int_equal(body->captures[0], g->inputs[0]);
    const bz_graph *inner = bz_node_attr(&body->nodes[0], "then_branch")->graph;
    assert_int_equal(inner->n_captures, 3);
    assert_int_equal(inner->nodes[0].in[1], body->inputs[0]);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

/* A body's names end with it, and may hide outer ones. */
static void scopes_end(void **state)
{
    (void)state;
    bz_buf leak = {0}, hide = {0}, body = {0}, cycle = {0}, output = {0}, nothing = {0}, bytes;
    put_message(&leak, GRAPH_INPUT, a_value("x", BZ_F32, "1"));
    put_message(&leak, GRAPH_NODE, with_body("If", "if", "x", "y", "then_branch", a_body("x", "inside")));
    put_message(&leak, GRAPH_NODE, a_node("Op", "thief", "inside", "z"));
    load_fails(leak, "node 'thief' (Op) reads 'inside', which nothing makes");

    put_message(&hide, GRAPH_INPUT, a_value("x", BZ_F32, "1"));
    put_message(&body, GRAPH_INPUT, a_value("x", BZ_F32, "2"));
    put_message(&body, GRAPH_NODE, a_node("Op", "inner", "x", "y"));
    put_message(&hide, GRAPH_NODE, with_body("Loop", "loop", "x", "y", "body", body));
    bz_model *m = load(hide, &bytes);
    const bz_graph *g = bz_node_attr(&m->graph->nodes[0], "body")->graph;
    assert_int_equal(g->n_captures, 0);
    assert_int_equal(g->nodes[0].in[0], g->inputs[0]);
    assert_int_not_equal(g->nodes[0].in[0], m->graph->inputs[0]);
    bz_model_free(m);
    bz_buf_free(&bytes);

    put_message(&cycle, GRAPH_NODE, with_body("If", "if", "", "y", "then_branch", a_body("y", "z")));
    load_fails(cycle, "node 'if' (If) needs its own result");

    /* a body may just pass an outer value on */
    bz_buf pass = {0};
    put_message(&pass, GRAPH_OUTPUT, a_value("x", BZ_F32, "1"));
    put_message(&output, GRAPH_INPUT, a_value("x", BZ_F32, "1"));
    put_message(&output, GRAPH_NODE, with_body("If", "if", "x", "y", "then_branch", pass));
    m = load(output, &bytes);
    g = bz_node_attr(&m->graph->nodes[0], "then_branch")->graph;
    assert_int_equal(g->outputs[0], m->graph->inputs[0]);
    assert_int_equal(g->n_captures, 1);
    bz_model_free(m);
    bz_buf_free(&bytes);

    put_message(&nothing, GRAPH_NODE, with_body("If", "if", "", "y", "then_branch", a_body("x", "z")));
    load_fails(nothing, "node 'if' (If): node 'inner' (Op) reads 'x', which nothing makes");
}

static void put_head(bz_buf *b, uint32_t field, size_t n)
{
    put_varint(b, (uint64_t)field * 8 + 2);
    put_varint(b, n);
}

/* As many nodes "If", one in the other. What stands in front of a body tells its length: the lengths are worked out from the inside, and then all is
 * written once. */
static bz_buf nested(int depth)
{
    bz_buf inner = a_body("", "y"), node = a_node("If", "if", "", "y"), attr = an_attr("then_branch", 5), out = {0};
    size_t(*size)[3] =
        calloc((size_t)depth + 1, sizeof *size); /* of the attribute, the node, and the body that it is */
    size[0][2] = inner.len;
    for (int i = 1; i <= depth; i++) {
        const uint32_t field[] = {ATTR_G, NODE_ATTR, GRAPH_NODE};
        size_t n = size[i - 1][2];
        for (int k = 0; k < 3; k++) {
            bz_buf_clear(&out);
            put_head(&out, field[k], n);
            n = size[i][k] = n + out.len + (k == 0 ? attr.len : k == 1 ? node.len : 0);
        }
    }
    bz_buf_clear(&out);
    for (int i = depth; i > 0; i--) {
        put_head(&out, GRAPH_NODE, size[i][1]);
        bz_buf_put(&out, node.data, node.len);
        put_head(&out, NODE_ATTR, size[i][0]);
        bz_buf_put(&out, attr.data, attr.len);
        put_head(&out, ATTR_G, size[i - 1][2]);
    }
    bz_buf_put(&out, inner.data, inner.len);
    free(size);
    bz_buf_free(&inner), bz_buf_free(&node), bz_buf_free(&attr);
    return out;
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    for (int depth = 20; depth <= 20000; depth *= 10) {
        bz_buf graph = nested(depth);
        bz_buf bytes = a_model(8, 17, graph);
        bz_model *m;
        bz_error err = {0};
        assert_int_equal(bz_model_parse(bytes.data, bytes.len, "test", &m, &err), depth == 20 ? 0 : -1);
        if (depth > 20)
            assert_non_null(strstr(err.text, "nested more than"));
        bz_model_free(m);
        bz_buf_free(&bytes);
    }
}

static void attributes_of_every_kind(void **state)
{
    (void)state;
    bz_buf graph = {0}, node = a_node("Op", "a", "", "y"), bytes, a;
    put_message(&node, NODE_ATTR, an_int_attr("i", -5));
    a = an_attr("f", 1);
    put_varint(&a, 2 * 8 + 5);
    bz_buf_put(&a, "\0\0\300\077", 4);
    put_message(&node, NODE_ATTR, a);
    a = an_attr("s", 3);
    put_bytes(&a, ATTR_S, "a\0b", 3);
    put_message(&node, NODE_ATTR, a);
    a = an_attr("t", 4);
    put_message(&a, ATTR_T, a_raw_tensor("inside", BZ_I32, "1", "\003\0\0\0", 4));
    put_message(&node, NODE_ATTR, a);
    a = an_attr("sparse", 11);
    bz_buf sparse = {0};
    put_message(&sparse, 1, a_tensor("", BZ_I32, "0"));
    put_int(&sparse, 3, 9);
    put_message(&a, ATTR_SPARSE, sparse);
    put_message(&node, NODE_ATTR, a);
    a = an_attr("ints", 7);
    put_int(&a, ATTR_INTS, 1);
    put_bytes(&a, ATTR_INTS, "\002\003", 2);
    put_message(&node, NODE_ATTR, a);
    a = an_attr("floats", 6);
    put_bytes(&a, 7, "\0\0\200\077\0\0\0\300", 8);
    put_message(&node, NODE_ATTR, a);
    a = an_attr("strings", 8);
    put_text(&a, 9, "one");
    put_text(&a, 9, "");
    put_message(&node, NODE_ATTR, a);
    a = an_attr("type", 13);
    put_message(&a, 14, a_type(BZ_F16, "2"));
    put_message(&node, NODE_ATTR, a);
    a = an_attr("graphs", 10);
    put_message(&a, ATTR_GRAPHS, a_body("", "p"));
    put_message(&a, ATTR_GRAPHS, a_body("", "q"));
    put_message(&node, NODE_ATTR, a);
    a = (bz_buf){0}; /* from before attributes had types */
    put_text(&a, ATTR_NAME, "untyped");
    put_int(&a, ATTR_I, 11);
    put_message(&node, NODE_ATTR, a);
    put_message(&node, NODE_ATTR, an_attr("newer", 99));
    put_message(&graph, GRAPH_NODE, node);
    bz_model *m = load(graph, &bytes);
    const bz_node *n = m->graph->nodes;
    assert_int_equal(n->n_attrs, 11);
    assert_int_equal(bz_node_attr(n, "i")->i, -5);
    assert_true(bz_node_attr(n, "f")->f == 1.5f);
    assert_int_equal(bz_node_attr(n, "s")->s.len, 3);
    assert_memory_equal(bz_node_attr(n, "s")->s.data, "a\0b", 4);
    const bz_attr *t = bz_node_attr(n, "t");
    int64_t v;
    assert_int_equal(t->kind, BZ_ATTR_TENSOR);
    assert_int_equal(bz_tensor_ints(m, t->tensor, &v, NULL), 0);
    assert_int_equal(v, 3);
    assert_int_equal(bz_node_attr(n, "sparse")->tensor->n, 9);
    assert_int_equal(bz_node_attr(n, "ints")->n, 3);
    assert_int_equal(bz_node_attr(n, "ints")->ints[2], 3);
    assert_true(bz_node_attr(n, "floats")->floats[1] == -2.0f);
    assert_int_equal(bz_node_attr(n, "strings")->n, 2);
    assert_string_equal(bz_node_attr(n, "strings")->strings[0].data, "one");
    assert_string_equal(bz_node_attr(n, "strings")->strings[1].data, "");
    assert_int_equal(bz_node_attr(n, "type")->type->dtype, BZ_F16);
    assert_int_equal(bz_node_attr(n, "graphs")->n, 2);
    assert_string_equal(name_of(m, bz_node_attr(n, "graphs")->graphs[1]->outputs[0]), "q");
    assert_int_equal(bz_node_attr(n, "untyped")->i, 11);
    assert_null(bz_node_attr(n, "newer"));
    assert_null(bz_node_attr(n, "absent"));
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void attributes_that_hold_nothing(void **state)
{
    (void)state;
    static const int TYPES[] = {4, 5, 11, 13};
    for (int i = 0; i < 4; i++) {
        bz_buf graph = {0}, node = a_node("Op", "a", "", "y");
        put_message(&node, NODE_ATTR, an_attr("k", TYPES[i]));
        put_message(&graph, GRAPH_NODE, node);
        load_fails(graph, "node 'a' (Op): attribute 'k' says it holds something that is not there");
    }
}

static void operator_sets(void **state)
{
    (void)state;
    bz_buf graph = {0}, bytes = {0}, node = a_node("Op", "a", "", "1");
    put_text(&node, NODE_DOMAIN, "com.microsoft");
    put_message(&graph, GRAPH_NODE, node);
    node = a_node("Op", "b", "", "2");
    put_text(&node, NODE_DOMAIN, "ai.onnx");
    put_message(&graph, GRAPH_NODE, node);
    node = a_node("Op", "c", "", "3");
    put_text(&node, NODE_DOMAIN, "nobody.knows");
    put_message(&graph, GRAPH_NODE, node);
    put_message(&bytes, MODEL_GRAPH, graph); /* the sets may stand behind it */
    put_int(&bytes, MODEL_IR, 8);
    put_opset(&bytes, MODEL_OPSET, "com.microsoft", 1);
    put_opset(&bytes, MODEL_OPSET, "ai.onnx", 13);
    bz_model *m;
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "test", &m, NULL), 0);
    assert_int_equal(m->opset, 13);
    assert_string_equal(m->graph->nodes[0].domain, "com.microsoft");
    assert_int_equal(m->graph->nodes[0].opset, 1);
    assert_string_equal(m->graph->nodes[1].domain, "");
    assert_int_equal(m->graph->nodes[1].opset, 13);
    assert_int_equal(m->graph->nodes[2].opset, 0);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void missing_operator_sets(void **state)
{
    (void)state;
    for (int ir = 0; ir < 10; ir++) {
        bz_buf bytes = a_model(ir, 0, a_body("", "y"));
        if (ir >= 3) {
            bytes_fail(bytes, "does not say which operator set it uses");
            continue;
        }
        bz_model *m;
        assert_int_equal(bz_model_parse(bytes.data, bytes.len, "test", &m, NULL), 0);
        assert_int_equal(m->opset, 1);
        assert_int_equal(m->graph->nodes[0].opset, 1);
        bz_model_free(m);
        bz_buf_free(&bytes);
    }
    bz_buf absurd = a_model(8, INT64_MIN, a_body("", "y")), future = a_model(8, INT64_MAX, a_body("", "y"));
    bz_model *m;
    assert_int_equal(bz_model_parse(absurd.data, absurd.len, "test", &m, NULL), 0);
    assert_int_equal(m->opset, 1);
    bz_model_free(m);
    assert_int_equal(bz_model_parse(future.data, future.len, "test", &m, NULL), 0);
    assert_int_equal(m->opset, INT32_MAX);
    bz_model_free(m);
    bz_buf_free(&absurd);
    bz_buf_free(&future);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordered_graphs_keep_their_order),
        cmocka_unit_test(unordered_graphs_are_sorted),
        cmocka_unit_test(sorted_means_sorted),
        cmocka_unit_test(cycles_are_refused),
        cmocka_unit_test(long_chains_are_sorted),
        cmocka_unit_test(names_are_resolved),
        cmocka_unit_test(duplicate_names_are_refused),
        cmocka_unit_test(missing_names_are_refused),
        cmocka_unit_test(old_initializers_are_no_inputs),
        cmocka_unit_test(sparse_initializers_are_initializers),
        cmocka_unit_test(dimensions),
        cmocka_unit_test(types_nest),
        cmocka_unit_test(bodies_capture_outer_values),
        cmocka_unit_test(scopes_end),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(attributes_of_every_kind),
        cmocka_unit_test(attributes_that_hold_nothing),
        cmocka_unit_test(operator_sets),
        cmocka_unit_test(missing_operator_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
