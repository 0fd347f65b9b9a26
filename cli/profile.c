/* benanza profile: capture a run, look at what was captured or recorded by others. */
#include "profile/profile.h"
#include "cli/profile.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tables and the search for iterations take large arrays one after the other: of large recordings what was freed goes back to the kernel at
 * once, and an array that grows leaves no hole behind it. Arrays of less than `kept` bytes are kept for the next one, since the kernel
 * clears what it gives again; other commands keep up to 32 MB: bz_keep_memory. */
void profile_return_memory(int kept)
{
    mallopt(M_MMAP_THRESHOLD, kept);
    mallopt(M_TRIM_THRESHOLD, kept);
}

BZ_ENDS(end_trace, bz_trace_free)

bz_trace *bz_job_trace(bz_job *job)
{
    bz_trace *t = bz_trace_new();
    bz_arena_keep(&job->arena, t, end_trace);
    return t;
}

void bz_job_cut(bz_job *job, const bz_trace *t)
{
    for (uint32_t i = 0; i < t->n_coverage; i++)
        if (t->coverage[i].lack == BZ_LACKS_END && t->coverage[i].source != BZ_NONE)
            bz_warn(job->command, "%s: %s", bz_string(t, t->source[t->coverage[i].source].path),
                    bz_string(t, t->coverage[i].text));
    if (bz_trace_is_truncated(t))
        job->status = BZ_INCOMPLETE;
}

/* Whether a recording may be written there, said before the program runs for an hour, not after. */
static int check_output(const char *path, bool force, bz_error *err)
{
    char folder[PATH_MAX];
    struct stat st;
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + (slash == path) : 1;
    if ((size_t)snprintf(folder, sizeof folder, "%.*s", n, slash ? path : ".") >= sizeof folder)
        return bz_fail(err, BZ_USAGE, "%s: is too long a name", path);
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return bz_fail(err, BZ_USAGE, "%s: is there and is no file: the trace cannot be written to it", path);
    if (!force && !access(path, F_OK))
        return bz_fail(err, BZ_USAGE, "%s: is there already: name another file, or replace it with --force", path);
    if (access(folder, W_OK | X_OK))
        return bz_fail(err, BZ_FAILED, "%s: nothing can be written into %s: %s", path, folder, strerror(errno));
    return 0;
}

/* Files of several ranks are one program, but none is merged with another: their clocks differ. False where they are no ranks;
 * then they are read as parts of one recording. */
static bool show_ranks(profile_job *s, bz_buf *out)
{
    const bz_list *files = &s->job.arguments;
    bz_arena *arena = &s->job.arena;
    int n = files->n - 1;
    bz_rank_profile *rank = BZ_NEW(arena, bz_rank_profile, n);
    bz_error ignored;
    for (int i = 0; i < n; i++) {
        bz_trace *t = bz_job_trace(&s->job);
        t->summary = true;
        if (bz_trace_read(t, &files->item[i + 1], 1, s->iterations, &ignored))
            return false;
        rank[i] = (bz_rank_profile){bz_file_name(files->item[i + 1]), t};
    }
    if (!bz_are_ranks(rank, n))
        return false;
    for (int i = 0; i < n; i++)
        bz_job_cut(&s->job, rank[i].trace);
    bz_sheet *sheet = bz_ranks_sheet(rank, n, arena);
    if (s->job.json) {
        bz_json j = bz_json_document_to(out, 0, "ranks", 1);
        bz_json_key(&j, "ranks");
        bz_sheet_json(sheet, &j);
        bz_json_document_end(&j);
        return true;
    }
    bz_sheet_text(sheet, (int)s->top, out);
    for (int i = 0; i < n; i++) {
        bz_buf_printf(out, "\n%s\n\n", rank[i].name);
        bz_trace_print(rank[i].trace, (int)s->top, out);
    }
    return true;
}

enum way { SHOW, TABLES, NAMES, RECORD };

