/* Calls that were faster than the bound of their layers: which, and why that can be. A bound is as low as the records that
 * it rests on, and no lower. */
#include "base/sort.h"
#include "explain/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct search {
    const bz_bound *b;
    int *first, *next; /* places by their last layer's node, as chains: number + 1; 0 ends one. NULL: there are none */
} search;

static void index_places(search *s, bz_arena *arena)
{
    const bz_bound_fused *f = &s->b->fused;
    if (!f->n_places) /* as in layers that a profile shows: they have no graph */
        return;
    s->first = BZ_NEW(arena, int, s->b->dag->n);
    s->next = BZ_NEW(arena, int, f->n_places);
    for (int g = 0; g < f->n_places; g++) {
        int *first = &s->first[f->place[g].layer[f->place[g].n - 1]];
        s->next[g] = *first;
        *first = g + 1;
    }
}

/* Which of the row's layers the node is; n_layers where it is none. */
static int index_of(const bz_bound *b, const bz_aligned *row, int node)
{
    int k = 0;
    while (k < row->n_layers && b->layer[row->layer[k]].node != node)
        k++;
    return k;
}

/* Has the place a price, and no layer that the row has not? */
static bool is_within(const bz_bound *b, const bz_aligned *row, const bz_bound_place *p)
{
    int i = 0;
    while (p->price.alternative && i < p->n && index_of(b, row, p->layer[i]) < row->n_layers)
        i++;
    return p->price.alternative && i == p->n;
}

/* The places that end with the layer, one behind the other: number + 1; 0 ends them. */
static int first_place(const search *s, const bz_aligned *row, int layer)
{
    return s->first && row->n_layers > 1 ? s->first[s->b->layer[layer].node] : 0;
}

static double price_of(const bz_bound_layer *l)
{
    return l->price.alternative ? l->price.low : l->price.seconds;
}

/* least[set of layers that are done]: on to those with layer k, by itself or in a place that ends with it. */
static void take_layer(const search *s, const bz_aligned *row, int k, double *least)
{
    const bz_bound *b = s->b;
    unsigned all = 1U << row->n_layers;
    double own = price_of(&b->layer[row->layer[k]]);
    for (unsigned done = 0; done < all && isfinite(own); done++)
        if (!(done >> k & 1))
            least[done | 1U << k] = fmin(least[done | 1U << k], least[done] + own);
    for (int g = first_place(s, row, row->layer[k]); g; g = s->next[g - 1]) {
        const bz_bound_place *p = &b->fused.place[g - 1];
        unsigned mask = 0;
        for (int i = 0, inside = is_within(b, row, p); i < p->n && inside; i++)
            mask |= 1U << index_of(b, row, p->layer[i]);
        for (unsigned done = 0; done < all && mask; done++)
            if (!(done & mask))
                least[done | mask] = fmin(least[done | mask], least[done] + p->price.low);
    }
}

/* The layers of the row that a place may take together, those alone. Returns what the others take by themselves. */
static double leave_single(const search *s, const bz_aligned *row, bz_aligned *together, int *layer)
{
    double sum = 0;
    BZ_FREED bool *inside = bz_zeroed((size_t)row->n_layers, sizeof *inside);
    for (int k = 0; k < row->n_layers; k++)
        for (int g = first_place(s, row, row->layer[k]); g; g = s->next[g - 1]) {
            const bz_bound_place *p = &s->b->fused.place[g - 1];
            for (int i = 0, all = is_within(s->b, row, p); i < p->n && all; i++)
                inside[index_of(s->b, row, p->layer[i])] = true;
        }
    *together = (bz_aligned){.layer = layer};
    for (int k = 0; k < row->n_layers; k++)
        if (inside[k])
            layer[together->n_layers++] = row->layer[k];
        else
            sum += price_of(&s->b->layer[row->layer[k]]);
    return sum;
}

