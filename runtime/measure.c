/* Measuring one problem: enumerate, prepare, check, then interleaved rounds of samples. */
#include "runtime/measure.h"

#include "base/arena.h"
#include "base/progress.h"
#include "runtime/counters.h"
#include "runtime/gbench.h"
#include "runtime/quiet.h"
#include "runtime/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SAMPLES = 2000, FEWEST_SAMPLES = 6, MAX_COPIES = 4096, MAX_SESSIONS = 8 };
#define HOPELESS     2.0  /* times the best */
#define FAR_OFF      8.0  /* times the best: beyond the doubt of one sample */
#define LONG_CALL    0.02 /* seconds; from here on a call needs no warm-up before each sample */
#define CLOCK_CHANGE 1.05
#define LOST         0.01 /* share of a sample: well within the spread from which on a record is noisy */

typedef struct session {
    const bz_backend *backend;
    void *of;
} session;

/* One problem in the child. */
typedef struct trial {
    const bz_measure_task *task;
    const bz_problem *problem;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    float *value[BZ_PROBLEM_OPERANDS];
    bz_job job;
    session sessions[MAX_SESSIONS];
    int n_sessions;
    bz_variant_list variants;
    int64_t *position; /* elements of the result that are checked */
    bz_expected *expected;
    int n_positions;
    char *evict; /* cold: as large as it takes to empty the caches, where copies alone do not */
    size_t evict_size;
    bz_counters counters;
    double yardstick[2], measured_at; /* at the beginning, and the last one with its time */
} trial;

/* A variant under measurement. */
typedef struct runner {
    trial *trial;
    bz_variant *variant;
    bz_outcome record;
    /* [MAX_SAMPLES]: seconds per call; the clock probe before each sample, or a device's clock during it */
    double *sample, *probe;
    int n, discarded;
    int64_t iterations; /* per sample */
    int next_copy;
    double spent, lost; /* `lost`: seconds of the last sample in which the thread had no processor */
    int64_t throttles;
    bool finished, traced; /* traced: behind all measuring, so that nothing of the profiler is in the times */
} runner;

bz_outcome bz_outcome_of(const bz_problem *p, const char *backend, const char *algorithm, const char *layout,
                         const char *math)
{
    bz_outcome r = {.problem = p, .launch = NAN, .device_clock = NAN, .date = time(NULL)};
    snprintf(r.backend, sizeof r.backend, "%s", backend);
    snprintf(r.algorithm, sizeof r.algorithm, "%s", algorithm);
    snprintf(r.layout, sizeof r.layout, "%s", layout);
    snprintf(r.math, sizeof r.math, "%s", math);
    snprintf(r.checked, sizeof r.checked, "skipped");
    snprintf(r.timing, sizeof r.timing, "wall");
    r.yardstick[0] = r.yardstick[1] = NAN;
    for (int i = 0; i < BZ_N_COUNTERS; i++)
        r.counter[i] = NAN;
    return r;
}

/* A pipe takes a record in pieces when it is full; the parent puts them together. */
static void emit(const trial *t, const bz_outcome *r)
{
    const char *p = (const char *)r;
    for (size_t left = sizeof *r; left;) {
        ssize_t n = write(t->task->pipe, p, left);
        if (n <= 0)
            _exit(1); /* the parent is gone */
        p += n;
        left -= (size_t)n;
    }
}

/* How many variants v's family has. */
static int count_family(const trial *t, const bz_variant *v)
{
    int n = 0;
    for (int i = 0; i < t->variants.n; i++) {
        const bz_variant *w = &t->variants.item[i];
        n += w->backend == v->backend && !strcmp(w->layout, v->layout) && !strcmp(w->math, v->math);
    }
    return n;
}

static void blame(const trial *t, const char *backend, const char *algorithm, const char *layout, const char *math,
                  const char *stage)
{
    bz_blame *b = t->task->blame;
    snprintf(b->backend, sizeof b->backend, "%s", backend);
    snprintf(b->algorithm, sizeof b->algorithm, "%s", algorithm);
    snprintf(b->layout, sizeof b->layout, "%s", layout);
    snprintf(b->math, sizeof b->math, "%s", math);
    snprintf(b->stage, sizeof b->stage, "%s", stage);
    b->variants = 0;
    b->beat = bz_now();
}

