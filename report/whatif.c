/* What an iteration would take after a change: text and JSON. */
#include "base/member.h"
#include "report/parts.h"

#include <math.h>

enum { CRITICAL_ROWS = 6, OF_UNRECORDED = 3 /* columns */ };

static void print_graph(const bz_flow *f, bz_buf *out)
{
    const bz_flow_counts *c = &f->counts;
    bz_buf_puts(out, "graph      ");
    const char *comma = "";
    for (int k = 0; k < BZ_TASK_KINDS; k++)
        if (c->tasks[k] && k != BZ_TASK_END) {
            bz_buf_printf(out, "%s%u %s", comma, c->tasks[k], bz_task_kind_name((bz_task_kind)k));
            comma = ", ";
        }
    bz_buf_printf(out, "; %u lanes; %u launches, %u waits, %u events, %u hand-overs between threads\n", f->n_lanes,
                  c->edges[BZ_DEPENDS_LAUNCH], c->edges[BZ_DEPENDS_SYNC], c->edges[BZ_DEPENDS_STREAM], c->handovers);
    if (c->collapsed)
        bz_buf_puts(out, "note       CUDA graphs were recorded as one row each: what runs in them is one task\n");
    if (c->unlaunched)
        bz_buf_printf(out, "note       %u tasks of the device have no launch on record: they start when they did\n",
                      c->unlaunched);
    if (c->overlapping)
        bz_buf_printf(out, "note       %u events overlap others on their thread or stream, and begin behind them\n",
                      c->overlapping);
    if (c->backwards)
        bz_buf_printf(out, "note       %u events end before they begin: they take no time\n", c->backwards);
    if (c->early)
        bz_buf_printf(out, "note       %u tasks of the device are stamped before their launch: its clock differs\n",
                      c->early);
    if (10 * c->unexplained > f->measured)
        bz_buf_printf(
            out, "note       %s pass before tasks of the device that no launch, stream or event explains: they stay\n",
            BZ_SAY_NS(c->unexplained));
}

static void print_split(const char *title, const bz_flow_split *s, bz_buf *out)
{
    bz_buf_printf(out, "%-10s host only %s, device only %s, both %s, neither %s\n", title, BZ_SAY_NS(s->host),
                  BZ_SAY_NS(s->device), BZ_SAY_NS(s->both), BZ_SAY_NS(s->neither));
}

static void print_critical(const char *title, const bz_critical *c, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_new(arena);
    bz_table_column(t, title, BZ_LEFT);
    bz_table_columns(t, "kind|>tasks|>time|>share");
    for (uint32_t i = 0; i < c->n && i < CRITICAL_ROWS; i++)
        BZ_ROW(t, BZ_SHOW(c->row[i].name), BZ_SHOW(c->row[i].kind), BZ_SHOW_INT(c->row[i].tasks),
               BZ_SHOW_TIME(1e-9 * (double)c->row[i].time),
               BZ_SHOW_SHARE(c->time ? (double)c->row[i].time / (double)c->time : 0));
    bz_buf_putc(out, '\n');
    bz_table_print(t, out);
    if (c->n > CRITICAL_ROWS)
        bz_buf_printf(out, "… and %u more\n", c->n - CRITICAL_ROWS);
}

static void print_one(const bz_whatif *w, const bz_prediction *p, bz_arena *arena, bz_buf *out)
{
    if (!p->changed) {
        bz_buf_printf(out, "\n%s does not apply: %s\n", p->name, p->because ? p->because : "it changes nothing");
        return;
    }
    bz_buf_putc(out, '\n');
    if (p->because)
        bz_buf_printf(out, "           of these one does not apply: %s\n", p->because);
    print_split("after", &p->split, out);
    for (int i = 0; i < p->n_assumed; i++) {
        bz_buf_printf(out, "%-10s ", bz_assumed_name(p->assumed[i].how));
        bz_buf_say(out, "%s (%s)\n", p->assumed[i].what, p->assumed[i].from);
    }
    if (w->actual) {
        bool held = w->actual >= p->low && w->actual <= p->high;
        bz_buf_printf(out, "actual     %s: the prediction is off by %+.1f %%, and the interval %s\n",
                      BZ_SAY_NS(w->actual), 100.0 * (double)(p->time - w->actual) / (double)w->actual,
                      held ? "holds" : "does not hold");
    }
    print_critical("critical path after", &p->critical, arena, out);
}

