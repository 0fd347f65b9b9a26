/* A stand-in for cuDNN's graph interface: attributes recorded by name and value. Heuristic mode A proposes engines 0
 * and 1, mode B engine 1 again, the fallback engine 2; engine 1 uses tensor cores, and can make a CUDA graph of itself. */
#include "tests/standin/record.h"

#include <cudnn.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAMED(n)                                                                                                       \
    {                                                                                                                  \
        CUDNN_ATTR_##n, #n                                                                                             \
    }
static const struct {
    cudnnBackendAttributeName_t attribute;
    const char *name;
} NAMES[] = {
    NAMED(TENSOR_DATA_TYPE),
    NAMED(TENSOR_DIMENSIONS),
    NAMED(TENSOR_STRIDES),
    NAMED(TENSOR_UNIQUE_ID),
    NAMED(TENSOR_BYTE_ALIGNMENT),
    NAMED(TENSOR_IS_BY_VALUE),
    NAMED(TENSOR_IS_VIRTUAL),
    NAMED(POINTWISE_MODE),
    NAMED(POINTWISE_MATH_PREC),
    NAMED(POINTWISE_RELU_LOWER_CLIP),
    NAMED(POINTWISE_RELU_UPPER_CLIP),
    NAMED(POINTWISE_RELU_LOWER_CLIP_SLOPE),
    NAMED(POINTWISE_ELU_ALPHA),
    NAMED(POINTWISE_SWISH_BETA),
    NAMED(OPERATION_POINTWISE_PW_DESCRIPTOR),
    NAMED(OPERATION_POINTWISE_XDESC),
    NAMED(OPERATION_POINTWISE_BDESC),
    NAMED(OPERATION_POINTWISE_YDESC),
    NAMED(OPERATION_POINTWISE_TDESC),
    NAMED(POINTWISE_AXIS),
    NAMED(REDUCTION_OPERATOR),
    NAMED(REDUCTION_COMP_TYPE),
    NAMED(OPERATION_REDUCTION_DESC),
    NAMED(OPERATION_REDUCTION_XDESC),
    NAMED(OPERATION_REDUCTION_YDESC),
    NAMED(OPERATION_SDPA_FWD_QDESC),
    NAMED(OPERATION_SDPA_FWD_KDESC),
    NAMED(OPERATION_SDPA_FWD_VDESC),
    NAMED(OPERATION_SDPA_FWD_ODESC),
    NAMED(OPERATION_SDPA_FWD_SCALEDESC),
    NAMED(CONVOLUTION_SPATIAL_DIMS),
    NAMED(CONVOLUTION_COMP_TYPE),
    NAMED(CONVOLUTION_CONV_MODE),
    NAMED(CONVOLUTION_PRE_PADDINGS),
    NAMED(CONVOLUTION_POST_PADDINGS),
    NAMED(CONVOLUTION_FILTER_STRIDES),
    NAMED(CONVOLUTION_DILATIONS),
    NAMED(OPERATION_CONVOLUTION_FORWARD_CONV_DESC),
    NAMED(OPERATION_CONVOLUTION_FORWARD_X),
    NAMED(OPERATION_CONVOLUTION_FORWARD_W),
    NAMED(OPERATION_CONVOLUTION_FORWARD_Y),
    NAMED(OPERATION_CONVOLUTION_FORWARD_ALPHA),
    NAMED(OPERATION_CONVOLUTION_FORWARD_BETA),
    NAMED(OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC),
    NAMED(OPERATION_CONVOLUTION_BWD_DATA_DY),
    NAMED(OPERATION_CONVOLUTION_BWD_DATA_W),
    NAMED(OPERATION_CONVOLUTION_BWD_DATA_DX),
    NAMED(OPERATION_CONVOLUTION_BWD_DATA_ALPHA),
    NAMED(OPERATION_CONVOLUTION_BWD_DATA_BETA),
    NAMED(RESAMPLE_MODE),
    NAMED(RESAMPLE_COMP_TYPE),
    NAMED(RESAMPLE_NAN_PROPAGATION),
    NAMED(RESAMPLE_PADDING_MODE),
    NAMED(RESAMPLE_SPATIAL_DIMS),
    NAMED(RESAMPLE_WINDOW_DIMS),
    NAMED(RESAMPLE_PRE_PADDINGS),
    NAMED(RESAMPLE_POST_PADDINGS),
    NAMED(RESAMPLE_STRIDES),
    NAMED(OPERATION_RESAMPLE_FWD_DESC),
    NAMED(OPERATION_RESAMPLE_FWD_XDESC),
    NAMED(OPERATION_RESAMPLE_FWD_YDESC),
    NAMED(MATMUL_COMP_TYPE),
    NAMED(OPERATION_MATMUL_DESC),
    NAMED(OPERATION_MATMUL_ADESC),
    NAMED(OPERATION_MATMUL_BDESC),
    NAMED(OPERATION_MATMUL_CDESC),
    NAMED(OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC),
    NAMED(OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC),
    NAMED(OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC),
    NAMED(MATMUL_PADDING_VALUE),
    NAMED(TENSOR_RAGGED_OFFSET_DESC),
    NAMED(OPERATION_NORM_FWD_MODE),
    NAMED(OPERATION_NORM_FWD_PHASE),
    NAMED(OPERATION_NORM_FWD_XDESC),
    NAMED(OPERATION_NORM_FWD_SCALE_DESC),
    NAMED(OPERATION_NORM_FWD_BIAS_DESC),
    NAMED(OPERATION_NORM_FWD_EPSILON_DESC),
    NAMED(OPERATION_NORM_FWD_YDESC),
    NAMED(POINTWISE_SOFTPLUS_BETA),
    NAMED(OPERATION_POINTWISE_DXDESC),
    NAMED(OPERATION_POINTWISE_DYDESC),
    NAMED(OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
    NAMED(OPERATION_CONVOLUTION_BWD_FILTER_X),
    NAMED(OPERATION_CONVOLUTION_BWD_FILTER_DY),
    NAMED(OPERATION_CONVOLUTION_BWD_FILTER_DW),
    NAMED(OPERATION_CONVOLUTION_BWD_FILTER_ALPHA),
    NAMED(OPERATION_CONVOLUTION_BWD_FILTER_BETA),
    NAMED(OPERATION_RESAMPLE_FWD_IDXDESC),
    NAMED(OPERATION_RESAMPLE_BWD_DESC),
    NAMED(OPERATION_RESAMPLE_BWD_DXDESC),
    NAMED(OPERATION_RESAMPLE_BWD_DYDESC),
    NAMED(OPERATION_RESAMPLE_BWD_IDXDESC),
    NAMED(OPERATION_NORM_FWD_MEAN_DESC),
    NAMED(OPERATION_NORM_FWD_INV_VARIANCE_DESC),
    NAMED(OPERATION_NORM_BWD_MODE),
    NAMED(OPERATION_NORM_BWD_XDESC),
    NAMED(OPERATION_NORM_BWD_MEAN_DESC),
    NAMED(OPERATION_NORM_BWD_INV_VARIANCE_DESC),
    NAMED(OPERATION_NORM_BWD_DYDESC),
    NAMED(OPERATION_NORM_BWD_SCALE_DESC),
    NAMED(OPERATION_NORM_BWD_DSCALE_DESC),
    NAMED(OPERATION_NORM_BWD_DBIAS_DESC),
    NAMED(OPERATION_NORM_BWD_DXDESC),
    NAMED(OPERATION_GENSTATS_MODE),
    NAMED(OPERATION_GENSTATS_MATH_PREC),
    NAMED(OPERATION_GENSTATS_XDESC),
    NAMED(OPERATION_GENSTATS_SUMDESC),
    NAMED(OPERATION_GENSTATS_SQSUMDESC),
    NAMED(OPERATION_RESHAPE_XDESC),
    NAMED(OPERATION_RESHAPE_YDESC),
    NAMED(OPERATION_SDPA_FWD_PAGE_TABLE_KDESC),
    NAMED(OPERATION_SDPA_FWD_PAGE_TABLE_VDESC),
    NAMED(OPERATION_SDPA_FWD_SEQ_LEN_QDESC),
    NAMED(OPERATION_SDPA_FWD_SEQ_LEN_KVDESC),
    NAMED(OPERATIONGRAPH_HANDLE),
    NAMED(OPERATIONGRAPH_OPS),
    NAMED(ENGINEHEUR_OPERATION_GRAPH),
    NAMED(ENGINEHEUR_MODE),
    NAMED(EXECUTION_PLAN_HANDLE),
    NAMED(EXECUTION_PLAN_ENGINE_CONFIG),
    NAMED(EXECUTION_PLAN_JSON_REPRESENTATION),
    NAMED(DEVICEPROP_DEVICE_ID),
    NAMED(ENGINE_OPERATION_GRAPH),
    NAMED(ENGINE_GLOBAL_INDEX),
    NAMED(ENGINECFG_ENGINE),
    NAMED(ENGINECFG_KNOB_CHOICES),
    NAMED(KNOB_CHOICE_KNOB_TYPE),
    NAMED(KNOB_CHOICE_KNOB_VALUE),
    NAMED(OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC),
    NAMED(OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC),
    NAMED(OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC),
    NAMED(OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC),
    NAMED(OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE),
    NAMED(TENSOR_REORDERING_MODE),
    NAMED(VARIANT_PACK_DATA_POINTERS),
    NAMED(VARIANT_PACK_UNIQUE_IDS),
    NAMED(VARIANT_PACK_WORKSPACE),
};

static const char *attribute_name(cudnnBackendAttributeName_t attribute)
{
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].attribute == attribute)
            return NAMES[i].name;
    return "?";
}

