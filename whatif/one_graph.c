/* Launching the iteration as one CUDA graph: the first launch of a run between two waits stays, the others go with what the
 * host did for them, and kernels follow each other on the device.
 *
 * Between two launches a host does what a graph does once, ahead: the framework finds the operator, its kernel and its memory. A pause that
 * is much longer than these is something else: work of the program's own, or another process. It may go, too, or stay.
 *
 * Recording makes each call dearer, and that is no gain; nor is what the only iteration on record loads, which no next one does. Both are taken out of
 * the calls and of what libraries do in front of them, before and after, and stand behind the iteration as one task. */
#include "whatif/build.h"
#include "whatif/constants.h"
#include "whatif/transformations.h"

typedef struct {
    bz_tally removed; /* launches */
    int graphs, pauses;
    int64_t between, paused; /* ns of what goes: between launches; in pauses, as many as go */
} tally;

/* What the host does between two launches is up to `times` the median of it; what is longer is a pause. */
static int64_t longest_usual(const bz_flow *flow, double times)
{
    BZ_FREED int64_t *gap = bz_alloc((size_t)flow->n + 1, sizeof *gap);
    size_t n = 0;
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed && flow->task[i].next != BZ_NONE && bz_flow_launches(flow, i))
            gap[n++] = flow->task[i].gap + flow->task[i].duration;
    double usual = times * (double)bz_build_median(gap, n);
    return usual < (double)BZ_FLOW_LONGEST ? (int64_t)usual : BZ_FLOW_LONGEST;
}

/* The kernels of this launch are launched by `graph`. What is kept of a pause behind it stays behind what came before it. */
static void join(bz_flow *flow, uint32_t task, uint32_t graph, int64_t pause, int64_t kept, tally *sum)
{
    bz_task *t = &flow->task[task];
    bz_tally_add(&sum->removed, t->duration, 0);
    sum->between = bz_flow_sum(sum->between, t->gap - pause);
    sum->paused = bz_flow_sum(sum->paused, pause - kept);
    for (uint32_t e = t->out; e != BZ_NONE; e = flow->edge[e].next_out)
        if (flow->edge[e].kind == BZ_DEPENDS_LAUNCH)
            bz_flow_depend(flow, graph, flow->edge[e].to, BZ_DEPENDS_LAUNCH,
                           flow->launch_lag > 0 ? flow->launch_lag : 0);
    flow->task[task].gap = kept;
    bz_flow_remove(flow, task, true);
}

/* Where pauses stay, what follows one is another graph. */
static void join_lane(bz_flow *flow, uint32_t lane, int64_t usual, bool stay, tally *sum)
{
    uint32_t graph = BZ_NONE;
    for (uint32_t i = flow->lane[lane].first, next; i != BZ_NONE; i = next) {
        const bz_task *t = &flow->task[i];
        int64_t pause = t->gap > usual && t->next != BZ_NONE ? t->gap - usual : 0;
        next = t->next;
        if (t->kind == BZ_TASK_SYNC || t->kind == BZ_TASK_END) {
            graph = BZ_NONE; /* the host looks at a result: what follows is another graph */
            continue;
        }
        if (!bz_flow_launches(flow, i))
            continue;
        sum->graphs += graph == BZ_NONE;
        sum->pauses += pause > 0;
        if (graph == BZ_NONE)
            graph = i;
        else
            join(flow, i, graph, pause, stay ? pause : 0, sum);
        if (pause && stay)
            graph = BZ_NONE;
    }
}

/* µs of a call: of Nsight Systems on programs that ran with it and without (docs/benchmarks.md); of PyTorch's profiler it is out of the flow where
 * gains where nobody records are asked for; of others nobody knows. */
static double recorder_of(const bz_whatif_asked *asked)
{
    bool nsight = false;
    if (asked->unrecorded)
        return 0;
    for (uint32_t i = 0; i < asked->trace->n_sources; i++)
        nsight |= strstr(bz_string(asked->trace, asked->trace->source[i].format), "Nsight") != NULL;
    return nsight && !bz_whatif_given(asked, "recorder") ? NSIGHT_ADDS[asked->side]
                                                         : bz_whatif_number(asked, "recorder");
}

/* Launches that load code become as others are; returns how much shorter. */
static int64_t without_loading(bz_flow *flow, bz_arena *arena)
{
    int64_t sum = 0, *took = BZ_NEW(arena, int64_t, flow->n + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed && bz_flow_launches(flow, i))
            took[n++] = flow->task[i].duration;
    int64_t usual = bz_build_median(took, n);
    for (uint32_t e = 0; e < flow->n_edges; e++) {
        bz_task *launch = &flow->task[flow->edge[e].from];
        int64_t queued = flow->task[flow->edge[e].to].at - bz_flow_sum(launch->at, launch->was);
        if (flow->edge[e].kind != BZ_DEPENDS_LAUNCH || launch->removed ||
            !bz_launch_loads(launch->duration, usual, queued))
            continue;
        sum = bz_flow_sum(sum, launch->duration - usual);
        launch->duration = usual;
    }
    return sum;
}

