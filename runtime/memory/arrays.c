/* Ways over arrays of doubles. Each thread has its share, in whole cache lines. Those that go "around" the caches store with
 * instructions that do not read the line first: the bytes that move are those that STREAM counts, and no others. */
#include "runtime/memory/transfer.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* As wide as the processor has them; and half of it, which on Xeons with AVX-512 is faster where the arrays are in the second-level
 * cache: 122 against 112 GB/s for triad, whatever the alignment, the distance of the arrays and the unrolling. */
typedef double wide __attribute__((vector_size(64), aligned(8), may_alias));
typedef double half __attribute__((vector_size(32), aligned(8), may_alias));

enum { IN_LINE = 8, IN_HALF = 4 };

#if defined __x86_64__ && defined __has_attribute
#if __has_attribute(target_clones)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#define HALVES __attribute__((target_clones("avx2", "default")))
#endif
#endif
#ifndef WIDEST
#define WIDEST
#define HALVES
#endif

/* A loop of whole vectors, and what is left over. */
#define LOOP(attribute, name, vector, n, expression, element)                                                          \
    attribute void name(double *y, const double *x, const double *b, size_t from, size_t to)                           \
    {                                                                                                                  \
        size_t i = from;                                                                                               \
        (void)x, (void)b;                                                                                              \
        for (; i + (n) <= to; i += (n))                                                                                \
            *(vector *)(void *)(y + i) = (expression);                                                                 \
        for (; i < to; i++)                                                                                            \
            y[i] = (element);                                                                                          \
    }
#define AT(vector, array) (*(const vector *)(const void *)((array) + i))
#define BOTH(name, expression, element)                                                                                \
    LOOP(WIDEST, name, wide, IN_LINE, expression(wide), element)                                                       \
    LOOP(HALVES, name##_halves, half, IN_HALF, expression(half), element)
#define SCALED(vector)   3.0 * AT(vector, x)
#define ADDED(vector)    AT(vector, x) + AT(vector, b)
#define COMBINED(vector) AT(vector, x) + 3.0 * AT(vector, b)
#define WRITTEN(vector)  (vector){0} + 1.0
BOTH(array_scale, SCALED, 3.0 * x[i])
BOTH(array_add, ADDED, x[i] + b[i])
BOTH(array_triad, COMBINED, x[i] + 3.0 * b[i])
BOTH(array_write, WRITTEN, 1.0)

void array_copy(double *y, const double *x, const double *b, size_t from, size_t to)
{
    (void)b;
    memcpy(y + from, x + from, (to - from) * sizeof *y);
}

void array_copy_string(double *y, const double *x, const double *b, size_t from, size_t to)
{
#ifdef __x86_64__
    void *out = y + from;
    const void *in = x + from;
    size_t n = (to - from) * sizeof *y;
    (void)b;
    __asm__ volatile("rep movsb" : "+D"(out), "+S"(in), "+c"(n) : : "memory");
#else
    array_copy(y, x, b, from, to);
#endif
}

/* Shares begin at a line of y, as such stores want. */
#ifdef __SSE2__
#define AROUND(name, usual, expression)                                                                                \
    void name(double *y, const double *x, const double *b, size_t from, size_t to)                                     \
    {                                                                                                                  \
        const __m128d three = _mm_set1_pd(3);                                                                          \
        size_t i = from;                                                                                               \
        (void)three;                                                                                                   \
        for (; i + 2 <= to && (uintptr_t)(y + i) % 16 == 0; i += 2)                                                    \
            _mm_stream_pd(y + i, expression);                                                                          \
        _mm_sfence();                                                                                                  \
        usual(y, x, b, i, to);                                                                                         \
    }
#else
#define AROUND(name, usual, expression)                                                                                \
    void name(double *y, const double *x, const double *b, size_t from, size_t to)                                     \
    {                                                                                                                  \
        usual(y, x, b, from, to);                                                                                      \
    }
#endif
#define LOADED(array) _mm_loadu_pd((array) + i)
AROUND(array_write_around, array_write, _mm_set1_pd(1))
AROUND(array_copy_around, array_copy, LOADED(x))
AROUND(array_scale_around, array_scale, _mm_mul_pd(three, LOADED(x)))
AROUND(array_add_around, array_add, _mm_add_pd(LOADED(x), LOADED(b)))
AROUND(array_triad_around, array_triad, _mm_add_pd(LOADED(x), _mm_mul_pd(three, LOADED(b))))

void array_strided(double *y, const double *x, const double *b, size_t from, size_t to)
{
    (void)b;
    for (size_t i = from; i < to; i++)
        y[i] = x[IN_LINE * i];
}

/* The elements of thread i. */
static void share(size_t n, int i, int threads, size_t *from, size_t *to)
{
    memory_share(n * sizeof(double), i, threads, from, to);
    *from /= sizeof(double);
    *to /= sizeof(double);
}

/* Without a team where there is one thread: starting one costs more than a small copy. */
int transfer_arrays(transfer *t, int copy)
{
    array_function *some = t->row->some;
    const bz_plain *p = t->plain;
    int n = p->job->n_operands - 1;
    size_t count = (size_t)p->job->operand[n].count;
    double *y = bz_plain_at(p, n, copy);
    const double *x = n > 0 ? bz_plain_at(p, 0, copy) : NULL, *b = n > 1 ? bz_plain_at(p, 1, copy) : NULL;
    if (t->threads == 1) {
        some(y, x, b, 0, count);
        return 0;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->threads) schedule(static, 1)
#endif
    for (int i = 0; i < t->threads; i++) {
        size_t from, to;
        share(count, i, t->threads, &from, &to);
        some(y, x, b, from, to);
    }
    return 0;
}

int transfer_read(transfer *t, int copy)
{
    const bz_plain *p = t->plain;
    const double *x = bz_plain_at(p, 0, copy);
    double *y = bz_plain_at(p, 1, copy), sum = 0;
    size_t n = (size_t)p->job->operand[0].count;
    if (t->threads == 1) {
        *y = memory_sum(x, n);
        return 0;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->threads) schedule(static, 1) reduction(+ : sum)
#endif
    for (int i = 0; i < t->threads; i++) {
        size_t from, to;
        share(n, i, t->threads, &from, &to);
        sum += memory_sum(x + from, to - from);
    }
    *y = sum;
    return 0;
}

int transfer_scattered(transfer *t, int copy)
{
    const bz_plain *p = t->plain;
    const double *x = bz_plain_at(p, 0, copy);
    double *y = bz_plain_at(p, 1, copy);
    size_t n = (size_t)p->job->operand[0].count, mask = n - 1;
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->threads) schedule(static) if (t->threads > 1)
#endif
    for (size_t i = 0; i < n; i++)
        y[i] = x[i * BZ_SCATTER & mask];
    return 0;
}
