/* com.microsoft: the operators of one runtime that belong to no other family: int8 in the orders of cuBLASLt, recurrent layers
 * with attention or quantized, complex numbers, words, and nodes whose content is another program's. */
#include "modelproc/geometry.h"
#include "modelproc/microsoft.h"

/* Of operands and of the result. */
static void note_orders(call *c, const char *one, const char *two, const char *three)
{
    const int64_t orders[] = {attr_int(c, one, 1), attr_int(c, two, 1), three ? attr_int(c, three, 1) : 0};
    param_ints(c, "order", orders, three ? 3 : 2);
}

static int to_order(call *c)
{
    const bz_type *x = need_any(c, 0);
    set_out(c, 0, BZ_I8, x->rank, x->dims);
    note_orders(c, "order_input", "order_output", NULL);
    return 0;
}

static int from_order(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dtype to;
    if (attr_dtype(c, "to", BZ_F32, &to))
        return -1;
    set_out(c, 0, to, x->rank, x->dims);
    note_orders(c, "order_input", "order_output", NULL);
    param_text(c, "to", bz_dtype_name(to));
    return 0;
}

static int ordered_product_shape(call *c)
{
    const bz_type *a = need_any(c, 0), *b = need_any(c, 2);
    bz_dim dims[BZ_MAX_RANK];
    int rank;
    if (matmul_shape(c, a, b, &rank, dims))
        return -1;
    set_out(c, 0, a->dtype, rank, dims);
    note_orders(c, "order_A", "order_B", "order_Y");
    return 0;
}

/* x [steps, batch, in], weights [directions, …]. arg: where the rows of weights say how wide the state is. */
static int lstm_shape(call *c)
{
    const bz_type *x = need(c, 0, 3), *w = need(c, 1, 3), *r = need(c, 2, 3);
    bz_dim hidden = attr_int(c, "hidden_size", 0), directions = w->dims[0];
    hidden = hidden > 0 && hidden <= BZ_MAX_DIM ? hidden : r->dims[c->op->arg];
    set_out(c, 0, x->dtype, 4, (bz_dim[]){x->dims[0], directions, x->dims[1], hidden});
    for (int k = 1; k < 3; k++)
        set_out(c, k, x->dtype, 3, (bz_dim[]){directions, x->dims[1], hidden});
    param_int(c, "hidden", hidden);
    param_text(c, "direction", attr_text(c, "direction", "forward"));
    return 0;
}

/* Every step multiplies by all weights once: of the gates, and of the query and the layer of attention where they are. What
 * is attended to is multiplied by its weights once for all. */
static void lstm_cost(call *c)
{
    static const int EACH[] = {1, 2, 8, 13};
    const bz_type *x = &c->in[0], *memory = in_type(c, 11), *of_memory = in_type(c, 9);
    int64_t rows = count_mul(x->dims[0], x->dims[1]), sum = 0;
    bool attends = !strcmp(c->node->op, "AttnLSTM");
    for (int i = 0; i < (attends ? 4 : 2); i++)
        if (in_type(c, EACH[i]))
            sum = count_add(sum, elements(&c->in[EACH[i]]));
    c->macs = count_mul(rows, sum);
    if (attends && memory && of_memory)
        c->macs = count_add(c->macs, count_mul(elements(memory), last_dim(of_memory, 1)));
    c->flops = count_mul(count_mul(rows, c->in[1].dims[0]), count_mul(17, noted(c, "hidden")));
}

/* Every row of one from every row of the other. */
static int distance_shape(call *c)
{
    const bz_type *a = need(c, 0, 2), *b = need(c, 1, 2);
    same_dtype(c, a, b);
    param_text(c, "metric", attr_text(c, "metric", "sqeuclidean"));
    return set_out(c, 0, a->dtype, 2, (bz_dim[]){a->dims[0], b->dims[0]});
}

static void distance_cost(call *c)
{
    c->macs = count_mul(elements(&c->out[0]), c->in[0].dims[1]);
}

static int reduce_integer_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    if (ms_reduce_mean_shape(c))
        return -1;
    c->out[0].dtype = x->dtype == BZ_U8 || x->dtype == BZ_U32 ? BZ_U32 : BZ_I32;
    return 0;
}

/* How many elements of `a` are not 0 is not known: it has a shape and no price. */
static int sparse_product_shape(call *c)
{
    const bz_type *a = in_type(c, 0), *b = in_type(c, 1);
    bool trans_a = attr_int(c, "transA", 0) != 0, trans_b = attr_int(c, "transB", 0) != 0;
    if (!a || !b || a->rank != 2 || b->kind != BZ_TYPE_TENSOR || b->rank < 2)
        return rule_none(c);
    bz_dim dims[BZ_MAX_RANK];
    copy_dims(dims, b);
    dims[b->rank - 2] = a->dims[trans_a];
    dims[b->rank - 1] = b->dims[b->rank - 1 - trans_b];
    return set_out(c, 0, b->dtype, b->rank, dims);
}