/* Of the flow, which took *time, `sum` was taken out: by so much more *added the iteration as it is would be shorter. */
static int tell_without(bz_flow *flow, bz_whatif_asked *asked, int64_t *time, int64_t sum, const char *what,
                        const char *source, int64_t *added)
{
    const int64_t before = *time;
    if (!sum)
        return 0;
    if (bz_flow_time(flow, asked->arena, NULL, time, asked->err))
        return -1;
    const int64_t less = before > *time ? before - *time : 0;
    *added = bz_flow_sum(*added, less);
    bz_whatif_assume(asked, BZ_ASSUMED_GUESSED, source,
                     "%s, %s together; without it the iteration takes %s less, which no graph gains", what,
                     BZ_SAY_NS(sum), BZ_SAY_NS(less));
    return 0;
}

/* Takes out of the flow what a program has that is not recorded, or any but the first iteration, where that one alone is on record. */
static int without_once(bz_flow *flow, bz_whatif_asked *asked, int64_t *added)
{
    int64_t recorder = (int64_t)(1000 * recorder_of(asked)), time;
    bool alone = bz_steady_iterations(asked->trace) == 1;
    *added = 0;
    if (recorder <= 0 && !alone)
        return 0;
    if (bz_flow_time(flow, asked->arena, NULL, &time, asked->err))
        return -1;
    if (recorder > 0 &&
        tell_without(flow, asked, &time, bz_flow_without_recorder(flow, recorder, 0),
                     bz_arena_printf(asked->arena, "recording adds %.3g µs to each call", 1e-3 * (double)recorder),
                     "programs that ran with a recorder and without", added))
        return -1;
    return alone ? tell_without(flow, asked, &time, without_loading(flow, asked->arena),
                                "launches load the code of their kernels", "the recording", added)
                 : 0;
}

/* Behind all else, so that before and after have it alike. Where iterations overlap nobody waits for the device: between two of each lane. */
static int add_back(bz_flow *flow, bz_whatif_asked *asked, int64_t added)
{
    bz_simulated s;
    for (uint32_t l = 0; l < flow->n_lanes && flow->overlaps; l++)
        flow->lane[l].wrap = bz_flow_sum(flow->lane[l].wrap, added);
    if (flow->overlaps || !added || flow->main == BZ_NONE || flow->lane[flow->main].last == BZ_NONE)
        return 0;
    if (bz_flow_simulate(flow, asked->arena, &s, asked->err))
        return -1;
    uint32_t task =
        bz_flow_insert(flow, BZ_TASK_HOST, "what no graph gains", flow->lane[flow->main].last, BZ_BEHIND, added, 0);
    if (s.last != BZ_NONE)
        bz_flow_depend(flow, s.last, task, BZ_DEPENDS_SYNC, 0);
    return 0;
}

int bz_whatif_one_graph(bz_flow *flow, bz_whatif_asked *asked)
{
    int64_t node = (int64_t)(1000 * bz_whatif_number(asked, "node")), added;
    if (without_once(flow, asked, &added))
        return -1;
    int64_t usual = longest_usual(flow, bz_whatif_number(asked, "usual"));
    tally sum = {0};
    for (uint32_t l = 0; l < flow->n_lanes; l++)
        if (!flow->lane[l].device && !flow->lane[l].channel)
            join_lane(flow, l, usual, bz_whatif_number(asked, "pauses") > 0, &sum);
    if (!sum.removed.n)
        return bz_whatif_because(asked, "no two launches follow each other without a wait between them");
    for (uint32_t i = 0; i < flow->n; i++)
        if (flow->task[i].kind == BZ_TASK_KERNEL && flow->task[i].gap > node)
            flow->task[i].gap = node;
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the recording",
                     "%d launches become %d: %s in the host's calls goes, and %s that it worked between them",
                     sum.removed.n + sum.graphs, sum.graphs, BZ_SAY_NS(sum.removed.before), BZ_SAY_NS(sum.between));
    if (sum.pauses)
        bz_whatif_assume_parameter(asked, "pauses", "%s of %d longer pauses of the host goes, too",
                                   BZ_SAY_NS(sum.paused), sum.pauses);
    bz_whatif_assume_parameter(asked, "node", "between two kernels of a graph: %.3g µs at most", 1e-3 * (double)node);
    return add_back(flow, asked, added) ? -1 : sum.removed.n;
}
