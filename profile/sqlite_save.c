/* Writes a trace as one SQLite file. */
#include "base/whole.h"
#include "profile/sqlite_levels.h"
#include "profile/tables.h"
#include "profile/trace.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const bz_trace *t;
    sqlite3 *db;
    const char *path;
    bz_error *err;
} saver;

static int run(saver *s, const char *sql)
{
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return bz_fail(s->err, BZ_FAILED, "%s: cannot be written: %s", s->path, sqlite3_errmsg(s->db));
    return 0;
}

static sqlite3_stmt *prepare(saver *s, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        bz_fail(s->err, BZ_FAILED, "%s: cannot be written: %s", s->path, sqlite3_errmsg(s->db));
    return stmt;
}

static int step(saver *s, sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    sqlite3_reset(stmt);
    if (rc != SQLITE_DONE)
        return bz_fail(s->err, BZ_FAILED, "%s: cannot be written: %s", s->path, sqlite3_errmsg(s->db));
    return 0;
}

/* Nsight packs process and thread into one number, 24 bits each. */
static int64_t global_id(const bz_lane *l)
{
    return (l->process & 0xffffff) << 24 | (l->device ? 0 : l->thread & 0xffffff);
}

static void bind_cell(saver *s, sqlite3_stmt *stmt, int at, const bz_events *e, const bz_field *c, size_t i)
{
    const char *from = *(char *const *)(const void *)((const char *)e + c->offset);
    size_t k = i * (size_t)c->width + (size_t)c->index;
    if (c->cell == BZ_CELL_INT64)
        sqlite3_bind_int64(stmt, at, ((const int64_t *)(const void *)from)[k]);
    else if (c->cell == BZ_CELL_TEXT)
        sqlite3_bind_text(stmt, at, bz_string(s->t, ((const uint32_t *)(const void *)from)[k]), -1, SQLITE_STATIC);
    else
        sqlite3_bind_int64(stmt, at, ((const uint32_t *)(const void *)from)[k]);
}

static int save_table(saver *s, const bz_mapping *map)
{
    const bz_events *e = &s->t->event[map->kind];
    bz_buf create = {0}, insert = {0};
    bz_buf_printf(&create, "CREATE TABLE %s (", map->table);
    bz_buf_printf(&insert, "INSERT INTO %s VALUES (", map->table);
    for (const bz_field *c = map->columns; c->name; c++) {
        bz_buf_printf(&create, "%s %s, ", c->name, c->cell == BZ_CELL_TEXT ? "TEXT" : "INTEGER NOT NULL");
        bz_buf_puts(&insert, "?, ");
    }
    bz_buf_puts(&create, map->device ? "deviceId INTEGER, contextId INTEGER, streamId INTEGER, globalPid INTEGER, "
                                     : "globalTid INTEGER, ");
    bz_buf_puts(&insert, map->device ? "?, ?, ?, ?, " : "?, ");
    if (map->kind == BZ_EVENT_RANGE) {
        bz_buf_puts(&create, "eventType INTEGER NOT NULL, ");
        bz_buf_puts(&insert, "?, ");
    }
    bz_buf_puts(&create, "benanzaLane INTEGER NOT NULL)");
    bz_buf_puts(&insert, "?)");
    sqlite3_stmt *stmt = NULL;
    int rc = run(s, bz_buf_text(&create));
    if (!rc && !(stmt = prepare(s, bz_buf_text(&insert))))
        rc = -1;
    for (size_t i = 0; !rc && i < e->n; i++) {
        if (map->library && e->library[i] != (uint32_t)map->library &&
            !(map->library == BZ_LIBRARY_CUBLAS && e->library[i] == BZ_LIBRARY_CUBLASLT))
            continue;
        int at = 1;
        for (const bz_field *c = map->columns; c->name; c++)
            bind_cell(s, stmt, at++, e, c, i);
        const bz_lane *l = &s->t->lane[e->lane[i]];
        if (map->device) {
            sqlite3_bind_int64(stmt, at++, l->device_id);
            sqlite3_bind_int64(stmt, at++, l->context);
            sqlite3_bind_int64(stmt, at++, l->stream);
        }
        sqlite3_bind_int64(stmt, at++, global_id(l));
        if (map->kind == BZ_EVENT_RANGE)
            sqlite3_bind_int64(stmt, at++, e->start[i] == e->end[i] ? 34 : 59);
        sqlite3_bind_int64(stmt, at, e->lane[i]);
        rc = step(s, stmt);
    }
    sqlite3_finalize(stmt);
    bz_buf_free(&create);
    bz_buf_free(&insert);
    return rc;
}

