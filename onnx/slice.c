/* Some nodes of a model as a model of their own: messages made anew, with the attributes of the old ones.
 *
 * What a slice looks up is made once for all slices of a model, and each puts back what it changed there: a model of 100,000 nodes in
 * sequences of seven would be walked 14,000 times otherwise. */
#include "base/sort.h"
#include "onnx/file.h"

#include <stdlib.h>
#include <string.h>

struct slice_index {
    int n_values;
    int *maker;    /* [n_values]: the node that makes it; -1: none */
    int *readers;  /* [n_values]: how often nodes outside of the slice read it, or the model gives it */
    int *number;   /* [n_values]: its name in the slice, -1: none yet */
    char *taken;   /* [n_nodes] */
    int *order;    /* [n_nodes]: room for nodes that are taken */
    bz_map protos; /* name of a result -> node of the file's graph */
    bz_arena arena;
};

typedef struct slicer {
    bz_model *model;
    const bz_slice *slice;
    bz_arena *arena;
    int *maker, *readers, *number;
    char *taken;
    int n_numbers;
    int *order, n_order; /* nodes taken, ascending */
    bool counted;        /* their reads are off s->readers */
    const bz_map *protos;
    Onnx__GraphProto *graph;
    bz_error *err;
} slicer;

static char *name_of(slicer *s, bz_value_id v)
{
    if (v == BZ_NO_VALUE)
        return "";
    if (s->number[v] < 0)
        s->number[v] = s->n_numbers++;
    return bz_arena_printf(s->arena, "v%d", s->number[v]);
}

void slice_index_free(struct slice_index *x)
{
    if (!x)
        return;
    bz_map_free(&x->protos);
    bz_arena_free(&x->arena);
    free(x);
}

static void count_reads(const bz_node *node, int *readers, int by)
{
    bz_value_id v;
    for (int k = 0; (v = bz_node_reads(node, k)) != BZ_READS_END; k++)
        if (v != BZ_NO_VALUE)
            readers[v] += by;
}

static struct slice_index *make_index(const bz_model *model)
{
    const bz_graph *g = model->graph;
    const Onnx__GraphProto *from = model->file->proto->graph;
    struct slice_index *x = bz_alloc(1, sizeof *x);
    *x = (struct slice_index){.n_values = model->n_values};
    x->maker = BZ_NEW(&x->arena, int, x->n_values);
    x->readers = BZ_NEW(&x->arena, int, x->n_values);
    x->number = BZ_NEW(&x->arena, int, x->n_values);
    x->taken = BZ_NEW(&x->arena, char, g->n_nodes);
    x->order = BZ_NEW(&x->arena, int, g->n_nodes);
    for (int v = 0; v < x->n_values; v++)
        x->maker[v] = x->number[v] = -1;
    for (int i = 0; i < g->n_nodes; i++) {
        count_reads(&g->nodes[i], x->readers, 1);
        for (int k = 0; k < g->nodes[i].n_out; k++)
            if (g->nodes[i].out[k] != BZ_NO_VALUE)
                x->maker[g->nodes[i].out[k]] = i;
    }
    for (int i = 0; i < g->n_outputs; i++)
        x->readers[g->outputs[i]]++;
    for (size_t i = 0; i < from->n_node; i++)
        for (size_t k = 0; k < from->node[i]->n_output; k++)
            if (*from->node[i]->output[k])
                bz_map_add(&x->protos, from->node[i]->output[k], strlen(from->node[i]->output[k]), (uint32_t)i);
    return x;
}

BZ_SORTS(ascending, int, BZ_ORDER(*p, *q));

