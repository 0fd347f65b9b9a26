/* cublasGemmEx, its batched forms, and gemv. None of them does more than multiply: bias and functions are calls of
 * their own, or cuBLASLt's. */
#include "runtime/cublas/cublas.h"

#include "base/arena.h"

#include <stdio.h>
#include <string.h>

static cublasOperation_t operation(const matrix *m)
{
    return m->trans ? CUBLAS_OP_T : CUBLAS_OP_N;
}

static bool is_plain(const product *p, const types *t)
{
    return !t->lt_only && p->alone && !p->sizes;
}

bool cublas_fits_gemm(const product *p, const types *t)
{
    return is_plain(p, t) && p->batch == 1;
}

bool cublas_fits_strided(const product *p, const types *t)
{
    return is_plain(p, t) && p->batch > 1 && p->strided;
}

bool cublas_fits_pointers(const product *p, const types *t)
{
    return is_plain(p, t) && p->batch > 1 && !p->strided;
}

/* The numbered algorithms mean something to devices before compute capability 8.0 only: newer ones take them all for
 * the default. */
void cublas_enumerate_gemm(const way *w, session *s, const product *p, const types *t, const char *layout,
                           const char *math, bz_variant_list *list)
{
    static const struct {
        int first, last;
        const char *name;
        bool old;
    } ALGORITHMS[] = {
        {CUBLAS_GEMM_DEFAULT, CUBLAS_GEMM_DEFAULT, "", false},
#if CUBLAS_VERSION >= 130100
        {CUBLAS_GEMM_AUTOTUNE, CUBLAS_GEMM_AUTOTUNE, "+autotune", false},
#endif
        {CUBLAS_GEMM_ALGO0, CUBLAS_GEMM_ALGO23, "+algo", true},
        {CUBLAS_GEMM_ALGO0_TENSOR_OP, CUBLAS_GEMM_ALGO15_TENSOR_OP, "+tensor_algo", true},
    };
    char name[64], number[16];
    for (size_t i = 0; i < sizeof ALGORITHMS / sizeof *ALGORITHMS; i++) {
        if (ALGORITHMS[i].old ? s->major >= 8 : i && t->suffix[0])
            continue;
        for (int a = ALGORITHMS[i].first; a <= ALGORITHMS[i].last; a++) {
            snprintf(number, sizeof number, "%d", a - ALGORITHMS[i].first);
            snprintf(name, sizeof name, "%s%s%s%s%s", w->name, p->folded ? "+folded" : "", t->suffix,
                     ALGORITHMS[i].name, ALGORITHMS[i].old ? number : "");
            call *c = cublas_offer(w, s, p, t, layout, math, name, !i && !t->suffix[0], list);
            c->algorithm = (cublasGemmAlgo_t)a;
        }
    }
}

cublasStatus_t cublas_run_gemm(call *c)
{
    const product *p = c->p;
    const types *t = c->t;
    return cublasGemmEx(c->s->handle, operation(&p->left), operation(&p->right), (int)p->rows, (int)p->columns,
                        (int)p->depth, &c->alpha, p->left.data, t->left, (int)p->left.ld, p->right.data, t->right,
                        (int)p->right.ld, &c->beta, p->result.data, t->result, (int)p->rows, t->compute, c->algorithm);
}

cublasStatus_t cublas_run_strided(call *c)
{
    const product *p = c->p;
    const types *t = c->t;
    return cublasGemmStridedBatchedEx(c->s->handle, operation(&p->left), operation(&p->right), (int)p->rows,
                                      (int)p->columns, (int)p->depth, &c->alpha, p->left.data, t->left, (int)p->left.ld,
                                      p->left.step, p->right.data, t->right, (int)p->right.ld, p->right.step, &c->beta,
                                      p->result.data, t->result, (int)p->rows, p->result.step, (int)p->batch,
                                      t->compute, c->algorithm);
}

/* Where each matrix of the batch lies, for a batch that follows no stride. */
int cublas_prepare_pointers(call *c, bz_error *err)
{
    const matrix *all[] = {&c->p->left, &c->p->right, &c->p->result};
    size_t n = (size_t)c->p->batch;
    for (int k = 0; k < 3; k++) {
        size_t bytes = (size_t)bz_dtype_bits(all[k]->layout.dtype) / 8;
        if (c->pointer[k])
            continue;
        BZ_FREED char **list = bz_alloc(n, sizeof *list);
        for (size_t i = 0; i < n; i++) {
            int64_t number = all[k]->at ? all[k]->at[i] : (int64_t)i;
            list[i] = (char *)all[k]->data + (size_t)(number * all[k]->apart) * bytes;
        }
        int bad = bz_cuda_alloc(n * sizeof *list, (void **)&c->pointer[k], err) ||
                  bz_cuda_put(c->pointer[k], list, n * sizeof *list, "bringing pointers to the device", err);
        if (bad)
            return -1;
    }
    return 0;
}

