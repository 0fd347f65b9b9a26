/* A model without its weights: what goes, what stays, and that the file is whole or not there. */
#include "onnx/file.h"

#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEEP = 100, BIG = 400 };

static const uint8_t RAW[BIG] = {1, 2, 3, 4, 5};
static char folder[] = "/tmp/benanza-test-XXXXXX";

static int enter_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}

static int leave_folder(void **state)
{
    (void)state;
    bz_buf command = {0};
    bz_buf_printf(&command, "rm -r %s", folder);
    int failed = chdir("/") || system(bz_buf_text(&command));
    bz_buf_free(&command);
    return failed;
}

static void write_file(const char *path, const bz_buf *bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bz_buf_text(bytes), 1, bytes->len, f), bytes->len);
    assert_int_equal(fclose(f), 0);
}

static bz_buf read_file(const char *path)
{
    bz_buf b = {0};
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        bz_buf_put(&b, chunk, n);
    fclose(f);
    return b;
}

static bz_buf strip_once(const bz_buf *bytes, uint64_t keep, bz_strip_result *r)
{
    bz_buf out = {0};
    bz_error err = {0};
    bz_model *m;
    if (bz_model_parse(bytes->data, bytes->len, "test", &m, &err) || strip_model(m, keep, &out, r, &err))
        fail_msg("%s", err.text);
    bz_model_free(m);
    return out;
}

/* Strips; the output loads, and stripping it again changes nothing. */
static bz_buf stripped(const bz_buf *bytes, uint64_t keep, int64_t *dropped, int64_t *kept)
{
    bz_strip_result r, more;
    bz_buf once = strip_once(bytes, keep, &r), twice = strip_once(&once, keep, &more);
    assert_int_equal(more.tensors, 0);
    assert_int_equal(twice.len, once.len);
    assert_memory_equal(twice.data, once.data, once.len);
    bz_buf_free(&twice);
    *dropped = r.tensors;
    *kept = r.kept;
    return once;
}

static bool contains(const bz_buf *bytes, const bz_buf *piece)
{
    return memmem(bytes->data, bytes->len, piece->data, piece->len) != NULL;
}

static bz_buf model_with(bz_buf tensor)
{
    bz_buf graph = {0};
    put_text(&graph, GRAPH_NAME, "g");
    put_message(&graph, GRAPH_INIT, tensor);
    return a_model(8, 17, graph);
}

static void big_tensors_become_sparse(void **state)
{
    (void)state;
    bz_buf t = a_raw_tensor("w", BZ_F32, "4x5x5", RAW, BIG);
    put_text(&t, 12, "the documentation stays");
    bz_buf bytes = model_with(t);
    int64_t dropped, kept;
    bz_buf out = stripped(&bytes, KEEP, &dropped, &kept);
    assert_int_equal(dropped, 1);
    assert_int_equal(kept, 0);
    assert_true(out.len < 150);
    bz_model *m;
    assert_int_equal(bz_model_parse(out.data, out.len, "stripped", &m, NULL), 0);
    assert_int_equal(m->n_values, 1);
    const bz_tensor *w = m->values[0].init;
    assert_string_equal(w->name, "w");
    assert_int_equal(w->dtype, BZ_F32);
    assert_int_equal(w->rank, 3);
    assert_int_equal(w->n, 100);
    double v[100];
    assert_int_equal(bz_tensor_reals(m, w, v, NULL), 0);
    for (int i = 0; i < 100; i++)
        assert_true(v[i] == 0);
    bz_buf doc = {0};
    bz_buf_puts(&doc, "the documentation stays");
    assert_true(contains(&out, &doc));
    bz_buf_free(&doc);
    bz_model_free(m);
    bz_buf_free(&out);
    bz_buf_free(&bytes);
}

