/* Layers that go where indices say, and layers along an axis, as loops. */
#include "replay/bind.h"

#include <string.h>

static int64_t whole(const bz_layer *l, const char *name, int64_t otherwise)
{
    const bz_attr *a = bz_node_attr(l->node, name);
    return a && a->kind == BZ_ATTR_INT ? a->i : otherwise;
}

/* An axis of a tensor, counted from the front; -1: there is none. */
static int64_t axis_of(const bz_layer *l, int64_t otherwise, int rank)
{
    int64_t axis = bz_layer_int(l, "axis", otherwise);
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? axis : -1;
}

static const char NO_AXIS[] = "its axis depends on data, or is none of its operand's",
                  NO_FIT[] = "its operands do not fit";

/* Whole rows behind an axis, for each index. */
int bind_gather(binder *b, const bz_layer *l)
{
    const bz_type *x = &l->in[0];
    int64_t axis = bz_layer_int(l, "axis", 0), outer = 1, inner = 1, made;
    if (bz_type_elements(x) < 1 || axis < 0 || axis >= x->rank || bz_type_elements(&l->in[1]) < 0)
        return bind_no(b, "its table is empty, or its axis not known");
    for (int i = 0; i < x->rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : x->dims[i];
    int64_t n = bz_type_elements(&l->in[1]), extent = x->dims[axis];
    const bz_replay_loop loop = {.kind = BZ_LOOP_GATHER,
                                 .rank = 3,
                                 .dim = {outer, n, inner},
                                 .stride = {{extent * inner, 0, 1}, {0, 1, 0}},
                                 .length = 1,
                                 .extent = {extent},
                                 .step = {inner}};
    if (__builtin_mul_overflow(outer * inner, n, &made) || made != bz_type_elements(&l->out[0]))
        return bind_no(b, "its indices do not fit its result");
    return bind_emit(b, (int[]){0, 1}, 2, 0, &loop);
}

/* Tuples lead into the dimensions from `first` on; their steps there. Returns the elements of what a tuple names, 0 where they do not fit. */
static int64_t put_tuples(bz_replay_loop *loop, const bz_type *x, const bz_type *index, int first)
{
    int64_t stride[BZ_MAX_RANK], n = 1;
    int64_t length = index->rank > 0 ? index->dims[index->rank - 1] : 0;
    if (length < 1 || bz_type_elements(index) < 1 || bz_type_elements(x) < 1 || length > x->rank - first ||
        length > BZ_PROBLEM_RANK)
        return 0;
    bind_row_major(x, stride);
    loop->length = (int)length;
    for (int64_t i = 0; i < length; i++)
        loop->extent[i] = x->dims[first + i], loop->step[i] = stride[first + i];
    for (int64_t i = first + length; i < x->rank; i++)
        n *= x->dims[i];
    return n;
}

/* One slice for each tuple of indices, in each batch. */
int bind_gathernd(binder *b, const bz_layer *l)
{
    const bz_type *x = &l->in[0], *index = &l->in[1];
    int64_t batch = bz_layer_int(l, "batch", 0), outer = 1, made;
    bz_replay_loop loop = {.kind = BZ_LOOP_GATHER, .rank = 3};
    int64_t n = batch < 0 || batch >= x->rank || batch >= index->rank ? 0 : put_tuples(&loop, x, index, (int)batch);
    for (int64_t i = 0; i < batch && n; i++)
        outer *= x->dims[i] == index->dims[i] ? x->dims[i] : 0;
    if (!n || !outer)
        return bind_no(b, NO_FIT);
    int64_t tuples = bz_type_elements(index) / loop.length / outer;
    loop.dim[0] = outer, loop.dim[1] = tuples, loop.dim[2] = n;
    loop.stride[0][0] = bz_type_elements(x) / outer, loop.stride[0][2] = 1;
    loop.stride[1][0] = tuples * loop.length, loop.stride[1][1] = loop.length;
    if (__builtin_mul_overflow(outer * tuples, n, &made) || made != bz_type_elements(&l->out[0]))
        return bind_no(b, NO_FIT);
    return bind_emit(b, (int[]){0, 1}, 2, 0, &loop);
}

/* A loop over indices whose number along the axis alone is replaced: strides of the other tensor. */
static int over_indices(const bz_type *x, const bz_type *index, int64_t axis, bz_replay_loop *loop, int64_t *stride)
{
    if (axis < 0 || x->rank != index->rank || bind_over(index, loop) || x->rank > BZ_PROBLEM_RANK ||
        bz_type_elements(index) < 1)
        return -1;
    bind_row_major(x, stride);
    for (int i = 0; i < x->rank; i++)
        if (i != axis && index->dims[i] > x->dims[i])
            return -1;
    loop->length = 1, loop->extent[0] = x->dims[axis], loop->step[0] = stride[axis];
    stride[axis] = 0;
    return 0;
}

int bind_gatherelements(binder *b, const bz_layer *l)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_GATHER};
    if (over_indices(&l->in[0], &l->in[1], axis_of(l, 0, l->in[0].rank), &loop, loop.stride[0]))
        return bind_no(b, NO_FIT);
    bind_row_major(&l->in[1], loop.stride[1]);
    return bind_emit(b, (int[]){0, 1}, 2, 0, &loop);
}

