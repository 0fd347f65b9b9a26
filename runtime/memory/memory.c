/* The memory backend: copies. It prices layers that only move bytes, by the fastest way to move as many:
 * the C library's memcpy, and stores that go around the caches. Problems of the kind `transfer` are transfer.c's. */
#include "runtime/memory/transfer.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

extern const bz_backend bz_backend_memory;

typedef struct session {
    bz_plain plain;
} session;

typedef void copy_function(char *to, const char *from, size_t n);

static void copy_cached(char *to, const char *from, size_t n)
{
    memcpy(to, from, n);
}

/* The result does not push anything out of the caches, and its lines are not read first. Such stores want
 * aligned places; where parts of a result lie is up to the problem. */
static void copy_streaming(char *to, const char *from, size_t n)
{
#ifdef __SSE2__
    size_t i = (16 - (uintptr_t)to % 16) % 16;
    i = i < n ? i : n;
    memcpy(to, from, i);
    for (; i + 64 <= n; i += 64) {
        const __m128i *in = (const __m128i *)(const void *)(from + i);
        __m128i *out = (__m128i *)(void *)(to + i);
        __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1), c = _mm_loadu_si128(in + 2),
                d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();
    to += i;
    from += i;
    n -= i;
#endif
    memcpy(to, from, n);
}

enum { CACHED, STREAMING, N_VARIANTS };
static const char *const NAMES[N_VARIANTS] = {"memcpy", "streaming"};
static copy_function *const COPIES[N_VARIANTS] = {copy_cached, copy_streaming};

static void version(bz_buf *out)
{
    (void)out; /* no library of its own */
}

static int open_session(const bz_job *job, void **of, bz_error *err)
{
    const bz_problem *p = job->problem;
    bool outermost = true;
    if (p->kind != BZ_PROBLEM_COPY && p->kind != BZ_PROBLEM_CONCAT && p->kind != BZ_PROBLEM_TRANSFER)
        return bz_fail(err, BZ_INCOMPLETE, "memory copies bytes and computes nothing");
    if (p->kind == BZ_PROBLEM_CONCAT)
        for (int64_t i = 0; i < p->concat.axis; i++)
            outermost &= p->concat.y[i] == 1;
    if (!outermost)
        return bz_fail(err, BZ_INCOMPLETE, "the inputs do not lie one behind the other in the result");
    session *s = bz_alloc(1, sizeof *s);
    *s = (session){.plain = {.job = job}};
    *of = s;
    return 0;
}

static void close_session(void *of)
{
    session *s = of;
    bz_plain_free(&s->plain);
    free(s);
}

static bz_variant *add_variant(bz_variant_list *list, void *of, int index, const char *name, bool chosen)
{
    bz_variant *v = bz_variant_add(list, &bz_backend_memory, of, "plain", "default");
    v->index = index;
    v->chosen = chosen;
    snprintf(v->algorithm, sizeof v->algorithm, "%s", name);
    return v;
}

static int enumerate_transfers(void *of, bz_variant_list *list, bz_error *why)
{
    const bz_job *job = ((const session *)of)->plain.job;
    int before = list->n;
    for (int i = 0; transfer_rows[i].name; i++)
        if (transfer_rows[i].way == job->problem->transfer.way &&
            (transfer_rows[i].threads || job->setting->threads == 1))
            add_variant(list, of, i, transfer_rows[i].name, list->n == before)->waits = transfer_rows[i].waits;
    if (job->problem->transfer.way >= BZ_TRANSFER_TO_DEVICE)
        return bz_fail(why, BZ_INCOMPLETE, "this way of transfer is a GPU's: the backend cudart has it");
    return list->n > before ? 0 : bz_fail(why, BZ_INCOMPLETE, "this way of transfer is one thread's");
}

