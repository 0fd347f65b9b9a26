/* What threads did: calls of the device's runtime, library calls, operators that make none, loading of data. */
#include "base/sort.h"
#include "whatif/build.h"
#include "whatif/constants.h"

#include <stdlib.h>

typedef struct {
    int64_t start, end;
    uint32_t lane, row;
    uint8_t event_kind, kind;
} item;

typedef struct {
    item *item;
    size_t n;
} items;

static int loads(const char *name)
{
    return bz_name_matches_any("DataLoader data_loader dataloader load_batch next_batch", name);
}

static void add(bz_build *b, items *list, bz_event_kind event_kind, size_t row, bz_task_kind kind)
{
    const bz_events *e = &b->trace->event[event_kind];
    if (b->timeline && b->trace->source[b->trace->lane[e->lane[row]].source].log)
        return; /* a library's log beside a time line tells order, not times */
    BZ_ROOM(list->item, list->n);
    int64_t start = e->start[row], end = e->end[row];
    b->flow->counts.backwards += end < start;
    list->item[list->n++] =
        (item){start, end < start ? start : end, e->lane[row], (uint32_t)row, (uint8_t)event_kind, (uint8_t)kind};
}

/* The outer one first. */
BZ_SORTS(by_lane_and_start, item,
         BZ_THEN(BZ_ORDER(p->lane, q->lane),
                 BZ_THEN(BZ_ORDER(p->start, q->start),
                         BZ_THEN(BZ_ORDER(q->end, p->end),
                                 BZ_THEN(BZ_ORDER(p->event_kind, q->event_kind), BZ_ORDER(p->row, q->row))))));

/* Operators that are a task each: those with no call recorded inside that take most of their time themselves, as addmm does with an expand in
 * it, and not linear, which is an addmm, nor an optimizer's step, in which Python calls others. What is inside of them is no task then. */
static bool *find_workers(const bz_trace *t)
{
    const bz_events *op = &t->event[BZ_EVENT_OP], *call = &t->event[BZ_EVENT_CALL], *api = &t->event[BZ_EVENT_API];
    bool *calls = bz_zeroed(op->n + 1, sizeof *calls), *worker = bz_zeroed(op->n + 1, sizeof *worker);
    BZ_FREED int64_t *inside = bz_zeroed(op->n + 1, sizeof *inside);
    bz_name_answers ranges = {.ask = bz_build_range};
    for (size_t i = 0; i < call->n && op->n; i++)
        for (uint32_t o = bz_call_works(t, i) ? call->op[i] : BZ_NONE; o < op->n && !calls[o]; o = op->op[o])
            calls[o] = true;
    for (size_t i = 0; i < api->n && op->n; i++)
        for (uint32_t o = api->op[i]; o < op->n && !calls[o]; o = op->op[o])
            calls[o] = true;
    for (size_t i = 0; i < op->n; i++)
        if (op->op[i] < op->n)
            inside[op->op[i]] += op->end[i] - op->start[i];
    for (size_t i = 0; i < op->n; i++) { /* the outer ones stand first */
        uint32_t o = op->op[i];
        while (o < op->n && !worker[o])
            o = op->op[o];
        worker[i] = o >= op->n && !calls[i] && !bz_name_answer(&ranges, bz_string(t, op->name[i])) &&
                    (double)inside[i] <= WORKER_INSIDE * (double)(op->end[i] - op->start[i]);
    }
    free(calls);
    return worker;
}

/* Loaders that call nothing of a device, the outermost ones. */
static void add_loaders(bz_build *b, items *list)
{
    const bz_events *op = &b->trace->event[BZ_EVENT_OP], *api = &b->trace->event[BZ_EVENT_API];
    BZ_FREED bool *busy = bz_zeroed(op->n + 1, sizeof *busy);
    bz_name_answers loader = {.ask = loads};
    for (size_t i = 0; i < api->n && op->n; i++)
        for (uint32_t o = api->op[i]; o < op->n && !busy[o]; o = op->op[o])
            busy[o] = true;
    for (size_t i = 0; i < op->n; i++)
        if (!busy[i] && bz_name_answer(&loader, bz_string(b->trace, op->name[i])) && bz_build_member(b, BZ_EVENT_OP, i))
            add(b, list, BZ_EVENT_OP, i, BZ_TASK_LOAD);
}

