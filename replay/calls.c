/* Which values the operands of a call are, and what its weights take along. */
#include "replay/bind.h"

#include <string.h>

/* Inputs of a layer by the role that they have in its problem. */
static const struct {
    bz_role role;
    int input;
} INPUTS[] = {
    {BZ_ROLE_X, 0},     {BZ_ROLE_B, 1},     {BZ_ROLE_W, 1},    {BZ_ROLE_BIAS, 2},     {BZ_ROLE_OTHER, 3},
    {BZ_ROLE_SCALE, 1}, {BZ_ROLE_SHIFT, 2}, {BZ_ROLE_MEAN, 3}, {BZ_ROLE_VARIANCE, 4}, {BZ_ROLE_SLOPE, 1},
    {BZ_ROLE_R, 2},     {BZ_ROLE_H, 5},     {BZ_ROLE_C, 6},    {BZ_ROLE_PEEPHOLE, 7},
};

/* Behind each operand of a quantized layer stand its scale and its zero point; where the first is, and where the bias. */
static const struct {
    const char *kind;
    int first, bias;
} QUANTIZED[] = {
    {"qconv", 0, 8}, {"qmatmul", 0, -1}, {"qgemm", 0, 6}, {"qadd", 0, -1}, {"qmul", 0, -1}, {"qconcat", 2, -1},
};

/* Where operand k of the layer's kind stands among its inputs. */
static int place_of(const bz_layer *l, int k)
{
    for (size_t i = 0; i < sizeof QUANTIZED / sizeof *QUANTIZED; i++)
        if (!strcmp(QUANTIZED[i].kind, l->kind))
            return k == 2 && QUANTIZED[i].bias >= 0 ? QUANTIZED[i].bias : QUANTIZED[i].first + 3 * k;
    return k;
}

static bool is_rnn(const bz_problem *p)
{
    return bz_problem_has(p, BZ_TRAIT_RECURRENT);
}

static int input_of(const bz_problem *p, bz_role role)
{
    if (role == BZ_ROLE_BIAS && is_rnn(p))
        return 3;
    for (size_t i = 0; i < sizeof INPUTS / sizeof *INPUTS; i++)
        if (INPUTS[i].role == role)
            return INPUTS[i].input;
    return -1;
}

/* Libraries broadcast the second operand: the lowering turned them round where the first has fewer elements. */
static bool is_turned(const bz_layer *l, const bz_problem *p)
{
    int second = place_of(l, 1);
    if (p->kind != BZ_PROBLEM_BINARY || l->n_in <= second || l->in[second].kind != BZ_TYPE_TENSOR)
        return false;
    return bz_type_elements(&l->in[second]) > bz_type_elements(&l->in[0]) &&
           bz_extent_count(p->binary.a) == bz_type_elements(&l->in[second]);
}

float bind_real(const bz_layer *l, const char *name, float otherwise)
{
    const bz_attr *a = bz_node_attr(l->node, name);
    return a && a->kind == BZ_ATTR_FLOAT ? a->f : otherwise;
}

static float epsilon_of(const bz_layer *l)
{
    return bind_real(l, "epsilon", 1e-5f);
}

/* What a call is made of while its operands are being found. */
typedef struct call {
    const bz_problem *problem;
    int in[BZ_PROBLEM_OPERANDS], n_in;
    bz_replay_fold fold[BZ_PROBLEM_POST + 8];
    int n_folds;
    float epsilon;
} call;

static void add_fold(call *c, bz_fold_kind kind, float factor, int value)
{
    if (c->n_folds < (int)(sizeof c->fold / sizeof *c->fold))
        c->fold[c->n_folds++] = (bz_replay_fold){kind, {value, -1, -1, -1}, factor};
}

/* The number that a scaled elu is multiplied or divided by before its function: a call's operand, but an attribute of the layer. */
static int elu_factor(binder *b, const bz_layer *l)
{
    static const int64_t ONE[] = {1};
    bool celu = !strcmp(l->kind, "celu");
    double number = celu ? (double)bind_real(l, "alpha", 1) : 1;
    return celu || !strcmp(l->kind, "selu")
               ? bind_numbers(b, BZ_F32, 1, ONE, bz_arena_dup(b->arena, &number, sizeof number))
               : -1;
}

