/* benanza replay: the cheapest plan of a model as one program, run here and held against the bound. */
#include "replay/replay.h"
#include "bench/bench.h"
#include "cli/analysis.h"
#include "cli/db.h"

#include <unistd.h>

typedef struct replay_job {
    bz_job job;
    planning p;
    const char *plan_path, *from, *folder, *profile, *time_limit, *inputs, *outputs;
    bool no_run, check, graph;
    int64_t streams, steps;
    const char *rate_text;
    double rate;
    const char *device; /* the backend on whose device it runs; NULL: the processor */
    bz_setting setting;
    bz_dtype dtype;
    bz_models models;
    bz_perfdb *db;
    const bz_system *system;
    analyses analyses;
    bz_replay_plan *replay;
    bz_replay_result result;
    bool incomplete;
} replay_job;

static const bz_option OPTIONS[] = {
    BZ_JSON_OPTION,
    BZ_VALUE("plan", replay_job, plan_path, "FILE", "write the plan to FILE: which variant runs each layer"),
    BZ_VALUE("from", replay_job, from, "FILE", "follow the plan in FILE instead of making one"),
    BZ_VALUE("folder", replay_job, folder, "DIR", "write the program into DIR, and leave it there"),
    BZ_FLAG("no-run", replay_job, no_run, "run nothing: make only the plan, and with --folder the program"),
    PLANNING_DEVICE_OPTION,
    BZ_VALUE("o|output", replay_job, profile, "FILE", "store the run in FILE, as a profile"),
    BZ_FLAG("check", replay_job, check, "compare the result of each call with its definition in double precision"),
    BZ_VALUE("inputs", replay_job, inputs, "FILE",
             "read the bytes of all inputs from FILE, one after the other (random numbers, always the same)"),
    BZ_VALUE("outputs", replay_job, outputs, "FILE", "write the bytes of all outputs to FILE"),
    BZ_COUNT("steps", replay_job, steps, "N", "run N iterations before measuring, and print the loss of each (10)",
             .with = "train"),
    BZ_VALUE("rate", replay_job, rate_text, "R", "learning rate (0.01)", .with = "train"),
    BZ_VALUE("time-limit", replay_job, time_limit, "S", "measure for S seconds (5); 0: run once",
             .use = bz_option_seconds_or_none),
    BZ_COUNT("streams", replay_job, streams, "K", "on a GPU: run layers on K streams (1)"),
    BZ_FLAG("graph", replay_job, graph, "on a GPU: capture the run once as a graph, then launch the graph"),
    PLANNING_OPTIONS(replay_job, p),
    {0},
};

static void end_replay(void *job)
{
    replay_job *r = job;
    bz_replay_free(r->replay);
    bz_arena_free(&r->result.arena);
}

static int make_plan(replay_job *r, const bz_list *paths, bz_error *err)
{
    bz_replay_input in = {
        .model = bz_file_name(paths->item[0]),
        .layers = r->models.layers[0],
        .plan = r->analyses.plan,
        .fuse = r->p.fuse || r->p.patterns,
        .dtype = r->dtype,
        .db = r->db,
        .system = r->system,
        .prices = r->analyses.found.analysis->prices,
        .setting = r->setting,
        .device = r->device,
        .peaks = bz_replay_peaks(r->db, r->system, &r->setting, &r->job.arena),
        .rate = r->rate,
        .gradients = r->outputs != NULL,
        .part = true,
    };
    if (bz_replay_make(&in, &r->replay, err))
        return -1;
    bz_arena_keep(&r->job.arena, r, end_replay);
    if (r->from && bz_replay_follow_file(r->replay, r->from, err))
        return -1;
    bz_replay_schedule(r->replay, r->streams ? (int)r->streams : 1);
    if (r->replay->modelled)
        bz_warn(
            &bz_command_replay,
            "%d calls have no record here: the library chooses for them; 'benanza bound%s%s%s%s%s%s %s' measures them",
            r->replay->modelled, r->p.models.train ? " --train=" : "",
            r->p.models.train ? *r->p.models.train ? r->p.models.train : "sgd" : "", in.fuse ? " --fuse" : "",
            r->p.dtype ? " --dtype " : "", r->p.dtype ? r->p.dtype : "", r->device ? PLANNING_GPU : "", paths->item[0]);
    if (r->replay->rescaled && r->outputs)
        bz_warn(&bz_command_replay,
                "%d quantized layers scale by powers of two in place of the file's scales, which takes as long: the "
                "outputs are not the model's",
                r->replay->rescaled);
    if (r->replay->n_left)
        bz_warn(&bz_command_replay, "%d of %d layers %s left out, and what they would read is given as outputs: %s",
                r->replay->n_left, r->replay->layers->n, r->replay->n_left == 1 ? "is" : "are", r->replay->left);
    if (r->replay->away)
        bz_warn(&bz_command_replay, "the weights' file '%s' is not there: numbers are made up in their place",
                r->replay->away);
    if (!r->plan_path)
        return 0;
    bz_buf text = {0};
    bz_replay_json(r->replay, &text);
    return bz_output_end(r->plan_path, &text, err);
}

