/* Kinds that go over their input window by window: convolutions and pooling. */
#include "runtime/kind.h"

#include <string.h>

static void conv_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    int n = bz_extent_rank(p->conv.x) - 2;
    bool transposed = p->kind == BZ_PROBLEM_DECONV;
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->conv.x);
    bz_operand_add_shape(l, BZ_ROLE_W, p->dtype_w, p->conv.w);
    y[0] = p->conv.x[0];
    y[1] = transposed ? p->conv.w[1] * p->conv.group : p->conv.w[0];
    for (int i = 0; i < n; i++) {
        int64_t x = p->conv.x[2 + i], k = p->conv.w[2 + i], s = p->conv.stride[i], d = p->conv.dilation[i];
        int64_t begin = p->conv.pad[i], end = p->conv.pad[n + i];
        y[2 + i] = transposed ? (x - 1) * s + (k - 1) * d + 1 - begin - end + p->conv.outpad[i]
                              : bz_window_result(x, k, s, begin, end, d);
    }
}

static int check_conv(const bz_problem *p, bz_error *err)
{
    bool transposed = p->kind == BZ_PROBLEM_DECONV;
    const int64_t *x = p->conv.x, *w = p->conv.w, g = p->conv.group;
    if (bz_extent_rank(x) != bz_extent_rank(w))
        return bz_problem_refuse(p, "x and w have the same number of dimensions", err);
    if (g < 1 || x[1] % g || (transposed ? x[1] != w[0] : w[1] != x[1] / g) || w[0] % g)
        return bz_problem_refuse(p, "channels of x and w do not fit each other and the group", err);
    if (bz_problem_check_window(p, x, w + 2, p->conv.stride, p->conv.pad, p->conv.dilation, err))
        return -1;
    int n = bz_extent_rank(x) - 2;
    for (int i = 0; transposed && i < n; i++)
        if ((x[2 + i] - 1) * p->conv.stride[i] + (w[2 + i] - 1) * p->conv.dilation[i] + 1 + p->conv.outpad[i] <=
            p->conv.pad[i] + p->conv.pad[n + i])
            return bz_problem_refuse(p, "the padding leaves nothing of the result", err);
    return 0;
}

static double conv_depth(const bz_problem *p)
{
    return (double)bz_extent_count(p->conv.w + 1);
}

/* What a convolution takes of an element of x in this channel. */
static double taken(const bz_reference *r, const float *scale, const float *shift, double x, int64_t channel)
{
    return r->problem->conv.before ? fmax(x * (double)scale[channel] + (double)shift[channel], 0) : x;
}

static bz_expected conv_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    const int64_t *x = p->conv.x, *w = p->conv.w;
    const float *xv = bz_reference_values(r, BZ_ROLE_X), *wv = bz_reference_values(r, BZ_ROLE_W);
    const float *scale = bz_reference_values(r, BZ_ROLE_SCALE), *shift = bz_reference_values(r, BZ_ROLE_SHIFT);
    int n = bz_extent_rank(x) - 2;
    int64_t window = bz_extent_count(w + 2), first = y[1] / (w[0] / p->conv.group) * w[1];
    bz_expected e = {0};
    for (int64_t k = 0; k < window; k++) {
        int64_t at[BZ_PROBLEM_SPATIAL], from = 0;
        bool inside = true;
        bz_unravel(k, w + 2, n, at);
        for (int i = 0; i < n; i++) {
            int64_t pos = y[2 + i] * p->conv.stride[i] + at[i] * p->conv.dilation[i] - p->conv.pad[i];
            inside &= pos >= 0 && pos < x[2 + i];
            from = from * x[2 + i] + pos;
        }
        int64_t plane = bz_extent_count(x + 2);
        for (int64_t c = 0; inside && c < w[1]; c++)
            bz_expected_add(&e,
                            taken(r, scale, shift, (double)xv[(y[0] * x[1] + first + c) * plane + from], first + c) *
                                (double)wv[(y[1] * w[1] + c) * window + k]);
    }
    return e;
}

static double deconv_depth(const bz_problem *p)
{
    return (double)(p->kind == BZ_PROBLEM_DECONV ? p->deconv.x[1] : p->conv.w[0]);
}

/* Every input meets every weight of its group: of a convolution's gradient by its data, too. */
static double deconv_flops(const bz_problem *p, const bz_operand *list, double y)
{
    (void)y;
    return 2 * (double)list[0].count * (double)bz_extent_count(p->deconv.w + 1);
}

