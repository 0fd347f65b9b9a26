/* Kinds that sample images between their pixels, where a tensor of places says: a grid, regions, the offsets of a deformed
 * convolution. Row r of the places belongs to image r · N / rows. */
#include "runtime/kind.h"

#include <string.h>

static const char *const MODES[] = {"nearest", "linear", NULL};
static const char *const OUTSIDE[] = {"zeros", "edge", NULL};

/* A pixel of a sample: where it lies in its plane, its share, and how that grows with the place's two coordinates. */
typedef struct pixel {
    int64_t at;
    double share, by[2];
} pixel;

/* What a coordinate reads: `n` pixels from `first` on, with their shares. */
typedef struct side {
    int64_t first;
    int n;
    double share[2], by[2];
} side;

static side side_at(const bz_problem *p, int axis, double place)
{
    double n = (double)p->sample.x[2 + axis], moves = 1;
    if (p->sample.outside == BZ_OUTSIDE_EDGE && (place < 0 || place > n - 1))
        place = place < 0 ? 0 : n - 1, moves = 0;
    if (!(place > -1 && place < n)) /* no pixel is near, or it is no number */
        return (side){0};
    if (p->sample.mode == BZ_RESAMPLE_NEAREST)
        return (side){(int64_t)nearbyint(place), 1, {1}, {0}};
    double low = floor(place), high = place - low;
    return (side){(int64_t)low, 2, {1 - high, high}, {-moves, moves}};
}

/* The pixels around a place, those alone that the image has. */
static int pixels_at(const bz_problem *p, const float *place, pixel *list)
{
    const int64_t *x = p->sample.x;
    side h = side_at(p, 0, (double)place[0]), w = side_at(p, 1, (double)place[1]);
    int n = 0;
    for (int i = 0; i < h.n; i++)
        for (int k = 0; k < w.n; k++) {
            int64_t row = h.first + i, column = w.first + k;
            if (row >= 0 && row < x[2] && column >= 0 && column < x[3])
                list[n++] =
                    (pixel){row * x[3] + column, h.share[i] * w.share[k], {h.by[i] * w.share[k], h.share[i] * w.by[k]}};
        }
    return n;
}

static int64_t image_of(const bz_problem *p, int64_t row)
{
    return row * p->sample.x[0] / p->sample.at[0];
}

static void add_inputs(const bz_problem *p, bz_operand_list *l)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->sample.x);
    bz_operand_add_shape(l, BZ_ROLE_INDEX, p->dtype, p->sample.at);
    if (p->sample.masked)
        bz_operand_add(l, BZ_ROLE_MASK, p->dtype, 3, p->sample.at);
}

static void sampled_shape(const bz_problem *p, int64_t *y)
{
    y[0] = p->sample.at[0], y[1] = p->sample.x[1], y[2] = p->sample.at[2] / p->sample.mean;
}

static void sample_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    add_inputs(p, l);
    sampled_shape(p, y);
}

static void sample_grad_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_extent dy = {0};
    sampled_shape(p, dy);
    bz_operand_add_shape(l, BZ_ROLE_DY, p->dtype, dy);
    add_inputs(p, l);
    if (!p->sample.fixed)
        bz_operand_add_result(l, BZ_ROLE_INDEX, p->dtype_y, 4, p->sample.at, -1);
    if (p->sample.masked)
        bz_operand_add_result(l, BZ_ROLE_MASK, p->dtype_y, 3, p->sample.at, -1);
    memcpy(y, p->sample.x, sizeof(bz_extent));
}

static int check_sample(const bz_problem *p, bz_error *err)
{
    const int64_t *x = p->sample.x, *at = p->sample.at;
    if (bz_extent_rank(x) != 4 || bz_extent_rank(at) != 4 || at[3] != 2 || x[1] % at[1] || at[0] < x[0])
        return bz_problem_refuse(p, "x is images, at=RxGxPx2 with a row or more for each and groups of its channels",
                                 err);
    if (x[2] > 1 << 14 || x[3] > 1 << 14)
        return bz_problem_refuse(p, "its images have at most 16384 rows and columns", err);
    if (p->sample.mean < 1 || p->sample.mean > BZ_SAMPLE_MEAN || at[2] % p->sample.mean)
        return bz_problem_refuse(p, "the mean is of 1 to 256 points, and all points are in one", err);
    if (p->dtype != p->dtype_y || !bz_dtype_is_float(p->dtype))
        return bz_problem_refuse(p, "what is sampled and its result have one floating-point type", err);
    return 0;
}

/* Places go over the image row by row, each somewhere in its share, as grids and offsets mostly do: a sample finds its pixels
 * near those of the one before. None lies on a pixel, where the gradient jumps. */
static double sample_index(const bz_problem *p, int64_t at, uint64_t random)
{
    int64_t point = at / 2 % p->sample.at[2], across = (int64_t)ceil(sqrt((double)p->sample.at[2]));
    double n = (double)p->sample.x[2 + at % 2], share = (double)(at % 2 ? point % across : point / across);
    double place = (share + (double)(random >> 40) * 0x1p-24) * n / (double)across - 0.5, low = floor(place);
    return low + 0.05 + 0.9 * (place - low);
}

/* Point i of row and group. */
static int64_t point_of(const bz_problem *p, int64_t row, int64_t channel, int64_t point)
{
    return (row * p->sample.at[1] + channel / (p->sample.x[1] / p->sample.at[1])) * p->sample.at[2] + point;
}

