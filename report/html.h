/* The parts of the page. Private to the room. */
#ifndef BZ_REPORT_HTML_H
#define BZ_REPORT_HTML_H

#include "report/report.h"

/* What the page draws and the report does not tell: docs/formats.md does not describe it, it changes with the page. NULL: nothing
 * but who made it. */
void bz_html_drawing(const bz_findings *r, bz_buf *out);
void bz_html_drawing_whatif(const bz_whatif_shown *shown, bool all, bz_buf *out);

#endif
