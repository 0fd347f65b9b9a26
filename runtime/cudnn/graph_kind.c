/* Which graph a problem is. */
#include "runtime/cudnn/graph.h"

#include "base/arena.h"

#include <string.h>

bool graph_is_f8(bz_dtype t)
{
    return t == BZ_F8E4M3 || t == BZ_F8E5M2;
}

static bool is_byte(bz_dtype t)
{
    return t == BZ_I8 || t == BZ_U8;
}

/* Floats whose products have a wider result. */
static bool is_narrow(bz_dtype t)
{
    return graph_is_f8(t) || t == BZ_F4E2M1;
}

/* Products of 16-bit floats with weights that are bytes. */
static bool has_byte_weights(const bz_problem *p)
{
    return bz_problem_is_matrix(p) && p->dtype_w == BZ_I8 && (p->dtype == BZ_F16 || p->dtype == BZ_BF16) &&
           p->dtype_y == p->dtype;
}

/* One type for all; or products of 16-bit floats whose result is f32, or of 8-bit floats, whose result is wider; or attention of these;
 * or convolutions of bytes, whose weights are signed; or products with such weights. */
static bool has_types(const bz_problem *p)
{
    bz_dtype x = p->dtype, w = p->dtype_w, y = p->dtype_y;
    if (p->kind == BZ_PROBLEM_CONV && is_byte(x))
        return w == BZ_I8 && (is_byte(y) || y == BZ_I32 || y == BZ_F32);
    bool result = y == BZ_F32 || y == BZ_F16 || y == BZ_BF16 || (p->kind == BZ_PROBLEM_ATTENTION && graph_is_f8(y));
    bool product = bz_problem_has(p, BZ_TRAIT_PRODUCT), eight = is_narrow(x) && is_narrow(w);
    bool wider = product && x == w && y == BZ_F32 && (x == BZ_F16 || x == BZ_BF16);
    return result && ((x == y && w == y) || wider || has_byte_weights(p) ||
                      (eight && (product || p->kind == BZ_PROBLEM_ATTENTION)));
}

int graph_check_types(const call *c, bz_error *why)
{
    return has_types(c->problem) ? 0
                                 : bz_fail(why, BZ_INCOMPLETE,
                                           "graphs are built here for one type of f32, f16 and bf16, for products of "
                                           "f8 and f4, for attention of f8, "
                                           "for convolutions of i8, and for products of 16 bits with weights of i8");
}

int cudnn_describe_graph(call *c, bz_error *why)
{
    if (c->x32)
        return bz_fail(why, BZ_INCOMPLETE, "graphs are built here for the layouts plain and nhwc");
    if ((c->kind->check && c->kind->check(c, why)) || graph_check_types(c, why))
        return -1;
    c->graph = bz_zeroed(1, sizeof *c->graph);
    c->kind->build(c);
    return c->graph->status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(why, "building the graph", c->graph->status);
}

typedef struct shape {
    int rank;
    int64_t dim[CUDNN_MAX_RANK], stride[CUDNN_MAX_RANK];
} shape;

static shape rows_of(const call *c, const bz_operand *o)
{
    shape s = {.rank = o->rank < 4 ? 4 : o->rank};
    int64_t step = 1;
    bool as_it_is = c->nhwc || o->rank == 1;
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = i >= o->rank ? 1 : as_it_is || !i ? o->dim[i] : o->dim[i == 1 ? o->rank - 1 : i - 1];
    for (int k = 0; k < s.rank; k++) { /* innermost first: channels, then space from the last on, then the batch */
        int i = !k ? 1 : k == s.rank - 1 ? 0 : s.rank - k;
        s.stride[i] = step;
        step *= s.dim[i];
    }
    return s;
}

static shape one_batch_of(const bz_operand *o)
{
    int64_t rows = o->dim[o->rank - 2], columns = o->dim[o->rank - 1], each = rows * columns;
    return (shape){.rank = 3, .dim = {o->count / each, rows, columns}, .stride = {each, columns, 1}};
}

