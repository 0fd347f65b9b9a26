/* What people named: operators and ranges, with and without what lies in them, and the work of devices that was asked for in
 * them. */
#include "base/sort.h"
#include "tables/parts.h"

#include <stdlib.h>
#include <string.h>

/* What belongs to one host event, in nanoseconds. */
typedef struct host_time {
    int64_t inside;      /* events of the same kind that lie directly in it */
    int64_t own, device; /* device work that was asked for directly in it; with what lies in it */
    int64_t first, last; /* when that work began and ended */
} host_time;

typedef struct nesting {
    const bz_events *e;
    bz_event_kind kind;
    uint32_t *parent; /* [events] */
    host_time *time;  /* [events] */
} nesting;

enum { DEEPEST = 1024, ROUNDING = 1000 };

/* The innermost range around [start, end] of those that are open on a lane; those that are over leave the chain. */
static uint32_t around(const nesting *x, uint32_t *open, int64_t start, int64_t end)
{
    const bz_events *e = x->e;
    while (*open != BZ_NONE && e->end[*open] <= start && !(e->end[*open] == start && end == start))
        *open = x->parent[*open];
    uint32_t i = *open;
    for (int steps = 0; i != BZ_NONE && e->end[i] + ROUNDING < end; steps++)
        i = steps < DEEPEST ? x->parent[i] : BZ_NONE;
    return i;
}

/* Ranges have no links: the range around each, and around each launch. `of_api` [api events] is filled. */
static void nest_ranges(bz_tables *m, nesting *x, uint32_t *of_api)
{
    const bz_trace *t = m->t;
    const bz_events *e = x->e, *api = &t->event[BZ_EVENT_API];
    BZ_FREED uint32_t *open = bz_none((size_t)t->n_lanes + 1, sizeof *open);
    for (size_t i = 0, j = 0; i < e->n || j < api->n;) {
        if (i < e->n && (j == api->n || e->start[i] <= api->start[j])) {
            x->parent[i] = around(x, &open[e->lane[i]], e->start[i], e->end[i]);
            if (e->end[i] > e->start[i])
                open[e->lane[i]] = (uint32_t)i;
            i++;
        } else {
            of_api[j] = around(x, &open[api->lane[j]], api->start[j], api->end[j]);
            j++;
        }
    }
}

static void add_work(bz_tables *m, nesting *x, const uint32_t *of_api)
{
    for (work w = {0}; tables_next(m, &w);) {
        uint32_t cause = tables_cause(m, w.kind, w.i);
        uint32_t i = of_api ? cause != BZ_NONE ? of_api[cause] : BZ_NONE : tables_op(m, w.kind, w.i);
        if (i >= x->e->n)
            continue;
        host_time *h = &x->time[i];
        h->own += w.end - w.start;
        h->device += w.end - w.start;
        h->first = h->last == INT64_MIN || w.start < h->first ? w.start : h->first;
        h->last = w.end > h->last ? w.end : h->last;
    }
    for (size_t i = x->e->n; i--;) { /* what lies in another one comes behind it */
        uint32_t p = x->parent[i];
        if (p >= i)
            continue;
        host_time *h = &x->time[p];
        h->device += x->time[i].device;
        if (x->time[i].last != INT64_MIN) {
            h->first = h->last == INT64_MIN || x->time[i].first < h->first ? x->time[i].first : h->first;
            h->last = x->time[i].last > h->last ? x->time[i].last : h->last;
        }
        if (tables_in(m, x->kind, i))
            h->inside += x->e->end[i] - x->e->start[i];
    }
}

static nesting nest(bz_tables *m, bz_event_kind kind)
{
    const bz_events *e = &m->t->event[kind], *api = &m->t->event[BZ_EVENT_API];
    nesting x = {e, kind, e->op, bz_alloc(e->n + 1, sizeof(host_time))};
    for (size_t i = 0; i < e->n; i++)
        x.time[i] = (host_time){.last = INT64_MIN};
    BZ_FREED uint32_t *of_api = NULL;
    if (kind == BZ_EVENT_RANGE) {
        x.parent = bz_alloc(e->n + 1, sizeof *x.parent);
        of_api = bz_alloc(api->n + 1, sizeof *of_api);
        nest_ranges(m, &x, of_api);
    }
    add_work(m, &x, of_api);
    return x;
}

static void nesting_free(nesting *x)
{
    if (x->kind == BZ_EVENT_RANGE)
        free(x->parent);
    free(x->time);
}

static int64_t exclusive(const nesting *x, size_t i)
{
    int64_t own = x->e->end[i] - x->e->start[i] - x->time[i].inside;
    return own > 0 ? own : 0; /* times are rounded */
}

typedef struct sums {
    int64_t exclusive, own, device, projected;
} sums;

static void add_sums(sums *s, const nesting *x, size_t i)
{
    const host_time *h = &x->time[i];
    s->exclusive += exclusive(x, i);
    s->own += h->own;
    s->device += h->device;
    s->projected += h->last != INT64_MIN ? h->last - h->first : 0;
}

/* Marks take no time: they are no rows. */
static bool counts(const bz_tables *m, const nesting *x, size_t i)
{
    return tables_in(m, x->kind, i) && (x->kind == BZ_EVENT_OP || x->e->end[i] > x->e->start[i]);
}

