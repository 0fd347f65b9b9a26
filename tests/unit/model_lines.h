/* Models written as a line of values and a line of nodes, for tests of what becomes of their layers. */
#ifndef MODEL_LINES_H
#define MODEL_LINES_H

#include "modelproc/modelproc.h"
#include "writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct {
    bz_buf bytes;
    bz_model *model;
    bz_layers *layers;
} subject;

/* "alpha=0.3", "axes=-1", "perm=0x2x1", "approximate=tanh": a real number has a point, axes, perm and what windows have are lists. */
static inline bz_buf an_attribute(const char *text)
{
    char name[40];
    size_t n = strcspn(text, "=");
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    const char *value = text + n + 1;
    bool number = *value == '-' || (*value >= '0' && *value <= '9');
    bool list = bz_has_word("axes perm pads strides dilations kernel_shape output_shape output_padding", name);
    bz_buf attr = an_attr(name, !number ? 3 : strchr(value, '.') ? 1 : list ? 7 : 2);
    if (!number) {
        put_text(&attr, ATTR_S, value);
    } else if (strchr(value, '.')) {
        float f = strtof(value, NULL);
        put_varint(&attr, 2 * 8 + 5);
        bz_buf_put(&attr, &f, sizeof f);
    }
    for (char *end = (char *)value; number && !strchr(value, '.') && (end == value || *end == 'x'); value = end + 1)
        put_int(&attr, list ? ATTR_INTS : ATTR_I, strtoll(value, &end, 10));
    return attr;
}

/* "Conv x,w c; LeakyRelu{alpha=0.3} c y", or "Conv{group=2;strides=2x2} x,w y": operator, operands, results. "com.microsoft:Gelu x y" is of
 * another domain. */
static inline void put_nodes(bz_buf *g, const char *text)
{
    char op[200], in[80], out[32];
    int used;
    while (sscanf(text, " %199s %79s %31[^; ]%n", op, in, out, &used) == 3) {
        char *brace = strchr(op, '{'), *end = brace ? strchr(op, '}') : NULL;
        if (brace)
            *brace = *end = 0;
        for (char *p = in; *p; p++)
            *p = *p == ',' ? ' ' : *p;
        for (char *p = out; *p; p++)
            *p = *p == ',' ? ' ' : *p;
        char *colon = strchr(op, ':');
        bz_buf node = a_node(colon ? colon + 1 : op, out, in, out);
        if (colon)
            put_bytes(&node, NODE_DOMAIN, op, (size_t)(colon - op));
        for (char *rest = NULL, *one = brace ? strtok_r(brace + 1, ";", &rest) : NULL; one;
             one = strtok_r(NULL, ";", &rest))
            put_message(&node, NODE_ATTR, an_attribute(one));
        put_message(g, GRAPH_NODE, node);
        text += used;
        text += strspn(text, "; ");
    }
}

/* "1.0,2.0", "3,-1" or, of one, "3,": a list. */
static inline bz_buf a_list(const char *name, const char *text)
{
    float real[8] = {0};
    int64_t whole[8] = {0};
    char dims[8];
    bool reals = strchr(text, '.') != NULL;
    int n = 0;
    for (char *end; n < 8 && *text; n++, text = end + (*end == ',')) {
        real[n] = strtof(text, &end);
        whole[n] = (int64_t)real[n];
    }
    snprintf(dims, sizeof dims, "%d", n);
    return reals ? a_raw_tensor(name, BZ_F32, dims, real, (size_t)n * sizeof *real)
                 : a_raw_tensor(name, BZ_I64, dims, whole, (size_t)n * sizeof *whole);
}

/* "x=1x8x6x6 w=16x8x3x3": upper-case names are inputs, others weights without a payload. A value with a
 * point is a number: "h=0.5". */
static inline void put_values(bz_buf *g, const char *text)
{
    char name[16], value[48];
    int used;
    while (sscanf(text, " %15[^=]=%47s%n", name, value, &used) == 2) {
        float f = strtof(value, NULL);
        if (strchr(value, ','))
            put_message(g, GRAPH_INIT, a_list(name, value));
        else if (strchr(value, '.'))
            put_message(g, GRAPH_INIT, a_raw_tensor(name, BZ_F32, "", &f, sizeof f));
        else if (*name >= 'A' && *name <= 'Z')
            put_message(g, GRAPH_INPUT, a_value(name, BZ_F32, value));
        else
            put_message(g, GRAPH_INIT, a_tensor(name, BZ_F32, value));
        text += used;
    }
}

static inline void put_result(bz_buf *g, const char *name)
{
    bz_buf result = {0};
    put_text(&result, 1, name);
    put_message(g, GRAPH_OUTPUT, result);
}

/* The file is the subject's from now on. */
static inline subject infer_file(bz_buf bytes, const char *what)
{
    subject s = {.bytes = bytes};
    bz_error err = {0};
    if (bz_model_parse(s.bytes.data, s.bytes.len, "test", &s.model, &err) ||
        bz_layers_infer(s.model, &(bz_infer_options){0}, &s.layers, &err))
        fail_msg("%s: %s", what, err.text);
    return s;
}

static inline subject infer(const char *values, const char *nodes)
{
    bz_buf g = {0};
    put_values(&g, values);
    put_nodes(&g, nodes);
    put_result(&g, "y");
    bz_buf bytes = a_model(9, 20, g);
    put_opset(&bytes, MODEL_OPSET, "com.microsoft", 1);
    put_opset(&bytes, MODEL_OPSET, "ai.onnx.preview.training", 1);
    return infer_file(bytes, nodes);
}

/* Of the layer of that name. */
static inline const bz_type *result_of(const subject *s, const char *layer)
{
    for (int i = 0; i < s->layers->n; i++)
        if (!strcmp(s->layers->layer[i].name, layer))
            return &s->layers->layer[i].out[0];
    fail_msg("no layer '%s'", layer);
    return NULL;
}

static inline void end(subject *s)
{
    bz_layers_free(s->layers);
    bz_model_free(s->model);
    bz_buf_free(&s->bytes);
}

#endif
