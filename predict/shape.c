/* A problem as numbers. Times of libraries follow the logarithms of extents: half as many channels are as far from a shape as
 * twice as many. */
#include "predict/predict.h"

#include "predict/constants.h"

#include <math.h>

static double ln(double v)
{
    return log(fmax(v, 1));
}

static double count(const int64_t *extent, int from, int to)
{
    double n = 1;
    for (int i = from; i < to && extent[i]; i++)
        n *= (double)extent[i];
    return n;
}

static void add(bz_shape *s, double v)
{
    if (s->n < BZ_SHAPE)
        s->x[s->n++] = v;
}

/* The same of what grows with the items. */
static void add_growing(bz_shape *s, double v, double grows)
{
    s->grows[s->n] = grows;
    add(s, v);
}

/* Weights: a step in the window's size, the stride, or from 1x1 to wider windows changes the algorithm; one in the batch hardly. */
static void conv(const bz_problem *p, const bz_operand *y, bz_shape *s)
{
    bool deconv = p->kind == BZ_PROBLEM_DECONV;
    double group = (double)p->conv.group, in = (double)p->conv.x[1],
           out = deconv ? (double)y->dim[1] : (double)p->conv.w[0];
    double window = count(p->conv.w, 2, BZ_PROBLEM_RANK);
    s->items = (double)p->conv.x[0];
    add_growing(s, ln(s->items), 1);
    add(s, ln(in / group));
    add(s, ln(out));
    add(s, ln(count(y->dim, 2, BZ_PROBLEM_RANK)));
    add(s, 1.5 * ln(window));
    add(s, 2 * ln((double)p->conv.stride[0]));
    add(s, ln(group));
    s->size = s->n;
    add_growing(s, ln(s->flops), 1);
    add(s, window > 1 ? 0 : 1.5);
    s->uneven = fmod(in / group, 8) > 0 || fmod(out / group, 8) > 0;
    bool small = p->kind == BZ_PROBLEM_CONV && p->conv.w[2] == 3 && p->conv.w[3] == 3 && !p->conv.w[4] &&
                 p->conv.stride[0] == 1 && p->conv.stride[1] == 1 && group == 1;
    s->holes = small && (p->conv.dilation[0] > 1 || p->conv.dilation[1] > 1);
    s->transformable = small && !s->holes;
    s->blocks = (double)y->count / 4096; /* tiles of 64 by 64 */
    s->depth = in / group * window;
}

static void product(const bz_problem *p, const bz_operand *y, bz_shape *s)
{
    double n = (double)(y->rank ? y->dim[y->rank - 1] : 1), m = (double)y->count / n, k = s->flops / (2 * m * n);
    if (p->kind == BZ_PROBLEM_GEMV)
        n = (double)y->count, m = 1, k = (double)p->gemv.k;
    add(s, ln(m));
    add(s, ln(k));
    add(s, ln(n));
    s->blocks = ceil(m / 64) * ceil(n / 64);
}

static void moved(const bz_problem *p, const bz_operand *x, const bz_operand *y, bz_shape *s)
{
    double batch = (double)(x->rank ? x->dim[0] : 1), each = (double)x->count / batch;
    s->items = batch;
    add_growing(s, ln(s->bytes), 1);
    if (p->kind == BZ_PROBLEM_POOL) {
        add(s, log(fmax(s->flops, 1) / s->bytes));
        add(s, ln(each));
        add_growing(s, 0.5 * ln(batch), 0.5);
        add(s, 2 * (double)p->pool.kernel[0] / 3);
    } else {
        add(s, 0.5 * ln(each));
        add_growing(s, 0.5 * ln(batch), 0.5);
    }
    s->blocks = (double)y->count / 1024;
}

/* Functions that processors do not have as an instruction or a few: what they take is arithmetic, not memory. */
static bool is_series(bz_fn fn)
{
    static const bz_fn FUNCTIONS[] = {BZ_FN_ELU,   BZ_FN_SIGMOID, BZ_FN_TANH,     BZ_FN_GELU_ERF, BZ_FN_GELU_TANH,
                                      BZ_FN_SWISH, BZ_FN_MISH,    BZ_FN_SOFTPLUS, BZ_FN_EXP,      BZ_FN_LOG,
                                      BZ_FN_ERF,   BZ_FN_POW,     BZ_FN_SIN,      BZ_FN_COS};
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (fn == FUNCTIONS[i])
            return true;
    return false;
}

/* Operations of a series: some ten multiply-adds, and as much around them for the exponent. */
static const double SERIES = 40;

const char *bz_shape_kind_name(int kind)
{
    int plain = kind % BZ_SHAPE_FUSED;
    return plain == BZ_SHAPE_BROADCAST ? "binary-broadcast"
           : plain == BZ_SHAPE_SERIES  ? "activation-series"
                                       : bz_problem_kind_name((bz_problem_kind)plain);
}