static const char *sort_of(cudnnBackendDescriptorType_t type)
{
    switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return "gtensor";
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
        return "pointwise";
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        return "gconv";
    case CUDNN_BACKEND_RESAMPLE_DESCRIPTOR:
        return "resample";
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
        return "matmul";
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
        return "reduction";
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        return "graph";
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        return "heuristic";
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
        return "config";
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
        return "engine";
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:
    case CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR:
        return "knob";
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        return "plan";
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return "pack";
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
        return "device";
    default:
        return "operation";
    }
}

enum { READ = 99 };

/* Engines of configurations, engines and knobs; modes of heuristics; and plans that are read. */
static struct {
    const void *object;
    int value;
} values[4096];
static int n_values;

static void set_value(const void *object, int value)
{
    if (n_values == 4096)
        n_values = 0;
    values[n_values].object = object;
    values[n_values++].value = value;
}

static int value_of(const void *object)
{
    for (int i = n_values; i--;)
        if (values[i].object == object)
            return values[i].value;
    return -1;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    *out = standin_new(sort_of(type));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    (void)d;
    return CUDNN_STATUS_SUCCESS;
}

/* Which process builds a plan, or reads one, is appended to the file $STANDIN_PLANS. */
static void make_plan(cudnnBackendDescriptor_t d)
{
    const char *path = getenv("STANDIN_PLANS");
    bool read = value_of(d) == READ;
    if ((standin_slow_plans || path) && !read)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    FILE *f = path ? fopen(path, "a") : NULL;
    if (f) {
        fprintf(f, "%s %d\n", read ? "read" : "built", (int)getpid());
        fclose(f);
    }
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
    standin_record("cudnnBackendFinalize %s", standin_name(d));
    if (standin_no_plans > 0 && !strncmp(standin_name(d), "plan", 4)) {
        standin_no_plans--;
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    if (!strncmp(standin_name(d), "plan", 4))
        make_plan(d);
    return CUDNN_STATUS_SUCCESS;
}

/* A number by value; whole ones would be denormal as floats, which none is. */
static size_t put_number(const void *at, char *out, size_t size)
{
    float real;
    int whole;
    memcpy(&real, at, sizeof real);
    memcpy(&whole, at, sizeof whole);
    bool is_whole = whole && fabsf(real) < FLT_MIN;
    return (size_t)(is_whole ? snprintf(out, size, "#%d", whole) : snprintf(out, size, "%g", (double)real));
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t attribute,
                                       cudnnBackendAttributeType_t type, int64_t n, const void *v)
{
    char text[600] = "";
    size_t at = 0;
    if (attribute == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)
        set_value(d, READ);
    if (attribute == CUDNN_ATTR_ENGINEHEUR_MODE)
        set_value(d, (int)*(const cudnnBackendHeurMode_t *)v);
    for (int64_t i = 0; i < n && at < 500; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, i && type != CUDNN_TYPE_CHAR ? "," : "");
        if (type == CUDNN_TYPE_INT64)
            at += (size_t)snprintf(text + at, sizeof text - at, "%lld", (long long)((const int64_t *)v)[i]);
        else if (type == CUDNN_TYPE_CHAR)
            at += (size_t)snprintf(text + at, sizeof text - at, "%c", ((const char *)v)[i]);
        else if (type == CUDNN_TYPE_FLOAT)
            at += (size_t)snprintf(text + at, sizeof text - at, "%g", (double)((const float *)v)[i]);
        else if (type == CUDNN_TYPE_DOUBLE)
            at += (size_t)snprintf(text + at, sizeof text - at, "%g", ((const double *)v)[i]);
        else if (type == CUDNN_TYPE_FRACTION)
            at += (size_t)snprintf(text + at, sizeof text - at, "%lld/%lld",
                                   (long long)((const cudnnFraction_t *)v)[i].numerator,
                                   (long long)((const cudnnFraction_t *)v)[i].denominator);
        else if (type == CUDNN_TYPE_BOOLEAN)
            at += (size_t)snprintf(text + at, sizeof text - at, "%d", (int)((const bool *)v)[i]);
        else if (type == CUDNN_TYPE_VOID_PTR && !strcmp(standin_name(((void *const *)v)[i]), "host"))
            at += put_number(((void *const *)v)[i], text + at, sizeof text - at);
        else if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR || type == CUDNN_TYPE_VOID_PTR || type == CUDNN_TYPE_HANDLE)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s", standin_name(((void *const *)v)[i]));
        else
            at += (size_t)snprintf(text + at, sizeof text - at, "#%d", ((const int *)v)[i]);
    }
    standin_record("cudnnBackendSetAttribute %s %s=%s", standin_name(d), attribute_name(attribute), text);
    return CUDNN_STATUS_SUCCESS;
}

