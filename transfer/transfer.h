/* transfer: what moving data costs on a system, by records of problems of the kind `transfer`, which belong to no layer.
 *
 *   bz_transfers_list     the problems, by the sizes of the system's caches
 *   bz_transfers_caches   how much of the last cache there really is
 *   bz_transfers_by_threads  what threads move together
 *   bz_transfers_facts    what the database knows of a system, with the bandwidths that its transfers tell
 *   bz_transfers_read     curves through what the database has of them, and a straight line for each level of memory
 *   bz_transfer_seconds   what a transfer of any size takes, by its curve
 *   bz_transfer_cost_of   latency and rate of one way at one size, for rooms that ask for nothing else
 *
 * A line is that of Hockney: seconds = start + bytes / rate. Half of the rate is reached at start · rate bytes. */
#ifndef BZ_TRANSFER_ROOM_H
#define BZ_TRANSFER_ROOM_H

#include "base/sheet.h"
#include "perfdb/perfdb.h"

typedef struct bz_transfer_point {
    double size; /* bytes that lie in the caches, or are sent */
    double
        bytes; /* that a call moves, as STREAM counts them; 0: loads that wait for each other move none to speak of */
    double seconds; /* of a call of the fastest variant; of one such load */
    double packed;  /* what bytes become by compression, as a share; 0: they are not compressed */
    const char *variant;
    bool marked; /* noisy, throttled, or measured on a busy machine */
} bz_transfer_point;

typedef struct bz_transfer_fit {
    const char *level;     /* "L1", "memory"; of what no cache bounds "small" (to 128 KiB) and "large" */
    const char *variant;   /* the fastest at the largest of the sizes */
    int n;                 /* points */
    double to;             /* bytes: the largest size that lies in it */
    double start, rate;    /* seconds; bytes per second. Where no bytes are counted `start` is the mean, and rate NAN */
    double packed;         /* what bytes become by compression, as a share, at the largest of the sizes; NAN */
    double half, furthest; /* bytes; how far the line is from a point at most, as a share. NAN: too few points */
} bz_transfer_fit;

enum { BZ_TRANSFER_FITS = 6 };

typedef struct bz_transfer_curve {
    const char *way, *tells;  /* "copy"; what that is, in words */
    bz_transfer_point *point; /* by size */
    int n, n_fits;
    bz_transfer_fit fit[BZ_TRANSFER_FITS];
} bz_transfer_curve;

typedef struct bz_transfers {
    const bz_system *system;
    bz_setting setting;
    bz_transfer_curve *curve;       /* those with a point */
    int n, points, missing, failed; /* failed: problems that no variant can do here */
    const char *why;                /* one reason of these; "" */
    const bz_sheet *threads;        /* bz_transfers_by_threads; NULL: nobody asked */
} bz_transfers;

/* Texts of the problems: how many. `threads`: ways that several threads share the work of; with one all of them. First come
 * `rings` of loads: they tell bz_transfers_caches at which sizes the others are measured. */
int bz_transfers_list(const bz_system_facts *facts, int threads, bool rings, bz_arena *arena, const char *const **out);
/* Problems between two sizes where the curve bends, so that a straight line between them may be off by more than 8 %. */
int bz_transfers_finer(const bz_transfers *t, const bz_system_facts *facts, bz_arena *arena, const char *const **out);
/* Problems that took more than 5 % longer than a larger one of the same way: something else ran then. */
int bz_transfers_disturbed(const bz_transfers *t, const bz_system_facts *facts, bz_arena *arena,
                           const char *const **out);
/* The facts with as much of the last cache as is ours by its latencies: of 480 MB that a virtual machine shows, others use most. Of a
 * ring twice as large as the cache half of the loads find it there, and half wait for memory. As they were where the latencies say
 * nothing. */
int bz_transfers_caches(bz_perfdb *db, const bz_system *system, const bz_system_facts *facts, bz_arena *arena,
                        const bz_system_facts **out, bz_error *err);
int bz_transfers_read(bz_perfdb *db, const bz_system *system, const bz_system_facts *facts, const bz_setting *setting,
                      bz_arena *arena, bz_transfers *out, bz_error *err);

/* By how many threads memory is moved at the same time: 1, 2, 4 and so on, and all cores. What they move: each way of several threads, at a
 * size that lies in memory. The sheet: those that have a record. */
enum { BZ_TRANSFER_COUNTS = 16 };
int bz_transfers_counts(const bz_system_facts *facts, int out[BZ_TRANSFER_COUNTS]);
int bz_transfers_together(const bz_system_facts *facts, bz_arena *arena, const char *const **out);
int bz_transfers_by_threads(bz_perfdb *db, const bz_system *system, const bz_system_facts *facts,
                            const bz_setting *setting, bz_arena *arena, const bz_sheet **out, bz_error *err);

/* The facts of a system. For each thread count with which its peaks were measured, the bandwidths of buffers are those of its
 * transfers, at their best, where it has any; else those that its details hold, as `benanza system --measure` once stored them. */
int bz_transfers_facts(bz_perfdb *db, const bz_system *system, bz_arena *arena, const bz_system_facts **out,
                       bz_error *err);

const bz_transfer_curve *bz_transfer_find(const bz_transfers *t, const char *way); /* NULL: nothing is known of it */
const bz_transfer_fit *bz_transfer_level(const bz_transfer_curve *c, const char *level); /* c may be NULL; likewise */
/* Between two points as a straight line of logarithms; beyond the last at its rate; down to a quarter of the first as long as
 * that takes, and below NAN. */
double bz_transfer_seconds(const bz_transfer_curve *c, double size);

/* What moving so many bytes costs one thread whose caches are warm, by a system's records of one way ("tcp", "to_device_pinned", "all_reduce"). */
typedef struct bz_transfer_cost {
    int points;         /* sizes measured; 0: none, and the rest is NAN */
    double seconds;     /* by the curve */
    double start, rate; /* of the line through sizes like it, as in a fit */
    bool marked;        /* one of the records is */
} bz_transfer_cost;
/* -1 where there is no such way. `system` NULL has no records. */
int bz_transfer_cost_of(bz_perfdb *db, const bz_system *system, const char *way, double size, bz_arena *arena,
                        bz_transfer_cost *out, bz_error *err);

/* The lines; all points; and what so many bytes take in each way, between points by their curve. */
const bz_sheet *bz_transfers_fits(const bz_transfers *t, bz_arena *arena);
const bz_sheet *bz_transfers_points(const bz_transfers *t, bz_arena *arena);
const bz_sheet *bz_transfers_asked(const bz_transfers *t, double size, bz_arena *arena);

#endif
