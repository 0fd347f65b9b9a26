/* An analysis for programs, as JSON, and its layers as CSV: docs/formats.md tells what the members mean. */
#include "base/member.h"
#include "report/parts.h"

#include <math.h>

enum { VERSION = 1 };

/* A layer of the bound, as JSON and CSV have it. */
typedef struct told_layer {
    const char *name, *key, *provenance, *variant, *runner_up_variant, *limit;
    int node;
    double seconds, low, high, times, runner_up, hardware;
    bool noisy, reference, floor;
} told_layer;

static const bz_member LAYER[] = {
    BZ_FIELDS(told_layer, name, node, key, seconds, low, high, times, provenance, noisy, reference, floor, variant,
              runner_up, runner_up_variant, hardware, limit),
};

static told_layer tell_layer(const bz_bound_layer *l)
{
    const bz_layer_price *p = &l->price;
    bool priced = p->alternative != NULL;
    return (told_layer){.name = l->layer->name,
                        .node = l->node,
                        .key = l->layer->key,
                        .seconds = priced ? p->seconds : NAN,
                        .low = priced ? p->low : NAN,
                        .high = priced ? p->high : NAN,
                        .times = l->times,
                        .provenance = priced ? bz_record_provenance_name(p->provenance) : "unpriced",
                        .noisy = p->noisy,
                        .reference = p->reference,
                        .floor = l->floor,
                        .variant = l->variant,
                        .runner_up = l->runner_up,
                        .runner_up_variant = l->runner_up_variant,
                        .hardware = l->hardware,
                        .limit = !isfinite(l->hardware) ? NULL
                                 : l->memory            ? "memory"
                                                        : "arithmetic"};
}

static void put_layer(const bz_bound_layer *l, bz_json *j)
{
    const bz_alternative *a = l->price.alternative;
    told_layer told = tell_layer(l);
    bz_members_json(BZ_MEMBERS(LAYER), &told, j);
    if (!a)
        bz_json_key_str(j, "why", l->price.why);
    bz_json_key_strs(j, "problems", a ? a->text : NULL, a ? a->n : 0);
}

void bz_report_csv(const bz_analysis *a, int n, bz_buf *out)
{
    static const char COLUMNS[] =
        "layer=name|seconds|times|provenance|variant|runner_up|runner_up_variant|hardware|limit|key";
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(&arena, "model|system|batch");
    bz_members_columns(COLUMNS, t);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < a[i].bound.n; k++) {
            const bz_bound *b = &a[i].bound;
            told_layer told = tell_layer(&b->layer[k]);
            BZ_ROW(t, BZ_SHOW(b->model), BZ_SHOW(b->system), BZ_SHOW_INT(b->layers->batch));
            bz_members_cells(BZ_MEMBERS(LAYER), &told, COLUMNS, t);
        }
    bz_table_csv(t, out);
}

static const bz_member PHASE[] = {BZ_FIELDS(bz_bound_phase, phase, layers, sequential, hardware)};
static const bz_member STREAM[] = {BZ_FIELDS(struct bz_streams_tried, k, seconds)};
static const bz_member SPAN[] = {BZ_FIELDS(bz_module, begin, end, width)};
static const bz_member MODULE[] = {
    BZ_MEMBERS_AT(bz_bound_module, module, SPAN),
    BZ_MEMBER(bz_bound_module, within),
    BZ_MEMBER_AS(bz_bound_module, cost.sequential, "sequential"),
    BZ_MEMBER_AS(bz_bound_module, cost.parallel, "parallel"),
};
static const bz_member SCHEDULES[] = {
    BZ_MEMBER_LIST(bz_bound, path.node, path.n, "path"),
    BZ_MEMBER_EACH(bz_bound, module, n_modules, "modules", MODULE),
};

static void put_schedules(const bz_bound *b, bz_json *j)
{
    bz_bound_phase phase[BZ_TRAIN_PHASES];
    int n = bz_bound_phases(b, phase);
    if (n)
        bz_members_rows("phases", BZ_MEMBERS(PHASE), phase, sizeof *phase, n, j);
    bz_members_rows("streams", BZ_MEMBERS(STREAM), b->streams.at, sizeof *b->streams.at, b->streams.n, j);
    bz_members_json(BZ_MEMBERS(SCHEDULES), b, j);
}

static bool is_complete(const void *coverage)
{
    return !((const bz_coverage_sum *)coverage)->unpriced;
}

static bool has_predicted(const void *coverage)
{
    return ((const bz_coverage_sum *)coverage)->predicted > 0;
}

