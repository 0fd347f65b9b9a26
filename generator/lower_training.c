/* What training has besides: gradients of layers, losses, the optimizer's step. `dy`, the gradient of the forward layer's
 * result, is mostly operand 0, and result 0 the gradient of its operand x. */
#include "generator/lower.h"

#define SHAPE   "it has too many dimensions"
#define OPERAND "its operands are no tensors"

/* The shape of operand k, or of result k. */
static int shape_in(const lowering *l, int k, int64_t *extent)
{
    const bz_type *t = lower_in(l, k);
    return t ? lower_extent(t, 0, extent) : -1;
}

static int shape_out(const lowering *l, int k, int64_t *extent)
{
    bool there = k < l->layer->n_out && l->layer->out[k].kind == BZ_TYPE_TENSOR;
    return there ? lower_extent(&l->layer->out[k], 0, extent) : -1;
}

/* One step; which operand or result has the shape of x, and which that of w: results are counted from RESULT on. */
enum { RESULT = 16 };

static int conv_gradient(lowering *l, bz_problem_kind kind, int x_at, int w_at)
{
    const bz_type *x = x_at < RESULT ? lower_in(l, x_at) : &l->layer->out[x_at - RESULT];
    const bz_type *w = w_at < RESULT ? lower_in(l, w_at) : &l->layer->out[w_at - RESULT];
    if (!x || !w || x->kind != BZ_TYPE_TENSOR || w->kind != BZ_TYPE_TENSOR)
        return lower_no(l, OPERAND);
    return lower_conv_geometry(l, lower_step(l, kind), x, w);
}

static int lower_conv_one_grad(lowering *l)
{
    bool data = l->arg == BZ_PROBLEM_CONV_DATA;
    return conv_gradient(l, (bz_problem_kind)l->arg, data ? RESULT : 0, data ? 1 : RESULT) || lower_done(l) ? -1 : 0;
}

/* ONNX Runtime's dY, X, W: libraries do it in a call for each result that is wanted. */
static int lower_conv_grad(lowering *l)
{
    if (lower_has_result(l, 0) && conv_gradient(l, BZ_PROBLEM_CONV_DATA, 1, 2))
        return -1;
    if (lower_has_result(l, 1) && conv_gradient(l, BZ_PROBLEM_CONV_WEIGHTS, 1, 2))
        return -1;
    if (lower_has_result(l, 2)) {
        bz_extent dy, channels = {0};
        if (shape_in(l, 0, dy))
            return lower_no(l, SHAPE);
        for (int i = 0; dy[i]; i++)
            channels[i] = i == 1 ? dy[1] : 1;
        lower_sum(l, dy, channels);
    }
    return lower_done(l);
}

static int lower_pool_grad(lowering *l)
{
    const bz_type *dy = lower_in(l, 0);
    if (!dy || !l->layer->n_out || l->layer->out[0].kind != BZ_TYPE_TENSOR)
        return lower_no(l, OPERAND);
    return lower_pool_step(l, BZ_PROBLEM_POOL_GRAD, (bz_pool_mode)l->arg, &l->layer->out[0], dy) || lower_done(l) ? -1
                                                                                                                  : 0;
}

static bz_fn function_of(const lowering *l)
{
    bz_fn fn = lower_function_named(lower_word(l, "function", ""));
    bool rough = !strcmp(lower_word(l, "approximate", "none"), "tanh");
    return fn == BZ_FN_GELU_ERF && rough ? BZ_FN_GELU_TANH : fn;
}

static int lower_eltwise_grad(lowering *l)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_ACTIVATION_GRAD);
    bool clips;
    p->activation.fn = function_of(l);
    p->activation.of_y = !strcmp(lower_word(l, "uses", "x"), "y");
    if (!p->activation.fn)
        return lower_no(l, "no library has the derivative of its function");
    clips = p->activation.fn == BZ_FN_CLIP;
    if (clips)
        p->activation.alpha = -1e30f, p->activation.beta = 1e30f;
    lower_real(l, clips ? "min" : "alpha", &p->activation.alpha);
    lower_real(l, clips ? "max" : "beta", &p->activation.beta);
    if (!clips && bz_layer_param(l->layer, "alpha") && p->activation.alpha == 0)
        p->activation.fn = BZ_FN_RELU;
    p->activation.of_y = p->activation.of_y && bz_fn_inverts(p->activation.fn);
    if (shape_in(l, 1, p->activation.x))
        return lower_no(l, SHAPE);
    return lower_done(l);
}

