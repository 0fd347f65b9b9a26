/* What to change in a program, by what an analysis found: greatest gain first. */
#include "advice/constants.h"
#include "advice/rules.h"
#include "base/sort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool has_kind(const advice_making *m, const char *kind)
{
    for (int i = 0; i < m->b->layers->n; i++)
        if (!strcmp(bz_layer_step_kind(&m->b->layers->layer[i]), kind))
            return true;
    return false;
}

/* "PyTorch does: …"; NULL where there is none. */
static const char *framework_line(const advice_rule *rule, const char *framework, const char *what)
{
    char key[80];
    snprintf(key, sizeof key, "%s %s", framework, what);
    return advice_line(rule, key, 0);
}

/* Of the framework at hand. */
static const char *own_line(const advice_making *m, const advice_rule *rule, const char *what)
{
    return framework_line(rule, m->l->framework ? m->l->framework : "", what);
}

/* With "PyTorch besides KIND: …" where that holds. */
static const char *own_step(advice_making *m, const advice_rule *rule, const char *step)
{
    const char *besides = bz_arena_printf(m->arena, "%s besides ", m->l->framework);
    size_t n = strlen(besides);
    for (int i = 0; i < rule->n && !m->l->on_device; i++)
        if (!strncmp(rule->key[i], besides, n) && has_kind(m, rule->key[i] + n))
            step = bz_arena_printf(m->arena, "%s\n%s", step, rule->value[i]);
    return step;
}

/* Has the program done already what the step in this framework does? */
static bool is_moot(const advice_making *m, const advice_rule *rule, const char *framework)
{
    bool open;
    return advice_moot(m->state, m->n_states, framework_line(rule, framework, "moot"), &open) != NULL;
}

/* "PyTorch: …", or "PyTorch training: …" where the program trains. */
static const char *line_of(const advice_making *m, const advice_rule *rule, const char *framework)
{
    bool open, trains = advice_moot(m->state, m->n_states, "trains", &open);
    const char *line = trains ? framework_line(rule, framework, "training") : NULL;
    return line ? line : advice_line(rule, framework, 0);
}

/* For the framework at hand; where nothing tells which that is, for each in which there is something left to do. */
static const char *step_of(advice_making *m, const advice_table *table, const advice_rule *rule)
{
    const char *own = m->l->framework ? line_of(m, rule, m->l->framework) : NULL;
    if (own || m->l->framework)
        return own ? own_step(m, rule, own) : advice_line(rule, "any", 0);
    bz_buf text = {0};
    for (int i = 0; i < table->n_frameworks; i++) {
        const char *line = line_of(m, rule, table->framework[i].name);
        if (line && !is_moot(m, rule, table->framework[i].name))
            bz_buf_printf(&text, "%s%s: %s", text.len ? "\n" : "", table->framework[i].name, line);
    }
    return text.len ? bz_buf_keep(&text, m->arena) : advice_line(rule, "any", 0);
}

/* Each FROM of the device's line becomes its TO. */
static const char *in_its_words(const advice_making *m, const char *text)
{
    const char *swaps = m->swaps;
    char from[80], *to;
    while (text && swaps && bz_word_next(&swaps, from, sizeof from) && (to = strchr(from, '='))) {
        BZ_SCOPED(bz_buf) out = {0};
        *to++ = 0;
        for (const char *at; (at = strstr(text, from)); text = at + strlen(from))
            bz_buf_printf(&out, "%.*s%s", (int)(at - text), text, to);
        bz_buf_puts(&out, text);
        text = bz_arena_str(m->arena, bz_buf_text(&out));
    }
    return text;
}

/* What may as well be a loss is no reason to change a program first. */
BZ_SORTS(more_gain, bz_advice,
         BZ_THEN(BZ_THEN(!isfinite(p->gain) - !isfinite(q->gain), isfinite(p->gain) ? !q->unsure - !p->unsure : 0),
                 BZ_THEN(BZ_ORDER(q->gain, p->gain), strcmp(p->id, q->id))));

/* One step brings all that comes with it, so the advices with the same step are one. */
static bz_advice *known_step(bz_advice *list, int n, const char *step)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i].step, step))
            return &list[i];
    return NULL;
}

/* A gain that nobody knows leaves the other's. */
static void join_gains(bz_advice *known, const bz_advice *new)
{
    if (known->predicted || isnan(new->gain))
        return;
    bool first = isnan(known->gain);
    known->by = first ? new->by : !strcmp(known->by, new->by) ? known->by : "estimate";
    known->gain = (first ? 0 : known->gain) + new->gain;
    known->low = (first ? 0 : known->low) + new->low;
    known->high = (first ? 0 : known->high) + new->high;
    known->unsure = known->low > 0 ? NULL : known->unsure && !first ? known->unsure : new->unsure;
}

