/* Functions with parameters, and layers that are several functions one after the other, as loops. */
#include "replay/bind.h"

#include <string.h>

/* Its limits may be operands. */
int bind_clip(binder *b, const bz_layer *l)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_BINARY};
    int at = bind_in(b, 0), out = bind_result(b, 0), left = 0;
    for (int k = 1; k < l->n_in && k < 3; k++)
        left += l->node->in[k] >= 0;
    if (!left)
        return bind_unary(b, l);
    if (bind_over(&l->out[0], &loop))
        return bind_no(b, "it has too many dimensions");
    bind_row_major(&l->out[0], loop.stride[0]);
    for (int k = 1; k < 3 && k < l->n_in; k++) {
        if (l->node->in[k] < 0)
            continue;
        int limit = bind_in(b, k),
            to = --left ? bind_new(b, bind_at(b, out)->dtype, l->out[0].rank, l->out[0].dims) : out;
        loop.function = k == 1 ? "max" : "min";
        bind_loop(b, &loop, (int[]){at, limit}, 2, to);
        at = to;
    }
    return bind_done(b);
}

static float either(const bz_layer *l, const char *name, float otherwise)
{
    const bz_attr *a = bz_node_attr(l->node, name);
    return a && a->kind == BZ_ATTR_INT ? (float)a->i : bind_real(l, name, otherwise);
}

int bind_parametric(binder *b, const bz_layer *l)
{
    static const struct {
        const char *kind, *alpha, *beta;
        float usual[2];
    } ROWS[] = {{"isinf", "detect_positive", "detect_negative", {1, 1}},
                {"shrink", "lambd", "bias", {0.5f, 0}},
                {"thresholdedrelu", "alpha", "", {1, 0}}};
    bz_replay_loop loop = {.kind = BZ_LOOP_UNARY, .function = l->kind};
    if (bind_over(&l->out[0], &loop) || bz_type_elements(&l->in[0]) != bz_type_elements(&l->out[0]))
        return bind_no(b, "it has too many dimensions");
    bind_row_major(&l->out[0], loop.stride[0]);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (!strcmp(ROWS[i].kind, l->kind))
            loop.alpha = either(l, ROWS[i].alpha, ROWS[i].usual[0]),
            loop.beta = either(l, ROWS[i].beta, ROWS[i].usual[1]);
    return bind_emit(b, (int[]){0}, 1, 0, &loop);
}

/* All bits turned round: what is left to the largest number without a sign, or to -1. */
int bind_complement(binder *b, const bz_layer *l)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_BINARY, .function = "sub"};
    double *all = BZ_NEW(b->arena, double, 1);
    bz_dtype t = l->in[0].dtype;
    bool no_sign = t == BZ_U8 || t == BZ_U16 || t == BZ_U32;
    if (bind_over(&l->out[0], &loop) || t == BZ_U64)
        return bind_no(b, "double precision does not hold its numbers");
    *all = no_sign ? (double)(((int64_t)1 << bz_dtype_bits(t)) - 1) : -1;
    bind_row_major(&l->out[0], loop.stride[1]);
    int in[2] = {bind_numbers(b, t, 0, NULL, all), bind_in(b, 0)};
    return bind_loop(b, &loop, in, 2, bind_result(b, 0));
}

/* Axes that are no neighbours are brought behind all others first: the new value, and its lanes. */
static int turn_axes(binder *b, const bz_type *x, int in, const bool *reduced, bz_replay_loop *lanes)
{
    int64_t stride[BZ_MAX_RANK];
    bz_replay_loop copy = {.kind = BZ_LOOP_COPY, .rank = x->rank};
    int at = 0;
    bind_row_major(x, stride);
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < x->rank; i++)
            if (reduced[i] == last)
                copy.dim[at] = x->dims[i], copy.stride[0][at++] = stride[i];
    for (int64_t i = at, step = 1; i-- > 0; step *= copy.dim[i])
        copy.stride[1][i] = step;
    lanes->dim[0] *= lanes->dim[2], lanes->dim[2] = 1;
    int turned = bind_new(b, bind_at(b, in)->dtype, at, copy.dim);
    return bind_loop(b, &copy, &in, 1, turned) ? -1 : turned;
}

