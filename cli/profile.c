/* benanza profile: capture a run, look at what was captured or recorded by others. */
#include "profile/profile.h"
#include "cli/profile.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int run(int argc, char **argv);
const bz_command bz_command_profile = {"profile", "show|tables [OPTIONS] FILE... | -o FILE [OPTIONS] -- COMMAND...",
                                       "record what a program really does, or show recordings that any tool made", run};

typedef struct {
    const char *output, *trace, *iterations, *table, *range, *against;
    int64_t top, limit;
    bool json, csv, backtrace, logs, nsys, levels, force;
} settings;

static int read_all(bz_trace *t, const bz_list *files, const settings *s, bz_error *err)
{
    for (int i = 1; i < files->n; i++)
        if (bz_profile_read(t, files->item[i], err))
            return -1;
    return bz_trace_finish(t, &(bz_finish_options){.iterations = s->iterations}, err);
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
static bool show_ranks(const bz_list *files, const settings *s, bz_buf *out)
{
    bz_arena arena = {0};
    int n = files->n - 1;
    bz_rank_profile *rank = BZ_NEW(&arena, bz_rank_profile, n);
    bz_trace **t = BZ_NEW(&arena, bz_trace *, n);
    bz_error ignored;
    bool read = true;
    for (int i = 0; i < n && read; i++) {
        t[i] = bz_trace_new();
        t[i]->summary = true;
        read = !bz_profile_read(t[i], files->item[i + 1], &ignored) &&
               !bz_trace_finish(t[i], &(bz_finish_options){.iterations = s->iterations}, &ignored);
        rank[i] = (bz_rank_profile){bz_file_name(files->item[i + 1]), t[i]};
    }
    read = read && bz_are_ranks(rank, n);
    bz_sheet *sheet = read ? bz_ranks_sheet(rank, n, &arena) : NULL;
    if (read && s->json) {
        bz_json j = bz_json_to(out, true);
        bz_json_document(&j, "ranks", 1);
        bz_json_key(&j, "ranks");
        bz_sheet_json(sheet, &j);
        bz_json_document_end(&j);
    } else if (read) {
        bz_sheet_text(sheet, (int)s->top, out);
        for (int i = 0; i < n; i++) {
            bz_buf_printf(out, "\n%s\n\n", rank[i].name);
            bz_trace_print(t[i], (int)s->top, out);
        }
    }
    for (int i = 0; i < n && t[i]; i++)
        bz_trace_free(t[i]);
    bz_arena_free(&arena);
    return read;
}

static int show(const bz_list *arguments, const settings *s)
{
    bz_error err = {0};
    bz_buf out = {0};
    bz_trace *t = bz_trace_new();
    int status = BZ_OK;
    t->summary = !s->trace && !s->output;
    if (arguments->n < 2) {
        bz_fail(&err, BZ_USAGE, "no file given: benanza profile show FILE...");
        status = bz_report(&bz_command_profile, &err);
        goto done;
    }
    if (arguments->n > 2 && !s->output && !s->trace && show_ranks(arguments, s, &out)) {
        if (bz_output(NULL, &out, &err))
            goto failed;
        goto done;
    }
    if ((s->output && check_output(s->output, s->force, &err)) || read_all(t, arguments, s, &err))
        goto failed;
    if (s->json)
        bz_trace_json(t, (int)s->top, &out);
    else
        bz_trace_print(t, (int)s->top, &out);
    if ((s->trace && bz_trace_perfetto(t, s->trace, &err)) || (s->output && bz_trace_save(t, s->output, &err)) ||
        bz_output(NULL, &out, &err))
        goto failed;
    for (uint32_t i = 0; i < t->n_sources; i++)
        if (t->source[i].truncated)
            status = BZ_INCOMPLETE;
    goto done;
failed:
    status = bz_report(&bz_command_profile, &err);
done:
    bz_trace_free(t);
    bz_buf_free(&out);
    return status;
}

/* The answer and the way to more, on stderr: stdout is the program's. */
static int capture(bz_list *arguments, const settings *s)
{
    bz_error err = {0};
    bz_buf out = {0};
    bz_trace *t = bz_trace_new();
    int status = BZ_OK, program = 0;
    char **argv = bz_alloc((size_t)arguments->n + 1, sizeof *argv);
    memcpy(argv, arguments->item, (size_t)arguments->n * sizeof *argv);
    argv[arguments->n] = NULL;
    bz_capture_options options = {.backtrace = s->backtrace,
                                  .logs = s->logs,
                                  .nsys = s->nsys,
                                  .limit = s->limit << 20,
                                  .iterations = s->iterations};
    int rc = check_output(s->output, s->force, &err);
    bz_progress_hold(true); /* the terminal is the program's */
    if (!rc && s->levels)
        rc = bz_profile_levels(t, argv, &options, &program, &err);
    else if (!rc)
        rc = bz_profile_capture(t, argv, &options, &program, &err) ||
             bz_trace_finish(t, &(bz_finish_options){.iterations = s->iterations}, &err);
    if (rc || bz_trace_save(t, s->output, &err) || (s->trace && bz_trace_perfetto(t, s->trace, &err))) {
        status = bz_report(&bz_command_profile, &err);
    } else {
        bz_trace_print(t, (int)s->top, &out);
        const char *end = strchr(bz_buf_text(&out), '\n');
        fprintf(stderr, "benanza profile: %.*s\nbenanza profile: %s is written: benanza profile show %s\n",
                (int)(end ? end - out.data : 0), bz_buf_text(&out), s->output, s->output);
        if (program)
            bz_warn(&bz_command_profile, "the program ended with status %d", program);
        status = program; /* who starts a program through us sees what it would see of the program itself */
    }
    if (program == 128 + SIGINT || program == 128 + SIGQUIT || program == 128 + SIGTERM || program == 128 + SIGHUP)
        bz_end_by(program - 128);
    free(argv);
    bz_trace_free(t);
    bz_buf_free(&out);
    return status;
}

enum { ROWS = 12 }; /* of each table, unless --top says otherwise */

static int run(int argc, char **argv)
{
    settings s = {.top = -1, .limit = 256};
    const bz_option options[] = {
        {"o|output", BZ_OPTION_TEXT, &s.output, "FILE", "write the recording to FILE, an SQLite database"},
        {"force", BZ_OPTION_FLAG, &s.force, NULL, "replace FILE where it is there already"},
        {"trace", BZ_OPTION_TEXT, &s.trace, "FILE", "write a Chrome trace, which https://ui.perfetto.dev shows"},
        {"iterations", BZ_OPTION_TEXT, &s.iterations, "NAME",
         "take ranges of this name (or pattern, as step*) for the iterations; a number: look for so many"},
        {"top", BZ_OPTION_INT, &s.top, "N",
         "show at most N rows of each table (12; of 'profile tables' 4, with --table 40)"},
        {"table", BZ_OPTION_TEXT, &s.table, "NAME",
         "with 'profile tables': print this table alone; the name help lists the tables"},
        {"range", BZ_OPTION_TEXT, &s.range, "NAME[:K]",
         "with 'profile tables': only what was asked for in the first range whose name contains NAME, or in the K-th, "
         "counted from 0"},
        {"against", BZ_OPTION_TEXT, &s.against, "FILE",
         "with 'profile tables': compare with this recording, in the tables difference and training"},
        {"backtrace", BZ_OPTION_FLAG, &s.backtrace, NULL,
         "record which lines of the program, C or Python, made each call"},
        {"levels", BZ_OPTION_FLAG, &s.levels, NULL,
         "run the program three times, alone, with calls, and with callers, and say what recording costs"},
        {"limit", BZ_OPTION_COUNT, &s.limit, "MB", "record at most MB megabytes for each process (256)"},
        {"logs", BZ_OPTION_FLAG, &s.logs, NULL, "switch the logs of cuDNN and cuBLAS on, and read them too"},
        {"nsys", BZ_OPTION_FLAG, &s.nsys, NULL, "record with Nsight Systems, which must be installed"},
        {"json", BZ_OPTION_FLAG, &s.json, NULL, "print JSON, for programs"},
        {"csv", BZ_OPTION_FLAG, &s.csv, NULL, "with 'profile tables': print one table as comma-separated values"},
        {0},
    };
    bz_list arguments = {0};
    bz_error err;
    int rc = bz_options_parse(&bz_command_profile, options, argc, argv, &arguments, &err), status = BZ_OK;
    bool top_given = s.top >= 0;
    s.top = top_given ? s.top : ROWS;
    if (rc < 0) {
        status = bz_report(&bz_command_profile, &err);
    } else if (!rc && s.top > 100000000) {
        bz_fail(&err, BZ_USAGE, "--top wants at most 100000000");
        status = bz_report(&bz_command_profile, &err);
    } else if (!rc && s.limit > 1 << 20) {
        bz_fail(&err, BZ_USAGE, "--limit wants at most 1048576 (MB)");
        status = bz_report(&bz_command_profile, &err);
    } else if (!rc && arguments.n && !strcmp(arguments.item[0], "show")) {
        status = show(&arguments, &s);
    } else if (!rc && arguments.n && !strcmp(arguments.item[0], "tables")) {
        status = profile_tables_run(&arguments, &(profile_tables){.table = s.table,
                                                                  .range = s.range,
                                                                  .against = s.against,
                                                                  .iterations = s.iterations,
                                                                  .top = top_given ? s.top : 0,
                                                                  .json = s.json,
                                                                  .csv = s.csv});
    } else if (!rc && arguments.n && s.output) {
        status = capture(&arguments, &s);
    } else if (!rc) {
        bz_fail(&err, BZ_USAGE, "what to do? benanza profile show FILE..., or benanza profile -o FILE -- COMMAND...");
        status = bz_report(&bz_command_profile, &err);
    }
    bz_list_free(&arguments);
    return status;
}