static void every_payload_counts(void **state)
{
    (void)state;
    static const struct {
        uint32_t field;
        bz_dtype dtype;
    } FIELDS[] = {{TENSOR_FLOATS, BZ_F32},  {TENSOR_INT32S, BZ_I32},  {TENSOR_INT64S, BZ_I64},
                  {TENSOR_DOUBLES, BZ_F64}, {TENSOR_UINT64S, BZ_U64}, {TENSOR_RAW, BZ_U8}};
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
        bz_buf t = a_tensor("w", FIELDS[i].dtype, "10");
        put_bytes(&t, FIELDS[i].field, RAW, BIG);
        bz_buf bytes = model_with(t);
        int64_t dropped, kept;
        bz_buf out = stripped(&bytes, KEEP, &dropped, &kept);
        assert_int_equal(dropped, 1);
        assert_true(out.len < 100);
        bz_buf_free(&out);
        bz_buf_free(&bytes);
    }
    bz_buf single = a_tensor("w", BZ_I64, "101"); /* one by one: a byte each */
    for (int i = 0; i < 101; i++)
        put_int(&single, TENSOR_INT64S, 1);
    bz_buf bytes = model_with(single);
    int64_t dropped, kept;
    bz_buf out = stripped(&bytes, KEEP, &dropped, &kept);
    assert_int_equal(dropped, 1);
    bz_buf_free(&out);
    bz_buf_free(&bytes);
}

static void small_tensors_stay_byte_for_byte(void **state)
{
    (void)state;
    for (size_t n = KEEP - 1; n <= KEEP + 1; n++) {
        bz_buf t = a_raw_tensor("w", BZ_U8, n < KEEP ? "99" : n == KEEP ? "100" : "101", RAW, n), copy = {0};
        bz_buf_put(&copy, t.data, t.len);
        bz_buf bytes = model_with(t);
        int64_t dropped, kept;
        bz_buf out = stripped(&bytes, KEEP, &dropped, &kept);
        assert_int_equal(kept, n <= KEEP);
        assert_int_equal(dropped, n > KEEP);
        assert_int_equal(contains(&out, &copy), n <= KEEP);
        bz_buf_free(&copy);
        bz_buf_free(&out);
        bz_buf_free(&bytes);
    }
}

/* A sparse tensor wants a dimension, none of size 0, and no strings. */
static void what_cannot_be_sparse_stays(void **state)
{
    (void)state;
    bz_buf t[6] = {a_tensor("w", BZ_STRING, "1"), a_raw_tensor("w", BZ_C128, "", RAW, 16),
                   a_tensor("w", BZ_F32, "7x0"),  {0},
                   a_tensor("w", BZ_STRING, "7"), {0}};
    put_bytes(&t[0], TENSOR_STRINGS, RAW, BIG);
    put_external(&t[2], "location", "w.bin");
    put_bytes(&t[3], TENSOR_DIMS, "\007\200\000", 3); /* 7x0, packed and padded */
    put_int(&t[3], TENSOR_DTYPE, BZ_F32);
    put_text(&t[3], TENSOR_NAME, "w");
    put_external(&t[3], "location", "w.bin");
    put_external(&t[4], "location", "w.bin");
    put_bytes(&t[5], TENSOR_DIMS, "", 0); /* a scalar, packed */
    put_int(&t[5], TENSOR_DTYPE, BZ_F32);
    put_text(&t[5], TENSOR_NAME, "w");
    put_external(&t[5], "location", "w.bin");
    for (size_t i = 0; i < 6; i++) {
        bz_buf copy = {0};
        if (i == 3 || i == 5) { /* comes out one by one */
            copy = a_tensor("w", BZ_F32, i == 3 ? "7x0" : "");
            put_external(&copy, "location", "w.bin");
        } else if (i == 0) { /* comes out before the name */
            put_bytes(&copy, TENSOR_STRINGS, RAW, BIG);
        } else {
            bz_buf_put(&copy, t[i].data, t[i].len);
        }
        bz_buf bytes = model_with(t[i]);
        int64_t dropped, kept;
        bz_buf out = stripped(&bytes, 0, &dropped, &kept);
        assert_int_equal(dropped, 0);
        assert_int_equal(kept, 1);
        assert_true(contains(&out, &copy));
        bz_buf_free(&copy);
        bz_buf_free(&out);
        bz_buf_free(&bytes);
    }
}

