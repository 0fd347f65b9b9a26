/* Loops that backward passes need, and triangles, which masks of attention are cut by. */
#include "replay/bind.h"

#include <string.h>

static int fill(binder *b, const bz_layer *l, int out, double value, bz_error *err)
{
    const bz_replay_loop loop = {.kind = BZ_LOOP_FILL, .value = value, .rank = 1, .dim = {1}};
    return bind_loop(b, l, &loop, NULL, 0, out, err);
}

/* Zeros, into which the gradient is put where the slice lay. */
int bind_slice_grad(binder *b, const bz_layer *l, bz_error *err)
{
    const bz_param *starts = bz_layer_param(l, "starts"), *axes = bz_layer_param(l, "axes"),
                   *steps = bz_layer_param(l, "steps");
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
    int rank = l->in[0].rank;
    if (bind_over(&l->in[0], &loop) || rank != l->out[0].rank || !starts || !axes || !steps || axes->n != starts->n ||
        steps->n != starts->n)
        return bind_no(l, err, "where its slice lay is not known");
    bind_row_major(&l->in[0], loop.stride[0]);
    bind_row_major(&l->out[0], loop.stride[1]);
    for (int i = 0; i < starts->n; i++) {
        int64_t axis = axes->v[i], way;
        if (axis < 0 || axis >= rank || bz_is_symbol(starts->v[i]) || bz_is_symbol(steps->v[i]) ||
            __builtin_mul_overflow(starts->v[i], loop.stride[1][axis], &way) ||
            __builtin_add_overflow(loop.to, way, &loop.to) ||
            __builtin_mul_overflow(loop.stride[1][axis], loop.dim[axis] > 1 ? steps->v[i] : 1, &loop.stride[1][axis]))
            return bind_no(l, err, "where its slice lay is not known");
    }
    int dy = bind_value(b, l->node->in[0], err), dx = dy < 0 ? -1 : bind_result(b, l, 0, err);
    return dx < 0 || fill(b, l, dx, 0, err) || bind_loop(b, l, &loop, &dy, 1, dx, err) ? -1 : 0;
}

static const char *word(const bz_layer *l, const char *name, const char *otherwise)
{
    const bz_attr *a = bz_node_attr(l->node, name);
    return a && a->kind == BZ_ATTR_STRING ? a->s.data : otherwise;
}

/* Whether element i of the larger tensor is element i / n of the smaller one, for any whole n. */
static bool repeats(const bz_layer *l)
{
    const char *at = word(l, "coordinate_transformation_mode", "half_pixel"),
               *round = word(l, "nearest_mode", "round_prefer_floor");
    bool nearest = !strcmp(word(l, "mode", "nearest"), "nearest");
    return nearest && (!strcmp(at, "asymmetric")                      ? !strcmp(round, "floor")
                       : strstr(at, "half_pixel") == at || *at == 'p' ? !strncmp(round, "round_prefer", 12)
                                                                      : false);
}

