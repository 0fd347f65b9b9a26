/* Interleaved rounds of samples: all variants of a problem, until each is known well enough or hopeless. */
#include "runtime/constants.h"
#include "runtime/trial.h"

#include "base/arena.h"
#include "base/progress.h"
#include "runtime/gbench.h"
#include "runtime/quiet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_SAMPLES = 2000 };

/* A variant under measurement. */
typedef struct runner {
    bz_trial *trial;
    bz_variant *variant;
    bz_outcome record;
    /* [MAX_SAMPLES]: seconds per call; the clock probe before each sample, or a device's clock during it */
    double *sample, *probe;
    int n, discarded;
    int64_t iterations; /* per sample */
    double spent, lost; /* `lost`: seconds of the last sample in which the thread had no processor */
    int64_t throttles;
    bool finished, traced; /* traced: behind all measuring, so that nothing of the profiler is in the times */
} runner;

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Adds to *lost how long this thread had no processor meanwhile. */
static double wall(bz_variant *v, int64_t n, int *copy, int copies, double *lost)
{
    double used = processor_time(), start = bz_now();
    for (int64_t i = 0; i < n; i++) {
        if (v->backend->execute(v, *copy))
            return -1;
        *copy = *copy + 1 < copies ? *copy + 1 : 0;
    }
    if (v->backend->wait && v->backend->wait(v))
        return -1;
    double seconds = bz_now() - start;
    if (!v->waits)
        *lost += fmax(seconds - (processor_time() - used), 0);
    return seconds;
}

static bool by_wall(const runner *r)
{
    return !r->variant->backend->measure || r->trial->task->options->wall;
}

static bool is_cold(const runner *r)
{
    return r->trial->job.copies > 1;
}

/* Calls that can follow each other: cold, one for each copy that no call of any variant has read. */
static int64_t at_once(const runner *r, int64_t n)
{
    return is_cold(r) && n > r->trial->cold ? r->trial->cold : n;
}

/* Cold: takes the operands out of the caches, once each copy was read. Hot: calls once, since another variant ran in between. */
static int get_ready(runner *r)
{
    bz_variant *v = r->variant;
    bz_trial *t = r->trial;
    if (is_cold(r)) {
        if (!t->cold && !bz_place_flush())
            return -1;
        t->cold = t->cold ? t->cold : t->job.copies;
        return 0;
    }
    if (v->backend->execute(v, 0))
        return -1;
    return by_wall(r) && v->backend->wait && v->backend->wait(v) ? -1 : 0; /* the device may still be at it */
}

/* Seconds of n calls. */
static double call(runner *r, int64_t n)
{
    bz_variant *v = r->variant;
    bz_trial *t = r->trial;
    double seconds;
    t->cold -= (int)(is_cold(r) ? n : 0);
    if (by_wall(r))
        return wall(v, n, &t->next_copy, t->job.copies, &r->lost);
    if (v->backend->measure(v, n, t->next_copy, &seconds))
        return -1;
    t->next_copy = (int)((t->next_copy + n) % t->job.copies);
    return seconds;
}

/* The body of the benchmark: n calls. */
static double run_calls(void *context, int64_t n)
{
    runner *r = context;
    double total = 0;
    r->lost = 0;
    r->trial->task->blame->beat = bz_now();
    if (!is_cold(r) && (r->n == 0 || r->sample[r->n - 1] < LONG_CALL) && get_ready(r))
        return -1;
    while (n) {
        if (is_cold(r) && get_ready(r))
            return -1;
        int64_t some = at_once(r, n);
        double seconds = call(r, some);
        if (seconds < 0)
            return -1;
        total += seconds;
        n -= some;
    }
    return total > 0 ? total : 1e-9; /* a clock may stand still for a nanosecond */
}

/* How often another program took the processor from one of our threads. */
static long count_interruptions(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) ? 0 : u.ru_nivcsw;
}

