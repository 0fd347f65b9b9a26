/* cli: one file per command, all of the same form; main.c has the table. A command has options, calls the rooms, and prints. */
#ifndef BZ_CLI_H
#define BZ_CLI_H

#include "command/command.h"

#define BZ_DB_OPTION                                                                                                   \
    BZ_VALUE("db", bz_job, db, "DIR", "the database's folder (else $BENANZA_DB, else $XDG_DATA_HOME/benanza/perfdb)")

int bz_main(int argc, char **argv); /* the whole program: argv[1] is a command */

extern const bz_command bz_command_analyze, bz_command_bench, bz_command_bound, bz_command_bricks, bz_command_compare,
    bz_command_completion, bz_command_db, bz_command_doctor, bz_command_fleet, bz_command_gen, bz_command_help,
    bz_command_layers, bz_command_predict, bz_command_profile, bz_command_replay, bz_command_run, bz_command_strip,
    bz_command_suite, bz_command_system, bz_command_transfer, bz_command_whatif;

#endif
