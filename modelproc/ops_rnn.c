/* Recurrent layers: X [steps, batch, in], W [directions, gates·hidden, in], R [directions, gates·hidden, hidden]. */
#include "modelproc/infer.h"
#include "modelproc/rule.h"

/* What the file may leave out; keys name the activations always. Lists are for one direction. */
static const char *const ACTIVATIONS[] = {[1] = "tanh", [3] = "sigmoid,tanh", [4] = "sigmoid,tanh,tanh"};

static void note_activations(call *c, int directions)
{
    const char *usual = ACTIVATIONS[c->op->arg];
    const bz_attr *a = bz_node_attr(c->node, "activations");
    BZ_SCOPED(bz_buf) text = {0};
    if (a && a->kind == BZ_ATTR_STRINGS && a->n <= 8) {
        for (int i = 0; i < a->n; i++) {
            if (i)
                bz_buf_putc(&text, ',');
            for (const char *s = a->strings[i].data; *s && text.len < 200; s++)
                bz_buf_putc(&text, *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s);
        }
    } else {
        bz_buf_puts(&text, usual);
        if (directions == 2)
            bz_buf_printf(&text, ",%s", usual);
    }
    param_text(c, "activations", bz_buf_text(&text));
}

static int direction_count(call *c, const char *direction, int *directions)
{
    *directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    if (*directions == 1 && strcmp(direction, "forward") != 0 && strcmp(direction, "reverse") != 0)
        return call_fail(c, "direction '%s' is none of forward, reverse, bidirectional", direction);
    return 0;
}

static int check_weights(call *c, const bz_type *x, const bz_type *w, const bz_type *r, int directions, bz_dim hidden)
{
    bz_dim rows = dim_mul(c, c->op->arg, hidden);
    if (!dims_fit(w->dims[0], directions) || !dims_fit(r->dims[0], directions))
        return call_fail(c, "its weights are for %lld directions, not %d", (long long)w->dims[0], directions);
    if (!dims_fit(w->dims[1], rows) || !dims_fit(r->dims[1], rows) || !dims_fit(r->dims[2], hidden))
        return call_fail(c, "its weights do not fit a hidden size of %lld", (long long)hidden);
    if (!dims_fit(w->dims[2], x->dims[2]))
        return call_fail(c, "its weights are for inputs of size %lld, not %lld", (long long)w->dims[2],
                         (long long)x->dims[2]);
    return 0;
}

/* Sequences shorter than the input are less work. Lengths that are known and not the whole of it belong to the key, and
 * so does that they are not known. Returns the steps of all sequences together. */
static int64_t note_lengths(call *c, bz_dim steps, bz_dim batch)
{
    int64_t n = 0, all = 0;
    bool whole = true;
    if (!in_type(c, 4))
        return count_mul(steps, batch);
    const int64_t *length = in_ints(c, 4, &n);
    for (int64_t i = 0; i < n && length; i++) {
        if (length[i] < 0 || length[i] > steps)
            length = NULL;
        else
            all = count_add(all, length[i]), whole &= length[i] == steps;
    }
    if (length && n == batch && whole)
        return all;
    if (length && n == batch && n <= 64) {
        param_ints(c, "lengths", length, (int)n);
        return all;
    }
    param_text(c, "lengths", "data");
    return count_mul(steps, batch);
}

/* Per step and direction both products; element-wise work is, for each gate, the sum of both with
 * the bias and the activation, then the update of the state. The first result is often left out. */
static void add_cost(call *c, int64_t steps, const bz_type *w, const bz_type *r)
{
    static const int UPDATE[] = {[1] = 0, [3] = 4, [4] = 5};
    int64_t rows = count_mul(steps, count_mul(w->dims[0], r->dims[2]));
    c->macs = count_mul(rows, count_mul(c->op->arg, count_add(w->dims[2], r->dims[2])));
    c->flops = count_mul(rows, 3 * c->op->arg + UPDATE[c->op->arg]);
}

/* LSTMTraining: all states, the last, the last cell, all cells, all gates. GRUTraining, RNNTraining: all states, the last, all gates. */
static void training_results(call *c, const bz_type *x, bz_dim directions, bz_dim hidden)
{
    bz_dim gates = dim_mul(c, c->op->arg, hidden), steps = x->dims[0], batch = x->dims[1];
    if (c->op->arg == 4) {
        set_out(c, 3, x->dtype, 4, (bz_dim[]){steps, directions, batch, hidden});
        set_out(c, 4, x->dtype, 4, (bz_dim[]){steps, directions, batch, gates});
    } else {
        set_out(c, 2, x->dtype, 4, (bz_dim[]){steps, directions, batch, gates});
    }
}

