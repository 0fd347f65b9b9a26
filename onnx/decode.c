/* Types, tensors and attributes, read from the file's bytes. */
#include "onnx/build.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TYPE_DEPTH = 64 };

/* ---- fields ----------------------------------------------------------------------------------- */

wire_reader read_message(const builder *b, slice m)
{
    return (wire_reader){&b->model->file->bytes, m.data, m.size ? m.data + m.size : m.data};
}

static slice content(const wire_field *f)
{
    return (slice){f->data, (size_t)f->size};
}

static bool is_number(const wire_field *f, uint32_t number)
{
    return f->number == number && f->type == 0;
}

static bool is_bytes(const wire_field *f, uint32_t number)
{
    return f->number == number && f->type == 2;
}

bool is_text(slice s, const char *text)
{
    return s.size == strlen(text) && !memcmp(s.data, text, s.size);
}

const char *decode_text(builder *b, slice s)
{
    return s.size ? bz_arena_strn(b->arena, (const char *)s.data, s.size) : "";
}

const char *decode_word(builder *b, slice s)
{
    bz_model_file *file = b->model->file;
    if (!s.size)
        return "";
    bz_str *recent = &file->recent[(s.data[0] * 5u + s.data[s.size - 1] * 3u + s.size) % RECENT];
    if (recent->len == s.size && !memcmp(recent->data, s.data, s.size))
        return recent->data;
    uint32_t n = file->words.n, k = bz_map_add(&file->words, s.data, s.size, n);
    if (k == n) {
        if ((int)n == file->words_cap) {
            file->words_cap = file->words_cap ? file->words_cap * 2 : 64;
            file->word = bz_realloc(file->word, (size_t)file->words_cap, sizeof *file->word);
        }
        file->word[k] = decode_text(b, s);
    }
    *recent = (bz_str){file->word[k], s.size};
    return file->word[k];
}

/* Integers of a repeated field come one by one, or many in one packed field. */
static size_t count_varints(const wire_field *f)
{
    size_t n = f->type == 0;
    for (uint64_t i = 0; f->type == 2 && i < f->size; i++)
        n += f->data[i] < 0x80;
    return n;
}

static int64_t *put_varints(const wire_field *f, int64_t *out)
{
    uint64_t v = 0;
    if (f->type == 0)
        *out++ = (int64_t)f->value;
    for (const uint8_t *p = f->data, *end = f->data + f->size; f->type == 2 && p < end;)
        if (!wire_varint(&p, end, &v))
            *out++ = (int64_t)v;
    return out;
}

/* Reads repeated field `number` of message m whole. */
static int decode_ints(builder *b, slice m, uint32_t number, const int64_t **out, size_t *n)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    int more;
    *n = 0;
    while ((more = wire_next(&r, &f, b->err)) > 0)
        if (f.number == number)
            *n += count_varints(&f);
    int64_t *list = BZ_NEW(b->arena, int64_t, *n), *at = list;
    *out = list;
    for (r = read_message(b, m); more == 0 && wire_next(&r, &f, b->err) > 0;)
        if (f.number == number)
            at = put_varints(&f, at);
    *n = (size_t)(at - list); /* a packed field may end within a number */
    return more;
}

static bz_dtype to_dtype(uint64_t v)
{
    return v < BZ_N_DTYPES ? (bz_dtype)v : BZ_UNDEFINED;
}

/* ---- types ------------------------------------------------------------------------------------ */

static bz_dim named_symbol(builder *b, slice name)
{
    bz_model *m = b->model;
    uint32_t k = bz_map_get(&m->file->symbols, name.data, name.size);
    if (k == BZ_MAP_NONE) {
        k = (uint32_t)m->n_symbols;
        bz_model_symbol(m);
        m->symbols[k] = decode_text(b, name);
        bz_map_add(&m->file->symbols, name.data, name.size, k);
    }
    return INT64_MIN + k;
}

static int decode_dim(builder *b, slice m, bz_dim *d)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    slice name = {0};
    int64_t v = -1; /* which is how many exporters write "unknown", too */
    int more;
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (is_number(&f, 1)) {
            v = (int64_t)f.value;
            name = (slice){0};
        } else if (is_bytes(&f, 2)) {
            name = content(&f);
            v = -1;
        }
    }
    if (v < -1)
        return bz_fail(b->err, BZ_BAD_INPUT, "a dimension is negative (%lld)", (long long)v);
    if (more == 0)
        *d = v >= 0 ? v : name.size ? named_symbol(b, name) : bz_model_symbol(b->model);
    return more;
}

