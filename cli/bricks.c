/* benanza bricks: models as sequences of layers, each unique one a file, and what models take by what these take. */
#include "cli/bricks.h"
#include "base/progress.h"
#include "base/whole.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { USUAL = 1, MOST_TIMES = 64 << 20 };

typedef struct bricks_job {
    bz_job job;
    const char *folder, *command;
    int64_t most;
    bz_bricks b;
    const char **why; /* [b.n] */
    bz_map times; /* what was measured in the folder: "ID" or a model's path, of this command -> number of `seconds` */
    double *seconds;
    int n_seconds;
    bz_buf log; /* the file's lines */
    bool replay, overlap, weights, advise;
    const bz_sheet *advice;
    bricks_records records;
    bz_list rules;
    const char *each;
    bz_brick_rules rule;
    bz_models models;
} bricks_job;

static const bz_option OPTIONS[] = {
    BZ_COUNT("G|layers", bricks_job, most, "N", "at most N layers in a sequence (1)"),
    BZ_VALUE("o|output", bricks_job, folder, "DIR", "write each unique sequence into this folder as an ONNX file"),
    BZ_FLAG("weights", bricks_job, weights, "keep the weights in these files: they compute what the model does"),
    BZ_VALUE("exec", bricks_job, command, "CMD",
             "run CMD for each of these files, and for the models; {model} in it is the file's name, and the last word "
             "that it prints is the time in seconds. What was measured stays in DIR/times.tsv"),
    BZ_FLAG("replay", bricks_job, replay,
            "run each sequence and each model here as 'benanza replay' does, and store their times as records"),
    BZ_FLAG("no-run", bricks_job, records.no_run, "with --replay: run nothing, use what the database has"),
    BZ_FLAG("overlap", bricks_job, overlap,
            "use all sequences of up to N layers, which may share layers: a model takes what its cheapest cover by "
            "them takes"),
    BZ_VALUE("each", bricks_job, each, "S", "count S seconds more for each sequence (0)"),
    BZ_LIST("rule", bricks_job, rules, "KIND=FACTOR",
            "count FACTOR times as much for sequences that begin with a layer of this kind; may be repeated"),
    BZ_FLAG("advise", bricks_job, advise,
            "by the records, tell what each model takes on each system, the fastest system first; with --system, which "
            "model is fastest there"),
    BZ_LIST("price", bricks_job, records.prices, "SYSTEM=DOLLARS",
            "with --advise: what an hour of this system costs; may be repeated"),
    BZ_JSON_OPTION,
    BZ_VALUE("time-limit", bricks_job, records.time_limit, "S", "measure each for S seconds (0.2)"),
    PLANNING_REMEASURE_OPTION(bricks_job, records.remeasure),
    MODEL_BATCH_OPTION(bricks_job, records.p.models),
    PLANNING_SWEEP_OPTIONS(bricks_job, records.p),
    PLANNING_SYSTEM_OPTION(bricks_job, records.p),
    {0},
};

static const char *path_of(bricks_job *j, const char *name)
{
    return bz_arena_printf(&j->job.arena, "%s/%s", j->folder, name);
}

static const char *id_of(bricks_job *j, int brick)
{
    char id[33];
    bz_hash_hex(j->b.brick[brick].hash, id);
    return bz_arena_str(&j->job.arena, id);
}

/* ---- files ------------------------------------------------------------------------------------ */

static int save(bricks_job *j, bz_error *err)
{
    if (mkdir(j->folder, 0777) && errno != EEXIST)
        return bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", j->folder, strerror(errno));
    for (int i = 0; i < j->b.n; i++) {
        bz_buf file = {0};
        bz_error why = {0};
        int rc = bz_bricks_save(&j->b, i, &file, &why);
        if (rc)
            j->why[i] = bz_arena_str(&j->job.arena, why.text);
        else
            rc = bz_whole_write(path_of(j, bz_arena_printf(&j->job.arena, "%s.onnx", id_of(j, i))), &file, err);
        bz_buf_free(&file);
        if (rc && !j->why[i])
            return -1;
    }
    return 0;
}

/* ---- times ------------------------------------------------------------------------------------ */

