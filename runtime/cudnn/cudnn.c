/* The cuDNN backend: the table of kinds, sessions, variants, execution. */
#include "runtime/cudnn/graph.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern __attribute__((visibility("default"))) const bz_backend bz_backend_module;

/* A table is read by its columns. */
/* clang-format off */
#define CALL(...) {__VA_ARGS__, NULL, NULL}
#define GRAPH(kind, name, check, build) CHOSEN_BY(cudnn_graph_choice, kind, name, check, build)
#define CHOSEN_BY(choice, kind, name, check, build) \
    {kind, name, cudnn_describe_graph, cudnn_graph_algorithm, choice, cudnn_prepare_graph, cudnn_run_graph, cudnn_release_graph, check, build}
const cudnn_kind bz_cudnn_kinds[] = {
    CALL(BZ_PROBLEM_CONV, NULL, cudnn_describe_conv, cudnn_conv_algorithm, cudnn_conv_choice, cudnn_prepare_conv, cudnn_run_conv, NULL),
    CALL(BZ_PROBLEM_CONV, NULL, cudnn_describe_conv_fused, cudnn_conv_algorithm, cudnn_conv_choice, cudnn_prepare_conv, cudnn_run_conv, NULL),
    CALL(BZ_PROBLEM_DECONV, NULL, cudnn_describe_conv, cudnn_conv_algorithm, cudnn_deconv_choice, cudnn_prepare_conv, cudnn_run_deconv, NULL),
    CALL(BZ_PROBLEM_POOL, "pooling", cudnn_describe_pool, NULL, NULL, NULL, cudnn_run_pool, NULL),
    CALL(BZ_PROBLEM_BATCHNORM, NULL, cudnn_describe_batchnorm, cudnn_batchnorm_algorithm, cudnn_batchnorm_choice, NULL, cudnn_run_batchnorm, NULL),
    CALL(BZ_PROBLEM_SOFTMAX, "softmax_accurate", cudnn_describe_softmax, NULL, NULL, NULL, cudnn_run_softmax, NULL),
    CALL(BZ_PROBLEM_LOGSOFTMAX, "softmax_log", cudnn_describe_softmax, NULL, NULL, NULL, cudnn_run_softmax, NULL),
    CALL(BZ_PROBLEM_LRN, "lrn_cross_channel", cudnn_describe_lrn, NULL, NULL, NULL, cudnn_run_lrn, NULL),
    CALL(BZ_PROBLEM_ACTIVATION, "activation", cudnn_describe_activation, NULL, NULL, NULL, cudnn_run_activation, NULL),
    CALL(BZ_PROBLEM_ACTIVATION, "transform_tensor", cudnn_describe_scale, NULL, NULL, NULL, cudnn_run_transform, NULL),
    CALL(BZ_PROBLEM_DROPOUT, "dropout", cudnn_describe_dropout, NULL, NULL, cudnn_prepare_dropout, cudnn_run_dropout, cudnn_release_dropout),
    CALL(BZ_PROBLEM_BINARY, "op_tensor", cudnn_describe_binary, NULL, NULL, NULL, cudnn_run_binary, NULL),
    CALL(BZ_PROBLEM_REDUCE, "reduce_tensor", cudnn_describe_reduce, NULL, NULL, cudnn_prepare_reduce, cudnn_run_reduce, NULL),
    CALL(BZ_PROBLEM_TRANSPOSE, "transform_tensor", cudnn_describe_transpose, NULL, NULL, NULL, cudnn_run_transform, NULL),
    CALL(BZ_PROBLEM_REORDER, "transform_tensor", cudnn_describe_reorder, NULL, NULL, NULL, cudnn_run_transform, NULL),
    CALL(BZ_PROBLEM_CONCAT, "transform_tensors", cudnn_describe_concat, NULL, NULL, NULL, cudnn_run_concat, NULL),
    CALL(BZ_PROBLEM_PAD, "transform_tensor", cudnn_describe_pad, NULL, NULL, NULL, cudnn_run_pad, NULL),
    CALL(BZ_PROBLEM_PAD, "memcpy3d", cudnn_describe_pad_copy, NULL, NULL, NULL, cudnn_run_pad_copy, NULL),
    CALL(BZ_PROBLEM_COPY, "memcpy", cudnn_describe_copy, NULL, NULL, NULL, cudnn_run_copy, NULL),
    CALL(BZ_PROBLEM_LSTM, NULL, cudnn_describe_rnn, cudnn_rnn_algorithm, NULL, cudnn_prepare_rnn, cudnn_run_rnn, cudnn_release_rnn),
    CALL(BZ_PROBLEM_GRU, NULL, cudnn_describe_rnn, cudnn_rnn_algorithm, NULL, cudnn_prepare_rnn, cudnn_run_rnn, cudnn_release_rnn),
    CALL(BZ_PROBLEM_RNN, NULL, cudnn_describe_rnn, cudnn_rnn_algorithm, NULL, cudnn_prepare_rnn, cudnn_run_rnn, cudnn_release_rnn),
    CALL(BZ_PROBLEM_LSTM_GRAD, NULL, cudnn_describe_rnn, cudnn_rnn_algorithm, NULL, cudnn_prepare_rnn, cudnn_run_rnn_grad, cudnn_release_rnn),
    CALL(BZ_PROBLEM_GRU_GRAD, NULL, cudnn_describe_rnn, cudnn_rnn_algorithm, NULL, cudnn_prepare_rnn, cudnn_run_rnn_grad, cudnn_release_rnn),
    CALL(BZ_PROBLEM_RNN_GRAD, NULL, cudnn_describe_rnn, cudnn_rnn_algorithm, NULL, cudnn_prepare_rnn, cudnn_run_rnn_grad, cudnn_release_rnn),
    CALL(BZ_PROBLEM_CONV_DATA, NULL, cudnn_describe_conv, cudnn_conv_algorithm, cudnn_deconv_choice, cudnn_prepare_conv, cudnn_run_deconv, NULL),
    CALL(BZ_PROBLEM_CONV_WEIGHTS, NULL, cudnn_describe_conv, cudnn_conv_algorithm, cudnn_weights_choice, cudnn_prepare_conv, cudnn_run_weights, NULL),
    CALL(BZ_PROBLEM_REDUCE, "backward_bias", cudnn_describe_bias_grad, NULL, NULL, NULL, cudnn_run_bias_grad, NULL),
    CALL(BZ_PROBLEM_POOL_GRAD, "pooling_backward", cudnn_describe_pool, NULL, NULL, NULL, cudnn_run_pool_grad, NULL),
    CALL(BZ_PROBLEM_BATCHNORM_GRAD, NULL, cudnn_describe_batchnorm, cudnn_batchnorm_algorithm, cudnn_batchnorm_choice, NULL, cudnn_run_batchnorm, NULL),
    CALL(BZ_PROBLEM_ACTIVATION_GRAD, "activation_backward", cudnn_describe_activation_grad, NULL, NULL, NULL, cudnn_run_activation_grad, NULL),
    CALL(BZ_PROBLEM_SOFTMAX_GRAD, "softmax_backward", cudnn_describe_softmax, NULL, NULL, NULL, cudnn_run_softmax_grad, NULL),
    CALL(BZ_PROBLEM_LOGSOFTMAX_GRAD, "softmax_log_backward", cudnn_describe_softmax, NULL, NULL, NULL, cudnn_run_softmax_grad, NULL),
    GRAPH(BZ_PROBLEM_CONV, NULL, NULL, cudnn_build_conv),
    GRAPH(BZ_PROBLEM_DECONV, NULL, NULL, cudnn_build_conv),
    GRAPH(BZ_PROBLEM_POOL, NULL, cudnn_check_pool, cudnn_build_pool),
    GRAPH(BZ_PROBLEM_GEMM, NULL, cudnn_check_product, cudnn_build_product),
    CHOSEN_BY(NULL, BZ_PROBLEM_GEMM, "blocks", cudnn_check_blocks, cudnn_build_blocks), /* no program gets it unasked */
    GRAPH(BZ_PROBLEM_MATMUL, NULL, cudnn_check_product, cudnn_build_product),
    GRAPH(BZ_PROBLEM_LAYERNORM, NULL, cudnn_check_norm, cudnn_build_norm),
    GRAPH(BZ_PROBLEM_RMSNORM, NULL, cudnn_check_norm, cudnn_build_norm),
    GRAPH(BZ_PROBLEM_ATTENTION, "sdpa", cudnn_check_sdpa, cudnn_build_sdpa),
    GRAPH(BZ_PROBLEM_ATTENTION, NULL, cudnn_check_attention, cudnn_build_attention),
    GRAPH(BZ_PROBLEM_ATTENTION_GRAD, NULL, cudnn_check_attention_grad, cudnn_build_attention_grad),
    GRAPH(BZ_PROBLEM_ACTIVATION, NULL, NULL, cudnn_build_elementwise),
    GRAPH(BZ_PROBLEM_BINARY, NULL, NULL, cudnn_build_elementwise),
    GRAPH(BZ_PROBLEM_CONV_NORM, NULL, NULL, cudnn_build_conv),
    GRAPH(BZ_PROBLEM_CONV_DATA, NULL, NULL, cudnn_build_conv),
    GRAPH(BZ_PROBLEM_CONV_WEIGHTS, NULL, NULL, cudnn_build_weights),
    GRAPH(BZ_PROBLEM_POOL_GRAD, NULL, cudnn_check_pool, cudnn_build_pool),
    GRAPH(BZ_PROBLEM_ACTIVATION_GRAD, NULL, cudnn_check_slope, cudnn_build_slope),
    GRAPH(BZ_PROBLEM_BATCHNORM, NULL, cudnn_check_norm, cudnn_build_norm),
    GRAPH(BZ_PROBLEM_BATCHNORM_GRAD, NULL, cudnn_check_norm, cudnn_build_norm),
    GRAPH(BZ_PROBLEM_LAYERNORM_GRAD, NULL, cudnn_check_norm, cudnn_build_norm),
    GRAPH(BZ_PROBLEM_RMSNORM_GRAD, NULL, cudnn_check_norm, cudnn_build_norm),
    {.kind = BZ_PROBLEM_NONE},
};
/* clang-format on */

