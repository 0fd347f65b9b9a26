/* Operators, written as models, and the calls that compute them: alternatives as the operators' definitions ask for them, limits of
 * problems (eight dimensions, three of them spatial, 64 parts) at the number and one behind it; and functions of single elements, whose calls
 * must have the values that the operator's formula has. */
#include "generator/generator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modelproc_ops_model.h"

typedef struct {
    inferred model;
    bz_arena arena;
    bz_lowering low;
} subject;

static const bool CONSTANT[9] = {false, true, true, true, true, true, true, true, true};

/* `weights`: operands but the first are constants. */
static void lower(subject *s, const op_case *c, bz_dtype wanted, bool weights)
{
    *s = (subject){0};
    if (!infer_case(&s->model, c, false))
        fail_msg("%s(%s): %s", c->op, c->in, s->model.err.text);
    bz_layer layer = *last_layer(&s->model);
    if (weights)
        layer.in_constant = CONSTANT;
    bz_lower(&layer, wanted, &s->arena, &s->low);
}

static void end(subject *s)
{
    bz_arena_free(&s->arena);
    end_case(&s->model);
}

/* Calls of an alternative have " + " between them, alternatives " | "; copies that stand in are "copy". "!text": none, and why. */
typedef struct {
    const char *op;
    int opset;
    const char *in, *attrs, *out;
    bz_dtype wanted;
    bool weights;
    const char *calls;
} calls;

