#include "profile/scan.h"

#include "base/base.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static void open_pages(bz_database *db, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
        db->size = (size_t)st.st_size;
    db->ordinary = db->size && bz_pages_open(&db->pages, fd, db->size);
    if (!db->ordinary && fd >= 0)
        close(fd);
}

bool bz_database_open(bz_database *db, const char *path)
{
    BZ_SCOPED(bz_buf) uri = {0};
    *db = (bz_database){0};
    bz_buf_puts(&uri, "file:");
    for (const char *p = path; *p; p++) /* '?', '#' and '%' mean something in a URI */
        bz_buf_printf(&uri, strchr("?#%", *p) ? "%%%02x" : "%c", (unsigned char)*p);
    bz_buf_puts(&uri, "?immutable=1");
    int rc = sqlite3_open_v2(bz_buf_text(&uri), &db->sql, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                             NULL);
    if (rc != SQLITE_OK)
        return false;
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_stmt *probe = bz_database_prepare(db, "SELECT count(*) FROM sqlite_master");
    bool good = probe && sqlite3_step(probe) == SQLITE_ROW;
    sqlite3_finalize(probe);
    if (good)
        open_pages(db, path);
    return good;
}

void bz_database_close(bz_database *db)
{
    sqlite3_close(db->sql);
    if (db->ordinary)
        close(db->pages.fd);
}

/* SQLite calls a file damaged that the disk could not read (EIO). */
static const char *system_error(sqlite3 *sql)
{
    int code = 0;
    bool told = sql && !sqlite3_file_control(sql, "main", SQLITE_FCNTL_LAST_ERRNO, &code);
    return told && code > 0 ? strerror(code) : NULL;
}

const char *bz_database_unread(const bz_database *db)
{
    return system_error(db->sql);
}

const char *bz_sqlite_error(sqlite3 *sql)
{
    const char *why = system_error(sql);
    return why ? why : sqlite3_errmsg(sql);
}

sqlite3_stmt *bz_database_prepare(bz_database *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db->sql, sql, -1, &s, NULL);
    if (rc != SQLITE_OK && rc != SQLITE_ERROR && !db->why) /* SQLITE_ERROR: the table lacks a column that it asks for */
        db->why = rc;
    return s;
}

bool bz_database_step(bz_database *db, sqlite3_stmt *s)
{
    int rc = s ? sqlite3_step(s) : SQLITE_DONE;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE && !db->why)
        db->why = rc;
    return rc == SQLITE_ROW;
}

