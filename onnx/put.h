/* An ONNX file written field by field. Private to onnx/. */
#ifndef BZ_ONNX_PUT_H
#define BZ_ONNX_PUT_H

#include "onnx/onnx.h"

#include <string.h>

/* Fields of onnx.proto, by message. */
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_FLOAT = 2,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_STRING = 4,
    ATTRIBUTE_TENSOR = 5,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS = 9,
    ATTRIBUTE_TYPE = 20
};
enum { TENSOR_DIMS = 1, TENSOR_DTYPE = 2, TENSOR_FLOATS = 4, TENSOR_INTS = 7, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2 };
enum { TYPE_TENSOR = 1, TYPE_DTYPE = 1, TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1 };
enum { DIM_VALUE = 1 };
enum {
    TYPE_FLOAT = 1,
    TYPE_INT = 2,
    TYPE_STRING = 3,
    TYPE_ONE_TENSOR = 4,
    TYPE_FLOATS = 6,
    TYPE_INTS = 7,
    TYPE_STRINGS = 8
}; /* of an attribute */

static inline void put_varint(bz_buf *b, uint64_t v)
{
    for (; v > 127; v >>= 7)
        bz_buf_putc(b, (char)(v | 128));
    bz_buf_putc(b, (char)v);
}

static inline void put_int(bz_buf *b, int field, int64_t v)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)v);
}

static inline void put_bytes(bz_buf *b, int field, const void *data, size_t n)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n);
    bz_buf_put(b, data, n);
}

static inline void put_text(bz_buf *b, int field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

static inline void put_float(bz_buf *b, int field, float v)
{
    put_varint(b, (uint64_t)field << 3 | 5);
    bz_buf_put(b, &v, sizeof v);
}

/* Appends `part` as a field and frees it. */
static inline void put_part(bz_buf *b, int field, bz_buf *part)
{
    put_bytes(b, field, bz_buf_text(part), part->len);
    bz_buf_free(part);
}

/* Name and type of an input or output, as a field of the graph. */
static inline void put_value(bz_buf *graph, int field, const char *name, bz_dtype dtype, int rank, const int64_t *dims)
{
    bz_buf value = {0}, type = {0}, tensor = {0}, shape = {0};
    put_int(&tensor, TYPE_DTYPE, (int64_t)dtype);
    for (int i = 0; i < rank; i++) {
        bz_buf dim = {0};
        put_int(&dim, DIM_VALUE, dims[i]);
        put_part(&shape, SHAPE_DIM, &dim);
    }
    put_part(&tensor, TYPE_SHAPE, &shape);
    put_part(&type, TYPE_TENSOR, &tensor);
    put_text(&value, VALUE_NAME, name);
    put_part(&value, VALUE_TYPE, &type);
    put_part(graph, field, &value);
}

#endif