static void blame_variant(const trial *t, const bz_variant *v, const char *stage)
{
    blame(t, v->backend->name, v->algorithm, v->layout, v->math, stage);
    t->task->blame->variants = count_family(t, v);
}

/* Whether the variant (or with algorithm "" the family) ended already: in an earlier child, or in an
 * earlier run. */
static bool is_finished(const trial *t, const char *backend, const char *algorithm, const char *layout,
                        const char *math)
{
    for (int i = 0; i < t->task->options->n_known; i++) {
        const bz_known *k = &t->task->options->known[i];
        if (!strcmp(k->backend, backend) && !strcmp(k->layout, layout) && !strcmp(k->math, math) &&
            (!k->algorithm || !strcmp(k->algorithm, algorithm)))
            return true;
    }
    for (int i = 0; i < t->task->n_finished; i++) {
        const bz_outcome *r = &t->task->finished[i];
        if (!strcmp(r->backend, backend) && !strcmp(r->layout, layout) && !strcmp(r->math, math) &&
            !strcmp(r->algorithm, algorithm))
            return true;
    }
    return false;
}

/* ---- set-up --------------------------------------------------------------------------------- */

/* Elements to check: all of a small result; of a large one as many as cost about a millisecond, the
 * first and the last among them. */
static void choose_positions(trial *t)
{
    const bz_operand *y = &t->operand[t->job.n_operands - 1];
    bool rnn = bz_problem_has(t->problem, BZ_TRAIT_RECURRENT);
    double affordable = rnn ? 256 : 1e6 / bz_reference_cost(t->problem);
    int64_t n = affordable < 16 ? 16 : affordable > 4096 ? 4096 : (int64_t)affordable;
    uint64_t random = 88172645463325252U;
    n = n > y->count ? y->count : n;
    t->position = bz_alloc((size_t)n + 1, sizeof *t->position);
    t->expected = bz_alloc((size_t)n + 1, sizeof *t->expected);
    for (int64_t i = 0; i < n; i++) {
        random ^= random << 13; /* xorshift */
        random ^= random >> 7;
        random ^= random << 17;
        int64_t at = n == y->count ? i
                     : i == 0      ? 0
                     : i == n - 1  ? y->count - 1
                                   : (int64_t)(random % (uint64_t)y->count);
        if (rnn && n != y->count) { /* a row of the batch is computed as a whole: take the first and the last */
            int64_t width = y->dim[2], seq = at / (y->dim[1] * width), batch = i < n / 2 ? 0 : y->dim[1] - 1;
            at = (seq * y->dim[1] + batch) * width + at % width;
        }
        t->position[t->n_positions++] = at;
    }
    bz_reference r = bz_reference_of(t->problem, t->job.n_operands, t->operand, (const float *const *)t->value);
    for (int i = 0; i < t->n_positions; i++)
        t->expected[i] = bz_reference_at(&r, t->position[i]);
    bz_reference_free(&r);
}

