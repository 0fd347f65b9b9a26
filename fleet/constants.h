/* Every number by which shards are planned that no record tells: what it stands for, where it is from, and what a value twice
 * as large would change. Private to fleet/. A wrong one makes shards longer or shorter than --shard-minutes asks, never
 * their results: after the first night a stack's pace, measured seconds over planned ones, corrects all of them together. */
#ifndef BZ_FLEET_CONSTANTS_H
#define BZ_FLEET_CONSTANTS_H

/* Seconds of a shard besides its problems: starting, reading what is known, yardsticks. Chosen, not measured (2026-11-21).
 * Twice: shards of a minute have 7 % less work. */
static const double SECONDS_PER_SHARD = 4;

/* Seconds to compile the source of one problem, and to link. Chosen, not measured. Twice: a shard of many small problems gets some fewer. */
static const double SECONDS_PER_FILE = 0.03;

/* Seconds of a variant besides its calls: a process, the check against the reference, finding out how many calls make a sample.
 * Chosen; tests/bench/bound.py ("per variant", aim 20 ms)
 * measures it. Twice: a shard of small problems, 0.1 s of calls each, is planned
 * a tenth longer than it takes. */
static const double SECONDS_PER_VARIANT = 0.012;

/* Seconds until a library says that it does not support a variant, or a variant fails. Chosen, not measured. Twice: next to nothing. */
static const double SECONDS_PER_REFUSAL = 0.003;

/* Seconds of a variant that hangs: after so many the supervisor ends it, if not told otherwise. Reasoned. Twice: one hang more
 * in the plan is a minute. */
static const double SECONDS_PER_HANG = 60;

/* Rounds that even a call takes which is longer than the limit. Reasoned: one to warm up, one that counts. Twice: long calls
 * are planned with twice their time. */
static const double LEAST_ROUNDS = 2;

/* Rounds of sampling may take the limit so many times: the interval may not be narrow enough before. Chosen, not measured. Twice: only what
 * is measured by the number of its iterations already is planned longer. */
static const double MOST_LIMITS = 4;

/* Variants of a family of which nobody has a record anywhere. Chosen, not measured. Twice: first nights on
 * new libraries are planned twice as long as they would be, in more shards. */
static const double UNKNOWN_VARIANTS = 3;

/* Seconds of measuring a variant where the fleet says none: the default of benanza-bench's --time-limit. */
static const double TIME_LIMIT = 0.1;

/* A pace beyond ten times is taken for a mistake, such as a clock that was set. Chosen, not measured. Twice: such a mistake lasts a
 * night longer. */
static const double SLOWEST_PACE = 10, FASTEST_PACE = 0.1;

enum {
    /* Estimates look into at most so many other stacks. Chosen, not measured; more cost reading and agree anyway. */
    OTHER_STACKS = 4,

    /* Seconds by which a worker's clock may differ without being corrected: two machines that ask a time server differ by less,
     * and a date within two minutes decides nothing. Reasoned. Twice: results of two minutes' difference change places. */
    CLOSE_CLOCKS = 120,

    /* Seconds by which a record may be dated ahead of us before it counts as wrong. Reasoned: a clock that was not set to summer
     * time is off by so much. */
    CLOCK_AHEAD = 3600
};

#endif
