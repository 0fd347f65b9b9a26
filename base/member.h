/* Members of a struct as a table: what it has is described once; JSON, CSV and who reads it come from there.
 *
 *   static const bz_member CAUSE[] = {BZ_MEMBER(bz_cause, id), BZ_MEMBER(bz_cause, seconds)};
 *   static const bz_member LIST[] = {BZ_MEMBER_ROWS(bz_list_of_causes, cause, n, "causes", CAUSE)};
 *   bz_members_json(BZ_MEMBERS(LIST), list, j);
 */
#ifndef BZ_MEMBER_H
#define BZ_MEMBER_H

#include "base/json.h"
#include "base/table.h"

#include <stddef.h>

typedef enum {
    BZ_MEMBER_STRING, /* NULL comes out as null */
    BZ_MEMBER_NUMBER, /* what is not finite likewise */
    BZ_MEMBER_COUNT,  /* int64_t */
    BZ_MEMBER_INT,
    BZ_MEMBER_UNSIGNED, /* uint32_t */
    BZ_MEMBER_SIZE,     /* size_t */
    BZ_MEMBER_KNOWN,    /* an int; below 0 it comes out as null */
    BZ_MEMBER_BOOL,
    BZ_MEMBER_NANOSECONDS, /* int64_t; comes out as seconds */
    BZ_MEMBER_TOLD,        /* a text that a function makes of the struct */
    BZ_MEMBER_OBJECT,      /* an object with members of the same struct */
    BZ_MEMBER_ROWS,        /* an array of objects, from an array of structs */
    BZ_MEMBER_TEXTS,       /* an array of texts */
} bz_member_type;

typedef struct bz_member {
    const char *name;
    size_t offset;
    bz_member_type type;
    int n_of;
    double least, most, otherwise; /* for who reads: numbers outside count as absent; what stands for an absent one */
    const char *(*told)(const void *of);
    const struct bz_member *of; /* [n_of]: of an object or a row */
    size_t size, count;         /* of a row; where the int stands that says how many there are */
} bz_member;

/* The compiler tells the type. */
#define BZ_MEMBER_TYPE(of, field)                                                                                      \
    _Generic(((of *)0)->field,                \
        const char *: BZ_MEMBER_STRING,       \
        double: BZ_MEMBER_NUMBER,             \
        int64_t: BZ_MEMBER_COUNT,             \
        int: BZ_MEMBER_INT,                   \
        uint32_t: BZ_MEMBER_UNSIGNED,         \
        size_t: BZ_MEMBER_SIZE,               \
        bool: BZ_MEMBER_BOOL)
#define BZ_MEMBER_LIKE(key, at, ...)                                                                                   \
    {                                                                                                                  \
        .name = (key), .offset = (at), .type = __VA_ARGS__                                                             \
    }
#define BZ_MEMBER_AS(of, field, key) BZ_MEMBER_LIKE(key, offsetof(of, field), BZ_MEMBER_TYPE(of, field))
#define BZ_MEMBER(of, field)         BZ_MEMBER_AS(of, field, #field)
#define BZ_MEMBER_WITHIN(of, field, low, high, absent)                                                                 \
    BZ_MEMBER_LIKE(#field, offsetof(of, field), BZ_MEMBER_TYPE(of, field), .least = (low), .most = (high),             \
                   .otherwise = (absent))
#define BZ_MEMBER_IF_KNOWN(of, field)     BZ_MEMBER_LIKE(#field, offsetof(of, field), BZ_MEMBER_KNOWN)
#define BZ_MEMBER_SECONDS(of, field, key) BZ_MEMBER_LIKE(key, offsetof(of, field), BZ_MEMBER_NANOSECONDS)
#define BZ_MEMBER_MADE(key, function)     BZ_MEMBER_LIKE(key, 0, BZ_MEMBER_TOLD, .told = (function))
#define BZ_MEMBER_WHOLE(key, table)       BZ_MEMBER_LIKE(key, 0, BZ_MEMBER_OBJECT, .of = (table), .n_of = BZ_N_MEMBERS(table))
#define BZ_MEMBER_LIST(of_, field, n, key)                                                                             \
    BZ_MEMBER_LIKE(key, offsetof(of_, field), BZ_MEMBER_TEXTS, .count = offsetof(of_, n))
#define BZ_MEMBER_EACH(of_, field, n, key, table)                                                                      \
    BZ_MEMBER_LIKE(key, offsetof(of_, field), BZ_MEMBER_ROWS, .of = (table), .n_of = BZ_N_MEMBERS(table),              \
                   .size = sizeof *((of_ *)0)->field, .count = offsetof(of_, n))
#define BZ_N_MEMBERS(table) ((int)(sizeof(table) / sizeof *(table)))
#define BZ_MEMBERS(table)   (table), BZ_N_MEMBERS(table)

/* Members of an open object. */
void bz_members_json(const bz_member *m, int n, const void *of, bz_json *j);
/* "key": [{…}, …], of `rows` structs of `size` bytes */
void bz_members_rows(const char *key, const bz_member *m, int n, const void *row, size_t size, int rows, bz_json *j);

/* CSV has some of the members, by their names: "verdict|first=first.seconds" is a column named as its member, and one named
 * first that has what the JSON calls seconds in the object first. The columns once, then the cells of each struct: numbers
 * with nine digits, whole ones with all of theirs; nothing where the JSON has null. */
void bz_members_columns(const char *columns, bz_table *t);
void bz_members_cells(const bz_member *m, int n, const void *of, const char *columns, bz_table *t);

#endif
