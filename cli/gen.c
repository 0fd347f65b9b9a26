/* benanza gen: write the benchmarks that the database lacks. */
#include "cli/planning.h"
#include "predict/evaluate.h"
#include "report/report.h"

#include <math.h>

typedef struct gen_job {
    bz_job job;
    planning p;
    const char *folder;
    bool all;
    const char *remeasure;
    bz_list problems; /* texts */
    int64_t most;     /* so many problems, those that tell most of the others; 0: all */
    const char *budget_text;
    double budget, expected; /* seconds of measuring, 0: any; those that what is chosen should take */
} gen_job;

static const bz_option OPTIONS[] = {
    BZ_VALUE("o|output", gen_job, folder, "DIR", "write into this folder"),
    BZ_FLAG("all", gen_job, all, "also write what the database has already"),
    BZ_LIST("problem", gen_job, problems, "TEXT",
            "also benchmark this problem, which need not be a layer of a model: 'copy read=1048576 write=1048576 "
            "dtype=u8'; may be repeated"),
    BZ_COUNT("most-informative", gen_job, most, "N",
             "write only the N problems whose times help 'benanza predict' most to predict all others"),
    BZ_VALUE("budget", gen_job, budget_text, "TIME",
             "write the problems that help 'benanza predict' most and can be measured in TIME (60s, 5min), by how long "
             "records took"),
    BZ_JSON_OPTION,
    PLANNING_REMEASURE_OPTION(gen_job, remeasure),
    PLANNING_OPTIONS(gen_job, p),
    {0},
};

static int generate(void *job, bz_buf *out, bz_error *err)
{
    gen_job *g = job;
    const bz_list *paths = &g->job.arguments;
    bz_models *m = BZ_NEW(&g->job.arena, bz_models, 1);
    bz_plan *plan = NULL;
    bz_perfdb *db = NULL;
    const bz_system *system = NULL;
    bz_setting setting;
    bz_remeasure again;
    if ((!paths->n && !g->problems.n) || !g->folder)
        return bz_fail(err, BZ_USAGE, "name models and a folder: benanza gen MODEL... -o DIR");
    if (!paths->n &&
        bz_job_reads_no(&g->job, "problems without a model", MODEL_READS TRAINING_READS "dtype fuse patterns", err))
        return -1;
    if (g->all && bz_job_reads_no(&g->job, "--all, which looks at no records", "remeasure", err))
        return -1;
    if (planning_setting(&g->p, &setting, err))
        return -1;
    if (g->budget_text && bz_units_parse_time(g->budget_text, &g->budget))
        return bz_fail(err, BZ_USAGE, "--budget takes a time such as 60s, 5min or 1h, not '%s'", g->budget_text);
    if (bz_remeasure_parse(g->remeasure, &again, err) || models_load(&g->job, paths, &g->p.models, m, err) ||
        (g->p.system && planning_system(&g->job, &g->p, true, &db, &system, err)))
        return -1;
    if (planning_backends(&g->job, &g->p, system, err) || planning_plan(&g->job, &g->p, m, &plan, err))
        return -1;
    for (int i = 0; i < g->problems.n; i++)
        if (bz_plan_add_text(plan, g->problems.item[i], err))
            return -1;
    if (!g->all && ((!db && planning_system(&g->job, &g->p, true, &db, &system, err)) ||
                    bz_plan_skip(plan, db, system, &setting, &again, err)))
        return -1;
    if (g->most || g->budget > 0) {
        BZ_SCOPED(bz_samples) records = {0};
        int rc = db && g->budget > 0 ? bz_samples_load(db, &setting, bz_plan_asked(plan), &records, err) : 0;
        if (!rc)
            g->expected = bz_plan_most_informative(plan, &records, db, system, &setting, g->most, g->budget);
        if (rc)
            return -1;
    }
    if (bz_generate(plan, g->folder, err))
        return -1;
    bz_report_gen(plan, &(bz_gen_report){g->folder, g->most || g->budget > 0, g->budget > 0 ? g->expected : NAN},
                  g->job.json, out);
    return 0;
}

const bz_command bz_command_gen =
    BZ_COMMAND("gen", "[MODEL...] -o DIR [OPTIONS]", "write benchmarks of the layers that the database does not know",
               OPTIONS, gen_job, generate);
