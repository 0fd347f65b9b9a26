/* The backend `loops`: plain loops of our own, made vectors by the compiler, as variants of problems. A library's
 * implementation by the definition computes an index for each element; where a library has nothing better, what is possible
 * is what these take. */
#include "runtime/loops/loops.h"
#include "runtime/loops/kernels.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

extern const bz_backend bz_backend_loops;

extern const bz_kernels bz_kernels_base, bz_kernels_avx2, bz_kernels_avx512;

const bz_kernels *bz_kernels_best(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        return &bz_kernels_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &bz_kernels_avx2;
#endif
    return &bz_kernels_base;
}

enum { AT_ONCE = 4096 }; /* values that a kernel adds up in f32 */

static int64_t some_of(int64_t n, int64_t i)
{
    return n - i < AT_ONCE ? n - i : AT_ONCE;
}

double bz_kernels_sum(const bz_kernels *k, bz_fn fn, const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += AT_ONCE)
        sum += (double)k->reduce(fn, x + i, some_of(n, i));
    return sum;
}

double bz_kernels_squares(const bz_kernels *k, const float *x, float mean, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += AT_ONCE)
        sum += (double)k->deviation(x + i, mean, some_of(n, i));
    return sum;
}

double bz_kernels_exponentials(const bz_kernels *k, const float *x, float most, float *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += AT_ONCE)
        sum += (double)k->exp_minus(x + i, most, y ? y + i : NULL, some_of(n, i));
    return sum;
}

bool bz_kernels_take(bz_dtype t)
{
    return t == BZ_F32 || t == BZ_F16 || t == BZ_BF16 || t == BZ_U8 || t == BZ_I8 || t == BZ_BOOL;
}

enum { WORTH_A_TEAM = 16384 }; /* elements: starting threads takes as long as some thousand */

void bz_share_out(void (*share)(void *context, int64_t first, int64_t end, int thread), void *context, int64_t n,
                  int64_t work, int threads)
{
#ifdef _OPENMP
    threads = threads ? threads : omp_get_max_threads();
#endif
    if (threads <= 1 || work < WORTH_A_TEAM || n < 2) {
        share(context, 0, n, 0);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static)
#endif
    for (int t = 0; t < threads; t++)
        share(context, n / threads * t + n % threads * t / threads,
              n / threads * (t + 1) + n % threads * (t + 1) / threads, t);
}

static char *place_of(const bz_plain *p, int operand, int copy, int64_t at)
{
    return (char *)bz_plain_at(p, operand, copy) + at * bz_dtype_bits(p->job->operand[operand].dtype) / 8;
}

const float *bz_row_from(const bz_plain *p, int operand, int copy, int64_t at, int64_t n, float *room)
{
    bz_dtype t = p->job->operand[operand].dtype;
    const char *from = place_of(p, operand, copy, at);
    if (t == BZ_F32)
        return (const float *)(const void *)from;
    bz_kernels_best()->widen(t, from, room, n);
    return room;
}

float *bz_row_to(const bz_plain *p, int operand, int copy, int64_t at, float *room)
{
    bool wide = p->job->operand[operand].dtype == BZ_F32;
    return wide ? (float *)(void *)place_of(p, operand, copy, at) : room;
}

void bz_row_done(const bz_plain *p, int operand, int copy, int64_t at, int64_t n, const float *to)
{
    bz_dtype t = p->job->operand[operand].dtype;
    if (t != BZ_F32)
        bz_kernels_best()->narrow(t, to, place_of(p, operand, copy, at), n);
}

enum { BLOCK = 4096 };

typedef struct posts {
    const bz_plain *plain;
    const bz_kernels *kernels;
    int copy;
    int other[BZ_PROBLEM_POST]; /* operand of a post-operation that has one */
} posts;

bool bz_posts_known(const bz_problem *p)
{
    float nothing;
    for (int i = 0; p->post[i].fn; i++)
        if (p->post[i].fn == BZ_FN_BIAS ||
            (!bz_fn_is_binary(p->post[i].fn) && !bz_kernels_best()->unary(p->post[i].fn, 0, 0, &nothing, &nothing, 0)))
            return false;
    return !p->post[0].fn || (bz_kernels_take(p->dtype_y) && bz_dtype_is_float(p->dtype_y));
}

static void run_posts(void *of, int64_t first, int64_t end, int thread)
{
    const posts *s = of;
    const bz_job *job = s->plain->job;
    float a[BLOCK], b[BLOCK];
    int y = job->n_operands - 1;
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        int64_t at = i * BLOCK, n = job->operand[y].count - at < BLOCK ? job->operand[y].count - at : BLOCK;
        float *v = bz_row_to(s->plain, y, s->copy, at, a);
        bz_row_from(s->plain, y, s->copy, at, n, v);
        for (int k = 0; job->problem->post[k].fn; k++) {
            const bz_post *post = &job->problem->post[k];
            if (bz_fn_is_binary(post->fn))
                s->kernels->binary(post->fn, v, 1, bz_row_from(s->plain, s->other[k], s->copy, at, n, b), 1, v, n);
            else
                s->kernels->unary(post->fn, post->alpha, post->beta, v, v, n);
        }
        bz_row_done(s->plain, y, s->copy, at, n, v);
    }
}

