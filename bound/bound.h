/* bound: how fast a model could run on a system.
 *
 *   bz_peaks_*        what the hardware could do at best
 *   bz_bound_make     a model's bound: prices summed up, with coverage and provenance; and the fused one
 *   bz_picks_make     what the library takes by itself, where a program leaves it the choice
 *
 * Analyses, here and in the rooms below, are plain structs that live in the arena they were made in; making them prints
 * nothing, printing them computes nothing. The same input gives the same bytes.
 *
 * Seconds. Every price is rounded to a multiple of 2^-44 s (0.06 ps) when it enters. Sums of such
 * numbers are exact in a double up to 512 s, in whatever order they are added: that a chain's
 * parallel bound equals its sequential one, or that a waterfall adds up, holds exactly and not up to
 * an epsilon. */
#ifndef BZ_BOUND_H
#define BZ_BOUND_H

#include "generator/generator.h"
#include "modelproc/modelproc.h"
#include "perfdb/perfdb.h"

double bz_tick(double seconds); /* rounded as said above; what is not finite stays */

/* ---- hardware ------------------------------------------------------------------------------- */

enum { BZ_PEAKS = 24 };

typedef struct bz_peak_rate {
    bz_dtype dtype;
    double rate; /* per second */
} bz_peak_rate;

/* What a system can do at best, from what 'benanza system --measure' and 'benanza transfer' found, else from the table of
 * data sheets (peaks.c). Where neither is there `why` is a sentence, else NULL. */
typedef struct bz_peaks {
    const char *why, *source; /* source: "measured", "data sheet" */
    bool busy;                /* others used the machine while it was measured: it can do more */
    int n_flops, n_reorder, n_convert, n_bandwidth;
    bz_peak_rate flops[BZ_PEAKS];
    bz_peak_rate reorder[BZ_PEAKS]; /* of elements: what the library brings from row-major order into blocks, */
    bz_peak_rate convert[BZ_PEAKS]; /* and from f32 into the type or back */
    struct {
        double bytes, rate, read; /* of the buffer; bytes per second at best, and where it is read alone */
    } bandwidth[BZ_PEAKS];        /* ascending */
} bz_peaks;

/* Rates that were measured with other threads are not used. */
void bz_peaks_read(const bz_system_facts *facts, const bz_setting *setting, bz_arena *arena, bz_peaks *out);
/* In a math mode as tf32 another type's units multiply f32, at their rate. */
void bz_peaks_allow(const bz_system_facts *facts, const bz_setting *setting, const char *math, bz_peaks *peaks);

/* A layer's roofline: the longer of its arithmetic and its traffic. Products with padding do not count.
 * Convolutions whose shape allows Winograd's algorithm are taken to need as few multiplications as F(4)
 * leaves them. The bandwidth is that of the next smaller buffer measured, which is the faster one.
 * *memory: traffic is the longer. */
double bz_peaks_arithmetic(const bz_peaks *peaks, const bz_layer *layer, bz_dtype dtype);
double bz_peaks_traffic(const bz_peaks *peaks, double bytes);
/* Seconds in which a program reads `bytes` again that goes over `among` bytes between: as a loop over the smallest buffer measured that holds those does. The
 * caches keep as much of either. 0 where nobody measured it; peaks may be NULL. */
double bz_peaks_again(const bz_peaks *peaks, double bytes, double among);
/* Seconds for so many elements; 0 where nobody measured it. peaks may be NULL. */
double bz_peaks_reorder(const bz_peaks *peaks, double elements, bz_dtype dtype);
double bz_peaks_convert(const bz_peaks *peaks, double elements, bz_dtype dtype);
double bz_peaks_bytes(const bz_layer *layer, const bz_type *type,
                      bz_dtype dtype); /* of a tensor; NULL: that it moves */
double bz_peaks_roofline(const bz_peaks *peaks, const bz_layer *layer, bz_dtype dtype, bool *memory);

/* ---- bound ---------------------------------------------------------------------------------- */

/* A layer that costs something, or that nobody could price. */
typedef struct bz_bound_layer {
    const bz_layer *layer;
    int node;     /* of the main graph: itself, or the one whose body it is in */
    double times; /* how often it runs: trips of the loops around it */
    bz_layer_price price;
    const bz_lowering *lowering;   /* all its alternatives; the plan's */
    const char *variant;           /* of the cheapest alternative: "onednn jit:avx512_core any"; NULL unpriced */
    double runner_up;              /* the next best way; NAN where there is no other */
    const char *runner_up_variant; /* NULL likewise */
    double hardware;               /* roofline; NAN where the peaks are not known */
    bool memory;                   /* the roofline is the memory's */
    bool floor; /* a record in it has no kernels' times (bz_record_has_floor): small calls carry some µs */
} bz_bound_layer;

/* Whether its record is faster than its roofline by more than the noise of both: one of them is wrong. */
bool bz_bound_contradicts(const bz_bound_layer *l);

