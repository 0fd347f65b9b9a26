/* Reading fields, and copying a model without its weights. For the copy, which fields hold messages is
 * a table; all other fields are copied as they are, so that what is newer than we are is not lost. */
#include "onnx/wire.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FIELD = 32 };

static const uint8_t CHILD[WIRE_N_MESSAGES][MAX_FIELD] = {
    [WIRE_MODEL] = {[7] = WIRE_GRAPH, [20] = WIRE_TRAINING, [25] = WIRE_FUNCTION},
    [WIRE_GRAPH] = {[1] = WIRE_NODE,
                    [5] = WIRE_TENSOR,
                    [11] = WIRE_VALUE_INFO,
                    [12] = WIRE_VALUE_INFO,
                    [13] = WIRE_VALUE_INFO,
                    [15] = WIRE_SPARSE},
    [WIRE_NODE] = {[5] = WIRE_ATTRIBUTE},
    [WIRE_ATTRIBUTE] = {[5] = WIRE_TENSOR,
                        [6] = WIRE_GRAPH,
                        [10] = WIRE_TENSOR,
                        [11] = WIRE_GRAPH,
                        [14] = WIRE_TYPE,
                        [15] = WIRE_TYPE,
                        [22] = WIRE_SPARSE,
                        [23] = WIRE_SPARSE},
    [WIRE_SPARSE] = {[1] = WIRE_TENSOR, [2] = WIRE_TENSOR},
    [WIRE_VALUE_INFO] = {[2] = WIRE_TYPE},
    [WIRE_TYPE] = {[4] = WIRE_TYPE_ELEM, [5] = WIRE_TYPE_MAP, [9] = WIRE_TYPE_ELEM},
    [WIRE_TYPE_ELEM] = {[1] = WIRE_TYPE},
    [WIRE_TYPE_MAP] = {[2] = WIRE_TYPE},
    [WIRE_FUNCTION] = {[7] = WIRE_NODE, [11] = WIRE_ATTRIBUTE, [12] = WIRE_VALUE_INFO},
    [WIRE_TRAINING] = {[1] = WIRE_GRAPH, [2] = WIRE_GRAPH},
};

enum {
    T_DIMS = 1,
    T_DTYPE = 2,
    T_FLOATS = 4,
    T_INT32S = 5,
    T_STRINGS = 6,
    T_INT64S = 7,
    T_RAW = 9,
    T_DOUBLES = 10,
    T_UINT64S = 11,
    T_EXTERNAL = 13,
    T_LOCATION = 14
};
enum { S_VALUES = 1, S_INDICES = 2, S_DIMS = 3 };

wire_message wire_child(wire_message parent, const wire_field *f)
{
    return f->type == 2 && f->number < MAX_FIELD ? CHILD[parent][f->number] : WIRE_LEAF;
}

bool wire_is_payload(uint32_t field)
{
    return (field >= T_FLOATS && field <= T_INT64S) || (field >= T_RAW && field <= T_UINT64S);
}

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

/* The first cut behind `at`. */
static size_t cut_behind(const wire_bytes *in, const uint8_t *at)
{
    size_t first = 0, end = in->n_cuts;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (in->cuts[middle].at <= (size_t)(at - in->data))
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

uint64_t wire_position(const wire_bytes *in, const uint8_t *at)
{
    size_t k = cut_behind(in, at), offset = (size_t)(at - in->data);
    return k ? offset - in->cuts[k - 1].at + in->cuts[k - 1].from + in->cuts[k - 1].size : offset;
}

const wire_cut *wire_cut_of(const wire_bytes *in, const wire_field *f)
{
    if (f->type != 2 || f->size || !in->n_cuts)
        return NULL;
    size_t k = cut_behind(in, f->data);
    return k && in->data + in->cuts[k - 1].at == f->data ? &in->cuts[k - 1] : NULL;
}

bool wire_is_whole(const wire_bytes *in, const uint8_t *from, const uint8_t *to)
{
    size_t k = cut_behind(in, from);
    return k == in->n_cuts || in->data + in->cuts[k].at > to;
}

int wire_read_cut(const wire_bytes *in, const wire_cut *cut, void *out, size_t n, bz_error *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(in->fd, (char *)out + done, n - done, (off_t)(cut->from + done));
        if (got < 0)
            return bz_fail(err, BZ_BAD_INPUT, "byte %llu cannot be read: %s", (unsigned long long)cut->from + done,
                           strerror(errno));
        if (!got)
            return bz_fail(err, BZ_BAD_INPUT, "byte %llu: the file was cut short meanwhile",
                           (unsigned long long)cut->from + done);
        done += (size_t)got;
    }
    return 0;
}

