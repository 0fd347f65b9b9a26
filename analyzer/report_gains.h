/* Reports of fusion, matrix units, waterfall and advice. Private to analyzer/. */
#ifndef BZ_ANALYZER_REPORT_GAINS_H
#define BZ_ANALYZER_REPORT_GAINS_H

#include "analyzer/analyzer.h"

void report_steps_text(const bz_analysis *a, bz_buf *out); /* of each profile: the waterfall, then advice */
void report_gains_text(const bz_analysis *a, bz_buf *out); /* fusion and matrix units */

/* Members of an open object. */
void report_gains_json(const bz_analysis *a, bz_json *j);
void report_steps_json(const bz_bound *b, const bz_ladder *l, bz_json *j);

#endif
