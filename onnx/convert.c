/* Types, tensors and attributes: from protobuf's structures to ours. Strings and lists are not
 * copied, they lie in the model's arena already. */
#include "onnx/build.h"
#include "onnx/wire.h"

#include <stdlib.h>
#include <string.h>

static void *allocate(void *arena, size_t size)
{
    return bz_arena_alloc(arena, size);
}

static void no_free(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

ProtobufCAllocator arena_allocator(bz_arena *arena)
{
    return (ProtobufCAllocator){.alloc = allocate, .free = no_free, .allocator_data = arena};
}

const uint8_t *unknown_field(const ProtobufCMessage *m, unsigned number, int k, size_t *size)
{
    for (unsigned i = 0; i < m->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *f = &m->unknown_fields[i];
        if (f->tag != number || f->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED || k-- > 0)
            continue;
        const uint8_t *at = f->data; /* its own length comes first */
        uint64_t n;
        if (wire_varint(&at, f->data + f->len, &n) || n != (uint64_t)(f->data + f->len - at))
            return NULL;
        *size = (size_t)n;
        return at;
    }
    return NULL;
}

Onnx__AttributeProto *unpack_attribute(builder *b, const uint8_t *data, size_t size)
{
    ProtobufCAllocator allocator = arena_allocator(b->arena);
    return onnx__attribute_proto__unpack(&allocator, size, data);
}

/* ---- types --------------------------------------------------------------------------------- */

static bz_dim named_symbol(builder *b, const char *name)
{
    bz_model *m = b->model;
    uint32_t k = bz_map_add(&m->file->symbols, name, strlen(name), (uint32_t)m->n_symbols);
    if (k == (uint32_t)m->n_symbols) {
        bz_model_symbol(m);
        m->symbols[k] = name;
    }
    return INT64_MIN + k;
}

static int convert_shape(builder *b, const Onnx__TensorShapeProto *p, bz_type *t)
{
    t->rank = -1;
    if (!p)
        return 0;
    if (p->n_dim > BZ_MAX_RANK)
        return bz_fail(b->err, BZ_BAD_INPUT, "a shape has %zu dimensions: more than %d are not supported", p->n_dim,
                       BZ_MAX_RANK);
    bz_dim *dims = BZ_NEW(b->arena, bz_dim, p->n_dim);
    int64_t elements = 1;
    for (size_t i = 0; i < p->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = p->dim[i];
        bool number = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        bool named = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && *d->dim_param;
        /* -1 is how many exporters write "unknown" */
        if (number && d->dim_value < -1)
            return bz_fail(b->err, BZ_BAD_INPUT, "a dimension is negative (%lld)", (long long)d->dim_value);
        if (number && d->dim_value > BZ_MAX_DIM)
            return bz_fail(b->err, BZ_BAD_INPUT, "a dimension is impossibly large (%lld)", (long long)d->dim_value);
        dims[i] = number && d->dim_value >= 0 ? d->dim_value
                  : named                     ? named_symbol(b, d->dim_param)
                                              : bz_model_symbol(b->model);
    }
    for (size_t i = 0; i < p->n_dim; i++)
        if (!bz_is_symbol(dims[i]) && dims[i] &&
            (__builtin_mul_overflow(elements, dims[i], &elements) || elements > BZ_MAX_ELEMENTS))
            return bz_fail(b->err, BZ_BAD_INPUT, "its shape has more elements than any memory could hold");
    t->rank = (int)p->n_dim;
    t->dims = dims;
    return 0;
}

static const bz_type *elem_type(builder *b, const Onnx__TypeProto *p)
{
    static const bz_type NONE = {.kind = BZ_TYPE_NONE, .rank = -1};
    return p ? convert_type(b, p) : &NONE;
}

const bz_type *convert_type(builder *b, const Onnx__TypeProto *p)
{
    bz_type *t = BZ_NEW(b->arena, bz_type, 1);
    t->rank = -1;
    switch (p->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        t->kind = BZ_TYPE_TENSOR;
        t->dtype = (bz_dtype)p->tensor_type->elem_type;
        if (convert_shape(b, p->tensor_type->shape, t))
            return NULL;
        break;
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        t->kind = BZ_TYPE_SPARSE;
        t->dtype = (bz_dtype)p->sparse_tensor_type->elem_type;
        if (convert_shape(b, p->sparse_tensor_type->shape, t))
            return NULL;
        break;
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        t->kind = BZ_TYPE_SEQUENCE;
        t->elem = elem_type(b, p->sequence_type->elem_type);
        break;
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        t->kind = BZ_TYPE_OPTIONAL;
        t->elem = elem_type(b, p->optional_type->elem_type);
        break;
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        t->kind = BZ_TYPE_MAP;
        t->dtype = (bz_dtype)p->map_type->key_type;
        t->elem = elem_type(b, p->map_type->value_type);
        break;
    default:
        t->kind = BZ_TYPE_NONE;
    }
    if ((unsigned)t->dtype >= BZ_N_DTYPES)
        t->dtype = BZ_UNDEFINED;
    return t->elem || (t->kind != BZ_TYPE_SEQUENCE && t->kind != BZ_TYPE_OPTIONAL && t->kind != BZ_TYPE_MAP) ? t : NULL;
}

/* ---- tensors ------------------------------------------------------------------------------- */

static int set_dims(builder *b, bz_tensor *t, const int64_t *dims, size_t rank)
{
    if (rank > BZ_MAX_RANK)
        return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has %zu dimensions: more than %d are not supported", t->name,
                       rank, BZ_MAX_RANK);
    static const int64_t NONE[1];
    t->rank = (int)rank;
    t->dims = rank ? dims : NONE;
    t->n = 1;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has a negative dimension (%lld)", t->name,
                           (long long)dims[i]);
        if (dims[i] > BZ_MAX_DIM || __builtin_mul_overflow(t->n, dims[i], &t->n) || t->n > BZ_MAX_ELEMENTS)
            return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has more elements than any memory could hold", t->name);
    }
    return 0;
}

