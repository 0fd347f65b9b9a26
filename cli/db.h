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

/* Parses the command line of a subcommand with `least` to `most` arguments. Returns 0 to go on; else
 * *status is what to exit with. */
int bz_db_parse(const bz_command *command, const bz_option *options, int argc, char **argv, bz_list *arguments,
                int least, int most, int *status);

/* Prints the result if there is one, else the error; returns the exit status. */
int bz_db_finish(const bz_command *command, int rc, const bz_buf *out, bz_error *err);

extern const bz_command bz_command_db_ls, bz_command_db_show, bz_command_db_export, bz_command_db_import,
    bz_command_db_merge, bz_command_db_salvage, bz_command_db_check, bz_command_db_compact, bz_command_db_gc;

#endif
