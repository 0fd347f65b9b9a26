/* A small ONNX writer for tests: independent of the code under test and able to write what no
 * exporter would. Messages are buffers; putting one into another frees it. */
#ifndef BZ_TEST_WRITER_H
#define BZ_TEST_WRITER_H

#include "onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODEL_IR = 1,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_TRAINING = 20,
    MODEL_FUNCTION = 25,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INIT = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE = 13,
    GRAPH_SPARSE = 15,
    NODE_ATTR = 5,
    NODE_DOMAIN = 7,
    NODE_OVERLOAD = 8,
    ATTR_NAME = 1,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_G = 6,
    ATTR_INTS = 8,
    ATTR_GRAPHS = 11,
    ATTR_TYPE = 20,
    ATTR_REF = 21,
    ATTR_SPARSE = 22,
    TENSOR_DIMS = 1,
    TENSOR_DTYPE = 2,
    TENSOR_FLOATS = 4,
    TENSOR_INT32S = 5,
    TENSOR_STRINGS = 6,
    TENSOR_INT64S = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_DOUBLES = 10,
    TENSOR_UINT64S = 11,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14,
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_ATTR = 6,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10,
    FUNCTION_DEFAULT = 11,
    FUNCTION_OVERLOAD = 13,
};

static inline void put_varint(bz_buf *b, uint64_t v)
{
    for (; v > 127; v >>= 7)
        bz_buf_putc(b, (char)(v % 128 + 128));
    bz_buf_putc(b, (char)v);
}

static inline void put_int(bz_buf *b, uint32_t field, int64_t v)
{
    put_varint(b, (uint64_t)field * 8);
    put_varint(b, (uint64_t)v);
}

static inline void put_bytes(bz_buf *b, uint32_t field, const void *data, size_t n)
{
    put_varint(b, (uint64_t)field * 8 + 2);
    put_varint(b, n);
    bz_buf_put(b, data, n);
}

static inline void put_text(bz_buf *b, uint32_t field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

static inline void put_message(bz_buf *b, uint32_t field, bz_buf message)
{
    put_bytes(b, field, message.data, message.len);
    bz_buf_free(&message);
}

/* "2x3": each number as a field of its own. */
static inline void put_dims(bz_buf *b, uint32_t field, const char *dims)
{
    while (*dims) {
        char *end;
        put_int(b, field, strtoll(dims, &end, 10));
        dims = *end ? end + 1 : end;
    }
}

/* A tensor without a payload. */
static inline bz_buf a_tensor(const char *name, bz_dtype dtype, const char *dims)
{
    bz_buf t = {0};
    put_dims(&t, TENSOR_DIMS, dims);
    put_int(&t, TENSOR_DTYPE, dtype);
    put_text(&t, TENSOR_NAME, name);
    return t;
}

static inline bz_buf a_raw_tensor(const char *name, bz_dtype dtype, const char *dims, const void *data, size_t n)
{
    bz_buf t = a_tensor(name, dtype, dims);
    put_bytes(&t, TENSOR_RAW, data, n);
    return t;
}

static inline void put_external(bz_buf *tensor, const char *key, const char *value)
{
    bz_buf entry = {0};
    put_text(&entry, 1, key);
    put_text(&entry, 2, value);
    put_message(tensor, TENSOR_EXTERNAL, entry);
}

/* "1x3xN": a dimension is a number, a name, or nothing. */
static inline bz_buf a_type(bz_dtype dtype, const char *dims)
{
    bz_buf type = {0}, tensor = {0}, shape = {0};
    put_int(&tensor, 1, dtype);
    for (const char *p = dims; *p;) {
        size_t n = strcspn(p, "x");
        bz_buf dim = {0}, name = {0};
        bz_buf_put(&name, p, n);
        char *end = NULL;
        long long v = n ? strtoll(bz_buf_text(&name), &end, 10) : 0;
        if (n && !*end)
            put_int(&dim, 1, v);
        else if (n)
            put_text(&dim, 2, bz_buf_text(&name));
        bz_buf_free(&name);
        put_message(&shape, 1, dim);
        p += n;
        p += *p == 'x';
    }
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    return type;
}

static inline bz_buf a_value(const char *name, bz_dtype dtype, const char *dims)
{
    bz_buf value = {0};
    put_text(&value, 1, name);
    put_message(&value, 2, a_type(dtype, dims));
    return value;
}

/* Names separated by blanks; "_" is an operand left out. */
static inline void put_names(bz_buf *b, uint32_t field, const char *names)
{
    while (*names) {
        size_t n = strcspn(names, " ");
        put_bytes(b, field, names, n == 1 && *names == '_' ? 0 : n);
        names += n;
        names += strspn(names, " ");
    }
}

static inline bz_buf a_node(const char *op, const char *name, const char *in, const char *out)
{
    bz_buf node = {0};
    put_names(&node, 1, in);
    put_names(&node, 2, out);
    put_text(&node, 3, name);
    put_text(&node, 4, op);
    return node;
}

static inline bz_buf an_attr(const char *name, int type)
{
    bz_buf attr = {0};
    put_text(&attr, ATTR_NAME, name);
    put_int(&attr, ATTR_TYPE, type);
    return attr;
}

static inline bz_buf an_int_attr(const char *name, int64_t v)
{
    bz_buf attr = an_attr(name, 2);
    put_int(&attr, ATTR_I, v);
    return attr;
}

static inline bz_buf a_reference(const char *name, int type, const char *to)
{
    bz_buf attr = an_attr(name, type);
    put_text(&attr, ATTR_REF, to);
    return attr;
}

static inline void put_opset(bz_buf *b, uint32_t field, const char *domain, int64_t version)
{
    bz_buf opset = {0};
    put_text(&opset, 1, domain);
    put_int(&opset, 2, version);
    put_message(b, field, opset);
}

static inline bz_buf a_model(int64_t ir, int64_t opset, bz_buf graph)
{
    bz_buf model = {0};
    put_int(&model, MODEL_IR, ir);
    if (opset)
        put_opset(&model, MODEL_OPSET, "", opset);
    put_message(&model, MODEL_GRAPH, graph);
    return model;
}

/* "Relu x a; Add a,b c": op, operands, result, with ';' between nodes. */
static inline void put_plain_nodes(bz_buf *g, const char *text)
{
    char op[32], in[64], out[32];
    int used;
    while (sscanf(text, " %31s %63s %31s%n", op, in, out, &used) == 3) {
        for (char *p = in; *p; p++)
            *p = *p == ',' ? ' ' : *p;
        size_t n = strlen(out);
        if (out[n - 1] == ';')
            out[n - 1] = 0;
        put_message(g, GRAPH_NODE, a_node(op, out, in, out));
        text += used;
    }
}

#endif
