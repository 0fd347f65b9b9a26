/* If, Loop and Scan: operators whose work is done by graphs of their own. */
#include "modelproc/infer.h"
#include "modelproc/rule.h"

static const bz_graph *body_of(call *c, const char *name)
{
    const bz_attr *a = bz_node_attr(c->node, name);
    if (a && a->kind == BZ_ATTR_GRAPH)
        return a->graph;
    call_fail(c, "its graph '%s' is missing", name);
    return NULL;
}

static bool same_type(const bz_type *a, const bz_type *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank || !a->elem != !b->elem)
        return false;
    if (a->elem && !same_type(a->elem, b->elem))
        return false;
    return a->rank <= 0 || !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

static bool is_among(const bz_value_id *list, int n, bz_value_id v)
{
    while (n > 0 && list[n - 1] != v)
        n--;
    return n > 0;
}

/* An input of a fixed size is always there: it tells nothing. */
static bool has_open_size(const bz_type *declared)
{
    for (int k = 0; declared && declared->kind == BZ_TYPE_TENSOR && k < declared->rank; k++)
        if (bz_is_symbol(declared->dims[k]))
            return true;
    return false;
}

/* A decoder of which two exports were merged: an input says whether there is a cache of keys and values, and the branch that reads the
 * cache is the one that reads more of the inputs alone: two for each layer. Where there are keys, that branch is meant; where
 * the cache is empty, the other one. Returns 0 or 1, or -1 where that does not tell. */
static int fed_branch(call *c, const bz_graph *const g[2])
{
    const bz_graph *main = c->inf->model->graph;
    int alone[2] = {0, 0}, empty[2] = {0, 0}, open[2] = {0, 0};
    const char *first[2] = {NULL, NULL};
    if (!is_among(main->inputs, main->n_inputs, c->node->in[0]))
        return -1;
    for (int i = 0; i < main->n_inputs; i++) {
        bz_value_id v = main->inputs[i];
        const bz_type *t = value_type(c, v);
        bool read[2];
        for (int k = 0; k < 2; k++)
            read[k] = is_among(g[k]->captures, g[k]->n_captures, v);
        if (read[0] == read[1] || !has_open_size(c->inf->model->values[v].declared))
            continue;
        int b = read[1];
        alone[b]++;
        first[b] = first[b] ? first[b] : c->inf->model->values[v].name;
        open[b] += !t || t->rank < 0;
        for (int k = 0; t && k < t->rank; k++) {
            open[b] += bz_is_symbol(t->dims[k]);
            empty[b] += t->dims[k] == 0;
        }
    }
    int b = alone[1] > alone[0];
    if (alone[0] == alone[1] || alone[b] < 2 || open[b])
        return -1;
    infer_warn(c->inf,
               bz_arena_printf(c->arena, "%s is taken as %s: %s is %s", c->inf->model->values[c->node->in[0]].name,
                               (b == 0) == !empty[b] ? "true" : "false", first[b], empty[b] ? "empty" : "not empty"));
    return empty[b] ? !b : b;
}

/* Of two branches of which either may be taken, the other one: this one makes no sense for these shapes, as a branch for 8 kHz does
 * where the sound is as long as 16 kHz make it. Both cannot. */
static int leave_out(call *c, int branch, const char *name)
{
    bz_body *other = &c->bodies[!branch];
    if (c->inf->err->code != BZ_BAD_INPUT || (branch && !other->trips))
        return -1;
    infer_warn(
        c->inf,
        bz_arena_printf(c->arena,
                        "node '%s' (If): its %s cannot be run with these sizes, so the other one is counted alone: %s",
                        c->node->name, name, c->inf->err->text));
    c->bodies[branch] = (bz_body){.name = name};
    return 0;
}

/* How many elements the first n results of a branch have; -1: not known. */
static int64_t elements_of(call *c, const bz_graph *g, int n)
{
    int64_t sum = 0;
    for (int k = 0; k < n; k++) {
        const bz_type *t = k < g->n_outputs ? value_type(c, g->outputs[k]) : NULL;
        int64_t each = 1;
        if (!t || t->kind != BZ_TYPE_TENSOR || t->rank < 0)
            return -1;
        for (int i = 0; i < t->rank; i++)
            if (bz_is_symbol(t->dims[i]) || __builtin_mul_overflow(each, t->dims[i], &each))
                return -1;
        if (__builtin_add_overflow(sum, each, &sum))
            return -1;
    }
    return sum;
}

