/* Capture for real: a program that loads oneDNN and BLAS the way Python does. */
#include "profile/profile.h"
#include "profile/spool.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static bz_trace *capture_command(char *const argv[], const bz_capture_options *options, int *status)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    if (bz_profile_capture(t, argv, options, status, &err) || bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static bz_trace *capture(const char *n, const char *mode, const bz_capture_options *options, int *status)
{
    char *argv[] = {CALLS, PLUGIN, (char *)(uintptr_t)n, (char *)(uintptr_t)mode, NULL};
    return capture_command(argv, options, status);
}

static const bz_capture_options PLAIN = {.limit = 16 << 20};

static int executions(const bz_trace *t, const char *name)
{
    const bz_events *e = &t->event[BZ_EVENT_CALL];
    int n = 0;
    for (size_t i = 0; i < e->n; i++)
        n += e->flags[i] & BZ_CALL_EXECUTES && !strcmp(bz_string(t, e->name[i]), name);
    return n;
}

static bool covers(const bz_trace *t, const char *part)
{
    for (uint32_t i = 0; i < t->n_coverage; i++)
        if (strstr(bz_string(t, t->coverage[i].text), part))
            return true;
    return false;
}

static void every_call_is_there(void **state)
{
    (void)state;
    int status = -1;
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1); /* it depends on how OpenBLAS was built */
    bz_trace *t = capture("7", "ok", &PLAIN, &status);
    const char *threads = bz_trace_told(t, "blas threads"); /* NULL: it is another library, which has no such setting */
    assert_true(!threads || !strcmp(threads, "1"));
    const bz_events *e = &t->event[BZ_EVENT_CALL];
    assert_int_equal(status, 0);
    assert_int_equal(executions(t, "eltwise"), 7);
    assert_int_equal(executions(t, "sgemm"), 14);
    assert_int_equal(t->n_iterations, 7);
    assert_int_equal(t->origin, BZ_ITERATION_MARKED);
    for (size_t i = 0; i < e->n; i++) {
        const char *detail = bz_string(t, e->detail[i]);
        if (!strcmp(bz_string(t, e->name[i]), "eltwise")) {
            assert_int_equal(e->library[i], BZ_LIBRARY_ONEDNN);
            /* oneDNN 2 and 3 */
            assert_true(!strcmp(detail, "engine=cpu prop=forward_inference data=f32::blocked:ab:f0 "
                                        "diff=undef::undef::f0 aux=alg:eltwise_relu;alpha:0;beta:0 problem=4x4") ||
                        !strcmp(detail, "engine=cpu prop=forward_inference data=f32::blocked:ab::f0 "
                                        "aux=alg:eltwise_relu;alpha:0;beta:0 problem=4x4"));
            assert_true(bz_string(t, e->variant[i])[0]);
        } else if (!strcmp(bz_string(t, e->name[i]), "sgemm")) {
            assert_int_equal(e->library[i], BZ_LIBRARY_BLAS);
            assert_true(!strcmp(detail, "transa=N transb=N m=4 n=3 k=5 lda=4 ldb=5 ldc=4") ||
                        !strcmp(detail, "transa=N transb=N m=2 n=3 k=5 lda=2 ldb=5 ldc=2"));
        }
        assert_int_equal(e->stack[i], 0);
    }
    bz_trace_free(t);
}

static void iterations_without_marks(void **state)
{
    (void)state;
    int status;
    bz_trace *t = capture("9", "ok", &PLAIN, &status);
    t->event[BZ_EVENT_RANGE].n = 0;
    t->n_iterations = 0;
    bz_error err;
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    assert_int_equal(t->n_iterations, 9);
    assert_int_equal(t->origin, BZ_ITERATION_DETECTED);
    bz_trace_free(t);
}

