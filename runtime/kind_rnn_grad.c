/* Gradients of recurrent layers: back through time, by the definition. Rows of the batch do not touch each other, so those whose
 * result has a gradient of 0 are left out: bz_values_fill gives gradients to the first and the last row alone.
 *
 *   lstm  c' = f c + i g, y = o tanh(c')
 *   gru   y = u h + (1 - u) n, n = tanh(W x + R (r h)); with lbr n = tanh(W x + r (R h + b))
 *   rnn   y = fn(W x + R h)
 *
 * `by_w` and `by_r` are the gradients of what gates take of W x and of R h: they differ where r stands between. */
#include "runtime/kind.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

static void rnn_grad_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bool lstm = bz_problem_is_lstm(p);
    int64_t states[3] = {p->rnn.seq, p->rnn.batch, (p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1) * p->rnn.hidden};
    bz_rnn_add_inputs(p, l);
    int n = l->n;
    const bz_operand *h = &l->item[n - 1 - lstm], *c = &l->item[n - 1];
    bz_operand_add(l, BZ_ROLE_O, p->dtype, 3, states);
    bz_rnn_add_kept(p, l, false);
    bz_operand_add(l, BZ_ROLE_DY, p->dtype, 3, states);
    bz_operand_add(l, BZ_ROLE_DH, p->dtype, 3, h->dim);
    if (lstm)
        bz_operand_add(l, BZ_ROLE_DC, c->dtype, 3, c->dim);
    for (int i = 1; i < n; i++) { /* weights, bias, first states */
        const bz_operand *o = &l->item[i];
        bz_operand_add_result(l, o->role, o == h ? p->dtype_y : o->dtype, o->rank, o->dim, -1);
    }
    memcpy(y, l->item[0].dim, 3 * sizeof *y);
}

static int check_rnn_grad(const bz_problem *p, bz_error *err)
{
    if (bz_dtype_is_int(p->dtype))
        return bz_problem_refuse(p, "integers have no gradients", err);
    return bz_rnn_check(p, err);
}

/* Products with W and R once for what lies below, once for the weights' own gradients. */
static double rnn_grad_flops(const bz_problem *p, const bz_operand *list, double y)
{
    return 4 * (double)(p->rnn.seq * p->rnn.batch) * (double)(list[1].count + list[2].count) + 10 * y;
}

/* Records of steps [direction][active row][time], then the gradients of first states [direction][active row][2][hidden], then the
 * numbers of rows: -1 of those left out, and how many are not. All in r->sequence[0]. */
typedef struct back {
    const bz_problem *p;
    int64_t h, gates, record, rows;
    double *at, *first, *number;
} back;

static back back_of(const bz_reference *r, int64_t rows)
{
    const bz_problem *p = r->problem;
    int64_t h = p->rnn.hidden, gates = bz_rnn_gates(p->kind), record = (2 + 2 * gates) * h,
            dirs = p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1;
    double *at = r->sequence[0];
    double *first = at ? at + dirs * rows * p->rnn.seq * record : NULL;
    return (back){p, h, gates, record, rows, at, first, first ? first + dirs * rows * 2 * h : NULL};
}

static bz_rnn_step step_of(const back *b, int64_t d, int64_t row, int64_t t)
{
    double *at = b->at + ((d * b->rows + row) * b->p->rnn.seq + t) * b->record;
    return (bz_rnn_step){at, at + b->h, at + 2 * b->h, at + (2 + b->gates) * b->h};
}

/* sum[i] += the gates' gradients times row i of w */
static void add_turned(const back *b, const float *w, const double *gate, int64_t from, int64_t to, double *sum)
{
    for (int64_t i = 0; i < b->h; i++)
        for (int64_t j = from * b->h; j < to * b->h; j++)
            sum[i] += gate[j] * (double)w[i * b->gates * b->h + j];
}

/* From the gates' values and the state's gradient dh (and the cell's, dc) to the gates' gradients; dh and dc become those of the
 * step before. `room` is [hidden]. */
