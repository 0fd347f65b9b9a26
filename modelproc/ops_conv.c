/* Windows that slide: convolution, its transpose, pooling. */
#include "modelproc/geometry.h"
#include "modelproc/rule.h"

#include <string.h>

enum { MAX_SPATIAL = 8 };

/* Geometry in n spatial dimensions; pads in ONNX order, all begins and then all ends. */
typedef struct {
    int n;
    int64_t kernel[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL], pad[2 * MAX_SPATIAL];
    const char *auto_pad;
} window;

static int check_list(call *c, const char *name, const int64_t *v, int given, int n, int64_t otherwise, int64_t least,
                      int64_t *out)
{
    if (v && given != n)
        return call_fail(c, "%s has %d numbers where %d are needed", name, given, n);
    for (int i = 0; i < n; i++) {
        out[i] = v ? v[i] : otherwise;
        if (out[i] < least || out[i] > INT32_MAX)
            return call_fail(c, "%s has the impossible value %lld", name, (long long)out[i]);
    }
    return 0;
}

static int read_list(call *c, const char *name, int n, int64_t otherwise, int64_t least, int64_t *out)
{
    int given;
    const int64_t *v = attr_ints(c, name, &given);
    return check_list(c, name, v, given, n, otherwise, least, out);
}

/* kernel: dims of the weights behind the first two, or NULL where only the attribute tells. */
static int read_window(call *c, int rank, const bz_dim *kernel, window *w)
{
    int given;
    w->n = rank - 2;
    if (w->n < 1 || w->n > MAX_SPATIAL)
        return call_fail(c, "its input has %d dimensions: batch, channels and 1 to %d more are needed", rank,
                         MAX_SPATIAL);
    const int64_t *attr = attr_ints(c, "kernel_shape", &given);
    if (!attr && !kernel)
        return call_fail(c, "kernel_shape is missing");
    if (check_list(c, "kernel_shape", attr, given, w->n, 1, 1, w->kernel) ||
        read_list(c, "strides", w->n, 1, 1, w->stride) || read_list(c, "dilations", w->n, 1, 1, w->dilation) ||
        read_list(c, "pads", 2 * w->n, 0, INT32_MIN / 2, w->pad))
        return -1;
    for (int i = 0; i < w->n && kernel; i++) {
        if (attr && !bz_is_symbol(kernel[i]) && attr[i] != kernel[i])
            return call_fail(c, "kernel_shape says %lld where the weights have %lld", (long long)attr[i],
                             (long long)kernel[i]);
        if (kernel[i] == 0 || kernel[i] > INT32_MAX)
            return call_fail(c, "its window of %lld is impossibly %s", (long long)kernel[i],
                             kernel[i] ? "large" : "small");
        if (!attr)
            w->kernel[i] = kernel[i];
    }
    w->auto_pad = attr_text(c, "auto_pad", "NOTSET");
    return 0;
}

