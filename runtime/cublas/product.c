/* Problems as products that cuBLAS knows. */
#include "runtime/cublas/cublas.h"

#include <string.h>

/* Whether all matrices of a batch are there, or one serves for all; -1 for neither. */
static int steps(const int64_t *y, const int64_t *own, int n)
{
    bool all = true, one = true;
    for (int i = 0; i < n; i++) {
        all &= own[i] == y[i];
        one &= own[i] == 1;
    }
    return all ? 1 : one ? 0 : -1;
}

typedef struct sizes {
    int64_t m, n, k, batch; /* ours */
    bool turn_a, turn_b;
    int many_a, many_b; /* a matrix for each of the batch */
} sizes;

static int sizes_of(const bz_job *job, sizes *s)
{
    const bz_problem *p = job->problem;
    const bz_operand *y = &job->operand[job->n_operands - 1];
    if (p->kind == BZ_PROBLEM_GEMM) {
        *s = (sizes){p->gemm.m, p->gemm.n, p->gemm.k, p->gemm.batch, p->gemm.transa, p->gemm.transb, 1, 1};
    } else if (p->kind == BZ_PROBLEM_GEMV) {
        *s = (sizes){p->gemv.m, 1, p->gemv.k, 1, p->gemv.trans, false, 1, 1};
    } else {
        int n = y->rank;
        *s = (sizes){.m = y->dim[n - 2], .n = y->dim[n - 1], .k = p->matmul.a[n - 1]};
        s->batch = y->count / (s->m * s->n);
        s->many_a = steps(y->dim, p->matmul.a, n - 2);
        s->many_b = steps(y->dim, p->matmul.b, n - 2);
    }
    /* the rows of all matrices are rows of one, where they have the second factor in common */
    if (s->batch > 1 && s->many_a == 1 && s->many_b == 0 && !s->turn_a) {
        s->m *= s->batch;
        s->batch = 1;
    }
    return s->many_a < 0 || s->many_b < 0 ? -1 : 0;
}

static int find(const bz_job *job, bz_role role)
{
    for (int i = 0; i < job->n_operands; i++)
        if (job->operand[i].role == role)
            return i;
    return -1;
}

int cublas_product(const bz_job *job, product *out, bz_error *why)
{
    const bz_problem *p = job->problem;
    sizes s;
    if (p->kind != BZ_PROBLEM_GEMM && p->kind != BZ_PROBLEM_GEMV && p->kind != BZ_PROBLEM_MATMUL)
        return bz_fail(why, BZ_INCOMPLETE, "cuBLAS multiplies matrices only");
    if (sizes_of(job, &s))
        return bz_fail(why, BZ_INCOMPLETE, "a batch that is broadcast along some of its dimensions is no single call");
    if (s.m > INT32_MAX || s.n > INT32_MAX || s.k > INT32_MAX || s.batch > INT32_MAX)
        return bz_fail(why, BZ_INCOMPLETE, "a dimension goes beyond 32 bits");
    bool vector = p->kind == BZ_PROBLEM_GEMV;
    *out = (product){
        .m = (int)s.n,
        .n = (int)s.m,
        .k = (int)s.k,
        .batch = (int)s.batch,
        .turn_left = s.turn_b,
        .turn_right = s.turn_a,
        .ld_left = (int)(s.turn_b ? s.k : s.n),
        .ld_right = (int)(s.turn_a ? s.m : s.k),
        .ld_y = (int)s.n,
        .step_left = s.many_b * s.k * s.n,
        .step_right = s.many_a * s.m * s.k,
        .step_y = s.m * s.n,
        .left = vector ? 0 : 1, /* of gemv the vector is the first operand, and our second factor */
        .right = vector ? 1 : 0,
        .y = job->n_operands - 1,
        .bias = find(job, BZ_ROLE_BIAS),
    };
    return 0;
}

int cublas_types(const bz_job *job, const char *math, call *c, bz_error *why)
{
    static const struct {
        bz_dtype dtype, dtype_y;
        const char *math;
        cudaDataType_t type, type_y, scale;
        cublasComputeType_t compute;
    } TYPES[] = {
        {BZ_F32, BZ_F32, "default", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
        {BZ_F32, BZ_F32, "tf32", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
        {BZ_F32, BZ_F32, "f16", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16F},
        {BZ_F32, BZ_F32, "bf16", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16BF},
        {BZ_F64, BZ_F64, "default", CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
        {BZ_F16, BZ_F16, "default", CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
        {BZ_BF16, BZ_BF16, "default", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
        {BZ_I8, BZ_I32, "default", CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I},
    };
    const bz_problem *p = job->problem;
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (TYPES[i].dtype == p->dtype && p->dtype_w == p->dtype && TYPES[i].dtype_y == p->dtype_y &&
            !strcmp(TYPES[i].math, math)) {
            c->type = TYPES[i].type;
            c->type_y = TYPES[i].type_y;
            c->scale = TYPES[i].scale;
            c->compute = TYPES[i].compute;
            return 0;
        }
    return bz_fail(why, BZ_INCOMPLETE, "cuBLAS has no product of these types in math mode '%s'", math);
}

/* cuBLASLt's GELU is the approximation by tanh; the exact one is another function. */
bool cublas_epilogue(const bz_problem *p, cublasLtEpilogue_t *out)
{
    static const struct {
        bz_fn fn[2];
        cublasLtEpilogue_t epilogue;
    } EPILOGUES[] = {
        {{BZ_FN_NONE, BZ_FN_NONE}, CUBLASLT_EPILOGUE_DEFAULT},
        {{BZ_FN_BIAS, BZ_FN_NONE}, CUBLASLT_EPILOGUE_BIAS},
        {{BZ_FN_RELU, BZ_FN_NONE}, CUBLASLT_EPILOGUE_RELU},
        {{BZ_FN_BIAS, BZ_FN_RELU}, CUBLASLT_EPILOGUE_RELU_BIAS},
        {{BZ_FN_GELU_TANH, BZ_FN_NONE}, CUBLASLT_EPILOGUE_GELU},
        {{BZ_FN_BIAS, BZ_FN_GELU_TANH}, CUBLASLT_EPILOGUE_GELU_BIAS},
    };
    for (size_t i = 0; i < sizeof EPILOGUES / sizeof *EPILOGUES; i++)
        if (p->post[0].fn == EPILOGUES[i].fn[0] && (!p->post[0].fn || p->post[1].fn == EPILOGUES[i].fn[1]) &&
            (!p->post[0].fn || !p->post[1].fn || !p->post[2].fn)) {
            *out = EPILOGUES[i].epilogue;
            return true;
        }
    return false;
}
