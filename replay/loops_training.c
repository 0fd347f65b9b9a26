/* Loops that backward passes need, and triangles, which masks of attention are cut by. */
#include "replay/bind.h"

#include <string.h>

/* Zeros, into which the gradient is put where the slice lay. */
int bind_slice_grad(binder *b, const bz_layer *l)
{
    const bz_param *starts = bz_layer_param(l, "starts"), *axes = bz_layer_param(l, "axes"),
                   *steps = bz_layer_param(l, "steps");
    const bz_replay_loop zero = {.kind = BZ_LOOP_FILL, .rank = 1, .dim = {1}};
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
    int rank = l->in[0].rank;
    if (bind_over(&l->in[0], &loop) || rank != l->out[0].rank || !starts || !axes || !steps || axes->n != starts->n ||
        steps->n != starts->n)
        return bind_no(b, "where its slice lay is not known");
    bind_row_major(&l->in[0], loop.stride[0]);
    bind_row_major(&l->out[0], loop.stride[1]);
    for (int i = 0; i < starts->n; i++) {
        int64_t axis = axes->v[i], way;
        if (axis < 0 || axis >= rank || bz_is_symbol(starts->v[i]) || bz_is_symbol(steps->v[i]) ||
            __builtin_mul_overflow(starts->v[i], loop.stride[1][axis], &way) ||
            __builtin_add_overflow(loop.to, way, &loop.to) ||
            __builtin_mul_overflow(loop.stride[1][axis], loop.dim[axis] > 1 ? steps->v[i] : 1, &loop.stride[1][axis]))
            return bind_no(b, "where its slice lay is not known");
    }
    int dy = bind_in(b, 0), dx = bind_result(b, 0);
    bind_loop(b, &zero, NULL, 0, dx);
    return bind_loop(b, &loop, &dy, 1, dx);
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
int bind_resize_grad(binder *b, const bz_layer *l)
{
    const bz_type *dy = &l->in[0], *dx = &l->out[0];
    bz_problem *p = BZ_NEW(b->arena, bz_problem, 1);
    bz_error why;
    int n = 0;
    if (!repeats(l) || dy->rank != dx->rank)
        return bind_no(b, "only what repeats elements is replayed");
    *p = (bz_problem){
        .kind = BZ_PROBLEM_REDUCE, .reduce.fn = BZ_FN_SUM, .dtype = BZ_F32, .dtype_w = BZ_F32, .dtype_y = BZ_F32};
    for (int i = 0; i < dy->rank; i++) {
        int64_t times = dx->dims[i] > 0 ? dy->dims[i] / dx->dims[i] : 0;
        if (times < 1 || times * dx->dims[i] != dy->dims[i] || n + 2 > BZ_PROBLEM_RANK)
            return bind_no(b, "only what repeats elements is replayed");
        p->reduce.x[n] = p->reduce.y[n] = dx->dims[i], n++;
        if (times > 1)
            p->reduce.x[n] = times, p->reduce.y[n] = 1, n++;
    }
    int from = bind_in(b, 0), to = bind_result(b, 0);
    bz_dtype type = bind_at(b, from)->dtype;
    p->dtype = p->dtype_w = p->dtype_y = type;
    int wide = bind_new(b, type, n, p->reduce.x), sum = bind_new(b, type, n, p->reduce.y);
    if (bind_done(b) || bz_problem_normalize(p, &why))
        return bind_no(b, "it has too many dimensions");
    bind_step(b, BZ_STEP_VIEW, &from, 1, wide);
    bind_step(b, BZ_STEP_CALL, &wide, 1, sum)->problem = p;
    bind_step(b, BZ_STEP_VIEW, &sum, 1, to);
    return 0;
}

int bind_numbers(binder *b, bz_dtype dtype, int rank, const int64_t *dims, const double *number)
{
    int k = bind_new(b, dtype, rank, dims);
    if (k < 0)
        return -1;
    b->plan->value[k].source = BZ_VALUE_STORED;
    b->plan->source[k].number = number;
    return k;
}

int bind_widened(binder *b, int operand)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
    const bz_type *t = &b->l->in[operand];
    if (bind_over(t, &loop))
        return bind_no(b, "it has too many dimensions");
    bind_row_major(t, loop.stride[0]);
    bind_row_major(t, loop.stride[1]);
    int from = bind_in(b, operand), wide = bind_new(b, BZ_F32, t->rank, t->dims);
    return bind_loop(b, &loop, &from, 1, wide) ? -1 : wide;
}

