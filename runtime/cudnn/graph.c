/* The graph interface of cuDNN: tensors and operations make a graph, heuristics propose engine configurations
 * for it, and each of them is a variant. */
#include "runtime/cudnn/graph.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- attributes ----------------------------------------------------------------------------- */

static cudnnStatus_t make(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    return cudnnBackendCreateDescriptor(type, out);
}

static cudnnStatus_t set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         int64_t n, const void *v)
{
    return cudnnBackendSetAttribute(d, name, type, n, v);
}

static cudnnStatus_t set_desc(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t v)
{
    return set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &v);
}

static cudnnStatus_t set_int(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int64_t v)
{
    return set(d, name, CUDNN_TYPE_INT64, 1, &v);
}

static cudnnStatus_t set_bool(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, bool v)
{
    return set(d, name, CUDNN_TYPE_BOOLEAN, 1, &v);
}

static cudnnStatus_t set_float(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, float v)
{
    return set(d, name, CUDNN_TYPE_FLOAT, 1, &v);
}

static cudnnStatus_t set_type(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnDataType_t v)
{
    return set(d, name, CUDNN_TYPE_DATA_TYPE, 1, &v);
}

/* ---- tensors -------------------------------------------------------------------------------- */

/* cudaMalloc aligns to 256 bytes; engines want 16. */
static cudnnStatus_t describe_tensor(graph_tensor *t, int64_t number, cudnnDataType_t type, int rank,
                                     const int64_t *dim, const int64_t *stride)
{
    TRY(make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &t->desc));
    TRY(set_type(t->desc, CUDNN_ATTR_TENSOR_DATA_TYPE, type));
    TRY(set(t->desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dim));
    TRY(set(t->desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, stride));
    TRY(set_int(t->desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, number));
    TRY(set_int(t->desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16));
    if (t->number)
        TRY(set_bool(t->desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, true));
    else if (t->memory.operand < 0)
        TRY(set_bool(t->desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, true));
    return cudnnBackendFinalize(t->desc);
}

cudnnStatus_t graph_tensor_add(call *c, int operand, const bz_cuda_layout *layout, int rank, const int64_t *dim,
                               const int64_t *stride, int *out)
{
    struct graph_call *g = c->graph;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    if (g->n_tensors == GRAPH_TENSORS || (operand >= 0 && !cudnn_dtype(layout->dtype, &type)))
        return CUDNN_STATUS_NOT_SUPPORTED;
    *out = g->n_tensors;
    graph_tensor *t = &g->tensor[g->n_tensors++];
    *t = (graph_tensor){.memory = {.operand = operand}};
    if (operand >= 0)
        t->memory.layout = *layout;
    return describe_tensor(t, g->n_tensors, type, rank, dim, stride);
}

