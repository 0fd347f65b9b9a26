/* A stand-in for cuBLASLt: descriptors recorded field by field, and products computed from nothing but them. The
 * heuristic names three algorithms, of which one is none; like the real one it has none for bytes that are not in the
 * order that tensor cores want. Besides these it has two algorithms with choices: 30 with many, which checks refuse where the
 * tile is odd or the depth is split in eight; 31 with none; and 32, which cannot be begun. */
#include "tests/standin/product.h"
#include "tests/standin/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What an opaque descriptor holds. It lives as long as its name. */
typedef struct desc {
    const void *key;
    cublasComputeType_t compute;
    cudaDataType_t scale, bias_type;
    bool turn_a, turn_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    const void *by[3]; /* of a, b and the result: a number in f32 */
    int mode[2];       /* or in another way, of a and b */
    void *kept;
    int64_t kept_ld, kept_step;
} desc;

typedef struct layout {
    const void *key;
    cudaDataType_t type;
    int64_t rows, columns, ld, step;
    int32_t batch;
} layout;

static desc descs[256];
static layout layouts[256];
static int n_descs, n_layouts;

/* The newest of that name: memory is used again. */
static desc *find_desc(const void *key)
{
    for (int i = n_descs; i--;)
        if (descs[i].key == key)
            return &descs[i];
    abort();
}

static layout *find_layout(const void *key)
{
    for (int i = n_layouts; i--;)
        if (layouts[i].key == key)
            return &layouts[i];
    abort();
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
    *h = standin_new("lt");
    n_descs = n_layouts = 0;
    standin_record("cublasLtCreate %s", standin_name(*h));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    standin_record("cublasLtDestroy %s", standin_name(h));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t scale)
{
    *d = standin_new("product");
    if (n_descs == 256)
        abort();
    descs[n_descs++] = (desc){*d, compute, scale, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    standin_record("cublasLtMatmulDescCreate %s compute=%s scale=%s", standin_name(*d), standin_compute_name(compute),
                   standin_type_name(scale));
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
    desc *own = find_desc(d);
    int number = 0;
    void *pointer = NULL;
    if (size > sizeof pointer)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(size == sizeof pointer ? (void *)&pointer : (void *)&number, v, size);
    switch (a) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
    case CUBLASLT_MATMUL_DESC_TRANSB:
        *(a == CUBLASLT_MATMUL_DESC_TRANSA ? &own->turn_a : &own->turn_b) = number == CUBLAS_OP_T;
        standin_record("    %s trans%c=%c", standin_name(d), a == CUBLASLT_MATMUL_DESC_TRANSA ? 'a' : 'b',
                       number == CUBLAS_OP_T ? 't' : 'n');
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        own->epilogue = (cublasLtEpilogue_t)number;
        standin_record("    %s epilogue=%d", standin_name(d), number);
        break;
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
        standin_record("    %s fast=%d", standin_name(d), size == 1 ? *(const int8_t *)v : -1);
        break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER: {
        int i = a == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER ? 0 : a == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER ? 1 : 2;
        own->by[i] = pointer;
        standin_record("    %s scale_%c=%s", standin_name(d), "abd"[i], standin_name(pointer));
        break;
    }
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
        own->mode[a == CUBLASLT_MATMUL_DESC_B_SCALE_MODE] = number;
        standin_record("    %s scale_mode_%c=%d", standin_name(d), a == CUBLASLT_MATMUL_DESC_B_SCALE_MODE ? 'b' : 'a',
                       number);
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        own->bias = pointer;
        standin_record("    %s bias=%s", standin_name(d), standin_name(pointer));
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        own->bias_type = (cudaDataType_t)number;
        standin_record("    %s bias_type=%s", standin_name(d), standin_type_name(own->bias_type));
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        own->kept = pointer;
        standin_record("    %s kept=%s", standin_name(d), standin_name(pointer));
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: {
        bool ld = a == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD;
        memcpy(ld ? &own->kept_ld : &own->kept_step, v, size);
        standin_record("    %s kept_%s=%lld", standin_name(d), ld ? "ld" : "step",
                       (long long)(ld ? own->kept_ld : own->kept_step));
        break;
    }
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t columns,
                                          int64_t ld)
{
    *l = standin_new("matrix");
    if (n_layouts == 256)
        abort();
    layouts[n_layouts++] = (layout){*l, type, (int64_t)rows, (int64_t)columns, ld, 0, 1};
    standin_record("cublasLtMatrixLayoutCreate %s %s rows=%llu columns=%llu ld=%lld", standin_name(*l),
                   standin_type_name(type), (unsigned long long)rows, (unsigned long long)columns, (long long)ld);
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
    layout *own = find_layout(l);
    if (a == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == sizeof own->batch) {
        memcpy(&own->batch, v, size);
        standin_record("    %s batch=%d", standin_name(l), own->batch);
    } else if (a == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == sizeof own->step) {
        memcpy(&own->step, v, size);
        standin_record("    %s step=%lld", standin_name(l), (long long)own->step);
    } else {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
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
    size_t limit;
    if (a != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES || size != sizeof limit)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&limit, v, sizeof limit);
    standin_record("    %s workspace=%zu", standin_name(p), limit);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t y, cublasLtMatmulPreference_t p, int wanted,
                                              cublasLtMatmulHeuristicResult_t *out, int *n)
{
    const desc *own = find_desc(d);
    standin_record("cublasLtMatmulAlgoGetHeuristic %s %s %s %s %s %s %s wanted=%d", standin_name(h), standin_name(d),
                   standin_name(a), standin_name(b), standin_name(c), standin_name(y), standin_name(p), wanted);
    *n = 0;
    if (standin_bytes_of(find_layout(a)->type) <= 1 && (!own->turn_a || own->turn_b || find_layout(a)->ld % 16))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (*n = 0; *n < 3 && *n < wanted; ++*n) {
        out[*n] = (cublasLtMatmulHeuristicResult_t){.workspaceSize = (size_t)*n * 4096};
        out[*n].state = *n == 1 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
        out[*n].algo.data[0] = (uint64_t)(20 + *n);
    }
    return CUBLAS_STATUS_SUCCESS;
}

enum { MANY = 30, PLAIN = 31, MUTE = 32 };

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t h, cublasComputeType_t compute, cudaDataType_t scale,
                                        cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t y,
                                        int wanted, int *out, int *n)
{
    standin_record("cublasLtMatmulAlgoGetIds %s compute=%s scale=%s %s %s %s %s wanted=%d", standin_name(h),
                   standin_compute_name(compute), standin_type_name(scale), standin_type_name(a), standin_type_name(b),
                   standin_type_name(c), standin_type_name(y), wanted);
    for (*n = 0; *n < 3 && *n < wanted; ++*n)
        out[*n] = MANY + *n;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t h, cublasComputeType_t compute, cudaDataType_t scale,
                                      cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t y, int id,
                                      cublasLtMatmulAlgo_t *out)
{
    (void)h, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)y;
    *out = (cublasLtMatmulAlgo_t){.data = {(uint64_t)id}};
    return id == MUTE ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoCapAttributes_t a,
                                                 void *v, size_t size, size_t *written)
{
    static const uint32_t TILES[] = {1, 2, 4, 6}, STAGES[] = {0, 7};
    bool many = algo->data[0] == MANY;
    uint32_t one = a == CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX ? 2 : a == CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK ? 6 : 1;
    const void *from = a == CUBLASLT_ALGO_CAP_TILE_IDS     ? (const void *)TILES
                       : a == CUBLASLT_ALGO_CAP_STAGES_IDS ? (const void *)STAGES
                                                           : &one;
    *written = a == CUBLASLT_ALGO_CAP_TILE_IDS     ? sizeof TILES
               : a == CUBLASLT_ALGO_CAP_STAGES_IDS ? sizeof STAGES
                                                   : sizeof one;
    one = many ? one : 0;
    if (!many && from != &one)
        *written = 0;
    if (v && size < *written)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (v)
        memcpy(v, from, *written);
    return CUBLAS_STATUS_SUCCESS;
}