/* Post-operations, over the whole result. */
static void run_all_posts(const bz_plain *plain, int copy)
{
    const bz_job *job = plain->job;
    posts s = {.plain = plain, .kernels = bz_kernels_best(), .copy = copy};
    int64_t n = job->operand[job->n_operands - 1].count;
    for (int i = 0; i < job->n_operands; i++)
        if (job->operand[i].role == BZ_ROLE_OTHER)
            s.other[job->operand[i].post] = i;
    bz_share_out(run_posts, &s, (n + BLOCK - 1) / BLOCK, n, job->setting->threads);
}

static int row_major(const int64_t *dim, int64_t *stride)
{
    int rank = bz_extent_rank(dim);
    int64_t step = 1;
    for (int i = rank; i-- > 0; step *= dim[i])
        stride[i] = step;
    return rank;
}

/* A loop over the shape, whose result lies as it is. */
static bz_replay_loop over(bz_loop_kind kind, const int64_t *dim)
{
    bz_replay_loop l = {.kind = kind, .rank = bz_extent_rank(dim)};
    memcpy(l.dim, dim, (size_t)l.rank * sizeof *dim);
    if (kind == BZ_LOOP_COPY)
        row_major(dim, l.stride[1]);
    return l;
}

/* Dimensions of 1 are gone through without a step. */
static void broadcast(const int64_t *dim, int64_t *stride)
{
    row_major(dim, stride);
    for (int i = 0; dim[i]; i++)
        stride[i] = dim[i] == 1 ? 0 : stride[i];
}

/* What a problem is as loops of walk.c: one, or a concat's one for each part. */
enum { LOOPS_MOST = BZ_PROBLEM_PARTS };
typedef struct problem_loop {
    bz_replay_loop loop;
    int operand[3], n; /* inputs by their number in the problem; the result is the problem's */
} problem_loop;

static int concat_loops(const bz_problem *p, problem_loop *list)
{
    int n = 0;
    int64_t at = 0;
    for (; p->concat.sizes[n]; n++) {
        bz_extent x;
        memcpy(x, p->concat.y, sizeof x);
        x[p->concat.axis] = p->concat.sizes[n];
        list[n] = (problem_loop){over(BZ_LOOP_COPY, x), {n}, 1};
        row_major(x, list[n].loop.stride[0]);
        row_major(p->concat.y, list[n].loop.stride[1]);
        list[n].loop.to = at * list[n].loop.stride[1][p->concat.axis];
        at += p->concat.sizes[n];
    }
    return n;
}

static void gather_loop(const bz_problem *p, bz_replay_loop *l)
{
    int64_t extent = p->gather.x[p->gather.axis], inner = 1;
    *l = (bz_replay_loop){.kind = BZ_LOOP_GATHER, .rank = 3, .dim = {1, p->gather.n, 1}, .length = 1};
    for (int i = 0; p->gather.x[i]; i++)
        *(i < p->gather.axis ? &l->dim[0] : &inner) *= i == p->gather.axis ? 1 : p->gather.x[i];
    l->dim[2] = inner;
    l->stride[0][0] = extent * inner, l->stride[0][2] = 1, l->stride[1][1] = 1;
    l->extent[0] = extent, l->step[0] = inner;
}

