#include "tests/cuda/models.h"

#include "generator/generator.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct loaded {
    bz_model *model;
    bz_layers *layers;
} loaded;

void problems_of(char **paths, int n, bz_buf *lines)
{
    bz_plan_options options = {0};
    bz_plan *plan = bz_plan_new(&options);
    loaded *all = calloc((size_t)n + 1, sizeof *all);
    for (int i = 0; i < n; i++) {
        bz_error err = {0};
        bz_infer_options infer = {.batch = 1};
        if (bz_model_load(paths[i], &all[i].model, &err) || bz_layers_infer(all[i].model, &infer, &all[i].layers, &err))
            fprintf(stderr, "left out: %s\n", err.text);
        else
            bz_plan_add(plan, all[i].layers, paths[i]);
    }
    const bz_plan_problem *problem;
    int n_problems = bz_plan_problems(plan, &problem);
    for (int i = 0; i < n_problems; i++)
        if (problem[i].problem->kind == BZ_PROBLEM_CONV || problem[i].problem->kind == BZ_PROBLEM_POOL ||
            problem[i].problem->kind == BZ_PROBLEM_PAD)
            bz_buf_printf(lines, "%s\n", problem[i].text);
    bz_plan_free(plan);
    for (int i = 0; i < n; i++) {
        if (all[i].layers)
            bz_layers_free(all[i].layers);
        if (all[i].model)
            bz_model_free(all[i].model);
    }
    free(all);
}
