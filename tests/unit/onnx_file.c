/* Files on disk: what is no model, and external data that must stay in the model's folder. */
#include "onnx/structure.h"
#include "writer.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/benanza-test-XXXXXX";

static int enter_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) && !chdir(folder) && !mkdir("model", 0777) ? 0 : -1;
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

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void load_says(const char *path, const char *why)
{
    bz_model *m = (bz_model *)folder;
    bz_error err = {0};
    assert_int_equal(bz_model_load(path, &m, &err), -1);
    assert_null(m);
    assert_int_equal(err.code, BZ_BAD_INPUT);
    assert_ptr_equal(strstr(err.text, path), err.text);
    if (!strstr(err.text, why))
        fail_msg("'%s' does not say '%s'", err.text, why);
}

static void mistaken_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } CASES[] = {
        {"<!DOCTYPE html><html>", "HTML"},
        {"\n\n  <html>", "HTML"},
        {"\xef\xbb\xbf<?xml version=\"1.0\"?>", "HTML or XML"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"},
        {"PK\003\004whatever", "zip archive"},
        {"\037\213\b", "gzip file: unpack it first; a recording goes to 'benanza analyze --profile'"},
        {"{\"a\": 1}", "JSON, not an ONNX model; a recording goes to"},
        {"[{\"ph\": \"X\"}]", "JSON"},
        {"  {\n", "JSON"},
        {"ir_version: 8\n", "text form"},
        {"\x80\002}q\001", "pickle"},
        {"\x80\004\225\f", "pickle"},
        {"\050\265\057\375\244", "zstd"},
        {"SQLite format 3", "analyze --profile"},
        {"GGUF\003", "no graph"},
        {"\211HDF\r\n", "HDF5"},
        {"\223NUMPY\001", "NumPy"},
        {"hello", "no ONNX model"},
        {"\b", "no end"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        write_file("m.onnx", CASES[i].text, strlen(CASES[i].text));
        load_says("m.onnx", CASES[i].why);
    }
    static const struct {
        char bytes[12], *why;
    } BEHIND_LENGTHS[] = {{"\034\0\0\0TFL3\0\0\0\0", "TensorFlow Lite"},
                          {"\030\0\0\0ORTM\0\0\0\0", "ONNX Runtime's own"},
                          {"\002\001\0\0\0\0\0\0{\"a", "safetensors"},
                          {"\b\b\022\0\032\0002\004{\"a\"", "no graph"}}; /* a model, whose text lies at such a place */
    for (size_t i = 0; i < sizeof BEHIND_LENGTHS / sizeof *BEHIND_LENGTHS; i++) {
        write_file("m.onnx", BEHIND_LENGTHS[i].bytes, sizeof BEHIND_LENGTHS[i].bytes);
        load_says("m.onnx", BEHIND_LENGTHS[i].why);
    }
    static const char ZEROES[4096];
    write_file("m.onnx", ZEROES, sizeof ZEROES);
    load_says("m.onnx", "byte 0: no field can start here");
    write_file("m.onnx", "", 0);
    load_says("m.onnx", "the file is empty");
}

static void what_is_no_file(void **state)
{
    (void)state;
    load_says("nowhere.onnx", "cannot be opened: No such file");
    load_says("nowhere/m.onnx", "cannot be opened: No such file");
    load_says("", "cannot be opened");
    load_says("model", "is a folder");
    load_says("/dev/null", "is not a regular file");
    assert_int_equal(mkfifo("pipe", 0666), 0); /* nobody writes: opening must not wait */
    load_says("pipe", "is not a regular file");
    write_file("secret.onnx", "\b\b", 2);
    assert_int_equal(chmod("secret.onnx", 0), 0);
    if (geteuid())
        load_says("secret.onnx", "cannot be opened: Permission denied");
    else
        load_says("secret.onnx", "no graph");
}

enum { MANY = 80000 }; /* elements of a tensor that alone makes a file big */

/* Two tensors of int64, 0, 1, 2 …: a big one, and one of 300 behind it. */
static bz_buf big_model(void)
{
    static int64_t numbers[MANY];
    bz_buf graph = {0}, big = a_tensor("big", BZ_I64, "80000"), small = a_tensor("small", BZ_I64, "300");
    for (int i = 0; i < MANY; i++)
        numbers[i] = i;
    put_bytes(&big, TENSOR_RAW, numbers, sizeof numbers);
    put_bytes(&small, TENSOR_RAW, numbers, 300 * sizeof *numbers);
    put_message(&graph, GRAPH_INIT, big);
    put_message(&graph, GRAPH_INIT, small);
    return a_model(8, 17, graph);
}

static void payloads_of_big_files(void **state)
{
    (void)state;
    static int64_t v[MANY];
    bz_buf bytes = big_model();
    write_file("model/big.onnx", bytes.data, bytes.len);
    bz_model *m;
    bz_error err = {0};
    assert_int_equal(bz_model_load("model/big.onnx", &m, &err), 0);
    assert_int_equal(m->file_size, bytes.len);
    assert_int_equal(m->n_values, 2);
    for (int k = 0; k < 2; k++) {
        const bz_tensor *t = m->values[k].init;
        assert_int_equal(bz_tensor_ints(m, t, v, &err), 0);
        for (int i = 0; i < t->n; i++)
            assert_int_equal(v[i], i);
    }
    bz_model_free(m);
    bz_buf_free(&bytes);
}

static void put_constant(bz_buf *graph, const char *name, const char *dims, const int64_t *v, size_t n)
{
    bz_buf node = a_node("Constant", name, "", name), attr = an_attr("value", 4), t = a_tensor("", BZ_I64, dims);
    put_bytes(&t, TENSOR_RAW, v, n * sizeof *v);
    put_message(&attr, ATTR_T, t);
    put_message(&node, NODE_ATTR, attr);
    put_message(graph, GRAPH_NODE, node);
}

/* Without their payloads the attributes of a and b are the same, byte for byte; those of d and e are with them. */
static void constants_of_big_files(void **state)
{
    (void)state;
    static int64_t v[MANY], a[300] = {1}, b[300] = {2};
    static const struct {
        const char *name, *dims;
        const int64_t *v;
        size_t n;
    } CONSTANTS[] = {{"a", "300", a, 300}, {"b", "300", b, 300}, {"d", "1", a, 1}, {"e", "1", a, 1}, {"f", "1", b, 1}};
    enum { N = sizeof CONSTANTS / sizeof *CONSTANTS };
    bz_buf graph = {0}, big = a_tensor("big", BZ_I64, "80000");
    put_bytes(&big, TENSOR_RAW, v, sizeof v);
    put_message(&graph, GRAPH_INIT, big);
    for (int k = 0; k < N; k++)
        put_constant(&graph, CONSTANTS[k].name, CONSTANTS[k].dims, CONSTANTS[k].v, CONSTANTS[k].n);
    bz_buf bytes = a_model(8, 17, graph);
    write_file("model/constants.onnx", bytes.data, bytes.len);
    bz_model *m;
    bz_error err = {0};
    assert_int_equal(bz_model_load("model/constants.onnx", &m, &err), 0);
    const bz_tensor *t[N];
    for (int k = 0; k < N; k++) {
        t[k] = m->graph->nodes[k].attrs[0].tensor;
        assert_int_equal(t[k]->n, CONSTANTS[k].n);
        assert_int_equal(bz_tensor_ints(m, t[k], v, &err), 0);
        assert_memory_equal(v, CONSTANTS[k].v, CONSTANTS[k].n * sizeof *v);
    }
    assert_ptr_not_equal(t[0], t[1]);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

/* A body is built for each call, from attributes that were forgotten meanwhile. */
static void functions_of_big_files(void **state)
{
    (void)state;
    static int64_t v[MANY], numbers[300] = {1, 2, 3};
    bz_buf graph = {0}, function = {0}, model = {0}, big = a_tensor("big", BZ_I64, "80000");
    put_text(&function, FUNCTION_NAME, "F");
    put_text(&function, FUNCTION_OUTPUT, "k");
    put_opset(&function, FUNCTION_OPSET, "", 17);
    bz_buf constant = {0};
    put_constant(&constant, "k", "300", numbers, 300);
    bz_buf_put(&function, "\x3a", 1); /* FUNCTION_NODE, for the tag of GRAPH_NODE */
    bz_buf_put(&function, constant.data + 1, constant.len - 1);
    bz_buf_free(&constant);
    for (int i = 0; i < 500; i++) {
        char out[16];
        snprintf(out, sizeof out, "o%d", i);
        bz_buf node = a_node("Op", "", "", out);
        put_message(&node, NODE_ATTR, an_int_attr("number", i * 1000));
        put_message(&function, FUNCTION_NODE, node);
    }
    put_bytes(&big, TENSOR_RAW, v, sizeof v);
    put_message(&graph, GRAPH_INIT, big);
    put_message(&graph, GRAPH_NODE, a_node("F", "", "", "a"));
    put_int(&model, MODEL_IR, 8);
    put_opset(&model, MODEL_OPSET, "", 17);
    put_message(&model, MODEL_FUNCTION, function);
    put_message(&model, MODEL_GRAPH, graph);
    write_file("model/functions.onnx", model.data, model.len);
    bz_model *m;
    bz_error err = {0};
    assert_int_equal(bz_model_load("model/functions.onnx", &m, &err), 0);
    for (int call = 0; call < 2; call++) {
        bz_graph *body;
        if (bz_model_inline(m, &m->graph->nodes[0], &body, &err))
            fail_msg("%s", err.text);
        assert_int_equal(bz_tensor_ints(m, body->nodes[0].attrs[0].tensor, v, &err), 0);
        assert_memory_equal(v, numbers, sizeof numbers);
        assert_int_equal(body->nodes[500].attrs[0].i, 499000);
    }
    bz_model_free(m);
    bz_buf_free(&model);
}

/* A list may come in several pieces; where one of them was left out, nobody knows their order. */
static void pieces_of_big_files(void **state)
{
    (void)state;
    static uint8_t ones[MANY], zeros[600000];
    static int64_t v[MANY];
    bz_buf graph = {0}, t = a_tensor("pieces", BZ_I64, "2001"), whole = a_tensor("whole", BZ_I64, "2000"),
           ballast = a_tensor("ballast", BZ_U8, "600000");
    memset(ones, 1, sizeof ones);
    put_bytes(&t, TENSOR_INT64S, ones, 2000);
    put_int(&t, TENSOR_INT64S, 1);
    put_bytes(&whole, TENSOR_INT64S, ones, 2000);
    put_bytes(&ballast, TENSOR_RAW, zeros, sizeof zeros);
    put_message(&graph, GRAPH_INIT, t);
    put_message(&graph, GRAPH_INIT, whole);
    put_message(&graph, GRAPH_INIT, ballast);
    bz_buf bytes = a_model(8, 17, graph);
    write_file("model/pieces.onnx", bytes.data, bytes.len);
    bz_model *m;
    bz_error err = {0};
    assert_int_equal(bz_model_load("model/pieces.onnx", &m, &err), 0);
    assert_int_equal(bz_tensor_ints(m, m->values[0].init, v, &err), -1);
    assert_string_equal(err.text, "tensor 'pieces': its elements come in pieces: write the model anew");
    assert_int_equal(bz_tensor_ints(m, m->values[1].init, v, &err), 0);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(v[i], 1);
    bz_model_free(m);
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "whole", &m, &err), 0);
    assert_int_equal(bz_tensor_ints(m, m->values[0].init, v, &err), 0);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

/* Layers of two big payloads and some small ones behind each, which grow, and once are none at all and once many. */
static void layers_of_big_files(void **state)
{
    (void)state;
    enum { LAYERS = 30, PER = 10 };
    static int64_t numbers[5000], v[5000];
    bz_buf graph = {0};
    for (int i = 0; i < 5000; i++)
        numbers[i] = i;
    for (int k = 0; k < LAYERS * PER; k++) {
        int layer = k / PER, place = k % PER, n = place == 0 || place == 3 ? 1100 + 130 * layer : 4 * layer + place;
        if ((layer == 12 && place && place != 3) || (place > 5 && layer != 20))
            continue;
        char name[32], dims[32];
        snprintf(name, sizeof name, "t%d", k);
        snprintf(dims, sizeof dims, "%d", n);
        bz_buf t = a_tensor(name, BZ_I64, dims);
        put_bytes(&t, TENSOR_RAW, numbers, (size_t)n * sizeof *numbers);
        put_message(&graph, GRAPH_INIT, t);
    }
    bz_buf bytes = a_model(8, 17, graph);
    write_file("model/layers.onnx", bytes.data, bytes.len);
    bz_model *whole, *m;
    bz_error err = {0};
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "whole", &whole, &err), 0);
    assert_int_equal(bz_model_load("model/layers.onnx", &m, &err), 0);
    assert_int_equal(m->n_values, whole->n_values);
    for (int k = 0; k < m->n_values; k++) {
        const bz_tensor *t = m->values[k].init;
        assert_string_equal(t->name, whole->values[k].init->name);
        assert_int_equal(t->n, whole->values[k].init->n);
        assert_int_equal(bz_tensor_ints(m, t, v, &err), 0);
        assert_memory_equal(v, numbers, (size_t)t->n * sizeof *v);
    }
    bz_model_free(m);
    bz_model_free(whole);
    for (size_t cut = 1; cut < 40000; cut += 1999) { /* also where much more was expected */
        write_file("model/layers-cut.onnx", bytes.data, bytes.len - cut);
        load_says("model/layers-cut.onnx", "a field is longer than what holds it");
    }
    bz_buf_free(&bytes);
}

