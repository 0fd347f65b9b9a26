/* Names of the original tool's benchmarks. A name says all that was asked for,
 *
 *   LAYER_CUDNN_CONV_FWD_0_FLOAT32__BatchSize_1__39569…<CUDNN_CONVOLUTION_FWD_ALGO_GEMM>/input[0]:1/input[1]:256/…
 *
 * and this is what the calls become here:
 *
 *   call in the name             problem                                     algorithm
 *   CUDNN_CONV_FWD               conv x w stride pad dilation group          cudnn algo N NAME
 *   CUDNN_CONV_BIAS_ACTIVATION_… the same with post=bias,FUNCTION            cudnn algo N NAME
 *   CUDNN_ACTIVATION_FWD         activation fn=FUNCTION x                    cudnnActivationForward
 *   CUDNN_POOLING_FWD            pool mode=max or avg x kernel stride pad …  cudnnPoolingForward MODE
 *   CUDNN_BATCHNORM_FWD_INFER…   batchnorm_each x                            cudnnBatchNormalizationForwardInference
 *   CUDNN_BATCHNORM_FWD_TRAIN…   batchnorm_each_training x                   cudnnBatchNormalizationForwardTraining
 *   CUDNN_OP_TENSOR_ADD_FWD      binary fn=add a b                           cudnnOpTensor
 *   CUDNN_OP_TENSOR_MUL_FWD      binary fn=mul a b                           cudnnOpTensor
 *   CUDNN_ADD_TENSOR             expand x y                                  cudnnAddTensor
 *   CUDNN_SOFTMAX_FWD            softmax x axis                              cudnnSoftmaxForward ALGORITHM MODE
 *   CUDNN_DROPOUT_FWD            dropout x                                   cudnnDropoutForward
 *   CUBLAS_GEMM_FWD              gemm m n k batch transa transb post=bias    cublas gemm
 *   CUBLAS_GEMV_FWD              gemm m=1 n k batch transa transb post=bias  cublas gemv
 *   type FLOAT32                 dtype=f32, math default
 *   type TENSORCOREHALF          dtype=f16, math tensor
 *
 * What surprises, and how it is taken:
 *
 * - Activation modes stand where algorithms do, and the original took the cheapest. A clipped ReLU
 *   is no cheaper ReLU: each function is a problem of its own. Clip's ceiling and ELU's alpha were
 *   not recorded: they read "?".
 * - Batch normalization ran per activation, which is not what ONNX means: hence the kind of its own.
 * - cudnnAddTensor ran with beta = 0: it copied the bias over the output and added nothing. That is
 *   an expand. The bias of a convolution is in the fused calls only.
 * - cublas gemv ran with beta = 1, so it added to what was there: the bias of a fully connected layer.
 * - cublas gemm ran with the sizes and the transpositions that a product by rows would have, on matrices that it takes by
 *   columns: what ran is the product of the transposed matrices in the other order.
 * - A dimension of -1 is none: 1.
 * - predicted_flops_count counts multiply-adds once; flops here are computed from the shapes. */
#include "perfdb/gbench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 32, LARGEST = 1 << 30 };

typedef struct {
    const char *key;
    size_t key_len;
    long value;
} argument;

typedef struct {
    const char *name;
    argument argument[MOST_ARGUMENTS];
    int n;
    char mode[2][64]; /* what stands in <…>, less its prefix */
    const char *dtype, *math;
    const char *detail; /* of the row in CALLS: tells calls of one function apart */
    bz_arena *arena;
    bz_error *err;
} call;

static const struct {
    const char *name, *dtype, *math;
} TYPES[] = {
    {"FLOAT32", "f32", "default"},
    {"FLOAT64", "f64", "default"},
    {"FLOAT16", "f16", "default"},
    {"TENSORCOREHALF", "f16", "tensor"},
};

/* cudnnConvolutionFwdAlgo_t, in its order */
static const char *const CONV_ALGORITHMS[] = {
    "IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED",
};

static const struct {
    const char *mode, *kind, *parameters, *post; /* post: behind "post=bias" */
} FUNCTIONS[] = {
    {"RELU", "activation fn=relu", "", ",relu"},
    {"SIGMOID", "activation fn=sigmoid", "", ",sigmoid"},
    {"TANH", "activation fn=tanh", "", ",tanh"},
    {"CLIPPED_RELU", "activation fn=clip", " alpha=0 beta=?", ",clip:0:?"}, /* the names do not tell these: */
    {"ELU", "activation fn=elu", " alpha=?", ",elu:?"},                     /* no problem has such a text */
    {"IDENTITY", "identity", "", ""},
};

