/* cublas: products of matrices as calls of cuBLAS and cuBLASLt. Private to this folder.
 *
 * The libraries count columns first. A row-major matrix is its own transpose for them, so Y = A B is asked for as
 * Yᵀ = Bᵀ Aᵀ: the second factor comes first, and nothing is moved. */
#ifndef BZ_CUBLAS_H
#define BZ_CUBLAS_H

#include "runtime/backend.h"
#include "runtime/cuda/cuda.h"

#include <cublasLt.h>
#include <cublas_v2.h>

enum { MAX_PROPOSALS = 32 };

/* A product in the libraries' terms. `left` is our second factor, `right` our first. */
typedef struct product {
    int m, n, k, batch; /* of the library's: m is our n */
    bool turn_left, turn_right;
    int ld_left, ld_right, ld_y;
    int64_t step_left, step_right, step_y; /* from one matrix of the batch to the next; 0: the same one */
    int left, right, y, bias;              /* operands; bias -1: none */
} product;

/* One variant. */
typedef struct call {
    product p;
    enum { GEMM_EX, GEMM_BATCHED, GEMV, LT } form;
    cublasComputeType_t compute;
    cudaDataType_t type, type_y, scale;
    cublasLtEpilogue_t epilogue;
    cublasLtMatmulHeuristicResult_t proposal;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout_left, layout_right, layout_y;
    void *left, *right, *y, *bias;
    bz_cuda_pace pace;
} call;

typedef struct session {
    const bz_job *job;
    bz_cuda cuda;
    bz_cuda_operands operands;
    cublasHandle_t handle;
    cublasLtHandle_t lt;
    call **calls;
    int n_calls;
} session;

int bz_cublas_failed(bz_error *err, const char *what, cublasStatus_t status);

/* product.c: what the problem is for the library, which types; -1 with the reason where it is nothing. */
int cublas_product(const bz_job *job, product *out, bz_error *why);
int cublas_types(const bz_job *job, const char *math, call *c, bz_error *why);
/* The epilogue that the post-operations are; false where cuBLASLt has none. */
bool cublas_epilogue(const bz_problem *p, cublasLtEpilogue_t *out);

/* lt.c */
int cublas_lt_propose(session *s, const call *like, cublasLtMatmulHeuristicResult_t *out);
void cublas_lt_name(const cublasLtMatmulHeuristicResult_t *proposal, char *out, size_t size);
cublasStatus_t cublas_lt_describe(call *c);
cublasStatus_t cublas_lt_run(session *s, call *c);
void cublas_lt_free(call *c);

#endif
