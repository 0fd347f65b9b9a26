/* All that is left out, round by round. */
#include "predict/dense.h"
#include "predict/evaluate.h"

#include <math.h>
#include <string.h>

static const bz_few FEW[] = {{0, 0},   {0.05, 0}, {0.01, 0}, {0.02, 0}, {0.1, 0},
                             {0.2, 0}, {0, 5},    {0, 15},   {0, 30},   {0, 60}};
enum { ROUNDS = sizeof FEW / sizeof *FEW };

BZ_ENDS(free_predictor, bz_predictor_free)

/* [machines], in the arena. */
static bz_without *without_each(const bz_samples *s, bool dense, bz_arena *arena)
{
    bz_without *without = BZ_NEW(arena, bz_without, s->machines);
    for (int d = 0; d < s->machines; d++) {
        bz_without *w = &without[d];
        bool use[BZ_NEIGHBOURS];
        for (int m = 0; m < s->machines; m++)
            use[m] = m != d && s->machine[m].gpu == s->machine[d].gpu;
        bz_kinship_choose(s, use, NULL, w->kinship);
        w->predictor = bz_predictor_new(s, use, NULL, w->kinship);
        bz_arena_keep(arena, w->predictor, free_predictor);
        if (!dense)
            continue;
        bz_dense *net = bz_dense_new(s, use, NULL, w->kinship[0].margin);
        double floor = bz_floor_told(s->machine, use, s->machines, &s->machine[d], NULL);
        w->dense = BZ_NEW(arena, double, (size_t)s->n *(size_t)s->machines);
        for (int i = 0; i < s->n; i++)
            for (int m = 0; m < s->machines; m++)
                w->dense[i * s->machines + m] =
                    bz_dense_log(net, &s->shape[i], &s->machine[m], m == d ? floor : s->machine[m].floor);
        bz_dense_free(net);
    }
    return without;
}

double bz_rule_scale(const bz_samples *s, const bz_without *without, int rule, int row, int from, int to)
{
    const double *dense = without->dense ? without->dense + (size_t)row * (size_t)s->machines : NULL;
    if (rule == BZ_RULE_DENSE)
        return dense ? exp(dense[to] - dense[from]) : NAN;
    return bz_scaling_of((bz_scaling)(rule - 1), &s->shape[row], bz_samples_intensity(s, row, from), &s->machine[from],
                         &s->machine[to]);
}

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
    floor = bz_floor_told(s->machine, use, s->machines, b, NULL);
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

/* All pairs of machines of a sort that have calls of this work in common: their number, and in *out those pairs, in the arena. */
static int judge_pairs(const bz_samples *s, const bz_workload *work, int n, const bz_without *without, bz_arena *arena,
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

static int choices(const bz_samples *s, const bz_without *without, bz_arena *arena, bz_choice_made **out)
{
    int n = 0;
    *out = BZ_NEW(arena, bz_choice_made, (size_t)s->machines * BZ_SHAPE_KINDS);
    for (int d = 0; d < s->machines; d++)
        for (int kind = 0; kind < BZ_SHAPE_KINDS; kind++) {
            bz_choice c = bz_predictor_choice(without[d].predictor, s->machine[d].gpu, kind);
            if (c.validated)
                (*out)[n++] = (bz_choice_made){
                    s->machine[d].name,
                    bz_arena_printf(arena, "%s%s", bz_shape_kind_name(kind), kind >= BZ_SHAPE_FUSED ? "+" : ""),
                    bz_way_name(c.way)};
        }
    return n;
}

/* round[ROUNDS + BZ_LEAVE_N]. Returns how many there are, those that could not be made behind the others. */
static int make_rounds(const bz_samples *s, const bz_workload *work, int n, bool dense, bz_arena *arena,
                       bz_judgement *round)
{
    bz_judgement missing[ROUNDS + BZ_LEAVE_N], made;
    int rounds = 0, lacking = 0;
    const bz_without *without = without_each(s, dense, arena);
    bz_benchmark_times took;
    bz_benchmark_times_of(s, NULL, &took);
    for (int i = 0; i < ROUNDS + BZ_LEAVE_N; i++) {
        bz_leave leave = i < ROUNDS ? BZ_LEAVE_SYSTEM : (bz_leave)(i - ROUNDS);
        bz_few few = FEW[i < ROUNDS ? i : 0];
        if ((i >= ROUNDS && leave == BZ_LEAVE_SYSTEM) || (few.seconds > 0 && isnan(took.all)))
            continue; /* the rounds above; no record tells how long a benchmark takes */
        bz_judge(s, work, n, leave, few, without, arena, &made);
        if (!made.missing)
            round[rounds++] = made;
        else if (!(few.share > 0 || few.seconds > 0)) /* once is enough */
            missing[lacking++] = made;
    }
    if (rounds && round->leave == BZ_LEAVE_SYSTEM) {
        round->pairs = judge_pairs(s, work, n, without, arena, &round->pair);
        round->choices = choices(s, without, arena, &round->choice);
    }
    memcpy(round + rounds, missing, (size_t)lacking * sizeof *missing);
    return rounds + lacking;
}

int bz_judge_all(const bz_samples *s, const char *const *path, int n_paths, const int64_t *batch, int n_batches,
                 bool dense, bz_arena *arena, bz_judgement **out, int *n_out, bz_error *err)
{
    static const int64_t USUAL[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
    int n = 0, batches = n_batches ? n_batches : (int)(sizeof USUAL / sizeof *USUAL);
    bz_workload *work = BZ_NEW(arena, bz_workload, (size_t)n_paths * (size_t)batches);
    for (int i = 0; i < n_paths; i++)
        for (int b = 0; b < batches; b++) {
            if (bz_workload_make(s, path[i], n_batches ? batch[b] : USUAL[b], arena, &work[n], err))
                return -1;
            n += work[n].n > 0;
        }
    if (!s->n || !n)
        return bz_fail(err, BZ_BAD_INPUT, "the database has no records of these models");
    *out = BZ_NEW(arena, bz_judgement, ROUNDS + BZ_LEAVE_N);
    *n_out = make_rounds(s, work, n, dense, arena, *out);
    return (*out)->missing ? bz_fail(err, BZ_BAD_INPUT, "nothing can be left out: %s", (*out)->missing) : 0;
}
