/* Normalizations, element-wise work and moving bytes of com.microsoft. */
#include "modelproc/microsoft.h"

/* Further results: statistics, one for each normalized group. */
int ms_layernorm_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axis;
    bz_dtype stash;
    if (fix_axis(c, attr_int(c, "axis", -1), x->rank, &axis) || attr_dtype(c, "stash_type", BZ_F32, &stash))
        return -1;
    bz_dim dims[BZ_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < axis ? x->dims[i] : 1;
    const bz_type *scale = in_type(c, 1);
    set_out(c, 0, scale && scale->dtype ? scale->dtype : x->dtype, x->rank, x->dims);
    for (int k = 1; k < 3; k++)
        set_out(c, k, stash, x->rank, dims);
    param_int(c, "axis", axis);
    return 0;
}

/* The skip may lack the batch, or have 1 there. Result 3 is the sum before it is normalized. */
int ms_skip_norm_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *skip = need_any(c, 1);
    same_dtype(c, x, skip);
    if ((x->rank != 2 && x->rank != 3) || skip->rank > x->rank || !dims_fit(last_dim(x, 1), last_dim(skip, 1)))
        return call_fail(c, "its input and skip do not fit");
    bz_dim dims[3];
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < x->rank - 1 ? x->dims[i] : 1;
    set_type(c, 0, x);
    for (int k = 1; k < 3; k++)
        set_out(c, k, BZ_F32, x->rank, dims);
    return set_type(c, 3, x);
}

/* Token, position and segment embeddings, added and normalized. */
int ms_embed_norm_shape(call *c)
{
    const bz_type *ids = need(c, 0, 2), *table = need(c, 2, 2);
    bz_dim dims[3] = {ids->dims[0], ids->dims[1], table->dims[1]};
    set_out(c, 0, table->dtype, 3, dims);
    set_out(c, 1, BZ_I32, 1, dims);
    return set_out(c, 2, table->dtype, 3, dims);
}

int ms_groupnorm_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    for (int k = 0; k < c->node->n_out; k++)
        set_type(c, k, x);
    param_int(c, "groups", attr_int(c, "groups", 0));
    param_text(c, "activation", attr_int(c, "activation", 0) ? "silu" : "none");
    param_text(c, "layout", attr_int(c, "channels_last", 1) ? "nhwc" : "nchw");
    return 0;
}

int ms_bias_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *bias = in_type(c, 1);
    same_dtype(c, x, bias);
    if (bias && bias->rank == 1 && !dims_fit(last_dim(x, 1), bias->dims[0]) && bias->dims[0] != 1)
        return call_fail(c, "a bias of %lld for rows of %lld", (long long)bias->dims[0], (long long)last_dim(x, 1));
    return set_type(c, 0, x);
}

int ms_quick_gelu_shape(call *c)
{
    param_real(c, "alpha", attr_float(c, "alpha", 1.702));
    return ms_bias_shape(c);
}

int ms_split_gelu_shape(call *c)
{
    const bz_type *x = need(c, 0, 3);
    if (!bz_is_symbol(x->dims[2]) && x->dims[2] % 2)
        return call_fail(c, "a width of %lld can't be halved", (long long)x->dims[2]);
    return set_out(c, 0, x->dtype, 3, (bz_dim[]){x->dims[0], x->dims[1], dim_div(c, x->dims[2], 2)});
}

int ms_softmax_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axis;
    bool old = !strcmp(c->node->op, "BiasSoftmax") || attr_int(c, "opset", 13) < 13;
    if (fix_axis(c, attr_int(c, "axis", old ? 1 : -1), x->rank, &axis))
        return -1;
    param_int(c, "axis", axis);
    param_text(c, "over", old ? "rest" : "axis");
    return set_type(c, 0, x);
}