static bz_expected sample_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    const float *mask = p->sample.masked ? r->value[2] : NULL;
    int64_t plane = p->sample.x[2] * p->sample.x[3];
    const float *x = r->value[0] + (image_of(p, r->y[0]) * p->sample.x[1] + r->y[1]) * plane;
    bz_expected e = {0};
    pixel list[4];
    for (int64_t i = 0; i < p->sample.mean; i++) {
        int64_t at = point_of(p, r->y[0], r->y[1], r->y[2] * p->sample.mean + i);
        int n = pixels_at(p, r->value[1] + 2 * at, list);
        for (int k = 0; k < n; k++)
            bz_expected_add(&e, (double)x[list[k].at] * list[k].share * (mask ? (double)mask[at] : 1) /
                                    (double)p->sample.mean);
    }
    return e;
}

/* Of a place's coordinate (`axis` 0, 1), or of what its sample is multiplied by (-1): a sum over the channels of its group. */
static bz_expected place_grad(const bz_reference *r, int64_t at, int axis)
{
    const bz_problem *p = r->problem;
    const int64_t *x = p->sample.x, *places = p->sample.at;
    int64_t point = at % places[2], group = at / places[2] % places[1], row = at / places[2] / places[1];
    int64_t channels = x[1] / places[1], plane = x[2] * x[3], results = places[2] / p->sample.mean;
    double factor = (axis >= 0 && p->sample.masked ? (double)r->value[3][at] : 1) / (double)p->sample.mean;
    bz_expected e = {0};
    pixel list[4];
    int n = pixels_at(p, r->value[2] + 2 * at, list);
    for (int64_t c = group * channels; c < (group + 1) * channels; c++)
        for (int k = 0; k < n; k++)
            bz_expected_add(&e, factor * (double)r->value[0][(row * x[1] + c) * results + point / p->sample.mean] *
                                    (double)r->value[1][(image_of(p, row) * x[1] + c) * plane + list[k].at] *
                                    (axis < 0 ? list[k].share : list[k].by[axis]));
    return e;
}

static bz_expected sample_grad_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    const float *mask = p->sample.masked ? r->value[3] : NULL;
    int64_t results = p->sample.at[2] / p->sample.mean, pixel_at = r->y[2] * p->sample.x[3] + r->y[3];
    bz_expected e = {0};
    pixel list[4];
    if (bz_reference_role(r) == BZ_ROLE_INDEX)
        return place_grad(r, r->index / 2, (int)(r->index % 2));
    if (bz_reference_role(r) == BZ_ROLE_MASK)
        return place_grad(r, r->index, -1);
    for (int64_t row = 0; row < p->sample.at[0]; row++)
        for (int64_t i = 0; i < p->sample.at[2] && image_of(p, row) == r->y[0]; i++) {
            int64_t at = point_of(p, row, r->y[1], i);
            double dy = (double)r->value[0][(row * p->sample.x[1] + r->y[1]) * results + i / p->sample.mean];
            int n = pixels_at(p, r->value[2] + 2 * at, list);
            for (int k = 0; k < n; k++)
                if (list[k].at == pixel_at)
                    bz_expected_add(&e, dy * list[k].share * (mask ? (double)mask[at] : 1) / (double)p->sample.mean);
        }
    return e;
}

/* Four pixels of a sample: a product and a sum each. */
static double sample_flops(const bz_problem *p, const bz_operand *list, double y)
{
    (void)list;
    return y * (double)p->sample.mean * (p->sample.mode == BZ_RESAMPLE_NEAREST ? 0 : 8);
}

/* The same for x, and for both coordinates where somebody wants them. */
static double sample_grad_flops(const bz_problem *p, const bz_operand *list, double y)
{
    (void)y;
    return sample_flops(p, list, (double)list[0].count) * (p->sample.fixed ? 1 : 3);
}

static double sample_grad_cost(const bz_problem *p)
{
    const int64_t *x = p->sample.x, *at = p->sample.at;
    double rows = ceil((double)at[0] / (double)x[0]) * (double)at[2], channels = (double)x[1] / (double)at[1];
    return 8 * (rows > channels ? rows : channels);
}

/* clang-format off */
#define SAMPLE(text, ...) { \
    .name = (text), .field = "sample", .check = check_sample, .index = sample_index, __VA_ARGS__, .member = { \
    BZ_NAMED("mode", sample.mode, MODES, "BZ_RESAMPLE_"), BZ_NAMED("outside", sample.outside, OUTSIDE, "BZ_OUTSIDE_"), \
    BZ_REQUIRED("x", EXTENT, sample.x), BZ_REQUIRED("at", EXTENT, sample.at), BZ_OPTIONAL("mean", INT, sample.mean, 1), \
    BZ_OPTIONAL("masked", FLAG, sample.masked, 0), BZ_OPTIONAL("fixed", FLAG, sample.fixed, 0)}}

const bz_kind bz_kind_sample = SAMPLE("sample", .operands = sample_operands, .flops = sample_flops, .at = sample_at);
const bz_kind bz_kind_sample_grad = SAMPLE("sample_grad", .traits = BZ_TRAIT_GRADIENT, .operands = sample_grad_operands,
    .flops = sample_grad_flops, .at = sample_grad_at, .cost = sample_grad_cost);
/* clang-format on */
