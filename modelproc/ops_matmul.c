/* Products of matrices: Gemm, MatMul, Einsum, and attention, which is made of them. */
#include "modelproc/cache.h"
#include "modelproc/rule.h"

#include <string.h>

static int shape_gemm(call *c)
{
    const bz_type *a = need(c, 0, 2), *b = need(c, 1, 2), *bias = in_type(c, 2);
    same_dtype(c, a, b);
    int ta = attr_int(c, "transA", 0) != 0, tb = attr_int(c, "transB", 0) != 0;
    bz_dim k = a->dims[!ta], dims[2] = {a->dims[ta], b->dims[!tb]}, sum[BZ_MAX_RANK];
    if (!dims_fit(k, b->dims[tb]))
        return call_fail(c, "it multiplies %lld columns with %lld rows", (long long)k, (long long)b->dims[tb]);
    bz_type y = {.kind = BZ_TYPE_TENSOR, .rank = 2, .dims = dims};
    int rank;
    if (bias && c->node->opset >= 7 && broadcast(c, &y, need_any(c, 2), &rank, sum))
        return -1;
    param_int(c, "transa", ta);
    param_int(c, "transb", tb);
    if (attr_float(c, "alpha", 1) != 1)
        param_real(c, "alpha", attr_float(c, "alpha", 1));
    if (bias && attr_float(c, "beta", 1) != 1)
        param_real(c, "beta", attr_float(c, "beta", 1));
    return set_out(c, 0, a->dtype, 2, dims);
}

static void cost_gemm(call *c)
{
    int ta = attr_int(c, "transA", 0) != 0;
    c->macs = count_mul(bz_type_elements(&c->out[0]), c->in[0].dims[!ta]);
    c->flops = in_type(c, 2) ? bz_type_elements(&c->out[0]) : 0;
}

