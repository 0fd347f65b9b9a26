/* Reads tables of a SQLite file as a whole: some columns, row by row, in the order that they lie in the file.
 *
 * Behind it are two ways. Tables of an export are mostly numbers, and calling a database for each of them takes several times
 * as long as looking them up in the file's pages (pages.h); libsqlite3 reads what is not that simple, and goes on from
 * the row where the pages turn out odd or damaged, so that it also says what is wrong. Rows and values are the same. */
#ifndef BZ_PROFILE_SCAN_H
#define BZ_PROFILE_SCAN_H

#include "profile/pages.h"

#include <sqlite3.h>

typedef struct bz_database {
    sqlite3 *sql;
    size_t size;
    bz_pages pages;
    bool ordinary; /* its pages can be read without libsqlite3 */
    int why; /* what first kept a question about the tables from being answered: then a column that "is not there" may be */
} bz_database;

/* `path` is read only and must not change. False: what is wrong stands in sqlite3_errmsg(db->sql). Close it in any case. */
bool bz_database_open(bz_database *db, const char *path);
void bz_database_close(bz_database *db);

/* Why the system could not read the file; NULL: it could, and what is wrong is wrong in the file. */
const char *bz_database_unread(const bz_database *db);

/* Why a database cannot be written: what the system says, or else SQLite, to which a page that it could not read back is a malformed one. */
const char *bz_sqlite_error(sqlite3 *sql);

/* NULL where it cannot be; of a query also where there is no such table. */
sqlite3_stmt *bz_database_prepare(bz_database *db, const char *sql);
sqlite3_stmt *bz_database_query(bz_database *db, const char *table, const char *sql);
/* Whether there is a row; `why` where that cannot be told. */
bool bz_database_step(bz_database *db, sqlite3_stmt *s);

/* A plain table: no view, no virtual one. */
bool bz_database_has(bz_database *db, const char *table);

typedef struct bz_scan {
    bz_database *db;
    const char *table;
    const char *const *names;
    int n;
    bz_wanted wanted[BZ_SCAN_COLUMNS];
    bz_values value[BZ_SCAN_COLUMNS];
    uint64_t rows; /* about so many are expected; 0: not known */
    bool own;      /* pages, else the statement */
    bool alone;    /* of libsqlite3, which another thread may use: odd pages end the scan as damage does */
    bz_rows pages;
    sqlite3_stmt *statement;
    int rc; /* of the statement's last step */
} bz_scan;

/* Where the table has the column, or -1. */
int bz_database_column(bz_database *db, const char *table, const char *column);

/* Begins to read n columns, which the table must have; `names` must stay. False where the table cannot be read. */
bool bz_scan_begin(bz_scan *s, bz_database *db, const char *table, const char *const *names, const bz_want *want,
                   int n);

/* How many rows are in value[0 … n); 0: no more. Texts stay valid until the next call. */
int bz_scan_next(bz_scan *s);

/* NULL where all rows came, else what stopped it (valid as long as the database). */
const char *bz_scan_end(bz_scan *s);

#endif
