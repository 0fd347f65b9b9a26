#include "cli/analysis.h"

BZ_ENDS(end_patterns, bz_patterns_free)

int analyses_ask(bz_job *job, analyses *a, const planning *p, const bz_models *m, bz_error *err)
{
    bz_request *r = &a->request;
    bz_patterns *patterns;
    if (planning_options(p, &r->options, &patterns, err))
        return -1;
    bz_arena_keep(&job->arena, patterns, end_patterns);
    if (planning_setting(p, &r->setting, err))
        return -1;
    r->model = m->name;
    r->layers = m->layers;
    r->n = m->n;
    r->plan = a->plan = bz_plan_keep(bz_plan_of(&r->options, m->layers, m->name, m->n), &job->arena);
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
    if (a->predict && db && !a->request.samples) { /* without one: what a recording tells by itself */
        bz_samples *samples = BZ_NEW(&job->arena, bz_samples, 1);
        bz_arena_keep(&job->arena, samples, free_samples);
        if (bz_samples_load(db, &a->request.setting, &a->request.options, samples, err))
            return -1;
        a->request.samples = samples;
    }
    return bz_analyze(&a->request, &job->arena, &a->found, err);
}

static int draw(const bz_analysis *a, const analysis_output *o, bz_error *err)
{
    bz_buf dot = {0};
    bz_report_dot(a, &dot);
    return models_draw(&dot, o->dot, o->svg, err);
}

static int write_page(const bz_findings *r, const char *path, bz_error *err)
{
    bz_buf page = {0};
    bz_report_html(r, &page);
    return bz_output_end(path, &page, err);
}

int analyses_print(bz_job *job, analyses *a, const analysis_output *o, bz_buf *out, bz_error *err)
{
    bz_findings *f = &a->found;
    if ((o->dot || o->svg) && f->n != 1)
        return bz_fail(err, BZ_USAGE, "--dot and --svg draw one model on one system, not %d", f->n);
    if ((o->dot || o->svg) && f->analysis->bound.rebuilt)
        return bz_fail(err, BZ_USAGE, "--dot and --svg draw a model's graph: name a model");
    if ((job->csv || o->models) && !f->n)
        return bz_fail(err, BZ_USAGE, "--csv has a row per layer, and there is no model: name one, or take --json");
    if (f->n > 1 || o->models) {
        bz_evaluation *e = BZ_NEW(&job->arena, bz_evaluation, 1);
        bz_evaluation_make(f->analysis, f->n, &job->arena, e);
        f->evaluation = e;
    }
    if (((o->dot || o->svg) && draw(f->analysis, o, err)) || (o->html && write_page(f, o->html, err)))
        return -1;
    bz_report_findings(f, o->models, bz_form_of(job->json, job->csv), out);
    return 0;
}
