/* Calls that were faster than the bound of their layers: which, and why that can be. A bound is as low as the records that
 * it rests on, and no lower. */
#include "analyzer/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By what a place of a pattern costs, where the call did its layers and no others. */
static double fused_price(const bz_bound *b, const bz_aligned *row)
{
    for (int g = 0; g < b->fused.n_places && row->n_layers > 1; g++) {
        const bz_bound_place *p = &b->fused.place[g];
        bool same = p->n == row->n_layers && p->price.alternative;
        for (int k = 0; same && k < p->n; k++)
            same = b->layer[row->layer[k]].node == p->layer[k];
        if (same)
            return p->price.low;
    }
    return INFINITY;
}

/* The least that the records allow for the row's layers; NAN where one of them has no price. */
static double lowest(const bz_bound *b, const bz_aligned *row)
{
    double sum = 0;
    for (int k = 0; k < row->n_layers; k++) {
        const bz_layer_price *p = &b->layer[row->layer[k]].price;
        sum += p->alternative ? p->low : p->seconds;
    }
    return isfinite(sum) ? fmin(sum, fused_price(b, row)) : NAN;
}

/* "onednn jit:avx512_core any": the record's variant is the one that the call used. */
static bool is_variant(const char *record, const char *used)
{
    const char *at = record ? strchr(record, ' ') : NULL;
    return at && used && !strncmp(at + 1, used, strlen(used)) && strchr(" ", at[1 + strlen(used)]);
}

static const char *why(const bz_bound *b, const bz_aligned *row, bz_arena *arena)
{
    const bz_bound_layer *l = &b->layer[row->layer[0]];
    for (int k = 0; k < row->n_layers; k++)
        if (b->layer[row->layer[k]].price.provenance == BZ_PROVENANCE_MODELLED)
            return "the library has no call for it: its price is that of a copy of as many bytes";
    for (int k = 0; k < row->n_layers; k++)
        if (b->layer[row->layer[k]].floor)
            return "its record was timed by event pairs, which carry a floor";
    if (is_variant(l->variant, row->variant))
        return bz_arena_printf(arena, "the same %s as its record%s: placement, clock or noise", row->variant,
                               l->price.noisy ? ", which is marked noisy" : "");
    const char *did = row->variant ? row->variant : row->call;
    const char *together = row->n_layers > 1 ? bz_arena_printf(arena, " with %d more layers", row->n_layers - 1) : "";
    return bz_arena_printf(arena, "%s did it%s, the best record is of %s%s", did, together,
                           l->variant ? l->variant : "nothing", l->price.noisy ? ", marked noisy" : "");
}

static int most(const void *x, const void *y)
{
    const bz_faster *a = x, *b = y;
    double s = a->lowest - a->row->seconds, t = b->lowest - b->row->seconds;
    if (s != t)
        return s > t ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

void align_faster(const bz_bound *bound, bz_arena *arena, bz_alignment *out)
{
    bz_faster *list = BZ_NEW(arena, bz_faster, out->n);
    for (int i = 0; i < out->n; i++) {
        const bz_aligned *row = &out->row[i];
        if (!row->n_layers || row->kind == BZ_ALIGNED_SPLIT || !(row->seconds > 0))
            continue;
        double least = lowest(bound, row);
        if (row->seconds < least)
            list[out->n_faster++] = (bz_faster){row, least, why(bound, row, arena)};
    }
    if (out->n_faster)
        qsort(list, (size_t)out->n_faster, sizeof *list, most);
    out->faster = list;
}
