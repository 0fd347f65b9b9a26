/* Layers and calls as atoms, with signatures that do not depend on how something is spelled. */
#include "explain/align.h"

#include <stdlib.h>
#include <string.h>

static uint32_t number_of(bz_align_words *w, const char *s, size_t n)
{
    uint32_t at = bz_map_get(&w->map, s, n);
    if (at != BZ_MAP_NONE)
        return at;
    return bz_map_add(&w->map, bz_arena_strn(w->arena, s, n), n, ++w->n);
}

uint32_t bz_align_word(bz_align_words *w, const char *s)
{
    return number_of(w, s, strlen(s));
}

bool bz_align_knows(const bz_align_words *w, const char *s)
{
    return bz_map_get(&w->map, s, strlen(s)) != BZ_MAP_NONE;
}

void bz_align_words_begin(bz_align_words *w, bz_arena *arena)
{
    *w = (bz_align_words){.arena = arena};
    w->bias = bz_align_word(w, "bias");
    w->batchnorm = bz_align_word(w, "batchnorm");
}

void bz_align_words_end(bz_align_words *w)
{
    bz_map_free(&w->map);
    bz_buf_free(&w->text);
}

/* Padding that no window reaches makes no difference: libraries spell it, or not. */
static void trim_pad(bz_problem *p)
{
    bool conv = p->kind == BZ_PROBLEM_CONV, pool = p->kind == BZ_PROBLEM_POOL;
    if (!conv && !pool)
        return;
    const int64_t *x = conv ? p->conv.x : p->pool.x, *kernel = conv ? p->conv.w + 2 : p->pool.kernel;
    const int64_t *stride = conv ? p->conv.stride : p->pool.stride;
    const int64_t *dilation = conv ? p->conv.dilation : p->pool.dilation;
    int64_t *pad = conv ? p->conv.pad : p->pool.pad;
    int spatial = bz_extent_rank(x) - 2;
    for (int a = 0; a < spatial; a++) {
        int64_t window = (kernel[a] - 1) * dilation[a] + 1, free = x[2 + a] + pad[a] + pad[spatial + a] - window;
        int64_t unused = stride[a] > 0 && free > 0 ? free % stride[a] : 0;
        pad[spatial + a] -= unused < pad[spatial + a] ? unused : pad[spatial + a];
    }
}

static void result_of(const bz_problem *p, bz_extent y)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list);
    memcpy(y, list[n - 1].dim, sizeof(bz_extent));
}

static uint32_t close_text(bz_align_words *w)
{
    uint32_t id = number_of(w, bz_buf_text(&w->text), w->text.len);
    bz_buf_clear(&w->text);
    return id;
}

/* op(A)[m,k] op(B)[k,n]: the same for the transposed product, which row-major and column-major libraries mix. */
static uint32_t product_id(bz_align_words *w, int64_t m, int64_t n, int64_t k, int64_t batch, bz_dtype dtype)
{
    bz_buf_printf(&w->text, "product %lld %lld %lld %lld %s", (long long)(m < n ? m : n), (long long)(m < n ? n : m),
                  (long long)k, (long long)batch, bz_dtype_name(dtype));
    return close_text(w);
}

/* The atom of all products of a matmul together, or of one of them; 0 where it has only one. */
static uint32_t matmul_id(bz_align_words *w, const bz_problem *p, bool one)
{
    bz_extent y;
    result_of(p, y);
    int rank = bz_extent_rank(p->matmul.a), out = bz_extent_rank(y);
    int64_t n = out ? y[out - 1] : 1, k = rank ? p->matmul.a[rank - 1] : 1, rows = 1, batch = 1;
    for (int i = 0; i < out - 1; i++)
        *(i == out - 2 ? &rows : &batch) *= y[i];
    int b = bz_extent_rank(p->matmul.b);
    bool shared = bz_extent_count(p->matmul.b) == (b > 1 ? p->matmul.b[b - 1] * p->matmul.b[b - 2] : 0);
    if (one)
        return shared || batch == 1 ? 0 : product_id(w, rows, n, k, 1, p->dtype);
    return product_id(w, shared ? rows * batch : rows, n, k, shared ? 1 : batch, p->dtype);
}

