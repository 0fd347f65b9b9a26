/* The graph interface of cuDNN: tensors and operations, as its descriptors have them. */
#include "runtime/cudnn/graph.h"

#include <stdlib.h>

void graph_forget(cudnnBackendDescriptor_t *d)
{
    if (*d)
        cudnnBackendDestroyDescriptor(*d);
    *d = NULL;
}

cudnnStatus_t graph_set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        int64_t n, const void *v)
{
    return cudnnBackendSetAttribute(d, name, type, n, v);
}

cudnnStatus_t graph_set_desc(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t v)
{
    return graph_set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &v);
}

/* The library is asked only as long as it did all that it was asked for. */
#define ASK(c, call_) ((c)->graph->status ? (void)0 : (void)((c)->graph->status = (call_)))

static void refuse(call *c)
{
    ASK(c, CUDNN_STATUS_NOT_SUPPORTED);
}

cudnnDataType_t graph_type(call *c, bz_dtype t)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    if (!cudnn_dtype(t, &type))
        refuse(c);
    return type;
}

static void set(call *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t n, const void *v)
{
    ASK(c, graph_set(d, name, type, n, v));
}

static void set_desc(call *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t v)
{
    ASK(c, graph_set_desc(d, name, v));
}

static void set_int(call *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int64_t v)
{
    set(c, d, name, CUDNN_TYPE_INT64, 1, &v);
}

static void set_bool(call *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, bool v)
{
    set(c, d, name, CUDNN_TYPE_BOOLEAN, 1, &v);
}

static void set_float(call *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, float v)
{
    set(c, d, name, CUDNN_TYPE_FLOAT, 1, &v);
}

static void set_type(call *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnDataType_t v)
{
    set(c, d, name, CUDNN_TYPE_DATA_TYPE, 1, &v);
}

