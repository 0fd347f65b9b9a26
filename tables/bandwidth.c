/* How fast copies and fills move their bytes: as HTA's memory bandwidth, and over the time of the recording. */
#include "base/sort.h"
#include "tables/parts.h"

#include <stdlib.h>

uint32_t tables_direction(const bz_tables *m, bz_event_kind kind, size_t i)
{
    if (kind == BZ_EVENT_MEMSET)
        return FILL;
    uint32_t value = m->t->event[kind].value[i];
    return value < FILL ? value : 0;
}

const char *tables_direction_name(uint32_t direction)
{
    return direction == FILL ? "fill" : bz_copy_direction(direction);
}

typedef struct copy {
    int64_t start, end;
    double rate; /* bytes per second */
    uint32_t direction;
} copy;

/* Copies and fills whose size is on record. A copy of no time counts as one nanosecond, so that its rate is finite. */
static copy *copies(const bz_tables *m, size_t *n)
{
    copy *list = bz_alloc(m->t->event[BZ_EVENT_COPY].n + m->t->event[BZ_EVENT_MEMSET].n + 1, sizeof *list);
    *n = 0;
    for (work w = {0}; tables_next(m, &w);) {
        const bz_events *e = &m->t->event[w.kind];
        if (w.kind == BZ_EVENT_KERNEL || e->bytes[w.i] <= 0)
            continue;
        int64_t end = w.end > w.start ? w.end : w.start + 1;
        list[(*n)++] = (copy){w.start, end, (double)e->bytes[w.i] * 1e9 / (double)(end - w.start),
                              tables_direction(m, w.kind, w.i)};
    }
    return list;
}

typedef struct change {
    int64_t at;
    double rate;
    uint32_t direction;
} change;

/* What ends makes room first. */
BZ_SORTS(by_direction, change,
         BZ_THEN(BZ_ORDER(p->direction, q->direction), BZ_THEN(BZ_ORDER(p->at, q->at), BZ_ORDER(p->rate, q->rate))));

/* The sum of the rates of all copies of a direction that run changes where one begins or ends; the figures are of its values
 * other than 0, one for each change, as HTA has them. */
void fill_bandwidth(bz_tables *m, bz_sheet *s)
{
    size_t n;
    BZ_FREED copy *list = copies(m, &n);
    BZ_FREED change *c = bz_alloc(2 * n + 1, sizeof *c);
    double *value = bz_alloc(2 * n + 1, sizeof *value), count[DIRECTIONS] = {0};
    for (size_t i = 0; i < n; i++) {
        c[2 * i] = (change){list[i].start, list[i].rate, list[i].direction};
        c[2 * i + 1] = (change){list[i].end, -list[i].rate, list[i].direction};
        count[list[i].direction]++;
    }
    qsort(c, 2 * n, sizeof *c, by_direction);
    for (size_t i = 0, values; i < 2 * n;) {
        uint32_t direction = c[i].direction;
        int running = 0;
        double rate = 0;
        for (values = 0; i < 2 * n && c[i].direction == direction; i++) {
            running += c[i].rate > 0 ? 1 : -1;
            rate = running > 0 ? rate + c[i].rate : 0; /* without the rounding of what came and went */
            if (rate > 0)
                value[values++] = rate;
        }
        figures f = figures_of(value, values);
        BZ_SHEET_ADD(s, BZ_TEXT(tables_direction_name(direction)), BZ_NUMBER(count[direction]), BZ_NUMBER(f.count),
                     BZ_NUMBER(f.mean), BZ_NUMBER(f.deviation), BZ_NUMBER(f.min), BZ_NUMBER(f.quarter),
                     BZ_NUMBER(f.median), BZ_NUMBER(f.three_quarters), BZ_NUMBER(f.max));
    }
    free(value);
}

/* Bytes that were moved in equal parts of the time, divided by that time. */
void fill_bandwidth_series(bz_tables *m, bz_sheet *s)
{
    enum { PARTS = 100 };
    size_t n;
    BZ_FREED copy *list = copies(m, &n);
    int64_t first = INT64_MAX, last = INT64_MIN;
    BZ_FREED double(*bytes)[PARTS] = bz_zeroed(DIRECTIONS, sizeof *bytes);
    bool seen[DIRECTIONS] = {false};
    for (work w = {0}; tables_next(m, &w);) {
        first = w.start < first ? w.start : first;
        last = w.end > last ? w.end : last;
    }
    double width = n && last > first ? (double)(last - first) / PARTS : 1;
    for (size_t i = 0; i < n; i++) {
        double from = (double)(list[i].start - first), to = (double)(list[i].end - first);
        seen[list[i].direction] = true;
        for (int p = (int)(from / width); p < PARTS && width * p < to; p++) {
            double low = width * p > from ? width * p : from, high = width * (p + 1) < to ? width * (p + 1) : to;
            bytes[list[i].direction][p] += high > low ? list[i].rate * (high - low) / 1e9 : 0;
        }
    }
    for (uint32_t d = 0; d < DIRECTIONS; d++)
        for (int p = 0; p < PARTS && seen[d]; p++)
            BZ_SHEET_ADD(s, BZ_TEXT(tables_direction_name(d)), BZ_NUMBER(width * p / 1e9), BZ_NUMBER(bytes[d][p]),
                         BZ_NUMBER(bytes[d][p] / width * 1e9));
}