static int add(advice_making *m, bz_advice *list, int n, const bz_advice *new)
{
    bz_advice *known = known_step(list, n, new->step);
    if (!known) {
        list[n] = *new;
        return n + 1;
    }
    known->what = bz_arena_printf(m->arena, "%s %s", known->what, new->what);
    const char *first = known->predicted ? new->evidence : known->evidence; /* what it comes to is told last */
    const char *last = known->predicted ? known->evidence : new->evidence;
    known->evidence = bz_arena_printf(m->arena, "%s; %s", first, last);
    join_gains(known, new);
    return n;
}

/* Has the model a layer without which the framework's step does nothing? */
static bool has_needed(const advice_making *m, const advice_rule *rule)
{
    const char *words = own_line(m, rule, "needs");
    char kind[64];
    if (!words)
        return true;
    while (bz_word_next(&words, kind, sizeof kind))
        if (has_kind(m, kind))
            return true;
    return false;
}

/* The states that make the rule's step moot: those of the framework at hand, else those of the rule. */
static const char *moot_line(const advice_making *m, const advice_rule *rule)
{
    const char *own = own_line(m, rule, "moot");
    return own ? own : advice_line(rule, "moot", 0);
}

/* Items that the rule found get its advice, or what makes it moot. The first one stays. */
static void answer(advice_making *m, const char *id, const bz_state *moot)
{
    for (int i = 0; i < m->n_items; i++) {
        advice_item *item = &m->item[i];
        if (!item->found)
            continue;
        if (id && !item->id)
            item->id = id;
        if (moot && !item->why)
            item->why = bz_arena_printf(m->arena, "the program %s (%s)", moot->what, moot->evidence);
    }
}

/* Items of which the rule saves next to nothing: that is why it is not advised. Of what the simulation assumes the first tells most. */
static void answer_small(advice_making *m, const bz_advice *a)
{
    const char *assumed = strstr(a->evidence, "; simulated: "), *end = assumed ? strstr(assumed, "); ") : NULL;
    if (!isfinite(a->gain))
        return;
    const char *why = bz_arena_printf(m->arena, "'%.*s' would gain %s", (int)strcspn(a->what, ".:"), a->what,
                                      BZ_SAY_TIME(fmax(a->gain, 0)));
    if (assumed)
        why = bz_arena_printf(m->arena, "%s%.*s", why, end ? (int)(end + 1 - assumed) : (int)strlen(assumed), assumed);
    for (int i = 0; i < m->n_items; i++)
        if (m->item[i].found && !m->item[i].why)
            m->item[i].why = why;
}

/* "If the program does not do so yet: compute in bf16." */
static const char *conditional(advice_making *m, const char *what)
{
    bool word = what[0] >= 'A' && what[0] <= 'Z' && !(what[1] >= 'A' && what[1] <= 'Z');
    return bz_arena_printf(m->arena, "If the program does not do so yet: %c%s", word ? what[0] - 'A' + 'a' : what[0],
                           what + 1);
}

/* A gain is the difference of two processes, and one is not as fast as the next. */
static double noise(const advice_making *m, const bz_advice *a)
{
    return isfinite(a->of) ? m->noise * a->of : 0;
}

/* An interval that has 0 in it does not tell a gain from a loss: what makes it so wide, in a sentence. NULL: it tells. */
static const char *why_unsure(const advice_making *m, const bz_advice *a, bool priced)
{
    if (!isfinite(a->gain) || a->low > 0)
        return NULL;
    if (a->low + noise(m, a) > 1e-6 * a->gain || noise(m, a) > a->gain) /* by more than its rounding */
        return "two runs of the same program may differ by as much";
    if (!strcmp(a->by, "simulation"))
        return "the assumptions of the simulation allow both";
    return priced ? "its records are not exact enough to tell" : "what takes the place of this work is not known";
}

/* What the step gains by the line that is the step in this framework; where that does not apply, as of a recording without its model, by what
 * the rule does alone, and the step may not turn the weights of products. */
