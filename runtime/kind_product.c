/* Kinds that are products of matrices, and attention, which is two with a softmax between them. */
#include "runtime/kind.h"

#include <string.h>

static void gemm_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    int64_t b = p->gemm.batch, m = p->gemm.m, n = p->gemm.n, k = p->gemm.k;
    bz_operand_add(l, BZ_ROLE_X, p->dtype, 3, p->gemm.transa ? (int64_t[]){b, k, m} : (int64_t[]){b, m, k});
    bz_operand_add(l, BZ_ROLE_B, p->dtype_w, 3, p->gemm.transb ? (int64_t[]){b, n, k} : (int64_t[]){b, k, n})
        ->constant = true;
    memcpy(y, (int64_t[]){b, m, n}, 3 * sizeof *y);
}

static int check_gemm(const bz_problem *p, bz_error *err)
{
    if (p->gemm.m < 1 || p->gemm.n < 1 || p->gemm.k < 1 || p->gemm.batch < 1)
        return bz_problem_refuse(p, "m, n, k and batch are at least 1", err);
    if ((double)p->gemm.batch * (double)(p->gemm.m + p->gemm.n) * (double)p->gemm.k > 1e12 ||
        (double)p->gemm.batch * (double)p->gemm.m * (double)p->gemm.n > 1e12)
        return bz_problem_refuse(p, "the matrices are too large", err);
    if (p->gemm.sparse && p->gemm.k % 4)
        return bz_problem_refuse(p, "zeros are two of each four numbers along the depth", err);
    bool four = p->dtype == BZ_F4E2M1 || p->dtype_w == BZ_F4E2M1;
    if (four && (p->dtype != p->dtype_w || bz_dtype_bits(p->dtype_y) < 16 || p->gemm.transa || p->gemm.k % 16))
        return bz_problem_refuse(p, "both factors have 4 bits, in blocks of 16 along the depth, and results have more",
                                 err);
    return 0;
}

static double gemm_depth(const bz_problem *p)
{
    return (double)p->gemm.k / (p->gemm.sparse ? 2 : 1);
}

static bz_expected gemm_at(bz_reference *r)
{
    const int64_t *y = r->y;
    int64_t m = r->problem->gemm.m, n = r->problem->gemm.n, k = r->problem->gemm.k;
    bool ta = r->problem->gemm.transa, tb = r->problem->gemm.transb;
    const float *a = bz_reference_values(r, BZ_ROLE_X) + y[0] * m * k,
                *b = bz_reference_values(r, BZ_ROLE_B) + y[0] * k * n;
    return bz_expected_dot(a + (ta ? y[1] : y[1] * k), ta ? m : 1, b + (tb ? y[2] * k : y[2]), tb ? 1 : n, k);
}

static void lie_as(const int64_t *dim, int rank, bool transposed, int64_t *out)
{
    memcpy(out, dim, sizeof(bz_extent));
    if (transposed)
        out[rank - 2] = dim[rank - 1], out[rank - 1] = dim[rank - 2];
}

static void matmul_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    int n = bz_extent_rank(p->matmul.a);
    bz_extent a, b;
    lie_as(p->matmul.a, n, p->matmul.transa, a);
    lie_as(p->matmul.b, n, p->matmul.transb, b);
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, a);
    bz_operand_add_shape(l, BZ_ROLE_B, p->dtype_w, b);
    l->item[l->n - 1].constant = p->matmul.constant;
    bz_extent_broadcast(p->matmul.a, p->matmul.b, y);
    y[n - 2] = p->matmul.a[n - 2];
    y[n - 1] = p->matmul.b[n - 1];
}

static int check_matmul(const bz_problem *p, bz_error *err)
{
    const int64_t *a = p->matmul.a, *b = p->matmul.b;
    int n = bz_extent_rank(a);
    if (n < 2 || n != bz_extent_rank(b))
        return bz_problem_refuse(p, "a and b have the same number of dimensions, at least two", err);
    if (a[n - 1] != b[n - 2] || !bz_extent_broadcasts(a, b, 2))
        return bz_problem_refuse(p, "a and b do not fit each other", err);
    return 0;
}

