/* The replay held against its plan and the bound: for people, and as JSON. */
#include "base/member.h"
#include "base/sort.h"
#include "replay/constants.h"
#include "replay/table.h"
#include "training/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_complete(const bz_replay_report *r)
{
    return r->bound && !r->plan->n_left &&
           (r->bound->fused.wanted ? !r->bound->fused.unpriced && !r->bound->fused.missing
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

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* "(2 threads, f32)", "(2 streams, a graph, f16)" */
static void put_setting(const table *t, bz_buf *out)
{
    const bz_replay_plan *p = t->r->plan;
    int n = p->device ? p->streams : p->setting.threads;
    bz_buf_printf(out, "(%d %s%s", n, p->device ? "stream" : "thread", plural(n));
    if (t->r->result && t->r->result->graph)
        bz_buf_puts(out, ", as one graph");
    if (p->dtype)
        bz_buf_printf(out, ", %s", bz_dtype_name(p->dtype));
    bz_buf_putc(out, ')');
}

static void put_losses(const bz_replay_result *m, bz_buf *out)
{
    if (!m || !m->steps)
        return;
    bz_buf_printf(out, "loss %.6g in the first iteration of training, %.6g in the last of %d\n", m->loss[0],
                  m->loss[m->steps - 1], m->steps);
}

static void put_headline(const table *t, bz_buf *out)
{
    const bz_replay_plan *p = t->r->plan;
    const bz_replay_result *m = t->r->result;
    double bound = table_bound(t->r);
    bz_unit_text a, b, c;
    bz_buf_say(out, "%s: ", p->model);
    if (!m || !isfinite(m->median)) {
        bz_buf_puts(out, m ? "ran once, not measured " : "planned, not run ");
        put_setting(t, out);
        bz_buf_putc(out, '\n');
        return;
    }
    bz_buf_printf(out, "one run took %s on %s ", bz_units_time(a, m->median), *p->system ? p->system : "this machine");
    put_setting(t, out);
    if (m->median < bound)
        bz_buf_printf(out, ", less than the bound: this bound is wrong, it is %s", bz_units_time(a, bound));
    else if (isfinite(bound))
        bz_buf_printf(out, "; the %sbound is %s%s: %.3g × as long", t->r->bound->fused.wanted ? "fused " : "",
                      bz_bound_goal(t->r->bound).unpriced ? "≥ " : "", bz_units_time(a, bound), m->median / bound);
    else if (p->n_left)
        bz_buf_printf(out, "; without %d layer%s, so no bound is held against it", p->n_left, plural(p->n_left));
    else if (t->r->bound)
        bz_buf_puts(out, "; the bound is not known, because too many layers have no record");
    bz_buf_printf(out, "\n  95 %% interval %s … %s, fastest %s, %d samples%s%s\n", bz_units_time(a, m->low),
                  bz_units_time(b, m->high), bz_units_time(c, m->min), m->samples,
                  m->throttled ? "; the processor throttled" : "",
                  m->high - m->low > NOISY * m->median ? "; NOISY: the machine was busy with other things" : "");
}

static void put_plan(const table *t, bz_buf *out)
{
    const bz_replay_plan *p = t->r->plan;
    int calls = 0, loops = 0, views = 0;
    bz_unit_text time;
    for (int i = 0; i < p->n_steps; i++)
        if (!p->step[i].once)
            *(p->step[i].kind == BZ_STEP_CALL ? &calls : p->step[i].kind == BZ_STEP_LOOP ? &loops : &views) += 1;
    bz_buf_printf(out, "  plan: %d call%s, %d loop%s of our own, %d view%s; the calls take %s", calls, plural(calls),
                  loops, plural(loops), views, plural(views), bz_units_time(time, p->seconds));
    if (p->modelled)
        bz_buf_printf(out, " (%d of them guessed: no record)", p->modelled);
    if (p->streams > 1)
        bz_buf_printf(out, "; on %d streams %s", p->streams, bz_units_time(time, p->scheduled));
    if (!t->r->result && p->device)
        bz_buf_puts(out, "; conversions between layouts are known when the program has been built: '--time-limit 0' "
                         "builds it and counts them");
    else if (!t->r->result && !p->n_conversions)
        bz_buf_puts(out, "; no conversion between layouts is foreseen: '--time-limit 0' builds the program and counts");
    else if (!t->r->result)
        bz_buf_printf(out,
                      "; %d conversion%s between layouts foreseen, %s: '--time-limit 0' builds the program and counts",
                      p->n_conversions, plural(p->n_conversions), bz_units_time(time, p->conversions));
    bz_buf_puts(out, p->beam ? "; not all combinations of layouts were followed\n" : "\n");
}

/* Where the replay is over the bound, by what that goes to: the largest first. */
static void put_excess(const table *t, bz_buf *out)
{
    bool told[N_EXCESS] = {false};
    bz_unit_text time;
    double all = t->r->result->median - table_bound(t->r);
    if (!isfinite(all))
        return;
    bz_buf_printf(out, "  %s the bound by %s", all < 0 ? "below" : "over", bz_units_time(time, fabs(all)));
    for (int n = 0; n < N_EXCESS; n++) {
        int most = -1;
        for (int e = 0; e < N_EXCESS; e++)
            if (!told[e] && (most < 0 || fabs(t->excess[e]) > fabs(t->excess[most])))
                most = e;
        told[most] = true;
        if (!(fabs(t->excess[most]) >= LEAST_REASON * t->r->result->median))
            break;
        bz_buf_printf(out, "%s %s %s%s", n ? "," : ":", excess_name((excess)most), t->excess[most] < 0 ? "-" : "",
                      bz_units_time(time, fabs(t->excess[most])));
    }
    bz_buf_putc(out, '\n');
}

static void put_built(const table *t, bz_buf *out)
{
    bz_buf_printf(out, "  built: %d call%s, %d conversion%s, %d loop%s of our own\n", t->n_calls, plural(t->n_calls),
                  t->n_conversions, plural(t->n_conversions), t->n_loops, plural(t->n_loops));
}

static void put_sequence(const table *t, bz_buf *out)
{
    bz_unit_text a, b, c;
    bz_buf_printf(out, "  in sequence: %d call%s %s, %d conversion%s %s, %d loop%s of our own %s", t->n_calls,
                  plural(t->n_calls), bz_units_time(a, t->calls), t->n_conversions, plural(t->n_conversions),
                  bz_units_time(b, t->conversions), t->n_loops, plural(t->n_loops), bz_units_time(c, t->loops));
    if (isfinite(t->hot))
        bz_buf_printf(out, "\n  the same, each by itself: with what it needs in the caches %s",
                      bz_units_time(a, t->hot));
    if (isfinite(t->hot) && isfinite(t->flushed))
        bz_buf_printf(out, ", with none of it there %s", bz_units_time(a, t->flushed));
    if (!isfinite(t->hot) && isfinite(cold_sum(t)))
        bz_buf_printf(out, "; the same calls with cold operands %s", bz_units_time(a, cold_sum(t)));
    bz_buf_putc(out, '\n');
    put_excess(t, out);
}

static void put_opened(const table *t, bz_buf *out)
{
    const bz_replay_result *m = t->r->result;
    bz_unit_text a, b, c;
    bz_buf_printf(out, "  memory between the layers: %s, %.3g × the least by liveness; weights %s, workspace %s\n",
                  bz_units_bytes(a, m->peak), m->least > 0 ? m->peak / m->least : 1, bz_units_bytes(b, m->weights),
                  bz_units_bytes(c, m->scratch));
    if (m->checked)
        bz_buf_printf(out, "  checked: %d calls against their definition, %d wrong\n", m->checked, m->wrong);
}

static int by_excess(const void *a, const void *b)
{
    const row *x = *(const row *const *)a, *y = *(const row *const *)b;
    double p = row_total(x) - (isfinite(x->unit->bound) ? x->unit->bound : 0);
    double q = row_total(y) - (isfinite(y->unit->bound) ? y->unit->bound : 0);
    return BZ_THEN(BZ_ORDER(q, p), BZ_ORDER(x, y));
}

enum { ROWS = 20 };

static void put_cell(bz_table *rows, double seconds)
{
    bz_unit_text text;
    bz_table_cell(rows, isfinite(seconds) && seconds > 0 ? bz_units_time(text, seconds) : "-", NULL);
}

static void put_rows(table *t, bz_buf *out)
{
    const row **order = BZ_NEW(&t->arena, const row *, (size_t)t->n + 1);
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (row_total(&t->row[i]) > 0)
            order[n++] = &t->row[i];
    qsort(order, (size_t)n, sizeof *order, by_excess);
    if (!n)
        return;
    bz_table *rows = bz_table_of(&t->arena, ">bound|>record|>hot|>in sequence|>converting|kind|layer|why it differs");
    for (int i = 0; i < n && i < ROWS; i++) {
        const row *w = order[i];
        put_cell(rows, w->unit->bound);
        put_cell(rows, w->record);
        put_cell(rows, w->hot);
        put_cell(rows, row_total(w));
        put_cell(rows, w->conversions);
        bz_table_cell(rows, w->unit->pattern ? w->unit->pattern : w->unit->kind, NULL);
        bz_table_cell(rows, w->unit->name, NULL);
        bz_table_cell(rows, row_reason(t, w), NULL);
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
        bz_buf_say(out, "  WRONG: %s: %d of %d elements; one is %g, not %g\n",
                   a->step < 0 ? "output" : t->r->plan->step[a->step].name, a->wrong, a->elements, a->value,
                   a->expected);
    }
}

void bz_replay_print(const bz_replay_report *r, bz_buf *out)
{
    table t;
    table_make(r, &t);
    put_headline(&t, out);
    put_losses(r->result, out);
    put_plan(&t, out);
    if (r->result) {
        bool measured = isfinite(r->result->median);
        (measured ? put_sequence : put_built)(&t, out);
        put_opened(&t, out);
        put_wrong(&t, out);
        if (measured)
            put_rows(&t, out);
    }
    bz_arena_free(&t.arena);
}

/* Of an iteration of training: which weight an output is the gradient of, or which value it replaces. */
static void put_purpose(const bz_replay_plan *p, int i, bz_json *j)
{
    const bz_training *t = p->layers->training;
    for (int k = 0; t && k < t->n_weights; k++)
        if (t->weight[k].gradient >= 0 && !strcmp(t->model->values[t->weight[k].gradient].name, p->value[i].name))
            bz_json_key_str(j, "gradient_of", t->weight[k].name);
    for (int k = 0; k < p->n_values; k++)
        if (p->value[k].next == i + 1)
            bz_json_key_str(j, "replaces", p->value[k].name);
}

static void put_ends(const bz_replay_plan *p, const char *key, bool inputs, bz_json *j)
{
    bz_json_key_array(j, key);
    for (int i = -1; (i = bz_replay_next_end(p->value, p->n_values, inputs, i)) >= 0;) {
        const bz_replay_value *v = &p->value[i];
        bz_json_object(j);
        BZ_JSON(j, BZ_TELL("name", v->name), BZ_TELL("dtype", bz_dtype_name(v->given)));
        BZ_JSON_LIST(j, "shape", int, k, v->rank, v->dim[k]);
        if (!inputs)
            put_purpose(p, i, j);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

static void put_unit_json(const table *t, const row *w, bz_json *j)
{
    bz_json_object(j);
    BZ_JSON(j, BZ_TELL("name", w->unit->name), BZ_TELL("kind", w->unit->pattern ? w->unit->pattern : w->unit->kind),
            BZ_TELL("record", w->record), BZ_TELL("bound", w->unit->bound));
    BZ_PUT(j, row, w, cold, hot, flushed);
    bz_json_key_bool(j, "ours", w->loop_runs);
    if (t->r->result) {
        BZ_JSON(j, BZ_TELL("seconds", row_total(w)), BZ_TELL("conversion", w->conversions),
                BZ_TELL("reason", row_reason(t, w)));
        if (w->checked) {
            BZ_JSON(j, BZ_TELL("wrong", w->wrong), BZ_TELL("worst", w->worst));
        }
    }
    bz_json_object_end(j);
}

static const bz_member LOSSES[] = {BZ_MEMBER_LIST(bz_replay_result, loss, steps, "losses")};

static void put_result_json(const table *t, bz_json *j)
{
    const bz_replay_result *m = t->r->result;
    bool measured = isfinite(m->median);
    bz_json_key_num(j, "latency", m->median);
    BZ_PUT(j, bz_replay_result, m, low, high, min, samples, throttled);
    BZ_JSON(j, BZ_TELL("ratio", m->median < table_bound(t->r) ? NAN : m->median / table_bound(t->r)),
            BZ_TELL("calls", measured ? t->calls : NAN), BZ_TELL("conversions", measured ? t->conversions : NAN),
            BZ_TELL("n_conversions", t->n_conversions), BZ_TELL("loops", measured ? t->loops : NAN),
            BZ_TELL("cold", cold_sum(t)));
    BZ_PUT(j, table, t, hot, flushed);
    BZ_PUT(j, bz_replay_result, m, opened, peak, least, weights, checked, wrong);
    if (m->steps)
        bz_members_json(BZ_MEMBERS(LOSSES), m, j);
    BZ_JSON_NAMED(j, "excess", num, e, N_EXCESS, excess_name((excess)e), t->excess[e]);
}

void bz_replay_print_json(const bz_replay_report *r, bz_buf *out)
{
    table t;
    table_make(r, &t);
    bz_json j = bz_json_document_to(out, 3, "replay-report", 2);
    BZ_JSON(&j, BZ_TELL("model", r->plan->model), BZ_TELL("system", r->plan->system),
            BZ_TELL("threads", r->plan->setting.threads));
    if (r->plan->device) {
        BZ_JSON(&j, BZ_TELL("streams", r->plan->streams), BZ_TELL("graph", (bool)(r->result && r->result->graph)),
                BZ_TELL("scheduled", r->plan->scheduled));
    }
    BZ_JSON(&j, BZ_TELL("dtype", r->plan->dtype ? bz_dtype_name(r->plan->dtype) : ""), BZ_TELL("bound", table_bound(r)),
            BZ_TELL("complete", is_complete(r)), BZ_TELL("planned", r->plan->seconds),
            BZ_TELL("guessed", r->plan->modelled),
            BZ_TELL("foreseen", r->plan->device ? (double)NAN : r->plan->n_conversions));
    if (r->plan->n_left) {
        BZ_JSON(&j, BZ_TELL("left_out", r->plan->n_left), BZ_TELL("why_left_out", r->plan->left));
    }
    if (r->result)
        put_result_json(&t, &j);
    put_ends(r->plan, "inputs", true, &j);
    put_ends(r->plan, "outputs", false, &j);
    bz_json_key_array(&j, "layers");
    for (int i = 0; i < t.n; i++)
        if (t.row[i].unit->n_steps)
            put_unit_json(&t, &t.row[i], &j);
    bz_json_array_end(&j);
    bz_json_document_end(&j);
    bz_arena_free(&t.arena);
}
