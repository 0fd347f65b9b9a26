/* Local functions: found by domain, name and overload; made anew for every call with its attributes. */
#include "writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bz_buf a_function(const char *domain, const char *name, const char *in, const char *out)
{
    bz_buf f = {0};
    put_text(&f, FUNCTION_NAME, name);
    put_text(&f, FUNCTION_DOMAIN, domain);
    put_names(&f, FUNCTION_INPUT, in);
    put_names(&f, FUNCTION_OUTPUT, out);
    put_opset(&f, FUNCTION_OPSET, "", 15);
    return f;
}

static bz_buf a_call(const char *domain, const char *op, const char *in, const char *out)
{
    bz_buf node = a_node(op, op, in, out);
    put_text(&node, NODE_DOMAIN, domain);
    return node;
}

/* A model with input x, one call and some functions; takes them over. */
static bz_model *load(bz_buf call, bz_buf *functions, int n, bz_buf *bytes)
{
    bz_buf graph = {0};
    put_message(&graph, GRAPH_INPUT, a_value("x", BZ_F32, "1"));
    put_message(&graph, GRAPH_NODE, call);
    *bytes = a_model(8, 17, graph);
    put_opset(bytes, MODEL_OPSET, "local", 1);
    for (int i = 0; i < n; i++)
        put_message(bytes, MODEL_FUNCTION, functions[i]);
    bz_model *m;
    bz_error err = {0};
    if (bz_model_parse(bytes->data, bytes->len, "test", &m, &err))
        fail_msg("%s", err.text);
    return m;
}

static const bz_graph *inlined(bz_model *m)
{
    bz_graph *body;
    bz_error err = {0};
    assert_int_equal(m->graph->nodes[0].function, 0);
    if (bz_model_inline(m, &m->graph->nodes[0], &body, &err))
        fail_msg("%s", err.text);
    return body;
}

