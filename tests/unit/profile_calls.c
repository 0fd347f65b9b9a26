/* What logs tell of calls is what was called: random problems are written as each library logs them, and read. Likewise the
 * arguments of operators. */
#include "chance.h"
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROUNDS = 60, MOST = 6 };

static bz_trace *t;
static char problem[1024], detail[2048]; /* of the call that is written: what it is, and what its log says */

static int draw(int least, unsigned more)
{
    return least + (int)chance(more);
}

/* "2x3x4" or "[2,3,4]". */
static const char *list(const int64_t *v, int n, bool log)
{
    static char text[8][128];
    static int next;
    char *out = text[next++ % 8];
    size_t at = 0;
    if (log)
        out[at++] = '[';
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, sizeof *text - at, "%s%d", i ? log ? "," : "x" : "", (int)v[i]);
    snprintf(out + at, sizeof *text - at, "%s", log ? "]" : "");
    return out;
}

static void check(const char *name)
{
    uint32_t source = bz_trace_source(t, "made-up", "test"), lane = bz_trace_thread(t, source, 1, 1);
    size_t i = bz_trace_add(t, BZ_EVENT_CALL, 0, 1, bz_trace_text(t, name), lane);
    t->event[BZ_EVENT_CALL].detail[i] = bz_trace_text(t, detail);
    const bz_call *call = bz_call_of(t, i);
    if (!call->text)
        fail_msg("%s %s is nothing, not %s", name, detail, problem);
    bz_problem p;
    bz_error err;
    bz_buf canonical = {0};
    if (bz_problem_parse(problem, &p, &err))
        fail_msg("%s: %s", problem, err.text);
    bz_problem_print(&p, &canonical);
    if (strcmp(bz_buf_text(&canonical), call->text) != 0)
        fail_msg("%s %s is %s, not %s", name, detail, call->text, bz_buf_text(&canonical));
    bz_buf_free(&canonical);
}

typedef struct window {
    int rank; /* of space */
    int64_t x[5], w[5], y[5], stride[3], dilation[3], pad[6], group;
} window;

/* Padding at the end is that of the beginning (even), or less. */
static window draw_window(bool dilated, bool even, bool pool)
{
    window v = {.rank = 1 + (int)chance(3), .group = pool ? 1 : draw(1, 3)};
    v.x[0] = v.y[0] = draw(1, 4);
    v.x[1] = v.group * draw(1, 5);
    v.w[0] = v.y[1] = pool ? v.x[1] : v.group * draw(1, 5);
    v.w[1] = v.x[1] / v.group;
    for (int a = 0; a < v.rank; a++) {
        v.w[2 + a] = draw(1, 3);
        v.stride[a] = draw(1, 3);
        v.dilation[a] = dilated ? draw(1, 2) : 1;
        int64_t reach = (v.w[2 + a] - 1) * v.dilation[a] + 1;
        v.pad[a] = chance((unsigned)v.w[2 + a]);
        v.pad[v.rank + a] = v.pad[a];
        v.x[2 + a] = reach + draw(1, 6);
        v.y[2 + a] = (v.x[2 + a] + 2 * v.pad[a] - reach) / v.stride[a] + 1;
        if (!even && v.y[2 + a] > 1 && chance(2)) { /* one window less, and as much padding as that takes */
            int64_t end = (v.y[2 + a] - 2) * v.stride[a] + reach - v.x[2 + a] - v.pad[a];
            v.y[2 + a]--;
            v.pad[v.rank + a] = end > 0 ? end : 0;
        }
    }
    return v;
}

static void tell_conv(const window *v, const char *post, const char *dtype)
{
    snprintf(problem, sizeof problem, "conv x=%s w=%s stride=%s pad=%s dilation=%s group=%d%s dtype=%s",
             list(v->x, v->rank + 2, false), list(v->w, v->rank + 2, false), list(v->stride, v->rank, false),
             list(v->pad, 2 * v->rank, false), list(v->dilation, v->rank, false), (int)v->group, post, dtype);
}