/* Operands of the call that layer l begins. Those of posts that other layers brought stay -2. */
static int find_operands(binder *b, const bz_layer *l, call *c)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(c->problem, operand), part = 0;
    bool turned = is_turned(l, c->problem);
    c->n_in = n - 1;
    for (int i = 0; i < n - 1; i++) {
        int k = input_of(c->problem, operand[i].role);
        if (c->problem->kind == BZ_PROBLEM_CONCAT) {
            while (place_of(l, part) < l->n_in && bz_type_elements(&l->in[place_of(l, part)]) == 0)
                part++;
            k = part++;
        } else if (c->problem->kind == BZ_PROBLEM_BINARY && operand[i].role != BZ_ROLE_OTHER) {
            k = turned ? 1 - k : k;
        }
        c->in[i] = operand[i].role == BZ_ROLE_OTHER ? -2 : -1;
        if (operand[i].role == BZ_ROLE_INDEX)
            return bind_no(b, "its call wants places or indices that are made before it");
        k = k < 0 || operand[i].role == BZ_ROLE_OTHER ? k : place_of(l, k);
        if ((operand[i].role == BZ_ROLE_B || operand[i].role == BZ_ROLE_W) && (k < 0 || k >= l->n_in)) {
            if ((c->in[i] = elu_factor(b, l)) < 0)
                return bind_no(b, "what its call multiplies by is an attribute");
            continue;
        }
        if (k < 0 || k >= l->n_in || l->in[k].kind == BZ_TYPE_NONE || l->node->in[k] < 0)
            continue;
        if (operand[i].role == BZ_ROLE_OTHER && k != 3)
            continue;
        c->in[i] = bind_in(b, k);
    }
    c->epsilon = epsilon_of(l);
    return bind_done(b);
}

/* The value times a factor, by a loop; -1 with a sentence. */
static int scaled(binder *b, int value, float factor)
{
    const bz_replay_loop loop = {.kind = BZ_LOOP_UNARY,
                                 .function = "linear",
                                 .alpha = factor,
                                 .rank = 1,
                                 .dim = {bz_extent_count(bind_at(b, value)->dim)},
                                 .stride = {{1}, {1}}};
    int out = bind_like(b, value, bind_at(b, value)->dtype);
    return bind_loop(b, &loop, &value, 1, out) ? -1 : out;
}

/* A product's factors go into constants; where there is none, the first operand is scaled before the call. */
static int fold_factors(binder *b, const bz_layer *l, call *c)
{
    float alpha = bind_real(l, "alpha", 1), beta = bind_real(l, "beta", 1);
    bool gemm = !strcmp(l->kind, "gemm"), bias = gemm && l->n_in > 2 && l->in[2].kind;
    if (!gemm && strcmp(l->kind, "matmul") != 0)
        return 0;
    if (bias && beta != 1 && !l->in_constant[2])
        return bind_no(b, "its factors multiply what is not constant");
    if (bias && beta != 1)
        add_fold(c, BZ_FOLD_BIAS, beta, -1);
    if (alpha != 1 && l->in_constant[1])
        add_fold(c, BZ_FOLD_WEIGHTS, alpha, -1);
    else if (alpha != 1)
        c->in[0] = scaled(b, c->in[0], alpha);
    return bind_done(b);
}

/* The value in the other value's type. */
static void add_retyping(binder *b, int from, int to)
{
    int64_t n = bz_extent_count(bind_at(b, from)->dim);
    const bz_replay_loop loop = {.kind = BZ_LOOP_COPY, .rank = 1, .dim = {n}, .stride = {{n > 1}, {n > 1}}};
    bind_loop(b, &loop, &from, 1, to);
}

/* In training with narrow types a call may want a wide operand, such as a bias, where the iteration has it narrow. Of an inference model
 * such operands are constants, which the program converts once. */
static bool differs(const binder *b, int value, const bz_operand *o)
{
    const bz_replay_value *v = value >= 0 ? &b->plan->value[value] : NULL;
    return v && b->layers->training && v->source != BZ_VALUE_STORED && bz_dtype_is_float(v->dtype) &&
           bz_dtype_is_float(o->dtype) && v->dtype != o->dtype;
}

