/* cudart: ways to move bytes to, from and between GPUs, and what calls of the CUDA runtime take; for problems of the kind
 * `transfer`. A row is one implementation of a way, as in runtime/memory/transfer.h; a row of the table says where its bytes
 * lie and how it is timed, and most need no code of their own. Private to the backend.
 *
 *   cudart.c       the backend: sessions, memory, timing
 *   rows.c         the rows, and what their calls are
 *   collectives.c  NCCL's primitives between devices */
#ifndef BZ_CUDART_H
#define BZ_CUDART_H

#include "runtime/cuda/cuda.h"

typedef struct move move;

typedef enum {
    PLACE_NONE,
    PLACE_HOST,       /* ordinary memory */
    PLACE_PINNED,     /* which the device can read, too */
    PLACE_COMBINED,   /* pinned, and written around the processor's caches */
    PLACE_REGISTERED, /* ordinary memory, pinned later */
    PLACE_DEVICE,
    PLACE_MANAGED, /* unified */
} move_place;

typedef enum {
    TIMED_BY_DEVICE, /* a batch of calls between two events, queued up before the first begins */
    TIMED_WHOLE,     /* by the wall clock, each until the device has ended it */
    TIMED_CALL,      /* by the wall clock, until the call returns; the device ends it outside of the time */
} move_timed;

typedef struct move_row {
    bz_transfer_way way;
    const char *name;
    move_place from, to;
    move_timed timed;
    int (*open)(move *m, bz_error *err); /* what the call needs beside x and y; NULL: nothing */
    cudaError_t (*call)(move *m);
    cudaError_t (*reset)(move *m); /* before each call, outside of its time; NULL */
    void (*close)(move *m);        /* also after an open that failed; NULL */
} move_row;

enum { MOVE_STREAMS = 4, PAGE = 4096 };

/* A variant that was prepared. */
struct move {
    bz_cuda_run run; /* first: what the rows are timed by */
    const move_row *row;
    const bz_job *job;
    cudaKernel_t touch, copy;
    size_t size, y_size; /* bytes; x's number for ways without x */
    char *x, *y;
    char *back[2]; /* the other direction's; or two of a row's own */
    cudaStream_t stream[MOVE_STREAMS];
    cudaEvent_t begun, ended[MOVE_STREAMS];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *own; /* of open */
};

extern const move_row move_rows[]; /* ends with a name that is NULL */

int move_get(move_place place, size_t size, char **out, bz_error *err);
void move_put(move_place place, char *memory);

/* collectives.c: each device's call in one group. */
int move_open_collective(move *m, bz_error *err);
cudaError_t move_collective(move *m);
void move_close_collective(move *m);

#endif
