/* Which tensors a problem touches, and what it costs: bytes and operations. */
#include "runtime/problem.h"

#include <math.h>
#include <string.h>

typedef struct operand_list {
    bz_operand *item;
    int n;
} operand_list;

static bz_operand *add(operand_list *l, bz_role role, bz_dtype dtype, int rank, const int64_t *dim)
{
    bz_operand *o = &l->item[l->n++];
    *o = (bz_operand){.role = role, .dtype = dtype, .rank = rank, .count = 1, .post = -1};
    for (int i = 0; i < rank; i++) {
        o->dim[i] = dim[i];
        if (__builtin_mul_overflow(o->count, dim[i], &o->count))
            o->count = INT64_MAX; /* bz_problem_normalize refuses it */
    }
    o->constant = role == BZ_ROLE_W || role == BZ_ROLE_R || role == BZ_ROLE_PEEPHOLE || role == BZ_ROLE_BIAS ||
                  role == BZ_ROLE_SCALE || role == BZ_ROLE_SHIFT || role == BZ_ROLE_MEAN || role == BZ_ROLE_VARIANCE ||
                  role == BZ_ROLE_SLOPE;
    return o;
}

static void add_extent(operand_list *l, bz_role role, bz_dtype dtype, const int64_t *dim)
{
    add(l, role, dtype, bz_extent_rank(dim), dim);
}

/* Parameters of normalizations stay in single precision where the data has less, as libraries want. */
static bz_dtype parameter_dtype(const bz_problem *p)
{
    return p->dtype == BZ_F64 ? BZ_F64 : BZ_F32;
}

static int64_t window(int64_t x, int64_t kernel, int64_t stride, int64_t before, int64_t after, int64_t dilation)
{
    return (x + before + after - ((kernel - 1) * dilation + 1)) / stride + 1;
}

static void conv_result(const bz_problem *p, int64_t *y)
{
    int n = bz_extent_rank(p->conv.x) - 2;
    bool transposed = p->kind == BZ_PROBLEM_DECONV;
    y[0] = p->conv.x[0];
    y[1] = transposed ? p->conv.w[1] * p->conv.group : p->conv.w[0];
    for (int i = 0; i < n; i++) {
        int64_t x = p->conv.x[2 + i], k = p->conv.w[2 + i], s = p->conv.stride[i], d = p->conv.dilation[i];
        int64_t begin = p->conv.pad[i], end = p->conv.pad[n + i];
        y[2 + i] = transposed ? (x - 1) * s + (k - 1) * d + 1 - begin - end + p->conv.outpad[i]
                              : window(x, k, s, begin, end, d);
    }
}

bool bz_problem_pads_evenly(const bz_problem *p)
{
    bool pool = p->kind == BZ_PROBLEM_POOL;
    const int64_t *x = pool ? p->pool.x : p->conv.x, *kernel = pool ? p->pool.kernel : p->conv.w + 2;
    const int64_t *stride = pool ? p->pool.stride : p->conv.stride, *pad = pool ? p->pool.pad : p->conv.pad;
    const int64_t *dilation = pool ? p->pool.dilation : p->conv.dilation;
    int n = bz_extent_rank(x) - 2;
    for (int i = 0; i < n; i++) {
        int64_t k = kernel[i], s = stride[i], d = dilation[i], begin = pad[i];
        if (x[2 + i] + 2 * begin < (k - 1) * d + 1 ||
            window(x[2 + i], k, s, begin, begin, d) != window(x[2 + i], k, s, begin, pad[n + i], d))
            return false;
    }
    return true;
}

static void broadcast(const int64_t *a, const int64_t *b, int64_t *y)
{
    for (int i = 0; a[i] && b[i]; i++)
        y[i] = a[i] == 1 ? b[i] : a[i];
}

static void add_norm(const bz_problem *p, operand_list *l, bz_role first, bz_role second, int64_t n)
{
    add(l, first, parameter_dtype(p), 1, &n);
    add(l, second, parameter_dtype(p), 1, &n);
}