static const bz_member PREDICTED[] = {BZ_FIELDS(bz_coverage_sum, predicted, macs_predicted)};
static const bz_member COVERAGE[] = {
    BZ_MEMBER_HOLDS("complete", is_complete),
    BZ_MEMBER_AS(bz_coverage_sum, layers, "n_layers"),
    BZ_FIELDS(bz_coverage_sum, measured, imported, modelled, unpriced, free, noisy, reference, floor, branches, loops,
              loops_open, macs, macs_measured, macs_imported, macs_modelled, macs_unpriced),
    BZ_MEMBERS_WHERE(has_predicted, PREDICTED),
};

static const bz_member REGRET_ROW[] = {
    BZ_FIELDS(bz_regret_row, problem, padded, calls, seen, variant, used, best_variant, best, chosen_variant, chosen,
              loss),
};

static const bz_member REGRET[] = {
    BZ_FIELDS(bz_regret, calls, known, used, best, chosen, loss, faster),
    BZ_MEMBER_EACH(bz_regret, row, n, "rows", REGRET_ROW),
};

/* The latency is that of the run that was recorded least. */
static bool has_levels(const void *ladder)
{
    return ((const bz_ladder *)ladder)->run != NULL;
}

static const bz_member LEVELS[] = {BZ_MEMBER_AS(bz_ladder, run, "latency_run"), BZ_MEMBER(bz_ladder, recorded)};
static const bz_member LADDER[] = {
    BZ_FIELDS(bz_ladder, profile, iterations, device, busy, latency),
    BZ_MEMBERS_WHERE(has_levels, LEVELS),
    BZ_FIELDS(bz_ladder, idle, excess, overlap, ratio, speedup, speedup_parallel, hidden),
    BZ_MEMBER_AS(bz_ladder, with_framework, "layers_at_bound"),
    BZ_MEMBER_AS(bz_ladder, without, "layers_at_bound_alone"),
    BZ_FIELDS(bz_ladder, defect, foreign, ran_on, open, calls_alone, truncated),
    BZ_MEMBER_AT(bz_ladder, regret, "algorithms", REGRET),
};

static void put_ladder(const bz_bound *b, const bz_ladder *l, bz_json *j)
{
    bz_members_json(BZ_MEMBERS(LADDER), l, j);
    if (l->alignment)
        report_align_json(b, l->alignment, j);
    report_steps_json(b, l, j);
    bz_json_key_strs(j, "warnings", l->warning, l->n_warnings);
}

static void put_group(const bz_bound *b, const bz_bound_group *g, bz_json *j)
{
    BZ_JSON(j, BZ_TELL("pattern", g->pattern), BZ_TELL("seconds", g->price.seconds),
            BZ_TELL("provenance", bz_record_provenance_name(g->price.provenance)));
    BZ_JSON_LIST(j, "layers", str, i, g->n, b->layers->layer[g->layer[i]].name);
    bz_json_key_strs(j, "problems", g->price.alternative->text, g->price.alternative->n);
}

static bool all_priced(const void *fused)
{
    return !((const bz_bound_fused *)fused)->unpriced;
}

static const bz_member FUSED[] = {
    BZ_FIELDS(bz_bound_fused, sequential, parallel, hardware),
    BZ_MEMBER_HOLDS("complete", all_priced),
    BZ_FIELDS(bz_bound_fused, missing, refused, failed),
};

static void put_fused(const bz_bound *b, bz_json *j)
{
    bz_json_key_object(j, "fused");
    bz_members_json(BZ_MEMBERS(FUSED), &b->fused, j);
    BZ_JSON_EACH (j, "groups", g, b->fused.n)
        put_group(b, &b->fused.group[g], j);
    BZ_JSON_EACH_VALUE (j, "spared", g, b->fused.n_places) {
        const bz_bound_place *p = &b->fused.place[g];
        if (!p->spare)
            continue;
        bz_json_object(j);
        BZ_JSON(j, BZ_TELL("layer", b->layers->layer[p->layer[0]].name), BZ_TELL("why", p->pattern));
        bz_json_object_end(j);
    }
    bz_json_object_end(j);
}

static const bz_member GOAL[] = {
    BZ_MEMBER_AS(bz_goal, name, "bound"),
    BZ_FIELDS(bz_goal, enough, sequential, parallel, hardware, far, weights, unpriced),
    BZ_MEMBER_AS(bz_goal, macs, "priced_macs"),
};