bz_replay_step *bind_call(binder *b, const bz_problem *p, const int *in, int n_in, const int *more, int n_more, int out)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, operand), from[BZ_PROBLEM_OPERANDS], result[BZ_PROBLEM_OPERANDS];
    bool fits = n == n_in + n_more + 1;
    memcpy(from, in, (size_t)n_in * sizeof *in);
    if (n_more)
        memcpy(result, more, (size_t)n_more * sizeof *more);
    result[n_more] = out;
    for (int i = 0; i < n_in && fits; i++)
        if (differs(b, in[i], &operand[i])) {
            from[i] = bind_like(b, in[i], operand[i].dtype);
            add_retyping(b, in[i], from[i]);
        }
    int made[BZ_PROBLEM_OPERANDS];
    for (int i = 0; i <= n_more; i++) {
        const bz_operand *o = &operand[n_in + i];
        made[i] = fits && differs(b, result[i], o) ? bind_like(b, result[i], o->dtype) : result[i];
    }
    int at = b->plan->n_steps;
    bz_replay_step *s = bind_step(b, BZ_STEP_CALL, from, n_in, made[n_more]);
    s->problem = p;
    s->more = bz_arena_dup(b->arena, made, (size_t)n_more * sizeof *made);
    s->n_more = n_more;
    for (int i = 0; i <= n_more; i++)
        if (made[i] != result[i])
            add_retyping(b, made[i], result[i]);
    return &b->plan->step[at];
}

static void add_call(binder *b, const call *c, int out)
{
    bz_replay_step *s = bind_call(b, c->problem, c->in, c->n_in, NULL, 0, out);
    s->epsilon = c->epsilon;
    s->fold = bz_arena_dup(b->arena, c->fold, (size_t)c->n_folds * sizeof *c->fold);
    s->n_folds = c->n_folds;
}

/* The problem's result as a value of its own. */
static int temporary(binder *b, const bz_problem *p)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    const bz_operand *y = &operand[bz_problem_operands(p, operand) - 1];
    return bind_operand(b, y);
}

/* A border of zeros around x, by a call of its own before call c. */
static bool has_border(const bz_problem *first, int calls)
{
    return calls == 2 && first->kind == BZ_PROBLEM_PAD;
}

static void add_border(binder *b, const bz_problem *pad, call *c)
{
    const call border = {.problem = pad, .in = {c->in[0]}, .n_in = 1};
    c->in[0] = temporary(b, pad);
    add_call(b, &border, c->in[0]);
}

/* The same loop runs as a step of its own, whose operands loops.c knows. */
static bool is_loop(const bz_problem *p)
{
    return bz_problem_has(p, BZ_TRAIT_MOVE);
}

/* ONNX has [seq, dirs, batch, hidden]; problems have directions side by side. The last states are those of the last
 * step, backwards the first. */
static int finish_rnn(binder *b, const bz_layer *l, const bz_problem *p, int y)
{
    int64_t seq = p->rnn.seq, n = p->rnn.batch, h = p->rnn.hidden, dirs = p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1;
    for (int k = 0; k < 2 && k < l->n_out; k++) {
        if (l->node->out[k] < 0 || !bind_is_wanted(b, l->node->out[k]))
            continue;
        int out = bind_result(b, k);
        for (int64_t d = 0; d < dirs; d++) {
            bool backwards = p->rnn.dir == BZ_REVERSE || d == 1;
            bz_replay_loop copy = {
                .kind = BZ_LOOP_COPY,
                .rank = 3,
                .dim = {k ? 1 : seq, n, h},
                .stride = {{n * dirs * h, dirs * h, 1}, {dirs * n * h, h, 1}},
                .from = d * h + (k && !backwards ? (seq - 1) * n * dirs * h : 0),
                .to = d * n * h,
            };
            bind_loop(b, &copy, &y, 1, out);
        }
    }
    return bind_done(b);
}

static int bind_rnn(binder *b, const bz_layer *l, const bz_problem *p)
{
    call c = {.problem = p};
    const bz_param *layout = bz_layer_param(l, "layout");
    bool cell =
        p->kind == BZ_PROBLEM_LSTM && l->n_out > 2 && l->node->out[2] >= 0 && bind_is_wanted(b, l->node->out[2]);
    if (cell)
        return bind_no(b, "its last cell state is wanted, which no call of ours gives");
    for (int k = 1; k < 4 && k < l->n_in; k++)
        if (l->node->in[k] >= 0 && !l->in_constant[k])
            return bind_no(b, "its weights are not constant, and calls of ours want them in another order");
    if ((layout && layout->text && !strcmp(layout->text, "bti")) || p->rnn.seq != l->in[0].dims[0])
        return bind_no(b, "its batches come first, or its sequences differ in length");
    if (find_operands(b, l, &c))
        return -1;
    int y = temporary(b, p);
    add_call(b, &c, y);
    return finish_rnn(b, l, p, y);
}

static bool only_first_output(const binder *b, const bz_layer *l)
{
    for (int k = 1; k < l->n_out; k++)
        if (l->node->out[k] >= 0 && bind_is_wanted(b, l->node->out[k]))
            return false;
    return l->n_out > 0 && l->node->out[0] >= 0;
}

