/* Recordings that nobody wants to meet, and random ones: each ends in an answer or in a sentence, and what can only make an
 * iteration shorter never makes it longer. */
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

enum { US = 1000, TO_DEVICE = 1, TO_HOST = 2 };

typedef struct {
    bz_trace *t;
    uint32_t source, thread[3], stream[4], number;
} made;

/* Threads of two processes; streams of two devices. */
static made begin(void)
{
    made m = {.t = bz_trace_new()};
    m.source = bz_trace_source(m.t, "made", "made");
    for (int i = 0; i < 3; i++)
        m.thread[i] = bz_trace_thread(m.t, m.source, 1 + i / 2, 11 + i);
    for (int i = 0; i < 4; i++)
        m.stream[i] = bz_trace_stream(m.t, m.source, 1 + i / 3, i / 2, 1, 7 + i);
    return m;
}

static size_t add_api(made *m, const char *name, int thread, int64_t start, int64_t end, uint32_t correlation)
{
    size_t a = bz_trace_add(m->t, BZ_EVENT_API, start, end, bz_trace_text(m->t, name), m->thread[thread]);
    m->t->event[BZ_EVENT_API].correlation[a] = correlation;
    return a;
}

static size_t add_work(made *m, bz_event_kind kind, const char *name, int stream, int64_t start, int64_t end,
                       uint32_t correlation)
{
    size_t k = bz_trace_add(m->t, kind, start, end, bz_trace_text(m->t, name), m->stream[stream]);
    m->t->event[kind].correlation[k] = correlation;
    return k;
}

static void finish(made *m)
{
    bz_error err;
    if (bz_trace_finish(m->t, NULL, &err))
        fail_msg("%s", err.text);
}

/* An answer, of which all is told; or a sentence. */
static bool answers(const made *m)
{
    bz_flow flow;
    bz_whatif w;
    bz_error err = {0};
    bz_arena arena = {0};
    bool good = !bz_flow_make(m->t, bz_typical_iteration(m->t), &flow, &err);
    if (!good) {
        assert_int_equal(err.code, BZ_BAD_INPUT);
        assert_true(strlen(err.text) > 20);
        return false;
    }
    if (bz_whatif_begin(&flow, &arena, &w, &err) || bz_whatif_try_all(&arena, &w, &err)) {
        assert_non_null(strstr(err.text, "circle"));
        good = false;
    } else {
        assert_int_equal(w.split.host + w.split.device + w.split.both + w.split.neither, w.split.total);
        for (int i = 0; i < w.n; i++) {
            assert_true(w.prediction[i].changed || w.prediction[i].because);
            assert_true(w.prediction[i].time >= 0 && w.prediction[i].low <= w.prediction[i].high);
        }
    }
    bz_flow_free(&flow);
    bz_arena_free(&arena);
    return good;
}

static void empty_ones(void **state)
{
    (void)state;
    made m = begin(); /* nothing */
    finish(&m);
    assert_false(answers(&m));
    bz_trace_free(m.t);
    m = begin(); /* nothing that takes time */
    add_api(&m, "cudaLaunchKernel", 0, 10 * US, 10 * US, 1);
    finish(&m);
    assert_false(answers(&m));
    bz_trace_free(m.t);
    m = begin(); /* one task */
    add_work(&m, BZ_EVENT_KERNEL, "gemm", 0, 10 * US, 20 * US, 1);
    finish(&m);
    assert_true(answers(&m));
    bz_trace_free(m.t);
    m = begin(); /* all ends before it begins */
    add_work(&m, BZ_EVENT_KERNEL, "gemm", 0, 30 * US, 20 * US, 1);
    add_api(&m, "cudaLaunchKernel", 0, 10 * US, 5 * US, 1);
    finish(&m);
    answers(&m);
    bz_trace_free(m.t);
}

/* A device alone, as an export of kernels without calls has it; a host alone; kernels whose launch is not on record. */
static void halves(void **state)
{
    (void)state;
    for (int half = 0; half < 3; half++) {
        made m = begin();
        for (uint32_t i = 0; i < 50; i++) {
            int64_t at = (int64_t)i * 100 * US;
            if (half != 0)
                add_api(&m, "cudaLaunchKernel", 0, at, at + 5 * US, half == 2 ? 1000 + i : i + 1);
            if (half != 1)
                add_work(&m, BZ_EVENT_KERNEL, i % 2 ? "gemm" : "relu", 0, at + 7 * US, at + 90 * US, i + 1);
        }
        finish(&m);
        assert_true(answers(&m));
        bz_trace_free(m.t);
    }
}

