/* Tables read from the pages of a file and by libsqlite3 are the same, in every shape that a row can have; and what the
 * pages cannot tell is left to libsqlite3. */
#include "profile/scan.h"

#include "base/base.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static char path[] = "/tmp/benanza-scan-XXXXXX";

static void make(const char *sql)
{
    sqlite3 *db;
    unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static int64_t hash_rows(bz_scan *s, bz_hash *hash, const char **error)
{
    bz_buf all = {0};
    int64_t n = 0;
    for (int rows; (rows = bz_scan_next(s)); n += rows)
        for (int row = 0; row < rows; row++) {
            for (int i = 0; i < s->n; i++) {
                const bz_values *v = &s->value[i];
                bz_buf_printf(&all, "%d %lld ", (int)v->type, (long long)v->number[row]);
                if (v->type == BZ_VALUE_TEXT)
                    bz_buf_put(&all, v->text[row], (size_t)v->number[row]);
                assert_true(!v->zero || (v->type != BZ_VALUE_TEXT && !v->number[row]));
            }
            if (all.len > 1 << 20) { /* keep what was seen as a hash */
                bz_hash h = bz_hash_bytes(all.data, all.len);
                bz_buf_clear(&all);
                bz_buf_put(&all, (const char *)&h, sizeof h);
            }
        }
    *hash = bz_hash_bytes(all.len ? all.data : "", all.len);
    *error = bz_scan_end(s);
    bz_buf_free(&all);
    return n;
}

/* Reads the columns both ways, expects the same rows, and returns how many there are. `own`: may the pages have been read
 * to their end? */
static int64_t same(bz_database *db, const char *table, const char *const *names, const bz_want *want, int n, bool *own)
{
    bz_scan a, b;
    bz_hash ours, theirs;
    const char *our_error, *their_error;
    assert_true(bz_scan_begin(&a, db, table, names, want, n));
    uint64_t expected = a.rows;
    int64_t rows = hash_rows(&a, &ours, &our_error);
    *own = a.own;
    if (a.own) /* more where rows were deleted */
        assert_true((uint64_t)rows <= expected);
    bool ordinary = db->ordinary;
    db->ordinary = false;
    assert_true(bz_scan_begin(&b, db, table, names, want, n));
    assert_false(b.own);
    int64_t others = hash_rows(&b, &theirs, &their_error);
    db->ordinary = ordinary;
    if (rows != others || ours.high != theirs.high || ours.low != theirs.low)
        fail_msg("table %s: %lld rows, libsqlite3 has %lld, or they differ", table, (long long)rows, (long long)others);
    assert_int_equal(our_error == NULL, their_error == NULL);
    return rows;
}

static const bz_want EITHER[] = {BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER,
                                 BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER,
                                 BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER,
                                 BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER,
                                 BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER, BZ_WANT_EITHER};

/* One table t(a, b, …) made by the SQL: rows, and whether its pages alone told them. */
static void check(const char *sql, int columns, int64_t rows, bool by_pages)
{
    static const char *const NAMES[] = {"a", "b", "c", "d"};
    bz_database db;
    bool own;
    make(sql);
    assert_true(bz_database_open(&db, path));
    int64_t n = same(&db, "t", NAMES, EITHER, columns, &own);
    if (n != rows || own != by_pages)
        fail_msg("%s: %lld rows, %s", sql, (long long)n, own ? "by pages" : "by libsqlite3");
    bz_database_close(&db);
}

#define SERIES(n) "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < " #n ") "

static void shapes_of_rows(void **state)
{
    (void)state;
    /* every width of a number, and both signs at its ends */
    check("CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (0, 1), (-1, 127), (-128, 128), (32767, -32768), "
          "(-32769, 32768),"
          "(8388607, -8388608), (8388608, -8388609), (2147483647, -2147483648), (2147483648, -2147483649),"
          "(140737488355327, -140737488355328), (140737488355328, -140737488355329),"
          "(9223372036854775807, -9223372036854775807 - 1), (NULL, NULL), (1, NULL)",
          2, 14, true);
    check("CREATE TABLE t (a INT, b INT, c INT)", 3, 0, true);
    /* many pages, and levels of inner ones */
    check("PRAGMA page_size = 512; CREATE TABLE t (a INT, b INT, c TEXT); " SERIES(
              20000) "INSERT INTO t SELECT i * i * i, -i, 'text ' || (i % 100) FROM s",
          3, 20000, true);
    check("PRAGMA page_size = 65536; CREATE TABLE t (a INT, b TEXT); " SERIES(
              20000) "INSERT INTO t SELECT i, hex(i) FROM s",
          2, 20000, true);
    /* texts that go on in other pages, with numbers behind them; the empty one */
    check("CREATE TABLE t (a INT, b TEXT, c INT); " SERIES(
              300) "INSERT INTO t SELECT i, hex(zeroblob(i * i)), i << 33 FROM s",
          3, 300, true);
    check("CREATE TABLE t (a TEXT, b INT); INSERT INTO t VALUES ('', 5), (char(0) || 'x', 6)", 2, 2, true);
    /* numbers at the very front of a record that does not fit */
    check("PRAGMA page_size = 512; CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, hex(zeroblob(9999))), (1 "
          "<< 60, "
          "hex(zeroblob(400)))",
          2, 2, true);
    check("CREATE TABLE t (a INT, b INT); " SERIES(
              5000) "INSERT INTO t SELECT i, i FROM s; DELETE FROM t WHERE a % 3 = 0 OR a BETWEEN "
                    "1000 AND 3000",
          2, 2000, true);
    check("CREATE TABLE t (b INT, a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1, 50), (2, -3), (3, 1 << 40)", 2, 3,
          true);
    /* rows that begin alike: lengths of two bytes; row numbers of one byte up to five, with gaps */
    check(
        "CREATE TABLE t (a INT, b TEXT); " SERIES(3000) "INSERT INTO t SELECT 1000 + i, printf('%0300d', i / 7) FROM s",
        2, 3000, true);
    check("CREATE TABLE t (b INT, a INTEGER PRIMARY KEY, c TEXT); " SERIES(
              9000) "INSERT INTO t SELECT 300, i * i * 7, 'c' || (i % 10) FROM s",
          3, 9000, true);
    check("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); ALTER TABLE t ADD COLUMN b INT; INSERT INTO t VALUES "
          "(3, 4)",
          2, 3, true);
    check("CREATE TABLE t (a INT, b REAL); INSERT INTO t VALUES (1, 2), (2, 3)", 2, 2, true);
}

static void what_pages_do_not_tell(void **state)
{
    (void)state;
    check("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); ALTER TABLE t ADD COLUMN b INT DEFAULT 9; INSERT "
          "INTO t VALUES (3, 4)",
          2, 3, false);
    check("CREATE TABLE t (a INT, b INT PRIMARY KEY) WITHOUT ROWID; INSERT INTO t VALUES (1, 2), (2, 1)", 2, 2, false);
    check("CREATE TABLE t (a INT, b INTEGER PRIMARY KEY DESC); INSERT INTO t VALUES (1, 2), (2, 1)", 2, 2, false);
    check("CREATE TABLE t (a INT, b INT AS (a * 2), c INT); INSERT INTO t VALUES (1, 2), (2, 1)", 3, 2, false);
    check("CREATE TABLE t (a INT, rowid INT, b INT); INSERT INTO t VALUES (1, 2, 3)", 2, 1, false);
    check("PRAGMA encoding = 'UTF-16'; CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x')", 2, 1, false);
    /* goes on where the first real number or blob stands */
    check("CREATE TABLE t (a INT, b); " SERIES(
              3000) "INSERT INTO t SELECT i, CASE WHEN i > 2000 THEN i / 7.0 ELSE i END FROM s",
          2, 3000, false);
    check("CREATE TABLE t (a INT, b); INSERT INTO t VALUES (1, 2), (2, x'00ff'), (3, 4)", 2, 3, false);
}

/* A text where a number is wanted, and the other way round, become what libsqlite3 makes of them. */
static void wants(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"a", "b"};
    static const bz_want WANT[] = {BZ_WANT_NUMBER, BZ_WANT_TEXT};
    bz_database db;
    bz_scan s;
    make("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (' 12abc', 'y'), (2, 34)");
    assert_true(bz_database_open(&db, path));
    assert_int_equal(bz_database_column(&db, "t", "b"), 1);
    assert_int_equal(bz_database_column(&db, "t", "B"), -1);
    assert_true(bz_scan_begin(&s, &db, "t", NAMES, WANT, 2));
    assert_true(s.own && bz_scan_next(&s) && s.own);
    assert_true(bz_scan_next(&s) && !s.own);
    assert_int_equal(s.value[0].number[0], 12);
    assert_true(bz_scan_next(&s));
    assert_memory_equal(s.value[1].text[0], "34", 2);
    assert_false(bz_scan_next(&s));
    assert_null(bz_scan_end(&s));
    bz_database_close(&db);
}

