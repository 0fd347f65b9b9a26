/* benanza fleet …: the database kept fresh by a Slurm cluster. */
#include "cli/db.h"
#include "fleet/job.h"

#include <signal.h>
#include <time.h>

typedef struct fleet_job {
    bz_job job;
    bz_fleet_job fleet;
    bool probe;                   /* submit: first ask the machines what they are */
    const char *tolerance, *html; /* report: per cent; a page */
    int64_t top;                  /* report: changes to show */
    bz_fleet_names models;        /* the arguments */
} fleet_job;

static const fleet_job USUAL = {.fleet = {.max_age = -1}, .top = 12};

#define FLEET_OPTIONS                                                                                                  \
    BZ_VALUE("config", fleet_job, fleet.config, "FILE", "the fleet's file (else $BENANZA_FLEET, else fleet.json)"),    \
        BZ_DB_OPTION, BZ_JSON_OPTION
#define FLEET_AGE_OPTION                                                                                               \
    BZ_WHOLE("max-age", fleet_job, fleet.max_age, "DAYS",                                                              \
             "measure again what is older than DAYS; 0: never (what the fleet's file says)")
#define FLEET_NIGHT_OPTION BZ_VALUE("night", fleet_job, fleet.night_name, "ID", "take this night (the newest)")

BZ_ENDS(end_job, bz_fleet_end)

/* What each of the commands begins with. */
static fleet_job *begin(void *job)
{
    fleet_job *c = job;
    signal(SIGXFSZ, SIG_IGN); /* as in bz_db_open */
    c->fleet.db_dir = c->job.db;
    c->fleet.warn = bz_db_warn;
    c->fleet.user = (void *)c->job.command;
    c->models = (bz_fleet_names){c->job.arguments.item, c->job.arguments.n};
    bz_arena_keep(&c->job.arena, &c->fleet, end_job);
    return c;
}

static int check_top(const fleet_job *c, bz_error *err)
{
    return c->job.json ? bz_job_reads_no(&c->job, "--json, which has all changes", "top", err) : 0;
}

static void print_plan(const fleet_job *c, bz_buf *out)
{
    (c->job.json ? bz_fleet_plan_json : bz_fleet_plan_text)(&c->fleet, out);
}

static void print_report(fleet_job *c, const bz_fleet_report *r, int rows, bz_buf *out)
{
    if (c->job.json)
        bz_fleet_report_json(r, out);
    else
        bz_fleet_report_text(r, rows, out);
    c->job.status = r->regressions || r->left ? BZ_INCOMPLETE : BZ_OK;
}

static int plan(void *job, bz_buf *out, bz_error *err)
{
    fleet_job *c = begin(job);
    if (bz_fleet_open_any(&c->fleet, err) || bz_fleet_load(&c->fleet, &c->models, err) ||
        bz_fleet_want(&c->fleet, false, err))
        return -1;
    print_plan(c, out);
    return 0;
}

static const bz_option PLAN[] = {FLEET_OPTIONS, FLEET_AGE_OPTION, {0}};

static const bz_command command_plan = BZ_COMMAND(
    "fleet plan", "[MODEL...] [OPTIONS]", "say what is missing or old on each system, and how long it takes to measure",
    PLAN, fleet_job, plan, .usual = &USUAL);

static int submit(void *job, bz_buf *out, bz_error *err)
{
    fleet_job *c = begin(job);
    const bz_night *n = &c->fleet.night;
    if (bz_fleet_prepare(&c->fleet, &c->models, c->probe, err))
        return -1;
    print_plan(c, out);
    if (bz_fleet_submit(&c->fleet, 1, (int64_t)time(NULL), err))
        return -1;
    for (int i = 0; !c->job.json && i < n->n_systems; i++)
        for (int k = 0; k < n->system[i].n_jobs; k++)
            bz_buf_printf(out, "%s: job %lld, %d shards\n", n->system[i].name, (long long)n->system[i].job[k].id,
                          n->system[i].n_shards);
    return 0;
}

static const bz_option SUBMIT[] = {
    FLEET_OPTIONS,
    FLEET_AGE_OPTION,
    BZ_FLAG("probe", fleet_job, probe, "first ask one machine of each kind what it is"),
    {0},
};

static const bz_command command_submit = BZ_COMMAND(
    "fleet submit", "[MODEL...] [OPTIONS]", "submit a job array for each kind of machine, and a job that merges",
    SUBMIT, fleet_job, submit, .usual = &USUAL);

static int nightly(void *job, bz_buf *out, bz_error *err)
{
    fleet_job *c = begin(job);
    bz_fleet_report report;
    if (bz_fleet_nightly(&c->fleet, &c->models, &report, err))
        return -1;
    if (c->fleet.night.id)
        print_report(c, &report, 12, out);
    else
        print_plan(c, out);
    return 0;
}

static const bz_option NIGHTLY[] = {FLEET_OPTIONS, FLEET_AGE_OPTION, {0}};

static const bz_command command_nightly =
    BZ_COMMAND("fleet nightly", "[MODEL...] [OPTIONS]", "plan, submit, wait, merge and report in one go, for a timer",
               NIGHTLY, fleet_job, nightly, .usual = &USUAL);

