/* Sums of products: convolutions and products of matrices. */
#include "generator/lower.h"

#include "generator/constants.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void lower_product_types(const lowering *l, bz_problem *p)
{
    const bz_layer *layer = l->layer;
    bool blocks = p->kind == BZ_PROBLEM_GEMM && !p->gemm.transa && p->gemm.k % 16 == 0; /* as 4-bit floats want */
    if (lower_is_narrow(l->wanted) && l->dtype == BZ_F16 && (l->wanted == BZ_F8E4M3 || blocks)) {
        p->dtype = p->dtype_w = l->wanted;
        p->dtype_y = BZ_F16;
    } else if (l->quantize && bz_dtype_is_int(l->dtype)) {
        p->dtype_w = BZ_I8;
        p->dtype_y = l->dtype;
    } else if (!bz_dtype_is_float(l->dtype)) {
        p->dtype_w = BZ_I8;
        p->dtype_y = layer->out[0].dtype;
    }
}

/* Libraries multiply by i8. Constant weights of u8 are that, less 128 each, with another zero point. */
static int check_weights(lowering *l, int w_at)
{
    const bz_type *w = lower_in(l, w_at);
    bool fit = !w || w->dtype != BZ_U8 || l->layer->in_constant[w_at];
    return fit ? 0 : lower_no(l, "no library multiplies by u8 that is not constant");
}

/* "Relu" or, with numbers, "HardSigmoid:0.2:0.5"; numbers that are not there are those of the operator. */
static int fused_activation(lowering *l, bz_problem *p)
{
    static const struct {
        const char *name;
        bz_fn fn;
        float alpha, beta;
    } ACTIVATIONS[] = {{"Relu", BZ_FN_RELU, 0, 0},
                       {"LeakyRelu", BZ_FN_LEAKY, 0.01F, 0},
                       {"Sigmoid", BZ_FN_SIGMOID, 0, 0},
                       {"Tanh", BZ_FN_TANH, 0, 0},
                       {"Clip", BZ_FN_CLIP, -FLT_MAX, FLT_MAX},
                       {"HardSwish", BZ_FN_HARDSWISH, 0, 0},
                       {"HardSigmoid", BZ_FN_HARDSIGMOID, 0.2F, 0.5F}};
    const char *name = lower_word(l, "activation", "none");
    size_t length = strcspn(name, ":");
    if (!strcmp(name, "none") || !length)
        return 0;
    for (size_t i = 0; i < sizeof ACTIVATIONS / sizeof *ACTIVATIONS; i++) {
        if (strlen(ACTIVATIONS[i].name) != length || memcmp(ACTIVATIONS[i].name, name, length) != 0)
            continue;
        float alpha = ACTIVATIONS[i].alpha, beta = ACTIVATIONS[i].beta;
        char *end = (char *)name + length;
        if (*end)
            alpha = strtof(end + 1, &end);
        if (*end)
            beta = strtof(end + 1, &end);
        if (*end || isnan(alpha) || isnan(beta))
            return lower_no(l, "the numbers of its activation cannot be read");
        lower_post(p, ACTIVATIONS[i].fn, alpha, beta);
        return 0;
    }
    return lower_no(l, "no library has its activation");
}

/* Weights of a layer with channels last are [m, space, c] or [m, c, space]; the channels tell which. */
static const bz_type *conv_weights(const lowering *l, const bz_type *x, const bz_type *w)
{
    int64_t group = lower_int(l, "group", 1), channels = group > 0 && x->rank > 1 ? x->dims[1] / group : 0;
    return w->rank > 2 && w->dims[w->rank - 1] == channels ? lower_channels(l, w) : w;
}

