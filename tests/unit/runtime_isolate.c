/* Isolation and measuring with a backend made for it, whose variants misbehave on purpose. */
#include "base/progress.h"
#include "runtime/backend.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined __SANITIZE_ADDRESS__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static float result[64];
static int *traces; /* of all processes: how often the profiler was asked */
static const bz_job *job;

static int fake_open(const bz_job *j, void **session, bz_error *err)
{
    (void)err;
    job = j;
    *session = result;
    return 0;
}

/* The layout says what the only variant does; "mixed" has several. */
static int fake_enumerate(void *session, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    static const char *const MIXED[] = {"good", "crash", "good too", "hang", "wrong", "slow", "slow pick"};
    if (!strcmp(layout, "refuses"))
        return bz_fail(why, BZ_INCOMPLETE, "it does not feel like it");
    if (!strcmp(layout, "crash-early"))
        raise(SIGSEGV);
    bool mixed = !strcmp(layout, "mixed");
    for (int i = 0; i < (mixed ? 7 : 1); i++) {
        bz_variant *v = bz_variant_add(list, NULL, session, layout, math);
        snprintf(v->algorithm, sizeof v->algorithm, "%s", mixed ? MIXED[i] : layout);
        v->reference = !strcmp(layout, "reference");
        v->chosen = !strcmp(v->algorithm, "slow pick");
    }
    return 0;
}

static int fake_prepare(bz_variant *v, bz_error *err)
{
    if (!strcmp(v->algorithm, "eats")) {
        char *p = malloc((size_t)4 << 30);
        if (!p)
            return bz_fail(err, BZ_FAILED, "out of memory");
        memset(p, 1, (size_t)4 << 30);
    }
    v->state = result;
    return 0;
}

static int fake_execute(bz_variant *v, int copy)
{
    static int calls;
    (void)copy;
    const char *how = v->algorithm;
    if (!strcmp(how, "crash"))
        raise(SIGSEGV);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "exit"))
        exit(3);
    if (!strcmp(how, "crash-later") && ++calls > 50)
        raise(SIGFPE);
    if (!strcmp(how, "hang"))
        for (;;)
            sleep(1);
    if (!strcmp(how, "stops us")) { /* as Ctrl-Z does, and fg later */
        kill(getppid(), SIGSTOP);
        usleep(1500000);
        kill(getppid(), SIGCONT);
        usleep(200000); /* the other one looks first */
    }
    if (!strcmp(how, "error"))
        return -1;
    if (!strcmp(how, "prints"))
        puts("this must not get between the records");
    if (!strcmp(how, "unwritten"))
        return 0;
    if (!strcmp(how, "preempted"))
        usleep(8000); /* a scheduler's slice in which another program has the processor */
    for (int i = 0; i < 64; i++)
        result[i] = job->value[0][i] > 0 ? job->value[0][i] : 0;
    if (!strcmp(how, "wrong"))
        result[17] += 1;
    return 0;
}

/* A clock that is exact, whatever else the machine does. Every other sample of the noisy one takes half
 * as long again. */
static int fake_measure(bz_variant *v, int64_t n, int first_copy, double *seconds)
{
    static int samples;
    (void)first_copy;
    if (fake_execute(v, 0))
        return -1;
    if (!strcmp(v->algorithm, "noisy, short"))
        usleep(5000);
    bool longer = !strncmp(v->algorithm, "noisy", 5) && samples++ % 2;
    *seconds = (double)n * (!strncmp(v->algorithm, "slow", 4) ? 3e-4 : longer ? 1.5e-4 : 1e-4);
    return 0;
}

static int fake_poison(bz_variant *v)
{
    (void)v;
    memset(result, 0xff, sizeof result);
    return 0;
}

static int fake_read(bz_variant *v, float *values, bz_error *err)
{
    (void)v;
    (void)err;
    memcpy(values, result, sizeof result);
    return 0;
}