/* Whether somebody else ran during the sample. A call of one thread on the processor tells it by its own clock, which
 * stands still meanwhile; threads that wait for each other do not, and there the kernel's count decides. */
static bool was_interrupted(const runner *r, double seconds, long interruptions)
{
    const bz_run_options *o = r->trial->task->options;
    bool own_clock = o->setting.threads <= 1 && !r->variant->backend->device && !r->variant->waits;
    return own_clock ? r->lost > LOST * seconds * (double)r->iterations : count_interruptions() > interruptions;
}

/* On a busy machine samples in which somebody else ran are taken again; but where it never is quiet, as with
 * calls that take long, about every other one is kept, as long as its thread had a processor. A first sample was also to
 * tell how many calls make one: a scheduler's slice of 8 ms looks like a call of 8 ms, so that it is taken anew. */
static int take_sample(runner *r)
{
    bz_trial *t = r->trial;
    bz_trial_blame(t, r->variant, "measuring");
    double start = bz_now(), sample_time = t->task->options->sample_time;
    if (!(sample_time > 0))
        sample_time = r->variant->backend->device ? DEVICE_SAMPLE_TIME : SAMPLE_TIME;
    /* A processor's caches are emptied once in a sample: of a large table that takes a second. */
    double most = is_cold(r) && !r->variant->backend->device ? t->job.copies : (double)INFINITY;
    r->iterations = isfinite(most) && !r->iterations ? 1 : r->iterations;
    long interruptions = count_interruptions();
    r->probe[r->n] = r->variant->backend->device ? NAN : bz_clock_probe();
    double seconds = bz_gbench_sample(run_calls, r, sample_time, &r->iterations);
    if (seconds < 0) {
        r->record.status = BZ_STATUS_FAILED;
        snprintf(r->record.reason, sizeof r->record.reason, "the library failed while it was measured");
        return -1;
    }
    r->spent += bz_now() - start;
    if (was_interrupted(r, seconds, interruptions)) {
        if (r->discarded <= r->n + 4) {
            r->discarded++;
            r->iterations = r->n ? r->iterations : 0;
            /* others have the processor for a moment: who slept gets a whole slice of time when it wakes */
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            return r->n ? 0 : take_sample(r);
        }
        seconds -= r->lost / (double)r->iterations;
        r->record.interrupted++;
    }
    r->record.iterations += r->iterations;
    if (!r->n && (double)r->iterations * seconds < sample_time / 2)
        r->iterations = (int64_t)fmin(ceil(sample_time / seconds), most);
    if (r->variant->backend->clock)
        r->record.throttled |= r->variant->backend->clock(r->variant->session, &r->probe[r->n]);
    r->sample[r->n++] = seconds;
    return 0;
}

static double take_yardstick(bz_trial *t)
{
    if (bz_now() - t->measured_at > YARDSTICK_HOLDS) {
        t->yardstick[1] = bz_yardstick();
        t->measured_at = bz_now();
    }
    return t->yardstick[1];
}

/* The samples may agree well with each other while all of them are too long. */
static bool was_busy(const runner *r)
{
    const bz_run_options *o = r->trial->task->options;
    const double *y = r->record.yardstick;
    double best = fmin(y[0], y[1]);
    if (o->yardstick > 0)
        best = fmin(best, o->yardstick);
    return o->busy || fmax(y[0], y[1]) > SLOW_PHASE * best || 4 * r->record.interrupted > r->n;
}

static bz_stats stats_of(const runner *r)
{
    double sorted[MAX_SAMPLES];
    memcpy(sorted, r->sample, (size_t)r->n * sizeof *sorted);
    return bz_stats_of(sorted, r->n);
}

/* The clock went down: the kernel counted it, or the probe was slower in the last third than in the first. A device has said
 * it with each sample. */