/* Product and addition of what is no bias; or operand by operand. */
static int bind_several(binder *b, const bz_layer *l, const bz_alternative *a)
{
    bool variadic = bz_has_word(" sum max min mean ", l->kind), product = bz_has_word(" conv deconv gemm ", l->kind);
    int made = -1;
    if (!variadic && !(product && a->n == 2 && a->problem[1].kind == BZ_PROBLEM_BINARY))
        return bind_no(b, "it takes several calls");
    for (int i = 0; i < a->n; i++) {
        const bz_problem *p = &a->problem[i];
        call c = {.problem = p};
        if (i == 0 && (find_operands(b, l, &c) || fold_factors(b, l, &c)))
            return -1;
        if (i) {
            c.n_in = p->kind == BZ_PROBLEM_BINARY ? 2 : 1;
            c.in[0] = made;
            c.in[1] = c.n_in == 2 ? bind_in(b, product ? 2 : i + 1) : -1;
            if (c.n_in == 2 && bz_type_elements(&l->in[product ? 2 : i + 1]) > bz_extent_count(p->binary.b))
                return bind_no(b, "its operands are turned round");
            if (product && c.n_folds == 0 && bind_real(l, "beta", 1) != 1)
                return bind_no(b, "its factors multiply what is not constant");
        }
        made = i == a->n - 1 ? bind_result(b, 0) : temporary(b, p);
        add_call(b, &c, made);
    }
    return bind_done(b);
}

/* oneDNN's binary takes a first operand of the result's shape. */
static bool is_offered(const bz_problem *p)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list);
    return p->kind != BZ_PROBLEM_BINARY || list[0].count == list[n - 1].count;
}

static bool has_training(const bz_alternative *a)
{
    bool training = false;
    for (int i = 0; i < a->n; i++)
        training |= bind_is_training(&a->problem[i]);
    return training;
}

int bind_call_layer(binder *b, const bz_layer *l, const bz_alternative *a)
{
    bool border = has_border(a->problem, a->n);
    call c = {.problem = &a->problem[border]};
    if (a->modelled)
        return bind_no(b, "no library call computes it");
    if (has_training(a))
        return bind_training(b, l, a);
    if (!strcmp(l->kind, "resize") && bind_resize_as_libraries(b, l))
        return -1;
    if (bz_has_word("matmulnbits matmulbnb4 matmulfp4 matmulfp8", l->kind)) /* the file has no floating-point numbers */
        return bind_no(b, "its weights of a few bits are no operand of a library call");
    for (int i = 0; i < a->n; i++)
        if (is_loop(&a->problem[i]) && !border)
            return bind_no(b, "a loop of ours computes it");
    if (is_rnn(a->problem))
        return bind_rnn(b, l, a->problem);
    if (!only_first_output(b, l))
        return bind_no(b, "its other results are wanted, which no call of ours gives");
    for (int i = 0; i < a->n; i++)
        if (!is_offered(&a->problem[i]))
            return bind_no(b, "the libraries broadcast the second operand only");
    if (!strcmp(l->kind, "gridsample") && a->n == 1)
        return bind_grid(b, l, a->problem);
    if (!strcmp(l->kind, "einsum") && a->n == 1)
        return bind_einsum(b, l, a->problem);
    if (a->n > 1 && !border)
        return bind_several(b, l, a);
    if (find_operands(b, l, &c) || fold_factors(b, l, &c))
        return -1;
    if (border)
        add_border(b, a->problem, &c);
    add_call(b, &c, bind_result(b, 0));
    return bind_done(b);
}

static int constant_operand(binder *b, const bz_layer *l, int k)
{
    return k < l->n_in && l->in_constant[k] ? bind_in(b, k) : bind_no(b, "an operand is not constant");
}

static int fold_layer(binder *b, const bz_layer *l, const bz_taken *t, call *c)
{
    if (t->how == BZ_TAKEN_BATCHNORM) {
        bz_replay_fold f = {.kind = BZ_FOLD_BATCHNORM, .factor = epsilon_of(l)};
        for (int k = 0; k < 4; k++)
            f.value[k] = constant_operand(b, l, k + 1);
        if (c->n_folds == (int)(sizeof c->fold / sizeof *c->fold))
            return bind_no(b, "too much goes into one call");
        c->fold[c->n_folds++] = f;
        return bind_done(b);
    }
    int value = constant_operand(b, l, t->other);
    if (t->how == BZ_TAKEN_BIAS)
        add_fold(c, BZ_FOLD_ADD, strcmp(l->kind, "sub") != 0 ? 1 : -1, value);
    else
        add_fold(c, strcmp(l->kind, "div") != 0 ? BZ_FOLD_MUL : BZ_FOLD_DIV, 1, value);
    return bind_done(b);
}

