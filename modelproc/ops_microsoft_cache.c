/* Attention of com.microsoft over packed, paged and sparse sequences, and what stands beside it in language models: states,
 * gates, rotary embeddings, hashes of n-grams. */
#include "modelproc/cache.h"
#include "modelproc/microsoft.h"

static bz_dim packed_keys(call *c, bz_dim tokens, bz_dim batch)
{
    return batch ? dim_div(c, tokens, batch) : 0; /* the fewest scores are those of equally long sequences */
}

/* q [tokens, width] or [tokens, heads, 3, head] with keys and values in it. */
static int packed_multihead_shape(call *c)
{
    const bz_type *q = need_any(c, 0), *offset = need(c, 4, 2), *v = in_type(c, 2);
    int64_t heads;
    if (ms_head_count(c, "num_heads", &heads))
        return -1;
    if ((q->rank != 2 && q->rank != 4) || (v && v->rank != 2))
        return call_fail(c, "queries of %d dimensions", q->rank);
    bz_dim width = q->rank == 4 ? dim_mul(c, q->dims[1], q->dims[3]) : q->dims[1];
    bz_dim v_width = v && q->rank == 2 ? v->dims[1] : width;
    set_out(c, 0, q->dtype, 2, (bz_dim[]){q->dims[0], v_width});
    ms_note_attention(c, heads, packed_keys(c, q->dims[0], offset->dims[0]), width, v_width);
    return 0;
}

/* Which blocks of the cache belong to a sequence is in its row of the block table; how many tokens are in them is data. They
 * are taken to be full, as the length of its cache is that of other attention where nothing else is said. */
static int paged_shape(call *c)
{
    const bz_type *q = need(c, 0, 2), *k = in_type(c, 1), *cache = need(c, 3, 4), *table = need(c, 7, 2);
    int64_t heads, kv_heads, window = attr_int(c, "local_window_size", -1), v_head = attr_int(c, "v_head_size", 0);
    if (ms_head_count(c, "num_heads", &heads) || ms_head_count(c, "kv_num_heads", &kv_heads))
        return -1;
    bool latent = !strcmp(attr_text(c, "kv_cache_layout", "SEPARATE"), "LATENT");
    bz_dim head = dim_div(c, q->dims[1], k || latent ? heads : heads + 2 * kv_heads);
    bz_dim width = dim_mul(c, head, heads), keys = dim_mul(c, table->dims[1], cache->dims[1]);
    bz_dim v_width = v_head > 0 && !bz_is_symbol(v_head) ? dim_mul(c, v_head, heads) : width;
    set_out(c, 0, q->dtype, 2, (bz_dim[]){q->dims[0], v_width});
    set_type(c, 1, cache);
    set_type(c, 2, in_type(c, 4) ? in_type(c, 4) : cache);
    ms_note_attention(c, heads, window > 0 && !bz_is_symbol(keys) && window < keys ? window : keys, width, v_width);
    param_int(c, "kv_heads", kv_heads);
    param_int(c, "rotary", attr_int(c, "do_rotary", 0) != 0);
    return 0;
}

static void paged_cost(call *c)
{
    const bz_type *cache = &c->in[3], *table = &c->in[7];
    ms_attention_cost(c);
    int64_t tokens = c->in[0].dims[0], rows = count_mul(table->dims[0], noted(c, "kv")),
            all = count_mul(cache->dims[0], cache->dims[1]);
    int64_t row = all > 0 ? bz_type_bytes(cache) / all : 0,
            bytes = bz_type_bytes(&c->in[0]) + bz_type_bytes(&c->out[0]);
    int64_t caches = in_type(c, 4) ? 2 : 1;
    for (int k = 1; k < 3; k++)
        bytes = count_add(bytes, in_type(c, k) ? bz_type_bytes(&c->in[k]) : 0);
    c->bytes = count_add(bytes, count_mul(count_mul(caches, row), count_add(rows < all ? rows : all, tokens)));
}