/* Gradients lose the factor of the loss: operand 0 is what they are multiplied by. */
int bind_scale(binder *b, const bz_layer *l)
{
    for (int k = 0; k < l->n_out; k++) {
        bz_replay_loop loop = {.kind = BZ_LOOP_BINARY, .function = "mul"};
        if (k + 1 >= l->n_in || bind_over(&l->out[k], &loop) || bz_type_elements(&l->in[0]) != 1 ||
            l->in[0].dtype != BZ_F32 || l->out[k].dtype != BZ_F32)
            return bind_no(b, "only numbers that become f32 are scaled");
        int in[2] = {bind_widened(b, k + 1), bind_in(b, 0)};
        bind_row_major(&l->out[k], loop.stride[0]);
        bind_loop(b, &loop, in, 2, bind_result(b, k));
    }
    return bind_done(b);
}

/* The sum of all elements of a tensor in f32: a call. */
int bind_sum(binder *b, int of, int64_t n)
{
    bz_problem *p = BZ_NEW(b->arena, bz_problem, 1);
    *p = (bz_problem){.kind = BZ_PROBLEM_REDUCE,
                      .reduce = {.fn = BZ_FN_SUM, .x = {n}, .y = {1}},
                      .dtype = BZ_F32,
                      .dtype_w = BZ_F32,
                      .dtype_y = BZ_F32};
    bz_error why;
    int row = bind_new(b, BZ_F32, 1, &n), sum = bind_new(b, BZ_F32, 1, (int64_t[]){1});
    if (bind_done(b) || bz_problem_normalize(p, &why))
        return bind_no(b, "its elements cannot be summed up");
    bind_step(b, BZ_STEP_VIEW, &of, 1, row);
    bind_step(b, BZ_STEP_CALL, &row, 1, sum)->problem = p;
    return sum;
}

static int both(binder *b, const char *function, int64_t n, int x, int y, int out)
{
    bz_replay_loop loop = {
        .kind = BZ_LOOP_BINARY, .function = function, .rank = 1, .dim = {n}, .stride = {{n > 1}, {n > 1}}};
    return bind_loop(b, &loop, (int[]){x, y}, 2, out);
}

/* x - x is 0 for each number, and none for what is no number: so is the sum of all. */
int bind_finite(binder *b, const bz_layer *l)
{
    static const double ZERO = 0;
    int all = -1;
    const int64_t scalar[1] = {1};
    for (int k = 0; k < l->n_in; k++) {
        int64_t n = bz_type_elements(&l->in[k]);
        if (n < 1)
            continue;
        int wide = bind_widened(b, k), none = bind_new(b, BZ_F32, 1, &n);
        both(b, "sub", n, wide, wide, none);
        int own = n > 1 ? bind_sum(b, none, n) : none, sum = all >= 0 ? bind_new(b, BZ_F32, 1, scalar) : own;
        if (all >= 0)
            both(b, "add", 1, all, own, sum);
        all = sum;
    }
    if (all < 0 || l->out[0].dtype != BZ_BOOL)
        return bind_no(b, "only whether all are finite is replayed");
    int out = bind_result(b, 0);
    return both(b, "eq", 1, all, bind_numbers(b, BZ_F32, 1, scalar, &ZERO), out);
}

/* What a mask of the last two dimensions keeps; else 0. The mask is a constant where the number of the diagonal is. */
int bind_trilu(binder *b, const bz_layer *l)
{
    static const double ZERO = 0;
    const bz_attr *upper = bz_node_attr(l->node, "upper");
    bool above = !upper || upper->kind != BZ_ATTR_INT || upper->i, given = l->n_in > 1 && l->node->in[1] >= 0,
         once = b->once;
    bz_replay_loop loop = {.kind = BZ_LOOP_SELECT};
    int rank = l->out[0].rank;
    if (rank < 2 || bz_type_elements(&l->out[0]) < 1 || bind_over(&l->out[0], &loop) ||
        (given && bz_type_elements(&l->in[1]) != 1))
        return bind_no(b, "what it keeps is not known");
    int64_t rows = loop.dim[rank - 2], columns = loop.dim[rank - 1];
    const bz_replay_loop cut = {.kind = BZ_LOOP_LANES,
                                .function = "triangle",
                                .alpha = above ? 1 : -1,
                                .rank = 4,
                                .dim = {1, 1, 1, rows * columns},
                                .extent = {columns}};
    int x = bind_in(b, 0), y = bind_result(b, 0);
    int k = given ? bind_in(b, 1) : bind_numbers(b, BZ_I64, 0, NULL, &ZERO);
    int mask = bind_new(b, BZ_BOOL, 2, loop.dim + rank - 2),
        none = bind_numbers(b, bind_at(b, x)->dtype, 0, NULL, &ZERO);
    b->once |= !given || l->in_constant[1];
    bind_loop(b, &cut, &k, 1, mask);
    b->once = once;
    loop.stride[0][rank - 2] = columns, loop.stride[0][rank - 1] = 1;
    bind_row_major(&l->in[0], loop.stride[1]);
    return bind_loop(b, &loop, (int[]){mask, x, none}, 3, y);
}
