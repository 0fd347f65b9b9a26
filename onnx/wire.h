/* The protobuf wire format, as far as it takes to walk an ONNX file without reading its weights, and to bound what
 * protobuf-c is given. Which fields there are says onnx.proto. Private to onnx/. */
#ifndef BZ_WIRE_H
#define BZ_WIRE_H

#include "base/base.h"
#include "onnx/onnx.pb-c.h"

/* One field of a message. Number and type stand apart: side by side a compiler compares both with one load,
 * which waits for the two stores before it. */
typedef struct {
    uint32_t number;
    uint64_t value;      /* of a varint */
    const uint8_t *data; /* content of the other types */
    uint64_t size;
    const uint8_t *start; /* of the tag */
    uint8_t type;         /* 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes */
} wire_field;

/* A payload that was left out. Its field is there, but empty; the field left_out of the tensor, which says the number
 * of the cut, stands behind it. */
typedef struct {
    size_t at;           /* in the bytes: where the payload would begin */
    size_t instead;      /* how many bytes stand there now */
    uint64_t from, size; /* where it lies in the file */
    uint32_t field;      /* number of the field */
} wire_cut;

/* A file in memory, whole (no cuts) or but for big payloads (onnx/structure.h). */
typedef struct {
    const uint8_t *data;
    size_t size;
    const wire_cut *cuts; /* ordered */
    size_t n_cuts;
    int fd; /* where there are cuts: the file */
} wire_bytes;

typedef struct {
    const wire_bytes *in;
    const uint8_t *at, *end;
} wire_reader;

/* The k-th payload that was left out of a tensor, or NULL: a mark that the file itself brought leads nowhere. */
static inline const wire_cut *wire_left_out(const wire_bytes *in, const Onnx__TensorProto *t, size_t k)
{
    return k < t->n_left_out && t->left_out[k] < in->n_cuts ? &in->cuts[t->left_out[k]] : NULL;
}

/* Reads n bytes of the file, from there on. */
int wire_read(int fd, uint64_t from, void *out, size_t n, bz_error *err);

/* A varint of any length. Returns -1 when it is cut off, or longer than 64 bits; `at` goes on in any case. */
int wire_varint_long(const uint8_t **at, const uint8_t *end, uint64_t *value);

/* Nearly all fit into one byte, and everything that is read passes through here. The long way sees only
 * copies, so that readers and fields can live in registers. */
static inline int wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    const uint8_t *p = *at;
    if (p < end && *p < 0x80) {
        *value = *p;
        *at = p + 1;
        return 0;
    }
    if (end - p >= 2 && p[1] < 0x80) { /* lengths of nodes */
        *value = (p[0] & 0x7fu) | (uint64_t)p[1] << 7;
        *at = p + 2;
        return 0;
    }
    uint64_t v = 0;
    int bad = wire_varint_long(&p, end, &v);
    *value = v;
    *at = p;
    return bad;
}

#define WIRE_TOO_LONG "a field is longer than what holds it"
void wire_say(const wire_bytes *in, const uint8_t *at, const char *what, bz_error *err) __attribute__((cold));
static inline int wire_bad(const wire_bytes *in, const uint8_t *at, const char *what, bz_error *err)
{
    wire_say(in, at, what, err);
    return -1; /* said here, the compiler knows that no field was read */
}

/* Reads a field up to where its content begins; a varint is read whole. Whether the content fits in is
 * not looked at. 0, or -1 with err filled. */
static inline int wire_head(wire_reader *r, wire_field *f, bz_error *err)
{
    const uint8_t *start = r->at;
    uint64_t tag;
    if (wire_varint(&r->at, r->end, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return wire_bad(r->in, start, "no field can start here", err);
    f->number = (uint32_t)(tag >> 3);
    f->type = tag & 7;
    f->start = start;
    f->value = 0;
    f->data = r->at;
    switch (f->type) {
    case 0:
        if (wire_varint(&r->at, r->end, &f->value))
            return wire_bad(r->in, start, "a number has no end", err);
        f->size = (uint64_t)(r->at - f->data);
        return 0;
    case 1:
        f->size = 8;
        return 0;
    case 2:
        if (wire_varint(&r->at, r->end, &f->size))
            return wire_bad(r->in, start, "a length has no end", err);
        f->data = r->at;
        return 0;
    case 5:
        f->size = 4;
        return 0;
    default:
        return wire_bad(r->in, start, "a field has no known type", err);
    }
}

/* Next field: 1, or 0 at the end of the message, or -1 with err filled. */
static inline int wire_next(wire_reader *r, wire_field *f, bz_error *err)
{
    const uint8_t *p = r->at;
    if (p == r->end)
        return 0;
    if (p[0] >= 8 && !(p[0] & 0x85)) { /* nearly all: a short number, type 0 or 2 */
        const uint8_t *at = p + 1;
        uint64_t n;
        if (wire_varint(&at, r->end, &n))
            return wire_bad(r->in, p, p[0] & 2 ? "a length has no end" : "a number has no end", err);
        *f = (wire_field){.number = p[0] >> 3, .type = p[0] & 7, .start = p};
        f->value = f->type ? 0 : n;
        f->data = f->type ? at : p + 1;
        f->size = f->type ? n : (uint64_t)(at - f->data);
        if (f->type && n > (uint64_t)(r->end - at))
            return wire_bad(r->in, p, WIRE_TOO_LONG, err);
        r->at = at + (f->type ? n : 0);
        return 1;
    }
    if (wire_head(r, f, err))
        return -1;
    if (f->type == 0)
        return 1;
    if (f->size > (uint64_t)(r->end - r->at))
        return wire_bad(r->in, f->start, WIRE_TOO_LONG, err);
    r->at += f->size;
    return 1;
}

void wire_put_varint(bz_buf *out, uint64_t v);

void wire_set_varint(uint8_t *end, uint64_t v); /* of the varint before `end`: no longer than what is there */

/* ---- what holds what -------------------------------------------------------------------------- */

typedef const ProtobufCMessageDescriptor *wire_message;

enum { WIRE_MAX_DEPTH = 320, WIRE_SMALL = 1024 };

/* What the schema says of a field of such a message; NULL where it knows none of that number. */
const ProtobufCFieldDescriptor *wire_known(wire_message kind, uint32_t number);

/* The message that a field of such a message holds, or NULL. */
wire_message wire_child(wire_message kind, const ProtobufCFieldDescriptor *field);

/* Does this field of a tensor hold its elements, all in one piece? Texts come one by one. */
bool wire_is_payload(const ProtobufCFieldDescriptor *field);

/* Looks into all messages of more than `small` bytes: fails where fields do not fit into what holds them, have another
 * type than the schema says, or are nested too deep. With WIRE_SMALL what passes is nested at most
 * WIRE_MAX_DEPTH + WIRE_SMALL / 2 deep, which a reader that recurses can bear. */
int wire_check(const wire_bytes *in, wire_message kind, uint64_t small, bz_error *err);

#endif