/* The lowest price of the row's layers, single or in places of patterns that contain no other layer; NAN where a layer has no
 * price in either way, or where places take so many that their ways are not counted. A row has mostly one layer; an optimizer's step has as many
 * as the model has weights. */
static double lowest(const search *s, const bz_aligned *row)
{
    BZ_FREED int *layer = bz_alloc((size_t)row->n_layers, sizeof *layer);
    bz_aligned together;
    double sum = leave_single(s, row, &together, layer);
    if (together.n_layers <= BZ_ALIGN_ATOMS) {
        unsigned all = 1U << together.n_layers;
        BZ_FREED double *least = bz_alloc(all, sizeof *least);
        for (unsigned done = 0; done < all; done++)
            least[done] = done ? INFINITY : 0;
        for (int k = 0; k < together.n_layers; k++)
            take_layer(s, &together, k, least);
        sum += least[all - 1];
    } else {
        sum = NAN;
    }
    return isfinite(sum) ? sum : NAN;
}

static bool begins_with(const char *text, const char *variant)
{
    size_t n = strlen(variant);
    return n && !strncmp(text, variant, n) && strchr(" ", text[n]);
}

/* "onednn jit:avx512_core any", "cublas_gemm": the record's variant is the one that the call used. What begins with the
 * library's name does not have it twice. */
static bool is_variant(const char *record, const char *used)
{
    const char *at = record ? strchr(record, ' ') : NULL;
    return used && record && (begins_with(record, used) || (at && begins_with(at + 1, used)));
}

static const char *why(const bz_bound *b, const bz_aligned *row, bz_arena *arena)
{
    const bz_bound_layer *l = &b->layer[row->layer[0]];
    for (int k = 0; k < row->n_layers; k++)
        if (b->layer[row->layer[k]].price.provenance == BZ_PROVENANCE_MODELLED)
            return "the library has no call for it: its price is that of a copy of as many bytes";
    for (int k = 0; k < row->n_layers; k++)
        if (b->layer[row->layer[k]].floor)
            return "its record was timed by events, which carry a floor";
    for (int i = 0; i < row->n_changes; i++)
        if (strcmp(row->change[i].parameter, "call") != 0)
            return bz_arena_printf(arena, "it is other work: %s is %s, the layer's %s", row->change[i].parameter,
                                   row->change[i].found, row->change[i].expected);
    if (row->n_layers == 1 && is_variant(l->variant, row->variant))
        return bz_arena_printf(arena, "the same %s as its record%s: placement, clock or noise", row->variant,
                               l->price.noisy ? ", which is marked noisy or busy" : "");
    const char *did = row->variant ? row->variant : row->call;
    const char *together = row->n_layers > 1 ? bz_arena_printf(arena, " with %d more layers", row->n_layers - 1) : "";
    return bz_arena_printf(arena, "%s did it%s, the best record is of %s%s", did, together,
                           l->variant ? l->variant : "nothing", l->price.noisy ? ", marked noisy or busy" : "");
}

BZ_SORTS(most, bz_faster,
         BZ_THEN(BZ_ORDER(q->lowest - q->row->seconds, p->lowest - p->row->seconds), BZ_ORDER(p->row, q->row)));

void bz_align_faster(const bz_bound *bound, bz_arena *arena, bz_alignment *out)
{
    bz_faster *list = BZ_NEW(arena, bz_faster, out->n);
    search s = {.b = bound};
    index_places(&s, arena);
    for (int i = 0; i < out->n; i++) {
        const bz_aligned *row = &out->row[i];
        if (!row->n_layers || row->kind == BZ_ALIGNED_SPLIT || !(row->seconds > 0))
            continue;
        double least = lowest(&s, row);
        if (row->seconds < least)
            list[out->n_faster++] = (bz_faster){row, least, why(bound, row, arena)};
    }
    BZ_QSORT(list, out->n_faster, most);
    out->faster = list;
}
