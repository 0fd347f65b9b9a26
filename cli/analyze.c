/* benanza analyze: what the database knows of models, held against profiles. Runs nothing. */
#include "cli/analysis.h"
#include "cli/candidates.h"
#include "cli/db.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 32 }; /* of a sweep, along each axis */

/* A batch, or a profile without a model: models loaded with it, and what is asked of the database for them. */
typedef struct point {
    loaded_models models;
    bz_plan *plan;
} point;

typedef struct analyze_job {
    planning p;
    analysis_output output;
    const char *batches, *systems, *iterations;
    bz_list profiles;
    int64_t batch[POINTS];
    int n_points, n_systems;
    int of_point[POINTS]; /* without a model: the profile that it is of */
    point point[POINTS];
    const bz_system *system[POINTS];
    bz_trace **trace;
    bz_perfdb *db;
    analyses analyses;
    bz_rebuilt *rebuilt; /* [profiles], without a model */
    bz_list candidates;
    loaded_models loaded; /* the candidates */
    bz_buf again;         /* the arguments that 'bound' takes, too */
} analyze_job;

/* The next of "a,b,c"; false behind the last. */
static bool next_word(const char **list, char out[256])
{
    size_t n = strcspn(*list, ",");
    if (!n || n > 255)
        return false;
    memcpy(out, *list, n);
    out[n] = 0;
    *list += n + ((*list)[n] == ',');
    return true;
}

static int read_batches(analyze_job *a, bz_error *err)
{
    char word[256], *end;
    const char *list = a->batches ? a->batches : "0";
    while (next_word(&list, word)) {
        errno = 0;
        long long v = strtoll(word, &end, 10);
        if (errno || *end || v < (a->batches ? 1 : 0) || a->n_points == POINTS)
            return bz_fail(err, BZ_USAGE, "--batch takes up to %d numbers from 1 on, '1,2,4', not '%s'", POINTS,
                           a->batches);
        a->batch[a->n_points++] = v;
    }
    return *list || !a->n_points ? bz_fail(err, BZ_USAGE, "--batch takes numbers, '1,2,4', not '%s'", a->batches) : 0;
}

static int find_systems(analyze_job *a, bz_error *err)
{
    char word[256];
    const char *list = a->systems ? a->systems : "";
    if (!a->systems)
        return bz_bench_system(a->db, NULL, planning_device(&a->p), &a->system[a->n_systems++], err);
    while (next_word(&list, word)) {
        if (a->n_systems == POINTS)
            return bz_fail(err, BZ_USAGE, "--system takes at most %d systems", POINTS);
        if (bz_perfdb_known(a->db, word, &a->system[a->n_systems++], err))
            return -1;
    }
    return *list || !a->n_systems ? bz_fail(err, BZ_USAGE, "--system takes names, 'a,b', not '%s'", a->systems) : 0;
}

/* "run.sqlite,run.log": a timeline and the logs of the same program are one profile. */
static int read_profiles(analyze_job *a, bz_error *err)
{
    a->trace = bz_alloc((size_t)a->profiles.n, sizeof(bz_trace *));
    memset(a->trace, 0, (size_t)a->profiles.n * sizeof(bz_trace *));
    for (int i = 0; i < a->profiles.n; i++) {
        bz_trace *t = a->trace[i] = bz_trace_new();
        const char *list = a->profiles.item[i];
        char word[256];
        while (next_word(&list, word))
            if (bz_profile_read(t, word, err))
                return -1;
        if (*list || !t->n_sources)
            return bz_fail(err, BZ_USAGE, "--profile takes a file, or several of one run, 'a.sqlite,a.log', not '%s'",
                           a->profiles.item[i]);
        if (bz_trace_finish(t, &(bz_finish_options){.iterations = a->iterations}, err))
            return -1;
    }
    return 0;
}

/* "run.sqlite + run.log", without folders. */
static const char *profile_name(const char *list, bz_arena *arena)
{
    char word[256];
    const char *name = "";
    while (next_word(&list, word)) {
        const char *slash = strrchr(word, '/');
        name = bz_arena_printf(arena, "%s%s%s", name, *name ? " + " : "", slash ? slash + 1 : word);
    }
    return name;
}

/* For predictions of what programs on a processor gain: in the model's type, and in the one that its matrix units have, each as
 * the profiles ask for them; and in the model's as training does, whoever asks. */
