/* Layers of a model in the graph of a processor's recording; private to the room. */
#ifndef BZ_WHATIF_LAYERS_H
#define BZ_WHATIF_LAYERS_H

#include "whatif/transformations.h"

/* Where layers were done: by a task, or between tasks by code that nobody recorded. */
typedef struct bz_layer_place {
    const int *layer; /* [n]: into the bound's layers */
    int n;
    const bz_aligned *row;
    uint32_t task;   /* BZ_NONE: between tasks */
    uint32_t behind; /* the last task before it that does layers; BZ_NONE: there is none */
    int64_t time;    /* that it took */
    double share;    /* of its layers' work that it did, by time: 1, or less where several calls did a layer */
} bz_layer_place;

typedef struct bz_layer_map {
    bz_flow *flow;
    bz_whatif_asked *asked;
    bz_layer_place *place; /* in the order of the program */
    int n;
    bool *works; /* [n_tasks]: does layers; of the flow as it was */
    uint32_t n_tasks;
    int64_t call[BZ_WHATIF_SIDES]; /* the framework's own time behind a call: shortest, lower quartile, median */
    double
        slower; /* the recording's calls against their records: so many times as long; unknown: as the machine is busy */
    double anew;                     /* ns that the recording took to get memory anew for a byte that a layer writes */
    bool keeps_memory;               /* no memory is handed out anew in an iteration of the changed program */
    uint32_t *constant, n_constants; /* tasks that compute on constants alone */
    uint32_t *normalized, n_normalized; /* tasks whose batch normalization the model has in its weights */
} bz_layer_map;

/* False where there is no model, or the recording did not run on a processor; `asked` says why then. */
bool bz_layer_map_make(bz_flow *flow, bz_whatif_asked *asked, bz_layer_map *out);

/* What the place took becomes so many ns: of its task, or of the time between tasks. */
void bz_layer_set(const bz_layer_map *map, const bz_layer_place *place, int64_t time);

/* The call of a place: its task, or one that is inserted where the work was done that nobody recorded. It takes `time`. */
void bz_layer_call(const bz_layer_map *map, bz_layer_place *place, int64_t time, int64_t gap);

bool bz_layer_is_reorder(const bz_task *t);
static inline double bz_call_bytes(const bz_call *call) /* that a reorder reads; 0: not told */
{
    return call->elements > 0 ? (double)call->elements * bz_dtype_bits(call->x.dtype) / 8 : 0;
}
/* What a reorder of so many bytes takes: as those of the recording whose size is nearest, and at the short end of the
 * interval, and where the changed program keeps its memory, as the machine was measured, with memory that is not handed out anew. Where operators hide theirs,
 * between what the machine's rate says and what these take. */
int64_t bz_layer_reorder(const bz_layer_map *map, double bytes);
/* Bytes that the operator of a place writes besides its input, and *seconds that it takes above the library's record: PyTorch's convolutions by oneDNN
 * bring input and weights into blocks at each call, compute a result in blocks, and bring that back. Memory that the system hands out anew for these is
 * part of the time. 0: it tells nothing; code for products of matrices reads what lies in rows. */
double bz_layer_hidden(const bz_layer_map *map, const bz_layer_place *place, double *seconds);
/* Nanoseconds of a place that went to memory that the system handed out anew. What it was for nobody counted: as much for each byte that a layer or a reorder writes. */
int64_t bz_layer_anew(const bz_layer_map *map, const bz_layer_place *place);
/* How many times as long as its record a call took; the map's where no record of it is known. */
double bz_layer_slower(const bz_layer_map *map, const bz_layer_place *place);

static inline int64_t bz_layer_ns(double seconds)
{
    return seconds < 1e-9 * (double)BZ_FLOW_LONGEST ? (int64_t)(1e9 * seconds + 0.5) : BZ_FLOW_LONGEST;
}

#endif
