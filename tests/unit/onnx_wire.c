/* The wire format: numbers, fields, and models cut off or garbled at every byte. */
#include "onnx/file.h"

#include "writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void varints(void **state)
{
    (void)state;
    static const uint64_t V[] = {0, 1, 127, 128, 300, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) {
        bz_buf b = {0}, expected = {0};
        wire_put_varint(&b, V[i]);
        put_varint(&expected, V[i]);
        assert_int_equal(b.len, expected.len);
        assert_memory_equal(b.data, expected.data, b.len);
        const uint8_t *at = (uint8_t *)b.data, *end = at + b.len;
        uint64_t v = 0;
        assert_int_equal(wire_varint(&at, end, &v), 0);
        assert_true(v == V[i] && at == end);
        for (size_t cut = 0; cut < b.len; cut++) {
            at = (uint8_t *)b.data;
            assert_int_equal(wire_varint(&at, at + cut, &v), -1);
        }
        bz_buf_free(&b);
        bz_buf_free(&expected);
    }
    static const uint8_t PADDED[] = {0x85, 0x80, 0x80, 0x00},
                         ENDLESS[11] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1};
    const uint8_t *at = PADDED;
    uint64_t v = 0;
    assert_int_equal(wire_varint(&at, PADDED + 4, &v), 0);
    assert_true(v == 5 && at == PADDED + 4);
    at = ENDLESS;
    assert_int_equal(wire_varint(&at, ENDLESS + 11, &v), -1);
}

static void fields(void **state)
{
    (void)state;
    static const uint8_t DATA[] = {0x08, 0x96, 0x01,                           /* 1: 150 */
                                   0x12, 0x03, 'a',  'b',  'c',                /* 2: "abc" */
                                   0x19, 1,    2,    3,    4,    5,   6, 7, 8, /* 3: eight bytes */
                                   0x25, 1,    2,    3,    4,                  /* 4: four bytes */
                                   0xaa, 0x80, 0x00, 0x80, 0x00,               /* 5, all padded: "" */
                                   0xf8, 0xff, 0xff, 0xff, 0x0f, 0x07};        /* the largest number a field has */
    wire_bytes bytes = {.data = DATA, .size = sizeof DATA};
    wire_reader r = {&bytes, DATA, DATA + sizeof DATA};
    wire_field f;
    static const struct {
        uint32_t number;
        int type;
        uint64_t size;
        int start;
    } EXPECTED[] = {{1, 0, 2, 0}, {2, 2, 3, 3}, {3, 1, 8, 8}, {4, 5, 4, 17}, {5, 2, 0, 22}, {536870911, 0, 1, 27}};
    for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++) {
        assert_int_equal(wire_next(&r, &f, NULL), 1);
        assert_int_equal(f.number, EXPECTED[i].number);
        assert_int_equal(f.type, EXPECTED[i].type);
        assert_int_equal(f.size, EXPECTED[i].size);
        assert_int_equal(f.start - DATA, EXPECTED[i].start);
    }
    assert_int_equal(wire_next(&r, &f, NULL), 0);
    assert_int_equal(wire_next(&r, &f, NULL), 0);
}

static void bad_fields(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *why;
    } CASES[] = {
        {"\x00\x01", 2, "no field can start here"},                     /* number 0 */
        {"\x80\x80\x80\x80\x80\x01\x00", 7, "no field can start here"}, /* number too large */
        {"\xff", 1, "no field can start here"},
        {"\x0b", 1, "no known type"}, /* groups */
        {"\x0c", 1, "no known type"},
        {"\x0e", 1, "no known type"},
        {"\x0f", 1, "no known type"},
        {"\x08", 1, "a number has no end"},
        {"\x08\x80", 2, "a number has no end"},
        {"\x0a", 1, "a length has no end"},
        {"\x0a\x05"
         "abcd",
         6, "longer than what holds it"},
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "longer than what holds it"},
        {"\x09\x01\x02", 3, "longer than what holds it"},
        {"\x0d\x01\x02", 3, "longer than what holds it"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint8_t *copy = malloc(CASES[i].n); /* so that a sanitizer sees its end */
        memcpy(copy, CASES[i].bytes, CASES[i].n);
        wire_bytes bytes = {.data = copy, .size = CASES[i].n};
        wire_reader r = {&bytes, copy, copy + CASES[i].n};
        wire_field f;
        bz_error err = {0};
        assert_int_equal(wire_next(&r, &f, &err), -1);
        assert_int_equal(err.code, BZ_BAD_INPUT);
        if (!strstr(err.text, CASES[i].why))
            fail_msg("'%s' does not say '%s'", err.text, CASES[i].why);
        free(copy);
    }
}

