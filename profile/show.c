/* A trace for people and as JSON: the answer first, then iterations, what took the time, the gaps, and
 * what the trace does not cover. */
#include "base/beside.h"
#include "base/member.h"
#include "profile/profile.h"

#include <math.h>

static const char *const ORIGINS[] = {"marked by the program", "marked by a range", "detected"};
static const char *const ORIGIN_NAMES[] = {"marked", "range", "detected"};

static const char *level_name(const bz_trace *t, uint32_t level)
{
    return level == BZ_NONE ? "" : bz_string(t, t->level[level].name);
}

/* How long iterations took that ranges marked is known, whatever was recorded within them. */
static bool has_latency(const bz_trace *t)
{
    bool known = bz_trace_has_lengths(t);
    for (uint32_t i = 0; i < t->n_iterations && !known && t->origin != BZ_ITERATION_DETECTED; i++)
        known = t->iteration[i].end > bz_iteration_begin(t, i);
    return known;
}

/* Logs tell what was called and not how long it took; and what was not recorded took a time that is not 0. */
static bool is_known(const bz_trace *t, int quantity)
{
    if (!quantity) /* the latency */
        return has_latency(t);
    bz_event_kind of = (bz_event_kind)bz_quantities[quantity].of;
    return bz_trace_has_lengths(t) && (bz_quantities[quantity].of == BZ_EVENT_KINDS || t->event[of].n);
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
    if (!bz_trace_has_lengths(t) && has_latency(t))
        bz_buf_printf(out, ": %s each (median)", bz_units_time(a, latency->p50 / 1e9));
    if (!bz_trace_has_lengths(t))
        bz_buf_puts(out, t->source[0].log ? "; a log tells no times"
                                          : "; ranges alone were recorded: no operator, library call or kernel");
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
    for (uint32_t i = 0; i < t->n_sources; i++)
        bz_buf_say(out, "file              %s (%s, %lld events)\n", bz_string(t, t->source[i].path),
                   bz_string(t, t->source[i].format), (long long)t->source[i].events);
    for (uint32_t i = 0; i < t->n_facts; i++) {
        bz_buf_printf(out, "%-16s  ", bz_string(t, t->fact[i].key));
        bz_buf_say(out, "%s\n", bz_string(t, t->fact[i].value));
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
    bz_table *table = bz_table_of(arena, "per iteration|>median|>min|>p90|>p99|>max|>mean");
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
                BZ_ROW(table, BZ_SHOW_TIME(is_known(t, q) ? cells[i] / 1e9 : NAN));
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
    int devices = bz_trace_devices(t);
    if (devices > 1)
        bz_buf_printf(out,
                      "%d devices worked: they are busy while any of them is; times of kernels and copies are summed "
                      "over them\n",
                      devices);
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
    bz_table *table = bz_table_of(arena, "run|>in all|>overhead|>iterations|>each (median)|>overhead");
    bz_quantiles alone = level_latency(&t->level[0], arena);
    for (uint32_t k = 0; k < t->n_levels; k++) {
        const bz_level *l = &t->level[k];
        bz_quantiles latency = level_latency(l, arena);
        double more[] = {overhead((double)l->wall, (double)t->level[0].wall), overhead(latency.p50, alone.p50)};
        const char *percent[2];
        for (int i = 0; i < 2; i++)
            percent[i] = k && isfinite(more[i]) ? bz_arena_printf(arena, "%+.1f %%", 100 * more[i]) : "-";
        BZ_ROW(table, BZ_SHOW(bz_string(t, l->name)), BZ_SHOW_TIME((double)l->wall / 1e9), BZ_SHOW(percent[0]),
               BZ_SHOW_INT(l->n_iterations), BZ_SHOW_TIME(latency.n && latency.p50 > 0 ? latency.p50 / 1e9 : NAN),
               BZ_SHOW(percent[1]));
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

/* Rows as they are told: times in seconds, NAN where nobody knows. */
typedef struct told_top {
    const char *name, *beside; /* beside: NULL where there is none */
    int64_t count;
    double seconds;
} told_top;

typedef struct told_tops {
    told_top *row;
    int n, all; /* told; how many there are */
    bool beside;
} told_tops;

static told_tops tell_tops(const bz_trace *t, const bz_top *row, size_t n, int top, bool calls, bz_arena *arena)
{
    told_tops told = {BZ_NEW(arena, told_top, n), n < (size_t)top ? (int)n : top, (int)n, false};
    for (size_t i = 0; i < n; i++) {
        bool known = row[i].time > 0 || (!calls && bz_trace_has_lengths(t));
        told.row[i] = (told_top){bz_string(t, row[i].name), row[i].beside ? bz_string(t, row[i].beside) : NULL,
                                 row[i].count, known ? (double)row[i].time / 1e9 : (double)NAN};
        told.beside |= row[i].beside != 0;
    }
    return told;
}

/* `known`: of one of the kinds. */
static told_tops tell_events(const bz_trace *t, const bz_tops *known, bz_event_kind kind, int top, bz_arena *arena)
{
    bz_top *row = known->event;
    size_t n = kind == known->kind ? known->n_events : bz_trace_top(t, arena, kind, &row);
    return tell_tops(t, row, n, top, kind == BZ_EVENT_CALL, arena);
}

/* Seconds that shares are of: of each device the latency, where they work. Streams and threads that work at the same time may take longer than that:
 * what they take is then told as a share of all that is told. */
static double columns(bz_table *table, const bz_trace *t, const bz_summary *s, const told_tops *told, int devices)
{
    double latency = total_latency(t, s) / 1e9 * devices, sum = 0, most = 0;
    for (int i = 0; i < told->all; i++) {
        double seconds = told->row[i].seconds;
        sum += seconds > 0 ? seconds : 0;
        most = seconds > most ? seconds : most;
    }
    bool beside = latency > 0 && most > latency;
    bz_table_column(table, s->steady ? "times per iteration" : "times", BZ_RIGHT);
    bz_table_column(table, s->steady ? "time per iteration" : "time", BZ_RIGHT);
    bz_table_column(table,
                    beside        ? "of all of them"
                    : devices > 1 ? "of all devices' latency"
                                  : "of latency",
                    BZ_RIGHT);
    return beside ? sum : latency > 0 ? latency : NAN;
}

static told_tops tell_callers(const bz_trace *t, int top, bz_arena *arena)
{
    bz_top *row;
    size_t n = bz_trace_callers(t, arena, &row);
    return tell_tops(t, row, n, top, false, arena);
}

static told_tops tell_gaps(const bz_trace *t, const bz_tops *known, int top, bz_arena *arena)
{
    size_t n = bz_trace_has_lengths(t) ? known->n_gaps : 0;
    return n ? tell_tops(t, known->gap, n, top, false, arena) : (told_tops){0};
}

/* `width`: of a name, in bytes; CSV has all of it. */
static void put_name(bz_table *table, const char *name, int width, bz_arena *arena)
{
    bz_table_cell(table, bz_arena_printf(arena, "%.*s", width, name), name);
}

static void put_tops(bz_table *table, const told_tops *told, bool more, bz_buf *out)
{
    bz_buf_putc(out, '\n');
    bz_table_print(table, out);
    if (more && told->all > told->n)
        bz_buf_printf(out, "… and %d more: --top %d\n", told->all - told->n, told->all);
}

static void print_top(const bz_trace *t, const bz_summary *s, const bz_tops *known, bz_event_kind kind,
                      const char *title, int top, bz_arena *arena, bz_buf *out)
{
    const told_tops told = tell_events(t, known, kind, top, arena);
    double per = s->steady ? s->steady : 1;
    bz_table *table = bz_table_new(arena);
    bz_table_column(table, title, BZ_LEFT);
    if (told.beside)
        bz_table_column(table, "variant", BZ_LEFT);
    double whole = columns(table, t, s, &told, kind == BZ_EVENT_KERNEL && told.all ? bz_trace_devices(t) : 1);
    for (int i = 0; i < told.n; i++) {
        const told_top *row = &told.row[i];
        double count = (double)row->count / per;
        put_name(table, row->name, 96, arena);
        if (told.beside)
            bz_table_cell(table, row->beside ? row->beside : "", NULL);
        BZ_ROW(table, BZ_SHOW(bz_arena_printf(arena, count == (double)(int64_t)count ? "%.0f" : "%.1f", count)),
               BZ_SHOW_TIME(row->seconds / per), BZ_SHOW_SHARE(row->seconds / whole));
    }
    if (told.all)
        put_tops(table, &told, true, out);
}

static void print_callers(const bz_trace *t, const bz_summary *s, int top, bz_arena *arena, bz_buf *out)
{
    const told_tops told = tell_callers(t, top, arena);
    double per = s->steady ? s->steady : 1;
    bz_table *table = bz_table_of(arena, "asked for by|library call");
    double whole = columns(table, t, s, &told, 1);
    for (int i = 0; i < told.n; i++) {
        const told_top *row = &told.row[i];
        put_name(table, row->name, 96, arena);
        BZ_ROW(table, BZ_SHOW(row->beside), BZ_SHOW(bz_arena_printf(arena, "%.1f", (double)row->count / per)),
               BZ_SHOW_TIME(row->seconds / per), BZ_SHOW_SHARE(row->seconds / whole));
    }
    if (told.all)
        put_tops(table, &told, true, out);
}

static void print_gaps(const bz_trace *t, const bz_summary *s, const bz_tops *known, int top, bz_arena *arena,
                       bz_buf *out)
{
    const told_tops told = tell_gaps(t, known, top, arena);
    double per = s->steady ? s->steady : 1;
    bz_table *table = bz_table_of(arena, "idle after|before|>times per iteration|>time per iteration");
    for (int i = 0; i < told.n; i++) {
        const told_top *row = &told.row[i];
        put_name(table, row->name, 60, arena);
        put_name(table, row->beside ? row->beside : "", 60, arena);
        BZ_ROW(table, BZ_SHOW(bz_arena_printf(arena, "%.1f", (double)row->count / per)),
               BZ_SHOW_TIME(row->seconds / per));
    }
    if (told.all && t->n_iterations)
        put_tops(table, &told, false, out);
}

/* What takes long, found while the summary is made. */
typedef struct {
    const bz_trace *trace;
    bz_arena arena;
    bz_tops found;
} tops_beside;

static void *find_tops(void *with)
{
    tops_beside *tops = with;
    tops->found = bz_trace_tops(tops->trace, &tops->arena);
    return NULL;
}

void bz_trace_print(const bz_trace *t, int top, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    tops_beside tops = {.trace = t};
    bz_beside thread = bz_beside_start(t->event[BZ_EVENT_KERNEL].n, find_tops, &tops);
    bz_summary s;
    bz_summary_make(t, &arena, &s);
    print_answer(t, &s, &arena, out);
    print_facts(t, out);
    print_levels(t, &arena, out);
    print_iterations(t, &s, &arena, out);
    bz_beside_end(&thread);
    print_top(t, &s, &tops.found, BZ_EVENT_CALL, "library call", top, &arena, out);
    print_top(t, &s, &tops.found, BZ_EVENT_KERNEL, "kernel", top, &arena, out);
    if (!t->event[BZ_EVENT_CALL].n)
        print_top(t, &s, &tops.found, BZ_EVENT_OP, "operator", top, &arena, out);
    print_callers(t, &s, top, &arena, out);
    print_gaps(t, &s, &tops.found, top, &arena, out);
    if (t->n_coverage)
        bz_buf_puts(out, "\ncoverage\n");
    for (uint32_t i = 0; i < t->n_coverage; i++) {
        bz_buf_printf(out, "  %-7s  ", bz_coverage_level_name(t->coverage[i].level));
        if (t->n_sources > 1 && t->coverage[i].source != BZ_NONE)
            bz_buf_say(out, "%s: ", bz_string(t, t->source[t->coverage[i].source].path));
        bz_buf_say(out, "%s\n", bz_string(t, t->coverage[i].text));
    }
    bz_arena_free(&tops.arena);
}

static const bz_member QUANTILES[] = {BZ_FIELDS(bz_quantiles, p50, min, p90, p99, max, mean)};

/* Traces count nanoseconds, documents seconds. */
static bz_quantiles in_seconds(const bz_quantiles *q)
{
    return (bz_quantiles){.n = q->n,
                          .p50 = q->p50 / 1e9,
                          .min = q->min / 1e9,
                          .p90 = q->p90 / 1e9,
                          .p99 = q->p99 / 1e9,
                          .max = q->max / 1e9,
                          .mean = q->mean / 1e9};
}

static void key_known(bz_json *j, const char *key, bool known, int64_t nanoseconds)
{
    bz_json_key_num(j, key, known ? (double)nanoseconds / 1e9 : NAN);
}

/* An array that is empty where the program ran once. */
static void json_levels(const bz_trace *t, bz_json *j, bz_arena *arena)
{
    BZ_JSON_EACH (j, "runs", k, t->n_levels) {
        const bz_level *l = &t->level[k];
        bz_quantiles latency = level_latency(l, arena), alone = level_latency(&t->level[0], arena);
        bz_quantiles told = in_seconds(&latency);
        BZ_JSON(j, BZ_TELL("name", bz_string(t, l->name)), BZ_TELL("own", (bool)(k == t->own_level)));
        key_known(j, "wall", true, l->wall);
        BZ_JSON(j, BZ_TELL("wall_overhead", overhead((double)l->wall, (double)t->level[0].wall)),
                BZ_TELL("iterations", l->n_iterations));
        if (latency.n)
            bz_members_object("latency", BZ_MEMBERS(QUANTILES), &told, j);
        else
            bz_json_key_str(j, "latency", NULL);
        bz_json_key_num(j, "latency_overhead", overhead(latency.p50, alone.p50));
    }
}

static const bz_member PHASES[] = {
    BZ_FIELDS(bz_phases, prompts, steps, prompt_tokens, batch, prefill, decode),
    BZ_MEMBER_AS(bz_phases, rate, "tokens_per_second"),
};

/* Null where nobody knows it; of several runs with the one that it is of. */
static void json_quantity(const bz_trace *t, const bz_summary *s, int q, bz_json *j)
{
    bool count = bz_quantities[q].count;
    uint32_t run = bz_quantity_run(t, q);
    bz_quantiles told = count ? s->of[q] : in_seconds(&s->of[q]);
    bz_json_key(j, bz_quantities[q].json);
    if (!count && !is_known(t, q)) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    bz_members_json(BZ_MEMBERS(QUANTILES), &told, j);
    if (run != BZ_NONE)
        bz_json_key_str(j, "run", level_name(t, run));
    bz_json_object_end(j);
}

static void json_iterations(const bz_trace *t, const bz_summary *s, bz_json *j)
{
    bz_json_key_object(j, "iterations");
    bz_json_key_int(j, "count", t->n_iterations);
    uint32_t warm = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        warm += t->iteration[i].warm_up;
    BZ_JSON(j, BZ_TELL("warm_up", warm), BZ_TELL("origin", t->n_iterations ? ORIGIN_NAMES[t->origin] : NULL));
    key_known(j, "run_kernel_time", t->event[BZ_EVENT_KERNEL].n > 0, bz_trace_kernel_time(t));
    bz_phases phases;
    if (bz_trace_phases(t, &phases)) {
        phases.prefill = phases.prompts ? phases.prefill : NAN;
        phases.rate = phases.rate > 0 ? phases.rate : NAN;
        bz_members_object("phases", BZ_MEMBERS(PHASES), &phases, j);
    } else {
        bz_json_key(j, "phases");
        bz_json_null(j);
    }
    bz_json_key_object(j, "steady");
    for (int q = 0; q < BZ_QUANTITIES; q++)
        json_quantity(t, s, q, j);
    bz_json_object_end(j);
    bool known[BZ_QUANTITIES]; /* asked of once: it may take a look at all events */
    for (int q = 0; q < BZ_QUANTITIES; q++)
        known[q] = is_known(t, q);
    BZ_JSON_EACH (j, "each", i, t->n_iterations) {
        key_known(j, "start", true, t->iteration[i].start);
        key_known(j, "begin", true, bz_iteration_begin(t, i)); /* of the latency: later where work queued */
        BZ_JSON(j, BZ_TELL("warm_up", t->iteration[i].warm_up),
                BZ_TELL("phase", bz_step_phase_name(t->iteration[i].phase)), BZ_TELL("tokens", t->iteration[i].tokens));
        for (int q = 0; q < BZ_QUANTITIES; q++)
            if (bz_quantities[q].count)
                bz_json_key_int(j, bz_quantities[q].json, bz_quantity_of(&s->each[i], q));
            else
                key_known(j, bz_quantities[q].json, known[q], bz_quantity_of(&s->each[i], q));
    }
    bz_json_object_end(j);
}

static void json_files(const bz_trace *t, bz_json *j)
{
    BZ_JSON_EACH (j, "files", i, t->n_sources) {
        BZ_JSON(j, BZ_TELL("path", bz_string(t, t->source[i].path)),
                BZ_TELL("format", bz_string(t, t->source[i].format)), BZ_TELL("events", t->source[i].events),
                BZ_TELL("truncated", t->source[i].truncated));
    }
    BZ_JSON_EACH (j, "facts", i, t->n_facts) {
        BZ_JSON(j, BZ_TELL("key", bz_string(t, t->fact[i].key)), BZ_TELL("value", bz_string(t, t->fact[i].value)));
    }
    BZ_JSON_NAMED(j, "events", int, k, BZ_EVENT_KINDS, bz_event_kind_name((bz_event_kind)k), (int64_t)t->event[k].n);
}

static bool has_variant(const void *row)
{
    return ((const told_top *)row)->beside != NULL;
}

static const bz_member VARIANT[] = {BZ_MEMBER_AS(told_top, beside, "variant")};
static const bz_member EVENT[] = {BZ_MEMBER(told_top, name), BZ_MEMBERS_WHERE(has_variant, VARIANT),
                                  BZ_FIELDS(told_top, count, seconds)};
static const bz_member CALLER[] = {BZ_MEMBER_AS(told_top, name, "caller"), BZ_MEMBER_AS(told_top, beside, "name"),
                                   BZ_FIELDS(told_top, count, seconds)};
static const bz_member GAP[] = {BZ_MEMBER_AS(told_top, name, "after"), BZ_MEMBER_AS(told_top, beside, "before"),
                                BZ_FIELDS(told_top, count, seconds)};

static void json_tops(const char *key, const bz_member member[4], told_tops told, bz_json *j)
{
    bz_members_rows(key, member, 4, told.row, sizeof *told.row, told.n, j);
}

void bz_trace_json(const bz_trace *t, int top, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    tops_beside tops = {.trace = t};
    bz_beside thread = bz_beside_start(t->event[BZ_EVENT_KERNEL].n, find_tops, &tops);
    bz_summary s;
    bz_summary_make(t, &arena, &s);
    bz_json j = bz_json_document_to(out, 0, "profile", 1);
    json_files(t, &j);
    json_levels(t, &j, &arena);
    json_iterations(t, &s, &j);
    bz_beside_end(&thread);
    json_tops("calls", EVENT, tell_events(t, &tops.found, BZ_EVENT_CALL, top, &arena), &j);
    json_tops("kernels", EVENT, tell_events(t, &tops.found, BZ_EVENT_KERNEL, top, &arena), &j);
    json_tops("operators", EVENT, tell_events(t, &tops.found, BZ_EVENT_OP, top, &arena), &j);
    json_tops("callers", CALLER, tell_callers(t, top, &arena), &j);
    json_tops("gaps", GAP, tell_gaps(t, &tops.found, top, &arena), &j);
    BZ_JSON_EACH (&j, "coverage", i, t->n_coverage) {
        bz_json_key_str(&j, "level", bz_coverage_level_name(t->coverage[i].level));
        if (t->coverage[i].source != BZ_NONE)
            bz_json_key_str(&j, "file", bz_string(t, t->source[t->coverage[i].source].path));
        BZ_JSON(&j, BZ_TELL("lack", bz_lack_name(t->coverage[i].lack)),
                BZ_TELL("text", bz_string(t, t->coverage[i].text)));
    }
    bz_json_document_end(&j);
    bz_arena_free(&tops.arena);
}