/* A bias that is no constant takes the place of the call's own, which it has not. */
static int fill_bias(binder *b, const bz_taken *t, call *c)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(c->problem, operand);
    for (int i = 0; i < n && i < c->n_in; i++)
        if (operand[i].role == BZ_ROLE_BIAS && c->in[i] < 0) {
            c->in[i] = bind_in(b, t->other);
            return bind_done(b);
        }
    return bind_no(b, "its bias has no place in the call");
}

/* The next operand that a post-operation waits for. */
static int fill_other(binder *b, const bz_taken *t, call *c)
{
    if (t->other < 0)
        return 0;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i] == -2) {
            c->in[i] = bind_in(b, t->other);
            return bind_done(b);
        }
    return bind_no(b, "its operand has no place in the call");
}

static int written_call(binder *b, const bz_taken *t, call *c)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(c->problem, operand);
    c->n_in = n - 1;
    c->epsilon = t->epsilon;
    for (int i = 0; i < n - 1; i++) {
        bz_role role = operand[i].role;
        bz_value_id v = role == BZ_ROLE_X       ? t->x
                        : role == BZ_ROLE_SCALE ? t->scale
                        : role == BZ_ROLE_SHIFT ? t->shift
                                                : BZ_NO_VALUE;
        c->in[i] = role == BZ_ROLE_OTHER ? -2 : -1;
        if (v >= 0)
            c->in[i] = bind_value(b, v);
    }
    return bind_done(b);
}

/* The layers that one call takes: from the first of them on. Returns how many, -1 where that cannot be told. */
static int bind_taken(binder *b, const bz_plan_place *place, const bz_alternative *a, int first)
{
    const bz_taken *t = &a->taken[first];
    const bz_layer *l = &b->layers->layer[place->layer[first]];
    const bz_problem *problem = &a->problem[t->call];
    bool border = t->how == BZ_TAKEN_CALL && has_border(problem, t->calls);
    call c = {.problem = &problem[border]};
    int n = 1;
    b->l = l;
    if (t->how == BZ_TAKEN_VIEW || (t->how == BZ_TAKEN_CALL && !border && is_loop(problem))) {
        return bind_loops(b, l) ? -1 : 1;
    } else if (t->how == BZ_TAKEN_WRITTEN) {
        if (written_call(b, t, &c))
            return -1;
        while (first + n < place->n && t[n].how == BZ_TAKEN_WRITTEN && t[n].call == t->call)
            n++;
    } else if (t->how != BZ_TAKEN_CALL || (t->calls != 1 && !border)) {
        return bind_no(b, "it takes several calls");
    } else if (is_rnn(c.problem) || !only_first_output(b, l) || !is_offered(c.problem)) {
        return bind_no(b, "what follows it is not taken along");
    } else if (find_operands(b, l, &c) || fold_factors(b, l, &c)) {
        return -1;
    } else if (border) {
        add_border(b, problem, &c);
    }
    for (; first + n < place->n && t[n].call == t->call + border; n++) {
        const bz_layer *next = &b->layers->layer[place->layer[first + n]];
        if (t[n].how == BZ_TAKEN_CALL || t[n].how == BZ_TAKEN_VIEW || t[n].how == BZ_TAKEN_WRITTEN)
            break;
        b->l = next;
        if (t[n].how == BZ_TAKEN_POST     ? fill_other(b, &t[n], &c)
            : t[n].how == BZ_TAKEN_VECTOR ? fill_bias(b, &t[n], &c)
                                          : fold_layer(b, next, &t[n], &c))
            return -1;
    }
    b->l = l;
    for (int i = 0; i < c.n_in; i++)
        if (c.in[i] == -2)
            return bind_no(b, "an operand of the call is not known");
    b->l = &b->layers->layer[place->layer[first + n - 1]];
    add_call(b, &c, bind_result(b, 0));
    return bind_done(b) ? -1 : n;
}

int bind_call_group(binder *b, const bz_plan_place *place, const bz_alternative *a)
{
    if (!a->taken || a->modelled)
        return bz_fail(&b->err, BZ_INCOMPLETE, "a copy stands in for a layer");
    b->l = &b->layers->layer[place->layer[0]];
    if (has_training(a))
        return bind_no(b, "calls of training are not fused");
    for (int i = 0, n; i < place->n; i += n)
        if ((n = bind_taken(b, place, a, i)) < 0)
            return -1;
    return 0;
}