int lower_conv_geometry(lowering *l, bz_problem *p, const bz_type *x, const bz_type *w)
{
    int n = x->rank - 2;
    if (n < 1 || n > BZ_PROBLEM_SPATIAL || lower_extent(x, 0, p->conv.x) || lower_extent(w, 0, p->conv.w))
        return lower_no(l, "only one to three spatial dimensions can be benchmarked");
    p->conv.group = lower_int(l, "group", 1);
    if (lower_ints(l, "stride", p->conv.stride, n) || lower_ints(l, "pad", p->conv.pad, 2 * n) ||
        lower_ints(l, "dilation", p->conv.dilation, n))
        return lower_no(l, "its padding is negative");
    lower_product_types(l, p);
    return 0;
}

/* The result that the problem makes; NULL where it is no valid one, for which lower_done has the reason. */
static const bz_operand *result_of(const bz_problem *p, bz_operand *list)
{
    bz_problem copy = *p;
    bz_error err;
    return bz_problem_normalize(&copy, &err) ? NULL : &list[bz_problem_operands(&copy, list) - 1];
}

static bool fits(const bz_problem *p, const bz_type *y)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    const bz_operand *made = result_of(p, list);
    return !made || (made->rank == y->rank && !memcmp(made->dim, y->dims, (size_t)y->rank * sizeof *y->dims));
}

/* A transposed convolution may make more than its padding gives: the rest is padding of the output. */
static void pad_output(bz_problem *p, const bz_type *y)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    const bz_operand *made = result_of(p, list);
    for (int i = 2; made && i < made->rank && i < y->rank; i++)
        if (y->dims[i] > made->dim[i])
            p->deconv.outpad[i - 2] += y->dims[i] - made->dim[i];
}

/* Adds the value of a channel to each element, as a call of its own. */
static int add_bias_step(lowering *l, const bz_type *y)
{
    bz_extent all, channels = {0};
    if (lower_extent(y, 0, all))
        return lower_no(l, "its result has too many dimensions");
    for (int i = 0; all[i]; i++)
        channels[i] = i == 1 ? all[i] : 1;
    lower_combine(l, BZ_FN_ADD, all, channels);
    return 0;
}

/* The convolution itself, as the layer has it. */
static bz_problem *conv_step(lowering *l, bz_problem_kind kind, const bz_type *x, const bz_type *w, const bz_type *y)
{
    bz_problem *p = lower_step(l, kind);
    if (lower_conv_geometry(l, p, x, w))
        return NULL;
    if (kind == BZ_PROBLEM_DECONV) {
        if (lower_ints(l, "extra", p->deconv.outpad, x->rank - 2))
            memset(p->deconv.outpad, 0, sizeof p->deconv.outpad);
        pad_output(p, y);
    }
    if (!fits(p, y)) {
        lower_no(l, "its geometry has no benchmark");
        return NULL;
    }
    return p;
}

/* Padding that differs between the ends of a dimension, which some libraries do not take: what one end has more than the
 * other becomes a border of zeros, by a call of its own; what both have alike stays with the convolution. */
static int pad_first(lowering *l, const bz_problem *conv)
{
    int n = bz_extent_rank(conv->conv.x) - 2;
    bz_problem *border = lower_step(l, BZ_PROBLEM_PAD), *inner = lower_step(l, BZ_PROBLEM_CONV);
    border->dtype = conv->dtype;
    memcpy(border->pad.x, conv->conv.x, sizeof border->pad.x);
    *inner = *conv;
    for (int i = 0; i < n; i++) {
        int64_t begin = conv->conv.pad[i], end = conv->conv.pad[n + i], both = begin < end ? begin : end;
        border->pad.pad[i] = begin - both;
        border->pad.pad[n + i] = end - both;
        inner->conv.pad[i] = inner->conv.pad[n + i] = both;
        inner->conv.x[2 + i] += begin + end - 2 * both;
    }
    return lower_done(l);
}

