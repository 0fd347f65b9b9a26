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

typedef struct transfer_row {
    bz_transfer_way way;
    const char *name;
    bool waits;                              /* for another thread or a disk */
    bool threads;                            /* several may share the work */
    int (*open)(transfer *t, bz_error *err); /* what run needs beside the operands; NULL: nothing */
    int (*run)(transfer *t, int copy);       /* 0, or -1 */
    void (*close)(transfer *t);              /* also after an open that failed */
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

/* arrays.c: over arrays of doubles, each thread its share. */
int transfer_read(transfer *t, int copy);
int transfer_write(transfer *t, int copy), transfer_write_halves(transfer *t, int copy),
    transfer_write_around(transfer *t, int copy);
int transfer_copy(transfer *t, int copy), transfer_copy_around(transfer *t, int copy);
int transfer_copy_string(transfer *t, int copy);
int transfer_scale(transfer *t, int copy), transfer_scale_halves(transfer *t, int copy),
    transfer_scale_around(transfer *t, int copy);
int transfer_add(transfer *t, int copy), transfer_add_halves(transfer *t, int copy),
    transfer_add_around(transfer *t, int copy);
int transfer_triad(transfer *t, int copy), transfer_triad_halves(transfer *t, int copy),
    transfer_triad_around(transfer *t, int copy);
int transfer_strided(transfer *t, int copy), transfer_scattered(transfer *t, int copy);

/* pages.c: loads that wait for each other, and memory asked for anew, on ordinary pages and on huge ones. */
enum { TRANSFER_LINE = 64 };
int transfer_chase_open(transfer *t, bz_error *err);
int transfer_chase(transfer *t, int copy);
void transfer_chase_close(transfer *t);
int transfer_touch(transfer *t, int copy), transfer_touch_huge(transfer *t, int copy);
int transfer_touch_populate(transfer *t, int copy);

/* Makes each line of the memory point to another, all in one ring, in an order of chance. */
void transfer_ring(void *memory, size_t size);
/* Goes on from a line of it; the one where it ends. */
void **transfer_follow(void **at, int64_t hops);

/* exchange.c: to another thread, and a byte back. */
int transfer_shared_open(transfer *t, bz_error *err);
int transfer_pipe_open(transfer *t, bz_error *err), transfer_socket_open(transfer *t, bz_error *err);
int transfer_tcp_open(transfer *t, bz_error *err);
int transfer_exchange(transfer *t, int copy);
void transfer_exchange_close(transfer *t);

/* files.c: in the folder for temporary files that is not in memory. */
int transfer_file_open(transfer *t, bz_error *err), transfer_file_open_direct(transfer *t, bz_error *err);
int transfer_file(transfer *t, int copy), transfer_file_dropped(transfer *t, int copy);
int transfer_mapped(transfer *t, int copy), transfer_mapped_populate(transfer *t, int copy);
void transfer_file_close(transfer *t);

/* packing.c: by libraries that are loaded where they are found. */
int transfer_packing_open(transfer *t, bz_error *err);
int transfer_pack(transfer *t, int copy), transfer_unpack(transfer *t, int copy);
void transfer_packing_close(transfer *t);

/* nodes.c: in the memory of another NUMA node. */
int transfer_far_open(transfer *t, bz_error *err), transfer_far_open_ring(transfer *t, bz_error *err);
int transfer_far(transfer *t, int copy), transfer_far_chase(transfer *t, int copy);
void transfer_far_close(transfer *t);

#endif
