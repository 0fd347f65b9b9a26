/* guard: what is looked at before LMDB may touch a database. Private to perfdb.
 *
 * LMDB 0.9 trusts its files: it asserts, or follows page numbers out of the map, where they are
 * wrong. The meta pages and the file's size are cheap to check and always are; that catches files
 * that are cut, or are something else. Only the walk over all pages makes a stranger's file safe. */
#ifndef BZ_PERFDB_GUARD_H
#define BZ_PERFDB_GUARD_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Refuses a network file system; `file_system` as in bz_perfdb_options. */
int bz_guard_file_system(const char *dir, int64_t (*file_system)(const char *path), bz_error *err);

/* Checks the meta pages of a data file, and with `pages` every page that they lead to. A file that
 * is missing or empty is fine: LMDB makes a new one. */
int bz_guard_file(const char *path, bool pages, bz_error *err);

/* As above on bytes in memory; NULL, or what is wrong. `size` counts whole bytes of the file. */
const char *bz_guard_bytes(const void *file, uint64_t size, bool pages);

#endif
