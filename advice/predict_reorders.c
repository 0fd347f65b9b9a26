/* What reorders took in a program, by how many bytes they moved. Small tensors stay in caches and in memory that the program
 * has; large ones cost more by the byte: a reorder takes what those of about its size took. */
#include "advice/constants.h"
#include "advice/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_bytes(const void *x, const void *y)
{
    const predict_reorder *a = x, *b = y;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static double rate_of(const predict_reorder *list, int n, bz_arena *arena)
{
    double *rate = BZ_NEW(arena, double, n);
    for (int i = 0; i < n; i++)
        rate[i] = list[i].seconds / list[i].bytes;
    return bz_quantiles_of(rate, (size_t)n).p50;
}

typedef struct same_size {
    double bytes, rate; /* of one; seconds by the byte, the median */
    int n;
} same_size;

static int by_rate(const void *x, const void *y)
{
    const same_size *a = x, *b = y;
    return (a->rate > b->rate) - (a->rate < b->rate);
}

/* New memory shows: reorders of a size take several times as long by the byte as those that half of all bytes are in. */
static void find_fresh(predict_reorders *r, bz_arena *arena)
{
    const predict_reorder *list = r->list[0];
    same_size *size = BZ_NEW(arena, same_size, r->n[0]);
    double all = 0, sum = 0, bytes = 0, seconds = 0;
    int n = 0, usual = 0;
    for (int i = 0, end; i < r->n[0]; i = end) {
        for (end = i + 1; end < r->n[0] && list[end].bytes <= list[i].bytes; end++)
            ;
        size[n++] = (same_size){list[i].bytes, rate_of(list + i, end - i, arena), end - i};
        all += list[i].bytes * (end - i);
    }
    if (n)
        qsort(size, (size_t)n, sizeof *size, by_rate);
    while (usual < n - 1 && (sum += size[usual].bytes * size[usual].n) < all / 2)
        usual++;
    for (int i = usual; i < n; i++)
        if (size[i].bytes >= PREDICT_FRESH_LEAST && size[i].rate > PREDICT_FRESH_FAR * size[usual].rate) {
            r->fresh_from = fmin(r->fresh_from, size[i].bytes);
            bytes += size[i].bytes * size[i].n;
            seconds += size[i].bytes * size[i].n * (size[i].rate - size[usual].rate);
        }
    r->fresh = bytes > 0 ? seconds / bytes : 0;
}

void predict_reorders_find(const bz_trace *t, bz_arena *arena, predict_reorders *out)
{
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    *out = (predict_reorders){{BZ_NEW(arena, predict_reorder, c->n), BZ_NEW(arena, predict_reorder, c->n)},
                              .fresh_from = INFINITY};
    for (size_t i = 0; i < c->n; i++) {
        const bz_call *call = bz_call_of(t, i);
        if (!bz_call_works(t, i) || !bz_event_is_steady(t, BZ_EVENT_CALL, i) ||
            strcmp(bz_string(t, c->name[i]), "reorder") != 0 || !call->x.dtype || !call->y.type)
            continue;
        int weights = call->y.by_output;
        double bytes = (double)call->elements * bz_dtype_bits(call->x.dtype) / 8;
        if (bytes > 0)
            out->list[weights][out->n[weights]++] = (predict_reorder){bytes, 1e-9 * (double)(c->end[i] - c->start[i])};
    }
    for (int w = 0; w < 2; w++)
        if (out->n[w])
            qsort(out->list[w], (size_t)out->n[w], sizeof *out->list[w], by_bytes);
    find_fresh(out, arena);
}

static double further(double a, double b)
{
    return a > b ? a / b : b / a;
}

/* The median rate of those that are off by at most half; where there are none, of those that are nearest. */
double predict_reorder_time(const predict_reorders *r, bool weights, double bytes, bz_arena *arena)
{
    const predict_reorder *list = r->list[weights];
    int n = r->n[weights], kept = 0;
    double within = PREDICT_SAME_SIZE, *rate = BZ_NEW(arena, double, n);
    if (!n || !(bytes > 0))
        return 0;
    double nearest = further(list[0].bytes, bytes);
    for (int i = 1; i < n; i++)
        nearest = further(list[i].bytes, bytes) < nearest ? further(list[i].bytes, bytes) : nearest;
    within = nearest > within ? nearest : within;
    for (int i = 0; i < n; i++)
        if (further(list[i].bytes, bytes) <= within)
            rate[kept++] = list[i].seconds / list[i].bytes;
    return bytes * bz_quantiles_of(rate, (size_t)kept).p50;
}