static void fill_by_name(bz_tables *m, bz_sheet *s, bz_event_kind kind)
{
    nesting x = nest(m, kind);
    BZ_FREED sums *of = bz_zeroed((size_t)bz_strings(m->t) + 1, sizeof *of);
    double all = 0;
    groups g;
    uint32_t n;
    groups_begin(&g, m->arena);
    for (size_t i = 0; i < x.e->n; i++)
        if (counts(m, &x, i)) {
            groups_add(&g, x.e->name[i], (double)(x.e->end[i] - x.e->start[i]));
            add_sums(&of[x.e->name[i]], &x, i);
        }
    const figures *f = groups_end(&g, &n);
    for (uint32_t i = 0; i < n; i++)
        all += f[i].sum;
    for (uint32_t i = 0; i < n; i++) {
        const sums *a = &of[f[i].key];
        BZ_SHEET_ADD(s, BZ_TEXT(bz_string(m->t, (uint32_t)f[i].key)), BZ_NUMBER(f[i].count), BZ_NUMBER(f[i].sum / 1e9),
                     BZ_NUMBER(tables_share(f[i].sum, all)), BZ_NUMBER(tables_seconds(a->exclusive)),
                     BZ_NUMBER(tables_seconds(a->device)), BZ_NUMBER(tables_seconds(a->own)),
                     BZ_NUMBER(tables_seconds(a->projected)), BZ_NUMBER(f[i].mean / 1e9), BZ_NUMBER(f[i].median / 1e9),
                     BZ_NUMBER(f[i].min / 1e9), BZ_NUMBER(f[i].max / 1e9), BZ_NUMBER(f[i].deviation / 1e9));
    }
    nesting_free(&x);
}

void fill_operators(bz_tables *m, bz_sheet *s)
{
    fill_by_name(m, s, BZ_EVENT_OP);
}

void fill_ranges(bz_tables *m, bz_sheet *s)
{
    fill_by_name(m, s, BZ_EVENT_RANGE);
}

typedef struct place {
    uint32_t parent, name; /* a place, or BZ_NONE; string */
    int depth;
    int64_t count, inclusive;
    sums sums;
    uint32_t child, next; /* first child, next sibling */
} place;

typedef struct tree {
    bz_map map;
    place *place;
    uint32_t n;
} tree;

static uint32_t place_of(tree *tr, bz_arena *arena, uint32_t parent, uint32_t name)
{
    uint32_t key[2] = {parent, name};
    uint32_t at = bz_map_number(&tr->map, arena, key, sizeof key);
    if (at == tr->n) {
        int depth = parent == BZ_NONE ? 0 : tr->place[parent].depth + 1;
        BZ_ADD(tr->place, tr->n) =
            (place){.parent = parent, .name = name, .depth = depth, .child = BZ_NONE, .next = BZ_NONE};
    }
    return at;
}

static int by_inclusive(const void *a, const void *b, void *context)
{
    const place *p = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    return BZ_THEN(BZ_ORDER(p[j].inclusive, p[i].inclusive), BZ_ORDER(i, j));
}

/* Each place behind the one that it lies in, those that took longest first. */
static void put_places(bz_tables *m, bz_sheet *s, tree *tr)
{
    place *p = tr->place;
    uint32_t *order = bz_alloc((size_t)tr->n + 1, sizeof *order), root = BZ_NONE;
    for (uint32_t i = 0; i < tr->n; i++)
        order[i] = i;
    if (tr->n)
        qsort_r(order, tr->n, sizeof *order, by_inclusive, p);
    for (uint32_t k = tr->n; k--;) { /* the last one added comes first */
        uint32_t i = order[k], *head = p[i].parent == BZ_NONE ? &root : &p[p[i].parent].child;
        p[i].next = *head;
        *head = i;
    }
    for (uint32_t i = root; i != BZ_NONE;) {
        int indent = 2 * (p[i].depth < 40 ? p[i].depth : 40);
        BZ_SHEET_ADD(s, BZ_TEXT(bz_arena_printf(m->arena, "%*s%s", indent, "", bz_string(m->t, p[i].name))),
                     BZ_NUMBER(p[i].depth), BZ_NUMBER(p[i].count), BZ_NUMBER(tables_seconds(p[i].inclusive)),
                     BZ_NUMBER(tables_seconds(p[i].sums.exclusive)), BZ_NUMBER(tables_seconds(p[i].sums.device)),
                     BZ_NUMBER(tables_seconds(p[i].sums.own)), BZ_NUMBER(tables_seconds(p[i].sums.projected)));
        uint32_t next = p[i].child;
        while (next == BZ_NONE && i != BZ_NONE) {
            next = p[i].next;
            i = p[i].parent;
        }
        i = next;
    }
    free(order);
}

void fill_range_tree(bz_tables *m, bz_sheet *s)
{
    nesting x = nest(m, BZ_EVENT_RANGE);
    tree tr = {0};
    BZ_FREED uint32_t *place_at = bz_alloc(x.e->n + 1, sizeof *place_at);
    for (size_t i = 0; i < x.e->n; i++) {
        uint32_t parent = x.parent[i] < i ? place_at[x.parent[i]] : BZ_NONE;
        place_at[i] = parent;
        if (!counts(m, &x, i))
            continue;
        place_at[i] = parent == BZ_NONE || tr.place[parent].depth < DEEPEST
                          ? place_of(&tr, m->arena, parent, x.e->name[i])
                          : parent;
        place *p = &tr.place[place_at[i]];
        p->count++;
        p->inclusive += x.e->end[i] - x.e->start[i];
        add_sums(&p->sums, &x, i);
    }
    put_places(m, s, &tr);
    free(tr.place);
    bz_map_free(&tr.map);
    nesting_free(&x);
}