static int report(replay_job *r, bz_buf *out, bz_error *err)
{
    bz_replay_report report = {.plan = r->replay, .result = r->no_run ? NULL : &r->result};
    if (r->analyses.found.n)
        report.bound = &r->analyses.found.analysis->bound;
    if (!r->no_run && r->system && bz_replay_cold(r->replay, r->db, r->system, &report.cold, err))
        return -1;
    (r->job.json ? bz_replay_print_json : bz_replay_print)(&report, out);
    if (!r->profile || r->no_run)
        return 0;
    bz_trace *trace = bz_replay_trace(&report, err);
    int rc = trace ? bz_trace_save(trace, r->profile, err) : -1;
    bz_trace_free(trace);
    return rc;
}

/* A GPU is meant where one of its backends is named, or a system that is one. The program has all calls on one device. */
static int find_device(replay_job *r, bz_error *err)
{
    r->device = planning_device(&r->p);
    for (int i = 0; i < r->p.backends.n && r->device; i++) {
        if (!bz_backend_is_on(r->p.backends.item[i], true))
            return bz_fail(err, BZ_USAGE,
                           "--backend %s runs on the processor, %s on a GPU: a replay runs on one of them",
                           r->p.backends.item[i], r->device);
    }
    if (bz_bench_system(r->db, r->p.system, r->device, &r->system, err) ||
        planning_backends(&r->job, &r->p, r->system, err))
        return -1;
    r->device = planning_device(&r->p);
    if (r->device && r->p.models.train)
        return bz_fail(err, BZ_USAGE, "an iteration of training is replayed on the processor only");
    if (r->streams < 0 || r->streams > BZ_REPLAY_STREAMS)
        return bz_fail(err, BZ_USAGE, "--streams takes 1 to %d", BZ_REPLAY_STREAMS);
    return r->device && !r->no_run ? bz_bench_device(r->device, err) : 0;
}

static int replay_model(void *job, bz_buf *out, bz_error *err)
{
    replay_job *r = job;
    const bz_list *paths = &r->job.arguments;
    if (paths->n != 1)
        return bz_fail(err, BZ_USAGE, "name one model: benanza replay MODEL");
    if (r->no_run && bz_job_reads_no(&r->job, "--no-run",
                                     r->p.models.train ? "output check inputs steps time-limit"
                                                       : "output check inputs outputs time-limit",
                                     err)) /* of training, outputs make the program keep the gradients */
        return -1;
    r->steps = r->steps ? r->steps : 10;
    if (r->rate_text)
        r->rate = bz_option_number(r->rate_text);
    if (!(r->rate > 0 && r->rate < 1e6))
        return bz_fail(err, BZ_USAGE, "--rate takes a number above 0, not '%s'", r->rate_text);
    if (planning_setting(&r->p, &r->setting, err) || bz_plan_dtype(r->p.dtype, &r->dtype, err) ||
        models_load(&r->job, paths, &r->p.models, &r->models, err))
        return -1;
    if (r->models.n != 1)
        return bz_fail(err, BZ_USAGE, "--dim takes one size here: a replay is one program");
    if ((r->p.system ? bz_db_open(&r->job, true, &r->db, err) : bz_db_look(&r->job, &r->db, err)) ||
        find_device(r, err) || analyses_ask(&r->job, &r->analyses, &r->p, &r->models, err) ||
        analyses_make(&r->job, &r->analyses, r->db, &r->system, 1, BZ_PART_BOUND, err) || make_plan(r, paths, err))
        return -1;
    const bz_replay_run run = {.folder = r->folder,
                               .time_limit = r->time_limit,
                               .inputs = r->inputs,
                               .outputs = r->outputs,
                               .steps = r->p.models.train ? r->steps : 0,
                               .check = r->check,
                               .graph = r->graph,
                               .write = r->no_run,
                               .db = r->db};
    if ((!r->no_run || r->folder) && bz_replay_run_here(r->replay, &run, &r->result, err))
        return -1;
    r->job.status = r->result.wrong ? BZ_FAILED : r->replay->n_left ? BZ_INCOMPLETE : BZ_OK;
    return report(r, out, err);
}

const bz_command bz_command_replay =
    BZ_COMMAND("replay", "MODEL [OPTIONS]", "run a model in its fastest known way, and compare that with the bound",
               OPTIONS, replay_job, replay_model, .usual = &(const replay_job){.rate = 0.01});