/* By elements: what works on each alone does not care for the shape. */
static uint32_t element_id(bz_align_words *w, bz_fn fn, float alpha, float beta, const int64_t *x, bz_dtype dtype)
{
    bz_buf_printf(&w->text, "%s %g %g %lld %s", bz_fn_name(fn), (double)alpha, (double)beta,
                  (long long)bz_extent_count(x), bz_dtype_name(dtype));
    return close_text(w);
}

/* A convolution is a product of its weights and its input, unfolded: of one image and group at a time, or of all. So are its gradients, of two of the
 * three. */
static void conv_also(bz_align_words *w, const bz_problem *p, bz_align_atom *atom)
{
    bz_extent y;
    bz_problem forward = *p;
    forward.kind = BZ_PROBLEM_CONV;
    result_of(&forward, y);
    if (p->kind == BZ_PROBLEM_DECONV) /* each of x is multiplied, and what is unfolded is the result */
        memcpy(y, p->conv.x, sizeof y);
    int64_t places = 1, taps = p->conv.w[1], group = p->conv.group > 0 ? p->conv.group : 1, out = p->conv.w[0] / group;
    for (int i = 2; y[i]; i++) {
        places *= y[i];
        taps *= p->conv.w[i];
    }
    bool unfolds_result = p->kind == BZ_PROBLEM_CONV_DATA || p->kind == BZ_PROBLEM_DECONV;
    int64_t m = unfolds_result ? taps : out, n = p->kind == BZ_PROBLEM_CONV_WEIGHTS ? taps : places,
            k = unfolds_result                       ? out
                : p->kind == BZ_PROBLEM_CONV_WEIGHTS ? places
                                                     : taps;
    atom->also[0] = product_id(w, m, n, k, 1, p->dtype);
    atom->also[1] = product_id(w, m, n, k, p->conv.x[0] * group, p->dtype);
}

/* The bias of an image as a product: of the channels' values and of ones. */
static uint32_t bias_id(bz_align_words *w, const bz_problem *p)
{
    bz_extent y;
    int64_t places = 1;
    result_of(p, y);
    for (int i = 2; y[i]; i++)
        places *= y[i];
    return product_id(w, y[1], places, 1, 1, p->dtype);
}

static uint32_t near_id(bz_align_words *w, const bz_problem *p)
{
    if (p->kind != BZ_PROBLEM_CONV)
        return 0;
    bz_buf_printf(&w->text, "conv %lld", (long long)p->conv.group);
    for (int i = 0; p->conv.w[i]; i++)
        bz_buf_printf(&w->text, " %lld", (long long)p->conv.w[i]);
    return close_text(w);
}

static bool by_channel(const bz_problem *p)
{
    const int64_t *a = p->binary.a, *b = p->binary.b;
    int rank = bz_extent_rank(a), n = bz_extent_rank(b), wide = 0;
    for (int i = 0; i < n; i++)
        wide += b[i] != 1;
    return p->kind == BZ_PROBLEM_BINARY && p->binary.fn == BZ_FN_ADD && wide == 1 && n <= rank &&
           bz_extent_count(b) < bz_extent_count(a);
}

/* Kinds of layers that are sorts of one kind. Windows as large as x are windows. */
static const struct {
    const char *kinds, *kind, *sort;
} SORTS[] = {{"maxpool globalmaxpool", "pool", "maxpool"}, {"avgpool globalavgpool", "pool", "avgpool"}};

bz_align_atom bz_align_named_atom(bz_align_words *w, const char *kind)
{
    const char *sort = NULL;
    for (size_t i = 0; i < sizeof SORTS / sizeof *SORTS && !sort; i++)
        if (bz_has_word(SORTS[i].kinds, kind)) {
            sort = SORTS[i].sort;
            kind = SORTS[i].kind;
        }
    uint32_t word = bz_align_word(w, kind);
    return (bz_align_atom){.kind = word, .sort = sort ? bz_align_word(w, sort) : 0, .optional = word == w->bias};
}

