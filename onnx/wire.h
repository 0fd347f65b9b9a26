/* The protobuf wire format, as far as it takes to walk an ONNX file without reading its weights.
 * Private to onnx/. */
#ifndef BZ_WIRE_H
#define BZ_WIRE_H

#include "base/base.h"

/* One field of a message. */
typedef struct {
    uint32_t number;
    uint8_t type;        /* 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes */
    uint64_t value;      /* of a varint */
    const uint8_t *data; /* content of the other types */
    uint64_t size;
    const uint8_t *start; /* of the tag */
} wire_field;

typedef struct {
    const uint8_t *base; /* of the file, for messages */
    const uint8_t *at, *end;
} wire_reader;

/* A varint of any length. Returns -1 when it is cut off, or longer than 64 bits. */
int wire_varint_long(const uint8_t **at, const uint8_t *end, uint64_t *value);

/* Nearly all fit into one byte, and everything that is read passes through here. */
static inline int wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    if (*at < end && **at < 0x80) {
        *value = *(*at)++;
        return 0;
    }
    return wire_varint_long(at, end, value);
}

int wire_bad(const wire_reader *r, const uint8_t *at, const char *what, bz_error *err);

/* Next field: 1, or 0 at the end of the message, or -1 with err filled. */
static inline int wire_next(wire_reader *r, wire_field *f, bz_error *err)
{
    if (r->at == r->end)
        return 0;
    const uint8_t *start = r->at;
    uint64_t tag;
    if (wire_varint(&r->at, r->end, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return wire_bad(r, start, "no field can start here", err);
    f->number = (uint32_t)(tag >> 3);
    f->type = tag & 7;
    f->start = start;
    f->value = 0;
    switch (f->type) {
    case 0:
        f->data = r->at;
        if (wire_varint(&r->at, r->end, &f->value))
            return wire_bad(r, start, "a number has no end", err);
        f->size = (uint64_t)(r->at - f->data);
        return 1;
    case 1:
        f->size = 8;
        break;
    case 2:
        if (wire_varint(&r->at, r->end, &f->size))
            return wire_bad(r, start, "a length has no end", err);
        break;
    case 5:
        f->size = 4;
        break;
    default:
        return wire_bad(r, start, "a field has no known type", err);
    }
    if (f->size > (uint64_t)(r->end - r->at))
        return wire_bad(r, start, "a field is longer than what holds it", err);
    f->data = r->at;
    r->at += f->size;
    return 1;
}

void wire_put_varint(bz_buf *out, uint64_t v);
void wire_put_tag(bz_buf *out, uint32_t number, uint8_t type);

/* Copies a ModelProto; payloads of more than `keep` bytes become all-zero sparse tensors. */
int wire_strip(const uint8_t *data, size_t size, uint64_t keep, bz_buf *out, int64_t *stripped, int64_t *kept,
               bz_error *err);

#endif
