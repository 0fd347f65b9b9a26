/* Derivatives of what puts elements elsewhere, and of reductions. */
#include "base/sort.h"
#include "training/build.h"

#include <string.h>

/* Reshape and its kin: the same elements under the operand's shape. */
static int view(grad *g)
{
    return grad_give(g, 0, grad_reshape(g->b, grad_dy(g, 0), grad_type(g, 0)));
}

static int transpose(grad *g)
{
    int n, rank = grad_type(g, 0)->rank;
    const int64_t *perm = grad_param(g, "perm", &n);
    int64_t inverse[BZ_MAX_RANK];
    if (n != rank)
        return rank < 2 ? grad_give(g, 0, grad_dy(g, 0)) : grad_fail(g, "its order of dimensions is not known");
    for (int i = 0; i < rank; i++)
        inverse[perm[i]] = i;
    return grad_give(g, 0, grad_transpose(g->b, grad_dy(g, 0), inverse, rank));
}

/* Cuts x along an axis into pieces; results are their names. */
static void split(build *b, const char *x, int axis, const int64_t *size, int n, const char **piece)
{
    const char *in[2] = {x, b->opset >= 13 ? grad_ints(b, size, n) : ""};
    grad_nodes(b, "Split", in, b->opset >= 13 ? 2 : 1, piece, n);
    GRAD_INT(b, "axis", axis);
    if (b->opset < 13)
        GRAD_INTS(b, "split", size, n);
}

static int concat(grad *g)
{
    int axis = (int)grad_param_int(g, "axis", 0), n = g->l->n_in;
    int64_t *size = BZ_NEW(g->b->arena, int64_t, n);
    const char **piece = BZ_NEW(g->b->arena, const char *, n);
    if (axis < 0 || axis >= g->l->out[0].rank)
        return grad_fail(g, "its axis is not known");
    for (int k = 0; k < n; k++)
        size[k] = grad_type(g, k)->dims[axis];
    split(g->b, grad_dy(g, 0), axis, size, n, piece);
    return grad_give_results(g, piece, n);
}

static int split_back(grad *g)
{
    build *b = g->b;
    int n = g->l->n_out, axis = (int)grad_param_int(g, "axis", 0);
    const char **piece = BZ_NEW(b->arena, const char *, n), *whole;
    for (int k = 0; k < n; k++)
        piece[k] = grad_dy(g, k) ? grad_dy(g, k) : grad_zeros(b, &g->l->out[k]);
    grad_nodes(b, "Concat", piece, n, &whole, 1);
    GRAD_INT(b, "axis", axis);
    return grad_give(g, 0, whole);
}

/* The axis along which a slice with step 1 cuts, and nothing else; -1. */
static int sliced_axis(const bz_layer *l)
{
    const bz_param *start = bz_layer_param(l, "start"), *stride = bz_layer_param(l, "step");
    int axis = -1, rank = l->in[0].kind == BZ_TYPE_TENSOR ? l->in[0].rank : -1;
    if (!start || !stride || start->n != rank || stride->n != rank || !bz_type_is_static(&l->in[0]) ||
        !bz_type_is_static(&l->out[0]))
        return -1;
    for (int i = 0; i < rank; i++) {
        if (stride->v[i] != 1 || bz_is_symbol(start->v[i]) || (l->out[0].dims[i] != l->in[0].dims[i] && axis >= 0))
            return -1;
        axis = l->out[0].dims[i] != l->in[0].dims[i] ? i : axis;
    }
    return axis;
}

static int64_t slice_start(const step *s, int axis)
{
    return bz_layer_param(s->layer, "start")->v[axis];
}

BZ_SORTS(by_begin, step *const, BZ_ORDER(slice_start(*p, (*p)->slices->axis), slice_start(*q, (*q)->slices->axis)));