/* Keys of a query: so many blocks as a row of the mask has on average, and no more than there are tokens. */
static int sparse_shape(call *c)
{
    const bz_type *q = need(c, 0, 3), *k = in_type(c, 1), *past = need(c, 3, 4), *rows = need(c, 5, 2),
                  *columns = need(c, 6, 2);
    int64_t heads, kv_heads, total, block = attr_int(c, "sparse_block_size", 0);
    if (ms_head_count(c, "num_heads", &heads) || ms_head_count(c, "kv_num_heads", &kv_heads))
        return -1;
    if (block <= 0 || block > BZ_MAX_DIM)
        return call_fail(c, "sparse_block_size is %lld", (long long)block);
    bz_dim head = dim_div(c, q->dims[2], k ? heads : heads + 2 * kv_heads), width = dim_mul(c, head, heads);
    bz_dim keys = past->dims[2], lines = dim_sub(c, rows->dims[1], 1);
    if (in_number(c, 7, &total) && total > 0 && (bz_is_symbol(keys) || total < keys))
        keys = total;
    if (!bz_is_symbol(lines) && lines > 0 && !bz_is_symbol(columns->dims[1])) {
        int64_t mean = count_mul(columns->dims[1], block) / lines;
        keys = !bz_is_symbol(keys) && mean < keys ? mean : keys;
    }
    set_out(c, 0, q->dtype, 3, (bz_dim[]){q->dims[0], q->dims[1], width});
    set_type(c, 1, past);
    set_type(c, 2, in_type(c, 4) ? in_type(c, 4) : past);
    ms_note_attention(c, heads, keys, width, width);
    param_int(c, "kv_heads", kv_heads);
    param_int(c, "rotary", attr_int(c, "do_rotary", 0) != 0);
    param_int(c, "block", block);
    return 0;
}

static void sparse_cost(call *c)
{
    ms_cached_cost(c, 3, 2, 9);
}

/* Sequences come first: q [length, batch, width], k [all, batch, width]; what of the cache is used is said by operands. */
static int decoder_shape(call *c)
{
    const bz_type *q = need(c, 0, 3), *k = need(c, 1, 3), *past = in_type(c, 6);
    int64_t heads, fixed, used;
    if (ms_head_count(c, "num_heads", &heads))
        return -1;
    if (past && past->rank != 4)
        return call_fail(c, "its cache has %d dimensions", past->rank);
    bool known = in_number(c, 8, &fixed) && in_number(c, 9, &used);
    bz_dim keys = !known  ? new_symbol(c)
                  : fixed ? (used && past ? past->dims[2] : k->dims[0])
                          : (used && past ? dim_add(c, past->dims[2], q->dims[0]) : q->dims[0]);
    bz_dim dims[4] = {q->dims[1], heads, keys, dim_div(c, q->dims[2], heads)};
    set_type(c, 0, q);
    for (int i = 1; i < 3; i++)
        set_out(c, i, q->dtype, 4, dims);
    ms_note_attention(c, heads, keys, q->dims[2], q->dims[2]);
    if (known)
        param_int(c, "project", !(fixed && used));
    return 0;
}

static void decoder_cost(call *c)
{
    ms_attention_cost(c);
    int64_t of = noted(c, "project") ? elements(&c->in[noted(c, "kv") == c->in[1].dims[0] ? 1 : 0]) : 0;
    c->macs = count_add(c->macs, count_mul(elements(&c->in[0]), last_dim(&c->in[2], 1)));
    c->macs = count_add(c->macs, count_mul(of, last_dim(&c->in[3], 1)));
}

/* arg: the operand with the weights of all three projections. Tokens look at `window` others on both sides; which ones look
 * at all, and are looked at, is data: they are left out. */
static int longformer_shape(call *c)
{
    const bz_type *x = need(c, 0, 3), *w = need(c, (int)c->op->arg, 2);
    int64_t heads, window = attr_int(c, "window", 0);
    if (ms_head_count(c, "num_heads", &heads))
        return -1;
    if (window <= 0 || window > INT32_MAX || !dims_fit(x->dims[2], w->dims[0]))
        return call_fail(c, "a window of %lld, inputs of %lld, weights for %lld", (long long)window,
                         (long long)x->dims[2], (long long)w->dims[0]);
    bz_dim keys = bz_is_symbol(x->dims[1]) || x->dims[1] > 2 * window + 1 ? 2 * window + 1 : x->dims[1];
    set_type(c, 0, x);
    ms_note_attention(c, heads, keys, x->dims[2], x->dims[2]);
    return 0;
}

static int ordered_attention_shape(call *c)
{
    const bz_type *x = need(c, 0, 3), *w[3];
    int64_t heads;
    if (ms_head_count(c, "num_heads", &heads))
        return -1;
    for (int i = 0; i < 3; i++)
        w[i] = need(c, 5 + i, 2);
    set_out(c, 0, x->dtype, 3, (bz_dim[]){x->dims[0], x->dims[1], w[2]->dims[1]});
    ms_note_attention(c, heads, x->dims[1], w[0]->dims[1], w[2]->dims[1]);
    param_int(c, "causal", attr_int(c, "unidirectional", 0) != 0);
    return 0;
}

