/* Sums of arrays, by which every byte is read. What is added up has to stay in registers: vectors that are wider than these gcc keeps in
 * memory, where each addition waits for the store before it (vectors of 64 bytes with AVX2: 12 GB/s, from whatever cache). So each
 * width of registers has a function of its own, and as many sums in turns as additions that a processor begins while one goes on. */
#include "runtime/memory/transfer.h"

#include <string.h>

#define EACH(use)   use(a, 0) use(b, 1) use(c, 2) use(d, 3) use(e, 4) use(f, 5) use(g, 6) use(h, 7)
#define ADD(sum, k) sum += *(const vector *)(const void *)(from + i * sizeof(element) + (k) * sizeof(vector));
/* What is left of the last eight vectors goes to as many sums, too: into one, 63 doubles would wait 250 cycles for each other. */
#define REST(sum, k)                                                                                                   \
    if (i + LANES <= n) {                                                                                              \
        ADD(sum, 0)                                                                                                    \
        i += LANES;                                                                                                    \
    }

/* Of n elements, wherever they begin. */
#define SUM(attribute, name, type, bytes)                                                                              \
    attribute static type name(const char *from, size_t n)                                                             \
    {                                                                                                                  \
        typedef type element;                                                                                          \
        typedef element vector __attribute__((vector_size(bytes), aligned(1), may_alias));                             \
        enum { LANES = (bytes) / sizeof(element) };                                                                    \
        vector a = {0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;                                               \
        size_t i = 0;                                                                                                  \
        for (; i + 8 * LANES <= n; i += 8 * LANES) {                                                                   \
            EACH(ADD)                                                                                                  \
        }                                                                                                              \
        EACH(REST)                                                                                                     \
        a += b + c + d + e + f + g + h;                                                                                \
        element sum = 0, one;                                                                                          \
        for (int k = 0; k < LANES; k++)                                                                                \
            sum += a[k];                                                                                               \
        for (; i < n; i++) {                                                                                           \
            memcpy(&one, from + i * sizeof one, sizeof one);                                                           \
            sum += one;                                                                                                \
        }                                                                                                              \
        return sum;                                                                                                    \
    }

SUM(, doubles_16, double, 16)
SUM(, words_16, uint64_t, 16)

#ifdef __x86_64__
SUM(__attribute__((target("avx2"))), doubles_32, double, 32)
SUM(__attribute__((target("avx2"))), words_32, uint64_t, 32)
SUM(__attribute__((target("avx512f"))), doubles_64, double, 64)
SUM(__attribute__((target("avx512f"))), words_64, uint64_t, 64)
#define WIDEST_OF(name)                                                                                                \
    (__builtin_cpu_supports("avx512f") ? name##_64 : __builtin_cpu_supports("avx2") ? name##_32 : name##_16)
#else
#define WIDEST_OF(name) name##_16
#endif

double memory_sum(const double *x, size_t n)
{
    return WIDEST_OF(doubles)((const char *)x, n);
}

uint64_t memory_read(const void *from, size_t n)
{
    const unsigned char *byte = from;
    size_t words = n / sizeof(uint64_t);
    uint64_t sum = WIDEST_OF(words)(from, words);
    for (size_t i = words * sizeof(uint64_t); i < n; i++)
        sum += byte[i];
    return sum;
}
