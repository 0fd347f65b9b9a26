/* Writes a trace as one SQLite file. */
#include "base/whole.h"
#include "profile/scan.h"
#include "profile/tables.h"
#include "profile/trace.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    const bz_trace *t;
    sqlite3 *db;
    const char *path;
    bz_error *err;
} saver;

static int run(saver *s, const char *sql)
{
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return bz_fail(s->err, BZ_FAILED, "%s: cannot be written: %s", s->path, bz_sqlite_error(s->db));
    return 0;
}

static sqlite3_stmt *prepare(saver *s, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        bz_fail(s->err, BZ_FAILED, "%s: cannot be written: %s", s->path, bz_sqlite_error(s->db));
    return stmt;
}

static int step(saver *s, sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    sqlite3_reset(stmt);
    if (rc != SQLITE_DONE)
        return bz_fail(s->err, BZ_FAILED, "%s: cannot be written: %s", s->path, bz_sqlite_error(s->db));
    return 0;
}

typedef struct {
    const char *text; /* NULL: the number */
    int64_t number;
} cell;

#define N(v) ((cell){.number = (v)})
#define T(v) ((cell){.text = (v)})
#define PUT(s, stmt, ...)                                                                                              \
    put_row((s), (stmt), (const cell[]){__VA_ARGS__}, (int)(sizeof((const cell[]){__VA_ARGS__}) / sizeof(cell)))
static int put_row(saver *s, sqlite3_stmt *stmt, const cell *c, int n)
{
    for (int i = 0; i < n; i++)
        if (c[i].text)
            sqlite3_bind_text(stmt, i + 1, c[i].text, -1, SQLITE_STATIC);
        else
            sqlite3_bind_int64(stmt, i + 1, c[i].number);
    return step(s, stmt);
}

/* Nsight packs process and thread into one number, 24 bits each. */
static int64_t global_id(const bz_lane *l)
{
    return (l->process & 0xffffff) << 24 | (l->device ? 0 : l->thread & 0xffffff);
}

static void bind_cell(saver *s, sqlite3_stmt *stmt, int at, const bz_events *e, const bz_field *c, size_t i)
{
    bool of_launch = c->cell == BZ_CELL_LAUNCHED;
    const void *of =
        of_launch ? bz_kernel_launched(s->t, i) : *(void *const *)(const void *)((const char *)e + c->offset);
    const uint32_t *told = of_launch ? (const void *)((const char *)of + c->offset) : (const uint32_t *)of + i;
    if (c->cell == BZ_CELL_INT64)
        sqlite3_bind_int64(stmt, at, ((const int64_t *)of)[i]);
    else if (c->cell == BZ_CELL_TEXT)
        sqlite3_bind_text(stmt, at, bz_string(s->t, *told), -1, SQLITE_STATIC);
    else
        sqlite3_bind_int64(stmt, at, *told);
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
            if (c->cell != BZ_CELL_STRING_ID)
                continue;
            const uint32_t *id = *(uint32_t *const *)(const void *)((const char *)e + c->offset);
            for (size_t i = 0; i < e->n; i++)
                used[id[i]] = true;
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
        rc = PUT(s, stmt, N(i), T(bz_string(s->t, i)));
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
        rc = PUT(s, lanes, N(i), N(l->device), N(l->process), N(l->thread), N(l->device_id), N(l->context),
                 N(l->stream), T(bz_string(s->t, l->name)));
        if (!rc && l->name && !l->device)
            rc = PUT(s, names, N(l->name), N(global_id(l)));
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
        if (!n) /* an empty one has a row as well, without a name */
            rc = sqlite3_bind_null(stmt, 3) || PUT(s, stmt, N(i), N(0)) ? -1 : 0;
        for (int d = 0; !rc && d < n; d++)
            rc = PUT(s, stmt, N(i), N(d), N(frames[d]));
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
    for (uint32_t i = 0; !rc && i < t->n_iterations; i++)
        rc = PUT(s, iterations, N(t->private->marked_end ? t->private->marked_start : t->iteration[i].start),
                 N(t->private->marked_end ? t->private->marked_end : t->iteration[i].end), N(t->iteration[i].warm_up),
                 N((int)t->origin));
    for (uint32_t i = 0; !rc && i < t->n_coverage; i++) {
        bool kept = t->n_iterations && bz_tells_iterations(t->coverage[i].lack);
        if (i >= t->private->concluded && i < t->private->concluded_end && !kept)
            continue;
        sqlite3_bind_text(coverage, 3, bz_lack_name(t->coverage[i].lack), -1, SQLITE_STATIC);
        rc = PUT(s, coverage, N((int)t->coverage[i].level), T(bz_string(t, t->coverage[i].text)));
    }
    for (uint32_t i = 0; !rc && i < t->n_facts; i++)
        rc = PUT(s, facts, T(bz_string(t, t->fact[i].key)), T(bz_string(t, t->fact[i].value)));
    sqlite3_finalize(iterations);
    sqlite3_finalize(coverage);
    sqlite3_finalize(facts);
    return rc;
}

static int save_levels(saver *s)
{
    const bz_trace *t = s->t;
    if (!t->n_levels)
        return 0;
    if (run(s, "CREATE TABLE BENANZA_LEVELS (name TEXT NOT NULL, wall INTEGER NOT NULL, own INTEGER NOT NULL);CREATE "
               "TABLE BENANZA_LEVEL_ITERATIONS (level INTEGER NOT NULL, latency INTEGER NOT NULL, library INTEGER NOT "
               "NULL, warmUp INTEGER NOT NULL)"))
        return -1;
    sqlite3_stmt *levels = prepare(s, "INSERT INTO BENANZA_LEVELS VALUES (?, ?, ?)");
    sqlite3_stmt *iterations = levels ? prepare(s, "INSERT INTO BENANZA_LEVEL_ITERATIONS VALUES (?, ?, ?, ?)") : NULL;
    int rc = iterations ? 0 : -1;
    for (uint32_t k = 0; !rc && k < t->n_levels; k++) {
        const bz_level *l = &t->level[k];
        rc = PUT(s, levels, T(bz_string(t, l->name)), N(l->wall), N(k == t->own_level));
        for (uint32_t i = 0; !rc && i < l->n_iterations; i++)
            rc = PUT(s, iterations, N(k), N(l->iteration[i].latency), N(l->iteration[i].library),
                     N(l->iteration[i].warm_up));
    }
    sqlite3_finalize(levels);
    sqlite3_finalize(iterations);
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
        bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, bz_sqlite_error(s.db));
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
    if (!rc)
        rc = save_levels(&s);
    if (!rc)
        rc = run(&s, "COMMIT");
out:
    sqlite3_close(s.db);
    return bz_whole_close(&file, !rc, err);
}
