/* Deviations: what was called beside what the layers ask for, and who took the rest of the time. */
#include "base/member.h"
#include "base/sort.h"
#include "report/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CAUSES = 10, DEVIATIONS = 10, FASTER = 5 };

static const char *layer_names(const bz_bound *b, const bz_aligned *row, bz_arena *arena)
{
    if (!row->n_layers)
        return "-";
    const char *name = b->layer[row->layer[0]].layer->name;
    return row->n_layers == 1 ? name : bz_arena_printf(arena, "%s + %d", name, row->n_layers - 1);
}

static const char *changes(const bz_aligned *row, bz_arena *arena)
{
    const char *text = row->moved ? "moved" : "";
    for (int i = 0; i < row->n_changes; i++) {
        const bz_change *c = &row->change[i];
        text = bz_arena_printf(arena, "%s%s%s %s, expected %s", text, *text ? "; " : "", c->parameter, c->found,
                               c->expected);
    }
    return text;
}

/* Rows that deviate in the same way are one line. */
typedef struct deviation {
    const bz_aligned *first;
    const char *what;
    int count;
    double seconds;
} deviation;

BZ_SORTS(most, deviation,
         BZ_THEN(BZ_ORDER(q->seconds, p->seconds),
                 BZ_THEN(BZ_ORDER(q->count, p->count), BZ_ORDER(p->first, q->first))));

static bool deviates(const bz_aligned *row)
{
    return row->moved || row->kind == BZ_ALIGNED_CHANGED || row->kind == BZ_ALIGNED_FUSED ||
           row->kind == BZ_ALIGNED_EXTRA || row->kind == BZ_ALIGNED_MISSING;
}

/* What a deviation is told by: a kind of layer that is missing, a call with its changes. */
static const char *what_of(const bz_bound *b, const bz_aligned *row, bz_arena *arena)
{
    if (row->kind == BZ_ALIGNED_MISSING)
        return b->layer[row->layer[0]].layer->kind;
    const char *text = changes(row, arena);
    if (row->kind != BZ_ALIGNED_FUSED)
        return bz_arena_printf(arena, "%s%s%s", row->call, *text ? ": " : "", text);
    for (int i = 0, times; i < row->n_layers; i += times) {
        const char *kind = b->layer[row->layer[i]].layer->kind, *before = i ? " + " : *text ? "; " : "";
        for (times = 1; i + times < row->n_layers && !strcmp(kind, b->layer[row->layer[i + times]].layer->kind);
             times++)
            ;
        text = times > 2 ? bz_arena_printf(arena, "%s%s%d × %s", text, before, times, kind)
                         : bz_arena_printf(arena, "%s%s%s%s%s", text, before, kind, times > 1 ? " + " : "",
                                           times > 1 ? kind : "");
    }
    return bz_arena_printf(arena, "%s: %s", row->call, text);
}

static int gather(const bz_bound *b, const bz_alignment *a, bz_arena *arena, deviation *list)
{
    BZ_SCOPED(bz_map) map = {0};
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        const bz_aligned *row = &a->row[i];
        if (!deviates(row))
            continue;
        const char *what = what_of(b, row, arena);
        const char *key = bz_arena_printf(arena, "%d %d %s", row->kind, row->moved, what);
        uint32_t at = bz_map_add(&map, key, strlen(key), (uint32_t)n);
        if (at == (uint32_t)n)
            list[n++] = (deviation){row, what, 0, 0};
        list[at].count++;
        list[at].seconds += isfinite(row->seconds) ? row->seconds : 0;
    }
    BZ_QSORT(list, n, most);
    return n;
}

static void put_deviations(const bz_bound *b, const bz_alignment *a, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_of(arena, "deviation|>calls|>time|what|first layer|where");
    deviation *list = BZ_NEW(arena, deviation, a->n);
    int n = gather(b, a, arena, list);
    for (int i = 0; i < n && i < DEVIATIONS; i++) {
        const bz_aligned *row = list[i].first;
        BZ_ROW(t, BZ_SHOW(bz_aligned_name(row->kind)), BZ_SHOW_INT(list[i].count),
               BZ_SHOW_TIME(list[i].seconds > 0 ? list[i].seconds : NAN), BZ_SHOW(list[i].what),
               BZ_SHOW(layer_names(b, row, arena)), BZ_SHOW(row->where ? row->where : ""));
    }
    if (n)
        bz_table_print(t, out);
    if (n > DEVIATIONS)
        bz_buf_printf(out, "and %d more deviations: --json has them\n", n - DEVIATIONS);
}