static void backward(const back *b, const float *u, bz_rnn_step s, double *dh, double *dc, double *room)
{
    const bz_problem *p = b->p;
    int64_t h = b->h;
    double *g = s.by_w;
    memset(room, 0, (size_t)h * sizeof *room);
    for (int64_t j = 0; j < h; j++) {
        if (bz_problem_is_lstm(p)) {
            double in = g[j], keep = g[h + j], new = g[2 * h + j], out = g[3 * h + j], of_cell = s.by_r[j];
            double d = dc[j] + dh[j] * out * (1 - of_cell * of_cell);
            g[j] = d * new *in *(1 - in);
            g[h + j] = d * s.reset[j] * keep * (1 - keep);
            g[2 * h + j] = d * in * (1 - new *new);
            g[3 * h + j] = dh[j] * of_cell * out * (1 - out);
            dc[j] = d * keep;
        } else if (bz_problem_is_gru(p)) {
            double keep = g[j], r = g[h + j], new = g[2 * h + j], d = dh[j] * (1 - keep) * (1 - new *new);
            g[j] = dh[j] * (s.before[j] - new) * keep * (1 - keep);
            g[2 * h + j] = d;
            g[h + j] =
                p->rnn.lbr ? d * s.by_r[2 * h + j] * r * (1 - r) : r; /* without lbr it takes R's product first */
            s.by_r[2 * h + j] = p->rnn.lbr ? d * r : d;
            room[j] = dh[j] * keep;
        } else {
            g[j] = dh[j] * bz_fn_slope_of_y(p->rnn.fn, g[j], 0, 0);
        }
    }
    if (bz_problem_is_gru(p) && !p->rnn.lbr) {
        memset(dh, 0, (size_t)h * sizeof *dh);
        add_turned(b, u, g, 2, 3, dh);
        for (int64_t j = 0; j < h; j++) {
            double r = g[h + j];
            room[j] += dh[j] * r;
            g[h + j] = dh[j] * s.before[j] * r * (1 - r);
        }
    }
    memcpy(s.by_r, g, (size_t)((bz_problem_is_gru(p) ? 2 : b->gates) * h) * sizeof *g);
    add_turned(b, u, s.by_r, 0, bz_problem_is_gru(p) && !p->rnn.lbr ? 2 : b->gates, room);
    memcpy(dh, room, (size_t)h * sizeof *dh);
}

static void compute_row(const bz_reference *r, const back *b, int64_t d, int64_t row, int64_t number)
{
    const bz_problem *p = b->p;
    int64_t h = b->h, seq = p->rnn.seq, batch = p->rnn.batch, dirs = p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1,
            at = (d * batch + row) * h;
    bool backwards = p->rnn.dir == BZ_REVERSE || d == 1;
    double *state = b->first + (d * b->rows + number) * 2 * h, *cell = state + h,
           *room = bz_alloc((size_t)h, sizeof *room), *x = bz_alloc((size_t)p->rnn.input, sizeof *x);
    const float *cells = bz_reference_values(r, BZ_ROLE_C), *dc = bz_reference_values(r, BZ_ROLE_DC);
    const float *dy = bz_reference_values(r, BZ_ROLE_DY), *u = bz_reference_values(r, BZ_ROLE_R) + d * h * b->gates * h;
    for (int64_t j = 0; j < h; j++) {
        state[j] = bz_reference_values(r, BZ_ROLE_H)[at + j];
        cell[j] = cells ? (double)cells[at + j] : 0;
    }
    for (int64_t i = 0; i < seq; i++) {
        int64_t t = backwards ? seq - 1 - i : i;
        for (int64_t j = 0; j < p->rnn.input; j++)
            x[j] = bz_reference_values(r, BZ_ROLE_X)[(t * batch + row) * p->rnn.input + j];
        bz_rnn_forward(r, d, x, step_of(b, d, number, t), state, cell);
    }
    for (int64_t j = 0; j < h; j++) {
        state[j] = bz_reference_values(r, BZ_ROLE_DH)[at + j];
        cell[j] = dc ? (double)dc[at + j] : 0;
    }
    for (int64_t i = seq; i--;) {
        int64_t t = backwards ? seq - 1 - i : i;
        for (int64_t j = 0; j < h; j++)
            state[j] += (double)dy[(t * batch + row) * dirs * h + d * h + j];
        backward(b, u, step_of(b, d, number, t), state, cell, room);
    }
    free(room);
    free(x);
}

static bool any(const float *v, int64_t n)
{
    bool found = false;
    for (int64_t i = 0; v && i < n; i++)
        found |= fabsf(v[i]) > 0;
    return found;
}

/* Whether a gradient of the result, or of a last state, is given for a row. */
static bool is_active(const bz_reference *r, int64_t row)
{
    const bz_problem *p = r->problem;
    int64_t h = p->rnn.hidden, dirs = p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1, width = dirs * h;
    const float *dy = bz_reference_values(r, BZ_ROLE_DY), *dh = bz_reference_values(r, BZ_ROLE_DH),
                *dc = bz_reference_values(r, BZ_ROLE_DC);
    bool active = false;
    for (int64_t t = 0; t < p->rnn.seq; t++)
        active |= any(dy + (t * p->rnn.batch + row) * width, width);
    for (int64_t d = 0; d < dirs; d++) {
        int64_t at = (d * p->rnn.batch + row) * h;
        active |= any(dh + at, h) || any(dc ? dc + at : NULL, h);
    }
    return active;
}

