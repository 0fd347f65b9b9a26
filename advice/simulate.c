/* Gains by simulation: the recording as a graph of what waited for what, changed as the advice would change the program. What hides
 * behind other work gains nothing there. */
#include "advice/constants.h"
#include "advice/rules.h"
#include "whatif/whatif.h"

#include <math.h>
#include <string.h>

void advice_simulation_make(const bz_analysis *analysis, const bz_ladder *ladder, const bz_trace *trace,
                            const bz_whatif_records *records, bz_arena *arena, advice_simulation *s)
{
    bz_error none;
    uint32_t typical = bz_typical_iteration(trace);
    if (typical == BZ_NONE || bz_flow_make(trace, typical, &s->flow, &none))
        return;
    s->usable = !bz_whatif_begin(&s->flow, arena, &s->whatif, &none) && s->whatif.error <= BZ_WHATIF_REFUSE;
    s->model =
        (bz_whatif_model){&analysis->bound, ladder->alignment, ladder->regret, analysis->picks, analysis->n_picks};
    s->whatif.records = records;
    s->whatif.model = bz_bound_goal(&analysis->bound).enough && bz_ladder_compares(ladder)
                          ? &s->model
                          : NULL; /* else too little has a price, or one of another machine */
}

/* Without work by its name, or for its reason: "kernels WORD…", "calls WORD…", "cause ID…", as a line "gain" has it. */
static int remove_work(bz_flow *flow, bz_whatif_asked *asked)
{
    const char *words = asked->text;
    char what[64];
    int n = 0;
    int64_t time = 0;
    bz_word_next(&words, what, sizeof what);
    bool call = !strcmp(what, "calls"), cause = !strcmp(what, "cause");
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        if (t->removed || t->event == BZ_NONE || t->kind != (call ? BZ_TASK_CALL : BZ_TASK_KERNEL) ||
            t->event_kind != (call ? BZ_EVENT_CALL : BZ_EVENT_KERNEL))
            continue;
        const char *id = cause ? bz_cause_id(bz_kernel_of(asked->trace, t->event)->cause) : NULL;
        const bz_events *e = &asked->trace->event[t->event_kind];
        if (cause ? !id || !bz_name_matches_any(words, id)
                  : !bz_name_matches_any(words, bz_string(asked->trace, e->name[t->event])))
            continue;
        time = bz_flow_sum(time, t->duration);
        bz_flow_remove_launched(flow, i, false);
        n++;
    }
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the recording",
                     "%d %s of %s together go, and nothing takes their place", n,
                     call ? "calls" : "kernels with their launches", BZ_SAY_NS(time));
    return n;
}

static const bz_transformation REMOVAL = {.name = "removal", .apply = remove_work};

/* A line "whatif": the name of a transformation, or "remove" with what the line "gain" found. */
static bool ask(const advice_making *m, const advice_rule *rule, const char *line, bz_whatif_asked *asked)
{
    bz_error none;
    if (strcmp(line, "remove") != 0)
        return !bz_whatif_parse(line, m->arena, asked, &none);
    *asked = (bz_whatif_asked){.row = &REMOVAL, .text = advice_line(rule, "gain", m->found)};
    return true;
}

static void tell(advice_making *m, const bz_prediction *p)
{
    bz_buf_printf(&m->evidence, "; simulated: ");
    for (int i = 0; i < p->n_assumed; i++)
        bz_buf_printf(&m->evidence, "%s%s (%s)", i ? "; " : "", p->assumed[i].what, bz_assumed_name(p->assumed[i].how));
}

/* Where the recording was made in levels, the program alone is faster than the iteration that is simulated: gains are shares of it. Where its recorder
 * made the host slower, they are those without that. */
bool advice_simulate(advice_making *m, const advice_rule *rule, const char *line, bz_advice *out)
{
    bz_whatif *w = &m->simulation.whatif;
    bz_whatif_asked asked;
    bz_error none;
    if (!m->simulation.usable || !ask(m, rule, line, &asked) ||
        bz_whatif_predict(&asked, 1, m->arena, w, NULL, NULL, &none))
        return false;
    const bz_prediction *p = &w->prediction[w->n - 1];
    if (!p->changed)
        return false;
    double share = m->l->recorded > 0 && m->l->latency < m->l->recorded ? m->l->latency / m->l->recorded : 1;
    out->gain = share * 1e-9 * (double)(w->simulated - p->time);
    out->low = share * 1e-9 * (double)(w->simulated - p->high);
    out->high = share * 1e-9 * (double)(w->simulated - p->low);
    out->by = "simulation";
    tell(m, p);
    if (share == 1 && bz_whatif_differs_unrecorded(w, p)) {
        out->of = 1e-9 * (double)w->unrecorded[1];
        out->gain = 1e-9 * (double)p->unrecorded;
        out->low = 1e-9 * (double)p->unrecorded_low;
        out->high = 1e-9 * (double)p->unrecorded_high;
        bz_buf_puts(&m->evidence, "; ");
        bz_whatif_say_unrecorded(w, p, &m->evidence);
    }
    if (p->unsure) {
        out->gain = out->low = out->high = NAN;
        bz_buf_printf(&m->evidence, "; %s", p->unsure);
    }
    if (p->critical.of[BZ_TASK_CALL] < w->critical.of[BZ_TASK_CALL]) {
        advice_mark(m, BZ_RUNG_SLOWER);
        advice_mark(m, BZ_RUNG_EXTRA);
    }
    if (p->critical.between < w->critical.between) {
        advice_mark(m, BZ_RUNG_BETWEEN);
        advice_mark(m, BZ_RUNG_OUTSIDE);
    }
    return true;
}

bool advice_turns_products(const advice_making *m, const char *line)
{
    const bz_flow *f = &m->simulation.flow;
    int64_t time = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const bz_task *t = &f->task[i];
        const bz_call *c =
            t->kind == BZ_TASK_CALL && t->event_kind == BZ_EVENT_CALL ? bz_call_of(m->trace, t->event) : NULL;
        if (c && c->problem && c->problem->kind == BZ_PROBLEM_GEMM)
            time = bz_flow_sum(time, t->duration);
    }
    return strstr(line, "=turned") && (double)time > TURNED_MOST * (double)f->measured;
}
