/* Layers that the framework does itself, between the library's calls: what of their time goes with the bytes that they move,
 * and what each takes whatever its size. The program's own stretches between calls tell, as they have layers of many sizes
 * in them. */
#include "analyzer/predict.h"

#include <math.h>

/* All that stretches have, and the fit of their seconds to layers and bytes. */
typedef struct sums {
    double layers, bytes;
    predict_fit fit;
} sums;

static double share_of_bytes(const sums *s)
{
    double per_layer, per_byte;
    if (!predict_fit_solve(&s->fit, &per_layer, &per_byte))
        return NAN;
    per_layer *= s->layers, per_byte *= s->bytes;
    return per_byte <= 0 ? 0 : per_layer <= 0 ? 1 : per_byte / (per_layer + per_byte);
}

double predict_by_byte(const bz_bound *b, const bz_alignment *a, const bz_trace *t)
{
    const bz_events *c = &t->event[BZ_EVENT_CALL];
    double layers = 0, bytes = 0, seconds = 0;
    int64_t last = INT64_MAX;
    sums s = {0};
    for (int i = 0; i < a->n; i++) {
        const bz_aligned *row = &a->row[i];
        for (int k = 0; row->kind == BZ_ALIGNED_MISSING && k < row->n_layers; k++) {
            layers++;
            bytes += bz_peaks_bytes(b->layer[row->layer[k]].layer, NULL, BZ_UNDEFINED);
        }
        if (row->at == SIZE_MAX)
            continue;
        if (row->at >= c->n) /* steps that are operators: nothing is between them */
            return NAN;
        if (c->start[row->at] > last)
            seconds += 1e-9 * (double)(c->start[row->at] - last);
        last = c->end[row->at];
        if (!row->n_layers) /* a reorder or the like: the stretch goes on behind it */
            continue;
        if (layers > 0 && seconds > 0) {
            predict_fit_add(&s.fit, layers, bytes, seconds, 1);
            s.layers += layers, s.bytes += bytes;
        }
        layers = bytes = seconds = 0;
    }
    return share_of_bytes(&s);
}
