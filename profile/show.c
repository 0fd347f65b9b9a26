/* A trace for people and as JSON: the answer first, then iterations, what took the time, the gaps, and
 * what the trace does not cover. */
#include "profile/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const ORIGINS[] = {"marked by the program", "marked by a range", "detected"};
static const char *const ORIGIN_NAMES[] = {"marked", "range", "detected"};
static const char *const LEVELS[] = {"note", "missing", "broken"};

static const char *level_name(const bz_trace *t, uint32_t level)
{
    return level == BZ_NONE ? "" : bz_string(t, t->level[level].name);
}

static void put_time(bz_table *table, double ns)
{
    bz_unit_text text;
    char plain[32];
    snprintf(plain, sizeof plain, "%.9f", ns / 1e9);
    bz_table_cell(table, bz_units_time(text, ns / 1e9), plain);
}

/* A time that may be one that nobody knows. */
static void put_known(bz_table *table, bool known, double ns)
{
    if (known)
        put_time(table, ns);
    else
        bz_table_cell(table, "-", NULL);
}

/* Logs tell what was called and not how long it took; and what was not recorded took a time that is not 0. */
static bool is_known(const bz_trace *t, int quantity)
{
    bz_event_kind of = (bz_event_kind)bz_quantities[quantity].of;
    return bz_trace_has_lengths(t) && (bz_quantities[quantity].of == BZ_EVENT_KINDS || t->event[of].n);
}

static void put_percent(bz_table *table, double share)
{
    bz_unit_text text;
    bz_table_cell(table, bz_units_percent(text, share), NULL);
}

/* Latencies of the steady iterations of one run of the program; n is 0 where the run has none. */
static bz_quantiles level_latency(const bz_level *l, bz_arena *arena)
{
    double *values;
    size_t n = bz_level_figures(l, BZ_FIGURE_LATENCY, arena, &values);
    return bz_quantiles_of(values, n);
}

static void print_answer(const bz_trace *t, const bz_summary *s, bz_arena *arena, bz_buf *out)
{
    bz_unit_text a, b, c;
    if (!t->n_iterations) {
        bz_buf_puts(out, "No iteration was found.\n");
        return;
    }
    /* what the time is held against: the device, else the libraries, else the operators */
    bool device = t->event[BZ_EVENT_KERNEL].n > 0, calls = t->event[BZ_EVENT_CALL].n > 0;
    int q = device ? 1 : calls ? 4 : 5;
    const bz_quantiles *latency = &s->of[0], *busy = &s->of[q];
    const char *what = device ? "device busy" : calls ? "in library calls" : "in operators";
    uint32_t whose = bz_quantity_run(t, 0), other = bz_quantity_run(t, q);
    uint32_t warm = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        warm += t->iteration[i].warm_up;
    bz_buf_printf(out, "%u iteration%s (%s), %u of them warm-up", t->n_iterations, t->n_iterations == 1 ? "" : "s",
                  ORIGINS[t->origin], warm);
    if (!bz_trace_has_lengths(t))
        bz_buf_puts(out, "; a log tells no times");
    else if (latency->max > 0) {
        double within = whose == other ? latency->p50 : level_latency(&t->level[other], arena).p50;
        bz_buf_printf(out, ": %s each (median%s%s)", bz_units_time(a, latency->p50 / 1e9), t->n_levels ? ", " : "",
                      level_name(t, whose));
        if (whose != other) /* a share is one of the same run */
            bz_buf_printf(out, "; %s %s", level_name(t, other), bz_units_time(b, within / 1e9));
        bz_buf_printf(out, ", %s %s, %s", what, bz_units_time(b, busy->p50 / 1e9),
                      bz_units_percent(c, within > 0 ? busy->p50 / within : 0));
    }
    if (s->behind && s->device_step.n)
        bz_buf_printf(out, "; the device works behind the host, its own step takes %s (median)",
                      bz_units_time(a, s->device_step.p50 / 1e9));
    bz_buf_puts(out, ".\n");
    bz_phases phases;
    if (bz_trace_phases(t, &phases)) {
        bz_phases_print(&phases, out);
        bz_buf_puts(out, ".\n");
    }
}

