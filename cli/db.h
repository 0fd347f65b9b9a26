/* db: what the subcommands of benanza db share. Private to cli/db*.c. */
#ifndef BZ_CLI_DB_H
#define BZ_CLI_DB_H

#include "cli/cli.h"
#include "perfdb/perfdb.h"

void bz_db_warn(void *command, const char *text); /* for what warns through a pointer: `command` is a bz_command */

/* Opens the database that --db names, or the usual one, until the call ends; its warnings go to stderr. */
int bz_db_open(bz_job *job, bool read_only, bz_perfdb **db, bz_error *err);

/* To look only: where there is no database, one that knows nothing, and none is made. */
int bz_db_look(bz_job *job, bz_perfdb **db, bz_error *err);

extern const bz_command bz_command_db_ls, bz_command_db_show, bz_command_db_export, bz_command_db_import,
    bz_command_db_merge, bz_command_db_salvage, bz_command_db_check, bz_command_db_compact, bz_command_db_gc;

#endif
