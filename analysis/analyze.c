/* An analysis, step by step. */
#include "analysis/steps.h"
#include "whatif/whatif.h"

void analyze_bound_input(const analyze_work *w, int number, bz_bound_input *in)
{
    const bz_request *r = w->request;
    *in = (bz_bound_input){.model = w->name[number],
                           .system = w->system->name,
                           .facts = w->facts,
                           .setting = r->setting,
                           .dtype = r->options.dtype,
                           .layers = w->layers[number],
                           .plan = w->plan,
                           .number = number,
                           .fused = r->options.patterns && !w->rebuilt,
                           .rebuilt = w->rebuilt ? &w->rebuilt[number] : NULL,
                           .prices = w->prices,
                           .peaks = w->peaks};
}

static int make_bound(analyze_work *w, const analyze_place *at)
{
    bz_bound_input in;
    analyze_bound_input(w, at->number, &in);
    bz_bound_make(&in, w->arena, &at->item->bound);
    if (!w->request->db || !w->system)
        return 0;
    return bz_bound_marks_make(&at->item->bound, w->prices, w->request->db, w->system, w->arena, w->err);
}

/* For predictions of what programs on a processor gain: in the model's type, and in the one that its matrix units have, each as
 * the profiles ask for them; and in the model's as training does, whoever asks. */
static int make_picks(analyze_work *w, const analyze_place *at)
{
    static const bz_dtype TYPES[] = {BZ_UNDEFINED, BZ_BF16};
    bz_analysis *item = at->item;
    bz_picks *picks = BZ_NEW(w->arena, bz_picks, 4);
    bool asked[2] = {false, false};
    if (!item->n_ladders || w->rebuilt || bz_plan_device(&w->request->options))
        return 0;
    for (int k = 0; k < item->n_ladders; k++)
        if (item->ladder[k].regret)
            asked[item->ladder[k].regret->training] = true;
    for (int i = 0; i < 4; i++)
        if ((asked[i / 2] || (i / 2 && !TYPES[i % 2])) &&
            bz_picks_make(&item->bound, TYPES[i % 2], i / 2, w->request->db, w->system, w->arena,
                          &picks[item->n_picks++], w->err))
            return -1;
    item->picks = picks;
    return 0;
}

static int make_fusion(analyze_work *w, const analyze_place *at)
{
    bz_fusion *fusion = BZ_NEW(w->arena, bz_fusion, 1);
    if (!at->item->bound.fused.wanted)
        return 0;
    bz_fusion_make(&at->item->bound, at->item->ladder, at->item->n_ladders, w->arena, fusion);
    at->item->fusion = fusion;
    return 0;
}

static int make_ladder(analyze_work *w, const analyze_place *at)
{
    bz_ladder_make(&at->item->bound, at->trace, at->profile, w->arena, at->ladder);
    return 0;
}

static int make_algorithms(analyze_work *w, const analyze_place *at)
{
    if (at->ladder->ran_on) /* what other machines' records say is the best was not at hand there */
        return 0;
    bz_regret *regret = BZ_NEW(w->arena, bz_regret, 1);
    at->ladder->regret = regret;
    return bz_regret_make(at->trace, w->request->db, w->system, &w->request->setting, w->arena, regret, w->err);
}

static int make_alignment(analyze_work *w, const analyze_place *at)
{
    bz_alignment *alignment = BZ_NEW(w->arena, bz_alignment, 1);
    bz_align_make(&at->item->bound, at->trace, w->arena, alignment);
    at->ladder->alignment = alignment;
    bz_ladder_hide(&at->item->bound, at->ladder);
    return 0;
}

static int make_timeline(analyze_work *w, const analyze_place *at)
{
    at->ladder->timeline = bz_timeline_make(at->trace, w->arena);
    return 0;
}