/* Memory is asked for here, so that a limit is met by an error and not by a crash. */
static int set_up(trial *t, bz_error *err)
{
    const bz_run_options *o = t->task->options;
    t->problem = t->task->families[0].problem;
    int n = bz_problem_operands(t->problem, t->operand);
    double bytes = bz_problem_bytes(t->problem), cache = 2 * t->task->cache_bytes;
    double copies = o->setting.cold ? ceil(cache / bytes) + 1 : 1;
    t->job = (bz_job){
        .problem = t->problem,
        .setting = &o->setting,
        .n_operands = n,
        .operand = t->operand,
        .value = (const float *const *)t->value,
        .copies = copies > MAX_COPIES ? MAX_COPIES : (int)copies,
    };
    double floats = 0;
    for (int i = 0; i < n; i++)
        floats += (double)t->operand[i].count * sizeof(float);
    if (floats + bytes * t->job.copies > o->memory_limit)
        return bz_fail(err, BZ_FAILED, "out of memory: the operands take %.3g GB, the limit is %.3g GB",
                       (floats + bytes * t->job.copies) / 1e9, o->memory_limit / 1e9);
    for (int i = 0; i < n - 1; i++) {
        t->value[i] = malloc((size_t)t->operand[i].count * sizeof(float) + 64);
        if (!t->value[i])
            return bz_fail(err, BZ_FAILED, "out of memory for %.3g GB of operands", floats / 1e9);
        bz_values_fill(t->problem, &t->operand[i], i, t->value[i]);
    }
    if (copies > MAX_COPIES) {
        t->evict_size = (size_t)cache;
        t->evict = malloc(t->evict_size);
        if (!t->evict)
            return bz_fail(err, BZ_FAILED, "out of memory for emptying the caches");
    }
    if (bz_reference_exists(t->problem))
        choose_positions(t);
    bz_counters_open(&t->counters);
    return 0;
}

static void emit_family(const trial *t, const bz_family *f, bz_status status, const char *reason)
{
    bz_outcome r = bz_outcome_of(t->problem, f->backend, "", f->layout, f->math);
    if (is_finished(t, f->backend, "", f->layout, f->math))
        return;
    r.status = status;
    snprintf(r.reason, sizeof r.reason, "%s", reason);
    emit(t, &r);
}

static int open_session(trial *t, const bz_family *f, session **out, bz_error *err)
{
    const bz_backend *backend = bz_backend_find(t->task->options->backends, f->backend, err);
    if (!backend)
        return -1;
    for (int i = 0; i < t->n_sessions; i++)
        if (t->sessions[i].backend == backend) {
            *out = &t->sessions[i];
            return 0;
        }
    if (t->n_sessions == MAX_SESSIONS)
        return bz_fail(err, BZ_FAILED, "more than %d backends for one problem", MAX_SESSIONS);
    *out = &t->sessions[t->n_sessions];
    (*out)->backend = backend;
    if (backend->open(&t->job, &(*out)->of, err))
        return -1;
    t->n_sessions++;
    return 0;
}

/* Families that are known are looked through all the same, since what a library has in one layout decides
 * about reference implementations in another; but not where that ended an earlier child. */
static bool crashed_before(const trial *t, const bz_family *f)
{
    for (int i = 0; i < t->task->n_finished; i++) {
        const bz_outcome *r = &t->task->finished[i];
        if (!*r->algorithm && !strcmp(r->backend, f->backend) && !strcmp(r->layout, f->layout) &&
            !strcmp(r->math, f->math))
            return true;
    }
    return false;
}

static void enumerate_family(trial *t, const bz_family *f)
{
    bz_error err = {0};
    session *s = NULL;
    if (crashed_before(t, f))
        return;
    blame(t, f->backend, "", f->layout, f->math, "looking for variants");
    int first = t->variants.n;
    if (open_session(t, f, &s, &err) || s->backend->enumerate(s->of, f->layout, f->math, &t->variants, &err)) {
        t->variants.n = first;
        emit_family(t, f, err.code == BZ_FAILED ? BZ_STATUS_FAILED : BZ_STATUS_UNSUPPORTED, err.text);
        return;
    }
    if (t->variants.n == first)
        emit_family(t, f, BZ_STATUS_UNSUPPORTED, "the library has no implementation");
    bz_variant_tell_apart(&t->variants, first);
}

/* Whether there is a variant that is no reference implementation; in v's family, or in any. */
static bool has_other(const trial *t, const bz_variant *v, bool in_family)
{
    for (int i = 0; i < t->variants.n; i++) {
        const bz_variant *w = &t->variants.item[i];
        bool same = w->backend == v->backend && !strcmp(w->layout, v->layout) && !strcmp(w->math, v->math);
        if (!w->reference && (!in_family || same))
            return true;
    }
    return false;
}

