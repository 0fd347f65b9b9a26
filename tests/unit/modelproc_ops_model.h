/* Models of one node (or two in a chain), written in memory from a line of text each; and the table of
 * such lines. */
#ifndef BZ_MODELPROC_OPS_MODEL_H
#define BZ_MODELPROC_OPS_MODEL_H

/* Operands, blank-separated: "f32:2x3" an input, "f32:" a scalar, "i64=1,2" a constant vector,
 * "i64:=5" a constant scalar, "seq:f32:2x3" a sequence, "-" left out; "f32:2x?7" has a dimension of which a name is known. Behind " > " a second node takes
 * the first one's result, and operands of its own: "f32:7x4 > SequenceAt i64:=2".
 * Attributes: "axis=i:1 mode=s:cubic sizes=I:1,2 scales=F:1,2 labels=S:a,b values=t:f32:3".
 * Results: "f32:2x3 seq(2x3)", ? for what depends on data; "!text" a failure that says so. */
typedef struct {
    const char *op;
    int opset;
    const char *in, *attrs, *out;
    int64_t macs; /* -1: not looked at */
} op_case;

#define MS    "com.microsoft."
#define NCHWC "com.microsoft.nchwc."
#define ML    "ai.onnx.ml."
#define TRAIN "ai.onnx.preview.training."

#include "modelproc_ops_cases.h"

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

static void put_bytes(bz_buf *b, int field, const char *bytes, size_t n)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n);
    bz_buf_put(b, bytes, n);
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

static bz_dtype read_dtype(const char **at)
{
    size_t n = strcspn(*at, ":=");
    for (int t = 1; t < BZ_N_DTYPES; t++) {
        const char *name = bz_dtype_name((bz_dtype)t);
        if (strlen(name) == n && !memcmp(name, *at, n)) {
            *at += n;
            return (bz_dtype)t;
        }
    }
    fail_msg("no data type: %s", *at);
    return BZ_UNDEFINED;
}

/* TensorProto behind "f32" of "f32=1,2" or "i64:=3". */
static void put_tensor(bz_buf *graph, const char *name, bz_dtype dtype, const char *at)
{
    bz_buf t = {0}, raw = {0};
    bool scalar = *at == ':';
    int64_t n = 0;
    at += scalar ? 2 : 1;
    for (char *end; *at; at = *end == ',' ? end + 1 : end, n++) {
        double v = strtod(at, &end);
        assert_ptr_not_equal(at, end);
        float f = (float)v;
        int64_t i = (int64_t)v;
        int32_t i32 = (int32_t)v;
        char byte = (char)i;
        if (bz_dtype_is_float(dtype))
            bz_buf_put(&raw, &f, sizeof f);
        else if (dtype == BZ_BOOL)
            bz_buf_put(&raw, &byte, 1);
        else if (dtype == BZ_I32)
            bz_buf_put(&raw, &i32, sizeof i32);
        else
            bz_buf_put(&raw, &i, sizeof i);
    }
    if (!scalar)
        put_int(&t, 1, n);
    put_int(&t, 2, (int64_t)dtype);
    put_text(&t, 8, name);
    put_part(&t, 9, &raw);
    put_part(graph, 5, &t);
}

/* TypeProto of "f32:2x3" or "seq:f32:2x3". */
static void put_type(bz_buf *out, int field, const char *text)
{
    bz_buf type = {0}, tensor = {0}, shape = {0};
    if (!strncmp(text, "seq:", 4)) {
        put_type(&tensor, 1, text + 4);
        put_part(&type, 4, &tensor);
        put_part(out, field, &type);
        return;
    }
    put_int(&tensor, 1, (int64_t)read_dtype(&text));
    for (text++; *text;) {
        bz_buf dim = {0};
        char *end, name[16];
        if (*text == '?') { /* "?7": a dimension that is called 7 */
            strtol(text + 1, &end, 10);
            snprintf(name, sizeof name, "d%.*s", (int)(end - text - 1), text + 1);
            put_text(&dim, 2, name);
        } else
            put_int(&dim, 1, strtoll(text, &end, 10));
        put_part(&shape, 1, &dim);
        text = *end == 'x' ? end + 1 : end;
    }
    put_part(&tensor, 2, &shape);
    put_part(&type, 1, &tensor);
    put_part(out, field, &type);
}

/* Adds the operands of `text` to the node, and inputs or initializers for them to the graph. */
static void put_operands(bz_buf *node, bz_buf *graph, const char *text, const char *prefix)
{
    char copy[512], name[32], *save = NULL;
    int k = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save), k++) {
        snprintf(name, sizeof name, "%s%d", prefix, k);
        put_text(node, 1, *word == '-' ? "" : name);
        const char *at = word;
        if (*word == '-')
            continue;
        if (strchr(word, '=')) {
            bz_dtype t = read_dtype(&at);
            put_tensor(graph, name, t, at);
            continue;
        }
        bz_buf input = {0};
        put_text(&input, 1, name);
        put_type(&input, 2, word);
        put_part(graph, 11, &input);
    }
}