static void ordered_attention_cost(call *c)
{
    ms_attention_cost(c);
    for (int i = 5; i < 8; i++)
        c->macs = count_add(c->macs, count_mul(elements(&c->in[0]), last_dim(&c->in[i], 1)));
}

/* q, k [tokens, heads, size], v [tokens, v_heads, v_size], or all of them with the batch before; the state is [batch,
 * v_heads, v_size, size]. */
static int delta_shape(call *c)
{
    const bz_type *q = need_any(c, 0), *k = need(c, 1, q->rank), *v = need(c, 2, q->rank), *lengths = in_type(c, 3),
                  *state = in_type(c, 6);
    int64_t capacity = attr_int(c, "state_update_capacity", 0);
    int r = q->rank;
    if ((r != 3 && r != 4) || capacity < 0 || capacity > 8 || (lengths && lengths->rank != 1) ||
        (state && state->rank != 4))
        return call_fail(c, "queries of %d dimensions, %lld updates", r, (long long)capacity);
    bz_dim batch = r == 4    ? q->dims[0]
                   : state   ? state->dims[0]
                   : lengths ? dim_sub(c, lengths->dims[0], 1)
                             : new_symbol(c);
    bz_dim heads = v->dims[r - 2], size = q->dims[r - 1], v_size = v->dims[r - 1], dims[4],
           fixed[4] = {batch, heads, v_size, size};
    copy_dims(dims, v);
    if (!bz_is_symbol(heads) && !bz_is_symbol(q->dims[r - 2]) && q->dims[r - 2] > heads)
        dims[r - 2] = q->dims[r - 2];
    bz_dim update = dim_add(c, heads, dim_add(c, dim_mul(c, k->dims[r - 2], size), dim_mul(c, heads, v_size)));
    set_out(c, 0, q->dtype, r, dims);
    set_out(c, 1, BZ_F32, 4, fixed);
    set_out(c, 2, BZ_F32, 2, (bz_dim[]){batch, dim_mul(c, capacity, update)});
    param_text(c, "rule", attr_text(c, "update_rule", "gated_delta"));
    return 0;
}

static void delta_cost(call *c)
{
    bool delta = strstr(attr_text(c, "update_rule", "gated_delta"), "delta") != NULL;
    c->macs = count_mul(count_mul(elements(&c->in[2]), last_dim(&c->in[0], 1)), delta ? 3 : 2);
}

/* Tokens first: x [tokens, channels], w [channels, 1, k], the state of each sequence [channels, (k - 1) · dilation]. */
static int varlen_conv_shape(call *c)
{
    const bz_type *x = need(c, 0, 2), *w = need(c, 1, 3), *state = need(c, 4, 3);
    int64_t capacity = attr_int(c, "state_update_capacity", 0);
    if (!dims_fit(x->dims[1], w->dims[0]) || capacity < 0 || capacity > 8)
        return call_fail(c, "%lld channels, weights for %lld, %lld updates", (long long)x->dims[1],
                         (long long)w->dims[0], (long long)capacity);
    set_type(c, 0, x);
    set_type(c, 1, state);
    param_text(c, "activation", attr_text(c, "activation", "none"));
    param_int(c, "dilation", attr_int(c, "dilation", 1));
    return set_out(c, 2, x->dtype, 3, (bz_dim[]){state->dims[0], capacity, x->dims[1]});
}

static void varlen_conv_cost(call *c)
{
    c->macs = count_mul(elements(&c->in[0]), c->in[1].dims[2]);
}

/* decay is like a, beta like b. */
static int attention_gate_shape(call *c)
{
    const bz_type *a = need_any(c, 0);
    set_type(c, 0, a);
    return set_type(c, 1, in_type(c, 3) ? in_type(c, 3) : a);
}

/* q and k stand behind the angles, each with its half turned: q, k and their results. */
static int gemma_rotary_shape(call *c)
{
    const bz_type *q = need(c, 1, 4), *k = need(c, 3, 4);
    set_type(c, 0, q);
    return set_type(c, 1, k);
}

static void gemma_rotary_cost(call *c)
{
    c->flops = count_mul(3, count_add(elements(&c->in[1]), elements(&c->in[3])));
}

/* Three positions for each token, of time, height and width, pick rows of both tables. */
static int position_rotary_shape(call *c)
{
    if (ms_rotary_shape(c))
        return -1;
    int n;
    const int64_t *sections = attr_ints(c, "mrope_section", &n);
    param_ints(c, "sections", sections, n == 3 ? n : 0);
    param_int(c, "layout", attr_int(c, "mrope_layout", 0));
    return 0;
}

static void position_rotary_cost(call *c)
{
    cache_bytes(c, &(cache_use){.table = 2, .tables = 2, .rows = count_mul(3, token_rows(&c->in[0]))});
}

