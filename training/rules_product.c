/* Derivatives of products of matrices. */
#include "training/build.h"

#include <string.h>

typedef struct {
    const char *name;
    bool turned;
} factor;

static const char *product(build *b, const char *op, factor left, factor right, double alpha)
{
    const char *y = grad_node(b, op, left.name, right.name, NULL);
    GRAD_INT(b, "transA", left.turned);
    GRAD_INT(b, "transB", right.turned);
    GRAD_REAL(b, "alpha", alpha);
    return y;
}

/* The gradient of an operand of shape `to`, which the product of y's batches makes; summed where the operand was repeated. */
static void give_product(grad *g, int k, const char *value, const bz_type *y, const bz_type *to)
{
    int64_t dims[BZ_MAX_RANK];
    bz_type from = {.kind = BZ_TYPE_TENSOR, .dtype = to->dtype, .rank = y->rank, .dims = dims};
    memcpy(dims, y->dims, (size_t)y->rank * sizeof *dims);
    dims[y->rank - 2] = to->dims[to->rank - 2];
    dims[y->rank - 1] = to->dims[to->rank - 1];
    value = grad_reduce(g->b, value, &from, to);
    if (grad_type(g, k)->rank < 2)
        value = grad_reshape(g->b, value, grad_type(g, k));
    grad_give(g, k, value);
}

/* Weights [k, n] (turned: [n, k]) of many rows: one product over all rows of all batches. */
static const char *weights_product(grad *g, const bz_type *a, const bz_type *y, const char *dy, bool turned,
                                   double alpha)
{
    build *b = g->b;
    int64_t k = a->dims[a->rank - 1], n = y->dims[y->rank - 1], rows = 1;
    for (int i = 0; i < a->rank - 1; i++)
        rows *= a->dims[i];
    const char *x = grad_x(g, 0);
    if (a->rank > 2) {
        x = grad_reshape_dims(b, x, (int64_t[]){rows, k}, 2);
        dy = grad_reshape_dims(b, dy, (int64_t[]){rows, n}, 2);
    }
    const char *dw = grad_node(b, "Gemm", turned ? dy : x, turned ? x : dy, NULL);
    GRAD_INT(b, "transA", 1);
    if (alpha != 1)
        GRAD_REAL(b, "alpha", alpha);
    return dw;
}

/* Operands of one dimension count as a row, or a column. */
static bz_type widened(const bz_type *t, bool row, int64_t dims[2])
{
    bz_type wide = *t;
    if (t->rank == 1) {
        dims[0] = row ? 1 : t->dims[0];
        dims[1] = row ? t->dims[0] : 1;
        wide.rank = 2;
        wide.dims = dims;
    }
    return wide;
}

/* A weight that the model turns before each product lies as it is, and the product reads it so: nothing is copied. */
static int matmul_forward(grad *g)
{
    bz_value_id v = g->l->n_in > 1 ? grad_id(g->b, g->l->node->in[1]) : BZ_NO_VALUE;
    if (v < 0 || g->b->turned[v] < 0)
        return grad_copy(g, g->l->node->op, g->l->node->domain, NULL, 0);
    const char *in[2] = {grad_x(g, 0), grad_x(g, 1)}, *out = grad_y(g, 0);
    grad_layer(g, "FusedMatMul", "com.microsoft", in, 2, &out, 1);
    GRAD_INT(g->b, "transB", 1);
    return 0;
}

static int matmul(grad *g)
{
    build *b = g->b;
    int64_t da[2], db[2], dims[BZ_MAX_RANK];
    bz_value_id lies = b->turned[grad_id(b, g->l->node->in[1])]; /* the other way round */
    const bz_type *w_type = lies >= 0 ? &b->from->types[lies] : grad_type(g, 1);
    bz_type a = widened(grad_type(g, 0), true, da), w = widened(w_type, false, db), y = g->l->out[0];
    int n;
    const int64_t *trans = grad_param(g, "trans", &n);
    bool ta = n == 2 && trans[0], tb = (n == 2 && trans[1]) || lies >= 0;
    double alpha = grad_param_real(g, "alpha", 1);
    if (bz_layer_param(g->l, "trans_batch") || bz_layer_param(g->l, "activation"))
        return grad_fail(g, "it does more than a product: there is no derivative for that");
    const char *dy = grad_dy(g, 0), *x0 = grad_x(g, 0), *x1 = grad_x(g, 1);
    if (grad_type(g, 0)->rank == 1 || grad_type(g, 1)->rank == 1) {
        const bz_type *batch = a.rank > w.rank ? &a : &w;
        memcpy(dims, batch->dims, (size_t)batch->rank * sizeof *dims);
        dims[batch->rank - 2] = a.dims[a.rank - 2];
        dims[batch->rank - 1] = w.dims[w.rank - 1 - (lies >= 0)];
        y.rank = batch->rank;
        y.dims = dims;
        dy = grad_reshape(b, dy, &y);
        x0 = grad_type(g, 0)->rank == 1 ? grad_reshape(b, x0, &a) : x0;
        x1 = grad_type(g, 1)->rank == 1 ? grad_reshape(b, x1, &w) : x1;
    }
    if (grad_wants(g, 0))
        give_product(g, 0,
                     ta ? product(b, "ms:FusedMatMul", (factor){x1, tb}, (factor){dy, true}, alpha)
                        : product(b, "ms:FusedMatMul", (factor){dy, false}, (factor){x1, !tb}, alpha),
                     &y, &a);
    if (!grad_wants(g, 1))
        return 0;
    if (w.rank == 2 && grad_type(g, 1)->rank == 2 && grad_type(g, 0)->rank > 1 && !ta)
        grad_give(g, 1, weights_product(g, &a, &y, dy, tb, alpha));
    else
        give_product(g, 1,
                     tb ? product(b, "ms:FusedMatMul", (factor){dy, true}, (factor){x0, ta}, alpha)
                        : product(b, "ms:FusedMatMul", (factor){x0, !ta}, (factor){dy, false}, alpha),
                     &y, &w);
    return 0;
}

