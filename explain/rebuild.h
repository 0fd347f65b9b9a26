/* Operators of frameworks as nodes of a model. Private to explain/.
 *
 *   rebuild_operators.c   which operators of an iteration count, and the model of their nodes
 *   rebuild_nodes.c       the table of operators, and a function for each that makes nodes of it
 *   rebuild_windows.c     strides and padding that were not recorded */
#ifndef BZ_EXPLAIN_REBUILD_H
#define BZ_EXPLAIN_REBUILD_H

#include "explain/align.h"

enum { REBUILD_SPATIAL = 3 };

typedef struct rebuild_making {
    const bz_trace *t;
    const bz_events *e; /* its operators */
    bz_arena *arena;
    bz_draft draft; /* of the nodes, each with operands of its own */
    int n_values;
    size_t op; /* that is looked at */
    const bz_operator *o;
    char base[64];     /* its name, without the framework's and without what says that it overwrites its operand */
    uint32_t *made_by; /* of each node: the operator */
    int n_made;
    int guessed; /* nodes whose window was not recorded, and no operator behind tells the result */
} rebuild_making;

typedef struct rebuild_window {
    bool turned; /* of a transposed convolution: the window goes from the result to the input */
    int64_t kernel[REBUILD_SPATIAL], stride[REBUILD_SPATIAL], pad[2 * REBUILD_SPATIAL], dilation[REBUILD_SPATIAL];
} rebuild_window;

/* Makes the nodes of the operator; false where it is none that is known, or its operands tell too little. */
bool rebuild_operator(rebuild_making *m);
bool rebuild_is_quiet(const char *base); /* what moves no data, or what no layer is */

/* The sizes of the operator's result by who reads it: it has the input's images and so many channels, and fits the window,
 * of which the kernel is known and the rest is filled. Without a window: is no larger than the input. NULL: nobody tells. */
const int64_t *rebuild_result(const rebuild_making *m, const bz_operand_seen *x, int64_t channels, rebuild_window *w);
/* The most usual window: as large a result as the input. */
void rebuild_guess_window(rebuild_making *m, int n, rebuild_window *w);
/* The kernel of a pooling that was not recorded: the first of the usual ones that leads to the result. */
bool rebuild_guess_kernel(rebuild_making *m, const bz_operand_seen *x, rebuild_window *w);

#endif