/* Elements were repeated so many times along each axis: their gradients are summed up. */
int bind_resize_grad(binder *b, const bz_layer *l, bz_error *err)
{
    const bz_type *dy = &l->in[0], *dx = &l->out[0];
    bz_problem *p = BZ_NEW(b->arena, bz_problem, 1);
    int n = 0;
    if (!repeats(l) || dy->rank != dx->rank)
        return bind_no(l, err, "only what repeats elements is replayed");
    *p = (bz_problem){
        .kind = BZ_PROBLEM_REDUCE, .reduce.fn = BZ_FN_SUM, .dtype = BZ_F32, .dtype_w = BZ_F32, .dtype_y = BZ_F32};
    for (int i = 0; i < dy->rank; i++) {
        int64_t times = dx->dims[i] > 0 ? dy->dims[i] / dx->dims[i] : 0;
        if (times < 1 || times * dx->dims[i] != dy->dims[i] || n + 2 > BZ_PROBLEM_RANK)
            return bind_no(l, err, "only what repeats elements is replayed");
        p->reduce.x[n] = p->reduce.y[n] = dx->dims[i], n++;
        if (times > 1)
            p->reduce.x[n] = times, p->reduce.y[n] = 1, n++;
    }
    int from = bind_value(b, l->node->in[0], err), to = from < 0 ? -1 : bind_result(b, l, 0, err);
    if (to < 0)
        return -1;
    bz_dtype type = b->plan->value[from].dtype;
    p->dtype = p->dtype_w = p->dtype_y = type;
    int wide = bind_new_value(b, "", type, n, p->reduce.x), sum = bind_new_value(b, "", type, n, p->reduce.y);
    if (wide < 0 || sum < 0 || bz_problem_normalize(p, err))
        return bind_no(l, err, "it has too many dimensions");
    bind_step(b, BZ_STEP_VIEW, &from, 1, wide);
    bind_step(b, BZ_STEP_CALL, &wide, 1, sum)->problem = p;
    bind_step(b, BZ_STEP_VIEW, &sum, 1, to);
    return 0;
}

int bind_numbers(binder *b, bz_dtype dtype, int rank, const int64_t *dims, const double *number)
{
    int k = bind_new_value(b, "", dtype, rank, dims);
    if (k < 0)
        return -1;
    b->plan->value[k].source = BZ_VALUE_STORED;
    b->plan->source[k].number = number;
    return k;
}

int bind_widened(binder *b, const bz_layer *l, int operand, bz_error *err)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
    const bz_type *t = &l->in[operand];
    if (bind_over(t, &loop))
        return bind_no(l, err, "it has too many dimensions");
    bind_row_major(t, loop.stride[0]);
    bind_row_major(t, loop.stride[1]);
    int from = bind_value(b, l->node->in[operand], err),
        wide = from < 0 ? -1 : bind_new_value(b, "", BZ_F32, t->rank, t->dims);
    return wide < 0 || bind_loop(b, l, &loop, &from, 1, wide, err) ? -1 : wide;
}

/* Gradients lose the factor of the loss: operand 0 is what they are multiplied by. */
int bind_scale(binder *b, const bz_layer *l, bz_error *err)
{
    for (int k = 0; k < l->n_out; k++) {
        bz_replay_loop loop = {.kind = BZ_LOOP_BINARY, .function = "mul"};
        if (k + 1 >= l->n_in || bind_over(&l->out[k], &loop) || bz_type_elements(&l->in[0]) != 1 ||
            l->in[0].dtype != BZ_F32 || l->out[k].dtype != BZ_F32)
            return bind_no(l, err, "only numbers that become f32 are scaled");
        int in[2] = {bind_widened(b, l, k + 1, err), bind_value(b, l->node->in[0], err)};
        int out = in[0] < 0 || in[1] < 0 ? -1 : bind_result(b, l, k, err);
        bind_row_major(&l->out[k], loop.stride[0]);
        if (out < 0 || bind_loop(b, l, &loop, in, 2, out, err))
            return -1;
    }
    return 0;
}

/* The sum of all elements of a tensor in f32: a call. */
int bind_sum(binder *b, const bz_layer *l, int of, int64_t n, bz_error *err)
{
    bz_problem *p = BZ_NEW(b->arena, bz_problem, 1);
    *p = (bz_problem){.kind = BZ_PROBLEM_REDUCE,
                      .reduce = {.fn = BZ_FN_SUM, .x = {n}, .y = {1}},
                      .dtype = BZ_F32,
                      .dtype_w = BZ_F32,
                      .dtype_y = BZ_F32};
    int row = bind_new_value(b, "", BZ_F32, 1, &n), sum = bind_new_value(b, "", BZ_F32, 1, (int64_t[]){1});
    if (row < 0 || sum < 0 || bz_problem_normalize(p, err))
        return bind_no(l, err, "its elements cannot be summed up");
    bind_step(b, BZ_STEP_VIEW, &of, 1, row);
    bind_step(b, BZ_STEP_CALL, &row, 1, sum)->problem = p;
    return sum;
}

