/* Members of a struct as a table: what it has is described once, and written from there.
 *
 *   static const bz_member CAUSE[] = {BZ_MEMBER(bz_cause, id), BZ_MEMBER(bz_cause, seconds)};
 *   bz_members_rows("causes", BZ_MEMBERS(CAUSE), a->cause, sizeof *a->cause, a->n_causes, j);
 */
#ifndef BZ_MEMBER_H
#define BZ_MEMBER_H

#include "base/json.h"

#include <stddef.h>

typedef enum {
    BZ_MEMBER_STRING, /* NULL comes out as null */
    BZ_MEMBER_NUMBER, /* what is not finite likewise */
    BZ_MEMBER_COUNT,  /* int64_t */
    BZ_MEMBER_INT,
    BZ_MEMBER_KNOWN, /* an int; below 0 it comes out as null */
    BZ_MEMBER_BOOL,
} bz_member_type;

typedef struct bz_member {
    const char *name;
    size_t offset;
    bz_member_type type;
    double least, most, otherwise; /* for who reads: numbers outside count as absent; what stands for an absent one */
} bz_member;

/* The compiler tells the type. */
#define BZ_MEMBER_TYPE(of, field)                                                                                      \
    _Generic(((of *)0)->field,                \
        const char *: BZ_MEMBER_STRING,       \
        double: BZ_MEMBER_NUMBER,             \
        int64_t: BZ_MEMBER_COUNT,             \
        int: BZ_MEMBER_INT,                   \
        bool: BZ_MEMBER_BOOL)
#define BZ_MEMBER_AS(of, field, name)                                                                                  \
    {                                                                                                                  \
        name, offsetof(of, field), BZ_MEMBER_TYPE(of, field), 0, 0, 0                                                  \
    }
#define BZ_MEMBER_WITHIN(of, field, least, most, otherwise)                                                            \
    {                                                                                                                  \
#field, offsetof(of, field), BZ_MEMBER_TYPE(of, field), least, most, otherwise                                 \
    }
#define BZ_MEMBER(of, field) BZ_MEMBER_AS(of, field, #field)
#define BZ_MEMBER_IF_KNOWN(of, field)                                                                                  \
    {                                                                                                                  \
#field, offsetof(of, field), BZ_MEMBER_KNOWN, 0, 0, 0                                                          \
    }
#define BZ_MEMBERS(table) (table), (int)(sizeof(table) / sizeof *(table))

/* Members of an open object. */
void bz_members_json(const bz_member *m, int n, const void *of, bz_json *j);
/* "key": [{…}, …], of `rows` structs of `size` bytes */
void bz_members_rows(const char *key, const bz_member *m, int n, const void *row, size_t size, int rows, bz_json *j);

#endif
