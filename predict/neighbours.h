/* neighbours: how much one machine tells of another, by kriging. Private to predict/. */
#ifndef BZ_PREDICT_NEIGHBOURS_H
#define BZ_PREDICT_NEIGHBOURS_H

#include "predict/predict.h"

enum { BZ_NEIGHBOURS = 64 };

/* weight[i] of the machines for which use[i] holds, sum 1; the others are 0. unsure[i]: how much what they tell is off by itself, as a
 * variance in the same units; NULL: not at all. Returns the variance that they leave, in units of
 * what machines differ by at all; INFINITY where there is no neighbour. */
double bz_neighbours(const bz_machine *machine, const bool *use, int n, const bz_machine *to, const bz_kinship *k,
                     const double *unsure, double *weight);

#endif
