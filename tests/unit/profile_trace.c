/* The trace model: rows, strings, sorting, saving and loading, links, statistics, and finding what repeats. */
#include "profile/columns.h"
#include "profile/trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka wants the four headers above before itself
#include <cmocka.h>

static uint32_t add(bz_trace *t, bz_event_kind kind, int64_t start, int64_t end, const char *name, uint32_t lane)
{
    return (uint32_t)bz_trace_add(t, kind, start, end, bz_trace_text(t, name), lane);
}

static void tie(bz_trace *t, bz_event_kind kind, uint32_t row, uint32_t correlation)
{
    t->event[kind].correlation[row] = correlation;
}

static void strings_are_kept_once(void **state)
{
    (void)state;
    bz_trace *t = bz_trace_new();
    uint32_t a = bz_trace_text(t, "conv"), b = bz_trace_intern(t, "convolution", 4);
    assert_int_equal(a, b);
    assert_string_equal(bz_string(t, a), "conv");
    assert_string_equal(bz_string(t, 0), "");
    assert_string_equal(bz_string(t, 12345), "");
    assert_int_equal(bz_trace_text(t, ""), 0);
    bz_trace_free(t);
}

static void rows_are_sorted_outer_first(void **state)
{
    (void)state;
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "x", "test"), 1, 1);
    add(t, BZ_EVENT_OP, 50, 60, "late", lane);
    add(t, BZ_EVENT_OP, 10, 20, "inner", lane);
    add(t, BZ_EVENT_OP, 10, 40, "outer", lane);
    bz_error err;
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    const bz_events *op = &t->event[BZ_EVENT_OP];
    assert_string_equal(bz_string(t, op->name[0]), "outer");
    assert_string_equal(bz_string(t, op->name[1]), "inner");
    assert_int_equal(op->op[0], BZ_NONE);
    assert_int_equal(op->op[1], 0);
    assert_int_equal(op->op[2], BZ_NONE);
    bz_trace_free(t);
}

static void rows_are_found_by_their_start(void **state)
{
    (void)state;
    int64_t start[300];
    for (int shape = 0; shape < 4; shape++) /* even, all at once, in bursts, ever further apart */
        for (size_t n = 0; n <= 300; n += n < 5 ? 1 : 59) {
            for (size_t i = 0; i < n; i++)
                start[i] = (int64_t)(shape == 0   ? 10 * i
                                     : shape == 1 ? 7
                                     : shape == 2 ? i / 50 * 1000 + i % 50 / 20
                                                  : i * i * i);
            bz_events e = {.n = n, .start = start};
            for (size_t i = 0; i < 3 * n + 3; i++) {
                int64_t from = i < 3 * n ? start[i / 3] + (int64_t)(i % 3) - 1
                               : i % 3   ? -(INT64_C(1) << 60)
                                         : INT64_MAX;
                size_t expected = 0;
                while (expected < n && start[expected] < from)
                    expected++;
                assert_int_equal(bz_events_from(&e, from), expected);
            }
        }
}

static void times_that_lie_are_clamped(void **state)
{
    (void)state;
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "x", "test"), 1, 1);
    add(t, BZ_EVENT_KERNEL, INT64_MAX, INT64_MIN, "k", lane);
    add(t, BZ_EVENT_KERNEL, INT64_MIN, INT64_MAX, "k", lane);
    const bz_events *k = &t->event[BZ_EVENT_KERNEL];
    for (size_t i = 0; i < k->n; i++) {
        int64_t d;
        assert_false(__builtin_sub_overflow(k->end[i], k->start[i], &d));
        assert_true(d >= 0);
    }
    bz_trace_free(t);
}

/* A program of `n` iterations on one thread and one stream: conv, launch, kernel, then a pause. */
static bz_trace *program(int n)
{
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "x", "test"), host = bz_trace_thread(t, source, 7, 8);
    uint32_t stream = bz_trace_stream(t, source, 7, 0, 1, 3);
    t->source[source].events = 1;
    uint32_t correlation = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 5; k++) {
            char name[32];
            int64_t at = i * 10000 + k * 1000 + (i ? 5000 : 0); /* the first one takes longer */
            snprintf(name, sizeof name, "cudnn%dForward", k % 3);
            uint32_t c = add(t, BZ_EVENT_CALL, at, at + 800, name, host);
            t->event[BZ_EVENT_CALL].flags[c] = BZ_CALL_EXECUTES;
            t->event[BZ_EVENT_CALL].library[c] = BZ_LIBRARY_CUDNN;
            t->event[BZ_EVENT_CALL].detail[c] = bz_trace_text(t, "xDesc.dimA=[1,3] algo=x");
            uint32_t a = add(t, BZ_EVENT_API, at + 100, at + 300, "cudaLaunchKernel", host);
            t->event[BZ_EVENT_API].correlation[a] = ++correlation;
            uint32_t g = add(t, BZ_EVENT_KERNEL, at + 500, at + 500 + (i ? 600 : 1600), "kernel", stream);
            t->event[BZ_EVENT_KERNEL].correlation[g] = correlation;
            t->event[BZ_EVENT_KERNEL].launched[g] = bz_trace_launched(t, &(bz_launched){.grid = {7}, .block = {g}});
        }
    return t;
}

/* A summary is not told of blocks, and tells the same. */
static void summaries_tell_the_same(void **state)
{
    (void)state;
    bz_error err;
    bz_trace *all = program(8), *t = program(8);
    bz_events *k = &t->event[BZ_EVENT_KERNEL];
    bz_buf told[2] = {{0}, {0}};
    t->summary = true;
    for (size_t i = 0; i < k->n; i++) {
        k->launched[i] = bz_trace_launched(t, &(bz_launched){.grid = {7}});
        assert_int_equal(k->launched[i], k->launched[0]);
        assert_int_equal(bz_kernel_launched(all, i)->block[0], i);
        assert_memory_equal(bz_kernel_launched(t, i)->grid, bz_kernel_launched(all, i)->grid, 3 * sizeof(uint32_t));
    }
    assert_int_equal(bz_trace_finish(all, NULL, &err) | bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(all->n_iterations, 8);
    bz_trace_json(all, 100, &told[0]);
    bz_trace_json(t, 100, &told[1]);
    assert_string_equal(bz_buf_text(&told[0]), bz_buf_text(&told[1]));
    bz_buf_free(&told[0]);
    bz_buf_free(&told[1]);
    bz_trace_free(all);
    bz_trace_free(t);
}

/* By the work that lies in each iteration, of spans and pauses from a nanosecond to seconds. */
static void busy_time_is_that_of_all_spans(void **state)
{
    (void)state;
    enum { KERNELS = 3000, ITERATIONS = 200 };
    static const int64_t LENGTHS[] = {1, 3, 130, 20000, 2100000, 6000000000};
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "x", "test"), host = bz_trace_thread(t, source, 7, 8), random = 1;
    uint32_t stream = bz_trace_stream(t, source, 7, 0, 1, 3);
    int64_t at = 0;
    for (int i = 0; i < KERNELS; i++) {
        int64_t length = LENGTHS[(random = random * 1103515245 + 12345) >> 16 & 3];
        int64_t pause = LENGTHS[(random = random * 1103515245 + 12345) >> 16 & 3];
        length = i % 400 == 399 ? LENGTHS[5] : length;
        pause = i % 700 == 699 ? LENGTHS[5] : i % 7 ? pause : 0; /* some touch */
        add(t, BZ_EVENT_KERNEL, at, at + length, "kernel", stream);
        at += length + pause;
    }
    for (int i = 0; i < ITERATIONS; i++)
        add(t, BZ_EVENT_RANGE, at / ITERATIONS * i, at / ITERATIONS * (i + 1) - 100, "benanza_iteration", host);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(t->n_iterations, ITERATIONS);
    const bz_events *k = &t->event[BZ_EVENT_KERNEL];
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        bz_iteration_stats s;
        int64_t busy = 0, from = t->iteration[i].start, to = t->iteration[i].end;
        for (size_t e = 0; e < k->n; e++) {
            int64_t start = k->start[e] > from ? k->start[e] : from, end = k->end[e] < to ? k->end[e] : to;
            busy += end > start ? end - start : 0;
        }
        bz_iteration_measure(t, i, &s);
        assert_int_equal(s.device_busy, busy);
    }
    bz_trace_free(t);
}

/* In whole microseconds an operator of no length, or one that begins where another one ends, lies in it where others of these names surely do, and
 * stands beside it where others surely stand behind it. A nanosecond that anything tells, and times are taken as they are. */
