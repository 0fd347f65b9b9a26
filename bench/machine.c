/* This machine: the program benanza-bench knows it, and is asked; what it says is stored. */
#include "bench/bench.h"
#include "runtime/gpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int bz_bench_find(char *out, size_t size, bz_error *err)
{
    char folder[BZ_FOLDER_MAX];
    const char *given = getenv("BENANZA_BENCH");
    if (given && *given) {
        snprintf(out, size, "%s", given);
    } else {
        snprintf(out, size, "%s/benanza-bench", bz_folder_program(folder));
        if (access(out, X_OK))
            snprintf(out, size, "%s/../libexec/benanza/benanza-bench", folder);
    }
    if (!access(out, X_OK))
        return 0;
    return bz_fail(err, BZ_FAILED, "%s: cannot be run: %s; install benanza's runtime, or set BENANZA_BENCH", out,
                   strerror(errno));
}

/* The system line of a device. Where there is none the program's sentence becomes ours. */
static int device_output(char *const *argv, const char *advice, bz_buf *out, bz_error *err)
{
    int result = bz_bench_program(argv, true, out, err);
    if (result <= 0)
        return result;
    const char *text = out->len ? bz_buf_text(out) : "benanza: no device was found\n";
    text = !strncmp(text, "benanza: ", 9) ? text + 9 : text;
    return bz_fail(err, BZ_FAILED, "%.*s; %s", (int)strcspn(text, "\n"), text, advice);
}

int bz_bench_device(const char *backend, bz_error *err)
{
    char path[3100], *argv[] = {path, "--system", "--backend", (char *)backend, NULL};
    BZ_SCOPED(bz_buf) text = {0};
    return bz_bench_find(path, sizeof path, err) ||
                   device_output(argv, "--no-run with --folder writes the program for another machine", &text, err)
               ? -1
               : 0;
}

/* Runs benanza-bench for the line that says what the machine is, and hands on what it says behind that. `advice` is what to do without
 * the device that the options name; NULL: they name none. */
static int ask_line(const char *const *options, const char *advice, bz_arena *arena, bz_line *line, const char **rest,
                    bz_error *err)
{
    char path[3100], *argv[8] = {path, "--system"};
    BZ_SCOPED(bz_buf) text = {0};
    for (int i = 0; options[i]; i++)
        argv[2 + i] = (char *)options[i];
    int rc = bz_bench_find(path, sizeof path, err) ||
             (advice ? device_output(argv, advice, &text, err) : bz_bench_output(argv, &text, err));
    size_t n = strcspn(bz_buf_text(&text), "\n");
    rc = rc || bz_line_parse(bz_buf_text(&text), n, arena, line, err);
    if (!rc && !line->is_system)
        rc = bz_fail(err, BZ_FAILED, "%s did not say what the machine is", path);
    *rest = bz_arena_str(arena, bz_buf_text(&text) + n + (n < text.len));
    return rc ? -1 : 0;
}

/* Peaks belong to a thread count: those that were measured with others stay. The text is read as a line, so that it is
 * spelled as an import would. What was measured just now is the newest, whatever other clocks said. */
static int keep_peaks(const bz_system *known, bz_line *line, bz_arena *arena, bz_error *err)
{
    const char *joined = bz_system_join(known->details, line->details, arena);
    bz_line again;
    if (line->date <= known->date && known->date < INT64_MAX)
        line->date = known->date + 1;
    if (!joined)
        return 0;
    const char *text = bz_arena_printf(arena, "{\"v\":1,\"record\":\"system\",%s", joined + 1);
    if (bz_line_parse(text, strlen(text), arena, &again, err))
        return -1;
    line->details = again.details;
    return 0;
}