static const calls ROWS[] = {
    /* poolings */
    {"MaxPool", 12, "f32:2x3x9x8", "kernel_shape=I:3,2 strides=I:2,1 pads=I:1,0,2,1", "f32:2x3x5x8", 0, false,
     "pool mode=max x=2x3x9x8 kernel=3x2 stride=2x1 pad=1x0x2x1 dilation=1x1 dtype=f32"},
    {"AveragePool", 19, "f32:2x3x9", "kernel_shape=I:3 pads=I:1,1", "f32:2x3x9", 0, false,
     "pool mode=avg x=2x3x9 kernel=3 stride=1 pad=1x1 dilation=1 dtype=f32"},
    {"AveragePool", 19, "f32:2x3x9", "kernel_shape=I:3 pads=I:1,1 count_include_pad=i:1", "f32:2x3x9", BZ_BF16, false,
     "pool mode=avg_pad x=2x3x9 kernel=3 stride=1 pad=1x1 dilation=1 dtype=bf16"},
    {"AveragePool", 19, "f32:1x1x8", "kernel_shape=I:3 strides=I:2 ceil_mode=i:1", "f32:1x1x4", 0, false,
     "pool mode=avg x=1x1x8 kernel=3 stride=2 pad=0x1 dilation=1 dtype=f32"},
    {"AveragePool", 19, "f32:1x1x8", "kernel_shape=I:3 strides=I:2 ceil_mode=i:1 count_include_pad=i:1", "f32:1x1x4", 0,
     false, "pool mode=avg x=1x1x8 kernel=3 stride=2 pad=0x1 dilation=1 dtype=f32"},
    {"MaxPool", 12, "f32:1x1x8", "kernel_shape=I:3 strides=I:2 ceil_mode=i:1", "f32:1x1x4", 0, false,
     "pool mode=max x=1x1x8 kernel=3 stride=2 pad=0x1 dilation=1 dtype=f32"},
    {"MaxPool", 12, "f32:1x1x5x5x5", "kernel_shape=I:5,5,5", "f32:1x1x1x1x1", 0, false,
     "pool mode=max x=1x1x5x5x5 kernel=5x5x5 stride=1x1x1 pad=0x0x0x0x0x0 dilation=1x1x1 dtype=f32"},
    {"MaxPool", 12, "f32:1x1x2x2x2x2", "kernel_shape=I:2,2,2,2", "f32:1x1x1x1x1x1", 0, false, "copy"},
    {MS "NhwcMaxPool", 1, "u8:1x9x8x4", "kernel_shape=I:3,2", "u8:1x7x7x4", 0, false,
     "pool mode=max x=1x4x9x8 kernel=3x2 stride=1x1 pad=0x0x0x0 dilation=1x1 dtype=u8"},
    {"GlobalAveragePool", 1, "f32:2x3x4x5", "", "f32:2x3x1x1", 0, false,
     "pool mode=avg x=2x3x4x5 kernel=4x5 stride=1x1 pad=0x0x0x0 dilation=1x1 dtype=f32 | "
     "reduce fn=mean x=2x3x4x5 y=2x3x1x1 dtype=f32"},
    {"GlobalMaxPool", 1, "f32:2x3x4x5x6x7", "", "f32:2x3x1x1x1x1", 0, false,
     "reduce fn=max x=2x3x4x5x6x7 y=2x3x1x1x1x1 dtype=f32"},
    {"GlobalLpPool", 2, "f32:2x3x4x5", "", "f32:2x3x1x1", 0, false, "reduce fn=l2 x=2x3x4x5 y=2x3x1x1 dtype=f32"},
    {"GlobalLpPool", 2, "f32:2x3x4x5", "p=i:1", "f32:2x3x1x1", 0, false, "reduce fn=l1 x=2x3x4x5 y=2x3x1x1 dtype=f32"},
    {"GlobalLpPool", 2, "f32:2x3x4x5", "p=i:3", "f32:2x3x1x1", 0, false, "copy"},
    /* reductions */
    {"ReduceMean", 18, "f32:2x3x4 i64=0,2", "", "f32:1x3x1", 0, false, "reduce fn=mean x=2x3x4 y=1x3x1 dtype=f32"},
    {"ReduceMean", 18, "f32:2x3x4 i64=0,2", "keepdims=i:0", "f32:3", 0, false,
     "reduce fn=mean x=2x3x4 y=1x3x1 dtype=f32"},
    {"ReduceLogSum", 18, "f32:2x3 i64=1", "", "f32:2x1", 0, false, "reduce fn=sum x=2x3 y=2x1 post=log dtype=f32"},
    {"ReduceMax", 13, "f32:2x3x4", "axes=I:-1", "f32:2x3x1", 0, false, "reduce fn=max x=2x3x4 y=2x3x1 dtype=f32"},
    {"ReduceSum", 13, "f32:1x2x3x4x5x6x7x8 i64=7", "", "f32:1x2x3x4x5x6x7x1", 0, false,
     "reduce fn=sum x=1x2x3x4x5x6x7x8 y=1x2x3x4x5x6x7x1 dtype=f32"},
    {"ReduceSum", 13, "f32:1x1x2x3x4x5x6x7x8 i64=8", "", "f32:1x1x2x3x4x5x6x7x1", 0, false, "copy"},
    {"ReduceL1", 13, "f32:1x4x1", "axes=I:0", "f32:1x4x1", 0, false, "copy"},
    /* normalization */
    {"LayerNormalization", 17, "f32:2x3x4 f32:3x4 f32:3x4", "axis=i:1", "f32:2x3x4", 0, false,
     "layernorm x=2x3x4 axis=1 dtype=f32"},
    {"RMSNormalization", 23, "f32:2x3x4 f32:4", "", "f32:2x3x4", 0, false, "rmsnorm x=2x3x4 axis=2 dtype=f32 | copy"},
    {MS "SkipLayerNormalization", 1, "f32:2x3x4 f32:2x3x4 f32:4 f32:4", "", "f32:2x3x4", 0, false,
     "binary fn=add a=2x3x4 b=2x3x4 dtype=f32 + layernorm x=2x3x4 axis=2 dtype=f32"},
    {"GroupNormalization", 21, "f32:2x6x5 f32:6 f32:6", "num_groups=i:3", "f32:2x6x5", 0, false,
     "groupnorm x=2x6x5 group=3 dtype=f32"},
    {"InstanceNormalization", 6, "f32:2x6x5 f32:6 f32:6", "", "f32:2x6x5", 0, false,
     "groupnorm x=2x6x5 group=6 dtype=f32"},
    {MS "GroupNorm", 1, "f16:2x8x7x6 f32:6 f32:6", "groups=i:3 activation=i:0", "f16:2x8x7x6", 0, false,
     "groupnorm x=2x6x8x7 group=3 dtype=f16"},
    {MS "GroupNorm", 1, "f16:2x8x7x6 f32:6 f32:6", "groups=i:3 activation=i:1", "f16:2x8x7x6", 0, false, "copy"},
    {"LpNormalization", 22, "f32:2x3x4", "p=i:1", "f32:2x3x4", 0, false, "lpnorm x=2x3x4 p=1 dtype=f32 | copy"},
    {"LpNormalization", 22, "f32:2x3x4", "axis=i:1", "f32:2x3x4", 0, false, "copy"},
    {"Softmax", 13, "f32:2x3x4", "axis=i:1", "f32:2x3x4", 0, false, "softmax x=2x3x4 axis=1 dtype=f32"},
    {"Softmax", 11, "f32:2x3x4", "axis=i:1", "f32:2x3x4", 0, false, "softmax x=2x12 axis=1 dtype=f32"},
    {"LogSoftmax", 13, "f32:2x3x4", "", "f32:2x3x4", BZ_F16, false, "logsoftmax x=2x3x4 axis=2 dtype=f16"},
    {"BatchNormalization", 9, "f32:2x3x4 f32:3 f32:3 f32:3 f32:3", "", "f32:2x3x4", 0, false,
     "batchnorm x=2x3x4 dtype=f32"},
    /* elements */
    {"Add", 14, "f32:3 f32:2x3", "", "f32:2x3", 0, false, "binary fn=add a=2x3 b=1x3 dtype=f32"},
    {"Sub", 14, "f32:3 f32:2x3", "", "f32:2x3", 0, false, "binary fn=sub a=1x3 b=2x3 dtype=f32"},
    {"Less", 13, "f32:3 f32:2x3", "", "bool:2x3", 0, false, "binary fn=gt a=2x3 b=1x3 dtype=f32:f32:u8"},
    {"GreaterOrEqual", 16, "f32:2x3 f32:3", "", "bool:2x3", 0, false, "binary fn=ge a=2x3 b=1x3 dtype=f32:f32:u8"},
    {"Not", 1, "bool:2x3", "", "bool:2x3", 0, false, "binary fn=eq a=2x3 b=1x1 dtype=u8"},
    {"And", 7, "bool:2x3 bool:3", "", "bool:2x3", 0, false, "binary fn=min a=2x3 b=1x3 dtype=u8"},
    {"Add", 6, "f32:2x3x4 f32:3", "axis=i:1 broadcast=i:1", "f32:2x3x4", 0, false,
     "binary fn=add a=2x3x4 b=1x3x1 dtype=f32"},
    {"Sum", 13, "f32:2x3 f32:3 f32:2x1", "", "f32:2x3", 0, false,
     "binary fn=add a=2x3 b=1x3 dtype=f32 + binary fn=add a=2x3 b=2x1 dtype=f32"},
    {"Mean", 13, "f32:2x3 f32:2x3", "", "f32:2x3", 0, false,
     "binary fn=add a=2x3 b=2x3 dtype=f32 + activation fn=linear x=2x3 alpha=0.5 beta=0 dtype=f32"},
    {MS "BiasGelu", 1, "f32:2x3 f32:3", "", "f32:2x3", 0, false,
     "binary fn=add a=2x3 b=1x3 post=gelu_erf dtype=f32 | "
     "binary fn=add a=2x3 b=1x3 dtype=f32 + activation fn=gelu_erf x=2x3 dtype=f32"},
    {MS "BiasAdd", 1, "f16:2x8x4 f16:4 f16:2x8x4", "", "f16:2x8x4", 0, false,
     "binary fn=add a=2x8x4 b=1x1x4 post=add dtype=f16"},
    {"PRelu", 16, "f32:2x3x4 f32:3x1", "", "f32:2x3x4", 0, false, "prelu x=2x3x4 dtype=f32"},
    {"PRelu", 16, "f32:2x3 f32:3", "", "f32:2x3", 0, false, "prelu x=2x3 dtype=f32"},
    {"PRelu", 16, "f32:3 f32:3", "", "f32:3", 0, false, "copy"},
    {"PRelu", 16, "f32:2x3x4 f32:4", "", "f32:2x3x4", 0, false, "copy"},
    {"Relu", 14, "f32:1x2x3x4x5x6x7x8", "", "f32:1x2x3x4x5x6x7x8", 0, false,
     "activation fn=relu x=1x2x3x4x5x6x7x8 dtype=f32"},
    {"Relu", 14, "f32:1x1x2x3x4x5x6x7x8", "", "f32:1x1x2x3x4x5x6x7x8", 0, false, "copy"},
    /* moves */
    {"Transpose", 13, "f32:2x3x4", "perm=I:2,0,1", "f32:4x2x3", 0, false, "transpose x=2x3x4 perm=2x0x1 dtype=f32"},
    {"Concat", 13, "f32:2x3 f32:2x5", "axis=i:-1", "f32:2x8", 0, false, "concat y=2x8 axis=1 sizes=3x5 dtype=f32"},
    {"Concat", 13, "f32:2x3 f32:2x0 f32:2x5", "axis=i:1", "f32:2x8", 0, false,
     "concat y=2x8 axis=1 sizes=3x5 dtype=f32"},
    {"Slice", 13, "f32:5x6 i64=1,2 i64=4,6 i64=0,1 i64=1,2", "", "f32:3x2", 0, false,
     "slice x=5x6 y=3x2 start=1x2 step=1x2 dtype=f32 | copy"},
    {"Slice", 13, "f32:5x6 i64=4 i64=0 i64=0 i64=-1", "", "f32:4x6", 0, false, "copy"},
    {"Split", 13, "f32:2x8 i64=3,5", "axis=i:1", "f32:2x3 f32:2x5", 0, false,
     "slice x=2x8 y=2x3 start=0x0 step=1x1 dtype=f32 + slice x=2x8 y=2x5 start=0x3 step=1x1 dtype=f32 | copy"},
    {"Pad", 13, "f32:2x3x4 i64=0,1,0,0,2,0", "", "f32:2x6x4", 0, false, "pad x=2x1x3x4 pad=1x0x2x0 dtype=f32 | copy"},
    {"Pad", 13, "f32:2x3x4 i64=0,0,1,0,0,2", "", "f32:2x3x7", 0, false, "pad x=6x1x4 pad=1x2 dtype=f32 | copy"},
    {"Pad", 13, "f32:2x3x4 i64=0,1,0,0,2,0", "mode=s:edge", "f32:2x6x4", 0, false, "copy"},
    {"Gather", 13, "f32:5x6x7 i64:2x3", "axis=i:1", "f32:5x2x3x7", 0, false,
     "gather x=5x6x7 n=6 axis=1 dtype=f32:i64:f32 | copy"},
    {"Expand", 13, "f32:3x1 i64=2,3,4", "", "f32:2x3x4", 0, false, "expand x=1x3x1 y=2x3x4 dtype=f32 | copy"},
    {"Tile", 13, "f32:2x3 i64=4,1", "", "f32:8x3", 0, false, "expand x=1x2x3 y=4x2x3 dtype=f32 | copy"},
    {"DepthToSpace", 13, "f32:1x8x3x4", "blocksize=i:2", "f32:1x2x6x8", 0, false,
     "transpose x=1x2x2x2x3x4 perm=0x3x4x1x5x2 dtype=f32 | copy"},
    {"DepthToSpace", 13, "f32:1x8x3x4", "blocksize=i:2 mode=s:CRD", "f32:1x2x6x8", 0, false,
     "transpose x=1x2x2x2x3x4 perm=0x1x4x2x5x3 dtype=f32 | copy"},
    {"SpaceToDepth", 13, "f32:1x3x6x8", "blocksize=i:2", "f32:1x12x3x4", 0, false,
     "transpose x=1x3x3x2x4x2 perm=0x3x5x1x2x4 dtype=f32 | copy"},
    {"Cast", 13, "f32:2x3", "to=i:10", "f16:2x3", 0, false, "reorder x=2x3 from=plain to=plain dtype=f32:f32:f16"},
    {"Resize", 13, "f32:1x2x4x5 - - i64=1,2,8,15", "", "f32:1x2x8x15", 0, false,
     "resample mode=nearest coord=half_pixel x=1x2x4x5 y=1x2x8x15 dtype=f32"},
    {"Resize", 13, "f32:1x2x4x5 - - i64=1,2,8,15", "mode=s:linear", "f32:1x2x8x15", 0, false,
     "resample mode=linear coord=half_pixel x=1x2x4x5 y=1x2x8x15 dtype=f32"},
    {"Resize", 13, "f32:1x2x4x5 - - i64=1,2,8,15", "coordinate_transformation_mode=s:asymmetric nearest_mode=s:floor",
     "f32:1x2x8x15", 0, false, "resample mode=nearest coord=asymmetric x=1x2x4x5 y=1x2x8x15 dtype=f32"},
    {"Resize", 13, "f32:1x2x4x5 - - i64=1,2,7,15", "coordinate_transformation_mode=s:asymmetric nearest_mode=s:floor",
     "f32:1x2x7x15", 0, false, "copy"},
    {"Resize", 13, "f32:1x2x4x5 - - i64=1,2,8,15", "mode=s:cubic", "f32:1x2x8x15", 0, false, "copy"},
    /* products; a row and constant weights may be a matrix and a vector */
    {"Gemm", 13, "f32:3x4 f32:5x4 f32:5", "transB=i:1", "f32:3x5", 0, true,
     "gemm m=3 n=5 k=4 batch=1 transa=0 transb=1 post=bias dtype=f32 | "
     "gemm m=3 n=5 k=4 batch=1 transa=0 transb=1 dtype=f32 + binary fn=add a=3x5 b=1x5 dtype=f32"},
    {"Gemm", 13, "f32:1x4 f32:5x4 f32:5", "transB=i:1", "f32:1x5", 0, true,
     "gemm m=1 n=5 k=4 batch=1 transa=0 transb=1 post=bias dtype=f32 | "
     "gemm m=1 n=5 k=4 batch=1 transa=0 transb=1 dtype=f32 + binary fn=add a=1x5 b=1x5 dtype=f32 | "
     "gemv m=5 k=4 trans=0 post=bias dtype=f32"},
    {"Gemm", 13, "f32:3x4 f32:4x5 f32:3x1", "", "f32:3x5", 0, true,
     "gemm m=3 n=5 k=4 batch=1 transa=0 transb=0 dtype=f32 + binary fn=add a=3x5 b=3x1 dtype=f32"},
    {"Gemm", 13, "f32:4x3 f32:4x5", "transA=i:1", "f32:3x5", 0, false,
     "matmul a=3x4 b=4x5 constant=0 transa=1 dtype=f32"},
    {"MatMul", 13, "f32:1x4 f32:4x5", "", "f32:1x5", 0, true,
     "gemm m=1 n=5 k=4 batch=1 transa=0 transb=0 dtype=f32 | gemv m=5 k=4 trans=1 dtype=f32"},
    {"MatMul", 13, "f32:2x1x4 f32:4x5", "", "f32:2x1x5", 0, true,
     "gemm m=2 n=5 k=4 batch=1 transa=0 transb=0 dtype=f32"},
    {"MatMul", 13, "f32:4 f32:4x5", "", "f32:5", 0, true,
     "gemm m=1 n=5 k=4 batch=1 transa=0 transb=0 dtype=f32 | gemv m=5 k=4 trans=1 dtype=f32"},
    {"MatMul", 13, "f32:3x4 f32:4", "", "f32:3", 0, true, "gemm m=3 n=1 k=4 batch=1 transa=0 transb=0 dtype=f32"},
    {"MatMul", 13, "f32:2x3x4 f32:2x4x5", "", "f32:2x3x5", 0, false, "matmul a=2x3x4 b=2x4x5 constant=0 dtype=f32"},
    {"MatMul", 13, "f32:2x3x4 f32:2x4x5", "", "f32:2x3x5", BZ_U8, false,
     "matmul a=2x3x4 b=2x4x5 constant=0 dtype=u8:i8:u8"},
    {"MatMul", 13, "f32:3x4 f32:4x5", "", "f32:3x5", BZ_U8, true,
     "gemm m=3 n=5 k=4 batch=1 transa=0 transb=0 dtype=u8:i8:u8"},
    {"MatMulInteger", 10, "u8:2x3x4 i8:2x4x5", "", "i32:2x3x5", 0, true,
     "matmul a=2x3x4 b=2x4x5 constant=1 dtype=u8:i8:i32"},
    {"Conv", 11, "f32:1x2x6 f32:3x2x2 f32:3", "", "f32:1x3x5", BZ_U8, true,
     "conv x=1x2x6 w=3x2x2 stride=1 pad=0x0 dilation=1 group=1 post=bias dtype=u8:i8:u8"},
    {"Conv", 11, "f32:1x2x6 f32:3x2x2 f32:3", "", "f32:1x3x5", BZ_F16, true,
     "conv x=1x2x6 w=3x2x2 stride=1 pad=0x0 dilation=1 group=1 post=bias dtype=f16 | "
     "conv x=1x2x6 w=3x2x2 stride=1 pad=0x0 dilation=1 group=1 dtype=f16 + binary fn=add a=1x3x5 b=1x3x1 dtype=f16"},
    {"MatMul", 13, "f32:2x3x4x5 f32:2x3x5x6", "", "f32:2x3x4x6", 0, false,
     "matmul a=6x4x5 b=6x5x6 constant=0 dtype=f32"},
    {"MatMul", 13, "f32:2x3x4x5 f32:1x3x5x6", "", "f32:2x3x4x6", 0, false,
     "matmul a=2x3x4x5 b=1x3x5x6 constant=0 dtype=f32"},
    {"MatMul", 13, "f32:3x4 f32:2x4x5", "", "f32:2x3x5", 0, false, "matmul a=1x3x4 b=2x4x5 constant=0 dtype=f32"},
    {MS "FusedMatMul", 1, "f32:2x3x4 f32:2x5x4", "transB=i:1", "f32:2x3x5", 0, false,
     "matmul a=2x3x4 b=2x4x5 constant=0 transb=1 dtype=f32"},
    {MS "FusedGemm", 1, "f32:3x4 f32:4x5", "activation=s:Relu", "f32:3x5", 0, true,
     "gemm m=3 n=5 k=4 batch=1 transa=0 transb=0 post=relu dtype=f32"},
    {MS "FusedGemm", 1, "f32:3x4 f32:4x5", "activation=s:LeakyRelu activation_alpha=f:0.25", "f32:3x5", 0, true,
     "gemm m=3 n=5 k=4 batch=1 transa=0 transb=0 post=leaky:0.25 dtype=f32"},
    {MS "FusedConv", 1, "f32:1x2x6 f32:3x2x2", "activation=s:Selu", "f32:1x3x5", 0, true,
     "!no library has its activation"},
    {"Conv", 11, "f32:1x2x5x5x5x5 f32:3x2x1x1x1x1", "", "f32:1x3x5x5x5x5", 0, true, "!one to three spatial dimensions"},
    {"ConvTranspose", 11, "f32:1x2x5 f32:2x3x3", "strides=I:2 output_padding=I:1", "f32:1x3x12", 0, true,
     "deconv x=1x2x5 w=2x3x3 stride=2 pad=0x0 dilation=1 outpad=1 group=1 dtype=f32"},
    {"ConvInteger", 10, "u8:1x2x6x1 u8:3x2x2x1", "", "i32:1x3x5x1", 0, false, "!u8 that is not constant"},
    /* recurrent layers: a call, and products step by step */
    {"RNN", 22, "f32:2x3x4 f32:1x5x4 f32:1x5x5", "hidden_size=i:5 activations=S:Relu", "f32:2x1x3x5 f32:1x3x5", 0, true,
     "rnn seq=2 batch=3 input=4 hidden=5 dir=forward fn=relu dtype=f32 | "
     "matmul a=6x4 b=4x5 constant=1 dtype=f32 + matmul a=3x5 b=5x5 constant=1 dtype=f32 + "
     "matmul a=3x5 b=5x5 constant=1 dtype=f32 + activation fn=relu x=6x5 dtype=f32"},
    {"LSTM", 22, "f32:1x3x4 f32:1x20x4 f32:1x20x5", "hidden_size=i:5 direction=s:reverse", "f32:1x1x3x5", 0, true,
     "lstm seq=1 batch=3 input=4 hidden=5 dir=reverse dtype=f32 | "
     "matmul a=3x4 b=4x20 constant=1 dtype=f32 + matmul a=3x5 b=5x20 constant=1 dtype=f32 + "
     "activation fn=sigmoid x=3x15 dtype=f32 + activation fn=tanh x=3x10 dtype=f32 + "
     "binary fn=mul a=3x5 b=3x5 dtype=f32 + binary fn=mul a=3x5 b=3x5 dtype=f32 + binary fn=mul a=3x5 b=3x5 dtype=f32 "
     "+ "
     "binary fn=add a=3x5 b=3x5 dtype=f32"},
    {"GRU", 22, "f32:1x3x4 f32:1x15x4 f32:1x15x5", "hidden_size=i:5 linear_before_reset=i:1", "f32:1x1x3x5", 0, true,
     "gru seq=1 batch=3 input=4 hidden=5 dir=forward lbr=1 dtype=f32 | "
     "matmul a=3x4 b=4x15 constant=1 dtype=f32 + matmul a=3x5 b=5x15 constant=1 dtype=f32 + "
     "activation fn=sigmoid x=3x10 dtype=f32 + activation fn=tanh x=3x5 dtype=f32 + "
     "binary fn=mul a=3x5 b=3x5 dtype=f32 + binary fn=mul a=3x5 b=3x5 dtype=f32 + binary fn=mul a=3x5 b=3x5 dtype=f32 "
     "+ "
     "binary fn=add a=3x5 b=3x5 dtype=f32"},
    {"LSTM", 22, "f32:1x3x4 f32:1x20x4 f32:1x20x5", "hidden_size=i:5 input_forget=i:1", "f32:1x1x3x5", 0, true,
     "!clips its gates or couples them"},
    {"RNN", 22, "f32:2x3x4 f32:1x5x4 f32:1x5x5", "hidden_size=i:5 activations=S:Softsign", "f32:2x1x3x5", 0, true,
     "!its activations have no benchmark"},
};

