/* benanza analyze: what the database knows of models, held against profiles. Runs nothing. */
#include "cli/analysis.h"
#include "cli/db.h"
#include "cli/profile.h"

#include <string.h>

enum { POINTS = 32 }; /* of a sweep, along each axis */

typedef struct analyze_job {
    bz_job job;
    planning p;
    const char *batches, *systems;
    int64_t batch[POINTS];
    int n_points, n_systems;
    bz_models models[POINTS]; /* of each batch */
    const bz_system *system[POINTS];
    bz_perfdb *db;
    analyses analyses;
    bz_list candidates;
    const char *again; /* the arguments that 'bound' takes, too */
} analyze_job;

/* Without any, one point: as the model has it. */
static int read_batches(analyze_job *a, bz_error *err)
{
    if (planning_batches(a->batches, a->batch, POINTS, &a->n_points, err))
        return -1;
    a->n_points += !a->n_points;
    return 0;
}

static int find_systems(analyze_job *a, bz_error *err)
{
    char word[256];
    const char *list = a->systems ? a->systems : "";
    if (!a->systems)
        return bz_bench_system(a->db, NULL, planning_device(&a->p), &a->system[a->n_systems++], err);
    while (planning_word(&list, word)) {
        if (a->n_systems == POINTS)
            return bz_fail(err, BZ_USAGE, "--system takes at most %d systems", POINTS);
        if (bz_bench_known(a->db, word, &a->system[a->n_systems++], err))
            return -1;
    }
    return *list || !a->n_systems ? bz_fail(err, BZ_USAGE, "--system takes names, 'a,b', not '%s'", a->systems) : 0;
}

/* A miss of `n` analyses is named with the command that fills it. `batch` 0: none was asked for. */
static void name_misses(analyze_job *a, bz_analysis *item, int n, const bz_system *system, int64_t batch)
{
    BZ_SCOPED(bz_buf) whom = {0}, measures = {0};
    bool gpu = planning_is_gpu(system) && !planning_device(&a->p);
    bz_buf_puts(&measures, "benanza bound");
    if (batch)
        bz_buf_printf(&measures, " --batch %lld", (long long)batch);
    bz_buf_printf(&measures, "%s%s", gpu ? PLANNING_GPU : "", a->again);
    if (a->systems)
        bz_buf_printf(&whom, " for %s", system->name);
    if (item->bound.rebuilt)
        bz_buf_printf(&whom, " of %s", item->bound.model);
    bool text = !a->job.json && !a->job.csv && !a->analyses.output.html; /* its answer has the command */
    for (int i = 0; i < n && item->lacking; i++)
        item[i].bound.measures = bz_arena_str(&a->job.arena, bz_buf_text(&measures));
    if (item->lacking && !(text && item->bound.rebuilt && !bz_bound_goal(&item->bound).enough))
        planning_lacks(&bz_command_analyze, item->lacking, bz_buf_text(&whom), bz_buf_text(&measures),
                       a->systems != NULL);
    else if (item->unoffered)
        bz_warn(&bz_command_analyze,
                "%d layer%s without a record, and no benchmark of the backends and layouts named measures %s: others "
                "may, without --backend and --layout",
                item->unoffered, item->unoffered == 1 ? " is" : "s are", item->unoffered == 1 ? "it" : "them");
}

/* On all systems; `n` at a time share a plan. */
static int make(analyze_job *a, int n, int64_t batch, bz_error *err)
{
    bz_findings *found = &a->analyses.found;
    int first = found->n;
    if (analyses_make(&a->job, &a->analyses, a->db, a->system, a->n_systems,
                      BZ_PARTS | (a->analyses.output.html ? BZ_PART_TIMELINE : 0), err))
        return -1;
    for (int i = first; i < found->n; i += n)
        name_misses(a, &found->analysis[i], n, a->system[(i - first) / n % a->n_systems], batch);
    return 0;
}

