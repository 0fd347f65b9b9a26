/* benanza system: what this machine is, and which systems the database knows. The libraries that know the machine live
 * in the program benanza-bench, which is run for it: benanza itself stays light. */
#include "bench/bench.h"
#include "cli/db.h"
#include "cli/planning.h"
#include "report/report.h"
#include "runtime/backends.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct system_job {
    bz_job job;
    const char *wait;
    bool measure;
    int64_t threads;
    const char *where;
    bz_perfdb *db; /* NULL: there is none yet */
} system_job;

static const bz_option OPTIONS[] = {
    BZ_FLAG("measure", system_job, measure,
            "measure the highest rates, the bandwidths and the cost of an empty call, and store them"),
    BZ_COUNT("threads", system_job, threads, "N", "measure with N threads (1)", .with = "measure"),
    PLANNING_WAIT_OPTION(system_job, wait),
    PLANNING_DEVICE_OPTION,
    BZ_JSON_OPTION,
    BZ_DB_OPTION,
    {0},
};

/* This machine is its processor, and its GPU if there is one. */
static int look_here(system_job *s, bz_line here[2], int *n, bz_error *err)
{
    bz_error none;
    if (bz_bench_look(NULL, &s->job.arena, &here[0], err))
        return -1;
    *n = bz_bench_look(bz_backend_of_device(), &s->job.arena, &here[1], &none) ? 1 : 2;
    return 0;
}

/* Only measuring writes: where there is no database, looking makes none. */
static int open_db(system_job *s, bz_error *err)
{
    char *where = bz_perfdb_where(s->job.db);
    s->where = bz_arena_str(&s->job.arena, where);
    free(where);
    if (!s->measure && access(bz_arena_printf(&s->job.arena, "%s/data.mdb", s->where), F_OK))
        return 0;
    return bz_db_open(&s->job, !s->measure, &s->db, err);
}

static int report(void *job, bz_buf *out, bz_error *err)
{
    system_job *s = job;
    const bz_system *system;
    bz_line here[2];
    bz_stock *stock = NULL;
    bz_systems found = {.here = here};
    if (s->job.arguments.n)
        return bz_fail(err, BZ_USAGE, "takes no arguments, not '%s'", s->job.arguments.item[0]);
    if (s->threads > 4096)
        return bz_fail(err, BZ_USAGE, "--threads takes a number up to 4096, not %lld", (long long)s->threads);
    if (!s->measure && bz_job_reads_no(&s->job, "a machine that is only looked at, without --measure", "wait", err))
        return -1;
    if (open_db(s, err) || (s->measure && bz_bench_measure(s->db, (int)s->threads, s->wait, &system, err)) ||
        look_here(s, here, &found.n_here, err) ||
        (s->db && bz_perfdb_stocks(s->db, &s->job.arena, &stock, &found.n, err)) ||
        (!s->job.json && bz_bench_text(out, err)))
        return -1;
    if (s->db && (bz_perfdb_system(s->db, here->system, &system, err) ||
                  (system && bz_transfers_facts(s->db, system, &s->job.arena, &found.facts, err))))
        return -1;
    found.where = s->where;
    found.database = s->db;
    found.stock = stock;
    (s->job.json ? bz_report_systems_json : bz_report_systems_text)(&found, out);
    return 0;
}

const bz_command bz_command_system =
    BZ_COMMAND("system", "[OPTIONS]", "say what this machine is, and which systems the database knows", OPTIONS,
               system_job, report);