static void whole_microseconds_leave_doubt(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t start, end;
        int around; /* the row that it lies in; -1: none */
    } OPS[] = {{"relu", 10, 15, -1},
               {"clamp_min", 12, 14, 0},
               {"sigmoid", 20, 22, -1},
               {"mul", 30, 31, -1},
               {"relu", 40, 41, -1},
               {"clamp_min", 41, 42, 4},
               {"sigmoid", 50, 51, -1},
               {"mul", 51, 51, -1},
               {"linear", 60, 70, -1},
               {"mul", 60, 60, -1},
               {"addmm", 61, 69, 8},
               {"addmm", 66, 66, 10},
               {"unheard", 80, 81, -1},
               {"unheard of", 81, 81, 12},
               {"relu", 90, 90, -1},
               {"clamp_min", 91, 91, 14},
               {"sigmoid", 100, 101, -1},
               {"mul", 103, 103, -1},
               {"mul", 110, 120, -1},
               {"linear", 130, 131, -1},
               {"mul", 133, 134, -1},
               /* nobody saw it behind these, but by itself; and another one within them */
               {"gelu", 140, 145, -1},
               {"matmul", 150, 154, -1},
               {"mm", 151, 154, 22},
               {"gelu", 154, 154, -1},
               {"matmul", 160, 164, -1},
               {"resolve", 164, 164, 25}};
    enum { N = sizeof OPS / sizeof *OPS };
    for (int64_t late = 0; late < 2; late++) {
        bz_error err;
        bz_trace *t = bz_trace_new();
        uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
        for (size_t i = 0; i < N; i++)
            add(t, BZ_EVENT_OP, 1000 * OPS[i].start + late, 1000 * OPS[i].end + late, OPS[i].name, lane);
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        const bz_events *o = &t->event[BZ_EVENT_OP];
        for (size_t i = 0; i < N; i++)
            if (!late && o->op[i] != (OPS[i].around < 0 ? BZ_NONE : (uint32_t)OPS[i].around))
                fail_msg("%zu, %s: %d", i, OPS[i].name, (int)o->op[i]);
        if (late)
            assert_true(o->op[5] == BZ_NONE && o->op[7] == 6);
        bz_trace_free(t);
    }
}

static void kernels_find_their_calls(void **state)
{
    (void)state;
    bz_error err;
    bz_trace *t = program(4);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    const bz_events *k = &t->event[BZ_EVENT_KERNEL], *call = &t->event[BZ_EVENT_CALL];
    for (size_t i = 0; i < k->n; i++) {
        assert_int_equal(k->cause[i], i);
        assert_int_equal(k->call[i], i);
        assert_int_equal(call->start[k->call[i]] + 500, k->start[i]);
    }
    bz_trace_free(t);
}

/* A file that lost its last kernels, or its last calls, says so; one that lost both at the same time is a shorter recording. */
static void tables_end_together(void **state)
{
    (void)state;
    for (int lost = 0; lost < 4; lost++) {
        bz_error err;
        bz_trace *t = program(8);
        t->event[BZ_EVENT_KERNEL].n = lost & 1 ? 20 : 40;
        t->event[BZ_EVENT_API].n = lost & 2 ? 20 : 40;
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        assert_int_equal(bz_trace_is_truncated(t), lost == 1 || lost == 2);
        bool told = false;
        for (uint32_t i = 0; i < t->n_coverage; i++)
            told |= !!strstr(bz_string(t, t->coverage[i].text), lost == 1 ? "it has 20 launches behind its last kernel"
                                                                          : "it has 20 kernels behind its last call");
        assert_int_equal(told, lost == 1 || lost == 2);
        bz_trace_free(t);
    }
}

/* Launches while a graph is captured do not run: that the device did nothing then is no loss. */
static void captured_launches_do_nothing(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        bz_error err;
        bz_trace *t = program(8);
        uint32_t lane = t->event[BZ_EVENT_API].lane[0];
        int64_t at = 1000000;
        add(t, BZ_EVENT_API, at, at + 5, "hipStreamBeginCapture", lane);
        if (ends)
            add(t, BZ_EVENT_API, at + 10, at + 15, "hipStreamEndCapture", lane);
        for (int i = 0; i < 40; i++)
            add(t, BZ_EVENT_API, at + 20 + i, at + 21 + i, "hipLaunchKernel", lane);
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        assert_int_equal(bz_trace_is_truncated(t), ends);
        bz_trace_free(t);
    }
}

static void iterations_are_found_and_measured(void **state)
{
    (void)state;
    bz_error err;
    bz_trace *t = program(6);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(t->n_iterations, 6);
    assert_int_equal(t->origin, BZ_ITERATION_DETECTED);
    assert_true(t->iteration[0].warm_up);
    assert_false(t->iteration[1].warm_up);
    bz_iteration_stats s;
    bz_iteration_measure(t, 3, &s);
    assert_int_equal(s.kernels, 5);
    assert_int_equal(s.calls, 5);
    assert_int_equal(s.launches, 5);
    assert_int_equal(s.kernel_time, 5 * 600);
    assert_int_equal(s.device_busy, 5 * 600);
    assert_int_equal(s.library, 5 * 800);
    assert_int_equal(s.launch, 5 * 200);
    /* from the first call to the end of the last kernel */
    assert_int_equal(s.latency, 4 * 1000 + 500 + 600);
    assert_int_equal(s.gap, s.latency - s.device_busy);
    /* in the first one kernels of 1600 ns start every 1000 ns: their union is shorter than their sum */
    bz_iteration_measure(t, 0, &s);
    assert_int_equal(s.kernel_time, 5 * 1600);
    assert_int_equal(s.device_busy, 4 * 1000 + 1600);
    char value[32];
    assert_true(bz_call_parameter(t, 0, "xDesc.dimA", value, sizeof value));
    assert_string_equal(value, "[1,3]");
    assert_false(bz_call_parameter(t, 0, "Desc.dimA", value, sizeof value));
    bz_trace_free(t);
}

static void ranges_of_the_program_win(void **state)
{
    (void)state;
    bz_error err;
    bz_trace *t = program(4);
    uint32_t lane = t->event[BZ_EVENT_CALL].lane[0];
    for (int i = 0; i < 2; i++)
        add(t, BZ_EVENT_RANGE, i * 20000, i * 20000 + 15000, "benanza_iteration", lane);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(t->n_iterations, 2);
    assert_int_equal(t->origin, BZ_ITERATION_MARKED);
    bz_trace_free(t);
}

/* Where a framework tells what a person named as operators. */
static void operators_may_mark_iterations(void **state)
{
    (void)state;
    bz_error err;
    const bz_finish_options named = {.iterations = "mine"};
    static const char *const MARK[] = {"ProfilerStep#7",
                                       "mine",
                                       "model_run",
                                       "ExecutionContext::enqueue",
                                       "ExecutionContext::execute",
                                       "[pl][profile]run_training_batch"};
    for (size_t i = 0; i < sizeof MARK / sizeof *MARK; i++) {
        bz_trace *t = program(4);
        uint32_t lane = t->event[BZ_EVENT_CALL].lane[0];
        for (int k = 0; k < 3; k++)
            add(t, BZ_EVENT_OP, k * 12000, k * 12000 + 9000, MARK[i], lane);
        assert_int_equal(bz_trace_finish(t, i == 1 ? &named : NULL, &err), 0);
        assert_int_equal(t->n_iterations, 3);
        assert_int_equal(t->origin, BZ_ITERATION_RANGE);
        assert_int_equal(t->iteration[1].start, 12000);
        assert_int_equal(t->iteration[1].end, 21000);
        bz_trace_free(t);
    }
}

/* Functions and modules of Python have lines and instances in their names, and some of these have the words of steps. */
static void functions_mark_no_iterations(void **state)
{
    (void)state;
    bz_error err;
    static const char *const CODE[] = {"torch/utils/_pytree.py(1302): tree_iter",
                                       "torch/utils/_pytree.py(1308): tree_iter",
                                       "<built-in method iter of type object at 0x7f1abc7fc9c0>",
                                       "<built-in method iter of type object at 0x8f1abc7fc9c0>",
                                       "nn.Module: TokenEmbedding_0",
                                       "nn.Module: TokenEmbedding_1"};
    for (int i = 0; i < 6; i += 2) {
        bz_trace *t = program(6);
        uint32_t lane = t->event[BZ_EVENT_CALL].lane[0];
        add(t, BZ_EVENT_RANGE, 0, 14000, CODE[i], lane);
        add(t, BZ_EVENT_RANGE, 15000, 29000, CODE[i + 1], lane);
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        assert_int_equal(t->origin, BZ_ITERATION_DETECTED);
        assert_int_equal(t->n_iterations, 6);
        bz_trace_free(t);
    }
}

