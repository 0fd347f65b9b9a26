#include "cli/model.h"
#include "training/training.h"

#include <string.h>

enum { POINTS = 64 }; /* of a sweep */

int models_count(const bz_list *paths, const model_settings *s)
{
    return paths->n * bz_binds_points(s->dims.item, s->dims.n, POINTS);
}

int models_training(const model_settings *s, bz_training_options *options, bz_error *err)
{
    static const char *const LOSS[] = {"auto", "classes", "squares"};
    *options = (bz_training_options){.fused = s->fused, .parts = s->parts < 1 << 20 ? (int)s->parts : 1 << 20};
    if (*s->train && bz_optimizer_parse(s->train, &options->optimizer))
        return bz_fail(err, BZ_USAGE, "there is no optimizer '%s'", s->train);
    for (int i = 0; i < 3; i++)
        if (s->loss && !strcmp(s->loss, LOSS[i]))
            options->loss = (bz_loss)i;
    if (s->mixed)
        options->dtype = strcmp(s->mixed, "f16") ? BZ_BF16 : BZ_F16;
    return 0;
}

BZ_ENDS(end_models, bz_models_free)

/* The last model becomes its iteration of training. */
static int train(const model_settings *s, bz_models *m, bz_error *err)
{
    bz_training_options options;
    return models_training(s, &options, err) || bz_training_replace(m, m->n - 1, &options, err) ? -1 : 0;
}

static int load_point(const bz_list *paths, int model, const bz_infer_options *options, const char *what, bz_models *m,
                      bz_error *err)
{
    int rc = bz_models_load(&paths->item[model], 1, options, m, err), last = m->n - 1;
    if (rc)
        return -1;
    if (*what)
        m->layers[last]->name = m->name[last] = bz_arena_printf(&m->arena, "%s%s", paths->item[model], what);
    return 0;
}

/* A model that is loaded for several batches says the same each time. */
static void warn_once(bz_job *job, const char *sentence)
{
    for (int i = 0; i < job->warned.n; i++)
        if (!strcmp(job->warned.item[i], sentence))
            return;
    bz_list_add(&job->arena, &job->warned, sentence);
    bz_warn(job->command, "%s", sentence);
}

int models_load(bz_job *job, const bz_list *paths, const model_settings *s, bz_models *m, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_infer_options options = {.batch = s->batch,
                                .n_binds = s->dims.n,
                                .trips = s->trips,
                                .ignore_declared = s->ignore_declared,
                                .as_written = s->as_written || s->train};
    const bz_bind *list = NULL;
    int rc = bz_binds_parse(s->dims.item, s->dims.n, &arena, &list, err), n = models_count(paths, s);
    if (!rc && paths->n && !n)
        rc = bz_fail(err, BZ_USAGE, "--dim takes up to %d sizes, all combinations counted", POINTS);
    int points = paths->n ? n / paths->n : 0;
    bz_bind *point = BZ_NEW(&arena, bz_bind, s->dims.n);
    options.binds = point;
    bz_arena_keep(&job->arena, m, end_models);
    for (int i = 0; i < n && !rc; i++) {
        BZ_SCOPED(bz_buf) what = {0};
        bz_binds_choose(list, s->dims.n, i % points, &arena, point, &what);
        rc = load_point(paths, i / points, &options, bz_buf_text(&what), m, err);
        if (!rc && s->train)
            rc = train(s, m, err);
    }
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < m->layers[i]->n_warnings; k++)
            warn_once(job, bz_arena_printf(&job->arena, "%s: %s", m->name[i], m->layers[i]->warnings[k]));
    return rc ? -1 : 0;
}

int models_draw(bz_buf *dot, const char *dot_path, const char *svg_path, bz_error *err)
{
    BZ_SCOPED(bz_buf) svg = {0};
    int rc = (dot_path && bz_output(dot_path, dot, err)) ||
                     (svg_path && (bz_graphviz_svg(bz_buf_text(dot), &svg, err) || bz_output(svg_path, &svg, err)))
                 ? -1
                 : 0;
    bz_buf_free(dot);
    return rc;
}
