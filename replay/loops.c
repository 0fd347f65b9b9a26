/* Layers as views and as loops of the runtime's: what moves data, functions that no library has, integers, constants. */
#include "replay/bind.h"

#include <math.h>
#include <string.h>

/* Strides of a tensor without elements are 0: the product of its other dimensions may be anything. */
void bind_row_major(const bz_type *t, int64_t *stride)
{
    int64_t step = bz_type_elements(t) > 0;
    for (int i = t->rank; i-- > 0; step *= t->dims[i])
        stride[i] = step;
}

/* Strides of an operand that is broadcast to the result's shape; -1 where it does not fit. */
static int broadcast(const bz_type *t, const bz_type *y, int64_t *stride)
{
    int64_t own[BZ_PROBLEM_RANK];
    int ahead = y->rank - t->rank;
    if (t->kind != BZ_TYPE_TENSOR || ahead < 0 || y->rank > BZ_PROBLEM_RANK)
        return -1;
    bind_row_major(t, own);
    for (int i = 0; i < y->rank; i++) {
        bool one = i < ahead || t->dims[i - ahead] == 1;
        if (!one && t->dims[i - ahead] != y->dims[i])
            return -1;
        stride[i] = one ? 0 : own[i - ahead];
    }
    return 0;
}

/* A loop over the result's shape; a scalar's has one dimension of 1. */
int bind_over(const bz_type *t, bz_replay_loop *loop)
{
    if (t->kind != BZ_TYPE_TENSOR || t->rank < 0 || t->rank > BZ_PROBLEM_RANK)
        return -1;
    loop->rank = t->rank ? t->rank : 1;
    loop->dim[0] = 1;
    for (int i = 0; i < t->rank; i++)
        loop->dim[i] = t->dims[i];
    return 0;
}

/* Whether all that a loop reaches by these strides, from an element on and `more` of them behind each, are elements of the value. */
static bool is_inside(const bz_replay_value *v, const bz_replay_loop *loop, const int64_t *stride, int64_t from,
                      int64_t more)
{
    int64_t first = from, last, way;
    if (__builtin_add_overflow(from, more, &last))
        return false;
    for (int i = 0; i < loop->rank; i++) {
        int64_t *end = stride[i] < 0 ? &first : &last;
        if (__builtin_mul_overflow(loop->dim[i] - 1, stride[i], &way) || __builtin_add_overflow(*end, way, end))
            return false;
    }
    return first >= 0 && last < bz_extent_count(v->dim);
}

/* How far indices lead at the most; -1: nobody can tell. */
static int64_t farthest(const bz_replay_loop *l)
{
    int64_t all = 0, way;
    for (int j = 0; j < l->length; j++)
        if (l->extent[j] < 1 || l->step[j] < 0 || __builtin_mul_overflow(l->extent[j] - 1, l->step[j], &way) ||
            __builtin_add_overflow(all, way, &all))
            return -1;
    return all;
}

static bool holds_product(const bz_replay_value *v, int64_t a, int64_t b, int64_t c)
{
    int64_t all;
    return a > 0 && b > 0 && c > 0 && !__builtin_mul_overflow(a, b, &all) && !__builtin_mul_overflow(all, c, &all) &&
           all <= bz_extent_count(v->dim);
}

static bool lanes_fit(const bz_replay_value *v, const bz_replay_loop *l, const int *in, int n_in, int out)
{
    const int64_t *d = l->dim;
    return holds_product(&v[in[0]], d[0], d[1], d[2]) && holds_product(&v[out], d[0], d[3], d[2]) &&
           (n_in < 2 || (v[in[1]].dtype == BZ_F64 && holds_product(&v[in[1]], d[3], l->length, 2)));
}

