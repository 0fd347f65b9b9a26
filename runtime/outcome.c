/* Records as JSON lines. */
#include "base/member.h"
#include "runtime/runtime.h"

#include <math.h>

static const char *const STATUS[] = {"ok", "failed", "unsupported", "crashed", "timeout", "dropped"};

/* Numbers that were not measured come out as null. */
static void put_stats(bz_json *j, const bz_stats *s)
{
    static const bz_stats NONE = {
        .median = NAN, .q25 = NAN, .q75 = NAN, .min = NAN, .max = NAN, .low = NAN, .high = NAN};
    BZ_PUT(j, bz_stats, s->n > 0 ? s : &NONE, median, q25, q75, min, max, low, high, n);
}

/* Traced calls are hot: their operands stay in the cache. */
static void put_trace(bz_json *j, const bz_trace *t, bool cold)
{
    if (t->reason[0])
        bz_json_key_str(j, "no_kernels", t->reason);
    if (!t->calls)
        return;
    if (!cold)
        bz_json_key_num(j, "kernel_time", t->seconds);
    bz_json_key_int(j, "n_kernels", t->n_kernels);
    BZ_JSON_EACH (j, "kernels", i, t->n_kernels < BZ_MAX_KERNELS ? t->n_kernels : BZ_MAX_KERNELS) {
        const bz_kernel *k = &t->kernel[i];
        bz_json_key_str(j, "name", k->name);
        if (!cold)
            bz_json_key_num(j, "time", k->seconds);
        BZ_JSON_LIST(j, "grid", int, d, 3, k->grid[d]);
        BZ_JSON_LIST(j, "block", int, d, 3, k->block[d]);
        BZ_JSON(j, BZ_TELL("registers", k->registers), BZ_TELL("shared", k->shared));
    }
}

/* What the device counted, beside the record's flops and bytes, which are the definition's. */
static void put_counted(bz_json *j, const bz_counted *c)
{
    if (c->reason[0])
        bz_json_key_str(j, "no_counters", c->reason);
    if (!c->calls)
        return;
    BZ_JSON_NAMED(j, "counted", num, i, c->n, c->item[i].what, c->item[i].value);
    bz_json_key_int(j, "passes", c->passes);
}

static void put_meta(bz_json *j, const bz_outcome *r, bool cold)
{
    bz_json_key_object(j, "meta");
    if (r->stats.n)
        bz_json_key_num(j, "spread", bz_stats_spread(&r->stats));
    if (!isnan(r->yardstick[0])) {
        BZ_JSON_LIST(j, "yardstick", num, i, 2, r->yardstick[i]);
        bz_json_key_int(j, "interrupted", r->interrupted);
    }
    for (int i = 0; i < BZ_N_COUNTERS; i++)
        if (!isnan(r->counter[i]))
            bz_json_key_num(j, bz_counter_names[i], r->counter[i]);
    if (r->device_clock > 0)
        bz_json_key_num(j, "sm_clock", r->device_clock);
    put_trace(j, &r->trace, cold);
    put_counted(j, &r->counted);
    bz_json_object_end(j);
}

void bz_outcome_json(const bz_outcome *r, const bz_run_setting *setting, const char *system, bz_buf *out)
{
    BZ_SCOPED(bz_buf) problem = {0};
    bz_json j = bz_json_to(out, false);
    bz_problem_print(r->problem, &problem);
    bz_json_object(&j);
    BZ_JSON(&j, BZ_TELL("v", 1), BZ_TELL("problem", bz_buf_text(&problem)));
    BZ_PUT(&j, bz_outcome, r, backend, algorithm, layout, math);
    BZ_JSON(&j, BZ_TELL("threads", setting->threads > 0 ? setting->threads : 1),
            BZ_TELL("cache", setting->cold ? "cold" : "hot"), BZ_TELL("clock", setting->clock ? setting->clock : ""),
            BZ_TELL("status", STATUS[r->status]), BZ_TELL("reason", r->reason));
    put_stats(&j, &r->stats);
    BZ_PUT(&j, bz_outcome, r, iterations, launch, workspace, variants);
    BZ_JSON(&j, BZ_TELL("bytes", bz_problem_bytes(r->problem)), BZ_TELL("flops", bz_problem_flops(r->problem)));
    BZ_PUT(&j, bz_outcome, r, chosen, chosen_training, noisy, throttled, busy, checked, timing);
    BZ_JSON(&j, BZ_TELL("provenance", "measured"), BZ_TELL("date", r->date));
    if (system)
        bz_json_key_str(&j, "system", system);
    put_meta(&j, r, setting->cold);
    bz_json_document_end(&j);
}
