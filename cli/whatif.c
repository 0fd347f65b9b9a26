/* benanza whatif: what the iteration of a recording would take after a change. */
#include "whatif/whatif.h"
#include "cli/cli.h"
#include "cli/db.h"
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run(int argc, char **argv);
const bz_command bz_command_whatif = {"whatif", "[OPTIONS] RECORDING... | --list",
                                      "what the iteration of a recording would take after a change", run};

typedef struct {
    bz_list change, script;
    const char *iterations, *output, *html, *actual, *sweep, *system, *db, *cache;
    int64_t threads;
    bool json, list, force, literal;
} settings;

static int read_all(bz_trace *t, const bz_list *files, const char *iterations, bz_error *err)
{
    for (int i = 0; i < files->n; i++)
        if (bz_profile_read(t, files->item[i], err))
            return -1;
    return bz_trace_finish(t, &(bz_finish_options){.iterations = iterations}, err);
}

/* Milliseconds, or a recording of the program really changed. */
static int read_actual(const char *text, const settings *s, int64_t *out, bz_error *err)
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
    bz_list one = {.item = &text, .n = 1};
    int failed = read_all(t, &one, s->iterations, err) || bz_flow_make(t, bz_typical_iteration(t), &flow, err);
    *out = flow.measured;
    bz_flow_free(&flow);
    bz_trace_free(t);
    return failed;
}

static int check_identity(const bz_whatif *w, bool force, bz_error *err)
{
    if (w->error > BZ_WHATIF_REFUSE && !force)
        return bz_fail(
            err, BZ_INCOMPLETE,
            "the unchanged graph is simulated %.1f %% off what was measured, above %.0f %%: no prediction stands on "
            "that; --force predicts all the same",
            100 * w->error, 100 * BZ_WHATIF_REFUSE);
    if (w->error > BZ_WHATIF_WARN)
        bz_warn(&bz_command_whatif,
                "the unchanged iteration is simulated %.1f %% off what was measured: predictions may be off by as much",
                100 * w->error);
    return 0;
}

/* "link:times=1,2,4": what is asked once for each value, behind what --do names. */
static int sweep(const bz_trace *t, const settings *s, const bz_whatif_asked *asked, int n, bz_arena *arena,
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

static int predict(const bz_trace *t, const settings *s, const bz_whatif_records *records, bz_arena *arena,
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
static int open_records(const settings *s, bz_arena *arena, bz_perfdb **db, bz_whatif_records *records, bz_error *err)
{
    if (bz_db_open(&bz_command_whatif, s->db, true, db, err) || bz_perfdb_known(*db, s->system, &records->system, err))
        return -1;
    records->db = *db;
    records->setting =
        (bz_setting){(int)s->threads, s->cache && !strcmp(s->cache, "cold") ? BZ_CACHE_COLD : BZ_CACHE_HOT, ""};
    records->name = bz_arena_printf(arena, "records of %s", records->system->name);
    return 0;
}

static int answer(const bz_list *files, const settings *s, bz_buf *out, bz_error *err)
{
    bz_trace *t = bz_trace_new();
    bz_arena arena = {0};
    bz_flow flow = {0};
    bz_whatif w;
    bz_perfdb *db = NULL;
    bz_whatif_records records;
    int failed = (s->system && open_records(s, &arena, &db, &records, err)) || read_all(t, files, s->iterations, err) ||
                 bz_flow_make(t, bz_typical_iteration(t), &flow, err);
    flow.literal = s->literal;
    if (!failed && !bz_whatif_begin(t, &flow, &arena, &w, err) && !check_identity(&w, s->force, err) &&
        !(s->actual && read_actual(s->actual, s, &w.actual, err)) &&
        !predict(t, s, db ? &records : NULL, &arena, &w, err)) {
        if (s->json)
            bz_report_whatif_json(&w, out);
        else
            bz_report_whatif_text(&w, s->sweep || (!s->change.n && !s->script.n), out);
    } else {
        failed = -1;
    }
    bz_flow_free(&flow);
    bz_arena_free(&arena);
    bz_trace_free(t);
    bz_perfdb_close(db);
    return failed;
}

static int whatif(void *job, const bz_list *files, bz_buf *out, int *status, bz_error *err)
{
    const settings *s = job;
    (void)status;
    if (s->list) {
        bz_report_whatif_list(out);
        return 0;
    }
    if (!files->n)
        return bz_fail(err, BZ_USAGE, "name a recording: benanza whatif RECORDING");
    if (s->threads > 4096)
        return bz_fail(err, BZ_USAGE, "--threads takes a number up to 4096");
    if (s->output && s->sweep)
        return bz_fail(err, BZ_USAGE, "--output wants one prediction, and --sweep makes several");
    if (s->output && !s->change.n && !s->script.n)
        return bz_fail(err, BZ_USAGE, "--output wants a transformation: --do NAME, or --script FILE");
    return answer(files, s, out, err);
}

static int run(int argc, char **argv)
{
    settings s = {.threads = 1};
    const bz_option options[] = {
        {"do", BZ_OPTION_LIST, &s.change, "NAME[:KEY=VALUE,...]",
         "a transformation that --list names; several are done one after the other (all that apply, each alone and "
         "together)"},
        {"script", BZ_OPTION_LIST, &s.script, "FILE", "do what the statements in FILE say, behind what --do names"},
        {"sweep", BZ_OPTION_TEXT, &s.sweep, "NAME:KEY=A,B,...",
         "do this with each of the values, a row each, behind what --do names"},
        {"list", BZ_OPTION_FLAG, &s.list, NULL, "say which transformations there are, and what each assumes"},
        {"html", BZ_OPTION_TEXT, &s.html, "FILE", "write a page with both time lines, the answer and what was assumed"},
        {"actual", BZ_OPTION_TEXT, &s.actual, "MS|FILE",
         "what the changed program really takes, in milliseconds or as a recording: say how far off the prediction is"},
        {"o|output", BZ_OPTION_TEXT, &s.output, "FILE",
         "write the predicted iteration as a Chrome trace, which https://ui.perfetto.dev shows; wants --do"},
        {"system", BZ_OPTION_TEXT, &s.system, "NAME",
         "take durations from the records of this system, where it has any"},
        {"db", BZ_OPTION_TEXT, &s.db, "DIR",
         "the database's folder (else $BENANZA_DB, else $XDG_DATA_HOME/benanza/perfdb)"},
        {"threads", BZ_OPTION_COUNT, &s.threads, "N", "records with N threads count (1)"},
        {"cache", BZ_OPTION_CHOICE, &s.cache, "hot|cold", "records with operands in caches, or in memory, count (hot)"},
        {"iterations", BZ_OPTION_TEXT, &s.iterations, "NAME",
         "ranges of this name are the iterations (benanza_iteration, else found by what repeats)"},
        {"literal-gaps", BZ_OPTION_FLAG, &s.literal, NULL,
         "let gaps of a thread delay what it launched, too, as published"},
        {"force", BZ_OPTION_FLAG, &s.force, NULL,
         "predict even where the unchanged graph is simulated more than 10 % off"},
        {"json", BZ_OPTION_FLAG, &s.json, NULL, "print JSON, for programs"},
        {0},
    };
    int status = bz_run_command(&bz_command_whatif, options, argc, argv, whatif, &s);
    bz_list_free(&s.script);
    bz_list_free(&s.change);
    return status;
}