/* A profiler's last mark may be cut off by the end of the recording. It is none that was where iterations are of several sorts: an evaluation is as
 * short as the one before it. */
static void last_marks_may_be_short(void **state)
{
    (void)state;
    for (int evaluations = 1; evaluations <= 2; evaluations++) {
        enum { TRAININGS = 4, OPS = 9 };
        bz_error err;
        bz_trace *t = bz_trace_new();
        uint32_t host = bz_trace_thread(t, bz_trace_source(t, "x", "test"), 7, 8);
        for (int i = 0; i < TRAININGS + evaluations; i++) {
            add(t, BZ_EVENT_RANGE, 1000000 * i, 1000000 * i + 900000, "ProfilerStep#1", host);
            for (int k = 0; k < (i < TRAININGS ? OPS : 1); k++)
                add(t, BZ_EVENT_OP, 1000000 * i + 50000 * k, 1000000 * i + 50000 * k + 40000, "aten::linear", host);
        }
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        assert_int_equal(t->n_iterations, evaluations == 1 ? TRAININGS : TRAININGS + 2);
        bz_trace_free(t);
    }
}

/* Marks beside all work are those of something else. */
static void marks_hold_work(void **state)
{
    (void)state;
    bz_error err;
    bz_trace *t = program(6);
    uint32_t lane = t->event[BZ_EVENT_CALL].lane[0];
    add(t, BZ_EVENT_RANGE, 900000, 900010, "step 1", lane);
    add(t, BZ_EVENT_RANGE, 900020, 900030, "step 2", lane);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(t->origin, BZ_ITERATION_DETECTED);
    assert_int_equal(t->n_iterations, 6);
    bz_trace_free(t);
}

/* Steps of a server: the first reads prompts, the others make a token of each sequence. `late`: how long behind its call the device works. */
static bz_trace *server(const char *const *mark, int steps, int64_t late)
{
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "x", "test"), host = bz_trace_thread(t, source, 7, 8);
    uint32_t stream = bz_trace_stream(t, source, 7, 0, 1, 3);
    t->source[source].events = 1;
    for (int i = 0; i < steps; i++) {
        int64_t at = 10000 * i;
        add(t, BZ_EVENT_RANGE, at, at + 9000, mark[i], host);
        tie(t, BZ_EVENT_API, add(t, BZ_EVENT_API, at + 100, at + 200, "cudaGraphLaunch", host), (uint32_t)i + 1);
        tie(t, BZ_EVENT_KERNEL, add(t, BZ_EVENT_KERNEL, at + 300 + late, at + 8300 + late, "gemm", stream),
            (uint32_t)i + 1);
    }
    return t;
}

static void servers_name_phases(void **state)
{
    (void)state;
    static const struct {
        const char *mark[4];
        uint32_t prompts, prompt_tokens, fewest, batch;
    } CASES[] = {
        {{"execute_context_2(300)_generation_0(0)", "execute_context_0(0)_generation_2(2)",
          "execute_context_0(0)_generation_2(2)", "execute_context_0(0)_generation_2(2)"},
         1,
         300,
         2,
         2},
        {{"execute_64_context_1(sq62sk80)_generation_2(sq2sk900)", "execute_3_context_0(sq0sk0)_generation_3(sq3sk9)",
          "execute_3_context_0(sq0sk0)_generation_3(sq3sk9)", "execute_1_context_0(sq0sk0)_generation_1(sq1sk9)"},
         1,
         64,
         1,
         3},
        {{"step[EXTEND bs=2 toks=300]", "step[DECODE bs=2]", "step[DECODE bs=2]", "step[DECODE bs=2]"}, 1, 300, 2, 2},
        {{"step[DECODE bs=4]", "step[DECODE bs=4]", "step[DECODE bs=4]", "step[DECODE bs=4]"}, 0, 0, 4, 4},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (int64_t late = 0; late <= 20000; late += 20000) {
            bz_error err;
            bz_phases p;
            bz_trace *t = server(CASES[i].mark, 4, late);
            assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
            assert_int_equal(t->n_iterations, 4);
            assert_int_equal(t->origin, BZ_ITERATION_RANGE);
            assert_true(bz_trace_phases(t, &p));
            assert_int_equal(p.prompts, CASES[i].prompts);
            assert_int_equal(p.prompt_tokens, CASES[i].prompt_tokens);
            assert_int_equal(p.steps, 4 - p.prompts);
            assert_int_equal(p.fewest, CASES[i].fewest);
            assert_int_equal(p.batch, CASES[i].batch);
            /* of the marks, though a device that works behind the host takes as long in its own step */
            assert_int_equal(llround(1e9 * p.decode), 9000);
            double tokens = i == 1 ? 7. / 3 : p.batch;
            assert_true(fabs(p.rate * 9000e-9 / tokens - 1) < 1e-9);
            bz_trace_free(t);
        }
}

/* The only step that a recording has, of a device that works behind the host: as long as its work. */
static void a_single_step_has_a_device(void **state)
{
    (void)state;
    static const char *const PROMPT[] = {"step[EXTEND bs=2 toks=300]"}, *const TOKEN[] = {"step[DECODE bs=2]"};
    for (int i = 0; i < 2; i++) {
        bz_error err;
        bz_phases p;
        bz_summary s;
        bz_arena arena = {0};
        bz_trace *t = server(i ? TOKEN : PROMPT, 1, 20000);
        t->event[BZ_EVENT_KERNEL].end[0] += 7000;
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        bz_summary_make(t, &arena, &s);
        assert_int_equal(s.steady, 1); /* prompts alone are all that there is */
        assert_false(s.behind);
        assert_int_equal(s.each[0].latency, 15000);
        assert_int_equal(s.each[0].device_busy, 15000);
        assert_int_equal(s.each[0].gap, 0);
        assert_int_equal(s.each[0].kernels, 1);
        assert_int_equal(s.each[0].launches, 0); /* the host is at a later one by then */
        assert_int_equal(bz_trace_phases(t, &p), i);
        if (i)
            assert_int_equal(llround(1e9 * p.decode), 15000);
        bz_arena_free(&arena);
        bz_trace_free(t);
    }
}

/* A step of which the device is done sooner than the host is as long as its mark, also where the last of its work comes behind that; what works
 * behind a longer one is not of it. */
static void a_single_step_ends_with_its_work(void **state)
{
    (void)state;
    static const char *const MARK[] = {"step[DECODE bs=2]"};
    for (int longer = 0; longer < 2; longer++) {
        bz_error err;
        bz_iteration_stats s;
        bz_trace *t = server(MARK, 1, 3000); /* until 11.3 us, of a mark of 9 us */
        uint32_t host = t->event[BZ_EVENT_API].lane[0], stream = t->event[BZ_EVENT_KERNEL].lane[0];
        t->event[BZ_EVENT_KERNEL].end[0] += longer ? 7000 : 0;
        tie(t, BZ_EVENT_API, add(t, BZ_EVENT_API, 9500, 9600, "cudaLaunchKernel", host), 9);
        tie(t, BZ_EVENT_KERNEL, add(t, BZ_EVENT_KERNEL, 18300, 18400, "relu", stream), 9);
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        bz_iteration_measure(t, 0, &s);
        assert_int_equal(s.latency, longer ? 15000 : 9000);
        assert_int_equal(s.kernels, 1);
        assert_int_equal(s.device_busy, longer ? 15000 : 5700);
        assert_int_equal(s.device_busy + s.gap, s.latency);
        assert_int_equal(bz_event_iteration(t, BZ_EVENT_KERNEL, 1), BZ_NONE);
        char path[] = "/tmp/benanza-test-XXXXXX";
        bz_trace *again = bz_trace_new();
        close(mkstemp(path));
        assert_int_equal(bz_trace_save(t, path, &err), 0);
        assert_int_equal(bz_profile_read(again, path, &err), 0);
        assert_int_equal(bz_trace_finish(again, NULL, &err), 0);
        assert_int_equal(bz_iteration_begin(again, 0), bz_iteration_begin(t, 0));
        assert_int_equal(again->iteration[0].end, t->iteration[0].end);
        assert_int_equal(again->n_coverage, t->n_coverage);
        unlink(path);
        bz_trace_free(again);
        bz_trace_free(t);
    }
}

/* A training as a text: letters are operators, digits the steps of optimizers, each with weights of its own, where `shapes`. */
static bz_trace *training(const char *text, bool shapes)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "x", "test"), 7, 8);
    int64_t at = 0;
    for (; *text; text++, at += 100) {
        bool update = *text >= '0' && *text <= '9';
        const char name[2] = {*text, 0};
        add(t, BZ_EVENT_OP, at, at + 90, update ? "Optimizer.step#SGD.step" : name, lane);
        if (!update)
            continue;
        uint32_t row = add(t, BZ_EVENT_OP, at + 10, at + 80, "aten::add_", lane);
        char inputs[] = "inputs=[[?],[?]] values=[,,0.1]";
        inputs[9] = inputs[13] = *text;
        if (shapes)
            t->event[BZ_EVENT_OP].detail[row] = bz_trace_text(t, inputs);
    }
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    return t;
}

