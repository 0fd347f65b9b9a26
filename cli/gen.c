/* benanza gen: write the benchmarks that the database lacks. */
#include "cli/db.h"
#include "cli/planning.h"
#include "predict/evaluate.h"
#include "transfer/transfer.h"

#include <stdio.h>

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

/* ---- the most informative --------------------------------------------------------------------- */

static bool is_chosen(void *user, int problem, int family)
{
    (void)family;
    return ((const bool *)user)[problem];
}

/* How often all models need each problem. */
static double *uses_of(const bz_plan *plan, int n, bz_arena *arena)
{
    const bz_plan_layer *layer;
    int layers = bz_plan_layers(plan, &layer);
    double *uses = BZ_NEW(arena, double, n);
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < layer[i].n_problems; k++)
            uses[layer[i].problem[k]] += (double)layer[i].count;
    return uses;
}

/* Of what is wanted, the problems that tell most of a system's times. What they cost stands for what they weigh: by the system's
 * roofline where its rates are known, else as if a byte cost as much as ten operations. */
static void choose(gen_job *g, const bz_samples *records, bz_plan *plan, bz_perfdb *db, const bz_system *system,
                   const bz_setting *setting)
{
    bz_arena arena = {0};
    const bz_plan_problem *problem;
    int all = bz_plan_problems(plan, &problem), n = 0;
    const bz_system_facts *facts;
    bz_error none;
    bz_machine machine;
    bool known = system && !bz_transfers_facts(db, system, &arena, &facts, &none) &&
                 !bz_machine_of(facts, system->name, setting, &machine, NULL);
    const bz_shape **shape = BZ_NEW(&arena, const bz_shape *, all);
    double *cost = BZ_NEW(&arena, double, all), *uses = uses_of(plan, all, &arena);
    int *at = BZ_NEW(&arena, int, all), *order = BZ_NEW(&arena, int, all);
    double *seconds = BZ_NEW(&arena, double, all);
    bool *chosen = BZ_NEW(&arena, bool, all);
    bz_benchmark_times times;
    bz_benchmark_times_of(records, NULL, &times);
    for (int i = 0; i < all; i++) {
        bool wanted = false;
        for (int f = 0; f < problem[i].n_families; f++)
            wanted |= problem[i].family[f].wanted;
        if (!wanted)
            continue;
        bz_shape *s = BZ_NEW(&arena, bz_shape, 1);
        bz_shape_of(problem[i].problem, s);
        shape[n] = s;
        cost[n] = uses[i] * (known ? bz_shape_roofline(s, &machine, 0, 1) : s->flops + 10 * s->bytes);
        seconds[n] = bz_benchmark_seconds(&times, problem[i].text, s);
        at[n++] = i;
    }
    int most = g->most && g->most < n ? (int)g->most : n;
    int taken = bz_most_informative(shape, cost, g->budget > 0 ? seconds : NULL, n, most, g->budget, order);
    for (int i = 0; i < taken; i++) {
        chosen[at[order[i]]] = true;
        g->expected += seconds[order[i]];
    }
    bz_plan_choose(plan, is_chosen, chosen);
    bz_arena_free(&arena);
}

static void report(const gen_job *g, const bz_plan *plan, bz_buf *out)
{
    const bz_plan_problem *problems;
    int all = bz_plan_problems(plan, &problems), families, wanted = bz_plan_wanted(plan, &families), n = 0;
    for (int i = 0; i < all; i++) /* some have no family among those that the user wants */
        n += problems[i].n_families > 0;
    if (g->job.json) {
        bz_json j = bz_json_to(out, false);
        bz_json_document(&j, "gen", 1);
        bz_json_key_str(&j, "folder", g->folder);
        bz_json_key_int(&j, "problems", n);
        bz_json_key_int(&j, "written", wanted);
        bz_json_key_int(&j, "families", families);
        if (g->budget > 0)
            bz_json_key_num(&j, "seconds", g->expected);
        bz_json_key_num(&j, "saved", n ? (double)(n - wanted) / n : 0);
        bz_json_document_end(&j);
        return;
    }
    bz_buf_clean(out, g->folder);
    bz_buf_printf(out, ": %d problem%s in %d families", wanted, wanted == 1 ? "" : "s", families);
    if (g->most || g->budget > 0)
        bz_buf_printf(out, ", those that tell most of %d", n);
    else if (n > wanted)
        bz_buf_printf(out, "; %d of %d problems are in the database (%.0f %% saved)", n - wanted, n,
                      100.0 * (n - wanted) / n);
    bz_buf_putc(out, '\n');
    if (g->budget > 0) {
        bz_unit_text unit;
        bz_buf_printf(out, "  measuring them should take %s\n", bz_units_time(unit, g->expected));
    }
    planning_groups(plan, out);
    if (wanted) {
        bz_buf_puts(out, "  next: benanza run ");
        bz_buf_clean(out, g->folder);
        bz_buf_putc(out, '\n');
    }
}

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
    if (planning_setting(&g->p, &setting, err) || planning_duration("budget", g->budget_text, &g->budget, err) ||
        planning_remeasure(g->remeasure, &again, err) || models_load(&g->job, paths, &g->p.models, m, err) ||
        (g->p.system && planning_system(&g->job, &g->p, false, &db, &system, err)))
        return -1;
    planning_backends(&g->job, &g->p, system);
    if (planning_plan(&g->job, &g->p, m, &plan, err))
        return -1;
    for (int i = 0; i < g->problems.n; i++)
        if (bz_plan_add_text(plan, g->problems.item[i], err))
            return -1;
    if (!g->all && ((!db && planning_system(&g->job, &g->p, false, &db, &system, err)) ||
                    bz_plan_skip(plan, db, system, &setting, &again, err)))
        return -1;
    if (g->most || g->budget > 0) {
        bz_samples records = {0};
        int rc = db && g->budget > 0 ? bz_samples_load(db, &setting, &records, err) : 0;
        if (!rc)
            choose(g, &records, plan, db, system, &setting);
        bz_samples_free(&records);
        if (rc)
            return -1;
    }
    if (bz_generate(plan, g->folder, err))
        return -1;
    report(g, plan, out);
    return 0;
}

const bz_command bz_command_gen =
    BZ_COMMAND("gen", "[MODEL...] -o DIR [OPTIONS]", "write benchmarks of the layers that the database does not know",
               OPTIONS, gen_job, generate);
