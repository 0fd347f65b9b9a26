/* Matrix products and convolutions with something fused, quantized, or in another layout. */
#include "modelproc/microsoft.h"

bz_type bz_type_turned(bz_arena *arena, const bz_type *t, bool batch, bool last)
{
    bz_type view = *t;
    int n = t->rank;
    if (n < 2 || !(batch || last))
        return view;
    bz_dim *dims = bz_arena_dup(arena, t->dims, (size_t)n * sizeof *dims);
    if (batch) {
        memmove(dims, dims + 1, (size_t)(n - 2) * sizeof *dims);
        dims[n - 2] = t->dims[0];
    }
    if (last) {
        bz_dim swap = dims[n - 1];
        dims[n - 1] = dims[n - 2];
        dims[n - 2] = swap;
    }
    view.dims = dims;
    return view;
}

/* All products come down to one: elements of the result times the length of the sums. */
static void add_product(call *c, int rank, const bz_dim *dims, bz_dim length)
{
    c->macs = count_mul(elements(&(bz_type){.kind = BZ_TYPE_TENSOR, .rank = rank, .dims = dims}), length);
}

static int product(call *c, const bz_type *a, const bz_type *b, bz_dtype to)
{
    bz_dim dims[BZ_MAX_RANK];
    int rank;
    if (matmul_shape(c, a, b, &rank, dims))
        return -1;
    set_out(c, 0, to, rank, dims);
    add_product(c, rank, dims, last_dim(a, 1));
    return 0;
}

/* Its name, and behind colons its numbers: "Relu", "HardSigmoid:0.2:0.5". */
void ms_note_activation(call *c)
{
    static const char *const SINGLE[] = {"activation_alpha", "activation_beta"};
    const char *text = attr_text(c, "activation", "");
    const bz_attr *list = bz_node_attr(c->node, "activation_params");
    if (!*text)
        return;
    for (int i = 0; list && list->kind == BZ_ATTR_FLOATS && i < list->n && i < 2; i++)
        text = bz_arena_printf(c->arena, "%s:%g", text, list->floats[i]);
    for (int i = 0; !list && i < 2 && bz_node_attr(c->node, SINGLE[i]); i++)
        text = bz_arena_printf(c->arena, "%s:%g", text, attr_float(c, SINGLE[i], 0));
    param_text(c, "activation", text);
}

int ms_matmul_shape(call *c)
{
    const bz_type *a = need_any(c, 0), *b = need_any(c, 1);
    same_dtype(c, a, b);
    bool trans_a = attr_int(c, "transA", 0) != 0, trans_b = attr_int(c, "transB", 0) != 0,
         batch_a = attr_int(c, "transBatchA", 0) != 0, batch_b = attr_int(c, "transBatchB", 0) != 0;
    bz_type left = bz_type_turned(c->arena, a, batch_a, trans_a), right = bz_type_turned(c->arena, b, batch_b, trans_b);
    if (product(c, &left, &right, a->dtype))
        return -1;
    if (trans_a || trans_b) /* without, it is MatMul's own layer */
        param_ints(c, "trans", (int64_t[]){trans_a, trans_b}, 2);
    if (batch_a || batch_b)
        param_ints(c, "trans_batch", (int64_t[]){batch_a, batch_b}, 2);
    if (attr_float(c, "alpha", 1) != 1)
        param_real(c, "alpha", attr_float(c, "alpha", 1));
    ms_note_activation(c);
    return 0;
}

static int gemm(call *c, int b_at, int bias_at, bz_dtype to)
{
    const bz_type *a = need_any(c, 0), *b = need(c, b_at, 2), *bias = in_type(c, bias_at);
    bool trans_a = attr_int(c, "transA", 0) != 0, trans_b = attr_int(c, "transB", 0) != 0;
    bz_type left = bz_type_turned(c->arena, a, false, trans_a), right = bz_type_turned(c->arena, b, false, trans_b);
    if (product(c, &left, &right, to ? to : a->dtype))
        return -1;
    param_int(c, "transa", trans_a);
    param_int(c, "transb", trans_b);
    if (attr_float(c, "alpha", 1) != 1)
        param_real(c, "alpha", attr_float(c, "alpha", 1));
    if (bias && attr_float(c, "beta", 1) != 1)
        param_real(c, "beta", attr_float(c, "beta", 1));
    c->flops = bias ? count_mul(elements(&c->out[0]), 1) : 0;
    ms_note_activation(c);
    return 0;
}