/* What a scatter does where something is already. */
static int find_reduction(const bz_layer *l, const char **function)
{
    static const struct {
        const char *name, *function;
    } NAMES[] = {{"none", NULL}, {"add", "add"}, {"mul", "mul"}, {"min", "min"}, {"max", "max"}};
    const bz_attr *a = bz_node_attr(l->node, "reduction");
    const char *name = a && a->kind == BZ_ATTR_STRING ? a->s.data : "none";
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!strcmp(NAMES[i].name, name)) {
            *function = NAMES[i].function;
            return 0;
        }
    return -1;
}

/* The data copied, then the updates put where the tuples of indices say. */
int bind_scatternd(binder *b, const bz_layer *l)
{
    const bz_type *x = &l->in[0], *index = &l->in[1];
    bz_replay_loop loop = {.kind = BZ_LOOP_SCATTER, .rank = 2};
    int64_t n = l->n_in == 3 ? put_tuples(&loop, x, index, 0) : 0, updates;
    if (!n || bz_type_elements(x) != bz_type_elements(&l->out[0]) || find_reduction(l, &loop.function))
        return bind_no(b, NO_FIT);
    loop.dim[0] = bz_type_elements(index) / loop.length, loop.dim[1] = n;
    loop.stride[0][0] = loop.length;
    loop.stride[1][0] = n, loop.stride[1][1] = loop.stride[2][1] = 1;
    if (__builtin_mul_overflow(loop.dim[0], n, &updates) || updates != bz_type_elements(&l->in[2]))
        return bind_no(b, "its updates do not fit");
    return bind_cast(b, l) || bind_emit(b, (int[]){1, 2}, 2, 0, &loop) ? -1 : 0;
}

int bind_scatterelements(binder *b, const bz_layer *l)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_SCATTER};
    if (l->n_in != 3 || bz_type_elements(&l->in[1]) != bz_type_elements(&l->in[2]) ||
        find_reduction(l, &loop.function) ||
        over_indices(&l->in[0], &l->in[1], axis_of(l, 0, l->in[0].rank), &loop, loop.stride[2]))
        return bind_no(b, NO_FIT);
    bind_row_major(&l->in[1], loop.stride[0]);
    bind_row_major(&l->in[1], loop.stride[1]);
    return bind_cast(b, l) || bind_emit(b, (int[]){1, 2}, 2, 0, &loop) ? -1 : 0;
}

