/* predict: how long a call takes on a system that has no record of it.
 *
 *   bz_samples_load       the records of a database as a table: problems by machines
 *   bz_predictor_new      what the table teaches: how each machine differs from its data sheet, kind by kind
 *   bz_predictor_aim      a machine to predict for, with or without records
 *   bz_predict            seconds of one problem there
 *
 * One rule for all: log t = log roofline(machine) + residual. The roofline has a floor (what a call takes at least), the
 * clock that the machine holds under full load, and the bandwidth that its memory leaves. The residual is what libraries
 * make of it. It is learned in two directions:
 *
 *   over problems   for each machine and kind of problem: kernel ridge regression on the logarithms of the shape (learned.c)
 *   over machines   kriging: the closer two machines are in generation, rate and bandwidth, the more one tells of the other
 *                   (neighbours.c)
 *
 * A machine with a few records of its own corrects the second by the first: its residual against its neighbours is learned
 * over problems.
 *
 * The published ways stand beside it, to be compared: ratios of peaks and rooflines, wave scaling (scaling.c) with
 * occupancies (occupancy.c), and a network of dense layers (dense.c). A scaling takes the rule's place for a kind of problem where
 * leaving out one machine after the other tells that it is surely nearer (ways.c).
 *
 * Predicted is never measured: no function here writes a record. */
#ifndef BZ_PREDICT_H
#define BZ_PREDICT_H

#include "bound/bound.h"
#include "generator/generator.h"
#include "perfdb/perfdb.h"
#include "runtime/problem.h"

#include <stdio.h>

/* ---- machines ------------------------------------------------------------------------------- */

/* A system as numbers. */
enum { BZ_CACHE_RATES = BZ_PEAKS };
typedef struct bz_machine {
    const char *name; /* of the system in the database, or the slug of its data sheet */
    bool gpu;
    double f32, f64, f16, bf16,
        i8; /* operations per second at the boost clock; f64: 0 where nobody told; the others where nothing is faster than f32 */
    double memory; /* bytes that it has; 0: not told */
    double kept;   /* bytes that the last cache of a GPU may keep from call to call */
    double
        vouched; /* the base clock, which its maker vouches for under the worst load, as a share of the boost clock */
    double clock, multiprocessors; /* Hz; a processor: threads */
    double bandwidth;              /* bytes per second that programs reach of the memory */
    struct bz_cache_rate {
        double bytes, rate;
    } cache[BZ_CACHE_RATES]; /* of a processor: of buffers that its caches hold, the smallest first */
    int caches;              /* 0: nobody told, all goes as the memory does */
    double generation;       /* architectures in the order in which they came: close numbers, similar machines */
    double launch;           /* seconds of an empty call, as it was measured without any record; 0: not told */
    double floor;            /* seconds that a call takes at the least; NAN: no records tell */
    int capability;          /* 75 for 7.5; 0: no GPU */
} bz_machine;

/* By what a database knows of a system. -1 where neither a measurement nor a data sheet tells its rates. */
int bz_machine_of(const bz_system_facts *facts, const char *name, const bz_setting *setting, bz_machine *out,
                  bz_error *err);
/* By the slug or name of a GPU in runtime/gpus.txt, or by a file with lines such as "multiprocessors 80" (a GPU) or "threads 2" (a
 * processor). */
int bz_machine_named(const char *name, bz_arena *arena, bz_machine *out, bz_error *err);
/* By the lines of such a file; `path` is for messages, and *out has no name yet. */
int bz_machine_described(FILE *f, const char *path, bz_machine *out, bz_error *err);
/* Whether libraries transform convolutions there (Winograd), which takes fewer operations: oneDNN does from AVX-512 on. */
bool bz_machine_transforms(const bz_machine *m);
/* Bytes per second of operands of so many bytes, used again and again. */
double bz_machine_bandwidth(const bz_machine *m, double bytes);

/* ---- problems ------------------------------------------------------------------------------- */

enum {
    BZ_SHAPE = 10,
    BZ_SHAPE_BROADCAST = BZ_PROBLEM_N_KINDS, /* a binary whose second operand is broadcast */
    BZ_SHAPE_SERIES,                         /* an activation that is worked out as a series: erf, exp … */
    BZ_SHAPE_FUSED,
    BZ_SHAPE_KINDS = 2 * BZ_SHAPE_FUSED
};

