/* Random numbers, and Dropout, which at inference is no work at all. */
#include "modelproc/rule.h"

static void note_distribution(call *c)
{
    static const char *const NAMES[] = {"mean", "scale", "low", "high"};
    bool uniform = c->op->arg != 0;
    for (int i = 0; i < 2; i++)
        param_real(c, NAMES[i + 2 * uniform], attr_float(c, NAMES[i + 2 * uniform], i));
}

static int random_shape(call *c)
{
    int n;
    const int64_t *shape = attr_ints(c, "shape", &n);
    bz_dtype t;
    if (attr_dtype(c, "dtype", BZ_F32, &t))
        return -1;
    if (n > BZ_MAX_RANK)
        return call_fail(c, "a shape of %d dimensions", n);
    for (int i = 0; i < n; i++)
        if (shape[i] < 0)
            return call_fail(c, "dimension %d is %lld", i, (long long)shape[i]);
    bz_dim total;
    if (dim_product(c, shape, 0, n, &total))
        return -1;
    set_out(c, 0, t, n, shape);
    note_distribution(c);
    return 0;
}

static int random_like_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dtype t;
    if (attr_dtype(c, "dtype", x->dtype, &t))
        return -1;
    set_out(c, 0, t, x->rank, x->dims);
    if (c->op->arg >= 0)
        note_distribution(c);
    return 0;
}

static int multinomial_shape(call *c)
{
    const bz_type *x = need(c, 0, 2);
    bz_dtype t;
    int64_t samples = attr_int(c, "sample_size", 1);
    if (attr_dtype(c, "dtype", BZ_I32, &t))
        return -1;
    if (samples < 0)
        return call_fail(c, "sample_size is %lld", (long long)samples);
    return set_out(c, 0, t, 2, (bz_dim[]){x->dims[0], samples});
}

static int dropout_shape(call *c);

/* A Dropout that really drops. */
static const op DROPPING = {"Dropout",     NULL,       "dropout",          BZ_MEMORY,
                            dropout_shape, .flops = 2, .flags = OP_RANDOM, .labels = "x"};

/* Opsets 1 and 6 train unless is_test says otherwise; 7 and 10 never do; from 12 on an operand decides. */
static bool dropout_trains(call *c)
{
    int64_t training;
    if (c->node->opset < 7 && !c->op->domain)
        return attr_int(c, "is_test", 0) == 0;
    return in_number(c, 2, &training) && training;
}

static int dropout_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    set_type(c, 0, x);
    set_out(c, 1, c->node->opset < 10 ? x->dtype : BZ_BOOL, x->rank, x->dims);
    if (dropout_trains(c))
        c->op = &DROPPING;
    else
        c->out_data[0] = in_data(c, 0);
    return 0;
}

static const op ROWS[] = {
    {"RandomNormal", NULL, "randomnormal", BZ_COMPUTE, random_shape, .flops = 8, .flags = OP_RANDOM, .labels = "> y"},
    {"RandomUniform", NULL, "randomuniform", BZ_COMPUTE, random_shape, .flops = 4, .flags = OP_RANDOM, .labels = "> y",
     .arg = 1},
    {"RandomNormalLike", NULL, "randomnormal", BZ_COMPUTE, random_like_shape, .flops = 8, .flags = OP_RANDOM,
     .labels = "> y"},
    {"RandomUniformLike", NULL, "randomuniform", BZ_COMPUTE, random_like_shape, .flops = 4, .flags = OP_RANDOM,
     .labels = "> y", .arg = 1},
    {"Bernoulli", NULL, "bernoulli", BZ_COMPUTE, random_like_shape, .flops = 5, .flags = OP_RANDOM, .labels = "x",
     .arg = -1},
    {"Multinomial", NULL, "multinomial", BZ_COMPUTE, multinomial_shape, .flops = 4, .flags = OP_RANDOM,
     .labels = "x > y"},
    {"Dropout", NULL, "dropout", BZ_VIEW, dropout_shape, .flags = OP_KEEPS, .labels = "x"},
};
const op_table ops_random = OP_TABLE(ROWS);
