/* Attention, and products that an equation describes. */
#include "generator/lower.h"

/* `rows` queries and `keys` keys for each of so many heads; of a sliding window, so many of `all` for each query. Heads of
 * queries that share keys and values are rows of one product. */
typedef struct heads {
    int64_t batch, heads, kv_heads, rows, keys, size, v_size, all;
    float softcap;
    bool sink; /* each head has a score without a value */
} heads;

static bz_problem *batched(lowering *l, int64_t batch, int64_t m, int64_t k, int64_t n)
{
    return lower_matrices(l, (bz_extent){batch, m, k}, (bz_extent){batch, k, n});
}

/* Scores, their softmax, and the weighted sum. */
static int attention_steps(lowering *l, const heads *h)
{
    int64_t batch = h->batch * h->kv_heads, rows = h->heads / h->kv_heads * h->rows;
    batched(l, batch, rows, h->size, h->keys);
    lower_softmax_of(l, BZ_PROBLEM_SOFTMAX, (bz_extent){batch, rows, h->keys}, 2);
    batched(l, batch, rows, h->keys, h->v_size);
    return lower_done(l);
}

/* The backward pass: the weights of the softmax once more, from the sums that were kept; then the gradients of v, of the
 * weights, of the scores, of q and k. */
static int attention_grad_steps(lowering *l, const heads *h)
{
    int64_t batch = h->batch * h->kv_heads, rows = h->heads / h->kv_heads * h->rows;
    const bz_extent scores = {batch, rows, h->keys};
    batched(l, batch, rows, h->size, h->keys);
    lower_apply(l, BZ_PROBLEM_ACTIVATION, BZ_FN_EXP, scores);
    batched(l, batch, h->keys, rows, h->v_size)->matmul.transa = true;
    batched(l, batch, rows, h->v_size, h->keys)->matmul.transb = true;
    lower_softmax_of(l, BZ_PROBLEM_SOFTMAX_GRAD, scores, 2);
    batched(l, batch, rows, h->keys, h->size);
    batched(l, batch, h->keys, rows, h->size)->matmul.transa = true;
    return lower_done(l);
}

/* The keys that a call is given: those of the window where it has a single query, which then sees all of them. */
static int64_t keys_of(const heads *h, bool causal)
{
    return causal && h->all ? h->all : h->keys;
}

/* All of it in one call, which never writes the scores: forward, or the gradients of q, k and v; `eight`: of 8-bit floats. */
static int attention_call(lowering *l, bz_problem_kind kind, const heads *h, bool causal, const bz_type *mask,
                          bool eight)
{
    bz_problem *p = lower_step(l, kind);
    if (eight) /* the result, too: the product that reads it is one of 8-bit floats, and not every GPU writes it wider */
        p->dtype = BZ_F8E4M3;
    int64_t keys = keys_of(h, causal);
    const int64_t scores[] = {h->batch, h->heads, h->rows, keys};
    memcpy(p->attention.q, (bz_extent){h->batch, h->heads, h->rows, h->size}, sizeof(bz_extent));
    memcpy(p->attention.k, (bz_extent){h->batch, h->kv_heads, keys, h->size}, sizeof(bz_extent));
    memcpy(p->attention.v, (bz_extent){h->batch, h->kv_heads, keys, h->v_size}, sizeof(bz_extent));
    p->attention.causal = causal;
    p->attention.softcap = h->softcap;
    p->attention.sink = h->sink;
    p->attention.window = keys != h->keys ? h->keys : 0;
    bool fits = mask && mask->rank <= 4 && !lower_extent(mask, 4, p->attention.mask);
    for (int i = 0; i < 4 && fits; i++)
        fits = p->attention.mask[i] == 1 || p->attention.mask[i] == scores[i];
    if (!fits)
        memset(p->attention.mask, 0, sizeof p->attention.mask);
    return lower_done(l);
}

