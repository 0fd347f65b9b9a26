/* Operators that pick elements by index, put them by index, or find indices. */
#include "modelproc/eval.h"

#include <string.h>

/* What a Slice does to each axis. Where it starts and its step may be open: BZ_SYMBOL_LAST. */
typedef struct {
    int64_t start, step;
    bz_dim size;
} cut;

/* A list from operand k, or from the attribute of the first operator set. */
static const int64_t *slice_list(call *c, int k, const char *attr, int64_t *n, bool *given)
{
    int n_attr;
    if (in_type(c, k)) {
        *given = true;
        return in_ints(c, k, n);
    }
    const int64_t *v = attr_ints(c, attr, &n_attr);
    *n = n_attr;
    *given = v != NULL;
    return v;
}

/* Start and end are clamped to what the direction allows; both may count from the end. */
static bz_dim cut_size(call *c, int64_t start, int64_t end, int64_t step, bz_dim dim, cut *out)
{
    out->step = step;
    if (bz_is_symbol(dim) || bz_is_symbol(start) || bz_is_symbol(end) || bz_is_symbol(step)) {
        bool whole = start == 0 && !bz_is_symbol(end) && end >= INT32_MAX && step == 1;
        out->start = start == 0 && step == 1 ? 0 : BZ_SYMBOL_LAST;
        if (whole || (start == 0 && step == 1 && end == dim))
            return dim;
        return start == 0 && step == 1 && bz_is_symbol(end) && !bz_is_symbol(dim) ? end : new_symbol(c);
    }
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    start = start < 0 ? start + dim : start;
    end = end < 0 ? end + dim : end;
    start = start < 0 ? 0 : start > high ? high : start;
    end = end < low ? low : end > dim ? dim : end;
    out->start = start;
    int64_t span = end - start;
    if (!dim || (span > 0) != (step > 0) || !span)
        return 0;
    return step > 0 ? (span - 1) / step + 1 : (span + 1) / step + 1;
}

/* Fills cuts[rank]; false when not even the axes are known. -1 on failure. */
static int read_slice(call *c, const bz_type *x, cut *cuts)
{
    bool has_start, has_end, has_axes, has_steps;
    int64_t n_start, n_end, n_axes, n_steps;
    const int64_t *starts = slice_list(c, 1, "starts", &n_start, &has_start),
                  *ends = slice_list(c, 2, "ends", &n_end, &has_end);
    const int64_t *axes = slice_list(c, 3, "axes", &n_axes, &has_axes),
                  *steps = slice_list(c, 4, "-", &n_steps, &has_steps);
    if (!has_start || !has_end)
        return call_fail(c, "starts or ends are missing");
    for (int i = 0; i < x->rank; i++)
        cuts[i] = (cut){0, 1, x->dims[i]};
    if (has_axes && !axes) { /* any axis may be cut */
        for (int i = 0; i < x->rank; i++)
            cuts[i] = (cut){BZ_SYMBOL_LAST, BZ_SYMBOL_LAST, new_symbol(c)};
        return 0;
    }
    int64_t n = has_axes ? n_axes : starts ? n_start : ends ? n_end : x->rank;
    if (n > x->rank || (starts && n_start != n) || (ends && n_end != n) || (steps && n_steps != n))
        return call_fail(c, "starts, ends, axes and steps are not equally many");
    for (int64_t k = 0; k < n; k++) {
        int axis;
        if (fix_axis(c, axes ? axes[k] : k, x->rank, &axis))
            return -1;
        int64_t step = has_steps && !steps ? BZ_SYMBOL_LAST : steps ? steps[k] : 1;
        if (step == 0)
            return call_fail(c, "a step is 0");
        cut *t = &cuts[axis];
        if (starts && ends)
            t->size = cut_size(c, starts[k], ends[k], step, x->dims[axis], t);
        else
            *t = (cut){BZ_SYMBOL_LAST, step, new_symbol(c)};
    }
    return 0;
}

static int shape_slice(call *c)
{
    const bz_type *x = need_any(c, 0);
    cut cuts[BZ_MAX_RANK];
    bz_dim dims[BZ_MAX_RANK];
    int64_t starts[BZ_MAX_RANK], steps[BZ_MAX_RANK];
    bool turned = false;
    if (read_slice(c, x, cuts))
        return -1;
    for (int i = 0; i < x->rank; i++) {
        dims[i] = cuts[i].size;
        starts[i] = cuts[i].start;
        steps[i] = cuts[i].step;
        turned |= steps[i] < 0 && dims[i] != 1;
    }
    param_ints(c, "start", starts, x->rank);
    param_ints(c, "step", steps, x->rank);
    set_out(c, 0, x->dtype, x->rank, dims);
    if (!turned)
        view_if_whole(c);
    return 0;
}

