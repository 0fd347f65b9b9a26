/* A stand-in for a GPU with its libraries: a loadable backend that has every problem computed by the reference and a
 * clock of its own making: 1 GB/s, 1 Gflop/s, 5 µs for a call. It drives scripts/gpu-check where there is no GPU, and
 * replays, whose calls it computes where and when they come (device_replay.c). Compiled as often as there are backends:
 * STANDIN_BACKEND is the name.
 *
 * $BENANZA_STANDIN makes it lie: `wrong` results of softmax, in replays of all calls; `order`: streams do not wait for each
 * other; `graph`: a graph leaves its last call out; `clock` where each session has a clock of another speed; `crash` in a
 * pooling; `kernels` that take less than the device's time; `after`: calls take longer once the profiler has looked; `secret`: nobody may look at kernels; `none`: there is no
 * device. $CUDA_VISIBLE_DEVICES says which of two it is. */
#include "runtime/values.h"
#include "tests/standin/device_replay.h"

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
    bool nhwc;
    void *at[BZ_PROBLEM_OPERANDS]; /* of a replay's operands */
    const bz_operand *format[BZ_PROBLEM_OPERANDS];
} session;

static bool looked; /* the profiler, in this process */

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
    if (standin_lies("half") && strcmp(STANDIN_BACKEND, "cudart") != 0)
        return bz_fail(err, BZ_FAILED, "its library does not load");
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int first = visible ? atoi(visible) : 0;
    if (standin_lies("none") || first > 1)
        return bz_fail(err, BZ_FAILED, "no GPU can be used: this is a stand-in that has %s",
                       standin_lies("none") ? "none" : "two");
    *out = (bz_device){.slug = "stand-in",
                       .stack = "reference0",
                       .name = "Stand-in",
                       .major = 1,
                       .multiprocessors = 1,
                       .memory = 1 << 30,
                       .bandwidth = 1e9,
                       .copied = 0.9e9,
                       .kernel_gap = 1e-6,
                       .event_pair = 1e-6};
    if (first) {
        snprintf(out->slug, sizeof out->slug, "second-stand-in");
        snprintf(out->name, sizeof out->name, "Second Stand-in");
    }
    return 0;
}

static int open_job(const bz_job *job, void **out, bz_error *err)
{
    const bz_problem *p = job->problem;
    if (p->kind == BZ_PROBLEM_LRN && p->dtype == BZ_F16)
        return bz_fail(err, BZ_INCOMPLETE, "the stand-in normalizes no f16 over channels");
    static int sessions;
    session *s = malloc(sizeof *s);
    if (!s)
        return bz_fail(err, BZ_FAILED, "no memory");
    *s = (session){.job = job, .seconds = 5e-6 + 1e-9 * (bz_problem_bytes(p) + bz_problem_flops(p))};
    if (standin_lies("clock"))
        s->seconds *= 1 + (double)(sessions++ % 7);
    if (standin_lies("after") && looked)
        s->seconds *= 1.2;
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
    s->nhwc = !strcmp(v->layout, "nhwc");
    if (standin_lies("crash") && s->job->problem->kind == BZ_PROBLEM_POOL)
        abort();
    while (standin_lies("hangs"))
        pause();
    return 0;
}

/* Where element i, counted row by row, lies channels last. */
static int64_t place_of(const bz_operand *o, int64_t i)
{
    int64_t inner = 1;
    for (int d = 2; d < o->rank; d++)
        inner *= o->dim[d];
    int64_t n = i / (o->dim[1] * inner), channel = i / inner % o->dim[1];
    return (n * inner + i % inner) * o->dim[1] + channel;
}

/* Elements to and from row-major order; `laid_as` is NULL where they lie so. */
static void move(const bz_operand *laid_as, bz_dtype dtype, int64_t count, char *plain, char *laid, bool back)
{
    size_t size = (size_t)bz_dtype_bits(dtype) / 8;
    for (int64_t i = 0; i < count; i++) {
        char *a = plain + (size_t)i * size, *b = laid + (size_t)(laid_as ? place_of(laid_as, i) : i) * size;
        memcpy(back ? a : b, back ? b : a, size);
    }
}

static float *read_operand(const session *s, int i)
{
    const bz_operand *o = &s->job->operand[i];
    char *plain = malloc((size_t)o->count * 8 + 64);
    float *out = malloc((size_t)o->count * sizeof *out + 64);
    move(s->format[i], o->dtype, o->count, plain, s->at[i], true);
    bz_values_decode(o->dtype, plain, out, o->count);
    free(plain);
    return out;
}

/* What the call computes, now: operands as they lie at this moment. */
static void run_now(void *context, void *to, void *from, size_t size)
{
    const session *s = context;
    const bz_job *job = s->job;
    const float *value[BZ_PROBLEM_OPERANDS] = {NULL};
    float *read[BZ_PROBLEM_OPERANDS] = {NULL};
    int n = job->n_operands - 1;
    const bz_operand *o = &job->operand[n];
    (void)to, (void)from, (void)size;
    for (int i = 0; i < n; i++)
        value[i] = job->value[i] ? job->value[i] : (read[i] = read_operand(s, i));
    bz_reference r = bz_reference_of(job->problem, job->n_operands, job->operand, value);
    r.epsilon = job->epsilon;
    float *y = malloc((size_t)o->count * sizeof *y + 64);
    char *plain = malloc((size_t)o->count * 8 + 64);
    for (int64_t i = 0; i < o->count; i++)
        y[i] = bz_round_to(o->dtype, bz_reference_at(&r, i).value + (standin_lies("wrong") ? 1 : 0));
    bz_values_encode(o->dtype, y, plain, o->count);
    move(s->format[n], o->dtype, o->count, plain, s->at[n], false);
    bz_reference_free(&r);
    free(plain);
    free(y);
    for (int i = 0; i < n; i++)
        free(read[i]);
}

