/* Attention as ONNX Runtime fuses it, with what comes along: rotary embeddings, position biases,
 * padding, experts. Layouts: hidden states are [batch, tokens, hidden], caches [batch, heads, tokens, head]. */
#include "modelproc/cache.h"
#include "modelproc/microsoft.h"

int ms_head_count(call *c, const char *name, int64_t *heads)
{
    *heads = attr_int(c, name, 0);
    return *heads > 0 && *heads < INT32_MAX ? 0 : call_fail(c, "%s is %lld", name, (long long)*heads);
}

void ms_note_attention(call *c, int64_t heads, bz_dim kv, bz_dim qk, bz_dim v)
{
    param_int(c, "heads", heads);
    param_int(c, "kv", kv);
    param_int(c, "qk", qk);
    param_int(c, "v", v);
}

/* QK^T and PV, five operations of softmax for each score, and the projection by operand arg where there is one. */
void ms_attention_cost(call *c)
{
    const bz_type *x = &c->in[0], *y = &c->out[0];
    int64_t tokens = y->rank > 0 ? elements(y) / (last_dim(y, 1) > 0 ? last_dim(y, 1) : 1) : 0;
    int64_t scores = count_mul(tokens, noted(c, "kv"));
    c->macs = count_add(count_mul(scores, noted(c, "qk")), count_mul(scores, noted(c, "v")));
    c->flops = count_mul(5, count_mul(scores, noted(c, "heads")));
    if (c->op->arg)
        c->macs = count_add(c->macs, count_mul(elements(x), last_dim(&c->in[c->op->arg], 1)));
}

void ms_cached_cost(call *c, int past, int n, int table)
{
    const bz_type *q = &c->in[0];
    ms_attention_cost(c);
    bz_dim fresh = q->rank > 1 ? q->dims[1] : 0, keys = noted(c, "keys"), read = noted(c, "kv");
    if (keys) /* windows of one query after the other */
        read = read + fresh - 1 < keys ? read + fresh - 1 : keys;
    cache_bytes(c, &(cache_use){past, n, read, fresh, table, table ? 2 : 0, count_mul(q->dims[0], fresh)});
}

void ms_stacked_cost(call *c)
{
    ms_cached_cost(c, 4, 1, 0);
}

void ms_qattention_cost(call *c)
{
    ms_cached_cost(c, 8, 1, 0);
}

void ms_multihead_cost(call *c)
{
    ms_cached_cost(c, 6, 2, 0);
}

void ms_decoder_multihead_cost(call *c)
{
    ms_cached_cost(c, 5, 2, 0);
}

void ms_group_query_cost(call *c)
{
    ms_cached_cost(c, 3, 2, 7);
}

/* Width of Q, K and V, from the attribute or a third of the projection's width each. */
static int qkv_widths(call *c, const bz_type *w, bz_dim *qk, bz_dim *v)
{
    int n;
    const int64_t *sizes = attr_ints(c, "qkv_hidden_sizes", &n);
    const bz_type *bias = in_type(c, 2);
    bz_dim all = dim_same(w->dims[1], bias && bias->rank == 1 ? bias->dims[0] : w->dims[1]);
    if (n && (n != 3 || sizes[0] <= 0 || sizes[2] <= 0 || bz_is_symbol(sizes[0])))
        return call_fail(c, "qkv_hidden_sizes must be three positive numbers");
    if (!n && !bz_is_symbol(all) && all % 3)
        return call_fail(c, "a projection to %lld can't be split in three", (long long)all);
    *qk = n ? sizes[0] : dim_div(c, all, 3);
    *v = n ? sizes[2] : *qk;
    return 0;
}

/* The cache of keys and values [2, batch, heads, tokens, head] after this step. */
static int stacked_cache(call *c, const bz_type *past, const bz_type *x, int64_t heads, bz_dim v, bz_dim *kv)
{
    bz_dim dims[5] = {2, x->dims[0], heads, x->dims[1], dim_div(c, v, heads)};
    bool shared = attr_int(c, "past_present_share_buffer", 0) != 0;
    *kv = 0;
    if (past && past->rank != 5)
        return call_fail(c, "its past must have five dimensions");
    if (past) {
        memcpy(dims, past->dims, sizeof dims);
        dims[3] = shared ? past->dims[3] : dim_add(c, past->dims[3], x->dims[1]);
    }
    *kv = dims[3];
    return set_out(c, 1, c->out[0].dtype, 5, dims);
}

