/* Which kernels follow one another: those that an operator launches, and those that come behind each other on a stream. */
#include "base/sort.h"
#include "tables/constants.h"
#include "tables/parts.h"

#include <stdlib.h>
#include <string.h>

/* Of one operator: a hash over the names of its device work in the order of its start. */
typedef struct sequence {
    uint64_t hash;
    int64_t time;
    uint32_t n;
} sequence;

static uint64_t mix(uint64_t hash, uint32_t name)
{
    hash ^= name + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
    return hash * 0xff51afd7ed558ccdu;
}

/* An operator within another one of the same name is not counted again. */
static bool repeats(const bz_events *op, size_t i)
{
    enum { DEEPEST = 1024 };
    int steps = 0;
    for (uint32_t p = op->op[i]; p < op->n && steps < DEEPEST; p = op->op[p], steps++)
        if (op->name[p] == op->name[i])
            return true;
    return false;
}

static uint32_t name_of(const bz_tables *m, const work *w)
{
    return m->t->event[w->kind].name[w->i];
}

static sequence *sequences(bz_tables *m)
{
    enum { DEEPEST = 1024 };
    const bz_events *op = &m->t->event[BZ_EVENT_OP];
    sequence *of = bz_zeroed(op->n + 1, sizeof *of);
    for (work w = {0}; tables_next(m, &w);) {
        int steps = 0;
        for (uint32_t p = tables_op(m, w.kind, w.i); p < op->n && steps < DEEPEST; p = op->op[p], steps++) {
            of[p].hash = mix(of[p].hash, name_of(m, &w));
            of[p].time += w.end - w.start;
            of[p].n++;
        }
    }
    return of;
}

typedef struct pattern {
    uint32_t op; /* the first one that launched it */
    int64_t count, time, host;
    bz_buf text;
} pattern;

BZ_SORTS(by_count, pattern,
         BZ_THEN(BZ_ORDER(q->count, p->count), BZ_THEN(BZ_ORDER(q->time, p->time), BZ_ORDER(p->op, q->op))));

/* Names of the work that the operators of the first rows launched, one behind the other. */
static void name_work(bz_tables *m, pattern *list, uint32_t n)
{
    const bz_events *op = &m->t->event[BZ_EVENT_OP];
    enum { DEEPEST = 1024 };
    BZ_FREED uint32_t *row = bz_none(op->n + 1, sizeof *row);
    for (uint32_t i = 0; i < n; i++)
        row[list[i].op] = i;
    for (work w = {0}; tables_next(m, &w);) {
        int steps = 0;
        for (uint32_t p = tables_op(m, w.kind, w.i); p < op->n && steps < DEEPEST; p = op->op[p], steps++)
            if (row[p] != BZ_NONE) {
                bz_buf *text = &list[row[p]].text;
                bz_buf_printf(text, "%s%s", text->len ? " | " : "", tables_shown(m, w.kind, name_of(m, &w)));
            }
    }
}

void fill_sequences(bz_tables *m, bz_sheet *s)
{
    enum { ROWS = 500 };
    const bz_events *op = &m->t->event[BZ_EVENT_OP];
    BZ_FREED sequence *of = sequences(m);
    BZ_FREED pattern *list = NULL;
    BZ_SCOPED(bz_map) map = {0};
    uint32_t n = 0;
    for (size_t i = 0; i < op->n; i++) {
        uint64_t key[2] = {of[i].hash, op->name[i]};
        if (of[i].n < FEWEST_KERNELS || repeats(op, i))
            continue;
        uint32_t at = bz_map_number(&map, m->arena, key, sizeof key);
        if (at == n)
            BZ_ADD(list, n) = (pattern){.op = (uint32_t)i};
        list[at].count++;
        list[at].time += of[i].time;
        list[at].host += op->end[i] - op->start[i];
    }
    BZ_QSORT(list, n, by_count);
    uint32_t shown = n < ROWS ? n : ROWS;
    name_work(m, list, shown);
    for (uint32_t i = 0; i < shown; i++) {
        BZ_SHEET_ADD(s, BZ_TEXT(bz_string(m->t, op->name[list[i].op])), BZ_NUMBER(list[i].count),
                     BZ_NUMBER(of[list[i].op].n), BZ_NUMBER(tables_seconds(list[i].time)),
                     BZ_NUMBER(tables_seconds(list[i].host)),
                     BZ_TEXT(bz_arena_str(m->arena, bz_buf_text(&list[i].text))));
        bz_buf_free(&list[i].text);
    }
    if (n > shown)
        s->note = bz_arena_printf(m->arena, "There are %u sequences; these are the %u most frequent ones.", n, shown);
}

/* Of two works that follow each other on a stream: the time of both, or the time between. */
static figures *pairs(bz_tables *m, bool between, uint32_t *n)
{
    const bz_trace *t = m->t;
    BZ_FREED uint32_t *before = bz_none((size_t)t->n_lanes + 1, sizeof *before);
    BZ_FREED int64_t *end = bz_zeroed((size_t)t->n_lanes + 1, sizeof *end),
                     *length = bz_zeroed((size_t)t->n_lanes + 1, sizeof *length);
    groups g;
    groups_begin(&g, m->arena);
    for (work w = {0}; tables_next(m, &w);) {
        if (w.kind != BZ_EVENT_KERNEL)
            continue;
        if (before[w.lane] != BZ_NONE) {
            uint64_t key = (uint64_t)before[w.lane] << 32 | name_of(m, &w);
            int64_t gap = w.start > end[w.lane] ? w.start - end[w.lane] : 0;
            groups_add(&g, key, (double)(between ? gap : w.end - w.start + length[w.lane]));
        }
        before[w.lane] = name_of(m, &w);
        end[w.lane] = w.end;
        length[w.lane] = w.end - w.start;
    }
    return groups_end(&g, n);
}

void fill_followers(bz_tables *m, bz_sheet *s)
{
    uint32_t n;
    const figures *g = pairs(m, true, &n), *f = pairs(m, false, &n);
    BZ_SCOPED(bz_map) at = {0};
    for (uint32_t i = 0; i < n; i++)
        bz_map_add(&at, &g[i].key, sizeof g[i].key, i);
    for (uint32_t i = 0; i < n; i++) {
        const figures *pause = &g[bz_map_get(&at, &f[i].key, sizeof f[i].key)];
        BZ_SHEET_ADD(s, BZ_TEXT(tables_shown(m, BZ_EVENT_KERNEL, (uint32_t)(f[i].key >> 32))),
                     BZ_TEXT(tables_shown(m, BZ_EVENT_KERNEL, (uint32_t)f[i].key)), BZ_NUMBER(f[i].count),
                     BZ_NUMBER(f[i].sum / 1e9), BZ_NUMBER(pause->sum / 1e9), BZ_NUMBER(pause->median / 1e9));
    }
    bz_sheet_sort(s, 2);
}
