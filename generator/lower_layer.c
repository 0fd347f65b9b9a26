/* Pooling, normalization, reduction; recurrent layers. */
#include "generator/lower.h"

/* ceil_mode slides once more than the padding allows: the problem gets the padding that this takes. Returns whether it does. */
static bool pad_to(const bz_type *y, bz_problem *p, int n)
{
    bool beyond = false;
    for (int i = 0; i < n; i++) {
        int64_t reach = (y->dims[2 + i] - 1) * p->pool.stride[i] + (p->pool.kernel[i] - 1) * p->pool.dilation[i] + 1;
        int64_t missing = reach - (p->pool.x[2 + i] + p->pool.pad[i] + p->pool.pad[n + i]);
        if (missing > 0)
            p->pool.pad[n + i] += missing;
        beyond |= missing > 0;
    }
    return beyond;
}

static bool has_padding(const bz_problem *p, int n)
{
    bool any = false;
    for (int i = 0; i < 2 * n; i++)
        any |= p->pool.pad[i] > 0;
    return any;
}

int lower_pool_step(lowering *l, bz_problem_kind kind, bz_pool_mode mode, const bz_type *x, const bz_type *y)
{
    int n = x->rank - 2;
    bz_problem *p = lower_step(l, kind);
    p->pool.mode = mode == BZ_POOL_AVG && lower_int(l, "count_pad", 0) ? BZ_POOL_AVG_PAD : mode;
    if (n < 1 || n > BZ_PROBLEM_SPATIAL || y->rank != x->rank || lower_extent(x, 0, p->pool.x) ||
        lower_ints(l, "kernel", p->pool.kernel, n) || lower_ints(l, "stride", p->pool.stride, n) ||
        lower_ints(l, "pad", p->pool.pad, 2 * n) || lower_ints(l, "dilation", p->pool.dilation, n))
        return lower_no(l, "its geometry has no benchmark");
    bool padded = has_padding(p, n), beyond = pad_to(y, p, n);
    if (beyond && p->pool.mode == BZ_POOL_AVG_PAD) { /* a mean counts the file's padding, but not what lies beyond it */
        if (padded)
            return lower_no(l, "its mean counts padding, but not what lies beyond it: libraries count both or none");
        p->pool.mode = BZ_POOL_AVG;
    }
    p->pool.training = kind == BZ_PROBLEM_POOL && mode == BZ_POOL_MAX && lower_has_result(l, 1);
    return 0;
}

static int lower_pool(lowering *l)
{
    const bz_type *x = lower_in(l, 0), *y = lower_channels(l, &l->layer->out[0]);
    if (!x || x->rank < 3)
        return lower_no(l, "its geometry has no benchmark");
    return lower_pool_step(l, BZ_PROBLEM_POOL, (bz_pool_mode)l->arg, lower_channels(l, x), y) || lower_done(l) ? -1 : 0;
}

/* A window over everything, or a reduction. */
static int lower_global_pool(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    int n = x ? x->rank - 2 : 0;
    if (n < 1)
        return lower_no(l, "its geometry has no benchmark");
    x = lower_channels(l, x);
    if (n <= BZ_PROBLEM_SPATIAL) {
        bz_problem *p = lower_step(l, BZ_PROBLEM_POOL);
        p->pool.mode = (bz_pool_mode)l->arg;
        if (lower_extent(x, 0, p->pool.x))
            return lower_no(l, "its geometry has no benchmark");
        memcpy(p->pool.kernel, p->pool.x + 2, (size_t)n * sizeof(int64_t));
        if (lower_done(l))
            return -1;
    }
    bz_problem *p = lower_step(l, BZ_PROBLEM_REDUCE);
    p->reduce.fn = l->arg == BZ_POOL_MAX ? BZ_FN_MAX : BZ_FN_MEAN;
    if (lower_extent(x, 0, p->reduce.x))
        return lower_no(l, "it has too many dimensions");
    for (int i = 0; i < n + 2; i++)
        p->reduce.y[i] = i < 2 ? p->reduce.x[i] : 1;
    return lower_done(l);
}

/* A norm over all of space; libraries reduce to the first and the second. */
static int lower_global_lppool(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    int64_t power = lower_int(l, "p", 2);
    bz_problem *p = lower_step(l, BZ_PROBLEM_REDUCE);
    p->reduce.fn = power == 1 ? BZ_FN_L1 : BZ_FN_L2;
    if (!x || (power != 1 && power != 2) || lower_extent(x, 0, p->reduce.x))
        return lower_no(l, "no library reduces to this norm");
    for (int i = 0; p->reduce.x[i]; i++)
        p->reduce.y[i] = i < 2 ? p->reduce.x[i] : 1;
    return lower_done(l);
}

