/* The spool: what the libraries in the captured program write while it runs, one file per process.
 * The file is mapped, so that what was written survives any crash. A header, then records, each aligned to 8
 * bytes; a record counts once its `size` is there without BZ_SPOOL_PENDING, which is written last. Both ends run on the same machine. */
#ifndef BZ_PROFILE_SPOOL_H
#define BZ_PROFILE_SPOOL_H

#include <stdint.h>

#define BZ_SPOOL_MAGIC "BZSPOOL2"

typedef enum {
    BZ_SPOOL_STRING = 1,
    BZ_SPOOL_CALL,
    BZ_SPOOL_MARK,
    BZ_SPOOL_STACK,
    BZ_SPOOL_RANGE, /* NVTX */
    BZ_SPOOL_API,   /* the rest: CUPTI's activities */
    BZ_SPOOL_KERNEL,
    BZ_SPOOL_COPY,
    BZ_SPOOL_MEMSET, /* as a copy */
    BZ_SPOOL_SYNC,
    BZ_SPOOL_OVERHEAD,
    BZ_SPOOL_NOTE, /* what the recording does not cover; flags: bz_coverage_level */
    BZ_SPOOL_FACT,
    BZ_SPOOL_MEMORY,
    BZ_SPOOL_PAGES,
    BZ_SPOOL_TYPES
} bz_spool_type;
#define BZ_SPOOL_PENDING 0x80000000u                /* in `size`: being written, or cut off by a crash */
enum { BZ_SPOOL_CREATES = 1, BZ_SPOOL_FAILED = 2 }; /* flags of a call */

enum { BZ_SPOOL_LEFT = -1 };

typedef struct bz_spool_header {
    char magic[8];
    int64_t process, parent;
    int64_t started;      /* CLOCK_MONOTONIC, ns */
    int64_t started_wall; /* CLOCK_REALTIME at the same moment */
    int64_t finished;     /* 0 while it runs, and for ever when it crashed; BZ_SPOOL_LEFT: by _exit */
    uint64_t capacity;    /* bytes after which nothing more is recorded */
    uint64_t used;        /* bytes claimed, more than `capacity` when records were dropped */
    uint64_t dropped;     /* records that did not fit */
    int64_t overhead;     /* ns that recording one call costs; 0 until that is measured, by calls of no program */
    char program[256];
    char onednn[32];
    uint64_t device_dropped; /* activities that CUPTI had no room for */
    uint64_t nameless;       /* records whose text did not fit into the table of texts */
    char unused[16];
} bz_spool_header;

typedef struct bz_spool_record {
    uint32_t size; /* with this head; 0: nothing comes any more */
    uint16_t type, flags;
} bz_spool_record;

/* Strings have numbers from 1 on, in the order in which they appear in the file. */
typedef struct bz_spool_string {
    bz_spool_record head;
    uint32_t id, length; /* then the bytes */
} bz_spool_string;

typedef struct bz_spool_call {
    bz_spool_record head;
    int64_t start, end;                    /* CLOCK_MONOTONIC, ns */
    uint32_t thread, library;              /* bz_library */
    uint32_t name, detail, variant, stack; /* strings; stack: number of a stack record, 0 none */
    uint64_t read[2],
        written; /* addresses: of both factors of a product, of input and weights; of the result. 0: not known */
} bz_spool_call;

typedef struct bz_spool_mark {
    bz_spool_record head;
    int64_t at;
    uint32_t thread, end; /* end: 1 where an iteration ends */
} bz_spool_mark;

typedef struct bz_spool_memory {
    bz_spool_record head;
    int64_t at, bytes; /* below 0: given back */
    uint64_t address;
    uint32_t thread, unused;
} bz_spool_memory;

/* How many pages of memory the system has handed to the process until then, without those of this file. */
typedef struct bz_spool_pages {
    bz_spool_record head;
    int64_t at, taken;
} bz_spool_pages;

typedef struct bz_spool_stack {
    bz_spool_record head;
    uint32_t id, n; /* then n strings, innermost first */
} bz_spool_stack;

typedef struct bz_spool_range {
    bz_spool_record head;
    int64_t start, end;
    uint32_t thread, name;
} bz_spool_range;

typedef struct bz_spool_api {
    bz_spool_record head;
    int64_t start, end;
    uint32_t thread, correlation, name, value; /* value: what the function returned */
} bz_spool_api;

typedef struct bz_spool_kernel {
    bz_spool_record head;
    int64_t start, end;
    uint32_t correlation, device, context, stream, graph; /* graph: 0 none */
    uint32_t name;                                        /* as the linker knows it */
    uint32_t grid[3], block[3];
    uint32_t registers, shared_static, shared_dynamic, unused;
} bz_spool_kernel;

typedef struct bz_spool_copy {
    bz_spool_record head;
    int64_t start, end, bytes;
    uint32_t correlation, device, context, stream, graph;
    uint32_t kind; /* CUpti_ActivityMemcpyKind */
} bz_spool_copy;

typedef struct bz_spool_sync {
    bz_spool_record head;
    int64_t start, end;
    uint32_t correlation, device, context, stream; /* stream: UINT32_MAX where the whole context is waited for */
    uint32_t kind, unused;                         /* CUpti_ActivitySynchronizationType */
} bz_spool_sync;

typedef struct bz_spool_overhead {
    bz_spool_record head;
    int64_t start, end;
    uint32_t thread, name, kind, unused; /* CUpti_ActivityOverheadKind */
} bz_spool_overhead;

typedef struct bz_spool_text {
    bz_spool_record head;
    uint32_t key, text; /* a note has no key */
} bz_spool_text;

#endif
