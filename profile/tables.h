/* How the kinds of events lie in SQLite: Nsight Systems' tables and columns, and ours. Reading and
 * writing walk the same rows. */
#ifndef BZ_PROFILE_TABLES_H
#define BZ_PROFILE_TABLES_H

#include "profile/profile.h"

typedef enum { BZ_CELL_INT64, BZ_CELL_INT32, BZ_CELL_STRING_ID, BZ_CELL_TEXT, BZ_CELL_LAUNCHED } bz_cell;

typedef struct bz_field {
    const char *name; /* what we write */
    const char *old;  /* what another generation calls it, or NULL */
    size_t offset;    /* of the column in bz_events, or of what is told of a launch in bz_launched */
    bz_cell cell;
    bool needed; /* a table without it cannot be read */
    bool detail; /* no summary tells it */
} bz_field;

typedef struct bz_mapping {
    const char *table; /* a version may follow: _V2 */
    bz_event_kind kind;
    bool device;             /* rows name device, context, stream; else globalTid */
    bool written;            /* by bz_trace_save; else only read */
    bz_library library;      /* of calls */
    const bz_field *columns; /* ends with a NULL name */
} bz_mapping;

extern const bz_mapping BZ_TABLES[];
extern const int BZ_N_TABLES;

#define BZ_TRACE_VERSION "1"

#endif
