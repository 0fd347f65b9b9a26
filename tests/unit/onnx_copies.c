/* Round trips over the models of the ONNX package: written anew node by node, or as a slice of all nodes, and read back, a model is what it
 * was, to the bit of every attribute and constant. Constants are read in three ways, which must agree. */
#include "tests/unit/writer.h"

#include "onnx/onnx.h"

#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { KEEP = 1 << 20 };

static bool is_plain(const bz_type *t)
{
    if (!t || t->kind != BZ_TYPE_TENSOR || t->rank < 0)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 0)
            return false;
    return true;
}

static bool is_whole(const bz_tensor *t)
{
    return bz_dtype_bits(t->dtype) >= 8 && !t->values;
}

static void *bytes_of(const bz_model *m, const bz_tensor *t, size_t *size)
{
    bz_error err;
    *size = (size_t)t->n * (size_t)bz_dtype_bits(t->dtype) / 8;
    void *data = bz_zeroed(*size + 1, 1);
    if (bz_tensor_bytes(m, t, data, &err))
        fail_msg("%s: %s", m->path, err.text);
    return data;
}

static void same_tensors(const bz_model *a, const bz_tensor *x, const bz_model *b, const bz_tensor *y)
{
    size_t size, other;
    assert_int_equal(x->dtype, y->dtype);
    assert_int_equal(x->rank, y->rank);
    assert_int_equal(x->n, y->n);
    for (int i = 0; i < x->rank; i++)
        assert_int_equal(x->dims[i], y->dims[i]);
    if (!is_whole(x))
        return;
    void *p = bytes_of(a, x, &size), *q = bytes_of(b, y, &other);
    assert_int_equal(size, other);
    assert_memory_equal(p, q, size);
    free(p);
    free(q);
}

static void same_attributes(const bz_model *a, const bz_node *n, const bz_model *b, const bz_node *o)
{
    assert_int_equal(n->n_attrs, o->n_attrs);
    for (int i = 0; i < n->n_attrs; i++) {
        const bz_attr *x = &n->attrs[i], *y = bz_node_attr(o, x->name);
        assert_non_null(y);
        assert_int_equal(x->kind, y->kind);
        if (x->kind == BZ_ATTR_FLOAT)
            assert_memory_equal(&x->f, &y->f, sizeof x->f);
        if (x->kind == BZ_ATTR_INT)
            assert_int_equal(x->i, y->i);
        if (x->kind == BZ_ATTR_TENSOR)
            same_tensors(a, x->tensor, b, y->tensor);
        if (x->kind == BZ_ATTR_STRING) {
            assert_int_equal(x->s.len, y->s.len);
            assert_memory_equal(x->s.data, y->s.data, x->s.len + 1);
        }
        if (x->kind != BZ_ATTR_FLOATS && x->kind != BZ_ATTR_INTS && x->kind != BZ_ATTR_STRINGS)
            continue;
        assert_int_equal(x->n, y->n);
        for (int k = 0; k < x->n; k++)
            if (x->kind == BZ_ATTR_FLOATS)
                assert_memory_equal(&x->floats[k], &y->floats[k], sizeof x->floats[k]);
            else if (x->kind == BZ_ATTR_INTS)
                assert_int_equal(x->ints[k], y->ints[k]);
            else
                assert_string_equal(x->strings[k].data, y->strings[k].data);
    }
}

/* `named`: values are called the same; else by some names that stand for theirs, each for one. */
static void same_models(const bz_model *a, const bz_model *b, bool named)
{
    int *stands = bz_alloc((size_t)a->n_values + 1, sizeof *stands);
    memset(stands, -1, ((size_t)a->n_values + 1) * sizeof *stands);
    assert_int_equal(a->graph->n_nodes, b->graph->n_nodes);
    for (int i = 0; i < a->graph->n_nodes; i++) {
        const bz_node *n = &a->graph->nodes[i], *o = &b->graph->nodes[i];
        assert_string_equal(n->op, o->op);
        assert_string_equal(n->domain, o->domain);
        assert_int_equal(n->opset, o->opset);
        assert_int_equal(n->n_in, o->n_in);
        assert_int_equal(n->n_out, o->n_out);
        same_attributes(a, n, b, o);
        for (int k = 0; k < n->n_in + n->n_out; k++) {
            bz_value_id v = k < n->n_in ? n->in[k] : n->out[k - n->n_in],
                        w = k < n->n_in ? o->in[k] : o->out[k - n->n_in];
            assert_int_equal(v == BZ_NO_VALUE, w == BZ_NO_VALUE);
            if (v == BZ_NO_VALUE)
                continue;
            assert_true(stands[v] < 0 || stands[v] == w);
            stands[v] = w;
            if (named)
                assert_string_equal(a->values[v].name, b->values[w].name);
            assert_int_equal(a->values[v].init != NULL, b->values[w].init != NULL);
            if (a->values[v].init)
                same_tensors(a, a->values[v].init, b, b->values[w].init);
        }
    }
    free(stands);
}