/* Whether a loop stays in its operands and its result: a file may declare any shape. */
static bool loop_fits(const bz_replay_value *v, const bz_replay_loop *l, const int *in, int n_in, int out)
{
    int64_t far = farthest(l);
    int indices = l->kind == BZ_LOOP_GATHER ? 1 : l->kind == BZ_LOOP_SCATTER ? 0 : -1;
    if (l->kind == BZ_LOOP_LANES)
        return lanes_fit(v, l, in, n_in, out);
    bool inside = far >= 0 && (l->kind != BZ_LOOP_COPY || is_inside(&v[out], l, l->stride[1], l->to, 0)) &&
                  (l->kind != BZ_LOOP_SCATTER || is_inside(&v[out], l, l->stride[2], 0, far));
    int64_t all = 1; /* results lie one behind the other, but for these */
    bool rows = l->kind != BZ_LOOP_COPY && l->kind != BZ_LOOP_FILL && l->kind != BZ_LOOP_SCATTER;
    for (int i = 0; i < l->rank && rows && inside; i++)
        inside = !__builtin_mul_overflow(all, l->dim[i], &all) && all <= bz_extent_count(v[out].dim);
    for (int k = 0; k < n_in; k++)
        inside = inside && is_inside(&v[in[k]], l, l->stride[k], k ? (l->kind == BZ_LOOP_SCATTER ? l->to : 0) : l->from,
                                     k == indices                ? l->length - 1
                                     : l->kind == BZ_LOOP_GATHER ? far
                                                                 : 0);
    return inside;
}

int bind_loop(binder *b, const bz_replay_loop *loop, const int *in, int n_in, int out)
{
    bool known = !b->err.code && out >= 0;
    for (int i = 0; i < n_in; i++)
        known = known && in[i] >= 0;
    if (!known)
        return bind_no(b, "an operand was left out");
    if (!loop_fits(b->plan->value, loop, in, n_in, out))
        return bind_no(b, "its shapes do not fit each other");
    bind_step(b, BZ_STEP_LOOP, in, n_in, out)->loop = bz_arena_dup(b->arena, loop, sizeof *loop);
    return 0;
}

int bind_emit(binder *b, const int *operand, int n, int k, const bz_replay_loop *loop)
{
    int in[BZ_PROBLEM_OPERANDS];
    for (int i = 0; i < n; i++)
        in[i] = bind_in(b, operand[i]);
    return bind_loop(b, loop, in, n, bind_result(b, k));
}

static const int FIRST[] = {0, 1, 2, 3};

static int loop_view(binder *b, const bz_layer *l)
{
    if (l->n_in < 1 || bz_type_elements(&l->in[0]) != bz_type_elements(&l->out[0]))
        return bind_no(b, "it is no view of its operand");
    int in = bind_in(b, 0), out = bind_result(b, 0);
    if (bind_at(b, in)->dtype != bind_at(b, out)->dtype)
        return bind_no(b, "it is no view of its operand");
    bind_step(b, BZ_STEP_VIEW, &in, 1, out);
    const bz_replay_loop all = {
        .kind = BZ_LOOP_FILL, .value = 1, .rank = 1, .dim = {1}}; /* a dropout that drops nothing */
    bool mask =
        !strcmp(l->kind, "dropout") && l->n_out > 1 && l->node->out[1] >= 0 && bind_is_wanted(b, l->node->out[1]);
    return mask ? bind_emit(b, NULL, 0, 1, &all) : bind_done(b);
}

int bind_cast(binder *b, const bz_layer *l)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
    if (bind_over(&l->out[0], &loop))
        return bind_no(b, "it has too many dimensions");
    bind_row_major(&l->out[0], loop.stride[0]);
    bind_row_major(&l->out[0], loop.stride[1]);
    return bind_emit(b, FIRST, 1, 0, &loop);
}

static int loop_transpose(binder *b, const bz_layer *l)
{
    const bz_param *perm = bz_layer_param(l, "perm");
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
    int64_t stride[BZ_MAX_RANK];
    if (bind_over(&l->out[0], &loop) || !perm || perm->n != l->in[0].rank || perm->n != l->out[0].rank)
        return bind_no(b, "it has too many dimensions");
    bind_row_major(&l->in[0], stride);
    bind_row_major(&l->out[0], loop.stride[1]);
    for (int i = 0; i < perm->n; i++) {
        if (perm->v[i] < 0 || perm->v[i] >= perm->n)
            return bind_no(b, "its order is not known");
        loop.stride[0][i] = stride[perm->v[i]];
    }
    return bind_emit(b, FIRST, 1, 0, &loop);
}

static int loop_slice(binder *b, const bz_layer *l)
{
    const bz_param *start = bz_layer_param(l, "start"), *step = bz_layer_param(l, "step");
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
    int rank = l->out[0].rank;
    if (bind_over(&l->out[0], &loop) || !start || start->n != rank || !step || step->n != rank)
        return bind_no(b, "what it takes depends on data");
    bind_row_major(&l->in[0], loop.stride[0]);
    bind_row_major(&l->out[0], loop.stride[1]);
    for (int i = 0; i < rank; i++) {
        if (bz_is_symbol(start->v[i]) || bz_is_symbol(step->v[i]))
            return bind_no(b, "what it takes depends on data");
        loop.from += start->v[i] * loop.stride[0][i];
        if (__builtin_mul_overflow(loop.stride[0][i], loop.dim[i] > 1 ? step->v[i] : 1, &loop.stride[0][i]))
            return bind_no(b, "its steps are too long");
    }
    return bind_emit(b, FIRST, 1, 0, &loop);
}

