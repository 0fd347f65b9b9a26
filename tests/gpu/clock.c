/* Whether times can be true. No test says what is fast: each holds two measurements against each other, or one
 * against what the device can do at most. */
#include "tests/gpu/check.h"

#include "base/progress.h"
#include "base/units.h"
#include "runtime/gpus.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct wanted {
    bz_outcome best;
    const char *algorithm; /* NULL: the fastest */
} wanted;

typedef struct test {
    const clock_problems *problems;
    const bz_device *device;
    const char *plans;
    bz_worker *worker;
    char said[200];
} test;

typedef enum verdict { GOOD, BAD, NOT_TESTED } verdict;

static void keep(void *context, const bz_outcome *r)
{
    wanted *w = context;
    if (r->status != BZ_STATUS_OK || (w->algorithm && strcmp(w->algorithm, r->algorithm) != 0))
        return;
    if (!w->best.problem || r->stats.median < w->best.stats.median)
        w->best = *r;
}

/* Seconds of the variant that the library would choose, or of the one that is named; NaN where none runs. The outcome may be
 * NULL. One variant says all that is asked here. */
static double measure(const test *t, role which, const char *math, const bz_run_options *like, const char *algorithm,
                      bz_outcome *out)
{
    static bz_family family[N_ROLES][2]; /* the worker's process must have seen them */
    bz_run_options options = *like;
    wanted w = {.algorithm = algorithm};
    for (int i = 0; i < 2 * N_ROLES; i++) {
        const bz_problem *each = &t->problems->problem[i / 2];
        family[i / 2][i % 2] =
            (bz_family){each, each->kind == BZ_PROBLEM_GEMM ? "cublas" : "cudnn", "plain", i % 2 ? "tf32" : "default"};
    }
    options.setting.plans = t->plans;
    options.emit = keep;
    options.context = &w;
    snprintf(options.variant, sizeof options.variant, "%s", algorithm ? algorithm : "-");
    const bz_family *f = &family[which][!strcmp(math, "tf32")];
    if (!t->problems->given[which] || bz_worker_run(t->worker, f, 1, &options, NULL) || !w.best.problem)
        return NAN;
    if (out)
        *out = w.best;
    return w.best.stats.median;
}

static const bz_run_options HOT = {.setting.threads = 1}, COLD = {.setting = {.threads = 1, .cold = true}},
                            WALL = {.setting.threads = 1, .wall = true}, TRACED = {.setting.threads = 1, .trace = true};

static verdict missing(test *t)
{
    snprintf(t->said, sizeof t->said, "the problem is not in the list, or nothing of it runs");
    return NOT_TESTED;
}

/* Two times in the text, and whether their ratio lies between the two limits. */
static verdict judge(test *t, const char *a_name, double a, const char *b_name, double b, double least, double most)
{
    bz_unit_text at, bt;
    if (!(a > 0) || !(b > 0))
        return missing(t);
    snprintf(t->said, sizeof t->said, "%s %s, %s %s: ratio %.3f, to be between %g and %g", a_name, bz_units_time(at, a),
             b_name, bz_units_time(bt, b), b / a, least, most);
    return b / a >= least && b / a <= most ? GOOD : BAD;
}

static verdict test_empty_call(test *t)
{
    static const char *const NAMES[] = {"cudnn", "cublas"};
    bz_buf said = {0};
    verdict v = GOOD;
    for (int i = 0; i < 2; i++) {
        bz_unit_text a;
        bz_error none;
        if (!bz_backend_find(NULL, NAMES[i], &none)) {
            bz_buf_printf(&said, "%s is not there, ", NAMES[i]);
            continue;
        }
        double cost = bz_launch_cost(NAMES[i], &HOT);
        bz_buf_printf(&said, "%s %s, ", NAMES[i], bz_units_time(a, cost));
        v = cost > 0 && cost < 1e-3 ? v : BAD;
    }
    snprintf(t->said, sizeof t->said, "%sto be under 1 ms", bz_buf_text(&said));
    bz_buf_free(&said);
    return v;
}

