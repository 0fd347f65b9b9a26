/* Which way predicts each kind of problem, by leaving out one machine after the other. */
#include "predict/predictor.h"

#include "predict/constants.h"

#include <math.h>

const char *bz_way_name(int way)
{
    return way == BZ_WAY_RULE ? "rule" : way == BZ_WAY_LEARNED ? "learned" : bz_rule_names[1 + way - BZ_WAY_SCALED];
}

bz_choice bz_predictor_choice(const bz_predictor *p, bool gpu, int kind)
{
    return p->choice[gpu][kind];
}

/* How far off each way is on a machine that is left out: sums over problems of one kind. */
typedef struct off {
    double by[BZ_WAY_N];
    int n;
} off;

/* off[kind]: of a machine by the others. A way that does not tell a problem leaves it to the rule. */
static void leave(const bz_predictor *p, int machine, const int *count, off *of)
{
    const bz_samples *s = p->samples;
    bz_aim *a = bz_aim_without(p, machine);
    int seen[BZ_SHAPE_KINDS] = {0};
    for (int i = 0; i < s->n; i++) {
        const bz_shape *shape = &s->shape[i];
        double is = bz_predictor_log(p, i, machine), rule = 0;
        if (isnan(is) || (p->known && !p->known[i]))
            continue;
        int of_kind = seen[shape->kind]++, all = count[shape->kind];
        if (all > JUDGED && (int64_t)of_kind * JUDGED / all == (int64_t)(of_kind + 1) * JUDGED / all)
            continue;
        for (int way = 0; way < BZ_WAY_N; way++) {
            double told = bz_aim_told(a, way, i, s->text[i], shape);
            rule = way ? rule : told;
            of[shape->kind].by[way] += fabs((isnan(told) ? rule : told) - is);
        }
        of[shape->kind].n++;
    }
    bz_aim_free(a);
}

/* The way whose errors are below the rule's by more than so many of their standard errors, in the mean over the machines; else the rule. */
static bz_choice surely(const off *of, int machines)
{
    bz_choice out = {BZ_WAY_RULE, false};
    double least = 0;
    for (int way = 1; way < BZ_WAY_N; way++) {
        double sum = 0, squares = 0;
        int n = 0;
        for (int m = 0; m < machines; m++) {
            const off *o = &of[m * BZ_SHAPE_KINDS];
            if (o->n < OF_A_KIND)
                continue;
            double ratio = log(fmax(o->by[way], SAME * o->n) / fmax(o->by[BZ_WAY_RULE], SAME * o->n));
            sum += ratio, squares += ratio * ratio, n++;
        }
        if (n < JUDGES)
            return out;
        out.validated = true;
        double mean = sum / n, error = sqrt(fmax(squares - sum * mean, 0) / (n - 1) / n);
        if (mean + SURELY * error < 0 && mean < least)
            least = mean, out.way = way;
    }
    return out;
}

static void choose(bz_predictor *p, bool gpu)
{
    const bz_samples *s = p->samples;
    int machines = 0;
    BZ_FREED off *of = bz_zeroed((size_t)p->machines * BZ_SHAPE_KINDS + 1, sizeof *of);
    for (int m = 0; m < p->machines; m++)
        machines += p->use[m] && p->machine[m].gpu == gpu;
    for (int m = 0; m < p->machines && machines >= JUDGES; m++) {
        int count[BZ_SHAPE_KINDS] = {0};
        if (!p->use[m] || p->machine[m].gpu != gpu)
            continue;
        for (int i = 0; i < s->n; i++)
            count[s->shape[i].kind] += !isnan(bz_predictor_log(p, i, m)) && (!p->known || p->known[i]);
        leave(p, m, count, of + (size_t)m * BZ_SHAPE_KINDS);
    }
    for (int kind = 0; kind < BZ_SHAPE_KINDS; kind++)
        p->choice[gpu][kind] = surely(of + kind, p->machines);
}

void bz_ways_choose(bz_predictor *p)
{
    for (int gpu = 0; gpu < 2 && p->samples; gpu++)
        choose(p, gpu);
}
