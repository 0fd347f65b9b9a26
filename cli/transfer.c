/* benanza transfer: what moving data costs, measured where the database lacks it. */
#include "transfer/transfer.h"
#include "bench/bench.h"
#include "cli/db.h"
#include "cli/planning.h"
#include "report/report.h"

#include <string.h>

typedef struct transfer_job {
    planning p;
    bool json, points, no_run;
    int64_t bytes;
    const char *remeasure, *wait, *time_limit;
    bz_remeasure again;
    bz_setting setting;
    bz_perfdb *db;
    const bz_system *system;
    bz_arena arena;
} transfer_job;

static const bz_system_facts *facts_of(transfer_job *t)
{
    return bz_system_facts_read(t->system->details, &t->arena);
}

/* Another system's records can only be looked up. */
static int measure(transfer_job *t, bz_error *err)
{
    const char *const *text;
    bz_bench run = {.db = t->db,
                    .system = t->system,
                    .setting = t->setting,
                    .time_limit = t->time_limit ? t->time_limit : "0.03",
                    .wait = t->wait,
                    .again = &t->again};
    if (t->no_run || t->p.system)
        return 0;
    int n = bz_transfers_list(facts_of(t), t->setting.threads, &t->arena, &text);
    return bz_bench_texts(text, n, "memory", &run, err);
}

static int transfer(void *job, const bz_list *arguments, bz_buf *out, int *status, bz_error *err)
{
    transfer_job *t = job;
    bz_transfers found;
    if (arguments->n)
        return bz_fail(err, BZ_USAGE, "takes no arguments, not '%s'", arguments->item[0]);
    if (planning_setting(&t->p, &t->setting, err) || planning_remeasure(t->remeasure, &t->again, err) ||
        planning_seconds("wait", t->wait, true, err) || planning_seconds("time-limit", t->time_limit, false, err) ||
        planning_system(&bz_command_transfer, &t->p, t->p.system != NULL, &t->db, &t->system, err))
        return -1;
    if (planning_is_gpu(t->system))
        return bz_fail(err, BZ_INCOMPLETE, "'%s' is a GPU: only processors are measured so far", t->system->name);
    if (measure(t, err) || bz_transfers_read(t->db, t->system, facts_of(t), &t->setting, &t->arena, &found, err))
        return -1;
    if (t->json)
        bz_report_transfers_json(&found, (double)t->bytes, &t->arena, out);
    else
        bz_report_transfers_text(&found, t->points, (double)t->bytes, &t->arena, out);
    *status = found.missing ? BZ_INCOMPLETE : BZ_OK;
    return 0;
}

static int run(int argc, char **argv)
{
    transfer_job t = {0};
    const bz_option options[] = {
        {"points", BZ_OPTION_FLAG, &t.points, NULL, "list each size measured, not the lines through them"},
        {"bytes", BZ_OPTION_COUNT, &t.bytes, "N", "tell what N bytes take in each way, by the sizes measured"},
        {"json", BZ_OPTION_FLAG, &t.json, NULL, "print JSON, for programs: lines and points"},
        {"no-run", BZ_OPTION_FLAG, &t.no_run, NULL, "measure nothing: use only what the database has"},
        {"threads", BZ_OPTION_COUNT, &t.p.threads, "N", "let N threads share the work of those that can be shared (1)"},
        {"time-limit", BZ_OPTION_TEXT, &t.time_limit, "S", "seconds of measuring per variant (0.03)"},
        PLANNING_WAIT_OPTION(t.wait),
        PLANNING_REMEASURE_OPTION(t.remeasure),
        PLANNING_SYSTEM_OPTION(t.p),
        {"db", BZ_OPTION_TEXT, &t.p.db, "DIR", DB_HELP},
        {0},
    };
    int status = bz_run_command(&bz_command_transfer, options, argc, argv, transfer, &t);
    bz_perfdb_close(t.db);
    planning_free(&t.p);
    bz_arena_free(&t.arena);
    return status;
}

const bz_command bz_command_transfer = {
    "transfer", "[OPTIONS]", "measure what moving data costs, from cache to cache, thread to thread, and from files",
    run};
