/* Layers that the framework does itself, between the library's calls. Nothing tells what each of them took, but stretches
 * between calls have many of them in other numbers and sizes. */
#include "advice/constants.h"
#include "advice/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct stretch {
    double layers, bytes; /* without those of `left` */
    double largest;       /* bytes of a layer's result */
    double seconds;
    double excess;  /* above what it would take by its layers and bytes, as those without `left` do */
    uint64_t kinds; /* of its layers, in their order */
    bool left;      /* it has some of these */
} stretch;

static uint64_t add_kind(uint64_t kinds, const char *kind)
{
    bz_hash h = bz_hash_bytes(kind, strlen(kind));
    return kinds * 31 + h.low;
}

/* Where one stretch ends and the next begins there is a call that does a layer. */
static int find_stretches(const bz_bound *b, const bz_alignment *a, const bz_trace *t, const bool *left, stretch *out)
{
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    int64_t last = INT64_MAX;
    stretch s = {0};
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        const bz_aligned *row = &a->row[i];
        for (int k = 0; row->kind == BZ_ALIGNED_MISSING && k < row->n_layers; k++) {
            int layer = row->layer[k];
            const bz_layer *l = b->layer[layer].layer;
            bool stays = left && left[layer];
            s.left |= stays;
            s.layers += !stays;
            s.bytes += stays ? 0 : bz_peaks_bytes(l, NULL, BZ_UNDEFINED);
            s.kinds = add_kind(s.kinds, l->kind);
            if (l->n_out)
                s.largest = fmax(s.largest, bz_peaks_bytes(l, &l->out[0], BZ_UNDEFINED));
        }
        if (row->at >= c->n) /* missing, or an operator: those have times of their own */
            continue;
        if (c->start[row->at] > last)
            s.seconds += 1e-9 * (double)(c->start[row->at] - last);
        last = c->end[row->at];
        if (!row->n_layers) /* a reorder or the like: the stretch goes on behind it */
            continue;
        if (s.layers > 0 || s.left)
            out[n++] = s;
        s = (stretch){0};
    }
    return n;
}

static void find_excess(stretch *s, int n, bz_arena *arena)
{
    predict_point *point = BZ_NEW(arena, predict_point, n);
    double per_layer, per_byte;
    int points = 0;
    for (int i = 0; i < n; i++)
        if (!s[i].left)
            point[points++] = (predict_point){s[i].layers, s[i].bytes, s[i].seconds, 1};
    predict_fit(point, points, &per_layer, &per_byte);
    for (int i = 0; i < n; i++)
        s[i].excess = fmax(0, s[i].seconds - (per_layer * s[i].layers + per_byte * s[i].bytes));
}

double predict_left(const bz_bound *b, const bz_alignment *a, const bz_trace *t, const bool *left, bz_arena *arena)
{
    stretch *s = BZ_NEW(arena, stretch, a->n);
    int n = find_stretches(b, a, t, left, s);
    double sum = 0;
    find_excess(s, n, arena);
    for (int i = 0; i < n; i++)
        sum += s[i].left ? s[i].excess : 0;
    return sum;
}

static int by_kinds(const void *x, const void *y)
{
    const stretch *a = x, *b = y;
    return (a->kinds > b->kinds) - (a->kinds < b->kinds);
}

double predict_fresh(const bz_bound *b, const bz_alignment *a, const bz_trace *t, double smaller, bz_arena *arena)
{
    stretch *s = BZ_NEW(arena, stretch, a->n);
    int n = find_stretches(b, a, t, NULL, s);
    double spared = 0, from = INFINITY;
    if (n)
        qsort(s, (size_t)n, sizeof *s, by_kinds);
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && s[end].kinds == s[i].kinds; end++)
            ;
        if (end - i < PREDICT_SAME_LAYERS)
            continue; /* their excess is 0 */
        find_excess(s + i, end - i, arena);
        for (int k = i; k < end; k++)
            if (s[k].excess > PREDICT_FRESH_SHARE * s[k].seconds)
                from = fmin(from, s[k].largest);
            else
                s[k].excess = 0;
    }
    for (int i = 0; i < n; i++)
        spared += s[i].excess * (smaller * s[i].largest < from ? 1 : 1 - PREDICT_FRESH_KEPT * smaller);
    return spared;
}
