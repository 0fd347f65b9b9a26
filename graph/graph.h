/* graph: what can be said of any directed graph without circles, whatever its nodes stand for.
 *
 *   bz_dag_*        who waits for whom: successors, order, parallel modules
 *   bz_schedule_*   nodes with costs -> one after the other, at once, on lanes of different resources
 *   bz_cover        the cheapest way to run a graph by nodes and groups of nodes
 *   bz_labels_*     the cheapest labels of nodes, with conversions between them
 *
 * The same input gives the same result. Costs are doubles; where all are multiples of one power of two (or whole numbers, such
 * as nanoseconds) and the sums stay below 2^53 of it, sums are exact, and so are the equalities that are promised below. */
#ifndef BZ_GRAPH_H
#define BZ_GRAPH_H

#include "base/arena.h"

#include <stdbool.h>

/* ---- who waits for whom -------------------------------------------------------------------- */

/* Nodes are numbered in topological order: every predecessor has a smaller number. */
typedef struct bz_dag {
    int n;
    const int *first; /* [n + 1]: predecessors of i are pred[first[i]] … pred[first[i + 1] - 1] */
    const int *pred;
    int n_modules;
    const struct bz_module *modules;
} bz_dag;

/* Nodes between a fork and the join where all its ways meet again, with at least two among them that
 * need not wait for one another. Modules may lie in one another; in order of the fork. */
typedef struct bz_module {
    int begin, end; /* behind the fork (0 where all that waits for nothing stands behind it), up to the join (or n) */
    int width;      /* most nodes that could run at once, by depth */
} bz_module;

/* Successors of i, ascending: to[first[i]] … to[first[i + 1] - 1]. */
typedef struct bz_edges {
    const int *first, *to;
} bz_edges;

bz_edges bz_dag_successors(const bz_dag *dag, bz_arena *arena);

/* For edges whose numbers are in no order: order[] gets the nodes so that each stands behind what it waits for; nodes that are
 * ordered already keep their order, and what is missing is put right before the first that needs it. Returns -1, or a node of
 * a circle. */
int bz_dag_order(int n, const int *first, const int *pred, int *order);

/* What a node is to the width of a module: work counts, a way through (a view) does not, and what is there before anything runs
 * (a constant) stands behind no fork. */
typedef enum bz_node_role { BZ_NODE_WORK, BZ_NODE_WAY, BZ_NODE_AHEAD } bz_node_role;

/* Sets dag->modules, in the arena: one for each join, that of the first fork that leads to it; none of more than
 * BZ_MODULE_MOST nodes, which is a network and no module of one. */
enum { BZ_MODULE_MOST = 4096 };
void bz_dag_find_modules(bz_dag *dag, const unsigned char *role, bz_arena *arena);

/* ---- schedules ------------------------------------------------------------------------------ */

/* The costs are one per node of the dag, at least 0. */

double bz_schedule_sequential(const double *seconds, int n);

/* The longest path: the latency if every independent node ran at once. `node` are the nodes on
 * it, first to last; of several longest ones the one whose nodes have the smallest numbers. */
typedef struct bz_path {
    double seconds;
    const int *node;
    int n;
} bz_path;

void bz_schedule_parallel(const bz_dag *dag, const double *seconds, bz_arena *arena, bz_path *out);

/* A class of equal lanes: the streams of a device, the threads of a host, a link. */
typedef struct bz_resource {
    int lanes; /* at least 1 */
    bool
        in_order; /* a lane runs its tasks by their numbers, as a CUDA stream or a thread does. All are bound to a lane. */
} bz_resource;

/* Which of several tasks that wait for one lane goes first; of equal ones the one with the smaller number. */
typedef enum bz_policy {
    BZ_LONGEST_FIRST, /* the one with the longest way to the end */
    BZ_READY_FIRST,   /* the one that waits longest */
    BZ_GIVEN_FIRST    /* the one with the greatest bz_tasks.priority */
} bz_policy;

typedef struct bz_tasks {
    const bz_dag *dag;
    const double *seconds;
    const int *resource; /* [n]: where it runs; -1: nowhere, it takes time and waits for nobody else. NULL: all on 0 */
    const int *lane;     /* [n]: the lane of its resource that it is bound to; -1: any, in order 0. NULL: all -1 */
    const bz_resource *resources;
    int n_resources;
    bz_policy policy;
    const double *priority; /* [n], for BZ_GIVEN_FIRST */
} bz_tasks;

