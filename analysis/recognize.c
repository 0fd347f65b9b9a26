/* Which model a recording may be of: the sequence of what its typical iteration computed, held against that of each candidate's
 * layers. */
#include "analysis/constants.h"
#include "analysis/recording.h"
#include "base/sort.h"
#include "explain/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

BZ_SORTS(most_alike, bz_fit,
         BZ_THEN(BZ_ORDER(q->likeness, p->likeness),
                 BZ_THEN(BZ_ORDER(q->sizes, p->sizes), strcmp(p->candidate->name, q->candidate->name))));

/* Multiply-accumulates of products, ascending; of equal ones in a row, as images and heads have them, the sum. */
typedef struct sizes {
    double *v, sum;
    int n;
} sizes;

static sizes sizes_of_layers(const bz_layers *layers)
{
    sizes s = {0};
    const char *last = NULL;
    for (int i = 0; i < layers->n; i++) {
        const bz_layer *l = &layers->layer[i];
        if (l->macs <= 0 || l->n_bodies)
            continue;
        if (!last || strcmp(last, l->key) != 0) {
            BZ_ROOM(s.v, s.n);
            s.v[s.n++] = 0;
        }
        s.v[s.n - 1] += (double)l->macs;
        s.sum += (double)l->macs;
        last = l->key;
    }
    bz_sort_numbers(s.v, (size_t)s.n);
    return s;
}

/* Of the typical iteration's calls, as far as they tell. */
static sizes sizes_of_calls(const bz_trace *t, bz_arena *arena)
{
    bz_rebuilt ran = {0};
    if (t->event[BZ_EVENT_CALL].n)
        bz_rebuild(t, arena, &ran);
    return ran.layers ? sizes_of_layers(ran.layers) : (sizes){0};
}

/* Multiplications of products of the recording that the model has one for, times this factor; of the larger sum. */
static double in_common(const sizes *ran, const sizes *model, double factor)
{
    double both = 0;
    for (int i = 0, k = 0; i < ran->n && k < model->n;) {
        const double wanted = factor * model->v[k];
        if (fabs(ran->v[i] - wanted) <= SIZE_OFF * wanted) {
            both += fmin(ran->v[i++], wanted);
            k++;
        } else if (ran->v[i] < wanted) {
            i++;
        } else {
            k++;
        }
    }
    return both / fmax(ran->sum, factor * model->sum);
}

/* A sequence of nothing but products is any network's that has as many: their sizes tell more. The batch is a factor to all of them, such that the
 * model's largest is one of the recording's. 1 where calls tell too few. */
static double sizes_alike(const sizes *ran, const sizes *model)
{
    double most = 0;
    if (ran->n < LEAST_TOLD || model->n < LEAST_TOLD)
        return 1;
    for (int i = 0; i < ran->n; i++)
        if (!i || ran->v[i] > ran->v[i - 1])
            most = fmax(most, in_common(ran, model, ran->v[i] / model->v[model->n - 1]));
    return most;
}

int recording_recognize(const bz_trace *trace, const bz_candidate *candidate, int n, bz_arena *arena, bz_fit *fit)
{
    bz_align_work ran;
    int fits = 0;
    if (!n)
        return 0;
    bz_align_work_take(trace, arena, &ran);
    sizes told = sizes_of_calls(trace, arena);
    bool calls_alone = !trace->event[BZ_EVENT_KERNEL].n && !trace->event[BZ_EVENT_OP].n;
    for (int i = 0; i < n; i++) {
        bz_align_work model = {0};
        for (int k = 0; k < candidate[i].layers->n; k++)
            bz_align_work_add(&model, &candidate[i].layers->layer[k]);
        if (calls_alone)
            bz_align_work_leave_out(&model, &ran);
        bz_align_work_fold(&model, &ran);
        sizes wanted = sizes_of_layers(candidate[i].layers);
        double sizes_told = sizes_alike(&told, &wanted);
        bool conv = ran.count[BZ_WORK_CONV] && !model.count[BZ_WORK_CONV]; /* one, as before a ViT, is no detail */
        int alike =
            model.n >= LEAST_TOLD && sizes_told >= SIZES_ALIKE && !conv ? bz_align_work_common(&model, &ran) : 0;
        free(wanted.v);
        fit[i] = (bz_fit){.candidate = &candidate[i],
                          .sizes = sizes_told,
                          .likeness = alike ? 2.0 * alike / (double)(model.n + ran.n) : 0,
                          .evidence = bz_align_work_evidence(&model, &ran, alike, arena)};
        bz_align_work_free(&model);
    }
    bz_align_work_free(&ran);
    free(told.v);
    qsort(fit, (size_t)n, sizeof *fit, most_alike);
    while (fits < n && fit[fits].likeness >= FITS) {
        fit[fits].equal =
            fit[0].likeness - fit[fits].likeness < EQUALLY && fabs(fit[0].sizes - fit[fits].sizes) < EQUALLY;
        fits++;
    }
    return fits;
}