/* Adds the bias and a residual; drops nothing at inference. */
int ms_dropout_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    if (same_dtype(c, x, in_type(c, 1)))
        return -1;
    set_type(c, 0, x);
    return set_out(c, 1, BZ_BOOL, x->rank, x->dims);
}

/* arg: where the second operand stands; the first one's scale and zero point lie between. */
int ms_binary_shape(call *c)
{
    const bz_type *a = need_any(c, 0), *b = need_any(c, (int)c->op->arg);
    bz_dim dims[BZ_MAX_RANK];
    int rank;
    if (same_dtype(c, a, b) || broadcast(c, a, b, &rank, dims))
        return -1;
    return set_out(c, 0, !strcmp(c->node->op, "MulInteger") ? BZ_I32 : a->dtype, rank, dims);
}

int ms_where_shape(call *c)
{
    const bz_type *condition = need_any(c, 0), *a = need_any(c, 1), *b = need_any(c, 4);
    bz_dim dims[BZ_MAX_RANK], all[BZ_MAX_RANK];
    int rank;
    if (same_dtype(c, a, b) || broadcast(c, a, b, &rank, dims))
        return -1;
    bz_type both = {.kind = BZ_TYPE_TENSOR, .rank = rank, .dims = dims};
    if (broadcast(c, condition, &both, &rank, all))
        return -1;
    return set_out(c, 0, a->dtype, rank, all);
}

int ms_reduce_mean_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axes[BZ_MAX_RANK], rank = 0;
    int n = axes_of(c, -1, "axes", x->rank, axes);
    if (n < 0)
        return -1;
    bool keep = attr_int(c, "keepdims", 1) != 0, all = n == 0;
    uint64_t reduced = 0;
    for (int i = 0; i < n; i++)
        reduced |= (uint64_t)1 << axes[i];
    bz_dim dims[BZ_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        bool gone = all || reduced >> i & 1;
        if (!gone || keep)
            dims[rank++] = gone ? 1 : x->dims[i];
    }
    set_out(c, 0, x->dtype, rank, dims);
    if (n)
        param_axes(c, "axes", axes, n);
    return 0;
}

/* Scale and zero point of the result, then for each piece the same three: data, scale, zero point. */
int ms_concat_shape(call *c)
{
    const bz_type *first = need_any(c, 2);
    int axis;
    if (fix_axis(c, attr_int(c, "axis", 0), first->rank, &axis))
        return -1;
    bz_dim *dims = bz_arena_dup(c->arena, first->dims, (size_t)first->rank * sizeof *dims);
    for (int k = 5; k < c->node->n_in; k += 3) {
        const bz_type *x = need(c, k, first->rank);
        same_dtype(c, first, x);
        for (int i = 0; i < first->rank; i++) {
            if (i != axis && !dims_fit(dims[i], x->dims[i]))
                return call_fail(c, "operands 2 and %d differ in dimension %d", k, i);
            dims[i] = i == axis ? dim_add(c, dims[i], x->dims[i]) : dim_same(dims[i], x->dims[i]);
        }
    }
    param_int(c, "axis", axis);
    return set_out(c, 0, first->dtype, first->rank, dims);
}

/* The result is like operand 1: scores behind ids. */
int ms_second_shape(call *c)
{
    const bz_type *x = need_any(c, 1);
    return set_type(c, 0, x);
}

int ms_unique_shape(call *c)
{
    const bz_type *x = need(c, 0, 1);
    bz_dim n = new_symbol(c);
    set_out(c, 0, x->dtype, 1, &n);
    set_out(c, 1, BZ_I64, 1, x->dims);
    return set_out(c, 2, BZ_I64, 1, &n);
}

int ms_rfft_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    if (x->rank == 0 || x->rank == BZ_MAX_RANK)
        return call_fail(c, "a signal of %d dimensions", x->rank);
    bz_dim dims[BZ_MAX_RANK];
    copy_dims(dims, x);
    dims[x->rank - 1] = dim_add(c, dim_div(c, last_dim(x, 1), 2), 1);
    dims[x->rank] = 2;
    param_int(c, "signal_ndim", attr_int(c, "signal_ndim", 1));
    return set_out(c, 0, x->dtype, x->rank + 1, dims);
}

