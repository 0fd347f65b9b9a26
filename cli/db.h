/* db: what the subcommands of benanza db share. Private to cli/db*.c. */
#ifndef BZ_CLI_DB_H
#define BZ_CLI_DB_H

#include "cli/cli.h"
#include "perfdb/perfdb.h"

#define DB_HELP "the database's folder (else $BENANZA_DB, else $XDG_DATA_HOME/benanza/perfdb)"

void bz_db_warn(void *command, const char *text); /* for what warns through a pointer: `command` is a bz_command */

/* Opens the database that --db names, or the usual one; its warnings go to stderr. */
int bz_db_open(const bz_command *command, const char *dir, bool read_only, bz_perfdb **db, bz_error *err);

/* Parses the command line of a subcommand with `least` to `most` arguments. Returns 0 to go on; else
 * *status is what to exit with. */
int bz_db_parse(const bz_command *command, const bz_option *options, int argc, char **argv, bz_list *arguments,
                int least, int most, int *status);

/* Prints the result if there is one, else the error; returns the exit status. */
int bz_db_finish(const bz_command *command, int rc, const bz_buf *out, bz_error *err);

enum { DB_MOST_THREADS = 16 };

/* What a database has of one system. */
typedef struct db_count {
    size_t records; /* with their history; the others count the newest of each identity */
    size_t variants, problems, ok;
    int64_t newest;
    bool from[BZ_PROVENANCE_IMPORTED + 1];
    int threads[DB_MOST_THREADS], n_threads; /* of the settings, fewest first; some of them where there are more */
    char *problem;                           /* while counting: the last one seen, as its records come in a row */
} db_count;

int db_count_system(bz_perfdb *db, const bz_system *system, db_count *c, bz_error *err);
const char *db_count_provenance(const db_count *c, bz_arena *arena); /* "measured, imported" */
/* Adds the counts to an object as its members, `problems` to `provenance`. */
void db_count_json(bz_json *j, const db_count *c);

/* The file with the records of a machine that come with benanza. -1 with the names of those that there are. */
int bz_db_reference(const char *name, char *path, size_t size, bz_error *err);

/* 2026-09-21 14:00, in UTC; "" where the date is not known. */
const char *bz_db_day(char out[32], int64_t date);

extern const bz_command bz_command_db_ls, bz_command_db_show, bz_command_db_export, bz_command_db_import,
    bz_command_db_merge, bz_command_db_salvage, bz_command_db_check, bz_command_db_compact, bz_command_db_gc;

#endif
