/* Products as cuBLAS computes them, in the host's memory: columns first, in the types that it is told. */
#ifndef BZ_STANDIN_PRODUCT_H
#define BZ_STANDIN_PRODUCT_H

#include <cublasLt.h>
#include <cublas_v2.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct factor {
    const void *data;
    cudaDataType_t type;
    bool turned;
    int64_t ld;
} factor;

/* What Lt does to a result besides. */
typedef struct epilogue {
    double alpha, beta;
    const void *bias, *added;
    cudaDataType_t bias_type;
    int64_t added_ld, kept_ld;
    void *kept; /* where what stands in front of a function goes; NULL: nowhere */
    cublasLtEpilogue_t what;
    double scale; /* of the result, in the end; 0 stands for 1 */
} epilogue;

const char *standin_type_name(cudaDataType_t type);
size_t standin_bytes_of(cudaDataType_t type);
double standin_get(const void *from, cudaDataType_t type, int64_t i);
const char *standin_compute_name(cublasComputeType_t t);
/* Alpha and beta have the type that the compute type says. */
cudaDataType_t standin_scale_of(cublasComputeType_t t);
/* c[m,n] = epilogue(alpha · a[m,k] · b[k,n] + beta · added). */
void standin_product(int64_t m, int64_t n, int64_t k, factor a, factor b, void *c, cudaDataType_t type, int64_t ldc,
                     epilogue e);

#endif