/* "mb1_g2ic4oc6_id5od5kd1…": dilations count from 0. */
static void tell_numbers(const window *v, bool pool)
{
    size_t at = strlen(detail);
    at += (size_t)snprintf(detail + at, sizeof detail - at, " problem=mb%d", (int)v->x[0]);
    if (v->group > 1)
        at += (size_t)snprintf(detail + at, sizeof detail - at, "_g%d", (int)v->group);
    at += (size_t)snprintf(detail + at, sizeof detail - at, "%sic%d", v->group > 1 ? "" : "_", (int)v->x[1]);
    if (!pool)
        at += (size_t)snprintf(detail + at, sizeof detail - at, "oc%d", (int)v->w[0]);
    for (int a = 0; a < v->rank; a++) {
        char c = "dhw"[3 - v->rank + a];
        at += (size_t)snprintf(detail + at, sizeof detail - at, "_i%c%do%c%dk%c%ds%c%dd%c%dp%c%d", c, (int)v->x[2 + a],
                               c, (int)v->y[2 + a], c, (int)v->w[2 + a], c, (int)v->stride[a], c,
                               (int)v->dilation[a] - 1, c, (int)v->pad[a]);
    }
}

static const struct {
    const char *cudnn, *onednn, *dtype;
} TYPES[] = {
    {"CUDNN_DATA_FLOAT", "f32", "f32"}, {"CUDNN_DATA_HALF", "f16", "f16"}, {"CUDNN_DATA_BFLOAT16", "bf16", "bf16"}};

static void convolutions(void **state)
{
    (void)state;
    static const char *const ACTIVATION[][2] = {{"CUDNN_ACTIVATION_RELU", " post=bias,relu"},
                                                {"CUDNN_ACTIVATION_IDENTITY", " post=bias"}};
    static const char *const POSTS[][3] = {{"undef", "", ""},
                                           {"f32::blocked:a:f0", "", " post=bias"},
                                           {"f32::blocked:a:f0", " attr=attr-post-ops:eltwise_relu", " post=bias,relu"},
                                           {"undef", " attr=attr-post-ops:sum+eltwise_clip:0:6", " post=add,clip:0:6"},
                                           {"undef", " attr=attr-scratchpad:user attr-post-ops:eltwise_tanh", ""}};
    for (int round = 0; round < ROUNDS; round++) {
        window v = draw_window(true, true, false);
        int type = (int)chance(3), act = (int)chance(3), post = (int)chance(4);
        size_t n = (size_t)snprintf(
            detail, sizeof detail,
            "xDesc.dimA=%s xDesc.dataType=%s wDesc.dimA=%s convDesc.padA=%s convDesc.strideA=%s convDesc.dilationA=%s",
            list(v.x, v.rank + 2, true), TYPES[type].cudnn, list(v.w, v.rank + 2, true), list(v.pad, v.rank, true),
            list(v.stride, v.rank, true), list(v.dilation, v.rank, true));
        if (v.group > 1 || chance(2))
            n += (size_t)snprintf(detail + n, sizeof detail - n, " convDesc.groupCount=%d", (int)v.group);
        if (act < 2)
            snprintf(detail + n, sizeof detail - n, " activationDesc.mode=%s", ACTIVATION[act][0]);
        tell_conv(&v, act < 2 ? ACTIVATION[act][1] : "", TYPES[type].dtype);
        check(act < 2 ? "cudnnConvolutionBiasActivationForward" : "cudnnConvolutionForward");

        v = draw_window(true, false, false);
        snprintf(detail, sizeof detail,
                 "engine=cpu src=%s::blocked:abcd:f0 wei=%s::blocked:abcd:f0 bia=%s dst=%s::blocked:abcd:f0%s",
                 TYPES[type].onednn, TYPES[type].onednn, POSTS[post][0], TYPES[type].onednn, POSTS[post][1]);
        tell_numbers(&v, false);
        tell_conv(&v, POSTS[post][2], TYPES[type].dtype);
        check("convolution");
    }
}

