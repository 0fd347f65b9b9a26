/* From bytes to messages, by protobuf-c. */
#include "onnx/file.h"

#include <string.h>

/* A hostile file asks for far more memory than it has bytes: two bytes are an empty tensor of 250, and a message that
 * stands in the file again and again is merged, list by list. No real model comes to a tenth of this. */
enum { MOST_PER_BYTE = 256 };

static void *take(void *data, size_t size)
{
    unpack_memory *m = data;
    if (size > m->left)
        return NULL;
    m->left -= size;
    return bz_arena_take(m->arena, size);
}

static void leave(void *data, void *p)
{
    (void)data; /* all memory goes with the arena */
    (void)p;
}

static ProtobufCMessage *unpack(unpack_memory *m, wire_message kind, const uint8_t *data, size_t size)
{
    ProtobufCAllocator allocator = {take, leave, m};
    m->left = (size + 16) * MOST_PER_BYTE;
    return protobuf_c_message_unpack(kind, &allocator, size, data);
}

/* protobuf-c does not say what is wrong: looks for it in the whole file. */
static int say(const bz_model_file *file, bz_error *err)
{
    if (wire_check(&file->bytes, &onnx__model_proto__descriptor, 0, err))
        return -1;
    return bz_fail(err, BZ_BAD_INPUT, "its structure takes too much memory, or has a length of more than five bytes");
}

/* protobuf-c recurses: how deep messages are nested is looked at before. */
int unpack_model(bz_model_file *file, bz_arena *arena, bz_error *err)
{
    const wire_message kind = &onnx__model_proto__descriptor;
    const wire_bytes *in = &file->bytes;
    file->memory.arena = arena;
    if (in->size > INT32_MAX)
        return bz_fail(err, BZ_BAD_INPUT,
                       "the model's structure alone takes more than 2 GB: that is no model we can read");
    if (wire_check(in, kind, WIRE_SMALL, err))
        return -1;
    file->proto = (Onnx__ModelProto *)unpack(&file->memory, kind, in->data, in->size);
    return file->proto ? 0 : say(file, err);
}

Onnx__AttributeProto *unpack_new_attribute(bz_model_file *file, ProtobufCBinaryData bytes, bz_error *err)
{
    ProtobufCMessage *m = unpack(&file->memory, &onnx__attribute_proto__descriptor, bytes.data, bytes.len);
    if (!m)
        say(file, err);
    return (Onnx__AttributeProto *)m;
}

const Onnx__AttributeProto *unpack_attribute(bz_model_file *file, ProtobufCBinaryData bytes, bz_error *err)
{
    uint64_t begin, end;
    if (bytes.len < sizeof begin)
        return unpack_new_attribute(file, bytes, err);
    memcpy(&begin, bytes.data, sizeof begin);                      /* the name */
    memcpy(&end, bytes.data + bytes.len - sizeof end, sizeof end); /* the value */
    recent_attribute *recent = &file->recent[(begin * 31 + end) * 0x9e3779b97f4a7c15u >> (64 - RECENT_BITS)];
    if (recent->bytes.len != bytes.len || memcmp(recent->bytes.data, bytes.data, bytes.len) != 0) {
        const Onnx__AttributeProto *attribute = unpack_new_attribute(file, bytes, err);
        if (!attribute)
            return NULL;
        *recent = (recent_attribute){bytes, attribute};
    }
    return recent->attribute;
}

static bool has_payload(const Onnx__TensorProto *t)
{
    return t->n_float_data || t->n_int32_data || t->n_string_data || t->n_int64_data || t->raw_data.len ||
           t->n_double_data || t->n_uint64_data;
}

static int read_payload(const bz_model_file *file, const wire_cut *cut, bz_arena *arena,
                        const Onnx__TensorProto **payload, bz_error *err)
{
    const wire_message kind = &onnx__tensor_proto__descriptor;
    BZ_SCOPED(bz_buf) field = {0};
    uint8_t *data;
    if (wire_known(kind, cut->field)->type == PROTOBUF_C_TYPE_BYTES) { /* may be large: not copied */
        Onnx__TensorProto *t = BZ_NEW(arena, Onnx__TensorProto, 1);
        onnx__tensor_proto__init(t);
        t->has_raw_data = true;
        t->raw_data = (ProtobufCBinaryData){(size_t)cut->size, data = bz_arena_take(arena, (size_t)cut->size)};
        *payload = t;
        return wire_read(file->bytes.fd, cut->from, data, (size_t)cut->size, err);
    }
    wire_put_varint(&field, cut->field << 3 | 2);
    wire_put_varint(&field, cut->size);
    data = (uint8_t *)bz_buf_extend(&field, (size_t)cut->size);
    int failed = wire_read(file->bytes.fd, cut->from, data, (size_t)cut->size, err);
    unpack_memory memory = {.arena = arena};
    *payload = failed ? NULL : (Onnx__TensorProto *)unpack(&memory, kind, (uint8_t *)field.data, field.len);
    if (!failed && !*payload)
        return bz_fail(err, BZ_BAD_INPUT, "its data is damaged");
    return failed;
}

int unpack_payload(const bz_model_file *file, const Onnx__TensorProto *t, bz_arena *arena,
                   const Onnx__TensorProto **payload, bz_error *err)
{
    const wire_cut *cut = wire_left_out(&file->bytes, t, 0);
    *payload = t;
    if (!t->n_left_out)
        return 0;
    if (t->n_left_out > 1 || has_payload(t))
        return bz_fail(err, BZ_BAD_INPUT, "its elements come in pieces: write the model anew");
    if (!cut)
        return bz_fail(err, BZ_BAD_INPUT, "it has a field that is no file's");
    return read_payload(file, cut, arena, payload, err);
}
