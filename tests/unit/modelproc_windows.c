/* Convolutions and pooling: windows are moved step by step over drawn images, as ONNX says; how many there are, where the padding lies and how much
 * is multiplied must be what inference found. */
#include "chance.h"
#include "model_lines.h"

enum { SPATIAL = 2 };

typedef enum { NOTSET, VALID, SAME_UPPER, SAME_LOWER } padding;

static const char *const PADDING[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};

typedef struct {
    int n, batch, group, in_each, out_each; /* channels of a group */
    padding how;
    bool ceil;
    int in[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], pad[2 * SPATIAL];
    int out[SPATIAL];
} windows;

static int number(int low, int high)
{
    return low + (int)chance((unsigned)(high - low + 1));
}

static windows draw(void)
{
    windows w = {.n = number(1, SPATIAL),
                 .batch = number(1, 3),
                 .group = number(1, 2),
                 .in_each = number(1, 3),
                 .out_each = number(1, 3),
                 .how = (padding)number(0, 3),
                 .ceil = chance(2)};
    for (int i = 0; i < w.n; i++) {
        w.in[i] = number(1, 12);
        w.kernel[i] = number(1, 4);
        w.stride[i] = number(1, 3);
        w.dilation[i] = number(1, 2);
        w.pad[i] = w.how == NOTSET ? number(0, 2) : 0;
        w.pad[w.n + i] = w.how == NOTSET ? number(0, 2) : 0;
    }
    return w;
}

static int reach(const windows *w, int i)
{
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* An odd one lies at the end, or at the beginning. */
static void spread(windows *w, int i, int total, bool end)
{
    w->pad[i] = end ? total / 2 : total - total / 2;
    w->pad[w->n + i] = total - w->pad[i];
}

/* Moves the window; false where it fits nowhere. */
static bool move(windows *w, bool ceil)
{
    for (int i = 0; i < w->n; i++) {
        int whole = w->in[i] + w->pad[i] + w->pad[w->n + i];
        w->out[i] = 0;
        if (w->how >= SAME_UPPER) {
            int last = 0;
            for (int at = 0; at < w->in[i]; at += w->stride[i], w->out[i]++)
                last = at;
            int missing = last + reach(w, i) - w->in[i];
            spread(w, i, missing > 0 ? missing : 0, w->how == SAME_UPPER);
        } else if (whole < reach(w, i)) {
            return false;
        } else {
            for (int at = 0; at + reach(w, i) <= whole; at += w->stride[i])
                w->out[i]++;
            int next =
                w->out[i] * w->stride[i]; /* what would not fit, but begins before the end and reads something new */
            w->out[i] += ceil && next - w->stride[i] + reach(w, i) < whole && next < w->in[i] + w->pad[i];
        }
    }
    return true;
}

static void put_list(char *out, const char *name, const int *v, int n)
{
    sprintf(out + strlen(out), "%s%s=", strchr(out, '{') ? ";" : "{", name);
    for (int i = 0; i < n; i++)
        sprintf(out + strlen(out), "%s%d", i ? "x" : "", v[i]);
}

/* Written out, unless the default says the same. */
static void put_window(char *out, const windows *w, bool kernel)
{
    const int ones[SPATIAL] = {1, 1};
    if (kernel)
        put_list(out, "kernel_shape", w->kernel, w->n);
    if (memcmp(w->stride, ones, (size_t)w->n * sizeof *ones) || chance(2))
        put_list(out, "strides", w->stride, w->n);
    if (memcmp(w->dilation, ones, (size_t)w->n * sizeof *ones) || chance(2))
        put_list(out, "dilations", w->dilation, w->n);
    if (w->how == NOTSET)
        put_list(out, "pads", w->pad, 2 * w->n);
    else
        sprintf(out + strlen(out), "%sauto_pad=%s", strchr(out, '{') ? ";" : "{", PADDING[w->how]);
}

static void put_sizes(char *out, const char *name, int first, int second, const int *v, int n)
{
    sprintf(out + strlen(out), "%s=%dx%d", name, first, second);
    for (int i = 0; i < n; i++)
        sprintf(out + strlen(out), "x%d", v[i]);
    strcat(out, " ");
}

static int64_t product(int64_t n, const int *v, int count)
{
    for (int i = 0; i < count; i++)
        n *= v[i];
    return n;
}

static void assert_window(const bz_layer *l, const windows *w, int channels)
{
    assert_int_equal(l->out[0].rank, w->n + 2);
    assert_int_equal(l->out[0].dims[0], w->batch);
    assert_int_equal(l->out[0].dims[1], channels);
    for (int i = 0; i < w->n; i++) {
        assert_int_equal(l->out[0].dims[2 + i], w->out[i]);
        assert_int_equal(bz_layer_param(l, "stride")->v[i], w->stride[i]);
        assert_int_equal(bz_layer_param(l, "dilation")->v[i], w->dilation[i]);
    }
    for (int i = 0; i < 2 * w->n; i++)
        assert_int_equal(bz_layer_param(l, "pad")->v[i], w->pad[i]);
}

static void convolutions(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        windows w = draw();
        char values[160] = "", nodes[200] = "Conv";
        bool fits = move(&w, false), bias = chance(2);
        int channels = w.group * w.out_each;
        if (!fits)
            continue;
        put_window(nodes, &w, chance(2));
        sprintf(nodes + strlen(nodes), ";group=%d} X,w%s y", w.group, bias ? ",b" : "");
        put_sizes(values, "X", w.batch, w.group * w.in_each, w.in, w.n);
        put_sizes(values, "w", channels, w.in_each, w.kernel, w.n);
        sprintf(values + strlen(values), "b=%d", channels);
        subject s = infer(values, nodes);
        const bz_layer *l = &s.layers->layer[0];
        int64_t made = product((int64_t)w.batch * channels, w.out, w.n);
        assert_window(l, &w, channels);
        assert_int_equal(l->macs, product(made * w.in_each, w.kernel, w.n));
        assert_int_equal(l->flops, 2 * l->macs + (bias ? made : 0));
        assert_int_equal(bz_layer_int(l, "group", 0), w.group);
        end(&s);
    }
}