static void external_tensors_lose_their_files(void **state)
{
    (void)state;
    bz_buf t = a_tensor("w", BZ_I64, "2"), file = {0};
    put_external(&t, "location", "weights.bin");
    put_int(&t, TENSOR_LOCATION, 1);
    bz_buf bytes = model_with(t);
    int64_t dropped, kept;
    bz_buf out = stripped(&bytes, UINT32_MAX, &dropped, &kept);
    assert_int_equal(dropped, 1);
    bz_buf_puts(&file, "weights.bin");
    assert_false(contains(&out, &file));
    bz_model *m;
    int64_t v[2] = {1, 1};
    assert_int_equal(bz_model_parse(out.data, out.len, "stripped", &m, NULL), 0);
    assert_int_equal(bz_tensor_ints(m, m->values[0].init, v, NULL), 0);
    assert_true(v[0] == 0 && v[1] == 0);
    bz_model_free(m);
    bz_buf_free(&file);
    bz_buf_free(&out);
    bz_buf_free(&bytes);
}

static void sparse_tensors_lose_their_values(void **state)
{
    (void)state;
    for (int big = 0; big < 2; big++) {
        size_t n = big ? 50 : 5;
        bz_buf sparse = {0}, graph = {0}, copy = {0};
        put_message(&sparse, 1, a_raw_tensor("s", BZ_I64, big ? "50" : "5", RAW, n * 8));
        put_message(&sparse, 2, a_raw_tensor("", BZ_I64, big ? "50" : "5", RAW, n * 8));
        put_int(&sparse, 3, 1000);
        put_bytes(&sparse, 99, "newer", 5);
        bz_buf_put(&copy, sparse.data, sparse.len);
        put_message(&graph, GRAPH_SPARSE, sparse);
        bz_buf bytes = a_model(8, 17, graph);
        int64_t dropped, kept;
        bz_buf out = stripped(&bytes, KEEP, &dropped, &kept), newer = {0};
        assert_int_equal(dropped, big);
        assert_int_equal(contains(&out, &copy), !big);
        put_bytes(&newer, 99, "newer", 5);
        assert_true(contains(&out, &newer));
        bz_model *m;
        assert_int_equal(bz_model_parse(out.data, out.len, "stripped", &m, NULL), 0);
        assert_string_equal(m->values[0].name, "s");
        assert_int_equal(m->values[0].init->n, 1000);
        assert_int_equal(m->values[0].init->dtype, BZ_I64);
        bz_model_free(m);
        bz_buf_free(&newer);
        bz_buf_free(&copy);
        bz_buf_free(&out);
        bz_buf_free(&bytes);
    }
}

static bz_buf constant_node(const char *op, const char *domain, const char *attribute)
{
    bz_buf node = a_node(op, "c", "", "k"), attr = an_attr(attribute, 4);
    put_message(&attr, ATTR_T, a_raw_tensor("", BZ_U8, "20x20", RAW, BIG));
    put_message(&node, NODE_ATTR, attr);
    if (domain)
        put_text(&node, NODE_DOMAIN, domain);
    return node;
}

