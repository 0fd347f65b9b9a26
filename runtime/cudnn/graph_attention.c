/* Attention and its gradients, as one operation and as the chains that the library's fused engines know. */
#include "runtime/cudnn/graph.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

/* How many sequences of different lengths there are (0: all are alike), and how long the longest is. */
static int64_t count_sequences(const bz_problem *p, int64_t *longest)
{
    const int64_t *lengths = p->attention.lengths;
    int64_t n = 0;
    for (*longest = 0; lengths[n]; n++)
        *longest = lengths[n] > *longest ? lengths[n] : *longest;
    return n;
}

/* Token by token, as programs have sequences of different lengths, each with all of its heads: [sequences, heads, longest, size]
 * for the library, and where each sequence begins. */
static int add_tokens(call *c, int operand, bool turned)
{
    const bz_operand *o = &c->operand[operand];
    int64_t longest, n = count_sequences(c->problem, &longest), size = o->dim[3], width = o->dim[1] * size;
    int64_t dim[] = {n, o->dim[1], turned ? size : longest, turned ? longest : size};
    int64_t stride[] = {longest * width, size, turned ? 1 : width, turned ? width : 1};
    bz_cuda_layout layout = bz_cuda_plain(o);
    memcpy(layout.stride, (int64_t[]){o->count, size, width, 1}, 4 * sizeof *stride);
    int32_t *from = bz_zeroed((size_t)n + 1, sizeof *from);
    for (int64_t i = 0; i < n; i++)
        from[i + 1] = from[i] + (int32_t)(c->problem->attention.lengths[i] * width);
    int begins = graph_wholes_add(c, from, 4, (int64_t[]){n + 1, 1, 1, 1});
    return graph_ragged_add(c, operand, &layout, 4, dim, stride, begins);
}

/* The operand as it lies, [batch, heads, length, size]; turned, its last two dimensions exchanged. */
static int add_heads(call *c, bz_role role, bool turned)
{
    int operand = cudnn_find(c, role);
    return c->problem->attention.lengths[0] ? add_tokens(c, operand, turned)
                                            : graph_factor_add(c, operand, turned, ONES_IN_FRONT);
}

/* Keys or values in pages, the last page first: [pages, heads, rows of a page, size], and the table of the pages' numbers. */
static int add_pages(call *c, bz_role role, int *table)
{
    int operand = cudnn_find(c, role);
    const int64_t *k = c->operand[operand].dim, page = c->problem->attention.page, each = k[2] / page, n = k[0] * each;
    const int64_t dim[] = {n, k[1], page, k[3]}, stride[] = {k[1] * page * k[3], page * k[3], k[3], 1};
    bz_cuda_layout layout = {.dtype = c->operand[operand].dtype,
                             .elements = c->operand[operand].count,
                             .stride = {-each * stride[0], stride[1], -stride[0], 1},
                             .offset = (n - 1) * stride[0],
                             .split = 2,
                             .split_size = page,
                             .split_stride = stride[2]};
    int32_t *numbers = bz_alloc((size_t)n, sizeof *numbers);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (int32_t)(n - 1 - i);
    *table = graph_wholes_add(c, numbers, 4, (int64_t[]){k[0], 1, each, 1});
    return graph_tensor_add(c, operand, &layout, 4, dim, stride);
}

/* As many as there are, of each sequence; or its own length. */
static int add_lengths(call *c, int64_t length)
{
    const int64_t *lengths = c->problem->attention.lengths;
    int64_t longest, n = count_sequences(c->problem, &longest), batch = n ? n : c->problem->attention.q[0];
    int32_t *numbers = bz_alloc((size_t)batch, sizeof *numbers);
    for (int64_t i = 0; i < batch; i++)
        numbers[i] = (int32_t)(n ? lengths[i] : length);
    return graph_wholes_add(c, numbers, 4, (int64_t[]){batch, 1, 1, 1});
}

