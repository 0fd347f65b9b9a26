/* The columns of bz_events as data: which kinds have which, how wide they are. Allocation, sorting,
 * saving and loading walk this table, so that a new property is one member and one row. */
#ifndef BZ_PROFILE_COLUMNS_H
#define BZ_PROFILE_COLUMNS_H

#include "profile/profile.h"

typedef struct bz_column {
    size_t offset; /* of the pointer in bz_events */
    size_t size;   /* bytes per row */
    unsigned kinds;
} bz_column;

extern const bz_column BZ_COLUMNS[];
extern const size_t BZ_N_COLUMNS;

static inline void **bz_column_of(bz_events *e, const bz_column *c)
{
    return (void **)(void *)((char *)e + c->offset);
}

/* Makes room for n rows; what is behind the rows that are there is zero. */
void bz_events_reserve(bz_events *e, bz_event_kind kind, size_t n);
void bz_events_free(bz_events *e);

/* Gives back the memory behind the rows, of which pages of two megabytes left some. */
void bz_events_trim(bz_events *e, bz_event_kind kind);

/* Sorts the rows by start, longer first; stable. `order` (may be NULL) gets old indexes by new
 * position: free it. NULL where nothing moved. */
void bz_events_sort(bz_events *e, bz_event_kind kind, uint32_t **order);

/* The first of the sorted rows that starts then or later; n where there is none. */
size_t bz_events_from(const bz_events *e, int64_t start);

/* Keeps the rows where keep[i]. */
void bz_events_filter(bz_events *e, bz_event_kind kind, const bool *keep);

#endif