bool bz_database_has(bz_database *db, const char *table)
{
    sqlite3_stmt *s =
        bz_database_prepare(db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 AND rootpage > 0");
    if (!s)
        return false;
    sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
    bool found = bz_database_step(db, s);
    sqlite3_finalize(s);
    return found;
}

sqlite3_stmt *bz_database_query(bz_database *db, const char *table, const char *sql)
{
    return bz_database_has(db, table) ? bz_database_prepare(db, sql) : NULL;
}

/* Where its b-tree begins; 0 where its columns do not lie in the file as they stand in the schema. */
static uint32_t root_of(bz_database *db, const char *table)
{
    sqlite3_stmt *s = bz_database_prepare(
        db, "SELECT m.rootpage FROM sqlite_master m WHERE m.type = 'table' AND m.name = ?1 "
            /* "INTEGER PRIMARY KEY DESC" is, of all the ways to write it, no other name of the rowid */
            "AND m.sql NOT LIKE '%DESC%' AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden <> 0 OR "
            "lower(name) IN ('rowid', '_rowid_', 'oid'))");
    int64_t root = 0;
    if (s) {
        sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
        if (bz_database_step(db, s))
            root = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return root > 0 && root <= (int64_t)db->pages.n ? (uint32_t)root : 0;
}

static sqlite3_stmt *columns_of(bz_database *db, const char *table)
{
    sqlite3_stmt *s = bz_database_prepare(db, "SELECT cid, name, type, dflt_value IS NOT NULL, pk, (SELECT count(*) "
                                              "FROM pragma_table_info(?1) WHERE pk > 0) FROM pragma_table_info(?1)");
    if (s)
        sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
    return s;
}

int bz_database_column(bz_database *db, const char *table, const char *column)
{
    sqlite3_stmt *s = columns_of(db, table);
    int at = -1;
    while (at < 0 && bz_database_step(db, s)) {
        const char *name = (const char *)sqlite3_column_text(s, 1);
        at = name && !strcmp(name, column) ? sqlite3_column_int(s, 0) : -1;
    }
    sqlite3_finalize(s);
    return at;
}

static void find_columns(bz_scan *s)
{
    sqlite3_stmt *q = columns_of(s->db, s->table);
    while (bz_database_step(s->db, q)) {
        const char *name = (const char *)sqlite3_column_text(q, 1), *type = (const char *)sqlite3_column_text(q, 2);
        for (int i = 0; i < s->n; i++)
            if (name && !strcmp(name, s->names[i])) {
                s->wanted[i].column = sqlite3_column_int(q, 0);
                s->wanted[i].has_default = sqlite3_column_int(q, 3);
                s->wanted[i].rowid = sqlite3_column_int(q, 4) == 1 && sqlite3_column_int(q, 5) == 1 && type &&
                                     !strcasecmp(type, "INTEGER");
            }
    }
    sqlite3_finalize(q);
}

/* libsqlite3 reads from here on: from the beginning, or behind the last row that came. */
static bool hand_over(bz_scan *s)
{
    BZ_SCOPED(bz_buf) sql = {0};
    for (int i = 0; i < s->n; i++)
        bz_buf_printf(&sql, "%s\"%s\"", i ? ", " : "SELECT ", s->names[i]);
    bz_buf_printf(&sql, " FROM \"%s\"%s", s->table, s->own && s->pages.started ? " WHERE rowid > ?1" : "");
    s->statement = bz_database_prepare(s->db, bz_buf_text(&sql));
    if (s->statement && s->own && s->pages.started)
        sqlite3_bind_int64(s->statement, 1, s->pages.rowid);
    s->own = false;
    return s->statement != NULL;
}

bool bz_scan_begin(bz_scan *s, bz_database *db, const char *table, const char *const *names, const bz_want *want, int n)
{
    *s = (bz_scan){.db = db, .table = table, .names = names, .n = n, .rc = SQLITE_DONE};
    for (int i = 0; i < n; i++)
        s->wanted[i] = (bz_wanted){.want = want[i], .column = -1};
    uint32_t root = db->ordinary ? root_of(db, table) : 0;
    if (root) {
        find_columns(s);
        s->own = bz_rows_begin(&s->pages, &db->pages, root, s->wanted, n) == BZ_SCAN_ROW;
        /* pages may lie: a row takes its place in the page, its length and number, and a header with a byte per column */
        uint64_t most = db->size / (5 + (uint64_t)n), told = s->own ? bz_rows_expected(&s->pages) : 0;
        s->rows = told < most ? told : most;
        if (!s->own)
            bz_rows_end(&s->pages);
    }
    return s->own || hand_over(s);
}

static void value_of(bz_values *v, sqlite3_stmt *s, int column, bz_want want)
{
    int type = sqlite3_column_type(s, column);
    v->type = BZ_VALUE_NULL;
    v->number[0] = 0;
    v->text[0] = NULL;
    if (type != SQLITE_NULL && (want == BZ_WANT_TEXT || (want == BZ_WANT_EITHER && type == SQLITE_TEXT))) {
        v->text[0] = (const char *)sqlite3_column_text(s, column);
        v->number[0] = sqlite3_column_bytes(s, column);
        v->type = v->text[0] ? BZ_VALUE_TEXT : BZ_VALUE_NULL;
    } else if (type != SQLITE_NULL) {
        v->number[0] = sqlite3_column_int64(s, column);
        v->type = BZ_VALUE_NUMBER;
    }
    v->zero = v->type != BZ_VALUE_TEXT && !v->number[0];
    v->same = v->zero;
}

int bz_scan_next(bz_scan *s)
{
    if (s->own) {
        bz_scan_step step = bz_rows_next(&s->pages, s->value);
        if (step != BZ_SCAN_ODD)
            return step == BZ_SCAN_ROW ? s->pages.batch : 0;
        if (s->alone || !hand_over(s)) {
            s->rc = SQLITE_CORRUPT;
            return 0;
        }
    }
    if (!s->statement)
        return 0;
    s->rc = sqlite3_step(s->statement);
    for (int i = 0; i < s->n && s->rc == SQLITE_ROW; i++)
        value_of(&s->value[i], s->statement, i, s->wanted[i].want);
    return s->rc == SQLITE_ROW;
}

const char *bz_scan_end(bz_scan *s)
{
    bz_rows_end(&s->pages);
    sqlite3_finalize(s->statement);
    s->statement = NULL;
    return s->rc == SQLITE_DONE || s->rc == SQLITE_ROW ? NULL : sqlite3_errstr(s->rc);
}
