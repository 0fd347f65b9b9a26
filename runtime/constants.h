/* Every number by which noise is told and samples are taken that the machine does not tell: what it stands for, where it is from,
 * and what a value twice as large (or twice as far above 1) would change. Private to runtime/. Beside them: BZ_NOISY_SPREAD,
 * in runtime/runtime.h. */
#ifndef BZ_RUNTIME_CONSTANTS_H
#define BZ_RUNTIME_CONSTANTS_H

/* ---- the machine -------------------------------------------------------------------------------- */

/* Times its best that the yardstick takes in a slow phase: what is measured then is marked. Measured (a virtual machine that
 * others used too, 2026-11): it differed by 4 % from one second to the next when nobody was there, by 12 % while a neighbour
 * worked. Twice: neighbours are not seen. */
static const double SLOW_PHASE = 1.08;

/* Share of the time that the hypervisor gives to other machines, from which on a machine is busy. Chosen, not measured: about
 * what makes a record noisy. Twice: a share of 4 % goes by without a mark. */
static const double STOLEN = 0.02;

/* Times the clock's probe from which on a clock has changed between the first third of the samples and the last: throttling.
 * Chosen, not measured: turbo steps of 100 MHz are 2 to 3 %. Twice: a processor that loses a tenth of its clock is not told. */
static const double CLOCK_CHANGE = 1.05;

/* Share of a sample in which the thread did not have the processor, from which on it is taken again. Reasoned: well within the
 * spread from which on a record is noisy. Twice: still is; four times: is not. */
static const double LOST = 0.01;

/* Seconds for which a look at the yardstick holds; it takes half a millisecond, so a hundredth of the time goes there. */
static const double YARDSTICK_HOLDS = 0.05;

/* Seconds to wait for a quiet machine before one problem, where nobody said; and between two looks. Chosen, not measured. Twice: runs
 * on busy machines take longer, with fewer marks. */
static const double WAIT = 30, WAIT_STEP = 0.2;

/* Seconds after which a process that looks at a device is taken to hang. Chosen, not measured: a driver starts within seconds, also
 * where its libraries come from a slow disk. Twice: a hanging driver is told a minute later. */
static const double DEVICE_PATIENCE = 60;

enum {
    /* Looks at the run queue; who is there at each of them counts. Reasoned: kernel threads run for a moment now and then, and
     * five moments 2 ms apart are no longer one. Twice: 10 ms more for each problem on a busy machine. */
    LOOKS = 5
};

/* ---- samples ------------------------------------------------------------------------------------ */

/* Times the best variant's time from which on another one of the problem is dropped. Reasoned: no bound rests on it, and the
 * rest of its time goes to those that may win. Twice: runs take longer where a library has many slow ones. */
static const double HOPELESS = 2;

/* Times the best from which on one sample is enough to drop a variant; else a second is taken. Chosen, not measured: far
 * beyond the doubt of one sample. Twice: a second sample of some variants that lose anyway. */
static const double FAR_OFF = 8;

/* Seconds from which on a call needs no warm-up before each sample: what the one before left in the caches is a small part of
 * its time by then. Chosen, not measured. Twice: calls of 20 to 40 ms take twice as long to measure. */
static const double LONG_CALL = 0.02;

/* Least samples that a median's interval of 95 % has: with five even the whole range is not enough. Reasoned; exact. */
enum { FEWEST_SAMPLES = 6 };

/* Samples from which on a third of the time limit is enough on the processor. Measured (a busy virtual machine, 2026-11, 212 variants of
 * 20 problems, once): medians of 22 samples lay 4.5 % below those of 33 in all of 0.1 s, and 2.9 % below those of a second such run,
 * which lay 3.4 % below the first. Twice: short calls take twice as long to measure. */
enum { ENOUGH_SAMPLES = 20 };

/* Seconds of a sample: on the processor, and on a device, whose clock is read during one. Chosen: a thousand times what reading the
 * time takes, and an eighth of a scheduler's slice. Twice: short calls take twice as long to measure. */
static const double SAMPLE_TIME = 0.001, DEVICE_SAMPLE_TIME = 0.002;

/* Bytes of operands that are taken out of the caches at once, and then read by one call each: what a sample moves at 60 GB/s. Reasoned. Twice: twice the
 * memory; half: a sample empties the caches twice. */
static const double COLD_COPIES = 64e6;

/* ---- replays ------------------------------------------------------------------------------------ */

/* Multiplications of a constant up to which a replay computes it by its definition before it runs. Reasoned: the definition does some 10^8 a
 * second, so that is a minute or two. Twice: as much longer to wait for. */
static const double MOST_CONSTANT = 1e10;

#endif
