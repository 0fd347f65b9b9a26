/* Signals: Fourier transforms, windows, mel weights; determinants. */
#include "modelproc/rule.h"

static int dft_length(call *c, bz_dim signal, bz_dim *length, bool *given)
{
    int64_t n;
    const int64_t *v = in_ints(c, 1, &n);
    *given = in_type(c, 1) != NULL;
    *length = !*given ? signal : v && n == 1 ? v[0] : new_symbol(c);
    return *length <= 0 && !bz_is_symbol(*length) ? call_fail(c, "a transform of %lld samples", (long long)*length) : 0;
}

/* Where the transform goes: an attribute in opset 17 (1 by default), an operand from 20 on (-2); -1: its value is not known. */
static int dft_axis(call *c, int rank, int *axis)
{
    int64_t v = c->node->opset < 20 ? attr_int(c, "axis", 1) : -2;
    *axis = -1;
    if (c->node->opset >= 20 && in_type(c, 2) && !in_number(c, 2, &v))
        return 0;
    if (fix_axis(c, v, rank, axis))
        return -1;
    return *axis == rank - 1 ? call_fail(c, "axis %d holds real and imaginary parts", *axis) : 0;
}

static int dft_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int axis;
    bz_dim length;
    bool given, inverse = attr_int(c, "inverse", 0) != 0, onesided = attr_int(c, "onesided", 0) != 0;
    if (x->rank < 2 || (!dims_fit(last_dim(x, 1), 1) && !dims_fit(last_dim(x, 1), 2)))
        return call_fail(c, "its last dimension must be 1 (real) or 2 (complex)");
    if (dft_axis(c, x->rank, &axis))
        return -1;
    bz_dim *dims = bz_arena_dup(c->arena, x->dims, (size_t)x->rank * sizeof *dims);
    dims[x->rank - 1] = onesided && inverse ? 1 : 2;
    if (axis < 0) { /* a whole transform as long as the signal changes no dimension, wherever it goes */
        for (int i = 0; i < x->rank - 1 && (onesided || in_type(c, 1)); i++)
            dims[i] = new_symbol(c);
    } else {
        if (dft_length(c, x->dims[axis], &length, &given))
            return -1;
        if (onesided && inverse)
            dims[axis] = given ? length : dim_mul(c, 2, dim_sub(c, length, 1));
        else
            dims[axis] = onesided ? dim_add(c, dim_div(c, length, 2), 1) : length;
        param_int(c, "axis", axis);
        if (given)
            param_int(c, "length", length);
    }
    param_int(c, "inverse", inverse);
    param_int(c, "onesided", onesided);
    return set_out(c, 0, x->dtype, x->rank, dims);
}

static void dft_cost(call *c)
{
    const bz_type *x = &c->in[0];
    int axis;
    bz_dim length;
    bool given;
    if (dft_axis(c, x->rank, &axis) || axis < 0 || dft_length(c, x->dims[axis], &length, &given) ||
        bz_is_symbol(length) || x->dims[axis] <= 0)
        return;
    int64_t n = elements(x), transforms = n > 0 ? n / x->dims[axis] / last_dim(x, 1) : 0;
    c->flops = fft_flops(length, transforms, last_dim(x, 1) == 1);
}

static int frame_length(call *c, bz_dim *frame)
{
    const bz_type *window = in_type(c, 2);
    int64_t n;
    const int64_t *v = in_ints(c, 3, &n);
    if (!window && !in_type(c, 3))
        return call_fail(c, "it has neither a window nor a frame length");
    *frame = v && n == 1 ? v[0] : window && window->rank == 1 ? window->dims[0] : new_symbol(c);
    if (window && window->rank != 1)
        return call_fail(c, "its window has %d dimensions", window->rank);
    if (window && !dims_fit(window->dims[0], *frame))
        return call_fail(c, "its window has %lld elements for frames of %lld", (long long)window->dims[0],
                         (long long)*frame);
    return *frame <= 0 && !bz_is_symbol(*frame) ? call_fail(c, "frames of %lld samples", (long long)*frame) : 0;
}