int bz_dims_check(const bz_dim *dims, int rank, bz_error *err)
{
    int64_t elements = 1;
    for (int i = 0; i < rank; i++) {
        if (bz_is_symbol(dims[i]) || dims[i] == 0)
            continue;
        if (dims[i] < 0 || dims[i] > BZ_MAX_DIM)
            return bz_fail(err, BZ_BAD_INPUT, "a dimension is %s (%lld)", dims[i] < 0 ? "negative" : "impossibly large",
                           (long long)dims[i]);
        if (__builtin_mul_overflow(elements, dims[i], &elements) || elements > BZ_MAX_ELEMENTS)
            return bz_fail(err, BZ_BAD_INPUT, "its shape has more elements than any memory could hold");
    }
    return 0;
}

/* TensorShapeProto */
static int decode_shape(builder *b, slice m, bz_type *t)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    bz_dim dims[BZ_MAX_RANK];
    size_t rank = 0;
    int more;
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (!is_bytes(&f, 1))
            continue;
        if (rank < BZ_MAX_RANK && decode_dim(b, content(&f), &dims[rank]))
            return -1;
        rank++;
    }
    if (more < 0)
        return -1;
    if (rank > BZ_MAX_RANK)
        return bz_fail(b->err, BZ_BAD_INPUT, "a shape has %zu dimensions: more than %d are not supported", rank,
                       BZ_MAX_RANK);
    t->rank = (int)rank;
    t->dims = bz_arena_dup(b->arena, dims, rank * sizeof *dims);
    return bz_dims_check(t->dims, t->rank, b->err);
}

static int decode_type_at(builder *b, slice m, int depth, bz_type *t);

/* TypeProto.Tensor and .SparseTensor */
static int decode_tensor_type(builder *b, slice m, bz_type *t)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    int more;
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (is_number(&f, 1))
            t->dtype = to_dtype(f.value);
        else if (is_bytes(&f, 2) && decode_shape(b, content(&f), t))
            return -1;
    }
    return more;
}

/* TypeProto.Sequence, .Optional (elem_type is field 1) and .Map (key_type 1, value_type 2) */
static int decode_elem_type(builder *b, slice m, uint32_t field, int depth, bz_type *t)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    int more;
    bz_type *elem = BZ_NEW(b->arena, bz_type, 1);
    *elem = (bz_type){.kind = BZ_TYPE_NONE, .rank = -1};
    t->elem = elem;
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (is_number(&f, 1))
            t->dtype = to_dtype(f.value);
        else if (is_bytes(&f, field) && decode_type_at(b, content(&f), depth + 1, elem))
            return -1;
    }
    return more;
}

static int decode_type_at(builder *b, slice m, int depth, bz_type *t)
{
    static const struct {
        uint32_t field, elem;
        bz_type_kind kind;
    } KINDS[] = {{1, 0, BZ_TYPE_TENSOR},
                 {8, 0, BZ_TYPE_SPARSE},
                 {4, 1, BZ_TYPE_SEQUENCE},
                 {9, 1, BZ_TYPE_OPTIONAL},
                 {5, 2, BZ_TYPE_MAP}};
    wire_reader r = read_message(b, m);
    wire_field f;
    int more;
    if (depth > MAX_TYPE_DEPTH)
        return bz_fail(b->err, BZ_BAD_INPUT, "types are nested more than %d deep", MAX_TYPE_DEPTH);
    *t = (bz_type){.kind = BZ_TYPE_NONE, .rank = -1};
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
            if (!is_bytes(&f, KINDS[k].field))
                continue;
            *t = (bz_type){.kind = KINDS[k].kind, .rank = -1};
            if (KINDS[k].elem ? decode_elem_type(b, content(&f), KINDS[k].elem, depth, t)
                              : decode_tensor_type(b, content(&f), t))
                return -1;
        }
    }
    return more;
}

int decode_type(builder *b, slice m, const bz_type **t)
{
    bz_type *type = BZ_NEW(b->arena, bz_type, 1);
    *t = type;
    return decode_type_at(b, m, 0, type);
}

/* ---- tensors ----------------------------------------------------------------------------------- */

enum { TENSOR_DIMS = 1, TENSOR_DTYPE = 2, TENSOR_NAME = 8, TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14 };
enum { SPARSE_VALUES = 1, SPARSE_INDICES = 2, SPARSE_DIMS = 3 };

