/* The CBLAS backend: products of matrices, as OpenBLAS (or whoever implements CBLAS) does them. */
#include "runtime/plain.h"

#include "base/arena.h"

#include <cblas.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

extern const bz_backend bz_backend_cblas;

/* A call of gemm for each matrix of the batch; gemv for a vector. */
typedef struct session {
    bz_plain plain;
    int64_t m, n, k, batch;
    bool transa, transb;
    int64_t *a_at, *b_at; /* [batch]: which matrix of the operand it is */
} session;

/* OpenBLAS says "OpenBLAS 0.3.21 …"; other implementations have no way to ask. */
static void version(bz_buf *out)
{
    char *(*config)(void) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "openblas_get_config");
    memcpy(&config, &symbol, sizeof config);
    const char *text = config ? config() : "";
    if (strncmp(text, "OpenBLAS ", 9) != 0) {
        bz_buf_puts(out, "cblas");
        return;
    }
    text += 9;
    bz_buf_puts(out, "openblas");
    bz_buf_put(out, text, strcspn(text, " "));
}

static void set_threads(int n)
{
    void (*set)(int) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    memcpy(&set, &symbol, sizeof set);
    if (set)
        set(n);
}

static void set_sizes(session *s, const bz_job *job)
{
    const bz_problem *p = job->problem;
    const bz_operand *y = &job->operand[job->n_operands - 1];
    s->batch = 1;
    if (p->kind == BZ_PROBLEM_GEMM) {
        s->m = p->gemm.m;
        s->n = p->gemm.n;
        s->k = p->gemm.k;
        s->batch = p->gemm.batch;
        s->transa = p->gemm.transa;
        s->transb = p->gemm.transb;
    } else if (p->kind == BZ_PROBLEM_GEMV) {
        s->m = p->gemv.m;
        s->n = 1;
        s->k = p->gemv.k;
        s->transa = p->gemv.trans;
    } else {
        s->m = y->dim[y->rank - 2];
        s->n = y->dim[y->rank - 1];
        s->k = p->matmul.a[y->rank - 1];
        s->transa = p->matmul.transa;
        s->transb = p->matmul.transb;
        s->batch = y->count / (s->m * s->n);
    }
    s->a_at = bz_alloc((size_t)s->batch, sizeof *s->a_at);
    s->b_at = bz_alloc((size_t)s->batch, sizeof *s->b_at);
    for (int64_t i = 0; i < s->batch; i++) {
        bool broadcast = p->kind == BZ_PROBLEM_MATMUL;
        s->a_at[i] = broadcast ? bz_broadcast_index(i, y->dim, p->matmul.a, y->rank - 2) : i;
        s->b_at[i] = broadcast ? bz_broadcast_index(i, y->dim, p->matmul.b, y->rank - 2) : i;
    }
}

static int open_session(const bz_job *job, void **of, bz_error *err)
{
    const bz_problem *p = job->problem;
    if (p->kind != BZ_PROBLEM_GEMM && p->kind != BZ_PROBLEM_GEMV && p->kind != BZ_PROBLEM_MATMUL)
        return bz_fail(err, BZ_INCOMPLETE, "CBLAS multiplies matrices only");
    if ((p->dtype != BZ_F32 && p->dtype != BZ_F64) || p->dtype_w != p->dtype || p->dtype_y != p->dtype)
        return bz_fail(err, BZ_INCOMPLETE, "CBLAS computes in f32 and f64 only");
    if (p->post[0].fn)
        return bz_fail(err, BZ_INCOMPLETE, "CBLAS has no post-operations");
    session *s = bz_alloc(1, sizeof *s);
    *s = (session){.plain = {.job = job}};
    set_threads(job->setting->threads);
    set_sizes(s, job);
    if (s->m > INT32_MAX || s->n > INT32_MAX || s->k > INT32_MAX) {
        free(s->a_at);
        free(s->b_at);
        free(s);
        return bz_fail(err, BZ_INCOMPLETE, "CBLAS counts with 32 bits");
    }
    *of = s;
    return 0;
}

static void close_session(void *of)
{
    session *s = of;
    bz_plain_free(&s->plain);
    free(s->a_at);
    free(s->b_at);
    free(s);
}

static int enumerate(void *of, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    session *s = of;
    if (strcmp(layout, "plain") != 0)
        return bz_fail(why, BZ_INCOMPLETE, "CBLAS takes matrices as they lie (layout plain)");
    if (strcmp(math, "default") != 0)
        return bz_fail(why, BZ_INCOMPLETE, "CBLAS has no math modes");
    bz_variant *v = bz_variant_add(list, &bz_backend_cblas, s, layout, math);
    bool vector = s->plain.job->problem->kind == BZ_PROBLEM_GEMV;
    snprintf(v->algorithm, sizeof v->algorithm, "%s%s", s->plain.job->problem->dtype == BZ_F64 ? "d" : "s",
             vector ? "gemv" : "gemm");
    v->chosen = true;
    return 0;
}

static void gemv(const session *s, int copy)
{
    const bz_plain *p = &s->plain;
    int m = (int)s->m, k = (int)s->k;
    const void *x = bz_plain_at(p, 0, copy), *w = bz_plain_at(p, 1, copy);
    void *y = bz_plain_at(p, p->job->n_operands - 1, copy);
    CBLAS_TRANSPOSE t = s->transa ? CblasTrans : CblasNoTrans;
    int rows = s->transa ? k : m, columns = s->transa ? m : k;
    if (p->job->problem->dtype == BZ_F64)
        cblas_dgemv(CblasRowMajor, t, rows, columns, 1, w, columns, x, 1, 0, y, 1);
    else
        cblas_sgemv(CblasRowMajor, t, rows, columns, 1, w, columns, x, 1, 0, y, 1);
}

static int execute(bz_variant *v, int copy)
{
    const session *s = v->session;
    const bz_plain *p = &s->plain;
    if (p->job->problem->kind == BZ_PROBLEM_GEMV) {
        gemv(s, copy);
        return 0;
    }
    int m = (int)s->m, n = (int)s->n, k = (int)s->k, lda = s->transa ? m : k, ldb = s->transb ? k : n;
    CBLAS_TRANSPOSE ta = s->transa ? CblasTrans : CblasNoTrans, tb = s->transb ? CblasTrans : CblasNoTrans;
    for (int64_t i = 0; i < s->batch; i++) {
        if (p->job->problem->dtype == BZ_F64) {
            const double *a = bz_plain_at(p, 0, copy), *b = bz_plain_at(p, 1, copy);
            double *y = bz_plain_at(p, p->job->n_operands - 1, copy);
            cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a + s->a_at[i] * m * k, lda, b + s->b_at[i] * k * n, ldb, 0,
                        y + i * m * n, n);
        } else {
            const float *a = bz_plain_at(p, 0, copy), *b = bz_plain_at(p, 1, copy);
            float *y = bz_plain_at(p, p->job->n_operands - 1, copy);
            cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a + s->a_at[i] * m * k, lda, b + s->b_at[i] * k * n, ldb, 0,
                        y + i * m * n, n);
        }
    }
    return 0;
}

const bz_backend bz_backend_cblas = {
    .name = "cblas",
    .timing = "wall",
    .smallest = "gemm m=1 n=1 k=1 dtype=f32",
    .version = version,
    .open = open_session,
    .enumerate = enumerate,
    .execute = execute,
    .close = close_session,
    BZ_PLAIN_OPERANDS,
};