/* Fills `list` (room for LOOPS_MOST); returns how many, 0 where the problem is none. */
static int problem_loops(const bz_problem *p, problem_loop *list)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int64_t stride[BZ_PROBLEM_RANK];
    const int64_t *y = operand[bz_problem_operands(p, operand) - 1].dim;
    bz_replay_loop *l = &list[0].loop;
    *list = (problem_loop){.operand = {0, 1, 2}, .n = 1};
    switch (p->kind) {
    case BZ_PROBLEM_ACTIVATION:
        *l = over(BZ_LOOP_UNARY, y);
        row_major(y, l->stride[0]);
        l->fn = p->activation.fn, l->alpha = p->activation.alpha, l->beta = p->activation.beta;
        return bz_fn_is_activation(l->fn);
    case BZ_PROBLEM_BINARY:
        *l = over(BZ_LOOP_BINARY, y);
        broadcast(p->binary.a, l->stride[0]);
        broadcast(p->binary.b, l->stride[1]);
        l->fn = p->binary.fn;
        list->n = 2;
        return 1;
    case BZ_PROBLEM_WHERE:
        *l = over(BZ_LOOP_SELECT, y);
        broadcast(p->where.c, l->stride[0]);
        broadcast(p->where.a, l->stride[1]);
        broadcast(p->where.b, l->stride[2]);
        list->n = 3;
        return 1;
    case BZ_PROBLEM_TRANSPOSE:
        *l = over(BZ_LOOP_COPY, y);
        row_major(p->transpose.x, stride);
        for (int i = 0; i < l->rank; i++)
            l->stride[0][i] = stride[p->transpose.perm[i]];
        return 1;
    case BZ_PROBLEM_SLICE:
        *l = over(BZ_LOOP_COPY, y);
        row_major(p->slice.x, stride);
        for (int i = 0; i < l->rank; i++) {
            l->from += p->slice.start[i] * stride[i];
            l->stride[0][i] = stride[i] * (y[i] > 1 ? p->slice.step[i] : 1);
        }
        return 1;
    case BZ_PROBLEM_EXPAND:
        *l = over(BZ_LOOP_COPY, y);
        broadcast(p->expand.x, l->stride[0]);
        return 1;
    case BZ_PROBLEM_GATHER:
        gather_loop(p, l);
        list->n = 2;
        return 1;
    case BZ_PROBLEM_CONCAT:
        return concat_loops(p, list);
    case BZ_PROBLEM_REORDER: /* a cast; what is scaled is rounded besides: rows.c */
        *l = over(BZ_LOOP_COPY, y);
        row_major(y, l->stride[0]);
        return p->reorder.scale == 1 && p->reorder.from == BZ_LAYOUT_PLAIN && p->reorder.to == BZ_LAYOUT_PLAIN;
    default:
        return 0;
    }
}

typedef struct session {
    bz_plain plain;
    bz_parts *parts; /* or */
    problem_loop *loop;
    int n;
} session;

static void version(bz_buf *out)
{
    (void)out; /* no library of its own */
}

static int open_session(const bz_job *job, void **of, bz_error *err)
{
    problem_loop list[LOOPS_MOST];
    int n = bz_posts_known(job->problem) ? problem_loops(job->problem, list) : 0;
    const char *why = "we have no loop for this, or not in these types";
    for (int i = 0; i < job->n_operands; i++)
        if (bz_dtype_bits(job->operand[i].dtype) < 8)
            return bz_fail(err, BZ_INCOMPLETE, "our loops need elements of whole bytes");
    bz_parts *parts = n ? NULL : bz_parts_open(job, &why);
    if (!n && !parts)
        return bz_fail(err, BZ_INCOMPLETE, "%s", why);
    session *s = bz_alloc(1, sizeof *s);
    *s = (session){.plain = {.job = job}, .parts = parts, .n = n};
    if (n)
        s->loop = memcpy(bz_alloc((size_t)n, sizeof *list), list, (size_t)n * sizeof *list);
    *of = s;
    return 0;
}

static void close_session(void *of)
{
    session *s = of;
    bz_parts_close(s->parts);
    bz_plain_free(&s->plain);
    free(s->loop);
    free(s);
}

static int enumerate(void *of, const char *layout, const char *math, bz_variant_list *list, bz_error *why)
{
    if (strcmp(layout, "plain") != 0)
        return bz_fail(why, BZ_INCOMPLETE, "our loops take tensors as they lie (layout plain)");
    if (strcmp(math, "default") != 0)
        return bz_fail(why, BZ_INCOMPLETE, "our loops have no math modes");
    bz_variant *v = bz_variant_add(list, &bz_backend_loops, of, layout, math);
    snprintf(v->algorithm, sizeof v->algorithm, "%s", bz_kernels_best()->name);
    v->chosen = true;
    return 0;
}

static int execute(bz_variant *v, int copy)
{
    session *s = v->session;
    const bz_job *job = s->plain.job;
    int y = job->n_operands - 1, bad = 0;
    if (s->parts)
        bz_parts_run(s->parts, &s->plain, copy);
    for (int i = 0; i < s->n; i++) {
        const problem_loop *l = &s->loop[i];
        void *operand[4];
        bz_dtype dtype[4];
        int64_t count[4];
        for (int k = 0; k <= l->n; k++) {
            int o = k < l->n ? l->operand[k] : y;
            operand[k] = bz_plain_at(&s->plain, o, copy);
            dtype[k] = job->operand[o].dtype, count[k] = job->operand[o].count;
        }
        bad |= bz_loop_run(&l->loop, operand, dtype, count, l->n + 1, job->setting->threads);
    }
    if (job->problem->post[0].fn)
        run_all_posts(&s->plain, copy);
    return bad;
}

const bz_backend bz_backend_loops = {
    .name = "loops",
    .timing = "wall",
    .smallest = "activation fn=relu x=1 dtype=f32",
    .version = version,
    .open = open_session,
    .enumerate = enumerate,
    .execute = execute,
    .close = close_session,
    BZ_PLAIN_OPERANDS,
};
