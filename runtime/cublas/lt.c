/* cublasLtMatmul: every algorithm that the library's heuristic names, and what it does to the result on the way. */
#include "runtime/cublas/cublas.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

#define TRY(call_)                                                                                                     \
    do {                                                                                                               \
        cublasStatus_t status_ = (call_);                                                                              \
        if (status_ != CUBLAS_STATUS_SUCCESS)                                                                          \
            return status_;                                                                                            \
    } while (0)

/* The one that has many variants: it is not asked for those that others show to be worse or different (a batch that could
 * be one product, pedantic sums). What it cannot do of the rest, it says itself. */
bool cublas_fits_lt(const product *p, const types *t)
{
    return p->strided && (p->folded || !p->foldable) && !t->suffix[0];
}

static cublasStatus_t set_op(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, bool trans)
{
    cublasOperation_t op = trans ? CUBLAS_OP_T : CUBLAS_OP_N;
    return cublasLtMatmulDescSetAttribute(desc, what, &op, sizeof op);
}

/* Programs scale their 8-bit floats by numbers that the kernel reads, and so does what is measured here. */
static cublasStatus_t set_scales(cublasLtMatmulDesc_t desc, const types *t, lt_memory memory, bool blocks)
{
    const void *scale = blocks ? memory.blocks : memory.scale;
    const int32_t mode =
        t->left == CUDA_R_4F_E2M1 ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3 : CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    if (cublas_is_scaled(t->left)) {
        TRY(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, sizeof scale));
        TRY(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale, sizeof scale));
    }
    if (blocks) {
        TRY(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &mode, sizeof mode));
        TRY(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &mode, sizeof mode));
    }
    if (cublas_is_f8(t->result))
        TRY(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, &memory.scale,
                                           sizeof memory.scale));
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_kept(cublasLtMatmulDesc_t desc, const product *p, void *kept)
{
    if (p->kept.operand < 0)
        return CUBLAS_STATUS_SUCCESS;
    TRY(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &kept, sizeof kept));
    TRY(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &p->kept.ld, sizeof p->kept.ld));
    return cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &p->kept.step,
                                          sizeof p->kept.step);
}

static cublasStatus_t make_desc(lt_plan *plan, const product *p, const types *t, cublasLtEpilogue_t epilogue,
                                lt_memory memory)
{
    TRY(cublasLtMatmulDescCreate(&plan->desc, t->compute, t->scale));
    TRY(set_op(plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, p->left.trans));
    TRY(set_op(plan->desc, CUBLASLT_MATMUL_DESC_TRANSB, p->right.trans));
    TRY(cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    if (plan->form == LT_FAST)
        TRY(cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &(int8_t){1}, 1));
    TRY(set_scales(plan->desc, t, memory, plan->form == LT_BLOCKS));
    TRY(set_kept(plan->desc, p, memory.kept));
    if (p->bias.operand < 0)
        return CUBLAS_STATUS_SUCCESS;
    /* the heuristic looks at the pointer's alignment */
    TRY(cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &memory.bias,
                                       sizeof memory.bias));
    cudaDataType_t type = cublas_bias_type(t);
    return cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
}

/* op(m) is rows × columns; the layout is that of m as it lies. */
static cublasStatus_t make_layout(cublasLtMatrixLayout_t *out, const product *p, const matrix *m, cudaDataType_t type,
                                  int64_t rows, int64_t columns)
{
    int32_t batch = (int32_t)p->batch;
    int64_t step = m->step;
    TRY(cublasLtMatrixLayoutCreate(out, type, (uint64_t)(m->trans ? columns : rows),
                                   (uint64_t)(m->trans ? rows : columns), m->ld));
    if (batch == 1)
        return CUBLAS_STATUS_SUCCESS;
    TRY(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
    return cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step);
}

static cublasStatus_t make_plan(lt_plan *plan, const product *p, const types *t, cublasLtEpilogue_t epilogue,
                                lt_memory memory)
{
    cudaDataType_t added = cublas_added_type(t);
    TRY(make_desc(plan, p, t, epilogue, memory));
    TRY(make_layout(&plan->left, p, &p->left, t->left, p->rows, p->depth));
    TRY(make_layout(&plan->right, p, &p->right, t->right, p->depth, p->columns));
    if (p->other.operand >= 0 || added != t->result)
        TRY(make_layout(&plan->other, p, p->other.operand >= 0 ? &p->other : &p->result, added, p->rows, p->columns));
    return make_layout(&plan->result, p, &p->result, t->result, p->rows, p->columns);
}

