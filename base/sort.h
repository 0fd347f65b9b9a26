/* Numbers in their order, and what stands at a place in it. */
#ifndef BZ_SORT_H
#define BZ_SORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Ascending. */
void bz_sort_numbers(double *v, size_t n);
void bz_sort_times(int64_t *v, size_t n);

/* As qsort; of what is in order already, or of a few such pieces behind one another, in little more than one pass. */
void bz_sort(void *v, size_t n, size_t size, int (*compare)(const void *, const void *));
/* qsort for a list that may have none, NULL. */
#define BZ_QSORT(list, n, compare) ((n) ? qsort((list), (size_t)(n), sizeof *(list), (compare)) : (void)0)
/* By a uint32_t below `groups` at `offset` of each element; what is equal in it keeps its order. */
void bz_sort_groups(void *v, size_t n, size_t size, size_t offset, uint32_t groups);

/* Of n > 0 sorted numbers: on the line between the two that the quantile falls between (the usual "type 7"). */
double bz_quantile(const double *sorted, size_t n, double q);

/* For qsort: which of two comes first by a number, the smaller one; and by something else where that says nothing. */
#define BZ_ORDER(a, b)       (((a) > (b)) - ((a) < (b)))
#define BZ_THEN(order, then) ((order) ? (order) : (then))
/* A static function for qsort that orders what p and q point to: BZ_SORTS(by_start, span, BZ_ORDER(p->start, q->start)); */
#define BZ_SORTS(name, type, order)                                                                                    \
    static int name(const void *a, const void *b)                                                                      \
    {                                                                                                                  \
        const type *p = a;                                                                                             \
        const type *q = b; /* of pointers: `type` is thing *const */                                                   \
        return (order);                                                                                                \
    }                                                                                                                  \
    struct name##_is_defined

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
