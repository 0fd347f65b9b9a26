/* predictor: what was learned, as trained.c stores it. Private to predict/. */
#ifndef BZ_PREDICT_PREDICTOR_H
#define BZ_PREDICT_PREDICTOR_H

#include "predict/evaluate.h"
#include "predict/learned.h"

#define BZ_TRAINED_MARK "benanza-trained " /* a trained set begins with it */
extern const char bz_trained_text[];       /* of what ships, as trained.c reads it */

/* Ways to tell a time: the rule, a scaling from one machine (its bz_scaling follows), and what was learned over problems alone. Each is told without the
 * machine that it is for, so that they can be held against each other there. */
enum { BZ_WAY_RULE, BZ_WAY_SCALED, BZ_WAY_LEARNED = BZ_WAY_SCALED + BZ_SCALING_N, BZ_WAY_N };

struct bz_predictor {
    bz_arena arena;
    const bz_samples *samples; /* exact records; NULL: read from a file */
    const bool *known;         /* of them; NULL: all */
    const bz_machine *machine;
    int machines;
    bool *use;
    struct bz_predictor
        *direct; /* the same of records that transform nothing, for machines without; NULL: there are no others */
    bool is_direct;
    bool transformed; /* some machine that it learned from is fastest at some problem by transforming it */
    bz_kinship kinship[BZ_GROUPS];
    bz_learned learned[BZ_SHAPE_KINDS];  /* by kind; n == 0: nothing */
    bz_choice choice[2][BZ_SHAPE_KINDS]; /* for processors, for GPUs: by kind */
    struct bz_told {                     /* residuals of shapes that were asked for: the same for all aims */
        bz_arena arena;
        bz_map map;
        const double **at;
        bz_map texts; /* of problems -> their families */
        struct {
            int first;
            double items;
        } * family;
    } * told;
};

/* Logarithm of a record that counts for what it predicts; NAN: none. A machine that transforms nothing tells nothing of problems that others
 * can transform. */
double bz_predictor_log(const bz_predictor *p, int row, int machine);

/* What the machines but this one tell of it, whether it has records or not. */
bz_aim *bz_aim_without(const bz_predictor *p, int machine);

/* The machine that is most like it and has a record of the problem, a row of the table; -1: none. */
int bz_aim_most_alike(const bz_aim *a, int problem);

/* Logarithm of the seconds of a problem, a row of the table or -1, by this way; NAN: it does not tell. */
double bz_aim_told(bz_aim *a, int way, int problem, const char *text, const bz_shape *s);

/* Chooses the way for each kind, by leaving out one machine after the other. */
void bz_ways_choose(bz_predictor *p);

/* From now on no record counts, but what was learned by them. */
void bz_predictor_forget(bz_predictor *p);

/* Logarithm of the roofline that residuals are against. */
double bz_predictor_roofline(const bz_predictor *p, const bz_shape *s, const bz_machine *m, double floor);

/* The residual on `machine` of a problem that it has no record of, by its records of the same with fewer and with more items: of the
 * family with that first row, `row` being the problem's own or -1. What changes with the items is what machines that have both tell. NAN:
 * no such record. */
double bz_predictor_batches(const bz_predictor *p, const bool *use, int family, double items, int row, int machine);

#endif
