/* evaluate: how far off predictions are, by leaving out what is known. */
#ifndef BZ_PREDICT_EVALUATE_H
#define BZ_PREDICT_EVALUATE_H

#include "predict/network.h"
#include "predict/predict.h"

/* Seconds that a call takes at the least, as other machines tell: so many clocks. 0 where none tells. */
double bz_floor_told(const bz_machine *machine, const bool *use, int n, const bz_machine *to);

/* out[BZ_GROUPS]: what predicts the machines for which use[m] holds best, each from the others. Where they are too few to tell, what
 * ships. Nobody but these machines is asked: a choice may be judged by the others. */
void bz_kinship_choose(const bz_samples *s, const bool *use, bz_kinship *out);

/* A model at a batch: which problems of the table it runs, and how often. */
typedef struct bz_workload {
    const char *name;
    int64_t batch;
    int n;
    const int *problem, *times;
} bz_workload;

/* Layers that no machine has records of are left out. Lives in the arena. */
int bz_workload_make(const bz_samples *s, const char *path, int64_t batch, bz_arena *arena, bz_workload *out,
                     bz_error *err);

/* Ways that are held against each other: ours, then the scalings from each single machine. */
enum { BZ_RULES = 1 + BZ_SCALING_N };
extern const char *const bz_rule_names[BZ_RULES];

typedef struct bz_error_sum {
    const char *name;       /* of the machine, network or kind */
    int n;                  /* totals of networks; of a kind: problems */
    double total[BZ_RULES]; /* mean error of a network's time */
    double bias;            /* the same with its sign, of our way */
    double layers;          /* error of all calls, weighted by their time */
    double median;          /* of single problems, not weighted */
    double inside;          /* share of totals inside of their interval */
} bz_error_sum;

/* A network's time on a machine, seconds. */
typedef struct bz_judged {
    double measured, predicted;
    double spread;        /* of the prediction's logarithm */
    double low, high;     /* its interval, by the errors on the other machines; NAN: there is no other */
    int machine, network; /* rows of the judgement */
    int64_t batch;
} bz_judged;

typedef struct bz_judgement {
    const char *left_out; /* "system", "network", "system but 5 % of its problems" */
    const bz_samples *samples;
    bz_error_sum all, *machine, *network, *kind;
    int machines, networks, kinds;
    double few;       /* share of the left-out system's problems that were measured there */
    double ranked;    /* share of pairs of machines that a network's predicted times order as the measured ones */
    double quantile;  /* of the totals' errors in units of their spread, nine of ten are below it */
    bz_judged *point; /* [points]: totals, for a picture */
    int points;
} bz_judgement;

typedef enum { BZ_LEAVE_SYSTEM, BZ_LEAVE_NETWORK, BZ_LEAVE_BATCH } bz_leave;

/* `few`: share of the problems of a left-out system that are measured there, the most informative ones first. */
int bz_judge(const bz_samples *s, const bz_workload *work, int n, bz_leave leave, double few, bz_arena *arena,
             bz_judgement *out, bz_error *err);

/* Problems in the order in which they tell most: `cost` is what each counts (its predicted share of the work), `out` has room for n.
 * Returns how many. */
int bz_most_informative(const bz_shape *const *shape, const double *cost, int n, int wanted, int *out);

#endif
