/* Recurrent layers of a training graph. ONNX and our problems have gates, weights and states in different orders: loops bring them from
 * one to the other in each iteration, since training changes weights. */
#include "replay/bind.h"

#include <string.h>

enum { MAX_IN = 16 };

typedef struct sizes {
    int64_t seq, batch, input, hidden, dirs, gates, biases;
} sizes;

static sizes sizes_of(const bz_problem *p)
{
    int64_t gates = bz_rnn_gates(p->kind);
    return (sizes){p->rnn.seq, p->rnn.batch,      p->rnn.input, p->rnn.hidden, p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1,
                   gates,      gates + p->rnn.lbr};
}

/* Where ONNX has our gate: of an LSTM input, output, forget, cell. */
static int64_t onnx_gate(const bz_problem *p, int64_t gate)
{
    static const int LSTM[] = {0, 2, 3, 1};
    return bz_problem_is_lstm(p) ? LSTM[gate] : gate;
}

/* A copy between the place in ONNX's tensor (`at` and strides) and that in ours; `back`: into ONNX's. */
typedef struct place {
    int64_t at, stride[3];
} place;

static int copy(binder *b, const bz_layer *l, const int64_t dim[3], place onnx, place ours, bool back, int from, int to,
                bz_error *err)
{
    const place *x = back ? &ours : &onnx, *y = back ? &onnx : &ours;
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY, .rank = 3, .from = x->at, .to = y->at};
    memcpy(loop.dim, dim, 3 * sizeof *dim);
    memcpy(loop.stride[0], x->stride, sizeof x->stride);
    memcpy(loop.stride[1], y->stride, sizeof y->stride);
    return bind_loop(b, l, &loop, &from, 1, to, err);
}

/* [directions, gates · hidden, n] and [directions, n, gates, hidden] */
static int copy_weights(binder *b, const bz_layer *l, const bz_problem *p, int64_t n, bool back, int from, int to,
                        bz_error *err)
{
    sizes s = sizes_of(p);
    int64_t all = s.gates * s.hidden;
    for (int64_t g = 0; g < s.gates; g++) {
        place onnx = {onnx_gate(p, g) * s.hidden * n, {all * n, 1, n}}, ours = {g * s.hidden, {n * all, all, 1}};
        if (copy(b, l, (int64_t[]){s.dirs, n, s.hidden}, onnx, ours, back, from, to, err))
            return -1;
    }
    return 0;
}

/* One gate of ONNX's two biases, [directions, 2 · gates · hidden], and one of ours, [directions, biases, hidden]. */
static int copy_bias(binder *b, const bz_layer *l, const bz_problem *p, int64_t half, int64_t gate, int64_t own,
                     bool back, int from, int to, bz_error *err)
{
    sizes s = sizes_of(p);
    place onnx = {(half * s.gates + onnx_gate(p, gate)) * s.hidden, {0, 2 * s.gates * s.hidden, 1}};
    place ours = {own * s.hidden, {0, s.biases * s.hidden, 1}};
    return copy(b, l, (int64_t[]){1, s.dirs, s.hidden}, onnx, ours, back, from, to, err);
}

/* [seq, directions, batch, hidden] and [seq, batch, directions · hidden] */
static int copy_states(binder *b, const bz_layer *l, const bz_problem *p, bool back, int from, int to, bz_error *err)
{
    sizes s = sizes_of(p);
    for (int64_t d = 0; d < s.dirs; d++) {
        place onnx = {d * s.batch * s.hidden, {s.dirs * s.batch * s.hidden, s.hidden, 1}};
        place ours = {d * s.hidden, {s.batch * s.dirs * s.hidden, s.dirs * s.hidden, 1}};
        if (copy(b, l, (int64_t[]){s.seq, s.batch, s.hidden}, onnx, ours, back, from, to, err))
            return -1;
    }
    return 0;
}

static int temporary(binder *b, const bz_operand *o)
{
    return bind_new_value(b, "", o->dtype, o->rank, o->dim);
}

/* The layer's operand or result k as the plan has it, -1 where it lacks; -2 with a sentence. */
static int operand(binder *b, const bz_layer *l, int k, bz_error *err)
{
    bool there = k < l->n_in && l->node->in[k] >= 0 && l->in[k].kind != BZ_TYPE_NONE;
    int v = there ? bind_value(b, l->node->in[k], err) : -1;
    return there && v < 0 ? -2 : v;
}