static bool was_throttled(const runner *r)
{
    int third = r->n / 3;
    if (r->variant->backend->device)
        return r->record.throttled;
    if (r->throttles >= 0 && bz_throttle_count() > r->throttles)
        return true;
    if (third < 3)
        return false;
    double copy[MAX_SAMPLES];
    memcpy(copy, r->probe, (size_t)r->n * sizeof *copy);
    double before = bz_stats_of(copy, third).median;
    return bz_stats_of(copy + r->n - third, third).median > CLOCK_CHANGE * before;
}

/* The median of the device's clock during the samples; NaN where the device does not tell its clock. */
static double clock_of(const runner *r)
{
    double known[MAX_SAMPLES];
    int n = 0;
    for (int i = 0; i < r->n; i++)
        if (r->probe[i] > 0)
            known[n++] = r->probe[i];
    return n && r->variant->backend->device ? bz_stats_of(known, n).median : NAN;
}

static bool wants_profiler(const bz_trial *t, const runner *r)
{
    const bz_run_options *o = t->task->options;
    const bz_backend *b = r->variant->backend;
    return r->variant->state && (r->record.status == BZ_STATUS_OK || r->record.status == BZ_STATUS_DROPPED) &&
           ((o->trace && b->trace) || (o->counters && b->count));
}

static void ask_profiler(const bz_trial *t, runner *r)
{
    const bz_run_options *o = t->task->options;
    const bz_backend *b = r->variant->backend;
    bz_error err = {0};
    if (o->trace && b->trace) {
        bz_trial_blame(t, r->variant, "tracing");
        if (b->trace(r->variant, &r->record.trace, &err))
            snprintf(r->record.trace.reason, sizeof r->record.trace.reason, "%s", err.text);
    }
    if (o->counters && b->count) {
        bz_trial_blame(t, r->variant, "counting");
        if (b->count(r->variant, o->counters, &r->record.counted, &err))
            snprintf(r->record.counted.reason, sizeof r->record.counted.reason, "%s", err.text);
    }
}

static void release(runner *r)
{
    if (r->variant->state)
        r->variant->backend->release(r->variant);
    r->variant->state = NULL;
}

static void finish(runner *r)
{
    bz_trial *t = r->trial;
    if (r->n) {
        r->record.stats = stats_of(r);
        r->record.noisy = bz_stats_noisy(&r->record.stats);
        if (!r->variant->backend->device) {
            r->record.yardstick[0] = t->yardstick[0];
            r->record.yardstick[1] = take_yardstick(t);
            r->record.busy = was_busy(r);
        }
        r->record.throttled = was_throttled(r);
        r->record.device_clock = clock_of(r);
        if (r->variant->timing)
            snprintf(r->record.timing, sizeof r->record.timing, "%s", r->variant->timing);
        if (r->record.status == BZ_STATUS_OK && t->counters.fd[0] >= 0) {
            get_ready(r);
            int64_t n = at_once(r, r->iterations);
            bz_counters_start(&t->counters);
            call(r, n);
            bz_counters_stop(&t->counters, (double)n, r->record.counter);
        }
    }
    r->record.date = time(NULL);
    r->finished = true;
    r->traced = r->record.more = wants_profiler(t, r);
    bz_trial_emit(t, &r->record);
    if (!r->traced)
        release(r);
}

static void trace_all(runner *runners, int n)
{
    for (int i = 0; i < n; i++) {
        runner *r = &runners[i];
        if (!r->traced)
            continue;
        ask_profiler(r->trial, r);
        r->record.more = false;
        bz_trial_emit(r->trial, &r->record);
        release(r);
    }
}

static double fastest(const runner *r)
{
    double least = INFINITY;
    for (int i = 0; i < r->n; i++)
        least = r->sample[i] < least ? r->sample[i] : least;
    return least;
}

/* Whether r is slower than it is worth going on for. The library's own picks never are: programs that leave the choice to the
 * library use them, and no dropped record prices what a program used. Somebody else on the machine can stretch one sample to
 * several times its length: who is not far off gets a second one. */