/* Clocks that are off in either direction: work before its launch, waits that end before what they wait for, streams that wait
 * for each other. */
static void clocks(void **state)
{
    (void)state;
    static const int64_t OFF[] = {-1000000 * (int64_t)US, -300 * US, -3 * US, 3 * US, 300 * US, INT64_MAX / 4};
    for (size_t k = 0; k < sizeof OFF / sizeof *OFF; k++) {
        made m = begin();
        for (uint32_t i = 0; i < 40; i++) {
            int64_t at = (int64_t)i * 100 * US, there = at + 7 * US + OFF[k];
            int stream = (int)(i % 3);
            add_api(&m, "cudaLaunchKernel", 0, at, at + 5 * US, 3 * i + 1);
            add_work(&m, BZ_EVENT_KERNEL, "gemm", stream, there, there + 80 * US, 3 * i + 1);
            size_t a = add_api(&m, "cudaStreamWaitEvent", 0, at + 6 * US, at + 7 * US, 3 * i + 2);
            (void)a;
            size_t s =
                add_work(&m, BZ_EVENT_SYNC, "Stream Wait Event", (stream + 1) % 3, at + 6 * US, at + 7 * US, 3 * i + 2);
            m.t->event[BZ_EVENT_SYNC].waited_record[s] = 3 * i + 3;
            m.t->event[BZ_EVENT_SYNC].waited_stream[s] = 1 + 7 + (uint32_t)((stream + 2) % 3);
            add_api(&m, "cudaEventRecord", 0, at + 8 * US, at + 9 * US, 3 * i + 3);
            if (i % 10 == 9)
                add_api(&m, "cudaDeviceSynchronize", 0, at + 10 * US, at + 90 * US, 0);
        }
        finish(&m);
        answers(&m);
        bz_trace_free(m.t);
    }
}

static uint32_t seed;

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

/* What a program could really have done: each stream in order, no work before its launch, waits that wait. */
static made record_random(void)
{
    made m = begin();
    int64_t host[3] = {0}, stream[4] = {0}, launched[4] = {0};
    uint32_t calls = 5 + draw(80);
    for (uint32_t i = 1; i <= calls; i++) {
        int thread = (int)draw(8) ? 0 : (int)draw(3), s = (int)draw(4);
        int64_t at = host[thread] + (draw(5) ? draw(20) : draw(200)) * US, took = (1 + draw(10)) * US, begins, length;
        at = at > launched[s] ? at : launched[s] + 1; /* a stream runs in the order of its launches */
        launched[s] = at;
        switch (draw(12)) {
        case 0: { /* all of the device */
            int64_t done = at + took;
            for (int k = 0; k < 4; k++)
                done = stream[k] > done ? stream[k] : done;
            add_api(&m, "cudaDeviceSynchronize", thread, at, done + 2 * US, 0);
            host[thread] = done + 2 * US;
            continue;
        }
        case 1: { /* one stream */
            int64_t done = stream[s] > at ? stream[s] : at;
            add_api(&m, "cudaStreamSynchronize", thread, at, done + US, 50000 + i);
            add_work(&m, BZ_EVENT_SYNC, "Stream Sync", s, at, done, 50000 + i);
            host[thread] = done + US;
            continue;
        }
        case 2: { /* a copy that returns behind its end */
            begins = at + 2 * US > stream[s] ? at + 2 * US : stream[s];
            length = (1 + draw(50)) * US;
            add_api(&m, "cudaMemcpy", thread, at, begins + length + US, i);
            size_t c = add_work(&m, BZ_EVENT_COPY, "Memcpy", s, begins, begins + length, i);
            m.t->event[BZ_EVENT_COPY].value[c] = draw(2) ? TO_HOST : TO_DEVICE;
            m.t->event[BZ_EVENT_COPY].bytes[c] = draw(1 << 20);
            stream[s] = begins + length;
            host[thread] = stream[s] + US;
            continue;
        }
        default:
            break;
        }
        add_api(&m, "cudaLaunchKernel", thread, at, at + took, i);
        begins = at + (1 + draw(8)) * US > stream[s] ? at + (1 + draw(8)) * US : stream[s] + draw(3) * US;
        begins = begins > stream[s] ? begins : stream[s];
        length = (1 + draw(100)) * US;
        add_work(&m, BZ_EVENT_KERNEL, draw(2) ? "volta_sgemm_128x64_nn" : "relu_kernel", s, begins, begins + length, i);
        stream[s] = begins + length;
        host[thread] = at + took;
    }
    finish(&m);
    return m;
}

