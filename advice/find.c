/* What the lines "gain: …" of advice.txt find in an analysis: time that an advice would save, and the evidence for it. */
#include "advice/constants.h"
#include "advice/rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *share(const advice_making *m, double seconds)
{
    bool known = isfinite(m->l->latency) && m->l->latency > 0;
    return bz_arena_printf(m->arena, known ? "%s (%s of the latency)" : "%s", BZ_SAY_TIME(seconds),
                           BZ_SAY_SHARE(seconds / m->l->latency));
}

void advice_mark(advice_making *m, bz_rung_kind step)
{
    for (int i = 0; i < m->n_items; i++)
        m->item[i].found |= !m->item[i].cause && m->item[i].step == step;
}

/* And the step that the cause is a part of. */
static void mark_cause(advice_making *m, const bz_cause *cause)
{
    for (int i = 0; i < m->n_items; i++)
        if (m->item[i].cause == cause) {
            m->item[i].found = true;
            advice_mark(m, m->item[i].step);
        }
}

static advice_finding find_causes(advice_making *m)
{
    advice_finding f = {0};
    const char *ids = m->words;
    char id[64];
    const bz_alignment *a = m->l->alignment;
    while (bz_word_next(&ids, id, sizeof id))
        for (int i = 0; a && a->timeline && i < a->n_causes; i++) {
            const bz_cause *c = &a->cause[i];
            if (strcmp(c->id, id) != 0 || !(c->seconds > 0) || (c->kind == BZ_CAUSE_OPERATORS_EXTRA && !m->b->n))
                continue; /* without a model no operator belongs to a layer */
            bz_buf_printf(&m->evidence, "%s%g × %s per iteration, %s", f.holds ? "; " : "", c->count, c->name,
                          share(m, c->seconds));
            if (c->example && *c->example)
                bz_buf_printf(&m->evidence, ", for example %s", c->example);
            if (c->where)
                bz_buf_printf(&m->evidence, ", most of it asked for by %s", c->where);
            f.holds = true;
            f.gain += c->seconds;
            mark_cause(m, c);
        }
    f.half = f.gain * m->iterations;
    return f;
}

/* Time of kernels or calls by their names: of the steady iterations. */
static advice_finding find_names(advice_making *m, bz_event_kind kind)
{
    const bz_events *e = &m->trace->event[kind];
    uint32_t n = bz_strings(m->trace), most = 0;
    char *fits = BZ_NEW(m->arena, char, n); /* 1: no, 2: yes */
    int64_t time = 0, count = 0, longest = 0;
    for (size_t i = 0; i < e->n; i++) {
        uint32_t name = e->name[i];
        if (!fits[name])
            fits[name] = (char)(1 + bz_name_matches_any(m->words, bz_string(m->trace, name)));
        if (fits[name] == 1 || !bz_event_is_steady(m->trace, kind, i))
            continue;
        count++;
        time += e->end[i] - e->start[i];
        if (e->end[i] - e->start[i] > longest) {
            longest = e->end[i] - e->start[i];
            most = kind == BZ_EVENT_KERNEL && e->short_name[i] ? e->short_name[i] : name;
        }
    }
    advice_finding f = {.holds = count > 0, .gain = bz_tick(1e-9 * (double)time / (double)m->steady)};
    f.half = f.gain * m->iterations;
    if (count)
        bz_buf_printf(&m->evidence, "%g × %s and the like per iteration, %s", (double)count / (double)m->steady,
                      bz_string(m->trace, most), share(m, f.gain));
    return f;
}

static advice_finding find_algorithms(advice_making *m)
{
    const bz_regret *r = m->l->regret;
    double calls = 0;
    if (!r || !(r->loss > 0) || !r->n)
        return (advice_finding){0};
    for (int i = 0; i < r->n; i++)
        calls += r->row[i].loss > 0 ? r->row[i].calls : 0;
    const bz_regret_row *row = &r->row[0];
    bz_buf_printf(&m->evidence, "%g of %g calls did not use the best variant: %g × %s (%s), where %s takes %s, for %s",
                  calls, r->calls, row->calls, bz_variant_name(row->variant), BZ_SAY_TIME(row->used), row->best_variant,
                  BZ_SAY_TIME(row->best), row->problem);
    return (advice_finding){true, r->loss, m->records * (r->used + r->best), .priced = true};
}

/* Layers that were done without the library, between its calls, and those that another call did than the one that
 * the library has for them: what they took above their records. */
