/* Attention and its gradients, as one operation and as the chains that the library's fused engines know. */
#include "runtime/cudnn/graph.h"

#include "base/arena.h"

#include <math.h>

/* The operand as it lies, [batch, heads, length, size]; turned, its last two dimensions exchanged. */
static cudnnStatus_t add_heads(call *c, bz_role role, bool turned, int *out)
{
    return graph_factor_add(c, cudnn_find(c, role), turned, ONES_IN_FRONT, out);
}

/* Keys or values in pages, the last page first: [pages, heads, rows of a page, size], and the table of the pages' numbers. */
static cudnnStatus_t add_pages(call *c, bz_role role, int *out, int *table)
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
    TRY(graph_wholes_add(c, numbers, 4, (int64_t[]){k[0], 1, each, 1}, table));
    return graph_tensor_add(c, operand, &layout, 4, dim, stride, out);
}

/* As many as there are, of each sequence. */
static cudnnStatus_t add_lengths(call *c, int64_t length, int *out)
{
    int64_t batch = c->problem->attention.q[0];
    int32_t *numbers = bz_alloc((size_t)batch, sizeof *numbers);
    for (int64_t i = 0; i < batch; i++)
        numbers[i] = (int32_t)length;
    return graph_wholes_add(c, numbers, 4, (int64_t[]){batch, 1, 1, 1}, out);
}

/* One operation since cuDNN 9.13. */
cudnnStatus_t cudnn_build_sdpa(call *c)
{
    graph_sdpa t = {.table_k = -1, .table_v = -1, .length_q = -1, .length_k = -1};
    bool paged = c->problem->attention.page;
    TRY(add_heads(c, BZ_ROLE_X, false, &t.q));
    TRY(paged ? add_pages(c, BZ_ROLE_B, &t.k, &t.table_k) : add_heads(c, BZ_ROLE_B, false, &t.k));
    TRY(paged ? add_pages(c, BZ_ROLE_V, &t.v, &t.table_v) : add_heads(c, BZ_ROLE_V, false, &t.v));
    if (paged) {
        TRY(add_lengths(c, c->problem->attention.q[2], &t.length_q));
        TRY(add_lengths(c, c->problem->attention.k[2], &t.length_k));
    }
    TRY(graph_number_add(c, 1 / sqrtf((float)c->problem->attention.q[3]), 4, &t.scale));
    TRY(add_heads(c, BZ_ROLE_Y, false, &c->graph->y));
    t.y = c->graph->y;
    return graph_sdpa_add(c, &t);
}

/* Tensors of the shape of scores, or of the result, and of one value for each row of them. */
typedef struct scores {
    int64_t dim[4], stride[4], row_dim[4], row_stride[4];
} scores;

/* A row of so many for each query. */
static scores rows_of(const bz_problem *p, int64_t size)
{
    const int64_t *q = p->attention.q;
    return (scores){.dim = {q[0], q[1], q[2], size},
                    .stride = {q[1] * q[2] * size, q[2] * size, size, 1},
                    .row_dim = {q[0], q[1], q[2], 1},
                    .row_stride = {q[1] * q[2], q[2], 1, 1}};
}

static cudnnStatus_t add_scores(call *c, const scores *s, cudnnDataType_t type, int *out)
{
    return graph_between_add(c, type, 4, s->dim, s->stride, out);
}

/* A function of the scores, or of those and another tensor, which makes others of them. */
static cudnnStatus_t map_scores(call *c, const scores *s, bz_fn fn, int other, int *from)
{
    int to;
    TRY(add_scores(c, s, CUDNN_DATA_FLOAT, &to));
    TRY(graph_function_add(c, fn, 0, 0, *from, other, to));
    *from = to;
    return CUDNN_STATUS_SUCCESS;
}