/* It must not end the process that reads it. */
static void big_file_is_cut_meanwhile(void **state)
{
    (void)state;
    static int64_t v[MANY];
    bz_buf bytes = big_model();
    write_file("model/big.onnx", bytes.data, bytes.len);
    bz_buf_free(&bytes);
    bz_model *m;
    bz_error err = {0};
    assert_int_equal(bz_model_load("model/big.onnx", &m, &err), 0);
    assert_int_equal(truncate("model/big.onnx", 10000), 0);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(bz_tensor_ints(m, m->values[k].init, v, &err), -1);
        assert_non_null(strstr(err.text, "cut short"));
        assert_non_null(strstr(err.text, m->values[k].init->name));
    }
    bz_model_free(m);

    wire_bytes part;
    int fd = open("model/big.onnx", O_RDONLY);
    assert_int_equal(structure_read(fd, 20000, 100, &(bz_buf){0}, &part, &err), -1); /* smaller than it just was */
    free((void *)part.data);
    free((void *)part.cuts);
    close(fd);
}

/* Places in the file are told, not in what was read of it. */
static void damage_behind_weights(void **state)
{
    (void)state;
    bz_buf bytes = big_model(), graph = {0}, node = {0};
    char place[32];
    write_file("model/big.onnx", bytes.data, bytes.len - 1);
    load_says("model/big.onnx", "a field is longer than what holds it");
    bz_buf_free(&bytes);

    bz_buf big = a_tensor("big", BZ_U8, "600000");
    static const uint8_t ZEROS[600000];
    put_bytes(&big, TENSOR_RAW, ZEROS, sizeof ZEROS);
    put_message(&graph, GRAPH_INIT, big);
    bz_buf_putc(&node, 7); /* wire type 7 */
    put_message(&graph, GRAPH_NODE, node);
    size_t n = graph.len;
    bytes = a_model(8, 17, graph);
    const char *bad = memmem(bytes.data + bytes.len - 40, 40, "\012\001\007", 3); /* the node */
    assert_true(n > sizeof ZEROS && bad);
    snprintf(place, sizeof place, "byte %zu:", (size_t)(bad - bytes.data) + 2);
    write_file("model/damaged.onnx", bytes.data, bytes.len);
    load_says("model/damaged.onnx", place);
    bz_buf_free(&bytes);
}