static advice_finding find_elsewhere(advice_making *m)
{
    const bz_alignment *a = m->l->alignment;
    double changed = 0, took = 0, missing = a ? bz_alignment_missing(a) : 0, outside = 0;
    int calls = 0, layers = 0, unpriced = 0;
    const char *first = NULL;
    for (int i = 0; a && a->timeline && i < a->n; i++) {
        const bz_aligned *r = &a->row[i];
        bool priced = isfinite(r->bound), other = r->kind == BZ_ALIGNED_CHANGED && isfinite(r->seconds) && priced &&
                                                  r->n_changes && !strcmp(r->change[0].parameter, "call");
        changed += other ? r->seconds - r->bound : 0;
        took += other ? r->seconds : 0;
        calls += other;
        first = other && !first ? r->call : first;
        layers += r->kind == BZ_ALIGNED_MISSING;
        unpriced += r->kind == BZ_ALIGNED_MISSING && !priced;
    }
    for (int i = 0; a && a->timeline && i < a->n_causes; i++)
        if (a->cause[i].kind == BZ_CAUSE_LAYERS_OUTSIDE) {
            outside += a->cause[i].seconds;
            mark_cause(m, &a->cause[i]);
        }
    if (calls) {
        advice_mark(m, BZ_RUNG_SLOWER);
        bz_buf_printf(&m->evidence, "%d layer%s done by %s and the like in %s, where the library takes %s", calls,
                      BZ_IS_OR_ARE(calls), first, BZ_SAY_TIME(took), BZ_SAY_TIME(took - changed));
    }
    if (outside > missing)
        bz_buf_printf(&m->evidence, "%s%d layer%s done without the library in %s", calls ? "; " : "", layers,
                      BZ_IS_OR_ARE(layers), BZ_SAY_TIME(outside));
    if (outside > missing && unpriced) { /* what is left of it nobody knows */
        bz_buf_printf(&m->evidence, ", and %d of them without a record of what it takes", unpriced);
        return (advice_finding){true, NAN, .half = NAN};
    }
    if (outside > missing)
        bz_buf_printf(&m->evidence, ", where it takes %s", BZ_SAY_TIME(missing));
    double gain = changed + (outside > missing ? outside - missing : 0);
    return (advice_finding){gain > 0, gain,
                            .half = m->iterations * (took + outside) + m->records * (took - changed + missing)};
}

/* Layers that the program has in one call with others: by node of the main graph. */
static bool *fused_nodes(const advice_making *m)
{
    const bz_alignment *a = m->l->alignment;
    bool *fused = BZ_NEW(m->arena, bool, m->b->dag->n);
    for (int i = 0; a && i < a->n; i++)
        for (int k = 0; k < a->row[i].n_layers && a->row[i].kind == BZ_ALIGNED_FUSED && !a->row[i].doubtful; k++)
            fused[m->b->layer[a->row[i].layer[k]].node] = true;
    return fused;
}

/* Places of a pattern of which the program fuses all or a part. */
static int fused_places(const advice_making *m, const char *pattern, const bool *fused)
{
    int n = 0;
    for (int g = 0; g < m->b->fused.n_places; g++) {
        const bz_bound_place *p = &m->b->fused.place[g];
        bool any = false;
        for (int k = 0; k < p->n && !strcmp(p->pattern, pattern); k++)
            any |= fused[p->layer[k]];
        n += any;
    }
    return n;
}

/* What the records say of a pattern is what a program gains that fuses none of its places; of others nobody knows what is left
 * to gain. */
static advice_finding find_fusion(advice_making *m)
{
    const bz_fusion *f = m->a->fusion;
    double sums = 0, gain = 0;
    int shown = 0;
    if (!f || !(f->sequential > 0))
        return (advice_finding){0};
    bool *fused = fused_nodes(m);
    for (int i = 0; i < f->n; i++) {
        const bz_fusion_row *row = &f->row[i];
        if (!(row->gain > 0) || row->spare) /* what need not run no option of a framework fuses */
            continue;
        int done = fused_places(m, row->pattern, fused);
        gain += done ? 0 : row->gain;
        sums += done ? 0 : row->written + row->together;
        if (shown++ < 3)
            bz_buf_printf(&m->evidence, "%s%s in %d place%s, %s", shown > 1 ? "; " : "", row->pattern, row->covered,
                          BZ_PLURAL(row->covered), BZ_SAY_TIME(row->gain));
        if (shown <= 3 && done)
            bz_buf_printf(&m->evidence, " (not counted: the program fuses %d of them, or parts of them)", done);
    }
    if (shown > 3)
        bz_buf_printf(&m->evidence, "; and %d more patterns", shown - 3);
    if (gain > 0)
        return (advice_finding){true, gain, m->records * sums, .priced = true, .assumed = true};
    return (advice_finding){shown > 0, NAN, NAN, .assumed = true};
}

