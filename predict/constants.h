/* Every number of the rule that is not learned from records: what it stands for, where it is from, and what a value twice as large would change.
 * Private to predict/. Set once, on the published times of seven GPUs (2026-11-23, docs/benchmarks.md, "Predictions"); errors of networks are
 * those of 'predict --evaluate --batch 1' over 28 networks, a GPU left out. What is chosen anew in each fold, kinship and base clocks, stands in
 * neighbours.c and choose.c; what chips are stands in machine.c and occupancy.c. */
#ifndef BZ_PREDICT_CONSTANTS_H
#define BZ_PREDICT_CONSTANTS_H

/* Length of the kernel over problems, in e-folds of an extent. Twice: as far off; 2.1 % for 1.2 where 5 % of a GPU's problems are measured. */
static const double LENGTH = 3;

/* Variance below which a further point tells nothing new, and how many points are kept at the most: a few hundred tell the others. Reasoned.
 * Twice: fewer points, or twice the memory and four times the time of a fit. */
static const double TOLD = 1e-4;
enum { POINTS = 420 };

/* Variance of what times of one shape differ by that the shape does not tell; of records of one's own less, as neighbours told the rest. Twice:
 * no digit of networks; of the second, calls 1.3 % for 1.1 where 5 % are measured. */
static const double NOISE = 0.01, OWN_NOISE = 0.03;

/* Records of a kind by which a machine's own are judged, each without itself. Chosen. Twice: no digit. */
enum { SAMPLE = 100 };

/* Variance of what all records of one's own differ by alike. Twice: no digit. */
static const double OWN_CONSTANT = 0.3;

/* Records that count as told by the neighbours exactly, against what one's own are off by alike. Reasoned: machines differ as a whole by about what
 * single problems do (15 and 19 %), so of one record half is believed where no shape is near. 0: three networks of a processor with one record are
 * 11 to 25 % off, outside of their intervals; 1: 8 to 17 %, inside. Twice: a third is believed. */
static const double AGAINST = 1;

/* How unsure a neighbour is that has only problems like it, or the same at other batches, beside one that has the problem: the second is a ratio
 * of squared errors (0.14 and 0.35). Twice: no digit at one batch. */
static const double LEARNED_UNSURE = 1, BATCH_UNSURE = 0.15;

/* Variances by which one width of intervals holds nine of ten where systems, networks and batches are left out, and where a twentieth is measured
 * (0.39, 0.40, 0.28, 0.36 spreads). Twice: intervals of what is learned, or of what is measured, are up to 1.4 times as wide. */
static const double SHAPES = 2, LEAST = 0.02;

/* Records of a kind, below which another kind tells more. Chosen. Twice: kinds with few records go as all others do. */
enum { FEWEST = 3 };

/* Another way takes the rule's place for a kind where it is nearer by SURELY standard errors, over at least JUDGES machines left out, each by OF_A_KIND
 * problems or more (at most JUDGED of them are asked); logarithms that are off by less than SAME count alike. Reasoned: two errors are what surely
 * commonly means, five machines are the least of which one leaves four to agree, and fewer problems are those of one or two networks: with 4, plain products of a
 * K520 went by peak, and sums were 10.8 % off for 8.2. 1 error: seven GPUs are off by 8.5 % for 7.7, as ways are chosen that hold on six and not on
 * the seventh. Twice: no way is ever chosen. */
static const double SURELY = 2, SAME = 1e-4;
enum { JUDGES = 5, OF_A_KIND = 20, JUDGED = 200 };

/* Chips of two capabilities are a step apart at the least, as Volta and Turing: where Kepler's two were twins, nine of ten intervals held 71 of 100.
 * Twice: wider intervals for chips that are akin. A GPU newer than all that are known counts as so much newer. */
static const double STEP = 0.2;

/* What large products reach of the peak, and large copies of the bandwidth: residuals correct both. Half: 11.4 % for 9.8, and nothing where 5 %
 * are measured. */
static const double PRODUCT = 0.7, COPY = 0.85;

/* Elements of a convolution's result that a multiprocessor makes at the least, a tile of 64 by 32: with fewer of them than multiprocessors
 * the rest is idle. Reasoned, and seen on 8 networks at batch 1 (1024 to 8192: 8.8, 8.1, 7.9, 8.4 %; none: 10.1). Judged on the others.
 * Twice: batch 1 7.9 % off for 8.1, and a V100's half precision told 10 % too slow. */
static const double TILE = 2048;

/* In half precision, of the seven GPUs' records of f32 (ResNet-50, cuDNN 7.6, 2019): MATRIX, what tensor cores reach of their peak beside what
 * other units reach of theirs; MOVED, what reading and writing numbers of two bytes reaches of the bandwidth beside those of four. By a V100, judged
 * on the others. Half: products take up to twice as long, what moves data takes twice as long. */
static const double MATRIX = 0.7, MOVED = 0.7;

/* By how much a transformed convolution of 3 by 3 multiplies less in its smallest form, F(2x2, 3x3): 36 products become 16. By arithmetic. */
static const double TRANSFORMED = 2.25;

/* What a window of 3 by 3 with holes takes beside one without, which is transformed; both have the same residual. Measured: DUC's ten on a V100 at
 * batch 1 took 1.73 times as long, its others what was told. 1: such networks are told to take 0.6 to 0.8 of their time. */
static const double HOLES = 1.75;

/* Bytes that a GPU's last cache may keep, where nobody told its size: more than any has that is in the table. Twice: no digit. */
static const double KEPT = 128e6;

/* How many times as fast as its data sheet a GPU may be in a record before the record is wrong: cards clock higher, error correction may be off, and
 * a Titan V's added biases are told at 1.5 times its bandwidth. Published times of VGG's and ArcFace's classifiers, and of DUC's softmax, are of smaller
 * ones, 3 to 27 times as fast; one stays. Twice: more do. */
static const double TOO_FAST = 2;

/* Base clock over boost clock where the table has none: half of its GPUs have more. Half: a roofline is 2 times as long, where no neighbour is
 * akin. */
static const double BASE = 0.8;

/* The published network of dense layers, as large as 20,000 records bear: 9,000 parameters where published ones have 7,000,000. So the first rate is
 * four times the published one; it falls to none along a cosine. Epochs are the published ones. Chosen before it was judged. */
enum { WIDTH = 64, HIDDEN = 3, EPOCHS = 80 };
static const double RATE = 2e-3;

/* A GPU's database teaches from so many records of two GPUs on: as many as a network has problems. Of processors nothing ships: a few of one are
 * better than none. Twice: small databases are predicted by what ships. */
enum { ENOUGH = 100, OF_PROCESSORS = 20 };

/* Seconds of a benchmark for each second of its calls: 696 problems took 833 s, their calls 499 (a Xeon with two cores, 2026-11-23). UNKNOWN: of
 * a problem of which nothing is known, in seconds. Twice: half as many problems fit a budget. */
static const double OVERHEAD = 1.7, UNKNOWN = 1;

#endif
