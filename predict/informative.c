/* Which problems to measure first on a new system: those that cost most, of which the ones chosen so far tell least, and that are measured
 * soonest. */
#include "predict/evaluate.h"

#include "predict/constants.h"
#include "predict/learned.h"
#include "transfer/transfer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void bz_benchmark_times_of(const bz_samples *s, const bool *use, bz_benchmark_times *out)
{
    double sum[BZ_SHAPE_KINDS] = {0}, all = 0;
    int count[BZ_SHAPE_KINDS] = {0}, n = 0;
    *out = (bz_benchmark_times){s, use, {0}, NAN};
    for (int i = 0; s && s->spent && i < s->n; i++)
        for (int m = 0; m < s->machines; m++) {
            double spent = s->spent[(size_t)i * (size_t)s->machines + (size_t)m];
            if (!(spent > 0) || (use && !use[m]))
                continue;
            sum[s->shape[i].kind] += spent, count[s->shape[i].kind]++;
            all += spent, n++;
        }
    for (int k = 0; k < BZ_SHAPE_KINDS; k++)
        out->kind[k] = count[k] ? sum[k] / count[k] : NAN;
    out->all = n ? all / n : NAN;
}

/* Of a problem: by its own records, else by those of its kind, else by all. */
static double benchmark_seconds(const bz_benchmark_times *t, const char *text, const bz_shape *shape)
{
    const bz_samples *s = t->samples;
    uint32_t at = s && s->spent ? bz_map_get(&s->map, text, strlen(text)) : BZ_MAP_NONE;
    double sum = 0;
    int n = 0;
    for (int m = 0; at != BZ_MAP_NONE && m < s->machines; m++) {
        double spent = s->spent[(size_t)at * (size_t)s->machines + (size_t)m];
        if (spent > 0 && (!t->use || t->use[m]))
            sum += spent, n++;
    }
    double is = n ? sum / n : isnan(t->kind[shape->kind]) ? t->all : t->kind[shape->kind];
    return OVERHEAD * (isnan(is) ? UNKNOWN : is);
}

int bz_most_informative(const bz_shape *const *shape, const double *cost, const double *seconds, int n, int wanted,
                        double budget, int *out)
{
    BZ_FREED double *left = bz_alloc((size_t)n + 1, sizeof *left); /* variance that the chosen ones leave, roughly */
    int chosen = 0;
    for (int i = 0; i < n; i++)
        left[i] = 1;
    while (chosen < wanted && chosen < n) {
        int best = -1;
        double most = 0;
        for (int i = 0; i < n; i++) {
            double tells = left[i] * sqrt(cost[i]) / (seconds ? seconds[i] : 1);
            if (left[i] > 0 && (!seconds || seconds[i] <= budget) && (best < 0 || tells > most))
                best = i, most = tells;
        }
        if (best < 0)
            break;
        out[chosen++] = best;
        budget -= seconds ? seconds[best] : 0;
        for (int i = 0; i < n; i++)
            if (shape[i]->kind == shape[best]->kind && left[i] > 0) {
                double k = bz_learned_alike(shape[i], shape[best]);
                left[i] = fmax(left[i] * (1 - k * k), 1e-9);
            }
        left[best] = -1;
    }
    return chosen;
}

static bool is_chosen(void *user, int problem, int family)
{
    (void)family;
    return ((const bool *)user)[problem];
}

/* How often all models need each problem. */
static double *uses_of(const bz_plan *plan, int n, bz_arena *arena)
{
    const bz_plan_layer *layer;
    int layers = bz_plan_layers(plan, &layer);
    double *uses = BZ_NEW(arena, double, n);
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < layer[i].n_problems; k++)
            uses[layer[i].problem[k]] += (double)layer[i].count;
    return uses;
}

