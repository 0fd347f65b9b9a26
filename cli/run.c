/* benanza run: build a folder of benchmarks, run it, store the records. */
#include "cli/db.h"
#include "cli/planning.h"

#include <stdio.h>
#include <unistd.h>

static void report(const bz_bench *r, bool json, bz_buf *out)
{
    if (json) {
        bz_json j = bz_json_to(out, false);
        bz_json_document(&j, "run", 1);
        bz_json_key_str(&j, "system", r->system->name);
        bz_json_key_int(&j, "problems", r->wanted);
        bz_json_key_int(&j, "records", r->records);
        bz_json_key_int(&j, "failed", r->failed);
        bz_json_key_int(&j, "busy", r->busy);
        bz_json_key_int(&j, "unreadable", r->bad);
        bz_json_object_end(&j);
        bz_buf_putc(out, '\n');
        return;
    }
    if (!r->wanted) {
        bz_buf_puts(out, "nothing to run: the database has all of it (--all runs it again)\n");
        return;
    }
    bz_buf_printf(out, "%d problem%s run, %d records stored for ", r->wanted, r->wanted == 1 ? "" : "s", r->records);
    bz_buf_clean(out, r->system->name);
    if (r->failed)
        bz_buf_printf(out, "; %d of them failed: 'benanza db show --failed' has the reasons", r->failed);
    if (r->busy)
        bz_buf_printf(out,
                      "; %d of them are marked busy, other programs used the machine: "
                      "'benanza run --remeasure noisy' measures them again",
                      r->busy);
    bz_buf_putc(out, '\n');
}

static int run_folder(const planning *p, const char *folder, bool json, bz_bench *r, bz_buf *out, bz_error *err)
{
    int rc = planning_seconds("time-limit", r->time_limit, false, err) ||
             planning_seconds("wait", r->wait, true, err) || planning_setting(p, &r->setting, err) ||
             bz_db_open(&bz_command_run, p->db, false, &r->db, err) || bz_bench_build(folder, err) ||
             bz_bench_system(r->db, NULL, bz_bench_folder_device(folder), &r->system, err) ||
             bz_bench_run(folder, r, err);
    bz_end_by(r->stopped_by);
    if (!rc && r->filter && !r->listed)
        rc = bz_fail(err, BZ_USAGE, "--filter: no problem's text holds '%s'; '%s/build/benchmarks --list' prints them",
                     r->filter, folder);
    if (!rc)
        report(r, json, out);
    bz_perfdb_close(r->db);
    return rc ? -1 : 0;
}

static int run(int argc, char **argv)
{
    planning p = {0};
    bz_bench r = {0};
    bool json = false;
    const char *remeasure = NULL;
    bz_remeasure again;
    bz_list arguments = {0};
    bz_error err = {0};
    bz_buf out = {0};
    const bz_option options[] = {
        {"filter", BZ_OPTION_TEXT, &r.filter, "TEXT", "run only problems with TEXT in their text"},
        {"time-limit", BZ_OPTION_TEXT, &r.time_limit, "S", "measure each variant for S seconds (0.1)"},
        PLANNING_WAIT_OPTION(r.wait),
        PLANNING_REMEASURE_OPTION(remeasure),
        {"engines", BZ_OPTION_CHOICE, &r.engines, "heuristic|all",
         "on a GPU, of which implementations: those that heuristics propose, or all that there are (heuristic)"},
        {"metrics", BZ_OPTION_TEXT, &r.metrics, "LIST",
         "on a GPU, also count: kernels, flops, dram, occupancy, or counters by name"},
        {"all", BZ_OPTION_FLAG, &r.all, NULL, "also run what the database has already"},
        {"json", BZ_OPTION_FLAG, &json, NULL, "print JSON, for programs"},
        {"threads", BZ_OPTION_COUNT, &p.threads, "N", "use N threads (1)"},
        {"cache", BZ_OPTION_CHOICE, &p.cache, "hot|cold",
         "hot: the operands are in the caches when a call begins; cold: they are in memory (hot)"},
        {"db", BZ_OPTION_TEXT, &p.db, "DIR", DB_HELP},
        {0},
    };
    int parsed = bz_options_parse(&bz_command_run, options, argc, argv, &arguments, &err), status = BZ_OK;
    if (!parsed && arguments.n > 1)
        parsed = bz_fail(&err, BZ_USAGE, "takes one folder");
    r.again = &again;
    if (parsed < 0 || (!parsed && (planning_remeasure(remeasure, &again, &err) ||
                                   run_folder(&p, arguments.n ? arguments.item[0] : ".", json, &r, &out, &err) ||
                                   bz_output(NULL, &out, &err))))
        status = bz_report(&bz_command_run, &err);
    else if (r.failed)
        status = BZ_INCOMPLETE;
    bz_buf_free(&out);
    bz_list_free(&arguments);
    return status;
}

const bz_command bz_command_run = {"run", "[DIR] [OPTIONS]",
                                   "build and run the benchmarks of a folder, and store the records\nThe folder's "
                                   "CMakeLists.txt and sources are run as "
                                   "programs: trust whoever wrote them.",
                                   run};
