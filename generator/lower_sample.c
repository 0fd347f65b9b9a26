/* Layers that sample images between their pixels, and their gradients. A problem has the places in pixels: what a layer does to
 * find them is a few operations for a place, whatever the number of channels, and is not counted. */
#include "generator/lower.h"

#define TWO "our loops sample in two dimensions"

/* Operand k of the forward layer: a gradient has dy before it. */
static const bz_type *forward_in(const lowering *l, int k)
{
    return lower_in(l, k + (l->arg == BZ_PROBLEM_SAMPLE_GRAD));
}

/* What the forward layer gives, or the gradient of that. */
static const bz_type *forward_out(const lowering *l)
{
    return l->arg == BZ_PROBLEM_SAMPLE_GRAD ? lower_in(l, 0) : &l->layer->out[0];
}

/* NULL where x are no images. */
static bz_problem *sample_step(lowering *l, bz_problem_kind kind, int64_t rows, int64_t groups, int64_t points)
{
    const bz_type *x = forward_in(l, 0);
    bz_problem *p = lower_step(l, kind);
    p->sample.mode = BZ_RESAMPLE_LINEAR;
    if (!x || x->rank != 4 || lower_extent(x, 0, p->sample.x))
        return NULL;
    memcpy(p->sample.at, (bz_extent){rows, groups, points, 2}, sizeof(bz_extent));
    return p;
}

static int lower_grid(lowering *l)
{
    const bz_type *grid = forward_in(l, 1), *y = forward_out(l);
    const char *mode = lower_word(l, "mode", "linear"), *outside = lower_word(l, "padding_mode", "zeros");
    if (!grid || grid->rank != 4 || !y || y->rank != 4)
        return lower_no(l, TWO);
    if (strstr(mode, "cubic") || !strcmp(outside, "reflection"))
        return lower_no(l, "our loops sample the nearest pixel and linearly only, and reflect nothing");
    bz_problem *p = sample_step(l, (bz_problem_kind)l->arg, y->dims[0], 1, y->dims[2] * y->dims[3]);
    if (!p)
        return lower_no(l, TWO);
    p->sample.mode = strstr(mode, "nearest") ? BZ_RESAMPLE_NEAREST : BZ_RESAMPLE_LINEAR;
    p->sample.outside = !strcmp(outside, "border") ? BZ_OUTSIDE_EDGE : BZ_OUTSIDE_ZEROS;
    p->sample.fixed = l->arg == BZ_PROBLEM_SAMPLE_GRAD && !lower_has_result(l, 1);
    return lower_done(l);
}

/* How many samples an adaptive ratio takes depends on the regions: one is the least. */
static int lower_regions(lowering *l)
{
    const bz_type *y = forward_out(l);
    int64_t ratio = lower_int(l, "sampling_ratio", 0);
    ratio = ratio < 1 ? 1 : ratio;
    if (strcmp(lower_word(l, "mode", "avg"), "avg") != 0 || ratio > 16)
        return lower_no(l, "our loops take the mean of at most 256 samples");
    bz_problem *p = y && y->rank == 4 ? sample_step(l, (bz_problem_kind)l->arg, y->dims[0], 1,
                                                    y->dims[2] * y->dims[3] * ratio * ratio)
                                      : NULL;
    if (!p)
        return lower_no(l, TWO);
    p->sample.outside = BZ_OUTSIDE_EDGE;
    p->sample.mean = ratio * ratio;
    p->sample.fixed = l->arg == BZ_PROBLEM_SAMPLE_GRAD;
    return lower_done(l);
}

/* A column of samples for each element of the result: [N, group, channels · kernel, elements]. */
typedef struct columns {
    int64_t batch, group, in, out, elements; /* of a group: channels · kernel, results */
} columns;

static int read_columns(const lowering *l, columns *c)
{
    const bz_type *x = forward_in(l, 0), *w = forward_in(l, 1), *y = forward_out(l);
    if (!x || !w || !y || x->rank != 4 || w->rank != 4 || y->rank != 4 || w->dims[1] < 1)
        return -1;
    *c = (columns){y->dims[0], x->dims[1] / w->dims[1], w->dims[1] * w->dims[2] * w->dims[3], 0,
                   y->dims[2] * y->dims[3]};
    c->out = c->group > 0 ? w->dims[0] / c->group : 0;
    return c->out < 1 || c->batch < 1 || c->elements < 1 ? -1 : 0;
}

static int columns_step(lowering *l, bz_problem_kind kind, const columns *c)
{
    const bz_type *w = forward_in(l, 1);
    bz_problem *p =
        sample_step(l, kind, c->batch, lower_int(l, "offset_group", 1), w->dims[2] * w->dims[3] * c->elements);
    if (!p)
        return -1;
    p->sample.masked = forward_in(l, 4) != NULL;
    return 0;
}

/* a [batch, group, m, k] times b [batch, group, k, n], each of which may lie turned. */
static bz_problem *product_step(lowering *l, const columns *c, bool weights, int64_t m, int64_t k, int64_t n)
{
    return lower_matrices(l, (bz_extent){weights ? 1 : c->batch, c->group, m, k},
                          (bz_extent){c->batch, c->group, k, n});
}

/* Columns, their product with the weights, and the bias. */
static int lower_deformed(lowering *l)
{
    columns c;
    if (read_columns(l, &c) || columns_step(l, BZ_PROBLEM_SAMPLE, &c))
        return lower_no(l, TWO);
    product_step(l, &c, true, c.out, c.in, c.elements);
    if (forward_in(l, 3))
        lower_combine(l, BZ_FN_ADD, (bz_extent){c.batch, c.group * c.out, c.elements},
                      (bz_extent){1, c.group * c.out, 1});
    return lower_done(l);
}

/* Columns again and the gradient of the weights by them, the gradient of the columns, and what that is of x, offsets and mask. */
static int lower_deformed_grad(lowering *l)
{
    columns c;
    if (read_columns(l, &c) || columns_step(l, BZ_PROBLEM_SAMPLE, &c))
        return lower_no(l, TWO);
    product_step(l, &c, false, c.out, c.elements, c.in)->matmul.transb = true;
    if (c.batch > 1)
        lower_sum(l, (bz_extent){c.batch, c.group * c.out, c.in}, (bz_extent){1, c.group * c.out, c.in});
    product_step(l, &c, true, c.in, c.out, c.elements)->matmul.transa = true;
    if (columns_step(l, BZ_PROBLEM_SAMPLE_GRAD, &c))
        return lower_no(l, TWO);
    if (lower_has_result(l, 3))
        lower_sum(l, (bz_extent){c.batch, c.group * c.out, c.elements}, (bz_extent){1, c.group * c.out, 1});
    return lower_done(l);
}

const lower_row lower_sample_rows[] = {
    {"gridsample", lower_grid, BZ_PROBLEM_SAMPLE, .ours = FLOATS},
    {"gridsample_grad", lower_grid, BZ_PROBLEM_SAMPLE_GRAD, .ours = FLOATS},
    {"roialign", lower_regions, BZ_PROBLEM_SAMPLE, .ours = FLOATS},
    {"roialign_grad", lower_regions, BZ_PROBLEM_SAMPLE_GRAD, .ours = FLOATS},
    {"deformconv", lower_deformed, BZ_PROBLEM_SAMPLE, .types = FLOATS},
    {"deformconv_grad", lower_deformed_grad, BZ_PROBLEM_SAMPLE_GRAD, .types = FLOATS},
    {0},
};