/* A program that pads by half a window itself, and convolves the padded input, computes the padded convolution. */
static void padded_by_the_program(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        window v = draw_window(true, true, false);
        bz_problem with, without, found;
        bz_error err;
        int most = 0;
        for (int a = 0; a < v.rank; a++) {
            v.pad[a] = v.pad[v.rank + a] = (v.w[2 + a] - 1) * v.dilation[a] / 2;
            most = v.pad[a] > most ? (int)v.pad[a] : most;
        }
        tell_conv(&v, "", "f32");
        assert_int_equal(bz_problem_parse(problem, &with, &err), 0);
        for (int a = 0; a < v.rank; a++) {
            v.x[2 + a] += 2 * v.pad[a];
            v.pad[a] = v.pad[v.rank + a] = 0;
        }
        tell_conv(&v, "", "f32");
        assert_int_equal(bz_problem_parse(problem, &without, &err), 0);
        assert_int_equal(bz_call_unpad(&without, &found), most);
        if (!most)
            continue;
        bz_buf is = {0}, must = {0};
        bz_problem_print(&found, &is);
        bz_problem_print(&with, &must);
        assert_string_equal(bz_buf_text(&is), bz_buf_text(&must));
        assert_int_equal(bz_call_unpad(&with, &found), 0);
        bz_buf_free(&is);
        bz_buf_free(&must);
    }
}

static void poolings(void **state)
{
    (void)state;
    static const char *const MODES[][3] = {
        {"CUDNN_POOLING_MAX", "pooling_max", "max"},
        {"CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING", "pooling_avg_exclude_padding", "avg"},
        {"CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING", "pooling_avg_include_padding", "avg_pad"},
        {"CUDNN_POOLING_MAX_DETERMINISTIC", "pooling_max", "max"}};
    for (int round = 0; round < ROUNDS; round++) {
        bool onednn = round % 2, old = chance(2);
        window v = draw_window(onednn, false, true);
        int mode = (int)chance(4), type = (int)chance(3);
        snprintf(problem, sizeof problem, "pool mode=%s x=%s kernel=%s stride=%s pad=%s dilation=%s dtype=%s",
                 MODES[mode][2], list(v.x, v.rank + 2, false), list(v.w + 2, v.rank, false),
                 list(v.stride, v.rank, false), list(v.pad, 2 * v.rank, false), list(v.dilation, v.rank, false),
                 TYPES[type].dtype);
        if (onednn) {
            snprintf(detail, sizeof detail, "%s=%s::blocked:abcd:f0 aux=alg:%s", old ? "data" : "src",
                     TYPES[type].onednn, MODES[mode][1]);
            tell_numbers(&v, true);
        } else {
            snprintf(detail, sizeof detail,
                     "%s.dimA=%s %s.dataType=%s %s.dimA=%s poolingDesc.mode=%s poolingDesc.windowDimA=%s "
                     "poolingDesc.strideA=%s poolingDesc.paddingA=%s",
                     old ? "srcDesc" : "xDesc", list(v.x, v.rank + 2, true), old ? "srcDesc" : "xDesc",
                     TYPES[type].cudnn, old ? "destDesc" : "yDesc", list(v.y, v.rank + 2, true), MODES[mode][0],
                     list(v.w + 2, v.rank, true), list(v.stride, v.rank, true), list(v.pad, v.rank, true));
        }
        check(onednn ? "pooling" : "cudnnPoolingForward");
    }
}