static int64_t time_with(const bz_flow *flow, const char *const *what, int n)
{
    bz_arena arena = {0};
    bz_error err;
    bz_whatif w;
    bz_whatif_asked asked[4];
    assert_int_equal(bz_whatif_begin(flow, &arena, &w, &err), 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(bz_whatif_parse(what[i], &arena, &asked[i], &err), 0);
    if (n && bz_whatif_predict(asked, n, &arena, &w, NULL, NULL, &err))
        fail_msg("seed %u: %s: %s", seed, what[0], err.text);
    int64_t time = n ? w.prediction[0].time : w.simulated;
    bz_arena_free(&arena);
    return time;
}

static int64_t with(const bz_flow *flow, const char *what)
{
    return time_with(flow, &what, 1);
}

static void never_longer(const bz_flow *flow, int64_t before)
{
    static const char *const SHORTER[] = {
        "device:times=2", "host:times=3",      "link:times=4",   "cuda-graph",
        "half-precision", "copies-overlapped", "device:times=1", "substitution:file=/dev/null"};
    for (size_t i = 0; i < sizeof SHORTER / sizeof *SHORTER; i++) {
        int64_t after = with(flow, SHORTER[i]);
        if (after > before)
            fail_msg("seed %u: %s: %lld ns become %lld", seed, SHORTER[i], (long long)before, (long long)after);
    }
    bz_flow less = {0};
    bz_flow_copy(flow, &less);
    for (int k = 0; k < 6; k++) {
        uint32_t task = draw(less.n);
        if (less.task[task].removed)
            continue;
        if (draw(2))
            bz_flow_remove(&less, task, draw(2));
        else
            bz_flow_remove_launched(&less, task, draw(2));
        int64_t after = time_with(&less, NULL, 0);
        if (after > before)
            fail_msg("seed %u: task %u removed: %lld ns become %lld", seed, task, (long long)before, (long long)after);
        before = after;
    }
    bz_flow_free(&less);
}

static void sweeps(const bz_flow *flow)
{
    static const char *const NAMES[] = {"device", "host", "link", "batch"};
    for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++) {
        int64_t last = -1;
        for (int times = 1; times <= 16; times *= 2) {
            char text[64];
            snprintf(text, sizeof text, "%s:times=%d", NAMES[k], times);
            int64_t now = with(flow, text);
            if (last >= 0)
                assert_true(k == 3 ? now >= last : now <= last);
            last = now;
        }
    }
}

static void properties(void **state)
{
    (void)state;
    for (uint32_t run = 1; run <= 150; run++) {
        seed = run * 7919;
        made m = record_random();
        bz_flow flow;
        bz_error err;
        if (bz_flow_make(m.t, BZ_NONE, &flow, &err)) /* all of it: what seems to repeat is chance */
            fail_msg("seed %u: %s", run * 7919, err.text);
        int64_t before = time_with(&flow, NULL, 0);
        double off = (double)(before - flow.measured) / (double)flow.measured;
        if (off > 0.03 || off < -0.03)
            fail_msg("seed %u: measured %lld, simulated %lld", run * 7919, (long long)flow.measured, (long long)before);
        never_longer(&flow, before);
        sweeps(&flow);
        static const char *const ORDERS[][2][2] = {
            {{"device:times=2", "host:times=3"}, {"host:times=3", "device:times=2"}},
            {{"link:times=2", "device:times=3"}, {"device:times=3", "link:times=2"}},
            {{"link:times=2", "host:times=3"}, {"host:times=3", "link:times=2"}}};
        for (size_t k = 0; k < sizeof ORDERS / sizeof *ORDERS; k++)
            assert_int_equal(time_with(&flow, ORDERS[k][0], 2), time_with(&flow, ORDERS[k][1], 2));
        bz_flow_free(&flow);
        bz_trace_free(m.t);
    }
}