static void put_calls(const bz_lowering *low, bz_buf *out)
{
    if (!low->n)
        bz_buf_printf(out, "!%s", low->why ? low->why : "free");
    for (int a = 0; a < low->n; a++) {
        bz_buf_puts(out, a ? " | " : "");
        for (int i = 0; i < low->alternative[a].n; i++)
            bz_buf_printf(out, "%s%s", i ? " + " : "",
                          low->alternative[a].modelled ? "copy" : low->alternative[a].text[i]);
    }
}

static void operators_have_their_calls(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const op_case c = {ROWS[i].op, ROWS[i].opset, ROWS[i].in, ROWS[i].attrs, ROWS[i].out, -1};
        subject s;
        bz_buf found = {0};
        lower(&s, &c, ROWS[i].wanted, ROWS[i].weights);
        put_calls(&s.low, &found);
        bool fine = *ROWS[i].calls == '!' ? *found.data == '!' && strstr(found.data, ROWS[i].calls + 1)
                                          : !strcmp(found.data, ROWS[i].calls);
        if (!fine)
            print_error("%s-%d(%s) {%s}\n    wanted %s\n    found  %s\n", c.op, c.opset, c.in, c.attrs, ROWS[i].calls,
                        found.data);
        wrong += !fine;
        bz_buf_free(&found);
        end(&s);
    }
    assert_int_equal(wrong, 0);
}

