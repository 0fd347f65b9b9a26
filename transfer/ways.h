/* ways: what is measured, and at which sizes. Private to transfer/. */
#ifndef BZ_TRANSFER_WAYS_H
#define BZ_TRANSFER_WAYS_H

#include "transfer/transfer.h"

#include "base/buf.h"

typedef enum {
    WAY_ARRAYS, /* of doubles: powers of two of elements, from an eighth of the first level to eight times the last */
    WAY_RING,   /* bytes, likewise, from 4096 on */
    WAY_STEPS,  /* bytes: the least, and then as far as 64 MiB each second power of two */
} way_sizes;

typedef struct transfer_way {
    const char *name, *tells;
    way_sizes sizes;
    int64_t least;
    int arrays; /* that the bytes of a call are the size of; 0: none are counted */
    bool threads;
    int64_t most; /* bytes; 0: a gibibyte, or of steps 64 MiB */
    bool gpu;
} transfer_way;

extern const transfer_way transfer_ways[]; /* ends with a name that is NULL */

/* What goes through the kernel has one line for small sizes, where its calls count, and one for large ones. */
enum { WAY_SMALL = 128 << 10, WAY_PARTS = 8, WAY_MOST_SIZES = 32 * WAY_PARTS, WAY_LEVELS_MOST = BZ_TRANSFER_FITS };

typedef struct way_level {
    char name[8];
    double from, to; /* sizes that lie in it for sure */
} way_level;

/* Whether it is measured on such a system, by so many threads. */
bool transfer_asked(const transfer_way *w, const bz_system_facts *facts, int threads);
int transfer_levels(const bz_system_facts *facts, int threads, way_level out[WAY_LEVELS_MOST]);
/* What x is of each problem, ascending. Each WAY_PARTS-th is always measured. Those between are measured where the curve bends: first the
 * middle, then the middle of a half. */
int transfer_sizes(const transfer_way *w, const bz_system_facts *facts, int threads, int64_t out[WAY_MOST_SIZES]);
void transfer_text(const transfer_way *w, int64_t x, bz_buf *out); /* the problem's text */
const char *transfer_problem(const transfer_way *w, int64_t x, bz_arena *arena);
double transfer_size(const transfer_way *w, int64_t x); /* bytes */

/* Of a problem's variants measured in the setting the fastest; NULL: none. *why: what one that failed said; else NULL. */
int transfer_fastest(bz_perfdb *db, const bz_system *system, const char *problem, const bz_setting *setting,
                     bz_arena *arena, const bz_record **out, const char **why, bz_error *err);

#endif