static int64_t number(const char *text)
{
    char *end;
    long long v = strtoll(text, &end, 10);
    return *end || v < 0 ? -1 : v;
}

/* Where external data lies. The path is checked here, once and for all. */
static int set_external(builder *b, const Onnx__TensorProto *p, bz_tensor *t)
{
    t->external_size = -1;
    for (size_t i = 0; i < p->n_external_data; i++) {
        const Onnx__StringStringEntryProto *e = p->external_data[i];
        const char *key = e->key ? e->key : "", *value = e->value ? e->value : "";
        if (!strcmp(key, "location"))
            t->external = value;
        else if (!strcmp(key, "offset"))
            t->external_offset = number(value);
        else if (!strcmp(key, "length"))
            t->external_size = number(value);
    }
    if (!t->external)
        return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has external data without a location", t->name);
    if (t->external_offset < 0)
        return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has external data at an impossible offset", t->name);
    return 0;
}

int convert_tensor(builder *b, const Onnx__TensorProto *p, bz_tensor *t)
{
    t->name = p->name ? p->name : "";
    t->dtype = (unsigned)p->data_type < BZ_N_DTYPES ? (bz_dtype)p->data_type : BZ_UNDEFINED;
    if (set_dims(b, t, p->dims, p->n_dims))
        return -1;
    wire_place place = {0};
    if (p->raw_data.len == sizeof place)
        memcpy(&place, p->raw_data.data, sizeof place);
    t->at = place.at;
    t->size = place.size;
    if (p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return set_external(b, p, t);
    return 0;
}

int convert_sparse(builder *b, const Onnx__SparseTensorProto *p, bz_tensor *t)
{
    static const Onnx__TensorProto EMPTY = ONNX__TENSOR_PROTO__INIT;
    bz_tensor *values = BZ_NEW(b->arena, bz_tensor, 1), *indices = BZ_NEW(b->arena, bz_tensor, 1);
    if (convert_tensor(b, p->values ? p->values : &EMPTY, values) ||
        (p->indices && convert_tensor(b, p->indices, indices)))
        return -1;
    t->name = values->name;
    t->dtype = values->dtype;
    t->values = values;
    t->indices = p->indices ? indices : NULL;
    return set_dims(b, t, p->dims, p->n_dims);
}

/* ---- attributes ---------------------------------------------------------------------------- */

static const bz_attr *find_attr(const bz_attr *attrs, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(attrs[i].name, name))
            return &attrs[i];
    return NULL;
}

const bz_attr *bz_node_attr(const bz_node *node, const char *name)
{
    return find_attr(node->attrs, node->n_attrs, name);
}

/* Inside a function an attribute may refer to one of the call: the call's, else the function's
 * default, else it is left out. */
static int resolve_reference(builder *b, scope *s, const Onnx__AttributeProto *p, bz_attr *a)
{
    const bz_attr *given = b->call ? bz_node_attr(b->call, p->ref_attr_name) : NULL;
    if (given) {
        *a = *given;
        a->name = p->name ? p->name : "";
        return 0;
    }
    size_t size;
    const uint8_t *data;
    enum { FUNCTION_DEFAULTS = 11 }; /* attribute_proto, newer than our schema */
    for (int k = 0; b->function && (data = unknown_field(&b->function->base, FUNCTION_DEFAULTS, k, &size)); k++) {
        const Onnx__AttributeProto *d = unpack_attribute(b, data, size);
        if (!d || !d->name || strcmp(d->name, p->ref_attr_name) != 0 || d->ref_attr_name)
            continue;
        int result = convert_attr(b, s, d, a);
        a->name = p->name ? p->name : "";
        return result;
    }
    return 1;
}

