/* Convolutions and products of matrices. */
#include "runtime/onednn/lower.h"

#include <string.h>

int dnn_conv_weights(const bz_problem *p, int64_t *dims, int64_t *strides)
{
    bool transposed = p->kind == BZ_PROBLEM_DECONV;
    const int64_t *w = p->conv.w, g = p->conv.group;
    int rank = bz_extent_rank(w), at = g > 1;
    int64_t window = bz_extent_count(w + 2), out = transposed ? w[1] : w[0] / g, in = transposed ? w[0] / g : w[1];
    dims[0] = g;
    strides[0] = out * in * window;
    dims[at] = out;
    strides[at] = transposed ? window : in * window;
    dims[at + 1] = in;
    strides[at + 1] = transposed ? out * window : window;
    dnn_row_major(rank - 2, w + 2, strides + at + 2);
    memcpy(dims + at + 2, w + 2, (size_t)(rank - 2) * sizeof *dims);
    return rank + at;
}

dnn_window dnn_conv_window(const bz_problem *p)
{
    return dnn_window_of(bz_extent_rank(p->conv.x) - 2, p->conv.stride, NULL, p->conv.dilation, p->conv.pad);
}

dnnl_status_t dnn_by_both(stage *st, dnn_by_algorithm *make, const dnn_md *md, const dnn_window *window)
{
    static const dnnl_alg_kind_t ALGORITHMS[] = {dnnl_convolution_direct, dnnl_convolution_winograd};
    dnnl_status_t first = dnnl_success;
    for (int i = 0; i < 2; i++) {
        dnn_impls more = {.engine = st->impls.engine, .attr = st->impls.attr, .training = st->impls.training};
        dnnl_status_t status = make(&more, ALGORITHMS[i], md, window);
        first = i ? first : status;
        for (int k = 0; k < more.n; k++)
            if (st->impls.n < DNN_MAX_IMPLS)
                st->impls.pd[st->impls.n++] = more.pd[k];
            else
                dnnl_primitive_desc_destroy(more.pd[k]);
    }
    return st->impls.n ? dnnl_success : first;
}

static dnnl_status_t make_conv(dnn_impls *out, dnnl_alg_kind_t alg, const dnn_md *md, const dnn_window *window)
{
    return dnn_convolution(out, false, alg, md[0], md[1], md[2], md[3], window);
}

static dnnl_status_t make_deconv(dnn_impls *out, dnnl_alg_kind_t alg, const dnn_md *md, const dnn_window *window)
{
    dnnl_alg_kind_t inverse = alg == dnnl_convolution_direct ? dnnl_deconvolution_direct : dnnl_deconvolution_winograd;
    return dnn_convolution(out, true, inverse, md[0], md[1], md[2], md[3], window);
}

static dnnl_status_t conv(lowering *l, bool sum)
{
    const bz_problem *p = l->p;
    int64_t y[DNN_MAX_RANK], dims[DNN_MAX_RANK], strides[DNN_MAX_RANK], end[BZ_PROBLEM_SPATIAL];
    int rank = dnn_shape(l, dnn_result(l), y), n = rank - 2, w_rank = dnn_conv_weights(p, dims, strides),
        bias = dnn_find(l, BZ_ROLE_BIAS);
    bool transposed = p->kind == BZ_PROBLEM_DECONV;
    dnn_md md[4] = {NULL};
    dnn_window window = dnn_conv_window(p);
    alternative *a = dnn_add_alternative(l, "", sum ? " +sum" : "", 1);
    stage *st = &a->stages[0];
    a->in_place = sum;
    /* the end pad of a deconvolution is less by what is added to its output */
    for (int i = 0; i < n; i++)
        end[i] = p->conv.pad[n + i] - (transposed ? p->conv.outpad[i] : 0);
    window.end = end;
    TRY(dnn_data(l, 0, rank, p->conv.x, true, &md[0]));
    TRY(dnn_weights(l, 1, true, w_rank, dims, strides, &md[1]));
    if (bias >= 0)
        TRY(dnn_fixed(l, bias, 1, &y[1], NULL, &md[2]));
    TRY(dnn_data(l, dnn_result(l), rank, y, true, &md[3]));
    dnn_bind_whole(l, st, DNNL_ARG_SRC, 0);
    dnn_bind(st, DNNL_ARG_WEIGHTS, 1, w_rank, dims, strides);
    if (bias >= 0)
        dnn_bind_whole(l, st, DNNL_ARG_BIAS, bias);
    dnn_bind_whole(l, st, DNNL_ARG_DST, dnn_result(l));
    TRY(dnn_attributes(l, st, sum, rank, y, bz_problem_scale(p)));
    dnnl_status_t status = dnn_by_both(st, transposed ? make_deconv : make_conv, md, &window);
    dnn_impls heuristic = {.engine = st->impls.engine, .attr = st->impls.attr, .training = st->impls.training};
    if (!transposed && make_conv(&heuristic, dnnl_convolution_auto, md, &window) == dnnl_success)
        snprintf(a->favourite, sizeof a->favourite, "%s", bz_onednn_impl_name(heuristic.pd[0]));
    dnn_impls_free(&heuristic);
    return status;
}