static int projected_attention(call *c, int past_at, bz_dtype to)
{
    const bz_type *x = need(c, 0, 3), *w = need(c, 1, 2);
    int64_t heads;
    bz_dim qk, v, kv;
    if (ms_head_count(c, "num_heads", &heads) || qkv_widths(c, w, &qk, &v))
        return -1;
    if (!dims_fit(x->dims[2], w->dims[0]))
        return call_fail(c, "inputs of %lld, weights for %lld", (long long)x->dims[2], (long long)w->dims[0]);
    set_out(c, 0, to ? to : x->dtype, 3, (bz_dim[]){x->dims[0], x->dims[1], v});
    if (stacked_cache(c, in_type(c, past_at), x, heads, v, &kv))
        return -1;
    ms_note_attention(c, heads, kv, qk, v);
    param_int(c, "causal", attr_int(c, "unidirectional", 0) != 0);
    if (attr_int(c, "do_rotary", 0))
        param_int(c, "rotary", 1);
    return 0;
}

int ms_attention_shape(call *c)
{
    return projected_attention(c, 4, BZ_UNDEFINED);
}

int ms_qattention_shape(call *c)
{
    const bz_type *bias = in_type(c, 2);
    return projected_attention(c, 8, bias ? bias->dtype : BZ_F32);
}

/* Tokens of all sequences without padding. Scores are the fewest when all sequences are equally
 * long: tokens² / batch. */
int ms_packed_attention_shape(call *c)
{
    const bz_type *x = need(c, 0, 2), *w = need(c, 1, 2), *offset = need(c, 3, 2);
    int64_t heads;
    bz_dim qk, v;
    if (ms_head_count(c, "num_heads", &heads) || qkv_widths(c, w, &qk, &v))
        return -1;
    set_out(c, 0, x->dtype, 2, (bz_dim[]){x->dims[0], v});
    bz_dim batch = offset->dims[0];
    ms_note_attention(c, heads, batch ? dim_div(c, x->dims[0], batch) : 0, qk, v);
    return 0;
}

typedef struct {
    bz_dim batch, tokens, kv, qk, v; /* kv: keys that come with this step */
} qkv;

/* Packed: all in the query, [b, s, heads, 3, head]; or keys and values in one, [b, l, heads, 2, head];
 * from another sequence: keys and values are [b, heads, l, head]. */
static int read_qkv(call *c, int64_t heads, qkv *d)
{
    const bz_type *q = need_any(c, 0), *k = in_type(c, 1), *v = in_type(c, 2);
    *d = (qkv){0};
    bool all_packed = q->rank == 5 || (q->rank == 3 && !k && !v);
    if (q->rank != 3 && q->rank != 5)
        return call_fail(c, "queries of %d dimensions", q->rank);
    d->batch = q->dims[0];
    d->tokens = d->kv = q->dims[1];
    if (all_packed) {
        d->qk = q->rank == 5 ? dim_mul(c, q->dims[2], q->dims[4]) : dim_div(c, q->dims[2], 3);
        d->v = d->qk;
        return 0;
    }
    d->qk = d->v = q->dims[2];
    if (k && (k->rank < 3 || k->rank > 5))
        return call_fail(c, "keys of %d dimensions", k->rank);
    if (v && v->rank != 3 && v->rank != 4)
        return call_fail(c, "values of %d dimensions", v->rank);
    if (k)
        d->kv = k->dims[k->rank == 4 ? 2 : 1];
    if (v)
        d->v = v->rank == 4 ? dim_mul(c, v->dims[1], v->dims[3]) : v->dims[2];
    if (!bz_is_symbol(d->qk) && d->qk % heads)
        return call_fail(c, "a width of %lld can't be split into %lld heads", (long long)d->qk, (long long)heads);
    return 0;
}

/* Results 1 and 2, the caches after this step: grown, or the same buffer. `total`: their length. */
static int set_caches(call *c, int past_at, const qkv *d, int64_t heads, bool shared, bz_dim *total)
{
    const bz_type *q = &c->in[0];
    *total = d->kv;
    for (int i = 0; i < 2; i++) {
        const bz_type *past = in_type(c, past_at + i);
        bz_dim dims[4] = {d->batch, heads, d->kv, dim_div(c, i ? d->v : d->qk, heads)};
        if (past && past->rank != 4)
            return call_fail(c, "operand %d must have four dimensions", past_at + i);
        if (past) {
            memcpy(dims, past->dims, sizeof dims);
            dims[2] = shared ? past->dims[2] : dim_add(c, past->dims[2], d->kv);
        }
        *total = i ? *total : dims[2];
        set_out(c, 1 + i, past ? past->dtype : q->dtype, 4, dims);
    }
    return 0;
}

