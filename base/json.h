/* JSON out: a writer that knows where commas belong. Strings are escaped, bytes that are not
 * UTF-8 come out as U+FFFD; a number that is not finite comes out as null. (JSON in: cJSON for
 * small documents, yajl for streams.) */
#ifndef BZ_JSON_H
#define BZ_JSON_H

#include "base/buf.h"

#include <stdbool.h>

typedef struct bz_json {
    bz_buf *out;
    bool indent;     /* a line per member, two spaces a level; else all on one line */
    bool comma;      /* something stands before in this object or array */
    bool after_key;  /* a key was written, its value comes next */
    int depth, flat; /* flat: depth from which all is on one line, 0 for never */
} bz_json;

bz_json bz_json_to(bz_buf *out, bool indent);

/* Begins a document: an object with its kind and the version of that, which every reader looks at first. */
void bz_json_document(bz_json *j, const char *record, int version);
void bz_json_document_end(bz_json *j); /* } and the line's end */
/* A writer with a document begun. `flat`: as in bz_json; below 0 all of it is one line. */
bz_json bz_json_document_to(bz_buf *out, int flat, const char *record, int version);

void bz_json_object(bz_json *j); /* { */
void bz_json_object_end(bz_json *j);
void bz_json_array(bz_json *j); /* [ */
void bz_json_array_end(bz_json *j);
void bz_json_key(bz_json *j, const char *key); /* key must outlive nothing: it is written at once */

void bz_json_str(bz_json *j, const char *s); /* NULL comes out as null */
void bz_json_int(bz_json *j, int64_t v);
void bz_json_num(bz_json *j, double v); /* shortest text that reads back as the same double */
void bz_json_bool(bz_json *j, bool v);
void bz_json_null(bz_json *j);
void bz_json_raw(bz_json *j, const char *json); /* a value that is JSON already */

/* key and value in one */
void bz_json_key_array(bz_json *j, const char *key);
void bz_json_key_object(bz_json *j, const char *key);
void bz_json_key_strs(bz_json *j, const char *key, const char *const *text, int n); /* an array of them */
void bz_json_key_str(bz_json *j, const char *key, const char *s);
void bz_json_key_int(bz_json *j, const char *key, int64_t v);
void bz_json_key_num(bz_json *j, const char *key, double v);
void bz_json_key_bool(bz_json *j, const char *key, bool v);

/* An array of n objects, or of n arrays: what stands below writes what is in one of them, BZ_JSON_EACH (j, "rows", i, n) put_row(&row[i], j); or of
 * what it writes n times, which is a value, several or none; and an array of values, each of which is an expression of `i`: BZ_JSON_LIST(j, "names", str, i, n, row[i].name). */
#define BZ_JSON_EACH(j, key, i, n)                                                                                     \
    for (__typeof__((n) + 0) i = (bz_json_key_array((j), (key)), 0);                                                   \
         i < (n) ? (bz_json_object(j), 1) : (bz_json_array_end(j), 0); bz_json_object_end(j), i++)
#define BZ_JSON_EACH_ARRAY(j, key, i, n)                                                                               \
    for (__typeof__((n) + 0) i = (bz_json_key_array((j), (key)), 0);                                                   \
         i < (n) ? (bz_json_array(j), 1) : (bz_json_array_end(j), 0); bz_json_array_end(j), i++)
#define BZ_JSON_EACH_VALUE(j, key, i, n)                                                                               \
    for (__typeof__((n) + 0) i = (bz_json_key_array((j), (key)), 0); i < (n) || (bz_json_array_end(j), 0); i++)
#define BZ_JSON_LIST(j, key, as, i, n, value)                                                                          \
    do {                                                                                                               \
        bz_json_key_array((j), (key));                                                                                 \
        for (__typeof__((n) + 0) i = 0; i < (n); i++)                                                                  \
            bz_json_##as((j), (value));                                                                                \
        bz_json_array_end(j);                                                                                          \
    } while (0)
/* An object of n values whose names come from a table: BZ_JSON_NAMED(j, "tasks", int, k, KINDS, kind_name(k), count[k]). */
#define BZ_JSON_NAMED(j, key, as, i, n, name, value)                                                                   \
    do {                                                                                                               \
        bz_json_key_object((j), (key));                                                                                \
        for (int i = 0; i < (int)(n); i++)                                                                             \
            bz_json_key_##as((j), (name), (value));                                                                    \
        bz_json_object_end(j);                                                                                         \
    } while (0)

#endif