static int lower_batchnorm(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bz_problem *p = lower_step(l, BZ_PROBLEM_BATCHNORM);
    p->batchnorm.training = lower_int(l, "training", 0);
    return !x || lower_extent(x, 0, p->batchnorm.x) ? lower_no(l, "it has too many dimensions") : lower_done(l);
}

static int lower_layernorm(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bz_problem *p = lower_step(l, (bz_problem_kind)l->arg);
    if (!x || lower_extent(x, 0, p->layernorm.x))
        return lower_no(l, "it has too many dimensions");
    p->layernorm.axis = lower_int(l, "axis", x->rank - 1);
    p->layernorm.training = lower_has_result(l, 1);
    return l->arg == BZ_PROBLEM_RMSNORM ? lower_done_or_copy(l) : lower_done(l);
}

static int lower_lpnorm(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bz_problem *p = lower_step(l, BZ_PROBLEM_LPNORM);
    if (!x || lower_extent(x, 0, p->lpnorm.x) || lower_int(l, "axis", x->rank - 1) != x->rank - 1)
        return lower_no(l, "our loops normalize the last dimension only");
    p->lpnorm.p = lower_int(l, "p", 2);
    return lower_done(l);
}

/* One that trains: at inference it is a view, and nothing comes here. Its time does not depend on how much it drops. */
static int lower_dropout(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bz_problem *p = lower_step(l, BZ_PROBLEM_DROPOUT);
    p->dropout.training = lower_has_result(l, 1);
    return !x || lower_extent(x, 0, p->dropout.x) ? lower_no(l, "it has too many dimensions") : lower_done_or_copy(l);
}

static int lower_skip_layernorm(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bz_problem *p = lower_step(l, BZ_PROBLEM_BINARY);
    p->binary.fn = BZ_FN_ADD;
    if (!x || lower_extent(x, 0, p->binary.a) || lower_extent(x, 0, p->binary.b))
        return lower_no(l, "it has too many dimensions");
    return lower_layernorm(l);
}

static int lower_groupnorm(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bool silu = strcmp(lower_word(l, "activation", "none"), "none") != 0;
    bz_problem *p = lower_step(l, BZ_PROBLEM_GROUPNORM);
    if (silu)
        return lower_no(l, "a framework applies its activation in one pass, libraries in a second call");
    if (!x || x->rank < 3 || lower_extent(lower_channels(l, x), 0, p->groupnorm.x))
        return lower_no(l, "its geometry has no benchmark");
    x = lower_channels(l, x);
    p->groupnorm.group = l->arg ? x->dims[1] : lower_int(l, "groups", 1);
    return lower_done(l);
}

/* Before operator set 13 everything from an axis on was one dimension: the shape says so. */
static int lower_softmax(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    int64_t from = lower_int(l, "from", -1), axis = lower_int(l, "axis", -1);
    if (!strcmp(lower_word(l, "over", "axis"), "rest"))
        from = axis;
    bz_extent shape, flat = {1, 1};
    if (!x || (from < 0 && axis < 0) || lower_extent(x, 0, shape))
        return lower_no(l, "it has too many dimensions");
    for (int i = 0; from >= 0 && i < x->rank; i++)
        flat[i >= from] *= x->dims[i];
    lower_softmax_of(l, (bz_problem_kind)l->arg, from >= 0 ? flat : shape, from >= 0 ? 1 : axis);
    return lower_done(l);
}

static int lower_lrn(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    bz_problem *p = lower_step(l, BZ_PROBLEM_LRN);
    if (!x || lower_extent(x, 0, p->lrn.x))
        return lower_no(l, "it has too many dimensions");
    p->lrn.size = lower_int(l, "size", 1);
    p->lrn.alpha = lower_float(l, "alpha", 1e-4f);
    p->lrn.beta = lower_float(l, "beta", 0.75f);
    p->lrn.bias = lower_float(l, "bias", 1);
    return lower_done(l);
}