/* Of more than BZ_MAX_RANK dimensions only the number is kept: they are refused. */
static void add_dims(const wire_field *f, int64_t dims[BZ_MAX_RANK], size_t *rank)
{
    if (f->type == 0 && *rank < BZ_MAX_RANK) {
        dims[(*rank)++] = (int64_t)f->value;
        return;
    }
    size_t n = count_varints(f);
    if (n <= BZ_MAX_RANK && *rank <= BZ_MAX_RANK - n)
        put_varints(f, dims + *rank);
    *rank = n > SIZE_MAX - *rank ? SIZE_MAX : *rank + n;
}

static int set_dims(builder *b, bz_tensor *t, const int64_t *dims, size_t rank)
{
    if (rank > BZ_MAX_RANK)
        return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has %zu dimensions: more than %d are not supported", t->name,
                       rank, BZ_MAX_RANK);
    t->rank = (int)rank;
    t->dims = bz_arena_dup(b->arena, dims, rank * sizeof *dims);
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0) /* here it is no symbol, however low */
            return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has a negative dimension (%lld)", t->name,
                           (long long)dims[i]);
    if (bz_dims_check(t->dims, t->rank, b->err))
        return bz_fail_in(b->err, "tensor '%s'", t->name);
    t->n = 1;
    for (size_t i = 0; i < rank; i++)
        t->n *= dims[i];
    return 0;
}

static int64_t to_number(const char *text)
{
    char *end;
    long long v = strtoll(text, &end, 10);
    return *end || v < 0 ? -1 : v;
}

/* One entry of external_data: a StringStringEntryProto. */
static int decode_external(builder *b, slice m, bz_tensor *t)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    slice key = {0}, value = {0};
    int more;
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (is_bytes(&f, 1))
            key = content(&f);
        else if (is_bytes(&f, 2))
            value = content(&f);
    }
    if (is_text(key, "location"))
        t->external = decode_word(b, value); /* usually one file for all */
    else if (is_text(key, "offset"))
        t->external_offset = to_number(decode_text(b, value));
    else if (is_text(key, "length"))
        t->external_size = to_number(decode_text(b, value));
    return more;
}

int decode_tensor(builder *b, slice m, bz_tensor *t)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    int64_t dims[BZ_MAX_RANK];
    size_t rank = 0;
    bool external = false;
    int more;
    dims[0] = 0; /* of a scalar nothing is read, but the compiler cannot know */
    t->name = "";
    t->at = m.data ? (uint64_t)(m.data - b->model->file->bytes.data) : 0;
    t->size = m.size;
    t->external_size = -1;
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (f.number == TENSOR_DIMS) {
            add_dims(&f, dims, &rank);
        } else if (is_number(&f, TENSOR_DTYPE)) {
            t->dtype = to_dtype(f.value);
        } else if (is_bytes(&f, TENSOR_NAME)) {
            t->name = decode_text(b, content(&f));
        } else if (is_number(&f, TENSOR_LOCATION)) {
            external = f.value == 1;
        } else if (is_bytes(&f, TENSOR_EXTERNAL) && decode_external(b, content(&f), t)) {
            return -1;
        }
    }
    if (more < 0 || set_dims(b, t, dims, rank))
        return -1;
    if (!external)
        t->external = NULL;
    else if (!t->external)
        return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has external data without a location", t->name);
    else if (t->external_offset < 0)
        return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has external data at an impossible offset", t->name);
    return 0;
}

int decode_sparse(builder *b, slice m, bz_tensor *t)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    slice values = {m.data, 0}, indices = {0};
    int64_t dims[BZ_MAX_RANK];
    size_t rank = 0;
    int more;
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (f.number == SPARSE_DIMS)
            add_dims(&f, dims, &rank);
        else if (is_bytes(&f, SPARSE_VALUES))
            values = content(&f);
        else if (is_bytes(&f, SPARSE_INDICES))
            indices = content(&f);
    }
    bz_tensor *parts = BZ_NEW(b->arena, bz_tensor, indices.data ? 2 : 1);
    if (more < 0 || decode_tensor(b, values, &parts[0]) || (indices.data && decode_tensor(b, indices, &parts[1])))
        return -1;
    t->name = parts[0].name;
    t->dtype = parts[0].dtype;
    t->values = &parts[0];
    t->indices = indices.data ? &parts[1] : NULL;
    return set_dims(b, t, dims, rank);
}

/* ---- attributes --------------------------------------------------------------------------------- */

