/* PyTorch's profiler tells which event a stream or the host waits for. Here nothing else does: a kernel that was launched between
 * the record of the event and the wait for it hides what was waited for. */
#include "profile/reader.h"
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

#define API(NAME, CORRELATION, AT, LONG)                                                                               \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"" NAME "\",\"pid\":5,\"tid\":5,\"ts\":" #AT ",\"dur\":" #LONG   \
    ",\"args\":{\"correlation\":" #CORRELATION "}},"
#define KERNEL(NAME, CORRELATION, STREAM, AT, LONG)                                                                    \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" NAME "\",\"pid\":0,\"tid\":" #STREAM ",\"ts\":" #AT                 \
    ",\"dur\":" #LONG ",\"args\":{\"correlation\":" #CORRELATION ",\"stream\":" #STREAM ",\"device\":0}},"
#define SYNC(KIND, CORRELATION, STREAM, RECORD, WAITED, AT)                                                            \
    "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"" KIND "\",\"pid\":0,\"tid\":" #STREAM ",\"ts\":" #AT              \
    ",\"dur\":2,\"args\":{\"correlation\":" #CORRELATION ",\"stream\":" #STREAM ",\"device\":0,"                       \
    "\"wait_on_stream\":" #WAITED ",\"wait_on_cuda_event_record_corr_id\":" #RECORD "}},"

/* Stream 7 runs a (100 µs) and, behind the event, b (1000 µs); stream 9 waits for the event with c. At the end the host waits
 * for LAST. */
#define TRACE(RECORD, WAITED, LAST)                                                                                    \
    "{\"schemaVersion\":1,\"traceEvents\":[" API("cudaLaunchKernel", 1, 1000, 5) API("cudaEventRecord", 2, 1007, 2)    \
        API("cudaLaunchKernel", 3, 1012, 5) API("cudaStreamWaitEvent", 4, 1020, 2) API("cudaLaunchKernel", 5, 1025, 5) \
            KERNEL("a", 1, 7, 1010, 100) KERNEL("b", 3, 7, 1112, 1000) KERNEL("c", 5, 9, 1112, 200)                    \
                SYNC("Stream Wait Event", 4, 9, RECORD, WAITED, 1021) LAST                                             \
        "{\"ph\":\"i\",\"name\":\"end\",\"pid\":5,\"tid\":5,\"ts\":2200}]}"
#define DEVICE_SYNC API("cudaDeviceSynchronize", 6, 1040, 1080) SYNC("Context Sync", 6, -1, -1, -1, 1041)
#define EVENT_SYNC  API("cudaEventSynchronize", 6, 1040, 75) SYNC("Event Sync", 6, -1, 2, 7, 1041)

static bz_trace *read_text(const char *text)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    bz_stream *in = bz_stream_memory(text, strlen(text));
    if (bz_profile_read_stream(t, in, &bz_reader_chrome, &err) || bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    bz_stream_close(in);
    return t;
}

static uint32_t find(const bz_flow *f, const char *name)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (!strcmp(f->task[i].name, name))
            return i;
    fail_msg("no task is called %s", name);
    return BZ_NONE;
}

static uint32_t seed;

