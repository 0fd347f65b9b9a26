#include "profile/string_ids.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t file;
    uint32_t ours;
} pair;

static int by_file(const void *a, const void *b)
{
    const pair *p = a, *q = b;
    return p->file < q->file ? -1 : p->file > q->file;
}

uint32_t bz_string_ids_text(bz_trace *t, const char *text, int64_t n)
{
    enum { LONGEST = 1 << 16 };
    return text ? bz_trace_intern(t, text, strnlen(text, (size_t)(n < LONGEST ? n : LONGEST))) : 0;
}

const char *bz_string_ids_read(bz_string_ids *ids, bz_trace *t, const bz_database *db)
{
    static const char *const COLUMNS[] = {"id", "value"};
    static const bz_want WANT[] = {BZ_WANT_NUMBER, BZ_WANT_TEXT};
    bz_scan s;
    if (!bz_scan_begin(&s, db, "StringIds", COLUMNS, WANT, 2))
        return sqlite3_errmsg(db->sql);
    size_t n = 0, cap = 0;
    pair *known = NULL;
    bool sorted = true;
    while (bz_scan_next(&s)) {
        if (n == cap)
            known = bz_realloc(known, cap = cap ? cap * 2 : 256, sizeof *known);
        known[n] = (pair){s.value[0].number, bz_string_ids_text(t, s.value[1].text, s.value[1].number)};
        sorted = sorted && (!n || known[n - 1].file < known[n].file);
        n++;
    }
    if (!sorted)
        qsort(known, n, sizeof *known, by_file);
    ids->n = n;
    ids->file = bz_alloc(n, sizeof *ids->file);
    ids->ours = bz_alloc(n, sizeof *ids->ours);
    ids->dense = n > 0;
    for (size_t i = 0; i < n; i++) {
        ids->file[i] = known[i].file;
        ids->ours[i] = known[i].ours;
        ids->dense = ids->dense && (!i || (known[i - 1].file < INT64_MAX && known[i].file == known[i - 1].file + 1));
    }
    free(known);
    return bz_scan_end(&s);
}

uint32_t bz_string_ids_find(bz_string_ids *ids, int64_t id)
{
    if (ids->dense) {
        if (id >= ids->file[0] && id <= ids->file[ids->n - 1])
            return ids->ours[id - ids->file[0]];
    } else {
        size_t low = 0, high = ids->n;
        while (low < high) {
            size_t mid = low + (high - low) / 2;
            if (ids->file[mid] < id)
                low = mid + 1;
            else
                high = mid;
        }
        if (low < ids->n && ids->file[low] == id)
            return ids->ours[low];
    }
    ids->orphans++;
    return 0;
}

void bz_string_ids_free(bz_string_ids *ids)
{
    free(ids->file);
    free(ids->ours);
}
