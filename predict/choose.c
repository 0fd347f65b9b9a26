/* Which kinship of machines predicts well, by leaving out one machine after the other. */
#include "predict/evaluate.h"

#include <math.h>
#include <stdlib.h>

/* How many base clocks GPUs hold is asked for products alone: what moves data does not follow the clock. */
static const double MARGIN[] = {1, 1.1, 1.2, 1.3, 1.4, 1.5, 2}, GENERATION[] = {0.5, 1, 2, 4},
                    ALONE[] = {0.02, 0.1, 0.4};
#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef struct choosing {
    const bz_samples *s;
    const bool *use, *known;
    int group;
    double *roofline,
        *left; /* [n * machines]: logarithm, with the machine's floor; the same with the floor its neighbours tell */
} choosing;

static bool counts(const choosing *c, int row)
{
    return bz_shape_group(&c->s->shape[row]) == c->group && (!c->known || c->known[row]);
}

static void rooflines(choosing *c, double margin)
{
    const bz_samples *s = c->s;
    bool others[BZ_NEIGHBOURS];
    for (int m = 0; m < s->machines; m++) {
        for (int k = 0; k < s->machines; k++)
            others[k] = c->use[k] && k != m;
        double told = bz_floor_told(s->machine, others, s->machines, &s->machine[m], NULL);
        for (int i = 0; i < s->n; i++) {
            size_t at = (size_t)i * (size_t)s->machines + (size_t)m;
            if (!counts(c, i))
                continue;
            c->roofline[at] = log(bz_shape_roofline(&s->shape[i], &s->machine[m], s->machine[m].floor, margin));
            c->left[at] = log(bz_shape_roofline(&s->shape[i], &s->machine[m], told, margin));
        }
    }
}

/* How far off machine `d` would be: half the mean error of its problems, and the bias of those that are no mere launches. */
static double loss(const choosing *c, int d, const bz_kinship *k)
{
    const bz_samples *s = c->s;
    bool others[BZ_NEIGHBOURS];
    double weight[BZ_NEIGHBOURS], sum = 0, bias = 0;
    int n = 0, large = 0;
    for (int m = 0; m < s->machines; m++)
        others[m] = c->use[m] && m != d;
    if (!isfinite(bz_neighbours(s->machine, others, s->machines, &s->machine[d], k, NULL, weight)))
        return NAN;
    for (int i = 0; i < s->n; i++) {
        double all = 0, told = 0, is = bz_samples_log(s, i, d);
        if (isnan(is) || !counts(c, i))
            continue;
        for (int m = 0; m < s->machines; m++) {
            double of = bz_samples_log(s, i, m);
            if (weight[m] != 0 && !isnan(of)) {
                all += weight[m];
                told += weight[m] * (of - c->roofline[(size_t)i * (size_t)s->machines + (size_t)m]);
            }
        }
        if (all < 0.2)
            continue;
        double e = told / all + c->left[(size_t)i * (size_t)s->machines + (size_t)d] - is;
        sum += fabs(e), n++;
        if (exp(is) > 3 * s->machine[d].floor)
            bias += e, large++;
    }
    return n ? 0.5 * sum / n + (large ? fabs(bias / large) : 0) : NAN;
}

/* Logarithm of the likelihood if the errors on a machine are those of one draw whose width nobody knows: one that no other machine is like is
 * far off whatever is chosen, and decides no more for the others than they for it. NAN: three machines are needed to tell. */
static double likelihood(const choosing *c, const bz_kinship *k)
{
    double sum = 0;
    int n = 0;
    for (int d = 0; d < c->s->machines; d++) {
        double l = c->use[d] ? loss(c, d, k) : NAN;
        if (!isnan(l))
            sum -= log(l), n++;
    }
    return n >= 3 ? sum : NAN;
}

/* The mean over all that are possible, each by its likelihood: where six machines do not tell two apart, the best of them is chance. */
static void mean_of(const bz_kinship *at, const double *log_of, int n, bz_kinship *out)
{
    double most = -INFINITY, all = 0;
    bz_kinship sum = {0};
    for (int i = 0; i < n; i++)
        most = fmax(most, log_of[i]);
    for (int i = 0; i < n; i++) {
        double w = isnan(log_of[i]) ? 0 : exp(log_of[i] - most);
        all += w;
        sum.margin += w * at[i].margin;
        sum.generation += w * log(at[i].generation);
        sum.noise += w * log(at[i].noise);
    }
    if (all > 0)
        *out = (bz_kinship){sum.margin / all, exp(sum.generation / all), exp(sum.noise / all)};
}

void bz_kinship_choose(const bz_samples *s, const bool *use, const bool *known, bz_kinship *out)
{
    enum { EACH = COUNT(GENERATION) * COUNT(ALONE) };
    size_t cells = (size_t)s->n * (size_t)s->machines + 1;
    bool all[BZ_NEIGHBOURS];
    for (int m = 0; m < s->machines; m++)
        all[m] = !use || use[m];
    choosing c = {s, all, known, 0, bz_alloc(cells, sizeof(double)), bz_alloc(cells, sizeof(double))};
    bz_kinship at[COUNT(MARGIN) * EACH];
    double log_of[COUNT(MARGIN) * EACH];
    for (c.group = 0; c.group < BZ_GROUPS; c.group++) {
        int n = 0;
        out[c.group] = bz_kinships[c.group];
        for (size_t h = 0; h < (c.group ? 1 : COUNT(MARGIN)); h++) {
            rooflines(&c, MARGIN[h]);
            for (size_t i = 0; i < EACH; i++, n++) {
                at[n] = (bz_kinship){MARGIN[h], GENERATION[i % COUNT(GENERATION)], ALONE[i / COUNT(GENERATION)]};
                log_of[n] = likelihood(&c, &at[n]);
            }
        }
        mean_of(at, log_of, n, &out[c.group]);
    }
    free(c.roofline);
    free(c.left);
}