static void poolings(void **state)
{
    static const char *const OPS[] = {"MaxPool", "AveragePool", "LpPool"};
    (void)state;
    for (int round = 0; round < 400; round++) {
        windows w = draw();
        char values[160] = "", nodes[200];
        strcpy(nodes, OPS[round % 3]);
        if (!move(&w, w.ceil))
            continue;
        put_window(nodes, &w, true);
        sprintf(nodes + strlen(nodes), "%s} X y", w.ceil ? ";ceil_mode=1" : chance(2) ? ";ceil_mode=0" : "");
        put_sizes(values, "X", w.batch, w.in_each, w.in, w.n);
        subject s = infer(values, nodes);
        const bz_layer *l = &s.layers->layer[0];
        assert_window(l, &w, w.in_each);
        for (int i = 0; i < w.n; i++)
            assert_int_equal(bz_layer_param(l, "kernel")->v[i], w.kernel[i]);
        assert_int_equal(l->flops, product(product((int64_t)w.batch * w.in_each, w.out, w.n), w.kernel, w.n));
        end(&s);
    }
}

/* What is written by a window at the first element up to one at the last, cut by the padding; or a size is wanted, and the padding follows. */
static void transposed_convolutions(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        windows w = draw();
        char values[160] = "", nodes[240] = "ConvTranspose";
        bool wanted = chance(3) == 0, fits = true, bias = chance(2);
        int extra[SPATIAL], channels = w.group * w.out_each;
        for (int i = 0; i < w.n; i++) {
            extra[i] = number(0, w.stride[i] - 1);
            int whole = (w.in[i] - 1) * w.stride[i] + reach(&w, i) + extra[i];
            if (wanted)
                w.out[i] = number(whole > 3 ? whole - 3 : 1, whole);
            else if (w.how >= SAME_UPPER)
                w.out[i] = w.in[i] * w.stride[i];
            else
                w.out[i] = whole - w.pad[i] - w.pad[w.n + i];
            if (wanted || w.how >= SAME_UPPER)
                spread(&w, i, whole > w.out[i] ? whole - w.out[i] : 0, w.how == SAME_UPPER);
            fits &= w.out[i] >= 0;
        }
        if (!fits)
            continue;
        put_window(nodes, &w, chance(2));
        put_list(nodes, "output_padding", extra, w.n);
        if (wanted)
            put_list(nodes, "output_shape", w.out, w.n);
        sprintf(nodes + strlen(nodes), ";group=%d} X,w%s y", w.group, bias ? ",b" : "");
        put_sizes(values, "X", w.batch, w.group * w.in_each, w.in, w.n);
        put_sizes(values, "w", w.group * w.in_each, w.out_each, w.kernel, w.n);
        sprintf(values + strlen(values), "b=%d", channels);
        subject s = infer(values, nodes);
        const bz_layer *l = &s.layers->layer[0];
        assert_window(l, &w, channels);
        assert_int_equal(
            l->macs, product(product((int64_t)w.batch * w.group * w.in_each * w.out_each, w.in, w.n), w.kernel, w.n));
        assert_int_equal(l->flops, 2 * l->macs + (bias ? product((int64_t)w.batch * channels, w.out, w.n) : 0));
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions), cmocka_unit_test(poolings),
                                       cmocka_unit_test(transposed_convolutions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
