/* The cuBLAS backend: the table of ways, sessions, variants, execution. */
#include "runtime/cublas/cublas.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern __attribute__((visibility("default"))) const bz_backend bz_backend_module;

static const way WAYS[] = {
    {"gemm_ex", cublas_fits_gemm, cublas_enumerate_gemm, NULL, cublas_run_gemm, false},
    {"gemm_strided_batched_ex", cublas_fits_strided, cublas_enumerate_gemm, NULL, cublas_run_strided, false},
    {"gemm_batched_ex", cublas_fits_pointers, cublas_enumerate_gemm, cublas_prepare_pointers, cublas_run_pointers,
     false},
    {"gemm_grouped_batched_ex", cublas_fits_grouped, cublas_enumerate_grouped, cublas_prepare_pointers,
     cublas_run_grouped, false},
    {"gemv", cublas_fits_gemv, cublas_enumerate_gemv, NULL, cublas_run_gemv, false},
    {"lt", cublas_fits_lt, cublas_enumerate_lt, NULL, cublas_run_lt, true},
    {"sparselt", cublas_fits_sparse, cublas_enumerate_sparse, cublas_prepare_sparse, cublas_run_sparse, true},
};

/* What the library takes for itself on current devices. It is given this much, so that it is counted. */
#define HANDLE_WORKSPACE ((size_t)32 << 20)

static int cublas_failed(bz_error *err, const char *what, cublasStatus_t status)
{
    bool unsupported = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH;
    return bz_fail(err, unsupported ? BZ_INCOMPLETE : BZ_FAILED, "%s: %s (%s)", what, cublasGetStatusString(status),
                   cublasGetStatusName(status));
}

static void version(bz_buf *out)
{
    int v[3] = {0};
    for (int i = 0; i < 3; i++) /* libraryPropertyType: major, minor, patch */
        cublasGetProperty((libraryPropertyType)i, &v[i]);
    bz_buf_printf(out, "cublas%d.%d.%d", v[0], v[1], v[2]);
}

static void close_session(void *of)
{
    session *s = of;
    for (int i = 0; i < s->n_plans; i++)
        cublas_lt_free(s->plans[i]);
    for (int i = 0; i < s->n_calls; i++) {
        for (int k = 0; k < 3; k++)
            bz_cuda_free(s->calls[i]->pointer[k]);
        if (s->calls[i]->sparse)
            cublas_sparse_free(s->calls[i]->sparse);
        free(s->calls[i]);
    }
    for (int i = 0; i < s->n_products; i++)
        cublas_product_free(&s->product[i].p);
    if (s->lt && !s->cuda.borrowed)
        cublasLtDestroy(s->lt);
    if (s->handle && !s->cuda.borrowed)
        cublasDestroy(s->handle);
    bz_cuda_operands_free(&s->operands);
    bz_cuda_free(s->scale);
    bz_cuda_free(s->blocks);
    bz_cuda_close(&s->cuda);
    free(s->plans);
    free(s->calls);
    free(s);
}

static void close_handle(void *handle)
{
    cublasDestroy(handle);
}

static void close_lt(void *handle)
{
    cublasLtDestroy(handle);
}

/* A session has handles of its own; in a replay, all sessions of a stream share them. */
static cublasStatus_t open_handles(session *s)
{
    static const char LT = 0; /* whose address tells one from the other */
    bz_cuda_stream *shared = s->job->stream;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    s->handle = shared ? bz_cuda_shared(shared, &bz_backend_module) : NULL;
    s->lt = shared ? bz_cuda_shared(shared, &LT) : NULL;
    if (s->handle)
        return s->lt ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
    status = cublasCreate(&s->handle);
    if (status == CUBLAS_STATUS_SUCCESS && shared)
        bz_cuda_share(shared, &bz_backend_module, s->handle, close_handle);
    status = status ? status : cublasLtCreate(&s->lt);
    if (status == CUBLAS_STATUS_SUCCESS && shared)
        bz_cuda_share(shared, &LT, s->lt, close_lt);
    return status == CUBLAS_STATUS_SUCCESS ? cublasSetStream(s->handle, s->cuda.stream) : status;
}