static int lower_norm_grad(lowering *l)
{
    const bz_type *x = lower_in(l, 1);
    bz_problem *p = lower_step(l, (bz_problem_kind)l->arg);
    if (!x || lower_extent(x, 0, p->batchnorm.x))
        return lower_no(l, SHAPE);
    if (l->arg == BZ_PROBLEM_GROUPNORM_GRAD)
        p->groupnorm.group = lower_int(l, "num_groups", 1);
    else if (l->arg != BZ_PROBLEM_BATCHNORM_GRAD)
        p->layernorm.axis = lower_int(l, "axis", lower_int(l, "from", x->rank - 1));
    return lower_done(l);
}

static int lower_softmax_grad(lowering *l)
{
    bz_extent x = {0}, flat = {1, 1};
    int64_t from = lower_int(l, "from", -1);
    if (shape_in(l, 1, x))
        return lower_no(l, SHAPE);
    for (int i = 0; from >= 0 && x[i]; i++) /* everything from an axis on is one dimension */
        flat[i >= from] *= x[i];
    lower_softmax_of(l, (bz_problem_kind)l->arg, from >= 0 ? flat : x,
                     from >= 0 ? 1 : lower_int(l, "axis", bz_extent_rank(x) - 1));
    return lower_done(l);
}

static int lower_dropout_grad(lowering *l)
{
    bz_problem *p = lower_step(l, BZ_PROBLEM_DROPOUT_GRAD);
    return shape_in(l, 0, p->dropout.x) ? lower_no(l, SHAPE) : lower_done(l);
}

static bool read_reduction(const lowering *l, bz_problem *p)
{
    const char *how = lower_word(l, "reduction", "mean");
    p->softmax_loss.reduction = !strcmp(how, "sum") ? BZ_LOSS_SUM : !strcmp(how, "none") ? BZ_LOSS_NONE : BZ_LOSS_MEAN;
    return lower_in(l, p->kind == BZ_PROBLEM_SOFTMAX_LOSS ? 2 : 3) != NULL; /* labels have weights */
}

static int lower_loss(lowering *l)
{
    const bz_type *labels = lower_in(l, l->arg == BZ_PROBLEM_SOFTMAX_LOSS ? 1 : 2);
    bz_problem *p = lower_step(l, (bz_problem_kind)l->arg);
    if (read_reduction(l, p))
        return lower_no(l, "our loops have no weights of classes");
    if (!labels || shape_in(l, l->arg == BZ_PROBLEM_SOFTMAX_LOSS ? 0 : 1, p->softmax_loss.x))
        return lower_no(l, SHAPE);
    int64_t ignore = lower_int(l, "ignore", BZ_NO_CLASS);
    p->softmax_loss.ignore = ignore >= 0 && ignore < p->softmax_loss.x[1] ? ignore : BZ_NO_CLASS;
    p->dtype_w = labels->dtype;
    return lower_done(l);
}

/* Operands are a shape, indices and dy. */
static int lower_gather_grad(lowering *l)
{
    const bz_type *ids = lower_in(l, 1), *dy = lower_in(l, 2);
    bz_problem *p = lower_step(l, BZ_PROBLEM_SCATTER_ADD);
    if (!ids || !dy || shape_out(l, 0, p->gather.x) || !bz_dtype_is_float(dy->dtype))
        return lower_no(l, SHAPE);
    p->dtype = p->dtype_y = lower_dtype(dy->dtype, l->wanted);
    p->dtype_w = ids->dtype;
    p->gather.axis = lower_int(l, "axis", 0);
    p->gather.n = bz_type_elements(ids);
    return lower_done_or_copy(l);
}