static double matmul_depth(const bz_problem *p)
{
    return (double)p->matmul.a[bz_extent_rank(p->matmul.a) - 1];
}

static bz_expected matmul_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const int64_t *a = r->problem->matmul.a, *b = r->problem->matmul.b;
    int n = bz_extent_rank(a);
    int64_t m = a[n - 2], k = a[n - 1], w = b[n - 1];
    bool ta = r->problem->matmul.transa, tb = r->problem->matmul.transb;
    const float *av = bz_reference_values(r, BZ_ROLE_X) + bz_ravel(y, a, n - 2) * m * k + y[n - 2] * (ta ? 1 : k);
    const float *bv = bz_reference_values(r, BZ_ROLE_B) + bz_ravel(y, b, n - 2) * k * w + y[n - 1] * (tb ? k : 1);
    return bz_expected_dot(av, ta ? m : 1, bv, tb ? 1 : w, k);
}

static int64_t rows_of(const bz_problem *p, int *groups)
{
    int64_t rows = 0;
    int n = 0;
    for (; p->grouped.sizes[n]; n++)
        rows += p->grouped.sizes[n];
    if (groups)
        *groups = n;
    return rows;
}

static void grouped_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    int groups;
    int64_t rows = rows_of(p, &groups), n = p->grouped.n, k = p->grouped.k;
    bz_operand_add(l, BZ_ROLE_X, p->dtype, 2, (int64_t[]){rows, k});
    bz_operand_add(l, BZ_ROLE_B, p->dtype_w, 3,
                   p->grouped.transb ? (int64_t[]){groups, n, k} : (int64_t[]){groups, k, n})
        ->constant = true;
    memcpy(y, (int64_t[]){rows, n}, 2 * sizeof *y);
}

static int check_grouped(const bz_problem *p, bz_error *err)
{
    if (p->grouped.n < 1 || p->grouped.k < 1 || !p->grouped.sizes[0])
        return bz_problem_refuse(p, "n and k are at least 1, and there is a group", err);
    for (int i = 0; p->grouped.sizes[i]; i++)
        if (p->grouped.sizes[i] < 0)
            return bz_problem_refuse(p, "a group has at least one row", err);
    if ((double)(rows_of(p, NULL) + p->grouped.n) * (double)p->grouped.k > 1e12)
        return bz_problem_refuse(p, "the matrices are too large", err);
    return 0;
}

static double grouped_depth(const bz_problem *p)
{
    return (double)p->grouped.k;
}

static bz_expected grouped_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    int64_t n = p->grouped.n, k = p->grouped.k, row = r->y[0];
    int group = 0;
    while (row >= p->grouped.sizes[group])
        row -= p->grouped.sizes[group++];
    const float *b = bz_reference_values(r, BZ_ROLE_B) + group * n * k;
    return bz_expected_dot(bz_reference_values(r, BZ_ROLE_X) + r->y[0] * k, 1,
                           b + (p->grouped.transb ? r->y[1] * k : r->y[1]), p->grouped.transb ? 1 : n, k);
}

static void gemv_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    int64_t m = p->gemv.m, k = p->gemv.k;
    bz_operand_add(l, BZ_ROLE_X, p->dtype, 1, &k);
    bz_operand_add(l, BZ_ROLE_W, p->dtype_w, 2, p->gemv.trans ? (int64_t[]){k, m} : (int64_t[]){m, k});
    y[0] = m;
}

static int check_gemv(const bz_problem *p, bz_error *err)
{
    if (p->gemv.m < 1 || p->gemv.k < 1 || (double)p->gemv.m * (double)p->gemv.k > 1e12)
        return bz_problem_refuse(p, "m and k are at least 1, and the matrix is not too large", err);
    return 0;
}

static double gemv_depth(const bz_problem *p)
{
    return (double)p->gemv.k;
}

