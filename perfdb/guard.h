/* guard: what is looked at before LMDB may touch a database. Private to perfdb.
 *
 * LMDB 0.9 trusts its files: it asserts, or follows page numbers out of the map, where they are
 * wrong. The meta pages are cheap to check and always are; that catches files that are something else. A file that ends
 * before its last page was cut, or LMDB left its last pages out, because one transaction took and freed them: the walk over
 * all pages tells. Only that walk makes a stranger's file safe. What LMDB itself writes is never refused. */
#ifndef BZ_PERFDB_GUARD_H
#define BZ_PERFDB_GUARD_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Refuses a network file system; `file_system` as in bz_perfdb_options. */
int bz_guard_file_system(const char *dir, int64_t (*file_system)(const char *path), bz_error *err);

typedef enum {
    GUARD_META,   /* the meta pages */
    GUARD_LENGTH, /* and every page that they lead to, if the file is shorter than they say */
    GUARD_PAGES,  /* and every page that they lead to */
} bz_guard_depth;

/* Checks a data file. A file that is missing or empty is fine: LMDB makes a new one.
 *
 * Where others may write, the caller holds a reader, and `moment` is its transaction: no writer touches those pages. 1 means
 * that the meta page of the moment is gone already: try again with a newer reader. 0 is the newest state. */
int bz_guard_file(const char *path, size_t moment, bz_guard_depth depth, bz_error *err);

/* As above on bytes in memory; NULL, or what is wrong. `size` counts whole bytes of the file. */
const char *bz_guard_bytes(const void *file, uint64_t size, bz_guard_depth depth);

#endif