static int64_t draw(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

/* An event of PyTorch's profiler, whose times are whole numbers of ns. */
static void put_call(bz_buf *text, const char *name, int correlation, int64_t at)
{
    bz_buf_printf(text,
                  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":5,\"tid\":5,\"ts\":%.3f,\"dur\":2,"
                  "\"args\":{\"correlation\":%d}},",
                  name, 1e-3 * (double)at, correlation);
}

static void put_work(bz_buf *text, int correlation, int stream, int64_t at, int64_t length)
{
    bz_buf_printf(text,
                  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
                  "\"args\":{\"correlation\":%d,\"stream\":%d,\"device\":0}},",
                  stream, 1e-3 * (double)at, 1e-3 * (double)length, correlation, stream);
}

static void put_wait(bz_buf *text, int correlation, int record, int stream, int64_t at)
{
    put_call(text, "cudaStreamWaitEvent", correlation, at);
    bz_buf_printf(text,
                  "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Wait Event\",\"pid\":0,\"tid\":9,\"ts\":%.3f,"
                  "\"dur\":1,\"args\":{\"correlation\":%d,\"stream\":9,\"device\":0,\"wait_on_stream\":%d,"
                  "\"wait_on_cuda_event_record_corr_id\":%d}},",
                  1e-3 * (double)at, correlation, stream, record);
}

/* Streams 7 and 8 work; stream 9 waits for both, again and again. By the clock it may go on up to 1 µs before they are done, and kernels may
 * begin before what launches them does. */
static bz_buf random_streams(void)
{
    enum { ROUNDS = 8, US = 1000 };
    bz_buf text = {0};
    int64_t call = 1000 * US, end[3] = {0};
    bool early = draw(2);
    bz_buf_puts(&text, "{\"schemaVersion\":1,\"traceEvents\":[");
    for (int round = 0, c = 1; round < ROUNDS; round++, c += 7) {
        for (int s = 0; s < 2; s++) {
            put_call(&text, "cudaLaunchKernel", c + 2 * s, call);
            int64_t at = call + (early ? -2 : 3) * US + draw(30 * US), length = 5 * US + draw(60 * US);
            at = at < end[s] ? end[s] + draw(2 * US) : at;
            put_work(&text, c + 2 * s, 7 + s, at, length);
            end[s] = at + length;
            put_call(&text, "cudaEventRecord", c + 2 * s + 1, call + 3 * US);
            call += 6 * US;
        }
        for (int s = 0; s < 2; s++, call += 3 * US)
            put_wait(&text, c + 4 + s, c + 2 * s + 1, 7 + s, call);
        int64_t ready = end[0] > end[1] ? end[0] : end[1];
        put_call(&text, "cudaLaunchKernel", c + 6, call);
        ready = ready < call ? call : ready;
        ready = ready - 900 + draw(2000) * (1 + draw(4));
        ready = ready < end[2] ? end[2] : ready;
        end[2] = ready + draw(50 * US);
        put_work(&text, c + 6, 9, ready, end[2] - ready);
        call += draw(120 * US);
    }
    bz_buf_puts(&text, "{\"ph\":\"i\",\"name\":\"end\",\"pid\":5,\"tid\":5,\"ts\":4000}]}");
    return text;
}

/* Whatever a kernel waited for, in the unchanged graph it starts when it did. */
static void kernels_start_when_they_did(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 300; round++) {
        seed = round;
        bz_buf text = random_streams();
        bz_trace *t = read_text(text.data);
        bz_flow f;
        bz_error err;
        bz_arena arena = {0};
        bz_simulated s;
        int kernels = 0;
        if (bz_flow_make(t, BZ_NONE, &f, &err) || bz_flow_simulate(&f, &arena, &s, &err))
            fail_msg("%s", err.text);
        for (uint32_t i = 0; i < f.n; i++)
            if (f.task[i].kind == BZ_TASK_KERNEL) {
                if (s.start[i] != f.task[i].at)
                    fail_msg("round %u: %s starts at %lld, not at %lld", round, f.task[i].name, (long long)s.start[i],
                             (long long)f.task[i].at);
                kernels++;
            }
        assert_int_equal(kernels, t->event[BZ_EVENT_KERNEL].n);
        bz_arena_free(&arena);
        bz_flow_free(&f);
        bz_trace_free(t);
        bz_buf_free(&text);
    }
}

