/* Every number by which a recording becomes a graph, and a graph another, that neither the recording nor the person tells: what it stands for,
 * where it is from, and what a value twice as large would change. Private to whatif/. What a person may set stands with its reason in the rows of
 * transformations.c; when a simulation is refused, in whatif.h. */
#ifndef BZ_WHATIF_CONSTANTS_H
#define BZ_WHATIF_CONSTANTS_H

/* µs that Nsight Systems adds to a launch, a copy or a library's call, at the least, likely and at the most: of five programs on a V100 whose host
 * was the slower side, recorded and alone, 8.3 to 10.8 (published measurements; docs/benchmarks.md, "What a CUDA graph could gain"). Twice: what a
 * graph gains is less, by as much for each call. */
static const double NSIGHT_ADDS[] = {7, 9, 11};

/* Share of the iteration by which it, or its gain, has to be another one without its recorder to be told. Chosen: half of what is warned of
 * (explain/constants.h). Twice: a ResNet-50 whose update waits for its host is told the gain as recorded, five times too large. */
static const double UNRECORDED_LEAST = 0.05;

/* Share of what TF32 does more than f32 by a data sheet that programs reach, at the least, likely and at the most: in TF32 kernels wait for the memory
 * sooner. Measured on an H200, whose sheet says 7.4: products of BERT-base in training 3.9 times, convolutions of ResNet-50 at batch 1 3.5 and at
 * batch 32 4.6 times (docs/benchmarks.md). Twice: the gain of a program that waits for its products is told a quarter too large. */
static const double TF32_REACHES[] = {0.25, 0.5, 1};

/* The same of 16 bits, where the least is no gain: kernels of one image may be too short. Measured, as shares of what the sheet says: trainings of BERT and
 * ResNet-50 on an H200 0.27 and 0.25, with the conversions around their products; the best records of 46 convolutions there 0.40 in the median, 0.79 in the upper
 * quarter; 80 convolutions of ResNet-50 on a V100 0.44 at batch 32, 0.29 at batch 8 and 0.16 at batch 1 (published measurements). Twice: as TF32's. */
static const double HALF_REACHES[] = {0, 0.3, 0.8};

/* How far a kernel of no known problem is off by rooflines, as a logarithm: nine of ten networks were less than 1.6 times off ('predict
 * --evaluate'). Twice: intervals of moved iterations up to twice as wide. */
static const double ROOFLINE_OFF = 0.45;

/* Share of the latency by which a program differs from one process to the next at the least: no time after a change is known better. Measured: a
 * ResNet-18 of PyTorch took 29.3 to 30.5 ms in three processes, one of ONNX Runtime 22.6 to 23.3 in four (Zen 5, 2026-11-23, tests/bench/advice.py),
 * while the iterations of one process told their median within 0.2 %. Twice: intervals are wider by as much. */
static const double PROCESSES = 0.01;

/* Half the interval of a latency of which there is one iteration, as a share. Chosen. Twice: intervals of such recordings are wider by as much. */
static const double ONE_ITERATION = 0.1;

/* Share of an iteration's multiplications that compute gradients of weights, from where on it is one of training. Reasoned: they are a third where each
 * product has two on the way back, and none where there is no way back. Twice: no program trains, by its products. */
static const double TRAINS_LEAST = 0.2;

/* Share of an iteration that nobody can price: above it no number stands, as a bound has none below 95 % of the modelled time. Twice: a
 * prediction may be off by a tenth of its own. */
static const double UNPRICED_MOST = 0.05;

/* Share of a recording's products that must be the model's before its layers get streams of their own. Reasoned: a program merges some. Half:
 * streams of another network's modules. */
static const double MATCHED_LEAST = 0.8;

/* Share of the bound's time that layers may have which no task of the recording did, where the iteration is said to take its bound. Chosen. Twice: up
 * to a fiftieth of the bound is told as no time. */
static const double UNPLACED_MOST = 0.01;

/* Share of the iteration that a transformation must gain behind others to be tried together with them. Chosen: less cannot be measured. Twice: the last
 * row or two are missing. */
static const double TOGETHER_LEAST = 0.001;

/* Two iterations follow each other in steps where neither takes less than so much of the other. Chosen: programs of two kinds of iterations in turn, such
 * as training and evaluation, differ by more. Twice is above 1; 0.9: recordings of one network that jitter have no steps. */
static const double ALIKE = 0.75;