/* What repeats in a training may be no iteration of it. */
static void iterations_end_with_updates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool shapes;
        uint32_t iterations;
        int64_t last; /* how long that one takes */
        const char *told;
    } CASES[] = {
        /* episodes of any length */
        {"abbc1abbbbbbc1abc1abbbc1abbbbbbbbc1abbbbc1", false, 6, 700, "has 1 step of the optimizer: what repeats"},
        /* cut off within the last one, and a validation now and then, of which operators without shapes say that it is a part */
        {"abc1abc1abc1abc1abc1abc1xyabc1abc1abc1abc1abc1xyabc1ab", true, 12, 600,
         "has 1 step of the optimizer: what repeats"},
        {"abc1abc1xyabc1abc1xyabc1abc1xyabc1abc1xyabc1abc1xy", false, 5, 990, "has 2 steps of the optimizer"},
        /* two networks, one trained three times as often: by the shapes of their weights, or by what is done before */
        {"ab1ab1ab1ab2ab1ab1ab1ab2ab1ab1ab1ab2ab1ab1ab1ab2", true, 4, 1200, "has 4 steps of the optimizer"},
        {"ab1ab1ab1ac2ab1ab1ab1ac2ab1ab1ab1ac2ab1ab1ab1ac2", false, 4, 1190, "has 4 steps of the optimizer"},
        /* too few to tell */
        {"abc1abc1", false, 2, 390, NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_trace *t = training(CASES[i].text, CASES[i].shapes);
        bool told = false;
        for (uint32_t k = 0; k < t->n_coverage; k++)
            told |= CASES[i].told && strstr(bz_string(t, t->coverage[k].text), CASES[i].told);
        if (t->n_iterations != CASES[i].iterations || told != (CASES[i].told != NULL))
            fail_msg("%s: %u iterations, %stold", CASES[i].text, t->n_iterations, told ? "" : "not ");
        assert_int_equal(bz_iteration_latency(t, t->n_iterations - 1), CASES[i].last);
        bz_trace_free(t);
    }
}

/* Doubts about iterations are saved with them, and are of no others. */
static void doubts_are_saved(void **state)
{
    (void)state;
    bz_error err;
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    bz_trace *t = training("abababababababab", false), *same = bz_trace_new(), *other = bz_trace_new();
    assert_non_null(bz_trace_lacks(t, BZ_LACKS_ITERATIONS_OPEN));
    assert_int_equal(bz_trace_save(t, path, &err), 0);
    assert_int_equal(bz_profile_read(same, path, &err), 0);
    assert_int_equal(bz_trace_finish(same, NULL, &err), 0);
    assert_int_equal(same->n_iterations, t->n_iterations);
    assert_int_equal(same->n_coverage, t->n_coverage);
    assert_string_equal(bz_trace_lacks(same, BZ_LACKS_ITERATIONS_OPEN), bz_trace_lacks(t, BZ_LACKS_ITERATIONS_OPEN));
    assert_int_equal(bz_profile_read(other, path, &err), 0);
    assert_int_equal(bz_trace_finish(other, &(bz_finish_options){.iterations = "a"}, &err), 0);
    assert_null(bz_trace_lacks(other, BZ_LACKS_ITERATIONS_OPEN));
    unlink(path);
    bz_trace_free(t);
    bz_trace_free(same);
    bz_trace_free(other);
}

/* A device's clock is late where all work begins late behind its launch. A launch that took as long says nothing of clocks: the first ones of a
 * program load its code. */
static void long_launches_are_no_clock(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        bz_error err;
        bz_idle idle;
        bz_trace *t = bz_trace_new();
        uint32_t source = bz_trace_source(t, "x", "test"), host = bz_trace_thread(t, source, 7, 8),
                 stream = bz_trace_stream(t, source, 7, 0, 1, 3);
        for (uint32_t i = 0; i < 5; i++) {
            tie(t, BZ_EVENT_API,
                add(t, BZ_EVENT_API, 100000 * i, 100000 * i + (slow && !i ? 65000 : 8000), "cudaLaunchKernel", host),
                i + 1);
            tie(t, BZ_EVENT_KERNEL, add(t, BZ_EVENT_KERNEL, 63000 + 200000 * i, 263000 + 200000 * i, "gemm", stream),
                i + 1);
        }
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        bz_trace_idle(t, &(bz_iteration){.start = 0, .end = 1063000}, &idle);
        assert_int_equal(idle.late, slow ? 0 : 55000);
        bz_trace_free(t);
    }
}

/* A step cut out of a server's work: its launches are on record, and not what the device did until their work began. Where work of the same stream
 * from before is there, or the first begins soon, it is on its way. */
static void work_from_before_is_not_on_its_way(void **state)
{
    (void)state;
    static const struct {
        int64_t begins;
        int64_t before; /* a stream that worked before; 0: none */
        bool unknown;
    } CASES[] = {{3000000, 0, true}, {3000000, 3, false}, {3000000, 2, true}, {300000, 0, false}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_error err;
        bz_idle idle;
        bz_trace *t = bz_trace_new();
        uint32_t source = bz_trace_source(t, "x", "test"), host = bz_trace_thread(t, source, 7, 8),
                 stream = bz_trace_stream(t, source, 7, 0, 1, 3);
        if (CASES[i].before)
            add(t, BZ_EVENT_KERNEL, -5000, -1000, "gemm", bz_trace_stream(t, source, 7, 0, 1, CASES[i].before));
        for (uint32_t k = 0; k < 5; k++) {
            int64_t at = CASES[i].begins + 10000 * k;
            tie(t, BZ_EVENT_API, add(t, BZ_EVENT_API, 10000 * k, 10000 * k + 8000, "cudaLaunchKernel", host), k + 1);
            tie(t, BZ_EVENT_KERNEL, add(t, BZ_EVENT_KERNEL, at, at + 10000, "gemm", stream), k + 1);
        }
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        bz_trace_idle(t, &(bz_iteration){.start = 0, .end = CASES[i].begins + 50000}, &idle);
        assert_int_equal(idle.of[BZ_IDLE_UNKNOWN].count, CASES[i].unknown);
        assert_int_equal(idle.of[BZ_IDLE_UNKNOWN].time, CASES[i].unknown ? CASES[i].begins - 8000 : 0);
        assert_int_equal(idle.before, idle.of[BZ_IDLE_UNKNOWN].time);
        bz_trace_free(t);
    }
}

/* Streams that work at the same time may take longer than the latency: no share of it is above one. */
static void shares_are_of_a_whole(void **state)
{
    (void)state;
    for (int streams = 1; streams < 4; streams += 2) {
        bz_error err;
        bz_buf text = {0};
        bz_trace *t = program(1);
        uint32_t source = 0, host = t->event[BZ_EVENT_CALL].lane[0];
        add(t, BZ_EVENT_RANGE, 0, 10000, "benanza_iteration", host);
        for (int k = 0; k < streams; k++)
            add(t, BZ_EVENT_KERNEL, 1000, 9000, "all_reduce", bz_trace_stream(t, source, 7, 0, 1, 10 + k));
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        bz_trace_print(t, 10, &text);
        assert_non_null(strstr(bz_buf_text(&text), streams > 1 ? "of all of them" : "of latency"));
        assert_non_null(strstr(bz_buf_text(&text), streams > 1 ? " 75.0 %" : " 80.0 %")); /* 24 of 32 us; 8 of 10 */
        bz_buf_free(&text);
        bz_trace_free(t);
    }
}

/* `program` of equal length each: a letter of an iteration is a call, a digit one that does not compute. So many are steady; of a
 * program without a time line the first never is. */