int ms_irfft_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    if (x->rank < 2 || !dims_fit(last_dim(x, 1), 2) || last_dim(x, 2) == 0)
        return call_fail(c, "its operand must end in [bins, 2]");
    bz_dim dims[BZ_MAX_RANK];
    copy_dims(dims, x);
    dims[x->rank - 2] = dim_mul(c, 2, dim_sub(c, last_dim(x, 2), 1));
    param_int(c, "signal_ndim", attr_int(c, "signal_ndim", 1));
    return set_out(c, 0, x->dtype, x->rank - 1, dims);
}

/* Transforms along the last dimension of the real numbers, which are the operand of Rfft and the result of Irfft. */
void ms_rfft_cost(call *c)
{
    const bz_type *real = c->in[0].rank < c->out[0].rank ? &c->in[0] : &c->out[0];
    int64_t n = last_dim(real, 1);
    c->flops = fft_flops(n, n > 0 ? elements(real) / n : 0, true);
}

int ms_pad_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int64_t n;
    const int64_t *pads = in_ints(c, 1, &n);
    if (pads && n != 2 * x->rank)
        return call_fail(c, "it has %lld pads for %d dimensions", (long long)n, x->rank);
    bz_dim *dims = new_dims(c, x->rank);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = pads ? dim_add(c, dim_add(c, x->dims[i], pads[i]), pads[i + x->rank]) : new_symbol(c);
        if (dims[i] < 0 && !bz_is_symbol(dims[i]))
            return call_fail(c, "nothing remains of dimension %d", i);
    }
    param_text(c, "mode", attr_text(c, "mode", "constant"));
    return set_out(c, 0, x->dtype, x->rank, dims);
}

int ms_expand_dims_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int64_t v;
    int axis;
    if (!in_number(c, 1, &v))
        return set_unknown(c, 0, x->dtype);
    if (x->rank == BZ_MAX_RANK || fix_axis(c, v, x->rank + 1, &axis))
        return x->rank == BZ_MAX_RANK ? call_fail(c, "its result has more than %d dimensions", BZ_MAX_RANK) : -1;
    bz_dim dims[BZ_MAX_RANK];
    for (int i = 0; i <= x->rank; i++)
        dims[i] = i == axis ? 1 : x->dims[i - (i > axis)];
    return set_out(c, 0, x->dtype, x->rank + 1, dims);
}

int ms_crop_resize_shape(call *c)
{
    const bz_type *x = need(c, 0, 4), *rois = need(c, 1, 2);
    int64_t n;
    const int64_t *size = in_ints(c, 3, &n);
    bz_dim dims[4] = {rois->dims[0], x->dims[1]};
    for (int i = 0; i < 2; i++) {
        dims[2 + i] = size && n == 2 ? size[i] : new_symbol(c);
        if (dims[2 + i] <= 0 && !bz_is_symbol(dims[2 + i]))
            return call_fail(c, "crop_size must be positive");
    }
    param_text(c, "mode", attr_text(c, "mode", "bilinear"));
    return set_out(c, 0, x->dtype, 4, dims);
}

int ms_hash_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    return set_out(c, 0, attr_int(c, "positive", 1) ? BZ_U32 : BZ_I32, x->rank, x->dims);
}

int ms_inverse_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    if (x->rank < 2 || !dims_fit(last_dim(x, 1), last_dim(x, 2)))
        return call_fail(c, "its operand holds no square matrices");
    return set_type(c, 0, x);
}

/* By elimination: 2·n³ for each matrix. */
void ms_inverse_cost(call *c)
{
    c->flops = count_mul(2, count_mul(elements(&c->in[0]), last_dim(&c->in[0], 1)));
}
