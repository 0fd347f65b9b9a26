#include "profile/sqlite_levels.h"
#include "profile/sqlite_facts.h"

enum { LEVELS_MAX = 8 };
static const char *const TABLES[] = {"BENANZA_LEVELS", "BENANZA_LEVEL_ITERATIONS"};

static int64_t time_of(sqlite3_stmt *s, int column)
{
    int64_t v = sqlite3_column_int64(s, column);
    return v < 0 ? 0 : v > INT64_C(1) << 60 ? INT64_C(1) << 60 : v;
}

static void add_iteration(bz_trace *t, bz_level *l, const bz_level_iteration *i)
{
    uint32_t n = l->n_iterations;
    BZ_ARENA_ROOM(&t->arena, l->iteration, n);
    l->iteration[l->n_iterations++] = *i;
}

void bz_levels_read(bz_trace *t, uint32_t source, bz_database *db)
{
    if (!bz_database_has(db, TABLES[0]) || !bz_database_has(db, TABLES[1]))
        return;
    if (t->n_levels) {
        bz_trace_cover(t, source, BZ_COVERAGE_MISSING,
                       "this program, too, was recorded in levels: those of the first file are shown");
        return;
    }
    sqlite3_stmt *s = bz_database_prepare(db, "SELECT name, wall, own FROM BENANZA_LEVELS ORDER BY rowid");
    t->level = BZ_NEW(&t->arena, bz_level, LEVELS_MAX);
    int rc = SQLITE_DONE;
    while (s && t->n_levels < LEVELS_MAX && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (sqlite3_column_int(s, 2))
            t->own_level = t->n_levels;
        t->level[t->n_levels++] =
            (bz_level){.name = bz_trace_text(t, (const char *)sqlite3_column_text(s, 0)), .wall = time_of(s, 1)};
    }
    bz_table_end(t, source, TABLES[0], s, rc);
    s = bz_database_prepare(
        db, "SELECT level, latency, library, warmUp FROM BENANZA_LEVEL_ITERATIONS ORDER BY level, rowid");
    rc = SQLITE_DONE;
    while (s && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t level = sqlite3_column_int64(s, 0);
        if (level >= 0 && level < t->n_levels && t->level[level].n_iterations < BZ_NONE - 1)
            add_iteration(t, &t->level[level],
                          &(bz_level_iteration){time_of(s, 1), time_of(s, 2), sqlite3_column_int(s, 3) != 0});
    }
    bz_table_end(t, source, TABLES[1], s, rc);
}