static void add_rnn(const bz_problem *p, operand_list *l, int64_t *y)
{
    int64_t dirs = p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1, h = p->rnn.hidden;
    int64_t gates = p->kind == BZ_PROBLEM_LSTM ? 4 : p->kind == BZ_PROBLEM_GRU ? 3 : 1;
    int64_t biases = gates + (p->kind == BZ_PROBLEM_GRU && p->rnn.lbr);
    add(l, BZ_ROLE_X, p->dtype, 3, (int64_t[]){p->rnn.seq, p->rnn.batch, p->rnn.input});
    add(l, BZ_ROLE_W, p->dtype_w, 4, (int64_t[]){dirs, p->rnn.input, gates, h});
    add(l, BZ_ROLE_R, p->dtype_w, 4, (int64_t[]){dirs, h, gates, h});
    if (p->kind == BZ_PROBLEM_LSTM && p->rnn.peephole)
        add(l, BZ_ROLE_PEEPHOLE, parameter_dtype(p), 3, (int64_t[]){dirs, 3, h});
    add(l, BZ_ROLE_BIAS, parameter_dtype(p), 3, (int64_t[]){dirs, biases, h});
    add(l, BZ_ROLE_H, p->dtype, 3, (int64_t[]){dirs, p->rnn.batch, h});
    if (p->kind == BZ_PROBLEM_LSTM)
        add(l, BZ_ROLE_C, parameter_dtype(p), 3, (int64_t[]){dirs, p->rnn.batch, h});
    y[0] = p->rnn.seq;
    y[1] = p->rnn.batch;
    y[2] = dirs * h;
}

static void add_concat(const bz_problem *p, operand_list *l, int64_t *y)
{
    memcpy(y, p->concat.y, sizeof p->concat.y);
    for (int i = 0; p->concat.sizes[i]; i++) {
        bz_extent x;
        memcpy(x, y, sizeof x);
        x[p->concat.axis] = p->concat.sizes[i];
        add_extent(l, BZ_ROLE_X, p->dtype, x);
    }
}

