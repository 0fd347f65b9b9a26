/* What the comparisons share. Private to compare/. */
#ifndef BZ_COMPARE_ROWS_H
#define BZ_COMPARE_ROWS_H

#include "compare/compare.h"

#define BZ_COMPARE_GUESS 0.025 /* how far a time without an interval is taken to be off */

/* Gives the row its verdict and adds it, to an array with room for it; then, once, the order. */
void bz_compare_add(bz_compare *c, const bz_compare_row *row);
void bz_compare_sort(bz_compare *c);

#endif
