/* The replay held against its plan and the bound: for people, and as JSON. */
#include "replay/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A unit's time in sequence, split by what it went to. */
typedef struct row {
    const bz_replay_unit *unit;
    double calls, loops, conversions; /* seconds, in sequence */
    double record, cold, launch;      /* of its calls, as the plan has them; record NAN where one has none */
    bool loop_runs, modelled;
    int wrong, checked;
    double worst;
} row;

typedef struct table {
    const bz_replay_report *r;
    row *row;
    int n;
    double calls, loops, conversions;
    double drift; /* middle ratio of calls to their records: what hits all alike */
    int n_calls, n_loops, n_conversions;
    bz_arena arena;
} table;

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
        w->modelled |= !known;
        w->record += known ? o->seconds : (double)NAN;
        w->launch += o->launch;
        w->cold += r->cold ? r->cold[i] : 0;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void find_drift(table *t)
{
    double *ratio = BZ_NEW(&t->arena, double, (size_t)t->n + 1);
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (t->row[i].record > 20e-6 && t->row[i].calls > 0)
            ratio[n++] = t->row[i].calls / t->row[i].record;
    qsort(ratio, (size_t)n, sizeof *ratio, by_value);
    t->drift = n ? ratio[n / 2] : 1;
}

static void add_action(table *t, const bz_replay_action *a)
{
    int u = unit_of(t->r->plan, a->step);
    double seconds = isfinite(a->seconds) ? a->seconds : 0;
    bool converts = a->kind == BZ_REPLAY_CONVERT || a->kind == BZ_REPLAY_COPY;
    t->n_calls += a->kind == BZ_REPLAY_CALL, t->n_loops += a->kind == BZ_REPLAY_LOOP, t->n_conversions += converts;
    *(converts ? &t->conversions : a->kind == BZ_REPLAY_LOOP ? &t->loops : &t->calls) += seconds;
    if (u < 0)
        return;
    row *w = &t->row[u];
    *(converts ? &w->conversions : a->kind == BZ_REPLAY_LOOP ? &w->loops : &w->calls) += seconds;
    w->checked += a->elements > 0;
    w->wrong += a->wrong > 0;
    w->worst = a->worst > w->worst ? a->worst : w->worst;
}

static void make_table(const bz_replay_report *r, table *t)
{
    *t = (table){.r = r, .n = r->plan->n_units, .drift = 1};
    t->row = BZ_NEW(&t->arena, row, (size_t)t->n + 1);
    for (int i = 0; i < t->n; i++) {
        t->row[i].unit = &r->plan->unit[i];
        plan_row(r, &t->row[i]);
    }
    for (int i = 0; r->result && i < r->result->n; i++)
        add_action(t, &r->result->action[i]);
    find_drift(t);
}

static double total(const row *w)
{
    return w->calls + w->loops + w->conversions;
}

/* Why a unit took longer than its record says. The first that explains most of the difference. */
static const char *reason(const table *t, const row *w)
{
    double over = total(w) - w->record;
    if (w->loop_runs && w->loops > w->conversions && w->loops >= 0.5 * total(w))
        return "a loop of our own";
    if (!isfinite(w->record) || w->modelled)
        return "no record";
    if (over <= 0.05 * w->record)
        return over < -0.05 * w->record ? "faster than its record" : "";
    if (w->conversions >= 0.5 * over)
        return "layout conversion";
    if (w->calls - w->record * t->drift <= 0.3 * over && t->drift > 1.03)
        return t->r->result->throttled ? "clock: the processor throttled" : "clock or neighbours: all calls alike";
    if (over <= w->launch * 1.5)
        return "launch";
    if (isfinite(w->cold) && w->cold > w->record && w->calls <= w->cold * 1.1)
        return "cold operands";
    return t->r->cold && isfinite(w->cold) ? "unexplained" : "cold operands? no cold record";
}

static double bound_of(const bz_replay_report *r)
{
    if (!r->bound)
        return NAN;
    double v = r->bound->fused.wanted ? r->bound->fused.sequential : r->bound->sequential;
    return v > 0 ? v : (double)NAN;
}

