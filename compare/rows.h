/* What the comparisons share. For compare/ and report/. */
#ifndef BZ_COMPARE_ROWS_H
#define BZ_COMPARE_ROWS_H

#include "compare/compare.h"

#define BZ_COMPARE_GUESS 0.025 /* how far a time without an interval is taken to be off */

/* Gives the row its verdict and adds it, to an array with room for it; then, once, the order. */
void bz_compare_add(bz_compare *c, const bz_compare_row *row);
void bz_compare_sort(bz_compare *c);

/* Parts of the reports: a table of the first `rows` rows, and a row as JSON. */
void bz_compare_rows_text(const bz_compare *c, int rows, bz_buf *out);
void bz_compare_row_json(const bz_compare_row *row, bz_json *j);

#endif