/* Minus infinity where `how` does not hold between a and b. */
static cudnnStatus_t hide_unless(call *c, const scores *s, cudnnPointwiseMode_t how, int a, int b, int *from)
{
    int seen, hidden, to;
    TRY(add_scores(c, s, CUDNN_DATA_BOOLEAN, &seen));
    TRY(graph_compare_add(c, how, a, b, seen));
    TRY(graph_number_add(c, -INFINITY, 4, &hidden));
    TRY(add_scores(c, s, CUDNN_DATA_FLOAT, &to));
    TRY(graph_select_add(c, *from, hidden, seen, to));
    *from = to;
    return CUDNN_STATUS_SUCCESS;
}

/* For each score: which query, and which key. */
static cudnnStatus_t add_indices(call *c, const scores *s, int from, int *row, int *column)
{
    TRY(add_scores(c, s, CUDNN_DATA_INT32, row));
    TRY(graph_index_add(c, 2, from, *row));
    TRY(add_scores(c, s, CUDNN_DATA_INT32, column));
    return graph_index_add(c, 3, from, *column);
}

/* So many queries' numbers as there are keys before the first of them: queries stand at the end of the keys. */
static cudnnStatus_t count_past(call *c, const scores *s, int *row)
{
    int keys, queries, sum, to;
    if (s->dim[3] == s->dim[2])
        return CUDNN_STATUS_SUCCESS;
    TRY(graph_count_add(c, (int32_t)s->dim[3], 4, &keys));
    TRY(add_scores(c, s, CUDNN_DATA_INT32, &sum));
    TRY(graph_whole_add(c, CUDNN_POINTWISE_ADD, *row, keys, sum));
    TRY(graph_count_add(c, (int32_t)s->dim[2], 4, &queries));
    TRY(add_scores(c, s, CUDNN_DATA_INT32, &to));
    TRY(graph_whole_add(c, CUDNN_POINTWISE_SUB, sum, queries, to));
    *row = to;
    return CUDNN_STATUS_SUCCESS;
}

/* Hides keys that come behind their query, and those that come before its window. The library's engines know these chains
 * of operations, the window's length less the past as a float, and each with indices of its own. */
static cudnnStatus_t hide_unseen(call *c, const scores *s, int *from)
{
    int row, column, length, end;
    int64_t window = c->problem->attention.window, past = s->dim[3] - s->dim[2];
    if (!c->problem->attention.causal)
        return CUDNN_STATUS_SUCCESS;
    TRY(add_indices(c, s, *from, &row, &column));
    TRY(count_past(c, s, &row));
    TRY(hide_unless(c, s, CUDNN_POINTWISE_CMP_GE, row, column, from));
    if (!window)
        return CUDNN_STATUS_SUCCESS;
    TRY(add_indices(c, s, *from, &row, &column));
    TRY(graph_number_add(c, (float)(window - past), 4, &length));
    TRY(add_scores(c, s, CUDNN_DATA_FLOAT, &end));
    TRY(graph_function_add(c, BZ_FN_ADD, 0, 0, column, length, end));
    return hide_unless(c, s, CUDNN_POINTWISE_CMP_GT, end, row, from);
}

static cudnnStatus_t cap_scores(call *c, const scores *s, int *from)
{
    int cap;
    if (c->problem->attention.softcap <= 0)
        return CUDNN_STATUS_SUCCESS;
    TRY(graph_number_add(c, c->problem->attention.softcap, 4, &cap));
    TRY(map_scores(c, s, BZ_FN_DIV, cap, from));
    TRY(map_scores(c, s, BZ_FN_TANH, -1, from));
    return map_scores(c, s, BZ_FN_MUL, cap, from);
}

/* exp(x - max) / sum, the last in the type that is asked for. What training keeps of the
 * rows, max + log sum, nobody reads here; engines know the chain by it. */