static bool is_complete(const bz_replay_report *r)
{
    return r->bound && (r->bound->fused.wanted ? !r->bound->fused.unpriced && !r->bound->fused.missing
                                               : !r->bound->coverage.unpriced);
}

static double cold_sum(const table *t)
{
    double sum = 0;
    for (int i = 0; i < t->n; i++)
        if (t->row[i].unit->n_steps && t->row[i].record != 0)
            sum += t->row[i].cold;
    return t->r->cold ? sum : (double)NAN;
}

/* ---- for people ----------------------------------------------------------------------------- */

static void put_time(bz_buf *out, double seconds)
{
    bz_unit_text text;
    bz_buf_puts(out, bz_units_time(text, seconds));
}

static void put_bytes(bz_buf *out, double bytes)
{
    bz_unit_text text;
    bz_buf_puts(out, bz_units_bytes(text, bytes));
}

#define NOISY 0.05 /* width of the interval, of the median */

/* "(2 threads, f32)", "(2 streams, a graph, f16)" */
static void put_setting(const table *t, bz_buf *out)
{
    const bz_replay_plan *p = t->r->plan;
    int n = p->device ? p->streams : p->setting.threads;
    bz_buf_printf(out, "(%d %s%s", n, p->device ? "stream" : "thread", n == 1 ? "" : "s");
    if (t->r->result && t->r->result->graph)
        bz_buf_puts(out, ", as one graph");
    if (p->dtype)
        bz_buf_printf(out, ", %s", bz_dtype_name(p->dtype));
    bz_buf_putc(out, ')');
}

static void put_headline(const table *t, bz_buf *out)
{
    const bz_replay_plan *p = t->r->plan;
    const bz_replay_result *m = t->r->result;
    double bound = bound_of(t->r);
    bz_buf_clean(out, p->model);
    bz_buf_puts(out, ": ");
    if (!m || !isfinite(m->median)) {
        bz_buf_puts(out, m ? "ran once, not measured " : "planned, not run ");
        put_setting(t, out);
        bz_buf_putc(out, '\n');
        return;
    }
    put_time(out, m->median);
    bz_buf_printf(out, " back to back on %s ", *p->system ? p->system : "this machine");
    put_setting(t, out);
    if (isfinite(bound)) {
        bz_buf_printf(out, ", %.3g x the %s bound of %s", m->median / bound,
                      t->r->bound->fused.wanted ? "fused" : "as-written", is_complete(t->r) ? "" : "≥ ");
        put_time(out, bound);
    }
    bz_buf_printf(out, "\n  95 %% interval ");
    put_time(out, m->low);
    bz_buf_puts(out, " … ");
    put_time(out, m->high);
    bz_buf_puts(out, ", fastest ");
    put_time(out, m->min);
    bz_buf_printf(out, ", %d samples%s%s\n", m->samples, m->throttled ? "; the processor throttled" : "",
                  m->high - m->low > NOISY * m->median ? "; NOISY: the machine was busy with other things" : "");
}

static void put_plan(const table *t, bz_buf *out)
{
    const bz_replay_plan *p = t->r->plan;
    int calls = 0, loops = 0, views = 0;
    for (int i = 0; i < p->n_steps; i++)
        if (!p->step[i].once)
            *(p->step[i].kind == BZ_STEP_CALL ? &calls : p->step[i].kind == BZ_STEP_LOOP ? &loops : &views) += 1;
    bz_buf_printf(out, "  plan: %d calls, %d loops of our own, %d views; calls ", calls, loops, views);
    put_time(out, p->seconds);
    if (p->modelled)
        bz_buf_printf(out, " (%d of them guessed: no record)", p->modelled);
    bz_buf_printf(out, ", %d conversions ", p->n_conversions);
    put_time(out, p->conversions);
    if (p->streams > 1) {
        bz_buf_printf(out, "; on %d streams ", p->streams);
        put_time(out, p->scheduled);
    }
    bz_buf_puts(out, p->beam ? "; not all combinations of layouts were followed\n" : "\n");
}

