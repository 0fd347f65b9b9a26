/* What a lowered layer costs, by the records of a database. */
#include "generator/plan.h"

#include "generator/constants.h"

#include <math.h>
#include <string.h>

typedef struct records_known {
    bz_record *record;
    size_t n;
} records_known;

struct bz_prices {
    const bz_plan *plan;
    const records_known *known; /* [plan->n_problems]: the records, of all views */
    bz_problem_price *problem;
    bool *refused; /* there are records of the problem, and all say unsupported */
};

/* A mode that computes in fewer bits gives other numbers: it counts only where the plan was told that it may. */
static bool allows_math(const bz_plan *plan, const char *math, const bz_prices_view *view)
{
    return (view->math && !strcmp(view->math, math)) || plan_allows_math(&plan->options, math);
}

/* In one layout what was given up as hopeless counts, too: a way through that layout has nothing better. */
static bool is_time(const bz_record *r, bool one_layout)
{
    bool hopeless = one_layout && r->status == BZ_RECORD_DROPPED && r->provenance == BZ_PROVENANCE_MEASURED;
    return (r->status == BZ_RECORD_OK || hopeless) && r->median > 0;
}

/* An implementation by the definition comes behind all others. */
static bool is_better(const bz_record *r, const bz_record *than)
{
    bool reference = bz_algorithm_is_reference(r->problem, r->variant.algorithm);
    if (than && reference != bz_algorithm_is_reference(than->problem, than->variant.algorithm))
        return !reference;
    return !than || bz_record_busy(r) < bz_record_busy(than);
}

static void price_problem(const bz_plan *plan, const bz_problem *problem, bz_problem_price *price,
                          const bz_record *records, size_t n, const bz_setting *setting, const bz_prices_view *view)
{
    bool one_layout = view->layout && !bz_problem_has(problem, BZ_TRAIT_BYTES) && plan_has_space(problem);
    *price = (bz_problem_price){0};
    for (size_t i = 0; i < n; i++) {
        const bz_record *r = &records[i];
        if (!bz_setting_same(&r->setting, setting) || !allows_math(plan, r->variant.math, view) ||
            !bz_plan_allows(plan, problem, r->variant.backend, r->variant.layout) ||
            (one_layout && strcmp(r->variant.layout, view->layout) != 0))
            continue;
        price->n_records++;
        if (is_time(r, one_layout)) {
            if (is_better(r, price->record)) {
                price->second = price->record;
                price->record = r;
            } else if (is_better(r, price->second)) {
                price->second = r;
            }
        } else if (!price->complaint && *r->reason) {
            price->complaint = r->reason;
        }
    }
}

static bool are_refused(const bz_record *records, size_t n, const bz_setting *setting)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!bz_setting_same(&records[i].setting, setting))
            continue;
        if (records[i].status != BZ_RECORD_UNSUPPORTED)
            return false;
        any = true;
    }
    return any;
}

int bz_prices_load_views(const bz_plan *plan, bz_perfdb *db, const bz_system *system, const bz_setting *setting,
                         const bz_prices_view *view, int n_views, bz_arena *arena, bz_prices **out, bz_error *err)
{
    records_known *all = BZ_NEW(arena, records_known, plan->n_problems);
    for (int v = 0; v < n_views; v++) {
        bz_prices *p = out[v] = BZ_NEW(arena, bz_prices, 1);
        p->plan = plan;
        p->known = all;
        p->problem = BZ_NEW(arena, bz_problem_price, plan->n_problems);
        p->refused = BZ_NEW(arena, bool, plan->n_problems);
    }
    for (int i = 0; i < plan->n_problems && system; i++) {
        records_known *k = &all[i];
        if (bz_perfdb_variants(db, system, plan->problem[i].text, arena, &k->record, &k->n, err))
            return -1;
        for (int v = 0; v < n_views; v++) {
            price_problem(plan, plan->problem[i].problem, &out[v]->problem[i], k->record, k->n, setting, &view[v]);
            out[v]->refused[i] = are_refused(k->record, k->n, setting);
        }
    }
    return 0;
}

int bz_prices_load(const bz_plan *plan, bz_perfdb *db, const bz_system *system, const bz_setting *setting,
                   bz_arena *arena, bz_prices **out, bz_error *err)
{
    return bz_prices_load_views(plan, db, system, setting, &(bz_prices_view){0}, 1, arena, out, err);
}