static int stft_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim frame = 0, frames = new_symbol(c);
    int64_t step;
    if (frame_length(c, &frame))
        return -1;
    if (x->rank != 2 && x->rank != 3)
        return call_fail(c, "its signal must be [batch, samples, 1 or 2]");
    bool onesided = attr_int(c, "onesided", 1) != 0;
    if (in_number(c, 1, &step)) {
        if (step <= 0)
            return call_fail(c, "frames %lld samples apart", (long long)step);
        if (!bz_is_symbol(frame) && !bz_is_symbol(x->dims[1]) && x->dims[1] < frame)
            return call_fail(c, "frames of %lld samples in a signal of %lld", (long long)frame, (long long)x->dims[1]);
        frames = dim_add(c, dim_div(c, dim_sub(c, x->dims[1], frame), step), 1);
        param_int(c, "step", step);
    }
    bz_dim bins = onesided ? dim_add(c, dim_div(c, frame, 2), 1) : frame;
    param_int(c, "frame", frame);
    param_int(c, "onesided", onesided);
    return set_out(c, 0, x->dtype, 4, (bz_dim[]){x->dims[0], frames, bins, 2});
}

static void stft_cost(call *c)
{
    bz_dim frame = 0;
    if (frame_length(c, &frame) || bz_is_symbol(frame))
        return;
    int64_t frames = count_mul(c->out[0].dims[0], c->out[0].dims[1]);
    c->flops = count_add(fft_flops(frame, frames, c->in[0].rank == 2 || last_dim(&c->in[0], 1) == 1),
                         count_mul(frame, in_type(c, 2) ? frames : 0));
}

static int mel_shape(call *c)
{
    bz_dtype t;
    int64_t bins, length;
    bz_dim dims[2];
    if (attr_dtype(c, "output_datatype", BZ_F32, &t))
        return -1;
    dims[0] = in_number(c, 1, &length) ? dim_add(c, dim_div(c, length, 2), 1) : new_symbol(c);
    dims[1] = in_number(c, 0, &bins) ? bins : new_symbol(c);
    if ((!bz_is_symbol(dims[0]) && dims[0] <= 0) || (!bz_is_symbol(dims[1]) && dims[1] < 0))
        return call_fail(c, "its sizes are negative");
    return set_out(c, 0, t, 2, dims);
}

static int window_shape(call *c)
{
    bz_dtype t;
    int64_t n;
    if (attr_dtype(c, "output_datatype", BZ_F32, &t))
        return -1;
    const int64_t *size = in_ints(c, 0, &n);
    bz_dim dim = size && n == 1 ? size[0] : new_symbol(c);
    if (dim < 0 && !bz_is_symbol(dim))
        return call_fail(c, "a window of %lld samples", (long long)dim);
    set_out(c, 0, t, 1, &dim);
    param_int(c, "periodic", attr_int(c, "periodic", 1) != 0);
    return 0;
}

static int det_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    if (x->rank < 2 || !dims_fit(last_dim(x, 1), last_dim(x, 2)))
        return call_fail(c, "its operand holds no square matrices");
    return set_out(c, 0, x->dtype, x->rank - 2, x->dims);
}

/* By elimination: 2/3·n³. */
static void det_cost(call *c)
{
    int64_t n = elements(&c->in[0]);
    c->flops = count_mul(n > INT64_MAX / 2 ? n : 2 * n, last_dim(&c->in[0], 1)) / 3;
}

static const op ROWS[] = {
    {"DFT", NULL, "dft", BZ_COMPUTE, dft_shape, .cost = dft_cost, .flags = OP_KEEPS, .labels = "x"},
    {"STFT", NULL, "stft", BZ_COMPUTE, stft_shape, .cost = stft_cost, .flags = OP_KEEPS, .labels = "x"},
    {"MelWeightMatrix", NULL, "melweights", BZ_COMPUTE, mel_shape, .flops = 4, .labels = "- > y"},
    {"HannWindow", NULL, "hannwindow", BZ_COMPUTE, window_shape, .flops = 4, .labels = "- > y"},
    {"HammingWindow", NULL, "hammingwindow", BZ_COMPUTE, window_shape, .flops = 4, .labels = "- > y"},
    {"BlackmanWindow", NULL, "blackmanwindow", BZ_COMPUTE, window_shape, .flops = 7, .labels = "- > y"},
    {"Det", NULL, "det", BZ_COMPUTE, det_shape, .cost = det_cost, .flags = OP_KEEPS, .labels = "x"},
};
const op_table ops_signal = OP_TABLE(ROWS);