/* Records say something of a recording where it is of their system; without a system there are none: NULL. */
static const bz_whatif_records *records_of(const analyze_work *w, const analyze_place *at)
{
    if (!w->request || !w->request->db || !w->system || at->ladder->ran_on)
        return NULL;
    bz_whatif_records *records = BZ_NEW(w->arena, bz_whatif_records, 1);
    *records = (bz_whatif_records){.db = w->request->db,
                                   .system = w->system,
                                   .setting = w->request->setting,
                                   .name = bz_arena_printf(w->arena, "records of %s", w->system->name)};
    return records;
}

static int make_whatif(analyze_work *w, const analyze_place *at)
{
    at->ladder->whatif = bz_whatif_show(at->trace, records_of(w, at), w->arena);
    return 0;
}

static int make_used(analyze_work *w, const analyze_place *at)
{
    if (at->ladder->ran_on) /* which units a machine has is not what another one's bound knows */
        return 0;
    bz_units *units = BZ_NEW(w->arena, bz_units, 1);
    bz_units_look(&at->item->bound, at->trace, at->ladder->alignment, at->item->units, w->arena, units);
    at->ladder->units = units;
    return 0;
}

static int make_waterfall(analyze_work *w, const analyze_place *at)
{
    bz_waterfall *waterfall = BZ_NEW(w->arena, bz_waterfall, 1);
    bz_waterfall_make(&at->item->bound, at->ladder, at->item->units, waterfall);
    at->ladder->waterfall = waterfall;
    if (at->ladder->alignment && bz_ladder_compares(at->ladder)) {
        const bz_whatif_model model = {.bound = &at->item->bound, .alignment = at->ladder->alignment};
        bz_whatif_ladder(at->trace, &model, &at->ladder->with_framework, &at->ladder->without);
    }
    return 0;
}

static int make_advice(analyze_work *w, const analyze_place *at)
{
    bz_advice_make(at->item, at->ladder, at->trace, records_of(w, at), w->arena);
    return 0;
}

bz_sheet *analyze_sheet(const analyze_work *w, const analyze_place *at, const char *id, const char *title,
                        const char *columns)
{
    bz_sheet *sheet = bz_sheet_new(w->arena, id, title, columns);
    if (at->item->n_sheets < BZ_SHEETS)
        at->item->sheet[at->item->n_sheets++] = sheet;
    return sheet;
}

typedef enum { OF_ALL, OF_MODEL, OF_RECORDING } step_of;

/* Each makes a part. `needs`: parts without which it cannot be made, and that it brings about. `uses`: parts that it takes
 * along where they are wanted, too. The order follows from both. */
static const struct {
    unsigned part;
    step_of of;
    unsigned needs, uses;
    analyze_step *make;
} STEPS[] = {
    {BZ_PART_PRICES, OF_ALL, 0, 0, analyze_prices},
    {BZ_PART_BOUND, OF_MODEL, BZ_PART_PRICES, 0, make_bound},
    {BZ_PART_UNITS, OF_MODEL, BZ_PART_BOUND, 0, analyze_units},
    {BZ_PART_LADDER, OF_RECORDING, BZ_PART_BOUND, 0, make_ladder},
    {BZ_PART_ALGORITHMS, OF_RECORDING, BZ_PART_LADDER, 0, make_algorithms},
    {BZ_PART_ALIGNMENT, OF_RECORDING, BZ_PART_LADDER, 0, make_alignment},
    {BZ_PART_TIMELINE, OF_RECORDING, BZ_PART_LADDER, 0, make_timeline},
    {BZ_PART_TIMELINE, OF_RECORDING, BZ_PART_LADDER, 0, make_whatif},
    {BZ_PART_PICKS, OF_MODEL, BZ_PART_ALGORITHMS, 0, make_picks},
    {BZ_PART_FUSION, OF_MODEL, BZ_PART_BOUND, BZ_PART_ALIGNMENT, make_fusion},
    {BZ_PART_USED, OF_RECORDING, BZ_PART_LADDER, BZ_PART_ALIGNMENT | BZ_PART_UNITS, make_used},
    {BZ_PART_WATERFALL, OF_RECORDING, BZ_PART_LADDER,
     BZ_PART_ALGORITHMS | BZ_PART_ALIGNMENT | BZ_PART_FUSION | BZ_PART_UNITS, make_waterfall},
    {BZ_PART_ADVICE, OF_RECORDING, BZ_PART_LADDER | BZ_PART_ALIGNMENT,
     BZ_PART_ALGORITHMS | BZ_PART_PICKS | BZ_PART_FUSION | BZ_PART_UNITS | BZ_PART_USED | BZ_PART_WATERFALL,
     make_advice},
    {BZ_PART_TABLES, OF_MODEL, BZ_PART_BOUND, 0, analyze_context},
    {BZ_PART_TABLES, OF_RECORDING, BZ_PART_LADDER | BZ_PART_ALIGNMENT, BZ_PART_ALGORITHMS, analyze_slower},
};
enum { N_STEPS = sizeof STEPS / sizeof *STEPS };

