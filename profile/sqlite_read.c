/* Reads Nsight Systems' SQLite exports of all generations, and our own files, which follow them.
 * Tables and columns differ from version to version: what is there is asked for, what is missing is
 * told. The file is hostile: only plain tables are read, never views or virtual tables. */
#include "profile/sqlite_read.h"
#include "base/folder.h"
#include "profile/reader.h"
#include "profile/rocpd.h"
#include "profile/sqlite_facts.h"
#include "profile/sqlite_levels.h"
#include "profile/sqlite_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_table(bz_sqlite_reader *r, const char *name)
{
    return bz_database_has(&r->db, name);
}

uint32_t bz_sqlite_string(bz_sqlite_reader *r, int64_t id)
{
    return bz_string_ids_find(&r->strings, id);
}

uint32_t bz_sqlite_text(bz_sqlite_reader *r, sqlite3_stmt *s, int column)
{
    const char *v = (const char *)sqlite3_column_text(s, column);
    return bz_string_ids_text(r->t, v, sqlite3_column_bytes(s, column));
}

static void read_thread_names(bz_sqlite_reader *r)
{
    sqlite3_stmt *s =
        r->own ? NULL : bz_database_query(&r->db, "ThreadNames", "SELECT globalTid, nameId FROM ThreadNames");
    int rc = SQLITE_DONE;
    while (s && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(s, 0);
        uint32_t lane = bz_trace_known_thread(r->t, r->source, id >> 24 & 0xffffff, id & 0xffffff);
        if (lane != BZ_NONE)
            r->t->lane[lane].name = bz_sqlite_string(r, sqlite3_column_int64(s, 1));
    }
    bz_table_end(r->t, r->source, "ThreadNames", s, rc);
}

static void cover(bz_sqlite_reader *r, const size_t *before)
{
    bz_trace *t = r->t;
    char name[96];
    size_t kernels = t->event[BZ_EVENT_KERNEL].n - before[BZ_EVENT_KERNEL],
           apis = t->event[BZ_EVENT_API].n - before[BZ_EVENT_API];
    if (!r->own) {
        if (!kernels && apis)
            bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                           "no kernel was recorded: device-busy time, algorithms and kernel lists are unknown; library "
                           "and runtime calls, copies and synchronizations can be analyzed. Did the program run on the "
                           "GPU at all? Then profile again with nsys --trace=cuda");
        if (!apis && kernels)
            bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                           "no runtime call was recorded: kernels cannot be tied to the calls that launched them");
        if (!bz_sqlite_table_named(r, "CUDNN_EVENTS", name) && kernels)
            bz_trace_cover(
                t, r->source, BZ_COVERAGE_MISSING,
                "no cuDNN call was recorded: profile with nsys --trace=cuda,cudnn,cublas, or add the cuDNN log");
        if (bz_sqlite_table_named(r, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", name))
            bz_trace_cover(t, r->source, BZ_COVERAGE_MISSING,
                           "CUDA graphs were recorded as one row each: the kernels inside are not told apart; profile "
                           "with nsys --cuda-graph-trace=node");
    }
    if (r->strings.orphans)
        bz_trace_cover(t, r->source, BZ_COVERAGE_BROKEN, "%lld names are not in StringIds and stay empty",
                       (long long)r->strings.orphans);
    bz_cover_times(t, r->source, r->unnamed_time, r->negative);
    if (r->endless)
        bz_trace_cover(t, r->source, BZ_COVERAGE_NOTE, "%lld ranges have no end and count as marks",
                       (long long)r->endless);
}

static void read_all(bz_sqlite_reader *r)
{
    size_t before[BZ_EVENT_KINDS];
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        before[k] = r->t->event[k].n;
    if (!is_table(r, "StringIds") && !is_table(r, "StringTable")) /* nvprof's */
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN,
                       "table StringIds is missing: names of kernels and calls are unknown");
    else
        bz_table_damaged(r->t, r->source, "StringIds", bz_string_ids_read(&r->strings, r->t, &r->db));
    bz_sqlite_own_lanes(r);
    bz_sqlite_own_stacks(r);
    bz_sqlite_beside *calls = bz_sqlite_beside_start(r);
    for (int i = 0; i < BZ_N_TABLES; i++)
        if (!(r->own && BZ_TABLES[i].kind == BZ_EVENT_CALL && BZ_TABLES[i].library) && /* ours are in BENANZA_CALLS */
            !bz_sqlite_beside_end(&calls, r, &BZ_TABLES[i]))
            bz_sqlite_table_read(r, &BZ_TABLES[i]);
    bz_facts_read(r->t, r->source, &r->db);
    read_thread_names(r);
    if (r->own) {
        bz_sqlite_own_iterations(r);
        bz_levels_read(r->t, r->source, &r->db);
    }
    cover(r, before);
    bz_trace_source_format(r->t, r->source, r->own ? "benanza trace" : "Nsight Systems");
}

static bool sqlite_matches(const char *head, size_t n)
{
    return n >= 16 && !memcmp(head, "SQLite format 3", 16);
}

/* SQLite wants a file it can seek in, and of the size that it says: what is compressed or cut off is copied to a temporary
 * one, where empty pages stand for those that are missing. */
