/* Prompts and tokens of a language model, by its library calls. Both multiply with the same weights: a prompt has many rows where a token
 * has one for each sequence. And the cache that attention reads is one token longer at each step: a network that is asked for
 * batches of different sizes has nothing that grows so. */
#include "profile/constants.h"
#include "profile/sequence.h"

enum {
    LEAST_ROWS = 4, /* of a prompt, for each row of a token */
    MOST_PAIRS =
        64, /* that are counted: one that half of the products have is among the first; and a file that lies may have thousands */
};

typedef struct {
    int64_t dim[3]; /* ascending */
} product;

typedef struct {
    product *product;
    size_t n;
    int64_t rows,
        of_typical; /* that most of its products have where those of the typical iteration have `of_typical`; 0: equal */
    bool same_weights;
} pass;

static void order(product *p)
{
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            if (p->dim[k] > p->dim[k + 1]) {
                int64_t v = p->dim[k];
                p->dim[k] = p->dim[k + 1];
                p->dim[k + 1] = v;
            }
}

/* The last dimension, or the one `before` it. */
static int64_t end_of(const bz_extent v, int before)
{
    int n = 0;
    while (n < BZ_PROBLEM_RANK && v[n])
        n++;
    return n > before ? v[n - 1 - before] : 1;
}

static bool product_of(const bz_trace *t, size_t call, product *out)
{
    const bz_problem *p = bz_call_works(t, call) ? bz_call_of(t, call)->problem : NULL;
    if (!p)
        return false;
    if (p->kind == BZ_PROBLEM_GEMM)
        *out = (product){{p->gemm.m, p->gemm.n, p->gemm.k}};
    else if (p->kind == BZ_PROBLEM_GEMV)
        *out = (product){{p->gemv.m, 1, p->gemv.k}};
    else if (p->kind == BZ_PROBLEM_MATMUL)
        *out = (product){{end_of(p->matmul.a, 1), end_of(p->matmul.a, 0), end_of(p->matmul.b, 0)}};
    else
        return false;
    order(out);
    return true;
}

/* What of a and b differs, where two of three dimensions agree. */
static bool differ_in_one(const product *a, const product *b, int64_t *of_a, int64_t *of_b)
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            if (a->dim[i == 0] == b->dim[k == 0] && a->dim[i == 2 ? 1 : 2] == b->dim[k == 2 ? 1 : 2] &&
                a->dim[i] != b->dim[k]) {
                *of_a = a->dim[i];
                *of_b = b->dim[k];
                return true;
            }
    return false;
}

static bool equal(const product *a, const product *b)
{
    return a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1] && a->dim[2] == b->dim[2];
}

/* Holds a pass against the typical one: the pair of rows that most products have. Both end alike; where one begins, a call more or less may be
 * counted. */
static void compare(pass *p, const pass *typical)
{
    size_t n = p->n < typical->n ? p->n : typical->n, longer = p->n + typical->n - n, same = 0, best = 0;
    if (!n)
        return;
    const product *a = p->product + (p->n - n), *b = typical->product + (typical->n - n);
    int pairs = 0;
    for (size_t i = 0; i < n && 2 * best < n; i++) {
        int64_t of_a, of_b, other_a, other_b;
        size_t votes = 0;
        same += equal(&a[i], &b[i]);
        if (pairs == MOST_PAIRS || !differ_in_one(&a[i], &b[i], &of_a, &of_b) ||
            (of_a == p->rows && of_b == p->of_typical))
            continue;
        pairs++;
        for (size_t k = i; k < n; k++)
            votes += differ_in_one(&a[k], &b[k], &other_a, &other_b) && of_a == other_a && of_b == other_b;
        if (votes > best) {
            best = votes;
            p->rows = of_a;
            p->of_typical = of_b;
        }
    }
    p->same_weights = longer - n <= 1 + longer / 20 && 3 * (same > best ? same : best) >= n;
    if (same >= best)
        p->rows = p->of_typical = 0;
}

static bool is_prompt(const pass *p)
{
    return p->same_weights && p->of_typical && p->rows / LEAST_ROWS >= p->of_typical;
}

static bool is_token(const pass *p)
{
    return p->same_weights && !p->of_typical;
}

/* Is there a product that is one longer at each step behind the one before? */
static bool grows(const pass *p, uint32_t n)
{
    size_t longer = 0, steps = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (!is_token(&p[i]) || !is_token(&p[i - 1]))
            continue;
        bool any = false;
        for (size_t k = 0; k < p[i].n && k < p[i - 1].n && !any; k++) {
            int64_t now, before;
            any = differ_in_one(&p[i].product[k], &p[i - 1].product[k], &now, &before) && now == before + 1;
        }
        longer += any;
        steps++;
    }
    return steps > 1 && 4 * longer >= 3 * steps;
}

/* Of products with weights, as a prompt tells; 0: there was none. */
static int64_t rows_of_tokens(const pass *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_prompt(&p[i]))
            return p[i].of_typical;
    return 0;
}

bool bz_phases_by_calls(bz_trace *t, bz_arena *arena)
{
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    uint32_t typical = bz_typical_iteration(t), prompts = 0, tokens = 0, n = t->n_iterations;
    pass *p = BZ_NEW(arena, pass, n);
    if (typical == BZ_NONE)
        return false;
    for (size_t i = 0; i < c->n; i++) {
        product one;
        uint32_t at = bz_event_iteration(t, BZ_EVENT_CALL, i);
        if (at == BZ_NONE || !product_of(t, i, &one))
            continue;
        if (p[at].n && equal(&p[at].product[p[at].n - 1], &one))
            continue; /* heads of attention that are calls of their own */
        BZ_ARENA_ADD(arena, p[at].product, p[at].n) = one;
    }
    for (uint32_t i = 0; i < n; i++) {
        compare(&p[i], &p[typical]);
        prompts += is_prompt(&p[i]);
        tokens += is_token(&p[i]);
    }
    if (!p[typical].n || !grows(p, n) || DECODES_PER_PROMPT * prompts > n ||
        prompts + tokens + 1 < n) /* the last one may be cut off */
        return false;
    int64_t rows = rows_of_tokens(p, n);
    for (uint32_t i = 0; i < n; i++) {
        t->iteration[i].phase = is_prompt(&p[i]) ? BZ_STEP_PREFILL : BZ_STEP_DECODE;
        int64_t of = is_prompt(&p[i]) ? p[i].rows : rows;
        t->iteration[i].tokens = of < UINT32_MAX ? (uint32_t)of : 0;
    }
    return true;
}
