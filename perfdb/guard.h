/* guard: what is looked at before LMDB may touch a database. Private to perfdb.
 *
 * LMDB 0.9 trusts its files: where page numbers are wrong it asserts, follows them out of the map, or
 * runs in circles. So every page of a file is looked at before LMDB is led to any: 3 ms for 64,000 records. What LMDB
 * itself writes is never refused: last pages that it left out because one transaction took and freed them, a value that
 * shrank and kept its longer run of pages. */
#ifndef BZ_PERFDB_GUARD_H
#define BZ_PERFDB_GUARD_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Refuses a network file system; `file_system` as in bz_perfdb_options. */
int bz_guard_file_system(const char *dir, int64_t (*file_system)(const char *path), bz_error *err);

/* Checks the meta pages of a data file, and with `pages` every page that they lead to. A file that is missing or empty is
 * fine: LMDB makes a new one.
 *
 * Where others may write, the caller holds a reader, and `moment` is its transaction: no writer touches those pages. 1 means
 * that the meta page of the moment is gone already: try again with a newer reader. 0 is the newest state. */
int bz_guard_file(const char *path, size_t moment, bool pages, bz_error *err);

/* As above on bytes in memory; NULL, or what is wrong. `size` counts whole bytes of the file. */
const char *bz_guard_bytes(const void *file, uint64_t size, bool pages);

/* Whether the file is but the first part of an empty database. */
bool bz_guard_unfinished(const char *path);

/* By page number, whether it is free or part of the list of free pages; NULL where that list cannot be read. */
unsigned char *bz_guard_free_pages(const void *file, uint64_t size, size_t *n);

#endif
