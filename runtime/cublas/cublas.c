/* The cuBLAS backend: sessions, variants, execution. */
#include "runtime/cublas/cublas.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern __attribute__((visibility("default"))) const bz_backend bz_backend_module;

int bz_cublas_failed(bz_error *err, const char *what, cublasStatus_t status)
{
    return bz_fail(err, status == CUBLAS_STATUS_NOT_SUPPORTED ? BZ_INCOMPLETE : BZ_FAILED, "%s: %s", what,
                   cublasGetStatusString(status));
}

static void version(bz_buf *out)
{
    int v[3] = {0};
    for (int i = 0; i < 3; i++)
        cublasGetProperty((libraryPropertyType)i, &v[i]);
    bz_buf_printf(out, "cublas%d.%d.%d", v[0], v[1], v[2]);
}

/* ---- sessions ------------------------------------------------------------------------------- */

static void close_session(void *of)
{
    session *s = of;
    for (int i = 0; i < s->n_calls; i++) {
        cublas_lt_free(s->calls[i]);
        free(s->calls[i]);
    }
    free(s->calls);
    if (s->lt)
        cublasLtDestroy(s->lt);
    if (s->handle)
        cublasDestroy(s->handle);
    bz_cuda_operands_free(&s->operands);
    bz_cuda_close(&s->cuda);
    free(s);
}

static int open_session(const bz_job *job, void **of, bz_error *err)
{
    session *s = bz_alloc(1, sizeof *s);
    *s = (session){.job = job, .operands = {.job = job}};
    if (bz_cuda_open(&s->cuda, job->setting, err)) {
        free(s);
        return -1;
    }
    cublasStatus_t status = cublasCreate(&s->handle);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetStream(s->handle, s->cuda.stream);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtCreate(&s->lt);
    if (status != CUBLAS_STATUS_SUCCESS) {
        close_session(s);
        return bz_cublas_failed(err, "opening cuBLAS", status);
    }
    *of = s;
    return 0;
}

/* ---- variants ------------------------------------------------------------------------------- */

static call *offer(session *s, const call *like, bz_variant_list *list, const char *layout, const char *math,
                   const char *name, bool chosen)
{
    call *c = bz_alloc(1, sizeof *c);
    *c = *like;
    s->calls = bz_realloc(s->calls, (size_t)s->n_calls + 1, sizeof *s->calls);
    s->calls[s->n_calls++] = c;
    bz_variant *v = bz_variant_add(list, &bz_backend_module, s, layout, math);
    v->index = s->n_calls - 1;
    v->chosen = chosen;
    snprintf(v->algorithm, sizeof v->algorithm, "%s", name);
    return c;
}

/* cublasGemmEx knows no post-operations; cuBLASLt has those that are an epilogue. */
static int enumerate(void *of, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    session *s = of;
    const bz_problem *p = s->job->problem;
    call like = {0};
    cublasLtMatmulHeuristicResult_t proposal[MAX_PROPOSALS];
    if (strcmp(layout, "plain") != 0)
        return bz_fail(why, BZ_INCOMPLETE, "cuBLAS takes matrices as they lie (layout plain)");
    if (cublas_product(s->job, &like.p, why) || cublas_types(s->job, math, &like, why))
        return -1;
    if (!cublas_epilogue(p, &like.epilogue))
        return bz_fail(why, BZ_INCOMPLETE, "cuBLAS has a bias, ReLU and the GELU by tanh behind a product, no more");
    if (!p->post[0].fn) {
        bool batched = like.p.batch > 1;
        like.form = batched ? GEMM_BATCHED : GEMM_EX;
        offer(s, &like, list, layout, math, batched ? "gemm_strided_batched_ex" : "gemm_ex", true);
        like.form = GEMV;
        if (p->kind == BZ_PROBLEM_GEMV && (p->dtype == BZ_F32 || p->dtype == BZ_F64) && !strcmp(math, "default"))
            offer(s, &like, list, layout, math, "gemv", true);
    }
    like.form = LT;
    /* the bias has no place yet, but the choice depends on there being one */
    like.bias = like.p.bias >= 0 ? s : NULL;
    int n = cublas_lt_propose(s, &like, proposal);
    like.bias = NULL;
    for (int i = 0; i < n; i++) {
        char name[160] = "lt";
        cublas_lt_name(&proposal[i], name, sizeof name);
        call *c = offer(s, &like, list, layout, math, name, !i);
        c->proposal = proposal[i];
    }
    return list->n ? 0 : bz_fail(why, BZ_INCOMPLETE, "cuBLASLt proposes no algorithm for it");
}

static int upload(session *s, int operand, bz_dtype type, void **data, bz_error *err)
{
    bz_cuda_layout layout = bz_cuda_plain(&s->job->operand[operand]);
    layout.dtype = type;
    return bz_cuda_operand_get(&s->operands, operand, &layout, data, err);
}

