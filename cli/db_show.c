/* benanza db ls and db show: what the database knows. */
#include "cli/db.h"
#include "report/report.h"

static int run_ls(int argc, char **argv);
const bz_command bz_command_db_ls = {"db ls", "[OPTIONS]", "list the systems that the database knows", run_ls};

static int run_ls(int argc, char **argv)
{
    const char *dir = NULL;
    bool json = false, csv = false;
    const bz_option options[] = {{"db", BZ_OPTION_TEXT, &dir, "DIR", DB_HELP},
                                 {"json", BZ_OPTION_FLAG, &json, NULL, "print JSON, for programs"},
                                 {"csv", BZ_OPTION_FLAG, &csv, NULL, "print comma-separated values"},
                                 {0}};
    bz_list arguments = {0};
    int status;
    if (bz_db_parse(&bz_command_db_ls, options, argc, argv, &arguments, 0, 0, &status))
        return status;
    bz_perfdb *db = NULL;
    bz_buf out = {0};
    bz_arena arena = {0};
    bz_stock *list;
    size_t n;
    bz_error err;
    int rc = bz_db_open(&bz_command_db_ls, dir, true, &db, &err) || bz_perfdb_stocks(db, &arena, &list, &n, &err);
    if (!rc)
        bz_report_database(bz_perfdb_dir(db), list, n, bz_form_of(json, csv), &out);
    status = bz_db_finish(&bz_command_db_ls, rc, &out, &err);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
    bz_buf_free(&out);
    return status;
}

static int run_show(int argc, char **argv);
const bz_command bz_command_db_show = {"db show", "[OPTIONS] [WORD...]",
                                       "show the records of problems that contain all the words, fastest first",
                                       run_show};

static int run_show(int argc, char **argv)
{
    const char *dir = NULL, *system = NULL;
    bool json = false, csv = false;
    bz_list words = {0};
    bz_perfdb_choice choice = {0};
    const bz_option options[] = {
        {"db", BZ_OPTION_TEXT, &dir, "DIR", DB_HELP},
        {"system", BZ_OPTION_TEXT, &system, "NAME",
         "only this system; a name without @ means its newest library version"},
        {"dtype", BZ_OPTION_TEXT, &choice.filter.dtype, "TYPE", "only problems of this data type"},
        {"backend", BZ_OPTION_TEXT, &choice.backend, "NAME", "only this backend"},
        {"history", BZ_OPTION_FLAG, &choice.filter.history, NULL, "show every measurement, not only the newest"},
        {"failed", BZ_OPTION_FLAG, &choice.failed, NULL, "also show what failed or was not supported"},
        {"json", BZ_OPTION_FLAG, &json, NULL, "print JSON, for programs"},
        {"csv", BZ_OPTION_FLAG, &csv, NULL, "print comma-separated values"},
        {0},
    };
    int status;
    if (bz_db_parse(&bz_command_db_show, options, argc, argv, &words, 0, 1000, &status))
        return status;
    bz_perfdb *db = NULL;
    bz_buf out = {0};
    bz_arena arena = {0};
    bz_record *list;
    size_t n;
    bz_error err;
    choice.word = words.item;
    choice.n_words = words.n;
    int rc = bz_db_open(&bz_command_db_show, dir, true, &db, &err) ||
             bz_perfdb_known(db, system, &choice.filter.system, &err) ||
             bz_perfdb_pick(db, &choice, &arena, &list, &n, &err);
    if (!rc)
        bz_report_records(bz_perfdb_dir(db), list, n, bz_form_of(json, csv), &out);
    status = bz_db_finish(&bz_command_db_show, rc, &out, &err);
    bz_perfdb_close(db);
    bz_buf_free(&out);
    bz_arena_free(&arena);
    bz_list_free(&words);
    return status;
}