/* Queries, keys and values of [batch, heads, length, size] or [batch, length, heads · size]. Keys of the past
 * come on top of those of this step. */
static int read_standard(lowering *l, heads *h)
{
    const bz_type *q = lower_in(l, 0), *k = lower_in(l, 1), *v = lower_in(l, 2), *past = lower_in(l, 4);
    if (!q || !k || !v || q->rank != k->rank || q->rank != v->rank || (q->rank != 3 && q->rank != 4))
        return -1;
    h->batch = q->dims[0];
    h->heads = q->rank == 4 ? q->dims[1] : lower_int(l, "q_heads", 0);
    h->kv_heads = q->rank == 4 ? k->dims[1] : lower_int(l, "kv_heads", h->heads);
    if (h->heads < 1 || h->kv_heads < 1)
        return -1;
    h->rows = q->dims[q->rank - 2];
    h->keys = k->dims[k->rank - 2] + (past && past->rank == 4 ? past->dims[2] : 0);
    h->size = q->rank == 4 ? q->dims[3] : q->dims[2] / h->heads;
    h->v_size = q->rank == 4 ? v->dims[3] : v->dims[2] / h->kv_heads;
    return 0;
}

/* ONNX Runtime's operators say in their key how many keys there are and how wide everything is. */
static int read_runtime(lowering *l, heads *h)
{
    const bz_type *y = &l->layer->out[0];
    h->heads = lower_int(l, "heads", 0);
    h->kv_heads = lower_int(l, "kv_heads", h->heads);
    h->keys = lower_int(l, "kv", 0);
    h->all = lower_int(l, "keys", 0);
    if (h->heads < 1 || h->kv_heads < 1 || h->keys < 1 || y->kind != BZ_TYPE_TENSOR || y->rank < 2 || y->rank > 3)
        return -1;
    h->size = lower_int(l, "qk", 0) / h->heads;
    h->v_size = lower_int(l, "v", 0) / h->heads;
    h->batch = y->rank == 3 ? y->dims[0] : y->dims[0] / h->keys; /* without padding all sequences are one */
    h->rows = y->rank == 3 ? y->dims[1] : h->keys;
    return 0;
}

/* Queries, keys and values of one product, where the layer projects; its multiply-adds. */
static double add_projection(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *w = lower_in(l, 1);
    if (!x || !w || w->rank != 2 || x->rank < 2 || x->dims[x->rank - 1] < 1)
        return 0;
    bz_problem *p = lower_gemm_step(l, bz_type_elements(x) / x->dims[x->rank - 1], w->dims[1], w->dims[0]);
    lower_product_types(l, p);
    if (lower_in(l, 2))
        lower_post(p, BZ_FN_BIAS, 0, 0);
    return (double)p->gemm.m * (double)p->gemm.n * (double)p->gemm.k;
}

/* What is added to the scores. Masks of bools and lengths of sequences are left out, here as in the steps. */
static const bz_type *mask_of(const lowering *l, bool runtime)
{
    const bz_type *mask = lower_in(l, !runtime ? 3 : bz_layer_param(l->layer, "kv_heads") ? 10 : 5);
    return mask && bz_dtype_is_float(mask->dtype) ? mask : NULL;
}

/* Whether attention between layers in f16 may be of 8-bit floats. */
static bool may_be_eight(const lowering *l)
{
    return l->wanted == BZ_F8E4M3 && l->dtype == BZ_F16;
}

/* The one call, where it is known which keys a query sees: as many as there are queries, or, of ONNX Runtime's, also those of a past,
 * which its queries stand behind; its grouped ones are always causal. A single one sees all. */
