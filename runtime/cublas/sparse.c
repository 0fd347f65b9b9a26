/* cuSPARSELt: products whose constant factor has two zeros in each four numbers along the depth (2:4), which are left out. The
 * library is loaded where it is; its few declarations stand here, since its header comes with it and is nowhere else. */
#include "runtime/cublas/cublas.h"

#include "base/arena.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Numbers of its enumerations since version 0.7. Before that, functions and compute types were others. */
enum { LEAST_VERSION = 700, HALF_ZERO = 0, COMPUTE_F32 = 2, BY_COLUMNS = 1, ALIGNED = 16, USUAL = 0 };
enum { CONFIG_ID = 0, CONFIG_MAX_ID = 1 };

/* The caller has room for what the library keeps: 512 to 11024 bytes, by version. */
typedef struct opaque {
    _Alignas(16) unsigned char room[16384];
} opaque;

typedef struct library {
    void *of;
    int (*init)(opaque *handle), (*destroy)(const opaque *handle), (*version)(const opaque *handle, int *version);
    int (*dense)(const opaque *handle, opaque *matrix, int64_t rows, int64_t columns, int64_t ld, uint32_t aligned,
                 cudaDataType_t type, int order);
    int (*structured)(const opaque *handle, opaque *matrix, int64_t rows, int64_t columns, int64_t ld, uint32_t aligned,
                      cudaDataType_t type, int order, int sparsity);
    int (*forget_matrix)(const opaque *matrix);
    int (*product)(const opaque *handle, opaque *product, int op_a, int op_b, const opaque *a, const opaque *b,
                   const opaque *c, const opaque *d, int compute);
    int (*select)(const opaque *handle, opaque *selection, const opaque *product, int algorithm);
    int (*set)(const opaque *handle, opaque *selection, int what, const void *value, size_t size);
    int (*get)(const opaque *handle, const opaque *selection, int what, void *value, size_t size);
    int (*plan)(const opaque *handle, opaque *plan, const opaque *product, const opaque *selection);
    int (*forget_plan)(const opaque *plan), (*workspace)(const opaque *handle, const opaque *plan, size_t *size);
    int (*sizes)(const opaque *handle, const opaque *plan, size_t *compressed, size_t *buffer);
    int (*compress)(const opaque *handle, const opaque *plan, const void *from, void *to, void *buffer,
                    cudaStream_t stream);
    int (*multiply)(const opaque *handle, const opaque *plan, const void *alpha, const void *a, const void *b,
                    const void *beta, const void *c, void *d, void *workspace, cudaStream_t *streams, int n);
} library;

struct sparse_call {
    library lib;
    opaque handle, left, right, result, product, selection, plan;
    int made; /* how many of these, in this order */
    int version, algorithms;
    void *compressed;
};

static bool load(library *l)
{
    const bz_cuda_symbol SYMBOLS[] = {
        {"cusparseLtInit", &l->init},
        {"cusparseLtDestroy", &l->destroy},
        {"cusparseLtGetVersion", &l->version},
        {"cusparseLtDenseDescriptorInit", &l->dense},
        {"cusparseLtStructuredDescriptorInit", &l->structured},
        {"cusparseLtMatDescriptorDestroy", &l->forget_matrix},
        {"cusparseLtMatmulDescriptorInit", &l->product},
        {"cusparseLtMatmulAlgSelectionInit", &l->select},
        {"cusparseLtMatmulAlgSetAttribute", &l->set},
        {"cusparseLtMatmulAlgGetAttribute", &l->get},
        {"cusparseLtMatmulPlanInit", &l->plan},
        {"cusparseLtMatmulPlanDestroy", &l->forget_plan},
        {"cusparseLtMatmulGetWorkspace", &l->workspace},
        {"cusparseLtSpMMACompressedSize", &l->sizes},
        {"cusparseLtSpMMACompress", &l->compress},
        {"cusparseLtMatmul", &l->multiply},
    };
    l->of = dlopen("libcusparseLt.so.0", RTLD_NOW | RTLD_LOCAL);
    return l->of && !bz_cuda_symbols(l->of, SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS);
}

void cublas_sparse_free(struct sparse_call *s)
{
    const opaque *described[] = {&s->left, &s->right, &s->result};
    if (s->made > 6)
        s->lib.forget_plan(&s->plan);
    for (int i = 0; i < 3; i++)
        if (s->made > i + 1)
            s->lib.forget_matrix(described[i]);
    if (s->made)
        s->lib.destroy(&s->handle);
    bz_cuda_free(s->compressed);
    free(s); /* the library stays loaded: it may have threads */
}

/* Makes the next one, unless one before it failed. */
#define MAKE(s, n, call_) ((void)((s)->made == (n) && !(call_) && (s)->made++))

