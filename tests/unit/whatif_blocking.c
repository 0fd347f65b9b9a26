/* A call that copies results to the host waits for all kernels before them. In the graph that wait is no work of the host's:
 * a faster device shortens it. */
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

enum { KERNELS = 5, US = 1000 };

static void add_kernel(bz_trace *t, uint32_t host, uint32_t stream, uint32_t number, int64_t launched, int64_t start,
                       int64_t end)
{
    size_t a = bz_trace_add(t, BZ_EVENT_API, launched, launched + 5 * US, bz_trace_text(t, "cudaLaunchKernel"), host),
           k = bz_trace_add(t, BZ_EVENT_KERNEL, start, end, bz_trace_text(t, "gemm"), stream);
    t->event[BZ_EVENT_API].correlation[a] = t->event[BZ_EVENT_KERNEL].correlation[k] = number;
}

static bz_trace *record(void)
{
    enum { TO_HOST = 2 };
    bz_trace *t = bz_trace_new();
    bz_error err;
    uint32_t source = bz_trace_source(t, "made", "made"), host = bz_trace_thread(t, source, 1, 1),
             stream = bz_trace_stream(t, source, 1, 0, 1, 7);
    bz_trace_add(t, BZ_EVENT_RANGE, 0, 5200 * US, bz_trace_text(t, "benanza_iteration"), host);
    for (uint32_t i = 0; i < KERNELS; i++)
        add_kernel(t, host, stream, i + 1, (10 + 8 * (int64_t)i) * US, (20 + 1000 * (int64_t)i) * US,
                   (1020 + 1000 * (int64_t)i) * US);
    size_t a = bz_trace_add(t, BZ_EVENT_API, 50 * US, 5040 * US, bz_trace_text(t, "cudaMemcpy"), host),
           c = bz_trace_add(t, BZ_EVENT_COPY, 5021 * US, 5030 * US, bz_trace_text(t, "Memcpy DtoH"), stream);
    t->event[BZ_EVENT_API].correlation[a] = t->event[BZ_EVENT_COPY].correlation[c] = KERNELS + 1;
    t->event[BZ_EVENT_COPY].value[c] = TO_HOST;
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static void shortened(void **state)
{
    (void)state;
    bz_trace *t = record();
    bz_flow f;
    bz_error err;
    bz_arena arena = {0};
    int64_t before = 0, after;
    if (bz_flow_make(t, bz_typical_iteration(t), &f, &err) || bz_flow_time(&f, &arena, NULL, &before, &err))
        fail_msg("%s", err.text);
    assert_int_equal(before, f.measured);
    for (uint32_t i = 0; i < f.n; i++)
        if (f.task[i].kind == BZ_TASK_KERNEL)
            bz_flow_scale(&f, i, 0.5);
    assert_int_equal(bz_flow_time(&f, &arena, NULL, &after, &err), 0);
    assert_in_range(after, before - 2510 * US, before - 2490 * US);
    bz_arena_free(&arena);
    bz_flow_free(&f);
    bz_trace_free(t);
}

/* What a page shows of it: the time line after all changes is that of the last row. */
static void shown(void **state)
{
    (void)state;
    bz_trace *t = record();
    bz_arena arena = {0};
    const bz_whatif_shown *s = bz_whatif_show(t, NULL, &arena);
    assert_non_null(s);
    assert_int_equal(s->before.total, s->whatif.simulated);
    assert_true(s->whatif.n_greedy > 0);
    assert_int_equal(s->after.total, s->whatif.greedy[s->whatif.n_greedy - 1].time);
    assert_true(s->after.total < s->before.total);
    bz_arena_free(&arena);
    bz_trace_free(t);
    t = bz_trace_new(); /* of nothing there is nothing to show */
    bz_error err;
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_null(bz_whatif_show(t, NULL, &arena));
    bz_arena_free(&arena);
    bz_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shortened), cmocka_unit_test(shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