static int lower_reduce(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    const bz_param *axes = bz_layer_param(l->layer, "axes");
    bz_problem *p = lower_step(l, BZ_PROBLEM_REDUCE);
    if (!x || !axes || lower_extent(x, 0, p->reduce.x))
        return lower_no(l, "its axes are not known");
    p->reduce.fn = l->arg == BZ_FN_LOG ? BZ_FN_SUM : (bz_fn)l->arg;
    if (l->arg == BZ_FN_LOG)
        lower_post(p, BZ_FN_LOG, 0, 0);
    memcpy(p->reduce.y, p->reduce.x, sizeof p->reduce.y);
    for (int i = 0; i < axes->n; i++)
        if (axes->v[i] >= 0 && axes->v[i] < x->rank)
            p->reduce.y[axes->v[i]] = 1;
    if (!memcmp(p->reduce.x, p->reduce.y, sizeof p->reduce.x))
        return lower_no(l, "it reduces dimensions of 1: there is nothing to sum up");
    return lower_done(l);
}

/* No sequence of the batch is shorter: what takes that many steps is a lower bound. 0 where lengths are not known. */
static int64_t least_length(const lowering *l, int64_t steps)
{
    const bz_param *p = bz_layer_param(l->layer, "lengths");
    if (!p)
        return steps;
    for (int i = 0; i < p->n; i++)
        steps = p->v[i] < steps ? p->v[i] : steps;
    return p->n ? steps : 0;
}

/* The operand of all steps at once; then states, step by step; gates of all steps, which is no more than step by step. An LSTM's
 * cell is f c + i g, and its state o tanh(c); a GRU's is (1 - z) n + z h behind r h. */
int lower_by_steps(lowering *l, bool constant)
{
    enum { REST = 7 };
    const bz_problem *call = l->alternative[l->n - 1].problem;
    int64_t rows = call->rnn.seq * call->rnn.batch, input = call->rnn.input, hidden = call->rnn.hidden,
            gates = bz_rnn_gates(call->kind), width = gates * hidden, dirs = call->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1;
    if (dirs * (call->rnn.seq + REST) > MAX_STEPS)
        return 0;
    for (int64_t d = 0; d < dirs; d++) {
        lower_matrices(l, (bz_extent){rows, input}, (bz_extent){input, width})->matmul.constant = constant;
        for (int64_t t = 0; t < call->rnn.seq; t++)
            lower_matrices(l, (bz_extent){call->rnn.batch, hidden}, (bz_extent){hidden, width})->matmul.constant =
                constant;
        if (gates > 1)
            lower_apply(l, BZ_PROBLEM_ACTIVATION, BZ_FN_SIGMOID, (bz_extent){rows, (gates == 4 ? 3 : 2) * hidden});
        lower_apply(l, BZ_PROBLEM_ACTIVATION, gates == 1 ? call->rnn.fn : BZ_FN_TANH,
                    (bz_extent){rows, (gates == 4 ? 2 : 1) * hidden});
        for (int k = 0; k < 4 && gates > 1; k++)
            lower_combine(l, k < 3 ? BZ_FN_MUL : BZ_FN_ADD, (bz_extent){rows, hidden}, (bz_extent){rows, hidden});
    }
    return lower_done(l);
}

static int lower_rnn(lowering *l)
{
    const bz_type *x = lower_in(l, 0);
    const char *direction = lower_word(l, "direction", "forward"), *f = lower_word(l, "activations", "");
    const char *usual = l->arg == BZ_PROBLEM_LSTM   ? "sigmoid,tanh,tanh"
                        : l->arg == BZ_PROBLEM_GRU  ? "sigmoid,tanh"
                        : !strncmp(f, "relu", 4)    ? "relu"
                        : !strncmp(f, "sigmoid", 7) ? "sigmoid"
                                                    : "tanh";
    size_t n = strlen(usual);
    bool both = !strcmp(direction, "bidirectional");
    if (!x || x->rank != 3 || lower_int(l, "input_forget", 0) || bz_layer_param(l->layer, "clip"))
        return lower_no(l, "no library clips its gates or couples them");
    if (strncmp(f, usual, n) != 0 || (both ? f[n] != ',' || strcmp(f + n + 1, usual) != 0 : f[n] != 0))
        return lower_no(l, "its activations have no benchmark");
    bool batch_first = !strcmp(lower_word(l, "layout", "tbi"), "bti");
    int64_t steps = least_length(l, x->dims[batch_first]);
    if (steps < 1)
        return lower_no(l, "how long its sequences are depends on data: whole ones would be no lower bound");
    bz_problem *p = lower_step(l, (bz_problem_kind)l->arg);
    p->rnn.seq = steps;
    p->rnn.batch = x->dims[!batch_first];
    p->rnn.input = x->dims[2];
    p->rnn.hidden = lower_int(l, "hidden", 0);
    p->rnn.dir = both ? BZ_BIDIRECTIONAL : !strcmp(direction, "reverse") ? BZ_REVERSE : BZ_FORWARD;
    p->rnn.peephole = l->arg == BZ_PROBLEM_LSTM && lower_in(l, 7);
    if (l->quantize)
        p->dtype_w = BZ_I8, p->dtype_y = l->dtype;
    p->rnn.lbr = l->arg == BZ_PROBLEM_GRU && lower_int(l, "linear_before_reset", 0);
    if (l->arg == BZ_PROBLEM_RNN)
        p->rnn.fn = *f == 'r' ? BZ_FN_RELU : *f == 's' ? BZ_FN_SIGMOID : BZ_FN_TANH;
    bool plain = !l->quantize && !p->rnn.peephole;
    return lower_done(l) || (plain && lower_by_steps(l, true)) ? -1 : 0;
}