static void expect_steady(const char *const *program, uint32_t steady)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "x", "test"), lane = bz_trace_thread(t, source, 7, 8);
    int64_t at = 0;
    for (int i = 0; program[i]; i++, at += 1000) {
        add(t, BZ_EVENT_RANGE, at, at + 900, "benanza_iteration", lane);
        for (int k = 0; program[i][k]; k++) {
            char name[2] = {program[i][k], 0};
            uint32_t row = add(t, BZ_EVENT_CALL, at + 100 * k, at + 100 * k + 100, name, lane);
            if (program[i][k] >= 'a')
                t->event[BZ_EVENT_CALL].flags[row] |= BZ_CALL_EXECUTES;
        }
    }
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(bz_steady_iterations(t), steady);
    bz_trace_free(t);
}

/* Tracing or compiling runs other calls, once: what comes behind it is the program. */
static void another_program_before_is_warm_up(void **state)
{
    static const struct {
        const char *program[8];
        uint32_t steady;
    } CASES[] = {
        {{"abc", "abc", "abc", "abc", "abc", "abc"}, 5},
        {{"rarb", "rarb", "rarb", "rab", "rab", "rab", "rab"}, 4},
        {{"rarb", "rarb", "rab", "rba", "rab", "ra"}, 4},    /* in any order; the last is cut */
        {{"rarb", "rarb", "rab1", "rab", "1rab", "rab"}, 4}, /* looks into a cache do not count */
        {{"rarb", "rarb", "rarb", "rarb", "rab", "rab"}, 5}, /* mostly the first one */
        {{"rab", "rarb", "rab", "rab", "rab", "rab"}, 5},    /* it was there before */
        {{"ab", "ab", "rarb", "ab"}, 3},                     /* and so was the last */
        {{"rarb", "rab", "rab", "rab", "rab"}, 4},           /* a first step */
        {{"a", "b", "c", "d", "e", "f"}, 5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect_steady(CASES[i].program, CASES[i].steady);
}

/* Behind the warm-up the one of median latency stands for all; where a file says that all were warm-up, the last was not. */
static void one_iteration_is_typical(void **state)
{
    static const int64_t LENGTHS[] = {9000, 3000, 1000, 2000, 4000};
    (void)state;
    bz_error err;
    bz_trace *t = program(4);
    uint32_t lane = t->event[BZ_EVENT_CALL].lane[0];
    for (int k = 0; k < 5; k++)
        add(t, BZ_EVENT_RANGE, k * 12000, k * 12000 + LENGTHS[k], "benanza_iteration", lane);
    assert_int_equal(bz_typical_iteration(t), BZ_NONE);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(t->n_iterations, 5);
    assert_int_equal(bz_steady_iterations(t), 4);
    assert_false(bz_iteration_is_steady(t, 0) || bz_iteration_is_steady(t, 5) || bz_iteration_is_steady(t, BZ_NONE));
    assert_int_equal(bz_typical_iteration(t), 3);
    for (uint32_t i = 0; i < 5; i++)
        t->iteration[i].warm_up = true;
    assert_int_equal(bz_typical_iteration(t), BZ_NONE);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(bz_typical_iteration(t), 4);
    bz_trace_free(t);
}

/* Tables of kernels, calls, operators and advice have one dialect. */
static void names_match_patterns(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } CASES[] = {
        {"gemm", "volta_sgemm_nn", true},
        {"gemm", "gem", false},
        {"^gemm", "gemm_nn", true},
        {"^gemm", "sgemm", false},
        {"_nn$", "gemm_nn", true},
        {"_nn$", "gemm_nn_v2", false},
        {"^Conv$", "Conv", true},
        {"^Conv$", "Conv2", false},
        {"^Conv$", "FusedConv", false},
        {"^Conv$", "ConvConv", false},
        {"$", "x", true},
        {"^", "x", true},
        {"nn$", "n", false},
        {"", "x", true},
        {"^CUDA graph ", "CUDA graph 3", true},
        {"^CUDA graph ", "CUDA", false},
        {"a*b", "xaxbx", true},
        {"a*b", "xbxax", false},
        {"^a*b$", "axb", true},
        {"^a*b$", "axbx", false},
        {"^a*b$", "a", false},
        {"a*a", "a", false},
        {"a*b*c", "a-b-c", true},
        {"a*", "xa", true},
        {"*", "", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (bz_name_matches(CASES[i].pattern, CASES[i].name) != CASES[i].matches)
            fail_msg("%s: %s", CASES[i].pattern, CASES[i].name);
}

/* What a call asks of another library's, and what runs on the device besides kernels, is its own; all events count where no
 * iteration was found. */
static void calls_take_what_their_work_takes(void **state)
{
    (void)state;
    bz_error err;
    bz_arena arena = {0};
    bz_trace *t = program(1);
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    uint32_t host = c->lane[0], stream = t->event[BZ_EVENT_KERNEL].lane[0];
    assert_true(bz_event_counts(t, BZ_EVENT_CALL, 0) && !bz_event_is_steady(t, BZ_EVENT_CALL, 0));
    uint32_t inner = add(t, BZ_EVENT_CALL, 350, 700, "cublasSgemm_v2", host);
    t->event[BZ_EVENT_CALL].flags[inner] = BZ_CALL_EXECUTES;
    tie(t, BZ_EVENT_API, add(t, BZ_EVENT_API, 400, 450, "cudaLaunchKernel", host), 99);
    tie(t, BZ_EVENT_KERNEL, add(t, BZ_EVENT_KERNEL, 5000, 5040, "gemm", stream), 99);
    tie(t, BZ_EVENT_API, add(t, BZ_EVENT_API, 460, 470, "cudaMemsetAsync", host), 100);
    tie(t, BZ_EVENT_MEMSET, add(t, BZ_EVENT_MEMSET, 6000, 6007, "memset", stream), 100);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    double *seconds = bz_call_seconds(t, &arena);
    assert_true(bz_call_works(t, 0) && !bz_call_works(t, 1) && bz_call_works(t, 2));
    assert_int_equal(bz_call_outermost(t, 1), 0);
    assert_int_equal(llround(1e9 * seconds[0]), 1647);
    assert_true(seconds[1] == 0);
    assert_int_equal(llround(1e9 * seconds[2]), 1600);
    bz_trace_free(t);
    bz_arena_free(&arena);
}

/* A program that marks iterations without waiting for the device: its work is told in full, but idle is only what the iteration
 * lasted. */
static void work_may_outlast_the_iteration(void **state)
{
    (void)state;
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "x", "test"), host = bz_trace_thread(t, source, 1, 1),
             stream = bz_trace_stream(t, source, 1, 0, 1, 7);
    add(t, BZ_EVENT_RANGE, 0, 1000, "benanza_iteration", host);
    add(t, BZ_EVENT_API, 100, 200, "cudaLaunchKernel", host);
    add(t, BZ_EVENT_KERNEL, 300, 900, "a", stream);
    add(t, BZ_EVENT_KERNEL, 950, 5000, "b", stream);
    add(t, BZ_EVENT_KERNEL, 970, 6000, "c", stream);
    /* begins when the next iteration has begun, and a queue's length later */
    add(t, BZ_EVENT_RANGE, 1000, 2000, "benanza_iteration", host);
    tie(t, BZ_EVENT_API, add(t, BZ_EVENT_API, 300, 400, "cudaLaunchKernel", host), 9);
    tie(t, BZ_EVENT_KERNEL, add(t, BZ_EVENT_KERNEL, 7000, 7500, "d", stream), 9);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    bz_iteration_stats s;
    bz_iteration_measure(t, 0, &s);
    assert_int_equal(s.latency, 1000);
    assert_int_equal(s.device_busy, 600 + 50); /* within the iteration */
    assert_int_equal(s.device_end, 7500);
    assert_int_equal(s.kernels, 4);
    assert_int_equal(s.gap, 300 + 50);
    bz_iteration_measure(t, 1, &s);
    assert_int_equal(s.kernels, 0);
    assert_int_equal(s.device_busy, 1000); /* for the iteration before, but it is not idle */
    assert_int_equal(s.gap, 0);
    bz_trace_free(t);
}

static void ask(bz_trace *t, int64_t at, const char *api, bz_event_kind kind, int64_t start, int64_t end,
                uint32_t value, const uint32_t lane[2])
{
    uint32_t id = (uint32_t)at + 1, row = add(t, kind, start, end, kind == BZ_EVENT_KERNEL ? "k" : "copy", lane[1]);
    tie(t, BZ_EVENT_API, add(t, BZ_EVENT_API, at, at + 10, api, lane[0]), id);
    tie(t, kind, row, id);
    if (kind == BZ_EVENT_COPY)
        t->event[kind].value[row] = value;
}

/* A program copies weights; then each iteration copies its input, and waits for that where `waits`; runs two kernels, the first of
 * which is called "first"; copies the result, waits, and rests for 1000 ns. Returns when its second iteration begins. */
static int64_t second_begins(bool waits, uint32_t *copies)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "x", "test");
    const uint32_t lane[2] = {bz_trace_thread(t, source, 1, 1), bz_trace_stream(t, source, 1, 0, 1, 7)};
    for (int64_t at = 0; at < 500; at += 100)
        ask(t, at, "cudaMemcpyAsync", BZ_EVENT_COPY, at + 20, at + 60, 1, lane);
    for (int64_t at = 1000; at < 11000; at += 2000) {
        ask(t, at, "cudaMemcpyAsync", BZ_EVENT_COPY, at + 20, at + 120, 1, lane);
        if (waits)
            add(t, BZ_EVENT_API, at + 15, at + 130, "cudaStreamSynchronize", lane[0]);
        for (int64_t k = 0; k < 4; k++)
            ask(t, at + 150 + 100 * k, "cudaLaunchKernel", BZ_EVENT_KERNEL, at + 180 + 100 * k, at + 250 + 100 * k, 0,
                lane);
        ask(t, at + 600, "cudaMemcpyAsync", BZ_EVENT_COPY, at + 620, at + 700, 2, lane);
        add(t, BZ_EVENT_API, at + 620, at + 710, "cudaDeviceSynchronize", lane[0]);
    }
    for (size_t i = 0; i < t->event[BZ_EVENT_KERNEL].n; i += 4)
        t->event[BZ_EVENT_KERNEL].name[i] = bz_trace_text(t, "first");
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(t->n_iterations, 5);
    assert_int_equal(t->iteration[0].start, 1000); /* the weights are nobody's input */
    assert_int_equal(t->iteration[4].end, 9710);
    *copies = 0;
    for (size_t i = 0; i < t->event[BZ_EVENT_COPY].n; i++)
        *copies += bz_event_iteration(t, BZ_EVENT_COPY, i) == 1;
    bz_iteration_stats s;
    bz_iteration_measure(t, 1, &s);
    assert_int_equal(s.latency, s.device_busy + s.gap);
    int64_t start = t->iteration[1].start;
    bz_trace_free(t);
    return start;
}

