/* benanza db check, db compact and db gc. */
#include "cli/db.h"
#include "report/report.h"

#include <signal.h>

static const bz_option CHECK[] = {BZ_DB_OPTION, BZ_JSON_OPTION, {0}};

static int check(void *asked, bz_buf *out, bz_error *err)
{
    bz_job *job = asked;
    bz_perfdb *db;
    bz_perfdb_check_report report = {0};
    if (bz_job_takes(job, 0, 0, err) || bz_db_open(job, true, &db, err) || bz_perfdb_check(db, &report, err))
        return -1;
    bz_report_check(&report, bz_perfdb_dir(db), job->json, out);
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
    BZ_FREED char *where = bz_perfdb_where(job->db);
    int rc = bz_perfdb_compact(where, &(bz_perfdb_options){0}, &before, &after, err);
    if (!rc)
        bz_buf_printf(out, "%s to %s in %s\n", bz_units_bytes(old, (double)before), bz_units_bytes(new, (double)after),
                      where);
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
