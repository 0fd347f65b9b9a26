/* The layers of one iteration as a recording shows them: its outermost operators. Private to tables/. */
#ifndef BZ_TABLES_LAYERS_H
#define BZ_TABLES_LAYERS_H

#include "runtime/gpus.h"
#include "tables/parts.h"

#include <math.h>

/* What operators compute by their shapes. Not told: NAN. */
typedef struct layer_work {
    double flops, reads, writes; /* operations, bytes */
    int bytes;                   /* of the widest number that is multiplied */
} layer_work;

static const layer_work NOT_TOLD = {.flops = NAN, .reads = NAN, .writes = NAN};

typedef struct layer {
    size_t op;                   /* event */
    int64_t kernels;             /* how many */
    int64_t kernel_time, memory; /* nanoseconds; bytes that were allocated in it */
    layer_work work;
    double occupancy; /* sum of kernels' shares by their time */
} layer;

typedef struct layers {
    bz_tables *m;
    layer *layer; /* in the order of their starts */
    uint32_t n;
    uint32_t *of_op; /* [operators] the layer around it, or BZ_NONE */
    uint32_t
        *told; /* [operators] the operator around it, or itself, that tells its work: index in `work`, or BZ_NONE */
    struct layer_told {
        layer_work work;
        uint32_t kernel; /* the longest, which does the work alone or mostly; BZ_NONE */
    } * work;
    uint32_t n_work;
    bool memory; /* allocations were recorded */
    bz_gpu gpu;  /* its bandwidth is 0 where it is not known */
} layers;

/* Of the typical iteration; of the range that was asked for, or where no iterations were found, all. The caller frees it. */
void layers_find(bz_tables *m, layers *l);
void layers_free(layers *l);
/* Is it of that: of the range, else of the typical iteration, where there is one? */
bool layers_have(const bz_tables *m, uint32_t typical, bz_event_kind kind, size_t i);

/* The share of a multiprocessor's warps that a kernel could have; NAN: not told. */
static inline double layer_occupancy(const bz_events *kernel, size_t i)
{
    return kernel->occupancy[i] ? ((double)kernel->occupancy[i] - 1) / 100 : NAN;
}

uint32_t layers_of_kernel(const layers *l, size_t kernel); /* the layer that launched it, or BZ_NONE */
layer_work layers_work(const layers *l, size_t kernel);    /* of an operator, where this kernel does it */

/* An operator's work by its name and its shapes: shapes.c. False where nothing tells. */
bool layer_work_of(const bz_trace *t, size_t op, layer_work *w);

/* The GPU that the recording names; all of it 0 where nobody knows that. */
bz_gpu layer_gpu(const bz_trace *t);

/* Operations per second of a GPU in a type that a kernel's name tells, else (NULL) in numbers of so many bytes. NAN: not known. */
double layer_peak(const bz_gpu *gpu, const char *type, int bytes);

#endif
