/* Every number in a bound that is neither priced nor told by the system: what it stands for, where it is from, and what a value twice as
 * large would change. Private to bound/. */
#ifndef BZ_BOUND_CONSTANTS_H
#define BZ_BOUND_CONSTANTS_H

/* Shares of a model's multiplications and of its modelled time from which on a sum is held against a measurement: one that lacks more says how
 * little was measured, not how fast the model could be. Twice what may lack: ratios may be a tenth too large. */
static const double LEAST_MACS = 0.99, LEAST_TIME = 0.95;

/* Bytes of a last cache that nobody told of: a large one, for a bound too low is still a bound. Twice: layers of up to twice these
 * bytes have no roof by the memory. */
static const double UNTOLD_CACHE = 128 << 20;

/* Share of a bound from which it is told by how much longer its layers take with weights from memory. Chosen: what steady records may be off by. Twice: a
 * bound that a program misses by a twelfth for that reason alone says nothing of it. */
static const double FAR_TOLD = 0.05;

/* Of the yardsticks beside marked records, the share below the one that is told: a single stumble of the machine says nothing of all others.
 * Chosen. Nearer to 1: one record in a hundred tells how much the machine varies. */
static const double MOSTLY = 0.9;

enum {
    /* Results of one tile of Winograd's algorithm along an axis: libraries use none larger, for their rounding would show. Twice: hardware bounds of
     * 3x3 convolutions a sixth lower along each axis. */
    WINOGRAD_TILE = 4
};

#endif
