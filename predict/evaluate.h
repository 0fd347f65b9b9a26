/* evaluate: how far off predictions are, by leaving out what is known. */
#ifndef BZ_PREDICT_EVALUATE_H
#define BZ_PREDICT_EVALUATE_H

#include "predict/network.h"
#include "predict/predict.h"

enum { BZ_NEIGHBOURS = 64 };

/* weight[i] of the machines for which use[i] holds, sum 1; the others are 0. unsure[i]: how much what they tell is off by itself, as a
 * variance in the same units; NULL: not at all. Returns the variance that they leave, in units of
 * what machines differ by at all; INFINITY where there is no neighbour. */
double bz_neighbours(const bz_machine *machine, const bool *use, int n, const bz_machine *to, const bz_kinship *k,
                     const double *unsure, double *weight);

/* Seconds that a call takes at the least, as other machines tell: so many clocks. 0 where none tells. *unsure (NULL: not asked): the variance of its
 * logarithm, which is what those machines differ by among themselves. */
double bz_floor_told(const bz_machine *machine, const bool *use, int n, const bz_machine *to, double *unsure);

/* out[BZ_GROUPS]: what predicts the machines for which use[m] holds (NULL: all) well, each from the others, by the problems for which known[i] does (NULL:
 * all). Where they are too few to tell, what ships. Nobody but these machines and problems is asked: a choice may be judged by the others. */
void bz_kinship_choose(const bz_samples *s, const bool *use, const bool *known, bz_kinship *out);

/* A model at a batch: which problems of the table it runs, and how often. */
typedef struct bz_workload {
    const char *name;
    int64_t batch;
    int n;
    const int *problem, *times;
    double flops, bytes; /* of products; of all: of the whole model, with what no machine has a record of */
} bz_workload;

/* Layers that no machine has records of are no problems of it. Lives in the arena. */
int bz_workload_make(const bz_samples *s, const char *path, int64_t batch, bz_arena *arena, bz_workload *out,
                     bz_error *err);

/* Ways that are held against each other: ours, then the scalings from each single machine, the last of them by the network of dense layers. */
enum { BZ_RULE_DENSE = 1 + BZ_SCALING_N, BZ_RULES };
extern const char *const bz_rule_names[BZ_RULES];

typedef struct bz_error_sum {
    const char *name; /* of the machine, network or kind */
    int n;            /* totals of networks; of a kind: problems */
    int scaled;       /* of the totals, those whose calls another machine has, too */
    double total
        [BZ_RULES]; /* mean error of a network's time; of a kind: of its calls, as below. NAN: nothing to scale from */
    double bias;    /* the same with its sign, of our way */
    double layers;  /* error of all calls, weighted by their time */
    double median;  /* of single problems, not weighted */
    double inside;  /* share of totals inside of their interval */
} bz_error_sum;

/* A network's time on a machine, seconds. */
typedef struct bz_judged {
    double measured, predicted;
    double spread;        /* of the prediction's logarithm */
    double low, high;     /* its interval, by the errors on the other machines; NAN: there is no other */
    int machine, network; /* rows of the judgement */
    int64_t batch;
} bz_judged;

/* What is measured on a system that is left out, what tells most first: a share of its problems, or as many as so many seconds are
 * expected to take. Both 0: nothing. */
typedef struct bz_few {
    double share, seconds;
} bz_few;

/* A network's time on one system by the times of its very calls on one other, for calls that both have. */
typedef struct bz_pair {
    int from, to, n;        /* machines; totals */
    double error[BZ_RULES]; /* mean, by our way and by the scalings */
} bz_pair;

/* By which way a kind is predicted on a system that is left out, as the other systems tell. */
typedef struct bz_choice_made {
    const char *system, *kind, *way;
} bz_choice_made;

/* TRAINED: a system, and whatever its prediction does not find in a set of --train. BOTH: a system and a third of the networks together, as
 * somebody meets it who has neither. Nothing that predicts what is left out was chosen or learned by it. */
typedef enum {
    BZ_LEAVE_SYSTEM,
    BZ_LEAVE_NETWORK,
    BZ_LEAVE_BATCH,
    BZ_LEAVE_BOTH,
    BZ_LEAVE_TRAINED,
    BZ_LEAVE_N
} bz_leave;

