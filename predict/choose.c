/* Which kinship of machines predicts best, by leaving out one machine after the other. */
#include "predict/evaluate.h"

#include "predict/neighbours.h"

#include <math.h>
#include <stdlib.h>

/* How alike rates make two machines is asked for what moves data alone: of products the roofline has the rate already, and a handful of
 * machines do not tell one length more. */
static const double HELD[] = {0, 0.25, 0.5, 0.75, 1}, GENERATION[] = {0.5, 1, 2, 4}, SIZE[] = {1, 1.5, 2, 4, 1000},
                    ALONE[] = {0.02, 0.1, 0.4};
#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef struct choosing {
    const bz_samples *s;
    const bool *use;
    int group;
    double *roofline,
        *left; /* [n * machines]: logarithm, with the machine's floor; the same with the floor its neighbours tell */
} choosing;

static void rooflines(choosing *c, double held)
{
    const bz_samples *s = c->s;
    bool others[BZ_NEIGHBOURS];
    for (int m = 0; m < s->machines; m++) {
        for (int k = 0; k < s->machines; k++)
            others[k] = c->use[k] && k != m;
        double told = bz_floor_told(s->machine, others, s->machines, &s->machine[m]);
        for (int i = 0; i < s->n; i++) {
            size_t at = (size_t)i * (size_t)s->machines + (size_t)m;
            if (bz_shape_group(&s->shape[i]) != c->group)
                continue;
            c->roofline[at] = log(bz_shape_roofline(&s->shape[i], &s->machine[m], s->machine[m].floor, held));
            c->left[at] = log(bz_shape_roofline(&s->shape[i], &s->machine[m], told, held));
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
        if (isnan(is) || bz_shape_group(&s->shape[i]) != c->group)
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

static double mean_loss(const choosing *c, const bz_kinship *k)
{
    double sum = 0;
    int n = 0;
    for (int d = 0; d < c->s->machines; d++) {
        double l = c->use[d] ? loss(c, d, k) : NAN;
        if (!isnan(l))
            sum += l, n++;
    }
    return n >= 3 ? sum / n : NAN;
}

void bz_kinship_choose(const bz_samples *s, const bool *use, bz_kinship *out)
{
    size_t cells = (size_t)s->n * (size_t)s->machines + 1;
    choosing c = {s, use, 0, bz_alloc(cells, sizeof(double)), bz_alloc(cells, sizeof(double))};
    for (c.group = 0; c.group < BZ_GROUPS; c.group++) {
        double least = INFINITY;
        out[c.group] = bz_kinships[c.group];
        for (size_t h = 0; h < COUNT(HELD); h++) {
            rooflines(&c, HELD[h]);
            for (size_t i = 0; i < COUNT(GENERATION) * COUNT(SIZE) * COUNT(ALONE); i++) {
                size_t size = i / COUNT(GENERATION) % COUNT(SIZE);
                if (c.group != 2 && size + 1 < COUNT(SIZE))
                    continue;
                bz_kinship k = {HELD[h], GENERATION[i % COUNT(GENERATION)], SIZE[size],
                                ALONE[i / COUNT(GENERATION) / COUNT(SIZE)]};
                double l = mean_loss(&c, &k);
                if (l < least)
                    least = l, out[c.group] = k;
            }
        }
    }
    free(c.roofline);
    free(c.left);
}
