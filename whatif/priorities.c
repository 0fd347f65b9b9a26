/* Exchange of parameters by priority: gradients in slices, to servers that update them and send the parameters back; what the
 * next forward pass needs first goes first. Each layer of that pass waits for its own slices alone.
 *
 * Every machine runs a worker and a server for as many slices as the others have. Of a slice (n - 1) / n leave a machine as
 * gradients, and as much as parameters for the others: both pass the machine's link. As printed (literal) a machine sends all
 * gradients, and parameters of the first server alone; and near the output is more urgent than near the input, which is the
 * wrong way round. */
#include "whatif/gradients.h"

#include <math.h>
#include <stdio.h>

typedef struct {
    bz_flow *flow;
    bz_whatif_asked *asked;
    double workers;
    bz_gradient_link link;
    uint32_t send, receive; /* channels */
    bool literal;
    int slices;
} exchange;

static uint32_t message(const exchange *x, const char *what, uint32_t lane, double bytes, int32_t priority)
{
    char name[64];
    snprintf(name, sizeof name, "%s %.4g MB", what, bytes / 1e6);
    double share = x->literal ? 1 : (x->workers - 1) / x->workers;
    int64_t latency = (int64_t)(1e3 * x->link.latency);
    uint32_t task = bz_flow_add(x->flow, BZ_TASK_COMMUNICATION, name, lane,
                                bz_flow_sum(bz_gradients_time(share * bytes, x->link.gbps), latency), 0);
    x->flow->task[task].bytes = (int64_t)bytes;
    x->flow->task[task].priority = priority;
    return task;
}

static void add_slice(exchange *x, const bz_gradient *g, double bytes, int32_t priority)
{
    bool first_server = x->slices % (int)x->workers == 0;
    uint32_t push = message(x, "push", x->send, bytes, priority),
             pull = message(x, "pull", x->literal && !first_server ? x->receive : x->send, bytes, priority);
    bz_flow_depend(x->flow, g->last, push, BZ_DEPENDS_COMMUNICATION, 0);
    bz_flow_depend(x->flow, push, pull, BZ_DEPENDS_COMMUNICATION, 0);
    if (g->forward != BZ_NONE)
        bz_flow_depend_as(x->flow, pull, g->forward, BZ_DEPENDS_COMMUNICATION, 0, true);
    x->slices++;
}

int bz_whatif_priorities(bz_flow *flow, bz_whatif_asked *asked)
{
    enum { MOST_SLICES = 1 << 20 };
    bz_gradient *list;
    int n = bz_gradients_find(flow, asked, &list);
    exchange x = {.flow = flow,
                  .asked = asked,
                  .workers = bz_whatif_number(asked, "workers"),
                  .literal = bz_whatif_number(asked, "literal") > 0};
    if (n <= 0 || x.workers < 2)
        return n <= 0 ? n : bz_whatif_because(asked, "one worker has nobody to exchange parameters with");
    if (bz_gradients_link(asked, bz_whatif_number(asked, "slice") * 1e6, &x.link))
        return -1;
    x.send = bz_flow_add_lane(flow, "send", false, true);
    x.receive = x.literal ? bz_flow_add_lane(flow, "receive", false, true) : x.send;
    double slice = bz_whatif_number(asked, "slice") * 1e6, all = 0;
    for (int i = 0; i < n; i++)
        all += (double)list[i].bytes;
    if (all / slice > MOST_SLICES)
        return bz_fail(asked->err, BZ_USAGE, "%s: slices of %.3g MB are more than a million: ask for larger ones",
                       asked->row->name, slice / 1e6);
    bool urgent = bz_whatif_number(asked, "priority") > 0;
    for (int i = 0; i < n; i++) {
        int32_t near_input = -(int32_t)list[i].rank, priority = !urgent ? 0 : x.literal ? -near_input : near_input;
        double bytes = (double)list[i].bytes;
        int slices = (int)ceil(bytes / slice);
        for (int k = 0; k < slices; k++)
            add_slice(&x, &list[i], k + 1 < slices ? slice : bytes - slice * k, priority);
    }
    if (!x.slices)
        return bz_whatif_because(asked, "its layers have no gradients");
    flow->overlaps = true;
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "every machine is a worker and a server",
                     "%.4g MB in %d slices between %.0f workers at %.4g Gbit/s, %s", all / 1e6, x.slices, x.workers,
                     x.link.gbps, urgent ? "by priority" : "as they come");
    bz_whatif_assume(asked, BZ_ASSUMED_GUESSED, "servers take no time for it",
                     "the update costs what it did in the recording");
    return x.slices;
}