static const struct {
    const char *mode, *name;
} POOLINGS[] = {
    {"MAX", "max"},
    {"MAX_DETERMINISTIC", "max"},
    {"AVERAGE_COUNT_INCLUDE_PADDING", "avg_pad"},
    {"AVERAGE_COUNT_EXCLUDE_PADDING", "avg"},
};

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

/* An argument of the name, which must be there and between `least` and LARGEST. */
static int get(call *c, const char *key, long least, long *value)
{
    for (int i = 0; i < c->n; i++) {
        const argument *a = &c->argument[i];
        if (a->key_len != strlen(key) || memcmp(a->key, key, a->key_len) != 0)
            continue;
        *value = a->value;
        if (a->value < least || a->value > LARGEST)
            return bz_fail(c->err, BZ_BAD_INPUT, "'%s' is out of range", key);
        return 0;
    }
    return bz_fail(c->err, BZ_BAD_INPUT, "the name has no '%s'", key);
}

static int get_all(call *c, const char *const *keys, long least, long *values, int n)
{
    for (int i = 0; i < n; i++)
        if (get(c, keys[i], least, &values[i]))
            return -1;
    return 0;
}

static int get_input(call *c, long x[4])
{
    return get_all(c, (const char *const[]){"input[0]", "input[1]", "input[2]", "input[3]"}, 1, x, 4);
}

static int find_function(call *c, const char *mode)
{
    for (int i = 0; i < COUNT(FUNCTIONS); i++)
        if (!strcmp(FUNCTIONS[i].mode, mode))
            return i;
    return bz_fail(c->err, BZ_BAD_INPUT, "there is no activation '%s'", mode);
}

static int name_conv(call *c, bz_record *r)
{
    long x[4], w[3], stride[2], pad[2], dilation[2], group = 0;
    int f = *c->detail ? find_function(c, c->mode[1]) : 0;
    if (f < 0 || get_input(c, x) ||
        get_all(c, (const char *const[]){"filter_count", "filter_height", "filter_width"}, 1, w, 3) ||
        get_all(c, (const char *const[]){"stride_height", "stride_width"}, 1, stride, 2) ||
        get_all(c, (const char *const[]){"pad_height", "pad_width"}, 0, pad, 2) ||
        get_all(c, (const char *const[]){"dilation_height", "dilation_width"}, 1, dilation, 2) ||
        get(c, "group", 1, &group))
        return -1;
    double out = 1;
    for (int i = 0; i < 2; i++) {
        long room = x[2 + i] + 2 * pad[i] - dilation[i] * (w[1 + i] - 1) - 1, size = room / stride[i] + 1;
        if (room < 0)
            return bz_fail(c->err, BZ_BAD_INPUT, "the filter is larger than the input");
        out *= (double)size;
    }
    if (x[1] % group)
        return bz_fail(c->err, BZ_BAD_INPUT, "the groups do not divide the channels");
    int algorithm = 0;
    while (algorithm < COUNT(CONV_ALGORITHMS) && strcmp(CONV_ALGORITHMS[algorithm], c->mode[0]) != 0)
        algorithm++;
    if (algorithm == COUNT(CONV_ALGORITHMS))
        return bz_fail(c->err, BZ_BAD_INPUT, "there is no convolution algorithm '%s'", c->mode[0]);
    r->variant.algorithm = bz_arena_printf(c->arena, "cudnn algo %d %s", algorithm, c->mode[0]);
    r->flops = 2 * (double)x[0] * (double)w[0] * out * (double)x[1] / (double)group * (double)w[1] * (double)w[2];
    r->problem = bz_arena_printf(c->arena,
                                 "conv x=%ldx%ldx%ldx%ld w=%ldx%ldx%ldx%ld stride=%ldx%ld pad=%ldx%ldx%ldx%ld "
                                 "dilation=%ldx%ld group=%ld%s%s dtype=%s",
                                 x[0], x[1], x[2], x[3], w[0], x[1] / group, w[1], w[2], stride[0], stride[1], pad[0],
                                 pad[1], pad[0], pad[1], dilation[0], dilation[1], group, c->detail,
                                 *c->detail ? FUNCTIONS[f].post : "", c->dtype);
    return 0;
}

