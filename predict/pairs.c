/* From one machine to another: the times of a network's very calls on the one, changed as the rule changes them for the other. */
#include "predict/evaluate.h"
#include "predict/neighbours.h"

#include <math.h>
#include <string.h>

double bz_work_scaled(const bz_samples *s, const bz_workload *work, const bz_without *without, int from, int to,
                      double out[BZ_RULES])
{
    const bz_machine *a = &s->machine[from], *b = &s->machine[to];
    double is = 0, margin = without->kinship[0].margin, floor;
    bool use[BZ_NEIGHBOURS];
    memset(out, 0, BZ_RULES * sizeof *out);
    if (from == to || a->gpu != b->gpu || isnan(a->floor))
        return 0;
    for (int m = 0; m < s->machines; m++)
        use[m] = m != to;
    floor = bz_floor_told(s->machine, use, s->machines, b);
    for (int k = 0; k < work->n; k++) {
        int row = work->problem[k];
        double here = exp(bz_samples_log(s, row, from)) * work->times[k], there = exp(bz_samples_log(s, row, to));
        if (isnan(there) || isnan(here))
            continue;
        is += there * work->times[k];
        out[0] += here * bz_shape_roofline(&s->shape[row], b, floor, margin) /
                  bz_shape_roofline(&s->shape[row], a, a->floor, margin);
        for (int r = 1; r < BZ_RULES; r++)
            out[r] += here * bz_rule_scale(s, without, r, row, from, to);
    }
    return is;
}

int bz_judge_pairs(const bz_samples *s, const bz_workload *work, int n, const bz_without *without, bz_arena *arena,
                   bz_pair **out)
{
    int pairs = 0;
    *out = BZ_NEW(arena, bz_pair, (size_t)s->machines * (size_t)s->machines);
    for (int d = 0; d < s->machines; d++)
        for (int o = 0; o < s->machines; o++) {
            bz_pair *pair = &(*out)[pairs];
            double by[BZ_RULES];
            *pair = (bz_pair){.from = o, .to = d};
            for (int i = 0; i < n; i++) {
                double is = bz_work_scaled(s, &work[i], &without[d], o, d, by);
                for (int r = 0; r < BZ_RULES && is > 0; r++)
                    pair->error[r] += fabs(by[r] / is - 1);
                pair->n += is > 0;
            }
            for (int r = 0; r < BZ_RULES && pair->n; r++)
                pair->error[r] /= pair->n;
            pairs += pair->n > 0;
        }
    return pairs;
}