static void print_facts(const bz_trace *t, bz_buf *out)
{
    bz_buf_putc(out, '\n');
    for (uint32_t i = 0; i < t->n_sources; i++) {
        bz_buf_puts(out, "file              ");
        bz_buf_clean(out, bz_string(t, t->source[i].path));
        bz_buf_printf(out, " (%s, %lld events)\n", bz_string(t, t->source[i].format), (long long)t->source[i].events);
    }
    for (uint32_t i = 0; i < t->n_facts; i++) {
        bz_buf_printf(out, "%-16s  ", bz_string(t, t->fact[i].key));
        bz_buf_clean(out, bz_string(t, t->fact[i].value));
        bz_buf_putc(out, '\n');
    }
    bz_buf_puts(out, "events            ");
    const char *comma = "", *none = "none";
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        if (t->event[k].n) {
            bz_buf_printf(out, "%s%zu %s", comma, t->event[k].n, bz_event_kind_name((bz_event_kind)k));
            comma = ", ";
            none = "";
        }
    bz_buf_printf(out, "%s\n", none);
}

static void print_iterations(const bz_trace *t, const bz_summary *s, bz_arena *arena, bz_buf *out)
{
    if (!t->n_iterations)
        return;
    bool device = t->event[BZ_EVENT_KERNEL].n > 0;
    bz_table *table = bz_table_new(arena);
    bz_table_columns(table, "per iteration|>median|>min|>p90|>p99|>max|>mean");
    if (t->n_levels)
        bz_table_column(table, "of the run", BZ_LEFT);
    for (int q = 0; q < BZ_QUANTITIES; q++) {
        if (bz_quantities[q].of != BZ_EVENT_KINDS && !t->event[bz_quantities[q].of].n)
            continue;
        const bz_quantiles *v = &s->of[q];
        double cells[] = {v->p50, v->min, v->p90, v->p99, v->max, v->mean};
        bz_table_cell(table, bz_quantities[q].name, NULL);
        for (int i = 0; i < 6; i++)
            if (bz_quantities[q].count)
                bz_table_int(table, (int64_t)(cells[i] + 0.5));
            else
                put_known(table, is_known(t, q), cells[i]);
        if (t->n_levels)
            bz_table_cell(table, level_name(t, bz_quantity_run(t, q)), NULL);
    }
    bz_buf_putc(out, '\n');
    bz_table_print(table, out);
    bz_unit_text all, each;
    double run = (double)bz_trace_kernel_time(t) / 1e9;
    if (device)
        bz_buf_printf(out, "all kernels of the run, warm-up and set-up included: %s, %s per iteration\n",
                      bz_units_time(all, run), bz_units_time(each, run / t->n_iterations));
}

/* More than the program alone took, as a share of that. NAN where one of the two is not known. */
static double overhead(double took, double alone)
{
    return took > 0 && alone > 0 ? took / alone - 1 : NAN;
}

/* What recording costs. */
static void print_levels(const bz_trace *t, bz_arena *arena, bz_buf *out)
{
    if (!t->n_levels)
        return;
    bz_table *table = bz_table_new(arena);
    bz_table_columns(table, "run|>in all|>overhead|>iterations|>each (median)|>overhead");
    bz_quantiles alone = level_latency(&t->level[0], arena);
    for (uint32_t k = 0; k < t->n_levels; k++) {
        const bz_level *l = &t->level[k];
        bz_quantiles latency = level_latency(l, arena);
        double more[] = {overhead((double)l->wall, (double)t->level[0].wall), overhead(latency.p50, alone.p50)};
        const char *percent[2];
        for (int i = 0; i < 2; i++)
            percent[i] = k && isfinite(more[i]) ? bz_arena_printf(arena, "%+.1f %%", 100 * more[i]) : "-";
        bz_table_cell(table, bz_string(t, l->name), NULL);
        put_time(table, (double)l->wall);
        bz_table_cell(table, percent[0], NULL);
        bz_table_int(table, l->n_iterations);
        if (latency.n && latency.p50 > 0)
            put_time(table, latency.p50);
        else
            bz_table_cell(table, "-", NULL);
        bz_table_cell(table, percent[1], NULL);
    }
    bz_buf_putc(out, '\n');
    bz_table_print(table, out);
}

