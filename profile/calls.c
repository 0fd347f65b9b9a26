/* Library calls as data: a row for each call that is known, with what reads its parameters as a problem, and rows for what
 * calls tell besides. */
#include "profile/calls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bz_call_list(const bz_trace *t, size_t call, const char *name, int64_t *v, int most)
{
    char text[256];
    const char *p = text;
    int n = 0;
    if (!bz_call_parameter(t, call, name, text, sizeof text) || *p++ != '[')
        return 0;
    while (*p && *p != ']') {
        char *end;
        long long x = strtoll(p, &end, 10);
        if (end == p || x < 0 || x > INT32_MAX || n == most)
            return 0;
        v[n++] = x;
        p = *end == ',' ? end + 1 : end;
    }
    return n;
}

bool bz_call_int(const bz_trace *t, size_t call, const char *name, int64_t *v)
{
    char text[64], *end;
    if (!bz_call_parameter(t, call, name, text, sizeof text))
        return false;
    *v = strtoll(text, &end, 10);
    return end != text && !*end && *v >= 0 && *v <= INT32_MAX;
}

bool bz_call_real(const bz_trace *t, size_t call, const char *name, double *v)
{
    char text[64], *end;
    if (!bz_call_parameter(t, call, name, text, sizeof text))
        return false;
    *v = strtod(text, &end);
    return end != text && !*end && isfinite(*v);
}

bool bz_call_dtype(const bz_trace *t, size_t call, const char *name, bz_dtype *out)
{
    static const struct {
        const char *names;
        bz_dtype dtype;
    } NAMES[] = {{"^CUDNN_DATA_FLOAT ^CUDA_R_32F ^f32:", BZ_F32},
                 {"^CUDNN_DATA_HALF ^CUDA_R_16F ^f16:", BZ_F16},
                 {"^CUDNN_DATA_BFLOAT16 ^CUDA_R_16BF ^bf16:", BZ_BF16},
                 {"^CUDNN_DATA_DOUBLE ^CUDA_R_64F", BZ_F64},
                 {"^CUDNN_DATA_INT8 ^CUDA_R_8I ^s8:", BZ_I8},
                 {"^u8:", BZ_U8},
                 {"^s32:", BZ_I32}};
    char text[128];
    if (!bz_call_parameter(t, call, name, text, sizeof text))
        return false;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (bz_name_matches_any(NAMES[i].names, text)) {
            *out = NAMES[i].dtype;
            return true;
        }
    return false;
}

int64_t bz_call_pad_end(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad)
{
    int64_t window = (kernel - 1) * dilation + 1, reached = (out - 1) * stride + window - in - pad;
    if (reached < 0)
        reached = 0;
    bool same = pad >= reached && stride > 0 && (in + 2 * pad - window) / stride + 1 == out;
    return same ? pad : reached;
}

/* The padding is taken to be half the kernel. */
int bz_call_unpad(const bz_problem *from, bz_problem *to)
{
    int spatial = bz_extent_rank(from->conv.x) - 2, most = 0;
    bz_error err;
    if (from->kind != BZ_PROBLEM_CONV)
        return 0;
    *to = *from;
    for (int a = 0; a < spatial; a++) {
        int64_t pad = (from->conv.w[2 + a] - 1) * from->conv.dilation[a] / 2;
        if (from->conv.pad[a] || from->conv.pad[spatial + a] || from->conv.x[2 + a] <= 2 * pad)
            return 0;
        to->conv.x[2 + a] -= 2 * pad;
        to->conv.pad[a] = to->conv.pad[spatial + a] = pad;
        most = pad > most ? (int)pad : most;
    }
    return bz_problem_normalize(to, &err) ? 0 : most;
}

