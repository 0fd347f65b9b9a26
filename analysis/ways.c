/* The ways to compute a model that the database has records for: other data types, layouts and math modes. */
#include "analysis/steps.h"
#include "predict/predict.h"
#include "transfer/transfer.h"

#include <string.h>

enum { VIEWS = 4, PROBED = 8 };

/* Records of the plan itself: f32 by TF32, and one layout throughout. */
static const struct {
    bz_prices_view view;
    const char *name; /* behind the type's */
} OWN[VIEWS] = {{{NULL, NULL}, ""}, {{"plain", NULL}, "nchw"}, {{"nhwc", NULL}, "nhwc"}, {{NULL, "tf32"}, "tf32"}};

/* Floating point; and quantized to bytes, for which somebody has to choose scales. */
static const struct {
    bz_dtype dtype, data; /* data: between layers */
    const char *name;
} TYPES[] = {{BZ_BF16, BZ_BF16, "bf16"}, {BZ_F16, BZ_F16, "f16"}, {BZ_I8, BZ_U8, "int8"}};

/* The prices of the plan as asked, and from the same look-up those of its layouts and math modes. */
static int load_prices(analyze_work *w, bz_error *err)
{
    bz_prices_view views[VIEWS];
    bz_prices *prices[VIEWS];
    for (int v = 0; v < VIEWS; v++)
        views[v] = OWN[v].view;
    if (bz_prices_load_views(w->plan, w->request->db, w->system, &w->request->setting, views, VIEWS, w->arena, prices,
                             err))
        return -1;
    w->prices = prices[0];
    for (int v = 1; v < VIEWS; v++)
        w->way[w->n_ways++] =
            (analyze_way){OWN[v].name, w->plan, prices[v], BZ_UNDEFINED, BZ_UNDEFINED, views[v].layout, false};
    return 0;
}

/* Whether the database knows one of the heaviest products in this type. Asks for a few problems only, so that a type
 * that nobody measured costs no plan. */
static int is_known(const bz_plan *plan, bz_dtype dtype, bz_perfdb *db, const bz_system *system, bool *known,
                    bz_error *err)
{
    const bz_plan_layer *items, *heavy[PROBED];
    BZ_SCOPED(bz_arena) arena = {0};
    int n = bz_plan_layers(plan, &items), found = 0, rc = 0;
    for (int i = 0; i < n; i++) {
        int64_t macs = items[i].layer->macs;
        if (items[i].pattern || !macs || (found == PROBED && heavy[found - 1]->layer->macs >= macs))
            continue;
        int at = found < PROBED ? found++ : PROBED - 1;
        for (; at && heavy[at - 1]->layer->macs < macs; at--)
            heavy[at] = heavy[at - 1];
        heavy[at] = &items[i];
    }
    *known = false;
    for (int i = 0; i < found && !*known && !rc; i++) {
        bz_lowering low;
        bz_lower(heavy[i]->layer, dtype, &arena, &low);
        for (int a = 0; a < low.n && !*known && !rc; a++) {
            bz_record *r;
            size_t records = 0;
            rc = bz_perfdb_variants(db, system, low.alternative[a].text[0], &arena, &r, &records, err);
            *known = records > 0;
        }
    }
    return rc;
}

static int add_type(analyze_work *w, size_t type, bz_error *err)
{
    static const char *const ENDS[] = {"", " nchw", " nhwc"};
    const bz_request *r = w->request;
    bz_plan_options other = r->options;
    bz_prices_view views[3];
    bz_prices *prices[3];
    other.dtype = TYPES[type].dtype;
    const bz_plan *plan = bz_plan_keep(bz_plan_of(&other, w->layers, w->name, w->n), w->arena);
    for (int v = 0; v < 3; v++)
        views[v] = OWN[v].view;
    if (bz_prices_load_views(plan, r->db, w->system, &r->setting, views, 3, w->arena, prices, err))
        return -1;
    for (int v = 0; v < 3; v++)
        w->way[w->n_ways++] = (analyze_way){bz_arena_printf(w->arena, "%s%s", TYPES[type].name, ENDS[v]),
                                            plan,
                                            prices[v],
                                            TYPES[type].dtype,
                                            TYPES[type].data,
                                            views[v].layout,
                                            TYPES[type].data == BZ_U8};
    return 0;
}