/* A concat has 64 parts at most, a sum 64 operands. */
static void many_operands(void **state)
{
    (void)state;
    static const char *const OPS[] = {"Concat", "Sum"};
    for (int op = 0; op < 2; op++)
        for (int n = 64; n <= 65; n++) {
            bz_buf in = {0};
            char out[32];
            for (int k = 0; k < n; k++)
                bz_buf_puts(&in, k ? " f32:2" : "f32:2");
            snprintf(out, sizeof out, "f32:%d", op ? 2 : 2 * n);
            const op_case c = {OPS[op], 13, bz_buf_text(&in), op ? "" : "axis=i:0", out, -1};
            subject s;
            lower(&s, &c, BZ_UNDEFINED, false);
            assert_int_equal(s.low.n, 1);
            assert_int_equal(s.low.alternative[0].modelled, n > 64);
            assert_int_equal(s.low.alternative[0].n, n == 64 && op ? 63 : 1);
            end(&s);
            bz_buf_free(&in);
        }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double f_relu(double x)
{
    return x > 0 ? x : 0;
}
static double f_leaky(double x)
{
    return x > 0 ? x : 0.25 * x;
}
static double f_elu(double x)
{
    return x > 0 ? x : 0.5 * (exp(x) - 1);
}
static double f_selu(double x)
{
    return 1.5 * (x > 0 ? x : 2 * (exp(x) - 1));
}
static double f_celu(double x)
{
    return x > 0 ? x : 2 * (exp(x / 2) - 1);
}
static double f_hardsigmoid(double x)
{
    return fmax(0, fmin(1, 0.25 * x + 0.75));
}
static double f_hardswish(double x)
{
    return x * fmax(0, fmin(1, x / 6 + 0.5));
}
static double f_mish(double x)
{
    return x * tanh(log(1 + exp(x)));
}
static double f_softplus(double x)
{
    return log(1 + exp(x));
}
static double f_sin(double x)
{
    return sin(x);
}

static double f_cos(double x)
{
    return cos(x);
}

static double f_softsign(double x)
{
    return x / (1 + fabs(x));
}
static double f_gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}
static double f_gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}
static double f_swish(double x)
{
    return x * sigmoid(x);
}
static double f_quick(double x)
{
    return x * sigmoid(1.5 * x);
}
static double f_neg(double x)
{
    return -x;
}
static double f_reciprocal(double x)
{
    return 1 / x;
}
static double f_sign(double x)
{
    return (x > 0) - (x < 0);
}
static double f_clip(double x)
{
    return fmax(-1, fmin(2, x));
}
static double f_cap(double x)
{
    return fmin(2, x);
}