static int open_session(const bz_job *job, void **of, bz_error *err)
{
    session *s = bz_alloc(1, sizeof *s);
    *s = (session){.job = job, .operands = {.job = job}};
    if (bz_cuda_open_for(&s->cuda, job, err)) {
        free(s);
        return -1;
    }
    cudaDeviceGetAttribute(&s->major, cudaDevAttrComputeCapabilityMajor, s->cuda.device);
    cublasStatus_t status = open_handles(s);
    if (status != CUBLAS_STATUS_SUCCESS) {
        close_session(s);
        return cublas_failed(err, "opening cuBLAS", status);
    }
    *of = s;
    return 0;
}

/* The workspace is shared and moves when it grows; the handle gets as much of it as it was counted for. */
static cublasStatus_t give_workspace(session *s)
{
    size_t size = s->cuda.workspace_size < HANDLE_WORKSPACE ? s->cuda.workspace_size : HANDLE_WORKSPACE;
    if (s->workspace == s->cuda.workspace && s->workspace_size == size)
        return CUBLAS_STATUS_SUCCESS;
    s->workspace = s->cuda.workspace;
    s->workspace_size = size;
    return cublasSetWorkspace(s->handle, s->workspace, size);
}

call *cublas_offer(const way *w, session *s, const product *p, const types *t, const char *layout, const char *math,
                   const char *algorithm, bool chosen, bz_variant_list *list)
{
    BZ_ROOM(s->calls, s->n_calls);
    call *c = s->calls[s->n_calls] = bz_alloc(1, sizeof *c);
    *c = (call){.way = w, .s = s, .p = p, .t = t, .algorithm = CUBLAS_GEMM_DEFAULT};
    c->alpha = cublas_scalar(t->scale, bz_problem_scale(s->job->problem));
    c->beta = cublas_scalar(t->scale, p->other.operand >= 0);
    if (!w->own_workspace)
        c->workspace = s->cuda.workspace_limit < HANDLE_WORKSPACE ? s->cuda.workspace_limit : HANDLE_WORKSPACE;
    bz_variant *v = bz_variant_add(list, &bz_backend_module, s, layout, math);
    v->index = s->n_calls++;
    v->chosen = chosen;
    snprintf(v->algorithm, sizeof v->algorithm, "%s", algorithm);
    return c;
}

/* The problem in a layout as a product; the same for all math modes. */
static const product *find_product(session *s, const char *layout, bool folded, bz_error *why)
{
    for (int i = 0; i < s->n_products; i++)
        if (!strcmp(s->product[i].layout, layout) && s->product[i].p.folded == folded)
            return &s->product[i].p;
    if (s->n_products == CUBLAS_MOST_PRODUCTS ||
        cublas_describe(s->job->problem, s->job->operand, s->job->n_operands, !strcmp(layout, "packed"), folded,
                        &s->product[s->n_products].p, why))
        return NULL;
    snprintf(s->product[s->n_products].layout, sizeof s->product->layout, "%s", layout);
    return &s->product[s->n_products++].p;
}

static int enumerate(void *of, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    session *s = of;
    const bz_problem *problem = s->job->problem;
    cublasLtEpilogue_t epilogue;
    bool other;
    int before = list->n;
    if (strcmp(layout, "plain") != 0 && strcmp(layout, "packed") != 0)
        return bz_fail(why, BZ_INCOMPLETE, "cuBLAS takes matrices as they lie (layouts plain and packed)");
    if (!cublas_epilogue(problem, &epilogue, &other))
        return bz_fail(why, BZ_INCOMPLETE, "cuBLASLt has no epilogue that computes these post-operations");
    if (!cublas_types(problem, math, NULL))
        return bz_fail(why, BZ_INCOMPLETE, "cuBLAS has no product of these types in math mode %s", math);
    for (int folded = 0; folded < 2; folded++) {
        const product *p = find_product(s, layout, folded, folded ? NULL : why);
        for (const types *t = NULL; p && (t = cublas_types(problem, math, t));)
            for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++)
                if (WAYS[i].fits(p, t))
                    WAYS[i].enumerate(&WAYS[i], s, p, t, layout, math, list);
    }
    if (list->n == before && !why->code)
        bz_fail(why, BZ_INCOMPLETE, "cuBLAS has no call for this product");
    return list->n > before ? 0 : -1;
}