/* "SECONDS<TAB>WHAT<TAB>COMMAND" */
static void read_times(bricks_job *j)
{
    bz_error none;
    if (bz_whole_read(path_of(j, "times.tsv"), MOST_TIMES, "is too long", &j->log, &none))
        return;
    char *text = bz_arena_strn(&j->job.arena, bz_buf_text(&j->log), j->log.len), *line, *rest = text;
    int lines = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    j->seconds = BZ_NEW(&j->job.arena, double, lines);
    while ((line = strsep(&rest, "\n"))) {
        char *command = line, *seconds = strsep(&command, "\t"), *what = command ? strsep(&command, "\t") : NULL, *end;
        double v = strtod(seconds, &end);
        if (!what || !command || strcmp(command, j->command) != 0 || end == seconds || !(v > 0) ||
            j->n_seconds == lines)
            continue;
        bz_map_set(&j->times, what, strlen(what), (uint32_t)j->n_seconds);
        j->seconds[j->n_seconds++] = v;
    }
}

static void quote(bz_buf *out, const char *path)
{
    bz_buf_putc(out, '\'');
    for (; *path; path++)
        if (*path == '\'')
            bz_buf_puts(out, "'\\''");
        else
            bz_buf_putc(out, *path);
    bz_buf_putc(out, '\'');
}

/* The last number that the command prints for the file. */
static int measure(bricks_job *j, const char *path, double *out, bz_error *err)
{
    bz_buf line = {0}, said = {0};
    const char *rest = j->command, *at;
    for (; (at = strstr(rest, "{model}")); rest = at + strlen("{model}")) {
        bz_buf_put(&line, rest, (size_t)(at - rest));
        quote(&line, path);
    }
    bz_buf_puts(&line, rest);
    int rc = bz_bench_output((char *[]){(char *)"sh", (char *)"-c", (char *)bz_buf_text(&line), NULL}, &said, err);
    while (!rc && said.len && strchr(" \t\r\n", said.data[said.len - 1]))
        said.len--;
    size_t begin = said.len;
    while (begin && !strchr(" \t\r\n", said.data[begin - 1]))
        begin--;
    char word[64], *end = word;
    snprintf(word, sizeof word, "%.*s", (int)(said.len - begin < 63 ? said.len - begin : 63),
             rc || !said.len ? "" : (const char *)said.data + begin);
    *out = strtod(word, &end);
    if (!rc && (end == word || *end || !(*out > 0) || !isfinite(*out)))
        rc = bz_fail(err, BZ_FAILED, "the command's last word is no number of seconds");
    bz_buf_free(&line);
    bz_buf_free(&said);
    return rc;
}

/* What this command was asked before is not asked again. Each time is written down at once. */
static int time_of(bricks_job *j, const char *what, const char *path, double *out, bz_error *err)
{
    uint32_t known = bz_map_get(&j->times, what, strlen(what));
    if (known != BZ_MAP_NONE) {
        *out = j->seconds[known];
        return 0;
    }
    if (measure(j, path, out, err)) {
        *out = NAN;
        return -1;
    }
    bz_buf_printf(&j->log, "%.9g\t%s\t%s\n", *out, what, j->command);
    return bz_whole_write(path_of(j, "times.tsv"), &j->log, err);
}

static void measure_all(bricks_job *j, const bz_list *paths)
{
    bz_progress progress = bz_progress_start("measuring", j->b.n + paths->n);
    int done = 0;
    read_times(j);
    bz_bench_hold(); /* what the command started ends with it */
    for (int i = 0; i < j->b.n && !bz_bench_stopped(); i++) {
        const char *id = id_of(j, i);
        bz_error why;
        if (!j->why[i] &&
            time_of(j, id, path_of(j, bz_arena_printf(&j->job.arena, "%s.onnx", id)), &j->b.brick[i].seconds, &why))
            j->why[i] = bz_arena_str(&j->job.arena, why.text);
        bz_progress_at(&progress, ++done, NULL);
    }
    for (int i = 0; i < paths->n && !bz_bench_stopped(); i++) {
        bz_error why;
        if (time_of(j, paths->item[i], paths->item[i], &j->b.model[i].measured, &why))
            bz_warn(&bz_command_bricks, "%s: %s", paths->item[i], why.text);
        bz_progress_at(&progress, ++done, paths->item[i]);
    }
    bz_progress_end(&progress);
    bz_bench_release();
}