/* A value that is cut along one axis into all of its parts, as exporters write `chunk`: its gradient is the parts' gradients side by side. */
void slices_find(build *b)
{
    BZ_SCOPED(bz_map) by_value = {0};
    for (int i = 0; i < b->n_steps; i++) {
        step *s = &b->steps[i];
        int axis = strcmp(s->layer->kind, "slice") ? -1 : sliced_axis(s->layer);
        int key[] = {axis < 0 ? -1 : grad_id(b, s->layer->node->in[0]), axis};
        if (axis < 0)
            continue;
        uint32_t at = bz_map_get(&by_value, key, sizeof key);
        if (at == BZ_MAP_NONE) {
            s->slices = BZ_NEW(b->arena, slices, 1);
            *s->slices = (slices){.first = s, .axis = axis};
            bz_map_add(&by_value, bz_arena_dup(b->arena, key, sizeof key), sizeof key, (uint32_t)i);
        } else {
            s->slices = b->steps[at].slices;
        }
        BZ_ARENA_ADD(b->arena, s->slices->of, s->slices->n) = s;
    }
    for (int i = 0; i < b->n_steps; i++) {
        const slices *all = b->steps[i].slices;
        if (!all || all->first != &b->steps[i])
            continue;
        int64_t end = 0;
        bool whole = all->n > 1;
        BZ_QSORT(all->of, all->n, by_begin);
        for (int k = 0; k < all->n && whole; k++) {
            whole = slice_start(all->of[k], all->axis) == end;
            end += all->of[k]->layer->out[0].dims[all->axis];
        }
        whole &= end == b->steps[i].layer->in[0].dims[all->axis];
        for (int k = 0; k < all->n && !whole; k++)
            all->of[k]->slices = NULL;
    }
}

static int join_slices(grad *g)
{
    const slices *all = g->s->slices;
    const char **piece = BZ_NEW(g->b->arena, const char *, all->n), *whole;
    if (all->first != g->s)
        return 0;
    for (int k = 0; k < all->n; k++) {
        grad part = {g->b, all->of[k], all->of[k]->layer};
        piece[k] = grad_dy(&part, 0) ? grad_dy(&part, 0) : grad_zeros(g->b, &part.l->out[0]);
    }
    grad_nodes(g->b, "Concat", piece, all->n, &whole, 1);
    GRAD_INT(g->b, "axis", all->axis);
    return grad_give(g, 0, whole);
}

static int slice(grad *g)
{
    build *b = g->b;
    if (g->s->slices)
        return join_slices(g);
    const bz_type *x = grad_type(g, 0), *y = &g->l->out[0];
    int n, steps;
    const int64_t *start = grad_param(g, "start", &n), *stride = grad_param(g, "step", &steps);
    int64_t end[BZ_MAX_RANK], axis[BZ_MAX_RANK];
    if (n != x->rank || steps != n)
        return grad_fail(g, "where it cuts depends on data");
    for (int i = 0; i < n; i++) {
        if (bz_is_symbol(start[i]) || bz_is_symbol(stride[i]))
            return grad_fail(g, "where it cuts depends on data");
        end[i] = start[i] + stride[i] * y->dims[i];
        if (stride[i] < 0 && end[i] < 0) /* before the first: a number that no slice lifts */
            end[i] = -x->dims[i] - 1;
        axis[i] = i;
    }
    const char *dx = grad_node(b, "ms:SliceGrad", grad_dy(g, 0), grad_ints(b, x->dims, n), grad_ints(b, start, n),
                               grad_ints(b, end, n), grad_ints(b, axis, n), grad_ints(b, stride, n), NULL);
    return grad_give(g, 0, dx);
}

static int expand(grad *g)
{
    return grad_give(g, 0, grad_reduce(g->b, grad_dy(g, 0), &g->l->out[0], grad_type(g, 0)));
}

/* Each dimension becomes copies × its size; copies are summed. */
static int tile(grad *g)
{
    const bz_type *x = grad_type(g, 0), *y = &g->l->out[0];
    int64_t dims[BZ_MAX_RANK], axes[BZ_MAX_RANK];
    int n = 0, m = 0;
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i] <= 0 || n + 2 > BZ_MAX_RANK)
            return grad_fail(g, "its shape has no derivative here");
        if (y->dims[i] != x->dims[i]) {
            axes[m++] = n;
            dims[n++] = y->dims[i] / x->dims[i];
        }
        dims[n++] = x->dims[i];
    }
    const char *dy = grad_dy(g, 0);
    if (m)
        dy = grad_sum_axes(g->b, grad_reshape_dims(g->b, dy, dims, n), axes, m, false);
    return grad_give(g, 0, dy);
}