static void put_sequence(const table *t, bz_buf *out)
{
    const bz_replay_result *m = t->r->result;
    bz_buf_printf(out, "  in sequence: %d calls ", t->n_calls);
    put_time(out, t->calls);
    bz_buf_printf(out, ", %d conversions ", t->n_conversions);
    put_time(out, t->conversions);
    bz_buf_printf(out, ", %d loops of our own ", t->n_loops);
    put_time(out, t->loops);
    if (isfinite(cold_sum(t))) {
        bz_buf_puts(out, "; the same calls with cold operands ");
        put_time(out, cold_sum(t));
    }
    bz_buf_puts(out, "\n  memory between the layers: ");
    put_bytes(out, m->peak);
    bz_buf_printf(out, ", %.3g x the least by liveness; weights ", m->least > 0 ? m->peak / m->least : 1);
    put_bytes(out, m->weights);
    bz_buf_puts(out, ", workspace ");
    put_bytes(out, m->scratch);
    bz_buf_putc(out, '\n');
    if (m->checked)
        bz_buf_printf(out, "  checked: %d calls against their definition, %d wrong\n", m->checked, m->wrong);
}

static int by_excess(const void *a, const void *b)
{
    const row *x = *(const row *const *)a, *y = *(const row *const *)b;
    double p = total(x) - (isfinite(x->record) ? x->record : 0), q = total(y) - (isfinite(y->record) ? y->record : 0);
    return p != q ? (p < q) - (p > q) : (x > y) - (x < y);
}

enum { ROWS = 20 };

static void put_rows(table *t, bz_buf *out)
{
    const row **order = BZ_NEW(&t->arena, const row *, (size_t)t->n + 1);
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (total(&t->row[i]) > 0)
            order[n++] = &t->row[i];
    qsort(order, (size_t)n, sizeof *order, by_excess);
    if (!n)
        return;
    bz_table *rows = bz_table_new(&t->arena);
    bz_table_column(rows, "record", BZ_RIGHT);
    bz_table_column(rows, "in sequence", BZ_RIGHT);
    bz_table_column(rows, "converting", BZ_RIGHT);
    bz_table_column(rows, "kind", BZ_LEFT);
    bz_table_column(rows, "layer", BZ_LEFT);
    bz_table_column(rows, "why it differs", BZ_LEFT);
    for (int i = 0; i < n && i < ROWS; i++) {
        const row *w = order[i];
        bz_unit_text text;
        bz_table_cell(rows, isfinite(w->record) && w->record > 0 ? bz_units_time(text, w->record) : "-", NULL);
        bz_table_cell(rows, bz_units_time(text, total(w)), NULL);
        bz_table_cell(rows, w->conversions > 0 ? bz_units_time(text, w->conversions) : "-", NULL);
        bz_table_cell(rows, w->unit->pattern ? w->unit->pattern : w->unit->kind, NULL);
        bz_table_cell(rows, w->unit->name, NULL);
        bz_table_cell(rows, reason(t, w), NULL);
    }
    bz_buf_putc(out, '\n');
    bz_table_print(rows, out);
    if (n > ROWS)
        bz_buf_printf(out, "  … %d more; --json has them all\n", n - ROWS);
}

static void put_wrong(const table *t, bz_buf *out)
{
    for (int i = 0; i < t->r->result->n; i++) {
        const bz_replay_action *a = &t->r->result->action[i];
        if (!a->wrong)
            continue;
        bz_buf_puts(out, "  WRONG: ");
        bz_buf_clean(out, a->step < 0 ? "output" : t->r->plan->step[a->step].name);
        bz_buf_printf(out, ": %d of %d elements; one is %g, not %g\n", a->wrong, a->elements, a->value, a->expected);
    }
}

void bz_replay_print(const bz_replay_report *r, bz_buf *out)
{
    table t;
    make_table(r, &t);
    put_headline(&t, out);
    put_plan(&t, out);
    if (r->result) {
        put_sequence(&t, out);
        put_wrong(&t, out);
        put_rows(&t, out);
    }
    bz_arena_free(&t.arena);
}

/* ---- for programs --------------------------------------------------------------------------- */