/* The window, and what makes its constants: behind each node stand those that it waits for. */
static int take_nodes(slicer *s)
{
    const bz_graph *g = s->model->graph;
    int n = 0;
    for (int i = 0; i < s->slice->n; i++) {
        s->order[n++] = s->slice->node[i];
        s->taken[s->slice->node[i]] = 1;
    }
    s->n_order = n;
    for (int at = 0; at < s->n_order; at++) {
        const bz_node *node = &g->nodes[s->order[at]];
        if (node->function >= 0)
            return bz_fail(s->err, BZ_INCOMPLETE, "'%s' calls a function of the model", node->op);
        for (int k = 0; k < node->n_attrs; k++)
            if (node->attrs[k].kind == BZ_ATTR_GRAPH || node->attrs[k].kind == BZ_ATTR_GRAPHS)
                return bz_fail(s->err, BZ_INCOMPLETE, "'%s' runs a graph of its own", node->op);
        for (int k = 0; k < node->n_in; k++) {
            bz_value_id v = node->in[k];
            int from = v == BZ_NO_VALUE || s->model->values[v].init ? -1 : s->maker[v];
            if (from >= 0 && !s->taken[from] && s->slice->constant[v]) {
                s->taken[from] = 1;
                s->order[s->n_order++] = from;
            }
        }
    }
    qsort(s->order, (size_t)s->n_order, sizeof *s->order, ascending);
    for (int i = 0; i < s->n_order; i++)
        count_reads(&g->nodes[s->order[i]], s->readers, -1);
    s->counted = true;
    return 0;
}

static void put_back(const slicer *s)
{
    for (int i = 0; i < s->n_order; i++) {
        const bz_node *node = &s->model->graph->nodes[s->order[i]];
        s->taken[s->order[i]] = 0;
        if (s->counted)
            count_reads(node, s->readers, 1);
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] != BZ_NO_VALUE)
                s->number[node->in[k]] = -1;
        for (int k = 0; k < node->n_out; k++)
            if (node->out[k] != BZ_NO_VALUE)
                s->number[node->out[k]] = -1;
    }
}

static int put_type(slicer *s, bz_value_id v, Onnx__ValueInfoProto ***list, size_t *n)
{
    const bz_type *t = &s->slice->types[v];
    Onnx__ValueInfoProto *info = BZ_NEW(s->arena, Onnx__ValueInfoProto, 1);
    Onnx__TypeProto *type = BZ_NEW(s->arena, Onnx__TypeProto, 1);
    Onnx__TypeProto__Tensor *tensor = BZ_NEW(s->arena, Onnx__TypeProto__Tensor, 1);
    Onnx__TensorShapeProto *shape = BZ_NEW(s->arena, Onnx__TensorShapeProto, 1);
    if (t->kind != BZ_TYPE_TENSOR || t->rank < 0 || t->dtype == BZ_UNDEFINED)
        return bz_fail(s->err, BZ_INCOMPLETE, "a tensor has no type that is known");
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    shape->n_dim = (size_t)t->rank;
    shape->dim = BZ_NEW(s->arena, Onnx__TensorShapeProto__Dimension *, t->rank);
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] < 0)
            return bz_fail(s->err, BZ_INCOMPLETE, "a tensor's shape depends on data");
        shape->dim[i] = BZ_NEW(s->arena, Onnx__TensorShapeProto__Dimension, 1);
        onnx__tensor_shape_proto__dimension__init(shape->dim[i]);
        shape->dim[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        shape->dim[i]->dim_value = t->dims[i];
    }
    tensor->has_elem_type = 1;
    tensor->elem_type = (int32_t)t->dtype;
    tensor->shape = shape;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    info->name = name_of(s, v);
    info->type = type;
    (*list)[(*n)++] = info;
    return 0;
}

static Onnx__NodeProto *add_node(slicer *s, const char *op, const char *domain, size_t n_in, size_t n_out)
{
    Onnx__NodeProto *p = BZ_NEW(s->arena, Onnx__NodeProto, 1);
    onnx__node_proto__init(p);
    p->op_type = bz_arena_str(s->arena, op);
    p->domain = *domain ? bz_arena_str(s->arena, domain) : NULL;
    p->name = bz_arena_printf(s->arena, "n%zu", s->graph->n_node);
    p->n_input = n_in;
    p->n_output = n_out;
    p->input = BZ_NEW(s->arena, char *, n_in);
    p->output = BZ_NEW(s->arena, char *, n_out);
    s->graph->node[s->graph->n_node++] = p;
    return p;
}

static void put_tensor(slicer *s, char *name, bz_dtype dtype, const int64_t *dims, int rank, void *data, size_t size,
                       Onnx__TensorProto *out)
{
    onnx__tensor_proto__init(out);
    out->name = name;
    out->n_dims = (size_t)rank;
    out->dims = bz_arena_dup(s->arena, dims, (size_t)rank * sizeof *dims);
    out->has_data_type = 1;
    out->data_type = (int32_t)dtype;
    out->has_raw_data = 1;
    out->raw_data = (ProtobufCBinaryData){size, data};
}