static int pad(grad *g)
{
    build *b = g->b;
    int n;
    const int64_t *pads = grad_param(g, "pad", &n);
    const bz_type *x = grad_type(g, 0);
    const char *mode = grad_param_text(g, "mode", "constant"), *dx;
    int64_t less[2 * BZ_MAX_RANK];
    if (n != 2 * x->rank)
        return grad_fail(g, "how much it pads depends on data");
    for (int i = 0; i < n; i++)
        less[i] = -pads[i];
    if (strcmp(mode, "constant") != 0) {
        dx = grad_node(b, "own:PadGrad", grad_dy(g, 0), NULL);
        GRAD_TEXT(b, "mode", mode);
        GRAD_INTS(b, "pads", pads, n);
        GRAD_INTS(b, "input_shape", x->dims, x->rank);
    } else if (b->opset >= 11) {
        dx = grad_node(b, "Pad", grad_dy(g, 0), grad_ints(b, less, n), NULL);
    } else {
        dx = grad_node(b, "Pad", grad_dy(g, 0), NULL);
        GRAD_INTS(b, "pads", less, n);
    }
    return grad_give(g, 0, dx);
}

static int gather(grad *g)
{
    build *b = g->b;
    const bz_type *x = grad_type(g, 0);
    const char *shape = grad_ints(b, x->dims, x->rank), *dx;
    bool elements = !strcmp(g->l->node->op, "GatherElements"), nd = !strcmp(g->l->node->op, "GatherND");
    if (elements)
        dx = grad_node(b, "ms:GatherElementsGrad", grad_dy(g, 0), shape, grad_x(g, 1), NULL);
    else
        dx = grad_node(b, nd ? "ms:GatherNDGrad" : "ms:GatherGrad", shape, grad_x(g, 1), grad_dy(g, 0), NULL);
    if (nd)
        GRAD_INT(b, "batch_dims", grad_param_int(g, "batch", 0));
    else
        GRAD_INT(b, "axis", grad_param_int(g, "axis", 0));
    return grad_give(g, 0, dx);
}

/* Updates stand where elements stood, or are added to them: what they replace has no gradient. */
static int scatter(grad *g)
{
    build *b = g->b;
    bool nd = !strcmp(g->l->node->op, "ScatterND");
    const char *how = grad_param_text(g, "reduction", "none"), *dy = grad_dy(g, 0);
    bool adds = !strcmp(how, "add");
    if (!adds && strcmp(how, "none") != 0)
        return grad_fail(g, "it keeps the product or the largest of what meets: there is no derivative for that");
    if (grad_wants(g, 0) && adds) {
        grad_give(g, 0, dy);
    } else if (grad_wants(g, 0)) {
        grad_give(g, 0, grad_node(b, g->l->node->op, dy, grad_x(g, 1), grad_zeros(b, grad_type(g, 2)), NULL));
        if (!nd)
            GRAD_INT(b, "axis", grad_param_int(g, "axis", 0));
    }
    if (grad_wants(g, 2)) {
        grad_give(g, 2, grad_node(b, nd ? "GatherND" : "GatherElements", dy, grad_x(g, 1), NULL));
        if (!nd)
            GRAD_INT(b, "axis", grad_param_int(g, "axis", 0));
    }
    return 0;
}

/* Turning sequences round once more turns them back. */
static int reversed(grad *g)
{
    grad_give(g, 0, grad_node(g->b, "ReverseSequence", grad_dy(g, 0), grad_x(g, 1), NULL));
    grad_copy_attrs(g, "");
    return 0;
}

/* The largest elements: each goes back to where it was. */
static int topk(grad *g)
{
    build *b = g->b;
    const bz_type *x = grad_type(g, 0);
    if (!grad_dy(g, 0))
        return 0;
    const char *dx =
        grad_node(b, "ms:GatherElementsGrad", grad_dy(g, 0), grad_ints(b, x->dims, x->rank), grad_y(g, 1), NULL);
    GRAD_INT(b, "axis", grad_param_int(g, "axis", x->rank - 1));
    return grad_give(g, 0, dx);
}

/* Blocks to pixels and back, by the operator's own definition as a turn of six dimensions. */
static int blocks(grad *g)
{
    build *b = g->b;
    const bz_type *x = grad_type(g, 0), *y = &g->l->out[0];
    int64_t s = grad_param_int(g, "block", 1);
    bool to_space = !strcmp(g->l->kind, "depthtospace"), crd = !strcmp(grad_param_text(g, "mode", "DCR"), "CRD");
    const bz_type *deep = to_space ? x : y; /* [n, c s s, h, w] */
    int64_t c = deep->dims[1] / (s * s), h = deep->dims[2], w = deep->dims[3];
    int64_t flat[6] = {deep->dims[0], c, h, s, w, s}, dcr[6] = {deep->dims[0], s, s, c, h, w};
    const int64_t *perm = !to_space ? (int64_t[]){0, 3, 4, 1, 5, 2}
                          : crd     ? (int64_t[]){0, 1, 3, 5, 2, 4}
                                    : (int64_t[]){0, 3, 5, 1, 2, 4};
    const char *v = grad_reshape_dims(b, grad_dy(g, 0), to_space ? flat : dcr, 6);
    return grad_give(g, 0, grad_reshape(b, grad_transpose(b, v, perm, 6), x));
}

