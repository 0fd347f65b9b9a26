/* Recurrent networks: one layer over a sequence. */
#include "runtime/kind.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

const char *const bz_rnn_directions[] = {"forward", "reverse", "bidirectional", NULL};

/* How large what a library keeps is, nobody knows but itself: this counts gates, and cells of an lstm. */
void bz_rnn_add_kept(const bz_problem *p, bz_operand_list *l, bool results)
{
    bool lstm = p->kind == BZ_PROBLEM_LSTM || p->kind == BZ_PROBLEM_LSTM_GRAD,
         gru = p->kind == BZ_PROBLEM_GRU || p->kind == BZ_PROBLEM_GRU_GRAD;
    int64_t h = p->rnn.hidden, state[3] = {p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1, p->rnn.batch, h};
    int first = l->n;
    bz_operand_add(l, BZ_ROLE_LAST, p->dtype, 3, state);
    if (lstm)
        bz_operand_add(l, BZ_ROLE_LAST_C, bz_parameter_dtype(p), 3, state);
    bz_operand_add(l, BZ_ROLE_KEPT, p->dtype, 4,
                   (int64_t[]){p->rnn.seq, state[0], p->rnn.batch,
                               (lstm  ? 5
                                : gru ? 3
                                      : 1) *
                                   h});
    for (int i = first; i < l->n; i++)
        l->item[i].result = results;
}

static void rnn_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    int64_t dirs = p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1, h = p->rnn.hidden;
    int64_t gates = p->kind == BZ_PROBLEM_LSTM ? 4 : p->kind == BZ_PROBLEM_GRU ? 3 : 1;
    int64_t biases = gates + (p->kind == BZ_PROBLEM_GRU && p->rnn.lbr);
    bz_operand_add(l, BZ_ROLE_X, p->dtype, 3, (int64_t[]){p->rnn.seq, p->rnn.batch, p->rnn.input});
    bz_operand_add(l, BZ_ROLE_W, p->dtype_w, 4, (int64_t[]){dirs, p->rnn.input, gates, h});
    bz_operand_add(l, BZ_ROLE_R, p->dtype_w, 4, (int64_t[]){dirs, h, gates, h});
    if (p->kind == BZ_PROBLEM_LSTM && p->rnn.peephole)
        bz_operand_add(l, BZ_ROLE_PEEPHOLE, bz_parameter_dtype(p), 3, (int64_t[]){dirs, 3, h});
    bz_operand_add(l, BZ_ROLE_BIAS, bz_parameter_dtype(p), 3, (int64_t[]){dirs, biases, h});
    bz_operand_add(l, BZ_ROLE_H, p->dtype, 3, (int64_t[]){dirs, p->rnn.batch, h});
    if (p->kind == BZ_PROBLEM_LSTM)
        bz_operand_add(l, BZ_ROLE_C, bz_parameter_dtype(p), 3, (int64_t[]){dirs, p->rnn.batch, h});
    if (p->rnn.training)
        bz_rnn_add_kept(p, l, true);
    y[0] = p->rnn.seq;
    y[1] = p->rnn.batch;
    y[2] = dirs * h;
}

int bz_rnn_check(const bz_problem *p, bz_error *err)
{
    if (p->rnn.seq < 1 || p->rnn.batch < 1 || p->rnn.input < 1 || p->rnn.hidden < 1)
        return bz_problem_refuse(p, "seq, batch, input and hidden are at least 1", err);
    if ((double)p->rnn.seq * (double)p->rnn.batch * (double)(p->rnn.input + p->rnn.hidden) > 1e12 ||
        (double)(p->rnn.input + p->rnn.hidden) * (double)p->rnn.hidden > 1e11)
        return bz_problem_refuse(p, "the tensors are too large", err);
    if ((p->kind == BZ_PROBLEM_RNN || p->kind == BZ_PROBLEM_RNN_GRAD) && p->rnn.fn != BZ_FN_TANH &&
        p->rnn.fn != BZ_FN_RELU && p->rnn.fn != BZ_FN_SIGMOID)
        return bz_problem_refuse(p, "fn is tanh, relu or sigmoid", err);
    if (p->rnn.training && (bz_dtype_is_int(p->dtype) || p->rnn.peephole))
        return bz_problem_refuse(p, "nobody trains integers here, nor peepholes", err);
    return 0;
}

