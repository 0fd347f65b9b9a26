/* benanza predict: what models take on systems that have no records of them. */
#include "cli/db.h"
#include "cli/planning.h"
#include "cli/profile.h"
#include "report/report.h"
#include "runtime/gpus.h"

#include <string.h>

enum { MOST = 64, BATCHES = 32 };

typedef struct predict_job {
    bz_job job;
    planning p;
    const char *batches, *prices, *train, *trained, *html;
    bz_list to, from, profile;
    bool evaluate, dense;
    bz_setting setting;
    int64_t batch[BATCHES];
    int n_batches;
    bz_perfdb *db;
    bz_samples samples;
} predict_job;

static const bz_option OPTIONS[] = {
    BZ_LIST("to", predict_job, to, "NAME,…",
            "systems to predict for: of the database, GPUs such as t4 or h100, or files that describe one (all GPUs "
            "that are known)"),
    BZ_LIST("from", predict_job, from, "NAME,…",
            "predict by records of these systems alone (all); with --profile the system that it was recorded on"),
    BZ_LIST("profile", predict_job, profile, "FILE",
            "predict the iteration of a recording; may be repeated for several files of one run: kernels change, the "
            "host and its launches stay, gaps are simulated"),
    BZ_VALUE("batch", predict_job, batches, "N,…", "batch sizes, for example 1,4,16"),
    BZ_VALUE("prices", predict_job, prices, "FILE",
             "rank by cost, too: lines such as 't4 0.35', a system and the price of an hour on it"),
    BZ_FLAG("evaluate", predict_job, evaluate,
            "say how far off predictions are: leave out what the database knows, and predict it"),
    BZ_FLAG("dense", predict_job, dense,
            "train the published network of dense layers, too, and hold it against the rest", .with = "evaluate"),
    BZ_VALUE("train", predict_job, train, "FILE", "write what the database teaches to FILE, and end"),
    BZ_VALUE("trained", predict_job, trained, "FILE",
             "predict by what --train wrote into FILE (else by the database where it has two systems, else by what "
             "comes with benanza)"),
    BZ_VALUE("html", predict_job, html, "FILE",
             "also write a page for a browser: systems side by side, or predicted against measured"),
    BZ_JSON_OPTION,
    BZ_CSV_OPTION,
    PLANNING_SWEEP_OPTIONS(predict_job, p),
    {0},
};

/* "t4,h100" as two. */
static void split(const bz_list *list, bz_arena *arena, const char **out, int *n)
{
    *n = 0;
    for (int i = 0; i < list->n; i++)
        for (const char *at = list->item[i]; *at && *n < MOST;) {
            size_t len = strcspn(at, ",");
            if (len)
                out[(*n)++] = bz_arena_strn(arena, at, len);
            at += len + (at[len] == ',');
        }
}

/* All GPUs of the data sheets, where none is named. */
static void target_names(predict_job *job, const char **name, int *n)
{
    bz_gpu row;
    split(&job->to, &job->job.arena, name, n);
    for (int i = 0; !job->to.n && i < MOST && bz_gpu_row(i, &row); i++)
        name[(*n)++] = bz_arena_str(&job->job.arena, row.slug);
}

static int predict_batch(predict_job *job, int64_t batch, const bz_target *t, int n, bz_forecast *out, bz_error *err)
{
    bz_models *m = BZ_NEW(&job->job.arena, bz_models, 1);
    bz_plan *plan = NULL;
    bz_dtype dtype;
    planning p = job->p;
    p.models.batch = batch;
    p.fuse = true;
    if (t->machine.gpu && !p.backends.n)
        planning_backends_of_gpus(&job->job, &p);
    if (bz_plan_dtype(p.dtype, &dtype, err) || models_load(&job->job, &job->job.arguments, &p.models, m, err) ||
        planning_plan(&job->job, &p, m, &plan, err))
        return -1;
    return bz_targets_forecast(t, n, job->db, &job->setting, dtype, m, plan, out, err);
}

static int print(const predict_job *job, const bz_predictions *found, bz_buf *out, bz_error *err)
{
    bz_buf page = {0};
    if (job->html)
        bz_report_predictions_page(found, &page);
    int rc = job->html ? bz_output_end(job->html, &page, err) : 0;
    bz_report_predictions(found, bz_form_of(job->job.json, job->job.csv), out);
    return rc;
}

static int evaluate(predict_job *job, bz_buf *out, bz_error *err)
{
    bz_judgement *round;
    int n;
    const bz_list *paths = &job->job.arguments;
    if (bz_judge_all(&job->samples, paths->item, paths->n, job->batch, job->n_batches, job->dense, &job->job.arena,
                     &round, &n, err))
        return -1;
    return print(job, &(bz_predictions){.round = round, .n = n}, out, err);
}

static int train(const predict_job *job, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    return bz_predictor_check_file(job->train, err) || bz_predictor_train(&job->samples, &text, err) ||
                   bz_output(job->train, &text, err)
               ? -1
               : 0;
}