/* Which strings the tables refer to. A recording that was read may have had others, of tables that we leave out. */
static bool *used_strings(const bz_trace *t)
{
    uint32_t n = bz_strings(t);
    bool *used = bz_alloc(n, sizeof *used);
    memset(used, 0, n * sizeof *used);
    used[0] = true;
    for (int m = 0; m < BZ_N_TABLES; m++) {
        const bz_events *e = &t->event[BZ_TABLES[m].kind];
        for (const bz_field *c = BZ_TABLES[m].columns; BZ_TABLES[m].written && c->name; c++) {
            const uint32_t *id = *(uint32_t *const *)(const void *)((const char *)e + c->offset);
            for (size_t i = 0; c->cell == BZ_CELL_STRING_ID && i < e->n; i++)
                used[id[i * (size_t)c->width + (size_t)c->index]] = true;
        }
    }
    for (uint32_t i = 0; i < t->n_lanes; i++)
        used[t->lane[i].name] = true;
    for (uint32_t i = 0; i < bz_stacks(t); i++) {
        const uint32_t *frames = NULL;
        for (int d = 0, depth = bz_stack(t, i, &frames); d < depth; d++)
            used[frames[d]] = true;
    }
    return used;
}

static int save_strings(saver *s)
{
    if (run(s, "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)"))
        return -1;
    sqlite3_stmt *stmt = prepare(s, "INSERT INTO StringIds VALUES (?, ?)");
    int rc = stmt ? 0 : -1;
    bool *used = used_strings(s->t);
    for (uint32_t i = 0; !rc && i < bz_strings(s->t); i++) {
        if (!used[i])
            continue;
        sqlite3_bind_int64(stmt, 1, i);
        sqlite3_bind_text(stmt, 2, bz_string(s->t, i), -1, SQLITE_STATIC);
        rc = step(s, stmt);
    }
    free(used);
    sqlite3_finalize(stmt);
    return rc;
}

