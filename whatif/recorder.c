/* What recording adds to a program is no part of it: it is taken out of the calls of the device's runtime, of the operators around them, and of what
 * libraries do in front of them. */
#include "base/sort.h"
#include "whatif/build.h"
#include "whatif/constants.h"

#include <stdlib.h>

static int64_t shorten_gap(bz_task *t, int64_t most)
{
    int64_t by = t->gap < most ? t->gap : most;
    t->gap -= by;
    return by;
}

/* Is this the first call of the runtime within a library's call that is on record itself? */
static bool opens_call(const bz_flow *flow, uint32_t task)
{
    const bz_task *t = &flow->task[task];
    if (!flow->trace || t->call >= flow->trace->event[BZ_EVENT_CALL].n)
        return false;
    const bz_events *call = &flow->trace->event[BZ_EVENT_CALL];
    return t->prev != BZ_NONE && flow->task[t->prev].call != t->call &&
           !flow->trace->source[flow->trace->lane[call->lane[t->call]].source].log;
}

/* What a recorder adds to a call lies within it, as far as it is long enough, and behind a launch that is too short for it; what it adds to a
 * library's call lies in front of the first call of the runtime in it. Waits are calls like others. */
static int64_t shorten_calls(bz_flow *flow, int64_t adds)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < flow->n; i++) {
        bz_task *t = &flow->task[i];
        if (t->removed || (t->kind != BZ_TASK_HOST && t->kind != BZ_TASK_SYNC) || t->event_kind != BZ_EVENT_API)
            continue;
        int64_t within = t->duration > SHORTEST_CALL ? t->duration - SHORTEST_CALL : 0;
        within = within < adds ? within : adds;
        bz_flow_set(flow, i, t->duration - within);
        sum = bz_flow_sum(sum, within);
        if (bz_flow_launches(flow, i))
            sum = bz_flow_sum(sum, shorten_gap(t, adds - within));
        if (opens_call(flow, i))
            sum = bz_flow_sum(sum, shorten_gap(&flow->task[t->prev], adds));
    }
    return sum;
}

/* Tasks of a thread that are events, in their order, with the operators that begin behind each of them; [0] counts those in front of all. Those that
 * begin within one, as in the loading of data, are counted there. */
typedef struct {
    uint32_t *task, *ops, *inside, n;
} thread_tasks;

static int64_t start_of(const bz_flow *flow, uint32_t task)
{
    const bz_task *t = &flow->task[task];
    return flow->trace->event[t->event_kind].start[t->event];
}

static int64_t end_of(const bz_flow *flow, uint32_t task)
{
    const bz_task *t = &flow->task[task];
    return flow->trace->event[t->event_kind].end[t->event];
}

static thread_tasks tasks_of(const bz_flow *flow, uint32_t lane)
{
    thread_tasks list = {0};
    for (uint32_t i = flow->lane[lane].first; i != BZ_NONE; i = flow->task[i].next)
        list.n += flow->task[i].event != BZ_NONE;
    list.task = bz_alloc(list.n + 1, sizeof *list.task);
    list.ops = bz_zeroed(list.n + 1, sizeof *list.ops);
    list.inside = bz_zeroed(list.n + 1, sizeof *list.inside);
    list.n = 0;
    for (uint32_t i = flow->lane[lane].first; i != BZ_NONE; i = flow->task[i].next)
        if (flow->task[i].event != BZ_NONE)
            list.task[list.n++] = i;
    return list;
}

static void count(const bz_flow *flow, thread_tasks *list, int64_t start)
{
    uint32_t low = 0, high = list->n; /* so many tasks begin no later */
    BZ_FIND_FIRST(low, high, at, start_of(flow, list->task[at]) <= start);
    bool inside = low && start < end_of(flow, list->task[low - 1]);
    (inside ? list->inside : list->ops)[low]++;
}

/* What operators add lies between two calls; in front of the first one of the iteration, too. */
static int64_t shorten_lane(bz_flow *flow, uint32_t lane, const thread_tasks *list, int64_t adds)
{
    bz_flow_lane *l = &flow->lane[lane];
    int64_t sum = 0, lead = adds * list->ops[0], wrap = lead;
    for (uint32_t i = 0; i < list->n; i++) {
        bz_task *t = &flow->task[list->task[i]];
        int64_t within = adds * list->inside[i + 1];
        within = within < t->duration ? within : t->duration;
        bz_flow_set(flow, list->task[i], t->duration - within);
        sum = bz_flow_sum(sum, within);
        if (t->next != BZ_NONE)
            sum = bz_flow_sum(sum, shorten_gap(t, adds * list->ops[i + 1]));
        else
            wrap = bz_flow_sum(wrap, adds * list->ops[i + 1]);
    }
    if (list->n && lane == flow->main) {
        bz_task *first = &flow->task[list->task[0]];
        lead = lead < first->not_before ? lead : first->not_before;
        first->not_before -= lead;
        sum = bz_flow_sum(sum, lead);
    }
    if (l->wrap > 0)
        l->wrap -= wrap < l->wrap ? wrap : l->wrap;
    return sum;
}

static int64_t shorten_operators(bz_flow *flow, int64_t adds)
{
    const bz_trace *t = flow->trace;
    const bz_events *op = &t->event[BZ_EVENT_OP];
    BZ_FREED uint32_t *lane_of = bz_none(t->n_lanes + 1, sizeof *lane_of);
    BZ_FREED thread_tasks *list = bz_zeroed(flow->n_lanes + 1, sizeof *list);
    int64_t sum = 0;
    for (uint32_t l = 0; l < flow->n_lanes; l++)
        if (!flow->lane[l].device && !flow->lane[l].channel && flow->lane[l].lane != BZ_NONE) {
            lane_of[flow->lane[l].lane] = l;
            list[l] = tasks_of(flow, l);
        }
    for (size_t i = 0; i < op->n; i++)
        if (lane_of[op->lane[i]] != BZ_NONE && bz_event_iteration(t, BZ_EVENT_OP, i) == flow->iteration)
            count(flow, &list[lane_of[op->lane[i]]], op->start[i]);
    for (uint32_t l = 0; l < flow->n_lanes; l++) {
        if (list[l].n)
            sum = bz_flow_sum(sum, shorten_lane(flow, l, &list[l], adds));
        free(list[l].task);
        free(list[l].ops);
        free(list[l].inside);
    }
    return sum;
}

int64_t bz_flow_without_recorder(bz_flow *flow, int64_t call, int64_t op)
{
    int64_t sum = shorten_calls(flow, call);
    return op > 0 ? bz_flow_sum(sum, shorten_operators(flow, op)) : sum;
}
