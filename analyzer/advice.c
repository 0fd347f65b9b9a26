/* What to change in a program, by what an analysis found: greatest gain first. */
#include "analyzer/advice.h"
#include "analyzer/predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct making {
    const bz_analysis *a;
    const bz_bound *b;
    const bz_ladder *l;
    const bz_trace *trace;
    bz_arena *arena;
    double iterations,
        records;   /* how far off a time is, as a share: by the iterations' spread, by the records' intervals */
    double slower; /* how much longer the program's calls take than their records */
    int64_t steady;
    bz_buf evidence;
} making;

/* What a line of the table found: a gain and how far it may be off. */
typedef struct finding {
    bool holds;
    double gain, half;
    bool priced; /* by records: grows with what the program's calls take longer */
} finding;

/* ---- uncertainty ---------------------------------------------------------------------------- */

/* Half the 95 % interval of the median, as boxplots draw it; a tenth where there is one iteration only. */
static double spread(making *m)
{
    const bz_trace *t = m->trace;
    double *v = BZ_NEW(m->arena, double, t->n_iterations);
    size_t n = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        if (!t->iteration[i].warm_up || t->n_iterations == 1)
            v[n++] = (double)(t->iteration[i].end - t->iteration[i].start);
    m->steady = n ? (int64_t)n : 1;
    if (n < 2)
        return 0.1;
    double median = bz_quantiles_of(v, n).p50; /* sorts */
    return median > 0 ? 1.57 * (v[3 * n / 4] - v[n / 4]) / sqrt((double)n) / median : 0.1;
}

static double interval(const bz_bound *b)
{
    double half = 0, sum = 0;
    for (int i = 0; i < b->n; i++) {
        const bz_layer_price *p = &b->layer[i].price;
        if (!p->alternative)
            continue;
        sum += p->seconds * b->layer[i].times;
        half += (p->high - p->low) / 2 * b->layer[i].times;
    }
    return sum > 0 ? half / sum : 0;
}

/* ---- evidence ------------------------------------------------------------------------------- */

static const char *share(const making *m, double seconds, char out[64])
{
    bz_unit_text time, percent;
    bz_units_time(time, seconds);
    if (isfinite(m->l->latency) && m->l->latency > 0)
        snprintf(out, 64, "%s (%s of the latency)", time, bz_units_percent(percent, seconds / m->l->latency));
    else
        snprintf(out, 64, "%s", time);
    return out;
}

static finding find_causes(making *m, const char *ids)
{
    finding f = {0};
    char id[64], text[64];
    const bz_alignment *a = m->l->alignment;
    while (advice_word(&ids, id))
        for (int i = 0; a && a->timeline && i < a->n_causes; i++) {
            const bz_cause *c = &a->cause[i];
            if (strcmp(c->id, id) != 0 || !(c->seconds > 0))
                continue;
            bz_buf_printf(&m->evidence, "%s%g × %s per iteration, %s", f.holds ? "; " : "", c->count, c->name,
                          share(m, c->seconds, text));
            if (c->example && *c->example)
                bz_buf_printf(&m->evidence, ", as %s", c->example);
            if (c->where)
                bz_buf_printf(&m->evidence, ", most of it asked for by %s", c->where);
            f.holds = true;
            f.gain += c->seconds;
        }
    f.half = f.gain * m->iterations;
    return f;
}

static bool is_named(const char *name, const char *words)
{
    char word[64];
    while (advice_word(&words, word))
        if (*word == '^' ? strstr(name, word + 1) == name : strstr(name, word) != NULL)
            return true;
    return false;
}

/* Time of kernels or calls by their names: of the steady iterations. */
static finding find_names(making *m, bz_event_kind kind, const char *words)
{
    const bz_events *e = &m->trace->event[kind];
    uint32_t n = bz_strings(m->trace), most = 0;
    char *fits = BZ_NEW(m->arena, char, n), text[64]; /* 1: no, 2: yes */
    int64_t time = 0, count = 0, longest = 0;
    for (size_t i = 0; i < e->n; i++) {
        uint32_t name = e->name[i], at;
        if (!fits[name])
            fits[name] = (char)(1 + is_named(bz_string(m->trace, name), words));
        if (fits[name] == 1 || (at = bz_event_iteration(m->trace, kind, i)) == BZ_NONE ||
            (m->trace->iteration[at].warm_up && m->trace->n_iterations > 1))
            continue;
        count++;
        time += e->end[i] - e->start[i];
        if (e->end[i] - e->start[i] > longest) {
            longest = e->end[i] - e->start[i];
            most = kind == BZ_EVENT_KERNEL && e->short_name[i] ? e->short_name[i] : name;
        }
    }
    finding f = {.holds = count > 0, .gain = bz_tick(1e-9 * (double)time / (double)m->steady)};
    f.half = f.gain * m->iterations;
    if (count)
        bz_buf_printf(&m->evidence, "%g × %s and the like per iteration, %s", (double)count / (double)m->steady,
                      bz_string(m->trace, most), share(m, f.gain, text));
    return f;
}