/* Records, a line each: what moving data costs. */
static int store_records(bz_perfdb *db, const char *text, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    int rc = 0;
    while (*text && !rc) {
        size_t n = strcspn(text, "\n");
        bz_line line;
        rc = bz_line_parse(text, n, &arena, &line, err);
        if (!rc && !line.is_system)
            rc = bz_perfdb_put(db, &line.record, 1, NULL, err);
        text += n + (text[n] == '\n');
    }
    return rc ? -1 : 0;
}

/* Stores what the machine is, if the database may be written to, where `again`, or where the database knows nothing of the system. */
static int identify(bz_perfdb *db, const char *const *options, const char *backend, bool again,
                    const bz_system **system, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_line line;
    const char *rest;
    const char *advice = backend ? "--system NAME looks up the records of another machine" : NULL;
    int rc = ask_line(options, advice, &arena, &line, &rest, err) || bz_perfdb_system(db, line.system, system, err) ||
             (again && *system && keep_peaks(*system, &line, &arena, err));
    if (!rc && !*system && !bz_perfdb_can_write(db))
        *system = bz_perfdb_guest(db, line.system, line.details, line.date);
    else if (!rc && bz_perfdb_can_write(db) &&
             (again || !*system || !(*system)->details || !strcmp((*system)->details, "{}")))
        rc = bz_perfdb_put_system(db, line.system, line.details, line.date, err) ||
             bz_perfdb_system(db, line.system, system, err) || store_records(db, rest, err);
    return rc ? -1 : 0;
}

bool bz_bench_sheet(const char *name)
{
    bz_gpu row;
    return bz_gpu_slug(name, &row);
}

int bz_bench_known(bz_perfdb *db, const char *name, const bz_system **system, bz_error *err)
{
    bz_gpu row;
    if (bz_perfdb_system(db, name, system, err))
        return -1;
    if (*system || !bz_gpu_slug(name, &row))
        return *system ? 0 : bz_perfdb_known(db, name, system, err);
    BZ_SCOPED(bz_buf) details = {0};
    bz_buf_printf(&details, "{\"device\":\"gpu\",\"name\":\"%s\"}", row.name);
    *system = bz_perfdb_guest(db, row.slug, bz_buf_text(&details), 0);
    return 0;
}

int bz_bench_system(bz_perfdb *db, const char *given, const char *backend, const bz_system **system, bz_error *err)
{
    const char *options[] = {backend ? "--backend" : NULL, backend, NULL};
    return given ? bz_perfdb_known(db, given, system, err) : identify(db, options, backend, false, system, err);
}

int bz_bench_look(const char *backend, bz_arena *arena, bz_line *line, bz_error *err)
{
    const char *options[] = {backend ? "--backend" : NULL, backend, NULL};
    const char *rest;
    return ask_line(options, backend ? "nothing can be measured on it" : NULL, arena, line, &rest, err);
}

int bz_bench_text(bz_buf *out, bz_error *err)
{
    char path[3100], *argv[] = {path, "--system", "--text", NULL};
    return bz_bench_find(path, sizeof path, err) || bz_bench_output(argv, out, err) ? -1 : 0;
}

int bz_bench_measure(bz_perfdb *db, int threads, const char *wait, const bz_system **system, bz_error *err)
{
    char count[24];
    const char *options[] = {"--measure", "--threads", count, wait ? "--wait" : NULL, wait, NULL};
    snprintf(count, sizeof count, "%d", threads ? threads : 1);
    bz_progress progress = bz_progress_start("measuring the peak rates of this machine", 0);
    int rc = identify(db, options, NULL, true, system, err);
    bz_progress_end(&progress);
    return rc;
}

int bz_bench_peaks(bz_perfdb *db, int threads, const char *wait, const bz_remeasure *again, const bz_system **system,
                   bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    const bz_measured *known =
        bz_system_measured(bz_system_facts_read((*system)->details, &arena), threads ? threads : 1);
    bool busy = known && known->busy, measured = known;
    bool wanted = again && (again->all || (again->marked && busy) || (*system)->date < again->before);
    return measured && !wanted ? 0 : bz_bench_measure(db, threads, wait, system, err);
}
