/* Groups: what becomes of each step of a match. The walk goes from layer to layer; each is taken along
 * by the call before it, folded into its weights, or begins a call of its own. Nothing here asks for a
 * pattern's name, so that a pattern of one's own is lowered by the same rules. */
#include "generator/lower.h"
#include "generator/written.h"

#include <math.h>

typedef struct {
    lowering l; /* its steps are the calls */
    bz_lowered *lowered;
    const bz_layers *layers;   /* its */
    const bz_value_id *stands; /* of the match, or NULL */
    const int *layer;
    int n;
    const bz_layer *head; /* began the last call; NULL where that is no layer of the model's */
    bz_value_id current;  /* made by the last call */
    bool modelled, fallback;
    bool keeps;      /* what a function takes is read elsewhere, too: the call writes it, which no replay binds */
    bool before;     /* a call does to its operand what layers before it do, likewise */
    const char *why; /* the first step that nothing took along */
    bz_taken *taken; /* [n] */
} walk;

/* Steps with a second operand. A constant that has a value for each channel goes into the bias or the
 * weights; a tensor of the result's shape is an operand more. */
static const struct {
    const char *kind;
    bool commutes;
    enum { NOWHERE, INTO_BIAS, INTO_WEIGHTS } constant;
    bz_fn tensor;
} STEPS[] = {
    {"add", true, INTO_BIAS, BZ_FN_ADD},      {"sum", true, INTO_BIAS, BZ_FN_ADD},
    {"sub", false, INTO_BIAS, BZ_FN_SUB},     {"mul", true, INTO_WEIGHTS, BZ_FN_MUL},
    {"div", false, INTO_WEIGHTS, BZ_FN_NONE}, {"max", true, NOWHERE, BZ_FN_MAX},
    {"min", true, NOWHERE, BZ_FN_MIN},
};

static bool take(walk *w, int i, bz_taking how, int other)
{
    w->taken[i] = (bz_taken){.how = how, .call = w->l.n_steps - 1, .other = other};
    return true;
}

static bz_problem *last_call(walk *w)
{
    return w->l.n_steps ? &w->l.step[w->l.n_steps - 1] : NULL;
}

/* Adds a post-operation if the call takes it. */
static bool take_along(walk *w, bz_fn fn, float alpha, float beta)
{
    bz_problem *call = last_call(w), trial;
    bz_error err;
    bool keeps = w->keeps && bz_fn_is_activation(fn);
    int n = 0;
    if (!call)
        return false;
    trial = *call;
    while (n < BZ_PROBLEM_POST && trial.post[n].fn)
        n++;
    if (n + keeps >= BZ_PROBLEM_POST || !bz_fn_is_post(fn))
        return false;
    if (keeps)
        trial.post[n++] = (bz_post){.fn = BZ_FN_KEEP};
    trial.post[n] = (bz_post){fn, alpha, beta};
    if (bz_problem_normalize(&trial, &err))
        return false;
    *call = trial;
    return true;
}

/* A product to whose result nothing was done yet but adding a bias that is known ahead of time. */
static bool is_bare(walk *w)
{
    const bz_problem *call = last_call(w);
    const bz_layer *l = w->head;
    bool known = !l || l->n_in < 3 || l->in[2].kind == BZ_TYPE_NONE || l->in_constant[2];
    return known && call && bz_problem_has(call, BZ_TRAIT_PRODUCT) &&
           (!call->post[0].fn || (call->post[0].fn == BZ_FN_BIAS && !call->post[1].fn));
}

static bool has_constant_weights(const walk *w)
{
    return w->head && w->head->n_in > 1 && w->head->in_constant[1] && w->head->kind[0] != 'q';
}

static bool take_bias(walk *w)
{
    return is_bare(w) && (last_call(w)->post[0].fn || take_along(w, BZ_FN_BIAS, 0, 0));
}

static bz_value_id result_of(const bz_layer *l)
{
    return l->n_out ? l->node->out[0] : BZ_NO_VALUE;
}

/* What a layer reads: where layers that need not run lie between two of the group, what the first one makes. */
static bz_value_id read_by(const walk *w, const bz_layer *l, int k)
{
    bz_value_id v = l->node->in[k];
    for (int i = 0; w->stands && v >= 0 && i < BZ_STANDS; i++, v = w->stands[v])
        for (int m = 0; m < w->n; m++)
            if (result_of(&w->layers->layer[w->layer[m]]) == v)
                return v;
    return l->node->in[k];
}

