/* Table StringIds of a SQLite file: the file's numbers of strings, and ours. */
#ifndef BZ_PROFILE_STRING_IDS_H
#define BZ_PROFILE_STRING_IDS_H

#include "profile/profile.h"
#include "profile/scan.h"

typedef struct bz_string_ids {
    int64_t *file;  /* [n] sorted; our number is in ours[] */
    uint32_t *ours; /* [span] by number - first, BZ_NONE where there is none; where span is 0, [n] as in file[] */
    size_t n;
    uint64_t span;
    int64_t first;
    int64_t orphans; /* how often a number was asked for that the table does not have */
} bz_string_ids;

/* NULL, or why only a part of the table could be read. */
const char *bz_string_ids_read(bz_string_ids *ids, bz_trace *t, bz_database *db);
uint32_t bz_string_ids_search(bz_string_ids *ids, int64_t file_id);

/* Our number, 0 where the table does not have the file's. */
static inline uint32_t bz_string_ids_find(bz_string_ids *ids, int64_t file_id)
{
    uint64_t i = (uint64_t)file_id - (uint64_t)ids->first;
    return i < ids->span && ids->ours[i] != BZ_NONE ? ids->ours[i] : bz_string_ids_search(ids, file_id);
}

void bz_string_ids_free(bz_string_ids *ids);

/* A text of a file as a string of ours; NULL is "". Texts end at a NUL, and after 64 KiB. */
uint32_t bz_string_ids_text(bz_trace *t, const char *text, int64_t n);

#endif