/* One model, or one for each recording: its work tells which of what repeats is an iteration, where nobody named them. */
static void refit(analyze_job *a, const bz_models *m)
{
    for (int i = 0; i < a->analyses.profiles.n && !a->analyses.iterations; i++)
        if ((m->n == 1 || m->n == a->analyses.profiles.n) &&
            bz_recording_refit(a->analyses.trace[i], m->layers[m->n == 1 ? 0 : i]))
            bz_warn(&bz_command_analyze, "%s",
                    bz_string(a->analyses.trace[i],
                              a->analyses.trace[i]->coverage[a->analyses.trace[i]->n_coverage - 1].text));
    for (int i = 0; i < a->analyses.profiles.n; i++)
        bz_trace_leave_disturbed(a->analyses.trace[i]);
}

static int analyze_models(analyze_job *a, const bz_list *paths, bz_error *err)
{
    if (planning_look(&a->job, a->systems, &a->db, err) || find_systems(a, err))
        return -1;
    for (int i = 0; i < a->n_points; i++) {
        a->p.models.batch = a->batch[i];
        if (models_load(&a->job, paths, &a->p.models, &a->models[i], err))
            return -1;
        refit(a, &a->models[i]);
        if (analyses_ask(&a->job, &a->analyses, &a->p, &a->models[i], err) || make(a, a->models[i].n, a->batch[i], err))
            return -1;
    }
    bz_candidates_remember(paths->item, paths->n, a->job.db);
    return 0;
}

/* " --system v100@cudnn9, or --system v100@cudnn7": systems of the database that are this GPU (NULL: any). */
static void put_fitting(const analyze_job *a, const char *gpu, bz_buf *out)
{
    bz_error none;
    BZ_SCOPED(bz_arena) arena = {0};
    bz_perfdb *db = NULL;
    const bz_system **list;
    size_t n = 0;
    bz_job look = {.command = a->job.command, .db = a->job.db};
    if (bz_db_open(&look, true, &db, &none) || bz_perfdb_systems(db, &arena, &list, &n, &none))
        n = 0;
    for (size_t i = 0; i < n; i++) {
        const bz_system_facts *facts = bz_system_facts_read(list[i]->details, &arena);
        if (facts->gpu && (!gpu || !*facts->name || !strncmp(facts->name, gpu, strlen(gpu))))
            bz_buf_printf(out, "%s --system %s", out->len ? ", or" : "", list[i]->name);
    }
    bz_arena_free(&look.arena);
}

/* Was it recorded with another runtime than CUDA, as on AMD's GPUs? Nothing that comes along measures those. */
static bool without_cuda(const bz_trace *t)
{
    const bz_events *api = &t->event[BZ_EVENT_API];
    for (size_t i = 0; i < api->n; i++)
        if (bz_name_matches("^cu", bz_string(t, api->name[i])))
            return false;
    return api->n > 0;
}

/* Records of a processor say nothing about calls that ran on a GPU: those are priced where a system is named. */
static void leave_unpriced(analyze_job *a, int i)
{
    const char *gpu = bz_trace_told(a->analyses.trace[i], "gpu"), *name = a->analyses.found.recording[i].profile;
    BZ_SCOPED(bz_buf) fitting = {0};
    put_fitting(a, gpu, &fitting);
    if (fitting.len)
        bz_warn(&bz_command_analyze, "%s ran on %s: records of this machine's processor do not price its calls.%s does",
                name, gpu ? gpu : "a GPU", bz_buf_text(&fitting));
    else
        bz_warn(&bz_command_analyze,
                "%s ran on %s: records of this machine's processor do not price its calls, and the database knows no "
                "system of that GPU. %s",
                name, gpu ? gpu : "a GPU",
                without_cuda(a->analyses.trace[i])
                    ? "benanza measures GPUs by CUDA alone"
                    : bz_arena_printf(&a->job.arena,
                                      "On a machine that has it this measures them: benanza bound%s" PLANNING_GPU,
                                      a->again));
    a->analyses.found.recording[i].layers = NULL;
}

static void find_candidates(analyze_job *a)
{
    bz_candidates known;
    bz_candidates_load(a->candidates.item, a->candidates.n, a->job.db, &a->job.arena, &known);
    for (int i = 0; i < a->candidates.n; i++)
        if (known.complaint[i])
            bz_warn(&bz_command_analyze, "%s; it is no candidate then", known.complaint[i]);
    a->analyses.request.candidate = known.item;
    a->analyses.request.n_candidates = known.n;
}

