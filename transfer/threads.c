/* What several threads move together: arrays in memory, by the number of threads. */
#include "transfer/ways.h"

int bz_transfers_counts(const bz_system_facts *facts, int out[BZ_TRANSFER_COUNTS])
{
    int cores = facts->n_caches ? facts->cache[0].count : 1, n = 0;
    for (int threads = 1; threads < cores && n + 1 < BZ_TRANSFER_COUNTS; threads *= 2)
        out[n++] = threads;
    out[n++] = cores;
    return n;
}

/* Of those always measured the smallest that lies in memory for all cores together, so that each count moves the same bytes; -1: none. */
static int64_t in_memory(const transfer_way *w, const bz_system_facts *facts)
{
    way_level level[WAY_LEVELS_MOST];
    int64_t x[WAY_MOST_SIZES];
    int count[BZ_TRANSFER_COUNTS], cores = count[bz_transfers_counts(facts, count) - 1];
    int n = w->threads && transfer_asked(w, facts, cores) ? transfer_sizes(w, facts, cores, x) : 0;
    double from = level[transfer_levels(facts, cores, level) - 1].from;
    for (int i = 0; i < n; i += WAY_PARTS)
        if (transfer_size(w, x[i]) >= from)
            return x[i];
    return -1;
}

int bz_transfers_together(const bz_system_facts *facts, bz_arena *arena, const char *const **out)
{
    const char **list = NULL;
    int n = 0;
    for (const transfer_way *w = transfer_ways; w->name; w++) {
        int64_t x = in_memory(w, facts);
        if (x > 0)
            BZ_ARENA_ADD(arena, list, n) = transfer_problem(w, x, arena);
    }
    *out = list;
    return n;
}

int bz_transfers_by_threads(bz_perfdb *db, const bz_system *system, const bz_system_facts *facts,
                            const bz_setting *setting, bz_arena *arena, const bz_sheet **out, bz_error *err)
{
    static const char COLUMNS[] = "way|threads:n|size:B|time:s|rate:B/s|each:B/s=each thread's|fastest";
    bz_sheet *s = bz_sheet_new(arena, "threads", "What threads move together, in memory", COLUMNS);
    int count[BZ_TRANSFER_COUNTS], n = bz_transfers_counts(facts, count);
    for (const transfer_way *w = transfer_ways; w->name; w++) {
        int64_t x = in_memory(w, facts);
        for (int i = 0; x > 0 && i < n; i++) {
            bz_setting of = *setting;
            const bz_record *r;
            const char *why;
            of.threads = count[i];
            if (transfer_fastest(db, system, transfer_problem(w, x, arena), &of, arena, &r, &why, err))
                return -1;
            double size = transfer_size(w, x);
            if (r)
                BZ_SHEET_ADD(s, BZ_TEXT(w->name), BZ_NUMBER(count[i]), BZ_NUMBER(size), BZ_NUMBER(r->median),
                             BZ_NUMBER(size / r->median), BZ_NUMBER(size / r->median / count[i]),
                             BZ_TEXT(r->variant.algorithm));
        }
    }
    *out = s;
    return 0;
}