static shape shape_of(const call *c, int operand, int least, graph_place at)
{
    const bz_operand *o = &c->operand[operand];
    tensor t = cudnn_tensor(c, operand);
    if (at == ROWS)
        return rows_of(c, o);
    if (at == ONE_BATCH)
        return one_batch_of(o);
    shape s = {.rank = o->rank < least ? least : o->rank};
    int first = at == ONES_IN_FRONT ? s.rank - o->rank : 0;
    for (int i = 0; i < s.rank; i++) {
        bool own = i >= first && i < first + o->rank;
        s.dim[i] = own ? o->dim[i - first] : 1;
        s.stride[i] = own                       ? t.layout.stride[i - first]
                      : at == ONES_IN_FRONT     ? o->count
                      : c->nhwc && o->rank == 3 ? o->dim[1]
                                                : 1;
    }
    return s;
}

int graph_operand_add(call *c, int operand, int least, graph_place at)
{
    shape s = shape_of(c, operand, least, at);
    tensor t = cudnn_tensor(c, operand);
    return graph_tensor_add(c, operand, &t.layout, s.rank, s.dim, s.stride);
}

/* A tensor between two operations, of the operand's type, which lies as that does. */
static int add_like(call *c, int operand, int least, graph_place at)
{
    shape s = shape_of(c, operand, least, at);
    return graph_between_add(c, graph_type(c, c->operand[operand].dtype), s.rank, s.dim, s.stride);
}

/* A tensor between two operations, of this shape. */
static int add_between(call *c, const shape *s)
{
    return graph_between_add(c, CUDNN_DATA_FLOAT, s->rank, s->dim, s->stride);
}

/* Where the result lies, for what has its shape. */
static shape shape_of_result(const call *c, int least, graph_place at)
{
    return shape_of(c, c->n_operands - 1, least, at);
}

/* The bias lies along one dimension of the result, and is of its type; where that are bytes, of the type between. */
static int add_bias(call *c, const shape *s, int channel)
{
    int operand = cudnn_find(c, BZ_ROLE_BIAS);
    bz_cuda_layout layout = bz_cuda_plain(&c->operand[operand]);
    int64_t dim[CUDNN_MAX_RANK], stride[CUDNN_MAX_RANK];
    layout.dtype = bz_dtype_is_int(c->problem->dtype) ? BZ_F32 : c->problem->dtype_y;
    for (int i = 0; i < s->rank; i++) {
        dim[i] = i == channel ? s->dim[i] : 1;
        stride[i] = i < channel ? s->dim[channel] : 1;
    }
    return graph_tensor_add(c, operand, &layout, s->rank, dim, stride);
}

/* Number of the operand that the i-th post-operation takes. */
static int other_of(const call *c, int i)
{
    for (int k = 0; k < c->n_operands; k++)
        if (c->operand[k].role == BZ_ROLE_OTHER && c->operand[k].post == i)
            return k;
    return -1;
}

/* Functions that are several operations: those that the library lacks; and clip, of which it has one, but hardly an
 * engine that runs it. Each step takes what the one before made, and a number, a parameter or x besides. */
typedef struct part {
    bz_fn fn;
    enum { ALONE, NUMBER, ALPHA, BETA, X } with;
    float number;
} part;

static const struct {
    bz_fn fn;
    part part[6];
} CHAINS[] = {
    {BZ_FN_CLIP, {{BZ_FN_MAX, ALPHA, 0}, {BZ_FN_MIN, BETA, 0}}},
    {BZ_FN_LINEAR, {{BZ_FN_MUL, ALPHA, 0}, {BZ_FN_ADD, BETA, 0}}},
    {BZ_FN_SQUARE, {{BZ_FN_MUL, X, 0}}},
    {BZ_FN_POW, {{BZ_FN_POW, BETA, 0}, {BZ_FN_MUL, ALPHA, 0}}},
    {BZ_FN_HARDSIGMOID, {{BZ_FN_MUL, ALPHA, 0}, {BZ_FN_ADD, BETA, 0}, {BZ_FN_MAX, NUMBER, 0}, {BZ_FN_MIN, NUMBER, 1}}},
    {BZ_FN_HARDSWISH,
     {{BZ_FN_MUL, NUMBER, 1.0f / 6},
      {BZ_FN_ADD, NUMBER, 0.5f},
      {BZ_FN_MAX, NUMBER, 0},
      {BZ_FN_MIN, NUMBER, 1},
      {BZ_FN_MUL, X, 0}}},
    {BZ_FN_MISH, {{BZ_FN_SOFTPLUS, ALONE, 0}, {BZ_FN_TANH, ALONE, 0}, {BZ_FN_MUL, X, 0}}},
};