/* A problem as numbers: what the regression sees. */
typedef struct bz_shape {
    int kind; /* a bz_problem_kind, or as above. With post-operations BZ_SHAPE_FUSED more: the same library may run another kernel */
    bool product;
    bool series; /* each element is worked out as a series: arithmetic counts there, too */
    bool
        transformable; /* a convolution of 3 by 3 without steps or groups, which takes fewer operations when transformed (Winograd) */
    bool holes;  /* the same but for a dilation: nothing transforms it */
    bool uneven; /* a convolution whose channels are no multiples of 8 */
    bz_dtype dtype;
    double flops, bytes, blocks; /* blocks: thread blocks that a GPU would run, roughly */
    double depth;                /* of a convolution: products that each element of its result adds up */
    int n;
    double x[BZ_SHAPE];
    double items, grows[BZ_SHAPE]; /* how much x grows where items are e times as many; items 0: nothing tells */
    int size;                      /* which of x tells how large it is */
} bz_shape;

void bz_shape_of(const bz_problem *p, bz_shape *out);
const char *bz_shape_kind_name(int kind); /* of what is left of it without BZ_SHAPE_FUSED */

/* The same problem with so many times the items; false where its text does not tell what counts them, or that is no whole number. */
bool bz_problem_batched(const bz_problem *p, double times, bz_problem *out);
double bz_problem_items(const bz_problem *p); /* that it has; 0: nothing tells */

/* Seconds by the roofline of a machine with so long a floor, that holds so many base clocks (bz_kinship). */
double bz_shape_roofline(const bz_shape *s, const bz_machine *m, double floor, double margin);
/* Seconds in which no library does it on a GPU: what its cache cannot have kept comes from the memory, and products take their multiplications. A
 * convolution may take a ninth of them (transformed). 0 for a processor. */
double bz_shape_least(const bz_shape *s, const bz_machine *m);
/* Whether it may have taken so long: else the time is of another problem. Cards clock higher than their data sheets say. */
bool bz_shape_possible(const bz_shape *s, const bz_machine *m, double seconds);

/* ---- the records as a table ------------------------------------------------------------------ */

typedef struct bz_samples {
    bz_arena arena;
    const char **text; /* [n]: problems */
    bz_shape *shape;
    int n;
    bz_machine *machine;
    int machines;
    double *log; /* [n * machines]: of seconds; NAN where there is no record */
    double *
        direct; /* the same by algorithms that transform nothing: what machines without them tell. NULL: nobody looked */
    double *
        intensity; /* operations per byte that a GPU counted in the cheapest record; NAN: nobody counted. NULL: nobody looked */
    double *
        spent; /* [n * machines]: seconds in which all records of the problem called it; 0: not noted. NULL: nobody looked */
    bz_map map; /* text -> problem */
    /* Problems that differ in their number of items alone are a family. NULL: nobody looked. */
    int *family, *next; /* [n]: its first row, -1 where that cannot be told; the next row of it, -1 behind the last */
    double *items;      /* [n] */
    bz_map families;    /* text of one item -> first row */
} bz_samples;

/* The cheapest record of each problem that ran well and that `only` takes (NULL: all but those of f32 in fewer bits), for all systems whose rates are
 * known; the others are named by `warn`. */
int bz_samples_load(bz_perfdb *db, const bz_setting *setting, const bz_plan_options *only, bz_samples *out,
                    bz_error *err);