static int fused_alternative(lowering *l, const heads *h, bool runtime, bool eight)
{
    bool causal = lower_int(l, "causal", runtime && bz_layer_param(l->layer, "kv_heads"));
    const bz_type *mask = mask_of(l, runtime);
    bool alike = runtime || !(causal || mask); /* the standard caps what is hidden, too */
    if (bz_layer_param(l->layer, "softcap") && (h->softcap <= 0 || !alike))
        return 0;
    if (causal && runtime && h->rows == 1)
        causal = false;
    bool open = runtime ? h->rows > keys_of(h, causal) : h->rows != keys_of(h, causal);
    return causal && open ? 0 : attention_call(l, BZ_PROBLEM_ATTENTION, h, causal, mask, eight);
}

/* Where the shape rule counted other products than these, the layer is something else and stays unpriced. */
static int lower_attention(lowering *l)
{
    heads h = {0};
    bool runtime = bz_layer_param(l->layer, "qk");
    if ((runtime ? read_runtime(l, &h) : read_standard(l, &h)) || h.batch < 1 || h.rows < 1 || h.keys < 1 ||
        h.size < 1 || h.v_size < 1 || h.heads % h.kv_heads)
        return lower_no(l, "this form of attention has no benchmark");
    lower_real(l, "softcap", &h.softcap);
    h.sink = runtime && bz_layer_param(l->layer, "kv_heads") && lower_in(l, 11);
    double macs =
        (double)h.batch * (double)h.heads * (double)h.rows * (double)h.keys * ((double)h.size + (double)h.v_size);
    bz_dtype given = l->dtype;
    for (int fused = 0; fused < (may_be_eight(l) ? 3 : 2); fused++) {
        l->dtype = given;
        double projection = runtime ? add_projection(l) : 0;
        if (macs + projection != (double)l->layer->macs)
            return lower_no(l, "this form of attention has no benchmark");
        if (!bz_dtype_is_float(l->dtype)) /* what is quantized is the projection */
            l->dtype = l->layer->out[0].dtype;
        if (fused ? fused_alternative(l, &h, runtime, fused == 2) : attention_steps(l, &h))
            return -1;
    }
    l->n_steps = 0;
    return 0;
}

static int lower_attention_grad(lowering *l)
{
    const bz_type *k = lower_in(l, 1);
    bool causal = lower_int(l, "causal", 0);
    heads h = {0};
    if (read_standard(l, &h) || h.batch < 1 || h.rows < 1 || h.size < 1 || h.v_size < 1 || h.heads % h.kv_heads)
        return lower_no(l, "this form of attention has no benchmark");
    h.keys = k->dims[k->rank - 2]; /* operand 4 is no past */
    if (h.keys < 1)
        return lower_no(l, "this form of attention has no benchmark");
    if (attention_grad_steps(l, &h))
        return -1;
    bool fits = !bz_layer_param(l->layer, "softcap") && !(causal && h.rows != h.keys) &&
                !mask_of(l, false); /* the call has none */
    return fits ? attention_call(l, BZ_PROBLEM_ATTENTION_GRAD, &h, causal, NULL, false) : 0;
}

/* [batch, heads, …]: a batch alone stands before one head each. */
static void with_heads(const bz_type *t, bz_dim dims[4], bz_type *out)
{
    *out = *t;
    if (t->rank != 3)
        return;
    memcpy(dims, (bz_dim[]){t->dims[0], 1, t->dims[1], t->dims[2]}, 4 * sizeof *dims);
    out->rank = 4;
    out->dims = dims;
}

/* A product of two operands as they lie; the next layers read what it makes. */
static bool is_product(const bz_layer *layer)
{
    return !strcmp(layer->kind, "matmul") && layer->n_in == 2 && !bz_layer_param(layer, "trans") &&
           !bz_layer_param(layer, "trans_batch") && !bz_layer_param(layer, "activation") &&
           layer->in[0].kind == BZ_TYPE_TENSOR && layer->in[1].kind == BZ_TYPE_TENSOR;
}