static int multihead(call *c, int past_at, bool shared)
{
    int64_t heads;
    qkv d;
    bz_dim total;
    if (ms_head_count(c, "num_heads", &heads) || read_qkv(c, heads, &d))
        return -1;
    set_out(c, 0, c->in[0].dtype, 3, (bz_dim[]){d.batch, d.tokens, d.v});
    if (set_caches(c, past_at, &d, heads, shared, &total))
        return -1;
    set_out(c, 3, c->in[0].dtype, 4, (bz_dim[]){d.batch, heads, d.tokens, total});
    ms_note_attention(c, heads, total, d.qk, d.v);
    param_int(c, "causal", attr_int(c, "unidirectional", 0) != 0);
    return 0;
}

int ms_multihead_shape(call *c)
{
    return multihead(c, 6, in_type(c, 6) && in_type(c, 8));
}

int ms_decoder_multihead_shape(call *c)
{
    return multihead(c, 5, attr_int(c, "past_present_share_buffer", 0) != 0);
}

/* Several query heads share one of keys and values. The cache is as long as the sequence so far, or
 * a buffer that is longer: total_sequence_length says how much of it is used. */
int ms_group_query_shape(call *c)
{
    const bz_type *q = need(c, 0, 3), *k = in_type(c, 1), *past = in_type(c, 3);
    int64_t heads, kv_heads, total;
    if (ms_head_count(c, "num_heads", &heads) || ms_head_count(c, "kv_num_heads", &kv_heads))
        return -1;
    if (heads % kv_heads || (k && k->rank < 3) || (past && past->rank != 4))
        return call_fail(c, "%lld heads of queries, %lld of keys, or caches of a wrong rank", (long long)heads,
                         (long long)kv_heads);
    bz_dim head = dim_div(c, q->dims[2], k ? heads : heads + 2 * kv_heads);
    bz_dim width = k ? q->dims[2] : dim_mul(c, head, heads);
    bz_dim length = k ? k->dims[1] : q->dims[1];
    bool known = in_number(c, 6, &total) && total > 0;
    bz_dim dims[4] = {q->dims[0], kv_heads, known ? total : length, head}, used = dims[2];
    if (past) {
        memcpy(dims, past->dims, sizeof dims);
        if (!known)
            used = dims[2] = past->dims[2] == 0 ? length : past->dims[2];
        else if (!bz_is_symbol(past->dims[2]) && attr_int(c, "sliding_window_cache", 0) == 0)
            dims[2] = past->dims[2] > total ? past->dims[2] : total;
    }
    set_out(c, 0, q->dtype, 3, (bz_dim[]){q->dims[0], q->dims[1], width});
    for (int i = 1; i < 3; i++)
        set_out(c, i, past ? past->dtype : q->dtype, 4, dims);
    set_out(c, 3, q->dtype, 4, (bz_dim[]){q->dims[0], heads, q->dims[1], used});
    int64_t window = attr_int(c, "local_window_size", -1);
    bool sliding = window > 0 && !bz_is_symbol(used) && window < used;
    ms_note_attention(c, heads, sliding ? window : used, width, width);
    if (sliding) /* a query sees `kv` of these */
        param_int(c, "keys", used);
    if (attr_float(c, "softcap", 0) > 0)
        param_real(c, "softcap", attr_float(c, "softcap", 0));
    param_int(c, "kv_heads", kv_heads);
    param_int(c, "rotary", attr_int(c, "do_rotary", 0) != 0);
    take_rows(c, 7, used);
    return 0;
}

int ms_rotary_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    set_type(c, 0, x);
    if (x->rank > 2)
        take_rows(c, 2, x->dims[x->rank - 2]);
    param_int(c, "interleaved", attr_int(c, "interleaved", 0) != 0);
    param_int(c, "heads", attr_int(c, "num_heads", 0));
    param_int(c, "rotary", attr_int(c, "rotary_embedding_dim", 0));
    return 0;
}

void ms_rotary_cost(call *c)
{
    cache_bytes(c, &(cache_use){.table = 2, .tables = 2, .rows = token_rows(&c->in[0])});
}

