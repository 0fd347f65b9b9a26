/* A model without its weights: its messages are changed where they stand, and packed again, with all that is newer than
 * our schema. */
#include "base/whole.h"
#include "onnx/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    bz_model_file *file;
    bz_arena *arena;
    bool sparse_constants;
    uint64_t keep;
    bz_strip_result *result;
    bz_error *err;
} stripper;

static uint64_t varint_bytes(uint64_t v)
{
    uint64_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

/* Of a tensor's elements, as the file holds them. */
static uint64_t payload_size(const stripper *s, const Onnx__TensorProto *t)
{
    uint64_t size = t->raw_data.len + 4 * t->n_float_data + 8 * t->n_double_data;
    for (size_t i = 0; i < t->n_int32_data; i++)
        size += varint_bytes((uint64_t)(int64_t)t->int32_data[i]);
    for (size_t i = 0; i < t->n_int64_data; i++)
        size += varint_bytes((uint64_t)t->int64_data[i]);
    for (size_t i = 0; i < t->n_uint64_data; i++)
        size += varint_bytes(t->uint64_data[i]);
    for (size_t i = 0; i < t->n_string_data; i++)
        size += t->string_data[i].len;
    for (size_t i = 0; i < t->n_left_out; i++) {
        const wire_cut *cut = wire_left_out(&s->file->bytes, t, i);
        size += cut ? cut->size : 0;
    }
    return size;
}

static void set_payload(Onnx__TensorProto *t, const Onnx__TensorProto *from)
{
    t->n_float_data = from->n_float_data, t->float_data = from->float_data;
    t->n_int32_data = from->n_int32_data, t->int32_data = from->int32_data;
    t->n_int64_data = from->n_int64_data, t->int64_data = from->int64_data;
    t->n_uint64_data = from->n_uint64_data, t->uint64_data = from->uint64_data;
    t->n_double_data = from->n_double_data, t->double_data = from->double_data;
    t->n_string_data = from->n_string_data, t->string_data = from->string_data;
    t->has_raw_data = from->has_raw_data, t->raw_data = from->raw_data;
    t->n_left_out = 0;
}

/* It has much to lose, and a sparse tensor may stand for it: that needs at least one dimension, none of size 0, and no
 * strings. */
static bool is_stripped(stripper *s, const Onnx__TensorProto *t)
{
    bool external = t->n_external_data || t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    bool can_be_sparse = t->n_dims && t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__STRING && !t->n_string_data;
    for (size_t i = 0; i < t->n_dims; i++)
        can_be_sparse &= t->dims[i] != 0;
    bool stripped = can_be_sparse && (external || payload_size(s, t) > s->keep);
    s->result->tensors += stripped;
    s->result->kept += !stripped;
    return stripped;
}

static void set_empty(stripper *s, Onnx__TensorProto *t)
{
    static const Onnx__TensorProto NOTHING = ONNX__TENSOR_PROTO__INIT;
    t->n_dims = 1;
    t->dims = BZ_NEW(s->arena, int64_t, 1);
    set_payload(t, &NOTHING);
    t->n_external_data = 0;
    t->has_data_location = false;
}

/* Empty indices are written out: ONNX Runtime refuses a file without them. */
static void set_no_values(stripper *s, Onnx__SparseTensorProto *sparse, Onnx__TensorProto *values)
{
    set_empty(s, values);
    sparse->values = values;
    sparse->indices = BZ_NEW(s->arena, Onnx__TensorProto, 1);
    onnx__tensor_proto__init(sparse->indices);
    set_empty(s, sparse->indices);
    sparse->indices->has_data_type = true;
    sparse->indices->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
}

/* An all-zero one of the same shape: an empty list of values, which carries name and data type of the tensor. */
static Onnx__SparseTensorProto *to_sparse(stripper *s, Onnx__TensorProto *t)
{
    Onnx__SparseTensorProto *sparse = BZ_NEW(s->arena, Onnx__SparseTensorProto, 1);
    onnx__sparse_tensor_proto__init(sparse);
    sparse->n_dims = t->n_dims;
    sparse->dims = t->dims;
    set_no_values(s, sparse, t);
    return sparse;
}

static void strip_graph(stripper *s, Onnx__GraphProto *g)
{
    size_t n = g->n_initializer, n_sparse = 0;
    Onnx__SparseTensorProto **sparse = BZ_NEW(s->arena, Onnx__SparseTensorProto *, n + g->n_sparse_initializer);
    g->n_initializer = 0;
    for (size_t i = 0; i < n; i++)
        if (is_stripped(s, g->initializer[i]))
            sparse[n_sparse++] = to_sparse(s, g->initializer[i]);
        else
            g->initializer[g->n_initializer++] = g->initializer[i];
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        sparse[n_sparse++] = g->sparse_initializer[i];
    g->sparse_initializer = sparse;
    g->n_sparse_initializer = n_sparse;
}

/* A tensor that is sparse already loses its values when they are many. */
static void strip_sparse(stripper *s, Onnx__SparseTensorProto *sparse)
{
    uint64_t size = sparse->values ? payload_size(s, sparse->values) : 0;
    size += sparse->indices ? payload_size(s, sparse->indices) : 0;
    if (!sparse->values || size <= s->keep)
        return;
    s->result->tensors++;
    set_no_values(s, sparse, sparse->values);
}

static bool is_default_domain(const char *domain)
{
    return !domain || !*domain || !strcmp(domain, "ai.onnx");
}

static bool is_text(const char *field, const char *text)
{
    return field && !strcmp(field, text);
}

/* Constant has sparse_value from version 11 of the default operator set on. */
static bool knows_sparse_constants(size_t n, Onnx__OperatorSetIdProto *const *imported)
{
    for (size_t i = 0; i < n; i++)
        if (is_default_domain(imported[i]->domain))
            return imported[i]->version >= 11 && imported[i]->version <= INT32_MAX;
    return false;
}

/* Others may call an operator Constant, too. */
static bool is_constant(const stripper *s, const Onnx__NodeProto *node)
{
    return s->sparse_constants && is_text(node->op_type, "Constant") && is_default_domain(node->domain);
}

static void strip_constant(stripper *s, Onnx__AttributeProto *a)
{
    if (!is_text(a->name, "value") || !a->t || !is_stripped(s, a->t))
        return;
    a->name = bz_arena_str(s->arena, "sparse_value");
    a->sparse_tensor = to_sparse(s, a->t);
    a->t = NULL;
    a->has_type = true;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR;
}

/* What stays is packed with its payload. */
static int fill_tensor(stripper *s, Onnx__TensorProto *t)
{
    const Onnx__TensorProto *payload;
    if (unpack_payload(s->file, t, s->arena, &payload, s->err))
        return bz_fail_in(s->err, "tensor '%s'", t->name ? t->name : "");
    set_payload(t, payload);
    return 0;
}

static int strip_message(stripper *s, ProtobufCMessage *m);

/* Attributes are still packed. */
static int strip_attributes(stripper *s, Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *a = unpack_new_attribute(s->file, node->attribute[i], s->err);
        if (!a)
            return -1;
        if (is_constant(s, node))
            strip_constant(s, a);
        if (strip_message(s, &a->base))
            return -1;
        size_t size = onnx__attribute_proto__get_packed_size(a);
        node->attribute[i] = (ProtobufCBinaryData){size, bz_arena_take(s->arena, size)};
        onnx__attribute_proto__pack(a, node->attribute[i].data);
    }
    return 0;
}