static int finite_shape(call *c)
{
    return set_out(c, 0, BZ_BOOL, 0, NULL);
}

/* A path through a matrix [m, n] or [1, m, n] has between max(m, n) and m + n - 1 points. */
static int warping_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    if (x->rank != 2 && x->rank != 3)
        return call_fail(c, "its costs have %d dimensions", x->rank);
    return set_out(c, 0, BZ_I32, 2, (bz_dim[]){2, new_symbol(c)});
}

/* arg: where a bias stands before ratio and training mode. Without training it drops nothing; the mask has a bit for each. */
static int bit_dropout_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int64_t n = elements(x);
    set_type(c, 0, x);
    set_out(c, 1, BZ_U32, 1, (bz_dim[]){n < 0 ? new_symbol(c) : (n + 31) / 32});
    int64_t training = 0;
    bool drops = in_type(c, (int)c->op->arg + 2) && (!in_number(c, (int)c->op->arg + 2, &training) || training);
    c->view = !c->op->arg && !drops && (c->node->n_out < 2 || c->node->out[1] < 0);
    return 0;
}

static int embedding_shape(call *c)
{
    const bz_type *w = need(c, 0, 2), *at = need_any(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    if (at->rank == BZ_MAX_RANK)
        return call_fail(c, "its result has more than %d dimensions", BZ_MAX_RANK);
    copy_dims(dims, at);
    dims[at->rank] = w->dims[1];
    return set_out(c, 0, w->dtype, at->rank + 1, dims);
}

static void embedding_cost(call *c)
{
    c->bytes = count_add(count_mul(2, bz_type_bytes(&c->out[0])), bz_type_bytes(&c->in[1]));
}

static int unfold_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    int axis;
    int64_t size = attr_int(c, "size", 0), step = attr_int(c, "step", 1);
    if (fix_axis(c, attr_int(c, "dim", -1), x->rank, &axis))
        return -1;
    if (x->rank == BZ_MAX_RANK || size < 1 || step < 1 || bz_is_symbol(size) ||
        (!bz_is_symbol(x->dims[axis]) && x->dims[axis] < size))
        return call_fail(c, "slices of %lld every %lld of %lld", (long long)size, (long long)step,
                         (long long)x->dims[axis]);
    copy_dims(dims, x);
    dims[axis] = dim_add(c, dim_div(c, dim_sub(c, x->dims[axis], size), step), 1);
    dims[x->rank] = size;
    param_int(c, "axis", axis);
    param_int(c, "size", size);
    param_int(c, "step", step);
    return set_out(c, 0, x->dtype, x->rank + 1, dims);
}

/* A dimension for the tokens of the longest string. */
static int tokenizer_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[3];
    if (x->rank != 1 && x->rank != 2)
        return call_fail(c, "strings of %d dimensions", x->rank);
    copy_dims(dims, x);
    dims[x->rank] = new_symbol(c);
    return set_out(c, 0, BZ_STRING, x->rank + 1, dims);
}

/* Characters of words are embedded, and a window slides over them: [..., characters] -> [..., filters]. */
static int words_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *w = need_any(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    if (x->rank < 1 || w->rank < 1)
        return call_fail(c, "words of %d dimensions, weights of %d", x->rank, w->rank);
    copy_dims(dims, x);
    dims[x->rank - 1] = w->dims[0];
    return set_out(c, 0, w->dtype, x->rank, dims);
}

static void words_cost(call *c)
{
    const bz_type *x = &c->in[0], *w = &c->in[1];
    int64_t length = last_dim(x, 1), window = last_dim(w, 2), words = length > 0 ? elements(x) / length : 0;
    c->macs = count_mul(count_mul(words, length - window + 1), elements(w));
}

static int bifurcation_shape(call *c)
{
    const bz_type *match = need_any(c, 2);
    set_out(c, 0, BZ_I64, 1, (bz_dim[]){new_symbol(c)});
    return set_type(c, 1, match);
}

static int quantized_embed_shape(call *c)
{
    const bz_type *ids = need(c, 0, 2), *table = need(c, 2, 2);
    set_out(c, 0, BZ_F32, 3, (bz_dim[]){ids->dims[0], ids->dims[1], table->dims[1]});
    return set_out(c, 1, BZ_I32, 1, ids->dims);
}

