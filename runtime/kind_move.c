/* Kinds that bring values to other places, layouts and types. */
#include "runtime/kind.h"

#include <string.h>

static bz_expected exactly(double v)
{
    return (bz_expected){.value = v, .magnitude = fabs(v)};
}

static const char *const RESAMPLES[] = {"nearest", "linear", NULL};
static const char *const COORDS[] = {"half_pixel", "asymmetric", "align_corners", NULL};

static int check_resample(const bz_problem *p, bz_error *err)
{
    const int64_t *x = p->resample.x, *y = p->resample.y;
    int n = bz_extent_rank(x);
    if (n < 3 || n > 5 || n != bz_extent_rank(y) || x[0] != y[0] || x[1] != y[1])
        return bz_problem_refuse(p, "x and y have the same batch and channels and one to three spatial dimensions",
                                 err);
    return 0;
}

static double resample_flops(const bz_problem *p, const bz_operand *list, double y)
{
    return p->resample.mode == BZ_RESAMPLE_LINEAR ? y * ldexp(1, list[0].rank - 2) * 2 : 0;
}

/* Where in x the coordinate y falls. Nearest rounds halves up, as oneDNN does. */
static double source(const bz_problem *p, int i, int64_t y)
{
    double nx = (double)p->resample.x[i], ny = (double)p->resample.y[i];
    if (p->resample.coord == BZ_COORD_ASYMMETRIC)
        return (double)y * nx / ny;
    if (p->resample.coord == BZ_COORD_ALIGN_CORNERS)
        return ny > 1 ? (double)y * (nx - 1) / (ny - 1) : 0;
    return ((double)y + 0.5) * nx / ny - 0.5;
}

static int64_t clamp(int64_t v, int64_t n)
{
    return v < 0 ? 0 : v >= n ? n - 1 : v;
}

static bz_expected resample_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    const float *x = bz_reference_values(r, BZ_ROLE_X);
    int rank = bz_extent_rank(p->resample.x);
    bool nearest = p->resample.mode == BZ_RESAMPLE_NEAREST;
    bz_expected e = {0};
    for (int corner = 0; corner < (nearest ? 1 : 1 << (rank - 2)); corner++) {
        int64_t at[BZ_PROBLEM_RANK] = {y[0], y[1]};
        double weight = 1;
        for (int i = 2; i < rank; i++) {
            double s = source(p, i, y[i]);
            int64_t low = (int64_t)floor(s);
            bool up = corner >> (i - 2) & 1;
            if (nearest)
                low = (int64_t)(p->resample.coord == BZ_COORD_ASYMMETRIC ? floor(s) : round(s));
            else
                weight *= up ? s - (double)low : 1 - (s - (double)low);
            at[i] = clamp(low + up, p->resample.x[i]);
        }
        bz_expected_add(&e, weight * x[bz_ravel(at, p->resample.x, rank)]);
    }
    return e;
}

static void concat_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    memcpy(y, p->concat.y, sizeof p->concat.y);
    for (int i = 0; p->concat.sizes[i]; i++) {
        bz_extent x;
        memcpy(x, y, sizeof x);
        x[p->concat.axis] = p->concat.sizes[i];
        bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, x);
    }
}

static int check_concat(const bz_problem *p, bz_error *err)
{
    int64_t sum = 0;
    if (p->concat.axis >= bz_extent_rank(p->concat.y))
        return bz_problem_refuse(p, "y has no such axis", err);
    for (int i = 0; p->concat.sizes[i]; i++)
        sum += p->concat.sizes[i];
    return sum != p->concat.y[p->concat.axis] ? bz_problem_refuse(p, "the sizes do not add up to y", err) : 0;
}

/* An input may be 1 long along the axis: this is no broadcast. */
static bz_expected concat_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    int64_t along = y[p->concat.axis], at = 0;
    int i = 0;
    for (; along >= p->concat.sizes[i]; i++)
        along -= p->concat.sizes[i];
    for (int d = 0; d < r->operand[i].rank; d++)
        at = at * r->operand[i].dim[d] + (d == p->concat.axis ? along : y[d]);
    return exactly(r->value[i][at]);
}

static void transpose_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->transpose.x);
    for (int i = 0; p->transpose.x[i]; i++)
        y[i] = p->transpose.x[p->transpose.perm[i]];
}

static int check_transpose(const bz_problem *p, bz_error *err)
{
    int n = bz_extent_rank(p->transpose.x);
    unsigned seen = 0;
    for (int i = 0; i < n; i++)
        seen |= p->transpose.perm[i] < n ? 1U << p->transpose.perm[i] : 0;
    return seen != (1U << n) - 1 ? bz_problem_refuse(p, "perm names each dimension once", err) : 0;
}

static bz_expected transpose_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    int64_t at[BZ_PROBLEM_RANK];
    int rank = bz_extent_rank(p->transpose.x);
    for (int d = 0; d < rank; d++)
        at[p->transpose.perm[d]] = r->y[d];
    return exactly(r->value[0][bz_ravel(at, p->transpose.x, rank)]);
}

