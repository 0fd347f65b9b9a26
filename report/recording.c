/* What a recording tells by itself, for people and as JSON. */
#include "base/member.h"
#include "report/parts.h"

enum { ROWS = 12 }; /* of a table, for people */

void report_sheets_text(const bz_sheet *const *sheet, int n, bz_buf *out)
{
    for (int i = 0; i < n; i++)
        if (sheet[i]->n) {
            bz_buf_putc(out, '\n');
            bz_sheet_text(sheet[i], ROWS, out);
        }
}

void report_sheets_json(const bz_sheet *const *sheet, int n, bz_json *j)
{
    BZ_JSON_EACH_VALUE (j, "tables", i, n)
        if (sheet[i]->n)
            bz_sheet_json(sheet[i], j);
}

void bz_report_recording_text(const bz_recording *r, bz_buf *out)
{
    bz_buf_say(out, "%s: %s\n", r->profile, r->answer);
    for (int i = 0; i < r->n_facts; i++)
        bz_buf_say(out, "  %s\n", r->fact[i]);
    for (int i = 0; i < r->n_warnings; i++)
        bz_buf_say(out, "  warning: %s\n", r->warning[i]);
    if (!r->rebuilt)
        report_advice_text(r->analysis, out);
    report_sheets_text(r->sheet, r->n_sheets, out);
}

static void put_fits(const bz_recording *r, bz_json *j)
{
    bz_json_key_int(j, "candidates", r->candidates);
    BZ_JSON_EACH (j, "fits", i, r->n_fits)
        BZ_JSON(j, BZ_TELL("model", r->fit[i].candidate->name), BZ_TELL("from", r->fit[i].candidate->from),
                BZ_TELL("likeness", r->fit[i].likeness), BZ_TELL("equal", r->fit[i].equal),
                BZ_TELL("sized", r->fit[i].sized), BZ_TELL("evidence", r->fit[i].evidence));
}

static const bz_member RECORDING[] = {
    BZ_FIELDS(bz_recording, profile, answer, found, iterations, warm_up, truncated, device, span, busy, idle),
};

static void put_recording(const bz_recording *r, bz_json *j)
{
    bz_members_json(BZ_MEMBERS(RECORDING), r, j);
    bz_json_key_strs(j, "facts", r->fact, r->n_facts);
    bz_json_key_strs(j, "warnings", r->warning, r->n_warnings);
    put_fits(r, j);
    bz_json_key_str(j, "framework", r->analysis->ladder->framework);
    report_advice_json(r->analysis->ladder, j);
    report_sheets_json(r->sheet, r->n_sheets, j);
}

void report_recordings_json(const bz_findings *r, bz_json *j)
{
    BZ_JSON_EACH (j, "recordings", i, r->n_recordings)
        put_recording(&r->recording[i], j);
}