/* Whoever is asked for some elements by their numbers is not read whole. */
static int fake_probe(bz_variant *v, const int64_t *element, int n, float *values, bz_error *err)
{
    (void)err;
    for (int i = 0; i < 64; i++)
        if (result[i] != result[i])
            return 1; /* read it, to say which */
    for (int i = 0; i < n; i++)
        values[i] = result[element[i]];
    return strcmp(v->algorithm, "tells nothing") ? 0 : 1;
}

static int fake_trace(bz_variant *v, bz_trace *out, bz_error *err)
{
    (void)v;
    *out = (bz_trace){0};
    ++*traces;
    return bz_fail(err, BZ_FAILED, "nothing was seen");
}

static int crashing_read(bz_variant *v, float *values, bz_error *err)
{
    return *v->algorithm == 'g' ? raise(SIGSEGV) : fake_read(v, values, err);
}

static void fake_release(bz_variant *v)
{
    if (!strcmp(v->algorithm, "crash-at-end"))
        raise(SIGBUS);
}

static void fake_close(void *session)
{
    (void)session;
}

static bz_backend fake = {
    .name = "fake",
    .timing = "wall",
    .open = fake_open,
    .enumerate = fake_enumerate,
    .prepare = fake_prepare,
    .execute = fake_execute,
    .poison = fake_poison,
    .read = fake_read,
    .release = fake_release,
    .close = fake_close,
};

/* The variants of a fake that is not constant need their backend filled in. */
static int enumerate_and_own(void *session, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    int first = list->n, rc = fake_enumerate(session, layout, math, list, why);
    for (int i = first; i < list->n; i++) {
        list->item[i].backend = &fake;
        list->item[i].waits = fake.wait; /* what it sleeps then is no other program's time */
    }
    return rc;
}

typedef struct kept {
    bz_outcome record[40];
    int n;
} kept;

static void keep(void *context, const bz_outcome *r)
{
    kept *k = context;
    assert_true(k->n < 40);
    k->record[k->n++] = *r;
}

static kept run(const char *const *layouts, int n, bz_run_options o)
{
    static const bz_backend *const backends[] = {&fake, NULL};
    kept k = {.n = 0};
    bz_problem p;
    bz_error err;
    bz_family families[8];
    fake.enumerate = enumerate_and_own;
    assert_int_equal(bz_problem_parse("activation fn=relu x=64 dtype=f32", &p, &err), 0);
    for (int i = 0; i < n; i++)
        families[i] = (bz_family){&p, "fake", layouts[i], "default"};
    o.backends = backends;
    o.emit = keep;
    o.context = &k;
    o.hang_limit = o.hang_limit > 0 ? o.hang_limit : 20;
    o.time_limit = 0.02;
    assert_int_equal(bz_run(families, n, &o, &err), 0);
    return k;
}

static kept run_one(const char *layout, bz_run_options o)
{
    return run(&layout, 1, o);
}

static const bz_outcome *find(const kept *k, const char *algorithm)
{
    const bz_outcome *found = NULL;
    for (int i = 0; i < k->n; i++)
        if (!strcmp(k->record[i].algorithm, algorithm)) {
            assert_null(found); /* one record each */
            found = &k->record[i];
        }
    assert_non_null(found);
    return found;
}

static void assert_ends(const char *layout, bz_status status, const char *reason)
{
    kept k = run_one(layout, (bz_run_options){0});
    assert_int_equal(k.n, 1);
    assert_int_equal(k.record[0].status, status);
    if (!strstr(k.record[0].reason, reason))
        fail_msg("%s: '%s' does not say '%s'", layout, k.record[0].reason, reason);
}

