/* benanza predict: what models take on systems that have no records of them. */
#include "cli/predict.h"
#include "cli/db.h"
#include "cli/planning.h"
#include "report/report.h"
#include "runtime/gpus.h"
#include "transfer/transfer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, BATCHES = 32 };

typedef struct predict_job {
    bz_job job;
    planning p;
    const char *batches, *prices, *train, *trained, *html;
    bz_list to, from, profile;
    bool evaluate;
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

/* ---- lists in options ------------------------------------------------------------------------ */

static int read_batches(predict_job *job, bz_error *err)
{
    const char *at = job->batches ? job->batches : "";
    while (*at) {
        char *end;
        long v = strtol(at, &end, 10);
        if (end == at || v < 1 || v > 1 << 20 || (*end && *end != ',') || job->n_batches == BATCHES)
            return bz_fail(err, BZ_USAGE, "--batch takes up to %d sizes such as 1,8,64, not '%s'", BATCHES,
                           job->batches);
        job->batch[job->n_batches++] = v;
        at = *end ? end + 1 : end;
    }
    return 0;
}

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

/* Lines with a system's name and the price of an hour on it. */
static int read_prices(predict_job *job, bz_price_list *out, bz_error *err)
{
    FILE *f = fopen(job->prices, "re");
    const char **name = BZ_NEW(&job->job.arena, const char *, MOST);
    double *dollars = BZ_NEW(&job->job.arena, double, MOST);
    char line[256];
    int rc = f ? 0 : bz_fail(err, BZ_FAILED, "%s: %s", job->prices, strerror(errno));
    *out = (bz_price_list){name, dollars, 0};
    for (int number = 1; f && !rc && fgets(line, sizeof line, f); number++) {
        char word[64], *end;
        int at = 0;
        line[strcspn(line, "#\r\n")] = 0;
        if (sscanf(line, "%63s %n", word, &at) != 1)
            continue;
        double v = strtod(line + at, &end);
        if (end == line + at || strspn(end, " \t") != strlen(end) || !(v >= 0 && v < 1e6) || out->n == MOST)
            rc = bz_fail(err, BZ_BAD_INPUT,
                         "%s:%d: '%s' is no line such as 't4 0.35', a system and the price of an hour", job->prices,
                         number, line);
        else {
            name[out->n] = bz_arena_str(&job->job.arena, word);
            dollars[out->n++] = v;
        }
    }
    if (f)
        fclose(f);
    return rc;
}

/* ---- the page -------------------------------------------------------------------------------- */

/* `text` and `json`: what the command prints in these forms. */
static int write_page(const predict_job *job, const char *title, const bz_buf *text, const bz_buf *json, bz_error *err)
{
    bz_buf page = {0};
    bz_report_document_page(title, bz_buf_text(json), bz_buf_text(text), &page);
    int rc = bz_output(job->html, &page, err);
    bz_buf_free(&page);
    return rc;
}

static int page_of_judgements(const predict_job *job, const bz_judgement *round, int rounds, bz_error *err)
{
    bz_buf text = {0}, json = {0};
    bz_report_judgements(round, rounds, BZ_FORM_TEXT, &text);
    bz_report_judgements(round, rounds, BZ_FORM_JSON, &json);
    int rc = write_page(job, "How far off predictions are", &text, &json, err);
    bz_buf_free(&text);
    bz_buf_free(&json);
    return rc;
}

static int page_of_forecasts(const predict_job *job, const bz_forecast *f, int n, const bz_price_list *prices,
                             bz_error *err)
{
    bz_buf text = {0}, json = {0};
    bz_report_forecasts(f, n, prices, BZ_FORM_TEXT, &text);
    bz_report_forecasts(f, n, prices, BZ_FORM_JSON, &json);
    int rc = write_page(job, "Predictions", &text, &json, err);
    bz_buf_free(&text);
    bz_buf_free(&json);
    return rc;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static int evaluate(predict_job *job, const bz_list *paths, bz_buf *out, bz_error *err)
{
    static const int64_t USUAL[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
    int n = 0, batches = job->n_batches ? job->n_batches : (int)(sizeof USUAL / sizeof *USUAL), rounds = 0;
    bz_workload *work = BZ_NEW(&job->job.arena, bz_workload, (size_t)paths->n * (size_t)batches);
    static const bz_few FEW[] = {{0, 0},   {0.05, 0}, {0.01, 0}, {0.02, 0}, {0.1, 0},
                                 {0.2, 0}, {0, 5},    {0, 15},   {0, 30},   {0, 60}};
    enum { ROUNDS = sizeof FEW / sizeof *FEW };
    bz_judgement *round = BZ_NEW(&job->job.arena, bz_judgement, ROUNDS + BZ_LEAVE_N);
    for (int i = 0; i < paths->n; i++)
        for (int b = 0; b < batches; b++) {
            if (bz_workload_make(&job->samples, paths->item[i], job->n_batches ? job->batch[b] : USUAL[b],
                                 &job->job.arena, &work[n], err))
                return -1;
            n += work[n].n > 0;
        }
    const bz_kinship *kinship = bz_kinships_without(&job->samples, &job->job.arena);
    bz_benchmark_times took;
    bz_benchmark_times_of(&job->samples, NULL, &took);
    for (int i = 0; i < ROUNDS; i++) {
        if (FEW[i].seconds > 0 && isnan(took.all))
            continue; /* no record tells how long a benchmark takes */
        if (bz_judge(&job->samples, work, n, BZ_LEAVE_SYSTEM, FEW[i], kinship, &job->job.arena, &round[rounds++], err))
            return -1;
    }
    round->pairs = bz_judge_pairs(&job->samples, work, n, kinship, &job->job.arena, &round->pair);
    for (bz_leave leave = BZ_LEAVE_NETWORK; leave < BZ_LEAVE_N; leave++)
        if (bz_judge_can(work, n, leave) &&
            bz_judge(&job->samples, work, n, leave, FEW[0], NULL, &job->job.arena, &round[rounds++], err))
            return -1;
    if (job->html && page_of_judgements(job, round, rounds, err))
        return -1;
    bz_report_judgements(round, rounds, bz_form_of(job->job.json, job->job.csv), out);
    return 0;
}

/* ---- prediction ------------------------------------------------------------------------------ */

typedef struct target {
    bz_machine machine;
    const bz_system *system; /* NULL: the database has none such */
    const bz_system_facts *facts;
    int own; /* in the table; -1: no records */
    bz_aim *aim;
} target;

static int find_target(predict_job *job, const char *name, target *out, bz_error *err)
{
    bz_gpu row;
    *out = (target){.own = -1};
    if (bz_perfdb_system(job->db, name, &out->system, err))
        return -1;
    if (out->system) {
        if (bz_transfers_facts(job->db, out->system, &job->job.arena, &out->facts, err))
            return -1;
        for (int m = 0; m < job->samples.machines; m++)
            if (!strcmp(job->samples.machine[m].name, out->system->name))
                out->own = m;
        return bz_machine_of(out->facts, out->system->name, &job->setting, &out->machine, err);
    }
    if (bz_machine_named(name, &job->job.arena, &out->machine, err))
        return -1;
    bz_system_facts *facts = BZ_NEW(&job->job.arena, bz_system_facts, 1);
    *facts = bz_system_unknown;
    facts->gpu = out->machine.gpu;
    facts->device = facts->gpu ? "gpu" : "cpu";
    facts->name = "";
    if (bz_gpu_slug(out->machine.name, &row))
        facts->name = bz_arena_str(&job->job.arena, row.name);
    out->facts = facts;
    return 0;
}

/* All GPUs of the data sheets, where none is named. */
static void target_names(predict_job *job, const char **name, int *n)
{
    bz_gpu row;
    split(&job->to, &job->job.arena, name, n);
    for (int i = 0; !job->to.n && i < MOST && bz_gpu_row(i, &row); i++)
        name[(*n)++] = bz_arena_str(&job->job.arena, row.slug);
}

static int find_targets(predict_job *job, target *out, int *n, bz_error *err)
{
    const char *name[MOST];
    target_names(job, name, n);
    for (int i = 0; i < *n; i++)
        if (find_target(job, name[i], &out[i], err))
            return -1;
    return 0;
}

static int forecast(predict_job *job, const bz_models *m, const bz_plan *plan, const target *t, bz_forecast *out,
                    bz_error *err)
{
    bz_dtype dtype;
    if (planning_dtype(&job->p, &dtype, err))
        return -1;
    bz_arena arena = {0}; /* of prices and bounds: of fifty systems they take more than all the rest */
    bz_peaks *peaks = BZ_NEW(&arena, bz_peaks, 1);
    bz_prices *prices;
    bz_peaks_read(t->facts, &job->setting, &arena, peaks);
    if (bz_prices_load(plan, job->db, t->system, &job->setting, &arena, &prices, err)) {
        bz_arena_free(&arena);
        return -1;
    }
    bz_bound_input *in = BZ_NEW(&arena, bz_bound_input, m->n);
    for (int i = 0; i < m->n; i++)
        in[i] = (bz_bound_input){.model = m->name[i],
                                 .system = t->machine.name,
                                 .facts = t->facts,
                                 .setting = job->setting,
                                 .dtype = dtype,
                                 .layers = m->layers[i],
                                 .plan = plan,
                                 .number = i,
                                 .fused = true,
                                 .prices = prices,
                                 .peaks = peaks};
    bz_forecast_make(t->aim, in, m->n, prices, &arena, out);
    bz_arena_free(&arena);
    return 0;
}

static int predict_batch(predict_job *job, const bz_list *paths, int64_t batch, const target *t, int n,
                         bz_forecast *out, bz_error *err)
{
    bz_models *m = BZ_NEW(&job->job.arena, bz_models, 1);
    bz_plan *plan = NULL;
    planning p = job->p;
    p.models.batch = batch;
    p.fuse = true;
    if (t->machine.gpu && !p.backends.n)
        for (const bz_backend_row *b = bz_backends; b->name; b++)
            if (b->device)
                bz_list_add(&job->job.arena, &p.backends, b->name);
    int rc = models_load(&job->job, paths, &p.models, m, err) || planning_plan(&job->job, &p, m, &plan, err);
    for (int i = 0; i < n && !rc; i++)
        rc = forecast(job, m, plan, &t[i], out + (size_t)i * (size_t)m->n, err);
    return rc ? -1 : 0;
}

static int add_line(void *user, size_t number, const char *text, size_t len)
{
    (void)number;
    bz_buf_put(user, text, len);
    bz_buf_putc(user, '\n');
    return 0;
}

/* From the set that is named, from the database, or from what ships. */
static int learn(predict_job *job, bool gpu, bz_predictor **out, bz_error *err)
{
    if (job->trained) {
        bz_buf text = {0};
        int rc = bz_text_lines(job->trained, add_line, &text, err) ||
                 bz_predictor_read(bz_buf_text(&text), job->trained, out, err);
        bz_buf_free(&text);
        return rc ? -1 : 0;
    }
    *out = bz_predictor_best(&job->samples, gpu);
    return *out ? 0
                : bz_fail(err, BZ_BAD_INPUT,
                          "processors are predicted from others: the database needs the records of at least one more "
                          "('benanza db import --reference' names some)");
}

static int train(predict_job *job, bz_error *err)
{
    bz_kinship kinship[BZ_GROUPS];
    bool use[MOST];
    bz_buf text = {0};
    if (!job->samples.n)
        return bz_fail(err, BZ_BAD_INPUT,
                       "the database has no records of systems whose rates are known: nothing can be learned");
    for (int m = 0; m < job->samples.machines; m++)
        use[m] = true;
    bz_kinship_choose(&job->samples, use, NULL, kinship);
    bz_predictor *p = bz_predictor_new(&job->samples, NULL, NULL, kinship);
    bz_predictor_write(p, &text);
    bz_predictor_free(p);
    int rc = bz_output(job->train, &text, err);
    bz_buf_free(&text);
    return rc;
}

/* Records of other systems than those of --from teach nothing; a target's own neither. */
static int keep_from(predict_job *job, bz_predictor *p, target *t, int n, bz_error *err)
{
    const char *name[MOST];
    int names = 0;
    split(&job->from, &job->job.arena, name, &names);
    for (int i = 0; i < n && names; i++) {
        bool is = false;
        for (int k = 0; k < names; k++)
            is |= bz_machine_is(&t[i].machine, name[k]);
        if (!is)
            t[i].own = -1, t[i].system = NULL;
    }
    return names ? bz_predictor_only(p, name, names, err) : 0;
}

static int predict_profiled(predict_job *job, bz_buf *out, bz_error *err)
{
    const char *to[MOST], *from[MOST];
    int n, origins;
    bz_price_list prices = {0};
    split(&job->from, &job->job.arena, from, &origins);
    if (origins > 1)
        return bz_fail(err, BZ_USAGE, "a recording is of one system: --from names it");
    target_names(job, to, &n);
    predict_profile p = {.job = &job->job,
                         .files = &job->profile,
                         .from = origins ? from[0] : NULL,
                         .to = to,
                         .n = n,
                         .db = job->db,
                         .setting = job->setting};
    return (job->prices && read_prices(job, &prices, err)) ||
                   predict_recording(&p, &prices, bz_form_of(job->job.json, job->job.csv), out, err)
               ? -1
               : 0;
}

static int predict(predict_job *job, const bz_list *paths, bz_buf *out, bz_error *err)
{
    target t[MOST];
    int n = 0, models = models_count(paths, &job->p.models), batches = job->n_batches ? job->n_batches : 1, rc = 0;
    bz_price_list prices = {0};
    if ((job->prices && read_prices(job, &prices, err)) || find_targets(job, t, &n, err))
        return -1;
    for (int i = 1; i < n; i++)
        if (t[i].machine.gpu != t->machine.gpu)
            return bz_fail(err, BZ_USAGE, "name either GPUs or processors: '%s' and '%s' run other libraries",
                           t->machine.name, t[i].machine.name);
    bz_predictor *p;
    if (learn(job, t->machine.gpu, &p, err))
        return -1;
    if (keep_from(job, p, t, n, err)) {
        bz_predictor_free(p);
        return -1;
    }
    for (int i = 0; i < n; i++)
        t[i].aim = bz_predictor_aim(p, &t[i].machine, &job->samples, t[i].own, NULL);
    bz_forecast *f = BZ_NEW(&job->job.arena, bz_forecast, (size_t)batches * (size_t)n * (size_t)models);
    for (int b = 0; b < batches && !rc; b++)
        rc = predict_batch(job, paths, job->n_batches ? job->batch[b] : 0, t, n,
                           f + (size_t)b * (size_t)n * (size_t)models, err);
    if (!rc && job->html)
        rc = page_of_forecasts(job, f, batches * n * models, &prices, err);
    if (!rc)
        bz_report_forecasts(f, batches * n * models, &prices, bz_form_of(job->job.json, job->job.csv), out);
    for (int i = 0; i < n; i++)
        bz_aim_free(t[i].aim);
    bz_predictor_free(p);
    return rc;
}

static void free_samples(void *samples)
{
    bz_samples_free(samples);
}

static int start(void *of, bz_buf *out, bz_error *err)
{
    predict_job *job = of;
    const bz_list *paths = &job->job.arguments;
    if (!paths->n && !job->train && !job->profile.n)
        return bz_fail(err, BZ_USAGE, "name a model: benanza predict MODEL... --to t4");
    if (job->profile.n && (paths->n || job->evaluate || job->train || job->batches || job->trained))
        return bz_fail(err, BZ_USAGE,
                       "--profile predicts the recording by itself: it takes --to, --from and --prices, and no model");
    if (job->html && (job->profile.n || job->train))
        return bz_fail(err, BZ_USAGE, "--html draws predictions of models and --evaluate: not --profile, not --train");
    if (job->job.json && job->job.csv)
        return bz_fail(err, BZ_USAGE, "--json and --csv exclude one another");
    if (planning_setting(&job->p, &job->setting, err) || read_batches(job, err) || bz_db_look(&job->job, &job->db, err))
        return -1;
    if (job->profile.n)
        return predict_profiled(job, out, err);
    bz_arena_keep(&job->job.arena, &job->samples, free_samples);
    if (bz_samples_load(job->db, &job->setting, &job->samples, err))
        return -1;
    return job->train      ? train(job, err)
           : job->evaluate ? evaluate(job, paths, out, err)
                           : predict(job, paths, out, err);
}

const bz_command bz_command_predict =
    BZ_COMMAND("predict", "MODEL... [OPTIONS]", "say how fast a model would run on systems that nobody has measured",
               OPTIONS, predict_job, start);