static cudnnStatus_t add_softmax(call *c, const scores *s, cudnnDataType_t type, int *from)
{
    int most, sum, log, kept, to;
    TRY(graph_between_add(c, CUDNN_DATA_FLOAT, 4, s->row_dim, s->row_stride, &most));
    TRY(graph_reduction_add(c, CUDNN_REDUCE_TENSOR_MAX, *from, most));
    TRY(map_scores(c, s, BZ_FN_SUB, most, from));
    TRY(map_scores(c, s, BZ_FN_EXP, -1, from));
    TRY(graph_between_add(c, CUDNN_DATA_FLOAT, 4, s->row_dim, s->row_stride, &sum));
    TRY(graph_reduction_add(c, CUDNN_REDUCE_TENSOR_ADD, *from, sum));
    TRY(graph_between_add(c, CUDNN_DATA_FLOAT, 4, s->row_dim, s->row_stride, &log));
    TRY(graph_function_add(c, BZ_FN_LOG, 0, 0, sum, -1, log));
    TRY(graph_between_add(c, CUDNN_DATA_FLOAT, 4, s->row_dim, s->row_stride, &kept));
    TRY(graph_function_add(c, BZ_FN_ADD, 0, 0, most, log, kept));
    TRY(add_scores(c, s, type, &to));
    TRY(graph_function_add(c, BZ_FN_DIV, 0, 0, *from, sum, to));
    *from = to;
    return CUDNN_STATUS_SUCCESS;
}

/* A tensor by a number in the device's memory. */
static cudnnStatus_t scale_by(call *c, const scores *s, float value, int *from)
{
    int cell;
    TRY(graph_cell_add(c, value, 4, &cell));
    return map_scores(c, s, BZ_FN_MUL, cell, from);
}

/* The largest magnitude, which a program that scales its numbers keeps watch over: engines for 8-bit floats know the
 * chains with it only. */
static cudnnStatus_t watch(call *c, int from)
{
    int cell;
    TRY(graph_cell_add(c, 0, 4, &cell));
    return graph_reduction_add(c, CUDNN_REDUCE_TENSOR_AMAX, from, cell);
}

/* Behind the softmax of 8-bit floats. Weights are at most 1: as 8-bit floats they would be denormal, so they are multiplied
 * by 256 before, and the result is divided by that. Data are what they are. */
static cudnnStatus_t add_values_f8(call *c, const scores *s, int weights, int v)
{
    scores y = rows_of(c->problem, c->problem->attention.v[3]);
    cudnnDataType_t type;
    int scale, small, sum, last;
    if (!cudnn_dtype(c->problem->dtype, &type))
        return CUDNN_STATUS_NOT_SUPPORTED;
    TRY(watch(c, weights));
    TRY(graph_cell_add(c, 256, 4, &scale));
    TRY(add_scores(c, s, type, &small));
    TRY(graph_function_add(c, BZ_FN_MUL, 0, 0, weights, scale, small));
    TRY(add_scores(c, &y, CUDNN_DATA_FLOAT, &sum));
    TRY(graph_matmul_add(c, small, v, sum));
    TRY(scale_by(c, &y, 1.0f / 256, &sum));
    TRY(scale_by(c, &y, 1, &sum));
    TRY(graph_cell_add(c, 1, 4, &last));
    TRY(graph_function_add(c, BZ_FN_MUL, 0, 0, sum, last, c->graph->y));
    return watch(c, sum);
}

/* Product, scale, mask, softmax, product: the library's fused engines take these chains whole. */
cudnnStatus_t cudnn_build_attention(call *c)
{
    const int64_t *q = c->problem->attention.q;
    scores s = rows_of(c->problem, c->problem->attention.k[2]);
    int queries, keys, v, scale, at, mask = cudnn_find(c, BZ_ROLE_MASK);
    TRY(add_heads(c, BZ_ROLE_X, false, &queries));
    TRY(add_heads(c, BZ_ROLE_B, true, &keys));
    TRY(add_scores(c, &s, CUDNN_DATA_FLOAT, &at));
    TRY(graph_matmul_add(c, queries, keys, at));
    TRY(graph_number_add(c, 1 / sqrtf((float)q[3]), 4, &scale));
    TRY(map_scores(c, &s, BZ_FN_MUL, scale, &at));
    for (int i = 0; i < 2 && graph_is_f8(c->problem->dtype); i++) /* of queries and of keys */
        TRY(scale_by(c, &s, 1, &at));
    TRY(cap_scores(c, &s, &at));
    if (mask >= 0) {
        TRY(add_heads(c, BZ_ROLE_MASK, false, &mask));
        TRY(map_scores(c, &s, BZ_FN_ADD, mask, &at));
    }
    TRY(hide_unseen(c, &s, &at));
    bool eight = graph_is_f8(c->problem->dtype);
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    if (!eight && !cudnn_dtype(c->problem->dtype, &type))
        return CUDNN_STATUS_NOT_SUPPORTED;
    TRY(add_softmax(c, &s, type, &at));
    TRY(add_heads(c, BZ_ROLE_V, false, &v));
    TRY(add_heads(c, BZ_ROLE_Y, false, &c->graph->y));
    return eight ? add_values_f8(c, &s, at, v) : graph_matmul_add(c, at, v, c->graph->y);
}