/* Total of the steady iterations, for shares: of the run that the events are of. */
static double total_latency(const bz_trace *t, const bz_summary *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        if (bz_iteration_is_steady(t, i))
            sum += (double)s->each[i].latency;
    return sum;
}

static void time_columns(bz_table *table, const bz_summary *s)
{
    bz_table_column(table, s->steady ? "times per iteration" : "times", BZ_RIGHT);
    bz_table_column(table, s->steady ? "time per iteration" : "time", BZ_RIGHT);
    bz_table_column(table, "of latency", BZ_RIGHT);
}

static void put_rows(bz_table *table, size_t n, int top, bz_buf *out)
{
    bz_buf_putc(out, '\n');
    bz_table_print(table, out);
    if (n > (size_t)top)
        bz_buf_printf(out, "… and %zu more: --top %zu\n", n - (size_t)top, n);
}

static void print_top(const bz_trace *t, const bz_summary *s, bz_event_kind kind, const char *title, int top,
                      bz_arena *arena, bz_buf *out)
{
    bz_top *rows;
    size_t n = bz_trace_top(t, arena, kind, &rows);
    if (!n)
        return;
    double latency = total_latency(t, s), per = s->steady ? s->steady : 1;
    bz_table *table = bz_table_new(arena);
    bz_table_column(table, title, BZ_LEFT);
    bool variants = false;
    for (size_t i = 0; i < n; i++)
        variants |= rows[i].variant != 0;
    if (variants)
        bz_table_column(table, "variant", BZ_LEFT);
    time_columns(table, s);
    for (size_t i = 0; i < n && i < (size_t)top; i++) {
        char name[100], times[32];
        snprintf(name, sizeof name, "%.96s", bz_string(t, rows[i].name));
        bz_table_cell(table, name, bz_string(t, rows[i].name));
        if (variants)
            bz_table_cell(table, bz_string(t, rows[i].variant), NULL);
        double count = (double)rows[i].count / per;
        snprintf(times, sizeof times, count == (double)(int64_t)count ? "%.0f" : "%.1f", count);
        bz_table_cell(table, times, NULL);
        bool known = rows[i].time > 0 || (kind != BZ_EVENT_CALL && bz_trace_has_lengths(t));
        put_known(table, known, (double)rows[i].time / per);
        if (known && latency > 0)
            put_percent(table, (double)rows[i].time / latency);
        else
            bz_table_cell(table, "-", NULL);
    }
    put_rows(table, n, top, out);
}

static void print_callers(const bz_trace *t, const bz_summary *s, int top, bz_arena *arena, bz_buf *out)
{
    bz_caller *rows;
    size_t n = bz_trace_callers(t, arena, &rows);
    if (!n)
        return;
    double latency = total_latency(t, s), per = s->steady ? s->steady : 1;
    bz_table *table = bz_table_new(arena);
    bz_table_columns(table, "asked for by|library call");
    time_columns(table, s);
    for (size_t i = 0; i < n && i < (size_t)top; i++) {
        char text[32], caller[100];
        snprintf(caller, sizeof caller, "%.96s", bz_string(t, rows[i].caller));
        bz_table_cell(table, caller, NULL);
        bz_table_cell(table, bz_string(t, rows[i].name), NULL);
        snprintf(text, sizeof text, "%.1f", (double)rows[i].count / per);
        bz_table_cell(table, text, NULL);
        put_time(table, (double)rows[i].time / per);
        put_percent(table, latency > 0 ? (double)rows[i].time / latency : 0);
    }
    put_rows(table, n, top, out);
}