/* Whether a layer makes the softmax of every row. */
static bool is_row_softmax(const lowering *l, const bz_layer *layer)
{
    bz_lowering low;
    bz_lower(layer, l->wanted, l->arena, &low);
    if (low.n != 1 || low.alternative[0].n != 1 || low.alternative[0].problem->kind != BZ_PROBLEM_SOFTMAX)
        return false;
    const bz_problem *p = low.alternative[0].problem;
    return p->softmax.axis == bz_extent_rank(p->softmax.x) - 1;
}

/* The operand besides `current`: a number, which the scores are multiplied by, or a mask, which is added. */
static bool is_between(const bz_layer *layer, bz_value_id current, const bz_type **mask)
{
    bool adds = !strcmp(layer->kind, "add"), divides = !strcmp(layer->kind, "div");
    int own = layer->n_in == 2 && layer->node->in[1] == current;
    if (layer->n_in != 2 || layer->node->in[own] != current || layer->node->in[!own] == current || (divides && own))
        return false;
    const bz_type *other = &layer->in[!own];
    if (!adds)
        return (divides || !strcmp(layer->kind, "mul")) && layer->in_constant[!own] && bz_type_elements(other) == 1;
    if (*mask || other->kind != BZ_TYPE_TENSOR || bz_layer_param(layer, "axis"))
        return false;
    *mask = other;
    return true;
}

static int read_written(const bz_type *q, const bz_type *k, const bz_type *v, heads *h)
{
    if (q->rank != 4 || k->rank != 4 || v->rank != 4)
        return -1;
    *h = (heads){.batch = q->dims[0],
                 .heads = q->dims[1],
                 .kv_heads = k->dims[1],
                 .rows = q->dims[2],
                 .keys = k->dims[3],
                 .size = q->dims[3],
                 .v_size = v->dims[3]};
    bool shared = h->kv_heads == h->heads || h->kv_heads == 1; /* what broadcasting can say */
    return shared && k->dims[0] == h->batch && v->dims[0] == h->batch && v->dims[1] == h->kv_heads ? 0 : -1;
}

int lower_attention_group(lowering *l, const bz_layers *layers, const int *layer, int n)
{
    const bz_layer *first = &layers->layer[layer[0]], *last = &layers->layer[layer[n - 1]];
    const bz_type *mask = NULL;
    bz_dim dims[4][4];
    bz_type q, k, v, m;
    heads h;
    bool softmax = false;
    if (n < 3 || !is_product(first) || !is_product(last))
        return -1;
    bz_value_id current = first->node->out[0];
    for (int i = 1; i < n - 1; i++) {
        const bz_layer *step = &layers->layer[layer[i]];
        bool is_softmax = !softmax && step->n_in && step->node->in[0] == current && is_row_softmax(l, step);
        if (!is_softmax && (softmax || !is_between(step, current, &mask)))
            return -1;
        softmax |= is_softmax;
        current = step->node->out[0];
    }
    with_heads(&first->in[0], dims[0], &q);
    with_heads(&first->in[1], dims[1], &k);
    with_heads(&last->in[1], dims[2], &v);
    l->dtype = lower_dtype(q.dtype, l->wanted);
    if (!softmax || last->node->in[0] != current || !bz_dtype_is_float(l->dtype) || read_written(&q, &k, &v, &h))
        return -1;
    if (mask)
        with_heads(mask, dims[3], &m);
    /* a mask of three dimensions has heads of its own where the scores have heads */
    mask = !mask ? NULL : first->out[0].rank == 3 ? &m : mask;
    if (attention_call(l, BZ_PROBLEM_ATTENTION, &h, false, mask, false))
        return -1;
    return may_be_eight(l) && l->n < MAX_ALTERNATIVES ? attention_call(l, BZ_PROBLEM_ATTENTION, &h, false, mask, true)
                                                      : 0;
}

enum { LETTERS = 128, MAX_TERMS = BZ_EINSUM_TERMS };

typedef struct equation {
    char term[MAX_TERMS][BZ_PROBLEM_RANK + 1], result[BZ_PROBLEM_RANK + 1];
    int n_terms;
    int64_t size[LETTERS];
} equation;