/* What programs are held against, and whether enough of it is priced. */
static void put_goal(const bz_bound *b, bz_json *j)
{
    bz_goal goal = bz_bound_goal(b);
    if (!goal.enough)
        goal.sequential = goal.parallel = NAN;
    bz_json_key_object(j, "goal");
    bz_members_json(BZ_MEMBERS(GOAL), &goal, j);
    BZ_JSON(j, BZ_TELL(goal.modelled ? "priced_time" : "priced_bytes", goal.time), BZ_TELL("measures", b->measures));
    bz_json_object_end(j);
}

static const bz_member STEP[] = {BZ_FIELDS(bz_token_step, sequences, tokens, past)};

static void put_step(const bz_bound *b, bz_json *j)
{
    bz_token_step step;
    const bz_goal goal = bz_bound_goal(b);
    if (!bz_layers_step(b->layers, &step))
        return;
    double tokens = (double)step.sequences * (double)step.tokens;
    bz_json_key_object(j, "step");
    bz_members_json(BZ_MEMBERS(STEP), &step, j);
    BZ_JSON(
        j,
        BZ_TELL("tokens_per_second", goal.enough && goal.sequential > 0 ? tokens / (goal.sequential + goal.far) : NAN),
        BZ_TELL("tokens_per_second_hardware", goal.hardware > 0 ? tokens / goal.hardware : NAN));
    bz_json_object_end(j);
}

static const char *cache_of(const void *bound)
{
    return bz_record_cache_name(((const bz_bound *)bound)->setting.cache);
}

static const char *peaks_of(const void *bound)
{
    const bz_peaks *p = ((const bz_bound *)bound)->peaks;
    return p->why ? NULL : p->source;
}

static const bz_member BATCH[] = {BZ_MEMBER(bz_layers, batch)};
static const bz_member ASKED[] = {
    BZ_FIELDS(bz_bound, model, system),
    BZ_MEMBERS_AT(bz_bound, layers, BATCH),
    BZ_MEMBER_AS(bz_bound, setting.threads, "threads"),
    BZ_MEMBER_MADE("cache", cache_of),
    BZ_FIELDS(bz_bound, rebuilt, left_out, benchmarks, problems),
    BZ_MEMBER_AS(bz_bound, known, "problems_known"),
    BZ_MEMBER(bz_bound, hardware),
};
static const bz_member BOUND[] = {
    BZ_MEMBER_MADE("peaks", peaks_of),
    BZ_MEMBER_AS(bz_bound, path.seconds, "parallel"),
    BZ_FIELDS(bz_bound, sequential, launch, above_roofline),
    BZ_MEMBERS_OF(bz_bound, coverage, COVERAGE),
};

static const bz_member MARKS[] = {BZ_FIELDS(bz_bound_marks, layers, again, restless, lasting, varies, slow, above)};

static void put_analysis(const bz_analysis *a, bz_json *j)
{
    const bz_bound *b = &a->bound;
    bz_members_json(BZ_MEMBERS(ASKED), b, j);
    put_step(b, j);
    bz_members_json(BZ_MEMBERS(BOUND), b, j);
    bz_members_object("marks", BZ_MEMBERS(MARKS), &b->marks, j);
    put_goal(b, j);
    put_schedules(b, j);
    if (b->fused.wanted)
        put_fused(b, j);
    report_gains_json(a, j);
    if (a->n_sheets)
        report_sheets_json(a->sheet, a->n_sheets, j);
    BZ_JSON_EACH (j, "profiles", i, a->n_ladders)
        put_ladder(b, &a->ladder[i], j);
    BZ_JSON_EACH (j, "layers", i, b->n)
        put_layer(&b->layer[i], j);
}

void report_document(const bz_findings *r, bool indent, bz_buf *out)
{
    bz_json j = bz_json_to(out, indent);
    j.flat = 5;
    bz_json_object(&j);
    BZ_JSON(&j, BZ_TELL("record", "analysis"), BZ_TELL("v", VERSION));
    if (r->evaluation) {
        bz_json_key(&j, "evaluation");
        bz_report_evaluation_json(r->analysis, r->evaluation, &j);
    }
    if (r->n_recordings)
        report_recordings_json(r, &j);
    BZ_JSON_EACH (&j, "models", i, r->n)
        put_analysis(&r->analysis[i], &j);
    bz_json_object_end(&j);
}

void bz_report_json(const bz_findings *r, bz_buf *out)
{
    report_document(r, true, out);
    bz_buf_putc(out, '\n');
}
