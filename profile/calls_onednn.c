/* oneDNN's primitives as problems, by what its verbose lines tell. */
#include "profile/calls.h"

#include <stdlib.h>
#include <string.h>

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

/* Dimensions "2x8x4x4"; where they end, or NULL. */
static const char *read_dims(const char *text, int64_t *v, int *rank)
{
    for (*rank = 0; *rank < BZ_PROBLEM_RANK;) {
        char *end;
        long long x = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : 0;
        if (x < 1 || x > INT32_MAX)
            return NULL;
        v[(*rank)++] = x;
        if (*end != 'x')
            return end;
        text = end + 1;
    }
    return NULL;
}

/* Tensors "2x8:8x4:2x4"; how many, or 0. */
static int read_tensors(const bz_trace *t, size_t call, bz_extent *v, int most)
{
    char text[1024];
    int n = 0, rank;
    if (!bz_call_parameter(t, call, "problem", text, sizeof text))
        return 0;
    for (const char *p = text; n < most && (p = read_dims(p, v[n], &rank)); p++) {
        v[n++][rank] = 0;
        if (!*p)
            return n;
        if (*p != ':')
            break;
    }
    return 0;
}

static const struct {
    const char *name;
    bz_fn fn;
    int parameters; /* that must be told */
} ELTWISE[] = {
    {"eltwise_relu", BZ_FN_RELU, 0},
    {"eltwise_tanh", BZ_FN_TANH, 0},
    {"eltwise_logistic", BZ_FN_SIGMOID, 0},
    {"eltwise_gelu_erf", BZ_FN_GELU_ERF, 0},
    {"eltwise_gelu_tanh", BZ_FN_GELU_TANH, 0},
    {"eltwise_gelu", BZ_FN_GELU_TANH, 0},
    {"eltwise_exp", BZ_FN_EXP, 0},
    {"eltwise_log", BZ_FN_LOG, 0},
    {"eltwise_sqrt", BZ_FN_SQRT, 0},
    {"eltwise_abs", BZ_FN_ABS, 0},
    {"eltwise_square", BZ_FN_SQUARE, 0},
    {"eltwise_mish", BZ_FN_MISH, 0},
    {"eltwise_hardswish", BZ_FN_HARDSWISH, 0},
    {"eltwise_elu", BZ_FN_ELU, 1},
    {"eltwise_swish", BZ_FN_SWISH, 1},
    {"eltwise_clip", BZ_FN_CLIP, 2},
    {"eltwise_clip_v2", BZ_FN_CLIP, 2},
    {"eltwise_linear", BZ_FN_LINEAR, 2},
    {"eltwise_pow", BZ_FN_POW, 2},
};

/* By name, with the parameters that were told (`told` of them). A ReLU with a slope is a leaky one. */
static bool find_function(const char *name, size_t n, const double v[2], int told, bz_post *out)
{
    for (size_t i = 0; i < sizeof ELTWISE / sizeof *ELTWISE; i++) {
        if (strlen(ELTWISE[i].name) != n || memcmp(ELTWISE[i].name, name, n) != 0)
            continue;
        *out = (bz_post){.fn = ELTWISE[i].fn};
        if (out->fn == BZ_FN_RELU && told && v[0] != 0)
            *out = (bz_post){BZ_FN_LEAKY, (float)v[0], 0};
        if (ELTWISE[i].parameters)
            out->alpha = (float)v[0];
        if (ELTWISE[i].parameters > 1)
            out->beta = (float)v[1];
        return told >= ELTWISE[i].parameters;
    }
    return false;
}

/* "eltwise_clip:0:6+sum": each with its parameters; behind them may come other attributes. */
static bool read_posts(const char *posts, bz_post *out, int room)
{
    posts += *posts == '\'';
    while (*posts && !strchr(" '", *posts)) {
        size_t n = strcspn(posts, "+;:' ");
        double v[2] = {0, 0};
        int told = 0;
        const char *p = posts + n;
        while (n > 1 && posts[n - 1] == '_')
            n--;
        while (*p == ':') {
            char *end;
            double x = strtod(p + 1, &end);
            if (end == p + 1 || told == 2)
                return false;
            v[told++] = x;
            p = end;
        }
        if (!strncmp(posts, "attr-", 5) || (n == 1 && *posts == '_'))
            return true;
        if (!room)
            return false;
        if (n == 3 && !memcmp(posts, "sum", 3) && (!told || v[0] == 1))
            *out = (bz_post){.fn = BZ_FN_ADD};
        else if (!find_function(posts, n, v, told, out))
            return false;
        out++, room--;
        posts = p + (*p == '+' || *p == ';');
    }
    return true;
}