void wire_say(const wire_bytes *in, const uint8_t *at, const char *what, bz_error *err)
{
    bz_fail(err, BZ_BAD_INPUT, "byte %llu: %s: the file is cut off, damaged, or no ONNX model",
            (unsigned long long)wire_position(in, at), what);
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

void wire_put_tag(bz_buf *out, uint32_t number, uint8_t type)
{
    wire_put_varint(out, (uint64_t)number << 3 | type);
}

typedef struct {
    const wire_bytes *in;
    bz_buf *out;
    bool sparse_constants;
    uint64_t keep;
    int64_t stripped, kept;
    bz_error *err;
} copier;

static int copy_message(copier *c, wire_message kind, const uint8_t *data, uint64_t size, int depth);

/* Copies what lies between two fields as it is, with the payloads that were left out. */
static int put_fields(copier *c, const uint8_t *from, const uint8_t *to)
{
    for (size_t k = cut_behind(c->in, from); k < c->in->n_cuts; k++) {
        const wire_cut *cut = &c->in->cuts[k];
        const uint8_t *at = c->in->data + cut->at;
        if (at > to)
            break;
        bz_buf_put(c->out, from, (size_t)(at - from));
        wire_set_varint((uint8_t *)c->out->data + c->out->len, cut->size);
        if (wire_read_cut(c->in, cut, bz_buf_extend(c->out, (size_t)cut->size), (size_t)cut->size, c->err))
            return -1;
        from = at;
    }
    bz_buf_put(c->out, from, (size_t)(to - from));
    return 0;
}

/* Room for a length that is not known yet; what it takes too much is taken back at the end. */
enum { PADDED = 5 };

static size_t begin_message(copier *c, uint32_t field)
{
    wire_put_tag(c->out, field, 2);
    bz_buf_extend(c->out, PADDED);
    return c->out->len;
}

static int end_message(copier *c, size_t start)
{
    uint64_t size = c->out->len - start;
    if (size > INT32_MAX)
        return bz_fail(c->err, BZ_BAD_INPUT,
                       "the model's structure alone takes more than 2 GB: that is no model we can read");
    char *length = c->out->data + start - PADDED;
    bz_buf varint = {0};
    wire_put_varint(&varint, size);
    memmove(length + varint.len, length + PADDED, size);
    memcpy(length, varint.data, varint.len);
    c->out->len -= PADDED - varint.len;
    bz_buf_free(&varint);
    return 0;
}

static int copy_child(copier *c, uint32_t field, wire_message kind, const uint8_t *data, uint64_t size, int depth)
{
    size_t start = begin_message(c, field);
    return copy_message(c, kind, data, size, depth + 1) ? -1 : end_message(c, start);
}

/* Dimensions come one by one or packed; counts them. */
static bool has_zero(const wire_field *dims, int *rank)
{
    bool zero = false;
    uint64_t v = 0;
    for (const uint8_t *p = dims->data; p < dims->data + dims->size; ++*rank) {
        if (wire_varint(&p, dims->data + dims->size, &v))
            return true;
        zero |= v == 0;
    }
    return zero;
}

/* What stripping needs to know of a tensor: how much it holds, and whether a sparse one may stand
 * for it (which needs at least one dimension, none of size 0, and no strings). */
static int payload_size(copier *c, const uint8_t *data, uint64_t size, uint64_t *payload, bool *can_be_sparse)
{
    wire_reader r = {c->in, data, data + size};
    wire_field f;
    int more, rank = 0;
    *payload = 0;
    *can_be_sparse = true;
    while ((more = wire_next(&r, &f, c->err)) > 0) {
        const wire_cut *cut = wire_is_payload(f.number) ? wire_cut_of(c->in, &f) : NULL;
        if (wire_is_payload(f.number))
            *payload += cut ? cut->size : f.size;
        if (f.number == T_STRINGS || (f.number == T_DTYPE && f.value == 8)) /* TensorProto.STRING */
            *can_be_sparse = false;
        if (f.number == T_EXTERNAL || (f.number == T_LOCATION && f.value == 1))
            *payload = UINT64_MAX / 2;
        if (f.number == T_DIMS)
            *can_be_sparse &= !has_zero(&f, &rank);
    }
    *can_be_sparse &= rank > 0;
    return more;
}

/* Values and indices of an all-zero SparseTensorProto: an empty list of values, which carries the
 * name and data type of the tensor given, whose dims are put aside. Empty indices are written out:
 * ONNX Runtime refuses a file without them. */
static int put_no_values(copier *c, const uint8_t *data, uint64_t size, bz_buf *dims)
{
    wire_reader r = {c->in, data, data + size};
    wire_field f;
    int more;
    size_t start = begin_message(c, S_VALUES);
    wire_put_tag(c->out, T_DIMS, 0);
    wire_put_varint(c->out, 0);
    while ((more = wire_next(&r, &f, c->err)) > 0) {
        if (f.number == T_DIMS) {
            wire_put_tag(dims, S_DIMS, f.type);
            if (f.type == 2)
                wire_put_varint(dims, f.size);
            bz_buf_put(dims, f.data, (size_t)f.size);
        } else if (!wire_is_payload(f.number) && f.number != T_EXTERNAL && f.number != T_LOCATION) {
            bz_buf_put(c->out, f.start, (size_t)(r.at - f.start));
        }
    }
    if (more < 0 || end_message(c, start))
        return -1;
    start = begin_message(c, S_INDICES);
    wire_put_tag(c->out, T_DIMS, 0);
    wire_put_varint(c->out, 0);
    wire_put_tag(c->out, T_DTYPE, 0);
    wire_put_varint(c->out, 7); /* int64 */
    return end_message(c, start);
}

static int put_sparse(copier *c, const uint8_t *data, uint64_t size)
{
    bz_buf dims = {0};
    int failed = put_no_values(c, data, size, &dims);
    bz_buf_put(c->out, dims.data, dims.len);
    bz_buf_free(&dims);
    return failed;
}

/* A tensor that is sparse already loses its values when they are many. 1: it stays as it is. */
static int strip_sparse(copier *c, const uint8_t *data, uint64_t size)
{
    wire_reader r = {c->in, data, data + size};
    wire_field f, values = {0};
    uint64_t payload = 0, more_payload;
    bool ignored;
    int more, n_values = 0; /* more than one: a reader merges them, we leave them alone */
    while ((more = wire_next(&r, &f, c->err)) > 0) {
        if (f.type != 2 || (f.number != S_VALUES && f.number != S_INDICES))
            continue;
        if (payload_size(c, f.data, f.size, &more_payload, &ignored))
            return -1;
        payload = payload > UINT64_MAX - more_payload ? UINT64_MAX : payload + more_payload;
        if (f.number == S_VALUES) {
            values = f;
            n_values++;
        }
    }
    if (more < 0)
        return -1;
    if (payload <= c->keep || n_values != 1)
        return 1;
    c->stripped++;
    bz_buf ignored_dims = {0};
    int failed = put_no_values(c, values.data, values.size, &ignored_dims);
    bz_buf_free(&ignored_dims);
    for (r.at = data; !failed && wire_next(&r, &f, c->err) > 0;)
        if (f.number != S_VALUES && f.number != S_INDICES)
            bz_buf_put(c->out, f.start, (size_t)(r.at - f.start));
    return failed;
}

enum {
    M_OPSET = 8,
    F_OPSET = 9,
    O_DOMAIN = 1,
    O_VERSION = 2,
    N_OP = 4,
    N_DOMAIN = 7,
    A_NAME = 1,
    A_TENSOR = 5,
    A_SPARSE = 22,
    A_TYPE = 20,
    G_INITIALIZER = 5,
    G_SPARSE_INITIALIZER = 15
};

static int copy_initializer(copier *c, const wire_field *f, int depth)
{
    uint64_t payload;
    bool can_be_sparse;
    if (payload_size(c, f->data, f->size, &payload, &can_be_sparse))
        return -1;
    if (payload <= c->keep || !can_be_sparse) {
        c->kept++;
        return copy_child(c, f->number, WIRE_TENSOR, f->data, f->size, depth);
    }
    c->stripped++;
    size_t start = begin_message(c, G_SPARSE_INITIALIZER);
    return put_sparse(c, f->data, f->size) ? -1 : end_message(c, start);
}

/* Attribute `value` of a Constant node: a big tensor turns the whole attribute into `sparse_value`.
 * Returns 1 when it did, 0 when the attribute is to be copied as it is. */
static int copy_constant(copier *c, const wire_field *attribute)
{
    wire_reader r = {c->in, attribute->data, attribute->data + attribute->size};
    wire_field f, tensor = {0};
    bool is_value = false;
    int more;
    while ((more = wire_next(&r, &f, c->err)) > 0) {
        if (f.number == A_NAME && f.type == 2)
            is_value = f.size == strlen("value") && !memcmp(f.data, "value", (size_t)f.size);
        if (f.number == A_TENSOR && f.type == 2)
            tensor = f;
    }
    if (more < 0)
        return -1;
    uint64_t payload = 0;
    bool can_be_sparse = false;
    if (!is_value || !tensor.data)
        return 0;
    if (payload_size(c, tensor.data, tensor.size, &payload, &can_be_sparse))
        return -1;
    if (payload <= c->keep || !can_be_sparse) {
        c->kept++;
        return 0;
    }
    c->stripped++;
    size_t start = begin_message(c, attribute->number);
    wire_put_tag(c->out, A_NAME, 2);
    wire_put_varint(c->out, strlen("sparse_value"));
    bz_buf_puts(c->out, "sparse_value");
    size_t sparse = begin_message(c, A_SPARSE);
    if (put_sparse(c, tensor.data, tensor.size) || end_message(c, sparse))
        return -1;
    wire_put_tag(c->out, A_TYPE, 0);
    wire_put_varint(c->out, 11); /* AttributeProto.SPARSE_TENSOR */
    return end_message(c, start) ? -1 : 1;
}

static bool names_default_domain(const wire_field *f)
{
    return !f->size || (f->size == strlen("ai.onnx") && !memcmp(f->data, "ai.onnx", (size_t)f->size));
}

/* Others may call an operator Constant, too. */
static bool node_is_constant(const copier *c, const uint8_t *data, uint64_t size)
{
    wire_reader r = {c->in, data, data + size};
    wire_field f;
    bool constant = false, standard = true;
    while (wire_next(&r, &f, NULL) > 0) {
        if (f.number == N_OP && f.type == 2)
            constant = f.size == strlen("Constant") && !memcmp(f.data, "Constant", (size_t)f.size);
        if (f.number == N_DOMAIN && f.type == 2)
            standard = names_default_domain(&f);
    }
    return constant && standard;
}

/* Constant has sparse_value from version 11 of the default operator set on. Which version a model
 * or function imports may stand behind its nodes in the file. */
static bool knows_sparse_constants(const wire_bytes *in, const uint8_t *data, uint64_t size, uint32_t import)
{
    wire_reader r = {in, data, data + size};
    wire_field f = {0}, g = {0};
    while (wire_next(&r, &f, NULL) > 0) {
        if (f.number != import || f.type != 2)
            continue;
        uint64_t version = 0;
        bool is_default = true;
        wire_reader inner = {in, f.data, f.data + f.size};
        while (wire_next(&inner, &g, NULL) > 0) {
            if (g.number == O_VERSION)
                version = g.value;
            if (g.number == O_DOMAIN)
                is_default = names_default_domain(&g);
        }
        if (is_default)
            return version >= 11 && version <= INT32_MAX;
    }
    return false;
}

/* One field that the table names as a message. */
static int copy_field(copier *c, wire_message parent, bool constant, const wire_field *f, int depth)
{
    wire_message child = wire_child(parent, f);
    if (parent == WIRE_GRAPH && child == WIRE_TENSOR)
        return copy_initializer(c, f, depth);
    if (constant && child == WIRE_ATTRIBUTE) {
        int done = copy_constant(c, f);
        if (done)
            return done < 0 ? -1 : 0;
    }
    return copy_child(c, f->number, child, f->data, f->size, depth);
}

static int copy_message(copier *c, wire_message kind, const uint8_t *data, uint64_t size, int depth)
{
    if (depth > WIRE_MAX_DEPTH)
        return bz_fail(c->err, BZ_BAD_INPUT, "byte %zu: graphs or types are nested more than %d deep",
                       (size_t)wire_position(c->in, data), WIRE_MAX_DEPTH);
    int left = kind == WIRE_SPARSE ? strip_sparse(c, data, size) : 1;
    if (left <= 0)
        return left;
    bool constant = c->sparse_constants && kind == WIRE_NODE && node_is_constant(c, data, size);
    bool outer_sparse_constants = c->sparse_constants;
    if (kind == WIRE_FUNCTION)
        c->sparse_constants = knows_sparse_constants(c->in, data, size, F_OPSET);
    wire_reader r = {c->in, data, data + size};
    wire_field f = {0};
    const uint8_t *plain = data; /* start of what is to be copied as it is, all at once */
    int more;
    while ((more = wire_next(&r, &f, c->err)) > 0) {
        if (wire_child(kind, &f) == WIRE_LEAF)
            continue;
        if (put_fields(c, plain, f.start) || copy_field(c, kind, constant, &f, depth))
            return -1;
        plain = r.at;
    }
    if (more == 0)
        more = put_fields(c, plain, r.at);
    c->sparse_constants = outer_sparse_constants;
    return more;
}

int wire_strip(const wire_bytes *in, uint64_t keep, bz_buf *out, int64_t *stripped, int64_t *kept, bz_error *err)
{
    copier c = {.in = in,
                .out = out,
                .sparse_constants = knows_sparse_constants(in, in->data, in->size, M_OPSET),
                .keep = keep,
                .err = err};
    int failed = copy_message(&c, WIRE_MODEL, in->data, in->size, 0);
    *stripped = c.stripped;
    *kept = c.kept;
    return failed;
}