static int result(binder *b, const bz_layer *l, int k, const bz_operand *o, bz_error *err)
{
    bool there = k < l->n_out && l->node->out[k] >= 0 && l->out[k].kind != BZ_TYPE_NONE;
    int v = there ? bind_result(b, l, k, err) : temporary(b, o);
    return v < 0 ? -2 : v;
}

/* ONNX's biases are summed up but where the reset gate stands between: there the last gate has both. */
static int take_bias(binder *b, const bz_layer *l, const bz_problem *p, const bz_operand *o, int from, bz_error *err)
{
    sizes s = sizes_of(p);
    int half[2] = {temporary(b, o), temporary(b, o)}, sum = temporary(b, o);
    bz_replay_loop zero = {.kind = BZ_LOOP_FILL, .rank = 1, .dim = {1}};
    bz_replay_loop add = {
        .kind = BZ_LOOP_BINARY, .function = "add", .rank = 1, .dim = {o->count}, .stride = {{1}, {1}, {1}}};
    if (half[0] < 0 || half[1] < 0 || sum < 0)
        return bz_fail(err, BZ_INCOMPLETE, "it has too many dimensions");
    for (int i = 0; i < 2; i++) {
        if (p->rnn.lbr && bind_loop(b, l, &zero, NULL, 0, half[i], err))
            return -1;
        for (int64_t g = 0; g < s.gates; g++)
            if (copy_bias(b, l, p, i, g, i && p->rnn.lbr && g == 2 ? 3 : g, false, from, half[i], err))
                return -1;
    }
    return bind_loop(b, l, &add, half, 2, sum, err) ? -1 : sum;
}

static int find(const bz_operand *list, int n, bz_role role, bool of_result)
{
    int i = 0;
    while (i < n && (list[i].role != role || list[i].result != of_result))
        i++;
    return i < n ? i : -1;
}

/* X, W, R, B, lengths, H, C by the roles of the problem's operands. */
static int take_inputs(binder *b, const bz_layer *l, const bz_problem *p, const bz_operand *list, int n_in, int *in,
                       bz_error *err)
{
    static const struct {
        bz_role role;
        int input;
    } INPUTS[] = {{BZ_ROLE_X, 0}, {BZ_ROLE_W, 1}, {BZ_ROLE_R, 2}, {BZ_ROLE_BIAS, 3}, {BZ_ROLE_H, 5}, {BZ_ROLE_C, 6}};
    for (int i = 0; i < n_in; i++) {
        size_t k = 0;
        while (INPUTS[k].role != list[i].role)
            k++;
        int given = operand(b, l, INPUTS[k].input, err), made = given;
        bool weights = list[i].role == BZ_ROLE_W || list[i].role == BZ_ROLE_R;
        if (given < -1)
            return -1;
        if (weights && (made = temporary(b, &list[i])) < 0)
            return bind_no(l, err, "it has too many dimensions");
        if (weights && copy_weights(b, l, p, list[i].dim[1], false, given, made, err))
            return -1;
        if (list[i].role == BZ_ROLE_BIAS && given >= 0 && (made = take_bias(b, l, p, &list[i], given, err)) < 0)
            return -1;
        in[i] = made;
    }
    return 0;
}

/* All states, the last ones, of an LSTM the last cells and all cells, then what the backward pass needs. */
static int bind_forward(binder *b, const bz_layer *l, const bz_problem *p, bz_error *err)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list), n_in = 0, in[MAX_IN], more[3], n_more = 0;
    bool lstm = bz_problem_is_lstm(p), both = p->rnn.dir == BZ_BIDIRECTIONAL;
    bz_value_id kept = lstm ? l->n_out > 4 ? l->node->out[4] : -1 : l->n_out > 2 ? l->node->out[2] : -1;
    while (!list[n_in].result)
        n_in++;
    if (kept < 0 || operand(b, l, 4, err) != -1)
        return bind_no(l, err, "its sequences differ in length, or nothing is kept");
    if (take_inputs(b, l, p, list, n_in, in, err))
        return -1;
    for (int k = 1; k < (lstm ? 3 : 2); k++)
        more[n_more++] = result(b, l, k, &list[n_in + k - 1], err);
    more[n_more++] = temporary(b, &list[n - 2]);
    b->number[kept] = more[n_more - 1];
    int y = both ? temporary(b, &list[n - 1]) : result(b, l, 0, &list[n - 1], err);
    for (int k = 0; k < n_more; k++)
        if (more[k] < 0 || y < 0)
            return bind_no(l, err, "it has too many dimensions");
    bind_call(b, p, in, n_in, more, n_more, y);
    bool wanted = l->node->out[0] >= 0 && l->out[0].kind != BZ_TYPE_NONE;
    int all = both && wanted ? bind_result(b, l, 0, err) : -1;
    return both && wanted && (all < 0 || copy_states(b, l, p, true, y, all, err)) ? -1 : 0;
}