/* Every byte of some pages, changed: the rows may be wrong, but reading comes to an end, and within the file. */
static void damage(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"a", "b", "c"};
    make("PRAGMA page_size = 512; CREATE TABLE t (a INT, b TEXT, c INTEGER PRIMARY KEY); " SERIES(
        60) "INSERT INTO t SELECT i * 1000, hex(zeroblob(i * 20)), i * 3 FROM s");
    FILE *f = fopen(path, "rb");
    int fd = memfd_create("damaged", 0);
    static uint8_t bytes[1 << 18];
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_true(n > 512 * 20 && n < sizeof bytes);
    assert_int_equal(pwrite(fd, bytes, n, 0), n);
    bz_wanted wanted[3] = {
        {BZ_WANT_EITHER, 0, false, false}, {BZ_WANT_EITHER, 1, false, false}, {BZ_WANT_NUMBER, 2, true, false}};
    static const uint8_t VALUES[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    uint64_t ends = 0, odd = 0;
    for (size_t at = 512; at < n; at += 1 + (at % 512 > 40) * 13) {
        for (size_t v = 0; v < sizeof VALUES; v++) {
            assert_int_equal(pwrite(fd, &VALUES[v], 1, (off_t)at), 1);
            bz_pages pages;
            bz_rows rows;
            bz_values value[3];
            assert_true(bz_pages_open(&pages, fd, n));
            uint64_t got = 0;
            bz_scan_step step = bz_rows_begin(&rows, &pages, 2, wanted, 3);
            while (step == BZ_SCAN_ROW && (step = bz_rows_next(&rows, value)) == BZ_SCAN_ROW) {
                got += (uint64_t)rows.batch;
                for (int k = 0; k < rows.batch && value[1].type == BZ_VALUE_TEXT; k++)
                    assert_true(value[1].number[k] <= 1 << 24);
            }
            assert_true(got <= n);
            ends += step == BZ_SCAN_END;
            odd += step == BZ_SCAN_ODD;
            bz_rows_end(&rows);
        }
        assert_int_equal(pwrite(fd, &bytes[at], 1, (off_t)at), 1);
    }
    close(fd);
    assert_true(ends > 0 && odd > 0);
    /* cut off, and filled up with empty pages: what is there comes, and the end is told */
    assert_int_equal(truncate(path, 512 * 30), 0);
    assert_int_equal(truncate(path, (off_t)n), 0);
    bz_database db;
    bz_scan s;
    bz_hash hash;
    const char *error;
    assert_true(bz_database_open(&db, path));
    assert_true(bz_scan_begin(&s, &db, "t", NAMES, EITHER, 3));
    int64_t rows = hash_rows(&s, &hash, &error);
    assert_true(rows > 10 && rows < 60);
    assert_non_null(error);
    bz_database_close(&db);
}

