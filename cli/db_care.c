/* benanza db check, db compact and db gc. */
#include "base/member.h"
#include "cli/db.h"

#include <signal.h>
#include <stdlib.h>

static const bz_member CHECKED[] = {
    BZ_MEMBER(bz_perfdb_check_report, systems),       BZ_MEMBER(bz_perfdb_check_report, problems),
    BZ_MEMBER(bz_perfdb_check_report, records),       BZ_MEMBER(bz_perfdb_check_report, damaged),
    BZ_MEMBER(bz_perfdb_check_report, orphans),       BZ_MEMBER(bz_perfdb_check_report, newer),
    BZ_MEMBER(bz_perfdb_check_report, unused),        BZ_MEMBER(bz_perfdb_check_report, bytes),
    BZ_MEMBER(bz_perfdb_check_report, stale_readers),
};

static void print_check(const bz_perfdb_check_report *r, const char *dir, bool json, bz_buf *out)
{
    size_t defects = r->damaged + r->orphans;
    bz_unit_text bytes;
    if (json) {
        bz_json j = bz_json_to(out, true);
        bz_json_document(&j, "database-check", 1);
        bz_json_key_bool(&j, "clean", defects == 0);
        bz_members_json(BZ_MEMBERS(CHECKED), r, &j);
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

static const bz_option CHECK[] = {BZ_DB_OPTION, BZ_JSON_OPTION, {0}};

static int check(void *asked, bz_buf *out, bz_error *err)
{
    bz_job *job = asked;
    bz_perfdb *db;
    bz_perfdb_check_report report = {0};
    if (bz_job_takes(job, 0, 0, err) || bz_db_open(job, true, &db, err) || bz_perfdb_check(db, &report, err))
        return -1;
    print_check(&report, bz_perfdb_dir(db), job->json, out);
    job->status = report.damaged + report.orphans ? BZ_BAD_INPUT : BZ_OK;
    return 0;
}

const bz_command bz_command_db_check = BZ_COMMAND(
    "db check", "[OPTIONS]", "read every page and every entry, and say what is damaged", CHECK, bz_job, check);

static const bz_option COMPACT[] = {BZ_DB_OPTION, {0}};

static int compact(void *asked, bz_buf *out, bz_error *err)
{
    bz_job *job = asked;
    bz_unit_text old, new;
    uint64_t before, after;
    if (bz_job_takes(job, 0, 0, err))
        return -1;
    signal(SIGXFSZ, SIG_IGN); /* as in bz_db_open */
    char *where = bz_perfdb_where(job->db);
    int rc = bz_perfdb_compact(where, &(bz_perfdb_options){0}, &before, &after, err);
    if (!rc)
        bz_buf_printf(out, "%s to %s in %s\n", bz_units_bytes(old, (double)before), bz_units_bytes(new, (double)after),
                      where);
    free(where);
    return rc;
}

const bz_command bz_command_db_compact = BZ_COMMAND(
    "db compact", "[OPTIONS]", "write the database's file anew, without its free pages", COMPACT, bz_job, compact);

typedef struct gc_job {
    bz_job job;
    int64_t keep;
} gc_job;

static const bz_option GC[] = {
    BZ_DB_OPTION,
    BZ_WHOLE("keep", gc_job, keep, "N", "keep the N newest measurements, at least 1"),
    {0},
};

static int delete_old(void *job, bz_buf *out, bz_error *err)
{
    gc_job *j = job;
    bz_perfdb *db;
    size_t deleted = 0;
    if (bz_job_takes(&j->job, 0, 0, err))
        return -1;
    if (j->keep < 1)
        return bz_fail(err, BZ_USAGE, "--keep wants a number of 1 or more");
    if (bz_db_open(&j->job, false, &db, err) || bz_perfdb_gc(db, (size_t)j->keep, &deleted, err))
        return -1;
    bz_buf_printf(out, "%zu record%s deleted; 'benanza db compact' gives the space back\n", deleted,
                  deleted == 1 ? "" : "s");
    return 0;
}

const bz_command bz_command_db_gc =
    BZ_COMMAND("db gc", "--keep N [OPTIONS]", "delete all but the newest N measurements of each variant and setting",
               GC, gc_job, delete_old);