dnnl_status_t dnn_lower_conv(lowering *l)
{
    dnnl_status_t status = conv(l, false);
    if (!dnn_has_residual(l))
        return status;
    dnnl_status_t other = conv(l, true);
    return status == dnnl_success ? status : other;
}

/* A product of matrices. Where the second is constant and all is two-dimensional, the library has two
 * primitives for it, matmul and inner product, with different implementations. */
typedef struct product {
    int rank, a, b; /* operands */
    int64_t a_dims[DNN_MAX_RANK], a_strides[DNN_MAX_RANK], b_dims[DNN_MAX_RANK], b_strides[DNN_MAX_RANK];
    int64_t y_dims[DNN_MAX_RANK];
    bool constant;
} product;

static dnnl_status_t product_by(lowering *l, const product *m, bool inner, bool sum)
{
    int bias = dnn_find(l, BZ_ROLE_BIAS), r = m->rank;
    int64_t b_dims[DNN_MAX_RANK], b_strides[DNN_MAX_RANK], bias_dims[DNN_MAX_RANK];
    memcpy(b_dims, m->b_dims, sizeof b_dims);
    memcpy(b_strides, m->b_strides, sizeof b_strides);
    for (int i = 0; i < 2 && inner; i++) { /* inner product wants outputs first */
        b_dims[i] = m->b_dims[1 - i];
        b_strides[i] = m->b_strides[1 - i];
    }
    for (int i = 0; i < r; i++)
        bias_dims[i] = i == r - 1 ? m->y_dims[i] : 1;
    dnn_md a_md, b_md, bias_md = NULL, y_md;
    const char *suffix = sum ? " +sum" : "";
    alternative *alt = dnn_add_alternative(l, inner ? "inner_product " : m->constant ? "matmul " : "", suffix, 1);
    stage *st = &alt->stages[0];
    alt->in_place = sum;
    if (l->layout == ANY)
        TRY(dnn_data(l, m->a, r, m->a_dims, true, &a_md));
    else
        TRY(dnn_fixed(l, m->a, r, m->a_dims, m->a_strides, &a_md));
    TRY(dnn_weights(l, m->b, m->constant, r, b_dims, b_strides, &b_md));
    if (bias >= 0 && inner)
        TRY(dnn_fixed(l, bias, 1, &m->y_dims[r - 1], NULL, &bias_md));
    else if (bias >= 0)
        TRY(dnn_fixed(l, bias, r, bias_dims, NULL, &bias_md));
    TRY(dnn_data(l, dnn_result(l), r, m->y_dims, true, &y_md));
    dnn_bind(st, DNNL_ARG_SRC, m->a, r, m->a_dims, m->a_strides);
    dnn_bind(st, DNNL_ARG_WEIGHTS, m->b, r, b_dims, b_strides);
    if (bias >= 0)
        dnn_bind(st, DNNL_ARG_BIAS, bias, inner ? 1 : r, inner ? &m->y_dims[r - 1] : bias_dims, NULL);
    dnn_bind(st, DNNL_ARG_DST, dnn_result(l), r, m->y_dims, NULL);
    TRY(dnn_attributes(l, st, sum, r, m->y_dims, bz_problem_scale(l->p)));
    return inner ? dnn_inner_product(&st->impls, a_md, b_md, bias_md, y_md)
                 : dnn_matmul(&st->impls, a_md, b_md, bias_md, y_md);
}