/* Types, bias and post-operations. */
static bool types(const bz_trace *t, size_t call, bz_problem *p)
{
    char text[512];
    int n = 0;
    if (!bz_call_dtype(t, call, "src", &p->dtype) || !bz_call_dtype(t, call, "wei", &p->dtype_w) ||
        !bz_call_dtype(t, call, "dst", &p->dtype_y))
        return false;
    if (bz_call_parameter(t, call, "bia", text, sizeof text) && strncmp(text, "undef", 5) != 0)
        p->post[n++].fn = BZ_FN_BIAS;
    const char *posts = bz_call_parameter(t, call, "attr", text, sizeof text) ? strstr(text, "post-ops:") : NULL;
    return !posts || read_posts(posts + strlen("post-ops:"), &p->post[n], BZ_PROBLEM_POST - n);
}

/* Along each dimension of space: sizes of x and y, kernel, stride, dilation from 0, padding in front; -1: not told. */
typedef enum { IN, OUT, KERNEL, STRIDE, DILATION, PAD } window_number;

/* How many dimensions have windows, outermost first; 0 where one of them cannot be. */
static int read_windows(const numbers *v, int64_t at[BZ_PROBLEM_SPATIAL][6], int64_t dilation)
{
    static const char AXES[] = {'d', 'h', 'w'}, WHAT[] = {'i', 'o', 'k', 's', 'd', 'p'};
    int spatial = 0;
    for (int a = 0; a < 3; a++) {
        for (int k = 0; k < 6; k++)
            at[spatial][k] = number(v, (char[]){WHAT[k], AXES[a], 0}, k == DILATION ? dilation : -1);
        spatial += at[spatial][IN] >= 0;
    }
    for (int a = 0; a < spatial; a++)
        if (at[a][IN] < 1 || at[a][OUT] < 1 || at[a][KERNEL] < 1 || at[a][STRIDE] < 1 || at[a][DILATION] < 0 ||
            at[a][PAD] < 0)
            return 0;
    return spatial;
}

static int64_t pad_end(const int64_t *at)
{
    return bz_call_pad_end(at[IN], at[OUT], at[KERNEL], at[STRIDE], at[DILATION] + 1, at[PAD]);
}

bool bz_call_onednn_conv(const bz_trace *t, size_t call, bz_problem *p)
{
    numbers v;
    int64_t at[BZ_PROBLEM_SPATIAL][6];
    p->kind = BZ_PROBLEM_CONV;
    if (!read_numbers(t, call, &v) || !types(t, call, p))
        return false;
    int64_t group = number(&v, "g", 1), ic = number(&v, "ic", 0), oc = number(&v, "oc", 0);
    int spatial = read_windows(&v, at, -1);
    if (!spatial || group < 1 || ic % group)
        return false;
    p->conv.x[0] = number(&v, "mb", 0);
    p->conv.x[1] = ic;
    p->conv.w[0] = oc;
    p->conv.w[1] = ic / group;
    p->conv.group = group;
    for (int a = 0; a < spatial; a++) {
        p->conv.x[2 + a] = at[a][IN];
        p->conv.w[2 + a] = at[a][KERNEL];
        p->conv.stride[a] = at[a][STRIDE];
        p->conv.dilation[a] = at[a][DILATION] + 1;
        p->conv.pad[a] = at[a][PAD];
        p->conv.pad[spatial + a] = pad_end(at[a]);
    }
    return true;
}

bool bz_call_onednn_inner_product(const bz_trace *t, size_t call, bz_problem *p)
{
    numbers v;
    p->kind = BZ_PROBLEM_GEMM;
    if (!read_numbers(t, call, &v) || !types(t, call, p))
        return false;
    p->gemm.m = number(&v, "mb", 0);
    p->gemm.n = number(&v, "oc", 0);
    p->gemm.k = number(&v, "ic", 0) * number(&v, "id", 1) * number(&v, "ih", 1) * number(&v, "iw", 1);
    p->gemm.transb = true;
    return true;
}