static int loop_expand(binder *b, const bz_layer *l)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
    if (bind_over(&l->out[0], &loop) || broadcast(&l->in[0], &l->out[0], loop.stride[0]))
        return bind_no(b, "it has too many dimensions");
    bind_row_major(&l->out[0], loop.stride[1]);
    return bind_emit(b, FIRST, 1, 0, &loop);
}

/* Parts one behind the other along an axis: of the result, or of the operand. */
static int loop_parts(binder *b, const bz_layer *l)
{
    bool splits = !strcmp(l->kind, "split");
    const bz_type *whole = splits ? &l->in[0] : &l->out[0];
    int64_t axis = bz_layer_int(l, "axis", 0), at = 0;
    int n = splits ? l->n_out : l->n_in;
    for (int k = 0; k < n; k++) {
        const bz_type *part = splits ? &l->out[k] : &l->in[k];
        bz_replay_loop loop = {.kind = BZ_LOOP_COPY};
        if (part->kind == BZ_TYPE_NONE || bz_type_elements(part) == 0)
            continue;
        if (bind_over(part, &loop) || whole->rank != part->rank || axis < 0 || axis >= part->rank)
            return bind_no(b, "it has too many dimensions");
        if (part->dims[axis] > whole->dims[axis] - at)
            return bind_no(b, "its parts do not fit");
        bind_row_major(whole, loop.stride[!splits]);
        bind_row_major(part, loop.stride[splits]);
        *(splits ? &loop.from : &loop.to) = at * loop.stride[!splits][axis];
        at += part->dims[axis];
        if ((!splits || bind_is_wanted(b, l->node->out[k])) &&
            bind_emit(b, splits ? FIRST : &k, 1, splits ? k : 0, &loop))
            return -1;
    }
    return 0;
}

/* The result filled, then the operand (or what negative padding leaves of it) copied into it. */
static int loop_pad(binder *b, const bz_layer *l)
{
    const bz_param *pad = bz_layer_param(l, "pad"), *mode = bz_layer_param(l, "mode");
    const bz_attr *value = bz_node_attr(l->node, "value");
    bz_replay_loop fill = {.kind = BZ_LOOP_FILL, .rank = 1, .dim = {1}}, copy = {.kind = BZ_LOOP_COPY};
    const int third[] = {2};
    int rank = l->in[0].rank;
    bool given = l->n_in > 2 && l->in[2].kind == BZ_TYPE_TENSOR && l->node->in[2] >= 0;
    if (bind_over(&l->in[0], &copy) || !pad || pad->n != 2 * rank || l->out[0].rank != rank)
        return bind_no(b, "it has too many dimensions");
    for (int i = 0; i < rank; i++)
        if (l->in[0].dims[i] + pad->v[i] + pad->v[rank + i] != l->out[0].dims[i])
            return bind_no(b, "where it pads depends on data");
    if (mode && strcmp(mode->text ? mode->text : "", "constant") != 0)
        return bind_pad_by_rule(b, l, pad->v);
    fill.value = value && value->kind == BZ_ATTR_FLOAT ? (double)value->f : 0;
    if (bind_emit(b, third, given, 0, &fill))
        return -1;
    bind_row_major(&l->in[0], copy.stride[0]);
    bind_row_major(&l->out[0], copy.stride[1]);
    for (int i = 0; i < rank; i++) {
        int64_t begin = pad->v[i], end = pad->v[rank + i], x = l->in[0].dims[i], y = l->out[0].dims[i];
        if (begin < -x || begin > y || end < -x || end > y)
            return bind_no(b, "its padding is larger than its result");
        copy.from += begin < 0 ? -begin * copy.stride[0][i] : 0;
        copy.to += begin > 0 ? begin * copy.stride[1][i] : 0;
        copy.dim[i] += (begin < 0 ? begin : 0) + (end < 0 ? end : 0);
        if (copy.dim[i] < 1)
            return 0;
    }
    return bind_emit(b, FIRST, 1, 0, &copy);
}

