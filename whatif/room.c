/* How full a kernel makes its device: its blocks against those that run at once there. */
#include "whatif/room.h"

#include <math.h>

void bz_whatif_room_make(const bz_trace *t, bz_arena *arena, bz_whatif_room *out)
{
    bz_error err;
    const char *gpu = bz_trace_told(t, "gpu");
    *out = (bz_whatif_room){0};
    out->known = gpu && *gpu && !bz_machine_named(gpu, arena, &out->machine, &err) && out->machine.gpu &&
                 bz_occupancy_limits_of(out->machine.capability, &out->limits);
}

static double product(const uint32_t *three)
{
    return (double)three[0] * (double)three[1] * (double)three[2];
}

double bz_whatif_filled(const bz_whatif_room *room, const bz_trace *t, const bz_task *task)
{
    const bz_events *k = &t->event[BZ_EVENT_KERNEL];
    if (!room->known || task->kind != BZ_TASK_KERNEL || task->event_kind != BZ_EVENT_KERNEL || task->event >= k->n)
        return NAN;
    const bz_launched *l = bz_kernel_launched(t, task->event);
    double threads = product(l->block), blocks = product(l->grid);
    if (!(threads >= 1) || threads > 1024 || !(blocks >= 1) || l->registers > 1024 || l->shared_static > 1 << 20 ||
        l->shared_dynamic > 1 << 20)
        return NAN;
    bz_launch launch = {(int)threads, (int)l->registers, (int)l->shared_static, (int)l->shared_dynamic};
    int each = bz_occupancy(&room->limits, &launch); /* 0: more shared memory than is usual: one at a time */
    return blocks / (room->machine.multiprocessors * (each > 0 ? each : 1));
}