/* In types that no library reduces, or by functions that none has. */
int bind_reduction(binder *b, const bz_layer *l)
{
    const bz_type *x = &l->in[0];
    const bz_param *axes = bz_layer_param(l, "axes");
    bool reduced[BZ_MAX_RANK] = {false};
    int first = -1, last = -1, n = 0;
    bz_replay_loop lanes = {.kind = BZ_LOOP_LANES, .function = l->kind, .rank = 4, .dim = {1, 1, 1, 1}};
    for (int i = 0; axes && i < axes->n; i++)
        if (axes->v[i] >= 0 && axes->v[i] < x->rank)
            reduced[axes->v[i]] = true;
    for (int i = 0; i < x->rank; i++)
        if (reduced[i])
            first = first < 0 ? i : first, last = i, n++;
    for (int i = 0; i < x->rank && bz_type_elements(x) > 0; i++)
        lanes.dim[reduced[i] ? 1 : i < first ? 0 : 2] *= x->dims[i];
    if (!n || x->rank > BZ_PROBLEM_RANK || bz_type_elements(x) < 1 ||
        lanes.dim[0] * lanes.dim[2] != bz_type_elements(&l->out[0]))
        return bind_no(b, "which axes it reduces depends on data");
    int in = bind_in(b, 0);
    if (last - first + 1 != n)
        in = turn_axes(b, x, in, reduced, &lanes);
    return bind_loop(b, &lanes, &in, 1, bind_result(b, 0));
}

/* Zeros, and ones along a diagonal. */
int bind_eye(binder *b, const bz_layer *l)
{
    static const double ONE = 1;
    const bz_attr *k = bz_node_attr(l->node, "k");
    int64_t at = k && k->kind == BZ_ATTR_INT ? k->i : 0;
    const bz_replay_loop fill = {.kind = BZ_LOOP_FILL, .rank = 1, .dim = {1}};
    if (l->out[0].rank != 2 || bz_type_elements(&l->out[0]) < 1)
        return bind_no(b, "it is no matrix");
    int64_t rows = l->out[0].dims[0], columns = l->out[0].dims[1], n;
    at = at < -rows ? -rows : at > columns ? columns : at; /* beyond, there is no diagonal */
    int64_t row = at < 0 ? -at : 0, column = at > 0 ? at : 0;
    n = rows - row < columns - column ? rows - row : columns - column;
    const bz_replay_loop copy = {
        .kind = BZ_LOOP_COPY, .rank = 1, .dim = {n}, .stride = {{0}, {columns + 1}}, .to = row * columns + column};
    int one = bind_numbers(b, l->out[0].dtype, 0, NULL, &ONE), out = bind_result(b, 0);
    bind_loop(b, &fill, NULL, 0, out);
    return n < 1 ? bind_done(b) : bind_loop(b, &copy, &one, 1, out);
}

/* A model may say how large its result was once. */
int bind_sized_by_data(binder *b, const bz_layer *l)
{
    (void)l;
    b->sized = true;
    return bind_no(b, "how large its result is depends on data, and a replay has fixed sizes");
}

/* A loop over the classes' numbers: operands lie as they do. */
static bz_replay_loop over_targets(const bz_type *target, bz_loop_kind kind, const char *function)
{
    int64_t n = bz_type_elements(target);
    return (bz_replay_loop){.kind = kind, .function = function, .rank = 1, .dim = {n}, .stride = {{1}, {1}, {1}}};
}