/* The iteration of a recording on systems that it did not run on. */
static int predict_profiled(predict_job *job, bz_buf *out, bz_error *err)
{
    bz_arena *arena = &job->job.arena;
    bz_trace *t = bz_job_trace(&job->job);
    const char *to[MOST], *from[MOST];
    int origins;
    bz_price_list prices = {0};
    bz_whatif_records records = {.db = job->db, .setting = job->setting};
    bz_whatif_shown *shown = BZ_NEW(arena, bz_whatif_shown, 1);
    bz_whatif_question q = {.system = to, .records = &records};
    split(&job->from, arena, from, &origins);
    if (origins > 1)
        return bz_fail(err, BZ_USAGE, "a recording is of one system: --from names it");
    target_names(job, to, &q.n_systems);
    if ((job->prices && bz_price_list_read(job->prices, arena, &prices, err)) ||
        bz_trace_read(t, job->profile.item, job->profile.n, NULL, err))
        return -1;
    bz_job_cut(&job->job, t);
    if (bz_whatif_origin(t, origins ? from[0] : NULL, &records, arena, err) || bz_whatif_ask(t, &q, arena, shown, err))
        return -1;
    bz_report_moved(&shown->whatif, records.system ? records.system->name : records.device, &prices,
                    bz_form_of(job->job.json, job->job.csv), out);
    return 0;
}

static int predict(predict_job *job, bz_buf *out, bz_error *err)
{
    bz_arena *arena = &job->job.arena;
    bz_target t[MOST];
    const char *to[MOST], *from[MOST];
    int n, names, batches = job->n_batches ? job->n_batches : 1;
    size_t models = (size_t)models_count(&job->job.arguments, &job->p.models);
    bz_price_list prices = {0};
    target_names(job, to, &n);
    split(&job->from, arena, from, &names);
    if ((job->prices && bz_price_list_read(job->prices, arena, &prices, err)) ||
        bz_targets_find(job->db, &job->samples, &job->setting, to, n, arena, t, err) ||
        bz_targets_aim(t, n, job->trained, &job->samples, from, names, arena, err))
        return -1;
    bz_forecast *f = BZ_NEW(arena, bz_forecast, (size_t)batches * (size_t)n * models);
    for (int b = 0; b < batches; b++)
        if (predict_batch(job, job->n_batches ? job->batch[b] : 0, t, n, f + (size_t)(b * n) * models, err))
            return -1;
    const bz_predictions all = {.forecast = f, .prices = &prices, .n = batches * n * (int)models};
    for (int i = 0; i < all.n; i++)
        job->job.status = f[i].enough ? job->job.status : BZ_INCOMPLETE;
    return print(job, &all, out, err);
}

BZ_ENDS(free_samples, bz_samples_free)

/* What each way to call it does not look at. */
static int check_given(const predict_job *job, bz_error *err)
{
    const bz_job *j = &job->job;
    if (job->profile.n)
        return bz_job_reads(j, "the prediction of a recording", "profile to from prices json csv threads cache db",
                            err);
    if (job->train)
        return bz_job_reads(j, "--train", "train threads cache db", err);
    if (job->evaluate)
        return bz_job_reads(j, "--evaluate", "evaluate dense batch html json csv threads cache db", err);
    return 0;
}

/* Records that the options leave out teach nothing. */
static int load_samples(predict_job *job, bz_error *err)
{
    bz_plan_options only;
    bz_arena_keep(&job->job.arena, &job->samples, free_samples);
    return planning_options(&job->job, &job->p, &only, err) ||
                   bz_samples_load(job->db, &job->setting, &only, &job->samples, err)
               ? -1
               : 0;
}

static int start(void *of, bz_buf *out, bz_error *err)
{
    predict_job *job = of;
    const bz_list *paths = &job->job.arguments;
    if (!paths->n && !job->train && !job->profile.n)
        return bz_fail(err, BZ_USAGE, "name a model: benanza predict MODEL... --to t4");
    if (job->profile.n && paths->n)
        return bz_fail(err, BZ_USAGE, "--profile predicts the recording by itself: it takes no model");
    if (check_given(job, err))
        return -1;
    if (planning_setting(&job->p, &job->setting, err) ||
        planning_batches(job->batches, job->batch, BATCHES, &job->n_batches, err) ||
        bz_db_look(&job->job, &job->db, err))
        return -1;
    if (job->profile.n)
        return predict_profiled(job, out, err);
    if (load_samples(job, err))
        return -1;
    return job->train ? train(job, err) : job->evaluate ? evaluate(job, out, err) : predict(job, out, err);
}

const bz_command bz_command_predict =
    BZ_COMMAND("predict", "MODEL... [OPTIONS]", "say how fast a model would run on systems that nobody has measured",
               OPTIONS, predict_job, start);
