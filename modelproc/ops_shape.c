/* Operators that say how elements are arranged: views, joins and splits, padding. */
#include "modelproc/eval.h"
#include "modelproc/infer.h"

#include <string.h>

/* Whether the shape begins with the file's batch as a number where the operand has --batch: what an exporter writes of "x.view(1, 9216)", or, with the
 * channels in the same number, of a shuffle's "x.view(b * c / 2, 2, h * w)". The operand then has more elements by that factor, all of it outermost
 * where the operand's own first dimension is the batch; or the factor goes unnoticed into what is left open. */
static bool holds_batch(const call *c, const bz_type *x, const int64_t *want, int n, bz_dim all, bz_dim rest, int open)
{
    const infer *inf = c->inf;
    const int64_t batch = inf->options->batch, was = inf->written_batch;
    bool leads = x->rank > 0 && x->dims[0] == batch;
    if (!inf->rebound || inf->options->as_written || inf->batch_axis > 0 || n < 1 || was < 1 || was == batch ||
        bz_is_symbol(all) || bz_is_symbol(rest) || rest < 1 || want[0] < 1 || want[0] % was != 0 ||
        (want[0] != was && (!leads || open >= 0)))
        return false;
    if (open < 0)
        return all != rest && all % batch == 0 && all / batch * was == rest;
    return open > 0 && leads && !inf->constant[c->node->in[0]] && all / batch * was % rest == 0;
}

/* 0 copies a dimension (unless allowzero), -1 takes what is left. */
static int fill_reshape(call *c, const bz_type *x, const int64_t *want, int n, bz_dim *dims)
{
    int open = -1;
    bz_dim all, rest;
    bool allow_zero = attr_int(c, "allowzero", 0) != 0, zero = false;
    for (int i = 0; i < n; i++) {
        dims[i] = want[i];
        if (bz_is_symbol(want[i]))
            continue;
        zero = zero || want[i] == 0;
        if (want[i] == 0 && !allow_zero) {
            if (i >= x->rank)
                return call_fail(c, "its shape copies dimension %d of an input that has %d", i, x->rank);
            dims[i] = x->dims[i];
        } else if (want[i] == -1) {
            if (open >= 0)
                return call_fail(c, "its shape leaves two dimensions open");
            open = i;
            dims[i] = 1;
        } else if (want[i] < 0) {
            return call_fail(c, "its shape has the negative dimension %lld", (long long)want[i]);
        }
    }
    if (zero && allow_zero && open >= 0)
        return call_fail(c, "with allowzero its shape has both 0 and -1, and any number fits the second");
    if (dim_product(c, x->dims, 0, x->rank, &all) || dim_product(c, dims, 0, n, &rest))
        return -1;
    if (holds_batch(c, x, want, n, all, rest, open)) {
        dims[0] = want[0] / c->inf->written_batch * c->inf->options->batch;
        rest = rest / want[0] * dims[0];
        infer_warn_sizes(
            c->inf,
            bz_arena_printf(c->inf->arena,
                            "the graph contains its batch of %lld as a number, in a %s: --batch takes its place",
                            (long long)c->inf->written_batch, c->node->op));
    }
    if (open >= 0) {
        if (!bz_is_symbol(all) && !bz_is_symbol(rest) && (rest == 0 ? all != 0 : all % rest))
            return call_fail(c, "%lld elements cannot be arranged as it asks", (long long)all);
        dims[open] = rest == 0 ? 0 : dim_div(c, all, rest);
    } else if (!bz_is_symbol(all) && !bz_is_symbol(rest) && all != rest) {
        return call_fail(c, "%lld elements cannot be arranged as %lld", (long long)all, (long long)rest);
    }
    return 0;
}

