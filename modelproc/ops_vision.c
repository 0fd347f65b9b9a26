/* Sampling images: regions of interest, grids, unfolded columns. Resize has a file of its own. */
#include "modelproc/geometry.h"
#include "modelproc/resize.h"
#include "modelproc/rule.h"

/* An attribute that must be a positive number. */
static int positive(call *c, const char *name, int64_t otherwise, int64_t *v)
{
    *v = attr_int(c, name, otherwise);
    return *v > 0 && !bz_is_symbol(*v) ? 0 : call_fail(c, "%s is %lld", name, (long long)*v);
}

static int roi_align_shape(call *c)
{
    const bz_type *x = need(c, 0, 4), *rois = need(c, 1, 2), *index = need(c, 2, 1);
    int64_t height, width;
    if (positive(c, "output_height", 1, &height) || positive(c, "output_width", 1, &width))
        return -1;
    if (!dims_fit(rois->dims[1], 4) || !dims_fit(rois->dims[0], index->dims[0]))
        return call_fail(c, "regions must be four numbers each, with one batch index each");
    bz_dim n = dim_same(rois->dims[0], index->dims[0]);
    param_text(c, "mode", attr_text(c, "mode", "avg"));
    param_int(c, "sampling_ratio", attr_int(c, "sampling_ratio", 0));
    param_text(
        c, "coordinates",
        attr_text(c, "coordinate_transformation_mode", c->node->opset < 16 ? "output_half_pixel" : "half_pixel"));
    return set_out(c, 0, x->dtype, 4, (bz_dim[]){n, x->dims[1], height, width});
}

/* Bilinear: four products and sums for each sample. How many samples an adaptive ratio takes depends on the
 * regions; one is the least. */
static void roi_align_cost(call *c)
{
    int64_t ratio = attr_int(c, "sampling_ratio", 0);
    ratio = ratio > 0 && ratio < 1 << 16 ? ratio : 1;
    c->flops = count_mul(elements(&c->out[0]), 8 * ratio * ratio);
}

static int max_roi_pool_shape(call *c)
{
    const bz_type *x = need(c, 0, 4), *rois = need(c, 1, 2);
    int n;
    const int64_t *pooled = attr_ints(c, "pooled_shape", &n);
    if (n != 2 || pooled[0] <= 0 || pooled[1] <= 0)
        return call_fail(c, "pooled_shape must be two positive numbers");
    if (!dims_fit(rois->dims[1], 5))
        return call_fail(c, "regions must be five numbers each");
    return set_out(c, 0, x->dtype, 4, (bz_dim[]){rois->dims[0], x->dims[1], pooled[0], pooled[1]});
}

static int nms_shape(call *c)
{
    const bz_type *boxes = need(c, 0, 3), *scores = need(c, 1, 3);
    if (!dims_fit(boxes->dims[2], 4) || !dims_fit(boxes->dims[0], scores->dims[0]) ||
        !dims_fit(boxes->dims[1], scores->dims[2]))
        return call_fail(c, "boxes must be [batch, boxes, 4] and scores [batch, classes, boxes]");
    set_out(c, 0, BZ_I64, 2, (bz_dim[]){new_symbol(c), 3});
    param_int(c, "center_point_box", attr_int(c, "center_point_box", 0));
    int64_t most;
    if (in_number(c, 2, &most))
        param_int(c, "max_boxes", most);
    return 0;
}

/* From operator set 20 on names are those of any number of dimensions. */
static const char *sample_mode(const call *c)
{
    const char *mode = attr_text(c, "mode", "linear");
    return !strcmp(mode, "bilinear") ? "linear" : !strcmp(mode, "bicubic") ? "cubic" : mode;
}

