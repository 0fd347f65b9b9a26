/* cublas: products of matrices as calls of cuBLAS and cuBLASLt. Private to this folder.
 *
 *   product.c  a problem as one product in the library's terms, and in which types it is computed
 *   gemm.c     cublasGemmEx, its batched forms, and gemv
 *   lt.c       cublasLtMatmul with every algorithm that its heuristic names, and with epilogues
 *   lt_walk.c  all other algorithms that cublasLt has, for those who ask for them
 *   sparse.c   cuSPARSELt, where it is there
 *   place.c    operands in memory of the caller's
 *   cublas.c   the table of ways, sessions, variants, execution
 *
 * A new way to compute a product is one row in the table in cublas.c. Describing a product needs no device. */
#ifndef BZ_CUBLAS_H
#define BZ_CUBLAS_H

#include "runtime/backend.h"
#include "runtime/cuda/cuda.h"

#include <cublasLt.h>
#include <cublas_v2.h>

enum { CUBLAS_MOST_ALGORITHMS = 128, CUBLAS_USUAL_ALGORITHMS = 10, CUBLAS_MOST_PRODUCTS = 4 };

/* A matrix as the library sees it: columns one behind the other, `ld` elements apart. */
typedef struct matrix {
    int operand; /* -1: not there */
    bool trans;  /* the library has to transpose it */
    int64_t ld;
    int64_t step;  /* elements from one matrix of the batch to the next; 0: all use the same */
    int64_t apart; /* elements from one matrix of the operand to the next */
    int64_t *at;   /* [batch]: which matrix of the operand it is; NULL for number i */
    bz_cuda_layout layout;
    void *data;
} matrix;

/* The problem in the library's terms: result[rows, columns] = op(left)[rows, depth] · op(right)[depth, columns].
 *
 * Problems have their rows one behind the other, the library has columns. The same memory read in the other order
 * is the transposed matrix; and Y = A·B is Yᵀ = Bᵀ·Aᵀ. So the library's left operand is our B and its right one our
 * A, as they lie, its rows are our columns, and nothing has to be moved. */
typedef struct product {
    int64_t rows, columns, depth, batch;
    bool alone;            /* nothing follows it */
    bool strided;          /* the batch's matrices are equally far apart */
    const int64_t *sizes;  /* columns of each matrix of the batch, where they differ; NULL: they do not */
    bool foldable, folded; /* a batch with one B can be, and is, one product with more rows of A */
    matrix left, right, other, bias, kept, result; /* kept: what stands in front of the last function */
} product;

/* Alpha and beta in the type that the library wants. */
typedef union scalar {
    float f;
    double d;
    int32_t i;
    uint16_t h;
} scalar;

/* A row in the table of types: what a problem of these types may be computed in. */
typedef struct types {
    bz_dtype x, w, y;
    const char *math, *suffix; /* what the variant's name gets */
    cudaDataType_t right, left, result;
    cublasComputeType_t compute;
    cudaDataType_t scale;
    bool lt_only;
} types;

struct session;
struct lt_plan;
struct sparse_call;

/* A variant. */
typedef struct call {
    bz_cuda_run run;
    const struct way *way;
    struct session *s;
    const product *p;
    const types *t;
    cublasGemmAlgo_t algorithm;
    void **pointer[3]; /* left, right, result: of each matrix, in the device's memory; NULL where not needed */
    scalar alpha, beta;
    struct lt_plan *lt;
    struct sparse_call *sparse;
    int index;         /* of the plan's algorithms, or of cuSPARSELt's */
    bool matrix_right; /* gemv: the matrix is the right operand, the vector the left one */
    size_t workspace;
    cublasStatus_t refused; /* by the library, when it was asked for algorithms */
} call;

/* A way to compute products. */
struct way;
typedef bool fits(const product *p, const types *t);
typedef void enumerates(const struct way *way, struct session *s, const product *p, const types *t, const char *layout,
                        const char *math, bz_variant_list *list);
typedef cublasStatus_t runs(call *c);
typedef struct way {
    const char *name;
    fits *fits;
    enumerates *enumerate;
    int (*prepare)(call *c, bz_error *err); /* besides operands and workspace; may be NULL */
    runs *execute;
    bool own_workspace; /* what a call wants is found for each; of the others the handle's is used */
} way;

typedef struct session {
    bz_cuda cuda; /* stands first, as bz_cuda_state wants it */
    const bz_job *job;
    bz_cuda_operands operands;
    cublasHandle_t handle;
    cublasLtHandle_t lt;
    void *workspace; /* that the handle has now: the session's may have moved */
    size_t workspace_size;
    int major; /* compute capability */
    struct {
        product p;
        char layout[16];
    } product[CUBLAS_MOST_PRODUCTS];
    int n_products;
    call **calls;
    int n_calls;
    struct lt_plan **plans;
    int n_plans;
    void *scale;  /* the number 1 in the device's memory, where 8-bit floats are multiplied by it */
    void *blocks; /* the same for each block of them, and of 4-bit floats: a byte each */
} session;

