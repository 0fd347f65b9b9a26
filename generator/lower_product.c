/* Sums of products: convolutions, products of matrices, attention. */
#include "generator/lower.h"

/* Quantized products take u8 and i8 to u8, or what the layer's own operands say. */
static void product_types(const lowering *l, bz_problem *p)
{
    const bz_layer *layer = l->layer;
    if (l->quantize) {
        p->dtype_w = BZ_I8;
        p->dtype_y = BZ_U8;
    } else if (!bz_dtype_is_float(l->dtype)) {
        const char *w = lower_word(l, "weights", "i8");
        p->dtype_w = !strcmp(w, "u8") ? BZ_U8 : BZ_I8;
        p->dtype_y = layer->out[0].dtype;
    }
}

static bool is_nhwc(const lowering *l)
{
    return !strcmp(lower_word(l, "layout", "nchw"), "nhwc");
}

static int conv_geometry(lowering *l, bz_problem *p, const bz_type *x, const bz_type *w)
{
    int n = x->rank - 2;
    if (n < 1 || n > BZ_PROBLEM_SPATIAL || lower_extent(x, 0, p->conv.x) || lower_extent(w, 0, p->conv.w))
        return lower_no(l, "only one to three spatial dimensions can be benchmarked");
    p->conv.group = lower_int(l, "group", 1);
    if (lower_ints(l, "stride", p->conv.stride, n) || lower_ints(l, "pad", p->conv.pad, 2 * n) ||
        lower_ints(l, "dilation", p->conv.dilation, n))
        return lower_no(l, "its padding is negative");
    product_types(l, p);
    return 0;
}

/* Whether the problem makes as many elements as the layer does. */
static bool fits(const lowering *l, const bz_problem *p)
{
    bz_problem copy = *p;
    bz_operand list[BZ_PROBLEM_OPERANDS];
    bz_error err;
    if (bz_problem_normalize(&copy, &err))
        return true; /* lower_done has the reason */
    return list[bz_problem_operands(&copy, list) - 1].count == bz_type_elements(&l->layer->out[0]);
}

/* Adds the value of a channel to each element, as a call of its own. */
static int add_bias_step(lowering *l)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_BINARY);
    p->binary.fn = BZ_FN_ADD;
    if (lower_extent(&l->layer->out[0], 0, p->binary.a))
        return lower_no(l, "its result has too many dimensions");
    int rank = bz_extent_rank(p->binary.a);
    for (int i = 0; i < rank; i++)
        p->binary.b[i] = i == 1 ? p->binary.a[i] : 1;
    return 0;
}

static int conv_alternatives(lowering *l, bz_problem_kind kind, int w_at, int b_at)
{
    const bz_type *x = lower_in(l, 0), *w = lower_in(l, w_at), *b = b_at < 0 ? NULL : lower_in(l, b_at);
    const char *activation = lower_word(l, "activation", "none");
    if (!x || !w || is_nhwc(l))
        return lower_no(l, "its operands lie channels last");
    bool relu = !strcmp(activation, "Relu");
    if (strcmp(activation, "none") != 0 && *activation && !relu)
        return lower_no(l, "its activation has no benchmark");
    for (int fused = 1; fused >= 0; fused--) {
        bz_problem *p = lower_step(l, kind);
        if (conv_geometry(l, p, x, w))
            return -1;
        if (kind == BZ_PROBLEM_DECONV && lower_ints(l, "extra", p->deconv.outpad, x->rank - 2))
            return lower_no(l, "its output padding is negative");
        if (!fits(l, p))
            return lower_no(l, "its geometry has no benchmark");
        if (fused && b)
            lower_post(p, BZ_FN_BIAS, 0, 0);
        if (relu)
            lower_post(p, BZ_FN_RELU, 0, 0);
        if (!fused && add_bias_step(l))
            return -1;
        if (lower_done(l))
            return -1;
        if (!b || relu || !bz_dtype_is_float(l->dtype) || l->quantize)
            break; /* quantized ones add the bias before they round */
    }
    return 0;
}

int lower_conv(lowering *l, int arg)
{
    (void)arg;
    return conv_alternatives(l, BZ_PROBLEM_CONV, 1, bz_dtype_is_float(l->dtype) || l->quantize ? 2 : -1);
}