static const char *variant_name(const char *variant)
{
    const char *mark = strstr(variant, "_ALGO_");
    return mark ? mark + strlen("_ALGO_") : variant;
}

static finding find_algorithms(making *m, const char *words)
{
    const bz_regret *r = m->l->regret;
    bz_unit_text used, best;
    double calls = 0;
    (void)words;
    if (!r || !(r->loss > 0) || !r->n)
        return (finding){0};
    for (int i = 0; i < r->n; i++)
        calls += r->row[i].loss > 0 ? r->row[i].calls : 0;
    const bz_regret_row *row = &r->row[0];
    bz_buf_printf(&m->evidence, "%g of %g calls did not use the best variant: %g × %s (%s), where %s takes %s, for %s",
                  calls, r->calls, row->calls, variant_name(row->variant), bz_units_time(used, row->used),
                  row->best_variant, bz_units_time(best, row->best), row->problem);
    return (finding){true, r->loss, m->records * (r->used + r->best), true};
}

/* Layers that were done without the library, between its calls, and those that another call did than the one that
 * the library has for them: what they took above their records. */
static finding find_elsewhere(making *m, const char *words)
{
    const bz_alignment *a = m->l->alignment;
    double changed = 0, took = 0, missing = 0, outside = 0;
    int calls = 0, layers = 0;
    const char *first = NULL;
    bz_unit_text time, record;
    (void)words;
    for (int i = 0; a && a->timeline && i < a->n; i++) {
        const bz_aligned *r = &a->row[i];
        bool priced = isfinite(r->bound), other = r->kind == BZ_ALIGNED_CHANGED && isfinite(r->seconds) && priced &&
                                                  r->n_changes && !strcmp(r->change[0].parameter, "call");
        changed += other ? r->seconds - r->bound : 0;
        took += other ? r->seconds : 0;
        calls += other;
        first = other && !first ? r->call : first;
        missing += r->kind == BZ_ALIGNED_MISSING && priced ? r->bound : 0;
        layers += r->kind == BZ_ALIGNED_MISSING;
    }
    for (int i = 0; a && a->timeline && i < a->n_causes; i++)
        outside += strcmp(a->cause[i].id, "layers-outside") ? 0 : a->cause[i].seconds;
    if (calls)
        bz_buf_printf(&m->evidence, "%d layer%s done by %s and the like in %s, where the library takes %s", calls,
                      calls == 1 ? " is" : "s are", first, bz_units_time(time, took),
                      bz_units_time(record, took - changed));
    if (outside > missing)
        bz_buf_printf(&m->evidence, "%s%d layer%s done without the library in %s, where it takes %s", calls ? "; " : "",
                      layers, layers == 1 ? " is" : "s are", bz_units_time(time, outside),
                      bz_units_time(record, missing));
    double gain = changed + (outside > missing ? outside - missing : 0);
    return (finding){gain > 0, gain, m->iterations * (took + outside) + m->records * (took - changed + missing), false};
}

static finding find_fusion(making *m, const char *words)
{
    const bz_fusion *f = m->a->fusion;
    bz_unit_text time;
    double sums = 0;
    int shown = 0;
    (void)words;
    if (!f || !(f->sequential > 0))
        return (finding){0};
    for (int i = 0; i < f->n; i++) {
        const bz_fusion_row *row = &f->row[i];
        if (!(row->gain > 0))
            continue;
        sums += row->written + row->together;
        if (shown++ < 3)
            bz_buf_printf(&m->evidence, "%s%s in %d place%s, %s", shown > 1 ? "; " : "", row->pattern, row->covered,
                          row->covered == 1 ? "" : "s", bz_units_time(time, row->gain));
        if (shown <= 3 && row->fused > 0)
            bz_buf_printf(&m->evidence, " (fused already in %d)", row->fused);
    }
    if (shown > 3)
        bz_buf_printf(&m->evidence, "; and %d more patterns", shown - 3);
    return (finding){true, f->sequential, m->records * sums, true};
}

