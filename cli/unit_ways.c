/* The ways to compute a model that the database has records for: other data types, layouts and math modes. */
#include "cli/unit_ways.h"

#include <string.h>

enum { VIEWS = 4, PROBED = 8 };

/* Records of the plan itself: f32 by TF32, and one layout throughout. */
static const struct {
    bz_prices_view view;
    const char *name; /* behind the type's */
} OWN[VIEWS] = {{{NULL, NULL}, ""}, {{"plain", NULL}, "nchw"}, {{"nhwc", NULL}, "nhwc"}, {{NULL, "tf32"}, "tf32"}};

/* Floating point; and quantized to bytes, for which somebody has to choose scales. */
static const struct {
    const char *option;
    bz_dtype dtype, data; /* data: between layers */
    const char *name;
} TYPES[] = {{"bf16", BZ_BF16, BZ_BF16, "bf16"}, {"f16", BZ_F16, BZ_F16, "f16"}, {"s8", BZ_I8, BZ_U8, "int8"}};

int unit_ways_prices(unit_ways *w, const bz_plan *plan, bz_perfdb *db, const bz_system *system,
                     const bz_setting *setting, bz_arena *arena, bz_prices **out, bz_error *err)
{
    bz_prices_view views[VIEWS];
    bz_prices *prices[VIEWS];
    for (int v = 0; v < VIEWS; v++)
        views[v] = OWN[v].view;
    if (bz_prices_load_views(plan, db, system, setting, views, VIEWS, arena, prices, err))
        return -1;
    *out = prices[0];
    for (int v = 1; v < VIEWS; v++)
        w->way[w->n++] =
            (unit_source){OWN[v].name, plan, prices[v], BZ_UNDEFINED, BZ_UNDEFINED, views[v].layout, false};
    return 0;
}

/* Whether the database knows one of the heaviest products in this type. Asks for a few problems only, so that a type
 * that nobody measured costs no plan. */
static int is_known(const bz_plan *plan, bz_dtype dtype, bz_perfdb *db, const bz_system *system, bool *known,
                    bz_error *err)
{
    const bz_plan_layer *items, *heavy[PROBED];
    bz_arena arena = {0};
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
    bz_arena_free(&arena);
    return rc;
}

static int add_type(unit_ways *w, const planning *p, const bz_list *paths, const loaded_models *m, size_t type,
                    bz_perfdb *db, const bz_system *system, const bz_setting *setting, bz_arena *arena, bz_error *err)
{
    static const char *const ENDS[] = {"", " nchw", " nhwc"};
    planning other = *p;
    bz_prices_view views[3];
    bz_prices *prices[3];
    bz_plan *plan;
    other.dtype = TYPES[type].option;
    if (planning_plan(&other, paths, m, &plan, err))
        return -1;
    w->plan[w->n_plans++] = plan;
    for (int v = 0; v < 3; v++)
        views[v] = OWN[v].view;
    if (bz_prices_load_views(plan, db, system, setting, views, 3, arena, prices, err))
        return -1;
    for (int v = 0; v < 3; v++)
        w->way[w->n++] = (unit_source){bz_arena_printf(arena, "%s%s", TYPES[type].name, ENDS[v]),
                                       plan,
                                       prices[v],
                                       TYPES[type].dtype,
                                       TYPES[type].data,
                                       views[v].layout,
                                       TYPES[type].data == BZ_U8};
    return 0;
}

int unit_ways_find(unit_ways *w, const planning *p, const bz_list *paths, const loaded_models *m, const bz_plan *plan,
                   bz_perfdb *db, const bz_system *system, const bz_setting *setting, bz_arena *arena, bz_error *err)
{
    bz_dtype asked;
    if (planning_dtype(p, &asked, err))
        return -1;
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        bool known;
        if (TYPES[i].dtype == asked)
            continue;
        if (is_known(plan, TYPES[i].dtype, db, system, &known, err) ||
            (known && add_type(w, p, paths, m, i, db, system, setting, arena, err)))
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

int unit_ways_units(const unit_ways *w, const bz_bound_input *in, const bz_bound *bound, bz_perfdb *db,
                    const bz_system *system, bz_arena *arena, bz_units *out, bz_error *err)
{
    bz_unit_try tries[UNIT_WAYS];
    bz_arena work = {0};
    int n = 0;
    for (int i = 0; i < w->n; i++) {
        bz_bound_input other = *in;
        bz_bound *b = BZ_NEW(&work, bz_bound, 1);
        other.brief = true;
        other.dag = bound->dag;
        other.plan = w->way[i].plan;
        other.prices = w->way[i].prices;
        other.dtype = w->way[i].dtype ? w->way[i].dtype : in->dtype;
        bz_bound_make(&other, &work, b);
        if (has_products(b) && (w->way[i].layout || !is_same(b, bound)))
            tries[n++] = (bz_unit_try){w->way[i].name, b, w->way[i].layout, w->way[i].data, w->way[i].calibrated};
    }
    int rc = bz_units_make(bound, tries, n, db, system, arena, out, err);
    bz_arena_free(&work);
    return rc;
}

void unit_ways_free(unit_ways *w)
{
    for (int i = 0; i < w->n_plans; i++)
        bz_plan_free(w->plan[i]);
}
