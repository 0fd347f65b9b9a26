/* Two recordings side by side, by operator; by kernel where one of them has no operators. */
#include "tables/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct side {
    double count, time, device; /* per iteration where both have some, in seconds */
} side;

typedef struct row {
    const char *name;
    side of[2];
} row;

typedef struct rows {
    bz_map map; /* name -> row */
    row *row;
    uint32_t n;
} rows;

static side *side_of(rows *r, const char *name, int which)
{
    uint32_t at = bz_map_add(&r->map, name, strlen(name), r->n);
    if (at == r->n)
        BZ_ADD(r->row, r->n) = (row){.name = name};
    return &r->row[at].of[which];
}

static void add_side(bz_tables *m, rows *r, int which, bz_event_kind kind, bool by_iteration)
{
    const bz_trace *t = m->t;
    const bz_events *e = &t->event[kind], *op = &t->event[BZ_EVENT_OP];
    double each = by_iteration ? (double)bz_steady_iterations(t) : 1;
    for (size_t i = 0; i < e->n; i++) {
        uint32_t shown = bz_event_shown(t, kind, i);
        if (!tables_in(m, kind, i) || (by_iteration && !bz_event_is_steady(t, kind, i)) ||
            tables_is_numbered(bz_string(t, shown)))
            continue;
        side *s = side_of(r, bz_string(t, shown), which);
        s->count += 1 / each;
        s->time += tables_seconds(e->end[i] - e->start[i]) / each;
        if (kind == BZ_EVENT_KERNEL)
            s->device = s->time;
    }
    for (work w = {0}; kind == BZ_EVENT_OP && tables_next(m, &w);) {
        uint32_t by = tables_op(m, w.kind, w.i);
        if (by < op->n && (!by_iteration || bz_event_is_steady(t, w.kind, w.i)) &&
            !tables_is_numbered(bz_string(t, op->name[by])))
            side_of(r, bz_string(t, op->name[by]), which)->device += tables_seconds(w.end - w.start) / each;
    }
}

void fill_difference(bz_tables *m, bz_sheet *s)
{
    bz_error err;
    if (!m->against)
        return;
    bz_tables *other = bz_tables_new(m->against, NULL, NULL, m->arena, &err);
    bool operators = m->t->event[BZ_EVENT_OP].n && m->against->event[BZ_EVENT_OP].n;
    bool by_iteration = m->from == INT64_MIN && bz_steady_iterations(m->t) && bz_steady_iterations(m->against);
    bz_event_kind kind = operators ? BZ_EVENT_OP : BZ_EVENT_KERNEL;
    rows r = {0};
    add_side(m, &r, 0, kind, by_iteration);
    add_side(other, &r, 1, kind, by_iteration);
    for (uint32_t i = 0; i < r.n; i++) {
        const side *a = &r.row[i].of[0], *b = &r.row[i].of[1];
        BZ_SHEET_ADD(s, BZ_TEXT(r.row[i].name), BZ_NUMBER(a->count), BZ_NUMBER(b->count), BZ_NUMBER(a->time),
                     BZ_NUMBER(b->time), BZ_NUMBER(b->time - a->time), BZ_NUMBER(a->device), BZ_NUMBER(b->device),
                     BZ_NUMBER(b->device - a->device),
                     BZ_NUMBER(fabs(b->time - a->time) + fabs(b->device - a->device)));
    }
    bz_sheet_sort(s, 9);
    s->note = by_iteration ? "First is FILE, second is what it is compared with; figures are of one steady iteration."
                           : "First is FILE, second is what it is compared with; figures are of the whole recordings.";
    free(r.row);
    bz_map_free(&r.map);
}