typedef struct bz_judgement {
    bz_leave leave;
    const char *left_out; /* "system", "network", "batch", "system and a third of the networks" … */
    const char *missing;  /* why there is no such round, and nothing below; NULL: there is one */
    const bz_samples *samples;
    bz_error_sum all, *machine, *network, *kind;
    int machines, networks, kinds;
    bz_few few;      /* what was measured on the left-out system */
    double spent;    /* seconds that this took there by its records, mean of the systems; NAN: nobody noted that */
    double ranked;   /* share of pairs of machines that a network's predicted times order as the measured ones */
    double quantile; /* of the totals' errors in units of their spread, nine of ten are below it */
    bz_pair *pair;   /* [pairs]: of systems left out entirely */
    int pairs;
    bz_choice_made *choice; /* [choices]: likewise, where enough other systems tell */
    int choices;
    double printed;   /* share of the totals inside of the interval that a prediction is printed with */
    bz_judged *point; /* [points]: totals, for a picture */
    int points;
} bz_judgement;

/* Why this cannot be left out: what would remain teaches nothing. NULL: it can. */
const char *bz_judge_missing(const bz_samples *s, const bz_workload *work, int n, bz_leave leave);

/* What the others of its sort tell of a machine that is left out. */
typedef struct bz_without {
    bz_kinship kinship[BZ_GROUPS];
    bz_predictor *predictor;
    double *dense; /* [n * machines]: logarithms of seconds by the network of dense layers; NULL: it was not trained */
} bz_without;

/* By how much the time of a problem changes from one machine to another, by a rule but ours; `without`: of the second. NAN: by a network that was
 * not trained. */
double bz_rule_scale(const bz_samples *s, const bz_without *without, int rule, int row, int from, int to);

/* `without`: of each machine; of systems that are left out alone. */
void bz_judge(const bz_samples *s, const bz_workload *work, int n, bz_leave leave, bz_few few,
              const bz_without *without, bz_arena *arena, bz_judgement *out);

/* Seconds of a network's calls that both machines have on the one, by those on the other: by the roofline of the machine (out[0]) and by each rule.
 * Returns what they take there; 0: they have none in common. `without`: of `to`. */
double bz_work_scaled(const bz_samples *s, const bz_workload *work, const bz_without *without, int from, int to,
                      double out[BZ_RULES]);

/* All rounds that `predict --evaluate` has: systems left out, but for a little of each; networks, batches. No batches: the usual ones. Rounds that
 * cannot be made stand at the end, with the reason (missing); where none can be made that is an error. `dense`: the network of dense layers is trained
 * and held against them, which takes some seconds for each machine. */
int bz_judge_all(const bz_samples *s, const char *const *path, int n_paths, const int64_t *batch, int n_batches,
                 bool dense, bz_arena *arena, bz_judgement **out, int *n_out, bz_error *err);

/* ---- what to measure first -------------------------------------------------------------------- */

/* Seconds that benchmarks take, by the records of machines for which use[m] holds (NULL: all). */
typedef struct bz_benchmark_times {
    const bz_samples *samples; /* NULL: no records */
    const bool *use;
    double kind[BZ_SHAPE_KINDS], all; /* means; NAN: no records */
} bz_benchmark_times;
void bz_benchmark_times_of(const bz_samples *s, const bool *use, bz_benchmark_times *out);

/* Problems in the order in which they tell most: `cost` is what each counts (its predicted share of the work), `seconds` what measuring it
 * takes (NULL: alike). At most `wanted` of them, and no more than `budget` seconds. `out` has room for n. Returns how many. */
int bz_most_informative(const bz_shape *const *shape, const double *cost, const double *seconds, int n, int wanted,
                        double budget, int *out);

/* [s->n], to be freed: what is measured first on a machine that is left out, by what this work would take as `a` predicts it, and as benchmarks took
 * on the others. *spent: seconds that it took there; NAN where no record tells. */
bool *bz_first_measured(const bz_samples *s, const bz_workload *work, int n_work, bz_few few, bz_aim *a, int machine,
                        const bool *others, double *spent);

/* Of what the plan wants, keeps the problems that tell most of a system's times: at most `wanted` (0: any number), in no more than
 * `budget` seconds (0: any time). What they cost stands for what they weigh: by the system's roofline where its rates are known, else
 * as if a byte cost as much as ten operations. Returns the seconds that measuring them should take. */
double bz_plan_most_informative(bz_plan *plan, const bz_samples *records, bz_perfdb *db, const bz_system *system,
                                const bz_setting *setting, int64_t wanted, double budget);

#endif
