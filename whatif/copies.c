/* Copies from and to the host on a stream of their own. Input is that of the next iteration, so nothing of this one waits for
 * it; a result is waited for at the end. */
#include "whatif/transformations.h"

int bz_whatif_copies(bz_flow *flow, bz_whatif_asked *asked)
{
    uint32_t n = 0, lanes = flow->n_lanes, *beside = BZ_NEW(asked->arena, uint32_t, 2 * (size_t)lanes + 2);
    uint32_t *list = BZ_NEW(asked->arena, uint32_t, (size_t)flow->n + 1);
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed && bz_whatif_copied(asked, &flow->task[i]))
            list[n++] = i;
    bz_flow_in_time(flow, list, n);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = list[k], way = bz_whatif_copied(asked, &flow->task[i]), prev = flow->task[i].prev;
        uint32_t *lane =
            &beside[2 * flow->task[i].lane + (way == BZ_COPY_TO_HOST)]; /* copies of two streams need not wait */
        if (!*lane)
            *lane = bz_flow_add_lane(flow, way == BZ_COPY_TO_DEVICE ? "copies to the device" : "copies to the host",
                                     true, false);
        for (uint32_t e = flow->task[i].out; e != BZ_NONE; e = flow->edge[e].next_out) {
            uint32_t wait = flow->edge[e].to;
            if (flow->edge[e].kind == BZ_DEPENDS_SYNC && flow->task[wait].event_kind == BZ_EVENT_API &&
                way == BZ_COPY_TO_DEVICE)
                flow->edge[e].wraps = true; /* the next iteration needs it */
        }
        bz_flow_move_to(flow, i, *lane);
        if (way == BZ_COPY_TO_HOST && prev != BZ_NONE)
            bz_flow_depend(flow, prev, i, BZ_DEPENDS_STREAM, 0);
    }
    if (!n)
        return bz_whatif_because(asked, "no copies from or to the host are on record");
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the recording", "%u copies run beside the kernels, as fast as before",
                     n);
    return (int)n;
}