/* Exchanges between processes, as PyTorch marks them on threads of their own: where no device's kernels do them, the range is all that tells. */
static int exchanges(const char *name)
{
    return bz_name_matches_any("^gloo: ^mpi: ^ucc: ^c10d::", name);
}

static void add_exchanges(bz_build *b, items *list)
{
    bz_name_answers exchange = {.ask = exchanges};
    const bz_events *range = &b->trace->event[BZ_EVENT_RANGE];
    for (size_t i = 0; i < range->n && !b->device; i++)
        if (bz_name_answer(&exchange, bz_string(b->trace, range->name[i])) && bz_build_member(b, BZ_EVENT_RANGE, i))
            add(b, list, BZ_EVENT_RANGE, i, BZ_TASK_COMMUNICATION);
}

static items collect(bz_build *b)
{
    const bz_trace *t = b->trace;
    const bz_events *api = &t->event[BZ_EVENT_API], *call = &t->event[BZ_EVENT_CALL], *op = &t->event[BZ_EVENT_OP];
    items list = {0};
    for (uint32_t i = 0; i < t->n_sources; i++)
        b->timeline |= !t->source[i].log && t->source[i].events;
    for (int k = BZ_EVENT_KERNEL; k <= BZ_EVENT_MEMSET; k++)
        for (size_t i = 0; i < t->event[k].n && !b->device; i++)
            b->device = bz_build_member(b, (bz_event_kind)k, i);
    bz_name_answers waits = {.ask = bz_build_waiting};
    for (size_t i = 0; i < api->n; i++)
        if (bz_build_member(b, BZ_EVENT_API, i))
            add(b, &list, BZ_EVENT_API, i,
                bz_name_answer(&waits, bz_string(t, api->name[i])) ? BZ_TASK_SYNC : BZ_TASK_HOST);
    for (size_t i = 0; i < call->n; i++)
        if (bz_call_works(t, i) && !(call->flags[i] & BZ_CALL_UNTIMED) && bz_build_member(b, BZ_EVENT_CALL, i) &&
            !(b->device && bz_library_on_device((bz_library)call->library[i])))
            add(b, &list, BZ_EVENT_CALL, i, BZ_TASK_CALL);
    add_loaders(b, &list);
    add_exchanges(b, &list);
    bool *worker = b->device ? NULL : find_workers(t);
    for (size_t i = 0; i < op->n && worker; i++)
        if (worker[i] && bz_build_member(b, BZ_EVENT_OP, i) && !loads(bz_string(t, op->name[i])))
            add(b, &list, BZ_EVENT_OP, i, BZ_TASK_CALL);
    free(worker);
    if (list.n)
        bz_sort_groups(list.item, list.n, sizeof *list.item, offsetof(item, lane), t->n_lanes);
    bz_sort(list.item, list.n, sizeof *list.item, by_lane_and_start);
    return list;
}

/* What a call that launches a kernel takes: the median; INT64_MAX where there is none. */
static int64_t usual_launch(const bz_build *b)
{
    const bz_events *api = &b->trace->event[BZ_EVENT_API], *kernel = &b->trace->event[BZ_EVENT_KERNEL];
    BZ_FREED int64_t *times = bz_alloc(kernel->n + 1, sizeof *times);
    size_t n = 0;
    for (size_t i = 0; i < kernel->n; i++)
        if (kernel->cause[i] < api->n && api->end[kernel->cause[i]] > api->start[kernel->cause[i]])
            times[n++] = api->end[kernel->cause[i]] - api->start[kernel->cause[i]];
    return n ? bz_build_median(times, n) : INT64_MAX;
}

/* A call that copies and returns behind its copy's end has waited for it: it becomes two tasks, the launch and the wait. Where
 * the copy began late it waited for its stream, and the call with it: the launch is no longer than others. */