cudnnStatus_t graph_number_add(call *c, int rank, int *out)
{
    static const int64_t ONES[CUDNN_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct graph_call *g = c->graph;
    *out = g->n_tensors;
    graph_tensor *t = &g->tensor[g->n_tensors++];
    *t = (graph_tensor){.memory = {.operand = -1}, .number = true};
    return describe_tensor(t, g->n_tensors, CUDNN_DATA_FLOAT, rank, ONES, ONES);
}

/* ---- operations ----------------------------------------------------------------------------- */

static cudnnStatus_t new_part(call *c, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    struct graph_call *g = c->graph;
    if (g->n_parts == GRAPH_OPS)
        return CUDNN_STATUS_NOT_SUPPORTED;
    TRY(make(type, &g->part[g->n_parts]));
    *out = g->part[g->n_parts++];
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t new_op(call *c, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    struct graph_call *g = c->graph;
    if (g->n_ops == GRAPH_OPS)
        return CUDNN_STATUS_NOT_SUPPORTED;
    TRY(make(type, &g->op[g->n_ops]));
    *out = g->op[g->n_ops++];
    return CUDNN_STATUS_SUCCESS;
}

static const struct {
    bz_fn fn;
    cudnnPointwiseMode_t mode;
    cudnnBackendAttributeName_t alpha, beta; /* where the parameters go; 0: nowhere */
} FUNCTIONS[] = {
    {BZ_FN_BIAS, CUDNN_POINTWISE_ADD, 0, 0},
    {BZ_FN_ADD, CUDNN_POINTWISE_ADD, 0, 0},
    {BZ_FN_SUB, CUDNN_POINTWISE_SUB, 0, 0},
    {BZ_FN_MUL, CUDNN_POINTWISE_MUL, 0, 0},
    {BZ_FN_DIV, CUDNN_POINTWISE_DIV, 0, 0},
    {BZ_FN_MAX, CUDNN_POINTWISE_MAX, 0, 0},
    {BZ_FN_MIN, CUDNN_POINTWISE_MIN, 0, 0},
    {BZ_FN_RELU, CUDNN_POINTWISE_RELU_FWD, 0, 0},
    {BZ_FN_LEAKY, CUDNN_POINTWISE_RELU_FWD, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0},
    {BZ_FN_CLIP, CUDNN_POINTWISE_RELU_FWD, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP},
    {BZ_FN_ELU, CUDNN_POINTWISE_ELU_FWD, CUDNN_ATTR_POINTWISE_ELU_ALPHA, 0},
    {BZ_FN_SIGMOID, CUDNN_POINTWISE_SIGMOID_FWD, 0, 0},
    {BZ_FN_TANH, CUDNN_POINTWISE_TANH_FWD, 0, 0},
    {BZ_FN_GELU_ERF, CUDNN_POINTWISE_GELU_FWD, 0, 0},
    {BZ_FN_GELU_TANH, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, 0, 0},
    {BZ_FN_SWISH, CUDNN_POINTWISE_SWISH_FWD, CUDNN_ATTR_POINTWISE_SWISH_BETA, 0},
    {BZ_FN_SOFTPLUS, CUDNN_POINTWISE_SOFTPLUS_FWD, 0, 0},
    {BZ_FN_EXP, CUDNN_POINTWISE_EXP, 0, 0},
    {BZ_FN_LOG, CUDNN_POINTWISE_LOG, 0, 0},
    {BZ_FN_SQRT, CUDNN_POINTWISE_SQRT, 0, 0},
    {BZ_FN_ABS, CUDNN_POINTWISE_ABS, 0, 0},
};

cudnnStatus_t graph_function_add(call *c, bz_fn fn, float alpha, float beta, int x, int b, int y)
{
    struct graph_call *g = c->graph;
    cudnnBackendDescriptor_t pointwise, op;
    size_t i = 0;
    while (i < sizeof FUNCTIONS / sizeof *FUNCTIONS && FUNCTIONS[i].fn != fn)
        i++;
    if (i == sizeof FUNCTIONS / sizeof *FUNCTIONS)
        return CUDNN_STATUS_NOT_SUPPORTED;
    TRY(new_part(c, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &pointwise));
    TRY(set(pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &FUNCTIONS[i].mode));
    TRY(set_type(pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT));
    if (FUNCTIONS[i].alpha)
        TRY(set(pointwise, FUNCTIONS[i].alpha, CUDNN_TYPE_DOUBLE, 1, &(double){(double)alpha}));
    if (FUNCTIONS[i].beta)
        TRY(set(pointwise, FUNCTIONS[i].beta, CUDNN_TYPE_DOUBLE, 1, &(double){(double)beta}));
    TRY(cudnnBackendFinalize(pointwise));
    TRY(new_op(c, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, &op));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, g->tensor[x].desc));
    if (b >= 0)
        TRY(set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, g->tensor[b].desc));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, g->tensor[y].desc));
    return cudnnBackendFinalize(op);
}

/* Here padding may differ between the ends. */
cudnnStatus_t graph_conv_add(call *c, int x, int w, int y)
{
    const bz_problem *p = c->problem;
    struct graph_call *g = c->graph;
    cudnnBackendDescriptor_t conv, op;
    int n = bz_extent_rank(p->conv.x) - 2, flat = n < 2 ? 2 : n;
    int64_t before[3] = {0}, after[3] = {0}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    for (int i = 0; i < n; i++) {
        before[i] = p->conv.pad[i];
        after[i] = p->conv.pad[n + i];
        stride[i] = p->conv.stride[i];
        dilation[i] = p->conv.dilation[i];
    }
    TRY(new_part(c, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, &conv));
    TRY(set_int(conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, flat));
    TRY(set_type(conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT));
    TRY(set(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode));
    TRY(set(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, flat, before));
    TRY(set(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, flat, after));
    TRY(set(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, flat, stride));
    TRY(set(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, flat, dilation));
    TRY(cudnnBackendFinalize(conv));
    TRY(new_op(c, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, &op));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, g->tensor[x].desc));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, g->tensor[w].desc));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, g->tensor[y].desc));
    TRY(set_float(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1));
    TRY(set_float(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0));
    return cudnnBackendFinalize(op);
}

cudnnStatus_t graph_matmul_add(call *c, int a, int b, int y)
{
    struct graph_call *g = c->graph;
    cudnnBackendDescriptor_t product, op;
    TRY(new_part(c, CUDNN_BACKEND_MATMUL_DESCRIPTOR, &product));
    TRY(set_type(product, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT));
    TRY(cudnnBackendFinalize(product));
    TRY(new_op(c, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, &op));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, product));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, g->tensor[a].desc));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, g->tensor[b].desc));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, g->tensor[y].desc));
    return cudnnBackendFinalize(op);
}