static void compute(bz_reference *r)
{
    const bz_problem *p = r->problem;
    int64_t rows = 0, dirs = p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1;
    for (int64_t row = 0; row < p->rnn.batch; row++)
        rows += is_active(r, row);
    back b = back_of(r, rows);
    int64_t n = dirs * rows * (p->rnn.seq * b.record + 2 * b.h) + p->rnn.batch;
    r->sequence[0] = bz_alloc((size_t)n, sizeof *r->sequence[0]);
    r->row[0] = rows;
    b = back_of(r, rows);
    for (int64_t row = 0, at = 0; row < p->rnn.batch; row++) {
        bool active = is_active(r, row);
        b.number[row] = active ? (double)at : -1;
        for (int64_t d = 0; active && d < dirs; d++)
            compute_row(r, &b, d, row, at);
        at += active;
    }
}

/* Of an element of W, R or the bias: over all steps of all rows. */
static bz_expected weight_at(const bz_reference *r, const back *b, bz_role role)
{
    const bz_problem *p = b->p;
    const int64_t *y = r->y;
    int64_t h = b->h, gate = y[role == BZ_ROLE_BIAS ? 1 : 2], j = y[role == BZ_ROLE_BIAS ? 2 : 3];
    bool behind = role == BZ_ROLE_BIAS && gate == b->gates; /* the gru's bias that r multiplies */
    bool reset = bz_problem_is_gru(p) && !p->rnn.lbr && gate == 2;
    const float *x = bz_reference_values(r, BZ_ROLE_X);
    bz_expected sum = {0};
    for (int64_t row = 0; row < p->rnn.batch; row++)
        for (int64_t t = 0; b->number[row] >= 0 && t < p->rnn.seq; t++) {
            bz_rnn_step s = step_of(b, y[0], (int64_t)b->number[row], t);
            double of = role == BZ_ROLE_R || behind ? s.by_r[(gate - behind) * h + j] : s.by_w[gate * h + j];
            double by = role == BZ_ROLE_W   ? (double)x[(t * p->rnn.batch + row) * p->rnn.input + y[1]]
                        : role == BZ_ROLE_R ? (reset ? s.reset : s.before)[y[1]]
                                            : 1;
            bz_expected_add(&sum, of * by);
        }
    return sum;
}

static bz_expected rnn_grad_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    const int64_t *y = r->y;
    bz_role role = bz_reference_role(r);
    bz_expected sum = {0};
    if (!r->sequence[0])
        compute(r);
    back b = back_of(r, r->row[0]);
    if (role == BZ_ROLE_W || role == BZ_ROLE_R || role == BZ_ROLE_BIAS)
        return weight_at(r, &b, role);
    int64_t row = (int64_t)b.number[y[1]], width = b.gates * b.h, dirs = p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1;
    if (row < 0)
        return sum;
    if (role == BZ_ROLE_H || role == BZ_ROLE_C) {
        double v = b.first[((y[0] * b.rows + row) * 2 + (role == BZ_ROLE_C)) * b.h + y[2]];
        return (bz_expected){.value = v, .magnitude = fmax(1, fabs(v))};
    }
    for (int64_t d = 0; d < dirs; d++) {
        bz_rnn_step s = step_of(&b, d, row, y[0]);
        const float *w = bz_reference_values(r, BZ_ROLE_W) + (d * p->rnn.input + y[2]) * width;
        for (int64_t j = 0; j < width; j++)
            bz_expected_add(&sum, s.by_w[j] * (double)w[j]);
    }
    return sum;
}

/* clang-format off */
#define RNN_GRAD(text, own) { \
    .name = (text), .field = "rnn", .traits = BZ_TRAIT_RECURRENT | BZ_TRAIT_GRADIENT, .operands = rnn_grad_operands, \
    .check = check_rnn_grad, .flops = rnn_grad_flops, .at = rnn_grad_at, \
    .member = {BZ_REQUIRED("seq", INT, rnn.seq), BZ_REQUIRED("batch", INT, rnn.batch), \
               BZ_REQUIRED("input", INT, rnn.input), BZ_REQUIRED("hidden", INT, rnn.hidden), \
               BZ_NAMED("dir", rnn.dir, bz_rnn_directions, "BZ_"), own}}

const bz_kind bz_kind_lstm_grad = RNN_GRAD("lstm_grad", {0});
const bz_kind bz_kind_gru_grad = RNN_GRAD("gru_grad", BZ_USUAL("lbr", FLAG, rnn.lbr, 0));
const bz_kind bz_kind_rnn_grad = RNN_GRAD("rnn_grad", BZ_USUAL("fn", FN, rnn.fn, BZ_FN_TANH));
/* clang-format on */