static int loop_where(binder *b, const bz_layer *l)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_SELECT};
    if (bind_over(&l->out[0], &loop) || l->n_in != 3)
        return bind_no(b, "it has too many dimensions");
    for (int k = 0; k < 3; k++)
        if (broadcast(&l->in[k], &l->out[0], loop.stride[k]))
            return bind_no(b, "its operands do not fit");
    return bind_emit(b, FIRST, 3, 0, &loop);
}

static int loop_binary(binder *b, const bz_layer *l)
{
    static const struct {
        const char *kind, *function;
    } NAMES[] = {{"equal", "eq"},     {"greater", "gt"},        {"greaterequal", "ge"}, {"less", "lt"},
                 {"lessequal", "le"}, {"bitwiseand", "bitand"}, {"bitwiseor", "bitor"}, {"bitwisexor", "bitxor"}};
    const bz_attr *fmod = bz_node_attr(l->node, "fmod"), *to = bz_node_attr(l->node, "direction");
    bz_replay_loop loop = {.kind = BZ_LOOP_BINARY, .function = l->kind};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!strcmp(l->kind, NAMES[i].kind))
            loop.function = NAMES[i].function;
    if (!strcmp(l->kind, "mod") && fmod && fmod->kind == BZ_ATTR_INT && fmod->i)
        loop.function = "fmod";
    if (!strcmp(l->kind, "bitshift"))
        loop.function = to && to->kind == BZ_ATTR_STRING && !strcmp(to->s.data, "LEFT") ? "left" : "right";
    if (l->n_in != 2 || bz_layer_param(l, "axis") || bind_over(&l->out[0], &loop) ||
        broadcast(&l->in[0], &l->out[0], loop.stride[0]) || broadcast(&l->in[1], &l->out[0], loop.stride[1]))
        return bind_no(b, "its operands do not fit");
    return bind_emit(b, FIRST, 2, 0, &loop);
}

/* Functions with parameters are those of the layer's problem. */
int bind_unary(binder *b, const bz_layer *l)
{
    bz_replay_loop loop = {.kind = BZ_LOOP_UNARY, .function = l->kind};
    bz_lowering low;
    if (bind_over(&l->out[0], &loop) || bz_type_elements(&l->in[0]) != bz_type_elements(&l->out[0]))
        return bind_no(b, "it has too many dimensions");
    bind_row_major(&l->out[0], loop.stride[0]);
    bz_lower(l, b->dtype, b->arena, &low);
    if (low.n && low.alternative[0].n == 1 && low.alternative[0].problem->kind == BZ_PROBLEM_ACTIVATION) {
        const bz_problem *p = low.alternative[0].problem;
        loop.function = bz_fn_name(p->activation.fn);
        loop.alpha = p->activation.alpha, loop.beta = p->activation.beta;
    }
    return bind_emit(b, FIRST, 1, 0, &loop);
}

/* Scales and zero points: one for all, or one for each index of an axis. */
static int spread(const bz_layer *l, int operand, int64_t *stride)
{
    const bz_type *t = &l->in[operand];
    int64_t axis = bz_layer_int(l, "axis", -1);
    memset(stride, 0, BZ_PROBLEM_RANK * sizeof *stride);
    if (t->kind != BZ_TYPE_TENSOR || bz_type_elements(t) == 1)
        return t->kind == BZ_TYPE_TENSOR ? 0 : -1;
    if (t->rank != 1 || axis < 0 || axis >= l->out[0].rank || t->dims[0] != l->out[0].dims[axis])
        return -1;
    stride[axis] = 1;
    return 0;
}

/* (x - zero point) * scale, as weights of quantized models are made floating-point numbers before anything runs. */
static int loop_dequantize(binder *b, const bz_layer *l)
{
    bz_replay_loop less = {.kind = BZ_LOOP_BINARY, .function = "sub"}, times;
    bool zero = l->n_in > 2 && l->node->in[2] >= 0;
    if (bind_over(&l->out[0], &less) || l->n_in < 2 || l->in[1].dtype != BZ_F32 || l->out[0].dtype != BZ_F32)
        return bind_no(b, "only f32 is made of quantized numbers");
    bind_row_major(&l->out[0], less.stride[0]);
    times = less;
    times.function = "mul";
    if (spread(l, 1, times.stride[1]) || (zero && spread(l, 2, less.stride[1])))
        return bind_no(b, "its scales are those of blocks");
    int in[2] = {bind_widened(b, 0)};
    if (zero) {
        int from[2] = {in[0], bind_widened(b, 2)};
        in[0] = bind_new(b, BZ_F32, l->out[0].rank, l->out[0].dims);
        bind_loop(b, &less, from, 2, in[0]);
    }
    in[1] = bind_in(b, 1);
    return bind_loop(b, &times, in, 2, bind_result(b, 0));
}