/* Reference implementations are left out where this library or another has something else for the problem. A family
 * that has nothing else says so. */
static void drop_references(trial *t)
{
    int kept = 0;
    bz_variant *item = t->variants.item;
    bool *skip = bz_alloc((size_t)t->variants.n + 1, sizeof *skip);
    for (int i = 0; i < t->variants.n; i++)
        skip[i] = item[i].reference && has_other(t, &item[i], false);
    for (int i = 0; i < t->variants.n; i++) {
        bz_family f = {t->problem, item[i].backend->name, item[i].layout, item[i].math};
        bool first = !i || strcmp(item[i - 1].layout, f.layout) != 0 || strcmp(item[i - 1].math, f.math) != 0 ||
                     item[i - 1].backend != item[i].backend;
        if (skip[i] && first && !has_other(t, &item[i], true)) {
            char reason[300];
            snprintf(reason, sizeof reason, "only the reference implementation (%s)", item[i].algorithm);
            emit_family(t, &f, BZ_STATUS_UNSUPPORTED, reason);
        }
    }
    for (int i = 0; i < t->variants.n; i++)
        if (!skip[i])
            item[kept++] = item[i];
    t->variants.n = kept;
    free(skip);
}

/* ---- checking ------------------------------------------------------------------------------- */

/* What a dropout dropped is right as 0, so how much that is has to be looked at, too. */
static bool is_dropped_by_chance(const trial *t, const float *y, char *out, size_t size)
{
    int64_t dropped = 0, n = t->operand[t->job.n_operands - 1].count;
    if (t->problem->kind != BZ_PROBLEM_DROPOUT)
        return true;
    for (int64_t i = 0; i < n; i++)
        dropped += y[i] == 0;
    if (bz_is_chance(dropped, n))
        return true;
    snprintf(out, size, "%lld of %lld elements are dropped, not about half of them", (long long)dropped, (long long)n);
    return false;
}

/* Compares the result of the first call with what it must be. Writes "ok" or a sentence. */
static void check(const trial *t, const bz_variant *v, const float *y, char *out, size_t size)
{
    const bz_operand *result = &t->operand[t->job.n_operands - 1];
    int wrong = 0;
    double worst = 0;
    bool floats = bz_dtype_is_float(result->dtype);
    for (int64_t i = 0; floats && i < result->count; i++)
        if (y[i] != y[i]) {
            snprintf(out, size, "element %lld of the result was not written, or is not a number", (long long)i);
            return;
        }
    int at = 0;
    for (int i = 0; i < t->n_positions; i++) {
        bz_expected e = t->expected[i];
        double off = bz_off(t->problem, e, (double)y[t->position[i]], v->math);
        if (off > worst || off != off) {
            worst = off != off ? INFINITY : off;
            at = i;
        }
        wrong += !(off <= 1);
    }
    if (!wrong) {
        if (is_dropped_by_chance(t, y, out, size))
            snprintf(out, size, "ok");
        return;
    }
    snprintf(out, size, "%d of %d elements are wrong: element %lld is %g, not %g", wrong, t->n_positions,
             (long long)t->position[at], (double)y[t->position[at]], t->expected[at].value);
}

/* Prepares a variant, runs it once, checks. Returns -1 where that ends its life; its record says why. */
static int try_variant(trial *t, runner *r)
{
    bz_variant *v = r->variant;
    bz_error err = {0};
    const bz_operand *y = &t->operand[t->job.n_operands - 1];
    r->record.status = BZ_STATUS_FAILED;
    blame_variant(t, v, "preparing");
    if (v->backend->prepare(v, &err)) {
        r->record.status = err.code == BZ_INCOMPLETE ? BZ_STATUS_UNSUPPORTED : BZ_STATUS_FAILED;
        snprintf(r->record.reason, sizeof r->record.reason, "%s", err.text);
        return -1;
    }
    r->record.workspace = v->workspace;
    blame_variant(t, v, "running");
    if (v->backend->poison(v) || v->backend->execute(v, 0) || (v->backend->wait && v->backend->wait(v))) {
        snprintf(r->record.reason, sizeof r->record.reason, "the library refused to run it");
        return -1;
    }
    if (t->n_positions) {
        float *values = malloc((size_t)y->count * sizeof *values + 64);
        blame_variant(t, v, "checking");
        if (!values || v->backend->read(v, values, &err)) {
            snprintf(r->record.reason, sizeof r->record.reason, "the result cannot be read: %s",
                     values ? err.text : "out of memory");
            free(values);
            return -1;
        }
        check(t, v, values, r->record.checked, sizeof r->record.checked);
        free(values);
        if (strcmp(r->record.checked, "ok") != 0) {
            snprintf(r->record.reason, sizeof r->record.reason, "wrong result: %s", r->record.checked);
            return -1;
        }
    }
    r->record.status = BZ_STATUS_OK;
    return 0;
}