/* The layer that gains most. */
static const bz_unit_row *best_layer(const advice_making *m, const bz_unit_way *w, double *gain)
{
    const bz_unit_row *best = NULL;
    *gain = 0;
    for (int i = 0; m->a->units && i < m->a->units->n; i++) {
        const bz_unit_row *row = &m->a->units->row[i];
        double s = row->layer >= 0 ? row->seconds - w->seconds[m->b->layer[row->layer].node] : NAN;
        if (s > *gain) {
            *gain = s;
            best = row;
        }
    }
    return best;
}

static advice_finding find_way(advice_making *m)
{
    const bz_units *u = m->a->units;
    double gain;
    for (int i = 0; u && i < u->n_ways; i++) {
        const bz_unit_way *w = &u->way[i];
        if (strcmp(w->name, m->words) != 0 || !(w->gain > 0))
            continue;
        double bound = bz_bound_goal(m->b).sequential;
        bz_buf_printf(&m->evidence, "%d layers gain, the model's bound falls from %s to %s", w->layers,
                      BZ_SAY_TIME(bound), BZ_SAY_TIME(bound - w->gain));
        const bz_unit_row *row = best_layer(m, w, &gain);
        if (row)
            bz_buf_printf(&m->evidence, ", most at %s: %s", m->b->layer[row->layer].layer->name, BZ_SAY_TIME(gain));
        if (w->converted)
            bz_buf_printf(&m->evidence, "; %d conversion%s (%d modelled) take %s", w->converted,
                          BZ_PLURAL(w->converted), w->modelled, BZ_SAY_TIME(w->conversions));
        return (advice_finding){true, w->gain, m->records * (m->b->sequential + w->sequential), .priced = true,
                                .assumed = true};
    }
    return (advice_finding){0};
}

static advice_finding find_parallel(advice_making *m)
{
    bz_goal goal = bz_bound_goal(m->b);
    double gain = goal.enough ? goal.sequential - goal.parallel : 0;
    int outer = 0;
    if (!(gain > 0))
        return (advice_finding){0};
    for (int i = 0; i < m->b->n_modules; i++)
        outer += m->b->module[i].within < 0;
    bz_buf_printf(&m->evidence, "%d parallel module%s; the longest path has %d of %d layers", outer, BZ_PLURAL(outer),
                  m->b->path.n, m->b->dag->n);
    return (advice_finding){true, gain, m->records * m->b->sequential, .priced = true, .assumed = true};
}

static advice_finding find_idle(advice_making *m)
{
    if (!isfinite(m->l->idle) || !(m->l->idle > 0) || (m->l->alignment && m->l->alignment->timeline))
        return (advice_finding){0};
    bz_buf_printf(&m->evidence, "%s of every iteration %s", share(m, m->l->idle),
                  m->l->device ? "the device has nothing to do"
                               : "no library call runs: layers that the framework computes itself are part of that");
    return (advice_finding){true, m->l->idle, .half = m->iterations * m->l->latency};
}

/* Pages are handed out within library calls and between them: which it is nobody counted. */
static advice_finding find_anew(advice_making *m)
{
    double pages, spared, taken = bz_whatif_anew(m->trace, &pages, &spared), all = bz_tick(taken * m->l->latency),
                          gain = bz_tick(spared * m->l->latency);
    const bz_alignment *a = m->l->alignment;
    if (!(gain > 0))
        return (advice_finding){0};
    for (int i = 0; a && i < a->n_causes; i++)
        if (a->cause[i].kind == BZ_CAUSE_LAYERS_OUTSIDE)
            mark_cause(m, &a->cause[i]);
    advice_mark(m, BZ_RUNG_SLOWER);
    bz_buf_printf(&m->evidence, "the system hands out %.0f pages of memory in every iteration, %s",
                  pages * m->l->latency, share(m, all));
    return (advice_finding){true, gain, .half = ANEW_OFF * all, .alone = true};
}

static advice_finding find_channels(advice_making *m)
{
    const bz_units *u = m->l->units && m->l->units->n ? m->l->units : m->a->units;
    int n = 0, first = -1;
    for (int i = 0; u && i < u->n; i++)
        if (u->row[i].channels) {
            first = first < 0 ? i : first;
            n++;
        }
    if (!n)
        return (advice_finding){0};
    const bz_unit_row *row = &u->row[first];
    bz_buf_printf(&m->evidence, "%d product%s: %s: %s", n, BZ_PLURAL(n),
                  row->layer >= 0 ? m->b->layer[row->layer].layer->name : row->call, row->why);
    return (advice_finding){true, NAN, .half = NAN};
}

