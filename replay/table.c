/* What the time of each unit went to, and why it is more than the bound. */
#include "replay/table.h"
#include "base/sort.h"
#include "replay/constants.h"

#include <math.h>

static int unit_of(const bz_replay_plan *p, int step)
{
    for (int u = 0; step >= 0 && u < p->n_units; u++)
        if (step >= p->unit[u].first && step < p->unit[u].first + p->unit[u].n_steps)
            return u;
    return -1;
}

static void plan_row(const bz_replay_report *r, row *w)
{
    const bz_replay_plan *p = r->plan;
    w->cold = r->cold ? 0 : (double)NAN;
    for (int i = w->unit->first; i < w->unit->first + w->unit->n_steps; i++) {
        const bz_replay_choice *c = &p->choice[i];
        w->loop_runs |= p->step[i].kind == BZ_STEP_LOOP && !p->step[i].once;
        if (!c->n)
            continue;
        const bz_replay_option *o = &c->option[c->taken];
        bool known = o->provenance != BZ_PROVENANCE_MODELLED && o->seconds > 0;
        w->calls_run = true;
        w->modelled |= !known;
        w->record += known ? o->seconds : (double)NAN;
        w->launch += o->launch;
        w->cold += r->cold ? r->cold[i] : 0;
    }
}

static void add_action(table *t, const bz_replay_action *a)
{
    int u = unit_of(t->r->plan, a->step);
    row *w = u < 0 ? &t->outputs : &t->row[u];
    double seconds = isfinite(a->seconds) ? a->seconds : 0;
    bool converts = a->kind == BZ_REPLAY_CONVERT || a->kind == BZ_REPLAY_COPY, loops = a->kind == BZ_REPLAY_LOOP;
    t->n_calls += a->kind == BZ_REPLAY_CALL, t->n_loops += loops, t->n_conversions += converts;
    *(converts ? &t->conversions : loops ? &t->loops : &t->calls) += seconds;
    *(converts ? &w->conversions : loops ? &w->loops : &w->calls) += seconds;
    w->hot += a->hot, w->flushed += a->flushed;
    w->hot_calls += a->kind == BZ_REPLAY_CALL ? a->hot : 0;
    t->hot += a->hot, t->flushed += a->flushed;
    w->checked += a->elements > 0;
    w->wrong += a->wrong > 0;
    w->worst = a->worst > w->worst ? a->worst : w->worst;
}

static double calls_of(const row *w)
{
    return isfinite(w->hot_calls) ? w->hot_calls : w->calls;
}

static void find_drift(table *t)
{
    double *ratio = BZ_NEW(&t->arena, double, (size_t)t->n + 1);
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (t->row[i].record > DRIFT_CALL && t->row[i].calls > 0)
            ratio[n++] = calls_of(&t->row[i]) / t->row[i].record;
    bz_sort_numbers(ratio, (size_t)n);
    t->drift = n ? ratio[n / 2] : 1;
}

/* A unit's bound is that of its calls, or of its loops where it has no call. */
static void split_row(row *w)
{
    double bound = isfinite(w->unit->bound) ? w->unit->bound : 0;
    w->excess[EXCESS_CONVERSION] = w->conversions;
    w->excess[EXCESS_LOOP] = w->loops - (w->calls_run ? 0 : bound);
    if (!w->calls_run)
        return;
    if (!isfinite(w->record)) {
        w->excess[EXCESS_GUESS] = w->calls - bound;
        return;
    }
    w->excess[EXCESS_CHOICE] = w->record - bound;
    if (isfinite(w->hot_calls)) {
        w->excess[EXCESS_HOT] = w->hot_calls - w->record;
        w->excess[EXCESS_COLD] = w->calls - w->hot_calls;
    } else {
        w->excess[EXCESS_RECORD] = w->calls - w->record;
    }
}

/* What the units' bounds do not add up to is that the bound covers the graph in another way. */
static void split_all(table *t)
{
    double bounds = 0, bound = table_bound(t->r), sum = t->calls + t->loops + t->conversions;
    for (int i = 0; i < t->n; i++) {
        split_row(&t->row[i]);
        bounds += isfinite(t->row[i].unit->bound) ? t->row[i].unit->bound : 0;
        for (int e = 0; e < N_EXCESS; e++)
            t->excess[e] += t->row[i].excess[e];
    }
    t->excess[EXCESS_CONVERSION] += t->outputs.conversions;
    t->excess[EXCESS_CHOICE] += bounds - bound;
    t->excess[EXCESS_BETWEEN] = t->r->result->median - sum;
}

void table_make(const bz_replay_report *r, table *t)
{
    *t = (table){.r = r, .n = r->plan->n_units, .drift = 1};
    t->row = BZ_NEW(&t->arena, row, (size_t)t->n + 1);
    for (int i = 0; i < t->n; i++) {
        t->row[i].unit = &r->plan->unit[i];
        plan_row(r, &t->row[i]);
    }
    for (int i = 0; r->result && i < r->result->n; i++)
        add_action(t, &r->result->action[i]);
    if (!r->result)
        return;
    find_drift(t);
    split_all(t);
}

double table_bound(const bz_replay_report *r)
{
    if (!r->bound || r->plan->n_left) /* the bound is that of all layers */
        return NAN;
    bz_goal goal = bz_bound_goal(r->bound);
    return goal.enough && goal.sequential > 0 ? goal.sequential : (double)NAN;
}

double row_total(const row *w)
{
    return w->calls + w->loops + w->conversions;
}

const char *excess_name(excess e)
{
    static const char *const NAMES[N_EXCESS] = {
        [EXCESS_COLD] = "cold operands",
        [EXCESS_CONVERSION] = "layout conversion",
        [EXCESS_LOOP] = "a loop of our own",
        [EXCESS_HOT] = "slower than its record, though hot",
        [EXCESS_RECORD] = "slower than its record",
        [EXCESS_GUESS] = "no record",
        [EXCESS_CHOICE] = "dearer than the bound's choice",
        [EXCESS_BETWEEN] = "between the calls",
    };
    return NAMES[e];
}

/* The largest of what it takes too long for. */
const char *row_reason(const table *t, const row *w)
{
    bool bounded = isfinite(w->unit->bound) && w->unit->bound > 0;
    double bound = bounded ? w->unit->bound : w->record, over = row_total(w) - bound;
    int most = 0;
    if (w->calls_run && !isfinite(w->record))
        return excess_name(EXCESS_GUESS);
    if (over <= ON_BOUND * bound)
        return over < -ON_BOUND * bound ? "faster than its record" : "";
    for (int e = 1; e < N_EXCESS; e++)
        if (e != EXCESS_CHOICE || bounded)
            most = w->excess[e] > w->excess[most] ? e : most;
    if (most != EXCESS_HOT && most != EXCESS_RECORD)
        return excess_name((excess)most);
    if (w->launch > 0 && over <= w->launch * LAUNCHES_OVER)
        return "launch";
    if (t->drift > DRIFTED && calls_of(w) - w->record * t->drift <= DRIFT_LEFT * over)
        return t->r->result->throttled ? "clock: the processor throttled" : "clock or neighbours: all calls alike";
    if (most == EXCESS_RECORD && isfinite(w->cold) && w->calls <= w->cold * AS_COLD)
        return excess_name(EXCESS_COLD);
    return excess_name((excess)most);
}
