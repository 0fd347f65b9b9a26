/* benanza whatif: what the iteration of a recording would take after a change. */
#include "whatif/whatif.h"
#include "cli/cli.h"
#include "cli/db.h"
#include "cli/profile.h"
#include "report/report.h"

#include <limits.h>
#include <malloc.h>
#include <string.h>

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
    BZ_FLAG("literal-gaps", whatif_job, literal,
            "let pauses of a thread also delay kernels that it launched before them, as the published algorithm does"),
    BZ_FLAG("force", whatif_job, force, "predict even where the unchanged graph is simulated more than 10 % off"),
    BZ_JSON_OPTION,
    {0},
};

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

static int write_page(const whatif_job *s, const bz_whatif_shown *shown, bz_error *err)
{
    bz_buf page = {0};
    bz_report_whatif_page(shown, bz_file_name(s->job.arguments.item[0]), !shown->changed.n, &page);
    return bz_output_end(s->html, &page, err);
}

/* A script is a change, too. */
static const char *const *changes(whatif_job *s, int *n)
{
    for (int i = 0; i < s->script.n; i++)
        bz_list_add(&s->job.arena, &s->change, bz_arena_printf(&s->job.arena, "script:file=%s", s->script.item[i]));
    *n = s->change.n;
    return s->change.item;
}

/* Each transformation takes a copy of the graph, changes it and lets it go: the memory serves the next one. From the kernel
 * it would come page by page, of a million tasks for more than a second. */
static void reuse_memory(void)
{
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

static int answer(whatif_job *s, bz_buf *out, bz_error *err)
{
    const bz_list *files = &s->job.arguments;
    bz_trace *t = bz_job_trace(&s->job);
    bz_whatif_records records = {0};
    bz_whatif_shown *shown = BZ_NEW(&s->job.arena, bz_whatif_shown, 1);
    bz_whatif_question q = {.sweep = s->sweep,
                            .actual = s->actual,
                            .iterations = s->iterations,
                            .literal = s->literal,
                            .force = s->force,
                            .shown = s->html != NULL,
                            .records = s->system ? &records : NULL};
    q.change = changes(s, &q.n);
    if ((s->system && open_records(s, &records, err)) || bz_trace_read(t, files->item, files->n, s->iterations, err))
        return -1;
    bz_job_cut(&s->job, t);
    const char *busy = bz_trace_lacks(t, BZ_LACKS_QUIET);
    if (busy)
        bz_warn(&bz_command_whatif, "%s", busy);
    if (bz_trace_leave_disturbed(t))
        bz_warn(&bz_command_whatif, "%s", bz_trace_lacks(t, BZ_LACKS_UNDISTURBED));
    if (!q.n || s->sweep)
        reuse_memory();
    int failed = bz_whatif_ask(t, &q, &s->job.arena, shown, err);
    const bz_whatif *w = &shown->whatif;
    if (w->error > BZ_WHATIF_WARN && (w->error <= BZ_WHATIF_REFUSE || s->force))
        bz_warn(&bz_command_whatif,
                "the unchanged iteration is simulated %.1f %% off what was measured: predictions may be off by as much",
                100 * w->error);
    if (failed || (s->output && bz_flow_perfetto(&shown->changed, &shown->after, s->output, err)) ||
        (s->html && write_page(s, shown, err)))
        return -1;
    if (s->job.json)
        bz_report_whatif_json(w, out);
    else
        bz_report_whatif_text(w, s->sweep || !q.n, out);
    return 0;
}

static int whatif(void *job, bz_buf *out, bz_error *err)
{
    whatif_job *s = job;
    if (s->list ? bz_job_reads(&s->job, "--list", "list json", err)
        : s->system
            ? 0
            : bz_job_reads_no(&s->job, "what-if without --system, which looks at no records", "threads cache", err))
        return -1;
    if (s->list) {
        if (s->job.json)
            bz_report_whatif_list_json(out);
        else
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
