/* A model on a machine: what records do not price is predicted. */
#include "predict/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct filling {
    bz_aim *aim;
    const bz_predictor *predictor;
    const bz_plan_problem *problem;
    const char *system;
    const bz_setting *setting;
    bool *wanted;                 /* [problems] */
    bz_predicted_time *predicted; /* [problems]; seconds 0: none */
    double *called;               /* [problems]: seconds of a model that they take */
} filling;

static const bz_shape *shape_of(const filling *f, int problem)
{
    return bz_predictor_shape(f->predictor, f->problem[problem].text, f->problem[problem].problem);
}

static bool fill(void *user, int problem, bz_record *out)
{
    filling *f = user;
    if (!f->wanted[problem])
        return false;
    bz_predicted_time p = bz_predict(f->aim, f->problem[problem].text, shape_of(f, problem));
    if (!(p.seconds > 0 && isfinite(p.seconds)))
        return false;
    f->predicted[problem] = p;
    *out = bz_record_blank();
    out->system = f->system;
    out->problem = f->problem[problem].text;
    out->variant = (bz_variant){"predicted", bz_predicted_names[p.by], "any", "default"};
    out->setting = *f->setting;
    out->status = BZ_RECORD_OK;
    out->median = p.seconds;
    double wide = BZ_NINE_OF_TEN * hypot(p.spread, p.alone);
    out->low = p.seconds * exp(-wide);
    out->high = p.seconds * exp(wide);
    out->n = 1;
    out->reason = out->meta = "";
    out->checked = "skipped";
    out->provenance = BZ_PROVENANCE_MODELLED;
    return true;
}

/* First what the predictor has met. Then what is left of layers without a price; and of groups that are one call, whose
 * calls with post-operations nobody may have measured: they go as those without, for all that such a call moves. */
static void fill_in(filling *f, const bz_plan *plan, bz_prices *prices, bz_arena *arena)
{
    const bz_plan_layer *layer;
    int n = bz_plan_problems(plan, &f->problem), layers = bz_plan_layers(plan, &layer);
    bool *single = BZ_NEW(arena, bool, n); /* of a layer by itself */
    f->wanted = BZ_NEW(arena, bool, n);
    f->predicted = BZ_NEW(arena, bz_predicted_time, n);
    f->called = BZ_NEW(arena, double, n);
    for (int i = 0; i < n; i++)
        f->wanted[i] = f->problem[i].n_families && bz_predictor_met(f->predictor, shape_of(f, i));
    bz_prices_predict(prices, fill, f, arena);
    memset(f->wanted, 0, (size_t)n * sizeof *f->wanted);
    for (int i = 0; i < layers; i++) {
        bz_layer_price price;
        bz_prices_layer(prices, &layer[i], &price);
        for (int k = 0; k < layer[i].n_problems && !layer[i].pattern; k++) {
            single[layer[i].problem[k]] = true;
            f->wanted[layer[i].problem[k]] |= !price.alternative;
        }
    }
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < layer[i].n_problems && layer[i].pattern; k++)
            f->wanted[layer[i].problem[k]] |= !single[layer[i].problem[k]];
    bz_prices_predict(prices, fill, f, arena);
}

/* Adds to the square of what problems' own errors make of a sum: all calls of a problem are off together. */
static double add_square(const filling *f, ptrdiff_t problem, double seconds)
{
    double before = f->called[problem], alone = f->predicted[problem].alone;
    f->called[problem] += seconds;
    return alone * alone * seconds * (2 * before + seconds);
}

/* Of the layers that rest on predictions: by which way, and how sure. */
static void sum_up(const filling *f, const bz_plan *plan, const bz_bound *bound, bz_forecast *out)
{
    double spread = 0, squares = 0, all = 0;
    const bz_plan_problem *problem;
    memset(f->called, 0, (size_t)bz_plan_problems(plan, &problem) * sizeof *f->called);
    for (int i = 0; i < bound->n; i++) {
        const bz_bound_layer *l = &bound->layer[i];
        out->layers++;
        if (!l->price.alternative)
            continue;
        out->predicted += l->price.predicted;
        for (int k = 0; k < l->price.alternative->n; k++) {
            const bz_plan_problem *p = bz_plan_find_problem(plan, l->price.alternative->text[k]);
            const bz_predicted_time *is = p ? &f->predicted[p - f->problem] : NULL;
            double seconds =
                l->times * (is && is->seconds > 0 ? is->seconds : l->price.seconds / l->price.alternative->n);
            out->by[is && is->seconds > 0 ? is->by : BZ_PREDICTED_RECORD] += seconds;
            if (is && is->seconds > 0 && !bz_aim_met_type(f->aim, p->problem->dtype))
                out->other_type += seconds;
            spread += seconds * (is ? is->spread : 0);
            squares += is ? add_square(f, p - f->problem, seconds) : 0;
            all += seconds;
        }
    }
    for (int i = 0; i < BZ_PREDICTED_N && all > 0; i++)
        out->by[i] /= all;
    out->other_type /= all > 0 ? all : 1;
    out->beyond = bz_aim_beyond(f->aim);
    spread = all > 0 ? sqrt(spread * spread + squares) / all : 0;
    out->low = exp(-BZ_NINE_OF_TEN * spread);
    out->high = exp(BZ_NINE_OF_TEN * spread);
}

void bz_forecast_fill(bz_aim *aim, const bz_plan *plan, const bz_setting *setting, const char *system,
                      bz_prices *prices, bz_arena *arena)
{
    filling f = {.aim = aim, .predictor = bz_aim_predictor(aim), .system = system, .setting = setting};
    fill_in(&f, plan, prices, arena);
}

void bz_forecast_make(bz_aim *aim, const bz_bound_input *in, int n, bz_prices *prices, bz_arena *arena,
                      bz_forecast *out)
{
    if (n < 1)
        return;
    filling f = {.aim = aim, .predictor = bz_aim_predictor(aim), .system = in->system, .setting = &in->setting};
    fill_in(&f, in->plan, prices, arena);
    for (int i = 0; i < n; i++) {
        bz_bound_input with = in[i];
        with.prices = prices;
        out[i] = (bz_forecast){.model = in[i].model, .machine = bz_aim_machine(aim), .batch = in[i].layers->batch};
        bz_bound bound;
        bz_bound_make(&with, arena, &bound);
        out[i].sequential = bound.sequential;
        out[i].parallel = bound.path.seconds;
        out[i].fused = bound.fused.wanted ? bound.fused.sequential : NAN;
        out[i].unpriced = bound.coverage.unpriced;
        sum_up(&f, in->plan, &bound, &out[i]);
    }
}
