/* What names of kernels, calls and operators mean. The first row whose text occurs counts. */
#include "explain/align.h"

#include <string.h>

typedef struct row {
    const char *text; /* as for bz_name_matches */
    bz_align_rule rule;
} row;

/* Kernels that no library call asked for, by their full names. */
static const row KERNELS[] = {
    {"pad_constant_kernel", {NULL, "input-padded"}},
    {"pad_edge_kernel", {NULL, "edges-repeated"}},
    {"constant_pad", {NULL, "input-padded"}},
    {"reflection_pad", {"pad", NULL}},
    {"replication_pad", {"pad", NULL}},
    {"nchwToNhwc", {NULL, "layout-changed"}},
    {"nhwcToNchw", {NULL, "layout-changed"}},
    {"NCHW2NHWC", {NULL, "layout-changed"}},
    {"NHWC2NCHW", {NULL, "layout-changed"}},
    {"set_to_int", {NULL, "filled"}},
    {"FillFunctor", {NULL, "filled"}},
    {"OP_Relu", {"relu", NULL}},
    {"mshadow::expr::Typecast", {NULL, "converted"}},
    {"Typecast", {NULL, "converted"}},
    {"SliceExp", {"concat", NULL}}, /* mshadow writes each input into a slice of the result */
    {"BatchNormalization", {"batchnorm", NULL}},
    {"batch_norm", {"batchnorm", NULL}},
    {"bn_fw_inf", {"batchnorm", NULL}},
    {"layer_norm", {"layernorm", NULL}},
    {"LayerNorm", {"layernorm", NULL}},
    {"mshadow_op::relu", {"relu", NULL}},
    {"ReluCUDAKernel", {"relu", NULL}},
    {"ReluFunctor", {"relu", NULL}},
    {"clamp", {"clip", NULL}},
    {"mshadow_op::sigmoid", {"sigmoid", NULL}},
    {"sigmoid", {"sigmoid", NULL}},
    {"tanh", {"tanh", NULL}},
    {"GeluCUDAKernel", {"gelu_erf", NULL}},
    {"binary_broadcast_kernel<2, float, mxnet::op::mshadow_op::plus", {"bias", NULL}},
    {"mshadow_op::plus", {"add", NULL}},
    {"mshadow_op::mul", {"mul", NULL}},
    {"CUDAFunctor_add", {"add", NULL}},
    {"AddFunctor", {"add", NULL}},
    {"OP_Add", {"add", NULL}},
    {"MulFunctor", {"mul", NULL}},
    {"OP_Mul", {"mul", NULL}},
    {"axPool", {"pool", NULL}},
    {"max_pool", {"pool", NULL}},
    {"avg_pool", {"pool", NULL}},
    {"pooling_fw", {"pool", NULL}},
    {"AveragePool", {"pool", NULL}},
    {"oftmax", {"softmax", NULL}},
    {"softmax", {"softmax", NULL}},
    {"oncat", {"concat", NULL}},
    {"CatArrayBatchedCopy", {"concat", NULL}},
    {"lrnForward", {"lrn", NULL}},
    {"ranspose", {"transpose", NULL}},
    {"mbeddingGather", {"gather", NULL}},
    {"gather", {"gather", NULL}},
    {"(cudnnGenericOp_t)0", {"bias", NULL}},
    {"(cudnnGenericOp_t)8", {"relu", NULL}},
    {"convolve", {"conv", NULL}},
    {"inograd", {"conv", NULL}},
    {"flip_filter", {"conv", NULL}},
    {"fft1d_", {"conv", NULL}},
    {"fft2d_", {"conv", NULL}},
    {"im2col", {"conv", NULL}},
    {"gcgemm", {"conv", NULL}},
    {"computeOffsetsKernel", {"conv", NULL}},
    {"compute_gemm_pointers", {"conv", NULL}},
    {"cudnn", {"conv", NULL}},
    {"gemm", {"product", NULL}},
    {"gemv", {"product", NULL}},
    {"nvjet_", {"product", NULL}},
};

