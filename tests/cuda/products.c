/* The real cuBLASLt on our descriptors: they can be made and read back without a device.
 *
 *   products TEXT...
 *
 * Of every problem, in both orders of the constant operand, what the library holds is read back and compared with
 * what the problem says in its own terms: rows one behind the other, Y[m,n] = op(A)[m,k] op(B)[k,n]. */
#include "runtime/cublas/cublas.h"

#include <stdio.h>
#include <string.h>

/* What lies in memory, as rows: of B turned over when it is packed. */
typedef struct expected {
    int64_t m, n, k, batch;
    bool turn_a, turn_b;
} expected;

static expected read_text(const bz_problem *p, const bz_operand *y, bool packed)
{
    expected e = {1, 1, 1, 1, false, false};
    if (p->kind == BZ_PROBLEM_GEMM) {
        e = (expected){p->gemm.m, p->gemm.n, p->gemm.k, p->gemm.batch, p->gemm.transa, p->gemm.transb};
    } else if (p->kind == BZ_PROBLEM_GEMV) { /* yᵀ[1,m] = xᵀ[1,k] op(A)ᵀ[k,m] */
        e = (expected){1, p->gemv.m, p->gemv.k, 1, false, !p->gemv.trans};
    } else {
        e = (expected){.m = y->dim[y->rank - 2], .n = y->dim[y->rank - 1], .k = p->matmul.a[y->rank - 1]};
        e.batch = y->count / (e.m * e.n);
    }
    e.turn_b ^= packed;
    return e;
}

static int64_t layout_value(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t what, size_t size)
{
    int64_t v = 0;
    size_t written;
    return cublasLtMatrixLayoutGetAttribute(l, what, &v, size, &written) || written != size ? -1 : v;
}

static int64_t desc_value(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, size_t size)
{
    int64_t v = 0;
    size_t written;
    return cublasLtMatmulDescGetAttribute(d, what, &v, size, &written) || written != size ? -1 : v;
}

static int differs(const char *text, const char *what, int64_t is, int64_t wanted)
{
    if (is == wanted)
        return 0;
    printf("%s: %s is %lld, not %lld\n", text, what, (long long)is, (long long)wanted);
    return 1;
}

/* A matrix that lies in rows of `width` elements is one with columns of that length for the library. */
static int check_layout(const char *text, cublasLtMatrixLayout_t l, cudaDataType_t type, int64_t height, int64_t width,
                        const expected *e, const matrix *m)
{
    int bad = differs(text, "the type", layout_value(l, CUBLASLT_MATRIX_LAYOUT_TYPE, 4), type);
    bad += differs(text, "the order", layout_value(l, CUBLASLT_MATRIX_LAYOUT_ORDER, 4), CUBLASLT_ORDER_COL);
    bad += differs(text, "rows", layout_value(l, CUBLASLT_MATRIX_LAYOUT_ROWS, 8), width);
    bad += differs(text, "columns", layout_value(l, CUBLASLT_MATRIX_LAYOUT_COLS, 8), height);
    bad += differs(text, "ld", layout_value(l, CUBLASLT_MATRIX_LAYOUT_LD, 8), width);
    bad += differs(text, "batch", layout_value(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 4), e->batch);
    if (e->batch > 1)
        bad += differs(text, "step", layout_value(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 8),
                       m->at && m->at[1] == 0 ? 0 : height * width);
    return bad;
}

static const int64_t BIAS = 0x1000, SCALE = 0x2000, BLOCKS = 0x3000, KEPT = 0x4000; /* nobody looks behind them */