/* One operation since cuDNN 9.13. */
void cudnn_build_sdpa(call *c)
{
    graph_sdpa t = {.table_k = -1, .table_v = -1, .length_q = -1, .length_k = -1};
    bool paged = c->problem->attention.page;
    t.q = add_heads(c, BZ_ROLE_X, false);
    t.k = paged ? add_pages(c, BZ_ROLE_B, &t.table_k) : add_heads(c, BZ_ROLE_B, false);
    t.v = paged ? add_pages(c, BZ_ROLE_V, &t.table_v) : add_heads(c, BZ_ROLE_V, false);
    if (paged || c->problem->attention.lengths[0]) {
        t.length_q = add_lengths(c, c->problem->attention.q[2]);
        t.length_k = add_lengths(c, c->problem->attention.k[2]);
    }
    t.scale = graph_number_add(c, 1 / sqrtf((float)c->problem->attention.q[3]), 4);
    t.y = c->graph->y = add_heads(c, BZ_ROLE_Y, false);
    graph_sdpa_add(c, &t);
}

/* Tensors of the shape of scores, or of the result, and of one value for each row of them. */
typedef struct scores {
    int64_t dim[4], stride[4], row_dim[4], row_stride[4];
} scores;

/* A row of so many for each query. */
static scores rows_of(const bz_problem *p, int64_t size)
{
    int64_t longest, n = count_sequences(p, &longest), batch = n ? n : p->attention.q[0], heads = p->attention.q[1],
                     rows = n ? longest : p->attention.q[2];
    return (scores){.dim = {batch, heads, rows, size},
                    .stride = {heads * rows * size, rows * size, size, 1},
                    .row_dim = {batch, heads, rows, 1},
                    .row_stride = {heads * rows, rows, 1, 1}};
}

static int add_scores(call *c, const scores *s, cudnnDataType_t type)
{
    return graph_between_add(c, type, 4, s->dim, s->stride);
}

static int add_rows(call *c, const scores *s)
{
    return graph_between_add(c, CUDNN_DATA_FLOAT, 4, s->row_dim, s->row_stride);
}

/* A function of two tensors (b -1: of one) into that of this number. */
static int apply(call *c, bz_fn fn, int a, int b, int y)
{
    return graph_function_add(c, fn, 0, 0, a, b, y);
}

/* A function of the scores, or of those and another tensor, which makes others of them. */
static int map_scores(call *c, const scores *s, bz_fn fn, int from, int other)
{
    return apply(c, fn, from, other, add_scores(c, s, CUDNN_DATA_FLOAT));
}

/* Minus infinity where `how` does not hold between a and b. */
static int hide_unless(call *c, const scores *s, cudnnPointwiseMode_t how, int a, int b, int from)
{
    int seen = graph_compare_add(c, how, a, b, add_scores(c, s, CUDNN_DATA_BOOLEAN)),
        hidden = graph_number_add(c, -INFINITY, 4);
    return graph_select_add(c, from, hidden, seen, add_scores(c, s, CUDNN_DATA_FLOAT));
}

/* For each score: which query (2), or which key (3). */
static int add_index(call *c, const scores *s, int axis, int from)
{
    return graph_index_add(c, axis, from, add_scores(c, s, CUDNN_DATA_INT32));
}

/* So many queries' numbers as there are keys before the first of them: queries stand at the end of the keys. */
static int count_past(call *c, const scores *s, int row)
{
    if (s->dim[3] == s->dim[2])
        return row;
    int keys = graph_count_add(c, (int32_t)s->dim[3], 4);
    int sum = graph_whole_add(c, CUDNN_POINTWISE_ADD, row, keys, add_scores(c, s, CUDNN_DATA_INT32));
    int queries = graph_count_add(c, (int32_t)s->dim[2], 4);
    return graph_whole_add(c, CUDNN_POINTWISE_SUB, sum, queries, add_scores(c, s, CUDNN_DATA_INT32));
}

/* Hides what lies behind the end of a sequence. */
static int hide_padding(call *c, const scores *s, int lengths, int from)
{
    if (lengths < 0)
        return from;
    int row = add_index(c, s, 2, from), column = add_index(c, s, 3, from);
    row = graph_compare_add(c, CUDNN_POINTWISE_CMP_LT, row, lengths, add_scores(c, s, CUDNN_DATA_BOOLEAN));
    column = graph_compare_add(c, CUDNN_POINTWISE_CMP_LT, column, lengths, add_scores(c, s, CUDNN_DATA_BOOLEAN));
    return hide_unless(c, s, CUDNN_POINTWISE_LOGICAL_AND, row, column, from);
}

/* Hides keys that come behind their query, and those that come before its window. The library's engines know these chains
 * of operations, the window's length less the past as a float, and each with indices of its own. */
