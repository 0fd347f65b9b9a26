/* benanza fleet …: the database kept fresh by a Slurm cluster. */
#include "cli/db.h"
#include "fleet/job.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

typedef struct fleet_call {
    const bz_command *command;
    bz_fleet_job job;
    bool json;
    bool probe;                   /* submit: first ask the machines what they are */
    const char *tolerance, *html; /* report: per cent; a page */
    int64_t top;                  /* report: changes to show */
    bz_fleet_names models;        /* the arguments */
    int status;                   /* what to exit with where all went well */
    int (*body)(struct fleet_call *c, bz_buf *out, bz_error *err);
} fleet_call;

#define FLEET_OPTIONS(c)                                                                                               \
    {"config", BZ_OPTION_TEXT, &(c).job.config, "FILE", "the fleet's file (else $BENANZA_FLEET, else fleet.json)"},    \
        {"db", BZ_OPTION_TEXT, &(c).job.db_dir, "DIR", DB_HELP},                                                       \
    {                                                                                                                  \
        "json", BZ_OPTION_FLAG, &(c).json, NULL, "print JSON, for programs"                                            \
    }
#define FLEET_AGE_OPTION(c)                                                                                            \
    {                                                                                                                  \
        "max-age", BZ_OPTION_INT, &(c).job.max_age, "DAYS",                                                            \
            "measure again what is older than DAYS; 0: never (what the fleet's file says)"                             \
    }
#define FLEET_NIGHT_OPTION(c)                                                                                          \
    {                                                                                                                  \
        "night", BZ_OPTION_TEXT, &(c).job.night_name, "ID", "take this night (the newest)"                             \
    }

static fleet_call call_of(const bz_command *command)
{
    return (fleet_call){
        .command = command, .job = {.max_age = -1, .warn = bz_db_warn, .user = (void *)command}, .top = 12};
}

static int work(void *job, const bz_list *arguments, bz_buf *out, int *status, bz_error *err)
{
    fleet_call *c = job;
    signal(SIGXFSZ, SIG_IGN); /* as in bz_db_open */
    c->models = (bz_fleet_names){arguments->item, arguments->n};
    int rc = c->body(c, out, err);
    *status = c->status;
    return rc;
}

/* Runs a subcommand: options, `body`, output, clean-up. */
static int run_call(fleet_call *c, const bz_option *options, int argc, char **argv,
                    int (*body)(fleet_call *c, bz_buf *out, bz_error *err))
{
    c->body = body;
    int status = bz_run_command(c->command, options, argc, argv, work, c);
    bz_fleet_end(&c->job);
    return status;
}

static void print_plan(const fleet_call *c, bz_buf *out)
{
    (c->json ? bz_fleet_plan_json : bz_fleet_plan_text)(&c->job, out);
}

static void print_report(fleet_call *c, const bz_fleet_report *r, int rows, bz_buf *out)
{
    if (c->json)
        bz_fleet_report_json(r, out);
    else
        bz_fleet_report_text(r, rows, out);
    c->status = r->regressions || r->left ? BZ_INCOMPLETE : BZ_OK;
}

/* ---- plan ----------------------------------------------------------------------------------- */

static int plan(fleet_call *c, bz_buf *out, bz_error *err)
{
    if (bz_fleet_open_any(&c->job, err) || bz_fleet_load(&c->job, &c->models, err) ||
        bz_fleet_want(&c->job, false, err))
        return -1;
    print_plan(c, out);
    return 0;
}

static int run_plan(int argc, char **argv);
static const bz_command command_plan = {"fleet plan", "[MODEL...] [OPTIONS]",
                                        "say what is missing or old on each system, and how long it takes to measure",
                                        run_plan};

static int run_plan(int argc, char **argv)
{
    fleet_call c = call_of(&command_plan);
    const bz_option options[] = {FLEET_OPTIONS(c), FLEET_AGE_OPTION(c), {0}};
    return run_call(&c, options, argc, argv, plan);
}

/* ---- submit and nightly --------------------------------------------------------------------- */