const lower_row lower_layer_rows[] = {
    {"maxpool", lower_pool, BZ_POOL_MAX, .types = FLOATS | BYTES},
    {"avgpool", lower_pool, BZ_POOL_AVG, .types = FLOATS | BYTES},
    {"globalmaxpool", lower_global_pool, BZ_POOL_MAX, .types = FLOATS | BYTES},
    {"globalavgpool", lower_global_pool, BZ_POOL_AVG, .types = FLOATS | BYTES},
    {"globallppool", lower_global_lppool, .types = FLOATS},
    {"batchnorm", lower_batchnorm, .types = FLOATS},
    {"layernorm", lower_layernorm, .arg = BZ_PROBLEM_LAYERNORM, .types = FLOATS},
    {"rmsnorm", lower_layernorm, .arg = BZ_PROBLEM_RMSNORM, .types = FLOATS},
    {"lpnorm", lower_lpnorm, .ours = FLOATS},
    {"skiplayernorm", lower_skip_layernorm, .arg = BZ_PROBLEM_LAYERNORM, .types = FLOATS},
    {"dropout", lower_dropout, .types = FLOATS},
    {"groupnorm", lower_groupnorm, .types = FLOATS},
    {"instancenorm", lower_groupnorm, 1, .types = FLOATS},
    {"softmax", lower_softmax, BZ_PROBLEM_SOFTMAX, .types = FLOATS | BYTES},
    {"qsoftmax", lower_softmax, BZ_PROBLEM_SOFTMAX, .types = BYTES},
    {"logsoftmax", lower_softmax, BZ_PROBLEM_LOGSOFTMAX, .types = FLOATS},
    {"lrn", lower_lrn, .types = FLOATS},
    {"reducesum", lower_reduce, BZ_FN_SUM, .types = FLOATS},
    {"reducemean", lower_reduce, BZ_FN_MEAN, .types = FLOATS},
    {"qreducemean", lower_reduce, BZ_FN_MEAN, .types = BYTES},
    {"reducemax", lower_reduce, BZ_FN_MAX, .types = FLOATS | BYTES | WORDS},
    {"reducemin", lower_reduce, BZ_FN_MIN, .types = FLOATS | BYTES | WORDS},
    {"reduceprod", lower_reduce, BZ_FN_PROD, .types = FLOATS},
    {"reducel1", lower_reduce, BZ_FN_L1, .types = FLOATS},
    {"reducel2", lower_reduce, BZ_FN_L2, .types = FLOATS},
    {"reducesumsquare", lower_reduce, BZ_FN_SUMSQUARE, .types = FLOATS},
    {"reducelogsum", lower_reduce, BZ_FN_LOG, .types = FLOATS},
    {"lstm", lower_rnn, BZ_PROBLEM_LSTM, .types = FLOATS | BYTES},
    {"gru", lower_rnn, BZ_PROBLEM_GRU, .types = FLOATS | BYTES},
    {"rnn", lower_rnn, BZ_PROBLEM_RNN, .types = FLOATS},
    {"skiprmsnorm", .why = ONE_PASS},
    {"biassoftmax", .why = ONE_PASS},
    {"mvn", .why = ONE_PASS},
    {"skipgroupnorm", .why = ONE_PASS},
    {"dynamicquantize", .why = ONE_PASS},
    {"reducelogsumexp", .why = ONE_PASS},
    {"embedlayernorm", .why = ONE_PASS},
    {"trees", .why = "no library call walks its trees, and its bytes tell nothing of that", .no_copy = true},
    {0},
};
