/* A stand-in for cuBLAS: calls recorded with every field, and computed, so that the order of factors, leading
 * dimensions and steps are checked by the result. */
#include "tests/standin/product.h"
#include "tests/standin/record.h"

#include <stdio.h>
#include <string.h>

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "the functionality requested is not supported"
                                                 : "an error of the stand-in";
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_INTERNAL_ERROR";
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

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *workspace, size_t size)
{
    standin_record("cublasSetWorkspace %s %s,%zu", standin_name(h), standin_name(workspace), size);
    return CUBLAS_STATUS_SUCCESS;
}

static epilogue plainly(cublasComputeType_t compute, const void *alpha, const void *beta)
{
    cudaDataType_t t = standin_scale_of(compute);
    if (standin_get(beta, t, 0) != 0)
        standin_record("    (beta is ignored)");
    return (epilogue){.alpha = standin_get(alpha, t, 0), .what = CUBLASLT_EPILOGUE_DEFAULT};
}

static char op(cublasOperation_t o)
{
    return o == CUBLAS_OP_N ? 'n' : 't';
}

static void record_product(const char *call, cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                           int k)
{
    standin_record("%s %s %c%c m=%d n=%d k=%d", call, standin_name(h), op(ta), op(tb), m, n, k);
}

static void record_end(const epilogue *e, cublasComputeType_t compute, cublasGemmAlgo_t algo, int batch)
{
    char text[32] = "";
    if (batch)
        snprintf(text, sizeof text, " batch=%d", batch);
    standin_record("    alpha=%g beta=%g compute=%s algo=%d%s", e->alpha, e->beta, standin_compute_name(compute),
                   (int)algo, text);
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType at_, int lda, const void *b, cudaDataType bt,
                            int ldb, const void *beta, void *c, cudaDataType ct, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algo)
{
    epilogue e = plainly(compute, alpha, beta);
    record_product("cublasGemmEx", h, ta, tb, m, n, k);
    standin_record("    %s:%s,ld=%d %s:%s,ld=%d -> %s:%s,ld=%d", standin_name(a), standin_type_name(at_), lda,
                   standin_name(b), standin_type_name(bt), ldb, standin_name(c), standin_type_name(ct), ldc);
    record_end(&e, compute, algo, 0);
    if (standin_ill)
        return CUBLAS_STATUS_INTERNAL_ERROR;
    standin_product(m, n, k, (factor){a, at_, ta == CUBLAS_OP_T, lda}, (factor){b, bt, tb == CUBLAS_OP_T, ldb}, c, ct,
                    ldc, e);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                                          int k, const void *alpha, const void *a, cudaDataType at_, int lda,
                                          long long sa, const void *b, cudaDataType bt, int ldb, long long sb,
                                          const void *beta, void *c, cudaDataType ct, int ldc, long long sc, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    epilogue e = plainly(compute, alpha, beta);
    record_product("cublasGemmStridedBatchedEx", h, ta, tb, m, n, k);
    standin_record("    %s:%s,ld=%d,step=%lld %s:%s,ld=%d,step=%lld -> %s:%s,ld=%d,step=%lld", standin_name(a),
                   standin_type_name(at_), lda, sa, standin_name(b), standin_type_name(bt), ldb, sb, standin_name(c),
                   standin_type_name(ct), ldc, sc);
    record_end(&e, compute, algo, batch);
    for (int64_t i = 0; i < batch; i++)
        standin_product(
            m, n, k, (factor){(const char *)a + (size_t)(i * sa) * standin_bytes_of(at_), at_, ta == CUBLAS_OP_T, lda},
            (factor){(const char *)b + (size_t)(i * sb) * standin_bytes_of(bt), bt, tb == CUBLAS_OP_T, ldb},
            (char *)c + (size_t)(i * sc) * standin_bytes_of(ct), ct, ldc, e);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                   const void *alpha, const void *const a[], cudaDataType at_, int lda,
                                   const void *const b[], cudaDataType bt, int ldb, const void *beta, void *const c[],
                                   cudaDataType ct, int ldc, int batch, cublasComputeType_t compute,
                                   cublasGemmAlgo_t algo)
{
    epilogue e = plainly(compute, alpha, beta);
    record_product("cublasGemmBatchedEx", h, ta, tb, m, n, k);
    for (int i = 0; i < batch; i++) {
        standin_record("    %s:%s,ld=%d %s:%s,ld=%d -> %s:%s,ld=%d", standin_name(a[i]), standin_type_name(at_), lda,
                       standin_name(b[i]), standin_type_name(bt), ldb, standin_name(c[i]), standin_type_name(ct), ldc);
        standin_product(m, n, k, (factor){a[i], at_, ta == CUBLAS_OP_T, lda},
                        (factor){b[i], bt, tb == CUBLAS_OP_T, ldb}, c[i], ct, ldc, e);
    }
    record_end(&e, compute, algo, batch);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmGroupedBatchedEx(cublasHandle_t h, const cublasOperation_t ta[], const cublasOperation_t tb[],
                                          const int m[], const int n[], const int k[], const void *alpha,
                                          const void *const a[], cudaDataType_t at_, const int lda[],
                                          const void *const b[], cudaDataType_t bt, const int ldb[], const void *beta,
                                          void *const c[], cudaDataType_t ct, const int ldc[], int groups,
                                          const int size[], cublasComputeType_t compute)
{
    size_t each = standin_bytes_of(standin_scale_of(compute));
    for (int i = 0, one = 0; i < groups; i++) {
        epilogue e = plainly(compute, (const char *)alpha + (size_t)i * each, (const char *)beta + (size_t)i * each);
        record_product("cublasGemmGroupedBatchedEx", h, ta[i], tb[i], m[i], n[i], k[i]);
        for (int end = one + size[i]; one < end; one++) {
            standin_record("    %s:%s,ld=%d %s:%s,ld=%d -> %s:%s,ld=%d", standin_name(a[one]), standin_type_name(at_),
                           lda[i], standin_name(b[one]), standin_type_name(bt), ldb[i], standin_name(c[one]),
                           standin_type_name(ct), ldc[i]);
            standin_product(m[i], n[i], k[i], (factor){a[one], at_, ta[i] == CUBLAS_OP_T, lda[i]},
                            (factor){b[one], bt, tb[i] == CUBLAS_OP_T, ldb[i]}, c[one], ct, ldc[i], e);
        }
        record_end(&e, compute, CUBLAS_GEMM_DEFAULT, size[i]);
    }
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t gemv(const char *name, cublasOperation_t t, int m, int n, double alpha, const void *a, int lda,
                           const void *x, int incx, double beta, void *y, int incy, cudaDataType_t type)
{
    bool turned = t == CUBLAS_OP_T;
    standin_record("%s %c m=%d n=%d alpha=%g %s,ld=%d %s,%d beta=%g -> %s,%d", name, op(t), m, n, alpha,
                   standin_name(a), lda, standin_name(x), incx, beta, standin_name(y), incy);
    standin_product(turned ? n : m, 1, turned ? m : n, (factor){a, type, turned, lda}, (factor){x, type, false, 1}, y,
                    type, 1, (epilogue){.alpha = alpha, .what = CUBLASLT_EPILOGUE_DEFAULT});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemv_v2(cublasHandle_t h, cublasOperation_t t, int m, int n, const float *alpha, const float *a,
                              int lda, const float *x, int incx, const float *beta, float *y, int incy)
{
    (void)h;
    return gemv("cublasSgemv", t, m, n, (double)*alpha, a, lda, x, incx, (double)*beta, y, incy, CUDA_R_32F);
}

cublasStatus_t cublasDgemv_v2(cublasHandle_t h, cublasOperation_t t, int m, int n, const double *alpha, const double *a,
                              int lda, const double *x, int incx, const double *beta, double *y, int incy)
{
    (void)h;
    return gemv("cublasDgemv", t, m, n, *alpha, a, lda, x, incx, *beta, y, incy, CUDA_R_64F);
}