void bz_shape_of(const bz_problem *p, bz_shape *out)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, operand);
    static const bz_operand NONE = {.count = 1};
    const bz_operand *x = n ? &operand[0] : &NONE, *y = n ? &operand[n - 1] : &NONE;
    *out = (bz_shape){.kind = (int)p->kind,
                      .product = bz_problem_has(p, BZ_TRAIT_PRODUCT),
                      .dtype = p->dtype,
                      .flops = bz_problem_flops(p),
                      .bytes = fmax(bz_problem_bytes(p), 1)};
    if (p->kind == BZ_PROBLEM_BINARY && bz_extent_count(p->binary.a) != bz_extent_count(p->binary.b))
        out->kind = BZ_SHAPE_BROADCAST;
    if (p->kind == BZ_PROBLEM_ACTIVATION && is_series(p->activation.fn))
        out->kind = BZ_SHAPE_SERIES;
    out->series = out->kind == BZ_SHAPE_SERIES || p->kind == BZ_PROBLEM_SOFTMAX || p->kind == BZ_PROBLEM_LOGSOFTMAX;
    if (out->series)
        out->flops = fmax(out->flops, SERIES * (double)y->count);
    if (p->post[0].fn != BZ_FN_NONE)
        out->kind += BZ_SHAPE_FUSED;
    if (bz_problem_has(p, BZ_TRAIT_CONVOLUTION))
        conv(p, y, out);
    else if (out->product)
        product(p, y, out);
    else
        moved(p, x, y, out);
    out->blocks = fmax(1, ceil(out->blocks));
    add(out, p->dtype == BZ_F32 ? 0 : 2);
}

int bz_shape_group(const bz_shape *s)
{
    int kind = s->kind % BZ_SHAPE_FUSED;
    bool recurrent = kind != BZ_PROBLEM_NONE && kind < BZ_PROBLEM_N_KINDS &&
                     bz_problem_has(&(bz_problem){.kind = (bz_problem_kind)kind}, BZ_TRAIT_RECURRENT);
    return s->product || recurrent || kind == BZ_PROBLEM_ATTENTION ? 0 : 1;
}

static double rate(const bz_machine *m, bz_dtype dtype)
{
    double own = dtype == BZ_F16                    ? m->f16
                 : dtype == BZ_BF16                 ? m->bf16
                 : dtype == BZ_I8 || dtype == BZ_U8 ? m->i8
                 : dtype == BZ_F64 && !(m->f64 > 0) ? m->f32 / 2
                 : dtype == BZ_F64                  ? m->f64
                                                    : 0;
    return own > 0 ? own : m->f32;
}

/* Seconds of arithmetic at the boost clock. Residuals are those of f32, and tensor cores do not share all of them: nothing is transformed there, and
 * the libraries before Ampere's leave channels that are no multiples of 8 to other units. */
static double arithmetic(const bz_shape *s, const bz_machine *m)
{
    double at = rate(m, s->dtype);
    bool matrix = m->capability >= 70 && s->product && at > m->f32 && (s->dtype == BZ_F16 || s->dtype == BZ_BF16);
    if (!matrix)
        return s->flops * (s->holes ? HOLES : 1) / at;
    if (s->uneven && m->capability < 80)
        return s->flops / m->f32;
    return s->flops * (s->transformable || s->holes ? TRANSFORMED : 1) / (MATRIX * at);
}

/* The same of one tile of a convolution's result on one multiprocessor: no other can help it, however many are idle. Tensor cores do not walk
 * through its products faster: ResNet-50's of 7 by 7 with 512 channels took a V100 0.17 ms in f32 and in f16, of one item and of eight. */
static double tile(const bz_shape *s, const bz_machine *m)
{
    return m->gpu ? 2 * TILE * s->depth * m->multiprocessors / m->f32 : 0;
}

double bz_shape_least(const bz_shape *s, const bz_machine *m)
{
    bool convolution = s->depth > 0;
    double multiplied = s->product ? s->flops / rate(m, s->dtype) / (convolution ? 9 : 1) : 0;
    return m->gpu ? fmax(multiplied, (s->bytes - m->kept) / m->bandwidth) : 0;
}

bool bz_shape_possible(const bz_shape *s, const bz_machine *m, double seconds)
{
    return seconds * TOO_FAST >= bz_shape_least(s, m);
}

double bz_shape_roofline(const bz_shape *s, const bz_machine *m, double floor, double margin)
{
    bool computes = s->series || bz_shape_group(s) == 0, narrow = s->dtype == BZ_F16 || s->dtype == BZ_BF16;
    double copy = m->gpu && narrow && !s->product ? MOVED * COPY : COPY;
    double compute = hypot(arithmetic(s, m) / PRODUCT, tile(s, m)) / bz_machine_held(m, margin),
           memory = s->bytes / (bz_machine_bandwidth(m, s->bytes) * copy);
    return floor + (computes ? hypot(compute, memory) : memory);
}
