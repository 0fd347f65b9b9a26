/* Names of dimensions that say how they follow from others: "past_sequence_length + sequence_length", as exporters write
 * them. Private to modelproc/. */
#ifndef BZ_DIMENSION_H
#define BZ_DIMENSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number that the name of `length` characters stands for, at least 0; false where nobody knows. */
typedef bool dimension_known(void *context, const char *name, size_t length, int64_t *number);

/* Computes `text`: whole numbers, names, + - * / // % ( ), and Max, Min, floor, ceiling of them. Division by / is exact: the whole has
 * to come out as a whole number from 0 to BZ_MAX_DIM. False where it does not, where it is no such expression, or where a
 * name in it is not known: then *missing (which may be NULL) is where that name begins in `text`, else NULL. */
bool dimension_compute(const char *text, dimension_known *known, void *context, int64_t *number, const char **missing);

/* Length of the name that `text` begins with; 0 where it begins with none. */
size_t dimension_name(const char *text);

#endif
