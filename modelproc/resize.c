/* Resize and Upsample: sizes, or scales, for all axes or for some. */
#include "modelproc/resize.h"
#include "modelproc/rule.h"

#include <math.h>

/* Products are made in single precision, as the frameworks do: 10 × 0.7 is 7 there, and 6 in double. */
static int scaled(call *c, bz_dim dim, double scale, bz_dim *out)
{
    if (!(scale > 0) || isinf(scale))
        return call_fail(c, "a scale is %g", scale);
    if (bz_is_symbol(dim)) {
        *out = scale == 1 ? dim : new_symbol(c);
        return 0;
    }
    float product = floorf((float)dim * (float)scale);
    if (product > 1e15F)
        return call_fail(c, "a scale of %g makes it larger than any memory", scale);
    *out = scale == 1 ? dim : (bz_dim)product;
    return 0;
}

static void note_scales(call *c, const double *scales, int n)
{
    bz_buf text = {0};
    for (int i = 0; i < n; i++)
        bz_buf_printf(&text, "%s%g", i ? "x" : "", scales[i]);
    param_text(c, "scales", bz_buf_keep(&text, c->arena));
}

static int by_scales(call *c, const bz_type *x, const double *scales, int64_t n, const int *axes, int n_axes,
                     bz_dim *dims)
{
    if (n != n_axes)
        return call_fail(c, "it has %lld scales for %d axes", (long long)n, n_axes);
    bool exact = true;
    for (int i = 0; i < n_axes; i++) {
        if (scaled(c, x->dims[axes[i]], scales[i], &dims[axes[i]]))
            return -1;
        exact &=
            bz_is_symbol(dims[axes[i]]) || fabs((double)x->dims[axes[i]] * scales[i] - (double)dims[axes[i]]) < 1e-3;
    }
    if (!exact) /* the result was cut: pixels are taken by the scales, not by the ratio of sizes */
        note_scales(c, scales, n_axes);
    return 0;
}

/* One factor for all axes that keeps every one of them within (beyond) its size. */
static void keep_ratio(call *c, const bz_type *x, bool not_larger, const int *axes, int n_axes, bz_dim *dims)
{
    double factor = 0;
    for (int i = 0; i < n_axes; i++) {
        bz_dim size = dims[axes[i]], from = x->dims[axes[i]];
        if (bz_is_symbol(size) || bz_is_symbol(from) || from == 0) {
            for (int k = 0; k < n_axes; k++)
                dims[axes[k]] = new_symbol(c);
            return;
        }
        double f = (double)size / (double)from;
        factor = i == 0 || (not_larger ? f < factor : f > factor) ? f : factor;
    }
    for (int i = 0; i < n_axes; i++) {
        double size = round(factor * (double)x->dims[axes[i]]);
        dims[axes[i]] = size < 1e15 ? (bz_dim)size : new_symbol(c);
    }
}

static int by_sizes(call *c, const bz_type *x, const int64_t *sizes, int64_t n, const int *axes, int n_axes,
                    bz_dim *dims)
{
    if (n != n_axes)
        return call_fail(c, "it has %lld sizes for %d axes", (long long)n, n_axes);
    for (int i = 0; i < n_axes; i++) {
        if (sizes[i] < 0 && !bz_is_symbol(sizes[i]))
            return call_fail(c, "size %d is negative", i);
        dims[axes[i]] = sizes[i];
    }
    const char *policy = attr_text(c, "keep_aspect_ratio_policy", "stretch");
    bool not_larger = !strcmp(policy, "not_larger");
    if (not_larger || !strcmp(policy, "not_smaller"))
        keep_ratio(c, x, not_larger, axes, n_axes, dims);
    else if (strcmp(policy, "stretch") != 0)
        return call_fail(c, "keep_aspect_ratio_policy '%s' is none of stretch, not_larger, not_smaller", policy);
    return 0;
}

