/* Layers whose calls took longer than their records allow: which, by how much, and why as far as the recording tells. */
#include "analysis/constants.h"
#include "analysis/steps.h"
#include "base/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 12 };

/* Equal layers that the same call did. */
typedef struct group {
    const bz_aligned *first;
    int times;
    double took, could;
} group;

typedef struct slower_making {
    const bz_bound *b;
    const bz_ladder *l;
    bz_arena *arena;
} slower_making;

/* The variant that the call used and the best one are both on record. */
static const bz_regret_row *regret_of(const slower_making *m, const bz_aligned *row)
{
    const bz_regret *r = m->l->regret;
    for (int i = 0; r && i < r->n && row->problem; i++)
        if (r->row[i].loss > 0 && !strcmp(r->row[i].problem, row->problem) &&
            !strcmp(r->row[i].variant, row->variant ? row->variant : ""))
            return &r->row[i];
    return NULL;
}

static const char *best_of(const bz_bound_layer *l)
{
    return l->variant ? l->variant : "nothing";
}

static const char *why(const slower_making *m, const bz_aligned *row, const bz_call *call)
{
    const bz_bound_layer *l = &m->b->layer[row->layer[0]];
    const bz_regret_row *regret = regret_of(m, row);
    bz_dtype own = l->layer->n_in ? l->layer->in[0].dtype : BZ_UNDEFINED, asked = m->b->dtype ? m->b->dtype : own;
    if (!isfinite(row->bound))
        return "no record: it could take what the hardware's peaks allow (modelled)";
    if (l->price.provenance == BZ_PROVENANCE_MODELLED)
        return "no library has a call for it: it could take what a copy of as many bytes takes";
    if (call && call->dtype && bz_dtype_is_float(call->dtype) && bz_dtype_is_float(asked) &&
        bz_dtype_bits(call->dtype) > bz_dtype_bits(asked))
        return bz_arena_printf(m->arena, "type: it computed in %s, the record in %s", bz_dtype_name(call->dtype),
                               bz_dtype_name(asked));
    if (regret)
        return bz_arena_printf(m->arena, "algorithm: by the records %s takes %s, %s %s",
                               bz_variant_name(regret->variant), BZ_SAY_TIME(regret->used), regret->best_variant,
                               BZ_SAY_TIME(regret->best));
    if (call && call->x.packed && l->variant && bz_name_matches(" nhwc", l->variant))
        return bz_arena_printf(m->arena, "layout: its data lay in NCHW, the best record is of %s", l->variant);
    for (int i = 0; i < row->n_changes; i++)
        if (strcmp(row->change[i].parameter, "call") != 0)
            return bz_arena_printf(m->arena, "other work: %s is %s, the layer's %s", row->change[i].parameter,
                                   row->change[i].found, row->change[i].expected);
    if (!row->variant)
        return bz_arena_printf(m->arena, "implementation: %s did it by itself, the best record is of %s",
                               row->call ? row->call : "the program", best_of(l));
    if (l->variant && bz_name_matches(row->variant, l->variant))
        return "in the program: the same implementation as its record, with colder caches, or disturbed";
    return bz_arena_printf(m->arena, "implementation: %s did it, the best record is of %s",
                           bz_variant_name(row->variant), best_of(l));
}

static bool equal(const slower_making *m, const bz_aligned *a, const bz_aligned *b)
{
    bool same = a->n_layers == b->n_layers && !strcmp(a->call ? a->call : "", b->call ? b->call : "") &&
                !strcmp(a->variant ? a->variant : "", b->variant ? b->variant : "");
    for (int k = 0; k < a->n_layers && same; k++)
        same = !strcmp(m->b->layer[a->layer[k]].layer->key, m->b->layer[b->layer[k]].layer->key);
    return same;
}

/* By the records; where one of its layers has none, by the peaks of the hardware. */
static double could_take(const slower_making *m, const bz_aligned *row)
{
    double sum = 0;
    for (int k = 0; k < row->n_layers && !isfinite(row->bound); k++)
        sum += m->b->layer[row->layer[k]].hardware * m->b->layer[row->layer[k]].times;
    return isfinite(row->bound) ? row->bound : sum;
}

BZ_SORTS(most, group, BZ_THEN(BZ_ORDER(q->took - q->could, p->took - p->could), BZ_ORDER(p->first, q->first)));

static int find_groups(const slower_making *m, group *list)
{
    const bz_alignment *a = m->l->alignment;
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        const bz_aligned *row = &a->row[i];
        double could = row->n_layers && row->kind != BZ_ALIGNED_SPLIT ? could_take(m, row) : NAN;
        if (!(could > 0) || !(row->seconds > could))
            continue;
        int k = n;
        while (k && !equal(m, list[k - 1].first, row))
            k--;
        group *g = k ? &list[k - 1] : &list[n++];
        g->first = g->first ? g->first : row;
        g->times++;
        g->took += row->seconds;
        g->could += could;
    }
    BZ_QSORT(list, n, most);
    return n;
}

int analyze_slower(analyze_work *w, const analyze_place *at)
{
    static const char COLUMNS[] =
        "layer|times:n=equal layers|call=done by|took:s|could:s=could take|lost:s|share:%=of latency|why";
    slower_making m = {&at->item->bound, at->ladder, w->arena};
    const bz_alignment *a = at->ladder->alignment;
    if (!a->timeline || !(at->ladder->latency > 0) || !bz_ladder_compares(at->ladder))
        return 0;
    group *list = BZ_NEW(w->arena, group, a->n);
    int n = find_groups(&m, list), shown = 0;
    bz_sheet *sheet = analyze_sheet(
        w, at, "slower", bz_arena_printf(w->arena, "Layers slower than they could be, in %s", at->profile), COLUMNS);
    double rest = 0;
    for (int i = 0; i < n; i++) {
        const bz_aligned *row = list[i].first;
        double lost = list[i].took - list[i].could;
        const char *name = m.b->layer[row->layer[0]].layer->name;
        if (shown == ROWS || lost < WORTH_A_LINE * at->ladder->latency) {
            rest += lost;
            continue;
        }
        shown++;
        const bz_call *call = row->problem ? bz_call_of(at->trace, row->at) : NULL;
        BZ_SHEET_ADD(
            sheet,
            BZ_TEXT(row->n_layers > 1 ? bz_arena_printf(w->arena, "%s and %d more", name, row->n_layers - 1) : name),
            BZ_NUMBER(list[i].times), BZ_TEXT(row->call), BZ_NUMBER(list[i].took), BZ_NUMBER(list[i].could),
            BZ_NUMBER(lost), BZ_NUMBER(lost / at->ladder->latency), BZ_TEXT(why(&m, row, call)));
    }
    sheet->note = n > shown ? bz_arena_printf(w->arena, "in %s; %d more lost %s together", at->profile, n - shown,
                                              BZ_SAY_TIME(rest))
                            : bz_arena_printf(w->arena, "in %s", at->profile);
    return 0;
}