/* The call's value: a function, or a product with 1 and functions behind it. */
static double value_of(const bz_problem *p, double x)
{
    double y = p->kind == BZ_PROBLEM_ACTIVATION
                   ? bz_fn_value(p->activation.fn, x, (double)p->activation.alpha, (double)p->activation.beta)
                   : x;
    for (int i = 0; p->post[i].fn; i++)
        y = bz_fn_value(p->post[i].fn, y, (double)p->post[i].alpha, (double)p->post[i].beta);
    return y;
}

static void functions_have_the_operators_values(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        int opset;
        const char *in, *attrs;
        double (*f)(double);
        double divided; /* the operand, before functions */
    } FUNCTIONS[] = {
        {"Relu", 14, "f32:9", "", f_relu, 1},
        {"LeakyRelu", 16, "f32:9", "alpha=f:0.25", f_leaky, 1},
        {"LeakyRelu", 16, "f32:9", "alpha=f:0", f_relu, 1},
        {"Elu", 6, "f32:9", "alpha=f:0.5", f_elu, 1},
        {"Elu", 6, "f32:9", "alpha=f:0", f_relu, 1},
        {"Selu", 6, "f32:9", "alpha=f:2 gamma=f:1.5", f_selu, 1},
        {"Celu", 12, "f32:9", "alpha=f:2", f_celu, 2},
        {"Sigmoid", 13, "f32:9", "", sigmoid, 1},
        {"Tanh", 13, "f32:9", "", tanh, 1},
        {"HardSigmoid", 6, "f32:9", "alpha=f:0.25 beta=f:0.75", f_hardsigmoid, 1},
        {"HardSwish", 14, "f32:9", "", f_hardswish, 1},
        {"Mish", 18, "f32:9", "", f_mish, 1},
        {"Softplus", 1, "f32:9", "", f_softplus, 1},
        {"Softsign", 1, "f32:9", "", f_softsign, 1},
        {"Sin", 1, "f32:9", "", f_sin, 1},
        {"Cos", 1, "f32:9", "", f_cos, 1},
        {"Gelu", 20, "f32:9", "", f_gelu, 1},
        {"Gelu", 20, "f32:9", "approximate=s:tanh", f_gelu_tanh, 1},
        {MS "Gelu", 1, "f32:9", "", f_gelu, 1},
        {MS "FastGelu", 1, "f32:9", "", f_gelu_tanh, 1},
        {MS "QuickGelu", 1, "f32:9", "alpha=f:1.5", f_quick, 1},
        {"Swish", 24, "f32:9", "", f_swish, 1},
        {"Exp", 13, "f32:9", "", exp, 1},
        {"Abs", 13, "f32:9", "", fabs, 1},
        {"Erf", 13, "f32:9", "", erf, 1},
        {"Floor", 13, "f32:9", "", floor, 1},
        {"Ceil", 13, "f32:9", "", ceil, 1},
        {"Round", 11, "f32:9", "", nearbyint, 1},
        {"Sign", 13, "f32:9", "", f_sign, 1},
        {"Neg", 13, "f32:9", "", f_neg, 1},
        {"Reciprocal", 13, "f32:9", "", f_reciprocal, 1},
        {"Clip", 13, "f32:9 f32:=-1 f32:=2", "", f_clip, 1},
        {"Clip", 13, "f32:9 - f32:=2", "", f_cap, 1},
        {"Clip", 13, "f32:9 f32:=0", "", f_relu, 1},
        {"Clip", 6, "f32:9", "min=f:-1 max=f:2", f_clip, 1},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
        const op_case c = {FUNCTIONS[i].op, FUNCTIONS[i].opset, FUNCTIONS[i].in, FUNCTIONS[i].attrs, "f32:9", -1};
        subject s;
        lower(&s, &c, BZ_UNDEFINED, false);
        assert_true(s.low.n > 0 && s.low.alternative[0].n == 1);
        for (double x = -3.8; x < 4; x += 0.7) {
            double y = value_of(s.low.alternative[0].problem, x / FUNCTIONS[i].divided), f = FUNCTIONS[i].f(x);
            if (!(fabs(y - f) < 1e-6 * (1 + fabs(f)))) {
                print_error("%s {%s} of %g is %g, %s gives %g\n", c.op, c.attrs, x, f, s.low.alternative[0].text[0], y);
                wrong++;
            }
        }
        end(&s);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators_have_their_calls), cmocka_unit_test(many_operands),
                                       cmocka_unit_test(functions_have_the_operators_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
