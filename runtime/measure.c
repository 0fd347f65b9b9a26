/* Measuring one problem: enumerate, prepare, check, then interleaved rounds of samples. */
#include "runtime/constants.h"
#include "runtime/trial.h"

#include "base/arena.h"
#include "base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_COPIES = 4096 };

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
void bz_trial_emit(const bz_trial *t, const bz_outcome *r)
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

int bz_trial_family_size(const bz_trial *t, const bz_variant *v)
{
    int n = 0;
    for (int i = 0; i < t->variants.n; i++) {
        const bz_variant *w = &t->variants.item[i];
        n += w->backend == v->backend && !strcmp(w->layout, v->layout) && !strcmp(w->math, v->math);
    }
    return n;
}

static void blame(const bz_trial *t, const char *backend, const char *algorithm, const char *layout, const char *math,
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

void bz_trial_blame(const bz_trial *t, const bz_variant *v, const char *stage)
{
    blame(t, v->backend->name, v->algorithm, v->layout, v->math, stage);
    t->task->blame->variants = bz_trial_family_size(t, v);
}

bool bz_trial_finished(const bz_trial *t, const char *backend, const char *algorithm, const char *layout,
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

/* Elements to check: all of a small result; of a large one as many as cost about a millisecond, the
 * first and the last among them. */
static void choose_positions(const bz_trial *t, bz_reference *r, bz_trial_result *result)
{
    const bz_operand *y = &t->operand[result->operand];
    bool rnn = bz_problem_has(t->problem, BZ_TRAIT_RECURRENT);
    bool rows = rnn && y->rank == 3 && y->role != BZ_ROLE_BIAS; /* [, batch, ] */
    double affordable = rnn ? 256 : 1e6 / bz_reference_cost(t->problem);
    int64_t n = affordable < 16 ? 16 : affordable > 4096 ? 4096 : (int64_t)affordable;
    uint64_t random = 88172645463325252U;
    n = n > y->count ? y->count : n;
    result->position = bz_alloc((size_t)n + 1, sizeof *result->position);
    result->expected = bz_alloc((size_t)n + 1, sizeof *result->expected);
    for (int64_t i = 0; i < n; i++) {
        random ^= random << 13; /* xorshift */
        random ^= random >> 7;
        random ^= random << 17;
        int64_t at = n == y->count ? i
                     : i == 0      ? 0
                     : i == n - 1  ? y->count - 1
                                   : (int64_t)(random % (uint64_t)y->count);
        if (rows && n != y->count) { /* a row of the batch is computed as a whole: take the first and the last */
            int64_t width = y->dim[2], seq = at / (y->dim[1] * width), batch = i < n / 2 ? 0 : y->dim[1] - 1;
            at = (seq * y->dim[1] + batch) * width + at % width;
        }
        result->position[result->n++] = at;
    }
    r->result = result->operand;
    for (int i = 0; i < result->n; i++)
        result->expected[i] = bz_reference_at(r, result->position[i]);
}

/* Memory is asked for here, so that a limit is met by an error and not by a crash. */
static int set_up(bz_trial *t, bz_error *err)
{
    const bz_run_options *o = t->task->options;
    t->problem = t->task->families[0].problem;
    int n = bz_problem_operands(t->problem, t->operand);
    double bytes = 0, floats = 0; /* a look-up reads a few rows of its table, and has all of it */
    for (int i = 0; i < n; i++) {
        bytes += (double)t->operand[i].count * bz_dtype_bits(t->operand[i].dtype) / 8;
        floats += (double)t->operand[i].count * sizeof(float);
    }
    double copies = o->setting.cold ? fmin(fmax(ceil(COLD_COPIES / bytes), 2), MAX_COPIES) : 1;
    t->job = (bz_job){
        .problem = t->problem,
        .setting = &o->setting,
        .n_operands = n,
        .operand = t->operand,
        .value = (const float *const *)t->value,
        .copies = (int)copies,
    };
    if (floats + bytes * t->job.copies > o->memory_limit)
        return bz_fail(err, BZ_FAILED, "out of memory: the operands take %.3g GB, the limit is %.3g GB",
                       (floats + bytes * t->job.copies) / 1e9, o->memory_limit / 1e9);
    for (int i = 0; i < n; i++) {
        if (t->operand[i].result)
            continue;
        t->value[i] = bz_large((size_t)t->operand[i].count * sizeof(float) + 64);
        if (!t->value[i])
            return bz_fail(err, BZ_FAILED, "out of memory for %.3g GB of operands", floats / 1e9);
        bz_values_fill(t->problem, &t->operand[i], i, t->value[i]);
    }
    if (o->setting.cold && !bz_place_flush())
        return bz_fail(err, BZ_FAILED,
                       "this processor lets no program empty its caches: --cache cold cannot be measured");
    bz_reference r = bz_reference_of(t->problem, n, t->operand, (const float *const *)t->value);
    for (int i = 0; i < n && bz_reference_exists(t->problem); i++)
        if (t->operand[i].result && t->operand[i].role != BZ_ROLE_KEPT && t->n_results < BZ_TRIAL_RESULTS) {
            t->result[t->n_results].operand = i;
            choose_positions(t, &r, &t->result[t->n_results++]);
        }
    bz_reference_free(&r);
    bz_counters_open(&t->counters);
    return 0;
}

static void emit_family(const bz_trial *t, const bz_family *f, bz_status status, const char *reason)
{
    bz_outcome r = bz_outcome_of(t->problem, f->backend, "", f->layout, f->math);
    if (bz_trial_finished(t, f->backend, "", f->layout, f->math))
        return;
    r.status = status;
    snprintf(r.reason, sizeof r.reason, "%s", reason);
    bz_trial_emit(t, &r);
}

static int open_session(bz_trial *t, const bz_family *f, bz_trial_session **out, bz_error *err)
{
    const bz_backend *backend = bz_backend_find(t->task->options->backends, f->backend, err);
    if (!backend)
        return -1;
    for (int i = 0; i < t->n_sessions; i++)
        if (t->sessions[i].backend == backend) {
            *out = &t->sessions[i];
            return 0;
        }
    if (t->n_sessions == BZ_TRIAL_SESSIONS)
        return bz_fail(err, BZ_FAILED, "more than %d backends for one problem", BZ_TRIAL_SESSIONS);
    *out = &t->sessions[t->n_sessions];
    (*out)->backend = backend;
    if (backend->open(&t->job, &(*out)->of, err))
        return -1;
    t->n_sessions++;
    return 0;
}

/* Families that are known are looked through all the same, since what a library has in one layout decides
 * about reference implementations in another; but not where that ended an earlier child. */
static bool crashed_before(const bz_trial *t, const bz_family *f)
{
    for (int i = 0; i < t->task->n_finished; i++) {
        const bz_outcome *r = &t->task->finished[i];
        if (!*r->algorithm && !strcmp(r->backend, f->backend) && !strcmp(r->layout, f->layout) &&
            !strcmp(r->math, f->math))
            return true;
    }
    return false;
}

static int tells_results(const bz_trial *t, const bz_backend *backend, bz_error *why)
{
    if (t->n_results < 2 || backend->read_operand)
        return 0;
    return bz_fail(why, BZ_INCOMPLETE, "%s is not asked for problems with several results", backend->name);
}

static void enumerate_family(bz_trial *t, const bz_family *f)
{
    bz_error err = {0};
    bz_trial_session *s = NULL;
    if (crashed_before(t, f))
        return;
    blame(t, f->backend, "", f->layout, f->math, "looking for variants");
    int first = t->variants.n;
    if (open_session(t, f, &s, &err) || tells_results(t, s->backend, &err) ||
        s->backend->enumerate(s->of, f->layout, f->math, &t->variants, &err)) {
        t->variants.n = first;
        emit_family(t, f, err.code == BZ_FAILED ? BZ_STATUS_FAILED : BZ_STATUS_UNSUPPORTED, err.text);
        return;
    }
    if (t->variants.n == first)
        emit_family(t, f, BZ_STATUS_UNSUPPORTED, "the library has no implementation");
    bz_variant_tell_apart(&t->variants, first);
}

/* Whether there is a variant that is no reference implementation; in v's family, or in any. */
static bool has_other(const bz_trial *t, const bz_variant *v, bool in_family)
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
static void drop_references(bz_trial *t)
{
    int kept = 0;
    bz_variant *item = t->variants.item;
    BZ_FREED bool *skip = bz_alloc((size_t)t->variants.n + 1, sizeof *skip);
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
}

/* Where one variant is asked for, the others are not looked at. */
static void keep_wanted(bz_trial *t)
{
    const char *wanted = t->task->options->variant;
    int kept = 0;
    for (int i = 0; i < t->variants.n && *wanted; i++) {
        const bz_variant *v = &t->variants.item[i];
        if (strcmp(wanted, "-") ? !strcmp(wanted, v->algorithm) : v->chosen)
            t->variants.item[kept++] = *v;
    }
    if (*wanted)
        t->variants.n = kept;
}

/* What a dropout dropped is right as 0, so how much that is has to be looked at, too. */
static bool is_dropped_by_chance(const bz_trial *t, const float *y, char *out, size_t size)
{
    int64_t dropped = 0, n = t->operand[t->job.n_operands - 1].count;
    if (t->problem->kind != BZ_PROBLEM_DROPOUT)
        return true;
    for (int64_t i = 0; i < n; i++)
        dropped += y[i] == 0;
    if (bz_is_chance(dropped, n, (double)t->problem->dropout.ratio))
        return true;
    snprintf(out, size, "%lld of %lld elements are dropped, not about %.3g %% of them", (long long)dropped,
             (long long)n, 100 * (double)t->problem->dropout.ratio);
    return false;
}

/* Results beside the last one: parameters are of their own type, and indices are right or wrong. */
static double off(const bz_trial *t, const bz_operand *o, bz_expected e, double got, const char *math)
{
    if (o->role != BZ_ROLE_Y && !bz_dtype_is_float(o->dtype))
        return t->problem->kind == BZ_PROBLEM_DROPOUT ? !(got == 0 || got == 1) * 2.0 : 2 * fabs(got - e.value);
    return bz_off(t->problem, e, got, math);
}

static float *room_for_results(bz_trial *t)
{
    int64_t most = 0;
    for (int i = 0; i < t->n_results && !t->whole; i++)
        most = t->operand[t->result[i].operand].count > most ? t->operand[t->result[i].operand].count : most;
    t->whole = t->whole ? t->whole : bz_large((size_t)most * sizeof *t->whole + 64);
    return t->whole;
}

/* What the check needs of a result: the chosen elements; and all of them in *whole where the backend could not say that all
 * are numbers, or where it counts how many are dropped. */
static int fetch(bz_trial *t, const bz_trial_result *r, bz_variant *v, float *chosen, float **whole, bz_error *err)
{
    bool last = r->operand == t->job.n_operands - 1;
    bool probed = last && v->backend->probe && t->problem->kind != BZ_PROBLEM_DROPOUT;
    int result = probed ? v->backend->probe(v, r->position, r->n, chosen, err) : 1;
    if (result <= 0)
        return result;
    *whole = room_for_results(t);
    if (!*whole)
        return bz_fail(err, BZ_FAILED, "out of memory");
    if (last                       ? v->backend->read(v, *whole, err)
        : v->backend->read_operand ? v->backend->read_operand(v, r->operand, *whole, err)
                                   : bz_fail(err, BZ_FAILED, "it has several results"))
        return -1;
    for (int i = 0; i < r->n; i++)
        chosen[i] = (*whole)[r->position[i]];
    return 0;
}

/* The first element that is no number; -1. */
static int64_t find_unwritten(const bz_operand *o, const float *whole)
{
    for (int64_t i = 0; whole && bz_dtype_is_float(o->dtype) && i < o->count; i++)
        if (whole[i] != whole[i])
            return i;
    return -1;
}

/* Compares a result of the first call with what it must be. Writes "ok" or a sentence. `whole` may be NULL: then all of it are
 * numbers. */
static void check(const bz_trial *t, const bz_trial_result *r, const bz_variant *v, const float *chosen,
                  const float *whole, char *out, size_t size)
{
    const bz_operand *result = &t->operand[r->operand];
    int wrong = 0, at = 0;
    double worst = 0;
    bool last = result->role == BZ_ROLE_Y;
    const char *which = last ? "" : bz_role_name(result->role), *space = last ? "" : " ";
    int64_t unwritten = find_unwritten(result, whole);
    if (unwritten >= 0) {
        snprintf(out, size, "element %lld of the result%s%s was not written, or is not a number", (long long)unwritten,
                 space, which);
        return;
    }
    for (int i = 0; i < r->n; i++) {
        double far = off(t, result, r->expected[i], (double)chosen[i], v->math);
        if (far > worst || far != far) {
            worst = far != far ? INFINITY : far;
            at = i;
        }
        wrong += !(far <= 1);
    }
    if (wrong)
        snprintf(out, size, "%d of %d elements%s%s are wrong: element %lld is %g, not %g", wrong, r->n,
                 last ? "" : " of ", which, (long long)r->position[at], (double)chosen[at], r->expected[at].value);
    else if (!last || !whole || is_dropped_by_chance(t, whole, out, size))
        snprintf(out, size, "ok");
}

/* One result after the first call; -1 where it is wrong, and the record says why. */
static int check_result(bz_trial *t, bz_variant *v, const bz_trial_result *r, bz_outcome *record)
{
    bz_error err = {0};
    float *whole = NULL, *chosen = bz_alloc((size_t)r->n + 1, sizeof *chosen);
    int failed = fetch(t, r, v, chosen, &whole, &err);
    if (failed)
        snprintf(record->reason, sizeof record->reason, "the result cannot be read: %s", err.text);
    else
        check(t, r, v, chosen, whole, record->checked, sizeof record->checked);
    free(chosen);
    if (failed)
        return -1;
    if (!strcmp(record->checked, "ok"))
        return 0;
    snprintf(record->reason, sizeof record->reason, "wrong result: %s", record->checked);
    return -1;
}

int bz_trial_try(bz_trial *t, bz_variant *v, bz_outcome *record)
{
    bz_error err = {0};
    record->status = BZ_STATUS_FAILED;
    bz_trial_blame(t, v, "preparing");
    if (v->backend->prepare(v, &err)) {
        record->status = err.code == BZ_INCOMPLETE ? BZ_STATUS_UNSUPPORTED : BZ_STATUS_FAILED;
        snprintf(record->reason, sizeof record->reason, "%s", err.text);
        return -1;
    }
    record->workspace = v->workspace;
    bz_trial_blame(t, v, "running");
    if (v->backend->poison(v) || v->backend->execute(v, 0) || (v->backend->wait && v->backend->wait(v))) {
        snprintf(record->reason, sizeof record->reason, "the library refused to run it");
        return -1;
    }
    bz_trial_blame(t, v, "checking");
    for (int i = 0; i < t->n_results; i++)
        if (check_result(t, v, &t->result[i], record))
            return -1;
    record->status = BZ_STATUS_OK;
    return 0;
}

void bz_measure(const bz_measure_task *task)
{
    BZ_FREED bz_trial *t = bz_alloc(1, sizeof *t);
    *t = (bz_trial){.task = task};
    bz_error err = {0};
    blame(t, "", "", "", "", "setting up");
    if (set_up(t, &err)) {
        for (int i = 0; i < task->n; i++)
            if (!bz_trial_finished(t, task->families[i].backend, "", task->families[i].layout, task->families[i].math))
                emit_family(t, &task->families[i], BZ_STATUS_FAILED, err.text);
    } else {
        for (int i = 0; i < task->n; i++)
            enumerate_family(t, &task->families[i]);
        drop_references(t);
        keep_wanted(t);
        bz_trial_run(t);
        for (int i = 0; i < t->n_sessions; i++)
            t->sessions[i].backend->close(t->sessions[i].of);
        bz_counters_close(&t->counters);
    }
    for (int i = 0; i < BZ_PROBLEM_OPERANDS; i++)
        free(t->value[i]);
    free(t->whole);
    for (int i = 0; i < t->n_results; i++) {
        free(t->result[i].position);
        free(t->result[i].expected);
    }
    free(t->variants.item);
}
