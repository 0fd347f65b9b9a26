#include "tests/standin/product.h"

#include "runtime/values.h"
#include "tests/standin/record.h"

static const struct {
    cudaDataType_t type;
    bz_dtype dtype;
    const char *name;
} TYPES[] = {
    {CUDA_R_32F, BZ_F32, "f32"},
    {CUDA_R_64F, BZ_F64, "f64"},
    {CUDA_R_16F, BZ_F16, "f16"},
    {CUDA_R_16BF, BZ_BF16, "bf16"},
    {CUDA_R_8I, BZ_I8, "i8"},
    {CUDA_R_8F_E4M3, BZ_F8E4M3, "f8e4m3"},
    {CUDA_R_8F_E5M2, BZ_F8E5M2, "f8e5m2"},
    {CUDA_R_4F_E2M1, BZ_F4E2M1, "f4e2m1"},
    {CUDA_R_32I, BZ_I32, "i32"},
};

static int type_of(cudaDataType_t type)
{
    int i = 0;
    while (i < 8 && TYPES[i].type != type)
        i++;
    return i;
}

const char *standin_type_name(cudaDataType_t type)
{
    return TYPES[type_of(type)].name;
}

size_t standin_bytes_of(cudaDataType_t type)
{
    return (size_t)bz_dtype_bits(TYPES[type_of(type)].dtype) / 8;
}

double standin_get(const void *from, cudaDataType_t type, int64_t i)
{
    float v;
    if (type == CUDA_R_64F)
        return ((const double *)from)[i];
    if (type == CUDA_R_32I)
        return ((const int32_t *)from)[i];
    bz_dtype dtype = TYPES[type_of(type)].dtype;
    float two[2];
    if (dtype == BZ_F4E2M1) {
        bz_values_decode(dtype, (const char *)from + i / 2, two, 2);
        return (double)two[i % 2];
    }
    bz_values_decode(dtype, (const char *)from + (size_t)i * standin_bytes_of(type), &v, 1);
    return (double)v;
}

static void put(void *to, cudaDataType_t type, int64_t i, double value)
{
    float v = (float)value;
    if (type == CUDA_R_64F)
        ((double *)to)[i] = value;
    else if (type == CUDA_R_32I)
        ((int32_t *)to)[i] = (int32_t)value;
    else
        bz_values_encode(TYPES[type_of(type)].dtype, &v, (char *)to + (size_t)i * standin_bytes_of(type), 1);
}

const char *standin_compute_name(cublasComputeType_t t)
{
    static const struct {
        cublasComputeType_t type;
        const char *name;
    } NAMES[] = {
        {CUBLAS_COMPUTE_32F, "32f"},
        {CUBLAS_COMPUTE_32F_PEDANTIC, "32f_pedantic"},
        {CUBLAS_COMPUTE_32F_FAST_TF32, "32f_fast_tf32"},
        {CUBLAS_COMPUTE_32F_FAST_16F, "32f_fast_16f"},
        {CUBLAS_COMPUTE_32F_FAST_16BF, "32f_fast_16bf"},
        {CUBLAS_COMPUTE_64F, "64f"},
        {CUBLAS_COMPUTE_16F, "16f"},
        {CUBLAS_COMPUTE_32I, "32i"},
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].type == t)
            return NAMES[i].name;
    return "?";
}

cudaDataType_t standin_scale_of(cublasComputeType_t t)
{
    return t == CUBLAS_COMPUTE_64F   ? CUDA_R_64F
           : t == CUBLAS_COMPUTE_32I ? CUDA_R_32I
           : t == CUBLAS_COMPUTE_16F ? CUDA_R_16F
                                     : CUDA_R_32F;
}

static double at(const factor *f, int64_t row, int64_t column)
{
    return standin_get(f->data, f->type, f->turned ? column + row * f->ld : row + column * f->ld);
}

static double finish(const epilogue *e, double v, int64_t row, int64_t column, cudaDataType_t type)
{
    unsigned what = (unsigned)e->what;
    if (what & CUBLASLT_EPILOGUE_BIAS)
        v += standin_get(e->bias, e->bias_type, row);
    if (e->kept)
        put(e->kept, type, row + column * e->kept_ld, v);
    if (what & CUBLASLT_EPILOGUE_RELU)
        v = v > 0 ? v : 0;
    return what & CUBLASLT_EPILOGUE_GELU ? bz_fn_value(BZ_FN_GELU_TANH, v, 0, 0) : v;
}

void standin_product(int64_t m, int64_t n, int64_t k, factor a, factor b, void *c, cudaDataType_t type, int64_t ldc,
                     epilogue e)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += at(&a, i, l) * at(&b, l, j);
            sum *= e.alpha;
            if (e.beta != 0)
                sum += e.beta * standin_get(e.added, type, i + j * e.added_ld);
            put(c, type, i + j * ldc, finish(&e, sum, i, j, type) * (e.scale != 0 ? e.scale : 1));
        }
    standin_computed = true;
}