/* The operand with this role that is read, or made, as heads; turned, its last two dimensions exchanged. */
static cudnnStatus_t add_side(call *c, bz_role role, bool result, bool turned, int *out)
{
    int i = 0;
    while (c->operand[i].role != role || c->operand[i].result != result)
        i++;
    return graph_factor_add(c, i, turned, ONES_IN_FRONT, out);
}

/* The tensor, of these dimensions, with the last two exchanged, in the type of the problem. */
static cudnnStatus_t turn(call *c, const int64_t *dim, const int64_t *stride, int from, int *out)
{
    int64_t d[] = {dim[0], dim[1], dim[3], dim[2]}, s[] = {stride[0], stride[1], stride[3], stride[2]};
    cudnnDataType_t type;
    if (!cudnn_dtype(c->problem->dtype, &type))
        return CUDNN_STATUS_NOT_SUPPORTED;
    TRY(graph_between_add(c, type, 4, d, s, out));
    return graph_reshape_add(c, from, *out);
}

/* How the loss changes with a row's scores by way of their sum: Σ dy · o. Engines want it in memory, where one kernel
 * leaves it to the next, and behind a product, by which programs undo a dropout. */
static cudnnStatus_t add_row_sums(call *c, const scores *s, int dy, int *out)
{
    scores y = rows_of(c->problem, c->problem->attention.v[3]);
    int o, products, sums, one;
    TRY(add_side(c, BZ_ROLE_O, false, false, &o));
    TRY(add_scores(c, &y, CUDNN_DATA_FLOAT, &products));
    TRY(graph_function_add(c, BZ_FN_MUL, 0, 0, dy, o, products));
    TRY(graph_between_add(c, CUDNN_DATA_FLOAT, 4, s->row_dim, s->row_stride, &sums));
    TRY(graph_reduction_add(c, CUDNN_REDUCE_TENSOR_ADD, products, sums));
    TRY(graph_number_add(c, 1, 4, &one));
    TRY(graph_room_add(c, 4, s->row_dim, s->row_stride, out));
    return graph_function_add(c, BZ_FN_MUL, 0, 0, sums, one, *out);
}

/* The weights again, from the scores and the logarithms of their sums; engines know the chain that hides behind these. */
static cudnnStatus_t add_weights(call *c, const scores *s, int q, int keys, int scale, int *at)
{
    int logsum = cudnn_find(c, BZ_ROLE_LOGSUM), kept;
    bz_cuda_layout layout = bz_cuda_plain(&c->operand[logsum]);
    TRY(add_scores(c, s, CUDNN_DATA_FLOAT, at));
    TRY(graph_matmul_add(c, q, keys, *at));
    TRY(map_scores(c, s, BZ_FN_MUL, scale, at));
    TRY(graph_tensor_add(c, logsum, &layout, 4, s->row_dim, s->row_stride, &kept));
    TRY(map_scores(c, s, BZ_FN_SUB, kept, at));
    TRY(hide_unseen(c, s, at));
    return map_scores(c, s, BZ_FN_EXP, -1, at);
}

/* The gradient of keys or values, [keys, size] for each head: by a product, and where heads of queries share them, the sum of
 * their gradients. */