static void put_ends(const bz_replay_plan *p, const char *key, bool inputs, bz_json *j)
{
    bz_json_key(j, key);
    bz_json_array(j);
    for (int i = 0; i < p->n_values; i++) {
        const bz_replay_value *v = &p->value[i];
        if (inputs ? v->source != BZ_VALUE_INPUT : !v->output)
            continue;
        bz_json_object(j);
        bz_json_key_str(j, "name", v->name);
        bz_json_key_str(j, "dtype", bz_dtype_name(v->given));
        bz_json_key(j, "shape");
        bz_json_array(j);
        for (int k = 0; k < v->rank; k++)
            bz_json_int(j, v->dim[k]);
        bz_json_array_end(j);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

static void put_unit_json(const table *t, const row *w, bz_json *j)
{
    bz_json_object(j);
    bz_json_key_str(j, "name", w->unit->name);
    bz_json_key_str(j, "kind", w->unit->pattern ? w->unit->pattern : w->unit->kind);
    bz_json_key_num(j, "record", w->record);
    bz_json_key_num(j, "bound", w->unit->bound);
    bz_json_key_num(j, "cold", w->cold);
    bz_json_key_bool(j, "ours", w->loop_runs);
    if (t->r->result) {
        bz_json_key_num(j, "seconds", total(w));
        bz_json_key_num(j, "conversion", w->conversions);
        bz_json_key_str(j, "reason", reason(t, w));
        if (w->checked) {
            bz_json_key_int(j, "wrong", w->wrong);
            bz_json_key_num(j, "worst", w->worst);
        }
    }
    bz_json_object_end(j);
}

static void put_result_json(const table *t, bz_json *j)
{
    const bz_replay_result *m = t->r->result;
    bz_json_key_num(j, "latency", m->median);
    bz_json_key_num(j, "low", m->low);
    bz_json_key_num(j, "high", m->high);
    bz_json_key_num(j, "min", m->min);
    bz_json_key_int(j, "samples", m->samples);
    bz_json_key_bool(j, "throttled", m->throttled);
    bz_json_key_num(j, "ratio", m->median / bound_of(t->r));
    bz_json_key_num(j, "calls", t->calls);
    bz_json_key_num(j, "conversions", t->conversions);
    bz_json_key_num(j, "loops", t->loops);
    bz_json_key_num(j, "cold", cold_sum(t));
    bz_json_key_num(j, "opened", m->opened);
    bz_json_key_num(j, "peak", m->peak);
    bz_json_key_num(j, "least", m->least);
    bz_json_key_num(j, "weights", m->weights);
    bz_json_key_int(j, "checked", m->checked);
    bz_json_key_int(j, "wrong", m->wrong);
}

void bz_replay_print_json(const bz_replay_report *r, bz_buf *out)
{
    table t;
    make_table(r, &t);
    bz_json j = bz_json_to(out, true);
    j.flat = 3;
    bz_json_object(&j);
    bz_json_key_str(&j, "model", r->plan->model);
    bz_json_key_str(&j, "system", r->plan->system);
    bz_json_key_int(&j, "threads", r->plan->setting.threads);
    if (r->plan->device) {
        bz_json_key_int(&j, "streams", r->plan->streams);
        bz_json_key_bool(&j, "graph", r->result && r->result->graph);
        bz_json_key_num(&j, "scheduled", r->plan->scheduled);
    }
    bz_json_key_str(&j, "dtype", r->plan->dtype ? bz_dtype_name(r->plan->dtype) : "");
    bz_json_key_num(&j, "bound", bound_of(r));
    bz_json_key_bool(&j, "complete", is_complete(r));
    bz_json_key_num(&j, "planned", r->plan->seconds);
    bz_json_key_num(&j, "planned_conversions", r->plan->conversions);
    bz_json_key_int(&j, "guessed", r->plan->modelled);
    if (r->result)
        put_result_json(&t, &j);
    put_ends(r->plan, "inputs", true, &j);
    put_ends(r->plan, "outputs", false, &j);
    bz_json_key(&j, "layers");
    bz_json_array(&j);
    for (int i = 0; i < t.n; i++)
        if (t.row[i].unit->n_steps)
            put_unit_json(&t, &t.row[i], &j);
    bz_json_array_end(&j);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
    bz_arena_free(&t.arena);
}
