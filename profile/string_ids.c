#include "profile/string_ids.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t file;
    uint32_t ours;
} pair;

BZ_SORTS(by_file, pair, BZ_ORDER(p->file, q->file));

uint32_t bz_string_ids_text(bz_trace *t, const char *text, int64_t n)
{
    enum { LONGEST = 1 << 16 };
    return text ? bz_trace_intern(t, text, strnlen(text, (size_t)(n < LONGEST ? n : LONGEST))) : 0;
}

const char *bz_string_ids_read(bz_string_ids *ids, bz_trace *t, bz_database *db)
{
    static const char *const COLUMNS[] = {"id", "value"}, *const OLD[] = {"_id_", "value"};
    bool old = bz_database_has(db, "StringTable");
    static const bz_want WANT[] = {BZ_WANT_NUMBER, BZ_WANT_TEXT};
    bz_scan s;
    if (!bz_scan_begin(&s, db, old ? "StringTable" : "StringIds", old ? OLD : COLUMNS, WANT, 2))
        return sqlite3_errmsg(db->sql);
    size_t n = 0;
    BZ_FREED pair *known = NULL;
    bool sorted = true;
    for (int rows; (rows = bz_scan_next(&s));)
        for (int i = 0; i < rows; i++) {
            BZ_ROOM(known, n);
            known[n] = (pair){s.value[0].number[i], bz_string_ids_text(t, s.value[1].text[i], s.value[1].number[i])};
            sorted = sorted && (!n || known[n - 1].file < known[n].file);
            n++;
        }
    if (!sorted)
        qsort(known, n, sizeof *known, by_file);
    ids->n = n;
    ids->first = n ? known[0].file : 0;
    /* mostly there are few holes: then the number is the index */
    uint64_t span = n ? (uint64_t)known[n - 1].file - (uint64_t)known[0].file + 1 : 0;
    ids->span = span && span <= 16 * (uint64_t)n + 4096 ? span : 0;
    ids->ours = bz_alloc(ids->span ? ids->span : n, sizeof *ids->ours);
    ids->file = bz_alloc(n, sizeof *ids->file);
    memset(ids->ours, 0xff, (ids->span ? ids->span : n) * sizeof *ids->ours);
    for (size_t i = 0; i < n; i++) {
        ids->file[i] = known[i].file;
        ids->ours[ids->span ? (uint64_t)known[i].file - (uint64_t)ids->first : i] = known[i].ours;
    }
    return bz_scan_end(&s);
}

uint32_t bz_string_ids_search(bz_string_ids *ids, int64_t id)
{
    size_t low = 0, high = ids->span ? 0 : ids->n;
    BZ_FIND_FIRST(low, high, mid, ids->file[mid] < id);
    if (!ids->span && low < ids->n && ids->file[low] == id)
        return ids->ours[low];
    ids->orphans++;
    return 0;
}

void bz_string_ids_free(bz_string_ids *ids)
{
    free(ids->file);
    free(ids->ours);
}
