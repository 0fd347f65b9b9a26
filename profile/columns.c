#include "profile/columns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIND(k) (1u << BZ_EVENT_##k)
#define ALL     ((1u << BZ_EVENT_KINDS) - 1)
#define DEVICE  (KIND(KERNEL) | KIND(COPY) | KIND(MEMSET))
#define COLUMN(member, kinds, link)                                                                                    \
    {                                                                                                                  \
        offsetof(bz_events, member), sizeof *((bz_events *)0)->member, kinds, link                                     \
    }

const bz_column BZ_COLUMNS[] = {
    COLUMN(start, ALL, false),
    COLUMN(end, ALL, false),
    COLUMN(name, ALL, false),
    COLUMN(lane, ALL, false),
    COLUMN(correlation, KIND(OP) | KIND(API) | KIND(SYNC) | DEVICE, false),
    COLUMN(cause, DEVICE | KIND(SYNC), true),
    COLUMN(call, KIND(CALL) | KIND(API) | DEVICE, true),
    COLUMN(op, KIND(OP) | KIND(CALL) | KIND(API) | DEVICE, true),
    COLUMN(flags, KIND(CALL), false),
    COLUMN(library, KIND(CALL), false),
    COLUMN(detail, KIND(CALL) | KIND(OP), false),
    COLUMN(operands, KIND(CALL), false),
    COLUMN(variant, KIND(CALL), false),
    COLUMN(stack, KIND(CALL) | KIND(API), false),
    COLUMN(short_name, KIND(KERNEL), false),
    {offsetof(bz_events, grid), 3 * sizeof(uint32_t), KIND(KERNEL), false},
    {offsetof(bz_events, block), 3 * sizeof(uint32_t), KIND(KERNEL), false},
    COLUMN(registers, KIND(KERNEL), false),
    COLUMN(shared_static, KIND(KERNEL), false),
    COLUMN(shared_dynamic, KIND(KERNEL), false),
    COLUMN(graph, DEVICE, false),
    COLUMN(bytes, KIND(COPY) | KIND(MEMSET), false),
    COLUMN(value, KIND(COPY) | KIND(SYNC) | KIND(API) | KIND(OVERHEAD), false),
};
const size_t BZ_N_COLUMNS = sizeof BZ_COLUMNS / sizeof *BZ_COLUMNS;

/* Taking memory page by page costs more than filling it. Only a hint: that it fails is no error. */
static void want_large_pages(void *p, size_t n)
{
    enum { LARGE = 1 << 20 };
    size_t within = (uintptr_t)p & ((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    if (n >=
        LARGE) /* from the front of its first page on: neighbours are then one region, which large pages fit better */
        (void)madvise((char *)p - within, n + within, MADV_HUGEPAGE);
}

void bz_events_reserve(bz_events *e, bz_event_kind kind, size_t n)
{
    if (n <= e->cap)
        return;
    /* large arrays grow in smaller steps: they are moved by the kernel, and what is unused counts */
    size_t cap = e->cap ? e->cap + (e->cap < 1 << 20 ? e->cap / 2 : e->cap / 8) : 256;
    cap = cap < n ? n : cap;
    for (size_t c = 0; c < BZ_N_COLUMNS; c++)
        if (BZ_COLUMNS[c].kinds & 1u << kind) {
            void **column = bz_column_of(e, &BZ_COLUMNS[c]);
            *column = bz_realloc(*column, cap, BZ_COLUMNS[c].size);
            want_large_pages(*column, cap * BZ_COLUMNS[c].size);
        }
    e->cap = cap;
}

/* Bottom-up merge sort of row numbers: stable, and a trace is mostly runs already. */
static uint32_t *sorted_order(const bz_events *e)
{
    size_t n = e->n;
    uint32_t *a = bz_alloc(n, sizeof *a), *b = bz_alloc(n, sizeof *b);
    for (size_t i = 0; i < n; i++)
        a[i] = (uint32_t)i;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t mid = low + width < n ? low + width : n, high = low + 2 * width < n ? low + 2 * width : n;
            size_t i = low, j = mid, k = low;
            while (i < mid && j < high) {
                uint32_t p = a[i], q = a[j];
                bool second = e->start[q] < e->start[p] || (e->start[q] == e->start[p] && e->end[q] > e->end[p]);
                b[k++] = second ? a[j++] : a[i++];
            }
            while (i < mid)
                b[k++] = a[i++];
            while (j < high)
                b[k++] = a[j++];
        }
        uint32_t *swap = a;
        a = b;
        b = swap;
    }
    free(b);
    return a;
}

void bz_events_sort(bz_events *e, bz_event_kind kind, uint32_t **order)
{
    if (order)
        *order = NULL;
    size_t i = 1;
    while (i < e->n &&
           (e->start[i] > e->start[i - 1] || (e->start[i] == e->start[i - 1] && e->end[i] <= e->end[i - 1])))
        i++;
    if (i >= e->n)
        return;
    uint32_t *from = sorted_order(e);
    size_t widest = 3 * sizeof(uint32_t);
    char *old = bz_alloc(e->n, widest);
    for (size_t c = 0; c < BZ_N_COLUMNS; c++) {
        if (!(BZ_COLUMNS[c].kinds & 1u << kind))
            continue;
        size_t size = BZ_COLUMNS[c].size;
        char *column = *bz_column_of(e, &BZ_COLUMNS[c]);
        memcpy(old, column, e->n * size);
        for (i = 0; i < e->n; i++)
            memcpy(column + i * size, old + from[i] * size, size);
    }
    free(old);
    if (order)
        *order = from;
    else
        free(from);
}

void bz_events_filter(bz_events *e, bz_event_kind kind, const bool *keep)
{
    size_t kept = 0;
    for (size_t c = 0; c < BZ_N_COLUMNS; c++) {
        if (!(BZ_COLUMNS[c].kinds & 1u << kind))
            continue;
        size_t size = BZ_COLUMNS[c].size;
        char *column = *bz_column_of(e, &BZ_COLUMNS[c]);
        kept = 0;
        for (size_t i = 0; i < e->n; i++)
            if (keep[i])
                memmove(column + kept++ * size, column + i * size, size);
    }
    e->n = kept;
}
