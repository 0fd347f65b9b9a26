/* Derivatives of what samples: windows of a signal, transforms, grids and regions of images. */
#include "training/build.h"

#include <string.h>

static const char *whole_number(build *b, int64_t v)
{
    const char *name = grad_fresh(b, bz_arena_printf(b->arena, "%s/number", b->layer));
    bz_draft_tensor(&b->draft, name, BZ_I64, 0, NULL, &v, sizeof v);
    return name;
}

/* 0, hop, 2 · hop, …: n of them, as a column or a row. */
static const char *count_up(build *b, int64_t n, int64_t hop, bool column)
{
    const char *y = grad_node(b, "Range", whole_number(b, 0), whole_number(b, n * hop), whole_number(b, hop), NULL);
    return grad_reshape_dims(b, y, column ? (int64_t[]){n, 1} : (int64_t[]){1, n}, 2);
}

/* Whether n numbers are such as windows have. */
static bool are_sizes(const int64_t *v, int n, int64_t least)
{
    for (int i = 0; i < n; i++)
        if (v[i] < least || v[i] > 1 << 24)
            return false;
    return true;
}

/* What Col2Im adds up at a pixel comes back to each window: element k of window l is pixel row[k] + column[l]. */
static int col2im(grad *g)
{
    build *b = g->b;
    const bz_type *x = grad_type(g, 0), *y = &g->l->out[0];
    int n, n_pads, n_strides, n_dilations, rank = y->rank;
    const int64_t *block = grad_param(g, "block", &n), *pad = grad_param(g, "pad", &n_pads),
                  *stride = grad_param(g, "stride", &n_strides), *dilation = grad_param(g, "dilation", &n_dilations);
    if (n != rank - 2 || n_strides != n || n_dilations != n || n_pads != 2 * n || !are_sizes(block, n, 1) ||
        !are_sizes(stride, n, 1) || !are_sizes(dilation, n, 1) || !are_sizes(pad, 2 * n, 0))
        return grad_fail(g, "its windows depend on data, or are too large");
    int64_t pads[2 * BZ_MAX_RANK] = {0}, pixels = 1;
    const char *place = NULL;
    int64_t rows = 1, columns = 1;
    for (int i = n; i-- > 0;) { /* the last axis first: its pixels lie side by side */
        int64_t size = y->dims[2 + i] + pad[i] + pad[n + i], reach = (block[i] - 1) * dilation[i] + 1;
        int64_t windows = (size - reach) / stride[i] + 1;
        if (size < reach || size > ((int64_t)1 << 40) / pixels)
            return grad_fail(g, "it has no windows, or too many");
        const char *in = count_up(b, block[i], dilation[i] * pixels, true),
                   *of = count_up(b, windows, stride[i] * pixels, false);
        const char *axis = grad_node(b, "Add", in, of, NULL); /* [block, windows] of this axis */
        if (place) {
            axis = grad_reshape_dims(b, axis, (int64_t[]){block[i], 1, windows, 1}, 4);
            place = grad_reshape_dims(b, place, (int64_t[]){1, rows, 1, columns}, 4);
            axis = grad_node(b, "Add", axis, place, NULL);
        }
        rows *= block[i], columns *= windows, pixels *= size;
        place = grad_reshape_dims(b, axis, (int64_t[]){rows, columns}, 2);
        pads[2 + i] = pad[i], pads[rank + 2 + i] = pad[n + i];
    }
    const char *dy = grad_dy(g, 0);
    if (memcmp(pads, (int64_t[2 * BZ_MAX_RANK]){0}, sizeof pads) != 0)
        dy = grad_node(b, "Pad", dy, grad_ints(b, pads, 2 * rank), NULL);
    dy = grad_reshape_dims(b, dy, (int64_t[]){y->dims[0], y->dims[1], pixels}, 3);
    const char *dx = grad_node(b, "Gather", dy, place, NULL);
    GRAD_INT(b, "axis", 2);
    return grad_give(g, 0, grad_reshape(b, dx, x));
}

/* Elements that were put where a window had its largest one. */
static int max_unpool(grad *g)
{
    build *b = g->b;
    if (grad_has(g, 2))
        return grad_fail(g, "the shape of its result is an operand: there is no derivative for that");
    const char *dy = grad_reshape_dims(b, grad_dy(g, 0), (int64_t[]){-1}, 1);
    return grad_give(g, 0, grad_node(b, "Gather", dy, grad_x(g, 1), NULL));
}

