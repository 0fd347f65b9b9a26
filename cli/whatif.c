/* benanza whatif: what the iteration of a recording would take after a change. */
#include "whatif/whatif.h"
#include "cli/cli.h"
#include "cli/db.h"
#include "cli/profile.h"
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct whatif_job {
    bz_job job;
    bz_list change, script;
    const char *iterations, *output, *html, *actual, *sweep, *system, *cache;
    int64_t threads;
    bool list, force, literal;
} whatif_job;

static const bz_option OPTIONS[] = {
    BZ_LIST("do", whatif_job, change, "NAME[:KEY=VALUE,...]",
            "a transformation that --list names; several are done one after the other (all that apply, each alone and "
            "together)"),
    BZ_LIST("script", whatif_job, script, "FILE", "do what the statements in FILE say, behind what --do names"),
    BZ_VALUE("sweep", whatif_job, sweep, "NAME:KEY=A,B,...",
             "do this with each of the values, a row each, behind what --do names"),
    BZ_FLAG("list", whatif_job, list, "say which transformations there are, and what each assumes"),
    BZ_VALUE("html", whatif_job, html, "FILE", "write a page with both time lines, the answer and what was assumed"),
    BZ_VALUE(
        "actual", whatif_job, actual, "MS|FILE",
        "what the changed program really takes, in milliseconds or as a recording: say how far off the prediction is"),
    BZ_VALUE("o|output", whatif_job, output, "FILE",
             "write the predicted iteration as a Chrome trace, which https://ui.perfetto.dev shows; wants --do"),
    BZ_VALUE("system", whatif_job, system, "NAME", "take durations from the records of this system, where it has any"),
    BZ_DB_OPTION,
    BZ_COUNT("threads", whatif_job, threads, "N", "records with N threads count (1)"),
    BZ_CHOICE("cache", whatif_job, cache, "hot|cold", "records with operands in caches, or in memory, count (hot)"),
    BZ_VALUE("iterations", whatif_job, iterations, "NAME",
             "ranges of this name are the iterations (benanza_iteration, else found by what repeats)"),
    BZ_FLAG("literal-gaps", whatif_job, literal, "let gaps of a thread delay what it launched, too, as published"),
    BZ_FLAG("force", whatif_job, force, "predict even where the unchanged graph is simulated more than 10 % off"),
    BZ_JSON_OPTION,
    {0},
};

/* Milliseconds, or a recording of the program really changed. */
static int read_actual(const char *text, const whatif_job *s, int64_t *out, bz_error *err)
{
    char *end;
    double ms = strtod(text, &end);
    if (end != text && !*end && access(text, F_OK)) {
        if (!(ms > 0) || ms > 1e9)
            return bz_fail(err, BZ_USAGE, "--actual wants milliseconds above 0, or a recording");
        *out = (int64_t)(1e6 * ms);
        return 0;
    }
    bz_trace *t = bz_trace_new();
    bz_flow flow = {0};
    int failed = trace_read(t, &text, 1, s->iterations, err) || bz_flow_make(t, bz_typical_iteration(t), &flow, err);
    *out = flow.measured;
    bz_flow_free(&flow);
    bz_trace_free(t);
    return failed;
}

static int check_identity(const bz_whatif *w, bool force, bz_error *err)
{
    if (w->error > BZ_WHATIF_REFUSE && !force)
        return bz_fail(err, BZ_INCOMPLETE,
                       "the unchanged graph is simulated %.1f %% off what was measured, above %.0f %%: no prediction "
                       "stands on that; --force predicts all the same",
                       100 * w->error, 100 * BZ_WHATIF_REFUSE);
    if (w->error > BZ_WHATIF_WARN)
        bz_warn(&bz_command_whatif,
                "the unchanged iteration is simulated %.1f %% off what was measured: predictions may be off by as much",
                100 * w->error);
    return 0;
}

/* "link:times=1,2,4": what is asked once for each value, behind what --do names. */
static int sweep(const bz_trace *t, const whatif_job *s, const bz_whatif_asked *asked, int n, bz_arena *arena,
                 bz_whatif *w, bz_error *err)
{
    const char *values = strchr(s->sweep, '=');
    bz_whatif_asked *all = BZ_NEW(arena, bz_whatif_asked, n + 1);
    if (!values || !strchr(s->sweep, ':') || !values[1])
        return bz_fail(err, BZ_USAGE, "--sweep wants NAME:KEY=VALUE,VALUE,...");
    for (const char *at = values + 1; *at;) {
        int length = (int)strcspn(at, ",");
        const char *text = bz_arena_printf(arena, "%.*s=%.*s", (int)(values - s->sweep), s->sweep, length, at);
        for (int i = 0; i < n; i++)
            all[i] = asked[i];
        if (bz_whatif_parse(text, arena, &all[n], err) || bz_whatif_predict(t, all, n + 1, arena, w, NULL, NULL, err))
            return -1;
        bz_buf name = {0};
        for (int i = 0; i < n; i++)
            bz_buf_printf(&name, "%s + ", asked[i].row->name);
        bz_buf_puts(&name, text);
        w->prediction[w->n - 1].name = bz_arena_str(arena, name.data);
        bz_buf_free(&name);
        at += length + (at[length] == ',');
    }
    return 0;
}