static const struct {
    const char *calls; /* their names; "_v2" behind one makes no difference */
    bz_call_reader *read;
} CALLS[] = {
    {"cudnnConvolutionForward", bz_call_cudnn_conv},
    {"cudnnConvolutionBiasActivationForward", bz_call_cudnn_conv_bias},
    {"cudnnPoolingForward", bz_call_cudnn_pool},
    {"cudnnActivationForward", bz_call_cudnn_activation},
    {"cudnnBatchNormalizationForwardInference", bz_call_cudnn_batchnorm},
    {"cudnnSoftmaxForward", bz_call_cudnn_softmax},
    {"cudnnLRNCrossChannelForward", bz_call_cudnn_lrn},
    {"cudnnAddTensor", bz_call_cudnn_add},
    {"cudnnOpTensor", bz_call_cudnn_op},
    {"convolution", bz_call_onednn_conv},
    {"inner_product", bz_call_onednn_inner_product},
    {"matmul", bz_call_onednn_matmul},
    {"pooling", bz_call_onednn_pool},
    {"batch_normalization", bz_call_onednn_batchnorm},
    {"layer_normalization", bz_call_onednn_layernorm},
    {"eltwise", bz_call_onednn_eltwise},
    {"binary", bz_call_onednn_binary},
    {"sum", bz_call_onednn_sum},
    {"softmax", bz_call_onednn_softmax},
    {"concat", bz_call_onednn_concat},
    {"sgemm dgemm cblas_sgemm cblas_dgemm cublasSgemm cublasDgemm cublasHgemm cublasSgemmEx "
     "cublasGemmEx cublasSgemmStridedBatched cublasHgemmStridedBatched cublasGemmStridedBatchedEx",
     bz_call_blas_gemm},
    {"sgemv dgemv cblas_sgemv cblas_dgemv cublasSgemv", bz_call_blas_gemv},
};

/* A primitive that runs backward computes gradients by the geometry of the forward one, in which it is logged. Of convolutions they are
 * problems of ours; others are none that is known. */
static bool turn_backward(const bz_trace *t, size_t call, bz_problem *p)
{
    char prop[32];
    if (!bz_call_parameter(t, call, "prop", prop, sizeof prop) || strncmp(prop, "backward", 8) != 0)
        return true;
    bz_dtype x = p->dtype, w = p->dtype_w, y = p->dtype_y;
    bool data = !strcmp(prop, "backward_data"), weights = !strncmp(prop, "backward_weights", 16);
    if (p->kind != BZ_PROBLEM_CONV || (!data && !weights))
        return false;
    p->kind = data ? BZ_PROBLEM_CONV_DATA : BZ_PROBLEM_CONV_WEIGHTS;
    p->dtype = data ? y : x; /* reads dy and w, or x and dy */
    p->dtype_w = data ? w : y;
    p->dtype_y = data ? x : w;
    memset(p->post, 0, sizeof p->post);
    return true;
}

static bool read_problem(const bz_trace *t, size_t call, bz_problem *out)
{
    char name[64];
    int n = snprintf(name, sizeof name, "%s", bz_string(t, t->event[BZ_EVENT_CALL].name[call]));
    bz_error err;
    if (n >= (int)sizeof name)
        return false;
    if (n > 3 && !strcmp(name + n - 3, "_v2"))
        name[n - 3] = 0;
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (bz_has_word(CALLS[i].calls, name)) {
            *out = (bz_problem){0};
            return CALLS[i].read(t, call, out) && turn_backward(t, call, out) && !bz_problem_normalize(out, &err);
        }
    return false;
}

/* "f32::blocked:ABcd16b16a:f0": a capital letter is a dimension in blocks. */
static void read_blocks(const char *format, bz_call_tensor *out)
{
    const char *at = strstr(format, "blocked:");
    size_t n = at ? strcspn(at += strlen("blocked:"), ":") : 0;
    out->blocked = at && strcspn(at, "ABCDEFGHIJKL") < n;
}

