/* Reading of a SQLite file. Private to sqlite_read.c and sqlite_own.c. */
#ifndef BZ_SQLITE_READ_H
#define BZ_SQLITE_READ_H

#include "profile/scan.h"
#include "profile/string_ids.h"
#include "profile/trace.h"

typedef struct bz_sqlite_reader {
    bz_trace *t;
    uint32_t source;
    bz_database db;
    bz_string_ids strings;
    uint32_t *lane_of; /* BENANZA_LANES: our lane by the file's number */
    size_t n_lanes;
    uint32_t *stack_of; /* BENANZA_STACKS */
    size_t n_stacks;
    bool own;                                /* written by bz_trace_save */
    int64_t endless, negative, unnamed_time; /* events whose times are not whole */
} bz_sqlite_reader;

uint32_t bz_sqlite_text(bz_sqlite_reader *r, sqlite3_stmt *s, int column);
uint32_t bz_sqlite_string(bz_sqlite_reader *r, int64_t id);
bool bz_sqlite_has(bz_sqlite_reader *r, const char *table, const char *column);

/* What our own files have besides: lanes, stacks and iterations. sqlite_own.c */
void bz_sqlite_own_lanes(bz_sqlite_reader *r);
void bz_sqlite_own_stacks(bz_sqlite_reader *r);
void bz_sqlite_own_iterations(bz_sqlite_reader *r);

#endif
