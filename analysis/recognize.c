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
        if (!last || strcmp(last, l->key) != 0)
            BZ_ADD(s.v, s.n) = 0;
        s.v[s.n - 1] += (double)l->macs;
        s.sum += (double)l->macs;
        last = l->key;
    }
    bz_sort_numbers(s.v, (size_t)s.n);
    return s;
}

static bool has_text(const bz_map *map, const char *text)
{
    return bz_map_get(map, text, strlen(text)) != BZ_MAP_NONE;
}

static const char *product_text(int64_t a, int64_t b, bz_arena *arena)
{
    return bz_arena_printf(arena, "product %lld %lld", (long long)(a < b ? a : b), (long long)(a < b ? b : a));
}

/* "conv 256 256x8x3x3", "product 64 1000": of a matrix the shorter side first, since libraries turn it round. NULL: the layer has none. */
static const char *weights_of(const bz_layer *l, bz_arena *arena)
{
    const bz_type *w = l->n_in > 1 ? &l->in[1] : NULL;
    bool conv = bz_layer_has(l, BZ_LAYER_CONVOLUTION);
    bz_buf text = {0};
    if (l->macs <= 0 || l->n_bodies || !w || l->in[0].rank < 2 ||
        !(conv ? w->rank > 2 : w->rank == 2 && l->in_constant && l->in_constant[1]))
        return NULL;
    if (conv)
        bz_buf_printf(&text, "conv %lld", (long long)l->in[0].dims[1]);
    for (int i = 0; i < w->rank && conv; i++)
        bz_buf_printf(&text, " %lld", (long long)w->dims[i]);
    return conv ? bz_buf_keep(&text, arena) : product_text(w->dims[0], w->dims[1], arena);
}

/* Weights that runtimes join, those of query, key and value, are wider by as much. */
static bool has_joined(const bz_map *known, const char *weights, bz_arena *arena)
{
    long long a, b;
    if (sscanf(weights, "product %lld %lld", &a, &b) != 2)
        return false;
    for (long long k = 2; k <= 3; k++) {
        const long long SIDES[][2] = {{a * k, b}, {a, b * k}, {a % k ? 0 : a / k, b}, {a, b % k ? 0 : b / k}};
        for (size_t i = 0; i < sizeof SIDES / sizeof *SIDES; i++)
            if (has_text(known, product_text(SIDES[i][0], SIDES[i][1], arena)))
                return true;
    }
    return false;
}

/* The first weights of the recording that the model has none of; NULL: it has all. */
static const char *strange_weights(const bz_layers *ran, const bz_layers *model, bz_arena *arena)
{
    BZ_SCOPED(bz_map) known = {0};
    const char *strange = NULL, *weights;
    for (int i = 0; i < model->n; i++)
        if ((weights = weights_of(&model->layer[i], arena)))
            bz_map_add(&known, weights, strlen(weights), 1);
    for (int i = 0; i < ran->n && !strange; i++)
        if ((weights = weights_of(&ran->layer[i], arena)) && !has_text(&known, weights) &&
            !has_joined(&known, weights, arena))
            strange = weights;
    return strange;
}

/* Recorded operator by operator, all of a model's activations are there. */
static bool activations_alike(const bz_align_work *ran, const bz_align_work *model)
{
    int more = ran->relu > model->relu ? ran->relu : model->relu, less = ran->relu + model->relu - more;
    return !ran->by_layer || more < LEAST_TOLD || less >= FITS * more;
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

int recording_recognize(const bz_trace *trace, const bz_rebuilt *rebuilt, const bz_candidate *candidate, int n,
                        bz_arena *arena, bz_fit *fit)
{
    bz_align_work ran;
    int fits = 0;
    if (!n)
        return 0;
    bz_align_work_take(trace, arena, &ran);
    bool by_calls = rebuilt->layers && trace->event[BZ_EVENT_CALL].n,
         by_operators = rebuilt->layers && !strcmp(rebuilt->of, "operators");
    sizes told = by_calls ? sizes_of_layers(rebuilt->layers) : (sizes){0};
    bool calls_alone = !trace->event[BZ_EVENT_KERNEL].n && !trace->event[BZ_EVENT_OP].n;
    for (int i = 0; i < n; i++) {
        BZ_SCOPED(bz_align_work) model = {0};
        for (int k = 0; k < candidate[i].layers->n; k++)
            bz_align_work_add(&model, &candidate[i].layers->layer[k]);
        if (calls_alone)
            bz_align_work_leave_out(&model, &ran);
        if (ran.by_layer)
            bz_align_work_convs(&model);
        bz_align_work_fold(&model, &ran);
        sizes wanted = sizes_of_layers(candidate[i].layers);
        double sizes_told = sizes_alike(&told, &wanted);
        bool conv = ran.count[BZ_WORK_CONV] && !model.count[BZ_WORK_CONV]; /* one, as before a ViT, is no detail */
        bool strange = by_operators && strange_weights(rebuilt->layers, candidate[i].layers, arena);
        int alike =
            model.n >= LEAST_TOLD && sizes_told >= SIZES_ALIKE && !conv && !strange && activations_alike(&ran, &model)
                ? bz_align_work_common(&model, &ran)
                : 0;
        free(wanted.v);
        fit[i] = (bz_fit){.candidate = &candidate[i],
                          .sizes = sizes_told,
                          .sized = by_operators || told.n >= LEAST_TOLD,
                          .likeness = alike ? 2.0 * alike / (double)(model.n + ran.n) : 0,
                          .evidence = bz_align_work_evidence(&model, &ran, alike, arena)};
    }
    const bool by_layer = ran.by_layer;
    bz_align_work_free(&ran);
    free(told.v);
    qsort(fit, (size_t)n, sizeof *fit, most_alike);
    while (fits < n && fit[fits].likeness >= (by_layer ? FITS_BY_LAYER : FITS)) {
        fit[fits].equal =
            fit[0].likeness - fit[fits].likeness < EQUALLY && fabs(fit[0].sizes - fit[fits].sizes) < EQUALLY;
        fits++;
    }
    return fits;
}