static void put_value(bz_buf *a, char kind, const char *text)
{
    char *end;
    bz_buf t = {0};
    switch (kind) {
    case 'i':
    case 'I':
        for (; *text; text = *end == ',' ? end + 1 : end)
            put_int(a, kind == 'i' ? 3 : 8, strtoll(text, &end, 10));
        break;
    case 'f':
    case 'F':
        for (; *text; text = *end == ',' ? end + 1 : end)
            put_float(a, kind == 'f' ? 2 : 7, strtof(text, &end));
        break;
    case 's':
        put_text(a, 4, text);
        break;
    case 'S':
        for (size_t n; *text; text += n + (text[n] == ',')) {
            n = strcspn(text, ",");
            put_bytes(a, 9, text, n);
        }
        break;
    case 't': /* dtype:elements */
        put_int(&t, 2, (int64_t)read_dtype(&text));
        put_int(&t, 1, atoll(text + 1));
        put_part(a, 5, &t);
        break;
    default:
        fail_msg("no kind of attribute: %c", kind);
    }
}

static void put_attributes(bz_buf *node, const char *text)
{
    static const char KINDS[] = "ifstIFS";
    static const int TYPES[] = {2, 1, 3, 4, 7, 6, 8};
    char copy[512], *save = NULL;
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value++ = '\0';
        bz_buf a = {0};
        put_text(&a, 1, word);
        put_int(&a, 20, TYPES[strchr(KINDS, *value) - KINDS]);
        put_value(&a, *value, value + 2);
        put_part(node, 5, &a);
    }
}

static int count_words(const char *text)
{
    int n = 0;
    for (; *text; text += strcspn(text, " "), text += *text == ' ')
        n++;
    return n;
}

static void put_opset(bz_buf *model, const char *domain, int version)
{
    bz_buf o = {0};
    put_text(&o, 1, domain);
    put_int(&o, 2, version);
    put_part(model, 8, &o);
}

/* "com.microsoft.Gelu" is operator Gelu of that domain. */
static void put_name(bz_buf *node, const char *operator, char * domain, size_t room)
{
    const char *dot = strrchr(operator, '.');
    snprintf(domain, room, "%.*s", dot ? (int)(dot - operator) : 0, operator);
    put_text(node, 4, dot ? dot + 1 : operator);
    put_text(node, 7, domain);
}

static void put_results(bz_buf *node, bz_buf *graph, const char *prefix, int n, bool last)
{
    char name[32];
    for (int k = 0; k < n; k++) {
        snprintf(name, sizeof name, "%s%d", prefix, k);
        put_text(node, 2, name);
        if (!last)
            continue;
        bz_buf output = {0};
        put_text(&output, 1, name);
        put_part(graph, 12, &output);
    }
}

/* Of operators of another domain the version is that domain's. */
static void end_model(bz_buf *model, bz_buf *graph, const char *domain, int version)
{
    put_part(model, 7, graph);
    put_opset(model, "", *domain ? 17 : version);
    if (*domain)
        put_opset(model, domain, version);
}

static bz_buf write_model(const op_case *c)
{
    char domain[64], first[512];
    bz_buf model = {0}, graph = {0}, node = {0};
    int n_out = *c->out == '!' ? 1 : count_words(c->out);
    const char *chain = strstr(c->in, " > ");
    put_int(&model, 1, 9);
    put_text(&graph, 2, "g");
    snprintf(first, sizeof first, "%.*s", chain ? (int)(chain - c->in) : (int)strlen(c->in), c->in);
    put_operands(&node, &graph, first, "a");
    put_results(&node, &graph, "y", chain ? 1 : n_out, !chain);
    put_name(&node, c->op, domain, sizeof domain);
    put_attributes(&node, c->attrs);
    put_part(&graph, 1, &node);
    if (chain) {
        size_t n = strcspn(chain + 3, " ");
        put_text(&node, 1, "y0");
        put_operands(&node, &graph, chain + 3 + n, "b");
        put_results(&node, &graph, "z", n_out, true);
        put_bytes(&node, 4, chain + 3, n);
        put_part(&graph, 1, &node);
    }
    end_model(&model, &graph, domain, c->opset);
    return model;
}

/* A row's model and its layers; these are NULL where it is refused, and `err` says why. */
typedef struct inferred {
    bz_buf bytes;
    bz_model *model;
    bz_layers *layers;
    bz_error err;
} inferred;

static inline bool infer_case(inferred *i, const op_case *c, bool open_inputs)
{
    *i = (inferred){.bytes = write_model(c)};
    return !bz_model_parse(i->bytes.data, i->bytes.len, c->op, &i->model, &i->err) &&
           !bz_layers_infer(i->model, &(bz_infer_options){.open_inputs = open_inputs}, &i->layers, &i->err);
}

static inline const bz_layer *last_layer(const inferred *i)
{
    return &i->layers->layer[i->layers->n - 1];
}

static inline void end_case(inferred *i)
{
    bz_layers_free(i->layers);
    bz_model_free(i->model);
    bz_buf_free(&i->bytes);
}

#endif
