/* benanza bound: measure what the database lacks, then analyze models by it. */
#include "cli/analysis.h"
#include "cli/profile.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

typedef struct bound_job {
    bz_job job;
    planning p;
    bool no_run;
    int64_t in_sequence;
    const char *time_limit, *wait, *remeasure, *max;
    double limit;               /* seconds; INFINITY for none */
    bz_remeasure again_records; /* that are measured although the database has them */
    bz_setting setting;
    int benchmarks;      /* run for this: records made */
    int problems, known; /* that the models need; of which the database had all */
    bz_models models;
    bz_perfdb *db;
    const bz_system *system;
    analyses analyses;
    const char *again; /* this command as it measures, where it only looks up */
    bool looked;       /* it only looked up, and something lacks */
} bound_job;

static const bz_option OPTIONS[] = {
    BZ_LIST(
        "profile", bound_job, analyses.profiles, "FILE,…",
        "instead of a model: the layers that the calls of this recording did, whose program needs no model; a timeline "
        "and the logs of the same run have commas between; may be repeated"),
    ANALYSIS_ITERATIONS_OPTION(bound_job, analyses),
    ANALYSIS_OPTIONS(bound_job, analyses.output),
    BZ_FLAG("no-run", bound_job, no_run, "measure nothing: use what the database has"),
    PLANNING_DEVICE_OPTION,
    BZ_VALUE("max", bound_job, max, "MS", "end with status 5 where a bound is above MS milliseconds"),
    BZ_COUNT("in-sequence", bound_job, in_sequence, "N",
             "beside the sum, show what the model takes by sequences of at most N layers, which 'benanza bricks "
             "--replay' measured"),
    BZ_VALUE("time-limit", bound_job, time_limit, "S", "measure each variant for at most S seconds (0.1)",
             .use = bz_option_seconds),
    PLANNING_WAIT_OPTION(bound_job, wait),
    PLANNING_REMEASURE_OPTION(bound_job, remeasure),
    PLANNING_OPTIONS(bound_job, p),
    {0},
};

