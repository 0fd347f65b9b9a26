/* benanza suite: training runs that many people know, recorded and held side by side. */
#include "suite/suite.h"
#include "bench/bench.h"
#include "cli/db.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct suite_job {
    bz_job job;
    const char *edition, *size, *python, *folder;
    int64_t batch, iterations, threads;
    bool again;
    bz_suite suite;
} suite_job;

static const suite_job USUAL = {.edition = "today", .size = "ci", .folder = "suite-recordings", .threads = 1};

#define EDITION_OPTION                                                                                                 \
    BZ_VALUE("edition", suite_job, edition, "NAME", "2017, 2020, today, or a file with runs of yours (today)")
#define SIZE_OPTION                                                                                                    \
    BZ_CHOICE("size", suite_job, size, "ci|full", "small networks for seconds, or those that were published (ci)")

static void put_json(const char *record, bz_sheet *const *sheet, int n, bz_buf *out)
{
    bz_json json = bz_json_to(out, true);
    bz_json_document(&json, record, 1);
    for (int i = 0; i < n; i++) {
        bz_json_key(&json, sheet[i]->id);
        bz_sheet_json(sheet[i], &json);
    }
    bz_json_document_end(&json);
}

static bz_suite_size size_of(const suite_job *j)
{
    return strcmp(j->size, "full") ? BZ_SUITE_CI : BZ_SUITE_FULL;
}

static const bz_option LIST_OPTIONS[] = {EDITION_OPTION, SIZE_OPTION, BZ_JSON_OPTION, {0}};

static int list(void *job, bz_buf *out, bz_error *err)
{
    suite_job *j = job;
    if (bz_job_takes(&j->job, 0, 0, err) || bz_suite_read(j->edition, &j->job.arena, &j->suite, err))
        return -1;
    bz_sheet *s = bz_suite_list(&j->suite, size_of(j), &j->job.arena);
    if (j->job.json)
        put_json("suite", &s, 1, out);
    else
        bz_sheet_text(s, s->n, out);
    return 0;
}

static const bz_command LIST = BZ_COMMAND("suite list", "[OPTIONS]", "list the training runs of an edition",
                                          LIST_OPTIONS, suite_job, list, .usual = &USUAL);

static const bz_option RUN_OPTIONS[] = {
    EDITION_OPTION,
    SIZE_OPTION,
    BZ_VALUE("o|output", suite_job, folder, "DIR", "write the recordings into DIR (suite-recordings)"),
    BZ_COUNT("batch", suite_job, batch, "N", "samples of an iteration, instead of the edition's batches"),
    BZ_COUNT("iterations", suite_job, iterations, "N", "iterations behind the first two (20, full 50)"),
    BZ_COUNT("threads", suite_job, threads, "N", "let the programs use N threads (1)"),
    BZ_VALUE("python", suite_job, python, "PROGRAM", "run this in place of python3"),
    BZ_FLAG("again", suite_job, again, "record also what DIR has already"),
    BZ_JSON_OPTION,
    BZ_DB_OPTION,
    {0},
};

/* What this machine's processor does at best with so many threads, where somebody measured that. */
static double peak_of(suite_job *j)
{
    bz_perfdb *db;
    const bz_system *system;
    bz_error ignored;
    if (bz_db_look(&j->job, &db, &ignored) || bz_bench_system(db, NULL, NULL, &system, &ignored))
        return NAN;
    const bz_system_facts *facts = bz_system_facts_read(system->details, &j->job.arena);
    const bz_measured *m = bz_system_measured(facts, (int)j->threads);
    for (int i = 0; m && i < m->flops.n; i++)
        if (!strcmp(m->flops.at[i].name, "f32"))
            return m->flops.at[i].rate;
    return NAN;
}

static const char DONE[] = "run|batch:n|status|file=recording|reason";

/* False where somebody wants to end everything. */
static bool run_one(suite_job *j, const bz_suite_entry *e, const bz_suite_options *o, int batch, bz_sheet *done)
{
    const char *path = bz_suite_path(&j->suite, e, o, batch, &j->job.arena), *status = "recorded", *why = NULL;
    bz_error err = {0};
    int stopped = 0;
    if (!j->again && !access(path, F_OK)) {
        status = "is there";
    } else if (bz_suite_run(&j->suite, e, o, batch, &stopped, &err)) {
        status = "failed", why = bz_arena_str(&j->job.arena, err.text), path = NULL;
        j->job.status = BZ_INCOMPLETE;
    }
    fprintf(stderr, "benanza suite run: %s, batch %d: %s%s%s\n", e->name, batch, status, why ? ": " : "",
            why ? why : "");
    BZ_SHEET_ADD(done, BZ_TEXT(e->name), BZ_NUMBER(batch), BZ_TEXT(status), BZ_TEXT(path), BZ_TEXT(why));
    if (stopped)
        bz_end_by(stopped);
    return !stopped;
}