/* "bhqd,bhkd->bhqk" up to a comma or an arrow. The dimensions of an ellipsis become digits, the last one's 0. */
static int read_term(const char **s, char *out, int rank)
{
    int n = 0, letters = 0;
    for (const char *p = *s; *p && *p != ',' && *p != '-'; p++)
        letters += *p != '.' && *p != ' ';
    if (rank < 0 || rank > BZ_PROBLEM_RANK || letters > rank)
        return -1;
    for (; **s && **s != ',' && **s != '-'; (*s)++) {
        if (**s == '.' && n + rank - letters <= rank) {
            for (int i = rank - letters; i-- > 0;)
                out[n++] = (char)('0' + i);
            *s += strspn(*s, ".") - 1;
        } else if (**s != ' ' && n < rank) {
            out[n++] = **s;
        }
    }
    out[n] = 0;
    return n == rank ? 0 : -1;
}

/* Fails where a letter stands twice in an operand (a diagonal) or is broadcast. */
static int read_equation(const lowering *l, equation *e)
{
    const char *s = lower_word(l, "equation", "");
    *e = (equation){.n_terms = l->layer->n_in};
    if (e->n_terms < 1 || e->n_terms > MAX_TERMS || !strstr(s, "->"))
        return -1;
    for (int k = 0; k < e->n_terms; k++) {
        const bz_type *t = lower_in(l, k);
        if (!t || read_term(&s, e->term[k], t->rank))
            return -1;
        for (int i = 0; i < t->rank; i++) {
            int64_t *size = &e->size[e->term[k][i] & (LETTERS - 1)];
            if ((*size && *size != t->dims[i]) || strchr(e->term[k] + i + 1, e->term[k][i]))
                return -1;
            *size = t->dims[i];
        }
        s += *s == ',';
    }
    if (strncmp(s, "->", 2) != 0)
        return -1;
    s += 2;
    return read_term(&s, e->result, l->layer->out[0].rank);
}

/* One operand: its dimensions in another order, or fewer of them. */
static int one_operand(lowering *l, const equation *e)
{
    const bz_type *x = lower_in(l, 0);
    bool all = (int)strlen(e->result) == x->rank;
    if (l->dtype == BZ_F64)
        return lower_no(l, "no library computes it in f64");
    bz_problem *p = lower_step(l, all ? BZ_PROBLEM_TRANSPOSE : BZ_PROBLEM_REDUCE);
    if (lower_extent(x, 0, all ? p->transpose.x : p->reduce.x))
        return lower_no(l, "it has too many dimensions");
    for (int i = 0; all && i < x->rank; i++)
        p->transpose.perm[i] = strchr(e->term[0], e->result[i]) - e->term[0];
    if (!all) {
        p->reduce.fn = BZ_FN_SUM;
        for (int i = 0; i < x->rank; i++)
            p->reduce.y[i] = strchr(e->result, e->term[0][i]) ? x->dims[i] : 1;
        if (!memcmp(p->reduce.x, p->reduce.y, sizeof p->reduce.x))
            return lower_no(l, "it reduces dimensions of 1: there is nothing to sum up");
    }
    return lower_done(l);
}

static uint64_t letters_of(const char *term)
{
    uint64_t letters = 0;
    for (; *term; term++)
        letters |= bz_einsum_letter(*term);
    return letters;
}

/* Letters of both operands and the result are a batch; those of both alone are summed over; those of one
 * are rows or columns. */
