/* Every number by which a recording is held against a model that neither tells: what it stands for, where it is from, and what a value twice as
 * large would change. Private to explain/. All are chosen: the recordings of tests/unit/explain_*.c and tests/cases are told right with
 * them, and what is said of other values is reasoned. */
#ifndef BZ_EXPLAIN_CONSTANTS_H
#define BZ_EXPLAIN_CONSTANTS_H

/* Of the multiplications that a model and a recording both do, in the larger sum: from where on they are the same network. Half: a ResNet-50
 * passes for a ResNet-101, which repeats its blocks. */
static const double SAME_NETWORK = 0.85;

/* Programs merge products (query, key, value), and split convolutions by groups: half is then enough, where the sums differ by no more than this.
 * Twice the second: two networks of about one size that share half of their products are the same. */
static const double SAME_MERGED = 0.5, SAME_SUM = 0.05;

/* Likewise of a sequence of work whose products are not known. Half: any two chains of convolutions are alike. */
static const double SAME_SEQUENCE = 0.95;

/* Share of a recording's convolutions, or products, whose parameters must be known before their multiplications are compared. Chosen: half. Twice: a
 * recording with one call of unknown parameters is compared by its sequence alone. */
static const double TYPED_LEAST = 0.5;

/* µs that PyTorch's profiler adds to an operator or a call of CUDA's, at the least and at the most. Measured: four programs with H200s, on two hosts,
 * recorded and alone, 2.3 to 5.9 (docs/benchmarks.md, "On a GPU"). Twice: the host is told to be faster than it is. */
static const double TORCH_ADDS[] = {2, 6};

/* Share of the latency below which nobody need know that. Chosen. Twice: gains of a fifth are told without it. */
static const double SLOWED_LEAST = 0.1;

/* Share of the latency that may lie between the calls of a program whose model nobody knows before its speed-up is told as a range: layers run there
 * that no call did, and the bound has none of them. Chosen: as much as may lack of a bound that is told. Twice: an elementwise layer for each product
 * of a transformer is not missed. */
static const double HIDDEN_MOST = 0.05;

enum {
    /* Shorter sequences tell nothing. Twice: networks of nine layers are never told as others. */
    LEAST_SEQUENCE = 5,

    /* So many backward products that a forward pass has no place for make a recording of training. Twice: a network of five layers in training is
     * none. */
    LEAST_BACKWARD = 3,

    /* What a pair or a gap costs in the alignment: a pair of one kind is cheaper than a missing and an extra one, and dearer than one gap.
     * Together twice as large: nothing. UNKNOWN twice: as dear as a pair that is nearly the same. GAP half: calls of other parameters become
     * missing and extra ones. */
    PAIR_SAME = 0,
    PAIR_UNKNOWN = 1,
    PAIR_NEAR = 2,
    PAIR_FOLDED = 2,
    PAIR_CHANGED = 6,
    GAP = 4,
    GAP_OPTIONAL = 1,
    PAIR_FOREIGN_BIAS = GAP,

    /* Convolutions of one image of so few elements, by kernels up to this size, without groups, PyTorch computes by its own code and BLAS (1.13,
     * ConvParams::use_mkldnn; seen: a U-Net whose log lacks just these). Twice: logs that lack layers pass for logs of the whole model. */
    SMALL_IMAGE = 20480,
    SMALL_KERNEL = 3,

    /* A reorder makes the weights of one of so many calls behind it: one-shot programs make them right before. Twice: one that makes equal weights of
     * another layer may count. */
    CALLS_TO_WEIGHTS = 4,

    /* Names of operators that are compared to find what checkpoints compute again: enough for 1,000 checkpoints in 16,000 operators. Half: of longer
     * recordings what is computed again counts as extra. */
    MOST_RECOMPUTED = 1 << 24,

    /* Operators behind one that are asked for its result's shape: readers follow soon. Twice: a later tensor that fits by chance is taken. */
    READERS_LOOKED_AT = 64,

    /* Words that are cut off a node's name, from its end, to find the one that an optimizer made it of. Chosen. Twice: a name may
     * fit another layer's. */
    NAME_CUTS = 4,

    /* Steps and layers that are aligned at a time. Chosen: what lies in the first half of a window depends on nothing behind it. Twice: four times the
     * memory. */
    LARGEST_WINDOW = 256,

    /* Limits, so that no file takes long or much memory: channels of a layer that is guessed; symbols of a sequence, operators of a network and atoms of
     * a loop that are looked at. Twice: nothing, no network has so many. */
    MOST_CHANNELS = 1 << 20,
    LONGEST_SEQUENCE = 8192,
    MOST_NODES = 20000,
    MOST_EXPECTED = 1 << 20,

    /* Windows that are padded step by so much at the most. Twice: nothing, no network has them. */
    WIDEST_STRIDE = 32,

    /* Layouts are chosen again, layer by layer, until none changes, but so often at the most. Twice: nothing where they settle before. */
    LAYOUT_SWEEPS = 8
};

/* Kernels of a pooling that was not recorded, the most usual first; the first that leads to the result is taken. */
static const int64_t USUAL_KERNELS[] = {2, 3, 5, 7, 4, 8};

#endif
