/* The table of kinds. Private to problem*.c. */
#ifndef BZ_PROBLEM_TABLE_H
#define BZ_PROBLEM_TABLE_H

#include "runtime/problem.h"

typedef enum {
    BZ_FORM_END,
    BZ_FORM_EXTENT,  /* shape, ends with 0 */
    BZ_FORM_SPATIAL, /* a number for each spatial dimension */
    BZ_FORM_PADS,    /* two for each */
    BZ_FORM_PERM,    /* a number for each dimension of the first shape */
    BZ_FORM_SIZES,   /* as a shape, longer */
    BZ_FORM_INT,
    BZ_FORM_FLAG,
    BZ_FORM_REAL,
    BZ_FORM_FN,
    BZ_FORM_NAME, /* an enumeration; `names` in its order */
} bz_form;

typedef struct bz_member {
    const char *name;
    bz_form form;
    size_t at;
    double usual;              /* the value where none is given; NaN: it must be given */
    bool optional;             /* not printed where it has its usual value */
    const char *const *names;  /* texts of an enumeration, ends with NULL */
    const char *const *c_name; /* how they are written in C */
} bz_member;

enum { BZ_MAX_MEMBERS = 9 };

/* Shapes stand before what depends on their rank. */
typedef struct bz_kind {
    const char *name, *c_name, *c_field;
    bool post; /* takes post-operations */
    bz_member member[BZ_MAX_MEMBERS];
} bz_kind;

extern const bz_kind bz_kinds[BZ_PROBLEM_N_KINDS];

/* A member of a problem, its type known from the table. */
#define BZ_FIELD(type, p, m)       (*(type *)((char *)(p) + (m)->at))
#define BZ_CONST_FIELD(type, p, m) (*(const type *)((const char *)(p) + (m)->at))

const int64_t *bz_member_numbers(const bz_problem *p, const bz_member *m);
int bz_member_length(const bz_problem *p, const bz_member *m); /* numbers it must have; a shape: may have */
int bz_member_given(const bz_problem *p, const bz_member *m);  /* numbers it has */
int bz_problem_rank(const bz_problem *p);                      /* of the shape that spatial members belong to */

#endif