static double rnn_flops(const bz_problem *p, const bz_operand *list, double y)
{
    return 2 * (double)(p->rnn.seq * p->rnn.batch) * (double)(list[1].count + list[2].count) + 5 * y;
}

/* States lie between -1 and 1; gates sum up to about 1. */
bz_rnn_scale bz_problem_rnn_scale(const bz_problem *p)
{
    if (!bz_dtype_is_int(p->dtype))
        return (bz_rnn_scale){1, 0, 1};
    return (bz_rnn_scale){127, p->dtype == BZ_U8 ? 128 : 0, 20 * sqrt((double)(p->rnn.input + p->rnn.hidden))};
}

static double gate(const bz_reference *r, const float *w, const double *x, const float *xf, int64_t n, int gate,
                   int gates, int64_t j)
{
    int64_t h = r->problem->rnn.hidden;
    bz_rnn_scale s = bz_problem_rnn_scale(r->problem);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (x ? x[i] : ((double)xf[i] - s.shift) / s.data) * w[(i * gates + gate) * h + j];
    return sum / s.weights;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* One step: state (and cell) of the row from x. `scratch` has room for 2 · hidden. */
static void rnn_step(const bz_reference *r, int d, const float *x, double *state, double *cell, double *scratch)
{
    const bz_problem *p = r->problem;
    int gates = p->kind == BZ_PROBLEM_LSTM ? 4 : p->kind == BZ_PROBLEM_GRU ? 3 : 1;
    bool lbr = p->kind == BZ_PROBLEM_GRU && p->rnn.lbr;
    int64_t h = p->rnn.hidden, in = p->rnn.input;
    const float *w = bz_reference_values(r, BZ_ROLE_W) + d * in * gates * h,
                *u = bz_reference_values(r, BZ_ROLE_R) + d * h * gates * h;
    const float *bias = bz_reference_values(r, BZ_ROLE_BIAS) + d * (gates + lbr) * h;
    const float *peephole = bz_reference_values(r, BZ_ROLE_PEEPHOLE);
    double *next = scratch, *reset = scratch + h;
#define SUM(g, j)   (gate(r, w, NULL, x, in, g, gates, j) + bias[(g)*h + (j)])
#define OF(g, j, s) gate(r, u, s, NULL, h, g, gates, j)
#define SEEN(k, j)  (peephole ? peephole[(d * 3 + (k)) * h + (j)] * cell[j] : 0)
    for (int64_t j = 0; p->kind == BZ_PROBLEM_GRU && !lbr && j < h; j++)
        reset[j] = state[j] * sigmoid(SUM(1, j) + OF(1, j, state));
    for (int64_t j = 0; j < h; j++) {
        if (p->kind == BZ_PROBLEM_LSTM) {
            cell[j] = sigmoid(SUM(1, j) + OF(1, j, state) + SEEN(1, j)) * cell[j] +
                      sigmoid(SUM(0, j) + OF(0, j, state) + SEEN(0, j)) * tanh(SUM(2, j) + OF(2, j, state));
            next[j] = sigmoid(SUM(3, j) + OF(3, j, state) + SEEN(2, j)) * tanh(cell[j]);
        } else if (p->kind == BZ_PROBLEM_GRU) {
            double keep = sigmoid(SUM(0, j) + OF(0, j, state));
            double fresh =
                lbr ? sigmoid(SUM(1, j) + OF(1, j, state)) * (OF(2, j, state) + bias[3 * h + j]) : OF(2, j, reset);
            next[j] = keep * state[j] + (1 - keep) * tanh(SUM(2, j) + fresh);
        } else {
            next[j] = bz_fn_value(p->rnn.fn, SUM(0, j) + OF(0, j, state), 0, 0);
        }
    }
#undef SUM
#undef OF
#undef SEEN
    memcpy(state, next, (size_t)h * sizeof *state);
}

/* All states of a row of the batch in one direction, and behind them its last cell. */
static void compute_row(bz_reference *r, int64_t row, int d)
{
    const bz_problem *p = r->problem;
    int64_t h = p->rnn.hidden, seq = p->rnn.seq, batch = p->rnn.batch;
    bz_rnn_scale s = bz_problem_rnn_scale(p);
    double *memory = bz_alloc((size_t)h, 4 * sizeof *memory);
    const float *first = bz_reference_values(r, BZ_ROLE_H) + (d * batch + row) * h;
    const float *cell = p->kind == BZ_PROBLEM_LSTM ? bz_reference_values(r, BZ_ROLE_C) + (d * batch + row) * h : NULL;
    for (int64_t j = 0; j < h; j++) {
        memory[j] = (first[j] - s.shift) / s.data;
        memory[h + j] = cell ? (double)cell[j] : 0;
    }
    free(r->sequence);
    r->sequence = bz_alloc((size_t)((seq + 1) * h), sizeof *r->sequence);
    bool backwards = p->rnn.dir == BZ_REVERSE || d == 1;
    for (int64_t i = 0; i < seq; i++) {
        int64_t t = backwards ? seq - 1 - i : i;
        rnn_step(r, d, bz_reference_values(r, BZ_ROLE_X) + (t * batch + row) * p->rnn.input, memory, memory + h,
                 memory + 2 * h);
        for (int64_t j = 0; j < h; j++) {
            double v = memory[j] * s.data + s.shift;
            if (bz_dtype_is_int(p->dtype))
                memory[j] = ((v = (double)bz_round_to(p->dtype, v)) - s.shift) / s.data;
            r->sequence[t * h + j] = bz_dtype_is_int(p->dtype_y) ? v : memory[j];
        }
    }
    memcpy(r->sequence + seq * h, memory + h, (size_t)h * sizeof *memory);
    free(memory);
    r->row = row;
    r->direction = d;
}

static bz_expected rnn_at(bz_reference *r)
{
    const int64_t *y = r->y;
    const bz_problem *p = r->problem;
    int64_t h = p->rnn.hidden, seq = p->rnn.seq;
    bz_role role = bz_reference_role(r);
    int d = (int)(role == BZ_ROLE_Y ? y[2] / h : y[0]);
    if (role == BZ_ROLE_KEPT)
        return (bz_expected){0};
    if (!r->sequence || r->row != y[1] || r->direction != d)
        compute_row(r, y[1], d);
    bool backwards = p->rnn.dir == BZ_REVERSE || d == 1;
    int64_t at = role == BZ_ROLE_Y ? y[0] : role == BZ_ROLE_LAST_C ? seq : backwards ? 0 : seq - 1;
    double v = r->sequence[at * h + y[2] % h];
    return (bz_expected){v, fmax(1, fabs(v))};
}

/* clang-format off */
#define RNN_ROW(text, own) { \
    .name = (text), \
    .field = "rnn", \
    .traits = BZ_TRAIT_RECURRENT, \
    .member = {BZ_REQUIRED("seq", INT, rnn.seq), BZ_REQUIRED("batch", INT, rnn.batch), \
               BZ_REQUIRED("input", INT, rnn.input), BZ_REQUIRED("hidden", INT, rnn.hidden), \
               BZ_NAMED("dir", rnn.dir, bz_rnn_directions, "BZ_"), own, \
               BZ_OPTIONAL("training", FLAG, rnn.training, 0)}, \
    .operands = rnn_operands, \
    .check = bz_rnn_check, \
    .flops = rnn_flops, \
    .at = rnn_at, \
}
/* clang-format on */

const bz_kind bz_kind_lstm = RNN_ROW("lstm", BZ_OPTIONAL("peephole", FLAG, rnn.peephole, 0));
const bz_kind bz_kind_gru = RNN_ROW("gru", BZ_USUAL("lbr", FLAG, rnn.lbr, 0));
const bz_kind bz_kind_rnn = RNN_ROW("rnn", BZ_USUAL("fn", FN, rnn.fn, BZ_FN_TANH));
