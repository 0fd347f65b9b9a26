/* Copies from and to the host on a stream of their own. Input is that of the next iteration, so nothing of this one waits for
 * it; a result is waited for at the end. */
#include "whatif/transformations.h"

int bz_whatif_copies(bz_flow *flow, bz_whatif_asked *asked, bz_error *err)
{
    (void)err;
    enum { TO_DEVICE = 1, TO_HOST = 2 }; /* as CUPTI numbers directions */
    const bz_events *copy = &asked->trace->event[BZ_EVENT_COPY];
    uint32_t lane[3] = {BZ_NONE, BZ_NONE, BZ_NONE}, n = flow->n;
    int moved = 0;
    for (uint32_t i = 0; i < n; i++) {
        const bz_task *t = &flow->task[i];
        if (t->removed || t->kind != BZ_TASK_COPY || t->event_kind != BZ_EVENT_COPY || t->event >= copy->n)
            continue;
        uint32_t way = copy->value[t->event];
        if (way != TO_DEVICE && way != TO_HOST)
            continue;
        if (lane[way] == BZ_NONE)
            lane[way] =
                bz_flow_add_lane(flow, way == TO_DEVICE ? "copies to the device" : "copies to the host", true, false);
        uint32_t prev = flow->task[i].prev;
        for (uint32_t e = flow->task[i].out; e != BZ_NONE; e = flow->edge[e].next_out) {
            uint32_t wait = flow->edge[e].to;
            if (flow->edge[e].kind == BZ_DEPENDS_SYNC && flow->task[wait].event_kind == BZ_EVENT_API &&
                way == TO_DEVICE)
                flow->edge[e].wraps = true; /* the next iteration needs it */
        }
        bz_flow_move_to(flow, i, lane[way]);
        if (way == TO_HOST && prev != BZ_NONE)
            bz_flow_depend(flow, prev, i, BZ_DEPENDS_STREAM, 0);
        moved++;
    }
    if (!moved)
        return bz_whatif_because(asked, "no copies from or to the host are on record");
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the recording", "%d copies run beside the kernels, as fast as before",
                     moved);
    return moved;
}
