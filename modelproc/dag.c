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

/* ---- parallel modules --------------------------------------------------------------------------- */

/* Post-dominators: every path from layer i to the end passes exit[i], the nearest such layer. The end
 * is number n. Layers are topologically ordered, so one pass from the back suffices; jump[] makes a
 * common ancestor in that tree a matter of logarithms (skew-binary ancestors). */
typedef struct {
    const bz_dag *dag;
    const bz_layers *layers;
    int *first, *next; /* successors, as first and pred are predecessors */
    int *exit, *jump, *depth;
} dominators;

static int ancestor_at(const dominators *d, int i, int depth)
{
    while (d->depth[i] > depth)
        i = d->depth[d->jump[i]] >= depth ? d->jump[i] : d->exit[i];
    return i;
}

static int common_exit(const dominators *d, int a, int b)
{
    int depth = d->depth[a] < d->depth[b] ? d->depth[a] : d->depth[b];
    a = ancestor_at(d, a, depth);
    b = ancestor_at(d, b, depth);
    while (a != b) {
        bool far = d->jump[a] != d->jump[b];
        a = far ? d->jump[a] : d->exit[a];
        b = far ? d->jump[b] : d->exit[b];
    }
    return a;
}

static void set_exit(dominators *d, int i, int exit)
{
    int e = exit, j = d->jump[e];
    d->exit[i] = e;
    d->depth[i] = d->depth[e] + 1;
    d->jump[i] = d->depth[e] - d->depth[j] == d->depth[j] - d->depth[d->jump[j]] ? d->jump[j] : e;
}

static void find_successors(dominators *d)
{
    const bz_dag *dag = d->dag;
    for (int e = 0; e < dag->first[dag->n]; e++)
        d->first[dag->pred[e] + 1]++;
    for (int i = 0; i < dag->n; i++)
        d->first[i + 1] += d->first[i];
    int *at = bz_alloc((size_t)dag->n, sizeof *at);
    memcpy(at, d->first, (size_t)dag->n * sizeof *at);
    for (int i = 0; i < dag->n; i++)
        for (int p = dag->first[i]; p < dag->first[i + 1]; p++)
            d->next[at[dag->pred[p]]++] = i;
    free(at);
}

static void find_exits(dominators *d)
{
    int n = d->dag->n;
    d->exit[n] = d->jump[n] = n;
    d->depth[n] = 0;
    for (int i = n - 1; i >= 0; i--) {
        int exit = d->first[i] < d->first[i + 1] ? d->next[d->first[i]] : n;
        for (int k = d->first[i] + 1; k < d->first[i + 1]; k++)
            exit = common_exit(d, exit, d->next[k]);
        set_exit(d, i, exit);
    }
}

/* A stretch that is longer than this is a network, not a module of one. */
enum { MAX_MODULE = 4096 };

/* Most layers at one depth behind `fork` (-1: the model's inputs) and before `join`: so many could
 * run at once. Views cost nothing and do not count. level[] is scratch, all zero before and after. */
static int module_width(const dominators *d, int fork, int join, int *level, int *at_level)
{
    int most = 0;
    memset(at_level, 0, (size_t)(join - fork) * sizeof *at_level);
    for (int i = fork + 1; i < join; i++) {
        int deepest = 0, n_pred = d->dag->first[i + 1] - d->dag->first[i];
        for (int p = d->dag->first[i]; p < d->dag->first[i + 1]; p++) {
            int from = d->dag->pred[p], l = from == fork ? 1 : from > fork ? level[from] : 0;
            deepest = l > deepest ? l : deepest;
        }
        bool behind = deepest > 0 || (fork < 0 && n_pred == 0);
        if (!behind || d->layers->layer[i].class == BZ_CONSTANT)
            continue;
        bool counts = d->layers->layer[i].class != BZ_VIEW;
        deepest = deepest ? deepest : 1;
        level[i] = deepest + counts;
        if (counts && ++at_level[deepest - 1] > most)
            most = at_level[deepest - 1];
    }
    memset(level + fork + 1, 0, (size_t)(join - fork - 1) * sizeof *level);
    return most;
}

/* Where the model's inputs lead, seen as one fork. */
static int source_exit(const dominators *d, int *n_readers)
{
    int exit = -1;
    *n_readers = 0;
    for (int i = 0; i < d->dag->n; i++) {
        if (d->dag->first[i] < d->dag->first[i + 1] || d->layers->layer[i].class == BZ_CONSTANT)
            continue;
        exit = *n_readers ? common_exit(d, exit, i) : i;
        ++*n_readers;
    }
    return exit;
}

/* One module for each join: that of the first fork that leads to it. */
static int find_modules(const dominators *d, bz_module *modules)
{
    int n = 0, readers, exit = source_exit(d, &readers);
    bool *joined = bz_alloc((size_t)d->dag->n + 1, sizeof *joined);
    int *level = bz_alloc((size_t)d->dag->n + 1, sizeof *level), at_level[MAX_MODULE + 2];
    memset(joined, 0, ((size_t)d->dag->n + 1) * sizeof *joined);
    memset(level, 0, ((size_t)d->dag->n + 1) * sizeof *level);
    for (int fork = -1; fork < d->dag->n; fork++) {
        int ways = fork < 0 ? readers : d->first[fork + 1] - d->first[fork], join = fork < 0 ? exit : d->exit[fork];
        if (ways < 2 || joined[join] || join - fork > MAX_MODULE)
            continue;
        int width = module_width(d, fork, join, level, at_level);
        if (width < 2)
            continue;
        joined[join] = true;
        modules[n++] = (bz_module){.begin = fork + 1, .end = join, .width = width};
    }
    free(joined);
    free(level);
    return n;
}

static void add_modules(bz_dag *dag, bz_layers *l)
{
    size_t n = (size_t)dag->n + 1;
    int *numbers = bz_alloc(4 * n + (size_t)dag->first[dag->n], sizeof *numbers);
    memset(numbers, 0, n * sizeof *numbers);
    dominators d = {.dag = dag,
                    .layers = l,
                    .first = numbers,
                    .exit = numbers + n,
                    .jump = numbers + 2 * n,
                    .depth = numbers + 3 * n,
                    .next = numbers + 4 * n};
    find_successors(&d);
    find_exits(&d);
    bz_module *modules = BZ_NEW(&l->arena, bz_module, n);
    dag->n_modules = find_modules(&d, modules);
    dag->modules = modules;
    free(numbers);
}

/* ---- edges --------------------------------------------------------------------------------------- */

const bz_dag *bz_dag_build(bz_layers *l)
{
    bz_dag *dag = BZ_NEW(&l->arena, bz_dag, 1);
    int *producer = producers(l), *first = BZ_NEW(&l->arena, int, l->n + 1);
    int *pred = BZ_NEW(&l->arena, int, count_edges(l, producer));
    int *seen = BZ_NEW(&l->arena, int, l->n + 1), n = 0; /* seen[p] == i + 1: p is a predecessor of i already */
    bz_value_id v;
    for (int i = 0; i < l->n; i++) {
        first[i] = n;
        for (int k = 0; (v = bz_node_reads(l->layer[i].node, k)) != BZ_READS_END; k++) {
            int p = v >= 0 ? producer[v] : -1;
            if (p < 0 || seen[p] == i + 1)
                continue;
            seen[p] = i + 1;
            pred[n++] = p;
        }
    }
    first[l->n] = n;
    *dag = (bz_dag){.n = l->n, .first = first, .pred = pred};
    add_modules(dag, l);
    return dag;
}
