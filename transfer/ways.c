/* What is measured, and at which sizes. */
#include "transfer/ways.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* clang-format off */
const transfer_way transfer_ways[] = {
    {"read", "reading an array", WAY_LEVELS, 1, true},
    {"write", "writing an array", WAY_LEVELS, 1, true},
    {"copy", "copying an array to another", WAY_LEVELS, 2, true},
    {"scale", "writing three times an array", WAY_LEVELS, 2, true},
    {"add", "writing the sum of two arrays", WAY_LEVELS, 3, true},
    {"triad", "writing one array plus three times another", WAY_LEVELS, 3, true},
    {"strided", "reading 8 bytes of each line of an array", WAY_LEVELS, 1, true},
    {"scattered", "reading an array's elements in an order far from its own", WAY_LEVELS, 2, true},
    {"chase", "a load that waits for the one before", WAY_RING, 0, false},
    {"chase_huge", "the same on huge pages", WAY_RING, 0, false},
    {"touch", "asking for memory and writing each page of it", WAY_PAGES, 1, false},
    {"touch_huge", "the same on huge pages", WAY_PAGES, 1, false},
    {"shared", "another thread copies, told by a variable", WAY_BLOCKS, 1, false},
    {"wake", "the same, woken by the kernel", WAY_BLOCKS, 1, false},
    {"pipe", "through a pipe to another thread, and a byte back", WAY_BLOCKS, 1, false},
    {"socket", "through a local socket, likewise", WAY_BLOCKS, 1, false},
    {"tcp", "by TCP to this machine, likewise", WAY_BLOCKS, 1, false},
    {"file", "reading a file that the kernel has in its cache", WAY_PAGES, 1, false},
    {"file_cold", "reading one that it has not", WAY_PAGES, 1, false},
    {"mapped", "mapping a file in the cache and copying it", WAY_PAGES, 1, false},
    {0},
};
/* clang-format on */

/* What is known of no caches is taken for a processor of today. */
int transfer_levels(const bz_system_facts *facts, int threads, way_level out[WAY_LEVELS_MOST])
{
    static const double USUAL[] = {32 << 10, 1 << 20, 32 << 20};
    int n = facts->n_caches ? facts->n_caches : 3;
    double below = 0;
    for (int i = 0; i < n; i++) {
        double bytes = USUAL[i < 3 ? i : 2];
        if (facts->n_caches)
            bytes = facts->cache[i].bytes * (facts->cache[i].count < threads ? facts->cache[i].count : threads);
        snprintf(out[i].name, sizeof out[i].name, "L%d", facts->n_caches ? facts->cache[i].level : i + 1);
        out[i].from = 1.5 * below;
        out[i].to = 0.75 * bytes;
        below = bytes;
    }
    snprintf(out[n].name, sizeof out[n].name, "memory");
    out[n].from = 2 * below;
    out[n].to = INFINITY;
    return n + 1;
}

/* The largest power of two of elements of 8 bytes, so that all arrays together are no larger than `bytes`. */
static int64_t elements(const transfer_way *w, double bytes)
{
    int64_t n = 64;
    while ((double)(2 * n) * 8 * w->arrays <= bytes)
        n *= 2;
    return n;
}

static void add(int64_t out[WAY_MOST_SIZES], int *n, int64_t x)
{
    if (*n < WAY_MOST_SIZES && (!*n || out[*n - 1] < x))
        out[(*n)++] = x;
}

/* Three sizes in each level, by factors of two from the largest that fits on down; of memory three from twice its least on. None
 * is above a gigabyte. */
static int sizes_in_levels(const transfer_way *w, const way_level *level, int n_levels, int64_t out[WAY_MOST_SIZES])
{
    const double most = 1e9;
    int n = 0;
    for (int i = 0; i < n_levels; i++)
        for (int k = 2; k >= 0; k--) {
            bool memory = isinf(level[i].to);
            double bytes = memory ? ldexp(level[i].from, 3 - k) : ldexp(level[i].to, -k);
            int64_t x = elements(w, fmin(bytes, most));
            double size = transfer_size(w, x);
            if (size >= level[i].from && size <= level[i].to && bytes <= most)
                add(out, &n, x);
        }
    return n;
}

int transfer_sizes(const transfer_way *w, const bz_system_facts *facts, int threads, int64_t out[WAY_MOST_SIZES])
{
    way_level level[WAY_LEVELS_MOST];
    int n_levels = transfer_levels(facts, threads, level), n = 0;
    if (w->sizes == WAY_LEVELS)
        return sizes_in_levels(w, level, n_levels, out);
    if (w->sizes == WAY_RING)
        for (double x = 4096; x <= fmin(1e9, 4 * level[n_levels - 1].from); x *= 2)
            add(out, &n, (int64_t)x);
    else
        for (int64_t x = w->sizes == WAY_PAGES ? 16 << 10 : 1; x <= 64 << 20; x *= x < 64 ? 64 : 8)
            add(out, &n, x);
    return n;
}

void transfer_text(const transfer_way *w, int64_t x, bz_buf *out)
{
    bz_buf_printf(out, "transfer way=%s x=%" PRId64 " dtype=%s", w->name, x, w->sizes == WAY_LEVELS ? "f64" : "u8");
}

double transfer_size(const transfer_way *w, int64_t x)
{
    return (double)x * (w->sizes == WAY_LEVELS ? 8 * w->arrays : 1);
}

int bz_transfers_plan(const bz_system_facts *facts, int threads, bz_plan *plan, bz_error *err)
{
    bz_buf text = {0};
    int rc = 0;
    for (const transfer_way *w = transfer_ways; w->name && !rc; w++) {
        int64_t x[WAY_MOST_SIZES];
        int n = threads == 1 || w->threads ? transfer_sizes(w, facts, threads, x) : 0;
        for (int i = 0; i < n && !rc; i++) {
            bz_buf_clear(&text);
            transfer_text(w, x[i], &text);
            rc = bz_plan_add_text(plan, bz_buf_text(&text), err);
        }
    }
    bz_buf_free(&text);
    return rc;
}
