/* A host that runs ahead of its device: steps of known length, of whose launches the first are not on record. Where the two
 * clocks were mixed, a step of 10 ms took 210 ms. */
#include "profile/reader.h"
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

enum { STEPS = 40, KERNELS = 20, STEP_US = 10000 };

/* The device takes one step after the other. The host launched the first `ahead` of them before the recording began, and the others evenly while the
 * device does those; with `at_once`, all of a step in a row, as far ahead as ever. */
static bz_trace *program(int ahead, bool at_once)
{
    bz_buf text = {0};
    bz_error err;
    bz_buf_puts(&text, "{\"schemaVersion\":1,\"traceEvents\":[");
    for (int s = 0, k = 0; s < STEPS; s++)
        for (int i = 0; i < KERNELS; i++, k++) {
            bz_buf_printf(&text,
                          "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":%d,"
                          "\"args\":{\"device\":0,\"stream\":7,\"correlation\":%d}},\n",
                          i ? 1 + i % 7 : 0, s * STEP_US + i * (STEP_US / KERNELS), STEP_US / KERNELS - 10, k + 1);
            int launch = at_once ? (s - ahead) * STEP_US + 5 * i
                                 : (k - ahead * KERNELS) * (ahead * STEP_US / ((STEPS - ahead) * KERNELS)) + 3;
            if (s >= ahead)
                bz_buf_printf(
                    &text,
                    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,"
                    "\"ts\":%d,\"dur\":4,\"args\":{\"correlation\":%d}},\n",
                    launch, k + 1);
        }
    bz_buf_puts(&text, "{\"ph\":\"i\",\"name\":\"end\",\"pid\":1,\"tid\":1,\"ts\":0}]}");
    bz_trace *t = bz_trace_new();
    bz_stream *in = bz_stream_memory(text.data, text.len);
    if (bz_profile_read_stream(t, in, &bz_reader_chrome, &err) || bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    bz_stream_close(in);
    bz_buf_free(&text);
    return t;
}

/* What was saved is read as it was: the same work in each iteration. */
static void check_saved(const bz_trace *t)
{
    char path[] = "/tmp/benanza-test-XXXXXX";
    bz_error err;
    bz_trace *again = bz_trace_new();
    close(mkstemp(path));
    if (bz_trace_save(t, path, &err) || bz_profile_read(again, path, &err) || bz_trace_finish(again, NULL, &err))
        fail_msg("%s", err.text);
    unlink(path);
    assert_int_equal(bz_trace_ahead(again), bz_trace_ahead(t));
    assert_int_equal(again->n_coverage, t->n_coverage);
    for (size_t i = 0; i < t->event[BZ_EVENT_KERNEL].n; i++)
        assert_int_equal(bz_event_iteration(again, BZ_EVENT_KERNEL, i), bz_event_iteration(t, BZ_EVENT_KERNEL, i));
    bz_trace_free(again);
}

static void step_is_the_devices(void **state)
{
    (void)state;
    static const int AHEAD[] = {10, 20, 30, 35};
    for (int at_once = 0; at_once < 2; at_once++)
        for (size_t a = 0; a < sizeof AHEAD / sizeof *AHEAD; a++) {
            bz_trace *t = program(AHEAD[a], at_once);
            bz_flow f;
            bz_error err;
            uint32_t typical = bz_typical_iteration(t);
            assert_int_not_equal(typical, BZ_NONE);
            assert_int_equal(t->n_iterations, STEPS);
            assert_in_range(bz_iteration_latency(t, typical), STEP_US * 990, STEP_US * 1010);
            if (bz_flow_make(t, typical, &f, &err))
                fail_msg("%s", err.text);
            assert_in_range(f.measured, STEP_US * 990, STEP_US * 1010);
            assert_int_equal(f.counts.tasks[BZ_TASK_KERNEL], KERNELS);
            assert_in_range(bz_trace_ahead(t), 5000LL * STEP_US, 1000LL * STEPS * STEP_US);
            check_saved(t);
            bz_flow_free(&f);
            bz_trace_free(t);
        }
}

/* All launches are on record: the host's order counts, however far ahead it is. */
static void host_counts_where_it_is_known(void **state)
{
    (void)state;
    bz_trace *t = program(1, true);
    assert_int_equal(bz_trace_ahead(t), 0);
    bz_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(step_is_the_devices),
                                       cmocka_unit_test(host_counts_where_it_is_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