static int both(binder *b, const bz_layer *l, const char *function, int64_t n, int x, int y, int out, bz_error *err)
{
    bz_replay_loop loop = {
        .kind = BZ_LOOP_BINARY, .function = function, .rank = 1, .dim = {n}, .stride = {{n > 1}, {n > 1}}};
    return out < 0 ? -1 : bind_loop(b, l, &loop, (int[]){x, y}, 2, out, err);
}

/* x - x is 0 for each number, and none for what is no number: so is the sum of all. */
int bind_finite(binder *b, const bz_layer *l, bz_error *err)
{
    static const double ZERO = 0;
    int all = -1;
    const int64_t scalar[1] = {1};
    for (int k = 0; k < l->n_in; k++) {
        int64_t n = bz_type_elements(&l->in[k]);
        if (n < 1)
            continue;
        int wide = bind_widened(b, l, k, err), none = wide < 0 ? -1 : bind_new_value(b, "", BZ_F32, 1, &n);
        if (none < 0 || both(b, l, "sub", n, wide, wide, none, err))
            return -1;
        int own = n > 1 ? bind_sum(b, l, none, n, err) : none;
        int sum = own >= 0 && all >= 0 ? bind_new_value(b, "", BZ_F32, 1, scalar) : own;
        if (sum < 0 || (all >= 0 && both(b, l, "add", 1, all, own, sum, err)))
            return -1;
        all = sum;
    }
    int out = l->out[0].dtype != BZ_BOOL ? -1 : bind_result(b, l, 0, err);
    if (all < 0 || out < 0)
        return bind_no(l, err, "only whether all are finite is replayed");
    return both(b, l, "eq", 1, all, bind_numbers(b, BZ_F32, 1, scalar, &ZERO), out, err);
}

/* What a mask of the last two dimensions keeps; else 0. The mask is a constant where the number of the diagonal is. */
int bind_trilu(binder *b, const bz_layer *l, bz_error *err)
{
    static const double ZERO = 0;
    const bz_attr *upper = bz_node_attr(l->node, "upper");
    bool above = !upper || upper->kind != BZ_ATTR_INT || upper->i, given = l->n_in > 1 && l->node->in[1] >= 0,
         once = b->once;
    bz_replay_loop loop = {.kind = BZ_LOOP_SELECT};
    int rank = l->out[0].rank;
    if (rank < 2 || bz_type_elements(&l->out[0]) < 1 || bind_over(&l->out[0], &loop) ||
        (given && bz_type_elements(&l->in[1]) != 1))
        return bind_no(l, err, "what it keeps is not known");
    int64_t rows = loop.dim[rank - 2], columns = loop.dim[rank - 1];
    const bz_replay_loop cut = {.kind = BZ_LOOP_LANES,
                                .function = "triangle",
                                .alpha = above ? 1 : -1,
                                .rank = 4,
                                .dim = {1, 1, 1, rows * columns},
                                .extent = {columns}};
    int x = bind_value(b, l->node->in[0], err), y = x < 0 ? -1 : bind_result(b, l, 0, err);
    int k = y < 0 ? -1 : given ? bind_value(b, l->node->in[1], err) : bind_numbers(b, BZ_I64, 0, NULL, &ZERO);
    if (k < 0)
        return -1;
    int mask = bind_new_value(b, "", BZ_BOOL, 2, loop.dim + rank - 2),
        none = bind_numbers(b, b->plan->value[x].dtype, 0, NULL, &ZERO);
    b->once |= !given || l->in_constant[1];
    int bad = bind_loop(b, l, &cut, &k, 1, mask, err);
    b->once = once;
    loop.stride[0][rank - 2] = columns, loop.stride[0][rank - 1] = 1;
    bind_row_major(&l->in[0], loop.stride[1]);
    return bad || bind_loop(b, l, &loop, (int[]){mask, x, none}, 3, y, err) ? -1 : 0;
}