static int make_part(analyze_work *w, int step)
{
    if (STEPS[step].of == OF_ALL)
        return STEPS[step].make(w, NULL);
    for (int i = 0; i < w->n; i++) {
        analyze_place at = {.item = &w->item[i], .number = i};
        if (STEPS[step].of == OF_MODEL && STEPS[step].make(w, &at))
            return -1;
        for (int k = 0; k < at.item->n_ladders && STEPS[step].of == OF_RECORDING; k++) {
            const bz_recorded *p = &w->profile[w->own ? i : k];
            at.ladder = &at.item->ladder[k];
            at.trace = p->trace;
            at.profile = p->name;
            if (STEPS[step].make(w, &at))
                return -1;
        }
    }
    return 0;
}

int analyze_make(analyze_work *w, unsigned wanted, bz_error *err)
{
    unsigned done = 0; /* bits: steps */
    w->err = err;
    w->parts |= wanted;
    for (unsigned before = 0; before != w->parts;) {
        before = w->parts;
        for (int i = 0; i < N_STEPS; i++)
            w->parts |= w->parts & ~w->made & STEPS[i].part ? STEPS[i].needs : 0;
    }
    for (int i = 0; i < N_STEPS; i++) {
        unsigned waits = (STEPS[i].needs | STEPS[i].uses) & w->parts & ~w->made, open = 0;
        if (done >> i & 1 || waits || !(STEPS[i].part & w->parts & ~w->made))
            continue;
        if (make_part(w, i))
            return -1;
        done |= 1U << i;
        for (int k = 0; k < N_STEPS; k++)
            open |= done >> k & 1 ? 0 : STEPS[k].part; /* several steps may make a part */
        w->made |= STEPS[i].part & ~open;
        i = -1; /* what waited for it may stand before it */
    }
    return 0;
}

/* What could be measured for them, where something is unpriced. */
static void count_lacking(const analyze_work *w, bz_findings *out)
{
    const bz_plan_problem *problem;
    bool incomplete = false;
    int unrecorded = 0, lacking = 0;
    for (int i = 0; i < w->n; i++) {
        const bz_bound *b = &w->item[i].bound;
        incomplete |= b->coverage.unpriced > 0 || b->fused.missing > 0 || b->fused.failed > 0;
        for (int k = 0; k < b->n; k++)
            unrecorded += !b->layer[k].price.alternative && b->layer[k].price.missing > 0;
    }
    for (int i = 0, n = bz_plan_problems(w->plan, &problem); i < n && incomplete; i++)
        lacking += problem[i].n_families > 0 && !bz_prices_problem(w->prices, i)->n_records;
    out->incomplete |= incomplete;
    for (int i = 0; i < w->n; i++) {
        w->item[i].lacking = lacking;
        w->item[i].unoffered = lacking ? 0 : unrecorded;
    }
}