static int find_picks(analyze_job *a, bz_analysis *item, const bz_system *system, bz_error *err)
{
    static const bz_dtype TYPES[] = {BZ_UNDEFINED, BZ_BF16};
    bz_arena *arena = &a->analyses.arena;
    bz_picks *picks = BZ_NEW(arena, bz_picks, 4);
    bool asked[2] = {false, false};
    for (int k = 0; k < item->n_ladders; k++)
        asked[item->ladder[k].regret->training] = true;
    for (int i = 0; i < 4; i++)
        if ((asked[i / 2] || (i / 2 && !TYPES[i % 2])) &&
            bz_picks_make(&item->bound, TYPES[i % 2], i / 2, a->db, system, arena, &picks[item->n_picks++], err))
            return -1;
    item->picks = picks;
    return 0;
}

/* As many profiles as models, and more than one: each model has its own. Else all models are held against all. */
static int hold_against_profiles(analyze_job *a, int models, bz_error *err)
{
    bool own = models > 1 && a->profiles.n == models;
    bz_arena *arena = &a->analyses.arena;
    for (int i = 0; i < a->analyses.n; i++) {
        bz_analysis *item = &a->analyses.item[i];
        const bz_system *system;
        /* layers of a profile are held against that one; the models of a batch and system follow one another */
        int first = item->bound.rebuilt ? a->of_point[i / a->n_systems] : own ? i % models : 0;
        item->n_ladders = item->bound.rebuilt || own ? 1 : a->profiles.n;
        item->ladder = BZ_NEW(arena, bz_ladder, item->n_ladders);
        if (bz_perfdb_system(a->db, item->bound.system, &system, err))
            return -1;
        for (int k = 0; k < item->n_ladders; k++) {
            const bz_trace *trace = a->trace[first + k];
            bz_regret *regret = BZ_NEW(arena, bz_regret, 1);
            bz_ladder_make(&item->bound, trace, profile_name(a->profiles.item[first + k], arena), arena,
                           &item->ladder[k]);
            if (bz_regret_make(trace, a->db, system, &item->bound.setting, arena, regret, err))
                return -1;
            item->ladder[k].regret = regret;
            bz_alignment *alignment = BZ_NEW(arena, bz_alignment, 1);
            bz_align_make(&item->bound, trace, arena, alignment);
            item->ladder[k].alignment = alignment;
            item->ladder[k].timeline = a->output.html ? bz_timeline_make(trace, arena) : NULL;
        }
        if (!item->bound.rebuilt && !planning_device(&a->p) && find_picks(a, item, system, err))
            return -1;
        analysis_answer(item, a->trace + first, arena);
    }
    return 0;
}

/* A miss of the analyses from `first` on is named with the command that fills it. `batch` 0: none was asked for. `rebuilt`:
 * the profile whose calls are the layers, or NULL. */
static void name_misses(analyze_job *a, int first, const bz_system *system, int64_t batch, const char *rebuilt)
{
    bz_buf whom = {0}, measures = {0};
    bool gpu = planning_is_gpu(system) && !planning_device(&a->p);
    int n = a->analyses.lacking;
    bz_buf_puts(&measures, rebuilt ? "benanza bound MODEL" : "benanza bound");
    if (batch)
        bz_buf_printf(&measures, " --batch %lld", (long long)batch);
    bz_buf_printf(&measures, "%s%s", gpu ? PLANNING_GPU : "", bz_buf_text(&a->again));
    if (a->systems)
        bz_buf_printf(&whom, " for %s", system->name);
    if (rebuilt)
        bz_buf_printf(&whom, " of %s. No command measures calls by themselves, but with the model that made them",
                      rebuilt);
    for (int i = first; i < a->analyses.n && n; i++)
        a->analyses.item[i].bound.measures = bz_arena_str(&a->analyses.arena, bz_buf_text(&measures));
    if (n)
        planning_lacks(&bz_command_analyze, n, bz_buf_text(&whom), bz_buf_text(&measures), a->systems != NULL);
    else if (a->analyses.unoffered)
        bz_warn(&bz_command_analyze,
                "%d layer%s without a record, and no benchmark of the backends and layouts named measures %s: others "
                "may, without --backend and --layout",
                a->analyses.unoffered, a->analyses.unoffered == 1 ? " is" : "s are",
                a->analyses.unoffered == 1 ? "it" : "them");
    bz_buf_free(&whom);
    bz_buf_free(&measures);
}