static int64_t *find_blocking(const bz_build *b)
{
    const bz_trace *t = b->trace;
    const bz_events *api = &t->event[BZ_EVENT_API], *copy = &t->event[BZ_EVENT_COPY];
    enum { TO_HOST = 2 };
    int64_t *begin = bz_alloc(api->n + 1, sizeof *begin), usual = copy->n ? usual_launch(b) : 0;
    for (size_t i = 0; i < api->n; i++)
        begin[i] = INT64_MAX;
    for (size_t i = 0; i < copy->n; i++) {
        uint32_t cause = copy->cause[i];
        if (cause >= api->n || copy->end[i] > bz_flow_sum(api->end[cause], CLOCK_ROUNDS) ||
            copy->start[i] < api->start[cause])
            continue;
        bool async = strstr(bz_string(t, api->name[cause]), "Async") != NULL;
        if (!async || copy->value[i] == TO_HOST) {
            int64_t own = copy->start[i] - api->start[cause] < usual ? copy->start[i] : api->start[cause] + usual;
            begin[cause] = own < begin[cause] ? own : begin[cause];
        }
    }
    return begin;
}

/* The call that this is, or was made for: the outermost one. */
static void set_call(bz_build *b, bz_task *t, const item *it)
{
    const bz_events *call = &b->trace->event[BZ_EVENT_CALL], *e = &b->trace->event[it->event_kind];
    if (it->event_kind == BZ_EVENT_CALL)
        t->call = (uint32_t)bz_call_outermost(b->trace, it->row);
    else if (e->call && e->call[it->row] < call->n)
        t->call = (uint32_t)bz_call_outermost(b->trace, e->call[it->row]);
}

static uint32_t append(bz_build *b, const item *it, bz_task_kind kind, int64_t start, int64_t end)
{
    bz_flow *f = b->flow;
    uint32_t task = bz_build_task(b, kind, (bz_event_kind)it->event_kind, it->row, start, end);
    bz_task *t = &f->task[task];
    set_call(b, t, it);
    if (t->prev == BZ_NONE)
        t->not_before = t->at > 0 ? t->at : 0;
    else
        f->task[t->prev].gap = t->at - f->task[t->prev].at - f->task[t->prev].duration;
    return task;
}

/* In front of what a call does for the device, half of its time is its own where nothing tells how much: as much as others. */
static void append_call(bz_build *b, const item *it, int64_t copy_start, int64_t floor)
{
    int64_t start = it->start > floor ? it->start : floor, end = it->end > start ? it->end : start;
    b->flow->counts.overlapping += start > it->start;
    uint32_t task;
    if (it->event_kind == BZ_EVENT_API && copy_start < end && copy_start != INT64_MAX) {
        int64_t middle = copy_start > start ? copy_start : start;
        task = append(b, it, BZ_TASK_HOST, start, middle);
        append(b, it, BZ_TASK_SYNC, middle, end);
    } else {
        task = append(b, it, (bz_task_kind)it->kind, start, end);
    }
    if (it->event_kind == BZ_EVENT_API)
        b->of_api[it->row] = task;
}

void bz_build_host(bz_build *b)
{
    items list = collect(b);
    int64_t *blocking = find_blocking(b), end = 0, latest = INT64_MIN;
    uint32_t lane = BZ_NONE;
    for (size_t i = 0; i < list.n; i++) {
        const item *it = &list.item[i];
        if (it->lane != lane) {
            lane = it->lane;
            end = INT64_MIN;
        }
        uint32_t outer = b->lane_of[lane] == BZ_NONE ? BZ_NONE : b->flow->lane[b->lane_of[lane]].last;
        if (it->end <= end && it->start < end) { /* within the one before it */
            if (it->event_kind == BZ_EVENT_API) {
                const bz_task *o = &b->flow->task[outer];
                bool second = o->kind == BZ_TASK_SYNC && o->prev != BZ_NONE && b->flow->task[o->prev].event == o->event;
                b->of_api[it->row] = second ? o->prev : outer;
            }
            continue;
        }
        append_call(b, it, it->event_kind == BZ_EVENT_API ? blocking[it->row] : INT64_MAX, end);
        end = it->end > end ? it->end : end;
        if (end >= latest) {
            latest = end;
            b->flow->main = b->lane_of[lane];
        }
    }
    free(blocking);
    free(list.item);
}