static int wants(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err)
{
    session *s = v->session;
    const bz_operand *o = &s->job->operand[operand];
    bool laid = s->nhwc && o->rank >= 3 && o->rank <= 5;
    (void)err;
    s->format[operand] = laid ? o : NULL;
    *out = (bz_place_wanted){(size_t)o->count * (size_t)bz_dtype_bits(o->dtype) / 8, s->format[operand]};
    return 0;
}

static int bind(bz_variant *v, int operand, void *at)
{
    session *s = v->session;
    if (operand >= 0)
        s->at[operand] = at;
    return 0;
}

static int residual(const bz_variant *v)
{
    (void)v;
    return -1;
}

static bool same_dims(const void *format, const void *other)
{
    const bz_operand *a = format, *b = other;
    return a == b || (a && b && a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim));
}

struct bz_converter {
    const bz_operand *from, *to;
    standin_stream *stream;
};

static int converter(const void *from, const void *to, void *stream, bz_converter **out, bz_error *err)
{
    if (from && to)
        return bz_fail(err, BZ_INCOMPLETE, "the stand-in converts to row-major order and back");
    *out = malloc(sizeof **out);
    **out = (bz_converter){from, to, stream};
    return 0;
}

static void convert_now(void *context, void *to, void *from, size_t size)
{
    const bz_converter *c = context;
    const bz_operand *o = c->from ? c->from : c->to;
    (void)size;
    move(o, o->dtype, o->count, c->from ? to : from, c->from ? from : to, c->from != NULL);
}

static int convert(bz_converter *c, void *from, void *to)
{
    standin_queue(c->stream, convert_now, c, to, from, 0, 1e-6);
    return 0;
}

static void converter_free(bz_converter *c)
{
    free(c);
}

/* The results are there when they are read: what is timed is the made-up clock. */
static int execute(bz_variant *v, int copy)
{
    (void)copy;
    session *s = v->session;
    if (s->job->stream) {
        standin_queue(s->job->stream, run_now, s, NULL, NULL, 0, s->seconds);
        return 0;
    }
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
    if (standin_lies("secret"))
        return bz_fail(err, BZ_FAILED, "the stand-in lets nobody look at kernels");
    if (standin_lies("dies"))
        abort();
    double kernel = s->seconds - 1e-6; /* the pause behind it */
    looked = true;
    *out = (bz_trace){.calls = 10, .n_kernels = 1, .seconds = kernel * (standin_lies("kernels") ? 0.9 : 1)};
    out->kernel[0] = (bz_kernel){"reference", out->seconds, {1, 1, 1}, {32, 1, 1}, 16, 0};
    return 0;
}

static int poison(bz_variant *v)
{
    (void)v;
    return 0;
}

static int read_one(bz_variant *v, int operand, float *values, bz_error *err)
{
    (void)err;
    const bz_job *job = ((session *)v->session)->job;
    const bz_operand *y = &job->operand[operand];
    bool wrong = standin_lies("wrong") && job->problem->kind == BZ_PROBLEM_SOFTMAX;
    if (!bz_reference_exists(job->problem))
        return 0;
    bz_reference r = bz_reference_of(job->problem, job->n_operands, job->operand, job->value);
    r.result = operand;
    for (int64_t i = 0; i < y->count; i++)
        values[i] = bz_round_to(y->dtype, bz_reference_at(&r, i).value + (wrong ? 1 : 0));
    for (int64_t i = 0; i < y->count && job->problem->kind == BZ_PROBLEM_DROPOUT; i += 2)
        values[i] = 0; /* as chance does */
    bz_reference_free(&r);
    return 0;
}

static int read_result(bz_variant *v, float *values, bz_error *err)
{
    return read_one(v, ((session *)v->session)->job->n_operands - 1, values, err);
}

/* Computes no more than what is asked for. */
static int probe(bz_variant *v, const int64_t *element, int n, float *values, bz_error *err)
{
    (void)err;
    const bz_job *job = ((session *)v->session)->job;
    const bz_operand *y = &job->operand[job->n_operands - 1];
    bool wrong = standin_lies("wrong") && job->problem->kind == BZ_PROBLEM_SOFTMAX;
    if (!bz_reference_exists(job->problem))
        return 1;
    bz_reference r = bz_reference_of(job->problem, job->n_operands, job->operand, job->value);
    for (int i = 0; i < n; i++)
        values[i] = bz_round_to(y->dtype, bz_reference_at(&r, element[i]).value + (wrong ? 1 : 0));
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

/* Of a held clock $BENANZA_STANDIN_CLOCK, a file, has the MHz, else nothing. */
static int lock(double hz, bz_error *err)
{
    const char *path = getenv("BENANZA_STANDIN_CLOCK");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return bz_fail(err, BZ_FAILED, "holding a GPU's clock takes root's rights");
    if (hz > 0)
        fprintf(f, "%g", hz / 1e6);
    return fclose(f);
}

const bz_backend bz_backend_module = {
    .name = STANDIN_BACKEND,
    .timing = "device",
    .smallest = "gemm m=1 n=1 k=1 dtype=f32",
    .version = version,
    .device = device,
    .lock = lock,
    .open = open_job,
    .enumerate = enumerate,
    .prepare = prepare,
    .execute = execute,
    .wait = wait_for,
    .measure = measure,
    .trace = trace,
    .poison = poison,
    .read = read_result,
    .probe = probe,
    .read_operand = read_one,
    .release = release,
    .close = close_job,
    .wants = wants,
    .bind = bind,
    .residual = residual,
    .same = same_dims,
    .converter = converter,
    .convert = convert,
    .converter_free = converter_free,
    .ops = &standin_ops,
};
