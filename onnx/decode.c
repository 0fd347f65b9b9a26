/* Types, tensors and attributes, from their messages. */
#include "onnx/build.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TYPE_DEPTH = 64 };

static bz_dtype to_dtype(int32_t v)
{
    return v >= 0 && v < BZ_N_DTYPES ? (bz_dtype)v : BZ_UNDEFINED;
}

static bz_dim named_symbol(builder *b, const char *name)
{
    bz_model *m = b->model;
    uint32_t k = bz_map_add(&m->file->symbols, name, strlen(name), (uint32_t)m->n_symbols);
    if ((int)k == m->n_symbols) {
        bz_model_symbol(m);
        m->symbols[k] = name;
    }
    return INT64_MIN + k;
}

/* -1 is how many exporters write "unknown", too. */
static int decode_dim(builder *b, const Onnx__TensorShapeProto__Dimension *p, bz_dim *d)
{
    bool number = p->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    bool name = p->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && *text_of(p->dim_param);
    if (number && p->dim_value < -1)
        return bz_fail(b->err, BZ_BAD_INPUT, "a dimension is negative (%lld)", (long long)p->dim_value);
    *d = number && p->dim_value >= 0 ? p->dim_value : name ? named_symbol(b, p->dim_param) : bz_model_symbol(b->model);
    return 0;
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

/* Of a dense or a sparse tensor. */
static int decode_tensor_type(builder *b, int32_t elem_type, const Onnx__TensorShapeProto *shape, bz_type *t)
{
    t->dtype = to_dtype(elem_type);
    if (!shape)
        return 0;
    if (shape->n_dim > BZ_MAX_RANK)
        return bz_fail(b->err, BZ_BAD_INPUT, "a shape has %zu dimensions: more than %d are not supported", shape->n_dim,
                       BZ_MAX_RANK);
    bz_dim *dims = bz_arena_take(b->arena, shape->n_dim * sizeof *dims);
    for (size_t i = 0; i < shape->n_dim; i++)
        if (decode_dim(b, shape->dim[i], &dims[i]))
            return -1;
    t->rank = (int)shape->n_dim;
    t->dims = dims;
    return bz_dims_check(t->dims, t->rank, b->err);
}

static int decode_type_at(builder *b, const Onnx__TypeProto *p, int depth, bz_type *t);

/* What a sequence, optional or map holds. */
static int decode_elem_type(builder *b, const Onnx__TypeProto *p, int depth, bz_type *t)
{
    static const Onnx__TypeProto NOTHING = ONNX__TYPE_PROTO__INIT;
    bz_type *elem = BZ_NEW(b->arena, bz_type, 1);
    t->elem = elem;
    return decode_type_at(b, p ? p : &NOTHING, depth + 1, elem);
}

static int decode_type_at(builder *b, const Onnx__TypeProto *p, int depth, bz_type *t)
{
    if (depth > MAX_TYPE_DEPTH)
        return bz_fail(b->err, BZ_BAD_INPUT, "types are nested more than %d deep", MAX_TYPE_DEPTH);
    *t = (bz_type){.kind = BZ_TYPE_NONE, .rank = -1};
    switch (p->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        t->kind = BZ_TYPE_TENSOR;
        return decode_tensor_type(b, p->tensor_type->elem_type, p->tensor_type->shape, t);
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        t->kind = BZ_TYPE_SPARSE;
        return decode_tensor_type(b, p->sparse_tensor_type->elem_type, p->sparse_tensor_type->shape, t);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        t->kind = BZ_TYPE_SEQUENCE;
        return decode_elem_type(b, p->sequence_type->elem_type, depth, t);
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        t->kind = BZ_TYPE_OPTIONAL;
        return decode_elem_type(b, p->optional_type->elem_type, depth, t);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        t->kind = BZ_TYPE_MAP;
        t->dtype = to_dtype(p->map_type->key_type);
        return decode_elem_type(b, p->map_type->value_type, depth, t);
    default:
        return 0;
    }
}

int decode_type(builder *b, const Onnx__TypeProto *p, const bz_type **t)
{
    bz_type *type = bz_arena_take(b->arena, sizeof *type);
    *t = type;
    return decode_type_at(b, p, 0, type);
}

static int set_dims(builder *b, bz_tensor *t, size_t rank, const int64_t *dims)
{
    static const int64_t SCALAR[1];
    if (rank > BZ_MAX_RANK)
        return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has %zu dimensions: more than %d are not supported", t->name,
                       rank, BZ_MAX_RANK);
    t->rank = (int)rank;
    t->dims = rank ? dims : SCALAR;
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

static int decode_external(builder *b, const Onnx__TensorProto *p, bz_tensor *t)
{
    if (p->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return 0;
    for (size_t i = 0; i < p->n_external_data; i++) {
        const char *key = text_of(p->external_data[i]->key), *value = text_of(p->external_data[i]->value);
        if (!strcmp(key, "location"))
            t->external = value;
        else if (!strcmp(key, "offset"))
            t->external_offset = to_number(value);
        else if (!strcmp(key, "length"))
            t->external_size = to_number(value);
    }
    if (!t->external)
        return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has external data without a location", t->name);
    if (t->external_offset < 0)
        return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has external data at an impossible offset", t->name);
    return 0;
}

int decode_tensor(builder *b, const Onnx__TensorProto *p, bz_tensor *t)
{
    for (size_t i = 0; i < p->n_left_out; i++)
        if (!wire_left_out(&b->model->file->bytes, p, i))
            return bz_fail(b->err, BZ_BAD_INPUT, "tensor '%s' has a field that is no file's", text_of(p->name));
    t->name = text_of(p->name);
    t->proto = p;
    t->dtype = to_dtype(p->data_type);
    t->external_size = -1;
    return set_dims(b, t, p->n_dims, p->dims) || decode_external(b, p, t) ? -1 : 0;
}

int decode_sparse(builder *b, const Onnx__SparseTensorProto *p, bz_tensor *t)
{
    static const Onnx__TensorProto NOTHING = ONNX__TENSOR_PROTO__INIT;
    bz_tensor *parts = BZ_NEW(b->arena, bz_tensor, 2);
    if (decode_tensor(b, p->values ? p->values : &NOTHING, &parts[0]) ||
        (p->indices && decode_tensor(b, p->indices, &parts[1])))
        return -1;
    t->name = parts[0].name;
    t->dtype = parts[0].dtype;
    t->values = &parts[0];
    t->indices = p->indices ? &parts[1] : NULL;
    return set_dims(b, t, p->n_dims, p->dims);
}

const bz_attr *bz_node_attr(const bz_node *node, const char *name)
{
    for (int i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].name[0] == name[0] && !strcmp(node->attrs[i].name, name))
            return &node->attrs[i];
    return NULL;
}

static int fill_attr(builder *b, scope *s, const Onnx__AttributeProto *p, bz_attr *a);

/* Inside a function an attribute may refer to one of the call: the call's, else the function's
 * default, else it is left out. */
static int resolve_reference(builder *b, scope *s, const Onnx__AttributeProto *p, bz_attr *a)
{
    const bz_attr *given = b->call ? bz_node_attr(b->call, p->ref_attr_name) : NULL;
    int result = given ? 0 : 1;
    if (given)
        *a = *given;
    for (size_t i = 0; result == 1 && b->function && i < b->function->n_attribute_proto; i++) {
        const Onnx__AttributeProto *own = b->function->attribute_proto[i];
        if (!own->ref_attr_name && !strcmp(text_of(own->name), p->ref_attr_name)) {
            result = fill_attr(b, s, own, a);
            break;
        }
    }
    a->name = text_of(p->name);
    return result;
}

/* Files from before the type field: whatever is set, is it. */
static bz_attr_kind attr_kind(const Onnx__AttributeProto *p)
{
    static const bz_attr_kind KINDS[] = {
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT] = BZ_ATTR_FLOAT,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT] = BZ_ATTR_INT,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING] = BZ_ATTR_STRING,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR] = BZ_ATTR_TENSOR,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH] = BZ_ATTR_GRAPH,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS] = BZ_ATTR_FLOATS,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS] = BZ_ATTR_INTS,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS] = BZ_ATTR_STRINGS,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSORS] = BZ_ATTR_TENSORS,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS] = BZ_ATTR_GRAPHS,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR] = BZ_ATTR_TENSOR,
        [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO] = BZ_ATTR_TYPE,
    };
    if (p->type) /* newer ones: nothing we could use */
        return p->type > 0 && (size_t)p->type < sizeof KINDS / sizeof *KINDS ? KINDS[p->type] : BZ_ATTR_NONE;
    return p->has_f           ? BZ_ATTR_FLOAT
           : p->has_i         ? BZ_ATTR_INT
           : p->has_s         ? BZ_ATTR_STRING
           : p->t             ? BZ_ATTR_TENSOR
           : p->g             ? BZ_ATTR_GRAPH
           : p->n_floats      ? BZ_ATTR_FLOATS
           : p->n_ints        ? BZ_ATTR_INTS
           : p->n_strings     ? BZ_ATTR_STRINGS
           : p->n_tensors     ? BZ_ATTR_TENSORS
           : p->n_graphs      ? BZ_ATTR_GRAPHS
           : p->sparse_tensor ? BZ_ATTR_TENSOR
           : p->tp            ? BZ_ATTR_TYPE
                              : BZ_ATTR_NONE;
}