/* Whether a layer of the group from this one on reads the value. */
static bool is_read(const walk *w, bz_value_id v, int from)
{
    for (int i = from; i < w->n; i++) {
        const bz_layer *l = &w->layers->layer[w->layer[i]];
        for (int k = 0; k < l->n_in; k++)
            if (read_by(w, l, k) == v)
                return true;
    }
    return false;
}

static bool same_shape(const bz_type *a, const bz_type *b)
{
    if (a->kind != BZ_TYPE_TENSOR || b->kind != BZ_TYPE_TENSOR || a->rank != b->rank || a->dtype != b->dtype)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* Whether the call's result goes into a layer with a result like that, if in another order: transposes that need not run may lie in between. */
static bool passes_whole(const walk *w, const bz_type *y)
{
    const bz_type *x = &w->layers->types[w->current];
    return same_shape(x, y) ||
           (w->stands && x->dtype == y->dtype && x->rank == y->rank && bz_type_elements(x) == bz_type_elements(y));
}

/* The axis of y that has the channels: of those that are as long, the first. */
static int channels_of(const walk *w, const bz_type *y)
{
    const bz_type *x = &w->layers->types[w->current];
    int axis = bz_problem_bias_axis(&w->l.step[w->l.n_steps - 1], y->rank), turned = 0;
    if (same_shape(x, y) || axis < 0 || axis >= x->rank)
        return axis;
    while (turned < y->rank - 1 && y->dims[turned] != x->dims[axis])
        turned++;
    return turned;
}

/* A value for each channel of y, or one for all. */
static bool is_by_channel(const walk *w, const bz_type *t, const bz_type *y)
{
    int axis = channels_of(w, y);
    if (t->kind != BZ_TYPE_TENSOR || t->rank < 0 || t->rank > y->rank)
        return false;
    bool one = bz_type_elements(t) == 1;
    for (int i = 0; i < t->rank && !one; i++)
        if (t->dims[i] != (y->rank - t->rank + i == axis ? y->dims[axis] : 1))
            return false;
    return one || y->rank - t->rank <= axis;
}

/* A bias as libraries want it, whoever makes it. */
static bool is_vector(const walk *w, const bz_type *t, const bz_type *y)
{
    return t->rank == 1 && t->dims[0] == y->dims[channels_of(w, y)];
}

/* Whether all of the layer's operands behind its first are known ahead of time. */
static bool is_known(const bz_layer *l)
{
    for (int k = 1; k < l->n_in; k++)
        if (!l->in_constant[k])
            return false;
    return true;
}

/* Scale and shift by channel: the weights are scaled and the bias shifted before anything runs. */
static bool take_batchnorm(walk *w, const bz_layer *l)
{
    const bz_type *y = &l->out[0];
    bz_problem *call = last_call(w);
    int axis = bz_problem_bias_axis(call, y->rank);
    return l->n_in == 5 && is_known(l) && axis == 1 && read_by(w, l, 0) == w->current && is_bare(w) &&
           has_constant_weights(w) && !bz_layer_int(l, "training", 0) && take_bias(w);
}

/* A number: added or multiplied in passing. */
static bool take_scalar(walk *w, const bz_layer *l, int other)
{
    double v;
    bz_fn fn = bz_fn_find(l->kind, strlen(l->kind));
    if (!written_scalar(w->layers, l->node->in[other], l->index, &v) || v == 0)
        return false;
    bool adds = fn == BZ_FN_ADD || fn == BZ_FN_SUB;
    if (!adds && fn != BZ_FN_MUL && fn != BZ_FN_DIV)
        return false;
    double alpha = adds ? 1 : fn == BZ_FN_DIV ? 1 / v : v, beta = !adds ? 0 : fn == BZ_FN_SUB ? -v : v;
    bool fits = isfinite((float)alpha) && isfinite((float)beta) && (float)alpha != 0;
    return fits && take_along(w, BZ_FN_LINEAR, (float)alpha, (float)beta);
}

static bool take_operand(walk *w, const bz_layer *l, size_t row, int i)
{
    int k = read_by(w, l, 0) == w->current ? 0 : 1, other = 1 - k;
    if (l->n_in != 2 || (k && !STEPS[row].commutes) || read_by(w, l, other) == w->current ||
        bz_layer_param(l, "axis") || !passes_whole(w, &l->out[0]))
        return false;
    bool channels = is_by_channel(w, &l->in[other], &l->out[0]) && is_bare(w);
    if (channels && !l->in_constant[other] && is_vector(w, &l->in[other], &l->out[0]) && STEPS[row].tensor == BZ_FN_ADD)
        return take_bias(w) && take(w, i, BZ_TAKEN_VECTOR, other);
    if (channels && l->in_constant[other]) {
        if (STEPS[row].constant == INTO_BIAS)
            return take_bias(w) && take(w, i, BZ_TAKEN_BIAS, other);
        if (STEPS[row].constant == INTO_WEIGHTS && has_constant_weights(w))
            return take(w, i, BZ_TAKEN_WEIGHTS, other);
    }
    if (l->in_constant[other] && bz_type_elements(&l->in[other]) == 1)
        return take_scalar(w, l, other) && take(w, i, BZ_TAKEN_POST, -1);
    return same_shape(&l->in[other], &l->out[0]) && take_along(w, STEPS[row].tensor, 0, 0) &&
           take(w, i, BZ_TAKEN_POST, other);
}

static bool take_activation(walk *w, const bz_layer *l)
{
    const bz_lowering *low = lowered_layer(w->lowered, l->index);
    if (read_by(w, l, 0) != w->current || !low->n || low->alternative[0].n != 1 ||
        low->alternative[0].problem->kind != BZ_PROBLEM_ACTIVATION)
        return false;
    const bz_problem *p = low->alternative[0].problem;
    return take_along(w, p->activation.fn, p->activation.alpha, p->activation.beta);
}

/* A convolution that scales, shifts and cuts off what it reads, in place of a batchnorm with a ReLU behind it: what these make
 * is never written. */
static bool take_before(walk *w, int i)
{
    const bz_layer *l = &w->layers->layer[w->layer[i]];
    const bz_lowering *low = lowered_layer(w->lowered, l->index);
    bz_problem *norm = last_call(w), trial;
    bz_error err;
    if (norm->kind != BZ_PROBLEM_BATCHNORM || norm->batchnorm.training || norm->post[0].fn != BZ_FN_RELU ||
        norm->post[1].fn || !w->head || !is_known(w->head))
        return false;
    if (!low->n || low->alternative[0].n != 1 || low->alternative[0].problem->kind != BZ_PROBLEM_CONV ||
        read_by(w, l, 0) != w->current)
        return false;
    trial = *low->alternative[0].problem;
    trial.kind = BZ_PROBLEM_CONV_NORM, trial.conv.before = true;
    if (trial.dtype != norm->dtype || trial.dtype_y != norm->dtype || bz_problem_normalize(&trial, &err))
        return false;
    *norm = trial;
    w->head = l;
    return w->before = true;
}

/* Whether the last call takes layer i along. What it made until now must be wanted by nobody else: it
 * is never written. */
static bool take_step(walk *w, int i)
{
    const bz_layer *l = &w->layers->layer[w->layer[i]];
    if (!w->l.n_steps || w->current < 0 || !is_read(w, w->current, i) || is_read(w, w->current, i + 1))
        return false;
    if (!strcmp(l->kind, "batchnorm"))
        return take_batchnorm(w, l) && take(w, i, BZ_TAKEN_BATCHNORM, -1);
    if (take_before(w, i))
        return true;
    for (size_t row = 0; row < sizeof STEPS / sizeof *STEPS; row++)
        if (!strcmp(l->kind, STEPS[row].kind))
            return take_operand(w, l, row, i);
    return take_activation(w, l) && take(w, i, BZ_TAKEN_POST, -1);
}

/* The one value from outside that layers i to j read, constants left out; BZ_NO_VALUE where there are
 * several, or where somebody behind reads what they make on the way. */
static bz_value_id only_input(const walk *w, int i, int j)
{
    bz_value_id x = BZ_NO_VALUE;
    for (int s = i; s <= j; s++) {
        const bz_layer *l = &w->layers->layer[w->layer[s]];
        for (int k = 0; k < l->n_in; k++) {
            bz_value_id v = read_by(w, l, k);
            bool inside = v < 0 || l->in_constant[k];
            for (int t = i; t < s && !inside; t++)
                inside = result_of(&w->layers->layer[w->layer[t]]) == v;
            if (!inside && x >= 0 && x != v)
                return BZ_NO_VALUE;
            x = inside ? x : v;
        }
        if (s < j && is_read(w, result_of(l), j + 1))
            return BZ_NO_VALUE;
    }
    return x;
}

static int call_activation(walk *w, const bz_type *x, bz_fn fn, double alpha, double beta)
{
    bz_problem *p = lower_step(&w->l, BZ_PROBLEM_ACTIVATION);
    p->activation.fn = fn, p->activation.alpha = (float)alpha, p->activation.beta = (float)beta;
    return lower_extent(x, 0, p->activation.x);
}

/* No library of ours has it as one call, but its steps are fewer than the exporter's. */
static int call_rmsnorm(walk *w, const bz_type *x, const written *f)
{
    bz_extent whole, row = {0}, one = {0};
    int64_t n = 1;
    if (lower_extent(x, 0, whole))
        return -1;
    for (int i = 0; i < x->rank; i++) {
        n *= i < f->axis ? 1 : whole[i];
        row[i] = i < f->axis ? whole[i] : 1;
        one[i] = i < f->axis ? 1 : whole[i];
    }
    const bz_type reduced = {.kind = BZ_TYPE_TENSOR, .rank = x->rank, .dims = row};
    bz_problem *p = lower_step(&w->l, BZ_PROBLEM_REDUCE);
    p->reduce.fn = BZ_FN_SUMSQUARE;
    memcpy(p->reduce.x, whole, sizeof whole);
    memcpy(p->reduce.y, row, sizeof row);
    if (call_activation(w, &reduced, BZ_FN_LINEAR, 1 / (double)n, (double)f->added) ||
        call_activation(w, &reduced, BZ_FN_POW, 1, -0.5))
        return -1;
    for (int i = 0; i < 2; i++) {
        p = lower_step(&w->l, BZ_PROBLEM_BINARY);
        p->binary.fn = BZ_FN_MUL;
        memcpy(p->binary.a, whole, sizeof whole);
        memcpy(p->binary.b, i ? one : row, sizeof row);
    }
    return 0;
}

static int call_written(walk *w, bz_value_id v, const written *f)
{
    const bz_type *x = &w->layers->types[v];
    w->head = NULL;
    w->l.dtype = lower_dtype(x->dtype, w->l.wanted);
    if (w->l.n_steps + 5 > MAX_STEPS)
        return -1;
    if (f->kind == WRITTEN_ACTIVATION)
        return call_activation(w, x, f->fn, (double)f->alpha, (double)f->beta);
    if (f->kind == WRITTEN_RMSNORM)
        return call_rmsnorm(w, x, f);
    bool grouped = f->kind == WRITTEN_GROUPNORM;
    bz_problem *p = lower_step(&w->l, grouped ? BZ_PROBLEM_GROUPNORM : BZ_PROBLEM_LAYERNORM);
    *(grouped ? &p->groupnorm.group : &p->layernorm.axis) = f->axis;
    return lower_extent(x, 0, grouped ? p->groupnorm.x : p->layernorm.x);
}

/* The longest run of layers from i on that computes a known function. Returns how many, 0 for none. */
static int take_written(walk *w, int i)
{
    written f;
    for (int j = w->n - 1; j > i; j--) {
        bz_value_id x = only_input(w, i, j);
        if (x < 0 || !written_identify(w->lowered, w->layer + i, j - i + 1, x, &f))
            continue;
        bool along = f.kind == WRITTEN_ACTIVATION && x == w->current && !is_read(w, x, j + 1) &&
                     take_along(w, f.fn, f.alpha, f.beta);
        int before = w->l.n_steps;
        if (along || !call_written(w, x, &f)) {
            for (int k = i; k <= j; k++) {
                take(w, k,
                     along                        ? BZ_TAKEN_POST
                     : w->l.n_steps == before + 1 ? BZ_TAKEN_WRITTEN
                                                  : BZ_TAKEN_SEVERAL,
                     -1);
                w->taken[k].x = x, w->taken[k].scale = f.scale, w->taken[k].shift = f.shift;
                w->taken[k].epsilon = f.added;
            }
            return j - i + 1;
        }
        w->l.n_steps = before;
    }
    return 0;
}

/* The layer as a call of its own, or as several. What a view makes is for another call. */
static int call_layer(walk *w, int i, int choice)
{
    const bz_layer *l = &w->layers->layer[w->layer[i]];
    const bz_lowering *low = lowered_layer(w->lowered, w->layer[i]);
    if (!low->free && choice >= low->n)
        return lower_no(&w->l, bz_arena_printf(w->l.arena, "%s: %s", l->kind, low->why ? low->why : "no benchmark"));
    if (w->l.n_steps && !w->why && !low->free)
        w->why = bz_arena_printf(w->l.arena, "no call takes %s along", l->kind);
    w->current = low->free ? BZ_NO_VALUE : result_of(l);
    take(w, i, BZ_TAKEN_VIEW, -1);
    if (low->free)
        return 0;
    const bz_alternative *a = &low->alternative[choice];
    w->taken[i] = (bz_taken){.how = BZ_TAKEN_CALL, .call = w->l.n_steps, .calls = a->n, .other = -1};
    if (w->l.n_steps + a->n > MAX_STEPS)
        return lower_no(&w->l, "it takes too many calls");
    for (int k = 0; k < a->n; k++)
        w->l.step[w->l.n_steps++] = a->problem[k];
    w->head = a->n == 1 || a->problem[0].kind == BZ_PROBLEM_PAD ? l : NULL;
    w->modelled |= a->modelled;
    w->fallback |= a->fallback;
    return 0;
}

static int walk_on(walk *w, int choice)
{
    for (int i = 0; i < w->n;) {
        int used = take_written(w, i);
        used = used ? used : take_step(w, i);
        if (!used && call_layer(w, i, w->l.n_steps ? 0 : choice))
            return -1;
        if (used)
            w->current = result_of(&w->layers->layer[w->layer[i + used - 1]]);
        i += used ? used : 1;
    }
    return 0;
}

/* Calls that the layers take by themselves, each by its first alternative. */
static int calls_alone(walk *w)
{
    int n = 0;
    for (int i = 0; i < w->n; i++) {
        const bz_lowering *low = lowered_layer(w->lowered, w->layer[i]);
        n += low->free ? 0 : low->n ? low->alternative[0].n : 1;
    }
    return n;
}

/* Of training: a convolution that sums up its result by channel, and a normalization that is given these sums. */
static int lower_statistics(walk *w)
{
    const bz_lowering *conv = lowered_layer(w->lowered, w->layer[0]);
    const bz_lowering *norm = w->n == 2 ? lowered_layer(w->lowered, w->layer[1]) : conv;
    const bz_problem *c = conv->n && conv->alternative[0].n == 1 ? conv->alternative[0].problem : NULL,
                     *b = norm->n && norm->alternative[0].n == 1 ? norm->alternative[0].problem : NULL;
    if (!c || !b || c->kind != BZ_PROBLEM_CONV || c->post[0].fn || b->kind != BZ_PROBLEM_BATCHNORM ||
        !b->batchnorm.training)
        return lower_no(&w->l, "what is read elsewhere, too, must be written");
    w->l.step[0] = *c, w->l.step[1] = *b, w->l.n_steps = 2;
    w->l.step[0].kind = BZ_PROBLEM_CONV_NORM, w->l.step[0].conv.behind = true;
    w->l.step[1].batchnorm.training = false;
    return lower_done(&w->l);
}

void bz_lower_group(bz_lowered *lowered, const bz_match *match, bz_arena *arena, bz_lowering *out)
{
    bz_problem steps[MAX_STEPS];
    const bz_layers *layers = lowered->layers;
    const bz_lowering *first = lowered_layer(lowered, match->layer[0]);
    walk w = {.l = {.wanted = lowered->dtype, .arena = arena, .step = steps},
              .lowered = lowered,
              .layers = layers,
              .stands = match->stands,
              .layer = match->layer,
              .n = match->n};
    *out = (bz_lowering){0};
    w.l.layer = &layers->layer[match->layer[0]];
    int alone = calls_alone(&w);
    w.taken = BZ_NEW(arena, bz_taken, w.n);
    bool sums = match->shared && !strcmp(layers->layer[match->layer[match->n - 1]].kind, "batchnorm");
    w.keeps = match->shared && !sums;
    if (sums)
        lower_statistics(&w);
    for (int choice = 0; !sums && (choice == 0 || (choice < first->n && w.l.n < MAX_ALTERNATIVES)); choice++) {
        const bz_alternative *a = choice ? &first->alternative[choice] : NULL;
        if (a && a->n > 1 && a->problem[0].kind != BZ_PROBLEM_PAD)
            continue; /* begins with what another alternative takes along */
        w.l.n_steps = 0, w.current = BZ_NO_VALUE, w.head = NULL;
        w.modelled = w.fallback = w.before = false;
        if (walk_on(&w, choice) || w.l.n_steps - (a ? a->n - 1 : 0) >= alone || lower_done(&w.l))
            continue;
        w.l.alternative[w.l.n - 1].modelled = w.modelled;
        w.l.alternative[w.l.n - 1].fallback = w.fallback;
        w.l.alternative[w.l.n - 1].taken =
            w.before || w.keeps ? NULL : bz_arena_dup(arena, w.taken, (size_t)w.n * sizeof *w.taken);
    }
    w.l.n_steps = 0;
    if (w.l.n < MAX_ALTERNATIVES && !match->shared)
        lower_attention_group(&w.l, layers, match->layer, match->n);
    if (!w.l.n) {
        out->why = w.l.why ? w.l.why : w.why ? w.why : "its layers are as many calls as they are by themselves";
        return;
    }
    out->alternative = bz_arena_dup(arena, w.l.alternative, (size_t)w.l.n * sizeof *w.l.alternative);
    out->n = w.l.n;
}
