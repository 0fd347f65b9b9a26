/* Numbers in their order, and what stands at a place in it. */
#ifndef BZ_SORT_H
#define BZ_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Ascending. */
void bz_sort_numbers(double *v, size_t n);
void bz_sort_times(int64_t *v, size_t n);

/* Of n > 0 sorted numbers: on the line between the two that the quantile falls between (the usual "type 7"). */
double bz_quantile(const double *sorted, size_t n, double q);

#endif