/* A field of type `bytes` does not end with a zero. */
static bz_str decode_bytes(builder *b, ProtobufCBinaryData bytes)
{
    return (bz_str){bz_arena_strn(b->arena, (const char *)bytes.data, bytes.len), bytes.len};
}

/* Lists of what is more than a number. */
static int decode_list(builder *b, scope *s, const Onnx__AttributeProto *p, bz_attr *a)
{
    if (a->kind == BZ_ATTR_STRINGS) {
        bz_str *strings = BZ_NEW(b->arena, bz_str, p->n_strings);
        a->strings = strings;
        for (a->n = 0; (size_t)a->n < p->n_strings; a->n++)
            strings[a->n] = decode_bytes(b, p->strings[a->n]);
        return 0;
    }
    if (a->kind == BZ_ATTR_TENSORS) {
        bz_tensor *tensors = BZ_NEW(b->arena, bz_tensor, p->n_tensors);
        a->tensors = tensors;
        for (a->n = 0; (size_t)a->n < p->n_tensors; a->n++)
            if (decode_tensor(b, p->tensors[a->n], &tensors[a->n]))
                return -1;
        return 0;
    }
    a->graphs = BZ_NEW(b->arena, bz_graph *, p->n_graphs);
    for (a->n = 0; (size_t)a->n < p->n_graphs; a->n++)
        if (!(a->graphs[a->n] = build_graph(b, s, p->graphs[a->n])))
            return -1;
    return 0;
}

