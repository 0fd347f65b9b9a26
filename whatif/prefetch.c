/* Input loaded by another thread while the iteration runs: loading leaves the thread that launches. It still has to be done
 * once per iteration, on a lane of its own. */
#include "whatif/transformations.h"

int bz_whatif_prefetch(bz_flow *flow, bz_whatif_asked *asked)
{
    bz_tally sum = {0};
    uint32_t lane = BZ_NONE, before = flow->n;
    for (uint32_t i = 0; i < before; i++) {
        const bz_task t = flow->task[i];
        if (t.removed || t.kind != BZ_TASK_LOAD || flow->lane[t.lane].channel)
            continue;
        if (lane == BZ_NONE)
            lane = bz_flow_add_lane(flow, "loader", false, false);
        bz_flow_remove(flow, i, true);
        bz_flow_add(flow, BZ_TASK_LOAD, t.name, lane, t.duration, 0);
        bz_tally_add(&sum, t.duration, 0);
    }
    if (!sum.n)
        return bz_whatif_because(asked, "no loading of data is on record");
    bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, "the recording", "%s of loading leaves the thread that launches",
                     BZ_SAY_NS(sum.before));
    bz_whatif_assume(asked, BZ_ASSUMED_GUESSED, "no other loader was seen",
                     "another core loads as fast, and slows nothing down");
    return sum.n;
}
