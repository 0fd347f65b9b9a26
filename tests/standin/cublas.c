/* A stand-in for cuBLAS and cuBLASLt: calls recorded; products in f32 and f64 are computed, so
 * that the order of factors, the leading dimensions and the steps can be checked by the result. The heuristic proposes two algorithms. */
#include "tests/standin/record.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <string.h>

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "an error of the stand-in";
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    *value = (int)type;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *h)
{
    *h = standin_new("cublas");
    standin_record("cublasCreate %s", standin_name(*h));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t h)
{
    standin_record("cublasDestroy %s", standin_name(h));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t stream)
{
    standin_record("cublasSetStream %s %s", standin_name(h), standin_name(stream));
    return CUBLAS_STATUS_SUCCESS;
}

static char op(cublasOperation_t o)
{
    return o == CUBLAS_OP_N ? 'n' : 't';
}

static double value_at(const void *a, cudaDataType type, int64_t i)
{
    return type == CUDA_R_64F ? ((const double *)a)[i] : (double)((const float *)a)[i];
}

/* Columns first, as the library counts. */
static void compute_product(bool ta, bool tb, int m, int n, int k, const void *a, int lda, const void *b, int ldb,
                            void *c, int ldc, cudaDataType type)
{
    standin_computed = type == CUDA_R_32F || type == CUDA_R_64F;
    for (int j = 0; standin_computed && j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += value_at(a, type, ta ? l + (int64_t)i * lda : i + (int64_t)l * lda) *
                       value_at(b, type, tb ? j + (int64_t)l * ldb : l + (int64_t)j * ldb);
            if (type == CUDA_R_64F)
                ((double *)c)[i + (int64_t)j * ldc] = sum;
            else
                ((float *)c)[i + (int64_t)j * ldc] = (float)sum;
        }
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType at, int lda, const void *b, cudaDataType bt,
                            int ldb, const void *beta, void *c, cudaDataType ct, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algo)
{
    (void)h, (void)alpha, (void)beta;
    standin_record("cublasGemmEx %c%c m=%d n=%d k=%d %s:%d,%d %s:%d,%d -> %s:%d,%d compute=%d algo=%d", op(ta), op(tb),
                   m, n, k, standin_name(a), (int)at, lda, standin_name(b), (int)bt, ldb, standin_name(c), (int)ct, ldc,
                   (int)compute, (int)algo);
    compute_product(ta == CUBLAS_OP_T, tb == CUBLAS_OP_T, m, n, k, a, lda, b, ldb, c, ldc, at);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                                          int k, const void *alpha, const void *a, cudaDataType at, int lda,
                                          long long sa, const void *b, cudaDataType bt, int ldb, long long sb,
                                          const void *beta, void *c, cudaDataType ct, int ldc, long long sc, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    (void)h, (void)alpha, (void)beta;
    standin_record("cublasGemmStridedBatchedEx %c%c m=%d n=%d k=%d %s:%d,%d,%lld %s:%d,%d,%lld -> %s:%d,%d,%lld",
                   op(ta), op(tb), m, n, k, standin_name(a), (int)at, lda, sa, standin_name(b), (int)bt, ldb, sb,
                   standin_name(c), (int)ct, ldc, sc);
    standin_record("    batch=%d compute=%d algo=%d", batch, (int)compute, (int)algo);
    size_t size = at == CUDA_R_64F ? 8 : 4;
    for (int64_t i = 0; i < batch && (at == CUDA_R_64F || at == CUDA_R_32F); i++)
        compute_product(ta == CUBLAS_OP_T, tb == CUBLAS_OP_T, m, n, k, (const char *)a + (size_t)(i * sa) * size, lda,
                        (const char *)b + (size_t)(i * sb) * size, ldb, (char *)c + (size_t)(i * sc) * size, ldc, at);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemv_v2(cublasHandle_t h, cublasOperation_t t, int m, int n, const float *alpha, const float *a,
                              int lda, const float *x, int incx, const float *beta, float *y, int incy)
{
    (void)h;
    standin_record("cublasSgemv %c m=%d n=%d %g*%s,%d %s,%d beta=%g -> %s,%d", op(t), m, n, (double)*alpha,
                   standin_name(a), lda, standin_name(x), incx, (double)*beta, standin_name(y), incy);
    compute_product(t == CUBLAS_OP_T, false, t == CUBLAS_OP_T ? n : m, 1, t == CUBLAS_OP_T ? m : n, a, lda, x,
                    t == CUBLAS_OP_T ? m : n, y, t == CUBLAS_OP_T ? n : m, CUDA_R_32F);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDgemv_v2(cublasHandle_t h, cublasOperation_t t, int m, int n, const double *alpha, const double *a,
                              int lda, const double *x, int incx, const double *beta, double *y, int incy)
{
    (void)h;
    standin_record("cublasDgemv %c m=%d n=%d %g*%s,%d %s,%d beta=%g -> %s,%d", op(t), m, n, *alpha, standin_name(a),
                   lda, standin_name(x), incx, *beta, standin_name(y), incy);
    compute_product(t == CUBLAS_OP_T, false, t == CUBLAS_OP_T ? n : m, 1, t == CUBLAS_OP_T ? m : n, a, lda, x,
                    t == CUBLAS_OP_T ? m : n, y, t == CUBLAS_OP_T ? n : m, CUDA_R_64F);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- cuBLASLt ------------------------------------------------------------------------------- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
    *h = standin_new("lt");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    (void)h;
    return CUBLAS_STATUS_SUCCESS;
}

/* The header creates these through functions that set up opaque memory. */
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t scale)
{
    *d = standin_new("product");
    standin_record("cublasLtMatmulDescCreate %s compute=%d scale=%d", standin_name(*d), (int)compute, (int)scale);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    (void)d;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a, const void *v,
                                              size_t size)
{
    int number = 0;
    if (size == sizeof(void *)) {
        void *pointer;
        memcpy(&pointer, v, sizeof pointer);
        standin_record("cublasLtMatmulDescSetAttribute %s %d=%s", standin_name(d), (int)a, standin_name(pointer));
        return CUBLAS_STATUS_SUCCESS;
    }
    memcpy(&number, v, sizeof number);
    standin_record("cublasLtMatmulDescSetAttribute %s %d=%d", standin_name(d), (int)a, number);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t columns,
                                          int64_t ld)
{
    *l = standin_new("matrix");
    standin_record("cublasLtMatrixLayoutCreate %s type=%d rows=%llu columns=%llu ld=%lld", standin_name(*l), (int)type,
                   (unsigned long long)rows, (unsigned long long)columns, (long long)ld);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    (void)l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t a,
                                                const void *v, size_t size)
{
    int64_t number = 0;
    memcpy(&number, v, size);
    standin_record("cublasLtMatrixLayoutSetAttribute %s %d=%lld", standin_name(l), (int)a, (long long)number);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    *p = standin_new("preference");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    (void)p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t a, const void *v, size_t size)
{
    (void)size;
    standin_record("cublasLtMatmulPreferenceSetAttribute %s %d=%zu", standin_name(p), (int)a, *(const size_t *)v);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t y, cublasLtMatmulPreference_t p, int wanted,
                                              cublasLtMatmulHeuristicResult_t *out, int *n)
{
    (void)h;
    standin_record("cublasLtMatmulAlgoGetHeuristic %s %s %s %s %s %s wanted=%d", standin_name(d), standin_name(a),
                   standin_name(b), standin_name(c), standin_name(y), standin_name(p), wanted);
    *n = 2;
    for (int i = 0; i < 2; i++) {
        out[i] = (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS, .workspaceSize = (size_t)i * 4096};
        out[i].algo.data[0] = (uint64_t)(20 + i);
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t a, void *v, size_t size,
                                                    size_t *written)
{
    uint32_t wide = a == CUBLASLT_ALGO_CONFIG_ID ? (uint32_t)algo->data[0] : 1;
    memcpy(v, &wide, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t al, const void *b, cublasLtMatrixLayout_t bl, const void *beta,
                              const void *c, cublasLtMatrixLayout_t cl, void *y, cublasLtMatrixLayout_t yl,
                              const cublasLtMatmulAlgo_t *algo, void *space, size_t size, cudaStream_t stream)
{
    (void)h, (void)alpha, (void)beta, (void)c, (void)cl;
    standin_record("cublasLtMatmul %s %s:%s %s:%s -> %s:%s algo=%llu workspace=%s,%zu %s", standin_name(d),
                   standin_name(al), standin_name(a), standin_name(bl), standin_name(b), standin_name(yl),
                   standin_name(y), (unsigned long long)algo->data[0], standin_name(size ? space : NULL), size,
                   standin_name(stream));
    return CUBLAS_STATUS_SUCCESS;
}