static int trilu(grad *g)
{
    build *b = g->b;
    const char *dx = grad_node(b, "Trilu", grad_dy(g, 0), grad_last(g, 1), NULL);
    GRAD_INT(b, "upper", grad_param_int(g, "upper", 1));
    return grad_give(g, 0, dx);
}

/* A value of the reduced shape with all dimensions of the operand, so that it broadcasts. */
static const char *unreduced(grad *g, const char *value)
{
    const bz_type *x = grad_type(g, 0);
    int n;
    const int64_t *axes = grad_param(g, "axes", &n);
    int64_t dims[BZ_MAX_RANK];
    if (g->l->out[0].rank == x->rank)
        return value;
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    for (int i = 0; i < n; i++)
        dims[axes[i]] = 1;
    return grad_reshape_dims(g->b, value, dims, x->rank);
}

static int reduce(grad *g)
{
    build *b = g->b;
    const bz_type *x = grad_type(g, 0), *y = &g->l->out[0];
    const char *op = g->l->node->op + 6, *dy = unreduced(g, grad_dy(g, 0)); /* behind "Reduce" */
    bz_dtype t = x->dtype;
    int64_t all = bz_type_elements(x), kept = bz_type_elements(y);
    const char *slope = NULL; /* the same everywhere, and in dy already */
    if (!strcmp(op, "Sum") || !strcmp(op, "Mean"))
        dy = grad_scaled(b, dy, t, *op == 'M' && all > 0 ? (double)kept / (double)all : 1);
    else if (!strcmp(op, "LogSum")) /* dy / the sum */
        dy = grad_node(b, "Div", dy, grad_node(b, "Exp", unreduced(g, grad_y(g, 0)), NULL), NULL);
    else if (!strcmp(op, "Max") || !strcmp(op, "Min"))
        slope = grad_cast(b, grad_node(b, "Equal", grad_x(g, 0), unreduced(g, grad_y(g, 0)), NULL), t);
    else if (!strcmp(op, "L1"))
        slope = grad_node(b, "Sign", grad_x(g, 0), NULL);
    else if (!strcmp(op, "L2"))
        slope = grad_node(b, "Div", grad_x(g, 0), unreduced(g, grad_y(g, 0)), NULL);
    else if (!strcmp(op, "SumSquare"))
        slope = grad_scaled(b, grad_x(g, 0), t, 2);
    else if (!strcmp(op, "LogSumExp"))
        slope = grad_node(b, "Exp", grad_node(b, "Sub", grad_x(g, 0), unreduced(g, grad_y(g, 0)), NULL), NULL);
    else /* Prod */
        slope = grad_node(b, "Div", unreduced(g, grad_y(g, 0)), grad_x(g, 0), NULL);
    return grad_give(g, 0,
                     slope ? grad_node(b, "Mul", slope, dy, NULL)
                           : grad_node(b, "Expand", dy, grad_ints(b, x->dims, x->rank), NULL));
}

static const derivative ROWS[] = {
    {.ops = "Reshape Flatten Squeeze Unsqueeze", .back = view},
    {.ops = "Transpose", .back = transpose},
    {.ops = "Concat", .back = concat},
    {.ops = "Split", .back = split_back},
    {.ops = "Slice", .back = slice},
    {.ops = "Expand", .back = expand},
    {.ops = "Tile", .back = tile},
    {.ops = "Pad", .back = pad},
    {.ops = "Gather GatherElements GatherND", .back = gather},
    {.ops = "ScatterElements ScatterND", .back = scatter},
    {.ops = "ReverseSequence", .back = reversed},
    {.ops = "TopK", .back = topk},
    {.ops = "DepthToSpace SpaceToDepth", .back = blocks},
    {.ops = "Trilu", .back = trilu},
    {.ops = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp "
            "ReduceLogSum ReduceProd",
     .back = reduce},
};
const derivative_table derivatives_shape = DERIVATIVES(ROWS);