static void constants(void **state)
{
    (void)state;
    static const struct {
        const char *op, *domain, *attribute;
        int opset, dropped;
    } CASES[] = {
        {"Constant", NULL, "value", 11, 1},      {"Constant", "", "value", 17, 1},
        {"Constant", "ai.onnx", "value", 17, 1}, {"Constant", NULL, "value", 10, 0}, /* knows no sparse_value yet */
        {"Constant", "local", "value", 17, 0},   {"Constant", NULL, "other", 17, 0},
        {"Other", NULL, "value", 17, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_buf graph = {0};
        put_message(&graph, GRAPH_NODE, constant_node(CASES[i].op, CASES[i].domain, CASES[i].attribute));
        bz_buf bytes = a_model(8, CASES[i].opset, graph);
        int64_t dropped, kept;
        bz_buf out = stripped(&bytes, KEEP, &dropped, &kept);
        assert_int_equal(dropped, CASES[i].dropped);
        assert_int_equal(out.len < BIG, CASES[i].dropped);
        bz_model *m;
        assert_int_equal(bz_model_parse(out.data, out.len, "stripped", &m, NULL), 0);
        const bz_attr *a = &m->graph->nodes[0].attrs[0];
        assert_int_equal(a->kind, BZ_ATTR_TENSOR);
        assert_string_equal(a->name, CASES[i].dropped ? "sparse_value" : CASES[i].attribute);
        assert_int_equal(a->tensor->n, 400);
        assert_int_equal(a->tensor->dtype, BZ_U8);
        bz_model_free(m);
        bz_buf_free(&out);
        bz_buf_free(&bytes);
    }
}

/* Bodies and functions have weights, too; a function imports operator sets of its own. */
static void constants_in_bodies_and_functions(void **state)
{
    (void)state;
    for (int opset = 10; opset < 12; opset++) {
        bz_buf graph = {0}, body = {0}, function = {0}, node = a_node("If", "if", "", "y"),
               attr = an_attr("then_branch", 5);
        put_message(&body, GRAPH_INIT, a_raw_tensor("w", BZ_U8, "400", RAW, BIG));
        put_message(&body, GRAPH_NODE, constant_node("Constant", NULL, "value"));
        put_message(&attr, ATTR_G, body);
        put_message(&node, NODE_ATTR, attr);
        put_message(&graph, GRAPH_NODE, node);
        put_text(&function, FUNCTION_NAME, "F");
        put_message(&function, FUNCTION_NODE, constant_node("Constant", NULL, "value"));
        put_opset(&function, FUNCTION_OPSET, "", opset);
        bz_buf bytes = {0};
        put_message(&bytes, MODEL_FUNCTION, function);
        put_message(&bytes, MODEL_GRAPH, graph);
        put_int(&bytes, MODEL_IR, 8);
        put_opset(&bytes, MODEL_OPSET, "", 17);
        int64_t dropped, kept;
        bz_buf out = stripped(&bytes, KEEP, &dropped, &kept);
        assert_int_equal(dropped, opset < 11 ? 2 : 3);
        assert_int_equal(out.len < BIG, opset >= 11);
        bz_buf_free(&out);
        bz_buf_free(&bytes);
    }
}

static void unknown_fields_survive(void **state)
{
    (void)state;
    static const char TEXT[] = "unknown";
    bz_buf graph = {0}, node = a_node("Neg", "n", "w", "y"), attr = an_int_attr("a", 1), t, type = a_type(BZ_F32, "1"),
           value = {0}, unknown = {0};
    put_bytes(&unknown, 31, TEXT, sizeof TEXT);
    put_int(&unknown, 200, -1);
    put_varint(&unknown, 300 * 8 + 5);
    bz_buf_put(&unknown, "four", 4);
    put_varint(&unknown, 536870911u * 8 + 1);
    bz_buf_put(&unknown, "eight...", 8);
    t = a_raw_tensor("w", BZ_U8, "400", RAW, BIG);
    bz_buf *places[] = {&attr, &node, &t, &type, &graph};
    for (size_t i = 0; i < 5; i++)
        bz_buf_put(places[i], unknown.data, unknown.len);
    put_message(&node, NODE_ATTR, attr);
    put_message(&graph, GRAPH_NODE, node);
    put_message(&graph, GRAPH_INIT, t);
    put_text(&value, 1, "y");
    put_message(&value, 2, type);
    put_message(&graph, GRAPH_OUTPUT, value);
    bz_buf bytes = a_model(8, 17, graph);
    bz_buf_put(&bytes, unknown.data, unknown.len);
    int64_t dropped, kept;
    bz_buf out = stripped(&bytes, KEEP, &dropped, &kept);
    assert_int_equal(dropped, 1);
    int found = 0;
    for (const char *p = out.data; (p = memmem(p, (size_t)(out.data + out.len - p), unknown.data, unknown.len)); p++)
        found++;
    assert_int_equal(found, 6);
    bz_buf_free(&unknown);
    bz_buf_free(&out);
    bz_buf_free(&bytes);
}

static bz_buf metadata(const char *of)
{
    bz_buf entry = {0};
    put_text(&entry, 1, "made by");
    put_text(&entry, 2, of);
    return entry;
}

/* Newer files keep notes on everything (metadata_props), nodes have an overload, functions describe what they compute. The
 * numbers of the fields are those of onnx.proto. */
static void metadata_survives_everywhere(void **state)
{
    (void)state;
    static const char *const PLACES[] = {"node",
                                         "tensor",
                                         "graph",
                                         "function",
                                         "value",
                                         "node of body",
                                         "initializer",
                                         "node of function",
                                         "type of function",
                                         "model",
                                         "training"};
    bz_buf node = a_node("If", "n", "w", "y"), inner = a_node("Constant", "c", "", "k"), body = {0}, g = {0}, f = {0},
           value = a_value("y", BZ_F32, "1"), in_function = a_node("Constant", "d", "", "k"), typed = {0}, bytes = {0},
           training = {0}, algorithm = {0}, attr = an_attr("then_branch", 5), constant = an_attr("value", 4),
           tensor = a_raw_tensor("", BZ_U8, "20x20", RAW, BIG), init = a_raw_tensor("w", BZ_U8, "400", RAW, BIG);
    put_message(&tensor, 16, metadata(PLACES[1]));
    put_message(&constant, ATTR_T, tensor);
    put_message(&inner, NODE_ATTR, constant);
    put_message(&inner, 9, metadata(PLACES[5]));
    put_message(&body, GRAPH_NODE, inner);
    put_message(&attr, ATTR_G, body);
    put_message(&node, NODE_ATTR, attr);
    put_message(&node, 9, metadata(PLACES[0]));
    put_message(&value, 4, metadata(PLACES[4]));
    put_message(&init, 16, metadata(PLACES[6]));
    put_message(&g, GRAPH_NODE, node);
    put_message(&g, GRAPH_INIT, init);
    put_message(&g, GRAPH_OUTPUT, value);
    put_message(&g, 16, metadata(PLACES[2]));
    put_message(&in_function, 9, metadata(PLACES[7]));
    put_text(&f, FUNCTION_NAME, "F");
    put_message(&f, FUNCTION_NODE, in_function);
    put_opset(&f, FUNCTION_OPSET, "", 21);
    typed = a_value("t", BZ_F32, "2");
    put_message(&typed, 4, metadata(PLACES[8]));
    put_message(&f, 12, typed);
    put_message(&f, 14, metadata(PLACES[3]));
    put_message(&algorithm, GRAPH_INIT, a_raw_tensor("rate", BZ_U8, "400", RAW, BIG));
    put_message(&algorithm, 16, metadata(PLACES[10]));
    put_message(&training, 2, algorithm);
    put_message(&bytes, MODEL_GRAPH, g);
    put_message(&bytes, MODEL_FUNCTION, f);
    put_message(&bytes, MODEL_TRAINING, training);
    put_int(&bytes, MODEL_IR, 10);
    put_opset(&bytes, MODEL_OPSET, "", 21);
    put_message(&bytes, 14, metadata(PLACES[9]));
    int64_t dropped, kept;
    bz_buf out = stripped(&bytes, KEEP, &dropped, &kept);
    assert_int_equal(dropped, 3);
    assert_true(out.len < bytes.len - 3 * BIG + 100);
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        bz_buf entry = metadata(PLACES[i]);
        if (!contains(&out, &entry))
            fail_msg("what is said of the %s is gone", PLACES[i]);
        bz_buf_free(&entry);
    }
    bz_buf_free(&out);
    bz_buf_free(&bytes);
}

