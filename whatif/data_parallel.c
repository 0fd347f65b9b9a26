/* Data-parallel training: workers average their gradients. Gradients are collected in buckets as they come; each bucket is
 * reduced over all workers while the way back goes on, and the update waits for all. */
#include "whatif/gradients.h"

#include <math.h>
#include <stdio.h>

/* Published with nccl-tests: each byte passes a link 2 (n - 1) / n times in a ring. In a tree it goes up once and down once. */
static int64_t reduce_time(const bz_whatif_asked *asked, const bz_gradient_link *link, double bytes)
{
    double n = bz_whatif_number(asked, "workers"), steps = 2 * (n - 1), share = steps / n;
    if (bz_whatif_number(asked, "tree") > 0) {
        steps = 2 * ceil(log2(n));
        share = 2;
    }
    double latency = 1e3 * steps * link->latency;
    return bz_flow_sum(bz_gradients_time(share * bytes / bz_whatif_number(asked, "efficiency"), link->gbps),
                       (int64_t)latency);
}

/* The bucket is ready behind the last of its layers; buckets go one after the other. */
static uint32_t add_bucket(bz_flow *flow, bz_whatif_asked *asked, const bz_gradient_link *link,
                           const bz_gradient *first, const bz_gradient *last, int64_t bytes, uint32_t lane,
                           uint32_t before)
{
    char name[64];
    snprintf(name, sizeof name, "all-reduce %.4g MB", (double)bytes / 1e6);
    uint32_t task = bz_flow_add(flow, BZ_TASK_COMMUNICATION, name, lane, reduce_time(asked, link, (double)bytes), 0);
    flow->task[task].bytes = bytes;
    flow->task[task].phase = BZ_PHASE_BACKWARD;
    for (const bz_gradient *g = first; g <= last; g++)
        bz_flow_depend(flow, g->last, task, BZ_DEPENDS_COMMUNICATION, 0);
    if (before != BZ_NONE)
        bz_flow_depend(flow, before, task, BZ_DEPENDS_COMMUNICATION, 0);
    return task;
}

/* Who needs all gradients: the update; without one, whatever the next iteration begins with. */
static void awaited_by_all(bz_flow *flow, uint32_t task, uint32_t update, const bz_gradient *list, int n)
{
    if (update != BZ_NONE) {
        bz_flow_depend(flow, task, update, BZ_DEPENDS_COMMUNICATION, 0);
        return;
    }
    const bz_gradient *input = list;
    for (int i = 1; i < n; i++)
        input = list[i].rank < input->rank ? &list[i] : input;
    if (input->forward != BZ_NONE)
        bz_flow_depend_as(flow, task, input->forward, BZ_DEPENDS_COMMUNICATION, 0, true);
    flow->overlaps = true;
}

int bz_whatif_data_parallel(bz_flow *flow, bz_whatif_asked *asked)
{
    bz_gradient *list;
    int n = bz_gradients_find(flow, asked, &list), buckets = 0;
    double workers = bz_whatif_number(asked, "workers"), most = bz_whatif_number(asked, "first") * 1e6;
    if (n <= 0 || workers < 2)
        return n <= 0 ? n : bz_whatif_because(asked, "one worker has nobody to exchange gradients with");
    bz_gradient_link link; /* a step of the ring passes a worker's part of a bucket */
    if (bz_gradients_link(asked, bz_whatif_number(asked, "bucket") * 1e6 / workers, &link))
        return -1;
    uint32_t update = bz_gradients_update(flow), lane = bz_flow_add_lane(flow, "all-reduce", false, true),
             task = BZ_NONE;
    int64_t bytes = 0, all = 0;
    for (int i = 0, first = 0; i < n; i++) {
        bytes += list[i].bytes;
        if (!bytes || ((double)bytes < most && i + 1 < n))
            continue;
        task = add_bucket(flow, asked, &link, &list[first], &list[i], bytes, lane, task);
        awaited_by_all(flow, task, update, list, n);
        all += bytes;
        bytes = 0;
        first = i + 1;
        most = bz_whatif_number(asked, "bucket") * 1e6;
        buckets++;
    }
    if (!buckets)
        return bz_whatif_because(asked, "its layers have no gradients");
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "published formulas of all-reduce",
                     "%.4g MB in %d buckets between %.0f workers at %.4g Gbit/s, %s", (double)all / 1e6, buckets,
                     workers, link.gbps, bz_whatif_number(asked, "tree") > 0 ? "in a tree" : "in a ring");
    bz_whatif_assume_parameter(asked, "efficiency", "links reach %.3g of that", bz_whatif_number(asked, "efficiency"));
    return buckets;
}
