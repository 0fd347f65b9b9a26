/* Elements of any data type: in double precision, in other types, in other places. */
#include "runtime/loops/elements.h"

#include "runtime/values.h"

#include <math.h>
#include <string.h>

void bz_elements_read(bz_dtype t, const void *from, int64_t at, int64_t stride, int64_t n, double *out)
{
#define EACH(type)                                                                                                     \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        out[i] = (double)((const type *)from)[at + i * stride];                                                        \
    break
    float some[BZ_ELEMENTS_BLOCK];
    int64_t size = bz_dtype_bits(t) / 8;
    switch (t) {
    case BZ_F32:
        EACH(float);
    case BZ_F64:
        EACH(double);
    case BZ_I64:
        EACH(int64_t);
    case BZ_I32:
        EACH(int32_t);
    case BZ_I16:
        EACH(int16_t);
    case BZ_I8:
        EACH(int8_t);
    case BZ_U64:
        EACH(uint64_t);
    case BZ_U32:
        EACH(uint32_t);
    case BZ_U16:
        EACH(uint16_t);
    case BZ_U8:
    case BZ_BOOL:
        EACH(uint8_t);
    default:
        if (stride == 1)
            bz_values_decode(t, (const char *)from + at * size, some, n);
        for (int64_t i = 0; i < n && stride != 1; i++)
            bz_values_decode(t, (const char *)from + (at + i * stride) * size, &some[i], 1);
        for (int64_t i = 0; i < n; i++)
            out[i] = (double)some[i];
    }
#undef EACH
}

static int64_t whole(double v)
{
    return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : v == v ? (int64_t)v : 0;
}

void bz_elements_write(bz_dtype t, void *to, int64_t at, int64_t stride, int64_t n, const double *v)
{
#define EACH(type, value)                                                                                              \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((type *)to)[at + i * stride] = (type)(value);                                                                 \
    break
    float some[BZ_ELEMENTS_BLOCK];
    int64_t size = bz_dtype_bits(t) / 8;
    switch (t) {
    case BZ_F32:
        EACH(float, v[i]);
    case BZ_F64:
        EACH(double, v[i]);
    case BZ_I64:
        EACH(int64_t, whole(v[i]));
    case BZ_U64:
        EACH(uint64_t, v[i] >= 0x1p63 && v[i] < 0x1p64 ? (uint64_t)v[i] : (uint64_t)whole(v[i]));
    case BZ_I32: /* f32 would round it */
        EACH(int32_t, whole(v[i]));
    case BZ_I16:
        EACH(int16_t, whole(v[i]));
    case BZ_U16:
        EACH(uint16_t, whole(v[i]));
    case BZ_U32:
        EACH(uint32_t, whole(v[i]));
    case BZ_BOOL:
        EACH(uint8_t, v[i] != 0);
    default:
        for (int64_t i = 0; i < n; i++)
            some[i] = (float)(bz_dtype_is_int(t) ? trunc(v[i]) : v[i]);
        if (stride == 1)
            bz_values_encode(t, some, (char *)to + at * size, n);
        for (int64_t i = 0; i < n && stride != 1; i++)
            bz_values_encode(t, &some[i], (char *)to + (at + i * stride) * size, 1);
    }
#undef EACH
}

double bz_element_load(bz_dtype t, const void *from, int64_t i)
{
    double v;
    bz_elements_read(t, from, i, 1, 1, &v);
    return v;
}

void bz_element_store(bz_dtype t, void *to, int64_t i, double v)
{
    bz_elements_write(t, to, i, 1, 1, &v);
}

void bz_elements_copy(const char *x, int64_t sx, char *y, int64_t sy, int64_t n, int64_t size)
{
#define EACH(size)                                                                                                     \
    if (sx == 2 && sy == 1) /* becomes vectors, as every second pixel is common */                                     \
        for (int64_t i = 0; i < n; i++)                                                                                \
            memcpy(y + i * (size), x + 2 * i * (size), size);                                                          \
    else                                                                                                               \
        for (int64_t i = 0; i < n; i++)                                                                                \
            memcpy(y + i * sy * (size), x + i * sx * (size), size);                                                    \
    break
    switch (size) {
    case 1:
        EACH(1);
    case 2:
        EACH(2);
    case 4:
        EACH(4);
    default:
        EACH(8);
    }
#undef EACH
}

void bz_elements_convert(const bz_kernels *kernels, bz_dtype from, const void *x, int64_t at_x, int64_t sx, bz_dtype to,
                         void *y, int64_t at_y, int64_t sy, int64_t n)
{
    double block[BZ_ELEMENTS_BLOCK];
    float some[BZ_ELEMENTS_BLOCK];
    bool floats = sx == 1 && sy == 1 && bz_kernels_take(from) && bz_kernels_take(to);
    const char *in = (const char *)x + at_x * bz_dtype_bits(from) / 8;
    char *out = (char *)y + at_y * bz_dtype_bits(to) / 8;
    for (int64_t i = 0; i < n; i += BZ_ELEMENTS_BLOCK) {
        int64_t k = n - i < BZ_ELEMENTS_BLOCK ? n - i : BZ_ELEMENTS_BLOCK;
        if (!floats) {
            bz_elements_read(from, x, at_x + i * sx, sx, k, block);
            bz_elements_write(to, y, at_y + i * sy, sy, k, block);
            continue;
        }
        const float *v = from == BZ_F32 ? (const float *)(const void *)in + i : some;
        float *w = to == BZ_F32 ? (float *)(void *)out + i : some;
        if (from != BZ_F32)
            kernels->widen(from, in + i * bz_dtype_bits(from) / 8, w, k);
        if (to != BZ_F32)
            kernels->narrow(to, v, out + i * bz_dtype_bits(to) / 8, k);
    }
}

void bz_elements_repeat(const char *x, char *y, int64_t n, int64_t size)
{
#define EACH(type)                                                                                                     \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((type *)(void *)y)[i] = *(const type *)(const void *)x;                                                       \
    break
    switch (size) {
    case 1:
        EACH(uint8_t);
    case 2:
        EACH(uint16_t);
    case 4:
        EACH(uint32_t);
    default:
        EACH(uint64_t);
    }
#undef EACH
}
