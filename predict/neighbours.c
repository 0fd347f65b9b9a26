/* Ordinary kriging over machines. */
#include "predict/constants.h"
#include "predict/evaluate.h"
#include "predict/learned.h"

#include <math.h>

/* What bz_kinship_choose finds by all seven GPUs of the published times ('predict --train' prints it). */
const bz_kinship bz_kinships[BZ_GROUPS] = {{1.28, 1.00, 0.04}, {1, 1.16, 0.06}};

static double alike(const bz_machine *a, const bz_machine *b, const bz_kinship *k)
{
    return exp(-fabs(a->generation - b->generation) / k->generation);
}

/* How sure a prediction is. */
static double sure(const bz_machine *a, const bz_machine *b, const bz_kinship *k)
{
    double apart = fabs(a->generation - b->generation);
    return exp(-(a->capability == b->capability ? apart : fmax(apart, STEP)) / k->generation);
}

/* The variance of what these weights make, by `sure`. */
static double variance_of(const bz_machine *machine, const int *at, int m, const bz_machine *to, const bz_kinship *k,
                          const double *unsure, const double *weight)
{
    double v = 1 + k->noise;
    for (int i = 0; i < m; i++) {
        const double w = weight[at[i]];
        v += w * (w * (k->noise + (unsure ? unsure[at[i]] : 0)) - 2 * sure(&machine[at[i]], to, k));
        for (int j = 0; j < m; j++)
            v += w * weight[at[j]] * (i == j ? 1 : sure(&machine[at[i]], &machine[at[j]], k));
    }
    return fmax(k->noise, v);
}

/* A machine newer than all that are known goes as one a step newer than the newest of them: what libraries make of Kepler tells no more of Ampere for
 * its being newer than Turing, too. Older ones likewise. How unsure that is knows the true distance. */
static bz_machine within(const bz_machine *machine, const int *at, int m, const bz_machine *to)
{
    bz_machine out = *to;
    double first = INFINITY, last = -INFINITY;
    for (int i = 0; i < m; i++) {
        first = fmin(first, machine[at[i]].generation);
        last = fmax(last, machine[at[i]].generation);
    }
    out.generation = fmin(fmax(to->generation, first - STEP), last + STEP);
    return out;
}

/* Weights that sum to 1: w = A⁻¹(b + λ1), where λ makes it so. */
double bz_neighbours(const bz_machine *machine, const bool *use, int n, const bz_machine *to, const bz_kinship *k,
                     const double *unsure, double *weight)
{
    int at[BZ_NEIGHBOURS], m = 0;
    double a[BZ_NEIGHBOURS * BZ_NEIGHBOURS], x[BZ_NEIGHBOURS], ones[BZ_NEIGHBOURS];
    for (int i = 0; i < n; i++) {
        weight[i] = 0;
        if (use[i] && machine[i].gpu == to->gpu && m < BZ_NEIGHBOURS)
            at[m++] = i;
    }
    bz_machine like = within(machine, at, m, to);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++)
            a[i * m + j] =
                alike(&machine[at[i]], &machine[at[j]], k) + (i == j ? k->noise + (unsure ? unsure[at[i]] : 0) : 0);
        x[i] = alike(&machine[at[i]], &like, k);
        ones[i] = 1;
    }
    if (!m || !bz_cholesky(a, m))
        return INFINITY;
    bz_cholesky_solve(a, m, x);
    bz_cholesky_solve(a, m, ones);
    double of_x = 0, of_ones = 0;
    for (int i = 0; i < m; i++)
        of_x += x[i], of_ones += ones[i];
    double lambda = (1 - of_x) / of_ones;
    for (int i = 0; i < m; i++)
        weight[at[i]] = x[i] + lambda * ones[i];
    return variance_of(machine, at, m, to, k, unsure, weight);
}

/* On a GPU the floor is time in which the device fetches and starts one kernel and notes two events. */
double bz_floor_told(const bz_machine *machine, const bool *use, int n, const bz_machine *to, double *unsure)
{
    double sum = 0, squares = 0;
    int told = 0;
    if (unsure)
        *unsure = 0;
    if (to->launch > 0)
        return to->launch;
    for (int m = 0; m < n; m++)
        if (use[m] && machine[m].gpu == to->gpu && !isnan(machine[m].floor)) {
            double clocks = log(machine[m].floor * machine[m].clock);
            sum += clocks, squares += clocks * clocks, told++;
        }
    if (unsure && told > 1) /* of one more draw, by those that there are */
        *unsure = (squares - sum * sum / told) / (told - 1) * (1 + 1.0 / told);
    return told ? exp(sum / told) / to->clock : 0;
}