/* Rate, step, tensors, their gradients, states: the elements of all tensors are one problem. */
static int lower_update(lowering *l)
{
    static const int GROUPS[] = {2, 3, 4, 4};
    int n = (l->layer->n_in - 2) / GROUPS[l->arg];
    const bz_type *w = lower_in(l, 2), *g = lower_in(l, 2 + n);
    const bz_attr *mode = bz_node_attr(l->layer->node, "mode");
    bz_problem *p = lower_step(l, BZ_PROBLEM_UPDATE);
    if (n < 1 || !w || !g)
        return lower_no(l, OPERAND);
    p->update.rule = (bz_rule)l->arg;
    p->dtype = p->dtype_y = w->dtype; /* in training of narrow types weights stay as wide as they are */
    p->dtype_w = g->dtype;
    for (int i = 0; i < n; i++) {
        const bz_type *t = lower_in(l, 2 + i);
        int64_t some = t ? bz_type_elements(t) : -1;
        if (some < 0 || t->dtype != w->dtype || __builtin_add_overflow(p->update.x[0], some, &p->update.x[0]))
            return lower_no(l, "its tensors have different types");
    }
    p->update.alpha = lower_float(l, "alpha", 0);
    p->update.beta = l->arg >= BZ_RULE_ADAM ? lower_float(l, "beta", 0) : 0;
    p->update.decay = lower_float(l, l->arg == BZ_RULE_ADAMW ? "weight_decay" : "norm_coefficient", 0);
    p->update.nesterov = mode && mode->kind == BZ_ATTR_STRING && !strcmp(mode->s.data, "nesterov");
    return lower_done(l);
}

typedef struct recurrent {
    int64_t seq, batch, input, hidden, gates, dirs;
} recurrent;

/* X [seq, batch, input], W [dirs, gates · hidden, input], R [dirs, gates · hidden, hidden] */
static int read_recurrent(const lowering *l, int kind, recurrent *r)
{
    const bz_type *x = lower_in(l, 0), *w = lower_in(l, 1), *h = lower_in(l, 2);
    r->gates = bz_rnn_gates((bz_problem_kind)kind);
    if (!x || !w || !h || x->rank != 3 || w->rank != 3 || h->rank != 3)
        return -1;
    r->seq = x->dims[0], r->batch = x->dims[1], r->input = x->dims[2];
    r->dirs = w->dims[0], r->hidden = h->dims[2];
    return r->seq < 1 || r->batch < 1 || r->hidden < 1 || r->dirs < 1 || r->dirs > 2 ||
                   w->dims[1] != r->gates * r->hidden
               ? -1
               : 0;
}

static int recurrent_call(lowering *l, const recurrent *r, bz_problem_kind kind)
{
    const char *direction = lower_word(l, "direction", "forward"), *f = lower_word(l, "activations", "tanh");
    bz_problem *p = lower_step(l, kind);
    p->rnn.seq = r->seq, p->rnn.batch = r->batch, p->rnn.input = r->input, p->rnn.hidden = r->hidden;
    p->rnn.dir = r->dirs == 2 ? BZ_BIDIRECTIONAL : !strcmp(direction, "reverse") ? BZ_REVERSE : BZ_FORWARD;
    p->rnn.lbr = r->gates == 3 && lower_int(l, "linear_before_reset", 0);
    p->rnn.training = kind == (bz_problem_kind)l->arg;
    if (r->gates == 1)
        p->rnn.fn = *f == 'r' ? BZ_FN_RELU : *f == 's' ? BZ_FN_SIGMOID : BZ_FN_TANH;
    return lower_done(l);
}

static int lower_recurrent_training(lowering *l)
{
    recurrent r;
    if (read_recurrent(l, l->arg, &r))
        return lower_no(l, SHAPE);
    return recurrent_call(l, &r, (bz_problem_kind)l->arg) || lower_by_steps(l, false) ? -1 : 0;
}

/* One call. Or, as frameworks do, step by step backwards through the recurrent weights, where an alternative has room for so many
 * calls; where no library has the call, else as one product, which no sequence of steps undercuts. Then all steps at once: gates,
 * the gradients of x, W, R and the bias. */