/* Share of an iteration that a table of gains would show as none. */
static const double LEAST_SHOWN = 0.0005;

static bool same_time(const bz_whatif *w, const bz_prediction *p)
{
    return fabs((double)(w->simulated - p->time)) < LEAST_SHOWN * (double)w->simulated;
}

/* Nothing to show of a change that was tried because it might gain; what was asked for with a value has its row. */
static bool gains_nothing(const bz_whatif *w, const bz_prediction *p)
{
    return same_time(w, p) && fabs((double)p->gain) < LEAST_SHOWN * (double)w->simulated && !strchr(p->name, '=');
}

static void print_rows(const bz_whatif *w, const bz_prediction *rows, int n, const char *title, bool together,
                       bz_arena *arena, bz_buf *out)
{
    bool unrecorded = false;
    for (int i = 0; i < n; i++)
        unrecorded |= bz_whatif_differs_unrecorded(w, &rows[i]);
    bz_table *t = bz_table_new(arena);
    bz_table_column(t, title, BZ_LEFT);
    bz_table_columns(t, unrecorded ? ">after|>from|>to|>gain|guessed|>gain unrecorded|>at least|>at most"
                                   : ">after|>from|>to|>gain|guessed");
    for (int i = 0; i < n; i++) {
        if (!rows[i].changed || gains_nothing(w, &rows[i]))
            continue;
        const char *last = strrchr(rows[i].name, '+');
        const bz_shown cells[] = {
            BZ_SHOW(together && last ? last : rows[i].name),
            BZ_SHOW_TIME(1e-9 * (double)rows[i].time),
            BZ_SHOW_TIME(1e-9 * (double)rows[i].low),
            BZ_SHOW_TIME(1e-9 * (double)rows[i].high),
            BZ_SHOW_SHARE((double)(w->simulated - rows[i].time) / (double)w->simulated),
            BZ_SHOW(bz_prediction_guesses(&rows[i]) ? "in part" : "nothing"),
            BZ_SHOW_TIME(1e-9 * (double)rows[i].unrecorded),
            BZ_SHOW_TIME(1e-9 * (double)rows[i].unrecorded_low),
            BZ_SHOW_TIME(1e-9 * (double)rows[i].unrecorded_high),
        };
        bz_table_row(t, cells, sizeof cells / sizeof *cells - (unrecorded ? 0 : OF_UNRECORDED));
    }
    bz_table_below(t, out);
}

static void put_times(const bz_whatif *w, const bz_prediction *p, bz_buf *out)
{
    const char *a = BZ_SAY_NS(p->time), *b = BZ_SAY_NS(p->low), *c = BZ_SAY_NS(p->high), *d = BZ_SAY_NS(w->simulated);
    double factor = p->time > 0 ? (double)w->simulated / (double)p->time : INFINITY;
    const char *guessed = bz_prediction_guesses(p) ? "; guessed in part" : "";
    if (same_time(w, p))
        bz_buf_printf(out, "the iteration takes as long as before, %s (%s to %s)%s.\n", a, b, c, guessed);
    else if (fabs(factor - 1) < 0.005)
        bz_buf_printf(out, "the iteration takes %s (%s to %s) instead of %s, %.1f %% %s%s.\n", a, b, c, d,
                      100 * fabs(1 - 1 / factor), factor > 1 ? "less" : "more", guessed);
    else
        bz_buf_printf(out, "the iteration takes %s (%s to %s) instead of %s, %.3g times as %s%s.\n", a, b, c, d,
                      factor < 1 ? 1 / factor : factor, factor < 1 ? "long" : "fast", guessed);
}

static void put_gain(const bz_whatif *w, const bz_prediction *p, bz_buf *out)
{
    put_times(w, p, out);
    if (!bz_whatif_differs_unrecorded(w, p))
        return;
    bz_buf_puts(out, "That is as recorded: ");
    bz_whatif_say_unrecorded(w, p, out);
    bz_buf_puts(out, ".\n");
}

/* Share of an iteration that a gain has to be to stand in the first sentence: below that one iteration differs from the next by more. Chosen;
 * twice leaves out gains that advice tells (advice/constants.h). */
static const double WORTH_SAYING = 0.01;

