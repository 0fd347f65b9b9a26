/* Launching the iteration as one CUDA graph: the first launch of a run between two waits stays, the others go with what the
 * host did for them, and kernels follow each other on the device. */
#include "whatif/transformations.h"

int bz_whatif_one_graph(bz_flow *flow, bz_whatif_asked *asked, bz_error *err)
{
    (void)err;
    int64_t node = (int64_t)(1000 * bz_whatif_number(asked, "node"));
    int removed = 0, graphs = 0;
    int64_t saved = 0;
    for (uint32_t l = 0; l < flow->n_lanes; l++) {
        uint32_t graph = BZ_NONE;
        if (flow->lane[l].device || flow->lane[l].channel)
            continue;
        for (uint32_t i = flow->lane[l].first, next; i != BZ_NONE; i = next) {
            bz_task *t = &flow->task[i];
            next = t->next;
            if (t->kind == BZ_TASK_SYNC || t->kind == BZ_TASK_END) {
                graph = BZ_NONE; /* the host looks at a result: what follows is another graph */
                continue;
            }
            bool launches = false;
            for (uint32_t e = t->out; e != BZ_NONE; e = flow->edge[e].next_out)
                launches |= flow->edge[e].kind == BZ_DEPENDS_LAUNCH;
            if (!launches)
                continue;
            if (graph == BZ_NONE) {
                graph = i;
                graphs++;
                continue;
            }
            saved += t->duration + t->gap;
            for (uint32_t e = t->out; e != BZ_NONE; e = flow->edge[e].next_out)
                if (flow->edge[e].kind == BZ_DEPENDS_LAUNCH)
                    bz_flow_depend(flow, graph, flow->edge[e].to, BZ_DEPENDS_LAUNCH,
                                   flow->launch_lag > 0 ? flow->launch_lag : 0);
            bz_flow_remove(flow, i, false);
            removed++;
        }
    }
    if (!removed)
        return bz_whatif_because(asked, "no two launches follow each other without a wait between them");
    for (uint32_t i = 0; i < flow->n; i++)
        if (flow->task[i].kind == BZ_TASK_KERNEL && flow->task[i].gap > node)
            flow->task[i].gap = node;
    bz_unit_text text;
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the recording",
                     "%d launches become %d: %s of the host's calls and the time behind each goes", removed + graphs,
                     graphs, bz_units_time(text, 1e-9 * (double)saved));
    bz_whatif_assume_parameter(asked, "node", "between two kernels of a graph: %.3g µs at most", 1e-3 * (double)node);
    return removed;
}