static bool is_hopeless(runner *r, double best)
{
    if (r->variant->chosen || r->variant->chosen_training)
        return false;
    if (fastest(r) > HOPELESS * best && fastest(r) < FAR_OFF * best && fastest(r) < 10 * LONG_CALL && take_sample(r))
        return false; /* it failed, and is finished by its record's status */
    return fastest(r) > HOPELESS * best;
}

/* The least first sample of the variants in a math mode. A bound that allows f32 alone takes the best of these, however much faster
 * TF32 is. */
static double best_of_mode(const runner *runners, int n, const char *math)
{
    double best = INFINITY;
    for (int i = 0; i < n; i++)
        if (runners[i].n && !strcmp(runners[i].variant->math, math))
            best = fmin(best, runners[i].sample[0]);
    return best;
}

/* The first round: Google Benchmark finds how many iterations a sample takes; who is hopeless leaves. */
static void first_round(runner *runners, int n)
{
    for (int i = 0; i < n; i++)
        if (take_sample(&runners[i]))
            finish(&runners[i]);
    for (int i = 0; i < n; i++) {
        runner *r = &runners[i];
        if (r->finished)
            continue;
        double best = best_of_mode(runners, n, r->variant->math);
        bool hopeless = is_hopeless(r, best);
        if (hopeless) {
            r->record.status = BZ_STATUS_DROPPED;
            snprintf(r->record.reason, sizeof r->record.reason, "%.3g times as slow as the best after the first round",
                     fastest(r) / best);
        }
        if (hopeless || r->record.status == BZ_STATUS_FAILED)
            finish(r);
    }
}

static bool is_settled(const runner *r)
{
    const bz_run_options *o = r->trial->task->options;
    if (r->n == MAX_SAMPLES)
        return true;
    if (r->n < FEWEST_SAMPLES)
        return r->spent > 4 * o->time_limit && r->n >= 3;
    if (r->n >= ENOUGH_SAMPLES && !r->variant->backend->device && r->spent > o->time_limit / 3)
        return true;
    bz_stats s = stats_of(r);
    return r->spent > o->time_limit || bz_stats_uncertainty(&s) <= o->precision;
}

static void all_rounds(runner *runners, int n)
{
    first_round(runners, n);
    for (bool going = true; going;) {
        going = false;
        for (int i = 0; i < n; i++) {
            runner *r = &runners[i];
            if (r->finished)
                continue;
            going = true;
            if (take_sample(r) || is_settled(r))
                finish(r);
        }
    }
}

void bz_trial_run(bz_trial *t)
{
    int n = 0;
    BZ_FREED runner *runners = bz_alloc((size_t)t->variants.n + 1, sizeof *runners);
    for (int i = 0; i < t->variants.n; i++) {
        bz_variant *v = &t->variants.item[i];
        if (bz_trial_finished(t, v->backend->name, v->algorithm, v->layout, v->math))
            continue;
        runner *r = &runners[n];
        *r = (runner){.trial = t, .variant = v, .throttles = bz_throttle_count()};
        r->record = bz_outcome_of(t->problem, v->backend->name, v->algorithm, v->layout, v->math);
        r->record.chosen = v->chosen;
        r->record.chosen_training = v->chosen_training;
        r->record.variants = bz_trial_family_size(t, v);
        snprintf(r->record.timing, sizeof r->record.timing, "%s", v->backend->timing);
        if (t->task->options->wall)
            snprintf(r->record.timing, sizeof r->record.timing, "wall");
        if (bz_trial_try(t, v, &r->record) || t->task->options->check_only) {
            finish(r);
            continue;
        }
        r->sample = bz_alloc(MAX_SAMPLES, 2 * sizeof *r->sample);
        r->probe = r->sample + MAX_SAMPLES;
        n++;
    }
    t->yardstick[0] = take_yardstick(t);
    all_rounds(runners, n);
    trace_all(runners, n);
    for (int i = 0; i < n; i++)
        free(runners[i].sample);
}