static bz_expected gemv_at(bz_reference *r)
{
    const int64_t *y = r->y;
    int64_t m = r->problem->gemv.m, k = r->problem->gemv.k;
    bool trans = r->problem->gemv.trans;
    return bz_expected_dot(bz_reference_values(r, BZ_ROLE_W) + (trans ? y[0] : y[0] * k), trans ? m : 1,
                           bz_reference_values(r, BZ_ROLE_X), 1, k);
}

static void attention_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->attention.q);
    bz_operand_add_shape(l, BZ_ROLE_B, p->dtype_w, p->attention.k);
    bz_operand_add_shape(l, BZ_ROLE_V, p->dtype_w, p->attention.v);
    if (p->attention.mask[0])
        bz_operand_add_shape(l, BZ_ROLE_MASK, bz_dtype_bits(p->dtype_y) < 16 ? BZ_F16 : p->dtype_y, p->attention.mask);
    if (p->attention.sink)
        bz_operand_add(l, BZ_ROLE_BIAS, BZ_F32, 4, (int64_t[]){1, p->attention.q[1], 1, 1});
    memcpy(y, p->attention.q, 3 * sizeof *y);
    y[3] = p->attention.v[3];
}

static int check_attention(const bz_problem *p, bz_error *err)
{
    const int64_t *q = p->attention.q, *k = p->attention.k, *v = p->attention.v, *mask = p->attention.mask;
    if (bz_extent_rank(q) != 4 || bz_extent_rank(k) != 4 || bz_extent_rank(v) != 4)
        return bz_problem_refuse(p, "q, k and v have batch, heads, length and size", err);
    if (q[0] != k[0] || k[0] != v[0] || q[3] != k[3] || k[1] != v[1] || k[2] != v[2] || q[1] % k[1])
        return bz_problem_refuse(p, "q, k and v do not fit each other", err);
    if (p->attention.causal && q[2] > k[2])
        return bz_problem_refuse(p, "causal, each query has a key", err);
    if (p->attention.window && (!p->attention.causal || p->attention.window < 1 || p->attention.window >= k[2]))
        return bz_problem_refuse(p, "a window is of causal attention, and of fewer keys than there are", err);
    if (p->attention.page && (p->attention.page < 0 || k[2] % p->attention.page))
        return bz_problem_refuse(p, "there are whole pages of keys", err);
    if (p->attention.softcap < 0)
        return bz_problem_refuse(p, "scores are capped by a number above 0", err);
    if ((double)q[0] * (double)q[1] * (double)q[2] * (double)k[2] > 0x1p40)
        return bz_problem_refuse(p, "there are too many scores", err);
    int64_t tokens = 0;
    for (int i = 0; p->attention.lengths[i]; i++) /* each is at least 1, and at most 2²⁴ */
        tokens += p->attention.lengths[i] > 0 ? p->attention.lengths[i] : q[2] + 1;
    if (tokens && (tokens != q[2] || q[2] != k[2] || q[0] != 1 || mask[0] || p->attention.window || p->attention.page))
        return bz_problem_refuse(p, "sequences of different lengths fill a batch of 1, without mask, window and pages",
                                 err);
    const int64_t scores[] = {q[0], q[1], q[2], k[2]};
    for (int i = 0; i < 4 && mask[0]; i++)
        if (bz_extent_rank(mask) != 4 || (mask[i] != 1 && mask[i] != scores[i]))
            return bz_problem_refuse(p, "the mask does not fit the scores", err);
    return 0;
}

/* The keys that a query sees are the last ones of so many. */
static int64_t seen_by(const bz_problem *p, int64_t query)
{
    const int64_t *q = p->attention.q, *k = p->attention.k;
    return p->attention.causal ? k[2] - q[2] + query + 1 : k[2];
}

/* The sequence that a token belongs to: its first token, and the one behind its last. */
static int64_t sequence_of(const bz_problem *p, int64_t token, int64_t *end)
{
    int64_t from = 0;
    *end = p->attention.lengths[0];
    for (int i = 1; token >= *end; i++)
        from = *end, *end += p->attention.lengths[i];
    return from;
}

