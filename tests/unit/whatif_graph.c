/* Launching by one CUDA graph: what goes of the host's time, what may stay, and what recording added to it; and a change for
 * training, asked of an inference. */
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

#include "whatif_ask.h"

enum { US = 1000, KERNELS = 20, CALL = 10, BETWEEN = 5, PAUSE = 1000, PAUSE_BEHIND = 9, BEHIND = 400 };

/* Calls of 10 µs, 5 µs apart but for one pause of 1 ms; each kernel takes 2 µs and begins 12 µs behind its call's start, the last one `late` later. */
static bz_trace *record_late(const char *format, const char *kernel, int64_t late)
{
    bz_trace *t = bz_trace_new();
    bz_error err;
    uint32_t source = bz_trace_source(t, "made", format), host = bz_trace_thread(t, source, 1, 1),
             stream = bz_trace_stream(t, source, 1, 0, 1, 7);
    int64_t at = 0, end = 0;
    for (uint32_t i = 0; i < KERNELS; i++) {
        int64_t start = at + 12 * US + (i == KERNELS - 1 ? late : 0);
        size_t a = bz_trace_add(t, BZ_EVENT_API, at, at + CALL * US, bz_trace_text(t, "cudaLaunchKernel"), host),
               k = bz_trace_add(t, BZ_EVENT_KERNEL, start, start + 2 * US, bz_trace_text(t, kernel), stream);
        t->event[BZ_EVENT_API].correlation[a] = t->event[BZ_EVENT_KERNEL].correlation[k] = i + 1;
        end = start + 2 * US;
        at += (CALL + (i == PAUSE_BEHIND ? PAUSE : BETWEEN)) * US;
    }
    bz_trace_add(t, BZ_EVENT_RANGE, 0, end, bz_trace_text(t, "benanza_iteration"), host);
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static bz_trace *record(const char *format, const char *kernel)
{
    return record_late(format, kernel, 0);
}

static bz_prediction ask(const bz_trace *t, const char *change, bz_arena *arena, int64_t *before)
{
    bz_whatif w;
    bz_prediction p = whatif_ask(t, bz_typical_iteration(t), change, arena, &w);
    *before = w.simulated;
    return p;
}

/* One launch is left, then 12 µs to its kernel, and 20 kernels with 0.5, 1 or 1.6 µs between them: unless the pause, of which 5 to 10
 * times the usual is not more than a launch, stays. */
static void test_pauses(void **state)
{
    bz_arena arena = {0};
    bz_trace *t = record("made", "gemm");
    int64_t before;
    (void)state;
    bz_prediction p = ask(t, "cuda-graph:recorder=0", &arena, &before);
    assert_int_equal(before, (18 * (CALL + BETWEEN) + CALL + PAUSE + 14) * US);
    assert_int_equal(p.changed, KERNELS - 1);
    assert_in_range(p.time, (12 + KERNELS * 2) * US, (12 + KERNELS * 3) * US);
    p = ask(t, "cuda-graph:recorder=0,pauses=1,node=1", &arena, &before);
    assert_in_range(p.time, (PAUSE - 10 * (CALL + BETWEEN)) * US, PAUSE * US);
    p = ask(t, "cuda-graph:recorder=0,pauses=1,usual=1000", &arena, &before); /* nothing is that long */
    assert_in_range(p.time, 0, (12 + KERNELS * 3) * US);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* What nothing explains is no work of the host's that a graph spares, and stays. */
static void test_unexplained(void **state)
{
    bz_arena arena = {0};
    const int64_t late = 100 * US;
    bz_trace *t = record("made", "gemm"), *other = record_late("made", "gemm", late);
    int64_t before;
    (void)state;
    int64_t without = ask(t, "cuda-graph:recorder=0,node=1", &arena, &before).time;
    assert_int_equal(ask(other, "cuda-graph:recorder=0,node=1", &arena, &before).time, without + late);
    bz_trace_free(t);
    bz_trace_free(other);
    bz_arena_free(&arena);
}

/* Four µs of each call but the last are no gain; of Nsight's calls nine are not, where nothing else is given. Of twelve a call
 * of 10 µs has nine, and what lies behind it the rest. */
static void test_recorder(void **state)
{
    bz_arena arena = {0};
    int64_t before;
    (void)state;
    bz_trace *t = record("made", "gemm"), *nsight = record("Nsight Systems SQLite", "gemm");
    int64_t plain = ask(t, "cuda-graph:recorder=0,node=1", &arena, &before).time,
            four = ask(t, "cuda-graph:recorder=4,node=1", &arena, &before).time,
            nine = ask(t, "cuda-graph:recorder=9,node=1", &arena, &before).time,
            twelve = ask(t, "cuda-graph:recorder=12,node=1", &arena, &before).time,
            nsights = ask(nsight, "cuda-graph:node=1", &arena, &before).time;
    assert_in_range(four - plain, 4 * (KERNELS - 2) * US, 4 * KERNELS * US);
    assert_in_range(nine - plain, 9 * (KERNELS - 2) * US, 9 * KERNELS * US);
    assert_in_range(twelve - plain, 12 * (KERNELS - 2) * US, 12 * KERNELS * US);
    assert_int_equal(nsights, nine);
    bz_prediction p = ask(t, "cuda-graph:recorder=1000", &arena, &before); /* no call becomes shorter than 1 µs */
    assert_in_range(p.time, plain + 9 * (KERNELS - 2) * US, before);
    bz_trace_free(nsight);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* A library's call that is on record costs as much as its launch, in front of it. */
static void test_library_calls(void **state)
{
    enum { STEPS = 20, STEP = 40 };
    int64_t gone[2];
    bz_arena arena = {0};
    (void)state;
    for (int library = 0; library < 2; library++) {
        bz_trace *t = bz_trace_new();
        bz_error err;
        uint32_t source = bz_trace_source(t, "made", "Nsight Systems SQLite"), host = bz_trace_thread(t, source, 1, 1),
                 stream = bz_trace_stream(t, source, 1, 0, 1, 7);
        for (int i = 0; i < STEPS; i++) {
            int64_t at = (int64_t)i * STEP * US;
            if (library) {
                size_t c = bz_trace_add(t, BZ_EVENT_CALL, at, at + 20 * US, bz_trace_text(t, "cudnnAddTensor"), host);
                t->event[BZ_EVENT_CALL].library[c] = BZ_LIBRARY_CUDNN;
            }
            size_t a = bz_trace_add(t, BZ_EVENT_API, at + 5 * US, at + 15 * US, bz_trace_text(t, "cudaLaunchKernel"),
                                    host),
                   k = bz_trace_add(t, BZ_EVENT_KERNEL, at + 17 * US, at + 19 * US, bz_trace_text(t, "gemm"), stream);
            t->event[BZ_EVENT_API].correlation[a] = t->event[BZ_EVENT_KERNEL].correlation[k] = (uint32_t)i + 1;
        }
        bz_trace_add(t, BZ_EVENT_RANGE, 0, (int64_t)STEPS * STEP * US, bz_trace_text(t, "benanza_iteration"), host);
        if (bz_trace_finish(t, NULL, &err))
            fail_msg("%s", err.text);
        int64_t before, plain = ask(t, "cuda-graph:recorder=0,node=1", &arena, &before).time;
        gone[library] = ask(t, "cuda-graph:node=1", &arena, &before).time - plain;
        bz_trace_free(t);
    }
    assert_in_range(gone[1] - gone[0], 9 * (STEPS - 2) * US, 9 * STEPS * US);
    bz_arena_free(&arena);
}

/* A device's clock that is 30 µs late, three times what a launch takes: each kernel seems to come to a stream that is busy, and has waited for its
 * launch all the same. With a faster host they follow each other at once, each 5 µs sooner than before. */
static void test_late_clock(void **state)
{
    enum { STEPS = 40, STEP = 20, LATE = 30, WORKS = 15 };
    bz_arena arena = {0};
    bz_error err;
    int64_t before;
    (void)state;
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made", "made"), host = bz_trace_thread(t, source, 1, 1),
             stream = bz_trace_stream(t, source, 1, 0, 1, 7);
    for (int i = 0; i < STEPS; i++) {
        int64_t at = (int64_t)i * STEP * US, there = at + (LATE + 5) * US;
        size_t a = bz_trace_add(t, BZ_EVENT_API, at, at + CALL * US, bz_trace_text(t, "cudaLaunchKernel"), host),
               k = bz_trace_add(t, BZ_EVENT_KERNEL, there, there + WORKS * US, bz_trace_text(t, "gemm"), stream);
        t->event[BZ_EVENT_API].correlation[a] = t->event[BZ_EVENT_KERNEL].correlation[k] = (uint32_t)i + 1;
    }
    bz_trace_add(t, BZ_EVENT_RANGE, 0, (STEPS * STEP + LATE) * US, bz_trace_text(t, "benanza_iteration"), host);
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    bz_idle idle;
    bz_trace_idle(t, &t->iteration[0], &idle);
    assert_int_equal(idle.late, (LATE + 5 - CALL) * US);
    assert_int_equal(idle.of[BZ_IDLE_QUEUED].time, 0);
    assert_in_range(idle.of[BZ_IDLE_HOST].time + idle.of[BZ_IDLE_LAUNCH].time, (STEPS - 1) * (STEP - WORKS) * US,
                    idle.idle);
    int64_t after = ask(t, "host:times=4", &arena, &before).time;
    assert_in_range(before - after, (STEPS - 1) * (STEP - WORKS) * US, STEPS * (STEP - WORKS) * US + LATE * US);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* Iterations that overlap, the device far behind a host that is the slower side: what recording adds makes nobody wait for the device. */
static void test_overlapping(void **state)
{
    bz_arena arena = {0};
    bz_trace *t = bz_trace_new();
    bz_whatif_asked asked;
    bz_error err;
    (void)state;
    bz_flow f = {.overlaps = true, .trace = t, .iteration = BZ_NONE, .launch_lag = BEHIND * US};
    bz_flow_add_lane(&f, "cpu", false, false);
    bz_flow_add_lane(&f, "gpu", true, false);
    for (int i = 0; i < KERNELS; i++) {
        uint32_t launch = bz_flow_add(&f, BZ_TASK_HOST, "launch", 0, CALL * US, BETWEEN * US),
                 kernel = bz_flow_add(&f, BZ_TASK_KERNEL, "gemm", 1, US, 0);
        f.task[launch].event_kind = BZ_EVENT_API;
        bz_flow_depend(&f, launch, kernel, BZ_DEPENDS_LAUNCH, BEHIND * US);
    }
    int64_t step, after;
    assert_int_equal(bz_flow_steady(&f, &step, &err), 0);
    assert_int_equal(step, (KERNELS * CALL + (KERNELS - 1) * BETWEEN) * US);
    if (bz_whatif_parse("cuda-graph:recorder=4,node=1", &arena, &asked, &err))
        fail_msg("%s", err.text);
    asked.trace = t;
    assert_int_equal((asked.err = &err, asked.row->apply(&f, &asked)), KERNELS - 1);
    assert_int_equal(bz_flow_steady(&f, &after, &err), 0);
    assert_in_range(after, (KERNELS + 4 * (KERNELS - 2)) * US, step / 2);
    bz_flow_free(&f);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* A device that lies 2 ms behind a host which steps 8 % slower: it works off what is queued, and no step of it is a host's. The unchanged
 * graph repeats the recording all the same. */
static void test_draining(void **state)
{
    static const char *const NAMES[] = {"embedding", "gemm", "layer_norm", "softmax", "gelu", "conv", "pool", "argmax"};
    enum { STEPS = 12, OF_STEP = sizeof NAMES / sizeof *NAMES, HOST = 8100, DEVICE = 7500 };
    bz_arena arena = {0};
    bz_trace *t = bz_trace_new();
    bz_error err;
    bz_flow flow;
    bz_whatif w;
    (void)state;
    uint32_t source = bz_trace_source(t, "made", "made"), host = bz_trace_thread(t, source, 1, 1),
             stream = bz_trace_stream(t, source, 1, 0, 1, 7);
    for (int i = 0; i < STEPS * OF_STEP; i++) {
        int64_t at = (int64_t)i * HOST, there = 2000 * US + (int64_t)i * DEVICE;
        size_t a = bz_trace_add(t, BZ_EVENT_API, at, at + HOST / 2, bz_trace_text(t, "cudaLaunchKernel"), host),
               k = bz_trace_add(t, BZ_EVENT_KERNEL, there, there + DEVICE - US, bz_trace_text(t, NAMES[i % OF_STEP]),
                                stream);
        t->event[BZ_EVENT_API].correlation[a] = t->event[BZ_EVENT_KERNEL].correlation[k] = i + 1;
    }
    if (bz_trace_finish(t, NULL, &err) || bz_flow_make(t, bz_typical_iteration(t), &flow, &err) ||
        bz_whatif_begin(&flow, &arena, &w, &err))
        fail_msg("%s", err.text);
    assert_in_range(t->n_iterations, STEPS - 2, STEPS);
    assert_true(w.error < 0.01);
    bz_flow_free(&flow);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

static void test_training(void **state)
{
    bz_arena arena = {0};
    int64_t before;
    (void)state;
    bz_trace *forward = record("made", "cudnn::bn_fw_inf_1C11_kernel_NCHW"),
             *both = record("made", "cudnn::bn_bw_1C11_kernel_new");
    bz_prediction p = ask(forward, "restructured-norm", &arena, &before);
    assert_int_equal(p.changed, 0);
    assert_non_null(strstr(p.because, "backward"));
    assert_true(ask(both, "restructured-norm", &arena, &before).changed > 0);
    bz_trace_free(both);
    bz_trace_free(forward);
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pauses),        cmocka_unit_test(test_recorder),
                                       cmocka_unit_test(test_library_calls), cmocka_unit_test(test_late_clock),
                                       cmocka_unit_test(test_overlapping),   cmocka_unit_test(test_draining),
                                       cmocka_unit_test(test_training),      cmocka_unit_test(test_unexplained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