lt_plan *cublas_lt_plan(const bz_problem *problem, const product *p, const types *t, lt_memory memory, lt_form form,
                        cublasStatus_t *status)
{
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    bool other;
    lt_plan *plan = bz_alloc(1, sizeof *plan);
    *plan = (lt_plan){.form = form};
    *status = cublas_epilogue(problem, &epilogue, &other) ? make_plan(plan, p, t, epilogue, memory)
                                                          : CUBLAS_STATUS_NOT_SUPPORTED;
    if (*status == CUBLAS_STATUS_SUCCESS)
        return plan;
    cublas_lt_free(plan);
    return NULL;
}

void cublas_lt_free(lt_plan *plan)
{
    cublasLtMatrixLayout_t layouts[] = {plan->left, plan->right, plan->other, plan->result};
    for (int i = 0; i < 4; i++)
        if (layouts[i])
            cublasLtMatrixLayoutDestroy(layouts[i]);
    if (plan->desc)
        cublasLtMatmulDescDestroy(plan->desc);
    free(plan);
}

static cublasStatus_t ask(session *s, lt_plan *plan)
{
    cublasLtMatmulPreference_t preference;
    size_t limit = s->cuda.workspace_limit;
    int engines = s->job->setting->engines;
    int most = engines > 0 ? engines : engines < 0 ? CUBLAS_MOST_ALGORITHMS : CUBLAS_USUAL_ALGORITHMS;
    cublasLtMatrixLayout_t added = plan->other ? plan->other : plan->result;
    TRY(cublasLtMatmulPreferenceCreate(&preference));
    cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                                 &limit, sizeof limit);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulAlgoGetHeuristic(s->lt, plan->desc, plan->left, plan->right, added, plan->result,
                                                preference, most, plan->algorithm, &plan->n);
    cublasLtMatmulPreferenceDestroy(preference);
    return status == CUBLAS_STATUS_SUCCESS && !plan->n ? CUBLAS_STATUS_NOT_SUPPORTED : status;
}

/* An algorithm is its configuration: numbers of the library's own lists. What is 0 is left out. */
void cublas_lt_name(const cublasLtMatmulAlgo_t *algorithm, char *out, size_t size)
{
    static const struct {
        cublasLtMatmulAlgoConfigAttributes_t what;
        const char *name;
        size_t size;
    } PARTS[] = {
        {CUBLASLT_ALGO_CONFIG_TILE_ID, "tile", 4},          {CUBLASLT_ALGO_CONFIG_STAGES_ID, "stages", 4},
        {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, "splitk", 4},     {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, "reduction", 4},
        {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, "swizzle", 4}, {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, "custom", 4},
        {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, "inner", 2},  {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, "cluster", 2},
    };
    int32_t id = -1;
    size_t written, n;
    cublasLtMatmulAlgoConfigGetAttribute(algorithm, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &written);
    n = (size_t)snprintf(out, size, ":algo=%d", id);
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS && n < size; i++) {
        uint16_t small = 0;
        uint32_t v = 0;
        void *to = PARTS[i].size == 2 ? (void *)&small : (void *)&v;
        if (cublasLtMatmulAlgoConfigGetAttribute(algorithm, PARTS[i].what, to, PARTS[i].size, &written) !=
            CUBLAS_STATUS_SUCCESS)
            continue;
        if (v + small)
            n += (size_t)snprintf(out + n, size - n, ",%s=%u", PARTS[i].name, v + small);
    }
}

/* What a program gets that asks for nothing. */
static lt_form usual_form(const types *t)
{
    return t->left == CUDA_R_4F_E2M1 ? LT_BLOCKS : LT_PLAIN;
}

static void offer_all(const way *w, session *s, lt_plan *plan, const char *base, const product *p, const types *t,
                      const char *layout, const char *math, bz_variant_list *list)
{
    char name[160];
    for (int i = 0; i < plan->n; i++) {
        if (plan->algorithm[i].state != CUBLAS_STATUS_SUCCESS)
            continue;
        size_t n = (size_t)snprintf(name, sizeof name, "%s", base);
        cublas_lt_name(&plan->algorithm[i].algo, name + n, sizeof name - n);
        call *c = cublas_offer(w, s, p, t, layout, math, name, !i && plan->form == usual_form(t), list);
        c->lt = plan;
        c->index = i;
        c->workspace = plan->algorithm[i].workspaceSize;
    }
}

