/* Which model a recording may be of: the sequence of what its typical iteration computed, held against that of each candidate's
 * layers. */
#include "analysis/constants.h"
#include "analysis/recording.h"
#include "base/sort.h"
#include "explain/align.h"

#include <stdlib.h>
#include <string.h>

BZ_SORTS(most_alike, bz_fit,
         p->likeness != q->likeness ? (p->likeness > q->likeness ? -1 : 1)
                                    : strcmp(p->candidate->name, q->candidate->name));

int recording_recognize(const bz_trace *trace, const bz_candidate *candidate, int n, bz_arena *arena, bz_fit *fit)
{
    bz_align_work ran;
    int fits = 0;
    if (!n)
        return 0;
    bz_align_work_take(trace, arena, &ran);
    for (int i = 0; i < n; i++) {
        bz_align_work model = {0};
        for (int k = 0; k < candidate[i].layers->n; k++)
            bz_align_work_add(&model, &candidate[i].layers->layer[k]);
        int alike = model.n >= LEAST_TOLD ? bz_align_work_common(&model, &ran) : 0;
        fit[i] = (bz_fit){.candidate = &candidate[i],
                          .likeness = alike ? 2.0 * alike / (double)(model.n + ran.n) : 0,
                          .evidence = bz_align_work_evidence(&model, &ran, alike, arena)};
        free(model.symbol);
    }
    free(ran.symbol);
    qsort(fit, (size_t)n, sizeof *fit, most_alike);
    while (fits < n && fit[fits].likeness >= FITS) {
        fit[fits].equal = fit[0].likeness - fit[fits].likeness < EQUALLY;
        fits++;
    }
    return fits;
}