/* When a task starts after another took half as long. */
static int64_t start_after(const char *text, const char *changed, const char *asked, int64_t *before)
{
    bz_trace *t = read_text(text);
    bz_flow f;
    bz_error err;
    bz_arena arena = {0};
    bz_simulated s;
    if (bz_flow_make(t, bz_typical_iteration(t), &f, &err) || bz_flow_simulate(&f, &arena, &s, &err))
        fail_msg("%s", err.text);
    uint32_t task = find(&f, asked);
    *before = s.start[task];
    bz_flow_scale(&f, find(&f, changed), 0.5);
    if (bz_flow_simulate(&f, &arena, &s, &err))
        fail_msg("%s", err.text);
    int64_t start = s.start[task];
    bz_arena_free(&arena);
    bz_flow_free(&f);
    bz_trace_free(t);
    return start;
}

static void streams(void **state)
{
    (void)state;
    int64_t before, after = start_after(TRACE(2, 7, DEVICE_SYNC), "a", "c", &before);
    assert_int_equal(after, before - 50000);
    after = start_after(TRACE(2, 7, DEVICE_SYNC), "b", "c", &before);
    assert_int_equal(after, before);
    after = start_after(TRACE(-1, -1, DEVICE_SYNC), "a", "c", &before); /* nobody tells: it starts when it did */
    assert_int_equal(after, before);
    after = start_after(TRACE(99, 7, DEVICE_SYNC), "a", "c", &before); /* a call that is not on record */
    assert_int_equal(after, before);
}

/* The row of a wait for the whole device is on stream -1. */
static void host(void **state)
{
    (void)state;
    int64_t before[2], after[2];
    for (int k = 0; k < 2; k++) {
        bz_trace *t = read_text(k ? TRACE(2, 7, EVENT_SYNC) : TRACE(2, 7, DEVICE_SYNC));
        bz_flow f;
        bz_error err;
        bz_arena arena = {0};
        bz_simulated s;
        if (bz_flow_make(t, bz_typical_iteration(t), &f, &err) || bz_flow_simulate(&f, &arena, &s, &err))
            fail_msg("%s", err.text);
        uint32_t wait = find(&f, k ? "cudaEventSynchronize" : "cudaDeviceSynchronize");
        before[k] = s.start[wait];
        bz_flow_scale(&f, find(&f, k ? "a" : "b"), 0.5);
        if (bz_flow_simulate(&f, &arena, &s, &err))
            fail_msg("%s", err.text);
        after[k] = s.start[wait];
        bz_arena_free(&arena);
        bz_flow_free(&f);
        bz_trace_free(t);
    }
    assert_int_equal(after[0], before[0] - 500000);
    assert_int_equal(after[1], before[1] - 50000);
}

/* One event of a processor's recording without a device; PyTorch 1.13 tells no kinds of events. */
static void put(bz_buf *text, const char *kind, const char *name, int thread, int at, int length)
{
    bz_buf_printf(text, "{\"ph\":\"X\",%s,\"name\":\"%s\",\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{}},", kind, name,
                  thread, 1000 + at, length);
}

/* PyTorch 1.13 tells operators within operators, and ranges of the program among them: the innermost ones that work are tasks, the outermost ones
 * that are no range around all of them are layers. */
static void operators(void **state)
{
    enum { LAYERS = 12, LONG = 100 };
    static const char OLD[] = "\"pid\":\"CPU functions\"";
    (void)state;
    bz_buf text = {0};
    bz_arena arena = {0};
    bz_error err;
    bz_flow f;
    bz_whatif w;
    bz_buf_puts(&text, "[");
    put(&text, OLD, "my_step", 1, 0, LAYERS * LONG);
    for (int i = 0; i < LAYERS; i++) {
        put(&text, OLD, i % 2 ? "aten::relu" : "aten::conv2d", 1, i * LONG, LONG - 10);
        put(&text, OLD, i % 2 ? "aten::clamp_min" : "aten::convolution", 1, i * LONG + 2, LONG - 14);
    }
    text.data[text.len - 1] = ']';
    bz_trace *t = read_text(text.data);
    if (bz_flow_make(t, BZ_NONE, &f, &err) || bz_whatif_begin(&f, &arena, &w, &err))
        fail_msg("%s", err.text);
    assert_int_equal(f.counts.tasks[BZ_TASK_CALL], LAYERS);
    assert_int_equal(f.n_layers, LAYERS);
    for (uint32_t i = 0; i < f.n_layers; i++)
        assert_string_equal(f.layer[i], i % 2 ? "aten::relu" : "aten::conv2d");
    bz_flow_free(&f);
    bz_trace_free(t);
    bz_arena_free(&arena);
    bz_buf_free(&text);
}