/* What each element's class weighs: 1, or its weight; 0 of the class that is ignored. */
static int weigh(binder *b, const bz_layer *l, int target, int64_t classes)
{
    static const double ONE = 1, ZERO = 0;
    const bz_type *t = &l->in[1];
    const bz_attr *ignored = bz_node_attr(l->node, "ignore_index");
    bz_replay_loop loop = over_targets(t, BZ_LOOP_GATHER, NULL);
    bool weighted = l->n_in > 2 && l->node->in[2] >= 0;
    int weights = weighted ? bind_in(b, 2) : bind_numbers(b, l->in[0].dtype, 0, NULL, &ONE);
    int all = bind_new(b, l->in[0].dtype, t->rank, t->dims);
    loop.stride[0][0] = 0, loop.length = 1, loop.extent[0] = classes, loop.step[0] = 1;
    if (!weighted) {
        loop = over_targets(t, BZ_LOOP_COPY, NULL);
        loop.stride[0][0] = 0;
    }
    bind_loop(b, &loop, (int[]){weights, target}, 1 + weighted, all);
    if (!ignored || ignored->kind != BZ_ATTR_INT)
        return all;
    double *number = BZ_NEW(b->arena, double, 1);
    *number = (double)ignored->i;
    int which = bind_numbers(b, l->in[1].dtype, 0, NULL, number),
        none = bind_numbers(b, l->in[0].dtype, 0, NULL, &ZERO);
    int same = bind_new(b, BZ_BOOL, t->rank, t->dims), rest = bind_new(b, l->in[0].dtype, t->rank, t->dims);
    bz_replay_loop equal = over_targets(t, BZ_LOOP_BINARY, "eq"), choose = over_targets(t, BZ_LOOP_SELECT, NULL);
    equal.stride[1][0] = choose.stride[1][0] = 0;
    bind_loop(b, &equal, (int[]){target, which}, 2, same);
    bind_loop(b, &choose, (int[]){same, none, all}, 3, rest);
    return rest;
}

/* Logarithms of probabilities, as operand or by the layer itself. */
static int find_logarithms(binder *b, const bz_layer *l, const bz_replay_loop *lanes)
{
    int x = bind_in(b, 0);
    if (strcmp(l->kind, "crossentropy") != 0)
        return x;
    bool named = l->n_out > 1 && l->node->out[1] >= 0;
    int made = named ? bind_result(b, 1) : bind_new(b, l->in[0].dtype, l->in[0].rank, l->in[0].dims);
    bind_loop(b, lanes, &x, 1, made);
    return made;
}

/* -weight · logarithm of each element's class; summed up, and over the sum of weights, as the layer says. */
int bind_likelihood(binder *b, const bz_layer *l)
{
    const bz_type *x = &l->in[0], *t = &l->in[1];
    const bz_attr *a = bz_node_attr(l->node, "reduction");
    const char *reduction = a && a->kind == BZ_ATTR_STRING ? a->s.data : "mean";
    int64_t n = bz_type_elements(t);
    if (x->dtype != BZ_F32 || x->rank < 2 || n < 1 || bz_type_elements(x) != n * x->dims[1] || x->dims[0] != t->dims[0])
        return bind_no(b, "its classes do not fit its targets");
    int64_t classes = x->dims[1], inner = n / x->dims[0];
    const bz_replay_loop lanes = {
        .kind = BZ_LOOP_LANES, .function = "logsoftmax", .rank = 4, .dim = {x->dims[0], classes, inner, classes}};
    const bz_replay_loop pick = {.kind = BZ_LOOP_GATHER,
                                 .rank = 2,
                                 .dim = {x->dims[0], inner},
                                 .stride = {{classes * inner, 1}, {inner, 1}},
                                 .length = 1,
                                 .extent = {classes},
                                 .step = {inner}};
    const bz_replay_loop negate = over_targets(t, BZ_LOOP_UNARY, "neg"), times = over_targets(t, BZ_LOOP_BINARY, "mul"),
                         one = {.kind = BZ_LOOP_COPY, .rank = 1, .dim = {1}, .stride = {{1}, {1}}},
                         ratio = {
                             .kind = BZ_LOOP_BINARY, .function = "div", .rank = 1, .dim = {1}, .stride = {{1}, {1}}};
    int from = find_logarithms(b, l, &lanes), target = bind_in(b, 1), weight = weigh(b, l, target, classes),
        out = bind_result(b, 0);
    bool each = !strcmp(reduction, "none");
    int picked = bind_new(b, BZ_F32, t->rank, t->dims), turned = bind_new(b, BZ_F32, t->rank, t->dims),
        loss = each ? out : bind_new(b, BZ_F32, t->rank, t->dims);
    bind_loop(b, &pick, (int[]){from, target}, 2, picked);
    bind_loop(b, &negate, &picked, 1, turned);
    bind_loop(b, &times, (int[]){turned, weight}, 2, loss);
    if (each)
        return bind_done(b);
    int sum[2] = {bind_sum(b, loss, n)};
    if (strcmp(reduction, "mean") != 0)
        return bind_loop(b, &one, sum, 1, out);
    sum[1] = bind_sum(b, weight, n);
    return bind_loop(b, &ratio, sum, 2, out);
}
