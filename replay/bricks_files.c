/* Sequences of layers as files in a folder, and what a command of the user's takes for each. */
#include "base/progress.h"
#include "base/whole.h"
#include "bench/bench.h"
#include "replay/replay.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_TIMES = 64 << 20 };

typedef struct timing {
    bz_brick_files *f;
    bz_bricks *b;
    bz_arena *arena;
    bz_map times; /* what was measured in the folder: "ID" or a model's path, of this command -> number of `seconds` */
    double *seconds;
    int n_seconds;
    bz_buf log; /* the file's lines */
} timing;

static const char *path_of(timing *j, const char *name)
{
    return bz_arena_printf(j->arena, "%s/%s", j->f->folder, name);
}

static const char *id_of(timing *j, int brick)
{
    char id[33];
    bz_hash_hex(j->b->brick[brick].hash, id);
    return bz_arena_str(j->arena, id);
}

/* ---- files ------------------------------------------------------------------------------------ */

int bz_bricks_write(bz_brick_files *f, bz_bricks *b, bz_arena *arena, bz_error *err)
{
    timing files = {.f = f, .b = b, .arena = arena}, *j = &files;
    if (mkdir(j->f->folder, 0777) && errno != EEXIST)
        return bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", j->f->folder, strerror(errno));
    for (int i = 0; i < j->b->n; i++) {
        bz_buf file = {0};
        bz_error why = {0};
        int rc = bz_bricks_save(j->b, i, &file, &why);
        if (rc)
            j->f->why[i] = bz_arena_str(j->arena, why.text);
        else
            rc = bz_whole_write(path_of(j, bz_arena_printf(j->arena, "%s.onnx", id_of(j, i))), &file, err);
        bz_buf_free(&file);
        if (rc && !j->f->why[i])
            return -1;
    }
    return 0;
}

/* ---- times ------------------------------------------------------------------------------------ */

/* "SECONDS<TAB>WHAT<TAB>COMMAND" */
static void read_times(timing *j)
{
    bz_error none;
    if (bz_whole_read(path_of(j, "times.tsv"), MOST_TIMES, "is too long", &j->log, &none))
        return;
    char *text = bz_arena_strn(j->arena, bz_buf_text(&j->log), j->log.len), *line, *rest = text;
    int lines = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    j->seconds = BZ_NEW(j->arena, double, lines);
    while ((line = strsep(&rest, "\n"))) {
        char *command = line, *seconds = strsep(&command, "\t"), *what = command ? strsep(&command, "\t") : NULL, *end;
        double v = strtod(seconds, &end);
        if (!what || !command || strcmp(command, j->f->command) != 0 || end == seconds || !(v > 0) || !isfinite(v) ||
            j->n_seconds == lines)
            continue;
        bz_map_set(&j->times, what, strlen(what), (uint32_t)j->n_seconds);
        j->seconds[j->n_seconds++] = v;
    }
}

/* The last number that the command prints for the file. */
static int measure(timing *j, const char *path, double *out, bz_error *err)
{
    bz_buf line = {0}, said = {0};
    const char *rest = j->f->command, *at;
    for (; (at = strstr(rest, "{model}")); rest = at + strlen("{model}")) {
        bz_buf_put(&line, rest, (size_t)(at - rest));
        bz_buf_word(&line, path);
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
static int time_of(timing *j, const char *what, const char *path, double *out, bz_error *err)
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
    bz_buf_printf(&j->log, "%.9g\t%s\t%s\n", *out, what, j->f->command);
    return bz_whole_write(path_of(j, "times.tsv"), &j->log, err);
}

void bz_bricks_time(bz_brick_files *f, bz_bricks *b, const char *const *path, int n, bz_arena *arena,
                    void (*warn)(void *user, const char *text), void *user)
{
    timing timed = {.f = f, .b = b, .arena = arena}, *j = &timed;
    bz_progress progress = bz_progress_start("measuring", b->n + n);
    int done = 0;
    read_times(j);
    bz_bench_hold(); /* what the command started ends with it */
    for (int i = 0; i < b->n && !bz_bench_stopped(); i++) {
        const char *id = id_of(j, i);
        bz_error why;
        if (!f->why[i] && time_of(j, id, path_of(j, bz_arena_printf(arena, "%s.onnx", id)), &b->brick[i].seconds, &why))
            f->why[i] = bz_arena_str(arena, why.text);
        bz_progress_at(&progress, ++done, NULL);
    }
    for (int i = 0; i < n && !bz_bench_stopped(); i++) {
        bz_error why;
        if (time_of(j, path[i], path[i], &b->model[i].measured, &why)) {
            bz_fail_in(&why, "%s", path[i]);
            warn(user, why.text);
        }
        bz_progress_at(&progress, ++done, path[i]);
    }
    bz_progress_end(&progress);
    bz_bench_release();
    bz_map_free(&timed.times);
    bz_buf_free(&timed.log);
}
