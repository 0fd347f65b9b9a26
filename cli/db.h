/* db: what the subcommands of benanza db share. Private to cli/db*.c. */
#ifndef BZ_CLI_DB_H
#define BZ_CLI_DB_H

#include "cli/cli.h"
#include "perfdb/perfdb.h"

#define DB_HELP "the database's folder (else $BENANZA_DB, else $XDG_DATA_HOME/benanza/perfdb)"

void bz_db_warn(void *command, const char *text); /* for what warns through a pointer: `command` is a bz_command */

/* Opens the database that --db names, or the usual one; its warnings go to stderr. */
int bz_db_open(const bz_command *command, const char *dir, bool read_only, bz_perfdb **db, bz_error *err);

/* To look only: where there is no database, one that knows nothing, and none is made. */
int bz_db_look(const bz_command *command, const char *dir, bz_perfdb **db, bz_error *err);

/* A call of a subcommand with at most so many arguments: `work` gets the database open where `opens` says so, to be read. */
typedef struct bz_db_job {
    const bz_command *command;
    int (*work)(struct bz_db_job *j, bz_buf *out, bz_error *err);
    int least, most;
    bool opens, json, csv;
    const char *dir, *system, *path;
    bz_perfdb_choice choice;
    int64_t keep;
    const char *reference, *models;
    const bz_list *arguments;
    bz_perfdb *db; /* is closed at the end */
    bz_arena arena;
    int status;
} bz_db_job;
int bz_db_run(bz_db_job *j, const bz_option *options, int argc, char **argv);

extern const bz_command bz_command_db_ls, bz_command_db_show, bz_command_db_export, bz_command_db_import,
    bz_command_db_merge, bz_command_db_salvage, bz_command_db_check, bz_command_db_compact, bz_command_db_gc;

#endif
