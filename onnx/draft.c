/* A model written node by node, with the names that its author chooses. */
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

static void put_bytes(bz_buf *b, int field, const void *data, size_t n)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n);
    bz_buf_put(b, data, n);
}

static void put_text(bz_buf *b, int field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

static void put_float(bz_buf *b, int field, float v)
{
    put_varint(b, (uint64_t)field << 3 | 5);
    bz_buf_put(b, &v, sizeof v);
}

/* Appends `part` as a field and frees it. */
static void put_part(bz_buf *b, int field, bz_buf *part)
{
    put_bytes(b, field, bz_buf_text(part), part->len);
    bz_buf_free(part);
}

static void put_type(bz_buf *value, bz_dtype dtype, int rank, const int64_t *dims)
{
    bz_buf type = {0}, tensor = {0}, shape = {0};
    put_int(&tensor, TYPE_DTYPE, (int64_t)dtype);
    for (int i = 0; i < rank; i++) {
        bz_buf dim = {0};
        put_int(&dim, DIM_VALUE, dims[i]);
        put_part(&shape, SHAPE_DIM, &dim);
    }
    put_part(&tensor, TYPE_SHAPE, &shape);
    put_part(&type, TYPE_TENSOR, &tensor);
    put_part(value, VALUE_TYPE, &type);
}

/* Name and type of an input or output, as a field of the graph. */
static void put_value(bz_buf *graph, int field, const char *name, bz_dtype dtype, int rank, const int64_t *dims)
{
    bz_buf value = {0};
    put_text(&value, VALUE_NAME, name);
    if (dtype)
        put_type(&value, dtype, rank, dims);
    put_part(graph, field, &value);
}

static void close_node(bz_draft *d)
{
    if (d->node.len)
        put_part(&d->graph, GRAPH_NODE, &d->node);
}

void bz_draft_input(bz_draft *d, const char *name, bz_dtype dtype, int rank, const int64_t *dims)
{
    put_value(&d->graph, GRAPH_INPUT, name, dtype, rank, dims);
}

void bz_draft_output(bz_draft *d, const char *name, bz_dtype dtype, int rank, const int64_t *dims)
{
    put_value(&d->graph, GRAPH_OUTPUT, name, dtype, rank, dims);
}

static void put_payload(bz_buf *t, bz_dtype dtype, int rank, const int64_t *dims, const void *data, size_t size)
{
    for (int i = 0; i < rank; i++)
        put_int(t, TENSOR_DIMS, dims[i]);
    put_int(t, TENSOR_DTYPE, (int64_t)dtype);
    put_bytes(t, TENSOR_RAW, data, size);
}

void bz_draft_tensor(bz_draft *d, const char *name, bz_dtype dtype, int rank, const int64_t *dims, const void *data,
                     size_t size)
{
    bz_buf t = {0};
    put_payload(&t, dtype, rank, dims, data, size);
    put_text(&t, TENSOR_NAME, name);
    put_part(&d->graph, GRAPH_INITIALIZER, &t);
}

void bz_draft_ints(bz_draft *d, const char *name, const int64_t *v, int n)
{
    bz_draft_tensor(d, name, BZ_I64, 1, &(int64_t){n}, v, (size_t)n * sizeof *v);
}

void bz_draft_node(bz_draft *d, const char *op, const char *domain, const char *name, const char *const *in, int n_in,
                   const char *const *out, int n_out)
{
    close_node(d);
    for (int i = 0; i < n_in; i++)
        put_text(&d->node, NODE_INPUT, in[i] ? in[i] : "");
    for (int i = 0; i < n_out; i++)
        put_text(&d->node, NODE_OUTPUT, out[i] ? out[i] : "");
    put_text(&d->node, NODE_NAME, name);
    put_text(&d->node, NODE_OP, op);
    if (*domain)
        put_text(&d->node, NODE_DOMAIN, domain);
}

static void put_attribute(bz_draft *d, const char *name, int type, bz_buf *a)
{
    put_text(a, ATTRIBUTE_NAME, name);
    put_int(a, ATTRIBUTE_TYPE, type);
    put_part(&d->node, NODE_ATTRIBUTE, a);
}

void bz_draft_attr_int(bz_draft *d, const char *name, int64_t v)
{
    bz_buf a = {0};
    put_int(&a, ATTRIBUTE_INT, v);
    put_attribute(d, name, TYPE_INT, &a);
}

void bz_draft_attr_ints(bz_draft *d, const char *name, const int64_t *v, int n)
{
    bz_buf a = {0};
    for (int i = 0; i < n; i++)
        put_int(&a, ATTRIBUTE_INTS, v[i]);
    put_attribute(d, name, TYPE_INTS, &a);
}

void bz_draft_attr_real(bz_draft *d, const char *name, double v)
{
    bz_buf a = {0};
    put_float(&a, ATTRIBUTE_FLOAT, (float)v);
    put_attribute(d, name, TYPE_FLOAT, &a);
}

void bz_draft_attr_text(bz_draft *d, const char *name, const char *text)
{
    bz_buf a = {0};
    put_text(&a, ATTRIBUTE_STRING, text);
    put_attribute(d, name, TYPE_STRING, &a);
}

static int put_tensor_attr(const bz_model *model, const bz_tensor *t, bz_buf *a, bz_error *err)
{
    bz_buf tensor = {0};
    int bits = bz_dtype_bits(t->dtype);
    if (bits < 8 || t->values)
        return bz_fail(err, BZ_INCOMPLETE, "a constant has no elements of whole bytes");
    size_t size = (size_t)t->n * ((size_t)bits / 8);
    BZ_FREED void *data = bz_alloc(size + 1, 1);
    int rc = bz_tensor_bytes(model, t, data, err);
    if (!rc) {
        put_payload(&tensor, t->dtype, t->rank, t->dims, data, size);
        put_part(a, ATTRIBUTE_TENSOR, &tensor);
    }
    return rc;
}

int bz_draft_attr(bz_draft *d, const bz_model *model, const bz_attr *attr, bz_error *err)
{
    BZ_SCOPED(bz_buf) a = {0};
    int type = 0;
    switch (attr->kind) {
    case BZ_ATTR_FLOAT:
        put_float(&a, ATTRIBUTE_FLOAT, attr->f), type = TYPE_FLOAT;
        break;
    case BZ_ATTR_INT:
        put_int(&a, ATTRIBUTE_INT, attr->i), type = TYPE_INT;
        break;
    case BZ_ATTR_STRING:
        put_bytes(&a, ATTRIBUTE_STRING, attr->s.data, attr->s.len), type = TYPE_STRING;
        break;
    case BZ_ATTR_FLOATS:
        for (int i = 0; i < attr->n; i++)
            put_float(&a, ATTRIBUTE_FLOATS, attr->floats[i]);
        type = TYPE_FLOATS;
        break;
    case BZ_ATTR_INTS:
        for (int i = 0; i < attr->n; i++)
            put_int(&a, ATTRIBUTE_INTS, attr->ints[i]);
        type = TYPE_INTS;
        break;
    case BZ_ATTR_STRINGS:
        for (int i = 0; i < attr->n; i++)
            put_bytes(&a, ATTRIBUTE_STRINGS, attr->strings[i].data, attr->strings[i].len);
        type = TYPE_STRINGS;
        break;
    case BZ_ATTR_TENSOR:
        type = TYPE_ONE_TENSOR;
        if (!put_tensor_attr(model, attr->tensor, &a, err))
            break;
        return -1;
    default:
        return bz_fail(err, BZ_INCOMPLETE, "attribute %s is a graph or a type", attr->name);
    }
    put_attribute(d, attr->name, type, &a);
    return 0;
}

void bz_draft_opset(bz_draft *d, const char *domain, int version)
{
    bz_buf opset = {0};
    put_text(&opset, OPSET_DOMAIN, domain);
    put_int(&opset, OPSET_VERSION, version);
    put_part(&d->opsets, MODEL_OPSET, &opset);
}

void bz_draft_end(bz_draft *d, int64_t ir_version, const char *name, bz_buf *out)
{
    close_node(d);
    put_int(out, MODEL_IR, ir_version);
    put_text(out, MODEL_PRODUCER, "benanza");
    bz_buf_put(out, bz_buf_text(&d->opsets), d->opsets.len);
    put_text(&d->graph, GRAPH_NAME, name);
    put_part(out, MODEL_GRAPH, &d->graph);
    bz_buf_free(&d->opsets);
}

void bz_draft_free(bz_draft *d)
{
    bz_buf_free(&d->graph);
    bz_buf_free(&d->node);
    bz_buf_free(&d->opsets);
}