/* "KIND x=… PARAMETERS dtype=…" */
static int name_elementwise(call *c, bz_record *r, const char *kind, const char *parameters, const char *algorithm)
{
    long x[4];
    if (get_input(c, x))
        return -1;
    r->variant.algorithm = algorithm;
    r->problem = bz_arena_printf(c->arena, "%s x=%ldx%ldx%ldx%ld%s dtype=%s", kind, x[0], x[1], x[2], x[3], parameters,
                                 c->dtype);
    return 0;
}

static int name_activation(call *c, bz_record *r)
{
    int f = find_function(c, c->mode[0]);
    return f < 0 ? -1 : name_elementwise(c, r, FUNCTIONS[f].kind, FUNCTIONS[f].parameters, "cudnnActivationForward");
}

/* Scale, shift, mean and variance have a value for each channel, or for each element of one image. */
static int name_batchnorm(call *c, bz_record *r)
{
    long x[4];
    bool each = !strcmp(c->mode[0], "PER_ACTIVATION"), persistent = !strcmp(c->mode[0], "SPATIAL_PERSISTENT");
    if (!each && !persistent && strcmp(c->mode[0], "SPATIAL") != 0)
        return bz_fail(c->err, BZ_BAD_INPUT, "there is no batch normalization '%s'", c->mode[0]);
    if (get_input(c, x))
        return -1;
    /* kinds of their own: a problem has one value for each channel, and is inference */
    const char *kind = bz_arena_printf(c->arena, "batchnorm%s%s", each ? "_each" : "", c->detail);
    return name_elementwise(c, r, kind, "",
                            bz_arena_printf(c->arena, "cudnnBatchNormalizationForward%s%s",
                                            *c->detail ? "Training" : "Inference",
                                            persistent ? " SPATIAL_PERSISTENT" : ""));
}

static int name_pooling(call *c, bz_record *r)
{
    long x[4], kernel[2], stride[2], pad[2];
    if (get_input(c, x) || get_all(c, (const char *const[]){"filter_height", "filter_width"}, 1, kernel, 2) ||
        get_all(c, (const char *const[]){"stride_height", "stride_width"}, 1, stride, 2) ||
        get_all(c, (const char *const[]){"pad_height", "pad_width"}, 0, pad, 2))
        return -1;
    for (int i = 0; i < 2; i++)
        if (x[2 + i] + 2 * pad[i] < kernel[i])
            return bz_fail(c->err, BZ_BAD_INPUT, "the window is larger than the input");
    for (int i = 0; i < COUNT(POOLINGS); i++) {
        if (strcmp(POOLINGS[i].mode, c->mode[0]) != 0)
            continue;
        r->variant.algorithm = bz_arena_printf(c->arena, "cudnnPoolingForward %s", c->mode[0]);
        r->problem = bz_arena_printf(
            c->arena,
            "pool mode=%s x=%ldx%ldx%ldx%ld kernel=%ldx%ld stride=%ldx%ld pad=%ldx%ldx%ldx%ld dilation=1x1 dtype=%s",
            POOLINGS[i].name, x[0], x[1], x[2], x[3], kernel[0], kernel[1], stride[0], stride[1], pad[0], pad[1],
            pad[0], pad[1], c->dtype);
        return 0;
    }
    return bz_fail(c->err, BZ_BAD_INPUT, "there is no pooling '%s'", c->mode[0]);
}

static int name_op_tensor(call *c, bz_record *r)
{
    long x[4];
    if (get_input(c, x))
        return -1;
    r->variant.algorithm = "cudnnOpTensor";
    r->problem = bz_arena_printf(c->arena, "binary fn=%s a=%ldx%ldx%ldx%ld b=%ldx%ldx%ldx%ld dtype=%s", c->detail, x[0],
                                 x[1], x[2], x[3], x[0], x[1], x[2], x[3], c->dtype);
    return 0;
}

/* Four dimensions, of which those that are not there read -1. */
static int get_some_input(call *c, long x[4])
{
    if (get_all(c, (const char *const[]){"input[0]", "input[1]"}, 1, x, 2) ||
        get_all(c, (const char *const[]){"input[2]", "input[3]"}, -1, x + 2, 2))
        return -1;
    for (int i = 2; i < 4; i++)
        if (!x[i])
            return bz_fail(c->err, BZ_BAD_INPUT, "a dimension is 0");
        else if (x[i] < 0)
            x[i] = 1;
    return 0;
}

static int name_dropout(call *c, bz_record *r)
{
    long x[4];
    if (get_some_input(c, x))
        return -1;
    r->variant.algorithm = "cudnnDropoutForward";
    r->problem = bz_arena_printf(c->arena, "dropout x=%ldx%ldx%ldx%ld dtype=%s", x[0], x[1], x[2], x[3], c->dtype);
    return 0;
}