/* Of two branches whose results have other sizes the one with fewer elements: no layer behind the If had a price with the sizes of both,
 * and a bound counts the cheaper one. Returns 0 or 1, or -1 where the sizes are the same, or not known, or one branch makes nothing: that is
 * the case in which no box or word was found, and the layers behind would count as nothing. */
static int smaller_branch(call *c, const bz_graph *const g[2])
{
    int64_t n[2];
    for (int b = 0; b < 2; b++)
        if ((n[b] = elements_of(c, g[b], c->node->n_out)) <= 0)
            return -1;
    if (n[0] == n[1])
        return -1;
    infer_warn(c->inf,
               bz_arena_printf(c->arena,
                               "node '%s' (If): its branches have results of different sizes, and nothing tells "
                               "which one runs: its %s, whose results are smaller, is counted",
                               c->node->name, n[1] < n[0] ? "else_branch" : "then_branch"));
    return n[1] < n[0];
}

static int shape_if(call *c)
{
    static const char *const NAMES[] = {"then_branch", "else_branch"};
    const bz_graph *g[2] = {body_of(c, NAMES[0]), NULL};
    if (!g[0] || !(g[1] = body_of(c, NAMES[1])))
        return -1;
    int64_t n;
    const int64_t *cond = in_ints(c, 0, &n);
    bool known = cond && n == 1 && !bz_is_symbol(*cond);
    int fed = known ? *cond == 0 : fed_branch(c, g);
    bool decided = fed >= 0;
    c->bodies = BZ_NEW(c->arena, bz_body, 2);
    c->n_bodies = 2;
    for (int b = 0; b < 2; b++) {
        bool taken = !decided || fed == b;
        c->bodies[b] = (bz_body){.name = NAMES[b], .trips = taken};
        /* A branch that is never taken need not even make sense for these shapes. */
        if (taken && infer_body(c, g[b], NULL, NULL, 0, &c->bodies[b]) && (decided || leave_out(c, b, NAMES[b])))
            return -1;
    }
    int smaller = c->bodies[0].trips && c->bodies[1].trips ? smaller_branch(c, g) : -1;
    if (smaller >= 0)
        c->bodies[!smaller] = (bz_body){.name = NAMES[!smaller]};
    c->bodies[0].trips_known = c->bodies[1].trips_known = c->bodies[0].trips != c->bodies[1].trips;
    for (int k = 0; k < c->node->n_out; k++) {
        if (k >= g[0]->n_outputs || k >= g[1]->n_outputs)
            return call_fail(c, "its branches have fewer results than it has itself");
        const bz_type *t[2] = {value_type(c, g[0]->outputs[k]), value_type(c, g[1]->outputs[k])};
        bool first = c->bodies[0].trips, both = first && c->bodies[1].trips;
        bz_type joined = both ? type_join(c, t[0], t[1]) : *t[!first];
        set_type(c, k, &joined);
        if (!both)
            c->out_data[k] = value_data(c, g[!first]->outputs[k]);
    }
    return 0;
}

static const int64_t YES = 1;
static const data TRUE_DATA = {.n = 1, .i = &YES};

/* The condition that the body hands to the next trip: 1, 0, or -1 for not known. */
static int goes_on(call *c, const bz_graph *g)
{
    if (g->outputs[0] == g->inputs[1]) /* handed on as it came */
        return 1;
    const data *d = value_data(c, g->outputs[0]);
    return d && d->i && d->n == 1 && !bz_is_symbol(d->i[0]) ? d->i[0] != 0 : -1;
}

/* How often it runs at most, by its operands: -1 where they don't tell, INT64_MAX where only the body ends it. */
static int64_t asked_trips(call *c)
{
    int64_t n, n_cond;
    const int64_t *count = in_ints(c, 0, &n), *cond = in_ints(c, 1, &n_cond);
    if (cond && n_cond == 1 && cond[0] == 0)
        return 0;
    bool starts = !in_type(c, 1) || (cond && n_cond == 1 && cond[0] == 1);
    if (starts && c->node->n_in && c->node->in[0] == BZ_NO_VALUE)
        return INT64_MAX;
    return starts && count && n == 1 && !bz_is_symbol(*count) && *count >= 0 ? *count : -1;
}

/* An integer that is `at` in the first trip and grows by `step` with every other one. */
typedef struct {
    int64_t at, step;
} counter;

enum { MAX_STEPS_BACK = 16, FORK = 4 }; /* a node with two operands to follow counts as four steps: 2^4 ways at most */