static int two_operands(lowering *l, const bz_einsum_pair *e, const int64_t *size, bool constant)
{
    int64_t batch = 1, m = 1, n = 1, k = 1;
    for (int c = 0; c < 64; c++) {
        bool a = e->a >> c & 1, b = e->b >> c & 1, y = e->y >> c & 1;
        if (!a && !b)
            continue;
        if (a != b && !y)
            return lower_no(l, "its equation is no product of matrices");
        int64_t *extent = a && b ? (y ? &batch : &k) : a ? &m : &n;
        if (__builtin_mul_overflow(*extent, size[c], extent))
            return lower_no(l, "its operands are too large");
    }
    if (m == 1 && n == 1 && k == 1) {
        if (l->dtype == BZ_F64)
            return lower_no(l, "no library computes it in f64");
        lower_combine(l, BZ_FN_MUL, (bz_extent){batch}, (bz_extent){batch});
        return 0;
    }
    bz_problem *p = batch == 1 ? lower_matrices(l, (bz_extent){m, k}, (bz_extent){k, n}) : batched(l, batch, m, k, n);
    p->matmul.constant = constant;
    lower_product_types(l, p);
    return 0;
}

/* Products of two, one after the other, in the order that multiplies least. */
static int several_operands(lowering *l, const equation *e)
{
    bz_einsum_pair pair[MAX_TERMS];
    uint64_t term[MAX_TERMS] = {0}, result = letters_of(e->result);
    int64_t size[64];
    for (int c = 0; c < LETTERS; c++)
        if (bz_einsum_letter((char)c))
            size[__builtin_ctzll(bz_einsum_letter((char)c))] = e->size[c];
    for (int k = 0; k < e->n_terms; k++)
        term[k] = letters_of(e->term[k]);
    bz_einsum_pairs(term, e->n_terms, result, size, pair);
    for (int i = 0; i < e->n_terms - 1; i++)
        if (two_operands(l, &pair[i], size, e->n_terms == 2 && l->layer->in_constant[1]))
            return -1;
    return lower_done(l);
}

/* How the operands lie is for the library to choose. */
static int lower_einsum(lowering *l)
{
    equation e;
    if (read_equation(l, &e))
        return lower_no(l, "its equation is no product of matrices");
    return e.n_terms == 1 ? one_operand(l, &e) : several_operands(l, &e);
}

/* The axes of a term that have these letters, in the order of letters. */
static int axes_of(const char *term, uint64_t letters, int *axis)
{
    int n = 0;
    for (; letters; letters &= letters - 1)
        for (int i = 0; term[i]; i++)
            if (bz_einsum_letter(term[i]) == (letters & -letters))
                axis[n++] = i;
    return n;
}

bool bz_lower_einsum_order(const bz_layer *layer, bz_einsum_order *out)
{
    const lowering l = {.layer = layer};
    equation e;
    if (read_equation(&l, &e) || e.n_terms > 2)
        return false;
    for (int i = 0, n = 0; e.n_terms == 1 && e.term[0][i]; i++) { /* a reduction leaves dimensions as they come */
        const char *at = strchr(e.result, e.term[0][i]);
        out->axis[0][i] = i;
        if (at)
            out->axis[2][n++] = (int)(at - e.result);
    }
    if (e.n_terms == 1)
        return true;
    const char *term[] = {e.term[0], e.term[1], e.result};
    uint64_t a = letters_of(term[0]), b = letters_of(term[1]), y = letters_of(term[2]);
    const uint64_t batch = a & b & y, sum = a & b & ~y, rows = a & ~b, columns = b & ~a;
    const uint64_t part[3][3] = {{batch, rows, sum}, {batch, sum, columns}, {batch, rows, columns}};
    for (int t = 0; t < 3; t++)
        for (int i = 0, n = 0; i < 3; i++)
            n += axes_of(term[t], part[t][i], out->axis[t] + n);
    return true;
}

const lower_row lower_attention_rows[] = {
    {"attention", lower_attention, .types = FLOATS},
    {"attention_training", lower_attention, .types = FLOATS},
    {"attention_grad", lower_attention_grad, .types = FLOATS},
    {"packedattention", lower_attention, .types = FLOATS},
    {"qattention", lower_attention, .types = BYTES},
    {"einsum", lower_einsum, .types = FLOATS | DOUBLE},
    {0},
};