static void pad_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    int n = bz_extent_rank(p->pad.x) - 2;
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->pad.x);
    memcpy(y, p->pad.x, sizeof(bz_extent));
    for (int i = 0; i < n; i++)
        y[2 + i] += p->pad.pad[i] + p->pad.pad[n + i];
}

static int check_pad(const bz_problem *p, bz_error *err)
{
    int n = bz_extent_rank(p->pad.x);
    int64_t sum = 0;
    for (int i = 0; n >= 3 && n <= 5 && i < 2 * (n - 2); i++)
        sum += p->pad.pad[i];
    if (!sum)
        return bz_problem_refuse(p, "x has batch, channels and one to three spatial dimensions, one of which is padded",
                                 err);
    return 0;
}

/* Outside of x there are zeros. */
static bz_expected pad_at(bz_reference *r)
{
    const int64_t *x = r->problem->pad.x;
    int64_t at[BZ_PROBLEM_RANK];
    int rank = bz_extent_rank(x);
    for (int d = 0; d < rank; d++) {
        at[d] = r->y[d] - (d < 2 ? 0 : r->problem->pad.pad[d - 2]);
        if (at[d] < 0 || at[d] >= x[d])
            return exactly(0);
    }
    return exactly(r->value[0][bz_ravel(at, x, rank)]);
}

/* Elements of y may lie as far apart as they like, as long as all are elements of x. */
static int check_slice(const bz_problem *p, bz_error *err)
{
    const int64_t *x = p->slice.x, *y = p->slice.y, *start = p->slice.start, *step = p->slice.step;
    int n = bz_extent_rank(x);
    if (n != bz_extent_rank(y))
        return bz_problem_refuse(p, "x and y have the same number of dimensions", err);
    for (int i = 0; i < n; i++)
        if (step[i] < 1 || start[i] >= x[i] || y[i] - 1 > (x[i] - 1 - start[i]) / step[i])
            return bz_problem_refuse(p, "steps are at least 1, and y ends inside of x", err);
    return 0;
}

static bz_expected slice_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    int64_t at = 0;
    for (int d = 0; p->slice.x[d]; d++)
        at = at * p->slice.x[d] + p->slice.start[d] + r->y[d] * p->slice.step[d];
    return exactly(r->value[0][at]);
}

static int check_expand(const bz_problem *p, bz_error *err)
{
    const int64_t *x = p->expand.x, *y = p->expand.y;
    if (bz_extent_rank(x) != bz_extent_rank(y))
        return bz_problem_refuse(p, "x and y have the same number of dimensions", err);
    for (int i = 0; x[i]; i++)
        if (x[i] != y[i] && x[i] != 1)
            return bz_problem_refuse(p, "a dimension of x is 1 or that of y", err);
    return 0;
}

static bz_expected expand_at(bz_reference *r)
{
    return exactly(r->value[0][bz_ravel(r->y, r->problem->expand.x, bz_extent_rank(r->problem->expand.x))]);
}

static void gather_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->gather.x);
    bz_operand_add(l, BZ_ROLE_INDEX, p->dtype_w, 1, &p->gather.n);
    memcpy(y, p->gather.x, sizeof(bz_extent));
    y[p->gather.axis] = p->gather.n;
}

/* Indices are counted in f32 where results are checked. */
static int check_gather(const bz_problem *p, bz_error *err)
{
    if (p->gather.axis >= bz_extent_rank(p->gather.x) || p->gather.n < 1)
        return bz_problem_refuse(p, "x has such an axis, and n is at least 1", err);
    if (p->gather.x[p->gather.axis] > 1 << 24)
        return bz_problem_refuse(p, "there is too much to choose from", err);
    if (p->dtype_w != BZ_I64 && p->dtype_w != BZ_I32)
        return bz_problem_refuse(p, "its indices are i64 or i32: dtype=f32:i64:f32", err);
    return 0;
}

static double gather_index(const bz_problem *p, int64_t at, uint64_t random)
{
    (void)at;
    return (double)(random % (uint64_t)p->gather.x[p->gather.axis]);
}

/* Of an element of the indices: negative ones count from the end, as ONNX has them. */
static int64_t index_of(const bz_reference *r, int64_t i)
{
    int64_t n = r->problem->gather.x[r->problem->gather.axis], at = (int64_t)r->value[1][i];
    return at < 0 ? at + n : at;
}

static bz_expected gather_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    int64_t at = 0;
    for (int d = 0; p->gather.x[d]; d++)
        at = at * p->gather.x[d] + (d == p->gather.axis ? index_of(r, y[d]) : y[d]);
    return exactly(r->value[0][at]);
}

/* The gradient of a gather's x: rows that are taken several times add up. */
static void scatter_add_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_extent dy = {0};
    memcpy(dy, p->gather.x, sizeof dy);
    dy[p->gather.axis] = p->gather.n;
    bz_operand_add_shape(l, BZ_ROLE_DY, p->dtype, dy);
    bz_operand_add(l, BZ_ROLE_INDEX, p->dtype_w, 1, &p->gather.n);
    memcpy(y, p->gather.x, sizeof(bz_extent));
}

