/* benanza db …: the performance database at the command line. db_show.c, db_text.c and db_care.c have
 * the subcommands. */
#include "cli/db.h"

#include <signal.h>
#include <sys/stat.h>

void bz_db_warn(void *command, const char *text)
{
    bz_warn(command, "%s", text);
}

BZ_ENDS(close_db, bz_perfdb_close)

static int open_as(bz_job *job, bz_perfdb_options options, bz_perfdb **db, bz_error *err)
{
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error like a full disk */
    options.warn = bz_db_warn;
    options.user = (void *)job->command;
    BZ_FREED char *where = bz_perfdb_where(job->db);
    struct stat st;
    bool file = !stat(where, &st) && !S_ISDIR(st.st_mode);
    int rc = file ? bz_fail(err, BZ_BAD_INPUT,
                            "%s: is a file: a database is a folder: name one with --db, or BENANZA_DB", where)
                  : bz_perfdb_open(db, where, &options, err);
    if (!rc)
        bz_arena_keep(&job->arena, *db, close_db);
    return rc;
}

int bz_db_open(bz_job *job, bool read_only, bz_perfdb **db, bz_error *err)
{
    return open_as(job, (bz_perfdb_options){.read_only = read_only}, db, err);
}

int bz_db_look(bz_job *job, bz_perfdb **db, bz_error *err)
{
    return open_as(job, (bz_perfdb_options){.read_only = true, .or_nothing = true}, db, err);
}

static const bz_command *const SUBCOMMANDS[] = {&bz_command_db_ls,      &bz_command_db_show,  &bz_command_db_export,
                                                &bz_command_db_import,  &bz_command_db_merge, &bz_command_db_check,
                                                &bz_command_db_compact, &bz_command_db_gc,    &bz_command_db_salvage};

const bz_command bz_command_db = {
    .name = "db",
    .arguments = "COMMAND [OPTIONS] ARGUMENTS",
    .summary = "keep the database of measurements: ls, show, export, import, merge, check, compact, gc",
    .commands = SUBCOMMANDS,
    .n_commands = sizeof SUBCOMMANDS / sizeof *SUBCOMMANDS,
    .about = "Keeps the database of measurements: which variant took how long on which system."};