/* As numbers, constants are what their bytes are. */
static void numbers_are_the_bytes(const bz_model *m, const bz_tensor *t)
{
    size_t size;
    bz_error err;
    if (!is_whole(t) || t->n > 10000 || t->dtype == BZ_STRING)
        return;
    unsigned char *data = bytes_of(m, t, &size);
    int bytes = bz_dtype_bits(t->dtype) / 8;
    double *real = bz_alloc((size_t)t->n + 1, sizeof *real);
    int64_t *whole = bz_alloc((size_t)t->n + 1, sizeof *whole);
    if ((t->dtype == BZ_F32 || t->dtype == BZ_F64) && !bz_tensor_reals(m, t, real, &err))
        for (int64_t i = 0; i < t->n; i++) {
            float f;
            double d;
            memcpy(&f, data + 4 * i, 4);
            memcpy(&d, data + (t->dtype == BZ_F64 ? 8 * i : 0), t->dtype == BZ_F64 ? 8 : 0);
            d = t->dtype == BZ_F64 ? d : (double)f;
            assert_true(isnan(d) ? isnan(real[i]) : d == real[i]);
        }
    if (bz_dtype_is_int(t->dtype) && !bz_tensor_ints(m, t, whole, &err))
        for (int64_t i = 0; i < t->n; i++) {
            bool negative = data[(i + 1) * bytes - 1] & 0x80 && !strchr("u", *bz_dtype_name(t->dtype));
            uint64_t v = negative ? UINT64_MAX : 0;
            for (int k = bytes - 1; k >= 0; k--)
                v = v << 8 | data[i * bytes + k];
            assert_int_equal(whole[i], (int64_t)v);
        }
    free(data);
    free(real);
    free(whole);
}

static const char *name_of(const bz_model *m, bz_value_id v)
{
    return v == BZ_NO_VALUE ? NULL : m->values[v].name;
}

/* Whether it could be written. */
static bool copy(const bz_model *m, bz_buf *out)
{
    bz_draft d = {0};
    bz_error err;
    const bz_graph *g = m->graph;
    bool good = true;
    bz_arena arena = {0};
    for (int i = 0; i < g->n_inputs && good; i++)
        if ((good = is_plain(m->values[g->inputs[i]].declared))) {
            const bz_type *t = m->values[g->inputs[i]].declared;
            bz_draft_input(&d, name_of(m, g->inputs[i]), t->dtype, t->rank, t->dims);
        }
    for (int v = 0; v < m->n_values && good; v++)
        if (m->values[v].init && (good = is_whole(m->values[v].init))) {
            const bz_tensor *t = m->values[v].init;
            size_t size;
            void *data = bytes_of(m, t, &size);
            bz_draft_tensor(&d, m->values[v].name, t->dtype, t->rank, t->dims, data, size);
            free(data);
        }
    for (int i = 0; i < g->n_nodes && good; i++) {
        const bz_node *n = &g->nodes[i];
        const char **names = BZ_NEW(&arena, const char *, n->n_in + n->n_out);
        for (int k = 0; k < n->n_in + n->n_out; k++)
            names[k] = name_of(m, k < n->n_in ? n->in[k] : n->out[k - n->n_in]);
        good = n->opset > 0;
        bz_draft_opset(&d, n->domain, n->opset);
        bz_draft_node(&d, n->op, n->domain, n->name, names, n->n_in, names + n->n_in, n->n_out);
        for (int k = 0; k < n->n_attrs && good; k++)
            good = !bz_draft_attr(&d, m, &n->attrs[k], &err);
    }
    for (int i = 0; i < g->n_outputs && good; i++)
        if ((good = is_plain(m->values[g->outputs[i]].declared))) {
            const bz_type *t = m->values[g->outputs[i]].declared;
            bz_draft_output(&d, name_of(m, g->outputs[i]), t->dtype, t->rank, t->dims);
        }
    if (good)
        bz_draft_end(&d, m->ir_version, g->name, out);
    bz_draft_free(&d);
    bz_arena_free(&arena);
    return good;
}