static int hide_unseen(call *c, const scores *s, int from)
{
    int64_t window = c->problem->attention.window, past = s->dim[3] - s->dim[2];
    if (!c->problem->attention.causal)
        return from;
    int row = add_index(c, s, 2, from), column = add_index(c, s, 3, from);
    row = count_past(c, s, row);
    from = hide_unless(c, s, CUDNN_POINTWISE_CMP_GE, row, column, from);
    if (!window)
        return from;
    row = add_index(c, s, 2, from), column = add_index(c, s, 3, from);
    int length = graph_number_add(c, (float)(window - past), 4), end = map_scores(c, s, BZ_FN_ADD, column, length);
    return hide_unless(c, s, CUDNN_POINTWISE_CMP_GT, end, row, from);
}

static int cap_scores(call *c, const scores *s, int from)
{
    if (c->problem->attention.softcap <= 0)
        return from;
    int cap = graph_number_add(c, c->problem->attention.softcap, 4);
    from = map_scores(c, s, BZ_FN_DIV, from, cap);
    from = map_scores(c, s, BZ_FN_TANH, from, -1);
    return map_scores(c, s, BZ_FN_MUL, from, cap);
}

/* Of each head. */
static int add_heads_sink(call *c)
{
    return graph_factor_add(c, cudnn_find(c, BZ_ROLE_BIAS), false, ONES_IN_FRONT);
}

/* exp(x - max) / sum, the last in the type that is asked for. What training keeps of the
 * rows, max + log sum, nobody reads here; engines know the chain by it. */
static int add_softmax(call *c, const scores *s, cudnnDataType_t type, int from)
{
    int most = graph_reduction_add(c, CUDNN_REDUCE_TENSOR_MAX, from, add_rows(c, s)),
        sink = c->problem->attention.sink ? add_heads_sink(c) : -1;
    if (sink >= 0)
        most = apply(c, BZ_FN_MAX, most, sink, add_rows(c, s));
    from = map_scores(c, s, BZ_FN_SUB, from, most);
    from = map_scores(c, s, BZ_FN_EXP, from, -1);
    if (sink >= 0) {
        sink = apply(c, BZ_FN_SUB, sink, most, add_rows(c, s));
        sink = apply(c, BZ_FN_EXP, sink, -1, add_rows(c, s));
    }
    int sum = graph_reduction_add(c, CUDNN_REDUCE_TENSOR_ADD, from, add_rows(c, s));
    if (sink >= 0)
        sum = apply(c, BZ_FN_ADD, sum, sink, add_rows(c, s));
    int log = apply(c, BZ_FN_LOG, sum, -1, add_rows(c, s));
    apply(c, BZ_FN_ADD, most, log, add_rows(c, s));
    return apply(c, BZ_FN_DIV, from, sum, add_scores(c, s, type));
}

/* A tensor by a number in the device's memory. */
static int scale_by(call *c, const scores *s, float value, int from)
{
    int cell = graph_cell_add(c, value, 4);
    return map_scores(c, s, BZ_FN_MUL, from, cell);
}

/* The largest magnitude, which a program that scales its numbers keeps watch over: engines for 8-bit floats know the
 * chains with it only. */
static void watch(call *c, int from)
{
    graph_reduction_add(c, CUDNN_REDUCE_TENSOR_AMAX, from, graph_cell_add(c, 0, 4));
}

/* Behind the softmax of 8-bit floats. Weights are at most 1: as 8-bit floats they would be denormal, so they are multiplied
 * by 256 before, and the result is divided by that. Data are what they are. */
static void add_values_f8(call *c, const scores *s, int weights, int v)
{
    scores y = rows_of(c->problem, c->problem->attention.v[3]);
    cudnnDataType_t type = graph_type(c, c->problem->dtype);
    watch(c, weights);
    int scale = graph_cell_add(c, 256, 4), small = apply(c, BZ_FN_MUL, weights, scale, add_scores(c, s, type));
    int sum = graph_matmul_add(c, small, v, add_scores(c, &y, CUDNN_DATA_FLOAT));
    sum = scale_by(c, &y, 1.0f / 256, sum);
    sum = scale_by(c, &y, 1, sum);
    apply(c, BZ_FN_MUL, sum, graph_cell_add(c, 1, 4), c->graph->y);
    watch(c, sum);
}

