/* Layers that move data: resizing, parts joined and taken apart, dimensions turned round and repeated, casts. */
#include "generator/lower.h"

/* Libraries sample at half pixels and take the nearest; making each pixel so many pixels is the same in any
 * convention that starts at the first. */
static int lower_resize(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *y = &l->layer->out[0];
    const char *mode = lower_word(l, "mode", "nearest"), *from = lower_word(l, "coordinates", "half_pixel"),
               *rounding = lower_word(l, "round", "round_prefer_floor");
    bool nearest = !strcmp(mode, "nearest"), whole = true;
    bool half = !strcmp(from, "half_pixel") || !strcmp(from, "pytorch_half_pixel");
    bz_problem *p = lower_step(l, BZ_PROBLEM_RESAMPLE);
    if (!nearest && strcmp(mode, "linear") != 0)
        return lower_no(l, "libraries resize by the nearest pixel and linearly only");
    if (bz_layer_param(l->layer, "scales"))
        return lower_no(l, "libraries resize by the ratio of sizes, and its scales are others");
    if (bz_layer_param(l->layer, "antialias") || bz_layer_param(l->layer, "exclude_outside"))
        return lower_no(l, "no library resizes with antialiasing or without what lies outside");
    if (!x || lower_extent(x, 0, p->resample.x) || lower_extent(y, 0, p->resample.y))
        return lower_no(l, "it has too many dimensions");
    for (int i = 0; i < x->rank && i < y->rank; i++)
        whole &= y->dims[i] % x->dims[i] == 0;
    bool copies = nearest && whole && !strcmp(from, "asymmetric") && !strcmp(rounding, "floor");
    if (!half && !copies)
        return lower_no(l, "libraries sample at half pixels only");
    if (half && nearest && strncmp(rounding, "round", 5) != 0)
        return lower_no(l, "libraries round to the nearest pixel only");
    p->resample.mode = nearest ? BZ_RESAMPLE_NEAREST : BZ_RESAMPLE_LINEAR;
    p->resample.coord = half ? BZ_COORD_HALF_PIXEL : BZ_COORD_ASYMMETRIC;
    return lower_done(l);
}

/* Quantized ones have the result's scale and zero point first, and those of each part behind it. */
static int lower_concat(lowering *l)
{
    const bz_layer *layer = l->layer;
    int64_t axis = lower_int(l, "axis", 0);
    bz_problem *p = lower_step(l, BZ_PROBLEM_CONCAT);
    int n = 0, step = l->arg ? 3 : 1;
    if ((layer->n_in - l->arg + step - 1) / step > BZ_PROBLEM_PARTS || lower_extent(&layer->out[0], 0, p->concat.y))
        return lower_no(l, "it has too many parts");
    for (int k = l->arg; k < layer->n_in; k += step) {
        const bz_type *x = lower_in(l, k);
        if (!x || axis >= x->rank)
            return lower_no(l, "its parts are no tensors");
        if (x->dims[axis] > 0)
            p->concat.sizes[n++] = x->dims[axis];
    }
    p->concat.axis = axis;
    if (l->arg)
        p->dtype = p->dtype_w = p->dtype_y = layer->out[0].dtype;
    return lower_done(l);
}

static int lower_transpose(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bz_problem *p = lower_step(l, BZ_PROBLEM_TRANSPOSE);
    if (!x || lower_extent(x, 0, p->transpose.x) || lower_ints(l, "perm", p->transpose.perm, x->rank))
        return lower_no(l, "it has too many dimensions");
    return lower_done(l);
}

/* Moves take any type: what has no numbers of ours is moved as integers of its size. */
static bz_dtype moved_as(bz_dtype t)
{
    int bits = bz_dtype_bits(t);
    return bz_dtype_is_float(t) || t == BZ_U8 || t == BZ_I8 ? t
           : bits == 8                                      ? BZ_U8
           : bits == 16                                     ? BZ_I16
           : bits == 32                                     ? BZ_I32
                                                            : BZ_I64;
}

static bz_problem *move_step(lowering *l, bz_problem_kind kind)
{
    l->dtype = moved_as(l->dtype);
    return lower_step(l, kind);
}

static int lower_slice(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *y = &l->layer->out[0];
    if (!x || x->rank < 1 || x->rank > BZ_PROBLEM_RANK)
        return lower_no(l, "it has too many dimensions");
    bz_problem *p = move_step(l, BZ_PROBLEM_SLICE);
    if (lower_extent(x, 0, p->slice.x) || lower_extent(y, 0, p->slice.y))
        return lower_no(l, "it has too many dimensions");
    if (lower_ints(l, "start", p->slice.start, x->rank) || lower_ints(l, "step", p->slice.step, x->rank))
        return lower_no(l, "it runs backwards, or where it begins is not known");
    for (int i = 0; i < x->rank; i++) /* the step to a second element that is not there */
        p->slice.step[i] = y->dims[i] > 1 ? p->slice.step[i] : 1;
    return lower_done(l);
}