/* Row-major C = op(A) op(B) is, to who counts columns first, C' = op(B') op(A'). */
static void products(void **state)
{
    (void)state;
    static const char *const CALLS[][2] = {{"cublasSgemm_v2", "f32"}, {"cblas_sgemm", "f32"},   {"dgemm", "f64"},
                                           {"cublasHgemm", "f16"},    {"cublasGemmEx", "bf16"}, {"cblas_dgemm", "f64"}};
    for (int round = 0; round < ROUNDS; round++) {
        int call = (int)chance(6), batched = call == 4 && chance(2);
        bool cblas = !strncmp(CALLS[call][0], "cblas", 5), rows = cblas && chance(2);
        int m = draw(2, 40), n = draw(2, 40), k = draw(2, 40), batch = batched ? draw(2, 6) : 1;
        unsigned a = chance(2), b = chance(2);
        const char *no = call == 0 || call == 3 ? "CUBLAS_OP_N" : "N",
                   *yes = call == 0 || call == 3 ? "CUBLAS_OP_T" : "T";
        snprintf(problem, sizeof problem, "gemm m=%d n=%d k=%d batch=%d transa=%u transb=%u dtype=%s", m, n, k, batch,
                 a, b, CALLS[call][1]);
        snprintf(detail, sizeof detail, "%stransa=%s transb=%s m=%d n=%d k=%d%s",
                 rows    ? "order=row "
                 : cblas ? "order=column "
                         : "",
                 (rows ? a : b) ? yes : no, (rows ? b : a) ? yes : no, rows ? m : n, rows ? n : m, k,
                 call == 4 ? " Atype=CUDA_R_16BF" : "");
        if (batched)
            snprintf(detail + strlen(detail), sizeof detail - strlen(detail), " batchCount=%d", batch);
        check(batched ? "cublasGemmStridedBatchedEx" : CALLS[call][0]);

        snprintf(problem, sizeof problem, "gemv m=%d k=%d trans=%u dtype=f32", m, k, a);
        snprintf(detail, sizeof detail, "%strans=%s m=%d n=%d", rows ? "order=row " : "", a == rows ? "T" : "N",
                 a == rows ? k : m, a == rows ? m : k);
        check(cblas || rows ? "cblas_sgemv" : "sgemv");

        snprintf(problem, sizeof problem, "gemm m=%d n=%d k=%d batch=1 transa=0 transb=1 dtype=f32", m, n, k * 3 * 5);
        snprintf(detail, sizeof detail, "src=f32:: wei=f32:: dst=f32:: problem=mb%dic%dih3iw5oc%d", m, k, n);
        check("inner_product");

        snprintf(problem, sizeof problem, "matmul a=%dx%dx%d b=%dx%dx%d constant=0 dtype=f32", batch, m, k, batch, k,
                 n);
        snprintf(detail, sizeof detail, "src=f32:: wei=f32:: dst=f32:: problem=%dx%dx%d:%dx%dx%d:%dx%dx%d", batch, m, k,
                 batch, k, n, batch, m, n);
        check("matmul");
    }
}

