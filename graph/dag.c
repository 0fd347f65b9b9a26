/* Who waits for whom, and where nodes could run side by side. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

bz_edges bz_dag_successors(const bz_dag *dag, bz_arena *arena)
{
    int *first = BZ_NEW(arena, int, dag->n + 2), *to = BZ_NEW(arena, int, dag->first[dag->n]);
    for (int e = 0; e < dag->first[dag->n]; e++)
        first[dag->pred[e] + 2]++;
    for (int i = 1; i <= dag->n; i++)
        first[i + 1] += first[i];
    for (int i = 0; i < dag->n; i++) /* moves first[i + 1] from where i begins to where it ends */
        for (int p = dag->first[i]; p < dag->first[i + 1]; p++)
            to[first[dag->pred[p] + 1]++] = i;
    return (bz_edges){first, to};
}

/* Depth-first with an own stack: a hostile chain must not overflow ours. */
int bz_dag_order(int n, const int *first, const int *pred, int *order)
{
    enum { NEW, OPEN, PLACED };
    int *stack = bz_alloc((size_t)n, sizeof *stack), *next = bz_alloc((size_t)n, sizeof *next), placed = 0, circle = -1;
    BZ_FREED unsigned char *state = bz_zeroed((size_t)n, sizeof *state);
    for (int root = 0; root < n && circle < 0; root++) {
        int depth = state[root] == NEW;
        stack[0] = root;
        next[root] = first[root];
        while (depth && circle < 0) {
            int i = stack[depth - 1];
            state[i] = OPEN;
            if (next[i] == first[i + 1]) {
                order[placed++] = i;
                state[i] = PLACED;
                depth--;
                continue;
            }
            int p = pred[next[i]++];
            if (state[p] == OPEN)
                circle = p;
            else if (state[p] == NEW)
                stack[depth++] = p, next[p] = first[p];
        }
    }
    free(stack);
    free(next);
    return circle;
}

/* Post-dominators: every path from node i to the end passes exit[i], the nearest such node. The end
 * is number n. Nodes are topologically ordered, so one pass from the back suffices; jump[] makes a
 * common ancestor in that tree a matter of logarithms (skew-binary ancestors). */
typedef struct {
    const bz_dag *dag;
    const unsigned char *role;
    bz_edges next;
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

static void find_exits(dominators *d)
{
    int n = d->dag->n;
    d->exit[n] = d->jump[n] = n;
    d->depth[n] = 0;
    for (int i = n - 1; i >= 0; i--) {
        int exit = d->next.first[i] < d->next.first[i + 1] ? d->next.to[d->next.first[i]] : n;
        for (int k = d->next.first[i] + 1; k < d->next.first[i + 1]; k++)
            exit = common_exit(d, exit, d->next.to[k]);
        set_exit(d, i, exit);
    }
}

/* Most nodes at one depth behind `fork` (-1: what waits for nothing) and before `join`: so many could
 * run at once. Ways do not count. level[] is scratch, all zero before and after. */
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
        if (!behind || d->role[i] == BZ_NODE_AHEAD)
            continue;
        bool counts = d->role[i] == BZ_NODE_WORK;
        deepest = deepest ? deepest : 1;
        level[i] = deepest + counts;
        if (counts && ++at_level[deepest - 1] > most)
            most = at_level[deepest - 1];
    }
    memset(level + fork + 1, 0, (size_t)(join - fork - 1) * sizeof *level);
    return most;
}

/* Where all that waits for nothing leads, seen as one fork. */
static int source_exit(const dominators *d, int *n_readers)
{
    int exit = -1;
    *n_readers = 0;
    for (int i = 0; i < d->dag->n; i++) {
        if (d->dag->first[i] < d->dag->first[i + 1] || d->role[i] == BZ_NODE_AHEAD)
            continue;
        exit = *n_readers ? common_exit(d, exit, i) : i;
        ++*n_readers;
    }
    return exit;
}

static int find_modules(const dominators *d, bz_module *modules)
{
    int n = 0, readers, exit = source_exit(d, &readers);
    BZ_FREED bool *joined = bz_alloc((size_t)d->dag->n + 1, sizeof *joined);
    int *level = bz_alloc((size_t)d->dag->n + 1, sizeof *level), at_level[BZ_MODULE_MOST + 2];
    memset(joined, 0, ((size_t)d->dag->n + 1) * sizeof *joined);
    memset(level, 0, ((size_t)d->dag->n + 1) * sizeof *level);
    for (int fork = -1; fork < d->dag->n; fork++) {
        int ways = fork < 0 ? readers : d->next.first[fork + 1] - d->next.first[fork],
            join = fork < 0 ? exit : d->exit[fork];
        if (ways < 2 || joined[join] || join - fork > BZ_MODULE_MOST)
            continue;
        int width = module_width(d, fork, join, level, at_level);
        if (width < 2)
            continue;
        joined[join] = true;
        modules[n++] = (bz_module){.begin = fork + 1, .end = join, .width = width};
    }
    free(level);
    return n;
}

void bz_dag_find_modules(bz_dag *dag, const unsigned char *role, bz_arena *arena)
{
    int n = dag->n + 1;
    BZ_SCOPED(bz_arena) work = {0};
    dominators d = {.dag = dag,
                    .role = role,
                    .next = bz_dag_successors(dag, &work),
                    .exit = BZ_NEW(&work, int, n),
                    .jump = BZ_NEW(&work, int, n),
                    .depth = BZ_NEW(&work, int, n)};
    find_exits(&d);
    bz_module *modules = BZ_NEW(arena, bz_module, n);
    dag->n_modules = find_modules(&d, modules);
    dag->modules = modules;
}