/* A slice for each result. */
static int lower_split(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    int64_t axis = lower_int(l, "axis", 0), at = 0;
    if (!x || l->layer->n_out > MAX_STEPS || axis < 0 || axis >= x->rank || x->rank > BZ_PROBLEM_RANK)
        return lower_no(l, "it has too many parts");
    for (int k = 0; k < l->layer->n_out; k++) {
        const bz_type *y = &l->layer->out[k];
        if (y->kind != BZ_TYPE_TENSOR || y->rank != x->rank)
            return lower_no(l, "its parts are no tensors");
        if (bz_type_elements(y) > 0) {
            bz_problem *p = move_step(l, BZ_PROBLEM_SLICE);
            if (lower_extent(x, 0, p->slice.x) || lower_extent(y, 0, p->slice.y))
                return lower_no(l, "it has too many dimensions");
            for (int i = 0; i < x->rank; i++)
                p->slice.step[i] = 1;
            p->slice.start[axis] = at;
        }
        at += y->dims[axis];
    }
    return l->n_steps ? lower_done(l) : lower_no(l, "its parts are empty");
}

/* Dimensions before the first that is padded are one, and so are those behind the last: a problem pads three at most. */
static int lower_pad(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    int64_t pad[2 * BZ_PROBLEM_RANK];
    if (!x || x->rank < 1 || x->rank > BZ_PROBLEM_RANK || strcmp(lower_word(l, "mode", "constant"), "constant") != 0 ||
        lower_ints(l, "pad", pad, 2 * x->rank))
        return lower_no(l, "it does not pad with constants");
    int first = 0, end = x->rank;
    while (first < end && !pad[first] && !pad[x->rank + first])
        first++;
    while (end > first && !pad[end - 1] && !pad[x->rank + end - 1])
        end--;
    int n = end - first, all = n + (end < x->rank);
    if (!n || all > BZ_PROBLEM_SPATIAL)
        return lower_no(l, "it pads nothing, or too many dimensions");
    bz_problem *p = move_step(l, BZ_PROBLEM_PAD);
    int64_t *to = p->pad.x;
    for (int i = 0; i < 2 + all; i++)
        to[i] = 1;
    for (int i = 0; i < x->rank; i++)
        to[i < first ? 0 : i < end ? 2 + i - first : 2 + n] *= x->dims[i];
    for (int i = 0; i < n; i++)
        p->pad.pad[i] = pad[first + i], p->pad.pad[all + i] = pad[x->rank + first + i];
    return lower_done(l);
}

static int lower_gather(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *index = lower_in(l, 1);
    int64_t axis = lower_int(l, "axis", 0);
    if (!x || !index || axis < 0 || axis >= x->rank)
        return lower_no(l, "its operands are no tensors");
    bz_problem *p = move_step(l, BZ_PROBLEM_GATHER);
    p->gather.n = bz_type_elements(index);
    p->gather.axis = axis;
    p->dtype_w = index->dtype, p->dtype_y = p->dtype;
    return lower_extent(x, 0, p->gather.x) ? lower_no(l, "it has too many dimensions") : lower_done(l);
}

static int lower_where(lowering *l)
{
    const bz_type *c = lower_in(l, 0), *a = lower_in(l, 1), *b = lower_in(l, 2);
    int rank = l->layer->out[0].rank;
    if (!c || !a || !b || !rank)
        return lower_no(l, "its operands are no tensors");
    l->dtype = lower_dtype(a->dtype, l->wanted);
    bz_problem *p = move_step(l, BZ_PROBLEM_WHERE);
    return lower_extent(c, rank, p->where.c) || lower_extent(a, rank, p->where.a) || lower_extent(b, rank, p->where.b)
               ? lower_no(l, "it has too many dimensions")
               : lower_done(l);
}

static int lower_expand(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *y = &l->layer->out[0];
    if (!x)
        return lower_no(l, "its operand is no tensor");
    bz_problem *p = move_step(l, BZ_PROBLEM_EXPAND);
    return lower_extent(x, y->rank, p->expand.x) || lower_extent(y, 0, p->expand.y)
               ? lower_no(l, "it has too many dimensions")
               : lower_done(l);
}

/* A dimension that is repeated is one of 1 that is broadcast, and the dimension itself. */
static int lower_tile(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *y = &l->layer->out[0];
    bz_problem *p = move_step(l, BZ_PROBLEM_EXPAND);
    int n = 0;
    if (!x || x->rank != y->rank)
        return lower_no(l, "its operand is no tensor");
    for (int i = 0; i < x->rank; i++) {
        int64_t times = x->dims[i] > 0 ? y->dims[i] / x->dims[i] : 0;
        if (times < 1 || n + 1 + (times > 1) > BZ_PROBLEM_RANK)
            return lower_no(l, "it has too many dimensions");
        if (times > 1)
            p->expand.x[n] = 1, p->expand.y[n++] = times;
        p->expand.x[n] = p->expand.y[n] = x->dims[i];
        n++;
    }
    return lower_done(l);
}

