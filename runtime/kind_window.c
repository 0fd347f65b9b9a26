/* Kinds that go over their input window by window: convolutions and pooling. */
#include "runtime/kind.h"

#include <string.h>

/* ---- convolutions --------------------------------------------------------------------------- */

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

static bz_expected conv_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    const int64_t *x = p->conv.x, *w = p->conv.w;
    const float *xv = bz_reference_values(r, BZ_ROLE_X), *wv = bz_reference_values(r, BZ_ROLE_W);
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
                            (double)xv[(y[0] * x[1] + first + c) * plane + from] * wv[(y[1] * w[1] + c) * window + k]);
    }
    return e;
}

static double deconv_depth(const bz_problem *p)
{
    return (double)p->deconv.x[1];
}

/* Every input meets every weight of its group. */
static double deconv_flops(const bz_problem *p, const bz_operand *list, double y)
{
    (void)y;
    return 2 * (double)list[0].count * (double)bz_extent_count(p->deconv.w + 1);
}

/* y = x · stride + k · dilation − pad, solved for x */
static bz_expected deconv_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    const int64_t *x = p->conv.x, *w = p->conv.w;
    const float *xv = bz_reference_values(r, BZ_ROLE_X), *wv = bz_reference_values(r, BZ_ROLE_W);
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

/* ---- pooling -------------------------------------------------------------------------------- */

static const char *const POOLS[] = {"max", "avg", "avg_pad", NULL};

static void pool_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    int n = bz_extent_rank(p->pool.x) - 2;
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->pool.x);
    memcpy(y, p->pool.x, 2 * sizeof *y);
    for (int i = 0; i < n; i++)
        y[2 + i] = bz_window_result(p->pool.x[2 + i], p->pool.kernel[i], p->pool.stride[i], p->pool.pad[i],
                                    p->pool.pad[n + i], p->pool.dilation[i]);
}

static int check_pool(const bz_problem *p, bz_error *err)
{
    return bz_problem_check_window(p, p->pool.x, p->pool.kernel, p->pool.stride, p->pool.pad, p->pool.dilation, err);
}

static int64_t pool_window(const bz_problem *p)
{
    int64_t count = 1;
    for (int i = 0; p->pool.x[2 + i]; i++)
        count *= p->pool.kernel[i];
    return count;
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
        most = v > most ? v : most;
        inside_count++;
        bz_expected_add(&e, v);
    }
    if (p->pool.mode == BZ_POOL_MAX)
        return (bz_expected){most, fabs(most)};
    double by = p->pool.mode == BZ_POOL_AVG ? (double)(inside_count ? inside_count : 1) : (double)window;
    return (bz_expected){e.value / by, e.magnitude / by};
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* clang-format off */
const bz_kind bz_kind_conv = {.name = "conv",
    .traits = BZ_TRAIT_PRODUCT | BZ_TRAIT_WINDOW | BZ_TRAIT_CONVOLUTION | BZ_TRAIT_POST,
    .operands = conv_operands, .check = check_conv, .depth = conv_depth, .at = conv_at, .member = {
    BZ_REQUIRED("x", EXTENT, conv.x), BZ_REQUIRED("w", EXTENT, conv.w), BZ_USUAL("stride", SPATIAL, conv.stride, 1),
    BZ_USUAL("pad", PADS, conv.pad, 0), BZ_USUAL("dilation", SPATIAL, conv.dilation, 1),
    BZ_USUAL("group", INT, conv.group, 1)}};

const bz_kind bz_kind_deconv = {.name = "deconv",
    .traits = BZ_TRAIT_PRODUCT | BZ_TRAIT_WINDOW | BZ_TRAIT_CONVOLUTION | BZ_TRAIT_POST,
    .operands = conv_operands, .check = check_conv, .depth = deconv_depth, .flops = deconv_flops, .at = deconv_at, .member = {
    BZ_REQUIRED("x", EXTENT, deconv.x), BZ_REQUIRED("w", EXTENT, deconv.w),
    BZ_USUAL("stride", SPATIAL, deconv.stride, 1), BZ_USUAL("pad", PADS, deconv.pad, 0),
    BZ_USUAL("dilation", SPATIAL, deconv.dilation, 1), BZ_USUAL("outpad", SPATIAL, deconv.outpad, 0),
    BZ_USUAL("group", INT, deconv.group, 1)}};

const bz_kind bz_kind_pool = {.name = "pool", .traits = BZ_TRAIT_WINDOW, .operands = pool_operands,
    .check = check_pool, .flops = pool_flops, .at = pool_at, .member = {
    BZ_NAMED("mode", pool.mode, POOLS, "BZ_POOL_"), BZ_REQUIRED("x", EXTENT, pool.x),
    BZ_REQUIRED("kernel", SPATIAL, pool.kernel), BZ_USUAL("stride", SPATIAL, pool.stride, 1),
    BZ_USUAL("pad", PADS, pool.pad, 0), BZ_USUAL("dilation", SPATIAL, pool.dilation, 1)}};
/* clang-format on */