static void others(void **state)
{
    (void)state;
    static const char *const FUNCTIONS[][3] = {{"relu", "", "relu"},
                                               {"relu", ";alpha:0.5", "leaky"},
                                               {"tanh", "", "tanh"},
                                               {"logistic", "", "sigmoid"},
                                               {"gelu_erf", "", "gelu_erf"},
                                               {"elu", ";alpha:0.5", "elu"},
                                               {"clip", ";alpha:0.5;beta:6", "clip"},
                                               {"exp", "", "exp"},
                                               {"abs", "", "abs"}};
    static const char *const ACTIVATIONS[][2] = {
        {"CUDNN_ACTIVATION_RELU", "relu"}, {"CUDNN_ACTIVATION_SIGMOID", "sigmoid"}, {"CUDNN_ACTIVATION_TANH", "tanh"}};
    static const char *const OPS[][3] = {{"CUDNN_OP_TENSOR_ADD", "binary_add", "add"},
                                         {"CUDNN_OP_TENSOR_MUL", "binary_mul", "mul"},
                                         {"CUDNN_OP_TENSOR_MIN", "binary_min", "min"},
                                         {"CUDNN_OP_TENSOR_MAX", "binary_max", "max"}};
    for (int round = 0; round < ROUNDS; round++) {
        int64_t x[5], b[5];
        int rank = 2 + (int)chance(3), at = (int)chance((unsigned)rank), fn = (int)chance(9), act = (int)chance(3),
            op = (int)chance(4);
        for (int i = 0; i < rank; i++) {
            x[i] = draw(2, 7);
            b[i] = chance(2) ? x[i] : 1;
        }
        const char *shape = list(x, rank, false), *other = list(b, rank, false), *logged = list(x, rank, true);

        snprintf(problem, sizeof problem, "softmax x=%s axis=%d dtype=f32", shape, at);
        snprintf(detail, sizeof detail, "src=f32:: dst=f32:: aux=alg:softmax_accurate;axis:%d problem=%s", at, shape);
        check("softmax");
        snprintf(problem, sizeof problem, "logsoftmax x=%s axis=1 dtype=f32", shape);
        snprintf(
            detail, sizeof detail,
            "xDesc.dimA=%s xDesc.dataType=CUDNN_DATA_FLOAT algorithm=CUDNN_SOFTMAX_LOG mode=CUDNN_SOFTMAX_MODE_CHANNEL",
            logged);
        check("cudnnSoftmaxForward");

        snprintf(problem, sizeof problem, "layernorm x=%s axis=%d dtype=bf16", shape, rank - 1);
        snprintf(detail, sizeof detail, "src=bf16:: dst=bf16:: problem=%s", shape);
        check("layer_normalization");

        snprintf(problem, sizeof problem, "activation fn=%s x=%s dtype=f16", ACTIVATIONS[act][1], shape);
        snprintf(detail, sizeof detail, "xDesc.dimA=%s xDesc.dataType=CUDNN_DATA_HALF activationDesc.mode=%s", logged,
                 ACTIVATIONS[act][0]);
        check("cudnnActivationForward");
        snprintf(problem, sizeof problem, "activation fn=clip x=%s alpha=0 beta=6 dtype=f32", shape);
        snprintf(detail, sizeof detail,
                 "srcDesc.dimA=%s srcDesc.dataType=CUDNN_DATA_FLOAT activationDesc.mode=CUDNN_ACTIVATION_CLIPPED_RELU "
                 "activationDesc.coef=6.0",
                 logged);
        check("cudnnActivationForward");
        snprintf(problem, sizeof problem, "activation fn=%s x=%s%s dtype=f32", FUNCTIONS[fn][2], shape,
                 strstr(FUNCTIONS[fn][1], "beta") ? " alpha=0.5 beta=6"
                 : *FUNCTIONS[fn][1]              ? " alpha=0.5"
                                                  : "");
        snprintf(detail, sizeof detail, "src=f32:: dst=f32:: aux=alg:eltwise_%s%s problem=%s", FUNCTIONS[fn][0],
                 FUNCTIONS[fn][1], shape);
        check("eltwise");

        snprintf(problem, sizeof problem, "binary fn=%s a=%s b=%s dtype=f32", OPS[op][2], shape, other);
        snprintf(detail, sizeof detail, "src=f32:: src1=f32:: dst=f32:: aux=alg:%s problem=%s:%s:%s", OPS[op][1], shape,
                 other, shape);
        check("binary");
        snprintf(detail, sizeof detail,
                 "aDesc.dimA=%s aDesc.dataType=CUDNN_DATA_FLOAT bDesc.dimA=%s opTensorDesc.opTensorOp=%s", logged,
                 list(b, rank, true), OPS[op][0]);
        check("cudnnOpTensor");
        snprintf(problem, sizeof problem, "binary fn=add a=%s b=%s dtype=f32", shape, other);
        snprintf(detail, sizeof detail, "aDesc.dimA=%s cDesc.dimA=%s cDesc.dataType=CUDNN_DATA_FLOAT",
                 list(b, rank, true), logged);
        check("cudnnAddTensor");
        snprintf(detail, sizeof detail, "biasDesc.dimA=%s srcDestDesc.dimA=%s srcDestDesc.dataType=CUDNN_DATA_FLOAT",
                 list(b, rank, true), logged);
        check("cudnnAddTensor");

        int part = (int)x[at], rest = draw(1, 4);
        x[at] = part + rest;
        snprintf(problem, sizeof problem, "concat y=%s axis=%d sizes=%dx%d dtype=f32", list(x, rank, false), at, part,
                 rest);
        x[at] = rest;
        snprintf(detail, sizeof detail, "src=f32:: dst=f32:: aux=axis:%d problem=%s:%s", at, shape,
                 list(x, rank, false));
        check("concat");

        snprintf(problem, sizeof problem, "batchnorm x=%dx%dx4x5 dtype=f32", (int)x[0], (int)x[1]);
        snprintf(detail, sizeof detail, "src=f32:: problem=mb%dic%dih4iw5", (int)x[0], (int)x[1]);
        check("batch_normalization");
        snprintf(detail, sizeof detail, "xDesc.dimA=[%d,%d,4,5] xDesc.dataType=CUDNN_DATA_FLOAT", (int)x[0], (int)x[1]);
        check("cudnnBatchNormalizationForwardInference");
        snprintf(problem, sizeof problem, "lrn x=2x8x4x5 size=%d alpha=0.25 beta=0.75 bias=2 dtype=f32",
                 (int)(1 + 2 * (x[0] % 3)));
        snprintf(detail, sizeof detail,
                 "xDesc.dimA=[2,8,4,5] xDesc.dataType=CUDNN_DATA_FLOAT normDesc.lrnN=%d normDesc.lrnAlpha=0.25 "
                 "normDesc.lrnBeta=0.75 normDesc.lrnK=2.0",
                 (int)(1 + 2 * (x[0] % 3)));
        check("cudnnLRNCrossChannelForward");
    }
}