static void inputs_are_of_the_iteration_behind_them(void **state)
{
    (void)state;
    uint32_t copies;
    assert_int_equal(second_begins(false, &copies), 3000);
    assert_int_equal(copies, 2);
    assert_int_equal(second_begins(true, &copies), 3000);
    assert_int_equal(copies, 2);
}

/* Six steps of 27 ms that the host asks for within 1 ms each: each takes what the device takes. */
static void steps_may_queue(void **state)
{
    (void)state;
    enum { STEPS = 6, KERNELS = 9, EACH = 3000000, HOST = 100000 };
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "x", "test"), host = bz_trace_thread(t, source, 1, 1),
             stream = bz_trace_stream(t, source, 1, 0, 1, 7), c = 0;
    t->source[source].events = 1;
    for (int i = 0; i < STEPS; i++)
        for (int k = 0; k < KERNELS; k++) {
            char name[32];
            int64_t asked = (int64_t)(i * KERNELS + k) * HOST, from = 1000 + (int64_t)(i * KERNELS + k) * EACH;
            snprintf(name, sizeof name, "kernel %d", k);
            tie(t, BZ_EVENT_API, add(t, BZ_EVENT_API, asked, asked + 500, "cudaLaunchKernel", host), ++c);
            tie(t, BZ_EVENT_KERNEL, add(t, BZ_EVENT_KERNEL, from, from + EACH, name, stream), c);
        }
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(t->n_iterations, STEPS);
    for (uint32_t i = 0; i < STEPS; i++) {
        bz_iteration_stats s;
        bz_iteration_measure(t, i, &s);
        assert_int_equal(s.kernels, KERNELS);
        assert_int_equal(s.latency, (int64_t)KERNELS * EACH + (i ? 0 : 1000));
        assert_int_equal(s.device_busy, (int64_t)KERNELS * EACH);
        assert_int_equal(s.gap, i ? 0 : 1000);
    }
    bz_trace_free(t);
}

/* The host marks steps of 1 ms and never waits; the device takes 4 ms for each. */
static void two_views_of_a_step(void **state)
{
    (void)state;
    enum { STEPS = 8, STEP = 1000000, WORK = 4000000 };
    bz_error err;
    bz_arena arena = {0};
    bz_summary s;
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "x", "test"), host = bz_trace_thread(t, source, 1, 1),
             stream = bz_trace_stream(t, source, 1, 0, 1, 7);
    for (int i = 0; i < STEPS; i++) {
        int64_t at = (int64_t)i * STEP, from = 500 + (int64_t)i * WORK;
        add(t, BZ_EVENT_RANGE, at, at + STEP, "benanza_iteration", host);
        tie(t, BZ_EVENT_API, add(t, BZ_EVENT_API, at + 100, at + 200, "cudaLaunchKernel", host), (uint32_t)i + 1);
        tie(t, BZ_EVENT_KERNEL, add(t, BZ_EVENT_KERNEL, from, from + WORK, "kernel", stream), (uint32_t)i + 1);
    }
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    bz_summary_make(t, &arena, &s);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(s.each[i].latency, STEP);
        assert_int_equal(s.each[i].kernels, 1);
        assert_int_equal(s.each[i].device_busy + s.each[i].gap, STEP);
        assert_int_equal(s.each[i].gap, i ? 0 : 500);
    }
    assert_true(s.behind);
    assert_int_equal((int64_t)s.device_step.p50, WORK);
    bz_arena_free(&arena);
    bz_trace_free(t);
}

/* The device's clock is behind the host's: kernels are stamped before they were launched. */
static void clocks_may_differ(void **state)
{
    (void)state;
    enum { STEPS = 5, KERNELS = 4, SKEW = 700 };
    bz_error err;
    for (int marked = 0; marked < 2; marked++) {
        bz_trace *t = bz_trace_new();
        uint32_t source = bz_trace_source(t, "x", "test"), host = bz_trace_thread(t, source, 1, 1),
                 stream = bz_trace_stream(t, source, 1, 0, 1, 7), c = 0, notes = 0;
        t->source[source].events = 1;
        for (int i = 0; i < STEPS; i++) {
            if (marked)
                add(t, BZ_EVENT_RANGE, i * 100000, i * 100000 + 50000, "benanza_iteration", host);
            for (int k = 0; k < KERNELS; k++) {
                int64_t at = i * 100000 + k * 1000;
                char name[32];
                snprintf(name, sizeof name, "kernel %d", k);
                tie(t, BZ_EVENT_API, add(t, BZ_EVENT_API, at, at + 100, "cudaLaunchKernel", host), ++c);
                uint32_t row = add(t, BZ_EVENT_KERNEL, at + 200 - SKEW, at + 500 - SKEW, name, stream);
                tie(t, BZ_EVENT_KERNEL, row, c);
            }
        }
        assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
        assert_int_equal(t->n_iterations, STEPS);
        for (uint32_t i = 0; i < STEPS; i++) {
            bz_iteration_stats s;
            bz_iteration_measure(t, i, &s);
            assert_int_equal(s.kernels, KERNELS);
            assert_int_equal(s.kernel_time, KERNELS * 300);
            assert_int_equal(s.device_busy + s.gap, s.latency);
        }
        for (uint32_t i = 0; i < t->n_coverage; i++)
            notes +=
                strstr(bz_string(t, t->coverage[i].text), "20 kernels, copies and waits of a device are stamped before "
                                                          "their launch, by 0.5 us at most") != NULL;
        assert_int_equal(notes, 1);
        bz_trace_free(t);
    }
}

