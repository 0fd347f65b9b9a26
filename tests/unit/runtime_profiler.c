/* What a device says of itself while variants are measured, and what its profiler says behind that: with a device made for it. */
#include "runtime/backend.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const bz_job *job;
static float result[64];
static bool traced;       /* the profiler was at work already */
static const char *last;  /* the variant that was measured last */
static bool round_over;   /* all of them were measured once */
static const char *crash; /* the variant in whose trace the process ends */

static int fake_open(const bz_job *j, void **session, bz_error *err)
{
    (void)err;
    job = j;
    *session = result;
    return 0;
}

static int fake_enumerate(void *session, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    (void)why;
    for (int i = 0; i < 3; i++) {
        bz_variant *v = bz_variant_add(list, NULL, session, layout, math);
        snprintf(v->algorithm, sizeof v->algorithm, "%s", (const char *[]){"first", "second", "third"}[i]);
    }
    return 0;
}

static int fake_prepare(bz_variant *v, bz_error *err)
{
    (void)err;
    v->state = result;
    v->workspace = (double)getpid();
    return 0;
}

static int fake_execute(bz_variant *v, int copy)
{
    (void)v, (void)copy;
    for (int i = 0; i < 64; i++)
        result[i] = job->value[0][i] > 0 ? job->value[0][i] : 0;
    return 0;
}

/* The third one needs more rounds than the others: its samples differ. */
static int fake_measure(bz_variant *v, int64_t n, int first_copy, double *seconds)
{
    static int samples;
    (void)first_copy;
    last = v->algorithm;
    round_over |= !strcmp(last, "third");
    bool longer = !strcmp(v->algorithm, "third") && samples++ % 2;
    *seconds = (double)n * (longer ? 1.2e-4 : 1e-4);
    return traced ? -1 : 0; /* where a profiler is at work, times are others */
}

/* The device is throttled in the first sample of the second one: who asks later is told of none. Of the first one it does not tell
 * its clock. */
static bool fake_clock(void *session, double *hz)
{
    (void)session;
    if (strcmp(last, "first") != 0)
        *hz = !strcmp(last, "second") ? 1.2e9 : 1.8e9;
    return !strcmp(last, "second") && !round_over;
}

static int fake_trace(bz_variant *v, bz_trace *out, bz_error *err)
{
    (void)err;
    traced = true;
    if (crash && !strcmp(v->algorithm, crash))
        raise(SIGSEGV);
    *out = (bz_trace){.calls = 1, .n_kernels = 1, .seconds = 9e-5};
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
    (void)v, (void)err;
    memcpy(values, result, sizeof result);
    return 0;
}

static void fake_release(bz_variant *v)
{
    (void)v;
}

static void fake_close(void *session)
{
    (void)session;
}

static int fake_device(bz_device *out, bz_error *err)
{
    (void)out;
    return bz_fail(err, BZ_FAILED, "nobody asks");
}

static bz_backend fake = {
    .name = "fake",
    .timing = "device",
    .open = fake_open,
    .prepare = fake_prepare,
    .execute = fake_execute,
    .measure = fake_measure,
    .trace = fake_trace,
    .clock = fake_clock,
    .device = fake_device,
    .poison = fake_poison,
    .read = fake_read,
    .release = fake_release,
    .close = fake_close,
};

static int enumerate_and_own(void *session, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    int before = list->n, bad = fake_enumerate(session, layout, math, list, why);
    for (int i = before; i < list->n; i++)
        list->item[i].backend = &fake;
    return bad;
}

typedef struct kept {
    bz_outcome item[16];
    int n;
} kept;

static void keep(void *context, const bz_outcome *r)
{
    kept *k = context;
    assert_true(k->n < 16);
    k->item[k->n++] = *r;
}