/* The forward call, by what it kept. */
static const bz_replay_step *forward_call(const binder *b, int kept)
{
    for (int i = b->plan->n_steps; i--;) {
        const bz_replay_step *s = &b->plan->step[i];
        if (s->kind == BZ_STEP_CALL && s->n_more && s->more[s->n_more - 1] == kept)
            return s;
    }
    return NULL;
}

/* Gradients in the problem's order into ONNX's results: dX, dW, dR, dB, dH, dC. */
static int give_results(binder *b, const bz_layer *l, const bz_problem *p, const bz_operand *list, int n,
                        const int *made, bz_error *err)
{
    sizes s = sizes_of(p);
    for (int k = 1; k < 4 && k < l->n_out; k++) {
        static const bz_role ROLES[] = {BZ_ROLE_X, BZ_ROLE_W, BZ_ROLE_R, BZ_ROLE_BIAS};
        if (l->node->out[k] < 0 || l->out[k].kind == BZ_TYPE_NONE)
            continue;
        int i = find(list, n, ROLES[k], true), out = bind_result(b, l, k, err);
        if (out < 0)
            return -1;
        if (k < 3 && copy_weights(b, l, p, k == 1 ? s.input : s.hidden, true, made[i], out, err))
            return -1;
        for (int64_t g = 0; k == 3 && g < s.gates; g++)
            if (copy_bias(b, l, p, 0, g, g, true, made[i], out, err) ||
                copy_bias(b, l, p, 1, g, p->rnn.lbr && g == 2 ? 3 : g, true, made[i], out, err))
                return -1;
    }
    return 0;
}

static int bind_backward(binder *b, const bz_layer *l, const bz_problem *p, bz_error *err)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    bool lstm = bz_problem_is_lstm(p);
    int n = bz_problem_operands(p, list), n_in = 0, in[MAX_IN], made[BZ_PROBLEM_OPERANDS], first = lstm ? 9 : 8;
    int kept = operand(b, l, first - 1, err);
    const bz_replay_step *f = kept < 0 ? NULL : forward_call(b, kept);
    if (!f)
        return bind_no(l, err, "the forward call that kept what it needs is not in the plan");
    int own = f->n_in; /* x, weights, bias, first states; then states, last ones, what was kept */
    memcpy(in, f->in, (size_t)own * sizeof *in);
    in[own++] = f->out;
    for (int k = 0; k < f->n_more; k++)
        in[own++] = f->more[k];
    for (int k = 0; k < (lstm ? 3 : 2); k++) {
        int given = operand(b, l, first + k, err);
        if (given < -1)
            return -1;
        if (!k && given >= 0 && p->rnn.dir == BZ_BIDIRECTIONAL) {
            int turned = temporary(b, &list[own]);
            if (turned < 0 || copy_states(b, l, p, false, given, turned, err))
                return -1;
            given = turned;
        }
        in[own++] = given;
    }
    while (!list[n_in].result)
        n_in++;
    if (own != n_in)
        return bind_no(l, err, "its call has other operands");
    for (int i = n_in; i < n; i++) {
        int k = list[i].role == BZ_ROLE_H ? 4 : list[i].role == BZ_ROLE_C ? 5 : i == n - 1 ? 0 : -1;
        made[i] = k < 0 ? temporary(b, &list[i]) : result(b, l, k, &list[i], err);
        if (made[i] < 0)
            return bind_no(l, err, "it has too many dimensions");
    }
    bind_call(b, p, in, n_in, made + n_in, n - n_in - 1, made[n - 1]);
    return give_results(b, l, p, list, n, made, err);
}

int bind_recurrent_training(binder *b, const bz_layer *l, const bz_problem *p, bz_error *err)
{
    if (p->dtype != BZ_F32)
        return bind_no(l, err, "recurrent layers are trained in f32 alone");
    return bz_problem_has(p, BZ_TRAIT_GRADIENT) ? bind_backward(b, l, p, err) : bind_forward(b, l, p, err);
}