/* Layers of one phase of an iteration of training, one after the other. */
typedef struct bz_bound_phase {
    const char *phase;
    int layers;
    double sequential; /* NAN where one has no price */
    double hardware;   /* NAN where the peaks are not known */
} bz_bound_phase;

typedef struct bz_coverage_sum {
    int layers;                                                  /* n */
    int free, measured, imported, modelled, predicted, unpriced; /* these add up to `layers` */
    int noisy, floor, missing;       /* marked; without kernels' times; problems without a record */
    int reference;                   /* that nothing but an implementation by the definition runs */
    int branches, loops, loops_open; /* If by their cheaper branch; loops; those of unknown length among them */
    double macs, macs_measured, macs_imported, macs_modelled, macs_predicted, macs_unpriced;
} bz_coverage_sum;

typedef struct bz_bound_module {
    const bz_module *module;
    bz_module_cost cost;
    int within; /* the module of this list that it lies in, or -1 */
} bz_bound_module;

/* A group of layers that a fusion pattern found, and that the fused bound rests on. */
typedef struct bz_bound_group {
    const char *pattern;
    const int *layer; /* [n], of the main graph, ascending; the last one makes the result */
    int n;
    bz_layer_price price;
} bz_bound_group;

/* A place where a pattern fits, in the cover or not. */
typedef struct bz_bound_place {
    const char *pattern;
    const int *layer; /* [n], as in a group */
    int n;
    bool refused;   /* cannot be fewer calls, or no backend supports the one */
    bz_spare spare; /* else than BZ_RUNS: one layer that need not run, which costs nothing and has no alternative */
    bz_layer_price price;
} bz_bound_place;

/* The cheapest cover of the main graph by layers and groups. */
typedef struct bz_bound_fused {
    bool wanted; /* the plan looked for groups; else nothing below holds */
    double sequential, parallel;
    double hardware; /* the cover by rooflines: what stays inside of a group need not move. NAN: peaks not known */
    bz_bound_group *group;
    int n, covered;        /* groups; layers that they stand for */
    int spares;            /* layers that need not run; they are no groups */
    const bz_spare *spare; /* [dag->n]: why a layer need not run */
    int modelled;          /* of these groups */
    int unpriced;          /* layers without a price that no group covers either */
    int refused, missing,
        failed; /* places that cannot be fewer calls; without a record; with records of failures only */
    bz_bound_place *place;
    int n_places;
} bz_bound_fused;

/* The layers whose records are marked noisy or busy, and whether measuring them once more can help. It cannot where most of them were
 * measured again and are marked again, or where the machine's speed changes within a measurement: no record can be steady then. */
typedef struct bz_bound_marks {
    int layers;
    int again; /* of them, where an earlier record of each marked call was marked, too */
    int restless; /* of them, where the yardstick before a record and the one behind it differ by more than steady samples may */
    bool lasting; /* most of them are the one, or most are the other */
    bool varies;  /* `slow` is more than steady samples differ by */
    double
        slow; /* by how much longer the yardstick took beside these records than at its best, as a share; NAN: not recorded */
    double
        above; /* by which share the sum may be too high: had the machine run at its best, or by the records' intervals */
} bz_bound_marks;

typedef struct bz_bound {
    const char *model, *system;
    const bz_system_facts *facts; /* what the database knows of the system */
    bz_setting setting;
    bz_dtype dtype;       /* asked for; BZ_UNDEFINED: as the model has it */
    int benchmarks;       /* run for this: records made */
    int problems, known;  /* that the models need; of which the database had all. 0: nobody asked */
    const char *measures; /* command that measures what has no record; NULL where nothing lacks or nobody knows */
    int rebuilt;          /* > 0: there is no model; so many layers were made from what a profile's program did, */
    const char *rebuilt_of, *left_out; /* its "library calls"; what made none: "40 reorder, 1 cudnnRNNForward"; "" */
    bool partial;                      /* as in bz_rebuilt */
    const uint32_t *made_by;           /* likewise */
    bz_layers *layers;
    const bz_dag *dag;
    const bz_peaks *peaks;
    bz_bound_layer *layer;
    int n;
    double *seconds;      /* [dag->n]: of each layer of the main graph, bodies included; unpriced 0 */
    const bool *unpriced; /* [dag->n]: it, or a layer in its bodies, has no price */
    bz_coverage_sum coverage;
    bz_bound_marks marks;
    double sequential, hardware, launch; /* hardware: NAN where not known; launch: not in the others */
    bz_bound_fused fused;
    bz_streams streams;
    bz_path path;            /* parallel: path.seconds */
    bz_bound_module *module; /* with a gain */
    int n_modules;
    int above_roofline; /* layers whose record contradicts their roofline, by more than both are certain */
} bz_bound;

/* Why it need not run; BZ_RUNS where it must, or nobody looked. */
bz_spare bz_bound_spared(const bz_bound *b, const bz_bound_layer *l);

int bz_bound_phases(const bz_bound *b,
                    bz_bound_phase out[BZ_TRAIN_PHASES]); /* how many; 0 where the model is no iteration */

