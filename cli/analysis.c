#include "cli/analysis.h"
#include "cli/profile.h"

#include <stdlib.h>

/* "run.sqlite + run.log", without folders. */
static const char *profile_name(const char *list, bz_arena *arena)
{
    char word[256];
    const char *name = "";
    while (planning_word(&list, word))
        name = bz_arena_printf(arena, "%s%s%s", name, *name ? " + " : "", bz_file_name(word));
    return name;
}

/* "run.sqlite,run.log": a timeline and the logs of the same program are one profile. */
int analyses_read(bz_job *job, analyses *a, bz_error *err)
{
    bz_recorded *recorded = BZ_NEW(&job->arena, bz_recorded, a->profiles.n);
    a->trace = BZ_NEW(&job->arena, bz_trace *, a->profiles.n);
    for (int i = 0; i < a->profiles.n; i++) {
        bz_trace *t = a->trace[i] = bz_job_trace(job);
        const char *list = a->profiles.item[i];
        char word[256];
        while (planning_word(&list, word))
            if (bz_profile_read(t, word, err))
                return -1;
        if (*list || !t->n_sources)
            return bz_fail(err, BZ_USAGE, "--profile takes a file, or several of one run, 'a.sqlite,a.log', not '%s'",
                           a->profiles.item[i]);
        if (bz_trace_finish(t, &(bz_finish_options){.iterations = a->iterations}, err))
            return -1;
        recorded[i] = (bz_recorded){profile_name(a->profiles.item[i], &job->arena), t};
    }
    a->request.profile = recorded;
    a->request.n_profiles = a->profiles.n;
    return 0;
}

int64_t analyses_threads(const analyses *a, int64_t named)
{
    int64_t n = named;
    for (int i = 0; i < a->profiles.n; i++) {
        const char *told = bz_trace_told(a->trace[i], "threads");
        int64_t ran = told ? atoi(told) : 0;
        if (ran < 1 || ran > 4096 || (n && n != ran))
            return named;
        n = ran;
    }
    return n;
}

int analyses_ask(bz_job *job, analyses *a, const planning *p, const bz_models *m, bz_error *err)
{
    bz_request *r = &a->request;
    if (planning_options(job, p, &r->options, err) || planning_setting(p, &r->setting, err))
        return -1;
    r->model = m->name;
    r->layers = m->layers;
    r->n = m->n;
    r->plan = a->plan = bz_plan_keep(r->rebuilt ? bz_plan_of_rebuilt(&r->options, r->rebuilt, m->name, m->n)
                                                : bz_plan_of(&r->options, m->layers, m->name, m->n),
                                     &job->arena);
    return 0;
}

BZ_ENDS(free_samples, bz_samples_free)

int analyses_make(bz_job *job, analyses *a, bz_perfdb *db, const bz_system *const *system, int n_systems,
                  unsigned parts, bz_error *err)
{
    a->request.db = db;
    a->request.system = system;
    a->request.n_systems = n_systems;
    a->request.parts = parts;
    if (a->output.predict && db && !a->request.samples) { /* without one: what a recording tells by itself */
        bz_samples *samples = BZ_NEW(&job->arena, bz_samples, 1);
        bz_arena_keep(&job->arena, samples, free_samples);
        if (bz_samples_load(db, &a->request.setting, &a->request.options, samples, err))
            return -1;
        a->request.samples = samples;
    }
    return bz_analyze(&a->request, &job->arena, &a->found, err);
}

static int draw(const analyses *a, bz_error *err)
{
    bz_buf dot = {0};
    bz_report_dot(a->found.analysis, &dot);
    return models_draw(&dot, a->output.dot, a->output.svg, err);
}

static int write_page(const analyses *a, bz_error *err)
{
    bz_buf page = {0};
    bz_report_html(&a->found, &page);
    return bz_output_end(a->output.html, &page, err);
}

int analyses_print(bz_job *job, analyses *a, bz_buf *out, bz_error *err)
{
    bz_findings *f = &a->found;
    bool models = a->output.models, draws = a->output.dot || a->output.svg;
    if (draws && f->n != 1)
        return bz_fail(err, BZ_USAGE, "--dot and --svg draw one model on one system, not %d", f->n);
    if (draws && f->analysis->bound.rebuilt)
        return bz_fail(err, BZ_USAGE, "--dot and --svg draw a model's graph: name a model");
    if ((job->csv || models) && !f->n)
        return bz_fail(err, BZ_USAGE, "--csv has a row per layer, and there is no model: name one, or take --json");
    if (f->n > 1 || models) {
        bz_evaluation *e = BZ_NEW(&job->arena, bz_evaluation, 1);
        bz_evaluation_make(f->analysis, f->n, &job->arena, e);
        f->evaluation = e;
    }
    if ((draws && draw(a, err)) || (a->output.html && write_page(a, err)))
        return -1;
    bz_report_findings(f, models, bz_form_of(job->json, job->csv), out);
    return 0;
}