static int price(analyze_job *a, const bz_list *paths, bz_error *err)
{
    for (int i = 0; i < a->n_points; i++) {
        point *at = &a->point[i];
        a->p.models.batch = a->batch[i];
        if (models_load(&bz_command_analyze, paths, &a->p.models, &at->models, err) ||
            planning_plan(&a->p, paths, &at->models, &at->plan, err))
            return -1;
        for (int s = 0; s < a->n_systems; s++) {
            int first = a->analyses.n;
            if (analyses_add(&a->analyses, paths, &at->models, at->plan, &a->p, a->db, a->system[s], err))
                return -1;
            name_misses(a, first, a->system[s], a->batch[i], NULL);
        }
    }
    return 0;
}

/* Without a model: the layers of each profile are those that its library calls did. A profile whose calls have no
 * parameters has none. */
static int price_rebuilt(analyze_job *a, bz_error *err)
{
    bz_arena *arena = &a->analyses.arena;
    for (int i = 0; i < a->profiles.n; i++) {
        const bz_rebuilt *rebuilt = &a->rebuilt[i];
        bz_layers *layers = (bz_layers *)&rebuilt->layers;
        const char *name = profile_name(a->profiles.item[i], arena);
        loaded_models models = {.layers = &layers, .n = 1};
        const bz_list names = {.item = &name, .n = 1};
        if (!layers->n)
            continue;
        point *at = &a->point[a->n_points];
        a->analyses.recording[i].rebuilt = true;
        a->of_point[a->n_points++] = i;
        if (planning_plan(&a->p, &names, &(loaded_models){0}, &at->plan, err))
            return -1;
        bz_plan_add_problems(at->plan, layers, rebuilt->problem, name);
        a->analyses.rebuilt = rebuilt;
        for (int s = 0; s < a->n_systems; s++) {
            int first = a->analyses.n;
            if (analyses_add(&a->analyses, &names, &models, at->plan, &a->p, a->db, a->system[s], err))
                return -1;
            name_misses(a, first, a->system[s], 0, name);
        }
    }
    return 0;
}

