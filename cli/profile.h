/* The parts of benanza profile. Private to cli/. */
#ifndef BZ_CLI_PROFILE_H
#define BZ_CLI_PROFILE_H

#include "cli/cli.h"

/* benanza profile tables FILE... */
typedef struct profile_tables {
    const char *table, *range, *against, *iterations;
    int64_t top; /* 0: as many as are usual */
    bool json, csv;
} profile_tables;

/* `files` has the word "tables" in front. Returns an exit status. */
int profile_tables_run(const bz_list *files, const profile_tables *p);

#endif
