/* A model from nothing: nodes that stand by themselves, each with operands and a result of its own, as an ONNX file in memory. */
#include "onnx/put.h"

#include <stdio.h>

static int new_name(bz_compose *c, bz_buf *out, int field)
{
    char name[16];
    snprintf(name, sizeof name, "v%d", c->n_values);
    put_text(out, field, name);
    return c->n_values++;
}

int bz_compose_input(bz_compose *c, bz_dtype dtype, int rank, const int64_t *dims)
{
    char name[16];
    snprintf(name, sizeof name, "v%d", c->n_values);
    put_value(&c->graph, GRAPH_INPUT, name, dtype, rank, dims);
    return c->n_values++;
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
    put_float(&t, TENSOR_FLOATS, v);
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