/* y = x · stride + k · dilation − pad, solved for x. A convolution's gradient by its data is the same, of dy. */
static bz_expected deconv_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    const int64_t *x = r->operand[0].dim, *w = p->conv.w;
    const float *xv = r->value[0], *wv = bz_reference_values(r, BZ_ROLE_W);
    int n = bz_extent_rank(x) - 2;
    int64_t window = bz_extent_count(w + 2), plane = bz_extent_count(x + 2);
    int64_t inputs = x[1] / p->conv.group, group = y[1] / w[1], out = y[1] % w[1];
    bz_expected e = {0};
    for (int64_t k = 0; k < window; k++) {
        int64_t at[BZ_PROBLEM_SPATIAL], from = 0;
        bool inside = true;
        bz_unravel(k, w + 2, n, at);
        for (int i = 0; i < n; i++) {
            int64_t pos = y[2 + i] + p->conv.pad[i] - at[i] * p->conv.dilation[i];
            inside &= pos >= 0 && pos % p->conv.stride[i] == 0 && pos / p->conv.stride[i] < x[2 + i];
            from = from * x[2 + i] + pos / p->conv.stride[i];
        }
        for (int64_t c = group * inputs; inside && c < (group + 1) * inputs; c++)
            bz_expected_add(&e, (double)xv[(y[0] * x[1] + c) * plane + from] * wv[(c * w[1] + out) * window + k]);
    }
    return e;
}

static void conv_norm_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    conv_operands(p, l, y);
    for (int i = 0; i < 2 && p->conv.before; i++)
        bz_operand_add(l, i ? BZ_ROLE_SHIFT : BZ_ROLE_SCALE, p->dtype, 1, &p->conv.x[1])->constant = false;
    for (int i = 0; i < 2 && p->conv.behind; i++)
        bz_operand_add_result(l, i ? BZ_ROLE_N : BZ_ROLE_M, BZ_F32, 1, &y[1], -1);
}

static int check_conv_norm(const bz_problem *p, bz_error *err)
{
    if (!p->conv.before && !p->conv.behind)
        return bz_problem_refuse(p, "before or behind is 1: without both it is a conv", err);
    if (p->conv.behind && p->post[0].fn)
        return bz_problem_refuse(p, "sums are of the product alone", err);
    return check_conv(p, err);
}

/* Sums go over all of a channel. */
static bz_expected conv_norm_at(bz_reference *r)
{
    bz_role role = bz_reference_role(r);
    const bz_operand *whole = &r->operand[r->n_operands - 1];
    int64_t channel = r->y[0], inner = bz_extent_count(whole->dim + 2);
    bz_expected sum = {0};
    if (role == BZ_ROLE_Y)
        return conv_at(r);
    for (int64_t i = 0; i < whole->dim[0] * inner; i++) {
        bz_unravel((i / inner * whole->dim[1] + channel) * inner + i % inner, whole->dim, whole->rank, r->y);
        bz_expected e = conv_at(r);
        sum.value += role == BZ_ROLE_N ? e.value * e.value : e.value;
        sum.magnitude += role == BZ_ROLE_N ? fabs(e.value) * e.magnitude : e.magnitude;
    }
    return sum;
}

static double conv_norm_cost(const bz_problem *p)
{
    bz_extent y = {0};
    bz_operand_list none = {(bz_operand[2]){{0}}, 0};
    conv_operands(p, &none, y);
    return conv_depth(p) * (p->conv.behind ? (double)(y[0] * bz_extent_count(y + 2)) : 1);
}

static void conv_result(const bz_problem *p, int64_t *y)
{
    bz_operand_list none = {(bz_operand[2]){{0}}, 0};
    conv_operands(p, &none, y);
}

static void conv_data_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_extent dy = {0};
    conv_result(p, dy);
    bz_operand_add_shape(l, BZ_ROLE_DY, p->dtype, dy);
    bz_operand_add(l, BZ_ROLE_W, p->dtype_w, bz_extent_rank(p->conv.w), p->conv.w)->constant = false;
    memcpy(y, p->conv.x, sizeof(bz_extent));
}

static void conv_weights_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_extent dy = {0};
    conv_result(p, dy);
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->conv.x);
    bz_operand_add_shape(l, BZ_ROLE_DY, p->dtype_w, dy);
    memcpy(y, p->conv.w, sizeof(bz_extent));
}

