/* An analysis for people: the answer, what it rests on, where the time is. */
#include "base/sort.h"
#include "report/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *provenance(const bz_bound_layer *l)
{
    return l->price.alternative ? bz_record_provenance_name(l->price.provenance) : "unpriced";
}

static const char *reason(const bz_bound_layer *l)
{
    return l->price.why ? l->price.why : "?";
}

static void put_coverage(const bz_bound *b, bz_buf *out)
{
    const bz_coverage_sum *c = &b->coverage;
    const struct {
        const char *what;
        int layers;
        double macs;
    } parts[] = {{"measured", c->measured, c->macs_measured},
                 {"imported", c->imported, c->macs_imported},
                 {"modelled", c->modelled, c->macs_modelled},
                 {"predicted", c->predicted, c->macs_predicted},
                 {"unpriced", c->unpriced, c->macs_unpriced}};
    bz_buf_printf(out, "  coverage: %d of %d layer%s: ", c->layers - c->unpriced, c->layers, BZ_PLURAL(c->layers));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].layers)
            continue;
        bz_buf_printf(out, "%d %s", parts[i].layers, parts[i].what);
        if (parts[i].macs > 0)
            bz_buf_printf(out, " (%.1f %% of MACs)", 100 * parts[i].macs / c->macs);
        bz_buf_puts(out, ", ");
    }
    bz_buf_printf(out, "%d free\n", c->free);
    if (!b->benchmarks)
        return;
    bz_buf_printf(out, "  measured now: %d of %d problems, with %d new records%s", b->problems - b->known, b->problems,
                  b->benchmarks, b->known ? "; the database had the others\n" : "\n");
}

void report_guesses(int loops, int branches, bz_buf *out)
{
    if (branches)
        bz_buf_printf(out, "  %d If%s as its cheaper branch\n", branches, branches == 1 ? " counts" : "s count, each");
    if (loops)
        bz_buf_printf(out, "  %d loop%s once, or as often as --trips says: the model does not say how often %s\n",
                      loops, loops == 1 ? " counts" : "s count", loops == 1 ? "it runs" : "they run");
}

/* What a lower bound leaves out of graphs that run inside layers. */
static void put_bodies(const bz_coverage_sum *c, bz_buf *out)
{
    if (c->branches)
        bz_buf_printf(out, "  %d If%s as its cheaper branch\n", c->branches, c->branches == 1 ? " counts" : "s count");
    if (c->loops)
        bz_buf_printf(out, "  %d loop%s as often as it runs", c->loops, c->loops == 1 ? " counts" : "s count, each");
    if (c->loops_open)
        bz_buf_printf(out,
                      "; for %d of them the model does not say how often: it counts once, or as often as --trips says",
                      c->loops_open);
    bz_buf_puts(out, c->loops ? "\n" : "");
}

void report_group(report_groups *g, const char *text, const void *thing)
{
    int i = 0;
    while (i < g->n && strcmp(g->group[i].text, text) != 0)
        i++;
    if (i == g->most) {
        g->left++;
        return;
    }
    if (i == g->n) {
        g->group[i].text = text;
        g->group[g->n++].first = thing;
    }
    g->group[i].count++;
}

/* Grouped by kind and reason, in the order of the model. */
static void put_unpriced(const bz_bound *b, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    report_groups g = {.most = 8};
    for (int i = 0; i < b->n; i++) {
        const bz_bound_layer *l = &b->layer[i];
        if (!l->price.alternative)
            report_group(&g, bz_arena_printf(&arena, "%s %s", l->layer->kind, reason(l)), l);
    }
    for (int i = 0; i < g.n; i++) {
        const bz_bound_layer *first = g.group[i].first;
        bz_buf_say(out, "  unpriced: %d %s (%s%s): %s\n", g.group[i].count, first->layer->kind, first->layer->name,
                   g.group[i].count > 1 ? ", …" : "", reason(first));
    }
    if (g.left)
        bz_buf_printf(out, "  and %d more: --json names them\n", g.left);
}