static advice_finding find_kernels(advice_making *m)
{
    return find_names(m, BZ_EVENT_KERNEL);
}

/* A time line tells what each call was for: the causes have it, and names would count it again. */
static advice_finding find_calls(advice_making *m)
{
    if (m->l->alignment && m->l->alignment->timeline)
        return (advice_finding){0};
    return find_names(m, BZ_EVENT_CALL);
}

/* Work of the typical iteration: "load" of its input, "update" of its weights by a device. What takes the place of the latter the
 * simulation tells. */
static advice_finding find_work(advice_making *m)
{
    const bz_flow *f = &m->simulation.flow;
    const bool load = !strcmp(m->words, "load");
    const bz_alignment *a = m->l->alignment;
    const char *first = NULL;
    int64_t time = 0;
    int n = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const bz_task *k = &f->task[i];
        if (load ? k->kind != BZ_TASK_LOAD : k->kind != BZ_TASK_KERNEL || k->phase != BZ_PHASE_UPDATE)
            continue;
        first = first ? first : k->name;
        time = bz_flow_sum(time, k->duration);
        n++;
    }
    if (!n)
        return (advice_finding){0};
    for (int i = 0; load && a && i < a->n_causes; i++)
        if (a->cause[i].example && !strcmp(a->cause[i].example, first))
            mark_cause(m, &a->cause[i]);
    const double seconds = bz_tick(1e-9 * (double)time);
    bz_buf_printf(&m->evidence, "%s of %d %s%s in an iteration, as %.60s, %s", load ? "loading" : "weight update", n,
                  load ? "part" : "kernel", BZ_PLURAL(n), first, share(m, seconds));
    return load ? (advice_finding){.holds = true, .gain = seconds, .half = seconds * m->iterations}
                : (advice_finding){.holds = true, .gain = NAN, .half = NAN};
}

/* Nothing but the simulation tells what the change gains: of a recording alone, without records of that type. */
static advice_finding find_simulated(advice_making *m)
{
    if (!m->l->on_device || !isfinite(m->l->busy) || !(m->l->busy > 0))
        return (advice_finding){0};
    bz_buf_printf(&m->evidence, "the device works %s of every iteration", share(m, m->l->busy));
    return (advice_finding){.holds = true, .gain = NAN, .half = NAN, .simulated = true};
}

/* step: of the waterfall, that becomes smaller; BZ_RUNGS: that of a cause, or none. by_records: it compares the recording with
 * records, which tell nothing of a program that ran on another machine or did other work. */
static const struct {
    const char *what;
    bz_rung_kind step;
    bool by_records;
    advice_finding (*find)(advice_making *m);
} FINDERS[] = {
    {"cause", BZ_RUNGS, false, find_causes},        {"kernels", BZ_RUNG_EXTRA, false, find_kernels},
    {"calls", BZ_RUNG_EXTRA, false, find_calls},    {"algorithms", BZ_RUNG_ALGORITHMS, true, find_algorithms},
    {"fusion", BZ_RUNG_FUSION, true, find_fusion},  {"elsewhere", BZ_RUNGS, true, find_elsewhere},
    {"way", BZ_RUNG_PRECISION, true, find_way},     {"parallel", BZ_RUNG_PARALLEL, true, find_parallel},
    {"idle", BZ_RUNG_BETWEEN, false, find_idle},    {"channels", BZ_RUNGS, false, find_channels},
    {"anew", BZ_RUNG_OUTSIDE, false, find_anew},    {"work", BZ_RUNGS, false, find_work},
    {"simulated", BZ_RUNGS, false, find_simulated},
};

advice_finding advice_find(advice_making *m, const advice_rule *rule)
{
    const char *line;
    advice_finding f = {0};
    for (int i = 0; i < m->n_items; i++)
        m->item[i].found = false;
    for (int k = 0; !f.holds && (line = advice_line(rule, "gain", k)); k++) {
        char what[64];
        bz_word_next(&line, what, sizeof what);
        m->words = line + strspn(line, " ");
        bz_buf_clear(&m->evidence);
        for (size_t i = 0; i < sizeof FINDERS / sizeof *FINDERS; i++)
            if (!strcmp(FINDERS[i].what, what) && (!FINDERS[i].by_records || bz_ladder_compares(m->l))) {
                f = FINDERS[i].find(m);
                if (f.holds)
                    advice_mark(m, FINDERS[i].step);
                m->found = k;
            }
    }
    return f;
}
