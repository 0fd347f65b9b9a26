/* The protobuf wire format, as far as it takes to walk an ONNX file without reading its weights.
 * Private to onnx/. */
#ifndef BZ_WIRE_H
#define BZ_WIRE_H

#include "base/base.h"

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

/* A payload that was left out: its field is there, but empty. */
typedef struct {
    size_t at;           /* in the bytes: where the payload would begin */
    uint64_t from, size; /* where it lies in the file */
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

/* Where in the file a byte lies. */
uint64_t wire_position(const wire_bytes *in, const uint8_t *at);

/* Nothing between these places was left out. */
bool wire_is_whole(const wire_bytes *in, const uint8_t *from, const uint8_t *to);

/* The cut that a field of a tensor stands for, or NULL. */
const wire_cut *wire_cut_of(const wire_bytes *in, const wire_field *f);

/* Its first n bytes, from the file. */
int wire_read_cut(const wire_bytes *in, const wire_cut *cut, void *out, size_t n, bz_error *err);

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
void wire_put_tag(bz_buf *out, uint32_t number, uint8_t type);

void wire_set_varint(uint8_t *end, uint64_t v); /* of the varint before `end`: no longer than what is there */

/* ---- what holds what -------------------------------------------------------------------------- */

typedef enum {
    WIRE_LEAF,
    WIRE_MODEL,
    WIRE_GRAPH,
    WIRE_NODE,
    WIRE_ATTRIBUTE,
    WIRE_TENSOR,
    WIRE_SPARSE,
    WIRE_VALUE_INFO,
    WIRE_TYPE,
    WIRE_TYPE_ELEM,
    WIRE_TYPE_MAP,
    WIRE_FUNCTION,
    WIRE_TRAINING,
    WIRE_N_MESSAGES,
} wire_message;

enum { WIRE_MAX_DEPTH = 96 };

/* The message that a field holds, WIRE_LEAF where it holds none that matters to us. */
wire_message wire_child(wire_message parent, const wire_field *f);

/* Does this field of a tensor hold its elements? */
bool wire_is_payload(uint32_t field);

/* ---- without weights ----------------------------------------------------------------------------- */

/* Copies a ModelProto; payloads of more than `keep` bytes become all-zero sparse tensors. */
int wire_strip(const wire_bytes *in, uint64_t keep, bz_buf *out, int64_t *stripped, int64_t *kept, bz_error *err);

#endif