/* Nothing is left open: a thousand failures and successes do not run out of descriptors. */
static void descriptors_are_closed(void **state)
{
    (void)state;
    bz_buf graph = {0}, bytes;
    put_message(&graph, GRAPH_INPUT, a_value("x", BZ_F32, "1"));
    bytes = a_model(8, 17, graph);
    write_file("model/small.onnx", bytes.data, bytes.len);
    write_file("model/broken.onnx", bytes.data, bytes.len - 1);
    bz_buf_free(&bytes);
    bytes = big_model();
    write_file("model/big.onnx", bytes.data, bytes.len);
    write_file("model/big-broken.onnx", bytes.data, bytes.len - 1);
    bz_buf_free(&bytes);
    int before = dup(0);
    close(before);
    static const char *const GOOD[] = {"model/small.onnx", "model/big.onnx"}, *const BAD[] = {"model/broken.onnx",
                                                                                              "model/big-broken.onnx"};
    for (int i = 0; i < 1000; i++) {
        bz_model *m;
        assert_int_equal(bz_model_load(GOOD[i % 2], &m, NULL), 0);
        bz_model_free(m);
        assert_int_equal(bz_model_load(BAD[i % 2], &m, NULL), -1);
    }
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
}

/* A model in model/m.onnx with one tensor of three int64 in an external file. */
static void write_external_model(const char *location, const char *offset, const char *length)
{
    bz_buf graph = {0}, t = a_tensor("w", BZ_I64, "3");
    if (location)
        put_external(&t, "location", location);
    if (offset)
        put_external(&t, "offset", offset);
    if (length)
        put_external(&t, "length", length);
    put_external(&t, "checksum", "unknown keys are no harm");
    put_int(&t, TENSOR_LOCATION, 1);
    put_message(&graph, GRAPH_INIT, t);
    bz_buf bytes = a_model(8, 17, graph);
    write_file("model/m.onnx", bytes.data, bytes.len);
    bz_buf_free(&bytes);
}