/* All nodes; whether that is possible. */
static bool slice(bz_model *m, bz_buf *out)
{
    bz_arena arena = {0};
    bz_error err;
    int n = m->graph->n_nodes, *node = BZ_NEW(&arena, int, n + 1);
    bz_type *types = BZ_NEW(&arena, bz_type, m->n_values);
    bool *constant = BZ_NEW(&arena, bool, m->n_values);
    for (int i = 0; i < n; i++)
        node[i] = i;
    bool good = true;
    for (int v = 0; v < m->n_values; v++) {
        constant[v] = m->values[v].init != NULL;
        good &= !constant[v] || m->values[v].init->n * 8 <= KEEP;
        if (m->values[v].declared)
            types[v] = *m->values[v].declared;
    }
    for (int i = 0; i < m->graph->n_inputs + m->graph->n_outputs; i++)
        good &=
            is_plain(m->values[i < m->graph->n_inputs ? m->graph->inputs[i] : m->graph->outputs[i - m->graph->n_inputs]]
                         .declared);
    good = good && n && !bz_model_slice(m, &(bz_slice){node, n, types, constant, KEEP}, out, &err);
    for (int i = 0; i < n && good; i++) /* what runs a graph of its own is none */
        for (int k = 0; k < m->graph->nodes[i].n_attrs; k++)
            assert_int_not_equal(m->graph->nodes[i].attrs[k].kind, BZ_ATTR_GRAPH);
    bz_arena_free(&arena);
    return good;
}

static void read_back(const bz_model *m, const bz_buf *file, bool named)
{
    bz_model *again;
    bz_error err;
    if (bz_model_parse(file->data, file->len, "again", &again, &err))
        fail_msg("%s: %s", m->path, err.text);
    same_models(m, again, named);
    if (named) {
        assert_int_equal(m->ir_version, again->ir_version);
        assert_int_equal(m->graph->n_inputs, again->graph->n_inputs);
        assert_int_equal(m->graph->n_outputs, again->graph->n_outputs);
        for (int i = 0; i < m->graph->n_inputs; i++) {
            const bz_type *a = m->values[m->graph->inputs[i]].declared,
                          *b = again->values[again->graph->inputs[i]].declared;
            assert_true(a->dtype == b->dtype && a->rank == b->rank &&
                        !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims));
        }
    }
    bz_model_free(again);
}

static void models_come_back(void **state)
{
    (void)state;
    glob_t g;
    int copies = 0, slices = 0;
    if (glob("/usr/share/libonnx-testdata/data/*/*/model.onnx", 0, NULL, &g))
        skip();
    for (size_t i = 0; i < g.gl_pathc; i++) {
        bz_model *m;
        bz_error err;
        bz_buf file = {0};
        if (bz_model_load(g.gl_pathv[i], &m, &err))
            continue;
        for (int v = 0; v < m->n_values; v++)
            if (m->values[v].init)
                numbers_are_the_bytes(m, m->values[v].init);
        if (copy(m, &file)) {
            read_back(m, &file, true);
            copies++;
        }
        bz_buf_clear(&file);
        if (slice(m, &file)) {
            read_back(m, &file, false);
            slices++;
        }
        bz_buf_free(&file);
        bz_model_free(m);
    }
    globfree(&g);
    assert_true(copies > 500 && slices > 500);
}