static bool is_wanted(const suite_job *j, const char *name)
{
    for (int i = 0; i < j->job.arguments.n; i++)
        if (!strcmp(j->job.arguments.item[i], name))
            return true;
    return !j->job.arguments.n;
}

static void run_all(suite_job *j, const bz_suite_options *o, bz_sheet *done)
{
    for (int i = 0; i < j->suite.n; i++) {
        const bz_suite_entry *e = &j->suite.entry[i];
        int n = !is_wanted(j, e->name) ? 0 : j->batch ? 1 : e->n_batches[o->size];
        for (int k = 0; k < n; k++)
            if (!run_one(j, e, o, j->batch ? (int)j->batch : e->batch[o->size][k], done))
                return;
    }
}

static int run(void *job, bz_buf *out, bz_error *err)
{
    enum { MOST = 1000000 };
    suite_job *j = job;
    bz_suite_options o = {
        .folder = j->folder, .python = j->python, .size = size_of(j), .iterations = (int)j->iterations};
    if (j->batch > MOST || j->iterations > MOST || j->threads > MOST)
        return bz_fail(err, BZ_USAGE, "--batch, --iterations and --threads take at most %d", MOST);
    if (!o.iterations)
        o.iterations = o.size == BZ_SUITE_CI ? 20 : 50;
    if (bz_suite_read(j->edition, &j->job.arena, &j->suite, err))
        return -1;
    for (int i = 0; i < j->job.arguments.n; i++)
        if (!bz_suite_find(&j->suite, j->job.arguments.item[i]))
            return bz_fail(err, BZ_USAGE, "%s has no run '%s': see benanza suite list", j->suite.edition,
                           j->job.arguments.item[i]);
    if (mkdir(o.folder, 0777) && errno != EEXIST)
        return bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", o.folder, strerror(errno));
    o.threads = (int)j->threads;
    o.peak = peak_of(j);
    bz_sheet *done = bz_sheet_new(&j->job.arena, "runs", "Runs", DONE);
    int own = dup(STDOUT_FILENO); /* what the programs print is no result of ours */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    run_all(j, &o, done);
    dup2(own, STDOUT_FILENO);
    close(own);
    if (j->job.json)
        put_json("suite-runs", &done, 1, out);
    else
        bz_sheet_text(done, done->n, out);
    return 0;
}

static const bz_command RUN =
    BZ_COMMAND("suite run", "[OPTIONS] [RUN...]", "run training runs of an edition, and record them", RUN_OPTIONS,
               suite_job, run, .usual = &USUAL);

static const bz_option REPORT_OPTIONS[] = {
    BZ_JSON_OPTION, BZ_FLAG("csv", bz_job, csv, "print the runs as comma-separated values"), {0}};

static int report(void *job, bz_buf *out, bz_error *err)
{
    enum { ROWS = 1000 };
    bz_job *j = job;
    bz_suite_report r;
    if (!j->arguments.n)
        return bz_fail(err, BZ_USAGE, "no folder given: benanza suite report DIR...");
    if (bz_suite_report_make(j->arguments.item, j->arguments.n, &j->arena, &r, err))
        return -1;
    bz_sheet *const sheet[] = {r.runs, r.checks, r.kernels};
    if (j->json)
        put_json("suite-report", sheet, 3, out);
    else if (j->csv)
        bz_sheet_csv(r.runs, out);
    for (int i = 0; i < 3 && !j->json && !j->csv; i++) {
        bz_buf_printf(out, "%s%s\n\n", i ? "\n" : "", sheet[i]->title);
        bz_sheet_text(sheet[i], ROWS, out);
    }
    j->status = r.failed ? BZ_INCOMPLETE : BZ_OK;
    return 0;
}

static const bz_command REPORT = BZ_COMMAND("suite report", "[OPTIONS] DIR|RECORDING...",
                                            "show recorded training runs side by side", REPORT_OPTIONS, bz_job, report);

static const bz_command *const SUBCOMMANDS[] = {&LIST, &RUN, &REPORT};

const bz_command bz_command_suite = {
    .name = "suite",
    .arguments = "COMMAND [OPTIONS] ARGUMENTS",
    .summary = "run well-known training runs, record them, and hold them side by side",
    .commands = SUBCOMMANDS,
    .n_commands = sizeof SUBCOMMANDS / sizeof *SUBCOMMANDS,
    .about = "Training runs that many people know: small ones for seconds, and those that were published."};