static bz_buf example(void)
{
    bz_buf graph = {0};
    put_text(&graph, GRAPH_NAME, "g");
    put_message(&graph, GRAPH_INPUT, a_value("x", BZ_U8, "1"));
    put_message(&graph, GRAPH_INIT, a_raw_tensor("w", BZ_U8, "400", RAW, BIG));
    put_message(&graph, GRAPH_INIT, a_raw_tensor("v", BZ_U8, "9", RAW, 9));
    put_message(&graph, GRAPH_NODE, a_node("Sum", "s", "x w v", "y"));
    return a_model(8, 17, graph);
}

static int entries(const char *path)
{
    bz_buf command = {0};
    bz_buf_printf(&command, "ls -A '%s' | wc -l", path);
    FILE *p = popen(bz_buf_text(&command), "r");
    char line[32] = "";
    assert_non_null(fgets(line, sizeof line, p));
    pclose(p);
    bz_buf_free(&command);
    return atoi(line);
}

static void files(void **state)
{
    (void)state;
    bz_buf bytes = example();
    bz_strip_result r;
    bz_error err = {0};
    struct stat st;
    assert_int_equal(mkdir("a", 0777), 0);
    write_file("a/in.onnx", &bytes);
    assert_int_equal(symlink("target.onnx", "a/link.onnx"), 0);
    umask(027);
    if (bz_model_strip("a/in.onnx", "a/out.onnx", KEEP, &r, &err))
        fail_msg("%s", err.text);
    assert_int_equal(r.tensors, 1);
    assert_int_equal(r.kept, 1);
    assert_int_equal(r.in_bytes, bytes.len);
    assert_int_equal(stat("a/out.onnx", &st), 0);
    assert_int_equal(st.st_size, r.out_bytes);
    assert_int_equal(st.st_mode & 0777, 0640); /* as the umask says, not as a temporary file has it */
    umask(022);

    /* over an older file, and over a file behind a link, which stays a link */
    bz_buf expected = read_file("a/out.onnx");
    write_file("a/target.onnx", &bytes);
    assert_int_equal(bz_model_strip("a/in.onnx", "a/link.onnx", KEEP, &r, &err), 0);
    assert_int_equal(lstat("a/link.onnx", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    bz_buf behind = read_file("a/target.onnx");
    assert_int_equal(behind.len, expected.len);

    /* onto itself, by its name or behind a link: refused, and left as it is */
    const char *const SELF[] = {"a/in.onnx", "a/../a/in.onnx", "a/self.onnx"};
    assert_int_equal(symlink("in.onnx", "a/self.onnx"), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bz_model_strip("a/in.onnx", SELF[i], KEEP, &r, &err), -1);
        assert_int_equal(err.code, BZ_USAGE);
        assert_non_null(strstr(err.text, "is the model itself"));
        bz_buf itself = read_file("a/in.onnx");
        assert_int_equal(itself.len, bytes.len);
        assert_memory_equal(itself.data, bytes.data, bytes.len);
        bz_buf_free(&itself);
    }
    assert_int_equal(entries("a"), 5);
    bz_buf_free(&behind);
    bz_buf_free(&expected);
    bz_buf_free(&bytes);
}

static void places_that_cannot_be_written(void **state)
{
    (void)state;
    bz_buf bytes = example();
    bz_strip_result r;
    bz_error err = {0};
    assert_int_equal(mkdir("b", 0777), 0);
    write_file("b/in.onnx", &bytes);
    assert_int_equal(mkfifo("b/pipe", 0666), 0);
    static const char *const PATHS[][2] = {{"b/no/such/out.onnx", "cannot be written: No such file"},
                                           {"b/in.onnx/out.onnx", "cannot be written: Not a directory"},
                                           {"b", "is not a regular file"},
                                           {"b/pipe", "is not a regular file"},
                                           {"/dev/null", "is not a regular file"},
                                           {"", "cannot be written"}};
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        assert_int_equal(bz_model_strip("b/in.onnx", PATHS[i][0], KEEP, &r, &err), -1);
        assert_int_equal(err.code, BZ_FAILED);
        if (!strstr(err.text, PATHS[i][1]))
            fail_msg("'%s' does not say '%s'", err.text, PATHS[i][1]);
    }
    assert_int_equal(entries("b"), 2);
    assert_int_equal(access("/dev/null", W_OK), 0);
    bz_buf_free(&bytes);
}

