/* The weight update as one kernel. The gain is mostly that of launches which nobody makes any more. */
#include "whatif/gradients.h"

/* What sets gradients to zero before the way back stays: no update takes that along. */
static bool updates(const bz_task *t, int64_t from)
{
    return !t->removed && t->phase == BZ_PHASE_UPDATE && t->at >= from &&
           (t->kind == BZ_TASK_KERNEL || t->kind == BZ_TASK_CALL);
}

int bz_whatif_fused_optimizer(bz_flow *flow, bz_whatif_asked *asked)
{
    int64_t from, end;
    bz_tally sum = {0};
    uint32_t first = BZ_NONE;
    bz_gradients_back(flow, &from, &end);
    if (bz_gradients_update(flow) == BZ_NONE)
        from = INT64_MIN; /* no way back, or the iteration begins with the update */
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        if (!updates(t, from))
            continue;
        bz_tally_add(&sum, t->duration, 0);
        first = first == BZ_NONE || t->at < flow->task[first].at ? i : first;
    }
    if (sum.n < 2)
        return bz_whatif_because(asked, sum.n ? "the weight update is one kernel already"
                                              : "no task of a weight update is known in this recording");
    for (uint32_t i = 0; i < flow->n; i++)
        if (i != first && updates(&flow->task[i], from))
            bz_flow_remove_launched(flow, i, false);
    double share = bz_whatif_number(asked, "time");
    bz_flow_set(flow, first, (int64_t)(share * (double)sum.before));
    bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, "the recording", "%d kernels of the update take %s together", sum.n,
                     BZ_SAY_NS(sum.before));
    bz_whatif_assume_parameter(asked, "time", "the fused one takes %.3g of that, and is launched once", share);
    return sum.n;
}