static int submit(fleet_call *c, bz_buf *out, bz_error *err)
{
    const bz_night *n = &c->job.night;
    if (bz_fleet_prepare(&c->job, &c->models, c->probe, err))
        return -1;
    print_plan(c, out);
    if (bz_fleet_submit(&c->job, 1, (int64_t)time(NULL), err))
        return -1;
    for (int i = 0; !c->json && i < n->n_systems; i++)
        for (int k = 0; k < n->system[i].n_jobs; k++)
            bz_buf_printf(out, "%s: job %lld, %d shards\n", n->system[i].name, (long long)n->system[i].job[k].id,
                          n->system[i].n_shards);
    return 0;
}

static int run_submit(int argc, char **argv);
static const bz_command command_submit = {"fleet submit", "[MODEL...] [OPTIONS]",
                                          "submit a job array for each kind of machine, and a job that merges",
                                          run_submit};

static int run_submit(int argc, char **argv)
{
    fleet_call c = call_of(&command_submit);
    const bz_option options[] = {
        FLEET_OPTIONS(c),
        FLEET_AGE_OPTION(c),
        {"probe", BZ_OPTION_FLAG, &c.probe, NULL, "first ask one machine of each kind what it is"},
        {0},
    };
    return run_call(&c, options, argc, argv, submit);
}

static int nightly(fleet_call *c, bz_buf *out, bz_error *err)
{
    bz_fleet_report report;
    if (bz_fleet_nightly(&c->job, &c->models, &report, err))
        return -1;
    if (c->job.night.id)
        print_report(c, &report, 12, out);
    else
        print_plan(c, out);
    return 0;
}

static int run_nightly(int argc, char **argv);
static const bz_command command_nightly = {"fleet nightly", "[MODEL...] [OPTIONS]",
                                           "plan, submit, wait, merge and report in one go, for a timer", run_nightly};

static int run_nightly(int argc, char **argv)
{
    fleet_call c = call_of(&command_nightly);
    const bz_option options[] = {FLEET_OPTIONS(c), FLEET_AGE_OPTION(c), {0}};
    return run_call(&c, options, argc, argv, nightly);
}

/* ---- collect, status and report ------------------------------------------------------------- */

static int collect(fleet_call *c, bz_buf *out, bz_error *err)
{
    const bz_merged *m = &c->job.merged;
    if (bz_fleet_open(&c->job, false, err) || bz_fleet_night_load(&c->job, err) || bz_fleet_collect(&c->job, err))
        return -1;
    c->status = m->note.n ? BZ_INCOMPLETE : BZ_OK;
    if (c->json)
        bz_merged_print(m, out);
    else
        bz_merged_text(m, c->job.night.id, out);
    return 0;
}

static int run_collect(int argc, char **argv);
static const bz_command command_collect = {"fleet collect", "[OPTIONS]",
                                           "merge what the shards have measured so far into the database", run_collect};

static int run_collect(int argc, char **argv)
{
    fleet_call c = call_of(&command_collect);
    const bz_option options[] = {FLEET_OPTIONS(c), FLEET_NIGHT_OPTION(c), {0}};
    return run_call(&c, options, argc, argv, collect);
}

static int status(fleet_call *c, bz_buf *out, bz_error *err)
{
    bz_fleet_report r;
    if (bz_fleet_open(&c->job, true, err) || bz_fleet_night_load(&c->job, err) ||
        bz_fleet_report_make(&c->job, -1, &r, err))
        return -1;
    (c->json ? bz_fleet_report_json : bz_fleet_status_text)(&r, out);
    return 0;
}

static int run_status(int argc, char **argv);
static const bz_command command_status = {"fleet status", "[OPTIONS]", "say how far a night is", run_status};

static int run_status(int argc, char **argv)
{
    fleet_call c = call_of(&command_status);
    const bz_option options[] = {FLEET_OPTIONS(c), FLEET_NIGHT_OPTION(c), {0}};
    return run_call(&c, options, argc, argv, status);
}