static void test_crashes(void **unused)
{
    (void)unused;
    assert_ends("crash", BZ_STATUS_CRASHED, "SIGSEGV while running");
    assert_ends("abort", BZ_STATUS_CRASHED, "SIGABRT while running");
    assert_ends("exit", BZ_STATUS_CRASHED, "exit status 3 while running");
    assert_ends("crash-later", BZ_STATUS_CRASHED, "SIGFPE while measuring");
    assert_ends("crash-early", BZ_STATUS_CRASHED, "SIGSEGV while looking for variants");
    assert_ends("refuses", BZ_STATUS_UNSUPPORTED, "does not feel like it");
    assert_ends("error", BZ_STATUS_FAILED, "refused to run");
    assert_ends("good", BZ_STATUS_OK, "");
    assert_ends("prints", BZ_STATUS_OK, "");
    assert_ends("crash-at-end", BZ_STATUS_OK, ""); /* it was measured: what comes after does not unmake that */
    assert_ends("reference", BZ_STATUS_OK, "");    /* there is no other */
}

static void test_wrong_results(void **unused)
{
    (void)unused;
    assert_ends("wrong", BZ_STATUS_FAILED, "1 of 64 elements are wrong: element 17");
    assert_ends("unwritten", BZ_STATUS_FAILED, "element 0 of the result was not written");
}

static void test_hang(void **unused)
{
    (void)unused;
    double start = bz_now();
    kept k = run_one("hang", (bz_run_options){.hang_limit = 0.3});
    assert_int_equal(k.n, 1);
    assert_int_equal(k.record[0].status, BZ_STATUS_TIMEOUT);
    assert_non_null(strstr(k.record[0].reason, "no sign of life for 0.3 s while running"));
    assert_true(bz_now() - start < 10); /* it was ended, not waited for */
}