/* Nothing is faster than the hardware: where a record is, it or the peaks are wrong. */
static void put_above_roofline(const bz_bound *b, bz_buf *out)
{
    int shown = 0;
    if (!b->above_roofline)
        return;
    bz_buf_printf(out, "  the hardware bound does not hold: %d layer%s faster than the peaks allow%s (",
                  b->above_roofline, BZ_IS_OR_ARE(b->above_roofline),
                  b->peaks->busy ? ", which were measured on a busy machine" : "");
    for (int i = 0; i < b->n && shown < 3; i++)
        if (bz_bound_contradicts(&b->layer[i]))
            bz_buf_say(out, "%s%s", shown++ ? ", " : "", b->layer[i].layer->name);
    bz_buf_printf(out, "%s): 'benanza system --measure' on a quiet machine measures the peaks again\n",
                  b->above_roofline > shown ? ", …" : "");
}

/* Nothing but an implementation by the definition runs these: the bound of a good one would be lower. */
static void put_reference(const bz_bound *b, bz_buf *out)
{
    int shown = 0;
    bz_buf_printf(out, "  %d layer%s priced by reference code, because nothing else runs them: ", b->coverage.reference,
                  BZ_IS_OR_ARE(b->coverage.reference));
    for (int i = 0; i < b->n && shown < 5; i++)
        if (b->layer[i].price.reference)
            bz_buf_say(out, "%s%s", shown++ ? ", " : "", b->layer[i].layer->name);
    bz_buf_puts(out, b->coverage.reference > shown ? ", …\n" : "\n");
}

/* Once it is known that measuring again does not help, what the marks mean stands there instead of the command. */
static void put_marks(const bz_bound *b, bz_buf *out)
{
    const bz_bound_marks *m = &b->marks;
    bz_buf_printf(out, "  %d layer%s priced by records marked noisy or busy", b->coverage.noisy,
                  BZ_IS_OR_ARE(b->coverage.noisy));
    if (!m->lasting) {
        bz_buf_puts(out, ": 'benanza bound --remeasure noisy' measures them again\n");
        return;
    }
    if (2 * m->again > m->layers)
        bz_buf_printf(out, "; %d of them were measured again, and are marked again", m->again);
    if (m->varies)
        bz_buf_printf(out,
                      ". This machine's clock varies, or others use it: the same work took up to %s longer beside them "
                      "than at its best",
                      BZ_SAY_SHARE(m->slow));
    else
        bz_buf_puts(out, ". Their own times vary");
    bz_buf_printf(out,
                  ", which measuring once more does not change. The bound may be up to %s too high; 'benanza doctor' "
                  "looks for the cause\n",
                  BZ_SAY_SHARE(m->above));
}

static void put_caveats(const bz_bound *b, bz_buf *out)
{
    const bz_coverage_sum *c = &b->coverage;
    if (c->noisy)
        put_marks(b, out);
    if (c->reference)
        put_reference(b, out);
    if (c->floor)
        bz_buf_printf(
            out,
            "  %d layer%s priced by the time between events, not by that of their kernels: for a small call that is "
            "some µs too long, so the bound may be too high\n",
            c->floor, BZ_IS_OR_ARE(c->floor));
    if (b->peaks->why)
        bz_buf_printf(out, "  no hardware bound: %s\n", b->peaks->why);
    put_above_roofline(b, out);
}

static void put_setting(const bz_bound *b, bz_buf *out)
{
    bz_buf_say(out, "  %s on %s", b->model, b->system);
    if (b->layers->batch)
        bz_buf_printf(out, ", batch %lld", (long long)b->layers->batch);
    bz_buf_printf(out, ", %d thread%s, %s cache\n", b->setting.threads, BZ_PLURAL(b->setting.threads),
                  bz_record_cache_name(b->setting.cache));
    if (b->rebuilt)
        bz_buf_printf(out, "  no model was named: the %d %s of the profile stand for its layers", b->rebuilt,
                      b->rebuilt_of);
    if (b->rebuilt && *b->left_out)
        bz_buf_say(out, "; %s left out, because they do no layer: %s", b->rebuilt_of, b->left_out);
    bz_buf_puts(out, b->rebuilt ? "\n" : "");
}

static void rung(bz_table *t, const bz_goal *goal, const char *name, double seconds, const char *how)
{
    BZ_ROW(t, BZ_SHOW(name), BZ_SHOW_TIME(seconds),
           BZ_SHOW(goal->sequential > 0 ? BZ_SAY_SHARE(seconds / goal->sequential) : ""), BZ_SHOW(how));
}