static void print_gaps(const bz_trace *t, const bz_summary *s, int top, bz_arena *arena, bz_buf *out)
{
    bz_gap *rows;
    size_t n = bz_trace_gaps(t, arena, &rows);
    if (!n || !t->n_iterations || !bz_trace_has_lengths(t))
        return;
    double per = s->steady ? s->steady : 1;
    bz_table *table = bz_table_new(arena);
    bz_table_columns(table, "idle after|before|>times per iteration|>time per iteration");
    for (size_t i = 0; i < n && i < (size_t)top; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.60s", bz_string(t, rows[i].before));
        bz_table_cell(table, text, NULL);
        snprintf(text, sizeof text, "%.60s", bz_string(t, rows[i].after));
        bz_table_cell(table, text, NULL);
        snprintf(text, sizeof text, "%.1f", (double)rows[i].count / per);
        bz_table_cell(table, text, NULL);
        put_time(table, (double)rows[i].time / per);
    }
    bz_buf_putc(out, '\n');
    bz_table_print(table, out);
}

void bz_trace_print(const bz_trace *t, int top, bz_buf *out)
{
    bz_arena arena = {0};
    bz_summary s;
    bz_summary_make(t, &arena, &s);
    print_answer(t, &s, &arena, out);
    print_facts(t, out);
    print_levels(t, &arena, out);
    print_iterations(t, &s, &arena, out);
    print_top(t, &s, BZ_EVENT_CALL, "library call", top, &arena, out);
    print_top(t, &s, BZ_EVENT_KERNEL, "kernel", top, &arena, out);
    if (!t->event[BZ_EVENT_CALL].n)
        print_top(t, &s, BZ_EVENT_OP, "operator", top, &arena, out);
    print_callers(t, &s, top, &arena, out);
    print_gaps(t, &s, top, &arena, out);
    if (t->n_coverage)
        bz_buf_puts(out, "\ncoverage\n");
    for (uint32_t i = 0; i < t->n_coverage; i++) {
        bz_buf_printf(out, "  %-7s  ", LEVELS[t->coverage[i].level]);
        if (t->n_sources > 1 && t->coverage[i].source != BZ_NONE) {
            bz_buf_clean(out, bz_string(t, t->source[t->coverage[i].source].path));
            bz_buf_puts(out, ": ");
        }
        bz_buf_clean(out, bz_string(t, t->coverage[i].text));
        bz_buf_putc(out, '\n');
    }
    bz_arena_free(&arena);
}

/* Traces count nanoseconds, documents seconds. */
static void key_seconds(bz_json *j, const char *key, int64_t nanoseconds)
{
    bz_json_key_num(j, key, (double)nanoseconds / 1e9);
}

/* `run`: which one they are of; NULL: the program ran once. `count`: they are numbers, no times. */
static void json_quantiles(bz_json *j, const bz_quantiles *q, bool count, const char *run)
{
    const struct {
        const char *key;
        double v;
    } MEMBERS[] = {{"p50", q->p50}, {"min", q->min}, {"p90", q->p90},
                   {"p99", q->p99}, {"max", q->max}, {"mean", q->mean}};
    bz_json_object(j);
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++)
        bz_json_key_num(j, MEMBERS[i].key, count ? MEMBERS[i].v : MEMBERS[i].v / 1e9);
    if (run)
        bz_json_key_str(j, "run", run);
    bz_json_object_end(j);
}

