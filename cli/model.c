#include "cli/model.h"

int models_load(const bz_command *command, const bz_list *paths, const model_settings *s, bz_models *m, bz_error *err)
{
    bz_arena arena = {0};
    bz_infer_options options = {
        .batch = s->batch, .n_binds = s->dims.n, .trips = s->trips, .ignore_declared = s->ignore_declared};
    int rc = bz_binds_parse(s->dims.item, s->dims.n, &arena, &options.binds, err) ||
             bz_models_load(paths->item, paths->n, &options, m, err);
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < m->layers[i]->n_warnings; k++)
            bz_warn(command, "%s: %s", paths->item[i], m->layers[i]->warnings[k]);
    bz_arena_free(&arena);
    return rc ? -1 : 0;
}