int bz_cudnn_failed(bz_error *err, const char *what, cudnnStatus_t status)
{
    bool unsupported = (int)status / 1000 == (int)CUDNN_STATUS_NOT_SUPPORTED / 1000;
    char more[240] = ""; /* which of its conditions did not hold */
    cudnnGetLastErrorString(more, sizeof more);
    more[strcspn(more, "\n")] = 0;
    return bz_fail(err, unsupported ? BZ_INCOMPLETE : BZ_FAILED, "%s: %s%s%s", what, cudnnGetErrorString(status),
                   *more ? "; " : "", more);
}

static void version(bz_buf *out)
{
    size_t v = cudnnGetVersion();
    bz_buf_printf(out, "cudnn%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
}

/* f32 is f32 unless the user lets the library compute in less; f16, bf16 and bytes use tensor cores, with sums in f32 unless the
 * user lets those of f16 be f16. */
static int set_math(call *c, const char *math, bz_error *why)
{
    bz_dtype t = c->problem->dtype;
    c->math = t == BZ_F32 ? CUDNN_FMA_MATH : t == BZ_F64 ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
    c->half_sums = t == BZ_F16 && !strcmp(math, "f16");
    if (!strcmp(math, "default") || c->half_sums)
        return 0;
    if (t != BZ_F32)
        return bz_fail(why, BZ_INCOMPLETE, "math modes are for f32, and sums of f16 in f16");
    if (strcmp(math, "tf32") != 0 && strcmp(math, "f16") != 0)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN has no math mode '%s'", math);
    c->math = !strcmp(math, "tf32") ? CUDNN_TENSOR_OP_MATH : CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
    return 0;
}

static int set_layout(call *c, const char *layout, bz_error *why)
{
    int rank = c->operand[0].rank;
    c->nhwc = !strcmp(layout, "nhwc");
    c->x32 = !strcmp(layout, "any");
    if (c->x32 && (c->problem->kind != BZ_PROBLEM_CONV || c->problem->dtype != BZ_I8))
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN chooses a layout for convolutions of i8 alone");
    if (!c->nhwc && !c->x32 && strcmp(layout, "plain") != 0)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN knows the layouts plain and nhwc");
    if (c->nhwc && (rank < 3 || rank > 5))
        return bz_fail(why, BZ_INCOMPLETE, "channels last needs one to three spatial dimensions");
    return 0;
}

call *bz_cudnn_describe(const cudnn_kind *kind, const bz_problem *p, const bz_operand *operand, int n_operands,
                        const char *layout, const char *math, bz_error *why)
{
    call *c = bz_alloc(1, sizeof *c);
    *c = (call){.kind = kind, .problem = p, .operand = operand, .n_operands = n_operands};
    c->one = (scalar){1, 1};
    c->epsilon = 1e-5;
    tensor *own[CUDNN_MOST_TENSORS];
    for (int i = cudnn_tensors_of(c, own); i--;)
        own[i]->operand = -1;
    bool bad = set_math(c, math, why) || set_layout(c, layout, why);
    if (!bad && strcmp(math, "default") != 0 &&
        !bz_problem_has(p, BZ_TRAIT_PRODUCT | BZ_TRAIT_RECURRENT)) /* it would be measured twice */
        bad = bz_fail(why, BZ_INCOMPLETE, "a math mode makes no difference here");
    if (!bad && !kind->describe(c, why))
        return c;
    bz_cudnn_free(c);
    return NULL;
}

static void free_tensor(tensor *t)
{
    if (t->desc)
        cudnnDestroyTensorDescriptor(t->desc);
}

void bz_cudnn_free(call *c)
{
    tensor *own[CUDNN_MOST_TENSORS];
    if (c->kind->release)
        c->kind->release(c);
    for (int i = cudnn_own_tensors(c, own); i--;)
        free_tensor(own[i]);
    for (int i = 0; i < c->n_parts; i++)
        free_tensor(&c->part[2 * i + 1]);
    for (int i = 0; i < BZ_PROBLEM_POST; i++)
        if (c->activation[i])
            cudnnDestroyActivationDescriptor(c->activation[i]);
    bz_cuda_free(c->reordered);
    if (c->filter)
        cudnnDestroyFilterDescriptor(c->filter);
    if (c->conv)
        cudnnDestroyConvolutionDescriptor(c->conv);
    if (c->pooling)
        cudnnDestroyPoolingDescriptor(c->pooling);
    if (c->lrn)
        cudnnDestroyLRNDescriptor(c->lrn);
    if (c->op)
        cudnnDestroyOpTensorDescriptor(c->op);
    if (c->reduce)
        cudnnDestroyReduceTensorDescriptor(c->reduce);
    free(c);
}

int bz_cudnn_upload(session *s, tensor *t, bz_error *err)
{
    bool bound = t->operand >= 0 && s->job->placed && !s->job->value[t->operand];
    return t->operand < 0 || bound ? 0 : bz_cuda_operand_get(&s->operands, t->operand, &t->layout, &t->data, err);
}

static int upload_all(session *s, call *c, bz_error *err)
{
    tensor *own[CUDNN_MOST_TENSORS];
    for (int i = 0, n = cudnn_own_tensors(c, own); i < n; i++)
        if (bz_cudnn_upload(s, own[i], err))
            return -1;
    return 0;
}

static void close_session(void *of)
{
    session *s = of;
    for (int i = s->n_calls; i--;) /* the first of a row has what the others refer to */
        bz_cudnn_free(s->calls[i]);
    if (s->handle && !s->cuda.borrowed)
        cudnnDestroy(s->handle);
    cudnn_shelf_close(&s->shelf);
    bz_cuda_operands_free(&s->operands);
    bz_cuda_close(&s->cuda);
    free(s);
}

static void close_handle(void *handle)
{
    cudnnDestroy(handle);
}

int bz_cudnn_handle(bz_cuda_stream *shared, const bz_cuda *cuda, cudnnHandle_t *out, bz_error *err)
{
    *out = shared ? bz_cuda_shared(shared, &bz_backend_module) : NULL;
    if (*out)
        return 0;
    cudnnStatus_t status = cudnnCreate(out);
    status = status ? status : cudnnSetStream(*out, cuda->stream);
    if (shared && *out)
        bz_cuda_share(shared, &bz_backend_module, *out, close_handle);
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(err, "opening cuDNN", status);
}

/* A device that the library does not describe keeps nothing: it has no name to be found by. */
static void open_shelf(session *s)
{
    cudnnBackendDescriptor_t device = NULL;
    const char *folder = s->job->setting->plans;
    if (folder && cudnn_device_find(s->cuda.device, &device) == CUDNN_STATUS_SUCCESS)
        cudnn_shelf_open(&s->shelf, folder, device);
    graph_forget(&device);
}

static int open_session(const bz_job *job, void **of, bz_error *err)
{
    session *s = bz_alloc(1, sizeof *s);
    *s = (session){.job = job, .operands = {.job = job}};
    if (bz_cuda_open_for(&s->cuda, job, err)) {
        free(s);
        return -1;
    }
    if (bz_cudnn_handle(job->stream, &s->cuda, &s->handle, err)) {
        close_session(s);
        return -1;
    }
    open_shelf(s);
    *of = s;
    return 0;
}

static void set_epsilon(call *c, float epsilon)
{
    if (epsilon <= 0)
        return;
    c->epsilon = (double)epsilon;
    tensor *own[CUDNN_MOST_TENSORS];
    for (int i = cudnn_tensors_of(c, own); i--;)
        own[i]->layout.root = own[i]->layout.root > 0 ? epsilon : 0;
    if (c->graph && c->graph->epsilon)
        c->graph->tensor[c->graph->epsilon].value.real = epsilon;
}

static call *new_call(session *s, const cudnn_kind *kind, const char *layout, const char *math, bz_error *why)
{
    if (s->n_calls == MAX_CALLS)
        return NULL;
    call *c = bz_cudnn_describe(kind, s->job->problem, s->job->operand, s->job->n_operands, layout, math, why);
    if (!c)
        return NULL;
    c->handle = s->handle;
    c->engines = s->job->setting->engines;
    c->shelf = s->shelf.folder ? &s->shelf : NULL;
    c->cuda = &s->cuda;
    set_epsilon(c, s->job->epsilon);
    s->calls[s->n_calls++] = c;
    return c;
}

/* The variants of one row of the table: each has descriptors of its own. */
static void enumerate_kind(session *s, const cudnn_kind *kind, const char *layout, const char *math,
                           bz_variant_list *list, bz_error *why)
{
    char name[160];
    call *c = new_call(s, kind, layout, math, why), *first = c;
    int chosen = !c ? -1 : kind->choice ? kind->choice(c) : kind->algorithm ? -1 : 0;
    for (int i = 0; c; i++) {
        const char *text = kind->algorithm ? kind->algorithm(first, i, name, sizeof name) : i ? NULL : kind->name;
        if (!text || (i && !(c = new_call(s, kind, layout, math, why))))
            return;
        c->algorithm = i;
        c->first = first;
        bz_variant *v = bz_variant_add(list, &bz_backend_module, s, layout, math);
        v->index = s->n_calls - 1;
        v->chosen = i == chosen;
        snprintf(v->algorithm, sizeof v->algorithm, "%s", text);
    }
}

/* A row that comes later is a more special way: where all refuse, the first says what is the matter; and whether the library was
 * asked for a graph's engines, and had none. */
static int enumerate(void *of, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    session *s = of;
    int before = list->n;
    bool known = false, asked = false;
    bz_error first = {0};
    for (const cudnn_kind *k = bz_cudnn_kinds; k->kind; k++)
        if (k->kind == s->job->problem->kind) {
            bz_error own = {0};
            known = true;
            enumerate_kind(s, k, layout, math, list, &own);
            if (!first.code && !asked)
                first = own;
            asked |= !own.code;
        }
    if (list->n > before)
        return 0;
    if (!known)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN has no call for a %s", bz_problem_kind_name(s->job->problem->kind));
    if (!first.code)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN proposes no engine for it");
    return bz_fail(why, first.code, "%s%s", first.text, asked ? "; cuDNN proposes no engine for it either" : "");
}

static int run_call(void *context)
{
    call *c = context;
    return c->kind->execute(c) == CUDNN_STATUS_SUCCESS ? 0 : -1;
}

/* One call is made here: only running tells what the library supports. Not in a replay, where operands have no place
 * yet: its first run says the same. */
static int prepare(bz_variant *v, bz_error *err)
{
    session *s = v->session;
    call *c = s->calls[v->index];
    if (upload_all(s, c, err) || (c->kind->prepare && c->kind->prepare(c, s, err)))
        return -1;
    c->run = (bz_cuda_run){&s->cuda, run_call, &s->job->operand[c->y.operand], &c->y.layout, &c->y.data, {0}};
    v->workspace = (double)c->workspace;
    if (s->job->placed) {
        v->state = c;
        return 0;
    }
    if (bz_cuda_workspace(&s->cuda, c->workspace, err))
        return -1;
    cudnnStatus_t status = c->kind->execute(c);
    if (status != CUDNN_STATUS_SUCCESS) {
        bz_cuda_settle(&s->cuda);
        return bz_cudnn_failed(err, "the first call", status);
    }
    return bz_cuda_run_ready(v, &c->run, err);
}

/* All results; those of graphs lie in their tensors. */
static int poison(bz_variant *v)
{
    call *c = v->state;
    tensor *own[CUDNN_MOST_TENSORS];
    if (c->poison)
        return c->poison(c);
    for (int i = cudnn_tensors_of(c, own); i--;)
        if (own[i]->operand >= 0 && c->operand[own[i]->operand].result && own[i]->data != c->y.data &&
            bz_cuda_operand_poison(c->cuda, &own[i]->layout, own[i]->data))
            return -1;
    return bz_cuda_run_poison(v);
}

static int read_operand(bz_variant *v, int operand, float *values, bz_error *err)
{
    call *c = v->state;
    tensor *own[CUDNN_MOST_TENSORS];
    if (cudnn_is_rnn_weight(c, operand))
        return cudnn_read_rnn_weight(c, operand, values, err);
    for (int i = cudnn_tensors_of(c, own); i--;)
        if (own[i]->operand == operand)
            return bz_cuda_operand_read(c->cuda, &c->operand[operand], &own[i]->layout, own[i]->data, values, err);
    return bz_fail(err, BZ_FAILED, "%s does not give this result", v->algorithm);
}

const bz_backend bz_backend_module = {
    .name = "cudnn",
    .timing = "device",
    .smallest = "softmax x=1x1 axis=1 dtype=f32", /* an activation is ten graphs, too, whose plans are compiled */
    .version = version,
    .open = open_session,
    .enumerate = enumerate,
    .prepare = prepare,
    .execute = bz_cuda_run_execute,
    .wait = bz_cuda_run_wait,
    .measure = bz_cuda_run_measure,
    .clock = bz_cuda_state,
    .trace = bz_cuda_trace,
    .count = bz_cuda_run_count,
    .device = bz_cuda_identify,
    .rates = bz_cuda_rates,
    .lock = bz_cuda_lock,
    .poison = poison,
    .read = bz_cuda_run_read,
    .probe = bz_cuda_run_probe,
    .read_operand = read_operand,
    .release = bz_cuda_run_release,
    .close = close_session,
    .wants = cudnn_wants,
    .bind = cudnn_bind,
    .same = cudnn_same,
    .converter = cudnn_converter,
    .convert = cudnn_convert,
    .converter_free = cudnn_converter_free,
    .ops = &bz_cuda_ops,
    .ahead = cudnn_ahead,
};
