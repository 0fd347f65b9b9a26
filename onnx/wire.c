/* Reading fields, and looking through a file's structure before anything is made of it. */
#include "onnx/wire.h"
#include "base/sort.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int wire_varint_long(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = v;
            return 0;
        }
    }
    return -1;
}

static uint64_t position(const wire_bytes *in, const uint8_t *at)
{
    size_t first = 0, end = in->n_cuts, offset = (size_t)(at - in->data);
    /* the first cut behind it */
    BZ_FIND_FIRST(first, end, middle, in->cuts[middle].at <= offset);
    if (!first)
        return offset;
    const wire_cut *cut = &in->cuts[first - 1];
    return offset - cut->at - cut->instead + cut->from + cut->size;
}

int wire_read(int fd, uint64_t from, void *out, size_t n, bz_error *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (char *)out + done, n - done, (off_t)(from + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return bz_fail(err, BZ_BAD_INPUT, "byte %llu cannot be read: %s", (unsigned long long)from + done,
                           strerror(errno));
        if (!got)
            return bz_fail(err, BZ_BAD_INPUT, "byte %llu: the file was cut short meanwhile",
                           (unsigned long long)from + done);
        done += (size_t)got;
    }
    return 0;
}

void wire_say(const wire_bytes *in, const uint8_t *at, const char *what, bz_error *err)
{
    bz_fail(err, BZ_BAD_INPUT, "byte %llu: %s: the file is cut off, damaged, or no ONNX model",
            (unsigned long long)position(in, at), what);
}

void wire_put_varint(bz_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        bz_buf_putc(out, (char)(v | 0x80));
    bz_buf_putc(out, (char)v);
}

void wire_set_varint(uint8_t *end, uint64_t v)
{
    uint8_t *at = end - 1;
    while (at[-1] & 0x80) /* a tag stands before it, which ends without */
        at--;
    for (; at < end - 1; v >>= 7)
        *at++ = (uint8_t)(v | 0x80);
    *at = v & 0x7f;
}

const ProtobufCFieldDescriptor *wire_known(wire_message kind, uint32_t number)
{
    return protobuf_c_message_descriptor_get_field(kind, number);
}

wire_message wire_child(wire_message kind, const ProtobufCFieldDescriptor *field)
{
    if (field->type == PROTOBUF_C_TYPE_BYTES && kind == &onnx__node_proto__descriptor)
        return &onnx__attribute_proto__descriptor;
    return field->type == PROTOBUF_C_TYPE_MESSAGE ? field->descriptor : NULL;
}

bool wire_is_payload(const ProtobufCFieldDescriptor *field)
{
    return field->flags & PROTOBUF_C_FIELD_FLAG_PACKED ||
           (field->type == PROTOBUF_C_TYPE_BYTES && field->label == PROTOBUF_C_LABEL_OPTIONAL);
}

/* Numbers of a repeated field may come packed. */
static bool fits(const ProtobufCFieldDescriptor *field, const wire_field *f)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return f->type == 2;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
        return f->type == 5 || (f->type == 2 && field->label == PROTOBUF_C_LABEL_REPEATED && f->size % 4 == 0);
    case PROTOBUF_C_TYPE_DOUBLE:
        return f->type == 1 || (f->type == 2 && field->label == PROTOBUF_C_LABEL_REPEATED && f->size % 8 == 0);
    default: /* no varint has more than ten bytes; where one begins is not looked at */
        return f->type == 0 ||
               (f->type == 2 && field->label == PROTOBUF_C_LABEL_REPEATED && (!f->size || f->data[f->size - 1] < 0x80));
    }
}

static int check(const wire_bytes *in, wire_message kind, const uint8_t *data, uint64_t size, uint64_t small, int depth,
                 bz_error *err)
{
    if (depth > WIRE_MAX_DEPTH)
        return bz_fail(err, BZ_BAD_INPUT, "byte %llu: graphs or types are nested more than %d messages deep",
                       (unsigned long long)position(in, data), WIRE_MAX_DEPTH);
    wire_reader r = {in, data, data + size};
    wire_field f;
    int more;
    while ((more = wire_next(&r, &f, err)) > 0) {
        if (f.size <= small && small)
            continue;
        const ProtobufCFieldDescriptor *field = wire_known(kind, f.number);
        if (field && !fits(field, &f))
            return wire_bad(in, f.start, "a field is not of its type", err);
        wire_message child = field ? wire_child(kind, field) : NULL;
        if (child && check(in, child, f.data, f.size, small, depth + 1, err))
            return -1;
    }
    return more;
}

int wire_check(const wire_bytes *in, wire_message kind, uint64_t small, bz_error *err)
{
    return check(in, kind, in->data, in->size, small, 0, err);
}