static int lower_recurrent_grad(lowering *l)
{
    enum { REST = 6 };
    recurrent r;
    if (read_recurrent(l, l->arg, &r))
        return lower_no(l, SHAPE);
    if (recurrent_call(l, &r,
                       r.gates == 4   ? BZ_PROBLEM_LSTM_GRAD
                       : r.gates == 3 ? BZ_PROBLEM_GRU_GRAD
                                      : BZ_PROBLEM_RNN_GRAD))
        return -1;
    bz_fn of_state = r.gates == 1 ? l->alternative[l->n - 1].problem[0].rnn.fn : BZ_FN_TANH;
    int64_t rows = r.seq * r.batch, width = r.gates * r.hidden,
            together = r.dirs * (r.seq + REST) > MAX_STEPS ? r.seq : 1;
    const bz_extent gates = {rows, width};
    for (int64_t d = 0; d < r.dirs; d++) {
        for (int64_t t = 0; t < r.seq; t += together)
            lower_matrices(l, (bz_extent){together * r.batch, width}, (bz_extent){width, r.hidden});
        if (r.gates > 1)
            lower_apply(l, BZ_PROBLEM_ACTIVATION_GRAD, BZ_FN_SIGMOID, (bz_extent){rows, width - r.hidden})
                ->activation.of_y = true;
        lower_apply(l, BZ_PROBLEM_ACTIVATION_GRAD, of_state,
                    (bz_extent){rows, l->arg == BZ_PROBLEM_LSTM ? 2 * r.hidden : r.hidden})
            ->activation.of_y = true;
        if (lower_has_result(l, 0))
            lower_matrices(l, gates, (bz_extent){width, r.input});
        if (lower_has_result(l, 1))
            lower_matrices(l, (bz_extent){width, rows}, (bz_extent){rows, r.input})->matmul.transa = true;
        if (lower_has_result(l, 2))
            lower_matrices(l, (bz_extent){width, rows}, (bz_extent){rows, r.hidden})->matmul.transa = true;
        if (lower_has_result(l, 3))
            lower_sum(l, gates, (bz_extent){1, width});
    }
    if (lower_done(l))
        return -1;
    l->alternative[l->n - 1].fallback = together > 1; /* faster than any program */
    return 0;
}

const lower_row lower_training_rows[] = {
    {"conv_data", lower_conv_one_grad, BZ_PROBLEM_CONV_DATA, .types = FLOATS},
    {"conv_weights", lower_conv_one_grad, BZ_PROBLEM_CONV_WEIGHTS, .types = FLOATS},
    {"conv_grad", lower_conv_grad, .types = FLOATS},
    {"maxpool_grad", lower_pool_grad, BZ_POOL_MAX, .types = FLOATS},
    {"averagepool_grad", lower_pool_grad, BZ_POOL_AVG, .types = FLOATS},
    {"eltwise_grad", lower_eltwise_grad, .types = FLOATS},
    {"batchnorm_grad", lower_norm_grad, BZ_PROBLEM_BATCHNORM_GRAD, .types = FLOATS},
    {"layernorm_grad", lower_norm_grad, BZ_PROBLEM_LAYERNORM_GRAD, .types = FLOATS},
    {"rmsnorm_grad", lower_norm_grad, BZ_PROBLEM_RMSNORM_GRAD, .ours = FLOATS},
    {"groupnorm_grad", lower_norm_grad, BZ_PROBLEM_GROUPNORM_GRAD, .ours = FLOATS},
    {"softmax_grad", lower_softmax_grad, BZ_PROBLEM_SOFTMAX_GRAD, .types = FLOATS},
    {"logsoftmax_grad", lower_softmax_grad, BZ_PROBLEM_LOGSOFTMAX_GRAD, .types = FLOATS},
    {"dropout_grad", lower_dropout_grad, .ours = FLOATS},
    {"crossentropy", lower_loss, BZ_PROBLEM_SOFTMAX_LOSS, .ours = FLOATS},
    {"crossentropy_grad", lower_loss, BZ_PROBLEM_SOFTMAX_LOSS_GRAD, .ours = FLOATS},
    {"gather_grad", lower_gather_grad, .types = LONGS | WORDS},
    {"lstm_training", lower_recurrent_training, BZ_PROBLEM_LSTM, .types = FLOATS},
    {"gru_training", lower_recurrent_training, BZ_PROBLEM_GRU, .types = FLOATS},
    {"rnn_training", lower_recurrent_training, BZ_PROBLEM_RNN, .types = FLOATS},
    {"lstm_grad", lower_recurrent_grad, BZ_PROBLEM_LSTM, .types = FLOATS},
    {"gru_grad", lower_recurrent_grad, BZ_PROBLEM_GRU, .types = FLOATS},
    {"rnn_grad", lower_recurrent_grad, BZ_PROBLEM_RNN, .types = FLOATS},
    {"sgd", lower_update, BZ_RULE_SGD, .ours = FLOATS},
    {"momentum", lower_update, BZ_RULE_MOMENTUM, .ours = FLOATS},
    {"adam", lower_update, BZ_RULE_ADAM, .ours = FLOATS},
    {"adamw", lower_update, BZ_RULE_ADAMW, .ours = FLOATS},
    {0},
};
