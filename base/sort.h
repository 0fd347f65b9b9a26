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

/* For qsort: which of two comes first by a number, the smaller one; and by something else where that says nothing. */
#define BZ_ORDER(a, b)       (((a) > (b)) - ((a) < (b)))
#define BZ_THEN(order, then) ((order) ? (order) : (then))

/* Moves `low` to the first place before `high` of which `holds` does not hold, or to `high`. `holds` is said of the place `at`; it holds of
 * all places before that one, and of none behind: BZ_FIND_FIRST(low, high, at, sorted[at] < wanted). */
#define BZ_FIND_FIRST(low, high, at, holds)                                                                            \
    while ((low) < (high)) {                                                                                           \
        __typeof__(low) at = (low) + ((high) - (low)) / 2;                                                             \
        if (holds)                                                                                                     \
            (low) = at + 1;                                                                                            \
        else                                                                                                           \
            (high) = at;                                                                                               \
    }

#endif