/* Of an iteration of training. */
static void put_phases(const bz_bound *b, bz_arena *arena, bz_buf *out)
{
    bz_bound_phase phase[BZ_TRAIN_PHASES];
    int n = bz_bound_phases(b, phase);
    bz_table *t = bz_table_of(arena, "phase|>layers|>sequential|>share|>hardware");
    for (int i = 0; i < n; i++) {
        const bz_bound_phase *p = &phase[i];
        BZ_ROW(t, BZ_SHOW(p->phase), BZ_SHOW_INT(p->layers), BZ_SHOW_TIME(p->sequential),
               BZ_SHOW_SHARE(p->sequential / b->sequential), BZ_SHOW_TIME(p->hardware));
    }
    if (n) {
        bz_table_print(t, out);
        bz_buf_putc(out, '\n');
    }
}

static void put_bounds(const bz_bound *b, const bz_goal *goal, bz_arena *arena, bz_buf *out)
{
    const bz_bound_fused *f = &b->fused;
    if (!goal->enough)
        return;
    bz_table *t = bz_table_of(arena, "bound|>time");
    bz_table_column(t, f->wanted ? "of fused" : "of sequential", BZ_RIGHT);
    bz_table_column(t, "how", BZ_LEFT);
    if (isfinite(goal->hardware))
        rung(t, goal, "hardware", goal->hardware,
             bz_arena_printf(arena, "modelled: every %s at the peaks %s", f->wanted ? "group and layer" : "layer",
                             strcmp(b->peaks->source, "measured") ? "of the data sheet" : "measured on the system"));
    if (f->wanted) {
        const char *groups = bz_arena_printf(arena, "%d fused calls replace %d layers", f->n, f->covered);
        if (f->spares)
            groups = bz_arena_printf(arena, "%s, %d need not run", groups, f->spares);
        rung(t, goal, "fused, parallel", f->parallel, groups);
        rung(t, goal, "fused", f->sequential,
             f->missing ? bz_arena_printf(arena, "%s; %d more have no record", groups, f->missing) : groups);
    }
    rung(t, goal, "parallel", b->path.seconds,
         bz_arena_printf(arena, "independent layers at the same time: the longest path has %d of %d layers", b->path.n,
                         b->dag->n));
    for (int i = b->streams.n - 1; i > 0; i--)
        rung(t, goal, bz_arena_printf(arena, "%d streams", b->streams.at[i].k), b->streams.at[i].seconds,
             "the layers on so many streams, by list scheduling");
    rung(t, goal, "sequential", b->sequential, "one layer after the other, each in its fastest way");
    if (goal->far > 0)
        rung(t, goal, "weights from far", goal->sequential + goal->far,
             bz_arena_printf(
                 arena,
                 "modelled: no layer takes less than its weights need to come from where all %s of them lie between "
                 "two iterations; --cache cold measures that",
                 BZ_SAY_BYTES(goal->weights)));
    if (b->launch > 0)
        rung(t, goal, "launch overhead", b->launch, "time to start the calls; the bounds above do not contain it");
    bz_buf_putc(out, '\n');
    bz_table_print(t, out);
}

static void put_warnings(const bz_analysis *a, bz_buf *out)
{
    for (int i = 0; i < a->n_ladders; i++) {
        const bz_ladder *l = &a->ladder[i];
        for (int w = l->foreign ? -2 : -1; w < l->n_warnings; w++) {
            if (w == -1 && !l->defect)
                continue;
            bz_style_begin(out, BZ_STYLE_WARNING);
            bz_buf_puts(out, "  warning: ");
            bz_style_end(out, BZ_STYLE_WARNING);
            bz_buf_say(out, "%s: %s\n", l->profile, w == -2 ? l->foreign : w == -1 ? l->defect : l->warning[w]);
        }
    }
}

/* Where a figure is not of the run that the others are of. */
static void put_runs(const bz_analysis *a, bz_buf *out)
{
    for (int i = 0; i < a->n_ladders; i++) {
        const bz_ladder *l = &a->ladder[i];
        if (!l->run)
            continue;
        bz_buf_say(out,
                   "  %s: the latency of %s is that of the run '%s'; all other figures are of the recorded run, whose "
                   "iteration took %s\n",
                   l->profile, BZ_SAY_TIME(l->latency), l->run, BZ_SAY_TIME(l->recorded));
    }
}