static void what_is_saved_comes_back(void **state)
{
    (void)state;
    bz_error err;
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    bz_trace *t = program(4), *u = bz_trace_new();
    uint32_t lane = t->event[BZ_EVENT_CALL].lane[0], frames[] = {bz_trace_text(t, "inner"), bz_trace_text(t, "outer")};
    t->event[BZ_EVENT_CALL].stack[2] = bz_trace_stack(t, frames, 2);
    t->lane[lane].name = bz_trace_text(t, "main");
    size_t c = bz_trace_add(t, BZ_EVENT_COPY, 77, 99, 0, bz_trace_stream(t, 0, 7, 0, 1, 4));
    t->event[BZ_EVENT_COPY].bytes[c] = 4096;
    t->event[BZ_EVENT_COPY].value[c] = 8;
    add(t, BZ_EVENT_OP, 0, 100000, "aten::conv2d", lane);
    add(t, BZ_EVENT_RANGE, 5, 10, "a 'quoted' name", lane);
    bz_trace_fact(t, "gpu", "a GPU");
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(bz_trace_save(t, path, &err), 0);
    assert_int_equal(bz_profile_read(u, path, &err), 0);
    assert_int_equal(bz_trace_finish(u, NULL, &err), 0);
    for (int k = 0; k < BZ_EVENT_KINDS; k++) {
        bz_events *a = &t->event[k], *b = &u->event[k];
        assert_int_equal(a->n, b->n);
        for (size_t i = 0; i < BZ_N_COLUMNS; i++) {
            const bz_column *column = &BZ_COLUMNS[i];
            if (!(column->kinds & 1u << k) || !a->n)
                continue;
            bool string =
                column->offset == offsetof(bz_events, name) || column->offset == offsetof(bz_events, detail) ||
                column->offset == offsetof(bz_events, operands) || column->offset == offsetof(bz_events, variant) ||
                column->offset == offsetof(bz_events, short_name);
            const uint32_t *x = *bz_column_of(a, column), *y = *bz_column_of(b, column);
            if (string)
                for (size_t r = 0; r < a->n; r++)
                    assert_string_equal(bz_string(t, x[r]), bz_string(u, y[r]));
            else
                assert_memory_equal(x, y, a->n * column->size);
        }
    }
    assert_int_equal(u->n_iterations, t->n_iterations);
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        assert_int_equal(u->iteration[i].start, t->iteration[i].start);
        assert_int_equal(u->iteration[i].end, t->iteration[i].end);
        assert_int_equal(u->iteration[i].warm_up, t->iteration[i].warm_up);
    }
    const uint32_t *back;
    assert_int_equal(bz_stack(u, u->event[BZ_EVENT_CALL].stack[2], &back), 2);
    assert_string_equal(bz_string(u, back[1]), "outer");
    assert_string_equal(bz_string(u, u->lane[u->event[BZ_EVENT_CALL].lane[0]].name), "main");
    assert_string_equal(bz_string(u, u->fact[0].value), "a GPU");
    bz_trace_free(t);
    bz_trace_free(u);
    unlink(path);
}

static bz_level level(bz_trace *t, const char *name, int64_t wall, const bz_level_iteration *iteration, uint32_t n)
{
    return (bz_level){bz_trace_text(t, name), wall, bz_arena_dup(&t->arena, iteration, n * sizeof *iteration), n};
}

/* Of a run with everything, and two with less: latency is that of the program alone, library calls those of the run that
 * timed them first. */
static bz_trace *program_in_levels(void)
{
    static const bz_level_iteration ALONE[] = {{9000, 0, true}, {4000, 0, false}, {4200, 0, false}},
                                    CALLS[] = {{9100, 8000, true}, {4400, 3100, false}, {4500, 3300, false}};
    bz_error err;
    bz_trace *t = program(3);
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    t->level = BZ_NEW(&t->arena, bz_level, 3);
    t->n_levels = 3;
    t->own_level = 2;
    t->level[0] = level(t, "program alone", 100000, ALONE, 3);
    t->level[1] = level(t, "with calls", 110000, CALLS, 3);
    t->level[2] = level(t, "with everything", 150000, NULL, 0);
    return t;
}

static void figures_are_of_the_run_that_was_recorded_least(void **state)
{
    (void)state;
    bz_error err;
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    bz_trace *t = program_in_levels(), *u = bz_trace_new();
    assert_int_equal(bz_trace_save(t, path, &err), 0);
    assert_int_equal(bz_profile_read(u, path, &err), 0);
    assert_int_equal(bz_trace_finish(u, NULL, &err), 0);
    bz_trace *both[] = {t, u};
    for (int i = 0; i < 2; i++) {
        double *v;
        bz_buf text = {0};
        assert_int_equal(both[i]->n_levels, 3);
        assert_int_equal(both[i]->own_level, 2);
        assert_int_equal(both[i]->level[1].wall, 110000);
        assert_int_equal(bz_trace_level(both[i], BZ_FIGURE_LATENCY), 0);
        assert_int_equal(bz_trace_level(both[i], BZ_FIGURE_LIBRARY), 1);
        assert_int_equal(bz_trace_figures(both[i], BZ_FIGURE_LATENCY, &both[i]->arena, &v), 2);
        assert_true(v[0] == 4000 && v[1] == 4200);
        assert_int_equal(bz_trace_figures(both[i], BZ_FIGURE_LIBRARY, &both[i]->arena, &v), 2);
        assert_true(v[0] == 3100 && v[1] == 3300);
        bz_trace_print(both[i], 3, &text);
        assert_non_null(strstr(bz_buf_text(&text), ": 4.10 µs each (median, program alone); with everything "));
        assert_non_null(strstr(bz_buf_text(&text), "+50.0 %"));
        bz_buf_free(&text);
    }
    /* by other iterations than those of the levels, the trace's own are all there is */
    const bz_finish_options other = {.iterations = "kernel", .recorded = true};
    bz_trace_free(u);
    u = bz_trace_new();
    assert_int_equal(bz_profile_read(u, path, &err), 0);
    assert_int_equal(bz_trace_finish(u, &other, &err), 0);
    assert_int_equal(bz_trace_level(u, BZ_FIGURE_LATENCY), 2);
    bz_trace_free(t);
    bz_trace_free(u);
    unlink(path);
}

/* What is concluded anew when a trace is read is not in it: told once, and gone where another file answers it. */
static void conclusions_are_not_saved(void **state)
{
    (void)state;
    bz_error err;
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    bz_trace *t = bz_trace_new(), *u = bz_trace_new();
    uint32_t source = bz_trace_source(t, "x", "test");
    t->source[source].events = 2;
    add(t, BZ_EVENT_API, 10, 20, "cudaFree", bz_trace_thread(t, source, 7, 8));
    add(t, BZ_EVENT_KERNEL, 30, 40, "its launch is not on record", bz_trace_stream(t, source, 7, 0, 1, 3));
    bz_trace_cover(t, BZ_NONE, BZ_COVERAGE_MISSING, "something that only the recorder knows");
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(t->n_iterations, 0);
    assert_int_equal(t->n_coverage, 3);
    assert_int_equal(bz_trace_save(t, path, &err), 0);
    assert_int_equal(bz_profile_read(u, path, &err), 0);
    assert_int_equal(u->n_coverage, 1);
    assert_string_equal(bz_string(u, u->coverage[0].text), "something that only the recorder knows");
    assert_int_equal(bz_trace_finish(u, NULL, &err), 0);
    assert_int_equal(u->n_coverage, 3);
    bz_trace_free(t);
    bz_trace_free(u);
    unlink(path);
}

static void callers_are_those_of_the_program(void **state)
{
    (void)state;
    static const struct {
        const char *frame[4], *caller;
    } STACKS[] = {
        {{"_conv (/usr/lib/python3/dist-packages/torch/conv.py:4)", "f (/home/me/infer.py:7)",
          "<module> (/home/me/infer.py:9)", "main (python3)"},
         "f (/home/me/infer.py:7)"},
        {{"run (/opt/site-packages/a.py:1)", "at::conv (libtorch.so)"}, "run (/opt/site-packages/a.py:1)"},
        {{"at::conv (libtorch.so.2)", "infer (app)", "main (app)"}, "infer (app)"},
        {{"at::conv (libtorch.so.2)", "+0x12 (libc.so.6)"}, "at::conv (libtorch.so.2)"},
    };
    bz_error err;
    bz_trace *t = program(6);
    uint32_t id[4];
    for (int i = 0; i < 4; i++) {
        uint32_t frames[4];
        int n = 0;
        for (; n < 4 && STACKS[i].frame[n]; n++)
            frames[n] = bz_trace_text(t, STACKS[i].frame[n]);
        id[i] = bz_trace_stack(t, frames, n);
        assert_string_equal(bz_string(t, bz_stack_caller(t, id[i])), STACKS[i].caller);
    }
    bz_events *call = &t->event[BZ_EVENT_CALL];
    for (size_t i = 0; i < call->n; i++) /* of five calls per iteration two of the first kind, one without */
        call->stack[i] = i % 5 == 4 ? 0 : id[i % 5 % 3];
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    bz_arena arena = {0};
    bz_top *rows;
    size_t n = bz_trace_callers(t, &arena, &rows);
    assert_int_equal(n, 3);
    assert_string_equal(bz_string(t, rows[0].name), STACKS[0].caller);
    assert_string_equal(bz_string(t, rows[0].beside), "cudnn0Forward");
    assert_int_equal(rows[0].count, 2 * 5); /* the first iteration is warm-up */
    assert_int_equal(rows[0].time, 2 * 5 * 800);
    assert_int_equal(rows[1].count, 5);
    bz_arena_free(&arena);
    bz_trace_free(t);
}