static void inline_fails(bz_buf function, const char *why)
{
    bz_buf bytes;
    bz_model *m = load(a_call("local", "F", "x", "y"), &function, 1, &bytes);
    bz_graph *body;
    bz_error err = {0};
    assert_int_equal(bz_model_inline(m, &m->graph->nodes[0], &body, &err), -1);
    assert_null(body);
    if (!strstr(err.text, why))
        fail_msg("'%s' does not say '%s'", err.text, why);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void bodies_are_made_anew(void **state)
{
    (void)state;
    bz_buf f = a_function("local", "F", "a b", "r"), bytes;
    put_message(&f, FUNCTION_NODE, a_node("Mul", "second", "t b", "r")); /* in any order */
    put_message(&f, FUNCTION_NODE, a_node("Add", "first", "a a", "t"));
    bz_model *m = load(a_call("local", "F", "x", "y"), &f, 1, &bytes);
    int before = m->n_values;
    const bz_graph *one = inlined(m), *two = inlined(m);
    assert_int_equal(m->n_values, before + 8);
    assert_int_equal(one->n_inputs, 2);
    assert_int_equal(one->n_outputs, 1);
    assert_int_equal(one->n_nodes, 2);
    assert_string_equal(one->nodes[0].name, "first");
    assert_int_equal(one->nodes[0].opset, 15); /* the function's own import, not the model's */
    assert_int_equal(one->nodes[0].in[0], one->inputs[0]);
    assert_int_equal(one->nodes[1].in[1], one->inputs[1]);
    assert_int_equal(one->outputs[0], one->nodes[1].out[0]);
    assert_int_not_equal(one->inputs[0], two->inputs[0]);
    assert_int_not_equal(one->outputs[0], two->outputs[0]);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void functions_are_found_by_domain_and_overload(void **state)
{
    (void)state;
    static const char *const CALLS[][4] = {
        /* domain, name, overload, function that is meant */
        {"local", "F", "", "0"},        {"other", "F", "", "1"},  {"local", "F", "wide", "2"},
        {"local", "F", "narrow", "-1"}, {"local", "G", "", "-1"}, {"", "Relu", "", "3"},
    };
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
        bz_buf f[] = {a_function("local", "F", "", ""), a_function("other", "F", "", ""),
                      a_function("local", "F", "", ""), a_function("ai.onnx", "Relu", "", "")};
        put_text(&f[2], FUNCTION_OVERLOAD, "wide");
        bz_buf call = a_call(CALLS[i][0], CALLS[i][1], "x", "y"), bytes;
        if (*CALLS[i][2])
            put_text(&call, NODE_OVERLOAD, CALLS[i][2]);
        bz_model *m = load(call, f, 4, &bytes);
        assert_int_equal(m->graph->nodes[0].function, atoi(CALLS[i][3]));
        bz_model_free(m);
        bz_buf_free(&bytes);
    }
}

static bz_buf function_with_references(void)
{
    bz_buf f = a_function("local", "F", "a", "r"), node = a_node("Op", "op", "a", "r");
    put_text(&f, FUNCTION_ATTR, "given");
    put_message(&f, FUNCTION_DEFAULT, an_int_attr("spare", 7));
    put_message(&f, FUNCTION_DEFAULT, an_int_attr("given", 8));
    put_message(&f, FUNCTION_DEFAULT, a_reference("ring", 2, "ring"));
    put_message(&node, NODE_ATTR, a_reference("p", 2, "given"));
    put_message(&node, NODE_ATTR, a_reference("q", 2, "spare"));
    put_message(&node, NODE_ATTR, a_reference("r", 2, "unset"));
    put_message(&node, NODE_ATTR, a_reference("s", 2, "ring"));
    put_message(&node, NODE_ATTR, an_int_attr("t", 9));
    put_message(&f, FUNCTION_NODE, node);
    return f;
}

static void references_take_the_calls_attributes(void **state)
{
    (void)state;
    bz_buf f = function_with_references(), call = a_call("local", "F", "x", "y"), bytes;
    put_message(&call, NODE_ATTR, an_int_attr("given", 42));
    bz_model *m = load(call, &f, 1, &bytes);
    const bz_node *node = inlined(m)->nodes;
    assert_int_equal(node->n_attrs, 3);
    assert_int_equal(bz_node_attr(node, "p")->i, 42);
    assert_int_equal(bz_node_attr(node, "q")->i, 7); /* not given: the default */
    assert_null(bz_node_attr(node, "r"));            /* neither: left out */
    assert_null(bz_node_attr(node, "s"));
    assert_int_equal(bz_node_attr(node, "t")->i, 9);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void references_outside_functions_are_left_out(void **state)
{
    (void)state;
    bz_buf graph = {0}, node = a_node("Op", "a", "", "y");
    put_message(&node, NODE_ATTR, a_reference("p", 2, "anything"));
    put_message(&graph, GRAPH_NODE, node);
    bz_buf bytes = a_model(8, 17, graph);
    bz_model *m;
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "test", &m, NULL), 0);
    assert_int_equal(m->graph->nodes[0].n_attrs, 0);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

/* An If inside a function: its bodies see the function's values and its call's attributes. */
static void bodies_inside_functions(void **state)
{
    (void)state;
    bz_buf f = a_function("local", "F", "a", "r"), branch = {0}, inner = a_node("Op", "inner", "a", "b");
    put_message(&inner, NODE_ATTR, a_reference("p", 2, "given"));
    put_message(&branch, GRAPH_NODE, inner);
    put_message(&branch, GRAPH_OUTPUT, a_value("b", BZ_F32, "1"));
    bz_buf node = a_node("If", "if", "a", "r"), attr = an_attr("then_branch", 5), bytes;
    put_message(&attr, ATTR_G, branch);
    put_message(&node, NODE_ATTR, attr);
    put_message(&f, FUNCTION_NODE, node);
    bz_buf call = a_call("local", "F", "x", "y");
    put_message(&call, NODE_ATTR, an_int_attr("given", 5));
    bz_model *m = load(call, &f, 1, &bytes);
    const bz_graph *body = inlined(m), *then = bz_node_attr(&body->nodes[0], "then_branch")->graph;
    assert_int_equal(bz_node_attr(&then->nodes[0], "p")->i, 5);
    assert_int_equal(then->n_captures, 1);
    assert_int_equal(then->captures[0], body->inputs[0]);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void constants_inside_functions(void **state)
{
    (void)state;
    bz_buf f = a_function("local", "F", "", "r"), node = a_node("Constant", "c", "", "r"), attr = an_attr("value", 4),
           bytes;
    put_message(&attr, ATTR_T, a_raw_tensor("", BZ_I32, "1", "\011\0\0\0", 4));
    put_message(&node, NODE_ATTR, attr);
    put_message(&f, FUNCTION_NODE, node);
    bz_model *m = load(a_call("local", "F", "", "y"), &f, 1, &bytes);
    const bz_attr *value = bz_node_attr(&inlined(m)->nodes[0], "value");
    int64_t v = 0;
    assert_non_null(value);
    assert_int_equal(bz_tensor_ints(m, value->tensor, &v, NULL), 0);
    assert_int_equal(v, 9);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void duplicate_functions_are_refused(void **state)
{
    (void)state;
    bz_buf graph = {0};
    put_text(&graph, GRAPH_NAME, "g");
    bz_buf bytes = a_model(8, 17, graph);
    for (int i = 0; i < 2; i++)
        put_message(&bytes, MODEL_FUNCTION, a_function("local", "F", "", ""));
    bz_model *m;
    bz_error err = {0};
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "test", &m, &err), -1);
    assert_string_equal(err.text, "test: two functions are named 'F' (domain 'local')");
    bz_buf_free(&bytes);
}

static void broken_functions(void **state)
{
    (void)state;
    bz_buf cycle = a_function("local", "F", "a", "r"), unknown = a_function("local", "F", "a", "r"),
           outer = a_function("local", "F", "a", "r"), twice = a_function("local", "F", "a a", "a");
    put_message(&cycle, FUNCTION_NODE, a_node("Op", "n", "r", "r"));
    inline_fails(cycle, "function 'F': node 'n' (Op) needs its own result");
    inline_fails(unknown, "function 'F': graph output 'r' is made by nothing");
    put_message(&outer, FUNCTION_NODE, a_node("Op", "n", "x", "r")); /* the model's values are not its own */
    inline_fails(outer, "function 'F': node 'n' (Op) reads 'x', which nothing makes");
    inline_fails(twice, "two graph inputs are named 'a'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_made_anew),
        cmocka_unit_test(functions_are_found_by_domain_and_overload),
        cmocka_unit_test(references_take_the_calls_attributes),
        cmocka_unit_test(references_outside_functions_are_left_out),
        cmocka_unit_test(bodies_inside_functions),
        cmocka_unit_test(constants_inside_functions),
        cmocka_unit_test(duplicate_functions_are_refused),
        cmocka_unit_test(broken_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