/* Product, scale, mask, softmax, product: the library's fused engines take these chains whole. */
void cudnn_build_attention(call *c)
{
    int64_t longest, n = count_sequences(c->problem, &longest);
    scores s = rows_of(c->problem, n ? longest : c->problem->attention.k[2]);
    int queries = add_heads(c, BZ_ROLE_X, false), keys = add_heads(c, BZ_ROLE_B, true),
        lengths = n ? add_lengths(c, 0) : -1,
        at = graph_matmul_part_add(c, queries, keys, lengths, lengths, -1, add_scores(c, &s, CUDNN_DATA_FLOAT)),
        scale = graph_number_add(c, 1 / sqrtf((float)c->problem->attention.q[3]), 4);
    bool eight = graph_is_f8(c->problem->dtype);
    at = map_scores(c, &s, BZ_FN_MUL, at, scale);
    for (int i = 0; i < 2 && eight; i++) /* of queries and of keys */
        at = scale_by(c, &s, 1, at);
    at = cap_scores(c, &s, at);
    if (cudnn_find(c, BZ_ROLE_MASK) >= 0) {
        int mask = add_heads(c, BZ_ROLE_MASK, false);
        at = map_scores(c, &s, BZ_FN_ADD, at, mask);
    }
    at = hide_padding(c, &s, lengths, at);
    at = hide_unseen(c, &s, at);
    at = add_softmax(c, &s, eight ? CUDNN_DATA_FLOAT : graph_type(c, c->problem->dtype), at);
    int v = add_heads(c, BZ_ROLE_V, false);
    c->graph->y = add_heads(c, BZ_ROLE_Y, false);
    if (eight)
        add_values_f8(c, &s, at, v);
    else
        graph_matmul_part_add(c, at, v, lengths, -1, lengths, c->graph->y);
}

/* The operand with this role that is read, or made, as heads; turned, its last two dimensions exchanged. */
static int add_side(call *c, bz_role role, bool result, bool turned)
{
    int i = 0;
    while (c->operand[i].role != role || c->operand[i].result != result)
        i++;
    return graph_factor_add(c, i, turned, ONES_IN_FRONT);
}

/* The tensor, of these dimensions, with the last two exchanged, in the type of the problem. */
static int turn(call *c, const int64_t *dim, const int64_t *stride, int from)
{
    int64_t d[] = {dim[0], dim[1], dim[3], dim[2]}, s[] = {stride[0], stride[1], stride[3], stride[2]};
    return graph_reshape_add(c, from, graph_between_add(c, graph_type(c, c->problem->dtype), 4, d, s));
}

/* How the loss changes with a row's scores by way of their sum: Σ dy · o. Engines want it in memory, where one kernel
 * leaves it to the next, and behind a product, by which programs undo a dropout. */
static int add_row_sums(call *c, const scores *s, int dy)
{
    scores y = rows_of(c->problem, c->problem->attention.v[3]);
    int o = add_side(c, BZ_ROLE_O, false, false), products = map_scores(c, &y, BZ_FN_MUL, dy, o),
        sums = graph_reduction_add(c, CUDNN_REDUCE_TENSOR_ADD, products, add_rows(c, s)),
        one = graph_number_add(c, 1, 4);
    return apply(c, BZ_FN_MUL, sums, one, graph_room_add(c, 4, s->row_dim, s->row_stride));
}

/* The weights again, from the scores and the logarithms of their sums; engines know the chain that hides behind these. */
static int add_weights(call *c, const scores *s, int q, int keys, int scale)
{
    int logsum = cudnn_find(c, BZ_ROLE_LOGSUM);
    bz_cuda_layout layout = bz_cuda_plain(&c->operand[logsum]);
    int at = graph_matmul_add(c, q, keys, add_scores(c, s, CUDNN_DATA_FLOAT));
    at = map_scores(c, s, BZ_FN_MUL, at, scale);
    int kept = graph_tensor_add(c, logsum, &layout, 4, s->row_dim, s->row_stride);
    at = map_scores(c, s, BZ_FN_SUB, at, kept);
    at = hide_unseen(c, s, at);
    return map_scores(c, s, BZ_FN_EXP, at, -1);
}

/* The gradient of keys or values, [keys, size] for each head: by a product, and where heads of queries share them, the sum of
 * their gradients. */