static int grid_sample_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *grid = need_any(c, 1);
    int rank = x->rank;
    if (rank < 3 || grid->rank != rank || !dims_fit(last_dim(grid, 1), rank - 2) ||
        !dims_fit(x->dims[0], grid->dims[0]))
        return call_fail(c, "its grid must be [batch, out..., %d] for data of %d dimensions", rank - 2, rank);
    bz_dim *dims = new_dims(c, rank);
    dims[0] = dim_same(x->dims[0], grid->dims[0]);
    dims[1] = x->dims[1];
    memcpy(dims + 2, grid->dims + 1, (size_t)(rank - 2) * sizeof *dims);
    set_out(c, 0, x->dtype, rank, dims);
    param_text(c, "mode", sample_mode(c));
    param_text(c, "padding_mode", attr_text(c, "padding_mode", "zeros"));
    param_int(c, "align_corners", attr_int(c, "align_corners", 0) != 0);
    return 0;
}

static void grid_sample_cost(call *c)
{
    const char *mode = sample_mode(c);
    int taps = !strcmp(mode, "nearest") ? 0 : !strcmp(mode, "cubic") ? 4 : 2;
    int64_t per_element = taps ? 2 : 0;
    for (int i = 2; i < c->in[0].rank; i++)
        per_element = count_mul(per_element, taps);
    c->flops = count_mul(elements(&c->out[0]), per_element);
}

static int affine_grid_shape(call *c)
{
    const bz_type *theta = need(c, 0, 3), *size = need(c, 1, 1);
    bz_dim axes = theta->dims[1];
    if (bz_is_symbol(axes))
        axes = bz_is_symbol(size->dims[0]) ? axes : size->dims[0] - 2;
    if (bz_is_symbol(axes))
        return set_unknown(c, 0, theta->dtype);
    if ((axes != 2 && axes != 3) || !dims_fit(theta->dims[2], axes + 1) || !dims_fit(size->dims[0], axes + 2))
        return call_fail(c, "it wants matrices of 2x3 with four sizes, or of 3x4 with five");
    int64_t n;
    const int64_t *v = in_ints(c, 1, &n);
    bz_dim dims[5];
    dims[0] = bz_is_symbol(theta->dims[0]) && v && n == axes + 2 ? v[0] : theta->dims[0];
    for (int i = 0; i < axes; i++) {
        dims[1 + i] = v && n == axes + 2 ? v[2 + i] : new_symbol(c);
        if (dims[1 + i] < 0 && !bz_is_symbol(dims[1 + i]))
            return call_fail(c, "size %d is negative", 2 + i);
    }
    dims[axes + 1] = axes;
    set_out(c, 0, theta->dtype, (int)axes + 2, dims);
    param_int(c, "align_corners", attr_int(c, "align_corners", 0) != 0);
    return 0;
}

static void affine_grid_cost(call *c)
{
    c->macs = count_mul(elements(&c->out[0]), last_dim(&c->in[0], 1));
}

static int center_crop_pad_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *shape = need(c, 1, 1);
    int axes[BZ_MAX_RANK];
    int n_axes = axes_of(c, -1, "axes", x->rank, axes);
    if (n_axes < 0)
        return -1;
    if (n_axes == 0 && !bz_node_attr(c->node, "axes"))
        for (; n_axes < x->rank; n_axes++)
            axes[n_axes] = n_axes;
    int64_t n;
    const int64_t *v = in_ints(c, 1, &n);
    if (!dims_fit(shape->dims[0], n_axes) || (v && n != n_axes))
        return call_fail(c, "it names %d axes, but %lld sizes", n_axes, (long long)shape->dims[0]);
    bz_dim *dims = bz_arena_dup(c->arena, x->dims, (size_t)x->rank * sizeof *dims);
    for (int i = 0; i < n_axes; i++) {
        dims[axes[i]] = v ? v[i] : new_symbol(c);
        if (dims[axes[i]] < 0 && !bz_is_symbol(dims[axes[i]]))
            return call_fail(c, "size %d is negative", i);
    }
    return set_out(c, 0, x->dtype, x->rank, dims);
}

