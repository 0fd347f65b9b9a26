/* The doctor's findings. */
#include "report/report.h"

#include "base/member.h"

static const struct {
    const char *name;
    bz_style style;
} HEALTH[BZ_HEALTHS] = {
    {"good", BZ_STYLE_GOOD}, {"unknown", BZ_STYLE_NONE}, {"warning", BZ_STYLE_WARNING}, {"bad", BZ_STYLE_BAD}};

void bz_report_doctor_text(const bz_doctor *d, bz_buf *out)
{
    const int *count = d->count;
    bz_style_begin(out, BZ_STYLE_STRONG);
    if (count[BZ_HEALTH_BAD])
        bz_buf_printf(out, "This machine cannot measure well now: %d of %d checks %s bad", count[BZ_HEALTH_BAD],
                      BZ_DOCTOR_CHECKS, count[BZ_HEALTH_BAD] == 1 ? "is" : "are");
    else if (count[BZ_HEALTH_WARNING])
        bz_buf_printf(out, "This machine can measure; %d of %d checks give%s a warning", count[BZ_HEALTH_WARNING],
                      BZ_DOCTOR_CHECKS, count[BZ_HEALTH_WARNING] == 1 ? "s" : "");
    else
        bz_buf_puts(out, "This machine is ready to measure");
    bz_style_end(out, BZ_STYLE_STRONG);
    bz_buf_puts(out, "\n\n");
    for (int v = BZ_HEALTH_BAD; v >= BZ_HEALTH_GOOD; v--)
        for (int i = 0; i < BZ_DOCTOR_CHECKS; i++) {
            const bz_finding *f = &d->finding[i];
            if ((int)f->health != v)
                continue;
            bz_style_begin(out, HEALTH[v].style);
            bz_buf_printf(out, "%-7s", HEALTH[v].name);
            bz_style_end(out, HEALTH[v].style);
            bz_buf_printf(out, "  %-15s  ", f->check);
            bz_buf_say(out, "%s\n", f->found);
            if (f->advice)
                bz_buf_printf(out, "%26s%s\n", "", f->advice);
        }
}

void bz_report_doctor_json(const bz_doctor *d, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, -1, "doctor", 1);
    BZ_JSON(&j, BZ_TELL("bad", d->count[BZ_HEALTH_BAD]), BZ_TELL("warnings", d->count[BZ_HEALTH_WARNING]));
    BZ_JSON_EACH (&j, "checks", i, BZ_DOCTOR_CHECKS) {
        const bz_finding *f = &d->finding[i];
        BZ_JSON(&j, BZ_TELL("check", f->check), BZ_TELL("verdict", HEALTH[f->health].name), BZ_TELL("found", f->found),
                BZ_TELL("advice", f->advice));
    }
    bz_json_document_end(&j);
}