static Onnx__TensorProto *add_initializer(slicer *s)
{
    Onnx__TensorProto *t = BZ_NEW(s->arena, Onnx__TensorProto, 1);
    s->graph->initializer[s->graph->n_initializer++] = t;
    return t;
}

/* A hundredth in a real type, as its bytes; 1 in others. */
static void fill_number(bz_dtype t, unsigned char out[16])
{
    float f = 0.01F;
    double d = 0.01;
    uint32_t bits;
    uint16_t half = 0x211f; /* of f16 */
    memset(out, 0, 16);
    memcpy(&bits, &f, sizeof bits);
    if (t == BZ_F32)
        memcpy(out, &f, sizeof f);
    else if (t == BZ_F64)
        memcpy(out, &d, sizeof d);
    else if (t == BZ_F16)
        memcpy(out, &half, sizeof half);
    else if (t == BZ_BF16)
        memcpy(out, (unsigned char *)&bits + 2, 2);
    else
        out[0] = 1;
}

static int put_filled(slicer *s, bz_value_id v, const bz_tensor *t)
{
    Onnx__AttributeProto a;
    Onnx__TensorProto value;
    unsigned char number[16];
    const int64_t one = 1, rank = t->rank;
    if (s->model->opset < 9)
        return bz_fail(s->err, BZ_INCOMPLETE, "the model's operator set %d has no ConstantOfShape: 9 has it",
                       s->model->opset);
    char *shape = bz_arena_printf(s->arena, "s%d", s->n_numbers++);
    put_tensor(s, shape, BZ_I64, &rank, 1, bz_arena_dup(s->arena, t->dims, (size_t)rank * sizeof *t->dims),
               (size_t)rank * sizeof *t->dims, add_initializer(s));
    fill_number(t->dtype, number);
    put_tensor(s, NULL, t->dtype, &one, 1, number, (size_t)bz_dtype_bits(t->dtype) / 8, &value);
    onnx__attribute_proto__init(&a);
    a.name = (char *)"value";
    a.has_type = 1;
    a.type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    a.t = &value;
    size_t size = onnx__attribute_proto__get_packed_size(&a);
    Onnx__NodeProto *node = add_node(s, "ConstantOfShape", "", 1, 1);
    node->n_attribute = 1;
    node->attribute = BZ_NEW(s->arena, ProtobufCBinaryData, 1);
    node->attribute->len = size;
    node->attribute->data = bz_arena_alloc(s->arena, size);
    onnx__attribute_proto__pack(&a, node->attribute->data);
    node->input[0] = shape;
    node->output[0] = name_of(s, v);
    return 0;
}

static int put_constant(slicer *s, bz_value_id v)
{
    const bz_tensor *t = s->model->values[v].init;
    int bits = bz_dtype_bits(t->dtype);
    if (bits < 8)
        return bz_fail(s->err, BZ_INCOMPLETE, "a constant has no elements of whole bytes");
    bool away = s->slice->keep < UINT64_MAX && bz_dtype_is_float(t->dtype) && bz_tensor_is_away(s->model, t);
    if (t->values || away || (uint64_t)t->n > s->slice->keep / ((uint64_t)bits / 8))
        return put_filled(s, v, t);
    size_t size = (size_t)t->n * (size_t)bits / 8;
    void *data = bz_arena_alloc(s->arena, size + 1);
    if (bz_tensor_bytes(s->model, t, data, s->err))
        return -1;
    put_tensor(s, name_of(s, v), t->dtype, t->dims, t->rank, data, size, add_initializer(s));
    return 0;
}

static bool is_made_inside(const slicer *s, bz_value_id v)
{
    return s->maker[v] >= 0 && s->taken[s->maker[v]];
}

/* What a node reads: constants stand before it, the rest that nobody in here makes are inputs. */
static int put_operands(slicer *s, const bz_node *node)
{
    for (int k = 0; k < node->n_in; k++) {
        bz_value_id v = node->in[k];
        if (v == BZ_NO_VALUE || s->number[v] >= 0 || is_made_inside(s, v))
            continue;
        if (s->model->values[v].init ? put_constant(s, v) : put_type(s, v, &s->graph->input, &s->graph->n_input))
            return -1;
    }
    return 0;
}