/* ---- measuring ------------------------------------------------------------------------------ */

/* Fills the caches with something else. */
static void evict(trial *t)
{
    for (size_t i = 0; i < t->evict_size; i += 64)
        t->evict[i]++;
}

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
    *lost += fmax(seconds - (processor_time() - used), 0);
    return seconds;
}

/* The body of the benchmark: n calls. Hot: one more before, since another variant ran in between. */
static double run_calls(void *context, int64_t n)
{
    runner *r = context;
    trial *t = r->trial;
    bz_variant *v = r->variant;
    int copies = t->job.copies;
    double total = 0;
    r->lost = 0;
    t->task->blame->beat = bz_now();
    if (copies == 1 && (r->n == 0 || r->sample[r->n - 1] < LONG_CALL) && v->backend->execute(v, 0))
        return -1;
    while (n) {
        int64_t some = t->evict && n > copies ? copies : n;
        if (t->evict)
            evict(t);
        double seconds;
        if (v->backend->measure && !t->task->options->wall) {
            if (v->backend->measure(v, some, r->next_copy, &seconds))
                return -1;
            r->next_copy = (int)((r->next_copy + some) % copies);
        } else {
            seconds = wall(v, some, &r->next_copy, copies, &r->lost);
        }
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
    bool own_clock = o->setting.threads <= 1 && !r->variant->backend->device;
    return own_clock ? r->lost > LOST * seconds * (double)r->iterations : count_interruptions() > interruptions;
}

/* Lets others have the processor for a moment: who slept gets a whole slice of time when it wakes. */
static void give_way(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* On a busy machine samples in which somebody else ran are taken again; but where it never is quiet, as with
 * calls that take long, about every other one is kept, as long as its thread had a processor. A first sample was also to
 * tell how many calls make one: a scheduler's slice of 8 ms looks like a call of 8 ms, so that it is taken anew. */
static int take_sample(runner *r)
{
    trial *t = r->trial;
    blame_variant(t, r->variant, "measuring");
    double start = bz_now(), sample_time = t->task->options->sample_time;
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
            give_way();
            return r->n ? 0 : take_sample(r);
        }
        seconds -= r->lost / (double)r->iterations;
        r->record.interrupted++;
    }
    r->record.iterations += r->iterations;
    if (!r->n && (double)r->iterations * seconds < sample_time / 2)
        r->iterations = (int64_t)ceil(sample_time / seconds);
    if (r->variant->backend->clock)
        r->record.throttled |= r->variant->backend->clock(r->variant->session, &r->probe[r->n]);
    r->sample[r->n++] = seconds;
    return 0;
}