static void children_and_threads(void **state)
{
    (void)state;
    int status;
    bz_trace *t = capture("5", "fork", &PLAIN, &status);
    assert_int_equal(executions(t, "eltwise"), 10);
    assert_int_equal(t->n_sources, 2);
    bz_trace_free(t);
    t = capture("50", "threads", &PLAIN, &status);
    assert_int_equal(executions(t, "eltwise"), 200);
    assert_int_equal(executions(t, "sgemm"), 400);
    const bz_events *e = &t->event[BZ_EVENT_CALL];
    int per_lane[8] = {0};
    for (size_t i = 0; i < e->n; i++)
        if (e->flags[i] & BZ_CALL_EXECUTES && e->lane[i] < 8)
            per_lane[e->lane[i]]++;
    for (uint32_t i = 0; i < t->n_lanes && i < 8; i++)
        assert_true(per_lane[i] == 0 || per_lane[i] == 150);
    bz_trace_free(t);
}

/* Three others want the same processor. */
static void others_are_told(void **state)
{
    (void)state;
    enum { OTHERS = 3 };
    cpu_set_t before, one;
    pid_t other[OTHERS];
    int status;
    if (access("/proc/self/schedstat", R_OK))
        skip();
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (int i = 0; i < OTHERS; i++)
        if (!(other[i] = fork()))
            for (;;)
                __asm__ volatile("");
    bz_trace *t = capture("2000", "ok", &PLAIN, &status);
    for (int i = 0; i < OTHERS; i++) {
        kill(other[i], SIGKILL);
        waitpid(other[i], NULL, 0);
    }
    sched_setaffinity(0, sizeof before, &before);
    assert_non_null(bz_trace_lacks(t, BZ_LACKS_QUIET));
    bz_trace_free(t);
}

static void a_crash_leaves_a_trace(void **state)
{
    (void)state;
    int status;
    bz_trace *t = capture("6", "crash", &PLAIN, &status);
    assert_int_equal(status, 128 + SIGKILL);
    assert_int_equal(executions(t, "eltwise"), 6);
    assert_true(covers(t, "ended without finishing"));
    assert_true(covers(t, "ended by signal 9"));
    bz_trace_free(t);
}

/* Wrappers, such as pyenv's python, are shells that start the program in their place. Nothing crashed there. */
static void exec_is_no_crash(void **state)
{
    (void)state;
    char *last[] = {"sh", "-c", "exec \"$0\" \"$@\"", CALLS, PLUGIN, "6", "ok", NULL};
    char *within[] = {"sh", "-c", "\"$0\" \"$@\"; exit 3", CALLS, PLUGIN, "6", "ok", NULL};
    char *hidden[] = {"sh", "-c", "exec env -u LD_PRELOAD true", NULL};
    int status;
    bz_trace *t = capture_command(last, &PLAIN, &status);
    assert_int_equal(status, 0);
    assert_int_equal(executions(t, "eltwise"), 6);
    assert_false(covers(t, "ended without finishing"));
    bz_trace_free(t);
    t = capture_command(within, &PLAIN, &status);
    assert_int_equal(status, 3);
    assert_int_equal(executions(t, "eltwise"), 6);
    assert_null(strstr(bz_trace_told(t, "program"), "sh -c"));
    assert_false(covers(t, "ended without finishing"));
    bz_trace_free(t);
    t = capture_command(hidden, &PLAIN, &status);
    assert_true(covers(t, "started a program in its place (exec) that cannot be recorded"));
    bz_trace_free(t);
}