/* The time in which nobody ran is no sign of a hang. In a process of its own: whoever waits for this one must not see it stopped. */
static void test_stopped(void **unused)
{
    (void)unused;
    fflush(NULL);
    pid_t p = fork();
    if (!p) {
        kept k = run_one("stops us", (bz_run_options){.hang_limit = 1, .check_only = true});
        _exit(k.n == 1 && k.record[0].status == BZ_STATUS_OK ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(p, &status, 0), p);
    assert_int_equal(status, 0);
}

static void test_memory(void **unused)
{
    (void)unused;
#ifdef SANITIZED
    skip(); /* limits do not go together with the sanitizer's address space */
#else
    kept k = run_one("eats", (bz_run_options){.memory_limit = 1e9});
    assert_int_equal(k.n, 1);
    assert_int_equal(k.record[0].status, BZ_STATUS_FAILED);
    assert_non_null(strstr(k.record[0].reason, "out of memory"));
#endif
}

/* Those beside a crash and a hang are measured as if nothing had been. */
static void test_goes_on(void **unused)
{
    (void)unused;
    const char *const layouts[] = {"mixed", "crash-early", "good"};
    fake.measure = fake_measure;
    kept k = run(layouts, 3, (bz_run_options){.hang_limit = 0.3});
    assert_int_equal(k.n, 9);
    assert_int_equal(find(&k, "crash")->status, BZ_STATUS_CRASHED);
    assert_int_equal(find(&k, "hang")->status, BZ_STATUS_TIMEOUT);
    assert_int_equal(find(&k, "wrong")->status, BZ_STATUS_FAILED);
    assert_int_equal(find(&k, "")->status, BZ_STATUS_CRASHED);
    assert_int_equal(find(&k, "good too")->status, BZ_STATUS_OK);
    assert_int_equal(find(&k, "slow")->status, BZ_STATUS_DROPPED);
    assert_in_range(find(&k, "slow")->stats.n, 1, 5); /* early: a disturbed sample may have been taken again */
    assert_true(find(&k, "slow")->stats.median > 0);
    assert_int_equal(find(&k, "slow pick")->status, BZ_STATUS_OK); /* programs use what the library picks */
    assert_true(find(&k, "slow pick")->stats.n >= 6);
    int good = 0;
    for (int i = 0; i < k.n; i++)
        good += !strcmp(k.record[i].algorithm, "good") && k.record[i].status == BZ_STATUS_OK;
    assert_int_equal(good, 2); /* one of each family */
    fake.measure = NULL;
}

/* By the backend's own clock, which is exact here: flags and interval follow from the samples alone. */
static void test_noise_flag(void **unused)
{
    (void)unused;
    fake.measure = fake_measure;
    kept k = run_one("noisy", (bz_run_options){0});
    assert_int_equal(k.n, 1);
    assert_int_equal(k.record[0].status, BZ_STATUS_OK);
    assert_true(k.record[0].noisy);
    assert_true(k.record[0].stats.n >= 6);
    k = run_one("noisy, short", (bz_run_options){.time_limit = 0.3});
    assert_in_range(k.record[0].stats.n, 1,
                    22); /* 20 samples in a third of the time are enough; beside others it is fewer */
    k = run_one("good", (bz_run_options){0});
    assert_false(k.record[0].noisy);
    assert_int_equal(k.record[0].stats.n, 6); /* the first six agree: settled */
    assert_true(fabs(k.record[0].stats.median - 1e-4) < 1e-9);
    assert_true(k.record[0].stats.low <= k.record[0].stats.median &&
                k.record[0].stats.high >= k.record[0].stats.median);
    fake.measure = NULL;
}

/* Every sample of the one holds a scheduler's slice of 8 ms: the record must not tell 8 ms, and says that it was disturbed. */
static void test_busy(void **unused)
{
    (void)unused;
    kept k = run_one("preempted", (bz_run_options){0});
    assert_int_equal(k.record[0].status, BZ_STATUS_OK);
    assert_true(k.record[0].busy);
    assert_true(k.record[0].interrupted > 0);
    assert_true(k.record[0].stats.median < 0.004);
    fake.measure = fake_measure;
    k = run_one("good", (bz_run_options){.busy = true});
    assert_true(k.record[0].busy);
    assert_false(k.record[0].noisy);
    k = run_one("good", (bz_run_options){.yardstick = 1e-9}); /* the machine was faster once */
    assert_true(k.record[0].busy);
    assert_true(k.record[0].yardstick[0] > 0 && k.record[0].yardstick[1] > 0);
    k = run_one("good", (bz_run_options){0});
    assert_int_equal(k.record[0].interrupted, 0);
    fake.measure = NULL;
}

static void test_launch(void **unused)
{
    (void)unused;
    const bz_rate launch[] = {{"other", 1}, {"fake", 3e-6}};
    kept k = run_one("good", (bz_run_options){.launch = launch, .n_launch = 2});
    assert_true(k.record[0].launch == 3e-6);
    k = run_one("good", (bz_run_options){0});
    assert_true(isnan(k.record[0].launch));
}

/* The price of an empty call is one of each run: no profiler begins for it, whatever is asked of what is measured. */
static void test_launch_untraced(void **unused)
{
    (void)unused;
    static const bz_backend *const backends[] = {&fake, NULL};
    traces = mmap(NULL, sizeof *traces, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(traces != MAP_FAILED);
    fake.enumerate = enumerate_and_own;
    fake.trace = fake_trace;
    fake.smallest = "activation fn=relu x=64 dtype=f32";
    assert_true(bz_launch_cost("fake", &(bz_run_options){.backends = backends, .trace = true}) > 0);
    assert_int_equal(*traces, 0);
    run_one("good", (bz_run_options){.trace = true});
    assert_int_equal(*traces, 1);
    fake.trace = NULL;
    fake.smallest = NULL;
}

/* Who may use f32 alone wants its best variant, and TF32's being three times as fast is no reason to give that up. */
static void test_dropped_by_mode(void **unused)
{
    (void)unused;
    static const bz_backend *const backends[] = {&fake, NULL};
    kept k = {0};
    bz_problem p;
    bz_error err;
    fake.enumerate = enumerate_and_own;
    fake.measure = fake_measure;
    assert_int_equal(bz_problem_parse("activation fn=relu x=64 dtype=f32", &p, &err), 0);
    bz_family families[] = {
        {&p, "fake", "slow", "default"}, {&p, "fake", "good", "tf32"}, {&p, "fake", "slow too", "tf32"}};
    bz_run_options o = {.backends = backends, .emit = keep, .context = &k, .hang_limit = 20, .time_limit = 0.02};
    assert_int_equal(bz_run(families, 3, &o, &err), 0);
    fake.measure = NULL;
    assert_int_equal(k.n, 3);
    assert_int_equal(find(&k, "good")->status, BZ_STATUS_OK);
    assert_int_equal(find(&k, "slow")->status, BZ_STATUS_OK);
    assert_int_equal(find(&k, "slow too")->status, BZ_STATUS_DROPPED);
}

/* A call that a device is still at when it returns: the one before a sample is no part of what the wall clock sees. */
static double at_work_until;

static int late_execute(bz_variant *v, int copy)
{
    double now = bz_now();
    at_work_until = (at_work_until > now ? at_work_until : now) + 0.003;
    return fake_execute(v, copy);
}

static int late_wait(bz_variant *v)
{
    (void)v;
    while (bz_now() < at_work_until)
        usleep(100);
    return 0;
}

static void test_wall_of_device(void **unused)
{
    (void)unused;
    fake.execute = late_execute;
    fake.wait = late_wait;
    fake.measure = fake_measure;
    kept k = run_one("good", (bz_run_options){.wall = true, .sample_time = 0.001});
    fake.execute = fake_execute;
    fake.wait = NULL;
    fake.measure = NULL;
    assert_true(k.record[0].stats.min > 0.0029 && k.record[0].stats.min < 0.005);
}

/* Results are compared by a sample where the backend can tell that all of them are numbers; what is wrong there is found, and what
 * was not written is read whole, so that the record says which element it is. */
static void test_sample(void **unused)
{
    (void)unused;
    fake.probe = fake_probe;
    fake.read = crashing_read;
    kept k = run_one("good", (bz_run_options){0});
    assert_string_equal(k.record[0].checked, "ok");
    k = run_one("tells nothing", (bz_run_options){0});
    assert_string_equal(k.record[0].checked, "ok");
    k = run_one("wrong", (bz_run_options){0});
    assert_non_null(strstr(k.record[0].reason, "wrong result: 1 of 64 elements are wrong: element 17"));
    k = run_one("unwritten", (bz_run_options){0});
    assert_non_null(strstr(k.record[0].reason, "element 0 of the result was not written"));
    fake.probe = NULL;
    fake.read = fake_read;
}

static void test_record_line(void **unused)
{
    (void)unused;
    kept k = run_one("refuses", (bz_run_options){0});
    bz_problem p;
    bz_error err;
    bz_buf line = {0};
    assert_int_equal(bz_problem_parse("activation fn=relu x=64 dtype=f32", &p, &err), 0);
    k.record[0].problem = &p;
    k.record[0].date = 7;
    bz_outcome_json(&k.record[0], &(bz_run_setting){.threads = 2, .cold = true}, "v@w", &line);
    assert_string_equal(
        bz_buf_text(&line),
        "{\"v\":1,\"problem\":\"activation fn=relu x=64 dtype=f32\",\"backend\":\"fake\",\"algorithm\":\"\","
        "\"layout\":\"refuses\",\"math\":\"default\",\"threads\":2,\"cache\":\"cold\",\"clock\":\"\","
        "\"status\":\"unsupported\",\"reason\":\"it does not feel like it\",\"median\":null,\"q25\":null,\"q75\":null,"
        "\"min\":null,\"max\":null,\"low\":null,\"high\":null,\"n\":0,\"iterations\":0,\"launch\":null,"
        "\"workspace\":0,\"variants\":0,\"bytes\":512,\"flops\":64,\"chosen\":false,\"chosen_training\":false,"
        "\"noisy\":false,\"throttled\":false,\"busy\":"
        "false,"
        "\"checked\":\"skipped\",\"timing\":\"wall\",\"provenance\":\"measured\",\"date\":7,\"system\":\"v@w\","
        "\"meta\":{}}\n");
    bz_buf_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crashes),
        cmocka_unit_test(test_wrong_results),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_noise_flag),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_launch),
        cmocka_unit_test(test_record_line),
        cmocka_unit_test(test_dropped_by_mode),
        cmocka_unit_test(test_wall_of_device),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_launch_untraced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
