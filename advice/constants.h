/* Every number in advice that no record and no recording tells: what it stands for, where it is from, and what a value
 * twice as large would change. Those of transformations stand with their parameters in whatif/transformations.c. Private to advice/. docs/benchmarks.md ("Advice") has the recordings; tests/bench/advice.py repeats them. */
#ifndef BZ_ADVICE_CONSTANTS_H
#define BZ_ADVICE_CONSTANTS_H

/* Share of the latency that an advice must gain to be told. Chosen: half of what processes differ by. Twice: advices of up to a hundredth are not
 * told. */
static const double TOLD_LEAST = 0.005;

/* Share of the latency from which on a step of the ladder has an answer, if only why none is known, and an advice is told that may as well be a
 * loss. Chosen. Twice: steps below a tenth are left without one. */
static const double ANSWERED_LEAST = 0.05;

/* Share of the parts of a recording that show a state, from which on the program is in it: a single layer, as the first one is often, may be done
 * otherwise. Chosen. Half: a program that is prepared in part is told nothing of the rest. Twice is above 1. */
static const double STATE_MOST = 0.9;

/* Share of an iteration in matrix products above which nobody knows what it gains to prepare weights, where that turns those of products and no
 * record tells what they take so. Measured: AlexNet and VGG-11 of PyTorch became slower by it (docs/benchmarks.md). As large as what a prediction
 * may leave without a price (whatif/constants.h). Twice: such networks are promised what their convolutions gain. */
static const double TURNED_MOST = 0.05;

/* How far off, as a share, a page's time is that a loop of its own tells. Measured: of 30 gains of 15 programs on a Zen 5, nine of them on two or three days, 26
 * are within half of the pages' time (docs/benchmarks.md). Twice: the interval reaches to no gain at all. */
static const double ANEW_OFF = 0.5;

#endif