/* The layer that gains most. */
static const bz_unit_row *best_layer(const making *m, const bz_unit_way *w, double *gain)
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

static finding find_way(making *m, const char *name)
{
    const bz_units *u = m->a->units;
    bz_unit_text before, after, conversions;
    double gain;
    for (int i = 0; u && i < u->n_ways; i++) {
        const bz_unit_way *w = &u->way[i];
        if (strcmp(w->name, name) != 0 || !(w->gain > 0))
            continue;
        double bound = bz_bound_goal(m->b).sequential;
        bz_buf_printf(&m->evidence, "%d layers gain, the model's bound falls from %s to %s", w->layers,
                      bz_units_time(before, bound), bz_units_time(after, bound - w->gain));
        const bz_unit_row *row = best_layer(m, w, &gain);
        if (row)
            bz_buf_printf(&m->evidence, ", most at %s: %s", m->b->layer[row->layer].layer->name,
                          bz_units_time(after, gain));
        if (w->converted)
            bz_buf_printf(&m->evidence, "; %d conversion%s (%d modelled) take %s", w->converted,
                          w->converted == 1 ? "" : "s", w->modelled, bz_units_time(conversions, w->conversions));
        return (finding){true, w->gain, m->records * (m->b->sequential + w->sequential), true};
    }
    return (finding){0};
}

static finding find_parallel(making *m, const char *words)
{
    bz_goal goal = bz_bound_goal(m->b);
    double gain = goal.enough ? goal.sequential - goal.parallel : 0;
    int outer = 0;
    (void)words;
    if (!(gain > 0))
        return (finding){0};
    for (int i = 0; i < m->b->n_modules; i++)
        outer += m->b->module[i].within < 0;
    bz_buf_printf(&m->evidence, "%d parallel module%s; the longest path has %d of %d layers", outer,
                  outer == 1 ? "" : "s", m->b->path.n, m->b->dag->n);
    return (finding){true, gain, m->records * m->b->sequential, true};
}

static finding find_idle(making *m, const char *words)
{
    char text[64];
    (void)words;
    if (!isfinite(m->l->idle) || !(m->l->idle > 0) || (m->l->alignment && m->l->alignment->timeline))
        return (finding){0};
    bz_buf_printf(&m->evidence, "%s of every iteration %s", share(m, m->l->idle, text),
                  m->l->device ? "the device has nothing to do"
                               : "no library call runs: layers that the framework "
                                 "computes itself are part of that");
    return (finding){true, m->l->idle, m->iterations * m->l->latency, false};
}

static finding find_channels(making *m, const char *words)
{
    const bz_units *u = m->l->units && m->l->units->n ? m->l->units : m->a->units;
    int n = 0, first = -1;
    (void)words;
    for (int i = 0; u && i < u->n; i++)
        if (u->row[i].why && strstr(u->row[i].why, "no multiple of")) {
            first = first < 0 ? i : first;
            n++;
        }
    if (!n)
        return (finding){0};
    const bz_unit_row *row = &u->row[first];
    bz_buf_printf(&m->evidence, "%d product%s: %s: %s", n, n == 1 ? "" : "s",
                  row->layer >= 0 ? m->b->layer[row->layer].layer->name : row->call, row->why);
    return (finding){true, NAN, NAN, false};
}

static finding find_threads(making *m, const char *words)
{
    (void)words;
    for (int i = 0; i < m->l->n_warnings; i++)
        if (strstr(m->l->warning[i], "--threads")) {
            bz_buf_puts(&m->evidence, m->l->warning[i]);
            return (finding){true, NAN, NAN, false};
        }
    return (finding){0};
}

static finding find_kernels(making *m, const char *words)
{
    return find_names(m, BZ_EVENT_KERNEL, words);
}

static finding find_calls(making *m, const char *words)
{
    return find_names(m, BZ_EVENT_CALL, words);
}