static int64_t extent(const window *w, int i)
{
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* auto_pad made numbers: SAME spreads what ceil(in / stride) positions need, an odd one at the end
 * (UPPER) or the beginning. */
static void resolve_pads(window *w, int i, int64_t in)
{
    if (!strcmp(w->auto_pad, "VALID")) {
        w->pad[i] = w->pad[w->n + i] = 0;
    } else if (!strncmp(w->auto_pad, "SAME", 4)) {
        int64_t out = (in + w->stride[i] - 1) / w->stride[i], total = (out - 1) * w->stride[i] + extent(w, i) - in;
        total = total > 0 ? total : 0;
        bool lower = !strcmp(w->auto_pad, "SAME_LOWER");
        w->pad[i] = lower ? total - total / 2 : total / 2;
        w->pad[w->n + i] = total - w->pad[i];
    }
}

/* Positions of the window along spatial dimension i. A window of ceil_mode that would start behind
 * the input and its front padding does not count. */
static int slide(call *c, window *w, int i, bz_dim in, bool ceil_mode, bz_dim *out)
{
    if (bz_is_symbol(in) || bz_is_symbol(w->kernel[i])) {
        *out = new_symbol(c);
        return 0;
    }
    if (in > INT64_MAX / 8)
        return call_fail(c, "a dimension is impossibly large");
    resolve_pads(w, i, in);
    int64_t room = in + w->pad[i] + w->pad[w->n + i] - extent(w, i);
    if (room < 0 && in > 0)
        return call_fail(c, "its window of %lld does not fit into %lld with padding %lld+%lld", (long long)extent(w, i),
                         (long long)in, (long long)w->pad[i], (long long)w->pad[w->n + i]);
    int64_t n = room < 0 ? 0 : room / w->stride[i] + 1;
    if (ceil_mode && room > 0 && room % w->stride[i] && n * w->stride[i] < in + w->pad[i])
        n++;
    *out = n;
    return 0;
}

static void note_window(call *c, const window *w, bool kernel)
{
    if (kernel)
        param_ints(c, "kernel", w->kernel, w->n);
    param_ints(c, "stride", w->stride, w->n);
    param_ints(c, "pad", w->pad, 2 * w->n);
    param_ints(c, "dilation", w->dilation, w->n);
}

int conv_shape(call *c, const bz_type *x, const bz_type *w, bz_dim *dims)
{
    return conv_grouped(c, x, w, attr_int(c, "group", 1), dims);
}

int conv_grouped(call *c, const bz_type *x, const bz_type *w, int64_t group, bz_dim *dims)
{
    window win = {0};
    if (w->rank != x->rank)
        return call_fail(c, "input and weights have %d and %d dimensions", x->rank, w->rank);
    if (read_window(c, x->rank, w->dims + 2, &win))
        return -1;
    if (group < 1 || group > INT32_MAX || (!bz_is_symbol(w->dims[0]) && w->dims[0] % group))
        return call_fail(c, "%lld output channels cannot be split into %lld groups", (long long)w->dims[0],
                         (long long)group);
    bz_dim channels = dim_mul(c, w->dims[1], group);
    if (!dims_fit(x->dims[1], channels))
        return call_fail(c, "the input has %lld channels, the weights want %lld", (long long)x->dims[1],
                         (long long)channels);
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (int i = 0; i < win.n; i++)
        if (slide(c, &win, i, x->dims[2 + i], false, &dims[2 + i]))
            return -1;
    note_window(c, &win, false);
    param_int(c, "group", group);
    return 0;
}

/* Every output element takes one multiply-accumulate per weight of its channel. */
int64_t conv_macs(const bz_type *w, const bz_type *y)
{
    int64_t n = bz_type_elements(y), per = 1;
    for (int i = 1; i < w->rank; i++)
        per = bz_is_symbol(w->dims[i]) || __builtin_mul_overflow(per, w->dims[i], &per) ? 0 : per;
    return n < 0 || __builtin_mul_overflow(n, per, &n) ? 0 : n;
}

int shape_conv(call *c)
{
    const bz_type *x = need_any(c, 0), *w = need_any(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    if (same_dtype(c, x, w) || conv_shape(c, x, w, dims))
        return -1;
    return set_out(c, 0, x->dtype, x->rank, dims);
}

void cost_conv(call *c)
{
    c->macs = conv_macs(&c->in[1], &c->out[0]);
    if (in_type(c, 2))
        c->flops = bz_type_elements(&c->out[0]);
}

/* Output size of the transpose: given, or what a convolution would need to be undone. */
static int unslide(call *c, window *w, int i, bz_dim in, int64_t output_padding, const int64_t *wanted, bz_dim *out)
{
    if (bz_is_symbol(in) || bz_is_symbol(w->kernel[i])) {
        *out = wanted ? wanted[i] : new_symbol(c);
        return 0;
    }
    if (in > INT32_MAX)
        return call_fail(c, "a dimension is impossibly large");
    int64_t full = w->stride[i] * (in - 1) + output_padding + extent(w, i);
    bool same = !strncmp(w->auto_pad, "SAME", 4);
    if (wanted || same) {
        int64_t n = wanted ? wanted[i] : in * w->stride[i], total = full - n > 0 ? full - n : 0;
        bool upper = !strcmp(w->auto_pad, "SAME_UPPER");
        w->pad[i] = upper ? total / 2 : total - total / 2;
        w->pad[w->n + i] = total - w->pad[i];
        *out = n;
    } else {
        if (!strcmp(w->auto_pad, "VALID"))
            w->pad[i] = w->pad[w->n + i] = 0;
        *out = full - w->pad[i] - w->pad[w->n + i];
    }
    return *out < 0 ? call_fail(c, "its output would have a negative size") : 0;
}

static int shape_deconv(call *c)
{
    const bz_type *x = need_any(c, 0), *w = need(c, 1, x->rank);
    window win = {0};
    bz_dim dims[BZ_MAX_RANK];
    int64_t group = attr_int(c, "group", 1), extra[MAX_SPATIAL];
    int n_wanted;
    const int64_t *wanted = attr_ints(c, "output_shape", &n_wanted);
    if (same_dtype(c, x, w) || read_window(c, x->rank, w->dims + 2, &win) ||
        read_list(c, "output_padding", win.n, 0, 0, extra))
        return -1;
    if (wanted && n_wanted != win.n && n_wanted != win.n + 2)
        return call_fail(c, "output_shape has %d numbers where %d are needed", n_wanted, win.n);
    wanted = wanted && n_wanted == win.n + 2 ? wanted + 2 : wanted;
    for (int i = 0; wanted && i < win.n; i++)
        if (wanted[i] < 0 || wanted[i] > BZ_MAX_DIM)
            return call_fail(c, "output_shape has the impossible dimension %lld", (long long)wanted[i]);
    if (group < 1 || group > INT32_MAX || !dims_fit(x->dims[1], w->dims[0]))
        return call_fail(c, "the input has %lld channels, the weights want %lld in %lld groups", (long long)x->dims[1],
                         (long long)w->dims[0], (long long)group);
    dims[0] = x->dims[0];
    dims[1] = dim_mul(c, w->dims[1], group);
    for (int i = 0; i < win.n; i++)
        if (unslide(c, &win, i, x->dims[2 + i], extra[i], wanted, &dims[2 + i]))
            return -1;
    note_window(c, &win, false);
    param_ints(c, "extra", extra, win.n);
    param_int(c, "group", group);
    return set_out(c, 0, x->dtype, x->rank, dims);
}

/* Every input element meets every weight of its channel. */
static void cost_deconv(call *c)
{
    c->macs = conv_macs(&c->in[1], &c->in[0]);
    if (in_type(c, 2))
        c->flops = bz_type_elements(&c->out[0]);
}

int pool_shape(call *c, const bz_type *x, bz_dim *dims)
{
    window win = {0};
    bool ceil_mode = attr_int(c, "ceil_mode", 0) != 0;
    if (read_window(c, x->rank, NULL, &win))
        return -1;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int i = 0; i < win.n; i++)
        if (slide(c, &win, i, x->dims[2 + i], ceil_mode, &dims[2 + i]))
            return -1;
    note_window(c, &win, true);
    return 0;
}

int shape_pool(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    if (pool_shape(c, x, dims))
        return -1;
    if (!strcmp(c->op->kind, "avgpool"))
        param_int(c, "count_pad", attr_int(c, "count_include_pad", 0) != 0);
    if (!strcmp(c->op->kind, "lppool"))
        param_int(c, "p", attr_int(c, "p", 2));
    set_out(c, 0, x->dtype, x->rank, dims);
    return set_out(c, 1, BZ_I64, x->rank, dims);
}

/* One operation for every element of every window. */
void cost_pool(call *c)
{
    int64_t n = bz_type_elements(&c->out[0]);
    for (int i = 0; i < c->n_params; i++)
        for (int k = 0; !strcmp(c->params[i].name, "kernel") && k < c->params[i].n; k++)
            n = __builtin_mul_overflow(n, c->params[i].v[k], &n) ? 0 : n;
    c->flops = n;
}

int shape_global_pool(call *c)
{
    const bz_type *x = need_any(c, 0);
    bz_dim dims[BZ_MAX_RANK];
    if (x->rank < 2)
        return call_fail(c, "its input has %d dimensions: batch and channels are needed", x->rank);
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < 2 ? x->dims[i] : 1;
    if (!strcmp(c->op->kind, "globallppool"))
        param_int(c, "p", attr_int(c, "p", 2));
    return set_out(c, 0, x->dtype, x->rank, dims);
}

static const op ROWS[] = {
    {"Conv", NULL, "conv", BZ_COMPUTE, shape_conv, .cost = cost_conv, .flags = OP_KEEPS, .labels = "x w b"},
    {"ConvTranspose", NULL, "deconv", BZ_COMPUTE, shape_deconv, .cost = cost_deconv, .flags = OP_KEEPS,
     .labels = "x w b"},
    {"MaxPool", NULL, "maxpool", BZ_COMPUTE, shape_pool, .cost = cost_pool, .flags = OP_KEEPS,
     .labels = "x > y indices"},
    {"AveragePool", NULL, "avgpool", BZ_COMPUTE, shape_pool, .cost = cost_pool, .flags = OP_KEEPS, .labels = "x > y"},
    {"LpPool", NULL, "lppool", BZ_COMPUTE, shape_pool, .cost = cost_pool, .flags = OP_KEEPS, .labels = "x > y"},
    {"GlobalAveragePool", NULL, "globalavgpool", BZ_COMPUTE, shape_global_pool, .flops = 1, .flags = OP_KEEPS,
     .labels = "x"},
    {"GlobalMaxPool", NULL, "globalmaxpool", BZ_COMPUTE, shape_global_pool, .flops = 1, .flags = OP_KEEPS,
     .labels = "x"},
    {"GlobalLpPool", NULL, "globallppool", BZ_COMPUTE, shape_global_pool, .flops = 2, .flags = OP_KEEPS, .labels = "x"},
};

const op_table ops_conv = OP_TABLE(ROWS);