/* Library calls, where their parameters are not known or make no problem. */
static const row CALLS[] = {
    {"^reorder$", {NULL, "activations-reordered"}}, /* or weights: align_steps.c tells them apart */
    {"^cudnnTransform", {NULL, "layout-changed"}},
    {"^cudnnSetTensor", {NULL, "filled"}},
    {"^cudnnIm2Col", {NULL, "layout-changed"}},
    {"^cudnnConvolutionBackwardData", {"deconv", NULL}},
    {"^cudnnConvolution", {"conv", NULL}},
    {"^cudnnBackendExecute", {"conv", NULL}},
    {"^cudnnAddTensor", {"bias", NULL}},
    {"^cudnnPooling", {"pool", NULL}},
    {"^cudnnActivation", {"relu", NULL}},
    {"^cudnnBatchNormalization", {"batchnorm", NULL}},
    {"^cudnnNormalization", {"batchnorm", NULL}},
    {"^cudnnSoftmax", {"softmax", NULL}},
    {"^cudnnLRN", {"lrn", NULL}},
    {"^cudnnOpTensor", {"add", NULL}},
    {"^cudnnReduce", {"reduce", NULL}},
    {"^cudnnRNN", {"lstm", NULL}},
    {"^cublas", {"product", NULL}},
    {"gemm", {"product", NULL}},
    {"gemv", {"product", NULL}},
    {"^matmul$", {"product", NULL}},
    {"^inner_product$", {"product", NULL}},
    {"^convolution$", {"conv", NULL}},
    {"^deconvolution$", {"deconv", NULL}},
    {"^batch_normalization", {"batchnorm", NULL}},
    {"^layer_normalization", {"layernorm", NULL}},
    {"^pooling", {"pool", NULL}},
    {"^softmax", {"softmax", NULL}},
    {"^logsoftmax", {"logsoftmax", NULL}},
    {"^lrn$", {"lrn", NULL}},
    {"^concat$", {"concat", NULL}},
    {"^sum$", {"add", NULL}},
    {"^prelu$", {"prelu", NULL}},
    {"^resampling", {"resample", NULL}},
    {"^reduction$", {"reduce", NULL}},
    {"^rnn$", {"lstm", NULL}},
};

/* Operators of PyTorch and of ONNX Runtime that compute, where neither calls nor kernels were recorded. The outermost one
 * that is known counts. */
static const row OPERATORS[] = {
    {"ReorderInput", {NULL, "activations-reordered"}},
    {"ReorderOutput", {NULL, "activations-reordered"}},
    {"^aten::conv", {"conv", NULL}},
    {"^aten::_convolution", {"conv", NULL}},
    {"^aten::linear$", {"product", NULL}},
    {"^aten::addmm$", {"product", NULL}},
    {"^aten::matmul$", {"product", NULL}},
    {"^aten::mm$", {"product", NULL}},
    {"^aten::bmm$", {"product", NULL}},
    {"^aten::batch_norm", {"batchnorm", NULL}},
    {"^aten::layer_norm", {"layernorm", NULL}},
    {"^aten::relu", {"relu", NULL}},
    {"^aten::hardtanh", {"clip", NULL}},
    {"^aten::clamp", {"clip", NULL}},
    {"^aten::gelu", {"gelu_erf", NULL}},
    {"^aten::sigmoid", {"sigmoid", NULL}},
    {"^aten::tanh", {"tanh", NULL}},
    {"^aten::add_$", {"add", NULL}},
    {"^aten::add$", {"add", NULL}},
    {"^aten::mul", {"mul", NULL}},
    {"^aten::max_pool", {"pool", NULL}},
    {"^aten::avg_pool", {"pool", NULL}},
    {"^aten::adaptive_avg_pool", {"pool", NULL}},
    {"^aten::softmax", {"softmax", NULL}},
    {"^aten::cat$", {"concat", NULL}},
    {"^aten::pad", {NULL, "input-padded"}},
    {"^aten::constant_pad", {NULL, "input-padded"}},
    {"^aten::to$", {NULL, "converted"}},
    {"^aten::contiguous$", {NULL, "layout-changed"}},
    {"^aten::copy_$", {NULL, "copied"}},
    {"^FusedConv$", {"conv", NULL}},
    {"^Conv$", {"conv", NULL}},
    {"^ConvTranspose$", {"deconv", NULL}},
    {"^FusedGemm$", {"product", NULL}},
    {"^Gemm$", {"product", NULL}},
    {"^FusedMatMul$", {"product", NULL}},
    {"^MatMul$", {"product", NULL}},
    {"^BatchNormalization$", {"batchnorm", NULL}},
    {"^LayerNormalization$", {"layernorm", NULL}},
    {"^Relu$", {"relu", NULL}},
    {"^Clip$", {"clip", NULL}},
    {"^Sigmoid$", {"sigmoid", NULL}},
    {"^Tanh$", {"tanh", NULL}},
    {"^Gelu$", {"gelu_erf", NULL}},
    {"^Add$", {"add", NULL}},
    {"^Sum$", {"add", NULL}},
    {"^Mul$", {"mul", NULL}},
    {"^Sub$", {"sub", NULL}},
    {"^Div$", {"div", NULL}},
    {"^MaxPool$", {"pool", NULL}},
    {"^AveragePool$", {"pool", NULL}},
    {"^GlobalAveragePool$", {"pool", NULL}},
    {"^GlobalMaxPool$", {"pool", NULL}},
    {"^Softmax$", {"softmax", NULL}},
    {"^Concat$", {"concat", NULL}},
    {"^LRN$", {"lrn", NULL}},
    {"^Transpose$", {"transpose", NULL}},
    {"^Gather$", {"gather", NULL}},
};