static void unpack(const char *from)
{
    static char block[1 << 20];
    gzFile in = gzopen(from, "rb");
    FILE *out = fopen(path, "wb");
    assert_non_null(in);
    assert_non_null(out);
    for (int n; (n = gzread(in, block, sizeof block)) > 0;)
        assert_int_equal(fwrite(block, 1, (size_t)n, out), n);
    gzclose(in);
    fclose(out);
}

static void all_tables(const char *file, int64_t *own_rows)
{
    bz_database db;
    unpack(file);
    assert_true(bz_database_open(&db, path));
    sqlite3_stmt *tables = bz_database_prepare(
        &db, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_%'");
    while (sqlite3_step(tables) == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(tables, 0);
        char *names[24];
        int n = 0;
        sqlite3_stmt *columns = bz_database_prepare(&db, "SELECT name FROM pragma_table_info(?1)");
        sqlite3_bind_text(columns, 1, table, -1, SQLITE_STATIC);
        while (n < 24 && sqlite3_step(columns) == SQLITE_ROW)
            names[n++] = strdup((const char *)sqlite3_column_text(columns, 0));
        sqlite3_finalize(columns);
        bool own;
        int64_t rows = same(&db, table, (const char *const *)names, EITHER, n, &own);
        *own_rows += own ? rows : 0;
        while (n)
            free(names[--n]);
    }
    sqlite3_finalize(tables);
    bz_database_close(&db);
}

static void recordings(void **state)
{
    (void)state;
    static const char *const FOLDERS[] = {"v100/nsys/mxnet", "v100/nsys/mxnet_tcu", "v100/nsys/caffe2",
                                          "v100/nsys/onnxruntime", "nsys"};
    const char *root = getenv("BENANZA_SHARED");
    int64_t own_rows = 0;
    for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
        char folder[512], file[1024];
        snprintf(folder, sizeof folder, "%s/%s", root && *root ? root : BENANZA_SOURCE "/../shared/data", FOLDERS[i]);
        DIR *d = opendir(folder);
        if (!d) {
            print_message("skipped: %s is not here\n", folder);
            skip();
        }
        for (struct dirent *e; (e = readdir(d));)
            if (strstr(e->d_name, ".sqlite.gz")) {
                snprintf(file, sizeof file, "%s/%s", folder, e->d_name);
                all_tables(file, &own_rows);
            }
        closedir(d);
    }
    assert_true(own_rows > 50000);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_of_rows), cmocka_unit_test(what_pages_do_not_tell),
        cmocka_unit_test(wants),          cmocka_unit_test(damage),
        cmocka_unit_test(recordings),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
