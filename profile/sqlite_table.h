/* Tables of events in a SQLite file. Private to profile/. */
#ifndef BZ_SQLITE_TABLE_H
#define BZ_SQLITE_TABLE_H

#include "profile/sqlite_read.h"
#include "profile/tables.h"

/* Nsight may append a version to a table's name. Returns the name that is there, or NULL. */
const char *bz_sqlite_table_named(bz_sqlite_reader *r, const char *base, char out[96]);

/* Adds the events of a table to the trace, if the file has it. */
void bz_sqlite_table_read(bz_sqlite_reader *r, const bz_mapping *map);

#endif