/* The last steps of the ladder are simulations. */
static void put_ideal(const bz_analysis *a, bz_buf *out)
{
    for (int i = 0; i < a->n_ladders; i++) {
        const bz_ladder *l = &a->ladder[i];
        if (!isfinite(l->with_framework) || !isfinite(l->speedup))
            continue;
        bz_buf_say(out, "  %s: with every layer at its bound, simulated: %s; without the framework's own time %s\n",
                   l->profile, BZ_SAY_TIME(l->with_framework), BZ_SAY_TIME(l->without));
    }
}

/* What a lower end makes: at most so fast, at least such a share. "-" where there is no ratio. */
static const char *bounded(const char *side, bool open, const char *value, bool known, bz_arena *arena)
{
    return known ? bz_arena_printf(arena, "%s%s%s", open ? side : "", open ? " " : "", value) : "-";
}

static void put_ladders(const bz_analysis *a, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_new(arena);
    bz_table_columns(t, a->bound.fused.wanted ? "profile|>fused bound" : "profile|>bound");
    bz_table_columns(t, ">device busy|>measured|>bound/measured|>speed-up|>parallel");
    for (int i = 0; i < a->n_ladders; i++) {
        const bz_ladder *l = &a->ladder[i];
        const bz_goal *goal = &l->goal;
        bool known = isfinite(l->speedup), open = goal->unpriced > 0 || l->hidden > 0;
        BZ_ROW(t, BZ_SHOW(l->profile), BZ_SHOW(bounded("≥", open, BZ_SAY_TIME(goal->sequential), goal->enough, arena)),
               BZ_SHOW_TIME(l->busy), BZ_SHOW_TIME(l->latency),
               BZ_SHOW(bounded("≥", open, BZ_SAY_SHARE(l->ratio), known, arena)),
               BZ_SHOW(bounded("≤", open, bz_arena_printf(arena, "%.2f ×", l->speedup), known, arena)),
               BZ_SHOW(bounded("≤", open, bz_arena_printf(arena, "%.2f ×", l->speedup_parallel), known, arena)));
    }
    bz_table_below(t, out);
    put_runs(a, out);
    put_ideal(a, out);
}

static void regret_rows(const bz_regret *r, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_of(arena, "used|>calls|>seen|>by record|>best|>loss|best variant|problem");
    for (int i = 0; i < r->n && i < 12; i++) {
        const bz_regret_row *row = &r->row[i];
        BZ_ROW(t, BZ_SHOW(*row->variant ? bz_variant_name(row->variant) : "?"), BZ_SHOW_DIGITS(6, row->calls),
               BZ_SHOW_TIME(row->seen), BZ_SHOW_TIME(row->used), BZ_SHOW_TIME(row->best),
               BZ_SHOW_TIME(row->loss > 0 ? row->loss : NAN),
               BZ_SHOW(row->best_variant ? row->best_variant : "no record"),
               BZ_SHOW(bz_arena_printf(arena, "%s%s", row->problem, row->padded ? " (padded by the program)" : "")));
    }
    bz_table_print(t, out);
    if (r->n > 12)
        bz_buf_printf(out, "and %d more: --json has them\n", r->n - 12);
}

static void put_regret(const bz_ladder *l, bz_arena *arena, bz_buf *out)
{
    const bz_regret *r = l->regret;
    bool picks = false, best_known = false;
    if (!r || !r->n)
        return;
    for (int i = 0; i < r->n; i++)
        picks |= r->row[i].chosen_variant != NULL, best_known |= isfinite(r->row[i].best);
    bz_buf_say(out, "\nalgorithms of %s", l->profile);
    if (r->known > 0)
        bz_buf_printf(out, ": the best variants would save %s of %s per iteration; %g of %g calls are known\n",
                      BZ_SAY_TIME(r->loss), BZ_SAY_TIME(r->used), r->known, r->calls);
    else if (best_known)
        bz_buf_printf(out,
                      ": what the %g calls of an iteration used has no record, or records marked noisy or busy alone, "
                      "which price nothing that was used\n",
                      r->calls);
    else
        bz_buf_printf(out, ": the database has no record of any of the %g calls of an iteration\n", r->calls);
    if (r->known > 0 && picks)
        bz_buf_printf(out, "  used %s, the library's own picks %s, the best %s\n", BZ_SAY_TIME(r->used),
                      BZ_SAY_TIME(r->chosen), BZ_SAY_TIME(r->best));
    if (r->faster > 0)
        bz_buf_printf(out,
                      "  some calls were faster than their best record, by %s in all: those records are too slow\n",
                      BZ_SAY_TIME(r->faster));
    regret_rows(r, arena, out);
}