int ms_gemm_shape(call *c)
{
    bz_dtype to = BZ_UNDEFINED;
    if (!strcmp(c->node->op, "GemmFloat8") && attr_dtype(c, "dtype", BZ_F32, &to))
        return -1;
    if (strcmp(c->node->op, "GemmFloat8") != 0)
        same_dtype(c, need_any(c, 0), need(c, 1, 2));
    return gemm(c, 1, 2, to);
}

/* Without a zero point for the result, that is real. */
int ms_qgemm_shape(call *c)
{
    const bz_type *zero = in_type(c, 8);
    return gemm(c, 3, 6, zero ? zero->dtype : BZ_F32);
}

/* What bytes of packed weights hold is told as it is, so that its elements are the weights: [n, k] of u4, not [n, k / 32, 16]
 * of u8. Widths that are no type stay as they are. */
void ms_unpack(call *c, int k, int64_t bits, int rank, const bz_dim *dims)
{
    const bz_type *stored = in_type(c, k);
    bz_dtype dtype = bits == 4 ? BZ_U4 : bits == 2 ? BZ_U2 : bits == 8 ? BZ_U8 : BZ_UNDEFINED;
    if (!stored || stored->dtype != BZ_U8 || !dtype)
        return;
    c->in[k].dtype = dtype;
    c->in[k].rank = rank;
    c->in[k].dims = bz_arena_dup(c->arena, dims, (size_t)rank * sizeof *dims);
}

/* Weights of a few bits, packed; attributes say what they were. */
int ms_nbits_shape(call *c)
{
    const bz_type *a = need_any(c, 0);
    int64_t k = attr_int(c, "K", 0), n = attr_int(c, "N", 0);
    ms_unpack(c, 1, attr_int(c, "bits", 4), 2, (bz_dim[]){n, k});
    if (attr_int(c, "transB", 1) == 0) { /* MatMulBnb4, of a gradient */
        int64_t swap = n;
        n = k;
        k = swap;
    }
    if (k <= 0 || n <= 0 || bz_is_symbol(k) || bz_is_symbol(n) || a->rank == 0 || !dims_fit(last_dim(a, 1), k))
        return call_fail(c, "its weights are %lld x %lld, its operand ends in %lld", (long long)k, (long long)n,
                         (long long)last_dim(a, 1));
    bz_dim dims[BZ_MAX_RANK];
    copy_dims(dims, a);
    dims[a->rank - 1] = n;
    set_out(c, 0, a->dtype, a->rank, dims);
    add_product(c, a->rank, dims, k);
    param_int(c, "n", n);
    param_int(c, "bits", attr_int(c, "bits", 4));
    param_int(c, "block", attr_int(c, "block_size", 0));
    return 0;
}

int ms_integer_to_float_shape(call *c)
{
    const bz_type *a = need_any(c, 0), *b = need_any(c, 1), *scale = in_type(c, 2);
    param_text(c, "weights", bz_dtype_name(b->dtype));
    return product(c, a, b, scale ? scale->dtype : BZ_F32);
}

int ms_dynamic_matmul_shape(call *c)
{
    const bz_type *a = need_any(c, 0), *b = need_any(c, 1);
    param_text(c, "weights", bz_dtype_name(b->dtype));
    return product(c, a, b, a->dtype);
}

/* Channels last, as the rules for channels first want to see it: [n, spatial..., c] -> [n, c, spatial...]. */
static bz_type channels_first(call *c, const bz_type *t)
{
    bz_type view = *t;
    if (t->rank < 3)
        return view;
    bz_dim *dims = new_dims(c, t->rank);
    dims[0] = t->dims[0];
    dims[1] = last_dim(t, 1);
    memcpy(dims + 2, t->dims + 1, (size_t)(t->rank - 2) * sizeof *dims);
    view.dims = dims;
    return view;
}

static void channels_last(bz_dim *dims, int rank)
{
    bz_dim channels = dims[1];
    memmove(dims + 1, dims + 2, (size_t)(rank - 2) * sizeof *dims);
    dims[rank - 1] = channels;
}

int ms_conv_shape(call *c)
{
    if (shape_conv(c))
        return -1;
    ms_note_activation(c);
    return 0;
}

