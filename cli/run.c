/* benanza run: build a folder of benchmarks, run it, store the records. */
#include "cli/db.h"
#include "cli/planning.h"
#include "report/report.h"

typedef struct run_job {
    bz_job job;
    planning p;
    bz_bench bench;
    const char *remeasure;
} run_job;

static const bz_option OPTIONS[] = {
    BZ_VALUE("filter", run_job, bench.filter, "TEXT", "run only problems with TEXT in their text"),
    BZ_VALUE("time-limit", run_job, bench.time_limit, "S", "measure each variant for at most S seconds (0.1)",
             .use = bz_option_seconds),
    PLANNING_WAIT_OPTION(run_job, bench.wait),
    PLANNING_DEVICE_OPTION,
    PLANNING_REMEASURE_OPTION(run_job, remeasure),
    BZ_CHOICE(
        "engines", run_job, bench.engines, "heuristic|all",
        "on a GPU: measure the implementations that the library's heuristics propose, or all of them (heuristic)"),
    BZ_VALUE("metrics", run_job, bench.metrics, "LIST",
             "on a GPU, also count: flops, dram, occupancy, or counters by name; none: look at no kernels"),
    BZ_FLAG("all", run_job, bench.all, "also run what the database has already"),
    BZ_JSON_OPTION,
    BZ_COUNT("threads", run_job, p.threads, "N", "use N threads (1)"),
    BZ_CHOICE("cache", run_job, p.cache, "hot|cold",
              "hot: the operands are in the caches when a call begins; cold: they are in memory (hot)"),
    PLANNING_CLOCK_OPTION(run_job, p.clock),
    BZ_DB_OPTION,
    {0},
};

static int run_folder(void *job, bz_buf *out, bz_error *err)
{
    run_job *j = job;
    const planning *p = &j->p;
    bz_bench *r = &j->bench;
    bz_remeasure again;
    const bz_list *arguments = &j->job.arguments;
    const char *folder = arguments->n ? arguments->item[0] : ".";
    r->again = &again;
    if (arguments->n > 1)
        return bz_fail(err, BZ_USAGE, "takes one folder");
    if (r->all && bz_job_reads_no(&j->job, "--all, which measures everything again", "remeasure", err))
        return -1;
    if (bz_remeasure_parse(j->remeasure, &again, err))
        return -1;
    int rc = planning_setting(p, &r->setting, err) || bz_db_open(&j->job, false, &r->db, err) ||
             bz_bench_folder(folder, r, err);
    bz_end_by(r->stopped_by);
    if (!rc && r->filter && !r->listed)
        rc = bz_fail(err, BZ_USAGE, "--filter: no problem's text holds '%s'; '%s/build/benchmarks --list' prints them",
                     r->filter, folder);
    if (!rc)
        bz_report_run(r, j->job.json, out);
    j->job.status = r->failed ? BZ_INCOMPLETE : BZ_OK;
    return rc ? -1 : 0;
}

const bz_command bz_command_run =
    BZ_COMMAND("run", "[DIR] [OPTIONS]",
               "build and run the benchmarks of a folder, and store the records\nThe folder's CMakeLists.txt and "
               "sources are run as programs: trust whoever wrote them.",
               OPTIONS, run_job, run_folder);
