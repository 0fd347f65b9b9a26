/* What a plan is made of. Private to generator/. */
#ifndef BZ_GENERATOR_PLAN_H
#define BZ_GENERATOR_PLAN_H

#include "generator/generator.h"

typedef struct plan_model {
    const bz_plan_place *place;
    int n_places;
    bz_lowered *lowered; /* NULL: no patterns were looked for */
} plan_model;

struct bz_plan {
    bz_plan_options options;
    bz_plan_layer *layer;
    bz_plan_problem *problem;
    const char **model;
    plan_model *places; /* [n_models] */
    int n_layers, n_problems, n_models;
    bz_map layer_map, problem_map;
    bz_arena arena;
    bz_buf key;
};

/* A mode that computes f32 in fewer bits counts only where it was asked for. */
bool plan_allows_math(const bz_plan_options *o, const char *math);
/* Channels last and blocks of channels exist for such problems only. */
bool plan_has_space(const bz_problem *p);

#endif
