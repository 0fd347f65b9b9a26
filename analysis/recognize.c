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
         p->likeness != q->likeness ? (p->likeness > q->likeness ? -1 : 1)
                                    : strcmp(p->candidate->name, q->candidate->name));

/* Multiply-accumulates of products, ascending. */
typedef struct sizes {
    double *v;
    int n;
} sizes;

static sizes sizes_of_layers(const bz_layers *layers)
{
    sizes s = {0};
    for (int i = 0; i < layers->n; i++)
        if (layers->layer[i].macs > 0 && !layers->layer[i].n_bodies) {
            BZ_ROOM(s.v, s.n);
            s.v[s.n++] = (double)layers->layer[i].macs;
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

/* How many of the model's have one of the recording's, times this factor. */
static int in_common(const sizes *ran, const sizes *model, double factor)
{
    int n = 0;
    for (int i = 0, k = 0; i < ran->n && k < model->n;) {
        const double wanted = factor * model->v[k];
        if (fabs(ran->v[i] - wanted) <= SIZE_OFF * wanted) {
            n++;
            i++;
            k++;
        } else if (ran->v[i] < wanted) {
            i++;
        } else {
            k++;
        }
    }
    return n;
}

/* A sequence of nothing but products is any network's that has as many: their sizes tell more. The batch is a factor to all of them, such that the
 * model's largest is one of the recording's. True where calls tell too few. */
static bool sizes_fit(const sizes *ran, const sizes *model)
{
    int most = 0;
    if (ran->n < LEAST_TOLD || model->n < LEAST_TOLD)
        return true;
    for (int i = 0; i < ran->n; i++)
        if (!i || ran->v[i] > ran->v[i - 1]) {
            int n = in_common(ran, model, ran->v[i] / model->v[model->n - 1]);
            most = n > most ? n : most;
        }
    return most >= SIZES_ALIKE * (ran->n < model->n ? ran->n : model->n);
}

int recording_recognize(const bz_trace *trace, const bz_candidate *candidate, int n, bz_arena *arena, bz_fit *fit)
{
    bz_align_work ran;
    int fits = 0;
    if (!n)
        return 0;
    bz_align_work_take(trace, arena, &ran);
    sizes told = sizes_of_calls(trace, arena);
    for (int i = 0; i < n; i++) {
        bz_align_work model = {0};
        for (int k = 0; k < candidate[i].layers->n; k++)
            bz_align_work_add(&model, &candidate[i].layers->layer[k]);
        sizes wanted = sizes_of_layers(candidate[i].layers);
        int alike = model.n >= LEAST_TOLD && sizes_fit(&told, &wanted) ? bz_align_work_common(&model, &ran) : 0;
        free(wanted.v);
        fit[i] = (bz_fit){.candidate = &candidate[i],
                          .likeness = alike ? 2.0 * alike / (double)(model.n + ran.n) : 0,
                          .evidence = bz_align_work_evidence(&model, &ran, alike, arena)};
        free(model.symbol);
    }
    free(ran.symbol);
    free(told.v);
    qsort(fit, (size_t)n, sizeof *fit, most_alike);
    while (fits < n && fit[fits].likeness >= FITS) {
        fit[fits].equal = fit[0].likeness - fit[fits].likeness < EQUALLY;
        fits++;
    }
    return fits;
}
