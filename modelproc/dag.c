/* Who waits for whom, and where layers could run side by side. */
#include "modelproc/modelproc.h"

#include <stdlib.h>
#include <string.h>

/* Constants are there before anything runs: nobody waits for them. */
static int count_edges(const bz_layers *l, const int *producer)
{
    int n = 0;
    bz_value_id v;
    for (int i = 0; i < l->n; i++)
        for (int k = 0; (v = bz_node_reads(l->layer[i].node, k)) != BZ_READS_END; k++)
            n += v >= 0 && producer[v] >= 0;
    return n;
}

static int *producers(bz_layers *l)
{
    int *producer = BZ_NEW(&l->arena, int, l->model->n_values);
    memset(producer, 0xff, (size_t)l->model->n_values * sizeof *producer);
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < l->layer[i].n_out && l->layer[i].class != BZ_CONSTANT; k++)
            if (l->layer[i].node->out[k] >= 0)
                producer[l->layer[i].node->out[k]] = i;
    return producer;
}

/* Depth of a layer within a stretch: how many layers of it must run before. The most layers at one
 * depth is how many could run at once. */
static int stretch_width(const bz_dag *dag, const bz_layers *l, int begin, int end, int *depth, int *at_depth)
{
    int most = 0;
    for (int i = begin; i < end; i++)
        at_depth[i - begin] = 0;
    for (int i = begin; i < end; i++) {
        depth[i] = 0;
        if (l->layer[i].class == BZ_CONSTANT)
            continue;
        for (int p = dag->first[i]; p < dag->first[i + 1]; p++)
            if (dag->pred[p] >= begin && depth[dag->pred[p]] >= depth[i])
                depth[i] = depth[dag->pred[p]] + 1;
        int n = ++at_depth[depth[i]];
        most = n > most ? n : most;
    }
    return most;
}

/* Walks the layers in order and watches how many results are still waiting for a reader: where a
 * layer leaves only its own, every path passes through it. Graph inputs count as one source: they
 * are there from the start. */
static int find_modules(const bz_dag *dag, const bz_layers *l, const int *last_reader, bz_module *modules)
{
    int n = 0, begin = 0, open_until = -1;
    int *depth = bz_alloc((size_t)dag->n, sizeof *depth), *at_depth = bz_alloc((size_t)dag->n, sizeof *at_depth);
    for (int i = 0; i < dag->n; i++) {
        if (l->layer[i].class == BZ_CONSTANT)
            continue;
        bool cut = open_until <= i;
        if (cut) {
            int width = i >= begin ? stretch_width(dag, l, begin, i + 1, depth, at_depth) : 0;
            if (width > 1)
                modules[n++] = (bz_module){.begin = begin, .end = i + 1, .width = width};
            begin = i + 1;
        }
        open_until = last_reader[i] > open_until ? last_reader[i] : open_until;
    }
    if (begin < dag->n) {
        int width = stretch_width(dag, l, begin, dag->n, depth, at_depth);
        if (width > 1)
            modules[n++] = (bz_module){.begin = begin, .end = dag->n, .width = width};
    }
    free(depth);
    free(at_depth);
    return n;
}

const bz_dag *bz_dag_build(bz_layers *l)
{
    bz_dag *dag = BZ_NEW(&l->arena, bz_dag, 1);
    int *producer = producers(l), *first = BZ_NEW(&l->arena, int, l->n + 1);
    int *pred = BZ_NEW(&l->arena, int, count_edges(l, producer)), *last_reader = BZ_NEW(&l->arena, int, l->n + 1);
    int *seen = BZ_NEW(&l->arena, int, l->n + 1), n = 0; /* seen[p] == i + 1: p is a predecessor of i already */
    bz_value_id v;
    for (int i = 0; i < l->n; i++) {
        first[i] = n;
        last_reader[i] = -1;
        for (int k = 0; (v = bz_node_reads(l->layer[i].node, k)) != BZ_READS_END; k++) {
            int p = v >= 0 ? producer[v] : -1;
            if (p < 0 || seen[p] == i + 1)
                continue;
            seen[p] = i + 1;
            pred[n++] = p;
            last_reader[p] = i;
        }
    }
    first[l->n] = n;
    *dag = (bz_dag){.n = l->n, .first = first, .pred = pred};
    bz_module *modules = BZ_NEW(&l->arena, bz_module, l->n);
    dag->n_modules = find_modules(dag, l, last_reader, modules);
    dag->modules = modules;
    return dag;
}