static cudnnStatus_t add_shared(call *c, bz_role role, int by_query, int rows, int64_t size)
{
    const int64_t *q = c->problem->attention.q, *k = c->problem->attention.k;
    int64_t dim[] = {q[0], q[1], k[2], size}, stride[] = {q[1] * k[2] * size, k[2] * size, size, 1};
    cudnnDataType_t type;
    int each, result;
    TRY(add_side(c, role, true, false, &result));
    if (q[1] == k[1])
        return graph_matmul_add(c, by_query, rows, result);
    if (!cudnn_dtype(c->problem->dtype, &type))
        return CUDNN_STATUS_NOT_SUPPORTED;
    TRY(graph_between_add(c, type, 4, dim, stride, &each));
    TRY(graph_matmul_add(c, by_query, rows, each));
    return graph_reduction_add(c, CUDNN_REDUCE_TENSOR_ADD, each, result);
}

/* That of the queries is summed up in f32, in memory, by kernels that have some of the keys each. */
static cudnnStatus_t add_queries(call *c, int slope, int keys)
{
    scores q = rows_of(c->problem, c->problem->attention.q[3]);
    int sum;
    TRY(graph_room_add(c, 4, q.dim, q.stride, &sum));
    TRY(graph_matmul_add(c, slope, keys, sum));
    TRY(add_side(c, BZ_ROLE_Y, true, false, &c->graph->y));
    return graph_function_add(c, BZ_FN_NONE, 0, 0, sum, -1, c->graph->y);
}

/* Five products; the library's fused engines take the chain whole, in this order and with these tensors in memory. */
cudnnStatus_t cudnn_build_attention_grad(call *c)
{
    const int64_t *q = c->problem->attention.q, *k = c->problem->attention.k, *v = c->problem->attention.v;
    int64_t keys_dim[] = {k[0], k[1], k[3], k[2]}, keys_stride[] = {k[1] * k[2] * k[3], k[2] * k[3], 1, k[3]};
    scores s = rows_of(c->problem, k[2]);
    int queries, keys, values, dy, sums, scale, weights, turned, slope;
    TRY(add_side(c, BZ_ROLE_X, false, false, &queries));
    TRY(add_side(c, BZ_ROLE_B, false, true, &keys));
    TRY(add_side(c, BZ_ROLE_V, false, true, &values));
    TRY(add_side(c, BZ_ROLE_DY, false, false, &dy));
    TRY(graph_number_add(c, 1 / sqrtf((float)q[3]), 4, &scale));
    TRY(add_row_sums(c, &s, dy, &sums));
    TRY(add_weights(c, &s, queries, keys, scale, &weights));
    TRY(turn(c, s.dim, s.stride, weights, &turned));
    TRY(add_shared(c, BZ_ROLE_V, turned, dy, v[3]));
    TRY(add_scores(c, &s, CUDNN_DATA_FLOAT, &slope));
    TRY(graph_matmul_add(c, dy, values, slope));
    TRY(map_scores(c, &s, BZ_FN_SUB, sums, &slope));
    TRY(map_scores(c, &s, BZ_FN_MUL, weights, &slope));
    TRY(map_scores(c, &s, BZ_FN_MUL, scale, &slope));
    TRY(turn(c, s.dim, s.stride, slope, &turned));
    TRY(add_shared(c, BZ_ROLE_B, turned, queries, k[3]));
    TRY(turn(c, keys_dim, keys_stride, keys, &turned));
    return add_queries(c, slope, turned);
}

static int check_all(call *c, bz_error *why)
{
    if (c->nhwc)
        return bz_fail(why, BZ_INCOMPLETE, "heads have no channels (layout plain)");
    if (c->problem->dtype == BZ_F32)
        return bz_fail(why, BZ_INCOMPLETE, "cuDNN's fused attention is for f16, bf16 and f8");
    return graph_check_types(c, why);
}
int cudnn_check_sdpa(call *c, bz_error *why)
{
    if (check_all(c, why))
        return -1;
    if (c->problem->attention.causal || c->problem->attention.mask[0] || c->problem->attention.softcap > 0)
        return bz_fail(why, BZ_INCOMPLETE, "attention as one operation knows no mask and no cap");
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