static verdict test_event_pair(test *t)
{
    bz_unit_text a;
    double pair = t->device->event_pair;
    snprintf(t->said, sizeof t->said, "%s, to be under 0.1 ms", bz_units_time(a, pair));
    return pair >= 0 && pair < 1e-4 ? GOOD : BAD;
}

static verdict test_queue(test *t)
{
    bz_outcome r;
    if (isnan(measure(t, ROLE_CACHED, "default", &HOT, NULL, &r)))
        return missing(t);
    snprintf(t->said, sizeof t->said, "timed by %s, to be device", r.timing);
    return strcmp(r.timing, "device") ? BAD : GOOD;
}

/* A call that takes milliseconds takes as long by the wall clock. */
static verdict test_wall(test *t)
{
    bz_outcome r = {0};
    double device = measure(t, ROLE_LONG, "default", &HOT, NULL, &r);
    return judge(t, "device", device, "wall", measure(t, ROLE_LONG, "default", &WALL, r.algorithm, NULL), 0.97, 1.1);
}

static verdict test_cold(test *t)
{
    bz_outcome r = {0};
    double hot = measure(t, ROLE_CACHED, "default", &HOT, NULL, &r);
    return judge(t, "hot", hot, "cold", measure(t, ROLE_CACHED, "default", &COLD, r.algorithm, NULL), 0.97, 20);
}

/* The worst of the problems that take longer than 20 µs: below that the pause between two kernels counts. */
static verdict test_kernels(test *t)
{
    static const role ROLES[] = {ROLE_PRODUCT, ROLE_HALF, ROLE_CACHED, ROLE_ONCE, ROLE_TWICE};
    double device = NAN, kernels = NAN, worst = 1;
    for (size_t i = 0; i < sizeof ROLES / sizeof *ROLES; i++) {
        bz_outcome r = {0};
        double seconds = measure(t, ROLES[i], "default", &TRACED, NULL, &r);
        if (!r.trace.calls && r.trace.reason[0]) {
            snprintf(t->said, sizeof t->said, "%.*s", (int)sizeof t->said - 1, r.trace.reason);
            return NOT_TESTED;
        }
        if (t->device->kernel_gap > 0) /* the pauses are between the kernels, and in the time between events */
            seconds -= r.trace.n_kernels * t->device->kernel_gap;
        if (!(seconds > 20e-6) || !r.trace.n_kernels || fabs(log(r.trace.seconds / seconds)) < fabs(log(worst)))
            continue;
        device = seconds;
        kernels = r.trace.seconds;
        worst = kernels / device;
    }
    return judge(t, "the worst: device", device, "its kernels", kernels, 0.98, 1.02);
}

/* Problems are measured one after the other in one process, and the profiler looks at the kernels of each: that must leave nothing
 * behind. The process in which it has not looked yet is a new one. */
static verdict test_after(test *t)
{
    bz_outcome r = {0};
    bz_worker_close(t->worker);
    double before = measure(t, ROLE_CACHED, "default", &HOT, NULL, &r);
    if (isnan(measure(t, ROLE_CACHED, "default", &TRACED, r.algorithm, NULL)))
        return missing(t);
    return judge(t, "before", before, "behind", measure(t, ROLE_CACHED, "default", &HOT, r.algorithm, NULL), 0.95,
                 1.05);
}

static verdict test_repeat(test *t)
{
    bz_outcome r = {0};
    double least = measure(t, ROLE_PRODUCT, "default", &HOT, NULL, &r), most = least;
    for (int i = 0; i < 4; i++) {
        double again = measure(t, ROLE_PRODUCT, "default", &HOT, r.algorithm, NULL);
        least = fmin(least, again);
        most = fmax(most, again);
    }
    return judge(t, "least of five", least, "most", most, 1, 1.05);
}