void bz_prices_predict(bz_prices *prices, bool (*predict)(void *user, int problem, bz_record *out), void *user,
                       bz_arena *arena)
{
    for (int i = 0; i < prices->plan->n_problems; i++) {
        bz_record r;
        if (prices->problem[i].record || !predict(user, i, &r))
            continue;
        prices->problem[i].record = bz_arena_dup(arena, &r, sizeof r);
        prices->problem[i].predicted = true;
    }
}

const bz_problem_price *bz_prices_problem(const bz_prices *prices, int problem)
{
    return &prices->problem[problem];
}

const bz_problem_price *bz_prices_call(const bz_prices *prices, const bz_alternative *a, int i)
{
    const char *text = a->text[i];
    return &prices->problem[a->number ? (uint32_t)a->number[i]
                                      : bz_map_get(&prices->plan->problem_map, text, strlen(text))];
}

bool bz_prices_records(const bz_prices *prices, const char *text, const bz_record **records, size_t *n)
{
    uint32_t k = bz_map_get(&prices->plan->problem_map, text, strlen(text));
    if (k == BZ_MAP_NONE)
        return false;
    *records = prices->known[k].record;
    *n = prices->known[k].n;
    return true;
}

/* Calls of which one is by the definition come behind all others, too; behind these, what nobody has measured. */
static bool is_cheaper(const bz_layer_price *p, const bz_layer_price *than)
{
    if (p->predicted != than->predicted)
        return !p->predicted;
    return p->reference != than->reference ? !p->reference : p->seconds < than->seconds;
}

static void try_alternative(const bz_prices *prices, const bz_alternative *a, bz_layer_price *best)
{
    bz_layer_price price = {.alternative = a};
    for (int i = 0; i < a->n; i++) {
        const bz_problem_price *of = bz_prices_call(prices, a, i);
        const bz_record *r = of->record;
        if (!r)
            return;
        price.predicted |= of->predicted;
        bool known = r->low > 0 && r->high >= r->low;
        double busy = bz_record_busy(r), share = busy / r->median; /* the interval is that of the median */
        price.seconds += busy;
        price.low += known ? r->low * share : busy * (1 - UNSURE);
        price.high += known ? r->high * share : busy * (1 + UNSURE);
        price.launch += isfinite(r->launch) ? r->launch : 0;
        price.noisy |= bz_record_marked(r);
        price.reference |= bz_algorithm_is_reference(a->text[i], r->variant.algorithm);
        if (r->provenance > price.provenance)
            price.provenance = r->provenance;
    }
    if (a->modelled)
        price.provenance = BZ_PROVENANCE_MODELLED;
    if (!best->alternative || is_cheaper(&price, best))
        *best = price;
}

/* False where no backend of the plan has such calls, or all of them refused. Where no record tells yet, the answer is yes. */
static bool can_run(const bz_prices *prices, const bz_alternative *a)
{
    for (int i = 0; i < a->n; i++) {
        int k = a->number[i];
        if (prices->refused[k] || (!prices->problem[k].n_records && !prices->plan->problem[k].n_families))
            return false;
    }
    return true;
}

void bz_prices_layer(const bz_prices *prices, const bz_plan_layer *layer, bz_layer_price *out)
{
    const bz_lowering *low = &layer->lowering;
    const char *complaint = NULL;
    int missing = 0;
    *out = (bz_layer_price){.seconds = low->free ? 0 : NAN, .why = low->n ? NULL : low->why};
    bool others = false, any = false;
    for (int a = 0; a < low->n; a++) {
        bool can = can_run(prices, &low->alternative[a]);
        any |= can;
        others |= can && !low->alternative[a].fallback;
    }
    for (int a = 0; a < low->n; a++)
        if (!low->alternative[a].fallback || !others)
            try_alternative(prices, &low->alternative[a], out);
    for (int a = 0; a < low->n && !out->alternative; a++) /* as long as there is no record of the calls */
        if (low->alternative[a].modelled)
            try_alternative(prices, &low->alternative[a], out);
    for (int i = 0; i < layer->n_problems; i++) {
        const bz_problem_price *p = &prices->problem[layer->problem[i]];
        /* what no backend of the plan has is missed where nothing else can run; a group is its layers then */
        bool counts = prices->plan->problem[layer->problem[i]].n_families || (!any && !layer->pattern);
        missing += counts && !p->n_records;
        complaint = complaint ? complaint : p->complaint;
    }
    out->missing = missing;
    out->refused = low->n && !out->alternative && !any;
    if (!out->alternative && low->n)
        out->why = missing        ? "the database has no record of it"
                   : complaint    ? complaint
                   : out->refused ? "no backend that was asked for has such a call"
                                  : "no variant ran well";
}