static bz_align_atom core_atom(bz_align_words *w, bz_problem p)
{
    bz_align_atom atom = {0};
    bz_extent y;
    p.post[0].fn = BZ_FN_NONE;
    trim_pad(&p);
    result_of(&p, y);
    switch (p.kind) {
    case BZ_PROBLEM_GEMM:
        atom.kind = bz_align_word(w, "product");
        atom.id = product_id(w, p.gemm.m, p.gemm.n, p.gemm.k, p.gemm.batch, p.dtype);
        break;
    case BZ_PROBLEM_GEMV:
        atom.kind = bz_align_word(w, "product");
        atom.id = product_id(w, p.gemv.m, 1, p.gemv.k, 1, p.dtype);
        break;
    case BZ_PROBLEM_MATMUL:
        atom.kind = bz_align_word(w, "product");
        atom.id = matmul_id(w, &p, false);
        break;
    case BZ_PROBLEM_ACTIVATION:
        atom.kind = bz_align_word(w, bz_fn_name(p.activation.fn));
        atom.id = element_id(w, p.activation.fn, p.activation.alpha, p.activation.beta, p.activation.x, p.dtype);
        break;
    case BZ_PROBLEM_BINARY:
        atom.optional = by_channel(&p);
        atom.kind = atom.optional ? w->bias : bz_align_word(w, bz_fn_name(p.binary.fn));
        atom.id = element_id(w, atom.optional ? BZ_FN_BIAS : p.binary.fn, 0, 0, y, p.dtype);
        break;
    default:
        atom = bz_align_named_atom(w, p.kind != BZ_PROBLEM_POOL    ? bz_problem_kind_name(p.kind)
                                      : p.pool.mode == BZ_POOL_MAX ? "maxpool"
                                                                   : "avgpool");
        bz_problem_print(&p, &w->text);
        atom.id = close_text(w);
        atom.near = near_id(w, &p);
    }
    return atom;
}

int bz_align_problem_atoms(bz_align_words *w, const bz_problem *p, bz_align_atom *out)
{
    int n = 0;
    bz_extent y;
    result_of(p, y);
    out[n++] = core_atom(w, *p);
    for (int i = 0; p->post[i].fn && n < BZ_ALIGN_ATOMS; i++) {
        const bz_post *post = &p->post[i];
        out[n++] = (bz_align_atom){.kind = bz_align_word(w, bz_fn_name(post->fn)),
                                   .id = element_id(w, post->fn, post->alpha, post->beta, y, p->dtype),
                                   .optional = post->fn == BZ_FN_BIAS,
                                   .post = true};
    }
    return n;
}

/* The next "[64,3,7,7]" in the text that is nothing but numbers; where it ends, or NULL. */
static const char *next_shape(const char *p, int64_t *v, int *rank)
{
    while ((p = strchr(p, '['))) {
        char *end = (char *)++p;
        for (*rank = 0; *rank < BZ_PROBLEM_RANK; p = end + 1) {
            long long x = strtoll(p, &end, 10);
            if (end == p || x < 1)
                break;
            v[(*rank)++] = x;
            if (*end != ',')
                break;
        }
        if (*rank && *end == ']')
            return end + 1;
        p = end;
    }
    return NULL;
}

int bz_align_operator_atoms(bz_align_words *w, const char *kind, const char *detail, bz_align_atom *out)
{
    int64_t x[BZ_PROBLEM_RANK] = {0}, weights[BZ_PROBLEM_RANK], bias[BZ_PROBLEM_RANK];
    int rank, n;
    const char *p = strstr(detail, "inputs=");
    char word[64];
    int kinds = 0;
    for (const char *rest = kind; kinds < BZ_ALIGN_ATOMS && bz_word_next(&rest, word, sizeof word);) {
        size_t last = strlen(word) - 1;
        bool maybe = word[last] == '?';
        word[maybe ? last : last + 1] = 0;
        out[kinds] = bz_align_named_atom(w, word);
        out[kinds].optional |= maybe;
        out[kinds].post = out[kinds].optional && kinds;
        kinds++;
    }
    if (strcmp(kind, "conv") != 0 || !p || !(p = next_shape(p, x, &rank)) || !(p = next_shape(p, weights, &n)) ||
        n < 3 || rank < 2)
        return kinds;
    bz_buf_printf(&w->text, "conv %lld", (long long)(x[1] / weights[1]));
    for (int i = 0; i < n; i++)
        bz_buf_printf(&w->text, " %lld", (long long)weights[i]);
    out[0].near = close_text(w);
    if (!next_shape(p, bias, &rank) || rank != 1 || bias[0] != weights[0])
        return 1;
    out[1] = bz_align_named_atom(w, "bias");
    out[1].post = true;
    return 2;
}