/* Two products, five operations of softmax and three of a cap for each score that is seen. Causal, each query sees one key more than the one before
 * it, up to what its window has. */
static double attention_flops(const bz_problem *p, const bz_operand *list, double y)
{
    const int64_t *q = p->attention.q, *k = p->attention.k;
    double most = p->attention.window ? (double)p->attention.window : (double)k[2], first = (double)seen_by(p, 0);
    double growing = fmin(fmax(most - first, 0), (double)q[2]); /* queries that see less than that */
    double seen = growing * first + growing * (growing - 1) / 2 + ((double)q[2] - growing) * most;
    if (p->attention.lengths[0])
        seen = 0;
    for (int i = 0; p->attention.lengths[i]; i++) {
        double n = (double)p->attention.lengths[i];
        seen += p->attention.causal ? n * (n + 1) / 2 : n * n;
    }
    (void)list, (void)y;
    return (double)(q[0] * q[1]) * seen * (2 * (double)(q[3] + p->attention.v[3]) + (p->attention.softcap > 0 ? 8 : 5));
}

/* The score of one key for the query at `q`. */
static double score_at(const bz_reference *r, const float *q, const float *k, const int64_t *y, int64_t key)
{
    const bz_problem *p = r->problem;
    int64_t size = p->attention.q[3];
    const float *mask = bz_reference_values(r, BZ_ROLE_MASK);
    double score = bz_expected_dot(q, 1, k + key * size, 1, size).value / sqrt((double)size),
           cap = (double)p->attention.softcap;
    score = cap > 0 ? cap * tanh(score / cap) : score;
    return mask ? score + mask[bz_ravel((int64_t[]){y[0], y[1], y[2], key}, p->attention.mask, 4)] : score;
}

static bz_expected attention_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    const int64_t *q = p->attention.q, *k = p->attention.k, *v = p->attention.v;
    int64_t head = y[0] * k[1] + y[1] / (q[1] / k[1]), seen = seen_by(p, y[2]);
    int64_t first = p->attention.window && seen > p->attention.window ? seen - p->attention.window : 0;
    if (p->attention.lengths[0]) {
        first = sequence_of(p, y[2], &seen);
        seen = p->attention.causal ? y[2] + 1 : seen;
    }
    const float *query = bz_reference_values(r, BZ_ROLE_X) + ((y[0] * q[1] + y[1]) * q[2] + y[2]) * q[3];
    const float *key = bz_reference_values(r, BZ_ROLE_B) + head * k[2] * k[3],
                *value = bz_reference_values(r, BZ_ROLE_V) + head * v[2] * v[3];
    const float *sink = bz_reference_values(r, BZ_ROLE_BIAS);
    double most = sink ? (double)sink[y[1]] : -INFINITY, sum;
    bz_expected e = {0};
    for (int64_t i = first; i < seen; i++)
        most = fmax(most, score_at(r, query, key, y, i));
    sum = sink ? exp((double)sink[y[1]] - most) : 0;
    for (int64_t i = first; i < seen; i++) {
        double weight = exp(score_at(r, query, key, y, i) - most);
        sum += weight;
        bz_expected_add(&e, weight * value[i * v[3] + y[3]]);
    }
    return (bz_expected){.value = e.value / sum, .magnitude = e.magnitude / sum};
}

static double attention_cost(const bz_problem *p)
{
    return 2 * (double)p->attention.k[2] * (double)(p->attention.k[3] + 10);
}

/* Keys and values lie in pages or not: they are the same. */
static void attention_grad_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    const int64_t *q = p->attention.q;
    bz_extent o = {q[0], q[1], q[2], p->attention.v[3]};
    bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, q);
    bz_operand_add_shape(l, BZ_ROLE_B, p->dtype, p->attention.k);
    bz_operand_add_shape(l, BZ_ROLE_V, p->dtype, p->attention.v);
    bz_operand_add_shape(l, BZ_ROLE_O, p->dtype, o);
    bz_operand_add(l, BZ_ROLE_LOGSUM, BZ_F32, 3, q);
    bz_operand_add_shape(l, BZ_ROLE_DY, p->dtype, o);
    bz_operand_add_result(l, BZ_ROLE_B, p->dtype_y, 4, p->attention.k, -1);
    bz_operand_add_result(l, BZ_ROLE_V, p->dtype_y, 4, p->attention.v, -1);
    memcpy(y, q, sizeof(bz_extent));
}

