/* A model from nothing: nodes that stand by themselves, each with operands and a result of its own, as an ONNX file in memory. */
#include "onnx/onnx.h"

#include <stdio.h>
#include <string.h>

/* Fields of onnx.proto, by message. */
enum {
    MODEL_IR = 1,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP = 4,
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20,
    TENSOR_DIMS = 1,
    TENSOR_DTYPE = 2,
    TENSOR_FLOATS = 4,
    TENSOR_INTS = 7,
    TENSOR_NAME = 8,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TYPE_DTYPE = 1,
    TYPE_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
};
enum { TYPE_INT = 2, TYPE_INTS = 7 }; /* of an attribute */

static void put_varint(bz_buf *b, uint64_t v)
{
    for (; v > 127; v >>= 7)
        bz_buf_putc(b, (char)(v | 128));
    bz_buf_putc(b, (char)v);
}

static void put_int(bz_buf *b, int field, int64_t v)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)v);
}

static void put_text(bz_buf *b, int field, const char *text)
{
    size_t n = strlen(text);
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n);
    bz_buf_put(b, text, n);
}

/* Appends `part` as a field and frees it. */
static void put_part(bz_buf *b, int field, bz_buf *part)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, part->len);
    bz_buf_put(b, bz_buf_text(part), part->len);
    bz_buf_free(part);
}

static int new_name(bz_compose *c, bz_buf *out, int field)
{
    char name[16];
    snprintf(name, sizeof name, "v%d", c->n_values);
    put_text(out, field, name);
    return c->n_values++;
}

int bz_compose_input(bz_compose *c, bz_dtype dtype, int rank, const int64_t *dims)
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
    int id = new_name(c, &value, VALUE_NAME);
    put_part(&value, VALUE_TYPE, &type);
    put_part(&c->graph, GRAPH_INPUT, &value);
    return id;
}

static int put_tensor(bz_compose *c, bz_buf *t, bz_dtype dtype, int rank, const int64_t *dims)
{
    for (int i = 0; i < rank; i++)
        put_int(t, TENSOR_DIMS, dims[i]);
    put_int(t, TENSOR_DTYPE, (int64_t)dtype);
    int id = new_name(c, t, TENSOR_NAME);
    put_part(&c->graph, GRAPH_INITIALIZER, t);
    return id;
}

int bz_compose_weights(bz_compose *c, bz_dtype dtype, int rank, const int64_t *dims)
{
    bz_buf t = {0};
    return put_tensor(c, &t, dtype, rank, dims);
}

int bz_compose_ints(bz_compose *c, const int64_t *v, int n)
{
    bz_buf t = {0};
    for (int i = 0; i < n; i++)
        put_int(&t, TENSOR_INTS, v[i]);
    return put_tensor(c, &t, BZ_I64, 1, &(int64_t){n});
}

int bz_compose_real(bz_compose *c, float v)
{
    bz_buf t = {0};
    put_varint(&t, TENSOR_FLOATS << 3 | 5);
    bz_buf_put(&t, &v, sizeof v);
    return put_tensor(c, &t, BZ_F32, 0, NULL);
}

void bz_compose_node(bz_compose *c, const char *op, const char *name, const int *in, int n_in,
                     const bz_compose_attr *attr, int n_attrs)
{
    bz_buf node = {0}, output = {0};
    char text[16];
    for (int i = 0; i < n_in; i++) {
        snprintf(text, sizeof text, "v%d", in[i]);
        put_text(&node, NODE_INPUT, in[i] < 0 ? "" : text);
    }
    snprintf(text, sizeof text, "v%d", c->n_values++);
    put_text(&node, NODE_OUTPUT, text);
    put_text(&node, NODE_NAME, name);
    put_text(&node, NODE_OP, op);
    for (int i = 0; i < n_attrs; i++) {
        bz_buf a = {0};
        put_text(&a, ATTRIBUTE_NAME, attr[i].name);
        for (int k = 0; k < attr[i].n; k++)
            put_int(&a, attr[i].list ? ATTRIBUTE_INTS : ATTRIBUTE_INT, attr[i].v[k]);
        put_int(&a, ATTRIBUTE_TYPE, attr[i].list ? TYPE_INTS : TYPE_INT);
        put_part(&node, NODE_ATTRIBUTE, &a);
    }
    put_part(&c->graph, GRAPH_NODE, &node);
    put_text(&output, VALUE_NAME, text);
    put_part(&c->graph, GRAPH_OUTPUT, &output);
    c->n_nodes++;
}

void bz_compose_end(bz_compose *c, bz_buf *out)
{
    enum { IR = 9, OPSET = 20 };
    bz_buf opset = {0};
    put_int(out, MODEL_IR, IR);
    put_int(&opset, OPSET_VERSION, OPSET);
    put_part(out, MODEL_OPSET, &opset);
    put_text(&c->graph, GRAPH_NAME, "rebuilt");
    put_part(out, MODEL_GRAPH, &c->graph);
}
