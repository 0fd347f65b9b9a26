/* Models from nothing: what was put in is what a reader finds. */
#include "onnx/onnx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_declared(const bz_type *t, bz_dtype dtype, int rank, const int64_t *dims)
{
    assert_non_null(t);
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(t->dims[i], dims[i]);
}

static void nodes_stand_by_themselves(void **state)
{
    (void)state;
    static const int64_t PADS[] = {1, -2, 3, 4}, GROUP = 5, SHAPE[] = {2, 3, 7};
    bz_compose c = {0};
    bz_buf file = {0};
    bz_model *m;
    bz_error err = {0};
    int x = bz_compose_input(&c, BZ_F16, 3, SHAPE), w = bz_compose_weights(&c, BZ_BF16, 2, SHAPE + 1),
        v = bz_compose_ints(&c, PADS, 4), r = bz_compose_real(&c, 2.5f);
    bz_compose_node(&c, "Conv", "first", (int[]){x, -1, w}, 3,
                    (bz_compose_attr[]){{"pads", PADS, 4, true}, {"group", &GROUP, 1, false}}, 2);
    bz_compose_node(&c, "Clip", "second", (int[]){x, r, v}, 3, NULL, 0);
    assert_int_equal(c.n_nodes, 2);
    bz_compose_end(&c, &file);
    if (bz_model_parse(file.data, file.len, "made", &m, &err))
        fail_msg("%s", err.text);
    const bz_graph *g = m->graph;
    assert_true(m->opset == 20 && m->ir_version == 9);
    assert_true(strlen(g->name) > 0); /* a graph without a name is not valid */
    assert_int_equal(g->n_nodes, 2);
    assert_int_equal(g->n_inputs, 1);
    assert_int_equal(g->n_outputs, 2);
    const bz_node *n = &g->nodes[0];
    assert_string_equal(n->op, "Conv");
    assert_string_equal(n->name, "first");
    assert_true(n->n_in == 3 && n->n_out == 1 && n->n_attrs == 2);
    assert_int_equal(n->in[0], g->inputs[0]);
    assert_int_equal(n->in[1], BZ_NO_VALUE);
    assert_declared(m->values[n->in[0]].declared, BZ_F16, 3, SHAPE);
    const bz_tensor *weights = m->values[n->in[2]].init;
    assert_true(weights->dtype == BZ_BF16 && weights->rank == 2 && weights->dims[0] == 3 && weights->dims[1] == 7);
    assert_int_equal(n->out[0], g->outputs[0]);
    const bz_attr *pads = bz_node_attr(n, "pads"), *group = bz_node_attr(n, "group");
    assert_true(pads->kind == BZ_ATTR_INTS && pads->n == 4 && !memcmp(pads->ints, PADS, sizeof PADS));
    assert_true(group->kind == BZ_ATTR_INT && group->i == GROUP);
    n = &g->nodes[1];
    assert_string_equal(n->op, "Clip");
    assert_true(n->in[0] == g->inputs[0] && n->out[0] == g->outputs[1] && n->n_attrs == 0);
    double real;
    int64_t whole[4];
    assert_int_equal(bz_tensor_reals(m, m->values[n->in[1]].init, &real, &err), 0);
    assert_true(real == 2.5);
    assert_int_equal(bz_tensor_ints(m, m->values[n->in[2]].init, whole, &err), 0);
    assert_memory_equal(whole, PADS, sizeof PADS);
    bz_model_free(m);
    bz_buf_free(&file);
}

static void drafts_have_names(void **state)
{
    (void)state;
    static const int64_t LIST[] = {-1, 1 << 20}, SHAPE[] = {4, 5};
    bz_draft d = {0};
    bz_buf file = {0};
    bz_model *m;
    bz_error err = {0};
    bz_draft_input(&d, "x", BZ_F32, 2, SHAPE);
    bz_draft_ints(&d, "list", LIST, 2);
    bz_draft_node(&d, "Thing", "our.own", "the thing", (const char *const[]){"x", NULL, "list"}, 3,
                  (const char *const[]){NULL, "y"}, 2);
    bz_draft_attr_int(&d, "int", -7);
    bz_draft_attr_ints(&d, "ints", LIST, 2);
    bz_draft_attr_real(&d, "real", 0.25);
    bz_draft_attr_text(&d, "text", "a b");
    bz_draft_output(&d, "y", BZ_F64, 2, SHAPE);
    bz_draft_opset(&d, "", 17);
    bz_draft_opset(&d, "our.own", 3);
    bz_draft_end(&d, 8, "the graph", &file);
    if (bz_model_parse(file.data, file.len, "made", &m, &err))
        fail_msg("%s", err.text);
    const bz_node *n = &m->graph->nodes[0];
    assert_true(m->opset == 17 && m->ir_version == 8 && m->graph->n_nodes == 1 && n->opset == 3);
    assert_string_equal(m->graph->name, "the graph");
    assert_string_equal(n->op, "Thing");
    assert_string_equal(n->domain, "our.own");
    assert_string_equal(n->name, "the thing");
    assert_true(n->n_in == 3 && n->in[1] == BZ_NO_VALUE && n->n_out == 2 && n->out[0] == BZ_NO_VALUE &&
                n->n_attrs == 4);
    assert_declared(m->values[n->in[0]].declared, BZ_F32, 2, SHAPE);
    assert_declared(m->values[n->out[1]].declared, BZ_F64, 2, SHAPE);
    int64_t list[2];
    assert_int_equal(bz_tensor_ints(m, m->values[n->in[2]].init, list, &err), 0);
    assert_memory_equal(list, LIST, sizeof LIST);
    const bz_attr *a = bz_node_attr(n, "int"), *b = bz_node_attr(n, "ints"), *r = bz_node_attr(n, "real"),
                  *t = bz_node_attr(n, "text");
    assert_true(a->kind == BZ_ATTR_INT && a->i == -7 && b->kind == BZ_ATTR_INTS && b->n == 2 &&
                !memcmp(b->ints, LIST, sizeof LIST));
    assert_true(r->kind == BZ_ATTR_FLOAT && r->f == 0.25f && t->kind == BZ_ATTR_STRING);
    assert_string_equal(t->s.data, "a b");
    bz_model_free(m);
    bz_buf_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nodes_stand_by_themselves),
                                       cmocka_unit_test(drafts_have_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