static void external_reads(const char *location, const char *offset, const char *length, int64_t first)
{
    write_external_model(location, offset, length);
    bz_model *m;
    bz_error err = {0};
    int64_t v[3];
    if (bz_model_load("model/m.onnx", &m, &err) || bz_tensor_ints(m, m->values[0].init, v, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++)
        assert_int_equal(v[i], first + i);
    bz_model_free(m);
}

static void external_is_refused(const char *location, const char *offset, const char *why)
{
    write_external_model(location, offset, NULL);
    load_says("model/m.onnx", why);
}

/* The model loads, its shape is known; only the data is not to be had. */
static void external_cannot_be_read(const char *location, const char *offset, const char *length, const char *why)
{
    write_external_model(location, offset, length);
    bz_model *m;
    bz_error err = {0};
    int64_t v[3];
    if (bz_model_load("model/m.onnx", &m, &err))
        fail_msg("%s", err.text);
    assert_int_equal(m->values[0].init->n, 3);
    assert_int_equal(bz_tensor_ints(m, m->values[0].init, v, &err), -1);
    if (!strstr(err.text, why))
        fail_msg("'%s' does not say '%s'", err.text, why);
    bz_model_free(m);
}

static void write_numbers(const char *path)
{
    int64_t v[10];
    for (int i = 0; i < 10; i++)
        v[i] = 100 + i;
    write_file(path, v, sizeof v);
}

static void external_data_is_found(void **state)
{
    (void)state;
    write_numbers("model/w.bin");
    assert_int_equal(mkdir("model/deep", 0777), 0);
    assert_int_equal(mkdir("model/deep/er", 0777), 0);
    write_numbers("model/deep/er/w.bin");
    write_numbers("model/..w..");
    external_reads("w.bin", NULL, NULL, 100);
    external_reads("w.bin", "16", "24", 102);
    external_reads("w.bin", "56", NULL, 107);
    external_reads("./deep//er/w.bin", "0", NULL, 100);
    external_reads("..w..", NULL, NULL, 100); /* dots in a name are no way up */
}

static void external_data_is_missing_or_short(void **state)
{
    (void)state;
    write_numbers("model/w.bin");
    external_cannot_be_read("other.bin", NULL, NULL, "'other.bin' is not there");
    external_cannot_be_read("no/such/folder/w.bin", NULL, NULL, "is not there");
    external_cannot_be_read("w.bin/x", NULL, NULL, "is not there");
    external_cannot_be_read("", NULL, NULL, "is not there");
    external_cannot_be_read("w.bin", "64", NULL, "shorter");
    external_cannot_be_read("w.bin", "80", NULL, "shorter");
    external_cannot_be_read("w.bin", "9223372036854775807", NULL, "shorter");
    external_cannot_be_read("w.bin", "0", "16", "shorter");
    external_cannot_be_read("w.bin", "0", "32", "longer");
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    external_cannot_be_read(name, NULL, NULL, "is not there");
}

static void external_paths_stay_inside(void **state)
{
    (void)state;
    write_numbers("outside.bin");
    assert_int_equal(symlink("../outside.bin", "model/link.bin"), 0);
    assert_int_equal(symlink("..", "model/up"), 0);
    assert_int_equal(symlink("nowhere", "model/dangling"), 0);
    assert_int_equal(mkdir("model/sub", 0777), 0);
    external_is_refused("../outside.bin", NULL, "leaves the model's folder");
    external_is_refused("..", NULL, "leaves the model's folder");
    external_is_refused("sub/../../outside.bin", NULL, "leaves the model's folder");
    external_is_refused("sub/..", NULL, "leaves the model's folder");
    external_is_refused("/etc/passwd", NULL, "absolute path");
    external_is_refused("link.bin", NULL, "goes through a link");
    external_is_refused("up/outside.bin", NULL, "goes through a link");
    external_is_refused("up/outside\033[2J", NULL, "'up/outside\\x1b[2J'");
    external_is_refused("dangling", NULL, "goes through a link");
    external_is_refused(NULL, NULL, "'w' has external data without a location");
    external_is_refused("w.bin", "-8", "impossible offset");
    external_is_refused("w.bin", "1e3", "impossible offset");
}

static void external_data_must_be_a_file(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("model/pipe", 0666), 0);
    external_is_refused("pipe", NULL, "'pipe' is not a regular file"); /* and does not wait for a writer */
    external_is_refused("sub", NULL, "'sub' is not a regular file");
}

