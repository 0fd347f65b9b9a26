/* What a valid problem is. */
#include "runtime/problem_table.h"

#include <math.h>

/* What the function's parameters are where none are given: ONNX's defaults. */
static const struct {
    bz_fn fn;
    float alpha, beta;
} PARAMETERS[] = {
    {BZ_FN_LEAKY, 0.01f, 0},         {BZ_FN_ELU, 1, 0},    {BZ_FN_CLIP, 0, 6}, {BZ_FN_SWISH, 1, 0},
    {BZ_FN_HARDSIGMOID, 0.2f, 0.5f}, {BZ_FN_LINEAR, 1, 0}, {BZ_FN_POW, 1, 2},
};

static void normalize_parameters(bz_fn fn, float *alpha, float *beta)
{
    if (*alpha == 0 && *beta == 0)
        for (size_t i = 0; i < sizeof PARAMETERS / sizeof *PARAMETERS; i++)
            if (PARAMETERS[i].fn == fn) {
                *alpha = PARAMETERS[i].alpha;
                *beta = PARAMETERS[i].beta;
            }
    if (bz_fn_parameters(fn) < 2)
        *beta = 0;
    if (bz_fn_parameters(fn) < 1)
        *alpha = 0;
}

static int refuse(const bz_problem *p, const char *why, bz_error *err)
{
    return bz_fail(err, BZ_BAD_INPUT, "problem: %s: %s", bz_kinds[p->kind].name, why);
}

/* Sizes bounded so that no product of them can overflow, nor ask for absurd amounts of memory. */
static int check_numbers(const bz_problem *p, bz_error *err)
{
    const int64_t most = (int64_t)1 << 40;
    for (const bz_member *m = bz_kinds[p->kind].member; m->form; m++) {
        if (m->form == BZ_FORM_FLAG || m->form == BZ_FORM_REAL || m->form == BZ_FORM_FN || m->form == BZ_FORM_NAME)
            continue;
        const int64_t *v = bz_member_numbers(p, m);
        int64_t product = 1;
        for (int i = 0; i < bz_member_given(p, m); i++) {
            int64_t limit = m->form == BZ_FORM_EXTENT || p->kind == BZ_PROBLEM_COPY ? most : (int64_t)1 << 24;
            if (v[i] < 0 || v[i] > limit)
                return bz_fail(err, BZ_BAD_INPUT, "problem: %s: '%s' is out of range", bz_kinds[p->kind].name, m->name);
            if (m->form == BZ_FORM_EXTENT && (__builtin_mul_overflow(product, v[i], &product) || product > most))
                return bz_fail(err, BZ_BAD_INPUT, "problem: %s: '%s' is too large", bz_kinds[p->kind].name, m->name);
        }
        if (m->form == BZ_FORM_EXTENT && !m->optional && !bz_member_given(p, m))
            return bz_fail(err, BZ_BAD_INPUT, "problem: %s: '%s' has no dimensions", bz_kinds[p->kind].name, m->name);
    }
    return 0;
}

static int check_window(const bz_problem *p, const int64_t *x, const int64_t *kernel, const int64_t *stride,
                        const int64_t *pad, const int64_t *dilation, bz_error *err)
{
    int n = bz_extent_rank(x) - 2;
    if (n < 1 || n > BZ_PROBLEM_SPATIAL)
        return refuse(p, "x has a batch, channels and one to three spatial dimensions", err);
    for (int i = 0; i < n; i++) {
        if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1)
            return refuse(p, "kernel, stride and dilation are at least 1", err);
        if (kernel[i] > 1 << 24 || x[2 + i] > 1 << 24)
            return refuse(p, "a spatial dimension is too large", err);
        if (p->kind == BZ_PROBLEM_DECONV)
            continue;
        if (x[2 + i] + pad[i] + pad[n + i] < (kernel[i] - 1) * dilation[i] + 1)
            return refuse(p, "the kernel is larger than the padded input", err);
    }
    return 0;
}