static const struct {
    const char *what;
    finding (*find)(making *m, const char *words);
} FINDERS[] = {
    {"cause", find_causes},  {"kernels", find_kernels},     {"calls", find_calls},    {"algorithms", find_algorithms},
    {"fusion", find_fusion}, {"elsewhere", find_elsewhere}, {"way", find_way},        {"parallel", find_parallel},
    {"idle", find_idle},     {"channels", find_channels},   {"threads", find_threads}};

/* ---- advice --------------------------------------------------------------------------------- */

static finding find(making *m, const advice_rule *rule)
{
    const char *line;
    finding f = {0};
    for (int k = 0; !f.holds && (line = advice_line(rule, "gain", k)); k++) {
        char what[64];
        advice_word(&line, what);
        line += strspn(line, " ");
        bz_buf_clear(&m->evidence);
        for (size_t i = 0; i < sizeof FINDERS / sizeof *FINDERS; i++)
            if (!strcmp(FINDERS[i].what, what))
                f = FINDERS[i].find(m, line);
    }
    return f;
}

static bool has_kind(const making *m, const char *kind)
{
    for (int i = 0; i < m->b->layers->n; i++)
        if (!strcmp(m->b->layers->layer[i].kind, kind))
            return true;
    return false;
}

/* With "PyTorch besides KIND: …" where that holds. */
static const char *own_step(making *m, const advice_rule *rule, const char *step)
{
    const char *besides = bz_arena_printf(m->arena, "%s besides ", m->l->framework);
    size_t n = strlen(besides);
    for (int i = 0; i < rule->n && !m->l->on_device; i++)
        if (!strncmp(rule->key[i], besides, n) && has_kind(m, rule->key[i] + n))
            step = bz_arena_printf(m->arena, "%s\n%s", step, rule->value[i]);
    return step;
}

/* For the framework at hand; where nothing tells which that is, for each. */
static const char *step_of(making *m, const advice_table *table, const advice_rule *rule)
{
    const char *own = m->l->framework ? advice_line(rule, m->l->framework, 0) : NULL;
    if (own || m->l->framework)
        return own ? own_step(m, rule, own) : advice_line(rule, "any", 0);
    bz_buf text = {0};
    for (int i = 0; i < table->n_frameworks; i++) {
        const char *line = advice_line(rule, table->framework[i].name, 0);
        if (line)
            bz_buf_printf(&text, "%s%s: %s", text.len ? "\n" : "", table->framework[i].name, line);
    }
    const char *copy = text.len ? bz_arena_str(m->arena, bz_buf_text(&text)) : advice_line(rule, "any", 0);
    bz_buf_free(&text);
    return copy;
}

static int more_gain(const void *x, const void *y)
{
    const bz_advice *a = x, *b = y;
    if (isfinite(a->gain) != isfinite(b->gain))
        return isfinite(a->gain) ? -1 : 1;
    return a->gain > b->gain ? -1 : a->gain < b->gain ? 1 : strcmp(a->id, b->id);
}

/* Who takes one step has all that comes with it: its advices are one. */
static bz_advice *known_step(bz_advice *list, int n, const char *step)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i].step, step) && isfinite(list[i].gain))
            return &list[i];
    return NULL;
}

static int add(making *m, bz_advice *list, int n, const bz_advice *new)
{
    bz_advice *known = isfinite(new->gain) ? known_step(list, n, new->step) : NULL;
    if (!known) {
        list[n] = *new;
        return n + 1;
    }
    known->what = bz_arena_printf(m->arena, "%s %s", known->what, new->what);
    const char *first = known->predicted ? new->evidence : known->evidence; /* what it comes to is told last */
    const char *last = known->predicted ? known->evidence : new->evidence;
    known->evidence = bz_arena_printf(m->arena, "%s; %s", first, last);
    if (!known->predicted) {
        known->gain += new->gain;
        known->low += new->low;
        known->high += new->high;
    }
    return n;
}

static void tell_part(making *m, const char *what, const predict_part *p)
{
    bz_unit_text before, after;
    if (p->before > 0 || p->after > 0)
        bz_buf_printf(&m->evidence, "%s %s to %s", what, bz_units_time(before, p->before),
                      bz_units_time(after, p->after));
}

/* "PyTorch does: …" of the framework at hand; NULL where there is none. */
static const char *own_line(const making *m, const advice_rule *rule, const char *what)
{
    char key[80];
    snprintf(key, sizeof key, "%s %s", m->l->framework ? m->l->framework : "", what);
    return advice_line(rule, key, 0);
}