static dnnl_status_t lower_product(lowering *l, const product *m)
{
    dnnl_status_t status = product_by(l, m, false, false), other = status;
    bool inner = m->rank == 2 && m->constant && m->a_strides[1] == 1;
    if (inner)
        other = product_by(l, m, true, false);
    status = status == dnnl_success ? status : other;
    if (dnn_has_residual(l)) {
        other = product_by(l, m, false, true);
        status = status == dnnl_success ? status : other;
        if (inner)
            product_by(l, m, true, true);
    }
    return status;
}

/* A batch of one is no batch: matmul is faster without that dimension. */
dnnl_status_t dnn_lower_gemm(lowering *l)
{
    int64_t b = l->p->gemm.batch, m = l->p->gemm.m, n = l->p->gemm.n, k = l->p->gemm.k;
    bool ta = l->p->gemm.transa, tb = l->p->gemm.transb;
    int skip = b == 1;
    product all = {
        .rank = 3,
        .a = 0,
        .b = 1,
        .constant = true,
        .a_dims = {b, m, k},
        .a_strides = {m * k, ta ? 1 : k, ta ? m : 1},
        .b_dims = {b, k, n},
        .b_strides = {k * n, tb ? 1 : n, tb ? k : 1},
        .y_dims = {b, m, n},
    };
    product used = all;
    used.rank = 3 - skip;
    for (int i = 0; i < used.rank; i++) {
        used.a_dims[i] = all.a_dims[i + skip];
        used.a_strides[i] = all.a_strides[i + skip];
        used.b_dims[i] = all.b_dims[i + skip];
        used.b_strides[i] = all.b_strides[i + skip];
        used.y_dims[i] = all.y_dims[i + skip];
    }
    return lower_product(l, &used);
}

/* y = A x as a product of a row and a matrix: yᵀ = xᵀ Aᵀ. */
dnnl_status_t dnn_lower_gemv(lowering *l)
{
    int64_t m = l->p->gemv.m, k = l->p->gemv.k;
    bool t = l->p->gemv.trans;
    return lower_product(l, &(product){
                                .rank = 2,
                                .a = 0,
                                .b = 1,
                                .constant = true,
                                .a_dims = {1, k},
                                .a_strides = {k, 1},
                                .b_dims = {k, m},
                                .b_strides = {t ? m : 1, t ? 1 : k},
                                .y_dims = {1, m},
                            });
}

static void strides_of(const int64_t *dims, int rank, bool transposed, int64_t *strides)
{
    dnn_row_major(rank, dims, strides);
    if (transposed)
        strides[rank - 2] = 1, strides[rank - 1] = dims[rank - 2];
}

dnnl_status_t dnn_lower_matmul(lowering *l)
{
    const bz_operand *y = &l->s->job->operand[dnn_result(l)];
    product m = {.rank = y->rank, .a = 0, .b = 1, .constant = l->p->matmul.constant};
    memcpy(m.a_dims, l->p->matmul.a, (size_t)y->rank * sizeof *m.a_dims);
    memcpy(m.b_dims, l->p->matmul.b, (size_t)y->rank * sizeof *m.b_dims);
    memcpy(m.y_dims, y->dim, (size_t)y->rank * sizeof *m.y_dims);
    strides_of(m.a_dims, y->rank, l->p->matmul.transa, m.a_strides);
    strides_of(m.b_dims, y->rank, l->p->matmul.transb, m.b_strides);
    return lower_product(l, &m);
}