static int check_given(const profile_job *s, enum way way, bz_error *err)
{
    static const struct {
        const char *way, *reads;
    } WAYS[] = {
        [SHOW] = {"'profile show'", "output force trace iterations top json"},
        [TABLES] = {"'profile tables'", "table range against iterations top json csv"},
        [NAMES] = {"'--table help'", "table json"},
        [RECORD] = {"recording", "output force trace iterations backtrace levels memory limit logs nsys"},
    };
    return bz_job_reads(&s->job, WAYS[way].way, WAYS[way].reads, err);
}

static int show(profile_job *s, bz_buf *out, bz_error *err)
{
    const bz_list *files = &s->job.arguments;
    bz_trace *t = bz_job_trace(&s->job);
    profile_return_memory(8 << 20);
    t->summary = !s->trace && !s->output;
    if (files->n < 2)
        return bz_fail(err, BZ_USAGE, "no file given: benanza profile show FILE...");
    if (files->n > 2 && !s->output && !s->trace && show_ranks(s, out))
        return 0;
    if ((s->output && check_output(s->output, s->force, err)) ||
        bz_trace_read(t, files->item + 1, files->n - 1, s->iterations, err))
        return -1;
    (s->job.json ? bz_trace_json : bz_trace_print)(t, (int)s->top, out);
    if ((s->trace && bz_trace_perfetto(t, s->trace, err)) || (s->output && bz_trace_save(t, s->output, err)))
        return -1;
    bz_job_cut(&s->job, t);
    return 0;
}

/* The answer and the way to more, on stderr: stdout is the program's. */
static int capture(profile_job *s, bz_error *err)
{
    const bz_list *arguments = &s->job.arguments;
    BZ_SCOPED(bz_buf) out = {0};
    bz_trace *t = bz_job_trace(&s->job);
    int program = 0;
    char **argv = BZ_NEW(&s->job.arena, char *, arguments->n + 1);
    memcpy(argv, arguments->item, (size_t)arguments->n * sizeof *argv);
    bz_capture_options options = {.backtrace = s->backtrace,
                                  .logs = s->logs,
                                  .nsys = s->nsys,
                                  .memory = s->memory,
                                  .limit = s->limit << 20,
                                  .iterations = s->iterations};
    int rc = bz_iterations_check(s->iterations, err) || check_output(s->output, s->force, err) ? -1 : 0;
    bz_progress_hold(true); /* the terminal is the program's */
    if (!rc && s->levels)
        rc = bz_profile_levels(t, argv, &options, &program, err);
    else if (!rc)
        rc = bz_profile_capture(t, argv, &options, &program, err) ||
             bz_trace_finish(t, &(bz_finish_options){.iterations = s->iterations, .recorded = true}, err);
    rc = rc || bz_trace_save(t, s->output, err) || (s->trace && bz_trace_perfetto(t, s->trace, err)) ? -1 : 0;
    if (program == 128 + SIGINT || program == 128 + SIGQUIT || program == 128 + SIGTERM || program == 128 + SIGHUP)
        bz_end_by(program - 128);
    if (rc)
        return -1;
    bz_trace_print(t, (int)s->top, &out);
    const char *end = strchr(bz_buf_text(&out), '\n');
    fprintf(stderr, "benanza profile: %.*s\nbenanza profile: %s is written: benanza profile show %s\n",
            (int)(end ? end - out.data : 0), bz_buf_text(&out), s->output, s->output);
    for (uint32_t i = 0; i < t->n_coverage; i++) /* notes are for who looks at the recording */
        if (t->coverage[i].level != BZ_COVERAGE_NOTE || t->coverage[i].lack == BZ_LACKS_QUIET)
            bz_warn(s->job.command, "%s", bz_string(t, t->coverage[i].text));
    if (program)
        bz_warn(s->job.command, "the program ended with status %d", program);
    s->job.status = program; /* who starts a program through us sees what it would see of the program itself */
    return 0;
}