static int gemm(grad *g)
{
    build *b = g->b;
    bool ta = grad_param_int(g, "transa", 0), tb = grad_param_int(g, "transb", 0);
    double alpha = grad_param_real(g, "alpha", 1), beta = grad_param_real(g, "beta", 1);
    factor x = {grad_x(g, 0), ta}, w = {grad_x(g, 1), tb}, dy = {grad_dy(g, 0), false}, turned = {dy.name, true};
    if (bz_layer_param(g->l, "activation"))
        return grad_fail(g, "it does more than a product: there is no derivative for that");
    if (grad_wants(g, 0))
        grad_give(g, 0,
                  ta ? product(b, "Gemm", w, turned, alpha) : product(b, "Gemm", dy, (factor){w.name, !tb}, alpha));
    if (grad_wants(g, 1))
        grad_give(g, 1,
                  tb ? product(b, "Gemm", turned, x, alpha) : product(b, "Gemm", (factor){x.name, !ta}, dy, alpha));
    if (grad_wants(g, 2)) {
        const char *sum = grad_reduce(b, dy.name, &g->l->out[0], grad_type(g, 2));
        grad_give(g, 2, grad_scaled(b, sum, g->l->out[0].dtype, beta));
    }
    return 0;
}

/* Operands and result by their letters, which the layer's key has without blanks and with the result said. */
static int einsum(grad *g)
{
    build *b = g->b;
    const char *equation = grad_param_text(g, "equation", ""), *arrow = strstr(equation, "->");
    const char *comma = strchr(equation, ',');
    if (!arrow || strchr(equation, '.') || g->l->n_in > 2 || (g->l->n_in == 2) != (comma != NULL))
        return grad_fail(g, "there is a derivative for one or two operands without '...', not for '%s'", equation);
    const char *term[2] = {equation, comma ? comma + 1 : ""}, *out = arrow + 2;
    int length[2] = {(int)((comma ? comma : arrow) - equation), comma ? (int)(arrow - comma - 1) : 0};
    for (int k = 0; k < g->l->n_in; k++) {
        if (!grad_wants(g, k))
            continue;
        for (int i = 0; i < length[k]; i++) {
            char letter = term[k][i];
            bool twice = memchr(term[k], letter, (size_t)i), other = memchr(term[1 - k], letter, (size_t)length[1 - k]);
            if (twice || (!other && !strchr(out, letter)))
                return grad_fail(
                    g, "'%s' sums or repeats a dimension of one operand alone: there is no derivative for that",
                    equation);
        }
        const char *value = grad_node(b, "Einsum", grad_dy(g, 0), g->l->n_in == 2 ? grad_x(g, 1 - k) : NULL, NULL);
        const char *text = g->l->n_in == 2 ? bz_arena_printf(b->arena, "%s,%.*s->%.*s", out, length[1 - k], term[1 - k],
                                                             length[k], term[k])
                                           : bz_arena_printf(b->arena, "%s->%.*s", out, length[k], term[k]);
        GRAD_TEXT(b, "equation", text);
        grad_give(g, k, value);
    }
    return 0;
}

static const derivative ROWS[] = {
    {.ops = "MatMul", .back = matmul, .forward = matmul_forward},
    {.ops = "FusedMatMul TransposeMatMul", .domain = "com.microsoft", .back = matmul},
    {.ops = "Gemm", .back = gemm},
    {.ops = "FusedGemm", .domain = "com.microsoft", .back = gemm},
    {.ops = "Einsum", .back = einsum},
};
const derivative_table derivatives_product = DERIVATIVES(ROWS);
