/* Library calls as problems: a row for each call that is known, with what reads its parameters. */
#include "analyzer/analyzer.h"

#include <stdlib.h>
#include <string.h>

/* "[1,3,224,224]" -> numbers; how many, or 0 where they are too many or no sizes. */
static int read_list(const bz_trace *t, size_t call, const char *name, int64_t *v, int most)
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

static bool dtype_of(const bz_trace *t, size_t call, const char *name, bz_dtype *out)
{
    static const struct {
        const char *begins;
        bz_dtype dtype;
    } NAMES[] = {{"CUDNN_DATA_FLOAT", BZ_F32},
                 {"CUDNN_DATA_HALF", BZ_F16},
                 {"CUDNN_DATA_BFLOAT16", BZ_BF16},
                 {"CUDNN_DATA_DOUBLE", BZ_F64},
                 {"CUDNN_DATA_INT8", BZ_I8},
                 {"f32:", BZ_F32},
                 {"f16:", BZ_F16},
                 {"bf16:", BZ_BF16},
                 {"u8:", BZ_U8},
                 {"s8:", BZ_I8},
                 {"s32:", BZ_I32}};
    char text[128];
    if (!bz_call_parameter(t, call, name, text, sizeof text))
        return false;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!strncmp(text, NAMES[i].begins, strlen(NAMES[i].begins))) {
            *out = NAMES[i].dtype;
            return true;
        }
    return false;
}

/* ---- cuDNN ---------------------------------------------------------------------------------- */

static bool cudnn_conv(const bz_trace *t, size_t call, bz_problem *p)
{
    int64_t pad[BZ_PROBLEM_SPATIAL], group = 1;
    char text[64];
    p->kind = BZ_PROBLEM_CONV;
    int rank = read_list(t, call, "xDesc.dimA", p->conv.x, BZ_PROBLEM_SPATIAL + 2), spatial = rank - 2;
    if (rank < 3 || read_list(t, call, "wDesc.dimA", p->conv.w, rank) != rank ||
        read_list(t, call, "convDesc.padA", pad, BZ_PROBLEM_SPATIAL) != spatial ||
        read_list(t, call, "convDesc.strideA", p->conv.stride, BZ_PROBLEM_SPATIAL) != spatial ||
        read_list(t, call, "convDesc.dilationA", p->conv.dilation, BZ_PROBLEM_SPATIAL) != spatial ||
        !dtype_of(t, call, "xDesc.dataType", &p->dtype))
        return false;
    if (bz_call_parameter(t, call, "convDesc.groupCount", text, sizeof text))
        group = strtoll(text, NULL, 10);
    for (int i = 0; i < spatial; i++)
        p->conv.pad[i] = p->conv.pad[spatial + i] = pad[i];
    p->conv.group = group;
    return true;
}

static bool cudnn_conv_bias(const bz_trace *t, size_t call, bz_problem *p)
{
    char text[64];
    if (!cudnn_conv(t, call, p) || !bz_call_parameter(t, call, "activationDesc.mode", text, sizeof text))
        return false;
    p->post[0].fn = BZ_FN_BIAS;
    if (!strcmp(text, "CUDNN_ACTIVATION_RELU"))
        p->post[1].fn = BZ_FN_RELU;
    return p->post[1].fn || !strcmp(text, "CUDNN_ACTIVATION_IDENTITY");
}

/* ---- oneDNN --------------------------------------------------------------------------------- */

enum { NAMES = 24 };
typedef struct numbers {
    char name[NAMES][4];
    int64_t value[NAMES];
    int n;
} numbers;

/* "mb1_ic3oc64_ih224oh112kh7sh2dh0ph3_iw224…" -> names and numbers. */
static bool read_numbers(const bz_trace *t, size_t call, numbers *out)
{
    char text[512];
    const char *p = text;
    out->n = 0;
    if (!bz_call_parameter(t, call, "problem", text, sizeof text))
        return false;
    while (*p) {
        size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz");
        char *end;
        long long v = strtoll(p + n, &end, 10);
        if (!n || n > 3 || end == p + n || v < 0 || v > INT32_MAX || out->n == NAMES)
            return false;
        memcpy(out->name[out->n], p, n);
        out->name[out->n][n] = 0;
        out->value[out->n++] = v;
        p = *end == '_' ? end + 1 : end;
    }
    return true;
}

static int64_t number(const numbers *v, const char *name, int64_t otherwise)
{
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->name[i], name))
            return v->value[i];
    return otherwise;
}