/* The library measures itself by calls that it takes back. Who is killed meanwhile has made none. */
static void killed_before_it_begins(void **state)
{
    (void)state;
    static const int64_t OVERHEADS[] = {0, 190};
    for (int i = 0; i < 2; i++) {
        struct {
            bz_spool_header head;
            bz_spool_call call[5];
            bz_spool_record end;
        } spool = {.head = {.process = 7, .started = 1, .started_wall = 1, .overhead = OVERHEADS[i]}};
        memcpy(spool.head.magic, BZ_SPOOL_MAGIC, 8);
        for (int k = 0; k < 5; k++)
            spool.call[k] =
                (bz_spool_call){{sizeof spool.call[k], BZ_SPOOL_CALL, 0}, 10 + k, 11 + k, 1, 0, 0, 0, 0, 0, {0, 0}, 0};
        char path[] = "/tmp/spool-XXXXXX";
        int fd = mkstemp(path);
        assert_int_equal(write(fd, &spool, sizeof spool), sizeof spool);
        close(fd);
        bz_error err;
        bz_trace *t = bz_trace_new();
        int failed = bz_profile_read(t, path, &err);
        unlink(path);
        assert_int_equal(failed, 0);
        assert_int_equal(t->event[BZ_EVENT_CALL].n, i ? 5 : 0);
        assert_true(covers(t, i ? "its 5 calls until then" : "its 0 calls until then"));
        bz_trace_free(t);
    }
}

static void the_limit_holds(void **state)
{
    (void)state;
    int status;
    bz_capture_options small = {.limit = 1 << 20};
    bz_trace *t = capture("20000", "ok", &small, &status);
    assert_int_equal(status, 0);
    assert_true(executions(t, "sgemm") > 1000 && executions(t, "sgemm") < 40000);
    assert_true(covers(t, "did not fit into the limit"));
    bz_trace_free(t);
}

static void back_traces(void **state)
{
    (void)state;
    int status;
    bz_capture_options options = {.limit = 16 << 20, .backtrace = true};
    bz_trace *t = capture("3", "ok", &options, &status);
    const bz_events *e = &t->event[BZ_EVENT_CALL];
    bool found = false;
    for (size_t i = 0; i < e->n; i++) {
        const uint32_t *frames;
        for (int k = 0, n = bz_stack(t, e->stack[i], &frames); k < n; k++)
            found |= strstr(bz_string(t, frames[k]), "plugin_run") != NULL;
    }
    assert_true(found);
    bz_trace_free(t);
}

static void marks_only(void **state)
{
    (void)state;
    int status;
    bz_capture_options options = {.limit = 16 << 20, .marks_only = true};
    bz_trace *t = capture("4", "ok", &options, &status);
    assert_int_equal(t->event[BZ_EVENT_CALL].n, 0);
    assert_int_equal(t->n_iterations, 4);
    bz_trace_free(t);
}

static void levels(void **state)
{
    (void)state;
    char *argv[] = {CALLS, PLUGIN, (char *)(uintptr_t) "5", (char *)(uintptr_t) "ok", NULL};
    int status = -1;
    bz_error err;
    bz_trace *t = bz_trace_new();
    if (bz_profile_levels(t, argv, &PLAIN, &status, &err))
        fail_msg("%s", err.text);
    assert_int_equal(status, 0);
    assert_int_equal(t->n_iterations, 5);
    assert_int_equal(executions(t, "sgemm"), 10);
    const bz_events *e = &t->event[BZ_EVENT_CALL];
    for (size_t i = 0; i < e->n; i++)
        if (e->flags[i] & BZ_CALL_EXECUTES)
            assert_int_not_equal(e->stack[i], 0);
    static const char *const NAMES[] = {"program alone", "with calls", "with everything"};
    assert_int_equal(t->n_levels, 3);
    assert_int_equal(t->own_level, 1);
    for (int k = 0; k < 3; k++) {
        assert_string_equal(bz_string(t, t->level[k].name), NAMES[k]);
        assert_true(t->level[k].wall > 0);
        assert_int_equal(t->level[k].n_iterations, 5);
    }
    for (int i = 0; i < 5; i++) {
        assert_int_equal(t->level[0].iteration[i].library, 0);
        assert_true(t->level[0].iteration[i].latency > 0 && t->level[1].iteration[i].library > 0);
        assert_int_equal(t->level[1].iteration[i].latency, t->iteration[i].end - t->iteration[i].start);
    }
    assert_int_equal(bz_trace_level(t, BZ_FIGURE_LATENCY), 0);
    assert_int_equal(bz_trace_level(t, BZ_FIGURE_LIBRARY), 1);
    bz_trace_free(t);
}