static const struct {
    const char *kinds;
    bind_function *bind;
} LOOPS[] = {
    {" reshape flatten squeeze unsqueeze identity dropout ", loop_view},
    {" cast ", bind_cast},
    {" transpose ", loop_transpose},
    {" slice ", loop_slice},
    {" expand ", loop_expand},
    {" concat split ", loop_parts},
    {" pad ", loop_pad},
    {" gather ", bind_gather},
    {" where ", loop_where},
    {" gathernd ", bind_gathernd},
    {" gatherelements ", bind_gatherelements},
    {" scatternd ", bind_scatternd},
    {" scatterelements scatter ", bind_scatterelements},
    {" maxunpool ", bind_unpool},
    {" onehot ", bind_onehot},
    {" argmax argmin ", bind_argmax},
    {" cumsum cumprod hardmax ", bind_lanes},
    {" topk ", bind_topk},
    {" reversesequence ", bind_reversal},
    {" tile ", bind_tile},
    {" dequantize ", loop_dequantize},
    {" resize ", bind_resize},
    {" clip ", bind_clip},
    {" isinf shrink thresholdedrelu ", bind_parametric},
    {" bitwisenot ", bind_complement},
    {" reducesum reducemean reduceprod reducemax reducemin reducel1 reducel2 reducesumsquare reducelogsum "
     "reducelogsumexp ",
     bind_reduction},
    {" nllloss crossentropy ", bind_likelihood},
    {" eye ", bind_eye},
    {" nonzero unique nms compress ", bind_sized_by_data},
    {" slice_grad ", bind_slice_grad},
    {" resize_grad ", bind_resize_grad},
    {" scale ", bind_scale},
    {" isallfinite ", bind_finite},
    {" trilu ", bind_trilu},
    {" add sub mul div max min pow equal greater greaterequal less lessequal and or xor mod bitwiseand bitwiseor "
     "bitwisexor "
     "bitshift prelu ",
     loop_binary},
    {" tan asin acos atan sinh cosh asinh acosh atanh isnan erf not sign neg reciprocal sin cos floor ceil round relu "
     "leakyrelu elu sigmoid tanh swish hardswish "
     "hardsigmoid mish softplus softsign exp log sqrt abs gelu ",
     bind_unary},
};

/* What a layer makes of anything but tensors of known sizes is only what the file declares. */
static bool is_known(const bz_type *t, int n)
{
    for (int i = 0; i < n; i++)
        if (t[i].kind != BZ_TYPE_NONE && bz_type_elements(&t[i]) < 0)
            return false;
    return true;
}

static int find_row(const bz_layer *l)
{
    size_t n = strlen(l->kind);
    for (size_t i = 0; i < sizeof LOOPS / sizeof *LOOPS; i++)
        for (const char *at = LOOPS[i].kinds; (at = strstr(at, l->kind)); at += n)
            if (at[-1] == ' ' && at[n] == ' ')
                return (int)i;
    return -1;
}

bool bind_has_loop(const bz_layer *l)
{
    return find_row(l) >= 0;
}

int bind_loops(binder *b, const bz_layer *l)
{
    int row = find_row(l);
    if (!is_known(l->in, l->n_in)) {
        b->unmade = true; /* what makes them stands in the way, and is named */
        return bind_no(b, "an operand is no tensor of a known size");
    }
    if (!is_known(l->out, l->n_out) && l->n_out && l->out[0].kind == BZ_TYPE_TENSOR)
        return bind_sized_by_data(b, l);
    if (!is_known(l->out, l->n_out))
        return bind_no(b, "its result is no tensor");
    if (l->class == BZ_VIEW && l->n_in && l->n_out)
        return loop_view(b, l);
    if (row < 0)
        return bind_no(b, "no call and no loop computes it");
    return l->n_out && l->n_in ? LOOPS[row].bind(b, l) : bind_no(b, "it has no operand");
}

static int add_numbers(binder *b, const bz_layer *l, const double *number, int64_t n)
{
    if (n != bz_type_elements(&l->out[0]) || bz_dtype_bits(l->out[0].dtype) > 64)
        return bind_no(b, "its value is not what the file declares");
    int out = bind_result(b, 0);
    if (out < 0)
        return -1;
    b->plan->source[out].number = bz_arena_dup(b->arena, number, (size_t)n * sizeof *number);
    b->plan->value[out].source = BZ_VALUE_STORED;
    return 0;
}

