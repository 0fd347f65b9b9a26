/* What is measured, and at which sizes. */
#include "transfer/ways.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
const transfer_way transfer_ways[] = {
    {"read", "reading an array", WAY_ARRAYS, 0, 1, true, 0, false},
    {"write", "writing an array", WAY_ARRAYS, 0, 1, true, 0, false},
    {"copy", "copying an array to another", WAY_ARRAYS, 0, 2, true, 0, false},
    {"scale", "writing three times an array", WAY_ARRAYS, 0, 2, true, 0, false},
    {"add", "writing the sum of two arrays", WAY_ARRAYS, 0, 3, true, 0, false},
    {"triad", "writing one array plus three times another", WAY_ARRAYS, 0, 3, true, 0, false},
    {"strided", "reading 8 bytes of each line of an array", WAY_ARRAYS, 0, 1, true, 0, false},
    {"scattered", "reading an array's elements in an order far from its own", WAY_ARRAYS, 0, 2, true, 256 << 20, false},
    {"chase", "a load that waits for the one before", WAY_RING, 4096, 0, false, 0, false},
    {"chase_huge", "the same on huge pages", WAY_RING, 4096, 0, false, 0, false},
    {"touch", "asking for memory and writing each page of it", WAY_STEPS, 16 << 10, 1, false, 0, false},
    {"touch_huge", "the same on huge pages", WAY_STEPS, 4 << 20, 1, false, 0, false},
    {"shared", "another thread copies, told by a variable", WAY_STEPS, 1, 1, false, 0, false},
    {"wake", "the same, woken by the kernel", WAY_STEPS, 1, 1, false, 0, false},
    {"pipe", "through a pipe to another thread, and a byte back", WAY_STEPS, 1, 1, false, 0, false},
    {"socket", "through a local socket, likewise", WAY_STEPS, 1, 1, false, 0, false},
    {"tcp", "by TCP to this machine, likewise", WAY_STEPS, 1, 1, false, 0, false},
    {"file", "reading a file that the kernel has in its cache", WAY_STEPS, 16 << 10, 1, false, 0, false},
    {"file_cold", "reading one that it has not", WAY_STEPS, 16 << 10, 1, false, 16 << 20, false},
    {"mapped", "mapping a file in the cache and copying it", WAY_STEPS, 16 << 10, 1, false, 0, false},
    {"zlib", "making a text smaller by zlib", WAY_STEPS, 64 << 10, 1, false, 4 << 20, false},
    {"unzlib", "bringing it back", WAY_STEPS, 64 << 10, 1, false, 4 << 20, false},
    {"zstd", "making a text smaller by zstd", WAY_STEPS, 64 << 10, 1, false, 4 << 20, false},
    {"unzstd", "bringing it back", WAY_STEPS, 64 << 10, 1, false, 4 << 20, false},
    {"lz4", "making a text smaller by lz4", WAY_STEPS, 64 << 10, 1, false, 4 << 20, false},
    {"unlz4", "bringing it back", WAY_STEPS, 64 << 10, 1, false, 4 << 20, false},
    {"far", "reading memory of another NUMA node", WAY_STEPS, 64 << 20, 1, false, 256 << 20, false},
    {"far_chase", "a load from there that waits for the one before", WAY_STEPS, 64 << 20, 0, false, 256 << 20, false},
    {"to_device", "from ordinary memory of the host to the GPU", WAY_STEPS, 4096, 1, false, 0, true},
    {"to_device_pinned", "from pinned memory of the host to the GPU", WAY_STEPS, 4096, 1, false, 0, true},
    {"to_host", "from the GPU to ordinary memory of the host", WAY_STEPS, 4096, 1, false, 0, true},
    {"to_host_pinned", "from the GPU to pinned memory of the host", WAY_STEPS, 4096, 1, false, 0, true},
    {"both_ways", "as much each way at the same time", WAY_STEPS, 4096, 1, false, 0, true},
    {"streams", "to the GPU in parts, each on a stream of its own", WAY_STEPS, 4096, 1, false, 0, true},
    {"over_link", "a kernel reads the host's memory", WAY_STEPS, 4096, 1, false, 0, true},
    {"within", "from the GPU's memory to itself", WAY_STEPS, 4096, 1, false, 128 << 20, true},
    {"set", "setting bytes of the GPU's memory", WAY_STEPS, 4096, 1, false, 128 << 20, true},
    {"peer", "from one GPU to the next", WAY_STEPS, 4096, 1, false, 0, true},
    {"peer_staged", "the same by way of the host", WAY_STEPS, 4096, 1, false, 0, true},
    {"managed_touch", "a kernel writes each page of unified memory, which is with the host", WAY_STEPS, 16 << 10, 1, false, 0, true},
    {"managed_prefetch", "the same, and it is brought over first", WAY_STEPS, 16 << 10, 1, false, 0, true},
    {"managed_advised", "the same, and it stays where it is", WAY_STEPS, 16 << 10, 1, false, 0, true},
    {"allocate", "asking for the GPU's memory and giving it back", WAY_STEPS, 4096, 1, false, 0, true},
    {"pin", "asking for pinned memory and giving it back", WAY_STEPS, 4096, 1, false, 0, true},
    {"launch", "the call that starts a kernel", WAY_STEPS, 1, 0, false, 1, true},
    {"launch_wait", "starting a kernel and waiting for its end", WAY_STEPS, 1, 0, false, 1, true},
    {"graph", "a kernel of a graph of 64, until its end", WAY_STEPS, 64, 0, false, 64, true},
    {"graph_launch", "the call that starts a graph of one kernel", WAY_STEPS, 1, 0, false, 1, true},
    {"event", "the call that marks a place in a stream", WAY_STEPS, 1, 0, false, 1, true},
    {"synchronize", "waiting for a stream that has nothing to do", WAY_STEPS, 1, 0, false, 1, true},
    {"all_reduce", "NCCL: the same result on all GPUs", WAY_STEPS, 4096, 1, false, 0, true},
    {"all_gather", "NCCL: each GPU's part on all", WAY_STEPS, 4096, 1, false, 0, true},
    {"broadcast", "NCCL: one GPU's bytes on all", WAY_STEPS, 4096, 1, false, 0, true},
    {"send", "NCCL: one GPU's bytes on another", WAY_STEPS, 4096, 1, false, 0, true},
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

/* x, and before it what parts the way to it from the one before, in lines of the cache. Where there are no such sizes they are the one
 * before, and nothing tells them apart: they are never wanted. */
static void add(const transfer_way *w, int64_t out[WAY_MOST_SIZES], int *n, int64_t x)
{
    const int64_t line = w->sizes == WAY_RING ? 64 : 8;
    if (*n + WAY_PARTS > WAY_MOST_SIZES)
        return;
    int64_t before = *n ? out[*n - 1] : 0;
    for (int part = 1; part < WAY_PARTS && *n; part++) {
        bool even = w->sizes != WAY_STEPS && strcmp(w->name, "scattered") != 0;
        int64_t between = before + (x - before) * part / WAY_PARTS / line * line;
        out[(*n)++] = even ? between : before;
    }
    out[(*n)++] = x;
}

enum { MOST = 1 << 30, STEPS_TO = 64 << 20, SMALLEST = 64, RINGS_TO = 256 << 20, BESIDE = 8 };

/* The next size. Between 64 MiB and where memory begins each fourth power of two will do: of a cache of 480 MiB arrays take seconds
 * to be filled, and there are eight ways over them. */
static int step(double size, double memory)
{
    return size >= STEPS_TO && 2 * size <= memory ? 4 : 2;
}

/* Rings come in the same sizes on all machines: it is they that tell how large a cache really is. */
int transfer_sizes(const transfer_way *w, const bz_system_facts *facts, int threads, int64_t out[WAY_MOST_SIZES])
{
    way_level level[WAY_LEVELS_MOST];
    int n_levels = transfer_levels(facts, threads, level), n = 0;
    double memory = level[n_levels - 1].from, most = fmin(w->most ? (double)w->most : MOST, BESIDE * memory);
    if (w->sizes == WAY_ARRAYS)
        for (int64_t x = elements(w, level[0].to / 6); transfer_size(w, x) <= fmax(most, 1);
             x *= step(transfer_size(w, x), memory))
            add(w, out, &n, x);
    else if (w->sizes == WAY_RING)
        for (int64_t x = w->least; x <= MOST; x *= x < RINGS_TO ? 2 : 4)
            add(w, out, &n, x);
    else
        for (int64_t x = w->least; x <= (w->most ? w->most : STEPS_TO); x *= x < SMALLEST ? SMALLEST : 4)
            add(w, out, &n, x);
    return n;
}

void transfer_text(const transfer_way *w, int64_t x, bz_buf *out)
{
    bz_buf_printf(out, "transfer way=%s x=%" PRId64 " dtype=%s", w->name, x, w->sizes == WAY_ARRAYS ? "f64" : "u8");
}

const char *transfer_problem(const transfer_way *w, int64_t x, bz_arena *arena)
{
    bz_buf text = {0};
    transfer_text(w, x, &text);
    return bz_buf_keep(&text, arena);
}

double transfer_size(const transfer_way *w, int64_t x)
{
    return (double)x * (w->sizes == WAY_ARRAYS ? 8 * w->arrays : 1);
}

bool transfer_asked(const transfer_way *w, const bz_system_facts *facts, int threads)
{
    return w->gpu == facts->gpu && (threads == 1 || w->threads);
}

int bz_transfers_list(const bz_system_facts *facts, int threads, bool rings, bz_arena *arena, const char *const **out)
{
    const char **list = NULL;
    int n = 0;
    for (const transfer_way *w = transfer_ways; w->name; w++) {
        int64_t x[WAY_MOST_SIZES];
        int sizes = transfer_asked(w, facts, threads) && rings == (w->sizes == WAY_RING)
                        ? transfer_sizes(w, facts, threads, x)
                        : 0;
        for (int i = 0; i < sizes; i += WAY_PARTS)
            BZ_ARENA_ADD(arena, list, n) = transfer_problem(w, x[i], arena);
    }
    *out = list;
    return n;
}
