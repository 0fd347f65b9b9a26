/* Small things that rules of several families share. Private to modelproc/. */
#ifndef BZ_RULE_H
#define BZ_RULE_H

#include "modelproc/op.h"

#include <string.h>

/* Counts saturate: a price that does not fit is as good as infinite. Negative ones are unknown, thus 0. */
static inline int64_t count_mul(int64_t a, int64_t b)
{
    int64_t product;
    if (a <= 0 || b <= 0)
        return 0;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX / 4 : product;
}

static inline int64_t count_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX / 4 : sum;
}

/* Operations of transforms of length n by split radix, the fewest that libraries need: 22 for eight real numbers, 56 for complex ones. Between
 * powers of two that of the power below counts. */
static inline int64_t fft_flops(int64_t n, int64_t transforms, bool real)
{
    int log = 0;
    if (n < 2 || n > INT64_MAX >> 9)
        return 0;
    while (n >> (log + 1))
        log++;
    int64_t p = (int64_t)1 << log;
    return count_mul(real ? 2 * p * log - 4 * p + 6 : 4 * p * log - 6 * p + 8, transforms);
}

/* Index from the end: last_dim(t, 1) is the last dimension; 1 where there are not so many. */
static inline bz_dim last_dim(const bz_type *t, int from_end)
{
    return t && t->rank >= from_end ? t->dims[t->rank - from_end] : 1;
}

/* The only element of operand k, if it is known to be a number. */
static inline bool in_number(call *c, int k, int64_t *v)
{
    int64_t n;
    const int64_t *i = in_ints(c, k, &n);
    if (!i || n != 1 || bz_is_symbol(i[0]))
        return false;
    *v = i[0];
    return true;
}

/* The dimensions of a scalar are NULL, which memcpy must not see. */
static inline void copy_dims(bz_dim *to, const bz_type *t)
{
    if (t->rank > 0)
        memcpy(to, t->dims, (size_t)t->rank * sizeof *to);
}

/* A symbol fits everything. */
static inline bool dims_fit(bz_dim a, bz_dim b)
{
    return a == b || bz_is_symbol(a) || bz_is_symbol(b);
}

/* The better known one of two dimensions that are equal in every valid model. */
static inline bz_dim dim_same(bz_dim a, bz_dim b)
{
    return bz_is_symbol(a) ? b : a;
}

/* Fails when the data type attribute names no type. */
static inline int attr_dtype(call *c, const char *name, bz_dtype otherwise, bz_dtype *t)
{
    int64_t v = attr_int(c, name, otherwise);
    *t = otherwise;
    if (v < 0 || v >= BZ_N_DTYPES)
        return call_fail(c, "attribute %s is %lld, which is no data type", name, (long long)v);
    *t = v ? (bz_dtype)v : otherwise;
    return 0;
}

static inline int attr_length(const call *c, const char *name)
{
    const bz_attr *a = bz_node_attr(c->node, name);
    return !a                                                      ? 0
           : a->kind >= BZ_ATTR_FLOATS                             ? a->n
           : a->kind == BZ_ATTR_TENSOR && a->tensor->n < INT32_MAX ? (int)a->tensor->n
                                                                   : 0;
}

#endif