static void read_tensors(const bz_trace *t, size_t call, bz_arena *arena, bz_call *out)
{
    const struct {
        const char *type, *strides, *sizes;
        bz_call_tensor *tensor;
    } TENSORS[] = {{"src", NULL, NULL, &out->x},
                   {"xDesc.dataType", "xDesc.strideA", "xDesc.dimA", &out->x},
                   {"wei", NULL, NULL, &out->w},
                   {"dst", NULL, NULL, &out->y}};
    for (size_t i = 0; i < sizeof TENSORS / sizeof *TENSORS; i++) {
        bz_call_tensor *v = TENSORS[i].tensor;
        char text[128];
        if (!bz_call_parameter(t, call, TENSORS[i].type, text, sizeof text))
            continue;
        *v = (bz_call_tensor){.type = TENSORS[i].type, .format = bz_arena_str(arena, text)};
        bz_call_dtype(t, call, TENSORS[i].type, &v->dtype);
        read_blocks(text, v);
        int64_t size[BZ_PROBLEM_RANK] = {0};
        if (TENSORS[i].strides && bz_call_parameter(t, call, TENSORS[i].strides, text, sizeof text) &&
            bz_call_list(t, call, TENSORS[i].sizes, size, BZ_PROBLEM_RANK) > 2) {
            size_t n = strlen(text);
            v->packed = size[1] > 1 && n > 3 && !strcmp(text + n - 3, ",1]");
        }
    }
}

/* "64x3x7x7": how many elements; -1 where that is no shape. */
static int64_t count_elements(const char *shape)
{
    int64_t n = 1;
    for (const char *p = shape; *p;) {
        char *end;
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(n, strtoll(p, &end, 10), &n))
            return -1;
        p = *end == 'x' ? end + 1 : end;
    }
    return n;
}

static void read_sizes(const bz_trace *t, size_t call, bz_call *out)
{
    char text[128];
    out->elements = -1;
    if (bz_call_parameter(t, call, "xDesc.dimA", text, sizeof text) && *text == '[')
        out->batch = strtol(text + 1, NULL, 10);
    if (!bz_call_parameter(t, call, "problem", text, sizeof text))
        return;
    if (!strncmp(text, "mb", 2))
        out->batch = strtol(text + 2, NULL, 10);
    else
        out->elements = count_elements(text);
}

static bz_call_purpose purpose_of(const bz_trace *t, size_t call)
{
    char text[32];
    if (!bz_call_parameter(t, call, "prop", text, sizeof text))
        return BZ_FOR_UNKNOWN;
    return !strcmp(text, "forward_training")    ? BZ_FOR_TRAINING
           : !strcmp(text, "forward_inference") ? BZ_FOR_INFERENCE
                                                : BZ_FOR_UNKNOWN;
}

static void read_call(const bz_trace *t, size_t call, bz_arena *arena, bz_call *out)
{
    bz_problem p;
    char text[128];
    read_tensors(t, call, arena, out);
    read_sizes(t, call, out);
    out->dtype = out->x.dtype;
    out->purpose = purpose_of(t, call);
    if (bz_call_parameter(t, call, "convDesc.mathType", text, sizeof text))
        out->math = bz_arena_str(arena, text);
    if (bz_call_parameter(t, call, "engine", text, sizeof text) && !strncmp(text, "gpu", 3))
        return; /* records are of oneDNN on processors */
    if (!read_problem(t, call, &p))
        return;
    BZ_SCOPED(bz_buf) canonical = {0};
    bz_problem_print(&p, &canonical);
    out->problem = bz_arena_dup(arena, &p, sizeof p);
    out->text = bz_arena_str(arena, bz_buf_text(&canonical));
    out->dtype = p.dtype;
}

const bz_call *bz_call_of(const bz_trace *t, size_t call)
{
    struct bz_trace_private *p = t->private;
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    uint32_t key[2] = {c->name[call], c->detail[call]}, at = bz_map_get(&p->call_ids, key, sizeof key);
    if (at != BZ_MAP_NONE)
        return p->calls[at];
    bz_call *new = BZ_NEW(&p->read_arena, bz_call, 1);
    at = p->call_ids.n;
    BZ_ARENA_ROOM(&p->read_arena, p->calls, at);
    read_call(t, call, &p->read_arena, new);
    bz_map_add(&p->call_ids, bz_arena_dup(&p->read_arena, key, sizeof key), sizeof key, at);
    return p->calls[at] = new;
}
