/* One piece of memory for all that lives between two steps. */
#include "base/sort.h"
#include "runtime/replay_open.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

BZ_SORTS(larger_first, bz_lifetime *const,
         BZ_THEN(BZ_ORDER((*q)->bytes, (*p)->bytes), BZ_THEN(BZ_ORDER((*p)->first, (*q)->first), BZ_ORDER(*p, *q))));

BZ_SORTS(earlier_first, bz_lifetime *const, BZ_THEN(BZ_ORDER((*p)->first, (*q)->first), larger_first(a, b)));

BZ_SORTS(longer_first, bz_lifetime *const,
         BZ_THEN(BZ_ORDER((*q)->last - (*q)->first, (*p)->last - (*p)->first), larger_first(a, b)));

static int area_first(const void *a, const void *b)
{
    const bz_lifetime *x = *(const bz_lifetime *const *)a, *y = *(const bz_lifetime *const *)b;
    double p = (double)x->bytes * (x->last - x->first + 1), q = (double)y->bytes * (y->last - y->first + 1);
    return BZ_THEN(BZ_ORDER(q, p), larger_first(a, b));
}

BZ_SORTS(lower_first, bz_lifetime *const, BZ_ORDER((*p)->offset, (*q)->offset));

/* The smallest gap between those that live at the same time; behind them where none is large enough. */
static size_t find_gap(const bz_lifetime *l, bz_lifetime *const *placed, int n, bz_lifetime **at_once)
{
    int k = 0;
    size_t end = 0, best = SIZE_MAX, smallest = SIZE_MAX;
    for (int i = 0; i < n; i++)
        if (placed[i]->first <= l->last && l->first <= placed[i]->last)
            at_once[k++] = placed[i];
    qsort(at_once, (size_t)k, sizeof(bz_lifetime *), lower_first);
    for (int i = 0; i < k; i++) {
        size_t gap = at_once[i]->offset > end ? at_once[i]->offset - end : 0;
        if (gap >= l->bytes && gap < smallest)
            smallest = gap, best = end;
        size_t behind = at_once[i]->offset + at_once[i]->bytes;
        end = behind > end ? behind : end;
    }
    return best == SIZE_MAX ? end : best;
}

/* Most bytes that live at once: a sum changes only where something begins to live. */
static size_t live_at_once(const bz_lifetime *list, int n)
{
    size_t most = 0;
    for (int i = 0; i < n; i++) {
        size_t sum = 0;
        for (int k = 0; k < n; k++)
            sum += list[k].first <= list[i].first && list[i].first <= list[k].last ? list[k].bytes : 0;
        most = sum > most ? sum : most;
    }
    return most;
}

/* Places all in this order. Returns the peak; *top is who reaches it. */
static size_t place_in_order(bz_lifetime **order, int n, bz_lifetime **at_once, int *top)
{
    size_t peak = 0;
    for (int i = 0; i < n; i++) {
        order[i]->offset = find_gap(order[i], order, i, at_once);
        size_t behind = order[i]->offset + order[i]->bytes;
        if (behind > peak)
            peak = behind, *top = i;
    }
    return peak;
}

/* No order is the best for all: several are tried, and each again and again with whoever reached the peak placed first. */
size_t bz_lifetimes_place(bz_lifetime *list, int n, size_t *least)
{
    static int (*const ORDERS[])(const void *, const void *) = {larger_first, area_first, longer_first, earlier_first};
    BZ_FREED bz_lifetime **order = bz_alloc((size_t)n + 1, sizeof *order),
                         **at_once = bz_alloc((size_t)n + 1, sizeof *at_once);
    size_t *offset = bz_alloc((size_t)n + 1, sizeof *offset), best = SIZE_MAX, lower = live_at_once(list, n);
    int again = n < 500 ? 40 : 5;
    for (size_t o = 0; o < sizeof ORDERS / sizeof *ORDERS && best > lower; o++) {
        for (int i = 0; i < n; i++)
            order[i] = &list[i];
        qsort(order, (size_t)n, sizeof *order, ORDERS[o]);
        for (int round = 0, top = 0; round < again && best > lower; round++) {
            size_t peak = place_in_order(order, n, at_once, &top);
            for (int i = 0; i < n && peak < best; i++)
                offset[i] = list[i].offset;
            best = peak < best ? peak : best;
            bz_lifetime *first = n ? order[top] : NULL;
            memmove(order + 1, order, (size_t)top * sizeof *order);
            order[0] = first;
        }
    }
    for (int i = 0; i < n; i++)
        list[i].offset = offset[i];
    if (least)
        *least = lower;
    free(offset);
    return n ? best : 0;
}
