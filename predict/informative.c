/* Which problems to measure first on a new system: those that cost most and of which the ones chosen so far tell least. */
#include "predict/evaluate.h"

#include "predict/learned.h"

#include <math.h>
#include <stdlib.h>

int bz_most_informative(const bz_shape *const *shape, const double *cost, int n, int wanted, int *out)
{
    double *left = bz_alloc((size_t)n + 1, sizeof *left); /* variance that the chosen ones leave, roughly */
    int chosen = 0;
    for (int i = 0; i < n; i++)
        left[i] = 1;
    while (chosen < wanted && chosen < n) {
        int best = -1;
        for (int i = 0; i < n; i++)
            if (left[i] > 0 && (best < 0 || left[i] * sqrt(cost[i]) > left[best] * sqrt(cost[best])))
                best = i;
        if (best < 0)
            break;
        out[chosen++] = best;
        for (int i = 0; i < n; i++)
            if (shape[i]->kind == shape[best]->kind && left[i] > 0) {
                double k = bz_learned_alike(shape[i], shape[best]);
                left[i] = fmax(left[i] * (1 - k * k), 1e-9);
            }
        left[best] = -1;
    }
    free(left);
    return chosen;
}