static int eval_slice(call *c)
{
    const data *x = in_data(c, 0);
    cut cuts[BZ_MAX_RANK];
    int64_t strides[BZ_MAX_RANK], base = 0;
    if (!x || bz_type_elements(&c->out[0]) < 0 || !eval_strides(&c->in[0], strides) || read_slice(c, &c->in[0], cuts))
        return 0;
    for (int i = 0; i < c->in[0].rank; i++) {
        if (bz_is_symbol(cuts[i].size))
            return 0; /* the file declared what we do not know: which elements, remains open */
        base += cuts[i].start * strides[i];
        strides[i] *= cuts[i].size > 1 ? cuts[i].step : 1; /* one that is never taken may be huge */
    }
    return eval_strided(c, 0, x, base, strides);
}

static int shape_gather(call *c)
{
    const bz_type *x = need_any(c, 0), *at = need_any(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    int axis, rank = 0;
    if (fix_axis(c, attr_int(c, "axis", 0), x->rank, &axis))
        return -1;
    if (x->rank + at->rank - 1 > BZ_MAX_RANK)
        return call_fail(c, "its result has more than %d dimensions", BZ_MAX_RANK);
    for (int i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < at->rank; i++)
        dims[rank++] = at->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    param_int(c, "axis", axis);
    return set_out(c, 0, x->dtype, rank, dims);
}

static int eval_gather(call *c)
{
    const data *x = in_data(c, 0), *at = x ? in_data(c, 1) : NULL;
    const bz_type *t = &c->in[0];
    int axis;
    values v;
    if (!at || !at->i || fix_axis(c, attr_int(c, "axis", 0), t->rank, &axis) || bz_type_elements(&c->out[0]) < 0)
        return 0;
    int64_t inner = 1, n = t->dims[axis];
    for (int i = axis + 1; i < t->rank; i++)
        inner *= t->dims[i];
    for (int64_t k = 0; k < at->n; k++)
        if (bz_is_symbol(at->i[k]))
            return 0;
        else if (at->i[k] < -n || at->i[k] >= n)
            return call_fail(c, "it picks element %lld of %lld", (long long)at->i[k], (long long)n);
    if (!eval_room(c, 0, x->r != NULL, bz_type_elements(&c->out[0]), &v))
        return 0;
    for (int64_t k = 0; k < v.n; k++) {
        int64_t in = k % inner, index = at->i[k / inner % at->n], outer = k / inner / at->n;
        int64_t from = (outer * n + (index < 0 ? index + n : index)) * inner + in;
        if (v.i)
            v.i[k] = x->i[from];
        else
            v.r[k] = x->r[from];
    }
    return 0;
}

/* Reads what it picks, not the whole table. */
static void cost_gather(call *c)
{
    int64_t out = bz_type_bytes(&c->out[0]), at = bz_type_bytes(&c->in[1]);
    c->bytes = out > INT64_MAX / 4 || at > INT64_MAX / 4 ? INT64_MAX / 2 : 2 * out + at;
}

static int shape_gatherelements(call *c)
{
    const bz_type *x = need_any(c, 0), *at = need(c, 1, x->rank);
    int axis;
    if (fix_axis(c, attr_int(c, "axis", 0), x->rank, &axis))
        return -1;
    param_int(c, "axis", axis);
    return set_out(c, 0, x->dtype, at->rank, at->dims);
}

static int shape_gathernd(call *c)
{
    const bz_type *x = need_any(c, 0), *at = need_any(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    int64_t batch = attr_int(c, "batch_dims", 0);
    bz_dim last = at->rank ? at->dims[at->rank - 1] : 0;
    if (at->rank < 1 || batch < 0 || batch >= at->rank || batch >= x->rank)
        return call_fail(c, "batch_dims %lld does not fit its operands", (long long)batch);
    if (bz_is_symbol(last))
        return set_unknown(c, 0, x->dtype);
    if (last < 1 || batch + last > x->rank || at->rank - 1 + x->rank > BZ_MAX_RANK)
        return call_fail(c, "it indexes %lld of %d dimensions", (long long)batch + last, x->rank);
    int rank = 0;
    for (int i = 0; i < at->rank - 1; i++)
        dims[rank++] = at->dims[i];
    for (int i = (int)(batch + last); i < x->rank; i++)
        dims[rank++] = x->dims[i];
    param_int(c, "batch", batch);
    return set_out(c, 0, x->dtype, rank, dims);
}

static int shape_scatter(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axis;
    need_any(c, 1);
    same_dtype(c, x, need_any(c, 2));
    if (strcmp(c->node->op, "ScatterND") != 0) {
        if (fix_axis(c, attr_int(c, "axis", 0), x->rank, &axis))
            return -1;
        param_int(c, "axis", axis);
    }
    param_text(c, "reduction", attr_text(c, "reduction", "none"));
    return set_out(c, 0, x->dtype, x->rank, x->dims);
}

/* The case that exporters make of assigning to a slice of a shape: one dimension, known indices. */
static int eval_scatter(call *c)
{
    const data *x = in_data(c, 0), *at = x ? in_data(c, 1) : NULL, *updates = at ? in_data(c, 2) : NULL;
    values v;
    if (!updates || !x->i || !at->i || !updates->i || c->in[0].rank != 1 || at->n != updates->n ||
        strcmp(attr_text(c, "reduction", "none"), "none") != 0 || !eval_room(c, 0, false, x->n, &v))
        return 0;
    memcpy(v.i, x->i, (size_t)x->n * sizeof *v.i);
    for (int64_t k = 0; k < at->n; k++) {
        int64_t i = at->i[k] < 0 ? at->i[k] + x->n : at->i[k];
        if (i < 0 || i >= x->n) {
            c->out_data[0] = NULL;
            return 0;
        }
        v.i[i] = updates->i[k];
    }
    return 0;
}

/* [rank, number of elements that are not zero] */
static int shape_nonzero(call *c)
{
    const bz_type *x = need_any(c, 0);
    const data *d = in_data(c, 0);
    bz_dim dims[2] = {x->rank, 0};
    for (int64_t k = 0; d && k < d->n; k++) {
        if (d->i && bz_is_symbol(d->i[k])) {
            d = NULL;
            break;
        }
        dims[1] += d->i ? d->i[k] != 0 : d->r[k] != 0;
    }
    if (!d)
        dims[1] = new_symbol(c);
    return set_out(c, 0, BZ_I64, 2, dims);
}

static int eval_nonzero(call *c)
{
    const data *d = in_data(c, 0);
    const bz_type *t = &c->in[0];
    values v;
    if (!d || bz_type_elements(&c->out[0]) < 0 || !eval_room(c, 0, false, bz_type_elements(&c->out[0]), &v))
        return 0;
    int64_t found = 0, n = c->out[0].dims[1];
    for (int64_t k = 0; k < d->n && found < n; k++) {
        if (d->i ? d->i[k] == 0 : d->r[k] == 0)
            continue;
        int64_t rest = k;
        for (int i = t->rank - 1; i >= 0; i--) {
            v.i[i * n + found] = rest % t->dims[i];
            rest /= t->dims[i];
        }
        found++;
    }
    return 0;
}

static int shape_unique(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axis;
    bz_dim n = new_symbol(c), dims[BZ_MAX_RANK];
    if (bz_node_attr(c->node, "axis")) {
        if (fix_axis(c, attr_int(c, "axis", 0), x->rank, &axis))
            return -1;
        memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
        dims[axis] = n;
        set_out(c, 0, x->dtype, x->rank, dims);
    } else {
        set_out(c, 0, x->dtype, 1, &n);
    }
    bz_dim whole = new_symbol(c);
    if (!bz_node_attr(c->node, "axis") && dim_product(c, x->dims, 0, x->rank, &whole))
        return -1;
    if (bz_node_attr(c->node, "axis"))
        whole = x->dims[axis];
    set_out(c, 1, BZ_I64, 1, &n);
    set_out(c, 2, BZ_I64, 1, &whole);
    return set_out(c, 3, BZ_I64, 1, &n);
}

static int shape_compress(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axis, rank = 1;
    bz_dim n = 0, dims[BZ_MAX_RANK];
    bool flat = !bz_node_attr(c->node, "axis");
    if (!flat && fix_axis(c, attr_int(c, "axis", 0), x->rank, &axis))
        return -1;
    int64_t n_take;
    const int64_t *take = in_ints(c, 1, &n_take);
    bz_dim limit = flat ? bz_type_elements(x) : x->dims[axis];
    for (int64_t k = 0; take && k < n_take && (limit < 0 || k < limit); k++)
        n += take[k] != 0;
    dims[0] = n;
    if (!flat) {
        rank = x->rank;
        memcpy(dims, x->dims, (size_t)rank * sizeof *dims);
        dims[axis] = n;
    }
    if (!take)
        dims[flat ? 0 : axis] = new_symbol(c);
    return set_out(c, 0, x->dtype, rank, dims);
}

static int shape_topk(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    int axis;
    int64_t n;
    if (fix_axis(c, attr_int(c, "axis", -1), x->rank, &axis))
        return -1;
    const int64_t *v = in_ints(c, 1, &n);
    bz_dim k = v && n == 1 ? *v : in_type(c, 1) ? new_symbol(c) : attr_int(c, "k", -1);
    if (!bz_is_symbol(k) && (k < 0 || (!bz_is_symbol(x->dims[axis]) && k > x->dims[axis])))
        return call_fail(c, "it takes the first %lld of %lld", (long long)k, (long long)x->dims[axis]);
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[axis] = k;
    param_int(c, "axis", axis);
    param_int(c, "largest", attr_int(c, "largest", 1) != 0);
    param_int(c, "sorted", attr_int(c, "sorted", 1) != 0);
    set_out(c, 0, x->dtype, x->rank, dims);
    return set_out(c, 1, BZ_I64, x->rank, dims);
}

static int shape_onehot(call *c)
{
    const bz_type *x = need_any(c, 0), *on = need_any(c, 2);
    bz_dim dims[BZ_MAX_RANK];
    int axis;
    if (fix_axis(c, attr_int(c, "axis", -1), x->rank + 1, &axis))
        return -1;
    if (x->rank == BZ_MAX_RANK)
        return call_fail(c, "its result has more than %d dimensions", BZ_MAX_RANK);
    const data *depth = in_data(c, 1);
    bool known = depth && depth->n == 1 && (depth->i ? depth->i[0] >= 0 : depth->r[0] >= 0 && depth->r[0] < 1e15);
    for (int i = 0, from = 0; i <= x->rank; i++)
        dims[i] = i != axis ? x->dims[from++] : !known ? new_symbol(c) : depth->i ? depth->i[0] : (int64_t)depth->r[0];
    param_int(c, "axis", axis);
    return set_out(c, 0, on->dtype, x->rank + 1, dims);
}

static int shape_reversesequence(call *c)
{
    param_int(c, "batch_axis", attr_int(c, "batch_axis", 1));
    param_int(c, "time_axis", attr_int(c, "time_axis", 0));
    return rule_same(c);
}

static const op ROWS[] = {
    {"Slice", NULL, "slice", BZ_MEMORY, shape_slice, .eval = eval_slice, .flags = OP_KEEPS, .labels = "x - - - - > y"},
    {"ShrunkenGather", "com.microsoft", "gather", BZ_MEMORY, shape_gather, .cost = cost_gather, .flags = OP_KEEPS,
     .labels = "x ids"},
    {"Gather", NULL, "gather", BZ_MEMORY, shape_gather, .eval = eval_gather, .cost = cost_gather, .flags = OP_KEEPS,
     .labels = "x indices"},
    {"GatherElements", NULL, "gatherelements", BZ_MEMORY, shape_gatherelements, .cost = cost_gather, .flags = OP_KEEPS,
     .labels = "x indices"},
    {"GatherND", NULL, "gathernd", BZ_MEMORY, shape_gathernd, .cost = cost_gather, .flags = OP_KEEPS,
     .labels = "x indices"},
    {"GatherND", "com.microsoft", "gathernd", BZ_MEMORY, shape_gathernd, .cost = cost_gather, .labels = "x indices"},
    {"Scatter", NULL, "scatterelements", BZ_MEMORY, shape_scatter, .flags = OP_KEEPS, .labels = "x indices updates"},
    {"ScatterElements", NULL, "scatterelements", BZ_MEMORY, shape_scatter, .eval = eval_scatter, .flags = OP_KEEPS,
     .labels = "x indices updates"},
    {"ScatterND", NULL, "scatternd", BZ_MEMORY, shape_scatter, .eval = eval_scatter, .flags = OP_KEEPS,
     .labels = "x indices updates"},
    {"TensorScatter", NULL, "tensorscatter", BZ_MEMORY, rule_same, .labels = "x updates indices"},
    {"NonZero", NULL, "nonzero", BZ_MEMORY, shape_nonzero, .eval = eval_nonzero, .labels = "x"},
    {"Unique", NULL, "unique", BZ_MEMORY, shape_unique, .flags = OP_KEEPS, .labels = "x"},
    {"Compress", NULL, "compress", BZ_MEMORY, shape_compress, .flags = OP_KEEPS, .labels = "x - > y"},
    {"TopK", NULL, "topk", BZ_COMPUTE, shape_topk, .flops = 1, .flags = OP_KEEPS, .labels = "x - > y"},
    {"OneHot", NULL, "onehot", BZ_MEMORY, shape_onehot, .flags = OP_KEEPS_LAST, .labels = "x - > y"},
    {"ReverseSequence", NULL, "reversesequence", BZ_MEMORY, shape_reversesequence, .flags = OP_RANKLESS,
     .labels = "x -"},
};

const op_table ops_index = OP_TABLE(ROWS);