/* Cut off comes back as zeros, and zeros are cut off: both keep the middle. */
static int center_crop_pad(grad *g)
{
    const bz_type *x = grad_type(g, 0);
    return grad_give(g, 0, grad_node(g->b, "CenterCropPad", grad_dy(g, 0), grad_ints(g->b, x->dims, x->rank), NULL));
}

/* The transform, or the inverse one without its 1/n, along an axis of n complex numbers. */
static const char *transform(build *b, const char *x, int64_t axis, int64_t n, bool inverse, bz_dtype dtype)
{
    const char *y;
    if (b->opset >= 20) {
        y = grad_node(b, "DFT", x, "", whole_number(b, axis), NULL);
    } else {
        y = grad_node(b, "DFT", x, NULL);
        GRAD_INT(b, "axis", axis);
    }
    GRAD_INT(b, "inverse", inverse);
    return grad_scaled(b, y, dtype, inverse ? (double)n : 1);
}

/* `length` elements along the axis become n: zeros behind them, or fewer. */
static const char *fitted(build *b, const char *x, int rank, int64_t axis, int64_t length, int64_t n)
{
    int64_t pads[2 * BZ_MAX_RANK] = {0};
    pads[rank + axis] = n - length;
    return n == length ? x : grad_node(b, "Pad", x, grad_ints(b, pads, 2 * rank), NULL);
}
/* Bins that a signal of real numbers does not need, as zeros. */
static const char *with_all_bins(grad *g, int64_t axis, int64_t n)
{
    const bz_type *y = &g->l->out[0];
    return fitted(g->b, grad_dy(g, 0), y->rank, axis, y->dims[axis], n);
}

static const char *real_part(build *b, const char *x, int rank)
{
    return grad_node(b, "Slice", x, grad_ints(b, (int64_t[]){0}, 1), grad_ints(b, (int64_t[]){1}, 1),
                     grad_ints(b, (int64_t[]){rank - 1}, 1), NULL);
}

/* Σ x e^(-ijk): the gradient is Σ dy e^(+ijk). */
static int dft(grad *g)
{
    build *b = g->b;
    const bz_type *x = grad_type(g, 0);
    int64_t axis = grad_param_int(g, "axis", -1);
    bool inverse = grad_param_int(g, "inverse", 0), onesided = grad_param_int(g, "onesided", 0);
    if (axis < 0 || (inverse && onesided))
        return grad_fail(g, "it makes real numbers of half a spectrum, or its axis depends on data: there is no "
                            "derivative for that");
    int64_t length = grad_param_int(g, "length", x->dims[axis]);
    const char *dy = onesided ? with_all_bins(g, axis, length) : grad_dy(g, 0);
    const char *dx = transform(b, dy, axis, length, !inverse, x->dtype);
    dx = grad_scaled(b, dx, x->dtype, inverse ? 1 / (double)length : 1);
    dx = fitted(b, dx, x->rank, axis, length, x->dims[axis]); /* what the transform never read has no gradient */
    return grad_give(g, 0, x->dims[x->rank - 1] == 1 ? real_part(b, dx, x->rank) : dx);
}

/* Frames of a signal by a window, each transformed: frames overlap, their gradients are added up. */
static int stft(grad *g)
{
    build *b = g->b;
    const bz_type *x = grad_type(g, 0), *y = &g->l->out[0];
    int64_t hop = grad_param_int(g, "step", 0), n = grad_param_int(g, "frame", 0), frames = y->dims[1];
    bool complex = x->rank == 3 && x->dims[2] == 2;
    if (hop < 1 || n < 1)
        return grad_fail(g, "its frames depend on data: there is no derivative for that");
    const char *dx = with_all_bins(g, 2, n); /* [batch, frames, n, 2] */
    dx = transform(b, dx, 2, n, true, x->dtype);
    dx = complex ? dx : real_part(b, dx, 4);
    const char *place = grad_node(b, "Add", count_up(b, frames, hop, true), count_up(b, n, 1, false), NULL);
    const int64_t dims[] = {x->dims[0], x->dims[1], complex ? 2 : 1};
    if (grad_wants(g, 2)) { /* each element of the window meets its place in each frame */
        const char *frame = grad_node(b, "Gather", grad_reshape_dims(b, grad_x(g, 0), dims, 3), place, NULL);
        GRAD_INT(b, "axis", 1);
        grad_give(g, 2, grad_sum_axes(b, grad_node(b, "Mul", frame, dx, NULL), (int64_t[]){0, 1, 3}, 3, false));
    }
    if (!grad_wants(g, 0))
        return 0;
    if (grad_has(g, 2))
        dx = grad_node(b, "Mul", dx, grad_reshape_dims(b, grad_x(g, 2), (int64_t[]){n, 1}, 2), NULL);
    dx = grad_node(b, "ms:GatherGrad", grad_ints(b, dims, 3), place, dx, NULL);
    GRAD_INT(b, "axis", 1);
    return grad_give(g, 0, grad_reshape(b, dx, x));
}