static bz_expected scatter_add_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    int64_t axis = p->gather.axis, n = p->gather.n, inner = bz_extent_count(p->gather.x + axis + 1);
    int64_t row = r->y[axis], outer = r->index / inner / p->gather.x[axis], column = r->index % inner;
    bz_expected e = {0};
    for (int64_t i = 0; i < n; i++)
        if (index_of(r, i) == row)
            bz_expected_add(&e, r->value[0][(outer * n + i) * inner + column]);
    return e;
}

static double scatter_add_cost(const bz_problem *p)
{
    return (double)p->gather.n;
}

static const char *const LAYOUTS[] = {"plain", "nhwc", "blocked", NULL};

static bz_expected reorder_at(bz_reference *r)
{
    return exactly((double)r->value[0][r->index] * (double)r->problem->reorder.scale);
}

static void copy_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add(l, BZ_ROLE_X, BZ_U8, 1, &p->copy.read);
    y[0] = p->copy.write;
}

static int check_copy(const bz_problem *p, bz_error *err)
{
    return p->copy.read + p->copy.write < 1 ? bz_problem_refuse(p, "something is read or written", err) : 0;
}

/* clang-format off */
const bz_kind bz_kind_resample = {.name = "resample", .check = check_resample, .flops = resample_flops,
    .at = resample_at, .member = {
    BZ_NAMED("mode", resample.mode, RESAMPLES, "BZ_RESAMPLE_"),
    BZ_NAMED("coord", resample.coord, COORDS, "BZ_COORD_"), BZ_REQUIRED("x", EXTENT, resample.x),
    BZ_REQUIRED("y", EXTENT, resample.y)}};

const bz_kind bz_kind_concat = {.name = "concat", .operands = concat_operands, .check = check_concat,
    .at = concat_at, .member = {
    BZ_REQUIRED("y", EXTENT, concat.y), BZ_REQUIRED("axis", INT, concat.axis),
    BZ_REQUIRED("sizes", SIZES, concat.sizes)}};

const bz_kind bz_kind_transpose = {.name = "transpose", .operands = transpose_operands, .check = check_transpose,
    .at = transpose_at, .member = {
    BZ_REQUIRED("x", EXTENT, transpose.x), BZ_REQUIRED("perm", PERM, transpose.perm)}};

const bz_kind bz_kind_pad = {.name = "pad", .traits = BZ_TRAIT_MOVE, .operands = pad_operands, .check = check_pad,
    .at = pad_at, .member = {
    BZ_REQUIRED("x", EXTENT, pad.x), BZ_USUAL("pad", PADS, pad.pad, 0)}};

const bz_kind bz_kind_slice = {.name = "slice", .traits = BZ_TRAIT_MOVE | BZ_TRAIT_PARTIAL, .check = check_slice,
    .at = slice_at, .member = {
    BZ_REQUIRED("x", EXTENT, slice.x), BZ_REQUIRED("y", EXTENT, slice.y), BZ_REQUIRED("start", PERM, slice.start),
    BZ_REQUIRED("step", PERM, slice.step)}};

const bz_kind bz_kind_expand = {.name = "expand", .traits = BZ_TRAIT_MOVE, .check = check_expand, .at = expand_at, .member = {
    BZ_REQUIRED("x", EXTENT, expand.x), BZ_REQUIRED("y", EXTENT, expand.y)}};

const bz_kind bz_kind_gather = {.name = "gather", .traits = BZ_TRAIT_MOVE | BZ_TRAIT_PARTIAL,
    .operands = gather_operands, .check = check_gather, .at = gather_at, .index = gather_index, .member = {
    BZ_REQUIRED("x", EXTENT, gather.x), BZ_REQUIRED("n", INT, gather.n), BZ_REQUIRED("axis", INT, gather.axis)}};

const bz_kind bz_kind_scatter_add = {.name = "scatter_add", .field = "gather", .traits = BZ_TRAIT_GRADIENT,
    .operands = scatter_add_operands, .check = check_gather, .flops = bz_flops_each_input, .at = scatter_add_at,
    .cost = scatter_add_cost, .index = gather_index, .member = {
    BZ_REQUIRED("x", EXTENT, gather.x), BZ_REQUIRED("n", INT, gather.n), BZ_REQUIRED("axis", INT, gather.axis)}};

const bz_kind bz_kind_reorder = {.name = "reorder", .at = reorder_at, .member = {
    BZ_REQUIRED("x", EXTENT, reorder.x), BZ_NAMED("from", reorder.from, LAYOUTS, "BZ_LAYOUT_"),
    BZ_NAMED("to", reorder.to, LAYOUTS, "BZ_LAYOUT_"), BZ_OPTIONAL("scale", REAL, reorder.scale, 1)}};

const bz_kind bz_kind_copy = {.name = "copy", .traits = BZ_TRAIT_BYTES, .operands = copy_operands,
    .check = check_copy, .member = {
    BZ_REQUIRED("read", INT, copy.read), BZ_REQUIRED("write", INT, copy.write)}};
/* clang-format on */