/* cudaMalloc aligns to 256 bytes; engines want 16. */
static int add_tensor(call *c, const graph_tensor *kept, cudnnDataType_t type, int rank, const int64_t *dim,
                      const int64_t *stride)
{
    struct graph_call *g = c->graph;
    if (g->n_tensors == GRAPH_TENSORS)
        refuse(c);
    if (g->status)
        return 0;
    graph_tensor *t = &g->tensor[g->n_tensors++];
    *t = *kept;
    ASK(c, cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &t->desc));
    set_type(c, t->desc, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set(c, t->desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dim);
    set(c, t->desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, stride);
    set_int(c, t->desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, g->n_tensors);
    set_int(c, t->desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
    if (t->scales)
        set(c, t->desc, CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE, 1,
            &(cudnnBackendTensorReordering_t){CUDNN_TENSOR_REORDERING_F8_128x4});
    if (t->ragged)
        set_desc(c, t->desc, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, g->tensor[t->ragged - 1].desc);
    if (t->number)
        set_bool(c, t->desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    else if (t->memory.operand < 0 && !t->cell && !t->room)
        set_bool(c, t->desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    ASK(c, cudnnBackendFinalize(t->desc));
    return g->n_tensors - 1;
}

int graph_tensor_add(call *c, int operand, const bz_cuda_layout *layout, int rank, const int64_t *dim,
                     const int64_t *stride)
{
    return graph_ragged_add(c, operand, layout, rank, dim, stride, -1);
}

int graph_ragged_add(call *c, int operand, const bz_cuda_layout *layout, int rank, const int64_t *dim,
                     const int64_t *stride, int from)
{
    graph_tensor kept = {.memory = {.operand = operand, .layout = *layout}, .ragged = from + 1};
    return add_tensor(c, &kept, graph_type(c, layout->dtype), rank, dim, stride);
}

int graph_between_add(call *c, cudnnDataType_t type, int rank, const int64_t *dim, const int64_t *stride)
{
    return add_tensor(c, &(graph_tensor){.memory = {.operand = -1}}, type, rank, dim, stride);
}

/* One number, wherever it is kept. */
static int add_one(call *c, const graph_tensor *kept, cudnnDataType_t type, int rank)
{
    static const int64_t ONES[CUDNN_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    return add_tensor(c, kept, type, rank, ONES, ONES);
}

static size_t elements_of(int rank, const int64_t *dim)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= (size_t)dim[i];
    return n;
}

int graph_scales_add(call *c, bz_dtype of, int rank, const int64_t *dim, const int64_t *stride)
{
    graph_tensor kept = {.memory = {.operand = -1},
                         .cell = true,
                         .value = {.whole = bz_cuda_blocks_of(of).one},
                         .scales = elements_of(rank, dim)};
    return add_tensor(c, &kept, of == BZ_F4E2M1 ? CUDNN_DATA_FP8_E4M3 : CUDNN_DATA_FP8_E8M0, rank, dim, stride);
}

int graph_room_add(call *c, int rank, const int64_t *dim, const int64_t *stride)
{
    graph_tensor kept = {.memory = {.operand = -1}, .room = elements_of(rank, dim) * sizeof(float)};
    return add_tensor(c, &kept, CUDNN_DATA_FLOAT, rank, dim, stride);
}

int graph_wholes_add(call *c, int32_t *numbers, int rank, const int64_t *dim)
{
    int64_t stride[CUDNN_MAX_RANK], n = 1;
    int before = c->graph->n_tensors;
    for (int i = rank; i--; n *= dim[i])
        stride[i] = n;
    graph_tensor kept = {.memory = {.operand = -1}, .cell = true, .whole = numbers, .wholes = (size_t)n};
    int added = add_tensor(c, &kept, CUDNN_DATA_INT32, rank, dim, stride);
    if (c->graph->n_tensors == before)
        free(numbers);
    return added;
}

int graph_number_add(call *c, float value, int rank)
{
    graph_tensor kept = {.memory = {.operand = -1}, .number = true, .value = {.real = value}};
    return add_one(c, &kept, CUDNN_DATA_FLOAT, rank);
}

int graph_count_add(call *c, int32_t value, int rank)
{
    graph_tensor kept = {.memory = {.operand = -1}, .number = true, .value = {.whole = value}};
    return add_one(c, &kept, CUDNN_DATA_INT32, rank);
}

int graph_cell_add(call *c, float value, int rank)
{
    graph_tensor kept = {.memory = {.operand = -1}, .cell = true, .value = {.real = value}};
    return add_one(c, &kept, CUDNN_DATA_FLOAT, rank);
}

/* One more of a list of descriptors. */
static cudnnBackendDescriptor_t create(call *c, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *list,
                                       int *n)
{
    if (*n == GRAPH_OPS)
        refuse(c);
    ASK(c, cudnnBackendCreateDescriptor(type, &list[*n]));
    return c->graph->status ? NULL : list[(*n)++];
}

static cudnnBackendDescriptor_t new_part(call *c, cudnnBackendDescriptorType_t type)
{
    return create(c, type, c->graph->part, &c->graph->n_parts);
}

static cudnnBackendDescriptor_t new_op(call *c, cudnnBackendDescriptorType_t type)
{
    return create(c, type, c->graph->op, &c->graph->n_ops);
}

/* An operation with the descriptor of what it does. */
static cudnnBackendDescriptor_t new_op_of(call *c, cudnnBackendDescriptorType_t type, cudnnBackendAttributeName_t name,
                                          cudnnBackendDescriptor_t what)
{
    ASK(c, cudnnBackendFinalize(what));
    cudnnBackendDescriptor_t op = new_op(c, type);
    set_desc(c, op, name, what);
    return op;
}

/* Attributes whose tensor is -1 are left out. */
typedef struct named {
    cudnnBackendAttributeName_t name;
    int tensor;
} named;

#define SET_TENSORS(c, op, ...)                                                                                        \
    set_tensors((c), (op), (const named[]){__VA_ARGS__}, sizeof((const named[]){__VA_ARGS__}) / sizeof(named))
static void set_tensors(call *c, cudnnBackendDescriptor_t op, const named *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].tensor >= 0)
            set_desc(c, op, list[i].name, c->graph->tensor[list[i].tensor].desc);
}

/* With its tensors an operation is complete; its result is the last of them. */
#define FINISH(c, op, ...)                                                                                             \
    finish((c), (op), (const named[]){__VA_ARGS__}, sizeof((const named[]){__VA_ARGS__}) / sizeof(named))
static int finish(call *c, cudnnBackendDescriptor_t op, const named *list, size_t n)
{
    set_tensors(c, op, list, n);
    ASK(c, cudnnBackendFinalize(op));
    return list[n - 1].tensor;
}

static const struct {
    bz_fn fn;
    cudnnPointwiseMode_t mode, slope;        /* slope: of the gradient; 0: there is none */
    cudnnBackendAttributeName_t alpha, beta; /* where the parameters go; 0: nowhere */
} FUNCTIONS[] = {
    {BZ_FN_NONE, CUDNN_POINTWISE_IDENTITY, 0, 0, 0},
    {BZ_FN_BIAS, CUDNN_POINTWISE_ADD, 0, 0, 0},
    {BZ_FN_ADD, CUDNN_POINTWISE_ADD, 0, 0, 0},
    {BZ_FN_SUB, CUDNN_POINTWISE_SUB, 0, 0, 0},
    {BZ_FN_MUL, CUDNN_POINTWISE_MUL, 0, 0, 0},
    {BZ_FN_DIV, CUDNN_POINTWISE_DIV, 0, 0, 0},
    {BZ_FN_MAX, CUDNN_POINTWISE_MAX, 0, 0, 0},
    {BZ_FN_MIN, CUDNN_POINTWISE_MIN, 0, 0, 0},
    {BZ_FN_RELU, CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_RELU_BWD, 0, 0},
    {BZ_FN_LEAKY, CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_RELU_BWD, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0},
    {BZ_FN_CLIP, CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_RELU_BWD, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP,
     CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP},
    {BZ_FN_ELU, CUDNN_POINTWISE_ELU_FWD, CUDNN_POINTWISE_ELU_BWD, CUDNN_ATTR_POINTWISE_ELU_ALPHA, 0},
    {BZ_FN_SIGMOID, CUDNN_POINTWISE_SIGMOID_FWD, CUDNN_POINTWISE_SIGMOID_BWD, 0, 0},
    {BZ_FN_TANH, CUDNN_POINTWISE_TANH_FWD, CUDNN_POINTWISE_TANH_BWD, 0, 0},
    {BZ_FN_GELU_ERF, CUDNN_POINTWISE_GELU_FWD, CUDNN_POINTWISE_GELU_BWD, 0, 0},
    {BZ_FN_GELU_TANH, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, CUDNN_POINTWISE_GELU_APPROX_TANH_BWD, 0, 0},
    {BZ_FN_SWISH, CUDNN_POINTWISE_SWISH_FWD, CUDNN_POINTWISE_SWISH_BWD, CUDNN_ATTR_POINTWISE_SWISH_BETA, 0},
    {BZ_FN_SOFTPLUS, CUDNN_POINTWISE_SOFTPLUS_FWD, CUDNN_POINTWISE_SOFTPLUS_BWD, 0, 0},
    {BZ_FN_EXP, CUDNN_POINTWISE_EXP, 0, 0, 0},
    {BZ_FN_LOG, CUDNN_POINTWISE_LOG, 0, 0, 0},
    {BZ_FN_SQRT, CUDNN_POINTWISE_SQRT, 0, 0, 0},
    {BZ_FN_ABS, CUDNN_POINTWISE_ABS, 0, 0, 0},
    {BZ_FN_POW, CUDNN_POINTWISE_POW, 0, 0, 0},
};

static cudnnBackendDescriptor_t new_pointwise(call *c, cudnnPointwiseMode_t mode, cudnnDataType_t precision)
{
    cudnnBackendDescriptor_t pointwise = new_part(c, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(c, pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(c, pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
    return pointwise;
}

/* x, and b and t where they are not -1, into y. */
static int add_pointwise(call *c, cudnnBackendDescriptor_t pointwise, int x, int b, int t, int y)
{
    cudnnBackendDescriptor_t op = new_op_of(c, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                                            CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
    return FINISH(c, op, {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x}, {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                  {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t}, {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y});
}

/* The row of a function; -1. */
static int row_of(bz_fn fn)
{
    int i = (int)(sizeof FUNCTIONS / sizeof *FUNCTIONS);
    while (i-- && FUNCTIONS[i].fn != fn)
        ;
    return i;
}

static cudnnBackendDescriptor_t new_function(call *c, int row, cudnnPointwiseMode_t mode, float alpha, float beta)
{
    cudnnBackendDescriptor_t pointwise = new_pointwise(c, mode, CUDNN_DATA_FLOAT);
    if (FUNCTIONS[row].alpha)
        set(c, pointwise, FUNCTIONS[row].alpha, CUDNN_TYPE_DOUBLE, 1, &(double){(double)alpha});
    if (FUNCTIONS[row].beta)
        set(c, pointwise, FUNCTIONS[row].beta, CUDNN_TYPE_DOUBLE, 1, &(double){(double)beta});
    return pointwise;
}

int graph_function_add(call *c, bz_fn fn, float alpha, float beta, int x, int b, int y)
{
    int row = row_of(fn);
    if (row < 0)
        refuse(c);
    return row < 0 ? y : add_pointwise(c, new_function(c, row, FUNCTIONS[row].mode, alpha, beta), x, b, -1, y);
}

void graph_slope_add(call *c, bz_fn fn, float alpha, float beta, int x, int dy, int dx)
{
    int row = row_of(fn);
    if (row < 0 || !FUNCTIONS[row].slope) {
        refuse(c);
        return;
    }
    cudnnBackendDescriptor_t pointwise = new_function(c, row, FUNCTIONS[row].slope, alpha, beta),
                             op = new_op_of(c, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                                            CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
    FINISH(c, op, {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x}, {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy},
           {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx});
}

int graph_index_add(call *c, int64_t axis, int x, int y)
{
    cudnnBackendDescriptor_t pointwise = new_pointwise(c, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT);
    set_int(c, pointwise, CUDNN_ATTR_POINTWISE_AXIS, axis);
    return add_pointwise(c, pointwise, x, -1, -1, y);
}

int graph_compare_add(call *c, cudnnPointwiseMode_t how, int a, int b, int y)
{
    return add_pointwise(c, new_pointwise(c, how, CUDNN_DATA_BOOLEAN), a, b, -1, y);
}

int graph_whole_add(call *c, cudnnPointwiseMode_t how, int a, int b, int y)
{
    return add_pointwise(c, new_pointwise(c, how, CUDNN_DATA_INT32), a, b, -1, y);
}

int graph_select_add(call *c, int x, int otherwise, int where, int y)
{
    return add_pointwise(c, new_pointwise(c, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT), x, otherwise, where, y);
}

int graph_reduction_add(call *c, cudnnReduceTensorOp_t what, int x, int y)
{
    cudnnBackendDescriptor_t reduction = new_part(c, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set_type(c, reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(c, reduction, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &what);
    cudnnBackendDescriptor_t op =
        new_op_of(c, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
    return FINISH(c, op, {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y});
}

/* Here padding may differ between the ends. conv and deconv have the same members. */
static cudnnBackendDescriptor_t new_conv(call *c)
{
    const bz_problem *p = c->problem;
    int n = bz_extent_rank(p->conv.x) - 2, flat = n < 2 ? 2 : n;
    int64_t before[3] = {0}, after[3] = {0}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    for (int i = 0; i < n; i++) {
        before[i] = p->conv.pad[i];
        after[i] = p->conv.pad[n + i];
        stride[i] = p->conv.stride[i];
        dilation[i] = p->conv.dilation[i];
    }
    cudnnBackendDescriptor_t conv = new_part(c, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_int(c, conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, flat);
    set_type(c, conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, cudnn_compute(c));
    set(c, conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(c, conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, flat, before);
    set(c, conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, flat, after);
    set(c, conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, flat, stride);
    set(c, conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, flat, dilation);
    return conv;
}

/* The three operations of a convolution differ in what their attributes are called. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t conv, first, second, result, alpha, beta;
} CONV_OPS[] = {
    [CUDNN_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [CUDNN_CONV_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [CUDNN_CONV_WEIGHTS] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

void graph_conv_add(call *c, int first, int second, int result)
{
    cudnnBackendDescriptor_t conv = new_conv(c);
    cudnn_conv way = cudnn_conv_of(c);
    cudnnBackendDescriptor_t op = new_op_of(c, CONV_OPS[way].type, CONV_OPS[way].conv, conv);
    SET_TENSORS(c, op, {CONV_OPS[way].first, first}, {CONV_OPS[way].second, second}, {CONV_OPS[way].result, result});
    set_float(c, op, CONV_OPS[way].alpha, 1);
    set_float(c, op, CONV_OPS[way].beta, 0);
    ASK(c, cudnnBackendFinalize(op));
}

void graph_sums_add(call *c, int x, int sums, int squares)
{
    cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    cudnnBackendDescriptor_t op = new_op(c, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    set(c, op, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
    set_type(c, op, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
    FINISH(c, op, {CUDNN_ATTR_OPERATION_GENSTATS_XDESC, x}, {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sums},
           {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares});
}

/* The library resamples by fractions; all of ours are whole. */
static void set_wholes(call *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int flat, int n,
                       const int64_t *v, int64_t otherwise)
{
    cudnnFraction_t whole[3];
    for (int i = 0; i < flat; i++)
        whole[i] = (cudnnFraction_t){i < n ? v[i] : otherwise, 1};
    set(c, d, name, CUDNN_TYPE_FRACTION, flat, whole);
}

/* Here padding may differ between the ends, too. */
static cudnnBackendDescriptor_t new_pool(call *c)
{
    static const cudnnResampleMode_t MODES[] = {
        [BZ_POOL_MAX] = CUDNN_RESAMPLE_MAXPOOL,
        [BZ_POOL_AVG] = CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING,
        [BZ_POOL_AVG_PAD] = CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING,
    };
    const bz_problem *p = c->problem;
    int n = bz_extent_rank(p->pool.x) - 2, flat = n < 2 ? 2 : n;
    cudnnPaddingMode_t border = p->pool.mode == BZ_POOL_MAX ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
    cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    cudnnBackendDescriptor_t pool = new_part(c, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    set(c, pool, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &MODES[p->pool.mode]);
    set_type(c, pool, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(c, pool, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
    set(c, pool, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &border);
    set_int(c, pool, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, flat);
    set_wholes(c, pool, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, flat, n, p->pool.kernel, 1);
    set_wholes(c, pool, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, flat, n, p->pool.pad, 0);
    set_wholes(c, pool, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, flat, n, p->pool.pad + n, 0);
    set_wholes(c, pool, CUDNN_ATTR_RESAMPLE_STRIDES, flat, n, p->pool.stride, 1);
    return pool;
}

void graph_pool_add(call *c, int x, int index, int y)
{
    cudnnBackendDescriptor_t pool = new_pool(c);
    cudnnBackendDescriptor_t op =
        new_op_of(c, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, pool);
    FINISH(c, op, {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x}, {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y},
           {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, index});
}

void graph_pool_grad_add(call *c, int dy, int index, int dx)
{
    cudnnBackendDescriptor_t pool = new_pool(c);
    cudnnBackendDescriptor_t op =
        new_op_of(c, CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, pool);
    FINISH(c, op, {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, dy}, {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, dx},
           {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, index});
}

int graph_matmul_add(call *c, int a, int b, int y)
{
    return graph_matmul_part_add(c, a, b, -1, -1, -1, y);
}

int graph_matmul_part_add(call *c, int a, int b, int rows, int columns, int depth, int y)
{
    cudnnBackendDescriptor_t product = new_part(c, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set_type(c, product, CUDNN_ATTR_MATMUL_COMP_TYPE, cudnn_compute(c));
    if (columns >= 0) /* what is beyond them */
        set(c, product, CUDNN_ATTR_MATMUL_PADDING_VALUE, CUDNN_TYPE_DOUBLE, 1, &(double){0});
    cudnnBackendDescriptor_t op =
        new_op_of(c, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
    return FINISH(c, op, {CUDNN_ATTR_OPERATION_MATMUL_ADESC, a}, {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                  {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, rows},
                  {CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, columns},
                  {CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, depth}, {CUDNN_ATTR_OPERATION_MATMUL_CDESC, y});
}

void graph_norm_add(call *c, cudnnBackendNormMode_t mode, const graph_norm *t)
{
    cudnnBackendNormFwdPhase_t phase = t->root < 0 ? CUDNN_NORM_FWD_INFERENCE : CUDNN_NORM_FWD_TRAINING;
    cudnnBackendDescriptor_t op = new_op(c, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    set(c, op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode);
    set(c, op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase);
    FINISH(c, op, {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, t->x}, {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, t->mean},
           {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, t->root},
           {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, t->scale}, {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, t->shift},
           {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, t->epsilon}, {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, t->y});
}

void graph_norm_grad_add(call *c, cudnnBackendNormMode_t mode, const graph_norm *t)
{
    cudnnBackendDescriptor_t op = new_op(c, CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
    set(c, op, CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode);
    FINISH(c, op, {CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, t->x}, {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, t->mean},
           {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, t->root}, {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, t->dy},
           {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, t->scale}, {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, t->dscale},
           {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, t->shift}, {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, t->y});
}

/* Since cuDNN 9.13: attention as one operation. Up to 9.19 it knows neither a mask nor numbers to scale 8-bit floats by. */
void graph_sdpa_add(call *c, const graph_sdpa *t)
{
    cudnnBackendDescriptor_t op = new_op(c, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    FINISH(c, op, {CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, t->q}, {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, t->k},
           {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, t->v}, {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, t->y},
           {CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, t->scale},
           {CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC, t->table_k},
           {CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC, t->table_v},
           {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, t->length_q},
           {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, t->length_k});
}

int graph_reshape_add(call *c, int x, int y)
{
    cudnnBackendDescriptor_t op = new_op(c, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    return FINISH(c, op, {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y});
}

int graph_dequantize_add(call *c, int x, int scales, int32_t block, int y)
{
    cudnnBackendDescriptor_t op = new_op(c, CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR);
    SET_TENSORS(c, op, {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC, x},
                {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC, scales},
                {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC, y});
    set_type(c, op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC, CUDNN_DATA_FLOAT);
    set(c, op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE, CUDNN_TYPE_INT32, 1, &block);
    ASK(c, cudnnBackendFinalize(op));
    return y;
}
