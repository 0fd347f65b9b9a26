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
                  (const char *const[]){NULL, "y", "z"}, 3);
    bz_draft_attr_int(&d, "int", -7);
    bz_draft_attr_ints(&d, "ints", LIST, 2);
    bz_draft_attr_real(&d, "real", 0.25);
    bz_draft_attr_text(&d, "text", "a b");
    bz_draft_output(&d, "y", BZ_F64, 2, SHAPE);
    bz_draft_output(&d, "z", BZ_UNDEFINED, 0, NULL);
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
    assert_true(n->n_in == 3 && n->in[1] == BZ_NO_VALUE && n->n_out == 3 && n->out[0] == BZ_NO_VALUE &&
                n->n_attrs == 4);
    assert_true(m->graph->n_outputs == 2 && m->graph->outputs[1] == n->out[2] && !m->values[n->out[2]].declared);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(drafts_have_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