enum {
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_G = 6,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TENSORS = 10,
    ATTR_GRAPHS = 11,
    ATTR_TP = 14,
    ATTR_TYPE = 20,
    ATTR_REF = 21,
    ATTR_SPARSE = 22,
    ATTR_FIELDS = 24,
};

/* What an attribute's `type` says, and the field that then holds the value. */
static const struct {
    bz_attr_kind kind;
    uint32_t field;
} ATTR_KINDS[] = {
    [1] = {BZ_ATTR_FLOAT, ATTR_F},        [2] = {BZ_ATTR_INT, ATTR_I},           [3] = {BZ_ATTR_STRING, ATTR_S},
    [4] = {BZ_ATTR_TENSOR, ATTR_T},       [5] = {BZ_ATTR_GRAPH, ATTR_G},         [6] = {BZ_ATTR_FLOATS, ATTR_FLOATS},
    [7] = {BZ_ATTR_INTS, ATTR_INTS},      [8] = {BZ_ATTR_STRINGS, ATTR_STRINGS}, [9] = {BZ_ATTR_TENSORS, ATTR_TENSORS},
    [10] = {BZ_ATTR_GRAPHS, ATTR_GRAPHS}, [11] = {BZ_ATTR_TENSOR, ATTR_SPARSE},  [13] = {BZ_ATTR_TYPE, ATTR_TP},
};
enum { N_ATTR_KINDS = sizeof ATTR_KINDS / sizeof *ATTR_KINDS };

/* An attribute's fields as they stand there: the last of each, and how often it stands. Lists of a few
 * integers (kernels, strides, pads) are nearly all there is, and are read on the way. */
enum { FEW_INTS = 16 };

typedef struct {
    uint32_t seen;                /* bit for each field */
    wire_field last[ATTR_FIELDS]; /* not of the integers */
    size_t count[ATTR_FIELDS];    /* of lists of texts and messages; valid where seen */
    int64_t ints[FEW_INTS];
    size_t n_ints; /* more than FEW_INTS: read them again */
} attr_fields;

static int read_attr(builder *b, slice m, attr_fields *a)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    int more;
    a->seen = 0;
    a->n_ints = 0;
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (f.number >= ATTR_FIELDS)
            continue;
        if (f.number == ATTR_INTS && f.type == 0 && a->n_ints < FEW_INTS) {
            a->ints[a->n_ints++] = (int64_t)f.value;
            a->seen |= 1u << ATTR_INTS;
            continue;
        }
        wire_field *last = &a->last[f.number];
        *last = f;
        a->count[f.number] = a->seen >> f.number & 1 ? a->count[f.number] + 1 : 1;
        a->seen |= 1u << f.number;
        if (f.number != ATTR_INTS)
            continue;
        size_t n = count_varints(last);
        if (n <= FEW_INTS && a->n_ints <= FEW_INTS - n)
            put_varints(last, a->ints + a->n_ints);
        a->n_ints = n > SIZE_MAX - a->n_ints ? SIZE_MAX : a->n_ints + n;
    }
    return more;
}

static bool has(const attr_fields *a, uint32_t field)
{
    return a->seen >> field & 1;
}

static slice attr_bytes(const attr_fields *a, uint32_t field)
{
    return has(a, field) && a->last[field].type == 2 ? content(&a->last[field]) : (slice){0};
}

static const bz_attr *find_attr(const bz_attr *attrs, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (attrs[i].name[0] == name[0] && !strcmp(attrs[i].name, name))
            return &attrs[i];
    return NULL;
}

const bz_attr *bz_node_attr(const bz_node *node, const char *name)
{
    return find_attr(node->attrs, node->n_attrs, name);
}

/* Inside a function an attribute may refer to one of the call: the call's, else the function's
 * default, else it is left out. */
static int resolve_reference(builder *b, scope *s, slice reference, const char *name, bz_attr *a)
{
    const bz_attr *given = b->call ? bz_node_attr(b->call, decode_word(b, reference)) : NULL;
    if (given) {
        *a = *given;
        a->name = name;
        return 0;
    }
    enum { FUNCTION_DEFAULTS = 11 };
    wire_reader r = read_message(b, b->function);
    wire_field f;
    while (b->function.data && wire_next(&r, &f, b->err) > 0) {
        attr_fields fields;
        if (!is_bytes(&f, FUNCTION_DEFAULTS))
            continue;
        if (read_attr(b, content(&f), &fields))
            return -1;
        slice own = attr_bytes(&fields, ATTR_NAME);
        if (own.size != reference.size || memcmp(own.data, reference.data, own.size) != 0 || has(&fields, ATTR_REF))
            continue;
        int result = decode_attr(b, s, content(&f), a);
        a->name = name;
        return result;
    }
    return 1;
}

