/* kernels: the innermost loops of our own, over elements that lie one behind the other. kernels.c is compiled once for
 * each instruction set; the processor chooses which is run, so a program that was built here runs anywhere. All compute in
 * f32; other types are widened before and narrowed after, a block at a time. Private to runtime/. */
#ifndef BZ_KERNELS_H
#define BZ_KERNELS_H

#include "runtime/problem.h"

typedef struct bz_kernels {
    const char *name; /* "avx512": how the variant is called in records */

    /* y[i] = fn(x[i]); y may be x. False, and nothing was done, where the function is none of one value. */
    bool (*unary)(bz_fn fn, float alpha, float beta, const float *x, float *y, int64_t n);
    /* y[i] = fn(a[i · sa], b[i · sb]) with steps of 0 or 1; y may be a or b. A comparison gives 0 or 1. */
    bool (*binary)(bz_fn fn, const float *a, int64_t sa, const float *b, int64_t sb, float *y, int64_t n);
    /* y[i] = c[i] ? a[i · sa] : b[i · sb] */
    void (*select)(const uint8_t *c, const float *a, int64_t sa, const float *b, int64_t sb, float *y, int64_t n);

    /* What a reduction makes of n values (a sum before it is divided, squares before their root), in f32: callers add up
     * blocks of some thousand in double precision. */
    float (*reduce)(bz_fn fn, const float *x, int64_t n);
    /* y[i] takes in x[i] as one more value of the reduction. */
    void (*reduce_into)(bz_fn fn, const float *x, float *y, int64_t n);
    float (*deviation)(const float *x, float mean, int64_t n); /* Σ (x - mean)² */
    /* y = (x - mean) · factor · scale + shift; where scale or shift is NULL it is left out */
    void (*normalize)(const float *x, float mean, float factor, const float *scale, const float *shift, float *y,
                      int64_t n);
    float (*exp_minus)(const float *x, float most, float *y,
                       int64_t n); /* y = e^(x - most); returns Σ y. y NULL: not kept */
    void (*slope)(const float *x, const float *slope, float *y, int64_t n); /* y = x > 0 ? x : slope · x */

    /* y[r · ldy + c] = x[c · ldx + r], elements of `size` bytes: 1, 2, 4 or 8 */
    void (*transpose)(const void *x, int64_t ldx, void *y, int64_t ldy, int64_t rows, int64_t columns, int size);

    /* Between f32 and a narrower type; false where it is none of f16, bf16, u8, i8 and bool. Integers lose their
     * fraction and saturate. */
    bool (*widen)(bz_dtype t, const void *from, float *to, int64_t n);
    bool (*narrow)(bz_dtype t, const float *from, void *to, int64_t n);
} bz_kernels;

/* Those for the best instruction set that this processor has. */
const bz_kernels *bz_kernels_best(void);

/* Whether `widen` and `narrow` take the type, or it is f32. */
bool bz_kernels_take(bz_dtype t);

#endif