static cublasStatus_t run(session *s, const call *c)
{
    static const float ONE = 1, ZERO = 0;
    static const double ONE_D = 1, ZERO_D = 0;
    static const int32_t ONE_I = 1, ZERO_I = 0;
    bool f64 = c->scale == CUDA_R_64F, whole = c->scale == CUDA_R_32I;
    const void *one = f64 ? (const void *)&ONE_D : whole ? (const void *)&ONE_I : (const void *)&ONE;
    const void *zero = f64 ? (const void *)&ZERO_D : whole ? (const void *)&ZERO_I : (const void *)&ZERO;
    const product *p = &c->p;
    cublasOperation_t left = p->turn_left ? CUBLAS_OP_T : CUBLAS_OP_N,
                      right = p->turn_right ? CUBLAS_OP_T : CUBLAS_OP_N;
    switch (c->form) {
    case GEMM_EX:
        return cublasGemmEx(s->handle, left, right, p->m, p->n, p->k, one, c->left, c->type, p->ld_left, c->right,
                            c->type, p->ld_right, zero, c->y, c->type_y, p->ld_y, c->compute, CUBLAS_GEMM_DEFAULT);
    case GEMM_BATCHED:
        return cublasGemmStridedBatchedEx(s->handle, left, right, p->m, p->n, p->k, one, c->left, c->type, p->ld_left,
                                          p->step_left, c->right, c->type, p->ld_right, p->step_right, zero, c->y,
                                          c->type_y, p->ld_y, p->step_y, p->batch, c->compute, CUBLAS_GEMM_DEFAULT);
    case GEMV: { /* the matrix is `right`: it is turned unless it was asked for turned */
        int rows = p->ld_right, columns = p->turn_right ? p->k : p->n;
        cublasOperation_t op = p->turn_right ? CUBLAS_OP_N : CUBLAS_OP_T;
        if (f64)
            return cublasDgemv(s->handle, op, rows, columns, one, c->right, p->ld_right, c->left, 1, zero, c->y, 1);
        return cublasSgemv(s->handle, op, rows, columns, one, c->right, p->ld_right, c->left, 1, zero, c->y, 1);
    }
    default:
        return cublas_lt_run(s, (call *)c);
    }
}

static int prepare(bz_variant *v, bz_error *err)
{
    session *s = v->session;
    call *c = s->calls[v->index];
    const bz_problem *p = s->job->problem;
    size_t workspace = c->form == LT ? c->proposal.workspaceSize : 0;
    if (upload(s, c->p.left, s->job->operand[c->p.left].dtype, &c->left, err) ||
        upload(s, c->p.right, s->job->operand[c->p.right].dtype, &c->right, err) ||
        upload(s, c->p.y, p->dtype_y, &c->y, err) ||
        (c->p.bias >= 0 && upload(s, c->p.bias, p->dtype_y, &c->bias, err)) ||
        bz_cuda_workspace(&s->cuda, workspace, err))
        return -1;
    cublasStatus_t status = c->form == LT ? cublas_lt_describe(c) : CUBLAS_STATUS_SUCCESS;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = run(s, c); /* only running tells what the library supports */
    if (status != CUBLAS_STATUS_SUCCESS)
        return bz_cublas_failed(err, "the first call", status);
    if (bz_cuda_wait(&s->cuda))
        return bz_fail(err, BZ_FAILED, "the device failed in the first call");
    v->workspace = (double)workspace;
    v->timing = bz_cuda_timing(&s->cuda, &c->pace);
    v->state = c;
    return 0;
}

/* cuda's clock calls with one pointer. */
typedef struct both {
    session *s;
    const call *c;
} both;

static int run_call(void *context)
{
    const both *b = context;
    return run(b->s, b->c) == CUBLAS_STATUS_SUCCESS ? 0 : -1;
}

static int execute(bz_variant *v, int copy)
{
    session *s = v->session;
    (void)copy; /* one copy: cold means that the device's cache is flushed */
    return run_call(&(both){s, s->calls[v->index]});
}

static int wait_for_all(bz_variant *v)
{
    session *s = v->session;
    return bz_cuda_wait(&s->cuda);
}

static int measure(bz_variant *v, int64_t n, int first_copy, double *seconds)
{
    session *s = v->session;
    (void)first_copy;
    call *c = v->state;
    int result = bz_cuda_measure(&s->cuda, &c->pace, run_call, &(both){s, c}, n, seconds);
    v->timing = bz_cuda_timing(&s->cuda, &c->pace);
    return result;
}

static bool throttled(void *of)
{
    session *s = of;
    bool seen = s->cuda.throttled;
    s->cuda.throttled = false;
    return seen;
}

static bz_cuda_layout result_layout(const session *s)
{
    return bz_cuda_plain(&s->job->operand[s->job->n_operands - 1]);
}

static int poison(bz_variant *v)
{
    session *s = v->session;
    bz_cuda_layout layout = result_layout(s);
    return bz_cuda_operand_poison(&s->cuda, &layout, s->calls[v->index]->y);
}

static int read_result(bz_variant *v, float *values, bz_error *err)
{
    session *s = v->session;
    bz_cuda_layout layout = result_layout(s);
    return bz_cuda_operand_read(&s->cuda, &s->job->operand[s->job->n_operands - 1], &layout, s->calls[v->index]->y,
                                values, err);
}

static void release(bz_variant *v)
{
    v->state = NULL; /* operands and descriptors are the session's */
}

const bz_backend bz_backend_module = {
    .name = "cublas",
    .timing = "device",
    .smallest = "gemm m=1 n=1 k=1 dtype=f32",
    .version = version,
    .open = open_session,
    .enumerate = enumerate,
    .prepare = prepare,
    .execute = execute,
    .wait = wait_for_all,
    .measure = measure,
    .throttled = throttled,
    .device = bz_cuda_identify,
    .poison = poison,
    .read = read_result,
    .release = release,
    .close = close_session,
};