/* A model with something of everything. */
static bz_buf rich_model(void)
{
    static const uint8_t RAW[64] = {1, 2, 3};
    bz_buf graph = {0}, body = {0}, node, attr, sparse = {0}, model = {0}, function = {0};
    put_message(&body, GRAPH_NODE, a_node("Neg", "inner", "x", "z"));
    put_message(&body, GRAPH_OUTPUT, a_value("z", BZ_F32, "1"));
    put_message(&graph, GRAPH_INPUT, a_value("x", BZ_F32, "Nx3"));
    put_message(&graph, GRAPH_INIT, a_raw_tensor("w", BZ_F32, "4x4", RAW, 64));
    put_message(&sparse, 1, a_raw_tensor("s", BZ_I64, "1", RAW, 8));
    put_message(&sparse, 2, a_raw_tensor("", BZ_I64, "1", RAW, 8));
    put_int(&sparse, 3, 900);
    put_message(&graph, GRAPH_SPARSE, sparse);
    node = a_node("If", "if", "x", "y");
    attr = an_attr("then_branch", 5);
    put_message(&attr, ATTR_G, body);
    put_message(&node, NODE_ATTR, attr);
    put_message(&graph, GRAPH_NODE, node);
    node = a_node("Constant", "c", "", "k");
    attr = an_attr("value", 4);
    put_message(&attr, ATTR_T, a_raw_tensor("v", BZ_I64, "8", RAW, 64));
    put_message(&node, NODE_ATTR, attr);
    put_message(&graph, GRAPH_NODE, node);
    put_message(&graph, GRAPH_NODE, a_node("F", "call", "y", "r"));
    put_message(&graph, GRAPH_OUTPUT, a_value("r", BZ_F32, "Nx3"));
    put_int(&model, MODEL_IR, 8);
    put_text(&model, 2, "producer");
    put_opset(&model, MODEL_OPSET, "", 17);
    put_text(&function, FUNCTION_NAME, "F");
    put_text(&function, FUNCTION_INPUT, "a");
    put_text(&function, FUNCTION_OUTPUT, "b");
    put_message(&function, FUNCTION_NODE, a_node("Neg", "n", "a", "b"));
    put_message(&function, FUNCTION_DEFAULT, an_int_attr("axis", 1));
    put_message(&model, MODEL_FUNCTION, function);
    put_message(&model, MODEL_GRAPH, graph);
    return model;
}

/* Loads, inlines and reads whatever there is; the bytes end where the memory ends. Returns 0 when it loaded. */
static int use(const char *data, size_t n)
{
    char *exact = malloc(n ? n : 1);
    memcpy(exact, data, n);
    bz_model *m;
    bz_error err = {0};
    int failed = bz_model_parse(exact, n, "test", &m, &err);
    if (failed) {
        assert_null(m);
        assert_int_equal(err.code, BZ_BAD_INPUT);
        assert_ptr_equal(strstr(err.text, "test: "), err.text);
        assert_true(strlen(err.text) > strlen("test: "));
    } else {
        for (int i = 0; i < m->graph->n_nodes; i++) {
            bz_graph *body;
            if (m->graph->nodes[i].function >= 0)
                bz_model_inline(m, &m->graph->nodes[i], &body, &err);
        }
        for (int i = 0; i < m->n_values; i++) {
            const bz_tensor *t = m->values[i].init;
            if (!t || t->n > 10000)
                continue;
            int64_t *ints = bz_alloc((size_t)t->n, sizeof *ints);
            double *reals = bz_alloc((size_t)t->n, sizeof *reals);
            bz_tensor_ints(m, t, ints, &err);
            bz_tensor_reals(m, t, reals, &err);
            free(ints);
            free(reals);
        }
        bz_model_free(m);
    }
    free(exact);
    return failed;
}

