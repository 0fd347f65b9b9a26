/* benanza db ls and db show: what the database knows. */
#include "cli/db.h"
#include "report/report.h"

static int run_ls(int argc, char **argv);
const bz_command bz_command_db_ls = {"db ls", "[OPTIONS]", "list the systems that the database knows", run_ls};

static int list_systems(bz_db_job *j, bz_buf *out, bz_error *err)
{
    bz_stock *list;
    size_t n;
    if (bz_perfdb_stocks(j->db, &j->arena, &list, &n, err))
        return -1;
    bz_report_database(bz_perfdb_dir(j->db), list, n, bz_form_of(j->json, j->csv), out);
    return 0;
}

static int run_ls(int argc, char **argv)
{
    bz_db_job j = {.command = &bz_command_db_ls, .work = list_systems, .opens = true};
    const bz_option options[] = {{"db", BZ_OPTION_TEXT, &j.dir, "DIR", DB_HELP},
                                 {"json", BZ_OPTION_FLAG, &j.json, NULL, "print JSON, for programs"},
                                 {"csv", BZ_OPTION_FLAG, &j.csv, NULL, "print comma-separated values"},
                                 {0}};
    return bz_db_run(&j, options, argc, argv);
}

static int run_show(int argc, char **argv);
const bz_command bz_command_db_show = {"db show", "[OPTIONS] [WORD...]",
                                       "show the records of problems that contain all the words, fastest first",
                                       run_show};

static int show(bz_db_job *j, bz_buf *out, bz_error *err)
{
    bz_record *list;
    size_t n;
    j->choice.word = j->arguments->item;
    j->choice.n_words = j->arguments->n;
    if (bz_perfdb_known(j->db, j->system, &j->choice.filter.system, err) ||
        bz_perfdb_pick(j->db, &j->choice, &j->arena, &list, &n, err))
        return -1;
    bz_report_records(bz_perfdb_dir(j->db), list, n, bz_form_of(j->json, j->csv), out);
    return 0;
}

static int run_show(int argc, char **argv)
{
    bz_db_job j = {.command = &bz_command_db_show, .work = show, .most = 1000, .opens = true};
    const bz_option options[] = {
        {"db", BZ_OPTION_TEXT, &j.dir, "DIR", DB_HELP},
        {"system", BZ_OPTION_TEXT, &j.system, "NAME",
         "only this system; a name without @ means its newest library version"},
        {"dtype", BZ_OPTION_TEXT, &j.choice.filter.dtype, "TYPE", "only problems of this data type"},
        {"backend", BZ_OPTION_TEXT, &j.choice.backend, "NAME", "only this backend"},
        {"history", BZ_OPTION_FLAG, &j.choice.filter.history, NULL, "show every measurement, not only the newest"},
        {"failed", BZ_OPTION_FLAG, &j.choice.failed, NULL, "also show what failed or was not supported"},
        {"json", BZ_OPTION_FLAG, &j.json, NULL, "print JSON, for programs"},
        {"csv", BZ_OPTION_FLAG, &j.csv, NULL, "print comma-separated values"},
        {0},
    };
    return bz_db_run(&j, options, argc, argv);
}