void bz_report_whatif_answer(const bz_whatif *w, bool all, bz_buf *out)
{
    const bz_prediction *best = NULL, *last = w->n ? &w->prediction[w->n - 1] : NULL;
    for (int i = 0; i < w->n; i++)
        if (w->prediction[i].changed && (!best || w->prediction[i].gain > best->gain))
            best = &w->prediction[i];
    if (!best) {
        bz_buf_printf(out, "Nothing of what was tried applies: the iteration takes %s still.\n",
                      BZ_SAY_NS(w->simulated));
    } else if (!all) {
        bz_buf_printf(out, "With %s ", last->name);
        put_gain(w, last, out);
    } else if (best->gain <= 0 || gains_nothing(w, best)) {
        bz_buf_printf(out, "Nothing of what was tried makes the iteration shorter than %s.\n", BZ_SAY_NS(w->simulated));
    } else if ((double)best->gain < WORTH_SAYING * (double)w->simulated && w->n_greedy < 2) {
        bz_buf_printf(out, "Nothing of what was tried gains more than %.1f %%: the iteration takes %s.\n",
                      100 * (double)best->gain / (double)w->simulated, BZ_SAY_NS(w->simulated));
    } else if (w->n_greedy > 1) {
        bz_buf_printf(out, "With %s alone ", best->name);
        put_gain(w, best, out);
        bz_buf_printf(out, "With %d changes together ", w->n_greedy);
        const bz_prediction *together = &w->greedy[w->n_greedy - 1];
        put_times(w, together, out);
        if (bz_whatif_differs_unrecorded(w, together))
            bz_buf_printf(out, "Unrecorded they gain %s (%s to %s).\n", BZ_SAY_NS(together->unrecorded),
                          BZ_SAY_NS(together->unrecorded_low), BZ_SAY_NS(together->unrecorded_high));
    } else {
        bz_buf_printf(out, "Most is gained by %s: ", best->name);
        put_gain(w, best, out);
    }
}

/* What a change comes to that has no row: why it does not apply; "" where it gains nothing. NULL: it has a row. */
static const char *without_row(const bz_whatif *w, int i)
{
    const bz_prediction *p = &w->prediction[i];
    if (!p->changed)
        return p->because ? p->because : "it changes nothing";
    return gains_nothing(w, p) ? "" : NULL;
}