/* Bias, and the one post-operation that needs no more than its name. */
static bool onednn_types(const bz_trace *t, size_t call, bz_problem *p)
{
    char text[256];
    int n = 0;
    if (!dtype_of(t, call, "src", &p->dtype) || !dtype_of(t, call, "wei", &p->dtype_w) ||
        !dtype_of(t, call, "dst", &p->dtype_y))
        return false;
    if (bz_call_parameter(t, call, "bia", text, sizeof text) && strncmp(text, "undef", 5) != 0)
        p->post[n++].fn = BZ_FN_BIAS;
    const char *posts = bz_call_parameter(t, call, "attr", text, sizeof text) ? strstr(text, "post-ops:") : NULL;
    if (!posts)
        return true;
    posts += strlen("post-ops:");
    posts += *posts == '\'';
    size_t length = strcspn(posts, " ';_,+");
    length += posts[length] == '_' ? 1 + strcspn(posts + length + 1, " ';_,+:") : 0;
    bool alone = strspn(posts + length, "_;' ") == strlen(posts + length);
    if (!alone || length != strlen("eltwise_relu") || strncmp(posts, "eltwise_relu", length) != 0)
        return false;
    p->post[n].fn = BZ_FN_RELU;
    return true;
}

static bool onednn_conv(const bz_trace *t, size_t call, bz_problem *p)
{
    static const char *const AXES[] = {"d", "h", "w"};
    numbers v;
    int spatial = 0;
    p->kind = BZ_PROBLEM_CONV;
    if (!read_numbers(t, call, &v) || !onednn_types(t, call, p))
        return false;
    int64_t group = number(&v, "g", 1), ic = number(&v, "ic", 0), oc = number(&v, "oc", 0);
    int64_t at[BZ_PROBLEM_SPATIAL][6];
    for (int a = 0; a < 3; a++) {
        static const char *const WHAT[] = {"i", "o", "k", "s", "d", "p"};
        for (int k = 0; k < 6; k++) {
            char name[4] = {WHAT[k][0], AXES[a][0], 0, 0};
            at[spatial][k] = number(&v, name, -1);
        }
        if (at[spatial][0] >= 0)
            spatial++;
    }
    if (!spatial || group < 1 || ic % group)
        return false;
    p->conv.x[0] = number(&v, "mb", 0);
    p->conv.x[1] = ic;
    p->conv.w[0] = oc;
    p->conv.w[1] = ic / group;
    p->conv.group = group;
    for (int a = 0; a < spatial; a++) {
        int64_t in = at[a][0], out = at[a][1], kernel = at[a][2], stride = at[a][3], dilation = at[a][4] + 1,
                pad = at[a][5];
        p->conv.x[2 + a] = in;
        p->conv.w[2 + a] = kernel;
        p->conv.stride[a] = stride;
        p->conv.dilation[a] = dilation;
        p->conv.pad[a] = pad;
        p->conv.pad[spatial + a] = (out - 1) * stride + (kernel - 1) * dilation + 1 - in - pad;
        if (in <= 0 || out <= 0 || kernel <= 0 || stride <= 0 || dilation <= 0 || pad < 0)
            return false;
        /* what is left at the end when the last window does not reach it */
        if (p->conv.pad[spatial + a] < 0)
            p->conv.pad[spatial + a] = 0;
    }
    return true;
}

static bool onednn_inner_product(const bz_trace *t, size_t call, bz_problem *p)
{
    numbers v;
    p->kind = BZ_PROBLEM_GEMM;
    if (!read_numbers(t, call, &v) || !onednn_types(t, call, p))
        return false;
    p->gemm.m = number(&v, "mb", 0);
    p->gemm.n = number(&v, "oc", 0);
    p->gemm.k = number(&v, "ic", 0) * number(&v, "id", 1) * number(&v, "ih", 1) * number(&v, "iw", 1);
    p->gemm.transb = true;
    return true;
}

/* ---- all ------------------------------------------------------------------------------------ */

static const struct {
    const char *call; /* how its name begins */
    bool (*read)(const bz_trace *t, size_t call, bz_problem *p);
} CALLS[] = {
    {"cudnnConvolutionForward", cudnn_conv},
    {"cudnnConvolutionBiasActivationForward", cudnn_conv_bias},
    {"convolution", onednn_conv},
    {"inner_product", onednn_inner_product},
};

bool bz_call_problem(const bz_trace *trace, size_t call, bz_problem *out)
{
    const char *name = bz_string(trace, trace->event[BZ_EVENT_CALL].name[call]);
    bz_error err;
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (!strcmp(name, CALLS[i].call)) {
            *out = (bz_problem){0};
            return CALLS[i].read(trace, call, out) && !bz_problem_normalize(out, &err);
        }
    return false;
}