/* Zeros, and each element where its index in the whole tensor says. With an output shape, indices are still those of the tensor without it. */
int bind_unpool(binder *b, const bz_layer *l)
{
    int64_t n = bz_type_elements(&l->in[0]);
    const bz_replay_loop fill = {.kind = BZ_LOOP_FILL, .rank = 1, .dim = {1}},
                         loop = {.kind = BZ_LOOP_SCATTER,
                                 .rank = 1,
                                 .dim = {n},
                                 .stride = {{1}, {1}, {0}},
                                 .length = 1,
                                 .extent = {bz_type_elements(&l->out[0])},
                                 .step = {1}};
    if (l->n_in < 2 || n < 1 || bz_type_elements(&l->in[1]) != n || l->n_in > 2)
        return bind_no(b, l->n_in > 2 ? "its indices are those of a tensor of another shape" : NO_FIT);
    return bind_emit(b, NULL, 0, 0, &fill) || bind_emit(b, (int[]){1, 0}, 2, 0, &loop) ? -1 : 0;
}

/* The first value everywhere, and the second where the indices say. */
int bind_onehot(binder *b, const bz_layer *l)
{
    const bz_replay_loop fill = {.kind = BZ_LOOP_FILL, .rank = 1, .dim = {1}};
    int64_t axis = axis_of(l, -1, l->out[0].rank), outer = 1, inner = 1;
    if (l->n_in != 3 || bz_type_elements(&l->in[2]) != 2 || axis < 0 || bz_type_elements(&l->out[0]) < 1)
        return bind_no(b, NO_FIT);
    for (int i = 0; i < l->out[0].rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : l->out[0].dims[i];
    const bz_replay_loop loop = {.kind = BZ_LOOP_SCATTER,
                                 .rank = 2,
                                 .dim = {outer, inner},
                                 .stride = {{inner, 1}, {0}, {inner * l->out[0].dims[axis], 1}},
                                 .to = 1,
                                 .length = 1,
                                 .extent = {l->out[0].dims[axis]},
                                 .step = {inner}};
    return bind_emit(b, (int[]){2}, 1, 0, &fill) || bind_emit(b, (int[]){0, 2}, 2, 0, &loop) ? -1 : 0;
}

int64_t bind_indexed_extent(const bz_layer *l, int k)
{
    bool tuples = bz_has_word(" gathernd scatternd ", l->kind),
         onehot = !strcmp(l->kind, "onehot") && k == 0 && l->n_out,
         classes = bz_has_word(" nllloss crossentropy ", l->kind) && k == 1;
    const bz_type *t = onehot ? &l->out[0] : &l->in[0];
    int64_t axis = bz_layer_int(l, "axis", onehot ? -1 : 0), least = 0;
    axis = classes ? 1 : axis < 0 ? axis + t->rank : axis;
    for (int i = 0; i < t->rank && tuples && k == 1; i++)
        least = least && least < t->dims[i] ? least : t->dims[i];
    if (tuples)
        return least;
    bool along = bz_has_word(" gather gatherelements scatterelements ", l->kind) && k == 1;
    return (along || onehot || classes) && axis >= 0 && axis < t->rank ? t->dims[axis] : 0;
}

/* -1 where there is no such axis, or another dimension of the result differs. */
static int over_lanes(const bz_type *x, int64_t axis, int64_t m, bz_replay_loop *loop)
{
    *loop = (bz_replay_loop){.kind = BZ_LOOP_LANES, .rank = 4, .dim = {1, 1, 1, m}};
    if (axis < 0 || bz_type_elements(x) < 1 || m < 1)
        return -1;
    for (int i = 0; i < x->rank; i++)
        loop->dim[i < axis ? 0 : i == axis ? 1 : 2] *= x->dims[i];
    return 0;
}

int bind_argmax(binder *b, const bz_layer *l)
{
    bz_replay_loop loop;
    if (over_lanes(&l->in[0], axis_of(l, 0, l->in[0].rank), 1, &loop))
        return bind_no(b, NO_AXIS);
    loop.function = l->kind;
    loop.alpha = whole(l, "select_last_index", 0) ? 1 : 0;
    return bind_emit(b, (int[]){0}, 1, 0, &loop);
}

/* A result as long as its operand. */
int bind_lanes(binder *b, const bz_layer *l)
{
    bz_replay_loop loop;
    int rank = l->in[0].rank;
    int64_t axis = rank == 1 ? 0 : bz_layer_param(l, "axis") ? axis_of(l, 0, rank) : -1;
    if (over_lanes(&l->in[0], axis, axis < 0 ? 0 : l->in[0].dims[axis], &loop))
        return bind_no(b, NO_AXIS);
    loop.function = l->kind;
    loop.alpha = whole(l, "exclusive", 0) ? 1 : 0, loop.beta = whole(l, "reverse", 0) ? 1 : 0;
    return bind_emit(b, (int[]){0}, 1, 0, &loop);
}

/* Their numbers, and then the elements that these lead to. */
int bind_topk(binder *b, const bz_layer *l)
{
    const bz_type *x = &l->in[0];
    bz_replay_loop loop, take = {.kind = BZ_LOOP_GATHER};
    int64_t axis = axis_of(l, -1, x->rank);
    const bz_type *y = l->n_out > 1 && l->out[0].rank == x->rank ? &l->out[0] : NULL;
    if (!y || axis < 0 || y->dims[axis] > x->dims[axis] || over_lanes(x, axis, y->dims[axis], &loop) ||
        over_indices(x, y, axis, &take, take.stride[0]))
        return bind_no(b, "how many it takes depends on data, or is more than there are");
    loop.function = "topk";
    loop.alpha = whole(l, "largest", 1) ? 1 : -1;
    bind_row_major(y, take.stride[1]);
    bool named = l->node->out[1] >= 0;
    int in = bind_in(b, 0), numbers = named ? bind_result(b, 1) : bind_new(b, BZ_I64, y->rank, y->dims);
    bind_loop(b, &loop, &in, 1, numbers);
    if (l->node->out[0] < 0 || !bind_is_wanted(b, l->node->out[0]))
        return bind_done(b);
    return bind_loop(b, &take, (int[]){in, numbers}, 2, bind_result(b, 0));
}

/* For each sequence the numbers of its elements turned round, and then the elements that these lead to. */
int bind_reversal(binder *b, const bz_layer *l)
{
    const bz_type *x = &l->in[0];
    int64_t time = whole(l, "time_axis", 0), batch = whole(l, "batch_axis", 1), n = bz_type_elements(&l->in[1]);
    bz_replay_loop take = {.kind = BZ_LOOP_GATHER};
    if (x->rank < 2 || time < 0 || time > 1 || batch != 1 - time || bind_over(x, &take) || n != x->dims[batch])
        return bind_no(b, NO_FIT);
    const int64_t numbers[2] = {n, x->dims[time]};
    const bz_replay_loop loop = {
        .kind = BZ_LOOP_LANES, .function = "reversal", .rank = 4, .dim = {n, 1, 1, numbers[1]}};
    bind_row_major(x, take.stride[0]);
    take.length = 1, take.extent[0] = numbers[1], take.step[0] = take.stride[0][time];
    take.stride[0][time] = 0, take.stride[1][batch] = numbers[1], take.stride[1][time] = 1;
    int in = bind_in(b, 0), lengths = bind_in(b, 1), order = bind_new(b, BZ_I64, 2, numbers);
    bind_loop(b, &loop, &lengths, 1, order);
    return bind_loop(b, &take, (int[]){in, order}, 2, bind_result(b, 0));
}

/* A copy with one more dimension, without a step, for each that is repeated. */
int bind_tile(binder *b, const bz_layer *l)
{
    const bz_type *x = &l->in[0], *y = &l->out[0];
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY, .dim = {1}};
    int64_t from[BZ_MAX_RANK], to[BZ_MAX_RANK];
    int rank = 0;
    if (x->rank != y->rank || bz_type_elements(x) < 1 || bz_type_elements(y) < 1)
        return bind_no(b, NO_FIT);
    bind_row_major(x, from);
    bind_row_major(y, to);
    for (int i = 0; i < x->rank; i++) {
        if (rank + 2 > BZ_PROBLEM_RANK || y->dims[i] % x->dims[i])
            return bind_no(b, "it has too many dimensions");
        if (y->dims[i] != x->dims[i])
            loop.dim[rank] = y->dims[i] / x->dims[i], loop.stride[1][rank++] = to[i] * x->dims[i];
        loop.dim[rank] = x->dims[i], loop.stride[0][rank] = from[i], loop.stride[1][rank++] = to[i];
    }
    loop.rank = rank ? rank : 1;
    return bind_emit(b, (int[]){0}, 1, 0, &loop);
}