/* Multiplying by 1 and adding 0 are left out, but for the last step, which writes the result. */
static bool is_idle(const part *p, const bz_post *post, bool last)
{
    return !last && ((p->fn == BZ_FN_MUL && p->with == ALPHA && post->alpha == 1) ||
                     (p->fn == BZ_FN_ADD && p->with == BETA && post->beta == 0));
}

static void add_chain(call *c, const shape *s, const part *p, const bz_post *post, int x, int y)
{
    for (int from = x; p->fn; p++) {
        bool last = !p[1].fn || (!p[2].fn && is_idle(&p[1], post, false));
        int other = x, to = y;
        if (is_idle(p, post, last))
            continue;
        if (!last)
            to = add_between(c, s);
        if (p->with == ALONE)
            other = -1;
        else if (p->with != X)
            other = graph_number_add(c,
                                     p->with == ALPHA  ? post->alpha
                                     : p->with == BETA ? post->beta
                                                       : p->number,
                                     s->rank);
        from = graph_function_add(c, p->fn, 0, 0, from, other, to);
        if (last)
            break;
    }
}

/* A function into y: as one operation or as several; `other` is its second operand, -1 where it has none. */
static void add_function(call *c, const shape *s, const bz_post *post, int x, int other, int y)
{
    for (size_t i = 0; i < sizeof CHAINS / sizeof *CHAINS; i++)
        if (CHAINS[i].fn == post->fn) {
            add_chain(c, s, CHAINS[i].part, post, x, y);
            return;
        }
    graph_function_add(c, post->fn, post->alpha, post->beta, x, other, y);
}

/* What follows the first operation: post-operations and, of bytes, the scale of the sum, to which the bias belongs. */
typedef struct step {
    bz_post post;
    int number; /* of the post-operation; -1: the scale, which is `alpha` */
    bool keeps; /* what it takes is a result, too */
} step;

static int list_steps(const bz_problem *p, step *out)
{
    float scale = (float)bz_problem_scale(p);
    int n = 0;
    for (int i = 0;; i++) {
        if (i == (p->post[0].fn == BZ_FN_BIAS) && scale != 1)
            out[n++] = (step){{BZ_FN_MUL, scale, 0}, -1, false};
        if (!p->post[i].fn)
            return n;
        if (p->post[i].fn != BZ_FN_KEEP)
            out[n++] = (step){p->post[i], i, i && p->post[i - 1].fn == BZ_FN_KEEP};
    }
}

/* The tensor that a step takes. */
static int add_in_front(call *c, const shape *s, graph_place at, const step *taker)
{
    return taker->keeps ? graph_operand_add(c, cudnn_find(c, BZ_ROLE_BEFORE), s->rank, at) : add_between(c, s);
}

/* Steps behind the tensor `from`; the last one writes the result. */
static void add_steps(call *c, const shape *s, int channel, graph_place at, int from)
{
    step list[BZ_PROBLEM_POST + 2];
    int n = list_steps(c->problem, list);
    for (int i = 0; i < n; i++) {
        const bz_post *post = &list[i].post;
        int to = i + 1 < n ? add_in_front(c, s, at, &list[i + 1]) : c->graph->y, b = -1;
        if (list[i].number < 0)
            b = graph_number_add(c, post->alpha, s->rank);
        else if (post->fn == BZ_FN_BIAS)
            b = add_bias(c, s, channel);
        else if (bz_fn_is_binary(post->fn))
            b = graph_operand_add(c, other_of(c, list[i].number), s->rank, at);
        add_function(c, s, post, from, b, to);
        from = to;
    }
}

/* The result, and what the first operation writes, which is returned: the result itself where nothing follows. */
static int add_results(call *c, const shape *s, graph_place at)
{
    step list[BZ_PROBLEM_POST + 2];
    c->graph->y = graph_operand_add(c, c->n_operands - 1, s->rank, at);
    return list_steps(c->problem, list) ? add_in_front(c, s, at, list) : c->graph->y;
}