/* Files from before the type field: whatever is set, is it. */
static unsigned attr_type(const attr_fields *a)
{
    if (has(a, ATTR_TYPE) && a->last[ATTR_TYPE].type == 0 && a->last[ATTR_TYPE].value)
        return a->last[ATTR_TYPE].value < N_ATTR_KINDS ? (unsigned)a->last[ATTR_TYPE].value : 0;
    for (unsigned k = 1; k < N_ATTR_KINDS; k++)
        if (ATTR_KINDS[k].field && has(a, ATTR_KINDS[k].field))
            return k;
    return 0;
}

static int decode_floats(builder *b, slice m, bz_attr *a)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    size_t n = 0;
    while (wire_next(&r, &f, b->err) > 0)
        if (f.number == ATTR_FLOATS && (f.type == 5 || f.type == 2))
            n += f.size / sizeof(float);
    float *list = BZ_NEW(b->arena, float, n), *at = list;
    for (r = read_message(b, m); wire_next(&r, &f, b->err) > 0;)
        if (f.number == ATTR_FLOATS && (f.type == 5 || f.type == 2)) {
            if (f.size)
                memcpy(at, f.data, f.size / sizeof(float) * sizeof(float));
            at += f.size / sizeof(float);
        }
    a->floats = list;
    a->n = (int)n;
    return 0;
}

/* Repeated messages or strings: one call of `item` for each. */
static int decode_items(builder *b, scope *s, slice m, uint32_t field, bz_attr *a)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    while (wire_next(&r, &f, b->err) > 0) {
        if (!is_bytes(&f, field))
            continue;
        if (field == ATTR_STRINGS)
            ((bz_str *)a->strings)[a->n] = (bz_str){decode_text(b, content(&f)), (size_t)f.size};
        else if (field == ATTR_TENSORS && decode_tensor(b, content(&f), &((bz_tensor *)a->tensors)[a->n]))
            return -1;
        else if (field == ATTR_GRAPHS && !(a->graphs[a->n] = build_graph(b, s, content(&f))))
            return -1;
        a->n++;
    }
    return 0;
}

/* Lists: m is the attribute. */
static int decode_list(builder *b, scope *s, slice m, const attr_fields *fields, uint32_t field, bz_attr *a)
{
    size_t n_ints, n = has(fields, field) ? fields->count[field] : 0; /* items at most */
    switch (a->kind) {
    case BZ_ATTR_FLOATS:
        return decode_floats(b, m, a);
    case BZ_ATTR_INTS:
        if (fields->n_ints <= FEW_INTS) {
            a->ints = bz_arena_dup(b->arena, fields->ints, fields->n_ints * sizeof *a->ints);
            a->n = (int)fields->n_ints;
            return 0;
        }
        if (decode_ints(b, m, ATTR_INTS, &a->ints, &n_ints))
            return -1;
        a->n = (int)n_ints;
        return 0;
    case BZ_ATTR_STRINGS:
        a->strings = BZ_NEW(b->arena, bz_str, n);
        return decode_items(b, s, m, ATTR_STRINGS, a);
    case BZ_ATTR_TENSORS:
        a->tensors = BZ_NEW(b->arena, bz_tensor, n);
        return decode_items(b, s, m, ATTR_TENSORS, a);
    default:
        a->graphs = BZ_NEW(b->arena, bz_graph *, n);
        return decode_items(b, s, m, ATTR_GRAPHS, a);
    }
}

/* Single values; `value` is the field that holds it, an empty one where it is missing. */
static int decode_value(builder *b, scope *s, const wire_field *value, bool sparse, bz_attr *a)
{
    slice bytes = value->type == 2 ? content(value) : (slice){0};
    bz_tensor *t;
    switch (a->kind) {
    case BZ_ATTR_FLOAT:
        if (value->type == 5)
            memcpy(&a->f, value->data, sizeof a->f);
        return 0;
    case BZ_ATTR_INT:
        a->i = value->type == 0 ? (int64_t)value->value : 0;
        return 0;
    case BZ_ATTR_STRING:
        a->s = (bz_str){decode_text(b, bytes), bytes.size};
        return 0;
    default:
        break;
    }
    if (!bytes.data)
        return bz_fail(b->err, BZ_BAD_INPUT, "attribute '%s' says it holds something that is not there", a->name);
    if (a->kind == BZ_ATTR_TENSOR) {
        t = BZ_NEW(b->arena, bz_tensor, 1);
        a->tensor = t;
        return sparse ? decode_sparse(b, bytes, t) : decode_tensor(b, bytes, t);
    }
    if (a->kind == BZ_ATTR_TYPE)
        return decode_type(b, bytes, &a->type);
    a->graph = build_graph(b, s, bytes);
    return a->graph ? 0 : -1;
}