/* The windows of a convolution put back: [n, channels·block, windows] -> [n, channels, image...]. */
static int col2im_shape(call *c)
{
    const bz_type *x = need(c, 0, 3), *image = need(c, 1, 1), *block = need(c, 2, 1);
    int64_t n_image, n_block;
    const int64_t *sizes = in_ints(c, 1, &n_image), *window = in_ints(c, 2, &n_block);
    bz_dim axes = dim_same(image->dims[0], block->dims[0]), per_channel = 1;
    if (bz_is_symbol(axes))
        return set_unknown(c, 0, x->dtype);
    if (axes < 1 || axes > BZ_MAX_RANK - 2 || !dims_fit(image->dims[0], block->dims[0]))
        return call_fail(c, "image_shape and block_shape must name the same number of axes");
    sizes = n_image == axes ? sizes : NULL; /* of a vector whose length is open, fewer may be known */
    window = n_block == axes ? window : NULL;
    bz_dim dims[BZ_MAX_RANK];
    dims[0] = x->dims[0];
    for (int i = 0; i < axes; i++) {
        dims[2 + i] = sizes ? sizes[i] : new_symbol(c);
        per_channel = dim_mul(c, per_channel, window ? window[i] : new_symbol(c));
        if ((dims[2 + i] <= 0 && !bz_is_symbol(dims[2 + i])) || (per_channel <= 0 && !bz_is_symbol(per_channel)))
            return call_fail(c, "image_shape and block_shape must be positive");
    }
    if (!bz_is_symbol(x->dims[1]) && !bz_is_symbol(per_channel) && x->dims[1] % per_channel)
        return call_fail(c, "%lld rows are no multiple of the block's %lld elements", (long long)x->dims[1],
                         (long long)per_channel);
    dims[1] = dim_div(c, x->dims[1], per_channel);
    set_out(c, 0, x->dtype, (int)axes + 2, dims);
    static const char *const NAMES[][2] = {{"strides", "stride"}, {"pads", "pad"}, {"dilations", "dilation"}};
    if (window)
        param_ints(c, "block", window, (int)axes);
    for (int i = 0; i < 3; i++) {
        int n;
        const int64_t *v = attr_ints(c, NAMES[i][0], &n);
        int64_t usual[2 * BZ_MAX_RANK];
        int n_usual = (int)axes * (i == 1 ? 2 : 1);
        for (int k = 0; k < n_usual; k++)
            usual[k] = i != 1;
        if (n && n != n_usual)
            return call_fail(c, "%s has %d numbers for %lld axes", NAMES[i][0], n, (long long)axes);
        param_ints(c, NAMES[i][1], n ? v : usual, n_usual);
    }
    return 0;
}

static int deform_conv_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *w = need_any(c, 1), *offset = need(c, 2, x->rank);
    bz_dim dims[BZ_MAX_RANK];
    if (same_dtype(c, x, w) || conv_shape(c, x, w, dims))
        return -1;
    for (int i = 2; i < x->rank; i++) {
        if (!dims_fit(dims[i], offset->dims[i]))
            return call_fail(c, "its offsets are for %lld positions of axis %d, not %lld", (long long)offset->dims[i],
                             i, (long long)dims[i]);
        dims[i] = dim_same(dims[i], offset->dims[i]);
    }
    set_out(c, 0, x->dtype, x->rank, dims);
    param_int(c, "offset_group", attr_int(c, "offset_group", 1));
    return 0;
}

/* The products of a convolution, and one bilinear sample (8 operations, a product with the mask)
 * for each input of a window. */
static void deform_conv_cost(call *c)
{
    const bz_type *x = &c->in[0], *w = &c->in[1], *y = &c->out[0];
    c->macs = conv_macs(w, y);
    int64_t samples = count_mul(y->dims[0], x->dims[1]);
    for (int i = 2; i < y->rank; i++)
        samples = count_mul(samples, count_mul(y->dims[i], w->dims[i]));
    c->flops = count_mul(samples, in_type(c, 4) ? 9 : 8);
}

static int image_decoder_shape(call *c)
{
    const char *format = attr_text(c, "pixel_format", "RGB");
    set_out(c, 0, BZ_U8, 3, (bz_dim[]){new_symbol(c), new_symbol(c), strcmp(format, "Grayscale") ? 3 : 1});
    param_text(c, "format", format);
    return 0;
}