static int collect(void *job, bz_buf *out, bz_error *err)
{
    fleet_job *c = begin(job);
    const bz_merged *m = &c->fleet.merged;
    if (bz_fleet_open(&c->fleet, false, err) || bz_fleet_night_load(&c->fleet, err) || bz_fleet_collect(&c->fleet, err))
        return -1;
    c->job.status = m->note.n ? BZ_INCOMPLETE : BZ_OK;
    if (c->job.json)
        bz_merged_print(m, out);
    else
        bz_merged_text(m, c->fleet.night.id, out);
    return 0;
}

static const bz_option COLLECT[] = {FLEET_OPTIONS, FLEET_NIGHT_OPTION, {0}};

static const bz_command command_collect =
    BZ_COMMAND("fleet collect", "[OPTIONS]", "merge what the shards have measured so far into the database", COLLECT,
               fleet_job, collect, .usual = &USUAL);

static int status(void *job, bz_buf *out, bz_error *err)
{
    fleet_job *c = begin(job);
    bz_fleet_report r;
    if (bz_fleet_open(&c->fleet, true, err) || bz_fleet_night_load(&c->fleet, err) ||
        bz_fleet_report_make(&c->fleet, -1, &r, err))
        return -1;
    (c->job.json ? bz_fleet_report_json : bz_fleet_status_text)(&r, out);
    return 0;
}

static const bz_option STATUS[] = {FLEET_OPTIONS, FLEET_NIGHT_OPTION, {0}};

static const bz_command command_status =
    BZ_COMMAND("fleet status", "[OPTIONS]", "say how far a night is", STATUS, fleet_job, status, .usual = &USUAL);

static int report(void *job, bz_buf *out, bz_error *err)
{
    fleet_job *c = begin(job);
    bz_fleet_report r;
    if (check_top(c, err) || bz_fleet_open(&c->fleet, true, err) || bz_fleet_night_load(&c->fleet, err))
        return -1;
    double tolerance = c->tolerance ? bz_option_number(c->tolerance) / 100 : c->fleet.fleet.tolerance;
    if (c->tolerance && !(tolerance >= 0 && tolerance < 100))
        return bz_fail(err, BZ_USAGE, "--tolerance takes per cent, not '%s'", c->tolerance);
    if (bz_fleet_load(&c->fleet, &c->fleet.night.models, err) || bz_fleet_report_make(&c->fleet, tolerance, &r, err))
        return -1;
    if (c->html) {
        bz_buf page = {0};
        bz_fleet_report_html(&r, 1000, &page);
        if (bz_output_end(c->html, &page, err))
            return -1;
    }
    print_report(c, &r, c->top > 1000000 ? 1000000 : (int)c->top, out);
    return 0;
}

static const bz_option REPORT[] = {
    FLEET_OPTIONS,
    FLEET_NIGHT_OPTION,
    BZ_VALUE("tolerance", fleet_job, tolerance, "PERCENT",
             "call it a regression where something is slower by more than this (what the fleet's file says: 5)"),
    BZ_VALUE("html", fleet_job, html, "FILE", "also write a page for a browser"),
    BZ_WHOLE("top", fleet_job, top, "N", "show at most N changes (12)"),
    {0},
};

static const bz_command command_report = BZ_COMMAND(
    "fleet report", "[OPTIONS]", "say what a night brought: what became slower, what failed, which nodes are slow",
    REPORT, fleet_job, report, .usual = &USUAL);

typedef struct work_job {
    bz_job job;
    const char *scratch, *file, *backend;
} work_job;

static const bz_option WORK[] = {
    BZ_VALUE("scratch", work_job, scratch, "DIR",
             "build and run in this folder of the node ($SLURM_TMPDIR, $TMPDIR, /tmp)"),
    BZ_VALUE("probe", work_job, file, "FILE", "measure nothing, and write to FILE what this machine is"),
    BZ_VALUE("backend", work_job, backend, "NAME", "tell of the device that this backend runs on", .with = "probe"),
    {0},
};

static int work(void *job, bz_buf *out, bz_error *err)
{
    work_job *w = job;
    int stopped_by = 0;
    (void)out;
    signal(SIGXFSZ, SIG_IGN); /* as in bz_db_open */
    if (w->job.arguments.n != !w->file)
        return bz_fail(err, BZ_USAGE, "takes one shard, or --probe FILE");
    if (w->file)
        return bz_fleet_tell(w->file, w->backend, err);
    int rc = bz_fleet_work(w->job.arguments.item[0], w->scratch, bz_db_warn, (void *)w->job.command, &stopped_by, err);
    bz_end_by(stopped_by);
    return rc;
}

static const bz_command command_work =
    BZ_COMMAND("fleet work", "SHARD [OPTIONS]", "measure one shard on this node: what a job of the cluster runs", WORK,
               work_job, work);

static const bz_command *const SUBCOMMANDS[] = {&command_plan,   &command_submit,  &command_status, &command_collect,
                                                &command_report, &command_nightly, &command_work};

const bz_command bz_command_fleet = {
    .name = "fleet",
    .arguments = "COMMAND [OPTIONS] ARGUMENTS",
    .summary = "keep the database fresh on the machines of a cluster: plan, nightly, report",
    .commands = SUBCOMMANDS,
    .n_commands = sizeof SUBCOMMANDS / sizeof *SUBCOMMANDS,
    .about = "Keeps the database fresh: the machines of a Slurm cluster measure what is missing or old."};