/* At most every 50 ms: what it says holds for so long. */
static double take_yardstick(trial *t)
{
    if (bz_now() - t->measured_at > 0.05) {
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
    return o->busy || fmax(y[0], y[1]) > BZ_SLOW_PHASE * best || 4 * r->record.interrupted > r->n;
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

static bool wants_profiler(const trial *t, const runner *r)
{
    const bz_run_options *o = t->task->options;
    const bz_backend *b = r->variant->backend;
    return r->variant->state && (r->record.status == BZ_STATUS_OK || r->record.status == BZ_STATUS_DROPPED) &&
           ((o->trace && b->trace) || (o->counters && b->count));
}

static void ask_profiler(const trial *t, runner *r)
{
    const bz_run_options *o = t->task->options;
    const bz_backend *b = r->variant->backend;
    bz_error err = {0};
    if (o->trace && b->trace) {
        blame_variant(t, r->variant, "tracing");
        if (b->trace(r->variant, &r->record.trace, &err))
            snprintf(r->record.trace.reason, sizeof r->record.trace.reason, "%s", err.text);
    }
    if (o->counters && b->count) {
        blame_variant(t, r->variant, "counting");
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
    trial *t = r->trial;
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
            bz_counters_start(&t->counters);
            run_calls(r, r->iterations);
            bz_counters_stop(&t->counters, (double)(r->iterations + (t->job.copies == 1)), r->record.counter);
        }
    }
    r->record.date = time(NULL);
    r->finished = true;
    r->traced = r->record.more = wants_profiler(t, r);
    emit(t, &r->record);
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
        emit(r->trial, &r->record);
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

/* Whether r is slower than it is worth going on for. Somebody else on the machine can stretch one sample to
 * several times its length: who is not far off gets a second one. */
static bool is_hopeless(runner *r, double best)
{
    if (fastest(r) > HOPELESS * best && fastest(r) < FAR_OFF * best && fastest(r) < 10 * LONG_CALL && take_sample(r))
        return false; /* it failed, and is finished by its record's status */
    return fastest(r) > HOPELESS * best;
}

/* The first round: Google Benchmark finds how many iterations a sample takes; who is hopeless leaves. */
static void first_round(runner *runners, int n)
{
    double best = INFINITY;
    for (int i = 0; i < n; i++)
        if (take_sample(&runners[i]))
            finish(&runners[i]);
        else if (runners[i].sample[0] < best)
            best = runners[i].sample[0];
    for (int i = 0; i < n; i++) {
        runner *r = &runners[i];
        if (r->finished)
            continue;
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

static void run_variants(trial *t)
{
    int n = 0;
    runner *runners = bz_alloc((size_t)t->variants.n + 1, sizeof *runners);
    for (int i = 0; i < t->variants.n; i++) {
        bz_variant *v = &t->variants.item[i];
        if (is_finished(t, v->backend->name, v->algorithm, v->layout, v->math))
            continue;
        runner *r = &runners[n];
        *r = (runner){.trial = t, .variant = v, .throttles = bz_throttle_count()};
        r->record = bz_outcome_of(t->problem, v->backend->name, v->algorithm, v->layout, v->math);
        r->record.chosen = v->chosen;
        r->record.chosen_training = v->chosen_training;
        r->record.variants = count_family(t, v);
        snprintf(r->record.timing, sizeof r->record.timing, "%s", v->backend->timing);
        if (t->task->options->wall)
            snprintf(r->record.timing, sizeof r->record.timing, "wall");
        if (try_variant(t, r) || t->task->options->check_only) {
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
    free(runners);
}

void bz_measure(const bz_measure_task *task)
{
    trial *t = bz_alloc(1, sizeof *t);
    *t = (trial){.task = task};
    bz_error err = {0};
    blame(t, "", "", "", "", "setting up");
    if (set_up(t, &err)) {
        for (int i = 0; i < task->n; i++)
            if (!is_finished(t, task->families[i].backend, "", task->families[i].layout, task->families[i].math))
                emit_family(t, &task->families[i], BZ_STATUS_FAILED, err.text);
    } else {
        for (int i = 0; i < task->n; i++)
            enumerate_family(t, &task->families[i]);
        drop_references(t);
        run_variants(t);
        for (int i = 0; i < t->n_sessions; i++)
            t->sessions[i].backend->close(t->sessions[i].of);
        bz_counters_close(&t->counters);
    }
    for (int i = 0; i < BZ_PROBLEM_OPERANDS; i++)
        free(t->value[i]);
    free(t->position);
    free(t->expected);
    free(t->variants.item);
    free(t->evict);
    free(t);
}
