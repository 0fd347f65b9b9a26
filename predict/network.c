/* A model at a batch, as problems, and as those of them that have records. */
#include "predict/evaluate.h"

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
    if (bz_models_load(&path, 1, &(bz_infer_options){.batch = batch, .as_written = true}, &out->models, &unread)) {
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
    if (net->as_file && !net->behind[layer] &&
        (net->batch % own || !bz_problem_batched(problem, (double)net->batch / (double)own, &p)))
        return NULL;
    return bz_problem_text(&p, arena);
}

/* What a layer does by this way counts for the whole network. */
static void add_whole(const bz_network *net, int layer, const bz_alternative *way, bz_arena *arena, bz_workload *out)
{
    for (int n = 0; n < way->n; n++) {
        const char *text = bz_network_text(net, layer, &way->problem[n], arena);
        bz_problem problem;
        bz_shape shape;
        if (!text || bz_problem_parse(text, &problem, NULL))
            continue;
        bz_shape_of(&problem, &shape);
        out->flops += shape.product ? shape.flops : 0;
        out->bytes += shape.bytes;
    }
}

/* Counts the first way through a layer all of whose problems are in the table; where there is none, the first at all is what lacks. */
static void add_layer(const bz_samples *s, const bz_network *net, int layer, bz_arena *arena, int *times,
                      bz_workload *out)
{
    bz_lowering low;
    const bz_alternative *lacking = NULL;
    bz_lower(&net->models.layers[0]->layer[layer], BZ_UNDEFINED, arena, &low);
    for (int a = 0; a < low.n; a++) {
        const bz_alternative *way = &low.alternative[a];
        int at[8], n = 0;
        for (; n < way->n && n < 8; n++) {
            const char *text = bz_network_text(net, layer, &way->problem[n], arena);
            uint32_t row = text ? bz_map_get(&s->map, text, strlen(text)) : BZ_MAP_NONE;
            if (row == BZ_MAP_NONE)
                break;
            at[n] = (int)row;
        }
        if (way->modelled)
            continue;
        lacking = lacking ? lacking : way;
        if (n < way->n)
            continue;
        for (int i = 0; i < n; i++)
            times[at[i]]++;
        add_whole(net, layer, way, arena, out);
        return;
    }
    if (lacking)
        add_whole(net, layer, lacking, arena, out);
}

int bz_workload_make(const bz_samples *s, const char *path, int64_t batch, bz_arena *arena, bz_workload *out,
                     bz_error *err)
{
    bz_network net;
    const char *base = bz_file_name(path);
    BZ_SCOPED(bz_arena) own = {0};
    *out = (bz_workload){.name = bz_arena_strn(arena, base, strcspn(base, ".")), .batch = batch};
    size_t len = strlen(base);
    if (len > 5 && !strcmp(base + len - 5, ".onnx"))
        out->name = bz_arena_strn(arena, base, len - 5);
    if (bz_network_load(path, batch, &net, err))
        return -1;
    int *times = BZ_NEW(&own, int, s->n);
    for (int i = 0; i < net.models.layers[0]->n; i++)
        add_layer(s, &net, i, &own, times, out);
    for (int i = 0; i < s->n; i++)
        out->n += times[i] > 0;
    int *problem = BZ_NEW(arena, int, out->n), *often = BZ_NEW(arena, int, out->n), n = 0;
    for (int i = 0; i < s->n; i++)
        if (times[i]) {
            problem[n] = i;
            often[n++] = times[i];
        }
    out->problem = problem;
    out->times = often;
    bz_network_free(&net);
    return 0;
}