double bz_plan_most_informative(bz_plan *plan, const bz_samples *records, bz_perfdb *db, const bz_system *system,
                                const bz_setting *setting, int64_t wanted, double budget)
{
    BZ_SCOPED(bz_arena) arena = {0};
    double expected = 0;
    const bz_plan_problem *problem;
    int all = bz_plan_problems(plan, &problem), n = 0;
    const bz_system_facts *facts;
    bz_error none;
    bz_machine machine;
    bool known = system && !bz_transfers_facts(db, system, &arena, &facts, &none) &&
                 !bz_machine_of(facts, system->name, setting, &machine, NULL);
    const bz_shape **shape = BZ_NEW(&arena, const bz_shape *, all);
    double *cost = BZ_NEW(&arena, double, all), *uses = uses_of(plan, all, &arena);
    int *at = BZ_NEW(&arena, int, all), *order = BZ_NEW(&arena, int, all);
    double *seconds = BZ_NEW(&arena, double, all);
    bool *chosen = BZ_NEW(&arena, bool, all);
    bz_benchmark_times times;
    bz_benchmark_times_of(records, NULL, &times);
    for (int i = 0; i < all; i++) {
        bool lacking = false;
        for (int f = 0; f < problem[i].n_families; f++)
            lacking |= problem[i].family[f].wanted;
        if (!lacking)
            continue;
        bz_shape *s = BZ_NEW(&arena, bz_shape, 1);
        bz_shape_of(problem[i].problem, s);
        shape[n] = s;
        cost[n] = uses[i] * (known ? bz_shape_roofline(s, &machine, 0, 1) : s->flops + 10 * s->bytes);
        seconds[n] = benchmark_seconds(&times, problem[i].text, s);
        at[n++] = i;
    }
    int most = wanted && wanted < n ? (int)wanted : n;
    int taken = bz_most_informative(shape, cost, budget > 0 ? seconds : NULL, n, most, budget, order);
    for (int i = 0; i < taken; i++) {
        chosen[at[order[i]]] = true;
        expected += seconds[order[i]];
    }
    bz_plan_choose(plan, is_chosen, chosen);
    return expected;
}

bool *bz_first_measured(const bz_samples *s, const bz_workload *work, int n_work, bz_few few, bz_aim *a, int machine,
                        const bool *others, double *spent)
{
    BZ_SCOPED(bz_arena) arena = {0};
    const bz_shape **shape = BZ_NEW(&arena, const bz_shape *, s->n);
    double *cost = BZ_NEW(&arena, double, s->n), *seconds = BZ_NEW(&arena, double, s->n),
           *often = BZ_NEW(&arena, double, s->n);
    int *row = BZ_NEW(&arena, int, s->n), *order = BZ_NEW(&arena, int, s->n), n = 0;
    bool *measured = bz_zeroed((size_t)s->n + 1, sizeof *measured), *itself = BZ_NEW(&arena, bool, s->machines);
    bz_benchmark_times expected, took;
    bz_benchmark_times_of(s, others, &expected);
    itself[machine] = true;
    bz_benchmark_times_of(s, itself, &took);
    for (int w = 0; w < n_work; w++)
        for (int k = 0; k < work[w].n; k++)
            often[work[w].problem[k]] += work[w].times[k];
    for (int i = 0; i < s->n; i++)
        if (!isnan(bz_samples_log(s, i, machine))) {
            shape[n] = &s->shape[i];
            cost[n] = often[i] * bz_predict(a, s->text[i], &s->shape[i]).seconds;
            seconds[n] = benchmark_seconds(&expected, s->text[i], &s->shape[i]);
            row[n++] = i;
        }
    int wanted = few.seconds > 0 ? bz_most_informative(shape, cost, seconds, n, n, few.seconds, order)
                                 : bz_most_informative(shape, cost, NULL, n, (int)(few.share * n), 0, order);
    *spent = isnan(took.all) ? NAN : 0;
    for (int i = 0; i < wanted; i++) {
        measured[row[order[i]]] = true;
        *spent += benchmark_seconds(&took, s->text[row[order[i]]], shape[order[i]]);
    }
    return measured;
}
