/* What CUDA loads into a program, driven as the driver would, by a stand-in for CUPTI: tests/standin/cupti_activity.c. What
 * the real CUPTI delivers on a device is not tested here. */
#include "profile/profile.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static bz_trace *capture(const char *n, const char *mode, const bz_capture_options *options, int *status)
{
    char *argv[] = {CUDA_PROGRAM, (char *)(uintptr_t)n, (char *)(uintptr_t)mode, NULL};
    bz_error err;
    bz_trace *t = bz_trace_new();
    setenv("LD_LIBRARY_PATH", STAND_IN_FOLDER, 1);
    if (bz_profile_capture(t, argv, options, status, &err) || bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static const bz_capture_options PLAIN = {.limit = 16 << 20};

static bool covers(const bz_trace *t, const char *part)
{
    for (uint32_t i = 0; i < t->n_coverage; i++)
        if (strstr(bz_string(t, t->coverage[i].text), part))
            return true;
    return false;
}

static bool has_fact(const bz_trace *t, const char *key, const char *part)
{
    for (uint32_t i = 0; i < t->n_facts; i++)
        if (!strcmp(bz_string(t, t->fact[i].key), key) && strstr(bz_string(t, t->fact[i].value), part))
            return true;
    return false;
}

static int ranges(const bz_trace *t, const char *name)
{
    const bz_events *e = &t->event[BZ_EVENT_RANGE];
    int n = 0;
    for (size_t i = 0; i < e->n; i++)
        n += !strcmp(bz_string(t, e->name[i]), name);
    return n;
}

static void check_kernel(const bz_trace *t, size_t i)
{
    const bz_events *k = &t->event[BZ_EVENT_KERNEL], *api = &t->event[BZ_EVENT_API];
    const bz_lane *lane = &t->lane[k->lane[i]];
    bool mangled = lane->stream == 7;
    assert_string_equal(bz_string(t, k->name[i]), mangled ? "void add<float>(float*, float*, int)" : "plain_c_kernel");
    assert_string_equal(bz_string(t, k->short_name[i]), mangled ? "add" : "plain_c_kernel");
    assert_int_equal(k->end[i] - k->start[i], 2000);
    assert_true(lane->device && lane->device_id == 1 && lane->context == 3);
    assert_true(lane->stream == 7 || lane->stream == 13);
    const bz_launched launched = {{7, 8, 9}, {32, 4, 2}, 40, 512, 2048};
    assert_memory_equal(bz_kernel_launched(t, i), &launched, sizeof launched);
    uint32_t cause = k->cause[i];
    assert_int_not_equal(cause, BZ_NONE);
    assert_string_equal(bz_string(t, api->name[cause]), mangled ? "cudaLaunchKernel_v7000" : "cuLaunchKernel");
    assert_int_equal(k->start[i] - api->start[cause], mangled ? 2000 : 2500);
    /* our clock is the ranges' clock: the iteration's */
    assert_int_not_equal(bz_event_iteration(t, BZ_EVENT_KERNEL, i), BZ_NONE);
}

static void all_activities(void **state)
{
    (void)state;
    int status = -1;
    bz_trace *t = capture("4", "ok", &PLAIN, &status);
    assert_int_equal(status, 0);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 8);
    for (size_t i = 0; i < 8; i++)
        check_kernel(t, i);
    const bz_events *c = &t->event[BZ_EVENT_COPY], *s = &t->event[BZ_EVENT_MEMSET], *w = &t->event[BZ_EVENT_SYNC],
                    *a = &t->event[BZ_EVENT_API], *o = &t->event[BZ_EVENT_OVERHEAD];
    assert_int_equal(c->n, 8);
    assert_int_equal(c->bytes[0], 602112);
    assert_int_equal(c->value[0], 1);
    assert_int_equal(c->bytes[1], 128);
    assert_int_equal(c->value[1], 10);
    assert_int_equal(c->end[0] - c->start[0], 2000);
    assert_int_equal(s->n, 4);
    assert_int_equal(s->bytes[0], 4096);
    assert_int_equal(w->n, 4);
    assert_int_equal(w->value[0], 3);
    assert_int_equal(t->lane[w->lane[0]].device_id, 1);
    assert_int_equal(t->lane[w->lane[0]].stream, 7);
    assert_int_equal(a->n, 24);
    assert_int_equal(o->n, 4);
    assert_string_equal(bz_string(t, o->name[0]), "lazy function loading");
    assert_int_equal(t->n_iterations, 4);
    assert_int_equal(t->origin, BZ_ITERATION_MARKED);
    bz_iteration_stats stats;
    bz_iteration_measure(t, 2, &stats);
    assert_int_equal(stats.kernels, 2);
    assert_int_equal(stats.device_busy, 200 + 2000 + 3000 + 100);
    assert_true(has_fact(t, "gpu", "Stand-in GPU"));
    assert_true(has_fact(t, "device", "1: compute capability 9.0, 132 multiprocessors, 144384 MiB"));
    assert_true(covers(t, "CUPTI dropped 3 records"));
    assert_false(covers(t, "ended without finishing"));
    bz_trace_free(t);
}

static void ranges_of_nvtx(void **state)
{
    (void)state;
    int status = -1;
    bz_capture_options marks = {.limit = 16 << 20, .marks_only = true};
    const bz_capture_options *all[] = {&PLAIN, &marks};
    for (int i = 0; i < 2; i++) {
        bz_trace *t = capture("3", "exit", all[i], &status);
        assert_int_equal(status, 5);
        assert_int_equal(ranges(t, "benanza_iteration"), 3);
        assert_int_equal(ranges(t, "registered"), 1);
        assert_int_equal(ranges(t, "w\u00efde"), 1);
        assert_int_equal(ranges(t, "mark"), 1);
        assert_int_equal(ranges(t, "never ends"), 0);
        assert_int_equal(t->n_iterations, 3);
        assert_int_equal(t->event[BZ_EVENT_KERNEL].n, i == 0 ? 6 : 0);
        bz_trace_free(t);
    }
}

static void a_crash_leaves_a_trace(void **state)
{
    (void)state;
    int status = -1;
    bz_trace *t = capture("5", "crash", &PLAIN, &status);
    assert_int_equal(status, 128 + SIGKILL);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 10);
    assert_true(covers(t, "ended by signal 9"));
    assert_true(covers(t, "the device's work of the last moments"));
    bz_trace_free(t);
}