/* An array that is empty where the program ran once. */
static void json_levels(const bz_trace *t, bz_json *j, bz_arena *arena)
{
    bz_json_key_array(j, "runs");
    for (uint32_t k = 0; k < t->n_levels; k++) {
        const bz_level *l = &t->level[k];
        bz_quantiles latency = level_latency(l, arena), alone = level_latency(&t->level[0], arena);
        bz_json_object(j);
        bz_json_key_str(j, "name", bz_string(t, l->name));
        bz_json_key_bool(j, "own", k == t->own_level);
        key_seconds(j, "wall", l->wall);
        bz_json_key_num(j, "wall_overhead", overhead((double)l->wall, (double)t->level[0].wall));
        bz_json_key_int(j, "iterations", l->n_iterations);
        bz_json_key(j, "latency");
        if (latency.n)
            json_quantiles(j, &latency, false, NULL);
        else
            bz_json_null(j);
        bz_json_key_num(j, "latency_overhead", overhead(latency.p50, alone.p50));
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

static void key_known(bz_json *j, const char *key, bool known, int64_t nanoseconds)
{
    bz_json_key_num(j, key, known ? (double)nanoseconds / 1e9 : NAN);
}

static void json_top(const bz_trace *t, bz_json *j, const char *key, bz_event_kind kind, int top, bz_arena *arena)
{
    bz_top *rows;
    size_t n = bz_trace_top(t, arena, kind, &rows);
    bz_json_key_array(j, key);
    for (size_t i = 0; i < n && i < (size_t)top; i++) {
        bz_json_object(j);
        bz_json_key_str(j, "name", bz_string(t, rows[i].name));
        if (rows[i].variant)
            bz_json_key_str(j, "variant", bz_string(t, rows[i].variant));
        bz_json_key_int(j, "count", rows[i].count);
        key_known(j, "seconds", rows[i].time > 0 || (kind != BZ_EVENT_CALL && bz_trace_has_lengths(t)), rows[i].time);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

static void json_callers(const bz_trace *t, bz_json *j, int top, bz_arena *arena)
{
    bz_caller *rows;
    size_t n = bz_trace_callers(t, arena, &rows);
    bz_json_key_array(j, "callers");
    for (size_t i = 0; i < n && i < (size_t)top; i++) {
        bz_json_object(j);
        bz_json_key_str(j, "caller", bz_string(t, rows[i].caller));
        bz_json_key_str(j, "name", bz_string(t, rows[i].name));
        bz_json_key_int(j, "count", rows[i].count);
        key_seconds(j, "seconds", rows[i].time);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

static void json_iterations(const bz_trace *t, const bz_summary *s, bz_json *j)
{
    bz_json_key_object(j, "iterations");
    bz_json_key_int(j, "count", t->n_iterations);
    uint32_t warm = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        warm += t->iteration[i].warm_up;
    bz_json_key_int(j, "warm_up", warm);
    bz_json_key_str(j, "origin", t->n_iterations ? ORIGIN_NAMES[t->origin] : NULL);
    key_known(j, "run_kernel_time", t->event[BZ_EVENT_KERNEL].n > 0, bz_trace_kernel_time(t));
    bz_phases phases;
    bz_json_key(j, "phases");
    if (bz_trace_phases(t, &phases)) {
        bz_json_object(j);
        bz_json_key_int(j, "prompts", phases.prompts);
        bz_json_key_int(j, "steps", phases.steps);
        bz_json_key_int(j, "prompt_tokens", phases.prompt_tokens);
        bz_json_key_int(j, "batch", phases.batch);
        bz_json_key_num(j, "prefill", phases.prompts ? phases.prefill : NAN);
        bz_json_key_num(j, "decode", phases.decode);
        bz_json_key_num(j, "tokens_per_second", phases.rate > 0 ? phases.rate : NAN);
        bz_json_object_end(j);
    } else {
        bz_json_null(j);
    }
    bz_json_key_object(j, "steady");
    for (int q = 0; q < BZ_QUANTITIES; q++) {
        bz_json_key(j, bz_quantities[q].json);
        if (!bz_quantities[q].count && !is_known(t, q))
            bz_json_null(j);
        else
            json_quantiles(j, &s->of[q], bz_quantities[q].count,
                           bz_quantity_run(t, q) == BZ_NONE ? NULL : level_name(t, bz_quantity_run(t, q)));
    }
    bz_json_object_end(j);
    bz_json_key_array(j, "each");
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        bz_json_object(j);
        key_seconds(j, "start", t->iteration[i].start);
        key_seconds(j, "begin", bz_iteration_begin(t, i)); /* of the latency: later where work queued */
        bz_json_key_bool(j, "warm_up", t->iteration[i].warm_up);
        bz_json_key_str(j, "phase", bz_step_phase_name(t->iteration[i].phase));
        bz_json_key_int(j, "tokens", t->iteration[i].tokens);
        for (int q = 0; q < BZ_QUANTITIES; q++)
            if (bz_quantities[q].count)
                bz_json_key_int(j, bz_quantities[q].json, bz_quantity_of(&s->each[i], q));
            else
                key_known(j, bz_quantities[q].json, is_known(t, q), bz_quantity_of(&s->each[i], q));
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

void bz_trace_json(const bz_trace *t, int top, bz_buf *out)
{
    bz_arena arena = {0};
    bz_summary s;
    bz_summary_make(t, &arena, &s);
    bz_json j = bz_json_to(out, true);
    bz_json_document(&j, "profile", 1);
    bz_json_key_array(&j, "files");
    for (uint32_t i = 0; i < t->n_sources; i++) {
        bz_json_object(&j);
        bz_json_key_str(&j, "path", bz_string(t, t->source[i].path));
        bz_json_key_str(&j, "format", bz_string(t, t->source[i].format));
        bz_json_key_int(&j, "events", t->source[i].events);
        bz_json_key_bool(&j, "truncated", t->source[i].truncated);
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    bz_json_key_array(&j, "facts");
    for (uint32_t i = 0; i < t->n_facts; i++) {
        bz_json_object(&j);
        bz_json_key_str(&j, "key", bz_string(t, t->fact[i].key));
        bz_json_key_str(&j, "value", bz_string(t, t->fact[i].value));
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    bz_json_key_object(&j, "events");
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        bz_json_key_int(&j, bz_event_kind_name((bz_event_kind)k), (int64_t)t->event[k].n);
    bz_json_object_end(&j);
    json_levels(t, &j, &arena);
    json_iterations(t, &s, &j);
    json_top(t, &j, "calls", BZ_EVENT_CALL, top, &arena);
    json_top(t, &j, "kernels", BZ_EVENT_KERNEL, top, &arena);
    json_top(t, &j, "operators", BZ_EVENT_OP, top, &arena);
    json_callers(t, &j, top, &arena);
    bz_gap *gaps;
    size_t n = bz_trace_has_lengths(t) ? bz_trace_gaps(t, &arena, &gaps) : 0;
    bz_json_key_array(&j, "gaps");
    for (size_t i = 0; i < n && i < (size_t)top; i++) {
        bz_json_object(&j);
        bz_json_key_str(&j, "after", bz_string(t, gaps[i].before));
        bz_json_key_str(&j, "before", bz_string(t, gaps[i].after));
        bz_json_key_int(&j, "count", gaps[i].count);
        key_seconds(&j, "seconds", gaps[i].time);
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    bz_json_key_array(&j, "coverage");
    for (uint32_t i = 0; i < t->n_coverage; i++) {
        bz_json_object(&j);
        bz_json_key_str(&j, "level", LEVELS[t->coverage[i].level]);
        if (t->coverage[i].source != BZ_NONE)
            bz_json_key_str(&j, "file", bz_string(t, t->source[t->coverage[i].source].path));
        bz_json_key_str(&j, "text", bz_string(t, t->coverage[i].text));
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
    bz_arena_free(&arena);
}
