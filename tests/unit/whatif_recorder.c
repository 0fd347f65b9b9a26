/* Gains where nobody records: one program, once as it runs alone and once as PyTorch's profiler records it, which takes time for every operator and
 * every call. */
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

#include "whatif_ask.h"

enum { US = 1000, STEPS = 40, OPERATORS = 3, CALL = 5, WORK = 6, LOADED = 30 };

/* What loads data: so many operators of 6 µs within another one. Returns when it is over. */
static int64_t load(bz_trace *t, int64_t at, int64_t adds, uint32_t host)
{
    int64_t start = at;
    at += adds * US;
    for (int i = 0; i < LOADED; i++) {
        bz_trace_add(t, BZ_EVENT_OP, at, at + (WORK + adds) * US, bz_trace_text(t, "aten::to"), host);
        at += (WORK + adds) * US;
    }
    bz_trace_add(t, BZ_EVENT_OP, start, at, bz_trace_text(t, "enumerate(DataLoader)#_Iter.__next__"), host);
    return at;
}

/* Iterations that load data, and of 40 steps: operators within each other around a launch, each of which works for 6 µs, and a kernel. */
static bz_trace *record(const char *format, int64_t adds, int64_t kernel)
{
    bz_trace *t = bz_trace_new();
    bz_error err;
    uint32_t source = bz_trace_source(t, "made", format), host = bz_trace_thread(t, source, 1, 1),
             stream = bz_trace_stream(t, source, 1, 0, 1, 7), correlation = 0;
    int64_t at = 0, free_at = 0;
    for (int iteration = 0; iteration < 3; iteration++) {
        int64_t start = at;
        at = load(t, at, adds, host);
        for (int i = 0; i < STEPS; i++) {
            int64_t opened[OPERATORS];
            for (int k = 0; k < OPERATORS; k++) {
                opened[k] = at;
                at += (WORK + adds) * US;
            }
            size_t a =
                bz_trace_add(t, BZ_EVENT_API, at, at + (CALL + adds) * US, bz_trace_text(t, "cudaLaunchKernel"), host);
            int64_t begin = at + (CALL + adds) * US > free_at ? at + (CALL + adds) * US : free_at;
            size_t k = bz_trace_add(t, BZ_EVENT_KERNEL, begin, begin + kernel * US, bz_trace_text(t, "relu"), stream);
            t->event[BZ_EVENT_API].correlation[a] = t->event[BZ_EVENT_KERNEL].correlation[k] = ++correlation;
            free_at = begin + kernel * US;
            at += (CALL + adds) * US;
            for (int o = 0; o < OPERATORS; o++)
                bz_trace_add(t, BZ_EVENT_OP, opened[o], at, bz_trace_text(t, "aten::relu"), host);
        }
        bz_trace_add(t, BZ_EVENT_API, at, free_at > at ? free_at + US : at + US,
                     bz_trace_text(t, "cudaDeviceSynchronize"), host);
        at = (free_at > at ? free_at : at) + US;
        bz_trace_add(t, BZ_EVENT_RANGE, start, at, bz_trace_text(t, "benanza_iteration"), host);
        at += 100 * US;
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static bz_prediction ask(const bz_trace *t, const char *change, bz_arena *arena, bz_whatif *w)
{
    return whatif_ask(t, bz_typical_iteration(t), change, arena, w);
}

static bool near(int64_t a, int64_t b)
{
    return llabs(a - b) <= b / 50;
}

/* It adds 4 µs, the middle of what such profilers do: without them the iteration takes what it takes alone, and so does the gain. */
static void test_alone(void **state)
{
    static const char *const CHANGES[] = {"host:times=2", "device:times=2", "cuda-graph:recorder=0", "prefetch"};
    (void)state;
    for (int64_t kernel = 1; kernel <= 8; kernel *= 2)
        for (size_t c = 0; c < sizeof CHANGES / sizeof *CHANGES; c++) {
            bz_arena arena = {0};
            bz_whatif recorded, alone;
            bz_trace *t = record("PyTorch trace", 4, kernel), *u = record("made", 0, kernel);
            bz_prediction p = ask(t, CHANGES[c], &arena, &recorded), q = ask(u, CHANGES[c], &arena, &alone);
            int64_t gain = alone.simulated - q.time;
            assert_int_equal(recorded.adds[1], 4 * US);
            assert_int_equal(alone.adds[1], 0);
            if (!near(recorded.unrecorded[1], alone.simulated))
                fail_msg("kernels of %d µs: %.0f µs alone, not %.0f", (int)kernel,
                         1e-3 * (double)recorded.unrecorded[1], 1e-3 * (double)alone.simulated);
            if (llabs(p.unrecorded - gain) > alone.simulated / 50 || p.unrecorded_low > gain ||
                p.unrecorded_high < gain)
                fail_msg("%s, kernels of %d µs: gains %.0f µs alone (%.0f to %.0f), not %.0f", CHANGES[c], (int)kernel,
                         1e-3 * (double)p.unrecorded, 1e-3 * (double)p.unrecorded_low, 1e-3 * (double)p.unrecorded_high,
                         1e-3 * (double)gain);
            assert_true(recorded.unrecorded[0] < recorded.unrecorded[1] &&
                        recorded.unrecorded[1] < recorded.unrecorded[2] && recorded.unrecorded[2] < recorded.simulated);
            bz_trace_free(t);
            bz_trace_free(u);
            bz_arena_free(&arena);
        }
}

/* A device that is busy all the time hides what the host takes, but no longer where a change makes it faster. */
static void test_hidden(void **state)
{
    bz_arena arena = {0};
    bz_whatif w, alone;
    bz_trace *t = record("PyTorch trace", 4, 200), *u = record("made", 0, 200);
    (void)state;
    bz_prediction p = ask(t, "host:times=2", &arena, &w);
    assert_false(bz_whatif_differs_unrecorded(&w, &p));
    p = ask(t, "device:times=100", &arena, &w);
    bz_prediction q = ask(u, "device:times=100", &arena, &alone);
    assert_true(bz_whatif_differs_unrecorded(&w, &p));
    assert_true(w.simulated - p.time < alone.simulated - q.time - w.simulated / 20);
    assert_true(near(p.unrecorded, alone.simulated - q.time));
    bz_trace_free(t);
    bz_trace_free(u);
    bz_arena_free(&arena);
}

static void test_other_recorders(void **state)
{
    bz_arena arena = {0};
    bz_whatif w;
    bz_trace *t = record("Nsight Systems database", 4, 2);
    (void)state;
    bz_prediction p = ask(t, "host:times=2", &arena, &w);
    assert_int_equal(w.adds[1], 0);
    assert_false(bz_whatif_differs_unrecorded(&w, &p));
    bz_trace_free(t);
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone), cmocka_unit_test(test_hidden),
                                       cmocka_unit_test(test_other_recorders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