/* Layers with one key and one price: what stands in a network ten times is looked at once. */
typedef struct alike {
    const bz_bound_layer *first;
    int layers;
    double seconds; /* of all of them */
} alike;

static double seconds_of(const bz_bound_layer *l)
{
    return l->price.alternative ? l->price.seconds * l->times : 0;
}

BZ_SORTS(by_key, alike,
         BZ_THEN(strcmp(p->first->layer->key, q->first->layer->key),
                 BZ_THEN(BZ_ORDER(q->seconds, p->seconds), BZ_ORDER(p->first, q->first))));
BZ_SORTS(slower, alike, BZ_THEN(BZ_ORDER(q->seconds, p->seconds), BZ_ORDER(p->first, q->first)));

/* The layers that are alike, those first that take most time together. */
static int join_alike(const bz_bound *b, alike *group)
{
    int n = 0;
    for (int i = 0; i < b->n; i++)
        group[i] = (alike){&b->layer[i], 1, seconds_of(&b->layer[i])};
    qsort(group, (size_t)b->n, sizeof *group, by_key);
    for (int i = 0; i < b->n; i++) {
        const alike *last = n ? &group[n - 1] : NULL;
        if (last && !strcmp(last->first->layer->key, group[i].first->layer->key) &&
            seconds_of(last->first) == group[i].seconds) {
            group[n - 1].layers++;
            group[n - 1].seconds += group[i].seconds;
        } else {
            group[n++] = group[i];
        }
    }
    qsort(group, (size_t)n, sizeof *group, slower);
    return n;
}

static void slow_row(bz_table *t, const bz_bound *b, const alike *group, bool enough, bz_arena *arena)
{
    const bz_bound_layer *l = group->first;
    double many = group->seconds / l->price.seconds;
    const char *name =
        group->layers > 1 ? bz_arena_printf(arena, "%s ×%d", l->layer->name, group->layers) : l->layer->name;
    BZ_ROW(t, BZ_SHOW(name), BZ_SHOW_TIME(group->seconds), BZ_SHOW_SHARE(enough ? group->seconds / b->sequential : NAN),
           BZ_SHOW_SHARE(l->hardware / l->price.seconds),
           BZ_SHOW(bz_arena_printf(arena, "%s%s", provenance(l), l->price.noisy ? ", noisy" : "")), BZ_SHOW(l->variant),
           BZ_SHOW(isfinite(l->runner_up)
                       ? bz_arena_printf(arena, "+%s", BZ_SAY_TIME((l->runner_up - l->price.seconds) * many))
                       : "-"),
           BZ_SHOW(l->layer->key));
}

static void put_slowest(const bz_bound *b, bz_arena *arena, bz_buf *out)
{
    alike *group = BZ_NEW(arena, alike, b->n);
    bz_table *t = bz_table_of(arena, "slowest|>time|>share|>roofline|how|variant|>next best|layer");
    int n = b->n ? join_alike(b, group) : 0;
    for (int i = 0; i < n && i < 6 && group[i].first->price.alternative; i++)
        slow_row(t, b, &group[i], bz_bound_written(b).enough, arena);
    bz_table_below(t, out);
}

BZ_SORTS(more_gain, bz_bound_module *const,
         BZ_THEN(BZ_ORDER((*q)->cost.sequential - (*q)->cost.parallel, (*p)->cost.sequential - (*p)->cost.parallel),
                 BZ_ORDER(*p, *q)));