/* Layers made from what a profile's typical iteration did: a chain, as they ran. They live in the arena they were made in. */
typedef struct bz_rebuilt {
    const char *of;    /* "library calls", "operators" */
    bz_layers *layers; /* NULL: there are none. Of library calls they have no model and no nodes */
    const bz_problem *const
        *problem;            /* [layers->n]: what each is; NULL: of operators, which are lowered as a model's layers */
    const char *left_out;    /* as in bz_bound */
    bool partial;            /* the iteration did other work besides: the way back of training */
    const uint32_t *made_by; /* [layers->n]: the operator of the trace that each stands for; NULL: of library calls */
} bz_rebuilt;

typedef struct bz_bound_input {
    const char *model, *system;
    const bz_system_facts *facts;
    bz_setting setting;
    bz_dtype dtype; /* as in the plan's options */
    bz_layers *layers;
    const bz_plan *plan;
    int number;                /* of the model in the plan */
    bool fused;                /* the plan has groups */
    const bz_rebuilt *rebuilt; /* what `layers` and the plan are of; NULL: of a model */
    const bz_dag *dag;         /* of the layers; NULL: to be built */
    bool brief; /* of equal layers only the first is listed; no streams, modules, next best ways, fused rooflines */
    bool bare;  /* all layers, but no more than brief has of the rest, and no names of variants */
    const bz_prices *prices;
    const bz_peaks *peaks;
} bz_bound_input;

/* As written: every layer by itself, at its cheapest alternative. Unpriced layers add nothing: the
 * totals are then lower ends, and coverage.unpriced says so. An If counts its cheaper branch; a layer
 * with bodies is one layer to the schedules, its bodies run one after the other. */
void bz_bound_make(const bz_bound_input *in, bz_arena *arena, bz_bound *out);

/* Fills b->marks, by the history of its records. */
int bz_bound_marks_make(bz_bound *b, const bz_prices *prices, bz_perfdb *db, const bz_system *system, bz_arena *arena,
                        bz_error *err);

/* The bound that a program is held against: the fused one where groups were planned, else the one as written; and how much
 * of it is priced. Whoever prints, draws or exports a speed-up, ratio, ladder, gain or mean asks here first: where less than
 * 99 % of the MACs or less than 95 % of the modelled time is priced, there is none. Where the peaks are not known the bytes
 * that layers move stand for their time. Not for brief bounds. */
typedef struct bz_goal {
    const char *name; /* "fused", "as written" */
    double sequential, parallel;
    double hardware; /* NAN: peaks not known */
    /* Records have a layer's weights in the caches. By how much longer `sequential` is where each layer takes at least what its weights need to come from
     * where the weights of all layers lie between two iterations, and how many bytes these are. Both 0: little longer, or not known. */
    double far, weights;
    int layers, unpriced; /* where a layer is unpriced the first two times are lower ends */
    double macs, time;    /* shares that are priced, 0 to 1 */
    bool modelled;        /* time: of the rooflines; else of the bytes */
    bool products;        /* enough of the MACs are priced, whatever else is not */
    int untold;           /* unpriced layers of which nothing tells how much they compute */
    bool enough;          /* for ratios */
} bz_goal;
bz_goal bz_bound_goal(const bz_bound *bound);
/* Whether so large shares of the multiplications, and of the time or the bytes, are enough for a ratio. */
bool bz_goal_enough(double macs, double time);
bz_goal bz_bound_written(const bz_bound *bound); /* the same of the one as written, whatever was planned */
/* "19 of 53 layers are priced, 10.9 % of the MACs and 4.2 % of the modelled time" */
void bz_goal_print(const bz_goal *goal, bz_buf *out);

/* ---- picks ---------------------------------------------------------------------------------- */

/* What the library takes by itself for a layer, hot, as its own heuristic has it: what a program gets that leaves the
 * choice to it. NAN: not known. */
typedef struct bz_pick {
    double seconds, low, high; /* all calls of the layer together; low, high: of the medians */
    double cold;               /* the same with nothing in the caches; NAN where nobody measured that */
    double weights, data;      /* bytes of its operands: constant ones, others */
    int calls;
    const char *variant; /* of the first call */
} bz_pick;

/* How sure it is that the library takes the variant of a record where it is asked so; 0: it does not. Records of which nobody
 * noted what it takes in training stand for what it takes in inference. */
int bz_pick_rank(const bz_record *r, bool training);

typedef struct bz_picks {
    bz_dtype dtype; /* that the layers compute in; BZ_UNDEFINED: as asked */
    bool training;  /* the library is asked as for training */
    bz_pick *free;  /* [bound->n]: in the layouts that the library wants */
    bz_pick *plain; /* [bound->n]: in row-major order, where it has calls for that */
    bz_pick *place; /* [bound->fused.n_places]: as free; none where a type was given */
} bz_picks;

int bz_picks_make(const bz_bound *bound, bz_dtype dtype, bool training, bz_perfdb *db, const bz_system *system,
                  bz_arena *arena, bz_picks *out, bz_error *err);

#endif