int ms_relative_bias_shape(call *c)
{
    const bz_type *table = need(c, 0, 2);
    int64_t n;
    bz_dim dims[4] = {1, table->dims[1]};
    for (int i = 0; i < 2; i++) {
        const int64_t *length = in_ints(c, 1 + i, &n);
        dims[2 + i] = length && n == 1 ? length[0] : new_symbol(c);
        if (dims[2 + i] < 0 && !bz_is_symbol(dims[2 + i]))
            return call_fail(c, "a length is %lld", (long long)dims[2 + i]);
    }
    set_out(c, 0, table->dtype, 4, dims);
    param_int(c, "bidirectional", attr_int(c, "is_bidirectional", 0) != 0);
    return 0;
}

int ms_gated_bias_shape(call *c)
{
    const bz_type *q = need_any(c, 0), *offset = in_type(c, 6);
    int64_t heads;
    if (ms_head_count(c, "num_heads", &heads))
        return -1;
    const bz_type *grid = offset ? offset : q; /* without padding, the query has lost its batch */
    if (grid->rank < 2)
        return call_fail(c, "its query or token offset has %d dimensions", grid->rank);
    param_int(c, "heads", heads);
    return set_out(c, 0, q->dtype, 4, (bz_dim[]){grid->dims[0], heads, grid->dims[1], grid->dims[1]});
}

int ms_remove_padding_shape(call *c)
{
    const bz_type *x = need(c, 0, 3);
    set_out(c, 0, x->dtype, 2, (bz_dim[]){new_symbol(c), x->dims[2]});
    set_out(c, 1, BZ_I32, 2, x->dims);
    set_out(c, 2, BZ_I32, 1, (bz_dim[]){dim_add(c, x->dims[0], 1)});
    return set_out(c, 3, BZ_I32, 1, (bz_dim[]){1});
}

int ms_restore_padding_shape(call *c)
{
    const bz_type *x = need(c, 0, 2), *offset = need(c, 1, 2);
    return set_out(c, 0, x->dtype, 3, (bz_dim[]){offset->dims[0], offset->dims[1], x->dims[1]});
}

/* arg: distance from one weight operand to the next (weights, then bias; quantized also scales). */
int ms_moe_shape(call *c)
{
    const bz_type *x = need_any(c, 0), *router = need(c, 1, 2), *w = need(c, 2, 3);
    int64_t k = attr_int(c, "k", 1);
    if (k <= 0 || !dims_fit(router->dims[1], w->dims[0]))
        return call_fail(c, "%lld of %lld experts", (long long)k, (long long)w->dims[0]);
    int64_t bits = attr_int(c, "expert_weight_bits", 4);
    for (int i = 2; c->op->arg > 2 && i < 9; i += (int)c->op->arg) {
        const bz_type *packed = in_type(c, i);
        if (!packed || packed->rank != 3 || packed->dtype != BZ_U8 || (bits != 2 && bits != 4))
            continue;
        ms_unpack(c, i, bits, 3, (bz_dim[]){packed->dims[0], packed->dims[1], dim_mul(c, packed->dims[2], 8 / bits)});
    }
    set_type(c, 0, x);
    param_int(c, "k", k);
    param_text(c, "activation", attr_text(c, "activation_type", "relu"));
    if (c->op->arg > 2)
        param_int(c, "bits", bits);
    if (bz_node_attr(c->node, "block_size"))
        param_int(c, "block", attr_int(c, "block_size", 0));
    return 0;
}

/* Every token goes through k experts: all elements of their weights once. At the least all tokens choose the same. */
void ms_moe_cost(call *c)
{
    int64_t per_token = 0, k = attr_int(c, "k", 1), bytes = bz_type_bytes(&c->in[0]) + bz_type_bytes(&c->out[0]);
    for (int i = 1; i < c->node->n_in; i++) {
        const bz_type *w = in_type(c, i);
        int64_t experts = i > 1 && w && w->rank > 1 && w->dims[0] == c->in[2].dims[0] ? w->dims[0] : 0;
        int64_t of = w ? bz_type_bytes(w) : 0;
        bytes = count_add(bytes, experts > k ? of / experts * k : of);
        if (experts > 0 && w->rank == 3 && (i - 2) % (int)c->op->arg == 0 && i <= 2 + 2 * (int)c->op->arg)
            per_token = count_add(per_token, elements(w) / experts);
    }
    const bz_type *x = &c->in[0];
    int64_t tokens = last_dim(x, 1) > 0 ? elements(x) / last_dim(x, 1) : 0;
    c->macs = count_mul(count_mul(tokens, k), per_token);
    c->bytes = bytes;
}
