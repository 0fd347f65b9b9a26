/* Calls of the runtime that another thread reads: the rows that SQLite has, in its order, and the same trace on one processor. */
#include "profile/profile.h"

#include <sched.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static char path[] = "/tmp/benanza-beside-XXXXXX";

/* Kernels on three streams, and as many calls by four threads of two processes. */
#define NUMBERS(n)                                                                                                     \
    "WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i + 1 < " #n ") INSERT INTO "                \
    "CUPTI_ACTIVITY_KIND_"
static const char TABLES[] =
    "PRAGMA page_size = 512; CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'a'), (2, 'b'), (3, 'cudaLaunchKernel'), (4, 'cudaStreamSynchronize');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT, globalPid "
    "INT, correlationId INT, demangledName INT);" NUMBERS(20000) "KERNEL SELECT i * 10 + 5, i * 10 + 9, 0, 1, i / 7 % "
                                                                 "3, (i / 100 % 2 + 5) << 24, i + 1, i % 2 + 1 FROM s;";
#define CALLS "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, correlationId INT, "

static const struct {
    const char *what, *sql, *told; /* told: in the coverage */
} FILES[] = {
    {"several threads",
     CALLS "globalTid INT, nameId INT);" NUMBERS(
         20000) "RUNTIME SELECT i * 10, i * 10 + 4, i + 1, ((i / 100 % 2 + 5) << 24) + i / 30 % 2, 3 + (i % 50 = 0) "
                "FROM s",
     NULL},
    {"names as texts",
     CALLS "globalTid INT, nameId);" NUMBERS(20000) "RUNTIME SELECT i * 10, i * 10 + 4, i + 1, 5 << "
                                                    "24, iif(i = 3000, 'cudaFree', 3) FROM s",
     NULL},
    {"names that are not there",
     CALLS "globalTid INT, nameId INT);" NUMBERS(20000) "RUNTIME SELECT i * 10, i * 10 + "
                                                        "4, i + 1, 5 << 24, i % 3 + 2 "
                                                        "FROM s; UPDATE "
                                                        "CUPTI_ACTIVITY_KIND_RUNTIME SET "
                                                        "nameId = 9 WHERE nameId = 2",
     "6667 names are not in StringIds"},
    {"no threads", CALLS "nameId INT);" NUMBERS(20000) "RUNTIME SELECT i * 10, i * 10 + 4, i + 1, 3 FROM s", NULL},
    {"no numbers of calls", "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, nameId INT)", NULL},
    {"no names", "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT)",
     "has no column nameId: it was left out"},
    {"a real number among the times",
     CALLS "globalTid INT, nameId INT);" NUMBERS(20000) "RUNTIME SELECT iif(i = 4000, i * 10 + 0.5, i * 10), i * 10 + "
                                                        "4, i + 1, 5 << 24, 3 FROM s",
     NULL},
    {"times that are none, and ends before starts",
     CALLS "globalTid INT, nameId INT);" NUMBERS(20000) "RUNTIME SELECT iif(i % 100, i * 10, NULL), i * 10 + 4 - i % 5 "
                                                        "/ 4 * 8, i + 1, 5 << 24, 3 FROM s",
     "200 events carry no time"},
    {"no calls", "", "no runtime call was recorded"},
};

static void make(const char *sql)
{
    sqlite3 *db;
    unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, TABLES, NULL, NULL, NULL) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static bz_trace *load(void)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    if (bz_profile_read(t, path, &err))
        fail_msg("%s", err.text);
    return t;
}

/* Where the file has these columns: row by row. */
static void compare_rows(const bz_trace *t)
{
    const bz_events *e = &t->event[BZ_EVENT_API];
    sqlite3 *db;
    sqlite3_stmt *s = NULL;
    size_t i = 0;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_prepare_v2(db,
                       "SELECT start, max(start, end), correlationId, coalesce(value, iif(typeof(nameId) = 'text', "
                       "nameId, '')), globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME r LEFT JOIN StringIds ON id = nameId "
                       "WHERE start IS NOT NULL ORDER BY r.rowid",
                       -1, &s, NULL);
    for (; s && sqlite3_step(s) == SQLITE_ROW; i++) {
        assert_true(i < e->n);
        assert_int_equal(e->start[i], sqlite3_column_int64(s, 0));
        assert_int_equal(e->end[i], sqlite3_column_int64(s, 1));
        assert_int_equal(e->correlation[i], sqlite3_column_int64(s, 2));
        assert_string_equal(bz_string(t, e->name[i]), (const char *)sqlite3_column_text(s, 3));
        const bz_lane *l = &t->lane[e->lane[i]];
        assert_int_equal(l->process << 24 | l->thread, sqlite3_column_int64(s, 4));
        assert_false(l->device);
        assert_true(l->kinds & 1u << BZ_EVENT_API);
    }
    if (s)
        assert_int_equal(i, e->n);
    sqlite3_finalize(s);
    sqlite3_close(db);
}

static void put_answer(bz_trace *t, bz_buf *out)
{
    bz_error err;
    assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
    bz_trace_json(t, 10, out);
    for (uint32_t i = 0; i < t->n_lanes; i++)
        bz_buf_printf(out, "%d %lld %lld %lld, ", t->lane[i].device, (long long)t->lane[i].process,
                      (long long)t->lane[i].thread, (long long)t->lane[i].stream);
}

static void rows_are_those_of_sqlite(void **state)
{
    (void)state;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        BZ_SCOPED(bz_buf) beside = {0}, in_turn = {0};
        print_message("%s\n", FILES[i].what);
        make(FILES[i].sql);
        bz_trace *t = load();
        compare_rows(t);
        put_answer(t, &beside);
        bool told = !FILES[i].told;
        for (uint32_t k = 0; k < t->n_coverage && !told; k++)
            told = strstr(bz_string(t, t->coverage[k].text), FILES[i].told) != NULL;
        assert_true(told);
        bz_trace_free(t);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        t = load();
        put_answer(t, &in_turn);
        bz_trace_free(t);
        assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
        assert_string_equal(bz_buf_text(&beside), bz_buf_text(&in_turn));
    }
    unlink(path);
}

int main(void)
{
    close(mkstemp(path));
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_those_of_sqlite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