/* `after`: the changed graph as it was simulated; NULL where several things were tried. */
static int write_page(const char *path, const bz_whatif *w, const bz_flow *after, const bz_simulated *then,
                      bz_arena *arena, bz_error *err)
{
    bz_buf page = {0};
    bz_whatif_shown shown = {.whatif = *w, .flow = *w->flow};
    int failed = bz_flow_simulate(w->flow, NULL, arena, &shown.before, err);
    if (after) {
        shown.changed = *after;
        shown.after = *then;
    }
    if (!failed) {
        bz_report_whatif_page(&shown, !after, &page);
        failed = bz_output(path, &page, err);
    }
    bz_buf_free(&page);
    return failed;
}

static int predict(const bz_trace *t, const whatif_job *s, const bz_whatif_records *records, bz_arena *arena,
                   bz_whatif *w, bz_error *err)
{
    int n = s->change.n + s->script.n;
    w->records = records;
    if (!n && !s->sweep)
        return bz_whatif_try_all(t, arena, w, err) || (s->html && write_page(s->html, w, NULL, NULL, arena, err));
    bz_whatif_asked *asked = BZ_NEW(arena, bz_whatif_asked, n);
    for (int i = 0; i < n; i++) {
        const char *text = i < s->change.n ? s->change.item[i]
                                           : bz_arena_printf(arena, "script:file=%s", s->script.item[i - s->change.n]);
        if (bz_whatif_parse(text, arena, &asked[i], err))
            return -1;
    }
    if (s->sweep)
        return sweep(t, s, asked, n, arena, w, err) || (s->html && write_page(s->html, w, NULL, NULL, arena, err));
    bz_flow after = {0};
    bz_simulated simulated;
    int failed = bz_whatif_predict(t, asked, n, arena, w, &after, &simulated, err) ||
                 (s->output && bz_flow_perfetto(&after, &simulated, s->output, err)) ||
                 (s->html && write_page(s->html, w, &after, &simulated, arena, err));
    bz_flow_free(&after);
    return failed;
}

/* Without a system, no records: those of this machine say nothing of a recording from elsewhere. */
static int open_records(whatif_job *s, bz_whatif_records *records, bz_error *err)
{
    if (bz_db_open(&s->job, true, &records->db, err) || bz_perfdb_known(records->db, s->system, &records->system, err))
        return -1;
    records->setting =
        (bz_setting){(int)s->threads, s->cache && !strcmp(s->cache, "cold") ? BZ_CACHE_COLD : BZ_CACHE_HOT, ""};
    records->name = bz_arena_printf(&s->job.arena, "records of %s", records->system->name);
    return 0;
}

static int answer(whatif_job *s, bz_buf *out, bz_error *err)
{
    bz_arena *arena = &s->job.arena;
    const bz_list *files = &s->job.arguments;
    bz_trace *t = bz_job_trace(&s->job);
    bz_flow flow = {0};
    bz_whatif w;
    bz_whatif_records records = {0};
    int failed = (s->system && open_records(s, &records, err)) ||
                 trace_read(t, files->item, files->n, s->iterations, err) ||
                 bz_flow_make(t, bz_typical_iteration(t), &flow, err);
    flow.literal = s->literal;
    failed = failed || bz_whatif_begin(t, &flow, arena, &w, err) || check_identity(&w, s->force, err) ||
             (s->actual && read_actual(s->actual, s, &w.actual, err)) ||
             predict(t, s, records.db ? &records : NULL, arena, &w, err);
    if (!failed && s->job.json)
        bz_report_whatif_json(&w, out);
    else if (!failed)
        bz_report_whatif_text(&w, s->sweep || (!s->change.n && !s->script.n), out);
    bz_flow_free(&flow);
    return failed ? -1 : 0;
}

static int whatif(void *job, bz_buf *out, bz_error *err)
{
    whatif_job *s = job;
    if (s->list) {
        bz_report_whatif_list(out);
        return 0;
    }
    if (!s->job.arguments.n)
        return bz_fail(err, BZ_USAGE, "name a recording: benanza whatif RECORDING");
    if (s->threads > 4096)
        return bz_fail(err, BZ_USAGE, "--threads takes a number up to 4096");
    if (s->output && s->sweep)
        return bz_fail(err, BZ_USAGE, "--output wants one prediction, and --sweep makes several");
    if (s->output && !s->change.n && !s->script.n)
        return bz_fail(err, BZ_USAGE, "--output wants a transformation: --do NAME, or --script FILE");
    return answer(s, out, err);
}

const bz_command bz_command_whatif = BZ_COMMAND("whatif", "[OPTIONS] RECORDING... | --list",
                                                "what the iteration of a recording would take after a change", OPTIONS,
                                                whatif_job, whatif, .usual = &(const whatif_job){.threads = 1});
