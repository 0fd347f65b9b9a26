/* Kinds of problems: one table says of each which members it has. Printing, reading, checking and
 * writing as C all walk that table. */
#include "runtime/problem_table.h"

#include <math.h>

static const char *const POOL_NAMES[] = {"max", "avg", "avg_pad", NULL};
static const char *const POOL_C[] = {"BZ_POOL_MAX", "BZ_POOL_AVG", "BZ_POOL_AVG_PAD"};
static const char *const RESAMPLE_NAMES[] = {"nearest", "linear", NULL};
static const char *const RESAMPLE_C[] = {"BZ_RESAMPLE_NEAREST", "BZ_RESAMPLE_LINEAR"};
static const char *const COORD_NAMES[] = {"half_pixel", "asymmetric", "align_corners", NULL};
static const char *const COORD_C[] = {"BZ_COORD_HALF_PIXEL", "BZ_COORD_ASYMMETRIC", "BZ_COORD_ALIGN_CORNERS"};
static const char *const LAYOUT_NAMES[] = {"plain", "nhwc", "blocked", NULL};
static const char *const LAYOUT_C[] = {"BZ_LAYOUT_PLAIN", "BZ_LAYOUT_NHWC", "BZ_LAYOUT_BLOCKED"};
static const char *const DIRECTION_NAMES[] = {"forward", "reverse", "bidirectional", NULL};
static const char *const DIRECTION_C[] = {"BZ_FORWARD", "BZ_REVERSE", "BZ_BIDIRECTIONAL"};