int matmul_shape(call *c, const bz_type *a, const bz_type *b, int *rank, bz_dim *dims)
{
    if (a->rank < 1 || b->rank < 1)
        return call_fail(c, "it multiplies scalars: one dimension at least is needed");
    bz_dim k_a = a->dims[a->rank - 1], k_b = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (!dims_fit(k_a, k_b))
        return call_fail(c, "it multiplies %lld columns with %lld rows", (long long)k_a, (long long)k_b);
    bz_type batch_a = {.kind = BZ_TYPE_TENSOR, .rank = a->rank > 2 ? a->rank - 2 : 0, .dims = a->dims};
    bz_type batch_b = {.kind = BZ_TYPE_TENSOR, .rank = b->rank > 2 ? b->rank - 2 : 0, .dims = b->dims};
    if (broadcast(c, &batch_a, &batch_b, rank, dims))
        return -1;
    if (*rank > BZ_MAX_RANK - 2)
        return call_fail(c, "it has too many dimensions");
    if (a->rank > 1)
        dims[(*rank)++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[(*rank)++] = b->dims[b->rank - 1];
    return 0;
}

int64_t matmul_macs(const bz_type *a, const bz_type *y)
{
    return count_mul(bz_type_elements(y), a->dims[a->rank - 1]);
}

static int shape_matmul(call *c)
{
    const bz_type *a = need_any(c, 0), *b = need_any(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    int rank;
    if (same_dtype(c, a, b) || matmul_shape(c, a, b, &rank, dims))
        return -1;
    return set_out(c, 0, a->dtype, rank, dims);
}

void cost_matmul(call *c)
{
    c->macs = matmul_macs(&c->in[0], &c->out[0]);
}

/* Sizes of the letters; those of the ellipsis are kept apart, right-aligned as broadcasting does. */
typedef struct {
    bz_dim letter[128];
    bool seen[128];
    int count[128];                 /* over all operands: a letter that stands once and not behind "->" is summed */
    uint64_t term[BZ_EINSUM_TERMS]; /* letters of an operand, bz_einsum_letter */
    bz_dim ellipsis[BZ_MAX_RANK];
    int ellipsis_rank;
} einsum;

static int merge_dim(call *c, bz_dim *known, bz_dim d)
{
    if (!dims_fit(*known, d) && *known != 1 && d != 1)
        return call_fail(c, "a letter stands for %lld and for %lld", (long long)*known, (long long)d);
    if (*known == 1 || bz_is_symbol(*known))
        *known = d;
    return 0;
}

/* Whether dots stand only as one "..." in a term. */
static bool dots_fit(const char *s)
{
    for (bool seen = false; *s; s++) {
        if (*s == ',' || *s == '-')
            seen = false;
        if (*s != '.')
            continue;
        if (seen || strncmp(s, "...", 3) != 0)
            return false;
        seen = true;
        s += 2;
    }
    return true;
}

/* One operand's term, from *s to the next ',' or "->". */
static int read_term(call *c, einsum *e, int k, const char **s)
{
    const bz_type *t = &c->in[k];
    uint64_t *term = &e->term[k < BZ_EINSUM_TERMS ? k : 0];
    int letters = 0, axis = 0;
    bool ellipsis = false;
    for (const char *p = *s; *p && *p != ',' && *p != '-'; p++) {
        letters += *p != ' ' && *p != '.';
        ellipsis |= *p == '.';
    }
    int rest = t->rank - letters;
    if (rest < 0 || (rest && !ellipsis))
        return call_fail(c, "its equation names %d dimensions of an operand that has %d", letters, t->rank);
    const char *p = *s;
    for (; *p && *p != ',' && *p != '-'; p++) {
        unsigned char letter = (unsigned char)*p;
        if (letter == ' ')
            continue;
        if (letter == '.') {
            p += 2;
            e->ellipsis_rank = rest > e->ellipsis_rank ? rest : e->ellipsis_rank;
            for (int i = 0; i < rest; i++)
                if (merge_dim(c, &e->ellipsis[BZ_MAX_RANK - rest + i], t->dims[axis++]))
                    return -1;
            *term |= rest ? bz_einsum_letter('.') : 0;
            continue;
        }
        if (letter >= 128 || axis >= t->rank)
            return call_fail(c, "its equation is malformed");
        if (!e->seen[letter])
            e->letter[letter] = t->dims[axis];
        else if (merge_dim(c, &e->letter[letter], t->dims[axis]))
            return -1;
        e->seen[letter] = true;
        e->count[letter]++;
        *term |= bz_einsum_letter((char)letter);
        axis++;
    }
    *s = p;
    return 0;
}

static int put_result(call *c, const einsum *e, const char *s, bz_dim *dims, int *rank)
{
    *rank = 0;
    for (; *s; s++) {
        unsigned char letter = (unsigned char)*s;
        if (letter == ' ')
            continue;
        if (*rank + e->ellipsis_rank >= BZ_MAX_RANK)
            return call_fail(c, "its result has too many dimensions");
        if (letter == '.') {
            s += 2;
            for (int i = 0; i < e->ellipsis_rank; i++)
                dims[(*rank)++] = e->ellipsis[BZ_MAX_RANK - e->ellipsis_rank + i];
        } else if (letter >= 128 || !e->seen[letter]) {
            return call_fail(c, "its equation makes a dimension that no operand has");
        } else {
            dims[(*rank)++] = e->letter[letter];
        }
    }
    return 0;
}

static int read_einsum(call *c, einsum *e, const char **result)
{
    const char *s = attr_text(c, "equation", "");
    if (!dots_fit(s))
        return call_fail(c, "its equation is malformed");
    for (int i = 0; i < BZ_MAX_RANK; i++)
        e->ellipsis[i] = 1;
    for (int k = 0; k < c->node->n_in; k++) {
        const bz_type *t = need_any(c, k);
        if ((k && same_dtype(c, &c->in[0], t)) || read_term(c, e, k, &s))
            return -1;
        bool last = k == c->node->n_in - 1;
        if ((!last && *s != ',') || (last && *s == ','))
            return call_fail(c, "its equation does not have a term for each operand");
        s += *s == ',';
    }
    if (*s && strncmp(s, "->", 2) != 0)
        return call_fail(c, "its equation is malformed");
    *result = *s ? s + 2 : NULL;
    return 0;
}

/* The equation with letters in the order in which they appear, no blanks, and the result said: equal layers have
 * one key, whatever their author called the dimensions. */
static const char *canonical(call *c, const char *equation, const char *result)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char name[128] = {0};
    size_t used = 0;
    bz_buf out = {0};
    const char *part[] = {equation, "->", result};
    for (int i = 0; i < 3; i++)
        for (const char *p = part[i]; *p && (i || *p != '-'); p++) {
            unsigned char letter = (unsigned char)*p & 127;
            if (strchr(" ", letter))
                continue;
            if (!strchr(".,->", letter) && !name[letter])
                name[letter] = used < sizeof LETTERS - 1 ? LETTERS[used++] : (char)letter;
            bz_buf_putc(&out, name[letter] ? name[letter] : (char)letter);
        }
    const char *text = bz_buf_keep(&out, c->arena);
    return used < sizeof LETTERS - 1 ? text : equation;
}

static int shape_einsum(call *c)
{
    einsum e = {0};
    const char *result;
    bz_dim dims[BZ_MAX_RANK];
    char implicit[160];
    int rank, n = 0;
    if (c->node->n_in < 1)
        return call_fail(c, "operand 0 is missing");
    if (read_einsum(c, &e, &result))
        return -1;
    if (!result) { /* all letters that stand once, in alphabetical order */
        if (e.ellipsis_rank)
            n = 3, memcpy(implicit, "...", 3);
        for (int l = 0; l < 128; l++)
            if (e.count[l] == 1)
                implicit[n++] = (char)l;
        implicit[n] = 0;
        result = implicit;
    }
    if (put_result(c, &e, result, dims, &rank))
        return -1;
    param_text(c, "equation", canonical(c, attr_text(c, "equation", ""), result));
    return set_out(c, 0, c->in[0].dtype, rank, dims);
}

uint64_t bz_einsum_letter(char letter)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.";
    const char *at = letter ? strchr(LETTERS, letter) : NULL;
    return at ? UINT64_C(1) << (at - LETTERS) : 0;
}

