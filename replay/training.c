/* Calls that only training has. They make several results, or new weights where the old ones lay, and take what the forward
 * pass left. */
#include "replay/bind.h"

#include <string.h>

/* Operands of a problem by the layer's operands, results by its results, a digit each: the problem's order, its last result
 * last. An update of several tensors has them side by side: there a digit counts groups. */
static const struct {
    bz_problem_kind kind;
    const char *in, *out;
} ROWS[] = {
    {BZ_PROBLEM_CONV_DATA, "01", "0"},
    {BZ_PROBLEM_CONV_WEIGHTS, "01", "0"},
    {BZ_PROBLEM_POOL, "0", "10"},
    {BZ_PROBLEM_POOL_GRAD, "0", "0"},
    {BZ_PROBLEM_POOL_GRAD, "01", "0"},
    {BZ_PROBLEM_BATCHNORM, "012", "340"},
    {BZ_PROBLEM_BATCHNORM_GRAD, "10342", "120"},
    {BZ_PROBLEM_LAYERNORM, "012", "120"},
    {BZ_PROBLEM_LAYERNORM_GRAD, "10342", "120"},
    {BZ_PROBLEM_RMSNORM, "01", "10"},
    {BZ_PROBLEM_RMSNORM_GRAD, "1032", "10"},
    {BZ_PROBLEM_ACTIVATION_GRAD, "10", "0"},
    {BZ_PROBLEM_SOFTMAX_GRAD, "10", "0"},
    {BZ_PROBLEM_LOGSOFTMAX_GRAD, "10", "0"},
    {BZ_PROBLEM_SOFTMAX_LOSS, "01", "10"},
    {BZ_PROBLEM_SOFTMAX_LOSS_GRAD, "012", "0"},
    {BZ_PROBLEM_DROPOUT, "0", "10"},
    {BZ_PROBLEM_DROPOUT_GRAD, "01", "0"},
    {BZ_PROBLEM_SCATTER_ADD, "21", "0"},
    {BZ_PROBLEM_UPDATE, "230", "0"},
    {BZ_PROBLEM_UPDATE, "2340", "10"},
    {BZ_PROBLEM_UPDATE, "234501", "120"},
};

bool bind_is_training(const bz_problem *p)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list), results = 0;
    for (int i = 0; i < n; i++)
        results += list[i].result;
    return results > 1 || list[n - 1].alias >= 0 || bz_problem_has(p, BZ_TRAIT_GRADIENT) ||
           p->kind == BZ_PROBLEM_DROPOUT;
}

/* Which of so many tensors of an update a call is for. */
typedef struct part {
    int number, of;
} part;

static int layer_operand(char digit, bool updates, part t)
{
    int k = digit - '0';
    return updates && k >= 2 ? 2 + (k - 2) * t.of + t.number : k;
}

/* What the layer leaves out is 1 of a scale, and 0 of a shift; nothing else may lack. */
static int take_operand(binder *b, const bz_layer *l, int k, bz_role role)
{
    if (k < l->n_in && l->node->in[k] >= 0 && l->in[k].kind != BZ_TYPE_NONE)
        return bind_in(b, k);
    return role == BZ_ROLE_SCALE || role == BZ_ROLE_SHIFT ? -1 : bind_no(b, "what its gradient needs was not kept");
}

/* A result in the problem's type: indices of a pooling are those of the library, statistics of a normalization are its
 * variance where the model has the inverse deviation. Only the gradient of the same layer reads them. */
static int make_result(binder *b, const bz_layer *l, int k, const bz_operand *o)
{
    bz_value_id v = k < l->n_out ? l->node->out[k] : BZ_NO_VALUE;
    if (v >= 0 && b->number[v] >= 0)
        return b->number[v];
    int made = bind_named(b, v < 0 ? "" : b->layers->model->values[v].name, o->dtype, o->rank, o->dim);
    if (v >= 0)
        b->number[v] = made;
    return made;
}

