/* cuBLASLt: descriptors, the algorithms that its heuristic proposes, execution. */
#include "runtime/cublas/cublas.h"

#include <stdio.h>
#include <string.h>

#define TRY(call_)                                                                                                     \
    do {                                                                                                               \
        cublasStatus_t status_ = (call_);                                                                              \
        if (status_ != CUBLAS_STATUS_SUCCESS)                                                                          \
            return status_;                                                                                            \
    } while (0)

static cublasStatus_t set(call *c, cublasLtMatmulDescAttributes_t name, const void *v, size_t size)
{
    return cublasLtMatmulDescSetAttribute(c->desc, name, v, size);
}

static cublasStatus_t describe_layout(cublasLtMatrixLayout_t *out, cudaDataType_t type, int rows, int columns, int ld,
                                      int batch, int64_t step)
{
    TRY(cublasLtMatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)columns, ld));
    if (batch == 1)
        return CUBLAS_STATUS_SUCCESS;
    TRY(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
    return cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step);
}

cublasStatus_t cublas_lt_describe(call *c)
{
    const product *p = &c->p;
    cublasOperation_t left = p->turn_left ? CUBLAS_OP_T : CUBLAS_OP_N,
                      right = p->turn_right ? CUBLAS_OP_T : CUBLAS_OP_N;
    TRY(cublasLtMatmulDescCreate(&c->desc, c->compute, c->scale));
    TRY(set(c, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left));
    TRY(set(c, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right));
    TRY(set(c, CUBLASLT_MATMUL_DESC_EPILOGUE, &c->epilogue, sizeof c->epilogue));
    if (c->bias)
        TRY(set(c, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &c->bias, sizeof c->bias));
    TRY(describe_layout(&c->layout_left, c->type, p->turn_left ? p->k : p->m, p->turn_left ? p->m : p->k, p->ld_left,
                        p->batch, p->step_left));
    TRY(describe_layout(&c->layout_right, c->type, p->turn_right ? p->n : p->k, p->turn_right ? p->k : p->n,
                        p->ld_right, p->batch, p->step_right));
    return describe_layout(&c->layout_y, c->type_y, p->m, p->n, p->ld_y, p->batch, p->step_y);
}

/* The heuristic's list, best first, within the limit of workspace. Returns how many. */
int cublas_lt_propose(session *s, const call *like, cublasLtMatmulHeuristicResult_t *out)
{
    call c = *like;
    cublasLtMatmulPreference_t preference = NULL;
    size_t limit = s->cuda.workspace_limit;
    int n = 0;
    if (cublas_lt_describe(&c) == CUBLAS_STATUS_SUCCESS &&
        cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS &&
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit,
                                             sizeof limit) == CUBLAS_STATUS_SUCCESS &&
        cublasLtMatmulAlgoGetHeuristic(s->lt, c.desc, c.layout_left, c.layout_right, c.layout_y, c.layout_y, preference,
                                       MAX_PROPOSALS, out, &n) != CUBLAS_STATUS_SUCCESS)
        n = 0;
    if (preference)
        cublasLtMatmulPreferenceDestroy(preference);
    cublas_lt_free(&c);
    return n;
}

/* The algorithm by all that tells it apart from others: "lt 21 tile=18 stages=8 splitk=1 …". */
void cublas_lt_name(const cublasLtMatmulHeuristicResult_t *proposal, char *out, size_t size)
{
    static const struct {
        const char *name;
        cublasLtMatmulAlgoConfigAttributes_t attribute;
        int bytes; /* of the value */
    } PARTS[] = {
        {"lt ", CUBLASLT_ALGO_CONFIG_ID, 4},
        {" tile=", CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
        {" stages=", CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
        {" splitk=", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
        {" reduction=", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
        {" swizzle=", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
        {" option=", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
        {" inner=", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
        {" cluster=", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2},
    };
    size_t at = 0, written;
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS && at < size; i++) {
        uint32_t wide = 0;
        uint16_t narrow = 0;
        bool small = PARTS[i].bytes == 2;
        if (cublasLtMatmulAlgoConfigGetAttribute(&proposal->algo, PARTS[i].attribute,
                                                 small ? (void *)&narrow : (void *)&wide, (size_t)PARTS[i].bytes,
                                                 &written) == CUBLAS_STATUS_SUCCESS)
            at += (size_t)snprintf(out + at, size - at, "%s%u", PARTS[i].name, small ? narrow : wide);
    }
}

cublasStatus_t cublas_lt_run(session *s, call *c)
{
    static const double ONE_D = 1, ZERO_D = 0;
    static const float ONE = 1, ZERO = 0;
    static const int32_t ONE_I = 1, ZERO_I = 0;
    const void *one = c->scale == CUDA_R_64F   ? (const void *)&ONE_D
                      : c->scale == CUDA_R_32I ? (const void *)&ONE_I
                                               : (const void *)&ONE;
    const void *zero = c->scale == CUDA_R_64F   ? (const void *)&ZERO_D
                       : c->scale == CUDA_R_32I ? (const void *)&ZERO_I
                                                : (const void *)&ZERO;
    return cublasLtMatmul(s->lt, c->desc, one, c->left, c->layout_left, c->right, c->layout_right, zero, c->y,
                          c->layout_y, c->y, c->layout_y, &c->proposal.algo, s->cuda.workspace,
                          c->proposal.workspaceSize, s->cuda.stream);
}

void cublas_lt_free(call *c)
{
    if (c->desc)
        cublasLtMatmulDescDestroy(c->desc);
    cublasLtMatrixLayout_t const layouts[] = {c->layout_left, c->layout_right, c->layout_y};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            cublasLtMatrixLayoutDestroy(layouts[i]);
    c->desc = NULL;
    c->layout_left = c->layout_right = c->layout_y = NULL;
}