static int save_lanes(saver *s)
{
    if (run(s, "CREATE TABLE BENANZA_LANES (id INTEGER PRIMARY KEY, device INTEGER NOT NULL, processId INTEGER NOT "
               "NULL, threadId INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId "
               "INTEGER NOT NULL, name TEXT NOT NULL);CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority "
               "INTEGER, globalTid INTEGER)"))
        return -1;
    sqlite3_stmt *lanes = prepare(s, "INSERT INTO BENANZA_LANES VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    sqlite3_stmt *names = lanes ? prepare(s, "INSERT INTO ThreadNames VALUES (?, NULL, ?)") : NULL;
    int rc = names ? 0 : -1;
    for (uint32_t i = 0; !rc && i < s->t->n_lanes; i++) {
        const bz_lane *l = &s->t->lane[i];
        int64_t v[] = {i, l->device, l->process, l->thread, l->device_id, l->context, l->stream};
        for (int c = 0; c < 7; c++)
            sqlite3_bind_int64(lanes, c + 1, v[c]);
        sqlite3_bind_text(lanes, 8, bz_string(s->t, l->name), -1, SQLITE_STATIC);
        rc = step(s, lanes);
        if (!rc && l->name && !l->device) {
            sqlite3_bind_int64(names, 1, l->name);
            sqlite3_bind_int64(names, 2, global_id(l));
            rc = step(s, names);
        }
    }
    sqlite3_finalize(lanes);
    sqlite3_finalize(names);
    return rc;
}

static int save_stacks(saver *s)
{
    if (run(s, "CREATE TABLE BENANZA_STACKS (id INTEGER NOT NULL, depth INTEGER NOT NULL, nameId INTEGER)"))
        return -1;
    sqlite3_stmt *stmt = prepare(s, "INSERT INTO BENANZA_STACKS VALUES (?, ?, ?)");
    int rc = stmt ? 0 : -1;
    for (uint32_t i = 0; !rc && i < bz_stacks(s->t); i++) {
        const uint32_t *frames = NULL;
        int n = bz_stack(s->t, i, &frames);
        for (int d = 0; !rc && d < (n ? n : 1); d++) { /* an empty one has a row as well, without a name */
            sqlite3_bind_int64(stmt, 1, i);
            sqlite3_bind_int64(stmt, 2, d);
            if (n)
                sqlite3_bind_int64(stmt, 3, frames[d]);
            else
                sqlite3_bind_null(stmt, 3);
            rc = step(s, stmt);
        }
    }
    sqlite3_finalize(stmt);
    return rc;
}

static int save_rest(saver *s)
{
    const bz_trace *t = s->t;
    if (run(s, "CREATE TABLE BENANZA_ITERATIONS (start INTEGER NOT NULL, end INTEGER NOT NULL, warmUp INTEGER NOT "
               "NULL, origin INTEGER NOT NULL);CREATE TABLE BENANZA_COVERAGE (level INTEGER NOT NULL, text TEXT NOT "
               "NULL, lack TEXT);CREATE TABLE BENANZA_FACTS (key TEXT NOT NULL, value TEXT NOT NULL);CREATE TABLE "
               "META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);INSERT INTO META_DATA_EXPORT VALUES "
               "('BENANZA_TRACE_VERSION', '" BZ_TRACE_VERSION "')"))
        return -1;
    sqlite3_stmt *iterations = prepare(s, "INSERT INTO BENANZA_ITERATIONS VALUES (?, ?, ?, ?)");
    sqlite3_stmt *coverage = prepare(s, "INSERT INTO BENANZA_COVERAGE VALUES (?, ?, ?)");
    sqlite3_stmt *facts = prepare(s, "INSERT INTO BENANZA_FACTS VALUES (?, ?)");
    int rc = iterations && coverage && facts ? 0 : -1;
    for (uint32_t i = 0; !rc && i < t->n_iterations; i++) {
        sqlite3_bind_int64(iterations, 1, t->iteration[i].start);
        sqlite3_bind_int64(iterations, 2, t->iteration[i].end);
        sqlite3_bind_int(iterations, 3, t->iteration[i].warm_up);
        sqlite3_bind_int(iterations, 4, (int)t->origin);
        rc = step(s, iterations);
    }
    for (uint32_t i = 0; !rc && i < t->n_coverage; i++) {
        if (i >= t->private->concluded && i < t->private->concluded_end)
            continue;
        sqlite3_bind_int(coverage, 1, (int)t->coverage[i].level);
        sqlite3_bind_text(coverage, 2, bz_string(t, t->coverage[i].text), -1, SQLITE_STATIC);
        sqlite3_bind_text(coverage, 3, bz_lack_name(t->coverage[i].lack), -1, SQLITE_STATIC);
        rc = step(s, coverage);
    }
    for (uint32_t i = 0; !rc && i < t->n_facts; i++) {
        sqlite3_bind_text(facts, 1, bz_string(t, t->fact[i].key), -1, SQLITE_STATIC);
        sqlite3_bind_text(facts, 2, bz_string(t, t->fact[i].value), -1, SQLITE_STATIC);
        rc = step(s, facts);
    }
    sqlite3_finalize(iterations);
    sqlite3_finalize(coverage);
    sqlite3_finalize(facts);
    return rc;
}

int bz_trace_save(const bz_trace *t, const char *path, bz_error *err)
{
    saver s = {.t = t, .path = path, .err = err};
    bz_whole file;
    struct stat st;
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return bz_fail(err, BZ_FAILED, "%s: is not a regular file: name a file to write the recording to", path);
    if (bz_whole_open_named(&file, path, err))
        return -1;
    int rc = -1;
    if (sqlite3_open(file.part, &s.db) != SQLITE_OK) {
        bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, sqlite3_errmsg(s.db));
        goto out;
    }
    /* a new file that is renamed when it is whole needs no journal */
    rc = run(&s, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
    if (!rc)
        rc = save_strings(&s);
    if (!rc)
        rc = save_lanes(&s);
    if (!rc)
        rc = save_stacks(&s);
    for (int i = 0; !rc && i < BZ_N_TABLES; i++)
        if (BZ_TABLES[i].written)
            rc = save_table(&s, &BZ_TABLES[i]);
    if (!rc)
        rc = save_rest(&s);
    if (!rc && bz_levels_save(t, s.db))
        rc = bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, sqlite3_errmsg(s.db));
    if (!rc)
        rc = run(&s, "COMMIT");
out:
    sqlite3_close(s.db);
    return bz_whole_close(&file, !rc, err);
}