static void cut_off_at_every_byte(void **state)
{
    (void)state;
    bz_buf model = rich_model();
    assert_int_equal(use(model.data, model.len), 0);
    for (size_t n = 0; n < model.len; n++)
        assert_int_equal(use(model.data, n), -1);
    bz_buf_free(&model);
}

/* Every bit turned, every byte left out: some of these are models, none may crash. */
static void garbled_at_every_byte(void **state)
{
    (void)state;
    bz_buf model = rich_model();
    for (size_t i = 0; i < model.len; i++) {
        char was = model.data[i];
        for (int bit = 0; bit < 8; bit++) {
            model.data[i] = (char)(was ^ 1 << bit);
            use(model.data, model.len);
        }
        model.data[i] = was;
        bz_buf shorter = {0};
        bz_buf_put(&shorter, model.data, i);
        bz_buf_put(&shorter, model.data + i + 1, model.len - i - 1);
        use(shorter.data, shorter.len);
        bz_buf_free(&shorter);
    }
    bz_buf_free(&model);
}

static void put_padded_varint(bz_buf *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 7)
        bz_buf_putc(b, (char)((v & 127) | (i < bytes - 1 ? 128 : 0)));
}

static void put_padded(bz_buf *b, uint32_t field, bz_buf message)
{
    put_padded_varint(b, field * 8 + 2, 4);
    put_padded_varint(b, message.len, 5);
    bz_buf_put(b, message.data, message.len);
    bz_buf_free(&message);
}

/* Lengths and tags may be written longer than they need to be, up to five bytes. */
static void padded_model_loads(void **state)
{
    (void)state;
    bz_buf model = {0}, graph = {0}, tensor = a_tensor("w", BZ_I64, ""), number = {0};
    put_padded_varint(&number, 77, 10);
    put_padded(&tensor, TENSOR_INT64S, number);
    put_padded(&graph, GRAPH_INPUT, a_value("x", BZ_F32, "1"));
    put_padded(&graph, GRAPH_NODE, a_node("Add", "", "x w", "y"));
    put_padded(&graph, GRAPH_INIT, tensor);
    put_int(&model, MODEL_IR, 8);
    put_opset(&model, MODEL_OPSET, "", 17);
    put_padded(&model, MODEL_GRAPH, graph);
    bz_model *m;
    bz_error err = {0};
    if (bz_model_parse(model.data, model.len, "test", &m, &err))
        fail_msg("%s", err.text);
    assert_int_equal(m->graph->n_nodes, 1);
    const bz_value_id *in = m->graph->nodes[0].in;
    assert_string_equal(m->values[in[0]].name, "x");
    int64_t v;
    assert_int_equal(bz_tensor_ints(m, m->values[in[1]].init, &v, NULL), 0);
    assert_int_equal(v, 77);
    bz_model_free(m);
    bz_buf_free(&model);
}

static void is_refused(bz_buf model, const char *why)
{
    bz_model *m;
    bz_error err = {0};
    assert_int_equal(bz_model_parse(model.data, model.len, "test", &m, &err), -1);
    assert_null(m);
    if (!strstr(err.text, why))
        fail_msg("'%s' does not say '%s'", err.text, why);
    bz_buf_free(&model);
}

/* Fields written from the last to the first, so that a message's length is known when it begins. */
static size_t wrap_backwards(uint8_t *data, size_t at, size_t end, uint32_t field)
{
    bz_buf head = {0};
    put_varint(&head, field * 8 + 2);
    put_varint(&head, end - at);
    at -= head.len;
    memcpy(data + at, head.data, head.len);
    bz_buf_free(&head);
    return at;
}

