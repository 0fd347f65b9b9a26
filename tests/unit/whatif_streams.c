/* Ways of a model beside each other: the recording's calls are found in the model, and what joins the ways waits for all. */
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

#include "whatif_ask.h"

enum { US = 1000 };

/* tests/cases/analyze/branches.onnx: a stem, from which three ways lead to a concat: a convolution, two, and a pooling. */
static const struct {
    const char *call, *x, *w, *pad, *kernel; /* call NULL: a kernel of the framework's */
    int64_t us;
} WORK[] = {{"cudnnConvolutionForward", "1,3,32,32", "16,3,3,3", "1,1", "implicit_convolve_sgemm", 50},
            {NULL, NULL, NULL, NULL, "relu_kernel_mshadow_op::relu", 10},
            {"cudnnConvolutionForward", "1,16,32,32", "16,16,1,1", "0,0", "implicit_convolve_sgemm", 100},
            {"cudnnConvolutionForward", "1,16,32,32", "8,16,1,1", "0,0", "implicit_convolve_sgemm", 40},
            {"cudnnConvolutionForward", "1,8,32,32", "16,8,3,3", "1,1", "implicit_convolve_sgemm", 60},
            {NULL, NULL, NULL, NULL, "concat_kernel", 10},
            {NULL, NULL, NULL, NULL, "other_kernel", 30}};
enum { N = sizeof WORK / sizeof *WORK };

static bz_trace *record(void)
{
    bz_trace *t = bz_trace_new();
    bz_error err;
    uint32_t source = bz_trace_source(t, "made", "made"), host = bz_trace_thread(t, source, 1, 1),
             stream = bz_trace_stream(t, source, 1, 0, 1, 7);
    int64_t at = 0, there = 20 * US;
    for (uint32_t i = 0; i < N; i++) {
        if (WORK[i].call) {
            char text[400];
            snprintf(text, sizeof text,
                     "xDesc.dataType=CUDNN_DATA_FLOAT xDesc.dimA=[%s] wDesc.dimA=[%s] convDesc.padA=[%s] "
                     "convDesc.strideA=[1,1] convDesc.dilationA=[1,1] convDesc.groupCount=1",
                     WORK[i].x, WORK[i].w, WORK[i].pad);
            size_t c = bz_trace_add(t, BZ_EVENT_CALL, at, at + 8 * US, bz_trace_text(t, WORK[i].call), host);
            t->event[BZ_EVENT_CALL].flags[c] = BZ_CALL_EXECUTES;
            t->event[BZ_EVENT_CALL].detail[c] = bz_trace_text(t, text);
        }
        size_t a = bz_trace_add(t, BZ_EVENT_API, at + US, at + 6 * US, bz_trace_text(t, "cudaLaunchKernel"), host),
               k = bz_trace_add(t, BZ_EVENT_KERNEL, there, there + WORK[i].us * US, bz_trace_text(t, WORK[i].kernel),
                                stream);
        t->event[BZ_EVENT_API].correlation[a] = t->event[BZ_EVENT_KERNEL].correlation[k] = i + 1;
        at += 10 * US;
        there += WORK[i].us * US;
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

/* The iteration's time, or 0 where it does not apply. */
static int64_t time_with(const bz_trace *t, const char *what, int64_t *before)
{
    bz_arena arena = {0};
    bz_whatif w;
    bz_prediction p = whatif_ask(t, BZ_NONE, what, &arena, &w);
    *before = w.simulated;
    if (p.changed)
        assert_true(p.low <= p.time && p.time <= p.high);
    else
        assert_non_null(p.because);
    bz_arena_free(&arena);
    return p.changed ? p.time : 0;
}

static void ways(void **state)
{
    (void)state;
    const char *model = BENANZA_SOURCE "/tests/cases/analyze/branches.onnx";
    bz_trace *t = record();
    char text[600];
    int64_t before;
    /* one way takes 100 µs, the other 40 and 60: together 100 µs where nothing slows them down */
    snprintf(text, sizeof text, "streams:overlap=1,event=0,batch=1,file=%s", model);
    int64_t ideal = time_with(t, text, &before);
    assert_int_equal(before, 320 * US);
    /* no GPU is named, so each kernel may fill it: they gain nothing */
    assert_int_equal(ideal, before);
    snprintf(text, sizeof text, "streams:streams=1,event=0,batch=1,file=%s", model);
    assert_int_equal(time_with(t, text, &before), 0);
    bz_trace_free(t);
    t = record();
    bz_trace_fact(t, "gpu", "Tesla V100-SXM2-16GB");
    for (uint32_t i = 0; i < N; i++)
        t->event[BZ_EVENT_KERNEL].launched[i] =
            bz_trace_launched(t, &(bz_launched){.grid = {8, 1, 1}, .block = {128, 1, 1}});
    snprintf(text, sizeof text, "streams:overlap=1,event=0,batch=1,file=%s", model);
    assert_int_equal(time_with(t, text, &before), 220 * US);
    snprintf(text, sizeof text, "streams:overlap=0,event=0,batch=1,file=%s", model);
    assert_int_equal(time_with(t, text, &before), 320 * US);
    snprintf(text, sizeof text, "streams:overlap=1,event=0,batch=4,file=%s", model); /* other shapes: another model */
    assert_int_equal(time_with(t, text, &before), 0);
    bz_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