/* Tensors, scalars and lists of numbers, as PyTorch writes them. */
static void arguments(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bz_dtype dtype;
    } KINDS[] = {
        {"float", BZ_F32}, {"c10::Half", BZ_F16}, {"c10::BFloat16", BZ_BF16}, {"long_int", BZ_I64}, {"double", BZ_F64}};
    for (int round = 0; round < ROUNDS; round++) {
        char dims[512] = "[", types[512] = "[", values[512] = "[";
        int64_t shape[MOST][4], ints[MOST][3];
        int n = 1 + (int)chance(MOST), rank[MOST], kind[MOST], n_ints[MOST];
        for (int i = 0; i < n; i++) {
            rank[i] = (int)chance(4);
            kind[i] = (int)chance(5);
            n_ints[i] = rank[i] ? 0 : (int)chance(4);
            for (int d = 0; d < rank[i]; d++)
                shape[i][d] = draw(0, 300);
            for (int d = 0; d < n_ints[i]; d++)
                ints[i][d] = draw(-4, 9);
            char numbers[64] = "";
            for (int d = 0; d < n_ints[i]; d++)
                snprintf(numbers + strlen(numbers), sizeof numbers - strlen(numbers), "%s%d", d ? ",_" : "",
                         (int)ints[i][d]);
            snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%s%s", i ? "," : "",
                     list(shape[i], rank[i], true));
            snprintf(types + strlen(types), sizeof types - strlen(types), "%s%s", i ? "," : "",
                     rank[i]     ? KINDS[kind[i]].name
                     : n_ints[i] ? "ScalarList"
                                 : "");
            snprintf(values + strlen(values), sizeof values - strlen(values), n_ints[i] > 1 ? "%s[%s]" : "%s%s",
                     i ? "," : "", numbers);
        }
        snprintf(detail, sizeof detail, "inputs=%s] types=%s] values=%s]", dims, types, values);
        uint32_t source = bz_trace_source(t, "made-up", "test"), lane = bz_trace_thread(t, source, 1, 1);
        size_t op = bz_trace_add(t, BZ_EVENT_OP, 0, 1, bz_trace_text(t, "aten::op"), lane);
        t->event[BZ_EVENT_OP].detail[op] = bz_trace_text(t, detail);
        const bz_operator *o = bz_operator_of(t, op);
        assert_int_equal(o->n_in, n);
        assert_int_equal(o->arguments, n);
        for (int i = 0; i < n; i++) {
            int64_t v[8];
            if (o->in[i].rank != rank[i] || o->in[i].argument != i ||
                (rank[i] && o->in[i].dtype != KINDS[kind[i]].dtype))
                fail_msg("argument %d of %s: rank %d, type %d", i, detail, o->in[i].rank, (int)o->in[i].dtype);
            for (int d = 0; d < rank[i]; d++)
                assert_int_equal(o->in[i].dim[d], shape[i][d]);
            assert_int_equal(bz_operator_ints(o, i, v, 8), n_ints[i]);
            for (int d = 0; d < n_ints[i]; d++)
                assert_int_equal(v[d], ints[i][d]);
        }
    }
}

static int begin(void **state)
{
    (void)state;
    t = bz_trace_new();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    bz_trace_free(t);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions), cmocka_unit_test(padded_by_the_program),
                                       cmocka_unit_test(poolings),     cmocka_unit_test(products),
                                       cmocka_unit_test(others),       cmocka_unit_test(arguments)};
    return cmocka_run_group_tests(tests, begin, finish);
}