/* ---- command ---------------------------------------------------------------------------------- */

/* "conv=1.1": sequences that begin with a convolution take 1.1 times as long. */
static int read_rules(bricks_job *j, bz_error *err)
{
    char *end;
    j->rule.each = j->each ? strtod(j->each, &end) : 0;
    if (j->each && (end == j->each || *end || !isfinite(j->rule.each)))
        return bz_fail(err, BZ_USAGE, "--each takes seconds, not '%s'", j->each);
    for (int i = 0; i < j->rules.n; i++) {
        const char *text = j->rules.item[i], *at = strchr(text, '=');
        double factor = at ? strtod(at + 1, &end) : -1;
        if (!at || at == text || end == at + 1 || *end || !(factor >= 0) || !isfinite(factor))
            return bz_fail(err, BZ_USAGE, "--rule takes KIND=FACTOR such as conv=1.1, not '%s'", text);
        if (j->rule.n_kinds == (int)(sizeof j->rule.kind / sizeof *j->rule.kind))
            return bz_fail(err, BZ_USAGE, "--rule takes up to %d kinds", j->rule.n_kinds);
        j->rule.kind[j->rule.n_kinds].kind = bz_arena_strn(&j->job.arena, text, (size_t)(at - text));
        j->rule.kind[j->rule.n_kinds++].factor = factor;
    }
    return 0;
}

static int check(bricks_job *j, const bz_list *paths, bz_error *err)
{
    if (!paths->n)
        return bz_fail(err, BZ_USAGE, "name models: benanza bricks MODEL...");
    if (j->advise && (j->command || j->replay))
        return bz_fail(err, BZ_USAGE, "--advise only looks up: it goes without --exec and --replay");
    if (j->records.prices.n && !j->advise)
        return bz_fail(err, BZ_USAGE, "--price is for --advise");
    if (j->command && j->replay)
        return bz_fail(err, BZ_USAGE, "--exec and --replay are two ways to run the sequences: name one");
    if (j->command && !j->folder)
        return bz_fail(err, BZ_USAGE, "--exec needs a folder for the files and their times: -o DIR");
    if (j->command && (!strstr(j->command, "{model}") || strpbrk(j->command, "\t\n")))
        return bz_fail(err, BZ_USAGE, "--exec takes a command of one line with {model} where the file's name belongs");
    return read_rules(j, err);
}

static void end_bricks(void *job)
{
    bricks_job *j = job;
    bz_bricks_free(&j->b);
    bz_map_free(&j->times);
    bz_buf_free(&j->log);
}

static int bricks(void *job, bz_buf *out, bz_error *err)
{
    bricks_job *j = job;
    const bz_list *paths = &j->job.arguments;
    const bz_models *m = &j->models;
    j->records.job = &j->job;
    bz_arena_keep(&j->job.arena, j, end_bricks);
    if (check(j, paths, err) || models_load(&j->job, paths, &j->records.p.models, &j->models, err))
        return -1;
    j->b.overlap = j->overlap;
    j->b.weights = j->weights;
    j->b.most = j->most ? (int)(j->most < 1 << 20 ? j->most : 1 << 20) : USUAL;
    for (int i = 0; i < m->n; i++)
        bz_bricks_add(&j->b, m->layers[i], bz_file_name(paths->item[i]));
    j->why = BZ_NEW(&j->job.arena, const char *, j->b.n);
    if (j->folder && save(j, err))
        return -1;
    if (j->replay && bricks_replay(&j->records, &j->b, m->layers, j->why, err))
        return -1;
    if (j->advise && bricks_advise(&j->records, &j->b, &j->rule, &j->advice, err))
        return -1;
    if (j->command)
        measure_all(j, paths);
    for (int i = 0; i < j->b.n; i++)
        j->job.status = j->why[i] ? BZ_INCOMPLETE : j->job.status;
    const bz_bricks_report report = {&j->b, j->why, j->records.hot, &j->rule, j->advice};
    (j->job.json ? bz_report_bricks_json : bz_report_bricks_text)(&report, out);
    return 0;
}

const bz_command bz_command_bricks =
    BZ_COMMAND("bricks", "MODEL... [OPTIONS]",
               "cut models into sequences of layers that run by themselves, and tell what models take by them", OPTIONS,
               bricks_job, bricks);