static int constant_shape(binder *b, const bz_layer *l)
{
    double number[BZ_MAX_RANK];
    const bz_attr *start = bz_node_attr(l->node, "start");
    int64_t rank = l->in[0].rank, first = start && start->kind == BZ_ATTR_INT ? start->i : 0,
            n = bz_type_elements(&l->out[0]);
    first = first >= 0 ? first : first < -rank ? 0 : first + rank;
    if (!is_known(l->in, 1) || n < 0 || first > rank - n)
        return bind_no(b, "its shape is not known");
    if (!strcmp(l->kind, "size")) {
        number[0] = (double)bz_type_elements(&l->in[0]);
        return add_numbers(b, l, number, 1);
    }
    for (int64_t i = 0; i < n; i++)
        number[i] = (double)l->in[0].dims[first + i];
    return add_numbers(b, l, number, n);
}

static int constant_range(binder *b, const bz_layer *l)
{
    double start, step;
    int64_t n = bz_type_elements(&l->out[0]);
    if (l->n_in != 3 || n < 0 || n > 1 << 20 || !bz_lower_scalar(b->layers, l->node->in[0], l->index, &start) ||
        !bz_lower_scalar(b->layers, l->node->in[2], l->index, &step))
        return bind_no(b, "its ends are not known");
    double *number = BZ_NEW(b->arena, double, n + 1);
    for (int64_t i = 0; i < n; i++)
        number[i] = start + (double)i * step;
    return add_numbers(b, l, number, n);
}

static int add_tensor(binder *b, const bz_layer *l, const bz_tensor *t)
{
    if (t->n != bz_type_elements(&l->out[0]) || t->dtype != l->out[0].dtype)
        return bind_no(b, "its value is not what the file declares");
    int out = bind_result(b, 0);
    if (out < 0)
        return -1;
    b->plan->source[out].tensor = t;
    b->plan->value[out].source = BZ_VALUE_STORED;
    return 0;
}

static int constant_node(binder *b, const bz_layer *l)
{
    const bz_attr *a = l->node->n_attrs ? &l->node->attrs[0] : NULL;
    if (!a)
        return bind_no(b, "its value is not known");
    if (a->kind == BZ_ATTR_TENSOR)
        return add_tensor(b, l, a->tensor);
    int n = a->kind == BZ_ATTR_FLOATS || a->kind == BZ_ATTR_INTS ? a->n : 1;
    double *number = BZ_NEW(b->arena, double, n);
    for (int i = 0; i < n; i++)
        number[i] = a->kind == BZ_ATTR_FLOAT    ? (double)a->f
                    : a->kind == BZ_ATTR_INT    ? (double)a->i
                    : a->kind == BZ_ATTR_FLOATS ? (double)a->floats[i]
                    : a->kind == BZ_ATTR_INTS   ? (double)a->ints[i]
                                                : (double)NAN;
    return n && isnan(number[0]) ? bind_no(b, "its value is no number") : add_numbers(b, l, number, n);
}

/* One value everywhere: 0 unless it says otherwise. */
static int constant_fill(binder *b, const bz_layer *l)
{
    const bz_attr *a = bz_node_attr(l->node, "value");
    double v = 0;
    int64_t whole;
    bz_replay_loop loop = {.kind = BZ_LOOP_FILL, .rank = 1, .dim = {1}};
    if (a && a->kind == BZ_ATTR_TENSOR && a->tensor->n == 1) {
        bool real = bz_dtype_is_float(a->tensor->dtype);
        if (real ? bz_tensor_reals(b->layers->model, a->tensor, &v, &b->err)
                 : bz_tensor_ints(b->layers->model, a->tensor, &whole, &b->err))
            return -1;
        loop.value = real ? v : (double)whole;
    }
    return bind_emit(b, FIRST, 0, 0, &loop);
}

int bind_constant(binder *b, const bz_layer *l)
{
    if (!strcmp(l->kind, "constant"))
        return constant_node(b, l);
    if (!strcmp(l->kind, "shape") || !strcmp(l->kind, "size"))
        return constant_shape(b, l);
    if (!strcmp(l->kind, "range"))
        return constant_range(b, l);
    if (!strcmp(l->kind, "fill"))
        return constant_fill(b, l);
    return bind_loops(b, l);
}
