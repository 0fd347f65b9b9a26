#include "base/sort.h"

#include "base/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

BZ_SORTS(by_time, int64_t, BZ_ORDER(*p, *q));

static void swap(double *v, size_t a, size_t b)
{
    double x = v[a];
    v[a] = v[b];
    v[b] = x;
}

/* Lets what stands at `at` sink to its place in a heap whose largest number stands first. */
static void sink(double *v, size_t n, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && v[child] < v[child + 1];
        if (!(v[at] < v[child]))
            return;
        swap(v, at, child);
    }
}

static void sort_as_heap(double *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sink(v, n, i);
    for (size_t i = n; i-- > 1;) {
        swap(v, 0, i);
        sink(v, i, 0);
    }
}

static void insert_numbers(double *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        double x = v[i];
        size_t k = i;
        for (; k && x < v[k - 1]; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

/* Quicksort in three parts, since many numbers may be equal; `depth` more levels, then as a heap. In place: qsort takes as much
 * memory again. */
static void sort_parts(double *v, size_t n, int depth)
{
    enum { FEW = 24 };
    while (n > FEW) {
        if (!depth--) {
            sort_as_heap(v, n);
            return;
        }
        double a = v[0], b = v[n / 2], c = v[n - 1];
        double middle = a < b ? (b < c ? b : a < c ? c : a) : a < c ? a : b < c ? c : b;
        size_t low = 0, i = 0, high = n; /* less than it before `low`, more from `high` on */
        while (i < high)
            if (v[i] < middle)
                swap(v, low++, i++);
            else if (middle < v[i])
                swap(v, i, --high);
            else
                i++;
        if (low < n - high) { /* the shorter part by itself */
            sort_parts(v, low, depth);
            v += high;
            n -= high;
        } else {
            sort_parts(v + high, n - high, depth);
            n = low;
        }
    }
    insert_numbers(v, n);
}

void bz_sort_numbers(double *v, size_t n)
{
    enum { DEEPEST = 96 };
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = v[i - 1] <= v[i];
    if (!sorted)
        sort_parts(v, n, DEEPEST);
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
    BZ_FREED size_t *place = bz_zeroed((size_t)groups + 1, sizeof *place);
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
