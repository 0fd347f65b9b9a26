/* import: what readers of foreign formats hand their records to. Private to perfdb. */
#ifndef BZ_PERFDB_IMPORT_H
#define BZ_PERFDB_IMPORT_H

#include "base/buf.h"
#include "base/map.h"
#include "perfdb/perfdb.h"

typedef struct bz_import {
    bz_perfdb *db;
    const char *path;
    const char *system; /* of records that name none; may be NULL */
    int64_t latest;     /* date behind which no record can be */
    bz_perfdb_import_report *report;
    bz_arena arena; /* strings of the waiting records; emptied by a flush */
    bz_record *records;
    size_t n;
    size_t named;    /* bad lines that were told one by one, or would have been */
    size_t not_json; /* of this file */
    bool waits;      /* no line was good so far: what is wrong with the others waits */
    bz_buf waiting;
} bz_import;

/* Takes a record, which may be flushed with all before it; one that may not be stored is counted
 * as bad under its line or number in the file. */
int bz_import_record(bz_import *in, size_t number, bz_record *r, bz_error *err);
int bz_import_flush(bz_import *in, bz_error *err);
void bz_import_bad(bz_import *in, size_t number, const char *why);

#endif
