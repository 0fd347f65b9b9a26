/* A stand-in for a GPU with its libraries: a loadable backend that has every problem computed by the reference and a
 * clock of its own making: 1 GB/s, 1 Gflop/s, 5 µs for a call. It drives scripts/gpu-check where there is no GPU. Compiled as
 * often as there are backends: STANDIN_BACKEND is the name.
 *
 * $BENANZA_STANDIN makes it lie: `wrong` results of softmax; `clock` where each session has a clock of another speed; `crash` in a
 * pooling; `kernels` that take less than the device's time; `secret`: nobody may look at kernels; `none`: there is no device. */
#include "runtime/backend.h"
#include "runtime/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern const bz_backend bz_backend_module;

typedef struct session {
    const bz_job *job;
    float *result;
    double seconds; /* of a call */
    double busy;    /* until then by the wall clock */
} session;

static bool lies(const char *how)
{
    const char *told = getenv("BENANZA_STANDIN");
    return told && !strcmp(told, how);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void version(bz_buf *out)
{
    bz_buf_puts(out, STANDIN_BACKEND "0");
}

static int device(bz_device *out, bz_error *err)
{
    if (lies("none"))
        return bz_fail(err, BZ_FAILED, "no GPU can be used: this is a stand-in that has none");
    *out = (bz_device){.slug = "stand-in",
                       .stack = "reference0",
                       .name = "Stand-in",
                       .major = 1,
                       .multiprocessors = 1,
                       .memory = 1 << 30,
                       .bandwidth = 1e9,
                       .copied = 0.9e9,
                       .event_pair = 1e-6};
    return 0;
}

static int open_job(const bz_job *job, void **out, bz_error *err)
{
    const bz_problem *p = job->problem;
    if (p->kind == BZ_PROBLEM_LRN && p->dtype == BZ_F16)
        return bz_fail(err, BZ_INCOMPLETE, "the stand-in normalizes no f16 over channels");
    session *s = malloc(sizeof *s);
    if (!s)
        return bz_fail(err, BZ_FAILED, "no memory");
    *s = (session){.job = job, .seconds = 5e-6 + 1e-9 * (bz_problem_bytes(p) + bz_problem_flops(p))};
    if (lies("clock"))
        s->seconds *= 1 + (double)(getpid() % 7);
    *out = s;
    return 0;
}

static int enumerate(void *of, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    (void)why;
    bz_variant *v = bz_variant_add(list, &bz_backend_module, of, layout, math);
    snprintf(v->algorithm, sizeof v->algorithm, "reference");
    v->chosen = true;
    return 0;
}

static int prepare(bz_variant *v, bz_error *err)
{
    (void)err;
    session *s = v->session;
    v->state = s;
    if (lies("crash") && s->job->problem->kind == BZ_PROBLEM_POOL)
        abort();
    return 0;
}

/* The results are there when they are read: what is timed is the made-up clock. */
static int execute(bz_variant *v, int copy)
{
    (void)copy;
    session *s = v->session;
    double begin = now();
    s->busy = (s->busy > begin ? s->busy : begin) + s->seconds;
    return 0;
}

static int wait_for(bz_variant *v)
{
    const session *s = v->session;
    while (now() < s->busy)
        ;
    return 0;
}

static int measure(bz_variant *v, int64_t n, int first_copy, double *seconds)
{
    (void)first_copy;
    const session *s = v->session;
    *seconds = (double)n * s->seconds;
    return 0;
}

static int trace(bz_variant *v, bz_trace *out, bz_error *err)
{
    const session *s = v->session;
    if (lies("secret"))
        return bz_fail(err, BZ_FAILED, "the stand-in lets nobody look at kernels");
    *out = (bz_trace){.calls = 10, .n_kernels = 1, .seconds = s->seconds * (lies("kernels") ? 0.9 : 1)};
    out->kernel[0] = (bz_kernel){"reference", out->seconds, {1, 1, 1}, {32, 1, 1}, 16, 0};
    return 0;
}

static int poison(bz_variant *v)
{
    (void)v;
    return 0;
}

static int read_result(bz_variant *v, float *values, bz_error *err)
{
    (void)err;
    const bz_job *job = ((session *)v->session)->job;
    const bz_operand *y = &job->operand[job->n_operands - 1];
    bool wrong = lies("wrong") && job->problem->kind == BZ_PROBLEM_SOFTMAX;
    if (!bz_reference_exists(job->problem))
        return 0;
    bz_reference r = bz_reference_of(job->problem, job->n_operands, job->operand, job->value);
    for (int64_t i = 0; i < y->count; i++)
        values[i] = bz_round_to(y->dtype, bz_reference_at(&r, i).value + (wrong ? 1 : 0));
    for (int64_t i = 0; i < y->count && job->problem->kind == BZ_PROBLEM_DROPOUT; i += 2)
        values[i] = 0; /* as chance does */
    bz_reference_free(&r);
    return 0;
}

static void release(bz_variant *v)
{
    v->state = NULL;
}

static void close_job(void *of)
{
    free(of);
}

const bz_backend bz_backend_module = {
    .name = STANDIN_BACKEND,
    .timing = "device",
    .smallest = "gemm m=1 n=1 k=1 dtype=f32",
    .version = version,
    .device = device,
    .open = open_job,
    .enumerate = enumerate,
    .prepare = prepare,
    .execute = execute,
    .wait = wait_for,
    .measure = measure,
    .trace = trace,
    .poison = poison,
    .read = read_result,
    .release = release,
    .close = close_job,
};