static const bz_alternative *first_real(const bz_lowering *low)
{
    for (int i = 0; i < low->n; i++)
        if (!low->alternative[i].modelled && !low->alternative[i].fallback)
            return &low->alternative[i];
    return low->n ? &low->alternative[0] : NULL;
}

static void add_also(bz_align_atom *atom, uint32_t id)
{
    int k = 0;
    while (k < BZ_ALIGN_ALSO && atom->also[k] && atom->also[k] != id)
        k++;
    if (k < BZ_ALIGN_ALSO && id && id != atom->id)
        atom->also[k] = id;
}

int bz_align_layer_atoms(bz_align_words *w, const bz_bound_layer *l, bz_align_atom *out)
{
    const bz_lowering *low = l->lowering;
    const bz_alternative *a = low ? first_real(low) : NULL;
    int n = 0;
    if (!a || a->problem[0].kind == BZ_PROBLEM_COPY) {
        out[0] = bz_align_named_atom(w, l->layer->kind);
        return 1;
    }
    for (int i = 0; i < a->n; i++) {
        bz_align_atom part[BZ_ALIGN_ATOMS];
        int parts = bz_align_problem_atoms(w, &a->problem[i], part);
        for (int k = 0; k < parts && n < BZ_ALIGN_ATOMS; k++)
            out[n++] = part[k];
    }
    out[0].optional = false; /* a layer that is nothing but a bias is one all the same */
    out[0].own = bz_align_word(w, l->layer->kind);
    const bz_problem *p = &a->problem[0];
    if (p->kind == BZ_PROBLEM_CONV || p->kind == BZ_PROBLEM_DECONV || p->kind == BZ_PROBLEM_CONV_DATA ||
        p->kind == BZ_PROBLEM_CONV_WEIGHTS) {
        conv_also(w, p, &out[0]);
        for (int k = 1; k < n; k++)
            if (out[k].kind == w->bias)
                add_also(&out[k], bias_id(w, p));
    }
    if (a->problem[0].kind == BZ_PROBLEM_MATMUL)
        add_also(&out[0], matmul_id(w, &a->problem[0], true));
    for (int i = 0; i < low->n && !bz_problem_has(a->problem, BZ_TRAIT_RECURRENT); i++)
        if (&low->alternative[i] != a && low->alternative[i].problem[0].kind != BZ_PROBLEM_COPY)
            add_also(&out[0], core_atom(w, low->alternative[i].problem[0]).id);
    return n;
}

/* Of states each step waits for the one before, and in the first one there is none to go back to. Operands and weights are multiplied all steps at
 * once, or step by step. */
int bz_align_recurrent_parts(bz_align_words *w, const bz_bound_layer *l, bz_align_part *out)
{
    const bz_alternative *a = l->lowering ? first_real(l->lowering) : NULL;
    const bz_problem *p = a ? a->problem : NULL;
    if (!p || !bz_problem_has(p, BZ_TRAIT_RECURRENT))
        return 0;
    bool back = bz_problem_has(p, BZ_TRAIT_GRADIENT);
    int64_t steps = p->rnn.seq, rows = p->rnn.batch, all = steps * rows, in = p->rnn.input, h = p->rnn.hidden,
            width = bz_rnn_gates(p->kind) * h, dirs = p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1;
    const int64_t FORWARD[][3] = {{rows, width, h}, {all, width, in}, {rows, width, in}},
                  BACK[][3] = {{rows, h, width}, {all, in, width}, {rows, in, width}, {width, h, all},
                               {width, h, rows}, {width, in, all}, {width, in, rows}};
    int n = back ? (int)(sizeof BACK / sizeof *BACK) : (int)(sizeof FORWARD / sizeof *FORWARD);
    for (int i = 0; i < n; i++) {
        const int64_t *v = back ? BACK[i] : FORWARD[i];
        bool instead = i && i % 2 == 0;
        out[i] = (bz_align_part){.id = product_id(w, v[0], v[1], v[2], 1, p->dtype),
                                 .least = i              ? 0
                                          : steps > back ? (steps - back) * dirs
                                                         : 1,
                                 .most = dirs * (i && !instead ? 1 : steps),
                                 .instead = instead};
    }
    return n;
}

