/* Every number in predictions that no record and no recording tells: what it stands for, where it is from, and what a value
 * twice as large would change. Private to advice/. docs/benchmarks.md ("What stands behind a prediction") has the recordings; tests/bench/advice.py repeats them. */
#ifndef BZ_ADVICE_CONSTANTS_H
#define BZ_ADVICE_CONSTANTS_H

enum {
    /* Calls of a convolution in a 16-bit type: a reorder of its input, of its weights, of its result, and itself. Counted in
     * recordings of PyTorch under autocast (Zen 5, tests/bench/advice.py). Twice: the time between two calls, some µs, is
     * added four times more for each convolution, and bf16 promises less where convolutions are short. */
    PREDICT_REORDER_CALLS = 4,

    /* Points of a fit that are looked at, those that weigh most; the fit takes the cube of it. Chosen, not measured: the
     * layers that take nearly all of a program's time are fewer. Twice: eight times as long for the same result. */
    PREDICT_FIT_POINTS = 64,

    /* Stretches between calls that do the same layers, from which on one of them can be unusual. Reasoned: two unknowns are
     * fitted, so two points say nothing and three have a single one to be held against. Twice: new memory shows in networks
     * with many equal blocks only, and the others promise less for smaller types. */
    PREDICT_SAME_LAYERS = 4,

    /* Bytes from which on memory is asked for anew: glibc's M_MMAP_THRESHOLD as it starts. Reasoned; the smallest tensors that
     * showed it in MobileNet-v2 had 1.2 MB (Zen 5, 2026-11-21). Twice: no change there. */
    PREDICT_FRESH_LEAST = 128 << 10
};

/* Share of the latency by which a program differs from one process to the next at the least: a gain is not known better. Measured: a ResNet-18
 * of PyTorch took 29.3 to 30.5 ms in three processes, one of ONNX Runtime 22.6 to 23.3 in four (Zen 5, 2026-11-23, tests/bench/advice.py), while the
 * iterations of one process told their median within 0.2 %. Twice: intervals are wider by as much. */
static const double ADVICE_PROCESSES = 0.01;

/* Times as long by the byte as usual, from which on a reorder went to new memory. Chosen below what was seen in PyTorch's
 * MobileNet-v2 (Zen 5, 2026-11-21): 1.8 ms instead of 0.3 for 4.8 MB, six times. Twice: those reorders count as usual ones, and
 * a smaller type promises less there. */
static const double PREDICT_FRESH_FAR = 4;

/* The same for what the framework does between calls: share of a stretch that is too much. Half says that it
 * takes twice what others of the same layers take, as in the same recordings. Twice: no stretch has new memory. */
static const double PREDICT_FRESH_SHARE = 0.5;

/* Share of the time for new memory that a tensor keeps, times how much smaller it is, where others of its new size have such
 * memory: a quarter where it is half as large. Reasoned: nobody knows, and it is the middle between none and what its size says.
 * Twice: of half as large tensors half is kept. */
static const double PREDICT_FRESH_KEPT = 0.5;

/* Tensors of sizes up to so many times apart take as long by the byte. Chosen, not measured. Twice: a reorder's price is the median of more
 * of them, over a step between caches where there is one. */
static const double PREDICT_SAME_SIZE = 1.5;

/* Passes over memory of a layer that reads two tensors, of which one is left where a product takes the layer along. Reasoned:
 * the second tensor still has to be read; the first one is neither written nor read. Twice: an addition that is joined saves
 * five sixths of its time instead of two thirds. */
static const double PREDICT_PASSES = 3;

#endif
