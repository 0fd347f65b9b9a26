/* benanza db check, db compact and db gc. */
#include "cli/db.h"

#include <signal.h>
#include <stdlib.h>

static int run_check(int argc, char **argv);
const bz_command bz_command_db_check = {"db check", "[OPTIONS]",
                                        "read every page and every entry, and say what is damaged", run_check};

static void print_check(const bz_perfdb_check_report *r, const char *dir, bool json, bz_buf *out)
{
    size_t defects = r->damaged + r->orphans;
    bz_unit_text bytes;
    if (json) {
        bz_json j = bz_json_to(out, true);
        bz_json_document(&j, "database-check", 1);
        bz_json_key_bool(&j, "clean", defects == 0);
        bz_json_key_int(&j, "systems", (int64_t)r->systems);
        bz_json_key_int(&j, "problems", (int64_t)r->problems);
        bz_json_key_int(&j, "records", (int64_t)r->records);
        bz_json_key_int(&j, "damaged", (int64_t)r->damaged);
        bz_json_key_int(&j, "orphans", (int64_t)r->orphans);
        bz_json_key_int(&j, "newer", (int64_t)r->newer);
        bz_json_key_int(&j, "unused", (int64_t)r->unused);
        bz_json_key_int(&j, "bytes", (int64_t)r->bytes);
        bz_json_key_int(&j, "stale_readers", r->stale_readers);
        bz_json_document_end(&j);
        return;
    }
    if (defects)
        bz_buf_printf(out, "%zu damaged and %zu orphaned entries in %s\n", r->damaged, r->orphans, dir);
    else
        bz_buf_printf(out, "clean: %s\n", dir);
    bz_buf_printf(out, "%zu system%s, %zu problem%s, %zu record%s, %s\n", r->systems, r->systems == 1 ? "" : "s",
                  r->problems, r->problems == 1 ? "" : "s", r->records, r->records == 1 ? "" : "s",
                  bz_units_bytes(bytes, (double)r->bytes));
    if (r->newer)
        bz_buf_printf(out, "%zu entries were written by a newer benanza and are passed over\n", r->newer);
    if (r->unused)
        bz_buf_printf(out, "%zu problems have no records: 'benanza db gc' removes them\n", r->unused);
    if (defects)
        bz_buf_puts(out, "save what is left: 'benanza db salvage -o FILE', then 'benanza db import --db NEW FILE'\n");
}

static int run_check(int argc, char **argv)
{
    const char *dir = NULL;
    bool json = false;
    const bz_option options[] = {{"db", BZ_OPTION_TEXT, &dir, "DIR", DB_HELP},
                                 {"json", BZ_OPTION_FLAG, &json, NULL, "print JSON, for programs"},
                                 {0}};
    bz_list arguments = {0};
    int status;
    if (bz_db_parse(&bz_command_db_check, options, argc, argv, &arguments, 0, 0, &status))
        return status;
    bz_perfdb *db = NULL;
    bz_perfdb_check_report report = {0};
    bz_buf out = {0};
    bz_error err;
    int rc = bz_db_open(&bz_command_db_check, dir, true, &db, &err);
    if (!rc)
        rc = bz_perfdb_check(db, &report, &err);
    if (!rc)
        print_check(&report, bz_perfdb_dir(db), json, &out);
    status = bz_db_finish(&bz_command_db_check, rc, &out, &err);
    bz_perfdb_close(db);
    bz_buf_free(&out);
    return status != BZ_OK ? status : report.damaged + report.orphans ? BZ_BAD_INPUT : BZ_OK;
}

static int run_compact(int argc, char **argv);
const bz_command bz_command_db_compact = {"db compact", "[OPTIONS]",
                                          "write the database's file anew, without its free pages", run_compact};

static int run_compact(int argc, char **argv)
{
    const char *dir = NULL;
    const bz_option options[] = {{"db", BZ_OPTION_TEXT, &dir, "DIR", DB_HELP}, {0}};
    bz_list arguments = {0};
    int status;
    if (bz_db_parse(&bz_command_db_compact, options, argc, argv, &arguments, 0, 0, &status))
        return status;
    bz_buf out = {0};
    bz_error err;
    bz_unit_text old, new;
    uint64_t before, after;
    signal(SIGXFSZ, SIG_IGN); /* as in bz_db_open */
    char *where = bz_perfdb_where(dir);
    int rc = bz_perfdb_compact(where, &(bz_perfdb_options){0}, &before, &after, &err);
    if (!rc)
        bz_buf_printf(&out, "%s to %s in %s\n", bz_units_bytes(old, (double)before), bz_units_bytes(new, (double)after),
                      where);
    status = bz_db_finish(&bz_command_db_compact, rc, &out, &err);
    bz_buf_free(&out);
    free(where);
    return status;
}

static int run_gc(int argc, char **argv);
const bz_command bz_command_db_gc = {"db gc", "--keep N [OPTIONS]",
                                     "delete all but the newest N measurements of each variant and setting", run_gc};

static int run_gc(int argc, char **argv)
{
    const char *dir = NULL;
    int64_t keep = 0;
    const bz_option options[] = {
        {"db", BZ_OPTION_TEXT, &dir, "DIR", DB_HELP},
        {"keep", BZ_OPTION_INT, &keep, "N", "keep the N newest measurements, at least 1"},
        {0},
    };
    bz_list arguments = {0};
    int status;
    if (bz_db_parse(&bz_command_db_gc, options, argc, argv, &arguments, 0, 0, &status))
        return status;
    bz_perfdb *db = NULL;
    bz_buf out = {0};
    bz_error err;
    size_t deleted = 0;
    int rc = keep < 1 ? bz_fail(&err, BZ_USAGE, "--keep wants a number of 1 or more") : 0;
    if (!rc)
        rc = bz_db_open(&bz_command_db_gc, dir, false, &db, &err);
    if (!rc)
        rc = bz_perfdb_gc(db, (size_t)keep, &deleted, &err);
    if (!rc)
        bz_buf_printf(&out, "%zu record%s deleted; 'benanza db compact' gives the space back\n", deleted,
                      deleted == 1 ? "" : "s");
    status = bz_db_finish(&bz_command_db_gc, rc, &out, &err);
    bz_perfdb_close(db);
    bz_buf_free(&out);
    return status;
}
