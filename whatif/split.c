/* What a simulation says besides its total: who worked when, and which chain of tasks decided. */
#include "whatif/whatif.h"

#include <stdlib.h>

/* ---- who worked ----------------------------------------------------------------------------- */

typedef struct {
    int64_t at;
    int32_t host, device; /* by how many more lanes work from then on */
} step;

static int by_time(const void *a, const void *b)
{
    const step *p = a, *q = b;
    return p->at < q->at ? -1 : p->at > q->at;
}

static size_t mark(step *steps, size_t n, int64_t from, int64_t to, bool device)
{
    if (to <= from)
        return n;
    steps[n++] = (step){from, !device, device};
    steps[n++] = (step){to, -!device, -(int32_t)device};
    return n;
}

void bz_flow_split_make(const bz_flow *flow, const bz_simulated *s, bz_flow_split *out)
{
    step *steps = bz_alloc((size_t)flow->n * 2 + 3, sizeof *steps);
    size_t n = 0;
    *out = (bz_flow_split){.total = s->total};
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        if (t->removed)
            continue;
        bool device = bz_task_on_device((bz_task_kind)t->kind) || t->kind == BZ_TASK_COMMUNICATION;
        int64_t from = s->start[i], end = bz_flow_sum(from, t->duration);
        if (!device && t->next != BZ_NONE)
            end = bz_flow_sum(end, t->gap);
        if (t->lane == flow->main && t->prev == BZ_NONE)
            from = 0; /* before its first call the main thread works, too */
        n = mark(steps, n, from > flow->offset ? from : flow->offset, end, device);
    }
    qsort(steps, n, sizeof *steps, by_time);
    int64_t at = flow->offset, last = bz_flow_sum(flow->offset, s->total);
    int32_t host = 0, device = 0;
    for (size_t i = 0; i <= n; i++) {
        int64_t until = i < n && steps[i].at < last ? steps[i].at : last;
        int64_t *owner = host > 0 ? (device > 0 ? &out->both : &out->host) : device > 0 ? &out->device : &out->neither;
        if (until > at) {
            *owner += until - at;
            at = until;
        }
        if (i < n) {
            host += steps[i].host;
            device += steps[i].device;
        }
    }
    free(steps);
}

/* ---- which chain decided -------------------------------------------------------------------- */

typedef struct {
    bz_critical *c;
    bz_map rows;
    bz_arena *arena;
} summing;

static void add_row(summing *m, const char *name, const char *kind, int64_t time, bool task)
{
    bz_buf key = {0};
    bz_buf_printf(&key, "%s\n%s", kind, name);
    uint32_t row = bz_map_get(&m->rows, key.data, key.len);
    if (row == BZ_MAP_NONE) {
        BZ_ARENA_ROOM(m->arena, m->c->row, m->c->n);
        row = m->c->n++;
        m->c->row[row] = (bz_critical_row){.name = bz_arena_str(m->arena, name), .kind = kind};
        bz_map_add(&m->rows, bz_arena_dup(m->arena, key.data, key.len), key.len, row);
    }
    m->c->row[row].time += time;
    m->c->row[row].tasks += task;
    bz_buf_free(&key);
}

static int by_row_time(const void *a, const void *b)
{
    const bz_critical_row *p = a, *q = b;
    return p->time != q->time ? (p->time > q->time ? -1 : 1) : strcmp(p->name, q->name);
}

static const char *layer_of(const bz_flow *flow, const bz_task *t)
{
    return t->layer < flow->n_layers ? flow->layer[t->layer] : t->op ? t->op : t->name;
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
    if (out->n)
        qsort(out->row, out->n, sizeof *out->row, by_row_time);
    bz_map_free(&m.rows);
}