static const bz_option OPTIONS[] = {
    BZ_VALUE("o|output", profile_job, output, "FILE", "write the recording to FILE, an SQLite database"),
    BZ_FLAG("force", profile_job, force, "replace FILE where it is there already"),
    BZ_VALUE("trace", profile_job, trace, "FILE", "write a Chrome trace, which https://ui.perfetto.dev shows"),
    BZ_VALUE("iterations", profile_job, iterations, "NAME",
             "take ranges of this name (or pattern, as step*) for the iterations; a number: look for so many"),
    BZ_WHOLE("top", profile_job, top, "N",
             "show at most N rows of each table (12; of 'profile tables' 4, with --table 40)"),
    BZ_VALUE("table", profile_job, table, "NAME",
             "with 'profile tables': print this table alone; the name help lists the tables"),
    BZ_VALUE("range", profile_job, range, "NAME[:K]",
             "with 'profile tables': only what was asked for in the first range whose name contains NAME, or in the "
             "K-th, counted from 0"),
    BZ_VALUE("against", profile_job, against, "FILE",
             "with 'profile tables': compare with this recording, in the tables difference and training"),
    BZ_FLAG("backtrace", profile_job, backtrace, "record which lines of the program, C or Python, made each call"),
    BZ_FLAG("levels", profile_job, levels,
            "run the program three times, alone, with calls, and with callers, and say what recording costs"),
    BZ_FLAG("memory", profile_job, memory, "record the aligned memory that the program takes, as for tensors"),
    BZ_COUNT("limit", profile_job, limit, "MB", "record at most MB megabytes for each process (256)"),
    BZ_FLAG("logs", profile_job, logs, "switch the logs of cuDNN and cuBLAS on, and read them too"),
    BZ_FLAG("nsys", profile_job, nsys, "record with Nsight Systems, which must be installed"),
    BZ_JSON_OPTION,
    BZ_FLAG("csv", bz_job, csv, "with 'profile tables': print one table as comma-separated values"),
    {0},
};

static int profile(void *job, bz_buf *out, bz_error *err)
{
    enum { ROWS = 12 }; /* of each table, unless --top says otherwise */
    profile_job *s = job;
    const bz_list *arguments = &s->job.arguments;
    const char *what = arguments->n ? arguments->item[0] : "";
    if (s->top > 100000000)
        return bz_fail(err, BZ_USAGE, "--top wants at most 100000000");
    if (s->limit > 1 << 20)
        return bz_fail(err, BZ_USAGE, "--limit wants at most 1048576 (MB)");
    if (!strcmp(what, "tables"))
        return check_given(s, s->table && !strcmp(s->table, "help") ? NAMES : TABLES, err)
                   ? -1
                   : profile_tables(s, out, err);
    s->top = s->top >= 0 ? s->top : ROWS;
    if (!strcmp(what, "show"))
        return check_given(s, SHOW, err) ? -1 : show(s, out, err);
    if (arguments->n && s->output)
        return check_given(s, RECORD, err) ? -1 : capture(s, err);
    if (s->output)
        return bz_fail(err, BZ_USAGE, "name the program to record: benanza profile -o FILE -- COMMAND...");
    const char *meant = bz_choice_meant(what, (const char *const[]){"show", "tables"}, 2);
    if (meant)
        return bz_fail(err, BZ_USAGE, "there is no command 'profile %s': did you mean profile %s?", what, meant);
    return bz_fail(
        err, BZ_USAGE,
        "name recordings: benanza profile show FILE..., or a program to record: benanza profile -o FILE -- COMMAND...");
}

const bz_command bz_command_profile =
    BZ_COMMAND("profile", "show|tables [OPTIONS] FILE... | -o FILE [OPTIONS] -- COMMAND...",
               "record what a program really does, or show recordings that any tool made", OPTIONS, profile_job,
               profile, .usual = &(const profile_job){.top = -1, .limit = 256});