/* Where no device does it, an exchange is the range that its own thread has. */
static void exchange(void **state)
{
    static const char RANGE[] = "\"pid\":5,\"cat\":\"user_annotation\"", OP[] = "\"pid\":5,\"cat\":\"cpu_op\"";
    (void)state;
    bz_buf text = {0};
    bz_error err;
    bz_flow f;
    bz_buf_puts(&text, "{\"schemaVersion\":1,\"traceEvents\":[");
    put(&text, RANGE, "my_loss", 1, 0, 150);
    put(&text, OP, "aten::mm", 1, 0, 100);
    put(&text, RANGE, "gloo:all_reduce", 2, 50, 400);
    bz_buf_puts(&text, "{\"ph\":\"i\",\"name\":\"end\",\"pid\":5,\"tid\":1,\"ts\":2200}]}");
    bz_trace *t = read_text(text.data);
    if (bz_flow_make(t, BZ_NONE, &f, &err))
        fail_msg("%s", err.text);
    assert_int_equal(f.counts.tasks[BZ_TASK_CALL], 1);
    assert_int_equal(f.counts.tasks[BZ_TASK_COMMUNICATION], 1);
    assert_int_equal(f.task[find(&f, "gloo:all_reduce")].duration, 400000);
    bz_flow_free(&f);
    bz_trace_free(t);
    bz_buf_free(&text);
}

/* Tasks of the update are found by the range around their launches, also where the iteration ends behind the last call, and half of the
 * kernels were at work before. */
static void update(void **state)
{
    (void)state;
    bz_buf text = {0};
    bz_error err;
    bz_flow f;
    bz_buf_puts(&text, "{\"schemaVersion\":1,\"traceEvents\":[");
    for (int i = 0; i < 10; i++) {
        double at = 1000 + 40 * i;
        bz_buf_printf(&text,
                      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":5,\"tid\":5,\"ts\":"
                      "%g,\"dur\":5,"
                      "\"args\":{\"correlation\":%d}},",
                      at, i + 1);
        bz_buf_printf(&text,
                      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":7,\"ts\":%g,\"dur\":20,"
                      "\"args\":{\"correlation\":%d,\"stream\":7,\"device\":0}},",
                      i < 7 ? "a" : "b", at + 8, i + 1);
    }
    put(&text, "\"pid\":5,\"cat\":\"user_annotation\"", "Optimizer.step#Adam.step", 5, 270, 110);
    bz_buf_puts(&text, "{\"ph\":\"i\",\"name\":\"end\",\"pid\":5,\"tid\":5,\"ts\":2200}]}");
    bz_trace *t = read_text(text.data);
    if (bz_flow_make(t, BZ_NONE, &f, &err))
        fail_msg("%s", err.text);
    assert_int_equal(f.counts.tasks[BZ_TASK_END], 1);
    for (uint32_t i = 0; i < f.n; i++)
        if (f.task[i].kind == BZ_TASK_KERNEL)
            assert_int_equal(f.task[i].phase == BZ_PHASE_UPDATE, *f.task[i].name == 'b');
    bz_flow_free(&f);
    bz_trace_free(t);
    bz_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(update),    cmocka_unit_test(kernels_start_when_they_did),
                                       cmocka_unit_test(streams),   cmocka_unit_test(host),
                                       cmocka_unit_test(operators), cmocka_unit_test(exchange)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