/* An input whose first dimension is its steps and not its batch is given other steps by --batch, if layers before this one hide what it is. */
static void check_steps(const call *c, bz_dim steps, bz_dim batch)
{
    const infer *inf = c->inf;
    const int64_t asked = inf->options->batch;
    if (!asked || inf->batch_axis || inf->written_batch == asked || inf->constant[c->node->in[0]] || steps != asked ||
        bz_is_symbol(batch) || batch % asked == 0)
        return;
    const char *input = inf->model->values[inf->batch_input].name;
    infer_warn_sizes(c->inf,
                     bz_arena_printf(c->inf->arena,
                                     "--batch %lld sets the steps of the sequence in node '%s' (%s), and its "
                                     "batch stays %lld: the first dimension of input '%s' is no batch; "
                                     "--dim %s:AXIS=SIZE sets another one",
                                     (long long)asked, c->node->name, c->node->op, (long long)batch, input, input));
}

static int rnn_shape(call *c)
{
    const bz_type *x = need(c, 0, 3), *w = need(c, 1, 3), *r = need(c, 2, 3);
    if (same_dtype(c, x, w) || same_dtype(c, x, r))
        return -1;
    const char *direction = attr_text(c, "direction", "forward");
    int directions;
    if (direction_count(c, direction, &directions))
        return -1;
    bz_dim hidden = attr_int(c, "hidden_size", 0);
    hidden = hidden > 0 ? hidden : r->dims[2];
    if (check_weights(c, x, w, r, directions, hidden))
        return -1;
    bool batch_first = attr_int(c, "layout", 0) != 0;
    bz_dim steps = x->dims[batch_first], batch = x->dims[!batch_first];
    check_steps(c, steps, batch);
    if (batch_first) {
        set_out(c, 0, x->dtype, 4, (bz_dim[]){batch, steps, directions, hidden});
        for (int k = 1; k < 3; k++)
            set_out(c, k, x->dtype, 3, (bz_dim[]){batch, directions, hidden});
    } else {
        set_out(c, 0, x->dtype, 4, (bz_dim[]){steps, directions, batch, hidden});
        for (int k = 1; k < 3; k++)
            set_out(c, k, x->dtype, 3, (bz_dim[]){directions, batch, hidden});
    }
    if (*c->node->domain) /* what training keeps of every step: states, cells, gates */
        training_results(c, x, directions, hidden);
    param_int(c, "hidden", hidden);
    param_text(c, "direction", direction);
    param_text(c, "layout", batch_first ? "bti" : "tbi");
    note_activations(c, directions);
    if (c->op->arg == 3)
        param_int(c, "linear_before_reset", attr_int(c, "linear_before_reset", 0) != 0);
    if (c->op->arg == 4)
        param_int(c, "input_forget", attr_int(c, "input_forget", 0) != 0);
    if (bz_node_attr(c->node, "clip"))
        param_real(c, "clip", attr_float(c, "clip", 0));
    add_cost(c, note_lengths(c, steps, batch), w, r);
    return 0;
}

static const op ROWS[] = {
    {"LSTM", NULL, "lstm", BZ_COMPUTE, rnn_shape, .flags = OP_KEEPS, .labels = "x w r b - - - p", .arg = 4},
    {"GRU", NULL, "gru", BZ_COMPUTE, rnn_shape, .flags = OP_KEEPS, .labels = "x w r b", .arg = 3},
    {"LSTMTraining", "com.microsoft", "lstm_training", BZ_COMPUTE, rnn_shape, .flags = OP_KEEPS,
     .labels = "x w r b - - - p", .arg = 4},
    {"GRUTraining", "com.microsoft", "gru_training", BZ_COMPUTE, rnn_shape, .flags = OP_KEEPS, .labels = "x w r b",
     .arg = 3},
    {"RNN", NULL, "rnn", BZ_COMPUTE, rnn_shape, .flags = OP_KEEPS, .labels = "x w r b", .arg = 1},
    {"RNNTraining", "benanza.training", "rnn_training", BZ_COMPUTE, rnn_shape, .flags = OP_KEEPS, .labels = "x w r b",
     .arg = 1},
};
const op_table ops_rnn = OP_TABLE(ROWS);