bool bz_align_group_atom(bz_align_words *w, const bz_lowering *low, bz_align_atom *out)
{
    bz_align_atom part[BZ_ALIGN_ATOMS];
    for (int i = 0; i < low->n; i++) {
        const bz_alternative *a = &low->alternative[i];
        if (a->n == 1 && a->problem[0].kind != BZ_PROBLEM_COPY &&
            bz_align_problem_atoms(w, &a->problem[0], part) == 1) {
            *out = part[0];
            return true;
        }
    }
    return false;
}

enum { CHANGES = 16 };

static const char *next_member(const char *text, size_t *n)
{
    text += strspn(text, " ");
    *n = strcspn(text, " ");
    return *n ? text : NULL;
}

/* The value of a member "name=value". */
static const char *member(const char *text, const char *name, size_t n_name, size_t *n)
{
    size_t m;
    for (const char *p = text; (p = next_member(p, &m)); p += m)
        if (m > n_name && p[n_name] == '=' && !memcmp(p, name, n_name)) {
            *n = m - n_name - 1;
            return p + n_name + 1;
        }
    return NULL;
}

/* Canonical texts of one kind, with the padding trimmed: members that differ. What is told is the text as it was. */
static int compare(const char *expected, const char *found, const char *spelled, bz_arena *arena, bz_change *out)
{
    int changes = 0;
    size_t n, n_found, n_value;
    for (const char *p = expected; (p = next_member(p, &n)) && changes < CHANGES; p += n) {
        const char *equal = memchr(p, '=', n);
        size_t name = equal ? (size_t)(equal - p) : 0;
        const char *other = equal ? member(found, p, name, &n_found) : NULL;
        if (!other || (n_found == n - name - 1 && !memcmp(other, equal + 1, n_found)))
            continue;
        const char *value = member(spelled, p, name, &n_value);
        out[changes++] = (bz_change){bz_arena_strn(arena, p, name), bz_arena_strn(arena, value, n_value),
                                     bz_arena_strn(arena, other, n_found)};
    }
    return changes;
}

static const char *text_of(bz_problem p, bool trim, bz_arena *arena)
{
    bz_buf text = {0};
    p.post[0].fn = BZ_FN_NONE;
    if (trim)
        trim_pad(&p);
    bz_problem_print(&p, &text);
    return bz_buf_keep(&text, arena);
}

int bz_align_changes(const bz_bound_layer *l, const bz_problem *found, bz_arena *arena, const bz_change **out)
{
    bz_change least[CHANGES], now[CHANGES];
    int best = -1;
    const bz_alternative *first = l->lowering ? first_real(l->lowering) : NULL;
    const char *text = text_of(*found, true, arena);
    *out = NULL;
    for (int i = 0; first && i < l->lowering->n; i++) {
        const bz_problem *p = &l->lowering->alternative[i].problem[0];
        if (p->kind != found->kind)
            continue;
        int n = compare(text_of(*p, true, arena), text, text_of(*p, false, arena), arena, now);
        if (best < 0 || n < best)
            memcpy(least, now, sizeof least), best = n;
    }
    if (best < 0 && first && first->problem[0].kind != BZ_PROBLEM_COPY) {
        least[0] = (bz_change){"call", bz_problem_kind_name(first->problem[0].kind), bz_problem_kind_name(found->kind)};
        best = 1;
    }
    if (best > 0)
        *out = bz_arena_dup(arena, least, (size_t)best * sizeof *least);
    return best > 0 ? best : 0;
}