static const bz_node *maker_of(const bz_graph *g, bz_value_id v)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (is_among(g->nodes[i].out, g->nodes[i].n_out, v))
            return g->nodes[i].domain[0] ? NULL : &g->nodes[i];
    return NULL;
}

static bool passes_on(const bz_node *node)
{
    return node->n_in > 0 && bz_has_word("Identity Cast Squeeze Unsqueeze Reshape", node->op);
}

static bool read_counter(call *c, const bz_graph *g, bz_value_id v, int depth, counter *out);

/* The sum or difference of a node's two operands. */
static bool read_both(call *c, const bz_graph *g, const bz_node *node, bool less, int depth, counter *out)
{
    counter a, b;
    if (node->n_in != 2 || !read_counter(c, g, node->in[0], depth, &a) || !read_counter(c, g, node->in[1], depth, &b))
        return false;
    return less ? !__builtin_sub_overflow(a.at, b.at, &out->at) && !__builtin_sub_overflow(a.step, b.step, &out->step)
                : !__builtin_add_overflow(a.at, b.at, &out->at) && !__builtin_add_overflow(a.step, b.step, &out->step);
}

/* What is carried from trip to trip grows by what the body adds to it. */
static bool read_carried(call *c, const bz_graph *g, int k, counter *out)
{
    int64_t n;
    const int64_t *first = in_ints(c, k, &n);
    bz_value_id next = g->outputs[k - 1];
    const bz_node *node = maker_of(g, next);
    counter by = {0, 0};
    if (!first || n != 1 || bz_is_symbol(*first))
        return false;
    for (int i = 0; node && passes_on(node) && i < MAX_STEPS_BACK; i++)
        node = maker_of(g, next = node->in[0]);
    if (next != g->inputs[k]) {
        bool adds = node && node->n_in == 2 && bz_has_word("Add Sub", node->op);
        int own = adds && node->in[0] != g->inputs[k] && strcmp(node->op, "Add") == 0;
        if (!adds || node->in[own] != g->inputs[k] || is_among(g->inputs, g->n_inputs, node->in[!own]) ||
            !read_counter(c, g, node->in[!own], MAX_STEPS_BACK, &by) || by.step)
            return false;
        if (*node->op == 'S' && __builtin_sub_overflow((int64_t)0, by.at, &by.at))
            return false;
    }
    *out = (counter){*first, by.at};
    return true;
}

static bool read_counter(call *c, const bz_graph *g, bz_value_id v, int depth, counter *out)
{
    if (v < 0 || depth > MAX_STEPS_BACK)
        return false;
    if (v == g->inputs[0]) {
        *out = (counter){0, 1};
        return true;
    }
    for (int k = 2; k < c->node->n_in; k++)
        if (v == g->inputs[k])
            return read_carried(c, g, k, out);
    const data *d = value_data(c, v);
    if (d && d->i && d->n == 1 && !bz_is_symbol(*d->i)) {
        *out = (counter){*d->i, 0};
        return true;
    }
    const bz_node *node = maker_of(g, v);
    if (!node || (passes_on(node) && !bz_dtype_is_int(value_type(c, v)->dtype)))
        return false;
    if (passes_on(node))
        return read_counter(c, g, node->in[0], depth + 1, out);
    return bz_has_word("Add Sub", node->op) && read_both(c, g, node, *node->op == 'S', depth + FORK, out);
}

/* How often a loop runs whose condition, `v` as the body hands it on, compares a counter with a limit; -1: it does not. */
static int64_t counted_trips(call *c, const bz_graph *g, bz_value_id v, int depth)
{
    const bz_node *node = v < 0 || depth > MAX_STEPS_BACK ? NULL : maker_of(g, v);
    const data *known = v < 0 ? NULL : value_data(c, v);
    if (v == g->inputs[1]) /* it goes on: not this ends it */
        return INT64_MAX;
    if (known && known->i && known->n == 1 && !bz_is_symbol(*known->i))
        return *known->i ? INT64_MAX : 1;
    if (node && passes_on(node))
        return counted_trips(c, g, node->in[0], depth + 1);
    if (node && !strcmp(node->op, "And") && node->n_in == 2) {
        int64_t a = counted_trips(c, g, node->in[0], depth + FORK), b = counted_trips(c, g, node->in[1], depth + FORK);
        return a < 0 || b < 0 ? -1 : a < b ? a : b;
    }
    counter d;
    if (!node || !bz_has_word("Less LessOrEqual Greater GreaterOrEqual", node->op) ||
        !read_both(c, g, node, true, depth, &d) || d.at == INT64_MIN || d.step == INT64_MIN)
        return -1;
    if (*node->op == 'G')
        d = (counter){-d.at, -d.step};
    bool equal = strlen(node->op) > 7; /* it goes on while d < 0, or d <= 0 */
    if (d.at > 0 || (d.at == 0 && !equal))
        return 1;
    return d.step <= 0 ? INT64_MAX : 1 + (-d.at) / d.step + (equal || (-d.at) % d.step);
}