/* Operands as cublas_describe has them: columns one behind the other, and the constant one turned. NULL where the library is not
 * there or refuses. */
static struct sparse_call *begin(const product *p, const types *t)
{
    struct sparse_call *s = bz_zeroed(1, sizeof *s);
    const library *l = &s->lib;
    if (!load(&s->lib)) {
        free(s);
        return NULL;
    }
    MAKE(s, 0, l->init(&s->handle));
    if (s->made && (l->version(&s->handle, &s->version) || s->version < LEAST_VERSION)) {
        cublas_sparse_free(s);
        return NULL;
    }
    MAKE(s, 1,
         l->structured(&s->handle, &s->left, p->depth, p->rows, p->left.ld, ALIGNED, t->left, BY_COLUMNS, HALF_ZERO));
    MAKE(s, 2, l->dense(&s->handle, &s->right, p->depth, p->columns, p->right.ld, ALIGNED, t->right, BY_COLUMNS));
    MAKE(s, 3, l->dense(&s->handle, &s->result, p->rows, p->columns, p->result.ld, ALIGNED, t->result, BY_COLUMNS));
    MAKE(s, 4, l->product(&s->handle, &s->product, 1, 0, &s->left, &s->right, &s->result, &s->result, COMPUTE_F32));
    MAKE(s, 5, l->select(&s->handle, &s->selection, &s->product, USUAL));
    if (s->made == 6 && !l->get(&s->handle, &s->selection, CONFIG_MAX_ID, &s->algorithms, sizeof s->algorithms))
        return s;
    cublas_sparse_free(s);
    return NULL;
}

bool cublas_fits_sparse(const product *p, const types *t)
{
    bool half = t->left == CUDA_R_16F || t->left == CUDA_R_16BF;
    return half && t->compute == CUBLAS_COMPUTE_32F && p->alone && p->batch == 1 && p->left.trans && !p->right.trans;
}

/* Where the library is not there, one variant is left to say so. */
void cublas_enumerate_sparse(const way *w, session *s, const product *p, const types *t, const char *layout,
                             const char *math, bz_variant_list *list)
{
    char name[64];
    if (!s->job->problem->gemm.sparse)
        return;
    struct sparse_call *first = begin(p, t);
    int n = first && first->algorithms < CUBLAS_MOST_ALGORITHMS ? first->algorithms : 0,
        version = first ? first->version : 0;
    if (first)
        cublas_sparse_free(first);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s:version=%d.%d.%d,algo=%d", w->name, version / 1000, version / 100 % 10,
                 version % 100, i);
        cublas_offer(w, s, p, t, layout, math, name, false, list)->index = i;
    }
    if (!n)
        cublas_offer(w, s, p, t, layout, math, w->name, false, list)->refused = CUBLAS_STATUS_NOT_SUPPORTED;
}

/* The constant factor is compressed once, ahead of time. */
int cublas_prepare_sparse(call *c, bz_error *err)
{
    struct sparse_call *s = c->sparse = c->sparse ? c->sparse : begin(c->p, c->t);
    size_t size = 0, buffer_size = 0;
    void *buffer = NULL;
    if (!s)
        return bz_fail(err, BZ_INCOMPLETE, "cuSPARSELt is gone");
    const library *l = &s->lib;
    if (s->made == 6 && l->set(&s->handle, &s->selection, CONFIG_ID, &c->index, sizeof c->index))
        return bz_fail(err, BZ_INCOMPLETE, "cuSPARSELt has no such algorithm here");
    MAKE(s, 6, l->plan(&s->handle, &s->plan, &s->product, &s->selection));
    if (s->made < 7 || l->workspace(&s->handle, &s->plan, &c->workspace) ||
        l->sizes(&s->handle, &s->plan, &size, &buffer_size))
        return bz_fail(err, BZ_INCOMPLETE, "cuSPARSELt makes no plan");
    if (bz_cuda_alloc(size, &s->compressed, err) || bz_cuda_alloc(buffer_size, &buffer, err))
        return -1;
    int status = l->compress(&s->handle, &s->plan, c->p->left.data, s->compressed, buffer, c->s->cuda.stream);
    int rc = status ? bz_fail(err, BZ_FAILED, "cuSPARSELt compresses nothing: status %d", status)
                    : bz_cuda_wait(&c->s->cuda);
    bz_cuda_free(buffer);
    return rc;
}

cublasStatus_t cublas_run_sparse(call *c)
{
    struct sparse_call *s = c->sparse;
    int status = s->lib.multiply(&s->handle, &s->plan, &c->alpha, s->compressed, c->p->right.data, &c->beta,
                                 c->p->result.data, c->p->result.data, c->s->cuda.workspace, &c->s->cuda.stream, 1);
    return status ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