/* A page says why it shows nothing of an iteration that is too large to try all changes of it. */
static void too_many(void **state)
{
    (void)state;
    made m = begin();
    bz_arena arena = {0};
    for (int i = 0; i <= BZ_WHATIF_SHOWN; i++)
        add_api(&m, "cudaGetLastError", 0, 10 * i * US, (10 * i + 5) * US, 0);
    finish(&m);
    const bz_whatif_shown *s = bz_whatif_show(m.t, NULL, &arena);
    assert_non_null(s);
    assert_non_null(strstr(s->why, "more than the 100000"));
    assert_int_equal(s->whatif.n, 0);
    bz_arena_free(&arena);
    bz_trace_free(m.t);
}

/* Of three iterations that a person marked the middle one has nothing in it: it ends in a sentence, the others in a graph. */
static void empty_iteration(void **state)
{
    (void)state;
    made m = begin();
    for (int i = 0; i < 3; i++) {
        int64_t at = (int64_t)i * 1000 * US;
        bz_trace_add(m.t, BZ_EVENT_RANGE, at, at + 900 * US, bz_trace_text(m.t, "benanza_iteration"), m.thread[0]);
        if (i == 1)
            continue;
        add_api(&m, "cudaLaunchKernel", 0, at + 10 * US, at + 15 * US, (uint32_t)i + 1);
        add_work(&m, BZ_EVENT_KERNEL, "gemm", 0, at + 20 * US, at + 500 * US, (uint32_t)i + 1);
    }
    finish(&m);
    assert_int_equal(m.t->n_iterations, 3);
    for (uint32_t i = 0; i < 3; i++) {
        bz_flow flow;
        bz_error err = {0};
        int failed = bz_flow_make(m.t, i, &flow, &err);
        assert_int_equal(failed != 0, i == 1);
        if (failed)
            assert_non_null(strstr(err.text, "nothing in this iteration"));
        else
            bz_flow_free(&flow);
    }
    bz_trace_free(m.t);
}

/* Scripts of a megabyte: each ends soon, in an answer or in a sentence that names its line. */
static void long_scripts(void **state)
{
    static const struct {
        const char *first, *again, *sentence;
    } SCRIPTS[] = {{"select kind=kernel\n", "scale 0.999\n", NULL},
                   {"select all\n", "insert kernel x 1\n", "too many tasks"},
                   {"select kind=kernel\nkeep A\nselect all\n", "depend A\n", "too many dependencies"},
                   {"", "#", NULL},
                   {"select name=", "a", "longer than"}};
    enum { LENGTH = 1000000 };
    (void)state;
    made m = begin();
    for (uint32_t i = 0; i < 200; i++) {
        add_api(&m, "cudaLaunchKernel", 0, (int64_t)i * 10 * US, (int64_t)(i * 10 + 5) * US, i + 1);
        add_work(&m, BZ_EVENT_KERNEL, "gemm", 0, (int64_t)(i * 10 + 6) * US, (int64_t)(i * 10 + 15) * US, i + 1);
    }
    finish(&m);
    for (size_t k = 0; k < sizeof SCRIPTS / sizeof *SCRIPTS; k++) {
        char path[] = "/tmp/benanza-script-XXXXXX", asked_text[64];
        bz_flow flow;
        bz_whatif w;
        bz_whatif_asked asked;
        bz_error err = {0};
        bz_arena arena = {0};
        int fd = mkstemp(path);
        FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
        assert_non_null(f);
        size_t n = strlen(SCRIPTS[k].again);
        fputs(SCRIPTS[k].first, f);
        for (size_t i = 0; i < LENGTH / n; i++)
            fputs(SCRIPTS[k].again, f);
        fputs("\n", f);
        fclose(f);
        snprintf(asked_text, sizeof asked_text, "script:file=%s", path);
        assert_int_equal(bz_flow_make(m.t, BZ_NONE, &flow, &err), 0);
        assert_int_equal(bz_whatif_begin(&flow, &arena, &w, &err), 0);
        assert_int_equal(bz_whatif_parse(asked_text, &arena, &asked, &err), 0);
        int failed = bz_whatif_predict(&asked, 1, &arena, &w, NULL, NULL, &err);
        assert_int_equal(failed != 0, SCRIPTS[k].sentence != NULL);
        if (failed)
            assert_non_null(strstr(err.text, SCRIPTS[k].sentence));
        unlink(path);
        bz_flow_free(&flow);
        bz_arena_free(&arena);
    }
    bz_trace_free(m.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_ones),   cmocka_unit_test(halves),   cmocka_unit_test(clocks),
        cmocka_unit_test(properties),   cmocka_unit_test(too_many), cmocka_unit_test(empty_iteration),
        cmocka_unit_test(long_scripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