static void what_cupti_refuses(void **state)
{
    (void)state;
    int status = -1;
    setenv("STAND_IN", "refuse", 1);
    bz_trace *t = capture("3", "ok", &PLAIN, &status);
    unsetenv("STAND_IN");
    assert_int_equal(status, 0);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 0);
    assert_int_equal(t->event[BZ_EVENT_COPY].n, 6);
    assert_true(covers(t, "CUPTI does not record kernels here: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"));
    bz_trace_free(t);
}

/* One client of CUPTI at a time: the program, where it wants to be one. It gets none of our buffers, and finds CUPTI as it would
 * be without us; what came before it is ours. */
static void the_program_takes_cupti(void **state)
{
    (void)state;
    int status = -1;
    bz_trace *t = capture("5", "client", &PLAIN, &status);
    assert_int_equal(status, 0);
    assert_int_equal(t->n_iterations, 5);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 4);
    assert_true(covers(t, "from the moment on when the program began to use CUPTI itself"));
    assert_false(covers(t, "ended without finishing"));
    bz_trace_free(t);
    t = capture("5", "first", &PLAIN, &status);
    assert_int_equal(status, 0);
    assert_int_equal(t->n_iterations, 5);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 0);
    assert_true(covers(t, "because the program uses CUPTI itself"));
    bz_trace_free(t);
}

/* Whatever CUPTI this machine has, or none: the program runs on. */
static void without_the_stand_in(void **state)
{
    (void)state;
    char *argv[] = {CUDA_PROGRAM, (char *)(uintptr_t) "3", (char *)(uintptr_t) "ok", NULL};
    int status = -1;
    bz_error err;
    bz_trace *t = bz_trace_new();
    unsetenv("LD_LIBRARY_PATH");
    if (bz_profile_capture(t, argv, &PLAIN, &status, &err) || bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(status, 0);
    assert_int_equal(t->n_iterations, 3);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 0);
    bz_trace_free(t);
}