/* A grid has x and y, from -1 to 1 over the image; the call wants y and x in pixels. In between all y lie behind each other, and all x: a loop
 * over pairs takes ten times as long. All is f32, whatever the model is computed in: in other types no loop of ours samples. */
int bind_grid(binder *b, const bz_layer *l, const bz_problem *p)
{
    const bz_type *x = &l->in[0], *grid = &l->in[1];
    bool corners = whole(l, "align_corners", 0);
    const int64_t n = bz_type_elements(grid) / 2, planes[2] = {2, n}, two[1] = {2};
    double *number = BZ_NEW(b->arena, double, 4);
    for (int i = 0; i < 2; i++) { /* ((g + 1) · size - 1) / 2, or (g + 1) · (size - 1) / 2 */
        double size = (double)x->dims[2 + i];
        number[i] = corners ? (size - 1) / 2 : size / 2;
        number[2 + i] = (size - 1) / 2;
    }
    const bz_replay_loop loop[] = {
        {.kind = BZ_LOOP_COPY, .rank = 2, .dim = {2, n}, .stride = {{-1, 2}, {n, 1}}, .from = 1},
        {.kind = BZ_LOOP_BINARY, .function = "mul", .rank = 2, .dim = {2, n}, .stride = {{n, 1}, {1, 0}}},
        {.kind = BZ_LOOP_BINARY, .function = "add", .rank = 2, .dim = {2, n}, .stride = {{n, 1}, {1, 0}}},
        {.kind = BZ_LOOP_COPY, .rank = 2, .dim = {2, n}, .stride = {{n, 1}, {1, 2}}},
    };
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    bz_problem *own = bz_arena_dup(b->arena, p, sizeof *p);
    own->dtype = own->dtype_w = own->dtype_y = BZ_F32;
    int n_y = bz_problem_operands(own, operand);
    int from = bind_in(b, 0), at = bind_in(b, 1), out = bind_result(b, 0);
    for (int i = 0; i < 4; i++) {
        bool plain = loop[i].kind == BZ_LOOP_COPY;
        int made = i < 3 ? bind_new(b, BZ_F32, 2, planes) : bind_operand(b, &operand[1]),
            by = plain ? 0 : bind_numbers(b, BZ_F32, 1, two, number + 2 * (i - 1));
        bind_loop(b, &loop[i], (int[]){at, by}, plain ? 1 : 2, made);
        at = made;
    }
    from = bind_at(b, from)->dtype == BZ_F32 ? from : bind_widened(b, 0);
    int made = bind_at(b, out)->dtype == BZ_F32 ? out : bind_operand(b, &operand[n_y - 1]);
    bind_call(b, own, (int[]){from, at}, 2, NULL, 0, made);
    const bz_replay_loop narrow = {
        .kind = BZ_LOOP_COPY, .rank = 1, .dim = {operand[n_y - 1].count}, .stride = {{1}, {1}}};
    return made == out ? bind_done(b) : bind_loop(b, &narrow, &made, 1, out);
}