/* dA = dy · det A · (A^-1) turned */
static int det(grad *g)
{
    build *b = g->b;
    const bz_type *x = grad_type(g, 0);
    int64_t dims[BZ_MAX_RANK], perm[BZ_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        dims[i] = i < x->rank - 2 ? x->dims[i] : 1;
        perm[i] = i < x->rank - 2 ? i : 2 * x->rank - 3 - i;
    }
    const char *turned = grad_transpose(b, grad_node(b, "ms:Inverse", grad_x(g, 0), NULL), perm, x->rank);
    const char *share = grad_reshape_dims(b, grad_node(b, "Mul", grad_dy(g, 0), grad_y(g, 0), NULL), dims, x->rank);
    return grad_give(g, 0, grad_node(b, "Mul", turned, share, NULL));
}

/* A point of the grid is the matrix by its place: the places are the grid of the matrix that changes nothing. */
static int affine_grid(grad *g)
{
    build *b = g->b;
    const bz_type *theta = grad_type(g, 0), *y = &g->l->out[0];
    int axes = y->rank - 2;
    int64_t points = 1, n = y->dims[0], sizes[5] = {1, 1};
    float same[12] = {0};
    for (int i = 0; i < axes; i++) {
        points *= sizes[2 + i] = y->dims[1 + i];
        same[i * (axes + 1) + i] = 1;
    }
    const char *unit = grad_fresh(b, bz_arena_printf(b->arena, "%s/unit", b->layer));
    bz_draft_tensor(&b->draft, unit, BZ_F32, 3, (int64_t[]){1, axes, axes + 1}, same,
                    (size_t)(axes * (axes + 1)) * sizeof *same);
    if (theta->dtype != BZ_F32 || b->options->dtype)
        unit = grad_cast(b, unit, theta->dtype);
    const char *place = grad_node(b, "AffineGrid", unit, grad_ints(b, sizes, axes + 2), NULL);
    grad_copy_attrs(g, "");
    place = grad_reshape_dims(b, place, (int64_t[]){points, axes}, 2);
    const char *dy = grad_reshape_dims(b, grad_dy(g, 0), (int64_t[]){n, points, axes}, 3);
    const char *part[2] = {grad_node(b, "ms:FusedMatMul", dy, place, NULL)}, *dx;
    GRAD_INT(b, "transA", 1);
    part[1] = grad_sum_axes(b, dy, (int64_t[]){1}, 1, false);
    part[1] = grad_reshape_dims(b, part[1], (int64_t[]){n, axes, 1}, 3);
    grad_nodes(b, "Concat", part, 2, &dx, 1);
    GRAD_INT(b, "axis", 2);
    return grad_give(g, 0, dx);
}

/* Layers that sample between pixels: one operator makes the gradients of all their operands. Where regions lie has none, as in PyTorch. */
static int whole(grad *g)
{
    const char *in[GRAD_OPERANDS] = {grad_dy(g, 0)}, *out[GRAD_OPERANDS];
    int n = g->l->n_in, n_out = strcmp(g->l->node->op, "RoiAlign") != 0 ? n : 1;
    for (int k = 0; k < n; k++)
        in[k + 1] = grad_has(g, k) ? grad_x(g, k) : "";
    grad_nodes(g->b, bz_arena_printf(g->b->arena, "own:%sGrad", g->l->node->op), in, n + 1, out, n_out);
    grad_copy_attrs(g, "");
    return grad_give_results(g, out, n_out);
}

static const derivative ROWS[] = {
    {.ops = "Col2Im", .back = col2im},
    {.ops = "MaxUnpool", .back = max_unpool},
    {.ops = "CenterCropPad", .back = center_crop_pad},
    {.ops = "DFT", .back = dft},
    {.ops = "STFT", .back = stft},
    {.ops = "Det", .back = det},
    {.ops = "AffineGrid", .back = affine_grid},
    {.ops = "GridSample RoiAlign DeformConv", .back = whole},
    {.ops = "GridSample", .domain = "com.microsoft", .back = whole},
};
const derivative_table derivatives_sample = DERIVATIVES(ROWS);
