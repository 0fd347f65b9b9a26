/* The smallest backend there can be, as a loadable module: ReLU of floats, by a clock of its own. And dropouts, of which only that
 * of 256 elements is one: of more it drops all, of fewer nothing. */
#include "runtime/backend.h"

#include <math.h>
#include <string.h>
#include <time.h>

extern const bz_backend bz_backend_module;

static const bz_job *job;
static float result[4096];

static int hello_open(const bz_job *j, void **session, bz_error *err)
{
    const bz_problem *p = j->problem;
    bool relu = p->kind == BZ_PROBLEM_ACTIVATION && p->activation.fn == BZ_FN_RELU;
    if ((!relu && p->kind != BZ_PROBLEM_DROPOUT) || p->dtype != BZ_F32 || j->operand[0].count > 4096)
        return bz_fail(err, BZ_INCOMPLETE, "ReLU of up to 4096 floats is all there is");
    job = j;
    *session = result;
    return 0;
}

static int hello_enumerate(void *session, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    (void)why;
    bz_variant *v = bz_variant_add(list, &bz_backend_module, session, layout, math);
    memcpy(v->algorithm, "loop", sizeof "loop");
    return 0;
}

static int hello_prepare(bz_variant *v, bz_error *err)
{
    (void)err;
    v->state = result;
    return 0;
}

static float hello_value(int64_t i)
{
    float x = job->value[0][i];
    int64_t n = job->operand[0].count;
    if (job->problem->kind == BZ_PROBLEM_DROPOUT)
        return n > 256 || (n == 256 && i % 2) ? 0 : 2 * x;
    return x > 0 ? x : 0;
}

static int hello_execute(bz_variant *v, int copy)
{
    (void)v;
    (void)copy;
    for (int64_t i = 0; i < job->operand[0].count; i++)
        result[i] = hello_value(i);
    return 0;
}

static int hello_measure(bz_variant *v, int64_t n, int first_copy, double *seconds)
{
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (int64_t i = 0; i < n; i++)
        hello_execute(v, first_copy);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    *seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    return 0;
}

/* A profiler that saw two kernels; of one element it may see none. */
static int hello_trace(bz_variant *v, bz_trace *out, bz_error *err)
{
    (void)v;
    if (job->operand[0].count == 1)
        return bz_fail(err, BZ_FAILED, "nobody may look");
    *out = (bz_trace){.calls = 10, .n_kernels = 2, .seconds = 3e-6};
    out->kernel[0] = (bz_kernel){"first", 1e-6, {1, 2, 3}, {128, 1, 1}, 40, 2048};
    out->kernel[1] = (bz_kernel){"second \"<int>\"", 2e-6, {4, 1, 1}, {32, 1, 1}, 16, 0};
    return 0;
}

/* Counts whatever is asked for: how long its list is. */
static int hello_count(bz_variant *v, const char *list, bz_counted *out, bz_error *err)
{
    (void)v;
    if (job->operand[0].count == 1)
        return bz_fail(err, BZ_FAILED, "nobody may count");
    *out =
        (bz_counted){.calls = 3, .passes = 2, .n = 2, .item = {{"dram_read", (double)strlen(list)}, {"a__b.sum", NAN}}};
    return 0;
}

static int hello_poison(bz_variant *v)
{
    (void)v;
    memset(result, 0xff, sizeof result);
    return 0;
}

static int hello_read(bz_variant *v, float *values, bz_error *err)
{
    (void)v;
    (void)err;
    memcpy(values, result, (size_t)job->operand[0].count * sizeof *values);
    return 0;
}

static void hello_release(bz_variant *v)
{
    v->state = NULL;
}

static void hello_close(void *session)
{
    (void)session;
}

const bz_backend bz_backend_module = {
    .name = "hello",
    .timing = "device",
    .open = hello_open,
    .enumerate = hello_enumerate,
    .prepare = hello_prepare,
    .execute = hello_execute,
    .measure = hello_measure,
    .trace = hello_trace,
    .count = hello_count,
    .poison = hello_poison,
    .read = hello_read,
    .release = hello_release,
    .close = hello_close,
};
