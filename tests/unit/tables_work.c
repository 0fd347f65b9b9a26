/* What operators of PyTorch compute and move, by formulas over the sizes that it records. */
#include "chance.h"
#include "tables/layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROUNDS = 60 };

static const struct {
    const char *name;
    int bytes;
} TYPES[] = {{"float", 4}, {"c10::Half", 2}, {"double", 8}, {"signed_char", 1}, {"c10::BFloat16", 2}};

static int draw(int least, unsigned more)
{
    return least + (int)chance(more);
}

static void check(const char *name, const char *inputs, const char *values, double flops, double reads, double writes)
{
    int type = (int)chance(5);
    char detail[512];
    layer_work w;
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
    size_t op = bz_trace_add(t, BZ_EVENT_OP, 0, 10, bz_trace_text(t, name), lane);
    snprintf(detail, sizeof detail, "inputs=[%s] types=[%s,%s] values=[%s]", inputs, TYPES[type].name, TYPES[type].name,
             values);
    t->event[BZ_EVENT_OP].detail[op] = bz_trace_text(t, detail);
    assert_true(layer_work_of(t, op, &w));
    reads *= TYPES[type].bytes;
    writes *= TYPES[type].bytes;
    if (w.flops != flops || w.reads != reads || w.writes != writes || w.bytes != TYPES[type].bytes)
        fail_msg("%s %s: %g operations, %g and %g bytes, not %g, %g and %g", name, detail, w.flops, w.reads, w.writes,
                 flops, reads, writes);
    bz_trace_free(t);
}

static void products(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int b = draw(2, 5), m = draw(1, 40), n = draw(1, 40), k = draw(1, 40);
        double flops = 2. * m * n * k;
        char inputs[128];
        snprintf(inputs, sizeof inputs, "[%d,%d],[%d,%d]", m, k, k, n);
        check("aten::mm", inputs, "", flops, m * k + k * n, m * n);
        snprintf(inputs, sizeof inputs, "[%d],[%d,%d],[%d,%d],[],[]", n, m, k, k, n);
        check("aten::addmm", inputs, "", flops, m * k + k * n, m * n);
        snprintf(inputs, sizeof inputs, "[%d,%d,%d],[%d,%d,%d]", b, m, k, b, k, n);
        check("aten::bmm", inputs, "", b * flops, b * (m * k + k * n), b * m * n);
        snprintf(inputs, sizeof inputs, "[%d,1,%d,%d],[3,%d,%d]", b, m, k, k, n);
        check("aten::matmul", inputs, "", 3 * b * flops, b * m * k + 3 * k * n, 3 * b * m * n);
        snprintf(inputs, sizeof inputs, "[%d,%d,%d],[%d]", b, m, k, k);
        check("aten::matmul", inputs, "", 2. * b * m * k, b * m * k + k, b * m);
        snprintf(inputs, sizeof inputs, "[%d,%d,%d],[%d,%d],[%d]", b, m, k, n, k, n);
        check("aten::linear", inputs, "", b * flops, b * m * k + n * k, b * m * n);
    }
}

/* Each result of a convolution adds up the channels of its group under the window; each input of a transposed one is added to as many results. */
static void convolutions(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int n = draw(1, 4), group = draw(1, 3), in = group * draw(1, 6), out = group * draw(1, 6), kernel = draw(1, 4),
            stride = draw(1, 3), pad = draw(0, 2), dilation = draw(1, 2), more = (int)chance((unsigned)stride);
        int reach = (kernel - 1) * dilation + 1, size = reach + draw(0, 12), y = (size + 2 * pad - reach) / stride + 1,
            longer = (size - 1) * stride - 2 * pad + reach + more;
        char inputs[128], values[160];
        snprintf(inputs, sizeof inputs, "[%d,%d,%d,9],[%d,%d,%d,2],[%d]", n, in, size, out, in / group, kernel, out);
        snprintf(values, sizeof values, ",,,[%d,_1],[%d,_0],[%d,_1],False,[0,_0],%d", stride, pad, dilation, group);
        check("aten::convolution", inputs, values, 2. * n * out * y * 8 * (in / group) * kernel * 2,
              n * in * size * 9 + out * (in / group) * kernel * 2, n * out * y * 8);
        snprintf(inputs, sizeof inputs, "[%d,%d,%d],[%d,%d,%d],[]", n, in, size, out, in / group, kernel);
        snprintf(values, sizeof values, ",,,[%d],[%d],[%d],%d", stride, pad, dilation, group);
        check("aten::conv1d", inputs, values, 2. * n * out * y * (in / group) * kernel,
              n * in * size + out * (in / group) * kernel, n * out * y);
        if (longer < 1)
            continue;
        snprintf(inputs, sizeof inputs, "[%d,%d,%d,9],[%d,%d,%d,2],[]", n, in, size, in, out / group, kernel);
        snprintf(values, sizeof values, ",,,[%d,_1],[%d,_0],[%d,_1],True,[%d,_0],%d", stride, pad, dilation, more,
                 group);
        check("aten::convolution", inputs, values, 2. * n * in * size * 9 * (out / group) * kernel * 2,
              n * in * size * 9 + in * (out / group) * kernel * 2, n * out * longer * 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(convolutions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
