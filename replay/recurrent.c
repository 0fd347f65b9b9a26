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

static void copy(binder *b, const int64_t dim[3], place onnx, place ours, bool back, int from, int to)
{
    const place *x = back ? &ours : &onnx, *y = back ? &onnx : &ours;
    bz_replay_loop loop = {.kind = BZ_LOOP_COPY, .rank = 3, .from = x->at, .to = y->at};
    memcpy(loop.dim, dim, 3 * sizeof *dim);
    memcpy(loop.stride[0], x->stride, sizeof x->stride);
    memcpy(loop.stride[1], y->stride, sizeof y->stride);
    bind_loop(b, &loop, &from, 1, to);
}

/* [directions, gates · hidden, n] and [directions, n, gates, hidden] */
static void copy_weights(binder *b, const bz_problem *p, int64_t n, bool back, int from, int to)
{
    sizes s = sizes_of(p);
    int64_t all = s.gates * s.hidden;
    for (int64_t g = 0; g < s.gates; g++) {
        place onnx = {onnx_gate(p, g) * s.hidden * n, {all * n, 1, n}}, ours = {g * s.hidden, {n * all, all, 1}};
        copy(b, (int64_t[]){s.dirs, n, s.hidden}, onnx, ours, back, from, to);
    }
}

/* One gate of ONNX's two biases, [directions, 2 · gates · hidden], and one of ours, [directions, biases, hidden]. */
static void copy_bias(binder *b, const bz_problem *p, int64_t half, int64_t gate, int64_t own, bool back, int from,
                      int to)
{
    sizes s = sizes_of(p);
    place onnx = {(half * s.gates + onnx_gate(p, gate)) * s.hidden, {0, 2 * s.gates * s.hidden, 1}};
    place ours = {own * s.hidden, {0, s.biases * s.hidden, 1}};
    copy(b, (int64_t[]){1, s.dirs, s.hidden}, onnx, ours, back, from, to);
}

/* [seq, directions, batch, hidden] and [seq, batch, directions · hidden] */
static void copy_states(binder *b, const bz_problem *p, bool back, int from, int to)
{
    sizes s = sizes_of(p);
    for (int64_t d = 0; d < s.dirs; d++) {
        place onnx = {d * s.batch * s.hidden, {s.dirs * s.batch * s.hidden, s.hidden, 1}};
        place ours = {d * s.hidden, {s.batch * s.dirs * s.hidden, s.dirs * s.hidden, 1}};
        copy(b, (int64_t[]){s.seq, s.batch, s.hidden}, onnx, ours, back, from, to);
    }
}

/* The layer's operand or result k as the plan has it; -1 where it lacks the operand. */
static int operand(binder *b, const bz_layer *l, int k)
{
    bool there = k < l->n_in && l->node->in[k] >= 0 && l->in[k].kind != BZ_TYPE_NONE;
    return there ? bind_in(b, k) : -1;
}

static int result(binder *b, const bz_layer *l, int k, const bz_operand *o)
{
    bool there = k < l->n_out && l->node->out[k] >= 0 && l->out[k].kind != BZ_TYPE_NONE;
    return there ? bind_result(b, k) : bind_operand(b, o);
}

/* ONNX's biases are summed up but where the reset gate stands between: there the last gate has both. */
static int take_bias(binder *b, const bz_problem *p, const bz_operand *o, int from)
{
    sizes s = sizes_of(p);
    int half[2] = {bind_operand(b, o), bind_operand(b, o)}, sum = bind_operand(b, o);
    bz_replay_loop zero = {.kind = BZ_LOOP_FILL, .rank = 1, .dim = {1}};
    bz_replay_loop add = {
        .kind = BZ_LOOP_BINARY, .function = "add", .rank = 1, .dim = {o->count}, .stride = {{1}, {1}, {1}}};
    for (int i = 0; i < 2; i++) {
        if (p->rnn.lbr)
            bind_loop(b, &zero, NULL, 0, half[i]);
        for (int64_t g = 0; g < s.gates; g++)
            copy_bias(b, p, i, g, i && p->rnn.lbr && g == 2 ? 3 : g, false, from, half[i]);
    }
    bind_loop(b, &add, half, 2, sum);
    return sum;
}

static int find(const bz_operand *list, int n, bz_role role, bool of_result)
{
    int i = 0;
    while (i < n && (list[i].role != role || list[i].result != of_result))
        i++;
    return i < n ? i : -1;
}

/* X, W, R, B, lengths, H, C by the roles of the problem's operands. */
static void take_inputs(binder *b, const bz_layer *l, const bz_problem *p, const bz_operand *list, int n_in, int *in)
{
    static const struct {
        bz_role role;
        int input;
    } INPUTS[] = {{BZ_ROLE_X, 0}, {BZ_ROLE_W, 1}, {BZ_ROLE_R, 2}, {BZ_ROLE_BIAS, 3}, {BZ_ROLE_H, 5}, {BZ_ROLE_C, 6}};
    for (int i = 0; i < n_in; i++) {
        size_t k = 0;
        while (INPUTS[k].role != list[i].role)
            k++;
        int given = operand(b, l, INPUTS[k].input), made = given;
        bool weights = list[i].role == BZ_ROLE_W || list[i].role == BZ_ROLE_R;
        if (weights) {
            made = bind_operand(b, &list[i]);
            copy_weights(b, p, list[i].dim[1], false, given, made);
        } else if (list[i].role == BZ_ROLE_BIAS && given >= 0) {
            made = take_bias(b, p, &list[i], given);
        }
        in[i] = made;
    }
}

