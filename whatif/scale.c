/* One class of tasks by one factor. */
#include "whatif/records.h"

#include "whatif/constants.h"

bz_copy_way bz_whatif_copied(const bz_whatif_asked *asked, const bz_task *t)
{
    const bz_events *copy = &asked->trace->event[BZ_EVENT_COPY];
    uint32_t way =
        t->kind == BZ_TASK_COPY && t->event_kind == BZ_EVENT_COPY && t->event < copy->n ? copy->value[t->event] : 0;
    return way == BZ_COPY_TO_DEVICE || way == BZ_COPY_TO_HOST ? (bz_copy_way)way : BZ_COPY_ELSEWHERE;
}

int bz_whatif_device(bz_flow *flow, bz_whatif_asked *asked)
{
    double times = bz_whatif_number(asked, "times");
    int n = 0;
    for (uint32_t i = 0; i < flow->n; i++)
        if (!flow->task[i].removed && flow->task[i].kind == BZ_TASK_KERNEL) {
            bz_flow_scale(flow, i, 1 / times);
            n++;
        }
    bz_whatif_assume_parameter(asked, "times", "%d kernels: time divided by %.4g", n, times);
    return n ? n : bz_whatif_because(asked, "no kernels of a device are on record");
}

int bz_whatif_host(bz_flow *flow, bz_whatif_asked *asked)
{
    double times = bz_whatif_number(asked, "times");
    int n = 0;
    for (uint32_t i = 0; i < flow->n; i++) {
        bz_task *t = &flow->task[i];
        if (t->removed || t->kind == BZ_TASK_COMMUNICATION || flow->lane[t->lane].device || flow->lane[t->lane].channel)
            continue;
        bz_flow_scale(flow, i, 1 / times);
        t->gap = (int64_t)((double)t->gap / times);
        t->not_before = (int64_t)((double)t->not_before / times);
        n++;
    }
    bz_whatif_assume_parameter(asked, "times", "%d calls of the host and what lies between: time divided by %.4g", n,
                               times);
    return n ? n : bz_whatif_because(asked, "nothing of the host is on record");
}

/* What a copy takes that no link shortens: by the line through the shortest and the longest one on record, in bytes. 0 where their sizes
 * are too near to one another to tell. */
static double fixed_time(const bz_flow *flow, const bz_whatif_asked *asked)
{
    const bz_task *least = NULL, *most = NULL;
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        if (t->removed || t->bytes <= 0 || !bz_whatif_copied(asked, t))
            continue;
        least = !least || t->bytes < least->bytes ? t : least;
        most = !most || t->bytes > most->bytes ? t : most;
    }
    if (!least || most->bytes / COPIES_APART < least->bytes || most->duration <= least->duration)
        return 0;
    double per_byte = (double)(most->duration - least->duration) / (double)(most->bytes - least->bytes),
           fixed = (double)least->duration - per_byte * (double)least->bytes;
    return fixed > 0 ? fixed : 0;
}

int bz_whatif_link(bz_flow *flow, bz_whatif_asked *asked)
{
    double times = bz_whatif_number(asked, "times"), fixed = bz_whatif_number(asked, "fixed") * fixed_time(flow, asked);
    int n = 0;
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        if (!t->removed && (t->kind == BZ_TASK_COMMUNICATION || bz_whatif_copied(asked, t))) {
            bz_whatif_grow(flow, i, 1 / times, t->kind == BZ_TASK_COPY ? fixed : 0);
            n++;
        }
    }
    bz_whatif_assume_parameter(asked, "times", "%d copies and exchanges: time divided by %.4g", n, times);
    if (fixed > 0)
        bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the shortest and the longest copy of the recording",
                         "but for %.3g µs of each copy, which no link shortens", 1e-3 * fixed);
    return n ? n : bz_whatif_because(asked, "no copies from or to the host and no communication are on record");
}
