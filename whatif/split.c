/* What a simulation says besides its total: who worked when, and which chain of tasks decided. */
#include "base/sort.h"
#include "whatif/whatif.h"

#include <stdlib.h>

typedef struct {
    int64_t from, to;
} span;

/* Spans of a lane's tasks follow each other, so lists are sorted already, or lane by lane: what touches or overlaps the span before it joins
 * it, and what began before that is put in its place at the end. */
typedef struct {
    span *span;
    size_t n;
    bool sorted;
} spans;

static void mark(spans *list, int64_t from, int64_t to)
{
    if (to <= from)
        return;
    span *last = list->n ? &list->span[list->n - 1] : NULL;
    if (last && from >= last->from && from <= last->to) {
        last->to = to > last->to ? to : last->to;
        return;
    }
    list->sorted &= !last || from > last->from;
    list->span[list->n++] = (span){from, to};
}

BZ_SORTS(by_start, span, BZ_THEN(BZ_ORDER(p->from, q->from), BZ_ORDER(p->to, q->to)));

static void unite(spans *list)
{
    size_t kept = 0;
    if (!list->sorted)
        bz_sort(list->span, list->n, sizeof *list->span, by_start);
    for (size_t i = 0; i < list->n; i++) {
        span next = list->span[i];
        if (kept && next.from <= list->span[kept - 1].to)
            list->span[kept - 1].to = next.to > list->span[kept - 1].to ? next.to : list->span[kept - 1].to;
        else
            list->span[kept++] = next;
    }
    list->n = kept;
}

static void mark_task(const bz_flow *flow, const bz_simulated *s, uint32_t i, spans *host, spans *device)
{
    const bz_task *t = &flow->task[i];
    bool on_device = bz_task_on_device((bz_task_kind)t->kind) || t->kind == BZ_TASK_COMMUNICATION;
    int64_t from = s->start[i], end = bz_flow_sum(from, t->duration);
    if (!on_device && t->next != BZ_NONE)
        end = bz_flow_sum(end, t->gap);
    if (t->lane == flow->main && t->prev == BZ_NONE)
        from = 0; /* before its first call the main thread works, too */
    mark(on_device ? device : host, from > flow->offset ? from : flow->offset, end);
}

static int64_t length_of(const spans *list, int64_t until)
{
    int64_t sum = 0;
    for (size_t i = 0; i < list->n; i++) {
        int64_t to = list->span[i].to < until ? list->span[i].to : until;
        sum = bz_flow_sum(sum, to > list->span[i].from ? to - list->span[i].from : 0);
    }
    return sum;
}

static int64_t common(const spans *x, const spans *y, int64_t until)
{
    int64_t sum = 0;
    for (size_t i = 0, k = 0; i < x->n && k < y->n;) {
        int64_t from = x->span[i].from > y->span[k].from ? x->span[i].from : y->span[k].from;
        int64_t to = x->span[i].to < y->span[k].to ? x->span[i].to : y->span[k].to;
        to = to < until ? to : until;
        sum = bz_flow_sum(sum, to > from ? to - from : 0);
        if (x->span[i].to < y->span[k].to)
            i++;
        else
            k++;
    }
    return sum;
}

void bz_flow_split_make(const bz_flow *flow, const bz_simulated *s, bz_flow_split *out)
{
    spans host = {bz_alloc((size_t)flow->n + 1, sizeof(span)), 0, true},
          device = {bz_alloc((size_t)flow->n + 1, sizeof(span)), 0, true};
    for (uint32_t l = 0; l < flow->n_lanes; l++) /* along each lane, so that spans come in their order */
        for (uint32_t i = flow->lane[l].first; i != BZ_NONE; i = flow->task[i].next)
            mark_task(flow, s, i, &host, &device);
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed && flow->lane[flow->task[i].lane].channel)
            mark_task(flow, s, i, &host, &device);
    unite(&host);
    unite(&device);
    int64_t last = bz_flow_sum(flow->offset, s->total);
    out->total = s->total;
    out->both = common(&host, &device, last);
    out->host = length_of(&host, last) - out->both;
    out->device = length_of(&device, last) - out->both;
    out->neither = out->total - out->host - out->device - out->both;
    free(host.span);
    free(device.span);
}