/* A tensor, dense or sparse, a type or a graph. */
static int decode_message(builder *b, scope *s, const Onnx__AttributeProto *p, bz_attr *a)
{
    if (a->kind == BZ_ATTR_TENSOR && (p->t || p->sparse_tensor)) {
        bool sparse = !p->t || p->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR;
        bz_tensor *t = BZ_NEW(b->arena, bz_tensor, 1);
        a->tensor = t;
        if (!sparse || p->sparse_tensor)
            return sparse ? decode_sparse(b, p->sparse_tensor, t) : decode_tensor(b, p->t, t);
    }
    if (a->kind == BZ_ATTR_TYPE && p->tp)
        return decode_type(b, p->tp, &a->type);
    if (a->kind == BZ_ATTR_GRAPH && p->g)
        return (a->graph = build_graph(b, s, p->g)) ? 0 : -1;
    return bz_fail(b->err, BZ_BAD_INPUT, "attribute '%s' says it holds something that is not there", a->name);
}

static int fill_attr(builder *b, scope *s, const Onnx__AttributeProto *p, bz_attr *a)
{
    if (p->ref_attr_name && *p->ref_attr_name)
        return resolve_reference(b, s, p, a);
    *a = (bz_attr){.name = text_of(p->name), .kind = attr_kind(p)};
    switch (a->kind) {
    case BZ_ATTR_NONE:
        return 1;
    case BZ_ATTR_FLOAT:
        a->f = p->f;
        return 0;
    case BZ_ATTR_INT:
        a->i = p->i;
        return 0;
    case BZ_ATTR_STRING:
        a->s = decode_bytes(b, p->s);
        return 0;
    case BZ_ATTR_FLOATS:
        a->n = (int)p->n_floats;
        a->floats = p->floats;
        return 0;
    case BZ_ATTR_INTS:
        a->n = (int)p->n_ints;
        a->ints = p->ints;
        return 0;
    case BZ_ATTR_STRINGS:
    case BZ_ATTR_TENSORS:
    case BZ_ATTR_GRAPHS:
        return decode_list(b, s, p, a);
    default:
        return decode_message(b, s, p, a);
    }
}

int decode_attr(builder *b, scope *s, ProtobufCBinaryData bytes, bz_attr *a)
{
    const Onnx__AttributeProto *p = unpack_attribute(b->model->file, bytes, b->err);
    return p ? fill_attr(b, s, p, a) : -1;
}

void decode_opsets(builder *b, size_t n, Onnx__OperatorSetIdProto *const *imported)
{
    bz_opset *sets = BZ_NEW(b->arena, bz_opset, n);
    for (size_t i = 0; i < n; i++) {
        int64_t v = imported[i]->version;
        sets[i] = (bz_opset){domain_of(imported[i]->domain), v < 1 ? 1 : v > INT32_MAX ? INT32_MAX : (int)v};
    }
    b->opsets = sets;
    b->n_opsets = (int)n;
}