/* A sparse tensor's parts and a Constant's value are judged when they are read. */
static void external_values_of_sparse_tensors(void **state)
{
    (void)state;
    bz_buf graph = {0}, sparse = {0}, values = a_tensor("w", BZ_I64, "1"), indices = a_tensor("", BZ_I64, "1");
    put_external(&values, "location", "w.bin");
    put_int(&values, TENSOR_LOCATION, 1);
    put_external(&indices, "location", "../outside.bin");
    put_int(&indices, TENSOR_LOCATION, 1);
    put_message(&sparse, 1, values);
    put_message(&sparse, 2, indices);
    put_int(&sparse, 3, 5);
    put_message(&graph, GRAPH_SPARSE, sparse);
    bz_buf bytes = a_model(8, 17, graph);
    write_file("model/m.onnx", bytes.data, bytes.len);
    bz_buf_free(&bytes);
    bz_model *m;
    bz_error err = {0};
    int64_t v[5];
    assert_int_equal(bz_model_load("model/m.onnx", &m, &err), 0);
    assert_int_equal(bz_tensor_ints(m, m->values[0].init, v, &err), -1);
    assert_non_null(strstr(err.text, "leaves the model's folder"));
    bz_model_free(m);
}

/* More than 2 GB that are not there: a hole. Only what is asked for is read. */
static void huge_external_data(void **state)
{
    (void)state;
    int fd = open("model/huge.bin", O_RDWR | O_CREAT, 0666);
    assert_true(fd >= 0);
    static const int64_t V[] = {7, 8, 9};
    if (ftruncate(fd, (off_t)5 << 30) || pwrite(fd, V, sizeof V, (off_t)3 << 30) != sizeof V) {
        close(fd);
        skip();
    }
    close(fd);
    external_reads("huge.bin", "3221225472", "24", 7);
}