/* One query and one key: its weight, and how the loss changes with its score. */
typedef struct pair {
    double weight;
    bz_expected slope;
} pair;

static pair pair_at(const bz_reference *r, int64_t batch, int64_t head, int64_t row, int64_t key)
{
    const bz_problem *p = r->problem;
    const int64_t *q = p->attention.q, *k = p->attention.k, *v = p->attention.v;
    int64_t own = batch * k[1] + head / (q[1] / k[1]), at = (batch * q[1] + head) * q[2] + row;
    const float *dy = bz_reference_values(r, BZ_ROLE_DY) + at * v[3];
    if (key >= seen_by(p, row))
        return (pair){0};
    double score = bz_expected_dot(bz_reference_values(r, BZ_ROLE_X) + at * q[3], 1,
                                   bz_reference_values(r, BZ_ROLE_B) + (own * k[2] + key) * k[3], 1, q[3])
                       .value /
                   sqrt((double)q[3]);
    double weight = exp(score - (double)bz_reference_values(r, BZ_ROLE_LOGSUM)[at]);
    bz_expected by_value =
        bz_expected_dot(dy, 1, bz_reference_values(r, BZ_ROLE_V) + (own * v[2] + key) * v[3], 1, v[3]);
    bz_expected by_sum = bz_expected_dot(dy, 1, bz_reference_values(r, BZ_ROLE_O) + at * v[3], 1, v[3]);
    return (pair){weight,
                  {.value = weight * (by_value.value - by_sum.value),
                   .magnitude = weight * (by_value.magnitude + by_sum.magnitude)}};
}

static void add_scaled(bz_expected *sum, bz_expected e, double by)
{
    sum->value += e.value * by;
    sum->magnitude += e.magnitude * fabs(by);
}

/* Of a query: sums over keys. Of a key and a value: over the rows of all heads that share it. */
static bz_expected attention_grad_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    const int64_t *y = r->y, *q = p->attention.q, *k = p->attention.k, *v = p->attention.v;
    int64_t shared = q[1] / k[1];
    bz_role role = bz_reference_role(r);
    bz_expected sum = {0};
    for (int64_t key = 0; key < k[2] && role == BZ_ROLE_Y; key++)
        add_scaled(
            &sum, pair_at(r, y[0], y[1], y[2], key).slope,
            (double)bz_reference_values(r, BZ_ROLE_B)[((y[0] * k[1] + y[1] / shared) * k[2] + key) * k[3] + y[3]]);
    for (int64_t i = 0; i < shared * q[2] && role != BZ_ROLE_Y; i++) {
        int64_t head = y[1] * shared + i / q[2], row = i % q[2], at = (y[0] * q[1] + head) * q[2] + row;
        pair one = pair_at(r, y[0], head, row, y[2]);
        if (role == BZ_ROLE_V)
            bz_expected_add(&sum, one.weight * (double)bz_reference_values(r, BZ_ROLE_DY)[at * v[3] + y[3]]);
        else
            add_scaled(&sum, one.slope, (double)bz_reference_values(r, BZ_ROLE_X)[at * q[3] + y[3]]);
    }
    if (role != BZ_ROLE_V)
        sum = (bz_expected){.value = sum.value / sqrt((double)q[3]), .magnitude = sum.magnitude / sqrt((double)q[3])};
    return sum;
}

/* Five products where the forward pass has two. */
static double attention_grad_flops(const bz_problem *p, const bz_operand *list, double y)
{
    return 2.5 * attention_flops(p, list, y);
}

static double attention_grad_cost(const bz_problem *p)
{
    const int64_t *q = p->attention.q, *k = p->attention.k;
    int64_t rows = q[1] / k[1] * q[2];
    return fmax((double)rows, (double)k[2]) * (3 * (double)q[3] + 20);
}

