/* Values of small tensors: what the eval rules share. Private to modelproc/. */
#ifndef BZ_EVAL_H
#define BZ_EVAL_H

#include "modelproc/op.h"

/* Room for the n values of result k, integers or reals as `like` has them; NULL when there are too
 * many to follow. They count as known at once. */
typedef struct {
    int64_t *i;
    double *r;
    int64_t n;
} values;
bool eval_room(call *c, int k, bool real, int64_t n, values *v);

/* Row-major strides of a shape without symbols; false when it has any. */
bool eval_strides(const bz_type *t, int64_t *strides);

/* Result k[i…] = from[base + sum(i * stride)]: views, slices, transpositions, broadcasts. */
int eval_strided(call *c, int k, const data *from, int64_t base, const int64_t *strides);

/* Whether each dimension of the operand is the result's or 1: old operator sets let files claim else. */
bool eval_fits(const bz_type *operand, const bz_type *result);

/* Where the element at `linear` of a shape lies in an operand that fits and is broadcast to it. */
int64_t eval_broadcast_at(const bz_type *operand, const bz_type *result, int64_t linear);

int eval_same(call *c); /* the values of operand 0 under a new shape */

#endif