bool bz_call_onednn_matmul(const bz_trace *t, size_t call, bz_problem *p)
{
    bz_extent v[3];
    int n = read_tensors(t, call, v, 3);
    p->kind = BZ_PROBLEM_MATMUL;
    if (n < 2 || !types(t, call, p))
        return false;
    memcpy(p->matmul.a, v[0], sizeof v[0]);
    memcpy(p->matmul.b, v[1], sizeof v[1]);
    return true;
}

/* The data type: older versions call the tensor "data". */
static bool data_type(const bz_trace *t, size_t call, bz_dtype *out)
{
    return bz_call_dtype(t, call, "src", out) || bz_call_dtype(t, call, "data", out);
}

bool bz_call_onednn_pool(const bz_trace *t, size_t call, bz_problem *p)
{
    static const char *const MODES[] = {[BZ_POOL_MAX] = "alg:pooling_max",
                                        [BZ_POOL_AVG] = "alg:pooling_avg_exclude_padding",
                                        [BZ_POOL_AVG_PAD] = "alg:pooling_avg_include_padding"};
    char text[128];
    numbers v;
    int64_t at[BZ_PROBLEM_SPATIAL][6];
    int mode = 3;
    p->kind = BZ_PROBLEM_POOL;
    if (!read_numbers(t, call, &v) || !data_type(t, call, &p->dtype) ||
        !bz_call_parameter(t, call, "aux", text, sizeof text))
        return false;
    while (mode-- && strcmp(MODES[mode], text) != 0)
        ;
    p->pool.mode = (bz_pool_mode)mode;
    p->pool.x[0] = number(&v, "mb", 0);
    p->pool.x[1] = number(&v, "ic", 0);
    int spatial = read_windows(&v, at, 0);
    for (int a = 0; a < spatial; a++) {
        p->pool.x[2 + a] = at[a][IN];
        p->pool.kernel[a] = at[a][KERNEL];
        p->pool.stride[a] = at[a][STRIDE];
        p->pool.dilation[a] = at[a][DILATION] + 1;
        p->pool.pad[a] = at[a][PAD];
        p->pool.pad[spatial + a] = pad_end(at[a]);
    }
    return spatial && mode >= 0;
}

bool bz_call_onednn_batchnorm(const bz_trace *t, size_t call, bz_problem *p)
{
    static const char *const SIZES[] = {"mb", "ic", "id", "ih", "iw"};
    numbers v;
    int rank = 0;
    p->kind = BZ_PROBLEM_BATCHNORM;
    if (!read_numbers(t, call, &v) || !data_type(t, call, &p->dtype))
        return false;
    for (int i = 0; i < 5; i++)
        if (number(&v, SIZES[i], 0))
            p->batchnorm.x[rank++] = number(&v, SIZES[i], 0);
    return rank > 1;
}

static bool one_tensor(const bz_trace *t, size_t call, bz_extent x, bz_dtype *dtype)
{
    bz_extent v[1];
    if (read_tensors(t, call, v, 1) != 1 || !data_type(t, call, dtype))
        return false;
    memcpy(x, v[0], sizeof v[0]);
    return true;
}

bool bz_call_onednn_layernorm(const bz_trace *t, size_t call, bz_problem *p)
{
    p->kind = BZ_PROBLEM_LAYERNORM;
    if (!one_tensor(t, call, p->layernorm.x, &p->dtype))
        return false;
    p->layernorm.axis = bz_extent_rank(p->layernorm.x) - 1;
    return true;
}

/* A number in "alg:eltwise_clip;alpha:0;beta:6". */
static bool aux_number(const char *aux, const char *name, double *v)
{
    const char *p = strstr(aux, name);
    char *end;
    if (!p)
        return false;
    *v = strtod(p + strlen(name), &end);
    return end != p + strlen(name);
}

