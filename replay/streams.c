/* Steps on several streams of a device: by the list schedule of the bound on k streams, layers in the order in which they
 * start there. */
#include "base/sort.h"
#include "replay/constants.h"
#include "replay/replay.h"

#include <math.h>
#include <stdlib.h>

typedef struct graph {
    const bz_replay_plan *p;
    int *producer; /* of a value: the unit whose step makes it; -1: it comes from outside, or is a constant */
    bz_dag dag;
    double *seconds, *start;
    int *stream;
} graph;

/* Units are in topological order, and so are their predecessors. */
static void find_predecessors(graph *g)
{
    const bz_replay_plan *p = g->p;
    int most = 0, n = 0;
    for (int i = 0; i < p->n_steps; i++)
        most += p->step[i].n_in;
    int *first = bz_zeroed((size_t)p->n_units + 1, sizeof *first), *pred = bz_alloc((size_t)most + 1, sizeof *pred);
    for (int u = 0; u < p->n_units; u++) {
        const bz_replay_unit *unit = &p->unit[u];
        for (int i = unit->first; i < unit->first + unit->n_steps; i++) {
            const bz_replay_step *s = &p->step[i];
            for (int k = 0; k < s->n_in && !s->once; k++) {
                int from = s->in[k] < 0 ? -1 : g->producer[s->in[k]];
                if (from >= 0 && from != u)
                    pred[n++] = from;
            }
            g->producer[s->out] = s->once ? -1 : u;
            for (int k = 0; k < s->n_more; k++)
                g->producer[s->more[k]] = g->producer[s->out];
        }
        first[u + 1] = n;
    }
    g->dag = (bz_dag){.n = p->n_units, .first = first, .pred = pred};
}

/* What a unit is expected to take. A view takes nothing; a loop has no record, but its time. */
static double expected(const bz_replay_plan *p, const bz_replay_unit *unit)
{
    double seconds = 0;
    for (int i = unit->first; i < unit->first + unit->n_steps; i++) {
        const bz_replay_choice *c = &p->choice[i];
        bool runs = p->step[i].kind != BZ_STEP_VIEW && !p->step[i].once;
        double own = c->n ? c->option[c->taken].seconds : 0;
        seconds += runs ? fmax(own, GUESS_LAUNCH) + c->conversion : 0;
    }
    return bz_tick(seconds);
}

/* A layer that costs nothing goes where its operand was made. */
static void settle_streams(graph *g)
{
    for (int u = 0; u < g->p->n_units; u++)
        if (g->stream[u] < 0)
            g->stream[u] = g->dag.first[u + 1] > g->dag.first[u] ? g->stream[g->dag.pred[g->dag.first[u]]] : 0;
}

typedef struct entry {
    double start;
    int unit;
} entry;

BZ_SORTS(earlier_first, entry, BZ_THEN(BZ_ORDER(p->start, q->start), BZ_ORDER(p->unit, q->unit)));

/* Constants first, wherever they are wanted; then the units as they start. */
static void order_steps(bz_replay_plan *p, const graph *g)
{
    BZ_FREED entry *all = bz_alloc((size_t)p->n_units + 1, sizeof *all);
    int n = 0;
    for (int u = 0; u < p->n_units; u++)
        all[u] = (entry){g->start[u], u};
    qsort(all, (size_t)p->n_units, sizeof *all, earlier_first);
    for (int i = 0; i < p->n_steps; i++)
        if (p->step[i].once)
            p->order[n++] = i;
    for (int k = 0; k < p->n_units; k++) {
        const bz_replay_unit *unit = &p->unit[all[k].unit];
        for (int i = unit->first; i < unit->first + unit->n_steps; i++) {
            if (p->step[i].once)
                continue;
            p->step[i].stream = g->stream[all[k].unit];
            p->order[n++] = i;
        }
    }
}

void bz_replay_schedule(bz_replay_plan *p, int streams)
{
    p->streams = streams;
    p->scheduled = p->seconds + p->conversions;
    if (!p->order)
        p->order = BZ_NEW(&p->arena, int, p->n_steps + 1);
    for (int i = 0; i < p->n_steps; i++) {
        p->order[i] = i;
        p->step[i].stream = 0;
    }
    if (streams < 2)
        return;
    graph g = {.p = p,
               .producer = bz_alloc((size_t)p->n_values + 1, sizeof *g.producer),
               .seconds = bz_alloc((size_t)p->n_units + 1, sizeof *g.seconds),
               .start = bz_zeroed((size_t)p->n_units + 1, sizeof *g.start),
               .stream = bz_alloc((size_t)p->n_units + 1, sizeof *g.stream)};
    for (int i = 0; i < p->n_values; i++)
        g.producer[i] = -1;
    find_predecessors(&g);
    for (int u = 0; u < p->n_units; u++)
        g.seconds[u] = expected(p, &p->unit[u]);
    bz_tasks tasks = {
        .dag = &g.dag, .seconds = g.seconds, .resources = &(bz_resource){.lanes = streams}, .n_resources = 1};
    p->scheduled = bz_schedule_list(&tasks, g.start, g.stream);
    settle_streams(&g);
    order_steps(p, &g);
    free((int *)g.dag.first);
    free((int *)g.dag.pred);
    free(g.producer);
    free(g.seconds);
    free(g.start);
    free(g.stream);
}