/* Share of a thread's pause that another one's work covers where it was handed over. Reasoned: most of it. Twice: hand-overs are never seen, and
 * the backward pass of PyTorch runs beside the forward one. */
static const double HANDOVER_COVERS = 0.5;

/* µs of an operator of a framework on a short tensor, at the least, likely and at the most, where the recording has none to tell. Measured: conversions of
 * 16 kB by PyTorch 1.13 took 10 µs each on a virtual Zen 5 (an LSTM's steps with and without autocast); the other two are chosen. Twice: an LSTM's training
 * is promised half as much of bf16. */
static const double OPERATOR_TAKES[] = {2, 5, 10};

/* Share of an operator's time that operators within it may have where it is a task, and they are none. Reasoned: it works more than they do. Twice:
 * every outermost operator is one task; half: addmm is not, and its product is time between calls. */
static const double WORKER_INSIDE = 0.5;

/* Times what weights take longer by two loops, one over an iteration's bytes and one over the call's, which they cost a call, at the least, likely and at the most,
 * where no record with cold caches tells: a kernel that computes reads less far ahead than a loop that reads alone, and arithmetic may hide it all. Measured: the
 * records of 137 convolutions whose bytes are weights for the most part took 2.2 times as much longer with cold caches in the median, 4.3 in the upper
 * quarter (ResNet-18, SqueezeNet-1.1, EfficientNet-v2-S; Zen 5). Twice: a ResNet-34 is promised a fifth less of freezing. */
static const double AGAIN_TAKES[] = {0, 2.2, 4.3};

/* Pages of the program are cleared beside its work, and what is cleared leaves the caches: the share of pages in an iteration, times so much, is the share
 * by which the rest of it becomes shorter where none is taken. Measured: 15 programs on a Zen 5, nine of them on two or three days: 0.4 in the median of 30 gains
 * (docs/benchmarks.md). Twice: the gain of keeping memory is told up to a quarter larger. */
static const double ANEW_ROBS = 0.4;

/* A factor below which a call counts as faster in what is told. Nothing else rests on it. */
static const double FASTER = 0.999;

/* glibc's largest threshold of mmap (mallopt(3), M_MMAP_THRESHOLD), on 64 bits. A fact. */
static const double MAPPED = 4.0 * 1024 * 1024 * sizeof(long);

enum {
    /* ns by which times of one clock may contradict each other: recordings in whole microseconds. Twice: a wait of 2 µs for a device is none. */
    CLOCK_ROUNDS = 1000,

    /* ns by which a device's clock and a host's may: both round. Twice: waits that end 4 µs before their work count. */
    CLOCKS_DIFFER = 2000,

    /* ns from which on it is told that work began late without a reason. Chosen. Twice: fewer notes. */
    NOTICED = 10000,

    /* ns: shorter pauses of a thread hand over to nobody. Reasoned: waking a thread takes some µs. Twice: threads that take turns
     * quickly run beside each other. */
    HANDOVER = 20000,

    /* ns: no call of a device's runtime is shorter without a recorder. Reasoned. Twice: recorders added less. */
    SHORTEST_CALL = 1000,

    /* A reorder makes the weights of one of so many calls behind it. Reasoned as in explain/constants.h; flows have views in between. */
    CALLS_TO_WEIGHTS = 8,

    /* Operators within one that is around most of an iteration's: from so many on it is the program, and no layer. Chosen: a layer of PyTorch has four
     * or five within each other. Twice: the critical path of a small network is one row, the network. */
    PROGRAM_LEAST = 20,

    /* The longest copy has so many times the bytes of the shortest, or both tell no line. Reasoned. Twice: fewer recordings tell
     * what a copy takes that no link shortens. */
    COPIES_APART = 4,

    /* Iterations behind one another, the last two of which tell a steady step: the first fills the queue. Twice: nothing but time. */
    CHAIN = 3,

    /* Batches that records are looked for: 2 to this power as many items, or as few. Chosen. Twice: nothing, no records are so far apart. */
    PROBES = 11,

    /* Dependencies that the removal of one task may make; one with more on both sides stays, and takes no time. A limit of memory. Twice: nothing. */
    BRIDGE = 1024,

    /* Ranges of phases within one another, in the mean, in a file that lies. A limit of time. Twice: nothing. */
    RANGES_DEEPEST = 64,

    /* Bytes of a line of a cache. */
    LINE = 64
};

#endif
