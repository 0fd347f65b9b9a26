/* Recurrent networks: one layer over a sequence. */
#include "runtime/kind.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

const char *const bz_rnn_directions[] = {"forward", "reverse", "bidirectional", NULL};

/* How large what a library keeps is, nobody knows but itself: this counts gates, and cells of an lstm. */
void bz_rnn_add_kept(const bz_problem *p, bz_operand_list *l, bool results)
{
    bool lstm = bz_problem_is_lstm(p), gru = bz_problem_is_gru(p);
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

int bz_rnn_gates(bz_problem_kind kind)
{
    return kind == BZ_PROBLEM_LSTM || kind == BZ_PROBLEM_LSTM_GRAD ? 4
           : kind == BZ_PROBLEM_GRU || kind == BZ_PROBLEM_GRU_GRAD ? 3
                                                                   : 1;
}

void bz_rnn_add_inputs(const bz_problem *p, bz_operand_list *l)
{
    int64_t dirs = p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1, h = p->rnn.hidden;
    int64_t gates = bz_rnn_gates(p->kind);
    int64_t biases = gates + (bz_problem_is_gru(p) && p->rnn.lbr);
    bz_operand_add(l, BZ_ROLE_X, p->dtype, 3, (int64_t[]){p->rnn.seq, p->rnn.batch, p->rnn.input});
    bz_operand_add(l, BZ_ROLE_W, p->dtype_w, 4, (int64_t[]){dirs, p->rnn.input, gates, h});
    bz_operand_add(l, BZ_ROLE_R, p->dtype_w, 4, (int64_t[]){dirs, h, gates, h});
    if (p->kind == BZ_PROBLEM_LSTM && p->rnn.peephole)
        bz_operand_add(l, BZ_ROLE_PEEPHOLE, bz_parameter_dtype(p), 3, (int64_t[]){dirs, 3, h});
    bz_operand_add(l, BZ_ROLE_BIAS, bz_parameter_dtype(p), 3, (int64_t[]){dirs, biases, h});
    bz_operand_add(l, BZ_ROLE_H, p->dtype, 3, (int64_t[]){dirs, p->rnn.batch, h});
    if (bz_problem_is_lstm(p))
        bz_operand_add(l, BZ_ROLE_C, bz_parameter_dtype(p), 3, (int64_t[]){dirs, p->rnn.batch, h});
}

static void rnn_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_rnn_add_inputs(p, l);
    if (p->rnn.training)
        bz_rnn_add_kept(p, l, true);
    y[0] = p->rnn.seq;
    y[1] = p->rnn.batch;
    y[2] = (p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1) * p->rnn.hidden;
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

/* Row by row, as the weights lie in memory: by columns the check of an LSTM of 512 took 13 s. */
static void add_product(const float *w, int64_t width, const double *x, int64_t n, int64_t from, int64_t to,
                        double *sum)
{
    for (int64_t i = 0; i < n; i++) {
        const float *row = w + i * width;
        for (int64_t j = from; j < to; j++)
            sum[j] += x[i] * (double)row[j];
    }
}

void bz_rnn_forward(const bz_reference *r, int64_t d, const double *x, bz_rnn_step s, double *state, double *cell)
{
    const bz_problem *p = r->problem;
    bool lstm = bz_problem_is_lstm(p), gru = bz_problem_is_gru(p), lbr = gru && p->rnn.lbr;
    int64_t h = p->rnn.hidden, in = p->rnn.input, width = bz_rnn_gates(p->kind) * h;
    const float *w = bz_reference_values(r, BZ_ROLE_W) + d * in * width,
                *u = bz_reference_values(r, BZ_ROLE_R) + d * h * width,
                *bias = bz_reference_values(r, BZ_ROLE_BIAS) + d * (width + lbr * h),
                *peephole = bz_reference_values(r, BZ_ROLE_PEEPHOLE);
    double weights = bz_problem_rnn_scale(p).weights, *g = s.by_w;
#define SUM(k)  (g[(k)*h + j] / weights + bias[(k)*h + j])
#define SEEN(k) (peephole ? peephole[(d * 3 + (k)) * h + j] * cell[j] : 0)
    memset(g, 0, (size_t)width * sizeof *g);
    memset(s.by_r, 0, (size_t)width * sizeof *s.by_r);
    memcpy(s.before, state, (size_t)h * sizeof *state);
    add_product(w, width, x, in, 0, width, g);
    add_product(u, width, state, h, 0, gru ? 2 * h : width, g);
    for (int64_t j = 0; j < h; j++) {
        s.reset[j] = lstm ? cell[j] : state[j];
        if (gru) {
            g[j] = bz_sigmoid(SUM(0)), g[h + j] = bz_sigmoid(SUM(1));
            s.reset[j] *= g[h + j];
        }
    }
    if (gru)
        add_product(u, width, lbr ? state : s.reset, h, 2 * h, width, lbr ? s.by_r : g);
    for (int64_t j = 0; j < h; j++) {
        if (lstm) {
            double take = g[j] = bz_sigmoid(SUM(0) + SEEN(0)), keep = g[h + j] = bz_sigmoid(SUM(1) + SEEN(1));
            cell[j] = keep * cell[j] + take * (g[2 * h + j] = tanh(SUM(2)));
            s.by_r[j] = tanh(cell[j]);
            state[j] = (g[3 * h + j] = bz_sigmoid(SUM(3) + SEEN(2))) * s.by_r[j];
        } else if (gru) {
            double of_state = lbr ? s.by_r[2 * h + j] = s.by_r[2 * h + j] / weights + bias[3 * h + j] : 0;
            double fresh = g[2 * h + j] = tanh(SUM(2) + g[h + j] * of_state);
            state[j] = g[j] * state[j] + (1 - g[j]) * fresh;
        } else {
            state[j] = g[j] = bz_fn_value(p->rnn.fn, SUM(0), 0, 0);
        }
    }
#undef SUM
#undef SEEN
}

/* Numbers of a step for each of the hidden ones, of four gates. */
enum { SCRATCH = 10 };

/* All states of a row of the batch in one direction, and behind them its last cell. */
static void compute_row(bz_reference *r, int64_t row, int d)
{
    const bz_problem *p = r->problem;
    int64_t h = p->rnn.hidden, seq = p->rnn.seq, batch = p->rnn.batch;
    bz_rnn_scale s = bz_problem_rnn_scale(p);
    double *memory = bz_alloc((size_t)h, (2 + SCRATCH) * sizeof *memory),
           *out = bz_alloc((size_t)((seq + 1) * h), sizeof *out), *x = bz_alloc((size_t)p->rnn.input, sizeof *x);
    const bz_rnn_step step = {memory + 2 * h, memory + 3 * h, memory + 4 * h, memory + 8 * h};
    const float *first = bz_reference_values(r, BZ_ROLE_H) + (d * batch + row) * h;
    const float *cell = p->kind == BZ_PROBLEM_LSTM ? bz_reference_values(r, BZ_ROLE_C) + (d * batch + row) * h : NULL;
    for (int64_t j = 0; j < h; j++) {
        memory[j] = (first[j] - s.shift) / s.data;
        memory[h + j] = cell ? (double)cell[j] : 0;
    }
    bool backwards = p->rnn.dir == BZ_REVERSE || d == 1;
    for (int64_t i = 0; i < seq; i++) {
        int64_t t = backwards ? seq - 1 - i : i;
        const float *read = bz_reference_values(r, BZ_ROLE_X) + (t * batch + row) * p->rnn.input;
        for (int64_t j = 0; j < p->rnn.input; j++)
            x[j] = (read[j] - s.shift) / s.data;
        bz_rnn_forward(r, d, x, step, memory, memory + h);
        for (int64_t j = 0; j < h; j++) {
            double v = memory[j] * s.data + s.shift;
            if (bz_dtype_is_int(p->dtype))
                memory[j] = ((v = (double)bz_round_to(p->dtype, v)) - s.shift) / s.data;
            out[t * h + j] = bz_dtype_is_int(p->dtype_y) ? v : memory[j];
        }
    }
    memcpy(out + seq * h, memory + h, (size_t)h * sizeof *memory);
    free(memory);
    free(x);
    free(r->sequence[d]);
    r->sequence[d] = out;
    r->row[d] = row;
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
    if (!r->sequence[d] || r->row[d] != y[1])
        compute_row(r, y[1], d);
    bool backwards = p->rnn.dir == BZ_REVERSE || d == 1;
    int64_t at = role == BZ_ROLE_Y ? y[0] : role == BZ_ROLE_LAST_C ? seq : backwards ? 0 : seq - 1;
    double v = r->sequence[d][at * h + y[2] % h];
    return (bz_expected){.value = v, .magnitude = fmax(1, fabs(v))};
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
