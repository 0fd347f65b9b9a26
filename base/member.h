/* Members of a struct as a table: what it has is described once; JSON, CSV and who reads it come from there.
 *
 *   static const bz_member CAUSE[] = {BZ_FIELDS(bz_cause, id, seconds)};
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
    BZ_MEMBER_TEXT,   /* as "" */
    BZ_MEMBER_CHARS,  /* a text that stands in the struct */
    BZ_MEMBER_WORD,   /* an enum with n_of names */
    BZ_MEMBER_RAW,    /* a text that is a JSON object; none, or "", comes out as {} */
    BZ_MEMBER_NUMBER, /* what is not finite comes out as null */
    BZ_MEMBER_COUNT,  /* int64_t */
    BZ_MEMBER_INT,
    BZ_MEMBER_UNSIGNED, /* uint32_t */
    BZ_MEMBER_SIZE,     /* size_t */
    BZ_MEMBER_KNOWN,    /* an int; below 0 it comes out as null */
    BZ_MEMBER_BOOL,
    BZ_MEMBER_NANOSECONDS, /* int64_t; comes out as seconds */
    BZ_MEMBER_TOLD,        /* a text that a function makes of the struct */
    BZ_MEMBER_FIGURE,      /* a number that a function makes of it */
    BZ_MEMBER_TRUTH,       /* whether a function says so of it */
    BZ_MEMBER_PUT,         /* what a function writes of it */
    BZ_MEMBER_OBJECT,      /* an object with members of this struct, or of one that stands in it */
    BZ_MEMBER_POINTED,     /* of one that it points to; nothing comes out where it points to none */
    BZ_MEMBER_ROWS,        /* an array of objects, from an array of structs */
    BZ_MEMBER_TEXTS,       /* an array of texts */
    BZ_MEMBER_INTS,        /* of int */
    BZ_MEMBER_COUNTS,      /* of int64_t */
    BZ_MEMBER_NUMBERS,     /* of double */
} bz_member_type;

typedef struct bz_member {
    const char *name; /* NULL: the members of an object stand among those around it */
    size_t offset;
    bz_member_type type;
    int n_of;
    double least, most, otherwise; /* for who reads: numbers outside count as absent; what stands for an absent one */
    const char *(*word)(int value);
    const char *(*told)(const void *of);
    double (*figure)(const void *of);
    void (*put)(const void *of, bz_json *j);
    bool (*truth)(const void *of);
    bool (*where)(const void *of); /* NULL: always; nothing comes out where it is false */
    const struct bz_member *of;    /* [n_of]: of an object or a row */
    size_t size, count;            /* of a row; where the int stands that says how many there are */
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
        bool: BZ_MEMBER_BOOL,                 \
        char *: BZ_MEMBER_CHARS)
#define BZ_MEMBER_LIKE(key, at, ...)                                                                                   \
    {                                                                                                                  \
        .name = (key), .offset = (at), .type = __VA_ARGS__                                                             \
    }
#define BZ_MEMBER_AS(of, field, key) BZ_MEMBER_LIKE(key, offsetof(of, field), BZ_MEMBER_TYPE(of, field))
#define BZ_MEMBER(of, field)         BZ_MEMBER_AS(of, field, #field)
/* Several by the names of their fields, at most 16: BZ_FIELDS(bz_cause, id, name, seconds). */
#define BZ_FIELDS(of, ...)                                                                                             \
    BZ_FIELDS_PICK(__VA_ARGS__, BZ_FIELDS_16, BZ_FIELDS_15, BZ_FIELDS_14, BZ_FIELDS_13, BZ_FIELDS_12, BZ_FIELDS_11,    \
                   BZ_FIELDS_10, BZ_FIELDS_9, BZ_FIELDS_8, BZ_FIELDS_7, BZ_FIELDS_6, BZ_FIELDS_5, BZ_FIELDS_4,         \
                   BZ_FIELDS_3, BZ_FIELDS_2, BZ_FIELDS_1, )                                                            \
    (of, __VA_ARGS__)
#define BZ_FIELDS_PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, fields, ...) fields

