/* The critical path of a recording, as HTA finds it: the longest way through a graph of what had to wait for what.
 * Private to tables/.
 *
 * Each event of the host (operator, runtime call) and each work of a device has two nodes, its start and its end. What happens on
 * a thread one after the other, within its outermost event, is a chain of edges as long as the time between; between outermost events, the
 * edge has no length: the thread may have slept. Work of a device has an edge from its start to its end, and one to its start: from
 * the start of its launch, where the stream was empty then, else from the end of the work before. Waits add edges without length:
 * from the work that is waited for to the end of the call that waits, or to the start of the work that waits. A call that waits has
 * no length of its own. Launches, copies and allocations of different threads that overlap stand in a line for the runtime's lock, by
 * their ends: which one the lock held up is told by nothing else. PyTorch's backward pass goes on where its forward pass ends, on a
 * thread of its own: both are one chain. */
#ifndef BZ_TABLES_CRITICAL_H
#define BZ_TABLES_CRITICAL_H

#include "tables/parts.h"

enum { CRITICAL_KINDS = 5 }; /* operators, runtime calls, kernels, copies, fills */
enum { CRITICAL_NONE = 0x7fffffff };

/* Calls that return when something is done; calls that hold the runtime's lock. */
enum { CRITICAL_WAITS = 1, CRITICAL_LOCKS = 2 };

typedef struct critical_edge {
    uint32_t to, from; /* nodes */
} critical_edge;

typedef struct critical {
    bz_tables *m;
    bz_tables narrow; /* *m, where the recording is so large that the path is of its typical iteration */
    uint32_t first[CRITICAL_KINDS +
                   1];   /* number of the first event of each kind; an event's nodes are 2 * number, and + 1 */
    uint32_t *before;    /* [nodes] 1 + the node that leads to it; the top bit: without length; 0: none */
    int64_t *length;     /* [nodes] of the longest way there + 1; 0: not known yet */
    uint32_t *around;    /* [host events] 1 + the event around it */
    bool *present;       /* [events] has nodes */
    uint8_t *trait;      /* [strings] CRITICAL_…, of calls of that name */
    critical_edge *edge; /* besides those in `before`, without length; by `to` */
    size_t n_edges;
    uint32_t *launch;     /* events that were launched, of all streams, of each by the time of their launch */
    size_t *launch_first; /* [lanes + 1] in `launch` */
    uint32_t *path;       /* nodes, from its start to its end */
    size_t n_path;
} critical;

/* False where the recording has nothing that takes time. `critical_end` frees it in any case. */
bool critical_find(bz_tables *m, critical *c);
void critical_end(critical *c);

bz_event_kind critical_kind(const critical *c, uint32_t event, size_t *i);
int64_t critical_time(const critical *c, uint32_t node);

/* The parts of critical_find. */
void critical_chain_host(critical *c);   /* critical_host.c */
void critical_chain_device(critical *c); /* critical_device.c */
void critical_add(critical *c, uint32_t to, uint32_t from);

/* What an edge of the path is, by its nodes. */
typedef enum {
    BOUND_NOTHING,
    BOUND_HOST,
    BOUND_COMPUTE,
    BOUND_COMMUNICATION,
    BOUND_MEMORY,
    BOUND_KERNEL_DELAY,
    BOUND_LAUNCH_DELAY
} critical_bound;
enum { CRITICAL_BOUNDS = BOUND_LAUNCH_DELAY + 1 };
critical_bound critical_of(const critical *c, size_t step,
                           uint32_t *event); /* path[step] to path[step + 1]; whose time it is */

#endif