static void memory_has_no_folder(void **state)
{
    (void)state;
    bz_buf graph = {0}, t = a_tensor("w", BZ_I64, "1");
    put_external(&t, "location", "w.bin");
    put_int(&t, TENSOR_LOCATION, 1);
    put_message(&graph, GRAPH_INIT, t);
    bz_buf bytes = a_model(8, 17, graph);
    bz_model *m;
    bz_error err = {0};
    int64_t v[1];
    assert_int_equal(chdir("model"), 0);
    assert_int_equal(bz_model_parse(bytes.data, bytes.len, "memory", &m, &err), 0);
    assert_int_equal(bz_tensor_ints(m, m->values[0].init, v, &err), -1);
    assert_int_equal(chdir(".."), 0);
    bz_model_free(m);
    bz_buf_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistaken_files),
        cmocka_unit_test(what_is_no_file),
        cmocka_unit_test(descriptors_are_closed),
        cmocka_unit_test(payloads_of_big_files),
        cmocka_unit_test(constants_of_big_files),
        cmocka_unit_test(functions_of_big_files),
        cmocka_unit_test(pieces_of_big_files),
        cmocka_unit_test(layers_of_big_files),
        cmocka_unit_test(big_file_is_cut_meanwhile),
        cmocka_unit_test(damage_behind_weights),
        cmocka_unit_test(external_data_is_found),
        cmocka_unit_test(external_data_is_missing_or_short),
        cmocka_unit_test(external_paths_stay_inside),
        cmocka_unit_test(external_data_must_be_a_file),
        cmocka_unit_test(external_values_of_sparse_tensors),
        cmocka_unit_test(huge_external_data),
        cmocka_unit_test(memory_has_no_folder),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
