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

/* Next field: 1, or 0 at the end of the message, or -1 with err filled. */
int wire_next(wire_reader *r, wire_field *f, bz_error *err);

/* A varint inside a packed field. Returns -1 when it is cut off. */
int wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *value);

void wire_put_varint(bz_buf *out, uint64_t v);
void wire_put_tag(bz_buf *out, uint32_t number, uint8_t type);

/* What stands in raw_data of every tensor of a skeleton: where the tensor lies in the file. */
typedef struct {
    uint64_t at, size;
} wire_place;

/* Copies the structure of a ModelProto without payloads and documentation: small, and fit for the
 * protobuf library whatever the weights. Limits nesting. */
int wire_skeleton(const uint8_t *data, size_t size, bz_buf *out, bz_error *err);

/* Copies a ModelProto; payloads of more than `keep` bytes become all-zero sparse tensors. */
int wire_strip(const uint8_t *data, size_t size, uint64_t keep, bz_buf *out, int64_t *stripped, int64_t *kept,
               bz_error *err);

#endif
