/* The parts of the reports that have files of their own. Private to report/. */
#ifndef BZ_REPORT_PARTS_H
#define BZ_REPORT_PARTS_H

#include "base/member.h"
#include "report/report.h"

/* Nothing where the ladder has no alignment. */
void report_align_text(const bz_bound *b, const bz_ladder *l, bz_buf *out);
void report_align_json(const bz_bound *b, const bz_alignment *a, bz_json *j); /* a member of an open object */

const char *report_provenance(const bz_stock *c, bz_arena *arena); /* "measured, imported" */

void report_answer_text(const bz_analysis *a,
                        bz_buf *out); /* the first sentence: one for each profile, or for the model */
void report_advice_text(const bz_analysis *a, bz_buf *out); /* of each profile */
void report_steps_text(const bz_analysis *a, bz_buf *out);  /* of each profile: the waterfall */
void report_gains_text(const bz_analysis *a, bz_buf *out);  /* fusion and matrix units */

/* Tables that say what their columns are: of recordings and of analyses. */
void report_sheets_text(const bz_sheet *const *sheet, int n, bz_buf *out);
/* What bz_report_tables_json prints of all tables, of long ones the first rows. A value. */
void report_tables_page(bz_tables *m, const char *file, bz_json *j);
void report_sheets_json(const bz_sheet *const *sheet, int n, bz_json *j); /* "tables": [] of an open object */

/* Says what a sum over the bodies of layers takes for granted; nothing where that is nothing. */
void report_guesses(int loops_open, int branches, bz_buf *out);

/* Things of which the same text is told are one group, in the order in which they come; what comes behind `most` groups is left. */
typedef struct report_groups {
    struct {
        const char *text;
        const void *first;
        int count;
    } group[8];
    int most, n, left;
} report_groups;
void report_group(report_groups *g, const char *text, const void *thing);

/* What --json prints, with a line per member or on one line. */
void report_document(const bz_findings *r, bool indent, bz_buf *out);

/* Members of an open object. */
void report_stock_json(bz_json *j, const bz_stock *c);         /* `problems` to `provenance` */
void report_recordings_json(const bz_findings *r, bz_json *j); /* "recordings": [] */
extern const bz_member report_assumed[1];                      /* of a bz_prediction: "assumed": [] */
void report_advice_json(const bz_ladder *l, bz_json *j);
void report_gains_json(const bz_analysis *a, bz_json *j);
void report_steps_json(const bz_bound *b, const bz_ladder *l, bz_json *j);

#endif
