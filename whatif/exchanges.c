/* Changes of exchanges that are there: recorded, or put there by a transformation before this one. */
#include "whatif/gradients.h"

#include <stdio.h>

static bool exchanged(const bz_task *t)
{
    return !t->removed && t->kind == BZ_TASK_COMMUNICATION && t->bytes > 0;
}

static int nothing_exchanged(bz_whatif_asked *asked)
{
    return bz_whatif_because(asked, "nothing is exchanged: ask for data-parallel before it");
}

enum { LEVELS = 3 };

typedef struct {
    double workers[LEVELS], gbps[LEVELS], latency;
    uint32_t lane[LEVELS];
    int n;
} levels;

/* Where edges of `from` begin or end, they do at `to`. The order of buckets is none of them: each level keeps its own. */
static void take_edges(bz_flow *flow, uint32_t from, uint32_t to, bool in)
{
    for (uint32_t e = in ? flow->task[from].in : flow->task[from].out; e != BZ_NONE;
         e = in ? flow->edge[e].next_in : flow->edge[e].next_out) {
        bz_flow_edge old = flow->edge[e];
        if (flow->task[in ? old.from : old.to].kind == BZ_TASK_COMMUNICATION)
            continue;
        bz_flow_depend_as(flow, in ? old.from : to, in ? to : old.to, (bz_depends)old.kind, old.lag, old.wraps);
    }
}

/* One all-reduce as a chain: reduce-scatter level by level, then all-gather the same way back. Each level leaves a part of the
 * bytes to the next. */
static void decompose(bz_flow *flow, uint32_t task, const levels *l)
{
    uint32_t before = BZ_NONE;
    for (int stage = 0; stage < 2 * l->n; stage++) {
        int level = stage < l->n ? stage : 2 * l->n - 1 - stage;
        double bytes = (double)flow->task[task].bytes, p = l->workers[level];
        for (int i = 0; i < level; i++)
            bytes /= l->workers[i];
        char name[64];
        snprintf(name, sizeof name, "%s %d of %d", stage < l->n ? "reduce-scatter" : "all-gather", level + 1, l->n);
        int64_t time =
            bz_flow_sum(bz_gradients_time(bytes * (p - 1) / p, l->gbps[level]), (int64_t)(1e3 * l->latency * (p - 1)));
        uint32_t made = bz_flow_add(flow, BZ_TASK_COMMUNICATION, name, l->lane[level], time, 0);
        flow->task[made].priority = flow->task[task].priority;
        flow->task[made].phase = flow->task[task].phase;
        if (before == BZ_NONE)
            take_edges(flow, task, made, true);
        else
            bz_flow_depend(flow, before, made, BZ_DEPENDS_COMMUNICATION, 0);
        before = made;
    }
    take_edges(flow, task, before, false);
}

int bz_whatif_blueconnect(bz_flow *flow, bz_whatif_asked *asked)
{
    static const char *const WORKERS[LEVELS] = {"workers1", "workers2", "workers3"}, *const GBPS[LEVELS] = {
                                                                                         "gbps1", "gbps2", "gbps3"};
    levels l = {.latency = bz_whatif_number(asked, "latency")};
    uint32_t n = flow->n;
    int changed = 0;
    for (int i = 0; i < LEVELS; i++)
        if (bz_whatif_number(asked, WORKERS[i]) > 1) {
            l.workers[l.n] = bz_whatif_number(asked, WORKERS[i]);
            l.gbps[l.n++] = bz_whatif_number(asked, GBPS[i]);
        }
    for (int i = 0; i < l.n; i++) {
        char name[32];
        snprintf(name, sizeof name, "level %d", i + 1);
        l.lane[i] = bz_flow_add_lane(flow, name, false, true);
    }
    if (!l.n)
        return bz_whatif_because(asked, "one worker has nobody to exchange gradients with");
    for (uint32_t i = 0; i < n; i++)
        if (exchanged(&flow->task[i])) {
            decompose(flow, i, &l);
            changed++;
        }
    for (uint32_t i = 0; i < n; i++) /* behind all: their order among each other goes from chain to chain */
        if (exchanged(&flow->task[i]))
            bz_flow_remove(flow, i, false);
    if (!changed)
        return nothing_exchanged(asked);
    for (int i = 0; i < l.n; i++)
        bz_whatif_assume_parameter(asked, GBPS[i], "level %d: %.0f workers at %.4g Gbit/s", i + 1, l.workers[i],
                                   l.gbps[i]);
    return changed;
}

typedef struct {
    double ratio, gbs, compress, decompress; /* passes over the bytes, for each way */
} packing;

static int64_t pass_time(const packing *p, double bytes, double passes)
{
    return bz_gradients_time(passes * bytes, 8 * p->gbs);
}

/* A kernel behind each gradient, which then goes in few bytes, and one in front of who needs it. */
static void compress(bz_flow *flow, uint32_t task, const packing *p)
{
    double bytes = (double)flow->task[task].bytes;
    uint32_t last = BZ_NONE;
    for (uint32_t e = flow->task[task].in; e != BZ_NONE; e = flow->edge[e].next_in) {
        uint32_t from = flow->edge[e].from;
        if (bz_task_on_device((bz_task_kind)flow->task[from].kind) &&
            (last == BZ_NONE || flow->task[from].at > flow->task[last].at))
            last = from;
    }
    if (last != BZ_NONE) {
        uint32_t pack =
            bz_flow_insert_launched(flow, BZ_TASK_KERNEL, "compress", last, pass_time(p, bytes, p->compress));
        bz_flow_depend(flow, pack, task, BZ_DEPENDS_COMMUNICATION, 0);
    }
    for (uint32_t e = flow->task[task].out, next; e != BZ_NONE; e = next) {
        uint32_t to = flow->edge[e].to;
        next = flow->edge[e].next_out;
        if (!bz_task_on_device((bz_task_kind)flow->task[to].kind))
            continue;
        uint32_t unpack = flow->task[to].prev == BZ_NONE
                              ? bz_flow_insert(flow, BZ_TASK_KERNEL, "decompress", to, BZ_BEFORE,
                                               pass_time(p, bytes, p->decompress), 0)
                              : bz_flow_insert_launched(flow, BZ_TASK_KERNEL, "decompress", flow->task[to].prev,
                                                        pass_time(p, bytes, p->decompress));
        bz_flow_depend_as(flow, task, unpack, BZ_DEPENDS_COMMUNICATION, 0, flow->edge[e].wraps);
    }
    bz_flow_scale(flow, task, p->ratio);
    flow->task[task].bytes = (int64_t)(bytes * p->ratio);
}

int bz_whatif_compression(bz_flow *flow, bz_whatif_asked *asked)
{
    packing p = {bz_whatif_number(asked, "ratio"), bz_whatif_number(asked, "gbs"), bz_whatif_number(asked, "compress"),
                 bz_whatif_number(asked, "decompress")};
    uint32_t n = flow->n;
    int changed = 0;
    for (uint32_t i = 0; i < n; i++)
        if (exchanged(&flow->task[i])) {
            compress(flow, i, &p);
            changed++;
        }
    if (!changed)
        return nothing_exchanged(asked);
    bz_whatif_assume_parameter(asked, "ratio", "%d exchanges of %.3g of the bytes", changed, p.ratio);
    bz_whatif_assume_parameter(asked, "gbs",
                               "compressing passes the bytes %.3g times, decompressing %.3g times, at %.4g GB/s",
                               p.compress, p.decompress, p.gbs);
    return changed;
}