/* The bias, and what is added to the result. */
static void cost_additions(call *c)
{
    for (int k = 2; k < 4; k++)
        c->flops = count_add(c->flops, in_type(c, k) ? elements(&c->out[0]) : 0);
}

void ms_conv_cost(call *c)
{
    c->macs = conv_macs(&c->in[1], &c->out[0]);
    cost_additions(c);
}

/* Weights are written both as [m, spatial..., c] and as [m, c, spatial...]; the channels tell which. */
static bz_type nhwc_weights(call *c, const bz_type *x, const bz_type *w)
{
    int64_t group = attr_int(c, "group", 1);
    bz_dim channels = group > 0 ? dim_div(c, last_dim(x, 1), group) : 0;
    return last_dim(w, 1) == channels || bz_is_symbol(channels) ? channels_first(c, w) : *w;
}

int ms_nhwc_conv_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *w = need(c, 1, x->rank);
    bz_dim dims[BZ_MAX_RANK];
    same_dtype(c, x, w);
    bz_type first = channels_first(c, x), weights = nhwc_weights(c, x, w);
    if (conv_shape(c, &first, &weights, dims))
        return -1;
    channels_last(dims, x->rank);
    set_out(c, 0, x->dtype, x->rank, dims);
    ms_note_activation(c);
    param_text(c, "layout", "nhwc");
    return 0;
}

void ms_nhwc_conv_cost(call *c)
{
    bz_type w = nhwc_weights(c, &c->in[0], &c->in[1]), y = channels_first(c, &c->out[0]);
    c->macs = conv_macs(&w, &y);
    cost_additions(c);
}

static int pool(call *c, bool last)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    if (x->rank < 3)
        return call_fail(c, "it wants a batch of images, not %d dimensions", x->rank);
    bz_type first = last ? channels_first(c, x) : *x;
    if (pool_shape(c, &first, dims))
        return -1;
    if (last)
        channels_last(dims, x->rank);
    set_out(c, 0, x->dtype, x->rank, dims);
    if (last)
        param_text(c, "layout", "nhwc");
    return 0;
}

int ms_nhwc_pool_shape(call *c)
{
    return pool(c, true);
}

int ms_qlinear_pool_shape(call *c)
{
    return pool(c, attr_int(c, "channels_last", 0) != 0);
}

int ms_qlinear_global_pool_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    bool last = attr_int(c, "channels_last", 0) != 0;
    if (x->rank < 3)
        return call_fail(c, "it wants a batch of images, not %d dimensions", x->rank);
    bz_dim dims[BZ_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == 0 || i == (last ? x->rank - 1 : 1) ? x->dims[i] : 1;
    param_text(c, "layout", last ? "nhwc" : "nchw");
    return set_out(c, 0, x->dtype, x->rank, dims);
}

static bool conv_last(const call *c)
{
    return attr_int(c, "channels_last", 0) != 0;
}

/* Weights stay [m, c, spatial...] in both layouts. */
int ms_qlinear_conv_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *w = need_any(c, 3), *zero = in_type(c, 7);
    bz_dim dims[BZ_MAX_RANK];
    bz_type first = conv_last(c) ? channels_first(c, x) : *x;
    if (conv_shape(c, &first, w, dims))
        return -1;
    if (conv_last(c))
        channels_last(dims, x->rank);
    bz_dtype to = zero ? zero->dtype : x->dtype;
    set_out(c, 0, to, x->rank, dims);
    param_text(c, "weights", bz_dtype_name(w->dtype));
    param_text(c, "to", bz_dtype_name(to));
    if (conv_last(c))
        param_text(c, "layout", "nhwc");
    return 0;
}

void ms_qlinear_conv_cost(call *c)
{
    bz_type y = conv_last(c) ? channels_first(c, &c->out[0]) : c->out[0];
    c->macs = conv_macs(&c->in[3], &y);
}

/* Pads are an operand: what is known is the batch and the channels. */
int ms_dynamic_deconv_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *w = need(c, 1, x->rank);
    int64_t group = attr_int(c, "group", 1);
    same_dtype(c, x, w);
    if (x->rank < 3 || group <= 0)
        return call_fail(c, "%d dimensions in %lld groups", x->rank, (long long)group);
    bz_dim dims[BZ_MAX_RANK] = {x->dims[0], dim_mul(c, w->dims[1], group)};
    for (int i = 2; i < x->rank; i++)
        dims[i] = new_symbol(c);
    return set_out(c, 0, x->dtype, x->rank, dims);
}