static void note_mode(call *c)
{
    const char *mode = attr_text(c, "mode", "nearest");
    bool resize = !strcmp(c->node->op, "Resize") && c->node->opset > 10, cubic = !strcmp(mode, "cubic");
    const char *coordinates = resize ? attr_text(c, "coordinate_transformation_mode", "half_pixel") : "asymmetric";
    param_text(c, "mode", mode);
    param_text(c, "coordinates", coordinates);
    if (!strcmp(mode, "nearest"))
        param_text(c, "round", resize ? attr_text(c, "nearest_mode", "round_prefer_floor") : "floor");
    if (cubic)
        param_real(c, "a", attr_float(c, "cubic_coeff_a", -0.75));
    if (attr_int(c, "exclude_outside", 0))
        param_int(c, "exclude_outside", 1);
    if (attr_int(c, "antialias", 0))
        param_int(c, "antialias", 1);
    if (!strcmp(coordinates, "tf_crop_and_resize"))
        param_real(c, "extrapolation", attr_float(c, "extrapolation_value", 0));
}

/* An operand that is there and not empty: exporters leave operands out by passing empty ones. */
static const bz_type *filled(call *c, int k)
{
    const bz_type *t = in_type(c, k);
    return t && !(t->kind == BZ_TYPE_TENSOR && t->rank == 1 && t->dims[0] == 0) ? t : NULL;
}

int resize_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axes[BZ_MAX_RANK];
    int n_axes = axes_of(c, -1, "axes", x->rank, axes);
    if (n_axes < 0)
        return -1;
    if (n_axes == 0)
        for (; n_axes < x->rank; n_axes++)
            axes[n_axes] = n_axes;
    bz_dim *dims = bz_arena_dup(c->arena, x->dims, (size_t)x->rank * sizeof *dims);
    bool old = c->node->opset <= 10;
    int at_scales = old ? 1 : 2, at_sizes = 3, failed = 0;
    int64_t n;
    if (!old && filled(c, at_sizes)) {
        const int64_t *sizes = in_ints(c, at_sizes, &n);
        for (int i = 0; !sizes && i < n_axes; i++)
            dims[axes[i]] = new_symbol(c);
        failed = sizes && by_sizes(c, x, sizes, n, axes, n_axes, dims);
    } else if (filled(c, at_scales)) {
        const data *d = in_data(c, at_scales);
        const double *scales = d ? d->r : NULL;
        for (int i = 0; !scales && i < n_axes; i++)
            dims[axes[i]] = new_symbol(c);
        failed = scales && by_scales(c, x, scales, d->n, axes, n_axes, dims);
    } else {
        return call_fail(c, "it has neither sizes nor scales");
    }
    if (failed)
        return -1;
    set_out(c, 0, x->dtype, x->rank, dims);
    note_mode(c);
    return 0;
}

static int upsample_scales(call *c, const bz_type *x, double *scales)
{
    const bz_attr *a = bz_node_attr(c->node, "scales");
    if (a && a->kind == BZ_ATTR_FLOATS) {
        if (a->n != x->rank)
            return call_fail(c, "it has %d scales for %d axes", a->n, x->rank);
        for (int i = 0; i < a->n; i++)
            scales[i] = (double)a->floats[i];
        return 0;
    }
    if (x->rank != 4 || !bz_node_attr(c->node, "height_scale") || !bz_node_attr(c->node, "width_scale"))
        return call_fail(c, "it has no scales");
    scales[0] = scales[1] = 1;
    scales[2] = attr_float(c, "height_scale", 1);
    scales[3] = attr_float(c, "width_scale", 1);
    return 0;
}

int upsample_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axes[BZ_MAX_RANK];
    double scales[BZ_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        axes[i] = i;
    bz_dim *dims = new_dims(c, x->rank);
    if (in_type(c, 1)) {
        const data *d = in_data(c, 1);
        for (int i = 0; !(d && d->r) && i < x->rank; i++)
            dims[i] = new_symbol(c);
        if (d && d->r && by_scales(c, x, d->r, d->n, axes, x->rank, dims))
            return -1;
    } else if (upsample_scales(c, x, scales) || by_scales(c, x, scales, x->rank, axes, x->rank, dims)) {
        return -1;
    }
    set_out(c, 0, x->dtype, x->rank, dims);
    note_mode(c);
    return 0;
}

/* Separable: along each axis that changes, so many products and sums for each result. */
void resize_cost(call *c)
{
    const char *mode = attr_text(c, "mode", "nearest");
    int taps = strstr(mode, "cubic") ? 4 : strstr(mode, "linear") ? 2 : 0;
    int resized = 0;
    for (int i = 0; i < c->in[0].rank; i++)
        resized += c->in[0].dims[i] != c->out[0].dims[i];
    c->flops = count_mul(elements(&c->out[0]), 2 * taps * resized);
}