/* By list scheduling: no lane idles while a task that may run there is ready. start[i] (NULL: not asked for) is when task i
 * starts; lane[i] (NULL likewise) the lane of its resource: where it is free to choose, that of the predecessor that ended
 * last if it is free, else the free one with the smallest number. What costs nothing takes no lane, -1, but keeps its place in
 * an order. Returns when all has ended: at least the longest path, at most the sum. It is a schedule, and not the best one:
 * cheaper tasks and more lanes may lengthen it (Graham's anomaly).
 * O((n + edges) log n); each start on a resource with bound tasks looks at all its lanes besides. */
double bz_schedule_list(const bz_tasks *tasks, double *start, int *lane);

/* Latency on k equal lanes, k = 1, 2, 4, … until it is the longest path's or BZ_STREAMS are tried; longest way first.
 *
 * parallel <= k streams <= sequential holds for every k, and k = 1 is sequential exactly. What fits on fewer streams fits on
 * more, so each k tells the best schedule found up to it. */
enum { BZ_STREAMS = 7 };
typedef struct bz_streams {
    int n;
    struct bz_streams_tried {
        int k;
        double seconds;
    } at[BZ_STREAMS];
} bz_streams;

void bz_schedule_streams(const bz_dag *dag, const double *seconds, bz_streams *out);

/* What a parallel module costs one after the other and at once. Only nodes behind its fork count. */
typedef struct bz_module_cost {
    int nodes;
    double sequential, parallel;
} bz_module_cost;

bz_module_cost bz_schedule_module(const bz_dag *dag, const double *seconds, const bz_module *module);

/* ---- cover ---------------------------------------------------------------------------------- */

/* Nodes ascending, each once. NAN seconds: the group cannot be used. */
typedef struct bz_cover_group {
    const int *node;
    int n;
    double seconds;
} bz_cover_group;

/* Chooses groups that share no node so that they and the nodes that none of them covers cost least
 * together: taken[g] is set for these, and cleared for the others. Returns the sum. A node without a
 * cost (NAN) counts 0; that something is missing is for the caller to say.
 *
 * The choice is exact, but where more than BZ_COVER_WIDTH different sets of covered nodes are open at
 * once within one tangle of overlapping groups: then the cheapest so many are followed. Never dearer than
 * the nodes alone. The arena holds the work.
 *
 * Any choice keeps a graph acyclic if only the last node of each group is read from outside of it and
 * all others lead to it (fusion patterns see to that): a way from group to group leaves by a last node
 * and so goes from last node to later last node, and never comes back. */
enum { BZ_COVER_WIDTH = 4096 };

double bz_cover(int n_nodes, const double *seconds, int n_groups, const bz_cover_group *group, bool *taken,
                bz_arena *arena);

/* ---- labels --------------------------------------------------------------------------------- */

/* Each step reads values and makes one in a label of its choice (a layout, a data type); a value is converted once into each
 * label that somebody wants it in, from the cheapest that it has by then. Exact as long as no more than BZ_LABELS_WIDTH different
 * states (in which labels are the values that somebody still wants) are open at once, which holds on chains and on most graphs;
 * then the cheapest so many are followed. */
enum { BZ_LABELS = 3, BZ_LABELS_WIDTH = 512 };

typedef struct bz_label_step {
    const int *in;         /* [n_in]: values */
    int n_in, out;         /* -1: none */
    int n;                 /* options; 0: it works in label 0, for nothing */
    const int *label;      /* [n] */
    const double *seconds; /* [n] */
    const unsigned
        *plain; /* [n_in]: a bit for each label of the step in which it reads that value in label 0; NULL: none */
} bz_label_step;

typedef struct bz_label_value {
    double convert[BZ_LABELS][BZ_LABELS]; /* seconds: from, to */
    bool outside;                         /* given from outside in label 0, or wanted there */
} bz_label_value;

/* The label in which a step that works in `label` reads its value k. */
int bz_labels_read(const bz_label_step *step, int k, int label);

/* taken[i]: option of step i. Returns the sum. *states (may be NULL): most states at once; *beam (likewise): some were dropped. */
double bz_labels_choose(const bz_label_step *step, int n, const bz_label_value *value, int n_values, int *taken,
                        int *states, bool *beam);

#endif