static int64_t size_of_letters(uint64_t letters, const int64_t *size)
{
    int64_t n = 1;
    for (int l = 0; l < 64; l++)
        n = letters >> l & 1 ? count_mul(n, size[l]) : n;
    return n;
}

int64_t bz_einsum_pairs(const uint64_t *term, int n, uint64_t result, const int64_t *size, bz_einsum_pair *pair)
{
    enum { SETS = 1 << BZ_EINSUM_TERMS };
    uint64_t open[SETS];
    bool used[SETS] = {0};
    int64_t best[SETS];
    int half[SETS], n_pairs = 0;
    for (int s = 1; s < 1 << n; s++) {
        uint64_t inside = 0, outside = result;
        for (int k = 0; k < n; k++)
            *(s >> k & 1 ? &inside : &outside) |= term[k];
        open[s] = s & (s - 1) ? inside & outside : inside;
        best[s] = s & (s - 1) ? INT64_MAX : 0;
        half[s] = (s - 1) & s;
        for (int a = (s - 1) & s; a > s / 2; a = (a - 1) & s) {
            int64_t macs = count_add(size_of_letters(open[a] | open[s ^ a], size), count_add(best[a], best[s ^ a]));
            if (macs < best[s])
                best[s] = macs, half[s] = a;
        }
    }
    used[(1 << n) - 1] = n > 1;
    for (int s = (1 << n) - 1; s > 2; s--)
        if (used[s])
            for (int side = 0; side < 2; side++) {
                int part = side ? s ^ half[s] : half[s];
                used[part] = (part & (part - 1)) != 0;
            }
    for (int s = 3; s < 1 << n; s++)
        if (used[s])
            pair[n_pairs++] = (bz_einsum_pair){open[s ^ half[s]], open[half[s]], open[s]};
    return best[(1 << n) - 1];
}

/* Pair by pair, in the order that takes the fewest. One operand is summed and turned, not multiplied. */
static void cost_einsum(call *c)
{
    einsum e = {0};
    const char *result;
    int64_t size[64];
    uint64_t all = 0, kept = 0;
    bz_einsum_pair pair[BZ_EINSUM_TERMS];
    if (read_einsum(c, &e, &result))
        return;
    for (int i = 0; i < 64; i++)
        size[i] = 1;
    for (int l = 'A'; l <= 'z'; l++)
        if (e.seen[l] && bz_einsum_letter((char)l))
            size[__builtin_ctzll(bz_einsum_letter((char)l))] = e.letter[l];
    for (int i = 0; i < BZ_MAX_RANK; i++)
        size[62] = count_mul(size[62], e.ellipsis[i]);
    for (int k = 0; k < c->node->n_in && k < BZ_EINSUM_TERMS; k++)
        all |= e.term[k];
    for (const char *p = result; p && *p; p++)
        kept |= bz_einsum_letter(*p);
    for (int l = 'A'; l <= 'z' && !result; l++)
        kept |= e.count[l] == 1 ? bz_einsum_letter((char)l) : 0;
    kept |= result ? 0 : bz_einsum_letter('.');
    if (c->node->n_in == 1)
        c->flops = all & ~kept ? size_of_letters(all, size) : 0;
    else if (c->node->n_in > BZ_EINSUM_TERMS)
        c->macs = size_of_letters(all, size);
    else
        c->macs = bz_einsum_pairs(e.term, c->node->n_in, kept, size, pair);
}

/* Q, K, V as [batch, heads, length, size], whichever of the two layouts the operands have. */
typedef struct {
    bz_dim batch, q_heads, kv_heads, q_length, kv_length, size, v_size;
    bool flat; /* [batch, length, heads * size] */
} attention;