int cublas_upload(session *s, matrix *m, bz_error *err)
{
    bool bound = m->operand >= 0 && s->job->placed && !s->job->value[m->operand];
    return m->operand < 0 || bound ? 0 : bz_cuda_operand_get(&s->operands, m->operand, &m->layout, &m->data, err);
}

static cublasStatus_t run(call *c)
{
    cublasStatus_t status = c->lt ? CUBLAS_STATUS_SUCCESS : give_workspace(c->s);
    if (c->s->job->placed && c->way->prepare && c->way->prepare(c, NULL)) /* where operands lie is known by now */
        return CUBLAS_STATUS_ALLOC_FAILED;
    return status == CUBLAS_STATUS_SUCCESS ? c->way->execute(c) : status;
}

static int run_call(void *context)
{
    return run(context) == CUBLAS_STATUS_SUCCESS ? 0 : -1;
}

/* One call is made here: only running tells what the library supports. Not in a replay, where operands have no place
 * yet: its first run says the same. */
static int prepare(bz_variant *v, bz_error *err)
{
    session *s = v->session;
    call *c = s->calls[v->index];
    matrix *all[CUBLAS_MATRICES];
    if (c->refused)
        return cublas_failed(err, "asking for algorithms", c->refused);
    cublas_matrices(c, all);
    for (int i = 0; i < CUBLAS_MATRICES; i++)
        if (cublas_upload(s, all[i], err))
            return -1;
    c->run = (bz_cuda_run){&s->cuda,           run_call, &s->job->operand[c->p->result.operand], &c->p->result.layout,
                           &c->p->result.data, {0}};
    v->workspace = (double)c->workspace;
    if (s->job->placed) {
        v->state = c;
        return 0;
    }
    if (c->way->prepare && c->way->prepare(c, err))
        return -1;
    v->workspace = (double)c->workspace;
    if (bz_cuda_workspace(&s->cuda, c->workspace, err))
        return -1;
    cublasStatus_t status = run(c);
    if (status != CUBLAS_STATUS_SUCCESS) {
        bz_cuda_settle(&s->cuda);
        return cublas_failed(err, "the first call", status);
    }
    return bz_cuda_run_ready(v, &c->run, err);
}

/* Besides the result what is kept, where something is. */
static int poison(bz_variant *v)
{
    session *s = v->session;
    const matrix *kept = &((call *)v->state)->p->kept;
    bool bad = kept->operand >= 0 && bz_cuda_operand_poison(&s->cuda, &kept->layout, kept->data);
    return bad ? -1 : bz_cuda_run_poison(v);
}

static int read_operand(bz_variant *v, int operand, float *values, bz_error *err)
{
    session *s = v->session;
    const matrix *m = cublas_find(v->state, operand);
    return bz_cuda_operand_read(&s->cuda, &s->job->operand[operand], &m->layout, m->data, values, err);
}

const bz_backend bz_backend_module = {
    .name = "cublas",
    .timing = "device",
    .smallest = "gemm m=1 n=1 k=1 dtype=f32",
    .version = version,
    .open = open_session,
    .enumerate = enumerate,
    .prepare = prepare,
    .execute = bz_cuda_run_execute,
    .wait = bz_cuda_run_wait,
    .measure = bz_cuda_run_measure,
    .trace = bz_cuda_trace,
    .count = bz_cuda_run_count,
    .clock = bz_cuda_state,
    .device = bz_cuda_identify,
    .rates = bz_cuda_rates,
    .lock = bz_cuda_lock,
    .poison = poison,
    .read = bz_cuda_run_read,
    .read_operand = read_operand,
    .probe = bz_cuda_run_probe,
    .release = bz_cuda_run_release,
    .close = close_session,
    .wants = cublas_wants,
    .bind = cublas_bind,
    .ops = &bz_cuda_ops,
};