static double conv_weights_depth(const bz_problem *p)
{
    bz_extent dy = {0};
    conv_result(p, dy);
    return (double)dy[0] * (double)bz_extent_count(dy + 2);
}

/* The sum over all windows: what stands under element y of the window, times what that window gave. */
static bz_expected conv_weights_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    const int64_t *x = p->conv.x, *w = p->conv.w, *dy = r->operand[1].dim;
    const float *xv = r->value[0], *dyv = r->value[1];
    int n = bz_extent_rank(x) - 2;
    int64_t plane = bz_extent_count(x + 2), windows = bz_extent_count(dy + 2);
    int64_t channel = r->y[0] / (w[0] / p->conv.group) * w[1] + r->y[1];
    bz_expected e = {0};
    for (int64_t o = 0; o < windows; o++) {
        int64_t at[BZ_PROBLEM_SPATIAL], from = 0;
        bool inside = true;
        bz_unravel(o, dy + 2, n, at);
        for (int i = 0; i < n; i++) {
            int64_t pos = at[i] * p->conv.stride[i] + r->y[2 + i] * p->conv.dilation[i] - p->conv.pad[i];
            inside &= pos >= 0 && pos < x[2 + i];
            from = from * x[2 + i] + pos;
        }
        for (int64_t b = 0; inside && b < x[0]; b++)
            bz_expected_add(&e, (double)xv[(b * x[1] + channel) * plane + from] *
                                    (double)dyv[(b * dy[1] + r->y[0]) * windows + o]);
    }
    return e;
}

static const char *const POOLS[] = {"max", "avg", "avg_pad", NULL};

static int64_t pool_window(const bz_problem *p)
{
    const int64_t most = (int64_t)1 << 40; /* three large ones in a large padding */
    int64_t count = 1;
    for (int i = 0; p->pool.x[2 + i]; i++)
        count = count > most / p->pool.kernel[i] ? most : count * p->pool.kernel[i];
    return count;
}

/* Libraries keep a byte for each window where that is enough. */
static bz_dtype pool_index_dtype(const bz_problem *p)
{
    return pool_window(p) < 255 ? BZ_U8 : BZ_I32;
}

static void pool_result(const bz_problem *p, int64_t *y)
{
    int n = bz_extent_rank(p->pool.x) - 2;
    memcpy(y, p->pool.x, 2 * sizeof *y);
    for (int i = 0; i < n; i++)
        y[2 + i] = bz_window_result(p->pool.x[2 + i], p->pool.kernel[i], p->pool.stride[i], p->pool.pad[i],
                                    p->pool.pad[n + i], p->pool.dilation[i]);
}

static void pool_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->pool.x);
    pool_result(p, y);
    if (p->pool.training && p->pool.mode == BZ_POOL_MAX)
        bz_operand_add_result(l, BZ_ROLE_INDEX, pool_index_dtype(p), bz_extent_rank(y), y, -1);
}

static int check_pool(const bz_problem *p, bz_error *err)
{
    return bz_problem_check_window(p, p->pool.x, p->pool.kernel, p->pool.stride, p->pool.pad, p->pool.dilation, err);
}

static double pool_flops(const bz_problem *p, const bz_operand *list, double y)
{
    (void)list;
    return y * (double)pool_window(p);
}

static bz_expected pool_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    const int64_t *x = p->pool.x;
    const float *xv = bz_reference_values(r, BZ_ROLE_X);
    int n = bz_extent_rank(x) - 2;
    int64_t window = pool_window(p), plane = bz_extent_count(x + 2), inside_count = 0;
    int64_t which = 0;
    double most = -INFINITY;
    bz_expected e = {0};
    for (int64_t k = 0; k < window; k++) {
        int64_t at[BZ_PROBLEM_SPATIAL], from = 0;
        bool inside = true;
        bz_unravel(k, p->pool.kernel, n, at);
        for (int i = 0; i < n; i++) {
            int64_t pos = y[2 + i] * p->pool.stride[i] + at[i] * p->pool.dilation[i] - p->pool.pad[i];
            inside &= pos >= 0 && pos < x[2 + i];
            from = from * x[2 + i] + pos;
        }
        if (!inside)
            continue;
        double v = xv[(y[0] * x[1] + y[1]) * plane + from];
        which = v > most ? k : which;
        most = v > most ? v : most;
        inside_count++;
        bz_expected_add(&e, v);
    }
    if (bz_reference_role(r) == BZ_ROLE_INDEX)
        return (bz_expected){.value = (double)which, .magnitude = 0};
    if (p->pool.mode == BZ_POOL_MAX)
        return (bz_expected){.value = most, .magnitude = fabs(most)};
    double by = p->pool.mode == BZ_POOL_AVG ? (double)(inside_count ? inside_count : 1) : (double)window;
    return (bz_expected){.value = e.value / by, .magnitude = e.magnitude / by};
}

