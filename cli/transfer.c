/* benanza transfer: what moving data costs, measured where the database lacks it. */
#include "transfer/transfer.h"
#include "bench/bench.h"
#include "cli/planning.h"
#include "report/report.h"

typedef struct transfer_job {
    bz_job job;
    planning p;
    bool points, by_threads, no_run, problems;
    int64_t bytes;
    const char *html, *remeasure, *wait, *time_limit;
    bz_remeasure again;
    bz_setting setting;
    bz_perfdb *db;
    const bz_system *system;
    const bz_system_facts *facts;
    bz_transfers found;
} transfer_job;

static const bz_option OPTIONS[] = {
    BZ_FLAG("points", transfer_job, points, "list each size measured, not the lines through them"),
    BZ_FLAG("by-threads", transfer_job, by_threads,
            "tell what 1, 2, 4 … threads move together, in memory, up to all cores"),
    BZ_COUNT("bytes", transfer_job, bytes, "N", "tell what N bytes take in each way, by the sizes measured"),
    PLANNING_DEVICE_OPTION,
    BZ_FLAG("json", bz_job, json, "print JSON, for programs: lines and points"),
    BZ_VALUE("html", transfer_job, html, "FILE", "besides, write a page for a browser, with the curves"),
    BZ_FLAG("problems", transfer_job, problems, "list what is measured, for benanza-bench, and measure nothing"),
    BZ_LIST("backend", transfer_job, p.backends, "NAME",
            "cudart: measure this machine's GPU; memory: the processor (memory)"),
    BZ_FLAG("no-run", transfer_job, no_run, "measure nothing: use only what the database has"),
    BZ_COUNT("threads", transfer_job, p.threads, "N", "let N threads share the work of those that can be shared (1)"),
    BZ_VALUE("time-limit", transfer_job, time_limit, "S", "seconds of measuring per variant (0.02)",
             .use = bz_option_seconds),
    PLANNING_WAIT_OPTION(transfer_job, wait),
    PLANNING_REMEASURE_OPTION(transfer_job, remeasure),
    PLANNING_SYSTEM_OPTION(transfer_job, p),
    BZ_DB_OPTION,
    {0},
};

/* What is known of the system, with its last cache as large as loads find it. */
static int find_facts(transfer_job *t, bz_error *err)
{
    const bz_system_facts *shown = bz_system_facts_read(t->system->details, &t->job.arena);
    return bz_transfers_caches(t->db, t->system, shown, &t->job.arena, &t->facts, err);
}

static int measure(transfer_job *t, bz_error *err)
{
    bz_bench run = {.db = t->db,
                    .system = t->system,
                    .setting = t->setting,
                    .time_limit = t->time_limit ? t->time_limit : "0.02",
                    .wait = t->wait,
                    .again = &t->again};
    int rc = bz_bench_transfers(&run, t->by_threads, &t->job.arena, &t->facts, err);
    bz_end_by(run.stopped_by);
    return rc;
}

/* Another system's records can only be looked up. */
static int find(transfer_job *t, bz_error *err)
{
    bool look = t->no_run || t->p.system;
    if ((!look && measure(t, err)) ||
        bz_transfers_read(t->db, t->system, t->facts, &t->setting, &t->job.arena, &t->found, err))
        return -1;
    return t->by_threads
               ? bz_transfers_by_threads(t->db, t->system, t->facts, &t->setting, &t->job.arena, &t->found.threads, err)
               : 0;
}

/* For another machine, which has benanza-bench alone. */
static void list_problems(transfer_job *t, bz_buf *out)
{
    const char *const *text;
    for (int rings = 1; rings >= 0; rings--) {
        int n = bz_transfers_list(t->facts, t->setting.threads, rings, &t->job.arena, &text);
        for (int i = 0; i < n; i++)
            bz_buf_printf(out, "%s\n", text[i]);
    }
}

static int write_page(transfer_job *t, bz_error *err)
{
    bz_buf page = {0};
    bz_report_transfers_page(&t->found, t->points, (double)t->bytes, &t->job.arena, &page);
    return bz_output_end(t->html, &page, err);
}

static int check_given(const transfer_job *t, bz_error *err)
{
    if (t->problems && bz_job_reads(&t->job, "--problems", "problems backend device threads system db", err))
        return -1;
    if (t->job.json && bz_job_reads_no(&t->job, "--json, which has lines and points", "points", err))
        return -1;
    if (t->p.system && bz_job_reads_no(&t->job, "a system that is named", "backend", err))
        return -1;
    return t->no_run || t->p.system
               ? bz_job_reads_no(&t->job, "records that are looked up", "device time-limit wait remeasure", err)
               : 0;
}

static int transfer(void *job, bz_buf *out, bz_error *err)
{
    transfer_job *t = job;
    if (t->job.arguments.n)
        return bz_fail(err, BZ_USAGE, "takes no arguments, not '%s'", t->job.arguments.item[0]);
    if (check_given(t, err))
        return -1;
    if (planning_setting(&t->p, &t->setting, err) || bz_remeasure_parse(t->remeasure, &t->again, err) ||
        planning_system(&t->job, &t->p, t->p.system || t->no_run, &t->db, &t->system, err) || find_facts(t, err))
        return -1;
    if (t->problems) {
        list_problems(t, out);
        return 0;
    }
    if (find(t, err) || (t->html && write_page(t, err)))
        return -1;
    if (t->job.json)
        bz_report_transfers_json(&t->found, (double)t->bytes, &t->job.arena, out);
    else
        bz_report_transfers_text(&t->found, t->points, (double)t->bytes, &t->job.arena, out);
    t->job.status = t->found.missing ? BZ_INCOMPLETE : BZ_OK;
    return 0;
}

const bz_command bz_command_transfer =
    BZ_COMMAND("transfer", "[OPTIONS]",
               "measure what moving data costs, from cache to cache, thread to thread, from files, and to GPUs",
               OPTIONS, transfer_job, transfer);