/* " --system v100@cudnn9, or --system v100@cudnn7": systems of the database that are this GPU (NULL: any). */
static void put_fitting(const analyze_job *a, const char *gpu, bz_buf *out)
{
    bz_error none;
    bz_arena arena = {0};
    bz_perfdb *db = NULL;
    const bz_system **list;
    size_t n = 0;
    if (bz_db_open(&bz_command_analyze, a->p.db, true, &db, &none) || bz_perfdb_systems(db, &arena, &list, &n, &none))
        n = 0;
    for (size_t i = 0; i < n; i++) {
        bz_system_facts facts;
        bz_system_facts_read(list[i]->details, &arena, &facts);
        if (facts.gpu && (!gpu || !*facts.name || !strncmp(facts.name, gpu, strlen(gpu))))
            bz_buf_printf(out, "%s --system %s", out->len ? ", or" : "", list[i]->name);
    }
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

/* Records of a processor say nothing about calls that ran on a GPU: those are priced where a system is named. */
static void leave_unpriced(analyze_job *a, int i)
{
    const char *gpu = bz_trace_told(a->trace[i], "gpu"), *name = a->analyses.recording[i].profile;
    bz_buf fitting = {0};
    put_fitting(a, gpu, &fitting);
    if (fitting.len)
        bz_warn(&bz_command_analyze, "%s ran on %s: records of this machine's processor do not price its calls.%s does",
                name, gpu ? gpu : "a GPU", bz_buf_text(&fitting));
    else
        bz_warn(&bz_command_analyze,
                "%s ran on %s: records of this machine's processor do not price its calls, and the database knows no "
                "system of that GPU. On a machine that has it, 'benanza bound MODEL" PLANNING_GPU "' measures",
                name, gpu ? gpu : "a GPU");
    bz_buf_free(&fitting);
    a->rebuilt[i].layers.n = 0;
}

/* What the profiles tell by themselves. Returns how many of them have library calls that layers can be rebuilt from. */
static int tell_recordings(analyze_job *a)
{
    analyses *all = &a->analyses;
    const bz_candidate *candidate;
    int n = candidates_load(&a->candidates, a->p.db, &a->loaded, &all->arena, &candidate), rebuilt = 0;
    all->recording = BZ_NEW(&all->arena, bz_recording, a->profiles.n);
    a->rebuilt = BZ_NEW(&all->arena, bz_rebuilt, a->profiles.n);
    for (int i = 0; i < a->profiles.n; i++) {
        const bz_recording_input in = {.trace = a->trace[i],
                                       .profile = profile_name(a->profiles.item[i], &all->arena),
                                       .candidate = candidate,
                                       .n_candidates = n,
                                       .timeline = a->output.html != NULL};
        bz_recording_make(&in, &all->arena, &all->recording[all->n_recordings++]);
        bz_rebuild(a->trace[i], &all->arena, &a->rebuilt[i]);
        if (a->rebuilt[i].layers.n && !a->systems && !planning_device(&a->p) &&
            all->recording[i].analysis->ladder->on_device)
            leave_unpriced(a, i);
        rebuilt += a->rebuilt[i].layers.n > 0;
    }
    return rebuilt;
}

/* A profile tells a lot without records: that none are at hand is then no error. */
static int analyze_profiles(analyze_job *a, bz_error *err)
{
    if (a->profiles.n > POINTS)
        return bz_fail(err, BZ_USAGE, "without a model --profile takes at most %d", POINTS);
    bool bounds = tell_recordings(a) > 0;
    if (!bounds && !a->systems)
        return 0;
    if (bz_db_open(&bz_command_analyze, a->p.db, a->systems != NULL, &a->db, err) || find_systems(a, err)) {
        if (err->code == BZ_USAGE)
            return -1;
        bz_warn(&bz_command_analyze, "%s; what the recording tells by itself needs none", err->text);
        return 0;
    }
    return price_rebuilt(a, err) || hold_against_profiles(a, 0, err) ? -1 : 0;
}

static int analyze_models(analyze_job *a, const bz_list *paths, bz_error *err)
{
    return bz_db_open(&bz_command_analyze, a->p.db, a->systems != NULL, &a->db, err) || find_systems(a, err) ||
                   price(a, paths, err) || hold_against_profiles(a, paths->n, err)
               ? -1
               : 0;
}

static int analyze(analyze_job *a, const bz_list *paths, bz_buf *out, bz_error *err)
{
    if (!paths->n && (!a->profiles.n || a->batches))
        return bz_fail(err, BZ_USAGE, "name a model: benanza analyze MODEL... --system NAME; or a profile of one");
    if ((paths->n && read_batches(a, err)) || read_profiles(a, err) ||
        (paths->n ? analyze_models(a, paths, err) : analyze_profiles(a, err)))
        return -1;
    if (paths->n)
        candidates_remember(paths, a->p.db);
    return analyses_print(&a->analyses, &a->output, out, err);
}

static int run(int argc, char **argv)
{
    analyze_job a = {0};
    bz_list arguments = {0};
    bz_error err = {0};
    bz_buf out = {0};
    const bz_option options[] = {
        {"system", BZ_OPTION_TEXT, &a.systems, "NAME,…", "the systems whose records count (this machine's)"},
        {"batch", BZ_OPTION_TEXT, &a.batches, "N,…", "batch sizes, for example 1,4,16"},
        {"profile", BZ_OPTION_LIST, &a.profiles, "FILE,…",
         "compare the bound with this recording; a timeline and the logs of the same run have commas between; may be "
         "repeated"},
        {"iterations", BZ_OPTION_TEXT, &a.iterations, "NAME", "ranges of this name are the iterations of the profile"},
        {"candidate", BZ_OPTION_LIST, &a.candidates, "FILE",
         "without a model: a model that the profile may be of, besides those known; may be repeated"},
        ANALYSIS_OPTIONS(a.output),
        PLANNING_SWEEP_OPTIONS(a.p),
        {0},
    };
    static const char *const OWN[] = {"system", "batch",  "profile", "iterations", "candidate", "json",
                                      "csv",    "models", "html",    "dot",        "svg",       NULL};
    bz_options_again(options, argc, argv, OWN, &a.again);
    int parsed = bz_options_parse(&bz_command_analyze, options, argc, argv, &arguments, &err), status = BZ_OK;
    if (parsed < 0 || (!parsed && (analyze(&a, &arguments, &out, &err) || bz_output(NULL, &out, &err))))
        status = bz_report(&bz_command_analyze, &err);
    else if (a.analyses.incomplete)
        status = BZ_INCOMPLETE;
    analyses_free(&a.analyses);
    bz_perfdb_close(a.db);
    for (int i = 0; i < a.n_points; i++) {
        bz_plan_free(a.point[i].plan);
        models_free(&a.point[i].models);
    }
    for (int i = 0; a.trace && i < a.profiles.n; i++)
        bz_trace_free(a.trace[i]);
    free(a.trace);
    bz_buf_free(&out);
    bz_buf_free(&a.again);
    models_free(&a.loaded);
    bz_list_free(&a.candidates);
    bz_list_free(&a.profiles);
    bz_list_free(&arguments);
    planning_free(&a.p);
    return status;
}

const bz_command bz_command_analyze = {
    "analyze", "[MODEL...] [OPTIONS]",
    "say how fast a model could run on a system, and what keeps a recorded program from it", run};