static int shape_reshape(call *c)
{
    const bz_type *x = need_any(c, 0), *shape = in_type(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    int64_t n;
    int n_attr;
    const int64_t *want = in_ints(c, 1, &n);
    if (!shape) {
        want = attr_ints(c, "shape", &n_attr);
        n = n_attr;
    }
    if (!want && shape && shape->kind == BZ_TYPE_TENSOR && shape->rank == 1 && !bz_is_symbol(shape->dims[0]) &&
        shape->dims[0] <= BZ_MAX_RANK) { /* so many dimensions, but which? */
        for (int i = 0; i < shape->dims[0]; i++)
            dims[i] = new_symbol(c);
        return set_out(c, 0, x->dtype, (int)shape->dims[0], dims);
    }
    if (!want && shape)
        return set_unknown(c, 0, x->dtype);
    if (n > BZ_MAX_RANK)
        return call_fail(c, "its shape has %lld dimensions", (long long)n);
    if (fill_reshape(c, x, want, (int)n, dims))
        return -1;
    return set_out(c, 0, x->dtype, (int)n, dims);
}

static int shape_flatten(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[2];
    int64_t axis = attr_int(c, "axis", 1);
    if (axis < -x->rank || axis > x->rank)
        return call_fail(c, "axis %lld is outside of %d dimensions", (long long)axis, x->rank);
    int at = (int)(axis < 0 ? axis + x->rank : axis);
    if (dim_product(c, x->dims, 0, at, &dims[0]) || dim_product(c, x->dims, at, x->rank, &dims[1]))
        return -1;
    return set_out(c, 0, x->dtype, 2, dims);
}

static int shape_squeeze(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    int axes[BZ_MAX_RANK], rank = 0;
    int n = axes_of(c, 1, "axes", x->rank, axes);
    if (n == -1)
        return -1;
    bool listed = in_type(c, 1) || bz_node_attr(c->node, "axes");
    for (int i = 0; i < x->rank && n != -2; i++) {
        bool gone = !listed && x->dims[i] == 1;
        if (!listed && bz_is_symbol(x->dims[i]))
            n = -2; /* may be 1 or not */
        for (int k = 0; k < n; k++)
            gone |= axes[k] == i;
        if (gone && listed && !bz_is_symbol(x->dims[i]) && x->dims[i] != 1)
            return call_fail(c, "dimension %d is %lld and cannot be dropped", i, (long long)x->dims[i]);
        if (!gone)
            dims[rank++] = x->dims[i];
    }
    if (n == -2)
        set_unknown(c, 0, x->dtype);
    else
        set_out(c, 0, x->dtype, rank, dims);
    return 0;
}

static int shape_unsqueeze(call *c)
{
    const bz_type *x = need_any(c, 0), *list = in_type(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    int axes[BZ_MAX_RANK], n_attr;
    int64_t n;
    if (in_ints(c, 1, &n) == NULL)
        n = attr_ints(c, "axes", &n_attr) ? n_attr : 0;
    if (list && !in_ints(c, 1, &n))
        return set_unknown(c, 0, x->dtype);
    if (n + x->rank > BZ_MAX_RANK)
        return call_fail(c, "its result has more than %d dimensions", BZ_MAX_RANK);
    int rank = x->rank + (int)n, known = axes_of(c, 1, "axes", rank, axes), from = 0;
    if (known == -1)
        return -1;
    if (known == -2)
        return set_unknown(c, 0, x->dtype);
    for (int i = 0; i < rank; i++) {
        bool added = false;
        for (int k = 0; k < known; k++)
            added |= axes[k] == i;
        dims[i] = added ? 1 : x->dims[from++];
    }
    return set_out(c, 0, x->dtype, rank, dims);
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* `start` and `end` cut the list of dimensions, from operator set 15 on. */
static int shape_shape(call *c)
{
    const bz_type *x = in_type(c, 0);
    bz_dim n;
    if (!x || x->kind != BZ_TYPE_TENSOR || x->rank < 0) {
        n = new_symbol(c);
        return set_out(c, 0, BZ_I64, 1, &n);
    }
    int64_t rank = x->rank, start = attr_int(c, "start", 0), end = attr_int(c, "end", rank);
    start = clamp(start < 0 ? start + rank : start, 0, rank);
    end = clamp(end < 0 ? end + rank : end, 0, rank);
    n = end > start ? end - start : 0;
    set_out(c, 0, BZ_I64, 1, &n);
    set_ints(c, 0, x->dims + start, n);
    return 0;
}

static int shape_size(call *c)
{
    const bz_type *x = in_type(c, 0);
    bz_dim n;
    set_out(c, 0, BZ_I64, 0, NULL);
    if (!x || x->kind != BZ_TYPE_TENSOR || x->rank < 0)
        return 0;
    if (dim_product(c, x->dims, 0, x->rank, &n))
        return -1;
    set_ints(c, 0, &n, 1);
    return 0;
}

static int read_perm(call *c, const bz_type *x, int *perm)
{
    int n;
    const int64_t *v = attr_ints(c, "perm", &n);
    if (v && n != x->rank)
        return call_fail(c, "perm has %d numbers for %d dimensions", n, x->rank);
    uint64_t seen = 0;
    for (int i = 0; i < x->rank; i++) {
        if (v && fix_axis(c, v[i], x->rank, &perm[i]))
            return -1;
        if (!v)
            perm[i] = x->rank - 1 - i;
        seen |= (uint64_t)1 << perm[i];
    }
    return x->rank && seen != UINT64_MAX >> (64 - x->rank) ? call_fail(c, "perm names a dimension twice") : 0;
}

static int shape_transpose(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    int perm[BZ_MAX_RANK], last = -1;
    if (read_perm(c, x, perm))
        return -1;
    c->view = true; /* where only dimensions of 1 change places */
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->dims[perm[i]];
        if (dims[i] == 1)
            continue;
        c->view &= perm[i] > last;
        last = perm[i];
    }
    param_axes(c, "perm", perm, x->rank);
    return set_out(c, 0, x->dtype, x->rank, dims);
}

static int eval_transpose(call *c)
{
    const data *x = in_data(c, 0);
    int perm[BZ_MAX_RANK];
    int64_t strides[BZ_MAX_RANK], turned[BZ_MAX_RANK];
    if (!x || !eval_strides(&c->in[0], strides) || read_perm(c, &c->in[0], perm))
        return 0;
    for (int i = 0; i < c->in[0].rank; i++)
        turned[i] = strides[perm[i]];
    return eval_strided(c, 0, x, 0, turned);
}

static int shape_expand(call *c)
{
    const bz_type *x = need_any(c, 0), *shape = need(c, 1, 1);
    bz_dim dims[BZ_MAX_RANK], wanted[BZ_MAX_RANK];
    int64_t n;
    int rank;
    const int64_t *v = in_ints(c, 1, &n);
    if (!v)
        n = shape->dims[0];
    if (bz_is_symbol(n))
        return set_unknown(c, 0, x->dtype);
    if (n > BZ_MAX_RANK)
        return call_fail(c, "its shape has %lld dimensions", (long long)n);
    for (int i = 0; i < n; i++) {
        wanted[i] = v ? v[i] : new_symbol(c);
        if (!bz_is_symbol(wanted[i]) && wanted[i] < 0)
            return call_fail(c, "its shape has the negative dimension %lld", (long long)wanted[i]);
    }
    bz_type t = {.kind = BZ_TYPE_TENSOR, .rank = (int)n, .dims = wanted};
    if (broadcast(c, x, &t, &rank, dims))
        return -1;
    for (int i = 0; i < rank && !v; i++) /* unknown sizes may be larger than the input's */
        dims[i] = i < rank - (int)n || dims[i] > 1 ? dims[i] : new_symbol(c);
    set_out(c, 0, x->dtype, rank, dims);
    view_if_whole(c);
    return 0;
}

static int eval_expand(call *c)
{
    const data *x = in_data(c, 0);
    const bz_type *t = &c->in[0];
    int64_t strides[BZ_MAX_RANK], wide[BZ_MAX_RANK] = {0};
    if (!x || !eval_strides(t, strides) || bz_type_elements(&c->out[0]) < 0)
        return 0;
    for (int i = 0; i < t->rank; i++)
        wide[c->out[0].rank - t->rank + i] = t->dims[i] == 1 ? 0 : strides[i];
    return eval_strided(c, 0, x, 0, wide);
}

/* Operator set 1 tiled one axis: operands are the times and the axis. */
static int shape_tile(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    int64_t n, n_axis;
    const int64_t *v = in_ints(c, 1, &n);
    bool old = c->node->opset < 6 && !*c->node->domain;
    const int64_t *axis = old ? in_ints(c, 2, &n_axis) : NULL;
    if (v && !old && n != x->rank)
        return call_fail(c, "repeats has %lld numbers for %d dimensions", (long long)n, x->rank);
    for (int i = 0; i < x->rank; i++) {
        bz_dim times = v && !old                                   ? v[i]
                       : old && v && n == 1 && axis && n_axis == 1 ? (*axis == i ? *v : 1)
                                                                   : new_symbol(c);
        if (!bz_is_symbol(times) && times < 0)
            return call_fail(c, "repeats has the negative number %lld", (long long)times);
        dims[i] = dim_mul(c, x->dims[i], times);
    }
    set_out(c, 0, x->dtype, x->rank, dims);
    view_if_whole(c);
    return 0;
}

static int eval_tile(call *c)
{
    const data *x = in_data(c, 0);
    const bz_type *t = &c->in[0], *y = &c->out[0];
    int64_t strides[BZ_MAX_RANK];
    values v;
    if (!x || !x->i || !eval_strides(t, strides) || !eval_room(c, 0, false, bz_type_elements(y), &v))
        return 0;
    for (int64_t k = 0; k < v.n; k++) {
        int64_t rest = k, at = 0;
        for (int d = t->rank - 1; d >= 0; d--) {
            at += rest % y->dims[d] % t->dims[d] * strides[d];
            rest /= y->dims[d];
        }
        v.i[k] = x->i[at];
    }
    return 0;
}

static int concat_axis(call *c, int rank, int *axis)
{
    return fix_axis(c, attr_int(c, "axis", 1), rank, axis);
}

static int shape_concat(call *c)
{
    const bz_type *first = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    int axis;
    if (concat_axis(c, first->rank, &axis))
        return -1;
    memcpy(dims, first->dims, (size_t)first->rank * sizeof *dims);
    for (int k = 1; k < c->node->n_in; k++) {
        const bz_type *t = need(c, k, first->rank);
        same_dtype(c, first, t);
        for (int i = 0; i < t->rank; i++) {
            if (i == axis)
                dims[i] = dim_add(c, dims[i], t->dims[i]);
            else if (bz_is_symbol(dims[i]))
                dims[i] = t->dims[i];
            else if (!bz_is_symbol(t->dims[i]) && dims[i] != t->dims[i])
                return call_fail(c, "operand %d has %lld where others have %lld in dimension %d", k,
                                 (long long)t->dims[i], (long long)dims[i], i);
        }
    }
    param_int(c, "axis", axis);
    set_out(c, 0, first->dtype, first->rank, dims);
    view_if_whole(c);
    if (c->node->n_out > 1) { /* of ONNX Runtime's: the length of each */
        int64_t *length = BZ_NEW(c->arena, int64_t, c->node->n_in);
        for (int k = 0; k < c->node->n_in; k++)
            length[k] = need(c, k, first->rank)->dims[axis];
        set_out(c, 1, BZ_I64, 1, (bz_dim[]){c->node->n_in});
        set_ints(c, 1, length, c->node->n_in);
    }
    return 0;
}

static int eval_concat(call *c)
{
    const data *first = in_data(c, 0);
    int axis;
    values v;
    if (!first || concat_axis(c, c->in[0].rank, &axis) || bz_type_elements(&c->out[0]) < 0)
        return 0;
    for (int k = 1; k < c->node->n_in; k++) {
        const data *d = in_data(c, k);
        if (!d || (d->r != NULL) != (first->r != NULL))
            return 0;
    }
    int64_t inner = 1, row = c->out[0].dims[axis], at = 0;
    for (int i = axis + 1; i < c->out[0].rank; i++)
        inner *= c->out[0].dims[i];
    if (!eval_room(c, 0, first->r != NULL, bz_type_elements(&c->out[0]), &v) || !v.n)
        return 0;
    int64_t outer = v.n / (row * inner);
    for (int k = 0; k < c->node->n_in; k++) {
        const data *d = in_data(c, k);
        int64_t width = c->in[k].dims[axis] * inner;
        if (d->n != outer * width)
            continue;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < width; i++) {
                if (v.i)
                    v.i[o * row * inner + at + i] = d->i[o * width + i];
                else
                    v.r[o * row * inner + at + i] = d->r[o * width + i];
            }
        at += width;
    }
    return 0;
}

/* Sizes of the parts: listed (attribute or operand), or equal parts, the last one smaller. */
static int split_sizes(call *c, const bz_type *x, int axis, bz_dim *sizes)
{
    int n_attr, parts = c->node->n_out;
    int64_t n;
    const int64_t *v = in_ints(c, 1, &n);
    bool listed = in_type(c, 1) != NULL;
    if (!listed && (v = attr_ints(c, "split", &n_attr))) {
        n = n_attr;
        listed = true;
    }
    bz_dim whole = x->dims[axis], sum = 0;
    if (listed) {
        if (v && n != parts)
            return call_fail(c, "it lists %lld sizes for %d results", (long long)n, parts);
        for (int k = 0; k < parts; k++) {
            sizes[k] = v ? v[k] : new_symbol(c);
            if (!bz_is_symbol(sizes[k]) && sizes[k] < 0)
                return call_fail(c, "a part has the negative size %lld", (long long)sizes[k]);
            sum = dim_add(c, sum, sizes[k]);
        }
        if (!bz_is_symbol(sum) && !bz_is_symbol(whole) && sum != whole)
            return call_fail(c, "its parts add up to %lld, not to %lld", (long long)sum, (long long)whole);
        return 0;
    }
    int64_t num = attr_int(c, "num_outputs", parts);
    if (num != parts)
        return call_fail(c, "num_outputs is %lld, but it has %d results", (long long)num, parts);
    if (c->node->opset > 0 && c->node->opset < 18 && !bz_is_symbol(whole) && parts > 0 && whole % parts)
        return call_fail(c, "%lld elements cannot be split into %d equal parts", (long long)whole, parts);
    for (int k = 0; k < parts; k++) {
        if (bz_is_symbol(whole)) {
            sizes[k] = new_symbol(c);
            continue;
        }
        int64_t each = whole / parts + (whole % parts != 0), left = whole - each * k;
        sizes[k] = left < 0 ? 0 : left < each ? left : each;
    }
    return 0;
}

static int shape_split(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    int axis;
    if (fix_axis(c, attr_int(c, "axis", 0), x->rank, &axis))
        return -1;
    bz_dim *sizes = new_dims(c, c->node->n_out);
    if (split_sizes(c, x, axis, sizes))
        return -1;
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    for (int k = 0; k < c->node->n_out; k++) {
        dims[axis] = sizes[k];
        set_out(c, k, x->dtype, x->rank, dims);
    }
    view_if_whole(c);
    param_int(c, "axis", axis);
    return 0;
}

static int eval_split(call *c)
{
    const data *x = in_data(c, 0);
    int64_t strides[BZ_MAX_RANK], at = 0;
    int axis;
    if (!x || !eval_strides(&c->in[0], strides) || fix_axis(c, attr_int(c, "axis", 0), c->in[0].rank, &axis))
        return 0;
    for (int k = 0; k < c->node->n_out; k++) {
        bz_dim size = c->out[k].dims[axis];
        if (bz_is_symbol(size) || size > c->in[0].dims[axis] - at) /* beside a symbol, sizes may add up to anything */
            return 0;
        if (eval_strided(c, k, x, at * strides[axis], strides))
            return -1;
        at += size;
    }
    return 0;
}

static int shape_pad(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    int axes[BZ_MAX_RANK], n_attr, n_axes;
    int64_t n, pads[2 * BZ_MAX_RANK] = {0};
    if ((n_axes = axes_of(c, 3, "-", x->rank, axes)) == -1)
        return -1;
    const int64_t *v = in_ints(c, 1, &n);
    if (!in_type(c, 1)) {
        v = attr_ints(c, c->node->opset < 2 ? "paddings" : "pads", &n_attr);
        n = n_attr;
    }
    bool listed = in_type(c, 3) != NULL;
    if (!listed) {
        n_axes = x->rank;
        for (int i = 0; i < x->rank; i++)
            axes[i] = i;
    }
    if (v && n_axes >= 0 && n != 2 * n_axes)
        return call_fail(c, "pads has %lld numbers for %d dimensions", (long long)n, n_axes);
    for (int i = 0; i < x->rank; i++)
        dims[i] = v && n_axes >= 0 ? x->dims[i] : new_symbol(c);
    c->view = v && n_axes >= 0;
    for (int k = 0; v && k < n_axes; k++) {
        int i = axes[k];
        c->view &= !v[k] && !v[n_axes + k];
        pads[i] = v[k];
        pads[x->rank + i] = v[n_axes + k];
        dims[i] = dim_add(c, x->dims[i], dim_add(c, v[k], v[n_axes + k]));
        if (!bz_is_symbol(dims[i]) && dims[i] < 0)
            return call_fail(c, "it pads dimension %d to the negative size %lld", i, (long long)dims[i]);
    }
    param_ints(c, "pad", pads, 2 * x->rank);
    param_text(c, "mode", attr_text(c, "mode", "constant"));
    return set_out(c, 0, x->dtype, x->rank, dims);
}

static int shape_depth(call *c)
{
    const bz_type *x = need(c, 0, 4);
    int64_t block = attr_int(c, "blocksize", 1);
    bool to_space = !strcmp(c->op->kind, "depthtospace");
    if (block < 1 || block > 1 << 15)
        return call_fail(c, "blocksize is %lld", (long long)block);
    bz_dim area = block * block;
    for (int i = to_space ? 1 : 2; i < (to_space ? 2 : 4); i++)
        if (!bz_is_symbol(x->dims[i]) && x->dims[i] % (to_space ? area : block))
            return call_fail(c, "dimension %d is %lld, which blocks of %lld do not divide", i, (long long)x->dims[i],
                             (long long)block);
    bz_dim dims[4] = {x->dims[0], to_space ? dim_div(c, x->dims[1], area) : dim_mul(c, x->dims[1], area)};
    for (int i = 2; i < 4; i++)
        dims[i] = to_space ? dim_mul(c, x->dims[i], block) : dim_div(c, x->dims[i], block);
    param_int(c, "block", block);
    if (to_space)
        param_text(c, "mode", attr_text(c, "mode", "DCR"));
    return set_out(c, 0, x->dtype, 4, dims);
}

static int shape_trilu(call *c)
{
    const bz_type *x = need_any(c, 0);
    int64_t n;
    if (x->rank < 2)
        return call_fail(c, "its input has %d dimensions: 2 at least are needed", x->rank);
    const int64_t *k = in_ints(c, 1, &n);
    param_int(c, "upper", attr_int(c, "upper", 1) != 0);
    param_int(c, "k", k && n == 1 ? *k : 0);
    return rule_same(c);
}

static const op ROWS[] = {
    {"Reshape", NULL, "reshape", BZ_VIEW, shape_reshape, .eval = eval_same, .flags = OP_KEEPS, .labels = "x - > y"},
    {"Flatten", NULL, "flatten", BZ_VIEW, shape_flatten, .eval = eval_same, .flags = OP_KEEPS, .labels = "x > y"},
    {"Squeeze", NULL, "squeeze", BZ_VIEW, shape_squeeze, .eval = eval_same, .flags = OP_KEEPS, .labels = "x - > y"},
    {"Unsqueeze", NULL, "unsqueeze", BZ_VIEW, shape_unsqueeze, .eval = eval_same, .flags = OP_KEEPS,
     .labels = "x - > y"},
    {"Identity", NULL, "identity", BZ_VIEW, rule_same, .eval = eval_same, .flags = OP_RANKLESS, .labels = "x"},
    {"Shape", NULL, "shape", BZ_VIEW, shape_shape, .flags = OP_RANKLESS, .labels = "x > y"},
    {"Size", NULL, "size", BZ_VIEW, shape_size, .flags = OP_RANKLESS, .labels = "x"},
    {"Transpose", NULL, "transpose", BZ_MEMORY, shape_transpose, .eval = eval_transpose, .flags = OP_KEEPS,
     .labels = "x"},
    {"Expand", NULL, "expand", BZ_MEMORY, shape_expand, .eval = eval_expand, .flags = OP_KEEPS, .labels = "x - > y"},
    {"Tile", NULL, "tile", BZ_MEMORY, shape_tile, .eval = eval_tile, .flags = OP_KEEPS, .labels = "x - > y"},
    {"Concat", NULL, "concat", BZ_MEMORY, shape_concat, .eval = eval_concat, .flags = OP_KEEPS, .labels = "x..."},
    {"ConcatTraining", "com.microsoft", "concat", BZ_MEMORY, shape_concat, .eval = eval_concat, .labels = "x..."},
    {"SplitTraining", "com.microsoft", "split", BZ_MEMORY, shape_split, .eval = eval_split, .flags = OP_KEEPS_ALL,
     .labels = "x - > y..."},
    {"Split", NULL, "split", BZ_MEMORY, shape_split, .eval = eval_split, .flags = OP_KEEPS_ALL, .labels = "x - > y..."},
    {"Pad", NULL, "pad", BZ_MEMORY, shape_pad, .flags = OP_KEEPS, .labels = "x - - -"},
    {"DepthToSpace", NULL, "depthtospace", BZ_MEMORY, shape_depth, .flags = OP_KEEPS, .labels = "x"},
    {"SpaceToDepth", NULL, "spacetodepth", BZ_MEMORY, shape_depth, .flags = OP_KEEPS, .labels = "x"},
    {"Trilu", NULL, "trilu", BZ_MEMORY, shape_trilu, .flags = OP_KEEPS, .labels = "x -"},
    {"Trilu", "com.microsoft", "trilu", BZ_MEMORY, shape_trilu, .labels = "x -"},
};

const op_table ops_shape = OP_TABLE(ROWS);
