/* Every number in tables that the recording does not tell: what it stands for, where it is from, and what a value twice as large would change.
 * Private to tables/. Those of other analyzers are theirs: another value would be another table. */
#ifndef BZ_TABLES_CONSTANTS_H
#define BZ_TABLES_CONSTANTS_H

/* A training run is stable from where the medians of three windows in a row differ by at most SPREAD of their median, and change by at most TREND
 * from one to the next: TBD asks for throughput that is stable, and names no number. Chosen. Twice: the sample begins while caches still fill. */
static const double SPREAD = 0.05, TREND = 0.01;

/* What TBD observed of eight networks on a P4000 (IISWC 2018), in shares: from where on recurrent layers count, the device is busy,
 * normalizations reach so much less of the peak than all kernels, communication is not hidden, and a larger batch pays. Twice: other answers to
 * its questions. */
static const double RECURRENT = 0.05, BUSY = 0.95, NORMS_BELOW = 0.2, EXPOSED = 0.05, BATCH_PAYS = 0.1;

enum {
    WINDOW =
        20, /* iterations of such a window, where there are enough. Chosen. Twice: short recordings are one phase */
    FEWEST_WINDOW = 5,  /* below it nothing tells. Chosen. Twice: runs below 30 iterations have no stable phase */
    CANDIDATES = 5,     /* kernels that TBD lists */
    FEWEST_KERNELS = 3, /* of a sequence, as in HTA */

    /* ns: a shorter gap is what one kernel takes to follow another. HTA's manual says 30 nanoseconds, its program compares 30 microseconds: its
     * published figures are of these, and no GPU follows within 30 ns. */
    KERNEL_DELAY = 30000,

    LONGEST_DELAY =
        1500000, /* ns: a longer gap between two works of a stream has another reason, which is not known. HTA's */
    SLOW_CALL = 50000, /* ns: cutoffs of launches. HTA's */
    LONG_DELAY = 100000,

    /* Events of a recording whose path is that of one iteration alone: each costs 33 bytes. Reasoned. Twice: 33 MB more. */
    LARGE = 1000000
};

#endif