static verdict test_linear(test *t)
{
    bz_outcome r = {0};
    double once = measure(t, ROLE_ONCE, "default", &HOT, NULL, &r);
    return judge(t, "once", once, "twice as much", measure(t, ROLE_TWICE, "default", &HOT, r.algorithm, NULL), 1.8,
                 2.2);
}

/* `most` is what the device does in a second at most, `much` what the call does. */
static verdict test_peak(test *t, double seconds, double much, double most, const char *unit)
{
    bz_unit_text a, b;
    if (!(seconds > 0))
        return missing(t);
    double rate = much / seconds;
    if (!(most > 0)) {
        snprintf(t->said, sizeof t->said, "%s%s/s; what this device can do is not known", bz_units_count(a, rate),
                 unit);
        return NOT_TESTED;
    }
    snprintf(t->said, sizeof t->said,
             "%s%s/s of %s%s/s, to be at most 1.15 of it: cards clock higher than their data sheets",
             bz_units_count(a, rate), unit, bz_units_count(b, most), unit);
    return rate <= 1.15 * most ? GOOD : BAD;
}

static verdict test_peak_of(test *t, role which, const char *math, int rate)
{
    bz_gpu known = {0};
    bz_gpu_find(t->device->name, &known);
    return test_peak(t, measure(t, which, math, &HOT, NULL, NULL), bz_problem_flops(&t->problems->problem[which]),
                     known.rate[rate], "flop");
}

static verdict test_peak_f32(test *t)
{
    return test_peak_of(t, ROLE_PRODUCT, "default", 1);
}

static verdict test_peak_tf32(test *t)
{
    return test_peak_of(t, ROLE_PRODUCT, "tf32", 2);
}

static verdict test_peak_f16(test *t)
{
    return test_peak_of(t, ROLE_HALF, "default", 3);
}

/* Cold: the cache holds part of it otherwise. */
static verdict test_bandwidth(test *t)
{
    return test_peak(t, measure(t, ROLE_TWICE, "default", &COLD, NULL, NULL),
                     bz_problem_bytes(&t->problems->problem[ROLE_TWICE]), t->device->bandwidth, "B");
}

static verdict test_copy(test *t)
{
    if (!(t->device->copied > 0)) {
        snprintf(t->said, sizeof t->said, "there was no room for one");
        return NOT_TESTED;
    }
    return test_peak(t, 1, t->device->copied, t->device->bandwidth, "B");
}

static const struct {
    const char *what;
    verdict (*run)(test *t);
} TESTS[] = {
    {"an empty call has a price", test_empty_call},
    {"a pair of events costs little", test_event_pair},
    {"the queue is held back", test_queue},
    {"device time is wall time where a call is long", test_wall},
    {"cold is no faster than hot", test_cold},
    {"device time is the time of CUPTI's kernels", test_kernels},
    {"calls take as long behind the profiler as before it", test_after},
    {"five times the same takes the same time", test_repeat},
    {"twice the work takes twice the time", test_linear},
    {"f32 no faster than the device", test_peak_f32},
    {"TF32 no faster than the device", test_peak_tf32},
    {"f16 no faster than the device", test_peak_f16},
    {"memory no faster than the device", test_bandwidth},
    {"a copy no faster than the memory", test_copy},
};

int clock_check(const clock_problems *problems, const bz_device *device, const char *plans, double end, int *left_out)
{
    static const char *const VERDICTS[] = {"good", "BAD", "not tested"};
    bz_worker worker = {0};
    int bad = 0;
    for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++) {
        test t = {.problems = problems, .device = device, .plans = plans, .worker = &worker};
        if (bz_now() >= end) {
            printf("  not run     %s: the time was over\n", TESTS[i].what);
            ++*left_out;
            continue;
        }
        verdict v = TESTS[i].run(&t);
        printf("  %-10s  %s: %s\n", VERDICTS[v], TESTS[i].what, t.said);
        fflush(stdout);
        bad += v == BAD;
    }
    bz_worker_close(&worker);
    return bad;
}