static int check_conv(const bz_problem *p, bz_error *err)
{
    bool transposed = p->kind == BZ_PROBLEM_DECONV;
    const int64_t *x = p->conv.x, *w = p->conv.w, g = p->conv.group;
    if (bz_extent_rank(x) != bz_extent_rank(w))
        return refuse(p, "x and w have the same number of dimensions", err);
    if (g < 1 || x[1] % g || (transposed ? x[1] != w[0] : w[1] != x[1] / g) || w[0] % g)
        return refuse(p, "channels of x and w do not fit each other and the group", err);
    if (check_window(p, x, w + 2, p->conv.stride, p->conv.pad, p->conv.dilation, err))
        return -1;
    int n = bz_extent_rank(x) - 2;
    for (int i = 0; transposed && i < n; i++)
        if ((x[2 + i] - 1) * p->conv.stride[i] + (w[2 + i] - 1) * p->conv.dilation[i] + 1 + p->conv.outpad[i] <=
            p->conv.pad[i] + p->conv.pad[n + i])
            return refuse(p, "the padding leaves nothing of the result", err);
    return 0;
}

/* Whether shapes broadcast to each other over their dimensions from the right, the last `skip` left out. */
static bool broadcasts(const int64_t *a, const int64_t *b, int skip)
{
    for (int i = bz_extent_rank(a) - 1 - skip, j = bz_extent_rank(b) - 1 - skip; i >= 0 && j >= 0; i--, j--)
        if (a[i] != b[j] && a[i] != 1 && b[j] != 1)
            return false;
    return true;
}

static int check_attention(const bz_problem *p, bz_error *err)
{
    const int64_t *q = p->attention.q, *k = p->attention.k, *v = p->attention.v, *mask = p->attention.mask;
    if (bz_extent_rank(q) != 4 || bz_extent_rank(k) != 4 || bz_extent_rank(v) != 4)
        return refuse(p, "q, k and v have batch, heads, length and size", err);
    if (q[0] != k[0] || k[0] != v[0] || q[3] != k[3] || k[1] != v[1] || k[2] != v[2] || q[1] % k[1])
        return refuse(p, "q, k and v do not fit each other", err);
    if (p->attention.causal && q[2] != k[2]) /* which end of the keys the queries stand at would be open */
        return refuse(p, "causal, there are as many keys as queries", err);
    if ((double)q[0] * (double)q[1] * (double)q[2] * (double)k[2] > 0x1p40)
        return refuse(p, "there are too many scores", err);
    const int64_t scores[] = {q[0], q[1], q[2], k[2]};
    for (int i = 0; i < 4 && mask[0]; i++)
        if (bz_extent_rank(mask) != 4 || (mask[i] != 1 && mask[i] != scores[i]))
            return refuse(p, "the mask does not fit the scores", err);
    return 0;
}

/* Elements of y may lie as far apart as they like, as long as all are elements of x. */
static int check_slice(const bz_problem *p, bz_error *err)
{
    const int64_t *x = p->slice.x, *y = p->slice.y, *start = p->slice.start, *step = p->slice.step;
    int n = bz_extent_rank(x);
    if (n != bz_extent_rank(y))
        return refuse(p, "x and y have the same number of dimensions", err);
    for (int i = 0; i < n; i++)
        if (step[i] < 1 || start[i] >= x[i] || y[i] - 1 > (x[i] - 1 - start[i]) / step[i])
            return refuse(p, "steps are at least 1, and y ends inside of x", err);
    return 0;
}

static int check_expand(const bz_problem *p, bz_error *err)
{
    const int64_t *x = p->expand.x, *y = p->expand.y;
    if (bz_extent_rank(x) != bz_extent_rank(y))
        return refuse(p, "x and y have the same number of dimensions", err);
    for (int i = 0; x[i]; i++)
        if (x[i] != y[i] && x[i] != 1)
            return refuse(p, "a dimension of x is 1 or that of y", err);
    return 0;
}

