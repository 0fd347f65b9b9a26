/* Tables of events in a SQLite file. Private to profile/. */
#ifndef BZ_SQLITE_TABLE_H
#define BZ_SQLITE_TABLE_H

#include "profile/sqlite_read.h"
#include "profile/tables.h"

/* Nsight may append a version to a table's name. Returns the name that is there, or NULL. */
const char *bz_sqlite_table_named(bz_sqlite_reader *r, const char *base, char out[96]);

/* Adds the events of a table to the trace, if the file has it. */
void bz_sqlite_table_read(bz_sqlite_reader *r, const bz_mapping *map);

/* The table that another thread reads while this one reads others; NULL: there is none. */
typedef struct bz_sqlite_beside bz_sqlite_beside;
bz_sqlite_beside *bz_sqlite_beside_start(const bz_sqlite_reader *r);

/* Where it is this table: waits for it, adds its events and frees it. False: the table is to be read as others are. */
bool bz_sqlite_beside_end(bz_sqlite_beside **b, bz_sqlite_reader *r, const bz_mapping *map);

#endif
