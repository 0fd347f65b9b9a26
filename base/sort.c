#include "base/sort.h"

#include "base/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void bz_sort_numbers(double *v, size_t n)
{
    if (n > 1)
        qsort(v, n, sizeof *v, by_number);
}

/* One pass for each byte in which the numbers differ, from the least: what is equal in it keeps its order. */
static void sort_by_bytes(int64_t *v, size_t n)
{
    const uint64_t sign = UINT64_C(1) << 63; /* so that negative ones are smaller */
    int64_t *from = v, *other = bz_alloc(n, sizeof *other), *to = other;
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++)
        differ |= (uint64_t)v[i] ^ (uint64_t)v[0];
    for (int shift = 0; shift < 64; shift += 8) {
        size_t place[257] = {0};
        if (!(differ >> shift & 255))
            continue;
        for (size_t i = 0; i < n; i++)
            place[1 + (((uint64_t)from[i] ^ sign) >> shift & 255)]++;
        for (int i = 1; i < 256; i++)
            place[i] += place[i - 1];
        for (size_t i = 0; i < n; i++)
            to[place[((uint64_t)from[i] ^ sign) >> shift & 255]++] = from[i];
        int64_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != v)
        memcpy(v, from, n * sizeof *v);
    free(other);
}

void bz_sort_times(int64_t *v, size_t n)
{
    enum { FEW = 256 };
    if (n > FEW)
        sort_by_bytes(v, n);
    else if (n > 1)
        qsort(v, n, sizeof *v, by_time);
}

void bz_sort_groups(void *v, size_t n, size_t size, size_t offset, uint32_t groups)
{
    char *old = v;
    bool sorted = true;
    uint32_t before = 0;
    size_t *place = bz_zeroed((size_t)groups + 1, sizeof *place);
    for (size_t i = 0; i < n; i++) {
        uint32_t group;
        memcpy(&group, old + i * size + offset, sizeof group);
        sorted &= group >= before;
        before = group;
        place[group + 1]++;
    }
    if (!sorted) {
        old = bz_alloc(n, size);
        memcpy(old, v, n * size);
        for (uint32_t g = 1; g < groups; g++)
            place[g] += place[g - 1];
        for (size_t i = 0; i < n; i++) {
            uint32_t group;
            memcpy(&group, old + i * size + offset, sizeof group);
            memcpy((char *)v + size * place[group]++, old + i * size, size);
        }
        free(old);
    }
    free(place);
}

/* Ends of the runs that are in order already; 0 where there are more than `most`. */
static size_t find_runs(const char *v, size_t n, size_t size, int (*compare)(const void *, const void *), size_t most,
                        size_t *end)
{
    size_t runs = 0;
    for (size_t i = 1; i <= n; i++)
        if (i == n || compare(v + (i - 1) * size, v + i * size) > 0) {
            if (runs == most)
                return 0;
            end[runs++] = i;
        }
    return runs;
}

static void merge(const char *v, size_t from, size_t middle, size_t to, size_t size,
                  int (*compare)(const void *, const void *), char *out)
{
    for (size_t a = from, b = middle; a < middle || b < to; out += size) {
        bool first = b == to || (a < middle && compare(v + a * size, v + b * size) <= 0);
        memcpy(out, v + (first ? a++ : b++) * size, size);
    }
}

void bz_sort(void *v, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    enum { MOST = 64 };
    size_t end[MOST], runs = n ? find_runs(v, n, size, compare, MOST, end) : 1;
    if (!runs) {
        qsort(v, n, size, compare);
        return;
    }
    char *from = v, *other = runs > 1 ? bz_alloc(n, size) : NULL, *to = other;
    while (runs > 1) { /* each run with its neighbour */
        size_t begin = 0, left = 0;
        for (size_t r = 0; r < runs; r += 2) {
            size_t last = end[r + 1 < runs ? r + 1 : r];
            merge(from, begin, end[r], last, size, compare, to + begin * size);
            end[left++] = begin = last;
        }
        char *sorted = to;
        to = from;
        from = sorted;
        runs = left;
    }
    if (from != v)
        memcpy(v, from, n * size);
    free(other);
}

double bz_quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}
