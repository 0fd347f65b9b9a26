/* kernels: the innermost loops of our own, over elements that lie one behind the other. kernels.c is compiled once for
 * each instruction set; the processor chooses which is run, so a program that was built here runs anywhere. All compute in
 * f32; other types are widened before and narrowed after, a block at a time. Private to runtime/. */
#ifndef BZ_KERNELS_H
#define BZ_KERNELS_H

#include "runtime/problem.h"

/* What only training needs. */
struct bz_update;
typedef struct bz_training_kernels {
    /* dx = fn'(x) dy, of_y: x is what the function gave; false where fn has no such kernel */
    bool (*slope)(bz_fn fn, bool of_y, float alpha, float beta, const float *x, const float *dy, float *dx, int64_t n);
    float (*dot)(const float *a, const float *b, int64_t n);
    /* With x̂ = (x - mean) factor and g = dy · scale (NULL: 1): sum[0] = Σ g, sum[1] = Σ g x̂ */
    void (*norm_sums)(const float *x, float mean, float factor, const float *dy, const float *scale, int64_t n,
                      float sum[2]);
    /* dx = (g · by - plain - x̂ along) factor */
    void (*norm_grad)(const float *x, float mean, float factor, const float *dy, const float *scale, float by,
                      float plain, float along, float *dx, int64_t n);
    /* dscale += dy x̂, dshift += dy (NULL: there is none) */
    void (*norm_add)(const float *x, float mean, float factor, const float *dy, float *dscale, float *dshift,
                     int64_t n);
    /* y (dy - sum) and dy - e^y sum; sum: one for all, or one for each */
    void (*softmax_grad)(const float *y, const float *dy, const float *sum, bool each, float *dx, int64_t n);
    void (*logsoftmax_grad)(const float *y, const float *dy, const float *sum, bool each, float *dx, int64_t n);
    void (*add_product)(const float *a, const float *b, float *sum, int64_t n); /* sum += a b */
    /* loss = -y where the label is of this class */
    void (*loss)(const int32_t *label, int32_t class, const float *y, float *loss, int64_t n);
    void (*mask)(const float *x, const uint8_t *mask, float factor, float *y, int64_t n); /* mask ? factor x : 0 */
    /* mask[i] is 0 with probability `drop` / 2^32, by the seed and the element's number at + i */
    void (*chance)(uint32_t drop, uint32_t seed, int64_t at, uint8_t *mask, int64_t n);
    /* An optimizer's step; adam's average squares lie in v. */
    void (*update)(const struct bz_update *u, float *w, const float *g, float *m, float *v, int64_t n);
} bz_training_kernels;

typedef struct bz_update {
    bz_rule rule;
    float rate, alpha, beta, decay, epsilon;
    float correct_m, correct_v; /* adam: 1 / (1 - alpha^step), 1 / (1 - beta^step) */
    bool nesterov;
} bz_update;

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

    const bz_training_kernels *training;
} bz_kernels;

/* Those for the best instruction set that this processor has. */
const bz_kernels *bz_kernels_best(void);

/* Of n values in double precision: what a reduction that sums makes of them, Σ (x - mean)², and Σ e^(x - most), which y keeps
 * unless it is NULL. */
double bz_kernels_sum(const bz_kernels *k, bz_fn fn, const float *x, int64_t n);
double bz_kernels_squares(const bz_kernels *k, const float *x, float mean, int64_t n);
double bz_kernels_exponentials(const bz_kernels *k, const float *x, float most, float *y, int64_t n);

/* Whether `widen` and `narrow` take the type, or it is f32. */
bool bz_kernels_take(bz_dtype t);

#endif
