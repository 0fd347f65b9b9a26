/* A problem as one product in the library's terms, and the types in which it is computed. */
#include "runtime/cublas/cublas.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* f32 is computed in f32 unless the user lets the library compute in less. Below that sums are f32 unless, again,
 * the user lets them be f16. */
/* clang-format off */
static const types TYPES[] = {
    {BZ_F32, BZ_F32, BZ_F32, "default", "", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, false},
    {BZ_F32, BZ_F32, BZ_F32, "default", "+pedantic", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, CUDA_R_32F, false},
    {BZ_F32, BZ_F32, BZ_F32, "tf32", "", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, false},
    {BZ_F32, BZ_F32, BZ_F32, "f16", "", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16F, CUDA_R_32F, false},
    {BZ_F32, BZ_F32, BZ_F32, "bf16", "", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16BF, CUDA_R_32F, false},
    {BZ_F64, BZ_F64, BZ_F64, "default", "", CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, false},
    {BZ_F16, BZ_F16, BZ_F16, "default", "", CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, false},
    {BZ_F16, BZ_F16, BZ_F16, "f16", "", CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, CUDA_R_16F, false},
    {BZ_F16, BZ_F16, BZ_F32, "default", "", CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, false},
    {BZ_BF16, BZ_BF16, BZ_BF16, "default", "", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, false},
    {BZ_BF16, BZ_BF16, BZ_F32, "default", "", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, false},
    {BZ_I8, BZ_I8, BZ_I32, "default", "", CUDA_R_8I, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I, false},
    {BZ_I8, BZ_I8, BZ_I8, "default", "", CUDA_R_8I, CUDA_R_8I, CUDA_R_8I, CUBLAS_COMPUTE_32I, CUDA_R_32F, true},
    {BZ_I8, BZ_I8, BZ_F32, "default", "", CUDA_R_8I, CUDA_R_8I, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, false},
    {BZ_F8E4M3, BZ_F8E4M3, BZ_F16, "default", "", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, true},
    {BZ_F8E4M3, BZ_F8E4M3, BZ_BF16, "default", "", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, true},
    {BZ_F8E4M3, BZ_F8E4M3, BZ_F32, "default", "", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, true},
    {BZ_F8E4M3, BZ_F8E4M3, BZ_F8E4M3, "default", "", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUBLAS_COMPUTE_32F, CUDA_R_32F, true},
    {BZ_F8E5M2, BZ_F8E4M3, BZ_F8E5M2, "default", "", CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUBLAS_COMPUTE_32F, CUDA_R_32F, true},
    {BZ_F8E5M2, BZ_F8E4M3, BZ_F16, "default", "", CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, true},
    {BZ_F4E2M1, BZ_F4E2M1, BZ_F16, "default", "", CUDA_R_4F_E2M1, CUDA_R_4F_E2M1, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, true},
    {BZ_F4E2M1, BZ_F4E2M1, BZ_BF16, "default", "", CUDA_R_4F_E2M1, CUDA_R_4F_E2M1, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, true},
    {BZ_F4E2M1, BZ_F4E2M1, BZ_F32, "default", "", CUDA_R_4F_E2M1, CUDA_R_4F_E2M1, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, true},
};
/* clang-format on */

const types *cublas_types(const bz_problem *p, const char *math, const types *after)
{
    for (const types *t = after ? after + 1 : TYPES; t < TYPES + sizeof TYPES / sizeof *TYPES; t++)
        if (t->x == p->dtype && t->w == p->dtype_w && t->y == p->dtype_y && !strcmp(t->math, math))
            return t;
    return NULL;
}