static int put_scale(session *s)
{
    static const float ONE = 1;
    if (!s->scale && bz_cuda_alloc(sizeof ONE, &s->scale, NULL))
        return -1;
    return cudaMemcpy(s->scale, &ONE, sizeof ONE, cudaMemcpyHostToDevice) == cudaSuccess ? 0 : -1;
}

/* Scales of the larger factor's blocks, which do for both: all are 1. They come in tiles of 128 by 4. */
static int put_blocks(session *s, const product *p, bz_cuda_blocks by)
{
    enum { BLOCKS = 4, WIDTH = 128 };
    int64_t width = p->rows > p->columns ? p->rows : p->columns, deep = by.length * BLOCKS;
    size_t n = (size_t)((width + WIDTH - 1) / WIDTH * WIDTH * ((p->depth + deep - 1) / deep) * BLOCKS);
    if (s->blocks) /* other ways of the same product have as many, and point to them */
        return 0;
    return bz_cuda_alloc(n, &s->blocks, NULL) || cudaMemset(s->blocks, by.one, n) != cudaSuccess ? -1 : 0;
}

/* Blocks lie along the depth, and a result of 8-bit floats would have its own. */
static bool has_form(const product *p, const types *t, lt_form form)
{
    bool blocks = p->left.trans && !p->right.trans && p->batch == 1 && !cublas_is_f8(t->result);
    if (form == LT_BLOCKS)
        return blocks && cublas_is_scaled(t->left);
    return form == LT_FAST ? cublas_is_f8(t->left) : usual_form(t) == LT_PLAIN;
}

/* Where the library refuses, one variant is left to say so. Programs ask for fast sums of 8-bit floats by default. */
void cublas_enumerate_lt(const way *w, session *s, const product *p, const types *t, const char *layout,
                         const char *math, bz_variant_list *list)
{
    static const char *const SUFFIX[LT_FORMS] = {"", "+fast", "+blocks"};
    char base[64];
    matrix bias = p->bias, kept = p->kept; /* the same memory as the variant will get */
    bool placed =
        !cublas_upload(s, &bias, NULL) && !cublas_upload(s, &kept, NULL) && (!cublas_is_f8(t->left) || !put_scale(s));
    for (lt_form form = 0; form < LT_FORMS; form++) {
        cublasStatus_t status = CUBLAS_STATUS_ALLOC_FAILED;
        if (!has_form(p, t, form))
            continue;
        if (form == LT_BLOCKS)
            placed &= !put_blocks(s, p, bz_cuda_blocks_of(t->w));
        lt_memory memory = {bias.data, kept.data, s->scale, s->blocks};
        lt_plan *plan = placed ? cublas_lt_plan(s->job->problem, p, t, memory, form, &status) : NULL;
        if (plan) {
            BZ_ADD(s->plans, s->n_plans) = plan;
            status = ask(s, plan);
        }
        if (plan && s->job->setting->engines < 0 && cublas_lt_walk(s->lt, plan, t, s->cuda.workspace_limit))
            status = CUBLAS_STATUS_SUCCESS;
        snprintf(base, sizeof base, "%s%s%s", w->name, SUFFIX[form], p->folded ? "+folded" : "");
        if (status == CUBLAS_STATUS_SUCCESS)
            offer_all(w, s, plan, base, p, t, layout, math, list);
        else
            cublas_offer(w, s, p, t, layout, math, base, form == usual_form(t), list)->refused = status;
    }
}

/* What is added lies where the result does, if nothing is; a result of another type adds nothing at all. */
cublasStatus_t cublas_run_lt(call *c)
{
    const product *p = c->p;
    const lt_plan *plan = c->lt;
    const void *added = p->other.operand >= 0 ? p->other.data : plan->other ? NULL : p->result.data;
    return cublasLtMatmul(c->s->lt, plan->desc, &c->alpha, p->left.data, plan->left, p->right.data, plan->right,
                          &c->beta, added, plan->other ? plan->other : plan->result, p->result.data, plan->result,
                          &plan->algorithm[c->index].algo, c->s->cuda.workspace, c->workspace, c->s->cuda.stream);
}