/* Files from before the type field: whatever is set, is it. */
static Onnx__AttributeProto__AttributeType attribute_type(const Onnx__AttributeProto *p)
{
    if (p->has_type && p->type)
        return p->type;
    return p->has_f           ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT
           : p->has_i         ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT
           : p->has_s         ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING
           : p->t             ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR
           : p->g             ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH
           : p->n_floats      ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS
           : p->n_ints        ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS
           : p->n_strings     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS
           : p->n_tensors     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSORS
           : p->n_graphs      ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS
           : p->sparse_tensor ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR
           : p->tp            ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO
                              : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

static int convert_tensors(builder *b, const Onnx__AttributeProto *p, bz_attr *a)
{
    bz_tensor *t = BZ_NEW(b->arena, bz_tensor, p->n_tensors);
    for (size_t i = 0; i < p->n_tensors; i++)
        if (convert_tensor(b, p->tensors[i], &t[i]))
            return -1;
    a->tensors = t;
    a->n = (int)p->n_tensors;
    return 0;
}

static int convert_graphs(builder *b, scope *s, const Onnx__AttributeProto *p, bz_attr *a)
{
    a->graphs = BZ_NEW(b->arena, bz_graph *, p->n_graphs);
    for (size_t i = 0; i < p->n_graphs; i++)
        if (!(a->graphs[i] = build_graph(b, s, p->graphs[i])))
            return -1;
    a->n = (int)p->n_graphs;
    return 0;
}

static void convert_strings(builder *b, const Onnx__AttributeProto *p, bz_attr *a)
{
    bz_str *strings = BZ_NEW(b->arena, bz_str, p->n_strings);
    for (size_t i = 0; i < p->n_strings; i++)
        strings[i] =
            (bz_str){bz_arena_strn(b->arena, (const char *)p->strings[i].data, p->strings[i].len), p->strings[i].len};
    a->strings = strings;
    a->n = (int)p->n_strings;
}

static int convert_tensor_attr(builder *b, const Onnx__AttributeProto *p, bz_attr *a)
{
    bz_tensor *t = BZ_NEW(b->arena, bz_tensor, 1);
    a->tensor = t;
    return p->t ? convert_tensor(b, p->t, t) : convert_sparse(b, p->sparse_tensor, t);
}

int convert_attr(builder *b, scope *s, const Onnx__AttributeProto *p, bz_attr *a)
{
    a->name = p->name ? p->name : "";
    if (p->ref_attr_name && *p->ref_attr_name)
        return resolve_reference(b, s, p, a);
    Onnx__AttributeProto__AttributeType type = attribute_type(p);
    switch (type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        a->kind = BZ_ATTR_FLOAT;
        a->f = p->f;
        return 0;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        a->kind = BZ_ATTR_INT;
        a->i = p->i;
        return 0;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        a->kind = BZ_ATTR_STRING;
        a->s = (bz_str){bz_arena_strn(b->arena, (const char *)p->s.data, p->s.len), p->s.len};
        return 0;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        a->kind = BZ_ATTR_FLOATS;
        a->floats = p->floats;
        a->n = (int)p->n_floats;
        return 0;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        a->kind = BZ_ATTR_INTS;
        a->ints = p->ints;
        a->n = (int)p->n_ints;
        return 0;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        a->kind = BZ_ATTR_STRINGS;
        convert_strings(b, p, a);
        return 0;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR:
        a->kind = BZ_ATTR_TENSOR;
        if (!p->t && !p->sparse_tensor)
            break;
        return convert_tensor_attr(b, p, a);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSORS:
        a->kind = BZ_ATTR_TENSORS;
        return convert_tensors(b, p, a);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH:
        a->kind = BZ_ATTR_GRAPH;
        if (!p->g)
            break;
        a->graph = build_graph(b, s, p->g);
        return a->graph ? 0 : -1;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS:
        a->kind = BZ_ATTR_GRAPHS;
        return convert_graphs(b, s, p, a);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO:
        a->kind = BZ_ATTR_TYPE;
        if (!p->tp)
            break;
        a->type = convert_type(b, p->tp);
        return a->type ? 0 : -1;
    default:
        return 1; /* newer or empty: nothing we could use */
    }
    return bz_fail(b->err, BZ_BAD_INPUT, "attribute '%s' says it holds something that is not there", a->name);
}

const bz_opset *convert_opsets(builder *b, Onnx__OperatorSetIdProto **p, size_t n)
{
    bz_opset *sets = BZ_NEW(b->arena, bz_opset, n);
    for (size_t i = 0; i < n; i++) {
        const char *domain = p[i]->domain ? p[i]->domain : "";
        int64_t v = p[i]->version;
        sets[i] = (bz_opset){strcmp(domain, "ai.onnx") != 0 ? domain : "", v < 1           ? 1
                                                                           : v > INT32_MAX ? INT32_MAX
                                                                                           : (int)v};
    }
    return sets;
}