/* Blocks are dimensions of their own: the rest is a transposition. */
static int lower_blocks(lowering *l)
{
    static const int64_t APART[] = {0, 3, 5, 1, 2, 4}, DEPTH_FIRST[] = {0, 3, 4, 1, 5, 2},
                         COLUMNS[] = {0, 1, 4, 2, 5, 3};
    const bz_type *x = lower_in(l, 0);
    int64_t b = lower_int(l, "block", 1);
    bool columns = !strcmp(lower_word(l, "mode", "DCR"), "CRD");
    if (!x || x->rank != 4 || b < 1)
        return lower_no(l, "its operand is no image");
    int64_t c = x->dims[1], h = x->dims[2], w = x->dims[3];
    if (b > 1 << 15 || (l->arg ? c % (b * b) : h % b || w % b))
        return lower_no(l, "its blocks do not fit");
    bz_problem *p = move_step(l, BZ_PROBLEM_TRANSPOSE);
    const int64_t apart[] = {x->dims[0], c, h / b, b, w / b, b}, depth[] = {x->dims[0], b, b, c / (b * b), h, w},
                  column[] = {x->dims[0], c / (b * b), b, b, h, w};
    memcpy(p->transpose.x, !l->arg ? apart : columns ? column : depth, sizeof apart);
    memcpy(p->transpose.perm, !l->arg ? APART : columns ? COLUMNS : DEPTH_FIRST, sizeof apart);
    for (int i = 0; i < 6; i++)
        if (p->transpose.x[i] < 1)
            return lower_no(l, "it is empty");
    return lower_done(l);
}

static int reorder(lowering *l, bz_dtype from, bz_dtype to, float scale)
{
    const bz_type *x = lower_in(l, 0);
    bz_problem *p = lower_step(l, BZ_PROBLEM_REORDER);
    if (!x || lower_extent(x, 0, p->reorder.x))
        return lower_no(l, "it has too many dimensions");
    p->dtype = p->dtype_w = from;
    p->dtype_y = to;
    p->reorder.scale = scale;
    return lower_done(l);
}

static bool is_library_type(bz_dtype t)
{
    return t == BZ_F32 || t == BZ_F16 || t == BZ_BF16 || t == BZ_I8 || t == BZ_U8 || t == BZ_I32;
}

/* Casts are loops of ours where a library does not know one of the types. */
static int lower_cast(lowering *l)
{
    bz_dtype from = l->layer->in[0].dtype, to = l->layer->out[0].dtype;
    bool exponents = from == BZ_F8E8M0 || to == BZ_F8E8M0;
    if (bz_dtype_bits(from) < 8 || bz_dtype_bits(to) < 8 || exponents || from == to)
        return lower_no(l, "no library casts between these types");
    if (reorder(l, from, to, 1))
        return -1;
    return is_library_type(from) && is_library_type(to) ? 0 : lower_or_copy(l);
}

/* The scale's value does not matter to the time, but that there is one does. */
static int lower_quantize(lowering *l)
{
    bz_dtype from = l->layer->in[0].dtype, to = l->layer->out[0].dtype;
    if (!is_library_type(from) || !is_library_type(to))
        return lower_no(l, "no library casts between these types");
    return reorder(l, from, to, l->arg ? 16.0f : 0.0625f);
}

const lower_row lower_move_rows[] = {
    {"resize", lower_resize, .types = FLOATS | BYTES},
    {"concat", lower_concat, .types = FLOATS | BYTES | BOOLS | WORDS, .ours = ALL},
    {"qconcat", lower_concat, 2, .types = FLOATS},
    {"transpose", lower_transpose, .types = FLOATS | BYTES | BOOLS | WORDS, .ours = ALL},
    {"cast", lower_cast, .types = FLOATS | BYTES | WORDS, .ours = ALL},
    {"slice", lower_slice, .ours = ALL},
    {"split", lower_split, .ours = ALL},
    {"pad", lower_pad, .ours = ALL},
    {"gather", lower_gather, .ours = ALL},
    {"where", lower_where, .ours = BOOLS},
    {"expand", lower_expand, .ours = ALL},
    {"tile", lower_tile, .ours = ALL},
    {"depthtospace", lower_blocks, 1, .ours = ALL},
    {"spacetodepth", lower_blocks, .ours = ALL},
    {"quantize", lower_quantize, 1, .types = FLOATS | WORDS},
    {"dequantize", lower_quantize, .types = BYTES | WORDS},
    {0},
};