/* Nothing tells the latency of the program alone. */
static void levels_without_marks(void **state)
{
    (void)state;
    char *argv[] = {CALLS, PLUGIN, (char *)(uintptr_t) "50", (char *)(uintptr_t) "threads", NULL};
    int status = -1;
    bz_error err;
    bz_trace *t = bz_trace_new();
    if (bz_profile_levels(t, argv, &PLAIN, &status, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t->level[0].n_iterations, 0);
    assert_int_equal(bz_trace_level(t, BZ_FIGURE_LATENCY), 1);
    assert_true(covers(t, "latency is that of the run with calls, and has in it what recording costs"));
    bz_trace_free(t);
}

/* Systems are told by what they are, not by what they are called. */
static void the_host_has_no_name(void **state)
{
    (void)state;
    int status;
    struct utsname u;
    char expected[160];
    assert_int_equal(uname(&u), 0);
    snprintf(expected, sizeof expected, "%.60s %.60s", u.sysname, u.release);
    bz_trace *t = capture("2", "ok", &PLAIN, &status);
    bool told = false;
    for (uint32_t i = 0; i < t->n_facts; i++) {
        const char *key = bz_string(t, t->fact[i].key);
        assert_string_not_equal(key, "host");
        told |= !strcmp(key, "operating system") && !strcmp(bz_string(t, t->fact[i].value), expected);
    }
    assert_true(told);
    bz_trace_free(t);
}

/* Of what lies in the folder, libraries' logs among it, plain files that hold something are read, however little it is: what cannot be is
 * told by its name, and takes the recording along only where there is no other. */
static void files_beside(void **state)
{
    (void)state;
    enum { MOST = 3 };
    bz_error err;
    int status;
    for (int bytes = 0; bytes <= MOST; bytes++)
        for (int alone = 0; alone < 2; alone++) {
            char script[300];
            snprintf(script, sizeof script,
                     "cd \"$BENANZA_CAPTURE_DIR\"; mkdir some.folder; printf %%.%ds xyz >odd.log; cd /; %s exec \"$0\" "
                     "\"$@\"",
                     bytes, alone ? "unset LD_PRELOAD; rm -f \"$BENANZA_CAPTURE_DIR\"/[!os]*; exec true;" : "");
            char *argv[] = {"sh", "-c", script, CALLS, PLUGIN, "6", "ok", NULL};
            bz_trace *t = bz_trace_new();
            int failed = bz_profile_capture(t, argv, &PLAIN, &status, &err);
            assert_int_equal(failed, alone ? -1 : 0);
            if (alone)
                assert_non_null(strstr(err.text, bytes ? "odd.log" : "the program left no recording"));
            else
                assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
            assert_int_equal(covers(t, "odd.log"), bytes > 0);
            assert_false(covers(t, "some.folder"));
            assert_int_equal(executions(t, "eltwise"), alone ? 0 : 6);
            bz_trace_free(t);
        }
}

static void what_cannot_be_started(void **state)
{
    (void)state;
    char *argv[] = {(char *)(uintptr_t) "/nonexistent/program", NULL};
    int status;
    bz_error err;
    bz_trace *t = bz_trace_new();
    assert_int_equal(bz_profile_capture(t, argv, &PLAIN, &status, &err), -1);
    assert_non_null(strstr(err.text, "cannot be started"));
    bz_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_there),
        cmocka_unit_test(iterations_without_marks),
        cmocka_unit_test(children_and_threads),
        cmocka_unit_test(others_are_told),
        cmocka_unit_test(a_crash_leaves_a_trace),
        cmocka_unit_test(exec_is_no_crash),
        cmocka_unit_test(killed_before_it_begins),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(back_traces),
        cmocka_unit_test(marks_only),
        cmocka_unit_test(levels),
        cmocka_unit_test(levels_without_marks),
        cmocka_unit_test(the_host_has_no_name),
        cmocka_unit_test(files_beside),
        cmocka_unit_test(what_cannot_be_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