static void expect_period(const char *symbols, uint32_t iterations, uint32_t length)
{
    bz_arena arena = {0};
    size_t n = strlen(symbols);
    uint64_t *s = BZ_NEW(&arena, uint64_t, n);
    for (size_t i = 0; i < n; i++)
        s[i] = (uint64_t)symbols[i];
    uint32_t *first, found = bz_find_period(s, n, NULL, &first, &arena);
    if (found != iterations)
        fail_msg("%s: %u iterations, not %u", symbols, found, iterations);
    if (found)
        assert_int_equal(first[found] - first[found - 1], length);
    bz_arena_free(&arena);
}

static void periods(void **state)
{
    (void)state;
    expect_period("abcdabcdabcd", 3, 4);
    expect_period("abcdabcd", 2, 4);
    expect_period("xyabcdabcdabcdabcd", 4, 4);                        /* something else first */
    expect_period("abcdefghijklmnop", 0, 0);                          /* nothing repeats */
    expect_period("abcabcabcpabcabcabcpabcabcabcpabcabcabcp", 4, 10); /* layers within iterations */
    expect_period("aabaaabaaabaaaba", 4, 4);                          /* two functions only */
    expect_period("abc", 0, 0);
    /* two threads that change places now and then, in iterations long enough to tell */
    expect_period("abcdefghijklmnopqrstuvwxyz0123456789ABCD"
                  "abdcefghijklmnopqrstuvwxyz0123456789ABCD"
                  "abcdefghijklmnoprqstuvwxyz0123456789ABCD",
                  3, 40);
    /* one iteration has one call more */
    expect_period("abcdefghijklmnopqrstuvwxyz0123456789ABCD"
                  "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
                  "abcdefghijklmnopqrsstuvwxyz0123456789ABCD"
                  "abcdefghijklmnopqrstuvwxyz0123456789ABCD",
                  4, 40);
}

static void the_longest_pause_begins_an_iteration(void **state)
{
    (void)state;
    bz_arena arena = {0};
    /* a recording that begins in the middle of an iteration, and ends in the middle of another */
    uint64_t s[23];
    int64_t gap[23];
    for (int i = 0; i < 23; i++) {
        s[i] = (uint64_t)(i % 5);
        gap[i] = i % 5 == 2 ? 1000 : 1;
    }
    uint32_t *first, n = bz_find_period(s, 23, gap, &first, &arena);
    assert_int_equal(n, 4);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(first[i], 2 + 5 * i);
    bz_arena_free(&arena);
}

static void quantiles(void **state)
{
    (void)state;
    double v[] = {4, 1, 3, 2, 5};
    bz_quantiles q = bz_quantiles_of(v, 5);
    assert_true(q.min == 1 && q.max == 5 && q.p50 == 3 && q.mean > 2.999 && q.mean < 3.001);
    assert_true(q.p90 > 4.59 && q.p90 < 4.61);
    q = bz_quantiles_of(NULL, 0);
    assert_int_equal(q.n, 0);
}

static const char *algorithm_of(const char *name)
{
    bz_kernel k;
    bz_kernel_read(name, &k);
    return k.algorithm;
}

static void names_tell_the_algorithm(void **state)
{
    (void)state;
    assert_string_equal(algorithm_of("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1"),
                        "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD");
    assert_string_equal(algorithm_of("volta_scudnn_128x64_relu_interior_nn_v1"),
                        "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM");
    assert_string_equal(algorithm_of("implicit_convolve_sgemm"), "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM");
    assert_null(algorithm_of("generateWinogradTilesKernel"));
    assert_null(algorithm_of("mxnet_generic_kernel"));
    assert_true(bz_call_executes("cudnnConvolutionForward"));
    assert_true(bz_call_executes("cudnnBackendExecute"));
    assert_true(bz_call_executes("cublasSgemm_v2"));
    assert_true(bz_call_executes("cublasLtMatmul"));
    assert_false(bz_call_executes("cudnnSetConvolution2dDescriptor"));
    assert_false(bz_call_executes("cudnnGetConvolutionForwardAlgorithm_v7"));
    assert_false(bz_call_executes("cudnnBackendFinalize"));
    assert_false(bz_call_executes("cublasLtMatmulAlgoGetHeuristic"));
    assert_false(bz_call_executes("cublasSetStream_v2"));
}

/* Rows stay what they are when more room is made for them, those that are zero and those beside them too. */
static void columns_grow_with_what_is_in_them(void **state)
{
    (void)state;
    enum { ROWS = 2000000, EACH = 77777 };
    bz_trace *t = bz_trace_new();
    bz_events *e = &t->event[BZ_EVENT_KERNEL];
    uint32_t stream = bz_trace_stream(t, 0, 0, 0, 0, 7);
    for (int64_t i = 0; i < ROWS; i++) {
        bz_trace_add(t, BZ_EVENT_KERNEL, i, i + 1, 0, stream);
        if (i % EACH == EACH - 1)
            e->graph[i] = e->occupancy[i] = (uint32_t)i;
    }
    assert_int_equal(e->n, ROWS);
    for (int64_t i = 0; i < ROWS; i++) {
        uint32_t is = i % EACH == EACH - 1 ? (uint32_t)i : 0;
        if (e->start[i] != i || e->graph[i] != is || e->occupancy[i] != is || e->correlation[i] || e->launched[i])
            fail_msg("row %lld is another one", (long long)i);
    }
    bz_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_grow_with_what_is_in_them),
        cmocka_unit_test(whole_microseconds_leave_doubt),
        cmocka_unit_test(strings_are_kept_once),
        cmocka_unit_test(rows_are_sorted_outer_first),
        cmocka_unit_test(summaries_tell_the_same),
        cmocka_unit_test(busy_time_is_that_of_all_spans),
        cmocka_unit_test(rows_are_found_by_their_start),
        cmocka_unit_test(times_that_lie_are_clamped),
        cmocka_unit_test(kernels_find_their_calls),
        cmocka_unit_test(tables_end_together),
        cmocka_unit_test(iterations_are_found_and_measured),
        cmocka_unit_test(ranges_of_the_program_win),
        cmocka_unit_test(operators_may_mark_iterations),
        cmocka_unit_test(another_program_before_is_warm_up),
        cmocka_unit_test(one_iteration_is_typical),
        cmocka_unit_test(captured_launches_do_nothing),
        cmocka_unit_test(functions_mark_no_iterations),
        cmocka_unit_test(last_marks_may_be_short),
        cmocka_unit_test(marks_hold_work),
        cmocka_unit_test(servers_name_phases),
        cmocka_unit_test(a_single_step_ends_with_its_work),
        cmocka_unit_test(iterations_end_with_updates),
        cmocka_unit_test(doubts_are_saved),
        cmocka_unit_test(long_launches_are_no_clock),
        cmocka_unit_test(work_from_before_is_not_on_its_way),
        cmocka_unit_test(shares_are_of_a_whole),
        cmocka_unit_test(a_single_step_has_a_device),
        cmocka_unit_test(names_match_patterns),
        cmocka_unit_test(calls_take_what_their_work_takes),
        cmocka_unit_test(work_may_outlast_the_iteration),
        cmocka_unit_test(inputs_are_of_the_iteration_behind_them),
        cmocka_unit_test(steps_may_queue),
        cmocka_unit_test(two_views_of_a_step),
        cmocka_unit_test(clocks_may_differ),
        cmocka_unit_test(what_is_saved_comes_back),
        cmocka_unit_test(figures_are_of_the_run_that_was_recorded_least),
        cmocka_unit_test(conclusions_are_not_saved),
        cmocka_unit_test(callers_are_those_of_the_program),
        cmocka_unit_test(periods),
        cmocka_unit_test(the_longest_pause_begins_an_iteration),
        cmocka_unit_test(quantiles),
        cmocka_unit_test(names_tell_the_algorithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
