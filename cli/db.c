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

int bz_db_parse(const bz_command *command, const bz_option *options, int argc, char **argv, bz_list *arguments,
                int least, int most, int *status)
{
    bz_error err;
    int rc = bz_options_parse(command, options, argc, argv, arguments, &err);
    if (!rc && (arguments->n < least || arguments->n > most))
        rc = bz_fail(&err, BZ_USAGE, "%s: see --help",
                     arguments->n < least ? "arguments are missing" : "too many arguments");
    *status = rc > 0 ? BZ_OK : rc < 0 ? bz_report(command, &err) : BZ_OK;
    if (rc)
        bz_list_free(arguments);
    return rc;
}

int bz_db_finish(const bz_command *command, int rc, const bz_buf *out, bz_error *err)
{
    if (!rc && out->len)
        rc = bz_output(NULL, out, err);
    return rc ? bz_report(command, err) : BZ_OK;
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
