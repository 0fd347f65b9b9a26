#include "profile/columns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIND(k) (1u << BZ_EVENT_##k)
#define ALL     ((1u << BZ_EVENT_KINDS) - 1)
#define DEVICE  (KIND(KERNEL) | KIND(COPY) | KIND(MEMSET))
#define COLUMN(member, kinds)                                                                                          \
    {                                                                                                                  \
        offsetof(bz_events, member), sizeof *((bz_events *)0)->member, kinds                                           \
    }

const bz_column BZ_COLUMNS[] = {
    COLUMN(start, ALL),
    COLUMN(end, ALL),
    COLUMN(name, ALL),
    COLUMN(lane, ALL),
    COLUMN(correlation, KIND(OP) | KIND(API) | KIND(SYNC) | DEVICE),
    COLUMN(cause, DEVICE | KIND(SYNC)),
    COLUMN(call, KIND(CALL) | KIND(API) | DEVICE),
    COLUMN(op, KIND(OP) | KIND(CALL) | KIND(API) | DEVICE),
    COLUMN(flags, KIND(CALL)),
    COLUMN(library, KIND(CALL)),
    COLUMN(detail, KIND(CALL) | KIND(OP) | KIND(KERNEL)),
    COLUMN(operands, KIND(CALL)),
    COLUMN(variant, KIND(CALL)),
    COLUMN(stack, KIND(CALL) | KIND(API)),
    COLUMN(short_name, KIND(KERNEL)),
    COLUMN(launched, KIND(KERNEL)),
    COLUMN(graph, DEVICE),
    COLUMN(bytes, KIND(COPY) | KIND(MEMSET) | KIND(RANGE)),
    COLUMN(address, KIND(RANGE)),
    COLUMN(occupancy, KIND(KERNEL)),
    COLUMN(waited_record, KIND(SYNC)),
    COLUMN(waited_stream, KIND(SYNC)),
    COLUMN(value, KIND(COPY) | KIND(SYNC) | KIND(API) | KIND(OVERHEAD)),
};
const size_t BZ_N_COLUMNS = sizeof BZ_COLUMNS / sizeof *BZ_COLUMNS;

enum { LINE = 64, LARGE = 1 << 20 };

/* All columns of a kind lie in one block, one behind the other. They are filled row by row, and if they all began at the same
 * place in a page they would drive each other out of the cache: hence the gap between them. */
static size_t column_bytes(const bz_column *c, size_t cap)
{
    return (cap * c->size + LINE - 1) / LINE * LINE + 3 * LINE;
}

/* Only hints, for the whole pages of what is large: that they fail is no error. */
static void advise(void *p, size_t n, int advice)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = -(uintptr_t)p & (page - 1);
    if (n >= LARGE)
        (void)madvise((char *)p + skip, (n - skip) & ~(page - 1), advice);
}

static bool is_zero(const char *p, size_t n)
{
    return !*p && !memcmp(p, p + 1, n - 1);
}

/* Into zeroed memory: what is zero there already is not written, or a column that nobody fills would take memory. */
static void copy_column(char *to, const char *from, size_t n)
{
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < LARGE ? n - at : LARGE;
        if (!is_zero(from + at, part))
            memcpy(to + at, from + at, part);
    }
}

void bz_events_reserve(bz_events *e, bz_event_kind kind, size_t n)
{
    if (n <= e->cap)
        return;
    /* memory that is not touched costs nothing: neither columns that stay zero nor rows that do not come */
    size_t cap = e->cap * 2 < 256 ? 256 : e->cap * 2, total = 0;
    cap = cap < n ? n : cap;
    for (size_t c = 0; c < BZ_N_COLUMNS; c++)
        total += BZ_COLUMNS[c].kinds & 1u << kind ? column_bytes(&BZ_COLUMNS[c], cap) : 0;
    char *block = bz_zeroed(total, 1), *old = (char *)e->start, *from = old;
    for (size_t c = 0; c < BZ_N_COLUMNS; c++)
        if (BZ_COLUMNS[c].kinds & 1u << kind) {
            void **column = bz_column_of(e, &BZ_COLUMNS[c]);
            if (e->n) {
                copy_column(block, *column, e->n * BZ_COLUMNS[c].size);
                advise(from, e->cap * BZ_COLUMNS[c].size, MADV_DONTNEED); /* what is copied is not needed twice */
                from += column_bytes(&BZ_COLUMNS[c], e->cap);
            }
            *column = block;
            block += column_bytes(&BZ_COLUMNS[c], cap);
        }
    free(old);
    e->cap = cap;
}

void bz_events_free(bz_events *e)
{
    free(e->start); /* the first column, where the block begins */
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
    BZ_FREED char *old = NULL;
    for (size_t c = 0; c < BZ_N_COLUMNS; c++) {
        if (!(BZ_COLUMNS[c].kinds & 1u << kind))
            continue;
        size_t size = BZ_COLUMNS[c].size;
        char *column = *bz_column_of(e, &BZ_COLUMNS[c]);
        if (is_zero(column, e->n * size)) /* mostly nobody filled it: it takes no memory */
            continue;
        old = bz_realloc(old, e->n, size);
        memcpy(old, column, e->n * size);
        for (i = 0; i < e->n; i++)
            memcpy(column + i * size, old + from[i] * size, size);
    }
    if (order)
        *order = from;
    else
        free(from);
}

void bz_events_trim(bz_events *e, bz_event_kind kind)
{
    for (size_t c = 0; c < BZ_N_COLUMNS; c++)
        if (e->n < e->cap && BZ_COLUMNS[c].kinds & 1u << kind)
            advise((char *)*bz_column_of(e, &BZ_COLUMNS[c]) + e->n * BZ_COLUMNS[c].size,
                   (e->cap - e->n) * BZ_COLUMNS[c].size, MADV_DONTNEED);
}

size_t bz_events_from(const bz_events *e, int64_t start)
{
    const int64_t *at = e->start;
    if (!e->n || at[0] >= start)
        return 0;
    if (at[e->n - 1] < start)
        return e->n;
    /* events come more or less evenly: not far from here */
    double share = (double)(start - at[0]) / (double)(at[e->n - 1] - at[0]);
    size_t low = (size_t)(share * (double)(e->n - 1)), high = low, step = 8;
    for (; at[low] >= start; step *= 4)
        low = low > step ? low - step : 0;
    for (; at[high] < start; step *= 4)
        high = high + step < e->n ? high + step : e->n - 1;
    while (low + 1 < high) { /* the one we look for lies behind low, and not behind high */
        size_t mid = low + (high - low) / 2;
        if (at[mid] < start)
            low = mid;
        else
            high = mid;
    }
    return high;
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
        memset(column + kept * size, 0, (e->n - kept) * size); /* as rows behind the last are */
    }
    e->n = kept;
}