/* What holds before and after a trip: a dimension that changes becomes a symbol and stays one. */
static bz_type widen(call *c, const bz_type *before, const bz_type *after)
{
    bz_type t = type_join(c, before, after);
    for (int i = 0; i < t.rank && before->kind == BZ_TYPE_TENSOR && before->rank == t.rank; i++)
        if (bz_is_symbol(before->dims[i]))
            ((bz_dim *)t.dims)[i] = before->dims[i];
    return t;
}

/* What is carried from trip to trip may change its shape on the way: repeat with what holds of both
 * ends until it settles. A rank that changes is given up. */
static int settle_loop(call *c, const bz_graph *g, bz_type *in, bz_body *body)
{
    int carried = c->node->n_in - 2;
    const data **values = BZ_NEW(c->arena, const data *, g->n_inputs);
    values[1] =
        &TRUE_DATA; /* in the body the condition holds: so it is true, too, where it is handed on through others */
    for (int round = 0; round < 4; round++) {
        bool settled = true;
        if (infer_body(c, g, in, values, g->n_inputs, body))
            return -1;
        for (int k = 0; k < carried; k++) {
            bz_type wide = widen(c, &in[k + 2], value_type(c, g->outputs[k + 1]));
            settled &= same_type(&wide, &in[k + 2]);
            in[k + 2] = wide;
        }
        if (settled)
            break;
    }
    return 0;
}

static bool same_layers(const bz_body *a, const bz_body *b)
{
    for (int i = 0; i < a->n; i++)
        if (a->layers[i].hash.low != b->layers[i].hash.low || a->layers[i].class != b->layers[i].class)
            return false;
    return true;
}

enum { MAX_UNROLLED = 64 };

/* A short loop whose count is known is run trip by trip: what it carries (sequences that grow, sizes
 * that shrink) is then known exactly. Trips that do the same work share a body. Returns 1 when the
 * loop may end in a way that nobody knows. */
static int unroll_loop(call *c, const bz_graph *g, int64_t trips, bz_type *in, const data **values, bz_type *collected)
{
    int carried = c->node->n_in - 2, n_collected = g->n_outputs - 1 - carried;
    c->bodies = BZ_NEW(c->arena, bz_body, trips);
    c->n_bodies = 0;
    for (int64_t trip = 0; trip < trips; trip++) {
        int64_t *number = bz_arena_dup(c->arena, &trip, sizeof trip);
        data *count = BZ_NEW(c->arena, data, 1);
        *count = (data){.n = 1, .i = number};
        values[0] = count;
        values[1] = &TRUE_DATA;
        bz_body body = {.name = "body", .trips = 1, .trips_known = true};
        if (infer_body(c, g, in, values, g->n_inputs, &body))
            return -1;
        for (int k = 0; k < carried; k++) {
            in[k + 2] = *value_type(c, g->outputs[k + 1]);
            values[k + 2] = value_data(c, g->outputs[k + 1]);
        }
        for (int k = 0; k < n_collected; k++) {
            const bz_type *t = value_type(c, g->outputs[k + 1 + carried]);
            collected[k] = trip ? type_join(c, &collected[k], t) : *t;
        }
        if (c->n_bodies && same_layers(&body, &c->bodies[c->n_bodies - 1]))
            c->bodies[c->n_bodies - 1].trips++;
        else
            c->bodies[c->n_bodies++] = body;
        int more = goes_on(c, g);
        if (more < 0)
            return 1;
        if (!more)
            break;
    }
    return 0;
}

static int64_t count_trips(const call *c)
{
    int64_t n = 0;
    for (int b = 0; b < c->n_bodies; b++)
        n += c->bodies[b].trips;
    return n;
}

