/* From one machine to another: the times of a network's very calls on the one, changed as the rule changes them for the other. */
#include "predict/evaluate.h"
#include "predict/neighbours.h"

#include <math.h>

typedef struct way {
    const bz_samples *s;
    int from, to;
    const bz_without *without; /* of `to` */
    double floor;              /* of `to`, as the others tell */
} way;

/* Seconds of a problem on the one machine by those on the other. */
static double told(const way *w, int rule, int row)
{
    const bz_samples *s = w->s;
    const bz_machine *from = &s->machine[w->from], *to = &s->machine[w->to];
    double is = exp(bz_samples_log(s, row, w->from)), margin = w->without->kinship[0].margin;
    if (rule > 0)
        return is * bz_rule_scale(s, w->without, rule, row, w->from, w->to);
    return is * bz_shape_roofline(&s->shape[row], to, w->floor, margin) /
           bz_shape_roofline(&s->shape[row], from, from->floor, margin);
}

static void add_work(const way *w, const bz_workload *work, bz_pair *out)
{
    double is = 0, by[BZ_RULES] = {0};
    for (int k = 0; k < work->n; k++) {
        int row = work->problem[k];
        double there = bz_samples_log(w->s, row, w->to);
        if (isnan(there) || isnan(bz_samples_log(w->s, row, w->from)))
            continue;
        is += work->times[k] * exp(there);
        for (int r = 0; r < BZ_RULES; r++)
            by[r] += work->times[k] * told(w, r, row);
    }
    for (int r = 0; r < BZ_RULES && is > 0; r++)
        out->error[r] += fabs(by[r] / is - 1);
    out->n += is > 0;
}

int bz_judge_pairs(const bz_samples *s, const bz_workload *work, int n, const bz_without *without, bz_arena *arena,
                   bz_pair **out)
{
    int pairs = 0;
    *out = BZ_NEW(arena, bz_pair, (size_t)s->machines * (size_t)s->machines);
    for (int d = 0; d < s->machines; d++)
        for (int o = 0; o < s->machines; o++) {
            bool use[BZ_NEIGHBOURS];
            bz_pair *pair = &(*out)[pairs];
            if (o == d || s->machine[o].gpu != s->machine[d].gpu || isnan(s->machine[o].floor))
                continue;
            for (int m = 0; m < s->machines; m++)
                use[m] = m != d;
            way w = {s, o, d, &without[d], bz_floor_told(s->machine, use, s->machines, &s->machine[d])};
            *pair = (bz_pair){.from = o, .to = d};
            for (int i = 0; i < n; i++)
                add_work(&w, &work[i], pair);
            for (int r = 0; r < BZ_RULES && pair->n; r++)
                pair->error[r] /= pair->n;
            pairs += pair->n > 0;
        }
    return pairs;
}