static const int *proposals(int mode, int64_t *n)
{
    static const int A[] = {0, 1}, B[] = {1}, FALLBACK[] = {2};
    *n = standin_mute ? 0 : mode == CUDNN_HEUR_MODE_A ? 2 : 1;
    return mode == CUDNN_HEUR_MODE_A ? A : mode == CUDNN_HEUR_MODE_B ? B : FALLBACK;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t attribute,
                                       cudnnBackendAttributeType_t type, int64_t wanted, int64_t *n, void *out)
{
    static const char DEVICE[] = "{\"device\":1}", PLAN[] = "{\"plan\":1}";
    int own = value_of(d);
    (void)type;
    *n = 1;
    switch ((int)attribute) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
        const int *engine = proposals(own, n);
        for (int64_t i = 0; i < wanted && i < *n; i++)
            set_value(((cudnnBackendDescriptor_t *)out)[i], engine[i]);
        break;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
        set_value(((cudnnBackendDescriptor_t *)out)[0], own);
        break;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
        *(int64_t *)out = own;
        break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
        *(cudnnBackendKnobType_t *)out = CUDNN_KNOB_TYPE_TILE_SIZE;
        break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *n = own == 1;
        *(cudnnBackendNumericalNote_t *)out = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        break;
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        *n = own == 1;
        *(cudnnBackendBehaviorNote_t *)out = CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API;
        break;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *(int64_t *)out = 256;
        break;
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION:
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: {
        const char *json = attribute == CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION ? DEVICE : PLAN;
        *n = (int64_t)strlen(json);
        if (wanted)
            memcpy(out, json, (size_t)(wanted < *n ? wanted : *n));
        break;
    }
    default:
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    standin_record("cudnnBackendExecute %s %s %s", standin_name(h), standin_name(plan), standin_name(pack));
    return standin_ill ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendPopulateCudaGraph(cudnnHandle_t h, cudnnBackendDescriptor_t plan,
                                            cudnnBackendDescriptor_t pack, cudaGraph_t graph)
{
    standin_record("cudnnBackendPopulateCudaGraph %s %s %s -> %s", standin_name(h), standin_name(plan),
                   standin_name(pack), standin_name(graph));
    return standin_ill ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendUpdateCudaGraph(cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack,
                                          cudaGraph_t graph)
{
    standin_record("cudnnBackendUpdateCudaGraph %s %s %s -> %s", standin_name(h), standin_name(plan),
                   standin_name(pack), standin_name(graph));
    return CUDNN_STATUS_SUCCESS;
}