bool bz_call_onednn_eltwise(const bz_trace *t, size_t call, bz_problem *p)
{
    char aux[256];
    double v[2] = {0, 0};
    bz_post fn;
    p->kind = BZ_PROBLEM_ACTIVATION;
    if (!one_tensor(t, call, p->activation.x, &p->dtype) || !bz_call_parameter(t, call, "aux", aux, sizeof aux) ||
        strncmp(aux, "alg:", 4) != 0)
        return false;
    int told = aux_number(aux, ";alpha:", &v[0]) ? 1 + aux_number(aux, ";beta:", &v[1]) : 0;
    if (!find_function(aux + 4, strcspn(aux + 4, ";"), v, told, &fn))
        return false;
    p->activation.fn = fn.fn;
    p->activation.alpha = fn.alpha;
    p->activation.beta = fn.beta;
    return true;
}

bool bz_call_onednn_binary(const bz_trace *t, size_t call, bz_problem *p)
{
    char aux[64];
    bz_extent v[3];
    p->kind = BZ_PROBLEM_BINARY;
    if (read_tensors(t, call, v, 3) < 2 || !data_type(t, call, &p->dtype) ||
        !bz_call_parameter(t, call, "aux", aux, sizeof aux) || strncmp(aux, "alg:binary_", 11) != 0)
        return false;
    memcpy(p->binary.a, v[0], sizeof v[0]);
    memcpy(p->binary.b, v[1], sizeof v[1]);
    p->binary.fn = bz_fn_find(aux + 11, strlen(aux + 11));
    return bz_fn_is_binary(p->binary.fn);
}

/* A sum of two tensors, which is an addition. The log has one shape for both, and a "src" for each. */
bool bz_call_onednn_sum(const bz_trace *t, size_t call, bz_problem *p)
{
    bz_extent v[3];
    const char *detail = bz_string(t, t->event[BZ_EVENT_CALL].detail[call]);
    int sources = 0;
    for (const char *s = detail; (s = strstr(s, "src")); s += 3)
        sources++;
    p->kind = BZ_PROBLEM_BINARY;
    p->binary.fn = BZ_FN_ADD;
    if (sources != 2 || !read_tensors(t, call, v, 3) || !data_type(t, call, &p->dtype))
        return false;
    memcpy(p->binary.a, v[0], sizeof v[0]);
    memcpy(p->binary.b, v[0], sizeof v[0]);
    return true;
}

bool bz_call_onednn_softmax(const bz_trace *t, size_t call, bz_problem *p)
{
    char aux[128] = "";
    double axis;
    bz_call_parameter(t, call, "aux", aux, sizeof aux);
    p->kind = strstr(aux, "softmax_log") ? BZ_PROBLEM_LOGSOFTMAX : BZ_PROBLEM_SOFTMAX;
    if (!one_tensor(t, call, p->softmax.x, &p->dtype))
        return false;
    int rank = bz_extent_rank(p->softmax.x);
    bool told = aux_number(aux, "axis:", &axis) && axis >= 0 && axis < rank;
    p->softmax.axis = told ? (int64_t)axis : rank - 1;
    return true;
}

/* Inputs "1x64x8x8:1x32x8x8" are joined along the axis where they differ. For equal shapes the log must tell the axis. */
bool bz_call_onednn_concat(const bz_trace *t, size_t call, bz_problem *p)
{
    char aux[64] = "";
    bz_extent v[BZ_PROBLEM_PARTS];
    double told;
    int n = read_tensors(t, call, v, BZ_PROBLEM_PARTS), axis = -1;
    int rank = n ? bz_extent_rank(v[0]) : 0;
    p->kind = BZ_PROBLEM_CONCAT;
    if (n < 2 || !data_type(t, call, &p->dtype))
        return false;
    if (bz_call_parameter(t, call, "aux", aux, sizeof aux) && aux_number(aux, "axis:", &told) && told >= 0 &&
        told < rank)
        axis = (int)told;
    for (int i = 1; i < n; i++) {
        if (bz_extent_rank(v[i]) != rank)
            return false;
        for (int a = 0; a < rank; a++)
            if (v[i][a] != v[0][a]) {
                if (axis >= 0 && axis != a)
                    return false;
                axis = a;
            }
    }
    if (axis < 0)
        return false;
    memcpy(p->concat.y, v[0], sizeof v[0]);
    p->concat.y[axis] = 0;
    for (int i = 0; i < n; i++)
        p->concat.y[axis] += p->concat.sizes[i] = v[i][axis];
    p->concat.axis = axis;
    return true;
}