static bool same_words(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

/* Changes of which the same is to be said are one line. */
static void print_refusals(const bz_whatif *w, bz_buf *out)
{
    int lines = 0;
    for (int i = 0; i < w->n; i++) {
        const char *why = without_row(w, i);
        int n = 0;
        for (int k = 0; k < i; k++)
            why = same_words(without_row(w, k), why) ? NULL : why;
        for (int k = i; k < w->n && why; k++)
            if (same_words(without_row(w, k), why))
                bz_buf_printf(out, "%s%s", n++ ? ", " : lines++ ? "" : "\n", w->prediction[k].name);
        if (why && *why)
            bz_buf_printf(out, " %s not apply: %s\n", n > 1 ? "do" : "does", why);
        else if (why)
            bz_buf_printf(out, " %s nothing here\n", n > 1 ? "gain" : "gains");
    }
}

/* Does the graph reach much beyond the iteration, because the device works behind a host that does not wait for it? */
static bool until_device(const bz_whatif *w)
{
    const bz_flow *f = w->flow;
    if (!f->trace || f->iteration == BZ_NONE || f->overlaps)
        return false;
    return (double)w->measured > (1 + BZ_WHATIF_WARN) * (double)bz_iteration_latency(f->trace, f->iteration);
}

void bz_report_whatif_text(const bz_whatif *w, bool all, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    const bz_flow *f = w->flow;
    bz_report_whatif_answer(w, all, out);
    bz_buf_printf(out, "%s %s; simulated %s, off by %s.\n",
                  f->overlaps ? "A step of the typical iteration takes" : "The typical iteration takes",
                  BZ_SAY_NS(w->measured), BZ_SAY_NS(w->simulated), BZ_SAY_SHARE(w->error));
    if (bz_trace_ahead(f->trace))
        bz_buf_printf(out,
                      "That is the device's own step: the host runs %s ahead (median), and launches of much of its "
                      "work are not on record. What the host does meanwhile is for later steps, and no change of it "
                      "is seen here.\n",
                      BZ_SAY_NS(bz_trace_ahead(f->trace)));
    else if (until_device(w))
        bz_buf_printf(out,
                      "The host is done with it after %s, as 'benanza profile show' tells it: here it lasts until the "
                      "device has done what was asked for in it.\n",
                      BZ_SAY_NS(bz_iteration_latency(f->trace, f->iteration)));
    if (f->iteration == BZ_NONE)
        bz_buf_puts(out, "No iteration was found: all that was recorded is taken as one.\n");
    else if (w->steady < 2)
        bz_buf_printf(out, "One iteration does not tell how far iterations differ: %s is assumed.\n",
                      BZ_SAY_SHARE(w->noise));
    if (all) {
        print_rows(w, w->prediction, w->n, "alone", false, &arena, out);
        if (w->n_greedy > 1)
            print_rows(w, w->greedy, w->n_greedy, "together, each with those above", true, &arena, out);
        print_refusals(w, out);
    } else {
        for (int i = 0; i < w->n; i++)
            print_one(w, &w->prediction[i], &arena, out);
    }
    bz_buf_putc(out, '\n');
    print_graph(f, out);
    print_split("before", &w->split, out);
    print_critical(all ? "critical path" : "critical path before", &w->critical, &arena, out);
}

void bz_report_whatif_list(bz_buf *out)
{
    int n;
    const bz_transformation *rows = bz_transformations(&n);
    for (int i = 0; i < n; i++) {
        bz_buf_printf(out, "%s%s: %s\n  assumes: %s\n", i ? "\n" : "", rows[i].name, rows[i].does, rows[i].assumes);
        for (int k = 0; k < BZ_WHATIF_PARAMETERS && rows[i].parameter[k].name; k++) {
            const bz_whatif_parameter *p = &rows[i].parameter[k];
            bz_buf_printf(out, "  %s: %s; %g", p->name, p->help, p->usual);
            if (p->low < p->high)
                bz_buf_printf(out, ", %g to %g", p->low, p->high);
            bz_buf_printf(out, " (%s)\n", p->from);
        }
        if (rows[i].file)
            bz_buf_printf(out, "  %s: %s; the last one, since %s may hold commas\n", rows[i].key ? rows[i].key : "file",
                          rows[i].file, rows[i].key ? "names" : "paths");
    }
}

void bz_report_whatif_list_json(bz_buf *out)
{
    int n;
    const bz_transformation *rows = bz_transformations(&n);
    bz_json j = bz_json_document_to(out, -1, "transformations", 1);
    BZ_JSON_EACH (&j, "transformations", i, n) {
        int parameters = 0;
        while (parameters < BZ_WHATIF_PARAMETERS && rows[i].parameter[parameters].name)
            parameters++;
        BZ_PUT(&j, bz_transformation, &rows[i], name, does, assumes, file, key);
        BZ_JSON_EACH (&j, "parameters", k, parameters)
            BZ_PUT(&j, bz_whatif_parameter, &rows[i].parameter[k], name, help, low, usual, high, least, most, from);
    }
    bz_json_document_end(&j);
}

static const char *source_of(const void *assumed)
{
    return bz_assumed_name(((const bz_assumed *)assumed)->how);
}

static const bz_member ASSUMED[] = {
    BZ_MEMBER(bz_assumed, what),
    BZ_MEMBER_MADE("how", source_of),
    BZ_MEMBER(bz_assumed, from),
};

const bz_member report_assumed[1] = {BZ_MEMBER_EACH(bz_prediction, assumed, n_assumed, "assumed", ASSUMED)};

static const bz_member SPLIT[] = {
    BZ_MEMBER_SECONDS(bz_flow_split, host, "host_seconds"),
    BZ_MEMBER_SECONDS(bz_flow_split, device, "device_seconds"),
    BZ_MEMBER_SECONDS(bz_flow_split, both, "both_seconds"),
    BZ_MEMBER_SECONDS(bz_flow_split, neither, "neither_seconds"),
};
static const bz_member CRITICAL[] = {
    BZ_FIELDS(bz_critical_row, name, kind, tasks),
    BZ_MEMBER_SECONDS(bz_critical_row, time, "seconds"),
};

/* What an iteration consists of, and what decides it. */
static void json_parts(bz_json *j, const bz_flow_split *s, const bz_critical *c)
{
    bz_members_object("split", BZ_MEMBERS(SPLIT), s, j);
    bz_members_rows("critical", BZ_MEMBERS(CRITICAL), c->row, sizeof *c->row, (int)c->n, j);
}

static const bz_member COUNTS[] = {
    BZ_FIELDS(bz_flow_counts, handovers, unlaunched, overlapping, backwards, early),
    BZ_MEMBER_AS(bz_flow_counts, collapsed, "collapsed_graphs"),
    BZ_MEMBER_SECONDS(bz_flow_counts, unexplained, "unexplained_seconds"),
};

static void json_graph(bz_json *j, const bz_flow *f)
{
    const bz_flow_counts *c = &f->counts;
    uint32_t mapped = 0, phased = 0;
    bz_json_key_object(j, "graph");
    BZ_JSON_NAMED(j, "tasks", int, k, BZ_TASK_KINDS, bz_task_kind_name((bz_task_kind)k), c->tasks[k]);
    BZ_JSON_NAMED(j, "dependencies", int, k, BZ_DEPENDENCIES, bz_depends_name((bz_depends)k), c->edges[k]);
    for (uint32_t i = 0; i < f->n; i++) {
        mapped += f->task[i].layer != BZ_NONE;
        phased += f->task[i].phase != BZ_PHASE_NONE;
    }
    BZ_JSON(j, BZ_TELL("lanes", f->n_lanes), BZ_TELL("with_layer", mapped), BZ_TELL("with_phase", phased));
    bz_members_json(BZ_MEMBERS(COUNTS), c, j);
    bz_json_object_end(j);
}

static const bz_member PREDICTION[] = {BZ_FIELDS(bz_prediction, name, changed, because)};
static const bz_member TIMES[] = {
    BZ_MEMBER_SECONDS(bz_prediction, time, "seconds"),
    BZ_MEMBER_SECONDS(bz_prediction, low, "low_seconds"),
    BZ_MEMBER_SECONDS(bz_prediction, high, "high_seconds"),
};

static const bz_member UNRECORDED[] = {
    BZ_MEMBER_SECONDS(bz_prediction, unrecorded, "unrecorded_gain_seconds"),
    BZ_MEMBER_SECONDS(bz_prediction, unrecorded_low, "unrecorded_gain_low_seconds"),
    BZ_MEMBER_SECONDS(bz_prediction, unrecorded_high, "unrecorded_gain_high_seconds"),
};

static void json_predictions(bz_json *j, const char *key, const bz_whatif *w, const bz_prediction *p, int n,
                             int64_t actual)
{
    BZ_JSON_EACH (j, key, i, n) {
        bz_members_json(BZ_MEMBERS(PREDICTION), &p[i], j);
        if (p[i].changed) {
            bz_members_json(BZ_MEMBERS(TIMES), &p[i], j);
            if (w->adds[1])
                bz_members_json(BZ_MEMBERS(UNRECORDED), &p[i], j);
            if (actual)
                bz_json_key_num(j, "actual_error", (double)(p[i].time - actual) / (double)actual);
            json_parts(j, &p[i].split, &p[i].critical);
        }
        bz_members_json(BZ_MEMBERS(report_assumed), &p[i], j);
    }
}

static const bz_member WHATIF[] = {
    BZ_MEMBER_SECONDS(bz_whatif, measured, "measured_seconds"),
    BZ_MEMBER_SECONDS(bz_whatif, simulated, "simulated_seconds"),
    BZ_FIELDS(bz_whatif, error, spread, noise, steady),
};

void bz_report_whatif_json(const bz_whatif *w, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, -1, "whatif", 1);
    bz_members_json(BZ_MEMBERS(WHATIF), w, &j);
    bz_json_key_bool(&j, "overlaps", w->flow->overlaps);
    bz_json_key_str(&j, "view", bz_trace_ahead(w->flow->trace) ? "device" : until_device(w) ? "until device" : "host");
    if (w->adds[1])
        BZ_JSON(&j, BZ_TELL("unrecorded_seconds", 1e-9 * (double)w->unrecorded[1]),
                BZ_TELL("unrecorded_low_seconds", 1e-9 * (double)w->unrecorded[0]),
                BZ_TELL("unrecorded_high_seconds", 1e-9 * (double)w->unrecorded[2]));
    if (w->actual)
        bz_json_key_num(&j, "actual_seconds", 1e-9 * (double)w->actual);
    json_graph(&j, w->flow);
    json_parts(&j, &w->split, &w->critical);
    json_predictions(&j, "predictions", w, w->prediction, w->n, w->actual);
    json_predictions(&j, "together", w, w->greedy, w->n_greedy, 0);
    bz_json_document_end(&j);
}