void bz_samples_free(bz_samples *s);
/* Notes the family of a row: its problem is `p`. */
void bz_samples_join(bz_samples *s, int row, const bz_problem *p);
/* The first row of the family of a problem by its text; -1: no other of it is known. */
int bz_samples_family(const bz_samples *s, const char *problem, double *items);
int bz_samples_machine(const bz_samples *s, const char *name); /* -1: it has none of that name */
int bz_samples_of(const bz_samples *s, int machine);           /* problems that it has a record of */
/* Operations per byte of a problem on a machine: as they were counted there, else by the definition. */
double bz_samples_intensity(const bz_samples *s, int problem, int machine);
static inline double bz_samples_log(const bz_samples *s, int problem, int machine)
{
    return s->log[(size_t)problem * (size_t)s->machines + (size_t)machine];
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* How machines tell of one another, for a group of kinds: products; what moves data. */
enum { BZ_GROUPS = 2 };
typedef struct bz_kinship {
    double margin;     /* how many base clocks products hold, as the boost clock allows */
    double generation; /* generations over which machines stay alike */
    double noise;      /* what no neighbour tells */
} bz_kinship;
extern const bz_kinship bz_kinships[BZ_GROUPS]; /* those that ship */

/* Clock that a GPU holds under load, as a share of its boost clock. A maker vouches for the base clock under the worst load within the watts
 * of the board; convolutions draw less, and the clock rises by what that leaves, at most to the boost clock. A T4 (70 W) holds 760 of 1590 MHz. */
static inline double bz_machine_held(const bz_machine *m, double margin)
{
    return margin * m->vouched < 1 ? margin * m->vouched : 1;
}
int bz_shape_group(const bz_shape *s);

typedef struct bz_predictor bz_predictor;
typedef struct bz_aim bz_aim;

/* Learns from all machines of the table for which use[machine] holds (NULL: all), and from those problems for which
 * known[problem] does (NULL: all). Lives until freed. */
bz_predictor *bz_predictor_new(const bz_samples *s, const bool *use, const bool *known, const bz_kinship *kinship);
void bz_predictor_free(bz_predictor *p);

/* What it learned as text, and back: kinship, machines, and the points and weights of each kind, with a hash of the records that it
 * rests on. Numbers are written in seven digits. */
void bz_predictor_write(const bz_predictor *p, bz_buf *out);
int bz_predictor_read(const char *text, const char *name, bz_predictor **out, bz_error *err);
/* What comes with the program; a predictor of 7 GPUs from 2013 to 2018. */
bz_predictor *bz_predictor_shipped(void);
/* What is best for GPUs or processors: by the table where that has a hundred records of two such machines, else what ships. NULL: of
 * processors nothing ships. */
bz_predictor *bz_predictor_best(const bz_samples *s, bool gpu);
/* Forgets all machines but these GPUs or processors, named as the database names them or by what stands before the @. -1: one of them teaches
 * nothing, or is of the other sort. */
int bz_predictor_only(bz_predictor *p, bool gpu, const char *const *name, int n, bz_error *err);
bool bz_machine_is(const bz_machine *m, const char *name);

/* A machine to predict for. `own`: its number in `records`, which then count too, those of problems for which measured[problem]
 * holds (NULL: all); -1: it has none. `records` may be the table that the predictor learned from, or another. */
bz_aim *bz_predictor_aim(const bz_predictor *p, const bz_machine *machine, const bz_samples *records, int own,
                         const bool *measured);
void bz_aim_free(bz_aim *a);
const bz_predictor *bz_aim_predictor(const bz_aim *a);
/* Where intervals were never held against anything: 1 for a machine without records that is newer than all that were learned from, -1 for an
 * older one, else 0. */
int bz_aim_beyond(const bz_aim *a);
/* bz_predictor_met_type of its predictor, asked once. */
bool bz_aim_met_type(const bz_aim *a, bz_dtype dtype);

typedef enum {
    BZ_PREDICTED_RECORD,
    BZ_PREDICTED_NEIGHBOURS,
    BZ_PREDICTED_BATCHES, /* the same with other items */
    BZ_PREDICTED_SCALED,  /* the same on one system, by a published scaling (bz_choice) */
    BZ_PREDICTED_LEARNED,
    BZ_PREDICTED_ROOFLINE,
    BZ_PREDICTED_N
} bz_predicted_by;
extern const char *const bz_predicted_names[BZ_PREDICTED_N];

/* Nine of ten totals of networks were off by less than so many of their spreads, whatever was left out: 'benanza predict --evaluate'
 * prints it of each round. */
#define BZ_NINE_OF_TEN 0.25

/* By which way a kind of problem is predicted: by the rule, unless another was surely nearer when each system was left out. */
typedef struct bz_choice {
    int way;        /* 0: the rule */
    bool validated; /* enough systems have records of the kind to hold the ways against each other */
} bz_choice;
bz_choice bz_predictor_choice(const bz_predictor *p, bool gpu, int kind);
const char *bz_way_name(int way);

typedef struct bz_predicted_time {
    double seconds;
    double
        spread; /* how unsure its logarithm is, in units of what machines differ by: BZ_NINE_OF_TEN of it make an interval */
    double
        alone; /* how much more by what is this problem's own, in the same units: over many problems it averages out */
    bz_predicted_by by;
} bz_predicted_time;

/* Whether a problem of this kind was ever met where it learned: else another kind stands in. */
bool bz_predictor_met(const bz_predictor *p, const bz_shape *shape);

/* Whether it ever met a problem in f32, or in any other type, which all count as one. */
bool bz_predictor_met_type(const bz_predictor *p, bz_dtype dtype);

/* Of a problem by its text; `shape` of the same problem. */
bz_predicted_time bz_predict(bz_aim *a, const char *text, const bz_shape *shape);

/* ---- models ---------------------------------------------------------------------------------- */

/* A model on a machine. Times are seconds. */
typedef struct bz_forecast {
    const char *model;
    const bz_machine *machine;
    int64_t batch;
    double sequential, parallel, fused; /* bounds */
    double low, high;                   /* nine of ten are between, as shares of any of its totals: 0.9, 1.12 */
    double by[BZ_PREDICTED_N];          /* share of the sequential bound */
    double other_type;                  /* share of it in a data type of which no machine has a record */
    double no_unit;                     /* share of it in bf16 where the machine has no unit for that */
    double needed;                      /* bytes that the operands of its largest call take */
    int layers, predicted, unpriced;    /* that cost something; of them with a predicted price, with none */
    int loops_open, branches;           /* as in bz_coverage_sum */
    bool enough;                        /* is priced for a total that says something (bz_goal) */
    int beyond;                         /* bz_aim_beyond */
} bz_forecast;

/* Fills what records do not price into the prices of a plan. */
void bz_forecast_fill(bz_aim *aim, const bz_plan *plan, const bz_setting *setting, const char *system,
                      bz_prices *prices, bz_arena *arena);

/* ---- all together ---------------------------------------------------------------------------- */

/* A system of the database, a GPU of the data sheets, or what a file describes. */
typedef struct bz_target {
    bz_machine machine;
    const bz_system *system; /* NULL: the database has none such */
    const bz_system_facts *facts;
    int own;     /* in the table; -1: no records */
    bz_aim *aim; /* bz_targets_aim */
} bz_target;
/* Those named: either GPUs or processors. */
int bz_targets_find(bz_perfdb *db, const bz_samples *s, const bz_setting *setting, const char *const *name, int n,
                    bz_arena *arena, bz_target *out, bz_error *err);
/* What predicts for them: the file `trained`, NULL: the table, or what ships. Records of other systems than `from` (`n_from` 0: all) teach nothing;
 * a target's own neither. */
int bz_targets_aim(bz_target *t, int n, const char *trained, const bz_samples *s, const char *const *from, int n_from,
                   bz_arena *arena, bz_error *err);
/* The models of a plan on each of these: out[i * m->n] and on is what target i makes of them. What lacks records is predicted. */
int bz_targets_forecast(const bz_target *t, int n, bz_perfdb *db, const bz_setting *setting, bz_dtype dtype,
                        const bz_models *m, const bz_plan *plan, bz_forecast *out, bz_error *err);

/* The text of a file that bz_targets_aim takes, by all that the table has. */
int bz_predictor_train(const bz_samples *s, bz_buf *out, bz_error *err);
/* Whatever stands there already must be such a file: 'predict --train model.onnx' names the model as the file to write. */
int bz_predictor_check_file(const char *path, bz_error *err);

/* ---- published ways -------------------------------------------------------------------------- */

typedef enum {
    BZ_SCALING_PEAK,
    BZ_SCALING_BANDWIDTH,
    BZ_SCALING_MULTIPROCESSORS,
    BZ_SCALING_ROOFLINE,
    BZ_SCALING_WAVES,
    BZ_SCALING_N
} bz_scaling;
/* By how much the time of a problem changes from one machine to another. `intensity`: operations per byte. */
double bz_scaling_of(bz_scaling which, const bz_shape *s, double intensity, const bz_machine *from,
                     const bz_machine *to);

/* Wave scaling: `gamma` is the memory's share, from arithmetic intensity and the ridge of the destination. */
typedef struct bz_wave_machine {
    double bandwidth, clock, wave; /* wave: blocks that run at once */
} bz_wave_machine;
double bz_wave_gamma(double intensity, double ridge);
double bz_wave_scale(const bz_wave_machine *o, const bz_wave_machine *d, double gamma);

/* Thread blocks that one multiprocessor holds at once; 0: such a kernel cannot be launched. `capability` as 75 for 7.5. */
typedef struct bz_launch {
    int threads, registers, shared_static, shared_dynamic;
} bz_launch;
typedef struct bz_occupancy_limits {
    int capability, threads, registers, block_registers, shared; /* of a multiprocessor; registers of a block */
} bz_occupancy_limits;
bool bz_occupancy_limits_of(int capability, bz_occupancy_limits *out);
int bz_occupancy(const bz_occupancy_limits *l, const bz_launch *k);

#endif