/* All states, the last ones, of an LSTM the last cells and all cells, then what the backward pass needs. */
static int bind_forward(binder *b, const bz_layer *l, const bz_problem *p)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list), n_in = 0, in[MAX_IN], more[3], n_more = 0;
    bool lstm = bz_problem_is_lstm(p), both = p->rnn.dir == BZ_BIDIRECTIONAL;
    bz_value_id kept = lstm ? l->n_out > 4 ? l->node->out[4] : -1 : l->n_out > 2 ? l->node->out[2] : -1;
    while (!list[n_in].result)
        n_in++;
    if (kept < 0 || (l->n_in > 4 && l->node->in[4] >= 0 && l->in[4].kind != BZ_TYPE_NONE))
        return bind_no(b, "its sequences differ in length, or nothing is kept");
    take_inputs(b, l, p, list, n_in, in);
    for (int k = 1; k < (lstm ? 3 : 2); k++)
        more[n_more++] = result(b, l, k, &list[n_in + k - 1]);
    more[n_more++] = bind_operand(b, &list[n - 2]);
    b->number[kept] = more[n_more - 1];
    int y = both ? bind_operand(b, &list[n - 1]) : result(b, l, 0, &list[n - 1]);
    bind_call(b, p, in, n_in, more, n_more, y);
    if (both && l->node->out[0] >= 0 && l->out[0].kind != BZ_TYPE_NONE)
        copy_states(b, p, true, y, bind_result(b, 0));
    return bind_done(b);
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
static void give_results(binder *b, const bz_layer *l, const bz_problem *p, const bz_operand *list, int n,
                         const int *made)
{
    sizes s = sizes_of(p);
    for (int k = 1; k < 4 && k < l->n_out; k++) {
        static const bz_role ROLES[] = {BZ_ROLE_X, BZ_ROLE_W, BZ_ROLE_R, BZ_ROLE_BIAS};
        if (l->node->out[k] < 0 || l->out[k].kind == BZ_TYPE_NONE)
            continue;
        int i = find(list, n, ROLES[k], true), out = bind_result(b, k);
        if (k < 3)
            copy_weights(b, p, k == 1 ? s.input : s.hidden, true, made[i], out);
        for (int64_t g = 0; k == 3 && g < s.gates; g++) {
            copy_bias(b, p, 0, g, g, true, made[i], out);
            copy_bias(b, p, 1, g, p->rnn.lbr && g == 2 ? 3 : g, true, made[i], out);
        }
    }
}

static int bind_backward(binder *b, const bz_layer *l, const bz_problem *p)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    bool lstm = bz_problem_is_lstm(p);
    int n = bz_problem_operands(p, list), n_in = 0, in[MAX_IN], made[BZ_PROBLEM_OPERANDS], first = lstm ? 9 : 8;
    int kept = operand(b, l, first - 1);
    const bz_replay_step *f = kept < 0 ? NULL : forward_call(b, kept);
    if (!f)
        return bind_no(b, "the forward call that kept what it needs is not in the plan");
    int own = f->n_in; /* x, weights, bias, first states; then states, last ones, what was kept */
    memcpy(in, f->in, (size_t)own * sizeof *in);
    in[own++] = f->out;
    for (int k = 0; k < f->n_more; k++)
        in[own++] = f->more[k];
    for (int k = 0; k < (lstm ? 3 : 2); k++) {
        int given = operand(b, l, first + k);
        if (!k && given >= 0 && p->rnn.dir == BZ_BIDIRECTIONAL) {
            int turned = bind_operand(b, &list[own]);
            copy_states(b, p, false, given, turned);
            given = turned;
        }
        in[own++] = given;
    }
    while (!list[n_in].result)
        n_in++;
    if (own != n_in)
        return bind_no(b, "its call has other operands");
    for (int i = n_in; i < n; i++) {
        int k = list[i].role == BZ_ROLE_H ? 4 : list[i].role == BZ_ROLE_C ? 5 : i == n - 1 ? 0 : -1;
        made[i] = k < 0 ? bind_operand(b, &list[i]) : result(b, l, k, &list[i]);
    }
    bind_call(b, p, in, n_in, made + n_in, n - n_in - 1, made[n - 1]);
    give_results(b, l, p, list, n, made);
    return bind_done(b);
}

int bind_recurrent_training(binder *b, const bz_layer *l, const bz_problem *p)
{
    if (p->dtype != BZ_F32)
        return bind_no(b, "recurrent layers are trained in f32 alone");
    return bz_problem_has(p, BZ_TRAIT_GRADIENT) ? bind_backward(b, l, p) : bind_forward(b, l, p);
}