/* The messages in a message, whatever they are. */
static int strip_fields(stripper *s, ProtobufCMessage *m)
{
    for (unsigned k = 0; k < m->descriptor->n_fields; k++) {
        const ProtobufCFieldDescriptor *field = &m->descriptor->fields[k];
        char *member = (char *)m + field->offset, *quantifier = (char *)m + field->quantifier_offset;
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        ProtobufCMessage **list = (ProtobufCMessage **)member;
        size_t n = 0;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            list = *(ProtobufCMessage ***)member;
            n = *(size_t *)quantifier;
        } else if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) || *(uint32_t *)quantifier == field->id) {
            n = *list != NULL;
        }
        for (size_t i = 0; i < n; i++)
            if (strip_message(s, list[i]))
                return -1;
    }
    return 0;
}

static int strip_message(stripper *s, ProtobufCMessage *m)
{
    bool outer = s->sparse_constants;
    if (m->descriptor == &onnx__tensor_proto__descriptor)
        return fill_tensor(s, (Onnx__TensorProto *)m);
    if (m->descriptor == &onnx__graph_proto__descriptor)
        strip_graph(s, (Onnx__GraphProto *)m);
    else if (m->descriptor == &onnx__sparse_tensor_proto__descriptor)
        strip_sparse(s, (Onnx__SparseTensorProto *)m);
    else if (m->descriptor == &onnx__node_proto__descriptor)
        return strip_attributes(s, (Onnx__NodeProto *)m);
    else if (m->descriptor == &onnx__function_proto__descriptor)
        s->sparse_constants = knows_sparse_constants(((Onnx__FunctionProto *)m)->n_opset_import,
                                                     ((Onnx__FunctionProto *)m)->opset_import);
    int failed = strip_fields(s, m);
    s->sparse_constants = outer;
    return failed;
}

int strip_model(bz_model *model, uint64_t keep, bz_buf *out, bz_strip_result *result, bz_error *err)
{
    Onnx__ModelProto *m = model->file->proto;
    stripper s = {.file = model->file, .arena = &model->arena, .keep = keep, .result = result, .err = err};
    *result = (bz_strip_result){.in_bytes = model->file->size};
    s.sparse_constants = knows_sparse_constants(m->n_opset_import, m->opset_import);
    if (strip_message(&s, &m->base))
        return -1;
    size_t size = onnx__model_proto__get_packed_size(m);
    if (size > INT32_MAX)
        return bz_fail(err, BZ_BAD_INPUT,
                       "the model's structure alone takes more than 2 GB: that is no model we can read");
    onnx__model_proto__pack(m, (uint8_t *)bz_buf_extend(out, size));
    result->out_bytes = size;
    return 0;
}

/* What is no regular file (/dev/stdout) is left alone. */
static int write_whole(const char *path, const bz_buf *data, bz_error *err)
{
    struct stat st;
    bz_whole file;
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return bz_fail(err, BZ_FAILED, "%s: is not a regular file: name a file to write the model to", path);
    if (bz_whole_open(&file, path, err))
        return -1;
    bool bad = !bz_write_all(file.fd, data->data, data->len);
    if (bad)
        bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(errno));
    return bz_whole_close(&file, !bad, err);
}

int bz_model_strip(const char *in, const char *out, uint64_t keep, bz_strip_result *result, bz_error *err)
{
    bz_model *model;
    if (bz_same_file(in, out))
        return bz_fail(err, BZ_USAGE, "%s: is the model itself, whose weights would be gone: name another file", out);
    if (bz_model_load(in, &model, err))
        return -1;
    BZ_SCOPED(bz_buf) stripped = {0};
    int failed = strip_model(model, keep, &stripped, result, err);
    if (failed)
        bz_fail_in(err, "%s", in);
    else
        failed = write_whole(out, &stripped, err);
    bz_model_free(model);
    return failed;
}