static int put_node(slicer *s, const bz_node *node)
{
    const Onnx__GraphProto *from = s->model->file->proto->graph;
    if (put_operands(s, node))
        return -1;
    Onnx__NodeProto *p = add_node(s, node->op, node->domain, (size_t)node->n_in, (size_t)node->n_out);
    for (int k = 0; k < node->n_in; k++)
        p->input[k] = name_of(s, node->in[k]);
    uint32_t at = BZ_MAP_NONE;
    for (int k = 0; k < node->n_out; k++) {
        p->output[k] = name_of(s, node->out[k]);
        const char *name = node->out[k] == BZ_NO_VALUE ? "" : s->model->values[node->out[k]].name;
        if (*name && at == BZ_MAP_NONE)
            at = bz_map_get(s->protos, name, strlen(name));
    }
    if (at == BZ_MAP_NONE)
        return bz_fail(s->err, BZ_INCOMPLETE, "'%s' has no result with a name", node->op);
    p->n_attribute = from->node[at]->n_attribute;
    p->attribute = from->node[at]->attribute;
    return 0;
}

/* What nodes outside read, or the model gives; where there is none, what the last node makes. */
static int put_outputs(slicer *s)
{
    const bz_graph *g = s->model->graph;
    bz_value_id v;
    for (int pass = 0; pass < 2 && !s->graph->n_output; pass++)
        for (int i = pass ? s->slice->n - 1 : 0; i < s->slice->n; i++) {
            const bz_node *node = &g->nodes[s->slice->node[i]];
            for (int k = 0; k < node->n_out; k++)
                if ((v = node->out[k]) != BZ_NO_VALUE && (s->readers[v] || (pass && !k)) &&
                    put_type(s, v, &s->graph->output, &s->graph->n_output))
                    return -1;
        }
    return 0;
}

static int make_graph(slicer *s)
{
    const bz_graph *g = s->model->graph;
    size_t values = 0;
    if (take_nodes(s))
        return -1;
    for (int i = 0; i < s->n_order; i++)
        values += (size_t)g->nodes[s->order[i]].n_in + (size_t)g->nodes[s->order[i]].n_out;
    onnx__graph_proto__init(s->graph);
    s->graph->name = (char *)"slice";
    s->graph->node = BZ_NEW(s->arena, Onnx__NodeProto *, (size_t)s->n_order + values);
    s->graph->initializer = BZ_NEW(s->arena, Onnx__TensorProto *, values);
    s->graph->input = BZ_NEW(s->arena, Onnx__ValueInfoProto *, values);
    s->graph->output = BZ_NEW(s->arena, Onnx__ValueInfoProto *, values);
    for (int i = 0; i < s->n_order; i++)
        if (put_node(s, &g->nodes[s->order[i]]))
            return -1;
    return put_outputs(s);
}

int bz_model_slice(bz_model *model, const bz_slice *slice, bz_buf *out, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    Onnx__GraphProto graph;
    Onnx__ModelProto m;
    bz_model_file *file = model->file;
    if (!file->slices || file->slices->n_values != model->n_values) {
        slice_index_free(file->slices);
        file->slices = make_index(model);
    }
    const struct slice_index *x = file->slices;
    slicer s = {.model = model,
                .slice = slice,
                .arena = &arena,
                .maker = x->maker,
                .readers = x->readers,
                .number = x->number,
                .taken = x->taken,
                .order = x->order,
                .protos = &x->protos,
                .graph = &graph,
                .err = err};
    int rc = make_graph(&s);
    if (!rc) {
        onnx__model_proto__init(&m);
        m.has_ir_version = 1;
        m.ir_version = model->ir_version;
        m.producer_name = (char *)"benanza";
        m.n_opset_import = model->file->proto->n_opset_import;
        m.opset_import = model->file->proto->opset_import;
        m.graph = &graph;
        size_t size = onnx__model_proto__get_packed_size(&m);
        onnx__model_proto__pack(&m, (uint8_t *)bz_buf_extend(out, size));
    }
    put_back(&s);
    return rc;
}