static void simulate(advice_making *m, const advice_rule *rule, const bz_advice *known, const advice_finding *f,
                     bool open, bz_advice *new)
{
    const char *own = m->l->on_device ? NULL : own_line(m, rule, "whatif"),
               *alone = advice_line(rule, m->l->on_device ? "device whatif" : "cpu whatif", 0);
    new->predicted = own && !open && !known &&advice_simulate(m, rule, own, new);
    if (alone && !new->predicted && !(open && f->assumed) && !(known && known->predicted) &&
        !(own && (open || advice_turns_products(m, own))))
        advice_simulate(m, rule, alone, new);
}

/* Where nothing tells whether the program does it already, the model's bound promises nothing of this program. */
static bz_advice make(advice_making *m, const advice_rule *rule, const char *step, advice_finding f, bool open,
                      const bz_advice *known)
{
    const char *what = in_its_words(m, advice_line(rule, "what", 0));
    double more = f.priced ? m->slower : 1;
    const char *unsure = own_line(m, rule, "unsure");
    bz_advice new = {.id = rule->id, .what = open ? conditional(m, what) : what, .step = step};
    new.gain = open &&f.assumed ? NAN : f.gain;
    new.low = f.priced || f.alone ? new.gain - f.half : 0; /* nobody knows what takes the place of work that goes */
    new.high = new.gain *more + f.half;
    new.by = "estimate";
    new.of = m->l->latency;
    simulate(m, rule, known, &f, open, &new);
    if (strcmp(new.by, "simulation") != 0) { /* whose interval has the noise already */
        new.low -= noise(m, &new);
        new.high += noise(m, &new);
        if (new.high > new.of) /* more than all there is */
            new.high = fmax(new.of, new.gain);
    }
    new.unsure = why_unsure(m, &new, f.priced);
    if (unsure)
        bz_buf_printf(&m->evidence, "; %s", unsure);
    new.evidence = bz_arena_str(m->arena, bz_buf_text(&m->evidence));
    return new;
}

/* What a rule of the table comes to: added to the list, where it comes to anything. */
static int consider(advice_making *m, const advice_table *table, const advice_rule *rule, bz_advice *list, int n)
{
    const char *on = advice_line(rule, "on", 0);
    bool open = false;
    if (on && strcmp(on, m->l->on_device ? "device" : "cpu") != 0)
        return n;
    advice_finding f = advice_find(m, rule);
    if (!f.holds)
        return n;
    const bz_state *moot = advice_moot(m->state, m->n_states, moot_line(m, rule), &open);
    const char *step = moot ? NULL : in_its_words(m, step_of(m, table, rule));
    if (moot)
        answer(m, NULL, moot);
    if (!step || !has_needed(m, rule))
        return n;
    bz_advice new = make(m, rule, step, f, open, known_step(list, n, step));
    if (f.simulated && strcmp(new.by, "simulation") != 0)
        return n;
    if (new.gain < (new.unsure ? ANSWERED_LEAST : TOLD_LEAST) * m->l->latency) {
        answer_small(m, &new);
        return n;
    }
    n = add(m, list, n, &new);
    answer(m, known_step(list, n, step)->id, NULL);
    return n;
}

int bz_advice_make(const bz_analysis *analysis, bz_ladder *ladder, const bz_trace *trace,
                   const bz_whatif_records *records, bz_arena *arena)
{
    advice_making m = {.a = analysis, .b = &analysis->bound, .l = ladder, .trace = trace, .arena = arena};
    advice_table table;
    int n = 0;
    advice_read(bz_advice_text, arena, &table);
    bz_advice *list = BZ_NEW(arena, bz_advice, table.n);
    if (!ladder->framework)
        ladder->framework = advice_framework_of(&table, trace);
    m.swaps = advice_words_of(&table, trace);
    advice_simulation_make(analysis, ladder, trace, records, arena, &m.simulation);
    ladder->n_states = m.n_states = advice_states(m.b, ladder, trace, &m.simulation.flow, arena, &m.state);
    ladder->state = m.state;
    m.iterations = bz_whatif_interval(trace, &m.steady);
    m.noise = bz_whatif_noise(trace);
    m.records = interval(m.b);
    m.slower = ladder->busy > m.b->sequential && m.b->sequential > 0 ? ladder->busy / m.b->sequential : 1;
    advice_items(&m);
    for (int i = 0; i < table.n; i++)
        n = consider(&m, &table, &table.rule[i], list, n);
    BZ_QSORT(list, n, more_gain);
    ladder->n_answers = advice_answers(&m, list, n, &ladder->answer);
    bz_buf_free(&m.evidence);
    bz_flow_free(&m.simulation.flow);
    ladder->advice = list;
    return ladder->n_advices = n;
}