/* Gradients of normalizations get the variance, so they add what the forward layer added. */
static float epsilon_of(const binder *b, const bz_layer *l, const bz_problem *p)
{
    int kept = p->kind == BZ_PROBLEM_BATCHNORM_GRAD || p->kind == BZ_PROBLEM_LAYERNORM_GRAD ? 4
               : p->kind == BZ_PROBLEM_RMSNORM_GRAD                                         ? 3
                                                                                            : -1;
    const bz_layer *forward = kept < 0 || kept >= l->n_in || l->node->in[kept] < 0 ? l : b->producer[l->node->in[kept]];
    return bind_real(forward ? forward : l, "epsilon", p->kind == BZ_PROBLEM_UPDATE ? 1e-8f : 1e-5f);
}

static void add_call(binder *b, const bz_layer *l, const bz_problem *p, part t)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, operand), n_in = 0, in[BZ_PROBLEM_OPERANDS], result[BZ_PROBLEM_OPERANDS];
    bool updates = p->kind == BZ_PROBLEM_UPDATE;
    const char *from = NULL, *to = NULL;
    while (n_in < n && !operand[n_in].result)
        n_in++;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (ROWS[i].kind == p->kind && (int)strlen(ROWS[i].in) == n_in && (int)strlen(ROWS[i].out) == n - n_in)
            from = ROWS[i].in, to = ROWS[i].out;
    if (!from) {
        bind_no(b, "this call of training is not replayed");
        return;
    }
    for (int i = 0; i < n_in; i++)
        in[i] = take_operand(b, l, layer_operand(from[i], updates, t), operand[i].role);
    for (int i = n_in; i < n; i++) {
        int k = (to[i - n_in] - '0') * (updates ? t.of : 1) + (updates ? t.number : 0);
        result[i - n_in] = i == n - 1 ? bind_result(b, k) : make_result(b, l, k, &operand[i]);
    }
    bind_call(b, p, in, n_in, result, n - n_in - 1, result[n - n_in - 1])->epsilon = epsilon_of(b, l, p);
}

/* y = alpha x, or y = a + b, of a row of numbers. */
static void add_row(binder *b, const char *function, float alpha, const int *in, int n_in, int out)
{
    bz_replay_loop loop = {.kind = n_in == 1 ? BZ_LOOP_UNARY : BZ_LOOP_BINARY,
                           .function = function,
                           .alpha = alpha,
                           .rank = 1,
                           .dim = {bz_extent_count(bind_at(b, out)->dim)},
                           .stride = {{1}, {1}}};
    bind_loop(b, &loop, in, n_in, out);
}

/* The batch's mean (1) or variance (2): a result of the call, which has a name only where the model keeps it for its gradient. */
static int statistics_of(const binder *b, const bz_layer *l, int k)
{
    const bz_replay_step *s = &b->plan->step[b->plan->n_steps - 1];
    bz_value_id v = k + 2 < l->n_out ? l->node->out[k + 2] : BZ_NO_VALUE;
    while (s->kind != BZ_STEP_CALL)
        s--;
    return v >= 0 && b->number[v] >= 0 ? b->number[v] : s->more[k - 1];
}

/* Running means and variances: momentum of the old, the rest of the batch's. */
static void add_running(binder *b, const bz_layer *l, int k)
{
    float momentum = bind_real(l, "momentum", 0.9f);
    bz_value_id next = k < l->n_out ? l->node->out[k] : BZ_NO_VALUE;
    if (next < 0 || !bind_is_wanted(b, next))
        return;
    int old = bind_in(b, k + 2), made = bind_result(b, k);
    int scaled[2], from[2] = {old, statistics_of(b, l, k)};
    for (int i = 0; i < 2; i++) {
        scaled[i] = bind_like(b, made, bind_at(b, made)->dtype);
        add_row(b, "linear", i ? 1 - momentum : momentum, &from[i], 1, scaled[i]);
    }
    add_row(b, "add", 0, scaled, 2, made);
}