bool cublas_is_f8(cudaDataType_t type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

bool cublas_is_scaled(cudaDataType_t type)
{
    return type == CUDA_R_4F_E2M1 || cublas_is_f8(type);
}

/* Results of 8 bits get a bias of the type in which the library computes it, and what it would add to them has another type
 * than they have: cublasLt.h. */
cudaDataType_t cublas_bias_type(const types *t)
{
    return t->result == CUDA_R_8I ? t->scale : cublas_is_f8(t->result) ? CUDA_R_16BF : t->result;
}

cudaDataType_t cublas_added_type(const types *t)
{
    return cublas_is_f8(t->result) ? CUDA_R_16BF : t->result;
}

/* Only 0 and 1 are ever asked of f16. */
scalar cublas_scalar(cudaDataType_t type, double value)
{
    switch (type) {
    case CUDA_R_64F:
        return (scalar){.d = value};
    case CUDA_R_32I:
        return (scalar){.i = (int32_t)value};
    case CUDA_R_16F:
        return (scalar){.h = value != 0 ? 0x3c00 : 0};
    default:
        return (scalar){.f = (float)value};
    }
}

bool cublas_epilogue(const bz_problem *p, cublasLtEpilogue_t *out, bool *other)
{
    /* [bias][function]; cuBLASLt's GELU is the approximation by tanh, and no stand-in for the exact one */
    static const cublasLtEpilogue_t EPILOGUE[2][3] = {
        {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_GELU},
        {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS},
    };
    int bias = 0, function = 0;
    bool kept = false;
    *other = false;
    for (int i = 0; p->post[i].fn; i++) {
        bz_fn fn = p->post[i].fn;
        if (function) /* the last thing that it does */
            return false;
        if (fn == BZ_FN_BIAS)
            bias = 1;
        else if (fn == BZ_FN_ADD && !*other)
            *other = true;
        else if (fn == BZ_FN_KEEP)
            kept = true;
        else if (fn == BZ_FN_RELU || fn == BZ_FN_GELU_TANH)
            function = fn == BZ_FN_RELU ? 1 : 2;
        else
            return false;
    }
    *out = EPILOGUE[bias][function];
    if (kept && function < 2) /* of ReLU it keeps a bit for each number, which says no more than the result */
        return false;
    if (kept)
        *out = bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return true;
}

/* Notes which matrices the batch uses, and whether they are equally far apart. */
static bool place_batch(matrix *m, const bz_operand *y, const int64_t *dim, int64_t batch)
{
    bool even = true;
    m->at = bz_alloc((size_t)batch, sizeof *m->at);
    for (int64_t i = 0; i < batch; i++)
        m->at[i] = bz_broadcast_index(i, y->dim, dim, y->rank - 2);
    int64_t step = batch > 1 ? m->at[1] : 0;
    for (int64_t i = 0; i < batch; i++)
        even &= m->at[i] == i * step;
    m->step = step * m->apart;
    return even;
}

/* An operand as it lies; or, turned over, with its last two dimensions exchanged in memory. */
static matrix matrix_of(const bz_operand *o, int index, bool trans, bool turned, int64_t rows, int64_t columns)
{
    matrix m = {.operand = index, .trans = trans != turned, .layout = bz_cuda_plain(o), .apart = rows * columns};
    if (turned) {
        int r = o->rank;
        m.layout.stride[r - 1] = o->dim[r - 2];
        m.layout.stride[r - 2] = 1;
    }
    m.ld = m.trans ? columns : rows;
    m.step = m.apart;
    return m;
}

static int find(const bz_operand *operand, int n, bz_role role)
{
    for (int i = 0; i < n; i++)
        if (operand[i].role == role)
            return i;
    return -1;
}

/* A tensor that lies as the result; nothing where there is none. */
static matrix find_like_result(const bz_operand *operand, int n, bz_role role, int64_t rows, int64_t columns)
{
    int i = find(operand, n, role);
    return i < 0 ? (matrix){.operand = -1} : matrix_of(&operand[i], i, false, false, rows, columns);
}

/* What a, b and the result are, each in our terms: Y[m,n] = op(A)[m,k] op(B)[k,n]. A vector is a row: gemv is
 * yᵀ = xᵀ op(A)ᵀ. */
static int read_problem(const bz_problem *p, product *out, bool *transa, bool *transb, bool *constant, bz_error *why)
{
    *transa = *transb = false;
    *constant = true;
    switch (p->kind) {
    case BZ_PROBLEM_GEMM:
        *out = (product){.rows = p->gemm.n, .columns = p->gemm.m, .depth = p->gemm.k, .batch = p->gemm.batch};
        *transa = p->gemm.transa;
        *transb = p->gemm.transb;
        return 0;
    case BZ_PROBLEM_GEMV:
        *out = (product){.rows = p->gemv.m, .columns = 1, .depth = p->gemv.k, .batch = 1};
        *transb = !p->gemv.trans;
        return 0;
    case BZ_PROBLEM_GROUPED:
        *out = (product){.rows = p->grouped.n, .depth = p->grouped.k, .sizes = p->grouped.sizes};
        for (; p->grouped.sizes[out->batch]; out->batch++)
            out->columns += p->grouped.sizes[out->batch];
        *transb = p->grouped.transb;
        return 0;
    case BZ_PROBLEM_MATMUL: {
        int r = bz_extent_rank(p->matmul.a);
        *out = (product){
            .rows = p->matmul.b[r - 1], .columns = p->matmul.a[r - 2], .depth = p->matmul.a[r - 1], .batch = 1};
        *constant = p->matmul.constant;
        *transa = p->matmul.transa;
        *transb = p->matmul.transb;
        return 0;
    }
    default:
        return bz_fail(why, BZ_INCOMPLETE, "cuBLAS multiplies matrices only");
    }
}

/* A bias is of the result's type, with the exceptions that cublasLt.h names. It is added when the sum is multiplied by
 * alpha already, while ours belongs to the sum: it brings the factor along. */
static int describe_bias(const bz_problem *p, const bz_operand *operand, product *out, bz_error *why)
{
    bool f8 = bz_dtype_bits(p->dtype_y) == 8 && bz_dtype_is_float(p->dtype_y);
    if (f8 && out->other.operand >= 0)
        return bz_fail(why, BZ_INCOMPLETE, "cuBLASLt adds nothing of f8 to its results, but bf16 and f16");
    if (out->bias.operand < 0)
        return 0;
    if (bz_dtype_bits(p->dtype) <= 8 && bz_dtype_is_float(p->dtype) && p->dtype_y == BZ_F32)
        return bz_fail(why, BZ_INCOMPLETE, "cuBLASLt adds a bias of bf16 to f8 and f4 products in f32: another result");
    out->bias.layout = bz_cuda_plain(&operand[out->bias.operand]);
    out->bias.layout.dtype = p->dtype_y == BZ_I8 ? BZ_F32 : f8 ? BZ_BF16 : p->dtype_y;
    if (bz_problem_scale(p) != 1)
        out->bias.layout.factor = (float)bz_problem_scale(p);
    return 0;
}

/* Rows of A and of the result begin where those of the groups before end. */
static void place_groups(product *p)
{
    matrix *const of_rows[] = {&p->right, &p->result};
    p->strided = false;
    for (int i = 0; i < 2; i++) {
        int64_t from = 0;
        of_rows[i]->at = bz_alloc((size_t)p->batch, sizeof *of_rows[i]->at);
        of_rows[i]->apart = i ? p->rows : p->depth;
        for (int64_t k = 0; k < p->batch; from += p->sizes[k++])
            of_rows[i]->at[k] = from;
    }
}

static void fold(product *p)
{
    p->columns *= p->batch;
    p->batch = 1;
    p->strided = p->folded = true;
}

int cublas_describe(const bz_problem *p, const bz_operand *operand, int n, bool packed, bool folded, product *out,
                    bz_error *why)
{
    bool transa, transb, constant;
    const bz_operand *y = &operand[n - 1];
    int b = p->kind == BZ_PROBLEM_GEMV ? find(operand, n, BZ_ROLE_W) : 1;
    if (read_problem(p, out, &transa, &transb, &constant, why))
        return -1;
    if (packed && !constant)
        return bz_fail(why, BZ_INCOMPLETE, "no operand is constant: nothing can be packed ahead");
    out->alone = !p->post[0].fn;
    out->strided = true;
    out->left = matrix_of(&operand[b], b, transb, packed, out->rows, out->depth);
    out->right = matrix_of(&operand[0], 0, transa, false, out->depth, out->columns);
    out->result = matrix_of(y, n - 1, false, false, out->rows, out->columns);
    out->other = find_like_result(operand, n, BZ_ROLE_OTHER, out->rows, out->columns);
    out->kept = find_like_result(operand, n, BZ_ROLE_BEFORE, out->rows, out->columns);
    if (out->kept.operand >= 0 && out->rows % 8)
        return bz_fail(why, BZ_INCOMPLETE, "cuBLASLt keeps what stands in front of a function in rows of 8, 16, 24 …");
    out->bias = (matrix){.operand = find(operand, n, BZ_ROLE_BIAS)};
    if (describe_bias(p, operand, out, why))
        return -1;
    if (p->kind == BZ_PROBLEM_MATMUL) {
        out->batch = y->count / (out->rows * out->columns);
        bool even = place_batch(&out->left, y, p->matmul.b, out->batch);
        out->strided = place_batch(&out->right, y, p->matmul.a, out->batch) && even;
    }
    if (out->sizes)
        place_groups(out);
    out->foldable = out->batch > 1 && out->strided && !out->left.step && out->right.step && !out->right.trans;
    if (folded && !out->foldable) {
        cublas_product_free(out);
        return bz_fail(why, BZ_INCOMPLETE, "it cannot be folded into one product");
    }
    if (folded)
        fold(out);
    if (out->rows > INT32_MAX || out->columns > INT32_MAX || out->depth > INT32_MAX || out->batch > INT32_MAX) {
        cublas_product_free(out);
        return bz_fail(why, BZ_INCOMPLETE, "cuBLAS counts with 32 bits");
    }
    return 0;
}

void cublas_product_free(product *p)
{
    free(p->left.at);
    free(p->right.at);
    free(p->result.at);
    p->left.at = p->right.at = p->result.at = NULL;
}
