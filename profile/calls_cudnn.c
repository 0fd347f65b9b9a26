/* cuDNN's calls as problems, by the parameters that its log tells. */
#include "profile/calls.h"

#include <stdlib.h>
#include <string.h>

bool bz_call_cudnn_conv(const bz_trace *t, size_t call, bz_problem *p)
{
    int64_t pad[BZ_PROBLEM_SPATIAL], group = 1;
    char text[64];
    p->kind = BZ_PROBLEM_CONV;
    int rank = bz_call_list(t, call, "xDesc.dimA", p->conv.x, BZ_PROBLEM_SPATIAL + 2), spatial = rank - 2;
    if (rank < 3 || bz_call_list(t, call, "wDesc.dimA", p->conv.w, rank) != rank ||
        bz_call_list(t, call, "convDesc.padA", pad, BZ_PROBLEM_SPATIAL) != spatial ||
        bz_call_list(t, call, "convDesc.strideA", p->conv.stride, BZ_PROBLEM_SPATIAL) != spatial ||
        bz_call_list(t, call, "convDesc.dilationA", p->conv.dilation, BZ_PROBLEM_SPATIAL) != spatial ||
        !bz_call_dtype(t, call, "xDesc.dataType", &p->dtype))
        return false;
    if (bz_call_parameter(t, call, "convDesc.groupCount", text, sizeof text))
        group = strtoll(text, NULL, 10);
    for (int i = 0; i < spatial; i++)
        p->conv.pad[i] = p->conv.pad[spatial + i] = pad[i];
    p->conv.group = group;
    return true;
}

bool bz_call_cudnn_conv_bias(const bz_trace *t, size_t call, bz_problem *p)
{
    char text[64];
    if (!bz_call_cudnn_conv(t, call, p) || !bz_call_parameter(t, call, "activationDesc.mode", text, sizeof text))
        return false;
    p->post[0].fn = BZ_FN_BIAS;
    if (!strcmp(text, "CUDNN_ACTIVATION_RELU"))
        p->post[1].fn = BZ_FN_RELU;
    return p->post[1].fn || !strcmp(text, "CUDNN_ACTIVATION_IDENTITY");
}

/* Version 7 says srcDesc and destDesc where later ones say xDesc and yDesc. */
static int input(const bz_trace *t, size_t call, int64_t *x, bz_dtype *dtype)
{
    int rank = bz_call_list(t, call, "xDesc.dimA", x, BZ_PROBLEM_RANK);
    const char *type = rank ? "xDesc.dataType" : "srcDesc.dataType";
    if (!rank)
        rank = bz_call_list(t, call, "srcDesc.dimA", x, BZ_PROBLEM_RANK);
    return bz_call_dtype(t, call, type, dtype) ? rank : 0;
}

static int find(const char *const *names, int n, const char *text)
{
    while (n-- && (!names[n] || strcmp(names[n], text) != 0))
        ;
    return n;
}

bool bz_call_cudnn_pool(const bz_trace *t, size_t call, bz_problem *p)
{
    static const char *const MODES[] = {[BZ_POOL_MAX] = "CUDNN_POOLING_MAX",
                                        [BZ_POOL_AVG] = "CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING",
                                        [BZ_POOL_AVG_PAD] = "CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING"};
    char text[64];
    int64_t pad[BZ_PROBLEM_SPATIAL], y[BZ_PROBLEM_RANK];
    p->kind = BZ_PROBLEM_POOL;
    int rank = input(t, call, p->pool.x, &p->dtype), spatial = rank - 2, mode;
    if (rank < 3 || spatial > BZ_PROBLEM_SPATIAL ||
        !bz_call_parameter(t, call, "poolingDesc.mode", text, sizeof text) ||
        bz_call_list(t, call, "poolingDesc.windowDimA", p->pool.kernel, BZ_PROBLEM_SPATIAL) != spatial ||
        bz_call_list(t, call, "poolingDesc.strideA", p->pool.stride, BZ_PROBLEM_SPATIAL) != spatial ||
        bz_call_list(t, call, "poolingDesc.paddingA", pad, BZ_PROBLEM_SPATIAL) != spatial)
        return false;
    mode = !strcmp(text, "CUDNN_POOLING_MAX_DETERMINISTIC") ? BZ_POOL_MAX : find(MODES, 3, text);
    bool sized = bz_call_list(t, call, "destDesc.dimA", y, BZ_PROBLEM_RANK) == rank ||
                 bz_call_list(t, call, "yDesc.dimA", y, BZ_PROBLEM_RANK) == rank;
    for (int a = 0; a < spatial; a++) {
        p->pool.pad[a] = pad[a];
        p->pool.pad[spatial + a] =
            sized ? bz_call_pad_end(p->pool.x[2 + a], y[2 + a], p->pool.kernel[a], p->pool.stride[a], 1, pad[a])
                  : pad[a];
    }
    p->pool.mode = (bz_pool_mode)mode;
    return mode >= 0;
}