/* arg: the operand with the ends of packed sequences, or 0: ids [batch, tokens]. */
static int hash_shape(call *c)
{
    int64_t order = attr_int(c, "max_ngram_size", 0), heads = attr_int(c, "n_head_per_ngram", 0);
    bool packed = c->op->arg > 0;
    const bz_type *ids = need(c, 0, packed ? 1 : 2), *ends = packed ? need(c, (int)c->op->arg, 1) : NULL;
    if (order < 2 || order > INT32_MAX || heads < 1 || heads > INT32_MAX)
        return call_fail(c, "n-grams up to %lld with %lld heads", (long long)order, (long long)heads);
    bz_dim dims[3] = {ids->dims[0], packed ? (order - 1) * heads : ids->dims[1], (order - 1) * heads};
    bz_dim kept[2] = {packed ? dim_sub(c, ends->dims[0], 1) : ids->dims[0], order - 1};
    set_out(c, 0, ids->dtype, packed ? 2 : 3, dims);
    set_out(c, 1, ids->dtype, 2, kept);
    param_int(c, "order", order);
    param_int(c, "heads", heads);
    return set_out(c, 2, BZ_I32, 2, kept);
}

#define KV "q k v past"
static const op ROWS[] = {
    {"PackedMultiHeadAttention", MICROSOFT, "packedattention", BZ_COMPUTE, packed_multihead_shape,
     .cost = ms_attention_cost, .labels = "q k v b offset - bias"},
    {"PagedAttention", MICROSOFT, "pagedattention", BZ_COMPUTE, paged_shape, .cost = paged_cost,
     .labels = "q k v cache - - - table"},
    {"SparseAttention", MICROSOFT, "sparseattention", BZ_COMPUTE, sparse_shape, .cost = sparse_cost, .labels = KV},
    {"DecoderAttention", MICROSOFT, "decoderattention", BZ_COMPUTE, decoder_shape, .cost = decoder_cost,
     .labels = "q k wq wkv b mask past"},
    {"LongformerAttention", MICROSOFT, "longformerattention", BZ_COMPUTE, longformer_shape, .cost = ms_attention_cost,
     .labels = "x w b mask wg bg", .arg = 1},
    {"QOrderedLongformerAttention", MICROSOFT, "longformerattention", BZ_COMPUTE, longformer_shape,
     .cost = ms_attention_cost, .labels = "x - w - b - - mask wg - bg", .arg = 2},
    {"QOrderedAttention", MICROSOFT, "qattention", BZ_COMPUTE, ordered_attention_shape, .cost = ordered_attention_cost,
     .labels = "x - - - - wq wk wv - - - bq bk bv - - - mask"},
    {"GatedDeltaNet", MICROSOFT, "linearattention", BZ_COMPUTE, delta_shape, .cost = delta_cost,
     .labels = "q k v - decay beta past"},
    {"VarlenCausalConvWithState", MICROSOFT, "causalconv", BZ_COMPUTE, varlen_conv_shape, .cost = varlen_conv_cost,
     .labels = "x w - b past"},
    {"LinearAttentionGate", MICROSOFT, "attentiongate", BZ_COMPUTE, attention_gate_shape, .flops = 6,
     .labels = "a bias scale b"},
    {"GatedRMSNorm", MICROSOFT, "gatedrmsnorm", BZ_COMPUTE, rule_same, .flops = 10, .labels = "x scale gate"},
    {"GatedAdd", MICROSOFT, "gatedadd", BZ_COMPUTE, rule_same, .flops = 2, .labels = "x y gate"},
    {"EngramGate", MICROSOFT, "engramgate", BZ_COMPUTE, rule_same, .flops = 13, .labels = "k q v kscale qscale scale"},
    {"GemmaRotaryEmbedding", MICROSOFT, "gemmarotary", BZ_COMPUTE, gemma_rotary_shape, .cost = gemma_rotary_cost,
     .flops = 2, .labels = "angle q - k"},
    {"MRotaryEmbedding", MICROSOFT, "mrotary", BZ_COMPUTE, position_rotary_shape, .cost = position_rotary_cost,
     .flops = 3, .labels = "x - cos"},
    {"NGramHashMapping", MICROSOFT, "ngramhash", BZ_COMPUTE, hash_shape, .flops = 3, .labels = "ids - - past"},
    {"VarlenNGramHashMapping", MICROSOFT, "ngramhash", BZ_COMPUTE, hash_shape, .flops = 3, .labels = "ids - - - past",
     .arg = 3},
};
const op_table ops_microsoft_cache = OP_TABLE(ROWS);