/* Over the channels of each place, or over all of an image: as one row. The algorithm and the mode stand in either order. */
static int name_softmax(call *c, bz_record *r)
{
    long x[4];
    const char *mode = NULL, *algorithm = NULL;
    for (int i = 0; i < 2; i++)
        if (!strncmp(c->mode[i], "MODE_", 5))
            mode = c->mode[i] + 5;
        else if (*c->mode[i])
            algorithm = c->mode[i];
    bool instance = mode && !strcmp(mode, "INSTANCE");
    if (!mode || (!instance && strcmp(mode, "CHANNEL") != 0))
        return bz_fail(c->err, BZ_BAD_INPUT, "there is no softmax '%s'", mode ? mode : "");
    if (algorithm && !strcmp(algorithm, "LOG"))
        return bz_fail(c->err, BZ_BAD_INPUT, "a logarithm of softmax is no softmax");
    if (get_some_input(c, x))
        return -1;
    r->variant.algorithm =
        bz_arena_printf(c->arena, "cudnnSoftmaxForward %s%s%s", algorithm ? algorithm : "", algorithm ? " " : "", mode);
    r->problem =
        instance
            ? bz_arena_printf(c->arena, "softmax x=%ldx%ld axis=1 dtype=%s", x[0], x[1] * x[2] * x[3], c->dtype)
            : bz_arena_printf(c->arena, "softmax x=%ldx%ldx%ldx%ld axis=1 dtype=%s", x[0], x[1], x[2], x[3], c->dtype);
    return 0;
}

static int name_add_tensor(call *c, bz_record *r)
{
    long x[4], bias[4];
    if (get_input(c, x) || get_all(c, (const char *const[]){"bias[0]", "bias[1]", "bias[2]", "bias[3]"}, 1, bias, 4))
        return -1;
    r->variant.algorithm = "cudnnAddTensor";
    r->problem = bz_arena_printf(c->arena, "expand x=%ldx%ldx%ldx%ld y=%ldx%ldx%ldx%ld dtype=%s", bias[0], bias[1],
                                 bias[2], bias[3], x[0], x[1], x[2], x[3], c->dtype);
    return 0;
}

/* y = A·x + y, A being M×K by columns: that is a row times a matrix B of K×N by rows. */
static int name_gemv(call *c, bz_record *r)
{
    long size[2] = {0, 0};
    if (get_all(c, (const char *const[]){"input[0]", "input[1]"}, 1, size, 2))
        return -1;
    r->variant.backend = "cublas";
    r->variant.algorithm = "cublas gemv";
    r->flops = 2 * (double)size[0] * (double)size[1];
    r->problem = bz_arena_printf(c->arena, "gemm m=1 n=%ld k=%ld batch=1 transa=0 transb=0 post=bias dtype=%s", size[0],
                                 size[1], c->dtype);
    return 0;
}

/* C = A·B + C of matrices by columns is C' = B'·A' + C' by rows. */
static int name_gemm(call *c, bz_record *r)
{
    long size[3], trans[2], beta = 0;
    if (get_all(c, (const char *const[]){"input[0]", "input[1]", "input[2]"}, 1, size, 3) ||
        get_all(c, (const char *const[]){"input[3]", "input[4]"}, 0, trans, 2) || get(c, "input[6]", 0, &beta))
        return -1;
    r->variant.backend = "cublas";
    r->variant.algorithm = "cublas gemm";
    r->flops = 2 * (double)size[0] * (double)size[1] * (double)size[2];
    r->problem = bz_arena_printf(c->arena, "gemm m=%ld n=%ld k=%ld batch=1 transa=%d transb=%d%s dtype=%s", size[1],
                                 size[0], size[2], trans[1] != 0, trans[0] != 0, beta ? " post=bias" : "", c->dtype);
    return 0;
}