int lower_qconv(lowering *l, int arg)
{
    (void)arg;
    return conv_alternatives(l, BZ_PROBLEM_CONV, 3, 8);
}

int lower_deconv(lowering *l, int arg)
{
    (void)arg;
    return conv_alternatives(l, BZ_PROBLEM_DECONV, 1, 2);
}

/* ---- matrices ------------------------------------------------------------------------------- */

/* y = W x with W as it lies. */
static int gemv_alternative(lowering *l, int64_t n, int64_t k, bool transb, bool bias)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_GEMV);
    p->gemv.m = n;
    p->gemv.k = k;
    p->gemv.trans = !transb;
    product_types(l, p);
    if (bias)
        lower_post(p, BZ_FN_BIAS, 0, 0);
    return lower_done(l);
}

/* alpha and beta cost nothing: BLAS takes them along, and constant weights have them multiplied in. */
int lower_gemm(lowering *l, int arg)
{
    const bz_type *a = lower_in(l, 0), *b = lower_in(l, 1), *c = lower_in(l, 2);
    bool transa = lower_int(l, "transa", 0), transb = lower_int(l, "transb", 0);
    (void)arg;
    if (!a || !b || a->rank != 2 || b->rank != 2)
        return lower_no(l, "its operands are no matrices");
    if (bz_layer_param(l->layer, "activation"))
        return lower_no(l, "its activation has no benchmark");
    int64_t m = a->dims[transa], k = a->dims[!transa], n = b->dims[!transb];
    int64_t c_count = c ? bz_type_elements(c) : 0;
    bool row = c && c_count == n && (c->rank < 2 || c->dims[c->rank - 1] == n);
    for (int fused = 1; fused >= 0; fused--) {
        if (c && fused && !row)
            continue;
        bz_problem *p = lower_step(l, l->layer->in_constant[1] ? BZ_PROBLEM_GEMM : BZ_PROBLEM_MATMUL);
        if (p->kind == BZ_PROBLEM_GEMM) {
            p->gemm.m = m, p->gemm.n = n, p->gemm.k = k, p->gemm.batch = 1;
            p->gemm.transa = transa, p->gemm.transb = transb;
        } else { /* how it lies is for the library to choose */
            memcpy(p->matmul.a, (bz_extent){m, k}, sizeof(bz_extent));
            memcpy(p->matmul.b, (bz_extent){k, n}, sizeof(bz_extent));
        }
        product_types(l, p);
        if (c && fused)
            lower_post(p, BZ_FN_BIAS, 0, 0);
        if (c && !fused) {
            p = lower_step(l, BZ_PROBLEM_BINARY);
            p->binary.fn = BZ_FN_ADD;
            memcpy(p->binary.a, (bz_extent){m, n}, sizeof(bz_extent));
            if (c->rank > 2 || lower_extent(c, 2, p->binary.b))
                return lower_no(l, "its third operand has too many dimensions");
        }
        if (lower_done(l))
            return -1;
        if (!c)
            break;
    }
    if (m == 1 && l->layer->in_constant[1] && (!c || row))
        gemv_alternative(l, n, k, transb, c != NULL);
    return 0;
}

/* Operands as matrices of one rank; equal leading dimensions become one. */
static int matmul_shapes(const bz_type *a, const bz_type *b, int64_t *x, int64_t *y)
{
    bz_dim column[2];
    bz_type b2 = *b;
    if (b->rank == 1) {
        column[0] = b->dims[0], column[1] = 1;
        b2.dims = column, b2.rank = 2;
    }
    int rank = a->rank > b2.rank ? a->rank : b2.rank, batch = 1;
    rank = rank < 2 ? 2 : rank;
    if (lower_extent(a, rank, x) || lower_extent(&b2, rank, y))
        return -1;
    int64_t x_batch = 1, y_batch = 1;
    for (int i = 0; i < rank - 2; i++) {
        batch = batch && x[i] == y[i];
        x_batch *= x[i];
        y_batch *= y[i];
    }
    int64_t m = x[rank - 2], k = x[rank - 1], n = y[rank - 1];
    if (y_batch == 1) {
        memcpy(x, (bz_extent){x_batch * m, k}, sizeof(bz_extent));
        memcpy(y, (bz_extent){k, n}, sizeof(bz_extent));
    } else if (batch) {
        memcpy(x, (bz_extent){x_batch, m, k}, sizeof(bz_extent));
        memcpy(y, (bz_extent){x_batch, k, n}, sizeof(bz_extent));
    }
    return 0;
}