/* It recurses, and also into what is never looked at: functions that nobody calls, training. */
static void nesting_is_bounded(void **state)
{
    (void)state;
    enum { LEVELS = 200000, SIZE = 16 * LEVELS };
    static const uint32_t TYPES[] = {1, 4}, GRAPHS[] = {ATTR_G, NODE_ATTR, GRAPH_NODE}; /* cycles, from inside out */
    uint8_t *data = bz_alloc(SIZE, 1);
    for (int graphs = 0; graphs < 2; graphs++) {
        bz_buf model = {0};
        size_t at = SIZE;
        for (int i = 0; i < LEVELS; i++)
            at = wrap_backwards(data, at, SIZE, graphs ? GRAPHS[i % 3] : TYPES[i % 2]);
        if (!graphs)
            at = wrap_backwards(data, at, SIZE, 2);                       /* type of a value */
        at = wrap_backwards(data, at, SIZE, graphs ? FUNCTION_NODE : 12); /* value_info */
        at = wrap_backwards(data, at, SIZE, MODEL_FUNCTION);
        bz_buf_put(&model, data + at, SIZE - at);
        is_refused(model, "nested more than");
    }
    free(data);
}

/* Merging what stands there again and again copies its lists each time. */
static void memory_is_bounded(void **state)
{
    (void)state;
    bz_buf model = {0};
    for (int i = 0; i < 20000; i++) {
        bz_buf graph = {0};
        put_message(&graph, GRAPH_NODE, a_node("Op", "", "", ""));
        put_message(&model, MODEL_GRAPH, graph);
    }
    is_refused(model, "takes too much memory");
}

static bz_buf marked_tensor(void)
{
    bz_buf t = a_tensor("w", BZ_F32, "1");
    put_varint(&t, 1000 * 8 + 5);
    bz_buf_put(&t, "\0\0\0", 4);
    return t;
}

/* What the pass over a file puts behind a payload that it leaves out must not come with the file; also where nobody
 * looks but strip. */
static void marks_of_others_are_refused(void **state)
{
    (void)state;
    bz_buf graph = {0}, function = {0}, node = a_node("Constant", "", "", "k"), attr = an_attr("value", 4), out = {0};
    put_message(&graph, GRAPH_INIT, marked_tensor());
    is_refused(a_model(8, 17, graph), "tensor 'w' has a field that is no file's");

    put_message(&attr, ATTR_T, marked_tensor());
    put_message(&node, NODE_ATTR, attr);
    put_text(&function, FUNCTION_NAME, "F");
    put_message(&function, FUNCTION_NODE, node);
    bz_buf bytes = a_model(8, 17, (bz_buf){0});
    put_message(&bytes, MODEL_FUNCTION, function);
    bz_model *m;
    bz_error err = {0};
    bz_strip_result r;
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "test", &m, &err), 0);
    assert_int_equal(strip_model(m, 100, &out, &r, &err), -1);
    assert_string_equal(err.text, "tensor 'w': it has a field that is no file's");
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void types_of_fields(void **state)
{
    (void)state;
    bz_buf graph = {0}, packed = {0};
    put_int(&graph, GRAPH_NAME, 7); /* a text */
    is_refused(a_model(8, 17, graph), "byte 10: a field is not of its type");
    graph = (bz_buf){0};
    put_bytes(&packed, TENSOR_FLOATS, "\0\0\0\0\0", 5);
    put_message(&graph, GRAPH_INIT, packed);
    is_refused(a_model(8, 17, graph), "a field is not of its type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints),
        cmocka_unit_test(fields),
        cmocka_unit_test(bad_fields),
        cmocka_unit_test(cut_off_at_every_byte),
        cmocka_unit_test(garbled_at_every_byte),
        cmocka_unit_test(padded_model_loads),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(marks_of_others_are_refused),
        cmocka_unit_test(types_of_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