cublasStatus_t cublas_run_pointers(call *c)
{
    const product *p = c->p;
    const types *t = c->t;
    return cublasGemmBatchedEx(c->s->handle, operation(&p->left), operation(&p->right), (int)p->rows, (int)p->columns,
                               (int)p->depth, &c->alpha, (const void *const *)c->pointer[0], t->left, (int)p->left.ld,
                               (const void *const *)c->pointer[1], t->right, (int)p->right.ld, &c->beta, c->pointer[2],
                               t->result, (int)p->rows, (int)p->batch, t->compute, c->algorithm);
}

bool cublas_fits_grouped(const product *p, const types *t)
{
    return p->sizes && !t->lt_only;
}

void cublas_enumerate_grouped(const way *w, session *s, const product *p, const types *t, const char *layout,
                              const char *math, bz_variant_list *list)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", w->name, t->suffix);
    cublas_offer(w, s, p, t, layout, math, name, !t->suffix[0], list);
}

/* Groups of one product each, which differ in their columns. */
cublasStatus_t cublas_run_grouped(call *c)
{
    const product *p = c->p;
    const types *t = c->t;
    enum { MOST = BZ_PROBLEM_PARTS };
    cublasOperation_t left[MOST], right[MOST];
    int rows[MOST], columns[MOST], depth[MOST], ld_left[MOST], ld_right[MOST], ones[MOST];
    size_t size = t->scale == CUDA_R_64F ? sizeof(double) : t->scale == CUDA_R_16F ? sizeof(uint16_t) : sizeof(float);
    char alpha[MOST * sizeof(scalar)], beta[MOST * sizeof(scalar)]; /* of the type of the scale, one behind the other */
    for (int64_t i = 0; i < p->batch; i++) {
        left[i] = operation(&p->left);
        right[i] = operation(&p->right);
        rows[i] = (int)p->rows;
        columns[i] = (int)p->sizes[i];
        depth[i] = (int)p->depth;
        ld_left[i] = (int)p->left.ld;
        ld_right[i] = (int)p->right.ld;
        ones[i] = 1;
        memcpy(alpha + (size_t)i * size, &c->alpha, size);
        memcpy(beta + (size_t)i * size, &c->beta, size);
    }
    return cublasGemmGroupedBatchedEx(c->s->handle, left, right, rows, columns, depth, alpha,
                                      (const void *const *)c->pointer[0], t->left, ld_left,
                                      (const void *const *)c->pointer[1], t->right, ld_right, beta, c->pointer[2],
                                      t->result, rows, (int)p->batch, ones, t->compute);
}

/* One of the result's dimensions is 1. The library has it for f32 and f64, whatever the math mode; its forms with fewer
 * bits are declared for C++ only, and other types are left to gemm with one column. */
bool cublas_fits_gemv(const product *p, const types *t)
{
    return is_plain(p, t) && (t->x == BZ_F32 || t->x == BZ_F64) && !t->suffix[0] && !strcmp(t->math, "default") &&
           p->batch == 1 && (p->columns == 1 || p->rows == 1);
}

void cublas_enumerate_gemv(const way *w, session *s, const product *p, const types *t, const char *layout,
                           const char *math, bz_variant_list *list)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", w->name, p->folded ? "+folded" : "");
    cublas_offer(w, s, p, t, layout, math, name, false, list)->matrix_right = p->columns != 1;
}

/* Where the matrix is the right operand, result = left · op(right) is a row, and op(right)ᵀ is to be multiplied.
 * Rows and columns are those of the matrix as it lies. */
cublasStatus_t cublas_run_gemv(call *c)
{
    const product *p = c->p;
    const matrix *a = c->matrix_right ? &p->right : &p->left, *x = c->matrix_right ? &p->left : &p->right;
    int length = (int)(c->matrix_right ? p->columns : p->rows), depth = (int)p->depth, ld = (int)a->ld;
    bool trans = a->trans != c->matrix_right;
    int rows = trans ? depth : length, columns = trans ? length : depth;
    cublasOperation_t op = trans ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (c->t->x == BZ_F64)
        return cublasDgemv(c->s->handle, op, rows, columns, &c->alpha.d, a->data, ld, x->data, 1, &c->beta.d,
                           p->result.data, 1);
    return cublasSgemv(c->s->handle, op, rows, columns, &c->alpha.f, a->data, ld, x->data, 1, &c->beta.f,
                       p->result.data, 1);
}