#define BZ_FIELDS_1(of, f)       BZ_MEMBER(of, f)
#define BZ_FIELDS_2(of, f, ...)  BZ_MEMBER(of, f), BZ_FIELDS_1(of, __VA_ARGS__)
#define BZ_FIELDS_3(of, f, ...)  BZ_MEMBER(of, f), BZ_FIELDS_2(of, __VA_ARGS__)
#define BZ_FIELDS_4(of, f, ...)  BZ_MEMBER(of, f), BZ_FIELDS_3(of, __VA_ARGS__)
#define BZ_FIELDS_5(of, f, ...)  BZ_MEMBER(of, f), BZ_FIELDS_4(of, __VA_ARGS__)
#define BZ_FIELDS_6(of, f, ...)  BZ_MEMBER(of, f), BZ_FIELDS_5(of, __VA_ARGS__)
#define BZ_FIELDS_7(of, f, ...)  BZ_MEMBER(of, f), BZ_FIELDS_6(of, __VA_ARGS__)
#define BZ_FIELDS_8(of, f, ...)  BZ_MEMBER(of, f), BZ_FIELDS_7(of, __VA_ARGS__)
#define BZ_FIELDS_9(of, f, ...)  BZ_MEMBER(of, f), BZ_FIELDS_8(of, __VA_ARGS__)
#define BZ_FIELDS_10(of, f, ...) BZ_MEMBER(of, f), BZ_FIELDS_9(of, __VA_ARGS__)
#define BZ_FIELDS_11(of, f, ...) BZ_MEMBER(of, f), BZ_FIELDS_10(of, __VA_ARGS__)
#define BZ_FIELDS_12(of, f, ...) BZ_MEMBER(of, f), BZ_FIELDS_11(of, __VA_ARGS__)
#define BZ_FIELDS_13(of, f, ...) BZ_MEMBER(of, f), BZ_FIELDS_12(of, __VA_ARGS__)
#define BZ_FIELDS_14(of, f, ...) BZ_MEMBER(of, f), BZ_FIELDS_13(of, __VA_ARGS__)
#define BZ_FIELDS_15(of, f, ...) BZ_MEMBER(of, f), BZ_FIELDS_14(of, __VA_ARGS__)
#define BZ_FIELDS_16(of, f, ...) BZ_MEMBER(of, f), BZ_FIELDS_15(of, __VA_ARGS__)

#define BZ_MEMBER_WITHIN(of, field, low, high, absent)                                                                 \
    BZ_MEMBER_LIKE(#field, offsetof(of, field), BZ_MEMBER_TYPE(of, field), .least = (low), .most = (high),             \
                   .otherwise = (absent))
#define BZ_MEMBER_IF_KNOWN(of, field)     BZ_MEMBER_LIKE(#field, offsetof(of, field), BZ_MEMBER_KNOWN)
#define BZ_MEMBER_SECONDS(of, field, key) BZ_MEMBER_LIKE(key, offsetof(of, field), BZ_MEMBER_NANOSECONDS)
#define BZ_MEMBER_MADE(key, function)     BZ_MEMBER_LIKE(key, 0, BZ_MEMBER_TOLD, .told = (function))
#define BZ_MEMBER_NUMBER(key, function)   BZ_MEMBER_LIKE(key, 0, BZ_MEMBER_FIGURE, .figure = (function))
#define BZ_MEMBER_HOLDS(key, function)    BZ_MEMBER_LIKE(key, 0, BZ_MEMBER_TRUTH, .truth = (function))
#define BZ_MEMBER_WRITTEN(key, function)  BZ_MEMBER_LIKE(key, 0, BZ_MEMBER_PUT, .put = (function))
/* An object: of the same struct, of one that stands in it, of one that it points to. */
#define BZ_MEMBER_WHOLE(key, table)            BZ_MEMBER_OBJECT_OF(key, 0, BZ_MEMBER_OBJECT, table)
#define BZ_MEMBER_PART(of_, field, key, table) BZ_MEMBER_OBJECT_OF(key, offsetof(of_, field), BZ_MEMBER_OBJECT, table)
#define BZ_MEMBER_AT(of_, field, key, table)   BZ_MEMBER_OBJECT_OF(key, offsetof(of_, field), BZ_MEMBER_POINTED, table)
#define BZ_MEMBER_OBJECT_OF(key, at, type, table)                                                                      \
    BZ_MEMBER_LIKE(key, at, type, .of = (table), .n_of = BZ_N_MEMBERS(table))