typedef struct {
    bz_critical *c;
    bz_map rows, pointers; /* by text; by where the texts lie, which is quicker and tells most of them */
    bz_arena *arena;
} summing;

static uint32_t find_row(summing *m, const char *name, const char *kind)
{
    BZ_SCOPED(bz_buf) key = {0};
    bz_buf_printf(&key, "%s\n%s", kind, name);
    uint32_t row = bz_map_number(&m->rows, m->arena, key.data, key.len);
    if (row == m->c->n)
        BZ_ARENA_ADD(m->arena, m->c->row, m->c->n) =
            (bz_critical_row){.name = bz_arena_str(m->arena, name), .kind = kind};
    return row;
}

static uint32_t row_of(summing *m, const char *name, const char *kind)
{
    const char *at[2] = {kind, name};
    uint32_t row = bz_map_get(&m->pointers, at, sizeof at);
    if (row == BZ_MAP_NONE) {
        row = find_row(m, name, kind);
        bz_map_add(&m->pointers, bz_arena_dup(m->arena, at, sizeof at), sizeof at, row);
    }
    return row;
}

static void add_row(summing *m, const char *name, const char *kind, int64_t time, bool task)
{
    uint32_t row = row_of(m, name, kind);
    m->c->row[row].time += time;
    m->c->row[row].tasks += task;
}

BZ_SORTS(by_row_time, bz_critical_row, BZ_THEN(BZ_ORDER(q->time, p->time), strcmp(p->name, q->name)));

static const char *layer_of(const bz_flow *flow, const bz_task *t)
{
    const char *op = t->layer < flow->n_layers ? flow->layer[t->layer] : bz_task_op(flow, t);
    return op ? op : t->name;
}

/* What lies between two tasks of the chain belongs to the one that waits: the thread's own work, or a latency. */
static const char *between(const bz_flow *flow, const bz_task *t, const bz_task *from)
{
    if (!from)
        return "before the first call";
    if (bz_task_on_device((bz_task_kind)t->kind))
        return flow->lane[from->lane].device ? "between kernels" : "from launch to kernel";
    return t->lane == from->lane           ? "host, between calls"
           : flow->lane[from->lane].device ? "behind a wait"
                                           : "hand-over";
}

void bz_flow_critical(const bz_flow *flow, const bz_simulated *s, bz_arena *arena, bz_critical *out)
{
    summing m = {.c = out, .arena = arena};
    *out = (bz_critical){0};
    uint32_t n = 0;
    for (uint32_t i = s->last; i != BZ_NONE && n <= flow->n; i = s->because[i])
        n++;
    out->task = BZ_NEW(arena, uint32_t, n + 1);
    out->n_tasks = n;
    int64_t until = bz_flow_sum(s->total, flow->offset);
    for (uint32_t i = s->last; n; i = s->because[i]) {
        const bz_task *t = &flow->task[i], *from = s->because[i] == BZ_NONE ? NULL : &flow->task[s->because[i]];
        out->task[--n] = i;
        /* a launch that the next task did not wait out counts as far as it was waited for */
        int64_t begin = s->start[i] > flow->offset ? s->start[i] : flow->offset;
        int64_t end = bz_flow_sum(s->start[i], t->duration), own = (end < until ? end : until) - begin;
        if (own > 0) {
            add_row(&m, layer_of(flow, t), bz_task_kind_name((bz_task_kind)t->kind), own, true);
            out->of[t->kind] += own;
        }
        int64_t behind = end > begin ? end : begin;
        if (until > behind) { /* gap behind this task, told of the task that waited for it */
            const bz_task *to = n + 1 < out->n_tasks ? &flow->task[out->task[n + 1]] : t;
            add_row(&m, between(flow, to, t), "between", until - behind, false);
            out->between += until - behind;
        }
        until = until < begin ? until : begin;
        if (!from && until > flow->offset) {
            add_row(&m, between(flow, t, NULL), "between", until - flow->offset, false);
            out->between += until - flow->offset;
        }
    }
    for (uint32_t i = 0; i < out->n; i++)
        out->time = bz_flow_sum(out->time, out->row[i].time);
    BZ_QSORT(out->row, out->n, by_row_time);
    bz_map_free(&m.rows);
    bz_map_free(&m.pointers);
}
