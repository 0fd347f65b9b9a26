/* Records of transfers, and what they say of a system's bandwidths. */
#include "transfer/ways.h"

#include <math.h>

int transfer_fastest(bz_perfdb *db, const bz_system *system, const char *problem, const bz_setting *setting,
                     bz_arena *arena, const bz_record **out, const char **why, bz_error *err)
{
    bz_record *record;
    size_t n;
    *out = NULL;
    *why = NULL;
    if (bz_perfdb_variants(db, system, problem, arena, &record, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!bz_setting_same(&record[i].setting, setting))
            continue;
        if (record[i].status == BZ_RECORD_OK && (!*out || record[i].median < (*out)->median))
            *out = &record[i];
        else if (record[i].status != BZ_RECORD_OK && record[i].status != BZ_RECORD_DROPPED)
            *why = record[i].reason;
    }
    return 0;
}

/* Powers of two, as transfer_sizes has them. */
enum { SMALLEST = 4 << 10, LARGEST = 1 << 30, SIZES = 19 };
_Static_assert(SMALLEST << (SIZES - 1) == LARGEST, "each power of two");

typedef struct buffers {
    bz_perfdb *db;
    const bz_system *system;
    bz_arena *arena;
    bool busy;
} buffers;

/* Bytes per second at the best, as peaks are told; NAN: no record. */
static int rate_of(buffers *b, const char *way, double bytes, int arrays, const bz_setting *setting, double *out,
                   bz_error *err)
{
    const char *why, *text = bz_arena_printf(b->arena, "transfer way=%s x=%.0f dtype=f64", way, bytes / 8 / arrays);
    const bz_record *r;
    *out = NAN;
    if (transfer_fastest(b->db, b->system, text, setting, b->arena, &r, &why, err))
        return -1;
    if (r) {
        *out = bytes / (r->min > 0 ? r->min : r->median);
        b->busy |= r->busy;
    }
    return 0;
}

static int read_buffers(buffers *b, bz_measured *m, bz_error *err)
{
    const bz_setting hot = {m->threads, BZ_CACHE_HOT, ""}, cold = {m->threads, BZ_CACHE_COLD, ""};
    bz_buffer_rates *list = BZ_NEW(b->arena, bz_buffer_rates, SIZES);
    int n = 0;
    for (int i = 0; i < SIZES; i++) {
        const double bytes = (double)(SMALLEST << i);
        bz_buffer_rates one = {.bytes = bytes};
        if (rate_of(b, "read", bytes, 1, &hot, &one.read, err) || rate_of(b, "copy", bytes, 2, &hot, &one.copy, err) ||
            rate_of(b, "copy", bytes, 2, &cold, &one.copy_cold, err))
            return -1;
        if (one.read > 0 || one.copy > 0)
            list[n++] = one;
    }
    if (n) {
        m->buffer = list;
        m->n_buffers = n;
        m->busy |= b->busy;
    }
    return 0;
}

int bz_transfers_facts(bz_perfdb *db, const bz_system *system, bz_arena *arena, const bz_system_facts **out,
                       bz_error *err)
{
    const bz_system_facts *known = bz_system_facts_read(system ? system->details : NULL, arena);
    *out = known;
    if (!system || !known->n_measured)
        return 0;
    bz_system_facts *f = bz_arena_dup(arena, known, sizeof *known);
    bz_measured *measured = bz_arena_dup(arena, known->measured, (size_t)known->n_measured * sizeof *measured);
    for (int i = 0; i < known->n_measured; i++)
        if (read_buffers(&(buffers){db, system, arena, false}, &measured[i], err))
            return -1;
    f->measured = measured;
    *out = f;
    return 0;
}