/* A value for each of the tensor's channels. */
static int add_channels(call *c, bz_role role, int rank, int64_t channels)
{
    int operand = cudnn_find(c, role);
    int64_t dim[CUDNN_MAX_RANK], stride[CUDNN_MAX_RANK];
    bz_cuda_layout layout = bz_cuda_plain(&c->operand[operand]);
    for (int i = 0; i < rank; i++) {
        dim[i] = i == 1 ? channels : 1;
        stride[i] = i == 1 ? 1 : channels;
    }
    return graph_tensor_add(c, operand, &layout, rank, dim, stride);
}

/* relu(x · scale + shift), as x lies and of its type. */
static int add_before(call *c, int x)
{
    static const struct {
        bz_fn fn;
        bz_role with;
    } STEPS[] = {{BZ_FN_MUL, BZ_ROLE_SCALE}, {BZ_FN_ADD, BZ_ROLE_SHIFT}, {BZ_FN_RELU, BZ_ROLE_X}};
    const bz_operand *o = &c->operand[0];
    int rank = o->rank < 4 ? 4 : o->rank;
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        int other = STEPS[i].with != BZ_ROLE_X ? add_channels(c, STEPS[i].with, rank, o->dim[1]) : -1;
        x = graph_function_add(c, STEPS[i].fn, 0, 0, x, other, add_like(c, 0, 4, ONES_BEHIND));
    }
    return x;
}

/* Sums of the result, and of its squares, by channel. */
static void add_sums(call *c, int rank, int64_t channels)
{
    int sums = add_channels(c, BZ_ROLE_M, rank, channels), squares = add_channels(c, BZ_ROLE_N, rank, channels);
    graph_sums_add(c, c->graph->y, sums, squares);
}

void cudnn_build_conv(call *c)
{
    shape s = shape_of_result(c, 4, ONES_BEHIND);
    bool norm = c->problem->kind == BZ_PROBLEM_CONV_NORM;
    int x = graph_operand_add(c, 0, 4, ONES_BEHIND), w = graph_operand_add(c, 1, 4, ONES_BEHIND);
    if (norm && c->problem->conv.before)
        x = add_before(c, x);
    int first = add_results(c, &s, ONES_BEHIND);
    graph_conv_add(c, x, w, first);
    if (norm && c->problem->conv.behind)
        add_sums(c, s.rank, s.dim[1]);
    else
        add_steps(c, &s, 1, ONES_BEHIND, first);
}

/* Where a product's operand lies, its last two dimensions exchanged where it is transposed. */
static shape factor_of(const call *c, int operand, bool turned, graph_place at)
{
    shape s = shape_of(c, operand, 3, at), t = s;
    int last = s.rank - 1;
    if (!turned)
        return s;
    s.dim[last] = t.dim[last - 1];
    s.dim[last - 1] = t.dim[last];
    s.stride[last] = t.stride[last - 1];
    s.stride[last - 1] = t.stride[last];
    return s;
}

int graph_factor_add(call *c, int operand, bool turned, graph_place at)
{
    bz_cuda_layout layout = bz_cuda_plain(&c->operand[operand]);
    shape s = factor_of(c, operand, turned, at);
    return graph_tensor_add(c, operand, &layout, s.rank, s.dim, s.stride);
}

/* The factor, [batch, rows, columns], times the scales of its blocks, 32 numbers along the product's depth each, of 4 bits 16. Scales come in tiles of
 * 128 by 4: there is room for whole ones. */
static int scale_blocks(call *c, const shape *s, int depth, int factor)
{
    enum { BLOCKS = 4, WIDTH = 128 };
    int other = 3 - depth, block = bz_cuda_blocks_of(c->problem->dtype).length;
    shape t = *s;
    t.dim[depth] = (s->dim[depth] + block * BLOCKS - 1) / (block * BLOCKS) * BLOCKS;
    t.dim[other] = (s->dim[other] + WIDTH - 1) / WIDTH * WIDTH;
    t.stride[depth] = 1;
    t.stride[other] = t.dim[depth];
    t.stride[0] = t.dim[1] * t.dim[2];
    int scales = graph_scales_add(c, c->problem->dtype, 3, t.dim, t.stride);
    return graph_dequantize_add(c, factor, scales, block, add_between(c, s));
}