/* The same without an object around them, and members that some structs have not. */
#define BZ_MEMBERS_OF(of_, field, table) BZ_MEMBER_PART(of_, field, NULL, table)
#define BZ_MEMBERS_AT(of_, field, table) BZ_MEMBER_AT(of_, field, NULL, table)
#define BZ_MEMBERS_WHERE(test, table)                                                                                  \
    BZ_MEMBER_LIKE(NULL, 0, BZ_MEMBER_OBJECT, .where = (test), .of = (table), .n_of = BZ_N_MEMBERS(table))
/* Arrays: of texts or numbers, of structs. */
#define BZ_MEMBER_LIST(of_, field, n, key)                                                                             \
    BZ_MEMBER_LIKE(key, offsetof(of_, field),                                                                          \
                   _Generic(((of_ *)0)->field[0],                                                                      \
                       const char *: BZ_MEMBER_TEXTS,                                                                  \
                       int: BZ_MEMBER_INTS,                                                                            \
                       int64_t: BZ_MEMBER_COUNTS,                                                                      \
                       double: BZ_MEMBER_NUMBERS),                                                                     \
                   .count = offsetof(of_, n))
#define BZ_MEMBER_EACH(of_, field, n, key, table)                                                                      \
    BZ_MEMBER_LIKE(key, offsetof(of_, field), BZ_MEMBER_ROWS, .of = (table), .n_of = BZ_N_MEMBERS(table),              \
                   .size = sizeof *((of_ *)0)->field, .count = offsetof(of_, n))
#define BZ_N_MEMBERS(table) ((int)(sizeof(table) / sizeof *(table)))
#define BZ_MEMBERS(table)   (table), BZ_N_MEMBERS(table)

/* Members of an open object. */
void bz_members_json(const bz_member *m, int n, const void *of, bz_json *j);
/* Fields of one, as members of an open object: BZ_PUT(j, bz_cause, cause, id, name, seconds); at most 16. */
#define BZ_PUT(j, type, one, ...)                                                                                      \
    bz_members_json((const bz_member[]){BZ_FIELDS(type, __VA_ARGS__)},                                                 \
                    BZ_N_MEMBERS(((const bz_member[]){BZ_FIELDS(type, __VA_ARGS__)})), (one), (j))
/* Members that no struct has, of an open object; the value's type tells how: BZ_JSON(j, BZ_TELL("name", l->name), BZ_TELL("seconds", sum / n)). What
 * an operator says is an int in C: BZ_TELL("own", (bool)(k == own)). */
typedef struct bz_said {
    const char *key, *text;
    double number;
    int64_t count;
    char type; /* s, n, b, i */
} bz_said;
#define BZ_JSON(j, ...)                                                                                                \
    bz_members_tell((j), (const bz_said[]){__VA_ARGS__}, sizeof((const bz_said[]){__VA_ARGS__}) / sizeof(bz_said))
#define BZ_TELL(key, v)                                                                                                \
    _Generic((v), char *: bz_said_str, const char *: bz_said_str, double: bz_said_num, float: bz_said_num, bool: bz_said_bool, default: bz_said_int)((key), (v))
void bz_members_tell(bz_json *j, const bz_said *told, size_t n);
bz_said bz_said_str(const char *key, const char *s);
bz_said bz_said_num(const char *key, double v);
bz_said bz_said_bool(const char *key, bool v);
bz_said bz_said_int(const char *key, int64_t v);

/* "key": {…} */
void bz_members_object(const char *key, const bz_member *m, int n, const void *of, bz_json *j);
/* A document, with the end of its line. `flat`: as in bz_json; below 0 all of it is one line. */
void bz_members_document(const char *record, int version, const bz_member *m, int n, const void *of, int flat,
                         bz_buf *out);
/* "key": [{…}, …], of `rows` structs of `size` bytes */
void bz_members_rows(const char *key, const bz_member *m, int n, const void *row, size_t size, int rows, bz_json *j);

/* CSV has some of the members, by their names: "verdict|first=first.seconds" is a column named as its member, and one named
 * first that has what the JSON calls seconds in the object first. The columns once, then the cells of each struct: numbers
 * with nine digits, whole ones with all of theirs; nothing where the JSON has null. */
void bz_members_columns(const char *columns, bz_table *t);
void bz_members_cells(const bz_member *m, int n, const void *of, const char *columns, bz_table *t);

#endif