static int decode_new_attr(builder *b, scope *s, slice m, bz_attr *a)
{
    static const wire_field NOTHING = {.type = UINT8_MAX};
    attr_fields fields;
    *a = (bz_attr){0};
    if (read_attr(b, m, &fields))
        return -1;
    const char *name = decode_word(b, attr_bytes(&fields, ATTR_NAME));
    if (attr_bytes(&fields, ATTR_REF).size)
        return resolve_reference(b, s, attr_bytes(&fields, ATTR_REF), name, a);
    unsigned k = attr_type(&fields);
    if (!ATTR_KINDS[k].field)
        return 1; /* newer or empty: nothing we could use */
    uint32_t field = ATTR_KINDS[k].field;
    a->name = name;
    a->kind = ATTR_KINDS[k].kind;
    if (field >= ATTR_FLOATS && field <= ATTR_GRAPHS)
        return decode_list(b, s, m, &fields, field, a);
    bool sparse = field == ATTR_SPARSE || (field == ATTR_T && !has(&fields, ATTR_T) && has(&fields, ATTR_SPARSE));
    field = sparse ? ATTR_SPARSE : field;
    return decode_value(b, s, has(&fields, field) ? &fields.last[field] : &NOTHING, sparse, a);
}

/* Its name begins and its value ends the bytes that tell one attribute from the others. */
static recent_attr *recent_place(const builder *b, slice m)
{
    uint64_t begin, end;
    memcpy(&begin, m.data, sizeof begin);
    memcpy(&end, m.data + m.size - sizeof end, sizeof end);
    return &b->model->file->recent_attrs[((begin * 31 + end) * 0x9e3779b97f4a7c15u >> 32) % RECENT];
}

/* Holds the same wherever it stands: no reference, no graph, no payload that was left out. */
static bool is_plain(const builder *b, slice m, const bz_attr *a)
{
    return a->kind == BZ_ATTR_INT || a->kind == BZ_ATTR_FLOAT || a->kind == BZ_ATTR_STRING || a->kind == BZ_ATTR_INTS ||
           a->kind == BZ_ATTR_FLOATS || a->kind == BZ_ATTR_STRINGS ||
           (a->kind == BZ_ATTR_TENSOR && wire_is_whole(&b->model->file->bytes, m.data, m.data + m.size));
}

/* Most nodes of a model have the strides, pads and constants of others, byte for byte: these are read once. */
int decode_attr(builder *b, scope *s, slice m, bz_attr *a)
{
    if (b->call || m.size < sizeof(uint64_t)) /* in a function it may refer to the call's */
        return decode_new_attr(b, s, m, a);
    recent_attr *recent = recent_place(b, m);
    if (recent->bytes.size == m.size && !memcmp(recent->bytes.data, m.data, m.size) && is_plain(b, m, &recent->attr)) {
        *a = recent->attr;
        return 0;
    }
    int result = decode_new_attr(b, s, m, a);
    if (result == 0 && is_plain(b, m, a))
        *recent = (recent_attr){m, *a};
    return result;
}

/* ---- operator sets -------------------------------------------------------------------------------- */

static int decode_opset(builder *b, slice m, bz_opset *set)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    int64_t v = 0;
    int more;
    set->domain = "";
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (is_bytes(&f, 1))
            set->domain = is_text(content(&f), "ai.onnx") ? "" : decode_word(b, content(&f));
        else if (is_number(&f, 2))
            v = (int64_t)f.value;
    }
    set->version = v < 1 ? 1 : v > INT32_MAX ? INT32_MAX : (int)v;
    return more;
}

int decode_opsets(builder *b, slice m, uint32_t field)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    size_t n = 0;
    while (wire_next(&r, &f, b->err) > 0)
        n += is_bytes(&f, field);
    bz_opset *sets = BZ_NEW(b->arena, bz_opset, n);
    b->opsets = sets;
    b->n_opsets = 0;
    for (r = read_message(b, m); wire_next(&r, &f, b->err) > 0;)
        if (is_bytes(&f, field) && decode_opset(b, content(&f), &sets[b->n_opsets++]))
            return -1;
    return 0;
}