static void bad_input_leaves_the_output_alone(void **state)
{
    (void)state;
    bz_buf bytes = example(), older = {0};
    bz_strip_result r;
    bz_error err = {0};
    assert_int_equal(mkdir("c", 0777), 0);
    bytes.len -= 5;
    write_file("c/broken.onnx", &bytes);
    bz_buf_puts(&older, "older");
    write_file("c/out.onnx", &older);
    assert_int_equal(bz_model_strip("c/broken.onnx", "c/out.onnx", KEEP, &r, &err), -1);
    assert_int_equal(err.code, BZ_BAD_INPUT);
    bz_buf still = read_file("c/out.onnx");
    assert_string_equal(bz_buf_text(&still), "older");
    assert_int_equal(entries("c"), 2);
    bz_buf_free(&still);
    bz_buf_free(&older);
    bz_buf_free(&bytes);
}

/* A write that fails half-way leaves nothing behind, and what was there stays. */
static void limited_files_leave_nothing(void **state)
{
    (void)state;
    bz_buf bytes = example();
    bz_strip_result r;
    bz_error err = {0};
    struct rlimit limit, small;
    assert_int_equal(mkdir("d", 0777), 0);
    write_file("d/in.onnx", &bytes);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 50;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int failed = bz_model_strip("d/in.onnx", "d/out.onnx", KEEP, &r, &err) +
                 bz_model_strip("d/in.onnx", "d/other.onnx", KEEP, &r, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(failed, -2);
    assert_non_null(strstr(err.text, "d/other.onnx: cannot be written: File too large"));
    assert_int_equal(entries("d"), 1);
    bz_buf same = read_file("d/in.onnx");
    assert_int_equal(same.len, bytes.len);
    bz_buf_free(&same);
    bz_buf_free(&bytes);
}

static void full_disk_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(mkdir("disk", 0777), 0);
    if (mount("tmpfs", "disk", "tmpfs", 0, "size=16k")) {
        print_message("full_disk_leaves_nothing: a small disk cannot be mounted here: %s\n", strerror(errno));
        skip();
    }
    bz_buf bytes = example(), filler = {0};
    bz_strip_result r;
    bz_error err = {0};
    write_file("in.onnx", &bytes);
    memset(bz_buf_extend(&filler, 16384), 0, 16384);
    int fd = open("disk/filler", O_WRONLY | O_CREAT, 0666);
    ssize_t filled = write(fd, filler.data, filler.len);
    close(fd);
    int failed = bz_model_strip("in.onnx", "disk/out.onnx", KEEP, &r, &err), n = entries("disk");
    assert_int_equal(umount("disk"), 0);
    assert_true(filled > 0);
    assert_int_equal(failed, -1);
    assert_int_equal(err.code, BZ_FAILED);
    assert_non_null(strstr(err.text, "disk/out.onnx: cannot be written: No space left on device"));
    assert_int_equal(n, 1);
    bz_buf_free(&filler);
    bz_buf_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(big_tensors_become_sparse),
        cmocka_unit_test(every_payload_counts),
        cmocka_unit_test(small_tensors_stay_byte_for_byte),
        cmocka_unit_test(what_cannot_be_sparse_stays),
        cmocka_unit_test(external_tensors_lose_their_files),
        cmocka_unit_test(sparse_tensors_lose_their_values),
        cmocka_unit_test(constants),
        cmocka_unit_test(constants_in_bodies_and_functions),
        cmocka_unit_test(unknown_fields_survive),
        cmocka_unit_test(metadata_survives_everywhere),
        cmocka_unit_test(files),
        cmocka_unit_test(places_that_cannot_be_written),
        cmocka_unit_test(bad_input_leaves_the_output_alone),
        cmocka_unit_test(limited_files_leave_nothing),
        cmocka_unit_test(full_disk_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