/* What no record prices. Of a system whose rates nobody knows, or that nothing tells of, no price is predicted. */
static void predict(const bz_samples *s, const bz_setting *setting, analyze_work *w)
{
    bz_machine machine;
    bz_predictor *predictor =
        bz_machine_of(w->facts, w->system->name, setting, &machine, NULL) ? NULL : bz_predictor_best(s, machine.gpu);
    if (!predictor)
        return;
    bz_aim *aim = bz_predictor_aim(predictor, &machine, s, bz_samples_machine(s, w->system->name), NULL);
    bz_forecast_fill(aim, w->plan, setting, w->system->name, w->prices, w->arena);
    bz_aim_free(aim);
    bz_predictor_free(predictor);
}

int analyze_prices(analyze_work *w, const analyze_place *at)
{
    (void)at;
    const bz_request *r = w->request;
    bz_peaks *peaks = BZ_NEW(w->arena, bz_peaks, 1);
    if (bz_transfers_facts(r->db, w->system, w->arena, &w->facts, w->err))
        return -1;
    bz_peaks_read(w->facts, &r->setting, w->arena, peaks);
    for (int i = 0; i < r->options.n_maths; i++)
        bz_peaks_allow(w->facts, &r->setting, r->options.math[i], peaks);
    w->peaks = peaks;
    bool ways = w->parts & BZ_PART_UNITS;
    if (ways ? load_prices(w, w->err)
             : bz_prices_load(w->plan, r->db, w->system, &r->setting, w->arena, &w->prices, w->err))
        return -1;
    if (r->samples)
        predict(r->samples, &r->setting, w);
    if (!ways)
        return 0;
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES && !w->rebuilt; i++) {
        bool known;
        if (TYPES[i].dtype == r->options.dtype)
            continue;
        if (is_known(w->plan, TYPES[i].dtype, r->db, w->system, &known, w->err) || (known && add_type(w, i, w->err)))
            return -1;
    }
    return 0;
}

/* A product that has a price of its own: not one of those that every way has, as copies. */
static bool has_products(const bz_bound *b)
{
    return b->coverage.macs_measured > 0 || b->coverage.macs_imported > 0;
}

static bool is_same(const bz_bound *a, const bz_bound *b)
{
    return !memcmp(a->seconds, b->seconds, (size_t)a->dag->n * sizeof *a->seconds);
}

int analyze_units(analyze_work *w, const analyze_place *at)
{
    const bz_bound *bound = &at->item->bound;
    bz_units *units = BZ_NEW(w->arena, bz_units, 1);
    bz_unit_try tries[ANALYZE_WAYS];
    bz_bound_input in;
    BZ_SCOPED(bz_arena) work = {0};
    int n = 0;
    analyze_bound_input(w, at->number, &in);
    in.brief = true;
    in.dag = bound->dag;
    for (int i = 0; i < w->n_ways; i++) {
        const analyze_way *way = &w->way[i];
        bz_bound *b = BZ_NEW(&work, bz_bound, 1);
        in.plan = way->plan;
        in.prices = way->prices;
        in.dtype = way->dtype ? way->dtype : bound->dtype;
        bz_bound_make(&in, &work, b);
        if (has_products(b) && (way->layout || !is_same(b, bound)))
            tries[n++] = (bz_unit_try){way->name, b, way->layout, way->data, way->calibrated};
    }
    at->item->units = units;
    return bz_units_make(bound, tries, n, w->request->db, w->system, w->arena, units, w->err);
}