/* Indices are counted in f32 where results are checked. */
static int check_gather(const bz_problem *p, bz_error *err)
{
    if (p->gather.axis >= bz_extent_rank(p->gather.x) || p->gather.n < 1)
        return refuse(p, "x has such an axis, and n is at least 1", err);
    if (p->gather.x[p->gather.axis] > 1 << 24)
        return refuse(p, "there is too much to choose from", err);
    if (p->dtype_w != BZ_I64 && p->dtype_w != BZ_I32)
        return refuse(p, "its indices are i64 or i32: dtype=f32:i64:f32", err);
    return 0;
}

static int check_where(const bz_problem *p, bz_error *err)
{
    const int64_t *a = p->where.a, *b = p->where.b, *c = p->where.c;
    int n = bz_extent_rank(c);
    if (bz_extent_rank(a) != n || bz_extent_rank(b) != n || !broadcasts(a, b, 0) || !broadcasts(a, c, 0) ||
        !broadcasts(b, c, 0))
        return refuse(p, "c, a and b have the same number of dimensions and fit", err);
    return 0;
}

static int check_shapes(const bz_problem *p, bz_error *err)
{
    const int64_t *a, *b;
    int n;
    int64_t sum = 0;
    switch (p->kind) {
    case BZ_PROBLEM_CONV:
    case BZ_PROBLEM_DECONV:
        return check_conv(p, err);
    case BZ_PROBLEM_GEMM:
        if (p->gemm.m < 1 || p->gemm.n < 1 || p->gemm.k < 1 || p->gemm.batch < 1)
            return refuse(p, "m, n, k and batch are at least 1", err);
        if ((double)p->gemm.batch * (double)(p->gemm.m + p->gemm.n) * (double)p->gemm.k > 1e12 ||
            (double)p->gemm.batch * (double)p->gemm.m * (double)p->gemm.n > 1e12)
            return refuse(p, "the matrices are too large", err);
        return 0;
    case BZ_PROBLEM_GEMV:
        if (p->gemv.m < 1 || p->gemv.k < 1 || (double)p->gemv.m * (double)p->gemv.k > 1e12)
            return refuse(p, "m and k are at least 1, and the matrix is not too large", err);
        return 0;
    case BZ_PROBLEM_MATMUL:
        a = p->matmul.a;
        b = p->matmul.b;
        if (bz_extent_rank(a) < 2 || bz_extent_rank(a) != bz_extent_rank(b))
            return refuse(p, "a and b have the same number of dimensions, at least two", err);
        n = bz_extent_rank(a);
        if (a[n - 1] != b[n - 2] || !broadcasts(a, b, 2))
            return refuse(p, "a and b do not fit each other", err);
        return 0;
    case BZ_PROBLEM_POOL:
        return check_window(p, p->pool.x, p->pool.kernel, p->pool.stride, p->pool.pad, p->pool.dilation, err);
    case BZ_PROBLEM_BATCHNORM:
    case BZ_PROBLEM_PRELU:
        return bz_extent_rank(p->batchnorm.x) < 2 ? refuse(p, "x has at least batch and channels", err) : 0;
    case BZ_PROBLEM_LAYERNORM:
    case BZ_PROBLEM_RMSNORM:
    case BZ_PROBLEM_SOFTMAX:
    case BZ_PROBLEM_LOGSOFTMAX:
        return p->softmax.axis >= bz_extent_rank(p->softmax.x) ? refuse(p, "x has no such axis", err) : 0;
    case BZ_PROBLEM_GROUPNORM:
        if (bz_extent_rank(p->groupnorm.x) < 3 || p->groupnorm.group < 1 || p->groupnorm.x[1] % p->groupnorm.group)
            return refuse(p, "x has batch, channels, space, and the group divides the channels", err);
        return 0;
    case BZ_PROBLEM_LRN:
        return bz_extent_rank(p->lrn.x) < 3 || p->lrn.size < 1
                   ? refuse(p, "x has batch, channels, space; size is at least 1", err)
                   : 0;
    case BZ_PROBLEM_ACTIVATION:
        return bz_fn_is_activation(p->activation.fn) ? 0 : refuse(p, "fn is no activation", err);
    case BZ_PROBLEM_BINARY:
        if (!bz_fn_is_binary(p->binary.fn) || bz_extent_rank(p->binary.a) != bz_extent_rank(p->binary.b) ||
            !broadcasts(p->binary.a, p->binary.b, 0))
            return refuse(p, "fn takes two values, a and b have the same number of dimensions and fit", err);
        return 0;
    case BZ_PROBLEM_REDUCE:
        n = bz_extent_rank(p->reduce.x);
        if (!bz_fn_is_reduction(p->reduce.fn) || n != bz_extent_rank(p->reduce.y))
            return refuse(p, "fn reduces, and x and y have the same number of dimensions", err);
        for (int i = 0; i < n; i++)
            if (p->reduce.y[i] != p->reduce.x[i] && p->reduce.y[i] != 1)
                return refuse(p, "a dimension of y is 1 or that of x", err);
        return 0;
    case BZ_PROBLEM_RESAMPLE:
        n = bz_extent_rank(p->resample.x);
        if (n < 3 || n > 5 || n != bz_extent_rank(p->resample.y) || p->resample.x[0] != p->resample.y[0] ||
            p->resample.x[1] != p->resample.y[1])
            return refuse(p, "x and y have the same batch and channels and one to three spatial dimensions", err);
        return 0;
    case BZ_PROBLEM_CONCAT:
        if (p->concat.axis >= bz_extent_rank(p->concat.y))
            return refuse(p, "y has no such axis", err);
        for (n = 0; p->concat.sizes[n]; n++)
            sum += p->concat.sizes[n];
        return !n || sum != p->concat.y[p->concat.axis] ? refuse(p, "the sizes do not add up to y", err) : 0;
    case BZ_PROBLEM_TRANSPOSE:
        n = bz_extent_rank(p->transpose.x);
        for (int i = 0; i < n; i++) {
            if (p->transpose.perm[i] >= n)
                return refuse(p, "perm names each dimension once", err);
            for (int j = 0; j < i; j++)
                if (p->transpose.perm[i] == p->transpose.perm[j])
                    return refuse(p, "perm names each dimension once", err);
        }
        return 0;
    case BZ_PROBLEM_PAD:
        n = bz_extent_rank(p->pad.x);
        for (int i = 0; n >= 3 && n <= 5 && i < 2 * (n - 2); i++)
            sum += p->pad.pad[i];
        return !sum
                   ? refuse(p, "x has batch, channels and one to three spatial dimensions, one of which is padded", err)
                   : 0;
    case BZ_PROBLEM_SLICE:
        return check_slice(p, err);
    case BZ_PROBLEM_EXPAND:
        return check_expand(p, err);
    case BZ_PROBLEM_GATHER:
        return check_gather(p, err);
    case BZ_PROBLEM_WHERE:
        return check_where(p, err);
    case BZ_PROBLEM_COPY:
        return p->copy.read + p->copy.write < 1 ? refuse(p, "something is read or written", err) : 0;
    case BZ_PROBLEM_ATTENTION:
        return check_attention(p, err);
    case BZ_PROBLEM_LSTM:
    case BZ_PROBLEM_GRU:
    case BZ_PROBLEM_RNN:
        if (p->rnn.seq < 1 || p->rnn.batch < 1 || p->rnn.input < 1 || p->rnn.hidden < 1)
            return refuse(p, "seq, batch, input and hidden are at least 1", err);
        if ((double)p->rnn.seq * (double)p->rnn.batch * (double)(p->rnn.input + p->rnn.hidden) > 1e12 ||
            (double)(p->rnn.input + p->rnn.hidden) * (double)p->rnn.hidden > 1e11)
            return refuse(p, "the tensors are too large", err);
        if (p->kind == BZ_PROBLEM_RNN && p->rnn.fn != BZ_FN_TANH && p->rnn.fn != BZ_FN_RELU &&
            p->rnn.fn != BZ_FN_SIGMOID)
            return refuse(p, "fn is tanh, relu or sigmoid", err);
        return 0;
    default:
        return 0;
    }
}

