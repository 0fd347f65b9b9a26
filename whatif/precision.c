/* Lower precision: compute-bound kernels and those that move bytes gain by different factors; the host gains nothing. */
#include "whatif/transformations.h"

/* Does its name say that it computes in 16 bits already? */
static bool low_already(const char *name)
{
    static const char *const SIGNS[] = {"h884",  "h1688",  "h16816",   "hgemm", "f16f16", "bf16",   "_half",
                                        "half_", "__half", "BFloat16", "Half",  "s884",   "s16816", "s1688"};
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
        if (bz_name_matches(SIGNS[i], name))
            return true;
    return false;
}

int bz_whatif_precision(bz_flow *flow, bz_whatif_asked *asked, bz_error *err)
{
    (void)err;
    double compute = bz_whatif_number(asked, "compute"), memory = bz_whatif_number(asked, "memory"),
           copies = bz_whatif_number(asked, "copies");
    int n[2] = {0}, already = 0;
    const bz_events *k = &asked->trace->event[BZ_EVENT_KERNEL];
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        if (t->removed || !bz_task_on_device((bz_task_kind)t->kind))
            continue;
        if (t->kind == BZ_TASK_COPY) {
            bz_flow_scale(flow, i, 1 / copies);
            continue;
        }
        if (t->event < k->n && low_already(bz_string(asked->trace, k->name[t->event]))) {
            already++;
            continue;
        }
        bool computes = bz_kernel_limit_of(bz_whatif_does(asked, t)) == BZ_LIMIT_COMPUTE;
        bz_flow_scale(flow, i, 1 / (computes ? compute : memory));
        n[computes]++;
    }
    if (!n[0] && !n[1])
        return bz_whatif_because(
            asked, already ? "its %d kernels compute in 16 bits already" : "no kernels of a device are on record: %d",
            already);
    bz_whatif_assume_parameter(asked, "compute", "%d kernels of products and convolutions: time divided by %.3g", n[1],
                               compute);
    bz_whatif_assume_parameter(asked, "memory", "%d other kernels: time divided by %.3g", n[0], memory);
    if (already)
        bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, "names of kernels", "%d kernels compute in 16 bits already",
                         already);
    return n[0] + n[1];
}
