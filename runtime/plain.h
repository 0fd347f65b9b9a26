/* Plain operands in host memory: what backends need that take row-major arrays as they are. Private to
 * runtime/ and its backends. */
#ifndef BZ_PLAIN_H
#define BZ_PLAIN_H

#include "runtime/backend.h"

/* All operands of a job, `copies` of each, in their data types. Made when the first variant is prepared, and
 * shared by all: the first member of such a backend's session. */
typedef struct bz_plain {
    const bz_job *job;
    bool made;
    char *data[BZ_PROBLEM_OPERANDS];
    size_t size[BZ_PROBLEM_OPERANDS], step[BZ_PROBLEM_OPERANDS];
} bz_plain;

void *bz_plain_at(const bz_plain *p, int operand, int copy);
void bz_plain_free(bz_plain *p);

/* Functions of bz_backend for sessions that begin with a bz_plain. */
int bz_plain_prepare(bz_variant *v, bz_error *err);
int bz_plain_poison(bz_variant *v);
int bz_plain_read(bz_variant *v, float *values, bz_error *err);
int bz_plain_read_operand(bz_variant *v, int operand, float *values, bz_error *err);
void bz_plain_release(bz_variant *v);
int bz_plain_wants(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err);
int bz_plain_bind(bz_variant *v, int operand, void *at);

/* All of them, as members of a bz_backend. */
#define BZ_PLAIN_OPERANDS                                                                                              \
    .prepare = bz_plain_prepare, .poison = bz_plain_poison, .read = bz_plain_read,                                     \
    .read_operand = bz_plain_read_operand, .release = bz_plain_release, .wants = bz_plain_wants, .bind = bz_plain_bind

#endif