static int unpack(bz_stream *in, uint64_t claimed, bz_buf *path, bz_error *err)
{
    char name[BZ_FOLDER_MAX];
    int fd = bz_folder_file(name, err);
    if (fd < 0)
        return -1;
    bz_buf_puts(path, name);
    bool bad = false;
    while (in->len && !bad) {
        for (size_t done = 0; done < in->len && !bad;) {
            ssize_t n = write(fd, in->data + done, in->len - done);
            bad = n <= 0;
            done += bad ? 0 : (size_t)n;
        }
        bz_stream_advance(in, in->len, 1);
    }
    if (!bad && claimed > (uint64_t)in->passed)
        (void)ftruncate(fd, (off_t)claimed); /* where that fails, the file cannot be read, and SQLite says so */
    close(fd);
    if (bz_stream_check(in, err))
        return -1;
    return bad ? bz_fail(err, BZ_FAILED, "%s: no room to decompress it: set TMPDIR to a folder that has some", in->path)
               : 0;
}

static int64_t size_of(const char *path, const char *suffix)
{
    bz_buf name = {0};
    struct stat st;
    bz_buf_printf(&name, "%s%s", path, suffix);
    int64_t size = stat(bz_buf_text(&name), &st) ? 0 : (int64_t)st.st_size;
    bz_buf_free(&name);
    return size;
}

/* What is not in the file although it should be. */
static void cover_file(bz_sqlite_reader *r, const bz_stream *in, uint64_t claimed, int64_t size)
{
    if (claimed > (uint64_t)size) {
        r->t->source[r->source].truncated = true;
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN,
                       "the file is cut off: %lld of %lld bytes are there; tables that lie in them are read",
                       (long long)size, (long long)claimed);
    }
    if (!in->memory && size_of(in->path, "-wal") > 0)
        bz_trace_cover(r->t, r->source, BZ_COVERAGE_BROKEN,
                       "a write-ahead log lies beside the file, and what is in it was not read: run PRAGMA "
                       "wal_checkpoint in sqlite3 first");
    if (!in->memory && size_of(in->path, "-journal") > 0) {
        r->t->source[r->source].truncated = true;
        bz_trace_cover(
            r->t, r->source, BZ_COVERAGE_BROKEN,
            "a journal lies beside the file: what wrote it was interrupted or still writes. Export it again");
    }
}

/* A whole database without a table that is read is of another tool. */
static int check_tables(bz_sqlite_reader *r, const char *path, bz_error *err)
{
    char name[96];
    bool any = is_table(r, "StringIds") || r->db.why || r->t->source[r->source].truncated;
    for (int i = 0; i < BZ_N_TABLES && !any; i++)
        any = bz_sqlite_table_named(r, BZ_TABLES[i].table, name);
    if (any)
        return 0;
    sqlite3_stmt *s = bz_database_prepare(&r->db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT "
                                                  "LIKE 'sqlite%' ORDER BY name NOT LIKE 'rocpd_op', 1 DESC");
    bool some = bz_database_step(&r->db, s);
    snprintf(name, sizeof name, "%s", some ? (const char *)sqlite3_column_text(s, 0) : "");
    sqlite3_finalize(s);
    if (!some)
        return bz_fail(
            err, BZ_BAD_INPUT,
            "%s: is a database without tables: was the export that should fill it interrupted? Export it again", path);
    if (!strcmp(name, "rocpd_op"))
        return bz_fail(err, BZ_BAD_INPUT,
                       "%s: is a database of rocmProfileData (RPD), which benanza does not read: give what its "
                       "rpd2tracing.py writes, or record with rocprofv3",
                       path);
    return bz_fail(err, BZ_BAD_INPUT,
                   "%s: is a database of another program, with a table %s and none of Nsight Systems': give what nsys "
                   "export --type=sqlite writes",
                   path, name);
}

enum { HEADER = 100 }; /* bytes, which every database has */

static int unread(const bz_database *db, const char *path, bz_error *err)
{
    const char *why = bz_database_unread(db);
    return why ? bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s", path, why) : 0;
}

static int sqlite_read(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err)
{
    bz_sqlite_reader r = {.t = t, .source = source};
    int rc = -1;
    bz_buf temporary = {0};
    uint64_t claimed = bz_pages_claimed(in->data, in->len);
    bool file = !in->compressed && !in->memory;
    int64_t size = file ? size_of(in->path, "") : 0;
    if ((!file || claimed > (uint64_t)size) && unpack(in, claimed, &temporary, err))
        goto out;
    cover_file(&r, in, claimed, temporary.len ? in->passed : size);
    r.t->source[source].truncated |= in->passed + (int64_t)in->len < HEADER;
    if (!bz_database_open(&r.db, temporary.len ? bz_buf_text(&temporary) : in->path)) {
        if (!unread(&r.db, in->path, err))
            bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s%s; record or export it again", in->path,
                    r.t->source[source].truncated ? "the file is cut off before the list of its tables: " : "",
                    sqlite3_errmsg(r.db.sql));
        goto out;
    }
    if (!bz_rocpd_read(t, source, &r.db)) {
        if (check_tables(&r, in->path, err))
            goto out;
        read_all(&r);
    }
    if (unread(&r.db, in->path, err))
        goto out;
    if (r.db.why)
        bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s; record or export it again", in->path,
                sqlite3_errstr(r.db.why));
    else
        rc = 0;
out:
    bz_database_close(&r.db);
    if (temporary.len)
        bz_folder_remove(temporary.data);
    bz_buf_free(&temporary);
    bz_string_ids_free(&r.strings);
    free(r.lane_of);
    free(r.stack_of);
    return rc;
}

const bz_reader bz_reader_sqlite = {"Nsight Systems", false, sqlite_matches, sqlite_read};
