/* com.microsoft: weights that are stored in blocks of few bits, each with a scale. What bytes hold is told as the weights that
 * they are (ms_unpack): parameters are their number, bytes those of the file. */
#include "modelproc/microsoft.h"

/* A Gather from a table of blocks. Bytes hold 8 / bits numbers, along the last dimension. */
static int gather_blocks_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *at = need_any(c, 1), *scale = need_any(c, 2);
    bz_dim dims[BZ_MAX_RANK], whole[BZ_MAX_RANK];
    int axis, blocks, rank = 0;
    int64_t bits = attr_int(c, "bits", 4);
    if (fix_axis(c, attr_int(c, "gather_axis", 0), x->rank, &axis) ||
        fix_axis(c, attr_int(c, "quantize_axis", 1), x->rank, &blocks))
        return -1;
    if (x->rank + at->rank - 1 > BZ_MAX_RANK)
        return call_fail(c, "its result has more than %d dimensions", BZ_MAX_RANK);
    copy_dims(whole, x);
    if (x->dtype == BZ_U8 && (bits == 2 || bits == 4)) {
        whole[x->rank - 1] = dim_mul(c, whole[x->rank - 1], 8 / bits);
        ms_unpack(c, 0, bits, x->rank, whole);
    }
    for (int i = 0; i < x->rank; i++) {
        if (i != axis)
            dims[rank++] = whole[i];
        for (int k = 0; i == axis && k < at->rank; k++)
            dims[rank++] = at->dims[k];
    }
    param_int(c, "axis", axis);
    param_int(c, "block", attr_int(c, "block_size", 128));
    return set_out(c, 0, scale->dtype, rank, dims);
}

/* Reads what it picks, as it is stored, and its scales. */
static void gather_blocks_cost(call *c)
{
    int64_t picked = elements(&c->out[0]), all = elements(&c->in[0]),
            bytes = bz_type_bytes(&c->out[0]) + bz_type_bytes(&c->in[1]);
    for (int k = 0; k < c->node->n_in && all > 0; k++)
        if (k != 1 && in_type(c, k)) {
            double share = (double)picked / (double)all, of = (double)bz_type_bytes(&c->in[k]);
            bytes = count_add(bytes, (int64_t)(of * (share < 1 ? share : 1)));
        }
    c->bytes = bytes;
}

/* a [..., k] by weights of n rows: result k of the call, and its work. */
static int block_product(call *c, const bz_type *a, int result, int64_t k, int64_t n)
{
    bz_dim dims[BZ_MAX_RANK];
    if (k <= 0 || n <= 0 || bz_is_symbol(k) || bz_is_symbol(n) || a->rank == 0 || !dims_fit(last_dim(a, 1), k))
        return call_fail(c, "its weights are %lld x %lld, its operand ends in %lld", (long long)k, (long long)n,
                         (long long)last_dim(a, 1));
    copy_dims(dims, a);
    dims[a->rank - 1] = n;
    set_out(c, result, a->dtype, a->rank, dims);
    c->macs =
        count_add(c->macs, count_mul(elements(&(bz_type){.kind = BZ_TYPE_TENSOR, .rank = a->rank, .dims = dims}), k));
    return 0;
}

static void note_blocks(call *c)
{
    param_int(c, "bits", attr_int(c, "bits", 4));
    param_int(c, "block", attr_int(c, "block_size", 0));
}

/* A norm before, a gate and its partner behind: a, skip, scale; then weights, scales and bias of each. */
static int gated_blocks_shape(call *c)
{
    const bz_type *a = need_any(c, 0);
    int64_t k = attr_int(c, "K", 0), n = attr_int(c, "N", 0);
    for (int i = 0; i < 2; i++) {
        if (block_product(c, a, 0, k, n))
            return -1;
        ms_unpack(c, 3 + 3 * i, attr_int(c, "bits", 4), 2, (bz_dim[]){n, k});
    }
    set_type(c, 1, a);
    note_blocks(c);
    param_text(c, "activation", attr_text(c, "activation", ""));
    return 0;
}

