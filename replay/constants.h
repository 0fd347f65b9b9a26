/* Every number that plans and explains a replay and that no record tells: what it stands for, where it is from, and what a value twice as
 * large would change. Private to replay/. Guesses order ways of which nobody has a record, so only their ratios decide; such a plan says how many
 * of its calls are guessed. */
#ifndef BZ_REPLAY_CONSTANTS_H
#define BZ_REPLAY_CONSTANTS_H

/* A call without a record: seconds to launch it, bytes and operations a second, of one core and of a device. Chosen, near the least that machines
 * of today do. Launch twice: small groups in one call are taken more often. Rates twice: a call without a record wins against one whose record is
 * half as long. */
static const double GUESS_LAUNCH = 1e-6, CORE_BYTES = 1e10, CORE_FLOPS = 5e10, DEVICE_BYTES = 1e12, DEVICE_FLOPS = 1e13;

/* Share of a copy's bandwidth that a conversion between layouts reaches. Measured: transpositions of 64x2048 0.23, 4x1000x1000 0.27,
 * 64x56x56 0.36, 4x1024x1024 0.37 and 512x512 0.65 (`benanza-bench 'transpose x=4x1024x1024 perm=0x2x1'` beside `benanza system`), blocks 0.4
 * (Zen 5, 2026-11-28). Twice: conversions are planned that take longer than the calls that they shorten. */
static const double CONVERTS = 0.35;

/* How many times as long in another layout than the library's own: channels last, rows. The first measured: replays without records of ten bundled
 * networks take 0.61 to 1.03 of the time by it with AVX-512, of four 0.79 to 1.08 with AVX2 alone (Zen 5, oneDNN 2.6, `benanza replay MODEL --db none`
 * before and after, 2026-11-27). The second chosen. Twice: the library's choice is taken, and conversions come that nobody foresaw; rows are never
 * guessed beside blocks. */
static const double CHANNELS_LAST = 0.8, IN_ROWS = 1.5;

/* On a device: channels last in 16 bits, which matrix units read, and in others; the family that a product is not planned for. Chosen. Twice: as
 * above, for convolutions. */
static const double DEVICE_CHANNELS_LAST_16 = 0.8, DEVICE_CHANNELS_LAST = 1.2, OTHER_FAMILY = 2;

/* Seconds for an element of what no call does, which a copy prices, and no loop of ours is one: erf takes as long. Measured: 2.8 ms for the erf
 * of BERT, where a copy was told as 0.1 (Zen 5, 2026-11-21). Twice: groups with such a function are taken where they are up to twice as slow. */
static const double LOOP_ELEMENT = 7e-9;

/* Width of the median's interval, as a share, from which on the machine is told as busy. Chosen. Twice: fewer notes. */
static const double NOISY = 0.05;

/* Share of the latency below which a reason is not told. Chosen. Twice: shorter sentences. */
static const double LEAST_REASON = 0.005;

/* Share by which a layer may be off its bound without a reason. Chosen. Twice: fewer reasons. */
static const double ON_BOUND = 0.05;

/* What is over is the launch if it is at most so many of them. Reasoned: one, and the pause until it works. Twice: short layers that are slow for
 * another reason are told as launches. */
static const double LAUNCHES_OVER = 1.5;

/* How much slower than their records all calls are before the clock is the reason, of calls of so many seconds at the least; and the share of
 * what a layer is over that may then be left. Chosen. What is above 1 in the first twice: of a clock that is 5 % slower each layer is told as
 * slow by itself. */
static const double DRIFTED = 1.03, DRIFT_CALL = 20e-6, DRIFT_LEFT = 0.3;

/* A call that takes no longer than this many times its record with cold operands is told as cold. Chosen. Twice: slow calls are told as cold. */
static const double AS_COLD = 1.1;

/* Weights of sequences that take turns, and of their model, in bytes, at the most: those that libraries packed lie beside them. Chosen. Twice: twice
 * the memory. */
static const double TURN_BYTES = 2e9;

/* Sequences that take turns, at the least, where the model has as many. Chosen. Twice: where few lack, more are run again. */
enum { FEWEST_IN_TURN = 16 };

#endif
