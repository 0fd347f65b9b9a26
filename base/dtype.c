/* The data types of ONNX, one row each. */
#include "base/dtype.h"

typedef enum { OTHER, FLOAT, INT } family;

static const struct {
    const char *name;
    int bits;
    family family;
} TYPES[BZ_N_DTYPES] = {
    [BZ_UNDEFINED] = {"?", 0, OTHER},
    [BZ_F32] = {"f32", 32, FLOAT},
    [BZ_U8] = {"u8", 8, INT},
    [BZ_I8] = {"i8", 8, INT},
    [BZ_U16] = {"u16", 16, INT},
    [BZ_I16] = {"i16", 16, INT},
    [BZ_I32] = {"i32", 32, INT},
    [BZ_I64] = {"i64", 64, INT},
    [BZ_STRING] = {"string", 0, OTHER},
    [BZ_BOOL] = {"bool", 8, OTHER},
    [BZ_F16] = {"f16", 16, FLOAT},
    [BZ_F64] = {"f64", 64, FLOAT},
    [BZ_U32] = {"u32", 32, INT},
    [BZ_U64] = {"u64", 64, INT},
    [BZ_C64] = {"c64", 64, OTHER},
    [BZ_C128] = {"c128", 128, OTHER},
    [BZ_BF16] = {"bf16", 16, FLOAT},
    [BZ_F8E4M3] = {"f8e4m3", 8, FLOAT},
    [BZ_F8E4M3FNUZ] = {"f8e4m3fnuz", 8, FLOAT},
    [BZ_F8E5M2] = {"f8e5m2", 8, FLOAT},
    [BZ_F8E5M2FNUZ] = {"f8e5m2fnuz", 8, FLOAT},
    [BZ_U4] = {"u4", 4, INT},
    [BZ_I4] = {"i4", 4, INT},
    [BZ_F4E2M1] = {"f4e2m1", 4, FLOAT},
    [BZ_F8E8M0] = {"f8e8m0", 8, FLOAT},
    [BZ_U2] = {"u2", 2, INT},
    [BZ_I2] = {"i2", 2, INT},
};

const char *bz_dtype_name(bz_dtype t)
{
    return t < BZ_N_DTYPES ? TYPES[t].name : "?";
}

int bz_dtype_bits(bz_dtype t)
{
    return t < BZ_N_DTYPES ? TYPES[t].bits : 0;
}

bool bz_dtype_is_float(bz_dtype t)
{
    return t < BZ_N_DTYPES && TYPES[t].family == FLOAT;
}

bool bz_dtype_is_int(bz_dtype t)
{
    return t < BZ_N_DTYPES && TYPES[t].family == INT;
}