/* The outermost modules: what lies within them gains nothing on its own. */
static void put_modules(const bz_bound *b, bz_arena *arena, bz_buf *out)
{
    const bz_bound_module **order = BZ_NEW(arena, const bz_bound_module *, b->n_modules);
    bz_table *t = bz_table_of(arena, "parallel layers from|to|>layers|>at once|>sequential|>parallel|>gain");
    int n = 0;
    for (int i = 0; i < b->n_modules; i++)
        if (b->module[i].within < 0)
            order[n++] = &b->module[i];
    BZ_QSORT(order, n, more_gain);
    for (int i = 0; i < n && i < 6; i++) {
        const bz_bound_module *m = order[i];
        BZ_ROW(t, BZ_SHOW(b->layers->layer[m->module->begin].name), BZ_SHOW(b->layers->layer[m->module->end - 1].name),
               BZ_SHOW_INT(m->cost.nodes), BZ_SHOW_INT(m->module->width), BZ_SHOW_TIME(m->cost.sequential),
               BZ_SHOW_TIME(m->cost.parallel), BZ_SHOW_TIME(m->cost.sequential - m->cost.parallel));
    }
    bz_table_below(t, out);
    if (n > 6)
        bz_buf_printf(out, "and %d more modules\n", n - 6);
}

void bz_report_text(const bz_analysis *a, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    const bz_bound *b = &a->bound;
    const bz_goal goal = bz_bound_goal(b);
    report_answer_text(a, out);
    put_setting(b, out);
    put_coverage(b, out);
    put_bodies(&b->coverage, out);
    put_caveats(b, out);
    put_unpriced(b, out);
    put_warnings(a, out);
    report_advice_text(a, out);
    put_ladders(a, &arena, out);
    report_steps_text(a, out);
    for (int i = 0; i < a->n_ladders; i++)
        report_align_text(b, &a->ladder[i], out);
    for (int i = 0; i < a->n_ladders; i++)
        put_regret(&a->ladder[i], &arena, out);
    put_bounds(b, &goal, &arena, out);
    put_slowest(b, &arena, out);
    if (goal.enough) {
        put_phases(b, &arena, out);
        put_modules(b, &arena, out);
    }
    report_gains_text(a, out);
    report_sheets_text(a->sheet, a->n_sheets, out);
}

/* By the libraries, or at most by the peaks where too little is priced. */
static const char *token_rate(const bz_bound *b, const bz_goal *goal, bz_arena *arena)
{
    bz_token_step step;
    double seconds = goal->enough ? goal->sequential : goal->hardware;
    if (!bz_layers_step(b->layers, &step) || !(seconds > 0) || !isfinite(seconds))
        return "-";
    const char *rate = BZ_SAY_COUNT((double)step.sequences * (double)step.tokens / seconds);
    return bz_arena_printf(arena, "%s%s", goal->enough && !goal->unpriced ? "" : "≤ ", rate);
}

void bz_report_sweep(const bz_analysis *a, int n, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(&arena, "model|system|>batch|>hardware");
    bool fused = n && a[0].bound.fused.wanted;
    if (fused)
        bz_table_column(t, "fused", BZ_RIGHT);
    bz_table_columns(t, ">parallel|>sequential|>per item|>priced");
    bool steps = false;
    for (int i = 0; i < n; i++)
        steps |= bz_layers_step(a[i].bound.layers, &(bz_token_step){0});
    if (steps)
        bz_table_column(t, "tokens/s", BZ_RIGHT);
    for (int i = 0; i < n; i++) {
        const bz_bound *b = &a[i].bound;
        const bz_goal goal = bz_bound_goal(b), written = bz_bound_written(b);
        double batch = b->layers->batch > 0 ? (double)b->layers->batch : 1;
        BZ_ROW(t, BZ_SHOW(b->model), BZ_SHOW(b->system), BZ_SHOW_INT(b->layers->batch), BZ_SHOW_TIME(goal.hardware));
        if (fused)
            bz_table_cell(t, bounded("≥", goal.unpriced > 0, BZ_SAY_TIME(goal.sequential), goal.enough, &arena), NULL);
        BZ_ROW(t, BZ_SHOW(bounded("≥", written.unpriced > 0, BZ_SAY_TIME(b->path.seconds), written.enough, &arena)),
               BZ_SHOW(bounded("≥", written.unpriced > 0, BZ_SAY_TIME(b->sequential), written.enough, &arena)),
               BZ_SHOW(bounded("≥", goal.unpriced > 0, BZ_SAY_TIME(goal.sequential / batch), goal.enough, &arena)),
               BZ_SHOW(bz_arena_printf(&arena, "%d of %d", goal.layers - goal.unpriced, goal.layers)));
        if (steps)
            bz_table_cell(t, token_rate(b, &goal, &arena), NULL);
    }
    bz_table_print(t, out);
}