static int matmul_alternatives(lowering *l, int b_at)
{
    const bz_type *a = lower_in(l, 0), *b = lower_in(l, b_at);
    bz_extent x, y;
    if (bz_layer_param(l->layer, "trans") || bz_layer_param(l->layer, "trans_batch") ||
        bz_layer_param(l->layer, "activation"))
        return lower_no(l, "its transposition has no benchmark");
    if (!a || !b || matmul_shapes(a, b, x, y))
        return lower_no(l, "its operands have too many dimensions");
    bool constant = l->layer->in_constant[b_at], flat = bz_extent_rank(x) == 2;
    bz_problem *p = lower_step(l, constant && flat ? BZ_PROBLEM_GEMM : BZ_PROBLEM_MATMUL);
    if (p->kind == BZ_PROBLEM_GEMM) {
        p->gemm.m = x[0], p->gemm.k = x[1], p->gemm.n = y[1], p->gemm.batch = 1;
    } else {
        memcpy(p->matmul.a, x, sizeof x);
        memcpy(p->matmul.b, y, sizeof y);
        p->matmul.constant = constant;
    }
    product_types(l, p);
    if (lower_done(l))
        return -1;
    if (flat && constant && x[0] == 1)
        gemv_alternative(l, y[1], x[1], false, false);
    return 0;
}

int lower_matmul(lowering *l, int arg)
{
    (void)arg;
    return matmul_alternatives(l, 1);
}

int lower_qmatmul(lowering *l, int arg)
{
    (void)arg;
    return matmul_alternatives(l, 3);
}

/* ---- attention ------------------------------------------------------------------------------ */

static void batched(lowering *l, int64_t batch, int64_t m, int64_t k, int64_t n)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_MATMUL);
    memcpy(p->matmul.a, (bz_extent){batch, m, k}, sizeof(bz_extent));
    memcpy(p->matmul.b, (bz_extent){batch, k, n}, sizeof(bz_extent));
}

/* Scores, their softmax, and the weighted sum. Where the shape rule counted other products than these
 * (a projection, a cache), the layer is something else and stays unpriced. */
int lower_attention(lowering *l, int arg)
{
    const bz_type *q = lower_in(l, 0), *k = lower_in(l, 1), *v = lower_in(l, 2);
    (void)arg;
    int64_t heads = lower_int(l, "q_heads", 0), kv_heads = lower_int(l, "kv_heads", 0), rows, keys, size, v_size;
    if (!q || !k || !v || q->rank != k->rank || q->rank != v->rank || (q->rank != 4 && (q->rank != 3 || heads < 1)))
        return lower_no(l, "this form of attention has no benchmark");
    if (q->rank == 4) {
        heads = q->dims[1], rows = q->dims[2], keys = k->dims[2], size = q->dims[3], v_size = v->dims[3];
    } else {
        kv_heads = kv_heads < 1 ? heads : kv_heads;
        rows = q->dims[1], keys = k->dims[1], size = q->dims[2] / heads, v_size = v->dims[2] / kv_heads;
    }
    if (heads < 1 || rows < 1 || keys < 1 || size < 1 || v_size < 1 || q->dims[0] < 1 ||
        (double)q->dims[0] * (double)heads * (double)rows * (double)keys * (double)(size + v_size) !=
            (double)l->layer->macs)
        return lower_no(l, "this form of attention has no benchmark");
    int64_t batch = q->dims[0] * heads;
    batched(l, batch, rows, size, keys);
    bz_problem *p = lower_step(l, BZ_PROBLEM_SOFTMAX);
    memcpy(p->softmax.x, (bz_extent){batch, rows, keys}, sizeof(bz_extent));
    p->softmax.axis = 2;
    batched(l, batch, rows, keys, v_size);
    return lower_done(l);
}
