/* All that an analysis found: of models, of recordings, or of both. */
#include "report/report.h"

/* Do recordings say more by themselves than what they are held against? Their layers stand in the place of a model then, and too few
 * of them are priced. */
static bool recordings_first(const bz_findings *r)
{
    bool first = r->n_recordings > 0;
    for (int i = 0; i < r->n; i++)
        first &= r->analysis[i].bound.rebuilt && !bz_bound_goal(&r->analysis[i].bound).enough;
    return first;
}

static void put_recordings(const bz_findings *r, bz_buf *out)
{
    for (int i = 0; i < r->n_recordings; i++) {
        bz_buf_puts(out, out->len ? "\n" : "");
        bz_report_recording_text(&r->recording[i], out);
    }
}

static void findings_text(const bz_findings *r, bz_buf *out)
{
    const bz_evaluation *e = r->evaluation;
    bool first = recordings_first(r);
    if (first)
        put_recordings(r, out);
    if (e) {
        bz_report_sweep(r->analysis, r->n, out);
        bz_report_evaluation_text(r->analysis, e, out);
    }
    for (int i = 0; i < r->n; i++) {
        bz_buf_puts(out, out->len ? "\n" : "");
        bz_report_text(&r->analysis[i], out);
    }
    if (!first)
        put_recordings(r, out);
}

void bz_report_findings(const bz_findings *r, bool models, bz_form form, bz_buf *out)
{
    if (form == BZ_FORM_TEXT)
        findings_text(r, out);
    else if (form == BZ_FORM_JSON)
        bz_report_json(r, out);
    else if (models)
        bz_report_evaluation_csv(r->analysis, r->evaluation, out);
    else
        bz_report_csv(r->analysis, r->n, out);
}