static int check_plan(const char *text, const lt_plan *plan, const product *p, const types *t, const expected *e,
                      const void *bias, const bz_problem *problem)
{
    static const struct {
        const char *post;
        cublasLtEpilogue_t epilogue;
    } EPILOGUES[] = {
        {"post=bias,keep,gelu_tanh", CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
        {"post=keep,gelu_tanh", CUBLASLT_EPILOGUE_GELU_AUX},
        {"post=bias,add,keep,gelu_tanh", CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
        {"post=bias,relu", CUBLASLT_EPILOGUE_RELU_BIAS},
        {"post=bias,gelu_tanh", CUBLASLT_EPILOGUE_GELU_BIAS},
        {"post=bias", CUBLASLT_EPILOGUE_BIAS},
        {"post=relu", CUBLASLT_EPILOGUE_RELU},
        {"post=gelu_tanh", CUBLASLT_EPILOGUE_GELU},
        {"", CUBLASLT_EPILOGUE_DEFAULT},
    };
    size_t i = 0;
    while (!strstr(text, EPILOGUES[i].post))
        i++;
    int bad =
        differs(text, "epilogue", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, 4), EPILOGUES[i].epilogue);
    bad += differs(text, "compute", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 4), t->compute);
    bad += differs(text, "scale", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_SCALE_TYPE, 4), t->scale);
    bad += differs(text, "transa", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, 4),
                   e->turn_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    bad += differs(text, "transb", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_TRANSB, 4),
                   e->turn_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (problem->post[0].fn == BZ_FN_BIAS) {
        bad += differs(text, "bias", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8), (int64_t)bias);
        bad += differs(text, "bias type", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 4),
                       cublas_is_f8(t->result) ? CUDA_R_16BF : t->result);
    }
    if (p->kept.operand >= 0) {
        bad += differs(text, "kept", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 8), KEPT);
        bad += differs(text, "ld of kept", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 8), e->n);
        bad += differs(text, "step of kept", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, 8),
                       e->m * e->n);
    }
    bad += check_layout(text, plan->left, t->left, e->turn_b ? e->n : e->k, e->turn_b ? e->k : e->n, e, &p->left);
    bad += check_layout(text, plan->right, t->right, e->turn_a ? e->k : e->m, e->turn_a ? e->m : e->k, e, &p->right);
    return bad + check_layout(text, plan->result, t->result, e->m, e->n, e, &p->result);
}

/* Numbers of 8-bit and 4-bit floats are scaled, and nothing else is; what is added to a result of f8 is bf16. */
static int check_scales(const char *text, const lt_plan *plan, const types *t, int64_t scale, int64_t blocks)
{
    bool f8 = t->result == CUDA_R_8F_E4M3 || t->result == CUDA_R_8F_E5M2;
    bool by_blocks = plan->form == LT_BLOCKS;
    int64_t in = by_blocks ? blocks : cublas_is_f8(t->left) ? scale : 0;
    int64_t mode = !by_blocks                  ? CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F
                   : t->left == CUDA_R_4F_E2M1 ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3
                                               : CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    int bad = differs(text, "scale of a", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 8), in);
    bad += differs(text, "mode of a", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 4), mode);
    bad += differs(text, "mode of b", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 4), mode);
    bad += differs(text, "scale of b", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 8), in);
    bad += differs(text, "scale of the result", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, 8),
                   f8 ? scale : 0);
    if (f8)
        bad += differs(text, "type of what is added", layout_value(plan->other, CUBLASLT_MATRIX_LAYOUT_TYPE, 4),
                       CUDA_R_16BF);
    return bad;
}

static int check_problem(const char *text, bool packed, int *n)
{
    bz_problem problem;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    bz_error err = {0};
    product p;
    int bad = 0;
    if (bz_problem_parse(text, &problem, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    int operands = bz_problem_operands(&problem, operand);
    if (cublas_describe(&problem, operand, operands, packed, false, &p, &err)) {
        bool refused = packed && problem.kind == BZ_PROBLEM_MATMUL && !problem.matmul.constant;
        if (!refused)
            printf("%s: %s\n", text, err.text);
        return !refused;
    }
    expected e = read_text(&problem, &operand[operands - 1], packed);
    for (const types *t = NULL; (t = cublas_types(&problem, "default", t));)
        for (lt_form form = t->left == CUDA_R_4F_E2M1 ? LT_BLOCKS : LT_PLAIN;
             form < (cublas_is_scaled(t->left) ? LT_FORMS : LT_FAST); form++) {
            cublasStatus_t status;
            lt_memory memory = {(const void *)BIAS, (void *)KEPT, (const void *)SCALE, (const void *)BLOCKS};
            lt_plan *plan = cublas_lt_plan(&problem, &p, t, memory, form, &status);
            if (!plan) {
                printf("%s: %s\n", text, cublasGetStatusString(status));
                bad++;
                continue;
            }
            bad += check_plan(text, plan, &p, t, &e, (const void *)BIAS, &problem);
            bad += check_scales(text, plan, t, SCALE, BLOCKS);
            bad +=
                differs(text, "fast sums", desc_value(plan->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1), form == LT_FAST);
            cublas_lt_free(plan);
            ++*n;
        }
    cublas_product_free(&p);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0, n = 0;
    cublasLtMatmulDesc_t desc;
    if (cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS) {
        printf("skipped: this cuBLASLt makes no descriptors without a device\n");
        return 77;
    }
    cublasLtMatmulDescDestroy(desc);
    for (int i = 1; i < argc; i++) {
        bad += check_problem(argv[i], false, &n);
        bad += check_problem(argv[i], true, &n);
    }
    printf("%d descriptors read back, %d fields differ\n", n, bad);
    return bad || !n;
}