/* The first two inputs of the body have the shapes that the operands have: scalars, or [1]. */
static void start_loop(call *c, const bz_graph *g, bz_type *in, const data **values)
{
    static const bz_dtype TYPES[] = {BZ_I64, BZ_BOOL};
    static const bz_dim NO_DIMS[1];
    for (int k = 0; k < 2; k++) {
        const bz_type *t = in_type(c, k);
        bool known = t && t->kind == BZ_TYPE_TENSOR && t->rank >= 0;
        in[k] = (bz_type){
            .kind = BZ_TYPE_TENSOR, .dtype = TYPES[k], .rank = known ? t->rank : 0, .dims = known ? t->dims : NO_DIMS};
    }
    for (int k = 2; k < c->node->n_in; k++) {
        in[k] = c->in[k];
        values[k] = in_data(c, k);
    }
    for (int k = c->node->n_in; k < g->n_inputs; k++)
        in[k] = (bz_type){.rank = -1};
}

/* `once`: it was tried trip by trip, and its end is not known. */
static int run_loop(call *c, const bz_graph *g, int64_t trips, bool once, bz_type *in, const data **values,
                    bz_type *collected, bool *exact)
{
    int carried = c->node->n_in - 2;
    start_loop(c, g, in, values);
    *exact = trips > 0 && trips <= MAX_UNROLLED && !once;
    if (*exact) {
        int open = unroll_loop(c, g, trips, in, values, collected);
        return open <= 0 ? open : run_loop(c, g, trips, true, in, values, collected, exact);
    }
    c->bodies = BZ_NEW(c->arena, bz_body, 1);
    c->n_bodies = 1;
    c->bodies[0].name = "body";
    if (settle_loop(c, g, in, &c->bodies[0]))
        return -1;
    int64_t counted = trips > 0 ? counted_trips(c, g, g->outputs[0], 0) : -1;
    bool ends = counted > 0 && counted < INT64_MAX && counted <= trips;
    if (ends && counted <= MAX_UNROLLED && !once)
        return run_loop(c, g, counted, false, in, values, collected, exact);
    trips = ends ? counted : trips;
    for (int k = 0; k < g->n_outputs - 1 - carried; k++)
        collected[k] = *value_type(c, g->outputs[k + 1 + carried]);
    /* a condition that holds for longer than the count leaves the end to that */
    bool known = trips == 0 || ends || (trips > 0 && trips < INT64_MAX && (counted > 0 || goes_on(c, g) == 1));
    c->bodies[0].trips = known ? trips : call_trips(c) ? call_trips(c) : 1;
    c->bodies[0].trips_known = known;
    return 0;
}

static int shape_loop(call *c)
{
    const bz_graph *g = body_of(c, "body");
    int carried = c->node->n_in - 2;
    bool exact;
    if (!g)
        return -1;
    if (carried < 0 || g->n_inputs < carried + 2 || g->n_outputs < carried + 1 || c->node->n_out > g->n_outputs - 1)
        return call_fail(c, "its operands and results do not fit its body");
    bz_type *in = BZ_NEW(c->arena, bz_type, g->n_inputs), *collected = BZ_NEW(c->arena, bz_type, g->n_outputs);
    const data **values = BZ_NEW(c->arena, const data *, g->n_inputs);
    if (run_loop(c, g, asked_trips(c), false, in, values, collected, &exact))
        return -1;
    for (int k = 0; k < c->node->n_out; k++) {
        if (k < carried) {
            set_type(c, k, &in[k + 2]);
            c->out_data[k] = exact ? values[k + 2] : NULL;
            continue;
        }
        /* collected over all trips, along a new first dimension */
        const bz_type *t = &collected[k - carried];
        if (t->kind != BZ_TYPE_TENSOR || t->rank < 0 || t->rank == BZ_MAX_RANK) {
            set_unknown(c, k, t->dtype);
            continue;
        }
        bz_dim dims[BZ_MAX_RANK];
        dims[0] = c->bodies[0].trips_known ? count_trips(c) : new_symbol(c);
        for (int i = 0; i < t->rank; i++)
            dims[i + 1] = t->dims[i];
        set_out(c, k, t->dtype, t->rank + 1, dims);
    }
    return 0;
}

/* Scanned inputs lose the axis that is scanned, scanned outputs gain one. Operator set 8 had a batch
 * in front of everything and an operand for the lengths. */
typedef struct {
    bool old;
    int first, states, scans; /* operands: `first` of them before the states */
    bz_dim length;
} scan;

static int scan_axis(call *c, const char *attr, int k, int rank, int *axis)
{
    int n;
    const int64_t *v = attr_ints(c, attr, &n);
    return fix_axis(c, v && k < n ? v[k] : 0, rank, axis);
}