static int read_attention(call *c, attention *a)
{
    const bz_type *q = need_any(c, 0), *k = need(c, 1, q->rank), *v = need(c, 2, q->rank);
    same_dtype(c, q, k);
    a->flat = q->rank == 3;
    if (a->flat) {
        a->q_heads = attr_int(c, "q_num_heads", 0);
        a->kv_heads = attr_int(c, "kv_num_heads", 0);
        if (a->q_heads < 1 || a->kv_heads < 1)
            return call_fail(c, "q_num_heads and kv_num_heads are needed with operands of 3 dimensions");
        a->q_length = q->dims[1];
        a->kv_length = k->dims[1];
        a->size = dim_div(c, q->dims[2], a->q_heads);
        a->v_size = dim_div(c, v->dims[2], a->kv_heads);
    } else if (q->rank == 4) {
        a->q_heads = q->dims[1];
        a->kv_heads = k->dims[1];
        a->q_length = q->dims[2];
        a->kv_length = k->dims[2];
        a->size = q->dims[3];
        a->v_size = v->dims[3];
    } else {
        return call_fail(c, "its operands have %d dimensions: 3 or 4 are needed", q->rank);
    }
    a->batch = q->dims[0];
    const bz_type *past = c->op->arg ? NULL : in_type(c, 4); /* what is trained keeps no keys */
    if (past)
        a->kv_length = dim_add(c, a->kv_length, need(c, 4, 4)->dims[2]);
    return 0;
}

int attention_shape(call *c)
{
    attention a;
    if (read_attention(c, &a))
        return -1;
    bz_dtype t = c->in[0].dtype;
    bz_dim flat[3] = {a.batch, a.q_length, dim_mul(c, a.q_heads, a.v_size)};
    bz_dim deep[4] = {a.batch, a.q_heads, a.q_length, a.v_size};
    bz_dim key[4] = {a.batch, a.kv_heads, a.kv_length, a.size}, value[4] = {a.batch, a.kv_heads, a.kv_length, a.v_size};
    bz_dim scores[4] = {a.batch, a.q_heads, a.q_length, a.kv_length};
    set_out(c, 0, t, a.flat ? 3 : 4, a.flat ? flat : deep);
    if (c->op->arg) { /* training keeps the logarithm of each row's sum */
        set_out(c, 1, BZ_F32, 3, scores);
    } else {
        set_out(c, 1, t, 4, key);
        set_out(c, 2, t, 4, value);
        set_out(c, 3, t, 4, scores);
    }
    if (a.flat) {
        param_int(c, "q_heads", a.q_heads);
        param_int(c, "kv_heads", a.kv_heads);
    }
    param_int(c, "causal", attr_int(c, "is_causal", 0) != 0);
    if (attr_float(c, "softcap", 0) != 0)
        param_real(c, "softcap", attr_float(c, "softcap", 0));
    return 0;
}

int64_t attention_scores(call *c, int64_t *size, int64_t *v_size)
{
    attention a = {0};
    if (read_attention(c, &a))
        return 0;
    *size = a.size;
    *v_size = a.v_size;
    return count_mul(count_mul(a.batch, a.q_heads), count_mul(a.q_length, a.kv_length));
}

void attention_cost(call *c)
{
    attention a;
    int64_t size = 0, v_size = 0, scores = attention_scores(c, &size, &v_size);
    if (read_attention(c, &a))
        return;
    c->macs = count_add(count_mul(scores, size), count_mul(scores, v_size));
    c->flops = count_mul(scores, 5);
    if (c->op->arg)
        return;
    bz_dim fresh = a.flat ? c->in[1].dims[1] : c->in[1].dims[2];
    cache_bytes(c, &(cache_use){.past = 4, .n = 2, .keys = a.kv_length, .fresh = fresh});
}

/* Positions pick rows of both tables. */
static void cost_rotary(call *c)
{
    if (in_type(c, 3))
        cache_bytes(c, &(cache_use){.table = 1, .tables = 2, .rows = token_rows(&c->in[0])});
}

static int shape_rotary(call *c)
{
    const bz_type *x = need_any(c, 0);
    param_int(c, "interleaved", attr_int(c, "interleaved", 0) != 0);
    param_int(c, "heads", attr_int(c, "num_heads", 0));
    param_int(c, "rotary", attr_int(c, "rotary_embedding_dim", 0));
    return set_out(c, 0, x->dtype, x->rank, x->dims);
}

static const op ROWS[] = {
    {"Gemm", NULL, "gemm", BZ_COMPUTE, shape_gemm, .cost = cost_gemm, .flags = OP_KEEPS, .labels = "a b c"},
    {"MatMul", NULL, "matmul", BZ_COMPUTE, shape_matmul, .cost = cost_matmul, .flags = OP_KEEPS, .labels = "a b"},
    {"Einsum", NULL, "einsum", BZ_COMPUTE, shape_einsum, .cost = cost_einsum, .flags = OP_KEEPS, .labels = "x..."},
    {"Attention", NULL, "attention", BZ_COMPUTE, attention_shape, .cost = attention_cost,
     .labels = "q k v mask past_k past_v"},
    {"RotaryEmbedding", NULL, "rotary", BZ_COMPUTE, shape_rotary, .cost = cost_rotary, .flops = 3,
     .labels = "x cos sin ids"},
};

const op_table ops_matmul = OP_TABLE(ROWS);