/* The model's inverse deviation, 1 / √(variance + epsilon), of the variance that the call gave; the gradient's call reads the variance itself. */
static void invert_variance(binder *b, const bz_layer *l, int k, float epsilon)
{
    static const double POWER = -0.5;
    bz_value_id v = k < l->n_out ? l->node->out[k] : BZ_NO_VALUE;
    double *added = BZ_NEW(b->arena, double, 1);
    if (v < 0 || b->layers->training || !bind_is_wanted(b, v))
        return;
    const bz_replay_value like = *bind_at(b, b->number[v]);
    int from[2] = {b->number[v], bind_numbers(b, like.dtype, 0, NULL, added)};
    *added = (double)epsilon;
    for (int i = 0; i < 2; i++) {
        const bz_replay_loop loop = {.kind = BZ_LOOP_BINARY,
                                     .function = i ? "pow" : "add",
                                     .rank = 1,
                                     .dim = {bz_extent_count(like.dim)},
                                     .stride = {{1}, {0}}};
        int made = bind_named(b, i ? like.name : "", like.dtype, like.rank, like.dim);
        bind_loop(b, &loop, from, 2, made);
        from[0] = made, from[1] = bind_numbers(b, like.dtype, 0, NULL, &POWER);
    }
    b->number[v] = from[0];
}

/* Our gradient of a group's normalization asks for its mean and variance, which no ONNX operator gives: they are computed again. */
static int add_groupnorm_grad(binder *b, const bz_layer *l, const bz_problem *p)
{
    bz_problem again = {.kind = BZ_PROBLEM_GROUPNORM, .dtype = p->dtype, .dtype_w = p->dtype_w, .dtype_y = p->dtype_y};
    bz_operand operand[BZ_PROBLEM_OPERANDS], own[BZ_PROBLEM_OPERANDS];
    bz_error why;
    memcpy(again.groupnorm.x, p->groupnorm.x, sizeof again.groupnorm.x);
    again.groupnorm.group = p->groupnorm.group, again.groupnorm.training = true;
    int n = bz_problem_operands(&again, operand), n_own = bz_problem_operands(p, own), value[3], made[3], grad[5],
        out[3];
    if (n != 6 || n_own != 8 || bz_problem_normalize(&again, &why))
        return bind_no(b, "its call has other operands");
    for (int i = 0; i < 3; i++)
        value[i] = take_operand(b, l, i, BZ_ROLE_X);
    for (int i = 0; i < 3; i++)
        made[i] = bind_operand(b, &operand[3 + i]);
    float epsilon = bind_real(l, "epsilon", 1e-5f);
    bind_call(b, bz_arena_dup(b->arena, &again, sizeof again), (int[]){value[1], -1, -1}, 3, made, 2, made[2])
        ->epsilon = epsilon;
    memcpy(grad, (int[]){value[1], value[0], made[0], made[1], value[2]}, sizeof grad);
    for (int i = 0; i < 3; i++)
        out[i] = i < 2 ? make_result(b, l, i + 1, &own[5 + i]) : bind_result(b, 0);
    bind_call(b, p, grad, 5, out, 2, out[2])->epsilon = epsilon;
    return bind_done(b);
}

/* Its problem drops half; the layer says how much. */
static int dropout_of(binder *b, const bz_layer *l, const bz_problem **p)
{
    int at = (*p)->kind == BZ_PROBLEM_DROPOUT ? 1 : 2;
    double ratio = 0.5;
    bool given = at < l->n_in && l->node->in[at] >= 0;
    if (given && !bz_lower_scalar(b->layers, l->node->in[at], l->index, &ratio))
        return bind_no(b, "how much it drops is not known");
    if (!(ratio > 0 && ratio < 1))
        return bind_no(b, "it drops nothing, or all");
    bz_problem *own = bz_arena_dup(b->arena, *p, sizeof **p);
    own->dropout.ratio = (float)ratio;
    *p = own;
    return 0;
}