static int max_unpool_dims(call *c, const bz_type *x, bz_dim *dims)
{
    int n_kernel, n_pads, n_strides, axes = x->rank - 2;
    const int64_t *kernel = attr_ints(c, "kernel_shape", &n_kernel), *pads = attr_ints(c, "pads", &n_pads),
                  *strides = attr_ints(c, "strides", &n_strides);
    if (n_kernel != axes || (n_pads && n_pads != 2 * axes) || (n_strides && n_strides != axes))
        return call_fail(c, "kernel_shape, pads and strides do not fit %d axes", axes);
    for (int i = 0; i < axes; i++) {
        bz_dim grown = dim_mul(c, dim_sub(c, x->dims[2 + i], 1), n_strides ? strides[i] : 1);
        grown = dim_add(c, grown, kernel[i]);
        for (int side = 0; n_pads && side < 2; side++)
            grown = dim_sub(c, grown, pads[i + side * axes]);
        if (grown <= 0 && !bz_is_symbol(grown))
            return call_fail(c, "nothing remains of axis %d", 2 + i);
        dims[2 + i] = grown;
    }
    param_ints(c, "kernel", kernel, axes);
    return 0;
}

static int max_unpool_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    need(c, 1, x->rank);
    if (x->rank < 3)
        return call_fail(c, "it wants a batch of images, not %d dimensions", x->rank);
    bz_dim dims[BZ_MAX_RANK];
    memcpy(dims, x->dims, 2 * sizeof *dims);
    if (max_unpool_dims(c, x, dims))
        return -1;
    int64_t n;
    const int64_t *given = in_ints(c, 2, &n);
    if (in_type(c, 2) && given && n != x->rank)
        return call_fail(c, "output_shape has %lld numbers for %d dimensions", (long long)n, x->rank);
    for (int i = 0; in_type(c, 2) && i < x->rank; i++) {
        dims[i] = given ? given[i] : i < 2 ? dims[i] : new_symbol(c);
        if (dims[i] < 0 && !bz_is_symbol(dims[i]))
            return call_fail(c, "output_shape is negative");
    }
    return set_out(c, 0, x->dtype, x->rank, dims);
}

static const op ROWS[] = {
    {"Resize", NULL, "resize", BZ_COMPUTE, resize_shape, .cost = resize_cost, .flags = OP_KEEPS, .labels = "x > y"},
    {"Upsample", NULL, "resize", BZ_COMPUTE, upsample_shape, .cost = resize_cost, .flags = OP_KEEPS, .labels = "x > y"},
    {"RoiAlign", NULL, "roialign", BZ_COMPUTE, roi_align_shape, .cost = roi_align_cost, .flags = OP_KEEPS,
     .labels = "x rois > y"},
    {"MaxRoiPool", NULL, "roipool", BZ_COMPUTE, max_roi_pool_shape, .flops = 1, .flags = OP_KEEPS,
     .labels = "x rois > y"},
    {"NonMaxSuppression", NULL, "nms", BZ_COMPUTE, nms_shape, .labels = "boxes scores"},
    {"GridSample", NULL, "gridsample", BZ_COMPUTE, grid_sample_shape, .cost = grid_sample_cost, .labels = "x grid"},
    {"AffineGrid", NULL, "affinegrid", BZ_COMPUTE, affine_grid_shape, .cost = affine_grid_cost, .labels = "theta > y"},
    {"CenterCropPad", NULL, "centercroppad", BZ_MEMORY, center_crop_pad_shape, .labels = "x > y"},
    {"Col2Im", NULL, "col2im", BZ_COMPUTE, col2im_shape, .flops = 1, .labels = "x > y"},
    {"DeformConv", NULL, "deformconv", BZ_COMPUTE, deform_conv_shape, .cost = deform_conv_cost,
     .labels = "x w offset b mask"},
    {"ImageDecoder", NULL, "imagedecoder", BZ_COMPUTE, image_decoder_shape, .labels = "x > y"},
    {"MaxUnpool", NULL, "maxunpool", BZ_MEMORY, max_unpool_shape, .flags = OP_KEEPS, .labels = "x > y"},
    {"GridSample", "com.microsoft", "gridsample", BZ_COMPUTE, grid_sample_shape, .cost = grid_sample_cost,
     .labels = "x grid"},
};
const op_table ops_vision = OP_TABLE(ROWS);