/* Where the parts of a configuration lie, from the second word on. */
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t a,
                                                    const void *v, size_t size)
{
    if (size != 4 || a < CUBLASLT_ALGO_CONFIG_TILE_ID || a > CUBLASLT_ALGO_CONFIG_STAGES_ID)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy((char *)&algo->data[1] + 4 * ((int)a - CUBLASLT_ALGO_CONFIG_TILE_ID), v, size);
    return CUBLAS_STATUS_SUCCESS;
}

static uint32_t config_of(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t a)
{
    uint32_t v = 0;
    if (a >= CUBLASLT_ALGO_CONFIG_TILE_ID && a <= CUBLASLT_ALGO_CONFIG_STAGES_ID)
        memcpy(&v, (const char *)&algo->data[1] + 4 * ((int)a - CUBLASLT_ALGO_CONFIG_TILE_ID), sizeof v);
    return v;
}

/* The workspace is as large as the depth is split. */
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t y,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *out)
{
    uint32_t split = config_of(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
    (void)h, (void)d, (void)a, (void)b, (void)c, (void)y;
    if (config_of(algo, CUBLASLT_ALGO_CONFIG_TILE_ID) % 2 || split == 8)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (split > 1 && config_of(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) != 2)
        return CUBLAS_STATUS_INVALID_VALUE;
    out->workspaceSize = split * 512;
    return CUBLAS_STATUS_SUCCESS;
}

/* Of the second algorithm's parts each is told apart, the first one has a tile only. */
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t a, void *v, size_t size,
                                                    size_t *written)
{
    uint32_t id = (uint32_t)algo->data[0];
    uint32_t wide = a == CUBLASLT_ALGO_CONFIG_ID                   ? id
                    : id >= MANY                                   ? config_of(algo, a)
                    : id > 20 || a == CUBLASLT_ALGO_CONFIG_TILE_ID ? 10 + (uint32_t)a
                                                                   : 0;
    bool narrow = a == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID || a == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    if (size != (narrow ? 2 : 4))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(v, &wide, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
}

static factor factor_of(const layout *l, const void *data, bool turned, int64_t i)
{
    const char *own = (const char *)data + (size_t)(i * l->step) * standin_bytes_of(l->type);
    return (factor){own, l->type, turned, l->ld};
}

static bool is_f8(cudaDataType_t type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

/* Of blocks the last one's, which there has to be room for: all are alike. */
static double scale_of(const desc *d, int i, int64_t width, int64_t depth)
{
    if (i < 2 && d->mode[i] == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0) {
        int64_t last = (width + 127) / 128 * 128 * ((depth + 127) / 128) * 4 - 1;
        return ldexp(1, ((const uint8_t *)d->by[i])[last] - 127);
    }
    if (i < 2 && d->mode[i] == CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3)
        return standin_get(d->by[i], CUDA_R_8F_E4M3, (width + 127) / 128 * 128 * ((depth + 63) / 64) * 4 - 1);
    return d->by[i] ? standin_get(d->by[i], CUDA_R_32F, 0) : 1;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t al, const void *b, cublasLtMatrixLayout_t bl, const void *beta,
                              const void *c, cublasLtMatrixLayout_t cl, void *y, cublasLtMatrixLayout_t yl,
                              const cublasLtMatmulAlgo_t *algo, void *space, size_t size, cudaStream_t stream)
{
    const desc *own = find_desc(d);
    const layout *la = find_layout(al), *lb = find_layout(bl), *lc = find_layout(cl), *ly = find_layout(yl);
    epilogue e = {.alpha = standin_get(alpha, own->scale, 0),
                  .beta = standin_get(beta, own->scale, 0),
                  .bias = own->bias,
                  .bias_type = own->bias_type,
                  .added_ld = lc->ld,
                  .kept_ld = own->kept_ld,
                  .what = own->epilogue};
    standin_record("cublasLtMatmul %s %s alpha=%g %s:%s %s:%s beta=%g %s:%s -> %s:%s", standin_name(h), standin_name(d),
                   e.alpha, standin_name(al), standin_name(a), standin_name(bl), standin_name(b), e.beta,
                   standin_name(cl), standin_name(c), standin_name(yl), standin_name(y));
    standin_record("    algo=%llu workspace=%s,%zu %s", (unsigned long long)algo->data[0],
                   standin_name(size ? space : NULL), size, standin_name(stream));
    cudaDataType_t bias = ly->type == CUDA_R_8I                                                            ? CUDA_R_32F
                          : is_f8(ly->type) || (standin_bytes_of(la->type) <= 1 && ly->type == CUDA_R_32F) ? CUDA_R_16BF
                                                                                                           : ly->type;
    if (own->bias && own->bias_type != bias) /* as cublasLt.h says */
        return CUBLAS_STATUS_INVALID_VALUE;
    if (lc->type != (is_f8(ly->type) ? CUDA_R_16BF : ly->type) || (is_f8(ly->type) && c)) /* nothing of f8 is added */
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < 3; i++)
        if (own->by[i] && !is_f8(i < 2 ? la->type : ly->type) && (i == 2 || la->type != CUDA_R_4F_E2M1))
            return CUBLAS_STATUS_INVALID_VALUE;
    if (la->type == CUDA_R_4F_E2M1 && own->mode[0] != CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3) /* it has no other */
        return CUBLAS_STATUS_NOT_SUPPORTED;
    int64_t depth = own->turn_a ? la->rows : la->columns;
    if ((own->mode[0] || own->mode[1]) && (!own->turn_a || own->turn_b)) /* blocks lie along the depth */
        return CUBLAS_STATUS_NOT_SUPPORTED;
    e.alpha *= scale_of(own, 0, ly->rows, depth) * scale_of(own, 1, ly->columns, depth);
    e.scale = scale_of(own, 2, 0, 0);
    if (depth != (own->turn_b ? lb->columns : lb->rows) || (own->turn_a ? la->columns : la->rows) != ly->rows ||
        (own->turn_b ? lb->rows : lb->columns) != ly->columns)
        return CUBLAS_STATUS_INVALID_VALUE;
    bool keeps = (unsigned)own->epilogue & 128; /* rows and steps as cublasLt.h wants them */
    if (keeps && (!own->kept || own->kept_ld < ly->rows || own->kept_ld % 8 || own->kept_step % 8))
        return CUBLAS_STATUS_INVALID_VALUE;
    for (int64_t i = 0; i < ly->batch; i++) {
        if (keeps)
            e.kept = (char *)own->kept + (size_t)(i * own->kept_step) * standin_bytes_of(ly->type);
        e.added = factor_of(lc, c, false, i).data;
        standin_product(ly->rows, ly->columns, depth, factor_of(la, a, own->turn_a, i),
                        factor_of(lb, b, own->turn_b, i), (void *)factor_of(ly, y, false, i).data, ly->type, ly->ld, e);
    }
    return CUBLAS_STATUS_SUCCESS;
}
