/* benanza layers: what a model consists of. */
#include "cli/model.h"
#include "report/report.h"
#include "training/training.h"

typedef struct layers_job {
    bz_job job;
    bool unique, fold, fusions;
    const char *dot, *svg, *patterns, *write, *memory;
    model_settings models;
    bz_models loaded;
} layers_job;

static const bz_option OPTIONS[] = {
    BZ_FLAG("unique", layers_job, unique, "show every layer once over all models, how often it occurs and where"),
    MODEL_OPTIONS(layers_job, models),
    TRAINING_OPTIONS(layers_job, models),
    BZ_FLAG("fold", layers_job, fold, "leave out layers that do not depend on the model's inputs"),
    BZ_FLAG("fusions", layers_job, fusions,
            "also show where one call could compute several layers, and which layers could run at the same time"),
    BZ_VALUE("patterns", layers_job, patterns, "FILE", "read more fusion patterns from FILE; implies --fusions"),
    BZ_VALUE("write", layers_job, write, "FILE", "write the iteration as an ONNX file instead", .with = "train"),
    BZ_VALUE("memory", layers_job, memory, "SIZE",
             "the largest batch that fits SIZE (16GB), and what keeping fewer activations costs", .with = "train"),
    BZ_VALUE("dot", layers_job, dot, "FILE", "write the graph in the DOT language instead of the table"),
    BZ_VALUE("svg", layers_job, svg, "FILE", "draw the graph instead of the table"),
    BZ_JSON_OPTION,
    BZ_FLAG("csv", bz_job, csv, "print comma-separated values, with the keys"),
    {0},
};

static int draw(const layers_job *s, bz_layers *l, bz_error *err)
{
    bz_buf dot = {0};
    bz_dot_layers(l, bz_dag_build(l), NULL, &dot);
    return models_draw(&dot, s->dot, s->svg, err);
}

/* How much memory an iteration needs by the number of parts of which only the borders are kept, and which batch fits. */
static int fit(const layers_job *s, const char *path, bz_buf *out, bz_error *err)
{
    bz_memory_fit row[] = {{.parts = 1}, {.parts = 2}, {.parts = 4}, {.parts = 8}, {.parts = 16}, {.parts = 32}};
    enum { ROWS = sizeof row / sizeof *row };
    const model_settings *models = &s->models;
    BZ_SCOPED(bz_arena) arena = {0};
    bz_training_options options;
    bz_infer_options infer = {.batch = models->batch,
                              .n_binds = models->dims.n,
                              .trips = models->trips,
                              .ignore_declared = models->ignore_declared};
    double memory;
    if (bz_units_parse_bytes(s->memory, &memory) || !(memory >= 1 && memory < 1e18))
        return bz_fail(err, BZ_USAGE, "--memory takes a size such as 16GB, not '%s'", s->memory);
    if (memory < 1e6 && strspn(s->memory, "0123456789.") == strlen(s->memory))
        return bz_fail(err, BZ_USAGE, "--memory %s would be %s bytes: write the unit, as in %sGB", s->memory, s->memory,
                       s->memory);
    int rc = bz_binds_parse(models->dims.item, models->dims.n, &arena, &infer.binds, err) ||
             models_training(models, &options, err) ||
             bz_training_fit(path, &infer, &options, (int64_t)memory, row, ROWS, err);
    if (!rc)
        bz_report_training_fit(&(bz_fit_report){path, s->memory, memory, row, ROWS, err->text}, s->job.json, out);
    return rc ? -1 : 0;
}

static int check(const layers_job *s, const model_settings *models, int n_models, bz_error *err)
{
    if ((s->write || s->memory) && models_count(&(bz_list){.n = n_models}, models) != 1)
        return bz_fail(err, BZ_USAGE, "--%s is about one model", s->write ? "write" : "memory");
    if (s->write && bz_job_reads(&s->job, "--write, which prints nothing", "write " MODEL_READS TRAINING_READS, err))
        return -1;
    if (s->memory && bz_job_reads(&s->job, "--memory", "memory json " MODEL_READS TRAINING_READS, err))
        return -1;
    if ((s->dot || s->svg) &&
        bz_job_reads(&s->job, "a drawing, which is all there is then", "dot svg " MODEL_READS TRAINING_READS, err))
        return -1;
    if (s->unique && bz_job_reads_no(&s->job, "--unique", "fusions patterns", err))
        return -1;
    if (s->job.csv && bz_job_reads_no(&s->job, "--csv", "fusions patterns", err))
        return -1;
    if (n_models == 0)
        return bz_fail(err, BZ_USAGE, "name a model: benanza layers MODEL.onnx");
    if ((s->dot || s->svg) && n_models != 1)
        return bz_fail(err, BZ_USAGE, "--dot and --svg draw one model, not %d", n_models);
    return 0;
}

static int show(void *job, bz_buf *out, bz_error *err)
{
    layers_job *s = job;
    const bz_list *arguments = &s->job.arguments;
    bz_models *m = &s->loaded;
    s->fusions |= s->patterns != NULL;
    if (check(s, &s->models, arguments->n, err))
        return -1;
    if (s->memory)
        return fit(s, arguments->item[0], out, err);
    if (models_load(&s->job, arguments, &s->models, m, err))
        return -1;
    bool sweep = m->n > arguments->n;
    bz_patterns *patterns = NULL;
    int failed = s->fusions ? bz_patterns_load(s->patterns, &patterns, err) : 0;
    if (!failed && s->write)
        failed = bz_output(s->write, m->layers[0]->training->file, err);
    else if (!failed && (s->dot || s->svg))
        failed = draw(s, m->layers[0], err);
    else if (!failed && sweep && !s->unique && !s->job.json && !s->job.csv)
        bz_report_layers_sizes(m->layers, m->n, s->fold, out);
    else if (!failed)
        (s->unique ? bz_report_unique_layers : bz_report_layers)(
            m->layers, m->n, &(bz_layers_view){s->job.json, s->job.csv, s->fold, patterns, m->n && m->layers[0]->phase},
            out);
    bz_patterns_free(patterns);
    return failed ? -1 : 0;
}

/* What an operator does that nobody knows lacks in the totals. */
static int judge(const void *job)
{
    const bz_models *m = &((const layers_job *)job)->loaded;
    for (int i = 0; i < m->n; i++)
        if (bz_layers_opaque(m->layers[i]->layer, m->layers[i]->n))
            return BZ_INCOMPLETE;
    return BZ_OK;
}

const bz_command bz_command_layers =
    BZ_COMMAND("layers", "MODEL... [OPTIONS]", "list the layers of models: shapes, MACs, parameters, bytes, keys",
               OPTIONS, layers_job, show, .judge = judge);
