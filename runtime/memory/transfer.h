/* transfer: ways to bring bytes from one place to another, for problems of the kind `transfer`. A row is one implementation
 * of a way; the rows of a way are its variants, and the fastest of them is what the way takes. Private to the backend. */
#ifndef BZ_TRANSFER_H
#define BZ_TRANSFER_H

#include "runtime/plain.h"

/* The part of n bytes that thread i of `threads` does, in whole cache lines. memory.c */
void memory_share(size_t n, int i, int threads, size_t *from, size_t *to);

/* sum.c: sums of an array, in the widest registers that the processor has: as fast as it can be read. */
double memory_sum(const double *x, size_t n);
uint64_t memory_read(const void *from, size_t n); /* of words, and of the bytes left over */

typedef struct transfer transfer;
typedef int transfer_opens(transfer *t, bz_error *err);
typedef int transfer_runs(transfer *t, int copy);
typedef void transfer_closes(transfer *t);
/* Elements from … to of the arrays; x and b may be NULL. */
typedef void array_function(double *y, const double *x, const double *b, size_t from, size_t to);

typedef struct transfer_row {
    bz_transfer_way way;
    const char *name;
    bool waits;             /* for another thread or a disk */
    bool threads;           /* several may share the work */
    transfer_opens *open;   /* what run needs beside the operands; NULL: nothing */
    transfer_runs *run;     /* 0, or -1 */
    transfer_closes *close; /* also after an open that failed */
    array_function *some;   /* that transfer_arrays runs */
} transfer_row;

/* One variant that was prepared. */
struct transfer {
    const transfer_row *row;
    const bz_plain *plain;
    int threads;
    void *own;     /* of open */
    double packed; /* bytes that x becomes by compression, told by open; 0: nothing is compressed */
};

extern const transfer_row transfer_rows[]; /* ends with a name that is NULL */

/* arrays.c: over arrays of doubles, each thread its share; transfer_arrays: by the row's function. */
transfer_runs transfer_read, transfer_arrays, transfer_scattered;
array_function array_write, array_write_halves, array_write_around, array_copy, array_copy_around, array_copy_string,
    array_scale, array_scale_halves, array_scale_around, array_add, array_add_halves, array_add_around, array_triad,
    array_triad_halves, array_triad_around, array_strided;

/* pages.c: loads that wait for each other, and memory asked for anew, on ordinary pages and on huge ones. */
enum { TRANSFER_LINE = 64 };
transfer_opens transfer_chase_open;
transfer_runs transfer_chase, transfer_touch, transfer_touch_huge, transfer_touch_populate;
transfer_closes transfer_chase_close;

/* Makes each line of the memory point to another, all in one ring, in an order of chance. */
void transfer_ring(void *memory, size_t size);
/* Goes on from a line of it; the one where it ends. */
void **transfer_follow(void **at, int64_t hops);

/* exchange.c: to another thread, and a byte back. */
transfer_opens transfer_shared_open, transfer_pipe_open, transfer_socket_open, transfer_tcp_open;
transfer_runs transfer_exchange;
transfer_closes transfer_exchange_close;

/* files.c: in the folder for temporary files that is not in memory. */
transfer_opens transfer_file_open, transfer_file_open_direct;
transfer_runs transfer_file, transfer_file_dropped, transfer_mapped, transfer_mapped_populate;
transfer_closes transfer_file_close;

/* packing.c: by libraries that are loaded where they are found. */
transfer_opens transfer_packing_open;
transfer_runs transfer_pack, transfer_unpack;
transfer_closes transfer_packing_close;

/* nodes.c: in the memory of another NUMA node. */
transfer_opens transfer_far_open, transfer_far_open_ring;
transfer_runs transfer_far, transfer_far_chase;
transfer_closes transfer_far_close;

#endif