bool bz_call_cudnn_activation(const bz_trace *t, size_t call, bz_problem *p)
{
    static const char *const MODES[] = {"CUDNN_ACTIVATION_RELU", "CUDNN_ACTIVATION_SIGMOID", "CUDNN_ACTIVATION_TANH",
                                        "CUDNN_ACTIVATION_ELU", "CUDNN_ACTIVATION_CLIPPED_RELU"};
    static const bz_fn FUNCTIONS[] = {BZ_FN_RELU, BZ_FN_SIGMOID, BZ_FN_TANH, BZ_FN_ELU, BZ_FN_CLIP};
    char text[64];
    double coefficient = 0;
    p->kind = BZ_PROBLEM_ACTIVATION;
    int mode = bz_call_parameter(t, call, "activationDesc.mode", text, sizeof text) ? find(MODES, 5, text) : -1;
    if (mode < 0 || !input(t, call, p->activation.x, &p->dtype))
        return false;
    p->activation.fn = FUNCTIONS[mode];
    if (p->activation.fn == BZ_FN_ELU || p->activation.fn == BZ_FN_CLIP) {
        if (!bz_call_real(t, call, "activationDesc.coef", &coefficient))
            return false;
        *(p->activation.fn == BZ_FN_ELU ? &p->activation.alpha : &p->activation.beta) = (float)coefficient;
    }
    return true;
}

bool bz_call_cudnn_batchnorm(const bz_trace *t, size_t call, bz_problem *p)
{
    p->kind = BZ_PROBLEM_BATCHNORM;
    return input(t, call, p->batchnorm.x, &p->dtype) > 0;
}

bool bz_call_cudnn_softmax(const bz_trace *t, size_t call, bz_problem *p)
{
    char mode[64], algorithm[64];
    bool log =
        bz_call_parameter(t, call, "algorithm", algorithm, sizeof algorithm) && !strcmp(algorithm, "CUDNN_SOFTMAX_LOG");
    p->kind = log ? BZ_PROBLEM_LOGSOFTMAX : BZ_PROBLEM_SOFTMAX;
    int rank = input(t, call, p->softmax.x, &p->dtype);
    if (rank < 2 || !bz_call_parameter(t, call, "mode", mode, sizeof mode))
        return false;
    bool instance = !strcmp(mode, "CUDNN_SOFTMAX_MODE_INSTANCE"); /* over all but the batch */
    for (int i = 2; i < rank && instance; i++)
        if (p->softmax.x[i] != 1)
            return false;
    p->softmax.axis = 1;
    return true;
}

bool bz_call_cudnn_lrn(const bz_trace *t, size_t call, bz_problem *p)
{
    double alpha, beta, bias;
    p->kind = BZ_PROBLEM_LRN;
    if (!input(t, call, p->lrn.x, &p->dtype) || !bz_call_int(t, call, "normDesc.lrnN", &p->lrn.size) ||
        !bz_call_real(t, call, "normDesc.lrnAlpha", &alpha) || !bz_call_real(t, call, "normDesc.lrnBeta", &beta) ||
        !bz_call_real(t, call, "normDesc.lrnK", &bias))
        return false;
    p->lrn.alpha = (float)alpha;
    p->lrn.beta = (float)beta;
    p->lrn.bias = (float)bias;
    return true;
}

/* What is added is broadcast to the result. */
bool bz_call_cudnn_add(const bz_trace *t, size_t call, bz_problem *p)
{
    bool old = bz_call_list(t, call, "srcDestDesc.dimA", p->binary.a, BZ_PROBLEM_RANK) > 0;
    p->kind = BZ_PROBLEM_BINARY;
    p->binary.fn = BZ_FN_ADD;
    return (old || bz_call_list(t, call, "cDesc.dimA", p->binary.a, BZ_PROBLEM_RANK)) &&
           (bz_call_list(t, call, "biasDesc.dimA", p->binary.b, BZ_PROBLEM_RANK) ||
            bz_call_list(t, call, "aDesc.dimA", p->binary.b, BZ_PROBLEM_RANK)) &&
           bz_call_dtype(t, call, old ? "srcDestDesc.dataType" : "cDesc.dataType", &p->dtype);
}

bool bz_call_cudnn_op(const bz_trace *t, size_t call, bz_problem *p)
{
    static const char *const OPS[] = {"CUDNN_OP_TENSOR_ADD", "CUDNN_OP_TENSOR_MUL", "CUDNN_OP_TENSOR_MIN",
                                      "CUDNN_OP_TENSOR_MAX"};
    static const bz_fn FUNCTIONS[] = {BZ_FN_ADD, BZ_FN_MUL, BZ_FN_MIN, BZ_FN_MAX};
    char text[64];
    p->kind = BZ_PROBLEM_BINARY;
    int op = bz_call_parameter(t, call, "opTensorDesc.opTensorOp", text, sizeof text) ? find(OPS, 4, text) : -1;
    p->binary.fn = op < 0 ? BZ_FN_NONE : FUNCTIONS[op];
    return op >= 0 && bz_call_list(t, call, "aDesc.dimA", p->binary.a, BZ_PROBLEM_RANK) &&
           bz_call_list(t, call, "bDesc.dimA", p->binary.b, BZ_PROBLEM_RANK) &&
           bz_call_dtype(t, call, "aDesc.dataType", &p->dtype);
}