/* NVTX tells the latency of the program alone; CUPTI is there only where everything is recorded. */
static void levels(void **state)
{
    (void)state;
    static const char SCRIPT[] = "echo ${CUDA_INJECTION64_PATH:+device} ${NVTX_INJECTION64_PATH:+marks} "
                                 "${BENANZA_CAPTURE_BACKTRACE:+stacks} >>$TOLD; exec \"$0\" \"$@\"";
    char told[] = "/tmp/benanza-test-XXXXXX", text[128] = "";
    char *argv[] = {(char *)(uintptr_t) "/bin/sh",
                    (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t)SCRIPT,
                    CUDA_PROGRAM,
                    (char *)(uintptr_t) "4",
                    (char *)(uintptr_t) "ok",
                    NULL};
    int status = -1, file = mkstemp(told);
    bz_error err;
    bz_trace *t = bz_trace_new();
    setenv("LD_LIBRARY_PATH", STAND_IN_FOLDER, 1);
    setenv("TOLD", told, 1);
    if (bz_profile_levels(t, argv, &PLAIN, &status, &err))
        fail_msg("%s", err.text);
    assert_int_equal(status, 0);
    assert_true(read(file, text, sizeof text - 1) > 0);
    assert_string_equal(text, "device marks stacks\nmarks\nmarks\n");
    assert_int_equal(t->n_iterations, 4);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, 8);
    assert_int_equal(t->own_level, 2);
    for (int k = 0; k < 3; k++)
        assert_int_equal(t->level[k].n_iterations, 4);
    assert_int_equal(bz_trace_level(t, BZ_FIGURE_LATENCY), 0);
    bz_trace_free(t);
    close(file);
    unlink(told);
}

static void the_limit_holds(void **state)
{
    (void)state;
    int status = -1;
    bz_capture_options small = {.limit = 1 << 20};
    bz_trace *t = capture("1500", "ok", &small, &status);
    assert_int_equal(status, 0);
    assert_true(t->event[BZ_EVENT_KERNEL].n > 100 && t->event[BZ_EVENT_KERNEL].n < 3000);
    assert_true(covers(t, "did not fit into the limit"));
    bz_trace_free(t);
}

/* The real cuDNN's log, written in another time zone, beside what the stand-in makes up. */
static void logs_are_tied(void **state)
{
    (void)state;
    int status = -1;
    bz_capture_options logs = {.limit = 16 << 20, .logs = true};
    setenv("STAND_IN", "convolve", 1);
    setenv("TZ", "NPT-5:45", 1);
    bz_trace *t = capture("4", "cudnn", &logs, &status);
    unsetenv("STAND_IN");
    unsetenv("TZ");
    if (status == 77) {
        bz_trace_free(t);
        print_message("skipped: cuDNN is not installed\n");
        skip();
    }
    const bz_events *k = &t->event[BZ_EVENT_KERNEL], *call = &t->event[BZ_EVENT_CALL];
    int tied = 0;
    for (size_t i = 0; i < k->n; i++) {
        char width[64], expected[64];
        if (strcmp(bz_string(t, k->name[i]), "plain_c_kernel") == 0)
            continue;
        assert_int_not_equal(k->call[i], BZ_NONE);
        assert_string_equal(bz_string(t, call->name[k->call[i]]), "cudnnConvolutionForward");
        assert_true(bz_call_parameter(t, k->call[i], "xDesc.dimA", width, sizeof width));
        snprintf(expected, sizeof expected, "[1,3,224,%u]", 100 + bz_event_iteration(t, BZ_EVENT_KERNEL, i));
        assert_string_equal(width, expected);
        tied++;
    }
    assert_int_equal(tied, 4);
    assert_true(covers(t, "4 of 4 cudnn calls of the log were tied to their launches by thread and time: 4 kernels"));
    bz_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_activities),          cmocka_unit_test(ranges_of_nvtx),
        cmocka_unit_test(a_crash_leaves_a_trace),  cmocka_unit_test(what_cupti_refuses),
        cmocka_unit_test(the_program_takes_cupti), cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(without_the_stand_in),    cmocka_unit_test(levels),
        cmocka_unit_test(logs_are_tied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