/* Constants that are not kept are made by a node from their shape and a hundredth, or 1. */
static void large_constants_are_filled(void **state)
{
    (void)state;
    static const struct {
        bz_dtype type;
        const char *bytes;
        size_t n;
    } OF[] = {{BZ_F32, "\x0a\xd7\x23\x3c", 4},
              {BZ_F64, "\x7b\x14\xae\x47\xe1\x7a\x84\x3f", 8},
              {BZ_F16, "\x1f\x21", 2},
              {BZ_BF16, "\x23\x3c", 2},
              {BZ_I32, "\x01\0\0", 4}};
    static const char WEIGHTS[32] = "weights that are none of these";
    static const bz_dim FOUR[] = {4};
    for (size_t i = 0; i < sizeof OF / sizeof *OF; i++) {
        bz_model *m, *again;
        bz_error err;
        bz_buf g = {0}, file = {0};
        char made[16];
        put_message(&g, GRAPH_INPUT, a_value("x", OF[i].type, "4"));
        put_message(&g, GRAPH_INIT, a_raw_tensor("w", OF[i].type, "4", WEIGHTS, 4 * OF[i].n));
        put_message(&g, GRAPH_OUTPUT, a_value("y", OF[i].type, "4"));
        put_plain_nodes(&g, "Add x,w y");
        bz_buf bytes = a_model(8, 17, g);
        assert_int_equal(bz_model_parse(bytes.data, bytes.len, "m", &m, &err), 0);
        bz_type types[3];
        bool constant[3];
        assert_int_equal(m->n_values, 3);
        for (int v = 0; v < 3; v++) {
            types[v] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = OF[i].type, .rank = 1, .dims = FOUR};
            constant[v] = m->values[v].init != NULL;
        }
        const int node = 0;
        bz_slice what = {&node, 1, types, constant, 4 * OF[i].n};
        assert_int_equal(bz_model_slice(m, &what, &file, &err), 0);
        assert_int_equal(bz_model_parse(file.data, file.len, "kept", &again, &err), 0);
        assert_int_equal(again->graph->n_nodes, 1);
        bz_model_free(again);
        bz_buf_clear(&file);
        what.keep--;
        assert_int_equal(bz_model_slice(m, &what, &file, &err), 0);
        assert_int_equal(bz_model_parse(file.data, file.len, "filled", &again, &err), 0);
        assert_int_equal(again->graph->n_nodes, 2);
        const bz_attr *value = NULL;
        for (int k = 0; k < 2; k++)
            if (!strcmp(again->graph->nodes[k].op, "ConstantOfShape"))
                value = bz_node_attr(&again->graph->nodes[k], "value");
        assert_non_null(value);
        assert_true(value->tensor->dtype == OF[i].type && value->tensor->n == 1);
        assert_int_equal(bz_tensor_bytes(again, value->tensor, made, &err), 0);
        assert_memory_equal(made, OF[i].bytes, OF[i].n);
        bz_model_free(again);
        bz_model_free(m);
        bz_buf_free(&file);
        bz_buf_free(&bytes);
    }
}

/* A slice gives what others read of it, or the model gives; where that is nothing, its last node's first result: of a chain of three, and a fourth node that nobody reads. */
static void slices_give_what_is_read(void **state)
{
    (void)state;
    static const struct {
        int node[3], n, inputs, outputs;
    } CASES[] = {{{0}, 1, 1, 1}, {{0, 1}, 2, 1, 2}, {{1, 2}, 2, 1, 1}, {{0, 2}, 2, 2, 2},
                 {{3}, 1, 1, 1}, {{0, 3}, 2, 1, 1}, {{2, 3}, 2, 2, 1}};
    static const bz_dim FOUR[] = {4};
    bz_buf g = {0};
    bz_model *m, *part;
    bz_error err;
    put_message(&g, GRAPH_INPUT, a_value("x", BZ_F32, "4"));
    put_message(&g, GRAPH_OUTPUT, a_value("c", BZ_F32, "4"));
    put_plain_nodes(&g, "Relu x a; Neg a b; Abs b c; Exp a d");
    bz_buf bytes = a_model(8, 17, g);
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "m", &m, &err), 0);
    bz_type types[8];
    const bool constant[8] = {false};
    assert_true(m->n_values <= 8);
    for (int v = 0; v < m->n_values; v++)
        types[v] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 1, .dims = FOUR};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf file = {0};
        assert_int_equal(bz_model_slice(m, &(bz_slice){CASES[i].node, CASES[i].n, types, constant, 0}, &file, &err), 0);
        assert_int_equal(bz_model_parse(file.data, file.len, "part", &part, &err), 0);
        assert_int_equal(part->graph->n_nodes, CASES[i].n);
        assert_int_equal(part->graph->n_inputs, CASES[i].inputs);
        assert_int_equal(part->graph->n_outputs, CASES[i].outputs);
        for (int k = 0; k < CASES[i].n; k++)
            assert_string_equal(part->graph->nodes[k].op, m->graph->nodes[CASES[i].node[k]].op);
        bz_model_free(part);
        bz_buf_free(&file);
    }
    bz_model_free(m);
    bz_buf_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slices_give_what_is_read), cmocka_unit_test(models_come_back),
                                       cmocka_unit_test(large_constants_are_filled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
