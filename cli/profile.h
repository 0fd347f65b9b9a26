/* Recordings at the command line. Private to cli/. */
#ifndef BZ_CLI_PROFILE_H
#define BZ_CLI_PROFILE_H

#include "cli/cli.h"
#include "profile/profile.h"

/* An empty one that is there until the call ends. */
bz_trace *bz_job_trace(bz_job *job);
/* Files that were cut off are warned of, and the call ends as incomplete. */
void bz_job_cut(bz_job *job, const bz_trace *t);
/* benanza profile */
typedef struct profile_job {
    bz_job job;
    const char *output, *trace, *iterations, *table, *range, *against;
    int64_t top; /* -1: as many as are usual */
    int64_t limit;
    bool backtrace, memory, logs, nsys, levels, force;
} profile_job;

/* The command's part for recordings that are there already: "show" or "tables", then the files. */
void profile_return_memory(int kept); /* for the whole process */
int profile_tables(profile_job *p, bz_buf *out, bz_error *err);

#endif
