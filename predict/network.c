/* A model at a batch, as problems. */
#include "predict/network.h"

#include "predict/predict.h"

#include <string.h>

static const bool *behind_reshape(bz_layers *l)
{
    const bz_dag *dag = bz_dag_build(l);
    bool *behind = BZ_NEW(&l->arena, bool, l->n);
    for (int i = 0; i < l->n; i++) {
        behind[i] = !strcmp(l->layer[i].kind, "reshape");
        for (int k = dag->first[i]; k < dag->first[i + 1]; k++)
            behind[i] |= behind[dag->pred[k]];
    }
    return behind;
}

int bz_network_load(const char *path, int64_t batch, bz_network *out, bz_error *err)
{
    bz_error unread; /* of the first try */
    *out = (bz_network){.batch = batch};
    if (bz_models_load(&path, 1, &(bz_infer_options){.batch = batch}, &out->models, &unread)) {
        bz_models_free(&out->models);
        *out = (bz_network){.batch = batch, .as_file = true};
        if (bz_models_load(&path, 1, &(bz_infer_options){0}, &out->models, err)) {
            bz_models_free(&out->models);
            return -1;
        }
    }
    bz_layers *l = out->models.layers[0];
    out->behind = out->as_file ? behind_reshape(l) : NULL;
    for (int i = 0; i < l->n; i++)
        bz_map_add(&out->by_name, l->layer[i].name, strlen(l->layer[i].name), (uint32_t)i);
    return 0;
}

void bz_network_free(bz_network *n)
{
    bz_map_free(&n->by_name);
    bz_models_free(&n->models);
}

const char *bz_network_text(const bz_network *net, int layer, const bz_problem *problem, bz_arena *arena)
{
    bz_problem p = *problem;
    int64_t own = net->models.layers[0]->batch > 0 ? net->models.layers[0]->batch : 1;
    bz_buf text = {0};
    if (net->as_file && !net->behind[layer] &&
        (net->batch % own || !bz_problem_batched(problem, (double)net->batch / (double)own, &p)))
        return NULL;
    bz_problem_print(&p, &text);
    const char *copy = bz_arena_str(arena, text.data);
    bz_buf_free(&text);
    return copy;
}
