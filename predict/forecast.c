/* A model on a machine: what records do not price is predicted. */
#include "predict/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct filling {
    bz_aim *aim;
    const bz_plan_problem *problem;
    const bz_shape *shape; /* [problems] */
    int problems;
    const char *system;
    const bz_setting *setting;
    bool *wanted;                 /* [problems] */
    bz_predicted_time *predicted; /* [problems]; seconds 0: none */
    double *called;               /* [problems]: seconds of a model that they take */
} filling;

static bool fill(void *user, int problem, bz_record *out)
{
    filling *f = user;
    if (!f->wanted[problem])
        return false;
    bz_predicted_time p = bz_predict(f->aim, f->problem[problem].text, &f->shape[problem]);
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
    int n = f->problems = bz_plan_problems(plan, &f->problem), layers = bz_plan_layers(plan, &layer);
    bool *single = BZ_NEW(arena, bool, n); /* of a layer by itself */
    f->wanted = BZ_NEW(arena, bool, n);
    f->predicted = BZ_NEW(arena, bz_predicted_time, n);
    f->called = BZ_NEW(arena, double, n);
    for (int i = 0; i < n; i++)
        f->wanted[i] = f->problem[i].n_families && bz_predictor_met(bz_aim_predictor(f->aim), &f->shape[i]);
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
static double add_square(const filling *f, int problem, double seconds)
{
    double before = f->called[problem], alone = f->predicted[problem].alone;
    f->called[problem] += seconds;
    return alone * alone * seconds * (2 * before + seconds);
}

/* Of the layers that rest on predictions: by which way, and how sure. */
static void sum_up(const filling *f, const bz_bound *bound, bz_forecast *out)
{
    double spread = 0, squares = 0, all = 0;
    memset(f->called, 0, (size_t)f->problems * sizeof *f->called);
    for (int i = 0; i < bound->n; i++) {
        const bz_bound_layer *l = &bound->layer[i];
        out->layers++;
        if (!l->price.alternative)
            continue;
        out->predicted += l->price.predicted;
        for (int k = 0; k < l->price.alternative->n; k++) {
            const int problem = l->price.alternative->number[k];
            const bz_predicted_time *is = &f->predicted[problem];
            double seconds = l->times * (is->seconds > 0 ? is->seconds : l->price.seconds / l->price.alternative->n);
            out->by[is->seconds > 0 ? is->by : BZ_PREDICTED_RECORD] += seconds;
            if (is->seconds > 0 && !bz_aim_met_type(f->aim, f->problem[problem].problem->dtype))
                out->other_type += seconds;
            if (f->problem[problem].problem->dtype == BZ_BF16 && !(out->machine->bf16 > 0) && is->seconds > 0)
                out->no_unit += seconds;
            out->needed = fmax(out->needed, f->shape[problem].bytes);
            spread += seconds * is->spread;
            squares += add_square(f, problem, seconds);
            all += seconds;
        }
    }
    for (int i = 0; i < BZ_PREDICTED_N && all > 0; i++)
        out->by[i] /= all;
    out->other_type /= all > 0 ? all : 1;
    out->no_unit /= all > 0 ? all : 1;
    out->beyond = bz_aim_beyond(f->aim);
    spread = all > 0 ? sqrt(spread * spread + squares) / all : 0;
    out->low = exp(-BZ_NINE_OF_TEN * spread);
    out->high = exp(BZ_NINE_OF_TEN * spread);
}

static const bz_shape *shapes_of(const bz_plan *plan, bz_arena *arena)
{
    const bz_plan_problem *problem;
    int n = bz_plan_problems(plan, &problem);
    bz_shape *shape = BZ_NEW(arena, bz_shape, n);
    for (int i = 0; i < n; i++)
        bz_shape_of(problem[i].problem, &shape[i]);
    return shape;
}

void bz_forecast_fill(bz_aim *aim, const bz_plan *plan, const bz_setting *setting, const char *system,
                      bz_prices *prices, bz_arena *arena)
{
    filling f = {.aim = aim, .shape = shapes_of(plan, arena), .system = system, .setting = setting};
    fill_in(&f, plan, prices, arena);
}

/* All models of a plan on one system. in[i]: of each model, but for what belongs to the system. */
static int forecast(const bz_target *t, bz_perfdb *db, bz_bound_input *in, int n, const bz_shape *shape,
                    bz_forecast *out, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0}; /* of prices and bounds: of fifty systems they take more than all the rest */
    bz_peaks *peaks = BZ_NEW(&arena, bz_peaks, 1);
    bz_prices *prices;
    filling f = {.aim = t->aim, .shape = shape, .system = t->machine.name, .setting = &in->setting};
    bz_peaks_read(t->facts, f.setting, &arena, peaks);
    int rc = bz_prices_load(in->plan, db, t->system, f.setting, &arena, &prices, err);
    if (!rc)
        fill_in(&f, in->plan, prices, &arena);
    for (int i = 0; i < n && !rc; i++) {
        bz_bound bound;
        in[i].system = f.system;
        in[i].facts = t->facts;
        in[i].prices = prices;
        in[i].peaks = peaks;
        bz_bound_make(&in[i], &arena, &bound);
        out[i] = (bz_forecast){.model = in[i].model,
                               .machine = &t->machine,
                               .batch = in[i].layers->batch,
                               .sequential = bound.sequential,
                               .parallel = bound.path.seconds,
                               .fused = bound.fused.sequential,
                               .unpriced = bound.coverage.unpriced,
                               .loops_open = bound.coverage.loops_open,
                               .branches = bound.coverage.branches,
                               .enough = bz_bound_written(&bound).enough};
        sum_up(&f, &bound, &out[i]);
    }
    return rc;
}

int bz_targets_forecast(const bz_target *t, int n, bz_perfdb *db, const bz_setting *setting, bz_dtype dtype,
                        const bz_models *m, const bz_plan *plan, bz_forecast *out, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    const bz_shape *shape = shapes_of(plan, &arena);
    bz_bound_input *in = BZ_NEW(&arena, bz_bound_input, m->n);
    int rc = 0;
    for (int i = 0; i < m->n; i++)
        in[i] = (bz_bound_input){.model = m->name[i],
                                 .setting = *setting,
                                 .dtype = dtype,
                                 .layers = m->layers[i],
                                 .dag = bz_dag_build(m->layers[i]),
                                 .plan = plan,
                                 .number = i,
                                 .fused = true,
                                 .bare = true};
    for (int i = 0; i < n && m->n && !rc; i++)
        rc = forecast(&t[i], db, in, m->n, shape, out + (size_t)i * (size_t)m->n, err);
    return rc;
}