/* Where the table says what the framework's step changes, the gain is that of this program, not of the bound. */
static void predict_gain(making *m, const advice_rule *rule, bz_advice *out)
{
    static const char *const PARTS[] = {"products ", ", other layers", ", conversions", ", work on constants",
                                        ", the rest"};
    predict_step step;
    prediction p;
    const char *words = own_line(m, rule, "does");
    if (!words || !predict_read(words, &step) || !predict(m->a, m->l, m->trace, &step, m->arena, &p))
        return;
    double noise = m->iterations * m->l->latency;
    out->predicted = true;
    out->gain = p.all.before - p.all.after;
    out->low = p.all.before - p.all.high - noise;
    out->high = p.all.before - p.all.low + noise;
    bz_buf_puts(&m->evidence, "; predicted of this program: ");
    for (int i = 0; i < PREDICT_PARTS; i++)
        tell_part(m, PARTS[i], &p.part[i]);
    if (p.unknown)
        bz_buf_printf(&m->evidence, "; %d of %d products without a record, as they are", p.unknown, p.products);
}

/* Has the model a layer without which the framework's step does nothing? */
static bool has_needed(const making *m, const advice_rule *rule)
{
    const char *words = own_line(m, rule, "needs");
    char kind[64];
    if (!words)
        return true;
    while (advice_word(&words, kind))
        if (has_kind(m, kind))
            return true;
    return false;
}

/* Do operators, or nodes that an optimizer made, show that the framework's step is taken already? */
static bool is_taken(const making *m, const advice_rule *rule)
{
    const bz_events *o = &m->trace->event[BZ_EVENT_OP];
    const char *words = own_line(m, rule, "shows");
    bool *seen = words ? BZ_NEW(m->arena, bool, bz_strings(m->trace)) : NULL; /* each string once */
    for (size_t i = 0; words && i < o->n; i++) {
        const uint32_t text[] = {o->name[i], o->detail[i]};
        for (int k = 0; k < 2; k++) {
            if (!seen[text[k]] && is_named(bz_string(m->trace, text[k]), words))
                return true;
            seen[text[k]] = true;
        }
    }
    return false;
}

/* What a rule of the table comes to: added to the list, where it comes to anything. */
static int consider(making *m, const advice_table *table, const advice_rule *rule, bz_advice *list, int n)
{
    static const double LEAST = 0.005; /* of the latency */
    const char *on = advice_line(rule, "on", 0);
    if (on && strcmp(on, m->l->on_device ? "device" : "cpu") != 0)
        return n;
    finding f = find(m, rule);
    const char *step = step_of(m, table, rule);
    if (!f.holds || !step || !has_needed(m, rule) || is_taken(m, rule))
        return n;
    double more = f.priced ? m->slower : 1;
    bz_advice new = {.id = rule->id,
                     .what = advice_line(rule, "what", 0),
                     .step = step,
                     .gain = f.gain,
                     .low = f.gain - f.half,
                     .high = f.gain * more + f.half};
    if (!known_step(list, n, step))
        predict_gain(m, rule, &new);
    if (new.gain < LEAST * m->l->latency)
        return n;
    new.evidence = bz_arena_str(m->arena, bz_buf_text(&m->evidence));
    return add(m, list, n, &new);
}

int bz_advice_make(const bz_analysis *analysis, bz_ladder *ladder, const bz_trace *trace, bz_arena *arena,
                   const bz_advice **out)
{
    making m = {.a = analysis, .b = &analysis->bound, .l = ladder, .trace = trace, .arena = arena};
    advice_table table;
    int n = 0;
    advice_read(bz_advice_text, arena, &table);
    bz_advice *list = BZ_NEW(arena, bz_advice, table.n);
    if (!ladder->framework)
        ladder->framework = advice_framework_of(&table, trace);
    m.iterations = spread(&m);
    m.records = interval(m.b);
    m.slower = ladder->busy > m.b->sequential && m.b->sequential > 0 ? ladder->busy / m.b->sequential : 1;
    for (int i = 0; i < table.n; i++)
        n = consider(&m, &table, &table.rule[i], list, n);
    if (n)
        qsort(list, (size_t)n, sizeof *list, more_gain);
    bz_buf_free(&m.evidence);
    *out = list;
    return n;
}