/* A table is read by its columns. */
/* clang-format off */
#define AT(field)                offsetof(bz_problem, field)
#define REQUIRED(n, f, field)    {.name = (n), .form = BZ_FORM_##f, .at = AT(field), .usual = NAN}
#define USUAL(n, f, field, v)    {.name = (n), .form = BZ_FORM_##f, .at = AT(field), .usual = (v)}
#define OPTIONAL(n, f, field, v) {.name = (n), .form = BZ_FORM_##f, .at = AT(field), .usual = (v), .optional = true}
#define NAMED(n, field, prefix) \
    {.name = (n), .form = BZ_FORM_NAME, .at = AT(field), .names = prefix##_NAMES, .c_name = prefix##_C}
#define RNN_MEMBERS \
    REQUIRED("seq", INT, rnn.seq), REQUIRED("batch", INT, rnn.batch), REQUIRED("input", INT, rnn.input), \
    REQUIRED("hidden", INT, rnn.hidden), NAMED("dir", rnn.dir, DIRECTION)

const bz_kind bz_kinds[BZ_PROBLEM_N_KINDS] = {
    [BZ_PROBLEM_CONV] = {"conv", "BZ_PROBLEM_CONV", "conv", true, {
        REQUIRED("x", EXTENT, conv.x), REQUIRED("w", EXTENT, conv.w), USUAL("stride", SPATIAL, conv.stride, 1),
        USUAL("pad", PADS, conv.pad, 0), USUAL("dilation", SPATIAL, conv.dilation, 1),
        USUAL("group", INT, conv.group, 1)}},
    [BZ_PROBLEM_DECONV] = {"deconv", "BZ_PROBLEM_DECONV", "deconv", true, {
        REQUIRED("x", EXTENT, deconv.x), REQUIRED("w", EXTENT, deconv.w),
        USUAL("stride", SPATIAL, deconv.stride, 1), USUAL("pad", PADS, deconv.pad, 0),
        USUAL("dilation", SPATIAL, deconv.dilation, 1), USUAL("outpad", SPATIAL, deconv.outpad, 0),
        USUAL("group", INT, deconv.group, 1)}},
    [BZ_PROBLEM_GEMM] = {"gemm", "BZ_PROBLEM_GEMM", "gemm", true, {
        REQUIRED("m", INT, gemm.m), REQUIRED("n", INT, gemm.n), REQUIRED("k", INT, gemm.k),
        USUAL("batch", INT, gemm.batch, 1), USUAL("transa", FLAG, gemm.transa, 0),
        USUAL("transb", FLAG, gemm.transb, 0)}},
    [BZ_PROBLEM_MATMUL] = {"matmul", "BZ_PROBLEM_MATMUL", "matmul", true, {
        REQUIRED("a", EXTENT, matmul.a), REQUIRED("b", EXTENT, matmul.b),
        USUAL("constant", FLAG, matmul.constant, 0)}},
    [BZ_PROBLEM_GEMV] = {"gemv", "BZ_PROBLEM_GEMV", "gemv", true, {
        REQUIRED("m", INT, gemv.m), REQUIRED("k", INT, gemv.k), USUAL("trans", FLAG, gemv.trans, 0)}},
    [BZ_PROBLEM_POOL] = {"pool", "BZ_PROBLEM_POOL", "pool", false, {
        NAMED("mode", pool.mode, POOL), REQUIRED("x", EXTENT, pool.x),
        REQUIRED("kernel", SPATIAL, pool.kernel), USUAL("stride", SPATIAL, pool.stride, 1),
        USUAL("pad", PADS, pool.pad, 0), USUAL("dilation", SPATIAL, pool.dilation, 1)}},
    [BZ_PROBLEM_BATCHNORM] = {"batchnorm", "BZ_PROBLEM_BATCHNORM", "batchnorm", true, {
        REQUIRED("x", EXTENT, batchnorm.x)}},
    [BZ_PROBLEM_LAYERNORM] = {"layernorm", "BZ_PROBLEM_LAYERNORM", "layernorm", false, {
        REQUIRED("x", EXTENT, layernorm.x), REQUIRED("axis", INT, layernorm.axis)}},
    [BZ_PROBLEM_RMSNORM] = {"rmsnorm", "BZ_PROBLEM_RMSNORM", "rmsnorm", false, {
        REQUIRED("x", EXTENT, rmsnorm.x), REQUIRED("axis", INT, rmsnorm.axis)}},
    [BZ_PROBLEM_GROUPNORM] = {"groupnorm", "BZ_PROBLEM_GROUPNORM", "groupnorm", false, {
        REQUIRED("x", EXTENT, groupnorm.x), REQUIRED("group", INT, groupnorm.group)}},
    [BZ_PROBLEM_SOFTMAX] = {"softmax", "BZ_PROBLEM_SOFTMAX", "softmax", false, {
        REQUIRED("x", EXTENT, softmax.x), REQUIRED("axis", INT, softmax.axis)}},
    [BZ_PROBLEM_LOGSOFTMAX] = {"logsoftmax", "BZ_PROBLEM_LOGSOFTMAX", "logsoftmax", false, {
        REQUIRED("x", EXTENT, logsoftmax.x), REQUIRED("axis", INT, logsoftmax.axis)}},
    [BZ_PROBLEM_LRN] = {"lrn", "BZ_PROBLEM_LRN", "lrn", false, {
        REQUIRED("x", EXTENT, lrn.x), REQUIRED("size", INT, lrn.size), USUAL("alpha", REAL, lrn.alpha, 1e-4),
        USUAL("beta", REAL, lrn.beta, 0.75), USUAL("bias", REAL, lrn.bias, 1)}},
    [BZ_PROBLEM_ACTIVATION] = {"activation", "BZ_PROBLEM_ACTIVATION", "activation", false, {
        REQUIRED("fn", FN, activation.fn), REQUIRED("x", EXTENT, activation.x),
        OPTIONAL("alpha", REAL, activation.alpha, 0), OPTIONAL("beta", REAL, activation.beta, 0)}},
    [BZ_PROBLEM_PRELU] = {"prelu", "BZ_PROBLEM_PRELU", "prelu", false, {
        REQUIRED("x", EXTENT, prelu.x)}},
    [BZ_PROBLEM_DROPOUT] = {"dropout", "BZ_PROBLEM_DROPOUT", "dropout", false, {
        REQUIRED("x", EXTENT, dropout.x)}},
    [BZ_PROBLEM_BINARY] = {"binary", "BZ_PROBLEM_BINARY", "binary", true, {
        REQUIRED("fn", FN, binary.fn), REQUIRED("a", EXTENT, binary.a), REQUIRED("b", EXTENT, binary.b)}},
    [BZ_PROBLEM_REDUCE] = {"reduce", "BZ_PROBLEM_REDUCE", "reduce", true, {
        REQUIRED("fn", FN, reduce.fn), REQUIRED("x", EXTENT, reduce.x), REQUIRED("y", EXTENT, reduce.y)}},
    [BZ_PROBLEM_RESAMPLE] = {"resample", "BZ_PROBLEM_RESAMPLE", "resample", false, {
        NAMED("mode", resample.mode, RESAMPLE), NAMED("coord", resample.coord, COORD),
        REQUIRED("x", EXTENT, resample.x), REQUIRED("y", EXTENT, resample.y)}},
    [BZ_PROBLEM_CONCAT] = {"concat", "BZ_PROBLEM_CONCAT", "concat", false, {
        REQUIRED("y", EXTENT, concat.y), REQUIRED("axis", INT, concat.axis),
        REQUIRED("sizes", SIZES, concat.sizes)}},
    [BZ_PROBLEM_TRANSPOSE] = {"transpose", "BZ_PROBLEM_TRANSPOSE", "transpose", false, {
        REQUIRED("x", EXTENT, transpose.x), REQUIRED("perm", PERM, transpose.perm)}},
    [BZ_PROBLEM_PAD] = {"pad", "BZ_PROBLEM_PAD", "pad", false, {
        REQUIRED("x", EXTENT, pad.x), USUAL("pad", PADS, pad.pad, 0)}},
    [BZ_PROBLEM_SLICE] = {"slice", "BZ_PROBLEM_SLICE", "slice", false, {
        REQUIRED("x", EXTENT, slice.x), REQUIRED("y", EXTENT, slice.y), REQUIRED("start", PERM, slice.start),
        REQUIRED("step", PERM, slice.step)}},
    [BZ_PROBLEM_EXPAND] = {"expand", "BZ_PROBLEM_EXPAND", "expand", false, {
        REQUIRED("x", EXTENT, expand.x), REQUIRED("y", EXTENT, expand.y)}},
    [BZ_PROBLEM_GATHER] = {"gather", "BZ_PROBLEM_GATHER", "gather", false, {
        REQUIRED("x", EXTENT, gather.x), REQUIRED("n", INT, gather.n), REQUIRED("axis", INT, gather.axis)}},
    [BZ_PROBLEM_WHERE] = {"where", "BZ_PROBLEM_WHERE", "where", false, {
        REQUIRED("c", EXTENT, where.c), REQUIRED("a", EXTENT, where.a), REQUIRED("b", EXTENT, where.b)}},
    [BZ_PROBLEM_REORDER] = {"reorder", "BZ_PROBLEM_REORDER", "reorder", false, {
        REQUIRED("x", EXTENT, reorder.x), NAMED("from", reorder.from, LAYOUT), NAMED("to", reorder.to, LAYOUT),
        OPTIONAL("scale", REAL, reorder.scale, 1)}},
    [BZ_PROBLEM_COPY] = {"copy", "BZ_PROBLEM_COPY", "copy", false, {
        REQUIRED("read", INT, copy.read), REQUIRED("write", INT, copy.write)}},
    [BZ_PROBLEM_ATTENTION] = {"attention", "BZ_PROBLEM_ATTENTION", "attention", false, {
        REQUIRED("q", EXTENT, attention.q), REQUIRED("k", EXTENT, attention.k), REQUIRED("v", EXTENT, attention.v),
        OPTIONAL("mask", EXTENT, attention.mask, 0), OPTIONAL("causal", FLAG, attention.causal, 0)}},
    [BZ_PROBLEM_LSTM] = {"lstm", "BZ_PROBLEM_LSTM", "rnn", false, {
        RNN_MEMBERS, OPTIONAL("peephole", FLAG, rnn.peephole, 0)}},
    [BZ_PROBLEM_GRU] = {"gru", "BZ_PROBLEM_GRU", "rnn", false, {
        RNN_MEMBERS, USUAL("lbr", FLAG, rnn.lbr, 0)}},
    [BZ_PROBLEM_RNN] = {"rnn", "BZ_PROBLEM_RNN", "rnn", false, {
        RNN_MEMBERS, USUAL("fn", FN, rnn.fn, BZ_FN_TANH)}},
};
/* clang-format on */

const char *bz_problem_kind_name(bz_problem_kind kind)
{
    return kind > BZ_PROBLEM_NONE && kind < BZ_PROBLEM_N_KINDS ? bz_kinds[kind].name : "?";
}

int bz_extent_rank(const int64_t *extent)
{
    int n = 0;
    while (n < BZ_PROBLEM_RANK && extent[n])
        n++;
    return n;
}

int64_t bz_extent_count(const int64_t *extent)
{
    int64_t n = 1;
    for (int i = 0; i < BZ_PROBLEM_RANK && extent[i]; i++)
        n *= extent[i];
    return n;
}

const int64_t *bz_member_numbers(const bz_problem *p, const bz_member *m)
{
    return (const int64_t *)(const void *)((const char *)p + m->at);
}

int bz_problem_rank(const bz_problem *p)
{
    for (const bz_member *m = bz_kinds[p->kind].member; m->form; m++)
        if (m->form == BZ_FORM_EXTENT)
            return bz_extent_rank(bz_member_numbers(p, m));
    return 0;
}

int bz_member_length(const bz_problem *p, const bz_member *m)
{
    switch (m->form) {
    case BZ_FORM_EXTENT:
        return BZ_PROBLEM_RANK;
    case BZ_FORM_SIZES:
        return BZ_PROBLEM_PARTS;
    case BZ_FORM_SPATIAL:
        return bz_problem_rank(p) - 2;
    case BZ_FORM_PADS:
        return 2 * (bz_problem_rank(p) - 2);
    case BZ_FORM_PERM:
        return bz_problem_rank(p);
    default:
        return 1;
    }
}

int bz_member_given(const bz_problem *p, const bz_member *m)
{
    int n = bz_member_length(p, m);
    if (m->form != BZ_FORM_EXTENT && m->form != BZ_FORM_SIZES)
        return n;
    const int64_t *v = bz_member_numbers(p, m);
    int i = 0;
    while (i < n && v[i])
        i++;
    return i;
}