/* Where a window lies: of each dimension what stands under its element k. False where that is outside. */
static bool pool_position(const bz_problem *p, const int64_t *window, int64_t k, int64_t *pos)
{
    int n = bz_extent_rank(p->pool.x) - 2;
    bool inside = true;
    bz_unravel(k, p->pool.kernel, n, pos);
    for (int i = 0; i < n; i++) {
        pos[i] = window[i] * p->pool.stride[i] + pos[i] * p->pool.dilation[i] - p->pool.pad[i];
        inside &= pos[i] >= 0 && pos[i] < p->pool.x[2 + i];
    }
    return inside;
}

/* An element of the window that is not in the padding. */
static double pool_index(const bz_problem *p, int64_t at, uint64_t random)
{
    int64_t count = pool_window(p), pos[BZ_PROBLEM_SPATIAL], window[BZ_PROBLEM_SPATIAL];
    bz_extent y = {0};
    pool_result(p, y);
    bz_unravel(at, y + 2, bz_extent_rank(y) - 2, window);
    int64_t k = (int64_t)(random % (uint64_t)count);
    for (int64_t tried = 0; tried < count && !pool_position(p, window, k, pos); tried++)
        k = (k + 1) % count;
    return (double)k;
}

static void pool_grad_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_extent dy = {0};
    pool_result(p, dy);
    bz_operand_add_shape(l, BZ_ROLE_DY, p->dtype, dy);
    if (p->pool.mode == BZ_POOL_MAX)
        bz_operand_add_shape(l, BZ_ROLE_INDEX, pool_index_dtype(p), dy);
    memcpy(y, p->pool.x, sizeof(bz_extent));
}

static double pool_grad_flops(const bz_problem *p, const bz_operand *list, double y)
{
    (void)y;
    return (double)list[0].count * (p->pool.mode == BZ_POOL_MAX ? 1 : (double)pool_window(p));
}

/* What a window passes on to each of its elements: a share of its gradient. */
static double pool_divisor(const bz_problem *p, const int64_t *window)
{
    int64_t count = pool_window(p), inside = 0, pos[BZ_PROBLEM_SPATIAL];
    if (p->pool.mode != BZ_POOL_AVG)
        return (double)count;
    for (int64_t k = 0; k < count; k++)
        inside += pool_position(p, window, k, pos);
    return inside ? (double)inside : 1;
}

/* All windows that the element stands in. */
static bz_expected pool_grad_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    const int64_t *dy = r->operand[0].dim, *x = p->pool.x;
    int n = bz_extent_rank(x) - 2;
    int64_t count = pool_window(p), windows = bz_extent_count(dy + 2);
    bz_expected e = {0};
    for (int64_t k = 0; k < count; k++) {
        int64_t window[BZ_PROBLEM_SPATIAL], at = 0;
        bool there = true;
        bz_unravel(k, p->pool.kernel, n, window);
        for (int i = 0; i < n; i++) {
            int64_t pos = r->y[2 + i] + p->pool.pad[i] - window[i] * p->pool.dilation[i];
            there &= pos >= 0 && pos % p->pool.stride[i] == 0 && pos / p->pool.stride[i] < dy[2 + i];
            window[i] = pos / p->pool.stride[i];
            at = at * dy[2 + i] + window[i];
        }
        at += (r->y[0] * x[1] + r->y[1]) * windows;
        if (!there || (p->pool.mode == BZ_POOL_MAX && (int64_t)r->value[1][at] != k))
            continue;
        bz_expected_add(&e, (double)r->value[0][at] / (p->pool.mode == BZ_POOL_MAX ? 1 : pool_divisor(p, window)));
    }
    return e;
}

static double pool_grad_cost(const bz_problem *p)
{
    double n = (double)pool_window(p);
    return p->pool.mode == BZ_POOL_AVG ? n * n : n;
}

