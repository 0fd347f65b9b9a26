/* Mixtures of experts: every token goes through k of them. Data tell through which. The fewest weights are read where all tokens
 * choose the same, so that is what is measured: k products of all tokens each, and what lies between. Choosing, biases and the
 * last sum are left out: products may add to what is there. */
#include "generator/lower.h"

/* The first product makes `wide` columns: twice the `inner` ones where the gates are among them; else a third product makes these, or
 * there are none. Weights are [experts, rows, columns], or turned. */
typedef struct experts {
    int64_t k, tokens, hidden, wide, inner;
    bool third, turned[3]; /* first, last, third */
    bz_fn fn;
} experts;

/* The columns of an expert's weights, by so many rows; -1 where they are no such weights. */
static int64_t columns_of(const bz_type *w, int64_t rows, bool *turned)
{
    if (!w || w->rank != 3 || rows < 1 || (w->dims[1] != rows && w->dims[2] != rows))
        return -1;
    *turned = w->dims[1] != rows;
    return w->dims[*turned ? 1 : 2];
}

static int read_function(const lowering *l, bz_fn *fn)
{
    static const struct {
        const char *name;
        bz_fn fn;
    } FUNCTIONS[] = {{"relu", BZ_FN_RELU},
                     {"gelu", BZ_FN_GELU_TANH},
                     {"silu", BZ_FN_SWISH},
                     {"swiglu", BZ_FN_SWISH},
                     {"identity", BZ_FN_NONE}};
    const char *name = lower_word(l, "activation", "relu");
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
        *fn = FUNCTIONS[i].fn;
        if (!strcmp(FUNCTIONS[i].name, name))
            return 0;
    }
    return -1;
}

/* Where the shape rule counted other products than these, the layer is something else. */
static int read_experts(const lowering *l, experts *e)
{
    const bz_type *x = lower_in(l, 0), *third = lower_in(l, 2 + 2 * l->arg);
    e->k = lower_int(l, "k", 0);
    e->hidden = x && x->rank > 0 ? x->dims[x->rank - 1] : 0;
    if (e->hidden < 1 || e->k < 1 || read_function(l, &e->fn))
        return -1;
    e->tokens = bz_type_elements(x) / e->hidden;
    e->wide = columns_of(lower_in(l, 2), e->hidden, &e->turned[0]);
    e->third = third && third->rank == 3;
    e->inner = e->third ? columns_of(third, e->hidden, &e->turned[2]) : e->wide;
    if (columns_of(lower_in(l, 2 + l->arg), e->inner, &e->turned[1]) != e->hidden) {
        e->inner = e->wide / 2; /* gates are among the columns */
        if (e->third || e->wide % 2 || columns_of(lower_in(l, 2 + l->arg), e->inner, &e->turned[1]) != e->hidden)
            return -1;
    }
    double columns = (double)e->wide + (double)e->inner * (e->third ? 2 : 1);
    return (double)e->tokens * (double)e->k * (double)e->hidden * columns == (double)l->layer->macs ? 0 : -1;
}

/* WITH_FUNCTION: products do what follows in passing, as kernels written for experts do. */
typedef enum { BATCHED, WITH_FUNCTION, GROUPED } way;

/* All tokens by the weights of each of the k experts. */
static bz_problem *multiply(lowering *l, const experts *e, way how, int64_t depth, int64_t columns, bool turned)
{
    bz_problem *p;
    if (how == GROUPED) {
        p = lower_step(l, BZ_PROBLEM_GROUPED);
        p->grouped.n = columns, p->grouped.k = depth, p->grouped.transb = turned;
        for (int64_t i = 0; i < e->k; i++)
            p->grouped.sizes[i] = e->tokens;
    } else if (e->k > 1) {
        p = lower_matrices(l, (bz_extent){e->k, e->tokens, depth}, (bz_extent){e->k, depth, columns});
        p->matmul.constant = true, p->matmul.transb = turned;
    } else {
        p = lower_gemm_step(l, e->tokens, columns, depth);
        p->gemm.transb = turned;
    }
    lower_product_types(l, p);
    return p;
}

static int add_way(lowering *l, const experts *e, way how)
{
    bool along = how == WITH_FUNCTION;
    const bz_extent inner = {e->k * e->tokens, e->inner};
    bz_problem *p = multiply(l, e, how, e->hidden, e->wide, e->turned[0]);
    if (along && e->fn)
        lower_post(p, e->fn, e->fn == BZ_FN_SWISH ? 1 : 0, 0);
    else if (e->fn)
        lower_apply(l, BZ_PROBLEM_ACTIVATION, e->fn, inner);
    if (e->third)
        p = multiply(l, e, how, e->hidden, e->inner, e->turned[2]);
    if (e->third && along)
        lower_post(p, BZ_FN_MUL, 0, 0);
    if (!along && (e->third || e->wide != e->inner))
        lower_combine(l, BZ_FN_MUL, inner, inner);
    multiply(l, e, how, e->inner, e->hidden, e->turned[1]);
    return lower_done(l);
}

/* arg: from one operand with weights to the next, 3 where each has scales, too: weights of a few bits, by which libraries multiply as
 * floating-point numbers, and which few tokens read faster than those (as lower_narrow has it). */
static int lower_experts(lowering *l)
{
    experts e = {0};
    bool few = lower_has_few_rows(l);
    if (read_experts(l, &e))
        return few ? lower_copy(l) : lower_no(l, "its experts are no products that a library has");
    if (add_way(l, &e, BATCHED) || ((e.third || e.fn) && add_way(l, &e, WITH_FUNCTION)) ||
        (e.k > 1 && e.k <= BZ_PROBLEM_PARTS && add_way(l, &e, GROUPED)))
        return -1;
    return !few ? 0 : l->arg == 3 ? lower_copy(l) : lower_or_copy(l);
}

const lower_row lower_experts_rows[] = {
    {"moe", lower_experts, 2, .types = FLOATS},
    {"qmoe", lower_experts, 3, .types = FLOATS},
    {0},
};
