/* benanza db …: the performance database at the command line. db_show.c, db_text.c and db_care.c have
 * the subcommands. */
#include "cli/db.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bz_db_warn(void *command, const char *text)
{
    bz_warn(command, "%s", text);
}

static int open_as(const char *dir, const bz_perfdb_options *options, bz_perfdb **db, bz_error *err)
{
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error like a full disk */
    char *where = bz_perfdb_where(dir);
    int rc = bz_perfdb_open(db, where, options, err);
    free(where);
    return rc;
}

int bz_db_open(const bz_command *command, const char *dir, bool read_only, bz_perfdb **db, bz_error *err)
{
    const bz_perfdb_options options = {.read_only = read_only, .warn = bz_db_warn, .user = (void *)command};
    return open_as(dir, &options, db, err);
}

int bz_db_look(const bz_command *command, const char *dir, bz_perfdb **db, bz_error *err)
{
    const bz_perfdb_options options = {
        .read_only = true, .or_nothing = true, .warn = bz_db_warn, .user = (void *)command};
    return open_as(dir, &options, db, err);
}

static int work(void *job, const bz_list *arguments, bz_buf *out, int *status, bz_error *err)
{
    bz_db_job *j = job;
    if (arguments->n < j->least || arguments->n > j->most)
        return bz_fail(err, BZ_USAGE, "%s: see --help",
                       arguments->n < j->least ? "arguments are missing" : "too many arguments");
    j->arguments = arguments;
    int rc = (j->opens && bz_db_open(j->command, j->dir, true, &j->db, err)) || j->work(j, out, err) ? -1 : 0;
    bz_perfdb_close(j->db);
    bz_arena_free(&j->arena);
    *status = j->status;
    return rc;
}

int bz_db_run(bz_db_job *j, const bz_option *options, int argc, char **argv)
{
    return bz_run_command(j->command, options, argc, argv, work, j);
}

static const bz_command *const SUBCOMMANDS[] = {&bz_command_db_ls,      &bz_command_db_show,  &bz_command_db_export,
                                                &bz_command_db_import,  &bz_command_db_merge, &bz_command_db_check,
                                                &bz_command_db_compact, &bz_command_db_gc,    &bz_command_db_salvage};
enum { N_SUBCOMMANDS = sizeof SUBCOMMANDS / sizeof(void *) };

static int run_db(int argc, char **argv)
{
    return bz_subcommands_run("db", "Keeps the database of measurements: which variant took how long on which system.",
                              SUBCOMMANDS, N_SUBCOMMANDS, argc, argv);
}

const bz_command bz_command_db = {
    "db", "COMMAND [OPTIONS] ARGUMENTS",
    "keep the database of measurements: ls, show, export, import, merge, check, compact, gc", run_db};
