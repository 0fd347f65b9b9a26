/* Plain operands in host memory: what backends need that take row-major arrays as they are. Private to
 * runtime/ and its backends. */
#ifndef BZ_PLAIN_H
#define BZ_PLAIN_H

#include "runtime/backend.h"

/* All operands of a job, `copies` of each, in their data types. */
typedef struct bz_plain {
    const bz_job *job;
    char *data[BZ_PROBLEM_OPERANDS];
    size_t size[BZ_PROBLEM_OPERANDS], step[BZ_PROBLEM_OPERANDS];
} bz_plain;

/* Allocates, converts, and touches every page. -1 with err filled where there is not enough memory. */
int bz_plain_make(bz_plain *p, const bz_job *job, bz_error *err);
void *bz_plain_at(const bz_plain *p, int operand, int copy);
void bz_plain_poison(const bz_plain *p);
void bz_plain_read(const bz_plain *p, float *values);
void bz_plain_free(bz_plain *p);

#endif