/* Calls of CUDA's runtime and driver; other ones are "runtime". */
static const row APIS[] = {
    {"Synchronize", {NULL, "waits"}},
    {"EventQuery", {NULL, "waits"}},
    {"StreamQuery", {NULL, "waits"}},
    {"Launch", {NULL, "launches"}},
};

static const struct {
    const char *id, *name;
} CAUSES[] = {
    {"weights-reordered", "weights brought into another layout"},
    {"activations-reordered", "activations brought into another layout"},
    {"layout-changed", "data brought into another layout"},
    {"input-padded", "inputs padded by the program"},
    {"edges-repeated", "inputs padded by the program with their edges"},
    {"constants-computed", "work on constants alone"},
    {"converted", "data converted to another type"},
    {"filled", "buffers filled"},
    {"copied", "copies"},
    {"copied-to-device", "copies to the device"},
    {"copied-from-device", "copies from the device"},
    {"copied-on-device", "copies on the device"},
    {"calls-extra", "library calls that belong to no layer"},
    {"kernels-extra", "kernels that belong to no layer"},
    {"operators-extra", "operators that belong to no layer"},
    {"waits", "the device is done, and the host still waits for it"},
    {"launches", "the device waits for launches"},
    {"runtime", "the device waits for other calls of its runtime"},
    {"library", "the device waits while a library call works on the host"},
    {"layers-outside", "layers that the framework does between two library calls"},
    {"other-iteration", "work of another iteration"},
    {"start", "before the first call"},
    {"end", "behind the last call"},
    {"gaps", "time between calls that nothing explains"},
};

static bz_align_rule find(const row *rows, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (bz_name_matches(rows[i].text, name))
            return rows[i].rule;
    return (bz_align_rule){NULL, NULL};
}

bz_align_rule bz_align_kernel_rule(const char *name)
{
    return find(KERNELS, sizeof KERNELS / sizeof *KERNELS, name);
}

bz_align_rule bz_align_call_rule(const char *name)
{
    return find(CALLS, sizeof CALLS / sizeof *CALLS, name);
}

bz_align_rule bz_align_operator_rule(const char *name)
{
    return find(OPERATORS, sizeof OPERATORS / sizeof *OPERATORS, name);
}

const char *bz_align_api_cause(const char *name)
{
    bz_align_rule rule = find(APIS, sizeof APIS / sizeof *APIS, name);
    return rule.cause ? rule.cause : "runtime";
}

const char *bz_align_cause_name(const char *id)
{
    for (size_t i = 0; i < sizeof CAUSES / sizeof *CAUSES; i++)
        if (!strcmp(CAUSES[i].id, id))
            return CAUSES[i].name;
    return id;
}
