/* benanza bound: measure what the database lacks, then price models by it. */
#include "cli/bound.h"

#include "cli/db.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct bound_job {
    planning p;
    bool json, csv, no_run;
    const char *time_limit;
    loaded_models models;
    bz_plan *plan;
    bz_perfdb *db;
    const bz_system *system;
    bound_head head;
    bool incomplete;
} bound_job;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

/* Generates, builds and runs in a folder that goes away, unless the build fails: then its log is wanted. */
static int measure(bound_job *b, bz_error *err)
{
    const char *tmp = getenv("TMPDIR");
    char folder[3000];
    bench_run run = {.db = b->db, .system = b->system, .setting = b->head.setting, .time_limit = b->time_limit};
    snprintf(folder, sizeof folder, "%s/benanza-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", folder, strerror(errno));
    if (bz_generate(b->plan, folder, err) || bz_bench_build(folder, err))
        return -1;
    int rc = bz_bench_run(folder, &run, err);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    b->head.benchmarks = run.records;
    return rc;
}

static bool ask(int n)
{
    int c;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return false;
    fprintf(stderr, "The database lacks %d problems. Measure them now? [y/N] ", n);
    c = getchar();
    return c == 'y' || c == 'Y';
}

/* Another system's records can only be looked up; this machine's can be made. */
static int fill(bound_job *b, const bz_list *paths, bz_error *err)
{
    if (bz_plan_skip(b->plan, b->db, b->system, &b->head.setting, err))
        return -1;
    const bz_plan_problem *problems;
    int n = bz_plan_wanted(b->plan, NULL);
    b->head.problems = bz_plan_problems(b->plan, &problems);
    b->head.known = b->head.problems - n;
    if (!n)
        return 0;
    if (b->p.system || (b->no_run && !ask(n))) {
        bz_warn(&bz_command_bound,
                "the database lacks %d problems: 'benanza bound %s%s%s' on that machine measures them", n,
                b->p.fuse || b->p.patterns ? "--fuse " : "", paths->item[0], paths->n > 1 ? " …" : "");
        return 0;
    }
    return measure(b, err);
}

static int price(bound_job *b, const bz_list *paths, bz_buf *out, bz_error *err)
{
    bz_arena arena = {0};
    bz_prices *prices;
    bound *bounds = bz_alloc((size_t)paths->n, sizeof *bounds);
    if (bz_prices_load(b->plan, b->db, b->system, &b->head.setting, &arena, &prices, err)) {
        free(bounds);
        bz_arena_free(&arena);
        return -1;
    }
    for (int i = 0; i < paths->n; i++) {
        bound_of(paths->item[i], b->models.layers[i], b->plan, prices, &bounds[i]);
        if (b->p.fuse || b->p.patterns)
            bound_fuse(&bounds[i], i, b->models.layers[i], b->plan, prices);
        b->incomplete |= bounds[i].total.unpriced > 0 || bounds[i].fused.missing > 0;
    }
    if (b->json)
        bound_json(bounds, paths->n, &b->head, out);
    else if (b->csv)
        bound_csv(bounds, paths->n, out);
    for (int i = 0; i < paths->n; i++) {
        if (!b->json && !b->csv) {
            bz_buf_puts(out, i ? "\n" : "");
            bound_text(&bounds[i], &b->head, out);
        }
        bound_free(&bounds[i]);
    }
    free(bounds);
    bz_arena_free(&arena);
    return 0;
}

static int bound_models(bound_job *b, const bz_list *paths, bz_buf *out, bz_error *err)
{
    if (!paths->n)
        return bz_fail(err, BZ_USAGE, "name a model: benanza bound MODEL...");
    if (planning_setting(&b->p, &b->head.setting, err) ||
        models_load(&bz_command_bound, paths, &b->p.models, &b->models, err) ||
        planning_plan(&b->p, paths, &b->models, &b->plan, err) ||
        bz_db_open(&bz_command_bound, b->p.db, b->p.system != NULL, false, &b->db, err) ||
        bz_bench_system(b->db, b->p.system, planning_device(&b->p), &b->system, err))
        return -1;
    b->head.system = b->system->name;
    return fill(b, paths, err) || price(b, paths, out, err) ? -1 : 0;
}

static int run(int argc, char **argv)
{
    bound_job b = {0};
    bz_list arguments = {0};
    bz_error err = {0};
    bz_buf out = {0};
    const bz_option options[] = {
        {"json", BZ_OPTION_FLAG, &b.json, NULL, "for programs: JSON"},
        {"csv", BZ_OPTION_FLAG, &b.csv, NULL, "for programs: a row per layer"},
        {"no-run", BZ_OPTION_FLAG, &b.no_run, NULL, "only what the database has"},
        {"time-limit", BZ_OPTION_TEXT, &b.time_limit, "S", "seconds of measuring per variant (0.1)"},
        PLANNING_OPTIONS(b.p),
        {0},
    };
    int parsed = bz_options_parse(&bz_command_bound, options, argc, argv, &arguments, &err), status = BZ_OK;
    if (parsed < 0 || (!parsed && (bound_models(&b, &arguments, &out, &err) || bz_output(NULL, &out, &err))))
        status = bz_report(&bz_command_bound, &err);
    else if (b.incomplete)
        status = BZ_INCOMPLETE;
    bz_perfdb_close(b.db);
    bz_plan_free(b.plan);
    models_free(&b.models);
    bz_buf_free(&out);
    bz_list_free(&arguments);
    planning_free(&b.p);
    return status;
}

const bz_command bz_command_bound = {"bound", "MODEL... [OPTIONS]",
                                     "how fast a model could run: measure what is missing, then sum up", run};