/* The layer in one call, and, where nothing else comes behind it, its bias in a second. */
static int conv_alternatives(lowering *l, bz_problem_kind kind, int w_at, int b_at)
{
    const bz_type *x = lower_in(l, 0), *w = lower_in(l, w_at), *b = b_at < 0 ? NULL : lower_in(l, b_at);
    const bz_type *z = w_at == 1 && b_at == 2 ? lower_in(l, 3) : NULL, *y = lower_channels(l, &l->layer->out[0]);
    if (!x || !w)
        return lower_no(l, "its operands are no tensors");
    if (check_weights(l, w_at))
        return -1;
    x = lower_channels(l, x);
    w = conv_weights(l, x, w);
    int before = l->n;
    for (int fused = 1; fused >= 0; fused--) {
        bz_problem *p = conv_step(l, kind, x, w, y);
        if (!p)
            return -1;
        if (fused && b)
            lower_post(p, BZ_FN_BIAS, 0, 0);
        if (z)
            lower_post(p, BZ_FN_ADD, 0, 0);
        if (fused_activation(l, p) || (!fused && add_bias_step(l, y)))
            return -1;
        bool more = p->post[0].fn && (p->post[0].fn != BZ_FN_BIAS || p->post[1].fn);
        if (lower_done(l))
            return -1;
        if (!b || more || !bz_dtype_is_float(l->dtype))
            break; /* quantized ones add the bias before they round */
    }
    const bz_problem *whole = l->alternative[before].problem;
    return kind == BZ_PROBLEM_CONV && !bz_problem_pads_evenly(whole) ? pad_first(l, whole) : 0;
}

static int lower_conv(lowering *l)
{
    return conv_alternatives(l, BZ_PROBLEM_CONV, 1, bz_dtype_is_float(l->dtype) || l->quantize ? 2 : -1);
}

static int lower_qconv(lowering *l)
{
    return conv_alternatives(l, BZ_PROBLEM_CONV, 3, 8);
}

static int lower_deconv(lowering *l)
{
    return conv_alternatives(l, BZ_PROBLEM_DECONV, 1, 2);
}

/* y = W x with W as it lies. */
static int gemv_alternative(lowering *l, int64_t n, int64_t k, bool transb, bool bias)
{
    if (l->n && l->alternative[0].problem[0].dtype == BZ_F4E2M1)
        return 0; /* blocks are multiplied as matrices alone */
    bz_problem *p = lower_step(l, BZ_PROBLEM_GEMV);
    p->gemv.m = n;
    p->gemv.k = k;
    p->gemv.trans = !transb;
    lower_product_types(l, p);
    if (bias)
        lower_post(p, BZ_FN_BIAS, 0, 0);
    return lower_done(l);
}

typedef struct product {
    int64_t m, n, k;
    bool transa, transb, constant;
} product;

static bz_problem *product_step(lowering *l, const product *d)
{
    bz_problem *p;
    if (d->constant) {
        p = lower_gemm_step(l, d->m, d->n, d->k);
        p->gemm.transa = d->transa, p->gemm.transb = d->transb;
    } else {
        p = lower_matrices(l, (bz_extent){d->m, d->k}, (bz_extent){d->k, d->n});
        p->matmul.transa = d->transa, p->matmul.transb = d->transb;
    }
    lower_product_types(l, p);
    return p;
}

/* The third operand in a call of its own. */
static int add_step(lowering *l, const product *d, const bz_type *c)
{
    bz_extent shape;
    if (c->rank > 2 || lower_extent(c, 2, shape))
        return lower_no(l, "its third operand has too many dimensions");
    lower_combine(l, BZ_FN_ADD, (bz_extent){d->m, d->n}, shape);
    return 0;
}

