/* Shapes that several families share: windows that slide, and products of matrices. Private to
 * modelproc/. */
#ifndef BZ_GEOMETRY_H
#define BZ_GEOMETRY_H

#include "modelproc/op.h"

/* Convolution of x [N, C, …] with w [M, C / group, k…]: reads the node's attributes, fills
 * dims[x->rank], notes stride, pad, dilation, group. */
int conv_shape(call *c, const bz_type *x, const bz_type *w, bz_dim *dims);
int conv_grouped(call *c, const bz_type *x, const bz_type *w, int64_t group,
                 bz_dim *dims); /* whatever the node says of groups */
int64_t conv_macs(const bz_type *w, const bz_type *y);

/* Pooling of x: likewise; notes kernel, stride, pad, dilation, and what else matters. */
int pool_shape(call *c, const bz_type *x, bz_dim *dims);
rule shape_conv, shape_pool, shape_global_pool;
costs cost_conv, cost_pool;

/* Numpy's matmul. */
int matmul_shape(call *c, const bz_type *a, const bz_type *b, int *rank, bz_dim *dims);
int64_t matmul_macs(const bz_type *a, const bz_type *y);
costs cost_matmul; /* of operand 0 */

/* Attention of q, k, v (operands 0 to 2) as ai.onnx has it. A row whose arg is not 0 trains: its second result are
 * statistics, and operands behind the mask are no caches. */
rule attention_shape;
costs attention_cost;
int64_t attention_scores(call *c, int64_t *size, int64_t *v_size); /* how many, and what makes one; 0: not known */

#endif
