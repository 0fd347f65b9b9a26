/* benanza db ls and db show: what the database knows. */
#include "cli/db.h"
#include "report/report.h"

static const bz_option LS[] = {BZ_DB_OPTION, BZ_JSON_OPTION, BZ_CSV_OPTION, {0}};

static int list_systems(void *asked, bz_buf *out, bz_error *err)
{
    bz_job *job = asked;
    bz_perfdb *db;
    bz_stock *list;
    size_t n;
    if (bz_job_takes(job, 0, 0, err) || bz_db_open(job, true, &db, err) ||
        bz_perfdb_stocks(db, &job->arena, &list, &n, err))
        return -1;
    bz_report_database(bz_perfdb_dir(db), list, n, bz_form_of(job->json, job->csv), out);
    return 0;
}

const bz_command bz_command_db_ls =
    BZ_COMMAND("db ls", "[OPTIONS]", "list the systems that the database knows", LS, bz_job, list_systems);

typedef struct show_job {
    bz_job job;
    const char *system;
    bz_perfdb_choice choice;
} show_job;

static const bz_option SHOW[] = {
    BZ_DB_OPTION,
    BZ_VALUE("system", show_job, system, "NAME", "only this system; a name without @ means its newest library version"),
    BZ_VALUE("dtype", show_job, choice.filter.dtype, "TYPE", "only problems of this data type"),
    BZ_VALUE("backend", show_job, choice.backend, "NAME", "only this backend"),
    BZ_FLAG("history", show_job, choice.filter.history, "show every measurement, not only the newest"),
    BZ_FLAG("failed", show_job, choice.failed, "also show what failed or was not supported"),
    BZ_JSON_OPTION,
    BZ_CSV_OPTION,
    {0},
};

static int show(void *job, bz_buf *out, bz_error *err)
{
    show_job *j = job;
    bz_perfdb *db;
    bz_record *list;
    size_t n;
    j->choice.word = j->job.arguments.item;
    j->choice.n_words = j->job.arguments.n;
    if (bz_job_takes(&j->job, 0, 1000, err) || bz_db_open(&j->job, true, &db, err) ||
        bz_perfdb_known(db, j->system, &j->choice.filter.system, err) ||
        bz_perfdb_pick(db, &j->choice, &j->job.arena, &list, &n, err))
        return -1;
    bz_report_records(bz_perfdb_dir(db), list, n, bz_form_of(j->job.json, j->job.csv), out);
    return 0;
}

const bz_command bz_command_db_show =
    BZ_COMMAND("db show", "[OPTIONS] [WORD...]",
               "show the records of problems that contain all the words, fastest first", SHOW, show_job, show);