static bool can_ask(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static bool ask(int n)
{
    int c;
    if (!can_ask())
        return false;
    bz_progress_hold(true);
    fprintf(stderr, "The database lacks %d problems. Measure them now? [y/N] ", n);
    c = getchar();
    bz_progress_hold(false);
    return c == 'y' || c == 'Y';
}

/* Another system's records can only be looked up; this machine's can be made. */
static int fill(bound_job *b, bz_error *err)
{
    if (bz_plan_skip(b->analyses.plan, b->db, b->system, &b->setting, &b->again_records, err))
        return -1;
    int n = bz_plan_wanted(b->analyses.plan, NULL);
    b->problems = bz_plan_measurable(b->analyses.plan);
    b->known = b->problems - n;
    if (!n)
        return 0;
    if (b->p.system || (b->no_run && !ask(n))) {
        planning_lacks(&bz_command_bound, n, "", b->again, b->p.system != NULL);
        b->looked = true;
        return 0;
    }
    bz_bench run = {
        .db = b->db, .setting = b->setting, .time_limit = b->time_limit, .wait = b->wait, .again = &b->again_records};
    run.system = b->system;
    int rc = bz_bench_plan(b->analyses.plan, &run, !planning_device(&b->p), err);
    bz_end_by(run.stopped_by);
    b->system = run.system;
    b->benchmarks = run.records;
    return rc;
}

static int analyze(bound_job *b, bz_buf *out, bz_error *err)
{
    bz_findings *found = &b->analyses.found;
    if (analyses_make(&b->job, &b->analyses, b->db, &b->system, 1, BZ_PARTS, err))
        return -1;
    for (int i = 0; i < found->n; i++) {
        bz_bound *bound = &found->analysis[i].bound;
        bound->benchmarks = b->benchmarks;
        bound->problems = b->problems;
        bound->known = b->known;
        bound->measures = b->looked ? b->again : NULL;
    }
    return analyses_print(&b->job, &b->analyses, out, err);
}

static int find_system(bound_job *b, bz_error *err)
{
    const char *name = b->p.system;
    if (!name)
        return planning_system(&b->job, &b->p, b->no_run && !can_ask(), &b->db, &b->system, err);
    return planning_look(&b->job, name, &b->db, err) || bz_bench_known(b->db, name, &b->system, err) ? -1 : 0;
}

/* A system that is named says which backends are meant; this machine is asked when the options are known to be right. */
static int plan_models(bound_job *b, bz_error *err)
{
    if (b->p.system && find_system(b, err))
        return -1;
    int named = b->p.backends.n;
    if (planning_backends(&b->job, &b->p, b->system, err))
        return -1;
    if (b->p.backends.n > named)
        b->again = bz_arena_printf(&b->job.arena, "%s" PLANNING_GPU, b->again);
    b->analyses.request.in_sequence = (int)(b->in_sequence < 64 ? b->in_sequence : 64);
    return analyses_ask(&b->job, &b->analyses, &b->p, &b->models, err) || (!b->p.system && find_system(b, err)) ? -1
                                                                                                                : 0;
}

/* What a recording's calls did. It is measured where this runs, wherever they ran. */
static int rebuild(bound_job *b, int number, bz_rebuilt *out, bz_error *err)
{
    const bz_trace *t = b->analyses.trace[number];
    const char *name = b->analyses.profiles.item[number], *gpu = bz_trace_told(t, "gpu");
    bool operators = t->event[BZ_EVENT_OP].n > 0;
    bz_rebuild(t, &b->job.arena, out);
    if (!out->layers)
        return bz_fail(err, BZ_INCOMPLETE, "%s: its %s do not tell their sizes%s: name the model that made them", name,
                       operators ? "operators" : "calls",
                       operators ? " (PyTorch's profiler tells them with record_shapes=True)" : "");
    if (t->event[BZ_EVENT_KERNEL].n && !b->p.system && !planning_device(&b->p))
        bz_warn(&bz_command_bound, "%s ran on %s, and this measures its calls on this machine's processor", name,
                gpu ? gpu : "a GPU");
    bz_job_cut(&b->job, t);
    return 0;
}

/* Recordings take the place of models. */
static int take_recordings(bound_job *b, bz_error *err)
{
    analyses *a = &b->analyses;
    bz_arena *arena = &b->job.arena;
    if (bz_job_reads_no(&b->job, "a recording", MODEL_READS TRAINING_READS "in-sequence", err) ||
        analyses_read(&b->job, a, err))
        return -1;
    int n = a->profiles.n;
    bz_rebuilt *rebuilt = BZ_NEW(arena, bz_rebuilt, n);
    b->models = (bz_models){.name = BZ_NEW(arena, const char *, n), .layers = BZ_NEW(arena, bz_layers *, n), .n = n};
    for (int i = 0; i < n; i++) {
        if (rebuild(b, i, &rebuilt[i], err))
            return -1;
        b->models.name[i] = a->request.profile[i].name;
        b->models.layers[i] = rebuilt[i].layers;
    }
    a->request.rebuilt = rebuilt;
    b->p.threads = analyses_threads(a, b->p.threads);
    return 0;
}

static int read_limit(bound_job *b, bz_error *err)
{
    double v = b->max ? bz_option_number(b->max) : INFINITY;
    if (b->max && !(v > 0 && isfinite(v)))
        return bz_fail(err, BZ_USAGE, "--max takes milliseconds, a number above 0, not '%s'", b->max);
    b->limit = v / 1e3;
    return 0;
}

/* What the exit status is. A total that lacks layers is neither above the limit nor within it. */
static int judge(const void *job)
{
    const bound_job *b = job;
    int status = BZ_OK;
    for (int i = 0; i < b->analyses.found.n && !b->analyses.found.incomplete; i++) {
        const bz_bound *bound = &b->analyses.found.analysis[i].bound;
        const bz_goal goal = bz_bound_goal(bound);
        bz_unit_text is, most;
        if (!(goal.sequential > b->limit))
            continue;
        fprintf(stderr, "benanza bound: %s: the bound %s, %s, is above %s\n", bound->model, goal.name,
                bz_units_time(is, goal.sequential), bz_units_time(most, b->limit));
        status = BZ_WORSE;
    }
    return b->analyses.found.incomplete ? BZ_INCOMPLETE : status;
}

static int bound_models(void *job, bz_buf *out, bz_error *err)
{
    static const char *const LOOKING[] = {"no-run", "system", NULL};
    bound_job *b = job;
    const bz_list *paths = &b->job.arguments;
    b->again = bz_arena_printf(&b->job.arena, "benanza bound%s", bz_job_again(&b->job, LOOKING));
    if ((b->p.system && bz_job_reads_no(&b->job, "a system that is named", "device time-limit wait", err)) ||
        (b->no_run && !can_ask() && bz_job_reads_no(&b->job, "--no-run", "time-limit wait", err)))
        return -1;
    if (!paths->n == !b->analyses.profiles.n)
        return bz_fail(err, BZ_USAGE,
                       paths->n ? "name models or recordings: 'benanza analyze' holds one against the other"
                                : "name a model: benanza bound MODEL...; or a recording: benanza bound --profile FILE");
    if (!paths->n && take_recordings(b, err))
        return -1;
    if (b->in_sequence == 1)
        return bz_fail(err, BZ_USAGE, "--in-sequence takes a number of layers from 2 on: one layer is no sequence");
    if (b->remeasure && (b->no_run || b->p.system))
        return bz_fail(err, BZ_USAGE, "--remeasure measures on this machine: it does not go with --no-run or --system");
    if (planning_setting(&b->p, &b->setting, err) || read_limit(b, err) ||
        bz_remeasure_parse(b->remeasure, &b->again_records, err) ||
        (paths->n && models_load(&b->job, paths, &b->p.models, &b->models, err)) || plan_models(b, err))
        return -1;
    if (fill(b, err) || analyze(b, out, err))
        return -1;
    bz_candidates_remember(paths->item, paths->n, b->job.db);
    return 0;
}

const bz_command bz_command_bound = BZ_COMMAND(
    "bound", "[MODEL...] [OPTIONS]", "say how fast a model could run here: measure its layers, then add them up",
    OPTIONS, bound_job, bound_models, .judge = judge);