/* Results that do not fit in the bound that check_numbers set for inputs: broadcasts, deconvolutions. */
static int check_result(const bz_problem *p, bz_error *err)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, list);
    double count = 1;
    for (int i = 0; i < list[n - 1].rank; i++)
        count *= (double)list[n - 1].dim[i];
    return count > 0x1p40 ? refuse(p, "the result is too large", err) : 0;
}

int bz_problem_normalize(bz_problem *p, bz_error *err)
{
    if (p->kind <= BZ_PROBLEM_NONE || p->kind >= BZ_PROBLEM_N_KINDS)
        return bz_fail(err, BZ_BAD_INPUT, "problem: no kind");
    if (!p->dtype || bz_dtype_bits(p->dtype) < 8)
        return refuse(p, "the data type has no elements of whole bytes", err);
    p->dtype_w = p->dtype_w ? p->dtype_w : p->dtype;
    p->dtype_y = p->dtype_y ? p->dtype_y : p->dtype;
    if (!bz_dtype_bits(p->dtype_w) || !bz_dtype_bits(p->dtype_y))
        return refuse(p, "its weights or results are no numbers", err);
    for (const bz_member *m = bz_kinds[p->kind].member; m->form; m++) {
        if (m->form == BZ_FORM_NAME) {
            unsigned n = 0;
            while (m->names[n])
                n++;
            if (BZ_CONST_FIELD(unsigned, p, m) >= n)
                return bz_fail(err, BZ_BAD_INPUT, "problem: %s: '%s' is out of range", bz_kinds[p->kind].name, m->name);
        }
        bool all = m->form == BZ_FORM_SPATIAL || m->form == BZ_FORM_INT; /* a 0 among these stands for the usual 1 */
        for (int i = 0; all && m->usual == 1 && i < bz_member_length(p, m) && i < BZ_PROBLEM_SPATIAL; i++)
            if (!bz_member_numbers(p, m)[i])
                ((int64_t *)(void *)((char *)p + m->at))[i] = 1;
        if (m->form == BZ_FORM_REAL && m->usual != 0 && !isnan(m->usual) && BZ_CONST_FIELD(float, p, m) == 0)
            BZ_FIELD(float, p, m) = (float)m->usual;
        if (m->form == BZ_FORM_REAL && !isfinite(BZ_CONST_FIELD(float, p, m)))
            return bz_fail(err, BZ_BAD_INPUT, "problem: %s: '%s' is not finite", bz_kinds[p->kind].name, m->name);
        if (m->form == BZ_FORM_FN && !isnan(m->usual) && !BZ_CONST_FIELD(bz_fn, p, m))
            BZ_FIELD(bz_fn, p, m) = (bz_fn)m->usual;
    }
    if (p->kind == BZ_PROBLEM_ACTIVATION)
        normalize_parameters(p->activation.fn, &p->activation.alpha, &p->activation.beta);
    for (int i = 0; i < BZ_PROBLEM_POST && p->post[i].fn; i++) {
        if (!bz_kinds[p->kind].post)
            return refuse(p, "takes no post-operations", err);
        if (!bz_fn_is_post(p->post[i].fn))
            return refuse(p, "a function that is no post-operation", err);
        if (p->post[i].fn == BZ_FN_BIAS && (i || p->kind == BZ_PROBLEM_BATCHNORM || p->kind == BZ_PROBLEM_BINARY))
            return refuse(p, "a bias comes first, and only after a product", err);
        if (!isfinite(p->post[i].alpha) || !isfinite(p->post[i].beta))
            return refuse(p, "a post-operation's parameter is not finite", err);
        normalize_parameters(p->post[i].fn, &p->post[i].alpha, &p->post[i].beta);
    }
    if (check_numbers(p, err) || check_shapes(p, err))
        return -1;
    return check_result(p, err);
}
