/* Mutates models as trees of fields, so that lengths fit and the loader gets past the first byte: a
 * field is dropped, doubled, moved, renumbered, given another's content, or its content changed. */
#include "fuzz.h"

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { MAX_FIELDS = 2048, MAX_DEPTH = 24, MAX_SIZE = 1 << 16 };

typedef struct {
    uint32_t number;
    int type;
    const uint8_t *start, *content, *end; /* start: of the tag */
} field;

typedef struct {
    uint8_t *data;
    size_t size;
} bytes;

static uint32_t state;

static uint32_t any(uint32_t below)
{
    state = state * 1664525 + 1013904223;
    return below ? (state >> 8) % below : 0;
}

static int get_varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; *p < end && shift < 64; shift += 7) {
        uint8_t b = *(*p)++;
        *v |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            return 0;
    }
    return -1;
}

/* The fields of a message, or -1 when these bytes are none. */
static int split(const uint8_t *p, size_t size, field *fields)
{
    const uint8_t *end = p + size;
    int n = 0;
    while (p < end) {
        uint64_t tag, v = 0;
        field *f = &fields[n++];
        f->start = p;
        if (n == MAX_FIELDS || get_varint(&p, end, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
            return -1;
        f->number = (uint32_t)(tag >> 3);
        f->type = tag & 7;
        f->content = p;
        if (f->type == 0) {
            if (get_varint(&p, end, &v))
                return -1;
            v = 0;
        } else if (f->type == 2) {
            if (get_varint(&p, end, &v))
                return -1;
            f->content = p;
        } else if (f->type == 1 || f->type == 5) {
            v = f->type == 1 ? 8 : 4;
        } else {
            return -1;
        }
        if (v > (uint64_t)(end - p))
            return -1;
        p += v;
        f->end = p;
    }
    return n;
}

static void put(bytes *b, const void *data, size_t n)
{
    if (b->size + n <= MAX_SIZE && n) {
        memcpy(b->data + b->size, data, n);
        b->size += n;
    }
}

static void put_varint(bytes *b, uint64_t v)
{
    uint8_t digits[10];
    size_t n = 0;
    do
        digits[n++] = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
    while (v >>= 7);
    put(b, digits, n);
}

static void put_field(bytes *b, uint32_t number, int type, const uint8_t *content, size_t n)
{
    put_varint(b, (uint64_t)number << 3 | (unsigned)type);
    if (type == 2)
        put_varint(b, n);
    put(b, content, n);
}

static void put_number(bytes *b, uint32_t number)
{
    static const int64_t VALUES[] = {0,  1,  2,  3,   -1,  7,         8,         64,        65,
                                     -2, 16, 17, 255, 256, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    uint8_t none = 0;
    put_field(b, number, 0, &none, 0);
    put_varint(b, any(4) ? (uint64_t)VALUES[any(sizeof VALUES / sizeof *VALUES)] : any(100000));
}

static void mutate_message(bytes *out, const uint8_t *data, size_t size, int depth);

static void mutate_content(bytes *out, const field *f, int depth)
{
    size_t n = (size_t)(f->end - f->content);
    static field probe[MAX_FIELDS];
    if (f->type == 0 && any(8)) {
        put_number(out, f->number);
    } else if (f->type == 2 && n && depth < MAX_DEPTH && split(f->content, n, probe) > 0 && any(8)) {
        bytes inner = {malloc(MAX_SIZE), 0};
        mutate_message(&inner, f->content, n, depth + 1);
        put_field(out, f->number, 2, inner.data, inner.size);
        free(inner.data);
    } else {
        size_t room = n + 32;
        uint8_t *copy = malloc(room);
        memcpy(copy, f->content, n);
        n = LLVMFuzzerMutate(copy, n, f->type == 2 ? room : n);
        put_field(out, f->number, f->type, copy, n);
        free(copy);
    }
}

static void mutate_message(bytes *out, const uint8_t *data, size_t size, int depth)
{
    field *fields = malloc(MAX_FIELDS * sizeof *fields);
    int n = split(data, size, fields);
    if (n <= 0) {
        put(out, data, size);
        free(fields);
        return;
    }
    const field *at = &fields[any((uint32_t)n)], *other = &fields[any((uint32_t)n)];
    uint32_t action = any(depth < 2 ? 64 : 24); /* at the top, most go deeper */
    for (const field *f = fields; f < fields + n; f++) {
        size_t whole = (size_t)(f->end - f->start);
        if (f != at)
            put(out, f->start, whole);
        else if (action == 0) /* dropped */
            continue;
        else if (action <= 2) { /* doubled */
            put(out, f->start, whole);
            put(out, f->start, whole);
        } else if (action == 3) { /* another one before it */
            put(out, other->start, (size_t)(other->end - other->start));
            put(out, f->start, whole);
        } else if (action == 4) /* replaced by another one */
            put(out, other->start, (size_t)(other->end - other->start));
        else if (action <= 6 && other->type == f->type) /* another's content: names that agree */
            put_field(out, f->number, f->type, other->content, (size_t)(other->end - other->content));
        else if (action == 7) /* another number */
            put_field(out, 1 + any(26), f->type, f->content, (size_t)(f->end - f->content));
        else if (action == 8) { /* a number that was not there */
            put(out, f->start, whole);
            put_number(out, 1 + any(26));
        } else
            mutate_content(out, f, depth);
    }
    free(fields);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    state = seed;
    if (size <= fuzz_header_size || any(16) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    bytes out = {malloc(MAX_SIZE), 0};
    put(&out, data, fuzz_header_size);
    mutate_message(&out, data + fuzz_header_size, size - fuzz_header_size, 0);
    if (any(8) == 0)
        out.data[0] = (uint8_t)any(256);
    if (out.size <= max_size && out.size) {
        memcpy(data, out.data, out.size);
        size = out.size;
    }
    free(out.data);
    return size;
}