static const op ROWS[] = {
    {"QuantizeWithOrder", MICROSOFT, "quantizeorder", BZ_COMPUTE, to_order, .flops = 2, .labels = "x -"},
    {"DequantizeWithOrder", MICROSOFT, "dequantizeorder", BZ_COMPUTE, from_order, .flops = 1, .labels = "x -"},
    {"QOrderedMatMul", MICROSOFT, "orderedmatmul", BZ_COMPUTE, ordered_product_shape, .cost = cost_matmul,
     .labels = "a - b - - bias c -"},
    {"QOrderedGelu", MICROSOFT, "qgelu", BZ_COMPUTE, rule_same, .flops = 8, .labels = "x - -"},
    {"QOrderedLayerNormalization", MICROSOFT, "qlayernorm", BZ_COMPUTE, rule_same, .flops = 10,
     .labels = "x - scale b -"},
    {"DynamicQuantizeLSTM", MICROSOFT, "qlstm", BZ_COMPUTE, lstm_shape, .cost = lstm_cost,
     .labels = "x w r b - - - p - - - -", .arg = 1},
    {"AttnLSTM", MICROSOFT, "attentionlstm", BZ_COMPUTE, lstm_shape, .cost = lstm_cost,
     .labels = "x w r b - - - p wq wm v m - wa", .arg = 2},
    {"ComplexMul", MICROSOFT, "complexmul", BZ_COMPUTE, ms_binary_shape, .flops = 3, .labels = "a b", .arg = 1},
    {"ComplexMulConj", MICROSOFT, "complexmulconj", BZ_COMPUTE, ms_binary_shape, .flops = 3, .labels = "a b", .arg = 1},
    {"CDist", MICROSOFT, "distance", BZ_COMPUTE, distance_shape, .cost = distance_cost, .labels = "a b"},
    {"ReduceSumInteger", MICROSOFT, "reducesum", BZ_COMPUTE, reduce_integer_shape, .flops = 1, .labels = "x > y"},
    {"SparseToDenseMatMul", MICROSOFT, "sparsematmul", BZ_COMPUTE, sparse_product_shape,
     .flags = OP_RANKLESS | OP_UNPRICED, .labels = "a b"},
    {"IsAllFinite", MICROSOFT, "isallfinite", BZ_COMPUTE, finite_shape, .flags = OP_RANKLESS, .flops = 1,
     .labels = "x..."},
    {"DynamicTimeWarping", MICROSOFT, "timewarping", BZ_COMPUTE, warping_shape, .flops = 4, .labels = "x"},
    {"MaxpoolWithMask", MICROSOFT, "maxpool", BZ_COMPUTE, shape_pool, .cost = cost_pool, .labels = "x mask > y"},
    {"SampleOp", MICROSOFT, "sample", BZ_MEMORY, rule_same, .labels = "x"},
    {"BitmaskDropout", MICROSOFT, "dropout", BZ_MEMORY, bit_dropout_shape, .labels = "x"},
    {"BitmaskBiasDropout", MICROSOFT, "biasdropout", BZ_COMPUTE, bit_dropout_shape, .flops = 2,
     .labels = "x bias residual", .arg = 2},
    {"TorchEmbedding", MICROSOFT, "gather", BZ_MEMORY, embedding_shape, .cost = embedding_cost, .labels = "x indices"},
    {"UnfoldTensor", MICROSOFT, "unfold", BZ_MEMORY, unfold_shape, .labels = "x"},
    {"Tokenizer", MICROSOFT, "tokenizer", BZ_COMPUTE, tokenizer_shape, .labels = "x"},
    {"WordConvEmbedding", MICROSOFT, "wordconv", BZ_COMPUTE, words_shape, .cost = words_cost, .labels = "x w b table"},
    {"BifurcationDetector", MICROSOFT, "bifurcation", BZ_COMPUTE, bifurcation_shape, .labels = "source tokens"},
    {"QEmbedLayerNormalization", MICROSOFT, "qembedlayernorm", BZ_COMPUTE, quantized_embed_shape, .flops = 10,
     .labels = "ids segments w position segment scale b"},
    {"BeamSearch", MICROSOFT, "beamsearch", BZ_COMPUTE, ms_search_shape, .flags = OP_UNPRICED, .labels = "x", .arg = 1},
    {"WhisperBeamSearch", MICROSOFT, "beamsearch", BZ_COMPUTE, ms_search_shape, .flags = OP_UNPRICED, .labels = "x",
     .arg = 1},
    {"GreedySearch", MICROSOFT, "greedysearch", BZ_COMPUTE, ms_search_shape, .flags = OP_UNPRICED, .labels = "x"},
    {"Sampling", MICROSOFT, "sampling", BZ_COMPUTE, ms_search_shape, .flags = OP_UNPRICED, .labels = "x"},
    {"EPContext", MICROSOFT, "epcontext", BZ_COMPUTE, rule_none, .flags = OP_RANKLESS | OP_UNPRICED, .labels = "x..."},
    {"Snpe", MICROSOFT, "snpe", BZ_COMPUTE, rule_none, .flags = OP_RANKLESS | OP_UNPRICED, .labels = "x..."},
};
const op_table ops_microsoft_ordered = OP_TABLE(ROWS);