static int enumerate(void *of, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    if (strcmp(layout, "plain") != 0 || strcmp(math, "default") != 0)
        return bz_fail(why, BZ_INCOMPLETE, "bytes have no layout and no math mode");
    if (((session *)of)->plain.job->problem->kind == BZ_PROBLEM_TRANSFER)
        return enumerate_transfers(of, list, why);
    for (int i = 0; i < N_VARIANTS; i++)
        add_variant(list, of, i, NAMES[i], i == CACHED);
    return 0;
}

void memory_share(size_t n, int i, int threads, size_t *from, size_t *to)
{
    size_t lines = (n + 63) / 64, begin = lines * (size_t)i / (size_t)threads,
           end = lines * (size_t)(i + 1) / (size_t)threads;
    *from = begin * 64 < n ? begin * 64 : n;
    *to = end * 64 < n ? end * 64 : n;
}

static _Thread_local volatile uint64_t kept;

/* What a call copies: both ways where there are both, then what is left over of one. */
typedef struct move {
    copy_function *copy;
    char *to;
    const char *from;
    size_t n_read, n_write;
} move;

/* The part of it that thread i does. */
static void move_share(const move *m, int i, int threads)
{
    size_t both = m->n_read < m->n_write ? m->n_read : m->n_write, begin, end;
    memory_share(both, i, threads, &begin, &end);
    m->copy(m->to + begin, m->from + begin, end - begin);
    memory_share(m->n_read - both, i, threads, &begin, &end);
    if (end > begin)
        kept += memory_read(m->from + both + begin, end - begin);
    memory_share(m->n_write - both, i, threads, &begin, &end);
    if (end > begin)
        memset(m->to + both + begin, 1, end - begin);
}

/* Without a team where there is one thread: starting one costs more than a small copy. */
static void move_all(const move *m, int threads)
{
    if (threads == 1) {
        move_share(m, 0, 1);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static, 1)
#endif
    for (int i = 0; i < threads; i++)
        move_share(m, i, threads);
}

static int prepare(bz_variant *v, bz_error *err)
{
    const bz_plain *p = v->session;
    if (bz_plain_prepare(v, err))
        return -1;
    if (p->job->problem->kind != BZ_PROBLEM_TRANSFER)
        return 0;
    const transfer_row *row = &transfer_rows[v->index];
    transfer *t = bz_alloc(1, sizeof *t);
    *t = (transfer){.row = row, .plain = p, .threads = p->job->setting->threads};
    v->state = t;
    int rc = row->open ? row->open(t, err) : 0;
    v->workspace = t->packed; /* what it is packed into */
    return rc;
}

static void release(bz_variant *v)
{
    const session *s = v->session;
    if (s->plain.job->problem->kind == BZ_PROBLEM_TRANSFER && v->state) {
        transfer *t = v->state;
        if (t->row->close)
            t->row->close(t);
        free(t);
    }
    bz_plain_release(v);
}

static int execute(bz_variant *v, int copy)
{
    const session *s = v->session;
    const bz_plain *p = &s->plain;
    if (p->job->problem->kind == BZ_PROBLEM_TRANSFER)
        return transfer_rows[v->index].run(v->state, copy);
    int n = p->job->n_operands - 1, threads = p->job->setting->threads;
    char *to = bz_plain_at(p, n, copy);
    if (p->job->problem->kind == BZ_PROBLEM_COPY) {
        move_all(&(move){COPIES[v->index], to, bz_plain_at(p, 0, copy), p->size[0], p->size[1]}, threads);
        return 0;
    }
    for (int i = 0; i < n; to += p->size[i++])
        move_all(&(move){COPIES[v->index], to, bz_plain_at(p, i, copy), p->size[i], p->size[i]}, threads);
    return 0;
}

const bz_backend bz_backend_memory = {
    .name = "memory",
    .timing = "wall",
    .smallest = "copy read=1 write=1 dtype=u8",
    .version = version,
    .open = open_session,
    .enumerate = enumerate,
    .prepare = prepare,
    .execute = execute,
    .poison = bz_plain_poison,
    .read = bz_plain_read,
    .release = release,
    .close = close_session,
    .wants = bz_plain_wants,
    .bind = bz_plain_bind,
};
