/* benanza predict --profile: the iteration of a recording on systems that it did not run on. */
#include "cli/predict.h"
#include "cli/profile.h"
#include "whatif/whatif.h"

#include <string.h>

/* By --from, else by the device that the recording names. */
static int find_origin(const predict_profile *p, const bz_trace *t, bz_whatif_records *records, bz_error *err)
{
    const char *gpu = bz_trace_told(t, "gpu");
    bz_machine machine;
    bz_arena arena = {0};
    records->device = p->from ? p->from : gpu;
    if (!records->device || !*records->device)
        return bz_fail(err, BZ_USAGE,
                       "the recording does not say what it was recorded on: name the system with --from");
    if (bz_perfdb_system(p->db, records->device, &records->system, err))
        return -1;
    int failed = !records->system && bz_machine_named(records->device, &arena, &machine, err);
    bz_arena_free(&arena);
    return failed ? bz_fail_in(err, "what the recording is of") : 0;
}

static int predict(const predict_profile *p, const bz_trace *t, bz_whatif *w, bz_arena *arena, bz_error *err)
{
    for (int i = 0; i < p->n; i++) {
        bz_whatif_asked asked;
        const char *text = bz_arena_printf(arena, "system=%s", p->to[i]);
        if (bz_whatif_parse(text, arena, &asked, err) || bz_whatif_predict(t, &asked, 1, arena, w, NULL, NULL, err))
            return -1;
        w->prediction[w->n - 1].name = p->to[i];
    }
    return 0;
}

int predict_recording(const predict_profile *p, const bz_price_list *prices, bz_form form, bz_buf *out, bz_error *err)
{
    bz_trace *t = bz_job_trace(p->job);
    bz_arena *arena = &p->job->arena;
    bz_flow flow = {0};
    bz_whatif w;
    bz_whatif_records records = {.db = p->db, .setting = p->setting};
    int failed = trace_read(t, p->files->item, p->files->n, NULL, err) || find_origin(p, t, &records, err) ||
                 bz_flow_make(t, bz_typical_iteration(t), &flow, err) || bz_whatif_begin(t, &flow, arena, &w, err);
    if (!failed && w.error > BZ_WHATIF_REFUSE)
        failed =
            bz_fail(err, BZ_INCOMPLETE,
                    "the unchanged iteration is simulated %.1f %% off what was measured: no prediction stands on that",
                    100 * w.error);
    if (!failed) {
        const char *name = records.system ? records.system->name : records.device;
        records.name = bz_arena_printf(arena, "records of %s", name);
        w.records = &records;
        failed = predict(p, t, &w, arena, err);
        if (!failed)
            bz_report_moved(&w, name, prices, form, out);
    }
    bz_flow_free(&flow);
    return failed ? -1 : 0;
}