cudnnStatus_t graph_norm_add(call *c, cudnnBackendNormMode_t mode, int x, int scale, int shift, int epsilon, int y)
{
    struct graph_call *g = c->graph;
    cudnnBackendDescriptor_t op;
    cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_INFERENCE;
    TRY(new_op(c, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, &op));
    TRY(set(op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode));
    TRY(set(op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, g->tensor[x].desc));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, g->tensor[scale].desc));
    if (shift >= 0)
        TRY(set_desc(op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, g->tensor[shift].desc));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, g->tensor[epsilon].desc));
    TRY(set_desc(op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, g->tensor[y].desc));
    return cudnnBackendFinalize(op);
}

/* ---- engine configurations ------------------------------------------------------------------- */

static cudnnStatus_t make_graph(call *c)
{
    struct graph_call *g = c->graph;
    TRY(make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &g->graph));
    TRY(set(g->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &c->handle));
    TRY(set(g->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops, g->op));
    return cudnnBackendFinalize(g->graph);
}

/* "engine 5 k2=18 k13=1": the engine's number and its knobs by their numbers, as cuDNN itself names them. */
static cudnnStatus_t name_knobs(cudnnBackendDescriptor_t config, char *out, size_t size)
{
    enum { MOST = CUDNN_KNOB_TYPE_COUNTS };
    cudnnBackendDescriptor_t knob[MOST] = {0};
    int64_t made = 0, n = 0, value;
    cudnnBackendKnobType_t type;
    size_t at = strlen(out);
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    while (made < MOST && status == CUDNN_STATUS_SUCCESS)
        status = make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knob[made++]);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          MOST, &n, knob);
    for (int64_t i = 0; i < n && status == CUDNN_STATUS_SUCCESS; i++) {
        int64_t one;
        status =
            cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &type);
        if (status == CUDNN_STATUS_SUCCESS)
            status =
                cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one, &value);
        if (status == CUDNN_STATUS_SUCCESS && at < size)
            at += (size_t)snprintf(out + at, size - at, " k%d=%lld", (int)type, (long long)value);
    }
    for (int64_t i = 0; i < made; i++)
        if (knob[i])
            cudnnBackendDestroyDescriptor(knob[i]);
    return status;
}

/* What an engine does to numbers. */
typedef struct notes {
    bool tensor, converts;
} notes;

static cudnnStatus_t look_at(cudnnBackendDescriptor_t config, char *name, size_t size, notes *out)
{
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0, number = 0;
    *out = (notes){0};
    TRY(make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
    cudnnStatus_t status =
        cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &number);
    n = 0;
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                          CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note);
    for (int64_t i = 0; i < n && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) {
        out->tensor |= note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        out->converts |= note[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    }
    cudnnBackendDestroyDescriptor(engine);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    snprintf(name, size, "engine %lld%s", (long long)number, out->tensor ? "+tensor" : "");
    return name_knobs(config, name, size);
}

/* f32 is computed in f32 unless the user allowed less: tensor cores have no f32. */
static bool is_allowed(const call *c, notes n)
{
    if (c->problem->dtype != BZ_F32)
        return true;
    if (c->math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION)
        return n.converts;
    return !n.converts && n.tensor == (c->math == CUDNN_TENSOR_OP_MATH);
}

/* Modes propose the same configuration again: each counts once, at its first place. */
static void keep_config(call *c, cudnnBackendDescriptor_t config)
{
    struct graph_call *g = c->graph;
    notes n;
    char name[140];
    bool keep = g->n_configs < GRAPH_CONFIGS && look_at(config, name, sizeof name, &n) == CUDNN_STATUS_SUCCESS &&
                is_allowed(c, n);
    for (int i = 0; i < g->n_configs && keep; i++)
        keep = strcmp(g->config[i].name, name) != 0;
    if (!keep) {
        cudnnBackendDestroyDescriptor(config);
        return;
    }
    g->config[g->n_configs].desc = config;
    memcpy(g->config[g->n_configs++].name, name, sizeof name);
}

