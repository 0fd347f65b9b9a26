/* benanza gen: write the benchmarks that the database lacks. */
#include "cli/db.h"
#include "cli/planning.h"

#include <stdio.h>

static int generate(planning *p, const bz_list *paths, const char *folder, bool all, bz_buf *out, bz_error *err)
{
    loaded_models m = {0};
    bz_plan *plan = NULL;
    bz_perfdb *db = NULL;
    const bz_system *system = NULL;
    const bz_plan_problem *problems;
    bz_setting setting;
    if (!paths->n || !folder)
        return bz_fail(err, BZ_USAGE, "name models and a folder: benanza gen MODEL... -o DIR");
    int rc = planning_setting(p, &setting, err) || models_load(&bz_command_gen, paths, &p->models, &m, err) ||
             planning_plan(p, paths, &m, &plan, err);
    if (!rc && !all)
        rc = bz_db_open(&bz_command_gen, p->db, false, false, &db, err) ||
             bz_bench_system(db, p->system, &system, err) || bz_plan_skip(plan, db, system, &setting, err);
    rc = rc || bz_generate(plan, folder, err);
    if (!rc) {
        int all_problems = bz_plan_problems(plan, &problems), families, wanted = bz_plan_wanted(plan, &families), n = 0;
        for (int i = 0; i < all_problems; i++) /* some have no family among those that the user wants */
            n += problems[i].n_families > 0;
        bz_buf_clean(out, folder);
        bz_buf_printf(out, ": %d problems in %d families", wanted, families);
        if (n > wanted)
            bz_buf_printf(out, "; %d of %d problems are in the database (%.0f %% saved)", n - wanted, n,
                          100.0 * (n - wanted) / n);
        bz_buf_putc(out, '\n');
        planning_groups(plan, out);
    }
    bz_perfdb_close(db);
    bz_plan_free(plan);
    models_free(&m);
    return rc ? -1 : 0;
}

static int run(int argc, char **argv)
{
    planning p = {0};
    const char *folder = NULL;
    bool all = false;
    bz_list arguments = {0};
    bz_error err = {0};
    bz_buf out = {0};
    const bz_option options[] = {
        {"o|output", BZ_OPTION_TEXT, &folder, "DIR", "the folder to write"},
        {"all", BZ_OPTION_FLAG, &all, NULL, "also what the database has"},
        PLANNING_OPTIONS(p),
        {0},
    };
    int parsed = bz_options_parse(&bz_command_gen, options, argc, argv, &arguments, &err), status = BZ_OK;
    if (parsed < 0 || (!parsed && (generate(&p, &arguments, folder, all, &out, &err) || bz_output(NULL, &out, &err))))
        status = bz_report(&bz_command_gen, &err);
    bz_buf_free(&out);
    bz_list_free(&arguments);
    planning_free(&p);
    return status;
}

const bz_command bz_command_gen = {"gen", "MODEL... -o DIR [OPTIONS]", "write benchmarks for what the database lacks",
                                   run};