/* A profile tells a lot without records: that none are at hand is then no error. */
static int analyze_profiles(analyze_job *a, bz_error *err)
{
    bool bounds = a->systems != NULL;
    if (a->analyses.profiles.n > POINTS)
        return bz_fail(err, BZ_USAGE, "without a model --profile takes at most %d", POINTS);
    find_candidates(a);
    if (make(a, 1, 0, err))
        return -1;
    for (int i = 0; i < a->analyses.profiles.n; i++) {
        const bz_recording *r = &a->analyses.found.recording[i];
        if (r->layers && !a->systems && !planning_device(&a->p) && r->analysis->ladder->on_device)
            leave_unpriced(a, i);
        bounds |= r->layers != NULL;
    }
    if (!bounds)
        return 0;
    if (planning_look(&a->job, a->systems, &a->db, err) || find_systems(a, err)) {
        if (err->code == BZ_USAGE)
            return -1;
        bz_warn(&bz_command_analyze, "%s; what the recording tells by itself needs none", err->text);
        return 0;
    }
    return analyses_ask(&a->job, &a->analyses, &a->p, &(bz_models){0}, err) || make(a, 1, 0, err) ? -1 : 0;
}

static const bz_option OPTIONS[] = {
    BZ_VALUE("system", analyze_job, systems, "NAME,…", "the systems whose records count (this machine's)"),
    BZ_VALUE("batch", analyze_job, batches, "N,…", "batch sizes, for example 1,4,16"),
    BZ_LIST("profile", analyze_job, analyses.profiles, "FILE,…",
            "compare the bound with this recording; a timeline and the logs of the same run have commas between; may "
            "be repeated"),
    ANALYSIS_ITERATIONS_OPTION(analyze_job, analyses),
    BZ_LIST("candidate", analyze_job, candidates, "FILE",
            "without a model: a model that the profile may be of, besides those known; may be repeated"),
    ANALYSIS_OPTIONS(analyze_job, analyses.output),
    PLANNING_SWEEP_OPTIONS(analyze_job, p),
    TRAINING_OPTIONS(analyze_job, p.models),
    {0},
};

static int analyze(void *job, bz_buf *out, bz_error *err)
{
    static const char *const OWN[] = {"profile", "iterations", "system", "batch", "candidate", "json",
                                      "csv",     "models",     "html",   "dot",   "svg",       NULL};
    analyze_job *a = job;
    const bz_list *paths = &a->job.arguments;
    a->again = bz_job_again(&a->job, OWN + (paths->n ? 0 : 2)); /* without models 'bound' reads the recordings */
    if (!paths->n && (!a->analyses.profiles.n || a->batches))
        return bz_fail(err, BZ_USAGE, "name a model: benanza analyze MODEL... --system NAME; or a profile of one");
    if (paths->n ? bz_job_reads_no(&a->job, "models that are named", "candidate", err)
                 : bz_job_reads(
                       &a->job, "a recording without a model",
                       "system profile iterations candidate predict json csv models html dot svg " PLANNING_READS, err))
        return -1;
    if ((paths->n && read_batches(a, err)) || analyses_read(&a->job, &a->analyses, err))
        return -1;
    int64_t threads = analyses_threads(&a->analyses, a->p.threads);
    if (paths->n && !a->p.threads && threads > 1)
        a->again = bz_arena_printf(&a->job.arena, "%s --threads %lld", a->again, (long long)threads);
    a->p.threads = threads;
    if (paths->n ? analyze_models(a, paths, err) : analyze_profiles(a, err))
        return -1;
    a->job.status = a->analyses.found.incomplete ? BZ_INCOMPLETE : BZ_OK;
    for (int i = 0; i < a->analyses.profiles.n; i++)
        if (a->job.json || a->job.csv || a->analyses.output.html || a->analyses.output.dot || a->analyses.output.svg)
            bz_job_cut(&a->job, a->analyses.trace[i]);
        else if (bz_trace_is_truncated(a->analyses.trace[i])) /* the text says it */
            a->job.status = BZ_INCOMPLETE;
    return analyses_print(&a->job, &a->analyses, out, err);
}

const bz_command bz_command_analyze =
    BZ_COMMAND("analyze", "[MODEL...] [OPTIONS]",
               "say how fast a model could run on a system, and what keeps a recorded program from it", OPTIONS,
               analyze_job, analyze);