/* The models of a plan on each system. */
static int analyze_plan(analyze_work *w, bz_findings *out, bz_error *err)
{
    const bz_request *r = w->request;
    int n_ladders = w->rebuilt || w->own ? 1 : r->n_profiles;
    for (int s = 0; s < r->n_systems; s++) {
        analyze_work on = *w;
        on.system = r->system[s];
        out->analysis = bz_arena_grow(w->arena, out->analysis, (size_t)out->n, (size_t)out->n + (size_t)w->n,
                                      sizeof *out->analysis);
        on.item = &out->analysis[out->n];
        for (int i = 0; i < w->n; i++) {
            on.item[i].n_ladders = n_ladders;
            on.item[i].ladder = BZ_NEW(w->arena, bz_ladder, n_ladders);
        }
        if (analyze_make(&on, r->parts, err))
            return -1;
        for (int i = 0; i < w->n; i++)
            on.item[i].prices = on.prices;
        out->n += w->n;
        count_lacking(&on, out);
    }
    return 0;
}

bz_plan *bz_plan_of_rebuilt(const bz_plan_options *o, const bz_rebuilt *rebuilt, const char *const *name, int n)
{
    bz_plan *plan = bz_plan_new(o);
    for (int i = 0; i < n; i++)
        if (rebuilt[i].problem)
            bz_plan_add_problems(plan, rebuilt[i].layers, rebuilt[i].problem, name[i]);
        else
            bz_plan_add(plan, rebuilt[i].layers, name[i]);
    return plan;
}

/* The layers that the library calls of a recording did. One whose calls have no parameters has none. */
static int analyze_rebuilt(const bz_request *r, int i, bz_arena *arena, bz_findings *out, bz_error *err)
{
    bz_recording *recording = &out->recording[i];
    const bz_rebuilt *rebuilt = recording->layers;
    if (!rebuilt)
        return 0;
    recording->rebuilt = true;
    bz_plan *plan = bz_plan_of_rebuilt(&r->options, rebuilt, &r->profile[i].name, 1);
    return analyze_plan(&(analyze_work){.request = r,
                                        .arena = arena,
                                        .plan = bz_plan_keep(plan, arena),
                                        .name = &r->profile[i].name,
                                        .layers = (bz_layers *const *)&rebuilt->layers,
                                        .rebuilt = rebuilt,
                                        .profile = &r->profile[i],
                                        .n = 1},
                        out, err);
}

static void tell_recordings(const bz_request *r, bz_arena *arena, bz_findings *out)
{
    out->recording = BZ_NEW(arena, bz_recording, r->n_profiles);
    bz_rank_profile *rank = BZ_NEW(arena, bz_rank_profile, r->n_profiles);
    for (int i = 0; i < r->n_profiles; i++)
        rank[i] = (bz_rank_profile){r->profile[i].name, r->profile[i].trace};
    bool ranks = bz_are_ranks(rank, r->n_profiles);
    for (int i = 0; i < r->n_profiles; i++) {
        const bz_recording_input in = {.trace = r->profile[i].trace,
                                       .profile = r->profile[i].name,
                                       .candidate = r->candidate,
                                       .n_candidates = r->n_candidates,
                                       .timeline = r->parts & BZ_PART_TIMELINE,
                                       .rank = i || !ranks ? &rank[i] : rank, /* the first tells of all */
                                       .n_ranks = i || !ranks ? 1 : r->n_profiles};
        bz_recording_make(&in, arena, &out->recording[out->n_recordings++]);
    }
}

int bz_analyze(const bz_request *r, bz_arena *arena, bz_findings *out, bz_error *err)
{
    if (!r->n && !out->n_recordings)
        tell_recordings(r, arena, out);
    for (int i = 0; i < r->n_profiles && !r->n && r->db; i++)
        if (analyze_rebuilt(r, i, arena, out, err))
            return -1;
    if (!r->n)
        return 0;
    analyze_work w = {.request = r,
                      .arena = arena,
                      .plan = r->plan,
                      .name = r->model,
                      .layers = r->layers,
                      .rebuilt = r->rebuilt,
                      .profile = r->profile,
                      .own = r->rebuilt || (r->n > 1 && r->n_profiles == r->n),
                      .n = r->n};
    if (!w.plan)
        w.plan = bz_plan_keep(bz_plan_of(&r->options, r->layers, r->model, r->n), arena);
    return analyze_plan(&w, out, err);
}
