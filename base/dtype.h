/* Data types of tensor elements: ONNX's own numbers and the names that keys, problems and records
 * use. */
#ifndef BZ_DTYPE_H
#define BZ_DTYPE_H

#include <stdbool.h>

typedef enum {
    BZ_UNDEFINED,
    BZ_F32,
    BZ_U8,
    BZ_I8,
    BZ_U16,
    BZ_I16,
    BZ_I32,
    BZ_I64,
    BZ_STRING,
    BZ_BOOL,
    BZ_F16,
    BZ_F64,
    BZ_U32,
    BZ_U64,
    BZ_C64,
    BZ_C128,
    BZ_BF16,
    BZ_F8E4M3,
    BZ_F8E4M3FNUZ,
    BZ_F8E5M2,
    BZ_F8E5M2FNUZ,
    BZ_U4,
    BZ_I4,
    BZ_F4E2M1,
    BZ_F8E8M0,
    BZ_U2,
    BZ_I2,
    BZ_N_DTYPES,
} bz_dtype;

const char *bz_dtype_name(bz_dtype t); /* "f32"; "?" for what we do not know */
int bz_dtype_bits(bz_dtype t);         /* of one element in memory; 0 for strings and unknown types */
bool bz_dtype_is_float(bz_dtype t);
bool bz_dtype_is_int(bz_dtype t); /* signed and unsigned, bool not */

#endif