static int report(fleet_call *c, bz_buf *out, bz_error *err)
{
    bz_fleet_report r;
    char *end = NULL;
    if (bz_fleet_open(&c->job, true, err) || bz_fleet_night_load(&c->job, err))
        return -1;
    double tolerance = c->tolerance ? strtod(c->tolerance, &end) / 100 : c->job.fleet.tolerance;
    if (c->tolerance && (end == c->tolerance || *end || !(tolerance >= 0 && tolerance < 100)))
        return bz_fail(err, BZ_USAGE, "--tolerance takes per cent, not '%s'", c->tolerance);
    if (bz_fleet_load(&c->job, &c->job.night.models, err) || bz_fleet_report_make(&c->job, tolerance, &r, err))
        return -1;
    if (c->html) {
        bz_buf page = {0};
        bz_fleet_report_html(&r, 1000, &page);
        int rc = bz_output(c->html, &page, err);
        bz_buf_free(&page);
        if (rc)
            return -1;
    }
    print_report(c, &r, c->top > 1000000 ? 1000000 : (int)c->top, out);
    return 0;
}

static int run_report(int argc, char **argv);
static const bz_command command_report = {
    "fleet report", "[OPTIONS]", "say what a night brought: what became slower, what failed, which nodes are slow",
    run_report};

static int run_report(int argc, char **argv)
{
    fleet_call c = call_of(&command_report);
    const bz_option options[] = {
        FLEET_OPTIONS(c),
        FLEET_NIGHT_OPTION(c),
        {"tolerance", BZ_OPTION_TEXT, &c.tolerance, "PERCENT",
         "call it a regression where something is slower by more than this (what the fleet's file says: 5)"},
        {"html", BZ_OPTION_TEXT, &c.html, "FILE", "also write a page for a browser"},
        {"top", BZ_OPTION_INT, &c.top, "N", "show at most N changes (12)"},
        {0},
    };
    return run_call(&c, options, argc, argv, report);
}

/* ---- work: what jobs run; people seldom do -------------------------------------------------- */

static int run_work(int argc, char **argv);
static const bz_command command_work = {"fleet work", "SHARD [OPTIONS]",
                                        "measure one shard on this node: what a job of the cluster runs", run_work};

static int run_work(int argc, char **argv)
{
    const char *scratch = NULL, *file = NULL, *backend = NULL;
    bz_list arguments = {0};
    bz_error err = {0};
    const bz_option options[] = {
        {"scratch", BZ_OPTION_TEXT, &scratch, "DIR",
         "build and run in this folder of the node ($SLURM_TMPDIR, $TMPDIR, /tmp)"},
        {"probe", BZ_OPTION_TEXT, &file, "FILE", "measure nothing, and write to FILE what this machine is"},
        {"backend", BZ_OPTION_TEXT, &backend, "NAME", "with --probe: tell of the device that this backend runs on"},
        {0},
    };
    int rc = bz_options_parse(&command_work, options, argc, argv, &arguments, &err), stopped_by = 0;
    signal(SIGXFSZ, SIG_IGN); /* as in bz_db_open */
    if (!rc && arguments.n != !file)
        rc = bz_fail(&err, BZ_USAGE, "takes one shard, or --probe FILE");
    if (!rc && file)
        rc = bz_fleet_tell(file, backend, &err);
    else if (!rc)
        rc = bz_fleet_work(arguments.item[0], scratch, bz_db_warn, (void *)&command_work, &stopped_by, &err);
    bz_end_by(stopped_by);
    bz_list_free(&arguments);
    return rc < 0 ? bz_report(&command_work, &err) : BZ_OK;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static const bz_command *const SUBCOMMANDS[] = {&command_plan,   &command_submit,  &command_status, &command_collect,
                                                &command_report, &command_nightly, &command_work};
enum { N_SUBCOMMANDS = sizeof SUBCOMMANDS / sizeof(void *) };

static int run_fleet(int argc, char **argv)
{
    return bz_subcommands_run(
        "fleet", "Keeps the database fresh: the machines of a Slurm cluster measure what is missing or old.",
        SUBCOMMANDS, N_SUBCOMMANDS, argc, argv);
}

const bz_command bz_command_fleet = {"fleet", "COMMAND [OPTIONS] ARGUMENTS",
                                     "keep the database fresh on the machines of a cluster: plan, nightly, report",
                                     run_fleet};