/* Inputs and weights into the list, the result's shape into y. */
static void add_inputs(const bz_problem *p, operand_list *l, int64_t *y)
{
    const int64_t *x = p->batchnorm.x; /* where all kinds with an x first have it */
    switch (p->kind) {
    case BZ_PROBLEM_CONV:
    case BZ_PROBLEM_DECONV:
        add_extent(l, BZ_ROLE_X, p->dtype, p->conv.x);
        add_extent(l, BZ_ROLE_W, p->dtype_w, p->conv.w);
        conv_result(p, y);
        break;
    case BZ_PROBLEM_GEMM: {
        int64_t b = p->gemm.batch, m = p->gemm.m, n = p->gemm.n, k = p->gemm.k;
        add(l, BZ_ROLE_X, p->dtype, 3, p->gemm.transa ? (int64_t[]){b, k, m} : (int64_t[]){b, m, k});
        add(l, BZ_ROLE_B, p->dtype_w, 3, p->gemm.transb ? (int64_t[]){b, n, k} : (int64_t[]){b, k, n})->constant = true;
        memcpy(y, (int64_t[]){b, m, n}, 3 * sizeof *y);
        break;
    }
    case BZ_PROBLEM_MATMUL: {
        int n = bz_extent_rank(p->matmul.a);
        add_extent(l, BZ_ROLE_X, p->dtype, p->matmul.a);
        add_extent(l, BZ_ROLE_B, p->dtype_w, p->matmul.b);
        l->item[l->n - 1].constant = p->matmul.constant;
        broadcast(p->matmul.a, p->matmul.b, y);
        y[n - 2] = p->matmul.a[n - 2];
        y[n - 1] = p->matmul.b[n - 1];
        break;
    }
    case BZ_PROBLEM_GEMV:
        add(l, BZ_ROLE_X, p->dtype, 1, &p->gemv.k);
        add(l, BZ_ROLE_W, p->dtype_w, 2,
            p->gemv.trans ? (int64_t[]){p->gemv.k, p->gemv.m} : (int64_t[]){p->gemv.m, p->gemv.k});
        y[0] = p->gemv.m;
        break;
    case BZ_PROBLEM_POOL: {
        int n = bz_extent_rank(p->pool.x) - 2;
        add_extent(l, BZ_ROLE_X, p->dtype, p->pool.x);
        memcpy(y, p->pool.x, 2 * sizeof *y);
        for (int i = 0; i < n; i++)
            y[2 + i] = window(p->pool.x[2 + i], p->pool.kernel[i], p->pool.stride[i], p->pool.pad[i],
                              p->pool.pad[n + i], p->pool.dilation[i]);
        break;
    }
    case BZ_PROBLEM_BATCHNORM:
        add_extent(l, BZ_ROLE_X, p->dtype, x);
        add_norm(p, l, BZ_ROLE_MEAN, BZ_ROLE_VARIANCE, x[1]);
        add_norm(p, l, BZ_ROLE_SCALE, BZ_ROLE_SHIFT, x[1]);
        memcpy(y, x, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_LAYERNORM:
        add_extent(l, BZ_ROLE_X, p->dtype, x);
        add_norm(p, l, BZ_ROLE_SCALE, BZ_ROLE_SHIFT, bz_extent_count(x + p->layernorm.axis));
        memcpy(y, x, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_RMSNORM:
        add_extent(l, BZ_ROLE_X, p->dtype, x);
        add(l, BZ_ROLE_SCALE, parameter_dtype(p), 1, (int64_t[]){bz_extent_count(x + p->rmsnorm.axis)});
        memcpy(y, x, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_GROUPNORM:
        add_extent(l, BZ_ROLE_X, p->dtype, x);
        add_norm(p, l, BZ_ROLE_SCALE, BZ_ROLE_SHIFT, x[1]);
        memcpy(y, x, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_PRELU:
        add_extent(l, BZ_ROLE_X, p->dtype, x);
        add(l, BZ_ROLE_SLOPE, p->dtype_w, 1, &x[1]);
        memcpy(y, x, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_DROPOUT:
    case BZ_PROBLEM_SOFTMAX:
    case BZ_PROBLEM_LOGSOFTMAX:
    case BZ_PROBLEM_LRN:
        add_extent(l, BZ_ROLE_X, p->dtype, x);
        memcpy(y, x, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_ACTIVATION:
        add_extent(l, BZ_ROLE_X, p->dtype, p->activation.x);
        memcpy(y, p->activation.x, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_BINARY:
        add_extent(l, BZ_ROLE_X, p->dtype, p->binary.a);
        add_extent(l, BZ_ROLE_B, p->dtype_w, p->binary.b);
        broadcast(p->binary.a, p->binary.b, y);
        break;
    case BZ_PROBLEM_REDUCE:
        add_extent(l, BZ_ROLE_X, p->dtype, p->reduce.x);
        memcpy(y, p->reduce.y, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_RESAMPLE:
        add_extent(l, BZ_ROLE_X, p->dtype, p->resample.x);
        memcpy(y, p->resample.y, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_CONCAT:
        add_concat(p, l, y);
        break;
    case BZ_PROBLEM_TRANSPOSE:
        add_extent(l, BZ_ROLE_X, p->dtype, p->transpose.x);
        for (int i = 0; p->transpose.x[i]; i++)
            y[i] = p->transpose.x[p->transpose.perm[i]];
        break;
    case BZ_PROBLEM_PAD: {
        int n = bz_extent_rank(p->pad.x) - 2;
        add_extent(l, BZ_ROLE_X, p->dtype, p->pad.x);
        memcpy(y, p->pad.x, sizeof(bz_extent));
        for (int i = 0; i < n; i++)
            y[2 + i] += p->pad.pad[i] + p->pad.pad[n + i];
        break;
    }
    case BZ_PROBLEM_SLICE:
        add_extent(l, BZ_ROLE_X, p->dtype, p->slice.x);
        memcpy(y, p->slice.y, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_EXPAND:
        add_extent(l, BZ_ROLE_X, p->dtype, p->expand.x);
        memcpy(y, p->expand.y, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_GATHER:
        add_extent(l, BZ_ROLE_X, p->dtype, p->gather.x);
        add(l, BZ_ROLE_INDEX, p->dtype_w, 1, &p->gather.n);
        memcpy(y, p->gather.x, sizeof(bz_extent));
        y[p->gather.axis] = p->gather.n;
        break;
    case BZ_PROBLEM_WHERE: {
        bz_extent both = {0};
        add_extent(l, BZ_ROLE_MASK, BZ_BOOL, p->where.c);
        add_extent(l, BZ_ROLE_X, p->dtype, p->where.a);
        add_extent(l, BZ_ROLE_B, p->dtype_w, p->where.b);
        broadcast(p->where.a, p->where.b, both);
        broadcast(both, p->where.c, y);
        break;
    }
    case BZ_PROBLEM_REORDER:
        add_extent(l, BZ_ROLE_X, p->dtype, p->reorder.x);
        memcpy(y, p->reorder.x, sizeof(bz_extent));
        break;
    case BZ_PROBLEM_COPY:
        add(l, BZ_ROLE_X, BZ_U8, 1, &p->copy.read);
        y[0] = p->copy.write;
        break;
    case BZ_PROBLEM_ATTENTION:
        add_extent(l, BZ_ROLE_X, p->dtype, p->attention.q);
        add_extent(l, BZ_ROLE_B, p->dtype_w, p->attention.k);
        add_extent(l, BZ_ROLE_V, p->dtype_w, p->attention.v);
        if (p->attention.mask[0])
            add_extent(l, BZ_ROLE_MASK, bz_dtype_bits(p->dtype_y) < 16 ? BZ_F16 : p->dtype_y, p->attention.mask);
        memcpy(y, p->attention.q, 3 * sizeof *y);
        y[3] = p->attention.v[3];
        break;
    case BZ_PROBLEM_LSTM:
    case BZ_PROBLEM_GRU:
    case BZ_PROBLEM_RNN:
        add_rnn(p, l, y);
        break;
    default:
        break;
    }
}

/* The dimension of the result that a bias goes along. */
static int channel_axis(const bz_problem *p, int rank)
{
    return p->kind == BZ_PROBLEM_CONV || p->kind == BZ_PROBLEM_DECONV ? 1 : rank - 1;
}

int bz_problem_operands(const bz_problem *p, bz_operand *list)
{
    operand_list l = {list, 0};
    bz_extent y = {0};
    add_inputs(p, &l, y);
    int rank = p->kind == BZ_PROBLEM_COPY ? 1 : bz_extent_rank(y);
    for (int i = 0; p->post[i].fn; i++) {
        if (p->post[i].fn == BZ_FN_BIAS)
            add(&l, BZ_ROLE_BIAS, parameter_dtype(p), 1, &y[channel_axis(p, rank)]);
        else if (bz_fn_is_binary(p->post[i].fn))
            add(&l, BZ_ROLE_OTHER, p->dtype_y, rank, y)->post = i;
    }
    add(&l, BZ_ROLE_Y, p->kind == BZ_PROBLEM_COPY ? BZ_U8 : p->dtype_y, rank, y);
    return l.n;
}

double bz_problem_bytes(const bz_problem *p)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    double bytes = 0;
    int n = bz_problem_operands(p, list);
    if (p->kind == BZ_PROBLEM_GATHER || p->kind == BZ_PROBLEM_SLICE) /* what is not taken is not read */
        list[0].count = list[n - 1].count < list[0].count ? list[n - 1].count : list[0].count;
    while (n--)
        bytes += (double)list[n].count * bz_dtype_bits(list[n].dtype) / 8;
    return bytes;
}

/* Products summed up in each element of the result; 0 for kinds that are no sums of products. */
static double depth(const bz_problem *p)
{
    switch (p->kind) {
    case BZ_PROBLEM_CONV:
        return (double)bz_extent_count(p->conv.w + 1);
    case BZ_PROBLEM_GEMM:
        return (double)p->gemm.k;
    case BZ_PROBLEM_GEMV:
        return (double)p->gemv.k;
    case BZ_PROBLEM_MATMUL:
        return (double)p->matmul.a[bz_extent_rank(p->matmul.a) - 1];
    default:
        return 0;
    }
}

/* Two products and five operations of softmax for each score; half of the scores are never seen where it is
 * causal. */
static double attention_flops(const bz_problem *p)
{
    const int64_t *q = p->attention.q, *k = p->attention.k;
    double row = p->attention.causal ? ((double)k[2] + 1) / 2 : (double)k[2];
    return (double)(q[0] * q[1]) * (double)q[2] * row * (2 * (double)(q[3] + p->attention.v[3]) + 5);
}

double bz_problem_flops(const bz_problem *p)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list);
    double x = (double)list[0].count, y = (double)list[n - 1].count, flops = 2 * depth(p) * y;
    switch (p->kind) {
    case BZ_PROBLEM_DECONV: /* every input meets every weight of its group */
        flops = 2 * x * (double)bz_extent_count(p->deconv.w + 1);
        break;
    case BZ_PROBLEM_POOL:
        flops = y * (double)bz_extent_count((bz_extent){p->pool.kernel[0], p->pool.kernel[1], p->pool.kernel[2]});
        break;
    case BZ_PROBLEM_BATCHNORM:
    case BZ_PROBLEM_PRELU:
    case BZ_PROBLEM_DROPOUT:
        flops = 2 * y;
        break;
    case BZ_PROBLEM_RMSNORM:
        flops = 4 * y;
        break;
    case BZ_PROBLEM_LAYERNORM:
    case BZ_PROBLEM_GROUPNORM:
        flops = 8 * y;
        break;
    case BZ_PROBLEM_SOFTMAX:
    case BZ_PROBLEM_LOGSOFTMAX:
        flops = 5 * y;
        break;
    case BZ_PROBLEM_LRN:
        flops = y * (2 * (double)p->lrn.size + 3);
        break;
    case BZ_PROBLEM_ACTIVATION:
    case BZ_PROBLEM_BINARY:
    case BZ_PROBLEM_WHERE:
        flops = y;
        break;
    case BZ_PROBLEM_REDUCE:
        flops = x;
        break;
    case BZ_PROBLEM_RESAMPLE:
        flops = p->resample.mode == BZ_RESAMPLE_LINEAR ? y * ldexp(1, list[0].rank - 2) * 2 : 0;
        break;
    case BZ_PROBLEM_ATTENTION:
        flops = attention_flops(p);
        break;
    case BZ_PROBLEM_LSTM:
    case BZ_PROBLEM_GRU:
    case BZ_PROBLEM_RNN:
        flops = 2 * (double)(p->rnn.seq * p->rnn.batch) * (double)(list[1].count + list[2].count) + 5 * y;
        break;
    default:
        break;
    }
    for (int i = 0; p->post[i].fn; i++)
        flops += y;
    return flops;
}

/* States lie between -1 and 1; gates sum up to about 1. */
bz_rnn_scale bz_problem_rnn_scale(const bz_problem *p)
{
    if (!bz_dtype_is_int(p->dtype))
        return (bz_rnn_scale){1, 0, 1};
    return (bz_rnn_scale){127, p->dtype == BZ_U8 ? 128 : 0, 20 * sqrt((double)(p->rnn.input + p->rnn.hidden))};
}

double bz_problem_scale(const bz_problem *p)
{
    double n = p->kind == BZ_PROBLEM_DECONV ? (double)p->deconv.x[1] : depth(p);
    if (n == 0 || (p->dtype_y != BZ_I8 && p->dtype_y != BZ_U8))
        return 1;
    /* The operands spread over about 20 each: the sum by 400 √n. Wanted is a spread of about 30. */
    return exp2(-round(log2(400 * sqrt(n) / 30)));
}