static const struct {
    const char *name, *prefix[2]; /* prefix: of the modes in <…> */
    int (*describe)(call *c, bz_record *r);
    const char *detail;
} CALLS[] = {
    {"CUDNN_CONV_FWD", {"CUDNN_CONVOLUTION_FWD_ALGO_", ""}, name_conv, ""},
    {"CUDNN_CONV_BIAS_ACTIVATION_FWD", {"CUDNN_CONVOLUTION_FWD_ALGO_", "CUDNN_ACTIVATION_"}, name_conv, " post=bias"},
    {"CUDNN_ACTIVATION_FWD", {"CUDNN_ACTIVATION_", ""}, name_activation, ""},
    {"CUDNN_BATCHNORM_FWD_INFERENCE", {"CUDNN_BATCHNORM_", ""}, name_batchnorm, ""},
    {"CUDNN_BATCHNORM_FWD_TRAINING", {"CUDNN_BATCHNORM_", ""}, name_batchnorm, "_training"},
    {"CUDNN_POOLING_FWD", {"CUDNN_POOLING_", ""}, name_pooling, ""},
    {"CUDNN_OP_TENSOR_ADD_FWD", {"", ""}, name_op_tensor, "add"},
    {"CUDNN_OP_TENSOR_MUL_FWD", {"", ""}, name_op_tensor, "mul"},
    {"CUDNN_ADD_TENSOR", {"", ""}, name_add_tensor, ""},
    {"CUDNN_SOFTMAX_FWD", {"CUDNN_SOFTMAX_", "CUDNN_SOFTMAX_"}, name_softmax, ""},
    {"CUDNN_DROPOUT_FWD", {"", ""}, name_dropout, ""},
    {"CUBLAS_GEMM_FWD", {"", ""}, name_gemm, ""},
    {"CUBLAS_GEMV_FWD", {"", ""}, name_gemv, ""},
};

/* "/input[0]:1/input[1]:256/…/manual_time" */
static int split_arguments(call *c, const char *p)
{
    while (*p == '/') {
        size_t len = strcspn(++p, "/");
        const char *colon = memchr(p, ':', len);
        if (colon && c->n < MOST_ARGUMENTS) {
            char *end;
            long value = strtol(colon + 1, &end, 10);
            if (end == colon + 1 || end != p + len)
                return bz_fail(c->err, BZ_BAD_INPUT, "an argument in the name is no number");
            c->argument[c->n++] = (argument){p, (size_t)(colon - p), value};
        }
        p += len;
    }
    return 0;
}

/* "<A, B>" with the prefixes of this call taken off */
static int split_modes(call *c, const char *p, const char *const prefix[2])
{
    for (int i = 0; i < 2 && *p && strchr("<, ", *p); i++) {
        p += strspn(p, "<, ");
        size_t len = strcspn(p, ",>/"), skip = strlen(prefix[i]);
        if (len <= skip || memcmp(p, prefix[i], skip) != 0 || len - skip >= sizeof c->mode[i])
            return bz_fail(c->err, BZ_BAD_INPUT, "a mode in the name is not what this call takes");
        memcpy(c->mode[i], p + skip, len - skip);
        c->mode[i][len - skip] = 0;
        p += len;
    }
    return 0;
}

static bool find_type(call *c, const char *name, size_t len)
{
    for (int i = 0; i < COUNT(TYPES); i++)
        if (strlen(TYPES[i].name) == len && !memcmp(TYPES[i].name, name, len)) {
            c->dtype = TYPES[i].dtype;
            c->math = TYPES[i].math;
            return true;
        }
    return false;
}

int bz_gbench_name(const char *name, bz_arena *arena, bz_record *r, bz_error *err)
{
    static const char LAYER[] = "LAYER_", BATCH[] = "__BatchSize_";
    call c = {.name = name, .arena = arena, .err = err};
    const char *end = strstr(name, BATCH), *p = name + strlen(LAYER);
    if (strncmp(name, LAYER, strlen(LAYER)) != 0 || !end || end < p)
        return bz_fail(err, BZ_BAD_INPUT, "'%.80s' is no benchmark of the original tool", name);
    for (int i = 0; i < COUNT(CALLS); i++) {
        size_t len = strlen(CALLS[i].name);
        if ((size_t)(end - p) <= len || memcmp(p, CALLS[i].name, len) != 0 || p[len] != '_')
            continue;
        const char *type = p + len + 1;
        size_t digits = strspn(type, "0123456789"); /* which of its generated files the benchmark is from */
        if (digits && type[digits] == '_')
            type += digits + 1;
        if (type > end || !find_type(&c, type, (size_t)(end - type)))
            continue;
        const char *path = strchr(end, '/'), *modes = strchr(end, '<');
        if (modes && (!path || modes < path) && split_modes(&c, modes, CALLS[i].prefix))
            return -1;
        if (path && split_arguments(&c, path))
            return -1;
        r->variant = (bz_variant){.backend = "cudnn", .layout = "plain", .math = c.math};
        r->flops = NAN;
        c.detail = CALLS[i].detail;
        return CALLS[i].describe(&c, r);
    }
    return bz_fail(err, BZ_BAD_INPUT, "there is no rule for the call in '%.80s'", name);
}