static int qkv_blocks_shape(call *c)
{
    const bz_type *a = need_any(c, 0);
    int64_t k = attr_int(c, "K", 0), n[3] = {attr_int(c, "Nq", 0), attr_int(c, "Nkv", 0), attr_int(c, "Nkv", 0)};
    for (int i = 0; i < 3; i++) {
        if (block_product(c, a, i, k, n[i]))
            return -1;
        ms_unpack(c, 3 + 3 * i, attr_int(c, "bits", 4), 2, (bz_dim[]){n[i], k});
    }
    set_type(c, 3, a);
    note_blocks(c);
    return 0;
}

/* arg: numbers in a byte. b [n, k / arg]. */
static int real_blocks_shape(call *c)
{
    const bz_type *a = need_any(c, 0), *b = need(c, 1, 2);
    bz_dim dims[2] = {b->dims[0], dim_mul(c, b->dims[1], c->op->arg)};
    if (c->op->arg == 2 && b->dtype == BZ_U8) {
        ms_unpack(c, 1, 4, 2, dims);
        c->in[1].dtype = BZ_F4E2M1;
    }
    if (bz_is_symbol(dims[0]) || bz_is_symbol(dims[1]))
        return set_unknown(c, 0, a->dtype);
    param_int(c, "block", attr_int(c, "block_size", c->op->arg == 2 ? 16 : 128));
    return block_product(c, a, 0, dims[1], dims[0]);
}

/* Weights and scales in one row of bytes; what they were is an operand: [k, n]. */
static int blob_shape(call *c)
{
    const bz_type *a = need_any(c, 0);
    int64_t n = 0;
    const int64_t *dims = in_ints(c, 2, &n);
    if (!dims || n != 2 || bz_is_symbol(dims[0]) || bz_is_symbol(dims[1]))
        return rule_none(c);
    param_int(c, "type", attr_int(c, "blk_quant_type", 1));
    return block_product(c, a, 0, dims[0], dims[1]);
}

/* How many bytes there are is the format's own. */
static int quantize_bfp_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim rank = x->rank;
    set_out(c, 0, BZ_U8, 1, (bz_dim[]){new_symbol(c)});
    set_out(c, 1, BZ_I64, 1, &rank);
    set_out(c, 2, BZ_I64, 1, &rank);
    set_ints(c, 1, x->dims, rank);
    param_int(c, "bfp", attr_int(c, "bfp_type", 0));
    return 0;
}

static int dequantize_bfp_shape(call *c)
{
    bz_dtype to;
    int64_t n = 0;
    need(c, 1, 1);
    if (attr_dtype(c, "dtype", BZ_F32, &to))
        return -1;
    const int64_t *dims = in_ints(c, 1, &n);
    if (!dims || n > BZ_MAX_RANK)
        set_unknown(c, 0, to);
    else
        set_out(c, 0, to, (int)n, dims);
    param_int(c, "bfp", attr_int(c, "bfp_type", 0));
    return 0;
}

static const op ROWS[] = {
    {"GatherBlockQuantized", MICROSOFT, "gatherblocks", BZ_COMPUTE, gather_blocks_shape, .cost = gather_blocks_cost,
     .flops = 2, .labels = "x indices - -"},
    {"MatMulNBitsMlp", MICROSOFT, "matmulnbitsmlp", BZ_COMPUTE, gated_blocks_shape, .flops = 6,
     .labels = "a skip scale gate - b up - c"},
    {"MatMulNBitsQkv", MICROSOFT, "matmulnbitsqkv", BZ_COMPUTE, qkv_blocks_shape, .flops = 6,
     .labels = "a skip scale q - bq k - bk v - bv"},
    {"MatMulBlockQuantizedFp4Weight", MICROSOFT, "matmulfp4", BZ_COMPUTE, real_blocks_shape, .labels = "a b - - - bias",
     .arg = 2},
    {"MatMulBlockQuantizedFp8Weight", MICROSOFT, "matmulfp8", BZ_COMPUTE, real_blocks_shape, .labels = "a b - - bias",
     .arg = 1},
    {"MatMulFpQ4", MICROSOFT, "matmulfpq4", BZ_COMPUTE, blob_shape, .labels = "a b - > y"},
    {"QuantizeBFP", MICROSOFT, "quantizebfp", BZ_COMPUTE, quantize_bfp_shape, .flops = 3, .labels = "x"},
    {"DequantizeBFP", MICROSOFT, "dequantizebfp", BZ_COMPUTE, dequantize_bfp_shape, .flops = 2, .labels = "x - - > y"},
};
const op_table ops_microsoft_block = OP_TABLE(ROWS);
