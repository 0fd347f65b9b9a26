/* The function of a loop over elements. Private to runtime/loops. */
#ifndef BZ_SCALAR_H
#define BZ_SCALAR_H

#include "runtime/replay.h"

typedef struct bz_scalar {
    double (*one)(double);
    double (*two)(double, double);
    double (*with)(double, double, double); /* one, and alpha and beta */
    bz_fn fn;
    double alpha, beta;
} bz_scalar;

bz_scalar bz_scalar_of(const bz_replay_loop *loop); /* nothing in it: there is no such function */

/* Of n numbers: v = f(v); y = f(a, b), where y may be one of them. */
void bz_scalar_one(const bz_scalar *f, double *v, int64_t n);
void bz_scalar_two(const bz_scalar *f, const double *a, const double *b, double *y, int64_t n);

#endif