/* alpha and beta cost nothing: BLAS takes them along, and constant weights have them multiplied in. */
static int gemm_alternatives(lowering *l, int b_at, int c_at, bz_fn behind)
{
    const bz_type *a = lower_in(l, 0), *b = lower_in(l, b_at), *c = lower_in(l, c_at);
    bool transa = lower_int(l, "transa", 0), transb = lower_int(l, "transb", 0);
    if (!a || !b || a->rank != 2 || b->rank != 2)
        return lower_no(l, "its operands are no matrices");
    if (check_weights(l, b_at))
        return -1;
    product d = {.m = a->dims[transa],
                 .k = a->dims[!transa],
                 .n = b->dims[!transb],
                 .transa = transa,
                 .transb = transb,
                 .constant = l->layer->in_constant[b_at]};
    bool row = c && bz_type_elements(c) == d.n && (c->rank < 2 || c->dims[c->rank - 1] == d.n);
    bool function = behind || bz_layer_param(l->layer, "activation");
    for (int fused = 1; fused >= 0; fused--) {
        if (c && fused && !row)
            continue;
        bz_problem *p = product_step(l, &d);
        if (c && fused)
            lower_post(p, BZ_FN_BIAS, 0, 0);
        if (c && !fused) {
            if (add_step(l, &d, c))
                return -1;
            p = &l->step[l->n_steps - 1];
        }
        if (behind)
            lower_post(p, behind, 0, 0);
        if (fused_activation(l, p) || lower_done(l))
            return -1;
        if (!c)
            break;
    }
    if (d.m == 1 && d.constant && (!c || row) && !function)
        gemv_alternative(l, d.n, d.k, transb, c != NULL);
    return 0;
}

static int lower_gemm(lowering *l)
{
    return gemm_alternatives(l, 1, 2, (bz_fn)l->arg);
}

/* Scores: the last result is a row of them for each row of features. */
static int lower_linear(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *y = &l->layer->out[l->layer->n_out - 1];
    if (!x || x->rank != 2 || y->kind != BZ_TYPE_TENSOR || y->rank != 2 ||
        (double)x->dims[0] * (double)x->dims[1] * (double)y->dims[1] != (double)l->layer->macs)
        return lower_no(l, "its operands are no matrices");
    bz_problem *p = product_step(l, &(product){.m = x->dims[0], .n = y->dims[1], .k = x->dims[1], .constant = true});
    lower_post(p, BZ_FN_BIAS, 0, 0);
    return lower_done(l);
}