static cudnnStatus_t ask_mode(call *c, cudnnBackendHeurMode_t mode)
{
    cudnnBackendDescriptor_t heuristic = NULL, result[GRAPH_CONFIGS] = {0};
    int64_t n = 0, made = 0;
    TRY(make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic));
    cudnnStatus_t status = set_desc(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, c->graph->graph);
    if (status == CUDNN_STATUS_SUCCESS)
        status = set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendFinalize(heuristic);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                          &n, NULL);
    n = n > GRAPH_CONFIGS ? GRAPH_CONFIGS : n;
    for (; made < n && status == CUDNN_STATUS_SUCCESS; made++)
        status = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &result[made]);
    if (status == CUDNN_STATUS_SUCCESS && n)
        status = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n,
                                          &n, result);
    for (int64_t i = 0; i < made; i++)
        if (i < n && status == CUDNN_STATUS_SUCCESS) {
            keep_config(c, result[i]);
            if (mode == CUDNN_HEUR_MODE_A && !i)
                c->graph->chosen = c->graph->n_configs - 1;
        } else if (result[i]) {
            cudnnBackendDestroyDescriptor(result[i]);
        }
    cudnnBackendDestroyDescriptor(heuristic);
    return status;
}

/* A mode that refuses proposes nothing; that all of them do is what the library has to say. */
static void ask(call *c)
{
    static const cudnnBackendHeurMode_t MODES[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK};
    c->graph->asked = true;
    c->graph->chosen = -1;
    if (make_graph(c) != CUDNN_STATUS_SUCCESS)
        return;
    for (int i = 0; i < 3; i++)
        ask_mode(c, MODES[i]);
}

const char *cudnn_graph_algorithm(const call *c, int i, char *out, size_t size)
{
    if (!c->graph->asked)
        ask((call *)c);
    if (i >= c->graph->n_configs)
        return NULL;
    snprintf(out, size, "graph %s", c->graph->config[i].name);
    return out;
}

int cudnn_graph_choice(call *c)
{
    if (!c->graph->asked)
        ask(c);
    return c->graph->chosen;
}

/* ---- running -------------------------------------------------------------------------------- */

static cudnnStatus_t make_plan(call *c)
{
    struct graph_call *g = c->graph;
    int64_t size = 0, n = 0;
    TRY(make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &g->plan));
    TRY(set(g->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &c->handle));
    TRY(set_desc(g->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, c->first->graph->config[c->algorithm].desc));
    TRY(cudnnBackendFinalize(g->plan));
    TRY(cudnnBackendGetAttribute(g->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &size));
    c->workspace = size > 0 ? (size_t)size : 0;
    return CUDNN_STATUS_SUCCESS;
}

/* Made before each first call only: the workspace is shared and may have moved since. */
static cudnnStatus_t make_pack(call *c)
{
    struct graph_call *g = c->graph;
    int64_t number[GRAPH_TENSORS];
    void *data[GRAPH_TENSORS];
    int n = 0;
    for (int i = 0; i < g->n_tensors; i++) {
        if (g->tensor[i].memory.operand < 0 && !g->tensor[i].number)
            continue;
        number[n] = i + 1;
        data[n++] = g->tensor[i].number ? &g->epsilon : g->tensor[i].memory.data;
    }
    if (g->pack)
        cudnnBackendDestroyDescriptor(g->pack);
    g->pack = NULL;
    TRY(make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &g->pack));
    TRY(set(g->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, data));
    TRY(set(g->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, number));
    TRY(set(g->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &c->cuda->workspace));
    c->packed_for = c->cuda->workspace;
    return cudnnBackendFinalize(g->pack);
}

int cudnn_prepare_graph(call *c, session *s, bz_error *err)
{
    struct graph_call *g = c->graph;
    for (int i = 0; i < g->n_tensors; i++)
        if (bz_cudnn_upload(s, &g->tensor[i].memory, err))
            return -1;
    c->y = g->tensor[g->y].memory;
    cudnnStatus_t status = make_plan(c);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(err, "making the plan", status);
}

cudnnStatus_t cudnn_run_graph(call *c)
{
    if (!c->graph->pack || c->packed_for != c->cuda->workspace)
        TRY(make_pack(c));
    return cudnnBackendExecute(c->handle, c->graph->plan, c->graph->pack);
}

static void destroy(cudnnBackendDescriptor_t d)
{
    if (d)
        cudnnBackendDestroyDescriptor(d);
}

void cudnn_release_graph(call *c)
{
    struct graph_call *g = c->graph;
    if (!g)
        return;
    destroy(g->pack);
    destroy(g->plan);
    for (int i = 0; i < g->n_configs; i++)
        destroy(g->config[i].desc);
    destroy(g->graph);
    for (int i = 0; i < g->n_ops; i++)
        destroy(g->op[i]);
    for (int i = 0; i < g->n_parts; i++)
        destroy(g->part[i]);
    for (int i = 0; i < g->n_tensors; i++)
        destroy(g->tensor[i].desc);
    free(g);
    c->graph = NULL;
}