/* Type of a scanned operand as the body sees it. */
static int scan_input(call *c, scan *s, int k, const bz_type *t, bz_type *out)
{
    int axis = 0, batch = s->old, rank = 0;
    if (t->kind != BZ_TYPE_TENSOR || t->rank < 1 + batch)
        return call_fail(c, "a scanned operand has too few dimensions");
    if (!s->old && scan_axis(c, "scan_input_axes", k, t->rank, &axis))
        return -1;
    axis += batch;
    bz_dim *dims = new_dims(c, t->rank);
    for (int i = batch; i < t->rank; i++)
        if (i != axis)
            dims[rank++] = t->dims[i];
    if (k == 0 || bz_is_symbol(s->length))
        s->length = t->dims[axis];
    else if (!bz_is_symbol(t->dims[axis]) && t->dims[axis] != s->length)
        return call_fail(c, "its operands are scanned over %lld and %lld steps", (long long)s->length,
                         (long long)t->dims[axis]);
    *out = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = t->dtype, .rank = rank, .dims = dims};
    return 0;
}

static int scan_output(call *c, const scan *s, int k, const bz_type *t, bz_dim batch)
{
    int axis = 0, at = 0, rank = t->rank + 1 + s->old;
    if (t->kind != BZ_TYPE_TENSOR || t->rank < 0 || rank > BZ_MAX_RANK)
        return set_unknown(c, s->states + k, t->dtype);
    if (!s->old && scan_axis(c, "scan_output_axes", k, rank, &axis))
        return -1;
    bz_dim dims[BZ_MAX_RANK];
    if (s->old)
        dims[at++] = batch;
    for (int i = 0, from = 0; i <= t->rank; i++)
        dims[at++] = i == axis ? s->length : t->dims[from++];
    return set_out(c, s->states + k, t->dtype, rank, dims);
}

static int shape_scan(call *c)
{
    const bz_graph *g = body_of(c, "body");
    scan s = {.old = c->node->opset < 9, .length = new_symbol(c)};
    int64_t scans = attr_int(c, "num_scan_inputs", 0);
    s.first = s.old;
    if (!g)
        return -1;
    if (scans < 1 || scans > c->node->n_in - s.first)
        return call_fail(c, "num_scan_inputs is %lld", (long long)scans);
    s.scans = (int)scans;
    s.states = c->node->n_in - s.first - s.scans;
    if (g->n_inputs < s.states + s.scans || g->n_outputs < c->node->n_out || c->node->n_out < s.states)
        return call_fail(c, "its operands and results do not fit its body");
    bz_type *in = BZ_NEW(c->arena, bz_type, g->n_inputs);
    bz_dim batch = 0;
    for (int k = 0; k < s.states + s.scans; k++) {
        const bz_type *t = &c->in[s.first + k];
        if (s.old && t->kind == BZ_TYPE_TENSOR && t->rank > 0)
            batch = t->dims[0];
        if (k >= s.states && scan_input(c, &s, k - s.states, t, &in[k]))
            return -1;
        if (k < s.states)
            in[k] = *t;
        if (k < s.states && s.old && t->kind == BZ_TYPE_TENSOR && t->rank > 0) {
            in[k].rank--;
            in[k].dims++;
        }
    }
    bool known = !bz_is_symbol(s.length);
    c->bodies = BZ_NEW(c->arena, bz_body, 1);
    c->n_bodies = 1;
    c->bodies[0].name = "body";
    if (infer_body(c, g, in, NULL, s.states + s.scans, &c->bodies[0]))
        return -1;
    c->bodies[0].trips = known           ? count_mul(s.length, s.old && !bz_is_symbol(batch) ? batch : 1)
                         : call_trips(c) ? call_trips(c)
                                         : 1;
    c->bodies[0].trips_known = known;
    for (int k = 0; k < s.states; k++)
        set_type(c, k, &c->in[s.first + k]);
    for (int k = 0; k < c->node->n_out - s.states; k++)
        if (scan_output(c, &s, k, value_type(c, g->outputs[s.states + k]), batch))
            return -1;
    return 0;
}

static const op ROWS[] = {
    {"If", NULL, "if", BZ_COMPUTE, shape_if, .flags = OP_RANKLESS, .labels = "- > y..."},
    {"Loop", NULL, "loop", BZ_COMPUTE, shape_loop, .flags = OP_RANKLESS, .labels = "- - x... > y..."},
    {"Scan", NULL, "scan", BZ_COMPUTE, shape_scan, .flags = OP_RANKLESS, .labels = "x... > y..."},
};

const op_table ops_control = OP_TABLE(ROWS);