static kept run(void)
{
    static const bz_backend *const backends[] = {&fake, NULL};
    kept k = {0};
    bz_problem p;
    bz_error err = {0};
    bz_run_options o = {.trace = true, .backends = backends, .time_limit = 0.001, .emit = keep, .context = &k};
    fake.enumerate = enumerate_and_own;
    assert_int_equal(bz_problem_parse("activation fn=relu x=1x64 dtype=f32", &p, &err), 0);
    bz_family family = {&p, "fake", "plain", "default"};
    assert_int_equal(bz_run(&family, 1, &o, &err), 0);
    return k;
}

static const bz_outcome *find(const kept *k, const char *algorithm)
{
    const bz_outcome *found = NULL;
    for (int i = 0; i < k->n; i++)
        if (!strcmp(k->item[i].algorithm, algorithm)) {
            assert_null(found);
            found = &k->item[i];
        }
    assert_non_null(found);
    return found;
}

static void traces_behind_all_measuring(void **state)
{
    static const char *const NAMES[] = {"first", "second", "third"};
    (void)state;
    kept k = run();
    assert_int_equal(k.n, 3);
    for (int i = 0; i < 3; i++) {
        const bz_outcome *r = find(&k, NAMES[i]);
        assert_int_equal(r->status, BZ_STATUS_OK);
        assert_int_equal(r->trace.n_kernels, 1);
        assert_false(r->more);
    }
}

static void flags_whose_sample_it_was(void **state)
{
    (void)state;
    kept k = run();
    assert_false(find(&k, "first")->throttled);
    assert_true(find(&k, "second")->throttled);
    assert_false(find(&k, "third")->throttled);
    assert_true(isnan(find(&k, "first")->device_clock)); /* the processor's is no answer */
    assert_int_equal(lround(find(&k, "second")->device_clock / 1e6), 1200);
    assert_int_equal(lround(find(&k, "third")->device_clock / 1e6), 1800);
}

static void keeps_what_was_measured(void **state)
{
    (void)state;
    crash = "second";
    kept k = run();
    crash = NULL;
    assert_int_equal(k.n, 3);
    assert_int_equal(find(&k, "first")->trace.n_kernels, 1);
    assert_int_equal(find(&k, "second")->status, BZ_STATUS_OK);
    assert_string_equal(find(&k, "second")->trace.reason, "the process ended while the profiler looked at a call");
    assert_true(find(&k, "second")->stats.median > 0);
}

/* The process that measured the variant; 0 where there is no such record. */
static double run_in(bz_worker *k, const bz_family *family)
{
    static const bz_backend *const backends[] = {&fake, NULL};
    kept all = {0};
    bz_error err = {0};
    bz_run_options o = {.backends = backends, .time_limit = 0.001, .emit = keep, .context = &all};
    assert_int_equal(bz_worker_run(k, family, 1, &o, &err), 0);
    for (int i = 0; i < all.n; i++)
        if (all.item[i].status == BZ_STATUS_OK)
            return all.item[i].workspace;
    return 0;
}

static void measures_many_problems_in_one_process(void **state)
{
    static bz_problem p[2];
    static bz_family family[2];
    bz_worker k = {0};
    bz_error err = {0};
    (void)state;
    fake.enumerate = enumerate_and_own;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            bz_problem_parse(i ? "activation fn=relu x=2x32 dtype=f32" : "activation fn=relu x=64 dtype=f32", &p[i],
                             &err),
            0);
        family[i] = (bz_family){&p[i], "fake", "plain", "default"};
    }
    double first = run_in(&k, &family[0]), second = run_in(&k, &family[1]);
    assert_true(first > 1 && first == second && first != (double)getpid());
    assert_int_equal(kill(k.child, SIGKILL), 0); /* whatever ended it, the next one goes on */
    double third = run_in(&k, &family[0]);
    assert_true(third > 1 && third != first);
    assert_true(run_in(&k, &family[1]) == third);
    bz_worker_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_behind_all_measuring),
        cmocka_unit_test(flags_whose_sample_it_was),
        cmocka_unit_test(keeps_what_was_measured),
        cmocka_unit_test(measures_many_problems_in_one_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
