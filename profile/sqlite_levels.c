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

static int save_level(const bz_trace *t, uint32_t k, sqlite3_stmt *levels, sqlite3_stmt *iterations)
{
    const bz_level *l = &t->level[k];
    sqlite3_bind_text(levels, 1, bz_string(t, l->name), -1, SQLITE_STATIC);
    sqlite3_bind_int64(levels, 2, l->wall);
    sqlite3_bind_int(levels, 3, k == t->own_level);
    int rc = sqlite3_step(levels);
    sqlite3_reset(levels);
    for (uint32_t i = 0; rc == SQLITE_DONE && i < l->n_iterations; i++) {
        sqlite3_bind_int64(iterations, 1, k);
        sqlite3_bind_int64(iterations, 2, l->iteration[i].latency);
        sqlite3_bind_int64(iterations, 3, l->iteration[i].library);
        sqlite3_bind_int(iterations, 4, l->iteration[i].warm_up);
        rc = sqlite3_step(iterations);
        sqlite3_reset(iterations);
    }
    return rc == SQLITE_DONE ? 0 : -1;
}

int bz_levels_save(const bz_trace *t, sqlite3 *db)
{
    static const char CREATE[] = "CREATE TABLE BENANZA_LEVELS (name TEXT NOT NULL, wall INTEGER NOT NULL, own INTEGER "
                                 "NOT NULL);CREATE TABLE BENANZA_LEVEL_ITERATIONS (level INTEGER NOT NULL, latency "
                                 "INTEGER NOT NULL, library INTEGER NOT NULL, warmUp INTEGER NOT NULL)";
    sqlite3_stmt *levels = NULL, *iterations = NULL;
    if (!t->n_levels)
        return 0;
    int rc = -1;
    if (sqlite3_exec(db, CREATE, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "INSERT INTO BENANZA_LEVELS VALUES (?, ?, ?)", -1, &levels, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "INSERT INTO BENANZA_LEVEL_ITERATIONS VALUES (?, ?, ?, ?)", -1, &iterations, NULL) ==
            SQLITE_OK)
        rc = 0;
    for (uint32_t k = 0; !rc && k < t->n_levels; k++)
        rc = save_level(t, k, levels, iterations);
    sqlite3_finalize(levels);
    sqlite3_finalize(iterations);
    return rc;
}