static int lower_qgemm(lowering *l)
{
    return gemm_alternatives(l, 3, 6, BZ_FN_NONE);
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

static int lower_matmul(lowering *l)
{
    int b_at = l->arg;
    const bz_type *a = lower_in(l, 0), *b = lower_in(l, b_at);
    int64_t last[2] = {0}, batch[2] = {0};
    bz_extent x, y;
    lower_ints(l, "trans", last, 2);
    lower_ints(l, "trans_batch", batch, 2);
    if (!a || !b)
        return lower_no(l, "its operands are no tensors");
    if (check_weights(l, b_at))
        return -1;
    bz_type left = bz_type_turned(l->arena, a, batch[0], last[0]),
            right = bz_type_turned(l->arena, b, batch[1], last[1]);
    if (matmul_shapes(&left, &right, x, y))
        return lower_no(l, "its operands have too many dimensions");
    bool constant = l->layer->in_constant[b_at], flat = bz_extent_rank(x) == 2;
    bz_problem *p;
    if (flat) { /* whether it is turned matters to matrices only */
        p = product_step(l, &(product){.m = x[0],
                                       .k = x[1],
                                       .n = y[1],
                                       .constant = constant,
                                       .transa = last[0] && a->rank == 2,
                                       .transb = last[1] && b->rank == 2});
    } else {
        p = lower_matrices(l, x, y);
        p->matmul.constant = constant;
        p->matmul.transa = last[0] && a->rank > 1;
        p->matmul.transb = last[1] && b->rank > 1;
        lower_product_types(l, p);
    }
    bool first = l->n_steps == 1;
    if (fused_activation(l, p) || lower_done(l))
        return -1;
    if (flat && constant && x[0] == 1 && first && !bz_layer_param(l->layer, "activation"))
        gemv_alternative(l, y[1], x[1], last[1], false);
    return 0;
}

/* The left operand is brought to u8 first: a call of its own. */
static int lower_dynamic_matmul(lowering *l)
{
    const bz_type *a = lower_in(l, 0);
    bz_problem *p = lower_step(l, BZ_PROBLEM_REORDER);
    if (!a || lower_extent(a, 0, p->reorder.x))
        return lower_no(l, "its operand has too many dimensions");
    p->dtype_w = l->dtype;
    p->dtype_y = BZ_U8;
    p->reorder.scale = QUANTIZED_STEPS;
    l->dtype = BZ_U8;
    return lower_matmul(l);
}

/* One token, or a few: every weight is read for so few operations that reading is all of the time. */
#define NARROW "no library multiplies by weights of a few bits"

bool lower_has_few_rows(const lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    int64_t n = x ? bz_type_elements(x) : 0, width = x && x->rank > 0 ? x->dims[x->rank - 1] : 0;
    return width > 0 && n / width <= FEW_ROWS;
}

/* Where tokens are few its bytes, modelled; else no price. */
static int lower_streamed(lowering *l)
{
    static const char *const WHY[] = {NARROW, "how long its sequences are depends on data",
                                      "no library call computes it"};
    l->why = WHY[l->arg];
    return lower_has_few_rows(l) ? lower_copy(l) : lower_no(l, l->why);
}

/* Weights [n, k] of a few bits. What a library can do is to multiply by them as floating-point numbers, made before anything
 * runs; what no way can undercut is to read them as they are stored, where tokens are few. arg: operand of the bias, or -1. */
static int lower_narrow(lowering *l)
{
    const bz_type *a = lower_in(l, 0), *w = lower_in(l, 1);
    int64_t k = a && a->rank > 0 ? a->dims[a->rank - 1] : 0, rows = k > 0 ? bz_type_elements(a) / k : 0;
    bool plain = w && w->rank == 2 && rows > 0 && (w->dims[1] == k || w->dims[0] == k);
    if (plain) {
        bool turned = w->dims[1] == k; /* the usual way round; the other one is that of a gradient */
        bz_problem *p =
            product_step(l, &(product){.m = rows, .k = k, .n = w->dims[!turned], .transb = turned, .constant = true});
        if (l->arg >= 0 && lower_in(l, l->arg))
            lower_post(p, BZ_FN_BIAS, 0, 0);
        lower_done(l);
    }
    if (lower_has_few_rows(l))
        return lower_copy(l);
    return l->n ? 0 : lower_no(l, l->why ? l->why : NARROW);
}

const lower_row lower_product_rows[] = {
    {"conv", lower_conv, .types = FLOATS | BYTES},
    {"qconv", lower_qconv, .types = BYTES},
    {"deconv", lower_deconv, .types = FLOATS | BYTES},
    {"gemm", lower_gemm, .types = FLOATS | DOUBLE | BYTES},
    {"gemmfastgelu", lower_gemm, BZ_FN_GELU_TANH, .types = FLOATS},
    {"qgemm", lower_qgemm, .types = BYTES},
    {"matmul", lower_matmul, .arg = 1, .types = FLOATS | DOUBLE | BYTES},
    {"matmulscaled", lower_matmul, .arg = 1, .types = BYTES},
    {"matmuldynamic", lower_dynamic_matmul, .arg = 1, .types = FLOATS},
    {"qmatmul", lower_matmul, .arg = 3, .types = BYTES},
    {"linearclassifier", lower_linear, .types = FLOATS},
    {"linearregressor", lower_linear, .types = FLOATS},
    {"matmulnbits", lower_narrow, 5, .types = FLOATS},
    {"matmulbnb4", lower_narrow, -1, .types = FLOATS},
    {"matmulfp4", lower_narrow, 5, .types = FLOATS},
    {"matmulfp8", lower_narrow, 4, .types = FLOATS},
    {"matmulnbitsmlp", lower_streamed, 0, .types = FLOATS},
    {"matmulnbitsqkv", lower_streamed, 0, .types = FLOATS},
    {"matmulfpq4", lower_streamed, 0, .types = FLOATS},
    {"pagedattention", lower_streamed, 1, .types = FLOATS},
    {"sparseattention", lower_streamed, 2, .types = FLOATS},
    {0},
};
