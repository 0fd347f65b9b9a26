/* learned: residuals over problems, by kernel ridge regression. Private to predict/. */
#ifndef BZ_PREDICT_LEARNED_H
#define BZ_PREDICT_LEARNED_H

#include "predict/predict.h"

/* Wider vectors, but no fused multiply-add: the same sums on every processor. */
#if defined __x86_64__ && defined __has_attribute
#if __has_attribute(target_clones)
#define BZ_WIDE __attribute__((target_clones("avx2", "default")))
#endif
#endif
#ifndef BZ_WIDE
#define BZ_WIDE
#endif

/* Of one kind of problem: f(x) = mean + sum of weight[i] · kernel(x, point[i]), for several machines at once. */
typedef struct bz_learned {
    int n, machines;
    const bz_shape **point; /* [n] */
    double *weight;         /* [n * machines] */
    double *mean;           /* [machines] */
    int *trained;           /* [machines]: records that it rests on */
    double constant;        /* of the kernel: how much all residuals of the kind are alike */
    double squares;         /* of one machine: of what `judged` records are off by, each told by the others */
    int judged;
} bz_learned;

/* y[i * machines + m]: residual of shape[i] on machine m; NAN: no record. `mean`: NULL for that of each machine's residuals. */
void bz_learned_fit(const bz_shape *const *shape, const double *y, int n, int machines, const double *mean,
                    double constant, double noise, bz_arena *arena, bz_learned *out);

/* out[m]: the residual on each machine. */
void bz_learned_at(const bz_learned *l, const bz_shape *s, double *out);

/* The most that a point of these tells of the shape, 0 to 1. */
double bz_learned_nearest(const bz_learned *l, const bz_shape *s);

/* How much a residual of one shape tells of another's of its kind, 0 to 1. */
double bz_learned_alike(const bz_shape *a, const bz_shape *b);

/* Cholesky factor of a symmetric matrix in place, and solving with it. false: not positive definite. */
bool bz_cholesky(double *a, int n);
void bz_cholesky_solve(const double *factor, int n, double *b);

#endif