static void add_shared(call *c, bz_role role, int by_query, int rows, int64_t size)
{
    const int64_t *q = c->problem->attention.q, *k = c->problem->attention.k;
    int64_t dim[] = {q[0], q[1], k[2], size}, stride[] = {q[1] * k[2] * size, k[2] * size, size, 1};
    int result = add_side(c, role, true, false), each = result;
    if (q[1] != k[1])
        each = graph_between_add(c, graph_type(c, c->problem->dtype), 4, dim, stride);
    graph_matmul_add(c, by_query, rows, each);
    if (each != result)
        graph_reduction_add(c, CUDNN_REDUCE_TENSOR_ADD, each, result);
}

/* That of the queries is summed up in f32, in memory, by kernels that have some of the keys each. */
static void add_queries(call *c, int slope, int keys)
{
    scores q = rows_of(c->problem, c->problem->attention.q[3]);
    int sum = graph_matmul_add(c, slope, keys, graph_room_add(c, 4, q.dim, q.stride));
    c->graph->y = add_side(c, BZ_ROLE_Y, true, false);
    apply(c, BZ_FN_NONE, sum, -1, c->graph->y);
}

/* Five products; the library's fused engines take the chain whole, in this order and with these tensors in memory. */
void cudnn_build_attention_grad(call *c)
{
    const int64_t *q = c->problem->attention.q, *k = c->problem->attention.k, *v = c->problem->attention.v;
    int64_t keys_dim[] = {k[0], k[1], k[3], k[2]}, keys_stride[] = {k[1] * k[2] * k[3], k[2] * k[3], 1, k[3]};
    scores s = rows_of(c->problem, k[2]);
    int queries = add_side(c, BZ_ROLE_X, false, false), keys = add_side(c, BZ_ROLE_B, false, true),
        values = add_side(c, BZ_ROLE_V, false, true), dy = add_side(c, BZ_ROLE_DY, false, false),
        scale = graph_number_add(c, 1 / sqrtf((float)q[3]), 4), sums = add_row_sums(c, &s, dy),
        weights = add_weights(c, &s, queries, keys, scale);
    add_shared(c, BZ_ROLE_V, turn(c, s.dim, s.stride, weights), dy, v[3]);
    int slope = graph_matmul_add(c, dy, values, add_scores(c, &s, CUDNN_DATA_FLOAT));
    slope = map_scores(c, &s, BZ_FN_SUB, slope, sums);
    slope = map_scores(c, &s, BZ_FN_MUL, slope, weights);
    slope = map_scores(c, &s, BZ_FN_MUL, slope, scale);
    add_shared(c, BZ_ROLE_B, turn(c, s.dim, s.stride, slope), queries, k[3]);
    add_queries(c, slope, turn(c, keys_dim, keys_stride, keys));
}

static int check_all(call *c, bz_error *why)
{
    if (c->nhwc)
        return bz_fail(why, BZ_INCOMPLETE, "heads have no channels (layout plain)");
    if (c->problem->dtype == BZ_F32)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's fused attention is for f16, bf16 and f8");
    if (c->problem->attention.lengths[0] && (graph_is_f8(c->problem->dtype) || c->operand[0].count > INT32_MAX))
        return bz_fail(why, BZ_INCOMPLETE,
                       "sequences of different lengths are of f16 and bf16, and 2³¹ numbers at most");
    return graph_check_types(c, why);
}
int cudnn_check_sdpa(call *c, bz_error *why)
{
    if (check_all(c, why))
        return -1;
    if (c->problem->attention.causal || c->problem->attention.mask[0] || c->problem->attention.softcap > 0 ||
        c->problem->attention.sink)
        return bz_fail(why, BZ_INCOMPLETE, "attention as one operation knows no mask, no cap and no sink");
    if (graph_is_f8(c->problem->dtype))
        return bz_fail(why, BZ_INCOMPLETE, "attention as one operation knows no scales of 8-bit floats");
    return 0;
}
int cudnn_check_attention_grad(call *c, bz_error *why)
{
    if (check_all(c, why))
        return -1;
    if (cudnnGetVersion() < 90600)
        return bz_fail(why, BZ_INCOMPLETE,
                       "cuDNN before 9.6 sums up gradients of attention in memory that it does not clear");
    if (graph_is_f8(c->problem->dtype))
        return bz_fail(why, BZ_INCOMPLETE, "gradients of attention are for f16 and bf16");
    return 0;
}
int cudnn_check_attention(call *c, bz_error *why)
{
    if (check_all(c, why))
        return -1;
    if (c->problem->attention.page)
        return bz_fail(why, BZ_INCOMPLETE, "pages of keys are read by attention as one operation");
    return 0;
}