/* ---- cublas.c ------------------------------------------------------------------------------- */

/* Offers a variant; its call, with everything filled in that all have. */
call *cublas_offer(const way *w, session *s, const product *p, const types *t, const char *layout, const char *math,
                   const char *algorithm, bool chosen, bz_variant_list *list);
/* Brings a matrix to the device; none is no error. In a replay what has no values is left to `bind`. */
int cublas_upload(session *s, matrix *m, bz_error *err);

/* ---- place.c -------------------------------------------------------------------------------- */

/* All that may be operands of the call. */
enum { CUBLAS_MATRICES = 6 };
void cublas_matrices(const call *c, matrix *out[CUBLAS_MATRICES]);
matrix *cublas_find(const call *c, int operand); /* NULL: the call has no such operand */
int cublas_wants(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err);
int cublas_bind(bz_variant *v, int operand, void *at);

/* ---- product.c ------------------------------------------------------------------------------ */

/* The problem as a product. `packed` has constant operands the other way round than the model, `folded` batches with
 * one B as one product. -1 with the reason where there is no such product. */
int cublas_describe(const bz_problem *p, const bz_operand *operand, int n, bool packed, bool folded, product *out,
                    bz_error *why);
void cublas_product_free(product *p);

/* The next row behind `after` (NULL: the first) for these types and this math mode; NULL behind the last. */
const types *cublas_types(const bz_problem *p, const char *math, const types *after);
scalar cublas_scalar(cudaDataType_t type, double value);
bool cublas_is_f8(cudaDataType_t type);
bool cublas_is_scaled(cudaDataType_t type); /* f8, f4: blocks of them may have scales */
cudaDataType_t cublas_bias_type(const types *t);
cudaDataType_t cublas_added_type(const types *t);

/* What happens to a product's result before it is written. False where cuBLASLt has no epilogue that computes it. */
bool cublas_epilogue(const bz_problem *p, cublasLtEpilogue_t *out, bool *other);

/* ---- gemm.c --------------------------------------------------------------------------------- */

fits cublas_fits_gemm, cublas_fits_strided, cublas_fits_pointers, cublas_fits_grouped, cublas_fits_gemv;
enumerates cublas_enumerate_gemm, cublas_enumerate_grouped, cublas_enumerate_gemv;
runs cublas_run_gemm, cublas_run_strided, cublas_run_pointers, cublas_run_grouped, cublas_run_gemv;
int cublas_prepare_pointers(call *c, bz_error *err);

/* ---- lt.c ----------------------------------------------------------------------------------- */

/* What is done about 8-bit floats: sums promoted to f32 now and then, or not; or the microscaling formats' way (MXFP8), by a
 * scale for each 32 numbers along the depth, which are 1. The product is the same. 4-bit floats know only the last, with 16
 * numbers for each scale (NVFP4). */
typedef enum { LT_PLAIN, LT_FAST, LT_BLOCKS, LT_FORMS } lt_form;

typedef struct lt_plan {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t left, right, result;
    cublasLtMatrixLayout_t other; /* what is added, or would be to a result of another type; NULL: lies as the result */
    lt_form form;
    cublasLtMatmulHeuristicResult_t algorithm[CUBLAS_MOST_ALGORITHMS];
    int n;
} lt_plan;

fits cublas_fits_lt;
enumerates cublas_enumerate_lt;
runs cublas_run_lt;
/* What descriptors point to in the device's memory. */
typedef struct lt_memory {
    const void *bias;
    void *kept;
    const void *scale;  /* of 8-bit floats: one number in f32 */
    const void *blocks; /* or one byte for each block of either factor */
} lt_memory;

/* Descriptors of a product: NULL with the library's status where it refuses one. */
lt_plan *cublas_lt_plan(const bz_problem *problem, const product *p, const types *t, lt_memory memory, lt_form form,
                        cublasStatus_t *status);
void cublas_lt_free(lt_plan *plan);
/* ":algo=67,tile=20,…". */
void cublas_lt_name(const cublasLtMatmulAlgo_t *algorithm, char *out, size_t size);

/* ---- sparse.c ------------------------------------------------------------------------------- */

fits cublas_fits_sparse;
enumerates cublas_enumerate_sparse;
runs cublas_run_sparse;
int cublas_prepare_sparse(call *c, bz_error *err);
void cublas_sparse_free(struct sparse_call *s);

/* ---- lt_walk.c ------------------------------------------------------------------------------ */

/* Adds to the plan what the library has besides what its heuristic named, as far as it runs in this workspace: of each of its
 * algorithms as many configurations as of the others, spread over all that it has. How many were added. */
int cublas_lt_walk(cublasLtHandle_t lt, lt_plan *plan, const types *t, size_t workspace);

#endif