static void put_causes(const bz_ladder *l, const bz_alignment *a, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_of(arena, "time that belongs to no layer|>times|>time|>of latency|example|where");
    for (int i = 0; i < a->n_causes && i < CAUSES; i++) {
        const bz_cause *c = &a->cause[i];
        BZ_ROW(t, BZ_SHOW(c->name), BZ_SHOW_DIGITS(6, c->count), BZ_SHOW_TIME(a->timeline ? c->seconds : NAN),
               BZ_SHOW_SHARE(a->timeline ? c->seconds / l->latency : NAN), BZ_SHOW(c->example ? c->example : ""),
               BZ_SHOW(c->where ? c->where : ""));
    }
    if (bz_table_rows(t))
        bz_table_print(t, out);
    if (a->n_causes > CAUSES)
        bz_buf_printf(out, "and %d more causes: --json has them\n", a->n_causes - CAUSES);
}

static void put_faster(const bz_bound *b, const bz_alignment *a, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_of(arena, "faster than its records|>took|>records|why");
    for (int i = 0; i < a->n_faster && i < FASTER; i++)
        BZ_ROW(t, BZ_SHOW(layer_names(b, a->faster[i].row, arena)), BZ_SHOW_TIME(a->faster[i].row->seconds),
               BZ_SHOW_TIME(a->faster[i].lowest), BZ_SHOW(a->faster[i].why));
    if (a->n_faster)
        bz_table_print(t, out);
    if (a->n_faster > FASTER)
        bz_buf_printf(out, "and %d more that are faster: --json has them\n", a->n_faster - FASTER);
}

void report_align_text(const bz_bound *b, const bz_ladder *l, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    const bz_alignment *a = l->alignment;
    if (!a || !a->made)
        return;
    bz_buf_say(out, "\ncalls of %s: %d%s, where the model's layers need %d:", l->profile, a->made,
               l->device ? " with kernels" : "", a->expected);
    for (int k = 0, shown = 0; k < BZ_ALIGNED_KINDS; k++)
        if (a->count[k])
            bz_buf_printf(out, "%s %d %s", shown++ ? "," : "", a->count[k], bz_aligned_name((bz_aligned_kind)k));
    if (a->moved)
        bz_buf_printf(out, "; %d moved", a->moved);
    bz_buf_putc(out, '\n');
    if (a->timeline)
        bz_buf_printf(out, "  the calls of the model's layers took %s, everything else %s of the iteration's %s\n",
                      BZ_SAY_TIME(a->asked), BZ_SAY_TIME(l->recorded - a->asked), BZ_SAY_TIME(l->recorded));
    put_causes(l, a, &arena, out);
    put_deviations(b, a, &arena, out);
    if (bz_ladder_compares(l))
        put_faster(b, a, &arena, out);
}

static const bz_member CHANGE[] = {BZ_FIELDS(bz_change, parameter, expected, found)};

static void put_row(const bz_bound *b, const bz_aligned *row, bz_json *j)
{
    BZ_JSON(j, BZ_TELL("kind", bz_aligned_name(row->kind)), BZ_TELL("moved", row->moved));
    BZ_JSON_LIST(j, "layers", str, i, row->n_layers, b->layer[row->layer[i]].layer->name);
    BZ_PUT(j, bz_aligned, row, call, problem, variant, where, seconds, bound);
    bz_members_rows("changes", BZ_MEMBERS(CHANGE), row->change, sizeof *row->change, row->n_changes, j);
}

static const bz_member CAUSE[] = {BZ_FIELDS(bz_cause, id, name, busy, count, seconds, example, where)};

void report_align_json(const bz_bound *b, const bz_alignment *a, bz_json *j)
{
    bz_json_key_object(j, "alignment");
    BZ_JSON(j, BZ_TELL("expected", a->expected), BZ_TELL("made", a->made));
    for (int k = 0; k < BZ_ALIGNED_KINDS; k++)
        bz_json_key_int(j, bz_aligned_name((bz_aligned_kind)k), a->count[k]);
    BZ_JSON(j, BZ_TELL("moved", a->moved), BZ_TELL("asked", a->asked));
    bz_members_rows("causes", BZ_MEMBERS(CAUSE), a->cause, sizeof *a->cause, a->n_causes, j);
    BZ_JSON_EACH (j, "faster", i, a->n_faster)
        BZ_JSON(j, BZ_TELL("row", a->faster[i].row - a->row), BZ_TELL("lowest", a->faster[i].lowest),
                BZ_TELL("why", a->faster[i].why));
    BZ_JSON_EACH (j, "rows", i, a->n)
        put_row(b, &a->row[i], j);
    bz_json_object_end(j);
}
