/* Nodes that stand by themselves, each with operands and a result of its own; values are called by their numbers. */
#include "onnx/put.h"

#include <stdio.h>

typedef struct {
    char text[16];
} value_name;

static value_name name_of(int value)
{
    value_name n;
    snprintf(n.text, sizeof n.text, "v%d", value);
    return n;
}

int bz_compose_input(bz_compose *c, bz_dtype dtype, int rank, const int64_t *dims)
{
    bz_draft_input(&c->draft, name_of(c->n_values).text, dtype, rank, dims);
    return c->n_values++;
}

int bz_compose_weights(bz_compose *c, bz_dtype dtype, int rank, const int64_t *dims)
{
    bz_draft_tensor(&c->draft, name_of(c->n_values).text, dtype, rank, dims, "", 0);
    return c->n_values++;
}

int bz_compose_ints(bz_compose *c, const int64_t *v, int n)
{
    bz_draft_ints(&c->draft, name_of(c->n_values).text, v, n);
    return c->n_values++;
}

int bz_compose_real(bz_compose *c, float v)
{
    bz_draft_tensor(&c->draft, name_of(c->n_values).text, BZ_F32, 0, NULL, &v, sizeof v);
    return c->n_values++;
}

void bz_compose_node(bz_compose *c, const char *op, const char *name, const int *in, int n_in,
                     const bz_compose_attr *attr, int n_attrs)
{
    value_name result = name_of(c->n_values++);
    bz_buf output = {0};
    bz_draft_node(&c->draft, op, "", name, NULL, 0, (const char *const[]){result.text}, 1);
    for (int i = 0; i < n_in; i++)
        put_text(&c->draft.node, NODE_INPUT, in[i] < 0 ? "" : name_of(in[i]).text);
    for (int i = 0; i < n_attrs; i++)
        if (attr[i].list)
            bz_draft_attr_ints(&c->draft, attr[i].name, attr[i].v, attr[i].n);
        else
            bz_draft_attr_int(&c->draft, attr[i].name, *attr[i].v);
    put_text(&output, VALUE_NAME, result.text);
    put_part(&c->draft.graph, GRAPH_OUTPUT, &output);
    c->n_nodes++;
}

void bz_compose_end(bz_compose *c, bz_buf *out)
{
    bz_draft_opset(&c->draft, "", 20);
    bz_draft_end(&c->draft, 9, "rebuilt", out);
}