/* The factor, of bytes, as numbers of the other one's type: times a scale, which is 1. */
static int widen(call *c, const shape *s, int factor)
{
    cudnnDataType_t type = graph_type(c, c->problem->dtype);
    int scale = graph_number_add(c, 1, s->rank), wide = graph_between_add(c, type, s->rank, s->dim, s->stride);
    return graph_function_add(c, BZ_FN_MUL, 0, 0, factor, scale, wide);
}

/* Whether each operand has all matrices of the result's batch, or one for all of them. */
static bool has_one_batch(const call *c)
{
    const bz_operand *y = &c->operand[c->n_operands - 1];
    for (int i = 0; i < c->n_operands; i++) {
        const bz_operand *o = &c->operand[i];
        if (o->role == BZ_ROLE_BIAS)
            continue;
        if (o->rank < 2)
            return false;
        int64_t matrices = o->count / (o->dim[o->rank - 2] * o->dim[o->rank - 1]);
        bool same = o->rank == y->rank && !memcmp(o->dim, y->dim, (size_t)(y->rank - 2) * sizeof *y->dim);
        if (matrices != 1 && !same)
            return false;
    }
    return y->rank > 3;
}

static void build_product(call *c, bool blocks)
{
    const bz_problem *p = c->problem;
    bool gemm = p->kind == BZ_PROBLEM_GEMM;
    graph_place at = has_one_batch(c) ? ONE_BATCH : ONES_IN_FRONT;
    shape s = shape_of_result(c, 3, at);
    int a = graph_factor_add(c, 0, gemm && p->gemm.transa, at), b = graph_factor_add(c, 1, gemm && p->gemm.transb, at);
    if (blocks) {
        shape left = factor_of(c, 0, p->gemm.transa, at), right = factor_of(c, 1, p->gemm.transb, at);
        a = scale_blocks(c, &left, 2, a);
        b = scale_blocks(c, &right, 1, b);
    }
    if (has_byte_weights(p)) {
        shape right = factor_of(c, 1, gemm && p->gemm.transb, at);
        b = widen(c, &right, b);
    }
    int first = graph_matmul_add(c, a, b, add_results(c, &s, at));
    add_steps(c, &s, s.rank - 1, at, first);
}

int cudnn_check_product(call *c, bz_error *why)
{
    if (c->problem->dtype == BZ_F4E2M1)
        return bz_fail(why, BZ_INCOMPLETE, "4-bit floats are multiplied in blocks with a scale");
    return c->nhwc ? bz_fail(why, BZ_INCOMPLETE, "matrices have no channels (layout plain)") : 0;
}

void cudnn_build_product(call *c)
{
    build_product(c, false);
}

/* The microscaling formats' way to multiply 8-bit floats (MXFP8), by scales of 1: the same product, by other kernels. 4-bit
 * floats (NVFP4) have no other. */
int cudnn_check_blocks(call *c, bz_error *why)
{
    const bz_problem *p = c->problem;
    if (!is_narrow(p->dtype) || !is_narrow(p->dtype_w))
        return bz_fail(why, BZ_INCOMPLETE, "blocks with a scale are for floats of 8 bits and of 4");
    if (p->gemm.transa || !p->gemm.transb)
        return bz_fail(why, BZ_INCOMPLETE, "blocks with a scale lie along the product's depth (transb=1)");
    return 0;
}

void cudnn_build_blocks(call *c)
{
    build_product(c, true);
}

void cudnn_build_elementwise(call *c)
{
    const bz_problem *p = c->problem;
    shape s = shape_of_result(c, 4, ROWS);
    int a = graph_operand_add(c, 0, 4, ROWS), b = p->kind == BZ_PROBLEM_BINARY ? graph_operand_add(c, 1, 4, ROWS) : -1,
        first = add_results(c, &s, ROWS);
    bz_post own = {p->binary.fn, 0, 0};
    if (p->kind == BZ_PROBLEM_ACTIVATION)
        own = (bz_post){p->activation.fn, p->activation.alpha, p->activation.beta};
    add_function(c, &s, &own, a, b, first);
    add_steps(c, &s, s.rank - 1, ROWS, first);
}