/* clang-format off */
#define CONV_MEMBERS \
    BZ_REQUIRED("x", EXTENT, conv.x), BZ_REQUIRED("w", EXTENT, conv.w), BZ_USUAL("stride", SPATIAL, conv.stride, 1), \
    BZ_USUAL("pad", PADS, conv.pad, 0), BZ_USUAL("dilation", SPATIAL, conv.dilation, 1), \
    BZ_USUAL("group", INT, conv.group, 1)
#define POOL_MEMBERS \
    BZ_NAMED("mode", pool.mode, POOLS, "BZ_POOL_"), BZ_REQUIRED("x", EXTENT, pool.x), \
    BZ_REQUIRED("kernel", SPATIAL, pool.kernel), BZ_USUAL("stride", SPATIAL, pool.stride, 1), \
    BZ_USUAL("pad", PADS, pool.pad, 0), BZ_USUAL("dilation", SPATIAL, pool.dilation, 1)

const bz_kind bz_kind_conv = {.name = "conv",
    .traits = BZ_TRAIT_PRODUCT | BZ_TRAIT_WINDOW | BZ_TRAIT_CONVOLUTION | BZ_TRAIT_POST,
    .operands = conv_operands, .check = check_conv, .depth = conv_depth, .at = conv_at, .member = {CONV_MEMBERS}};

const bz_kind bz_kind_deconv = {.name = "deconv",
    .traits = BZ_TRAIT_PRODUCT | BZ_TRAIT_WINDOW | BZ_TRAIT_CONVOLUTION | BZ_TRAIT_POST,
    .operands = conv_operands, .check = check_conv, .depth = deconv_depth, .flops = deconv_flops, .at = deconv_at, .member = {
    BZ_REQUIRED("x", EXTENT, deconv.x), BZ_REQUIRED("w", EXTENT, deconv.w),
    BZ_USUAL("stride", SPATIAL, deconv.stride, 1), BZ_USUAL("pad", PADS, deconv.pad, 0),
    BZ_USUAL("dilation", SPATIAL, deconv.dilation, 1), BZ_USUAL("outpad", SPATIAL, deconv.outpad, 0),
    BZ_USUAL("group", INT, deconv.group, 1)}};

const bz_kind bz_kind_pool = {.name = "pool", .traits = BZ_TRAIT_WINDOW, .operands = pool_operands,
    .check = check_pool, .flops = pool_flops, .at = pool_at, .member = {
    POOL_MEMBERS, BZ_OPTIONAL("training", FLAG, pool.training, 0)}};

const bz_kind bz_kind_pool_grad = {.name = "pool_grad", .field = "pool", .traits = BZ_TRAIT_WINDOW | BZ_TRAIT_GRADIENT,
    .operands = pool_grad_operands, .check = check_pool, .flops = pool_grad_flops, .at = pool_grad_at,
    .cost = pool_grad_cost, .index = pool_index, .member = {POOL_MEMBERS}};

const bz_kind bz_kind_conv_norm = {.name = "conv_norm", .field = "conv",
    .traits = BZ_TRAIT_PRODUCT | BZ_TRAIT_POST | BZ_TRAIT_WINDOW | BZ_TRAIT_CONVOLUTION,
    .operands = conv_norm_operands, .check = check_conv_norm, .depth = conv_depth, .at = conv_norm_at,
    .cost = conv_norm_cost, .member = {CONV_MEMBERS, BZ_USUAL("before", FLAG, conv.before, 0),
    BZ_USUAL("behind", FLAG, conv.behind, 0)}};

const bz_kind bz_kind_conv_data = {.name = "conv_data", .field = "conv",
    .traits = BZ_TRAIT_PRODUCT | BZ_TRAIT_WINDOW | BZ_TRAIT_CONVOLUTION | BZ_TRAIT_GRADIENT,
    .operands = conv_data_operands, .check = check_conv, .depth = deconv_depth, .flops = deconv_flops,
    .at = deconv_at, .member = {CONV_MEMBERS}};

const bz_kind bz_kind_conv_weights = {.name = "conv_weights", .field = "conv",
    .traits = BZ_TRAIT_PRODUCT | BZ_TRAIT_WINDOW | BZ_TRAIT_CONVOLUTION | BZ_TRAIT_GRADIENT,
    .operands = conv_weights_operands, .check = check_conv, .depth = conv_weights_depth,
    .at = conv_weights_at, .member = {CONV_MEMBERS}};
/* clang-format on */