/* clang-format off */
const bz_kind bz_kind_gemm = {.name = "gemm", .traits = BZ_TRAIT_PRODUCT | BZ_TRAIT_POST, .operands = gemm_operands,
    .check = check_gemm, .depth = gemm_depth, .at = gemm_at, .member = {
    BZ_REQUIRED("m", INT, gemm.m), BZ_REQUIRED("n", INT, gemm.n), BZ_REQUIRED("k", INT, gemm.k),
    BZ_USUAL("batch", INT, gemm.batch, 1), BZ_USUAL("transa", FLAG, gemm.transa, 0),
    BZ_USUAL("transb", FLAG, gemm.transb, 0), BZ_OPTIONAL("sparse", FLAG, gemm.sparse, 0)}};

const bz_kind bz_kind_matmul = {.name = "matmul", .traits = BZ_TRAIT_PRODUCT | BZ_TRAIT_POST,
    .operands = matmul_operands, .check = check_matmul, .depth = matmul_depth, .at = matmul_at, .member = {
    BZ_REQUIRED("a", EXTENT, matmul.a), BZ_REQUIRED("b", EXTENT, matmul.b),
    BZ_USUAL("constant", FLAG, matmul.constant, 0), BZ_OPTIONAL("transa", FLAG, matmul.transa, 0),
    BZ_OPTIONAL("transb", FLAG, matmul.transb, 0)}};

const bz_kind bz_kind_grouped = {.name = "grouped", .traits = BZ_TRAIT_PRODUCT, .operands = grouped_operands,
    .check = check_grouped, .depth = grouped_depth, .at = grouped_at, .member = {
    BZ_REQUIRED("n", INT, grouped.n), BZ_REQUIRED("k", INT, grouped.k), BZ_USUAL("transb", FLAG, grouped.transb, 0),
    BZ_REQUIRED("sizes", SIZES, grouped.sizes)}};

const bz_kind bz_kind_gemv = {.name = "gemv", .traits = BZ_TRAIT_PRODUCT | BZ_TRAIT_POST, .operands = gemv_operands,
    .check = check_gemv, .depth = gemv_depth, .at = gemv_at, .member = {
    BZ_REQUIRED("m", INT, gemv.m), BZ_REQUIRED("k", INT, gemv.k), BZ_USUAL("trans", FLAG, gemv.trans, 0)}};

const bz_kind bz_kind_attention = {.name = "attention", .traits = BZ_TRAIT_ROUNDED_BETWEEN,
    .operands = attention_operands, .check = check_attention, .flops = attention_flops, .at = attention_at,
    .cost = attention_cost, .member = {
    BZ_REQUIRED("q", EXTENT, attention.q), BZ_REQUIRED("k", EXTENT, attention.k),
    BZ_REQUIRED("v", EXTENT, attention.v), BZ_OPTIONAL("mask", EXTENT, attention.mask, 0),
    BZ_OPTIONAL("causal", FLAG, attention.causal, 0), BZ_OPTIONAL("window", INT, attention.window, 0),
    BZ_OPTIONAL("softcap", REAL, attention.softcap, 0),
    BZ_OPTIONAL("page", INT, attention.page, 0), BZ_OPTIONAL("sink", FLAG, attention.sink, 0),
    BZ_OPTIONAL("lengths", SIZES, attention.lengths, 0)}};

const bz_kind bz_kind_attention_grad = {.name = "attention_grad", .field = "attention",
    .traits = BZ_TRAIT_ROUNDED_BETWEEN | BZ_TRAIT_GRADIENT, .operands = attention_grad_operands,
    .check = check_attention, .flops = attention_grad_flops, .at = attention_grad_at, .cost = attention_grad_cost, .member = {
    BZ_REQUIRED("q", EXTENT, attention.q), BZ_REQUIRED("k", EXTENT, attention.k),
    BZ_REQUIRED("v", EXTENT, attention.v), BZ_OPTIONAL("causal", FLAG, attention.causal, 0)}};
/* clang-format on */