/* One call for each tensor. */
static int add_updates(binder *b, const bz_layer *l, const bz_problem *p)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int results = 0, n_operands = bz_problem_operands(p, operand);
    for (int i = 0; i < n_operands; i++)
        results += operand[i].result;
    int n = (l->n_in - 2) / (results + 1);
    for (int i = 0; i < n; i++) {
        bz_problem one = *p;
        memset(one.update.x, 0, sizeof one.update.x);
        one.update.x[0] = bz_type_elements(&l->in[2 + i]);
        add_call(b, l, n == 1 ? p : bz_arena_dup(b->arena, &one, sizeof one), (part){i, n});
    }
    return bind_done(b);
}

int bind_training(binder *b, const bz_layer *l, const bz_alternative *a)
{
    const bz_problem *p = a->problem;
    if (p->kind == BZ_PROBLEM_POOL && !b->layers->training)
        return bind_no(b, "its indices are wanted, and libraries give numbers of their own, for the gradient alone");
    if (a->n != 1)
        return bind_no(b, "it takes several calls, which are not replayed");
    if (p->kind == BZ_PROBLEM_UPDATE)
        return add_updates(b, l, p);
    if (bz_problem_has(p, BZ_TRAIT_RECURRENT))
        return bind_recurrent_training(b, l, p);
    if (p->kind == BZ_PROBLEM_GROUPNORM_GRAD)
        return add_groupnorm_grad(b, l, p);
    if ((p->kind == BZ_PROBLEM_DROPOUT || p->kind == BZ_PROBLEM_DROPOUT_GRAD) && dropout_of(b, l, &p))
        return -1;
    add_call(b, l, p, (part){0, 1});
    for (int k = 1; k < 3 && p->kind == BZ_PROBLEM_BATCHNORM && !bind_done(b); k++)
        add_running(b, l, k);
    if ((p->kind == BZ_PROBLEM_LAYERNORM || p->kind == BZ_PROBLEM_RMSNORM) && !bind_done(b))
        invert_variance(b, l, p->kind == BZ_PROBLEM_LAYERNORM ? 2 : 1, epsilon_of(b, l, p));
    return bind_done(b);
}

bool bind_kept(const bz_training *t, bz_value_id v)
{
    return t && (t->first[v] || t->next[v] >= 0 || v == t->rate || v == t->step);
}

/* Weights begin as in the file; what it left out, as a model's does; states of the optimizer as 0. */
void bind_first(const binder *b, bz_value_id v, double rate, bz_replay_value *value, bz_replay_source *source)
{
    const bz_training *t = b->layers->training;
    const bz_tensor *first = t->first[v];
    if (first && first->values && first->values->n == 0) {
        bind_seed(b, v, value);
    } else if (first) { /* a narrow type may be asked for: running means lie in the file as wide as they are */
        *source = (bz_replay_source){.tensor = first, .model = t->from};
        value->given = first->dtype;
    } else if (v == t->rate)
        value->offset = (float)rate;
    else if (v == t->step)
        value->offset = 1;
    else if (t->held[v] != BZ_HELD_STATE) /* weights that are results of nodes */
        bind_seed(b, v, value);
    value->source = BZ_VALUE_KEPT;
}

/* New weights and states, and the number of the next iteration. */
int bind_next(binder *b)
{
    const bz_training *t = b->layers->training;
    bz_replay_plan *p = b->plan;
    b->l = b->layers->layer;
    for (int v = 0; t && v < b->layers->model->n_values; v++) {
        int k = b->number[v];
        if (k < 0 || p->value[k].source != BZ_VALUE_KEPT)
            continue;
        if (t->next[v] >= 0 && b->number[t->next[v]] >= 0)
            p->value[k].next = b->number[t->next[v]] + 1;
        if (v != t->step)
            continue;
        bz_replay_loop more = {
            .kind = BZ_LOOP_UNARY, .function = "linear", .alpha = 1, .beta = 1, .rank = 1, .dim = {1}, .stride = {{1}}};
        int made = bind_new(b, BZ_I64, 0, NULL);
        b->name = "the next iteration's number";
        if (bind_loop(b, &more, &k, 1, made))
            return -1;
        p->value[k].next = made + 1;
    }
    if (t && t->loss >= 0)
        p->loss = b->number[t->loss] + 1;
    return 0;
}
